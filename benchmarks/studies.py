"""Studies beside one line of boosting, the defaults of other libraries, AutoGluon and FLAML, on the same rows.

Usage: ``python benchmarks/studies.py MODE --data FOLDER --records FOLDER [--minutes 2] [SET…]``; the first folder as in
sets.py, with Parquet files (read with polars or pyarrow) or the .npz files that ``--to-npz FOLDER`` makes of them.
Three tenths of the rows of each set are held out. Each contestant gets the others, and is evaluated on the held-out
rows: log loss, or the mean squared error. The modes:

``one-line``  studies of large tables next to ``GradientBoostingClassifier()`` or ``Regressor()``: the open sets of
              50,000 rows or more, and synthetic ones of 50,000, 300,000 and 2,000,000. Where one line takes longer than
              the minutes, it is also stopped after them.
``peers``     studies next to the defaults of scikit-learn's forest, LightGBM, XGBoost and CatBoost.
``automl``    studies next to AutoGluon and FLAML with as much time: loss, time used, size of the model, and seconds per
              prediction. Those that the interpreter lacks are left out: run it once with each interpreter
              (``--only autogluon``), and with the same records.

``--load N`` runs N busy processes on the same cores beside each contestant. ``--at-once N`` runs N sets at a time, each
in a separate process on its own cores (``--cores-each``, 2); ``--cores LIST`` names the cores to use. The time of a
study includes its report.

Each result is a line of JSON in ``results.jsonl`` of the records, and its losses by row are in a .npy file next to it,
so that a run can be stopped and resumed. ``--show`` prints the results and runs nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import automl
import numpy as np
from study_tables import (
    SEED,
    STUDY,
    TARGET,
    Table,
    evaluated,
    halves,
    is_regression,
    n_rows,
    read_columns,
    truth,
    without_target,
    write_npz,
)

ONE_LINE, CUT = "one_line", "one_line_cut"
ONE_LINE_LIMIT = 10.0  # times the minutes; boosting then ends with the rounds that it has

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
    *("kddcup99_10pct", "covtype", "synthetic_2000000", "covtype_cat", "nycflights13_late", "sleep"),
    *("synthetic_300000", "gov_census", "be_mtpl97", "heart_2020", "hotel_bookings", "connect4"),
    *("skin_segmentation", "datacar_claims", "synthetic_50000", "shuttle"),
)
MODES: dict[str, tuple[str, ...]] = {"one-line": LARGE, "peers": tuple(SHAPES), "automl": tuple(SHAPES)}


def main() -> None:
    """Run what is not recorded yet, and print a line for each set."""
    given = read_arguments()
    names = list(given.sets or MODES[given.mode])
    if given.to_npz:
        given.to_npz.mkdir(exist_ok=True, parents=True)
        for name in names:
            if not name.startswith("synthetic_"):
                write_npz(read_columns(given.data, name), given.to_npz / f"{name}.npz")
        return
    given.records.mkdir(exist_ok=True, parents=True)
    if given.cores:
        stay_on(given.cores)
    if given.at_once > 1:
        run_at_once(given, names)
    elif not given.show:
        for name in names:
            run_set(given, name)
    show(given, names)


def read_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets: .parquet or .npz")
    parser.add_argument("--records", type=Path, required=True, help="folder of the results")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--only", metavar="WHO", help="run this contestant alone")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="busy processes next to each contestant")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="sets to run at a time, each on own cores")
    parser.add_argument("--cores-each", type=int, default=2, metavar="N", help="cores of each set run at once")
    parser.add_argument("--cores", metavar="LIST", help="use these alone, such as 0,1")
    parser.add_argument("--show", action="store_true", help="print the results and run nothing")
    parser.add_argument("--to-npz", type=Path, metavar="FOLDER", help="write the sets as .npz files and run nothing")
    parser.add_argument("sets", nargs="*", default=None)
    return parser.parse_intermixed_args()


# ---- running -----------------------------------------------------------------------------------------------------


def stay_on(cores: str) -> None:
    """Keep this process, and every library that it loads, on some cores."""
    os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # read when libraries are loaded
        os.environ[name] = str(len(cores.split(",")))


def run_at_once(given: argparse.Namespace, names: list[str]) -> None:
    """Run sets in separate processes, each on its part of the cores; each has a log next to its records."""
    cores, each = sorted(os.sched_getaffinity(0)), given.cores_each
    free = [cores[k * each : (k + 1) * each] for k in range(given.at_once)]
    if not all(len(own) == each for own in free):
        sys.exit(f"--at-once {given.at_once} needs {given.at_once * each} cores, and there are {len(cores)}.")
    options = ["--data", given.data, "--records", given.records, "--minutes", given.minutes, "--load", given.load]
    options += ["--only", given.only] if given.only else []
    waiting, running = list(names), dict[str, tuple[subprocess.Popen[bytes], list[int]]]()
    start = time.monotonic()
    while waiting or running:
        while waiting and free:
            name, own = waiting.pop(0), free.pop(0)
            command = [sys.executable, __file__, given.mode, *options, "--cores", ",".join(map(str, own)), name]
            with (given.records / f"{name}.log").open("wb") as log:
                process = subprocess.Popen([str(one) for one in command], stdout=log, stderr=subprocess.STDOUT)
            running[name] = process, own
        time.sleep(0.2)
        for name, (process, own) in list(running.items()):
            if process.poll() is not None:
                del running[name]
                free.append(own)
                print(f"{time.monotonic() - start:5.0f} s  {name} ended with {process.returncode}", flush=True)


def run_set(given: argparse.Namespace, name: str) -> None:
    """Run the contestants of a set that are not recorded yet."""
    done = {one["who"] for one in records(given, name)}
    todo = [who for who in contestants(given.mode) if who not in done and given.only in (None, who)]
    if not todo:
        return
    learn, test = halves(read_columns(given.data, name), name)
    for who in todo:
        with load(given.load):
            found, losses = contestant(who)(who, learn, test, given)
        if not found:
            continue
        key = {"set": name, "who": who, "minutes": given.minutes, "load": given.load}
        found = (
            key
            | {"rows": n_rows(learn), "loss": losses.mean(), "error": losses.std(ddof=1) / len(losses) ** 0.5}
            | found
        )
        np.save(losses_file(given, found), losses.astype(np.float32))
        with (given.records / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(found, default=float) + "\n")
        print(f"{name} {who}: loss {found['loss']:.5g} in {found['seconds']:.0f} s", flush=True)


def contestants(mode: str) -> list[str]:
    """Name the contestants of a mode that are installed."""
    from importlib.util import find_spec

    if mode == "one-line":
        return [STUDY, ONE_LINE, CUT]
    if mode == "automl":
        return [STUDY, *(name for name in ("autogluon", "flaml") if find_spec(name) is not None)]
    from spinney._evaluate.study.plan import peer_candidates

    return [STUDY, *(peer.name for peer in peer_candidates("regression", 0))]


def contestant(who: str) -> Callable[..., tuple[dict[str, Any], np.ndarray]]:
    """Return the function that runs a contestant."""
    if who in ("autogluon", "flaml"):
        return automl.run
    return {STUDY: run_study, ONE_LINE: run_one_line, CUT: run_one_line}.get(who, run_peer)


@contextmanager
def load(n_processes: int) -> Iterator[None]:
    """Run busy processes on the cores of this process."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def run_study(_: str, learn: Table, test: Table, given: argparse.Namespace) -> tuple[dict[str, Any], np.ndarray]:
    """Run a study with its report, as the command line does."""
    import spinney
    from spinney._evaluate.study.schedule import before_report

    run, start = spinney.study, time.monotonic()  # after importing it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minutes = before_report(given.minutes)
        found = run(learn, TARGET, minutes=minutes, peers=given.mode == "peers", random_state=SEED)
        study_seconds = time.monotonic() - start
        found.report(given.records / f"report-{os.getpid()}.html", seconds=60 * given.minutes - study_seconds)
    seconds = time.monotonic() - start
    (given.records / f"report-{os.getpid()}.html").unlink()
    model_file = given.records / f"model-{os.getpid()}"
    found.save(model_file)
    size = model_file.stat().st_size
    model_file.unlink()
    predict = found.predict if found.classes is None else found.predict_proba
    losses, speed = evaluated(predict, found.classes, test)
    return {
        "seconds": seconds,
        "study_seconds": study_seconds,
        "by": found.best,
        "is_value": found.classes is None,
        "left_out": [note for note in found.notes if note.startswith("Time ran out before these")],
        "bytes": size,
        **speed,
        "text": str(found).splitlines(),
    }, losses


def run_one_line(who: str, learn: Table, test: Table, given: argparse.Namespace) -> tuple[dict[str, Any], np.ndarray]:
    """Fit boosting with default settings; or stop it after the minutes, if it takes longer."""
    import spinney

    if who == CUT:
        whole = [one for one in records(given) if one["who"] == ONE_LINE and one["rows"] == n_rows(learn)]
        if not any(one["seconds"] > 60 * given.minutes for one in whole):
            return {}, np.empty(0)
    is_value, start = is_regression(learn), time.monotonic()
    limit = 60 * given.minutes * (1.0 if who == CUT else ONE_LINE_LIMIT)
    kind = spinney.GradientBoostingRegressor if is_value else spinney.GradientBoostingClassifier
    model = kind(callbacks=lambda state: state["seconds"] > limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(without_target(learn), truth(learn, is_value))
    seconds = time.monotonic() - start
    losses, speed = evaluated(
        model.predict if is_value else model.predict_proba, getattr(model, "classes_", None), test
    )
    was_stopped = model.stopped_because_ == "a callback stopped the fit"
    return {"seconds": seconds, "is_value": is_value, "was_stopped": was_stopped, **speed}, losses


def run_peer(who: str, learn: Table, test: Table, given: argparse.Namespace) -> tuple[dict[str, Any], np.ndarray]:
    """Fit another library with its defaults."""
    from spinney._evaluate.study.plan import peer_candidates

    is_value, start = is_regression(learn), time.monotonic()
    peers = peer_candidates("regression" if is_value else "multiclass", 0)
    model = next(one for one in peers if one.name == who).estimator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(without_target(learn), truth(learn, is_value))
        seconds = time.monotonic() - start
        predict = model.predict if is_value else model.predict_proba
        losses, speed = evaluated(predict, None if is_value else model.classes_, test)
    return {"seconds": seconds, "is_value": is_value, **speed}, losses


# ---- results ------------------------------------------------------------------------------------------------------


def records(given: argparse.Namespace, name: str | None = None) -> list[dict[str, Any]]:
    """Return the results of this time limit and load, of one set or all."""
    file = given.records / "results.jsonl"
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    return [
        one
        for one in found
        if (one["minutes"], one["load"]) == (given.minutes, given.load) and name in (None, one["set"])
    ]


def losses_file(given: argparse.Namespace, one: dict[str, Any]) -> Path:
    """Return the file of the losses by row of a result."""
    return Path(given.records / f"{one['set']}-{one['who']}-{one['minutes']:g}-{one['load']}.npy".replace(" ", "_"))


def show(given: argparse.Namespace, names: list[str]) -> None:
    """Print a line for each set, or contestant."""
    if given.mode == "automl":
        automl.show(records(given), names)
        return
    is_good = []
    for name in names:
        found = {one["who"]: one for one in records(given, name)}
        if STUDY in found and (ONE_LINE in found or (given.mode == "peers" and len(found) > 1)):
            is_good.append(show_one_line(name, found) if given.mode == "one-line" else show_peers(given, name, found))
    what = "no worse than one line by a standard error, in time" if given.mode == "one-line" else "no worse than peers"
    print(f"{sum(is_good)} of {len(is_good)} studies are {what}")


def show_one_line(name: str, found: dict[str, dict[str, Any]]) -> bool:
    """Print the line of a set; return whether the study is good enough and ended in time."""
    ours, line, cut = found[STUDY], found[ONE_LINE], found.get(CUT)
    worse, used = (ours["loss"] - line["loss"]) / line["error"], ours["seconds"] / (60 * ours["minutes"])
    is_good = worse <= 1 and used <= 1.05 and (used >= 0.8 or not ours["left_out"])
    stopped = "" if cut is None else f", {(ours['loss'] - cut['loss']) / cut['error']:+.2f} of it stopped in time"
    print(
        f"{name:18} {ours['rows']:9,} rows, load {ours['load']}: study {ours['loss']:11.5g} {ours['by']:18} one line "
        f"{line['loss']:11.5g} ± {line['error']:.2g} in {line['seconds']:4.0f} s{'+' if line['was_stopped'] else ' '} "
        f"worse by {worse:+6.2f} errors{stopped}; {used:4.0%} of the time, report "
        f"{ours['seconds'] - ours['study_seconds']:3.0f} s  {'yes' if is_good else 'NO'}",
        flush=True,
    )
    return is_good


def show_peers(given: argparse.Namespace, name: str, found: dict[str, dict[str, Any]]) -> bool:
    """Print the line of a set; return whether the study is no worse than the best peer."""
    ours = found[STUDY]
    scale = (lambda loss: loss**0.5) if ours["is_value"] else (lambda loss: loss)
    peer = min((who for who in found if who != STUDY), key=lambda who: found[who]["loss"])
    gaps = np.load(losses_file(given, ours)).astype(float) - np.load(losses_file(given, found[peer])).astype(float)
    percent = 100 / found[peer]["loss"] / (2 if ours["is_value"] else 1)
    far, error = percent * gaps.mean(), percent * gaps.std(ddof=1) / len(gaps) ** 0.5
    others = ", ".join(f"{who} {scale(one['loss']):.5g}" for who, one in found.items() if who != STUDY)
    print(
        f"{name:15} {SHAPES.get(name, '').partition(':')[0]:14} {scale(ours['loss']):11.5g} {ours['by']:10} "
        f"{ours['seconds']:4.0f} s  {scale(found[peer]['loss']):11.5g} {peer:14} {far:+5.1f} % ± {error:3.1f}  "
        f"{'yes' if far <= 0 else 'no'}   {others}"
    )
    return bool(far <= 0)


if __name__ == "__main__":
    main()
