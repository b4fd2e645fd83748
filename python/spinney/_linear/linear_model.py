"""What linear models of classes and of values share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._data import read_table
from spinney._data.design import Design
from spinney._estimator.summary import About, counted
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_weights
from spinney._model.linear import FittedLinear

Floats = NDArray[np.float64]


class BaseLinear(TableEstimator):
    """A table as terms of one scale, and a slope for each."""

    _model_attribute = "linear_"
    linear_: FittedLinear
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scale": ["boolean"],
        "categorical_features": ["array-like", None],
        "unseen": [StrOptions({"missing", "error", "other"})],
    }

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], dict[str, Any]]:
        """Check y; return it as numbers, and what is learned from it."""

    @abstractmethod
    def _solve(
        self, terms: Floats, target: NDArray[Any], weight: Floats, penalty: Floats, learned: dict[str, Any]
    ) -> tuple[Floats, Floats, str]:
        """Return slopes, constants and link; add to what is learned."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the slopes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or a
            list of rows. Strings, categories, booleans and missing values are taken as they are.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means that the row counts twice, a weight of 0 leaves it out.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._validate_params()
        table = read_table(X)
        schema = self._learn_schema(table)
        target, learned = self._read_target(y, table.n_rows)
        weight = read_weights(sample_weight, table.n_rows)
        weight = np.ones(table.n_rows) if weight is None else weight
        columns = schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)
        design = Design.learn(columns, schema, weight)
        used = weight > 0
        terms = design.matrix(columns)
        if not used.all():
            terms, target, weight = np.ascontiguousarray(terms[:, used]), target[used], weight[used]
        penalty = np.ones(len(design)) if self.scale else 1 / np.clip(design.scale, 1e-150, 1e150) ** 2
        slopes, constants, link = self._solve(terms, target, weight, penalty, learned)
        n_classes = [len(learned["classes_"])] if "classes_" in learned else None
        self._keep_schema(schema)
        self.linear_ = FittedLinear(design, slopes, constants, link, n_classes)
        self.__dict__.update(learned)
        return self

    # ---- reading it ----------------------------------------------------------------------------------

    def _raw_slopes(self) -> Floats:
        check_is_fitted(self)
        return np.asarray((self.linear_.slopes / self.linear_.design.scale[:, np.newaxis]).T)

    def _raw_constants(self) -> Floats:
        slopes = self._raw_slopes()
        return np.asarray(self.linear_.constants - (slopes * self.linear_.design.center).sum(axis=1))

    @property
    def terms_(self) -> list[str]:
        """What the slopes belong to: columns, "column = category" and "column is missing"."""
        check_is_fitted(self)
        return self.linear_.design.names(self.schema_)

    def _about(self) -> About:
        n_terms = len(self.linear_.design)
        text = counted(n_terms, "term", "terms")
        return About(
            "linear model",
            {"terms": n_terms},
            {"terms": f"{n_terms:,}"},
            f"Linear model of {text}.",
            why_no_trees="The file holds a linear model, which has no trees. Look at its coef_ and terms_ in Python.",
        )
