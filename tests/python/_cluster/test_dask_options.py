"""Options of fits on Dask: rows are partitioned if results are bit-identical, else one worker has all rows."""

import asyncio
import gc
import time

import numpy as np
import pytest
import spinney
from dask_rows import FEW, make_frame, partitioned
from spinney._boosting.distributed import fit as boosting_fit
from spinney._boosting.distributed.booster import BlockActor
from spinney._cluster import single_worker
from spinney._cluster.actor import RemoteActor
from spinney._cluster.dask import gather

distributed = pytest.importorskip("distributed")
pytest.importorskip("dask.dataframe")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Dask and what it stands on
    pytest.mark.timeout(300),
]


def columns(frame):
    return frame.drop(columns="y")


def test_one_worker_has_all_rows_where_it_must(client, capsys):
    frame = make_frame(600)
    rows, few = partitioned(frame, [10, 10, 400]), FEW | {"n_estimators": 2}
    seen = []
    for options in ({"growth": "symmetric"}, {"loss": "quantile", "quantile": [0.1, 0.9], "verbose": 1}):
        here = spinney.GradientBoostingRegressor(**few | options).fit(columns(frame), frame["y"])
        there = spinney.GradientBoostingRegressor(**few | options, callbacks=seen.append).fit(rows, "y")
        assert there.get_params()["callbacks"] == seen.append
        there.callbacks = None
        assert there.fingerprint() == here.fingerprint()
    assert [progress["round"] for progress in seen] == [1, 2, 1, 2]
    printed = capsys.readouterr().err
    assert "one worker has all 600 rows: loss='quantile' needs all rows of a leaf" in printed
    with pytest.raises(ValueError, match="checkpoint is for fits whose rows are partitioned, and here"):
        there.fit(rows, "y", checkpoint="no")


def test_an_error_of_a_worker_is_no_loss_of_it(client, monkeypatch):
    def full(self, request):
        raise OSError("no space left on the disk")

    monkeypatch.setattr(BlockActor, "answer", full)
    with pytest.raises(OSError, match="no space left"):
        spinney.GradientBoostingRegressor(**FEW).fit(partitioned(make_frame(300), [100]), "y")


def _fail():
    raise TimeoutError("the store of the partitions does not answer")


def test_errors_of_partitions(client):
    with pytest.raises(TimeoutError, match="the store of the partitions"):
        gather(client, [client.submit(_fail, pure=False)])


def test_a_client_that_must_not_be_waited_for():
    async def fit():
        async with distributed.Client(asynchronous=True, processes=False, n_workers=1, dashboard_address=None):
            rows = partitioned(make_frame(300), [100])
            with pytest.raises(TypeError, match="Fit in another thread"):
                spinney.GradientBoostingRegressor(**FEW).fit(rows, "y")
            return await asyncio.to_thread(spinney.GradientBoostingRegressor(**FEW).fit, rows, "y")

    assert asyncio.run(fit()).n_features_in_ > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sampling": "goss"},
        {"sampling": "gradient"},
        {"dart": 0.3, "n_estimators": 6},
        {"growth": {"n_parallel_trees": 2}},
        {"regularization": {"hierarchical_shrinkage": 2.0}},
        {"linear_leaves": True},
        {"loss": "absolute_error"},
        {"loss": "log_cosh"},
        {"loss": "normal"},
        {"loss": "student_t"},
        {"growth": {"forced_splits": {"feature": "x", "threshold": 0.5}}},
        {"n_estimators": "auto", "n_iter_no_change": 2, "max_leaf_nodes": 4},
        {"n_estimators": "auto", "n_iter_no_change": 2, "max_leaf_nodes": 4, "loss": "normal"},
        {"n_estimators": "auto", "n_iter_no_change": 2, "max_leaf_nodes": 4, "loss": "student_t"},
        {"init": spinney.DecisionTreeRegressor(max_depth=2)},
    ],
)
def test_every_boosting_option(client, options):
    frame = make_frame(700)
    given = FEW | {"random_state": 0} | options
    here = spinney.GradientBoostingRegressor(**given).fit(columns(frame), frame["y"])
    there = spinney.GradientBoostingRegressor(**given).fit(partitioned(frame, [300]), "y")
    assert np.array_equal(there.predict(columns(frame)), here.predict(columns(frame)))
    if "init" not in options:
        assert there.fingerprint() == here.fingerprint()


@pytest.mark.slow
def test_rows_that_are_held_out_and_what_is_beside_them(client):
    frame, later = make_frame(), make_frame(9000, seed=1)
    frame["g"], later["g"] = np.arange(len(frame)) % 50, 0
    for data in (frame, later):
        data["o"] = np.cos(data["x"])
    names = ["y", "g", "o"]
    X, X_later = frame.drop(columns=names), later.drop(columns=names)
    rows, rows_later = partitioned(frame, [5000]), partitioned(later, [100, 100])
    few = FEW | {"random_state": 0}
    here = spinney.GradientBoostingRegressor(**few, early_stopping=True).fit(
        X, frame["y"], offset=frame["o"], X_val=X_later, y_val=later["y"], offset_val=later["o"]
    )
    there = spinney.GradientBoostingRegressor(**few, early_stopping=True)
    there.fit(rows.drop(columns="g"), "y", offset="o", X_val=rows_later.drop(columns="g"), y_val="y", offset_val="o")
    assert there.fingerprint() == here.fingerprint()
    assert there.validation_score_.tolist() == here.validation_score_.tolist()
    here = spinney.GradientBoostingRegressor(**few, early_stopping=True, scoring="r2").fit(
        X, frame["y"], groups=frame["g"]
    )
    there = spinney.GradientBoostingRegressor(**few, early_stopping=True, scoring="r2")
    there.fit(rows.drop(columns="o"), "y", groups="g")
    assert there.validation_score_.tolist() == here.validation_score_.tolist()
    two = ["y", "o"]
    here = spinney.GradientBoostingRegressor(**few).fit(X, frame[two])
    there = spinney.GradientBoostingRegressor(**few).fit(rows[list(X)], rows[two])
    assert there.fingerprint() == here.fingerprint()


@pytest.mark.slow
def test_lists_and_times(client):
    frame = make_frame(600)
    X, rows = columns(frame), partitioned(frame.assign(g=np.arange(600) % 20), [250])
    grades, times = np.digitize(frame["y"], [-1, 1]), np.exp(frame["y"] / 4) * np.where(np.arange(600) % 3, 1, -1)
    here = spinney.GradientBoostingRanker(**FEW).fit(X, grades, groups=np.arange(600) % 20)
    there = spinney.GradientBoostingRanker(**FEW).fit(rows.drop(columns="y"), grades, groups="g")
    assert there.fingerprint() == here.fingerprint()
    here = spinney.GradientBoostingSurvival(**FEW).fit(X, times)
    there = spinney.GradientBoostingSurvival(**FEW).fit(rows.drop(columns=["y", "g"]), times)
    assert there.fingerprint() == here.fingerprint()
    assert np.array_equal(there.predict(rows.drop(columns=["y", "g"])).compute(), here.predict(X))


@pytest.mark.slow
def test_class_weights(client):
    frame = make_frame()
    frame["y"] = np.digitize(frame["y"], [-1, 2])
    rows = partitioned(frame, [5000])
    cost = np.array([[0, 1, 5], [1, 0, 1], [9, 1, 0]])
    for options in ({"class_weight": {0: 3.0}}, {"cost_matrix": cost}):
        here = spinney.GradientBoostingClassifier(**FEW, **options).fit(columns(frame), frame["y"])
        there = spinney.GradientBoostingClassifier(**FEW, **options).fit(rows, "y")
        assert there.fingerprint() == here.fingerprint()
        assert np.array_equal(there.predict(columns(rows)).compute(), here.predict(columns(frame)))


@pytest.mark.slow
def test_a_table_that_fits_no_worker_lies_in_files(client, monkeypatch, capsys):
    frame = make_frame(5000)
    rows = partitioned(frame, [10, 10, 700, 2000, 3000])
    monkeypatch.setattr(single_worker.WholeTable, "_least_limit", 2e9)
    monkeypatch.setattr(single_worker, "_MEMORY_FACTOR", 1e6)
    for model in (
        spinney.RandomForestRegressor(6, max_bins=64, random_state=0, oob_score=True, verbose=1),
        spinney.ExtraTreesRegressor(6, random_state=0),
        spinney.DecisionTreeRegressor(max_bins=64, max_depth=5),
        spinney.GradientBoostingRegressor(**FEW, growth="symmetric"),
    ):
        here = type(model)(**model.get_params() | ({"verbose": 0} if hasattr(model, "verbose") else {}))
        here.fit(columns(frame), frame["y"])
        assert model.fit(rows, "y").fingerprint() == here.fingerprint()
    assert "all 5,000 rows, in files, as they do not fit into its memory" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"Set max_bins=255, which spools the rows to files of each worker"):
        spinney.RandomForestRegressor(3).fit(rows, "y")
    monkeypatch.setattr(single_worker, "_FILE_BYTES", 1e12)
    with pytest.raises(ValueError, match=r"even if they are spooled to files; the smallest has 2 GB"):
        spinney.RandomForestRegressor(3, max_bins=255).fit(rows, "y")


def test_nothing_is_collected_in_silence(client):
    frame = make_frame(300)
    X, rows = columns(frame), partitioned(frame, [100, 100])
    labels = np.where(frame["y"] > 0, "up", "down")
    for model in (spinney.GradientBoostingClassifier(**FEW), spinney.ExtraTreesClassifier(2, max_depth=2)):
        model.fit(X, labels)
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            if not hasattr(model, method):
                continue
            predicted = getattr(model, method)(columns(rows))
            assert hasattr(predicted, "dask")
            assert np.array_equal(predicted.compute(), getattr(model, method)(X))
    two = spinney.RandomForestRegressor(2, max_depth=2).fit(X, frame[["y", "x"]])
    assert np.array_equal(two.predict(columns(rows)).compute(), two.predict(X))
    both = spinney.GradientBoostingClassifier(**FEW).fit(X, np.column_stack([labels, labels]))
    assert np.array_equal(both.predict_proba(columns(rows))[1], both.predict_proba(X)[1])
    for fit in (
        lambda: spinney.BaggingRegressor().fit(columns(rows), frame["y"]),
        lambda: spinney.study(rows, "y"),
        lambda: spinney.compare(["tree"], columns(rows), frame["y"]),
    ):
        with pytest.raises(TypeError, match=r"X is a Dask collection; call compute\(\) on it first"):
            fit()


def actors_of(dask_worker):
    return list(dask_worker.state.actors), list(dask_worker.data)


def test_a_fit_that_fails_leaves_nothing_behind(client, monkeypatch):
    at_start, wait = [], RemoteActor.wait

    def interrupt(self):
        wait(self)
        at_start.append(client.run(actors_of))
        raise KeyboardInterrupt

    monkeypatch.setattr(RemoteActor, "wait", interrupt)
    rows = partitioned(make_frame(300), [100])
    for model in (
        spinney.RandomForestRegressor(3),
        spinney.DecisionTreeRegressor(),
        spinney.GradientBoostingRegressor(**FEW),
    ):
        with pytest.raises(KeyboardInterrupt):
            model.fit(rows, "y")
    assert all(any(actors for actors, _ in found.values()) for found in at_start)
    assert len(at_start) == 3
    gc.collect()
    began = time.monotonic()
    while any(any(left) for left in client.run(actors_of).values()) and time.monotonic() - began < 60:
        time.sleep(0.05)
    assert not any(any(left) for left in client.run(actors_of).values())


@pytest.mark.slow
def test_sparse_rows(client):
    import dask
    import dask.array as da
    import scipy.sparse

    X = scipy.sparse.random(9000, 5, density=0.3, format="csr", random_state=0)
    y = X[:, [0]].toarray().ravel() + np.arange(9000) % 3
    parts = [
        da.from_delayed(dask.delayed(X[a:b]), (b - a, 5), meta=X[:0])
        for a, b in ((0, 5000), (5000, 5001), (5001, 9000))
    ]
    rows = da.concatenate(parts)
    for model in (spinney.GradientBoostingRegressor(**FEW), spinney.RandomForestRegressor(4, random_state=0)):
        there = type(model)(**model.get_params()).fit(rows, y)
        assert there.fingerprint() == model.fit(X, y).fingerprint()


@pytest.mark.slow
def test_a_lost_worker_takes_no_booster_with_it(monkeypatch):
    frame, later = make_frame(21_000), make_frame(9000, seed=1)
    frame["word"] = frame["word"].where(frame["x"] > 0)
    few = {"learning_rate": 0.5, "max_leaf_nodes": 4, "n_iter_no_change": 2, "tol": 0.01, "random_state": 0}
    held = {"n_estimators": 6, "max_leaf_nodes": 4, "early_stopping": True}
    alone = {"n_estimators": 6, "max_leaf_nodes": 4, "growth": "symmetric"}
    monkeypatch.setattr(boosting_fit, "VERY_LARGE_TABLE", 0)  # as if they were many
    for options in (few, held, alone):
        more = {"X_val": columns(later), "y_val": later["y"]} if options is held else {}
        here = spinney.GradientBoostingRegressor(**options).fit(columns(frame), frame["y"], **more)
        with (
            distributed.LocalCluster(
                n_workers=2, processes=False, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            closed = []

            def close(progress, cluster=cluster, client=client, closed=closed):
                if progress["round"] == 3 and not closed:
                    closed.append(max(client.nthreads()))
                    cluster.sync(next(w for w in cluster.workers.values() if w.address == closed[0]).close)

            rows, there = (
                partitioned(frame, [5000, 9000]),
                spinney.GradientBoostingRegressor(**options, callbacks=close),
            )
            if options is held:
                more = {"X_val": partitioned(later, [4000]), "y_val": "y"}
            there.fit(rows, "y", **more)
        assert closed
        there.callbacks = None
        assert there.fingerprint() == here.fingerprint()
        assert there.train_score_.tolist() == here.train_score_.tolist()


def test_dask_distinguishes_models_with_the_same_parameters():
    from dask.base import tokenize

    rows = np.arange(40.0).reshape(20, 2) % 7
    one, same, other = (
        spinney.GradientBoostingRegressor(n_estimators=2).fit(rows, target)
        for target in (rows[:, 0], rows[:, 0], rows[:, 1])
    )
    assert tokenize(one) == tokenize(same) != tokenize(other)
