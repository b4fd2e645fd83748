"""The bootstrap of any statistic: its standard error, its bias and its intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.stats import norm

from spinney._data.select import pick_table
from spinney._data.types import Floats
from spinney._estimator.parameters import require_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Method = Literal["percentile", "basic", "normal", "bca"]


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """A statistic and its values in bootstrap samples; returned by `bootstrap`.

    Attributes
    ----------
    estimate : float
        The statistic of all rows.
    replicates : ndarray of shape (n_repeats,)
        The statistic of each bootstrap sample.
    """

    estimate: float
    replicates: Floats = field(repr=False)
    _left_out: Callable[[], Floats] = field(repr=False)

    @property
    def standard_error(self) -> float:
        """Standard deviation of the replicates."""
        return float(self.replicates.std(ddof=1))

    @property
    def bias(self) -> float:
        """Mean of the replicates minus the estimate."""
        return float(self.replicates.mean()) - self.estimate

    def interval(self, level: float = 0.95, method: Method = "percentile") -> tuple[float, float]:
        """Return a confidence interval.

        Parameters
        ----------
        level : float, default=0.95
            Nominal coverage of the interval.
        method : {"percentile", "basic", "normal", "bca"}, default="percentile"
            "percentile": quantiles of the replicates. "basic": the same, reflected at the estimate. "normal": the
            estimate plus and minus a multiple of the standard error. "bca": quantiles corrected for bias and
            acceleration, for which the statistic is also computed without each row.

        Returns
        -------
        (float, float)
            Lower and upper end.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, not {level!r}.")
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        if method == "normal":
            low, high = self.estimate + norm.ppf(tails) * self.standard_error
        elif method == "basic":
            low, high = 2 * self.estimate - np.quantile(self.replicates, tails[::-1])
        elif method == "percentile":
            low, high = np.quantile(self.replicates, tails)
        elif method == "bca":
            low, high = np.quantile(self.replicates, self._corrected(tails))
        else:
            raise ValueError(f"method must be 'percentile', 'basic', 'normal' or 'bca', not {method!r}.")
        return float(low), float(high)

    def _corrected(self, tails: Floats) -> Floats:
        """Return levels corrected for bias and acceleration (Efron 1987)."""
        below = np.mean(self.replicates < self.estimate) + np.mean(self.replicates == self.estimate) / 2
        shift = norm.ppf(np.clip(below, 1e-6, 1 - 1e-6))
        gaps = self._left_out()
        gaps = gaps.mean() - gaps
        squares = float((gaps**2).sum())
        acceleration = float((gaps**3).sum()) / (6 * squares**1.5) if squares > 0 else 0.0
        moved = shift + norm.ppf(tails)
        return np.asarray(norm.cdf(shift + moved / (1 - acceleration * moved)))

    def plot(self, *, level: float = 0.95, method: Method = "percentile", ax: Axes | None = None) -> Axes:
        """Plot the replicates as a histogram, with the estimate and an interval.

        Parameters
        ----------
        level, method
            As in `interval`.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        from spinney.inspect.draw.teaching import draw_replicates

        return draw_replicates(self, self.interval(level, method), f"{level:.0%} interval, {method}", ax)


def bootstrap(
    statistic: Callable[..., float], *data: Any, n_repeats: int = 2000, random_state: int | None = None
) -> Bootstrap:
    """Estimate the standard error, bias and confidence intervals of a statistic from bootstrap samples.

    Parameters
    ----------
    statistic : callable
        ``statistic(*data)`` returns a number.
    *data : tables or arrays
        Data with the same number of rows, which are drawn together: one sample, or X and y.
    n_repeats : int, default=2000
        Bootstrap samples.
    random_state : int, optional
        Seed of the samples.

    Returns
    -------
    Bootstrap
        With `estimate`, `standard_error`, `bias`, `interval` and `plot`.

    References
    ----------
    B. Efron (1987). Better bootstrap confidence intervals. Journal of the American Statistical Association 82, 171-185.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.datasets import load_batting
    >>> from spinney.teaching import bootstrap
    >>> first, rest = load_batting()
    >>> found = bootstrap(lambda x, y: np.corrcoef(x, y)[0, 1], first, rest, random_state=0)
    >>> round(found.estimate, 2), round(found.standard_error, 2)
    (0.35, 0.28)
    """
    require_whole("n_repeats", n_repeats, 2)
    columns = [np.asarray(part) if np.ndim(part) == 1 else pick_table(part) for part in data]
    sizes = {len(part) if isinstance(part, np.ndarray) else part.n_rows for part in columns}
    if len(sizes) != 1 or min(sizes) < 2:
        raise ValueError(f"The data must have the same number of rows, at least 2; they have {sorted(sizes)}.")
    (n,) = sizes

    def value(rows: Any) -> float:
        return float(statistic(*(part[rows] if isinstance(part, np.ndarray) else part.take(rows) for part in columns)))

    everything, rng = np.arange(n), np.random.default_rng(random_state)
    replicates = np.array([value(rng.integers(n, size=n)) for _ in range(n_repeats)])

    def left_out() -> Floats:
        return np.array([value(np.delete(everything, i)) for i in range(n)])

    return Bootstrap(value(everything), replicates, left_out)
