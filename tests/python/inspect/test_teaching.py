"""Calculators and pictures for lectures, by the numbers of textbooks."""

import functools
import itertools

import matplotlib as mpl
import numpy as np
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.stats import bootstrap as scipy_bootstrap
from scipy.stats import chi2_contingency, gaussian_kde, multivariate_normal, norm, uniform
from sklearn.tree import DecisionTreeClassifier as SkTree
from spinney import datasets, kernels, teaching

mpl.use("agg")
import matplotlib.pyplot as plt

COUNTS = st.lists(st.integers(0, 30), min_size=3, max_size=3)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


# ---- impurities and gains -----------------------------------------------------------------------------------------


@given(COUNTS, COUNTS)
def test_impurities_have_their_properties(first, second):
    if not sum(first) or not sum(second):
        return
    parent = np.add(first, second).tolist()
    for criterion in ("gini", "entropy", "misclassification"):
        assert teaching.impurity([7, 0, 0], criterion) == 0
        assert teaching.impurity(first, criterion) == pytest.approx(teaching.impurity(first[::-1], criterion))
        assert teaching.impurity(first, criterion) <= teaching.impurity([1, 1, 1], criterion) + 1e-12
        assert teaching.gain(parent, [first, second], criterion) >= -1e-12  # concave
        children = [[1, 3, 0], [4, 2, 0]]
        if criterion != "misclassification":  # strictly
            assert teaching.gain([5, 5, 0], children, criterion) > 0.01


def test_misclassification_cannot_choose_where_others_can():
    one, two = [[300, 100], [100, 300]], [[200, 400], [200, 0]]
    for splits in (one, two):
        assert teaching.gain([400, 400], splits, "misclassification") == pytest.approx(0.25)
    for criterion in ("gini", "entropy", "p(1-p)"):
        assert teaching.gain([400, 400], two, criterion) > teaching.gain([400, 400], one, criterion)


def test_units_and_halves():
    counts = [3, 5]
    assert teaching.impurity(counts, "entropy", unit="nats") == pytest.approx(
        teaching.impurity(counts, "entropy") * np.log(2)
    )
    assert teaching.impurity(counts, "p(1-p)") == pytest.approx(3 / 8 * 5 / 8)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: teaching.impurity([1, 2, 3], "p(1-p)"), "is for two classes"),
        (lambda: teaching.impurity([1, 2], "variance"), "must be one of gini"),
        (lambda: teaching.impurity([1, -2]), "numbers of at least 0"),
        (lambda: teaching.impurity([0, 0]), "without rows"),
        (lambda: teaching.impurity([1, 2], "entropy", unit="digits"), "'bits' or 'nats'"),
        (lambda: teaching.gain([4, 4], [[1, 1], [2, 2]]), "must add up to the parent"),
        (lambda: teaching.gain([4, 4], [[1, 1, 1], [2, 2]]), "must add up to the parent"),
        (lambda: teaching.tree_from_counts(([1, 2], [1, 2, 3])), "same classes"),
        (lambda: teaching.tree_from_counts(([1, 2], [1, 2], [3, 4])), "two branches"),
        (lambda: teaching.tree_from_counts("AB"), "A leaf is a sequence"),
        (lambda: teaching.tree_from_counts([0, 0]), "no rows"),
        (lambda: teaching.weakest_links(spinney.LinearRegressor()), "fitted decision tree"),
        (lambda: spinney.plot_losses(["huber"]), "There is no loss 'huber'"),
        (lambda: spinney.plot_impurities(simplex="chi2"), "simplex must be one of"),
        (lambda: datasets.TwoSources(1.5, norm(), norm()), "p must be between 0 and 1"),
        (lambda: datasets.make_xor(noise=2), "noise must be a probability"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_the_gain_ratio_and_chi2_by_hand():
    children = [[4, 1], [1, 2], [0, 2]]
    sizes = teaching.impurity([5, 3, 2], "entropy")
    assert teaching.gain([5, 5], children, "gain_ratio") == pytest.approx(
        teaching.gain([5, 5], children, "entropy") / sizes
    )
    assert teaching.gain([5, 5], children, "chi2") == pytest.approx(chi2_contingency(children).statistic)
    assert teaching.gain([2, 2], [[2, 2]], "gain_ratio") == 0.0
    assert teaching.gain([4, 0], [[1, 0], [3, 0]], "chi2") == 0.0


# ---- the search table ---------------------------------------------------------------------------------------------


def test_the_ten_loans_by_hand():
    X, y = datasets.load_loans()
    found = teaching.search_table(X, y, criterion="p(1-p)")
    assert list(found.tables) == ["age", "married", "own_house", "income", "gender"]
    assert np.round(found["income"].columns["gain"], 2).tolist() == [0.03, 0.06, 0.04, 0.01, 0.11, 0.06, 0.03]
    assert (found.best["column"], found.best["threshold"]) == ("income", 36)
    assert len(found) == len(found.to_frame()) == sum(len(table) for table in found.tables.values())
    assert str(found).count("← best") == 1
    as_arrays = teaching.search_table(datasets.load_loans(as_frame=False)[0], y, criterion="p(1-p)")
    assert [table.columns["gain"] for table in as_arrays.tables.values()] == [
        table.columns["gain"] for table in found.tables.values()
    ]


def test_the_search_is_drawn_by_column():
    X, y = datasets.load_loans()
    found = teaching.search_table(X, y, criterion="p(1-p)")
    shown = [ax for ax in found.plot().axes if ax.get_visible()]
    assert [ax.get_xlabel() for ax in shown] == list(found.tables)
    line, best = shown[3].get_lines()
    assert_allclose(line.get_xdata(), found["income"].columns["threshold"])
    assert_allclose(line.get_ydata(), found["income"].columns["gain"])
    assert (best.get_xdata()[0], best.get_label()) == (36, "best: income ≤ 36")
    assert [tick.get_text() for tick in shown[1].get_xticklabels()] == found["married"].columns["cut"]
    ratio = teaching.search_table(X, y, criterion="gain_ratio")
    assert_allclose(ratio.plot().axes[0].get_lines()[0].get_ydata(), ratio["age"].columns["score"])
    assert str(ratio).splitlines()[1].split() == ["cut", "left", "right", "gain", "score"]


def test_a_tree_of_counts_is_drawn_with_its_numbers():
    tree = teaching.tree_from_counts(TEXTBOOK)
    ax = tree.plot()
    texts = {text.get_text().split("\n")[0]: text for text in ax.texts}
    assert sorted(texts) == sorted(f"t{node}" for node in tree.counts)
    assert texts["t5"].get_text() == "t5\n10, 60\nR = 0.05"
    assert len(ax.get_lines()) == len(tree.counts) - 1
    assert [texts[f"t{leaf}"].get_position()[0] for leaf in tree.leaves] == list(range(len(tree.leaves)))
    root, left, right = (texts[f"t{node}"].get_position() for node in (1, 2, 3))
    assert left[0] < root[0] < right[0]
    assert root[1] > left[1]


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification", "chi2", "gain_ratio"])
def test_the_best_of_the_table_is_the_root_of_the_tree(criterion):
    X, y = datasets.load_penguins()
    found = teaching.search_table(
        X.assign(year=X["year"] - 2000), y, criterion=criterion, categorical_features=["year"]
    )
    columns = {"categorical_features": ["year"]}
    tree = spinney.DecisionTreeClassifier(max_depth=1, criterion=criterion, **columns)
    tree.fit(X.assign(year=X["year"] - 2000), y)
    assert found.best["column"] == X.columns[tree.tree_.feature[0]]
    if found.best["threshold"] is not None:
        assert found.best["threshold"] == tree.tree_.threshold[0]


# ---- pruning by hand ----------------------------------------------------------------------------------------------

TEXTBOOK = (([80, 0], ([0, 60], [10, 0])), ([10, 0], [0, 40]))


def test_the_pruning_example():
    tree = teaching.tree_from_counts(TEXTBOOK)
    assert tree.counts[1] == (100, 100)
    assert tree.counts[5] == (10, 60)
    assert tree.leaves == [4, 10, 11, 6, 7]
    found = teaching.weakest_links(tree)
    assert_allclose(found.alphas, [0, 1 / 20, 4 / 20])
    assert [step.pruned for step in found] == [(), (3, 5), (1, 2)]
    assert_allclose([found[1].links[t] for t in (3, 5)], 1 / 20)
    assert found[2].links.keys() == {1, 2}
    assert [step.n_leaves for step in found] == [5, 3, 1]
    assert teaching.count_subtrees(tree) == 1 + (1 + 1 * 2) * 2
    assert found.to_frame()["pruned"].tolist() == ["–", "t3, t5", "t1, t2"]


def subtrees(tree):
    """All pruned subtrees as nested tuples."""
    if isinstance(tree[0], int):
        return [tree]
    total = np.add(*map(np.array, (total_of(tree[0]), total_of(tree[1])))).tolist()
    return [total, *((a, b) for a in subtrees(tree[0]) for b in subtrees(tree[1]))]


def total_of(tree):
    return tree if isinstance(tree[0], int) else np.add(total_of(tree[0]), total_of(tree[1])).tolist()


def leaves_of(tree):
    return [tree] if isinstance(tree[0], int) else leaves_of(tree[0]) + leaves_of(tree[1])


NESTED = st.recursive(
    st.lists(st.integers(0, 6), min_size=2, max_size=2), lambda branch: st.tuples(branch, branch), max_leaves=6
)


@given(NESTED)
def test_each_step_is_the_smallest_minimiser_of_all_subtrees(tree):
    total = sum(total_of(tree))
    if not total:
        return
    every = subtrees(tree)
    assert teaching.count_subtrees(teaching.tree_from_counts(tree)) == len(every)
    risk = [sum(min(leaf) for leaf in leaves_of(sub)) / total for sub in every]
    size = [len(leaves_of(sub)) for sub in every]
    found = teaching.weakest_links(teaching.tree_from_counts(tree))
    assert all(a < b for a, b in itertools.pairwise(found.alphas))
    for step in found:
        cost = np.array(risk) + step.alpha * np.array(size)
        assert step.risk + step.alpha * step.n_leaves == pytest.approx(cost.min(), abs=1e-12)
        assert step.n_leaves == min(n for n, c in zip(size, cost, strict=True) if c < cost.min() + 1e-12)


@pytest.mark.parametrize("risk", ["error", "impurity"])
def test_the_links_of_a_fitted_tree_are_its_pruning_path(risk):
    model = spinney.DecisionTreeClassifier(risk=risk).fit(*datasets.load_penguins())
    found, path = teaching.weakest_links(model), model.cost_complexity_pruning_path()
    assert_allclose(found.alphas, path.ccp_alphas, atol=1e-12)
    assert_allclose([step.risk for step in found], path.impurities, atol=1e-12)


def test_penalised_risks_are_drawn_above_their_envelope():
    found = teaching.weakest_links(teaching.tree_from_counts(TEXTBOOK))
    lines = found.plot().get_lines()[:4]
    lowest = np.min([line.get_ydata() for line in lines[:3]], axis=0)
    assert_allclose(lines[3].get_ydata(), lowest)
    assert lines[3].get_xdata()[0] == 0


# ---- losses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in teaching.margin_losses if name != "0-1"])
def test_best_scores_and_calibration_follow_from_the_loss(name):
    loss = teaching.margin_losses[name]
    assert float(loss(0.0)) == pytest.approx(1)
    for eta in (0.2, 0.4, 0.7, 0.93):

        def risk(f, eta=eta):
            return float(eta * loss(f) + (1 - eta) * loss(-f))

        best = minimize_scalar(risk, bounds=(-6, 6), method="bounded", options={"xatol": 1e-9})
        assert risk(float(loss.minimiser(eta))) == pytest.approx(best.fun, abs=1e-7)
        assert float(loss.calibration(abs(2 * eta - 1))) == pytest.approx(float(loss(0.0)) - best.fun, abs=1e-7)


def test_losses_are_drawn_with_their_scores_and_bounds():
    figure = spinney.plot_losses()
    left, middle, right = figure.axes
    drawn = {line.get_label(): line for line in left.get_lines()}
    assert list(drawn) == ["0-1", "hinge", "exponential", "logistic", "squared", "Huber"]
    assert_allclose(drawn["hinge"].get_ydata(), np.maximum(0, 1 - drawn["hinge"].get_xdata()))
    assert len(middle.get_lines()) == 6 + 2
    assert len(right.get_lines()) == 5  # 0-1 bounds itself
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in figure.axes)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification"])
def test_the_simplex_has_its_peak_in_the_middle(criterion):
    ax = spinney.plot_impurities(simplex=criterion)
    assert [text.get_text() for text in ax.texts] == ["class 1", "class 2", "class 3"]
    levels = ax.collections[0].levels
    assert levels.max() >= teaching.impurity([1, 1, 1], criterion) * 0.9


def test_pictures_for_lectures_are_readable_in_the_dark():
    with plt.style.context("dark_background"):
        found = teaching.weakest_links(teaching.tree_from_counts(TEXTBOOK)).plot()
        envelope = found.get_lines()[3]
    assert sum(mpl.colors.to_rgb(envelope.get_color())) > 2.5


# ---- sources ------------------------------------------------------------------------------------------------------


def test_simulated_tables_follow_their_rules():
    X, y = datasets.make_nested_spheres(20_000, random_state=0)
    assert np.mean(y == ((X**2).sum(axis=1) > 9.34)) > 0.999
    assert abs(y.mean() - 0.5) < 0.02
    for make in (datasets.make_diagonal, datasets.make_xor):
        X, y = make(4000, noise=0.1, random_state=1)
        clean = np.where(X.sum(axis=1) > 1 if make is datasets.make_diagonal else X.prod(axis=1) > 0, 1, -1)
        assert np.mean(y != clean) == pytest.approx(0.1, abs=0.02)
    X, y = datasets.make_thresholds(random_state=0)
    assert X.shape == (30, 5)
    X, y = datasets.make_darts(300, random_state=0)
    assert X.shape == (300, 2)
    assert len(np.unique(y)) == 4
    generator = np.random.default_rng(5)
    assert_allclose(datasets.make_darts(random_state=generator)[0], datasets.make_darts(random_state=5)[0])


def test_the_bayes_error_of_two_sources():
    for p in (0.5, 0.2):
        source = datasets.TwoSources(p, norm(1, 1), norm(-1, 1))
        cut = np.log((1 - p) / p) / 2
        expected = p * norm.cdf(cut - 1) + (1 - p) * norm.sf(cut + 1)
        assert source.bayes_error() == pytest.approx(expected, abs=1e-5)
    assert datasets.TwoSources(0.3, uniform(0, 1), uniform(0.5, 1)).bayes_error() == pytest.approx(0.15, abs=1e-4)
    plane = datasets.TwoSources(0.5, multivariate_normal([1, 0]), multivariate_normal([-1, 0]))
    assert plane.bayes_error() == pytest.approx(norm.cdf(-1), abs=0.005)
    X, y = plane(np.random.default_rng(0), 20_000)
    assert np.mean((plane.eta(X) > 0.5) != y) == pytest.approx(norm.cdf(-1), abs=0.01)
    assert_allclose(plane.eta([[0.0, 3.0]]), [0.5])  # an array for one row too
    assert plane.truth([[0.0, 3.0]]).shape == (1, 2)


def test_batting_averages_shrink_as_published():
    first, rest = datasets.load_batting()
    mean = first.mean()
    found = spinney.james_stein(first, mean * (1 - mean) / 45)
    assert (round(mean, 3), round(float(found.factor), 3)) == (0.265, 0.212)
    assert ((found.estimates - rest) ** 2).sum() < ((first - rest) ** 2).sum() / 3


# ---- kernels and the bootstrap --------------------------------------------------------------------------------------


def test_kernels_are_scikit_learns():
    from sklearn.metrics import pairwise

    rng = np.random.RandomState(0)
    U, V = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    assert_allclose(kernels.linear(U, V), pairwise.linear_kernel(U, V))
    assert_allclose(kernels.rbf(U, V, gamma=0.3), pairwise.rbf_kernel(U, V, gamma=0.3))
    options = {"gamma": 0.5, "coef0": 1.5}
    assert_allclose(kernels.polynomial(U, degree=2, **options), pairwise.polynomial_kernel(U, degree=2, **options))
    assert_allclose(kernels.sigmoid(U, V, **options), pairwise.sigmoid_kernel(U, V, **options))
    with pytest.raises(ValueError, match="same number of columns"):
        kernels.linear(U, V[:, :2])


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (kernels.linear, {"kernel": "linear"}),
        (functools.partial(kernels.rbf, gamma=0.7), {"gamma": 0.7}),
        (
            functools.partial(kernels.polynomial, degree=2, coef0=1),
            {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1},
        ),
    ],
)
def test_kernels_are_those_of_the_machines(kernel, named):
    X, y = datasets.make_diagonal(60, noise=0.1, random_state=0)
    assert_allclose(
        spinney.SVC(kernel=kernel).fit(X, y).decision_function(X),
        spinney.SVC(**named).fit(X, y).decision_function(X),
        atol=1e-2,
    )


@pytest.mark.parametrize("method", ["percentile", "basic", "BCa"])
def test_bootstrap_intervals_agree_with_scipy(method):
    x = np.random.RandomState(0).exponential(size=40)
    ours = teaching.bootstrap(np.mean, x, n_repeats=20_000, random_state=1)
    theirs = scipy_bootstrap((x,), np.mean, n_resamples=20_000, method=method, rng=2)
    assert_allclose(ours.interval(method=method.lower()), theirs.confidence_interval, atol=0.02)
    assert ours.standard_error == pytest.approx(x.std() / np.sqrt(40), rel=0.03)
    assert ours.estimate == x.mean()
    assert abs(ours.bias) < 0.01


def test_bootstrap_of_tables():
    X, y = datasets.load_penguins(as_frame="pandas")

    def error(X, y):
        return 1 - spinney.DecisionTreeClassifier(max_depth=2).fit(X, y).score(X, y)

    found = teaching.bootstrap(error, X, y, n_repeats=20, random_state=0)
    assert 0 < found.standard_error < 0.05
    low, high = found.interval(0.9, "normal")
    assert low < found.estimate < high
    ax = found.plot()
    assert [line.get_label() for line in ax.get_lines()] == ["estimate"]
    assert sum(bar.get_height() for bar in ax.patches[:-1]) == pytest.approx(20)
    for style in ("default", "dark_background"):
        with plt.style.context(style):
            span = found.plot().patches[-1]
        edges = span.get_x() + np.array([0, span.get_width()])
        assert_allclose(edges, found.interval())
        assert abs(np.mean(span.get_edgecolor()[:3]) - (style == "default")) > 0.3  # it differs from the background
    for call, words in (
        (lambda: teaching.bootstrap(np.mean, [1.0, 2.0], [1.0]), "same number of rows"),
        (lambda: found.interval(2), "level must be"),
        (lambda: found.interval(method="student"), "method must be"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_consistency_of_nearest_neighbours():
    learners = {
        "one": spinney.KNeighborsClassifier(1),
        "more": lambda n: spinney.KNeighborsClassifier(int(n**0.5)),
    }
    source = datasets.TwoSources(0.5, norm(1, 1), norm(-1, 1))
    found = teaching.consistency(learners, source, sizes=(50, 1000), n_test=500, n_repeats=4)
    assert found.errors["one"].shape == (2, 4)
    assert found.errors["more"][1].mean() - found.bayes_error < 0.02 < found.errors["one"][1].mean() - found.bayes_error
    assert found.to_frame()["rows"].tolist() == [50, 1000]
    assert f"Bayes error {found.bayes_error:.3f}" in str(found)
    assert len(found.plot().get_lines()) == 3
    with pytest.raises(ValueError, match="no learner"):
        teaching.consistency({}, source)


def test_bias_and_variance_over_a_parameter():
    def wave(rng, n):
        x = rng.uniform(0, 6, (n, 1))
        return x, np.sin(x[:, 0]) + rng.normal(0, 0.3, n)

    settings = {"generator": wave, "truth": lambda X: np.sin(X[:, 0]), "n_train": 40, "n_repeats": 8, "random_state": 0}
    found = spinney.bias_variance(spinney.DecisionTreeRegressor(), vary={"max_leaf_nodes": [2, 8, 40]}, **settings)
    assert list(found.parts) == ["max_leaf_nodes=2", "max_leaf_nodes=8", "max_leaf_nodes=40"]
    lines = {line.get_label(): line.get_ydata() for line in found.plot().get_lines()}
    assert_allclose(lines["variance"], [part.variance for part in found.parts.values()])
    assert lines["bias²"][0] > lines["bias²"][2]
    with pytest.raises(ValueError, match="one estimator, not a dict"):
        spinney.bias_variance({"tree": spinney.DecisionTreeRegressor()}, vary={"max_depth": [1]}, **settings)


# ---- densities, votes, tables ---------------------------------------------------------------------------------------


def test_a_kernel_density_is_that_of_scipy():
    sample = np.random.default_rng(0).gamma(2.0, size=700)
    found = teaching.kernel_density(np.append(sample, np.nan))
    peer = gaussian_kde(sample, bw_method=found.bandwidth / sample.std(ddof=1))
    at = np.linspace(-1, 10, 50)
    assert_allclose(found(at), peer(at), rtol=1e-9)
    best = minimize_scalar(lambda width: risk_of_a_density(sample, width), bounds=(0.05, 2), method="bounded").x
    assert found.bandwidth == pytest.approx(best, rel=0.1)
    place = int(found.risks.argmin())
    assert found.risks[place] == pytest.approx(risk_of_a_density(sample, found.bandwidths[place]), abs=1e-6)


def risk_of_a_density(sample, width):
    """∫ f² on a grid, less twice the mean density at each value without that value."""
    at = np.linspace(sample.min() - 6 * width, sample.max() + 6 * width, 4000)
    density = norm.pdf(at[:, None] - sample, scale=width).mean(axis=1)
    pairs = norm.pdf(sample[:, None] - sample, scale=width)
    np.fill_diagonal(pairs, 0.0)
    return np.trapezoid(density**2, at) - 2 * pairs.sum() / (len(sample) * (len(sample) - 1))


def test_rounded_values_have_about_the_bandwidth_of_exact_ones():
    values = np.random.default_rng(0).normal(30, 10, 600)
    exact = teaching.kernel_density(values).bandwidth
    for rounded in (np.round(values), np.append(np.round(values), [0.42, 0.67, 14.5])):
        assert teaching.kernel_density(rounded).bandwidth == pytest.approx(exact, rel=0.25)  # no warning


def test_equal_values_make_the_bandwidth_warn():
    with pytest.warns(UserWarning, match="Pass a bandwidth"):
        teaching.kernel_density(np.repeat(np.random.default_rng(0).normal(size=100), 3))


def test_a_bandwidth_of_the_unit_of_rounding_warns_of_the_rounding():
    heaped = np.repeat([18.0, 20, 22, 24, 30, 36, 40, 45, 50], 20)  # ages that people prefer
    values = np.concatenate([heaped, np.random.default_rng(0).normal(30, 10, 200).round()])
    with pytest.warns(UserWarning, match=r"multiples of 1, and this is the bandwidth.* Pass a larger"):
        assert teaching.kernel_density(values).bandwidth == 1.0


@pytest.mark.parametrize(
    ("values", "options", "match"),
    [
        ([[1.0], [2.0]], {}, "one-dimensional"),
        ([1.0, 1.0], {}, "two different finite values"),
        ([1.0, np.inf], {}, "two different finite values"),
        ([1.0, 2.0], {"bandwidth": 0.0}, "positive number or 'cv'"),
    ],
)
def test_a_kernel_density_checks_its_arguments(values, options, match):
    with pytest.raises(ValueError, match=match):
        teaching.kernel_density(values, **options)


def test_a_density_is_drawn_beside_its_histogram():
    found = teaching.kernel_density([1.0, 2.0, 2.5, 4.0, 7.5], bandwidth=1.0)
    ax = found.plot(bin_width=2.0)
    heights = [patch.get_height() * 5 * 2 for patch in ax.patches]
    assert_allclose(heights, [1, 2, 1, 1])
    (line,) = ax.lines
    assert_allclose(line.get_ydata(), found(line.get_xdata()))
    assert not found.plot().patches
    with pytest.raises(ValueError, match="bin_width must be positive"):
        found.plot(bin_width=0.0)


@pytest.mark.parametrize(
    "model",
    [
        spinney.RandomForestClassifier(7, shrinkage=None, random_state=0),
        spinney.ExtraTreesClassifier(7, random_state=0),
        spinney.BaggingClassifier(n_estimators=7, max_features=0.5, voting="hard", random_state=0),
        spinney.AdaBoostClassifier(n_estimators=7),
    ],
)
def test_votes_of_members_make_the_prediction(model):
    X, y = datasets.load_penguins()
    model.fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2]
    votes = teaching.member_votes(model, X)
    assert votes.shape == (len(y), 7)
    weights = model.estimator_weights_ if isinstance(model, spinney.AdaBoostClassifier) else np.ones(7)
    counts = np.stack([(votes == label) @ weights for label in model.classes_], axis=1)
    is_clear = np.diff(np.sort(counts, axis=1)[:, -2:], axis=1)[:, 0] > 1e-9
    winners = model.classes_[counts.argmax(axis=1)][is_clear]
    assert np.mean(winners == model.predict(X)[is_clear]) == pytest.approx(1.0, abs=0.02)
    assert len({tuple(row) for row in votes.tolist()}) > 3


def test_votes_of_bagged_columns_find_their_columns_by_name():
    table, y = datasets.make_diagonal(60, random_state=0)
    values = np.asarray(table)
    X = {"a": values[:, 0], "b": values[:, 1], "c": values[:, 0] ** 2}
    model = spinney.BaggingClassifier(n_estimators=4, max_features=2, random_state=0).fit(X, y)
    votes = teaching.member_votes(model, dict(reversed(X.items())))
    assert votes.tolist() == teaching.member_votes(model, X).tolist()


def test_votes_of_a_voting_ensemble_are_labels():
    X, y = datasets.make_diagonal(60, noise=0.2, random_state=0)
    labels = np.where(y > 0, "up", "down")
    members = [("theirs", SkTree(random_state=0)), ("k-NN", "knn"), ("line", "linear")]
    model = spinney.VotingClassifier(members, voting="hard").fit(X, labels)
    votes = teaching.member_votes(model, X)
    assert_array_equal(votes[:, 0], SkTree(random_state=0).fit(X, labels).predict(X))
    assert_array_equal(np.where((votes == "up").sum(axis=1) > 1, "up", "down"), model.predict(X))


def test_votes_need_members_that_vote():
    X, y = datasets.make_diagonal(60, random_state=0)
    with pytest.raises(TypeError, match="not DecisionTreeClassifier"):
        teaching.member_votes(spinney.DecisionTreeClassifier().fit(X, y), X)
    with pytest.raises(ValueError, match="no votes"):
        teaching.member_votes(spinney.AdaBoostClassifier(algorithm="gentle", n_estimators=3).fit(X, y), X)


def test_the_table_of_heart_patients():
    X, y = datasets.load_heart(as_frame="pandas")
    assert X.shape == (303, 13)
    assert y.value_counts().to_dict() == {"no": 165, "yes": 138}
    assert X.isna().sum().to_dict() == dict.fromkeys(X, 0) | {"vessels": 5, "thallium": 2}
    assert (X["age"].min(), X["age"].max(), X["cholesterol"].max()) == (29, 77, 564)
    as_polars, labels = datasets.load_heart(as_frame="polars")
    assert as_polars.columns == list(X)
    assert labels.to_list() == y.tolist()


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_perceptron_by_hand_ends_where_the_model_does(fit_intercept):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    score = X @ [1.0, -2.0, 0.5] + 0.3 * fit_intercept
    X, score = X[abs(score) > 0.5], score[abs(score) > 0.5]
    y = np.where(score > 0, "yes", "no")
    options = {"fit_intercept": fit_intercept, "eta0": 0.5}
    steps = teaching.perceptron_steps(X, y, **options)
    model = spinney.Perceptron(shuffle=False, tol=None, **options).fit(X, y)
    assert (len(steps), steps[-1].epoch + 1) == (model.n_updates_[0], model.n_iter_)
    assert_allclose(steps[-1].coef, model.coef_[0])
    assert_allclose(steps[-1].intercept, model.intercept_[0])
    first = steps[0]
    assert (first.epoch, first.row) == (1, 0)
    assert_allclose(first.coef, (0.5 if y[0] == "yes" else -0.5) * X[0])
    assert len(teaching.perceptron_steps(X, y, max_epochs=1, **options)) == sum(step.epoch == 1 for step in steps)


@pytest.mark.parametrize(
    ("X", "y", "options", "match"),
    [
        ([1.0, 2.0], [0, 1], {}, "rows and columns"),
        ([[1.0], [np.nan]], [0, 1], {}, "missing or infinite"),
        ([[1.0], [2.0], [3.0]], [0, 1, 2], {}, "two classes; it has 3"),
        ([[1.0], [2.0]], [0, 1], {"max_epochs": 0}, "max_epochs"),
    ],
)
def test_the_perceptron_by_hand_checks_its_arguments(X, y, options, match):
    with pytest.raises(ValueError, match=match):
        teaching.perceptron_steps(X, y, **options)


def test_updates_of_the_perceptron_are_drawn():
    X = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, 1.0], [-2.0, -1.0], [1.0, -2.0], [2.0, -0.5]])
    steps = teaching.perceptron_steps(X, ["up", "up", "up", "down", "down", "down"])
    panels = steps.plot().axes
    assert [ax.get_title() for ax in panels] == [
        "update 1: w = (2, 1), b = 0", "update 2: w = (1, 2), b = 0", "update 3: w = (-1, 2.5), b = 0"
    ]  # fmt: skip
    for ax, step, n_lines in zip(panels, steps, (2, 3, 3), strict=True):
        *lines, ring = ax.get_lines()
        assert len(lines) == n_lines - 1
        assert (ring.get_xdata()[0], ring.get_ydata()[0]) == tuple(X[step.row])
        first, second = np.asarray(lines[-1].get_xy1()), np.asarray(lines[-1].get_xy2())
        assert_allclose([step.coef @ first, step.coef @ second], -step.intercept, atol=1e-12)
    moved = teaching.perceptron_steps(X + 1, [1, 1, 1, -1, -1, -1], fit_intercept=True)
    last = moved.plot(max_updates=2).axes[-1]
    assert last.get_title().startswith(f"update {len(moved)}:")
    first = np.asarray(last.get_lines()[-2].get_xy1())
    assert moved[-1].coef @ first + moved[-1].intercept == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match="X has 1"):
        teaching.perceptron_steps(X[:, :1], [1, 1, 1, -1, -1, -1], max_epochs=2).plot()


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_a_source_is_drawn_with_its_bayes_error(style):
    source = datasets.TwoSources(0.3, norm(1, 1), norm(-1, 2))
    with plt.style.context(style):
        ax = teaching.plot_source(source)
    negative, positive = ax.get_lines()
    x = negative.get_xdata()
    assert_allclose(negative.get_ydata(), 0.7 * norm.pdf(x, -1, 2))
    assert_allclose(positive.get_ydata(), 0.3 * norm.pdf(x, 1, 1))
    (shade,) = ax.collections
    outline = shade.get_paths()[0].vertices
    area = abs(np.sum(outline[:-1, 0] * outline[1:, 1] - outline[1:, 0] * outline[:-1, 1])) / 2
    assert area == pytest.approx(source.bayes_error(), abs=2e-3)
    other = ax.figure.axes[1]
    assert_allclose(other.get_lines()[0].get_ydata(), source.eta(x[:, None]))
    assert (ax.get_xlabel(), ax.get_ylabel(), other.get_ylabel()) == ("x", "density", "η(x)")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"Bayes error L* = {source.bayes_error():.3g}" in names
    assert (np.mean(mpl.colors.to_rgb(other.get_lines()[0].get_color())) > 0.5) == (style != "default")
    plane = datasets.TwoSources(0.5, multivariate_normal([0, 0]), multivariate_normal([1, 1]))
    with pytest.raises(ValueError, match="plot_source draws one column"):
        teaching.plot_source(plane)
    with pytest.raises(TypeError, match="must be a TwoSources"):
        teaching.plot_source(norm(0, 1))
