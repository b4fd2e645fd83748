"""Category columns: which subsets go left, and where absent and unknown categories go."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from oracle.check import check_tree
from oracle.data import continuous_table, target_for, weights_for
from oracle.impurity import split_score
from oracle.models import CRITERIA, assert_identical, bits, spinney_tree
from sweep import covering


def names_of(codes):
    """Category names whose sorted order is that of the codes; None where missing."""
    return [None if np.isnan(code) else f"c{int(code):02d}" for code in codes]


def mixed_table(seed, n, n_categories, missing=False):
    """Return (codes and numbers as floats, the same as a frame with strings); column 1 is the category."""
    X = continuous_table(seed, n, n_columns=3, missing=missing, categories={1: n_categories})
    return X, pl.DataFrame({"a": X[:, 0], "b": names_of(X[:, 1]), "c": X[:, 2]}, strict=False)


def category_effect(criterion, X, seed, n_classes=2, n_outputs=1):
    """A target in which the category matters most, out of the order of the codes."""
    shuffled = np.random.default_rng(seed).permutation(np.linspace(0, 4, int(np.nanmax(X[:, 1])) + 1))
    effect = np.where(np.isnan(X[:, 1]), 1.9, shuffled[np.nan_to_num(X[:, 1]).astype(int)])
    return target_for(criterion, np.column_stack([X[:, 0] / 4, effect, X[:, 2] / 4]), seed, n_classes, n_outputs)


def splits_on(model, column):
    return np.flatnonzero(model.tree_.feature == column)


@pytest.mark.parametrize(*covering(criterion=CRITERIA, missing=[False, True]))
def test_every_node_is_the_oracles(criterion, missing):
    X, frame = mixed_table(31, 60, 7, missing)
    y, w = category_effect(criterion, X, 31), weights_for(31, 60, "integer")
    model = spinney_tree(criterion, min_samples_leaf=2).fit(frame, y, sample_weight=w)
    assert splits_on(model, 1).size
    check_tree(model, X, y, w, table=frame, categories=[1])


@pytest.mark.parametrize("n_categories", [4, 10, 14])
@pytest.mark.parametrize("criterion", [c for c in CRITERIA if c in ("gini", "entropy", "misclassification", "chi2")])
def test_several_classes(criterion, n_categories):
    """Up to 10 categories every bipartition is tried, beyond that the best of several orderings."""
    X, frame = mixed_table(32, 90, n_categories, missing=n_categories == 4)
    y = category_effect(criterion, X, 32, n_classes=3)
    model = spinney_tree(criterion, max_depth=2, min_samples_leaf=3).fit(frame, y)
    assert splits_on(model, 1).size
    check_tree(model, X, y, table=frame, categories=[1])


@pytest.mark.parametrize("n_categories", [5, 13])
@pytest.mark.parametrize("criterion", ["squared_error", "poisson", "gini"])
def test_several_outputs(criterion, n_categories):
    X, frame = mixed_table(33, 90, n_categories)
    y = category_effect(criterion, X, 33, n_outputs=2)
    model = spinney_tree(criterion, max_depth=2, min_samples_leaf=3).fit(frame, y)
    assert splits_on(model, 1).size
    check_tree(model, X, y, table=frame, categories=[1])


@pytest.mark.parametrize("criterion", [c for c in CRITERIA if c != "absolute_error"])
def test_root_is_the_best_of_all_bipartitions(criterion):
    """Two classes or one output: the ordered scan must find the optimum of the exhaustive search."""
    X, frame = mixed_table(34, 80, 6)
    y, w = category_effect(criterion, X, 34), weights_for(34, 80, "real")
    model = spinney_tree(criterion, max_depth=1).fit(frame.select("b"), y, sample_weight=w)
    left = model.decision_path(frame.select("b")).toarray()[:, 1].astype(bool)
    n_classes = (2,) if hasattr(model, "classes_") else ()

    def score(goes_left):
        return split_score(criterion, np.asarray(y, dtype=float)[:, None], w, goes_left, n_classes)

    subsets = itertools.chain(*(itertools.combinations(range(6), size) for size in range(1, 6)))
    best = max(score(np.isin(X[:, 1], subset)) for subset in subsets)
    assert score(left) == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("n_categories", [2, 8, 300])
def test_left_categories_tell_the_routing(n_categories):
    codes = np.arange(n_categories).repeat(4)
    y = np.random.default_rng(35).normal(size=n_categories)[codes]
    frame = pl.DataFrame({"b": [f"c{c:03d}" for c in codes]})
    model = spinney.DecisionTreeRegressor(max_depth=1, min_samples_category=1).fit(frame, y)
    went_left = set(codes[model.decision_path(frame).toarray()[:, 1].astype(bool)])
    assert set(model.tree_.left_categories(0)) == went_left
    assert 0 < len(went_left) < n_categories
    assert max(y[np.isin(codes, list(went_left))]) < min(y[~np.isin(codes, list(went_left))])


def test_a_full_tree_separates_every_category():
    codes = np.random.default_rng(36).permutation(np.arange(200).repeat(2))
    y = np.random.default_rng(37).permutation(200)[codes].astype(float)
    frame = pl.DataFrame({"b": [f"c{c:03d}" for c in codes]})
    model = spinney.DecisionTreeRegressor(min_samples_category=1).fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame), y)
    assert model.get_n_leaves() == 200


@pytest.mark.parametrize(("weight_of_b", "heavier"), [(1, "left"), (5, "right")])
def test_categories_absent_from_a_node_go_to_the_heavier_child(weight_of_b, heavier):
    """'z' occurs only where x = 1; in the node x = 0 the split is a against b."""
    frame = pl.DataFrame({"x": [0, 0, 0, 0, 0, 1, 1, 1], "c": ["a", "a", "a", "b", "b", "z", "z", "z"]})
    y = [0.0, 0.0, 0.0, 1.0, 1.0, 50.0, 50.0, 50.0]
    weights = [weight_of_b if c == "b" else 1 for c in frame["c"]]
    model = spinney.DecisionTreeRegressor().fit(frame, y, sample_weight=weights)
    probe = pl.DataFrame({"x": [0], "c": ["z"]})
    assert model.tree_.feature[0] == 0  # c separates z as well; the lower column wins the tie
    assert model.predict(probe)[0] == (0.0 if heavier == "left" else 1.0)


@pytest.mark.parametrize(("policy", "prediction"), [("missing", 5.0), ("other", 1.0), (None, 5.0)])
def test_unseen_categories_at_predict(policy, prediction):
    """Missing rows went with 'b' at fit; the child of 'a' is heavier."""
    frame = pl.DataFrame({"c": ["a", "a", "a", "a", "b", None]})
    y = [1.0, 1.0, 1.0, 1.0, 5.0, 5.0]
    params = {} if policy is None else {"unseen": policy}
    model = spinney.DecisionTreeRegressor(**params).fit(frame, y)
    assert model.predict(pl.DataFrame({"c": ["new"]})).tolist() == [prediction]
    assert model.predict(pl.DataFrame({"c": ["a", "b", None]})).tolist() == [1.0, 5.0, 5.0]


def test_unseen_categories_can_be_an_error():
    frame = pl.DataFrame({"c": ["a", "b"] * 4})
    model = spinney.DecisionTreeClassifier(unseen="error").fit(frame, [0, 1] * 4)
    with pytest.raises(ValueError, match=r"c.*'new'"):
        model.predict(pl.DataFrame({"c": ["a", "new"]}))


def test_a_missing_category_is_never_listed_in_left_categories():
    frame = pl.DataFrame({"c": ["a", "b", None] * 5})
    y = [0, 0, 1] * 5
    model = spinney.DecisionTreeClassifier().fit(frame, y)
    assert model.get_n_leaves() == 2
    assert model.predict(frame).tolist() == y
    assert sorted(model.tree_.left_categories(0)) in ([], [0, 1])


def test_categories_are_matched_by_value_not_by_code():
    """The dictionaries of two frames differ; the strings agree."""
    train = pd.DataFrame({"c": pd.Categorical(["u", "v", "w"] * 6, categories=["w", "v", "u"])})
    y = [0, 1, 2] * 6
    model = spinney.DecisionTreeClassifier().fit(train, y)
    for values in (
        pd.Categorical(["w", "u"], categories=["u", "w"]),
        pd.Categorical(["w", "u"], categories=["x", "w", "v", "u"]),
        pd.array(["w", "u"], dtype="str"),
    ):
        assert model.predict(pd.DataFrame({"c": values})).tolist() == [2, 0]
    assert model.predict(pl.DataFrame({"c": pl.Series(["w", "u"], dtype=pl.Categorical)})).tolist() == [2, 0]


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(lambda v: pd.DataFrame({"c": v}), id="pandas-strings"),
        pytest.param(lambda v: pd.DataFrame({"c": pd.Categorical(v)}), id="pandas-category"),
        pytest.param(lambda v: pl.DataFrame({"c": pl.Series(v, dtype=pl.Categorical)}), id="polars-categorical"),
        pytest.param(lambda v: pl.DataFrame({"c": pl.Series(v, dtype=pl.Enum(["b", "d", "a"]))}), id="polars-enum"),
        pytest.param(lambda v: pl.DataFrame({"c": v}).to_arrow(), id="arrow-strings"),
        pytest.param(lambda v: np.array(v, dtype=object)[:, None], id="object-array"),
    ],
)
def test_every_guise_of_a_category_gives_the_same_predictions(frame):
    values = ["a", "b", "d", None, "b", "a"] * 5
    y = [0, 1, 2, 1, 1, 0] * 5
    reference = pl.DataFrame({"c": values})
    expected = spinney.DecisionTreeClassifier().fit(reference, y)
    model = spinney.DecisionTreeClassifier().fit(frame(values), y)
    np.testing.assert_array_equal(bits(model, frame(values)), bits(expected, reference))


@pytest.mark.parametrize("named", [[1], [False, True, False], np.array([1])], ids=["position", "mask", "array"])
def test_numbers_may_be_declared_categories(named):
    X, frame = mixed_table(38, 60, 6)
    y = category_effect("gini", X, 38)
    model = spinney.DecisionTreeClassifier(categorical_features=named).fit(X, y)
    as_strings = spinney.DecisionTreeClassifier().fit(frame, y)
    assert_identical(model, as_strings)
    assert splits_on(model, 1).size
    by_name = spinney.DecisionTreeClassifier(categorical_features=["b"]).fit(pd.DataFrame(X, columns=list("abc")), y)
    assert_identical(by_name, as_strings)


def test_declared_categories_beat_their_codes_as_numbers():
    codes = np.resize(np.arange(8), 80).astype(float)[:, None]
    y = (codes[:, 0] % 2).astype(int)
    stump = {"max_depth": 1}
    assert spinney.DecisionTreeClassifier(**stump, categorical_features=[0]).fit(codes, y).score(codes, y) == 1.0
    assert spinney.DecisionTreeClassifier(**stump).fit(codes, y).score(codes, y) < 0.7


def test_ordered_categories_are_cut_in_their_order():
    levels = ["low", "mid", "high"]
    values = pd.Categorical(levels * 6, categories=levels, ordered=True)
    model = spinney.DecisionTreeClassifier().fit(pd.DataFrame({"c": values}), [0, 1, 0] * 6)
    assert model.get_n_leaves() == 3
    assert model.score(pd.DataFrame({"c": values}), [0, 1, 0] * 6) == 1.0


@pytest.mark.parametrize("n_categories", [9, 14])
@pytest.mark.parametrize("tree", ["ExtraTreeClassifier", "ExtraTreeRegressor"])
def test_random_subsets_separate_the_rows(tree, n_categories):
    X, frame = mixed_table(39, 60, n_categories, missing=True)
    y = category_effect("gini", X, 39)
    n_category_splits = 0
    for seed in range(6):
        model = getattr(spinney, tree)(random_state=seed).fit(frame, y)
        check_tree(model, X, y, table=frame, categories=[1], search="any")
        n_category_splits += splits_on(model, 1).size
    assert n_category_splits > 3


def test_two_hundred_classes_and_many_categories_finish():
    rng = np.random.default_rng(40)
    codes = rng.integers(60, size=600)
    y = (codes * 7 + rng.integers(2, size=600)) % 200
    frame = pl.DataFrame({"c": [f"c{c:02d}" for c in codes]})
    model = spinney.DecisionTreeClassifier(max_depth=3).fit(frame, y)
    assert model.get_n_leaves() > 3
    assert model.score(frame, y) > 2 * np.bincount(y).max() / 600


def test_constant_category_is_not_split():
    model = spinney.DecisionTreeClassifier().fit(pl.DataFrame({"c": ["a"] * 6}), [0, 1] * 3)
    assert model.get_n_leaves() == 1


def share_of_trees_that_find(is_left, kind=spinney.ExtraTreesRegressor, n_trees=400):
    """Count the extra-trees of one split that separate categories, in the order of their names, in each way."""
    codes = np.tile(np.arange(len(is_left)), 6)
    X = pd.DataFrame({"c": [f"c{code:02d}" for code in codes]})
    y = np.asarray(is_left, dtype=float)[codes]
    leaf = kind(n_trees, max_depth=1, random_state=0, min_samples_category=1).fit(X, y).apply(X)
    return ((leaf == leaf[0]) == (y == y[0])[:, np.newaxis]).all(axis=0).mean()


def is_drawn_with(share, found, n_trees=400):
    return abs(found - share) < 4 * np.sqrt(share * (1 - share) / n_trees) + 1e-9


@pytest.mark.parametrize(("n_categories", "n_draws"), [(2, 1), (4, 3), (5, 4), (12, 1)])
def test_of_few_categories_the_best_of_several_random_sets_is_taken(n_categories, n_draws):
    found = share_of_trees_that_find(np.arange(n_categories) % 2 == 0)
    # each category goes left by chance, and one alone where all or none would
    of_one = 2 / 2**n_categories if n_categories > 2 else 1.0
    assert is_drawn_with(1 - (1 - of_one) ** n_draws, found)


@pytest.mark.parametrize("kind", [spinney.ExtraTreesRegressor, spinney.ExtraTreesClassifier])
@pytest.mark.parametrize(("n_categories", "is_cut_in_order"), [(10, False), (11, True), (25, True)])
def test_many_categories_are_also_cut_in_the_order_of_their_names(kind, n_categories, is_cut_in_order):
    for n_left in (1, n_categories // 2):
        found = share_of_trees_that_find(np.arange(n_categories) < n_left, kind)
        by_sets = 2 / 2**n_categories + (1 / 2**n_categories * 2 / n_categories if n_left == 1 else 0)
        if is_cut_in_order:
            assert is_drawn_with(1 - (1 - by_sets) * (1 - 1 / (n_categories - 1)), found)
        else:
            assert is_drawn_with(1 - (1 - by_sets) ** (n_categories - 1), found)


@pytest.mark.parametrize("kind", [spinney.ExtraTreesClassifier, spinney.RandomForestClassifier])
def test_words_of_max_features_count_the_ways_in_which_few_categories_differ(kind):
    n_categories = [2, 3, 5, 10, 11]
    columns = {f"c{k}": names_of(np.arange(60.0) % k) for k in n_categories}
    order = pd.Categorical(names_of(np.arange(60.0) % 4), ordered=True)
    X = pd.DataFrame(columns | {"ordered": order, "number": np.arange(60.0)})
    y = np.arange(60) // 7 % 2

    def tried(max_features, table=X):
        return kind(2, max_features=max_features).fit(table, y).max_features_

    # 1 + 2 + 4 + 9 + 1, an order, and a number
    assert (tried("sqrt"), tried("log2")) == (4, 4)
    assert (tried(3), tried(0.5), tried(None)) == (3, 3, 7)
    assert tried("sqrt", X[["c10"]]) == 1  # there are no more
    assert tried("sqrt", np.arange(540.0).reshape(60, 9)) == 3
