"""Sampled Shapley values of any model."""

from itertools import permutations

import numpy as np
import polars as pl
import pytest
from spinney._data.select import pick_table
from spinney.inspect.explain.sampled_shap import sampled_shap

RNG = np.random.default_rng(1)
TABLE = pl.DataFrame({"a": RNG.normal(size=30), "b": RNG.normal(size=30), "c": np.array(["x", "y"])[np.arange(30) % 2]})


def predict(X):
    frame = pl.DataFrame(X)
    a, b, c = (frame[name].to_numpy() for name in "abc")
    return np.column_stack([a * b + (c == "x"), 2 * a - b])


@pytest.mark.parametrize("kind", [lambda X: X, lambda X: X.to_pandas(), lambda X: X.to_dict(as_series=False)])
def test_values_add_up_and_are_exact_for_sums(kind):
    table = pick_table(kind(TABLE))
    rows, background = np.array([3, 4, 20]), np.arange(10, 18)
    base, values = sampled_shap(predict, table, rows, background)
    wanted = predict(TABLE)
    np.testing.assert_allclose(base, wanted[background].mean(axis=0))
    np.testing.assert_allclose(base + values.sum(axis=1), wanted[rows], atol=1e-12)
    a, b = TABLE["a"].to_numpy(), TABLE["b"].to_numpy()
    np.testing.assert_allclose(values[:, 0, 1], 2 * (a[rows] - a[background].mean()), atol=1e-12)
    np.testing.assert_allclose(values[:, 1, 1], b[background].mean() - b[rows], atol=1e-12)
    np.testing.assert_allclose(values[:, 2, 1], 0, atol=1e-12)


def test_values_approach_the_mean_over_all_orders():
    row, background = 5, np.arange(30)
    wanted, frame = np.zeros(3), TABLE
    for order in permutations(range(3)):
        for other in background:
            cells = list(frame.row(int(other)))
            before = predict(pl.DataFrame([cells], schema=frame.columns, orient="row"))[0, 0]
            for j in order:
                cells[j] = frame.row(row)[j]
                after = predict(pl.DataFrame([cells], schema=frame.columns, orient="row"))[0, 0]
                wanted[j] += (after - before) / 6 / len(background)
                before = after
    _, values = sampled_shap(predict, pick_table(frame), np.array([row]), np.tile(background, 20))
    np.testing.assert_allclose(values[0, :, 0], wanted, atol=0.06)
