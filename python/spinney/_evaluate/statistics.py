"""Means over folds and paired differences, with standard errors for overlapping training sets; results as text."""

from __future__ import annotations

import math
from dataclasses import dataclass

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


def two_sided(mean: float, error: float, n: int) -> float:
    """Return the two-sided p-value of a mean, by Student's t with n - 1 degrees of freedom."""
    from scipy.stats import t

    if n < 2 or np.isnan(mean) or np.isnan(error):
        return float("nan")
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * t.sf(abs(mean / error), n - 1))


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
        Of the corrected resampled t-test, and corrected for the number of models by Holm.
    """

    mean: float
    error: float
    low: float
    high: float
    p_value: float
    p_holm: float


def paired_differences(scores: Floats, reference: int, test_ratio: float) -> list[Difference]:
    """Return the differences of each model to a reference, paired by fold.

    Parameters
    ----------
    scores : ndarray of shape (n_models, n_folds)
        NaN for models without scores.
    reference : int
    test_ratio : float
        Held-out rows of a fold over training rows.

    Returns
    -------
    list of Difference
        0 for the reference itself, with p-values NaN.
    """
    from scipy.stats import t

    n = scores.shape[1]
    gaps = scores - scores[reference]
    means = [float(gap.mean()) for gap in gaps]
    errors = [corrected_error(gap, test_ratio) for gap in gaps]
    p_values = [float("nan") if k == reference else two_sided(means[k], errors[k], n) for k in range(len(scores))]
    reach = float(t.ppf(0.975, n - 1)) if n > 1 else float("nan")
    return [
        Difference(mean, error, mean - reach * error, mean + reach * error, p, corrected)
        for mean, error, p, corrected in zip(means, errors, p_values, holm(p_values), strict=True)
    ]


def with_error(value: float, error: float) -> str:
    """Return a mean with its standard error as text, to two digits of the error."""
    if math.isnan(value):
        return "–"
    if math.isnan(error) or error <= 1e-9 * abs(value):
        return f"{value:.4g}"
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
