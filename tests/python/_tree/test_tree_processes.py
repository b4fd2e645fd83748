"""Trees across processes: fork, Ctrl-C, instruction sets."""

import hashlib
import json
import os
import platform
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import spinney
from processes import run

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def table(n=6000, n_columns=10, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, n_columns))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=n)


def fingerprint(model):
    tree = model.tree_
    arrays = (tree.feature, tree.threshold, tree.value, tree.impurity, tree.children_right)
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def test_fit_fork_then_fit_and_predict_in_the_child():
    X, y = table()
    model = spinney.DecisionTreeRegressor(n_jobs=2).fit(X, y)
    expected = fingerprint(model), model.predict(X).tobytes()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            again = spinney.DecisionTreeRegressor(n_jobs=2).fit(X, y)
            same = (fingerprint(again), again.predict(X).tobytes()) == expected
            status = 0 if same and model.predict(X).tobytes() == expected[1] else 2
        finally:
            os._exit(status)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the forked child hangs")


LONG_FITS = """
import os, signal, sys, threading, time
import numpy as np, spinney
random = np.random.default_rng(0)
X = random.normal(size=(150_000, 40))
y = random.normal(size=150_000)
def interrupt():
    global sent
    sent = time.process_time()
    os.kill(os.getpid(), signal.SIGINT)
for criterion in sys.argv[1:]:
    model = spinney.DecisionTreeRegressor(criterion=criterion, n_jobs=2)
    timer = threading.Timer(0.4, interrupt)
    timer.start()
    try:
        model.fit(X, y)
        print("finished 0 True", flush=True)
    except KeyboardInterrupt:
        print("interrupted", time.process_time() - sent, hasattr(model, "tree_"), flush=True)
    timer.join()
"""


def test_ctrl_c_stops_a_fit_within_a_second_and_leaves_no_half_fitted_model():
    criteria = ("squared_error", "absolute_error")
    lines = run(LONG_FITS, *criteria).stdout.splitlines()
    assert len(lines) == len(criteria)
    for line in lines:
        word, worked, is_fitted = line.split()
        assert word == "interrupted"
        assert float(worked) < 2.0  # a second of each of two threads, whatever else the machine does
        assert is_fitted == "False"


def fingerprints():
    X, y = table(1200)
    classes = (y > 0).astype(int) + (y > 1)
    kinds = [spinney.DecisionTreeRegressor(criterion=c) for c in ("squared_error", "poisson", "absolute_error")]
    kinds += [spinney.DecisionTreeClassifier(criterion=c) for c in ("gini", "entropy", "misclassification", "chi2")]
    kinds += [spinney.DecisionTreeClassifier(max_bins=30), spinney.ExtraTreeClassifier(random_state=1)]
    return [
        fingerprint(model.fit(X, target))
        for model in kinds
        for target in ([abs(y).round(2)] if "Regressor" in type(model).__name__ else [classes, classes > 0])
    ]


@pytest.mark.parametrize("lower", ["base", pytest.param("avx2", marks=pytest.mark.slow)])
def test_results_are_bit_identical_for_every_instruction_set(lower):
    best = fingerprints()  # by the best set that the processor has
    assert len(best) == 15
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
    code += "import json, test_tree_processes; print(json.dumps(test_tree_processes.fingerprints()))"
    code += "; print(json.dumps(test_tree_processes.spinney._engine.instruction_set()))"
    found, used = run(code, SPINNEY_ISA=lower).stdout.splitlines()
    assert json.loads(found) == best
    assert json.loads(used) == lowest(lower, spinney._engine.instruction_set())


INSTRUCTION_SETS = ("base", "avx2", "avx512")  # each has what those before it have


def lowest(*names):
    return min(names, key=INSTRUCTION_SETS.index)


def offered():
    """The best instruction set of this processor, as reported by the operating system."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return "base"
    flags = set(Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split())
    if not {"avx2", "bmi2"} <= flags:
        return "base"
    return "avx512" if {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= flags else "avx2"


@pytest.mark.parametrize("asked", ["", *INSTRUCTION_SETS])
def test_the_instruction_set_is_the_best_there_is_up_to_the_one_asked_for(asked):
    code = "from spinney import _engine; print(_engine.instruction_set())"
    used = run(code, SPINNEY_ISA=asked).stdout.strip()
    assert used == lowest(asked or INSTRUCTION_SETS[-1], offered())


def test_an_unknown_instruction_set_is_refused_in_words():
    code = "import numpy as np, spinney\nX = np.arange(40.0).reshape(20, 2)\n"
    code += "for kind in ('DecisionTreeRegressor', 'RandomForestRegressor', 'GradientBoostingRegressor'):\n"
    code += "    try: getattr(spinney, kind)().fit(X, X[:, 0])\n    except ValueError as error: print(error)"
    message = "The environment variable SPINNEY_ISA is 'avx3'. Set it to 'base', 'avx2' or 'avx512', or not at all."
    assert run(code, SPINNEY_ISA="avx3").stdout.splitlines() == [message] * 3
