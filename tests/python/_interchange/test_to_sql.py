"""Models exported to SQL predict in SQLite and DuckDB as in Python."""

import sqlite3

import numpy as np
import pytest
import spinney
from spinney._interchange.writing import sql_quotes
from spinney._interchange.writing.sql import literal
from written_models import AVERAGES, MODELS, NUMBERS, VALUES, is_clear, predictions_of, probe, table_of

REFUSED = {"surrogates", "several", "oblique", "boosting, hinge", "boosting, focal", "gentle adaboost"}
REFUSED |= {"boosting, linear", "boosting of three, linear", "default settings"}  # linear leaves
REFUSED |= {"combined columns", "combined columns of three", "crossed columns", "crossed columns, other"}
REFUSED |= {"recipe", "recipe of classes"}  # too many trees
CARRIED = sorted(set(MODELS) - REFUSED)
KINDS = {"b": "BOOLEAN", "f": "DOUBLE PRECISION", "O": "VARCHAR(100)"}


def plain(value):
    return None if value is None or value != value else value.item() if isinstance(value, np.generic) else value


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Sqlite:
    dialect = "sqlite"

    def __init__(self):
        self.connection = sqlite3.connect(":memory:")

    def rows(self, query):
        cursor = self.connection.execute(query)
        return [column[0] for column in cursor.description], cursor.fetchall()

    def fill(self, query, rows):
        self.connection.executemany(query, rows)


class DuckDb:
    dialect = "duckdb"

    def __init__(self):
        self.connection = pytest.importorskip("duckdb").connect(":memory:", config={"threads": 1})

    def rows(self, query):
        result = self.connection.execute(query)
        return [column[0] for column in result.description], result.fetchall()

    def fill(self, query, rows):
        self.connection.executemany(query, rows)


def filled(database, columns, table="rows"):
    """A table of these columns, and a key."""
    kinds = [f"{quoted(name)} {KINDS[column.dtype.kind]}" for name, column in columns.items()]
    database.connection.execute(f"CREATE TABLE {quoted(table)} ({', '.join(['key INTEGER', *kinds])})")
    places = ", ".join("?" * (len(columns) + 1))
    rows = [[i, *map(plain, row)] for i, row in enumerate(zip(*columns.values(), strict=True))]
    database.fill(f"INSERT INTO {quoted(table)} VALUES ({places})", rows)
    return database


def assert_same(model, database, columns):
    proba, labels = predictions_of(model, table_of(model, columns))
    query = spinney.to_sql(model, "rows", keep=["key"], dialect=database.dialect)
    names, rows = filled(database, columns).rows(query)
    found = {name: [row[k] for row in sorted(rows)] for k, name in enumerate(names)}
    assert found.pop("key") == list(range(len(proba)))
    predicted = np.array(found.pop("prediction"))
    if labels is None:
        np.testing.assert_allclose(predicted.astype(float), proba[:, 0], rtol=1e-13, atol=1e-14)
        return
    np.testing.assert_allclose(np.column_stack(list(found.values())).astype(float), proba, rtol=1e-12, atol=1e-14)
    clear = is_clear(model, proba) | (getattr(model, "cost_matrix", None) is not None)
    assert clear.mean() > 0.8
    np.testing.assert_array_equal(predicted[clear], labels[clear])


@pytest.mark.parametrize(
    "name", [n if n == "curve of two" else pytest.param(n, marks=pytest.mark.slow) for n in AVERAGES]
)
def test_averages(name):
    model = AVERAGES[name]()
    assert_same(model, Sqlite(), probe(model))


@pytest.mark.slow
@pytest.mark.parametrize("database", [Sqlite, DuckDb])
@pytest.mark.parametrize("name", CARRIED)
def test_the_same_predictions(name, database):
    model = MODELS[name]()
    assert_same(model, database(), probe(model))


def test_a_forest_in_sqlite():
    model = MODELS["forest, other"]()
    assert_same(model, Sqlite(), probe(model))


@pytest.mark.slow
@pytest.mark.parametrize("database", [Sqlite, DuckDb])
def test_thresholds_of_any_size_are_read_exactly(database):
    rng = np.random.default_rng(3)
    values = [*rng.normal(size=300), *np.exp(rng.uniform(-700, 700, 300)), 5e-324, 1.7976931348623157e308, 0.1 + 0.2]
    values += [-v for v in values] + [0.0, 1.0, 2.0**53, 2.0**53 - 1, 1e22, 1e23, 123456789012345.6]
    for begin in range(0, len(values), 200):
        part = values[begin : begin + 200]
        query = "SELECT " + ", ".join(f"{literal(v)} AS c{k}" for k, v in enumerate(part))
        assert list(database().rows(query)[1][0]) == part


@pytest.mark.parametrize("database", [Sqlite, pytest.param(DuckDb, marks=pytest.mark.slow)])
def test_names_and_categories_cannot_leave_their_quotes(database):
    odd = ["'); DROP TABLE rows; --", '"; DROP TABLE rows; --', "a\\'", "''", "$x", "?", "%s", "\n", "å", ":a"]
    X = {f"column {word}": np.array(odd[k:] + odd[:k], dtype=object) for k, word in enumerate(odd[:3])}
    X |= {"SELECT": np.arange(10.0)}
    X = {name: np.concatenate([column] * 3) for name, column in X.items()}
    y = np.array([f"{word} '\"" for word in odd] * 3, dtype=object)
    model = spinney.RandomForestClassifier(5, random_state=0).fit(X, y)
    where = 'ro"ws; --'
    query = spinney.to_sql(model, where, keep=["SELECT"], dialect=database.dialect)
    names, rows = filled(database(), X, where).rows(query)
    assert [row[1] for row in rows] == model.predict(X).tolist()
    assert names == ["SELECT", "prediction", *(f"proba_{label}" for label in model.classes_)]


def test_a_column_that_the_table_lacks_is_an_error():
    model = spinney.DecisionTreeRegressor().fit({"a": [1.0, 2.0], "b": [2.0, 1.0]}, [0.0, 1.0])
    database = filled(Sqlite(), {"c": np.array([1.0])})
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        database.rows(spinney.to_sql(model, "rows"))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_unsupported_models_are_refused_by_name(name):
    if name.startswith("recipe"):
        model = spinney.RandomForestRegressor(201, max_depth=1).fit(NUMBERS, VALUES)
    else:
        model = MODELS[name]()
    with pytest.raises(ValueError, match=r"SQL cannot hold .* of this \w+[., ].*(Use|use|Fit|fit|keep) "):
        spinney.to_sql(model, "rows")


def test_refusals_of_dates_and_names():
    days = np.array(["2020-01-01", "2020-01-02", "2021-01-01", "2021-05-01"], dtype="datetime64[D]")
    with pytest.raises(ValueError, match="dates of the column 'day'"):
        spinney.to_sql(spinney.DecisionTreeRegressor().fit({"day": days}, [0.0, 0.0, 1.0, 1.0]), "rows")
    model = spinney.DecisionTreeRegressor().fit({"Prediction": [1.0, 2.0]}, [0.0, 1.0])
    with pytest.raises(ValueError, match="also the name of a prediction"):
        spinney.to_sql(model, "rows", keep=["Prediction"])
    with pytest.raises(ValueError, match="cannot be the name"):
        spinney.to_sql(model, "")
    deep = spinney.DecisionTreeRegressor().fit(np.arange(500.0)[:, np.newaxis] ** 2, np.arange(500) % 2)
    with pytest.raises(ValueError, match="levels"):
        spinney.to_sql(deep, "rows")


HOSTILE = [
    "'); DROP TABLE rows; --",
    "\\'; DROP TABLE rows; --",
    "a\\",
    "\\",
    "`",
    '"',
    "''",
    "\n",
    "\\n",
    "--",
    "/*",
    "é",
    "\\\\'",
]
DIALECTS = sorted(sql_quotes.DIALECTS)


@pytest.fixture(scope="module")
def hostile_model():
    rows = {"word": np.array(HOSTILE * 3, dtype=object), "x": np.arange(3.0 * len(HOSTILE))}
    labels = np.array([f"{word} is" for word in HOSTILE] * 3, dtype=object)
    return spinney.DecisionTreeClassifier().fit(rows, labels)


def tokens_of(query, dialect):
    sqlglot = pytest.importorskip("sqlglot")
    return [(token.token_type.name, token.text) for token in sqlglot.tokenize(query, read=dialect)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_strings_of_every_dialect_are_read_back_unchanged(dialect):
    quotes = sql_quotes.quotes_of(dialect)
    for word in HOSTILE:
        assert tokens_of(f"SELECT {quotes.text(word)}", dialect)[1:] == [("STRING", word)], word


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_of_every_dialect_are_read_back_unchanged_or_refused(dialect):
    quotes = sql_quotes.quotes_of(dialect)
    for word in HOSTILE:
        if quotes.escapes_names and (quotes.mark in word or "\\" in word):
            with pytest.raises(ValueError, match="Rename it before the fit"):
                quotes.name(word)
        else:
            assert tokens_of(f"SELECT {quotes.name(word)}", dialect)[1:] == [("IDENTIFIER", word)], word


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_category_leaves_its_quotes_in_any_dialect(hostile_model, dialect):
    columns = {"word": np.array(HOSTILE * 3, dtype=object), "x": np.arange(3.0 * len(HOSTILE))}
    model = spinney.DecisionTreeRegressor().fit(columns, np.arange(3.0 * len(HOSTILE)) % len(HOSTILE))
    found = tokens_of(spinney.to_sql(model, "rows", dialect=dialect), dialect)
    assert {text for kind, text in found if kind == "STRING"} <= set(HOSTILE)
    assert not {text for kind, text in found if kind in ("DROP", "COMMENT", "SEMICOLON")}
    if not sql_quotes.quotes_of(dialect).escapes_names:
        found = tokens_of(spinney.to_sql(hostile_model, "rows", dialect=dialect), dialect)
        assert not {text for kind, text in found if kind in ("DROP", "SEMICOLON")}


def test_a_backslash_needs_a_dialect(hostile_model):
    with pytest.raises(ValueError, match=r"what a backslash means\. Pass the dialect"):
        spinney.to_sql(hostile_model, "rows")
    with pytest.raises(ValueError, match=r"knows no dialect 'postgre'\. Did you mean 'postgres'"):
        spinney.to_sql(hostile_model, "rows", dialect="postgre")
