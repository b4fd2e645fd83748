"""Small models to be written in other formats, and rows that tell whether a reader decides as they do."""

import warnings

import numpy as np
import spinney
from spinney._ensemble.weighted_stack import weighted_stack
from spinney._model.predictions import Curve

N_ROWS = 90
_RNG = np.random.default_rng(11)
COLOURS = ["red", "green", "a 'quoted' \"word\" \\ ; -- $x", "blå", ""]


def _table():
    numbers = _RNG.normal(size=(N_ROWS, 3))
    numbers[:, 1] = numbers[:, 1].round(1) * 1e-7
    numbers[:, 2] = np.exp(20 * numbers[:, 2])
    numbers[_RNG.random((N_ROWS, 3)) < 0.15] = np.nan
    words = np.array(COLOURS, dtype=object)[_RNG.integers(0, 5, N_ROWS)]
    words[::11] = None
    flags = _RNG.random(N_ROWS) < 0.5
    return {"size": numbers[:, 0], 'we"ight': numbers[:, 1], "big": numbers[:, 2], "flag": flags, "colour": words}


MIXED = _table()
NUMBERS = np.column_stack([MIXED["size"], MIXED['we"ight'], MIXED["big"]])
_SIGNAL = np.nan_to_num(MIXED["size"]) + np.isin(MIXED["colour"].astype(str), COLOURS[:2]) - MIXED["flag"]
VALUES = _SIGNAL + 0.3 * _RNG.normal(size=N_ROWS)
COUNTS = np.round(np.exp(VALUES))
PAIR = np.where(VALUES > 0.3, "yes", "no's").astype(object)
THREE = np.array(["low", "mid", "high"], dtype=object)[np.digitize(VALUES, [-0.4, 0.7])]
CODES = np.digitize(VALUES, [-0.4, 0.7]) * 10
PRICES = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
MANY = {"name": np.array([f"n{i:03d}" for i in _RNG.integers(0, 150, 600)], dtype=object), "x": _RNG.normal(size=600)}
_OF_NAME = _RNG.normal(size=150)
MANY_VALUES = np.array([_OF_NAME[int(name[1:])] for name in MANY["name"]]) + 0.1 * MANY["x"]
GRADED = {
    "grade": np.array([1, 2, 3, 5, 8])[_RNG.integers(0, 5, N_ROWS)].astype(float),
    "x": MIXED["size"],
}
CROSSED = GRADED | {"shape": np.array(["flat", "round", "tall", None], dtype=object)[np.arange(N_ROWS) * 7 % 11 % 4]}
CROSSES = {
    "feature_combinations": [("shape", "*", "grade"), ("x", "-", "y")],
    "categorical_features": ["grade", "shape"],
}
CROSSED["y"] = np.round(CROSSED["x"] ** 2, 2)
_CROSSED_VALUES = VALUES + (CROSSED["shape"] == "flat") * np.sin(CROSSED["grade"])


def _fitted(name, X, y, **parameters):
    kind = getattr(spinney, name)
    seed = {"random_state": 5} if "random_state" in kind().get_params(deep=False) else {}
    with warnings.catch_warnings(action="ignore"):
        return kind(**seed, **parameters).fit(X, *(() if y is None else (y,)))


def _with_costs(name):
    def make():
        kind = getattr(spinney, name)
        size = {} if "Tree" in name else {"n_estimators": 6}
        return kind(random_state=5, max_depth=4, cost_matrix=PRICES, **size).fit(MIXED, CODES)

    return make


PAIRS = [
    ("size", "+", 'we"ight'),
    ("size", "*", "big"),
    ('we"ight', "/", "size"),
    ("big", "/", "flag"),
    ("big", "-", 0),
]
_SMALL = {"n_estimators": 8, "max_leaf_nodes": 7, "min_samples_leaf": 3}
_GBC, _GBR = "GradientBoostingClassifier", "GradientBoostingRegressor"
_MAKERS = {
    "tree of values": ("DecisionTreeRegressor", MIXED, VALUES, {"max_depth": 5}),
    "tree of classes": ("DecisionTreeClassifier", MIXED, THREE, {}),
    "tree of numbers": ("DecisionTreeClassifier", NUMBERS, CODES, {}),
    "a leaf": ("DecisionTreeRegressor", NUMBERS, np.full(N_ROWS, 0.1), {}),
    "competitors": ("DecisionTreeClassifier", MIXED, PAIR, {"max_competitors": 2, "max_depth": 4}),
    "random tree": ("ExtraTreeRegressor", MIXED, VALUES, {"max_depth": 6}),
    "forest of values": ("RandomForestRegressor", MIXED, VALUES, {"n_estimators": 7, "max_depth": 6}),
    "forest of classes": ("RandomForestClassifier", MIXED, THREE, {"n_estimators": 7, "max_depth": 6}),
    "forest, other": ("RandomForestClassifier", MIXED, PAIR, {"n_estimators": 5, "unseen": "other"}),
    "extra trees": ("ExtraTreesRegressor", MIXED, VALUES, {"n_estimators": 7, "max_depth": 6}),
    "boosting": (_GBR, MIXED, VALUES, _SMALL),
    "boosting, other": (_GBR, MIXED, VALUES, _SMALL | {"unseen": "other", "categories": {"max_one_hot": 0}}),
    "boosting, absolute": (_GBR, MIXED, VALUES, _SMALL | {"loss": "absolute_error"}),
    "boosting of counts": (_GBR, MIXED, COUNTS, _SMALL | {"loss": "poisson"}),
    "boosting of two": (_GBC, MIXED, PAIR, _SMALL),
    "boosting of three": (_GBC, MIXED, THREE, _SMALL),
    "boosting, exponential": (_GBC, MIXED, PAIR, _SMALL | {"loss": "exponential"}),
    "boosting, hinge": (_GBC, MIXED, PAIR, _SMALL | {"loss": "smooth_hinge"}),
    "boosting, focal": (_GBC, MIXED, PAIR, _SMALL | {"loss": "focal"}),
    "boosting, linear": (_GBR, MIXED, VALUES, _SMALL | {"linear_leaves": True}),
    "boosting of three, linear": (_GBC, MIXED, THREE, _SMALL | {"linear_leaves": True}),
    "default settings": (_GBR, MIXED, VALUES, {}),
    "recipe": (_GBR, MIXED, VALUES, {"linear_leaves": False}),
    "recipe of classes": (_GBC, MIXED, THREE, {"linear_leaves": False}),
    "adaboost": ("AdaBoostClassifier", MIXED, PAIR, {"n_estimators": 5}),
    "adaboost of three": ("AdaBoostClassifier", MIXED, THREE, {"n_estimators": 5}),
    "gentle adaboost": ("AdaBoostClassifier", MIXED, THREE, {"n_estimators": 5, "algorithm": "gentle"}),
    "isolation": ("IsolationForest", MIXED, None, {"n_estimators": 9, "contamination": 0.1}),
    "many categories": (_GBR, MANY, MANY_VALUES, _SMALL | {"categories": {"max_one_hot": 0}}),
    "number categories": ("DecisionTreeRegressor", GRADED, VALUES, {"categorical_features": ["grade"]}),
    "combined columns": (_GBR, MIXED, VALUES, _SMALL | {"linear_leaves": True, "feature_combinations": PAIRS}),
    "combined columns of three": (_GBC, MIXED, THREE, _SMALL | {"feature_combinations": PAIRS}),
    "crossed columns": (_GBR, CROSSED, _CROSSED_VALUES, _SMALL | CROSSES | {"categories": {"max_one_hot": 0}}),
    "crossed columns, other": (_GBR, CROSSED, _CROSSED_VALUES, _SMALL | CROSSES | {"unseen": "other"}),
    "oblique": ("RandomForestRegressor", MIXED, VALUES, {"n_estimators": 5, "oblique": 6, "max_depth": 5}),
    "several": ("RandomForestRegressor", MIXED, np.column_stack([VALUES, COUNTS]), {"n_estimators": 5, "max_depth": 4}),
    "surrogates": ("DecisionTreeClassifier", MIXED, PAIR, {"missing": "surrogate"}),
}
MODELS = {name: (lambda found=found: _fitted(*found[:3], **found[3])) for name, found in _MAKERS.items()}
MODELS |= {
    "costs of a tree": _with_costs("DecisionTreeClassifier"),
    "costs of a forest": _with_costs("RandomForestClassifier"),
}


def _average(y, weights, *, temperatures=None, calibration=None, **members):
    """Return an average of models; the second is fitted to a third of the rows, so that it lacks a colour."""

    def make():
        fitted = {}
        for k, (name, (kind, parameters)) in enumerate(members.items()):
            rows = np.flatnonzero(MIXED["colour"] != "green")[::2] if k == 1 else np.arange(N_ROWS)
            fitted[name] = _fitted(kind, {key: values[rows] for key, values in MIXED.items()}, y[rows], **parameters)
        classes = np.unique(y) if y.dtype == object else None
        more = {"scores": {}, "temperatures": temperatures, "calibration": calibration}
        return weighted_stack(fitted, weights, MIXED, classes, **more)

    return make


def _vote():
    return spinney.VotingClassifier(["tree", "extra-trees"], weights=[1, 3], random_state=0).fit(MIXED, PAIR)


_CURVE = Curve(np.array([0.1, 0.3, 0.8]), np.array([0.05, 0.4, 0.9]))
_TREE = ("DecisionTreeClassifier", {"max_depth": 4})
_FOREST = ("RandomForestClassifier", {"n_estimators": 5, "max_depth": 4})
_TREES_OF_VALUES = {
    "boosting": (_GBR, _SMALL),
    "forest": ("RandomForestRegressor", {"n_estimators": 5, "max_depth": 4}),
    "counts": (_GBR, _SMALL | {"loss": "absolute_error"}),
}
AVERAGES = {
    "mean of values": _average(VALUES, [0.5, 0.2, 0.3], **_TREES_OF_VALUES),
    "mean of two": _average(PAIR, [0.3, 0.7], tree=_TREE, forest=_FOREST),
    "tempered of two": _average(
        *(PAIR, [0.3, 0.3, 0.4]), temperatures=[2.0, 0.7, 1.1], tree=_TREE, forest=_FOREST, boosting=(_GBC, _SMALL)
    ),
    "curve of two": _average(PAIR, [0.4, 0.6], calibration=_CURVE, boosting=(_GBC, _SMALL), forest=_FOREST),
    "calibrated tree": _average(PAIR, [1.0], calibration=_CURVE, tree=_TREE),
    "tempered of three": _average(
        *(THREE, [0.5, 0.2, 0.3]),
        **{"temperatures": [0.8, 1.5, 1.0], "calibration": 1.3, "boosting": (_GBC, _SMALL), "forest": _FOREST},
        adaboost=("AdaBoostClassifier", {"n_estimators": 4}),
    ),
    "vote": _vote,
}

LINEAR_AVERAGE = _average(
    *(PAIR, [0.6, 0.4]), temperatures=[1.2, 0.8], boosting=(_GBC, _SMALL | {"linear_leaves": True}), forest=_FOREST
)


def models_in(model):
    """Return the members of an average, or the model itself."""
    return model.estimators_ if hasattr(model, "_weighted_mean") else [model]


def schema_of(model):
    """Return the schema of a model; of an average, that of the first member, which is fitted to all rows."""
    return models_in(model)[0].schema_


def probe(model, n_more=60, seed=0):
    """Rows at and beside every cut, with missing values, infinities and categories that did not occur at fit.

    Returns
    -------
    dict of ndarray
        Columns by name (x0 … for a model without names): float64, bool, or objects with None.
    """
    rng = np.random.default_rng(seed)
    cuts = cuts_of(model)
    columns = {}
    pools = []
    for j, feature in enumerate(schema_of(model).features):
        if feature.kind in ("category", "ordered"):
            absent = None if feature.holds_text else np.nan
            strange = ["unheard of", "RED"] if feature.holds_text else [7.5]
            pools.append([*feature.categories, absent, *strange])
        elif feature.kind == "boolean":
            pools.append([False, True])
        else:
            own = np.array(sorted(cuts[j]) or [0.0])
            beside = [own, np.nextafter(own, np.inf), np.nextafter(own, -np.inf)]
            pools.append([*np.concatenate(beside).tolist(), np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308])
    n = max(len(pool) for pool in pools) + n_more
    for feature, pool in zip(schema_of(model).features, pools, strict=True):
        order = [*rng.permutation(len(pool)).tolist(), *rng.integers(0, len(pool), n).tolist()][:n]
        values = [pool[i] for i in rng.permutation(order).tolist()]
        is_text = feature.kind in ("category", "ordered") and feature.holds_text
        kind = object if is_text else bool if feature.kind == "boolean" else float
        column = np.empty(n, dtype=kind)
        column[:] = values
        columns[feature.name] = column
    return columns


def cuts_of(model):
    """Thresholds by column of the table."""
    cuts = [set() for _ in schema_of(model).features]
    for tree in (tree for member in models_in(model) for tree in member._fitted.trees()):
        for j, flags, cut in zip(tree.feature, tree.flags, tree.threshold, strict=True):
            if j >= 0 and not flags & 2 and j < len(cuts) and np.isfinite(cut):
                cuts[j].add(float(cut))
    return cuts


def table_of(model, columns):
    """Return what the model itself is asked with."""
    return columns if schema_of(model).has_names else np.column_stack(list(columns.values()))


def predictions_of(model, X):
    """Flat predictions, (n_rows, n_values), and labels or None."""
    if isinstance(model, spinney.IsolationForest):
        return model.score_samples(X)[:, np.newaxis], model.predict(X)
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X)), model.predict(X)
    found = np.asarray(model.predict(X))
    return found.reshape(len(found), -1), None


def is_clear(model, proba):
    """Which rows have one class that is clearly the most probable; the order of additions cannot change these."""
    if isinstance(model, spinney.IsolationForest):
        return np.abs(proba[:, 0] - model.offset_) > 1e-9
    ordered = np.sort(proba, axis=1)
    return ordered[:, -1] - ordered[:, -2] > 1e-9
