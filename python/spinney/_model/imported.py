"""A sum of trees that another library has grown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._model.boosting import FittedBoosting
from spinney._model.file.arrays import numbers_from_json
from spinney._model.file.container import field, refuse
from spinney._model.links import is_imported_link
from spinney._model.model import Frame

Floats = NDArray[np.float64]


class FittedImport(FittedBoosting):
    """The trees of an imported model, added up; as those of boosting, but with more links, and several values.

    Attributes
    ----------
    start : ndarray of shape (n_scores,)
        Score of every row before the first tree.
    link : str
        How scores become predictions.
    """

    kind = "imported"
    takes_costs = False
    gain_is = "gain of the splits, as the library that grew them counts it"

    def __init__(
        self,
        trees: Sequence[_engine.Tree],
        start: Floats,
        link: str,
        n_categories: list[int],
        n_classes: list[int] | None,
    ) -> None:
        super().__init__(trees, start, link, n_categories, n_classes)
        self.n_outputs = 1 if n_classes is not None else len(start)

    def __repr__(self) -> str:
        return f"<FittedImport: {self.n_rounds} rounds, {self.node_count} nodes>"

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], frame: Frame) -> Self:
        """Make the sum of a file's trees."""
        n_classes = frame.n_classes
        link, start = field(header, "link", str), numbers_from_json(field(header, "start", list), "start")
        if n_classes is not None and len(n_classes) != 1:
            refuse("is damaged: its number of outputs is wrong")
        n_shares = frame.n_outputs if n_classes is None else n_classes[0]
        if not is_imported_link(link, n_classes is not None, len(start), n_shares):
            refuse("is damaged: its scores and its target do not go together")
        if not trees or len(trees) % len(start):
            refuse(f"is damaged: it holds {len(trees)} trees for {len(start)} scores")
        return cls(trees, start, link, frame.schema.n_categories, n_classes)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return super().attributes() | {"n_outputs_": self.n_outputs}

    def first(self, n_rounds: int) -> FittedImport:
        """Return the model after its first rounds."""
        trees = self.trees()[: n_rounds * self.n_scores]
        return FittedImport(trees, self.start, self.link, self._n_categories, self._n_classes)
