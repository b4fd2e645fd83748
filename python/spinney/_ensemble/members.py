"""Members of ensembles: reading them from parameters, fitting them in parallel, averaging their predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch, Tags, get_tags
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import ThreadpoolController

from spinney._data.display import nearest_name, with_article
from spinney._data.select import PickTable, Places
from spinney._estimator.estimator import Estimator
from spinney._estimator.held_out import row_arguments
from spinney._estimator.parallel import count_threads, in_order, is_distributed, run_distributed
from spinney._model.predictions import Classes
from spinney._names import FITTED_BY_COMMAND, SETTINGS_OF_NAME, estimator_of, public

Result = TypeVar("Result")
Weights = NDArray[np.float64] | None
_THREADS = ("n_jobs", "thread_count")  # names of parameters for the number of threads


LARGEST_SEED = np.iinfo(np.int32).max


def random_state_names(estimator: BaseEstimator) -> list[str]:
    """Return the names of the parameters that are random states, including those of nested estimators."""
    names = sorted(estimator.get_params(deep=True))
    return [name for name in names if name == "random_state" or name.endswith("__random_state")]


def set_random_states(estimator: BaseEstimator, names: list[str], seed: int) -> None:
    """Set random states drawn from a seed, as scikit-learn's ensembles do for their members."""
    random = np.random.RandomState(seed)
    states = {name: int(random.randint(LARGEST_SEED)) for name in names}
    if list(states) == ["random_state"]:
        estimator.random_state = states["random_state"]  # `set_params` takes as long as growing a small tree
    else:
        estimator.set_params(**states)


def rows_of(value: Any, rows: Places, n_rows: int) -> Any:
    """Return the entries of some rows, if metadata has one entry per row; else the metadata itself."""
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__len__") or len(value) != n_rows:
        return value
    if hasattr(value, "iloc"):
        return value.iloc[rows]
    return np.asarray(value)[rows]


def set_input_tags(tags: Tags, members: Sequence[BaseEstimator]) -> None:
    """Set scikit-learn's input tags of an ensemble to those that all its members have."""
    of_members = [get_tags(member).input_tags for member in members]
    for name in ("sparse", "allow_nan", "categorical", "string"):
        setattr(tags.input_tags, name, all(getattr(member, name) for member in of_members))


def routed_metadata(ensemble: BaseEstimator, method: str, params: dict[str, Any]) -> Bunch:
    """Return the metadata for the members of an ensemble, by scikit-learn's routing."""
    if not get_config()["enable_metadata_routing"]:
        raise ValueError(
            f"{method} passes {', '.join(params)} on to members only if metadata routing is enabled: "
            "sklearn.set_config(enable_metadata_routing=True), and members that request it."
        )
    return process_routing(ensemble, method, **params)


def takes_weights(estimator: BaseEstimator) -> bool:
    """Return whether `fit` of an estimator has a parameter sample_weight."""
    return bool(has_fit_parameter(estimator, "sample_weight"))


def seeded(template: BaseEstimator, random: np.random.RandomState) -> BaseEstimator:
    """Clone an estimator, and set its random states that are None."""
    estimator = clone(template)
    params = estimator.get_params(deep=True)
    states = {name: int(random.randint(LARGEST_SEED)) for name in random_state_names(estimator) if params[name] is None}
    return estimator.set_params(**states) if states else estimator


def unset_threads(estimator: BaseEstimator) -> list[str]:
    """Return the parameters for the number of threads that are None, including those of nested estimators.

    Estimators of scikit-learn are left out: their None means one thread.
    """
    params = estimator.get_params(deep=True)
    names = []
    for name, value in params.items():
        nested, _, last = name.rpartition("__")
        owner = params.get(nested) if nested else estimator
        if value is None and last in _THREADS and not type(owner).__module__.startswith("sklearn."):
            names.append(name)
    return names


@dataclass(frozen=True)
class ThreadPlan:
    """How many tasks run in parallel, and how many threads each may use.

    Estimators of spinney are bit-identical for any number of threads, so they use all that are free; others always get
    one thread, so that their results do not depend on `n_jobs`.
    """

    n_parallel: int
    n_threads_each: int

    @classmethod
    def of(cls, n_jobs: int | None, n_tasks: int) -> ThreadPlan:
        """Distribute the threads of a process over tasks; on a cluster each task has one."""
        if is_distributed():
            return cls(1, 1)
        n_threads = count_threads(n_jobs, 2**20)
        n_parallel = min(n_threads, n_tasks)
        return cls(n_parallel, n_threads // n_parallel)

    def prepared(self, template: BaseEstimator) -> BaseEstimator:
        """Return a clone with its number of threads set, unless the template sets it."""
        estimator = clone(template)
        n_threads = self.n_threads_each if isinstance(template, Estimator) else 1
        names = unset_threads(template)
        return estimator.set_params(**dict.fromkeys(names, n_threads)) if names else estimator

    def run(self, work: Callable[[int], Result], n_tasks: int, has_foreign: bool) -> Iterator[Result]:
        """Yield the results in order; BLAS and OpenMP of other libraries get one thread per task."""
        if is_distributed():
            yield from run_distributed(work, list(range(n_tasks)))
            return
        if self.n_parallel == 1 or not has_foreign:
            yield from in_order(work, n_tasks, self.n_parallel)
            return
        libraries = ThreadpoolController()
        openmp = libraries.select(user_api="openmp")

        def single_threaded(k: int) -> Result:
            with openmp.limit(limits=1):  # per thread
                return work(k)

        with libraries.select(user_api="blas").limit(limits=1):  # per process
            yield from in_order(single_threaded, n_tasks, self.n_parallel)


def reset_threads(member: BaseEstimator, template: BaseEstimator, n_jobs: int | None) -> BaseEstimator:
    """Reset the number of threads of a fitted member to that of its template, or of the ensemble if that is None."""
    names = unset_threads(template)
    if names:
        member.set_params(**dict.fromkeys(names, n_jobs if isinstance(template, Estimator) else None))
    return member


@dataclass(frozen=True, eq=False)
class MemberRows:
    """The training rows of members, shared by all threads.

    Attributes
    ----------
    table : PickTable
    target, codes : ndarray of shape (n_rows,) or (n_rows, n_labels)
        Labels or numeric target, and class codes.
    weight : ndarray of shape (n_rows,), or None
    groups, time : ndarray of shape (n_rows,), or None
        Groups and times of the rows, for members that hold rows out themselves.
    classes : ndarray, list of ndarrays, or None
        Labels in the order of the codes, of several labels a list; None in a regression.
    """

    table: PickTable
    target: NDArray[Any]
    codes: NDArray[Any] | None
    weight: Weights
    groups: NDArray[Any] | None = None
    time: NDArray[Any] | None = None
    classes: Classes = None

    @property
    def used(self) -> Places | None:
        """Rows of positive weight; None for all."""
        return None if self.weight is None or (self.weight > 0).all() else np.flatnonzero(self.weight)

    def fit(
        self, member: BaseEstimator, name: str, rows: Places | None, by_code: bool, params: dict[str, Any]
    ) -> BaseEstimator:
        """Fit a member to some rows, or to all rows if they are None."""
        target = self.codes if by_code and self.codes is not None else self.target
        taken = slice(None) if rows is None else rows
        params = {key: value if rows is None else rows_of(value, rows, len(target)) for key, value in params.items()}
        by_row = (self.weight, self.groups, self.time)
        weight, groups, time = (values if values is None else values[taken] for values in by_row)
        if weight is not None and takes_weights(member):
            params["sample_weight"] = weight
        params = row_arguments(member, groups, time, weight) | params
        try:
            member.fit(self.table.take(rows), target[taken], **params)
            return member
        except Exception as error:
            hint = "; if it takes numbers only, put it in a pipeline that encodes the other columns"
            note = f"This happened while fitting {name!r}, {with_article(type(member).__name__)}"
            error.add_note(f"{note}{'' if isinstance(member, Estimator) else hint}.")
            raise


class MeanPredictions:
    """Mean prediction of each row over the models that did not see it.

    Attributes
    ----------
    n_rows : int
        Rows of the table.
    """

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self._count = np.zeros((n_rows, 1))
        self._total = np.zeros((n_rows, 1))

    def add(self, rows: Places | NDArray[np.bool_], predicted: NDArray[np.float64]) -> None:
        """Add the predictions of a model for rows that it did not see, (n, width)."""
        if not len(predicted):
            return
        if self._total.shape[1] != predicted.shape[1]:
            self._total = np.zeros((self.n_rows, predicted.shape[1]))
        self._total[rows] += predicted
        self._count[rows] += 1

    @property
    def value(self) -> NDArray[np.float64]:
        """Mean predictions, (n_rows, width); NaN where no model predicts a row."""
        return np.where(self._count > 0, self._total / np.maximum(self._count, 1), np.nan)


def gets_codes(estimator: BaseEstimator) -> bool:
    """Return whether a classifier gets class codes as its target, as in scikit-learn; spinney's get the labels."""
    return not isinstance(estimator, Estimator)


def are_foreign(templates: Sequence[BaseEstimator]) -> bool:
    """Return whether any of the estimators is of another library."""
    return not all(isinstance(template, Estimator) for template in templates)


DROPPED = "drop"


def estimator_of_name(name: str, task: str) -> BaseEstimator:
    """Return the estimator of a model name of ``spinney fit --model``, with its default settings.

    Models that compare rows by their terms are fitted to standardised columns: ``scale="standard"``.

    Parameters
    ----------
    name : str
        Such as "forest" or "k-NN"; capitals, hyphens, underscores and spaces make no difference.
    task : {"Classifier", "Regressor"}

    Returns
    -------
    estimator
    """
    known = {_letters(key): key for key in FITTED_BY_COMMAND}
    key = known.get(_letters(name))
    if key is None:
        hint = nearest_name(name, FITTED_BY_COMMAND, "")
        raise ValueError(
            f"There is no model called {name!r}.{hint and ' ' + hint} Names are {', '.join(FITTED_BY_COMMAND)}."
        )
    kind = estimator_of(FITTED_BY_COMMAND[key], task == "Classifier")
    if kind is None:
        raise ValueError(f"{name!r} is not available as a {task.lower()}. Use another model.")
    return with_standard_scale(public(kind)(**SETTINGS_OF_NAME.get(key, {})))


def _letters(name: str) -> str:
    return name.translate(str.maketrans("", "", "-_ ")).lower()


def with_standard_scale(estimator: Any) -> Any:
    """Set ``scale="standard"`` in an estimator that does not scale columns by default."""
    if estimator.get_params(deep=False).get("scale", "") is None:
        estimator.set_params(scale="standard")
    return estimator


def read_members(members: Any, what: str = "estimators") -> list[tuple[str, Any]]:
    """Return the members of an ensemble with their names, as estimators or model names.

    Parameters
    ----------
    members : list or dict
        Estimators, model names, or pairs of a name and one of these; a dict from names to these.
    what : str
        Name of the parameter in errors.

    Returns
    -------
    list of (str, estimator or str)
        Without members that are "drop".
    """
    retained = [(name, member) for name, member in name_members(members, what) if not is_dropped(member)]
    if not retained:
        raise ValueError(f"{what} has no estimator left. Pass at least one.")
    return retained


def is_dropped(member: object) -> bool:
    """Return whether a member is left out of its ensemble."""
    return isinstance(member, str) and member == DROPPED


def name_members(members: Any, what: str = "estimators") -> list[tuple[str, Any]]:
    """Return the members of an ensemble with their names, as `read_members`, with those that are "drop"."""
    if isinstance(members, Mapping):
        members = list(members.items())
    if isinstance(members, (str, bytes)) or not isinstance(members, (list, tuple)):
        raise TypeError(
            f"{what} must be a list of estimators, names or pairs of both, or a dict. Got {members!r:.100}."
        )
    pairs = []
    for item in members:
        pair = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
        if not (pair[0] is None or isinstance(pair[0], str)) or not _can_be_fitted(pair[1]):
            raise TypeError(
                f"{what} holds {item!r:.100}, which is neither an estimator with fit and predict, a name such as "
                "'forest', nor a pair of a name and one of these."
            )
        pairs.append(pair)
    names = _names(pairs)
    _check_names(names, what)
    return [(name, member) for name, (_, member) in zip(names, pairs, strict=True)]


def _can_be_fitted(estimator: object) -> bool:
    if isinstance(estimator, str):
        return True
    return not isinstance(estimator, type) and hasattr(estimator, "fit") and hasattr(estimator, "predict")


def _names(pairs: list[tuple[str | None, Any]]) -> list[str]:
    """Return the names of members; without one, the model name or the class in lower case, numbered if it repeats."""
    names = [
        name if name is not None else one.replace("-", "_") if isinstance(one, str) else type(one).__name__.lower()
        for name, one in pairs
    ]
    repeated = {name for name, count in Counter(names).items() if count > 1}
    seen: Counter[str] = Counter()
    numbered = []
    for name, (own_name, _) in zip(names, pairs, strict=True):
        seen[name] += 1
        numbered.append(f"{name}-{seen[name]}" if name in repeated and own_name is None else name)
    return numbered


def _check_names(names: list[str], what: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"Names provided are not unique: {what} has {repeated[0]!r} twice. Give each its own name.")
    invalid = [name for name in names if "__" in name]
    if invalid:
        raise ValueError(f"Estimator names must not contain __: got {invalid[0]!r}.")
