"""Every family, task and option, each as a function from a number of threads to named parts that are hashed."""

import io
import warnings
from unittest import mock

import numpy as np

from fingerprints.digest import digest

CASES = {}


def case(name):
    """Enter a function (n_jobs) -> {part: anything with a digest} in the table."""

    def enter(function):
        assert name not in CASES, name
        CASES[name] = function
        return function

    return enter


def enter_models(kind, names, X, y, **fit):
    """One case for each name: a model by its parameters, and what every model gives."""
    for name, make in names.items():
        case(f"{kind}: {name}")(lambda n_jobs, make=make: answers(make().set_params(n_jobs=n_jobs), X, y, **fit))


def computed(name, n_jobs=1):
    """Return {part: hash} of one case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rule that keeps nothing, rows that no tree left out
        return {part: digest(value) for part, value in CASES[name](n_jobs).items()}


def answers(model, X, y, new=None, **fit):
    """Fit a model; return its hash, its file and what it predicts of the rows it was fitted on, or others."""
    model.fit(X, y, **fit)
    rows = X if new is None else new
    found = {"model": model.fingerprint(), "predict": model.predict(rows)}
    if hasattr(model, "predict_proba"):
        found["predict_proba"] = model.predict_proba(rows)
    return found


def saved(model):
    """Return the bytes of the model's file, as release 0 would write them: the number of threads is a parameter too."""
    file = io.BytesIO()
    inner = getattr(model, "forest_", None)  # an imputer's own forest has a number of threads as well
    if hasattr(inner, "set_params"):
        inner.set_params(n_jobs=None)
    with mock.patch("spinney._estimator.estimator.__version__", "0"):
        model.set_params(n_jobs=None).save(file)
    return file.getvalue()


def row_answers(model, rows):
    """Return what the handle for single rows answers."""
    handle = model.to_predictor()
    return [np.asarray(handle.predict(row)) for row in rows]


def explained(model, rows, **options):
    """Return Shapley values: what is added up, and the interactions if asked for."""
    found = model.shap_values(rows, **options)
    return [
        [part.values, part.base_values, part.interactions] for part in (found if isinstance(found, list) else [found])
    ]


def figures(report):
    """Return the public numbers of a report, by name."""
    named = {name: getattr(report, name) for name in dir(report) if not name.startswith("_")}
    return {name: value for name, value in named.items() if isinstance(value, np.ndarray | float | int | str | dict)}
