"""What the report says, gathered section by section."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from spinney._data.display.digits import one_line
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
from spinney._names import __version__


def write_report(study: Any, path: str | os.PathLike[str]) -> Path:
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


_DEPENDENCE = "How predictions change with a column"


def gather(study: Any) -> tuple[str, list[str], dict[str, Any]]:
    """Return the title, the sentences of the answer, and the data of all sections."""
    train, test = View(study.tree, study.X_train), View(study.tree, study.X_test)
    shap = shap_section(study, test)
    importances = importances_section(study, test, shap)
    columns = [] if importances is None else [column["name"] for column in importances["columns"]]
    dependence = dependence_section(study, test, columns)
    sentences, tiles = summary(study, columns)
    asked = {"Which columns matter": importances, _DEPENDENCE: dependence}
    data = {
        "target": one_line(study.target),
        "task": study.task,
        "eyebrow": eyebrow(study),
        "tiles": tiles,
        "made_by": f"spinney {__version__}",
        "sections": [
            _section("board", "Leader board", "Leader board", board_section(study)),
            _section("tree", "Readable tree", "A tree that can be read", tree_section(study, train, test)),
            _section("importances", "Importances", "Which columns matter", importances),
            _section("dependence", "Dependence", _DEPENDENCE, dependence),
            _section("shap", "Single rows", "What moves single predictions", shap),
            _section("decide", "Decisions", "Probabilities and decisions", decide_section(study, test)),
            _section("residuals", "Residuals", "Where predictions miss", residuals_section(study, test)),
            _section("learning", "Learning curves", "Would more rows help?", learning_section(study)),
            _section("trust", "Trust", "Where not to trust it", trust_section(study, train, test)),
            _section("profile", "The data", "The data", profile_section(study, train)),
            _section(
                "made",
                "How it was made",
                "How it was made",
                made_section(study, [title for title, part in asked.items() if part is None]),
            ),
        ],
    }
    return f"What tells {one_line(study.target)}?", sentences, data


def _section(section: str, name: str, title: str, content: Any, lede: str = "") -> dict[str, Any]:
    return {"id": section, "name": name, "title": title, "lede": lede, "content": content}
