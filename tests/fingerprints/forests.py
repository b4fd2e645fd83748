"""Forests, isolation, embeddings, imputation and bagging."""

import spinney

from fingerprints.cases import case, enter_models, explained, figures, row_answers, saved
from fingerprints.tables import (
    BOTH,
    CLASSES,
    COUNTS,
    GROUPS,
    HOLES,
    MIXED,
    NEW,
    NUMBERS,
    VALUES,
    WEIGHTS,
)


def classes(**options):
    return lambda: spinney.RandomForestClassifier(**{"n_estimators": 8, "random_state": 1, **options})


def values(**options):
    return lambda: spinney.RandomForestRegressor(**{"n_estimators": 8, "random_state": 1, **options})


def extra(**options):
    return lambda: spinney.ExtraTreesRegressor(**{"n_estimators": 8, "random_state": 1, **options})


CLASS_OPTIONS = {
    "plain": classes(),
    "entropy": classes(criterion="entropy"),
    "bins": classes(max_bins=16),
    "balanced": classes(sampling="balanced"),
    "stratified": classes(sampling="stratified", max_samples=0.5),
    "balanced weights": classes(class_weight="balanced_subsample"),
    "oblique": classes(oblique=6),
    "feature weights": classes(feature_weights=[1, 2, 1, 3, 1], always_try=[2]),
    "costs": classes(cost_matrix=[[0, 1, 4], [2, 0, 1], [3, 1, 0]]),
    "without replacement": classes(replace=False, max_samples=0.6),
    "columns of each tree": classes(max_features_per_tree=3),
    "plain leaves": classes(shrinkage=None),
    "chosen shrinkage": classes(n_estimators=50, max_depth=4),
    "chosen shrinkage, extra-trees": lambda: spinney.ExtraTreesClassifier(50, max_depth=4, random_state=1),
    "extra-trees": lambda: spinney.ExtraTreesClassifier(8, random_state=1),
    "oblique extra-trees": lambda: spinney.ExtraTreesClassifier(8, oblique=4, random_state=1),
}
VALUE_OPTIONS = {
    "plain": values(),
    "absolute": values(criterion="absolute_error", n_estimators=4),
    "bins": values(max_bins=16),
    "oblique": values(oblique=6),
    "shrinkage": values(shrinkage=2.0),
    "monotone": values(monotonic_cst=[1, 0, -1, 0, 0]),
    "extra-trees": extra(),
    "extra-trees, bootstrap": extra(bootstrap=True, min_samples_leaf=3),
}
enter_models("forest of classes", CLASS_OPTIONS, HOLES, CLASSES)
enter_models("forest of values", VALUE_OPTIONS, HOLES, VALUES)
enter_models("forest of counts", {"poisson": values(criterion="poisson", rate_shrinkage=1.0)}, HOLES, COUNTS)
enter_models("forest with weights", {"classes": classes()}, HOLES, CLASSES, sample_weight=WEIGHTS)
enter_models("forest with weights", {"values": values(), "extra": extra()}, HOLES, VALUES, sample_weight=WEIGHTS)
enter_models("forest with groups", {"values": values()}, HOLES, VALUES, groups=GROUPS)
enter_models("forest of categories", {"classes": classes(), "oblique": classes(oblique=4)}, MIXED, CLASSES)
enter_models("forest of categories", {"values": values(), "extra": extra()}, MIXED, VALUES)
enter_models("forest of several outputs", {"values": values(), "extra": extra()}, HOLES, BOTH)


def _kept(kind, n_jobs, **options):
    return kind(30, keep_rows=True, oob_score=True, random_state=2, n_jobs=n_jobs, **options)


@case("forest of values: predictions from leaves")
def leaves_of_values(n_jobs):
    forest = _kept(spinney.RandomForestRegressor, n_jobs, min_samples_leaf=2).fit(HOLES, VALUES)
    return {
        "file": saved(forest),
        "oob": [forest.oob_score_, forest.oob_prediction_, forest.oob_errors()],
        "quantiles": [forest.predict_quantiles(NEW), forest.predict_quantiles(oob=True)],
        "cdf": forest.predict_cdf(NEW, [5.0, 20.0, 40.0]),
        "leaf weights": forest.leaf_weights(NEW),
        **{f"intervals, {m}": forest.predict_interval(NEW, 0.8, m) for m in ("jackknife+", "residual", "quantile")},
        "support": figures(forest.predict_support(NEW)),
        "coverage": figures(forest.coverage_report(NUMBERS, VALUES)),
        "shap": explained(forest, NEW[:10]),
        "pairs": explained(forest, NEW[:4], interactions=True),
        "background": explained(forest, NEW[:4], background=HOLES[:10]),
        "one row": row_answers(forest, NEW[:10]),
        "embedding": forest.leaf_embedding(NEW),
    }


@case("forest of classes: predictions from leaves")
def leaves_of_classes(n_jobs):
    forest = _kept(spinney.RandomForestClassifier, n_jobs).fit(HOLES, CLASSES)
    return {
        "file": saved(forest),
        "oob": [forest.oob_score_, forest.oob_decision_function_, forest.oob_errors()],
        **{f"sets, {m}": forest.predict_set(NEW, 0.8, m) for m in ("lac", "aps")},
        "log": forest.predict_log_proba(NEW),
        "shap": explained(forest, NEW[:6]),
        "one row": row_answers(forest, NEW[:10]),
        "prototypes": forest.prototypes(NUMBERS, CLASSES).to_dict("list"),
    }


@case("forest: nearest rows and outliers")
def near(n_jobs):
    forest = spinney.RandomForestClassifier(20, random_state=2, n_jobs=n_jobs).fit(HOLES, CLASSES)
    kinds = ("all", "oob", "in_bag", "gap")
    return {
        **{f"proximity, {kind}": forest.proximity(HOLES, kind=kind) for kind in kinds},
        **{f"nearest, {kind}": forest.proximity(HOLES, kind=kind, n_neighbors=4) for kind in kinds},
        **{f"new rows, {kind}": forest.proximity(NEW, HOLES, kind=kind) for kind in ("all", "gap")},
        **{f"outliers, {kind}": forest.outlier_score(HOLES, CLASSES, kind=kind) for kind in ("all", "oob")},
    }


@case("forest: importances")
def importances(n_jobs):
    found = {}
    for kind, y in ((spinney.RandomForestClassifier, CLASSES), (spinney.RandomForestRegressor, VALUES)):
        forest = kind(12, random_state=2, n_jobs=n_jobs).fit(HOLES, y)
        for name in ("permutation", "unbiased", "impurity"):
            found[f"{name}, {y.dtype.kind}"] = figures(forest.importances(HOLES, y, name, random_state=0))
        found[f"attribute, {y.dtype.kind}"] = forest.feature_importances_
    return found


@case("forest: losses of importances")
def losses(n_jobs):
    forest = spinney.RandomForestClassifier(12, random_state=2, n_jobs=n_jobs).fit(HOLES, CLASSES)
    return {
        loss: figures(forest.importances(HOLES, CLASSES, loss=loss, by_row=True, n_repeats=2, random_state=0))
        for loss in ("error", "brier", "margin")
    }


@case("isolation forest")
def isolation(n_jobs):
    forest = spinney.IsolationForest(n_estimators=20, contamination=0.1, random_state=0, n_jobs=n_jobs).fit(HOLES)
    return {
        "model": forest.fingerprint(),
        "file": saved(forest),
        "score": forest.score_samples(NEW),
        "decision": forest.decision_function(NEW),
        "predict": forest.predict(HOLES),
    }


@case("embedding")
def embedding(n_jobs):
    trees = spinney.RandomTreesEmbedding(n_estimators=10, random_state=0, n_jobs=n_jobs).fit(HOLES)
    return {"model": trees.fingerprint(), "codes": trees.transform(NEW), "file": saved(trees)}


@case("imputer")
def imputer(n_jobs):
    found = {}
    for kind in ("gap", "all"):
        for name, y in (("classes", CLASSES), ("values", VALUES), ("none", None)):
            model = spinney.ProximityImputer(n_estimators=15, n_iter=3, kind=kind, random_state=0, n_jobs=n_jobs)
            found[f"{kind}, {name}"] = [model.fit_transform(HOLES, y), model.transform(NEW)]
    return found | {"file": saved(model)}


@case("imputer of categories")
def imputer_of_categories(n_jobs):
    towns = MIXED["town"].copy()
    towns[::7] = None
    model = spinney.ProximityImputer(n_estimators=15, n_iter=3, random_state=0, n_jobs=n_jobs)
    return {"filled": model.fit_transform({**MIXED, "town": towns}, CLASSES)}


def bagging(kind, **options):
    return lambda: kind(n_estimators=5, random_state=1, **options)


BAGS = {
    "plain": bagging(spinney.BaggingClassifier),
    "features": bagging(spinney.BaggingClassifier, max_features=3, bootstrap_features=True),
    "stratified": bagging(spinney.BaggingClassifier, stratified=True, max_samples=0.5),
    "hard votes": bagging(spinney.BaggingClassifier, voting="hard"),
    "boosting": bagging(spinney.BaggingClassifier, estimator=spinney.GradientBoostingClassifier(n_estimators=3)),
}
enter_models("bagging of classes", BAGS, HOLES, CLASSES)
enter_models("bagging of values", {"plain": bagging(spinney.BaggingRegressor, oob_score=True)}, HOLES, VALUES)
enter_models(
    "bagging with weights", {"plain": bagging(spinney.BaggingClassifier)}, HOLES, CLASSES, sample_weight=WEIGHTS
)


@case("bagging: out of bag")
def out_of_bag(n_jobs):
    model = spinney.BaggingClassifier(n_estimators=12, oob_score=True, random_state=1, n_jobs=n_jobs).fit(
        HOLES, CLASSES
    )
    return {
        "score": model.oob_score_,
        "decision": model.oob_decision_function_,
        "errors": model.oob_errors(HOLES, CLASSES),
        "log": model.predict_log_proba(NEW),
        "file": saved(model),
    }
