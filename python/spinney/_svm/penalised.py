"""Planes of least penalty and loss, and the choice of the penalty."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._data.display.warn import warn
from spinney._model.file.arrays import array_to_json
from spinney._model.file.container import field
from spinney._model.saving.model_part import FittedPart
from spinney._model.svm.model import FittedPlanes
from spinney._svm.linear_solve import Plane, Terms, fit_plane
from spinney._svm.planes import BasePlanes, Floats, PlaneRows, PlaneTable
from spinney._svm.rows import MarginRows
from spinney._svm.search import Grid, folds_of, is_searched, read_penalties, results_from_json

_LARGEST_C = 1e30


class Penalised(BasePlanes):
    """Planes of least penalty and loss, by `fit_plane`."""

    _kept_numbers = ("objective_", "dual_gap_", "n_iter_")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BasePlanes._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"cv"}), "array-like"],
        "cv": ["cv_object", "array-like"],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    @abstractmethod
    def _fit_planes(self, rows: PlaneRows, learned: dict[str, Any], C: float, start: list[Plane] | None) -> list[Plane]:
        """Fit each machine's plane for a penalty."""

    @abstractmethod
    def _errors(self, model: FittedPlanes, scores: Floats, target: Floats) -> Floats:
        """Say what each row's prediction costs, from its scores."""

    def _planes(
        self,
        terms: Floats,
        machines: list[tuple[Floats, Floats]],
        epsilon: float | None,
        squared: bool,
        C: float,
        start: list[Plane] | None,
    ) -> list[Plane]:
        """Fit a plane for each machine's targets and weights; equal rows count as one where the method asks for it."""
        options = {"tol": float(self.tol), "max_iter": int(self.max_iter), "squared": squared}
        planes: list[Plane] = []
        for m, (z, weight) in enumerate(machines):
            if not squared:
                rows = MarginRows.of(terms, z, weight)
                own, z, weight = rows.terms, rows.target, rows.weight
            else:
                own = terms
            kept = weight > 0
            if not kept.all():
                own, z, weight = np.ascontiguousarray(own[:, kept]), z[kept], weight[kept]
            first = start[m].weights if start is not None and squared else None
            planes.append(fit_plane(Terms(own, self._n_threads), z, C * weight, epsilon, start=first, **options))
        return planes

    def _choose(self, table: PlaneTable, learned: dict[str, Any], groups: Any) -> None:
        """Choose C on folds, along a path of penalties; each fold has terms of its own."""
        grid = Grid(read_penalties(self.C), np.ones(1))
        if grid.penalties.max() > _LARGEST_C:
            raise ValueError(
                f"C={grid.penalties.max():g} is more than numbers can be weighed by. Pass at most {_LARGEST_C:g}; a "
                "margin that no row crosses is found by SVC(kernel='linear', C=inf)."
            )
        learned["C_"] = float(grid.penalties[0])
        if not is_searched(self.C):
            return
        random = check_random_state(self.random_state)
        folds = folds_of(self.cv, table.target, "classes_" in learned, table.weight, groups, random)
        errors, total = np.empty((1, len(grid.penalties), len(folds))), np.empty(len(folds))
        for f, fold in enumerate(folds):
            weight = np.zeros_like(table.weight)
            weight[fold.grown_on] = table.weight[fold.grown_on]
            design, rows = table.learn(weight)
            self._check_classes(rows.target, learned)
            held_out = np.ascontiguousarray(design.matrix(table.columns)[:, fold.held_out].T)
            judged, total[f] = table.weight[fold.held_out], table.weight[fold.held_out].sum()
            planes: list[Plane] | None = None
            for p, C in enumerate(grid.penalties.tolist()):
                planes = self._fit_planes(rows, learned, C, planes)
                model = self._model(np.array([plane.weights for plane in planes]), design, learned)
                cost = self._errors(model, model.scores_of(held_out, self._n_threads), table.target[fold.held_out])
                errors[0, p, f] = (cost * judged).sum() / judged.sum()
        _, chosen, means = grid.chosen(errors, total)
        learned["C_"] = float(grid.penalties[chosen])
        results = grid.table(errors, means)
        del results["gamma"]
        learned["cv_results_"] = results

    def _find_planes(
        self, terms: Floats, target: Floats, weight: Floats, learned: dict[str, Any]
    ) -> tuple[Floats, dict[str, Any]]:
        planes = self._fit_planes(PlaneRows(terms, target, weight), learned, learned["C_"], None)
        worst = max(planes, key=lambda plane: plane.gap)
        if not worst.gap <= self.tol:
            warn(
                f"The fit stopped after max_iter={self.max_iter} rounds before tol={self.tol:g} was reached: "
                f"{worst.gap:.3g} is left. Raise max_iter, or scale the columns (scale='standard')."
                if worst.n_iter >= self.max_iter
                else f"The fit came as near as rounding allows before tol={self.tol:g} was reached: {worst.gap:.3g} is "
                f"left. Raise tol, lower C={learned['C_']:g}, or scale the columns (scale='standard').",
                ConvergenceWarning,
            )
        known = {
            "objective_": np.array([plane.objective for plane in planes]),
            "dual_gap_": np.array([plane.gap for plane in planes]),
            "n_iter_": np.array([plane.n_iter for plane in planes]),
        }
        return np.array([plane.weights for plane in planes]), known

    def _to_header(self) -> dict[str, Any]:
        header = super()._to_header()
        header["planes_known"]["C_"] = self.C_
        if hasattr(self, "cv_results_"):
            columns = {name: array_to_json(column) for name, column in self.cv_results_.items()}
            header["planes_known"]["cv_results_"] = columns
        return header

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        found, entry = super()._from_header(header, part), header["planes_known"]
        if "C_" in entry:  # which the first files have not
            found["C_"] = field(entry, "C_", float)
        if "cv_results_" in entry:
            found["cv_results_"] = results_from_json(entry)
        return found
