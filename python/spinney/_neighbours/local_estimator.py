"""Base of nearest neighbours and histograms: targets, cross-validated choice of a setting, predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Literal, Protocol, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import column_or_1d

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.design import is_bounded
from spinney._data.feature import Unseen
from spinney._data.reproducible import log
from spinney._data.types import Floats, TableLike
from spinney._estimator.costs import ClassCosts, read_cost_matrix, read_priors
from spinney._estimator.estimator import About
from spinney._estimator.held_out import CrossValidation, KnownProba, KnownValues, read_folds
from spinney._estimator.metrics import find_scorer
from spinney._estimator.parameters import N_JOBS, UNSEEN, estimator, parameter
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_classes, read_values, read_weights
from spinney._model.model import FittedModel
from spinney._model.neighbours.model import Ballot, Rows

Results = dict[str, NDArray[Any]]

_SMALLEST, _LARGEST = 1e-150, 1e150  # numbers whose squares and sums of squares are exact enough


@dataclass(frozen=True)
class LocalTarget:
    """The target of one output or several.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_outputs)
        Numeric targets, or class codes.
    classes : list of ndarrays or None
        Labels by output; None in a regression.
    costs : ClassCosts
        Misclassification costs and priors.
    """

    values: NDArray[Any]
    classes: list[NDArray[Any]] | None
    costs: ClassCosts

    @classmethod
    def of_values(cls, y: ArrayLike, n_rows: int) -> LocalTarget:
        """Read a numeric target."""
        values = read_values(y, n_rows)
        _warn_of_column(y, values.shape[1])
        return cls(values, None, ClassCosts())

    @classmethod
    def of_classes(cls, y: ArrayLike, n_rows: int, weight: Floats | None, cost_matrix: Any, priors: Any) -> LocalTarget:
        """Read classes, misclassification costs and priors."""
        target = read_classes(y, n_rows)
        _warn_of_column(y, target.n_outputs)
        codes, costs = np.ascontiguousarray(target.codes), ClassCosts()
        if cost_matrix is not None or priors is not None:
            if target.n_outputs > 1:
                raise ValueError("cost_matrix and priors need a single output. Fit one model per output.")
            classes = target.classes[0]
            cost = None if cost_matrix is None else read_cost_matrix(cost_matrix, classes)
            class_priors = None if priors is None else read_priors(priors, classes)
            costs = ClassCosts.of(cost, class_priors, None, codes[:, 0], weight, classes)
        return cls(codes, target.classes, costs)

    @property
    def ballot(self) -> Ballot:
        """The votes of each row."""
        return Ballot(self.values, None if self.classes is None else [len(labels) for labels in self.classes])

    @property
    def decision(self) -> Floats | None:
        """Costs that decide between classes; None without costs and priors."""
        return self.costs.decision if self.costs.cost is not None or self.costs.priors is not None else None

    def losses(self, model: FittedModel, rows: Rows, flat: Floats) -> Floats:
        """Return the loss of some rows, given their flat predictions."""
        actual = self.values[rows]
        if self.classes is None:
            return np.asarray(((actual - flat) ** 2).mean(axis=1))
        codes = model.best_codes(flat)
        if self.decision is not None:
            return self.costs.loss(actual[:, 0], codes[:, 0])
        return np.asarray((codes != actual).mean(axis=1))

    def score(self, scorer: Callable[..., float], model: FittedModel, rows: Rows, flat: Floats) -> float:
        """Return the score of some rows, given their flat predictions."""
        all_rows, predicted = np.arange(len(rows)), model.by_output(flat)
        if self.classes is None:
            actual = self.values[rows, 0] if model.n_outputs == 1 else self.values[rows]
            return float(scorer(KnownValues(predicted), all_rows, actual))
        known = KnownProba(predicted, model.labels(model.best_codes(flat), self.classes), self.classes)
        return float(scorer(known, all_rows, model.labels(self.values[rows].astype(np.intp), self.classes)))


def _warn_of_column(y: ArrayLike, n_outputs: int) -> None:
    if n_outputs == 1 and np.asarray(y).ndim == 2:
        column_or_1d(y, warn=True)


@dataclass(frozen=True)
class LocalRows:
    """The training table, its target and weights."""

    columns: _engine.Table
    schema: Schema
    target: LocalTarget
    weight: Floats
    matrix: NDArray[Any] | None
    n_jobs: int

    @cached_property
    def numbers(self) -> Floats | None:
        """A copy of the table, (n_rows, n_columns), if it is a matrix of bounded numbers and all weights are 1."""
        if self.matrix is None or not (self.schema.is_numeric and (self.weight == 1).all()):
            return None
        found, squares = _engine.copy_matrix(np.asarray(self.matrix, dtype=np.float64), self.n_jobs)
        return found if is_bounded(squares) else None


class HeldOut(Protocol):
    """Held-out rows, and their predictions for each value of a setting."""

    @property
    def model(self) -> FittedModel:
        """A model with the layout of the predictions."""

    @property
    def held_out(self) -> Rows:
        """Numbers of the rows."""

    def predictions(self, values: Sequence[Any]) -> Iterator[Floats]:
        """Yield flat predictions for each value."""


def _marked(rows: Rows, weight: Floats) -> NDArray[np.bool_]:
    """Return a mask of some rows of a table."""
    mask = np.zeros(len(weight), dtype=bool)
    mask[rows] = True
    return mask


def _deviation(losses: Floats) -> float:
    """Return the standard deviation, scaled so that squares do not overflow."""
    _, power = np.frexp(np.abs(losses).max())
    return float(np.ldexp(np.ldexp(losses, -power).std(ddof=1), power))


@estimator
class LocalEstimator(TableEstimator):
    """Prediction by training rows that are close to a row."""

    cv: CrossValidation | Literal["loo"] = parameter(
        StrOptions({"loo"}), Integral, "cv_object", "array-like", default="loo"
    )
    scoring: str | Callable[..., float] | None = parameter(str, callable, None, default=None)
    categorical_features: ArrayLike | None = parameter("array-like", None, default=None)
    unseen: Unseen = parameter(UNSEEN, default="missing")
    random_state: int | RandomState | None = parameter("random_state", default=None)
    n_jobs: int | None = parameter(N_JOBS, None, default=None)

    _missing_attribute_reasons: ClassVar[dict[str, str]] = dict.fromkeys(
        ("predict_proba", "predict_log_proba"), "is for classes, and this model is a regressor. Use predict."
    )

    def _read_target(self, y: ArrayLike, n_rows: int, weight: Floats | None) -> LocalTarget:
        """Read y, and the costs and priors of its classes."""
        return LocalTarget.of_values(y, n_rows)

    def _read_rows(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None) -> LocalRows:
        self._check_parameters()
        table = read_table(X)
        schema = self._learn_schema(table)
        weight = read_weights(sample_weight, table.n_rows)
        target = self._read_target(y, table.n_rows, weight)
        columns = schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)
        weight = np.ones(table.n_rows) if weight is None else weight
        return LocalRows(columns, schema, target, weight, table.matrix, self._n_threads)

    # ---- the choice of a setting -----------------------------------------------------------------------------

    def _folds(self, rows: LocalRows, groups: ArrayLike | None, setting: str) -> list[tuple[Floats, Rows]] | None:
        """Return the training weights and the held-out rows of each fold; None for leave-one-out."""
        if not isinstance(self.cv, str):
            strata = None if rows.target.classes is None else rows.target.values
            random = check_random_state(self.random_state)
            folds = read_folds(self.cv, strata, rows.target.values, rows.weight, groups, random)
            return [(np.where(_marked(fold.train, rows.weight), rows.weight, 0.0), fold.held_out) for fold in folds]
        if groups is not None:
            raise ValueError("cv='loo' holds out one row at a time and cannot use groups. Pass a number of folds.")
        if np.count_nonzero(rows.weight > 0) < 2:
            raise ValueError(f"{setting}='cv' needs at least 2 rows of positive weight; there is n_samples=1.")
        return None

    def _choose(
        self, rows: LocalRows, trials: Sequence[HeldOut], name: str, values: Sequence[Any]
    ) -> tuple[Any, Results]:
        """Return the value with the smallest mean error, the first of equal ones, and the results of all values."""
        scorer = find_scorer(self.scoring)
        ballot = rows.target.ballot
        largest = float(np.abs(ballot.target).max()) if scorer is None and ballot.n_classes is None else 1.0
        if largest > 0 and not _SMALLEST < largest < _LARGEST:
            raise ValueError(
                f"y reaches {largest:g}: the squared errors of cross-validation exceed floating-point numbers. "
                "Rescale y."
            )
        errors, spread = np.empty((len(values), len(trials))), np.zeros(len(values))
        for f, trial in enumerate(trials):
            for i, flat in enumerate(trial.predictions(values)):
                if scorer is not None:
                    errors[i, f] = -rows.target.score(scorer, trial.model, trial.held_out, flat)
                    continue
                losses = rows.target.losses(trial.model, trial.held_out, flat)
                errors[i, f] = np.average(losses, weights=rows.weight[trial.held_out])
                if len(trials) == 1 and len(losses) > 1:
                    spread[i] = _deviation(losses) / np.sqrt(len(losses))
        if len(trials) > 1:
            spread = np.array([_deviation(of_value) for of_value in errors]) / np.sqrt(len(trials))
        mean = errors.mean(axis=1)
        results = {name: np.array(values), "error": mean, "error_se": spread, "fold_errors": errors}
        return values[int(mean.argmin())], results

    def _set_fitted(self, rows: LocalRows, model: FittedModel, results: Results | None) -> None:
        """Set the fitted attributes, after everything that can fail."""
        self.__dict__.pop("cv_results_", None)
        self._set_schema(rows.schema)
        setattr(self, self._model_attribute, model)
        self.n_outputs_ = model.n_outputs
        if results is not None:
            self.cv_results_ = results
        classes = rows.target.classes
        if classes is not None:
            single = len(classes) == 1
            self.classes_: Any = classes[0] if single else classes
            self.n_classes_: Any = len(classes[0]) if single else np.array([len(labels) for labels in classes])
            self.cost_matrix_, self.priors_ = rows.target.costs.cost, rows.target.costs.priors

    def _summary(self, noun: str, size: Mapping[str, Any], lines: dict[str, str], sentence: str, why: str) -> About:
        """Return a summary of the model, with the cross-validated error if there is one."""
        error = float(self.cv_results_["error"].min()) if "cv_results_" in self.__dict__ else None
        if error is not None:
            lines = lines | {"error, cross-validated": f"{error:.4g}"}
            size = {**size, "cross_validated_error": error}
            sentence += f", chosen by cross-validation (error {error:.4g})"
        return About(noun, dict(size), lines, sentence, why_no_trees=f"the model is made of {why}, not of trees.")

    def _predictions(self, X: TableLike) -> Any:
        """Return predicted values or class probabilities, by output."""
        columns = self._columns(X)
        return self._fitted.by_output(self._fitted.predictions(columns, self._n_threads))


@estimator
class LocalRegressor(RegressorMixin, LocalEstimator):
    """Regression by training rows that are close to a row."""

    def predict(self, X: TableLike) -> Floats:
        """Predict the numeric target of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predicted values.
        """
        return np.asarray(self._predictions(X))


@estimator
class LocalClassifier(ClassifierMixin, LocalEstimator):
    """Classification by votes of training rows that are close to a row, with optional costs and priors."""

    cost_matrix: ArrayLike | None = parameter("array-like", dict, None, default=None)
    priors: ArrayLike | None = parameter("array-like", dict, StrOptions({"uniform"}), None, default=None)
    _is_class_target = True

    def _read_target(self, y: ArrayLike, n_rows: int, weight: Floats | None) -> LocalTarget:
        return LocalTarget.of_classes(y, n_rows, weight, self.cost_matrix, self.priors)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the most probable class of each row or, with costs, the class of lowest expected cost.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Labels; in a tie, the first.
        """
        columns = self._columns(X)
        codes = self._fitted.codes(columns, self._n_threads)
        return self._fitted.labels(codes, [self.classes_] if self.n_outputs_ == 1 else self.classes_)

    def predict_proba(self, X: TableLike) -> Floats:
        """Class probabilities of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or a list of these
            One array per output; columns in the order of `classes_`.
        """
        proba: Floats = self._predictions(X)
        return proba

    def predict_log_proba(self, X: TableLike) -> Floats:
        """Logarithm of the class probabilities; -inf for 0.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or a list of these
            In the form of `predict_proba`.
        """
        proba: Any = self.predict_proba(X)
        if isinstance(proba, list):
            return cast("Floats", [log(of_output) for of_output in proba])
        return log(proba)
