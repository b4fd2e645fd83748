"""Methods that an estimator has only under a condition, with the reason where it has not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn.utils.metaestimators import available_if

Method = TypeVar("Method", bound=Callable[..., Any])


class NotHereError(AttributeError):
    """The sentence says why an estimator lacks an attribute."""


def only_if(why_not: Callable[[Any], str | None]) -> Callable[[Method], Method]:
    """Have a method only where ``why_not(estimator)`` is None; else `hasattr` is false, and a call says why.

    The reason goes on after the name of the method: "needs ...".
    """

    def decorate(method: Method) -> Method:
        def check(estimator: object) -> bool:
            reason = why_not(estimator)
            if reason is not None:
                raise NotHereError(f"{type(estimator).__name__}.{method.__name__} {reason}")
            return True

        return cast(Method, available_if(check)(method))

    return decorate
