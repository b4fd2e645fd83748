"""What every test relies on."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell ignores it for what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests interrupt processes that inherit this
