"""Which model is asked: the best that can answer in the time that a report may take."""

from __future__ import annotations

import numpy as np

from spinney._evaluate.study.findings import Findings

SECONDS = 3.0  # that one section may spend on asking


def affordable(study: Findings, n_rows: int, method: str = "predict") -> str | None:
    """Name the best model that can predict so many rows in time, by what the study measured; None if none can.

    Parameters
    ----------
    study : Study
    n_rows : int
        Rows to be predicted, all questions together.
    method : str, default="predict"
        What the model must have.
    """
    held_out = float(np.mean([len(held) for _, held in study.folds]))
    for entry in study.leaderboard:
        is_quick = entry.predict_seconds / max(held_out, 1.0) * n_rows <= SECONDS
        if is_quick and not entry.is_baseline and hasattr(study.models.get(entry.name), method):
            return entry.name
    return None


def explainable(study: Findings) -> str | None:
    """Name the best model whose predictions can be parted among the columns; None if there is none."""
    for entry in study.leaderboard:
        if hasattr(study.models.get(entry.name), "shap_values"):
            return entry.name
    return None
