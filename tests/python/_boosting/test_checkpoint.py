"""An interrupted fit resumes from its checkpoint, also in another process, with bit-identical results."""

import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import spinney

FEW = {"n_estimators": 8, "max_leaf_nodes": 5}


class CutShortError(Exception):
    """Stands for a process that dies."""


def make_table(n=600, seed=0):
    random = np.random.RandomState(seed)
    frame = pd.DataFrame({"x": random.standard_normal(n), "z": random.standard_normal(n)})
    frame["word"] = random.choice(list("abcd"), n)
    return frame, np.asarray(frame["x"] * 2 + (frame["word"] == "c") + random.standard_normal(n))


def die(after):
    def callback(progress):
        if progress["round"] == after:
            raise CutShortError

    return callback


def cut_short(model, path, *given, after=4, **more):
    """Fit, die after some rounds, and leave the file."""
    with pytest.raises(CutShortError):
        model.set_params(callbacks=die(after)).fit(*given, checkpoint=path, **more)
    assert path.exists()
    assert not hasattr(model, "boosting_")
    model.set_params(callbacks=None)


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, {}),
        ({"subsample": 0.6, "max_features": 0.5}, {}),  # seeds are drawn, and kept in the file
        ({"loss": "absolute_error", "random_state": 1, "early_stopping": True}, {}),
        ({"loss": "normal", "growth": "depth"}, {"offset": np.linspace(0, 1, 600)}),
        ({"n_estimators": "auto", "early_stopping": True, "random_state": 2}, {"groups": np.arange(600) % 50}),
    ],
)
def test_values_go_on(tmp_path, options, more):
    frame, y = make_table()
    path = tmp_path / "rounds"
    if "loss" in options and options["loss"] == "normal":
        more = {"offset": np.column_stack([more["offset"], 0 * more["offset"]])}
    model = spinney.GradientBoostingRegressor(**FEW | options)
    cut_short(model, path, frame, y, **more)
    model.fit(frame, y, checkpoint=path, **more)
    assert not path.exists()
    if "subsample" in options:  # no random_state: as with the seed that was drawn at first
        assert model.n_iter_ == len(model.train_score_) == len(model.oob_scores_) == 8
        return
    whole = spinney.GradientBoostingRegressor(**FEW | options).fit(frame, y, **more)
    assert model.fingerprint() == whole.fingerprint()
    assert model.train_score_.tolist() == whole.train_score_.tolist()
    assert getattr(model, "stopped_because_", None) == whole.stopped_because_


def test_a_fit_that_dies_twice_goes_on(tmp_path):
    frame, y = make_table()
    model = spinney.GradientBoostingRegressor(**FEW)
    for after in (2, 5):
        cut_short(model, tmp_path / "rounds", frame, y, after=after)
    model.fit(frame, y, checkpoint=tmp_path / "rounds")
    assert model.fingerprint() == spinney.GradientBoostingRegressor(**FEW).fit(frame, y).fingerprint()


def test_draws_and_classes_go_on(tmp_path):
    frame, y = make_table()
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-1, 1])]
    weight = np.arange(len(y)) % 5
    held = {"X_val": frame[:100], "y_val": labels[:100], "sample_weight_val": weight[:100]}
    options = FEW | {"subsample": 0.7, "random_state": 3, "early_stopping": True, "scoring": "accuracy"}
    whole = spinney.GradientBoostingClassifier(**options).fit(frame, labels, weight, **held)
    model = spinney.GradientBoostingClassifier(**options)
    path = tmp_path / "rounds"
    cut_short(model, path, frame, labels, weight, **held)
    model.fit(frame, labels, weight, **held, checkpoint=path)
    assert model.fingerprint() == whole.fingerprint()
    assert model.validation_score_.tolist() == whole.validation_score_.tolist()
    assert np.array_equal(model.oob_scores_, whole.oob_scores_)


def test_a_forest_continues_from_its_file(tmp_path):
    frame, y = make_table(200)
    with pytest.raises(TypeError, match=r"no argument 'checkpoint'\. The trees are independent: grow some, save"):
        spinney.RandomForestRegressor(4).fit(frame, y, checkpoint=tmp_path / "trees")
    options = {"random_state": 0, "warm_start": True, "max_leaf_nodes": 8}
    spinney.RandomForestRegressor(3, **options).fit(frame, y).save(tmp_path / "trees")
    there = spinney.load(tmp_path / "trees").set_params(n_estimators=7).fit(frame, y)
    assert there.fingerprint() == spinney.RandomForestRegressor(7, **options).fit(frame, y).fingerprint()


def test_a_scan_goes_on(tmp_path):
    frame, y = make_table()
    frame["y"] = y
    model = spinney.GradientBoostingRegressor(**FEW)
    path = tmp_path / "rounds"
    cut_short(model, path, spinney.scan([frame[:250], frame[250:]]), "y")
    model.fit(spinney.scan([frame[:100], frame[100:]]), "y", checkpoint=path)  # however the rows are read
    assert model.fingerprint() == spinney.GradientBoostingRegressor(**FEW).fit(frame.drop(columns="y"), y).fingerprint()


def test_an_interruption_keeps_the_rounds(tmp_path):
    def interrupt(progress):
        if progress["round"] == 3:
            raise KeyboardInterrupt

    frame, y = make_table()
    path = tmp_path / "rounds"
    rounds = []
    model = spinney.GradientBoostingRegressor(**FEW, callbacks=interrupt, keep_interrupted=False)
    with pytest.raises(KeyboardInterrupt):
        model.fit(frame, y, checkpoint=path)
    model.set_params(callbacks=lambda progress: rounds.append(progress["round"])).fit(frame, y, checkpoint=path)
    assert rounds == [4, 5, 6, 7, 8]
    stopped = spinney.GradientBoostingRegressor(**FEW, callbacks=lambda progress: progress["round"] == 2)
    stopped.fit(frame, y, checkpoint=path)
    assert stopped.n_iter_ == 2
    assert path.exists()  # it was not done


def test_another_fit_is_refused(tmp_path):
    frame, y = make_table()
    path = tmp_path / "rounds"
    model = spinney.GradientBoostingRegressor(**FEW)
    cut_short(model, path, frame, y)
    with pytest.raises(ValueError, match="is of a fit with max_leaf_nodes=5, and this one has max_leaf_nodes=6"):
        spinney.GradientBoostingRegressor(**FEW | {"max_leaf_nodes": 6}).fit(frame, y, checkpoint=path)
    with pytest.raises(ValueError, match="is of a fit with another X"):
        model.fit(frame.assign(x=frame["x"][::-1].to_numpy()), y, checkpoint=path)
    with pytest.raises(ValueError, match="is of a fit with another y"):
        model.fit(frame, y[::-1], checkpoint=path)
    with pytest.raises(ValueError, match="is of a fit with another sample_weight"):
        model.fit(frame, y, np.ones(len(y)), checkpoint=path)
    with pytest.raises(ValueError, match="is of a fit with estimator=GradientBoostingRegressor"):
        spinney.GradientBoostingClassifier(**FEW).fit(frame, y > 0, checkpoint=path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    with pytest.raises(spinney.ModelFileError, match=r"Cannot resume from '.*rounds': the file is"):
        model.fit(frame, y, checkpoint=path)
    path.write_bytes(whole)
    with pytest.raises(spinney.ModelFileError, match=r"is a checkpoint of a fit. Pass it to fit, as checkpoint\."):
        spinney.load(path)
    spinney.GradientBoostingRegressor(**FEW).fit(frame, y).save(path)
    with pytest.raises(spinney.ModelFileError, match=r"is a model\. Name another file"):
        model.fit(frame, y, checkpoint=path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        model.fit(frame, y, checkpoint=tmp_path / "none" / "rounds")
    for options in ({"n_estimators": "auto"}, {"dart": 0.1}, {"warm_start": True}, {"growth": {"n_parallel_trees": 2}}):
        with pytest.raises(ValueError, match="checkpoint stores the rounds of one booster"):
            spinney.GradientBoostingRegressor(**FEW | options).fit(frame, y, checkpoint=tmp_path / "other")


KILLED = """
import os, signal, sys
sys.path.insert(0, {folder!r})
from {module} import {make}
{make}({path!r}, lambda progress: progress["round"] == 5 and os.kill(os.getpid(), signal.SIGKILL))
"""


def fit_in_memory(path, callback=None):
    frame, y = make_table()
    return spinney.GradientBoostingRegressor(**FEW, callbacks=callback).fit(frame, y, checkpoint=path)


def in_a_process_that_dies(module, make, path):
    folder = os.path.dirname(__file__)
    code = KILLED.format(folder=folder, module=module, make=make, path=str(path))
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert path.exists()


@pytest.mark.slow
def test_a_killed_process_is_followed_by_another(tmp_path):
    path = tmp_path / "rounds"
    in_a_process_that_dies("test_checkpoint", "fit_in_memory", path)
    frame, y = make_table()
    assert fit_in_memory(path).fingerprint() == spinney.GradientBoostingRegressor(**FEW).fit(frame, y).fingerprint()
