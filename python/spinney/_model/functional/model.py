"""Fitted functional boosting: a sum of functions of several kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.design import Design
from spinney._data.types import Floats
from spinney._model.boosting import FittedBoosting
from spinney._model.file.codec import Field, Known, array, integer, numbers, saved_fields, text
from spinney._model.file.container import refuse
from spinney._model.functional.local import KernelSteps, NeighbourSteps
from spinney._model.functional.steps import Inputs, LinearSteps, LogisticSteps, SplineSteps, Steps, TreeSteps
from spinney._model.links import is_link, is_of_classes
from spinney._model.model import DESIGN, ModelSpec, ScoredModel, digest_of

STEP_KINDS: dict[str, type[Steps]] = {
    kind.kind: kind for kind in (TreeSteps, LinearSteps, LogisticSteps, SplineSteps, NeighbourSteps, KernelSteps)
}


_N_TREES = saved_fields(n_trees=integer(least=0))


def _write_parts(parts: list[Steps]) -> list[dict[str, Any]]:
    return [{"kind": part.kind, "n_trees": len(part.trees()), **part.to_json()} for part in parts]


def _read_parts(entries: Any, name: str, known: Known) -> list[Steps]:
    """Read the steps of each weak learner; their trees follow each other in the file."""
    trees: list[_engine.Tree] = known["trees"]
    parts: list[Steps] = []
    first = 0
    for entry in entries if isinstance(entries, list) else [None]:
        if not isinstance(entry, dict) or entry.get("kind") not in STEP_KINDS:
            refuse("holds steps of a kind that this spinney does not know: upgrade spinney")
        n_trees = _N_TREES.from_header(entry)["n_trees"]
        own = trees[first : first + n_trees]
        first += n_trees
        if len(own) < n_trees or any(tree.value_width != 1 for tree in own):
            refuse("is damaged: it lacks trees, or a tree does not fit its outputs")
        kind = STEP_KINDS[entry["kind"]]
        parts.append(kind.make(own, kind.saved.from_header(entry, **known), known["schema"]))
    if first != len(trees):
        refuse("is damaged: its steps do not account for its trees")
    return parts


@dataclass(eq=False, repr=False)
class FittedFunctions(ScoredModel):
    """A fitted functional boosting model: a start plus functions of several kinds, each times a factor.

    Attributes
    ----------
    start : ndarray of shape (n_scores,)
        Score of every row before the first step.
    link : str
        Name of the function from scores to predictions.
    design : Design
        How columns become terms.
    parts : list of Steps
        The steps of each weak learner.
    part_of, factors : ndarray of shape (n_rounds, n_scores)
        Learner chosen in each round for each score, and the factor of its step.
    means : ndarray of shape (n_scores, n_features)
        Mean over the training rows of all steps that read one column alone; shapes are centred by it.
    ranges : ndarray of shape (n_features, 2)
        Lowest and highest number of each column at fit.
    """

    kind = "functions"
    attribute = "functions_"
    noun = "sum of functions"
    takes_costs = False
    saved = saved_fields(
        start=numbers(np.float64, "n_scores"),
        link=text(),
        design=DESIGN,
        parts=Field(_write_parts, _read_parts),
        part_of=array("int32", "n_rounds", "n_scores", least=0),
        factors=array("float64", "n_rounds", "n_scores"),
        means=array("float64", "n_scores", "n_features"),
        ranges=array("float64", "n_features", 2, finite=False),
    )

    start: Floats
    link: str
    design: Design
    parts: list[Steps]
    part_of: NDArray[np.int32]
    factors: Floats
    n_classes: InitVar[list[int] | None]
    means: Floats
    ranges: Floats

    def __post_init__(self, n_classes: list[int] | None) -> None:
        super().__init__(n_classes, 1)
        self._step_of = _positions(self.part_of, len(self.parts))

    @classmethod
    def empty(cls, start: Floats, link: str, design: Design, n_classes: list[int] | None) -> FittedFunctions:
        """Return a model without functions, which turns scores into predictions."""
        none = np.empty((0, len(start)))
        return cls(start, link, design, [], none.astype(np.int32), none, n_classes, none, none)

    def __repr__(self) -> str:
        return f"<FittedFunctions: {self.n_rounds} rounds, {len(self.parts)} kinds of functions>"

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.part_of)

    @property
    def n_scores(self) -> int:
        """Number of scores of a row."""
        return len(self.start)

    def trees(self) -> list[_engine.Tree]:
        """Return the trees among the functions."""
        return [tree for part in self.parts for tree in part.trees()]

    def step(self, round_: int, score: int) -> tuple[Steps, int]:
        """Return the steps of the learner chosen for a round and score, and the position of the step among these."""
        return self.parts[self.part_of[round_, score]], int(self._step_of[round_, score])

    def features(self, round_: int, score: int) -> tuple[int, ...]:
        """Return the columns that a step reads."""
        part, step = self.step(round_, score)
        return part.features(step, self.design)

    # ---- predicting ------------------------------------------------------------------------------------------

    def inputs(self, columns: _engine.Table, n_jobs: int, native: object = None) -> Inputs:
        """Return rows as the steps read them."""
        return Inputs(columns, self.design, n_jobs, native)

    def scores(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Add up all steps and the start, (n_rows, n_scores)."""
        return self.scores_of(self.inputs(columns, n_jobs))

    def scores_of(self, inputs: Inputs) -> Floats:
        """Add up all steps and the start, (n_rows, n_scores)."""
        found = np.empty((inputs.n_rows, self.n_scores))
        for k in range(self.n_scores):
            found[:, k] = self.start[k]
            for p, part in enumerate(self.parts):
                mine = np.flatnonzero(self.part_of[:, k] == p)
                if len(mine):
                    found[:, k] += part.total(inputs, self._step_of[mine, k], self.factors[mine, k])
        return found

    def staged_scores(self, inputs: Inputs) -> Iterator[Floats]:
        """Yield the scores after each round; those after the last are bit-identical to `scores_of`."""
        found = np.tile(self.start, (inputs.n_rows, 1))
        for round_ in range(self.n_rounds - 1):
            for k in range(self.n_scores):
                part, step = self.step(round_, k)
                found[:, k] += self.factors[round_, k] * part.values(inputs, step)
            yield found.copy()
        if self.n_rounds:
            yield self.scores_of(inputs)  # in another order of the steps

    def of_column(self, inputs: Inputs, feature: int, score: int) -> Floats:
        """Add up, for one score, the steps that read one column and no other."""
        total = np.zeros(inputs.n_rows)
        for round_ in range(self.n_rounds):
            part, step = self.step(round_, score)
            if part.features(step, self.design) == (feature,):
                total += self.factors[round_, score] * part.values(inputs, step)
        return total

    def shap_sums(self, inputs: Inputs, background: Inputs | None, n_categories: list[int]) -> tuple[Floats, Floats]:
        """Return base values, (n_scores,), and Shapley values, (n_rows, n_features, n_scores).

        A step of one column contributes its value minus its mean over the background, or over the training rows. Trees
        of several columns have Shapley values as in any sum of trees; other steps of several columns are refused.
        """
        base, values = self.start.copy(), np.zeros((inputs.n_rows, len(n_categories), self.n_scores))
        for k in range(self.n_scores):
            trees, alone = [], set()
            for round_ in range(self.n_rounds):
                (part, step), read = self.step(round_, k), self.features(round_, k)
                if len(read) == 1:
                    alone.add(read[0])
                elif isinstance(part, TreeSteps):
                    trees.append(_times(part.trees()[step], float(self.factors[round_, k])))
                elif not read:  # a constant
                    base[k] += self.factors[round_, k] * part.values(inputs, step).mean()
                else:
                    raise ValueError(
                        f"A step of the kind {part.kind!r} reads several columns, and of these only trees have Shapley "
                        "values. Fit stumps, trees, 'linear', 'logistic' or 'splines'."
                    )
            for j in sorted(alone):
                mean = self.means[k, j] if background is None else self.of_column(background, j, k).mean()
                values[:, j, k] += self.of_column(inputs, j, k) - mean
                base[k] += mean
            if trees:
                forest = FittedBoosting(trees, np.zeros(1), "identity", n_categories, None)
                unknown = None if background is None else background.columns
                of_trees, contributions, _ = forest.shap_sums(inputs.columns, unknown, False, inputs.n_jobs)
                base[k] += of_trees[0]
                values[:, :, k] += contributions.reshape(values.shape[:2])
        return base, values

    # ---- files -----------------------------------------------------------------------------------------------

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read the model from a header and trees."""
        n_classes, schema = spec.n_classes, spec.schema
        found = cls.saved.from_header(header, schema=schema, n_features=schema.n_features, trees=trees)
        link, parts, part_of = found["link"], found["parts"], found["part_of"]
        if spec.n_outputs != 1 or not is_link(link) or is_of_classes(link) != (n_classes is not None):
            refuse("is damaged: its link does not fit its target")
        wanted = n_classes[0] if n_classes is not None and link == "softmax" else 1
        if len(found["start"]) != wanted or (n_classes is not None and link != "softmax" and n_classes[0] != 2):
            refuse("is damaged: its scores do not fit its classes")
        counts = [int(np.count_nonzero(part_of == p)) for p in range(len(parts))]
        if not len(part_of) or sum(counts) != part_of.size or counts != [len(part) for part in parts]:
            refuse("is damaged: its rounds do not fit its steps")
        return cls(**found, n_classes=n_classes)

    def identity(self) -> bytes:
        """Hash of all numbers but those of the trees."""
        of_parts = b"".join(part.kind.encode() + part.identity() for part in self.parts)
        arrays: list[NDArray[Any]] = [self.start, self.part_of, self.factors, *self.design.arrays.values()]
        return digest_of(self.link, *arrays, np.frombuffer(of_parts, dtype=np.uint8))

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return super().attributes() | {"n_iter_": self.n_rounds}


def _times(tree: _engine.Tree, factor: float) -> _engine.Tree:
    """Return a tree with its values multiplied by a factor."""
    return tree.with_values(np.asarray(tree.value)[:, np.newaxis] * factor, tree.weight, tree.impurity)


def _positions(part_of: NDArray[np.int32], n_parts: int) -> NDArray[np.intp]:
    """Return the position of each step among those of its learner, in the order of rounds and scores."""
    flat = part_of.ravel()
    found = np.empty(len(flat), dtype=np.intp)
    for p in range(n_parts):
        mine = np.flatnonzero(flat == p)
        found[mine] = np.arange(len(mine))
    return found.reshape(part_of.shape)
