"""A fitted model in a few words and numbers, for whoever lists or shows models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class About:
    """What the command line and reports say of a model without knowing its family.

    Attributes
    ----------
    noun : str
        What people call it: a tree, a forest, boosting.
    size : dict
        Its size and scores by name, as JSON can hold them.
    lines : dict
        The same for a table: label and text of each line.
    sentence : str
        The same in one line.
    trees : sequence of estimators, or None
        The trees that can be read one by one.
    why_no_trees : str
        Why there are none, as a sentence that says what to do.
    title_of_tree : callable, or None
        From the number of one of the trees, counted from 0, to what it is; None: it speaks for itself.
    is_shown : bool
        Whether there is anything to show of it but a sentence.
    """

    noun: str
    size: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    sentence: str = ""
    trees: Sequence[Any] | None = None
    why_no_trees: str = ""
    title_of_tree: Callable[[int], str] | None = None
    is_shown: bool = True


def counted(n: int, one: str, many: str) -> str:
    """Return a number with its noun, such as "1 leaf" or "1,024 leaves"."""
    return f"{n:,} {one if n == 1 else many}"
