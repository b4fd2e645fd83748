"""A day of work compressed into short cycles: fits, files, streams, interrupts, errors, and clocks that jump.

After each cycle no file, descriptor or thread is left that was not there before, and the memory of the process does not
grow. Models of the same task stay bit-identical over all cycles.
"""

import gc
import io
import os
import pickle
import random
import signal
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import spinney

RNG = np.random.default_rng(4)
X = RNG.normal(size=(200, 4))
VALUES = X[:, 0] + RNG.normal(size=200) / 3
CLASSES = np.digitize(VALUES, [-0.5, 0.5])
FEW = {"n_estimators": 5, "random_state": 0}
TASKS = [
    (spinney.DecisionTreeClassifier, {}, CLASSES),
    (spinney.RandomForestClassifier, FEW, CLASSES),
    (spinney.ExtraTreesRegressor, FEW, VALUES),
    (spinney.GradientBoostingRegressor, FEW, VALUES),
    (spinney.GradientBoostingClassifier, FEW | {"subsample": 0.5, "early_stopping": True}, CLASSES),
    (spinney.SVC, {}, CLASSES),
    (spinney.LinearClassifier, {}, CLASSES),
    (spinney.KNeighborsRegressor, {}, VALUES),
    (spinney.AdaBoostClassifier, FEW, CLASSES),
    (spinney.StackingRegressor, {"estimators": ["tree", "linear"], "cv": 2, "random_state": 0}, VALUES),
]
LONG = [  # fits that last longer than the time until they are interrupted
    (spinney.RandomForestRegressor, {"n_estimators": 10_000, "random_state": 0}, VALUES),
    (spinney.GradientBoostingClassifier, {"n_estimators": 10_000, "random_state": 0}, CLASSES),
    (spinney.BaggingRegressor, {"n_estimators": 10_000, "random_state": 0}, VALUES),
    (spinney.FunctionalBoostingRegressor, {"n_estimators": 10_000, "subsample": 0.6, "random_state": 0}, VALUES),
    (spinney.SVR, {"C": 1e6, "gamma": 50.0, "cv": 50, "max_iter": 10_000_000}, VALUES),
]
WARM_UP = 100  # cycles that fill caches and the pool of threads
PATIENCE = 5.0  # seconds that threads of an interrupted fit have to end
MORE_MEMORY = 150e6  # bytes after any number of cycles


KINDS = ["files", "files", "files", "interrupts", "errors", "streams", "streams", "clocks"]


class StopError(Exception):
    """Ends a fit or a stream from within."""


def made(kind, parameters, n_jobs=None):
    more = {} if n_jobs is None or "n_jobs" not in kind._get_param_names() else {"n_jobs": n_jobs}
    return kind(**parameters, **more)


class Cycles:
    """The kinds of cycles, in one folder."""

    def __init__(self, folder):
        self.folder, self.fingerprints = folder, {}

    def files(self, rng):
        """Fit, save, load in one of several ways, predict, and refuse a file that was cut off."""
        which = rng.randrange(len(TASKS))
        kind, parameters, y = TASKS[which]
        model = made(kind, parameters, rng.choice([None, 1, 2])).fit(X, y)
        assert self.fingerprints.setdefault(which, model.fingerprint()) == model.fingerprint(), kind.__name__
        path = self.folder / "model.spinney"
        for _ in range(rng.choice([1, 1, 3])):
            model.save(path)
        data = path.read_bytes()
        load = rng.choice([spinney.load, spinney.load_predictor, lambda _: pickle.loads(pickle.dumps(model))])
        np.testing.assert_array_equal(load(path).predict(X[:9]), model.predict(X[:9]))
        path.unlink()
        try:
            spinney.load(io.BytesIO(data[: rng.randrange(len(data))]))
        except spinney.ModelFileError:
            return
        raise AssertionError("a file that was cut off was loaded")

    def interrupts(self, rng):
        """Interrupt a fit as Ctrl-C does; nothing is fitted, and the next fit is undisturbed."""
        kind, parameters, y = rng.choice(LONG)
        model, before = made(kind, parameters, rng.choice([1, 2])), None
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.03))
            try:
                model.fit(X, y)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            before = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
        assert not before, f"{kind.__name__} is fitted in part: {before}"
        if rng.random() < 0.3:
            self.files(rng)

    def errors(self, rng):
        """End a fit by an error of a callback after some rounds, and resume it from its checkpoint."""
        kind, parameters, y = TASKS[rng.choice([3, 4])]
        last, path = rng.randrange(1, 5), self.folder / "rounds"

        def callback(progress):
            if progress["round"] == last:
                raise StopError

        with suppress(StopError):
            made(kind, parameters | {"callbacks": callback}).fit(X, y, checkpoint=path)
        model = made(kind, parameters).fit(X, y, checkpoint=path)
        assert self.fingerprints.setdefault(kind, model.fingerprint()) == model.fingerprint(), "resumed otherwise"

    def streams(self, rng):
        """Fit to batches that are written to a temporary file; the stream may fail, or change while it is read."""
        cuts = [0, *sorted(rng.sample(range(1, 200), 2)), 200]
        fault = rng.choice([None, None, "fails", "changes"])
        n_reads = 0

        def batches():
            nonlocal n_reads
            n_reads += 1
            for k, (first, last) in enumerate(pairwise(cuts)):
                if fault == "fails" and k == 1:
                    raise StopError
                end = last - 1 if fault == "changes" and n_reads > 1 else last
                yield {f"x{j}": X[first:end, j] for j in range(4)} | {"y": VALUES[first:end]}

        kind = rng.choice([spinney.GradientBoostingRegressor, spinney.RandomForestRegressor])
        model = made(kind, FEW | {"max_bins": 64})
        error = None
        try:
            model.fit(spinney.scan(batches, folder=str(self.folder)), "y")
        except (StopError, ValueError, RuntimeError) as found:
            error = found
        changed = fault == "changes" and n_reads > 1
        assert (error is not None) == (fault == "fails" or changed), f"{fault} after {n_reads} reads: {error}"
        if error is None:
            key = kind, "stream"
            assert self.fingerprints.setdefault(key, model.fingerprint()) == model.fingerprint(), "another model"
        elif changed:
            assert len(str(error)) > 30, f"not a sentence: {error!r}"

    def clocks(self, rng):
        """Compare models within a time limit while clocks jump: a result, or a sentence on the limit."""
        models = {"tree": spinney.DecisionTreeClassifier(max_depth=2), "linear": spinney.LinearClassifier()}
        size = 10.0 ** rng.uniform(-3, 6)
        with jumping_clocks(rng, size, rng.choice([["time"], ["monotonic"], ["time", "monotonic", "perf_counter"]])):
            try:
                text = str(spinney.compare(models, X, CLASSES, cv=2, minutes=1.0))
            except TimeoutError as error:
                text = str(error)
        assert "tree" in text or "linear" in text or "No model was finished within the time limit" in text, text


@contextmanager
def jumping_clocks(rng, size, names):
    """Let clocks jump forwards and backwards by up to some seconds, now and then."""
    real = {name: getattr(time, name) for name in names}

    def jumping(clock):
        offset = 0.0

        def now():
            nonlocal offset
            if rng.random() < 0.1:
                offset = rng.uniform(-size, size)
            return clock() + offset

        return now

    try:
        for name, clock in real.items():
            setattr(time, name, jumping(clock))
        yield
    finally:
        for name, clock in real.items():
            setattr(time, name, clock)


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Area:
    """One seed: one cycle, in a process that goes through thousands of them."""

    def __init__(self):
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        folder = Path(self._folder.name)
        tempfile.tempdir = str(folder)
        self.cycles = Cycles(folder)
        for seed in range(WARM_UP):
            self._run(seed)
        gc.collect()
        gc.freeze()  # what is there now need not be looked at again
        self.before, self.memory = self._left_behind(), resident()

    def _left_behind(self):
        """What a cycle may leave: descriptors, threads, and files in the folder of temporary files."""
        return {
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": len(os.listdir("/proc/self/task")),
            "threads of Python": threading.active_count(),
            "files": sorted(os.listdir(self._folder.name)),
        }

    def _more(self):
        """What there is more of than before the first cycle, as (before, now)."""
        now = self._left_behind()
        return {name: (self.before[name], left) for name, left in now.items() if left > self.before[name]}

    def _run(self, seed):
        rng = random.Random(seed)
        kind = rng.choice(KINDS)
        getattr(self.cycles, kind)(rng)
        return kind

    def outcome(self, seed):
        kind = self._run(seed)
        until = time.monotonic() + PATIENCE
        while (more := self._more()) and time.monotonic() < until:  # in reference cycles, or about to end
            gc.collect()
            time.sleep(0.02)
        if more:
            self.before = self._left_behind()  # of which the next cycle knows nothing
            raise AssertionError(f"{kind} left something behind: {more}")
        grown = resident() - self.memory
        assert grown < MORE_MEMORY, f"{grown / 1e6:.0f} MB more memory than after the first {WARM_UP} cycles"
        return kind
