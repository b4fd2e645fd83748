"""Dates are split and printed as dates, in tables of any kind."""

import datetime as dt
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from spinney._data import Schema, read_table
from spinney._data.cells import RESOLUTIONS, date_text, to_datetime64
from spinney._data.date_parts import PARTS, part_of
from sweep import examples

DAYS = pd.date_range("2020-01-31", periods=40, freq="D")
LATE = (DAYS > "2020-02-20").astype(int)
HOLDERS = {
    "pandas ns": lambda days: pd.DataFrame({"d": days.astype("M8[ns]")}),
    "pandas s": lambda days: pd.DataFrame({"d": days.astype("M8[s]")}),
    "pandas objects": lambda days: pd.DataFrame({"d": pd.Series(list(days), dtype=object)}),
    "pandas dates": lambda days: pd.DataFrame({"d": pd.Series([day.date() for day in days], dtype=object)}),
    "pandas periods": lambda days: pd.DataFrame({"d": days.to_period("D")}),
    "pandas arrow": lambda days: pd.DataFrame({"d": days}).convert_dtypes(dtype_backend="pyarrow"),
    "numpy days": lambda days: {"d": days.to_numpy().astype("M8[D]")},
    "numpy 2-D": lambda days: days.to_numpy().astype("M8[h]")[:, None],
    "masked": lambda days: {"d": np.ma.masked_array(days.to_numpy(), mask=np.zeros(len(days), dtype=bool))},
    "polars": lambda days: pl.DataFrame({"d": days}),
    "polars dates": lambda days: pl.DataFrame({"d": [day.date() for day in days]}),
    "arrow days": lambda days: pa.table({"d": pa.array([day.date() for day in days])}),
    "arrow date64": lambda days: pa.table({"d": pa.array([day.date() for day in days], pa.date64())}),
    "arrow chunks": lambda days: pa.table(
        {"d": pa.chunked_array([list(days[:7]), list(days[7:])], pa.timestamp("ms"))}
    ),
    "rows": lambda days: [[day.to_pydatetime()] for day in days],
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_every_holder_of_dates_gives_the_same_tree(holder):
    X = HOLDERS[holder](DAYS)
    feature = Schema.learn(read_table(X)).features[0]
    assert (feature.kind, feature.clock, feature.resolution) == ("number", "local", "day")
    model = spinney.DecisionTreeClassifier().fit(X, LATE)
    assert model.tree_.threshold[0] == dt.datetime(2020, 2, 20, 12, tzinfo=dt.UTC).timestamp()
    assert (model.predict(X) == LATE).all()
    assert "≤ 2020-02-20 (or missing)" in model.export_text()


def test_missing_dates_are_missing():
    holders = {
        "pandas": pd.DataFrame({"d": [pd.Timestamp("2020-01-01"), pd.NaT]}),
        "objects": pd.DataFrame({"d": pd.Series([dt.date(2020, 1, 1), None], dtype=object)}),
        "polars": pl.DataFrame({"d": [dt.datetime(2020, 1, 1), None]}),
        "arrow": pa.table({"d": pa.array([dt.date(2020, 1, 1), None])}),
        "numpy": {"d": np.array(["2020-01-01", "NaT"], dtype="M8[D]")},
        "masked": {"d": np.ma.masked_array(np.array(["2020-01-01", "2021-01-01"], dtype="M8[s]"), mask=[False, True])},
    }
    for name, X in holders.items():
        values = read_table(X).column(0).values
        assert values[0] == 1577836800.0, name
        assert np.isnan(values[1]), name


def test_dates_far_away_and_fine_ones_are_read_to_the_microsecond():
    far = np.array(["-9999-01-01", "9999-12-31"], dtype="M8[D]")
    assert read_table({"d": far}).column(0).values.tolist() == (far.astype("M8[s]").view(np.int64)).tolist()
    fine = np.array(["2020-01-01T00:00:00.123456789"], dtype="M8[ns]")
    assert read_table({"d": fine}).column(0).values[0] == 1577836800.123456
    assert read_table(pa.table({"d": pa.array(fine)})).column(0).values[0] == 1577836800.123456
    last = pa.table({"d": pa.array([2**31 - 1], pa.int32()).cast(pa.date32())})
    assert read_table(last).column(0).values[0] == (2**31 - 1) * 86400.0


@examples(60)
@given(
    st.lists(st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2400, 1, 1)), min_size=2, max_size=20, unique=True),
    st.sampled_from(list(RESOLUTIONS)),
    st.booleans(),
)
def test_a_cut_is_written_so_that_it_parts_the_dates_as_the_tree_does(dates, resolution, strict):
    step = RESOLUTIONS[resolution] or 1e-6
    seconds = np.unique([(d - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=step) * step for d in dates])
    for low, high in pairwise(seconds.tolist()):
        cut = low / 2 + high / 2
        text = date_text(np.nextafter(cut, np.inf) if strict else cut, resolution, above=strict)
        written = (dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1)).total_seconds()
        if resolution == "microsecond" and high - low < 1e-5:
            continue
        assert low < written <= high if strict else low <= written < high


@examples(60)
@given(st.lists(st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 1, 1)), min_size=1, max_size=20))
def test_parts_are_those_of_the_calendar(dates):
    values = np.array(dates, dtype="M8[us]")
    seconds = read_table({"d": values}).column(0).values
    expected = {
        "year": [d.year for d in dates],
        "quarter": [(d.month - 1) // 3 + 1 for d in dates],
        "month": [d.month for d in dates],
        "day": [d.day for d in dates],
        "day_of_year": [d.timetuple().tm_yday for d in dates],
        "weekday": [d.isoweekday() for d in dates],
        "hour": [d.hour for d in dates],
        "minute": [d.minute for d in dates],
    }
    assert set(expected) == set(PARTS)
    for part, numbers in expected.items():
        assert part_of(seconds, part).tolist() == numbers, part
    assert np.abs((to_datetime64(seconds) - values).astype(np.int64)).max() <= 64  # float64 has no more digits there


FAMILIES = [
    spinney.DecisionTreeClassifier(max_depth=3),
    spinney.DecisionTreeClassifier(max_depth=3, max_surrogates=1),
    spinney.ExtraTreesClassifier(5, random_state=0),
    spinney.RandomForestClassifier(5, random_state=0),
    spinney.GradientBoostingClassifier(n_estimators=5),
    spinney.AdaBoostClassifier(n_estimators=3),
    spinney.BaggingClassifier(n_estimators=3, random_state=0),
    spinney.FunctionalBoostingClassifier(n_estimators=3),
]


@pytest.fixture(scope="module")
def stays():
    rng = np.random.default_rng(0)
    when = pd.Timestamp("2021-03-01 00:07") + pd.to_timedelta(rng.integers(0, 60 * 24 * 90, 200), unit="m")
    X = pd.DataFrame({"when": when, "x": rng.normal(size=200)})
    X.loc[::17, "when"] = pd.NaT
    return X, ((X["when"] > "2021-04-15 12:30") & (X["x"] > 0)).to_numpy()


@pytest.mark.parametrize("model", FAMILIES, ids=lambda model: type(model).__name__)
def test_every_family_takes_keeps_and_reads_dates(model, stays, tmp_path):
    X, y = stays
    model.fit(X, y)
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(pl.from_pandas(X)), proba)
    text = X.assign(when=X["when"].dt.strftime("%Y-%m-%dT%H:%M:%S"))
    np.testing.assert_array_equal(model.predict_proba(text), proba)
    model.save(tmp_path / "m.spinney")
    np.testing.assert_array_equal(spinney.load(tmp_path / "m.spinney").predict_proba(X), proba)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), proba)


def test_a_single_row_takes_dates_in_every_form(stays, tmp_path):
    X, y = stays
    model = spinney.RandomForestClassifier(5, random_state=0).fit(X, y)
    model.save(tmp_path / "m.spinney")
    one = spinney.load_predictor(tmp_path / "m.spinney").to_predictor()
    stamp = pd.Timestamp("2021-05-01 10:30")
    forms = [stamp, stamp.to_pydatetime(), stamp.to_numpy(), "2021-05-01T10:30", "2021-05-01 10:30:00"]
    expected = model.predict_proba(pd.DataFrame({"when": [stamp], "x": [1.0]}))[0]
    for form in forms:
        np.testing.assert_array_equal(one.predict_proba([form, 1.0]), expected)
        np.testing.assert_array_equal(one.predict_proba({"x": 1.0, "when": form}), expected)
    absent = model.predict_proba(pd.DataFrame({"when": [pd.NaT], "x": [1.0]}))[0]
    for form in (None, pd.NaT, np.datetime64("NaT", "us"), float("nan")):
        np.testing.assert_array_equal(one.predict_proba([form, 1.0]), absent)
    with pytest.raises(ValueError, match="write dates as in 2024-05-31"):
        one.predict_proba(["May", 1.0])
    with pytest.raises(TypeError, match="pass a date"):
        one.predict_proba([7.0, 1.0])
    with pytest.raises(ValueError, match="2 columns"):
        one.predict_proba(["2021-05-01"])


def test_dates_with_a_time_zone_are_instants():
    berlin = DAYS.tz_localize("Europe/Berlin")
    X = pd.DataFrame({"d": berlin})
    model = spinney.DecisionTreeClassifier().fit(X, LATE)
    assert "d ≤ 2020-02-20 11:00 UTC" in model.export_text()
    for same in (X.assign(d=berlin.tz_convert("Asia/Tokyo")), pl.from_pandas(X), pa.Table.from_pandas(X)):
        assert (model.predict(same) == LATE).all()
    texts = ["2020-02-20T10:30:00+01:00", "2020-02-20T10:30:00Z", "2020-02-20T11:30:00Z"]
    assert model.predict(pd.DataFrame({"d": texts})).tolist() == [0, 0, 1]
    with pytest.raises(TypeError, match="'d': dates had a time zone at fit and have none now"):
        model.predict(pd.DataFrame({"d": DAYS}))
    with pytest.raises(TypeError, match="with and without a time zone"):
        model.fit(pd.DataFrame({"d": pd.Series([DAYS[0], berlin[1]], dtype=object)}), [0, 1])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pd.DataFrame({"d": np.arange(40.0)}), "'d' held dates at fit and holds numbers now; convert it to dates"),
        (pd.DataFrame({"d": ["soon"] * 40}), "'d' held dates at fit and holds 'soon' now"),
        (pd.DataFrame({"d": DAYS.tz_localize("UTC")}), "had no time zone at fit and have one now"),
    ],
)
def test_what_is_no_date_is_refused_where_dates_were(given, words):
    model = spinney.DecisionTreeClassifier().fit(pd.DataFrame({"d": DAYS}), LATE)
    with pytest.raises((TypeError, ValueError), match=words):
        model.predict(given)


def test_dates_where_there_were_none_are_refused():
    dates = pd.DataFrame({"d": DAYS})
    numbers = spinney.DecisionTreeClassifier().fit(pd.DataFrame({"d": np.arange(40.0)}), LATE)
    with pytest.raises(TypeError, match="'d' held numbers at fit and holds dates now"):
        numbers.predict(dates)
    strings = spinney.DecisionTreeClassifier().fit(pd.DataFrame({"d": ["a", "b"] * 20}), LATE)
    with pytest.raises(TypeError, match="'d' held categories at fit and holds dates now"):
        strings.predict(dates)
    with pytest.raises(TypeError, match="'d', which holds dates"):
        spinney.DecisionTreeClassifier(categorical_features=["d"]).fit(dates, LATE)
    empty = spinney.DecisionTreeClassifier().fit(pd.DataFrame({"d": [np.nan] * 40, "x": LATE}), LATE)
    assert (empty.predict(dates.assign(x=LATE)) == LATE).all()
    with pytest.raises(TypeError, match="mixes strings and dates"):
        numbers.fit(pd.DataFrame({"d": pd.Series([dt.date(2020, 1, 1), "soon"] * 20, dtype=object)}), LATE)
    with pytest.raises(TypeError, match="mixes dates and numbers"):
        numbers.fit(pd.DataFrame({"d": pd.Series([dt.date(2020, 1, 1), 7] * 20, dtype=object)}), LATE)
    with pytest.raises(TypeError, match="durations; convert them to numbers"):
        numbers.fit(pd.DataFrame({"d": DAYS - DAYS[0]}), LATE)
    with pytest.raises(TypeError, match="times of day or durations"):
        numbers.fit(pl.DataFrame({"d": [dt.time(1, k) for k in range(40)]}), LATE)
    with pytest.raises(TypeError, match="dates as categories"):
        numbers.fit(pd.DataFrame({"d": pd.Categorical(DAYS)}), LATE)
    with pytest.raises(TypeError, match="dates as categories"):
        numbers.fit(pa.table({"d": pa.array(list(DAYS)).dictionary_encode()}), LATE)


def test_dates_are_dates_in_rules_pictures_explanations_and_filled_tables(stays):
    X, y = stays
    model = spinney.DecisionTreeClassifier(max_depth=3).fit(X, y)
    assert any("when > 2021-04-1" in str(rule) for rule in spinney.rules(model))
    picture = spinney.tree_svg(model)
    assert "2021-04-1" in picture
    assert "2,021" not in picture
    assert "when is 2021-05-01 10:30, so" in model.explain_row({"when": "2021-05-01T10:30", "x": 1.0})
    explained = model.shap_values(X[:3])
    assert explained.data[1, 0] == X["when"][1].to_pydatetime()
    assert explained.text_of(1, 0) == X["when"][1].strftime("%Y-%m-%d %H:%M")
    ax = spinney.plot_partition(model, X, y)
    ax.figure.canvas.draw()
    assert [t.get_text()[:4] for t in ax.get_xticklabels()] == ["2021"] * len(ax.get_xticklabels())
    filled = spinney.ProximityImputer(n_estimators=5, random_state=0).fit_transform(X)
    assert filled["when"].dtype == X["when"].dtype
    assert filled["when"].between(X["when"].min(), X["when"].max()).all()
    days = pl.DataFrame({"d": [*DAYS.date, None], "x": range(41)})
    assert spinney.ProximityImputer(n_estimators=5, random_state=0).fit_transform(days)["d"].null_count() == 0


def test_damaged_dates_in_a_schema_are_refused():
    fields = Schema.learn(read_table(pd.DataFrame({"d": DAYS}))).to_dict()
    assert Schema.from_dict(fields).features[0].resolution == "day"
    for key, value in (("clock", "sun"), ("resolution", "fortnight"), ("resolution", ""), ("kind", "boolean")):
        damaged = {**fields, "features": [{**fields["features"][0], key: value}]}
        with pytest.raises(ValueError, match="not a schema"):
            Schema.from_dict(damaged)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "dict"])
def test_parts_become_columns_of_the_same_table(kind):
    frame = pd.DataFrame(
        {"when": [pd.Timestamp("2024-05-31 17:45"), pd.NaT], "day": pd.to_datetime(["2024-06-01", "2024-06-02"])}
    )
    X = {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "pyarrow": pa.Table.from_pandas(frame),
        "dict": {name: frame[name].to_numpy() for name in frame},
    }[kind]
    found = spinney.date_parts(X)
    assert type(found) is type(X)
    table = read_table(found)
    assert table.names == [
        *("when", "day", "when.year", "when.month", "when.weekday", "when.hour", "day.year", "day.month", "day.weekday")
    ]
    columns = {name: table.column(j) for j, name in enumerate(table.names)}
    assert [columns[f"when.{part}"].values[0] for part in ("year", "month", "weekday", "hour")] == [2024, 5, 5, 17]
    missing = columns["when.month"]
    assert np.isnan(missing.values[1]) or missing.missing[1]
    assert columns["day.weekday"].values.tolist() == [6, 7]


def test_parts_that_cannot_be_are_refused():
    X = pd.DataFrame({"when": DAYS, "x": LATE})
    with pytest.raises(ValueError, match=r"parts must be a list of some of .*'weekday', 'hour', 'minute', not"):
        spinney.date_parts(X, parts=["moon"])
    with pytest.raises(ValueError, match="'x', which does not hold dates"):
        spinney.date_parts(X, columns=["x"])
    with pytest.raises(ValueError, match="'then', which is not in the table"):
        spinney.date_parts(X, columns=["then"])
    with pytest.raises(ValueError, match=r"already has a column 'when\.month'"):
        spinney.date_parts(X.assign(**{"when.month": 1}))
    with pytest.raises(TypeError, match="column names"):
        spinney.date_parts(DAYS.to_numpy()[:, None])
