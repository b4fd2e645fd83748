"""Bad tables: each is refused with a sentence that names the column and states what to do."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import spinney
from spinney._data import Schema, read_table


class BrokenStream:
    """A producer whose chunks cannot be read."""

    def __arrow_c_stream__(self, requested_schema=None):
        def batches():
            raise OSError("the disk is on fire")
            yield

        schema = pa.schema([("a", pa.int64())])
        return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__()


def structured():
    return np.zeros(3, dtype=[("a", float), ("b", float)])


def frame(**columns):
    return pd.DataFrame(columns)


def objects(*cells):
    array = np.empty((len(cells), 1), dtype=object)
    array[:, 0] = cells
    return array


def arrow(values, type_=None, name="when"):
    return pa.table({name: pa.array(values, type_)})


DAY = datetime.date(2026, 1, 2)
NOON = datetime.datetime(2026, 1, 2, 12)
READ_ERRORS = [
    (lambda: None, TypeError, "X must be a table .* not NoneType"),
    (lambda: "a,b\n1,2", TypeError, "X must be a table .* not str"),
    (lambda: b"12", TypeError, "X must be a table .* not bytes"),
    (object, TypeError, "X must be a table .* not object"),
    (lambda: (row for row in [[1, 2]]), TypeError, "X must be a table .* not generator"),
    (lambda: 3.0, ValueError, "Expected 2D array, got scalar array instead"),
    (lambda: np.ones(3), ValueError, "Expected 2D array, got 1D array instead"),
    (lambda: np.ones(3), ValueError, "Reshape your data"),
    (lambda: [1, 2, 3], ValueError, "Expected 2D array, got 1D array instead"),
    (
        lambda: pd.Series([1, 2]),
        ValueError,
        "Expected 2D array, got 1D array instead(.|\n)*Reshape your data",
    ),
    (lambda: pl.Series([1, 2]), ValueError, "Expected 2D array, got 1D array instead"),
    (lambda: pa.array([1, 2]), ValueError, "Expected 2D array, got 1D array instead"),
    (lambda: pa.chunked_array([["a"], ["b"]]), ValueError, "Expected 2D array, got 1D array instead"),
    (lambda: sp.coo_array(np.ones(3)), ValueError, "Expected 2D array, got 1D array instead"),
    (lambda: np.ones((2, 2, 2)), ValueError, "Found array with dim 3"),
    (lambda: [[[1]]], ValueError, "Found array with dim 3"),
    (
        lambda: np.ones((0, 3)),
        ValueError,
        r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1",
    ),
    (
        lambda: np.ones((5, 0)),
        ValueError,
        r"Found array with 0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of 1",
    ),
    (lambda: frame(a=[]), ValueError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
    (lambda: pd.DataFrame(index=[1, 2]), ValueError, r"0 feature\(s\) \(shape=\(2, 0\)\)"),
    (lambda: pl.DataFrame({"a": []}), ValueError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
    (lambda: arrow([], pa.string()), ValueError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
    (lambda: arrow([], pa.timestamp("s")), ValueError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
    (lambda: sp.csr_array((0, 3)), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\)"),
    (lambda: {}, ValueError, r"0 sample\(s\)"),
    (lambda: np.ones((2, 2)) * 1j, ValueError, "Complex data not supported"),
    (lambda: sp.csc_array(np.ones((2, 2)) * 1j), ValueError, "Complex data not supported"),
    (lambda: frame(z=[1j, 2j]), ValueError, "Complex data not supported: Column 'z'"),
    (lambda: objects(1.0, 1j), ValueError, "Complex data not supported: Column 0"),
    (structured, ValueError, "Expected 2D array"),
    (lambda: structured().reshape(3, 1), TypeError, "structured array; pass a data frame"),
    (lambda: [[1, 2], [3]], ValueError, "rows of X differ in length"),
    (lambda: objects("a", 1.0), TypeError, "Column 0 mixes strings and numbers; convert"),
    (lambda: objects("a", True), TypeError, "Column 0 mixes strings and numbers"),
    (lambda: [["a", 1], [2, 3]], TypeError, "Column 0 mixes strings and numbers"),
    (lambda: frame(m=["a", 1, None]), TypeError, "Column 'm' mixes strings and numbers"),
    (lambda: frame(m=pd.Categorical(["a", 1])), TypeError, "Column 'm' mixes strings and numbers"),
    (lambda: objects({"foo": "bar"}, 1), TypeError, "argument must be .* string.* number"),
    (
        lambda: frame(cell=[[1, 2], [3]]),
        TypeError,
        "Column 'cell' .* list: its argument must be a string or a number",
    ),
    (lambda: np.array([[3]], dtype="m8[s]"), TypeError, "Column 0 holds durations; convert them to numbers"),
    (lambda: objects(np.timedelta64(1, "s")), TypeError, "Column 0 holds times of day or durations"),
    (lambda: frame(when=pd.to_timedelta([3], "s")), TypeError, "Column 'when' holds durations"),
    (lambda: frame(when=pd.Categorical([NOON])), TypeError, "Column 'when' has dates as categories"),
    (
        lambda: frame(i=pd.cut([1, 2], 2)),
        TypeError,
        "Column 'i' has intervals as categories; convert it to strings",
    ),
    (lambda: frame(i=pd.arrays.IntervalArray.from_breaks([0, 1])), TypeError, "Column 'i' holds intervals"),
    (
        lambda: frame(s=pd.array([{"a": 1}], dtype=pd.ArrowDtype(pa.struct({"a": pa.int8()})))),
        TypeError,
        "'s'.*nested",
    ),
    (
        lambda: pl.DataFrame({"when": [datetime.timedelta(1)]}),
        TypeError,
        "Column 'when' holds times of day or durations",
    ),
    (lambda: pl.DataFrame({"when": [datetime.time(1)]}), TypeError, "Column 'when' holds times of day or durations"),
    (lambda: pl.DataFrame({"cell": [[1]]}), TypeError, "Column 'cell' holds nested values"),
    (lambda: pl.DataFrame({"cell": [{"a": 1}]}), TypeError, "Column 'cell' holds nested values"),
    (lambda: pl.DataFrame({"cell": [b"x"]}), TypeError, "Column 'cell' holds bytes; decode"),
    (lambda: pl.LazyFrame({"a": [1]}), TypeError, r"LazyFrame; call collect\(\)"),
    (
        lambda: arrow([DAY], pa.date32()).set_column(0, "d", pa.array([DAY]).dictionary_encode()),
        TypeError,
        "'d'.*dates",
    ),
    (lambda: arrow([[1]]), TypeError, "Column 'when' holds nested values"),
    (lambda: arrow([b"ab"]), TypeError, "Column 'when' holds bytes"),
    (lambda: arrow([b"ab"], pa.binary(2)), TypeError, "Column 'when' holds bytes"),
    (lambda: arrow([1], pa.decimal256(50)), TypeError, "Column 'when' holds decimals of more than 128 bits"),
    (
        lambda: pa.table({"r": pa.RunEndEncodedArray.from_arrays([2], [1.0])}),
        TypeError,
        "'r' is run-end encoded",
    ),
    (BrokenStream, RuntimeError, "the disk is on fire"),
    (lambda: np.array([[b"a"]]), TypeError, "Column 0 holds bytes; decode them to strings"),
    (lambda: np.array([[np.void(b"abc")]]), TypeError, "argument must be a string or a number"),
    (
        lambda: pd.DataFrame([[1, 2]], columns=["a", 0]),
        TypeError,
        r"only supported if all .* \['int', 'str'\]",
    ),
    (lambda: pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), ValueError, "more than once: 'a'"),
    (lambda: pa.Table.from_arrays([pa.array([1])] * 2, ["b", "b"]), ValueError, "more than once: 'b'"),
    (lambda: {"a": [1], 2: [3]}, TypeError, "only supported if all"),
    (lambda: {1: [1], 2: [3]}, TypeError, "its keys must be the column names"),
    (lambda: {"a": [1, 2], "b": [3]}, ValueError, r"columns of X differ in length: \[1, 2\]"),
    (lambda: {"a": [[1, 2]]}, ValueError, "Column 'a' has 2 dimensions"),
    (lambda: {"a": "xyz"}, ValueError, "Column 'a' has 0 dimensions"),
    (lambda: {"a": 1}, ValueError, "Column 'a' has 0 dimensions"),
]


@pytest.mark.parametrize(("make", "error", "sentence"), READ_ERRORS, ids=[row[2][:40] for row in READ_ERRORS])
def test_unusable_tables_are_refused_with_a_sentence(make, error, sentence):
    X = make()
    with pytest.raises(error, match=sentence):
        read_table(X)


NUMBERS = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
CITIES = pd.DataFrame({"city": ["Bern", "Rome"]})
GRADES = pd.DataFrame({"grade": pd.Categorical([1, 2])})
MATCH = re.escape("The feature names should match those that were passed during fit.\n")
UNSEEN = "Feature names unseen at fit time:\n"
REMEDY = "Leave out the columns that were not passed to fit"
ABSENT = "Feature names seen at fit time, yet now missing:\n"
MANY = pd.DataFrame({"city": list("abcdefgh")})
ENCODE_ERRORS = [
    (NUMBERS, NUMBERS[["a"]], ValueError, f"^{MATCH}{ABSENT}- b\nAdd the missing columns, or rename columns of X.$"),
    (
        NUMBERS,
        NUMBERS.assign(c=0),
        ValueError,
        f"^{MATCH}{UNSEEN}- c\n{REMEDY}.$",
    ),
    (
        NUMBERS,
        NUMBERS.rename(columns={"b": "c"}),
        ValueError,
        f"^{MATCH}{UNSEEN}- c\n{ABSENT}- b\n{REMEDY}. Add",
    ),
    (NUMBERS, NUMBERS.assign(**dict.fromkeys("cdefghi", 0)), ValueError, r"- g\n- \.\.\.\nLeave out"),
    (
        np.ones((2, 4)),
        np.ones((2, 3)),
        ValueError,
        "^X has 3 features, but Model is expecting 4 features as input",
    ),
    (
        NUMBERS,
        NUMBERS.astype({"b": str}),
        TypeError,
        r"^Column 'b' held numbers at fit and holds strings .*'3\.0'",
    ),
    (NUMBERS, NUMBERS.astype({"b": str}).astype("category"), TypeError, "^Column 'b' held numbers at fit"),
    (np.ones((1, 2)), [[1.0, "x"]], TypeError, "^Column 1 held numbers at fit and holds strings such as 'x'"),
    (
        CITIES,
        pd.DataFrame({"city": [1, 2]}),
        TypeError,
        "^Column 'city' had strings .* holds numbers such as 1 now",
    ),
    (CITIES, pd.DataFrame({"city": [True]}), TypeError, "^Column 'city' had strings as categories at fit"),
    (
        GRADES,
        pd.DataFrame({"grade": ["1"]}),
        TypeError,
        "^Column 'grade' had numbers as categories .* strings",
    ),
    (
        CITIES,
        pd.DataFrame({"city": ["Oslo", "Bern"]}),
        ValueError,
        "^Column 'city' holds .* at fit: 'Oslo'. ",
    ),
    (CITIES, MANY, ValueError, "'a', 'b', 'c', 'd', 'e' and 3 more"),
    (GRADES, pd.DataFrame({"grade": [2, 3]}), ValueError, "^Column 'grade' holds .* at fit: 3. "),
    (
        pd.DataFrame({"o": pd.Categorical(["s"], ["s", "l"], ordered=True)}),
        {"o": ["m"]},
        ValueError,
        "at fit: 'm'",
    ),
    (pd.DataFrame({"e": [None, None]}), {"e": ["m"]}, ValueError, "'e' holds categories .* at fit: 'm'"),
]


@pytest.mark.parametrize(("train", "other", "error", "sentence"), ENCODE_ERRORS, ids=range(len(ENCODE_ERRORS)))
def test_tables_that_do_not_fit_the_schema_are_refused(train, other, error, sentence):
    schema = Schema.learn(read_table(train))
    schema.encode(read_table(train), unseen="error")
    with pytest.raises(error, match=sentence):
        schema.encode(read_table(other), unseen="error", estimator="Model")


@pytest.mark.parametrize(
    ("declared", "error", "sentence"),
    [
        ("a", TypeError, "must be a list of names, positions or bools, not 'a'"),
        (["z"], ValueError, "names the column 'z', which X does not have"),
        ([2], ValueError, "has the position 2, but X has 2 columns"),
        ([-1], ValueError, "has the position -1"),
        ([True], ValueError, "has 1 bools, but X has 2 columns"),
        ([1.5], TypeError, "must be names, positions or bools, not float"),
        ([0, True], TypeError, "must be names, positions or bools, not bool"),
    ],
)
def test_wrong_declarations_of_categories_are_refused(declared, error, sentence):
    with pytest.raises(error, match=sentence):
        Schema.learn(read_table(NUMBERS), categorical_features=declared)


def test_names_of_categories_need_named_columns():
    with pytest.raises(ValueError, match="names the column 'a', but X has no column names"):
        Schema.learn(read_table(np.ones((2, 2))), categorical_features=["a"])


def test_unknown_policies_are_refused():
    with pytest.raises(ValueError, match="unseen must be 'missing', 'error' or 'other', not 'ignore'"):
        Schema.learn(read_table(NUMBERS), unseen="ignore")
    with pytest.raises(ValueError, match="unseen must be"):
        Schema.learn(read_table(NUMBERS)).encode(read_table(NUMBERS), unseen="ignore")


GOOD = {"name": "a", "kind": "category", "categories": ["x", "y"]}


@pytest.mark.parametrize(
    "features",
    [
        [],
        None,
        [3],
        [{"kind": "number"}],
        [{"name": 3, "kind": "number"}],
        [{"name": "a", "kind": "colour"}],
        [{"name": "a", "kind": "category"}],
        [{"name": "a", "kind": "number", "categories": ["x"]}],
        [GOOD | {"categories": ["x", "x"]}],
        [GOOD | {"categories": ["x", 1]}],
        [GOOD | {"categories": [None]}],
        [GOOD | {"categories": [float("nan")]}],
        [GOOD | {"categories": [{"float": "nan"}]}],
        [GOOD | {"categories": [["x"]]}],
        [GOOD | {"categories": 3}],
        [GOOD | {"empty": "yes"}],
        [GOOD, GOOD],
    ],
)
def test_dicts_that_are_no_schema_are_refused(features):
    fields = {"has_names": True, "unseen": "missing", "features": [GOOD]}
    assert Schema.from_dict(fields).names == ["a"]
    with pytest.raises(ValueError, match="not a schema"):
        Schema.from_dict(fields | {"features": features})
    for name, value in [("has_names", 1), ("unseen", "ignore")]:
        with pytest.raises(ValueError, match=r"not a schema|unseen must be"):
            Schema.from_dict(fields | {name: value})


# ---- integers beyond 2**53 ---------------------------------------------------------------------------------

LARGE = np.array([2**53, 2**53 + 1, 2**53 + 4, 5] * 10, dtype=np.int64)
TARGET = np.tile([0, 1, 1, 0], 10)
LOSS = (
    r"Column .id. holds integers beyond 2\*\*53, of which 1 cannot be distinguished from others.*categorical_features"
)


@pytest.mark.parametrize(
    "estimator",
    [
        spinney.DecisionTreeClassifier(),
        spinney.DecisionTreeRegressor(),
        spinney.RandomForestClassifier(2),
        spinney.ExtraTreesRegressor(2),
        spinney.GradientBoostingClassifier(n_estimators=2),
        spinney.IsolationForest(n_estimators=2),
        spinney.RandomTreesEmbedding(n_estimators=2),
        spinney.ProximityImputer(n_estimators=2),
        spinney.BaggingClassifier(n_estimators=2, n_jobs=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_integers_that_float64_rounds_to_one_are_named(estimator):
    frame = pd.DataFrame({"small": np.arange(40), "id": LARGE})
    with pytest.warns(UserWarning, match=LOSS) as warned:
        estimator.fit(frame, TARGET)
    if type(estimator).__name__ in ("DecisionTreeClassifier", "RandomForestClassifier", "GradientBoostingClassifier"):
        assert warned[0].filename == __file__  # the line of the user's that calls fit
    estimator.fit(frame.astype({"id": str}), TARGET)


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"id": LARGE}),
        pa.table({"id": LARGE}),
        pa.table({"id": pa.array([None, *LARGE[1:].tolist()], pa.int64())}),
        pd.DataFrame({"id": pd.array([None, *LARGE[1:].tolist()], dtype="Int64")}),
        pd.DataFrame({"id": -LARGE}),
        pd.DataFrame({"id": LARGE.astype(np.uint64) + np.uint64(2**63)}),
        pd.DataFrame({"id": LARGE.astype(object)}),
    ],
)
def test_integers_that_float64_rounds_to_one_are_named_in_any_table(table):
    with pytest.warns(UserWarning, match=r"Column 'id' holds integers beyond 2\*\*53"):
        spinney.DecisionTreeClassifier().fit(table, TARGET)


def test_arrays_and_sparse_tables_name_the_position():
    X = np.column_stack([np.arange(40), LARGE])
    for table in (X, sp.csc_array(X)):
        with pytest.warns(UserWarning, match="Column 1 holds integers"):
            spinney.DecisionTreeClassifier().fit(table, TARGET)


@pytest.mark.parametrize(
    "column",
    [
        np.arange(40) + 2**53 - 40,  # each is a distinct float64
        np.arange(40) * 1024 + 2**62,  # beyond, but far enough apart
        np.full(40, 2**53 + 1),  # one value
        np.arange(40, dtype=np.int32),
        np.arange(40) * 1e30,
    ],
)
def test_integers_that_stay_apart_are_no_one_s_business(column):
    tree = spinney.DecisionTreeClassifier().fit(column[:, np.newaxis], TARGET)
    assert tree.score(column[:, np.newaxis], TARGET) == (1.0 if column[0] != column[1] else 0.5)


def test_integers_that_are_labels_stay_apart():
    tree = spinney.DecisionTreeClassifier(categorical_features=[0]).fit(LARGE[:, np.newaxis], TARGET)
    assert tree.score(LARGE[:, np.newaxis], TARGET) == 1
