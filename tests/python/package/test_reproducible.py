"""Logarithms, exponentials and products that do not depend on the processor, against slow and exact references."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import random_array
from spinney._data import reproducible

EDGES = [0.0, -0.0, 5e-324, 2.2e-308, 1e-300, 0.5, 1 - 2**-53, 1.0, 2.0, 1e300, 1.7e308, math.inf]


def ulps(found, wanted):
    return np.abs(found - wanted) / np.spacing(np.maximum(np.abs(wanted), 2.3e-308))


def test_log_is_libms_but_for_the_last_bits():
    x = np.exp(np.linspace(-700, 700, 20001))
    assert ulps(reproducible.log(x), np.log(x)).max() < 3
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(reproducible.log(EDGES), np.log(EDGES), rtol=1e-15)
    assert np.isnan(reproducible.log([-1.0, np.nan])).all()
    assert reproducible.log2([0.25, 0.5, 1.0, 2.0]).tolist() == [-2.0, -1.0, 0.0, 1.0]
    assert reproducible.log(np.ones((2, 3))).tolist() == [[0.0] * 3] * 2


def test_exp_is_libms_but_for_the_last_bits():
    x = np.linspace(-740, 709.7, 20001)
    assert ulps(reproducible.exp(x), np.exp(x)).max() < 6
    found = reproducible.exp([-np.inf, -800.0, 0.0, 800.0, np.inf, np.nan, -math.log(2)])
    assert found[:5].tolist() == [0.0, 0.0, 1.0, np.inf, np.inf]
    assert np.isnan(found[5])
    assert found[6] == 0.5


def test_log_sum_exp_is_logaddexp():
    scores = np.random.default_rng(0).normal(size=(50, 4)) * 40
    np.testing.assert_allclose(reproducible.log_sum_exp(scores), np.logaddexp.reduce(scores, axis=1), rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_products_round_after_every_operation(seed):
    random = np.random.default_rng(seed)
    left, right = random.normal(size=(7, 4)), random.normal(size=(4, 4))
    wanted = [[0.0] * 4 for _ in range(7)]
    for i in range(7):
        for j in range(4):
            total = float(left[i, 0]) * float(right[0, j])
            for k in range(1, 4):
                total += float(left[i, k]) * float(right[k, j])
            wanted[i][j] = total
    assert reproducible.times(left, right).tolist() == wanted
    assert reproducible.times(left[0], right).tolist() == wanted[0]
    matrix = random_array((6, 9), density=0.4, rng=random, format="csr")
    vector = random.normal(size=9)
    totals = []
    for i in range(6):
        total = 0.0
        for at in range(matrix.indptr[i], matrix.indptr[i + 1]):
            total += float(matrix.data[at]) * float(vector[matrix.indices[at]])
        totals.append(total)
    assert reproducible.row_dots(matrix, vector).tolist() == totals
    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(left[:, 0].tolist(), left[:, 1].tolist(), strict=True))
    assert reproducible.dot(left[:, 0], left[:, 1]) == pytest.approx(float(exact), rel=1e-13)
