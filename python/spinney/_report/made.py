"""How the study was made, so that it can be made again."""

from __future__ import annotations

import shlex
from typing import Any

from spinney._words.digits import one_line


def made_section(study: Any) -> dict[str, Any]:
    """Gather notes, versions, time and command."""
    code = f"found = spinney.study(table, {study.target!r})"
    return {
        "notes": [one_line(note) for note in study.notes],
        "calibration": one_line(getattr(study, "calibration", "") or ""),
        "seconds": float(study.seconds),
        "versions": dict(study.versions),
        "n_folds": len(study.folds),
        "command": f"spinney study TABLE --target {shlex.quote(one_line(study.target))}",
        "code": f"import spinney\n\n{code}\nfound.save('best.model')\nfound.report('report.html')",
    }
