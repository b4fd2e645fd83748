"""What each reader makes of a table, and that it does so in place."""

import decimal
import fractions
import subprocess
import sys
import tracemalloc

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import _NotAnArray
from spinney._data import NumberColumn, Schema, read_table
from spinney._data import read as table_readers

NAN = np.nan


def encoded(X, **options):
    """The engine's columns as a float64 matrix: NaN is missing, a category is its code."""
    table = read_table(X)
    engine = Schema.learn(table, **options).encode(table)
    return np.column_stack([engine.column(j) for j in range(engine.n_columns)])


def kinds(X):
    return [feature.kind for feature in Schema.learn(read_table(X)).features]


def assert_same(X, expected):
    np.testing.assert_array_equal(encoded(X), np.array(expected, dtype=float))


NUMBER_DTYPES = [
    "i1",
    "i2",
    "i4",
    "i8",
    "u1",
    "u2",
    "u4",
    "u8",
    "f2",
    "f4",
    "f8",
    "g",
    ">f8",
    ">i4",
    ">f2",
    "?",
]


@pytest.mark.parametrize("dtype", NUMBER_DTYPES)
@pytest.mark.parametrize("order", ["C", "F", "reversed", "step", "transposed"])
def test_arrays_of_every_dtype_and_stride(dtype, order):
    values = (np.arange(24).reshape(6, 4) % 5).astype(dtype)
    X = {
        "C": values,
        "F": np.asfortranarray(values),
        "reversed": values[::-1, ::-1],
        "step": values[::2, 1::2],
        "transposed": values.T,
    }[order]
    assert_same(X, X.astype(float))


def test_infinities_are_numbers_and_nan_is_missing():
    assert_same([[np.inf, -np.inf], [NAN, 0.0]], [[np.inf, -np.inf], [NAN, 0.0]])


def test_odd_arrays():
    fields = np.zeros(3, dtype=[("flag", "i1"), ("x", "f8", 2)])  # 17 bytes from row to row
    fields["x"] = [[1, 2], [3, 4], [5, 6]]
    assert_same(fields["x"], fields["x"])
    read_only = np.eye(3)
    read_only.flags.writeable = False
    assert_same(read_only, np.eye(3))
    assert_same(np.eye(2).view(np.matrix), np.eye(2))
    assert_same(np.array([[0.1, 1e300]], dtype=np.longdouble), [[0.1, 1e300]])
    assert_same(np.broadcast_to(np.arange(3.0), (4, 3)), np.tile(np.arange(3.0), (4, 1)))
    assert_same(np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]), [[1, NAN], [3, 4]])
    assert_same(np.ma.array([["a"], ["b"]], mask=[[0], [1]]), [[0], [NAN]])


def test_things_that_become_arrays():
    class DlpackOnly:
        def __dlpack__(self, **options):
            return np.eye(2).__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    for X in [
        _NotAnArray(np.eye(2)),
        DlpackOnly(),
        [[1, 0], [0, 1]],
        ((1.0, 0), (0, 1)),
        memoryview(np.eye(2)),
    ]:
        assert_same(X, np.eye(2))


def test_object_arrays_are_inferred_column_by_column():
    rows = [
        [1, "b", True, None, 2.5, decimal.Decimal("0.5")],
        [None, "a", None, None, NAN, fractions.Fraction(1, 4)],
        [np.int8(3), None, np.bool_(False), None, np.float32(1.5), pd.NA],
        [True, NAN, False, None, float("inf"), pd.NaT],
    ]
    expected = [
        [1, 1, 1, NAN, 2.5, 0.5],
        [NAN, 0, NAN, NAN, NAN, 0.25],
        [3, NAN, 0, NAN, 1.5, NAN],
        [1, NAN, 0, NAN, np.inf, NAN],
    ]
    X = np.array(rows, dtype=object)
    assert_same(X, expected)
    assert_same(rows, expected)
    assert_same(pd.DataFrame(X), expected)
    assert kinds(X) == ["number", "category", "boolean", "number", "number", "number"]


def test_lists_keep_numbers_beside_strings():
    assert kinds([[1, "a"], [2, "b"]]) == ["number", "category"]
    assert_same([[1, "b"], [2, "a"]], [[1, 1], [2, 0]])


def test_large_integers_among_objects_stay_exact():
    X = np.array([[2**53], [2**53 + 1], [None]], dtype=object)
    assert Schema.learn(read_table(X), [0]).features[0].categories == (2**53, 2**53 + 1)
    assert_same(np.array([[2**70], [1]], dtype=object), [[2.0**70], [1]])


@pytest.mark.parametrize("dtype", ["U2", object, np.dtypes.StringDType()])
def test_string_arrays(dtype):
    assert_same(np.array([["b", "x"], ["a", "x"]], dtype=dtype), [[1, 0], [0, 0]])


def test_dicts_of_columns():
    X = {"a": [1, None], "s": ["b", None], "n": np.array([1, 2], dtype=np.int8), "t": pd.Series(["q", "p"])}
    assert read_table(X).names == ["a", "s", "n", "t"]
    assert_same(X, [[1, 0, 1, 1], [NAN, NAN, 2, 0]])


# ---- pandas -----------------------------------------------------------------------------------------------

PANDAS_COLUMNS = {
    "int8": (pd.array([1, 2, 3], dtype="int8"), [1, 2, 3], "number"),
    "float16": (np.array([1, NAN, 3], dtype="f2"), [1, NAN, 3], "number"),
    "Int16": (pd.array([1, None, 3], dtype="Int16"), [1, NAN, 3], "number"),
    "UInt64": (pd.array([1, None, 3], dtype="UInt64"), [1, NAN, 3], "number"),
    "Float32": (pd.array([1.5, None, NAN], dtype="Float32"), [1.5, NAN, NAN], "number"),
    "boolean": (pd.array([True, None, False], dtype="boolean"), [1, NAN, 0], "boolean"),
    "bool": ([True, False, True], [1, 0, 1], "boolean"),
    "str": (pd.array(["b", None, "a"], dtype="str"), [1, NAN, 0], "category"),
    "string python": (pd.array(["b", None, "a"], dtype="string[python]"), [1, NAN, 0], "category"),
    "string pyarrow": (pd.array(["b", None, "a"], dtype="string[pyarrow]"), [1, NAN, 0], "category"),
    "object": (np.array(["b", None, "a"], dtype=object), [1, NAN, 0], "category"),
    "category": (pd.Categorical(["b", None, "a"], ["c", "b", "a"]), [1, NAN, 0], "category"),
    "category of ints": (pd.Categorical([20, None, 10]), [1, NAN, 0], "category"),
    "category of bools": (pd.Categorical([True, None, False]), [1, NAN, 0], "category"),
    "ordered": (pd.Categorical(["b", None, "a"], ["c", "b", "a"], ordered=True), [1, NAN, 2], "ordered"),
    "category, nothing": (pd.Categorical([None] * 3, ["a"]), [NAN] * 3, "number"),
    "ordered, nothing": (pd.Categorical([None] * 3, ["a"], ordered=True), [NAN] * 3, "number"),
    "int64 pyarrow": (pd.array([1, None, 3], dtype="int64[pyarrow]"), [1, NAN, 3], "number"),
    "bool pyarrow": (pd.array([True, None, False], dtype="bool[pyarrow]"), [1, NAN, 0], "boolean"),
    "string arrow dtype": (
        pd.array(["b", None, "a"], dtype=pd.ArrowDtype(pa.string())),
        [1, NAN, 0],
        "category",
    ),
    "dictionary": (
        pd.array(["b", None, "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
        [1, NAN, 0],
        "category",
    ),
    "sparse": (pd.arrays.SparseArray([0.0, 2.0, NAN], fill_value=0), [0, 2, NAN], "number"),
    "sparse bool": (pd.arrays.SparseArray([False, True, False]), [0, 1, 0], "boolean"),
    "sparse nan": (pd.arrays.SparseArray([NAN, 2.0, NAN]), [NAN, 2, NAN], "number"),
    "sparse one": (pd.arrays.SparseArray([1, 2, 1], fill_value=1), [1, 2, 1], "number"),
    "null": (pd.array([None] * 3, dtype=pd.ArrowDtype(pa.null())), [NAN] * 3, "number"),
}


@pytest.mark.parametrize("name", PANDAS_COLUMNS)
def test_pandas_dtypes(name, monkeypatch):
    values, expected, kind = PANDAS_COLUMNS[name]
    X = pd.DataFrame({"other": ["x", "y", "z"], "it": values})
    np.testing.assert_array_equal(encoded(X)[:, 1], expected)
    assert kinds(X)[1] == kind
    # the same where pandas no longer offers what is not public
    public = [c.to_numpy() if isinstance(c.dtype, np.dtype) else c.array for _, c in X.items()]
    monkeypatch.setattr(table_readers, "stored_arrays", lambda frame: public)
    np.testing.assert_array_equal(encoded(X)[:, 1], expected)


def test_pandas_without_private_names(monkeypatch):
    X = pd.DataFrame({"a": [1.0, 2.0], "s": ["x", "y"], "i": pd.array([1, None], dtype="Int8")})
    expected = encoded(X)
    monkeypatch.delattr(pd.DataFrame, "_get_column_array")
    np.testing.assert_array_equal(encoded(X), expected)

    class Nullable:
        dtype = pd.Int8Dtype()

        def isna(self):
            return np.array([False, True])

        def to_numpy(self, dtype, na_value):
            return np.array([1, na_value], dtype=dtype)

    column = table_readers.read_stored(Nullable(), "Column 'i'")
    assert column.missing.tolist() == [0, 1]
    assert column.values.tolist() == [1, 0]


def test_pandas_labels():
    values = np.eye(2)
    assert read_table(pd.DataFrame(values, columns=["a", "b"])).names == ["a", "b"]
    assert read_table(pd.DataFrame(values, columns=[np.str_("a"), "b"])).names == ["a", "b"]
    assert read_table(pd.DataFrame(values)).names is None
    assert read_table(pd.DataFrame(values, columns=[1, 1])).names is None
    assert read_table(pd.DataFrame(values, columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))).names is None
    assert_same(pd.DataFrame(values, columns=[1, 1]), values)


# ---- Arrow ------------------------------------------------------------------------------------------------

ARROW_COLUMNS = {
    **{str(t): (pa.array([1, None, 3], t), [1, NAN, 3], "number") for t in [pa.int8(), pa.uint16(), pa.int64()]},
    "half": (pa.array(np.array([1.5, NAN, -2], dtype="f2")), [1.5, NAN, -2], "number"),
    "float": (pa.array([1.5, None, float("inf")], pa.float32()), [1.5, NAN, np.inf], "number"),
    "decimal": (pa.array([decimal.Decimal("1.10"), None, decimal.Decimal(-3)]), [1.1, NAN, -3], "number"),
    "bool": (pa.array([True, None, False]), [1, NAN, 0], "boolean"),
    "null": (pa.nulls(3), [NAN] * 3, "number"),
    "string": (pa.array(["b", None, "a"]), [1, NAN, 0], "category"),
    "large": (pa.array(["b", None, "a"], pa.large_string()), [1, NAN, 0], "category"),
    "view": (pa.array(["b" * 20, None, "a"], pa.string_view()), [1, NAN, 0], "category"),
    "dictionary": (pa.array(["b", None, "a"]).dictionary_encode(), [1, NAN, 0], "category"),
    "of ints": (pa.array([7, None, 5]).dictionary_encode(), [1, NAN, 0], "category"),
    "of floats": (pa.array([NAN, 2.5, 1.5]).dictionary_encode(), [NAN, 1, 0], "category"),
    "ordered": (
        pa.DictionaryArray.from_arrays(pa.array([1, None, 2], pa.int8()), ["c", "b", "a"], ordered=True),
        [1, NAN, 2],
        "ordered",
    ),
    "null value": (
        pa.DictionaryArray.from_arrays(pa.array([1, 0, 2], pa.uint16()), pa.array([None, "b", "a"])),
        [1, NAN, 0],
        "category",
    ),
}


@pytest.mark.parametrize("name", ARROW_COLUMNS)
@pytest.mark.parametrize("shape", ["whole", "chunks", "slice", "batch", "empty chunks"])
def test_arrow_types(name, shape):
    values, expected, kind = ARROW_COLUMNS[name]
    if shape == "slice":
        X = pa.table({"it": pa.concat_arrays([values] * 5)}).slice(6, 3)
    elif shape == "batch":
        X = pa.RecordBatch.from_arrays([values], ["it"])
    elif shape == "chunks":
        X = pa.table({"it": pa.chunked_array([values[:1], values[1:2], values[2:]])})
    elif shape == "empty chunks":
        X = pa.table({"it": pa.chunked_array([values[:0], values, values[:0]])})
    else:
        X = pa.table({"it": values})
    assert_same(X, np.array([expected]).T)
    assert kinds(X) == [kind]


def test_objects_that_only_offer_an_arrow_array():
    class ArrayOnly:
        def __arrow_c_array__(self, requested_schema=None):
            return pa.RecordBatch.from_pydict({"a": [1, 2], "s": ["y", "x"]}).__arrow_c_array__()

    assert read_table(ArrayOnly()).names == ["a", "s"]
    assert_same(ArrayOnly(), [[1, 1], [2, 0]])


def test_readers_are_consumed_once():
    reader = pa.table({"a": [1, 2]}).to_reader()
    assert_same(reader, [[1], [2]])


def test_polars_and_narwhals_frames():
    columns = {"a": [1, None], "s": ["y", "x"], "b": [None, True], "n": [None, None]}
    expected = [[1, 1, NAN, NAN], [NAN, 0, 1, NAN]]
    frame = pl.DataFrame(columns)
    assert_same(frame, expected)
    assert_same(nw.from_native(frame), expected)
    assert_same(nw.from_native(pd.DataFrame(columns)), expected)
    assert_same(pl.concat([frame[:1], frame[1:]], rechunk=False), expected)
    assert kinds(frame.with_columns(pl.col("s").cast(pl.Enum(["y", "x"])))) == kinds(frame)


# ---- sparse -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "?"])
def test_sparse_formats(format_, container, dtype):
    dense = np.array([[0, 1, 0, 0], [2, 0, 0, 0], [0, 3, 0, 4]]).astype(dtype)
    X = container(dense).asformat(format_)
    assert_same(X, dense)
    assert kinds(X) == ["boolean" if dtype == "?" else "number"] * 4


def test_sparse_duplicates_zeros_nan_and_order():
    entries = ([1.0, 2.0, 0.0, NAN, 5.0], ([2, 2, 0, 1, 0], [0, 0, 0, 1, 1]))
    assert_same(sp.coo_array(entries, shape=(3, 3)), [[0, 5, 0], [0, NAN, 0], [3, 0, 0]])
    raw = sp.csc_array(([1.0, 2.0, 4.0], [2, 0, 2], [0, 3]), shape=(3, 1))
    assert_same(raw, [[2], [0], [5]])
    assert raw.indices.tolist() == [2, 0, 2]  # the caller's matrix has not been touched
    wide = sp.csc_array(np.eye(2))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert_same(wide, np.eye(2))


def test_sparse_columns_as_categories():
    X = sp.csc_array(np.array([[0, 7.0], [3, 0]]))
    np.testing.assert_array_equal(encoded(X, categorical_features=[0]), [[0, 7], [1, 0]])


# ---- in place ---------------------------------------------------------------------------------------------

ARRAYS = {
    "C": lambda: np.ones((4, 3)),
    "F": lambda: np.ones((4, 3), order="F", dtype=np.float32),
    "ints": lambda: np.ones((8, 6), dtype=np.int16)[::-2, ::2],
    "bools": lambda: np.ones((4, 3), dtype=bool),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_read_in_place(name):
    X = ARRAYS[name]()
    table = read_table(X)
    engine = Schema.learn(table).encode(table)
    assert np.shares_memory(table.matrix, X)
    X[2, 1] = 0
    assert engine.column(1)[2] == 0


def test_pandas_numbers_are_read_in_place():
    block = pd.DataFrame(np.ones((4, 3)), columns=list("abc"))
    assert np.shares_memory(read_table(block).matrix, block["b"].to_numpy())
    mixed = pd.DataFrame({"f": [1.5, 2], "i": [1, 2], "b": [True, False], "s": ["x", "y"]})
    mixed["late"] = [1.0, 2.0]  # a separate block
    for j, name in [(0, "f"), (1, "i"), (2, "b"), (4, "late")]:
        assert np.shares_memory(read_table(mixed).column(j).values, mixed[name].to_numpy())
    separate = pd.DataFrame({"a": [1.0, 2.0]})
    separate["b"] = [3.0, 4.0]
    assert np.shares_memory(read_table(separate).column(1).values, separate["b"].to_numpy())
    nullable = pd.DataFrame({"n": pd.array([1, None], dtype="Int32")})
    assert np.shares_memory(read_table(nullable).column(0).values, nullable["n"].array._data)


def test_arrow_numbers_are_read_in_place():
    for values in [[1.5, 2.5], [1, 2]]:
        array = pa.array(values)
        column = read_table(pa.table({"a": array})).column(0)
        assert column.values.__array_interface__["data"][0] == array.buffers()[1].address
        frame = pl.DataFrame({"a": values})
        assert np.shares_memory(read_table(frame).column(0).values, frame["a"].to_numpy(allow_copy=False))


def test_arrow_memory_outlives_its_table():
    def make():
        frame = pl.DataFrame({"a": np.arange(100_000.0), "m": [None, 1] * 50_000})
        table = read_table(frame)
        return Schema.learn(table).encode(table)

    engine = make()
    np.testing.assert_array_equal(engine.column(0), np.arange(100_000.0))
    assert np.isnan(engine.column(1)).sum() == 50_000


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, pl.DataFrame, sp.csc_array], ids=lambda f: f.__name__)
def test_reading_numbers_allocates_next_to_nothing(make):
    X = make(np.ones((50_000, 10)))
    if hasattr(X, "columns"):
        X.columns = [f"c{j}" for j in range(10)]
    Schema.learn(read_table(X)).encode(read_table(X))
    tracemalloc.start()
    table = read_table(X)
    engine = Schema.learn(table).encode(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert engine.n_columns == 10
    assert peak < 200_000  # a copy would take 4,000,000


def test_importing_the_data_layer_imports_no_frame_library():
    code = (
        "import sys, spinney._data as d; d.read_table([[1, 'a']]);"
        "print(sorted({'pandas', 'polars', 'pyarrow', 'scipy', 'narwhals', 'sklearn'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_polars_needs_no_pyarrow():
    code = """
import sys
sys.modules["pyarrow"] = None
import polars as pl
from spinney._data import read_table
table = read_table(pl.DataFrame({"s": ["a", None], "c": pl.Series(["x", "y"], dtype=pl.Categorical)}))
print(table.column(0).values, table.column(1).values)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['a'] ['x', 'y']"


def test_one_column_and_one_row():
    assert isinstance(read_table(np.ones((1, 1))).column(0), NumberColumn)
    assert_same(pd.DataFrame({"a": ["x"]}), [[0]])
    assert_same([[3]], [[3]])


def test_some_rows_of_a_column_are_those_of_the_whole():
    frame = pd.DataFrame({"a": [1.5, np.nan, 3.0], "b": ["u", None, "v"], "c": pd.array([1, None, 3], dtype="Int64")})
    rows = np.array([2, 0, 1, 1], dtype=np.uint32)
    for table in (read_table(frame), read_table(sp.csc_array([[0, 2.0], [3.0, 0], [0, 0]]))):
        engine = Schema.learn(table).encode(table)
        for j in range(engine.n_columns):
            np.testing.assert_array_equal(engine.values_at(j, rows), np.asarray(engine.column(j))[rows])
    with pytest.raises(IndexError, match="no such row"):
        engine.values_at(0, np.array([3], dtype=np.uint32))
    with pytest.raises(IndexError, match="no such column"):
        engine.values_at(2, rows)
