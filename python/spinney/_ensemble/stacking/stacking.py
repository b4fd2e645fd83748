"""What stacking of classes and of values share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._data.select import PickTable, pick_table
from spinney._ensemble.combination.estimator import BaseCombination
from spinney._ensemble.combination.fitting import MemberRows, Sharing, released, seeded
from spinney._ensemble.combination.members import estimator_of_word
from spinney._ensemble.member import LARGEST_SEED, takes_weights
from spinney._ensemble.stacking.fold_average import FoldAverage
from spinney._ensemble.stacking.greedy import GreedySelection
from spinney._ensemble.stacking.out_of_fold import OutOfFold, answers, folds_among
from spinney._ensemble.stacking.saved_state import (
    layers_from_json,
    layers_to_json,
    stack_from_header,
    stack_header,
    stack_parts,
)
from spinney._estimator.estimator import Estimator
from spinney._estimator.folds import Fold, read_folds, read_row_groups
from spinney._estimator.progress import Progress
from spinney._estimator.target import read_weights
from spinney._model.calibration import Curve
from spinney._model.predictions import as_columns, column_names, member_says

Floats = NDArray[np.float64]
GREEDY = "greedy"


class BaseStacking(TransformerMixin, BaseCombination):
    """Members, and a model of what they say of rows they have not seen."""

    _kind = "stack"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseCombination._parameter_constraints,
        "final_estimator": [HasMethods(["fit", "predict"]), str, None],
        "layers": [list, tuple, None],
        "cv": ["cv_object", "array-like", StrOptions({"prefit"})],
        "passthrough": ["boolean"],
        "refit": ["boolean"],
    }

    # ---- what differs between classes and values ---------------------------------------------------

    @abstractmethod
    def _default_final(self) -> Estimator:
        """Return the model that combines if none is given."""

    @abstractmethod
    def _method(self, name: str, estimator: Any) -> str:
        """Return the method by which a member is asked."""

    @abstractmethod
    def _scored(self, target: Any, answers: NDArray[Any], weight: Any) -> float:
        """Score of a member's answers."""

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, **fit_params: Any) -> Self:
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
        self._check_parameters()
        table = pick_table(X)
        target, codes, learned = self._read_target(y, table.n_rows)
        weight = read_weights(sample_weight, table.n_rows)
        members = self._members()
        if weight is not None:
            self._warn_of_weights(members)
        together = None if groups is None else read_row_groups(groups, table.n_rows)
        rows = MemberRows(table, target, codes, weight, together)
        random = check_random_state(self.random_state)
        learned |= {"_names": [name for name, _ in members], "stack_method_": [self._method(*one) for one in members]}
        if isinstance(self.cv, str):
            folds, found, said = [], *self._prefit(members, rows, groups, learned)
        else:
            strata = None if codes is None else codes[:, np.newaxis]
            weights = np.ones(table.n_rows) if weight is None else weight
            folds = read_folds(5 if self.cv is None else self.cv, strata, target, weights, groups, random)
            params = self._routed(fit_params, learned["_names"])
            found, said = self._fit_members(members, rows, folds, params, learned, random)
        learned |= found
        judged = ~np.isnan(said[0][:, 0])
        judged &= True if weight is None else weight > 0
        learned["oof_scores_"] = self._member_scores(said, judged, rows, learned)
        classes, methods = learned.get("classes_"), learned["stack_method_"]
        columns = [as_columns(one, method, classes) for one, method in zip(said, methods, strict=True)]
        learned["_widths"] = [column.shape[1] for column in columns]
        learned["oof_predictions_"] = np.where(judged[:, np.newaxis], np.hstack(columns), np.nan)
        learned |= self._fit_final(rows, [column[judged] for column in columns], judged, folds, learned, random)
        self._keep(table, learned)
        return self

    def _fit_members(
        self,
        members: list[tuple[str, Any]],
        rows: MemberRows,
        folds: list[Fold],
        params: dict[str, dict[str, Any]],
        learned: dict[str, Any],
        random: np.random.RandomState,
    ) -> tuple[dict[str, Any], list[Floats]]:
        """Fit the members to all rows and to those of each fold; return them, and what they say of rows held out."""
        classes, methods = learned.get("classes_"), learned["stack_method_"]
        templates = [(name, seeded(estimator, random)) for name, estimator in members]
        whole = None if rows.weight is None or (rows.weight > 0).all() else np.flatnonzero(rows.weight)
        places: list[Fold | None] = [*([None] if self.refit else []), *folds]  # the largest first
        tasks = [(m, place) for place in places for m in range(len(members))]
        sharing = Sharing.of(self.n_jobs, len(tasks))

        def work(k: int) -> tuple[Any, Floats | None]:
            m, fold = tasks[k]
            name, template = templates[m]
            by_code = self._by_code(template)
            taken = whole if fold is None else fold.grown_on
            member = rows.fit(sharing.prepared(template), name, taken, by_code, params[name])
            if fold is None:
                return released(member, template, self.n_jobs), None
            said = member_says(member, rows.table.take(fold.held_out), methods[m], classes, by_code)
            return None if self.refit else released(member, template, self.n_jobs), said

        fitted: list[list[Any]] = [[] for _ in members]
        out_of_fold = [OutOfFold(rows.table.n_rows) for _ in members]
        has_foreign = any(not isinstance(template, Estimator) for _, template in templates)
        with Progress("fits", len(tasks), False, 0, self.verbose) as progress:
            for k, (member, said) in enumerate(sharing.run(work, len(tasks), has_foreign)):
                m, fold = tasks[k]
                if member is not None:
                    fitted[m].append(member)
                if said is not None and fold is not None:
                    out_of_fold[m].add(fold.held_out, said)
                progress.report(k + 1)
        by_code = [self._by_code(template) for _, template in templates]
        if self.refit:
            estimators = [models[0] for models in fitted]
        else:
            estimators = [FoldAverage(models, classes, coded) for models, coded in zip(fitted, by_code, strict=True)]
        found = {"estimators_": estimators, "_coded": by_code if self.refit else [False] * len(members)}
        return found, [one.mean for one in out_of_fold]

    def _prefit(
        self, members: list[tuple[str, Any]], rows: MemberRows, groups: Any, learned: dict[str, Any]
    ) -> tuple[dict[str, Any], list[Floats]]:
        """Take members as they are."""
        if groups is not None or self.layers:
            what = "groups" if groups is not None else "layers"
            raise ValueError(f"cv='prefit' makes no folds, and {what} need them. Leave {what} out, or set cv.")
        classes = learned.get("classes_")
        found = []
        for _, member in members:
            check_is_fitted(member)
            known = None if classes is None else set(np.asarray(member.classes_).tolist())
            found.append(known is not None and classes is not None and not known <= set(classes.tolist()))
        said = [
            member_says(member, rows.table.native, method, classes, coded)
            for (_, member), method, coded in zip(members, learned["stack_method_"], found, strict=True)
        ]
        return {"estimators_": [member for _, member in members], "_coded": found}, said

    def _member_scores(
        self, said: list[Floats], judged: NDArray[np.bool_], rows: MemberRows, learned: dict[str, Any]
    ) -> dict[str, float]:
        weight = None if rows.weight is None else rows.weight[judged]
        found = {}
        for name, one in zip(learned["_names"], said, strict=True):
            is_of_pairs = "classes_" in learned and one.shape[1] not in (1, len(learned["classes_"]))
            found[name] = (
                float("nan")
                if is_of_pairs
                else self._scored(rows.target[judged], answers(one[judged], learned.get("classes_")), weight)
            )
        return found

    # ---- what combines ---------------------------------------------------------------------------------

    @property
    def _is_greedy(self) -> bool:
        return isinstance(self.final_estimator, str) and self.final_estimator == GREEDY and not self.layers

    def _final(self) -> Any:
        """Return what combines, unfitted; not for greedy selection or further layers."""
        if self.final_estimator is None:
            return self._default_final()
        if isinstance(self.final_estimator, str):
            return estimator_of_word(self.final_estimator, self._task)
        return self.final_estimator

    def _next_layer(self, splits: Any, seed: int) -> Self:
        """Return the stack that combines what the members say."""
        layers = list(self.layers)
        parameters = self.get_params(deep=False) | {"cv": splits, "random_state": seed}
        return type(self)(**parameters | {"estimators": layers[0], "layers": layers[1:] or None})

    def _fit_final(
        self,
        rows: MemberRows,
        columns: list[Floats],
        judged: NDArray[np.bool_],
        folds: list[Fold],
        learned: dict[str, Any],
        random: np.random.RandomState,
    ) -> dict[str, Any]:
        weight = None if rows.weight is None else rows.weight[judged]
        if self._is_greedy:
            self._check_greedy(learned)
            target = rows.target if rows.codes is None else rows.codes
            greedy = GreedySelection(len(columns))
            greedy.fit(np.hstack(columns), target[judged], weight, classes=learned.get("classes_"))
            return {"final_estimator_": greedy, "_final_coded": False}
        if self.layers:
            final: Any = self._next_layer(folds_among(folds, judged), int(random.randint(LARGEST_SEED)))
        else:
            final = seeded(self._final(), random)
        whole = None if judged.all() else np.flatnonzero(judged)
        table = rows.table if whole is None else pick_table(rows.table.take(whole))
        by_code = self._by_code(final)
        target = rows.codes if by_code and rows.codes is not None else rows.target
        given = {} if weight is None or not takes_weights(final) else {"sample_weight": weight}
        try:
            final.fit(self._meta(table, columns, final, learned), target[judged], **given)
        except Exception as error:
            error.add_note(f"This happened while fitting the final estimator, a {type(final).__name__}.")
            raise
        if self.layers:
            final.set_params(cv=self.cv, random_state=self.random_state)
        return {"final_estimator_": final, "_final_coded": by_code}

    def _check_greedy(self, learned: dict[str, Any]) -> None:
        if self.passthrough:
            raise ValueError(
                "final_estimator='greedy' averages members and has no use for raw columns. Set passthrough=False, or "
                "another final_estimator."
            )
        if "classes_" not in learned:
            return
        for name, method in zip(learned["_names"], learned["stack_method_"], strict=True):
            if method != "predict_proba":
                raise ValueError(
                    f"final_estimator='greedy' averages probabilities, and {name!r} is asked for its {method}. Use "
                    "members that have predict_proba, and stack_method='auto'."
                )

    def _meta(self, table: PickTable, columns: list[Floats], final: Any, learned: dict[str, Any]) -> Any:
        """Return the table that what combines gets to see."""
        names = column_names(learned["_names"], learned["_widths"], learned.get("classes_"))
        if self.passthrough:
            return table.beside(dict(zip(names, np.hstack(columns).T, strict=True)))
        if isinstance(final, Estimator):
            return dict(zip(names, np.ascontiguousarray(np.hstack(columns).T), strict=True))
        return np.hstack(columns)

    # ---- using ---------------------------------------------------------------------------------------

    def _columns_said(self, table: PickTable) -> list[Floats]:
        classes = getattr(self, "classes_", None)
        return [
            as_columns(member_says(member, table.native, method, classes, coded), method, classes)
            for member, method, coded in zip(self.estimators_, self.stack_method_, self._coded, strict=True)
        ]

    def _meta_of(self, X: Any) -> Any:
        """Return rows as the final estimator sees them."""
        table = self._matched(X)
        return self._meta(table, self._columns_said(table), self.final_estimator_, self.__dict__)

    def transform(self, X: Any) -> Any:
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
        columns = self._columns_said(table)
        if not self.passthrough:
            return np.hstack(columns)
        names = column_names(self._names, self._widths, getattr(self, "classes_", None))
        return table.beside(dict(zip(names, np.hstack(columns).T, strict=True)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
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

    def _names_out(self, input_features: Any) -> Iterator[str]:
        prefix = type(self).__name__.lower()
        for name, width in zip(self._names, self._widths, strict=True):
            yield from [f"{prefix}_{name}"] if width == 1 else [f"{prefix}_{name}{k}" for k in range(width)]
        if self.passthrough:
            given = input_features if input_features is not None else self._column_names
            yield from (given if given is not None else [f"x{j}" for j in range(self.n_features_in_)])

    @property
    def _n_features_out(self) -> int:
        return sum(self._widths) + (self.n_features_in_ if self.passthrough else 0)

    def predict(self, X: Any, **params: Any) -> NDArray[Any]:
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
        said = np.asarray(self.final_estimator_.predict(meta, **params))
        return np.asarray(self.classes_[said.astype(np.intp)]) if self._final_coded else said

    # ---- files ---------------------------------------------------------------------------------------

    def _saved_parameters(self) -> dict[str, Any]:
        return super()._saved_parameters() | layers_to_json(self)

    @classmethod
    def _loaded_parameters(cls, kept: dict[str, Any]) -> dict[str, Any]:
        return super()._loaded_parameters(kept) | layers_from_json(kept)

    def _parts(self) -> list[Any]:
        return stack_parts(self)

    def _to_header(self) -> dict[str, Any]:
        return stack_header(self)

    @classmethod
    def _from_header(cls, header: dict[str, Any], learned: dict[str, Any]) -> dict[str, Any]:
        return stack_from_header(header, learned)

    def _member_weights(self) -> list[float] | list[None]:
        weights = getattr(self.final_estimator_, "weights_", None)
        return super()._member_weights() if weights is None else np.asarray(weights).tolist()

    def _identity(self) -> bytes:
        weights = getattr(self.final_estimator_, "weights_", np.empty(0))
        calibration = getattr(self.final_estimator_, "calibration_", None)
        by = calibration.tobytes() if isinstance(calibration, Curve) else np.float64(calibration or 0).tobytes()
        each = np.array(getattr(self.final_estimator_, "temperatures_", None) or [], dtype=np.float64).tobytes()
        return "|".join(self.stack_method_).encode() + weights.tobytes() + each + (b"" if calibration is None else by)
