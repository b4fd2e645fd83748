"""What learners of hyperplanes share."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.design import Design
from spinney._estimator.costs import read_cost_matrix
from spinney._estimator.scaling import SCALE, scale_word
from spinney._estimator.single_target import read_one_class
from spinney._estimator.summary import About, counted
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_weights
from spinney._model.file.arrays import numbers_from_json
from spinney._model.file.container import field, refuse
from spinney._model.saving.model_part import FittedPart
from spinney._model.svm.model import FittedPlanes
from spinney._svm.weights import class_weights

Floats = NDArray[np.float64]


class PlaneRows(NamedTuple):
    """Rows that planes are learned from: terms, (n_terms, n_rows), targets and weights."""

    terms: Floats
    target: Floats
    weight: Floats


class PlaneTable(NamedTuple):
    """A table on its way to planes."""

    columns: _engine.Table
    schema: Schema
    target: Floats
    weight: Floats
    scale: str | None

    def learn(self, weight: Floats) -> tuple[Design, PlaneRows]:
        """Terms of the rows of positive weight, and these rows."""
        design = Design.learn(self.columns, self.schema, weight, self.scale)
        terms, used = design.matrix(self.columns), weight > 0
        if used.all():
            return design, PlaneRows(terms, self.target, weight)
        return design, PlaneRows(np.ascontiguousarray(terms[:, used]), self.target[used], weight[used])


class BasePlanes(TableEstimator):
    """Learners whose model is a plane for each machine."""

    _model_attribute = "margin_"
    margin_: FittedPlanes
    _kept_numbers: ClassVar[tuple[str, ...]] = ()  # fitted attributes with a number for each machine
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scale": SCALE,
        "categorical_features": ["array-like", None],
        "unseen": [StrOptions({"missing", "error", "other"})],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
    }

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        """Check y; return it as numbers, and what is learned from it."""

    @abstractmethod
    def _find_planes(
        self, terms: Floats, target: Floats, weight: Floats, learned: dict[str, Any]
    ) -> tuple[Floats, dict[str, Any]]:
        """Return weights and intercept of each machine, (n_machines, n_terms + 1), and what is known of them."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Find the planes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means that the row counts twice, a weight of 0 leaves it out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are held out together, where folds are made.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        raw = read_table(X)
        schema = self._learn_schema(raw)
        target, learned = self._read_target(y, raw.n_rows)
        columns = schema.encode(raw, unseen=self.unseen, estimator=type(self).__name__)
        given = read_weights(sample_weight, raw.n_rows)
        weight = np.ones(raw.n_rows) if given is None else given
        table = PlaneTable(columns, schema, target, weight, scale_word(self.scale))
        self._choose(table, learned, groups)
        design, rows = table.learn(weight)
        self._check_classes(rows.target, learned)
        found, known = self._find_planes(rows.terms, rows.target, rows.weight, learned)
        self._keep_schema(schema)
        self.margin_ = self._model(found, design, learned)
        self.__dict__.pop("cv_results_", None)
        for name, value in (learned | known).items():
            if not name.startswith("_"):
                setattr(self, name, value)
        return self

    def _choose(self, table: PlaneTable, learned: dict[str, Any], groups: Any) -> None:
        """Note what is chosen on folds."""
        return

    @staticmethod
    def _model(found: Floats, design: Design, learned: dict[str, Any]) -> FittedPlanes:
        n_classes = len(learned["classes_"]) if "classes_" in learned else None
        return FittedPlanes(
            planes=np.ascontiguousarray(found[:, :-1]),
            design=design,
            strategy="ovr" if n_classes is not None and n_classes > 2 else "one",
            intercepts=np.ascontiguousarray(found[:, -1]),
            n_classes=None if n_classes is None else [n_classes],
        )

    @staticmethod
    def _check_classes(target: Floats, learned: dict[str, Any]) -> None:
        for k in range(len(learned.get("classes_", ()))):
            if not (target == k).any():
                raise ValueError(
                    f"The class with index {k} in classes_ has no row of positive weight to learn from. Drop its rows, "
                    "or give some of them a weight."
                )

    # ---- what the model is made of --------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        """Weights of the terms, (n_machines, n_terms)."""
        check_is_fitted(self)
        return self.margin_.planes

    @property
    def intercept_(self) -> Floats:
        """What each machine adds to its sum."""
        check_is_fitted(self)
        return self.margin_.intercepts

    @property
    def terms_(self) -> list[str]:
        """Names of the terms."""
        check_is_fitted(self)
        assert self.margin_.design is not None
        return self.margin_.design.names(self.schema_)

    # ---- files ---------------------------------------------------------------------------------------

    def _to_header(self) -> dict[str, Any]:
        return {"planes_known": {name: np.asarray(getattr(self, name)).tolist() for name in self._kept_numbers}}

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        entry = field(header, "planes_known", dict)
        found: dict[str, Any] = {}
        assert isinstance(part.model, FittedPlanes)
        for name in cls._kept_numbers:
            found[name] = numbers_from_json(field(entry, name, list), name)
            if name.startswith("n_"):
                found[name] = found[name].astype(np.int64)
            if len(found[name]) != part.model.n_machines:
                refuse("is damaged: what is known of its planes does not fit them")
        return found

    _noun: ClassVar[str] = "linear support vector machine"

    def _about(self) -> About:
        n_terms, n = len(self.terms_), self.margin_.n_machines
        sentence = f"{counted(n, 'plane', 'planes')} of {counted(n_terms, 'term', 'terms')}"
        size = {"planes": n, "terms": self.terms_}
        why = "the model is a plane, or several. Use its coef_ and intercept_ in Python."
        return About(self._noun, size, {self._noun: sentence}, sentence, why_no_trees=why)

    # ---- using ---------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> Floats:
        """Scores of each row by machine."""
        return self._by_blocks(X, lambda columns: self.margin_.scores(columns, self._n_threads))


class PlanesOfClasses(BasePlanes):
    """Planes that tell classes apart: one, or one for each class against all others."""

    _is_class_target = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BasePlanes._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "cost_matrix": ["array-like", dict, None],
    }

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        codes, classes = read_one_class(y, n_rows, "a margin")
        cost = None if self.cost_matrix is None else read_cost_matrix(self.cost_matrix, classes)
        learned = {"classes_": classes, "n_classes_": len(classes), "cost_matrix_": cost}
        return codes, learned

    def _sides(self, target: Floats, weight: Floats, learned: dict[str, Any]) -> list[tuple[Floats, Floats]]:
        """Side and weight of each row, for each machine."""
        classes, codes = learned["classes_"], target.astype(np.intp)
        weighed = weight * class_weights(self.class_weight, codes, weight, classes)[codes]
        cost, found = learned["cost_matrix_"], []
        for k in [1] if len(classes) == 2 else range(len(classes)):
            z = np.where(codes == k, 1.0, -1.0)
            price = np.ones(len(z)) if cost is None else np.where(z > 0, cost[k].sum(), cost[codes, k])
            found.append((z, weighed * price))
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self._scores(X)
        return self.margin_.labels(self.margin_.score_codes(scores), [self.classes_])

    def decision_function(self, X: Any) -> Floats:
        """Scores of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive for the second. More: of each class against all others.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores
