"""What decides by margins: one score for each machine, and what follows from the scores."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.design import Design
from spinney._model.file.arrays import array_from_json, array_to_json, numbers_from_json
from spinney._model.file.container import field, refuse
from spinney._model.functional.model import FunctionsRowPredictor
from spinney._model.model import FittedModel, Frame
from spinney._model.svm.coupling import curve, join_pairs

Floats = NDArray[np.float64]


class FittedMargin(FittedModel):
    """Machines that score rows by the side of a margin they lie on.

    With two classes there is one machine, whose positive side is the second class. With more, machines tell two classes
    apart each ("ovo", whose positive side is the first of the two), or one class from all others ("ovr").

    Attributes
    ----------
    design : Design or None
        The table as terms; None: the table holds kernel values.
    strategy : {"one", "ovo", "ovr"}
        What the machines are of.
    intercepts : ndarray of shape (n_machines,)
        What each machine adds to its sums.
    calibration : ndarray of shape (n_machines, 2), or None
        A and B of each machine's curve 1 / (1 + exp(A f + B)).
    """

    attribute = "margin_"

    takes_priors = False

    def __init__(
        self,
        design: Design | None,
        strategy: str,
        intercepts: Floats,
        n_classes: list[int] | None,
        calibration: Floats | None = None,
    ) -> None:
        super().__init__(n_classes, 1)
        self.design = design
        self.strategy = strategy
        self.intercepts = intercepts
        self.calibration = calibration

    @property
    def n_machines(self) -> int:
        """Number of machines."""
        return len(self.intercepts)

    # ---- predicting ------------------------------------------------------------------------------------------

    @abstractmethod
    def scores_of(self, rows: Floats, n_jobs: int) -> Floats:
        """Score rows of terms, (n_rows, n_terms); (n_rows, n_machines)."""

    def rows(self, columns: _engine.Table) -> Floats:
        """Rows as the machines read them."""
        if self.design is None:
            return np.column_stack([np.asarray(columns.column(j)) for j in range(columns.n_columns)])
        return np.ascontiguousarray(self.design.matrix(columns).T)

    def scores(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Score rows, (n_rows, n_machines)."""
        return self.scores_of(self.rows(columns), n_jobs)

    def class_scores(self, scores: Floats) -> Floats:
        """One score for each class: of pairs, its votes, and below 1/3 how clear they are."""
        if self.strategy != "ovo":
            return np.column_stack([-scores, scores]) if self.strategy == "one" else scores
        assert self._n_classes is not None
        k = self._n_classes[0]
        votes, clear = np.zeros((len(scores), k)), np.zeros((len(scores), k))
        for m, (i, j) in enumerate(zip(*np.triu_indices(k, 1), strict=True)):
            clear[:, i] += scores[:, m]
            clear[:, j] -= scores[:, m]
            wins = scores[:, m] > 0
            votes[:, i] += wins
            votes[:, j] += ~wins
        return np.asarray(votes + clear / (3 * (np.abs(clear) + 1)))

    def score_codes(self, scores: Floats) -> NDArray[np.intp]:
        """Code of the class that each row is predicted to be, (n_rows, 1)."""
        if self.strategy == "one":
            return (scores > 0).astype(np.intp)
        return np.asarray(self.class_scores(scores).argmax(axis=1)[:, np.newaxis])

    def predicted(self, scores: Floats) -> Floats:
        """Turn scores into values, (n_rows, 1), or class shares, (n_rows, n_classes)."""
        if self._n_classes is None:
            return scores
        if self.calibration is None:
            raise ValueError(
                "This model has no class probabilities: it was fitted without them. Use predict, or fit with "
                "probability=True."
            )
        shares = curve(scores, self.calibration)
        if self.strategy == "one":
            return np.column_stack([1 - shares, shares])
        if self.strategy == "ovo":
            return join_pairs(shares, self._n_classes[0])
        total = shares.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, shares / np.where(total > 0, total, 1), 1 / shares.shape[1]))

    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Value, or class shares, of each row."""
        return self.predicted(self.scores(columns, n_jobs))

    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """Code of the class that each row is predicted to be, (n_rows, 1)."""
        return self.score_codes(self.scores(columns, n_jobs))

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> FunctionsRowPredictor:
        """Prepare a handle that predicts single rows."""
        model: Any = self
        return FunctionsRowPredictor(model, schema, unseen, classes)

    # ---- files -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _numbers(self) -> dict[str, Any]:
        """Return what the machines are made of, as JSON can hold it."""

    @classmethod
    @abstractmethod
    def _from_numbers(cls, header: dict[str, Any], base: dict[str, Any], frame: Frame) -> Self:
        """Turn back what `_numbers` gives; `base` are the arguments that all machines have."""

    @abstractmethod
    def _arrays(self) -> list[NDArray[Any]]:
        """All numbers that the scores rest on."""

    def to_header(self) -> dict[str, Any]:
        """Return all of it."""
        entry: dict[str, Any] = {
            "kind": self.kind,
            "strategy": self.strategy,
            "design": None if self.design is None else self.design.to_dict(),
            "intercepts": self.intercepts.tolist(),
        }
        if self.calibration is not None:
            entry["calibration"] = array_to_json(self.calibration)
        return entry | self._numbers()

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], frame: Frame) -> Self:
        """Turn back what `to_header` gives."""
        if trees or frame.n_outputs != 1:
            refuse("is damaged: it has trees or outputs that its model cannot have")
        strategy, n_classes = field(header, "strategy", str), frame.n_classes
        intercepts = numbers_from_json(field(header, "intercepts", list), "intercepts")
        k = 0 if n_classes is None else n_classes[0]
        wanted = {"one": 1, "ovo": k * (k - 1) // 2, "ovr": k}.get(strategy, -1)
        if len(intercepts) != wanted or (strategy == "one" and k not in (0, 2)) or (strategy != "one" and k < 3):
            refuse("is damaged: its machines do not fit its classes")
        design = None if header.get("design") is None else Design.from_dict(header["design"], frame.schema)
        calibration = None
        if header.get("calibration") is not None:
            calibration = array_from_json(header["calibration"], ("float64",), (len(intercepts), 2))
            if n_classes is None or not np.isfinite(calibration).all():
                refuse("is damaged: its probabilities are unusable")
        base = {
            "design": design,
            "strategy": strategy,
            "intercepts": intercepts,
            "n_classes": n_classes,
            "calibration": calibration,
        }
        return cls._from_numbers(header, base, frame)

    def identity(self) -> bytes:
        """Hash of all numbers."""
        digest = hashlib.sha256(self.strategy.encode())
        arrays = [self.intercepts, *self._arrays()]
        if self.design is not None:
            design = self.design
            arrays += [design.feature, design.kind, design.code, design.center, design.scale]
            arrays += [] if design.fill is None else [design.fill]
        arrays += [] if self.calibration is None else [self.calibration]
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return {self.attribute: self}


def plane_scores(rows: Floats, planes: Floats, intercepts: Floats, n_jobs: int) -> Floats:
    """Add up the terms of each row times the weights of each plane, and its intercept."""
    n = len(planes)
    parts = np.repeat(np.arange(n, dtype=np.int32)[:, np.newaxis], 4, axis=1)
    parts[:, 3] = 1
    if not n or not len(rows):
        return np.tile(intercepts, (len(rows), 1))
    return _engine.decisions(
        np.ascontiguousarray(rows),
        np.ascontiguousarray(planes),
        "linear",
        1.0,
        0.0,
        1,
        np.eye(n),
        np.ascontiguousarray(parts),
        intercepts,
        n_jobs,
    )
