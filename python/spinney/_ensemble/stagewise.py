"""Base of AdaBoost and functional boosting: parameters of early stopping, and the training and validation rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Self

from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows, split_validation
from spinney._data import Schema, read_table
from spinney._data.feature import Unseen
from spinney._data.types import TableLike
from spinney._estimator.fit_inputs import RowInputs
from spinney._estimator.metrics import check_scoring
from spinney._estimator.parameters import N_JOBS, UNSEEN, estimator, parameter
from spinney._estimator.rate_search import adopt, is_searched, search_rate
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import SingleTarget, check_callbacks, check_held_out, read_weights
from spinney._model.file.codec import Field, columns, number, optional

RATE: list[Any] = [Interval(Real, 0.0, None, closed="neither"), StrOptions({"cv"})]  # what learning_rate may be
SAVED_RATE: dict[str, Field] = {
    "learning_rate_": optional(number(above=0.0, key="chosen_rate")),
    "cv_results_": columns(),
}

# from a seed to the training rows and the validation rows
Split = Callable[[int], tuple[LearningRows, LearningRows]]


@dataclass(eq=False, kw_only=True)
class EncodedTable:
    """The training table, and its schema, by which other tables are encoded.

    Attributes
    ----------
    schema : Schema
        Columns and categories of the training table.
    unseen : str
        Treatment of categories that are not in the training table.
    owner : str
        Name of the estimator, for errors.
    table : Table
        Encoded training rows.
    """

    schema: Schema
    unseen: Unseen
    owner: str
    table: Any = None

    @classmethod
    def of(cls, X: TableLike, categories: Iterable[Any] | None, unseen: Unseen, owner: str, **more: Any) -> Self:
        """Learn the schema of a table, and encode it."""
        raw = read_table(X)
        schema = Schema.learn(raw, categorical_features=categories, unseen=unseen, warn_identifiers=True)
        table = schema.encode(raw, unseen=unseen, estimator=owner)
        return cls(schema=schema, unseen=unseen, owner=owner, table=table, **more)

    def read(self, X: TableLike) -> _engine.Table:
        """Encode another table."""
        return self.schema.encode(read_table(X), unseen=self.unseen, estimator=self.owner)


@estimator
class BaseStagewise(TableEstimator):
    """Estimators that add one function after the other, and may stop early."""

    learning_rate: float | Literal["cv"] = parameter(*RATE, default=1.0)
    early_stopping: bool = parameter("boolean", default=False)
    scoring: str | Callable[..., float] | None = parameter(str, callable, None, default=None)
    validation_fraction: float | int = parameter(
        Interval(Real, 0.0, 1.0, closed="neither"), Interval(Integral, 1, None, closed="left"), default=0.1
    )
    n_iter_no_change: int = parameter(Interval(Integral, 1, None, closed="left"), default=10)
    tol: float = parameter(Interval(Real, 0.0, None, closed="left"), default=1e-7)
    keep_best: bool = parameter("boolean", default=True)
    categorical_features: Iterable[Any] | None = parameter("array-like", None, default=None)
    unseen: Unseen = parameter(UNSEEN, default="missing")
    random_state: int | RandomState | None = parameter("random_state", default=None)
    n_jobs: int | None = parameter(N_JOBS, None, default=None)
    verbose: int | None = parameter("verbose", None, default=None)

    @abstractmethod
    def _encode(self, X: TableLike) -> Any:
        """Return the training table, which has `table` and `read`."""

    @abstractmethod
    def _fit_rows(
        self, encoded: Any, target: SingleTarget, rows: LearningRows, validation: LearningRows | None, split: Split
    ) -> None:
        """Fit the model to training rows; `split` holds out a validation set where none is passed."""

    def _n_folds_held_out(self) -> int:
        return 2 if self.early_stopping else 0

    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        X_val: TableLike = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values need no encoding; estimators of other
            libraries get tables of the same kind.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice; a weight of 0 leaves the row out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are held out together (early stopping).
        time : array-like of shape (n_samples,), optional
            Numbers or dates: the latest rows are held out (early stopping).
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Validation set, for early stopping and the learning curve.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        check_scoring(self.scoring, self._is_class_target)
        check_callbacks(getattr(self, "callbacks", None))
        searched = is_searched(self.learning_rate)
        check_held_out(
            X_val, y_val, {"sample_weight_val": sample_weight_val}, groups, self.early_stopping or searched, time
        )
        if searched:
            inputs = RowInputs(X, y, sample_weight, groups=groups, time=time)
            return self._fit_with_chosen_rate(inputs, X_val=X_val, y_val=y_val, sample_weight_val=sample_weight_val)
        encoded = self._encode(X)
        n_rows, noun = encoded.table.n_rows, type(self).__name__
        target = SingleTarget.read(y, n_rows, noun, self._is_class_target)
        rows = LearningRows(encoded.table, target.values, read_weights(sample_weight, n_rows), X=X)
        validation: LearningRows | None = None
        if X_val is not None and y_val is not None:
            table = encoded.read(X_val)
            known = target.encode_other_rows(y_val, table.n_rows, noun, "y_val")
            validation = LearningRows(table, known, read_weights(sample_weight_val, table.n_rows), X=X_val)

        def split(seed: int) -> tuple[LearningRows, LearningRows]:
            return split_validation(rows, self.validation_fraction, groups, self._is_class_target, seed, time)

        self._fit_rows(encoded, target, rows, validation, split)
        return self

    def _fit_with_chosen_rate(self, inputs: RowInputs, **validation: Any) -> Self:
        """Choose the learning rate by cross-validation, and fit with it."""

        def fit_fold(model: Self, own: RowInputs, held_out: RowInputs) -> Self:
            weights = {"sample_weight": own.sample_weight, "sample_weight_val": held_out.sample_weight}
            return model.fit(own.X, own.y, **weights, X_val=held_out.X, y_val=held_out.y)

        found = search_rate(self, inputs, fit_fold)
        fitted: Self = clone(self).set_params(learning_rate=found["learning_rate_"])
        groups = inputs.groups if self.early_stopping and validation["X_val"] is None else None
        fitted.fit(inputs.X, inputs.y, inputs.sample_weight, groups=groups, **validation)
        adopt(self, fitted, found)
        return self
