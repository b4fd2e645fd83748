"""Lists of rows that are to be ranked: their labels, losses of their pairs, and metrics."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions

import spinney._engine as _engine
from spinney._boosting import other_rows
from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.evaluation import Judge, Labels
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss, LossOfRows
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
_ALL_PLACES = 2**31


def read_lists(groups: ArrayLike | None, n_rows: int, name: str = "groups") -> NDArray[np.intp] | None:
    """Return the number of each row's list, from labels in any order; None if all rows are one list."""
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
            raise ValueError(f"Row {missing[0]} of {name} has no label. Say which list it belongs to, or drop it.")
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
    """Gains of grades: 2 to the power of the grade, less 1; or the grade itself."""
    if gains == "linear":
        return grades
    if len(grades) and grades.max() > _LARGEST_GRADE:
        raise ValueError(
            f"{name} reaches {grades.max():g}, and gains='exponential' doubles with each grade. Use gains='linear', or "
            "grades such as 0 to 4."
        )
    whole = np.floor(grades)
    return np.asarray(np.ldexp(exp((grades - whole) * _LN2), whole.astype(np.intc)) - 1)


def weight_in_pairs(grades: Floats, weight: Floats, lists: NDArray[np.intp] | None) -> float:
    """Return the weight of the rows, less where few of their list are of another grade: those say less in pairs.

    A list counts whole from two thirds on of pairs that differ, as where three grades are equally frequent.
    """
    codes = np.zeros(len(grades), dtype=np.intp) if lists is None else lists
    known, grade = np.unique(grades, return_inverse=True)
    cells, cell = np.unique(codes * len(known) + grade, return_inverse=True)
    of_cell = np.bincount(cell, weight)  # of the rows of a list that have the same grade
    of_list: Floats = np.bincount(cells // len(known), of_cell).astype(np.float64)
    alike = np.bincount(cells // len(known), of_cell**2)
    used = of_list > 0
    differ = any_order_sum(of_list[used] - alike[used] / of_list[used])
    return float(min(any_order_sum(of_list), 1.5 * differ))


def engine_lists(
    gains: Floats, weight: Floats | None, lists: NDArray[np.intp] | None, by_gain: bool, truncation: int | None
) -> _engine.RankedLists:
    """Return the lists of the rows that have a weight."""
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
        truncation=min(truncation or _ALL_PLACES, _ALL_PLACES),
    )


class RankedRows(LossOfRows):
    """The loss of rows in lists."""

    def __init__(self, rows: LearningRows, by_gain: bool, gains: str, truncation: int | None, n_threads: int) -> None:
        self._given = by_gain, gains, truncation, n_threads
        found = gains_of(rows.target, gains)
        self._lists = engine_lists(found, rows.weight, rows.more, by_gain, truncation)
        self._n_threads = n_threads
        self._learns = False
        self._known: tuple[Floats, Floats, Floats] | None = None  # scores, gradients and hessians there

    def held_out(self, rows: LearningRows) -> RankedRows:
        """Return the loss of other lists."""
        return RankedRows(rows, *self._given)

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Gradients and second derivatives by row."""
        self._learns = True
        if self._known is None or not np.array_equal(self._known[0], scores[0]):
            self.mean_loss(scores)
        assert self._known is not None
        return self._known[1:]

    def mean_loss(self, scores: Floats) -> float:
        """Mean loss; the gradients that the next round asks for come with it."""
        if not self._learns:
            return self._lists.mean_loss(scores[0], self._n_threads)
        gradients, hessians, loss = self._lists.gradients(scores[0], self._n_threads)
        self._known = scores[0], gradients, hessians
        return loss


# ---- metrics ----------------------------------------------------------------------------------------------


def read_metric(name: str) -> tuple[str, int | None]:
    """Return a metric and how many places of a list it looks at; None: all. Such as "ndcg@10"."""
    word, at, places = name.partition("@")
    if word not in METRICS or (at and not (places.isdecimal() and int(places) > 0)):
        raise ValueError(
            f"{name!r} is no metric of lists. Use 'ndcg', 'map' or 'mrr', or with places, as in 'ndcg@10'."
        )
    return word, int(places) if at else None


def ranking_score(
    y: ArrayLike,
    scores: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    metric: str = "ndcg",
    gains: str = "exponential",
    sample_weight: ArrayLike | None = None,
) -> float:
    """How well scores rank the rows of each list, on average over the lists that have a relevant row.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Grades of relevance, at least 0.
    scores : array-like of shape (n_samples,)
        Larger for rows that belong further up, of any model.
    groups : array-like of shape (n_samples,), optional
        Label of the list that each row belongs to, in any order. None: all rows are one list.
    metric : str, default="ndcg"
        "ndcg": discounted gain over that of the best order; rows of equal scores share their places. "map": mean over
        relevant rows (grades above 0) of the share of relevant rows down to each. "mrr": 1 over the place of the first
        relevant row. With places that count, as in "ndcg@10", only the first so many of a list do. In "map" and "mrr"
        rows of equal scores are ranked in the order of the table.
    gains : {"exponential", "linear"}, default="exponential"
        Of "ndcg": what a row of grade g is worth, 2 to the power of g less 1, or g (as scikit-learn's ``ndcg_score``).
    sample_weight : array-like of shape (n_samples,), optional
        With "ndcg", a row of weight w takes w places of its list. Rows of weight 0 are left out.

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
    return metric_of_lists(metric, gains)(grades, values, read_lists(groups, n), weight)


def metric_of_lists(name: str, gains: str) -> Callable[[Floats, Floats, NDArray[np.intp] | None, Floats | None], float]:
    """Return a metric as a function of grades, scores, lists and weights."""
    word, places = read_metric(name)

    def of_gains(grades: Floats, scores: Floats, lists: NDArray[np.intp] | None, weight: Floats | None) -> float:
        ranked = engine_lists(gains_of(grades, gains), weight, lists, True, places)
        return 1 - ranked.mean_loss(scores, 0)

    def of_places(grades: Floats, scores: Floats, lists: NDArray[np.intp] | None, weight: Floats | None) -> float:
        codes = np.zeros(len(grades), dtype=np.intp) if lists is None else lists
        order = np.lexsort((-scores, codes))
        if weight is not None:
            order = order[weight[order] > 0]
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        parts = np.split(grades[order] > 0, starts[1:])
        found = [_of_list(word, part, places) for part in parts if part.any()]
        return float(np.mean(found)) if found else 1.0

    return of_gains if word == "ndcg" else of_places


def _of_list(word: str, relevant: NDArray[np.bool_], places: int | None) -> float:
    """Average precision, or one over the first relevant place, of a list as it is ranked."""
    hits = np.flatnonzero(relevant[:places]) + 1
    if word == "mrr":
        return 1.0 / float(hits[0]) if len(hits) else 0.0
    n = int(np.count_nonzero(relevant))
    return float((np.arange(1, len(hits) + 1) / hits).sum()) / min(n, places or n)


@dataclass(frozen=True, eq=False)
class RankingTarget(BoostingTarget):
    """Grades of relevance of the rows of lists."""

    @classmethod
    def held_out_together(cls, inputs: FitInputs) -> None:
        """Return None: groups are lists, which say what belongs together whether rows are held out or not."""
        return

    @classmethod
    def check_request(cls, settings: BoostingSettings, inputs: FitInputs) -> None:
        """Refuse metrics of other targets, and lists of rows that are given for some of the sets alone."""
        for metric in settings.metrics:
            if isinstance(metric, str):
                read_metric(metric)
        if inputs.groups is not None and any(one.groups is None for one in inputs.validation):
            raise ValueError("groups and groups_val go together. Say which list each row of X_val belongs to.")

    def read(self, y: TableLike, n_rows: int, name: str = "y", groups: ArrayLike | None = None) -> TargetRows:
        """Read grades, and the list of each row."""
        lists = read_lists(groups, n_rows, "groups" if name == "y" else "groups_val")
        return TargetRows(read_relevance(y, n_rows, name), lists)

    def row_groups(self, groups: ArrayLike | None, n_rows: int) -> NDArray[np.intp] | None:
        """Return the lists, which are held out whole."""
        return read_lists(groups, n_rows)

    def loss(self) -> Loss:
        """Return the loss; scores start at 0, since a constant ranks nothing."""
        settings = self.settings
        of_lists = settings.loss == "lambdamart", settings.gains, settings.truncation, settings.n_threads
        return Loss("outside", outside=lambda rows: RankedRows(rows, *of_lists))

    def total_weight(self, rows: LearningRows) -> float:
        """Total weight of the rows, or of the pairs that they form."""
        is_by_pairs = self.settings.loss == "pairwise"
        return weight_in_pairs(rows.target, rows.seen_weights, rows.more) if is_by_pairs else rows.total_weight

    @staticmethod
    def predictions(scores: Floats, model: FittedBoosting, classes: Labels | None) -> NDArray[Any]:
        """Scores by which lists are sorted."""
        return scores[:, 0]

    def judge(self, metric: Metric, model: FittedBoosting, held_out: LearningRows, /, *others: object) -> Judge:
        """Return a metric of the held-out lists, as a loss of scores."""
        of_lists = metric_of_lists(metric, self.settings.gains) if isinstance(metric, str) else None

        def judged(scores: Floats, so_far: object = None) -> float:
            found = np.ascontiguousarray(scores[:, 0])
            if of_lists is not None:
                return -of_lists(held_out.target, found, held_out.more, held_out.weight)
            assert callable(metric)
            used = held_out.weights() > 0
            lists = np.zeros(len(used), dtype=np.intp) if held_out.more is None else held_out.more
            return -float(metric(held_out.target[used], found[used], lists[used]))

        return judged


@estimator
class GradientBoostingRanker(BaseBoosting):
    """Gradient boosting that learns to rank the rows of lists, such as documents for a query.

    `predict` gives scores, by which the rows of a list are sorted, largest first; they say nothing across lists. Rows
    of equal scores share their places, so that the order of the table does not matter. The model is the same, bit for
    bit, for any number of threads and any kind of table.

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

    loss: str = parameter(StrOptions(set(RANKING_LOSSES)), default="lambdamart", kw_only=False)
    truncation: int | None = parameter(FROM_ONE, None, default=30)
    gains: str = parameter(StrOptions({"exponential", "linear"}), default="exponential")

    _target_type = RankingTarget
    importances = other_rows.importances
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
        """Boost.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are. Or a table that is
            read some rows at a time, as by `spinney.scan`: y, sample_weight, groups, offset and time may then be the
            names of its columns.
        y : array-like of shape (n_samples,)
            Grades of relevance, at least 0: larger for rows that belong further up in their list.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of rows: one of weight w stands for w equal rows, one below another in its list; weight 0 leaves
            the row out.
        groups : array-like of shape (n_samples,), optional
            Label of the list (the query) that each row belongs to, numbers or strings, in any order. Rows are compared
            within lists alone, and early stopping holds out whole lists. None: all rows are one list.
        offset : array-like of shape (n_samples,), optional
            Scores that the trees add to. Pass the same to `predict`.
        time : array-like of shape (n_samples,), optional
            Moments, numbers or dates: the latest lists are held out (early stopping), each with its latest row. With
            nothing set there is one booster then, as no fold but the last is later than all others.
        X_val, y_val, groups_val, sample_weight_val, offset_val : as X, y, groups, sample_weight and offset, optional
            Held-out lists, for early stopping and the learning curve. Several sets are dicts of these by name: the
            first stops the fit, all are judged after each round (``history_``).
        checkpoint : str or path, optional
            A file that keeps the rounds while they are done, from which the same call goes on; see
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
        """How well the rows of each list are ranked, on average over lists.

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
            "ndcg", "map" or "mrr", perhaps of the first places alone, as in "ndcg@10"; see `spinney.ranking_score`.
        offset : array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        float
            Between 0 and 1.
        """
        scores = np.ascontiguousarray(self.predict(X, offset=offset), dtype=np.float64)
        n = len(scores)
        judge = metric_of_lists(metric, self.gains)
        return judge(read_relevance(y, n), scores, read_lists(groups, n), read_weights(sample_weight, n))

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
        """Set the values of all leaves anew by other lists, and leave the splits as they are.

        Round by round: a leaf keeps `decay` of its value and takes the rest of the value that a round of `fit` would
        set it to by these rows, at the scores that the refitted rounds before have led to. A leaf that none of the
        rows reach stays as it is.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            New rows, with the columns of the fit.
        y : array-like of shape (n_samples,)
            Their grades of relevance.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.
        decay : float, default=0.9
            How much of its value a leaf keeps, from 0 to 1.
        offset : array-like of shape (n_samples,), optional
            As in `fit`.
        groups : array-like of shape (n_samples,), optional
            Label of the list that each row belongs to. None: all rows are one list.

        Returns
        -------
        estimator
            A fitted model with the new values; this one does not change. Its ``train_score_`` is the loss of the new
            rows after each round; other curves are those of the fit, and are gone.
        """
        return other_rows.refit_leaves(self, RowInputs(X, y, sample_weight, offset, groups), decay)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags
