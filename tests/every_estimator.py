"""One small fitted model of every estimator, with every kind of member and every option that changes what is kept.

`MODELS` makes them by name; `answers` returns all outputs of a model, so that two models can be compared exactly.
"""

import warnings

import numpy as np
import spinney
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

N_ROWS = 60
_RNG = np.random.default_rng(7)


def _table():
    numbers = _RNG.normal(size=(N_ROWS, 3)).round(3)
    numbers[_RNG.random((N_ROWS, 3)) < 0.1] = np.nan
    words = np.array(["red", "green", "blue", "a long word"], dtype=object)[_RNG.integers(0, 4, N_ROWS)]
    words[::17] = None
    return {"size": numbers[:, 0], "weight": numbers[:, 1], "age": numbers[:, 2], "colour": words}


TABLE = _table()
WHOLE = np.nan_to_num(np.column_stack([TABLE[name] for name in ("size", "weight", "age")]), nan=0.5)
VALUES = np.nan_to_num(TABLE["size"]) * 2 + (TABLE["colour"] == "red") + _RNG.normal(size=N_ROWS).round(2) / 4
COUNTS = np.round(np.exp(VALUES / 3)).astype(float)
CLASSES = np.array(["no", "yes", "perhaps"], dtype=object)[np.digitize(VALUES, [-0.5, 1.0])]
PAIR = np.array(["no", "yes"], dtype=object)[(VALUES > 0.2).astype(int)]
SEED = {"random_state": 3}


def _of(estimator_, y, X=TABLE, **parameters):
    def fit(**more):
        kind = getattr(spinney, estimator_)
        seed = SEED if "random_state" in kind().get_params(deep=False) else {}
        model = kind(**(seed | parameters))
        with warnings.catch_warnings(action="ignore"):
            return model.fit(X, *(() if y is None else (y,)), **more)

    return fit


def _in_batches(estimator_, y, X=TABLE, **parameters):
    def fit():
        model = getattr(spinney, estimator_)(**parameters)
        labels = {} if y is VALUES else {"classes": np.unique(y)}
        with warnings.catch_warnings(action="ignore"):
            return model.partial_fit(X, y, **labels).partial_fit(X, y)

    return fit


def _rpart(kind, y, **parameters):
    return lambda: getattr(spinney, kind).rpart(**parameters).set_params(random_state=3).fit(TABLE, y)


_TREES = {
    "tree": {},
    "depth": {"max_depth": 2},
    "pruned by folds": {"prune": "cv", "cv": 3},
    "held-out": {"prune": "validation", "validation_fraction": 0.3},
    "surrogates": {"missing": "surrogate", "max_surrogates": 2, "max_competitors": 2},
    "bins": {"max_bins": 8},
    "shrunken": {"shrinkage": 5.0},
    "constrained": {"monotonic_cst": {"size": 1}, "interaction_cst": [["size", "age"]]},
    "prices": {"feature_costs": {"size": 2.0}, "max_leaf_nodes": 6},
}
_FORESTS = {
    "forest": {},
    "rows": {"keep_rows": True},
    "rows out of bag": {"keep_rows": True, "oob_score": True, "max_samples": 0.5},
    "oblique": {"oblique": 6},
    "drawn": {"feature_weights": {"size": 3.0}, "always_try": ["age"], "replace": False},
    "leaves": {"max_leaf_nodes": 5, "max_bins": 8},
}
_NEIGHBOURS = {
    "neighbours": {},
    "neighbours by folds": {"n_neighbors": "cv", "k_values": [1, 4, 9], "cv": 3, "weights": "tricube"},
    "neighbours by terms": {"metric": "euclidean", "weights": "distance", "ties": "all", "algorithm": "kd_tree"},
    "neighbours by covariance": {"metric": "mahalanobis", "n_neighbors": 2},
    "neighbours by angle": {"metric": "cosine", "scale": "range"},
}
_BOOSTING = {
    "boosting": {},
    "stops early": {"early_stopping": True, "n_estimators": 30, "n_iter_no_change": 2, "validation_fraction": 0.3},
    "levels": {"growth": "depth", "max_depth": 3, "regularization": spinney.Regularization(l1=0.1)},
    "drawn rows": {"subsample": 0.6, "max_features": 0.6, "max_bins": 8},
    "categories": {"categories": spinney.CategoryOptions(max_one_hot=0), "unseen": "other"},
    "lines": {"linear_leaves": True, "min_samples_leaf": 3},
    "combined columns": {"feature_combinations": [("size", "-", "weight"), ("size", "*", "age"), (1, "/", 2)]},
    "dropped rounds": {"dart": spinney.Dart(rate=0.4), "regularization": {"hierarchical_shrinkage": 2.0}},
    "forced": {
        "growth": spinney.Growth(forced_splits={"feature": "size", "threshold": 0.0}),
        "sampling": "goss",
        "min_samples_leaf": 1,
    },
}


_PLAIN = ["tree", ("line", "linear")]
_STACKS = {
    "plain": {"estimators": _PLAIN, "cv": 3},
    "greedy": {"estimators": _PLAIN, "final_estimator": "greedy", "cv": 3},
    "folds": {"estimators": _PLAIN, "refit": False, "cv": 3},
    "columns": {"estimators": ["tree"], "final_estimator": "tree", "passthrough": True, "cv": 3},
    "layers": {"estimators": _PLAIN, "layers": [["linear"]], "cv": 3},
}


def _members():
    few = {"n_estimators": 3}
    return {
        "default": (None, None),
        "trees": (spinney.DecisionTreeClassifier(max_depth=2), spinney.DecisionTreeRegressor(max_depth=2)),
        "extra trees": (spinney.ExtraTreeClassifier(), spinney.ExtraTreeRegressor()),
        "forests": (
            spinney.RandomForestClassifier(keep_rows=True, **few),
            spinney.RandomForestRegressor(keep_rows=True, **few),
        ),
        "extra forests": (spinney.ExtraTreesClassifier(**few), spinney.ExtraTreesRegressor(**few)),
        "boosting": (spinney.GradientBoostingClassifier(**few), spinney.GradientBoostingRegressor(**few)),
        "boosting that stops": (
            spinney.GradientBoostingClassifier(n_estimators=20, early_stopping=True, n_iter_no_change=1),
            spinney.GradientBoostingRegressor(n_estimators=20, early_stopping=True, n_iter_no_change=1),
        ),
        "rpart": (spinney.DecisionTreeClassifier.rpart(), spinney.DecisionTreeRegressor.rpart()),
        "pruned": (
            spinney.DecisionTreeClassifier(prune="cv", cv=3),
            spinney.DecisionTreeRegressor(prune="cv", cv=3),
        ),
    }


def _margins():
    """Support vector machines: kernels, ways to tell several classes apart, probabilities, a search."""
    return {
        "margin": _of("SVC", CLASSES),
        "margin of two classes": _of("SVC", PAIR, probability=True, cv=3),
        "margin against all": _of("SVC", CLASSES, multi_class="ovr", probability=True, cv=3, kernel="poly"),
        "margin of numbers": _of("SVC", PAIR, WHOLE, scale=False, kernel="linear", cost_matrix={"no": {"yes": 5.0}}),
        "margin without end": _of("SVC", PAIR, WHOLE, C=np.inf, gamma=20.0),
        "margin searched": _of("SVC", PAIR, C=[0.1, 1.0], gamma="cv", cv=3),
        "margin of a share": _of("NuSVC", CLASSES, nu=0.2, probability=True, cv=3),
        "margin of values, a share": _of("NuSVR", VALUES, kernel="poly", degree=2),
        "margin of one class": _of("OneClassSVM", None, nu=0.3),
        "margin of one class, linear": _of("OneClassSVM", None, WHOLE, kernel="linear", scale="standard"),
        "plane": _of("LinearSVC", CLASSES),
        "plane searched": _of("LinearSVC", PAIR, C=[0.1, 1.0], cv=3),
        "plane, hinge": _of("LinearSVC", PAIR, WHOLE, loss="hinge", class_weight="balanced"),
        "plane of values": _of("LinearSVR", VALUES, epsilon=0.1),
        "plane of values, squared": _of("LinearSVR", VALUES, WHOLE, loss="squared_epsilon_insensitive", scale=False),
        "perceptron": _of("Perceptron", CLASSES, max_iter=20, shuffle=True),
        "perceptron of two classes": _of("Perceptron", PAIR, max_iter=20, averaged=True),
        "plane in batches": _in_batches("LinearSVC", CLASSES),
        "plane of values in batches": _in_batches("LinearSVR", VALUES, loss="squared_epsilon_insensitive"),
        "perceptron in batches": _in_batches("Perceptron", CLASSES, averaged=True),
        "linear in batches": _in_batches("LinearClassifier", CLASSES),
        "linear of values in batches": _in_batches("LinearRegressor", VALUES, alpha=1.0),
        "margin of values": _of("SVR", VALUES),
        "margin of values, sigmoid": _of("SVR", VALUES, WHOLE, kernel="sigmoid", gamma=0.01, unseen="other"),
    }


def _boosted():
    """AdaBoost by each algorithm and of several members; functional boosting of each weak learner."""
    few = {"n_estimators": 3}
    models = {
        f"adaboost {name}": _of("AdaBoostClassifier", CLASSES, algorithm=name, **few)
        for name in ("m1", "samme", "real", "gentle", "logit")
    }
    for loss in ("linear", "square", "exponential"):
        models[f"adaboost of values, {loss}"] = _of("AdaBoostRegressor", VALUES, loss=loss, **few)
    models["adaboost of two classes"] = _of("AdaBoostClassifier", PAIR, max_depth=2, **few)
    models["adaboost that stops"] = _of(
        "AdaBoostClassifier", PAIR, n_estimators=20, early_stopping=True, validation_fraction=0.3, n_iter_no_change=2
    )
    for label in ("forests", "boosting", "pruned"):
        of_classes, of_values = _members()[label]
        models[f"adaboost of {label}"] = _of("AdaBoostClassifier", CLASSES, estimator=of_classes, **few)
        models[f"adaboost of values by {label}"] = _of("AdaBoostRegressor", VALUES, estimator=of_values, **few)
    models["gentle adaboost of forests"] = _of(
        "AdaBoostClassifier", CLASSES, estimator=_members()["forests"][1], algorithm="gentle", n_estimators=2
    )
    models["adaboost of drawn rows"] = _of("AdaBoostClassifier", PAIR, resample=True, **few)
    for learner in ("stumps", "trees", "linear", "linear_pairs", "splines", "neighbors", "kernel_ridge"):
        models[f"functional {learner}"] = _of("FunctionalBoostingRegressor", VALUES, learners=learner, **few)
    mixed = ["stumps", "splines", spinney.learners.Logistic()]
    models["functional of several learners"] = _of("FunctionalBoostingClassifier", CLASSES, learners=mixed, **few)
    models["functional of two classes"] = _of("FunctionalBoostingClassifier", PAIR, learners="trees", **few)
    return models


def _imported():
    """Models of other libraries."""
    histograms = {"max_iter": 3, "min_samples_leaf": 5}
    return {
        "imported": lambda: spinney.from_sklearn(HistGradientBoostingClassifier(**histograms).fit(WHOLE, CLASSES)),
        "imported values": lambda: spinney.from_sklearn(HistGradientBoostingRegressor(**histograms).fit(WHOLE, VALUES)),
    }


def _models():
    models = {}
    for label, options in _TREES.items():
        models[f"classes, {label}"] = _of(
            "DecisionTreeClassifier", PAIR if label == "constrained" else CLASSES, **options
        )
        models[f"values, {label}"] = _of("DecisionTreeRegressor", VALUES, **options)
    for kind, y in (("Classifier", CLASSES), ("Regressor", VALUES)):
        models[f"extra tree {kind}"] = _of(f"ExtraTree{kind}", y)
        models[f"several outputs {kind}"] = _of(f"DecisionTree{kind}", np.column_stack([y, y[::-1]]))
        models[f"forest of several outputs {kind}"] = _of(
            f"RandomForest{kind}", np.column_stack([y, y[::-1]]), n_estimators=4, keep_rows=True
        )
        for label, options in _FORESTS.items():
            models[f"{kind} {label}"] = _of(f"RandomForest{kind}", y, **({"n_estimators": 4} | options))
        models[f"extra trees {kind}"] = _of(f"ExtraTrees{kind}", y, n_estimators=4)
        for label, options in _BOOSTING.items():
            models[f"{kind} {label}"] = _of(f"GradientBoosting{kind}", y, **({"n_estimators": 5} | options))
        for label, options in _NEIGHBOURS.items():
            models[f"{kind} {label}"] = _of(f"KNeighbors{kind}", y, **options)
        for label, members in _members().items():
            member = members[kind == "Regressor"]
            bagging = {"estimator": member, "n_estimators": 3}
            models[f"bagging {kind} {label}"] = _of(f"Bagging{kind}", y, **bagging)
        models[f"bagging {kind} columns"] = _of(
            f"Bagging{kind}", y, n_estimators=3, max_features=2, oob_score=True, warm_start=True
        )
        models[f"cells {kind}"] = _of(f"Histogram{kind}", y)
        models[f"cells by folds {kind}"] = _of(f"Histogram{kind}", y, scale="standard", cv=3, empty="overall")
        models[f"cells of one edge {kind}"] = _of(f"Histogram{kind}", y, X=WHOLE, cell=1.5, scale=None)
        models[f"rpart {kind}"] = _rpart(f"DecisionTree{kind}", y)
        models[f"linear {kind}"] = _of(f"Linear{kind}", y)
        for label, options in _STACKS.items():
            models[f"stack {kind} {label}"] = _of(f"Stacking{kind}", y, **options)
        models[f"vote {kind}"] = _of(f"Voting{kind}", y, estimators=_PLAIN, weights=[1.0, 2.0])
    models["stack of two classes"] = _of("StackingClassifier", PAIR, estimators=_PLAIN, cv=3)
    models["greedy stack of two classes"] = _of(
        "StackingClassifier", PAIR, estimators=_PLAIN, final_estimator="greedy", cv=3
    )
    models["stack of decisions"] = _of(
        "StackingClassifier", PAIR, estimators=["adaboost", "linear"], stack_method="decision_function", cv=3
    )
    models["votes"] = _of("VotingClassifier", CLASSES, WHOLE, estimators=_PLAIN, voting="hard")
    models["linear of two classes"] = _of("LinearClassifier", PAIR, WHOLE, C=10.0, scale=False)
    models["costs"] = _of(
        "DecisionTreeClassifier", PAIR, cost_matrix={"no": {"yes": 5.0}}, priors={"no": 0.4, "yes": 0.6}
    )
    models["costs of a forest"] = _of("RandomForestClassifier", PAIR, n_estimators=4, cost_matrix={"no": {"yes": 5.0}})
    models["density"] = lambda: spinney.HistogramDensity().fit(WHOLE[:, :2])
    models["neighbours with costs"] = lambda: _of(
        "KNeighborsClassifier", PAIR, cost_matrix={"no": {"yes": 5.0}}, priors={"no": 0.4, "yes": 0.6}
    )(sample_weight=np.arange(N_ROWS) % 3)
    models["neighbours of several outputs"] = _of("KNeighborsRegressor", np.column_stack([VALUES, COUNTS]))
    models["two classes"] = _of("GradientBoostingClassifier", PAIR, n_estimators=5)
    times = np.where(np.arange(N_ROWS) % 3 == 0, -1, 1) * (1 + COUNTS)
    for loss in ("cox", "aft"):
        models[loss] = _of("GradientBoostingSurvival", times, n_estimators=5, loss=loss)
    causes = np.array(
        [(k % 3, time) for k, time in enumerate(np.abs(times))], dtype=[("cause", np.int64), ("time", float)]
    )
    models["survival tree"] = _of("SurvivalTree", times, min_samples_leaf=5)
    models["survival tree by folds"] = _of("SurvivalTree", causes, prune="cv", cv=3, missing="surrogate")
    models["survival forest"] = _of("RandomSurvivalForest", times, n_estimators=4)
    models["survival forest of causes"] = _of("RandomSurvivalForest", causes, n_estimators=4, keep_rows=True)
    models["extra survival trees"] = _of("ExtraSurvivalTrees", times, n_estimators=4)
    for loss in ("lambdamart", "pairwise"):
        models[loss] = _of("GradientBoostingRanker", COUNTS, n_estimators=5, loss=loss)
    for loss in ("exponential", "focal", "smooth_hinge"):
        models[loss] = _of("GradientBoostingClassifier", PAIR, n_estimators=5, loss=loss)
    order = ["no", "perhaps", "yes"]
    models["ordinal"] = _of("GradientBoostingClassifier", CLASSES, n_estimators=5, loss="ordinal", class_order=order)
    models["quantiles"] = _of(
        "GradientBoostingRegressor", VALUES, n_estimators=3, loss="quantile", quantile=[0.1, 0.5, 0.9]
    )
    models["normal"] = _of("GradientBoostingRegressor", VALUES, n_estimators=3, loss="normal")
    models["vector leaves"] = _of("GradientBoostingClassifier", CLASSES, n_estimators=3, leaves="vector")
    models["boosting of outputs"] = _of("GradientBoostingRegressor", np.column_stack([VALUES, COUNTS]), n_estimators=3)
    models["boosting of labels"] = _of("GradientBoostingClassifier", np.column_stack([PAIR, CLASSES]), n_estimators=2)
    models["costs of boosting"] = _of(
        "GradientBoostingClassifier", PAIR, n_estimators=3, cost_matrix={"no": {"yes": 5.0}}, priors="uniform"
    )
    models["exposure"] = lambda: _of("DecisionTreeRegressor", COUNTS, criterion="poisson", max_depth=3)(
        exposure=np.arange(1.0, N_ROWS + 1)
    )
    models["rpart rates"] = _rpart("DecisionTreeRegressor", COUNTS, method="poisson")
    for criterion in ("absolute_error", "friedman_mse"):
        models[criterion] = _of("DecisionTreeRegressor", VALUES, criterion=criterion, max_depth=4)
    for loss in ("absolute_error", "huber", "log_cosh", "quantile", "poisson", "gamma", "tweedie"):
        y = COUNTS + 1 if loss in ("poisson", "gamma", "tweedie") else VALUES
        models[f"loss {loss}"] = _of("GradientBoostingRegressor", y, n_estimators=4, loss=loss)
    models |= _margins() | _boosted()
    models |= _imported()
    models["no names"] = _of("RandomForestRegressor", VALUES, WHOLE, n_estimators=3)
    models["numbers as classes"] = _of("DecisionTreeClassifier", CLASSES == "no", WHOLE)
    models["isolation"] = _of("IsolationForest", None, n_estimators=4)
    models["isolation by rows"] = _of("IsolationForest", None, WHOLE, n_estimators=4, contamination=0.2)
    models["embedding"] = _of("RandomTreesEmbedding", None, n_estimators=4, max_depth=3)
    models["imputer"] = _of("ProximityImputer", None, n_estimators=4, n_iter=2)
    models["imputer by classes"] = _of("ProximityImputer", CLASSES, n_estimators=4, n_iter=1, kind="all")
    models["imputer by values"] = _of("ProximityImputer", VALUES, n_estimators=4, n_iter=1)
    return models


MODELS = _models()


def rows_of(model):
    """Return the table that a model of `MODELS` was fitted on."""
    return TABLE if hasattr(model, "feature_names_in_") else WHOLE[:, : model.n_features_in_]


_ASKED = ("predict", "predict_proba", "decision_function", "score_samples", "transform", "apply")


def answers(model):
    """Return all outputs of a model for its training rows, as a dict of lists of arrays."""
    X = rows_of(model)
    found = {name: getattr(model, name)(X) for name in _ASKED if hasattr(model, name)}
    if getattr(model, "keep_rows", False):
        if hasattr(model, "predict_quantiles"):
            found["quantiles"] = model.predict_quantiles(X, [0.1, 0.5, 0.9])
        found["weights"] = model.leaf_weights(X)
    if hasattr(model, "predict_support"):
        found["support"] = model.predict_support(X).reason
    for name in ("predict_interval", "predict_set"):
        if hasattr(model, "calibrate") and hasattr(model, name):
            found[name] = getattr(model, name)(X)
    if hasattr(model, "predict_survival_function"):
        found["curves"] = model.predict_survival_function(X)
    if hasattr(model, "feature_importances_"):
        found["importances"] = model.feature_importances_
    for name in ("classes_", "oob_score_", "oob_curve_", "estimators_features_"):
        if hasattr(model, name):
            found[name] = getattr(model, name)
    return {name: _arrays(value) for name, value in found.items()}


def _arrays(value):
    if isinstance(value, dict):
        return [np.asarray(column) for column in value.values()]
    if hasattr(value, "toarray"):
        return [value.toarray()]
    return [np.asarray(part) for part in (value if isinstance(value, list) else [value])]


def assert_same_answers(first, second):
    """Compare two dicts of `answers` to the bit."""
    assert first.keys() == second.keys()
    for name, arrays in first.items():
        assert len(arrays) == len(second[name]), name
        for one, other in zip(arrays, second[name], strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)
