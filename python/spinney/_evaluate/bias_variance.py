"""Decomposition of the error of a learner into noise, bias and variance over training samples.

Vocabulary. A *repeat* draws a training sample and fits every learner to it. A *test row* is predicted in every repeat,
or, with a bootstrap of a table, in the repeats whose sample lacks it. The *main prediction* of a row is the mean of
the predictions over the repeats for squared loss, and the most frequent class for 0-1 loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from spinney._data.display import Backend, ShownAsTable, align, elide, fixed, frame_of, one_line, plural
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._ensemble.members import random_state_names, set_random_states
from spinney._estimator.held_out import row_arguments
from spinney._estimator.parallel import count_threads, in_order
from spinney._evaluate import bias_variance_samples as samples
from spinney._evaluate.problem import EstimatorLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LARGEST_SEED = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Decomposition:
    """Components of the expected error of one learner, averaged over test rows.

    Attributes
    ----------
    error : float
        Expected loss: the sum of noise_effect (0 if the truth is unknown), bias and variance.
    noise : float or None
        Bayes error, the lowest possible loss; None if the truth is unknown.
    noise_effect : float or None
        Contribution of the noise to the error: the noise itself for squared loss; less for 0-1 loss, where a wrong
        prediction may be correct by chance.
    bias : float
        Loss of the main prediction relative to the best one: squared bias, or fraction of rows whose main class is
        wrong. If the truth is unknown, relative to the observed target, so that it includes the noise.
    variance : float
        Contribution of the variation around the main prediction. For 0-1 loss the net variance, unbiased - biased.
    variance_unbiased, variance_biased : float or None
        0-1 loss only. Variation increases the error of rows whose main class is correct, and decreases it for others.
    n_members : int or None
        Number of members, if the learner averages any.
    member_variance : float or None
        Variance of one member's predictions, squared loss.
    correlation : float or None
        Mean correlation ρ of two members' predictions over training samples. With σ² = member_variance, the variance of
        the mean of B members is ρσ² + (1 - ρ)σ²/B.
    """

    error: float
    noise: float | None
    noise_effect: float | None
    bias: float
    variance: float
    variance_unbiased: float | None = None
    variance_biased: float | None = None
    n_members: int | None = None
    member_variance: float | None = None
    correlation: float | None = None

    def variance_with(self, n_members: int | float) -> float:
        """Return the variance that the mean of another number of members would have: ρσ² + (1 - ρ)σ²/B.

        Parameters
        ----------
        n_members : int or float
            B; ``float("inf")`` gives the limit ρσ².

        Returns
        -------
        float
            For squared loss.
        """
        if self.correlation is None or self.member_variance is None:
            raise ValueError("The learner is not an average of members, so there is no number of members to change.")
        shared = self.correlation * self.member_variance
        return shared + (self.member_variance - shared) / n_members


@dataclass(frozen=True, eq=False)
class BiasVariance(ShownAsTable):
    """Bias-variance decomposition of learners; returned by `bias_variance`.

    Attributes
    ----------
    parts : dict from str to Decomposition
        The decomposition of each learner, by its name, with the attributes `error`, `noise`, `bias` and `variance`;
        ``result["name"]`` returns the entry of that name.
    loss : {"squared", "zero_one"}
        The loss that is decomposed.
    n_repeats : int
        Number of training sets.
    n_rows : int
        Number of test rows.
    varied : tuple of (str, list) or None
        The parameter that was varied, and its values; see `vary` of `bias_variance`.

    Examples
    --------
    >>> import spinney
    >>> source = spinney.datasets.ThresholdClasses()
    >>> tree = spinney.DecisionTreeClassifier()
    >>> found = spinney.bias_variance(tree, generator=source, n_train=30, n_repeats=20, random_state=0)
    >>> found.loss
    'zero_one'
    >>> list(found.parts)
    ['DecisionTreeClassifier']
    """

    parts: dict[str, Decomposition]
    loss: str
    n_repeats: int
    n_rows: int
    varied: tuple[str, list[Any]] | None = None

    def __getitem__(self, name: str) -> Decomposition:
        return self.parts[name]

    def __len__(self) -> int:
        return len(self.parts)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the parts as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per learner; NaN for components that do not apply.
        """
        columns: dict[str, list[Any]] = {"learner": list(self.parts)}
        for field in fields(Decomposition):
            values = [getattr(part, field.name) for part in self.parts.values()]
            if field.name != "n_members":
                values = [np.nan if value is None else value for value in values]
            if any(value is not None and value == value for value in values):
                columns[field.name] = values
        return frame_of(columns, backend)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw noise, bias and variance: a stacked bar for each learner or, with `vary`, curves.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        from spinney.inspect.draw.curves import draw_parts
        from spinney.inspect.draw.errors import draw_trade_off

        return draw_parts(self, ax) if self.varied is None else draw_trade_off(self, ax)

    def __repr__(self) -> str:
        return f"<BiasVariance: {plural(len(self), 'learner')}, {plural(self.n_repeats, 'training set')}>"

    def __str__(self) -> str:
        what = {"squared": "squared loss", "zero_one": "0-1 loss"}[self.loss]
        has_noise = any(part.noise is not None for part in self.parts.values())
        noise, bias, variance = ("noise", "bias²", "variance")
        if self.loss == "zero_one":
            noise, bias, variance = ("net noise", "bias", "net variance")
        head = ["", "error", *([noise, bias] if has_noise else [f"{bias} + noise"]), variance]
        head += ["unbiased", "biased"] if self.loss == "zero_one" else []
        has_members = any(part.correlation is not None for part in self.parts.values())
        head += ["correlation"] if has_members else []
        rows = [head, *(self._line(name, has_noise, has_members) for name in self.parts)]
        title = f"{what}, {plural(self.n_repeats, 'training set')}, {plural(self.n_rows, 'test row')}"
        return "\n".join([title, "", *align(rows)])

    def _line(self, name: str, has_noise: bool, has_members: bool) -> list[str]:
        part = self.parts[name]
        numbers = [part.error, *([part.noise_effect] if has_noise else []), part.bias, part.variance]
        if self.loss == "zero_one":
            numbers += [part.variance_unbiased, part.variance_biased]
        largest = max(max(abs(part.error), abs(part.bias)) for part in self.parts.values())
        decimals = 3 if self.loss == "zero_one" or largest == 0 else max(0, 3 - math.floor(math.log10(largest)))
        texts = ["" if value is None else fixed(value, decimals) for value in numbers]
        if has_members:
            texts.append("" if part.correlation is None else f"{part.correlation:.2f}")
        return [elide(one_line(name), 40), *texts]


def bias_variance(
    estimator: samples.Learners,
    X: TableLike = None,
    y: ColumnLike = None,
    *,
    vary: Mapping[str, Iterable[Any]] | None = None,
    groups: ColumnLike = None,
    time: ColumnLike = None,
    generator: samples.Generator | None = None,
    truth: samples.Truth | None = None,
    n_train: int = 100,
    n_test: int = 1000,
    n_repeats: int = 100,
    loss: Literal["squared", "zero_one"] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> BiasVariance:
    """Decompose the expected error of learners into noise, bias and variance.

    Training samples come from a generator, or are bootstrap samples of a table. In the second case each row is
    evaluated in the repeats whose sample does not contain it; with `time`, the latest rows are evaluated in all
    repeats. All learners get the same samples.

    Noise is separated from bias only if the truth is known, by `truth` or a method of `generator`. Otherwise the bias
    is relative to the observed targets, and includes the noise.

    *Squared loss*: error = noise + bias² + variance at each row. All three estimates are unbiased, so that the bias² of
    a learner without bias may come out slightly negative. Classifiers are evaluated by their probabilities, summed over
    classes (the Brier score).

    *0-1 loss* (Domingos 2000): the main prediction of a row is its most frequent class over the repeats, and its bias
    is 1 if that is not the truly most probable class. On unbiased rows, repeats that predict another class increase the
    error; on biased rows, repeats that predict the most probable class decrease it. The net variance is the increase
    minus the decrease.

    For learners whose prediction is the mean over `estimators_`, the result includes the correlation of the members'
    predictions, which limits how much averaging can reduce the variance.

    Parameters
    ----------
    estimator : estimator or dict from str to estimator
        Learners to evaluate.
    X, y : table and array-like, optional
        Rows to draw bootstrap samples from.
    vary : dict from the name of a parameter to its values, optional
        Evaluate one estimator with each value, such as ``{"max_depth": [1, 2, 4, 8]}``; `plot` then draws bias and
        variance as curves.
    groups : array-like of shape (n_samples,), optional
        Rows with the same label are drawn together or left out together. Learners of spinney that hold out rows
        themselves also hold these rows out together; copies of a row are always held out together.
    time : array-like of shape (n_samples,), optional
        Times of the rows, numbers or dates. The latest fifth of the rows are test rows, and samples are drawn from the
        earlier ones. Learners of spinney that hold rows out take the latest rows of a sample.
    generator : callable, optional
        Used instead of `X` and `y`: ``generator(rng, n)`` returns X and y of n rows, drawn with a
        `numpy.random.Generator`. It may have a method ``truth(X)`` that returns the mean of y, or the class
        probabilities in the order of the sorted labels.
    truth : callable, optional
        A function with the role of the generator's method ``truth``, also for `X` and `y`. None: the method, if there
        is one; otherwise the noise is part of the bias.
    n_train, n_test : int, default=100 and 1000
        Number of rows of each training set, and of test rows, drawn from a generator.
    n_repeats : int, default=100
        Number of training sets.
    loss : {"squared", "zero_one"}, optional
        None: 0-1 loss for classifiers, squared loss for regressors.
    random_state : int, RandomState or None, default=None
        Seed of the samples and of the learners' random states.
    n_jobs : int, optional
        Threads; None: all cores the process may use. The result is the same for any number.

    Returns
    -------
    BiasVariance
        Prints as text; has `to_frame()` and `plot()`.

    References
    ----------
    P. Domingos (2000). A unified bias-variance decomposition and its applications. ICML, 231-238.

    T. Hastie, R. Tibshirani and J. Friedman (2009). The Elements of Statistical Learning, sections 7.3 and 15.2.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> def wave(rng, n):
    ...     x = rng.uniform(0, 6, (n, 1))
    ...     return x, np.sin(x[:, 0]) + rng.normal(0, 0.3, n)
    >>> learners = {"stump": spinney.DecisionTreeRegressor(max_depth=1), "deep tree": spinney.DecisionTreeRegressor()}
    >>> truth = lambda X: np.sin(X[:, 0])
    >>> print(spinney.bias_variance(learners, generator=wave, truth=truth, n_train=50, random_state=0))
    squared loss, 100 training sets, 1,000 test rows
    <BLANKLINE>
                error   noise   bias²  variance
    stump      0.1922  0.0930  0.0618    0.0374
    deep tree  0.1888  0.0930  0.0000    0.0958
    """
    varied = None if vary is None else _read_vary(vary)
    learners = samples.read_estimators(estimator if varied is None else _variants(estimator, varied))
    used_loss = _read_loss(loss, learners)
    for name, number in (("n_train", n_train), ("n_test", n_test), ("n_repeats", n_repeats)):
        least = 2 if name == "n_repeats" else 1
        if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, not {number!r}.")
    seed = int(check_random_state(random_state).randint(_LARGEST_SEED))
    has_classes = all(is_classifier(learner) for learner in learners.values())
    if X is None and (groups is not None or time is not None):
        name = "time" if groups is None else "groups"
        raise ValueError(f"{name} requires X and y, not a generator. Leave it out.")
    if (generator is None) == (X is None):
        raise ValueError("Pass either a generator, or X and y, as the source of training samples.")
    if generator is not None:
        source = samples.generated_source(generator, truth, n_train, n_test, seed, has_classes)
    else:
        source = samples.resampled_source(X, y, groups, time, truth, has_classes)
    n_threads = count_threads(n_jobs, n_repeats)
    found = {name: _Repeats(source, used_loss) for name in learners}

    def repeat(k: int) -> tuple[NDArray[np.intp], dict[str, tuple[Floats, Floats | None]]]:
        rng = np.random.default_rng([seed, k])
        sample = source.draw(rng)
        predicted = {}
        for name, learner in learners.items():
            fitted = _seeded(learner, int(rng.integers(_LARGEST_SEED)))
            fitted.fit(sample.X, sample.y, **row_arguments(fitted, sample.groups, sample.time))
            predicted[name] = source.evaluate(fitted, sample.test, used_loss)
        return sample.test, predicted

    for rows, predicted in in_order(repeat, n_repeats, n_threads):
        for name, (whole, by_member) in predicted.items():
            found[name].add(rows, whole, by_member)
    parts = {name: one.decomposed() for name, one in found.items()}
    return BiasVariance(parts, used_loss, n_repeats, int(next(iter(found.values())).is_evaluated.sum()), varied)


def _read_vary(vary: Mapping[str, Iterable[Any]]) -> tuple[str, list[Any]]:
    if len(vary) != 1:
        raise ValueError(f"vary needs one parameter with its values, not {len(vary)}.")
    ((name, tried),) = vary.items()
    return name, list(tried)


def _variants(estimator: samples.Learners, varied: tuple[str, list[Any]]) -> dict[str, Any]:
    """Return clones of an estimator with each value of a parameter."""
    if isinstance(estimator, Mapping):
        raise ValueError("vary needs one estimator, not a dict of them.")
    name, values = varied
    return {f"{name}={one_line(value)}": clone(estimator).set_params(**{name: value}) for value in values}


def _read_loss(loss: str | None, learners: Mapping[str, EstimatorLike]) -> str:
    kinds = {is_classifier(learner) for learner in learners.values()}
    if len(kinds) > 1:
        raise ValueError("Some learners are classifiers and some are not. Pass learners of one kind.")
    if loss is None:
        return "zero_one" if kinds == {True} else "squared"
    if loss not in ("squared", "zero_one"):
        raise ValueError(f"loss must be 'squared' or 'zero_one', not {loss!r}.")
    if loss == "zero_one" and kinds == {False}:
        raise ValueError("loss='zero_one' counts wrong classes, but the learners are not classifiers. Use 'squared'.")
    return loss


def _seeded(learner: EstimatorLike, seed: int) -> Any:
    fresh = clone(learner)
    set_random_states(fresh, random_state_names(fresh), seed)
    if getattr(fresh, "n_jobs", 0) is None:
        fresh.set_params(n_jobs=1)  # repeats run in parallel
    return fresh


# ---- sums over the repeats -------------------------------------------------------------------------------------------


class _Moments:
    """Running mean and variance of the values of each row (Welford), exact for constant values."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.n = np.zeros((shape[0], 1))
        self.mean, self._squares = np.zeros(shape), np.zeros(shape)

    def add(self, rows: NDArray[np.intp], values: Floats) -> None:
        self.n[rows] += 1
        step = values - self.mean[rows]
        self.mean[rows] += step / self.n[rows]
        self._squares[rows] += step * (values - self.mean[rows])

    def variance(self, rows: NDArray[np.bool_]) -> Floats:
        """Return the unbiased variance of rows with two values or more."""
        return np.asarray(self._squares[rows] / (self.n[rows] - 1))


class _Repeats:
    """Predictions of the repeats, summed by test row: as much memory for a thousand of them as for ten."""

    def __init__(self, source: samples.Source, loss: str) -> None:
        self._source, self._loss = source, loss
        shape = source.observed.shape
        self._predicted, self._member_means = _Moments(shape), _Moments(shape)
        self._total = np.zeros(shape)  # for classes, counts: means would lose ties
        self._within = np.zeros(shape[0])
        self._n_members: set[int] = set()

    def add(self, rows: NDArray[np.intp], predicted: Floats, by_member: Floats | None) -> None:
        """Add one repeat: predictions (rows, values) and those of members (members, rows, values)."""
        if not len(rows):
            return
        self._predicted.add(rows, predicted)
        self._total[rows] += predicted
        self._n_members.add(0 if by_member is None else len(by_member))
        if by_member is not None:
            self._within[rows] += by_member.var(axis=0, ddof=1).sum(axis=1)
            self._member_means.add(rows, by_member.mean(axis=0))

    @property
    def is_evaluated(self) -> NDArray[np.bool_]:
        """Rows with enough predictions for a variance."""
        return np.asarray(self._predicted.n[:, 0] >= 2)

    def decomposed(self) -> Decomposition:
        """Decompose the error."""
        rows = self.is_evaluated
        if not rows.any():
            raise ValueError("No row was evaluated twice. Raise n_repeats.")
        observed, truth = self._source.observed[rows], self._source.truth
        best = observed if truth is None else truth[rows]
        parts = self._squared(rows, observed, best) if self._loss == "squared" else self._zero_one(rows, best)
        if truth is None:
            parts = replace(parts, noise=None, noise_effect=None)
        return replace(parts, **self._about_members(rows))

    def _squared(self, rows: NDArray[np.bool_], observed: Floats, best: Floats) -> Decomposition:
        variance = self._predicted.variance(rows)
        # corrected for the variance of the mean
        bias = _mean((self._predicted.mean[rows] - best) ** 2 - variance / self._predicted.n[rows])
        noise = _mean((observed - best) ** 2 if self._source.classes is None else best * (1 - best))
        return Decomposition(noise + bias + _mean(variance), noise, noise, bias, _mean(variance))

    def _zero_one(self, rows: NDArray[np.bool_], chance: Floats) -> Decomposition:
        frequency = self._total[rows] / self._predicted.n[rows]  # of each predicted class over the repeats
        best, every = chance.argmax(axis=1), np.arange(len(frequency))
        is_biased = frequency.argmax(axis=1) != best
        error = 1 - (frequency * chance).sum(axis=1)
        against_best = 1 - frequency[every, best]
        unbiased = np.where(is_biased, 0.0, against_best)
        biased = np.where(is_biased, frequency[every, best], 0.0)
        return Decomposition(
            error=float(error.mean()),
            noise=float((1 - chance.max(axis=1)).mean()),
            noise_effect=float((error - against_best).mean()),
            bias=float(is_biased.mean()),
            variance=float((unbiased - biased).mean()),
            variance_unbiased=float(unbiased.mean()),
            variance_biased=float(biased.mean()),
        )

    def _about_members(self, rows: NDArray[np.bool_]) -> dict[str, Any]:
        """Decompose the variance of a mean of B members: V = ρσ² + (1 - ρ)σ²/B, where (1 - ρ)σ² is within repeats."""
        if len(self._n_members) != 1 or 0 in self._n_members:
            return {}
        (n_members,) = self._n_members
        of_mean = _mean(self._member_means.variance(rows))
        within = float((self._within[rows] / self._predicted.n[rows, 0]).mean())
        one, shared = of_mean + within * (1 - 1 / n_members), of_mean - within / n_members
        return {"n_members": n_members, "member_variance": one, "correlation": shared / one if one > 0 else None}


def _mean(values: Floats) -> float:
    """Return the mean over rows of sums over outputs."""
    return float(values.sum(axis=1).mean())
