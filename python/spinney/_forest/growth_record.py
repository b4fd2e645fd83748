"""The record of how a forest was grown, and its entry in a model file.

With `keep_rows=True` it includes the training rows: leaves, draws, weights, targets. Quantiles, weights of training
rows and the calibration of intervals are computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.types import Floats
from spinney._estimator.rows import RowFingerprint
from spinney._estimator.support import SAVED_RANGES, ColumnRanges
from spinney._forest.growing import balanced_weights
from spinney._forest.samples import Draws
from spinney._model.file.codec import (
    Field,
    Known,
    array,
    flag,
    integer,
    lack,
    listed,
    nullable,
    number,
    optional,
    saved_fields,
    score,
)
from spinney._model.file.container import refuse
from spinney._model.forest import FittedForest
from spinney._model.lazy_sequence import LazySequence
from spinney._model.saving.saved_model import SavedModel

LEFT_OUT = np.uint32(2**32 - 1)  # instead of a leaf: the tree does not count for the row
_MOST_DRAWN = 1000  # draws per entry of a stratum in a file


_DRAWS = saved_fields(
    replace=flag(),
    unit_of_row=array("uint32", "n_rows"),
    strata=listed(array("uint32", None), "n_strata"),
    n_drawn=listed(integer(least=1), "n_strata"),
)


def _read_draws(value: Any, name: str, known: Known) -> Draws:
    draws = Draws(n_rows=known["n_rows"], seed=known["seed"], **_DRAWS.from_header(value, n_rows=known["n_rows"]))
    units = np.unique(draws.unit_of_row[draws.unit_of_row != 2**32 - 1])
    sound = len(draws.strata) > 0
    for stratum, n in zip(draws.strata, draws.n_drawn, strict=True):
        most = len(stratum) * _MOST_DRAWN if draws.replace else len(stratum)
        sound = sound and n <= most and bool(np.isin(stratum, units).all())
    if not sound or not np.isin(units, np.concatenate(draws.strata)).all():
        refuse("is damaged: its samples of rows are inconsistent")
    return draws


_WEIGHT = nullable(array("float64", "n_rows", least=0))
_ROWS = saved_fields(
    leaf=array(("uint16", "uint32"), "n_trees", "n_rows"),
    target=array(("float64", "int32"), "n_rows", None),
    balanced=flag(),
    growth_weight=_WEIGHT,
    row_weight=_WEIGHT,
    draws=optional(Field(_DRAWS.to_header, _read_draws)),
)


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows that a forest was grown on, with their leaves.

    Attributes
    ----------
    leaf : ndarray of shape (n_trees, n_rows), uint16 or uint32
        Leaf of every row in every tree, including trees that were grown without it.
    target : ndarray of shape (n_rows, n_outputs), float64 or int32
        Values, or class codes.
    n_classes : list of int
        By output; empty for a numeric target.
    growth_weight : ndarray of shape (n_rows,) or None
        Weight of a row each time it is drawn.
    row_weight : ndarray of shape (n_rows,) or None
        The `sample_weight` of each row.
    draws : Draws or None
        The samples of the trees; None: all rows.
    balanced : bool
        Whether the classes have equal weights in each tree's sample.
    n_nodes : list of int
        Number of nodes of each tree.
    """

    leaf: NDArray[Any]
    target: NDArray[Any]
    n_classes: list[int]
    growth_weight: Floats | None
    row_weight: Floats | None
    draws: Draws | None
    balanced: bool
    n_nodes: list[int]

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return int(self.leaf.shape[1])

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.leaf.shape[0])

    def counts(self, tree: int) -> NDArray[np.uint32]:
        """Return how often each row was drawn for a tree."""
        return np.ones(self.n_rows, dtype=np.uint32) if self.draws is None else self.draws.counts(tree)

    def amounts(self, tree: int) -> Floats:
        """Return the weight of each row in the growth of a tree."""
        counts = self.counts(tree)
        weight = self.growth_weight
        if self.balanced and self.draws is not None:
            weight = balanced_weights(self.target, self.n_classes, self.growth_weight, counts)
        return counts.astype(np.float64) if weight is None else counts * weight

    @cached_property
    def engine(self) -> _engine.LeafRows:
        """The rows of every leaf with their fractions of its weight."""
        rows = _engine.LeafRows(self.n_rows)
        for t in range(self.n_trees):
            leaf = np.ascontiguousarray(self.leaf[t], dtype=np.uint32)
            rows.add_tree(leaf, self.amounts(t), self.n_nodes[t])
        return rows

    @cached_property
    def cache(self) -> dict[str, Any]:
        """Results computed from these rows; not pickled."""
        return {}

    @property
    def unseen_leaves(self) -> NDArray[np.uint32]:
        """Leaf of each row in the trees grown without it, (n_rows, n_trees); `LEFT_OUT` in the others."""
        found = np.empty((self.n_rows, self.n_trees), dtype=np.uint32)
        for t in range(self.n_trees):
            found[:, t] = np.where(self.counts(t) == 0, self.leaf[t], LEFT_OUT)
        return found

    @cached_property
    def places(self) -> list[tuple[NDArray[np.uint32], Floats]]:
        """By output: rank of each row by its value, and the sorted values."""
        found = []
        for y in self.target.T:
            order = np.argsort(y, kind="stable")
            place = np.empty(self.n_rows, dtype=np.uint32)
            place[order] = np.arange(self.n_rows, dtype=np.uint32)
            found.append((place, np.ascontiguousarray(y[order], dtype=np.float64)))
        return found

    def out_of_bag_means(self, forest: FittedForest) -> tuple[Floats, NDArray[np.intp]]:
        """Return the mean prediction of the trees grown without each row (NaN if there is none), and their number."""
        width = forest.engine.value_width
        value = forest.engine.value.reshape(-1, width)
        sums, n_used = np.zeros((self.n_rows, width)), np.zeros(self.n_rows, dtype=np.intp)
        for t in range(self.n_trees):
            rows = np.flatnonzero(self.counts(t) == 0)
            sums[rows] += value[self.leaf[t, rows].astype(np.intp) + forest.root[t]]
            n_used[rows] += 1
        with np.errstate(invalid="ignore", divide="ignore"):
            return sums / n_used[:, np.newaxis], n_used

    def unseen(self) -> NDArray[np.bool_]:
        """Return whether each row is out of bag for each tree, (n_trees, n_rows)."""
        return np.array([self.counts(t) == 0 for t in range(self.n_trees)])

    # ---- model files ---------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the header entry."""
        return _ROWS.to_header(self)

    @classmethod
    def from_json(cls, entry: object, forest: FittedForest, n_classes: list[int] | None, seed: int) -> TrainingRows:
        """Return the rows that `to_json` saved; refuse rows that do not match the forest."""
        n_nodes = np.diff(forest.root.astype(np.int64))
        found = {"draws": None} | _ROWS.from_header(entry, n_trees=forest.n_trees, seed=seed)
        leaf, target = found["leaf"], found["target"]
        if leaf.shape[1] == 0 or (leaf.max(axis=1) >= n_nodes).any():
            refuse("is damaged: it has no training rows, or some are in leaves that do not exist")
        # a user-defined criterion may predict something other than y
        n_columns = target.shape[1] if n_classes is None else len(n_classes)
        if target.shape[1] != n_columns or not n_columns or (target.dtype == np.float64) != (n_classes is None):
            refuse("is damaged: the target of its training rows does not match the forest")
        if n_classes is not None and ((target < 0) | (target >= np.array(n_classes))).any():
            refuse("is damaged: a training row has a class that does not exist")
        found["balanced"] &= n_classes is not None
        return cls(**found, n_classes=n_classes or [], n_nodes=n_nodes.tolist())


@dataclass(frozen=True, eq=False)
class OutOfBagResult:
    """Out-of-bag evaluation of a fit.

    Attributes
    ----------
    score : float
        NaN if no row is out of bag.
    curve : ndarray of shape (n_trees,)
    predictions : ndarray, list of ndarray, or None
        Class probabilities or values by row; a model file stores them only with the training rows.
    """

    score: float
    curve: Floats
    predictions: Floats | list[Floats] | None


_WITH_ROWS = saved_fields(
    print_of_all=optional(listed(integer(), 2)),
    out_of_bag=optional(array("float64", "n_rows", "width", finite=False)),
)
_RECORD = saved_fields(
    seed=integer(least=0, below=2**31),
    shrinkage=optional(number(0.0, below=math.inf)),
    oob_score=optional(score()),
    oob_curve=optional(array("float64", "n_trees", finite=False)),
    ranges=optional(SAVED_RANGES),
    rows=optional(Field(dict, lambda value, name, known: value if isinstance(value, dict) else lack(name))),
)


@dataclass(frozen=True, eq=False)
class GrowthRecord:
    """How a forest was grown.

    Attributes
    ----------
    seed : int
    shrinkage : float or None
        Strength of the shrinkage, in rows; None: trees without a target.
    draws : Draws or None
        The samples of the trees; None: all rows, or unknown.
    all_rows : ndarray of int or None
        The rows of positive weight, if trees are grown on all rows.
    is_imported : bool
        Whether another library grew the trees.
    ranges : ColumnRanges or None
        Range of the training rows in each column.
    row_fingerprint : RowFingerprint or None
        Fingerprint of the training rows, where some are out of bag.
    rows : TrainingRows or None
        With `keep_rows`.
    oob : OutOfBagResult or None
        With `oob_score`.
    """

    seed: int = 0
    shrinkage: float | None = None
    draws: Draws | None = None
    all_rows: NDArray[np.intp] | None = None
    is_imported: bool = False
    ranges: ColumnRanges | None = None
    row_fingerprint: RowFingerprint | None = None
    rows: TrainingRows | None = None
    oob: OutOfBagResult | None = None

    @property
    def knows_samples(self) -> bool:
        """Whether a warm start can compare the samples: False for a model file without training rows."""
        return self.draws is not None or self.all_rows is not None or self.rows is not None or self.is_imported

    def samples(self, n_trees: int) -> Sequence[NDArray[np.intp]] | None:
        """Return the rows of each tree, repeated as often as drawn; None: unknown."""
        if self.draws is not None:
            return LazySequence(n_trees, self.draws.rows)
        everything = self.all_rows
        return None if everything is None else LazySequence(n_trees, lambda _: everything.copy())

    def attributes(self, oob_name: str) -> dict[str, Any]:
        """Return the public fitted attributes; `oob_name` is the name of the out-of-bag predictions."""
        found: dict[str, Any] = {} if self.shrinkage is None else {"shrinkage_": self.shrinkage}
        if self.oob is not None:
            found |= {"oob_score_": self.oob.score, "oob_curve_": self.oob.curve}
            if self.oob.predictions is not None:
                found[oob_name] = self.oob.predictions
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the header entry. Draws and row fingerprints are saved only with the training rows."""
        found = vars(self) | {"rows": None}
        if self.oob is not None:
            found |= {"oob_score": self.oob.score, "oob_curve": self.oob.curve}
        if self.rows is not None:
            more: dict[str, Any] = {}
            if self.row_fingerprint is not None:
                more["print_of_all"] = [self.row_fingerprint.table, self.row_fingerprint.target]
            if self.oob is not None and self.oob.predictions is not None:
                parts = self.oob.predictions if isinstance(self.oob.predictions, list) else [self.oob.predictions]
                more["out_of_bag"] = np.column_stack(parts)
            found["rows"] = self.rows.to_json() | _WITH_ROWS.to_header(more)
        return _RECORD.to_header(found)

    @classmethod
    def from_json(cls, entry: dict[str, Any], saved: SavedModel, has_threshold: bool = False) -> GrowthRecord:
        """Return the record that `to_json` saved; refuse one that does not match the trees or the kind of forest."""
        if ("offset" in entry) != has_threshold:
            refuse("is damaged: its threshold does not match its kind of forest")
        forest = saved.model
        assert isinstance(forest, FittedForest)
        sizes = {"n_features": saved.schema.n_features, "n_trees": forest.n_trees}
        found = _RECORD.from_header(entry, **sizes)
        held, rows, more = found.pop("rows", None), None, {}
        if held is not None:
            n_classes = None if saved.classes is None else [len(labels) for labels in saved.classes]
            rows = TrainingRows.from_json(held, forest, n_classes, found["seed"])
            more = _WITH_ROWS.from_header(held, n_rows=rows.n_rows, width=forest.engine.value_width)
        oob, curve = None, found.pop("oob_curve", None)
        if "oob_score" in found:
            if curve is None:
                refuse("is damaged: its out-of-bag score has no curve")
            predictions = forest.by_output(more["out_of_bag"]) if "out_of_bag" in more else None
            oob = OutOfBagResult(found.pop("oob_score"), curve, predictions)
        row_fingerprint = RowFingerprint(*more["print_of_all"]) if "print_of_all" in more else None
        return cls(
            **found, draws=None if rows is None else rows.draws, row_fingerprint=row_fingerprint, rows=rows, oob=oob
        )
