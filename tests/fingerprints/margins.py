"""Support vector machines and planes: kernels, tasks, losses, searches, and more rows than a working set has."""

import numpy as np
import spinney

from fingerprints.cases import case, enter_models
from fingerprints.tables import CLASSES, HOLES, LONG, LONG_VALUES, MIXED, TWO, VALUES

KERNELS = ("linear", "poly", "rbf", "sigmoid")


def classes(**options):
    return lambda: spinney.SVC(random_state=0, **options)


def values(**options):
    return lambda: spinney.SVR(random_state=0, **options)


enter_models("svc", {kernel: classes(kernel=kernel, coef0=0.5) for kernel in KERNELS}, HOLES, CLASSES)
enter_models(
    "svc options",
    {
        "against all": classes(multi_class="ovr", probability=True, cv=3),
        "double": classes(precision="double", tol=1e-7, class_weight="balanced"),
        "pairs": classes(probability=True, cv=3, scale=False, gamma=0.001),
        "searched": classes(C=[0.1, 1.0, 10.0], gamma="cv", cv=3),
    },
    MIXED,
    CLASSES,
)
enter_models("svc two classes", {"platt": classes(probability=True, cv=4, C=5.0)}, MIXED, TWO)
enter_models("svr", {kernel: values(kernel=kernel, gamma=0.05, C=3.0) for kernel in KERNELS}, HOLES, VALUES)
enter_models(
    "nu",
    {
        "pairs": lambda: spinney.NuSVC(nu=0.2),
        "double": lambda: spinney.NuSVC(nu=0.1, kernel="linear", precision="double", tol=1e-7),
    },
    MIXED,
    CLASSES,
)
enter_models("nu of values", {"rbf": lambda: spinney.NuSVR(C=3.0), "few": lambda: spinney.NuSVR(nu=0.1)}, HOLES, VALUES)
enter_models("nu long", {"rbf": lambda: spinney.NuSVC(nu=0.2)}, LONG[:1200], LONG_VALUES[:1200] > 0)
enter_models(
    "one class",
    {"rbf": lambda: spinney.OneClassSVM(nu=0.2), "linear": lambda: spinney.OneClassSVM(kernel="linear", nu=0.1)},
    MIXED,
    None,
)
enter_models("svc long", {"rbf": classes(C=4.0)}, LONG[:2000], LONG_VALUES[:2000] > 0)
enter_models("svr long", {"rbf": values(C=4.0)}, LONG[:1200], LONG_VALUES[:1200])
enter_models(
    "planes",
    {
        "squared hinge": lambda: spinney.LinearSVC(),
        "hinge": lambda: spinney.LinearSVC(loss="hinge", class_weight="balanced"),
        "perceptron": lambda: spinney.Perceptron(max_iter=20, averaged=True, shuffle=True, random_state=0),
    },
    MIXED,
    CLASSES,
)
enter_models(
    "planes of values",
    {
        "tube": lambda: spinney.LinearSVR(epsilon=0.5),
        "squared": lambda: spinney.LinearSVR(loss="squared_epsilon_insensitive"),
    },
    HOLES,
    VALUES,
)


@case("planes in batches")
def in_batches(n_jobs):
    """Learn in batches: squared hinge, the perceptron, logistic regression and ridge regression."""
    models = [spinney.LinearSVC(n_jobs=n_jobs), spinney.Perceptron(averaged=True, n_jobs=n_jobs)]
    models += [spinney.LinearClassifier(), spinney.LinearRegressor(alpha=1.0)]
    for rows in np.array_split(np.arange(len(LONG_VALUES)), 5):
        for model in models[:3]:
            model.partial_fit(LONG[rows], LONG_VALUES[rows] > 0, classes=[False, True])
        models[3].partial_fit(LONG[rows], LONG_VALUES[rows])
    return {type(model).__name__: model.fingerprint() for model in models}


enter_models("planes long", {"squared hinge": lambda: spinney.LinearSVC()}, LONG, LONG_VALUES > 0)
