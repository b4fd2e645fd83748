"""Out-of-bag predictions and errors against a loop over trees and rows."""

import io

import numpy as np
import pytest
import spinney
from oracle.saved import bytes_of, through_bytes
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, r2_score, roc_auc_score
from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from spinney._model.file.container import from_bytes, to_bytes


def classes(n=150, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    return X, np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.7])]


def values(n=150, seed=0):
    X, _ = classes(n, seed)
    return X, X[:, 0] + X[:, 1] ** 2


def slow_out_of_bag(forest, X, last=None):
    """Mean prediction of the trees whose sample lacks the row, row by row."""
    trees = forest.estimators_[:last]
    samples = [set(rows) for rows in forest.estimators_samples_]
    predict = [t.predict_proba(X) if hasattr(t, "predict_proba") else t.predict(X)[:, np.newaxis] for t in trees]
    means = np.full((len(X), predict[0].shape[1]), np.nan)
    for row in range(len(X)):
        unseen = [predict[t][row] for t in range(len(trees)) if row not in samples[t]]
        if unseen:
            means[row] = np.mean(unseen, axis=0)
    return means


@pytest.mark.parametrize("parameters", [{}, {"replace": False}, {"max_samples": 0.3}, {"ccp_alpha": 0.01}])
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_class_probabilities(kind, parameters):
    X, y = classes()
    forest = kind(n_estimators=40, bootstrap=True, oob_score=True, random_state=0, **parameters).fit(X, y)
    means = slow_out_of_bag(forest, X)
    np.testing.assert_allclose(forest.oob_decision_function_, means, rtol=1e-12)
    predicted = forest.classes_[means.argmax(axis=1)]
    assert forest.oob_score_ == pytest.approx(accuracy_score(y, predicted))
    assert forest.oob_curve_[-1] == pytest.approx(1 - forest.oob_score_)
    assert 0.5 < forest.oob_score_ < forest.score(X, y)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_values(kind):
    X, y = values()
    forest = kind(n_estimators=40, bootstrap=True, oob_score=True, random_state=0).fit(X, y)
    means = slow_out_of_bag(forest, X)[:, 0]
    np.testing.assert_allclose(forest.oob_prediction_, means, rtol=1e-12)
    assert forest.oob_score_ == pytest.approx(r2_score(y, means))
    assert forest.oob_curve_[-1] == pytest.approx(np.mean((y - means) ** 2))


def test_the_curve_is_the_error_of_the_first_trees():
    X, y = values()
    forest = RandomForestRegressor(n_estimators=12, oob_score=True, random_state=0, max_samples=0.5).fit(X, y)
    assert forest.oob_curve_.shape == (12,)
    for last in (1, 2, 7):
        means = slow_out_of_bag(forest, X, last)[:, 0]
        known = ~np.isnan(means)
        assert forest.oob_curve_[last - 1] == pytest.approx(np.mean((y - means)[known] ** 2))
    np.testing.assert_array_equal(forest.oob_errors(X, y), forest.oob_curve_)


def test_any_metric():
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(n_estimators=30, oob_score="roc_auc", random_state=0).fit(X, y)
    shares = forest.oob_decision_function_
    assert forest.oob_score_ == pytest.approx(roc_auc_score(y, shares[:, 1]))
    assert forest.oob_errors(X, y, "neg_log_loss")[-1] == pytest.approx(-log_loss(y, shares))
    by_function = forest.oob_errors(X, y, accuracy_score)
    assert by_function.shape == (30,)
    assert by_function[-1] == pytest.approx(accuracy_score(y, shares.argmax(axis=1)))
    np.testing.assert_allclose(forest.oob_errors(X, y), 1 - by_function)
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(n_estimators=30, oob_score=mean_absolute_error, random_state=0).fit(X, y)
    assert model.oob_score_ == pytest.approx(mean_absolute_error(y, model.oob_prediction_))


def test_metrics_see_the_labels():
    X, y = classes()

    def share_of_b(truth, predicted):
        assert set(truth) == {"a", "b", "c"}
        return np.mean(predicted == "b")

    forest = RandomForestClassifier(n_estimators=30, oob_score=share_of_b, random_state=0).fit(X, y)
    assert forest.oob_score_ == np.mean(forest.classes_[forest.oob_decision_function_.argmax(axis=1)] == "b")


def test_several_outputs():
    X, y = classes()
    Y = np.column_stack([y, np.where(X[:, 3] > 0, "up", "down")])
    forest = RandomForestClassifier(n_estimators=30, oob_score=True, random_state=0).fit(X, Y)
    first, second = forest.oob_decision_function_
    guess = np.column_stack([forest.classes_[0][first.argmax(axis=1)], forest.classes_[1][second.argmax(axis=1)]])
    assert forest.oob_score_ == pytest.approx((guess == Y).all(axis=1).mean())  # as `score`
    X, v = values()
    V = np.column_stack([v, -v])
    model = RandomForestRegressor(n_estimators=30, oob_score=True, random_state=0).fit(X, V)
    assert model.oob_prediction_.shape == V.shape
    assert model.oob_score_ == pytest.approx(r2_score(V, model.oob_prediction_))


def test_rows_of_weight_zero_are_not_evaluated_and_weights_count():
    X, y = values()
    weight = np.where(np.arange(len(X)) % 4 == 0, 0.0, np.arange(len(X)) % 3 + 1)
    forest = RandomForestRegressor(n_estimators=200, oob_score=True, random_state=0).fit(X, y, weight)
    loss = (y - forest.oob_prediction_) ** 2
    kept = weight > 0
    assert forest.oob_curve_[-1] == pytest.approx(np.average(loss[kept], weights=weight[kept]))
    assert forest.oob_score_ == pytest.approx(
        r2_score(y[kept], forest.oob_prediction_[kept], sample_weight=weight[kept])
    )
    np.testing.assert_array_equal(forest.oob_errors(X, y, sample_weight=weight), forest.oob_curve_)
    assert forest.set_params(oob_score=lambda truth, _: len(truth)).fit(X, y, weight).oob_score_ == kept.sum()


def test_groups_are_out_of_bag_together():
    groups = np.repeat(np.arange(40), 5)
    leaky = groups[:, np.newaxis] * 1.0  # gives the group away
    y = np.random.default_rng(1).normal(size=40)[groups]
    apart = RandomForestRegressor(n_estimators=100, oob_score=True, random_state=0).fit(leaky, y)
    together = RandomForestRegressor(n_estimators=100, oob_score=True, random_state=0).fit(leaky, y, groups=groups)
    assert apart.oob_score_ > 0.9
    assert together.oob_score_ < 0.2
    np.testing.assert_allclose(together.oob_prediction_, slow_out_of_bag(together, leaky)[:, 0], rtol=1e-12)


def test_rows_in_every_sample_are_reported():
    X, y = classes(30)
    with pytest.warns(UserWarning, match="rows were drawn for every tree"):
        forest = RandomForestClassifier(n_estimators=2, oob_score=True, random_state=0).fit(X, y)
    seen = np.isnan(forest.oob_decision_function_[:, 0])
    assert seen.any()
    np.testing.assert_array_equal(seen, np.isnan(slow_out_of_bag(forest, X)[:, 0]))


def test_a_warm_start_goes_on_with_the_errors():
    X, y = classes()
    grown = RandomForestClassifier(n_estimators=25, oob_score=True, warm_start=True, random_state=0).fit(X, y)
    grown.set_params(n_estimators=60).fit(X, y)
    at_once = RandomForestClassifier(n_estimators=60, oob_score=True, random_state=0).fit(X, y)
    np.testing.assert_array_equal(grown.oob_curve_, at_once.oob_curve_)
    assert grown.oob_score_ == at_once.oob_score_


def test_attributes_of_an_earlier_fit_go():
    X, y = classes()
    forest = RandomForestClassifier(n_estimators=30, oob_score=True, random_state=0).fit(X, y)
    forest.set_params(oob_score=False).fit(X, y)
    for name in ("oob_score_", "oob_curve_", "oob_decision_function_"):
        assert not hasattr(forest, name)


# ---- n_estimators="auto" ----------------------------------------------------------------------------------


def test_trees_are_added_until_the_error_has_settled():
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(n_estimators="auto", random_state=0).fit(X, y)
    assert 100 <= len(forest) < 1000
    assert len(forest.oob_curve_) == len(forest)
    plain = RandomForestClassifier(n_estimators=len(forest), random_state=0, oob_score=True).fit(X, y)
    assert plain.forest_.engine.threshold.tobytes() == forest.forest_.engine.threshold.tobytes()
    more = RandomForestClassifier(n_estimators=3 * len(forest), random_state=0, oob_score=True).fit(X, y)
    assert abs(more.oob_score_ - forest.oob_score_) < 0.01


def test_a_hard_problem_takes_more_trees_than_an_easy_one():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 5))
    easy = RandomForestRegressor(n_estimators="auto", random_state=0).fit(X, np.ones(200))
    hard = RandomForestRegressor(n_estimators="auto", random_state=0, max_samples=0.1).fit(X, X @ np.arange(5.0))
    assert len(easy) == 100
    assert len(hard) > 100


# ---- what is refused --------------------------------------------------------------------------------------


def test_errors_need_the_training_rows():
    X, y = classes()
    forest = RandomForestClassifier(n_estimators=30, random_state=0).fit(X, y)
    assert forest.oob_errors(X, y).shape == (30,)
    with pytest.raises(ValueError, match="fitted on 150"):
        forest.oob_errors(X[:-1], y[:-1])
    with pytest.raises(ValueError, match="does not have the classes"):
        forest.oob_errors(X, np.where(y == "a", "z", y))
    with pytest.raises(AttributeError, match="stores which rows were drawn only with keep_rows=True"):
        through_bytes(forest).oob_errors(X, y)
    with pytest.raises(AttributeError, match="all rows"):
        spinney.ExtraTreesClassifier(n_estimators=3).fit(X, y).oob_errors(X, y)


@pytest.mark.parametrize("keep_rows", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_files_keep_the_curve_and_with_the_rows_the_predictions(kind, n_outputs, keep_rows):
    X, y = classes(60) if kind is RandomForestClassifier else values(60)
    y = np.column_stack([y, y[::-1]]) if n_outputs == 2 else y
    forest = kind(n_estimators=30, oob_score=True, random_state=0, keep_rows=keep_rows).fit(X, y)
    loaded = through_bytes(forest)
    np.testing.assert_array_equal(loaded.oob_curve_, forest.oob_curve_)
    np.testing.assert_array_equal(loaded.oob_errors(), forest.oob_curve_)
    assert loaded.oob_score_ == forest.oob_score_
    assert hasattr(loaded, forest._oob_name) == keep_rows
    if keep_rows:
        np.testing.assert_array_equal(getattr(loaded, forest._oob_name), getattr(forest, forest._oob_name))
        np.testing.assert_array_equal(loaded.oob_errors(X, y), forest.oob_curve_)
        with pytest.raises(ValueError, match="another order"):
            loaded.oob_errors(X[::-1], y[::-1])
    twice = through_bytes(loaded)
    np.testing.assert_array_equal(twice.oob_curve_, forest.oob_curve_)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"oob_curve": [0.5]}, "its 'oob_curve' is missing or has the wrong type"),
        ({"rows": {"print_of_all": [1]}}, "its 'print_of_all' has the wrong length"),
        ({"rows": {"print_of_all": [1, "2"]}}, "lacks a usable 'print_of_all'"),
        ({"rows": {"out_of_bag": None}}, "its 'out_of_bag' is missing or has the wrong type"),
    ],
)
def test_damaged_out_of_bag_entries_are_refused(entry, message):
    X, y = values(40)
    forest = RandomForestRegressor(n_estimators=20, oob_score=True, random_state=0, keep_rows=True).fit(X, y)
    header, _ = from_bytes(bytes_of(forest))
    header["forest"] |= {**entry, "rows": header["forest"]["rows"] | entry.get("rows", {})}
    data = to_bytes(header, [forest.forest_.engine.tree(t) for t in range(20)])
    with pytest.raises(spinney.ModelFileError, match=message):
        spinney.load(io.BytesIO(data))
