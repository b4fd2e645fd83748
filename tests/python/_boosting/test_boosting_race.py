"""The race of recipes on the folds of a fit, and the blend of those that remain."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import spinney
from oracle.saved import through_bytes
from sklearn.datasets import make_friedman1
from sklearn.metrics import log_loss
from spinney._boosting.options import recipe
from spinney._estimator.greedy import select

N = 400


def _ignore(progress: dict[str, Any]) -> None:
    """Do nothing: callbacks are for one recipe, so that there is no race."""


@cache
def levels() -> tuple[Any, Any]:
    """Return categories whose order matters, and classes."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 4, size=(N + 1000, 6))
    labels = np.array(["a_low", "b_mid", "c_high", "d_top"])
    y = (codes[:, 0] + codes[:, 1] > codes[:, 2] + codes[:, 3]).astype(int)
    return {f"x{j}": labels[codes[:, j]] for j in range(6)}, y


def rows(X: Any, begin: int, end: int) -> Any:
    return {name: column[begin:end] for name, column in X.items()}


def test_ordered_categories_are_split_by_their_codes_as_well() -> None:
    X, y = levels()
    train, test = rows(X, 0, N), rows(X, N, N + 1000)
    losses = {}
    for name, options in (("one recipe", {"callbacks": _ignore}), ("race", {})):
        model = spinney.GradientBoostingClassifier(**options).fit(train, y[:N])
        losses[name] = log_loss(y[N:], model.predict_proba(test))
    assert losses["race"] < 0.9 * losses["one recipe"]


@pytest.mark.slow
def test_symmetric_trees_join_where_they_lower_the_out_of_fold_loss() -> None:
    X, y = make_friedman1(300, 8, noise=1.0, random_state=0)
    models = [spinney.GradientBoostingRegressor(**options).fit(X, y) for options in ({"callbacks": _ignore}, {})]
    one, race = ([is_symmetric(tree) for tree in model.boosting_.trees() if tree.size > 3] for model in models)
    assert np.mean(one) < 0.4 < 0.5 < np.mean(race)
    errors = [np.square(model._calibration.predicted[:, 0] - model._calibration.target).mean() for model in models]
    assert errors[1] < errors[0]


def test_trees_of_two_linear_leaves_join_where_the_target_is_nearly_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(900, 6))
    y = X @ [3.0, 2.0, 1.0, 1.0, 0.5, 0.0] + np.abs(X[:, 0]) + 0.5 * rng.normal(size=900)
    errors = []
    for most in (0, 32):
        monkeypatch.setattr(recipe, "_MOST_LINEAR_COLUMNS", most)
        model = spinney.GradientBoostingRegressor().fit(X[:300], y[:300])
        errors.append(np.square(model.predict(X[300:]) - y[300:]).mean())
        assert any(tree.size == 3 and len(tree.linear_leaves()["slope"]) > 4 for tree in linear(model)) == (most > 0)
    assert errors[1] < 0.9 * errors[0]


def linear(model: Any) -> list[Any]:
    """Return the trees with linear leaves."""
    return [tree for tree in model.boosting_.trees() if tree.linear_leaves() is not None]


def test_without_a_finite_loss_the_first_recipe_is_selected() -> None:
    assert select(lambda _: np.inf, np.ones((2, 3)), 4).tolist() == [1, 0]


def is_symmetric(tree: Any) -> bool:
    """Return whether all splits of a level have the same column and threshold."""
    depth, right = np.zeros(tree.size, dtype=int), tree.children_right()
    for node in np.flatnonzero(tree.feature >= 0):
        depth[[node + 1, right[node]]] = depth[node] + 1
    splits = {(d, f, c) for d, f, c in zip(depth, tree.feature, tree.threshold, strict=True) if f >= 0}
    return len(splits) == len({d for d, *_ in splits})


@pytest.mark.parametrize("is_class", [True, False])
def test_a_blend_is_one_model(is_class: bool) -> None:
    X, y = levels()
    train, new = rows(X, 0, 200), rows(X, 200, 260)
    new["x0"] = np.array([None, "unheard of", *new["x0"][2:]], dtype=object)
    kind = spinney.GradientBoostingClassifier if is_class else spinney.GradientBoostingRegressor
    target = y[:200] if is_class else y[:200] + np.arange(200) % 7 / 10
    weight = np.random.default_rng(1).integers(1, 4, 200)
    models = [kind(n_jobs=n).fit(train, target, weight) for n in (1, 3)]
    alone = kind(callbacks=_ignore).fit(train, target, weight)
    model = models[0]
    assert model.fingerprint() == models[1].fingerprint() != alone.fingerprint()
    assert len(model.train_score_) == len(model.validation_score_) == model.n_iter_
    assert np.array_equal(through_bytes(model).predict(new), model.predict(new))
    handle = model.to_predictor()
    singles = [handle.predict({name: column[i] for name, column in new.items()}) for i in range(20)]
    assert np.array_equal(singles, model.predict(new)[:20])
    explained = model.shap_values(new)
    scores = model.decision_function(new) if is_class else model.predict(new)
    np.testing.assert_allclose(explained.predictions, scores, rtol=0, atol=1e-9)
    *_, last = model.staged_predict(new)
    if is_class:
        assert np.array_equal(last, model.predict(new))
    else:
        np.testing.assert_allclose(last, model.predict(new), rtol=0, atol=1e-9)


def test_parameters_of_trees_and_callbacks_leave_one_recipe() -> None:
    X, y = levels()
    train = rows(X, 0, 120)

    def fitted(**parameters: Any) -> Any:
        return spinney.GradientBoostingClassifier(**parameters).fit(train, y[:120])

    alone = fitted(callbacks=_ignore)
    assert fitted(tol=0.0).fingerprint() == alone.fingerprint()
    assert fitted(effort=0.5, random_state=None, verbose=0).fingerprint() == fitted().fingerprint()
    assert fitted().fingerprint() != alone.fingerprint()


def test_an_interruption_of_the_race_leaves_no_fitted_estimator(monkeypatch: pytest.MonkeyPatch) -> None:
    from spinney._boosting import race

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(race, "_held_out_loss", interrupted)
    X, y = levels()
    model = spinney.GradientBoostingClassifier()
    with pytest.raises(KeyboardInterrupt):
        model.fit(rows(X, 0, 100), y[:100])
    assert not hasattr(model, "boosting_")
