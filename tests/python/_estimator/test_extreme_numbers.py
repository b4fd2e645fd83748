"""Targets and weights whose squares or sums exceed floating-point numbers are refused, or computed right."""

import io

import numpy as np
import pytest
import spinney

X = np.random.default_rng(0).normal(size=(120, 3))
Y, CLASSES = X[:, 0], (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("unit", [1e-200, 1e155, 1e200])
@pytest.mark.parametrize("name", ["HistogramRegressor", "KNeighborsRegressor"])
def test_cross_validation_refuses_targets_whose_squares_overflow(name, unit):
    model = spinney.KNeighborsRegressor(n_neighbors="cv") if name.startswith("K") else spinney.HistogramRegressor()
    with pytest.raises(ValueError, match=r"squared errors of cross-validation exceed .* Rescale y\."):
        model.fit(X, Y * unit)
    assert model.fit(X, Y * 1e100).predict(X[:1]) == pytest.approx(1e100 * model.fit(X, Y).predict(X[:1]))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "model",
    [
        spinney.SVR(C=[0.1, 1.0], cv=3),
        spinney.AdaBoostRegressor(n_estimators=3, learning_rate="cv"),
        spinney.FunctionalBoostingRegressor(n_estimators=3, learning_rate="cv"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_cross_validation_of_large_targets_computes_the_deviation_of_errors(model):
    results = model.fit(X, Y * 1e90).cv_results_
    by_fold = results.get("fold_errors", np.column_stack([results[name] for name in results if "fold_" in name]))
    deviation = 1e180 * (by_fold / 1e180).std(axis=1, ddof=1)
    found = results["sd"] if "sd" in results else results["error_se"] * np.sqrt(by_fold.shape[1])
    np.testing.assert_allclose(found, deviation, rtol=1e-9)


@pytest.mark.parametrize("name", ["LinearSVC", "LinearSVR", "SVC", "SVR", "NuSVC", "NuSVR"])
def test_support_vector_machines_refuse_huge_weights(name):
    y = CLASSES if name.endswith("C") else Y
    with pytest.raises(ValueError, match=r"sample_weight reaches 1e\+200: .* Rescale the weights"):
        getattr(spinney, name)().fit(X, y, sample_weight=np.full(120, 1e200))


@pytest.mark.parametrize("name", ["LinearSVC", "LinearSVR", "SVC", "SVR"])
def test_large_weights_that_are_taken_can_be_saved(name):
    y = CLASSES if name.endswith("C") else Y
    file = io.BytesIO()
    getattr(spinney, name)().fit(X, y, sample_weight=np.full(120, 1e6)).save(file)
    assert len(file.getvalue()) > 100


@pytest.mark.parametrize("unit", [1e300, 1e305])
def test_a_stack_refuses_weights_that_its_final_estimator_cannot_take(unit):
    members = [("tree", spinney.DecisionTreeClassifier(max_depth=3)), ("near", spinney.KNeighborsClassifier())]
    classes = np.digitize(Y, [-0.5, 0.5])
    model = spinney.StackingClassifier(members, random_state=0)
    with pytest.raises(ValueError, match=r"reaches 1e\+30\d: a linear model cannot .* Rescale the weights"):
        model.fit(X, classes, sample_weight=np.full(120, unit))
    assert np.isfinite(model.fit(X, classes, sample_weight=np.full(120, 1e100)).predict_proba(X)).all()
