"""The results of a study: leaderboard, predictions, models."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import Any, cast

import numpy as np

from spinney._data.display import Backend, align, elide, fixed, frame_of, html_table, one_line, plural
from spinney._data.types import Floats, TableLike
from spinney._evaluate.problem import Array, Rows
from spinney._evaluate.scoring import Scorers, TestScore, is_loss, shown_name, shown_value
from spinney._evaluate.statistics import Difference, finite_or_none, p_text, with_error
from spinney._evaluate.study.columns import ColumnProfile
from spinney._evaluate.study.prepare import feature_columns
from spinney._evaluate.study.rows import RowNames
from spinney._model.file.container import Target

_WIDTH = 80  # of the printed leaderboard
_DIFFERENCE_CELL, _P_CELL, _TEST_CELL = 2, 3, 4  # places of columns: the first two may be left out


@dataclass(frozen=True, eq=False)
class Entry:
    """One row of the leaderboard.

    Attributes
    ----------
    name : str
        The model.
    scores : dict of str to ndarray of shape (n_folds,)
        By metric, for each fold of all repeats; larger is better, as for all scikit-learn scorers.
    mean, error : float
        Mean of the first metric over the folds, and its standard error, corrected for overlapping training sets.
    difference : Difference
        Difference to the first model, paired by fold: mean, error, low, high (a 95% interval), p_value, p_holm.
    fit_seconds, predict_seconds : float
        Mean time of a fit, and of predicting the held-out rows.
    test : dict of str to TestScore
        Score on the test set by metric, with a 95% interval: value, low, high.
    is_baseline, is_peer : bool
        Whether it is the baseline; whether it is a model of another library.
    """

    name: str
    scores: dict[str, Floats]
    mean: float
    error: float
    difference: Difference
    fit_seconds: float
    predict_seconds: float
    test: dict[str, TestScore]
    is_baseline: bool = False
    is_peer: bool = False

    @property
    def test_score(self) -> TestScore:
        """Score on the test set by the first metric."""
        return next(iter(self.test.values()))


@dataclass(eq=False)
class Findings:
    """The results of a study without its report; `Study` documents the attributes."""

    task: str
    scorers: Scorers
    target: str
    classes: Array | None
    columns: list[ColumnProfile]
    notes: list[str]
    X_train: Any
    y_train: Array
    X_test: Any
    y_test: Array
    train_rows: RowNames
    test_rows: RowNames
    folds: list[tuple[Rows, Rows]]
    leaderboard: list[Entry]
    models: dict[str, Any]
    out_of_fold: dict[str, Floats]
    test_predictions: dict[str, Floats]
    best: str
    why: str
    model: Any
    single: str
    single_model: Any
    calibration: str
    tree: Any
    n_rows: int
    seconds: float
    n_repeats: int = 1
    tree_seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    source: str = ""
    command: str = ""
    is_interrupted: bool = False

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics; the first ranks the models."""
        return list(self.scorers.metrics)

    @property
    def metric(self) -> str:
        """The metric that ranks the models."""
        return self.metrics[0]

    def __getitem__(self, name: str) -> Entry:
        """Return the leaderboard row of a model."""
        for entry in self.leaderboard:
            if entry.name == name:
                return entry
        raise KeyError(f"{name!r} is not in this study, but {', '.join(one.name for one in self.leaderboard)} are.")

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the leaderboard as a frame: one row per model.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame. None: pandas if it is installed.

        Returns
        -------
        DataFrame
            Scores follow scikit-learn's scorers: larger is better.
        """
        rows = [_entry_to_dict(entry) for entry in self.leaderboard]
        return frame_of({key: [row[key] for row in rows] for key in rows[0]}, backend)

    def to_dict(self) -> dict[str, Any]:
        """Return the results, without tables and models, as a dict that JSON can represent.

        Returns
        -------
        dict
            Text, numbers and lists; None in place of NaN and infinity.
        """
        results = {
            "task": self.task,
            "target": self.target,
            "metric": self.metric,
            "metrics": list(self.metrics),
            "classes": None if self.classes is None else self.classes.tolist(),
            "rows": self.n_rows,
            "training_rows": len(self.y_train),
            "test_rows": len(self.y_test),
            "folds": len(self.folds),
            "best": self.best,
            "why": self.why,
            "single": self.single,
            "calibration": self.calibration,
            "leaderboard": [_entry_to_dict(entry) for entry in self.leaderboard],
            "columns": [vars(column) for column in self.columns],
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }
        return cast(dict[str, Any], finite_or_none(results))

    def __repr__(self) -> str:
        return f"<Study of {self.target!r}: {len(self.leaderboard)} models; best {self.best}>"

    def __str__(self) -> str:
        return "\n".join([self.headline(), "", *self.board(), "", *self.notes])

    def headline(self) -> str:
        """Return a one-line summary.

        Returns
        -------
        str
            Target, columns, rows, folds and time.
        """
        task = "regression" if self.classes is None else f"{len(self.classes)} classes"
        used = sum(column.is_used for column in self.columns)
        return (
            f"Predicting {self.target} ({task}) from {plural(used, 'column')}; "
            f"{plural(len(self.y_train), 'training row')} in {self.folds_words()}, "
            f"{plural(len(self.y_test), 'test row')}; {self.seconds:.0f} s"
        )

    def folds_words(self) -> str:
        """Return the number of folds, and of repeats if there are several, as text."""
        n_folds = plural(len(self.folds) // self.n_repeats, "fold")
        return n_folds if self.n_repeats == 1 else f"{n_folds}, {self.n_repeats} repeats"

    def board(self) -> list[str]:
        """Return the leaderboard as lines of text, with as many columns as fit into 80 characters.

        Returns
        -------
        list of str
            A header, and a line for each model.
        """
        cells = self._cells()
        optional = [*range(len(cells[0]) - 2, _TEST_CELL, -1), len(cells[0]) - 1, _P_CELL]  # the last ones first
        while optional and max(map(len, align(cells))) > _WIDTH:
            dropped = optional.pop(0)
            cells = [[cell for k, cell in enumerate(row) if k != dropped] for row in cells]
            optional = [k - (k > dropped) for k in optional]
        without_difference = [row[:_DIFFERENCE_CELL] + row[_DIFFERENCE_CELL + 1 :] for row in cells]
        widest_first = (align(cells), align(cells, gap=" "), align(without_difference, gap=" "))
        return next((lines for lines in widest_first if max(map(len, lines)) <= _WIDTH), widest_first[-1])

    def _cells(self) -> list[list[str]]:
        name, others = shown_name(self.metric), [shown_name(one) for one in self.metrics[1:]]
        difference = "difference"
        head = ["", name, difference, "p (Holm)", f"test {name}", *others, "fit s"]
        return [head, *(self._line(entry) for entry in self.leaderboard)]

    def _line(self, entry: Entry) -> list[str]:
        sign = -1 if is_loss(self.metric) else 1
        gap = entry.difference
        first = entry is self.leaderboard[0]
        test = entry.test[self.metric]
        ends = sorted((shown_value(self.metric, test.low), shown_value(self.metric, test.high)))
        decimals = _decimals(test.high - test.low)
        shown = fixed(shown_value(self.metric, test.value), decimals)
        if not math.isnan(ends[0]):
            shown += f" [{fixed(ends[0], decimals)}, {fixed(ends[1], decimals)}]"
        return [
            elide(one_line(entry.name), 24) + (" *" if entry.name == self.best else ""),
            with_error(shown_value(self.metric, entry.mean), entry.error),
            "" if first else with_error(sign * gap.mean, gap.error),
            "" if first else p_text(gap.p_holm),
            shown,
            *(f"{shown_value(name, float(entry.scores[name].mean())):.4g}" for name in self.metrics[1:]),
            f"{entry.fit_seconds:.2g}",
        ]

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<p>{escape(self.headline())}</p>{html_table(self._cells())}<ul>{notes}</ul>"

    def predict(self, table: TableLike) -> Array:
        """Predict rows of a table with the columns of the study.

        Parameters
        ----------
        table : frame, dict of columns or array
            Rows. Columns that are not used may be absent; date parts are derived as in the study.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels or numbers predicted by `model`.
        """
        return np.asarray(self.model.predict(self._features(table)))

    def predict_proba(self, table: TableLike) -> Floats:
        """Return class probabilities for rows of a table with the columns of the study.

        Parameters
        ----------
        table : frame, dict of columns or array
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Predicted by `model`; columns in the order of `classes`.
        """
        if self.classes is None:
            raise AttributeError("This is a regression study, which has no class probabilities. Use predict.")
        return np.asarray(self.model.predict_proba(self._features(table)))

    def _features(self, table: TableLike) -> Any:
        return feature_columns(table, [column.name for column in self.columns if column.is_used])

    def save(self, file: Target) -> None:
        """Save the model that is kept, for `spinney.load` and ``spinney predict``.

        Parameters
        ----------
        file : str, path or binary file
            Output file.
        """
        self.model.save(file)


def _entry_to_dict(entry: Entry) -> dict[str, Any]:
    gap = entry.difference
    row: dict[str, Any] = {"model": entry.name}
    row |= {metric: float(values.mean()) for metric, values in entry.scores.items()}
    row |= {"error": entry.error, "difference": gap.mean, "difference_low": gap.low, "difference_high": gap.high}
    row |= {"p_value": gap.p_value, "p_holm": gap.p_holm}
    for metric, score in entry.test.items():
        row |= {f"test_{metric}": score.value, f"test_{metric}_low": score.low, f"test_{metric}_high": score.high}
    return row | {name: getattr(entry, name) for name in ("fit_seconds", "predict_seconds", "is_baseline", "is_peer")}


def _decimals(width: float) -> int:
    if math.isnan(width) or width <= 0:
        return 4
    return min(8, max(0, 2 - math.floor(math.log10(width))))
