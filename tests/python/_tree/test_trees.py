"""The four estimators: attributes, methods, options and worked examples."""

import warnings

import numpy as np
import pytest
import spinney
from oracle.check import check_tree
from oracle.data import continuous_table, target_for, weights_for
from oracle.models import CRITERIA, TREES, assert_identical, spinney_tree
from oracle.pruning import collapse, pruning_path
from oracle.tree import Rules, grow, make_problem, preorder
from scipy import sparse

Classifier, Regressor = spinney.DecisionTreeClassifier, spinney.DecisionTreeRegressor


def make(name, **params):
    return getattr(spinney, name)(**params)


@pytest.fixture(scope="module")
def sample():
    X = continuous_table(80, n=120)
    return X, target_for("gini", X, 80, n_classes=3), target_for("squared_error", X, 80)


# ---- attributes and methods


@pytest.mark.parametrize("name", TREES)
def test_fitted_attributes(name, sample):
    X, classes, values = sample
    y = classes if "Classifier" in name else values
    model = make(name, random_state=0)
    assert model.fit(X, y) is model
    assert model.n_features_in_ == 4
    assert model.n_outputs_ == 1
    assert not hasattr(model, "feature_names_in_")
    assert model.max_features_ == (2 if name == "ExtraTreeClassifier" else 4)
    assert model.feature_importances_.shape == (4,)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.get_depth() == model.tree_.max_depth > 2
    assert model.get_n_leaves() == model.tree_.n_leaves > 2
    assert model.tree_.value.shape == (model.tree_.node_count, 1, 3 if "Classifier" in name else 1)
    if "Classifier" in name:
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.n_classes_ == 3


@pytest.mark.parametrize("name", TREES)
def test_a_full_tree_knows_its_training_rows(name, sample):
    X, classes, values = sample
    y = classes if "Classifier" in name else values
    model = make(name, random_state=1).fit(X, y)
    assert model.score(X, y) == 1.0
    np.testing.assert_allclose(np.asarray(model.predict(X), dtype=float), y, rtol=1e-12)


def test_extra_trees_draw_thresholds_at_random(sample):
    X, y, _ = sample
    trees = [spinney.ExtraTreeClassifier(random_state=seed, max_features=None).fit(X, y) for seed in range(4)]
    assert len({tree.tree_.threshold[0] for tree in trees}) == 4
    for tree in trees:
        check_tree(tree, X, y, search="any")
    as_option = Classifier(splitter="random", random_state=2, max_features=None).fit(X, y)
    assert_identical(trees[2], as_option)


def test_random_thresholds_are_uniform_in_the_range_of_the_node():
    X = np.array([[0.0], [0.1], [0.2], [10.0]])
    thresholds = [
        Regressor(splitter="random", max_depth=1, random_state=s).fit(X, [0.0, 1.0, 2.0, 3.0]).tree_.threshold[0]
        for s in range(300)
    ]
    assert 0 <= min(thresholds) < 0.3
    assert 9.7 < max(thresholds) < 10
    assert np.mean(thresholds) == pytest.approx(5.0, abs=0.6)
    assert np.std(thresholds) == pytest.approx(10 / np.sqrt(12), abs=0.4)


def test_probabilities(sample):
    X, y, _ = sample
    model = Classifier(max_depth=3).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_array_equal(model.tree_.value[model.apply(X), 0], shares)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(shares), rtol=1e-15)


def test_a_tied_vote_goes_to_the_first_class():
    model = Classifier().fit(np.zeros((4, 1)), ["b", "a", "b", "a"])
    assert model.predict([[0.0]]).tolist() == ["a"]


@pytest.mark.parametrize(
    "labels",
    [["no", "yes"], [False, True], [-1, 1], [1.0, 2.0], [3, 7], np.array(["no", "yes"], dtype=object)],
    ids=str,
)
def test_labels_of_every_type_come_back(labels):
    labels = np.asarray(labels)
    y = labels[np.resize([0, 1, 1], 30)]
    X = np.resize([0.0, 1.0, 1.0], 30)[:, None]
    model = Classifier().fit(X, y)
    predicted = model.predict(X)
    assert predicted.tolist() == y.tolist()
    assert predicted.dtype == y.dtype
    assert model.classes_.tolist() == sorted(set(y.tolist()))


def test_several_outputs_with_different_numbers_of_classes():
    X = continuous_table(81, n=80)
    y = np.column_stack([target_for("gini", X, 81), target_for("gini", X[:, ::-1], 82, n_classes=4)])
    model = Classifier(max_depth=4).fit(X, y)
    assert [len(c) for c in model.classes_] == [2, 4]
    assert list(model.n_classes_) == [2, 4]
    assert model.tree_.value.shape[1:] == (2, 4)
    first, second = model.predict_proba(X)
    assert (first.shape, second.shape) == ((80, 2), (80, 4))
    np.testing.assert_allclose(second.sum(axis=1), 1.0)
    assert model.predict(X).shape == (80, 2)
    check_tree(model, X, y)


def test_importances_are_the_total_decrease_of_impurity(sample):
    X, y, _ = sample
    tree = (model := Classifier(max_depth=4).fit(X, y)).tree_
    inner = tree.children_left != -1
    risk = tree.weighted_n_node_samples * tree.impurity
    decrease = risk[inner] - risk[tree.children_left[inner]] - risk[tree.children_right[inner]]
    total = np.bincount(tree.feature[inner], weights=decrease, minlength=4)
    np.testing.assert_allclose(model.feature_importances_, total / total.sum(), rtol=1e-12)


def test_importances_of_a_single_leaf_are_zero():
    assert Regressor().fit(np.zeros((3, 2)), [1.0, 1.0, 1.0]).feature_importances_.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [(None, 9), ("sqrt", 3), ("log2", 3), (2, 2), (0.5, 4), (1.0, 9), (1e-9, 1)],
)
def test_max_features(setting, expected):
    rng = np.random.default_rng(83)
    X = rng.normal(size=(50, 9))
    model = Regressor(max_features=setting, random_state=0).fit(X, X[:, 0])
    assert model.max_features_ == expected
    roots = {
        Regressor(max_features=setting, max_depth=1, random_state=s).fit(X, X[:, 0]).tree_.feature[0] for s in range(30)
    }
    assert roots == {0} if expected == 9 else len(roots) > 1


def test_max_features_never_settles_for_a_constant_column():
    X = np.column_stack([np.zeros((40, 5)), np.arange(40.0)])
    for seed in range(10):
        model = Classifier(max_features=1, random_state=seed).fit(X, np.arange(40) // 20)
        assert model.tree_.feature.tolist() == [5, -2, -2]


@pytest.mark.parametrize("name", TREES)
def test_random_state_decides_alone(name, sample):
    X, y, _ = sample
    params = {"max_features": 2}
    for first, second in ((5, 5), (np.int64(5), 5)):
        assert_identical(
            make(name, random_state=first, **params).fit(X, y),
            make(name, random_state=second, **params).fit(X, y),
        )
    trees = [make(name, random_state=s, **params).fit(X, y) for s in range(8)]
    assert len({tuple(tree.tree_.feature) for tree in trees}) > 1
    generator = [make(name, random_state=np.random.RandomState(3), **params).fit(X, y) for _ in range(2)]
    assert_identical(*generator)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_input_equals_dense(kind):
    rng = np.random.default_rng(84)
    X = np.where(rng.random((80, 5)) < 0.3, rng.normal(size=(80, 5)), 0.0)
    y = X[:, 0] - X[:, 3] + 0.1 * rng.normal(size=80)
    dense = Regressor(max_depth=5).fit(X, y)
    model = Regressor(max_depth=5).fit(kind(X), y)
    assert_identical(dense, model)
    np.testing.assert_array_equal(model.predict(kind(X)), dense.predict(X))


def test_doubles_are_not_rounded_to_floats():
    """float32 cannot tell these apart."""
    X = 1.0 + np.arange(8)[:, None] * 1e-12
    y = np.arange(8) % 2
    assert Classifier().fit(X, y).predict(X).tolist() == y.tolist()


def test_adjacent_doubles_are_separated():
    low = 1.0
    X = np.array([[low], [np.nextafter(low, 2)]])
    model = Classifier().fit(X, [0, 1])
    assert model.tree_.threshold[0] == low
    assert model.predict(X).tolist() == [0, 1]


def test_huge_values_have_a_finite_threshold():
    X = np.array([[-1.7e308], [1.7e308]])
    model = Classifier().fit(X, [0, 1])
    assert model.tree_.threshold[0] == 0.0


def test_integers_beyond_two_to_the_53_are_distinguished_or_refused():
    X = np.array([[2**60], [2**60 + 1024]], dtype=np.int64)
    assert Classifier().fit(X, [0, 1]).predict(X).tolist() == [0, 1]


def test_negative_zero_equals_zero():
    model = Classifier().fit([[-0.0], [0.0], [1.0]], [0, 1, 1])
    assert model.predict_proba([[0.0], [-0.0]]).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_the_training_data_are_left_alone(sample):
    X, y, _ = sample
    before = X.copy()
    X.setflags(write=False)
    Classifier().fit(X, y)
    X.setflags(write=True)
    np.testing.assert_array_equal(X, before)


def test_to_predictor_answers_like_the_estimator(sample):
    X, classes, values = sample
    regressor = Regressor(max_depth=5).fit(X, values)
    handle = regressor.to_predictor()
    np.testing.assert_array_equal([handle.predict(row) for row in X], regressor.predict(X))
    classifier = Classifier(max_depth=5).fit(X, classes)
    handle = classifier.to_predictor()
    np.testing.assert_array_equal([handle.predict(row) for row in X], classifier.predict(X))


# ---- growing, pruning, stopping on held-out rows


def xor(copies=1):
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    return X.repeat(copies, axis=0), np.array([0, 1, 1, 0]).repeat(copies)


def test_xor_needs_a_split_that_gains_nothing():
    X, y = xor(5)
    full = Classifier().fit(X, y)
    assert full.get_n_leaves() == 4
    assert full.score(X, y) == 1.0
    assert Classifier(max_depth=1).fit(X, y).score(X, y) == 0.5
    assert Classifier(min_impurity_decrease=1e-9).fit(X, y).get_n_leaves() == 1
    path = full.cost_complexity_pruning_path(X, y)
    assert collapse(path.ccp_alphas, path.impurities) == [
        (0.0, 0.0),
        (pytest.approx(0.5 / 3), pytest.approx(0.5)),
    ]
    assert Classifier(ccp_alpha=0.16).fit(X, y).get_n_leaves() == 4
    assert Classifier(ccp_alpha=0.17).fit(X, y).get_n_leaves() == 1


def pruning_example():
    """Root 100 A 100 B; t2 = 90 A 60 B, of it 80 A and t5 = 10 A 60 B; t3 = 10 A 40 B."""
    groups = [("A", 0, 0, 80), ("B", 0, 1, 60), ("A", 0, 1, 10), ("A", 1, 1, 10), ("B", 1, 1, 40)]
    rows = [(a, b, c == "B", c) for c, a, b, n in groups for _ in range(n)]
    return np.array([r[:3] for r in rows], dtype=float), np.array([r[3] for r in rows])


def example_tree():
    """The tree of the example, which is not the greedy one: draw columns until it comes."""
    X, y = pruning_example()
    for seed in range(500):
        model = Classifier(criterion="misclassification", max_features=1, random_state=seed).fit(X, y)
        if model.tree_.feature.tolist() == [0, 1, -2, 2, -2, -2, 2, -2, -2]:
            return X, y, model
    raise AssertionError("no seed draws the columns in the order of the example")


def test_weakest_link_pruning_of_the_worked_example():
    X, y, model = example_tree()
    path = model.cost_complexity_pruning_path(X, y)
    steps = collapse(path.ccp_alphas, path.impurities)
    assert [alpha for alpha, _ in steps] == pytest.approx([0, 1 / 20, 4 / 20], abs=1e-12)
    assert [n_leaves for _, _, n_leaves in pruning_path(model.tree_)] == [5, 3, 1]
    for alpha, n_leaves in ((0.049, 5), (0.051, 3), (0.199, 3), (0.201, 1)):
        pruned = Classifier(**{**model.get_params(), "ccp_alpha": alpha}).fit(X, y)
        assert pruned.get_n_leaves() == n_leaves


@pytest.mark.parametrize("criterion", ["gini", "misclassification", "chi2", "squared_error", "absolute_error"])
def test_pruning_path_is_the_oracles(criterion):
    X = continuous_table(85, n=70)
    y, w = target_for(criterion, X, 85, n_classes=3), weights_for(85, 70, "integer")
    model = spinney_tree(criterion, min_samples_leaf=3).fit(X, y, sample_weight=w)
    path = model.cost_complexity_pruning_path(X, y, sample_weight=w)
    expected = pruning_path(model.tree_)
    mine = collapse(path.ccp_alphas, path.impurities)
    np.testing.assert_allclose(mine, [step[:2] for step in expected], atol=1e-11)
    assert len(expected) > 4
    for alpha, total, n_leaves in expected[:: len(expected) // 4]:
        pruned = spinney_tree(criterion, min_samples_leaf=3, ccp_alpha=alpha + 1e-9).fit(X, y, sample_weight=w)
        assert pruned.get_n_leaves() == n_leaves
        check_tree(pruned, X, y, w, search="pruned")
        leaves = pruned.tree_.children_left == -1
        share = pruned.tree_.weighted_n_node_samples / pruned.tree_.weighted_n_node_samples[0]
        assert np.dot(share[leaves], pruned.tree_.impurity[leaves]) == pytest.approx(total, abs=1e-11)


def held_out_errors(criterion, X, y, X_val, y_val):
    """Error on the held-out rows after 0, 1, 2, … best-first splits."""
    problem = make_problem(X, y, criterion=criterion)
    n_splits = sum(bool(n.children) for n in preorder(grow(problem, Rules(max_leaf_nodes=10**6))))
    errors = []
    for k in range(n_splits + 1):
        cut = spinney_tree(criterion, max_leaf_nodes=k + 1).fit(X, y) if k else None
        centre = y.mean() if problem.n_classes == () else np.bincount(y).argmax()
        predicted = np.full(len(y_val), centre) if cut is None else cut.predict(X_val)
        misses = predicted != y_val if problem.n_classes else (predicted - y_val) ** 2
        errors.append(misses.mean())
    return np.array(errors)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@pytest.mark.parametrize("seed", [86, 87, 88])
def test_held_out_rows_decide_the_number_of_splits(criterion, seed):
    X = continuous_table(seed, n=110)
    y = target_for(criterion, X, seed)
    model = spinney_tree(criterion).fit(X[:60], y[:60], X_val=X[60:], y_val=y[60:])
    errors = held_out_errors(criterion, X[:60], y[:60], X[60:], y[60:])
    best = int(np.argmin(np.round(errors, 12)))
    assert 0 < best < len(errors) - 1
    assert model.get_n_leaves() == best + 1
    same = spinney_tree(criterion, max_leaf_nodes=best + 1).fit(X[:60], y[:60])
    assert_identical(model, same)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_held_out_rows_cut_the_best_first_sequence(criterion):
    """The tree kept is the one that `max_leaf_nodes` would have grown, whatever orders the splits."""
    n_outputs = 2 if criterion == "friedman_mse" else 1
    sizes = []
    for seed in range(300, 312):
        X = continuous_table(seed, n=70)
        y = target_for(criterion, X, seed, n_classes=3, n_outputs=n_outputs)
        model = spinney_tree(criterion).fit(X[:35], y[:35], X_val=X[35:], y_val=y[35:])
        sizes.append(model.get_n_leaves())
        if sizes[-1] > 1:
            assert_identical(model, spinney_tree(criterion, max_leaf_nodes=sizes[-1]).fit(X[:35], y[:35]))
    assert len(set(sizes)) > 1


def test_held_out_weights_count():
    X = np.arange(8.0)[:, None]
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    X_val, y_val = np.array([[0.0], [7.0], [6.0]]), np.array([1, 1, 0])
    plain = Classifier().fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=[1.0, 3.0, 1.0])
    other = Classifier().fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=[3.0, 1.0, 3.0])
    assert other.get_n_leaves() == 1
    assert plain.get_n_leaves() in (1, 2)


@pytest.mark.parametrize("name", TREES)
def test_validation_fraction_makes_a_smaller_tree(name, sample):
    X, classes, values = sample
    y = classes if "Classifier" in name else values
    full = make(name, random_state=0).fit(X, y)
    stopped = make(name, random_state=0, validation_fraction=0.3).fit(X, y)
    assert stopped.get_n_leaves() < full.get_n_leaves()
    assert stopped.tree_.n_node_samples[0] == 84
    assert_identical(stopped, make(name, random_state=0, validation_fraction=0.3).fit(X, y))


@pytest.mark.parametrize("n", [200, 2400])
@pytest.mark.parametrize("growth", [{}, {"max_features": 2, "random_state": 3}, {"max_leaf_nodes": 20}])
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_bins_decide_which_rows_part_and_values_where_the_cut_lies(criterion, growth, n):
    """As a tree that sees bins only, with each cut in the middle of the gap between the node's own values."""
    X = continuous_table(89, n=n)
    y = target_for(criterion, X, 89)
    codes = X.argsort(axis=0).argsort(axis=0) // (n // 8)
    model = spinney_tree(criterion, max_bins=8, max_depth=5, **growth).fit(X, y)
    check_tree(model, X, y, search="any")
    reference = spinney_tree(criterion, max_depth=5, **growth).fit(codes, y)
    np.testing.assert_array_equal(model.apply(X), reference.apply(codes))
    tree, passes = model.tree_, model.decision_path(X).toarray().astype(bool)
    for node in np.flatnonzero(tree.feature >= 0):
        x = X[passes[:, node], tree.feature[node]]
        left = x <= tree.threshold[node]
        assert tree.threshold[node] == x[left].max() / 2 + x[~left].min() / 2


@pytest.mark.filterwarnings("ignore:y reaches from")
def test_two_thousand_nodes_deep():
    """A chain: each split cuts off one row."""
    n = 2000
    X = np.arange(n, dtype=float)[:, None]
    y = 3.0 ** -np.arange(n)
    model = Regressor(criterion="squared_error").fit(X, np.maximum(y, 1e-300))
    assert model.get_depth() == model.tree_.max_depth
    np.testing.assert_array_equal(model.apply(X[:10]), model.apply(X[:10]))
    assert model.decision_path(X[-1:]).sum() - 1 <= model.get_depth()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.47, 0.53, 0.9])
def test_warns_where_most_values_cannot_be_distinguished(share):
    """By the quartiles, which are looked for only where a sample leaves it open how far they are apart."""
    random = np.random.default_rng(0)
    y = np.where(np.arange(3002) < share * 3002, 1.0, 1e12) * np.append(random.uniform(0.5, 1, size=3000), [1, 1])
    y = random.permutation(y * np.resize([-1, 1], 3002))
    first, third = np.sort(y)[[len(y) // 4, 3 * len(y) // 4]]
    is_coarse = third / 2 - first / 2 < 2e12 / 2 * len(y) / 2.0**49
    assert is_coarse == (share > 0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Regressor(max_depth=1).fit(np.arange(len(y))[:, None], y)
    assert any("y reaches from" in str(warning.message) for warning in caught) == is_coarse


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("weights", ["none", "integer", "real"])
def test_a_tree_of_many_classes_is_the_oracles(criterion, weights):
    rng = np.random.default_rng(5)
    y = np.concatenate([np.arange(70), rng.integers(0, 70, 50)])
    X = np.round(rng.normal(size=(70, 3))[y] + rng.normal(size=(len(y), 3)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    w = weights_for(3, len(y), weights)
    model = spinney.DecisionTreeClassifier(criterion=criterion, min_samples_leaf=2).fit(X, y, sample_weight=w)
    assert model.get_n_leaves() > 20
    check_tree(model, X, y, w)
