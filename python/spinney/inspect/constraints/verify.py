"""Promises that a fitted model keeps, or a case in which it does not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._data.display import Backend, frame_of, one_line, shortest
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.boosting import FittedBoosting
from spinney._model.model import FittedModel, ModelOfTrees
from spinney.inspect.constraints import monotone
from spinney.inspect.explain.target_model import all_cuts, point_table

_MOST_STEPS = 200_000
_COLUMNS = ("column", "direction", "verdict", "how")
_ROUNDING = 2.0**-50  # of each of the values that are added up


@dataclass(frozen=True, eq=False)
class BrokenPromise:
    """Two rows that differ in one column, and predictions in the wrong order.

    Attributes
    ----------
    column : str
        The column.
    rows : tuple of two dicts
        Values by column, the lower one of the column first; None is no value.
    predictions : tuple of two floats
        What the model says of them: values, or shares of the second class.

    Examples
    --------
    >>> import spinney
    >>> X, y = [[float(i)] for i in range(40)], [float(i < 20) for i in range(40)]
    >>> model = spinney.DecisionTreeRegressor(max_depth=1).fit(X, y)
    >>> model.verify_constraints([1]).broken["x0"].predictions
    (1.0, 0.0)
    """

    column: str
    rows: tuple[dict[str, Any], dict[str, Any]]
    predictions: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Promises:
    """What `verify_constraints` found; prints as text.

    Attributes
    ----------
    columns : dict of lists
        One entry for each constrained column: `column`, `direction` (1 or -1), `verdict` ("proved", "broken" or "not
        decided") and `how` (in words); of several outputs, for each of these too, with its place as `output`.
    broken : dict of str to BrokenPromise
        A counter-example for each column that has one; of several outputs, by names such as "size, output 1".

    Examples
    --------
    >>> import spinney
    >>> X, y = [[float(i)] for i in range(60)], [float(i % 7) for i in range(60)]
    >>> model = spinney.GradientBoostingRegressor(n_estimators=5, monotonic_cst=[1]).fit(X, y)
    >>> print(model.verify_constraints())
    x0 rises: proved, every tree does
    """

    columns: dict[str, list[Any]]
    broken: dict[str, BrokenPromise]

    @property
    def holds(self) -> bool | None:
        """Whether all constraints are proved; False if one is broken, None if that could not be decided."""
        verdicts = set(self.columns["verdict"])
        return False if "broken" in verdicts else None if "not decided" in verdicts else True

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return `columns` as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per constrained column.
        """
        return frame_of(self.columns, backend)

    def __repr__(self) -> str:
        n, proved = len(self.columns["column"]), self.columns["verdict"].count("proved")
        return f"<Promises: {proved} of {n} proved, {len(self.broken)} broken>"

    def __str__(self) -> str:
        lines, outputs = [], self.columns.get("output", [None] * len(self.columns["column"]))
        parts = (self.columns[name] for name in _COLUMNS)
        for output, name, direction, verdict, how in zip(outputs, *parts, strict=True):
            where = "" if output is None else f" in output {output}"
            lines.append(f"{one_line(name)} {'rises' if direction > 0 else 'falls'}{where}: {verdict}, {how}")
        return "\n".join(lines)


def verify_constraints(
    estimator: TableEstimator, monotonic_cst: object = None, *, max_steps: int = _MOST_STEPS
) -> Promises:
    """Prove that the model is monotone in its constrained columns, or find two rows for which it is not.

    All rows that there can be are looked at, not some that were tried: every value between and at the thresholds,
    every category, values missing in other columns. A missing value in the constrained column itself is neither
    more nor less than a number, so it is compared with nothing.

    Parameters
    ----------
    monotonic_cst : array-like of -1, 0, 1 or dict by column name, optional
        What to verify; None: what the model was asked to keep. A boosted model of several outputs takes one for
        all, or a list of one for each.
    max_steps : int, default=200000
        Most steps of a column's search, which is only needed where a single tree is not monotone, though their
        sum may be. Beyond them the verdict is "not decided". A hundred thousand take about a second.

    Returns
    -------
    Promises
        A verdict for each column, and counter-examples; prints as text.
    """
    check_is_fitted(estimator)
    model = estimator
    given = getattr(model, "monotonic_cst", None) if monotonic_cst is None else monotonic_cst
    if model.schema_.pool is not None or not (hasattr(model, "monotonic_cst") or hasattr(model, "boosting_")):
        raise ValueError(f"{type(estimator).__name__} splits on no single columns that could be monotone.")
    directions = estimator._constrained_directions(given)
    if not directions:
        raise ValueError("There are no constraints to verify. Fit with monotonic_cst, or pass it here.")
    if hasattr(model, "init_"):
        raise ValueError(
            f"The scores start at {type(model.init_).__name__}, of which nothing can be proved here. Fit with "
            "init='constant'."
        )
    if model._fitted.has_linear_leaves:
        raise ValueError(
            "Nothing is proved of lines in leaves (linear_leaves=True), which may fall where values rise. Fit with "
            "linear_leaves=False."
        )
    n_outputs = _provable_outputs(model)
    if n_outputs == 1:
        return _Verifier(model, 0).verify(directions[0], int(max_steps))
    of_outputs = directions * n_outputs if len(directions) == 1 else directions
    found = [_Verifier(model, k).verify(asked, int(max_steps)) for k, asked in enumerate(of_outputs)]
    return _together(found, is_sorted=_has_sorted_outputs(model._fitted))


def _provable_outputs(model: TableEstimator) -> int:
    """Return the number of outputs, each of which has a score that can be monotone; refuse a model that has not."""
    fitted, n_outputs = model._fitted, int(getattr(model, "n_outputs_", 1))
    assert isinstance(fitted, ModelOfTrees)
    most_classes = int(np.max(getattr(model, "n_classes_", 1)))
    if (n_outputs > 1 and not hasattr(fitted, "n_scores")) or most_classes > 2:
        raise ValueError(
            "Trees of several outputs, and models of more than two classes, have no one prediction that could be "
            "monotone. Fit one model for each."
        )
    if getattr(fitted, "n_scores", 1) > n_outputs and hasattr(model, "classes_"):
        raise ValueError("A model with a score for each class has no one score that could be monotone.")
    return n_outputs


def _together(found: list[Promises], is_sorted: bool) -> Promises:
    """Return the verdicts of several outputs as those of one model.

    Where a row's outputs are put in order, they rise if the scores of all do; of some alone nothing follows.
    """
    columns = {name: [cell for one in found for cell in one.columns[name]] for name in _COLUMNS}
    columns["output"] = [k for k, one in enumerate(found) for _ in one.columns["column"]]
    verdicts = list(zip(columns["column"], columns["direction"], columns["verdict"], strict=True))
    n_alike = Counter(verdicts)
    for i, found_verdict in enumerate(verdicts):
        if is_sorted and found_verdict[-1] == "proved" and n_alike[found_verdict] < len(found):
            columns["verdict"][i] = "not decided"
            columns["how"][i] = "outputs are put in order, and another is not proved to go the same way"
    broken = {f"{name}, output {k}": example for k, one in enumerate(found) for name, example in one.broken.items()}
    return Promises({"output": columns.pop("output")} | columns, broken)


class _Verifier:
    """The trees of one of a model's outputs, and how their sum becomes a prediction."""

    def __init__(self, model: TableEstimator, output: int) -> None:
        self._model, self._fitted, self._output = model, model._fitted, output
        self._has_classes = hasattr(model, "classes_")
        self._trees = self._fitted.trees()[output :: getattr(self._fitted, "n_scores", 1)]
        takes_others = model._unseen_policy == "other"
        self._states = [
            monotone.ColumnStates(feature, all_cuts(self._trees, j), takes_others)
            for j, feature in enumerate(model.schema_.features)
        ]
        self._place = 1 if self._trees[0].value_width == 2 else 0

    def verify(self, directions: list[int], max_steps: int) -> Promises:
        names = self._model.schema_.names
        verdicts = {j: self._verdict(j, direction, max_steps) for j, direction in enumerate(directions) if direction}
        lines = [(names[j], directions[j], verdict, how) for j, (verdict, how, _) in verdicts.items()]
        columns = {name: [line[k] for line in lines] for k, name in enumerate(_COLUMNS)}
        return Promises(columns, {names[j]: example for j, (_, _, example) in verdicts.items() if example is not None})

    def _verdict(self, j: int, direction: int, max_steps: int) -> tuple[str, str, BrokenPromise | None]:
        trees = [monotone.TreeOfSum(tree, self._place, direction, self._states) for tree in self._trees]
        way = "it does" if len(trees) == 1 else "every tree does"
        if all(tree.rises(j) for tree in trees):
            return "proved", "it never splits on it" if not any(j in t.feature for t in trees) else way, None
        slack, steps = _ROUNDING * sum(max(map(abs, tree.value)) for tree in trees), monotone.Steps(max_steps)
        try:
            found = monotone.falling_box(trees, j, self._states[j], slack, steps)
        except monotone.NotDecidedError:
            return "not decided", f"within {max_steps} steps", None
        if found is None:
            return "proved", "their sum does, though a tree of it does not", None
        example = self._example(j, direction, *found)
        if example is None:
            return "not decided", "rows that should break it do not: surrogates or rounding have a say", None
        first, second = (shortest(prediction, 6) for prediction in example.predictions)
        return "broken", f"it says {first} and then {second} where all else is the same", example

    def _example(self, j: int, direction: int, low: int, high: int, box: monotone.Box) -> BrokenPromise | None:
        """Make two rows, and see what the model says of them."""
        boxes = [{**box, j: 1 << bin_} for bin_ in (low, high)]
        rows = [[states.number_of(b.get(k, states.any)) for k, states in enumerate(self._states)] for b in boxes]
        table = point_table(self._model.schema_, dict(enumerate(np.array(rows).T)))
        every = self._fitted.predictions(table, 1)
        predictions = every[:, self._output * 2 + 1 if every.shape[1] > 1 and self._has_classes else self._output]
        compared = predictions
        if hasattr(self._fitted, "scores") and not _has_sorted_outputs(self._fitted):  # a row's quantiles are sorted
            compared = self._fitted.scores(table, 1)[:, self._output]
        if not direction * (compared[1] - compared[0]) < 0:
            return None
        features = self._model.schema_.features
        named = [
            dict(zip(self._model.schema_.names, map(monotone.value_of, features, row), strict=True)) for row in rows
        ]
        return BrokenPromise(features[j].name, (named[0], named[1]), (float(predictions[0]), float(predictions[1])))


def _has_sorted_outputs(fitted: FittedModel) -> bool:
    """Return whether a row's outputs are quantiles in ascending order."""
    return isinstance(fitted, FittedBoosting) and fitted.link == "ascending"
