"""Attributes that an estimator does not have, or no longer under that name, and what it says when asked for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from sklearn.utils.metaestimators import available_if

Method = TypeVar("Method", bound=Callable[..., Any])


class NotHereError(AttributeError):
    """The sentence says why an estimator lacks an attribute."""


def only_if(why_not: Callable[[Any], str | None]) -> Callable[[Method], Method]:
    """Have a method only where ``why_not(estimator)`` is None; else `hasattr` is false, and a call says why.

    The reason goes on after the name of the method: "needs ...".
    """

    def decorate(method: Method) -> Method:
        def check(estimator: Any) -> bool:
            reason = why_not(estimator)
            if reason is not None:
                raise NotHereError(f"{type(estimator).__name__}.{method.__name__} {reason}")
            return True

        return cast(Method, available_if(check)(method))

    return decorate


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that a name goes, and name the one that stays."""
    warnings.warn(
        f"{old} is now called {new}; the old name goes in version 0.3. Use {new}.",
        FutureWarning,
        stacklevel=stacklevel,
    )


class ToldAttributes:
    """Mixin: says more of a missing attribute than that it is missing, and knows former names of methods."""

    _not_here: ClassVar[dict[str, str]] = {}  # why attributes of related estimators are missing, after their name
    _former_names: ClassVar[dict[str, str]] = {}  # old: new

    if not TYPE_CHECKING:  # a type checker is to notice a missing attribute

        def __getattr__(self, name: str) -> Any:
            if name in self._former_names:
                new = self._former_names[name]
                warn_renamed(f"{type(self).__name__}.{name}", f"{type(self).__name__}.{new}")
                return getattr(self, new)
            if name in self._not_here:
                raise AttributeError(f"{type(self).__name__}.{name} {self._not_here[name]}", name=name, obj=self)
            try:
                return object.__getattribute__(self, name)  # fails again, with the reason of a property
            except AttributeError as error:
                if isinstance(error.__cause__, NotHereError):
                    raise AttributeError(str(error.__cause__), name=name, obj=self) from None
                raise
