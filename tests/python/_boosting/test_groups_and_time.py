"""Groups and times are respected in the internal splits of learners, whatever function fits them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
import spinney
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import TimeSeriesSplit


class Recording(spinney.GradientBoostingRegressor):
    """Boosting that records the groups and times that it is passed."""

    records: ClassVar[list[tuple[Any, Any, Any]]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, time: Any = None) -> Any:
        self.records.append((np.asarray(X)[:, 0], groups, time))
        return super().fit(X, y, sample_weight, groups=groups, time=time)


class RecordingTree(spinney.DecisionTreeRegressor):
    """A tree that records the groups that it is passed."""

    records: ClassVar[list[Any]] = []
    rows: ClassVar[list[np.ndarray]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        self.records.append(groups)
        self.rows.append(np.asarray(X)[:, 0])
        return super().fit(X, y, sample_weight, groups=groups)


@pytest.fixture(autouse=True)
def clear_records() -> None:
    Recording.records.clear()
    RecordingTree.records.clear()
    RecordingTree.rows.clear()


def _rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = np.column_stack([np.arange(60.0), random.normal(size=60)])  # the first column is the row number
    return X, X[:, 1] + random.normal(size=60), np.arange(60) // 4


def test_bias_variance_passes_groups_to_boosting() -> None:
    X, y, groups = _rows()
    spinney.bias_variance(Recording(), X, y, groups=groups, n_repeats=3, random_state=0, n_jobs=1)
    assert len(Recording.records) == 3
    for row, passed, _ in Recording.records:
        of_row = row.astype(int) // 4
        assert all(len(np.unique(passed[of_row == g])) == 1 for g in np.unique(of_row))
        assert len(np.unique(passed)) == len(np.unique(of_row)) > 1


def test_bias_variance_evaluates_the_latest_rows() -> None:
    X, y, _ = _rows()
    moments = np.random.default_rng(1).permutation(60) // 2  # two rows each
    is_late = moments >= 24
    learners = {"ours": Recording(), "its mean": LinearRegression()}
    report = spinney.bias_variance(learners, X, y, time=moments, n_repeats=3, random_state=0, n_jobs=1)
    assert report.n_rows == is_late.sum() == 12
    for row, together, time in Recording.records:
        assert together is None  # moments hold rows together that were drawn twice
        np.testing.assert_array_equal(time, moments[row.astype(int)])
        assert len(row) == 48
        assert not is_late[row.astype(int)].any()
        assert len(np.unique(row)) < len(row)
    dates = np.datetime64("2024-01-01") + moments.astype("timedelta64[D]")
    again = spinney.bias_variance(learners, X, y, time=dates, n_repeats=3, random_state=0)
    assert again.parts == report.parts


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"time": np.zeros(60)}, "Most rows have the same time"),
        ({"time": np.arange(59)}, "time has shape"),
        ({"time": np.arange(60), "groups": np.arange(60)}, "time and groups both determine"),
    ],
)
def test_bias_variance_refuses_unusable_times(given: dict[str, Any], message: str) -> None:
    X, y, _ = _rows()
    with pytest.raises(ValueError, match=message):
        spinney.bias_variance(LinearRegression(), X, y, **given)
    with pytest.raises(ValueError, match="time requires X and y"):
        spinney.bias_variance(LinearRegression(), time=y, generator=lambda rng, n: (X, y))


def test_bias_variance_holds_out_copies_of_a_row_together() -> None:
    X, y, _ = _rows()
    spinney.bias_variance(Recording(), X, y, n_repeats=2, random_state=0, n_jobs=1)
    for row, passed, _ in Recording.records:
        np.testing.assert_array_equal(row, passed)


@pytest.mark.parametrize(
    "learner",
    [
        spinney.GradientBoostingRegressor(n_estimators=5, early_stopping=False),
        spinney.DecisionTreeRegressor(),
        spinney.RandomForestRegressor(3),
        LinearRegression(),
    ],
)
def test_models_without_validation_get_no_groups(learner: Any) -> None:
    X, y, groups = _rows()
    report = spinney.bias_variance(learner, X, y, groups=groups, n_repeats=2, random_state=0, n_jobs=1)
    assert "squared loss" in str(report)


def test_fragility_prunes_by_folds_of_whole_groups() -> None:
    X, y, groups = _rows()
    tree = RecordingTree(prune="cv", cv=3, random_state=0).fit(X, y, groups=groups)
    spinney.fragility(tree, X, y, groups=groups, n_bootstraps=2, random_state=0)
    assert len(RecordingTree.records) == 3
    for passed in RecordingTree.records:
        np.testing.assert_array_equal(passed, groups)


class RecordingSplit(TimeSeriesSplit):
    """Folds in the order of time, which are recorded."""

    made: ClassVar[list[tuple[np.ndarray, np.ndarray]]] = []

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        for training, validation in super().split(X, y, groups):
            self.made.append((training, validation))
            yield training, validation


def test_fragility_respects_the_order_of_time_in_pruning() -> None:
    X, y, _ = _rows()
    tree = RecordingTree(prune="cv", cv=RecordingSplit(3), random_state=0).fit(X, y)
    RecordingSplit.made.clear()
    report = spinney.fragility(tree, X, y, n_bootstraps=2, random_state=0)
    assert report.n_bootstraps == 2
    assert len(RecordingSplit.made) == 6
    assert all(training.max() < validation.min() for training, validation in RecordingSplit.made)
    np.testing.assert_array_equal(RecordingTree.rows[-1], X[:, 0])  # samples are weights: rows stay where they are


def test_compare_passes_groups_and_times() -> None:
    X, y, groups = _rows()
    spinney.compare(
        [("ours", Recording()), ("line", LinearRegression())], X, y, groups=groups, cv=3, repeats=1, n_jobs=1
    )
    assert len(Recording.records) == 3
    for row, passed, _ in Recording.records:
        np.testing.assert_array_equal(passed, row.astype(int) // 4)
    Recording.records.clear()
    spinney.compare([("ours", Recording())], X, y, time=X[:, 0], cv=3, repeats=1, n_jobs=1)
    assert len(Recording.records) == 3
    for row, passed, time in Recording.records:
        assert passed is None
        np.testing.assert_array_equal(time, row)


def test_stacking_passes_groups_to_its_members() -> None:
    X, y, groups = _rows()
    spinney.StackingRegressor([("ours", Recording())], cv=3, n_jobs=1).fit(X, y, groups=groups)
    assert len(Recording.records) == 4  # of each fold, and of all rows
    for row, passed, _ in Recording.records:
        np.testing.assert_array_equal(passed, row.astype(int) // 4)


def test_fewer_groups_than_folds_are_not_passed() -> None:
    X, y, _ = _rows()
    groups = np.arange(60) // 5  # twelve, of which a bootstrap sample has seven or eight
    tree = spinney.DecisionTreeRegressor(prune="cv", random_state=0).fit(X, y, groups=groups)
    assert spinney.fragility(tree, X, y, groups=groups, n_bootstraps=3, random_state=0).n_bootstraps == 3
    assert "squared" in str(spinney.bias_variance(tree, X[:15], y[:15], n_repeats=3, random_state=0))
    stack = spinney.StackingRegressor([("tree", tree), ("boosted", Recording())], cv=2).fit(X, y, groups=groups)
    assert len(stack.estimators_) == 2


def test_each_class_has_training_rows_when_groups_are_held_out() -> None:
    X, _, groups = _rows()
    labels = groups % 2  # each group is of one class
    few = groups < 2
    model = spinney.GradientBoostingClassifier(n_estimators=5, early_stopping=True, random_state=0)
    with pytest.raises(ValueError, match="leaves no training rows, or no validation rows"):
        model.fit(X[few], labels[few], groups=groups[few])
    few = groups < 3
    for seed in range(8):
        fitted = model.set_params(random_state=seed).fit(X[few], labels[few], groups=groups[few])
        assert list(fitted.classes_) == [0, 1]
