"""Programs in separate processes, without the two seconds that importing scikit-learn costs each of them.

One interpreter imports the packages, uses none of them and forks for every program. Tests of importing, of starting and
of leaving the interpreter need a new one instead.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

IMPORTED = ("numpy", "spinney._forest.forests", "spinney._boosting.gradient_boosting", "spinney.cli.fit")


class Program:
    """A running program; its exit code and output come with `wait`."""

    def __init__(self, code, *arguments, **environment):
        self._folder = tempfile.TemporaryDirectory()
        os.mkfifo(Path(self._folder.name, "stdout"))
        request = {"code": code, "arguments": [*map(str, arguments)], "environment": environment}
        server = _server()
        print(json.dumps({**request, "folder": self._folder.name}), file=server.stdin, flush=True)
        self.stdout = Path(self._folder.name, "stdout").open()  # noqa: SIM115 (wait closes it)
        self.pid = int(server.stdout.readline())

    def wait(self):
        """Return what `subprocess.run` would; an exit code other than 0 is left to the caller."""
        output = self.stdout.read()
        self.stdout.close()
        print(json.dumps({"wait": self.pid}), file=_server().stdin, flush=True)
        code = int(_server().stdout.readline())
        errors = Path(self._folder.name, "stderr").read_text()
        self._folder.cleanup()
        return subprocess.CompletedProcess([], code, output, errors)


def run(code, *arguments, **environment):
    """Run a program to its end, which must be a good one."""
    result = Program(code, *arguments, **environment).wait()
    assert result.returncode == 0, result.stderr
    return result


@cache
def _server():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, __file__]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    atexit.register(server.communicate)
    return server


def serve():
    """Read requests until there are no more; a forked child leaves the loop with its program."""
    for name in IMPORTED:
        __import__(name)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            print(os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1]), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            return request
        print(pid, flush=True)
    return None


def become(request):
    """Turn this process into the one that was asked for."""
    folder = Path(request["folder"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    out = os.open(folder / "stdout", os.O_WRONLY)
    errors = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT)
    for target, source in enumerate((nothing, out, errors)):
        os.dup2(source, target)
        os.close(source)
    os.environ.update(request["environment"])
    sys.argv = ["-c", *request["arguments"]]
    exec(compile(request["code"], "<program>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__" and (request := serve()):
    become(request)
