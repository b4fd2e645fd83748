"""Histogram classification, regression and density estimation."""

import io
import pickle

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle.neighbours import cell_answers
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut
from spinney._model.neighbours.histogram import Places

mpl.use("agg")


@pytest.fixture(scope="module")
def plane():
    rng = np.random.RandomState(0)
    X = rng.uniform(-2, 2, (150, 2)).round(2)
    return X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 1), np.sin(X[:, 0]) + X[:, 1]


# ---- cells ------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 1.0, 7.0]))
def test_predictions_are_means_of_the_rows_of_a_cell(seed, edge):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    X, queries = rng.normal(size=(n, 3)).round(1), rng.normal(size=(30, 3)).round(1) * 2
    codes, values = rng.integers(0, 3, n), rng.normal(size=n)
    for y, kind, n_classes in ((codes, "Classifier", int(codes.max()) + 1), (values, "Regressor", None)):
        if n_classes is not None and len(np.unique(y)) < n_classes:
            continue
        model = getattr(spinney, f"Histogram{kind}")(edge, scale=None, empty="overall").fit(X, y)
        found = model.predict(queries)[:, None] if n_classes is None else model.predict_proba(queries)
        overall = np.array([y.mean()]) if n_classes is None else np.bincount(y) / n
        for row, expected in zip(found, cell_answers(X, y, queries, edge, n_classes), strict=True):
            np.testing.assert_allclose(row, overall if expected is None else expected, atol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_cells_are_looked_up(seed):
    rng = np.random.default_rng(seed)
    cells = rng.integers(-3, 3, (int(rng.integers(1, 40)), int(rng.integers(1, 5))))
    places = Places(cells)
    np.testing.assert_array_equal(places.cells, np.unique(cells, axis=0))
    np.testing.assert_array_equal(places.cells[places.of_rows], cells)
    asked = rng.integers(-4, 4, (50, cells.shape[1]))
    known = {tuple(cell): place for place, cell in enumerate(places.cells.tolist())}
    assert places.find(asked).tolist() == [known.get(tuple(cell), -1) for cell in asked.tolist()]


def test_the_range_is_divided_into_equal_cells():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    model = spinney.HistogramRegressor(0.5).fit(X, [0, 1, 2, 3, 4])
    assert model.n_cells_ == 2
    assert model.predict([[-5.0], [1.9], [2.0], [4.0], [50.0]]).tolist() == [0.5, 0.5, 3.0, 3.0, 3.0]
    assert spinney.HistogramRegressor(1.0).fit(X, [0, 1, 2, 3, 4]).predict([[3.0]]) == [2.0]


def test_an_empty_cell_predicts_the_nearest_cell_or_the_overall_mean():
    X = pd.DataFrame({"x": [0.5, 0.6, 9.5], "town": ["Ely", "Rye", "Ely"]})
    y = [1.0, 2.0, 6.0]
    rows = pd.DataFrame({"x": [3.5, 8.5, 3.5, np.nan], "town": ["Ely", "Rye", "Rye", "Ely"]})
    near = spinney.HistogramRegressor(1.0, scale=None).fit(X, y)
    assert near.predict(rows).tolist() == [1.0, 6.0, 2.0, 1.0]
    assert near.set_params(empty="overall").fit(X, y).predict(rows).tolist() == [3.0] * 4


def test_missing_values_and_categories_have_separate_cells():
    X = pd.DataFrame({"x": [0.0, np.nan, np.nan, 1.0], "town": ["Ely", "Ely", None, "Rye"]})
    model = spinney.HistogramClassifier(1.0).fit(X, ["a", "b", "c", "d"])
    assert model.n_cells_ == 4
    assert model.predict(X).tolist() == ["a", "b", "c", "d"]


def test_a_weight_is_a_repeated_row(plane):
    X, y, values = plane
    weight = np.arange(len(y)) % 3
    for kind, target in (("Classifier", y), ("Regressor", values)):
        estimator = getattr(spinney, f"Histogram{kind}")(0.2, scale="standard")
        whole = estimator.fit(np.repeat(X, weight, axis=0), np.repeat(target, weight)).predict(X)
        np.testing.assert_allclose(estimator.fit(X, target, weight).predict(X).astype(float), whole.astype(float))


def test_several_outputs_costs_and_priors(plane):
    X, y, values = plane
    both = spinney.HistogramRegressor(0.2).fit(X, np.column_stack([values, -values])).predict(X)
    np.testing.assert_allclose(both[:, 0], -both[:, 1])
    dear = spinney.HistogramClassifier(1.0, cost_matrix=[[0, 9, 1], [1, 0, 1], [1, 1, 0]]).fit(X, y)
    plain = spinney.HistogramClassifier(1.0).fit(X, y)
    assert (dear.predict(X[:1]), plain.predict(X[:1])) == ([0], [1])
    shares = spinney.HistogramClassifier(1.0, priors="uniform").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(shares, 1 / 3)


def test_the_order_of_rows_does_not_break_ties_by_rounding():
    X = np.repeat([[0.0], [4.0]], 3, axis=0)  # the cell in the middle is as far from both
    Y = np.array([[0.1, 0.0], [0.2, 0.0], [0.3, 0.0], [0.3, 9.0], [0.2, 9.0], [0.1, 9.0]])
    weight = np.array([0.1, 0.2, 0.3, 0.3, 0.2, 0.1])
    rows = [2, 1, 0, 3, 4, 5]  # sums of three numbers round differently
    model = spinney.HistogramRegressor(0.2)
    for own in (None, weight):
        found = model.fit(X, Y, own).predict([[2.0]])
        permuted = model.fit(X[rows], Y[rows], None if own is None else own[rows]).predict([[2.0]])
        np.testing.assert_allclose(permuted, found, rtol=1e-12)


# ---- how wide ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("empty", ["nearest", "overall"])
@pytest.mark.parametrize("folds", [KFold(5), LeaveOneOut()])
def test_the_cell_width_is_that_of_a_grid_search(plane, folds, empty):
    X, y, values = (part[:40] for part in plane)
    edges = [4.0, 1.5, 0.7, 0.2]
    X = np.vstack([[[-2, -2], [2, 2], [-2, 2], [2, -2]], X[4:]])  # whatever is left out, the range stays
    kept = {"scale": None, "empty": empty}
    for kind, target, scoring in (("Classifier", y, None), ("Regressor", values, "neg_mean_squared_error")):
        estimator = getattr(spinney, f"Histogram{kind}")
        peer = GridSearchCV(estimator(1.0, **kept), {"cell": edges}, cv=folds, scoring=scoring).fit(X, target)
        cv = "loo" if isinstance(folds, LeaveOneOut) else folds
        model = estimator("cv", cv=cv, cell_values=edges[::-1], **kept).fit(X, target)
        wrong = 1 - peer.cv_results_["mean_test_score"] if scoring is None else -peer.cv_results_["mean_test_score"]
        np.testing.assert_allclose(model.cv_results_["error"], wrong, atol=1e-12)
        assert model.cv_results_["cell"].tolist() == edges
        assert model.cell_ == peer.best_params_["cell"]


def test_invalid_arguments_are_refused(plane):
    X, y, _ = plane
    with pytest.raises(ValueError, match="positive numbers"):
        spinney.HistogramClassifier(cell_values=[0.0]).fit(X, y)
    with pytest.raises(ValueError, match="one row at a time"):
        spinney.HistogramClassifier().fit(X, y, groups=y)
    with pytest.raises(ValueError, match='cross-validation: cell="cv"'):
        spinney.HistogramClassifier(0.5).fit(X, y, groups=y)
    with pytest.raises(ValueError, match="at least 2 rows"):
        spinney.HistogramClassifier().fit(X[:1], y[:1])


def test_files_and_pickles_predict_bit_identically():
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    model = spinney.HistogramClassifier(priors="uniform").fit(X, y)
    file = io.BytesIO()
    model.save(file)
    again, pickled = spinney.load(io.BytesIO(file.getvalue())), pickle.loads(pickle.dumps(model))
    for other in (again, pickled, spinney.load_predictor(io.BytesIO(file.getvalue()))):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    assert again.fingerprint() == model.fingerprint()
    assert (again.cell_, again.cv_results_["error"].tolist()) == (model.cell_, model.cv_results_["error"].tolist())
    assert model.to_predictor().predict(X.iloc[3]) == model.predict(X)[3]


# ---- densities --------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_the_risk_is_the_leave_one_out_estimate(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=int(rng.integers(2, 40))).round(1)
    if np.ptp(x) == 0:
        return
    model = spinney.HistogramDensity(bin_counts=[1, 2, 5, 9]).fit(x[:, None])
    for n_bins, risk in zip(model.cv_results_["bin_count"], model.cv_results_["risk"], strict=True):
        edges = np.linspace(x.min(), x.max(), n_bins + 1)
        one = spinney.HistogramDensity((x.max() - x.min()) / n_bins).fit(x[:, None])
        width, n = edges[1] - edges[0], len(x)
        place = np.minimum(np.floor((x - x.min()) / ((x.max() - x.min()) / n_bins)).astype(int), n_bins - 1)
        counts = np.bincount(place, minlength=n_bins)
        square = ((counts / n / width) ** 2 * width).sum()
        left_out = np.mean((counts[place] - 1) / (n - 1) / width)
        assert risk == pytest.approx(square - 2 * left_out, abs=1e-9 / width)
        assert len(one.bins_["fraction"]) == (counts > 0).sum()
    assert model.bin_width_[0] == pytest.approx(
        np.ptp(x) / model.cv_results_["bin_count"][model.cv_results_["risk"].argmin()]
    )


def test_the_density_is_numpys_histogram_and_integrates_to_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    model = spinney.HistogramDensity().fit(x[:, None])
    n_bins = int(model.cv_results_["bin_count"][model.cv_results_["risk"].argmin()])
    density, edges = np.histogram(x, n_bins, density=True)
    middles = (edges[1:] + edges[:-1]) / 2
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.score_samples(middles[:, None]), np.log(density))
    outside = np.array([[edges[0] - 1e-3], [edges[-1] + 1e-3], [1e300]])
    assert (model.score_samples(outside) == -np.inf).all()
    assert np.isfinite(model.score_samples([[x.max()], [x.min()]])).all()
    pair = spinney.HistogramDensity([0.5, 2.0], origin=-10).fit(rng.normal(size=(300, 2)))
    assert (pair.bins_["density"] * 1.0).sum() * 0.5 * 2.0 == pytest.approx(1)
    assert pair.origin_.tolist() == [-10, -10]
    assert 5 < n_bins < 40


def test_densities_are_saved_and_plotted_and_refuse_categories():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50)})
    weight = np.arange(50) % 3
    model = spinney.HistogramDensity().fit(X, sample_weight=weight)
    whole = spinney.HistogramDensity().fit(X.iloc[np.repeat(np.arange(50), weight)])
    np.testing.assert_allclose(model.score_samples(X), whole.score_samples(X))
    file = io.BytesIO()
    model.save(file)
    again = spinney.load(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    assert again.fingerprint() == pickle.loads(pickle.dumps(model)).fingerprint() == model.fingerprint()
    with pytest.raises(spinney.ModelFileError, match="does not predict a target"):
        spinney.load_predictor(io.BytesIO(file.getvalue()))
    assert len(model.plot().patches) == len(model.bins_["fraction"])
    assert len(spinney.HistogramDensity(1.0).fit(X[["a"]]).plot().patches) > 3
    for table, words in (
        (pd.DataFrame({"a": ["x", "y"]}), "'a' has categories"),
        (pd.DataFrame({"a": [1.0, np.nan]}), "'a' contains NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            spinney.HistogramDensity().fit(table)
    with pytest.raises(ValueError, match="cannot be plotted"):
        spinney.HistogramDensity(1.0).fit(rng.normal(size=(9, 3))).plot()


def test_error_curves_are_plotted():
    X, y = spinney.datasets.load_penguins()
    for model, label in (
        (spinney.KNeighborsClassifier("cv", k_values=[1, 2, 3]), "neighbours"),
        (spinney.HistogramClassifier(cell_values=[1, 0.5]), "edge of a cell"),
    ):
        ax = spinney.plot_error_curve(model.fit(X, y))
        assert (ax.get_xlabel(), ax.get_ylabel()) == (label, "error rate")
    assert spinney.plot_error_curve(spinney.HistogramDensity().fit([[1.0], [2.0]])).get_ylabel() == "estimated risk"
    with pytest.raises(TypeError, match="which this KNeighborsClassifier does not have"):
        spinney.plot_error_curve(spinney.KNeighborsClassifier(1).fit(X, y))


def test_rounded_columns_are_no_reason_for_ever_narrower_bins():
    ages = np.random.RandomState(0).normal(30, 12, 800).round().clip(0)[:, None]
    babies = np.array([[0.42], [0.67], [0.83], [14.5], [28.5]])
    finer = ages + np.random.RandomState(1).uniform(-0.5, 0.5, (800, 1))
    expected = spinney.HistogramDensity().fit(finer).bin_width_[0]
    for rounded, unit in ((ages, 1.0), (np.vstack([ages, babies]), 1.0), (ages / 10, 0.1)):
        model = spinney.HistogramDensity().fit(rounded)  # no warning
        n_units = model.bin_width_[0] / unit
        assert n_units == pytest.approx(round(n_units))
        assert 0.6 * expected < n_units < 1.7 * expected
        assert model.cv_results_["bin_count"][model.cv_results_["risk"].argmin()] == len(model.bins_["low"])


def test_equal_rows_that_are_not_rounded_are_named_in_the_warning():
    values = np.repeat(np.random.RandomState(0).normal(size=(40, 1)), 9, axis=0)
    with pytest.warns(UserWarning, match="has chosen .* bins, of at most 100: 320 rows are equal .* Set bin_width"):
        spinney.HistogramDensity().fit(values)
