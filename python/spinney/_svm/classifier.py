"""Support vector machines that tell classes apart."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from spinney._estimator.costs import read_cost_matrix
from spinney._estimator.parameters import store_parameters
from spinney._svm.class_pairs import MachinesOfClasses
from spinney._svm.kernel_machine import Floats
from spinney._svm.rows import MarginRows
from spinney._svm.search import PENALTY
from spinney._svm.solve import Problems, class_problems


class SVC(MachinesOfClasses):
    """Support vector classification.

    The widest margin between two classes, in the terms of the table or, with a kernel, in a space that bends; rows that
    lie within the margin or beyond it pay ``C`` times how far. The dual is solved by steps of two rows each, chosen to
    second order, until no pair violates the conditions of the optimum by more than ``tol``.

    Numbers are centred and scaled, categories become one term each, and what is missing has the mean and a term of its
    own, unless ``scale=False`` leaves numbers as they are: ``terms_`` names the terms. Rows that are equal in all terms
    and in class count as one, with the sum of their weights.

    See Also
    --------
    LinearSVC : Planes, for many rows.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.SVC(C=10.0).fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MachinesOfClasses._parameter_constraints,
        "C": PENALTY,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "cost_matrix": ["array-like", dict, None],
        "multi_class": [StrOptions({"ovo", "ovr"})],
    }

    def __init__(
        self,
        *,
        C: Any = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        scale: Any = "standard",
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        precision: str = "single",
        class_weight: Any = None,
        cost_matrix: Any = None,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        max_iter: int = -1,
        cv: Any = 5,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        codes, learned = super()._read_target(y, n_rows)
        cost = None if self.cost_matrix is None else read_cost_matrix(self.cost_matrix, learned["classes_"])
        return codes, learned | {"cost_matrix_": cost}

    def _weights_of_classes(self) -> Any:
        return self.class_weight

    def _multi_class(self) -> str:
        return str(self.multi_class)

    def _problems(self, rows: MarginRows, learned: dict[str, Any]) -> Problems:
        return class_problems(rows, learned["_by_class"], self.multi_class, learned["cost_matrix_"])
