"""What a comparison has found, as a table in words, a frame, and pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import Backend, elide, frame_of, one_line, plural
from spinney._data.types import Floats
from spinney._evaluate.board import align, p_text, with_error
from spinney._evaluate.problem import EstimatorLike
from spinney._evaluate.scoring import is_loss, shown_name, shown_value
from spinney._evaluate.statistics import Difference, corrected_error, paired_differences
from spinney.inspect.charts.evaluation import draw_comparison, draw_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models compared on the same folds; made by `compare`.

    Attributes
    ----------
    names : list of str
        The models, best first; those that failed come last.
    metrics : list of str
        Names of the scorers; the first decides which is best.
    scores : dict of str to ndarray of shape (n_models, n_folds)
        By metric, in the order of `names`; larger is always better, as scikit-learn's scorers have it.
    fit_seconds, predict_seconds : ndarray of shape (n_models, n_folds)
        Time of each fit, and of the first prediction of the rows held out.
    errors : dict of str to str
        Why a model has no score, or lacks one of them.
    best_ : str
        The model with the best mean of the first metric.
    reference_ : str
        The model that differences are taken to.
    estimators : dict of str to estimator
        The models, unfitted, as they were compared.
    unfinished : list of str
        Models that an interruption or the time allowed has cut off.
    curves : dict of str to ndarray of shape (n_sizes, n_folds)
        Learning curves: the first metric by the number of rows learned from.
    curve_rows : ndarray of shape (n_sizes,)
        These numbers.
    n_train, n_test : float
        Mean number of rows learned from, and judged by.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> found = spinney.compare(["tree", "linear"], X, y, repeats=1, baseline=False)
    >>> found.best_
    'linear'
    >>> found.differences()["tree"].mean < 0
    True
    """

    names: list[str]
    metrics: list[str]
    scores: dict[str, Floats]
    fit_seconds: Floats
    predict_seconds: Floats
    errors: dict[str, str]
    reference_: str
    estimators: dict[str, EstimatorLike]
    n_train: float
    n_test: float
    side_by_side: bool = False
    unfinished: list[str] = field(default_factory=list)
    curves: dict[str, Floats] = field(default_factory=dict)
    curve_rows: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @property
    def best_(self) -> str:
        """The model with the best mean of the first metric."""
        return self.names[0]

    @property
    def n_folds(self) -> int:
        """Number of folds, of all repeats together."""
        return int(self.fit_seconds.shape[1])

    def __len__(self) -> int:
        return len(self.names)

    def _metric(self, metric: str | None) -> str:
        if metric is None:
            return self.metrics[0]
        if metric not in self.scores:
            raise ValueError(f"{metric!r} was not compared. Metrics are {', '.join(self.metrics)}.")
        return metric

    @cached_property
    def _test_share(self) -> float:
        return self.n_test / self.n_train

    def mean(self, name: str, metric: str | None = None) -> tuple[float, float]:
        """Mean score of a model over the folds, and its corrected standard error.

        Parameters
        ----------
        name : str
            The model.
        metric : str, optional
            None: the first.

        Returns
        -------
        tuple of float
            NaN if the model failed.
        """
        values = self.scores[self._metric(metric)][self.names.index(name)]
        return float(values.mean()), corrected_error(values, self._test_share)

    def differences(self, reference: str | None = None, metric: str | None = None) -> dict[str, Difference]:
        """Tell what each model scores more than a reference, paired by fold, and the corrected resampled t-test of it.

        Parameters
        ----------
        reference : str, optional
            The model to compare with. None: that of the comparison, which is the best unless another was named.
        metric : str, optional
            None: the first.

        Returns
        -------
        dict of str to Difference
            By model: mean, error, low, high, p_value, p_holm.
        """
        reference = self.reference_ if reference is None else reference
        if reference not in self.names:
            raise ValueError(f"{reference!r} was not compared. Models are {', '.join(self.names)}.")
        scores = self.scores[self._metric(metric)]
        found = paired_differences(scores, self.names.index(reference), self._test_share)
        return dict(zip(self.names, found, strict=True))

    def to_frame(self, metric: str | None = None, backend: Backend | None = None) -> Any:
        """One row per model: means and standard errors, the difference to the reference and its p-values, times.

        Parameters
        ----------
        metric : str, optional
            That differences are of. None: the first.
        backend : {"pandas", "polars"}, optional
            Library of the frame. None: pandas if it is installed.

        Returns
        -------
        DataFrame
            Scores are as scikit-learn's scorers have them: larger is better.
        """
        gaps = self.differences(metric=metric)
        columns: dict[str, list[Any]] = {"model": list(self.names)}
        for name in self.metrics:
            columns[name] = [self.mean(model, name)[0] for model in self.names]
            columns[f"{name}_error"] = [self.mean(model, name)[1] for model in self.names]
        columns["difference"] = [gaps[name].mean for name in self.names]
        columns["difference_error"] = [gaps[name].error for name in self.names]
        columns["p_value"] = [gaps[name].p_value for name in self.names]
        columns["p_holm"] = [gaps[name].p_holm for name in self.names]
        columns["fit_seconds"] = _means(self.fit_seconds)
        columns["predict_seconds"] = _means(self.predict_seconds)
        columns["failed"] = [self.errors.get(name) for name in self.names]
        return frame_of(columns, backend)

    def plot(self, metric: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the paired differences to the reference, with 95% intervals, beside the mean scores.

        Parameters
        ----------
        metric : str, optional
            None: the first.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        return draw_comparison(self, self._metric(metric), ax)

    def plot_curves(self, *, ax: Axes | None = None) -> Axes:
        """Draw the learning curves: the first metric by the number of rows learned from.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        if not self.curves:
            raise ValueError("There are no learning curves. Call compare(..., learning_curves=True).")
        return draw_curves(self, ax)

    def __repr__(self) -> str:
        return f"<Comparison: {', '.join(self.names)}; best {self.best_}>"

    def __str__(self) -> str:
        metric = self.metrics[0]
        head = ["", *(shown_name(name) for name in self.metrics), f"− {elide(self.reference_, 24)}", "p", "p (Holm)"]
        head += ["fit s", "predict s"]
        rows = [head, *(self._line(name) for name in self.names)]
        title = (
            f"{plural(len(self), 'model')}, {plural(self.n_folds, 'fold')}, "
            f"{self.n_train:,.0f} rows to learn from and {self.n_test:,.0f} to judge by; "
            f"differences of {shown_name(metric)} to {self.reference_}"
        )
        notes = [f"{name}: {one_line(text)}" for name, text in self.errors.items()]
        if self.unfinished:
            notes.append(f"Not finished: {', '.join(self.unfinished)}")
        if self.side_by_side:
            notes.append("Times are of fits that ran side by side on one thread each.")
        return "\n".join([title, "", *align(rows), *([""] if notes else []), *notes])

    def _line(self, name: str) -> list[str]:
        gap, k = self.differences()[name], self.names.index(name)
        cells = [elide(one_line(name), 32)]
        for metric in self.metrics:
            mean, error = self.mean(name, metric)
            cells.append(with_error(shown_value(metric, mean), error))
        if name == self.reference_:
            cells += ["", "", ""]
        else:
            sign = -1 if is_loss(self.metrics[0]) else 1
            cells += [with_error(sign * gap.mean, gap.error), p_text(gap.p_value), p_text(gap.p_holm)]
        seconds = (_means(self.fit_seconds)[k], _means(self.predict_seconds)[k])
        return [*cells, *("–" if math.isnan(s) else f"{s:.3g}" for s in seconds)]


def _means(seconds: Floats) -> list[float]:
    return [float(np.nanmean(row)) if not np.isnan(row).all() else float("nan") for row in seconds]
