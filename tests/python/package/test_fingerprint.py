"""One hash identifies equal models: for any number of threads, any library, and after a file."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import spinney
from oracle.saved import through_bytes
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RANDOM.normal(size=200), "b": RANDOM.normal(size=200), "c": RANDOM.choice(["x", "y"], 200)})
FRAME.loc[::9, "a"] = np.nan
Y = np.nan_to_num(FRAME["a"]) * 2 + (FRAME["c"] == "x") + RANDOM.normal(size=200) / 4
LABELS = np.digitize(Y, [0, 1])
MODELS = {
    "tree": spinney.DecisionTreeRegressor(),
    "classes": spinney.DecisionTreeClassifier(max_depth=4),
    "random tree": spinney.ExtraTreeClassifier(random_state=1),
    "forest": spinney.RandomForestClassifier(6, random_state=1),
    "extra trees": spinney.ExtraTreesRegressor(6, random_state=1),
    "oblique": spinney.RandomForestRegressor(6, oblique=8, random_state=1),
    "isolation": spinney.IsolationForest(n_estimators=6, random_state=1),
    "embedding": spinney.RandomTreesEmbedding(n_estimators=6, random_state=1),
    "boosting": spinney.GradientBoostingClassifier(n_estimators=3),
    "bagging": spinney.BaggingRegressor(n_estimators=4, max_features=2, random_state=1),
}


def fitted(name, table=FRAME, **options):
    model = copy.deepcopy(MODELS[name]).set_params(**options)
    return model.fit(table, LABELS if hasattr(model, "predict_proba") else Y)


@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_same_for_any_number_of_threads_and_library_and_after_a_file(name):
    model = fitted(name)
    wanted = model.fingerprint()
    assert len(wanted) == 64
    assert set(wanted) <= set("0123456789abcdef")
    for table, n_jobs in ((FRAME, 3), (pl.DataFrame(FRAME), 1), (pa.table(FRAME), 2)):
        assert fitted(name, table, n_jobs=n_jobs).fingerprint() == wanted
    assert through_bytes(model).fingerprint() == wanted
    assert pickle.loads(pickle.dumps(model)).fingerprint() == wanted


@pytest.mark.parametrize("name", MODELS)
def test_another_model_has_another(name):
    other = FRAME.copy()
    other["b"], other["a"] = FRAME["a"], FRAME["b"]
    assert fitted(name, other).fingerprint() != fitted(name).fingerprint()
    with pytest.raises(NotFittedError):
        MODELS[name].fingerprint()


def test_costs_and_combinations_count():
    plain = spinney.DecisionTreeClassifier(max_depth=1, random_state=0)
    dear = copy.deepcopy(plain).set_params(cost_matrix=[[0, 1, 9], [1, 0, 1], [1, 1, 0]])
    assert plain.fit(FRAME, LABELS).fingerprint() != dear.fit(FRAME, LABELS).fingerprint()
    forest = fitted("oblique")
    changed = copy.deepcopy(forest)
    changed.schema_.pool.coefficients[0, 0] += 1
    assert changed.fingerprint() != forest.fingerprint()


def test_members_of_other_libraries_have_none():
    bagging = spinney.BaggingClassifier(KNeighborsClassifier(3), 3).fit(FRAME[["b"]], LABELS)
    with pytest.raises(TypeError, match=r"Members of the type KNeighborsClassifier have no fingerprint"):
        bagging.fingerprint()
