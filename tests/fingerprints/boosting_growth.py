"""Gradient boosting that grows its trees, or draws its rows and columns, in other ways than usual."""

import numpy as np

from fingerprints.boosting import classes, values
from fingerprints.cases import case, enter_models, explained, row_answers, saved
from fingerprints.tables import CLASSES, HOLES, MIXED, NEW, TWO, VALUES, WEIGHTS

OPTIONS = {
    "symmetric": {"growth": "symmetric", "max_leaf_nodes": 8},
    "by gradients": {"sampling": "gradient", "subsample": 0.4, "random_state": 2},
    "goss": {"sampling": {"top_rate": 0.2}, "subsample": 0.4, "random_state": 2},
    "dropped": {"dart": 0.4, "random_state": 2},
    "dropped by weight": {"dart": {"rate": 0.6, "by": "weight", "max_rounds": 3, "skip": 0.2}, "random_state": 2},
    "lines": {"linear_leaves": {"l2": 2.0}, "min_samples_leaf": 5},
    "combined columns": {"feature_combinations": [(0, "+", 1), (1, "-", 0), (0, "*", 1), (0, "/", 1)]},
    "drawn together": {"regularization": {"hierarchical_shrinkage": 8.0}},
    "three at a time": {"growth": {"n_parallel_trees": 3}, "subsample": 0.6, "max_features": 0.6, "random_state": 2},
}
enter_models("boosting", {name: values(**options) for name, options in OPTIONS.items()}, HOLES, VALUES)
enter_models("boosting classes", {name: classes(**options) for name, options in OPTIONS.items()}, HOLES, CLASSES)
enter_models(
    "boosting with weights",
    {name: values(**options) for name, options in OPTIONS.items()},
    MIXED,
    VALUES,
    sample_weight=WEIGHTS,
)
FORCED = {
    "feature": "town",
    "categories": MIXED["town"][:1].tolist(),
    "right": {"feature": "length", "threshold": float(np.nanmedian(MIXED["length"]))},
}
enter_models("boosting two classes", {"forced": classes(growth={"forced_splits": FORCED})}, MIXED, TWO)
PRICES = {"prices": classes(feature_costs={"length": 4.0, "town": 2.0})}
PRICES["drawn columns"] = classes(
    feature_sampling={"weights": {"length": 4.0, "plot": 0.0}}, max_features=0.5, random_state=2
)
enter_models("boosting two classes", PRICES, MIXED, TWO)


@case("boosting, symmetric: read and explained")
def read(n_jobs):
    model = values(n_jobs=n_jobs, **OPTIONS["symmetric"])().fit(HOLES, VALUES)
    return {"file": saved(model), "one row": row_answers(model, NEW[:10]), "shap": explained(model, NEW[:10])}


@case("boosting, combined columns: read and explained")
def combined(n_jobs):
    model = values(n_jobs=n_jobs, linear_leaves=True, **OPTIONS["combined columns"])().fit(HOLES, VALUES)
    return {"file": saved(model), "one row": row_answers(model, NEW[:10]), "shap": explained(model, NEW[:10])}


@case("boosting: leaves updated")
def refitted(n_jobs):
    values_, classes_ = values(n_jobs=n_jobs)().fit(HOLES, VALUES), classes(n_jobs=n_jobs)().fit(MIXED, CLASSES)
    return {
        "values": values_.refit(HOLES[::2], VALUES[::2] + 3, WEIGHTS[::2], decay=0.4).fingerprint(),
        "classes": classes_.refit(MIXED, CLASSES[::-1]).fingerprint(),
    }


@case("boosting, linear leaves: predicted, with default settings")
def lines(n_jobs):
    model = values(n_jobs=n_jobs, **OPTIONS["lines"])().fit(HOLES, VALUES)
    several = values(n_jobs=n_jobs, n_estimators="auto", linear_leaves=True)().fit(MIXED, VALUES)
    return {
        "file": saved(model),
        "one row": row_answers(model, NEW[:10]),
        "shap": explained(model, NEW[:10]),
        "several": several.fingerprint(),
    }
