"""Forests and trees of Dask collections: trees are distributed, and the model is the same."""

import os
import signal

import numpy as np
import pytest
import spinney
from dask_rows import make_frame, partitioned
from spinney._estimator.parallel import Progress

distributed = pytest.importorskip("distributed")
pytest.importorskip("dask.dataframe")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Dask and what it stands on
    pytest.mark.timeout(300),
]


def columns(frame):
    return frame.drop(columns="y")


def test_a_forest_is_the_same(client, capsys):
    frame = make_frame(1500)
    rows = partitioned(frame, [10, 10, 700])
    options = {"n_estimators": 9, "max_leaf_nodes": 20, "random_state": 3, "oob_score": True}
    here = spinney.RandomForestRegressor(**options).fit(columns(frame), frame["y"])
    there = spinney.RandomForestRegressor(**options, verbose=1).fit(columns(rows), rows["y"])
    assert there.fingerprint() == here.fingerprint()
    assert there.oob_score_ == here.oob_score_
    assert there.get_params()["verbose"] == 1
    printed = capsys.readouterr().err
    assert "trees are distributed: each of 2 workers has all 1,500 rows" in printed
    assert "9 of 9 trees" in printed
    assert np.array_equal(there.predict(columns(rows)).compute(), here.predict(columns(frame)))
    more = there.set_params(warm_start=True, n_estimators=12).fit(rows, "y")
    assert more.fingerprint() == spinney.RandomForestRegressor(**options | {"n_estimators": 12}).fit(
        columns(frame), frame["y"]
    ).fingerprint()  # fmt: skip


def test_a_tree_is_the_same(client):
    frame = make_frame(1500)
    rows = partitioned(frame, [700])
    for options in ({"max_leaf_nodes": 9}, {"max_bins": 64, "max_depth": 4}):
        here = spinney.DecisionTreeRegressor(**options).fit(columns(frame), frame["y"])
        there = spinney.DecisionTreeRegressor(**options).fit(rows, "y")
        assert there.fingerprint() == here.fingerprint()
        assert np.array_equal(there.predict(columns(rows)).compute(), here.predict(columns(frame)))


def test_errors_are_those_of_a_fit_here(client):
    rows = partitioned(make_frame(300), [100])
    with pytest.raises(ValueError, match=r"y='no' names no column of X, which has "):
        spinney.RandomForestRegressor(3).fit(rows, "no")
    with pytest.raises(ValueError, match="max_samples requires bootstrap=True"):
        spinney.RandomForestRegressor(3, bootstrap=False, max_samples=0.5).fit(rows, "y")
    with pytest.raises(ValueError, match="n_estimators"):
        spinney.RandomForestRegressor(-1).fit(rows, "y")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["RandomForest", "ExtraTrees"])
def test_classes_are_the_same(client, kind):
    frame = make_frame(3000, seed=2)
    labels = np.where(frame["y"] > 3, "high", np.where(frame["y"] > 0, "middle", "low"))
    labels[:2000] = np.where(labels[:2000] == "high", "low", labels[:2000])  # a class that some partitions lack
    frame["y"] = labels
    frame["w"] = np.random.RandomState(0).randint(0, 4, len(frame))
    rows = partitioned(frame, [10, 10, 700])
    X = frame.drop(columns=["y", "w"])
    estimator = getattr(spinney, f"{kind}Classifier")
    for options in ({"n_estimators": 60}, {"n_estimators": "auto", "bootstrap": True}, {"n_estimators": 7}):
        options = {"max_leaf_nodes": 8, "random_state": 0} | options
        here = estimator(**options).fit(X, frame["y"], sample_weight=frame["w"])
        there = estimator(**options).fit(rows, "y", sample_weight="w")
        assert there.fingerprint() == here.fingerprint()
        assert there.shrinkage_ == here.shrinkage_
    shares = there.predict_proba(rows.drop(columns=["y", "w"]))
    assert np.array_equal(shares.compute(), here.predict_proba(X))
    state = np.random.RandomState(5)
    there = estimator(5, random_state=state).fit(rows.drop(columns=["y", "w"]), rows["y"])
    assert there.fingerprint() == estimator(5, random_state=np.random.RandomState(5)).fit(X, frame["y"]).fingerprint()
    estimator(5).fit(rows.drop(columns=["y", "w"]), rows["y"])  # draws that nobody has fixed are the same everywhere


@pytest.mark.slow
def test_an_array_is_the_same(client):
    import dask.array as da

    X = np.random.RandomState(0).standard_normal((900, 4))
    y = X[:, 0] - X[:, 1] ** 2
    there = spinney.ExtraTreesRegressor(5, random_state=0).fit(da.from_array(X, chunks=(400, 2)), da.from_array(y))
    assert there.fingerprint() == spinney.ExtraTreesRegressor(5, random_state=0).fit(X, y).fingerprint()


@pytest.mark.slow
def test_a_killed_worker(monkeypatch):
    frame = make_frame(20_000)
    rows = partitioned(frame, [8000])
    options = {"n_estimators": 40, "random_state": 1, "max_bins": 64}
    here = spinney.RandomForestRegressor(**options).fit(columns(frame), frame["y"])
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="1GB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids, report, reported = client.run(os.getpid), Progress.report, []

        def report_and_kill(self, n_done):
            if not reported:
                os.kill(pids[min(pids)], signal.SIGKILL)  # it leads
            reported.append(n_done)
            report(self, n_done)

        monkeypatch.setattr(Progress, "report", report_and_kill)
        there = spinney.RandomForestRegressor(**options).fit(rows, "y")
        assert 0 < reported[0] < 40  # there were some, and there was more to do
        assert reported == sorted(reported)  # none of which was grown again
        assert there.fingerprint() == here.fingerprint()
