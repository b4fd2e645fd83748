"""How the study was made, so that it can be made again."""

from __future__ import annotations

import shlex
from typing import Any

from spinney._data.display import one_line
from spinney._evaluate.study.findings import Findings

_FLAGS = {"models": "--model", "random_state": "--seed"}  # others: the option's own name


def made_section(study: Findings, left_out: list[str]) -> dict[str, Any]:
    """Gather notes, versions, time and command, and the titles of parts of the page that no model had time for."""
    said = "".join(f", {name}={value!r}" for name, value in study.options.items())
    table = repr(study.source) if study.source else "table"
    code = one_line(f"found = spinney.study({table}, {study.target!r}{said})")
    return {
        "notes": [one_line(note) for note in [*study.notes, *_said(left_out)]],
        "calibration": one_line(study.calibration),
        "seconds": study.seconds,
        "versions": study.versions,
        "n_folds": len(study.folds),
        "command": study.command,
        "code": f"import spinney\n\n{code}\nfound.save('best.model')\nfound.report('report.html')",
    }


def _said(left_out: list[str]) -> list[str]:
    if not left_out:
        return []
    parts = ", ".join(f"“{title}”" for title in left_out)
    return [f"Not on this page, as the best models would take too long to answer: {parts}."]


def command_line(table: str, target: str, options: dict[str, Any]) -> str:
    """Write the command of a study with all options that were given.

    Parameters
    ----------
    table : str
        The file.
    target : str
        The column to predict.
    options : dict of str to value
        By their names in Python; lists are told one by one, and None, False and empty ones not at all.
    """
    words = ["spinney", "study", table, "--target", target]
    for name, given in options.items():
        flag = _FLAGS.get(name, f"--{name}")
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if value is not None and value is not False:
                words += [flag] if value is True else [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return " ".join(shlex.quote(one_line(word)) for word in words)
