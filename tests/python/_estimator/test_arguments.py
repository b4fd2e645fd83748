"""What is given beside a table: masks, dates, text and sparse matrices are refused, never taken for numbers."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import spinney

N = 20
X = np.column_stack([np.arange(N), np.arange(N) % 7]).astype(float)
Y = np.arange(N, dtype=float)
CLASSES = np.arange(N) % 3
LAST = np.arange(N) == N - 1

REGRESSORS = {
    "tree": spinney.DecisionTreeRegressor,
    "extra tree": spinney.ExtraTreeRegressor,
    "rpart": spinney.DecisionTreeRegressor.rpart,
    "forest": lambda: spinney.RandomForestRegressor(2),
    "boosting": lambda: spinney.GradientBoostingRegressor(n_estimators=2),
    "bagging": lambda: spinney.BaggingRegressor(n_estimators=2),
}
CLASSIFIERS = {
    "tree": spinney.DecisionTreeClassifier,
    "forest": lambda: spinney.RandomForestClassifier(2),
    "boosting": lambda: spinney.GradientBoostingClassifier(n_estimators=2),
    "bagging": lambda: spinney.BaggingClassifier(n_estimators=2),
}


def masked(values, mask=LAST):
    found = np.ma.array(values, mask=mask, copy=True)
    if found.dtype.kind in "fiu":
        found.data[mask] = 999
    return found


@pytest.mark.parametrize("kind", sorted(set(REGRESSORS) - {"rpart"}))
@pytest.mark.parametrize("dtype", [float, int])
def test_a_masked_target_is_not_learned(kind, dtype):
    with pytest.raises(ValueError, match=r"y has 1 masked value\(s\), the first in row 19"):
        REGRESSORS[kind]().fit(X, masked(Y.astype(dtype)))


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("dtype", [int, str, object])
def test_a_masked_label_is_not_learned(kind, dtype):
    with pytest.raises(ValueError, match=r"y has 1 masked value\(s\), the first in row 19"):
        CLASSIFIERS[kind]().fit(X, masked(CLASSES.astype(dtype)))


@pytest.mark.parametrize("kind", REGRESSORS)
def test_masked_weights_are_refused_and_a_mask_of_nothing_is_not(kind):
    with pytest.raises(ValueError, match=r"sample_weight has 1 masked value\(s\), the first in row 19"):
        REGRESSORS[kind]().fit(X, Y, sample_weight=masked(np.ones(N)))
    whole = REGRESSORS[kind]().set_params(random_state=0)
    whole.fit(X, masked(Y, np.zeros(N, bool)), sample_weight=masked(np.ones(N), np.zeros(N, bool)))
    plain = REGRESSORS[kind]().set_params(random_state=0).fit(X, Y, sample_weight=np.ones(N))
    np.testing.assert_array_equal(whole.predict(X), plain.predict(X))


def test_rpart_leaves_out_rows_whose_target_is_masked():
    for y, model in ((Y, spinney.DecisionTreeRegressor.rpart), (CLASSES, spinney.DecisionTreeClassifier.rpart)):
        lacking = np.where(LAST, np.nan, y) if y is Y else np.where(LAST, None, y.astype(object))
        for given in (masked(y), lacking):
            fitted = model().fit(X, given)
            assert fitted.rpart_.n_dropped == 1
        np.testing.assert_array_equal(model().fit(X, masked(y)).predict(X), model().fit(X, lacking).predict(X))


MASKED = {
    "groups of a forest": lambda m: spinney.RandomForestRegressor(2).fit(X, Y, groups=m),
    "groups of boosting": lambda m: spinney.GradientBoostingRegressor(n_estimators=2, early_stopping=True).fit(
        X, Y, groups=m
    ),
    "groups of pruning": lambda m: spinney.DecisionTreeRegressor(prune="cv", cv=3).fit(X, Y, groups=m),
    "groups of bagging": lambda m: spinney.BaggingRegressor(n_estimators=2).fit(X, Y, groups=m),
    "strata": lambda m: spinney.BaggingRegressor(n_estimators=2).fit(X, Y, strata=m),
    "exposure": lambda m: spinney.DecisionTreeRegressor(criterion="poisson").fit(X, Y, exposure=m),
    "offset": lambda m: spinney.GradientBoostingRegressor(n_estimators=2).fit(X, Y, offset=m),
    "offset at predict": lambda m: spinney.GradientBoostingRegressor(n_estimators=2).fit(X, Y).predict(X, offset=m),
    "cv": lambda m: spinney.DecisionTreeRegressor(prune="cv", cv=m).fit(X, Y),
    "y_val": lambda m: spinney.GradientBoostingRegressor(n_estimators=2).fit(X, Y, X_val=X, y_val=m),
    "y of an imputer": lambda m: spinney.ProximityImputer(n_estimators=2, n_iter=1).fit(X, m),
    "y of james_stein": lambda m: spinney.james_stein(m, 1.0),
}


@pytest.mark.parametrize("what", MASKED)
def test_masks_are_seen_wherever_rows_are_described(what):
    with pytest.raises(ValueError, match=r"masked value\(s\), the first in row 19"):
        MASKED[what](masked(np.arange(N) % 4 + 1.0))


def test_masks_are_seen_in_parameters():
    costs = np.ma.array([[0.0, 1.0], [1.0, 0.0]], mask=[[False, True], [False, False]])
    with pytest.raises(ValueError, match="cost_matrix has 1 masked value"):
        spinney.DecisionTreeClassifier(cost_matrix=costs).fit(X, CLASSES % 2)
    by_column = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(ValueError, match="feature_costs has 1 masked value"):
        spinney.DecisionTreeRegressor(feature_costs=by_column).fit(X, Y)
    with pytest.raises(ValueError, match="feature_weights has 1 masked value"):
        spinney.RandomForestRegressor(2, feature_weights=by_column).fit(X, Y)
    with pytest.raises(ValueError, match="monotonic_cst has 1 masked value"):
        spinney.DecisionTreeRegressor(monotonic_cst=by_column.astype(int)).fit(X, Y)


def test_masked_cells_of_a_table_are_missing_values():
    table = np.ma.array(X, mask=np.zeros(X.shape, bool))
    table[3, 1] = np.ma.masked
    table.data[3, 1] = 999
    known = X.copy()
    known[3, 1] = np.nan
    expected = spinney.DecisionTreeRegressor().fit(known, Y)
    as_dict = {"a": table[:, 0], "b": table[:, 1]}
    for given in (table, list(table), as_dict):
        model = spinney.DecisionTreeRegressor().fit(given, Y)
        assert model.fingerprint() == expected.fingerprint()
        np.testing.assert_array_equal(model.predict(given), expected.predict(known))
    filled = spinney.ProximityImputer(n_estimators=5, n_iter=1, random_state=0).fit_transform(as_dict)
    assert not np.ma.is_masked(filled["b"])
    assert filled["b"][3] < 7
    bagged = [
        spinney.BaggingRegressor(n_estimators=3, random_state=0).fit(rows, Y).predict(known)
        for rows in (known, table, list(table))
    ]
    np.testing.assert_array_equal(bagged[0], bagged[1])
    np.testing.assert_array_equal(bagged[0], bagged[2])


DAYS = pd.date_range("2020-01-01", periods=N)
DATES = {
    "numpy dates": DAYS.to_numpy(),
    "numpy times": np.arange(N).astype("m8[s]"),
    "pandas": pd.Series(DAYS),
    "pandas with a zone": pd.Series(DAYS.tz_localize("UTC")),
    "pandas spans": pd.Series(DAYS - DAYS[0]),
    "pandas periods": pd.Series(pd.period_range("2020", periods=N)),
    "a frame": pd.DataFrame({"when": DAYS}),
    "polars": pl.Series(DAYS.to_numpy()).cast(pl.Date),
    "polars spans": pl.Series(np.arange(N).astype("m8[us]")),
    "arrow": pa.array(DAYS.to_numpy()),
    "objects": [datetime.date(2020, 1, 1 + i) for i in range(N)],
    "pandas over arrow": pd.Series(DAYS).astype("timestamp[ns][pyarrow]"),
}


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("container", DATES)
def test_dates_are_no_numbers_to_predict(kind, container):
    with pytest.raises(TypeError, match=r"y holds dates or times, .*numpy.timedelta64\(1, 'D'\)"):
        REGRESSORS[kind]().fit(X, DATES[container])


def test_the_remedy_for_dates_works():
    dates = DAYS.to_numpy()
    days = (dates - np.datetime64("2020-01-01")) / np.timedelta64(1, "D")
    np.testing.assert_array_equal(spinney.DecisionTreeRegressor().fit(X, days).predict(X), Y)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_dates_are_classes_like_any_other(kind):
    labels = CLASSES.astype("M8[D]")
    model = CLASSIFIERS[kind]().set_params(random_state=0).fit(X, labels)
    by_name = CLASSIFIERS[kind]().set_params(random_state=0).fit(X, CLASSES)
    np.testing.assert_array_equal(model.predict(X), by_name.predict(X).astype("M8[D]"))
    for missing in (
        np.where(LAST, np.datetime64("NaT", "D"), labels),
        np.where(LAST, np.timedelta64("NaT", "s"), CLASSES.astype("m8[s]")),
    ):
        with pytest.raises(ValueError, match=r"missing value.*row 19"):
            CLASSIFIERS[kind]().fit(X, missing)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_what_is_not_a_number_is_named_with_its_row(kind):
    text = [*map(str, range(N - 1)), "many"]
    with pytest.raises(ValueError, match="y must hold numbers: row 19 has 'many'"):
        REGRESSORS[kind]().fit(X, text)
    with pytest.raises(ValueError, match="sample_weight must hold numbers: row 19 has 'many'"):
        REGRESSORS[kind]().fit(X, Y, sample_weight=text)
    with pytest.raises(TypeError, match="sample_weight holds dates or times"):
        REGRESSORS[kind]().fit(X, Y, sample_weight=np.ones(N).astype("m8[s]"))
    for name, given in (("y", (sp.csr_array(Y[:, None]),)), ("sample_weight", (Y, sp.csr_array(Y[:, None])))):
        with pytest.raises(TypeError, match=f"Sparse data was passed for {name}.*toarray"):
            REGRESSORS[kind]().fit(X, *given)


def test_the_text_nan_is_missing():
    with pytest.raises(ValueError, match=r"y contains NaN: .* row 19"):
        spinney.DecisionTreeRegressor().fit(X, [*map(str, range(N - 1)), "nan"])


@pytest.mark.parametrize("model", [spinney.DecisionTreeRegressor(), spinney.GradientBoostingRegressor(n_estimators=2)])
def test_a_target_that_is_missing_in_some_outputs_is_refused_with_advice(model):
    two = np.column_stack([Y, Y]).astype(float)
    two[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"row 4\. Drop these rows before fitting, or fit one model per output"):
        model.fit(X, two)
    two[4] = np.nan
    with pytest.raises(ValueError, match=r"row 4\. Drop these rows before fitting\.$"):
        model.fit(X, two)
