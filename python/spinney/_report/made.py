"""How the study was made, so that it can be made again."""

from __future__ import annotations

from typing import Any

from spinney._words.digits import one_line


def made_section(study: Any) -> dict[str, Any]:
    """Gather notes, versions, time and command."""
    command = getattr(study, "command", None)
    return {
        "notes": [one_line(note) for note in study.notes],
        "calibration": one_line(getattr(study, "calibration", "") or ""),
        "seconds": float(study.seconds),
        "versions": dict(study.versions),
        "n_folds": len(study.folds),
        "command": one_line(command) if command else None,
        "code": f"import spinney\n\nfound = spinney.study(table, {study.target!r})\nfound.save('model.spinney')\nfound.report('report.html')",
    }
