"""What pruning has learned ⇄ entries of a model file's header."""

from __future__ import annotations

import math
from typing import Any

from spinney._model.file.container import field, refuse
from spinney._tree.prune.table import ComplexityTable


def pruning_to_json(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the header entries; none if the tree was not pruned by a choice of alpha."""
    entries: dict[str, Any] = {}
    if "alpha_" in attributes:
        alpha = float(attributes["alpha_"])
        entries["alpha"] = alpha if math.isfinite(alpha) else None
    if "cp_table_" in attributes:
        entries["cp_table"] = attributes["cp_table_"].thinned().to_dict()
    return entries


def pruning_from_json(header: dict[str, Any]) -> dict[str, Any]:
    """Turn back what `pruning_to_json` gives."""
    found: dict[str, Any] = {}
    if "alpha" in header:
        alpha = header["alpha"]
        if alpha is not None and (type(alpha) not in (int, float) or not 0 <= alpha <= 1e308):
            refuse("is damaged: its alpha is not a number of at least 0")
        found["alpha_"] = math.inf if alpha is None else float(alpha)
    if "cp_table" in header:
        try:
            found["cp_table_"] = ComplexityTable.from_dict(field(header, "cp_table", dict))
        except ValueError as error:
            refuse(f"is damaged: in its complexity table {error}")
    return found
