"""The perceptron."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

import spinney._engine as _engine
from spinney._data.display.warn import warn
from spinney._estimator.parameters import store_parameters
from spinney._model.file.container import refuse
from spinney._model.saving.model_part import FittedPart
from spinney._svm.planes import Floats, PlanesOfClasses
from spinney._svm.rows import MarginRows


class Perceptron(ClassifierMixin, PlanesOfClasses):
    """Rosenblatt's perceptron.

    Goes through the rows and learns from its mistakes alone: where a row x of side y = ±1 is not on its side, the
    weights become β + η y x and the intercept b + η y R², with R the length of the longest row. It ends when an epoch
    goes by without a mistake, which happens if a plane separates the classes: after at most 2 R²/M² updates (Novikoff),
    where M is the margin of that plane. Rows that are equal in all terms and in class count as one, in an order of
    their own, and a weight is a factor of η.

    See Also
    --------
    LinearSVC : The plane of the widest margin, with a price for rows beyond it.

    Examples
    --------
    >>> import spinney
    >>> X = [[0.0, 1.0], [1.0, 2.0], [3.0, 0.0], [4.0, 1.0]]
    >>> model = spinney.Perceptron(random_state=0).fit(X, ["left", "left", "right", "right"])
    >>> bool(model.n_updates_[0] <= model.novikoff_bound_[0])
    True
    """

    _noun = "perceptron"
    _kept_numbers = ("n_updates_", "n_iter_")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PlanesOfClasses._parameter_constraints,
        "eta": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "averaged": ["boolean"],
        "shuffle": ["boolean"],
    }

    def __init__(
        self,
        *,
        eta: float = 1.0,
        averaged: bool = False,
        max_iter: int = 1000,
        shuffle: bool = True,
        scale: Any = "standard",
        class_weight: Any = None,
        cost_matrix: Any = None,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def _find_planes(
        self, terms: Floats, target: Floats, weight: Floats, learned: dict[str, Any]
    ) -> tuple[Floats, dict[str, Any]]:
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)) if self.shuffle else 0
        found, updates, epochs, clean, bounds = [], [], [], [], []
        for z, weighed in self._sides(target, weight, learned):
            rows = MarginRows.of(terms, z, weighed)
            radius = float((rows.terms**2).sum(axis=0).max(initial=0.0))
            plane, n_updates, n_epochs, is_clean = _engine.fit_perceptron(
                np.ascontiguousarray(rows.terms.T),
                np.ascontiguousarray(rows.target),
                rows.weight,
                float(self.eta),
                radius or 1.0,
                int(self.max_iter),
                bool(self.averaged),
                bool(self.shuffle),
                seed,
            )
            found.append(plane)
            updates.append(n_updates)
            epochs.append(n_epochs)
            clean.append(is_clean)
            bounds.append(_novikoff(plane, rows, radius))
        if not all(clean) and not self.averaged:
            warn(
                f"The perceptron still made mistakes after max_iter={self.max_iter} epochs: no plane may separate the "
                "classes. Use averaged=True, or LinearSVC.",
                ConvergenceWarning,
            )
        known = {"n_updates_": np.array(updates), "n_iter_": np.array(epochs), "novikoff_bound_": np.array(bounds)}
        return np.array(found), known

    def _to_header(self) -> dict[str, Any]:
        header = super()._to_header()
        bounds = [None if np.isinf(bound) else float(bound) for bound in self.novikoff_bound_]
        header["planes_known"]["novikoff_bound_"] = bounds
        return header

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        found = super()._from_header(header, part)
        given = header["planes_known"].get("novikoff_bound_")
        if not isinstance(given, list) or any(type(bound) not in (float, int, type(None)) for bound in given):
            refuse("is damaged: what is known of its planes does not fit them")
        found["novikoff_bound_"] = np.array([np.inf if bound is None else float(bound) for bound in given])
        return found


def _novikoff(plane: Floats, rows: MarginRows, squared_radius: float) -> float:
    """Return 2 R²/M² with M the least score of a row on its side, over the plane's length with the intercept over R.

    Where weights are factors of the steps, times the square of the largest over the smallest. Infinite if the plane
    leaves rows on the wrong side.
    """
    radius = np.sqrt(squared_radius) or 1.0
    length = np.sqrt((plane[:-1] ** 2).sum() + (plane[-1] / radius) ** 2)
    scores = _engine.weighted_terms(rows.terms, np.ascontiguousarray(plane), 1)
    margin = float((rows.target * scores).min()) / length if length > 0 else 0.0
    if not margin > 0:
        return np.inf
    uneven = float(rows.weight.max() / rows.weight.min())
    return 2.0 * (squared_radius or 1.0) / margin**2 * uneven**2
