"""What docs/reproducibility.rst guarantees for the order of the rows, the unit of the weights and weights of 0."""

import numpy as np
import pytest
import spinney

RNG = np.random.default_rng(11)
N = 120
NUMBERS = RNG.normal(size=(N, 3)).round(2)
NUMBERS[RNG.random((N, 3)) < 0.1] = np.nan
WORDS = np.array(["r", "g", "b", "k"], dtype=object)[RNG.integers(0, 4, N)]
TABLE = {"a": NUMBERS[:, 0], "b": NUMBERS[:, 1], "c": NUMBERS[:, 2], "w": WORDS}
VALUES = np.nan_to_num(NUMBERS[:, 0]) * 2 + (WORDS == "r") + RNG.normal(size=N) / 4
CLASSES = np.array(["no", "yes", "perhaps"])[np.digitize(VALUES, [-0.5, 1.0])]
WEIGHT = RNG.integers(1, 4, N).astype(float)
ORDER = RNG.permutation(N)

_TREES = {"n_estimators": 5, "random_state": 3}
EXACT = {  # bit-identical for any order of the rows
    "tree": (spinney.DecisionTreeClassifier(), CLASSES),
    "surrogates": (spinney.DecisionTreeRegressor(missing="surrogate"), VALUES),
    "extra-tree": (spinney.ExtraTreeClassifier(random_state=3), CLASSES),
    "forest": (spinney.RandomForestClassifier(**_TREES), CLASSES),
    "oblique forest": (spinney.RandomForestRegressor(oblique=4, **_TREES), VALUES),
    "extra-trees": (spinney.ExtraTreesRegressor(**_TREES), VALUES),
    "isolation": (spinney.IsolationForest(**_TREES), None),
    "embedding": (spinney.RandomTreesEmbedding(sparse_output=False, **_TREES), None),
    "histogram": (spinney.HistogramClassifier(), CLASSES),
    "vote of trees": (spinney.VotingClassifier(["tree", "forest"], random_state=3), CLASSES),
}
CLOSE = {  # but for the last digits
    "histogram of values": (spinney.HistogramRegressor(), VALUES),
    "perceptron": (spinney.Perceptron(random_state=3), CLASSES),
    "linear": (spinney.LinearClassifier(), CLASSES),
    "ridge": (spinney.LinearRegressor(), VALUES),
    "svc": (spinney.SVC(), CLASSES),
    "svr": (spinney.SVR(), VALUES),
    "one class": (spinney.OneClassSVM(nu=0.3), None),
    "linear svc": (spinney.LinearSVC(), CLASSES),
    "linear svr": (spinney.LinearSVR(), VALUES),
    "neighbours": (spinney.KNeighborsRegressor(ties="all"), VALUES),
    "adaboost": (spinney.AdaBoostClassifier(n_estimators=3), CLASSES),
    "functional": (spinney.FunctionalBoostingRegressor(learners="linear", n_estimators=3), VALUES),
    "stack": (spinney.StackingClassifier(["tree", "linear"], cv=3, random_state=3), CLASSES),
    "vote": (spinney.VotingClassifier(["tree", "linear"]), CLASSES),
}
UNITLESS = {
    **EXACT,
    "boosting": (spinney.GradientBoostingRegressor(n_estimators=20), VALUES),
    "boosting of classes": (spinney.GradientBoostingClassifier(n_estimators=20), CLASSES),
    "adaboost": CLOSE["adaboost"],
}


def fitted(model, y, rows, weight):
    some = {name: column[rows] for name, column in TABLE.items()}
    return model.fit(some, *([] if y is None else [y[rows]]), sample_weight=None if weight is None else weight[rows])


def scores(model, y, rows, weight):
    model = fitted(model, y, rows, weight)
    methods = ("decision_function", "predict_proba", "score_samples", "predict", "transform")
    return getattr(model, next(name for name in methods if hasattr(model, name)))(TABLE)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "weighted"])
@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_the_order_of_the_rows_does_not_matter(name, weight):
    model, y = {**EXACT, **CLOSE}[name]
    first, second = scores(model, y, np.arange(N), weight), scores(model, y, ORDER, weight)
    np.testing.assert_allclose(second, first, rtol=0, atol=0 if name in EXACT else 1e-9)


def test_the_mean_of_a_cell_adds_its_rows_in_their_order():
    """The last digits differ, as docs/reproducibility.rst states."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1)), rng.normal(size=300)
    first, second = (
        spinney.HistogramRegressor(0.5).fit(X[rows], y[rows]) for rows in (slice(None), slice(None, None, -1))
    )
    assert not np.array_equal(first.predict(X), second.predict(X))
    np.testing.assert_allclose(first.predict(X), second.predict(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", UNITLESS)
def test_twice_the_weights_change_no_bit(name):
    model, y = UNITLESS[name]
    rows = np.arange(N)
    np.testing.assert_array_equal(scores(model, y, rows, 2 * WEIGHT), scores(model, y, rows, WEIGHT))


@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_rows_of_weight_0_are_left_out(name):
    model, y = {**EXACT, **CLOSE}[name]
    weight = np.where((np.arange(N) % 5 == 0) & (np.arange(N) > 20), 0.0, WEIGHT)
    first, second = scores(model, y, np.arange(N), weight), scores(model, y, np.flatnonzero(weight), weight)
    np.testing.assert_allclose(second, first, rtol=0, atol=0 if name in EXACT else 1e-9)


@pytest.mark.parametrize("cell", ["cv", 0.1, 0.3])
@pytest.mark.parametrize("name", ["HistogramRegressor", "HistogramClassifier"])
def test_the_order_of_the_columns_does_not_matter_to_histograms(name, cell):
    """Distances of cells are integers: many are equally near."""
    y = VALUES if name == "HistogramRegressor" else CLASSES
    other = {column: TABLE[column] for column in ("w", "c", "a", "b")}
    models = [getattr(spinney, name)(cell).fit(table, y, sample_weight=WEIGHT) for table in (TABLE, other)]
    new = {column: np.roll(values, shift) for shift, (column, values) in enumerate(TABLE.items())}
    first, second = ((model.predict_proba if y is CLASSES else model.predict)(new) for model in models)
    np.testing.assert_array_equal(second, first)


def test_intercepts_of_several_classes_sum_to_0():
    """A number added to all of them changes no probability; rounding would choose it."""
    stack = fitted(spinney.StackingClassifier(["tree", "linear"], cv=3, random_state=3), CLASSES, ORDER, WEIGHT)
    assert abs(stack.final_estimator_.intercept_.sum()) < 1e-9
