"""Support vector machines: the optimum, its conditions, and fitted attributes and errors."""

import copy
import io
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from hypothesis import example, given
from hypothesis import strategies as st
from margin_tables import blobs, mixed
from oracle.margin import kernel_matrix, objective, solve_dual, violation
from scipy.sparse import csr_array
from sklearn import svm
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sweep import examples

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.3, "coef0": 1.0, "degree": 2},
    "rbf": {"gamma": 0.4},
}


def matrix_of(model, rows, others):
    return kernel_matrix(model.kernel, rows, others, model.gamma_, model.coef0, model.degree)


# ---- the optimum ------------------------------------------------------------------------------------------


def test_intercept_of_rows_at_their_bounds_is_the_middle_of_its_interval():
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0, :2], y[y > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model, theirs = (SVC(C=0.01, gamma=1).fit(X, y) for SVC in (spinney.SVC, svm.SVC))
    assert len(theirs.support_) == len(X)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-6)
    assert model.score(X, y) == theirs.score(X, y)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_classification_agrees_with_the_reference_solver(kernel, C):
    X, y = blobs()
    z = np.where(y == 1, 1.0, -1.0)
    weight = np.linspace(0.5, 2, len(y))
    options = {"scale": False, "tol": 1e-9, "precision": "double"}
    model = spinney.SVC(kernel=kernel, C=C, **KERNELS[kernel], **options).fit(X, y, weight)
    matrix = matrix_of(model, X, X)
    lowest, highest = np.where(z > 0, 0, -C * weight), np.where(z > 0, C * weight, 0)
    beta = solve_dual(matrix, z, lowest, highest)
    best = objective(matrix, z, beta)
    assert model.objective_[0] == pytest.approx(best, rel=1e-6)
    own = np.zeros(len(y))
    own[model.support_] = model.dual_coef_[0]
    assert objective(matrix, z, own) <= best + 1e-7 * abs(best)
    np.testing.assert_allclose(model.decision_function(X), matrix @ own + model.intercept_[0], atol=1e-9)
    assert 0 <= model.dual_gap_[0] < 1e-5 * abs(best)


@pytest.mark.parametrize("kernel", KERNELS)
def test_regression_agrees_with_the_reference_solver(kernel):
    X, _ = blobs(n=50)
    z = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    C, epsilon = 3.0, 0.1
    options = {"scale": False, "tol": 1e-9, "precision": "double"}
    model = spinney.SVR(kernel=kernel, C=C, epsilon=epsilon, **KERNELS[kernel], **options).fit(X, z)
    matrix, bound = matrix_of(model, X, X), np.full(len(z), C)
    best = objective(matrix, z, solve_dual(matrix, z, -bound, bound, epsilon), epsilon)
    assert model.objective_[0] == pytest.approx(best, rel=1e-5)
    own = np.zeros(len(z))
    own[model.support_] = model.dual_coef_[0]
    assert violation(matrix, z, own, -bound, bound, epsilon) <= 2e-9
    np.testing.assert_allclose(model.slacks_, np.maximum(np.abs(z - model.predict(X)) - epsilon, 0), atol=1e-8)


@examples(15)
@example(seed=1354, n=94, kernel="linear", C=0.01, values=False, tol=0.01)  # equal rows
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(5, 120),
    kernel=st.sampled_from(["linear", "poly", "rbf", "sigmoid"]),
    C=st.sampled_from([0.01, 1.0, 50.0]),
    values=st.booleans(),
    tol=st.sampled_from([1e-2, 1e-3, 1e-6]),
)
def test_the_conditions_of_the_optimum_hold_at_the_stated_tolerance(seed, n, kernel, C, values, tol):
    X, y = blobs(seed, n)
    X = X.round(1)  # some rows are equal
    options = {"kernel": kernel, "C": C, "gamma": 0.2, "coef0": 0.5, "degree": 2, "scale": False, "tol": tol}
    if values:
        z, epsilon = X[:, 0] * X[:, 1] + y, 0.2
        model = spinney.SVR(epsilon=epsilon, precision="double", **options).fit(X, z)
    else:
        z, epsilon = np.where(y == 1, 1.0, -1.0), 0.0
        model = spinney.SVC(precision="double", **options).fit(X, y)
    rows = pd.DataFrame(np.column_stack([X, z]))
    equal = rows.groupby(list(rows.columns))[0]  # equal rows are one row, with the sum of their coefficients
    first, weight = ~rows.duplicated().to_numpy(), equal.transform("size").to_numpy()
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    beta = rows.assign(beta=beta).groupby(list(rows.columns))["beta"].transform("sum").to_numpy()
    highest = np.where((z > 0) | values, C * weight, 0.0)
    lowest = np.where((z < 0) | values, -C * weight, 0.0)
    for bound in (lowest, highest):  # sums of equal numbers are rounded
        beta = np.where(np.isclose(beta, bound, rtol=1e-15 * n, atol=0), bound, beta)
    assert (beta <= highest).all()
    assert (beta >= lowest).all()
    assert abs(beta[first].sum()) <= 1e-9 * max(C, np.abs(beta[first]).sum())
    matrix = matrix_of(model, X[first], X[first])
    found = violation(matrix, z[first], beta[first], lowest[first], highest[first], epsilon)
    assert found <= tol + 1e-10 * (1 + np.abs(matrix).max() * np.abs(beta[first]).sum())
    assert model.kkt_violation_[0] <= tol


@pytest.mark.parametrize("values", [False, True])
def test_large_problems_reach_the_optimum(values):
    """More rows than a working set has, so that rows leave the working set and return."""
    X, y = blobs(3, n=1800, d=4, spread=1.5)
    z = X[:, 0] * X[:, 1] + y
    make = spinney.SVR if values else spinney.SVC
    target = z if values else y
    found = [
        make(C=2.0, tol=1e-6, precision="double", cache_size=size, shrinking=shrinking, n_jobs=n_jobs).fit(X, target)
        for size, shrinking, n_jobs in ((200, True, 1), (1, True, 2), (200, False, 1))
    ]
    assert found[0].fingerprint() == found[1].fingerprint()  # independent of cache and threads
    beta = np.zeros(len(y))
    beta[found[0].support_] = found[0].dual_coef_[0]
    rows = found[0].margin_.rows(found[0].schema_.encode(spinney._data.read_table(X)))
    matrix = matrix_of(found[0], rows, rows)
    goal, epsilon = (z, 0.1) if values else (np.where(y == 1, 1.0, -1.0), 0.0)
    highest = np.where((goal > 0) | values, 2.0, 0.0)
    lowest = np.where((goal < 0) | values, -2.0, 0.0)
    assert violation(matrix, goal, beta, lowest, highest, epsilon) <= 1.1e-6
    assert found[2].objective_[0] == pytest.approx(found[0].objective_[0], rel=1e-9)


def test_a_hard_margin_is_the_widest_or_refused():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 1.0], [3.0, -1.0]])
    y = np.array([0, 0, 1, 1])
    model = spinney.SVC(C=np.inf, kernel="linear", scale=False, tol=1e-8, precision="double").fit(X, y)
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-7)  # the margin is from x = 1 to x = 3
    np.testing.assert_allclose(model.intercept_, [-2.0], atol=1e-7)
    assert (model.slacks_ < 1e-7).all()
    assert model.dual_gap_[0] < 1e-6
    with pytest.raises(ValueError, match="the classes are not separable with this kernel"):
        spinney.SVC(C=np.inf, kernel="linear").fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    spinney.SVC(C=np.inf, kernel="rbf", gamma=5.0).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    X, y = blobs(n=700)
    with pytest.raises(ValueError, match="C=inf"):
        spinney.SVC(C=np.inf, kernel="linear").fit(X, y)


def test_a_fit_that_has_not_converged_warns():
    X, y = blobs()
    with pytest.warns(ConvergenceWarning, match="tol=0.001"):
        model = spinney.SVC(max_iter=3).fit(X, y)
    assert model.n_iter_[0] == 3
    assert model.kkt_violation_[0] > 1e-3


# ---- kernels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_user_kernels_agree_with_built_in_kernels(multi_class):
    X, y = blobs(n=90, n_classes=3)
    options = {"scale": False, "tol": 1e-6, "multi_class": multi_class, "precision": "double"}
    known = spinney.SVC(kernel="rbf", gamma=0.3, **options).fit(X, y)
    asked = spinney.SVC(kernel=lambda u, v: kernel_matrix("rbf", u, v, 0.3), **options).fit(X, y)
    matrix = kernel_matrix("rbf", X, X, 0.3)
    given = spinney.SVC(kernel="precomputed", **options).fit(matrix, y)
    assert given.__sklearn_tags__().input_tags.pairwise
    new = blobs(5, n=20, n_classes=3)[0]
    expected = known.decision_function(new)
    np.testing.assert_allclose(asked.decision_function(new), expected, atol=1e-5)
    np.testing.assert_allclose(given.decision_function(kernel_matrix("rbf", new, X, 0.3)), expected, atol=1e-5)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(given)).predict(matrix), given.predict(matrix))
    with pytest.raises(TypeError, match=r"(?i)pickle the model"):
        asked.save(io.BytesIO())


def test_kernel_values_follow_their_definitions():
    X, y = blobs(n=40)
    for kernel, options in {**KERNELS, "sigmoid": {"gamma": 0.1, "coef0": -0.3}}.items():
        model = spinney.SVC(kernel=kernel, scale=False, **options).fit(X, y)
        expected = matrix_of(model, X, model.support_vectors_) @ model.dual_coef_[0] + model.intercept_[0]
        np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-12, atol=1e-12)


def test_invalid_kernel_matrices_are_refused():
    X, y = blobs(n=20)
    with pytest.raises(ValueError, match="square matrix"):
        spinney.SVC(kernel="precomputed").fit(X, y)
    matrix = X @ X.T
    matrix[3, 4] = np.nan
    with pytest.raises(ValueError, match="X has nan in row 3, column 4"):
        spinney.SVC(kernel="precomputed").fit(matrix, y)
    with pytest.raises(ValueError, match="for every pair"):
        spinney.SVC(kernel=lambda u, v: np.ones(3)).fit(X, y)


# ---- rows and weights -------------------------------------------------------------------------------------


@examples(8)
@given(seed=st.integers(0, 10**6), values=st.booleans())
def test_a_weight_is_a_repeated_row_in_any_order(seed, values):
    X, y = blobs(seed, n=50)
    times = np.random.RandomState(seed).randint(0, 4, len(y))
    times[:4] = 1
    make, target = (spinney.SVR, X[:, 0] ** 2) if values else (spinney.SVC, y)
    weighted = make(C=2.0).fit(X, target, times)
    rows = np.random.RandomState(seed + 1).permutation(np.repeat(np.arange(len(y)), times))
    repeated = make(C=2.0).fit(X[rows], target[rows])
    method = "predict" if values else "decision_function"
    np.testing.assert_allclose(getattr(weighted, method)(X), getattr(repeated, method)(X), rtol=1e-7, atol=1e-9)


def test_class_weights_and_costs_multiply_the_penalty():
    X, y = blobs(n=120, spread=2.0)
    weight = np.where(y == 1, 4.0, 1.0)
    by_class = spinney.SVC(class_weight={1: 4.0}).fit(X, y)
    by_cost = spinney.SVC(cost_matrix={1: {0: 4.0}}).fit(X, y)
    np.testing.assert_array_equal(by_cost.decision_function(X), by_class.decision_function(X))
    raw = {"scale": False, "gamma": 0.1}
    same = [spinney.SVC(**raw, class_weight={1: 4.0}).fit(X, y), spinney.SVC(**raw).fit(X, y, weight)]
    np.testing.assert_array_equal(same[0].decision_function(X), same[1].decision_function(X))
    assert (by_class.predict(X) == 1).sum() > (spinney.SVC().fit(X, y).predict(X) == 1).sum()
    balanced = spinney.SVC(class_weight="balanced").fit(X[30:], y[30:])
    assert balanced.score(X, y) > 0.6
    with pytest.raises(ValueError, match="class_weight names a class that does not occur in y: 7"):
        spinney.SVC(class_weight={7: 2.0}).fit(X, y)


def test_multiclass_one_vs_one_and_one_vs_rest():
    X, y = blobs(n=150, n_classes=3)
    labels = np.array(["a", "b", "c"])[y]
    pairs = spinney.SVC(decision_function_shape="ovo").fit(X, labels)
    scores = pairs.decision_function(X)
    assert scores.shape == (150, 3)
    assert pairs.dual_coef_.shape == (2, pairs.n_support_.sum())
    for m, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        two = np.isin(y, [i, j])
        alone = spinney.SVC(scale=False, gamma=pairs.gamma_).fit(
            pairs.margin_.rows(pairs.schema_.encode(spinney._data.read_table(X)))[two], y[two]
        )
        np.testing.assert_allclose(
            alone.decision_function(pairs.margin_.rows(pairs.schema_.encode(spinney._data.read_table(X)))),
            -scores[:, m],
            atol=1e-12,
        )
    all_others = spinney.SVC(multi_class="ovr", tol=1e-5).fit(X, labels)
    assert all_others.dual_coef_.shape[0] == 3
    assert (all_others.predict(X) == labels[np.arange(150)]).mean() > 0.8
    np.testing.assert_array_equal(
        all_others.predict(X), all_others.classes_[all_others.decision_function(X).argmax(axis=1)]
    )


# ---- probabilities and search -----------------------------------------------------------------------------


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_probabilities_are_calibrated_on_held_out_rows(multi_class):
    X, y = blobs(n=240, n_classes=3, spread=1.6)
    model = spinney.SVC(probability=True, random_state=0, multi_class=multi_class).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares > 0).all()
    assert np.mean(shares.argmax(axis=1) == model.predict(X)) > 0.9
    again = spinney.SVC(probability=True, random_state=0, multi_class=multi_class, n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), shares)
    with pytest.raises(AttributeError, match="needs probability=True"):
        spinney.SVC().fit(X, y).predict_proba(X)


def test_two_classes_probabilities_follow_platt():
    rng = np.random.RandomState(0)
    x = rng.randn(600)
    y = (rng.rand(600) < 1 / (1 + np.exp(-2 * x))).astype(int)
    model = spinney.SVC(kernel="linear", probability=True, random_state=0).fit(x[:, None], y)
    grid = np.array([[-1.0], [0.0], [1.0]])
    np.testing.assert_allclose(model.predict_proba(grid)[:, 1], 1 / (1 + np.exp(-2 * grid[:, 0])), atol=0.08)


def test_c_and_gamma_have_the_least_cross_validated_error():
    X, y = blobs(n=150, spread=1.8)
    folds = list(StratifiedKFold(3).split(X, y))
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}
    model = spinney.SVC(**grid, cv=folds, tol=1e-6).fit(X, y)
    errors = {}
    for gamma in grid["gamma"]:
        for C in grid["C"]:
            alone = [spinney.SVC(C=C, gamma=gamma, tol=1e-6).fit(X[a], y[a]) for a, _ in folds]
            wrong = [np.mean(one.predict(X[b]) != y[b]) for one, (_, b) in zip(alone, folds, strict=True)]
            errors[C, gamma] = np.average(wrong, weights=[len(b) for _, b in folds])
    results = model.cv_results_
    found = {(C, g): e for C, g, e in zip(results["C"], results["gamma"], results["error"], strict=True)}
    assert found == pytest.approx(errors)
    assert errors[model.C_, model.gamma_] == min(errors.values())
    again = spinney.SVC(C=model.C_, gamma=model.gamma_, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    chosen = spinney.SVR(C="cv", gamma="cv", cv=2, random_state=0).fit(X[:60], X[:60, 0])
    assert len(chosen.cv_results_["C"]) == 55
    assert chosen.score(X[:60], X[:60, 0]) > 0.5


# ---- tables -----------------------------------------------------------------------------------------------


def test_all_table_types_give_the_same_model():
    frame, y, values = mixed()
    model = spinney.SVC().fit(frame, y)
    assert model.terms_[:2] == ["a", "a is missing"]
    assert any(name.startswith("town = ") for name in model.terms_)
    same = spinney.SVC().fit(pl.from_pandas(frame), y)
    assert same.fingerprint() == model.fingerprint()
    assert (model.predict(frame) == y).mean() > 0.85
    assert spinney.SVR().fit(frame, values).score(frame, values) > 0.7
    numbers = np.where(np.random.RandomState(0).rand(60, 5) < 0.6, 0.0, 1.5)
    assert (
        spinney.SVC().fit(csr_array(numbers), numbers[:, 0] > 0).fingerprint()
        == spinney.SVC().fit(numbers, numbers[:, 0] > 0).fingerprint()
    )
    unscaled = spinney.SVC(scale=False).fit(frame, y)
    is_known = ~frame["a"].isna().to_numpy()
    rows = unscaled.margin_.rows(unscaled.schema_.encode(spinney._data.read_table(frame)))
    np.testing.assert_array_equal(rows[is_known, 0], frame["a"][is_known])
    np.testing.assert_allclose(rows[~is_known, 0], frame["a"].mean())


def test_a_table_without_anything_to_learn_still_predicts():
    model = spinney.SVC(scale="standard").fit(np.ones((6, 2)), [0, 1, 0, 0, 0, 1])
    assert model.terms_ == []
    assert spinney.SVC().fit(np.ones((6, 2)), [0, 1, 0, 0, 0, 1]).predict([[1.0, 1.0]]) == 0
    assert (model.predict(np.ones((2, 2))) == 0).all()
    assert spinney.SVR().fit(np.ones((4, 1)), [1.0, 2.0, 3.0, 4.0]).predict([[1.0]])[0] == pytest.approx(2.5, abs=0.6)


@pytest.mark.parametrize("make", [spinney.SVC, spinney.SVR])
def test_files_single_rows_and_threads(make):
    frame, y, values = mixed()
    target = y if make is spinney.SVC else values
    options = {"probability": True, "random_state": 0} if make is spinney.SVC else {}
    model = make(**options).fit(frame, target)
    assert make(**options, n_jobs=1).fit(frame, target).fingerprint() == model.fingerprint()
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    predictor = spinney.load_predictor(file)
    assert "support vector machine" in repr(predictor)
    np.testing.assert_array_equal(predictor.predict(frame), model.predict(frame))
    assert predictor.predict_one(frame.iloc[3].to_dict()) == model.predict(frame)[3]
    file.seek(0)
    loaded = spinney.load(file)
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    for name in ("support_", "dual_coef_", "dual_gap_", "kkt_violation_", "n_iter_", "C_", "gamma_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    if make is spinney.SVC:
        np.testing.assert_array_equal(predictor.predict_proba(frame), model.predict_proba(frame))
        hard = make(C=np.inf, kernel="rbf", gamma=9.0).fit(frame[["a"]].fillna(9.0), frame["a"].isna())
        again = io.BytesIO()
        hard.save(again)
        again.seek(0)
        assert np.inf == spinney.load(again).C_


def test_invalid_parameters_are_refused():
    X, y = blobs(n=20)
    for options, message in [
        ({"C": -1.0}, "C"),
        ({"gamma": 0.0}, "gamma"),
        ({"C": [1.0, -2.0]}, "C must be positive, finite"),
        ({"kernel": "cubic"}, "kernel"),
    ]:
        with pytest.raises(ValueError, match=message):
            spinney.SVC(**options).fit(X, y)
    with pytest.raises(ValueError, match="class 1 has no row"):
        spinney.SVC().fit(X, y, y == 0)
    with pytest.raises(AttributeError, match="kernel is linear"):
        _ = spinney.SVC().fit(X, y).coef_


# ---- pictures ---------------------------------------------------------------------------------------------


def test_plot_support_draws_the_margin():
    mpl = pytest.importorskip("matplotlib")
    mpl.use("agg")
    X, y = blobs(n=40, d=2)
    frame = pd.DataFrame(X, columns=["wide", "tall"])
    for model in (spinney.SVC(kernel="linear"), spinney.LinearSVC(), spinney.Perceptron(averaged=True, random_state=0)):
        ax = spinney.plot_support(model.fit(frame, y), frame, y)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("wide", "tall")
        mpl.pyplot.close(ax.figure)
    with pytest.raises(ValueError, match="two classes and two columns"):
        spinney.plot_support(spinney.SVR().fit(X, y), X, y)


@pytest.mark.parametrize("kind", [np.asarray, lambda X: pd.DataFrame(X, columns=["wide", "tall"])])
@pytest.mark.parametrize("settings", [{"kernel": "linear"}, {"gamma": 5.0}, {"kernel": "poly", "degree": 2}])
def test_lines_of_margin_violations_end_at_the_margin(settings, kind):
    mpl = pytest.importorskip("matplotlib")
    mpl.use("agg")
    X, y = spinney.datasets.make_diagonal(60, noise=0.05, random_state=5)
    X = X * [1.0, 30.0]
    model = spinney.SVC(C=10.0, scale="standard", **settings).fit(kind(X), y)
    ax = spinney.plot_support(model, kind(X), y)
    colours = {mpl.colors.to_rgba(colour): sign for colour, sign in (("#0072B2", -1), ("#E69F00", 1))}
    lines = [line for line in ax.get_lines() if line.get_linewidth() == 0.9 and line.get_linestyle() == "-"]
    paths = [(line.get_xydata(), colours[mpl.colors.to_rgba(line.get_color())]) for line in lines]
    starts = {tuple(path[0]) for path, _ in paths}
    violating = {tuple(row) for row in X[y * model.decision_function(kind(X)) < 1 - 2e-3]}
    if settings == {"kernel": "linear"}:
        assert starts == violating
        assert all(np.linalg.matrix_rank(path[1:] - path[0], tol=1e-2) == 1 for path, _ in paths if len(path) > 2)
    assert starts <= violating
    assert len(starts) > len(violating) / 2
    ends = np.array([path[-1] for path, _ in paths])
    np.testing.assert_allclose(model.decision_function(kind(ends)), [sign for _, sign in paths], atol=2e-3)
    mpl.pyplot.close("all")


def test_the_margin_of_a_perceptron_goes_through_the_nearest_rows():
    mpl = pytest.importorskip("matplotlib")
    mpl.use("agg")
    X, y = np.array([[0.0, 1.0], [1.0, 3.0], [3.0, 0.0], [4.0, 2.0]]), np.array([0, 0, 1, 1])
    model = spinney.Perceptron(random_state=0).fit(X, y)
    ax = spinney.plot_support(model, X, y)
    levels = [part.levels for part in ax.collections if hasattr(part, "levels")]
    nearest = np.abs(model.decision_function(X)).min()
    np.testing.assert_allclose(levels[-1], [-nearest, nearest])
    with pytest.warns(UserWarning, match="still misclassified"):
        mixed = spinney.Perceptron(max_iter=5, random_state=0).fit(X, [0, 1, 0, 1])
    if mixed.score(X, [0, 1, 0, 1]) < 1:
        levels = [part.levels for part in spinney.plot_support(mixed, X, [0, 1, 0, 1]).collections]
        np.testing.assert_array_equal(levels[-1], [0])
    mpl.pyplot.close("all")


# ---- scikit-learn's names and arguments --------------------------------------------------------------------


def test_defaults_give_the_machines_of_scikit_learn():
    digits = load_digits()
    X, y = digits.data[:300], digits.target[:300]
    model, peer = spinney.SVC(gamma=0.001, tol=1e-8).fit(X, y), svm.SVC(gamma=0.001, tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(model.support_, peer.support_)
    np.testing.assert_array_equal(model.n_support_, peer.n_support_)
    np.testing.assert_array_equal(model.support_vectors_, peer.support_vectors_)
    np.testing.assert_allclose(model.dual_coef_, peer.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-5)
    values = spinney.SVR(tol=1e-8, precision="double").fit(X, y)
    own = svm.SVR(tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(values.support_, own.support_)
    np.testing.assert_allclose(values.predict(X), own.predict(X), atol=1e-5)
    assert isinstance(values.n_iter_, int)


@pytest.mark.parametrize("scale", [None, "standard", "range"])
@pytest.mark.parametrize("make", [spinney.SVC, spinney.NuSVC, spinney.LinearSVC, spinney.Perceptron])
def test_coefficients_and_support_vectors_are_in_the_units_of_the_columns(make, scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1, 100, 0.01] + [5, -300, 2]
    y = (X - [5, -300, 2]) @ [1, 0.01, 100] > 0
    options = {"kernel": "linear"} if make in (spinney.SVC, spinney.NuSVC) else {}
    options |= {"averaged": True, "max_iter": 20} if make is spinney.Perceptron else {}
    options |= {"tol": 1e-3, "max_iter": 1000} if make is spinney.LinearSVC else {}
    model = make(scale=scale, random_state=0, **options).fit(X, y)
    np.testing.assert_allclose((X @ model.coef_.T + model.intercept_)[:, 0], model.decision_function(X), atol=1e-8)
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0
    if hasattr(model, "support_"):
        np.testing.assert_allclose(model.support_vectors_, X[model.support_], rtol=1e-12)


def test_every_copy_of_a_row_is_a_support_vector():
    iris = load_iris()
    X, y, weight = iris.data[:, 2:], iris.target, np.linspace(0.5, 1.5, 150)
    model = spinney.SVC(gamma=0.5).fit(X, y, weight)
    _, first = np.unique(X, axis=0, return_index=True)
    copies = np.setdiff1d(np.arange(150), first)
    assert np.isin(copies, model.support_).any()
    assert len(model.support_) == model.n_support_.sum() == len(model.support_vectors_) == model.dual_coef_.shape[1]
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert (np.diff(y[model.support_]) >= 0).all()
    assert (np.abs(model.dual_coef_) <= weight[model.support_] * (1 + 1e-12)).all()
    squares = ((X[:, None] - model.support_vectors_) ** 2).sum(axis=2)
    first_pair = slice(0, model.n_support_[0] + model.n_support_[1])
    scores = np.exp(-0.5 * squares)[:, first_pair] @ model.dual_coef_[0, first_pair] + model.intercept_[0]
    np.testing.assert_allclose(scores, model.set_params(decision_function_shape="ovo").decision_function(X)[:, 0])
    file = io.BytesIO()
    model.save(file)
    loaded = spinney.load(io.BytesIO(file.getvalue()))
    for name in ("support_", "dual_coef_", "n_support_", "support_vectors_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))


def test_break_ties_predicts_by_the_decision_function():
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(40, 2)), 2, axis=0)
    y = rng.integers(0, 4, size=80)
    grid = rng.normal(size=(3000, 2))
    peer = svm.SVC(gamma=20.0, tol=1e-9).fit(X, y)
    model = spinney.SVC(gamma=20.0, tol=1e-9, precision="double").fit(X, y)
    highest = peer.decision_function(grid).argmax(axis=1)
    assert (peer.predict(grid) != highest).any()
    np.testing.assert_array_equal(model.predict(grid), peer.predict(grid))
    model.set_params(break_ties=True).fit(X, y)
    np.testing.assert_array_equal(model.predict(grid), highest)
    with pytest.raises(ValueError, match="break_ties must be False"):
        model.set_params(decision_function_shape="ovo").predict(grid)


def test_models_given_by_name_are_fitted_to_standardised_columns():
    X, y = blobs()
    ensemble = spinney.VotingClassifier(["svm", "knn", "perceptron", "linear_svm"], voting="hard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert [member.scale for member in ensemble.fit(X, y).estimators_] == ["standard"] * 4


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (spinney.SVC, {}),
        (spinney.SVC, {"class_weight": "balanced"}),
        (spinney.SVC, {"class_weight": {0: 3.0}}),
        (spinney.NuSVC, {"nu": 0.3}),
        (spinney.SVR, {}),
        (spinney.NuSVR, {}),
    ],
)
def test_fitted_attributes_are_those_of_scikit_learn(make, options):
    X, y = load_iris(return_X_y=True)
    X, y = X[20:], y[20:]
    model = make(verbose=0, **options).fit(X, y)
    peer = getattr(svm, make.__name__)(**options).fit(X, y)
    assert model.shape_fit_ == peer.shape_fit_ == (130, 4)
    assert model.fit_status_ == peer.fit_status_ == 0
    if hasattr(model, "classes_"):
        np.testing.assert_allclose(model.class_weight_, peer.class_weight_)
        file = io.BytesIO()
        model.save(file)
        file.seek(0)
        np.testing.assert_array_equal(spinney.load(file).class_weight_, model.class_weight_)
    with pytest.warns(ConvergenceWarning):
        assert make(max_iter=1, **options).fit(X, y).fit_status_ == 1


def test_file_whose_kernel_overflows_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = spinney.SVR(kernel="poly", degree=2, coef0=1.0).fit(X, X[:, 0])
    for name in ("gamma", "coef0"):
        damaged = copy.deepcopy(model)
        setattr(damaged.margin_, name, 1e300)
        damaged.save(tmp_path / "model.spinney")
        with pytest.raises(spinney.ModelFileError, match="sums of its kernel values overflow"):
            spinney.load(tmp_path / "model.spinney")


def test_overflow_is_a_sentence_and_no_warning():
    X = np.random.default_rng(0).normal(size=(30, 2)) * [1.0, 1e120]
    y = X[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (spinney.LinearSVR, spinney.LinearSVC):
            with pytest.raises(ValueError, match="numbers beyond 1e"):
                make(scale=False).fit(X, y if make is spinney.LinearSVR else y > 0)
        with pytest.raises(ValueError, match="overflow"):
            spinney.SVR(kernel="poly", gamma=1.0, scale=False).fit(X, y)
        with pytest.raises(ValueError, match="cross-validation overflow"):
            spinney.SVR(kernel="linear", C=[0.1, 1.0], cv=2).fit(X[:, :1], y * 1e200)


def test_solver_ends_where_kernel_values_overflow():
    X = np.random.default_rng(0).normal(size=(30, 2)) * [1.0, 1e7]
    with pytest.raises(ValueError, match="Kernel values of these columns overflow"):
        spinney.NuSVR(kernel="poly", gamma=1.0, scale=False, max_iter=10).fit(X, X[:, 0] * 1e48)


def test_the_errors_of_a_search_are_drawn():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = spinney.datasets.make_diagonal(60, noise=0.1, random_state=0)
    by_gamma = spinney.SVC(gamma="cv", random_state=0).fit(X, y)
    ax = spinney.plot_error_curve(by_gamma)
    results = by_gamma.cv_results_
    assert (ax.get_xlabel(), ax.get_xscale()) == ("gamma", "log")
    np.testing.assert_array_equal(ax.containers[0].lines[0].get_xdata(), results["gamma"])
    (bars,) = ax.containers[0].lines[2]
    half = np.array([segment[1, 1] - segment[0, 1] for segment in bars.get_segments()]) / 2
    np.testing.assert_allclose(half, results["sd"] / np.sqrt(5))
    both = spinney.SVC(C="cv", gamma="cv", random_state=0).fit(X, y)
    ax = spinney.plot_error_curve(both)
    shown = both.cv_results_["gamma"] == both.gamma_
    np.testing.assert_array_equal(ax.containers[0].lines[0].get_ydata(), both.cv_results_["error"][shown])
    assert ax.get_xlabel() == "C"
    plt.close("all")
