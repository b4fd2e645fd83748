"""A checkpoint file: the rounds of a fit, from which the same fit resumes if its process dies.

It holds the trees, the learning curves and the seed, and identifies the fit by its parameters and by fingerprints of
the data. Scores are not stored: they are sums of the trees, added in the order these were grown, as in a warm start.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import AbstractContextManager, suppress
from typing import Any

import numpy as np

import spinney._engine as _engine
from spinney._boosting.boosters import CURVES, Member
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.settings import BoostingSettings
from spinney._boosting.task import Task
from spinney._data.types import Floats
from spinney._estimator.rows import in_order
from spinney._model.boosting import FittedBoosting
from spinney._model.file.codec import array, integer, listed, optional, saved_fields, table, text, words
from spinney._model.file.container import (
    CHECKPOINT,
    from_bytes,
    label_of,
    model_file_errors,
    read_file,
    refuse,
    to_bytes,
    write_file,
)
from spinney._model.file.values import parameters_to_json
from spinney._names import __version__

_TIME_FRACTION = 0.05  # of the fit, at most, spent on writing
_IRRELEVANT = ("n_jobs", "verbose", "callbacks", "keep_interrupted")  # parameters that do not change the model
_SAVED_CURVES = {name: optional(array("float64", "n_rounds", finite=False)) for name in CURVES}
_SAVED = saved_fields(
    version=text(),
    identity=listed(words(2)),
    seed=integer(least=0),
    curves=table(saved_fields(**_SAVED_CURVES | {"train_score_": array("float64", "n_rounds", finite=False)})),
)


class Checkpoint:
    """The file of a fit.

    Parameters
    ----------
    path : str or path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"checkpoint must be the path of a file, not {type(path).__name__}.")
        self._path = os.fspath(path)
        self._identity: dict[str, str] = {}
        self._seed = 0
        self._saved: dict[str, Any] = {}  # what the file holds, if it exists when the fit begins
        self._file: _engine.ModelFile | None = None
        self._next_write = 0.0
        folder = os.path.dirname(os.path.realpath(self._path))
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"checkpoint={self._path!r}: there is no folder '{folder}'. Create it first.")
        if os.path.exists(self._path):
            with self._errors_named():
                header, self._file = from_bytes(read_file(self._path), is_checkpoint=True)
                self._saved = _SAVED.from_header(header)

    def _errors_named(self) -> AbstractContextManager[None]:
        return model_file_errors(label_of(self._path), "resume from")

    @property
    def seed(self) -> int | None:
        """Seed of the interrupted fit, if there is one."""
        return self._saved.get("seed")

    @property
    def exists(self) -> bool:
        """Whether there was a file when the fit began."""
        return self._file is not None

    def begin(self, settings: BoostingSettings, recipe: Recipe, task: Task) -> None:
        """Identify the fit, and refuse a file of another fit."""
        _check_supported(settings, recipe, len(task.validation) > 1)
        self._seed = task.seed
        self._identity = _parameters(settings) | _data(*task.splits[0], settings.n_threads)
        if not self.exists:
            return
        with self._errors_named():
            if self._saved["version"] != __version__:
                refuse(f"was written by spinney {self._saved['version']}, and this is {__version__}. Remove it.")
        saved = dict(self._saved["identity"])
        for name in [*self._identity, *saved]:
            if self._identity.get(name) != saved.get(name):
                self._refuse_other(name, self._identity.get(name), saved.get(name))

    def _refuse_other(self, name: str, value: str | None, saved: str | None) -> None:
        kind, _, which = name.partition(" ")
        differs = f"another {which}" if kind == "data" else f"{which}={saved}, and this one has {which}={value}"
        raise ValueError(
            f"The checkpoint {label_of(self._path)} is of a fit with {differs}. Pass the same arguments to resume that "
            "fit; remove the file, or name another one, to start a new fit."
        )

    def rounds(self, task: Task) -> tuple[FittedBoosting, dict[str, Floats]]:
        """Return the model of the stored rounds, and their learning curves, by the names of the fitted attributes."""
        assert self._file is not None
        start, n_categories = task.start, task.schema.n_categories
        with self._errors_named():
            trees = [self._file.tree(t, n_categories) for t in range(self._file.n_trees)]
            curves = self._saved["curves"]
            if not trees or len(trees) != len(curves["train_score_"]) * len(start):
                n_rounds = len(curves["train_score_"])
                refuse(f"is damaged: it holds {len(trees)} trees for {n_rounds} rounds of {len(start)} scores")
        return FittedBoosting(trees, start, task.loss.link, n_categories, None), curves

    def write(self, member: Member, earlier: FittedBoosting | None, force: bool = False) -> None:
        """Write the rounds so far, unless that would take too large a fraction of the time."""
        began = time.monotonic()
        if not force and began < self._next_write:
            return
        curves = {name: np.array(curve) if curve else None for name, curve in member.curves.items()}
        identity = [list(pair) for pair in self._identity.items()]
        state = {"version": __version__, "identity": identity, "seed": self._seed, "curves": curves}
        trees = [] if earlier is None else earlier.trees()
        write_file(self._path, to_bytes({"kind": CHECKPOINT} | _SAVED.to_header(state), trees + member.trees()))
        self._next_write = time.monotonic() + (time.monotonic() - began) / _TIME_FRACTION

    def remove(self) -> None:
        """Remove the file: the fit is done."""
        with suppress(FileNotFoundError):
            os.unlink(self._path)


def _check_supported(settings: BoostingSettings, recipe: Recipe, has_several_sets: bool) -> None:
    """Refuse fits that cannot be resumed from the trees of one booster."""
    several = has_several_sets or len(settings.metrics) > 1
    refused = {
        "n_estimators='auto' without early_stopping=True": recipe.n_folds > 0,
        "warm_start=True": settings.warm_start,
        "dart": settings.drop_rate > 0,
        "n_parallel_trees in growth": settings.n_parallel_trees > 1,
        "a model in init": settings.starts_at_model,
        "several validation sets or metrics": several,
    }
    for setting, is_set in refused.items():
        if is_set:
            raise ValueError(
                f"checkpoint stores the rounds of one booster, each of which adds to those before it, and does not "
                f"support {setting}. Leave one of the two out."
            )


def _parameters(settings: BoostingSettings) -> dict[str, str]:
    """Return the value of each parameter, as text."""
    named = {
        f"parameter {name}": _as_text(name, value)
        for name, value in settings.parameters.items()
        if name not in _IRRELEVANT
    }
    return {"parameter estimator": settings.estimator} | named


def _as_text(name: str, value: object) -> str:
    if isinstance(value, (set, frozenset)):  # their order differs between processes
        value = sorted(value, key=repr)
    try:
        return json.dumps(parameters_to_json({name: value})[name])
    except TypeError:
        return str(getattr(value, "__qualname__", type(value).__qualname__))


def _data(rows: LearningRows, held_out: LearningRows | None, n_jobs: int) -> dict[str, str]:
    """Return fingerprints of the training and held-out rows."""
    found = {"data X": _table_fingerprint(rows.columns, n_jobs)}
    arrays = {"y": rows.target, "sample_weight, or other rows held out": rows.weight, "offset": rows.offset}
    arrays["groups, or events"] = rows.extra
    if held_out is not None:
        if held_out.columns is not rows.columns:
            found["data X_val"] = _table_fingerprint(held_out.columns, n_jobs)
        arrays |= {"y_val": held_out.target, "sample_weight_val": held_out.weight, "offset_val": held_out.offset}
        arrays["groups_val, or events of y_val"] = held_out.extra
    for name, numbers in arrays.items():
        if numbers is not None:
            found[f"data {name}"] = hashlib.blake2b(np.ascontiguousarray(numbers).data, digest_size=8).hexdigest()
    return found


def _table_fingerprint(columns: Any, n_jobs: int) -> str:
    is_here = isinstance(columns, _engine.Table)
    return f"{in_order(columns.fingerprints(n_jobs)) if is_here else columns.row_fingerprint():016x}"
