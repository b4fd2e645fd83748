"""Comparison: the same folds for all, the corrected resampled test, failures in their row, interruption, pictures."""

import pickle
import platform
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from every_estimator import CLASSES, PAIR, TABLE, VALUES, WHOLE
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, cross_validate
from sklearn.tree import DecisionTreeClassifier
from spinney._evaluate.runner import Budget
from spinney._evaluate.statistics import corrected_error, holm, paired_differences

X, Y = WHOLE, VALUES


def test_scores_are_those_of_cross_validation():
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    models = {"tree": DecisionTreeClassifier(max_depth=2, random_state=0), "line": LogisticRegression()}
    found = spinney.compare(models, X, PAIR, cv=cv, scoring=["accuracy", "neg_log_loss", "roc_auc"], baseline=False)
    for name, model in models.items():
        theirs = cross_validate(model, X, PAIR, cv=cv, scoring=found.metrics)
        for metric in found.metrics:
            ours = found.scores[metric][found.names.index(name)]
            np.testing.assert_allclose(ours, theirs[f"test_{metric}"])
    assert found.best_ == found.names[0] == max(models, key=lambda name: found.mean(name)[0])


def test_the_corrected_resampled_test_by_hand():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 10)) + np.array([[0.0], [0.3], [2.0]])
    found = paired_differences(scores, 0, 0.25)
    for k in (1, 2):
        gap = scores[k] - scores[0]
        error = np.sqrt((0.1 + 0.25) * gap.var(ddof=1))
        assert found[k].mean == pytest.approx(gap.mean())
        assert found[k].error == pytest.approx(error)
        assert found[k].p_value == pytest.approx(2 * stats.t.sf(abs(gap.mean() / error), 9))
        assert (found[k].low, found[k].high) == pytest.approx(stats.t.interval(0.95, 9, gap.mean(), error))
        plain = stats.ttest_rel(scores[k], scores[0]).pvalue
        assert found[k].p_value > plain
    assert np.isnan(found[0].p_value)
    assert corrected_error(np.array([1.0]), 0.2) != corrected_error(np.array([1.0]), 0.2)  # NaN for a single fold


def test_holms_correction_by_hand():
    assert holm([0.01, 0.04, 0.03, float("nan")])[:3] == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(holm([0.01, float("nan")])[1])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])


def test_the_best_model_as_the_reference_is_corrected_for_all_pairs():
    scores = np.random.default_rng(0).normal(size=(4, 10)) + np.array([[1.5], [0.3], [0.0], [np.nan]])
    best, named = paired_differences(scores, 0, 0.25, is_best=True), paired_differences(scores, 0, 0.25)
    p_values = [named[1].p_value, named[2].p_value, paired_differences(scores, 1, 0.25)[2].p_value]
    assert [gap.p_holm for gap in best[1:3]] == pytest.approx(holm(p_values)[:2])
    assert [gap.p_holm for gap in named[1:3]] == pytest.approx(holm(p_values[:2]))
    assert [gap.p_value for gap in best] == pytest.approx([gap.p_value for gap in named], nan_ok=True)
    assert np.isnan([best[0].p_holm, best[3].p_value, best[3].p_holm]).all()


def test_holms_correction_knows_whether_the_reference_was_named():
    models = {"a": "tree", "b": "linear", "c": "forest"}
    best = spinney.compare(models, X, Y, repeats=1)
    named = spinney.compare(models, X, Y, repeats=1, reference=best.best_)
    other = best.names[-1]
    assert best.differences()[other].p_value == named.differences()[other].p_value
    assert best.differences()[other].p_holm > named.differences()[other].p_holm
    assert best.differences(best.best_)[other].p_holm == best.differences()[other].p_holm


def test_no_model_is_found_worse_than_the_best_of_twenty_equal_ones():
    draws = np.random.default_rng(1).normal(size=(100, 20, 10))
    found = [paired_differences(scores, int(scores.mean(axis=1).argmax()), 0.0, is_best=True) for scores in draws]
    assert np.mean([min(gap.p_holm for gap in one if gap.p_holm == gap.p_holm) < 0.05 for one in found]) <= 0.06


@pytest.mark.slow
def test_equal_models_are_rarely_found_different():
    class Guess(RegressorMixin, BaseEstimator):
        def __init__(self, seed=0):
            self.seed = seed

        def fit(self, X, y):
            self.random_ = np.random.default_rng([self.seed, int(1e6 * abs(np.sum(y)))])
            self.mean_ = y.mean()
            return self

        def predict(self, X):
            return self.mean_ + self.random_.normal(size=len(X)) / 3

    rng = np.random.default_rng(5)
    p_values = []
    for trial in range(200):
        X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
        found = spinney.compare({"a": Guess(1), "b": Guess(2)}, X, y, baseline=False, random_state=trial)
        p_values.append(found.differences("a")["b"].p_value)
    assert (np.array(p_values) < 0.05).mean() < 0.08


def test_folds_are_the_same_for_all_and_spread_the_classes():
    seen = {}

    class Witness(ClassifierMixin, BaseEstimator):
        def __init__(self, name="a"):
            self.name = name

        def fit(self, X, y):
            seen.setdefault(self.name, []).append((X[:, 0].tolist(), np.bincount(y).tolist()))
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return np.full(len(X), self.classes_[0])

    found = spinney.compare([("a", Witness("a")), ("b", Witness("b"))], X, CLASSES, scoring="accuracy")
    assert seen["a"] == seen["b"]
    assert found.n_folds == 10
    assert seen["a"][0] != seen["a"][5]
    counts = np.array([count for _, count in seen["a"]])
    assert (counts.max(axis=0) - counts.min(axis=0) <= 1).all()


def test_groups_and_time_are_honoured():
    groups, moments = np.arange(60) // 4, pd.date_range("2020-01-01", periods=60)[::-1]

    class Rows(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            self.seen_ = X[:, 0]
            return self

        def predict(self, X):
            return np.full(len(X), 0.0)

    folds = []

    def spy(model, X, y):
        folds.append((model.seen_, X[:, 0]))
        return 0.0

    rows = np.column_stack([np.arange(60.0), groups])
    spinney.compare({"rows": Rows()}, rows, Y, groups=groups, scoring=spy, baseline=False)
    assert len(folds) == 10
    assert all(not set(train // 4) & set(test // 4) for train, test in folds)
    assert {tuple(test) for _, test in folds[:5]} != {tuple(test) for _, test in folds[5:]}
    folds.clear()
    found = spinney.compare({"rows": Rows()}, rows, Y, time=moments, cv=4, scoring=spy, baseline=False)
    assert found.n_folds == 4
    assert all(train.min() > test.max() for train, test in folds)  # the last row comes first
    with pytest.raises(ValueError, match="time determines the folds"):
        spinney.compare(["tree"], X, Y, time=moments, groups=groups)


def test_a_model_that_fails_has_the_reason_in_its_row():
    models = [("line", LogisticRegression()), "tree", ("ridge", spinney.SVC())]
    found = spinney.compare(models, pd.DataFrame(TABLE), PAIR, repeats=1, cv=3)
    assert found.names[-1] == "line"
    assert "could not convert string to float" in found.errors["line"]
    assert "could not convert string" in str(found)
    assert np.isnan(found.mean("line")[0])
    assert found.best_ != "line"
    assert "neg_log_loss" in found.errors["ridge"]  # no probabilities, but an accuracy
    assert not np.isnan(found.mean("ridge")[0])
    with pytest.raises(ValueError, match="could not convert string"):
        spinney.compare(models, pd.DataFrame(TABLE), PAIR, error_score="raise")
    zero = spinney.compare(models[:2], pd.DataFrame(TABLE), PAIR, error_score=0.0, cv=3)
    assert zero.mean("line") == (0.0, 0.0)


def test_labels_of_any_type_for_peers():
    xgboost = pytest.importorskip("xgboost")
    found = spinney.compare([("x", xgboost.XGBClassifier(n_estimators=3)), "tree"], X, CLASSES, cv=3, repeats=1)
    assert not found.errors
    assert found.mean("x")[0] > found.mean("baseline")[0]


def test_words_follow_the_target():
    assert isinstance(spinney.compare("tree", TABLE, VALUES, cv=2).estimators["tree"], spinney.DecisionTreeRegressor)
    labels = spinney.compare(["tree"], TABLE, CLASSES, cv=2)
    assert isinstance(labels.estimators["tree"], spinney.DecisionTreeClassifier)
    counts = np.arange(60) % 12
    assert spinney.compare("tree", X, counts, cv=2).metrics[0] == "neg_root_mean_squared_error"
    assert spinney.compare("tree", X, counts, cv=2, task="classification").metrics[0] == "neg_log_loss"
    with pytest.raises(ValueError, match="is not a regressor like the others"):
        spinney.compare([Ridge(), DecisionTreeClassifier()], X, VALUES)


def test_the_result_as_table_frame_and_words():
    found = spinney.compare(["tree", "linear"], TABLE, VALUES, cv=3, repeats=1, reference="tree")
    text = str(found)
    assert text.splitlines()[0].startswith("3 models, 3 folds, 40 training rows and 20 held-out rows")
    assert "root_mean_squared_error" in text
    assert "difference from tree" in text
    assert "neg_" not in text
    frame = found.to_frame()
    assert list(frame["model"]) == found.names
    assert frame.set_index("model").loc["tree", "difference"] == 0
    assert isinstance(found.to_frame(backend="polars"), pl.DataFrame)
    assert found.reference_ == "tree"
    assert repr(found).startswith("<Comparison: linear, tree, baseline")
    with pytest.raises(ValueError, match="'forest' was not compared"):
        found.differences("forest")
    with pytest.raises(ValueError, match="'f1' was not compared"):
        found.plot("f1")


def test_the_same_comparison_every_time():
    def scores(**options):
        found = spinney.compare(["forest", "linear"], TABLE, CLASSES, cv=3, repeats=1, **options)
        return found.names, found.scores["neg_log_loss"].tolist()

    first = scores()
    assert scores(n_jobs=1) == scores(parallel=True, n_jobs=2) == first
    assert scores(random_state=1) != first


def test_learning_curves():
    found = spinney.compare(["tree", "linear"], TABLE, VALUES, cv=3, repeats=2, learning_curves=[0.5, 1.0])
    assert found.curve_rows.tolist() == [20, 40]
    assert found.curves["linear"].shape == (2, 3)
    np.testing.assert_array_equal(
        found.curves["linear"][1], found.scores[found.metrics[0]][found.names.index("linear")][:3]
    )
    ax = found.plot_curves()
    assert [line.get_label() for line in ax.get_lines()] == found.names
    with pytest.raises(ValueError, match="There are no learning curves"):
        spinney.compare(["tree"], TABLE, VALUES, cv=3).plot_curves()
    with pytest.raises(ValueError, match="fractions of the rows above 0"):
        spinney.compare(["tree"], TABLE, VALUES, learning_curves=[2.0])


def test_pictures_show_what_was_found():
    found = spinney.compare(["tree", "linear"], TABLE, VALUES, cv=3)
    ax = found.plot("neg_root_mean_squared_error")
    assert [label.get_text() for label in ax.get_yticklabels()] == found.names
    assert "lower is better" in ax.get_xlabel()


class Slow(RegressorMixin, BaseEstimator):
    """Takes its time, or is interrupted."""

    def __init__(self, seconds=0.0, interrupted=False):
        self.seconds, self.interrupted = seconds, interrupted

    def fit(self, X, y):
        time.sleep(self.seconds)
        if self.interrupted:
            raise KeyboardInterrupt
        self.fitted_ = True
        return self

    def predict(self, X):
        time.sleep(self.seconds)
        return np.zeros(len(X))


def test_an_interruption_keeps_what_is_done():
    models = {"tree": spinney.DecisionTreeRegressor(), "hurt": Slow(interrupted=True), "late": Ridge()}
    with pytest.warns(UserWarning, match="stopped early; these models are left out: hurt, late, baseline"):
        found = spinney.compare(models, X, Y, cv=3)
    assert (found.names, found.unfinished) == (["tree"], ["hurt", "late", "baseline"])
    assert "Not finished: hurt" in str(found)
    with (
        pytest.warns(UserWarning, match="stopped early"),
        pytest.warns(UserWarning, match="reference 'late' was not finished"),
    ):
        other = spinney.compare(models, X, Y, cv=3, reference="late")
    assert other.reference_ == "tree"
    with pytest.raises(KeyboardInterrupt):
        spinney.compare({"hurt": Slow(interrupted=True)}, X, Y)


def test_a_budget_of_time_and_times():
    models = {"tree": spinney.DecisionTreeRegressor(), "slow": Slow(0.05)}
    with pytest.warns(UserWarning, match="stopped early"):
        found = spinney.compare(models, X, Y, cv=3, minutes=0.2 / 60, baseline=False)
    assert found.names == ["tree"]
    times = spinney.compare(models, X, Y, cv=2, repeats=1, baseline=False)
    slow = times.names.index("slow")
    assert times.fit_seconds[slow].min() >= 0.05
    assert 0.05 <= times.predict_seconds[slow].min() < 0.1
    with pytest.raises(TimeoutError, match="Raise minutes"):
        spinney.compare(models, X, Y, minutes=0.0)


def test_own_metrics_and_weights():
    weight = np.linspace(0.1, 2, 60)
    own = make_scorer(mean_absolute_error, greater_is_better=False)
    found = spinney.compare(["tree", "linear"], TABLE, VALUES, cv=KFold(3), scoring={"mae": own}, sample_weight=weight)
    model = spinney.LinearRegressor()
    by_hand = []
    for train, test in KFold(3).split(X):
        rows = [{name: column[side] for name, column in TABLE.items()} for side in (train, test)]
        predicted = model.fit(rows[0], VALUES[train], weight[train]).predict(rows[1])
        by_hand.append(-np.average(np.abs(predicted - VALUES[test]), weights=weight[test]))
    np.testing.assert_allclose(found.scores["mae"][found.names.index("linear")], by_hand)
    with pytest.warns(UserWarning, match="do not support sample_weight and are fitted without it: slow"):
        spinney.compare({"slow": Slow(), "line": Ridge()}, X, Y, cv=2, sample_weight=weight)
    with pytest.raises(ValueError, match="reference='x' is not among the models"):
        spinney.compare(["tree"], X, Y, reference="x")


def test_nobody_sets_the_clock_of_a_budget(monkeypatch):
    end = Budget(60)
    with monkeypatch.context() as clocks:
        clocks.setattr(time, "time", lambda now=time.time: now() + 3600)  # someone sets the time of day
        assert not end.is_over()
    with monkeypatch.context() as clocks:
        sent = pickle.dumps(end)
        clocks.setattr(time, "time", lambda now=time.time: now() - 86400)
        assert pickle.loads(sent).left <= 60
    with monkeypatch.context() as clocks:
        sent = pickle.dumps(end)
        clocks.setattr(platform, "node", lambda: "another machine")
        clocks.setattr(time, "monotonic", lambda now=time.monotonic: now() + 1e6)  # it runs for longer
        assert not pickle.loads(sent).is_over()
    assert Budget(-1).is_over()
    assert pickle.loads(pickle.dumps(Budget(-1))).is_over()
    assert not pickle.loads(pickle.dumps(Budget(None))).is_over()


@pytest.mark.parametrize("word", ["linear", "svm", "linear_svm", "functional", "adaboost", "knn", "forest", "tree"])
def test_scorers_find_the_prediction_methods_of_every_family(word):
    X, y = spinney.datasets.load_penguins()
    compared = spinney.compare([word], X, y, cv=2, repeats=1, baseline=False, scoring="accuracy")
    assert compared.errors == {}
