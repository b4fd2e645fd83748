"""The HTML file: sections gathered, and one text of styles, programs and data that fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from dataclasses import dataclass, is_dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from spinney._data.display import one_line
from spinney._evaluate.report import errors, explain, overview
from spinney._evaluate.report.tree import tree_section
from spinney._evaluate.report.view import View
from spinney._evaluate.study.findings import Findings
from spinney._names import __version__

_STYLES = ("report.css", "tree.css", "print.css")
_LIBRARIES = ("d3.min.js", "plot.umd.min.js")
_PROGRAMS = ("base.js", "charts.js", "board.js", "tree.js", "explain.js", "decide.js", "rest.js", "page.js")


def asset(name: str) -> str:
    """Read a file that comes with the report."""
    return (files("spinney._evaluate.report") / "assets" / name).read_text(encoding="utf-8")


def page(data: object, title: str, sentences: list[str]) -> str:
    """Write the page.

    Only the programs that stand here may run: the policy names them by their digests. A text that came in with the
    table could not run even if it became a tag, and nothing can be fetched or sent.

    Parameters
    ----------
    data : dict or dataclass
        What the programs draw.
    title : str
        Of the page.
    sentences : list of str
        The answer, readable without any program.
    """
    programs = [asset(name) for name in _LIBRARIES]
    programs.append("(() => {\n'use strict';\n" + "\n".join(asset(name) for name in _PROGRAMS) + "})();\n")
    allowed = " ".join(f"'sha256-{_digest(program)}'" for program in programs)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"
    holes = {
        "policy": escape(policy, quote=True),
        "title": escape(title),
        "styles": "\n".join(asset(name) for name in _STYLES),
        "answer": "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences),
        "data": to_json(data),
        "programs": "\n".join(f"<script>{program}</script>" for program in programs),
    }
    return _filled(asset("template.html"), holes)


def _filled(template: str, holes: dict[str, str]) -> str:
    """Put texts into the places ``{{name}}``; a text is never searched for places itself."""
    parts = template.split("{{")
    text = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition("}}")
        text += [holes[name], rest]
    return "".join(text)


def _digest(program: str) -> str:
    return base64.b64encode(hashlib.sha256(program.encode("utf-8")).digest()).decode("ascii")


_DIGITS = 5
# A browser that reads HTML looks for these before it knows that it is inside JSON.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def to_json(value: object) -> str:
    """Encode nested dicts, lists, arrays, numbers and texts.

    Numbers keep five digits and what is not finite becomes null. No tag, comment or entity can begin in the text, so
    that a name out of the table stays a name.
    """
    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter, escaped in _UNSAFE.items():
        text = text.replace(letter, escaped)
    return text.encode("utf-8", "replace").decode("utf-8")  # half of a surrogate pair has no UTF-8


def plain(value: object) -> object:
    """Turn NumPy's types into Python's and shorten numbers."""
    if is_dataclass(value):
        return plain(vars(value))
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
    """Round to some digits; whole numbers without a point, None for what is not finite."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def write_report(study: Findings, path: str | os.PathLike[str]) -> Path:
    """Write a study as one HTML file that needs nothing else.

    Parameters
    ----------
    study : Study
        What `spinney.study` found, or an object with the same attributes.
    path : str or path
        Where to write.

    Returns
    -------
    Path
        The file.
    """
    title, sentences, data = gather(study)
    file = Path(path)
    file.write_text(page(data, title, sentences), encoding="utf-8", newline="\n")
    return file


@dataclass(frozen=True)
class Section:
    """A section of the page; `content` is what its program draws, None if there is nothing to draw."""

    id: str
    name: str
    title: str
    content: dict[str, Any] | None


@dataclass(frozen=True)
class Page:
    """What stands on the page.

    Attributes
    ----------
    target, task, eyebrow, made_by : str
    tiles : list of dict
        Figures beside the answer.
    sections : list of Section
    """

    target: str
    task: str
    eyebrow: str
    made_by: str
    tiles: list[dict[str, Any]]
    sections: list[Section]


def gather(study: Findings) -> tuple[str, list[str], Page]:
    """Return the title, the sentences of the answer, and the data of all sections."""
    train, test = View(study.tree, study.X_train), View(study.tree, study.X_test)
    shap = explain.shap_section(study, test)
    importances = explain.importances_section(study, test, shap)
    columns = [] if importances is None else [column["name"] for column in importances["columns"]]
    dependence = explain.dependence_section(study, test, columns)
    sentences, tiles = overview.summary(study, columns)
    sections = [
        Section("board", "Leader board", "Leader board", overview.board_section(study)),
        Section("tree", "Readable tree", "A tree that can be read", tree_section(study, train, test)),
        Section("importances", "Importances", "Which columns matter", importances),
        Section("dependence", "Dependence", "How predictions change with a column", dependence),
        Section("shap", "Single rows", "What moves single predictions", shap),
        Section("decide", "Decisions", "Probabilities and decisions", errors.decide_section(study, test)),
        Section("residuals", "Residuals", "Where predictions miss", errors.residuals_section(study, test)),
        Section("learning", "Learning curves", "Would more rows help?", overview.learning_section(study)),
        Section("trust", "Trust", "Where not to trust it", errors.trust_section(study, train, test)),
        Section("profile", "The data", "The data", overview.profile_section(study, train)),
    ]
    left_out = [one.title for one in sections if one.id in ("importances", "dependence") and one.content is None]
    sections.append(Section("made", "How it was made", "How it was made", overview.made_section(study, left_out)))
    name = one_line(study.target)
    page_data = Page(name, study.task, overview.eyebrow(study), f"spinney {__version__}", tiles, sections)
    return f"What tells {name}?", sentences, page_data
