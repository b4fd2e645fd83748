"""Linear leaves: reference implementation, reproducibility, and incompatible settings."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import spinney
from oracle import boosting_lines as slow
from oracle.boosting import gradients
from oracle.saved import through_bytes
from spinney._boosting import fit
from spinney._boosting.options.recipe import resolve

RNG = np.random.default_rng(3)
N = 240
X = RNG.normal(size=(N, 4))
X[::11, 2] = np.nan
X[5, 0] = np.inf
BENT = np.where(X[:, 1] > 0, 2 * X[:, 1], -X[:, 1]) + np.clip(X[:, 0], -3, 3) * (X[:, 3] > 0)
Y = BENT + 0.1 * RNG.normal(size=N)
TWO, THREE = (Y > 1).astype(int), np.digitize(Y, [0, 1.5])
WEIGHT = RNG.integers(1, 4, size=N).astype(float)
TOWNS = np.array(["a", "b", "c"])[RNG.integers(3, size=N)]
MIXED = pd.DataFrame({"size": X[:, 1], "town": TOWNS, "age": X[:, 2]})
SMALL = {"n_estimators": 5, "max_leaf_nodes": 5, "linear_leaves": True, "random_state": 0}


def values(**parameters):
    return spinney.GradientBoostingRegressor(**(SMALL | parameters))


def classes(**parameters):
    return spinney.GradientBoostingClassifier(**(SMALL | parameters))


# ---- weights -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters", [{}, {"n_estimators": "auto", "linear_leaves": "auto", "max_leaf_nodes": "auto"}]
)
@pytest.mark.parametrize("make", [values, classes])
def test_the_unit_of_the_weights_does_not_matter(make, parameters):
    target, weight = (Y, WEIGHT / 7) if make is values else (TWO, WEIGHT / 7)
    answers = [
        getattr(make(**parameters).fit(X, target, w), "predict_proba" if make is classes else "predict")(X)
        for w in (weight, 4 * weight)
    ]
    np.testing.assert_array_equal(*answers)


# ---- reference implementation ------------------------------------------------------------------------------


def check_against_reference(model, table, gradient, hessian, l2, rate, bounded=lambda size: size, in_all=False):
    """Compare the lines of the first tree; return how many there are."""
    tree = model.boosting_.engine.tree(0)
    lines, is_number, n_lines = tree.linear_leaves(), np.ones(table.shape[1], dtype=bool), 0
    leaves = model.apply(table).reshape(len(table), -1)[:, 0]
    for leaf in np.flatnonzero(tree.feature < 0):
        columns = list(range(table.shape[1])) if in_all else slow.columns_on_path(tree, leaf, is_number)
        own = leaves == leaf
        line = slow.line_of(table[own][:, columns], gradient[own], hessian[own], l2, rate, bounded)
        terms = slice(lines["begin"][leaf], lines["begin"][leaf + 1])
        if line is None:
            assert terms.start == terms.stop
            continue
        n_lines += 1
        base, slope, middle, low, high, which = line
        assert np.array_equal(lines["feature"][terms], np.array(columns)[which])
        np.testing.assert_allclose(lines["base"][leaf], base, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(lines["slope"][terms], slope, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(lines["middle"][terms], middle, rtol=1e-6, atol=1e-7)
        assert np.array_equal(lines["low"][terms], low)
        assert np.array_equal(lines["high"][terms], high)
    return n_lines


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "weighted"])
def test_lines_of_values_are_those_of_the_reference(weight):
    model = values(n_estimators=1, learning_rate=0.7, linear_leaves={"l2": 2.0}).fit(X, Y, weight)
    by_row = np.ones(N) if weight is None else weight
    gradient = (model.boosting_.start[0] - Y) * by_row
    assert check_against_reference(model, X, gradient, by_row, 2.0 * by_row.mean(), 0.7) >= 3


def test_lines_in_all_columns_are_those_of_the_reference(monkeypatch):
    monkeypatch.setattr(fit, "resolve", lambda *args: replace(resolve(*args), is_linear=True))
    many = np.hstack([X, RNG.normal(size=(N, 8))])  # more than are summed at a time
    model = values(n_estimators=1, learning_rate=0.7, linear_leaves={"l2": 2.0}).fit(many, Y)
    gradient = model.boosting_.start[0] - Y
    assert check_against_reference(model, many, gradient, np.ones(N), 2.0, 0.7, in_all=True) >= 3
    constant = values(min_impurity_decrease=1e9).fit(many, Y)  # no tree has a split
    assert not constant.boosting_.has_linear_leaves


def test_lines_of_two_classes_are_those_of_the_reference_and_long_steps_are_tempered():
    rare = (np.arange(N) % 40 == 0).astype(int) | (X[:, 1] > 1.9)
    for y, l2 in ((TWO, 1.0), (rare.astype(int), 0.01)):
        model = classes(n_estimators=1, learning_rate=0.5, linear_leaves={"l2": l2}).fit(X, y)
        gradient, hessian = gradients("logistic", y, np.full(N, model.boosting_.start[0]))
        assert check_against_reference(model, X, gradient, hessian, l2, 0.5, slow.tempered) >= 3


def test_predictions_are_those_of_the_linear_leaves():
    model = values(n_estimators=1, learning_rate=1.0).fit(X, Y)
    tree = model.boosting_.engine.tree(0)
    lines, new = tree.linear_leaves(), np.vstack([X, 100 * X])
    expected = tree.value[model.apply(new)[:, 0]].copy()
    for i, leaf in enumerate(model.apply(new)[:, 0]):
        terms = slice(lines["begin"][leaf], lines["begin"][leaf + 1])
        if terms.start < terms.stop:
            parts = [lines[name][terms] for name in ("slope", "middle", "low", "high")]
            line = (lines["base"][leaf], *parts, lines["feature"][terms])
            expected[i] = slow.line_prediction(line, new[i : i + 1], expected[i])[0]
    np.testing.assert_allclose(model.predict(new), model.boosting_.start[0] + expected, rtol=1e-12)


# ---- the same everywhere -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "table", "y"),
    [
        (values, X, Y),
        (classes, X, TWO),
        (classes, X, THREE),
        (values, MIXED, Y),
        (lambda **p: values(loss="normal", **p), X, Y),
        (lambda **p: values(n_estimators="auto", n_iter_no_change=3, **p), MIXED, Y),
        (lambda **p: values(sampling="goss", growth={"n_parallel_trees": 1, "order": "symmetric"}, **p), X, Y),
        (lambda **p: values(subsample=0.6, growth={"n_parallel_trees": 2}, **p), X, Y),
        (lambda **p: values(loss=lambda y, f: (y - f) ** 2 / 2, **p), X, Y),
    ],
    ids=["values", "two classes", "classes", "mixed", "normal", "default settings", "goss", "drawn", "own loss"],
)
def test_identical_models_for_any_threads_in_files_and_row_by_row(make, table, y):
    models = [make(n_jobs=n).fit(table, y) for n in (1, 3)]
    assert len({model.fingerprint() for model in models}) == 1
    model = models[0]
    assert model.boosting_.has_linear_leaves
    *_, last = model.staged_predict(table)
    np.testing.assert_allclose(last, model.predict(table)) if y is Y else None
    handle = model.to_predictor()
    rows = table[:9].to_dict("records") if isinstance(table, pd.DataFrame) else list(table[:9])
    answer = "predict" if y is Y else "predict_proba"
    assert np.array_equal([getattr(handle, answer)(row) for row in rows], getattr(model, answer)(table[:9]))
    if "lambda" not in str(getattr(model, "loss", "")):
        assert np.array_equal(getattr(through_bytes(model), answer)(table), getattr(model, answer)(table))


def test_the_scores_of_the_fit_are_predictions_of_the_model():
    model = values(n_estimators=6, subsample=0.5).fit(X, Y, X_val=X[::3], y_val=Y[::3])
    np.testing.assert_allclose(model.train_score_[model.n_iter_ - 1], np.mean((model.predict(X) - Y) ** 2))
    held = np.mean((model.predict(X[::3]) - Y[::3]) ** 2)
    np.testing.assert_allclose(model.validation_score_[model.n_iter_ - 1], held)
    first = values(n_estimators=3, warm_start=True).fit(X, Y)
    assert first.set_params(n_estimators=7).fit(X, Y).fingerprint() == values(n_estimators=7).fit(X, Y).fingerprint()


def test_trees_of_the_model_add_up_to_it():
    model = values().fit(X, Y)
    trees = [model.estimators_[r, 0] for r in range(5)]
    np.testing.assert_allclose(sum(tree.predict(X) for tree in trees) + model.boosting_.start[0], model.predict(X))
    assert trees[1].to_predictor().predict(X[3]) == trees[1].predict(X[3:4])[0]


# ---- what they do --------------------------------------------------------------------------------------------------


def test_slopes_are_learned_in_few_rounds_and_do_not_run_away():
    line = np.linspace(0, 1, 200)[:, np.newaxis]
    y = np.where(line[:, 0] < 0.5, 3 * line[:, 0], 4 - 5 * line[:, 0])
    options = {"n_estimators": 20, "max_leaf_nodes": 2, "learning_rate": 0.5}
    steep = {"linear_leaves": {"l2": 0.0}}
    error = [
        np.abs(values(**options, **lines).fit(line, y).predict(line) - y).mean()
        for lines in (steep, {"linear_leaves": False})
    ]
    assert 2 * error[0] < error[1]
    model = values(**options, **steep).fit(line, y)
    far, edge = model.predict([[-100.0], [100.0], [np.inf]]), model.predict([[0.0], [1.0], [1.0]])
    assert np.array_equal(far, edge)


def test_columns_far_from_zero_and_columns_that_say_the_same():
    near = values().fit(X[:, :2], Y)
    far = values().fit(X[:, :2] + 1e6, Y)
    np.testing.assert_allclose(far.predict(X[:, :2] + 1e6), near.predict(X[:, :2]), rtol=1e-5, atol=1e-5)
    twice = np.column_stack([X[:, 1], X[:, 1], X[:, 1] * 3 + 1, np.ones(N)])
    model = values(linear_leaves={"l2": 0.0}, max_features=0.5).fit(twice, Y)
    assert np.isfinite(model.predict(twice * 50)).all()


def test_models_are_explained_by_asking_them():
    model = values().fit(X, Y)
    grid = spinney.partial_dependence(model, X, [1])
    brute = spinney.partial_dependence(model, X, [1], method="brute")
    np.testing.assert_allclose(grid.average, brute.average)
    assert spinney.permutation_importance(model, X, Y, n_repeats=1) is not None


def test_text_rules_and_dicts_show_the_lines():
    model = values(n_estimators=1).fit(MIXED, Y)
    tree = model.estimators_[0, 0]
    assert "× (size −" in spinney.export_text(tree)
    assert "× (size −" in str(spinney.rules(tree))
    assert "× (size −" in spinney.explain_row(tree, MIXED.iloc[1].to_dict())
    leaf = spinney.to_dict(tree)["tree"]
    while "left" in leaf:
        leaf = leaf["left"]
    assert {"column", "index", "slope", "middle", "low", "high"} == set(leaf["linear"]["terms"][0])


# ---- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"loss": "absolute_error"}, "second derivatives"),
        ({"loss": "quantile"}, "second derivatives"),
        ({"monotonic_cst": [1, 0, 0, 0]}, "monotonic_cst"),
        ({"regularization": {"l1": 1.0}}, "l1 of regularization"),
        ({"regularization": {"hierarchical_shrinkage": 3.0}}, "hierarchical_shrinkage"),
        ({"dart": 0.1}, "dart"),
    ],
    ids=str,
)
def test_incompatible_settings_are_refused(given, word):
    with pytest.raises(ValueError, match=word):
        values(**given).fit(X, Y)
    with pytest.raises(ValueError, match="a linear leaf has one output"):
        classes(leaves="vector").fit(X, THREE)


def test_constraints_and_refitting_are_refused():
    model = values().fit(X, Y)
    with pytest.raises(ValueError, match="Monotonicity cannot be proved for linear leaves"):
        model.verify_constraints([1, 0, 0, 0])
    with pytest.raises(ValueError, match="refit changes the values of leaves"):
        model.refit(X, Y)
    for write in (
        spinney.to_lightgbm,
        spinney.to_xgboost,
        spinney.to_pmml,
        lambda model: spinney.to_sql(model, "rows"),
    ):
        with pytest.raises(ValueError, match=r"Use spinney\.to_onnx or spinney\.to_c, or fit with linear_leaves=False"):
            write(model)


def test_words_of_lightgbm_lead_to_lines():
    with pytest.raises(TypeError, match="'linear_leaves'"):
        spinney.GradientBoostingRegressor(linear_tree=True)
    with pytest.raises(TypeError, match=r"linear_leaves=spinney.LinearLeaves\(l2=...\)"):
        spinney.GradientBoostingRegressor(linear_lambda=1.0)


def test_recursion_follows_linear_leaves():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (400, 1))
    alone = spinney.GradientBoostingRegressor(n_estimators=10, linear_leaves=True).fit(x, np.sin(x[:, 0]) + x[:, 0])
    assert alone._fitted.has_linear_leaves
    grid = np.linspace(-1.9, 1.9, 30)
    found = spinney.partial_dependence(alone, x, 0, grid=grid, method="recursion")
    np.testing.assert_allclose(found.average, alone.predict(grid[:, np.newaxis]), rtol=1e-9, atol=1e-12)
    table = rng.uniform(-2, 2, (2000, 2))  # independent columns: the curve is that of the rows, up to a constant
    both = spinney.GradientBoostingRegressor(n_estimators=60, linear_leaves=True).fit(
        table, table[:, 0] * 3 + table[:, 1]
    )
    curves = [
        spinney.partial_dependence(both, table, 0, grid=grid, method=how).centred().average
        for how in ("recursion", "brute")
    ]
    np.testing.assert_allclose(curves[0], curves[1], atol=0.02 * np.ptp(curves[1]))
