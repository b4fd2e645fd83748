"""Nu-support vector machines: the optimum, the bounds that nu guarantees, and errors."""

import numpy as np
import pytest
import sklearn.svm
import spinney
from hypothesis import given
from hypothesis import strategies as st
from margin_tables import blobs, mixed
from oracle.margin import kernel_matrix, violation
from sweep import examples

EXACT = {"scale": False, "tol": 1e-9, "precision": "double"}


def coefficients(model, n):
    found = np.zeros(n)
    found[model.support_] = model.dual_coef_[0]
    return found


@examples(12)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(12, 90),
    kernel=st.sampled_from(["linear", "poly", "rbf"]),
    nu=st.sampled_from([0.5, 0.7, 0.9]),
    values=st.booleans(),
)
def test_the_optimum_is_that_of_the_equivalent_c_and_epsilon(seed, n, kernel, nu, values):
    """The optimality conditions with C_ and epsilon_ hold, and so do the bounds of nu."""
    X, y = blobs(seed, n)
    options = {"kernel": kernel, "gamma": 0.2, "coef0": 0.5, "degree": 2, "scale": False, "tol": 1e-7}
    matrix = kernel_matrix(kernel, X, X, 0.2, 0.5, 2)
    if values:
        z = X[:, 0] * X[:, 1] + y
        model = spinney.NuSVR(nu=nu, C=2.0, precision="double", **options).fit(X, z)
        C, epsilon = model.C_, model.epsilon_[0]
        lowest, highest = np.full(n, -C), np.full(n, C)
    else:
        z, epsilon = np.where(y == 1, 1.0, -1.0), 0.0
        model = spinney.NuSVC(nu=nu, precision="double", **options).fit(X, y)
        C = model.C_[0]
        lowest, highest = np.where(z < 0, -C, 0.0), np.where(z > 0, C, 0.0)
    beta = coefficients(model, n)
    assert np.abs(beta).sum() <= nu * n * C * (1 + 1e-9)
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    if not values:
        assert np.abs(beta).sum() == pytest.approx(nu * n * C)
    tightest = 1e-9 * C
    beta = np.where(np.abs(beta) > C - tightest, np.sign(beta) * C, beta)
    assert violation(matrix, z, beta, lowest, highest, epsilon) <= 1e-6 * max(1.0, C if not values else 1.0)
    assert model.kkt_violation_[0] <= 1e-7
    outside = (model.slacks_ > 1e-5).mean()
    assert outside <= nu + 1e-9
    assert len(model.support_) / n >= nu - 1e-9


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_nu_machines_equal_svc_and_svr(kernel):
    X, y = blobs(2, n=70)
    share = spinney.NuSVC(nu=0.4, kernel=kernel, gamma=0.3, **EXACT).fit(X, y)
    penalty = spinney.SVC(C=share.C_[0], kernel=kernel, gamma=0.3, **EXACT).fit(X, y)
    np.testing.assert_allclose(share.decision_function(X), penalty.decision_function(X), atol=1e-6)
    assert share.objective_[0] == pytest.approx(penalty.objective_[0], rel=1e-8)
    assert share.dual_gap_[0] < 1e-5 * abs(share.objective_[0])
    z = np.sin(X[:, 0]) + 0.2 * X[:, 1]
    share = spinney.NuSVR(nu=0.3, C=2.0, kernel=kernel, gamma=0.3, **EXACT).fit(X, z)
    tube = spinney.SVR(epsilon=share.epsilon_[0], C=2.0, kernel=kernel, gamma=0.3, **EXACT).fit(X, z)
    np.testing.assert_allclose(share.predict(X), tube.predict(X), atol=1e-6)
    np.testing.assert_allclose(share.slacks_, tube.slacks_, atol=1e-6)


@pytest.mark.parametrize("n", [60, 700])
def test_nu_machines_agree_with_scikit_learn(n):
    """More rows than one working set has, too."""
    X, y = blobs(4, n=n, n_classes=3)
    options = {"nu": 0.3, "gamma": 0.2, "tol": 1e-6}
    ours = spinney.NuSVC(scale=False, decision_function_shape="ovo", **options).fit(X, y)
    theirs = sklearn.svm.NuSVC(decision_function_shape="ovo", **options).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-4)
    z = X[:, 0] * X[:, 1]
    ours, theirs = spinney.NuSVR(scale=False, **options).fit(X, z), sklearn.svm.NuSVR(**options).fit(X, z)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-4)


@pytest.mark.parametrize("values", [False, True])
def test_the_optimum_is_independent_of_threads_cache_and_shrinking(values):
    X, y = blobs(3, n=900, d=4, spread=1.5)
    make, target = (spinney.NuSVR, X[:, 0] * X[:, 1] + y) if values else (spinney.NuSVC, y)
    options = {"nu": 0.6, "tol": 1e-7, "precision": "double"}
    found = [
        make(**options, cache_size=size, shrinking=shrinking, n_jobs=n_jobs).fit(X, target)
        for size, shrinking, n_jobs in ((200, True, 1), (200, True, 2), (1, True, 2), (200, False, 1))
    ]
    assert found[0].fingerprint() == found[1].fingerprint()
    for other in found[2:]:
        np.testing.assert_allclose(found[0].objective_, other.objective_, rtol=1e-7)


def test_a_weight_is_a_repeated_row():
    X, y = blobs(5, n=40)
    weight = 1.0 + np.arange(40) % 3
    twice = np.repeat(np.arange(40), weight.astype(int))
    for make, target in ((spinney.NuSVC, y), (spinney.NuSVR, X[:, 0] ** 2)):
        weighted = make(nu=0.3, **EXACT, gamma=0.3).fit(X, target, weight)
        repeated = make(nu=0.3, **EXACT, gamma=0.3).fit(X[twice], target[twice])
        np.testing.assert_allclose(weighted.margin_.intercepts, repeated.margin_.intercepts, atol=1e-6)
        np.testing.assert_allclose(weighted._scores(X), repeated._scores(X), atol=1e-6)


def test_an_infeasible_nu_is_refused():
    X, y = blobs(n=40)
    few = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:5]]
    with pytest.raises(ValueError, match=r"nu=0.5 is infeasible for the classes .* at most 0.4"):
        spinney.NuSVC().fit(X[few], y[few])
    assert spinney.NuSVC(nu=0.4).fit(X[few], y[few]).score(X[few], y[few]) > 0.8
    spinney.NuSVC().fit(X[few], y[few], np.where(y[few] == 1, 4.0, 1.0))
    with pytest.raises(ValueError, match="nu"):
        spinney.NuSVC(nu=0.0).fit(X, y)


def test_constant_columns():
    flat = np.ones((6, 2))
    assert np.isfinite(spinney.NuSVC().fit(flat, [0, 1, 0, 0, 1, 1]).decision_function(flat)).all()
    assert np.isfinite(spinney.NuSVR().fit(flat, np.arange(6.0)).predict(flat)).all()
    X, _ = blobs(n=30)
    assert spinney.NuSVR(nu=1.0).fit(X, X[:, 0]).epsilon_[0] == pytest.approx(0.0, abs=1e-3)
    constant = spinney.NuSVR().fit(X, np.full(30, 4.0))
    np.testing.assert_allclose(constant.predict(X), 4.0, atol=1e-3)


def test_mixed_tables_probabilities_and_searches():
    frame, y, values = mixed()
    sure = spinney.NuSVC(nu=0.4, probability=True, random_state=0).fit(frame, y)
    np.testing.assert_allclose(sure.predict_proba(frame).sum(axis=1), 1.0)
    assert sure.score(frame, y) > 0.85
    chosen = spinney.NuSVR(C=[0.1, 1.0, 10.0], gamma="cv", cv=3, random_state=0).fit(frame, values)
    assert chosen.C_ in (0.1, 1.0, 10.0)
    assert chosen.score(frame, values) > 0.7


@pytest.mark.parametrize("kind", ["SVR", "NuSVR", "SVC", "NuSVC"])
def test_kernel_values_that_overflow_are_refused(kind):
    X = np.linspace(-1e281, 1e281, 12)[:, np.newaxis]
    with pytest.raises(ValueError, match="Kernel values of these columns overflow"):
        getattr(spinney, kind)(kernel="linear", scale=None).fit(X, np.arange(12) % 2)
