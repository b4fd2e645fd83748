"""The HTML file: the data of all sections, and one self-contained page of styles, scripts and data."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import time as clock
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from spinney._data.display import one_line
from spinney._evaluate.report import errors, explain, overview, relations
from spinney._evaluate.report.tree import tree_section
from spinney._evaluate.report.view import View
from spinney._evaluate.report.what_if import what_if_section
from spinney._evaluate.study.findings import Findings
from spinney._names import __version__

_STYLES = ("report.css", "tree.css", "print.css")
_LIBRARIES = ("d3.min.js", "plot.umd.min.js")
_SCRIPTS = (
    *("base.js", "charts.js", "leaderboard.js", "tree.js", "explain.js", "classification.js"),
    *("data_and_errors.js", "relations.js", "what_if.js", "page.js"),
)


def asset(name: str) -> str:
    """Return the text of a file in `assets`."""
    return (files("spinney._evaluate.report") / "assets" / name).read_text(encoding="utf-8")


def page(data: dict[str, Any], title: str, sentences: list[str]) -> str:
    """Return the HTML of the page.

    The content security policy allows only the scripts of the page, by their digests: text from the table cannot run
    as a script, and nothing is fetched or sent.

    Parameters
    ----------
    data : dict
        Data of the charts.
    title : str
    sentences : list of str
        The summary, readable without scripts.
    """
    scripts = [asset(name) for name in _LIBRARIES]
    scripts.append("(() => {\n'use strict';\n" + "\n".join(asset(name) for name in _SCRIPTS) + "})();\n")
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"
    texts = {
        "policy": escape(policy, quote=True),
        "title": escape(title),
        "styles": "\n".join(asset(name) for name in _STYLES),
        "summary": "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences),
        "data": to_json(data),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    return _filled(asset("template.html"), texts)


def _filled(template: str, texts: dict[str, str]) -> str:
    """Replace each placeholder ``{{name}}`` by a text; placeholders in the texts are left alone."""
    parts = template.split("{{")
    text = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition("}}")
        text += [texts[name], rest]
    return "".join(text)


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


_DIGITS = 5
# The HTML parser interprets these even inside JSON.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def to_json(value: object) -> str:
    """Encode nested dicts, lists, arrays, numbers and texts as JSON that is safe inside HTML.

    Numbers are rounded to five digits; non-finite ones become null. No tag, comment or entity can start in the text.
    """
    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter, escaped in _UNSAFE.items():
        text = text.replace(letter, escaped)
    return text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate has no UTF-8


def plain(value: object) -> object:
    """Return nested values with NumPy types converted to Python types and numbers rounded."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset | range):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return short(value)
    return value if value is None or isinstance(value, bool | int) else str(value)


def short(value: float, digits: int = _DIGITS) -> float | int | None:
    """Round to some digits; integers without a point, None for non-finite numbers."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def write_report(study: Findings, path: str | os.PathLike[str], seconds: float = math.inf) -> Path:
    """Write the report of a study as one self-contained HTML file.

    Parameters
    ----------
    study : Study
        Result of `spinney.study`.
    path : str or path
        Output file.
    seconds : float, default=inf
        Time limit: sections that there is no time for are left out, and named.

    Returns
    -------
    Path
        The output file.
    """
    title, sentences, data = gather(study, seconds)
    file = Path(path)
    file.write_text(page(data, title, sentences), encoding="utf-8", newline="\n")
    return file


Content = dict[str, Any] | None
_TREE_FITS = 2.0  # of the section of the tree


class _Sections:
    """Computes sections of the report until a time limit, and lists those without content."""

    def __init__(self, seconds: float) -> None:
        self._end, self._longest = clock.monotonic() + seconds, 0.0
        self.late, self.slow = list[str](), list[str]()  # no time left; predictions would take too long

    @property
    def left(self) -> float:
        """Seconds left."""
        return self._end - clock.monotonic()

    def compute(
        self, section: str, content: Callable[[], Content], *, is_always_there: bool = False, expected: float = 0.0
    ) -> Content:
        """Return the content of a section; None if the time left is less than expected or the longest has taken."""
        start = clock.monotonic()
        if self.left < max(0.0, self._longest, expected):
            self.late.append(section)
            return None
        found = content()
        self._longest = max(self._longest, clock.monotonic() - start)
        if found is None and is_always_there:
            self.slow.append(section)
        return found


def gather(study: Findings, seconds: float = math.inf) -> tuple[str, list[str], dict[str, Any]]:
    """Return the title, the sentences of the summary, and the data of the page.

    The first sections are quick, and always there; the others are computed in the order of their use to most readers.
    """
    parts = _Sections(seconds)
    train = View(study.tree, study.X_train, study.train_rows)
    test = View(study.tree, study.X_test, study.test_rows)
    data_profile, pair = overview.data_section(study, train), relations.comparison_section(study, test)
    classification, residuals = errors.classification_section(study, test), errors.residuals_section(study, test)
    tree = parts.compute("tree", lambda: tree_section(study, train, test), expected=_TREE_FITS * study.tree_seconds)
    what_if = parts.compute("what_if", lambda: what_if_section(study, test))
    shap = parts.compute("shap", lambda: explain.shap_section(study, test))
    importances = parts.compute(
        "importances", lambda: explain.importances_section(study, test, shap), is_always_there=True
    )
    columns = [] if importances is None else [column["name"] for column in importances["columns"]]
    dependence = parts.compute(
        "dependence", lambda: explain.dependence_section(study, test, columns), is_always_there=True
    )
    associations = parts.compute("associations", lambda: relations.associations_section(study, train))
    reliability = parts.compute("reliability", lambda: errors.reliability_section(study, train, test))
    learning = parts.compute("learning", lambda: overview.learning_section(study, parts.left))
    sentences, tiles = overview.summary(study, columns, tree is not None)
    sections = [
        _section("leaderboard", "Leaderboard", overview.leaderboard_section(study)),
        _section("tree", "Decision tree", tree),
        _section("importances", "Feature importance", importances),
        _section("dependence", "Partial dependence", dependence),
        _section("shap", "SHAP values", shap),
        _section("what_if", "What if", what_if),
        _section("classification", "Classification", classification),
        _section("residuals", "Residuals", residuals),
        _section("comparison", "Two models row by row", pair),
        _section("learning", "Learning curves", learning),
        _section("reliability", "Outliers and drift", reliability),
        _section("data", "Data", data_profile),
        _section("associations", "Associations of columns", associations),
    ]
    slow, late = ([one["title"] for one in sections if one["id"] in absent] for absent in (parts.slow, parts.late))
    sections.append(_section("reproduce", "Reproducibility", overview.reproduce_section(study, slow, late)))
    name = one_line(study.target)
    data: dict[str, Any] = {"target": name, "task": study.task, "eyebrow": overview.eyebrow(study)}
    data |= {"made_by": f"spinney {__version__}", "tiles": tiles, "sections": sections}
    return f"Predicting {name}", sentences, data


def _section(section: str, title: str, content: Content) -> dict[str, Any]:
    """Return a section of the page; a section without content is not shown."""
    return {"id": section, "title": title, "content": content}
