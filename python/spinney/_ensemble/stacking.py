"""Stacking: predictions of members for rows they have not seen teach a model how to combine them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._data.select import PickTable, pick_table
from spinney._data.types import TableLike
from spinney._ensemble.combination import BaseCombination, FittedMembers, Floats, Named
from spinney._ensemble.members import (
    LARGEST_SEED,
    MemberRows,
    Sharing,
    are_foreign,
    estimator_of_word,
    members_from_json,
    members_to_json,
    released,
    seeded,
    takes_weights,
)
from spinney._ensemble.stack_members import FoldAverage, GreedySelection, OutOfFold, answers, folds_among
from spinney._estimator import table_estimator
from spinney._estimator.estimator import Estimator, only_if, template_from_json, template_to_json
from spinney._estimator.held_out import Fold, read_folds, read_row_groups
from spinney._estimator.parallel import Progress
from spinney._estimator.parameters import estimator, parameter
from spinney._linear.linear_model import LinearClassifier, LinearRegressor
from spinney._model.file.container import refuse
from spinney._model.predictions import (
    METHODS,
    Calibration,
    as_columns,
    column_names,
    member_predictions,
    member_probabilities,
)
from spinney._model.saving.members import StackPlan

GREEDY = "greedy"


@dataclass(frozen=True, eq=False)
class MemberPredictions:
    """What the final estimator learns from.

    Attributes
    ----------
    names, methods : list of str
        Members, and the method by which each predicts.
    columns : list of ndarrays of shape (n_rows, width)
        Out-of-fold predictions by member.
    seen : ndarray of bool of shape (n_rows,)
        Rows that some fold has held out, of positive weight.
    """

    names: list[str]
    methods: list[str]
    columns: list[Floats]
    seen: NDArray[np.bool_]


@estimator
class BaseStacking(TransformerMixin, BaseCombination):
    """Members, and a model of their predictions for rows they have not seen."""

    final_estimator: BaseEstimator | str | None = parameter(
        HasMethods(["fit", "predict"]), str, None, default=None, kw_only=False
    )
    layers: list[Any] | tuple[Any, ...] | None = parameter(list, tuple, None, default=None)
    cv: Any = parameter("cv_object", "array-like", StrOptions({"prefit"}), default=5)
    passthrough: bool = parameter("boolean", default=False)
    refit: bool = parameter("boolean", default=True)
    _kind, _method = "stack", "stacking"

    # ---- what differs between classes and values ---------------------------------------------------

    @abstractmethod
    def _default_final(self) -> Estimator:
        """Return the model that combines if none is given."""

    @abstractmethod
    def _method_of(self, name: str, member: BaseEstimator) -> str:
        """Return the method by which a member predicts."""

    @abstractmethod
    def _scored(self, target: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
        """Score of a member's predictions."""

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
        """Fit the members, and what combines them.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Any table that the members take: NumPy array, pandas, polars or pyarrow table, scipy sparse matrix, dict of
            columns or list of rows. Members get tables of the same kind.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            For members that take weights, and for what combines them. A weight of 0 leaves the row out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are held out together, also by members that hold rows out by themselves.
        **fit_params : dict
            For `fit` of the members that request it, with scikit-learn's metadata routing; what has one value per row
            is cut to the rows of the fold.

        Returns
        -------
        self
            The fitted ensemble.
        """
        rows = self._read_rows(X, y, sample_weight)
        members = self._members()
        if rows.weight is not None:
            self._warn_of_weights(members)
        n_rows = rows.table.n_rows
        rows = rows.with_groups(None if groups is None else read_row_groups(groups, n_rows))
        random = check_random_state(self.random_state)
        names, methods = [name for name, _ in members], [self._method_of(*one) for one in members]
        folds: list[Fold] = []
        if isinstance(self.cv, str):
            fitted, predicted = self._prefit(members, methods, rows)
        else:
            strata = None if rows.codes is None else rows.codes[:, np.newaxis]
            weights = np.ones(n_rows) if rows.weight is None else rows.weight
            folds = read_folds(5 if self.cv is None else self.cv, strata, rows.target, weights, groups, random)
            fitted, predicted = self._fit_members(members, methods, rows, folds, fit_params, random)
        seen = ~np.isnan(predicted[0][:, 0])
        seen &= True if rows.weight is None else rows.weight > 0
        scores = self._member_scores(names, predicted, seen, rows)
        columns = [as_columns(one, method, rows.classes) for one, method in zip(predicted, methods, strict=True)]
        meta = MemberPredictions(names, methods, columns, seen)
        final, final_coded = self._fit_final(rows, meta, folds, random)
        self._keep(rows.table, rows.classes, fitted)
        self.stack_method_, self.oof_scores_ = methods, scores
        self._widths = [column.shape[1] for column in columns]
        self.oof_predictions_ = np.where(seen[:, np.newaxis], np.hstack(columns), np.nan)
        self.final_estimator_, self._final_coded = final, final_coded
        return self

    def _fit_members(
        self,
        members: Named,
        methods: list[str],
        rows: MemberRows,
        folds: list[Fold],
        fit_params: dict[str, Any],
        random: RandomState,
    ) -> tuple[FittedMembers, list[Floats]]:
        """Fit the members to all rows and to those of each fold; return them, and their predictions out of fold."""
        names = [name for name, _ in members]
        params = self._routed(fit_params, names)
        templates = [seeded(member, random) for _, member in members]
        by_code = [self._by_code(template) for template in templates]
        places: list[Fold | None] = [*([None] if self.refit else []), *folds]  # the largest first
        tasks = [(m, place) for place in places for m in range(len(members))]
        sharing = Sharing.of(self.n_jobs, len(tasks))

        def work(k: int) -> tuple[BaseEstimator | None, Floats | None]:
            m, fold = tasks[k]
            taken = rows.used if fold is None else fold.train
            member = rows.fit(sharing.prepared(templates[m]), names[m], taken, by_code[m], params[names[m]])
            if fold is None:
                return released(member, templates[m], self.n_jobs), None
            predicted = member_predictions(member, rows.table.take(fold.held_out), methods[m], rows.classes, by_code[m])
            return None if self.refit else released(member, templates[m], self.n_jobs), predicted

        fitted: list[list[BaseEstimator]] = [[] for _ in members]
        out_of_fold = [OutOfFold(rows.table.n_rows) for _ in members]
        with Progress("fits", len(tasks), False, 0, self.verbose) as progress:
            for k, (member, predicted) in enumerate(sharing.run(work, len(tasks), are_foreign(templates))):
                m, fold = tasks[k]
                if member is not None:
                    fitted[m].append(member)
                if predicted is not None and fold is not None:
                    out_of_fold[m].add(fold.held_out, predicted)
                progress.report(k + 1)
        means = [one.mean for one in out_of_fold]
        if self.refit:
            return FittedMembers(names, [models[0] for models in fitted], by_code), means
        averages = [FoldAverage(models, rows.classes, coded) for models, coded in zip(fitted, by_code, strict=True)]
        return FittedMembers(names, averages, [False] * len(members)), means

    def _prefit(self, members: Named, methods: list[str], rows: MemberRows) -> tuple[FittedMembers, list[Floats]]:
        """Take members as they are."""
        if rows.groups is not None or self.layers:
            what = "groups" if rows.groups is not None else "layers"
            raise ValueError(f"cv='prefit' makes no folds, and {what} need them. Leave {what} out, or set cv.")
        by_code, predicted = [], []
        for (_, member), method in zip(members, methods, strict=True):
            check_is_fitted(member)
            known = set() if rows.classes is None else set(np.asarray(member.classes_).tolist())
            by_code.append(rows.classes is not None and not known <= set(rows.classes.tolist()))
            predicted.append(member_predictions(member, rows.table.native, method, rows.classes, by_code[-1]))
        fitted = FittedMembers([name for name, _ in members], [member for _, member in members], by_code)
        return fitted, predicted

    def _member_scores(
        self, names: list[str], predicted: list[Floats], seen: NDArray[np.bool_], rows: MemberRows
    ) -> dict[str, float]:
        weight = None if rows.weight is None else rows.weight[seen]
        found = {}
        for name, one in zip(names, predicted, strict=True):
            is_of_pairs = rows.classes is not None and one.shape[1] not in (1, len(rows.classes))
            found[name] = (
                float("nan")
                if is_of_pairs
                else self._scored(rows.target[seen], answers(one[seen], rows.classes), weight)
            )
        return found

    # ---- what combines ---------------------------------------------------------------------------------

    @property
    def _is_greedy(self) -> bool:
        return isinstance(self.final_estimator, str) and self.final_estimator == GREEDY and not self.layers

    def _final(self) -> BaseEstimator:
        """Return what combines, unfitted; not for greedy selection or further layers."""
        if self.final_estimator is None:
            return self._default_final()
        if isinstance(self.final_estimator, str):
            return estimator_of_word(self.final_estimator, self._task)
        return self.final_estimator

    def _next_layer(self, folds: list[Fold], seen: NDArray[np.bool_], seed: int) -> Self:
        """Return the stack that combines the predictions of the members."""
        layers = list(self.layers or [])
        parameters = self.get_params(deep=False) | {"cv": folds_among(folds, seen), "random_state": seed}
        return type(self)(**parameters | {"estimators": layers[0], "layers": layers[1:] or None})

    def _fit_final(
        self, rows: MemberRows, meta: MemberPredictions, folds: list[Fold], random: RandomState
    ) -> tuple[BaseEstimator, bool]:
        """Return what combines, fitted, and whether it knows classes by their codes."""
        seen = meta.seen
        weight, columns = None if rows.weight is None else rows.weight[seen], [one[seen] for one in meta.columns]
        if self._is_greedy:
            self._check_greedy(meta)
            target = rows.target if rows.codes is None else rows.codes
            greedy = GreedySelection(len(columns))
            return greedy.fit(np.hstack(columns), target[seen], weight, classes=rows.classes), False
        if self.layers:
            final: BaseEstimator = self._next_layer(folds, seen, int(random.randint(LARGEST_SEED)))
        else:
            final = seeded(self._final(), random)
        table = rows.table if seen.all() else pick_table(rows.table.take(np.flatnonzero(seen)))
        by_code = self._by_code(final)
        target = rows.codes if by_code and rows.codes is not None else rows.target
        given = {} if weight is None or not takes_weights(final) else {"sample_weight": weight}
        named = self._named_columns(meta.names, columns, rows.classes)
        try:
            final.fit(self._meta(table, named, final), target[seen], **given)
        except Exception as error:
            error.add_note(f"This happened while fitting the final estimator, a {type(final).__name__}.")
            raise
        if self.layers:
            final.set_params(cv=self.cv, random_state=self.random_state)
        return final, by_code

    def _check_greedy(self, meta: MemberPredictions) -> None:
        if self.passthrough:
            raise ValueError(
                "final_estimator='greedy' averages members and has no use for raw columns. Set passthrough=False, or "
                "another final_estimator."
            )
        for name, method in zip(meta.names, meta.methods, strict=True):
            if self._is_class_target and method != "predict_proba":
                raise ValueError(
                    f"final_estimator='greedy' averages probabilities, and {name!r} predicts by {method}. Use "
                    "members that have predict_proba, and stack_method='auto'."
                )

    @staticmethod
    def _named_columns(names: list[str], columns: list[Floats], classes: NDArray[Any] | None) -> dict[str, Floats]:
        """Return the predictions of the members as named columns."""
        titles = column_names(names, [column.shape[1] for column in columns], classes)
        return dict(zip(titles, np.ascontiguousarray(np.hstack(columns).T), strict=True))

    def _meta(self, table: PickTable, named: dict[str, Floats], final: BaseEstimator) -> TableLike:
        """Return the table that what combines gets to see."""
        if self.passthrough:
            return table.with_leading_columns(named)
        return named if isinstance(final, Estimator) else np.column_stack(list(named.values()))

    # ---- using ---------------------------------------------------------------------------------------

    def _member_columns(self, table: PickTable) -> list[Floats]:
        return [
            as_columns(member_predictions(member, table.native, method, self._classes, coded), method, self._classes)
            for member, method, coded in zip(self.estimators_, self.stack_method_, self._coded, strict=True)
        ]

    def _meta_of(self, X: TableLike) -> TableLike:
        """Return rows as the final estimator sees them."""
        table = self._matched(X)
        named = self._named_columns(self._names, self._member_columns(table), self._classes)
        return self._meta(table, named, self.final_estimator_)

    def transform(self, X: TableLike) -> Any:
        """Return what the members say of rows; with `passthrough`, followed by the columns of the table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_columns), or, with `passthrough`, a table of the kind of `X`
            A probability, decision, value or code by column.
        """
        table = self._matched(X)
        columns = self._member_columns(table)
        if not self.passthrough:
            return np.hstack(columns)
        return table.with_leading_columns(self._named_columns(self._names, columns, self._classes))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the columns that `transform` gives, as scikit-learn's.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Not used, but for columns that are passed through.

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
        """Predict rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        **params : dict
            For `predict` of the final estimator.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels or values.
        """
        meta = self._meta_of(X)
        predicted = np.asarray(self.final_estimator_.predict(meta, **params))
        return np.asarray(self.classes_[predicted.astype(np.intp)]) if self._final_coded else predicted

    # ---- files ---------------------------------------------------------------------------------------

    def _saved_parameters(self) -> dict[str, Any]:
        final, layers = self.final_estimator, self.layers
        return super()._saved_parameters() | {
            "final_estimator": final if final is None or isinstance(final, str) else template_to_json(final),
            "layers": None if not layers else [members_to_json(layer) for layer in layers],
        }

    @classmethod
    def _loaded_parameters(cls, saved: dict[str, Any]) -> dict[str, Any]:
        final, layers = saved.get("final_estimator"), saved.get("layers")
        if layers is not None and not isinstance(layers, list):
            refuse("is damaged: its layers are unusable")
        return super()._loaded_parameters(saved) | {
            "final_estimator": final if final is None or isinstance(final, str) else template_from_json(final),
            "layers": None if layers is None else [members_from_json(layer) for layer in layers],
        }

    def _parts(self) -> list[BaseEstimator]:
        found: list[BaseEstimator] = []
        for member in self.estimators_:
            found += member.estimators_ if isinstance(member, FoldAverage) else [member]
        return found if isinstance(self.final_estimator_, GreedySelection) else [*found, self.final_estimator_]

    def _combination_header(self) -> dict[str, Any]:
        final = self.final_estimator_
        header: dict[str, Any] = {
            "methods": list(self.stack_method_),
            "widths": list(self._widths),
            "folds": [len(one.estimators_) if isinstance(one, FoldAverage) else 0 for one in self.estimators_],
            "weights": None,
            "scores": [score if math.isfinite(score) else None for score in self.oof_scores_.values()],
        }
        return header | final.to_header() if isinstance(final, GreedySelection) else header

    def _load_combination(self, header: dict[str, Any], frame: dict[str, Any], models: list[Estimator]) -> None:
        plan = StackPlan.read(header, frame, models)
        self.estimators_ = [
            FoldAverage(own, self._classes, False) if of_folds else own[0]
            for own, of_folds in zip(plan.members, plan.of_folds, strict=True)
        ]
        if any(not hasattr(one, method) for one, method in zip(self.estimators_, plan.methods, strict=True)):
            refuse("is damaged: a member lacks the method by which it is to predict")
        self.stack_method_, self._widths = plan.methods, plan.widths
        self.oof_scores_ = dict(zip(self._names, plan.scores, strict=True))
        self.final_estimator_, self._final_coded = plan.final, False
        if plan.weights is not None:
            self.final_estimator_ = GreedySelection.of(plan.weights, self._classes, plan.temperatures, plan.calibration)

    def _member_weights(self) -> list[float] | list[None]:
        final = self.final_estimator_
        return final.weights_.tolist() if isinstance(final, GreedySelection) else super()._member_weights()

    def _identity(self) -> bytes:
        methods, final = "|".join(self.stack_method_).encode(), self.final_estimator_
        return methods + final.identity() if isinstance(final, GreedySelection) else methods


def _final_lacks(method: str) -> Callable[[StackingClassifier], str | None]:
    def why(model: StackingClassifier) -> str | None:
        final = getattr(model, "final_estimator_", None)
        if final is None:
            if model.layers or model._is_greedy:
                return None if method != "decision_function" else "is not what averages have. Use predict_proba."
            final = model._final()
        if hasattr(final, method):
            return None
        return f"needs a final estimator that has it, and {type(final).__name__} has none."

    return why


@estimator
class StackingClassifier(ClassifierMixin, BaseStacking):
    """Classifiers whose predictions are combined by another model, which learns from rows they have not seen.

    Each member is fitted to the rows outside each fold and asked about the rows in it; what it says there, its
    out-of-fold predictions, are the columns that the final estimator learns from. For new rows the members speak that
    were refitted to all rows. All fits run side by side on threads that share the table, and the ensemble is the same
    for any number of threads.

    See Also
    --------
    StackingRegressor : The same for numbers.
    VotingClassifier : Averages members without learning how.
    compare : Which of several models is best, and how sure one can be.

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

    stack_method: str = parameter(StrOptions({"auto", "predict_proba", "decision_function", "predict"}), default="auto")
    _is_class_target = True

    def _default_final(self) -> Estimator:
        return LinearClassifier(scale=False)

    def _method_of(self, name: str, member: BaseEstimator) -> str:
        if self.stack_method == "auto":
            return next(method for method in METHODS if hasattr(member, method))
        if not hasattr(member, self.stack_method):
            raise ValueError(
                f"Underlying estimator {name} does not implement the method {self.stack_method}. Use "
                f"stack_method='auto', or a member that has it: {type(member).__name__} has none."
            )
        return self.stack_method

    def _scored(self, target: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
        return float(accuracy_score(target, predicted, sample_weight=weight))

    @only_if(_final_lacks("predict_proba"))
    def predict_proba(self, X: TableLike) -> Floats:
        """Class probabilities by the final estimator.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        meta = self._meta_of(X)
        return member_probabilities(self.final_estimator_, meta, self.classes_, self._final_coded)

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
            As the final estimator gives it.
        """
        meta = self._meta_of(X)
        return np.asarray(self.final_estimator_.decision_function(meta))


@estimator
class StackingRegressor(RegressorMixin, BaseStacking):
    """Regressors whose predictions are combined by another model, which learns from rows they have not seen.

    Each member is fitted to the rows outside each fold and asked about the rows in it; what it says there, its
    out-of-fold predictions, are the columns that the final estimator learns from. For new rows the members speak that
    were refitted to all rows. All fits run side by side on threads that share the table, and the ensemble is the same
    for any number of threads.

    See Also
    --------
    StackingClassifier : The same for classes.
    VotingRegressor : Averages members without learning how.
    compare : Which of several models is best, and how sure one can be.

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

    def _scored(self, target: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
        return float(r2_score(target, predicted, sample_weight=weight))


def weighted_stack(
    members: dict[str, BaseEstimator],
    weights: list[float],
    X: TableLike,
    classes: NDArray[Any] | None,
    *,
    scores: dict[str, float],
    temperatures: list[float] | None = None,
    calibration: Calibration = None,
) -> StackingClassifier | StackingRegressor:
    """Make the stack that averages some fitted models of spinney.

    Parameters
    ----------
    members : dict of str to estimator
        Fitted to the columns of `X`; classifiers have probabilities.
    weights : list of float
        Of the members; they add up to 1.
    X : table
        What the members were fitted to, for its columns.
    classes : ndarray or None
        Labels; None: the members predict values.
    scores : dict of str to float
        Out-of-fold scores of the members.
    temperatures : list of float, optional
        By which logarithms of each member's probabilities are divided before they are averaged.
    calibration : float or Curve, optional
        By which logarithms of the mean probabilities are divided, or a curve off which they are read.

    Returns
    -------
    StackingClassifier or StackingRegressor
        Fitted.
    """
    kind: type[StackingClassifier | StackingRegressor] = StackingRegressor if classes is None else StackingClassifier
    model, n = kind(list(members.items()), GREEDY), len(members)
    model._keep(pick_table(X), classes, FittedMembers(list(members), list(members.values()), [False] * n))
    model.stack_method_ = ["predict" if classes is None else "predict_proba"] * n
    model.oof_scores_ = scores
    model._widths = [1 if classes is None or len(classes) == 2 else len(classes)] * n
    found = np.asarray(weights, dtype=np.float64)
    model.final_estimator_ = GreedySelection.of(found, classes, temperatures, calibration)
    model._final_coded = False
    return model
