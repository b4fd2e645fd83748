"""`prune`: a parameter, and for old code still a method of the same name."""

from __future__ import annotations

import warnings
from typing import Any


class Pruning:
    """How a tree is pruned at fit, and the former name of the method that prunes it afterwards.

    It equals and shows the value of the parameter `prune`. Called, it hands over to `pruned`.
    """

    def __init__(self, estimator: Any, value: str | None) -> None:
        self._estimator = estimator
        self.value = value

    def __call__(self, *, alpha: float | None = None, cp: float | None = None) -> Any:
        """Do what `pruned` does: that method was once called `prune`."""
        warnings.warn(
            "tree.prune(...) will be removed in version 0.3: prune is the name of a parameter. Use tree.pruned(...).",
            FutureWarning,
            stacklevel=2,
        )
        return self._estimator.pruned(alpha=alpha, cp=cp)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, Pruning) else other))

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    def __str__(self) -> str:
        return str(self.value)


class PruneParameter:
    """Data descriptor: keeps the value under the parameter's name and hands out a `Pruning`.

    scikit-learn wants parameter `x` as attribute `x`, and trees were once pruned by ``tree.prune(alpha=...)``.
    """

    def __get__(self, estimator: Any, owner: type) -> Any:
        return self if estimator is None else Pruning(estimator, estimator.__dict__.get("prune"))

    def __set__(self, estimator: Any, value: Any) -> None:
        estimator.__dict__["prune"] = value.value if isinstance(value, Pruning) else value
