"""Learning to rank: lists of rows, losses of their pairs, ranking metrics, and the estimator."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions

import spinney._engine as _engine
from spinney._boosting import new_data
from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.evaluation import HeldOutMetric, Labels
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss, LossOnRows
from spinney._boosting.settings import FROM_ONE, BoostingSettings, Metric
from spinney._boosting.target import BoostingTarget, TargetRows
from spinney._data.arguments import argument_array
from spinney._data.cells import is_missing
from spinney._data.reproducible import any_order_sum, exp
from spinney._data.types import Floats, TableLike
from spinney._estimator import support
from spinney._estimator.fit_inputs import FitInputs, RowInputs, validation_sets
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.target import read_one_value, read_weights
from spinney._model.boosting import FittedBoosting

RANKING_LOSSES = ("lambdamart", "pairwise")
METRICS = ("ndcg", "map", "mrr")
_LN2 = 0.6931471805599453
_LARGEST_GRADE = 60  # of exponential gains
_NO_TRUNCATION = 2**31


def read_lists(groups: ArrayLike | None, n_rows: int, name: str = "groups") -> NDArray[np.intp] | None:
    """Return the index of each row's list, from labels in any order; None if all rows are one list."""
    if groups is None:
        return None
    labels = argument_array(groups, name)
    if labels.shape != (n_rows,):
        if labels.ndim == 1 and labels.dtype.kind in "iu" and int(labels.sum()) == n_rows:
            raise ValueError(
                f"{name} has {len(labels)} numbers that add up to the table's {n_rows} rows: these are sizes of lists. "
                f"Pass a label for each row: numpy.repeat(numpy.arange({len(labels)}), sizes)."
            )
        raise ValueError(
            f"{name} has shape {labels.shape} and the table {n_rows} rows. Give the label of a list per row."
        )
    if labels.dtype.kind in "fO":
        missing = [i for i, label in enumerate(labels.tolist()) if is_missing(label)]
        if missing:
            raise ValueError(f"Row {missing[0]} of {name} has no label. Give the label of its list, or drop the row.")
    try:
        found, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise ValueError(f"{name} mixes labels of different types. Make them all numbers or all strings.") from None
    return np.asarray(codes, dtype=np.intp) if len(found) > 1 else None


def read_relevance(y: TableLike, n_rows: int, name: str = "y") -> Floats:
    """Return grades of relevance, at least 0."""
    grades = read_one_value(y, n_rows, "ranking", name)
    bad = np.flatnonzero(~(grades >= 0))
    if len(bad):
        raise ValueError(
            f"Grades of relevance are at least 0, larger for rows that belong further up. Row {bad[0]} of {name} has "
            f"{grades[bad[0]]:g}."
        )
    return grades


def gains_of(grades: Floats, gains: str, name: str = "y") -> Floats:
    """Return the gains of grades: 2 to the power of the grade, minus 1; or the grade itself."""
    if gains == "linear":
        return grades
    if len(grades) and grades.max() > _LARGEST_GRADE:
        raise ValueError(
            f"{name} reaches {grades.max():g}, and gains='exponential' doubles with each grade. Use gains='linear', or "
            "grades such as 0 to 4."
        )
    whole = np.floor(grades)
    return np.asarray(np.ldexp(exp((grades - whole) * _LN2), whole.astype(np.intc)) - 1)


def pair_weight(grades: Floats, weight: Floats, lists: NDArray[np.intp] | None) -> float:
    """Return the total weight of the rows, reduced for lists with few pairs of different grades.

    A list counts fully if two thirds of its pairs differ, as with three equally frequent grades.
    """
    codes = np.zeros(len(grades), dtype=np.intp) if lists is None else lists
    known, grade = np.unique(grades, return_inverse=True)
    cells, cell = np.unique(codes * len(known) + grade, return_inverse=True)
    of_cell = np.bincount(cell, weight)  # weight of the rows of a list with the same grade
    of_list: Floats = np.bincount(cells // len(known), of_cell).astype(np.float64)
    alike = np.bincount(cells // len(known), of_cell**2)
    used = of_list > 0
    differ = any_order_sum(of_list[used] - alike[used] / of_list[used])
    return float(min(any_order_sum(of_list), 1.5 * differ))


def ranked_lists(
    gains: Floats, weight: Floats | None, lists: NDArray[np.intp] | None, by_gain: bool, truncation: int | None
) -> _engine.RankedLists:
    """Return the lists of the rows with a positive weight, for the engine."""
    n = len(gains)
    used = np.arange(n) if weight is None else np.flatnonzero(weight > 0)
    codes = np.zeros(n, dtype=np.intp) if lists is None else lists
    order = used[np.argsort(codes[used], kind="stable")]
    ends = np.flatnonzero(np.diff(codes[order], append=-1)) + 1
    is_plain = weight is None or bool((weight[used] == 1).all())
    return _engine.RankedLists(
        rows=order.astype(np.uint32),
        ends=ends.astype(np.uint32),
        gain=np.ascontiguousarray(gains[order]),
        weight=None if weight is None or is_plain else np.ascontiguousarray(weight[order]),
        n_rows=n,
        by_gain=by_gain,
        truncation=min(truncation or _NO_TRUNCATION, _NO_TRUNCATION),
    )


class RankingLoss(LossOnRows):
    """A ranking loss, bound to rows."""

    def __init__(self, rows: LearningRows, by_gain: bool, gains: str, truncation: int | None, n_threads: int) -> None:
        self._options = by_gain, gains, truncation, n_threads
        self._lists = ranked_lists(gains_of(rows.target, gains), rows.weight, rows.extra, by_gain, truncation)
        self._n_threads = n_threads
        self._is_training = False
        self._last: tuple[Floats, Floats, Floats] | None = None  # scores with their gradients and hessians

    def held_out(self, rows: LearningRows) -> RankingLoss:
        """Return the loss bound to other lists."""
        return RankingLoss(rows, *self._options)

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradients and hessians, (1, n_rows)."""
        self._is_training = True
        if self._last is None or not np.array_equal(self._last[0], scores[0]):
            self.mean_loss(scores)
        assert self._last is not None
        return self._last[1:]

    def mean_loss(self, scores: Floats) -> float:
        """Return the mean loss; in training, the derivatives are stored for the next round."""
        if not self._is_training:
            return self._lists.mean_loss(scores[0], self._n_threads)
        gradients, hessians, loss = self._lists.gradients(scores[0], self._n_threads)
        self._last = scores[0], gradients, hessians
        return loss


# ---- metrics ----------------------------------------------------------------------------------------------


def read_metric(name: str) -> tuple[str, int | None]:
    """Return the name of a metric such as "ndcg@10" and its cutoff; None: no cutoff."""
    metric, at, cutoff = name.partition("@")
    if metric not in METRICS or (at and not (cutoff.isdecimal() and int(cutoff) > 0)):
        raise ValueError(f"{name!r} is not a ranking metric. Use 'ndcg', 'map' or 'mrr', or with a cutoff 'ndcg@10'.")
    return metric, int(cutoff) if at else None


def ranking_score(
    y: ArrayLike,
    scores: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    metric: str = "ndcg",
    gains: Literal["exponential", "linear"] = "exponential",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the quality of a ranking: the mean of a metric over the lists that have a relevant row.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Grades of relevance, at least 0.
    scores : array-like of shape (n_samples,)
        Scores of any model, larger for rows that belong further up.
    groups : array-like of shape (n_samples,), optional
        Label of the list that each row belongs to, in any order. None: all rows are one list.
    metric : str, default="ndcg"
        "ndcg": normalised discounted cumulative gain; tied rows share their ranks. "map": mean average precision of
        the relevant rows (grades above 0). "mrr": reciprocal rank of the first relevant row. A cutoff, as in
        "ndcg@10", restricts the metric to the top rows of a list. In "map" and "mrr", ties are ranked in the order of
        the table.
    gains : {"exponential", "linear"}, default="exponential"
        For "ndcg": the gain of a row of grade g, ``2**g - 1``, or g (as scikit-learn's ``ndcg_score``).
    sample_weight : array-like of shape (n_samples,), optional
        Rows of weight 0 are left out. With "ndcg", a row of weight w counts as w equal rows; in "map" and "mrr" all
        other weights count as 1.

    Returns
    -------
    float
        Between 0 and 1; 1 if no list has a relevant row.

    Examples
    --------
    >>> import spinney
    >>> round(spinney.ranking_score([2, 0, 1, 0, 1], [0.9, 0.8, 0.1, 0.2, 0.3], ["a", "a", "a", "b", "b"]), 3)
    0.982
    """
    values = np.ascontiguousarray(argument_array(scores, "scores"), dtype=np.float64)
    n = len(values)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("scores must be one finite number for each row.")
    if gains not in ("exponential", "linear"):
        raise ValueError(f"gains must be 'exponential' or 'linear', not {gains!r}.")
    grades, weight = read_relevance(y, n), read_weights(sample_weight, n)
    return ranking_metric(metric, gains)(grades, values, read_lists(groups, n), weight)


def ranking_metric(name: str, gains: str) -> Callable[[Floats, Floats, NDArray[np.intp] | None, Floats | None], float]:
    """Return a metric as a function of grades, scores, lists and weights."""
    metric, cutoff = read_metric(name)

    def ndcg(grades: Floats, scores: Floats, lists: NDArray[np.intp] | None, weight: Floats | None) -> float:
        ranked = ranked_lists(gains_of(grades, gains), weight, lists, True, cutoff)
        return 1 - ranked.mean_loss(scores, 0)

    def mean_over_lists(grades: Floats, scores: Floats, lists: NDArray[np.intp] | None, weight: Floats | None) -> float:
        codes = np.zeros(len(grades), dtype=np.intp) if lists is None else lists
        order = np.lexsort((-scores, codes))
        if weight is not None:
            order = order[weight[order] > 0]
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        relevance = np.split(grades[order] > 0, starts[1:])
        values = [_list_metric(metric, relevant, cutoff) for relevant in relevance if relevant.any()]
        return float(np.mean(values)) if values else 1.0

    return ndcg if metric == "ndcg" else mean_over_lists


def _list_metric(metric: str, relevant: NDArray[np.bool_], cutoff: int | None) -> float:
    """Return the average precision ("map") or reciprocal rank ("mrr") of a ranked list."""
    ranks = np.flatnonzero(relevant[:cutoff]) + 1
    if metric == "mrr":
        return 1.0 / float(ranks[0]) if len(ranks) else 0.0
    n = int(np.count_nonzero(relevant))
    return float((np.arange(1, len(ranks) + 1) / ranks).sum()) / min(n, cutoff or n)


@dataclass(frozen=True, eq=False)
class RankingTarget(BoostingTarget):
    """Grades of relevance of the rows of lists."""

    @classmethod
    def held_out_groups(cls, inputs: FitInputs) -> None:
        """Return None: groups are lists, which are needed whether rows are held out or not."""
        return

    @classmethod
    def check_request(cls, settings: BoostingSettings, inputs: FitInputs) -> None:
        """Refuse metrics that are not ranking metrics, and validation sets without groups."""
        for metric in settings.metrics:
            if isinstance(metric, str):
                read_metric(metric)
        if inputs.groups is not None and any(one.groups is None for one in inputs.validation):
            raise ValueError("groups and groups_val go together. Pass the list of each row of X_val as groups_val.")

    def read(self, y: TableLike, n_rows: int, name: str = "y", groups: ArrayLike | None = None) -> TargetRows:
        """Read grades, and the list of each row."""
        lists = read_lists(groups, n_rows, "groups" if name == "y" else "groups_val")
        return TargetRows(read_relevance(y, n_rows, name), lists)

    def row_groups(self, groups: ArrayLike | None, n_rows: int) -> NDArray[np.intp] | None:
        """Return the lists, which are held out whole."""
        return read_lists(groups, n_rows)

    def loss(self) -> Loss:
        """Return the loss; the initial score is 0, since a constant ranks nothing."""
        settings = self.settings
        options = settings.loss == "lambdamart", settings.gains, settings.truncation, settings.n_threads
        return Loss("outside", custom=lambda rows: RankingLoss(rows, *options))

    def total_weight(self, rows: LearningRows) -> float:
        """Return the total weight of the rows, or of the pairs that they form."""
        is_pairwise = self.settings.loss == "pairwise"
        return pair_weight(rows.target, rows.weights_view, rows.extra) if is_pairwise else rows.total_weight

    @staticmethod
    def predictions(scores: Floats, model: FittedBoosting, classes: Labels | None) -> NDArray[Any]:
        """Return the scores by which lists are sorted."""
        return scores[:, 0]

    def held_out_metric(
        self, metric: Metric, model: FittedBoosting, held_out: LearningRows, /, *others: object
    ) -> HeldOutMetric:
        """Return a ranking metric of the held-out lists as a function of scores; smaller is better."""
        named = ranking_metric(metric, self.settings.gains) if isinstance(metric, str) else None

        def evaluate(scores: Floats, current_model: object = None) -> float:
            column = np.ascontiguousarray(scores[:, 0])
            if named is not None:
                return -named(held_out.target, column, held_out.extra, held_out.weight)
            assert callable(metric)
            used = held_out.weights() > 0
            lists = np.zeros(len(used), dtype=np.intp) if held_out.extra is None else held_out.extra
            return -float(metric(held_out.target[used], column[used], lists[used]))

        return evaluate


@estimator
class GradientBoostingRanker(BaseBoosting):
    """Gradient boosting for ranking the rows of lists, such as the documents found for a query.

    `predict` returns scores, by which the rows of a list are sorted, largest first; scores of different lists are not
    comparable. Rows with equal scores share their ranks, so that the order of the table does not matter. The model is
    bit-identical for any number of threads and any kind of table.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> X = np.arange(40.0).reshape(20, 2) % 7
    >>> grades, queries = X[:, 0] // 3, np.repeat(["a", "b", "c", "d"], 5)
    >>> model = spinney.GradientBoostingRanker(n_estimators=10).fit(X, grades, groups=queries)
    >>> model.score(X, grades, groups=queries)
    1.0
    """

    loss: Literal["lambdamart", "pairwise"] = parameter(
        StrOptions(set(RANKING_LOSSES)), default="lambdamart", kw_only=False
    )
    truncation: int | None = parameter(FROM_ONE, None, default=30)
    gains: Literal["exponential", "linear"] = parameter(StrOptions({"exponential", "linear"}), default="exponential")

    _target_type = RankingTarget
    importances = new_data.importances
    predict_support = support.predict_support
    predict_or_abstain = support.predict_or_abstain

    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        time: ArrayLike | None = None,
        X_val: TableLike | dict[str, TableLike] | None = None,
        y_val: ArrayLike | dict[str, ArrayLike] | None = None,
        groups_val: ArrayLike | dict[str, ArrayLike] | None = None,
        sample_weight_val: ArrayLike | dict[str, ArrayLike] | None = None,
        offset_val: ArrayLike | dict[str, ArrayLike] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the boosted trees.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or a
            list of rows. Strings, categories, booleans and missing values need no encoding. It may also be a stream, a
            table that is read in chunks, such as that of `spinney.scan`: y, sample_weight, groups, offset and time may
            then be the names of its columns.
        y : array-like of shape (n_samples,)
            Grades of relevance, at least 0: larger for rows that belong further up in their list.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w equal rows of its list; weight 0 leaves the row out.
        groups : array-like of shape (n_samples,), optional
            Label of the list (the query) that each row belongs to, numbers or strings, in any order. Rows are compared
            within lists only, and early stopping holds out whole lists. None: all rows are one list.
        offset : array-like of shape (n_samples,), optional
            Initial scores that the trees add to. Pass the same to `predict`.
        time : array-like of shape (n_samples,), optional
            Times, as numbers or dates: the lists with the latest rows are held out for early stopping. With
            ``n_estimators="auto"`` a single booster is then fitted, because folds would hold out earlier lists too.
        X_val, y_val, groups_val, sample_weight_val, offset_val : as X, y, groups, sample_weight and offset, optional
            Validation lists, for early stopping and the learning curve. Several sets are dicts of these by name: the
            first stops the fit, and all are evaluated after each round (``history_``).
        checkpoint : str or path, optional
            A file to which the rounds are saved during the fit, and from which the same call resumes; see
            `GradientBoostingRegressor.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        validation = validation_sets(X_val, y_val, sample_weight_val, offset_val, groups_val)
        return self._fit_where_rows_are(
            FitInputs(X, y, sample_weight, offset, groups, time, validation=validation, checkpoint=checkpoint)
        )

    def score(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        metric: str = "ndcg",
        offset: ArrayLike | None = None,
    ) -> float:
        """Return the mean quality of the rankings of the lists.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their grades of relevance.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.
        groups : array-like of shape (n_samples,), optional
            Label of the list that each row belongs to. None: all rows are one list.
        metric : str, default="ndcg"
            "ndcg", "map" or "mrr", perhaps with a cutoff, as in "ndcg@10"; see `spinney.ranking_score`.
        offset : array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        float
            Between 0 and 1.
        """
        scores = np.ascontiguousarray(self.predict(X, offset=offset), dtype=np.float64)
        n = len(scores)
        evaluate = ranking_metric(metric, self.gains)
        return evaluate(read_relevance(y, n), scores, read_lists(groups, n), read_weights(sample_weight, n))

    def refit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        decay: float = 0.9,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Refit the values of all leaves to other lists, without changing the splits.

        The new value of a leaf is ``decay`` times its old value plus ``1 - decay`` times the value that a round of
        `fit` would compute from these rows, given the scores of the rounds that were refitted before it. A leaf that no
        row reaches keeps its value.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            New rows, with the columns of the fit.
        y : array-like of shape (n_samples,)
            Their grades of relevance.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.
        decay : float, default=0.9
            Weight of the old value of a leaf, from 0 to 1.
        offset : array-like of shape (n_samples,), optional
            As in `fit`.
        groups : array-like of shape (n_samples,), optional
            Label of the list that each row belongs to. None: all rows are one list.

        Returns
        -------
        estimator
            A fitted model with the new values; this one does not change. Its ``train_score_`` is the loss of the new
            rows after each round; it has no other learning curves.
        """
        return new_data.refit_leaves(self, RowInputs(X, y, sample_weight, offset, groups), decay)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags
