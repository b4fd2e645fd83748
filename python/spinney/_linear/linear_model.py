"""Linear models of any table: logistic and ridge regression."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.design import CATEGORY, Design
from spinney._data.display import plural
from spinney._data.feature import Unseen
from spinney._data.types import Floats, TableLike
from spinney._estimator import table_estimator
from spinney._estimator.estimator import About
from spinney._estimator.many_classes import warn_of_passes
from spinney._estimator.online import (
    SAVED_ONLINE,
    Batch,
    OnlineState,
    Quadratic,
    begins,
    check_state,
    forget_batches,
    remember_batch,
    state_of,
)
from spinney._estimator.parameters import UNSEEN, estimator, parameter
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import SingleTarget, read_weights
from spinney._linear.solve import MOST_FACTORED, Logistic, Ridge, RidgeOfSums, with_squared_errors
from spinney._linear.terms import CodedTerms, DenseTerms
from spinney._model.file.codec import SavedState, number
from spinney._model.linear import FittedLinear
from spinney._model.model import FittedModel

_ALPHAS = (0.1, 1.0, 10.0)  # tried by alpha="cv", as scikit-learn's RidgeCV
_MOST_ONLINE = 4000  # coefficients of partial_fit: the curvature of so many takes 128 MB
_LARGEST_WEIGHT = 1e200  # Newton steps with larger ones are rounding errors


def _refuse_large(weight: Floats) -> None:
    if weight.max() > _LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight reaches {weight.max():g}: a linear model cannot compute with numbers of this size. "
            "Rescale the weights."
        )


@dataclass(frozen=True)
class LinearRows:
    """The rows that a linear model is fitted to.

    Attributes
    ----------
    terms : DenseTerms or CodedTerms
        Scaled terms of the design.
    target : ndarray of shape (n_rows,)
        Numeric target, or class codes.
    weight : ndarray of shape (n_rows,)
        Positive weights.
    penalty : ndarray of shape (n_terms,)
        Penalty factor of the square of each coefficient.
    n_classes : int
        Number of classes; 0 in a regression.
    """

    terms: DenseTerms | CodedTerms
    target: Floats
    weight: Floats
    penalty: Floats
    n_classes: int


@estimator
class BaseLinear(TableEstimator):
    """Linear models of a table whose columns become scaled terms."""

    scale: bool = parameter("boolean", default=True)
    categorical_features: ArrayLike | None = parameter("array-like", None, default=None)
    unseen: Unseen = parameter(UNSEEN, default="missing")

    linear_: FittedLinear = field(init=False)
    _model_attribute = "linear_"

    @property
    def _n_threads(self) -> int:
        """Threads of the engine: one, because predictions are cheap."""
        return 1

    @abstractmethod
    def _solve(self, rows: LinearRows) -> tuple[Floats, Floats, str]:
        """Return coefficients, intercepts and link."""

    def fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or a
            list of rows. Strings, categories, booleans and missing values need no encoding.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice; a weight of 0 leaves the row out.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._validate_params()
        table = read_table(X)
        schema = self._learn_schema(table)
        target = SingleTarget.read(y, table.n_rows, "a linear model", self._is_class_target)
        weight = read_weights(sample_weight, table.n_rows)
        weight = np.ones(table.n_rows) if weight is None else weight
        _refuse_large(weight)
        warn_of_passes(target.n_classes or 0, table.n_rows, type(self).__name__)
        columns = schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)
        design = Design.learn(columns, schema, weight)
        used = weight > 0
        terms = self._terms(design, columns)
        if not used.all():
            target.require_rows(weight)
            terms, weight = terms.take(used), weight[used]
        rows = LinearRows(terms, target.values[used], weight, self._penalty(design), target.n_classes or 0)
        self._set_solved(schema, target, design, *self._solve(rows))
        forget_batches(self)
        return self

    def _penalty(self, design: Design) -> Floats:
        """Return the penalty factor of the square of each coefficient of the scaled terms."""
        return np.ones(len(design)) if self.scale else 1 / np.clip(design.scale, 1e-150, 1e150) ** 2

    def _set_solved(
        self, schema: Schema, target: SingleTarget, design: Design, coefficients: Floats, intercepts: Floats, link: str
    ) -> None:
        """Set the fitted attributes."""
        n_classes = target.n_classes
        self._set_schema(schema)
        self.linear_ = FittedLinear(design, coefficients, intercepts, link, None if n_classes is None else [n_classes])
        if (classes := target.classes) is not None:
            self.classes_, self.n_classes_ = classes, len(classes)

    def _learn_batch(
        self, X: TableLike, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> Self:
        """Learn from further rows."""
        self._validate_params()
        is_first = begins(self)
        batch = Batch.read(self, X, y, classes, sample_weight, is_first)
        _refuse_large(batch.weight)
        if is_first:
            design = Design.learn_first(batch.columns, batch.schema, batch.weight, "standard")
        else:
            design = self.linear_.design
        used = batch.weight > 0
        terms = DenseTerms(design.matrix(batch.columns)).take(used)
        target, n_classes = batch.target.values[used], batch.target.n_classes or 0
        rows = LinearRows(terms, target, batch.weight[used], self._penalty(design), n_classes)
        solved, quadratic = self._continue(rows, getattr(self, "_online", None))
        self._set_solved(batch.schema, batch.target, design, *solved)
        remember_batch(self, state_of([quadratic]), len(target))
        return self

    @abstractmethod
    def _continue(self, rows: LinearRows, state: OnlineState | None) -> tuple[tuple[Floats, Floats, str], Quadratic]:
        """Return coefficients, intercepts and link for these and all earlier rows, and the loss of all of them."""

    @classmethod
    def _check_saved(cls, found: dict[str, Any], model: FittedModel) -> None:
        assert isinstance(model, FittedLinear)
        n = (len(model.design) + 1) * len(model.constants)
        check_state(found, curvature=(1, n, n), slope=(1, n), constant=(1,))

    def _terms(self, design: Design, columns: _engine.Table) -> DenseTerms | CodedTerms:
        return DenseTerms(design.matrix(columns))

    def _scores(self, X: TableLike) -> Floats:
        return self._by_blocks(X, lambda columns: self.linear_.scores(columns, 0))

    def _raw_coefficients(self) -> Floats:
        check_is_fitted(self)
        return np.asarray((self.linear_.slopes / self.linear_.design.scale[:, np.newaxis]).T)

    def _raw_intercepts(self) -> Floats:
        coefficients = self._raw_coefficients()
        return np.asarray(self.linear_.constants - (coefficients * self.linear_.design.center).sum(axis=1))

    @property
    def terms_(self) -> list[str]:
        """Names of the terms in `coef_`: columns, "column = category" and "column is missing"."""
        check_is_fitted(self)
        return self.linear_.design.names(self.schema_)

    def _about(self) -> About:
        n_terms = len(self.linear_.design)
        return About(
            "linear model",
            {"terms": n_terms},
            {"terms": f"{n_terms:,}"},
            f"Linear model of {plural(n_terms, 'term')}.",
            why_no_trees="The file holds a linear model, which has no trees. Look at its coef_ and terms_ in Python.",
        )


@estimator
class LinearClassifier(ClassifierMixin, BaseLinear):
    """Logistic regression for any table.

    A numeric column is one term, a categorical column has one term for each category, and a column with missing values
    has a further indicator term. The fit minimises the sum of the log losses of the rows plus the sum of the squared
    coefficients divided by 2 `C`. With more than two classes, each class has a score (multinomial). Newton's method
    converges to full precision, and the coefficients are bit-identical on every processor.

    See Also
    --------
    LinearRegressor : Ridge regression.
    StackingClassifier : Uses this model as its default final estimator.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.LinearClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    C: float = parameter(Interval(Real, 0.0, None, closed="neither"), default=1.0, kw_only=False)
    _is_class_target = True
    _saved: ClassVar[SavedState] = SavedState("", SAVED_ONLINE)
    predict = table_estimator.predict_labels
    predict_proba = table_estimator.predict_proba
    predict_log_proba = table_estimator.predict_log_proba
    decision_function = table_estimator.decision_function

    def _terms(self, design: Design, columns: _engine.Table) -> DenseTerms | CodedTerms:
        is_coded = len(design) > MOST_FACTORED and bool((design.kind == CATEGORY).any())
        return CodedTerms.of(design, columns) if is_coded else super()._terms(design, columns)

    def _solve(self, rows: LinearRows) -> tuple[Floats, Floats, str]:
        penalty = rows.penalty / self.C
        codes = rows.target.astype(np.intp)
        coefficients, intercepts = Logistic(rows.terms, codes, rows.weight, penalty, rows.n_classes).solve()
        return coefficients, intercepts, "logit" if rows.n_classes == 2 else "softmax"

    def partial_fit(
        self,
        X: TableLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Update the model with further rows; the rows of earlier calls are not needed any more.

        The log loss of earlier rows is replaced by its second-order expansion at the coefficients that were fitted when
        they arrived. Each call is therefore a short fit by Newton's method, and a single call gives the same model as
        `fit`. Larger batches give a model closer to that of a fit to all rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows, with the columns of the first call. The terms, their scale and the replacement of missing values are
            those of the first call; a category that the first call did not have is an error.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels that y may have in any call; required in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice; a weight of 0 leaves the row out.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._learn_batch(X, y, classes, sample_weight)

    def _continue(self, rows: LinearRows, state: OnlineState | None) -> tuple[tuple[Floats, Floats, str], Quadratic]:
        codes, n_scores = rows.target.astype(np.intp), 1 if rows.n_classes == 2 else rows.n_classes
        n = (len(rows.terms) + 1) * n_scores
        if n > _MOST_ONLINE:
            raise ValueError(
                f"partial_fit holds the curvature of all pairs of coefficients, and this table has {n:,} coefficients; "
                f"at most {_MOST_ONLINE:,} are supported. Use fewer columns or categories."
            )
        earlier = Quadratic.of(n, state)
        logistic = Logistic(rows.terms, codes, rows.weight, rows.penalty / self.C, rows.n_classes, earlier)
        coefficients, intercepts = logistic.solve()
        together = np.concatenate([coefficients, intercepts[np.newaxis]])
        link = "logit" if rows.n_classes == 2 else "softmax"
        return (coefficients, intercepts, link), logistic.with_rows(together)

    @property
    def coef_(self) -> Floats:
        """Coefficients, (1, n_terms) for two classes, else (n_classes, n_terms), in the units of the columns."""
        return self._raw_coefficients()

    @property
    def intercept_(self) -> Floats:
        """Intercepts, one per row of `coef_`."""
        return self._raw_intercepts()


@estimator
class LinearRegressor(RegressorMixin, BaseLinear):
    """Ridge regression for any table.

    A numeric column is one term, a categorical column has one term for each category, and a column with missing values
    has a further indicator term. The fit minimises the sum of squared errors plus `alpha` times the sum of the squared
    coefficients.

    See Also
    --------
    LinearClassifier : Logistic regression.
    StackingRegressor : Uses this model as its default final estimator.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.LinearRegressor(alpha=0.0).fit([[1.0], [2.0], [4.0]], [3.0, 5.0, 9.0])
    >>> model.predict([[10.0]]).round(6)
    array([21.])
    """

    alpha: float | Literal["cv"] = parameter(
        Interval(Real, 0.0, None, closed="left"), StrOptions({"cv"}), default="cv", kw_only=False
    )
    alpha_: float = field(init=False)
    predict = table_estimator.predict_values
    _saved: ClassVar[SavedState] = SavedState("fitted", {"alpha_": number(0.0), **SAVED_ONLINE})

    def _solve(self, rows: LinearRows) -> tuple[Floats, Floats, str]:
        assert isinstance(rows.terms, DenseTerms)
        ridge = Ridge(rows.terms.matrix, rows.target, rows.weight, rows.penalty)
        self.alpha_ = min(_ALPHAS, key=ridge.leave_one_out_error) if isinstance(self.alpha, str) else float(self.alpha)
        coefficients, intercept = ridge.solve(self.alpha_)
        return coefficients[:, np.newaxis], np.array([intercept]), "identity"

    def partial_fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Update the model with further rows; the rows of earlier calls are not needed any more.

        The sums of the normal equations are updated. Without missing values, and with the same ``alpha``, the model
        therefore equals that of `fit` to all rows so far, up to rounding, whatever their order and batches.
        ``alpha="cv"`` is chosen again at each call, by generalised cross-validation, which needs only these sums; `fit`
        uses the leave-one-out errors of the rows instead.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows, with the columns of the first call. Missing values are replaced by the means of the first call; a
            category that the first call did not have is an error.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice; a weight of 0 leaves the row out.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._learn_batch(X, y, None, sample_weight)

    def _continue(self, rows: LinearRows, state: OnlineState | None) -> tuple[tuple[Floats, Floats, str], Quadratic]:
        earlier = Quadratic.of(len(rows.terms) + 1, state)
        assert isinstance(rows.terms, DenseTerms)
        total = with_squared_errors(earlier, rows.terms.matrix, rows.target, rows.weight)
        n_rows = getattr(self, "n_samples_seen_", 0) + len(rows.weight)
        ridge = RidgeOfSums(total, rows.penalty, bool(self.scale), n_rows)
        self.alpha_ = min(_ALPHAS, key=ridge.generalised_error) if isinstance(self.alpha, str) else float(self.alpha)
        coefficients, intercept = ridge.solve(self.alpha_)
        return (coefficients[:, np.newaxis], np.array([intercept]), "identity"), total

    @property
    def coef_(self) -> Floats:
        """Coefficients, (n_terms,), in the units of the columns."""
        return np.asarray(self._raw_coefficients()[0])

    @property
    def intercept_(self) -> float:
        """Prediction where all terms are 0."""
        return float(self._raw_intercepts()[0])
