"""Weak learners by name, any estimator as one, and the best of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from spinney._data.design import Design
from spinney._data.select import pick_table
from spinney._ensemble.functional.learners.linear import Linear, Logistic
from spinney._ensemble.functional.learners.local import KernelRidge, Neighbors
from spinney._ensemble.functional.learners.splines import Splines
from spinney._ensemble.functional.learners.trees import Trees
from spinney._ensemble.functional.learners.weak import Candidate, Fitter, Floats, LearningTable, WeakLearner
from spinney._ensemble.member_fits import LARGEST_SEED, random_state_names, set_random_states, takes_weights
from spinney._model.file.container import refuse
from spinney._model.functional.steps import Inputs, Steps

BY_NAME: dict[str, WeakLearner] = {
    "stumps": Trees(),
    "trees": Trees(max_depth=3),
    "linear": Linear(),
    "linear_pairs": Linear(n_features=2),
    "logistic": Logistic(),
    "logistic_pairs": Logistic(n_features=2),
    "splines": Splines(),
    "neighbors": Neighbors(),
    "kernel_ridge": KernelRidge(),
}


def read_learners(given: Any) -> list[Any]:
    """Return the weak learners that a user asks for, by name or as objects, one or several."""
    found = []
    for entry in given if isinstance(given, (list, tuple)) else [given]:
        if isinstance(entry, str):
            if entry not in BY_NAME:
                raise ValueError(f"learners has no {entry!r}. Its names are {', '.join(map(repr, BY_NAME))}.")
            found.append(BY_NAME[entry])
        elif isinstance(entry, WeakLearner):
            entry._check()
            found.append(entry)
        elif hasattr(entry, "fit") and hasattr(entry, "predict") and not isinstance(entry, type):
            found.append(entry)
        else:
            raise TypeError(
                "learners must be names, weak learners of spinney.learners or regressors with fit and predict, not "
                f"{entry!r}."
            )
    if not found:
        raise ValueError("learners is empty. Name at least one weak learner, such as 'stumps'.")
    return found


_KINDS = {kind.__name__: kind for kind in (Trees, Linear, Logistic, Splines, Neighbors, KernelRidge)}


def learners_to_json(given: Any) -> Any:
    """Return weak learners as names and parameters; other regressors stay as they are, and cannot be saved."""
    if isinstance(given, (list, tuple)):
        return [learners_to_json(entry) for entry in given]
    if type(given) in _KINDS.values():
        return {"learner": type(given).__name__, "parameters": given.get_params()}
    return given


def learners_from_json(saved: Any) -> Any:
    """Turn back what `learners_to_json` gives."""
    if isinstance(saved, list):
        return [learners_from_json(entry) for entry in saved]
    if not isinstance(saved, dict):
        return saved
    kind, parameters = saved.get("learner"), saved.get("parameters")
    if kind not in _KINDS or not isinstance(parameters, dict):
        refuse("is damaged: it has a weak learner that this spinney does not know")
    learner = _KINDS[kind](**parameters)
    learner._check()
    return learner


def name_of(learner: BaseEstimator) -> str:
    """Return a learner in a word or two, for reports."""
    for name, known in BY_NAME.items():
        if type(known) is type(learner) and known.get_params() == learner.get_params():
            return name
    return repr(learner).replace("\n", "")


@dataclass(frozen=True)
class Chosen:
    """The best function of a round.

    Attributes
    ----------
    part : int
        Its learner.
    candidate : Candidate
    gain : float
        Squared residuals that it explains at its best factor.
    """

    part: int
    candidate: Candidate
    gain: float


class Dictionary:
    """Weak learners at work on one table.

    Attributes
    ----------
    fitters : list of Fitter
        Those that can fit anything.
    names : list of str
    """

    def __init__(self, learners: list[BaseEstimator], table: LearningTable) -> None:
        begun: list[Fitter] = [
            learner._begin(table) if isinstance(learner, WeakLearner) else ForeignFitter(learner, table)
            for learner in learners
        ]
        named = zip(map(name_of, learners), begun, strict=True)
        usable = [entry for entry in named if entry[1].can_fit] or [("constant", Trees()._begin(table))]
        self.names = [name for name, _ in usable]
        self.fitters = [fitter for _, fitter in usable]

    def best(self, residual: Floats, weight: Floats) -> Chosen:
        """Fit all learners to residuals and return the one that explains most of them; the first of equals."""
        found: Chosen | None = None
        for part, fitter in enumerate(self.fitters):
            candidate = fitter.fit(residual, weight)
            size = float((weight * candidate.values * candidate.values).sum())
            along = float((weight * candidate.values * residual).sum())
            gain = along * along / size if size > 0 else 0.0
            if gain == np.inf:  # the square alone is too large
                gain = along * (along / size)
            if found is None or gain > found.gain:
                found = Chosen(part, candidate, gain)
        assert found is not None
        return found


class ForeignSteps(Steps):
    """Fitted estimators of any kind; these cannot be saved, only pickled."""

    kind = "estimators"

    def __init__(self, members: list[BaseEstimator] | None = None) -> None:
        self.members = members or []

    def __len__(self) -> int:
        return len(self.members)

    def read(self, inputs: Inputs) -> Any:
        """Return the caller's table."""
        if inputs.native is None:
            raise TypeError("Members that are not spinney's own read tables. Use predict instead of a row handle.")
        return inputs.native

    def values(self, inputs: Inputs, step: int) -> Floats:
        """Return what a member predicts."""
        return np.asarray(self.members[step].predict(inputs.of(self)), dtype=np.float64).reshape(inputs.n_rows)

    def features(self, step: int, design: Design) -> tuple[int, ...]:
        """Return all columns that vary."""
        return tuple(np.unique(design.feature).tolist())

    def identity(self) -> bytes:
        """Refuse: only the members' own libraries know their numbers."""
        raise TypeError(
            f"Members of the type {type(self.members[0]).__name__} have no fingerprint, so the model has none."
        )

    def first(self, n_steps: int) -> ForeignSteps:
        """Return the first members alone."""
        return ForeignSteps(self.members[:n_steps])

    def to_json(self) -> dict[str, Any]:
        """Refuse: a file holds no code."""
        raise TypeError(
            f"A model file holds spinney's own weak learners; this model has members of the type "
            f"{type(self.members[0]).__name__}. Pickle the model instead."
        )


class ForeignFitter(Fitter):
    """Fits clones of an estimator; rows are drawn by weight if it takes no weights."""

    def __init__(self, estimator: BaseEstimator, table: LearningTable) -> None:
        self._estimator = estimator
        self._inputs = table.inputs
        self._table = pick_table(table.inputs.native)
        self._states = random_state_names(estimator)
        self._random = np.random.RandomState(table.seed)
        self._takes_weights = takes_weights(estimator)
        self.steps: ForeignSteps = ForeignSteps()

    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Fit a member."""
        member = clone(self._estimator)
        set_random_states(member, self._states, int(self._random.randint(LARGEST_SEED)))
        rows: NDArray[np.intp] = np.flatnonzero(weight > 0)
        is_even = bool((weight[rows] == weight[rows[0]]).all())
        if not is_even and not self._takes_weights:
            rows = self._random.choice(rows, len(rows), p=weight[rows] / weight[rows].sum())
        weighted = {"sample_weight": weight[rows]} if not is_even and self._takes_weights else {}
        member.fit(self._table.take(rows), residual[rows], **weighted)
        values = np.asarray(member.predict(self._inputs.native), dtype=np.float64).reshape(len(residual))
        return Candidate(values, lambda: self.steps.members.append(member))
