"""Forward stagewise fitting: each round adds a function along the negative gradient of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from spinney._boosting.boosters import Member
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.rounds import Rounds
from spinney._data.design import Design
from spinney._data.select import pick_table
from spinney._data.types import Floats
from spinney._ensemble.functional.learners.curves import Linear, Logistic, Splines
from spinney._ensemble.functional.learners.weak import (
    Candidate,
    Fitter,
    KernelRidge,
    LearningTable,
    Neighbors,
    Trees,
    WeakLearner,
)
from spinney._ensemble.functional.losses import FunctionalLoss, least_along
from spinney._ensemble.members import LARGEST_SEED, random_state_names, set_random_states, takes_weights
from spinney._model.file.container import refuse
from spinney._model.functional.steps import Inputs, Steps


@dataclass(frozen=True)
class HeldOutRows:
    """The validation rows, and their inputs if they are rows of another table."""

    rows: LearningRows
    inputs: Inputs | None


@dataclass(frozen=True)
class StepSettings:
    """How rounds are fitted.

    Attributes
    ----------
    learning_rate : float
        Factor of all steps.
    searches : bool
        Whether the step length is searched.
    subsample : float
        Fraction of the rows drawn in each round.
    seed : int
        Draws them.
    init : float or None
        Score before the first round; None: the constant of the smallest loss.
    """

    learning_rate: float
    searches: bool
    subsample: float
    seed: int
    init: float | None


class Stages:
    """The steps of one fit, as `Rounds` runs them.

    Attributes
    ----------
    part_of : list of lists of int
        Learner chosen in each round for each score.
    factors : list of lists of float
        Factor of its function: learning rate times step length.
    steps, gains : list of float
        Step length of each round, and the squared gradient that its functions explain.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        loss: FunctionalLoss,
        rows: LearningRows,
        held_out: HeldOutRows | None,
        settings: StepSettings,
    ) -> None:
        self.dictionary, self._loss, self._rows = dictionary, loss, rows
        self._settings = settings
        self.start = start = loss.start(rows)
        if settings.init is not None:
            start[:] = settings.init
        self._random = np.random.RandomState(settings.seed)
        self.scores = np.repeat(start[:, np.newaxis], len(rows.target), axis=1)
        self.held_out = held_out
        self._own_scores: Floats | None = None
        if held_out is not None and held_out.inputs is not None:
            self._own_scores = np.repeat(start[:, np.newaxis], len(held_out.rows.target), axis=1)
        self.part_of: list[list[int]] = []
        self.factors: list[list[float]] = []
        self.steps: list[float] = []
        self.gains: list[float] = []

    @property
    def weight(self) -> Floats:
        """Weights of the training rows."""
        return self._rows.weights()

    @property
    def n_rounds(self) -> int:
        """Number of completed rounds."""
        return len(self.steps)

    @property
    def is_done(self) -> bool:
        """Whether the last round could not lower the loss."""
        return bool(self.steps) and self.steps[-1] == 0.0

    def advance(self, n_rounds: int) -> None:
        """Run some rounds."""
        for _ in range(n_rounds):
            self._take_step()

    def _take_step(self) -> None:
        loss, rows = self._loss, self._rows
        loss.begin_round(self.scores, rows)
        weight = self._round_weights()
        slopes = loss.slopes(self.scores, rows)
        chosen = [self.dictionary.best(-slope, weight) for slope in slopes]
        directions = np.array([choice.candidate.values for choice in chosen])
        step = self._step(directions, weight) if self._settings.searches else 1.0
        factor = self._settings.learning_rate * step
        for k, choice in enumerate(chosen):
            choice.candidate.add()
            self._move_held_out(k, choice.part, factor)
        self.scores = self.scores + factor * directions
        self.part_of.append([choice.part for choice in chosen])
        self.factors.append([factor] * len(chosen))
        self.gains.append(float(sum(choice.gain for choice in chosen)))
        self.steps.append(step)  # last: an interruption before it leaves the round undone

    def _round_weights(self) -> Floats:
        """Return the weights of the rows in a round; rows that are not drawn have weight 0."""
        weight = self._rows.weights()
        if self._settings.subsample == 1:
            return weight
        used = np.flatnonzero(weight > 0)
        drawn = self._random.choice(used, max(1, round(self._settings.subsample * len(used))), replace=False)
        found = np.zeros(len(weight))
        found[drawn] = weight[drawn]
        return found

    def _step(self, directions: Floats, weight: Floats) -> float:
        def slope(step: float) -> float:
            slopes = self._loss.slopes(self.scores + step * directions, self._rows)
            return float(((slopes * directions).sum(axis=0) * weight).sum())

        return least_along(slope, 1.0)

    def _move_held_out(self, score: int, part: int, factor: float) -> None:
        """Add the last function of a learner to a score of the validation rows, if they are rows of another table."""
        if self.held_out is not None and self.held_out.inputs is not None and self._own_scores is not None:
            steps = self.dictionary.fitters[part].steps
            self._own_scores[score] += factor * steps.values(self.held_out.inputs, len(steps) - 1)

    # ---- losses ----------------------------------------------------------------------------------------------

    @property
    def loss_factor(self) -> float:
        """Factor of reported losses."""
        return self._loss.reported_factor

    def training_loss(self) -> float:
        """Return the mean loss of the training rows."""
        return self._loss.mean(self.scores, self._rows)

    def held_out_scores(self) -> Floats:
        """Return the scores of the validation rows, (n_scores, n_rows)."""
        return self.scores if self._own_scores is None else self._own_scores

    def held_out_loss(self) -> float:
        """Return the mean loss of the validation rows."""
        assert self.held_out is not None
        return self._loss.mean(self.held_out_scores(), self.held_out.rows)

    def out_of_bag_loss(self) -> tuple[float, float]:
        """Return NaN: rows that a round does not draw are not evaluated."""
        return np.nan, np.nan


class FunctionMember(Member):
    """The booster of a fit, which also stops when no function lowers the loss."""

    engine: Stages  # type: ignore[assignment]

    @property
    def has_stopped(self) -> bool:
        """Whether the validation loss no longer improves, or no function lowers the training loss."""
        return super().has_stopped or (self._recipe.stops_early and self.has_held_out and self.engine.is_done)


class FunctionRounds(Rounds):
    """Rounds of functional boosting."""

    def _advance(self, members: list[Member], n_rounds: int) -> None:
        for member in members:
            member.engine.advance(1)


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
    """Return the weak learners of the parameter `learners`: one or several names or objects."""
    found = []
    for entry in given if isinstance(given, (list, tuple)) else [given]:
        if isinstance(entry, str):
            if entry not in BY_NAME:
                raise ValueError(f"learners has no name {entry!r}. Names are {', '.join(map(repr, BY_NAME))}.")
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
    """Turn back what `learners_to_json` returns."""
    if isinstance(saved, list):
        return [learners_from_json(entry) for entry in saved]
    if not isinstance(saved, dict):
        return saved
    kind, parameters = saved.get("learner"), saved.get("parameters")
    if kind not in _KINDS or not isinstance(parameters, dict):
        refuse("is damaged: it has an unknown weak learner")
    learner = _KINDS[kind](**parameters)
    learner._check()
    return learner


def name_of(learner: BaseEstimator) -> str:
    """Return a short name of a learner, for reports."""
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
        Number of its learner.
    candidate : Candidate
    gain : float
        Squared residuals that it explains with the best factor.
    """

    part: int
    candidate: Candidate
    gain: float


class Dictionary:
    """The weak learners of a fit.

    Attributes
    ----------
    fitters : list of Fitter
        Learners that can fit the table.
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
        """Fit all learners to residuals and return the function that explains most of them; the first of equal ones."""
        found: Chosen | None = None
        for part, fitter in enumerate(self.fitters):
            candidate = fitter.fit(residual, weight)
            size = float((weight * candidate.values * candidate.values).sum())
            along = float((weight * candidate.values * residual).sum())
            gain = along * along / size if size > 0 else 0.0
            if gain == np.inf:  # the square overflows
                gain = along * (along / size)
            if found is None or gain > found.gain:
                found = Chosen(part, candidate, gain)
        assert found is not None
        return found


class ForeignSteps(Steps):
    """Fitted estimators of other libraries, which can be pickled but not saved."""

    kind = "estimators"

    def __init__(self, members: list[BaseEstimator] | None = None) -> None:
        self.members = members or []

    def __len__(self) -> int:
        return len(self.members)

    def read(self, inputs: Inputs) -> Any:
        """Return the caller's table."""
        if inputs.native is None:
            raise TypeError("Members of other libraries need tables. Use predict instead of a single-row predictor.")
        return inputs.native

    def values(self, inputs: Inputs, step: int) -> Floats:
        """Return the predictions of a member."""
        return np.asarray(self.members[step].predict(inputs.of(self)), dtype=np.float64).reshape(inputs.n_rows)

    def features(self, step: int, design: Design) -> tuple[int, ...]:
        """Return all columns that vary."""
        return tuple(np.unique(design.feature).tolist())

    def identity(self) -> bytes:
        """Refuse: estimators of other libraries have no fingerprint."""
        raise TypeError(
            f"Members of the type {type(self.members[0]).__name__} have no fingerprint, so the model has none."
        )

    def first(self, n_steps: int) -> ForeignSteps:
        """Return the first members."""
        return ForeignSteps(self.members[:n_steps])

    def to_json(self) -> dict[str, Any]:
        """Refuse: files hold no estimators of other libraries."""
        raise TypeError(
            f"A model file holds weak learners of spinney; this model has members of the type "
            f"{type(self.members[0]).__name__}. Pickle the model instead."
        )


class ForeignFitter(Fitter):
    """Fits clones of an estimator, to rows drawn by weight if it takes no weights."""

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
        are_weights_equal = bool((weight[rows] == weight[rows[0]]).all())
        if not are_weights_equal and not self._takes_weights:
            rows = self._random.choice(rows, len(rows), p=weight[rows] / weight[rows].sum())
        weighted = {"sample_weight": weight[rows]} if not are_weights_equal and self._takes_weights else {}
        member.fit(self._table.take(rows), residual[rows], **weighted)
        values = np.asarray(member.predict(self._inputs.native), dtype=np.float64).reshape(len(residual))
        return Candidate(values, lambda: self.steps.members.append(member))
