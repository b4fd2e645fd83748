"""A file that keeps the rounds of a fit, so that a fit whose process dies goes on where it was.

It holds the trees, the learning curves and the seed, and what the fit is known by: the parameters, and prints of the
data. Scores are not kept: they are sums of the trees, added in the order in which these were grown, as in a warm start.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from typing import Any

import numpy as np

import spinney._engine as _engine
from spinney._boosting.boosters import Task
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.member import CURVES, Member
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.settings import BoostingSettings
from spinney._data.types import Floats
from spinney._estimator.rows import in_order
from spinney._model.boosting import FittedBoosting
from spinney._model.file.codec import array_from_json, array_to_json
from spinney._model.file.container import (
    CHECKPOINT,
    field,
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

_SHARE = 0.05  # of the time, at most, that is spent on writing
_NO_MATTER = ("n_jobs", "verbose", "callbacks", "keep_interrupted")  # parameters that leave the model as it is


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
        self._known_by: dict[str, str] = {}
        self._seed = 0
        self._header: dict[str, Any] | None = None
        self._file: _engine.ModelFile | None = None
        self._due = 0.0  # when to write again
        folder = os.path.dirname(os.path.realpath(self._path))
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"checkpoint={self._path!r}: there is no folder '{folder}'. Make it first.")
        if os.path.exists(self._path):
            with self._faults():
                self._header, self._file = from_bytes(read_file(self._path), is_checkpoint=True)

    def _faults(self) -> Any:
        return model_file_errors(label_of(self._path), "resume from")

    @property
    def seed(self) -> int | None:
        """Seed of the fit that was cut short, if there is one."""
        if self._header is None:
            return None
        with self._faults():
            return int(field(self._header, "seed", int))

    @property
    def is_there(self) -> bool:
        """Whether there was a file when the fit began."""
        return self._header is not None

    def begin(self, settings: BoostingSettings, recipe: Recipe, task: Task) -> None:
        """Note what the fit is known by, and refuse a file of another fit."""
        _check_goes(settings, recipe, len(task.validation) > 1)
        self._seed = task.seed
        self._known_by = _parameters(settings) | _data(*task.parts[0], settings.n_threads)
        if self._header is None:
            return
        with self._faults():
            known = field(self._header, "known_by", dict)
            if field(self._header, "version", str) != __version__:
                refuse(f"was written by spinney {self._header['version']}, and this is {__version__}. Remove it.")
        for name in [*self._known_by, *known]:
            ours, theirs = self._known_by.get(name), known.get(name)
            if ours != theirs:
                self._refuse_other(name, ours, theirs)

    def _refuse_other(self, name: str, ours: str | None, theirs: object) -> None:
        what, _, which = name.partition(" ")
        differs = f"another {which}" if what == "data" else f"{which}={theirs}, and this one has {which}={ours}"
        raise ValueError(
            f"The checkpoint {label_of(self._path)} is of a fit with {differs}. Pass what that fit was given to go on "
            "with it; remove the file, or name another one, to begin anew."
        )

    def rounds(self, task: Task) -> tuple[FittedBoosting, dict[str, Floats]]:
        """Return the model of the rounds that are done, and their learning curves, by the names of attributes."""
        assert self._header is not None
        assert self._file is not None
        start, n_categories = task.start, task.schema.n_categories
        with self._faults():
            trees = [self._file.tree(t, n_categories) for t in range(self._file.n_trees)]
            if not trees or len(trees) % len(start):
                refuse(f"is damaged: it holds {len(trees)} trees for {len(start)} scores")
            n_rounds, kept = len(trees) // len(start), field(self._header, "curves", dict)
            curves = {name: array_from_json(kept[name], ("float64",), (n_rounds,)) for name in CURVES if name in kept}
            if "train_score_" not in curves:
                refuse("is damaged: it has no learning curve")
        return FittedBoosting(trees, start, task.loss.link, n_categories, None), curves

    def write(self, member: Member, earlier: FittedBoosting | None, must: bool = False) -> None:
        """Keep the rounds that are done, unless that would take too large a share of the time."""
        began = time.monotonic()
        if not must and began < self._due:
            return
        header = {
            "kind": CHECKPOINT,
            "version": __version__,
            "known_by": self._known_by,
            "seed": self._seed,
            "curves": {name: array_to_json(np.array(curve)) for name, curve in member.curves.items() if curve},
        }
        before = [] if earlier is None else earlier.trees()
        write_file(self._path, to_bytes(header, before + member.trees()))
        self._due = time.monotonic() + (time.monotonic() - began) / _SHARE

    def remove(self) -> None:
        """Remove the file: the fit is done."""
        with suppress(FileNotFoundError):
            os.unlink(self._path)


def _check_goes(settings: BoostingSettings, recipe: Recipe, has_several_sets: bool) -> None:
    """Refuse fits that a file of rounds cannot bring back."""
    several = has_several_sets or len(settings.metrics) > 1
    refused = {
        "n_estimators='auto' without early_stopping=True": recipe.n_folds > 0,
        "warm_start=True": settings.warm_start,
        "dart": settings.drop_rate > 0,
        "n_parallel_trees in growth": settings.n_parallel_trees > 1,
        "a model in init": settings.starts_at_model,
        "several sets or metrics to judge by": several,
    }
    for what, is_so in refused.items():
        if is_so:
            raise ValueError(
                f"checkpoint keeps the rounds of one booster, each of which adds to those before it, and does not go "
                f"with {what}. Leave one of the two out."
            )


def _parameters(settings: BoostingSettings) -> dict[str, str]:
    """Return what each parameter is, as text."""
    named = {
        f"parameter {name}": _said(name, value) for name, value in settings.parameters.items() if name not in _NO_MATTER
    }
    return {"parameter estimator": settings.estimator} | named


def _said(name: str, value: object) -> str:
    if isinstance(value, (set, frozenset)):  # whose order is another in each process
        value = sorted(value, key=repr)
    try:
        return json.dumps(parameters_to_json({name: value})[name])
    except TypeError:
        return str(getattr(value, "__qualname__", type(value).__qualname__))


def _data(rows: LearningRows, held_out: LearningRows | None, n_jobs: int) -> dict[str, str]:
    """Return prints of all that is learned from."""
    found = {"data X": _print_of_table(rows.columns, n_jobs)}
    beside = {"y": rows.target, "sample_weight, or other rows held out": rows.weight, "offset": rows.offset}
    beside["groups, or events"] = rows.more
    if held_out is not None:
        if held_out.columns is not rows.columns:
            found["data X_val"] = _print_of_table(held_out.columns, n_jobs)
        beside |= {"y_val": held_out.target, "sample_weight_val": held_out.weight, "offset_val": held_out.offset}
        beside["groups_val, or events of y_val"] = held_out.more
    for name, array in beside.items():
        if array is not None:
            found[f"data {name}"] = hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=8).hexdigest()
    return found


def _print_of_table(columns: Any, n_jobs: int) -> str:
    is_here = isinstance(columns, _engine.Table)
    return f"{in_order(columns.fingerprints(n_jobs)) if is_here else columns.row_fingerprint():016x}"
