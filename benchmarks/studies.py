"""Studies beside the defaults of other libraries, on the same rows to learn from and to test.

Usage: ``python benchmarks/studies.py --data FOLDER --records FOLDER [--minutes 2] [--at-once N] [--only WHO] [SET…]``;
the first folder as in sets.py, with Parquet files. Three tenths of the rows of each set are held out. A study gets the
others and spends its minutes; the model that it selects is evaluated on the held-out rows, and so is every installed
library with its defaults, fitted to the same rows: log loss, or the root of the mean squared error.

``--one-line`` compares studies of large tables with ``GradientBoostingClassifier()`` or ``Regressor()`` alone, fitted
to the same rows: the open sets of 50,000 rows or more, and synthetic ones of 50,000, 300,000 and 2,000,000. The time of
a study includes its report. ``--load N`` runs N busy processes on the same cores during the study.

The results of each contestant are saved in the second folder, so that a run can be stopped and resumed. ``--at-once``
runs several sets at a time, each in a separate process with its part of the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import spinney
import spinney._evaluate.runner as budget
import spinney._evaluate.runner as runner
import spinney._evaluate.study.study as entry
from spinney._evaluate.problem import read_target
from spinney._evaluate.study.plan import peer_candidates

STUDY = "study"
TEST_SHARE = 0.3  # of the rows of a set: more than a study locks away, so that differences show
SEED = 20261116

# One set for each shape, chosen before any of them was run. In this order, each shape takes the set with the most rows
# of those that have it and are not taken: of 1,000 to 70,000 rows and at most a million cells, so that every library
# ends within minutes; of real data, not simulated nor made by a rule, with more than a hundredth of errors by a default
# forest; and not used before when the study was made (abalone, bike_sharing, dry_bean, german_credit, kc_house_sales,
# pendigits, titanic).
SHAPES = {
    "digits": "few rows: fewer than 2,000",
    "house_16h": "skewed values: a skewness of 2 or more",
    "adult": "missing values: half a hundredth of the cells or more",
    "caravan": "many columns: 50 or more",
    "datacar_claims": "rare class: a tenth of the rows or less",
    "bank_full": "categories: half of the columns or more",
    "satimage": "many classes: 5 or more",
    "electricity": "many rows: 40,000 or more",
}


# Open sets of 50,000 rows or more, and synthetic ones by their number of rows: those that take longest first.
LARGE = (
    *(
        "kddcup99_10pct",
        "covtype",
        "synthetic_2000000",
        "covtype_cat",
        "nycflights13_late",
        "sleep",
        "synthetic_300000",
    ),
    *("gov_census", "be_mtpl97", "heart_2020", "hotel_bookings", "connect4", "skin_segmentation", "datacar_claims"),
    *("synthetic_50000", "shuttle"),
)
ONE_LINE = "one_line"
ONE_LINE_SECONDS = 240.0  # twice the time of a study; boosting then ends with the rounds that it has


def main() -> None:
    """Run what is not recorded yet, and print a line for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--only", metavar="WHO", help="run this contestant alone: study, or a library")
    parser.add_argument(
        "--busy", type=int, metavar="CORES", help="count processor time of so many cores: for a machine that is busy"
    )
    parser.add_argument("--one-line", action="store_true", help="large sets, next to boosting with default settings")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="busy processes next to each study")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="sets to run at a time, each on own cores")
    parser.add_argument("--cores", metavar="LIST", help="use these alone, such as 0,1")
    parser.add_argument("sets", nargs="*", default=None)
    given = parser.parse_args()
    names = given.sets or list(LARGE if given.one_line else SHAPES)
    given.records.mkdir(exist_ok=True, parents=True)
    if given.cores:
        stay_on(given.cores)
    if given.busy:
        count_processor_time(given.busy)
    if given.at_once > 1:
        run_at_once(given, names)
    if given.one_line:
        run_one_line(given, names)
        return
    won = []
    for name in names:
        learn, test = halves(given.data / f"{name}.parquet", name)
        for who in contestants():
            file = given.records / f"{name}-{who}.json"
            if not file.exists() and given.only in (None, who) and given.at_once == 1:
                file.write_text(json.dumps(evaluated(who, learn, test, given.minutes)), encoding="utf-8")
        found = {path.stem.removeprefix(f"{name}-"): path for path in given.records.glob(f"{name}-*.json")}
        if STUDY in found and len(found) > 1:
            won.append(report(name, {who: json.loads(path.read_text(encoding="utf-8")) for who, path in found.items()}))
    print(f"no worse than the best peer on {sum(won)} of {len(won)} sets")


def stay_on(cores: str) -> None:
    """Keep this process, and every library that it loads, on some cores."""
    os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    os.environ["OMP_NUM_THREADS"] = str(len(cores.split(",")))  # read by libraries that are loaded later


def run_at_once(given: argparse.Namespace, names: list[str]) -> None:
    """Run sets in separate processes, each on its part of the cores; each has a log next to its records."""
    cores = sorted(os.sched_getaffinity(0))
    each = 2 if given.one_line else max(1, len(cores) // given.at_once)
    free = [cores[k * each : (k + 1) * each] or cores[:1] for k in range(given.at_once)]
    waiting, running = list(names), dict[str, tuple[subprocess.Popen[bytes], list[int]]]()
    start = time.monotonic()
    while waiting or running:
        while waiting and free:
            name, own = waiting.pop(0), free.pop(0)
            more = ["--only", given.only] if given.only else []
            more += ["--one-line", "--load", str(given.load)] if given.one_line else []
            command = [sys.executable, __file__, "--data", given.data, "--records", given.records]
            command += ["--minutes", str(given.minutes), "--cores", ",".join(map(str, own)), *more, name]
            with (given.records / f"{name}.log").open("wb") as log:
                running[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT), own
        time.sleep(0.2)
        for name, (process, own) in list(running.items()):
            if process.poll() is not None:
                del running[name]
                free.append(own)
                print(f"{time.monotonic() - start:5.0f} s  {name} ended with {process.returncode}", flush=True)


def run_one_line(given: argparse.Namespace, names: list[str]) -> None:
    """Run studies and default boosting that are not recorded yet; print a line for each set."""
    good = []
    for name in names:
        ours, line = given.records / f"{name}-study-load{given.load}.json", given.records / f"{name}-{ONE_LINE}.json"
        if given.at_once == 1 and not (ours.exists() and line.exists()):
            learn, test = halves(given.data / f"{name}.parquet", name)
            if not ours.exists() and given.only in (None, STUDY):
                ours.write_text(json.dumps(studied(learn, test, given)), encoding="utf-8")
            if not line.exists() and given.only in (None, ONE_LINE):
                line.write_text(json.dumps(boosted(learn, test)), encoding="utf-8")
        if ours.exists() and line.exists():
            good.append(report_one_line(name, *(json.loads(one.read_text(encoding="utf-8")) for one in (ours, line))))
    print(f"{sum(good)} of {len(good)} studies are no worse than one line by a standard error, and end in time")


def studied(learn: pl.DataFrame, test: pl.DataFrame, given: argparse.Namespace) -> dict[str, Any]:
    """Run a study with its report, as the command line does, next to busy processes."""
    from spinney.cli.study import make_study

    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.load)]
    try:
        start = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = make_study(learn, "target", {"minutes": given.minutes, "random_state": SEED})
            study_seconds = time.monotonic() - start
            found.report(given.records / "report.html")
        seconds = time.monotonic() - start
    finally:
        for process in busy:
            process.kill()
            process.wait()
    model, labels = found.model, found.classes
    asked = test.drop("target").select(found.X_train.columns)
    return {
        "by": found.best,
        "rows": learn.height,
        "load": given.load,
        "seconds_allowed": 60 * given.minutes,
        "seconds": seconds,
        "report_seconds": seconds - study_seconds,
        "left_out": [note for note in found.notes if note.startswith("Time ran out before these")],
        **mean_loss(losses(model, asked, test, labels)),
        "text": str(found).splitlines(),
    }


def boosted(learn: pl.DataFrame, test: pl.DataFrame) -> dict[str, Any]:
    """Fit boosting with default settings."""
    task = read_target(learn["target"]).task
    is_value, start = task == "regression", time.monotonic()
    kind = spinney.GradientBoostingRegressor if is_value else spinney.GradientBoostingClassifier
    model = kind(callbacks=lambda state: state["seconds"] > ONE_LINE_SECONDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(learn.drop("target"), truth(learn, is_value))
    seconds = time.monotonic() - start
    labels = None if is_value else model.classes_
    found = {"seconds": seconds, "was_stopped": model.stopped_because_ == "a callback stopped the fit"}
    return found | {"is_value": is_value} | mean_loss(losses(model, test.drop("target"), test, labels))


def mean_loss(loss: np.ndarray) -> dict[str, float]:
    """Return the mean loss of the rows, and its standard error."""
    return {"loss": float(loss.mean()), "error": float(loss.std(ddof=1) / len(loss) ** 0.5)}


def report_one_line(name: str, ours: dict[str, Any], line: dict[str, Any]) -> bool:
    """Print the line of a set; return whether the study is good enough and ended in time."""
    worse = (ours["loss"] - line["loss"]) / line["error"]
    used = ours["seconds"] / ours["seconds_allowed"]
    is_good = worse <= 1 and used <= 1.05 and (used >= 0.8 or not ours["left_out"])
    print(
        f"{name:18} {ours['rows']:9,} rows, load {ours['load']}: study {ours['loss']:11.5g} {ours['by']:18} one line "
        f"{line['loss']:11.5g} ± {line['error']:.2g} in {line['seconds']:4.0f} s{'+' if line['was_stopped'] else ' '} "
        f"worse by {worse:+6.2f} errors; {used:4.0%} of the time, report {ours['report_seconds']:3.0f} s  "
        f"{'yes' if is_good else 'NO'}",
        flush=True,
    )
    return is_good


def synthetic(n_rows: int) -> pl.DataFrame:
    """Return a synthetic table of ten columns and two classes with interactions and noise."""
    random = np.random.default_rng([SEED, n_rows])
    X = random.standard_normal((n_rows, 9)).astype(np.float32)
    group = random.integers(0, 40, n_rows)
    effect = random.standard_normal(40)
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + effect[group] * (X[:, 4] > 0) + 0.5 * X[:, 5]
    target = np.where(score + random.standard_normal(n_rows) > 1, "yes", "no")
    columns = {f"x{j}": X[:, j] for j in range(9)}
    return pl.DataFrame(columns | {"group": np.char.add("g", group.astype(str)), "target": target})


def count_processor_time(n_cores: int) -> None:
    """Have studies measure the time of their process instead of the wall clock."""

    def now() -> float:
        return time.process_time() / n_cores

    budget.clock = runner.clock = entry.clock = SimpleNamespace(monotonic=now, perf_counter=now)


def halves(path: Path, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Part a set into rows to learn from and rows to test, the same ones in every run."""
    table = synthetic(int(name.rpartition("_")[2])) if name.startswith("synthetic_") else pl.read_parquet(path)
    order = np.random.default_rng([SEED, zlib.crc32(name.encode())]).permutation(table.height)
    n_test = round(TEST_SHARE * table.height)
    return table[np.sort(order[n_test:])], table[np.sort(order[:n_test])]


def contestants() -> list[str]:
    """Name the study and the libraries that are installed."""
    return [STUDY, *(peer.name for peer in peer_candidates("regression", 0))]


def evaluated(who: str, learn: pl.DataFrame, test: pl.DataFrame, minutes: float) -> dict[str, Any]:
    """Fit and evaluate a contestant; return losses by row, and further results."""
    X, asked = learn.drop("target"), test.drop("target")
    is_value = learn["target"].dtype.is_numeric()
    start, more = time.monotonic(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if who == STUDY:
            found = spinney.study(learn, "target", minutes=minutes, random_state=SEED)
            model, is_value, asked = found.model, found.classes is None, asked.select(found.X_train.columns)
            more = {"by": found.best, "seconds_reported": found.seconds, "report": str(found).splitlines()}
        else:
            task = "regression" if is_value else "multiclass"
            peer = next(one for one in peer_candidates(task, 0) if one.name == who)
            model = peer.estimator.fit(X, truth(learn, is_value))
        seconds = time.monotonic() - start
        if who == STUDY:  # what the models of the board are worth, fitted without the study's test part
            labels, board = found.classes, found.models.items()
            more["board"] = {name: float(losses(one, asked, test, labels).mean()) for name, one in board}
        own = losses(model, asked, test, None if is_value else model.classes_)
    return {"is_value": is_value, "seconds": seconds, "losses": own.tolist(), **more}


def truth(rows: pl.DataFrame, is_value: bool) -> np.ndarray:
    """Return the target of rows: values, or labels as text."""
    return rows["target"].cast(pl.Float64 if is_value else pl.String).to_numpy()


def losses(model: Any, asked: pl.DataFrame, test: pl.DataFrame, classes: np.ndarray | None) -> np.ndarray:
    """Squared errors, or log losses where there are classes, of the rows held out."""
    actual = truth(test, classes is None)
    if classes is None:
        return (np.asarray(model.predict(asked), dtype=np.float64) - actual) ** 2
    proba = np.asarray(model.predict_proba(asked))
    labels = np.array([str(one) for one in classes])
    own = (labels == actual[:, np.newaxis]).argmax(axis=1)
    return -np.log(np.clip(proba[np.arange(len(own)), own], np.finfo(proba.dtype).eps, None))


def report(name: str, found: dict[str, dict[str, Any]]) -> bool:
    """Print the line of a set; return whether the study is no worse than the best peer."""
    means = {who: float(np.mean(one["losses"])) for who, one in found.items()}
    ours, is_value = found[STUDY], found[STUDY]["is_value"]
    shown = {who: mean**0.5 if is_value else mean for who, mean in means.items()}
    peer = min((who for who in means if who != STUDY), key=lambda who: means[who])
    gaps = np.array(ours["losses"]) - np.array(found[peer]["losses"])
    scale = 100 / means[peer] / (2 if is_value else 1)
    far, error = scale * gaps.mean(), scale * gaps.std(ddof=1) / len(gaps) ** 0.5
    is_won = means[STUDY] <= means[peer]
    print(
        f"{name:15} {SHAPES.get(name, '').partition(':')[0]:14} {shown[STUDY]:11.5g} {ours['by']:10} "
        f"{ours['seconds_reported']:4.0f} s  {shown[peer]:11.5g} {peer:14} {far:+5.1f} % ± {error:3.1f}  "
        f"{'yes' if is_won else 'no'}   " + ", ".join(f"{who} {shown[who]:.5g}" for who in shown if who != STUDY)
    )
    return is_won


if __name__ == "__main__":
    main()
