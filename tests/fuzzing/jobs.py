"""Disturb fits that write checkpoints: kill them at any moment, fill the disk, damage the file, interrupt them.

A fit that is started again ends with the model of an undisturbed one, bit for bit, or with a sentence, and leaves no
files behind.
"""

import os
import random
import resource
import signal
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import spinney

from fuzzing.damage import DAMAGES

TASKS = [
    ("GradientBoostingRegressor", {}),
    ("GradientBoostingRegressor", {"subsample": 0.6, "max_features": 0.5}),
    ("GradientBoostingRegressor", {"loss": "absolute_error", "early_stopping": True}),
    ("GradientBoostingClassifier", {"growth": "depth", "early_stopping": True}),
]
UNTIL_KILLED = [0.02, 0.1, 0.5]  # seconds at most: the first round, some rounds, all of them


class StoppedError(Exception):
    """Ends a fit from within."""


class Job:
    """A fit with a checkpoint in an empty folder."""

    def __init__(self, seed, rng, folder):
        table = np.random.default_rng(seed)
        self.name, options = rng.choice(TASKS)
        self.options = {"n_estimators": rng.choice([5, 20, 60]), "max_leaf_nodes": 6, "random_state": 1} | options
        self.X = table.normal(size=(rng.choice([40, 200, 1000]), 3))
        score = self.X[:, 0] + np.sin(2 * self.X[:, 1]) + table.normal(size=len(self.X))
        self.y = np.digitize(score, [-0.5, 0.5]) if self.name.endswith("Classifier") else score
        self.folder, self.path = folder, folder / "rounds"

    def fit(self, callback=None, **checkpoint):
        model = getattr(spinney, self.name)(**self.options, callbacks=callback)
        return model.fit(self.X, self.y, **checkpoint).set_params(callbacks=None)

    def start(self, callback=None):
        return self.fit(callback, checkpoint=self.path)


def check_words(error):
    assert len(str(error)) > 20, f"not a sentence: {error!r}"


def killed(job, rng):
    """Start the fit in a process, and kill it after any time."""
    child = os.fork()
    if child == 0:
        try:
            job.start()
        finally:
            os._exit(0)
    time.sleep(rng.choice(UNTIL_KILLED) * rng.random())
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def disk_filled(job, rng):
    """Let no file become longer than some bytes."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(10 ** rng.uniform(0, 5)), most))
    try:
        job.start()
    except OSError as error:
        check_words(error)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def stopped(job, rng):
    """End the fit after some rounds, by an error or as Ctrl-C does."""
    last, kind = rng.randrange(1, 20), rng.choice([StoppedError, KeyboardInterrupt])

    def callback(progress):
        if progress["round"] == last:
            raise kind

    with suppress(StoppedError, KeyboardInterrupt):
        job.start(callback)


def file_damaged(job, rng):
    """Damage the checkpoint of a fit that was stopped."""
    stopped(job, rng)
    if job.path.exists():
        data = bytearray(job.path.read_bytes())
        rng.choice(DAMAGES)(data, rng, [data])
        job.path.write_bytes(data)


DISTURBANCES = [killed, killed, disk_filled, stopped, file_damaged]


class Area:
    """One seed: one fit, disturbed up to four times and then started again."""

    def __init__(self):
        for name, options in TASKS:  # imports what fits need, which is then not part of an input's time
            getattr(spinney, name)(n_estimators=1, **options).fit(np.arange(20.0)[:, np.newaxis], np.arange(20) % 2)

    def outcome(self, seed):
        rng = random.Random(seed)
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            job = Job(seed, rng, Path(folder))
            kinds = [rng.choice(DISTURBANCES) for _ in range(rng.choice([1, 1, 2, 4]))]
            for disturb in kinds:
                try:
                    disturb(job, rng)
                except spinney.ModelFileError:  # an earlier damage
                    break
            resumes = ", resumed" if job.path.exists() else ""
            try:
                model = job.start()
            except spinney.ModelFileError as error:
                if file_damaged not in kinds:
                    raise
                check_words(error)
                return "refused"
            left = sorted(path.name for path in job.folder.iterdir())
            assert not left, f"left behind after {[one.__name__ for one in kinds]}: {left}"
            assert model.fingerprint() == job.fit().fingerprint(), f"{[one.__name__ for one in kinds]}: another model"
        return " and ".join(sorted({one.__name__ for one in kinds})) + resumes
