"""Stacking: a final estimator learns to combine the out-of-fold predictions of the members."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.display import warn, with_article
from spinney._data.select import PickTable, pick_table
from spinney._data.types import Floats, TableLike
from spinney._ensemble.combination import BaseCombination, FittedMembers, NamedMembers
from spinney._ensemble.ensemble import loaded_template, members_from_json, members_to_json, saved_template
from spinney._ensemble.members import LARGEST_SEED, MemberRows, estimator_of_name, seeded, takes_weights
from spinney._ensemble.stack_labels import check_options, label_probabilities, read_labels
from spinney._ensemble.stack_members import (
    FoldAverage,
    GreedySelection,
    MemberPredictions,
    folds_among,
    predicted_targets,
)
from spinney._ensemble.stack_stages import FinalRows, staged_predict, why_no_stages
from spinney._estimator import table_estimator
from spinney._estimator.estimator import Estimator, only_if
from spinney._estimator.held_out import CrossValidation, Fold, read_folds, read_row_groups
from spinney._estimator.parallel import count_threads
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.rows import order_by_values
from spinney._estimator.target import check_length, read_weights
from spinney._linear.linear_model import LinearClassifier, LinearRegressor
from spinney._model.file.container import refuse
from spinney._model.predictions import (
    METHODS,
    Classes,
    WeightedMean,
    as_columns,
    column_names,
    member_predictions,
    member_probabilities,
)
from spinney._model.saving.members import STACK, StackPlan

GREEDY = "greedy"


@estimator
class BaseStacking(TransformerMixin, BaseCombination):
    """Members, and a final estimator that is fitted to their out-of-fold predictions."""

    final_estimator: BaseEstimator | str | None = parameter(
        HasMethods(["fit", "predict"]), str, None, default=None, kw_only=False
    )
    layers: list[Any] | tuple[Any, ...] | None = parameter(list, tuple, None, default=None)
    cv: CrossValidation | Literal["prefit"] = parameter("cv_object", "array-like", StrOptions({"prefit"}), default=5)
    passthrough: bool = parameter("boolean", default=False)
    refit: bool = parameter("boolean", default=True)
    _kind, _method = "stack", "stacking"

    # ---- differences between classification and regression -----------------------------------------

    @abstractmethod
    def _default_final(self) -> Estimator:
        """Return the default final estimator."""

    @abstractmethod
    def _method_of(self, name: str, member: BaseEstimator) -> str:
        """Return the method by which a member predicts."""

    @abstractmethod
    def _score(self, target: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
        """Return the score of predicted labels or values."""

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the members and the final estimator.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Any table that the members take: NumPy array, pandas, polars or pyarrow table, scipy sparse matrix, dict of
            columns or list of rows. Members get a table of the same type.
        y : array-like of shape (n_samples,), or (n_samples, n_labels) of 0 and 1
            Target. Several labels of 0 and 1 are predicted together if the members and the final estimator support
            that.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, for the final estimator and the members that take weights; warnings name the others. A
            weight of 0 leaves the row out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are in the same fold. Members that hold out rows themselves also hold them out
            together.
        **fit_params : dict
            Arguments of the members' `fit`, by scikit-learn's metadata routing. Of arguments with one value per row,
            members get the values of their training rows.

        Returns
        -------
        self
            The fitted ensemble.
        """
        rows = self._read_rows(X, y, sample_weight)
        members = self._members()
        self._warn_of_weights(members, rows.weight)
        n_rows = rows.table.n_rows
        rows = replace(rows, groups=None if groups is None else read_row_groups(groups, n_rows))
        random = check_random_state(self.random_state)
        names, methods = [name for name, _ in members], [self._method_of(*member) for member in members]
        folds: list[Fold] = []
        if isinstance(self.cv, str):
            fitted = self._prefit(members, methods, rows)
        else:
            strata = None if rows.codes is None else rows.codes.reshape(n_rows, -1)
            weights = np.ones(n_rows) if rows.weight is None else rows.weight
            order = order_by_values(rows.table, rows.target, rows.weight, count_threads(self.n_jobs, n_rows))
            cv = 5 if self.cv is None else self.cv
            folds = read_folds(cv, strata, rows.target, weights, groups, random, order)
            fits = [*([None] if self.refit else []), *folds]  # the largest first
            fitted = self._fit_members(members, methods, rows, fits, fit_params, random)
        predicted = fitted.out_of_fold
        seen = ~np.isnan(predicted[0][:, 0])
        seen &= True if rows.weight is None else rows.weight > 0
        scores = self._member_scores(names, methods, predicted, seen, rows)
        columns = [as_columns(one, method, rows.classes) for one, method in zip(predicted, methods, strict=True)]
        final, final_coded = self._fit_final(rows, MemberPredictions(names, methods, columns, seen), folds, random)
        self._set_members(rows.table, rows.classes, *self._averaged(names, fitted, rows.classes))
        self.stack_method_, self.oof_scores_ = methods, scores
        self._widths = [column.shape[1] for column in columns]
        self.oof_predictions_ = np.where(seen[:, np.newaxis], np.hstack(columns), np.nan)
        self.final_estimator_, self._final_coded = final, final_coded
        has_codes = rows.codes is not None and (final_coded or isinstance(final, GreedySelection))
        target = rows.codes if has_codes and rows.codes is not None else rows.target
        self._final_rows_of_fit = FinalRows(seen, target[seen], None if rows.weight is None else rows.weight[seen])
        return self

    def _averaged(self, names: list[str], fitted: FittedMembers, classes: Any) -> tuple[NamedMembers, list[bool]]:
        """Return one estimator per member, and whether it knows classes by code; the models of folds are averaged."""
        if self.refit or isinstance(self.cv, str):
            return [(name, models[0]) for name, models in zip(names, fitted.models, strict=True)], fitted.by_code
        averages: NamedMembers = [
            (name, FoldAverage(models, classes, by_code))
            for name, models, by_code in zip(names, fitted.models, fitted.by_code, strict=True)
        ]
        return averages, [False] * len(names)

    def _prefit(self, members: NamedMembers, methods: list[str], rows: MemberRows) -> FittedMembers:
        """Return members that are fitted already, and their predictions of the rows."""
        if rows.groups is not None or self.layers:
            what = "groups" if rows.groups is not None else "layers"
            raise ValueError(f"cv='prefit' makes no folds, and {what} need them. Leave {what} out, or set cv.")
        by_code, predicted = [], []
        for (_, member), method in zip(members, methods, strict=True):
            check_is_fitted(member)
            by_code.append(isinstance(rows.classes, np.ndarray) and not np.isin(member.classes_, rows.classes).all())
            predicted.append(member_predictions(member, rows.table.native, method, rows.classes, by_code[-1]))
        return FittedMembers([[member] for _, member in members], by_code, predicted)

    def _member_scores(
        self,
        names: list[str],
        methods: list[str],
        predicted: list[Floats],
        seen: NDArray[np.bool_],
        rows: MemberRows,
    ) -> dict[str, float]:
        """Return the out-of-fold score of each member; NaN if it predicts decisions of pairs of classes."""
        weight = None if rows.weight is None else rows.weight[seen]
        scores = {}
        for name, method, of_member in zip(names, methods, predicted, strict=True):
            targets = predicted_targets(of_member[seen], method, rows.classes)
            scores[name] = float("nan") if targets is None else self._score(rows.target[seen], targets, weight)
        return scores

    # ---- the final estimator ---------------------------------------------------------------------------

    @property
    def _is_greedy(self) -> bool:
        return isinstance(self.final_estimator, str) and self.final_estimator == GREEDY and not self.layers

    def _final(self) -> BaseEstimator:
        """Return the unfitted final estimator; not for greedy selection or further layers."""
        if self.final_estimator is None:
            return self._default_final()
        if isinstance(self.final_estimator, str):
            return estimator_of_name(self.final_estimator, self._task)
        return self.final_estimator

    def _sk_visual_block_(self) -> Any:
        from sklearn.utils._repr_html.estimator import _VisualBlock

        members, final = super()._sk_visual_block_(), self.final_estimator
        final = self._final() if not isinstance(final, str) or final != GREEDY else final
        last = _VisualBlock("parallel", [final], names=["final_estimator"], dash_wrapped=False)
        return _VisualBlock("serial", (members, last), dash_wrapped=False)

    def _next_layer(self, folds: list[Fold], seen: NDArray[np.bool_], seed: int) -> Self:
        """Return the stack of the further layers."""
        layers = list(self.layers or [])
        parameters = self.get_params(deep=False) | {"cv": folds_among(folds, seen), "random_state": seed}
        return type(self)(**parameters | {"estimators": layers[0], "layers": layers[1:] or None})

    def _fit_final(
        self, rows: MemberRows, meta: MemberPredictions, folds: list[Fold], random: RandomState
    ) -> tuple[BaseEstimator, bool]:
        """Return the fitted final estimator, and whether it knows classes by code."""
        seen = meta.seen
        weight, columns = None if rows.weight is None else rows.weight[seen], [column[seen] for column in meta.columns]
        if self._is_greedy:
            self._check_greedy(meta)
            target = rows.target if rows.codes is None else rows.codes
            greedy = GreedySelection(len(columns))
            return greedy.fit(np.hstack(columns), target[seen], weight, classes=rows.classes), False
        if self.layers:
            final: BaseEstimator = self._next_layer(folds, seen, int(random.randint(LARGEST_SEED)))
        else:
            final = seeded(self._final(), random)
            if isinstance(rows.classes, list) and self.final_estimator is None:
                final = MultiOutputClassifier(final)
        table = rows.table if seen.all() else pick_table(rows.table.take(np.flatnonzero(seen)))
        by_code = self._by_code(final)
        target = rows.codes if by_code and rows.codes is not None else rows.target
        weighted = {} if weight is None or not takes_weights(final) else {"sample_weight": weight}
        if weight is not None and not weighted:
            warn(
                f"The final estimator, {with_article(type(final).__name__)}, takes no sample_weight and is "
                "fitted without weights."
            )
        named = self._named_columns(meta.names, columns, rows.classes)
        try:
            final.fit(self._final_table(table, named, final), target[seen], **weighted)
        except Exception as error:
            error.add_note(f"This happened while fitting the final estimator, {with_article(type(final).__name__)}.")
            raise
        if self.layers:
            final.set_params(cv=self.cv, random_state=self.random_state)
        return final, by_code

    def _check_greedy(self, meta: MemberPredictions) -> None:
        if self.passthrough:
            raise ValueError(
                "final_estimator='greedy' averages members and cannot use the columns of the table. Set "
                "passthrough=False, or another final_estimator."
            )
        for name, method in zip(meta.names, meta.methods, strict=True):
            if self._is_class_target and method != "predict_proba":
                raise ValueError(
                    f"final_estimator='greedy' averages probabilities, and {name!r} predicts by {method}. Use "
                    "members that have predict_proba, and stack_method='auto'."
                )

    @staticmethod
    def _named_columns(names: list[str], columns: list[Floats], classes: Classes) -> dict[str, Floats]:
        """Return the predictions of the members by column name."""
        titles = column_names(names, [column.shape[1] for column in columns], classes)
        return dict(zip(titles, np.ascontiguousarray(np.hstack(columns).T), strict=True))

    def _final_table(self, table: PickTable | None, named: dict[str, Floats], final: BaseEstimator) -> TableLike:
        """Return the table for the final estimator; `table` is not needed without passthrough."""
        if self.passthrough and table is not None:
            return table.with_leading_columns(named)
        return named if isinstance(final, Estimator) else np.column_stack(list(named.values()))

    # ---- predicting ----------------------------------------------------------------------------------

    def _member_columns(self, table: PickTable) -> list[Floats]:
        return [
            as_columns(member_predictions(member, table.native, method, self._classes, coded), method, self._classes)
            for member, method, coded in zip(self.estimators_, self.stack_method_, self._coded, strict=True)
        ]

    def _final_rows(self, X: TableLike) -> TableLike:
        """Return rows as the table for the final estimator."""
        table = self._matched(X)
        named = self._named_columns(self._names, self._member_columns(table), self._classes)
        return self._final_table(table, named, self.final_estimator_)

    def transform(self, X: TableLike) -> Any:
        """Predictions of the members; with `passthrough`, followed by the columns of the table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_columns), or, with `passthrough`, a table of the kind of `X`
            Each column is a class probability, decision, predicted value or class code.
        """
        table = self._matched(X)
        columns = self._member_columns(table)
        if not self.passthrough:
            return np.hstack(columns)
        return table.with_leading_columns(self._named_columns(self._names, columns, self._classes))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the columns that `transform` returns, as scikit-learn names them.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns that are passed through; otherwise not used.

        Returns
        -------
        ndarray of str objects
            Names.
        """
        check_is_fitted(self)
        return np.array(list(self._names_out(input_features)), dtype=object)

    def _names_out(self, input_features: ArrayLike | None) -> Iterator[str]:
        prefix = type(self).__name__.lower()
        for name, width in zip(self._names, self._widths, strict=True):
            yield from [f"{prefix}_{name}"] if width == 1 else [f"{prefix}_{name}{k}" for k in range(width)]
        if self.passthrough and input_features is not None:
            yield from np.asarray(input_features).tolist()
        elif self.passthrough:
            yield from self._column_names or [f"x{j}" for j in range(self.n_features_in_)]

    @property
    def _n_features_out(self) -> int:
        return int(sum(self._widths) + (self.n_features_in_ if self.passthrough else 0))

    def predict(self, X: TableLike, **params: Any) -> NDArray[Any]:
        """Predictions of the final estimator.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        **params : dict
            For `predict` of the final estimator.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels of a classifier, or predicted values of a regressor.
        """
        rows = self._final_rows(X)
        return self._decoded(np.asarray(self.final_estimator_.predict(rows, **params)))

    def _decoded(self, predicted: NDArray[Any]) -> NDArray[Any]:
        """Return what the final estimator predicts as labels or values."""
        if not self._final_coded:
            return predicted
        if isinstance(self.classes_, list):
            return predicted.astype(self.classes_[0].dtype)
        return np.asarray(self.classes_[predicted.astype(np.intp)])

    staged_predict = only_if(why_no_stages)(staged_predict)

    # ---- files ---------------------------------------------------------------------------------------

    def _saved_parameters(self) -> dict[str, Any]:
        return super()._saved_parameters() | {
            "final_estimator": saved_template(self.final_estimator),
            "layers": [members_to_json(layer) for layer in self.layers] if self.layers else None,
        }

    @classmethod
    def _loaded_parameters(cls, saved: dict[str, Any]) -> dict[str, Any]:
        layers = saved.get("layers")
        if layers is not None and not isinstance(layers, list):
            refuse("is damaged: its layers are unusable")
        return super()._loaded_parameters(saved) | {
            "final_estimator": loaded_template(saved.get("final_estimator")),
            "layers": None if layers is None else [members_from_json(layer) for layer in layers],
        }

    def _models(self) -> list[BaseEstimator]:
        models: list[BaseEstimator] = []
        for member in self.estimators_:
            models += member.estimators_ if isinstance(member, FoldAverage) else [member]
        return models if isinstance(self.final_estimator_, GreedySelection) else [*models, self.final_estimator_]

    def _to_header(self) -> dict[str, Any]:
        final = self.final_estimator_
        entries: dict[str, Any] = {
            "methods": self.stack_method_,
            "widths": self._widths,
            "folds": [len(one.estimators_) if isinstance(one, FoldAverage) else 0 for one in self.estimators_],
            "scores": self.oof_scores_.values(),
        }
        if isinstance(final, GreedySelection):
            entries |= final.saved_values()
        return super()._to_header() | STACK.to_header(entries)

    def _combine(self, header: dict[str, Any], frame: dict[str, Any], models: list[Estimator]) -> None:
        plan = StackPlan.read(header, frame, models)
        self.estimators_ = [
            FoldAverage(own, self._classes, False) if of_folds else own[0]
            for own, of_folds in zip(plan.members, plan.of_folds, strict=True)
        ]
        if any(not hasattr(one, method) for one, method in zip(self.estimators_, plan.methods, strict=True)):
            refuse("is damaged: a member lacks the method by which it predicts")
        self.stack_method_, self._widths = plan.methods, plan.widths
        self.oof_scores_ = dict(zip(self._names, plan.scores, strict=True))
        self.final_estimator_, self._final_coded = plan.final, False
        if plan.weights is not None:
            self.final_estimator_ = GreedySelection.of(plan.weights, self._classes, plan.temperatures, plan.calibration)

    def _member_weights(self) -> list[float] | list[None]:
        final = self.final_estimator_
        return final.weights_.tolist() if isinstance(final, GreedySelection) else super()._member_weights()

    def _weighted_mean(self) -> WeightedMean:
        final, name = self.final_estimator_, type(self).__name__
        if not isinstance(final, GreedySelection):
            raise ValueError(
                f"The final estimator of this {name} is {with_article(type(final).__name__)}, not an average. Fit with "
                "final_estimator='greedy'."
            )
        if not self.refit:
            raise ValueError(f"The members of this {name} are models of folds. Fit with refit=True.")
        weights = final.weights_.tolist()
        used = [k for k, weight in enumerate(weights) if weight > 0]
        by = final.temperatures_
        temperatures = None if by is None else [by[k] for k in used]
        return self._mean_of(weights, is_stack=True, temperatures=temperatures, calibration=final.calibration_)

    def _identity(self) -> bytes:
        methods, final = "|".join(self.stack_method_).encode(), self.final_estimator_
        return methods + final.identity() if isinstance(final, GreedySelection) else methods


def _final_lacks(method: str) -> Callable[[StackingClassifier], str | None]:
    def why(model: StackingClassifier) -> str | None:
        final = getattr(model, "final_estimator_", None)
        if final is None:
            if model.layers or model._is_greedy:
                return None if method != "decision_function" else "is not available for averages. Use predict_proba."
            final = model._final()
        if hasattr(final, method):
            return None
        return f"needs a final estimator that has it, and {type(final).__name__} does not."

    return why


@estimator
class StackingClassifier(ClassifierMixin, BaseStacking):
    """Stacking: classifiers whose predictions are combined by a final estimator.

    For each fold, each member is fitted to the other folds and predicts the rows of this fold. The final estimator is
    fitted to these out-of-fold predictions, which are the columns of its training table. New rows are predicted by
    members that were refitted to all rows. All fits run in parallel on threads that share the table, and the ensemble
    is the same for any number of threads.

    See Also
    --------
    StackingRegressor : The same for regression.
    VotingClassifier : Averages members with fixed weights.
    compare : Compares several models by cross-validation, with confidence intervals.

    References
    ----------
    D. H. Wolpert (1992). Stacked generalization. Neural Networks 5, 241-259.

    R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes (2004). Ensemble selection from libraries of models. ICML.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.StackingClassifier(["tree", "forest", "linear"], random_state=0).fit(X, y)
    >>> {name: round(score, 2) for name, score in model.oof_scores_.items()}
    {'tree': 0.96, 'forest': 0.98, 'linear': 0.99}
    """

    stack_method: Literal["auto", "predict_proba", "decision_function", "predict"] = parameter(
        StrOptions({"auto", "predict_proba", "decision_function", "predict"}), default="auto"
    )
    _is_class_target = True

    def _default_final(self) -> Estimator:
        return LinearClassifier(scale=False)

    def _read_rows(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None) -> MemberRows:
        labels = read_labels(y)
        if labels is None:
            return super()._read_rows(X, y, sample_weight)
        self._check_parameters()
        check_options(self)
        table = pick_table(X)
        check_length(len(labels), table.n_rows)
        classes = [np.array([0, 1], dtype=labels.dtype) for _ in labels.T]
        weight = read_weights(sample_weight, table.n_rows)
        return MemberRows(table, labels, labels.astype(np.intp), weight, classes=classes)

    def _method_of(self, name: str, member: BaseEstimator) -> str:
        if self.stack_method == "auto":
            return next(method for method in METHODS if hasattr(member, method))
        if not hasattr(member, self.stack_method):
            raise ValueError(
                f"Underlying estimator {name} does not implement the method {self.stack_method}. Use "
                f"stack_method='auto', or a member that has it: {type(member).__name__} has none."
            )
        return self.stack_method

    def _score(self, target: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
        return float(accuracy_score(target, predicted, sample_weight=weight))

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        if isinstance(self.classes_, list):
            raise TypeError("A model file holds stacks of one output, and this one predicts several labels. Pickle it.")
        return super()._file_parts()

    @only_if(_final_lacks("predict_proba"))
    def predict_proba(self, X: TableLike) -> Floats:
        """Class probabilities of the final estimator.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or a list of these
            Columns in the order of `classes_`; for multilabel targets, one array per label.
        """
        rows = self._final_rows(X)
        if isinstance(self.classes_, list):
            return cast("Floats", label_probabilities(self.final_estimator_, rows, len(self.classes_)))
        return member_probabilities(self.final_estimator_, rows, self.classes_, self._final_coded)

    predict_log_proba = only_if(_final_lacks("predict_proba"))(table_estimator.predict_log_proba)

    @only_if(_final_lacks("decision_function"))
    def decision_function(self, X: TableLike) -> Floats:
        """Decision function of the final estimator.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, k)
            The result of the final estimator.
        """
        rows = self._final_rows(X)
        return np.asarray(self.final_estimator_.decision_function(rows))


@estimator
class StackingRegressor(RegressorMixin, BaseStacking):
    """Stacking: regressors whose predictions are combined by a final estimator.

    For each fold, each member is fitted to the other folds and predicts the rows of this fold. The final estimator is
    fitted to these out-of-fold predictions, which are the columns of its training table. New rows are predicted by
    members that were refitted to all rows. All fits run in parallel on threads that share the table, and the ensemble
    is the same for any number of threads.

    See Also
    --------
    StackingClassifier : The same for classification.
    VotingRegressor : Averages members with fixed weights.
    compare : Compares several models by cross-validation, with confidence intervals.

    References
    ----------
    D. H. Wolpert (1992). Stacked generalization. Neural Networks 5, 241-259.

    R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes (2004). Ensemble selection from libraries of models. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = spinney.StackingRegressor(["tree", "linear"], "greedy", random_state=0).fit(X, y)
    >>> model.final_estimator_.weights_.round(1)
    array([1., 0.])
    """

    def _default_final(self) -> Estimator:
        return LinearRegressor(scale=False)

    def _method_of(self, name: str, member: BaseEstimator) -> str:
        return "predict"

    def _score(self, target: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
        return float(r2_score(target, predicted, sample_weight=weight))
