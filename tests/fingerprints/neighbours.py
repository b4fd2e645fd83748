"""Neighbours: every distance, every way to count."""

import spinney

from fingerprints.cases import enter_models
from fingerprints.tables import CLASSES, HOLES, MIXED, TWO, VALUES

METRICS = ("euclidean", "manhattan", "chebyshev", "minkowski", "cosine", "mahalanobis", "hamming", "gower")
KERNELS = ("uniform", "distance", "triangular", "tricube", "gaussian")


def values(**options):
    return lambda: spinney.KNeighborsRegressor(**options)


def classes(**options):
    return lambda: spinney.KNeighborsClassifier(**options)


enter_models("neighbours", {name: values(metric=name, p=3, n_neighbors=7) for name in METRICS}, HOLES, VALUES)
enter_models("neighbours weights", {name: classes(weights=name, n_neighbors=9) for name in KERNELS}, MIXED, CLASSES)
enter_models(
    "neighbours by folds",
    {
        "leave one out": classes(n_neighbors="cv"),
        "folds": classes(n_neighbors="cv", cv=4, random_state=0, scale="range", metric="euclidean", ties="all"),
        "costs": classes(n_neighbors=5, priors="uniform", algorithm="tree", metric="manhattan"),
    },
    MIXED,
    TWO,
)
