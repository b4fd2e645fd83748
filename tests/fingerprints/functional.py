"""Functional boosting: each weak learner, several losses."""

import spinney

from fingerprints.cases import enter_models
from fingerprints.tables import CLASSES, HOLES, MIXED, TWO, VALUES

LEARNERS = (
    *(
        "stumps",
        "trees",
        "linear",
        "linear_pairs",
        "logistic",
        "logistic_pairs",
        "splines",
        "neighbors",
        "kernel_ridge",
    ),
    ["linear", "splines", "stumps"],
)
SMALL = {"n_estimators": 8, "learning_rate": 0.3, "random_state": 0}


def values(learners, **options):
    return lambda: spinney.FunctionalBoostingRegressor(learners, **SMALL, **options)


def classes(learners, **options):
    return lambda: spinney.FunctionalBoostingClassifier(learners, **SMALL, **options)


enter_models("functional", {str(learners): values(learners) for learners in LEARNERS}, HOLES, VALUES + 11)
enter_models(
    "functional losses",
    {
        loss: values(["linear", "stumps"], loss=loss, subsample=0.7)
        for loss in ("absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie")
    },
    MIXED,
    VALUES + 11,
)
enter_models(
    "functional classes", {name: classes(name) for name in ("trees", "splines", "linear_pairs")}, MIXED, CLASSES
)
enter_models(
    "functional two classes",
    {loss: classes(["logistic", "stumps"], loss=loss) for loss in ("log_loss", "exponential")},
    MIXED,
    TWO,
)
