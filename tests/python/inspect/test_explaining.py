"""Partial dependence, permutation importance, interactions and nearest rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import explaining as slow
from sklearn.ensemble import RandomForestClassifier as SklearnForest
from sklearn.ensemble import RandomForestRegressor as SklearnForestRegressor
from sklearn.inspection import partial_dependence as sklearn_dependence
from sklearn.inspection import permutation_importance as sklearn_permutation
from sklearn.linear_model import LinearRegression
from sklearn.metrics import check_scoring
from sklearn.tree import DecisionTreeRegressor as SklearnTree
from spinney._model.tree import FittedTree

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def mixed(n=160, seed=0):
    """Return a table with missing numbers, integers, categories, dates and booleans, and a target with interactions."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": random.normal(size=n).round(2),
            "rooms": random.integers(1, 6, n),
            "town": random.choice(["Bergen", "Oslo", "Vadsø"], n),
            "sold": pd.date_range("2020-01-01", periods=n, freq="D")[random.permutation(n)],
            "garden": random.random(n) < 0.5,
        }
    )
    X.loc[::9, "size"] = np.nan
    y = X["size"].fillna(0) * (1 + X["garden"]) + X["rooms"] * (X["town"] == "Oslo") + random.normal(size=n) * 0.1
    return X, y.to_numpy()


X, Y = mixed()
CLASSES = np.where(Y > 1.5, "high", np.where(Y > 0, "middle", "low"))
MODELS = {
    "tree": spinney.DecisionTreeRegressor(max_depth=5).fit(X, Y),
    "forest": spinney.RandomForestRegressor(7, random_state=0).fit(X, Y),
    "classes": spinney.RandomForestClassifier(7, random_state=0).fit(X, CLASSES),
    "boosting": spinney.GradientBoostingRegressor(n_estimators=8, random_state=0).fit(X, Y),
    "multiclass boosting": spinney.GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, CLASSES),
    "binary boosting": spinney.GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, Y > 0),
    "deep boosting": spinney.GradientBoostingRegressor(n_estimators=3, max_leaf_nodes=300, random_state=0).fit(X, Y),
}
WITH_INIT = spinney.GradientBoostingRegressor(
    n_estimators=3, init=spinney.DecisionTreeRegressor(max_depth=4), random_state=0
).fit(X, Y)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("columns", ["size", "rooms", "town", "sold", "garden", ("size", "town"), (1, 4)])
def test_one_pass_through_the_trees_is_bit_identical_to_brute_force(name, columns):
    model = MODELS[name]
    weight = np.arange(len(X)) % 3
    for extra in ({"sample_weight": weight}, {"grid": "even", "individual": True}):
        fast = spinney.partial_dependence(model, X, columns, n_points=9, **extra)
        brute = spinney.partial_dependence(model, X, columns, n_points=9, method="brute", **extra)
        assert (fast.method, brute.method) == ("trees", "brute")
        assert np.array_equal(fast.average, brute.average)
        assert extra.get("individual") is None or np.array_equal(fast.individual, brute.individual)


def test_boosting_with_an_init_estimator():
    for columns in ("rooms", ("size", "town")):
        fast = spinney.partial_dependence(WITH_INIT, X, columns, n_points=9)
        brute = spinney.partial_dependence(WITH_INIT, X, columns, n_points=9, method="brute")
        assert np.array_equal(fast.average, brute.average)
    with pytest.raises(ValueError, match=r"method='recursion' needs .* without an init estimator"):
        spinney.partial_dependence(WITH_INIT, X, "rooms", method="recursion")


@pytest.mark.parametrize("name", ["multiclass boosting", "binary boosting"])
def test_scores_of_boosting_are_bit_identical_too(name):
    for columns in ("size", "town"):
        found = [
            spinney.partial_dependence(MODELS[name], X, columns, response_method="decision_function", method=method)
            for method in ("auto", "brute")
        ]
        assert np.array_equal(found[0].average, found[1].average)


def test_several_batches_of_points():
    model = MODELS["forest"]
    fast = spinney.partial_dependence(model, X, ("size", "sold"), n_points=12)
    assert fast.average.size > 2 * 64
    brute = spinney.partial_dependence(model, X, ("size", "sold"), n_points=12, method="brute")
    assert np.array_equal(fast.average, brute.average)


def numbers_of(X):
    """Return the table as numbers."""
    town = X["town"].map({"Bergen": 0, "Oslo": 1, "Vadsø": 2})
    sold = (X["sold"] - pd.Timestamp("1970-01-01")).dt.total_seconds()
    return np.column_stack([X["size"], X["rooms"], town, sold, X["garden"]]).astype(float)


def test_reference_implementation():
    tree = MODELS["tree"].tree_
    rows = numbers_of(X)[:40]
    for columns in ([0], [2], [1, 2]):
        found = spinney.partial_dependence(MODELS["tree"], X[:40], columns, individual=True, n_points=6)
        points = np.array(np.meshgrid(*found.numbers, indexing="ij")).reshape(len(columns), -1).T
        expected = slow.individual(lambda row: slow.leaf_value(tree, row)[0], rows, columns, points)
        assert np.array_equal(found.individual.reshape(40, -1), expected)
        assert np.allclose(found.average.ravel(), expected.mean(axis=0), rtol=1e-13)
        weighted = spinney.partial_dependence(MODELS["tree"], X[:40], columns, method="recursion", n_points=6)
        expected = [slow.by_training_weight(tree, dict(zip(columns, point, strict=True)))[0] for point in points]
        assert np.allclose(weighted.average.ravel(), expected, rtol=1e-12)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_curves_of_any_table(seed):
    random = np.random.default_rng(seed)
    n, p = int(random.integers(2, 30)), int(random.integers(1, 4))
    Z = random.integers(0, int(random.integers(2, 9)), (n, p)).astype(float)
    Z[random.random((n, p)) < 0.1] = np.nan
    Z[0] = 0
    model = spinney.RandomForestRegressor(3, random_state=seed % 1000).fit(Z, random.normal(size=n))
    column = int(random.integers(p))
    found = spinney.partial_dependence(model, Z, column, individual=True)
    brute = spinney.partial_dependence(model, Z, column, individual=True, method="brute")
    assert np.array_equal(found.individual, brute.individual)
    index = np.searchsorted(found.numbers[0], Z[:, column])
    known = ~np.isnan(Z[:, column])
    assert np.array_equal(found.individual[known, index[known]], model.predict(Z[known]))  # at its own value
    twice = spinney.partial_dependence(model, np.vstack([Z, Z[:1]]), column)
    weighted = spinney.partial_dependence(model, Z, column, sample_weight=np.r_[2, np.ones(n - 1)])
    assert np.allclose(twice.average, weighted.average, rtol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_do_not_depend_on_the_number_of_threads(n_jobs):
    model = spinney.RandomForestRegressor(7, random_state=0, n_jobs=n_jobs).fit(X, Y)
    found = spinney.partial_dependence(model, X, "size", individual=True)
    assert np.array_equal(
        found.individual, spinney.partial_dependence(MODELS["forest"], X, "size", individual=True).individual
    )


NUMBERS = np.random.default_rng(1).normal(size=(120, 3))
TARGET = NUMBERS[:, 0] * NUMBERS[:, 1] + NUMBERS[:, 2]


def test_scikit_learn_agrees_by_rows():
    peer = SklearnForestRegressor(5, random_state=0).fit(NUMBERS, TARGET)
    weight = np.random.default_rng(2).random(120)
    for columns in ([0], [0, 2]):
        own = spinney.partial_dependence(peer, NUMBERS, columns, n_points=7, individual=True, sample_weight=weight)
        theirs = sklearn_dependence(
            peer,
            NUMBERS,
            columns,
            custom_values=dict(zip(columns, own.grid, strict=True)),
            method="brute",
            kind="both",
            sample_weight=weight,
        )
        assert np.array_equal(own.individual, theirs["individual"][0])
        assert np.allclose(own.average, theirs["average"][0], rtol=1e-12)
    classes = SklearnForest(5, random_state=0).fit(NUMBERS, TARGET > 0)
    own = spinney.partial_dependence(classes, NUMBERS, 1, grid="even", n_points=11, percentiles=(0, 1))
    theirs = sklearn_dependence(classes, NUMBERS, [1], grid_resolution=11, percentiles=(0, 1), method="brute")
    assert np.allclose(own.grid[0], theirs["grid_values"][0])
    assert np.allclose(own.average, theirs["average"][0], rtol=1e-12)


def test_scikit_learn_agrees_by_training_weight():
    own = spinney.DecisionTreeRegressor(min_samples_leaf=8, random_state=0).fit(NUMBERS, TARGET)
    peer = SklearnTree(min_samples_leaf=8, random_state=0).fit(NUMBERS, TARGET)
    assert np.array_equal(own.tree_.feature, peer.tree_.feature)
    found = spinney.partial_dependence(own, NUMBERS, (0, 1), method="recursion", n_points=6)
    custom = dict(enumerate(found.grid))
    theirs = sklearn_dependence(peer, NUMBERS, [0, 1], custom_values=custom, method="recursion")
    assert np.allclose(found.average, theirs["average"][0], rtol=1e-6)  # scikit-learn uses float32
    boosted = MODELS["binary boosting"]
    weighted = spinney.partial_dependence(boosted, X, "size", method="recursion", n_points=5)
    assert weighted.of == "score of class True"
    trees = [FittedTree(tree, None, 1) for tree in boosted.boosting_.trees()]
    expected = [sum(slow.by_training_weight(tree, {0: x})[0] for tree in trees) for x in weighted.numbers[0]]
    assert np.allclose(weighted.average, expected + boosted.boosting_.start, rtol=1e-12)
    with pytest.raises(ValueError, match="averages scores"):
        spinney.partial_dependence(boosted, X, "rooms", method="recursion", response_method="predict_proba")


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "dict", "rows", "array", "sparse"])
def test_tables_of_any_kind(kind):
    import pyarrow as pa
    from scipy.sparse import csr_array

    Z = pd.DataFrame(NUMBERS[:40].round(1), columns=["a", "b", "c"])
    table = {
        "pandas": Z,
        "polars": pl.from_pandas(Z),
        "arrow": pa.Table.from_pandas(Z),
        "dict": {name: Z[name].tolist() for name in Z},
        "rows": Z.to_numpy().tolist(),
        "array": Z.to_numpy(),
        "sparse": csr_array(Z.to_numpy()),
    }[kind]
    model = spinney.RandomForestRegressor(3, random_state=0).fit(table, TARGET[:40])
    expected = spinney.partial_dependence(spinney.RandomForestRegressor(3, random_state=0).fit(Z, TARGET[:40]), Z, 1)
    for method in ("auto", "brute"):
        found = spinney.partial_dependence(model, table, 1, method=method, grid=expected.grid[0])
        assert np.array_equal(found.average, expected.average)
    assert spinney.permutation_importance(model, table, TARGET[:40], n_repeats=1).importance[0] > 0
    assert len(spinney.nearest_rows(model, table, 3)) == 5


def test_grid_values_that_do_not_occur_and_outputs():
    found = spinney.partial_dependence(MODELS["classes"], X, "town", grid=["Vadsø", "Oslo"])
    assert list(found.grid[0]) == ["Vadsø", "Oslo"]
    assert found.outputs == ["high", "low", "middle"]
    assert np.allclose(found.average.sum(axis=1), 1)
    high = spinney.partial_dependence(MODELS["classes"], X, "town", grid=["Vadsø", "Oslo"], output="high")
    assert np.array_equal(high.average, found.output("high").average)
    assert high.of == "probability of class high"
    half = spinney.partial_dependence(MODELS["forest"], X, "rooms", grid=[2.5], method="brute")
    assert np.array_equal(half.average, spinney.partial_dependence(MODELS["forest"], X, "rooms", grid=[2.5]).average)
    dates = spinney.partial_dependence(MODELS["tree"], X, "sold", grid=["2020-02-01", "2021-02-01"])
    assert [str(day) for day in dates.grid[0]] == ["2020-02-01", "2021-02-01"]


def test_centred_curves_and_frames():
    found = spinney.partial_dependence(MODELS["forest"], X, "size", individual=True)
    centred = found.centred()
    assert not centred.individual[:, 0].any()
    assert centred.average[0] == 0
    assert np.allclose(centred.average, found.average - found.average[0])
    frame = found.to_frame("polars")
    assert frame.columns == ["size", "(average)"]
    assert len(frame) == len(found.grid[0])
    assert repr(found).startswith("<PartialDependence of the prediction on size: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "sizes"}, "Did you mean 'size'"),
        ({"columns": [0, 1, 2]}, "one column or a pair"),
        ({"columns": [0, 0]}, "names 'size' twice"),
        ({"columns": 0, "method": "fast"}, "method must be"),
        ({"columns": 0, "grid": "log"}, "grid must be"),
        ({"columns": "town", "grid": ["Roma"]}, "has 'Roma', which is not a value"),
        ({"columns": 0, "n_points": 1}, "n_points must be"),
        ({"columns": 0, "percentiles": (0.9, 0.1)}, "percentiles must be"),
        ({"columns": 0, "response_method": "decision_function"}, "has no decision_function"),
        ({"columns": 0, "method": "recursion", "individual": True}, "uses no rows"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        spinney.partial_dependence(MODELS["forest"], X, **options)


# ---- permutation ---------------------------------------------------------------------------------------------------


def test_permutation_importance_agrees_with_scikit_learn():
    for Z, peer in (
        (NUMBERS, SklearnForest(5, random_state=0)),
        (pd.DataFrame(NUMBERS, columns=list("abc")), LinearRegression()),
    ):
        y = TARGET > 0 if isinstance(peer, SklearnForest) else TARGET
        peer.fit(Z, y)
        weight = np.arange(120) % 4
        for scoring in (None, "neg_log_loss" if isinstance(peer, SklearnForest) else "neg_mean_absolute_error"):
            own = spinney.permutation_importance(
                peer, Z, y, scoring=scoring, n_repeats=3, random_state=5, sample_weight=weight, n_jobs=2
            )
            theirs = sklearn_permutation(peer, Z, y, scoring=scoring, n_repeats=3, random_state=5, sample_weight=weight)
            assert np.array_equal(own.by_tree.T, theirs.importances)
            assert np.allclose(own.standard_error, theirs.importances.std(axis=1, ddof=1) / np.sqrt(3))


METRICS = {
    "classes": (CLASSES, ["neg_log_loss"]),
    "multiclass boosting": (CLASSES, ["neg_log_loss", "roc_auc_ovr"]),
    "binary boosting": (Y > 0, ["neg_log_loss", "roc_auc"]),
}


QUICK = ("classes", "boosting")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in (*MODELS, "with init")],
)
def test_batched_permutations_agree_with_scikit_learn(name):
    model = MODELS.get(name, WITH_INIT)
    y, metrics = METRICS.get(name, (Y, ["neg_mean_absolute_error"]))
    weight = np.arange(len(X)) % 4
    for scoring in (None, *metrics):
        options = {"scoring": scoring, "n_repeats": 3, "random_state": 5, "sample_weight": weight}
        found = spinney.permutation_importance(model, X, y, **options)
        assert np.array_equal(found.by_tree.T, sklearn_permutation(model, X, y, **options).importances)
        slow = spinney.permutation_importance(
            model, X, y, **options | {"scoring": check_scoring(model, scoring=scoring)}
        )
        assert np.array_equal(found.by_tree, slow.by_tree)  # a custom scorer gets the model itself
    many = spinney.permutation_importance(model, X[:50], y[:50], n_repeats=70).by_tree
    assert np.array_equal(many[:5], spinney.permutation_importance(model, X[:50], y[:50], n_repeats=5).by_tree)


def test_out_of_bag_permutation_uses_out_of_bag_trees():
    model = spinney.RandomForestClassifier(25, random_state=0, oob_score=True).fit(X, CLASSES)
    found = spinney.permutation_importance(model, X, CLASSES, rows="out_of_bag")
    assert -found.tree_loss == model.oob_score_
    threads = spinney.permutation_importance(model, X, CLASSES, rows="out_of_bag", n_jobs=2)
    assert np.array_equal(found.by_tree, threads.by_tree)
    assert found.importance[found.names.index("size")] > found.importance[found.names.index("sold")]
    loss = spinney.permutation_importance(model, X, CLASSES, rows="out_of_bag", scoring="neg_log_loss", n_repeats=2)
    assert str(loss).startswith("Decrease in neg_log_loss when permuted, 2 permutations\nneg_log_loss of the model: -")
    noise = np.random.default_rng(0).permutation(CLASSES)  # the model has memorised these rows
    known = spinney.RandomForestClassifier(25, random_state=0).fit(X, noise)
    assert -spinney.permutation_importance(known, X, noise, n_repeats=1).tree_loss > 0.9
    assert -spinney.permutation_importance(known, X, noise, n_repeats=1, rows="out_of_bag").tree_loss < 0.6
    with pytest.raises(ValueError, match="needs a forest of spinney"):
        spinney.permutation_importance(MODELS["tree"], X, Y, rows="out_of_bag")


def test_permutation_over_folds_and_of_groups():
    model = spinney.DecisionTreeRegressor(max_depth=4)
    found = spinney.permutation_importance(model, X, Y, cv=3, groups={"where": ["town", "rooms"]}, n_repeats=2)
    assert found.names == ["size", "where", "sold", "garden"]
    assert found.by_tree.shape == (3, 4)
    assert found.unit == "fold"
    assert found.n_splits is None
    assert not hasattr(model, "tree_")
    assert "n_splits" not in found.to_frame("polars").columns
    together = spinney.permutation_importance(MODELS["forest"], X, Y, groups=[["town", "rooms"]], n_repeats=1)
    order = np.arange(len(X))
    np.random.RandomState(np.random.RandomState(0).randint(2**31)).shuffle(order)
    shuffled = X.assign(town=X["town"].to_numpy()[order], rooms=X["rooms"].to_numpy()[order])
    model = MODELS["forest"]
    assert together.importance[1] == model.score(X, Y) - model.score(shuffled, Y)


def test_errors_of_permutation_importance():
    for options, message in (
        ({"rows": "oob"}, "rows must be"),
        ({"n_repeats": 0}, "n_repeats must be"),
        ({"rows": "out_of_bag", "cv": 3}, "Leave one of"),
    ):
        with pytest.raises(ValueError, match=message):
            spinney.permutation_importance(MODELS["forest"], X, Y, **options)
    with pytest.raises(ValueError, match="y has 3 values"):
        spinney.permutation_importance(MODELS["forest"], X, Y[:3])


# ---- interactions --------------------------------------------------------------------------------------------------


def test_interactions_agree_with_their_definition():
    Z = NUMBERS[:7]
    model = spinney.GradientBoostingRegressor(n_estimators=10, random_state=0).fit(NUMBERS, TARGET)
    found = spinney.interaction_strength(model, Z)
    for k, (a, b) in enumerate(found.pairs):
        expected = slow.interaction(lambda row: model.predict(row[np.newaxis])[0], Z, int(a[1]), int(b[1]))
        assert found.pairwise[k] == pytest.approx(expected, rel=1e-9)
    for j in range(3):
        expected = slow.interaction(lambda row: model.predict(row[np.newaxis])[0], Z, j, None)
        assert found.overall[j] == pytest.approx(expected, rel=1e-9)
    assert spinney.interaction_strength(model, NUMBERS, n_rows=60).pairs[0] == ("x0", "x1")
    assert np.isnan(np.diag(found.matrix())).all()
    assert np.nanmax(found.matrix()) == found.pairwise[0]
    assert found.to_frame("polars").columns == ["column", "other", "strength", "size"]


def test_additive_models_have_no_interactions():
    stumps = spinney.GradientBoostingRegressor(n_estimators=20, max_depth=1, random_state=0).fit(NUMBERS, TARGET)
    found = spinney.interaction_strength(stumps, NUMBERS, n_rows=30)
    assert found.overall.max() < 1e-7
    assert found.pairwise.max() < 1e-7
    peer = LinearRegression().fit(NUMBERS, TARGET)
    assert spinney.interaction_strength(peer, NUMBERS, n_rows=20).pairwise.max() < 1e-6
    assert "with any other column" in str(found)


# ---- nearest rows --------------------------------------------------------------------------------------------------


def test_nearest_rows_share_leaves():
    forest = MODELS["forest"]
    found = spinney.nearest_rows(forest, X, 7, y=Y, n=4)
    leaves = forest.apply(X)
    similarity = (leaves == leaves[7]).mean(axis=1)
    similarity[7] = -1
    assert found.method == "leaves"
    assert 7 not in found.rows
    assert np.array_equal(found.similarity, np.sort(similarity)[::-1][:4])
    assert np.array_equal(found.target, Y[found.rows])
    by_value = spinney.nearest_rows(forest, X, X.iloc[7].to_dict(), n=1)
    assert by_value.rows[0] == 7
    assert by_value.similarity[0] == 1
    assert by_value.distance[0] == 0
    assert spinney.nearest_rows(forest, X, X.iloc[7], n=1).rows[0] == 7
    assert found.to_frame("polars")["town"].to_list() == X["town"].iloc[found.rows].tolist()


def test_nearest_rows_of_other_models():
    LGBMRegressor = pytest.importorskip("lightgbm").LGBMRegressor

    for model in (
        LinearRegression(),
        SklearnForestRegressor(5, random_state=0),
        LGBMRegressor(n_estimators=3, verbose=-1, min_child_samples=5),
        spinney.GradientBoostingRegressor(n_estimators=5, random_state=0),
        spinney.KNeighborsRegressor(),
    ):
        model.fit(NUMBERS, TARGET)
        found = spinney.nearest_rows(model, NUMBERS, NUMBERS[3], n=2)
        assert found.rows[0] == 3
        assert found.similarity[0] == 1
        assert found.method == (
            "distance" if type(model).__name__ in ("LinearRegression", "KNeighborsRegressor") else "leaves"
        )
    with pytest.raises(ValueError, match="has no leaves"):
        spinney.nearest_rows(LinearRegression().fit(NUMBERS, TARGET), NUMBERS, 0, method="leaves")
    with pytest.raises(ValueError, match="row is 400"):
        spinney.nearest_rows(model, NUMBERS, 400)
    with pytest.raises(ValueError, match="has 2 values"):
        spinney.nearest_rows(model, NUMBERS, [1.0, 2.0])


@pytest.mark.slow
def test_plots():
    import matplotlib.pyplot as plt

    drawn = [
        spinney.partial_dependence(MODELS["forest"], X, "size", individual=True).plot(),
        spinney.partial_dependence(MODELS["classes"], X, "town", individual=True).plot(),
        spinney.partial_dependence(MODELS["tree"], X, "sold").plot(),
        spinney.partial_dependence(MODELS["tree"], X, ("size", "rooms")).plot(),
        spinney.partial_dependence(MODELS["classes"], X, ("town", "size"), n_points=5).plot(output="high"),
        spinney.interaction_strength(MODELS["tree"], X, n_rows=10).plot(),
        spinney.nearest_rows(MODELS["tree"], X, 1).plot(),
        spinney.permutation_importance(MODELS["tree"], X, Y, n_repeats=2).plot(),
    ]
    for ax in drawn:
        ax.figure.canvas.draw()
        plt.close(ax.figure)
    with pytest.raises(ValueError, match="A map shows one output"):
        spinney.partial_dependence(MODELS["classes"], X, ("town", "size"), n_points=5).plot()


def test_dependence_on_trees_is_drawn_in_steps():
    X, y = np.arange(8.0)[:, None], np.repeat([0.0, 1.0], 4)
    tree = spinney.DecisionTreeRegressor().fit(X, y)
    line = spinney.partial_dependence(tree, X, 0).plot().get_lines()[0]
    assert line.get_drawstyle() == "steps-mid"
    step = np.flatnonzero(np.diff(line.get_ydata()))
    assert line.get_xdata()[[step[0], step[0] + 1]].mean() == tree.tree_.threshold[0]
    linear = spinney.LinearRegressor().fit(X, y)
    assert spinney.partial_dependence(linear, X, 0).plot().get_lines()[0].get_drawstyle() == "default"
