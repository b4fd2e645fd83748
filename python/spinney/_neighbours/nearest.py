"""What neighbours of classes and of values share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._estimator.costs import ClassCosts
from spinney._estimator.folds import read_folds
from spinney._estimator.parameters import COUNT
from spinney._estimator.scaling import SCALE, scale_word
from spinney._estimator.summary import About, counted
from spinney._estimator.target import read_weights
from spinney._model.file.container import field, refuse
from spinney._model.neighbours.measure import METRICS, Measure
from spinney._model.neighbours.model import ALGORITHMS, TIES, WEIGHTS, Ballot, Counting, FittedNeighbours
from spinney._model.saving.model_part import FittedPart
from spinney._neighbours.choice import Trial, choose, read_results
from spinney._neighbours.target import LocalEstimator

Floats = NDArray[np.float64]
_MOST_TRIED = 30  # neighbours, if the caller does not say


class BaseNeighbors(LocalEstimator):
    """The nearest training rows answer for a row."""

    _model_attribute = "neighbors_"
    neighbors_: FittedNeighbours
    _elsewhere: ClassVar[dict[str, str]] = {
        "leaf_size": "Leaves of the tree hold 16 rows. Leave it out.",
        "metric_params": "Minkowski's power is p, and metric may be a function of two rows.",
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [COUNT, StrOptions({"cv"})],
        "weights": [StrOptions(set(WEIGHTS)), callable],
        "metric": [StrOptions({"auto", *METRICS}), callable],
        "p": [Interval(Real, 0.0, None, closed="neither")],
        "scale": SCALE,
        "algorithm": [StrOptions(set(ALGORITHMS))],
        "ties": [StrOptions(set(TIES))],
        "k_values": ["array-like", None],
        "cv": [StrOptions({"loo"}), Integral, "cv_object", "array-like"],
        "scoring": [str, callable, None],
        "categorical_features": ["array-like", None],
        "unseen": [StrOptions({"missing", "error", "other"})],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
    }

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Remember the rows; with ``n_neighbors="cv"``, choose how many are asked.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means that the row counts twice, as two of the neighbours; a weight of 0 leaves it out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are held out together (``n_neighbors="cv"`` with folds).

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        table = read_table(X)
        schema = self._learn_schema(table)
        target, n_classes, learned = self._read_target(y, table.n_rows)
        given = read_weights(sample_weight, table.n_rows)
        weight = np.ones(table.n_rows) if given is None else given
        costs = self._read_costs(target, given, learned)
        columns = schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)
        metric = self._find_metric(columns, schema, weight)
        self._check_algorithm(metric)

        def make(among: Floats, k: int) -> FittedNeighbours:
            measure = Measure.learn(metric, float(self.p), scale_word(self.scale), columns, schema, among)
            return self._make(measure, measure.terms(columns), among, Ballot(target, n_classes), k, costs)

        results: dict[str, Any] | None = None
        k = self.n_neighbors
        if self.n_neighbors == "cv":
            trials = self._make_trials(make, columns, target, weight, groups)
            fewest = int(min(trial.model.total_weight - (trial.n_rows < len(trial.model.rows)) for trial in trials))
            judge = self._make_judge(target, weight, costs, learned)
            k, results = choose(trials, "n_neighbors", self._read_values(max(1, fewest)), judge)
        elif groups is not None:
            raise ValueError('groups say which rows are held out together, which needs n_neighbors="cv" and folds.')
        model = make(weight, int(k))
        if model.measure.function is None:
            model.index(self._n_threads)
        self._keep(schema, model, learned, costs, results, table.n_rows)
        return self

    def _find_metric(self, columns: _engine.Table, schema: Schema, weight: Floats) -> Any:
        """Return the metric; "auto" is Gower's for tables with categories or missing values, else Euclid's."""
        if callable(self.metric) or self.metric != "auto":
            return self.metric
        has_categories = any(feature.kind in ("category", "ordered") for feature in schema.features)
        is_missing = columns.ranges(weight, self._n_threads)[2]
        return "gower" if has_categories or any(is_missing) else "euclidean"

    def _check_algorithm(self, metric: Any) -> None:
        if self.algorithm == "tree" and (callable(metric) or metric in ("gower", "hamming")):
            name = "a function" if callable(metric) else repr(metric)
            raise ValueError(f"algorithm='tree' does not go with metric {name}. Use algorithm='auto' or 'brute'.")

    def _make(
        self, measure: Measure, terms: Floats, weight: Floats, ballot: Ballot, k: int, costs: ClassCosts
    ) -> FittedNeighbours:
        """Remember the rows of positive weight."""
        kept = np.flatnonzero(weight > 0)
        is_whole = len(kept) == len(weight)
        own = weight if is_whole else weight[kept]
        has_costs = costs.cost is not None or costs.priors is not None
        return FittedNeighbours(
            measure,
            terms if is_whole else np.ascontiguousarray(terms[kept]),
            None if (own == 1).all() else own,
            ballot if is_whole else replace(ballot, target=np.ascontiguousarray(ballot.target[kept])),
            Counting(k, self.weights, self.ties),
            self.algorithm,
            costs.prior_factor,
            None if is_whole else kept.astype(np.int64),
            costs.decision if has_costs else None,
        )

    # ---- how many neighbours -------------------------------------------------------------------------

    def _read_values(self, fewest: int) -> list[int]:
        if self.k_values is None:
            return list(range(1, min(_MOST_TRIED, fewest) + 1))
        values = np.unique(np.asarray(self.k_values))
        if values.dtype.kind not in "iu" or values.ndim != 1 or not len(values) or values[0] < 1:
            raise ValueError(f"k_values must be whole numbers from 1 up. Got {self.k_values!r}.")
        return [int(k) for k in values]

    def _make_trials(
        self,
        make: Callable[[Floats, int], FittedNeighbours],
        columns: _engine.Table,
        target: NDArray[Any],
        weight: Floats,
        groups: Any,
    ) -> list[Trial]:
        """Return models with the rows that they are judged by."""
        if isinstance(self.cv, str):
            if groups is not None:
                raise ValueError("cv='loo' holds out one row at a time. Pass a number of folds with groups.")
            model = make(weight, 1)
            if len(model.rows) < 2:
                raise ValueError(
                    "n_neighbors='cv' needs at least 2 rows: one of n_samples=1 leaves none to learn from."
                )
            return [Trial.leave_one_out(model, np.flatnonzero(weight > 0), self._n_threads)]
        strata = target if self._is_class_target else None
        random = check_random_state(self.random_state)
        trials = []
        for fold in read_folds(self.cv, strata, target, weight, groups, random):
            among = np.zeros(len(weight))
            among[fold.grown_on] = weight[fold.grown_on]
            model = make(among, 1)
            terms = model.measure.terms(columns)[fold.held_out]
            trials.append(Trial.of(model, terms, fold.held_out, self._n_threads))
        return trials

    def _keep(
        self,
        schema: Schema,
        model: FittedNeighbours,
        learned: dict[str, Any],
        costs: ClassCosts,
        results: dict[str, Any] | None,
        n_rows: int,
    ) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        self.neighbors_ = model
        self._n_rows_given = n_rows
        self._keep_learned(schema, model, learned, costs, results)

    # ---- what was learned ----------------------------------------------------------------------------

    @property
    def n_neighbors_(self) -> int:
        """Neighbours that are asked."""
        check_is_fitted(self)
        return self.neighbors_.counting.k

    @property
    def metric_(self) -> str:
        """The distance."""
        check_is_fitted(self)
        return self.neighbors_.measure.metric

    @property
    def n_samples_fit_(self) -> int:
        """Rows remembered."""
        check_is_fitted(self)
        return len(self.neighbors_.rows)

    @property
    def terms_(self) -> list[str]:
        """What distances are made of, in words."""
        check_is_fitted(self)
        return self.neighbors_.measure.names(self.schema_)

    @property
    def center_(self) -> Floats:
        """What is taken off each term."""
        check_is_fitted(self)
        center = self.neighbors_.measure.center
        return np.zeros(self.n_features_in_) if center is None else center

    @property
    def scale_(self) -> Floats:
        """What each term is divided by then."""
        check_is_fitted(self)
        scale = self.neighbors_.measure.scale
        return np.ones(self.n_features_in_) if scale is None else scale

    # ---- files ---------------------------------------------------------------------------------------

    def _to_header(self) -> dict[str, Any]:
        found: dict[str, Any] = {"n_rows_given": self._n_rows_given}
        if hasattr(self, "cv_results_"):
            found["cv_results"] = {name: values.tolist() for name, values in self.cv_results_.items()}
        return found

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        n_rows, model = field(header, "n_rows_given", int), part.model
        assert isinstance(model, FittedNeighbours)
        if n_rows < (len(model.rows) if model.row_numbers is None else model.row_numbers[-1] + 1):
            refuse("is damaged: it remembers rows that were not there")
        found: dict[str, Any] = {"_n_rows_given": n_rows}
        if "cv_results" in header:
            found["cv_results_"] = read_results(field(header, "cv_results", dict), "n_neighbors", np.int64)
        return found

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        model = state.get("neighbors_")
        if model is not None and (model.measure.function is not None or callable(model.counting.weights)):
            return state
        return super()._pickled(state)

    def _about(self) -> About:
        model = self.neighbors_
        rows, near = counted(len(model.rows), "row", "rows"), counted(model.counting.k, "neighbour", "neighbours")
        lines = {"neighbours": f"{near} of {rows}", "distance": model.measure.metric}
        size: dict[str, Any] = {"neighbours": model.counting.k, "rows_remembered": len(model.rows)}
        size["distance"] = model.measure.metric
        sentence = f"{near} of {rows} by {model.measure.metric} distance"
        if hasattr(self, "cv_results_"):
            error = float(self.cv_results_["error"].min())
            lines["error, cross-validated"] = f"{error:.4g}"
            size["cross_validated_error"] = error
            sentence += f", chosen by cross-validation (error {error:.4g})"
        why = "the model is made of rows, not of trees."
        return About("neighbours", size, lines, sentence, why_no_trees=why)
