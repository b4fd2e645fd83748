"""What a fitted forest remembers of its growth beside the trees, and the entry of a model file that holds it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.types import Floats
from spinney._estimator.row_fingerprint import RowPrint
from spinney._estimator.support import ColumnRanges, ranges_from_json, ranges_to_json
from spinney._forest.samples import Draws
from spinney._forest.training_rows import TrainingRows
from spinney._model.file.arrays import array_from_json, array_to_json
from spinney._model.file.container import field, refuse
from spinney._model.forest import FittedForest
from spinney._model.saving.model_part import FittedPart


@dataclass(frozen=True, eq=False)
class OutOfBagResult:
    """Out-of-bag evaluation of a fit.

    Attributes
    ----------
    score : float
        NaN: no row is out of bag.
    curve : ndarray of shape (n_trees,)
    predictions : ndarray, list of ndarray, or None
        Class probabilities or values by row; a model file holds them only with the training rows.
    """

    score: float
    curve: Floats
    predictions: Floats | list[Floats] | None


@dataclass(frozen=True, eq=False)
class GrowthRecord:
    """How a forest was grown. The only place that says what of it goes into a model file.

    Attributes
    ----------
    seed : int
    shrinkage : float or None
        Strength of the shrinkage, in rows; None: trees without a target.
    draws : Draws or None
        Rows of each tree; None: all rows, or not known.
    all_rows : ndarray of int or None
        The rows of every tree, where trees are grown on all rows.
    is_imported : bool
        Whether another library grew the trees.
    ranges : ColumnRanges or None
        What the training rows had in each column.
    row_print : RowPrint or None
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
    row_print: RowPrint | None = None
    rows: TrainingRows | None = None
    oob: OutOfBagResult | None = None

    @property
    def knows_samples(self) -> bool:
        """Whether it is known which rows the trees were grown on, or that nobody knows; a file may not say."""
        return self.draws is not None or self.all_rows is not None or self.rows is not None or self.is_imported

    def attributes(self, oob_name: str) -> dict[str, Any]:
        """Return the public fitted attributes; `oob_name` is that of the out-of-bag predictions."""
        found: dict[str, Any] = {} if self.shrinkage is None else {"shrinkage_": self.shrinkage}
        if self.oob is not None:
            found |= {"oob_score_": self.oob.score, "oob_curve_": self.oob.curve}
            if self.oob.predictions is not None:
                found[oob_name] = self.oob.predictions
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the header entry. Draws and row fingerprints are saved with the training rows alone."""
        entry: dict[str, Any] = {"seed": int(self.seed)}
        if self.shrinkage is not None:
            entry["shrinkage"] = float(self.shrinkage)
        if self.oob is not None:
            entry["oob_score"] = self.oob.score if math.isfinite(self.oob.score) else None
            entry["oob_curve"] = array_to_json(self.oob.curve)
        if self.ranges is not None:
            entry["ranges"] = ranges_to_json(self.ranges)
        if self.rows is not None:
            entry["rows"] = self.rows.to_json()
            if self.row_print is not None:
                entry["rows"]["print_of_all"] = [self.row_print.table, self.row_print.target]
            if self.oob is not None and self.oob.predictions is not None:
                parts = self.oob.predictions if isinstance(self.oob.predictions, list) else [self.oob.predictions]
                entry["rows"]["out_of_bag"] = array_to_json(np.column_stack(parts))
        return entry

    @classmethod
    def from_json(cls, entry: dict[str, Any], part: FittedPart, has_threshold: bool = False) -> GrowthRecord:
        """Turn back what `to_json` gives; refuse what does not fit the trees, or an isolation forest's threshold."""
        if ("offset" in entry) != has_threshold:
            refuse("is damaged: its estimator and its threshold do not go together")
        forest = part.model
        assert isinstance(forest, FittedForest)
        seed = field(entry, "seed", int)
        shrinkage = field(entry, "shrinkage", float) if "shrinkage" in entry else None
        if not 0 <= seed < 2**31:
            refuse("is damaged: its seed is not a number between 0 and 2³¹")
        if shrinkage is not None and not 0 <= shrinkage < math.inf:
            refuse("is damaged: the strength of its shrinkage is impossible")
        rows = row_print = None
        if "rows" in entry:
            n_classes = None if part.classes is None else [len(labels) for labels in part.classes]
            fields = field(entry, "rows", dict)
            rows = TrainingRows.from_json(fields, forest, n_classes, seed)
            row_print = _row_print(fields["print_of_all"]) if "print_of_all" in fields else None
        return cls(
            seed=seed,
            shrinkage=shrinkage,
            draws=None if rows is None else rows.draws,
            ranges=ranges_from_json(field(entry, "ranges", dict), part.schema.n_features)
            if "ranges" in entry
            else None,
            row_print=row_print,
            rows=rows,
            oob=_oob_from_json(entry, forest, rows) if "oob_score" in entry else None,
        )


def _row_print(numbers: Any) -> RowPrint:
    if not isinstance(numbers, list) or len(numbers) != 2 or any(type(number) is not int for number in numbers):
        refuse("is damaged: the fingerprint of its training rows is unusable")
    return RowPrint(*numbers)


def _oob_from_json(entry: dict[str, Any], forest: FittedForest, rows: TrainingRows | None) -> OutOfBagResult:
    score = entry["oob_score"]
    if score is not None and (type(score) not in (int, float) or not math.isfinite(score)):
        refuse("is damaged: its out-of-bag score is not a finite number")
    curve = array_from_json(entry.get("oob_curve"), ("float64",), (forest.n_trees,))
    predictions = None
    if rows is not None and "out_of_bag" in entry["rows"]:
        shape = (rows.n_rows, forest.engine.value_width)
        predictions = forest.spread(array_from_json(entry["rows"]["out_of_bag"], ("float64",), shape))
    return OutOfBagResult(math.nan if score is None else float(score), curve, predictions)
