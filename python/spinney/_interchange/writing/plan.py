"""A fitted model as plain arrays, from which every export format is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.combinations import Combinations
from spinney._data.display import with_article
from spinney._data.feature import Feature
from spinney._data.types import Floats
from spinney._estimator.table_estimator import TableEstimator
from spinney._forest.isolation import IsolationForest, average_path_length
from spinney._model.adaboost import FittedAdaBoost
from spinney._model.boosting import FittedBoosting, FittedImport
from spinney._model.forest import FittedForest
from spinney._model.model import FittedModel, split_gains
from spinney._model.tree import FittedTree

_MISSING_LEFT, _CATEGORY, _OTHER_LEFT, _STOPS = 1, 2, 4, 8
_SURROGATE = 2  # role of a split
_ESTIMATORS = frozenset(
    f"{family}{target}"
    for family in ("DecisionTree", "ExtraTree", "RandomForest", "ExtraTrees", "GradientBoosting", "Imported")
    for target in ("Classifier", "Regressor")
) | {"AdaBoostClassifier", "IsolationForest"}
_UNSUPPORTED = {  # why some estimators that consist of trees cannot be exported
    "AdaBoostRegressor": "it predicts a median of its trees",
    "GradientBoostingRanker": "no format supports boosting for ranking",
    "GradientBoostingSurvival": "no format supports boosting for survival analysis",
    **dict.fromkeys(
        ("SurvivalTree", "RandomSurvivalForest", "ExtraSurvivalTrees"), "no format supports its survival curves"
    ),
}
_LINKS_OF_VALUES = frozenset({"identity", "log"})
_LINKS = frozenset({"identity", "log", "logit", "half_logit", "hinge", "focal", "softmax", "one_vs_rest"})


@dataclass(frozen=True)
class PlainTree:
    """A tree, in preorder: the left child of a node is the next node.

    Attributes
    ----------
    feature : ndarray of int
        Column split on; -1 in leaves.
    threshold : ndarray of float
        Number splits: values up to and including it go left.
    right : ndarray of int
        Right child; 0 in leaves.
    missing_left : ndarray of bool
        Whether missing values go left.
    left_codes : dict
        For each node that splits on categories: the codes that go left, ascending. The number of categories is the
        code of unseen categories.
    value : ndarray of shape (n_nodes, width)
    weight : ndarray of float
        Total weight, or hessian, of the training rows of each node.
    count : ndarray of int
        Their number: as often as they were drawn for the tree, if weights are whole numbers.
    gain : ndarray of float
        Decrease of the weighted impurity by each split; 0 in leaves.
    linear : dict of ndarray, or None
        Terms of linear leaves, as in `FittedTree.linear_terms`.
    """

    feature: NDArray[np.int32]
    threshold: Floats
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    left_codes: dict[int, list[int]]
    value: Floats
    weight: Floats
    count: NDArray[np.int64]
    gain: Floats
    linear: dict[str, NDArray[Any]] | None = None

    @cached_property
    def leaves(self) -> NDArray[np.intp]:
        """Nodes that are leaves."""
        return np.flatnonzero(self.feature < 0)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.feature)

    def write(self, leaf: Callable[[int], str], split: Callable[[int], Iterable[str | int]]) -> str:
        """Write the tree as nested text; `split` returns the texts and the children of a node in their order.

        Uses a stack instead of recursion, because trees may be deep.
        """
        texts: list[str] = []
        todo: list[str | int] = [0]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                texts.append(item)
            elif self.feature[item] < 0:
                texts.append(leaf(item))
            else:
                todo += reversed(list(split(item)))
        return "".join(texts)

    def split_codes(self, node: int, n_categories: int) -> list[int] | None:
        """Return the codes that go left at a split of categories or ordered categories; None at other splits."""
        if node in self.left_codes:
            return self.left_codes[node]
        return [code for code in range(n_categories) if code <= self.threshold[node]] if n_categories else None


@dataclass(frozen=True)
class Plan:
    """All parts of a model that determine its predictions.

    Attributes
    ----------
    name : str
        Name of the estimator.
    format : str
        Export format, for messages.
    features : tuple of Feature
        Columns of the table.
    pool : Combinations or None
        Combinations of columns that trees split on.
    unseen : {"missing", "other"}
        How unseen categories are treated.
    trees : list of PlainTree
    is_one_tree : bool
        Whether it is a single tree, not an ensemble.
    n_scores : int
        Number of scores: tree t adds to score t mod n_scores. 0: predictions are means of the trees.
    start : ndarray of shape (n_scores,)
        Scores before the first tree.
    link : str
        Name of the function from scores to predictions.
    classes : list of ndarray, or None
        Class labels of each output.
    n_outputs : int
        Number of outputs.
    cost : ndarray or None
        Costs that decide the predicted class.
    mean_length : float or None
        Isolation forests: the expected path length that scores are relative to.
    offset : float
        Isolation forests: rows that score below it are outliers.
    """

    name: str
    format: str
    features: tuple[Feature, ...]
    pool: Combinations | None
    unseen: str
    trees: list[PlainTree]
    is_one_tree: bool
    n_scores: int
    start: Floats
    link: str
    classes: list[NDArray[Any]] | None
    n_outputs: int
    cost: Floats | None
    mean_length: float | None
    offset: float

    @property
    def width(self) -> int:
        """Number of values of a leaf."""
        return int(self.trees[0].value.shape[1])

    @property
    def n_values(self) -> int:
        """Length of a flat row of predictions: numbers, or class probabilities."""
        return self.n_outputs if self.classes is None else sum(len(labels) for labels in self.classes)

    @property
    def has_linear_leaves(self) -> bool:
        """Whether leaves hold linear models instead of constants."""
        return any(tree.linear is not None for tree in self.trees)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees."""
        return sum(tree.size for tree in self.trees)

    @property
    def is_sum(self) -> bool:
        """Whether trees are added up to scores."""
        return self.n_scores > 0

    @property
    def is_isolation(self) -> bool:
        """Whether it is an isolation forest."""
        return self.mean_length is not None

    def refuse(self, what: str, remedy: str) -> NoReturn:
        """Raise ValueError: the format does not support a property of the model."""
        raise ValueError(f"{self.format} cannot hold {what} of this {self.name}. {remedy}")

    def check(self, links: Collection[str], *, costs: bool = False, isolation: bool = False) -> None:
        """Refuse several outputs, oblique splits, and links, costs and scores that a format does not support."""
        self.refuse_several_outputs()
        if self.pool is not None:
            self.refuse("the combinations of columns", "Use spinney.to_c or spinney.to_onnx.")
        remedy = "Use spinney.to_onnx, spinney.to_c or spinney.to_sql."
        if self.is_isolation and not isolation:
            self.refuse("the scores", remedy)
        if self.cost is not None and not costs:
            self.refuse("the misclassification costs", remedy)
        if self.link.split(" ")[0] not in links:
            self.refuse(f"the link {self.link.split(' ')[0]!r}", "Use spinney.to_onnx or spinney.to_c.")

    def refuse_several_outputs(self) -> None:
        """Refuse models of several outputs."""
        if self.n_outputs > 1:
            self.refuse(f"the {self.n_outputs} outputs", "Fit one model for each, or use spinney.to_c.")

    @property
    def n_categories(self) -> list[int]:
        """Number of categories of each column that trees split on; 0 for numbers."""
        counts = [len(f.categories) if f.kind == "category" else 0 for f in self.features]
        if self.pool is None:
            return counts
        return [*(counts[j] for j in self.pool.plain), *self.pool.n_categories(counts)]


def bits_of(codes: Iterable[int], n: int) -> list[int]:
    """Return a set of codes below n as a bitset of 32-bit words."""
    words = [0] * -(-n // 32)
    for code in codes:
        words[code // 32] |= 1 << (code % 32)
    return words


def plan_of(model: TableEstimator, format: str, *, linear_leaves: bool = False) -> Plan:
    """Return a fitted model as plain arrays.

    Parameters
    ----------
    model : estimator
    format : str
        Export format, for messages.
    linear_leaves : bool
        Whether the format supports linear leaves.
    """
    fitted = _fitted_of(model, format)
    name = type(model).__name__
    is_isolation = isinstance(model, IsolationForest)
    schema = model.schema_
    unseen = model._unseen_policy
    if unseen == "error" and any(feature.kind in ("category", "ordered") for feature in schema.features):
        raise ValueError(
            f"{format} cannot raise an error for unseen categories, as unseen='error' of this {name} requires. Set "
            "another policy: model.set_params(unseen='missing'), or 'other'."
        )
    is_sum = isinstance(fitted, FittedBoosting)
    if fitted.has_linear_leaves and not linear_leaves:
        raise ValueError(
            f"{format} cannot hold the linear leaves of this {name}. Use spinney.to_onnx or spinney.to_c, or fit with "
            "linear_leaves=False."
        )
    _refuse_imported(model, fitted, format)
    classes = getattr(model, "classes_", None)
    if classes is not None:
        classes = [np.asarray(c) for c in classes] if fitted.n_outputs > 1 else [np.asarray(classes)]
    return Plan(
        name,
        format,
        schema.features,
        schema.pool,
        unseen,
        [_plain(tree, schema.n_categories, name, format) for tree in fitted.trees()],
        isinstance(fitted, FittedTree),
        fitted.n_scores if is_sum else 0,
        np.asarray(fitted.start, dtype=np.float64) if is_sum else np.zeros(0),
        fitted.link if is_sum else "identity",
        classes,
        fitted.n_outputs,
        None if fitted.cost is None else np.asarray(fitted.cost, dtype=np.float64),
        float(average_path_length(model.max_samples_)[0]) if is_isolation else None,
        float(model.offset_) if is_isolation else 0.0,
    )


def _refuse_imported(model: TableEstimator, fitted: Any, format: str) -> None:
    """Refuse properties that only imported models have."""
    if any(feature.absent is not None for feature in model.schema_.features):
        raise ValueError(
            f"{format} cannot treat some numbers as missing values, as this {type(model).__name__} does. Fit the model "
            "with NaN for these."
        )
    if not isinstance(fitted, FittedImport):
        return
    known = _LINKS - _LINKS_OF_VALUES if hasattr(model, "classes_") else _LINKS_OF_VALUES
    if fitted.link.split(" ")[0] not in known or fitted.n_outputs > 1:
        raise ValueError(
            f"{format} does not support the link {fitted.link!r} or the {fitted.n_outputs} outputs of this "
            f"{type(model).__name__}. Export it with the library that fitted it."
        )


def _fitted_of(model: object, format: str) -> Any:
    """Return the fitted model, if it is a tree, a mean of trees or a sum of trees."""
    if not isinstance(model, TableEstimator):
        raise TypeError(
            f"Only a fitted tree, forest, boosted model or isolation forest of spinney can be exported to {format}, "
            f"not {with_article(type(model).__name__)}. Of an ensemble of models, export the members in "
            "estimators_ one by one."
        )
    check_is_fitted(model)
    if not model._predicts_alone:
        raise ValueError(
            f"The scores of this {type(model).__name__} start from {with_article(type(model.init_).__name__)}, which "
            f"{format} does not support. Fit with init='constant'."
        )
    fitted: FittedModel = model._fitted
    if isinstance(fitted, FittedAdaBoost):
        fitted = fitted.scoring
    if type(model).__name__ in _ESTIMATORS and type(fitted) in (FittedTree, FittedForest, FittedBoosting, FittedImport):
        if type(fitted) is FittedBoosting:
            _check_scores(fitted, type(model).__name__, format)
        return fitted
    reason = _UNSUPPORTED.get(type(model).__name__, "its predictions are not those of trees")
    raise TypeError(
        f"{type(model).__name__} cannot be exported to {format}: {reason}. Export a tree, a forest, boosting for "
        "classification or regression, or an isolation forest, or store this model with save."
    )


def _check_scores(fitted: FittedBoosting, name: str, format: str) -> None:
    """Refuse sums of trees whose link, outputs or costs no export format supports."""
    what, remedy, link = "", "", fitted.link.split(" ")[0]
    if link == "ascending":
        what, remedy = "the several quantiles", "one model for each quantile"
    elif link not in _LINKS:
        what, remedy = f"the link {link!r}", "with another loss"
    elif fitted.n_outputs > 1:
        what, remedy = f"the {fitted.n_outputs} outputs", "one model for each output"
    elif fitted.cost is not None:
        what, remedy = "the misclassification costs", "without costs"
    if what:
        raise ValueError(f"{format} cannot hold {what} of this {name}. Fit {remedy}, or store the model with save.")


def _plain(tree: _engine.Tree, n_categories: list[int], name: str, format: str) -> PlainTree:
    flags, feature = tree.flags, np.array(tree.feature)
    splits: Any = tree.splits()
    linear: Any = tree.linear_leaves()
    if (flags[feature >= 0] & _STOPS).any() or (splits is not None and (splits["role"] == _SURROGATE).any()):
        raise ValueError(
            f"{format} cannot hold the surrogate splits of this {name}, nor rows that stop inside the tree. Fit with "
            "missing='learned', or store the model with save."
        )
    left_codes = {}
    for node in np.flatnonzero((feature >= 0) & ((flags & _CATEGORY) != 0)).tolist():
        other = [n_categories[feature[node]]] if flags[node] & _OTHER_LEFT else []
        left_codes[node] = [int(code) for code in tree.left_categories(node)] + other
    right = tree.children_right().astype(np.int64)
    right[feature < 0] = 0
    weight = np.array(tree.weight)
    gain = np.zeros(tree.size)
    inner, decrease = split_gains(feature, right, weight, np.array(tree.impurity))
    gain[inner] = np.where(np.isfinite(decrease), np.maximum(decrease, 0.0), 0.0)
    return PlainTree(
        feature,
        np.array(tree.threshold),
        right,
        (flags & _MISSING_LEFT) != 0,
        left_codes,
        np.array(tree.value).reshape(tree.size, -1),
        weight,
        _row_counts(tree, weight, right),
        gain,
        linear,
    )


def _row_counts(tree: _engine.Tree, weight: Floats, right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of training rows of each node; a tree that came without counts has one in each leaf."""
    is_whole = (weight == np.floor(weight)).all() and 0 < weight[0] < 2**31
    count = weight.astype(np.int64) if is_whole else np.array(tree.n_rows, dtype=np.int64)
    if count[0] > 0:
        return count
    count[:] = 1
    for node in np.flatnonzero(right)[::-1]:
        count[node] = count[node + 1] + count[right[node]]
    return count
