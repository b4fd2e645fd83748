"""Means over folds and paired differences, with standard errors for overlapping training sets; results as text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from spinney._data.display import fixed
from spinney._data.types import Floats


def corrected_error(values: Floats, test_ratio: float) -> float:
    """Return the standard error of the mean over folds, corrected for overlapping training sets.

    Nadeau and Bengio's variance is (1 / n + n_test / n_train) times that of the values.

    Parameters
    ----------
    values : ndarray of shape (n_folds,)
    test_ratio : float
        n_test / n_train.

    Returns
    -------
    float
        NaN for a single fold.
    """
    n = len(values)
    if n < 2:
        return float("nan")
    return float(np.sqrt((1 / n + test_ratio) * values.var(ddof=1)))


def _two_sided(gaps: Floats, test_ratio: float) -> list[float]:
    """Return the two-sided p-value of each row's mean, by Student's t with n - 1 degrees of freedom; NaN: unknown."""
    from scipy.stats import t

    means, errors = gaps.mean(axis=1), np.array([corrected_error(gap, test_ratio) for gap in gaps])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(means == 0, 0.0, np.abs(means) / errors)  # errors of 0: p is 1 or 0
    ratios[np.isnan(errors)] = np.nan
    return [float(p) for p in 2 * t.sf(ratios, gaps.shape[1] - 1)]


def holm(p_values: list[float]) -> list[float]:
    """Return p-values with Holm's correction for several tests; NaN is no test."""
    known = sorted((p, k) for k, p in enumerate(p_values) if not np.isnan(p))
    corrected = [float("nan")] * len(p_values)
    largest = 0.0
    for rank, (p, k) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        corrected[k] = largest
    return corrected


@dataclass(frozen=True)
class Difference:
    """Difference of a model to the reference.

    Attributes
    ----------
    mean, error : float
        Mean over the folds, and its corrected standard error.
    low, high : float
        95% confidence interval of the mean difference, not corrected for the number of models.
    p_value, p_holm : float
        P-value of the corrected resampled t-test, and the same with Holm's correction: for the comparisons with a
        reference that was named in advance, or, if the reference is the best model, for all pairs of models.
    """

    mean: float
    error: float
    low: float
    high: float
    p_value: float
    p_holm: float


def paired_differences(scores: Floats, reference: int, test_ratio: float, *, is_best: bool = False) -> list[Difference]:
    """Return the differences of each model to a reference, paired by fold.

    Parameters
    ----------
    scores : ndarray of shape (n_models, n_folds)
        NaN for models without scores.
    reference : int
    test_ratio : float
        Held-out rows of a fold over training rows.
    is_best : bool, default=False
        Whether these scores selected the reference, which may be best by chance: Holm's correction is then over all
        pairs of models, among which are the comparisons with whichever model comes out best.

    Returns
    -------
    list of Difference
        0 for the reference itself, with p-values NaN.
    """
    from scipy.stats import t

    n_models, n = scores.shape
    others = [k for k in range(n_models) if k != reference]
    compared = [(reference, k) for k in others]
    pairs = compared + [pair for pair in combinations(others, 2) if is_best]
    p_values = _two_sided(np.array([scores[k] - scores[j] for j, k in pairs]).reshape(len(pairs), n), test_ratio)
    p_of = dict(zip(others, p_values, strict=False)) | {reference: float("nan")}
    holm_of = dict(zip(others, holm(p_values), strict=False)) | {reference: float("nan")}
    reach = float(t.ppf(0.975, n - 1)) if n > 1 else float("nan")
    differences = []
    for k in range(n_models):
        gap = scores[k] - scores[reference]
        mean, error = float(gap.mean()), corrected_error(gap, test_ratio)
        differences.append(Difference(mean, error, mean - reach * error, mean + reach * error, p_of[k], holm_of[k]))
    return differences


def with_error(value: float, error: float) -> str:
    """Return a mean with its standard error as text, to two digits of the error."""
    if math.isnan(value):
        return "–"
    if math.isnan(error) or error <= 1e-9 * abs(value):
        return f"{value + 0.0:.4g}"  # not -0
    decimals = min(8, max(0, 1 - math.floor(math.log10(error))))
    return f"{fixed(value, decimals)} ± {fixed(error, decimals)}"


def p_text(p: float) -> str:
    """Return a p-value as text."""
    if math.isnan(p):
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def finite_or_none(value: object) -> object:
    """Return nested dicts, lists and tuples with None for non-finite numbers, as JSON requires."""
    if isinstance(value, dict):
        return {key: finite_or_none(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_or_none(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
