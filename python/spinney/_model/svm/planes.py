"""Hyperplanes: sums of terms times weights."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spinney._model.file.arrays import array_from_json, array_to_json
from spinney._model.file.container import refuse
from spinney._model.model import Frame
from spinney._model.svm.model import FittedMargin, plane_scores

Floats = NDArray[np.float64]


class FittedPlanes(FittedMargin):
    """One plane for each machine.

    Attributes
    ----------
    planes : ndarray of shape (n_machines, n_terms)
        Weights of the terms.
    """

    kind = "planes"
    noun = "hyperplane"

    def __init__(self, *, planes: Floats, **base: Any) -> None:
        super().__init__(**base)
        self.planes = planes

    def __repr__(self) -> str:
        return f"<FittedPlanes: {self.n_machines} planes of {self.planes.shape[1]} terms>"

    def scores_of(self, rows: Floats, n_jobs: int) -> Floats:
        """Score rows, (n_rows, n_machines)."""
        return plane_scores(rows, self.planes, self.intercepts, n_jobs)

    def _numbers(self) -> dict[str, Any]:
        return {"planes": array_to_json(self.planes)}

    @classmethod
    def _from_numbers(cls, header: dict[str, Any], base: dict[str, Any], frame: Frame) -> Self:
        if base["design"] is None or base["strategy"] == "ovo":
            refuse("is damaged: its planes and its terms do not go together")
        planes = array_from_json(header.get("planes"), ("float64",), (len(base["intercepts"]), len(base["design"])))
        if not np.isfinite(planes).all():
            refuse("is damaged: its planes hold impossible numbers")
        return cls(planes=planes, **base)

    def _arrays(self) -> list[NDArray[Any]]:
        return [self.planes]
