"""The parameters of rpart and rpart.control, and the parameters of a tree that they stand for."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

CRITERION_OF = {"anova": "squared_error", "poisson": "poisson", "exp": "exponential"}
_INTEGERS = (int, np.integer)
_FALLBACK = ("ignore", "stop", "majority")  # by usesurrogate
_RPART_NAME = {
    "criterion": "method or split",
    "priors": "prior",
    "cost_matrix": "loss",
    "rate_shrinkage": "shrink",
    "scoring": "error",
}
_LIMITS = {
    "minsplit": (1, None),
    "minbucket": (1, None),
    "maxcompete": (0, None),
    "maxsurrogate": (0, None),
    "usesurrogate": (0, 2),
    "surrogatestyle": (0, 1),
    "maxdepth": (1, 30),
}


def tree_parameters(has_classes: bool, arguments: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a tree that rpart's arguments stand for, together with the other parameters."""
    quirks, cp = arguments["rpart_quirks"], arguments["cp"]
    if not isinstance(quirks, bool):
        raise ValueError(f"rpart_quirks must be True or False. Got {quirks!r}.")
    if not isinstance(cp, Real) or cp != cp:
        raise ValueError(f"cp must be a number: a fraction of the root's risk. Got {cp!r}.")
    target = _class_target(arguments) if has_classes else _number_target(arguments)
    for name in target.keys() & parameters.keys():
        raise TypeError(f"rpart(...) sets {name} by {_RPART_NAME[name]}. Pass that instead.")
    numbers = arguments | _leaf_sizes(arguments["minsplit"], arguments["minbucket"])
    for name, (low, high) in _LIMITS.items():
        value = numbers[name]
        if not isinstance(value, _INTEGERS) or value < low or (high is not None and value > high):
            upper = "" if high is None else f" and at most {high}"
            raise ValueError(f"{name} must be a whole number of at least {low}{upper}. Got {value!r}.")
    control = {
        "min_samples_split": max(2, int(numbers["minsplit"])),
        "min_samples_leaf": int(numbers["minbucket"]),
        "cp": float(cp),
        "max_competitors": int(numbers["maxcompete"]),
        "max_surrogates": int(numbers["maxsurrogate"]),
        "missing": "surrogate",
        "missing_fallback": _FALLBACK[numbers["usesurrogate"]],
        "surrogate_style": "present" if numbers["surrogatestyle"] else "all",
        "max_depth": int(numbers["maxdepth"]),
        "rule": None,
        "feature_costs": arguments["cost"],
        "dialect": "rpart_quirks" if quirks else "rpart",
    }
    return target | control | _folds(arguments["xval"]) | parameters


def _class_target(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a classifier that depend on its target."""
    method, split = arguments["method"], arguments["split"]
    if method not in (None, "class"):
        raise ValueError(f"A classifier has method='class'. Use DecisionTreeRegressor.rpart for {method!r}.")
    if split not in ("gini", "information"):
        raise ValueError(f"split must be 'gini' or 'information'. Got {split!r}.")
    if arguments["shrink"] is not None or arguments["error"] != "deviance":
        raise ValueError("shrink and error are for rates. Use DecisionTreeRegressor.rpart with method='poisson'.")
    criterion = "gini" if split == "gini" else "entropy"
    return {"criterion": criterion, "priors": arguments["prior"], "cost_matrix": arguments["loss"]}


def _number_target(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a regressor that depend on its target."""
    method, shrink, error = arguments["method"] or "anova", arguments["shrink"], arguments["error"]
    if method not in CRITERION_OF:
        raise ValueError(f"method must be 'anova', 'poisson' or 'exp'. Got {method!r}.")
    if error not in ("deviance", "sqrt"):
        raise ValueError(f"error must be 'deviance' or 'sqrt'. Got {error!r}.")
    if arguments["prior"] is not None or arguments["loss"] is not None or arguments["split"] != "gini":
        raise ValueError("prior, loss and split are for classes. Use DecisionTreeClassifier.rpart.")
    if method == "anova" and (shrink or error != "deviance"):
        raise ValueError("shrink and error are for rates: method='poisson' or 'exp'.")
    if shrink is None:
        shrink = 0.0 if error == "sqrt" or method == "anova" else 1.0
    scoring = "sqrt" if error == "sqrt" else None
    return {"criterion": CRITERION_OF[method], "rate_shrinkage": shrink, "scoring": scoring}


def _leaf_sizes(minsplit: Any, minbucket: Any) -> dict[str, Any]:
    """Return minsplit and minbucket; one that is None follows from the other."""
    if minbucket is None:
        minsplit = 20 if minsplit is None else minsplit
        if not isinstance(minsplit, _INTEGERS):
            raise ValueError(f"minsplit must be a whole number. Got {minsplit!r}.")
        minbucket = max(1, round(minsplit / 3))
    elif minsplit is None:
        minsplit = max(1, 3 * minbucket) if isinstance(minbucket, _INTEGERS) else 20
    return {"minsplit": minsplit, "minbucket": minbucket}


def _folds(xval: Any) -> dict[str, Any]:
    """Return the parameters of cross-validation."""
    is_number = xval is None or isinstance(xval, _INTEGERS)
    if isinstance(xval, str) or hasattr(xval, "split") or (not is_number and np.asarray(xval).ndim == 0):
        raise ValueError(f"xval must be a number of folds, 0 for none, or one fold number per row. Got {xval!r}.")
    if isinstance(xval, _INTEGERS) and xval < 0:
        raise ValueError(f"xval must not be negative. Got {xval}. Use 0 for no cross-validation.")
    has_folds = xval > 1 if isinstance(xval, _INTEGERS) else xval is not None
    return {"prune": "cv" if has_folds else None, "cv": xval if has_folds else 10}
