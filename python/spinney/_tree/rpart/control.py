"""rpart's own names of parameters, as in its rpart.control."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spinney._data.types import ByColumn

_FALLBACK = {0: "ignore", 1: "stop", 2: "majority"}


def control(
    *,
    minsplit: int | None,
    minbucket: int | None,
    cp: float,
    maxcompete: int,
    maxsurrogate: int,
    usesurrogate: int,
    surrogatestyle: int,
    maxdepth: int,
    xval: int | ArrayLike | None,
    cost: ByColumn,
    rpart_quirks: bool,
) -> dict[str, Any]:
    """Turn rpart.control's words into the estimator's parameters."""
    if minbucket is None:
        minsplit = 20 if minsplit is None else minsplit
        if not isinstance(minsplit, Integral):
            raise ValueError(f"minsplit must be a whole number. Got {minsplit!r}.")
        minbucket = max(1, round(minsplit / 3))
    elif minsplit is None:
        minsplit = max(1, 3 * minbucket) if isinstance(minbucket, Integral) else 20
    for name, value, low, high in (
        ("minsplit", minsplit, 1, None),
        ("minbucket", minbucket, 1, None),
        ("maxcompete", maxcompete, 0, None),
        ("maxsurrogate", maxsurrogate, 0, None),
        ("usesurrogate", usesurrogate, 0, 2),
        ("surrogatestyle", surrogatestyle, 0, 1),
        ("maxdepth", maxdepth, 1, 30),
    ):
        if not isinstance(value, Integral) or value < low or (high is not None and value > high):
            upper = "" if high is None else f" and at most {high}"
            raise ValueError(f"{name} must be a whole number of at least {low}{upper}. Got {value!r}.")
    is_number = xval is None or isinstance(xval, Integral)
    if isinstance(xval, str) or hasattr(xval, "split") or (not is_number and np.asarray(xval).ndim == 0):
        raise ValueError(f"xval must be a number of folds, 0 for none, or one fold number per row. Got {xval!r}.")
    if isinstance(xval, Integral) and xval < 0:
        raise ValueError(f"xval must not be negative. Got {xval}. Use 0 for no cross-validation.")
    if not isinstance(rpart_quirks, bool):
        raise ValueError(f"rpart_quirks must be True or False. Got {rpart_quirks!r}.")
    if not isinstance(cp, Real) or cp != cp:
        raise ValueError(f"cp must be a number: a share of the root's risk. Got {cp!r}.")
    folds = xval > 1 if isinstance(xval, Integral) else xval is not None
    return {
        "min_samples_split": max(2, int(minsplit)),
        "min_samples_leaf": int(minbucket),
        "cp": float(cp),
        "max_competitors": int(maxcompete),
        "max_surrogates": int(maxsurrogate),
        "missing": "surrogate",
        "missing_fallback": _FALLBACK[int(usesurrogate)],
        "surrogate_style": "present" if surrogatestyle else "all",
        "max_depth": int(maxdepth),
        "prune": "cv" if folds else None,
        "cv": xval if folds else 10,
        "rule": None,
        "feature_costs": cost,
        "dialect": "rpart_quirks" if rpart_quirks else "rpart",
    }


def refuse_twice(parameters: dict[str, Any], spoken_for: tuple[str, ...]) -> None:
    """Refuse parameters for which rpart has words of its own."""
    words = {
        "criterion": "method or split", "priors": "prior", "cost_matrix": "loss", "rate_shrinkage": "shrink",
        "scoring": "error",
    }  # fmt: skip
    for name in spoken_for:
        if name in parameters:
            raise TypeError(f"rpart(...) has a parameter of its own for {name}: {words[name]}. Use that.")
