"""What every test relies on."""

import gc
import os
import signal

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # a busy machine takes seconds for a first call
settings.load_profile("untimed")

# Threads of other libraries spin while they wait, and the tables are small: OpenMP's took 17 times the processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell ignores it for what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests interrupt processes that inherit this


def pytest_collection_finish():
    """Leave the modules and tests, which live to the end, out of every collection of garbage: 5 % of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="module")
def client():
    """Return a client of two Dask workers in this process."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, processes=False, protocol="tcp", threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
