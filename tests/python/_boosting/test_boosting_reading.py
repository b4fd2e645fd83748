"""What a boosted model shows of itself: its trees, one by one, and how much its columns matter."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import spinney

mpl.use("agg")


def table(n: int = 300, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"size": rng.normal(size=n), "town": rng.choice(["Ely", "Rye", "Wem"], n), "noise": rng.normal(size=n)}
    )
    X.loc[::9, "size"] = np.nan
    return X, 2 * X["size"].fillna(0) + (X["town"] == "Rye") + rng.normal(size=n) / 5


def regressor(**options: Any) -> Any:
    return spinney.GradientBoostingRegressor(**{"n_estimators": 8, "max_leaf_nodes": 4} | options)


# ---- trees ---------------------------------------------------------------------------------------------


def test_the_trees_add_up_to_the_model() -> None:
    X, y = table()
    model = regressor().fit(X, y)
    assert model.estimators_.shape == (8, 1)
    steps = sum(tree.predict(X) for tree in model.estimators_[:, 0])
    np.testing.assert_allclose(steps + model.boosting_.start[0], model.predict(X), rtol=0, atol=1e-12)
    classes = np.digitize(y, [-1, 1])
    several = spinney.GradientBoostingClassifier(n_estimators=3, max_leaf_nodes=4).fit(X, classes)
    assert several.estimators_.shape == (3, 3)
    scores = np.column_stack([sum(tree.predict(X) for tree in several.estimators_[:, k]) for k in range(3)])
    np.testing.assert_allclose(scores + several.boosting_.start, several.decision_function(X), atol=1e-12)


def test_a_tree_is_read_and_drawn() -> None:
    X, y = table()
    tree = regressor().fit(X, y).estimators_[0, 0]
    text = spinney.export_text(tree)
    assert "size" in text
    assert "sd" not in text
    frame = spinney.to_frame(tree, "pandas")
    assert frame.loc[0, "n"] == 300
    assert (frame["gain"].dropna() > 0).all()
    assert spinney.to_dict(tree)["criterion"] == "gain"
    assert spinney.tree_svg(tree).startswith("<svg")
    ax = spinney.plot_tree(tree)
    mpl.pyplot.close("all")
    assert ax is not None
    assert "adds" in tree.export_text() or "+" in tree.export_text()
    assert len(tree.rules()) == 4
    with pytest.raises(TypeError, match="part of a boosted model"):
        tree.fit(X, y)


def test_leaves_of_rows() -> None:
    X, y = table()
    model = regressor().fit(X, y)
    leaves = model.apply(X)
    assert leaves.shape == (300, 8)
    for t, (tree,) in enumerate(model.estimators_):
        np.testing.assert_array_equal(leaves[:, t], tree.apply(X))
    several = spinney.GradientBoostingClassifier(n_estimators=3, max_leaf_nodes=4).fit(X, np.digitize(y, [-1, 1]))
    leaves = several.apply(X)
    assert leaves.shape == (300, 3, 3)
    np.testing.assert_array_equal(leaves[:, 1, 2], several.estimators_[1, 2].apply(X))


# ---- importances -----------------------------------------------------------------------------------------


def test_gains_and_splits() -> None:
    X, y = table()
    model = regressor().fit(X, y)
    gain, splits = model.importances(), model.importances(kind="splits")
    np.testing.assert_array_equal(gain.importance, model.feature_importances_)
    np.testing.assert_allclose(
        splits.importance, model.boosting_.split_counts(3) / model.boosting_.split_counts(3).sum()
    )
    assert str(gain).startswith("Fraction of the loss reduction\nsize")
    assert "±" not in str(gain)
    assert repr(splits) == "<Importances: splits, 3 columns>"
    assert gain.to_frame("pandas")["column"].iloc[0] == "size"
    mpl.pyplot.close(gain.plot().figure)
    frame = spinney.importance_frame(model, "pandas")
    assert list(frame["n_splits"]) == list(model.boosting_.split_counts(3)[np.argsort(-model.feature_importances_)])
    ax = spinney.plot_importances(model)
    assert ax.get_xlabel() == "fraction of the decrease of the loss"
    mpl.pyplot.close(ax.figure)


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]
)
def test_permutation_by_the_loss_is_what_the_loss_rises_by(loss: str) -> None:
    X, y = table()
    y = y if loss in ("squared_error", "absolute_error", "huber", "quantile") else np.exp(y / 2)
    model = regressor(loss=loss, max_bins=20).fit(X, y)
    found = model.importances(X, y, "permutation", n_repeats=3)
    assert found.tree_loss == pytest.approx(model.train_score_[-1], rel=0.02 if loss == "huber" else 1e-9)
    assert found.importance[0] > max(3 * found.importance[2], 0)
    assert found.by_tree.shape == (3, 3)
    again = model.set_params(n_jobs=1).importances(X, y, "permutation", n_repeats=3)
    np.testing.assert_array_equal(found.by_tree, again.by_tree)


def test_permutation_by_hand() -> None:
    X, y = table()
    model = regressor().fit(X, y)
    found = model.importances(X, y, "permutation", n_repeats=2, random_state=5)
    order = np.random.default_rng([np.random.RandomState(5).randint(2**31 - 1), 1, 0]).permutation(300)
    changed = X.assign(town=X["town"].to_numpy()[order])
    rise = np.mean((model.predict(changed) - y) ** 2 - (model.predict(X) - y) ** 2) / 2
    assert found.by_tree[0, 1] == pytest.approx(rise)
    assert "2 permutations" in str(found)


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_permutation_of_classes_with_weights_offsets_and_groups(loss: str) -> None:
    X, y = table()
    label = np.where(y > 0, "yes", "no")
    weight, offset = np.random.default_rng(1).integers(0, 3, 300), np.linspace(-1, 1, 300)
    model = spinney.GradientBoostingClassifier(loss, n_estimators=8).fit(X, label, weight, offset=offset)
    found = model.importances(
        X, label, "permutation", sample_weight=weight, offset=offset, groups={"rest": ["town", "noise"]}
    )
    assert found.names == ["size", "rest"]
    assert found.tree_loss == pytest.approx(model.train_score_[-1], rel=1e-9)


def test_permutation_by_a_metric() -> None:
    X, y = table()
    label = np.array(["low", "mid", "high"])[np.digitize(y, [-1, 1])]
    model = spinney.GradientBoostingClassifier(n_estimators=8).fit(X, label)
    plain = model.importances(X, label, "permutation")
    assert plain.tree_loss == pytest.approx(model.train_score_[-1], rel=1e-9)
    found = model.importances(X, label, "permutation", scoring="accuracy")
    assert found.tree_loss == pytest.approx(-model.score(X, label))
    assert found.measure == "decrease in accuracy when permuted"
    assert found.order[0] == 0


def test_importances_refuse_in_words() -> None:
    X, y = table()
    model = regressor().fit(X, y)
    with pytest.raises(ValueError, match="kind must be one of 'gain', 'splits', 'permutation', not 'impurity'"):
        model.importances(kind="impurity")
    with pytest.raises(ValueError, match="Pass X and y"):
        model.importances(kind="permutation")
    with pytest.raises(ValueError, match="scoring is for kind='permutation'"):
        model.importances(scoring="r2")
    with pytest.raises(ValueError, match="n_repeats must be a whole number"):
        model.importances(X, y, "permutation", n_repeats=0)


def test_labels_the_model_does_not_know_are_those_of_y() -> None:
    X, y = table(60)
    model = spinney.GradientBoostingClassifier(n_estimators=2).fit(X, y > 0)
    with pytest.raises(ValueError, match=r"^y has a class that the model was not fitted on: 'maybe', first in row 1\."):
        model.importances(X[:2], np.array([True, "maybe"], dtype=object), "permutation")
    with pytest.raises(ValueError, match="None of the labels in y is a class of the model"):
        model.importances(X[:2], ["no", "yes"], "permutation")


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "gamma"])
@pytest.mark.parametrize("monotone", [None, {"size": 1}])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_split_shows_the_mean_of_the_leaves_below(loss: str, monotone: Any, weighted: bool) -> None:
    X, y = table()
    y = np.exp(3 * y) if loss == "gamma" else y
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else None
    model = regressor(loss=loss, monotonic_cst=monotone, l2_regularization=2.0).fit(X, y, weight)
    for estimator in model.estimators_.ravel():
        tree = estimator.tree_
        passed = estimator.decision_path(X).toarray().astype(bool)
        added = estimator.predict(X)
        for node in range(tree.node_count):
            rows = passed[:, node]
            mean = np.average(added[rows], weights=None if weight is None else weight[rows])
            assert tree.value[node].item() == pytest.approx(mean, rel=1e-9, abs=1e-12)
