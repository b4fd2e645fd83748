"""The one-class support vector machine."""

from __future__ import annotations

from numbers import Real
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._data.types import Floats, Integers, TableLike
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.target import SingleTarget
from spinney._model.file.codec import SavedState, integer
from spinney._svm.kernel_machines import NU, SAVED, BaseKernelMachine, Solved
from spinney._svm.margin_estimator import Chosen, MarginRows, MarginTable
from spinney._svm.solve import Problems, one_class_problem


@estimator
class OneClassSVM(OutlierMixin, BaseKernelMachine):
    """One-class support vector machine: detects rows unlike the training rows.

    The machine separates most training rows from the origin of the kernel's feature space by the hyperplane that is
    farthest from the origin (Schölkopf, Platt, Shawe-Taylor, Smola and Williamson 2001). ``nu`` is an upper bound on
    the fraction of training rows that are outliers, and a lower bound on the fraction of support vectors. Columns are
    encoded as numeric features, called terms, as in `SVC`; the solver is the same too.

    See Also
    --------
    IsolationForest : Detects outliers by random trees; the units of the columns do not matter.

    Examples
    --------
    >>> import spinney
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> model = spinney.OneClassSVM(nu=0.5, gamma="auto").fit(X)
    >>> model.predict([[0.45], [3.0]])
    array([ 1, -1])
    """

    nu: float = parameter(NU, default=0.5)
    gamma: Literal["scale", "auto"] | float = parameter(
        StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither"), default="scale"
    )
    _has_target = False
    _noun = "one-class support vector machine"
    _saved: ClassVar[SavedState] = SavedState("fitted", {**SAVED, "n_iter_": integer()})

    def fit(self, X: TableLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:  # type: ignore[override]
        """Fit the machine.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values need no encoding. With
            ``kernel="precomputed"``: the kernel matrix of the rows.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice; a weight of 0 leaves the row out.

        Returns
        -------
        self
            The fitted estimator.
        """
        return super().fit(X, None, sample_weight)  # type: ignore[arg-type]

    def _read_target(self, y: ArrayLike | None, n_rows: int) -> SingleTarget:
        return SingleTarget(np.zeros(n_rows))

    def _problems(self, rows: MarginRows, table: MarginTable) -> Problems:
        return one_class_problem(rows, float(self.nu))

    def _set_fitted(self, solved: Solved, chosen: Chosen) -> None:
        super()._set_fitted(solved, chosen)
        self.n_iter_ = int(solved.solutions[0].n_iter)

    @property
    def offset_(self) -> float:
        """Score of rows on the boundary: `decision_function` is `score_samples` minus this number."""
        check_is_fitted(self)
        return -float(self.margin_.intercepts[0])

    def decision_function(self, X: TableLike) -> Floats:
        """Compute scores relative to the boundary; negative for outliers.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            ``score_samples(X) - offset_``, which is proportional to the signed distance from the hyperplane in the
            kernel's feature space.
        """
        return self._scores(X)[:, 0]

    def score_samples(self, X: TableLike) -> Floats:
        """Score rows; the lower, the more abnormal.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Sum of the kernel values with the support vectors, times ``dual_coef_``.
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: TableLike) -> Integers:
        """Predict whether rows are outliers.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            -1 for outliers, 1 for inliers.
        """
        return np.where(self.decision_function(X) < 0, -1, 1).astype(np.int64)
