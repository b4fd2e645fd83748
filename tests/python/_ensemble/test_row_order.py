"""The folds of a stack are drawn by what rows hold, so that the order of the rows does not matter."""

import numpy as np
import pytest
import spinney
from numpy.testing import assert_array_equal

TREES = [("a", spinney.DecisionTreeClassifier(max_depth=3)), ("b", spinney.ExtraTreeClassifier(max_depth=4))]
FINAL = spinney.DecisionTreeClassifier(max_depth=2)


def table(n=120):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 4, n)])
    X[::10] = X[1::10]  # identical rows, of which some have another target or weight
    score = X[:, 0] + np.sin(2 * X[:, 1]) + rng.normal(size=n) * 0.5
    return X, np.digitize(score, [-0.5, 0.8]), rng.integers(1, 4, n) / 2, rng.permutation(n)


@pytest.mark.parametrize("labels", [np.array([0, 1, 2]), np.array(["low", "middle", "high"])])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_order_of_the_rows_does_not_matter(is_weighted, labels):
    X, codes, weight, order = table()
    y = labels[codes]
    one, other = ({"sample_weight": w} if is_weighted else {} for w in (weight, weight[order]))
    stack = spinney.StackingClassifier(TREES, final_estimator=FINAL, random_state=3)
    first = stack.fit(X, y, **one)
    probabilities, out_of_fold = first.predict_proba(X), first.oof_predictions_
    again = stack.fit(X[order], y[order], **other)
    assert_array_equal(again.predict_proba(X), probabilities)
    # of identical rows, which is in which fold is by position
    assert_array_equal(np.sort(again.oof_predictions_, axis=0), np.sort(out_of_fold, axis=0))
