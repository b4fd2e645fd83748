"""The same data give the same engine columns, whatever the library, chunks, codes and column order."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from spinney._data import Schema, read_table
from sweep import examples


class StreamOnly:
    """Any producer of Arrow streams."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


ARROW_TYPES = {
    "number": pa.float64(),
    "int": pa.int64(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "level": pa.string(),
}
ARROW_SCHEMA = pa.schema(list(ARROW_TYPES.items()))
NAMES = list(ARROW_TYPES)
FORCED = ["int"]

texts = st.text(st.characters(codec="utf-8"), max_size=15) | st.sampled_from(["a", "b", "a string of some length"])
cells = {
    "number": st.floats(allow_nan=False) | st.none(),
    "int": st.integers(-3, 3) | st.none(),
    "flag": st.booleans() | st.none(),
    "text": texts | st.none(),
    "level": st.sampled_from(["low", "mid", "high"]) | st.none(),
}
tables = st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=12).map(
    lambda rows: {name: [row[name] for row in rows] for name in NAMES}
)


def chunked(table, cut):
    return pa.concat_tables([table.slice(0, cut), table.slice(cut, 0), table.slice(cut)])


def recoded(table, levels):
    """A dictionary whose codes follow `levels`, unused ones included."""
    column = table["level"].to_pylist()
    indices = pa.array([None if value is None else levels.index(value) for value in column], pa.int16())
    position = table.schema.get_field_index("level")
    return table.set_column(position, "level", pa.DictionaryArray.from_arrays(indices, levels))


def object_matrix(columns):
    matrix = np.empty((len(columns["int"]), len(NAMES)), dtype=object)
    for j, name in enumerate(NAMES):
        matrix[:, j] = columns[name]
    return matrix


def representations(columns, cut, order, levels):
    """The same data through every door."""
    table = pa.table(columns, schema=ARROW_SCHEMA)
    padded = pa.concat_tables([table, table, table]).combine_chunks()
    frame = pl.DataFrame(columns, schema_overrides={"number": pl.Float64, "int": pl.Int64, "flag": pl.Boolean,
                                                   "text": pl.String, "level": pl.String})  # fmt: skip
    pandas = pd.DataFrame({name: pd.array(columns[name], dtype=object) for name in NAMES})
    nullable = pandas.astype({"number": "Float64", "int": "Int64", "flag": "boolean", "text": "str"})
    unordered = pd.CategoricalDtype(levels)
    return {
        "pyarrow": table,
        "chunked": chunked(table, cut),
        "chunked dictionaries": chunked(table, cut).unify_dictionaries(),
        "sliced": padded.slice(table.num_rows, table.num_rows),
        "reordered": table.select([NAMES[j] for j in order]),
        "stream": StreamOnly(chunked(table, cut)),
        "encoded text": table.set_column(3, "text", table["text"].dictionary_encode()),
        "large": table.cast(ARROW_SCHEMA.set(3, pa.field("text", pa.large_string()))),
        "recoded": recoded(table, levels),
        "recoded chunks": pa.concat_tables(
            [recoded(table.slice(0, cut), levels), recoded(table.slice(cut), levels[::-1])]
        ),
        "polars": frame,
        "polars categorical": frame.with_columns(pl.col("level").cast(pl.Categorical)),
        "polars enum": frame.with_columns(pl.col("level").cast(pl.Enum(levels))),
        "polars chunks": pl.concat([frame[:cut], frame[cut:]], rechunk=False),
        "polars narrow": frame.with_columns(pl.col("int").cast(pl.Int8)),
        "pandas objects": pandas,
        "pandas nullable": nullable,
        "pandas category": nullable.astype({"level": unordered, "text": "category"}),
        "pandas arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
        "pandas reordered": nullable[[NAMES[j] for j in order]],
        "dict": columns,
    }  # fmt: skip


def held(engine):
    values = np.column_stack([engine.column(j) for j in range(engine.n_columns)])
    return values, [engine.n_categories(j) for j in range(engine.n_columns)]


def assert_equal(got, expected, name):
    np.testing.assert_array_equal(got[0], expected[0], err_msg=name)
    assert got[1] == expected[1], name


@examples(15)
@given(tables, st.data())
def test_engine_columns_do_not_depend_on_the_representation(columns, data):
    n_rows = len(columns["int"])
    cut = data.draw(st.integers(0, n_rows))
    order = data.draw(st.permutations(range(len(NAMES))))
    levels = data.draw(st.permutations(["low", "mid", "high", "unused"]))
    forms = {name: read_table(X) for name, X in representations(columns, cut, order, levels).items()}
    reference = Schema.learn(forms["pyarrow"], categorical_features=FORCED)
    expected = held(reference.encode(forms["pyarrow"]))
    for name, table in forms.items():
        assert_equal(held(reference.encode(table, unseen="error")), expected, name)
        if "reordered" in name:
            continue
        learned = Schema.learn(table, categorical_features=FORCED)
        empty = [feature.empty for feature in reference.features]
        assert [feature.categories for feature in learned.features] == [f.categories for f in reference.features], name
        assert [feature.empty for feature in learned.features] == empty, name
        assert_equal(held(learned.encode(forms["polars"])), expected, name)


@examples(20)
@given(tables)
def test_arrays_of_objects_give_the_same_columns(columns):
    matrix = read_table(object_matrix(columns))
    table = read_table(pa.table(columns, schema=ARROW_SCHEMA))
    expected = held(Schema.learn(table, categorical_features=FORCED).encode(table))
    assert_equal(held(Schema.learn(matrix, categorical_features=[1]).encode(matrix)), expected, "objects")


@examples(20)
@given(tables, tables, st.sampled_from(["missing", "other"]), st.data())
def test_later_tables_do_not_depend_on_the_representation(train, later, unseen, data):
    cut = data.draw(st.integers(0, len(later["int"])))
    schema = Schema.learn(read_table(pa.table(train, schema=ARROW_SCHEMA)), categorical_features=FORCED)
    forms = representations(later, cut, range(len(NAMES)), ["high", "unused", "low", "mid"])
    expected = held(schema.encode(read_table(forms["pyarrow"]), unseen=unseen))
    for name, X in forms.items():
        assert_equal(held(schema.encode(read_table(X), unseen=unseen)), expected, name)


@examples(20)
@given(tables, st.data())
def test_rows_are_encoded_one_by_one_as_together(columns, data):
    """A subset of the rows, and so of the levels, keeps its codes."""
    frame = pl.DataFrame(pa.table(columns, schema=ARROW_SCHEMA)).with_columns(pl.col("text").cast(pl.Categorical))
    schema = Schema.learn(read_table(frame), categorical_features=FORCED)
    values, _ = held(schema.encode(read_table(frame)))
    rows = data.draw(st.lists(st.integers(0, len(frame) - 1), min_size=1, max_size=5))
    part, _ = held(schema.encode(read_table(frame[rows])))
    np.testing.assert_array_equal(part, values[rows])
