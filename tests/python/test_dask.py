"""Dask collections: fits on the workers of a cluster, and predictions when they are asked for."""

import itertools
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import spinney

distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Dask and what it stands on
    pytest.mark.timeout(120),
]

N = 3 * 4096 + 300
FEW = {"n_estimators": 4, "max_leaf_nodes": 8}


def make_frame(n=N, seed=0):
    random = np.random.RandomState(seed)
    frame = pd.DataFrame({"x": random.standard_normal(n), "z": random.standard_normal(n).astype(np.float32)})
    frame["word"] = random.choice(list("abcde"), n)
    frame.loc[n // 2 :, "word"] = random.choice(list("cdefg"), n - n // 2)  # other categories in later partitions
    frame.loc[::7, "z"] = np.nan
    frame["y"] = frame["x"] * 2 + (frame["word"] == "c") + random.standard_normal(n)
    return frame


def partitioned(frame, ends):
    """Make a collection of partitions that end at these rows; some may be empty."""
    from dask import delayed

    cuts = [0, *ends, len(frame)]
    parts = [delayed(frame.iloc[a:b]) for a, b in itertools.pairwise(cuts)]
    return dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)


@pytest.fixture
def client():
    with (
        distributed.LocalCluster(n_workers=2, processes=False, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_frame_is_learned_where_it_lies(client):
    frame = make_frame()
    rows = partitioned(frame, [10, 10, 7000])
    here = spinney.GradientBoostingRegressor(**FEW).fit(frame.drop(columns="y"), frame["y"])
    there = spinney.GradientBoostingRegressor(**FEW).fit(rows.drop(columns="y"), rows["y"])
    assert there.fingerprint() == here.fingerprint()
    assert spinney.GradientBoostingRegressor(**FEW).fit(rows, "y").fingerprint() == here.fingerprint()
    lazy = there.predict(rows.drop(columns="y"))
    assert np.array_equal(lazy.compute(), here.predict(frame.drop(columns="y")))
    with pytest.raises(ValueError, match="n_estimators='auto' does not go with rows on several workers yet"):
        spinney.GradientBoostingRegressor().fit(rows, "y")
    with pytest.raises(ValueError, match="loss='absolute_error' does not go"):
        spinney.GradientBoostingRegressor(**FEW, loss="absolute_error").fit(rows, "y")
    for given in ({"sampling": "goss"}, {"drop_rate": 0.1}, {"hierarchical_shrinkage": 2.0}):
        with pytest.raises(ValueError, match=f"{next(iter(given))}=.* does not go with rows on several workers"):
            spinney.GradientBoostingRegressor(**FEW, **given).fit(rows, "y")


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
def test_an_array_is_learned_where_it_lies(client):
    import dask.array as da

    X = np.random.RandomState(0).standard_normal((N, 4))
    y = X[:, 0] - X[:, 1] ** 2
    there = spinney.GradientBoostingRegressor(**FEW).fit(da.from_array(X, chunks=(5000, 2)), da.from_array(y))
    here = spinney.GradientBoostingRegressor(**FEW).fit(X, y)
    assert there.fingerprint() == here.fingerprint()
    assert np.array_equal(there.predict(da.from_array(X, chunks=(3000, 4))).compute(), here.predict(X))


def fit_on_two_workers(path, callback=None):
    frame = make_frame()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        model = spinney.GradientBoostingRegressor(**FEW | {"n_estimators": 8}, callbacks=callback)
        return model.fit(partitioned(frame, [5000, 9000]), "y", checkpoint=path)


if __name__ == "__main__":  # a client that is killed
    fit_on_two_workers(sys.argv[1], lambda done: done["round"] == 5 and os.kill(os.getpid(), signal.SIGKILL))


@pytest.mark.slow
def test_a_killed_client_is_followed_by_another(tmp_path):
    path, frame = tmp_path / "rounds", make_frame()
    done = subprocess.run([sys.executable, __file__, str(path)], check=False, capture_output=True, timeout=100)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert path.exists()
    rounds = []
    there = fit_on_two_workers(path, lambda done: rounds.append(done["round"]))
    assert 1 < rounds[0] <= 5
    assert rounds[-1] == 8
    assert not path.exists()
    here = spinney.GradientBoostingRegressor(**FEW | {"n_estimators": 8}).fit(frame.drop(columns="y"), frame["y"])
    assert there.fingerprint() == here.fingerprint()


@pytest.mark.slow
def test_a_killed_worker_is_replaced():
    frame = make_frame()
    options = FEW | {"n_estimators": 12, "subsample": 0.8, "random_state": 1}
    here = spinney.GradientBoostingRegressor(**options).fit(frame.drop(columns="y"), frame["y"])
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        killed = []

        def kill(progress):
            if progress["round"] in (3, 7):
                pids = client.run(os.getpid)
                victim = sorted(pids)[0]
                killed.append(victim)
                os.kill(pids[victim], signal.SIGKILL)

        rows = partitioned(frame, [5000, 9000])
        there = spinney.GradientBoostingRegressor(**options, callbacks=kill).fit(rows, "y")
        assert len(killed) == 2
        assert there.boosting_ is not None
        there.callbacks = None
        assert there.fingerprint() == here.fingerprint()
