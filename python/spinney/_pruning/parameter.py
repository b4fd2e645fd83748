"""`prune`: a parameter when it is set, a method when it is called."""

from __future__ import annotations

from typing import Any


class Pruning:
    """How a tree is pruned at fit, and the method that prunes it afterwards.

    It equals and shows the value of the parameter `prune`. Called, it returns a pruned copy of a fitted tree.
    """

    def __init__(self, estimator: Any, value: str | None) -> None:
        self._estimator = estimator
        self.value = value

    def __call__(self, *, alpha: float | None = None, cp: float | None = None) -> Any:
        """Return a copy of the fitted tree that is pruned further, without growing it again.

        Parameters
        ----------
        alpha : float, optional
            Penalty per leaf, in the unit of the risk; all that goes at or below it goes.
        cp : float, optional
            The same as a share of the root's risk.

        Returns
        -------
        estimator
            A new fitted tree; this one stays as it is.
        """
        return self._estimator._pruned_copy(alpha, cp)

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

    scikit-learn wants parameter `x` as attribute `x`, and a tree is pruned by ``tree.prune(alpha=...)``.
    """

    def __get__(self, estimator: Any, owner: type) -> Any:
        return self if estimator is None else Pruning(estimator, estimator.__dict__.get("prune"))

    def __set__(self, estimator: Any, value: Any) -> None:
        estimator.__dict__["prune"] = value.value if isinstance(value, Pruning) else value
