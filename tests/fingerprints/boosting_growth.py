"""Gradient boosting that grows its trees, or draws its rows and columns, in other ways than usual."""

from fingerprints.boosting import classes, values
from fingerprints.cases import case, enter_models, explained, row_answers, saved
from fingerprints.tables import CLASSES, HOLES, MIXED, NEW, TWO, VALUES, WEIGHTS

OPTIONS = {
    "symmetric": {"growth": "symmetric", "max_leaf_nodes": 8},
    "by gradients": {"sampling": "gradient", "subsample": 0.4, "random_state": 2},
    "three at a time": {"n_parallel_trees": 3, "subsample": 0.6, "max_features": 0.6, "random_state": 2},
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
PRICES = {"prices": classes(feature_costs={"length": 4.0, "town": 2.0})}
enter_models("boosting two classes", PRICES, MIXED, TWO)


@case("boosting, symmetric: read and explained")
def read(n_jobs):
    model = values(n_jobs=n_jobs, **OPTIONS["symmetric"])().fit(HOLES, VALUES)
    return {"file": saved(model), "one row": row_answers(model, NEW[:10]), "shap": explained(model, NEW[:10])}
