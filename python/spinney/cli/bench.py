"""``spinney bench``: times of models, and their loss, beside other libraries."""

from __future__ import annotations

import json
import statistics
import time
import warnings
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from spinney._data.file_readers import MOST_BYTES, read_file
from spinney._evaluate.study.family import CARES, Care, Size, estimator_for
from spinney._evaluate.study.peers import peer_candidates
from spinney._evaluate.study.prepare import Prepared, Wishes, prepare
from spinney._evaluate.study.split import split_off_test
from spinney.cli.failures import failures_in_words
from spinney.cli.study import Source

_OWN = ("tree", "forest", "extra-trees", "boosting")
_PLAIN = Care(CARES[0].effort / 2, 100)


def run_bench(source: Source | None, *, n_rows: int, n_columns: int, rounds: int, seed: int, as_json: bool) -> None:
    """Fit models in turn, and print medians of their times and their loss on rows held out."""
    with failures_in_words(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = _made(n_rows, n_columns, seed) if source is None else _read(source)
        train, test = split_off_test(data, np.random.RandomState(seed))
        models = _models(data, seed)
        rows = [_timed(name, model, data.take(train), data.take(test)) for _ in range(rounds) for name, model in models]
    found = [_median([row for row in rows if row["model"] == name]) for name, _ in models]
    loss = "log loss" if data.classes is not None else "root mean squared error"
    if as_json:
        facts = {"rows": len(train), "columns": data.X.shape[1], "loss": loss, "rounds": rounds, "models": found}
        click.echo(json.dumps(facts, indent=2))
        return
    shown = Table("model", "fit s", "predict s", loss)
    for row in sorted(found, key=lambda one: float(one["loss"])):
        shown.add_row(row["model"], f"{row['fit_seconds']:.3g}", f"{row['predict_seconds']:.3g}", f"{row['loss']:.4g}")
    console = Console(highlight=False)
    console.print(f"{len(train):,} rows to learn from, {len(test):,} held out, {data.X.shape[1]} columns")
    console.print(shown)


def _read(source: Source) -> Prepared:
    read = read_file(source.path, source.delimiter, source.encoding, most_bytes=MOST_BYTES)
    return prepare(read.frame, source.target, Wishes(), 0)


def _made(n_rows: int, n_columns: int, seed: int) -> Prepared:
    """Make a table of numbers whose classes depend on some of them."""
    import polars as pl

    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows, n_columns))
    score = np.sin(X[:, 0]) + X[:, n_columns // 2] * X[:, -1] + 0.5 * random.standard_normal(n_rows)
    frame = pl.DataFrame({f"x{j}": X[:, j] for j in range(n_columns)}).with_columns(y=np.where(score > 0, "a", "b"))
    return prepare(frame, "y", Wishes(), seed)


def _models(data: Prepared, seed: int) -> list[tuple[str, Any]]:
    size = Size(data.n_rows, 1, 1, 0 if data.classes is None else len(data.classes))
    own = [(f"spinney {word}", estimator_for(word, data.task, _PLAIN, seed)) for word in _OWN]
    return own + [(peer.name, peer.estimator) for peer in peer_candidates(data.task, size, seed)]


def _timed(name: str, model: Any, train: Prepared, test: Prepared) -> dict[str, Any]:
    from sklearn.base import clone
    from sklearn.metrics import log_loss, root_mean_squared_error

    start = time.perf_counter()
    fitted = clone(model).fit(train.X, train.y)
    after = time.perf_counter()
    said = fitted.predict(test.X) if test.classes is None else fitted.predict_proba(test.X)
    end = time.perf_counter()
    if test.classes is None:
        loss = root_mean_squared_error(test.y, said)
    else:
        loss = log_loss(test.y, said, labels=test.classes)
    return {"model": name, "fit_seconds": after - start, "predict_seconds": end - after, "loss": float(loss)}


def _median(rows: list[dict[str, Any]]) -> dict[str, Any]:
    times = ("fit_seconds", "predict_seconds")
    return {"model": rows[0]["model"], "loss": rows[0]["loss"]} | {
        key: statistics.median(row[key] for row in rows) for key in times
    }
