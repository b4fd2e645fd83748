"""Linear support vector machines and the perceptron."""

import io

import numpy as np
import pandas as pd
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle.margin import perceptron, plane_objective
from scipy.optimize import minimize
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from spinney import _engine
from spinney._svm.margin_estimator import C_GRID
from sweep import examples


def noisy(seed=0, n=200, d=4):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, d)
    return X, X[:, 0] - 0.5 * X[:, 1] + 0.6 * rng.randn(n) + 0.4


def load_saved(model):
    file = io.BytesIO()
    model.save(file)
    return spinney.load(io.BytesIO(file.getvalue()))


def separable(seed=0, n=60):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, 3)
    keep = np.abs(X[:, 0] + X[:, 1] - 0.3) > 0.25
    return X[keep], np.where(X[keep, 0] + X[keep, 1] > 0.3, 1.0, -1.0)


# ---- the sums ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (6, 1025), (29, 4000)])
def test_sums_of_terms_are_sums(shape):
    rng = np.random.RandomState(0)
    terms, factors, weights = rng.randn(*shape), rng.rand(shape[1]), rng.randn(shape[0] + 1)
    whole = np.vstack([terms, np.ones(shape[1])])
    np.testing.assert_allclose(_engine.weighted_terms(terms, weights, 2), weights @ whole, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(_engine.term_sums(terms, factors, 2), whole @ factors, rtol=1e-11, atol=1e-10)
    products = _engine.term_products(terms, factors, 2)
    np.testing.assert_allclose(products, whole * factors @ whole.T, rtol=1e-11, atol=1e-10)
    np.testing.assert_array_equal(_engine.term_products(terms, factors, 1), products)
    np.testing.assert_array_equal(_engine.term_sums(terms, factors, 1), _engine.term_sums(terms, factors, 3))


def test_systems_are_solved_or_rejected():
    rng = np.random.RandomState(0)
    root = rng.randn(11, 11)
    matrix, right = root @ root.T + np.eye(11), rng.randn(2, 11)
    np.testing.assert_allclose(_engine.solve_positive(matrix, right) @ matrix, right, atol=1e-10)
    assert _engine.solve_positive(-matrix, right) is None


# ---- the optimum ------------------------------------------------------------------------------------------


@examples(6)
@given(
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.01, 1.0, 100.0]),
    squared=st.booleans(),
    values=st.booleans(),
    scaling=st.sampled_from([1.0, np.inf]),
)
def test_planes_minimise_the_objective(seed, C, squared, values, scaling):
    X, score = noisy(seed)
    weight = np.random.RandomState(seed).rand(len(X)) + 0.2
    if values:
        z, epsilon = score, 0.2
        loss = "squared_epsilon_insensitive" if squared else "epsilon_insensitive"
        model = spinney.LinearSVR(C=C, epsilon=epsilon, loss=loss, tol=1e-8, intercept_scaling=scaling)
    else:
        z, epsilon = np.where(score > 0, 1.0, -1.0), None
        loss = "squared_hinge" if squared else "hinge"
        model = spinney.LinearSVC(C=C, loss=loss, tol=1e-8, intercept_scaling=scaling)
    model.fit(X, z, weight)

    def objective(plane):
        loss = plane_objective(X, z, plane[:-1], plane[-1], C * weight, epsilon, squared)
        return loss + (plane[-1] / scaling) ** 2 / 2

    own = np.append(model.coef_, model.intercept_)
    best = objective(own)
    assert model.objective_[0] == pytest.approx(best, rel=1e-9)
    assert model.dual_gap_[0] <= 1e-8
    found = minimize(objective, own + 1e-3, method="BFGS")  # no other method finds a better one
    assert best <= found.fun * (1 + 1e-6)
    rng = np.random.RandomState(seed)
    assert all(best <= objective(own + 1e-4 * rng.randn(len(own))) for _ in range(20))


def test_hinge_losses_agree_with_kernel_machines():
    X, score = noisy()
    y = score > 0
    slow = spinney.SVC(kernel="linear", tol=1e-9, precision="double").fit(X, y)
    quick = spinney.LinearSVC(loss="hinge", tol=1e-10, intercept_scaling=np.inf).fit(X, y)
    np.testing.assert_allclose(quick.decision_function(X), slow.decision_function(X), atol=1e-5)
    tube = spinney.SVR(kernel="linear", tol=1e-9, precision="double").fit(X, score)
    quick = spinney.LinearSVR(epsilon=0.1, tol=1e-10, intercept_scaling=np.inf).fit(X, score)
    np.testing.assert_allclose(quick.predict(X), tube.predict(X), atol=1e-5)


def test_several_classes_weights_and_costs():
    X, score = noisy(n=300)
    y = np.digitize(score, [-0.5, 0.8])
    model = spinney.LinearSVC(loss="hinge", tol=1e-8).fit(X, y)
    assert model.coef_.shape == (3, 4)
    for k in range(3):
        alone = spinney.LinearSVC(loss="hinge", tol=1e-8).fit(X, y == k)
        np.testing.assert_array_equal(alone.coef_[0], model.coef_[k])
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    two = score > 0
    heavy = spinney.LinearSVC(class_weight={True: 3.0}, scale=False).fit(X, two)
    np.testing.assert_array_equal(
        heavy.coef_, spinney.LinearSVC(scale=False).fit(X, two, np.where(two, 3.0, 1.0)).coef_
    )
    np.testing.assert_array_equal(
        heavy.coef_, spinney.LinearSVC(cost_matrix={True: {False: 3.0}}, scale=False).fit(X, two).coef_
    )


def test_threads_files_and_tables():
    X, score = noisy(n=3000)
    for make in (spinney.LinearSVC, spinney.Perceptron):
        options = {} if make is spinney.LinearSVC else {"max_iter": 3, "averaged": True, "random_state": 0}
        models = []
        for n_jobs in (1, 2):
            models.append(make(n_jobs=n_jobs, **options).fit(X, score > 0))
        assert models[0].fingerprint() == models[1].fingerprint()
        file = io.BytesIO()
        models[0].save(file)
        file.seek(0)
        predictor = spinney.load_predictor(file)
        np.testing.assert_array_equal(predictor.predict(X[:50]), models[0].predict(X[:50]))
        assert predictor.predict_one(X[3]) == models[0].predict(X[3:4])[0]
    frame = pd.DataFrame({"a": X[:80, 0], "town": np.where(X[:80, 1] > 0, "Ely", "Rye")})
    frame.loc[::7, "a"] = np.nan
    model = spinney.LinearSVR(C=10.0).fit(frame, score[:80])
    assert model.terms_ == ["a", "a is missing", "town = Ely", "town = Rye"]
    assert model.score(frame, score[:80]) > 0.4


def test_too_few_iterations_raise_a_warning():
    X, score = noisy()
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        spinney.LinearSVC(loss="hinge", max_iter=2).fit(X, score > 0)


# ---- the perceptron ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("averaged", [False, True])
def test_the_perceptron_agrees_with_the_reference(averaged):
    X, z = separable()
    order = np.lexsort((X[:, 0], z))  # by class, then by the first term
    weights, intercept, n_updates, mean = perceptron(X[order], z[order], 1000)
    model = spinney.Perceptron(scale=False, averaged=averaged, shuffle=False).fit(X, z)
    assert model.n_updates_[0] == n_updates
    own = np.append(model.coef_[0], model.intercept_[0])
    np.testing.assert_allclose(own, mean if averaged else np.append(weights, intercept), rtol=1e-9)
    if not averaged:
        assert model.score(X, z) == 1.0


@examples(10)
@given(seed=st.integers(0, 10**6), eta=st.sampled_from([0.1, 1.0, 7.0]), shuffle=st.booleans())
def test_updates_satisfy_novikoffs_bound(seed, eta, shuffle):
    X, z = separable(seed)
    model = spinney.Perceptron(eta=eta, shuffle=shuffle, random_state=seed).fit(X, z)
    assert model.score(X, z) == 1.0
    assert model.n_updates_[0] <= model.novikoff_bound_[0] < np.inf
    same = spinney.Perceptron(eta=1.0, shuffle=shuffle, random_state=seed).fit(X, z)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert model.n_updates_[0] == same.n_updates_[0]


def test_inseparable_classes_raise_a_warning():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    with pytest.warns(ConvergenceWarning, match="may not be linearly separable"):
        model = spinney.Perceptron(max_iter=30).fit(X, [0, 0, 1, 1])
    assert model.novikoff_bound_[0] == np.inf
    assert model.n_iter_[0] == 30


@pytest.mark.parametrize(("y", "epsilon", "level"), [([1.3] * 30, 0.0, 1.3), ([1.0, 2.0, 4.0] * 10, 1.5, 2.5)])
def test_a_constant_target_has_a_flat_plane(y, epsilon, level):
    """The minimum of the objective is 0, so relative tolerances do not apply."""
    X = np.random.default_rng(0).normal(size=(30, 4))
    model = spinney.LinearSVR(epsilon=epsilon, intercept_scaling=np.inf).fit(X, y)
    np.testing.assert_array_equal(model.coef_, 0.0)
    np.testing.assert_array_equal(model.predict(X), level)
    np.testing.assert_array_equal(model.objective_, 0.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("options", [{"tol": 1e-300, "max_iter": 10_000}, {"C": 1e30}])
@pytest.mark.parametrize("kind", ["LinearSVC", "LinearSVR"])
def test_limits_of_precision_raise_a_warning(kind, options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = X[:, 0] + rng.normal(size=60)
    loss = {"loss": "hinge"} if kind == "LinearSVC" else {}
    with pytest.warns(ConvergenceWarning, match="reached the limit of rounding"):
        model = getattr(spinney, kind)(**loss, **options, intercept_scaling=np.inf).fit(X, y > 0 if loss else y)
    assert np.isfinite(model.coef_).all()
    assert model.score(X, y > 0 if loss else y) > 0.3 or "C" in options


@pytest.mark.parametrize("kind", ["LinearClassifier", "LinearSVC", "SVC", "KNeighborsClassifier"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_columns_with_infinite_numbers_are_excluded_and_named(kind):
    X = pd.DataFrame({"width": [1.0, np.inf, 3.0, 5.0] * 5, "height": [2.0, 3.0, 1.0, 9.0] * 5})
    with pytest.warns(UserWarning, match=r"Column 'width' has infinite numbers"):
        model = getattr(spinney, kind)().fit(X, [0, 1, 0, 1] * 5)
    alone = getattr(spinney, kind)().fit(X[["height"]], [0, 1, 0, 1] * 5)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X[["height"]]))


# ---- the penalty by cross-validation -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["LinearSVC", "LinearSVR"])
@pytest.mark.parametrize("squared", [True, False])
def test_the_selected_penalty_agrees_with_single_fits(kind, squared):
    rng = np.random.RandomState(2)
    X = rng.randn(60, 3)
    score = X[:, 0] + rng.randn(60)
    y = score if kind == "LinearSVR" else np.where(score > 0.8, "c", np.where(score < -0.5, "a", "b"))
    loss = ("squared_" if squared else "") + ("hinge" if kind == "LinearSVC" else "epsilon_insensitive")
    options = {"loss": loss, "tol": 1e-8}
    make, folds, penalties = getattr(spinney, kind), list(KFold(3).split(X)), [0.01, 1.0, 30.0]
    model = make(C=penalties, cv=folds, **options).fit(X, y)
    errors = []
    for C in penalties:
        predicted = np.concatenate([make(C=C, **options).fit(X[a], y[a]).predict(X[b]) for a, b in folds])
        errors.append(np.mean((predicted - y) ** 2 if kind == "LinearSVR" else predicted != y))
    np.testing.assert_allclose(model.cv_results_["error"], errors, atol=1e-6)
    assert penalties[int(np.argmin(errors))] == model.C_
    assert model.coef_.tolist() == make(C=model.C_, **options).fit(X, y).coef_.tolist()
    again = load_saved(model)
    assert again.C_ == model.C_
    assert again.cv_results_["error"].tolist() == model.cv_results_["error"].tolist()
    assert make(C="cv", random_state=0).fit(X, y).C_ in C_GRID


@pytest.mark.parametrize("kind", ["LinearSVC", "LinearSVR"])
def test_an_excessive_penalty_is_rejected(kind):
    X = np.arange(20.0)[:, np.newaxis]
    with pytest.raises(ValueError, match=r"C=1e\+300 is too large.* at most 1e\+30"):
        getattr(spinney, kind)(C=1e300).fit(X, np.arange(20) % 2)


@pytest.mark.parametrize("kind", ["LinearRegressor", "LinearSVR", "SVR", "KNeighborsRegressor"])
def test_infinite_cells_are_treated_as_missing(kind):
    rng = np.random.RandomState(0)
    X = rng.randn(40, 2)
    X[3, 0] = np.nan
    model = getattr(spinney, kind)().fit(X, X[:, 1])
    found = model.predict([[np.inf, 0.3], [-np.inf, 0.3]])
    assert np.abs(found).max() < 10


def test_scale_options_are_uniform():
    rng = np.random.RandomState(0)
    X, y = rng.rand(40, 2) * [1, 50], np.arange(40) % 2
    for kind in ("SVC", "LinearSVC", "Perceptron", "KNeighborsClassifier", "HistogramClassifier"):
        make, options = getattr(spinney, kind), {"averaged": True} if kind == "Perceptron" else {}
        for old, new in ((True, "standard"), (False, None)):
            one = make(scale=old, random_state=0, **options).fit(X, y).predict(X)
            assert (one == make(scale=new, random_state=0, **options).fit(X, y).predict(X)).all()
        make(scale="range", random_state=0, **options).fit(X, y)
        with pytest.raises(ValueError, match="scale"):
            make(scale="wide").fit(X, y)


# ---- scikit-learn's objective ------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"intercept_scaling": 10.0}, {"fit_intercept": False}])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"])
def test_the_optimum_is_that_of_scikit_learn(loss, options):
    X, values = noisy(n=120)
    is_class = "hinge" in loss
    y = np.sign(values) if is_class else 3 * values + 2
    ours, peer = (spinney.LinearSVC, svm.LinearSVC) if is_class else (spinney.LinearSVR, svm.LinearSVR)
    model = ours(loss=loss, C=3.0, tol=1e-9, **options).fit(X, y)
    known = peer(loss=loss, C=3.0, tol=1e-9, dual=True, max_iter=10**6, random_state=0, **options).fit(X, y)
    assert model.coef_.shape == known.coef_.shape
    assert isinstance(model.n_iter_, int)

    def objective(one):
        intercept = float(np.ravel(one.intercept_)[0])
        scores = X @ one.coef_.ravel() + intercept
        violation = np.maximum(1 - y * scores, 0) if is_class else np.abs(y - scores)
        lost = 3.0 * (violation ** (2 if "squared" in loss else 1)).sum()
        return ((one.coef_**2).sum() + (intercept / options.get("intercept_scaling", 1.0)) ** 2) / 2 + lost

    assert objective(model) == pytest.approx(objective(known), rel=1e-6)
