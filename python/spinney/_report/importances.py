"""Which columns matter, with an interval for each."""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST_COLUMNS = 20


def importances_section(shap: dict[str, Any] | None) -> dict[str, Any] | None:
    """Mean size of what each column adds, over the rows that were explained."""
    if shap is None:
        return None
    values = np.mean([np.abs(np.asarray(part["values"])) for part in shap["outputs"]], axis=0)
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    order = np.argsort(-mean, kind="stable")[:_MOST_COLUMNS]
    return {
        "title": "Mean size of what each column adds to a prediction",
        "note": f"{shap['model']}, {len(values)} test rows; in the {shap['of']}"
        + (", mean of the classes" if len(shap["outputs"]) > 1 else "")
        + "; lines are 95 % intervals.",
        "unit": "mean size of what the column adds",
        "columns": [
            {
                "name": shap["columns"][j],
                "value": mean[j],
                "low": mean[j] - 1.96 * error[j],
                "high": mean[j] + 1.96 * error[j],
            }
            for j in order
        ],
    }
