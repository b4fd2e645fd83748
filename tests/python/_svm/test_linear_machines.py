"""Linear support vector machines and the perceptron."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle.margin import perceptron, plane_objective
from scipy.optimize import minimize
from sklearn import linear_model, svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import KFold
from spinney import _engine
from spinney._svm.linear_solve import Terms
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


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("n_rows", [5, 40])
def test_systems_of_many_terms_are_solved_by_rows(has_intercept, n_rows):
    rng = np.random.RandomState(0)
    ridge = np.append(np.ones(20), 0.25 if has_intercept else 1.0)
    table = Terms(rng.randn(20, n_rows), ridge, 1, has_intercept)
    factors, right = rng.rand(n_rows) * (rng.rand(n_rows) < 0.8), rng.randn(21)
    right[-1] *= has_intercept
    whole = np.vstack([table.terms, np.full(n_rows, float(has_intercept))])
    solve = table.solver(factors)
    np.testing.assert_allclose(
        solve(right), np.linalg.solve(whole * factors @ whole.T + np.diag(ridge), right), rtol=1e-9
    )


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_more_columns_than_rows_reach_scikit_learns_objective(loss, n_classes):
    rng = np.random.RandomState(1)
    X, y = rng.randn(40, 120), rng.randint(n_classes, size=40)
    ours = spinney.LinearSVC(C=0.05, loss=loss, tol=1e-9).fit(X, y)
    theirs = svm.LinearSVC(C=0.05, loss=loss, tol=1e-9, max_iter=200_000, random_state=0).fit(X, y)
    for k in range(len(ours.coef_)):
        side = np.where(y == (k if n_classes > 2 else 1), 1.0, -1.0)
        values = []
        for model in (ours, theirs):
            lost = np.maximum(0, 1 - side * (X @ model.coef_[k] + model.intercept_[k]))
            square = (model.coef_[k] ** 2).sum() + model.intercept_[k] ** 2
            values.append(square / 2 + 0.05 * (lost**2 if loss == "squared_hinge" else lost).sum())
        assert values[0] == pytest.approx(values[1], rel=1e-6)


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
    weights, intercept, n_updates, mean = perceptron(X, z, 1000)
    model = spinney.Perceptron(tol=None, averaged=averaged, shuffle=False).fit(X, z)
    assert model.n_updates_[0] == n_updates
    own = np.append(model.coef_[0], model.intercept_[0])
    np.testing.assert_allclose(own, mean if averaged else np.append(weights, intercept), rtol=1e-9)
    if not averaged:
        assert model.score(X, z) == 1.0


@examples(10)
@given(seed=st.integers(0, 10**6), eta=st.sampled_from([0.1, 1.0, 7.0]), shuffle=st.booleans())
def test_updates_satisfy_novikoffs_bound(seed, eta, shuffle):
    X, z = separable(seed)
    model = spinney.Perceptron(eta0=eta, tol=None, shuffle=shuffle, random_state=seed).fit(X, z)
    assert model.score(X, z) == 1.0
    assert model.n_updates_[0] <= model.novikoff_bound_[0] < np.inf
    same = spinney.Perceptron(eta0=1.0, tol=None, shuffle=shuffle, random_state=seed).fit(X, z)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert model.n_updates_[0] == same.n_updates_[0]


def test_inseparable_classes_raise_a_warning():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    with pytest.warns(ConvergenceWarning, match="may not be linearly separable. Use tol=1e-3, averaged=True"):
        model = spinney.Perceptron(tol=None, max_iter=30).fit(X, [0, 0, 1, 1])
    assert model.novikoff_bound_[0] == np.inf
    assert model.n_iter_ == 30


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


def test_a_target_far_from_zero_takes_no_more_iterations():
    X, values = noisy(n=120)
    near, far = (spinney.LinearSVR().fit(X, target).n_iter_ for target in (values, 10_000 + 1_000 * values))
    assert far <= near


@pytest.mark.parametrize(
    "make", [spinney.LinearSVC, lambda **options: spinney.LinearSVR(loss="squared_epsilon_insensitive", **options)]
)
def test_default_settings_reach_the_optimum_of_a_wide_table(make):
    rng = np.random.RandomState(0)
    X, y = rng.randn(100, 400), np.sign(rng.randn(100))

    def objective(model):
        is_class = isinstance(model, spinney.LinearSVC)
        scores = X @ model.coef_.ravel() + np.ravel(model.intercept_)
        violation = np.maximum(1 - y * scores, 0) if is_class else np.abs(y - scores)
        return ((model.coef_**2).sum() + float(np.ravel(model.intercept_)[0]) ** 2) / 2 + (violation**2).sum()

    least = objective(make(tol=1e-9).fit(X, y))
    assert least <= objective(make().fit(X, y)) * (1 + 1e-12) <= least * (1 + 1e-6)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("make", [spinney.LinearSVC, spinney.LinearSVR])
def test_default_settings_reach_the_optimum_of_absolute_losses(make, C):
    is_class = make is spinney.LinearSVC
    X, values = noisy(n=60)
    y, loss = (np.sign(values), "hinge") if is_class else (values, "epsilon_insensitive")
    fitted = [make(loss=loss, C=C, tol=tol).fit(X, y) for tol in (1e-9, 1e-4)]
    least, reached = (model.objective_[0] for model in fitted)
    assert reached <= least * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_of_novikoff_is_that_of_the_widest_margin(seed):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1, 1, (300, 3))
    X = X[np.abs(X @ [1, 2, -1] + 0.3) > 0.4]
    y = X @ [1, 2, -1] + 0.3 > 0
    model = spinney.Perceptron(tol=None, random_state=0).fit(X, y)
    radius = np.sqrt((X**2).sum(axis=1).max())
    rows = np.column_stack([X, np.full(len(X), radius)])  # planes through the origin of these rows
    widest = svm.SVC(kernel="linear", C=1e10, tol=1e-10).fit(np.vstack([rows, -rows]), np.append(y, ~y))
    margin = 1 / np.sqrt((widest.coef_**2).sum())
    assert model.novikoff_bound_[0] == pytest.approx(2 * radius**2 / margin**2, rel=1e-4)
    assert model.n_updates_[0] <= model.novikoff_bound_[0]


def test_the_bound_of_novikoff_without_an_intercept():
    X = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, 1.0], [-2.0, -1.0], [1.0, -2.0], [2.0, -0.5]])
    y = np.array([1, 1, 1, -1, -1, -1])
    model = spinney.Perceptron(fit_intercept=False, shuffle=False, tol=None).fit(X, y)
    angle = np.linspace(0, 2 * np.pi, 100_001)
    margin = (y[:, np.newaxis] * (X @ np.array([np.cos(angle), np.sin(angle)]))).min(axis=0).max()
    assert model.novikoff_bound_[0] == pytest.approx((X**2).sum(axis=1).max() / margin**2, rel=1e-3)
    assert model.n_updates_[0] <= model.novikoff_bound_[0]


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ({}, [-0.5, 1.0]),
        ({"fit_intercept": False}, [-0.5, 1.0]),
        ({"intercept_scaling": 10.0}, [-0.5, 1.0]),
        ({"class_weight": "balanced"}, [1.0]),
    ],
)
@pytest.mark.parametrize("C", [0.01, 0.3, 5.0])
def test_the_sparse_optimum_is_that_of_scikit_learn(C, options, bounds):
    X, y = noisy(seed=1, n=120, d=30)
    codes = np.digitize(y, bounds)
    given = {"penalty": "l1", "C": C, "tol": 1e-10} | options
    model = spinney.LinearSVC(max_iter=1000, **given).fit(X, codes)
    peer = svm.LinearSVC(dual=False, max_iter=1_000_000, random_state=0, **given).fit(X, codes)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-5)
    np.testing.assert_array_equal(model.coef_ == 0, np.abs(peer.coef_) < 1e-9)


@examples(15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.003, 0.1, 30.0]), st.booleans())
def test_no_change_of_sparse_weights_lowers_the_objective(seed, C, is_wide):
    rng = np.random.RandomState(seed)
    X = rng.randn(25, 40 if is_wide else 5).round(1)
    y = np.where(X[:, 0] + rng.randn(25) > 0, 1.0, -1.0)
    y[:2] = -1, 1
    model = spinney.LinearSVC(penalty="l1", C=C, tol=1e-9, max_iter=1000).fit(X, y)

    def objective(weights):
        missed = np.maximum(1 - y * (X @ weights[:-1] + weights[-1]), 0)
        return np.abs(weights).sum() + C * (missed**2).sum()

    found = np.append(model.coef_[0], model.intercept_[0])
    best = objective(found)
    np.testing.assert_allclose(model.objective_[0], best, rtol=1e-9)
    for size in (1e-1, 1e-3):
        for step in rng.randn(20, len(found)):
            assert objective(found + size * step * (rng.rand(len(found)) < 0.3)) >= best * (1 - 1e-7)


def test_a_sparse_penalty_selects_columns():
    X, y = noisy(n=300, d=12)
    model = spinney.LinearSVC(penalty="l1", C=0.02, dual=False).fit(X, y > 0.4)
    assert set(np.flatnonzero(model.coef_[0])) == {0, 1}
    assert SelectFromModel(model, prefit=True).transform(X).shape == (300, 2)
    assert load_saved(model).predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("make", "loss"),
    [
        (spinney.LinearSVC, "squared_hinge"),
        (spinney.LinearSVC, "hinge"),
        (spinney.LinearSVR, "epsilon_insensitive"),
        (spinney.LinearSVR, "squared_epsilon_insensitive"),
    ],
)
def test_dual_changes_nothing(make, loss):
    X, y = noisy()
    y = y > 0 if make is spinney.LinearSVC else y
    first, *others = [
        make(loss=loss, dual=dual).fit(X, y).decision_function(X)
        if make is spinney.LinearSVC
        else make(loss=loss, dual=dual).fit(X, y).predict(X)
        for dual in (True, "auto", *([False] if loss.startswith("squared") else []))
    ]
    for other in others:
        np.testing.assert_array_equal(other, first)
    with pytest.raises(ValueError, match="'dual' parameter"):
        make(dual="primal").fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge", "dual": False}, "loss='hinge' is not supported with dual=False"),
        ({"penalty": "l1", "loss": "hinge"}, "penalty='l1' is not supported with loss='hinge'"),
        ({"penalty": "l1", "dual": True}, "penalty='l1' is not supported with dual=True"),
    ],
)
def test_impossible_combinations_are_refused_as_in_scikit_learn(options, message):
    X, y = noisy()
    with pytest.raises(ValueError, match=message):
        spinney.LinearSVC(**options).fit(X, y > 0)
    with pytest.raises(ValueError, match="not supported"):
        svm.LinearSVC(**options).fit(X, y > 0)
    with pytest.raises(ValueError, match="not supported with dual=False"):
        spinney.LinearSVR(dual=False).fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {"tol": None, "max_iter": 7},
        {"tol": 1e-3},
        {},
        {"tol": 0.05, "n_iter_no_change": 2, "eta0": 0.3},
        {"penalty": "l2", "alpha": 0.01, "max_iter": 20, "tol": None},
        {"penalty": "l1", "alpha": 0.01, "eta0": 0.1, "max_iter": 20, "tol": None},
        {"penalty": "elasticnet", "alpha": 0.02, "l1_ratio": 0.4, "max_iter": 20, "tol": None},
        {"class_weight": {True: 3.0}},
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_perceptron_without_an_intercept_is_that_of_scikit_learn(options):
    X, score = noisy(seed=3)
    y = score > 0.4
    model = spinney.Perceptron(fit_intercept=False, shuffle=False, **options).fit(X, y)
    peer = linear_model.Perceptron(fit_intercept=False, shuffle=False, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-9, atol=1e-12)
    assert model.n_iter_ == peer.n_iter_
    assert isinstance(model.n_iter_, int)
    assert model.intercept_.tolist() == [0.0]
    assert model.novikoff_bound_.tolist() == [np.inf]


def test_a_perceptron_with_a_tolerance_settles_without_a_warning():
    X, score = noisy()
    y = score > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = spinney.Perceptron(random_state=0).fit(X, y)
    assert model.n_iter_ < 100
    assert model.score(X, y) > 0.6
    with pytest.warns(ConvergenceWarning, match="Use a larger max_iter"):
        spinney.Perceptron(max_iter=2, random_state=0).fit(X, y)


def test_the_mean_of_penalised_planes_is_that_of_all_rows():
    X, score = noisy(seed=5, n=60)
    y = np.where(score > 0, 1.0, -1.0)
    model = spinney.Perceptron(
        penalty="l2", alpha=0.05, averaged=True, shuffle=False, max_iter=3, fit_intercept=False
    ).fit(X, y)
    weights, seen = np.zeros(X.shape[1]), []
    for i in [*range(len(X))] * 3:
        is_wrong = not y[i] * (weights @ X[i]) > 0
        weights = weights * (1 - 0.05) + is_wrong * y[i] * X[i]
        seen.append(weights)
    np.testing.assert_allclose(model.coef_[0], np.mean(seen, axis=0), rtol=1e-9)


@pytest.mark.parametrize("name", ["eta", "early_stopping", "warm_start"])
def test_words_that_the_perceptron_does_not_have_name_the_replacement(name):
    with pytest.raises(TypeError, match=r"called 'eta0'|Use tol|Raise max_iter"):
        spinney.Perceptron(**{name: 1})
