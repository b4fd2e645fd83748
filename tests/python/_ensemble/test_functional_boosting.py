"""Functional boosting: any loss, any weak learners."""

import io
import pickle
import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from oracle.functional import b_splines, best_pair, losses
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor as PeerBoosting
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from spinney._boosting.learning_rows import LearningRows
from spinney._data.reproducible import cholesky, solve_factored
from spinney._ensemble.functional.losses import LONGEST, least_along, make_loss
from spinney._ensemble.functional.stages import BY_NAME
from spinney._model.functional.local import nearest
from spinney._model.functional.steps import Basis
from spinney.learners import KernelRidge, Linear, Neighbors, Splines, Trees

NAMES = list(BY_NAME)
VALUES = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie")


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.RandomState(0)
    X = rng.randn(400, 5)
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + (X[:, 2] > 0.3) + 0.1 * rng.randn(400)
    return X, y


@pytest.fixture(scope="module")
def mixed(numbers):
    X, y = numbers
    rng = np.random.RandomState(1)
    town = rng.choice(["Ely", "Rye", "Wem"], len(y)).astype(object)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "town": town, "c": X[:, 2] > 0})
    frame.loc[::9, "a"] = np.nan
    frame.loc[::11, "town"] = None
    return frame, y + 2.0 * (frame["town"] == "Rye").to_numpy()


def regressor(learners, **options):
    return spinney.FunctionalBoostingRegressor(learners, **{"n_estimators": 15, "random_state": 0, **options})


def classifier(learners, **options):
    return spinney.FunctionalBoostingClassifier(learners, **{"n_estimators": 10, "random_state": 0, **options})


# ---- the loop ---------------------------------------------------------------------------------------------


LONG = ("kernel_ridge", "logistic_pairs", "neighbors", "trees")


@pytest.mark.parametrize(
    "learners",
    [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in NAMES]
    + [pytest.param(["linear", "splines", "stumps"], marks=pytest.mark.slow)],
    ids=str,
)
@pytest.mark.parametrize("loss", VALUES)
def test_the_loss_falls_at_every_step(numbers, learners, loss):
    X, y = numbers
    target = y if loss in VALUES[:4] else np.exp(y)
    model = regressor(learners, loss=loss, learning_rate=0.5).fit(X, target)
    curve = model.train_score_
    if loss == "huber":  # where squares end moves from round to round
        assert curve[-1] < curve[0]
    else:
        assert (np.diff(curve) <= 0).all()
        assert curve[-1] < curve[0]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("learners", ["stumps", "linear_pairs", "splines"])
def test_the_loss_of_classes_falls_at_every_step(numbers, learners, n_classes):
    X, y = numbers
    codes = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model = classifier(learners, learning_rate=1.0).fit(X, codes)
    assert (np.diff(model.train_score_) < 0).all()
    assert model.score(X, codes) > 1.4 / n_classes
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_squared_loss_and_trees_are_gradient_boosting(numbers):
    X, y = numbers
    ours = regressor(Trees(max_depth=3), learning_rate=0.2).fit(X, y)
    peer = PeerBoosting(n_estimators=15, learning_rate=0.2, max_depth=3).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-10, atol=1e-12)
    own = spinney.GradientBoostingRegressor(
        n_estimators=15,
        learning_rate=0.2,
        max_depth=3,
        max_leaf_nodes=None,
        growth="depth",
        max_bins=65535,
        min_samples_leaf=1,
        regularization={"min_hessian_leaf": 0.0},
    ).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), own.predict(X), rtol=1e-4, atol=1e-5)


def test_a_tree_has_the_splits_that_were_asked_for(numbers):
    X, y = numbers
    model = regressor(Trees(n_splits=4)).fit(X, y)
    assert {int((tree.feature >= 0).sum()) for tree in model.functions_.trees()} == {4}


def test_a_depth_that_is_set_limits_trees_with_a_number_of_splits(numbers):
    X, y = numbers
    shallow, stumps = (regressor(trees).fit(X, y) for trees in (Trees(max_depth=1, n_splits=3), Trees()))
    np.testing.assert_array_equal(shallow.predict(X), stumps.predict(X))
    deeper, free = (regressor(trees).fit(X, y) for trees in (Trees(max_depth=2, n_splits=3), Trees(n_splits=3)))
    assert not np.array_equal(deeper.predict(X), stumps.predict(X))
    assert not np.array_equal(free.predict(X), stumps.predict(X))


def test_squared_loss_with_lines_and_no_shrinkage_ends_at_least_squares(numbers):
    X, y = numbers
    model = regressor("linear_pairs", n_estimators=400, learning_rate=1.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X, y).predict(X), atol=1e-6)


def test_a_fixed_step_goes_the_functions_own_length(numbers):
    X, y = numbers
    fixed = regressor("stumps", step="fixed", loss="absolute_error").fit(X, y)
    assert (fixed.steps_ == 1).all()
    searched = regressor("stumps", loss="absolute_error").fit(X, y)
    assert (searched.steps_ != 1).any()
    np.testing.assert_allclose(regressor("stumps").fit(X, y).steps_, 1, rtol=1e-10)


def test_rounds_end_where_nothing_is_left(numbers):
    X, _ = numbers
    model = regressor("linear", learning_rate=1.0, n_estimators=50).fit(X[:, :1], 3 * X[:, 0] + 1)
    assert model.score(X[:, :1], 3 * X[:, 0] + 1) == pytest.approx(1)
    assert len(model.train_score_) <= 50


@pytest.mark.parametrize("loss", VALUES)
def test_slopes_are_those_of_the_losses(loss):
    rng = np.random.RandomState(0)
    y, f = rng.gamma(2.0, size=50), rng.randn(50)
    parameter = {"quantile": 0.3, "tweedie_power": 1.4, "huber_share": 0.8}
    made = make_loss(loss, parameter, None)
    rows = LearningRows(None, y, None)
    made.begin_round(f[np.newaxis], rows)
    h = 1e-6
    ahead, behind = made.values((f + h)[np.newaxis], rows), made.values((f - h)[np.newaxis], rows)
    np.testing.assert_allclose(made.slopes(f[np.newaxis], rows)[0], (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-6)
    if loss != "huber":
        np.testing.assert_allclose(
            made.values(f[np.newaxis], rows),
            losses(loss, y, f, {"quantile": 0.3, "tweedie": 1.4}.get(loss)),
            rtol=1e-12,
        )


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_slopes_of_losses_of_two_classes(loss):
    rng = np.random.RandomState(0)
    y, f = (rng.rand(50) < 0.5).astype(float), rng.randn(50)
    made, rows, h = make_loss(loss, {}, 2), LearningRows(None, y, None), 1e-6
    ahead, behind = losses(loss, y, f + h), losses(loss, y, f - h)
    np.testing.assert_allclose(made.slopes(f[np.newaxis], rows)[0], (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("least", [1e-6, 0.3, 1.0, 7.5, 900.0])
def test_a_line_search_ends_at_the_least_and_not_beyond(least):
    found = least_along(lambda s: s - least, 1.0)
    assert found == pytest.approx(least, rel=1e-9)
    assert found <= least
    assert least_along(lambda s: abs(s - least) * (s - least), 1.0) <= least
    assert least_along(lambda s: -1.0 if s < least else 2.0, 1.0) == pytest.approx(least, rel=1e-9)


def test_a_line_search_without_a_least_ends():
    assert least_along(lambda s: -np.exp(-s), 1.0) == LONGEST
    assert least_along(lambda s: 1.0 + s, 1.0) == 0.0


# ---- the learners -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_the_best_pair_is_the_best_of_all_pairs(seed):
    rng = np.random.RandomState(seed)
    X = rng.randn(60, 6)
    X[:, 5] = X[:, 4] if seed % 2 else rng.randn(60) > 0  # two that say the same; a column of two values
    y, weight = rng.randn(60) + X[:, 1] * X[:, 2], rng.rand(60) + 0.1
    model = spinney.FunctionalBoostingRegressor("linear_pairs", n_estimators=1, learning_rate=1.0)
    model.fit(X, y, sample_weight=weight)
    mean = np.average(y, weights=weight)
    pair, fitted = best_pair(model.functions_.design.matrix(model._columns(X)), y - mean, weight)
    np.testing.assert_allclose(model.predict(X), fitted + mean, rtol=1e-8, atol=1e-10)
    if not seed % 2:
        assert model.chosen_[0]["columns"] == [f"x{j}" for j in pair]


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_splines_are_de_boors(degree):
    rng = np.random.RandomState(degree)
    knots = np.sort(rng.randn(7))
    x = np.r_[knots, rng.uniform(knots[0], knots[-1], 50)]
    places, parts = Basis(0, knots, degree, 0).locate(x)
    found = np.zeros((len(x), len(knots) + degree))
    for place, part in zip(places, parts, strict=True):
        np.add.at(found, (np.arange(len(x)), place), part)
    np.testing.assert_allclose(found[:, :-1], b_splines(knots, degree, x), atol=1e-14)
    assert (found[:, -1] == 0).all()


@pytest.mark.slow
def test_a_spline_has_the_freedom_that_was_asked_for():
    rng = np.random.RandomState(0)
    X = rng.rand(120, 1)
    rows = np.eye(120)
    for wanted in (2.5, 4.0, 8.0):
        hat = np.array(
            [
                spinney.FunctionalBoostingRegressor(Splines(wanted), n_estimators=1, learning_rate=1.0, step="fixed")
                .fit(X, rows[i])
                .predict(X)[i]
                - 1 / 120
                for i in range(0, 120, 10)
            ]
        )
        assert hat.sum() * 10 == pytest.approx(wanted - 1, rel=0.15)  # the constant start has taken one


def test_neighbours_are_the_nearest(numbers):
    X, y = numbers
    model = regressor(Neighbors(7), n_estimators=1, learning_rate=1.0, step="fixed").fit(X, y)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    peer = KNeighborsRegressor(7).fit(scaled, y)
    np.testing.assert_allclose(model.predict(X), peer.predict(scaled))


def test_ties_in_distance_go_to_the_first_rows():
    rows = np.zeros((30, 2))
    assert nearest(rows, np.zeros((3, 2)), 4).tolist() == [[0, 1, 2, 3]] * 3


def test_small_systems_are_solved():
    rng = np.random.RandomState(0)
    left = rng.randn(5, 6, 6)
    matrices = left @ left.transpose(0, 2, 1) + np.eye(6)
    right = rng.randn(5, 6)
    expected = np.linalg.solve(matrices, right[..., np.newaxis])[..., 0]
    np.testing.assert_allclose(solve_factored(cholesky(matrices), right), expected, rtol=1e-9)
    np.testing.assert_allclose(cholesky(matrices), np.linalg.cholesky(matrices), rtol=1e-9, atol=1e-12)


def test_kernel_ridge_shrinks_to_nothing_as_alpha_grows(numbers):
    X, y = numbers[0][:150], numbers[1][:150]
    errors = [
        np.mean(
            (regressor(KernelRidge(alpha), n_estimators=1, learning_rate=1, step="fixed").fit(X, y).predict(X) - y) ** 2
        )
        for alpha in (1e-3, 1.0, 1e6)
    ]
    assert errors[0] < 0.2 * errors[1]
    assert errors[2] == pytest.approx(np.var(y), rel=1e-3)


def test_of_several_learners_the_best_is_taken_and_named(numbers):
    X, _ = numbers
    model = regressor(["stumps", "linear"], n_estimators=3).fit(X, 5 * X[:, 3] + (X[:, 0] > 0))
    assert model.chosen_[0] == {"round": 1, "learner": "linear", "columns": ["x3"], "factor": pytest.approx(0.1)}
    assert model.learners_ == ["stumps", "linear"]
    stepped = regressor(["linear", "stumps"], n_estimators=1).fit(X, (X[:, 0] > 0.2) * 1.0)
    assert stepped.chosen_[0]["learner"] == "stumps"


def test_any_regressor_is_a_learner(numbers):
    X, y = numbers
    weight = np.random.RandomState(3).rand(len(y)) + 0.2
    model = regressor([Ridge(), "stumps"], n_estimators=5).fit(X, y, sample_weight=weight)
    assert {entry["learner"] for entry in model.chosen_} <= {"Ridge()", "stumps"}
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    without = regressor(KNeighborsRegressor(), n_estimators=2).fit(X, y, sample_weight=weight)
    assert without.score(X, y) > 0
    with pytest.raises(TypeError, match=r"learners cannot be saved.*pickle the model"):
        without.save(io.BytesIO())


def test_an_estimator_of_any_kind_gets_the_columns_by_name(mixed):
    frame, y = mixed
    columns = ["b", "c"]
    model = regressor(Ridge(), n_estimators=3).fit(frame[columns], y)
    np.testing.assert_array_equal(model.predict(frame[["c", "b"]]), model.predict(frame[columns]))


# ---- a loss of one's own ----------------------------------------------------------------------------------


class LogCosh:
    def loss(self, y, f):
        return np.logaddexp(f - y, y - f)

    def gradient(self, y, f):
        return np.tanh(f - y)


class SquaredHinge:
    def loss(self, y, f):
        return np.maximum(0, 1 - y * f) ** 2

    def gradient(self, y, f):
        return -2 * y * np.maximum(0, 1 - y * f)


def test_a_loss_of_ones_own(numbers):
    X, y = numbers
    model = regressor("splines", loss=LogCosh(), learning_rate=0.5).fit(X, y)
    assert (np.diff(model.train_score_) <= 0).all()
    assert np.tanh(model.functions_.start[0] - y).sum() == pytest.approx(0, abs=1e-4)
    two = classifier("stumps", loss=SquaredHinge()).fit(X, y > 0.5)
    assert (np.diff(two.train_score_) <= 0).all()
    assert two.score(X, y > 0.5) > 0.7
    with pytest.raises(ValueError, match="takes two classes"):
        classifier("stumps", loss=SquaredHinge()).fit(X, np.digitize(y, [0, 1]))


def test_a_loss_of_ones_own_is_checked(numbers):
    X, y = numbers

    class Short(LogCosh):
        def gradient(self, y, f):
            return np.zeros(3)

    class Endless(LogCosh):
        def gradient(self, y, f):
            return np.full(len(y), np.nan)

    with pytest.raises(ValueError, match=r"gradient\(y, f\) of the loss returned shape \(3,\)"):
        regressor("stumps", loss=Short()).fit(X, y)
    with pytest.raises(ValueError, match="returned NaN"):
        regressor("stumps", loss=Endless()).fit(X, y)


# ---- tables, files, threads -------------------------------------------------------------------------------


@pytest.mark.parametrize("learners", NAMES)
def test_strings_missing_values_and_every_frame(mixed, learners):
    frame, y = mixed[0][:200], mixed[1][:200]
    model = regressor(learners, n_estimators=20).fit(frame, y)
    assert model.score(frame, y) > 0.02
    polars = pl.DataFrame({name: frame[name].to_list() for name in frame}, strict=False)
    np.testing.assert_array_equal(model.predict(polars), model.predict(frame))
    np.testing.assert_array_equal(model.predict(frame[["c", "town", "b", "a"]]), model.predict(frame))
    new = pd.DataFrame({"a": [np.nan, 1e300], "b": [0.0, -1e300], "town": ["Oslo", None], "c": [True, False]})
    assert np.isfinite(model.predict(new)).all()


def test_each_category_has_a_term(mixed):
    frame, y = mixed
    model = regressor("linear", n_estimators=60).fit(frame, y)
    assert "town" in {name for entry in model.chosen_ for name in entry["columns"]}
    names = model.functions_.design.names(model.schema_)
    assert {"a", "a is missing", "town = Rye"} <= set(names)


def test_sparse_input_gives_the_same_model(numbers):
    X, y = numbers
    X = np.where(np.abs(X) < 0.7, 0, X)
    for learners in ("stumps", "linear_pairs", "splines"):
        dense, sparse = regressor(learners).fit(X, y), regressor(learners).fit(csr_array(X), y)
        assert dense.fingerprint() == sparse.fingerprint()


@pytest.mark.parametrize("learners", [*NAMES, ["linear", "splines", "stumps"]], ids=str)
def test_models_are_kept(mixed, learners):
    frame, y = mixed[0][:120], mixed[1][:120]
    for model in (
        regressor(learners, early_stopping=True).fit(frame, y),
        classifier(learners, n_estimators=4).fit(frame, np.digitize(y, [0, 1.5])),
        classifier(learners, n_estimators=4, loss="exponential").fit(frame, y > 1),
    ):
        file = io.BytesIO()
        model.save(file)
        again = spinney.load(io.BytesIO(file.getvalue()))
        assert again.fingerprint() == model.fingerprint()
        assert again.chosen_ == model.chosen_
        for name in ("train_score_", "steps_", "gains_"):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame))
        predictor = spinney.load_predictor(io.BytesIO(file.getvalue()))
        np.testing.assert_array_equal(predictor.predict(frame), model.predict(frame))
        handle = model.to_predictor()
        rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()[:12]
        assert [handle.predict(row) for row in rows] == model.predict(frame).tolist()[:12]


def test_settings_of_learners_are_kept(mixed):
    frame, y = mixed[0][:120], mixed[1][:120]
    file = io.BytesIO()
    regressor([Trees(n_splits=2), "linear", KernelRidge(2.0)], n_estimators=3).fit(frame, y).save(file)
    again = spinney.load(io.BytesIO(file.getvalue()))
    assert repr(again.learners) == "[Trees(n_splits=2), 'linear', KernelRidge(alpha=2.0)]"
    assert again.fit(frame, y).learners_ == ["Trees(n_splits=2)", "linear", "KernelRidge(alpha=2.0)"]


@pytest.mark.slow
def test_any_number_of_threads_gives_the_same_model(mixed):
    frame, y = mixed
    for learners in (*NAMES, ["linear", "splines", "trees"]):
        prints = {regressor(learners, n_jobs=n, subsample=0.7).fit(frame, y).fingerprint() for n in (1, 2, 5)}
        assert len(prints) == 1


def test_weight_two_is_a_row_twice(numbers):
    X, y = numbers[0][:120], numbers[1][:120]
    weight = np.random.RandomState(5).randint(0, 3, len(y)).astype(float)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    for learners in ("stumps", "linear_pairs", "logistic", "splines", KernelRidge(max_rows=2000)):
        weighted = regressor(learners).fit(X, y, sample_weight=weight)
        repeated = regressor(learners).fit(X[rows], y[rows])
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6, atol=1e-8)


def test_early_stopping_keeps_the_best_round(numbers):
    X, y = numbers
    noisy = y + np.random.RandomState(0).randn(len(y))
    model = regressor("trees", n_estimators=300, learning_rate=0.5, early_stopping=True, validation_fraction=0.4)
    model.fit(X, noisy)
    assert model.n_iter_ == model.validation_score_.argmin() + 1 < len(model.validation_score_) < 300
    given = regressor("trees", n_estimators=300, learning_rate=0.5, early_stopping=True)
    given.fit(X[:200], noisy[:200], X_val=X[200:], y_val=noisy[200:])
    best = given.n_iter_ - 1
    expected = np.mean((given.predict(X[200:]) - noisy[200:]) ** 2)
    assert given.validation_score_[best] == pytest.approx(expected)
    scored = classifier("stumps", early_stopping=True, scoring="roc_auc", n_estimators=20).fit(X, y > 0.5)
    assert (scored.validation_score_ < -0.5).all()


@pytest.mark.parametrize(
    "model",
    [
        regressor("stumps", n_estimators=3),
        classifier("stumps", n_estimators=3),
        spinney.AdaBoostRegressor(n_estimators=3, random_state=0),
        spinney.AdaBoostRegressor(Ridge(), n_estimators=3, random_state=0),
        spinney.AdaBoostClassifier(n_estimators=3, random_state=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("given", [False, True])
def test_a_user_metric_gets_the_validation_rows(numbers, model, given):
    X, y = numbers
    frame = pd.DataFrame(X, columns=list("abcde"))
    target = y > 0.5 if hasattr(model, "predict_proba") else y
    seen = []

    def metric(fitted, rows, actual):
        seen.append(rows)
        return -float(np.mean(np.asarray(fitted.predict(rows)) != actual))

    model = clone(model).set_params(scoring=metric, early_stopping=True)
    later = {"X_val": frame[300:], "y_val": target[300:]} if given else {}
    model.fit(frame[:300], target[:300], **later)
    source = frame[300:] if given else frame[:300]
    assert all(list(rows.columns) == list("abcde") and set(rows.index) <= set(source.index) for rows in seen)
    assert len(seen[0]) == (100 if given else 30)


def test_staged_predictions_end_in_the_prediction(numbers):
    X, y = numbers[0][:150], numbers[1][:150]
    model = regressor(["linear", "trees", "kernel_ridge"]).fit(X, y)
    *_, last = model.staged_predict(X)
    np.testing.assert_array_equal(last, model.predict(X))
    classes = np.digitize(y, [0, 1])
    three = classifier("splines").fit(X, classes)
    *_, last = three.staged_decision_function(X)
    np.testing.assert_array_equal(last, three.decision_function(X))
    assert len(list(three.staged_predict_proba(X))) == three.n_iter_


# ---- shapes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "learners", ["stumps", "linear", "logistic", "splines", ["linear", "stumps", "splines"]], ids=str
)
def test_shapes_add_up_to_the_model(mixed, learners):
    frame, y = mixed
    model = regressor(learners, n_estimators=30).fit(frame, y)
    shapes = model.shapes()
    assert [shape.span for shape in shapes] == sorted((shape.span for shape in shapes), reverse=True)
    total = np.full(len(frame), model.predict(frame).mean())
    for shape in shapes:
        column = frame[shape.column]
        for i, value in enumerate(column):
            if pd.isna(value):
                total[i] += shape.missing
            elif shape.at.dtype.kind == "O":
                total[i] += shape.adds[list(shape.at).index(value)]
            elif shape.is_stepped:
                total[i] += shape.adds[np.searchsorted(shape.at, float(value))]
            else:
                total[i] += np.interp(float(value), shape.at, shape.adds)
    np.testing.assert_allclose(total, model.predict(frame), atol=0.05)


def test_shapes_of_a_class(numbers):
    X, y = numbers
    model = classifier("stumps").fit(X, np.array(["low", "mid", "high"])[np.digitize(y, [0, 1])])
    assert model.shapes("mid")[0].column in {"x0", "x1", "x2"}
    with pytest.raises(ValueError, match="label must be the class of the score"):
        model.shapes()
    with pytest.raises(ValueError, match="label must be the class of the score, one of"):
        model.shapes("none")


def test_a_function_of_two_columns_has_no_shape(numbers):
    X, y = numbers
    with pytest.raises(ValueError, match="A function of the model uses 'x0' and 'x"):
        regressor(Trees(max_depth=3)).fit(X, y).shapes()
    with pytest.raises(ValueError, match="has one score"):
        regressor("stumps").fit(X, y).shapes("a")


def test_shapes_are_drawn(mixed):
    pytest.importorskip("matplotlib").use("agg")
    import matplotlib.pyplot as plt

    frame, y = mixed
    figure = regressor("splines", n_estimators=40).fit(frame, y).plot_shapes()
    titles = [ax.get_title() for ax in figure.axes if ax.get_visible()]
    assert set(titles) == {"a", "b", "town", "c"}
    plt.close(figure)


def test_importances_name_the_columns_that_matter(numbers):
    X, y = numbers
    for learners in ("stumps", "splines", "linear_pairs"):
        importances = regressor(learners, n_estimators=40).fit(X, y).feature_importances_
        assert importances.sum() == pytest.approx(1)
        assert importances[:3].sum() > 0.9


# ---- requests ---------------------------------------------------------------------------------------------


def test_learners_are_parameters(numbers):
    X, y = numbers
    search = GridSearchCV(regressor(Trees()), {"learners__max_depth": [1, 3]}, cv=3).fit(X, y)
    assert search.best_params_ == {"learners__max_depth": 3}
    assert clone(regressor([Linear(2), "stumps"])).learners[0].n_features == 2


@pytest.mark.parametrize(
    ("learners", "error", "message"),
    [
        ("stump", ValueError, "learners"),
        (["stump"], ValueError, "learners has no name 'stump'. Names are 'stumps'"),
        ([], ValueError, "learners is empty"),
        ([3], TypeError, "learners must be names"),
        (Trees(max_depth=0), ValueError, "max_depth"),
        (Splines(degrees_of_freedom=0.5), ValueError, "degrees_of_freedom"),
    ],
    ids=str,
)
def test_invalid_learners_are_refused(numbers, learners, error, message):
    X, y = numbers
    with pytest.raises(error, match=message):
        regressor(learners).fit(X, y)


def test_misspelt_parameters_of_a_learner_are_refused():
    with pytest.raises(TypeError, match="Did you mean 'max_depth'"):
        Trees(max_dept=3)


def test_a_table_that_does_not_vary_gives_the_constant(numbers):
    _, y = numbers
    for learners in NAMES:
        model = regressor(learners, n_estimators=2).fit(np.ones((len(y), 2)), y)
        np.testing.assert_allclose(model.predict(np.ones((3, 2))), y.mean(), rtol=1e-9)


def test_an_interrupted_fit_leaves_nothing_or_what_is_done(numbers):
    X, y = numbers

    def stop(progress):
        if progress["round"] == 4:
            raise KeyboardInterrupt

    model = regressor("stumps", callbacks=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "functions_")
    with pytest.warns(UserWarning, match="interrupted after 4 of 15 rounds"):
        model.set_params(keep_interrupted=True).fit(X, y)
    assert model.n_iter_ == 4


# ---- Shapley values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["stumps", "trees", "linear", "splines", ["trees", "splines", "logistic"]])
@pytest.mark.parametrize("given", [False, True])
def test_shapley_values_add_up_to_the_scores(learner, given):
    X, y = shap_table()
    background = X[:7] if given else None
    for model, target in (
        (spinney.FunctionalBoostingRegressor(learner, n_estimators=6), y),
        (spinney.FunctionalBoostingClassifier(learner, n_estimators=4), (y > 0).astype(int)),
        (spinney.FunctionalBoostingClassifier(learner, n_estimators=3), np.digitize(y, [-0.5, 0.5])),
    ):
        model.fit(X, target)
        explained = model.shap_values(X[:9], background=background)
        scores = model.decision_function(X[:9]) if hasattr(model, "classes_") else model.predict(X[:9])
        np.testing.assert_allclose(explained.predictions, scores, atol=1e-12)
        if given:  # base: the mean score of the background
            mean = model.decision_function(X[:7]) if hasattr(model, "classes_") else model.predict(X[:7])
            np.testing.assert_allclose(explained.base_value, mean.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("learner", ["stumps", "trees", ["splines", "trees"]])
def test_shapley_values_are_the_mean_over_all_orders(learner):
    X, y = shap_table()
    model = spinney.FunctionalBoostingRegressor(learner, n_estimators=5).fit(X, y)
    background, row = X[:4], X[11]
    expected = np.zeros(3)
    for order in permutations(range(3)):
        known = background.copy()
        before = model.predict(known).mean()
        for j in order:
            known[:, j] = row[j]
            after = model.predict(known).mean()
            expected[j] += (after - before) / 6
            before = after
    found = model.shap_values(X[11:12], background=background)
    np.testing.assert_allclose(found.values[0], expected, atol=1e-12)


def test_steps_of_several_columns_that_are_no_trees_are_not_parted():
    X, y = shap_table()
    model = spinney.FunctionalBoostingRegressor("linear_pairs", n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="of these only trees have Shapley"):
        model.shap_values(X)


def test_a_step_of_no_column_is_part_of_the_base():
    X, y = np.ones((6, 2)), np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    model = spinney.FunctionalBoostingRegressor("linear", n_estimators=3, subsample=0.5, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.shap_values(X).predictions, model.predict(X), atol=1e-12)


def test_squares_that_are_no_numbers_are_not_formed():
    X = np.array([[-3e200, 1e-211], [4e200, 3e-211], [1e200, -2e-211], [0.0, 4e-211]])
    model = spinney.FunctionalBoostingRegressor(["stumps", "linear"], n_estimators=2)
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        model.fit(X, np.array([-7e76, 1e77, 0.0, 3e76]))
    assert np.isfinite(model.functions_.design.scale).all()
    assert len(model.functions_.design) == 2
    assert np.isfinite(model.gains_).all()


def shap_table():
    X = np.random.default_rng(3).normal(size=(60, 3))
    return X, X[:, 0] * (X[:, 1] > 0) + np.sin(X[:, 2])


def test_no_knot_of_a_spline_is_minus_zero():
    """Which of equal numbers `numpy.unique` returns is chance, and a model must not depend on it."""
    x = np.r_[np.full(3, -0.0), np.full(3, 0.0), 1.0, 2.0, 3.0]
    model = spinney.FunctionalBoostingRegressor(n_estimators=1, learners="splines").fit(-x[:, None], x)
    knots = model.functions_.parts[0].bases[0].knots
    assert (knots == 0).sum() == 1
    assert not np.signbit(knots[knots == 0]).any()
