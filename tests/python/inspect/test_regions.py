"""Decision regions, errors against members, tuning curves and rounds of AdaBoost."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import spinney
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KernelDensity, KNeighborsRegressor
from spinney import datasets

mpl.use("agg")
import matplotlib.pyplot as plt
from matplotlib.collections import PathCollection


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def diagonal():
    return datasets.make_diagonal(80, random_state=0)


MODELS = {
    "tree": spinney.DecisionTreeClassifier(),
    "forest": spinney.RandomForestClassifier(5, random_state=0),
    "extra-trees": spinney.ExtraTreesClassifier(5, random_state=0),
    "AdaBoost": spinney.AdaBoostClassifier(n_estimators=5),
    "bagging": spinney.BaggingClassifier(spinney.KNeighborsClassifier(1), 5, random_state=0),
    "boosting": spinney.GradientBoostingClassifier(n_estimators=5),
    "neighbours": spinney.KNeighborsClassifier(3),
    "cells": spinney.HistogramClassifier(0.3),
    "SVM": spinney.SVC(),
    "perceptron": spinney.Perceptron(averaged=True, random_state=0),
    "stack": spinney.StackingClassifier(["tree", "linear"], cv=3, random_state=0),
    "theirs": LogisticRegression(),
}


@pytest.mark.parametrize("kind", [np.asarray, lambda X: pd.DataFrame(X, columns=["wide", "tall"])])
def test_regions_of_any_classifier(diagonal, kind):
    X, y = diagonal
    X = kind(X)
    figure = spinney.plot_regions(MODELS, X, np.where(y > 0, "up", "down"), n_points=20)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in shown] == list(MODELS)
    for ax, model in zip(shown, MODELS.values(), strict=True):
        fitted = type(model)(**model.get_params(deep=False)).fit(X, np.where(y > 0, "up", "down"))
        (image,) = ax.images
        colours = image.get_array()
        low, high, bottom, top = image.get_extent()
        grid = np.array(np.meshgrid(np.linspace(low, high, 20), np.linspace(bottom, top, 20))).reshape(2, -1).T
        predicted = fitted.predict(kind(grid)).reshape(20, 20)
        is_blue = colours[..., 2] > colours[..., 0]  # the first class is blue, the second orange
        assert_array_equal(is_blue[colours.std(axis=2) > 1e-9], (predicted == "down")[colours.std(axis=2) > 1e-9])
        assert sum(len(points.get_offsets()) for points in ax.collections if hasattr(points, "get_sizes")) >= 80
    assert shown[0].get_ylabel() == ("tall" if isinstance(X, pd.DataFrame) else "x1")


def test_a_parameter_varies_over_panels(diagonal):
    X, y = diagonal
    figure = spinney.plot_regions(spinney.DecisionTreeClassifier(), X, y, vary={"max_leaf_nodes": [2, 5]}, n_points=30)
    n_colours = [len(np.unique(ax.images[0].get_array().reshape(-1, 3), axis=0)) for ax in figure.axes]
    assert [ax.get_title() for ax in figure.axes] == ["max_leaf_nodes=2", "max_leaf_nodes=5"]
    assert n_colours[0] == 2 < n_colours[1]


def test_stages_of_an_ensemble(diagonal):
    X, y = diagonal
    for model in (
        spinney.AdaBoostClassifier(n_estimators=6),
        spinney.RandomForestClassifier(6, random_state=0),
        spinney.BaggingClassifier(n_estimators=6, random_state=0),
    ):
        figure = spinney.plot_regions(model, X, y, stages=[1, 6], n_points=20)
        whole = spinney.plot_regions(model.fit(X, y), X, y, n_points=20)
        assert_allclose(figure.axes[1].images[0].get_array(), whole.axes[0].images[0].get_array(), atol=1e-9)
    with pytest.raises(ValueError, match="stages must be numbers from 1 to 6, not 7"):
        spinney.plot_regions(model, X, y, stages=[7], n_points=20)
    with pytest.raises(TypeError, match="staged_predict"):
        spinney.plot_regions(spinney.KNeighborsClassifier(), X, y, stages=[1], n_points=20)


def test_a_curve_along_one_column():
    x = np.linspace(0, 6, 50)[:, None]
    y = np.sin(x[:, 0])
    tree = spinney.DecisionTreeRegressor(max_leaf_nodes=4).fit(x, y)
    figure = spinney.plot_regions([tree, KNeighborsRegressor(3)], x, y)
    rows, curve = figure.axes[0].get_lines()
    assert_array_equal(rows.get_ydata(), y)
    assert_allclose(curve.get_ydata(), tree.predict(curve.get_xdata()[:, None]))
    assert len(np.unique(curve.get_ydata())) == 4
    assert figure.axes[0].get_ylabel() == "target"
    classes = spinney.plot_regions(spinney.DecisionTreeClassifier(), x, y > 0).axes[0]
    assert [label.get_text() for label in classes.get_yticklabels()] == ["False", "True"]


def test_a_map_of_values_has_one_scale():
    X = np.random.RandomState(0).uniform(size=(60, 2))
    figure = spinney.plot_regions([spinney.DecisionTreeRegressor(), spinney.LinearRegressor()], X, X[:, 0], n_points=20)
    assert len(figure.axes) == 3  # with the colours
    limits = {ax.images[0].get_clim() for ax in figure.axes[:2]}
    assert limits == {(X[:, 0].min(), X[:, 0].max())}


def test_detectors_of_outliers_show_their_boundary(diagonal):
    X = diagonal[0]
    model = spinney.OneClassSVM(nu=0.2)
    figure = spinney.plot_regions(
        [model, spinney.IsolationForest(n_estimators=5, random_state=0).fit(X)], X, n_points=20
    )
    shown, other = figure.axes[:2]
    across, up = (np.linspace(*limits, 20) for limits in (shown.get_xlim(), shown.get_ylim()))
    points = np.column_stack([values.ravel() for values in np.meshgrid(across, up)])
    expected = model.fit(X).decision_function(points)
    assert_allclose(np.asarray(shown.images[0].get_array()).ravel(), expected)
    for ax in (shown, other):
        points = ax.collections[1]  # after the boundary
        assert_allclose(points.get_offsets(), X)
    assert figure.axes[2].get_ylabel() == "decision function"


def test_densities_are_drawn_by_bandwidth():
    x = np.random.default_rng(0).normal(size=(60, 1))
    for model, name, widths in (
        (spinney.HistogramDensity(), "bin_width", [0.2, 1.0]),
        (KernelDensity(), "bandwidth", [0.1, 0.5]),
    ):
        figure = spinney.plot_regions(model, x, vary={name: widths})
        for ax, width in zip(figure.axes, widths, strict=True):
            marks, curve = ax.get_lines()
            assert_allclose(marks.get_xdata(), x[:, 0])
            fitted = clone(model).set_params(**{name: width}).fit(x)
            assert_allclose(curve.get_ydata(), np.exp(fitted.score_samples(curve.get_xdata()[:, None])))
        assert figure.axes[0].get_ylabel() == "density"
    plane = spinney.plot_regions(spinney.HistogramDensity(0.5), np.column_stack([x, -x]), n_points=10)
    assert plane.axes[1].get_ylabel() == "density"
    with pytest.raises(ValueError, match="is not fitted"):
        spinney.plot_regions(spinney.KNeighborsRegressor(), x)


def test_rows_with_missing_values_have_no_points(recwarn):
    X, y = datasets.load_penguins(as_frame="pandas")
    names = ["bill_length_mm", "body_mass_g"]
    ax = spinney.plot_regions(spinney.DecisionTreeClassifier(max_depth=2), X, y, features=names, n_points=20).axes[0]
    ax.figure.canvas.draw()
    points = [part for part in ax.collections if isinstance(part, PathCollection)]
    assert sum(len(part.get_offsets()) for part in points) == X[names].notna().all(axis=1).sum()
    assert not recwarn.list


def test_other_columns_are_fixed_at_a_typical_row():
    X, y = datasets.load_penguins(as_frame="pandas")
    model = spinney.DecisionTreeClassifier().fit(X, y)
    figure = spinney.plot_regions(model, X, y, features=["bill_length_mm", "body_mass_g"], n_points=20)
    assert figure.axes[0].get_xlabel() == "bill_length_mm"
    for arguments, words in (
        ({}, "X has 7 columns"),
        ({"features": ["island"]}, "columns of numbers"),
        ({"features": ["bill_length_mm"], "vary": {"a": [1], "b": [2]}}, "Vary one parameter"),
    ):
        with pytest.raises(ValueError, match=words):
            spinney.plot_regions(model, X, y, **arguments)
    with pytest.raises(ValueError, match="is not fitted"):
        spinney.plot_regions(spinney.DecisionTreeClassifier(), X, features=["bill_length_mm"])


def test_regions_are_readable_in_the_dark(diagonal):
    X, y = diagonal
    with plt.style.context("dark_background"):
        ax = spinney.plot_regions(spinney.SVC(), X, y, n_points=20).axes[0]
        of_values = spinney.plot_regions(spinney.OneClassSVM(nu=0.2), X, n_points=20).axes[0]
    assert ax.images[0].get_array().mean() < 0.4
    edges = ax.collections[-1].get_edgecolors()
    assert edges[0][:3].mean() > 0.8
    darkest, brightest = of_values.images[0].get_cmap()([0.0, 1.0])[:, :3].mean(axis=1)
    assert darkest < brightest < 0.4  # under a light boundary
    assert of_values.collections[0].get_edgecolor()[0][:3].mean() > 0.8


# ---- errors ---------------------------------------------------------------------------------------------------------


def curves_of(ax):
    return {line.get_label(): np.asarray(line.get_ydata()) for line in ax.get_lines()}


@pytest.mark.parametrize(
    "model",
    [
        spinney.RandomForestClassifier(30, oob_score=True, random_state=0),
        spinney.BaggingClassifier(n_estimators=30, oob_score=True, random_state=0),
        spinney.GradientBoostingClassifier(n_estimators=6),
        spinney.FunctionalBoostingClassifier(n_estimators=6),
    ],
)
def test_errors_by_members(model):
    X, y = datasets.make_nested_spheres(400, random_state=0)
    model.fit(X[:200], y[:200])
    drawn = curves_of(spinney.plot_errors(model, X[200:], y[200:], X=X[:200], y=y[:200], references={"Bayes": 0.0}))
    assert drawn["test rows"][-1] == pytest.approx(1 - model.score(X[200:], y[200:]))
    assert drawn["training rows"][-1] == pytest.approx(1 - model.score(X[:200], y[:200]))
    assert len(drawn["test rows"]) == model.n_estimators
    assert drawn["Bayes"].tolist() == [0, 0]
    if hasattr(model, "oob_curve_"):
        assert_allclose(drawn["out of bag"], model.oob_curve_)


def test_errors_of_several_models_and_lines():
    X, y = datasets.make_nested_spheres(400, random_state=0)
    boosted = spinney.AdaBoostClassifier(n_estimators=8).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    models = {"forest": spinney.RandomForestClassifier(8, random_state=0).fit(X[:200], y[:200]), "AdaBoost": boosted}
    models["tree"] = spinney.DecisionTreeClassifier().fit(X[:200], y[:200])
    drawn = curves_of(spinney.plot_errors(models, X[200:], y[200:]))
    assert list(drawn) == ["forest, test rows", "AdaBoost, test rows", "AdaBoost, validation rows", "tree"]
    assert_allclose(drawn["AdaBoost, validation rows"], drawn["AdaBoost, test rows"])
    assert drawn["tree"][0] == pytest.approx(1 - models["tree"].score(X[200:], y[200:]))


@pytest.mark.parametrize("kind", ["GradientBoosting", "FunctionalBoosting"])
def test_errors_of_the_validation_rows_of_boosting(kind):
    X, y = datasets.make_nested_spheres(300, random_state=0)
    train, validation = (X[:200], y[:200]), (X[200:], y[200:])
    for make, targets, scoring in (
        (getattr(spinney, kind + "Classifier"), (train[1], validation[1]), "accuracy"),
        (getattr(spinney, kind + "Regressor"), (train[0][:, 0] ** 2, validation[0][:, 0] ** 2), None),
    ):
        options = {"n_estimators": 12, "n_iter_no_change": 12, "keep_best": False, "early_stopping": True}
        model = make(learning_rate=0.3, scoring=scoring, **options)
        model.fit(train[0], targets[0], X_val=validation[0], y_val=targets[1])
        drawn = curves_of(spinney.plot_errors(model, validation[0], targets[1]))
        assert_allclose(drawn["validation rows"], drawn["test rows"], rtol=1e-9)
        if scoring:
            model = make(**options).fit(train[0], targets[0], X_val=validation[0], y_val=targets[1])
            assert list(curves_of(spinney.plot_errors(model, validation[0], targets[1]))) == ["test rows"]


def test_errors_of_models_that_are_not_fitted():
    X, y = datasets.make_nested_spheres(300, random_state=0)
    forest, stump = spinney.RandomForestClassifier(4, random_state=0), spinney.DecisionTreeClassifier(max_depth=1)
    fitted = forest.fit(X[:200], y[:200])
    rows = {"X": X[:200], "y": y[:200]}
    expected = curves_of(spinney.plot_errors(fitted, X[200:], y[200:], **rows))
    drawn = curves_of(spinney.plot_errors(clone(forest), X[200:], y[200:], **rows, references={"a stump": stump}))
    assert drawn.pop("a stump")[0] == pytest.approx(1 - stump.fit(X[:200], y[:200]).score(X[200:], y[200:]))
    assert_equal(drawn, expected)
    with pytest.raises(NotFittedError):
        spinney.plot_errors(clone(forest), X[200:], y[200:])


def test_errors_of_regressors_and_other_metrics():
    X = np.random.RandomState(0).uniform(size=(100, 2))
    y = X[:, 0] + X[:, 1] ** 2
    forest = spinney.RandomForestRegressor(30, oob_score=True, random_state=0).fit(X[:50], y[:50])
    ax = spinney.plot_errors(forest, X[50:], y[50:])
    assert ax.get_ylabel() == "mean squared error"
    assert curves_of(ax)["test rows"][-1] == pytest.approx(np.mean((forest.predict(X[50:]) - y[50:]) ** 2))

    def largest_error(y, predicted):
        return np.abs(y - predicted).max()

    other = spinney.plot_errors(forest, X[50:], y[50:], metric=largest_error)
    assert other.get_ylabel() == "largest error"
    assert list(curves_of(other)) == ["test rows"]


@pytest.mark.parametrize("kind", ["RandomForest", "ExtraTrees"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_stages_of_forests_end_where_the_forest_stands(kind, n_outputs):
    X, species = datasets.load_penguins(as_frame="pandas")
    y = np.array(species) if n_outputs == 1 else np.column_stack([species, X["year"].astype(str)])
    model = getattr(spinney, f"{kind}Classifier")(4, random_state=0).fit(X, y)
    stages, probas = list(model.staged_predict(X)), list(model.staged_predict_proba(X))
    assert len(stages) == 4
    assert_array_equal(stages[-1], model.predict(X))
    assert_allclose(np.hstack(probas[-1]), np.hstack(model.predict_proba(X)), atol=1e-12)
    assert_array_equal(stages[0], model[0].predict(X))
    values = getattr(spinney, f"{kind}Regressor")(4, random_state=0).fit(X, np.c_[X["year"], X["year"]][:, :n_outputs])
    assert_allclose(list(values.staged_predict(X))[-1], values.predict(X))


# ---- tuning and boosting by rounds ----------------------------------------------------------------------------------


def test_tuning_curves_are_cross_validated(diagonal):
    X, y = diagonal
    ax = spinney.plot_tuning(spinney.KNeighborsClassifier(), X, y, {"n_neighbors": [1, 5, 40]}, cv=4)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    expected = [1 - cross_val_score(spinney.KNeighborsClassifier(k), X, y, cv=folds).mean() for k in (1, 5, 40)]
    (held_out,) = [line for line in ax.get_lines() if line.get_marker() == "o" and len(line.get_xdata()) == 3]
    assert_allclose(held_out.get_ydata(), expected)
    assert ax.get_xscale() == "log"
    words = spinney.plot_tuning(
        spinney.DecisionTreeClassifier(), X, y, {"criterion": ["gini", "entropy"]}, scoring="neg_log_loss"
    )
    assert words.get_ylabel() == "log loss"
    area = spinney.plot_tuning(spinney.DecisionTreeClassifier(), X, y, {"max_depth": [1, 2]}, scoring="auc")
    assert area.get_ylabel() == "-auc"
    assert [label.get_text() for label in words.get_xticklabels()] == ["gini", "entropy"]
    for vary in ({}, {"C": []}, {"C": [1], "gamma": [1], "degree": [1]}, {"C": 1}, {"kernel": "rbf"}):
        with pytest.raises(ValueError, match="one or two parameters with a list of values"):
            spinney.plot_tuning(spinney.SVC(), X, y, vary)
    with pytest.raises(ValueError, match="'C' parameter of SVC must be"):
        spinney.plot_tuning(spinney.SVC(), X, y, {"C": [1.0, -1.0]})
    with pytest.raises(TypeError, match=r"svm is not an estimator\. Pass one"):
        spinney.plot_tuning("svm", X, y, {"C": [1.0]})


def marked(ax, marker):
    """Return the place of a mark, whose second line has the label of the legend."""
    place, of_legend = [
        line for line in ax.get_lines() if line.get_marker() == marker and line.get_linestyle() == "None"
    ]
    return (place.get_xdata()[0], place.get_ydata()[0]), of_legend.get_label()


def test_the_simplest_value_within_a_standard_error_is_marked(diagonal):
    X, y = diagonal
    values = [1, 3, 9, 27, 81]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    errors = np.array([1 - cross_val_score(spinney.KNeighborsClassifier(k), X, y, cv=folds) for k in values])
    mean, spread = errors.mean(axis=1), errors.std(axis=1, ddof=1) / np.sqrt(5)
    within = np.flatnonzero(mean <= mean.min() + spread[mean.argmin()])
    assert 1 < len(within) < 5
    for simplest, k in (("last", within[-1]), ({"n_neighbors": "first"}, within[0])):
        ax = spinney.plot_tuning(spinney.KNeighborsClassifier(), X, y, {"n_neighbors": values}, simplest=simplest)
        place, label = marked(ax, "s")
        assert_allclose(place, (values[k], mean[k]))
        assert label.endswith(f": {values[k]}")
    for wrong in ("small", {"n_neighbors": "least"}, {"C": "first"}):
        with pytest.raises(ValueError, match="'first' or 'last' for each of n_neighbors"):
            spinney.plot_tuning(spinney.KNeighborsClassifier(), X, y, {"n_neighbors": values}, simplest=wrong)


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_two_parameters_are_a_map_with_the_selected_setting(diagonal, style):
    X, y = diagonal
    tried = {"max_depth": [1, 2, 4], "min_samples_leaf": [1, 40]}
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    trees = [[spinney.DecisionTreeClassifier(max_depth=d, min_samples_leaf=n) for d in (1, 2, 4)] for n in (1, 40)]
    errors = np.array([[1 - cross_val_score(tree, X, y, cv=folds) for tree in row] for row in trees])
    mean, spread = errors.mean(axis=2), errors.std(axis=2, ddof=1) / 2
    simplest = {"max_depth": "first", "min_samples_leaf": "last"}
    with plt.style.context(style):
        ax = spinney.plot_tuning(spinney.DecisionTreeClassifier(), X, y, tried, cv=4, simplest=simplest)
        colours = {text.get_color() for text in ax.texts}
        ax.figure.canvas.draw()
    assert ax.get_position().width > 0.6  # the legend leaves space for the map
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("max_depth", "min_samples_leaf")
    assert_allclose(ax.images[0].get_array(), mean)
    assert [text.get_text() for text in ax.texts] == [f"{error:.3g}" for error in mean.T.ravel()]
    assert colours == {"#222222" if style == "default" else "#eeeeee"}
    best = np.unravel_index(mean.argmin(), mean.shape)
    points, place, _ = [line for line in ax.get_lines() if line.get_marker() == "o"]
    (x,), (y,) = place.get_data()
    assert mean[int(y), int(x)] == mean.min()
    names = [label.get_text() for label in ax.get_legend().get_texts()]
    depth, size = tried["max_depth"][int(x)], tried["min_samples_leaf"][int(y)]
    assert f"lowest: max_depth={depth}, min_samples_leaf={size}" in names
    within = mean <= mean[best] + spread[best]
    assert len(points.get_xdata()) == within.sum()
    steps = np.add.outer([1, 0], [0, 1, 2])
    (x, y), _ = marked(ax, "s")
    assert within[int(y), int(x)]
    assert steps[int(y), int(x)] == steps[within].min()


def test_long_names_of_parameters_leave_space_for_the_map(diagonal):
    tried = {"min_impurity_decrease": [0.0, 0.05, 0.1], "min_weight_fraction_leaf": [0.0, 0.02, 0.05, 0.1, 0.2]}
    ax = spinney.plot_tuning(spinney.DecisionTreeClassifier(), *diagonal, tried, cv=2, simplest="last")
    ax.figure.canvas.draw()
    colours = ax.figure.axes[1].get_position()
    assert ax.get_position().width > 0.6
    assert colours.x0 - ax.get_position().x1 < 0.1
    legend = ax.get_legend().get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= ax.figure.bbox.x1


def test_rounds_are_drawn_with_their_weights_and_numbers(diagonal):
    X, y = diagonal
    model = spinney.AdaBoostClassifier(n_estimators=6).fit(X, y)
    figure = spinney.plot_boosting_steps(model, X, y, rounds=[1, 3], n_points=20)
    first, third, last = figure.axes
    assert third.get_title().startswith(f"round 3: ε = {model.estimator_errors_[2]:.3f}")
    assert f"{model.normalizers_[:3].prod():.3f}" in third.get_title()
    assert "training error" in last.get_title()
    weights = list(model.staged_weights(X, y))[2]
    points = [part for part in third.collections if isinstance(part, PathCollection)]
    sizes = np.concatenate([part.get_sizes() for part in points])
    assert_allclose(np.sort(sizes), np.sort(20 * weights * len(weights)))
    assert (
        len(set(np.concatenate([part.get_sizes() for part in first.collections if isinstance(part, PathCollection)])))
        == 1
    )
    unfitted = spinney.plot_boosting_steps(clone(model), X, y, rounds=[1, 3], n_points=20)
    assert unfitted.axes[1].get_title() == third.get_title()
    with pytest.raises(ValueError, match="from 1 to 6"):
        spinney.plot_boosting_steps(model, X, y, rounds=[0])
    with pytest.raises(TypeError, match="AdaBoostClassifier"):
        spinney.plot_boosting_steps(spinney.RandomForestClassifier(2).fit(X, y), X, y)


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_rounds_along_one_column_are_steps_through_rows_at_their_classes(style):
    x = np.arange(10.0)[:, None]
    y = np.where(np.isin(np.arange(10), [0, 1, 2, 6, 7, 8]), "up", "down")
    model = spinney.AdaBoostClassifier(n_estimators=3).fit(x, y)
    with plt.style.context(style):
        figure = spinney.plot_boosting_steps(model, x, y, max_columns=4)
    weights = [weight for weight, _ in zip(model.staged_weights(x, y), range(3), strict=False)]
    for ax, member, weight in zip(figure.axes, [*model.estimators_, model], [*weights, None], strict=True):
        (line,) = ax.get_lines()
        predicted = member.predict(line.get_xdata()[:, None])
        assert_array_equal(line.get_ydata(), np.searchsorted(model.classes_, predicted))
        drawn = [part for part in ax.collections if len(part.get_offsets())]
        assert [part.get_offsets()[:, 1].tolist() for part in drawn] == [[0] * 4, [1] * 6]
        for part, label in zip(drawn, model.classes_, strict=True):
            rows = np.flatnonzero(y == label)
            assert_array_equal(part.get_offsets()[:, 0], rows)
            if weight is not None:
                assert_allclose(part.get_sizes(), 200 * weight[rows])
                is_thick = np.array(part.get_linewidths()) > 1
                assert_array_equal(is_thick, member.predict(x[rows]) != label)
    assert "training error 0.000" in figure.axes[3].get_title()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["down", "up", "misclassified"]
    with pytest.raises(ValueError, match=r"X has 3 columns, and one or two can be drawn\. Pass features=\[…\]"):
        spinney.plot_boosting_steps(model, np.zeros((10, 3)), y)


def test_classes_along_one_column_have_their_colours(diagonal):
    X, y = diagonal
    ax = spinney.plot_regions(spinney.KNeighborsClassifier(), X[:, :1], y).axes[0]
    colours = [part.get_facecolor()[0] for part in ax.collections]
    assert_allclose(colours, [mpl.colors.to_rgba("#0072B2"), mpl.colors.to_rgba("#E69F00")])
    for part, label in zip(ax.collections, (-1, 1), strict=True):
        assert_allclose(part.get_offsets()[:, 0], X[y == label, 0])
        assert_array_equal(part.get_offsets()[:, 1], (label + 1) / 2)


@pytest.mark.parametrize(
    "model", [spinney.RandomForestClassifier(6), spinney.GradientBoostingClassifier(n_estimators=6)]
)
def test_margins_of_forests_and_boosting(model):
    X, species = datasets.load_penguins()
    ax = spinney.plot_margins(model.fit(X, species), X, species, rounds=[1, 6])
    proba = model.predict_proba(X)
    own = proba[np.arange(len(X)), np.searchsorted(model.classes_, species)]
    rest = np.where(model.classes_ == np.array(species)[:, None], -1, proba).max(axis=1)
    assert_allclose(ax.get_lines()[1].get_xdata(), np.sort(own - rest), atol=1e-12)


# ---- James and Stein ------------------------------------------------------------------------------------------------


def test_shrinkage_is_drawn_in_lines():
    first, rest = datasets.load_batting()
    found = spinney.james_stein(first, family="binomial", n=45)
    mean = first.mean()
    assert_allclose(found.estimates, spinney.james_stein(first, mean * (1 - mean) / 45).estimates)
    ax = found.plot(truth=rest)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["estimates", "shrunken", "truth"]
    lines = np.array([line.get_xdata() for line in ax.get_lines()[:18]])
    assert_allclose(lines.T, [first, found.estimates, rest])
    with pytest.raises(ValueError, match="truth has 2 numbers"):
        found.plot(truth=[1, 2])


def test_rates_have_the_variance_of_their_family():
    rates, exposure = np.array([1.0, 2, 4, 3, 5]), np.array([10.0, 20, 10, 5, 5])
    mean = np.average(rates, weights=exposure)
    assert_allclose(
        spinney.james_stein(rates, family="poisson", n=exposure).estimates,
        spinney.james_stein(rates, mean / exposure).estimates,
    )
    for arguments, words in (
        ({}, "either the variance"),
        ({"variance": 1, "family": "poisson"}, "either the variance"),
        ({"family": "poisson"}, "needs n"),
        ({"family": "normal", "n": 3}, "'binomial' or 'poisson'"),
        ({"family": "binomial", "n": 3}, "fractions from 0 to 1"),
    ):
        with pytest.raises(ValueError, match=words):
            spinney.james_stein(rates, **arguments)
