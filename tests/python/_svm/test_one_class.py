"""The one-class support vector machine: the optimum, the bounds that nu guarantees, and tables."""

import numpy as np
import pytest
import sklearn.svm
import spinney
from hypothesis import given
from hypothesis import strategies as st
from margin_tables import blobs, mixed
from oracle.margin import kernel_matrix, solve_one_class
from sweep import examples

EXACT = {"tol": 1e-9, "precision": "double"}


def coefficients(model, n):
    found = np.zeros(n)
    found[model.support_] = model.dual_coef_[0]
    return found


@examples(12)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(8, 60),
    kernel=st.sampled_from(["linear", "poly", "rbf"]),
    nu=st.sampled_from([0.1, 0.5, 0.9]),
    weighted=st.booleans(),
)
def test_the_optimum_is_that_of_the_reference(seed, n, kernel, nu, weighted):
    X = blobs(seed, n)[0] + 2.0
    weight = 1.0 + np.arange(n) % 3 if weighted else np.ones(n)
    matrix = kernel_matrix(kernel, X, X, 0.2, 0.5, 2)
    options = {"kernel": kernel, "gamma": 0.2, "coef0": 0.5, "degree": 2, "nu": nu}
    model = spinney.OneClassSVM(**options, **EXACT).fit(X, sample_weight=weight)
    alpha = coefficients(model, n)
    assert alpha.sum() == pytest.approx(nu * weight.sum())
    assert (alpha >= 0).all()
    assert (alpha <= weight * (1 + 1e-9)).all()
    reference = solve_one_class(matrix, weight, nu * weight.sum())
    least = reference @ matrix @ reference / 2
    assert model.objective_[0] == pytest.approx(alpha @ matrix @ alpha / 2, rel=1e-8, abs=1e-9)
    assert model.objective_[0] == pytest.approx(least, rel=1e-5, abs=1e-6 * n)
    assert model.dual_gap_[0] <= 1e-6 * max(least, 1.0)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, matrix @ alpha - model.offset_, atol=1e-7 * max(least, 1.0))
    np.testing.assert_allclose(model.slacks_, np.maximum(-scores, 0), atol=1e-7 * max(least, 1.0))


@pytest.mark.parametrize(("n", "kernel"), [(60, "rbf"), (60, "sigmoid"), (700, "rbf")])
def test_agrees_with_scikit_learn(n, kernel):
    """More rows than one working set has, too."""
    X = blobs(4, n=n)[0]
    options = {"kernel": kernel, "nu": 0.3, "gamma": 0.02, "tol": 1e-6}
    ours, theirs = spinney.OneClassSVM(**options).fit(X), sklearn.svm.OneClassSVM(**options).fit(X)
    tolerance = {"atol": 2e-5 * max(1.0, abs(ours.offset_))}
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), **tolerance)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), **tolerance)
    assert ours.offset_ == pytest.approx(theirs.offset_[0], rel=1e-5)
    assert ours.intercept_[0] == -ours.offset_
    far = np.abs(ours.decision_function(X)) > 1e-4
    np.testing.assert_array_equal(ours.predict(X)[far], theirs.predict(X)[far])
    np.testing.assert_array_equal(ours.fit_predict(X), ours.predict(X))


@pytest.mark.parametrize("nu", [0.05, 0.4, 1.0])
def test_nu_bounds_outliers_and_support_vectors(nu):
    X = np.random.default_rng(1).normal(size=(200, 3))
    model = spinney.OneClassSVM(nu=nu, **EXACT).fit(X)
    assert (model.decision_function(X) < -1e-6).mean() <= nu + 1e-9
    assert len(model.support_) / len(X) >= nu - 1e-9
    assert model.fit_status_ == 0
    assert model.predict([[30.0, 30.0, 30.0]])[0] == -1


def test_a_weight_is_a_repeated_row_and_order_does_not_matter():
    X = blobs(5, n=40)[0]
    weight = np.arange(40) % 3
    twice = np.repeat(np.arange(40), weight)
    weighted = spinney.OneClassSVM(nu=0.3, gamma=0.3, **EXACT).fit(X, sample_weight=weight)
    repeated = spinney.OneClassSVM(nu=0.3, gamma=0.3, **EXACT).fit(X[twice][::-1])
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))
    assert np.isnan(weighted.slacks_[weight == 0]).all()


def test_categories_missing_values_and_kernels_by_matrix_and_function():
    frame = mixed()[0]
    model = spinney.OneClassSVM(nu=0.1, scale="standard").fit(frame)
    assert any(" = " in term for term in model.terms_)
    assert (model.predict(frame) < 0).mean() < 0.2
    X = blobs(6, n=50)[0]
    named = spinney.OneClassSVM(gamma=0.3).fit(X)
    matrix = spinney.kernels.rbf(X, X, gamma=0.3)
    given_ = spinney.OneClassSVM(kernel="precomputed").fit(matrix)
    own = spinney.OneClassSVM(kernel=lambda a, b: spinney.kernels.rbf(a, b, gamma=0.3)).fit(X)
    np.testing.assert_allclose(given_.decision_function(matrix), named.decision_function(X), atol=2e-3)
    np.testing.assert_allclose(own.decision_function(X), named.decision_function(X), atol=2e-3)


def test_searches_and_impossible_parameters_are_refused():
    X = blobs(n=20)[0]
    for options in ({"gamma": "cv"}, {"gamma": [0.1, 1.0]}, {"nu": 0.0}, {"nu": 1.5}):
        with pytest.raises(ValueError, match=next(iter(options))):
            spinney.OneClassSVM(**options).fit(X)
    with pytest.raises(TypeError, match="no parameter 'C'"):
        spinney.OneClassSVM(C=1.0)
    with pytest.warns(UserWarning, match=r"Raise max_iter, or scale"):
        spinney.OneClassSVM(max_iter=1, tol=1e-6).fit(X)
    flat = np.ones((6, 2))
    assert np.isfinite(spinney.OneClassSVM().fit(flat).decision_function(flat)).all()
