"""Neighbours: every distance, every way to count."""

import numpy as np
import spinney

from fingerprints.cases import case, enter_models
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
        "costs": classes(n_neighbors=5, priors="uniform", algorithm="kd_tree", metric="manhattan"),
    },
    MIXED,
    TWO,
)
enter_models(
    "cells",
    {
        "leave one out": lambda: spinney.HistogramClassifier(),
        "folds": lambda: spinney.HistogramClassifier(cv=4, random_state=0, scale="standard", empty="overall"),
        "one edge": lambda: spinney.HistogramClassifier(3.0, scale=None, priors="uniform"),
    },
    MIXED,
    CLASSES,
)
enter_models("cells of values", {"range": lambda: spinney.HistogramRegressor()}, HOLES, VALUES)


@case("density")
def density(n_jobs):
    x = np.nan_to_num(np.asarray(VALUES, dtype=float))[:, np.newaxis]
    model = spinney.HistogramDensity(n_jobs=n_jobs).fit(x)
    return {"model": model.fingerprint(), "score_samples": model.score_samples(x), "risk": model.cv_results_["risk"]}
