"""``spinney bench``: times of models, and their loss, beside other libraries."""

from __future__ import annotations

import json
import statistics
import warnings
from dataclasses import asdict, dataclass

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from spinney._data.file_readers import MOST_BYTES, read_file
from spinney._evaluate.folds import split_test
from spinney._evaluate.runner import Candidate, Runner
from spinney._evaluate.scoring import Scorers, read_metrics
from spinney._evaluate.study.peers import peer_candidates
from spinney._evaluate.study.plan import CARES, Care, Size, estimator_for
from spinney._evaluate.study.prepare import Prepared, Wishes, prepare
from spinney.cli.failures import failures_in_words
from spinney.cli.source import Source

_OWN = ("tree", "forest", "extra-trees", "boosting")
_PLAIN = Care(CARES[0].effort / 2, 100)


@dataclass(frozen=True)
class MadeTable:
    """The size of a table that is made up where none is given."""

    n_rows: int
    n_columns: int


@dataclass(frozen=True)
class Timing:
    """Medians of a model's times, and its loss on the rows held out."""

    model: str
    loss: float
    fit_seconds: float
    predict_seconds: float


def run_bench(source: Source | MadeTable, *, rounds: int, seed: int, as_json: bool) -> None:
    """Fit models in turn, and print medians of their times and their loss on rows held out."""
    with failures_in_words(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = _read(source, seed)
        metric = "neg_root_mean_squared_error" if data.classes is None else "neg_log_loss"
        scorers, runner = Scorers(read_metrics(metric), data.classes), Runner(data)
        fold, models = split_test(data, np.random.RandomState(seed)), _models(data, seed)
        runs = [[runner.run(candidate, fold) for candidate in models] for _ in range(rounds)]
    found = [
        Timing(
            candidate.name,
            -scorers.score(metric, one[0].predictions, data.y[fold.held_out]),
            statistics.median(run.fit_seconds for run in one),
            statistics.median(run.predict_seconds for run in one),
        )
        for candidate, one in zip(models, zip(*runs, strict=True), strict=True)
    ]
    loss = "log loss" if data.classes is not None else "root mean squared error"
    n_train, n_columns = len(fold.grown_on), data.table.n_columns
    if as_json:
        facts = {"rows": n_train, "columns": n_columns, "loss": loss, "rounds": rounds}
        click.echo(json.dumps(facts | {"models": [asdict(one) for one in found]}, indent=2))
        return
    shown = Table("model", "fit s", "predict s", loss)
    for one in sorted(found, key=lambda timing: timing.loss):
        shown.add_row(one.model, f"{one.fit_seconds:.3g}", f"{one.predict_seconds:.3g}", f"{one.loss:.4g}")
    console = Console(highlight=False)
    console.print(f"{n_train:,} rows to learn from, {len(fold.held_out):,} held out, {n_columns} columns")
    console.print(shown)


def _read(source: Source | MadeTable, seed: int) -> Prepared:
    """Read a table, or make one of numbers whose classes depend on some of them."""
    if isinstance(source, Source):
        read = read_file(source.path, source.delimiter, source.encoding, most_bytes=MOST_BYTES)
        return prepare(read.frame, source.target, Wishes(task=source.task), 0)
    import polars as pl

    random, n_columns = np.random.default_rng(seed), source.n_columns
    X = random.standard_normal((source.n_rows, n_columns))
    score = np.sin(X[:, 0]) + X[:, n_columns // 2] * X[:, -1] + 0.5 * random.standard_normal(source.n_rows)
    frame = pl.DataFrame({f"x{j}": X[:, j] for j in range(n_columns)}).with_columns(y=np.where(score > 0, "a", "b"))
    return prepare(frame, "y", Wishes(), seed)


def _models(data: Prepared, seed: int) -> list[Candidate]:
    size = Size(data.n_rows, 1, 1, 0 if data.classes is None else len(data.classes))
    own = [Candidate(f"spinney {word}", estimator_for(word, data.task, _PLAIN, seed)) for word in _OWN]
    return own + peer_candidates(data.task, size, seed)
