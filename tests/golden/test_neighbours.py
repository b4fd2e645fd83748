"""Neighbours of R's class::knn and knn.cv.

``knn/ID.json`` is one table, with results for several k. Where several training rows are as far away as the k-th, all
of them vote there (``use.all = TRUE``), which is ``ties="all"`` here; R takes squared distances within a part in 10,000
for equal, and draws lots between classes with equal votes.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import spinney

from golden.cases import read_schema, read_table

HERE = Path(__file__).parent
NAMES = sorted(path.stem.removeprefix("knn_") for path in (HERE / "knn").glob("*.json"))


def load(name):
    case = json.loads((HERE / "knn" / f"knn_{name}.json").read_text())
    schema = read_schema(case["data"])
    table = read_table(case["data"], schema)
    X = np.column_stack([table[column] for column in case["features"]]).astype(float)
    levels = schema[case["response"]]["levels"]
    y = np.array([case["ylevels"].index(levels[int(code) - 1]) for code in table[case["response"]]]) + 1
    if case["scaled"]:
        X = (X - case["center"]) / case["scale"]
    return case, X, y


def answers(case, X, y, k, ties):
    """Class shares of the test rows, and the labels of their columns."""
    if "knn.cv" not in case["call"]:
        train, test = (np.array(case[f"{part}_rows_1based"]) - 1 for part in ("train", "test"))
        model = spinney.KNeighborsClassifier(k, ties=ties, scale=None).fit(X[train], y[train])
        return model.predict_proba(X[test]), model.classes_
    shares = np.empty((len(y), 3))
    for row in range(len(y)):
        rest = np.arange(len(y)) != row
        model = spinney.KNeighborsClassifier(k, ties=ties, scale=None).fit(X[rest], y[rest])
        shares[row] = model.predict_proba(X[row : row + 1])[0]
    return shares, model.classes_


def almost_tied(case, X, k):
    """Test rows for which training rows are farther than the k-th, and R takes them for equally far."""
    train, test = (np.array(case[f"{part}_rows_1based"] or case["train_rows_1based"]) - 1 for part in ("train", "test"))
    for place, row in enumerate(test):
        squares = np.sort(((X[train[train != row]] - X[row]) ** 2).sum(axis=1))
        if ((squares > squares[k - 1] * (1 + 1e-9)) & (squares <= squares[k - 1] * (1 + 1.001e-4))).any():
            yield place + 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ties", ["first", "all"])
def test_it_is_knn_of_r_outside_its_ties(name, ties):
    case, X, y = load(name)
    n_compared = 0
    for result in case["results"][:: 3 if name == "iris_cv" else 1]:
        shares, classes = answers(case, X, y, result["k"], ties)
        excused = {*result["rows_vote_tie_1based"], *result["rows_seen_random_over_12_seeds_1based"]}
        ties_in_r = set(result["rows_distance_tie_at_k_1based"])
        excused |= ties_in_r if ties == "first" else ties_in_r & set(almost_tied(case, X, result["k"]))
        for row in set(range(len(shares))) - {number - 1 for number in excused}:
            n_compared += 1
            expected, share = result["class_index"][row], result["winning_vote_share"][row]
            if expected is None:  # doubt: fewer than 5 of 5 votes
                assert shares[row].max() < 1
            else:
                assert classes[shares[row].argmax()] == expected
                assert shares[row].max() == pytest.approx(share, abs=1e-11)
    n_rows = len(case["results"][:: 3 if name == "iris_cv" else 1]) * len(shares)
    assert n_compared > (0.9 if ties == "all" else 0.1 if name == "zoo" else 0.5) * n_rows


def test_leave_one_out_errors_are_those_of_knn_cv():
    case, X, y = load("iris_cv")
    values = [result["k"] for result in case["results"]]
    model = spinney.KNeighborsClassifier("cv", k_values=values, ties="all", scale=None).fit(X, y)
    for result, error in zip(case["results"], model.cv_results_["error"], strict=True):
        if not result["rows_vote_tie_1based"]:
            assert 1 - error == pytest.approx(result["accuracy"])
