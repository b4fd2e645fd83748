"""Fits on Dask that are interrupted, or whose client is killed: they end, and leave nothing behind on the workers."""

import signal
import subprocess
import sys
import threading
import time

import dask_client
import pytest
from spinney._cluster.single_worker import SingleWorkerFit
from spinney._forest.distributed import Grower

distributed = pytest.importorskip("distributed")
pytest.importorskip("dask.dataframe")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of Dask and what it stands on
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, processes=False, protocol="tcp", threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def left_behind(dask_worker):
    """Return what a fit has left on a worker."""
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("spinney")]
    tasks = [key for key, task in dask_worker.state.tasks.items() if task.state == "executing"]
    return [*threads, *dask_worker.state.actors, *tasks]


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Return all actors of a test: whether one is still known must not decide whether its fit goes on."""
    found = []
    for actor in (Grower, SingleWorkerFit):
        make = actor.__init__

        def make_and_keep(self, *args, make=make):
            make(self, *args)
            found.append(self)

        monkeypatch.setattr(actor, "__init__", make_and_keep)
    return found


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("kind", dask_client.LONG)
def test_nothing_is_left(client, kind, stop):
    command = [sys.executable, dask_client.__file__, client.scheduler.address, kind]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in other.stdout:
            if "begun" in line or "of 100000 trees" in line or "trees are distributed" in line:
                break
        time.sleep(1)
        assert other.poll() is None, line
        assert any(client.run(left_behind).values())
        other.send_signal(stop)
        output = other.communicate(timeout=60)[0]  # of fits that would take hours
        assert other.returncode in (-stop, 1, 130), output
        if stop == signal.SIGINT:
            assert "KeyboardInterrupt" in output
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    began = time.monotonic()
    # the tree in hand is grown to its end, which takes a while where a machine is busy
    while any((found := client.run(left_behind)).values()) and time.monotonic() - began < 60:
        time.sleep(0.5)
    assert not any(found.values())
