"""Properties of all boosted models: falling losses, weights as row counts, constraints, reproducibility."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import spinney
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

OF_CLASSES = ["log_loss", "ordinal", "exponential", "focal", "smooth_hinge"]
LOSSES = ["squared_error", "absolute_error", "log_cosh", "quantile", "poisson", "gamma", "tweedie", *OF_CLASSES]
seeds = st.integers(0, 2**31 - 1)


def make_rows(seed, n=60, n_columns=3, missing=False):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, n_columns)), 1)
    y = X[:, 0] + X[:, 1] * X[:, -1] + rng.normal(size=n)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, y


def make_model(loss, **parameters):
    given = {"n_estimators": 8, "min_samples_leaf": 3, "max_leaf_nodes": 5, "random_state": 0} | parameters
    if loss in OF_CLASSES:
        return spinney.GradientBoostingClassifier(loss, **given)
    return spinney.GradientBoostingRegressor(loss, **given)


def as_target(loss, y, wild=False):
    """Classes, or values; wild: a rare class, or values that a few rows dominate."""
    if loss in OF_CLASSES:
        return (y > np.quantile(y, 0.93 if wild else 0.5)).astype(int)
    return np.exp(np.clip(3 * y if wild else y, -15, 15)) if loss in ("poisson", "gamma", "tweedie") else y


@settings(max_examples=60, deadline=None)
@given(
    seed=seeds,
    loss=st.sampled_from(LOSSES),
    rate=st.floats(0.05, 1.0),
    growth=st.sampled_from(["leaf", "depth"]),
    wild=st.booleans(),
)
def test_the_training_loss_never_rises(seed, loss, rate, growth, wild):
    X, y = make_rows(seed, missing=True)
    y = as_target(loss, y, wild)
    curve = (
        make_model(loss, learning_rate=rate, growth=growth, regularization={"min_hessian_leaf": 0.0})
        .fit(X, y)
        .train_score_
    )
    first = make_model(loss, n_estimators=1, learning_rate=1e-9).fit(X, y).train_score_
    curve = np.append(first, curve)
    assert (np.diff(curve) <= 1e-6 * (1 + np.abs(curve[:-1]))).all()


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie", "log_loss"])
def test_steps_do_not_run_away(loss, rate):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    odd = (X[:, 0] > 2.2) & (X[:, 1] > 0)
    y = odd.astype(int) if loss == "log_loss" else np.where(odd, 500.0, 1e-3 * rng.integers(1, 9, 2000))
    curve = make_model(loss, learning_rate=rate, n_estimators=30, min_samples_leaf=20).fit(X, y).train_score_
    assert (np.diff(curve) <= 1e-9 * (1 + np.abs(curve[:-1]))).all()
    assert curve[-1] < curve[0]
    assert abs(curve[-1]) < 100


def test_a_rare_class_does_not_ruin_the_others():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 3))
    y = (X[:, 0] > 0).astype(int)
    y[:2] = 2
    model = spinney.GradientBoostingClassifier(n_estimators=20, learning_rate=0.5).fit(X, y)
    assert (np.diff(model.train_score_) < 0).all()
    fresh = rng.normal(size=(1000, 3))
    assert np.mean(model.predict(fresh) == (fresh[:, 0] > 0)) > 0.99


@settings(max_examples=30, deadline=None)
@given(seed=seeds, loss=st.sampled_from(LOSSES))
@example(seed=477422, loss="absolute_error")  # cuts that are equally good: rounding must not choose between them
def test_a_weight_of_two_is_a_row_twice(seed, loss):
    X, y = make_rows(seed, n=40)
    y = as_target(loss, y)
    times = np.random.default_rng(seed).integers(1, 3, size=len(y))
    rules = {
        "min_samples_leaf": 1,
        "regularization": {"min_hessian_leaf": 1e-6},
        "n_estimators": 3,
        "max_leaf_nodes": 4,
    }
    weighted = make_model(loss, **rules).fit(X, y, times)
    doubled = make_model(loss, **rules).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.train_score_ == pytest.approx(doubled.train_score_, rel=1e-4, abs=1e-5)


def scores(model, X):
    return model.boosting_.scores(model._columns(X), 1)


def test_a_light_row_may_be_a_leaf():
    X, y = np.arange(6.0)[:, np.newaxis], np.array([9.0, 0, 0, 0, 0, 0])
    model = make_model("squared_error", n_estimators=1, min_samples_leaf=1, max_leaf_nodes=2, learning_rate=1.0)
    model.fit(X, y, [0.5, 2, 2, 2, 2, 2])
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, loss=st.sampled_from(LOSSES))
def test_monotone_maps_of_a_column_change_nothing(seed, loss):
    X, y = make_rows(seed, missing=True)
    y = as_target(loss, y)
    mapped = X.copy()
    mapped[:, 0] = np.exp(X[:, 0])
    mapped[:, 1] = X[:, 1] ** 3
    one, other = make_model(loss).fit(X, y), make_model(loss).fit(mapped, y)
    assert scores(one, X).tobytes() == scores(other, mapped).tobytes()


@settings(max_examples=40, deadline=None)
@given(seed=seeds, loss=st.sampled_from(["squared_error", "poisson", "log_loss", "absolute_error"]))
def test_monotone_constraints_hold(seed, loss):
    X, y = make_rows(seed, n=120, missing=True)
    rules = {"n_estimators": 10, "max_leaf_nodes": 12, "learning_rate": 0.7}
    model = make_model(loss, monotonic_cst=[1, -1, 0], **rules).fit(X, as_target(loss, y))
    rng = np.random.default_rng(seed)
    probes = rng.normal(size=(100, 3)) * 2
    for column, sign in ((0, 1), (1, -1)):
        low, high = probes.copy(), probes.copy()
        high[:, column] += np.abs(rng.normal(size=100)) * 3
        assert (sign * (scores(model, high) - scores(model, low)) >= -1e-9).all()


@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_interaction_constraints_hold(seed):
    X, y = make_rows(seed, n=150, n_columns=4)
    model = make_model("squared_error", interaction_cst=[{0, 1}, {2, 3}], max_leaf_nodes=10).fit(X, y)
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(50, 4)), rng.normal(size=(50, 4))
    mixed, mixed_back = np.column_stack([a[:, :2], b[:, 2:]]), np.column_stack([b[:, :2], a[:, 2:]])
    # additive in the two groups: swapping one group's values swaps what it adds
    np.testing.assert_allclose(
        scores(model, a) + scores(model, b), scores(model, mixed) + scores(model, mixed_back), rtol=1e-9, atol=1e-9
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=seeds,
    loss=st.sampled_from(["squared_error", "poisson", "log_loss"]),
    fewest=st.integers(1, 15),
    depth=st.integers(1, 4),
    leaves=st.integers(2, 9),
    growth=st.sampled_from(["leaf", "depth"]),
)
def test_the_limits_of_a_tree_hold(seed, loss, fewest, depth, leaves, growth):
    X, y = make_rows(seed, n=90, missing=True)
    weight = np.random.default_rng(seed).exponential(size=90)
    limits = {"min_samples_leaf": fewest, "max_depth": depth, "max_leaf_nodes": leaves, "growth": growth}
    model = make_model(loss, **limits).fit(X, as_target(loss, y), weight)
    for tree in model.boosting_.trees():
        is_leaf = tree.feature < 0
        assert np.count_nonzero(is_leaf) <= leaves
        assert tree.n_rows[is_leaf].min() >= fewest or len(is_leaf) == 1
        assert spinney._model.tree.FittedTree(tree, None, 1).max_depth <= depth


# ---- reproducibility ---------------------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(seed=seeds, loss=st.sampled_from(LOSSES), subsample=st.sampled_from([1.0, 0.6]))
def test_the_number_of_threads_changes_nothing(seed, loss, subsample):
    X, y = make_rows(seed, n=300, missing=True)
    y = as_target(loss, y)
    rules = {"subsample": subsample, "feature_sampling": {"per_level": 0.7}, "max_leaf_nodes": 20}
    found = {make_model(loss, n_jobs=n, **rules).fit(X, y).fingerprint() for n in (1, 2, 7)}
    assert len(found) == 1


def test_threads_and_chunks_change_nothing_on_a_larger_table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70_000, 3)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + rng.normal(size=70_000)
    prints, losses = set(), set()
    for n_jobs in (1, 2, 5):
        model = spinney.GradientBoostingRegressor(n_estimators=2, n_jobs=n_jobs, random_state=0).fit(X, y)
        prints.add(model.fingerprint())
        losses.add(model.train_score_.tobytes())
    assert len(prints) == len(losses) == 1


def make_frame():
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "a": rng.normal(size=200).round(2),
            "b": rng.integers(0, 9, size=200),
            "c": rng.choice(["x", "y", "z", "longer"], size=200),
        }
    )


def test_the_kind_of_table_changes_nothing():
    frame = make_frame()
    y = frame["a"] * 2 + (frame["c"] == "y") + frame["b"] / 3
    tables = [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)]
    models = [spinney.GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, y) for X in tables]
    assert len({m.fingerprint() for m in models}) == 1
    numbers = frame[["a", "b"]]
    plain = [
        spinney.GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, y)
        for X in (numbers, numbers.to_numpy())
    ]
    assert plain[0].fingerprint() == plain[1].fingerprint()


def test_sparse_tables_are_as_dense_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)) * (rng.random((200, 6)) < 0.3)
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=200)
    dense = spinney.GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, y)
    for kind in (sparse.csr_array, sparse.csc_array):
        other = spinney.GradientBoostingRegressor(n_estimators=5, random_state=0).fit(kind(X), y)
        assert other.fingerprint() == dense.fingerprint()
        np.testing.assert_array_equal(other.predict(kind(X)), dense.predict(X))


def prints_of_losses():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0]) * 2 + np.nan_to_num(X[:, 1]) ** 2 + rng.normal(size=3000)
    prints = []
    for loss in ("squared_error", "huber", "poisson", "gamma", "tweedie"):
        target = y if loss in ("squared_error", "huber") else np.exp(y / 4)
        model = spinney.GradientBoostingRegressor(loss, n_estimators=4, subsample=0.8, random_state=0).fit(X, target)
        prints.append(model.fingerprint())
        prints.append(model.boosting_.scores(model._columns(X), 1).tobytes().hex()[:4000])
    for codes in (y > 1, np.digitize(y, [0, 1, 2])):
        model = spinney.GradientBoostingClassifier(n_estimators=4, max_bins=300, random_state=0).fit(X, codes)
        prints += [model.fingerprint(), model.train_score_.tobytes().hex()]
    return prints


@pytest.mark.slow
@pytest.mark.parametrize("lower", ["base", "avx2"])
def test_every_instruction_set_gives_identical_models(lower):
    best = prints_of_losses()  # by the best set that the processor has
    assert len(set(best)) == 14
    code = "import json\nimport numpy as np, spinney\n" + inspect.getsource(prints_of_losses)
    code += "print(json.dumps(prints_of_losses()))"
    environment = os.environ | {"SPINNEY_ISA": lower, "PYTHONPATH": str(Path(spinney.__file__).parent.parent)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == best


def test_monotone_columns_leave_steps_tempered():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = np.exp(3 * X[:, 0] + rng.normal(size=1000))
    free, bound = (
        spinney.GradientBoostingRegressor("gamma", n_estimators=40, monotonic_cst=c).fit(X, y)
        for c in (None, [1, 0, 0])
    )
    assert (np.diff(bound.train_score_) < 0).all()
    assert bound.train_score_[-1] < free.train_score_[-1] + 0.1


@pytest.mark.parametrize("loss", ["absolute_error", "quantile", "huber"])
def test_monotone_columns_do_not_ask_for_a_scale_of_y(loss):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    grid = np.c_[np.linspace(-3, 3, 200), np.zeros(200)]
    predicted = {}
    for scale in (2.0**-10, 1.0, 2.0**10):
        model = spinney.GradientBoostingRegressor(loss, n_estimators=30, monotonic_cst=[1, 0]).fit(X, scale * y)
        predicted[scale] = model.predict(X) / scale
        assert (np.diff(model.predict(grid)) >= 0).all()
    np.testing.assert_allclose(predicted[2.0**-10], predicted[1.0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(predicted[2.0**10], predicted[1.0], rtol=1e-9, atol=1e-9)
