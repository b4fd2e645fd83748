"""Gradient boosting, and functions that evaluate any learner."""

import numpy as np
import spinney

from fingerprints.cases import case, enter_models, explained, figures, row_answers, saved
from fingerprints.tables import (
    CLASSES,
    COUNTS,
    GROUPS,
    HOLES,
    MIXED,
    NEW,
    NUMBERS,
    TWO,
    VALUES,
    WEIGHTS,
    whole,
)

LOSSES = (
    *("squared_error", "absolute_error", "huber", "log_cosh", "quantile", "expectile", "mape"),
    *("squared_log_error", "poisson", "gamma", "tweedie"),
)
OPTIONS = {
    "": {},
    ", sampled": {"subsample": 0.6, "feature_sampling": 0.6, "max_features": 0.7, "random_state": 3},
    ", monotone": {"monotonic_cst": [1, 0, -1, 0, 0]},
    ", by depth": {
        "growth": "depth",
        "max_depth": 3,
        "l2_regularization": 1.0,
        "regularization": {"l1": 0.1, "max_step": 2.0},
    },
    ", stopped early": {"early_stopping": True, "validation_fraction": 0.3, "n_iter_no_change": 3, "random_state": 1},
}
SMALL = {"n_estimators": 12, "max_leaf_nodes": 6, "min_samples_leaf": 5, "learning_rate": 0.3}
OFFSET = whole(30, 20) / 19 - 0.5


def values(**options):
    return lambda: spinney.GradientBoostingRegressor(**{**SMALL, **options})


def classes(**options):
    return lambda: spinney.GradientBoostingClassifier(**{**SMALL, **options})


LEVELS = ["low", "mid", "top"]
ORDERED = {
    "ordinal": classes(loss="ordinal", class_order=LEVELS),
    "ordinal, default settings": classes(loss="ordinal", class_order=LEVELS, n_estimators="auto", n_iter_no_change=5),
}
BY_LOSS = {f"{loss}{name}": values(loss=loss, **options) for loss in LOSSES for name, options in OPTIONS.items()}
enter_models("boosting", BY_LOSS, HOLES, VALUES + 11)
enter_models(
    "boosting two classes", {f"log_loss{name}": classes(**options) for name, options in OPTIONS.items()}, HOLES, TWO
)
TWO_CLASS_LOSSES = ("exponential", "focal", "smooth_hinge")
enter_models("boosting two classes", {loss: classes(loss=loss) for loss in TWO_CLASS_LOSSES}, HOLES, TWO)
enter_models(
    "boosting classes",
    {f"log_loss{name}": classes(**o) for name, o in OPTIONS.items() if o != OPTIONS[", monotone"]},
    HOLES,
    CLASSES,
)
enter_models("boosting classes", ORDERED, HOLES, CLASSES)
enter_models("boosting classes with weights", {"ordinal": ORDERED["ordinal"]}, HOLES, CLASSES, sample_weight=WEIGHTS)
OUTPUTS = np.column_stack([VALUES + 11, 50 - VALUES])
THREE = {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]}
enter_models("boosting", {f"quantiles{name}": values(**THREE, **o) for name, o in OPTIONS.items()}, HOLES, VALUES)
enter_models("boosting outputs", {loss: values(loss=loss) for loss in ("squared_error", "huber")}, HOLES, OUTPUTS)
enter_models("boosting outputs", {"labels": classes()}, HOLES, np.column_stack([TWO, CLASSES]))
VECTORS = {"vectors": values(leaves="vector"), "vectors, median": values(leaves="vector", loss="absolute_error")}
enter_models("boosting outputs", VECTORS, HOLES, OUTPUTS)
enter_models("boosting classes", {"vectors": classes(leaves="vector")}, MIXED, CLASSES)
DEFAULT_SETTINGS = {"n_estimators": "auto", "n_iter_no_change": 5}
NORMAL = {"normal": values(loss="normal"), "normal, vectors": values(loss="normal", leaves="vector")}
enter_models("boosting", NORMAL, HOLES, VALUES)
enter_models("boosting, default settings", {"normal": values(loss="normal", **DEFAULT_SETTINGS)}, HOLES, VALUES)
FRACTIONS = (VALUES - VALUES.min() + 1) / (VALUES.max() - VALUES.min() + 2)
ROWS_OF_DISTRIBUTIONS = {
    **dict.fromkeys(("log_normal", "student_t", "gamma_distribution"), VALUES + 11),
    **dict.fromkeys(("negative_binomial", "zero_inflated_poisson"), COUNTS),
    "beta": FRACTIONS,
}
for of_rows, target in ROWS_OF_DISTRIBUTIONS.items():
    enter_models("boosting distributions", {of_rows: values(loss=of_rows)}, HOLES, target)
BY_DEFAULT = {of_rows: values(loss=of_rows, **DEFAULT_SETTINGS) for of_rows in ("log_normal", "gamma_distribution")}
enter_models("boosting distributions, default settings", BY_DEFAULT, HOLES, VALUES + 11)
OWN = {"own formula": values(loss=lambda y, f: np.logaddexp(f - y, y - f) + (f - y) ** 2 / 9)}
enter_models("boosting", OWN, HOLES, VALUES)
OF_COSTS = {"costs": classes(cost_matrix=[[0, 5], [1, 0]]), "priors": classes(priors=[0.8, 0.2])}
enter_models("boosting two classes", OF_COSTS, HOLES, TWO)
AT_ALL = {"at all": lambda: spinney.GradientBoostingRegressor(n_iter_no_change=5, learning_rate=0.3)}
enter_models("boosting, default settings", {"": values(**DEFAULT_SETTINGS), **AT_ALL}, HOLES, VALUES + 11)
enter_models("boosting two classes, default settings", {"": classes(**DEFAULT_SETTINGS)}, MIXED, TWO)
enter_models("boosting classes, default settings", {"": classes(**DEFAULT_SETTINGS)}, HOLES, CLASSES)
enter_models(
    "boosting categories",
    {loss: values(loss=loss, categories={"max_one_hot": 2}) for loss in LOSSES},
    MIXED,
    VALUES + 11,
)
enter_models(
    "boosting categories", {"classes": classes(), "balanced": classes(class_weight="balanced")}, MIXED, CLASSES
)
enter_models(
    "boosting with weights", {loss: values(loss=loss) for loss in LOSSES}, HOLES, VALUES + 11, sample_weight=WEIGHTS
)
enter_models("boosting classes with weights", {"log_loss": classes()}, HOLES, CLASSES, sample_weight=WEIGHTS)
enter_models(
    "boosting few bins", {"squared_error": values(max_bins=9, interaction_cst="no_interactions")}, HOLES, VALUES
)
enter_models("boosting groups", {"stopped early": values(**OPTIONS[", stopped early"])}, HOLES, VALUES, groups=GROUPS)
enter_models(
    "boosting beside an offset", {loss: values(loss=loss) for loss in LOSSES}, HOLES, VALUES + 11, offset=OFFSET
)
enter_models(
    "boosting classes beside an offset",
    {"log_loss": classes()} | {loss: classes(loss=loss) for loss in TWO_CLASS_LOSSES},
    HOLES,
    TWO,
    offset=OFFSET,
)
RANKERS = {loss: lambda loss=loss: spinney.GradientBoostingRanker(loss, **SMALL) for loss in ("lambdamart", "pairwise")}
GRADES = np.abs(VALUES).round() % 4
enter_models("boosting lists", RANKERS, HOLES, GRADES, groups=GROUPS)
enter_models("boosting lists with weights", RANKERS, HOLES, GRADES, groups=GROUPS, sample_weight=WEIGHTS)
TIMES = np.where(np.arange(len(VALUES)) % 3 == 0, -1, 1) * (VALUES - VALUES.min() + 0.5)
SURVIVORS = {
    name: lambda options=options: spinney.GradientBoostingSurvival(**SMALL, **options)
    for name, options in {
        "cox": {},
        **{f"aft, {name}": {"loss": "aft", "distribution": name} for name in ("normal", "logistic", "extreme")},
    }.items()
}
enter_models("boosting times", SURVIVORS, HOLES, TIMES)
enter_models("boosting times with weights", SURVIVORS, HOLES, TIMES, sample_weight=WEIGHTS)
enter_models("boosting from zero", {"counts": values(loss="poisson", init="zero")}, HOLES, COUNTS)


@case("boosting classes beside offsets")
def offsets(n_jobs):
    three = np.column_stack([OFFSET, -OFFSET, OFFSET / 3])
    model = classes(n_jobs=n_jobs)().fit(HOLES, CLASSES, offset=three)
    return {"model": model.fingerprint(), "predict_proba": model.predict_proba(HOLES, offset=three)}


@case("boosting: read and explained")
def read(n_jobs):
    model = values(n_jobs=n_jobs)().fit(HOLES, VALUES)
    kinds = ("gain", "splits", "permutation")
    return {
        "file": saved(model),
        "one row": row_answers(model, NEW[:10]),
        "staged": list(model.staged_predict(NEW)),
        "shap": explained(model, NEW[:10]),
        "pairs": explained(model, NEW[:6], interactions=True),
        "background": explained(model, NEW[:6], background=HOLES[:10]),
        **{kind: figures(model.importances(HOLES, VALUES, kind, n_repeats=2, random_state=0)) for kind in kinds},
    }


@case("boosting classes: read and explained")
def read_classes(n_jobs):
    model = classes(n_jobs=n_jobs, **OPTIONS[", stopped early"])().fit(HOLES, CLASSES)
    return {
        "file": saved(model),
        "one row": row_answers(model, NEW[:10]),
        "log": model.predict_log_proba(NEW),
        "scores": [model.train_score_, model.validation_score_],
        "shap": explained(model, NEW[:6]),
    }


@case("boosting two classes: shares explained")
def shares(n_jobs):
    model = classes(n_jobs=n_jobs)().fit(HOLES, TWO)
    return {
        "shap": explained(model, NEW[:6]),
        "permutation": figures(model.importances(HOLES, TWO, "permutation", n_repeats=2, random_state=0)),
    }


@case("bias and variance")
def bias_variance(n_jobs):
    options = {"n_repeats": 6, "random_state": 0, "n_jobs": n_jobs}
    tree = spinney.DecisionTreeRegressor(max_depth=4)
    forest = spinney.RandomForestClassifier(5, random_state=0)
    return {
        "tree": figures(spinney.bias_variance(tree, X=NUMBERS, y=VALUES, **options)),
        "forest": figures(spinney.bias_variance(forest, X=NUMBERS, y=CLASSES, **options)),
    }


@case("James and Stein")
def james_stein(n_jobs):
    return {
        "equal": figures(spinney.james_stein(VALUES[:12], 3.0)),
        "positive": figures(spinney.james_stein(VALUES[:12], 300.0, positive_part=True)),
        "unequal": figures(spinney.james_stein(VALUES[:12], WEIGHTS[:12])),
    }
