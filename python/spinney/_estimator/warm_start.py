"""What no warm start may change: the classes and outputs of the target."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_target_goes_on(learned: dict[str, Any], known: dict[str, Any]) -> None:
    """Refuse a target that an earlier fit does not fit.

    Parameters
    ----------
    learned, known : dict
        Fitted attributes that come from the new and from the earlier target.
    """
    if learned.get("n_outputs_") != known.get("n_outputs_", learned.get("n_outputs_")) or not same_classes(
        learned, known
    ):
        raise ValueError("warm_start needs the classes and outputs of the earlier fit. Set warm_start=False.")


def same_classes(learned: dict[str, Any], known: dict[str, Any]) -> bool:
    """Whether a target has the classes of a fitted model, and of the same kind: True is not 1."""
    if "classes_" not in learned:
        return True
    new, old = (c if isinstance(c, list) else [c] for c in (learned["classes_"], known["classes_"]))
    return len(new) == len(old) and all(map(_same_labels, new, old))


def _same_labels(new: Any, old: Any) -> bool:
    kinds = {_kind(np.asarray(labels).dtype.kind) for labels in (new, old)}
    return len(kinds) == 1 and np.array_equal(new, old)


def _kind(letter: str) -> str:
    """Return one letter for all kinds of numbers, and one for all kinds of text."""
    return "f" if letter in "iuf" else "O" if letter in "US" else letter
