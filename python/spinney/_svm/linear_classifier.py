"""Linear support vector machines that tell classes apart, for many rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from spinney._estimator.parameters import store_parameters
from spinney._model.svm.model import FittedPlanes
from spinney._svm.linear_solve import Plane
from spinney._svm.penalised import Penalised
from spinney._svm.planes import Floats, PlaneRows, PlanesOfClasses


class LinearSVC(ClassifierMixin, PlanesOfClasses, Penalised):
    """Linear support vector classification of many rows.

    A plane between two classes, or one for each class against all others, of least ½|w|² plus ``C`` times what rows pay
    that lie within the margin or beyond it. Unlike in liblinear, the intercept is not penalised, so that neither the
    place of the columns' zeros nor a scaling of the intercept matters.

    Time grows in proportion to the rows and with the square of the terms. Squared hinges are minimised by Newton's
    method, which takes a few rounds; hinges by an interior point, to a duality gap of ``tol``.

    See Also
    --------
    SVC : Kernels, and machines for each pair of classes.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.LinearSVC().fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PlanesOfClasses._parameter_constraints,
        **Penalised._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
    }

    def __init__(
        self,
        *,
        loss: str = "squared_hinge",
        C: Any = 1.0,
        scale: Any = "standard",
        tol: float = 1e-4,
        class_weight: Any = None,
        cost_matrix: Any = None,
        max_iter: int = 200,
        cv: Any = 5,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def _fit_planes(self, rows: PlaneRows, learned: dict[str, Any], C: float, start: list[Plane] | None) -> list[Plane]:
        machines = self._sides(rows.target, rows.weight, learned)
        return self._planes(rows.terms, machines, None, self.loss == "squared_hinge", C, start)

    def _errors(self, model: FittedPlanes, scores: Floats, target: Floats) -> Floats:
        return np.asarray(model.score_codes(scores)[:, 0] != target, dtype=np.float64)
