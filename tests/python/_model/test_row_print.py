"""Methods that need the training rows refuse other rows."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import spinney
from oracle.saved import bytes_of
from sklearn.neighbors import KNeighborsClassifier
from spinney import (
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney._model.file.container import from_bytes, to_bytes

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))
X[::7, 1] = np.nan
Y = X[:, 0] + RANDOM.normal(size=60)
LABELS = np.where(Y > 0, "high", "low")
ORDER = RANDOM.permutation(60)
OTHER = RANDOM.normal(size=(60, 3))
SWAPPED = np.concatenate([[1, 0], np.arange(2, 60)])


@pytest.fixture(scope="module")
def classifier():
    return RandomForestClassifier(20, keep_rows=True, random_state=0).fit(X, LABELS)


@pytest.fixture(scope="module")
def regressor():
    return RandomForestRegressor(20, keep_rows=True, random_state=0).fit(X, Y)


USES = {
    "permutation": lambda forest, X, y: forest.importances(X, y),
    "unbiased": lambda forest, X, y: forest.importances(X, y, "unbiased"),
    "errors": lambda forest, X, y: forest.oob_errors(X, y),
    "oob proximity": lambda forest, X, y: forest.proximity(X, kind="oob"),
    "gap proximity": lambda forest, X, y: forest.proximity(X, X, kind="gap"),
    "weights": lambda forest, X, y: forest.leaf_weights(X, oob=True),
}


def numbers(found):
    found = getattr(found, "importance", found)
    return found.toarray() if hasattr(found, "toarray") else found


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("rows", [ORDER, SWAPPED])
def test_rows_in_another_order_are_refused(classifier, regressor, use, rows):
    for forest, y in ((classifier, LABELS), (regressor, Y)):
        with pytest.raises(ValueError, match=r"X is not what the forest was fitted on.*another order.*Pass the X of"):
            USES[use](forest, X[rows], y[rows])


@pytest.mark.parametrize("use", USES)
def test_other_rows_are_refused(classifier, use):
    with pytest.raises(ValueError, match="X is not what the forest was fitted on: other rows"):
        USES[use](classifier, OTHER, LABELS)


@pytest.mark.parametrize("use", ["permutation", "unbiased", "errors"])
def test_another_target_is_refused(classifier, regressor, use):
    for forest, y in ((classifier, LABELS), (regressor, Y)):
        with pytest.raises(ValueError, match="y is not what the forest was fitted on"):
            USES[use](forest, X, y[ORDER])


@pytest.mark.parametrize("use", USES)
def test_the_same_rows_are_taken_from_any_library(classifier, use):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    forest = RandomForestClassifier(5, keep_rows=True, random_state=0).fit(frame, LABELS)
    expected = numbers(USES[use](forest, frame, LABELS))
    for table in (frame[["c", "a", "b"]], pl.DataFrame(frame), pa.table(frame)):
        np.testing.assert_array_equal(numbers(USES[use](forest, table, pd.Series(LABELS))), expected)
    expected = numbers(USES[use](classifier, X, LABELS))
    found = USES[use](classifier, np.asfortranarray(X), LABELS.tolist())
    np.testing.assert_array_equal(numbers(found), expected)


def test_missing_categories_and_negative_zeros_are_the_same_rows():
    frame = pd.DataFrame({"a": np.where(np.arange(60) % 2, 0.0, -0.0), "b": pd.Categorical(LABELS), "c": X[:, 1]})
    forest = RandomForestRegressor(5, random_state=0).fit(frame, Y)
    found = forest.oob_errors(frame.assign(a=0.0, b=LABELS), Y)
    np.testing.assert_array_equal(found, forest.oob_errors(frame, Y))


def test_groups_and_combinations_are_checked_as_well():
    forest = RandomForestRegressor(5, oblique=10, random_state=0).fit(X, Y, groups=np.arange(60) // 2)
    forest.oob_errors(X, Y)
    with pytest.raises(ValueError, match="another order"):
        forest.oob_errors(X[ORDER], Y[ORDER])


@pytest.mark.parametrize("kind", [BaggingClassifier, BaggingRegressor])
def test_bagging_notices_other_rows(kind):
    y = LABELS if kind is BaggingClassifier else Y
    bagging = kind(n_estimators=5, random_state=0).fit(X, y)
    np.testing.assert_array_equal(bagging.oob_errors(pd.DataFrame(X).to_numpy(), y), bagging.oob_errors(X, y))
    for table, target, name in ((X[ORDER], y[ORDER], "X"), (OTHER, y, "X"), (X, y[ORDER], "y")):
        with pytest.raises(ValueError, match=f"{name} is not what the ensemble was fitted on.*another order"):
            bagging.oob_errors(table, target)


def test_bagging_of_frames_notices_other_rows_whatever_the_library():
    frame = pd.DataFrame({"a": OTHER[:, 0], "b": OTHER[:, 1]})
    bagging = BaggingClassifier(KNeighborsClassifier(3), 5, random_state=0).fit(frame, LABELS)
    expected = bagging.oob_errors(frame, LABELS)
    np.testing.assert_array_equal(bagging.oob_errors(pl.DataFrame(frame), LABELS), expected)
    with pytest.raises(ValueError, match="another order"):
        bagging.oob_errors(frame.iloc[ORDER], LABELS[ORDER])


@pytest.mark.parametrize("places", [(1, 3), (5, 9_998), (0, 9_999)])
def test_any_two_rows_of_a_long_table_are_distinguished(places):
    table = np.random.default_rng(0).normal(size=(10_000, 2))
    y = np.arange(10_000.0)
    order = np.arange(10_000)
    order[list(places)] = order[list(places[::-1])]
    forest = RandomForestRegressor(2, max_depth=3, random_state=0).fit(table, y)
    bagging = BaggingRegressor(DecisionTreeRegressor(max_depth=3), 2, random_state=0).fit(table, y)
    for model in (forest, bagging):
        model.oob_errors(table, y)
        with pytest.raises(ValueError, match="X is not what"):
            model.oob_errors(table[order], y)
        with pytest.raises(ValueError, match="y is not what"):
            model.oob_errors(table, y[order])


def test_the_fingerprint_of_rows_survives_a_file(regressor):
    loaded = spinney.load(io.BytesIO(bytes_of(regressor)))
    np.testing.assert_array_equal(loaded.oob_errors(X, Y), regressor.oob_errors(X, Y))
    with pytest.raises(ValueError, match="another order"):
        loaded.oob_errors(X[ORDER], Y[ORDER])
    header, file = from_bytes(bytes_of(regressor))
    rows = header["forest"]["rows"]
    rows["print"] = rows.pop("print_of_all")  # as in files that cover some of the rows only
    trees = [regressor.forest_.tree(t).engine for t in range(file.n_trees)]
    older = spinney.load(io.BytesIO(to_bytes(header, trees)))
    assert older.oob_errors(X, Y).shape == older.oob_errors(X[ORDER], Y[ORDER]).shape == (20,)
