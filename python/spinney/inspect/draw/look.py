"""What the boxes of a drawn tree show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spinney._data.display import percent, shortest, thousands

Labels = Literal["all", "root", "none"]
_MAX_PROBABILITIES = 4


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the boxes of a picture show; the parameters of `plot_tree` of these names."""

    filled: bool = True
    rounded: bool = True
    impurity: bool = False
    node_ids: bool = False
    proportion: bool | None = None
    label: Labels = "all"

    def __post_init__(self) -> None:
        if self.label not in ("all", "root", "none"):
            raise ValueError(f"label must be 'all', 'root' or 'none', not {self.label!r}.")

    @property
    def has_details(self) -> bool:
        """Whether boxes show more than those of small pictures have space for."""
        return self.impurity or self.node_ids or self.proportion is not None

    def words(self, node: int, name: str, text: str) -> str:
        """Return a text with the name of what it is, in the boxes that have names."""
        return f"{name} = {text}" if self.label == "all" or (self.label == "root" and node == 0) else text

    def size(self, n_rows: str, fraction: float) -> str:
        """Return the number of training rows of a node, their fraction, or both."""
        share = percent(fraction)
        return f"{n_rows} ({share})" if self.proportion is None else share if self.proportion else n_rows

    def lines(self, node: int, criterion: str, impurity: str) -> list[str]:
        """Return the number and the impurity of a node."""
        number = [self.words(node, "node", str(node))] if self.node_ids else []
        return [*number, self.words(node, criterion, impurity)] if self.impurity else number

    def class_line(self, probabilities: list[float], weight: float, largest: float) -> str:
        """Return the class probabilities, or the weight of each class; of many classes, only the largest."""
        if len(probabilities) > _MAX_PROBABILITIES:
            probabilities = [largest]
            if self.proportion is not False:
                return percent(largest)
        if self.proportion is False:
            texts = [thousands(shortest(probability * weight)) for probability in probabilities]
        else:
            texts = [short_decimal(probability) for probability in probabilities]
        return "\N{NO-BREAK SPACE} ".join(texts)


def short_decimal(probability: float) -> str:
    """Return two decimals without the leading zero; 1 and 0 only if exact."""
    if probability in (0.0, 1.0):
        return f"{probability:.0f}"
    return f"{min(max(probability, 0.01), 0.99):.2f}"[1:]
