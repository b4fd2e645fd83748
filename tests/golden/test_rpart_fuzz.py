"""``DecisionTree….rpart(…)`` against its reference implementation on random tables.

Weights have many values, so that splits tie only where they separate the rows alike; the rounding of the reference,
which is rpart's, then decides, and the estimator must decide the same. Weights are multiples of a power of two, so that
the agreement of surrogates is summed exactly in any order.
"""

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.rpart_layout import describe as describe_reference
from oracle.rpart_methods import exposure
from spinney._estimator.exposure import hazard_exposure
from sweep import examples

from golden.cases import Case
from golden.compare import compare
from golden.estimator import describe, fit_case
from golden.test_rpart_reference import fit_case as fit_reference

KINDS = ("many", "few", "logical", "factor", "ordered", "infinite")
CONTROLS = {
    "minsplit": st.sampled_from([2, 4, 10, 20]),
    "minbucket": st.sampled_from([1, 2, 3, 7]),
    "cp": st.sampled_from([0.013, 0.003, 1e-8, -1.0, 0.1]),
    "maxcompete": st.integers(0, 3),
    "maxsurrogate": st.integers(0, 3),
    "usesurrogate": st.integers(0, 2),
    "surrogatestyle": st.integers(0, 1),
    "maxdepth": st.sampled_from([1, 2, 5, 30]),
}


@st.composite
def cases(draw, method):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([12, 30, 60, 120]))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    gaps = draw(st.sampled_from([0.0, 0.05, 0.3]))
    columns, levels = zip(*(draw_column(random, kind, n, gaps) for kind in kinds), strict=True)
    params = draw(st.fixed_dictionaries(CONTROLS))
    params["cost"] = random.uniform(0.5, 2, len(kinds)).tolist() if draw(st.booleans()) else None
    weights = random.integers(100, 3000, n) / 1024
    if draw(st.booleans()):
        weights[random.random(n) < 0.2] = 0
    signal = sum(np.nan_to_num(column, posinf=0, neginf=0) for column in columns[:2])
    y, n_classes = RESPONSES[method](draw, random, signal, params)
    y[n // 2 :][random.random(n - n // 2) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    folds = random.permutation(np.arange(n) % draw(st.integers(2, 5))) + draw(st.integers(-1, 1))
    use_folds = draw(st.booleans()) and every_fold_leaves_rows(columns, y, weights, folds)
    return Case(
        name="random",
        method=method,
        names=[f"x{j}" for j in range(len(kinds))],
        columns=list(columns),
        kinds=["numeric" if kind in ("many", "few", "infinite") else kind for kind in kinds],
        levels=list(levels),
        y=y,
        y_names=["a", "b", "c"][: y.reshape(n, -1).shape[1]],
        class_levels=[f"class {k}" for k in range(n_classes)] or None,
        params=params,
        xgroups=folds if use_folds else None,
        weights=weights,
        newdata=[new_values(random, *column) for column in zip(columns, levels, strict=True)],
        expected={},
    )


def draw_column(random, kind, n, gaps):
    """Values, NaN where missing, and the names of levels, in an order that is not the alphabet's."""
    levels = None
    if kind in ("factor", "ordered"):
        n_levels = int(random.integers(1, 8))
        x = random.integers(1, n_levels + 1, n).astype(float)
        levels = random.permutation([f"level {k}" for k in range(n_levels + random.integers(0, 3))]).tolist()
    elif kind in ("few", "logical"):
        x = random.integers(0, 2 if kind == "logical" else random.integers(1, 8), n).astype(float)
    else:
        x = random.normal(size=n)
        if kind == "infinite":
            x[random.random(n) < 0.1] *= np.inf
    x[random.random(n) < gaps] = np.nan
    return x, levels


def new_values(random, column, levels, n=20):
    x = random.choice(column, n) if levels is None else random.integers(1, len(levels) + 1, n).astype(float)
    x[random.random(n) < 0.15] = np.nan
    return x


def draw_classes(draw, random, signal, params):
    k = draw(st.integers(2, 4))
    y = np.clip(np.round(signal + random.normal(size=len(signal))), 0, k - 1) + 1
    y[:k] = np.arange(1, k + 1)
    prior, loss = random.uniform(0.1, 1, k), random.uniform(0.3, 4, (k, k)) * (1 - np.eye(k))
    params["prior"] = (prior / prior.sum()).tolist() if draw(st.booleans()) else None
    params["loss"] = loss.tolist() if draw(st.booleans()) else None
    params["split"] = draw(st.sampled_from(["gini", "information"]))
    return y, k


def draw_values(draw, random, signal, params):
    return (signal + random.normal(size=len(signal))) * draw(st.sampled_from([1.0, 0.0])), 0


def draw_counts(draw, random, signal, params):
    events = random.poisson(np.exp(np.clip(signal, -2, 2))).astype(float)
    params["shrink"] = draw(st.sampled_from([None, 0.0, 0.5, 2.0]))
    params["error_method"] = draw(st.sampled_from(["deviance", "sqrt"]))
    return (np.column_stack([random.uniform(0.5, 4, len(signal)), events]) if draw(st.booleans()) else events), 0


def draw_survival(draw, random, signal, params):
    time = random.exponential(np.exp(-np.clip(signal, -2, 2))) + 0.01
    if draw(st.booleans()):
        time = np.ceil(3 * time)
    status = (random.random(len(signal)) < 0.6).astype(float)
    params |= {"shrink": None, "error_method": draw(st.sampled_from(["deviance", "sqrt"]))}
    y = [time, status]
    return np.column_stack([time * random.uniform(0, 0.8, len(signal)), *y] if draw(st.booleans()) else y), 0


RESPONSES = {"class": draw_classes, "anova": draw_values, "poisson": draw_counts, "exp": draw_survival}


def every_fold_leaves_rows(columns, y, weights, folds):
    used = (weights > 0) & complete_rows(columns, y)
    return all((used & (folds != fold)).any() for fold in folds)


def complete_rows(columns, y):
    return ~np.isnan(np.column_stack(columns)).all(axis=1) & ~np.isnan(y.reshape(len(y), -1)).any(axis=1)


def same_exposure(stop, status, start, weights):
    """Give the reference exactly the library's exposure, so that ties are broken alike."""
    start = np.zeros_like(stop) if start is None else start
    found = hazard_exposure(start, stop, status, weights)
    np.testing.assert_allclose(found, exposure(stop, status, start, weights), rtol=1e-9)
    return found


def reference_result(case, quirks):
    """Return the result of the reference implementation in the layout of the reference files."""
    with patch("oracle.rpart.exposure", same_exposure):
        fitted = fit_reference(case, quirks)
    cps = fitted.cptable[:, 0]
    between = [(high + low) / 2 for high, low in pairwise(cps) if high > low + 1e-6]
    result = describe_reference(fitted, case.names, case.newdata, between[:2])
    tables = {key: table(result[key]) for key in ("frame", "splits")}
    return result | tables | {"cptable": {"rows": result["cptable"]}, "near_ties": None, "xval_check": None}


def table(rows):
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return {"columns": keys, "rows": [[row.get(key) for key in keys] for row in rows]} if rows else None


def has_classes_and_events(case):
    """Dropping rows may have dropped all there is to learn from."""
    known = complete_rows(case.columns, case.y)
    if case.method == "class":
        return len(np.unique(case.y[known])) == len(case.class_levels) and (case.weights[known] > 0).any()
    events = case.y.reshape(len(case.y), -1)[:, -1] if case.method == "exp" else np.ones(len(case.y))
    return (case.weights * known * np.nan_to_num(events) > 0).any()


@pytest.mark.parametrize("method", RESPONSES)
@examples(8, derandomize=True)
@given(data=st.data(), quirks=st.booleans())
def test_estimator_repeats_reference(method, data, quirks):
    case = data.draw(cases(method).filter(has_classes_and_events))
    case.expected = reference_result(case, quirks)
    found = compare(case, describe(case, fit_case(case, quirks)))
    assert found.errors + found.excused == []
