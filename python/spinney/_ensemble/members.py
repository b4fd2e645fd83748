"""Fits of members side by side: one thread each where there are many, more where there are few."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch, Tags, get_tags
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import ThreadpoolController

import spinney._engine as _engine
from spinney._data.columns import match_columns
from spinney._data.select import PickTable, Places, pick_table
from spinney._data.types import TableLike
from spinney._estimator.estimator import Estimator, class_name, class_named, template_from_json, template_to_json
from spinney._estimator.held_out import row_arguments
from spinney._estimator.parallel import count_threads, in_order, is_distributed, spread
from spinney._model.file.container import refuse
from spinney._model.saving.members import read_models
from spinney._names import FITTED_BY_COMMAND, estimator_of, public

Result = TypeVar("Result")
Weights = NDArray[np.float64] | None
_THREADS = ("n_jobs", "thread_count")  # what parameters for the number of threads are called


LARGEST_SEED = np.iinfo(np.int32).max


def random_state_names(estimator: BaseEstimator) -> list[str]:
    """Return the parameters that are random states, those of parts of the estimator too."""
    names = sorted(estimator.get_params(deep=True))
    return [name for name in names if name == "random_state" or name.endswith("__random_state")]


def set_random_states(estimator: BaseEstimator, names: list[str], seed: int) -> None:
    """Set random states that follow from a seed, as scikit-learn's ensembles do for their members."""
    random = np.random.RandomState(seed)
    states = {name: int(random.randint(LARGEST_SEED)) for name in names}
    if list(states) == ["random_state"]:
        estimator.random_state = states["random_state"]  # `set_params` takes as long as growing a small tree
    else:
        estimator.set_params(**states)


def rows_of(value: Any, rows: Places, n_rows: int) -> Any:
    """Cut metadata that has one entry per row; leave others alone."""
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__len__") or len(value) != n_rows:
        return value
    if hasattr(value, "iloc"):
        return value.iloc[rows]
    return np.asarray(value)[rows]


def take_input_tags(tags: Tags, members: Sequence[BaseEstimator]) -> None:
    """Give an ensemble those of scikit-learn's tags of input that all its members have."""
    own = [get_tags(member).input_tags for member in members]
    for name in ("sparse", "allow_nan", "categorical", "string"):
        setattr(tags.input_tags, name, all(getattr(member, name) for member in own))


def routed_metadata(ensemble: BaseEstimator, method: str, params: dict[str, Any]) -> Bunch:
    """Return the metadata that the members of an ensemble get, by scikit-learn's routing."""
    if not get_config()["enable_metadata_routing"]:
        raise ValueError(
            f"{method} hands {', '.join(params)} on to members only where metadata routing is on: "
            "sklearn.set_config(enable_metadata_routing=True), and members that request it."
        )
    return process_routing(ensemble, method, **params)


def takes_weights(estimator: BaseEstimator) -> bool:
    """Say whether `fit` of an estimator has a parameter sample_weight."""
    return bool(has_fit_parameter(estimator, "sample_weight"))


def seeded(template: BaseEstimator, random: np.random.RandomState) -> BaseEstimator:
    """Clone an estimator, and set those of its random states that are None."""
    estimator = clone(template)
    given = estimator.get_params(deep=True)
    open_states = {
        name: int(random.randint(LARGEST_SEED)) for name in random_state_names(estimator) if given[name] is None
    }
    return estimator.set_params(**open_states) if open_states else estimator


def open_threads(estimator: BaseEstimator) -> list[str]:
    """Return the parameters, also of parts of an estimator, that leave the number of threads open; not scikit-learn's.

    There, an open number means one.
    """
    given = estimator.get_params(deep=True)
    found = []
    for name, value in given.items():
        part, _, last = name.rpartition("__")
        owner = given.get(part) if part else estimator
        if value is None and last in _THREADS and not type(owner).__module__.startswith("sklearn."):
            found.append(name)
    return found


@dataclass(frozen=True)
class Sharing:
    """How many tasks run side by side, and how many threads each may use.

    Estimators of spinney give the same bits for any number of threads, so that they share what there is; others always
    get one, so that what they give does not depend on `n_jobs`.
    """

    n_beside: int
    n_within: int

    @classmethod
    def of(cls, n_jobs: int | None, n_tasks: int) -> Sharing:
        """Share the threads of a process out among tasks; on other machines each has one."""
        if is_distributed():
            return cls(1, 1)
        n_threads = count_threads(n_jobs, 2**20)
        n_beside = min(n_threads, n_tasks)
        return cls(n_beside, n_threads // n_beside)

    def prepared(self, template: BaseEstimator) -> BaseEstimator:
        """Return a clone whose number of threads is set, where it is open."""
        estimator = clone(template)
        n_threads = self.n_within if isinstance(template, Estimator) else 1
        names = open_threads(template)
        return estimator.set_params(**dict.fromkeys(names, n_threads)) if names else estimator

    def run(self, work: Callable[[int], Result], n_tasks: int, has_foreign: bool) -> Iterator[Result]:
        """Yield the results in order; BLAS and OpenMP, which foreign estimators use, get one thread per task."""
        if is_distributed():
            yield from spread(work, list(range(n_tasks)))
            return
        if self.n_beside == 1 or not has_foreign:
            yield from in_order(work, n_tasks, self.n_beside)
            return
        libraries = ThreadpoolController()
        openmp = libraries.select(user_api="openmp")

        def alone(k: int) -> Result:
            with openmp.limit(limits=1):  # a setting of the thread it is made in
                return work(k)

        with libraries.select(user_api="blas").limit(limits=1):  # a setting of the process
            yield from in_order(alone, n_tasks, self.n_beside)


def released(member: BaseEstimator, template: BaseEstimator, n_jobs: int | None) -> BaseEstimator:
    """Give a fitted member back the number of threads of its template; where that is open, those of the ensemble."""
    names = open_threads(template)
    if names:
        member.set_params(**dict.fromkeys(names, n_jobs if isinstance(template, Estimator) else None))
    return member


@dataclass(frozen=True, eq=False)
class MemberRows:
    """What members are fitted to; threads share it.

    Attributes
    ----------
    table : PickTable
    target, codes : ndarray of shape (n_rows,)
        Labels or values, and codes of the classes.
    weight : ndarray of shape (n_rows,), or None
    groups, time : ndarray of shape (n_rows,), or None
        Which rows belong together, and their moments: for members that hold rows out by themselves.
    """

    table: PickTable
    target: NDArray[Any]
    codes: NDArray[Any] | None
    weight: Weights
    groups: NDArray[Any] | None = None
    time: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None

    def with_groups(self, groups: NDArray[Any] | None) -> MemberRows:
        """Return the same rows with groups."""
        return replace(self, groups=groups)

    @property
    def used(self) -> Places | None:
        """Rows of positive weight; None: all."""
        return None if self.weight is None or (self.weight > 0).all() else np.flatnonzero(self.weight)

    def fit(
        self, member: BaseEstimator, name: str, rows: Places | None, by_code: bool, params: dict[str, Any]
    ) -> BaseEstimator:
        """Fit a member to some rows; None: to all."""
        target = self.codes if by_code and self.codes is not None else self.target
        given = {key: value if rows is None else rows_of(value, rows, len(target)) for key, value in params.items()}
        if self.weight is not None and takes_weights(member):
            given["sample_weight"] = self.weight if rows is None else self.weight[rows]
        groups, time = (one if one is None or rows is None else one[rows] for one in (self.groups, self.time))
        weight = self.weight if self.weight is None or rows is None else self.weight[rows]
        given = row_arguments(member, groups, time, weight) | given
        try:
            return member.fit(self.table.take(rows), target if rows is None else target[rows], **given)
        except Exception as error:
            error.add_note(f"This happened while fitting {name!r}, a {type(member).__name__}{self._about(member)}.")
            raise

    def _about(self, member: BaseEstimator) -> str:
        if isinstance(member, Estimator):
            return ""
        return ", which gets the table as it is; if it takes numbers alone, put it in a pipeline that encodes others"


def gets_codes(estimator: BaseEstimator) -> bool:
    """Say whether a classifier is shown codes of the classes, as in scikit-learn's ensembles; ours see the labels."""
    return not isinstance(estimator, Estimator)


def are_foreign(templates: Sequence[BaseEstimator]) -> bool:
    """Say whether some of the estimators are of other libraries."""
    return not all(isinstance(template, Estimator) for template in templates)


DROPPED = "drop"


def estimator_of_word(word: str, task: str) -> BaseEstimator:
    """Return the estimator that a word of ``spinney fit --model`` stands for, with its defaults.

    Parameters
    ----------
    word : str
        Such as "forest" or "extra-trees", which may also be written with an underscore.
    task : {"Classifier", "Regressor"}

    Returns
    -------
    estimator
    """
    known = {key.replace("-", "_"): key for key in FITTED_BY_COMMAND}
    key = known.get(word.replace("-", "_").replace(" ", "_").lower())
    if key is None:
        nearest = get_close_matches(word, FITTED_BY_COMMAND, n=1)
        hint = f"Did you mean {nearest[0]!r}?" if nearest else f"Words are {', '.join(FITTED_BY_COMMAND)}."
        raise ValueError(f"There is no model called {word!r}. {hint}")
    name = estimator_of(FITTED_BY_COMMAND[key], task == "Classifier")
    if name is None:
        raise ValueError(f"{word!r} is no {task.lower()}. Use another model.")
    return public(name)()


def read_members(given: Any, what: str = "estimators") -> list[tuple[str, Any]]:
    """Return names and what stands for the estimators: estimators or words.

    Parameters
    ----------
    given : list or dict
        Estimators, words, or pairs of a name and one of these; a dict from names to these.
    what : str
        What the caller calls it.

    Returns
    -------
    list of (str, estimator or str)
        What is dropped is left out.
    """
    if isinstance(given, Mapping):
        given = list(given.items())
    if isinstance(given, (str, bytes)) or not isinstance(given, (list, tuple)):
        raise TypeError(f"{what} must be a list of estimators, names or pairs of both, or a dict. Got {given!r:.100}.")
    pairs = []
    for item in given:
        pair = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
        if not (pair[0] is None or isinstance(pair[0], str)) or not _can_be_fitted(pair[1]):
            raise TypeError(
                f"{what} holds {item!r:.100}, which is neither an estimator with fit and predict, a name such as "
                "'forest', nor a pair of a name and one of these."
            )
        pairs.append(pair)
    names = _names([name for name, _ in pairs], [estimator for _, estimator in pairs])
    _check_names(names, what)
    left = [(name, one) for name, (_, one) in zip(names, pairs, strict=True) if not _is_dropped(one)]
    if not left:
        raise ValueError(f"{what} has no estimator left. Give at least one.")
    return left


def _is_dropped(estimator: object) -> bool:
    return isinstance(estimator, str) and estimator == DROPPED


def _can_be_fitted(estimator: object) -> bool:
    if isinstance(estimator, str):
        return True
    return not isinstance(estimator, type) and hasattr(estimator, "fit") and hasattr(estimator, "predict")


def _names(given: list[str | None], estimators: list[object]) -> list[str]:
    """Return the names given, and for others the word or the class in lower case, numbered where there are several."""
    own = [
        name if name is not None else one.replace("-", "_") if isinstance(one, str) else type(one).__name__.lower()
        for name, one in zip(given, estimators, strict=True)
    ]
    several = {name for name, count in Counter(own).items() if count > 1}
    seen: Counter[str] = Counter()
    found = []
    for name, was_given in zip(own, given, strict=True):
        seen[name] += 1
        found.append(f"{name}-{seen[name]}" if name in several and was_given is None else name)
    return found


def _check_names(names: list[str], what: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Names provided are not unique: {what} has {twice[0]!r} twice. Give each its own name.")
    odd = [name for name in names if "__" in name]
    if odd:
        raise ValueError(f"Estimator names must not contain __: got {odd[0]!r}.")


# ---- files ---------------------------------------------------------------------------------------


def members_to_json(given: Any) -> Any:
    """Return members as parameters in a form that files hold: names, and words or estimators without their fit."""
    if given is None:
        return None
    return [[name, one if isinstance(one, str) else template_to_json(one)] for name, one in read_members(given)]


def members_from_json(saved: Any) -> Any:
    """Turn back what `members_to_json` gives."""
    if saved is None:
        return None
    if not isinstance(saved, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in saved):
        refuse("is damaged: its members as parameters are unusable")
    found = [(name, one if isinstance(one, str) else template_from_json(one)) for name, one in saved]
    read_members(found)
    return found


def models_parts(models: Sequence[BaseEstimator]) -> tuple[list[dict[str, Any]], list[_engine.Tree]]:
    """Return headers and trees of fitted models, which must all be of spinney."""
    headers: list[dict[str, Any]] = []
    trees: list[_engine.Tree] = []
    for model in models:
        if not isinstance(model, Estimator) or class_name(model) is None:
            raise TypeError(
                f"A model file holds models of spinney; one of this ensemble is of the type {type(model).__name__}. "
                "Pickle the ensemble instead."
            )
        header, own = model._file_parts()
        headers.append({"n_trees": len(own), "model": header})
        trees += own
    return headers, trees


def models_of(header: dict[str, Any], file: _engine.ModelFile) -> list[Estimator]:
    """Turn back what `models_parts` gives."""
    return read_models(header, file, lambda own, trees: class_named(own, Estimator)._from_file(own, trees))


def fingerprint_of(models: Sequence[BaseEstimator], identity: bytes) -> str:
    """Hash fitted models, in their order, and the numbers that turn their predictions into those of an ensemble."""
    digest = hashlib.sha256(identity)
    for model in models:
        if not hasattr(model, "fingerprint"):
            raise TypeError(f"Models of the type {type(model).__name__} have no fingerprint, so the ensemble has none.")
        digest.update(model.fingerprint().encode())
    return digest.hexdigest()


def matched_table(X: TableLike, names: list[str] | None, n_columns: int, ensemble: str) -> PickTable:
    """Return a table with its columns as an ensemble has seen them at fit."""
    table = pick_table(X)
    order = match_columns(table.names, table.n_columns, names, n_columns, ensemble)
    return table if order is None else pick_table(table.take(columns=np.array(order)))
