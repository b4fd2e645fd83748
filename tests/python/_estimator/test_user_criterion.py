"""Criteria of the user's own: objects, losses, compiled functions."""

import contextlib
import ctypes
import gc
import io
import os
import pickle
import signal
import subprocess
import threading
import time
import weakref

import numpy as np
import pandas as pd
import pytest
import spinney
from scipy import LowLevelCallable
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from spinney import (
    CompiledCriterion,
    Criterion,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeRegressor,
    LossCriterion,
)
from sweep import covering

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

double evaluate(const double *y, const double *w, intptr_t n, double *value, void *user_data) {
  double weight = 0, sum = 0, risk = 0;
  for (intptr_t i = 0; i < n; ++i) { weight += w[i]; sum += w[i] * y[i]; }
  const double mean = sum / weight;
  for (intptr_t i = 0; i < n; ++i) risk += w[i] * ((y[i] - mean) * (y[i] - mean));
  value[0] = mean;
  return risk;
}
void split(const double *y, const double *w, intptr_t n, double *goodness, void *user_data) {
  double weight = 0, sum = 0, wl = 0, sl = 0;
  for (intptr_t i = 0; i < n; ++i) { weight += w[i]; sum += w[i] * y[i]; }
  for (intptr_t i = 0; i + 1 < n; ++i) {
    wl += w[i];
    sl += w[i] * y[i];
    const double wr = weight - wl, d = sl / wl - (sum - sl) / wr;
    goodness[i] = wl * wr / weight * (d * d);
  }
}
void no_split(const double *y, const double *w, intptr_t n, double *goodness, void *user_data) {
  for (intptr_t i = 0; i + 1 < n; ++i) goodness[i] = i % 2 ? NAN : -1.0;
}
double scaled(const double *y, const double *w, intptr_t n, double *value, void *user_data) {
  const double risk = evaluate(y, w, n, value, user_data);
  value[0] *= *(const double *)user_data;
  return risk;
}
double half_a_value(const double *y, const double *w, intptr_t n, double *value, void *user_data) {
  value[0] = 1;
  return 1;
}
double rates(const double *y, const double *w, intptr_t n, double *value, void *user_data) {
  double time = 0, events = 0;
  for (intptr_t i = 0; i < n; ++i) { time += w[i] * y[2 * i]; events += w[i] * y[2 * i + 1]; }
  value[0] = events / time;
  value[1] = events;
  double risk = 0;
  for (intptr_t i = 0; i < n; ++i) {
    const double expected = y[2 * i] * value[0], seen = y[2 * i + 1];
    risk += 2 * w[i] * ((seen > 0 ? seen * log(seen / expected) : 0) - (seen - expected));
  }
  return risk;
}
void short_integer(const double *y, const double *w, int n, double *goodness, void *user_data) {}
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("criterion")
    (folder / "criterion.c").write_text(C_SOURCE)
    command = [os.environ.get("CC", "cc"), "-O2", "-ffp-contract=off", "-shared", "-fPIC", "criterion.c", "-o", "c.so"]
    subprocess.run([*command, "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "c.so"))


@pytest.fixture(scope="session")
def compiled(library):
    return CompiledCriterion(
        CompiledCriterion.EVALUATE(("evaluate", library)), CompiledCriterion.SPLIT(("split", library))
    )


class Squares(Criterion):
    def evaluate(self, y, weight):
        mean = np.average(y, weights=weight)
        return mean, np.sum(weight * (y - mean) ** 2)


class FastSquares(Squares):
    def split(self, y, weight, x, is_category):
        if is_category:
            return self.split_in_order(y, weight, x)
        w, s = np.cumsum(weight), np.cumsum(weight * (y - y[0]))
        wl, sl, wr, sr = w[:-1], s[:-1], w[-1] - w[:-1], s[-1] - s[:-1]
        return wl * wr / w[-1] * (sl / wl - sr / wr) ** 2


class SequentialSquares(Criterion):
    """The arithmetic of the C functions, in the same order."""

    def evaluate(self, y, weight):
        mean = np.cumsum(weight * y)[-1] / np.cumsum(weight)[-1]
        return mean, np.cumsum(weight * ((y - mean) * (y - mean)))[-1]

    def split(self, y, weight, x, is_category):
        if is_category:
            return self.split_in_order(y, weight, x)
        w, s = np.cumsum(weight), np.cumsum(weight * y)
        wl, wr = w[:-1], w[-1] - w[:-1]
        d = s[:-1] / wl - (s[-1] - s[:-1]) / wr
        return wl * wr / w[-1] * (d * d)


class Ranges(Criterion):
    """A risk that no sums can give: the range of y."""

    def evaluate(self, y, weight):
        return (y.max() + y.min()) / 2, weight.sum() * (y.max() - y.min())


class Gini(Criterion):
    n_classes = 2

    def evaluate(self, y, weight):
        shares = np.bincount(y.astype(int), weights=weight, minlength=self.n_classes) / weight.sum()
        return shares, weight.sum() * (1 - np.sum(shares**2))


def squared(y, c):
    return (y - c) ** 2


def absolute(y, c):
    return np.abs(y - c)


def pinball(y, c):
    return np.where(y > c, 0.8 * (y - c), 0.2 * (c - y))


def asymmetric(y, c):
    return np.where(y > c, 5.0, 1.0) * (y - c) ** 2


def huber(y, c):
    d = np.abs(y - c)
    return np.where(d <= 0.5, d * d / 2, 0.5 * (d - 0.25))


def mixed_table(n, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.integers(0, 6, n).astype(float),
            "c": rng.choice(list("pqrstuv"), n),
            "d": rng.random(n).astype(np.float32),
        }
    )
    X.loc[rng.random(n) < 0.15, "a"] = np.nan
    X.loc[rng.random(n) < 0.1, "c"] = None
    y = X.c.isin(["p", "t"]) * 2.0 + X.a.fillna(1.5) + 0.3 * (X.b > 2) + rng.normal(size=n)
    return X, y.to_numpy(), np.where(rng.random(n) < 0.1, 0.0, rng.random(n) + 0.1)


def assert_same_tree(ours, other, rtol=1e-9):
    a, b = ours.tree_, other.tree_
    np.testing.assert_array_equal(a.feature, b.feature)
    np.testing.assert_array_equal(a.threshold, b.threshold)
    np.testing.assert_array_equal(a.missing_go_to_left, b.missing_go_to_left)
    np.testing.assert_array_equal(a.n_node_samples, b.n_node_samples)
    for node in range(a.node_count):
        assert a.engine.left_categories(node) == b.engine.left_categories(node)
    np.testing.assert_allclose(a.value, b.value, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(a.impurity, b.impurity, rtol=rtol, atol=rtol)


def assert_bit_identical(ours, other):
    assert ours.tree_.engine.__getstate__() == other.tree_.engine.__getstate__()


# ---- the same tree as the built-in criterion -------------------------------------------------------------


OPTIONS = {
    "leaves": {"min_samples_leaf": 4},
    "best_first": {"max_leaf_nodes": 12, "min_weight_fraction_leaf": 0.02},
    "some_columns": {"max_depth": 5, "max_features": 2, "random_state": 3},
    "interactions": {"max_depth": 4, "min_impurity_decrease": 0.01, "interaction_cst": [["a", "c"], ["b", "d"]]},
}


@pytest.mark.parametrize(
    *covering(kind=["evaluate", "split", "loss", "compiled"], options=list(OPTIONS), weighted=[False, True])
)
def test_squared_errors_by_every_way_in_give_the_built_in_tree(kind, options, weighted, compiled):
    criterion = {
        "evaluate": Squares(),
        "split": FastSquares(),
        "loss": LossCriterion(squared),
        "compiled": compiled,
    }[kind]
    options = OPTIONS[options]
    X, y, w = mixed_table(400, seed=len(options))
    w = w if weighted else None
    expected = DecisionTreeRegressor(**options).fit(X, y, w)
    ours = DecisionTreeRegressor(criterion=criterion, **options).fit(X, y, w)
    assert expected.tree_.node_count > 7
    assert_same_tree(ours, expected)
    np.testing.assert_allclose(ours.predict(X), expected.predict(X), rtol=1e-9)


def test_nodes_larger_than_a_block_are_cut_as_well(compiled):
    X, y, w = mixed_table(70_000)
    options = {"max_depth": 4}
    assert_same_tree(
        DecisionTreeRegressor(criterion=compiled, **options).fit(X, y, w), DecisionTreeRegressor(**options).fit(X, y, w)
    )


def test_cuts_drawn_at_random_are_the_built_in_ones():
    X, y, w = mixed_table(300)
    options = {"random_state": 5, "min_samples_leaf": 5}
    assert_same_tree(
        ExtraTreeRegressor(criterion=FastSquares(), **options).fit(X, y, w),
        ExtraTreeRegressor(**options).fit(X, y, w),
    )


def test_a_gini_of_ones_own_gives_the_built_in_classifier():
    X, y, w = mixed_table(300)
    labels = np.where(y > 1, "high", "low")
    options = {"max_depth": 3, "min_samples_leaf": 5}
    for columns in (["a", "b", "d"], list(X)):
        ours = DecisionTreeClassifier(criterion=Gini(), **options).fit(X[columns], labels, w)
        expected = DecisionTreeClassifier(**options).fit(X[columns], labels, w)
        np.testing.assert_allclose(ours.predict_proba(X[columns]), expected.predict_proba(X[columns]), rtol=1e-12)
        if "c" not in columns:  # sets of categories may change sides
            assert_same_tree(ours, expected)


# ---- a reference implementation of a criterion that is not built in ------------------------------------------


def naive_tree(X, y, w, criterion, min_leaf):
    """Nodes (n, value, risk) in preorder of the tree that tries every cut; the last column of X holds categories."""
    nodes = []

    def risk(rows):
        return criterion.evaluate(y[rows], w[rows])[1]

    def cuts(rows):
        for j in range(X.shape[1]):
            x = X[rows, j]
            missing, levels = np.isnan(x), np.unique(x[~np.isnan(x)])
            if j == X.shape[1] - 1:
                codes = np.where(missing, -1.0, x)
                levels = sorted(
                    [*levels, *([-1.0] if missing.any() else [])],
                    key=lambda level: criterion.evaluate(y[rows][codes == level], w[rows][codes == level])[0],
                )
                for k in range(1, len(levels)):
                    left = np.isin(codes, levels[:k])
                    yield ~left if np.array_equal(left, missing) else left  # missing rows alone are on the right
                continue
            for level in levels[:-1]:
                yield x <= level
            if missing.any() and len(levels):
                yield ~missing
                for level in levels[:-1]:
                    yield (x <= level) | missing

    def grow(rows):
        value, total = criterion.evaluate(y[rows], w[rows])
        nodes.append((len(rows), value, total))
        best, sides = 0.0, None
        for left in cuts(rows) if len(rows) >= 2 * min_leaf and total > 0 else ():
            if min(left.sum(), (~left).sum()) < min_leaf:
                continue
            gain = total - risk(rows[left]) - risk(rows[~left])
            if gain > best + 1e-9:
                best, sides = gain, left
        if sides is not None:
            grow(rows[sides])
            grow(rows[~sides])

    grow(np.flatnonzero(w > 0))
    return np.array(nodes)


@pytest.mark.parametrize(
    *covering(criterion=[Ranges(), LossCriterion(pinball), LossCriterion(absolute)], seed=range(4))
)
def test_a_tree_is_the_one_that_trying_every_cut_gives(criterion, seed):
    rng = np.random.default_rng(seed)
    n = 60
    X = np.column_stack([rng.random(n), rng.integers(0, 4, n), rng.integers(0, 5, n)])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = rng.normal(size=n) + np.nan_to_num(X[:, 0]) * 2
    w = np.where(rng.random(n) < 0.1, 0.0, rng.random(n) + 0.5)
    model = DecisionTreeRegressor(criterion=criterion, min_samples_leaf=4, categorical_features=[2]).fit(X, y, w)
    tree = model.tree_
    found = np.column_stack([tree.n_node_samples, tree.flat_value[:, 0], tree.impurity * tree.weighted_n_node_samples])
    expected = naive_tree(X, y, w, criterion, 4)
    assert len(expected) > 5
    np.testing.assert_allclose(found[:, [0, 2]], expected[:, [0, 2]], rtol=1e-9)


# ---- losses ------------------------------------------------------------------------------------------------


def test_the_absolute_loss_gives_the_built_in_tree_where_y_has_few_values():
    rng = np.random.default_rng(1)
    X = rng.random((300, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.round(4 * np.nan_to_num(X[:, 0]) + rng.normal(size=300), 1)
    assert len(np.unique(y)) <= 120
    options = {"max_depth": 3, "min_samples_leaf": 15}
    ours = DecisionTreeRegressor(criterion=LossCriterion(absolute, candidates=200), **options).fit(X, y)
    expected = DecisionTreeRegressor(criterion="absolute_error", **options).fit(X, y)
    np.testing.assert_array_equal(ours.tree_.feature, expected.tree_.feature)
    np.testing.assert_array_equal(ours.tree_.threshold, expected.tree_.threshold)
    np.testing.assert_allclose(ours.tree_.impurity, expected.tree_.impurity, rtol=1e-12)


@pytest.mark.parametrize("loss", [squared, absolute, pinball, asymmetric, huber])
@pytest.mark.parametrize("n", [1, 2, 30, 1000])
def test_the_value_of_a_node_is_the_constant_of_least_loss(loss, n):
    rng = np.random.default_rng(n)
    y, w = rng.gamma(2.0, size=n), rng.random(n) + 0.1
    value, risk = LossCriterion(loss).evaluate(y, w)
    assert risk == pytest.approx(np.sum(w * loss(y, value)), rel=1e-12, abs=1e-12)
    at_y = [np.sum(w * loss(y, c)) for c in y]
    between = minimize_scalar(lambda c: np.sum(w * loss(y, c)), bounds=(y.min(), y.max()), method="bounded").fun
    assert risk <= min([*at_y, between]) * (1 + 1e-7)


@pytest.mark.parametrize(("loss", "tolerance"), [(squared, 1e-10), (asymmetric, 2e-3), (huber, 2e-3), (pinball, 2e-3)])
def test_goodness_is_the_decrease_of_the_least_loss(loss, tolerance):
    rng = np.random.default_rng(0)
    x = np.sort(np.round(rng.random(400), 2))
    y, w = rng.normal(size=400) + 2 * x, rng.random(400) + 0.5
    criterion = LossCriterion(loss)
    goodness = criterion.split(y, w, x, False)
    exact = Criterion.split(criterion, y, w, x, False)
    np.testing.assert_array_equal(np.isnan(goodness), np.isnan(exact))
    whole = criterion.evaluate(y, w)[1]
    np.testing.assert_allclose(goodness, exact, atol=tolerance * whole)


def test_many_rows_are_evaluated_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    x, y, w = np.sort(rng.random(300)), rng.normal(size=300), rng.random(300)
    whole = LossCriterion(huber).split(y, w, x, False)
    monkeypatch.setattr("spinney.criteria._MATRIX_NUMBERS", 640)
    np.testing.assert_allclose(LossCriterion(huber).split(y, w, x, False), whole, rtol=1e-9, atol=1e-12)


def test_a_loss_that_takes_one_constant_at_a_time_gives_the_same_tree():
    def one_at_a_time(y, c):
        return (y - float(c)) ** 2 if y.ndim == 1 else 1 / 0

    def no_arrays(y, c):
        return (y - float(c)) ** 2

    X, y, _ = mixed_table(100)
    fits = [DecisionTreeRegressor(criterion=LossCriterion(f), max_depth=3).fit(X, y) for f in (squared, no_arrays)]
    assert_bit_identical(*fits)
    with pytest.raises(ZeroDivisionError):
        DecisionTreeRegressor(criterion=LossCriterion(one_at_a_time)).fit(X, y)


def test_given_constants_reach_beyond_y():
    def log_loss(y, c):
        return np.logaddexp(0, c) - y * c

    y = np.array([0.0] * 10 + [1.0] * 30)
    value, risk = LossCriterion(log_loss, np.linspace(-5, 5, 41)).evaluate(y, np.ones(40))
    assert value == pytest.approx(np.log(3), abs=1e-4)
    assert risk / 40 == pytest.approx(-(0.25 * np.log(0.25) + 0.75 * np.log(0.75)), rel=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("squared",), "function of y and c"),
        ((squared, 4), "at least 9"),
        ((squared, []), "finite numbers"),
        ((squared, [0.0, np.nan]), "finite numbers"),
    ],
)
def test_arguments_of_a_loss_criterion_are_checked(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        LossCriterion(*arguments)


def test_a_loss_of_the_wrong_shape_is_named():
    with pytest.raises(ValueError, match="one loss per value"):
        DecisionTreeRegressor(criterion=LossCriterion(lambda y, c: np.sum(y - c))).fit([[1.0], [2.0]], [1.0, 2.0])


def test_several_outputs_are_refused_by_a_loss():
    with pytest.raises(ValueError, match="one output, and y has 2"):
        DecisionTreeRegressor(criterion=LossCriterion(squared)).fit([[1.0], [2.0]], [[1.0, 2.0], [2.0, 1.0]])


def test_held_out_rows_are_evaluated_by_the_loss():
    X, y, w = mixed_table(250)
    model = DecisionTreeRegressor(criterion=LossCriterion(pinball), validation_fraction=0.3, random_state=0)
    model.fit(X, y, w)
    full = DecisionTreeRegressor(criterion=LossCriterion(pinball)).fit(X, y, w)
    assert 1 < model.get_n_leaves() < full.get_n_leaves() / 2
    with pytest.raises(ValueError, match="row_loss"):
        DecisionTreeRegressor(criterion=Squares(), validation_fraction=0.3).fit(X, y)


# ---- compiled ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_and_interpreted_trees_are_equal_to_the_bit(compiled, weighted):
    X, y, w = mixed_table(500)
    w = w if weighted else None
    ours = DecisionTreeRegressor(criterion=compiled, min_samples_leaf=3).fit(X, y, w)
    assert_bit_identical(ours, DecisionTreeRegressor(criterion=SequentialSquares(), min_samples_leaf=3).fit(X, y, w))


@pytest.mark.parametrize("options", [{}, {"max_leaf_nodes": 40}, {"max_features": 2, "random_state": 0}])
def test_the_number_of_threads_does_not_show(compiled, options):
    X, y, w = mixed_table(70_000)
    fits = [
        DecisionTreeRegressor(criterion=compiled, n_jobs=n, min_samples_leaf=50, **options).fit(X, y, w)
        for n in (1, 2, 7)
    ]
    assert_bit_identical(fits[0], fits[1])
    assert_bit_identical(fits[0], fits[2])


def test_every_kind_of_function_is_taken(library, compiled):
    X, y, _ = mixed_table(200)
    by_type = DecisionTreeRegressor(criterion=compiled).fit(X, y)
    low_level = CompiledCriterion(
        LowLevelCallable(CompiledCriterion.EVALUATE(("evaluate", library))),
        LowLevelCallable(CompiledCriterion.SPLIT(("split", library))),
    )
    assert_bit_identical(DecisionTreeRegressor(criterion=low_level).fit(X, y), by_type)

    class NumbaFunction:  # what a numba cfunc shows of itself
        def __init__(self, function):
            self.ctypes, self.address = function, ctypes.cast(function, ctypes.c_void_p).value

    numba = CompiledCriterion(
        NumbaFunction(CompiledCriterion.EVALUATE(("evaluate", library))),
        NumbaFunction(CompiledCriterion.SPLIT(("split", library))),
    )
    assert_bit_identical(DecisionTreeRegressor(criterion=numba).fit(X, y), by_type)


def test_user_data_reaches_the_functions(library, compiled):
    X, y, _ = mixed_table(200)
    plain = DecisionTreeRegressor(criterion=compiled).fit(X[["a"]], y).predict(X[["a"]])
    function, split = CompiledCriterion.EVALUATE(("scaled", library)), CompiledCriterion.SPLIT(("split", library))
    three = ctypes.c_double(3.0)
    address = ctypes.cast(ctypes.pointer(three), ctypes.c_void_p)
    for criterion in (
        CompiledCriterion(function, split, user_data=np.array([3.0])),
        CompiledCriterion(function, split, user_data=(ctypes.c_double * 1)(3.0)),
        CompiledCriterion(function, split, user_data=address),
        CompiledCriterion(function, split, user_data=address.value),
        CompiledCriterion(LowLevelCallable(function, address), split),
    ):
        scaled = DecisionTreeRegressor(criterion=criterion).fit(X[["a"]], y)
        np.testing.assert_array_equal(scaled.predict(X[["a"]]), 3 * plain)
    with pytest.raises(TypeError, match="user_data must be"):
        CompiledCriterion(function, split, user_data="three")


@pytest.mark.parametrize(
    ("name", "restype", "argtypes"),
    [
        ("short_integer", None, ["d", "d", "i", "d", "v"]),
        ("split", None, ["d", "d", "n", "d"]),
        ("split", ctypes.c_double, ["d", "d", "n", "d", "v"]),
    ],
)
def test_a_wrong_signature_is_refused(library, name, restype, argtypes):
    kinds = {
        "d": ctypes.POINTER(ctypes.c_double),
        "i": ctypes.c_int,
        "n": ctypes.c_ssize_t,
        "v": ctypes.c_void_p,
    }
    split = ctypes.CFUNCTYPE(restype, *[kinds[a] for a in argtypes])((name, library))
    with pytest.raises(ValueError, match=r"split has the signature '.*'\. It must be 'void \(double \*"):
        CompiledCriterion(CompiledCriterion.EVALUATE(("evaluate", library)), split)


@pytest.mark.parametrize("function", [np.sum, 12345, "untyped"])
def test_what_is_not_a_typed_function_is_refused(library, function):
    split = CompiledCriterion.SPLIT(("split", library))
    untyped = ctypes.CDLL(library._name).evaluate if function == "untyped" else function
    with pytest.raises(TypeError, match=r"evaluate must be a scipy\.LowLevelCallable"):
        CompiledCriterion(untyped, split)


def test_goodness_that_is_no_number_or_negative_cuts_nothing(library):
    nothing = CompiledCriterion(
        CompiledCriterion.EVALUATE(("evaluate", library)), CompiledCriterion.SPLIT(("no_split", library))
    )
    X, y, _ = mixed_table(100)
    assert DecisionTreeRegressor(criterion=nothing).fit(X, y).get_n_leaves() == 1


def test_a_value_that_is_not_written_is_named(library):
    split = CompiledCriterion.SPLIT(("split", library))
    half = CompiledCriterion(CompiledCriterion.EVALUATE(("half_a_value", library)), split, n_values=2)
    X, y, _ = mixed_table(50)
    with pytest.raises(ValueError, match="a value of nan for a node of 50 rows"):
        DecisionTreeRegressor(criterion=half).fit(X, y)


def test_a_target_of_two_columns_and_two_values(library):
    class Rates(Criterion):
        def evaluate(self, y, weight):
            time, events = weight @ y
            expected = y[:, 0] * events / time
            seen = y[:, 1]
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = np.where(seen > 0, seen * np.log(seen / expected), 0.0) - (seen - expected)
            return [events / time, events], 2 * np.sum(weight * terms)

        split_calls = 0

        def split(self, y, weight, x, is_category):
            assert y.shape == (len(x), 2)
            self.split_calls += 1
            return super().split(y, weight, x, is_category)

    class CompiledRates(CompiledCriterion):
        def split(self, y, weight, x, is_category):
            return Criterion.split(self, y, weight, x, is_category)

    rng = np.random.default_rng(0)
    X = rng.random((120, 2))
    time = rng.random(120) + 0.5
    y = np.column_stack([time, rng.poisson(time * np.where(X[:, 0] > 0.6, 6.0, 2.0))])
    criterion = Rates()
    model = DecisionTreeRegressor(criterion=criterion, max_depth=2, min_samples_leaf=10).fit(X, y)
    assert criterion.split_calls > 0
    assert model.predict(X).shape == (120, 2)
    assert model.tree_.feature[0] == 0
    assert model.tree_.threshold[0] == pytest.approx(0.6, abs=0.05)
    rates = CompiledCriterion(
        CompiledCriterion.EVALUATE(("rates", library)),
        CompiledCriterion.SPLIT(("split", library)),
        n_values=2,
        n_columns=2,
    )
    value, risk = rates.evaluate(y, np.ones(120))
    np.testing.assert_allclose(value, criterion.evaluate(y, np.ones(120))[0])
    assert risk == pytest.approx(criterion.evaluate(y, np.ones(120))[1])
    root = DecisionTreeRegressor(criterion=rates, max_depth=1).fit(X, y)
    np.testing.assert_allclose(root.tree_.flat_value[0], value)
    with pytest.raises(ValueError, match=r"y has 1 column\(s\), and the compiled criterion has n_columns=2"):
        DecisionTreeRegressor(criterion=rates).fit(X, y[:, 0])


# ---- what goes wrong ---------------------------------------------------------------------------------------


class OwnError(Exception):
    pass


class Raising(FastSquares):
    def __init__(self, method, at, error):
        self.method, self.at, self.error, self.calls = method, at, error, 0

    def _count(self, method):
        self.calls += method == self.method
        if self.calls == self.at and method == self.method:
            raise self.error

    def evaluate(self, y, weight):
        self._count("evaluate")
        return super().evaluate(y, weight)

    def split(self, y, weight, x, is_category):
        self._count("category" if is_category else "split")
        return super().split(y, weight, x, is_category)


@pytest.mark.parametrize("kind", [OwnError, KeyboardInterrupt])
@pytest.mark.parametrize("at", [1, 5])
@pytest.mark.parametrize("method", ["evaluate", "split", "category"])
@pytest.mark.parametrize("options", [{}, {"max_leaf_nodes": 20}])
def test_what_the_users_code_raises_comes_out_of_fit(method, at, kind, options):
    X, y, _ = mixed_table(200)
    error = kind("mine")
    model = DecisionTreeRegressor(criterion=Raising(method, at, error), n_jobs=2, **options)
    with pytest.raises(kind) as caught:
        model.fit(X, y)
    assert caught.value is error
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_a_criterion_that_keeps_its_error_is_collected():
    X, y, _ = mixed_table(50)
    criterion = Raising("split", 2, OwnError("mine"))
    gone = weakref.ref(criterion)
    with contextlib.suppress(OwnError):
        DecisionTreeRegressor(criterion=criterion).fit(X, y)
    del criterion
    gc.collect()
    assert gone() is None


def test_an_error_in_a_thread_comes_out_there():
    X, y, _ = mixed_table(200)
    seen = []

    def fit():
        try:
            DecisionTreeRegressor(criterion=Raising("split", 3, OwnError("mine"))).fit(X, y)
        except OwnError as error:
            seen.append(error)

    threads = [threading.Thread(target=fit) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 3


def test_ctrl_c_stops_a_fit():
    asked = []

    class Slow(Squares):
        def evaluate(self, y, weight):
            asked.append(len(y))
            time.sleep(0.002)
            return super().evaluate(y, weight)

    X, y, _ = mixed_table(500)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs behind
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        DecisionTreeRegressor(criterion=Slow()).fit(X, y)
    assert len(asked) < 5_000  # of 27,726; about 150 in the time until it is stopped
    timer.join()
    signal.signal(signal.SIGINT, before)


class Returns(Squares):
    """Returns the given results from one of its methods."""

    def __init__(self, **results):
        self.results = results

    def init(self, y, sample_weight):
        return self.results["init"](y) if "init" in self.results else y

    def evaluate(self, y, weight):
        return self.results["evaluate"](y) if "evaluate" in self.results else super().evaluate(y, weight)

    def split(self, y, weight, x, is_category):
        place = "category" if is_category else "split"
        return self.results[place](x) if place in self.results else super().split(y, weight, x, is_category)


@pytest.mark.parametrize(
    ("results", "error", "message"),
    [
        ({"init": lambda y: None}, ValueError, r"init must return y as numbers, of shape \(60,\) or \(60, k\)"),
        ({"init": lambda y: y[1:]}, ValueError, r"It returned a ndarray of shape \(59,\)"),
        ({"init": lambda y: y * np.nan}, ValueError, "init returned a y with NaN"),
        ({"evaluate": lambda y: 3.0}, TypeError, r"evaluate must return a value .* It returned 3\.0"),
        ({"evaluate": lambda y: ("high", 1.0)}, TypeError, "evaluate must return a value"),
        ({"evaluate": lambda y: (np.zeros(len(y)), len(y) ** 2)}, ValueError, "expected 60 as for the root"),
        ({"evaluate": lambda y: ([], 1.0)}, ValueError, "a value of 0 numbers; expected at least one"),
        ({"evaluate": lambda y: (1.0, -5000.0)}, ValueError, "a risk of -5000.* for a node of 60 rows"),
        ({"evaluate": lambda y: (1.0, np.nan)}, ValueError, "a risk of nan"),
        ({"evaluate": lambda y: (np.inf, 1.0)}, ValueError, "a value of inf"),
        ({"split": lambda x: np.ones(len(x))}, ValueError, r"of shape \(60,\); expected \(59,\): one for the cut"),
        ({"split": lambda x: None}, TypeError, "split returned nothing"),
        ({"split": lambda x: ["good"] * (len(x) - 1)}, TypeError, "split must return numbers. It returned"),
        ({"category": lambda x: np.ones(6)}, ValueError, "an order of the 8 groups, each of 0 to 7 once"),
        ({"category": lambda x: ([0, 0, 1, 2, 3, 4, 5, 6], np.ones(7))}, ValueError, "an order of the 8 groups"),
        ({"category": lambda x: (np.arange(8), np.ones(8))}, ValueError, r"expected \(7,\): one for each cut of"),
    ],
)
def test_wrong_returns_are_named(results, error, message):
    X, y, _ = mixed_table(60)
    with pytest.raises(error, match=message):
        DecisionTreeRegressor(criterion=Returns(**results)).fit(X, y)


def test_goodness_that_is_not_finite_is_no_cut():
    def only_the_third(x):
        goodness = np.full(len(x) - 1, np.nan)
        goodness[:5] = [np.inf, -np.inf, 1e-9, 0.0, -1.0]
        return goodness

    X = np.arange(20.0)[:, None]
    model = DecisionTreeRegressor(criterion=Returns(split=only_the_third), max_depth=1).fit(X, X[:, 0] ** 2)
    assert model.tree_.threshold[0] == 2.5


def test_arrays_may_be_kept():
    class Keeping(FastSquares):
        def __init__(self):
            self.kept = []

        def split(self, y, weight, x, is_category):
            self.kept.append((y, y.copy(), x, x.copy()))
            return super().split(y, weight, x, is_category)

    X, y, _ = mixed_table(200)
    criterion = Keeping()
    DecisionTreeRegressor(criterion=criterion).fit(X, y)
    assert len(criterion.kept) > 50
    for kept_y, y_then, kept_x, x_then in criterion.kept:
        np.testing.assert_array_equal(kept_y, y_then)
        np.testing.assert_array_equal(kept_x, x_then)


def test_x_comes_sorted_with_missing_values_at_either_end():
    seen = []

    class Looking(FastSquares):
        def split(self, y, weight, x, is_category):
            seen.append((x, is_category))
            return super().split(y, weight, x, is_category)

    X, y, _ = mixed_table(100)
    DecisionTreeRegressor(criterion=Looking(), max_depth=1).fit(X[["a", "c"]], y)
    n_missing = int(X.a.isna().sum())
    (last, _), (first, _), (groups, is_category), (ranks, _) = seen
    np.testing.assert_array_equal(last[:-n_missing], np.sort(X.a.dropna()))
    np.testing.assert_array_equal(first[n_missing:], np.sort(X.a.dropna()))
    assert is_category
    np.testing.assert_array_equal(np.unique(groups), np.arange(8.0))
    np.testing.assert_array_equal(np.unique(ranks), np.arange(8.0))
    assert np.all(np.diff(groups) >= 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"monotonic_cst": [1, 0, 0, 0]}, "monotonic_cst cannot be combined with a user-defined criterion"),
        ({"max_bins": 16}, "max_bins cannot be combined"),
        ({"rate_shrinkage": 1.0}, "rate_shrinkage cannot be combined"),
    ],
)
def test_what_needs_a_built_in_criterion_is_refused(options, message):
    X, y, _ = mixed_table(50)
    with pytest.raises(ValueError, match=message):
        DecisionTreeRegressor(criterion=Squares(), **options).fit(X, y)


@pytest.mark.parametrize(
    ("criterion", "options", "y", "message"),
    [
        (Gini(), {"min_purity": 0.9}, "two", "min_purity cannot be combined"),
        (Gini(), {"cost_matrix": [[0, 1], [2, 0]]}, "two", "cost_matrix cannot be combined"),
        (Gini(), {"priors": [0.5, 0.5]}, "two", "priors cannot be combined"),
        (
            Returns(evaluate=lambda y: ([0.5, 0.5], 1.0)),
            {},
            "three",
            "the class probabilities as the value: 3 numbers, not 2",
        ),
        (Squares(), {}, "two", "the class probabilities as the value: 2 numbers, not 1"),
        (Returns(evaluate=lambda y: ([2.0, 2.0], 1.0)), {}, "two", r"that sum to 1, not \[2.0, 2.0\]"),
        (Gini(), {}, "outputs", "one output of classes"),
    ],
)
def test_what_a_classifier_refuses(criterion, options, y, message):
    X, _, _ = mixed_table(60)
    labels = {"two": np.arange(60) % 2, "three": np.arange(60) % 3, "outputs": np.arange(120).reshape(60, 2) % 3}[y]
    with pytest.raises(ValueError, match=message):
        DecisionTreeClassifier(criterion=criterion, **options).fit(X, labels)


def test_a_class_or_an_object_without_the_methods_is_refused():
    X, y, _ = mixed_table(50)
    with pytest.raises(TypeError, match=r"must be an object, not the class Squares. Pass an object: Squares\(\)"):
        DecisionTreeRegressor(criterion=Squares).fit(X, y)
    with pytest.raises(ValueError, match="'criterion' parameter"):
        DecisionTreeRegressor(criterion=object()).fit(X, y)
    with pytest.raises(NotImplementedError, match="evaluate"):
        DecisionTreeRegressor(criterion=Criterion()).fit(X, y)


# ---- as a parameter ----------------------------------------------------------------------------------------


def test_a_criterion_is_cloned_and_shown(compiled):
    criterion = LossCriterion(huber, 32)
    model = DecisionTreeRegressor(criterion=criterion)
    assert model.get_params()["criterion"] is criterion
    copied = clone(model).get_params()["criterion"]
    assert copied.loss is huber
    assert copied.candidates == 32
    assert clone(DecisionTreeRegressor(criterion=compiled)).criterion is compiled
    assert "LossCriterion(huber, 32)" in repr(model)


def test_a_model_is_saved_without_its_criterion(compiled):
    X, y, w = mixed_table(200)
    for criterion in (compiled, LossCriterion(lambda y, c: (y - c) ** 2)):
        model = DecisionTreeRegressor(criterion=criterion, max_depth=4).fit(X, y, w)
        file = io.BytesIO()
        model.save(file)
        file.seek(0)
        again = spinney.load(file)
        assert again.criterion == "user"
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        file.seek(0)
        np.testing.assert_array_equal(spinney.load_predictor(file).predict(X), model.predict(X))
        with pytest.raises(ValueError, match="saved without its criterion"):
            again.fit(X, y)
        assert_bit_identical(again.set_params(criterion=criterion).fit(X, y, w), model)


def test_a_pickle_keeps_the_criterion_if_it_can(compiled):
    X, y, _ = mixed_table(100)
    model = DecisionTreeRegressor(criterion=LossCriterion(pinball), max_depth=3).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_bit_identical(again.fit(X, y), model)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(DecisionTreeRegressor(criterion=compiled).fit(X, y))


def test_a_tree_can_be_read():
    X, y, _ = mixed_table(100)
    model = DecisionTreeRegressor(criterion=Ranges(), max_depth=1).fit(X, y)
    assert "value" in spinney.export_text(model)
    assert spinney.to_dict(model)["criterion"] == "user"
    assert spinney.to_json(model)
    assert model.to_predictor().predict(X.iloc[0].to_dict()) == model.predict(X.iloc[:1])[0]
    assert model.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"missing": "surrogate"},
        {"missing": "surrogate", "missing_fallback": "stop", "max_competitors": 2},
        {"feature_costs": {"a": 3.0}},
        {"cp": 0.02},
        {"prune": "cv", "cv": 5, "random_state": 0},
    ],
    ids=repr,
)
def test_all_else_goes_on_as_with_the_built_in_criterion(options):
    X, y, w = mixed_table(300)
    options = {"min_samples_leaf": 10, **options}
    ours = DecisionTreeRegressor(criterion=LossCriterion(squared), **options).fit(X, y, w)
    expected = DecisionTreeRegressor(**options).fit(X, y, w)
    assert expected.get_n_leaves() > 2
    assert_same_tree(ours, expected)
