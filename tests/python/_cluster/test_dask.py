"""Dask collections: fits on the workers of a cluster, and predictions when they are asked for."""

import os
import signal
import subprocess
import sys

import dask_rows
import numpy as np
import pandas as pd
import pytest
import spinney
from dask_rows import FEW, N, frame_of, make_frame, partitioned
from spinney._boosting.distributed import fit as partitioned_table
from spinney._boosting.distributed.booster import BlockActor
from spinney._cluster.blocks import DaskBlocks

distributed = pytest.importorskip("distributed")
pytest.importorskip("dask.dataframe")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Dask and what it stands on
    pytest.mark.timeout(300),
]


@pytest.fixture(autouse=True)
def two_on_their_way(monkeypatch):
    """Have two requests sent at a time, as of tables that are not small."""
    monkeypatch.setattr(partitioned_table, "WORK_OF_MESSAGE", 0.0)


def test_a_frame_on_workers(client):
    frame = make_frame()
    rows = partitioned(frame, [10, 10, 7000])
    here = spinney.GradientBoostingRegressor(**FEW).fit(frame.drop(columns="y"), frame["y"])
    there = spinney.GradientBoostingRegressor(**FEW).fit(rows.drop(columns="y"), rows["y"])
    assert there.fingerprint() == here.fingerprint()
    assert spinney.GradientBoostingRegressor(**FEW).fit(rows, "y").fingerprint() == here.fingerprint()
    lazy = there.predict(rows.drop(columns="y"))
    assert np.array_equal(lazy.compute(), here.predict(frame.drop(columns="y")))


def test_a_client_that_reaches_the_scheduler_alone(client, monkeypatch):
    monkeypatch.setattr(client, "direct_to_workers", False)
    frame = make_frame()
    here = spinney.GradientBoostingRegressor(**FEW).fit(frame.drop(columns="y"), frame["y"])
    there = spinney.GradientBoostingRegressor(**FEW).fit(partitioned(frame, [7000]), "y")
    assert there.fingerprint() == here.fingerprint()


def test_a_cluster_in_this_process_has_no_sockets():
    frame = make_frame()
    here = spinney.GradientBoostingRegressor(**FEW).fit(frame.drop(columns="y"), frame["y"])
    with (
        distributed.LocalCluster(n_workers=2, processes=False, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        there = spinney.GradientBoostingRegressor(**FEW).fit(partitioned(frame, [7000]), "y")
    assert there.fingerprint() == here.fingerprint()


def test_connections_are_not_those_of_the_clients_pool(client, monkeypatch):
    """Many workers would take all of them."""
    monkeypatch.setattr(client.rpc, "limit", 1)
    frame = make_frame()
    here = spinney.GradientBoostingRegressor(**FEW).fit(frame.drop(columns="y"), frame["y"])
    there = spinney.GradientBoostingRegressor(**FEW).fit(partitioned(frame, [7000]), "y")
    assert there.fingerprint() == here.fingerprint()


@pytest.mark.slow
def test_a_broken_connection_to_the_only_worker_is_replaced(monkeypatch):
    frame, asked, broken, send = make_frame(6000), [], [], DaskBlocks.send
    here = spinney.GradientBoostingRegressor(**FEW).fit(frame.drop(columns="y"), frame["y"])
    with (
        distributed.LocalCluster(
            n_workers=2, processes=False, protocol="tcp", threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def send_over_broken(self, request):
            asked.append(request)
            if len(asked) == 5:  # from now on one worker has two blocks
                cluster.sync(cluster.workers[0].close)
            if len(asked) == 12:
                broken.append(client.sync(self._actors[0]._channel._comm.close))
            send(self, request)

        monkeypatch.setattr(DaskBlocks, "send", send_over_broken)
        there = spinney.GradientBoostingRegressor(**FEW).fit(partitioned(frame, [3000]), "y")
    assert broken
    assert there.fingerprint() == here.fingerprint()


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_classes_on_processes(n_workers):
    frame = make_frame(seed=n_workers)
    labels = pd.Series(np.where(frame["y"] > 3, "high", np.where(frame["y"] > 0, "middle", "low")))
    labels[:9000] = labels[:9000].where(labels[:9000] != "high", "low")  # a class that some workers never see
    frame["y"] = labels
    frame["w"] = np.random.RandomState(0).random_sample(len(frame))
    options = FEW | {"early_stopping": True, "subsample": 0.8, "random_state": 0}
    here = spinney.GradientBoostingClassifier(**options).fit(
        frame.drop(columns=["y", "w"]), frame["y"], sample_weight=frame["w"]
    )
    with (
        distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        rows = partitioned(frame, [3, 4000, 9000])
        there = spinney.GradientBoostingClassifier(**options).fit(rows, "y", sample_weight="w")
        assert there.fingerprint() == here.fingerprint()
        assert there.validation_score_.tolist() == here.validation_score_.tolist()
        shares = there.predict_proba(rows.drop(columns=["y", "w"]))
        assert np.array_equal(shares.compute(), here.predict_proba(frame.drop(columns=["y", "w"])))


@pytest.mark.slow
def test_an_array_on_workers(client):
    import dask.array as da

    X = np.random.RandomState(0).standard_normal((N, 4))
    y = X[:, 0] - X[:, 1] ** 2
    there = spinney.GradientBoostingRegressor(**FEW).fit(da.from_array(X, chunks=(5000, 2)), da.from_array(y))
    here = spinney.GradientBoostingRegressor(**FEW).fit(X, y)
    assert there.fingerprint() == here.fingerprint()
    assert np.array_equal(there.predict(da.from_array(X, chunks=(3000, 4))).compute(), here.predict(X))


@pytest.mark.slow
def test_a_killed_client_is_followed_by_another(tmp_path):
    path, frame = tmp_path / "rounds", make_frame()
    done = subprocess.run(
        [sys.executable, dask_rows.__file__, str(path)], check=False, capture_output=True, timeout=250
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert path.exists()
    rounds = []
    there = dask_rows.fit_on_two_workers(path, lambda done: rounds.append(done["round"]))
    assert 1 < rounds[0] <= 5
    assert rounds[-1] == 8
    assert not path.exists()
    here = spinney.GradientBoostingRegressor(**FEW | {"n_estimators": 8}).fit(frame.drop(columns="y"), frame["y"])
    assert there.fingerprint() == here.fingerprint()


@pytest.mark.slow
def test_a_killed_worker_is_replaced(monkeypatch):
    frame = make_frame()
    options = FEW | {"n_estimators": 12, "subsample": 0.8, "random_state": 1}
    here = spinney.GradientBoostingRegressor(**options).fit(frame.drop(columns="y"), frame["y"])
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        killed = []
        send, asked = DaskBlocks.send, []

        def kill_one():
            pids = client.run(os.getpid)
            victim = sorted(pids)[0]
            killed.append(victim)
            os.kill(pids[victim], signal.SIGKILL)

        def kill(progress):
            if progress["round"] == 3:
                kill_one()

        def send_and_kill(self, request):
            asked.append(request[1])  # after the tag of the booster
            if asked[-3:] == [1, 2, 2] and len(asked) > 60 and len(killed) == 1:  # in the middle of a tree
                kill_one()
            send(self, request)

        monkeypatch.setattr(DaskBlocks, "send", send_and_kill)

        rows = partitioned(frame, [5000, 9000])
        there = spinney.GradientBoostingRegressor(**options, callbacks=kill).fit(rows, "y")
        assert len(killed) == 2
        assert there.boosting_ is not None
        there.callbacks = None
        assert there.fingerprint() == here.fingerprint()


@pytest.mark.slow
def test_a_partition_with_other_values_when_computed_again_ends_the_fit(tmp_path):
    import dask.dataframe as dd
    from dask import delayed

    path = tmp_path / "factor.txt"
    path.write_text("1.0")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        parts = [delayed(frame_of)(path, part) for part in range(3)]
        rows = dd.from_delayed(parts, meta=frame_of(path, 0).iloc[:0])

        def change_and_kill(progress):
            if progress["round"] == 3:
                path.write_text("2.0")
                pids = client.run(os.getpid)
                os.kill(pids[min(pids)], signal.SIGKILL)

        model = spinney.GradientBoostingRegressor(**FEW | {"n_estimators": 8}, callbacks=change_and_kill)
        with pytest.raises(ValueError, match=r"have other values than before: a worker was lost"):
            model.fit(rows, "y")


def test_rows_with_another_fingerprint_are_refused():
    table = spinney._data.read_table({"x": np.arange(6.0)})
    schema = spinney._data.Schema.learn(table)
    block = BlockActor.of_table(schema.encode(table, unseen="missing", estimator="Boosting"))
    known = block.row_fingerprint(10)
    block.check_rows(10, known)
    with pytest.raises(ValueError, match="The rows 10 to 15 have other values than before"):
        block.check_rows(10, known + 1)
