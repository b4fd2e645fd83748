"""Targets of boosting: how they are read, their losses, initial scores and predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

import spinney._engine as _engine
from spinney._boosting.evaluation import CurrentModel, HeldOutMetric, HeldOutScore, Labels, predictions_of
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import (
    TRAITS,
    Loss,
    class_loss,
    distribution_of,
    loss_of_outputs,
    named_loss,
)
from spinney._boosting.ordered_classes import in_order
from spinney._boosting.settings import BoostingSettings, Metric
from spinney._boosting.user_loss import user_loss
from spinney._data.reproducible import log
from spinney._data.select import pick_table
from spinney._data.types import Floats, TableLike
from spinney._estimator.costs import ClassCosts, read_cost_matrix, read_priors, weights_of_classes
from spinney._estimator.fit_inputs import FitInputs
from spinney._estimator.metrics import check_scoring
from spinney._estimator.target import known_codes, read_one_value, read_some_classes, read_values
from spinney._model.boosting import FittedBoosting
from spinney._model.distributions import DISTRIBUTIONS
from spinney._model.links import is_of_classes

Encode = Callable[[Any], _engine.Table]


@dataclass(frozen=True)
class TargetRows:
    """The targets of rows, as numbers.

    Attributes
    ----------
    values : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        Class indices, numbers, grades of relevance, or the earliest times of events.
    extra : ndarray of shape (n_rows,), or None
        Second number of a row's target: the list of a row to rank, or the latest time of its event.
    """

    values: Floats
    extra: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class BoostingTarget(ABC):
    """A kind of target, with the settings of its fit.

    Attributes
    ----------
    settings : BoostingSettings
    n_outputs : int
    classes : list of ndarray, or None
        Class labels of each output.
    class_weight : ndarray of shape (n_classes,), or None
        Factor of the row weights of each class.
    cost_matrix : ndarray of shape (n_classes, n_classes), or None
    priors : ndarray of shape (n_classes,), or None
    """

    has_curve: ClassVar[bool] = False  # whether `with_curve` learns a survival curve from final scores

    settings: BoostingSettings
    n_outputs: int = 1
    classes: Labels | None = None
    class_weight: Floats | None = None
    cost_matrix: Floats | None = None
    priors: Floats | None = None

    @classmethod
    def held_out_groups(cls, inputs: FitInputs) -> Any:
        """Return the groups of rows that the caller wants to be held out together."""
        return inputs.groups

    @classmethod
    def check_request(cls, settings: BoostingSettings, inputs: FitInputs) -> None:
        """Refuse metrics that do not suit the target, and incompatible inputs."""
        for metric in settings.metrics:
            check_scoring(metric)

    @classmethod
    def learn(
        cls, settings: BoostingSettings, y: TableLike, n_rows: int, groups: ArrayLike | None = None
    ) -> tuple[Self, TargetRows]:
        """Read the target of the training rows."""
        target = cls(settings)
        return target, target.read(y, n_rows, groups=groups)

    @abstractmethod
    def read(self, y: TableLike, n_rows: int, name: str = "y", groups: ArrayLike | None = None) -> TargetRows:
        """Read a target; `name` is the argument, such as "y_val"."""

    @abstractmethod
    def loss(self) -> Loss:
        """Return the loss."""

    def with_costs(self, rows: TargetRows, weight: Floats | None) -> Self:
        """Return the target with class weights and costs, which may depend on the training rows."""
        return self

    def weights(self, rows: TargetRows, weight: Floats | None) -> Floats | None:
        """Return the row weights, class weights included."""
        return weight

    def without_class_weights(self, rows: LearningRows) -> LearningRows:
        """Return the rows without class weights."""
        return rows

    def row_groups(self, groups: ArrayLike | None, n_rows: int) -> ArrayLike | None:
        """Return the groups of rows that are held out together."""
        return groups

    def total_weight(self, rows: LearningRows) -> float:
        """Return the total weight that the automatic settings depend on."""
        return rows.total_weight

    def constants(self, loss: Loss, rows: LearningRows) -> Floats:
        """Return the constant scores of least loss."""
        weight, used, first = rows.weights_view, rows.used, 0
        found: list[Floats] = []
        for part, target in zip(loss.parts, loss.targets(rows), strict=True):
            offset = None if rows.offset is None else rows.offset[first : first + part.n_scores, used]
            found.append(part.constants(target[used], weight[used], offset))
            first += part.n_scores
        return np.concatenate(found)

    @staticmethod
    def predictions(scores: Floats, model: FittedBoosting, classes: Labels | None) -> NDArray[Any]:
        """Turn scores, (n_rows, n_scores), into predictions."""
        return predictions_of(model, scores, classes)

    def held_out_metric(
        self,
        metric: Metric,
        model: FittedBoosting,
        held_out: LearningRows,
        base: Floats | None = None,
        encode: Encode | None = None,
        /,
    ) -> HeldOutMetric:
        """Return a metric on held-out rows as a function of scores; smaller is better."""
        return HeldOutScore(metric, model, held_out, self.classes, base, encode, self.settings.n_threads)

    def with_curve(self, loss: Loss, evaluated: LearningRows, scores: Floats, rows: LearningRows) -> Self:
        """Return the target with a curve learned from the final scores, (1, n_rows), of the evaluated rows."""
        return self

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator."""
        return {"n_outputs_": self.n_outputs}


@dataclass(frozen=True, eq=False)
class ClassificationTarget(BoostingTarget):
    """Classes."""

    @classmethod
    def learn(
        cls, settings: BoostingSettings, y: TableLike, n_rows: int, groups: ArrayLike | None = None
    ) -> tuple[Self, TargetRows]:
        """Read the classes of the training rows."""
        codes, classes = read_some_classes(y, n_rows)
        is_one, most = len(classes) == 1, max(map(len, classes))
        is_own = not isinstance(settings.loss, str)
        if settings.loss == "ordinal" and is_one:
            codes, classes[0] = in_order(y, codes, classes[0], settings.class_order)
        elif settings.loss != "log_loss" and ((most > 2 and not is_own) or not is_one):
            name = "your own" if is_own else repr(settings.loss)
            found = most if is_one else f"{len(classes)} columns"
            of_what = "one output of ordered classes" if settings.loss == "ordinal" else "two classes"
            raise ValueError(f"loss={name} is for {of_what}; y has {found}. Use loss='log_loss'.")
        return cls(settings, len(classes), classes), TargetRows(codes)

    @property
    def _labels(self) -> Labels:
        assert self.classes is not None
        return self.classes

    def read(self, y: TableLike, n_rows: int, name: str = "y", groups: ArrayLike | None = None) -> TargetRows:
        """Read known classes."""
        return TargetRows(known_codes(y, self._labels if self.n_outputs > 1 else self._labels[0], n_rows, name))

    def loss(self) -> Loss:
        """Return the loss."""
        settings = self.settings
        if not isinstance(settings.loss, str):
            return user_loss(settings.loss, len(self._labels[0]), settings.n_jobs)
        if self.n_outputs > 1:
            return loss_of_outputs([class_loss("log_loss", len(labels)) for labels in self._labels], "by_output")
        return class_loss(settings.loss, len(self._labels[0]), float(settings.focal_gamma))

    def with_costs(self, rows: TargetRows, weight: Floats | None) -> Self:
        """Return the target with class weights and costs."""
        settings, classes = self.settings, self._labels[0]
        if self.n_outputs > 1 and (settings.cost_matrix is not None or settings.priors is not None):
            raise ValueError("cost_matrix and priors are for one output. Fit one model per output.")
        if self.n_outputs > 1 and settings.class_weight is not None:
            raise ValueError("class_weight is for one output. Pass sample_weight, or fit one model per output.")
        if settings.priors is not None and settings.class_weight is not None:
            raise ValueError("priors and class_weight both reweight the classes. Pass one of them.")
        by_class = None
        if settings.class_weight is not None:
            by_class = _read_class_weight(settings.class_weight, rows.values.astype(np.intp), classes)
        if settings.cost_matrix is None and settings.priors is None:
            return replace(self, class_weight=by_class)
        cost = None if settings.cost_matrix is None else read_cost_matrix(settings.cost_matrix, classes)
        priors = None if settings.priors is None else read_priors(settings.priors, classes)
        costs = ClassCosts.of(cost, priors, None, rows.values.astype(np.int32), weight, classes)
        by_class = by_class if costs.prior_factor is None else costs.prior_factor
        return replace(self, class_weight=by_class, cost_matrix=costs.cost, priors=costs.priors)

    def weights(self, rows: TargetRows, weight: Floats | None) -> Floats | None:
        """Return the row weights times class weights."""
        if self.class_weight is None:
            return weight
        by_row = self.class_weight[rows.values.astype(np.intp)]
        return np.ascontiguousarray(by_row if weight is None else weight * by_row)

    def without_class_weights(self, rows: LearningRows) -> LearningRows:
        """Return the rows without class weights."""
        if self.class_weight is None:
            return rows
        return replace(rows, weight=rows.weights() / self.class_weight[rows.target.astype(np.intp)])

    def constants(self, loss: Loss, rows: LearningRows) -> Floats:
        """Return the constant scores of least loss; each class needs a row."""
        for labels, target in zip(self._labels, loss.targets(rows), strict=True):
            totals = np.bincount(target.astype(np.intp), rows.weight, len(labels))
            if (totals == 0).any():
                raise ValueError(
                    f"The class with index {int(np.argmin(totals))} in classes_ has no training row of positive "
                    "weight. Drop its rows, or give some of them a weight."
                )
        return super().constants(loss, rows)

    def held_out_metric(
        self, metric: Metric, model: FittedBoosting, held_out: LearningRows, /, *others: Any
    ) -> HeldOutMetric:
        """Return a metric on held-out rows as a function of scores; smaller is better.

        Cuts between ordered classes are fitted to these scores.
        """
        found = super().held_out_metric
        if self.settings.loss != "ordinal":
            return found(metric, model, held_out, *others)
        loss, weight = self.loss(), held_out.weights()

        def evaluate(scores: Floats, current_model: CurrentModel | None = None) -> float:
            with_cuts = model.with_link(loss.link_at(held_out.target, scores.T, weight))
            return found(metric, with_cuts, held_out, *others)(scores, current_model)

        return evaluate

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator."""
        is_one, n_classes = self.n_outputs == 1, np.array(list(map(len, self._labels)))
        return super().attributes() | {
            "classes_": self._labels[0] if is_one else self._labels,
            "n_classes_": int(n_classes[0]) if is_one else n_classes,
            "cost_matrix_": self.cost_matrix,
            "priors_": self.priors,
        }


def _read_class_weight(weights: str | dict[Any, float], codes: NDArray[np.intp], classes: NDArray[Any]) -> Floats:
    if isinstance(weights, dict):
        by_class = weights_of_classes(weights, classes)
    else:
        by_class = len(codes) / (len(classes) * np.bincount(codes, minlength=len(classes)))
    if not (np.isfinite(by_class) & (by_class >= 0)).all():
        raise ValueError("class_weight must give finite weights of at least 0.")
    return by_class


class RegressionTarget(BoostingTarget):
    """Numbers: one or several columns, or several quantiles of one column."""

    @classmethod
    def learn(
        cls, settings: BoostingSettings, y: TableLike, n_rows: int, groups: ArrayLike | None = None
    ) -> tuple[Self, TargetRows]:
        """Read the numbers of the training rows."""
        levels = settings.levels
        if levels is not None:
            return cls(settings, len(levels)), TargetRows(read_one_value(y, n_rows, "boosting of several quantiles"))
        n_outputs = read_values(y, n_rows).shape[1]
        target = cls(settings, n_outputs)
        return target, target.read(y, n_rows)

    def read(self, y: TableLike, n_rows: int, name: str = "y", groups: ArrayLike | None = None) -> TargetRows:
        """Read a column for each output."""
        if self.n_outputs == 1 or self.settings.levels is not None:
            return TargetRows(read_one_value(y, n_rows, "boosting", name))
        values = read_values(y, n_rows, name)
        if values.shape[1] != self.n_outputs:
            raise ValueError(
                f"{name} has {values.shape[1]} columns, and the model {self.n_outputs} outputs. Pass a column for each "
                "output."
            )
        return TargetRows(values)

    def loss(self) -> Loss:
        """Return the loss."""
        settings, levels = self.settings, self.settings.levels
        if levels is not None:
            return loss_of_outputs([named_loss("quantile", level) for level in levels], "ascending")  # row by row
        if distribution_of(settings.loss) is not None and self.n_outputs > 1:
            raise ValueError(f"loss={settings.loss!r} is for one output. Fit one model per column of y.")
        if not isinstance(settings.loss, str):
            if self.n_outputs > 1:
                raise ValueError("A custom loss is for one output. Fit one model per column of y.")
            return user_loss(settings.loss, None, settings.n_jobs)
        parameter = TRAITS[settings.loss].parameter
        loss = named_loss(settings.loss, 0.0 if parameter is None else settings.loss_parameter(parameter.name))
        return loss if self.n_outputs == 1 else loss_of_outputs([loss] * self.n_outputs, loss.link)


_INVERTIBLE = ("logit", "half_logit", "softmax")  # links whose probabilities determine the scores
_LEAST_PROBA = float(np.finfo(np.float32).eps)  # a probability of 0 has no finite score


class InitialModel(Protocol):
    """A scikit-learn estimator whose predictions are the initial scores."""

    def fit(self, X: Any, y: Any) -> Any: ...
    def predict(self, X: Any) -> Any: ...
    def predict_proba(self, X: Any) -> Any: ...


def fit_initial_model(
    template: InitialModel, X: TableLike, rows: LearningRows, classes: Labels | None, is_weighted: bool
) -> InitialModel:
    """Fit the model of the initial scores to the training rows."""
    used = np.flatnonzero(rows.weights() > 0)
    if classes is not None and len(classes) > 1:
        raise ValueError("init=estimator is for one output. Fit one model per output, or drop init.")
    y = rows.target[used] if classes is None else classes[0][rows.target[used].astype(np.intp)]
    weighted = {}
    if is_weighted:
        if not has_fit_parameter(template, "sample_weight"):
            raise ValueError(
                f"The initial estimator {type(template).__name__} does not support sample weights. Leave the weights "
                "out, or use another estimator."
            )
        weighted["sample_weight"] = rows.weights()[used]
    table = pick_table(X)
    fitted: InitialModel = clone(template).fit(table.take(None if len(used) == table.n_rows else used), y, **weighted)
    return fitted


def initial_scores(model: InitialModel, X: TableLike, link: str, n_classes: int, n_scores: int = 1) -> Floats:
    """Return the scores, (n_scores, n_rows), that correspond to a model's predictions."""
    X = pick_table(X).native
    name = type(model).__name__
    if link in DISTRIBUTIONS:
        raise ValueError(f"loss={link!r} takes no initial estimator. Drop init={name}.")
    if not is_of_classes(link):
        found = np.asarray(model.predict(X), dtype=np.float64)
        found = found.reshape(1, -1) if found.ndim == 1 or n_scores == 1 else np.ascontiguousarray(found.T)
        if len(found) == 1:
            found = np.repeat(found, n_scores, axis=0)  # all quantiles start at the same prediction
        if len(found) != n_scores:
            raise ValueError(f"init={name} predicts {len(found)} outputs, and the model has {n_scores}.")
        if link not in ("log", "log1p"):
            return found
        least = 0.0 if link == "log" else -1.0
        if not (found > least).all():
            output, row = np.argwhere(~(found > least))[0]
            raise ValueError(
                f"This loss is for predictions above {least:g}, and init={name} predicts {found[output, row]:g} for "
                f"row {row}. Start from a model that predicts such numbers."
            )
        return log(found - least)
    if link not in _INVERTIBLE:
        raise ValueError(f"This loss takes no initial estimator. Drop init={name}, or use loss='log_loss'.")
    proba = np.asarray(model.predict_proba(X), dtype=np.float64)
    if proba.ndim != 2 or proba.shape[1] != n_classes:
        raise ValueError(f"init={name} predicts probabilities of shape {proba.shape}; each class needs a column.")
    proba = np.ascontiguousarray(np.clip(proba, _LEAST_PROBA, 1 - _LEAST_PROBA).T)
    if link == "softmax":
        logs = log(proba)
        return np.asarray(logs - logs.mean(axis=0))
    return np.asarray(log(proba[1:] / (1 - proba[1:])) / (2.0 if link == "half_logit" else 1.0))
