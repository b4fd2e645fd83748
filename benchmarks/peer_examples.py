"""Another library's own examples, with spinney's classes in place of its classes.

    PYTHONPATH=python python benchmarks/peer_examples.py scikit-learn scikit-learn/examples tree svm ensemble
    PYTHONPATH=python python benchmarks/peer_examples.py lightgbm LightGBM/examples/python-guide
    PYTHONPATH=python python benchmarks/peer_examples.py xgboost xgboost/demo/guide-python
    PYTHONPATH=python python benchmarks/peer_examples.py shap shap/notebooks/tabular_examples tree

The folder is one of a checkout of the library's repository; words choose the files whose path contains one of them.
Each example (a script or notebook) that uses a class of both libraries runs twice, each time in its own process with
limits of time: as it is, and with spinney's classes of the same names, or of the names in `OTHER_NAMES`.
Printed numbers and what the figures show (lines, bars, points, images, regions) are compared. `--recordings` keeps the
results of the runs, and repeats only those with spinney; `--rst` writes the table of the documentation.
`peer_examples.toml` has the reason for each example that fails or differs.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import pickle
import re
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import tomllib
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scikit_learn_tests import replace_classes

REASONS = Path(__file__).with_suffix(".toml")
OTHER_NAMES = {
    "lightgbm": {
        "LGBMClassifier": "GradientBoostingClassifier",
        "LGBMRegressor": "GradientBoostingRegressor",
        "LGBMRanker": "GradientBoostingRanker",
    },
    "xgboost": {
        "XGBClassifier": "GradientBoostingClassifier",
        "XGBRegressor": "GradientBoostingRegressor",
        "XGBRanker": "GradientBoostingRanker",
        "XGBRFClassifier": "RandomForestClassifier",
        "XGBRFRegressor": "RandomForestRegressor",
    },
    "shap": {"TreeExplainer": "TreeExplainer"},
}
SAME, SIMILAR = 0.01, 0.1  # largest difference of an example that is called so
WAITS = 10  # times the limit of processor time that a run may last
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
DURATION = re.compile(r"\d[\d.e+-]* ?(?:s|ms|sec|secs|seconds|minutes?)\b|(?i:time|speed)[^\n]*")


@dataclass
class Recording:
    """What a run of an example left behind."""

    printed: str = ""
    figures: list[np.ndarray] = field(default_factory=list)
    error: str = ""

    def numbers(self) -> np.ndarray:
        """Return the numbers that were printed, without durations."""
        return np.array([float(number) for number in NUMBER.findall(DURATION.sub("", self.printed))])


@dataclass(frozen=True)
class Outcome:
    """How an example with spinney's classes compares to the original."""

    name: str
    verdict: str
    printed: float | None = None
    figures: float | None = None
    detail: str = ""

    def __str__(self) -> str:
        """Render one line of the printed table."""
        figures = f"{percent(self.printed):>8}{percent(self.figures):>8}"
        return f"{self.name:<62}{self.verdict:<10}{figures}  {self.detail}"


def percent(difference: float | None) -> str:
    return "–" if difference is None else f"{100 * difference:.1f} %"


# ---- the process of one example


def replace_names(peer: str) -> None:
    """Put spinney's classes into the public modules of the peer, and of scikit-learn."""
    import spinney

    replace_classes()
    for library, names in OTHER_NAMES.items():
        if peer in (library, "shap"):  # shap's examples also fit models of the boosting libraries
            module = importlib.import_module(library)
            for theirs, ours in names.items():
                setattr(module, theirs, getattr(spinney, ours))


def source_of(path: Path) -> str:
    """Return an example as a script: of a notebook, its code without the commands of IPython."""
    if path.suffix != ".ipynb":
        return path.read_text()
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    lines = "\n".join("".join(cell["source"]) for cell in cells).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))


def record(path: Path, peer: str, is_replaced: bool) -> Recording:
    """Run an example in this process."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    plt.close = plt.show = lambda *_, **__: None
    if is_replaced:
        replace_names(peer)
    script = path
    if path.suffix == ".ipynb":
        script = Path("notebook.py").absolute()
        script.write_text(source_of(path))
    sys.argv, sys.path[0] = [str(script)], str(path.parent)
    printed, error = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except Exception as raised:
            error = one_line("".join(traceback.format_exception_only(raised)))
    return Recording(
        printed.getvalue(), [] if error else [a for n in plt.get_fignums() for a in shown(plt.figure(n))], error
    )


def one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def shown(figure: Any) -> list[np.ndarray]:
    """Return what a figure shows, an array for each line, bar, set of points, image and filled region."""
    arrays: list[Any] = []
    for axes in figure.axes:
        arrays += [line.get_xydata() for line in axes.lines]
        arrays += [image.get_array() for image in axes.images]
        arrays += [patch.get_window_extent().transformed(axes.transData.inverted()).extents for patch in axes.patches]
        x, y = (np.linspace(*limits, 40) for limits in (axes.get_xlim(), axes.get_ylim()))
        grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x, y)])
        for collection in axes.collections:
            if hasattr(collection, "levels"):  # regions and contours: which points of a grid are within
                arrays += [path.contains_points(grid).astype(float) for path in collection.get_paths() if len(path)]
            else:
                arrays += [collection.get_offsets(), collection.get_array()]
    return [np.ma.filled(np.ma.asarray(a, dtype=float), np.nan) for a in arrays if a is not None]


# ---- comparison


def run_example(path: Path, options: argparse.Namespace, is_replaced: bool) -> Recording:
    """Run an example in its own process, in an empty folder; a recording that was kept is taken instead."""
    kept = options.recordings / f"{str(path.resolve()).replace('/', '+')}.pickle" if options.recordings else None
    if kept is not None and kept.exists() and not is_replaced:
        return pickle.loads(kept.read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "recording.pickle"
        words = [options.peer, str(path.resolve()), "--record", str(result), "--limit", str(options.limit)]
        words += ["--replace"] if is_replaced else []
        paths = os.pathsep.join(str(Path(p).resolve()) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p)
        environment = {**os.environ, "PYTHONPATH": paths, "MPLBACKEND": "agg"}
        command = [sys.executable, str(Path(__file__).resolve()), *words]
        wait = WAITS * options.limit
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=wait
            )
        except subprocess.TimeoutExpired:
            return Recording(error=f"no end after {wait} s")
        if result.exists():
            recording = pickle.loads(result.read_bytes())
        elif done.returncode == -signal.SIGXCPU:
            recording = Recording(error=f"time limit of {options.limit} s")
        else:
            recording = Recording(error=f"ended with {done.returncode}: {one_line(done.stderr[-300:])}")
    if kept is not None and not is_replaced:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(recording))
    return recording


def difference(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Return the mean difference of two arrays relative to the size of the first; 1 if their shapes differ."""
    if theirs.shape != ours.shape:
        return 1.0
    if not theirs.size:
        return 0.0
    apart = np.abs(np.nan_to_num(theirs) - np.nan_to_num(ours))
    return min(1.0, float(apart.mean() / (np.abs(np.nan_to_num(theirs)).mean() + 1e-9)))


def compare_numbers(theirs: np.ndarray, ours: np.ndarray) -> float | None:
    """Return the mean relative difference of printed numbers; None if none is printed."""
    if theirs.shape != ours.shape:
        return 1.0
    apart = np.abs(theirs - ours) / np.maximum(np.abs(theirs), 1e-3)
    return float(np.minimum(apart, 1).mean()) if apart.size else None


def compare_figures(theirs: list[np.ndarray], ours: list[np.ndarray]) -> float | None:
    """Return the mean difference of what figures show; None without figures."""
    if len(theirs) != len(ours):
        return 1.0
    return float(np.mean([difference(*pair) for pair in zip(theirs, ours, strict=True)])) if theirs else None


def compare_example(path: Path, options: argparse.Namespace) -> Outcome:
    """Run an example as it is and with spinney's classes."""
    name = str(path.relative_to(options.folder).with_suffix(""))
    theirs = run_example(path, options, is_replaced=False)
    if theirs.error:
        return Outcome(name, "not run", detail=f"the original: {theirs.error}")
    ours = run_example(path, options, is_replaced=True)
    if ours.error:
        return Outcome(name, "fails", detail=ours.error)
    printed = compare_numbers(theirs.numbers(), ours.numbers())
    figures = compare_figures(theirs.figures, ours.figures)
    largest = max(printed or 0.0, figures or 0.0)
    verdict = "same" if largest <= SAME else "similar" if largest <= SIMILAR else "differs"
    return Outcome(name, verdict, printed, figures)


def examples(options: argparse.Namespace) -> list[Path]:
    """Return the examples that use a name of both libraries."""
    import spinney

    names = {*spinney.__all__, "HistGradientBoostingClassifier", "HistGradientBoostingRegressor"}
    if options.peer in ("lightgbm", "xgboost"):
        names = {*OTHER_NAMES[options.peer]}
    elif options.peer == "shap":
        names = {"TreeExplainer"}
    uses = re.compile(rf"\b({'|'.join(sorted(names - {'datasets', 'inspect', 'load', 'rules'}))})\b")
    found = sorted(path for suffix in ("py", "ipynb") for path in options.folder.rglob(f"*.{suffix}"))
    chosen = [
        p for p in found if not options.words or any(w in str(p.relative_to(options.folder)) for w in options.words)
    ]
    return [path for path in chosen if uses.search(source_of(path))]


def write_rst(path: Path, peer: str, outcomes: list[Outcome], reasons: dict[str, str]) -> None:
    """Append the table of a run to a page of the documentation."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    title = f"{peer} {importlib.import_module({'scikit-learn': 'sklearn'}.get(peer, peer)).__version__}"
    lines = ["", title, "-" * len(title), ""]
    lines += [", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + ".", ""]
    lines += [".. list-table::", "   :header-rows: 1", "   :widths: 34 9 9 9 39", ""]
    for cells in (("example", "outcome", "printed", "figures", "reason"), *(
        (o.name, o.verdict, percent(o.printed), percent(o.figures), reasons.get(o.name, "")) for o in outcomes
    )):  # fmt: skip
        lines += [f"   {'-' if i else '* -'} {cell}".replace("   -", "     -", 1) for i, cell in enumerate(cells)]
    with path.open("a") as file:
        file.write("\n".join(line.rstrip() for line in lines) + "\n")


def main(options: argparse.Namespace) -> None:
    reasons: dict[str, str] = tomllib.loads(REASONS.read_text()).get(options.peer, {})
    outcomes: list[Outcome] = []
    print(f"{'example':<62}{'outcome':<10}{'printed':>8}{'figures':>8}  error or reason")
    for path in examples(options):
        outcome = compare_example(path, options)
        outcomes.append(outcome)
        print(outcome, flush=True)
        if outcome.verdict != "same" and (reason := reasons.get(outcome.name)):
            print(f"    {reason}", flush=True)
    counts = Counter(outcome.verdict for outcome in outcomes)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if options.rst:
        write_rst(options.rst, options.peer, outcomes, reasons)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run another library's examples with spinney's classes.")
    parser.add_argument("peer", choices=("scikit-learn", "lightgbm", "xgboost", "shap"))
    parser.add_argument("folder", type=Path, help="a folder of its examples")
    parser.add_argument("words", nargs="*", help="run the files whose path contains one of these")
    parser.add_argument("--limit", type=int, default=120, help="seconds of the processor for a run (default 120)")
    parser.add_argument("--recordings", type=Path, metavar="FOLDER", help="keep the results of the originals here")
    parser.add_argument("--rst", type=Path, metavar="FILE", help="append the table to FILE")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--replace", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.record:
        resource.setrlimit(resource.RLIMIT_CPU, (chosen.limit, resource.RLIM_INFINITY))
        chosen.record.write_bytes(pickle.dumps(record(chosen.folder, chosen.peer, chosen.replace)))
    else:
        main(chosen)
