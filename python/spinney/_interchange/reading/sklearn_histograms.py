"""Histogram gradient boosting of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._interchange.reading.assemble import Sum, schema_of
from spinney._interchange.reading.nodes import Nodes
from spinney._model.file.container import refuse

_LOG = ("poisson", "gamma")


def histogram_sum(model: Any, source: str) -> Sum:
    """Read a fitted HistGradientBoostingClassifier or -Regressor."""
    order, categories = _columns(model)
    names = getattr(model, "feature_names_in_", None)
    # what the encoder does not know is missing to it
    schema = schema_of(None if names is None else list(names), model.n_features_in_, categories, "missing")
    classes = getattr(model, "classes_", None)
    n_scores = model.n_trees_per_iteration_
    trees: list[list[_engine.Tree]] = [[] for _ in range(n_scores)]
    for r, of_round in enumerate(model._predictors):
        for k, predictor in enumerate(of_round):
            trees[k].append(_tree(predictor, schema, order, categories, r * n_scores + k))
    link = "identity" if classes is None else "logit" if n_scores == 1 else "softmax"
    if model.loss in _LOG:
        link = "log"
    elif not isinstance(model.loss, str):
        refuse("has a loss of its own, whose link is not known here. Fit it with a loss by name.")
    start = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)
    return Sum(schema, trees, np.broadcast_to(start, (n_scores,)).copy(), link, classes, source, model.loss)


def _columns(model: Any) -> tuple[NDArray[np.intp], dict[int, tuple[Any, ...]]]:
    """Position in the table of each column that the trees know, and the categories of those that have any.

    The model's own encoder puts columns of categories first.
    """
    n = model.n_features_in_
    is_category = model.is_categorical_
    if is_category is None:
        return np.arange(n), {}
    is_category = np.asarray(is_category, dtype=bool)
    order = np.concatenate([np.flatnonzero(is_category), np.flatnonzero(~is_category)])
    encoder = model._preprocessor.named_transformers_["encoder"]
    categories: dict[int, tuple[Any, ...]] = {}
    for j, known in zip(np.flatnonzero(is_category).tolist(), encoder.categories_, strict=True):
        values = [value for value in np.asarray(known, dtype=object).tolist() if value is not None and value == value]
        categories[j] = tuple(
            int(value) if isinstance(value, float) and value.is_integer() else value for value in values
        )
    return order, categories


def _tree(
    predictor: Any, schema: Schema, order: NDArray[np.intp], categories: dict[int, tuple[Any, ...]], t: int
) -> _engine.Tree:
    theirs = predictor.nodes
    leaf = theirs["is_leaf"] != 0
    column = order[np.where(leaf, 0, theirs["feature_idx"])]
    sets = {}
    for node in np.flatnonzero((theirs["is_categorical"] != 0) & ~leaf).tolist():
        words = np.ascontiguousarray(predictor.raw_left_cat_bitsets[theirs["bitset_idx"][node]], dtype="<u4")
        codes = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        n_known = len(categories[int(column[node])])
        sets[node] = codes[codes < n_known], False
    nodes = Nodes(
        np.where(leaf, -1, theirs["left"].astype(np.int64)),
        np.where(leaf, -1, theirs["right"].astype(np.int64)),
        np.where(leaf, -1, column),
        np.where(leaf, 0.0, theirs["num_threshold"]),
        theirs["missing_go_to_left"] != 0,
        np.where(leaf, theirs["value"], 0.0),
        theirs["count"].astype(np.float64),
        theirs["count"],
        np.where(leaf, 0.0, np.maximum(theirs["gain"], 0.0)),
        sets=sets,
    )
    return nodes.tree(schema.n_categories, t)
