"""Other libraries' own examples, with spinney's classes in place of their classes.

    PYTHONPATH=python python benchmarks/peer_examples.py CHECKOUTS --rst docs/coming_from/examples.rst
    PYTHONPATH=python python benchmarks/peer_examples.py CHECKOUTS svm/ tree/ --peer scikit-learn

CHECKOUTS is a folder with checkouts of the libraries' repositories: scikit-learn, LightGBM, xgboost, shap; words choose
the examples whose path contains one of them.

Each example (a script or notebook) that uses a class of both libraries runs twice, each time in its own process with
limits of time: as it is, and with spinney's classes of the same names, or of the names in `OTHER_NAMES`. In shap's
examples `TreeExplainer` is spinney's, and models of other libraries are read into spinney for it.
Printed numbers and what the figures show (lines, bars, points, images, regions) are compared. Where they differ, the
original also runs with other random seeds, which shows how much of the difference is chance. Outcomes and the runs of
the originals are kept in `--kept`, so that `--resume` continues a run; `--rst` writes the tables of the documentation
from all that are kept. `peer_examples.toml` has the reason for each example that fails or differs.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import functools
import importlib
import io
import json
import os
import pickle
import re
import resource
import runpy
import signal
import socket
import sys
import tempfile
import time
import tomllib
import traceback
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scikit_learn_tests import PUBLIC_MODULES, replace_classes

REASONS = Path(__file__).with_suffix(".toml")
BEGIN, END = ".. tables of benchmarks/peer_examples.py", ".. end of the tables"  # comments in the page
FOLDERS = {  # of the examples in each library's repository
    "scikit-learn": "scikit-learn/examples",
    "lightgbm": "LightGBM/examples",
    "xgboost": "xgboost/demo",
    "shap": "shap/notebooks",
}
MODULES = {"scikit-learn": "sklearn"}  # where the name to import is another one
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
}
explained: list[type] = []  # types of the models that spinney's explainer got in this process
READERS = {
    "xgboost": "from_xgboost",
    "lightgbm": "from_lightgbm",
    "catboost": "from_catboost",
    "sklearn": "from_sklearn",
}
SAME, SIMILAR = 0.01, 0.1  # largest difference of an example that is called so
RESULT, MESSAGES = "peer_examples.pickle", "peer_examples.messages"  # of a run, in its folder
TOO_LONG = "took longer than the limit"
WAITS = 5  # times the limit of processor time that a run may last
NO_DATA = re.compile(r"URLError|HTTPError|gaierror|ConnectionError|NameResolution|kaggle|(?i:timed out)")
RANDOM = "Forest|Trees|Bagging|Boost|Stacking|Voting|XGB|LGBM"  # classes that draw random numbers
VERDICTS = {
    "same": "same",
    "similar": "similar",
    "differs": "differ",
    "fails": "fail",
    "no data": "not run because the original downloads a table",
    "too long": "not run because the original takes longer than the limit",
    "not run": "not run because the original fails",
    "no class": "use no class that both libraries have",
}
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
DURATION = re.compile(r"\d[\d.e+-]* ?(?:s|ms|sec|secs|seconds|minutes?)\b|(?i:time|speed)[^\n]*")


@dataclass
class Recording:
    """What a run of an example left behind."""

    printed: str = ""
    figures: list[np.ndarray] = field(default_factory=list)
    error: str = ""
    is_unused: bool = False  # no class of spinney was used after all

    def numbers(self) -> np.ndarray:
        """Return the numbers that were printed, without durations."""
        return np.array([float(number) for number in NUMBER.findall(DURATION.sub("", self.printed))])


@dataclass(frozen=True)
class Outcome:
    """How an example with spinney's classes compares to the original, and the original to itself with other seeds."""

    name: str
    verdict: str
    printed: float | None = None
    figures: float | None = None
    other_seeds: float | None = None
    detail: str = ""

    def __str__(self) -> str:
        """Render one line of the printed table."""
        differences = "".join(f"{percent(d):>9}" for d in (self.printed, self.figures, self.other_seeds))
        return f"{self.name:<62}{self.verdict:<10}{differences}  {self.detail}"


def percent(difference: float | None) -> str:
    return "–" if difference is None else f"{100 * difference:.1f} %"


# ---- the process of one example


def replace_names(peer: str) -> None:
    """Put spinney's classes into the public modules of the peer, and of scikit-learn."""
    import spinney

    replace_classes()
    for theirs, ours in OTHER_NAMES.get(peer, {}).items():
        setattr(importlib.import_module(peer), theirs, getattr(spinney, ours))
    if peer == "shap":
        import shap

        shap.TreeExplainer = explainer
        shap.Explainer = functools.partial(explainer, otherwise=shap.Explainer)


def explainer(model: Any, *args: Any, otherwise: Any = None, **named: Any) -> Any:
    """Return spinney's explainer of a tree model, which is read into spinney if it is another library's."""
    import spinney

    reader = READERS.get(type(model).__module__.partition(".")[0])
    if not hasattr(model, "shap_values"):
        if otherwise is not None and (reader is None or not is_tree_model(model)):
            return otherwise(model, *args, **named)
        if reader is not None:
            model = getattr(spinney, reader)(model)
    explained.append(type(model))
    return spinney.TreeExplainer(model, *args, **named)


def is_tree_model(model: Any) -> bool:
    return not type(model).__module__.startswith("sklearn") or re.search("Tree|Forest|Boosting", type(model).__name__)


def change_seeds(peer: str) -> None:
    """Let estimators use other random numbers in `fit`: those of scikit-learn, and of the peer."""
    modules = [*(f"sklearn.{name}" for name in PUBLIC_MODULES), MODULES.get(peer, peer)]
    for module in map(importlib.import_module, modules):
        for kind in {getattr(module, name) for name in shared_names(peer) if hasattr(module, name)}:
            for method in ("fit", "fit_transform"):
                if hasattr(kind, method):
                    setattr(kind, method, with_other_seed(getattr(kind, method)))


def with_other_seed(fit: Any) -> Any:
    """Return a `fit` that adds to the estimator's random state, if it has one, while it runs."""

    @functools.wraps(fit)
    def changed(model: Any, *args: Any, **named: Any) -> Any:
        seed = getattr(model, "random_state", None)
        if not hasattr(model, "random_state") or not (seed is None or isinstance(seed, int)):
            return fit(model, *args, **named)
        model.random_state = (seed or 0) + 1_000
        try:
            return fit(model, *args, **named)
        finally:
            model.random_state = seed

    return changed


def source_of(path: Path) -> str:
    """Return an example as a script: of a notebook, its code without the commands of IPython."""
    if path.suffix != ".ipynb":
        return path.read_text()
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    lines = "\n".join("".join(cell["source"]) for cell in cells).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))


def prepare(path: Path, peer: str) -> None:
    """Prepare this process: figures stay open, random tables are the same, a notebook's and shap's needs are met."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive|More than 20 figures")
    plt.close = plt.show = lambda *_, **__: None
    vars(builtins)["display"] = lambda *_, **__: None
    socket.setdefaulttimeout(20)
    np.random.seed(0)  # noqa: NPY002 (examples that draw their table without a seed use this generator)
    if peer == "shap":
        import shap

        root = next(folder for folder in path.parents if folder.name == "notebooks").parent
        shap.initjs = lambda: None  # needs IPython
        shap.datasets.github_data_url = (root / "data").as_uri() + "/"


def record(path: Path, peer: str, variant: str) -> Recording:
    """Run an example in this process: the original, with spinney's classes, or with other seeds."""
    prepare(path, peer)
    from matplotlib import pyplot as plt

    if variant == "spinney":
        replace_names(peer)
    elif variant == "seeds":
        change_seeds(peer)
    script = path
    if path.suffix == ".ipynb":
        script = Path("notebook.py").absolute()
        script.write_text(source_of(path))
    sys.argv, sys.path[0] = [str(script)], str(path.parent)
    printed, error = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except (Exception, SystemExit) as raised:
            error = one_line("".join(traceback.format_exception_only(raised)))
    arrays = [] if error else [array for number in plt.get_fignums() for array in shown(plt.figure(number))]
    is_unused = peer == "shap" and variant == "spinney" and not explained
    return Recording(printed.getvalue(), arrays, error, is_unused)


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
            if hasattr(collection, "levels"):  # regions and contours: the level at each point of a grid
                levels = np.full(len(grid), min(collection.levels))
                for level, path in zip(collection.levels, collection.get_paths(), strict=False):
                    levels[path.contains_points(grid)] = level
                arrays.append(levels)
            else:
                arrays += [collection.get_offsets(), collection.get_array()]
    return [np.ma.filled(np.ma.asarray(a, dtype=float), np.nan) for a in arrays if a is not None]


# ---- comparison


def run_example(path: Path, peer: str, variant: str, options: argparse.Namespace) -> Recording:
    """Run an example in its own process, in an empty folder; a kept recording of the original is taken instead."""
    kept = options.kept / f"{kept_name(peer, path)}.{variant}.pickle"
    if kept.exists() and variant != "spinney":
        return pickle.loads(kept.read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        process = os.fork()  # of a process that has imported the libraries: saves seconds for each run
        if not process:
            run_in_child(path.resolve(), peer, variant, options, Path(folder))
        status = wait_for(process, WAITS * options.limit)
        result, messages = Path(folder) / RESULT, Path(folder) / MESSAGES
        if result.exists():
            recording = pickle.loads(result.read_bytes())
        elif status in (-signal.SIGXCPU, None):
            recording = Recording(error=TOO_LONG)
        else:
            recording = Recording(error=f"ended with {status}: {one_line(messages.read_text()[-300:])}")
    if variant != "spinney":
        kept.write_bytes(pickle.dumps(recording))
    return recording


def run_in_child(path: Path, peer: str, variant: str, options: argparse.Namespace, folder: Path) -> None:
    """Run an example in this process, a new one, and end it."""
    status = 1
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(os.open(MESSAGES, os.O_WRONLY | os.O_CREAT), 2)
        resource.setrlimit(resource.RLIMIT_CPU, (options.limit, resource.RLIM_INFINITY))
        result = pickle.dumps(record(path, peer, variant))
        Path(RESULT).write_bytes(result)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def wait_for(process: int, seconds: float) -> int | None:
    """Wait for a process and end its children; return its exit status, or None if it had to be ended."""
    until = time.monotonic() + seconds
    ended = (0, 0)
    while not ended[0] and time.monotonic() < until:
        time.sleep(0.05)
        ended = os.waitpid(process, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    if ended[0]:
        return os.waitstatus_to_exitcode(ended[1])
    os.waitpid(process, 0)
    return None


def kept_name(peer: str, path: Path) -> str:
    return f"{peer}+{'+'.join(path.parts[-3:])}"


def difference(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Return the mean difference of two arrays relative to the size of the first; 1 if their shapes differ.

    Curves of other lengths, such as ROC curves, are compared at 200 places between the ends of the first.
    """
    if theirs.shape != ours.shape and is_curve(theirs) and is_curve(ours):
        places = np.linspace(theirs[0, 0], theirs[-1, 0], 200)
        theirs, ours = (np.interp(places, *curve.T) for curve in (theirs, ours))
    if theirs.shape != ours.shape:
        return 1.0
    if not theirs.size:
        return 0.0
    apart = np.abs(np.nan_to_num(theirs) - np.nan_to_num(ours))
    return min(1.0, float(apart.mean() / (np.abs(np.nan_to_num(theirs)).mean() + 1e-9)))


def is_curve(array: np.ndarray) -> bool:
    return bool(array.ndim == 2 and array.shape[1] == 2 and len(array) > 2 and (np.diff(array[:, 0]) >= 0).all())


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


def compare_example(path: Path, peer: str, options: argparse.Namespace) -> Outcome:
    """Run an example as it is and with spinney's classes."""
    name = str(path.relative_to(options.checkouts / FOLDERS[peer]).with_suffix(""))
    used = used_names(source_of(path))
    if not shared_names(peer) & used:
        return Outcome(name, "no class")
    downloads = sorted(word for word in used if re.fullmatch("fetch_[a-z_0-9]+", word) and is_offline())
    if downloads:
        return Outcome(name, "no data", detail=f"{', '.join(downloads)} without a network")
    theirs = run_example(path, peer, "original", options)
    if theirs.error:
        verdict = "no data" if NO_DATA.search(theirs.error) else "not run"
        return Outcome(name, "too long" if theirs.error == TOO_LONG else verdict, detail=theirs.error)
    ours = run_example(path, peer, "spinney", options)
    if ours.is_unused:
        return Outcome(name, "no class")
    if ours.error:
        return Outcome(name, "fails", detail=ours.error)
    printed, figures, largest = compare_recordings(theirs, ours)
    if largest <= SAME:
        return Outcome(name, "same", printed, figures)
    other_seeds = None
    if any(re.search(RANDOM, word) for word in shared_names(peer) & used):
        seeds = run_example(path, peer, "seeds", options)
        other_seeds = None if seeds.error else compare_recordings(theirs, seeds)[2]
    return Outcome(name, "similar" if largest <= SIMILAR else "differs", printed, figures, other_seeds)


@functools.cache
def is_offline() -> bool:
    """Return whether scikit-learn's `fetch_*` can neither download nor read a table."""
    try:
        socket.getaddrinfo("www.openml.org", 443)
    except OSError:
        return not any(path.is_file() for path in (Path.home() / "scikit_learn_data").rglob("*"))
    return False


def compare_recordings(theirs: Recording, ours: Recording) -> tuple[float | None, float | None, float]:
    """Return the differences of the printed numbers and of the figures, and the larger one."""
    printed = compare_numbers(theirs.numbers(), ours.numbers())
    figures = compare_figures(theirs.figures, ours.figures)
    return printed, figures, max(printed or 0.0, figures or 0.0)


# ---- the examples


@functools.cache
def shared_names(peer: str) -> frozenset[str]:
    """Return the peer's names of the classes and functions that spinney has too."""
    import spinney

    if peer in OTHER_NAMES:
        return frozenset(OTHER_NAMES[peer])
    if peer == "shap":
        return frozenset({"TreeExplainer", "Explainer"})
    theirs = {name for module in PUBLIC_MODULES for name in importlib.import_module(f"sklearn.{module}").__all__}
    return frozenset(theirs & {*spinney.__all__, *(f"Hist{name}" for name in spinney.__all__)})


def used_names(source: str) -> set[str]:
    """Return the names that a script imports or reads; none if it is no Python."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return set()
    imported = [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    return {
        *(alias.name.partition(".")[0] for alias in imported),
        *(node.attr for node in nodes if isinstance(node, ast.Attribute)),
        *(node.id for node in nodes if isinstance(node, ast.Name)),
    }


def examples(peer: str, options: argparse.Namespace) -> list[Path]:
    """Return the examples: of scikit-learn those that use a shared name, of others all that import the library."""
    folder = options.checkouts / FOLDERS[peer]
    wanted = shared_names(peer) if peer == "scikit-learn" else {"TreeExplainer", *READERS} if peer == "shap" else {peer}
    found = sorted(path for suffix in ("py", "ipynb") for path in folder.rglob(f"*.{suffix}"))
    chosen = [p for p in found if not options.words or any(w in str(p.relative_to(folder)) for w in options.words)]
    return [path for path in chosen if wanted & used_names(source_of(path))]


# ---- the page of the documentation


def write_page(options: argparse.Namespace) -> None:
    """Write the tables of all kept outcomes into the page of the documentation, between its two comments."""
    lines = [BEGIN, ""]
    for peer in FOLDERS:
        outcomes = [Outcome(**json.loads(file.read_text())) for file in sorted(options.kept.glob(f"{peer}+*.json"))]
        lines += table_of(peer, outcomes) if outcomes else []
    before, _, rest = options.rst.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    options.rst.write_text(before + "\n".join(line.rstrip() for line in lines) + END + after)


def counted(outcomes: list[Outcome]) -> str:
    counts = Counter(outcome.verdict for outcome in outcomes)
    return ", ".join(f"{counts[verdict]} {text}" for verdict, text in VERDICTS.items() if counts[verdict])


def table_of(peer: str, outcomes: list[Outcome]) -> list[str]:
    """Return the lines of one library: its version, the counts, the table, and the examples that did not run."""
    version = importlib.import_module(MODULES.get(peer, peer)).__version__
    title = f"{peer} {version}"
    known = reasons(peer)
    lines = [title, "-" * len(title), "", f"{len(outcomes)} examples: {counted(outcomes)}.", ""]
    lines += [".. list-table::", "   :header-rows: 1", "   :widths: 30 9 9 9 9 44", ""]
    rows = [("example", "outcome", "printed", "figures", "seeds", "reason")]
    for o in sorted(outcomes, key=lambda o: o.name):
        if o.verdict in ("same", "similar", "differs", "fails"):
            differences = [percent(d) for d in (o.printed, o.figures, o.other_seeds)]
            rows.append((f"``{o.name}``", o.verdict, *differences, known.get(o.name, "")))
    lines += [f"   {'  -' if i else '* -'} {cell}" for cells in rows for i, cell in enumerate(cells)]
    for verdict in ("no data", "too long", "not run", "no class"):
        names = sorted(o.name for o in outcomes if o.verdict == verdict)
        if names:
            reasoned = [f"``{name}``" + (f" ({known[name]})" if name in known else "") for name in names]
            lines += ["", f"{VERDICTS[verdict].capitalize()}: " + ", ".join(reasoned) + "."]
    return [*lines, "", ""]


def reasons(peer: str) -> dict[str, str]:
    return tomllib.loads(REASONS.read_text()).get(peer, {})


def run_peer(peer: str, options: argparse.Namespace) -> None:
    """Run a library's examples, print a line for each, and keep the outcomes."""
    outcomes: list[Outcome] = []
    known = reasons(peer)
    print(f"{'example of ' + peer:<62}{'outcome':<10}{'printed':>9}{'figures':>9}{'seeds':>9}  error or reason")
    for path in examples(peer, options):
        kept = options.kept / f"{kept_name(peer, path)}.json"
        if options.resume and kept.exists():
            outcome = Outcome(**json.loads(kept.read_text()))
        else:
            outcome = compare_example(path, peer, options)
            kept.write_text(json.dumps(asdict(outcome)))
        outcomes.append(outcome)
        print(outcome, flush=True)
        if outcome.verdict != "same" and (reason := known.get(outcome.name)):
            print(f"    {reason}", flush=True)
    print(f"{len(outcomes)} examples: {counted(outcomes)}\n", flush=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run other libraries' examples with spinney's classes.")
    parser.add_argument("checkouts", type=Path, help="a folder with checkouts of scikit-learn, LightGBM, xgboost, shap")
    parser.add_argument("words", nargs="*", help="run the examples whose path contains one of these")
    parser.add_argument("--peer", action="append", choices=FOLDERS, help="run those of this library only")
    parser.add_argument("--limit", type=int, default=120, help="seconds of the processor for a run (default 120)")
    parser.add_argument("--kept", type=Path, default=Path("build/peer_examples"), metavar="FOLDER",
                        help="keep outcomes and the results of the originals here")  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="run only the examples without a kept outcome")
    parser.add_argument("--rst", type=Path, metavar="FILE", help="write the tables into this page")
    return parser.parse_args(arguments)


def main(options: argparse.Namespace) -> None:
    options.kept = options.kept.resolve()
    options.kept.mkdir(parents=True, exist_ok=True)
    os.environ["JOBLIB_MULTIPROCESSING"] = "0"
    importlib.import_module("matplotlib.pyplot")
    importlib.import_module("pandas")
    for peer in options.peer or FOLDERS:
        if (options.checkouts / FOLDERS[peer]).exists():
            run_peer(peer, options)
    if options.rst:
        write_page(options)


if __name__ == "__main__":
    main(parse())
