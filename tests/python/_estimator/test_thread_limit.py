"""Where the system starts no more threads, a fit ends with a MemoryError that names the reason."""

import threading

import numpy as np
import pytest
import spinney

X = np.random.default_rng(0).normal(size=(60, 3))
MODELS = [
    lambda: spinney.BaggingRegressor(n_estimators=4, n_jobs=2),
    lambda: spinney.StackingRegressor(estimators=["tree", "linear"], cv=3, n_jobs=2),
]


@pytest.fixture
def no_threads(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


@pytest.mark.parametrize("make", MODELS)
def test_a_fit_ends_with_a_memory_error(make, no_threads):
    with pytest.raises(MemoryError, match="started no more threads"):
        make().fit(X, X[:, 0])
