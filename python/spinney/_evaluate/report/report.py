"""What the report says, gathered section by section."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinney._data.display import one_line
from spinney._evaluate.report.board import board_section
from spinney._evaluate.report.decide import decide_section
from spinney._evaluate.report.dependence import dependence_section
from spinney._evaluate.report.importances import importances_section
from spinney._evaluate.report.learning import learning_section
from spinney._evaluate.report.page import page
from spinney._evaluate.report.profile import profile_section
from spinney._evaluate.report.provenance import made_section
from spinney._evaluate.report.residuals import residuals_section
from spinney._evaluate.report.shap import shap_section
from spinney._evaluate.report.summary import eyebrow, summary
from spinney._evaluate.report.tree import tree_section
from spinney._evaluate.report.trust import trust_section
from spinney._evaluate.report.view import View
from spinney._evaluate.study.findings import Findings
from spinney._names import __version__


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
    lede: str = ""


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
    shap = shap_section(study, test)
    importances = importances_section(study, test, shap)
    columns = [] if importances is None else [column["name"] for column in importances["columns"]]
    sentences, tiles = summary(study, columns)
    sections = [
        Section("board", "Leader board", "Leader board", board_section(study)),
        Section("tree", "Readable tree", "A tree that can be read", tree_section(study, train, test)),
        Section("importances", "Importances", "Which columns matter", importances),
        Section(
            "dependence",
            "Dependence",
            "How predictions change with a column",
            dependence_section(study, test, columns),
        ),
        Section("shap", "Single rows", "What moves single predictions", shap),
        Section("decide", "Decisions", "Probabilities and decisions", decide_section(study, test)),
        Section("residuals", "Residuals", "Where predictions miss", residuals_section(study, test)),
        Section("learning", "Learning curves", "Would more rows help?", learning_section(study)),
        Section("trust", "Trust", "Where not to trust it", trust_section(study, train, test)),
        Section("profile", "The data", "The data", profile_section(study, train)),
    ]
    left_out = [one.title for one in sections if one.id in ("importances", "dependence") and one.content is None]
    sections.append(Section("made", "How it was made", "How it was made", made_section(study, left_out)))
    name = one_line(study.target)
    page_data = Page(name, study.task, eyebrow(study), f"spinney {__version__}", tiles, sections)
    return f"What tells {name}?", sentences, page_data
