"""Model files and pickles with a valid checksum and hostile content: refused by a sentence, or safe to use."""

import base64
import io
import pickle
import tracemalloc
import zlib

import numpy as np
import pytest
import spinney
from oracle.saved import bytes_of
from spinney._model.file.container import from_bytes, to_bytes

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 3))
X[RNG.random(X.shape) < 0.2] = np.nan
Y = np.nan_to_num(X[:, 0]) + 0.5 * np.nan_to_num(X[:, 1]) + RNG.normal(size=120) / 10

FAMILIES = {
    "forest": lambda: spinney.RandomForestRegressor(n_estimators=3, random_state=0).fit(X, Y),
    "boosting": lambda: spinney.GradientBoostingRegressor(n_estimators=3).fit(X, Y),
    "isolation": lambda: spinney.IsolationForest(n_estimators=3, random_state=0).fit(X),
    "embedding": lambda: spinney.RandomTreesEmbedding(n_estimators=3, random_state=0).fit(X),
    "functions": lambda: spinney.FunctionalBoostingRegressor(learners="trees", n_estimators=3).fit(X, Y),
}


def resealed(model, change):
    """Return the file of a model whose header was changed."""
    header, file = from_bytes(bytes_of(model))
    trees = [file.tree(t, [0] * model.n_features_in_) for t in range(file.n_trees)]
    change(header)
    return io.BytesIO(to_bytes(header, trees))


# ---- trees -----------------------------------------------------------------------------------------------------------


def with_surrogates_in_some_trees(family):
    """Return a model, and its file with a tree that has surrogate splits between trees that have none."""
    model = FAMILIES[family]()
    header, trees = model._file_parts()
    tree = spinney.DecisionTreeRegressor.rpart(maxdepth=3, minsplit=4).fit(X, Y)
    return model, tree, to_bytes(header, [trees[0], tree.tree_.engine, *trees[2:]])


@pytest.mark.parametrize("family", FAMILIES)
def test_surrogates_in_some_trees_of_an_ensemble_are_safe(family):
    model, _, data = with_surrogates_in_some_trees(family)
    loaded = spinney.load(io.BytesIO(data))
    rows = np.random.default_rng(1).normal(size=(500, 3))
    rows[np.random.default_rng(2).random(rows.shape) < 0.3] = np.nan
    for name in ("predict", "transform", "score_samples", "apply", "shap_values"):
        if hasattr(loaded, name):
            found = getattr(loaded, name)(rows)
            if not hasattr(found, "values"):  # the explanations of a forest are an object
                assert found.shape[0] == 500
    del model


def test_a_tree_with_surrogates_predicts_the_same_in_a_forest_and_alone():
    model, tree, data = with_surrogates_in_some_trees("forest")
    loaded = spinney.load(io.BytesIO(data))
    rows = X[np.isnan(X).any(axis=1)]
    alone = [np.asarray(member.predict(rows)) for member in model.estimators_]
    expected = (alone[0] + tree.predict(rows) + alone[2]) / 3
    np.testing.assert_allclose(loaded.predict(rows), expected, rtol=1e-12)


# ---- headers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1001, 2**31 - 1, -1])
def test_the_degree_of_a_file_has_the_bounds_of_fit(degree):
    model = spinney.SVR(kernel="poly").fit(np.nan_to_num(X), Y)
    with pytest.raises(spinney.ModelFileError, match="degree"):
        spinney.load(resealed(model, lambda header: _replaced(header, "degree", degree)))


def zeros(n_rows, n_columns):
    packer = zlib.compressobj(6)
    packed = b"".join(packer.compress(bytes(2**20)) for _ in range(n_rows * n_columns * 8 // 2**20))
    return {
        "type": "float64",
        "shape": [n_rows, n_columns],
        "data": base64.b64encode(packed + packer.flush()).decode("ascii"),
    }


def test_what_a_file_expands_to_is_bounded_by_its_size():
    model = spinney.SVR(kernel="rbf").fit(np.nan_to_num(X), Y)
    many = 2**20
    file = resealed(model, lambda header: _replaced(header, "vectors", zeros(many, 16)))
    tracemalloc.start()
    with pytest.raises(spinney.ModelFileError, match=r"which a file of .* bytes does not hold"):
        spinney.load(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20


def test_a_fitted_model_of_zeros_can_be_loaded():
    rows = np.zeros((30_000, 40))
    rows[:5] = 1.0
    model = spinney.KNeighborsRegressor(n_neighbors=1).fit(rows, np.zeros(30_000))
    data = bytes_of(model)
    assert len(data) < rows.nbytes / 4
    assert spinney.load(io.BytesIO(data)).predict(rows[:7]).tolist() == [0.0] * 7


def _replaced(header, key, value):
    """Replace the first entry of a name, at any depth."""
    for name, entry in list(header.items()):
        if name == key:
            header[name] = value
            return True
        if isinstance(entry, dict) and _replaced(entry, key, value):
            return True
    return False


# ---- pickles ---------------------------------------------------------------------------------------------------------


def damaged_imputer(change):
    imputer = spinney.ProximityImputer(n_estimators=3, n_iter=1, random_state=0).fit(X)
    change(imputer)
    return pickle.dumps(imputer)


def _leaf_far_away(imputer):
    imputer._donor_leaves.nodes[3, 1] = 2**40


def _leaf_of_another_tree(imputer):
    imputer._donor_leaves.nodes[0] = imputer._donor_leaves.nodes[0, ::-1]


def _fewer_rows(imputer):
    object.__setattr__(imputer._donors, "known", imputer._donors.known[:50])


def _other_columns(imputer):
    object.__setattr__(imputer._donors, "known", imputer._donors.known[:, :2])


def _no_forest(imputer):
    imputer.forest_ = None


def _no_leaves(imputer):
    del imputer._donor_leaves


@pytest.mark.parametrize(
    "change", [_leaf_far_away, _leaf_of_another_tree, _fewer_rows, _other_columns, _no_forest, _no_leaves]
)
def test_a_pickled_imputer_whose_leaves_do_not_fit_is_refused(change):
    with pytest.raises(spinney.ModelFileError, match="damaged"):
        pickle.loads(damaged_imputer(change))
