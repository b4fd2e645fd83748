"""Waits for Dask workers: whom they ask, how long they last, and what they say when they end."""

import time
import warnings
from contextlib import closing
from hashlib import sha256
from types import SimpleNamespace

import pytest
import spinney
from dask_rows import FEW, make_frame, partitioned
from sklearn.base import clone
from spinney._cluster import actor
from spinney._cluster import blocks as dask_blocks
from spinney._cluster import dask as waits
from spinney._cluster.actor import Actor, RemoteActor, wait_until_ready
from spinney._cluster.blocks import DaskBlocks
from spinney._cluster.dask import WorkerLostError, gather
from spinney._cluster.single_worker import WholeTable
from spinney._cluster.transport import Connection
from spinney._data.scan import client_of

distributed = pytest.importorskip("distributed")
pytest.importorskip("dask.dataframe")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Dask and what it stands on
    pytest.mark.timeout(300),
]
MODELS = {
    "partitioned rows": spinney.GradientBoostingRegressor(**FEW),
    "one worker": spinney.GradientBoostingRegressor(**FEW, growth="symmetric"),
    "distributed trees": spinney.RandomForestRegressor(4, max_leaf_nodes=8, random_state=0),
}


class Slow(Actor):
    """An actor that works, or does nothing, for a while."""

    def work(self, seconds):
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            sha256(bytes(1_000_000))  # which leaves Python's lock to others, as the engine does
        return "worked"

    def sleep(self, seconds):
        time.sleep(seconds)


def one_worker(**options):
    return distributed.LocalCluster(
        n_workers=1, processes=False, threads_per_worker=1, dashboard_address=None, **options
    )


@pytest.fixture
def impatient(monkeypatch):
    """Wait for seconds, not for minutes."""
    monkeypatch.setattr(waits, "MAX_WAIT_SECONDS", 1.5)
    monkeypatch.setattr(waits, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(actor, "REPLY_SECONDS", 0.2)


@pytest.mark.parametrize("kind", MODELS)
def test_another_cluster_is_not_used(kind):
    """A client that was made later, of a cluster whose workers this one does not know, is left alone."""
    model, frame = MODELS[kind], make_frame(600)
    here = type(model)(**model.get_params()).fit(frame.drop(columns="y"), frame["y"])
    with (
        one_worker(protocol="tcp") as cluster,
        distributed.Client(cluster) as client,
        one_worker(protocol="tcp") as other_cluster,
        distributed.Client(other_cluster) as other,
    ):
        assert distributed.default_client() is other
        with client.as_current():
            there = type(model)(**model.get_params()).fit(partitioned(frame, [250]), "y")
        kept = client.persist(partitioned(frame, [250]))
        again = type(model)(**model.get_params()).fit(kept, "y")  # its rows are on the workers of the first
        tasks = other.run_on_scheduler(lambda dask_scheduler: [len(dask_scheduler.tasks), dask_scheduler.clients])
        assert tasks[0] == 0
    assert there.fingerprint() == here.fingerprint()
    assert again.fingerprint() == here.fingerprint()


def test_a_graph_is_looked_through_only_where_there_is_a_choice(client, monkeypatch):
    """Of 10,000 partitions it would take seconds, and the one client is known without."""
    looked = []
    monkeypatch.setattr(distributed, "futures_of", lambda rows: looked.append(rows) or [])
    rows, frame = partitioned(make_frame(600), [250]), make_frame(600)
    there = spinney.GradientBoostingRegressor(**FEW).fit(rows, "y")
    assert looked == []
    here = spinney.GradientBoostingRegressor(**FEW).fit(frame.drop(columns="y"), frame["y"])
    assert there.fingerprint() == here.fingerprint()
    with one_worker() as other_cluster, distributed.Client(other_cluster, set_as_default=False):
        assert client_of(rows) is client
        assert len(looked) == 1
    assert client_of(rows) is client  # the other is closed
    assert len(looked) == 1
    assert client_of(frame) is None


def fit_in_a_task(model):
    return model.fit(partitioned(make_frame(600), [250]), "y").fingerprint()


@pytest.mark.parametrize("kind", MODELS)
def test_a_fit_in_a_task_leaves_its_thread_to_others(client, kind):
    """A worker of one thread would wait for itself."""
    frame = make_frame(600)
    here = MODELS[kind].fit(frame.drop(columns="y"), frame["y"]).fingerprint()
    addresses = client.nthreads()
    tasks = [client.submit(fit_in_a_task, clone(MODELS[kind]), pure=False, workers=[a]) for a in addresses]
    assert client.gather(tasks) == [here, here]
    assert client.submit(sum, [1, 2], pure=False).result() == 3  # the threads are those of the workers again


def test_work_that_goes_on_is_waited_for(client, impatient):
    address = min(client.nthreads())
    with closing(RemoteActor(client, address, Slow)) as slow:
        wait_until_ready(client, [slow])
        assert slow.call("work", 3.0) == "worked"  # longer than any reply takes
        with pytest.raises(TimeoutError, match=rf"The worker {address} has made no progress for 2 s\. Look at its"):
            slow.call("sleep", 4.0)


@pytest.mark.slow
def test_partitions_are_waited_for_one_by_one(client, impatient, monkeypatch):
    monkeypatch.setattr(waits, "MAX_WAIT_SECONDS", 4.0)  # a busy machine may take seconds longer over a partition
    some = client.map(time.sleep, [1.2] * 4, pure=False, workers=[min(client.nthreads())])
    assert gather(client, some) == [None] * 4  # there is one more in time, again and again
    with pytest.raises(TimeoutError, match=r"The cluster has made no progress for 4 s\."):
        gather(client, client.map(time.sleep, [0, 12], pure=False))


def test_a_worker_that_is_gone_is_not_waited_for(client):
    with (
        closing(RemoteActor(client, "tcp://127.0.0.1:1", Slow)) as never,
        pytest.raises(WorkerLostError, match=r"tcp://127\.0\.0\.1:1"),  # at the first check, not after ten minutes
    ):
        never.wait()


def test_a_scheduler_that_does_not_answer(client, impatient):
    async def never():
        await waits.asyncio.sleep(60)

    with pytest.raises(TimeoutError, match=r"The scheduler has not answered for 2 s\."):
        waits.threads_by_worker(SimpleNamespace(nthreads=never, loop=client.loop))


def test_workers_that_are_out_of_reach_are_named(client, monkeypatch):
    async def refuse(*args):
        raise OSError("no route to host")

    frame = make_frame(600)
    here = spinney.GradientBoostingRegressor(**FEW).fit(frame.drop(columns="y"), frame["y"])
    monkeypatch.setattr(Connection, "open", refuse)
    with pytest.warns(UserWarning, match=r"cannot connect to the worker .* \(OSError: no route to host\)\. Messages"):
        there = spinney.GradientBoostingRegressor(**FEW).fit(partitioned(frame, [250]), "y")
    assert there.fingerprint() == here.fingerprint()
    monkeypatch.setattr(client, "direct_to_workers", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        there = spinney.GradientBoostingRegressor(**FEW).fit(partitioned(frame, [250]), "y")
    assert there.fingerprint() == here.fingerprint()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["partitioned rows", "distributed trees"])
def test_a_cluster_without_workers_is_an_error_after_a_while(kind, monkeypatch):
    frame, model, closed = make_frame(6000), clone(MODELS[kind]), []
    call = "send" if kind == "partitioned rows" else "actor"
    of = DaskBlocks if kind == "partitioned rows" else WholeTable
    goes_on = getattr(of, call)
    with one_worker() as cluster, distributed.Client(cluster):

        def close_before(*args):
            closed.append(args)
            if len(closed) == (5 if kind == "partitioned rows" else 1):
                cluster.sync(cluster.workers[0].close)
                monkeypatch.setattr(waits, "MAX_WAIT_SECONDS", 5.0)
            return goes_on(*args)

        monkeypatch.setattr(of, call, close_before)
        with (
            pytest.warns(UserWarning, match="lost all of its workers. The fit waits up to 5 s for another one"),
            pytest.raises(RuntimeError, match=r"no new one has joined in 5 s\. Start workers, and fit again"),
        ):
            model.fit(partitioned(frame, [3000]), "y")


def test_a_worker_is_lost_once_however_many_blocks_it_has(monkeypatch):
    blocks = DaskBlocks.__new__(DaskBlocks)
    blocks._n_lost, blocks.ranges = 0, [(0, 1), (1, 2), (2, 3)]
    blocks._actors = [SimpleNamespace(address="a", close=lambda: None)] * 3
    monkeypatch.setattr(DaskBlocks, "_rebuild_block", lambda self, block, n_last: [b"%d" % block] * n_last)
    for n in range(1, 21):
        coming = [[None] * 3, [None] * 3]
        blocks._replace_lost(coming)
        assert coming == [[b"0", b"1", b"2"]] * 2
        assert blocks._n_lost == n
    with pytest.raises(RuntimeError, match="The cluster has lost workers 21 times during the fit, the last of them a"):
        blocks._replace_lost([[None] * 3])


def n_actors(dask_worker):
    return len(dask_worker.state.actors)


@pytest.mark.slow
def test_blocks_that_are_made_again_are_not_left_by_an_interruption(monkeypatch):
    sent, found, send, wait_until_ready = [], [], DaskBlocks.send, dask_blocks.wait_until_ready
    with (
        distributed.LocalCluster(n_workers=2, processes=False, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):

        def send_and_close(self, request):
            sent.append(request)
            if len(sent) == 5:
                cluster.sync(cluster.workers[0].close)
            return send(self, request)

        def ready_and_interrupted(*args):
            wait_until_ready(*args)
            if len(sent) >= 5:
                found.append(sum(client.run(n_actors).values()))
                raise KeyboardInterrupt

        monkeypatch.setattr(DaskBlocks, "send", send_and_close)
        monkeypatch.setattr(dask_blocks, "wait_until_ready", ready_and_interrupted)
        with pytest.raises(KeyboardInterrupt):
            spinney.GradientBoostingRegressor(**FEW).fit(partitioned(make_frame(6000), [3000]), "y")
        assert found == [2]
        began = time.monotonic()
        while any(client.run(n_actors).values()) and time.monotonic() - began < 60:
            time.sleep(0.05)
        assert not any(client.run(n_actors).values())
