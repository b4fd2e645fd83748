"""AdaBoost of R's adabag, round by round.

``adaboost/ID.json`` is one call without any draws: weights go into rpart, whose trees minimise the Gini index. The
coefficient of adabag is α of AdaBoost.M1 (Freund), half of it (Breiman) or that of SAMME (Zhu). Where splits
tie, the rounds' errors agree all the same.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import spinney

from golden.cases import read_schema, read_table

HERE = Path(__file__).parent
NAMES = sorted(path.stem.removeprefix("ada_") for path in (HERE / "adaboost").glob("*.json"))
ALGORITHM = {"Freund": ("m1", 1.0), "Breiman": ("m1", 0.5), "Zhu": ("samme", 1.0)}


def load(name):
    case = json.loads((HERE / "adaboost" / f"ada_{name}.json").read_text())
    schema = read_schema(case["data"])
    table = pd.DataFrame(read_table(case["data"], schema))
    if case["rows_used_1based"] is not None:
        table = table.iloc[np.array(case["rows_used_1based"]) - 1]
    levels = schema[case["response"]]["levels"]
    y = np.array([case["ylevels"].index(levels[int(code) - 1]) for code in table[case["response"]]])
    rounds = pd.DataFrame(case["rounds"]["rows"], columns=case["rounds"]["columns"])
    return case, table[case["predictors"]], y, rounds


def fit(case, X, y):
    given = case["params"]
    algorithm, rate = ALGORITHM[given["coeflearn"]]
    member = spinney.DecisionTreeClassifier(
        max_depth=given["maxdepth"], min_samples_split=given["minsplit"], min_samples_leaf=given["minbucket"]
    )
    return spinney.AdaBoostClassifier(member, given["mfinal"], algorithm=algorithm, learning_rate=rate).fit(X, y)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_adabag_round_by_round(name):
    case, X, y, rounds = load(name)
    model = fit(case, X, y)
    assert model.n_iter_ == len(rounds)
    np.testing.assert_allclose(model.estimator_errors_, rounds["weighted_error"], rtol=1e-9)
    np.testing.assert_allclose(model.estimator_weights_, rounds["alpha"], rtol=1e-9)
    if case["params"]["maxdepth"] == 1:
        for t in range(model.n_iter_):
            tree, row = model.estimators_[t].tree_, rounds.iloc[t]
            if row["near_tie"]:
                continue
            assert case["predictors"][tree.feature[0]] == row["var"]
            assert tree.threshold[0] == pytest.approx(row["cut"], rel=1e-12)
            sides = [case["ylevels"][code] for code in tree.majority[1:, 0]]
            assert sides == [row["left_class"], row["right_class"]][:: -1 if row["ncat"] == 1 else 1]
    errors = np.array(case["ensemble_train_error_by_round"])
    np.testing.assert_allclose(model.train_score_, errors, atol=1e-9)
