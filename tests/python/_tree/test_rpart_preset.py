"""The rpart preset: words, refusals, refits."""

import numpy as np
import polars as pl
import pytest
import spinney
from spinney import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor, shrink_tree

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = (X[:, 0] + RNG.normal(size=300) > 0).astype(int)


def test_a_refit_without_the_dialect_forgets_rpart():
    model = DecisionTreeClassifier.rpart(random_state=0).fit(X, Y)
    model.set_params(dialect=None, prune=None, cp=None).fit(X[:, :2], Y)
    assert not hasattr(model, "rpart_")
    assert not hasattr(model, "cp_table_")
    assert model.pruned(alpha=0.0).get_n_leaves() <= model.get_n_leaves()
    with pytest.raises(AttributeError, match="rpart"):
        model.printcp()


def test_a_refit_by_rpart_forgets_shrinkage_and_out_of_fold_predictions():
    model = DecisionTreeClassifier(prune="cv", shrinkage=5.0, random_state=0).fit(X, Y)
    assert model.shrinkage_ == 5.0
    fresh = DecisionTreeClassifier.rpart(random_state=0)
    model.set_params(**fresh.get_params()).fit(X, Y)
    assert model.shrinkage_ == 0.0
    assert not hasattr(model, "oof_predictions_")


@pytest.mark.parametrize(
    "parameters",
    [
        {"ccp_alpha": 0.5},
        {"class_weight": {0: 1, 1: 20}},
        {"shrinkage": 5.0},
        {"validation_fraction": 0.2},
        {"scoring": "accuracy"},
        {"risk": "impurity"},
        {"max_leaf_nodes": 5},
        {"splitter": "random"},
        {"prune": "pessimistic"},
    ],
)
def test_what_rpart_does_not_know_is_refused(parameters):
    with pytest.raises(ValueError, match=f"do not support {next(iter(parameters))}"):
        DecisionTreeClassifier.rpart(xval=0).set_params(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: DecisionTreeClassifier.rpart(criterion="gini"), "split"),
        (lambda: ExtraTreeClassifier.rpart(), r"Use DecisionTreeClassifier\.rpart"),
        (lambda: ExtraTreeRegressor.rpart(), r"Use DecisionTreeRegressor\.rpart"),
        (lambda: ExtraTreeClassifier(dialect="rpart", max_depth=3).fit(X, Y), "splitter='best'"),
        (lambda: DecisionTreeClassifier.rpart(xval="x"), "number of folds"),
        (lambda: DecisionTreeClassifier.rpart(xval=-5), "negative"),
        (lambda: DecisionTreeClassifier.rpart(cp=float("nan")), "cp must be a number"),
        (lambda: DecisionTreeClassifier.rpart(maxdepth=31), "maxdepth"),
        (lambda: DecisionTreeRegressor.rpart(shrink=5.0), "rates"),
        (lambda: DecisionTreeRegressor.rpart(method="anova", error="sqrt"), "rates"),
        (lambda: DecisionTreeClassifier.rpart().fit(X, Y, groups=Y), "groups"),
        (lambda: DecisionTreeClassifier.rpart().fit(X, Y, exposure=np.ones(300)), "exposure"),
        (lambda: DecisionTreeClassifier.rpart().fit(X, np.column_stack([Y, Y])), "one label per row"),
        (lambda: DecisionTreeRegressor(dialect="rpart", criterion="absolute_error").fit(X, Y), "criteria"),
        (lambda: DecisionTreeClassifier(dialect="rpart", max_depth=31).fit(X, Y), "at most 30"),
        (lambda: DecisionTreeClassifier.rpart(xval=0).fit(X, Y).pruned(cp=float("nan")), "must be a number"),
    ],
)
def test_refusals_in_words(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_a_rule_prunes_by_the_table():
    folds = np.arange(300) % 10
    whole = DecisionTreeClassifier.rpart(xval=folds, cp=0.001).fit(X, Y)
    chosen = DecisionTreeClassifier.rpart(xval=folds, cp=0.001, rule="1se").fit(X, Y)
    table = whole.cp_table_
    best = int(np.argmin(table.cv_error))
    first = int(np.flatnonzero(table.cv_error <= table.cv_error[best] + table.cv_se[best])[0])
    assert chosen.get_n_leaves() == table.n_leaves[first] < whole.get_n_leaves()


def test_shrunk_trees_are_not_pruned_by_error():
    shrunk = shrink_tree(DecisionTreeClassifier.rpart(xval=0).fit(X, Y), 50)
    with pytest.raises(ValueError, match="Prune first"):
        shrunk.pruned(cp=0.05)
    with pytest.raises(ValueError, match="Prune first"):
        DecisionTreeClassifier(risk="error", shrinkage=5.0).fit(X, Y).pruned(alpha=0.01)
    assert DecisionTreeClassifier(shrinkage=5.0).fit(X, Y).pruned(alpha=0.01).get_n_leaves() > 1


def test_the_standard_error_of_rates_is_rparts():
    time = RNG.exponential(size=300) + 0.2
    events = RNG.poisson(time * np.exp(0.7 * X[:, 0])).astype(float)
    folds = np.arange(300) % 5
    options = {"min_samples_split": 20, "min_samples_leaf": 7, "max_depth": 30, "missing": "surrogate"}
    ours = DecisionTreeRegressor(
        criterion="poisson", rate_shrinkage=1.0, prune="cv", cv=folds, rule=None, risk="error", cp=0.001, **options
    ).fit(X, events, exposure=time)
    theirs = DecisionTreeRegressor.rpart(method="poisson", xval=folds, cp=0.001).fit(X, np.column_stack([time, events]))
    np.testing.assert_allclose(ours.cp_table_.cv_se[0], theirs.cp_table_.cv_se[0], rtol=1e-6)


def test_rates_without_events_in_a_leaf_have_finite_errors():
    counts = RNG.poisson(np.exp(2 * X[:, 0]))
    model = DecisionTreeRegressor(criterion="poisson", prune="cv", random_state=0).fit(X, counts, exposure=np.ones(300))
    assert np.isfinite(model.cp_table_.cv_error).all()


def test_classes_come_in_the_order_that_is_declared():
    labels = pl.Series(["low", "high"], dtype=pl.Enum(["low", "high"])).gather((Y > 0).astype(int))
    assert DecisionTreeClassifier.rpart(xval=0).fit(X, labels).classes_.tolist() == ["low", "high"]


def test_the_path_of_an_rpart_tree_is_in_units_of_error():
    model = DecisionTreeClassifier.rpart(cp=0.0, xval=0).fit(X, Y)
    alphas = model.cost_complexity_pruning_path().ccp_alphas
    assert model.pruned(alpha=float(alphas[-1]) * 1.001).get_n_leaves() == 1
    assert spinney.export_text(model)


@pytest.mark.parametrize("quirks", [False, True])
def test_a_tree_without_splits_has_the_errors_that_rpart_gives_it_only_if_asked(quirks):
    noise = np.random.default_rng(3).normal(size=300)
    model = DecisionTreeRegressor.rpart(cp=0.3, xval=np.arange(300) % 10, rpart_quirks=quirks).fit(X, noise)
    assert model.get_n_leaves() == 1
    table = model.cp_table_
    assert (table.n_splits.tolist(), table.relative_error.tolist()) == ([0], [1])
    if quirks:
        assert table.cp[0] == model.rpart_frame().complexity.iloc[0] < 0.3
        assert (table.cv_error[0], table.cv_se[0]) == (0, 0)
    else:
        assert table.cp[0] == pytest.approx(0.3)
        assert 0.9 < table.cv_error[0] < 1.1
        assert table.cv_se[0] > 0.01


def test_the_dialect_works_with_the_default_depth():
    default = DecisionTreeClassifier(dialect="rpart").fit(X, Y)
    assert default.fingerprint() == DecisionTreeClassifier(dialect="rpart", max_depth=30).fit(X, Y).fingerprint()


def test_an_unknown_argument_names_the_nearest_of_rpart():
    with pytest.raises(TypeError, match=r"Neither rpart nor .* has a parameter 'minsplt'. Did you mean 'minsplit'\?"):
        spinney.DecisionTreeClassifier.rpart(minsplt=5)
    with pytest.raises(TypeError, match=r"Neither rpart nor .* parameter 'foo'. Those of rpart are: method, minsplit"):
        spinney.DecisionTreeRegressor.rpart(foo=5)
