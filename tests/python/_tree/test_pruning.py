"""Pruning a grown tree: the weakest-link sequence, rpart's complexities, `prune`, held-out and pessimistic pruning."""

import io
import pickle
import time
from fractions import Fraction

import numpy as np
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle.pruning import (
    all_subtrees,
    bottom_up,
    exact_complexities,
    smallest_minimiser,
)
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from spinney import DecisionTreeClassifier as Classifier
from spinney import DecisionTreeRegressor as Regressor
from spinney._tree.pruning import expected_errors
from spinney._tree.rpart.fit import Scale, subtree_complexities
from spinney._tree.rpart.methods import Shape
from spinney._tree.rpart.record import surviving_nodes
from sweep import examples

SCALE = 0.1 / 3  # no power of two: sums that are equal in exact arithmetic differ in floating point


def leaves_of(tree):
    return frozenset(np.flatnonzero(np.asarray(tree.children_left) == -1).tolist())


@st.composite
def trees_with_risks(draw, max_rows=8, largest=6):
    """A tree of some shape, and a small whole number as the risk of each node, so that ties abound."""
    y = draw(st.lists(st.integers(0, 4), min_size=2, max_size=max_rows))
    tree = Regressor(max_depth=draw(st.integers(1, 7))).fit(np.arange(len(y))[:, None], y).tree_
    n = tree.node_count
    return tree, draw(st.lists(st.integers(0, largest), min_size=n, max_size=n))


def chain_with_risks(n):
    """A tree with one long path, and risks by which each of its m splits is pruned alone, at 1, 3, 5, … (2 m - 1).

    What hangs off the path saves nothing; a split of the path with j splits at and below it saves j squared.
    """
    X = np.arange(n, dtype=float)[:, None]
    tree = Classifier().fit(X, np.arange(n) % 2, sample_weight=1.01 ** -np.arange(n)).tree_
    deepest = np.argmax(tree.depth)
    path, node = [], 0
    while node != deepest:
        path.append(node)
        right = tree.children_right[node]
        node = right if deepest >= right else node + 1
    assert len(path) > n / 3
    risk = np.zeros(tree.node_count)
    risk[path] = np.arange(len(path), 0, -1.0) ** 2
    return tree, risk, len(path)


# ---- the sequence ----------------------------------------------------------------------------------------------


@examples(20)
@given(trees_with_risks())
def test_complexities_are_those_of_the_weakest_link_in_exact_arithmetic(case):
    tree, risk = case
    expected = exact_complexities(tree, [Fraction(r) for r in risk])
    complexity = tree.engine.pruning_path(np.array(risk) * SCALE)[4]
    inner = np.flatnonzero(~tree.is_leaf)
    assert sorted(expected) == inner.tolist()
    np.testing.assert_allclose(complexity[inner], [float(expected[i]) * SCALE for i in inner], rtol=1e-12, atol=0)
    distinct = {expected[i] for i in inner}
    assert len(np.unique(complexity[inner])) == len(distinct)


@examples(20)
@given(trees_with_risks(), st.integers(0, 40))
def test_pruning_at_alpha_gives_the_smallest_minimiser(case, number):
    tree, risk = case
    alpha = Fraction(number, 8)
    pruned = tree.replaced(tree.engine.pruned(float(alpha) * SCALE, np.array(risk) * SCALE))
    best = smallest_minimiser(tree, [Fraction(r) for r in risk], alpha)
    assert pruned.n_leaves == len(best)
    kept = sorted(int(n) for n in tree.n_node_samples[sorted(best)])
    assert sorted(pruned.n_node_samples[pruned.is_leaf].tolist()) == kept


@examples(20)
@given(trees_with_risks(max_rows=12))
def test_path_counts_leaves_and_risks_of_nested_trees(case):
    tree, risk = case
    node, alpha, total, n_leaves, complexity = tree.engine.pruning_path(np.array(risk) * SCALE)
    assert (np.diff(alpha) >= 0).all()
    assert (alpha >= 0).all()
    cut = np.zeros(tree.node_count, dtype=np.uint8)
    for i in range(len(node) + 1):
        if i:
            assert tree.replaced(tree.engine.collapsed(cut)).n_leaves > n_leaves[i]  # each step takes something away
            cut[node[i - 1]] = 1
            assert complexity[node[i - 1]] == alpha[i - 1]
        now = tree.replaced(tree.engine.collapsed(cut))
        assert now.n_leaves == n_leaves[i]
    assert n_leaves[-1] == 1
    assert total[-1] == pytest.approx(risk[0] * SCALE, abs=1e-13)
    assert total[0] == pytest.approx(sum(np.array(risk)[tree.is_leaf]) * SCALE, abs=1e-13)


def test_splits_that_gain_nothing_go_at_zero_whatever_the_rounding():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(2000, 4)), random.integers(3, size=2000)
    tree = Regressor().fit(X, y).tree_
    share = np.asarray(tree.weighted_n_node_samples) / 2000
    _, alpha, _, n_leaves, complexity = tree.engine.pruning_path(share / 3 * 0.7)  # R(t) = R(l) + R(r) everywhere
    assert alpha.tolist() == [0.0]
    assert n_leaves.tolist()[1:] == [1]
    assert (complexity == 0).all()


def test_strengths_that_are_equal_everywhere_go_in_one_step():
    random = np.random.default_rng(1)
    tree = Regressor(max_depth=5).fit(random.normal(size=(400, 3)), random.normal(size=400)).tree_
    # each split saves 0.1, up to rounding: so does each branch, per leaf
    risk = np.zeros(tree.node_count)
    for i in range(tree.node_count - 1, -1, -1):
        risk[i] = 0.7 * tree.n_node_samples[i] / 3
        if not tree.is_leaf[i]:
            risk[i] = (risk[i + 1] + 0.1) + risk[tree.children_right[i]]
    alpha = tree.engine.pruning_path(risk)[1]
    assert len(set(alpha.tolist())) == 1
    assert alpha[0] == pytest.approx(0.1, rel=1e-12)
    assert tree.engine.pruned(0.1, risk).size == 1


def test_a_useless_split_with_a_useful_one_below_is_kept():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    model = Classifier(risk="error").fit(X, X[:, 0] ^ X[:, 1])
    assert model.pruned(alpha=0.0).get_n_leaves() == 4
    path = model.cost_complexity_pruning_path()
    np.testing.assert_allclose(path.ccp_alphas, [0, 1 / 6], atol=1e-15)


def test_a_long_chain_goes_link_by_link():
    tree, risk, m = chain_with_risks(2000)
    _, alpha, total, n_leaves, _ = tree.engine.pruning_path(risk)
    np.testing.assert_array_equal(alpha[alpha > 0], np.arange(1, 2 * m, 2.0))
    np.testing.assert_array_equal(total[-m:], np.arange(1, m + 1.0) ** 2)
    assert n_leaves[-2:].tolist() == [2, 1]


def test_a_risk_of_the_wrong_length_or_not_a_number_is_refused():
    tree = Regressor().fit([[0.0], [1.0]], [0.0, 1.0]).tree_
    with pytest.raises(ValueError, match="one risk per node"):
        tree.engine.pruning_path(np.zeros(2))
    with pytest.raises(ValueError, match="not a number"):
        tree.engine.pruned(0.1, np.array([1.0, np.nan, 0.0]))


# ---- the worked example ----------------------------------------------------------------------------------------


def worked_example():
    """Root 100 A 100 B; t2 = 90 A 60 B, of it 80 A and t5 = 10 A 60 B; t3 = 10 A 40 B; all leaves are pure."""
    groups = [("A", 0, 0, 80), ("B", 0, 1, 60), ("A", 0, 1, 10), ("A", 1, 1, 10), ("B", 1, 1, 40)]
    rows = [(a, b, c == "B", c) for c, a, b, n in groups for _ in range(n)]
    X, y = np.array([r[:3] for r in rows], dtype=float), np.array([r[3] for r in rows])
    for seed in range(500):  # the tree is not the greedy one: draw columns until it comes
        model = Classifier(risk="error", max_features=1, random_state=seed).fit(X, y)
        if model.tree_.feature.tolist() == [0, 1, -2, 2, -2, -2, 2, -2, -2]:
            return X, y, model
    raise AssertionError("no seed draws the columns in the order of the example")


def test_the_worked_example_in_units_of_the_error_rate():
    X, y, model = worked_example()
    path = model.cost_complexity_pruning_path()
    np.testing.assert_allclose(path.ccp_alphas, [0, 1 / 20, 4 / 20], rtol=1e-14)  # t3 and t5 are pruned together
    np.testing.assert_allclose(path.impurities, [0, 0.1, 0.5], atol=1e-15)
    for alpha, n_leaves in ((0.0499, 5), (1 / 20, 3), (0.1999, 3), (4 / 20, 1)):
        assert model.pruned(alpha=alpha).get_n_leaves() == n_leaves
        assert model.pruned(cp=2 * alpha).get_n_leaves() == n_leaves
        refitted = clone(model).set_params(ccp_alpha=alpha).fit(X, y)
        assert refitted.get_n_leaves() == n_leaves


# ---- rpart's complexities --------------------------------------------------------------------------------------


def rparts_complexities(tree, risk, alpha):
    """Complexities by node, and the splits that are left."""
    left, right = tree.children_left.astype(np.int64), tree.children_right.astype(np.int64)
    complexity, kept = subtree_complexities(Shape(left, right, np.ones(tree.node_count)), risk, alpha, Scale())
    nodes = surviving_nodes(tree, ~kept)
    return complexity, {node for node in nodes.tolist() if kept[node] and not tree.is_leaf[node]}


def test_rparts_complexities_of_the_example_that_differs_from_the_weakest_link():
    shape = Regressor().fit(np.arange(4.0)[:, None], [0.0, 1.0, 10.0, 100.0]).tree_
    assert shape.children_left.tolist() == [1, 2, 3, -1, -1, -1, -1]
    risk = np.array([50.0, 47, 26, 3, 11, 8, 3])
    complexity, kept = rparts_complexities(shape, risk, 0.0)
    np.testing.assert_allclose(complexity[[0, 1, 2]], 6.5)
    assert kept == {0, 1, 2}
    np.testing.assert_allclose(shape.engine.pruning_path(risk)[4][[0, 1, 2]], 25 / 3)


@examples(20)
@given(trees_with_risks(max_rows=10, largest=12), st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 3.5]))
def test_rparts_complexities_follow_its_recursion(case, alpha):
    tree, risk = case
    complexity, kept = rparts_complexities(tree, np.array(risk, dtype=float), alpha)
    expected, expected_split = bottom_up(tree, [float(r) for r in risk], alpha)
    assert kept == expected_split
    for node, value in expected.items():
        assert complexity[node] == pytest.approx(value, rel=1e-14)


# ---- prune on a fitted tree ------------------------------------------------------------------------------------


@pytest.mark.parametrize("risk", ["impurity", "error"])
def test_pruning_afterwards_equals_pruning_at_fit(risk):
    X, y = load_breast_cancer(return_X_y=True)
    full = Classifier(risk=risk).fit(X, y)
    before = pickle.dumps(full.tree_)
    for alpha in (0.0005, 0.003, 0.02):
        fitted = Classifier(risk=risk, ccp_alpha=alpha).fit(X, y)
        later = full.pruned(alpha=alpha)
        assert pickle.dumps(later.tree_) == pickle.dumps(fitted.tree_)
        assert later.alpha_ == alpha
        root = full._node_risks(full.tree_)[0]
        assert pickle.dumps(full.pruned(cp=alpha / root).tree_) == pickle.dumps(fitted.tree_)
        assert pickle.dumps(Classifier(risk=risk, cp=alpha / root).fit(X, y).tree_) == pickle.dumps(fitted.tree_)
        np.testing.assert_array_equal(later.predict(X), fitted.predict(X))
    assert pickle.dumps(full.tree_) == before


def test_pruning_at_a_reported_alpha_takes_that_step():
    X, y = load_diabetes(return_X_y=True)
    model = Regressor(min_samples_leaf=5).fit(X, y)
    path = model.cost_complexity_pruning_path()
    risk = model._node_risks(model.tree_)[0]
    for alpha in np.unique(path.ccp_alphas)[1::5]:
        left = path.impurities[np.flatnonzero(path.ccp_alphas == alpha)[-1]]
        for pruned in (model.pruned(cp=alpha / risk), model.pruned(alpha=alpha)):
            assert sum(pruned._node_risks(pruned.tree_)[pruned.tree_.is_leaf]) == pytest.approx(left, rel=1e-9)


def test_error_risk_prunes_splits_that_change_no_prediction():
    X, y = load_breast_cancer(return_X_y=True)
    model = Classifier(risk="error", max_depth=6).fit(X, y)
    pruned = model.pruned(alpha=0.0)
    assert pruned.get_n_leaves() < model.get_n_leaves()
    np.testing.assert_array_equal(pruned.predict(X), model.predict(X))
    assert Classifier(risk="error", max_depth=6, cp=0.0).fit(X, y).get_n_leaves() == pruned.get_n_leaves()
    assert Classifier(risk="error", max_depth=6, cp=-1.0).fit(X, y).get_n_leaves() == model.get_n_leaves()


def test_error_units_of_ccp_alpha():
    X, y = load_breast_cancer(return_X_y=True)
    model = Classifier(risk="error").fit(X, y)
    path = model.cost_complexity_pruning_path()
    assert path.impurities[-1] == pytest.approx(np.mean(y == 0))
    n_rows_of_a_step = np.diff(path.impurities) * len(y)
    np.testing.assert_allclose(n_rows_of_a_step, n_rows_of_a_step.round(), atol=1e-9)


def test_path_of_a_fitted_tree_is_the_one_that_refits():
    X, y = load_breast_cancer(return_X_y=True)
    model = Classifier(min_samples_leaf=4)
    refitted = model.cost_complexity_pruning_path(X, y)
    path = model.fit(X, y).cost_complexity_pruning_path()
    np.testing.assert_array_equal(path.ccp_alphas, refitted.ccp_alphas)
    np.testing.assert_array_equal(path.impurities, refitted.impurities)
    pruned = Classifier(min_samples_leaf=4, ccp_alpha=0.01, prune=None).fit(X, y)
    assert len(pruned.cost_complexity_pruning_path().ccp_alphas) < len(path.ccp_alphas)
    again = Classifier(min_samples_leaf=4, cp=0.3).cost_complexity_pruning_path(X, y)
    np.testing.assert_array_equal(again.ccp_alphas, path.ccp_alphas)
    with pytest.raises(ValueError, match="both X and y"):
        model.cost_complexity_pruning_path(X)


def test_prune_is_a_parameter_and_a_method():
    model = Classifier(prune="cv")
    assert model.prune == "cv"
    assert Classifier().prune == None  # noqa: E711
    assert repr(model.prune) == "'cv'"
    assert str(model.prune) == "cv"
    assert model.get_params()["prune"] is model.__dict__["prune"]
    assert type(model.get_params()["prune"]) is str
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(prune="validation").prune == "validation"
    assert pickle.loads(pickle.dumps(model)).prune == "validation"
    assert "prune='validation'" in repr(model)
    assert Classifier(prune=model.prune).get_params()["prune"] == "validation"
    assert hash(model.prune) == hash("validation")
    assert not Classifier().prune


def test_extra_trees_prune_afterwards_and_at_fit():
    X, y = load_diabetes(return_X_y=True)
    model = spinney.ExtraTreeRegressor(random_state=0).fit(X, y)
    assert 1 < model.pruned(cp=0.01).get_n_leaves() < model.get_n_leaves()
    assert spinney.ExtraTreeRegressor(prune="cv", random_state=0).fit(X, y).get_n_leaves() < model.get_n_leaves()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "either alpha="),
        ({"alpha": 0.1, "cp": 0.1}, "either alpha="),
        ({"alpha": -0.1}, "at least 0"),
        ({"cp": "much"}, "at least 0"),
        ({"alpha": float("nan")}, "at least 0"),
    ],
)
def test_what_prune_refuses(arguments, words):
    model = Regressor().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match=words):
        model.pruned(**arguments)


def test_prune_needs_a_fitted_tree():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        Classifier().pruned(alpha=0.1)


# ---- held-out rows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_reduced_error_pruning_is_the_smallest_best_subtree(kind):
    random = np.random.default_rng(3)
    X = random.normal(size=(60, 3)).round(1)
    signal = X[:, 0] + random.normal(size=60)
    y = signal > 0 if kind == "classes" else signal.round(2)
    model = Classifier if kind == "classes" else Regressor
    grown = model(max_leaf_nodes=9).fit(X[:40], y[:40])
    pruned = model(max_leaf_nodes=9, prune="validation").fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])
    tree, path = grown.tree_, grown.decision_path(X[40:]).toarray().astype(bool)

    def loss(leaves):
        total = 0.0
        for leaf in leaves:
            actual = y[40:][path[:, leaf]]
            if kind == "classes":
                total += np.sum(actual != grown.classes_[tree.majority[leaf, 0]])
            else:
                total += np.sum((actual - tree.flat_value[leaf, 0]) ** 2)
        return round(total, 9)

    best = min(all_subtrees(tree), key=lambda leaves: (loss(leaves), len(leaves)))
    assert pruned.get_n_leaves() == len(best)
    expected = [next(iter(np.flatnonzero(row[sorted(best)]))) for row in path]
    assert len(set(expected)) == len(set(pruned.apply(X[40:])))
    assert 1 < pruned.get_n_leaves() < grown.get_n_leaves()


def test_validation_fraction_holds_out_the_same_rows_for_both_ways():
    X, y = load_breast_cancer(return_X_y=True)
    model = Classifier(prune="validation", validation_fraction=0.3, random_state=0).fit(X, y)
    assert 1 < model.get_n_leaves() < Classifier().fit(X, y).get_n_leaves()


# ---- pessimistic -----------------------------------------------------------------------------------------------


def test_the_example_that_quinlan_prints():
    """C4.5 (1993), page 41: leaves of 6, 9 and 1 rows without an error against one leaf of 16 with one."""
    X = np.repeat([0, 2, 1], [6, 9, 1])[:, None]
    y = X[:, 0] == 1
    grown = Classifier().fit(X, y)
    tree, errors = grown.tree_, expected_errors(grown.tree_)
    limits = dict(zip(tree.n_node_samples[tree.is_leaf].tolist(), errors[tree.is_leaf], strict=True))
    assert sorted(limits) == [1, 6, 9]
    for n, limit in ((6, 0.206), (9, 0.143), (1, 0.750)):
        assert limits[n] / n == pytest.approx(limit, abs=0.0005)
    assert errors[0] / 16 == pytest.approx(0.157, abs=0.003)  # the book approximates
    assert Classifier(prune="pessimistic").fit(X, y).get_n_leaves() == 1
    assert Classifier(prune="pessimistic").fit(X, X[:, 0] == 0).get_n_leaves() == 2


def test_pessimistic_pruning_shortens_a_real_tree():
    X, y = load_breast_cancer(return_X_y=True)
    pruned = Classifier(prune="pessimistic").fit(X, y)
    assert 3 < pruned.get_n_leaves() < Classifier().fit(X, y).get_n_leaves()


def test_weights_of_two_count_as_two_rows_in_the_pessimistic_estimate():
    X, y = load_breast_cancer(return_X_y=True)
    twice = Classifier(prune="pessimistic").fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    weighted = Classifier(prune="pessimistic").fit(X, y, np.full(len(y), 2.0))
    np.testing.assert_array_equal(twice.predict(X), weighted.predict(X))
    assert twice.get_n_leaves() == weighted.get_n_leaves()


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (Classifier(ccp_alpha=0.1, cp=0.1), {}, "either ccp_alpha or cp"),
        (Classifier(prune="validation"), {}, "needs held-out rows"),
        (Classifier(prune="cv", validation_fraction=0.2), {}, "uses no held-out rows"),
        (Classifier(prune="pessimistic", validation_fraction=0.2), {}, "uses no held-out rows"),
        (Regressor(prune="pessimistic"), {}, "so it is for classifiers"),
        (Classifier(), {"groups": [0, 1] * 5}, "groups"),
        (Classifier(prune="cv"), {"groups": [0, 1]}, "groups has shape"),
        (Classifier(prune="sometimes"), {}, "'prune' parameter"),
    ],
)
def test_what_does_not_go_together_is_refused(model, options, words):
    with pytest.raises(ValueError, match=words):
        model.fit(np.arange(10.0)[:, None], [0, 1] * 5, **options)


def test_the_path_of_a_full_tree_is_quick():
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 5))
    model = Regressor().fit(X, random.normal(size=20_000))
    start = time.process_time()
    model.cost_complexity_pruning_path()
    assert time.process_time() - start < 1.0  # 0.02 s on an idle core; a quadratic way takes minutes


def test_the_path_is_the_same_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 3))
    tree = spinney.DecisionTreeRegressor().fit(X, X[:, 0] + rng.normal(size=30_000)).tree_.engine
    assert tree.size > 40_000
    alone = tree.pruning_path(None, 1)
    for n_jobs in (2, 7):
        for one, other in zip(alone, tree.pruning_path(None, n_jobs), strict=True):
            np.testing.assert_array_equal(one, other)


# ---- depth and leaf size by cross-validation -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max_depth", "min_samples_leaf"])
@pytest.mark.parametrize("rule", ["min", "1se"])
def test_size_is_chosen_by_cross_validation(name, rule):
    X, y = load_diabetes(return_X_y=True)
    fold = np.arange(len(y)) % 4
    model = Regressor(**{name: "cv"}, cv=fold, rule=rule).fit(X, y)
    values, errors = model.cv_results_[name], model.cv_results_["error"]
    for value, error, spread in zip(values, errors, model.cv_results_["error_se"], strict=True):
        if value not in (3, 20):
            continue
        losses = np.empty(len(y))
        for k in range(4):
            one = Regressor(**{name: int(value)}).fit(X, y, sample_weight=(fold != k).astype(float))
            losses[fold == k] = (one.predict(X[fold == k]) - y[fold == k]) ** 2
        assert error == pytest.approx(losses.mean())
        assert spread == pytest.approx(losses.std() / np.sqrt(len(y)))
    best = int(np.argmin(errors))
    limit = errors[best] + (model.cv_results_["error_se"][best] if rule == "1se" else 0)
    chosen = getattr(model, f"{name}_")
    assert chosen == values[np.flatnonzero(errors <= limit + 1e-9)[-1]]  # the smallest tree within the limit
    assert model.fingerprint() == Regressor(**{name: chosen}).fit(X, y).fingerprint()
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    again = spinney.load(file)
    assert getattr(again, f"{name}_") == chosen
    np.testing.assert_array_equal(again.cv_results_["error"], errors)


def test_searches_that_contradict_each_other_are_refused():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(ValueError, match="either max_depth or min_samples_leaf"):
        Classifier(max_depth="cv", min_samples_leaf="cv").fit(X, y)
    with pytest.raises(ValueError, match="rpart's rules choose no max_depth"):
        Classifier(dialect="rpart", max_depth="cv").fit(X, y)
    deep = Classifier(max_depth="cv", prune="cv", random_state=0).fit(X, y)
    assert {"max_depth_", "alpha_"} <= set(vars(deep))
    assert "max_depth_" not in vars(deep.set_params(max_depth=2).fit(X, y))
    boosted = spinney.AdaBoostClassifier(Classifier(max_depth="cv", cv=3, random_state=0), 2).fit(X, y)
    assert boosted.estimators_[0].max_depth_ >= 1
    bagged = spinney.BaggingClassifier(Classifier(max_depth="cv", cv=3, random_state=0), 2, random_state=0).fit(X, y)
    assert bagged.estimators_[0].max_depth_ >= 1
