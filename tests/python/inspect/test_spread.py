"""Fits with joblib on a Dask cluster: the same results as on one machine."""

import joblib
import numpy as np
import pandas as pd
import pytest
import spinney
from joblib.parallel import ThreadingBackend
from sklearn.model_selection import cross_validate
from spinney._estimator.parallel import is_distributed, run_distributed

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Dask and what it stands on
    pytest.mark.timeout(180),
]


class _OwnThreads(ThreadingBackend):
    """A custom joblib backend on this machine."""


def test_local_backends_are_not_distributed():
    assert not is_distributed()
    for backend in ("threading", "loky", "multiprocessing", "sequential"):
        with joblib.parallel_config(backend=backend):
            assert not is_distributed()
    with joblib.parallel_config(backend=_OwnThreads()):
        assert not is_distributed()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert run_distributed(abs, [-1, 2]) == [1, 2]


@pytest.mark.slow
def test_studies_comparisons_and_ensembles():
    random = np.random.RandomState(0)
    frame = pd.DataFrame(random.standard_normal((300, 3)), columns=list("abc"))
    frame["y"] = np.where(frame["a"] + random.standard_normal(300) > 0, "up", "down")
    X, y = frame[["a", "b", "c"]], frame["y"]
    forest = spinney.RandomForestClassifier(5, random_state=0)
    members = [("forest", forest), ("tree", spinney.DecisionTreeClassifier(max_depth=3))]
    stack = spinney.StackingClassifier(members, random_state=0)

    def work():
        study = spinney.study(frame, "y", models=["tree"], minutes=2, repeats=1, random_state=0)
        found = spinney.compare({"forest": forest, "tree": spinney.DecisionTreeClassifier()}, X, y, parallel=True)
        scores = cross_validate(forest, X, y, n_jobs=2)["test_score"]
        return study.predict_proba(X), found.scores, scores, stack.fit(X, y).predict_proba(X)

    here = work()
    with (
        distributed.LocalCluster(n_workers=2, processes=False, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert is_distributed()
        there = work()
    assert np.array_equal(here[0], there[0])
    assert all(np.array_equal(here[1][name], there[1][name]) for name in here[1])
    assert np.array_equal(here[2], there[2])
    assert np.array_equal(here[3], there[3])
