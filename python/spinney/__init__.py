"""Trees and ensembles for tables.

The names below load on first use, so that ``import spinney`` is quick.

>>> import spinney
>>> model = spinney.DecisionTreeClassifier(max_depth=3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spinney import datasets
    from spinney._trees import (
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreeClassifier,
        ExtraTreeRegressor,
    )

__version__ = "0.1.0"

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "__version__",
    "datasets",
]

_MODULE_OF = {
    "DecisionTreeClassifier": "spinney._trees",
    "DecisionTreeRegressor": "spinney._trees",
    "ExtraTreeClassifier": "spinney._trees",
    "ExtraTreeRegressor": "spinney._trees",
}
_SUBMODULES = frozenset({"datasets"})


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULE_OF:
        value: object = getattr(import_module(_MODULE_OF[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"spinney.{name}")
    else:
        raise AttributeError(_no_such_name(name), name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _no_such_name(name: str) -> str:
    from difflib import get_close_matches

    by_lower_case = {known.lower(): known for known in __all__}
    nearest = get_close_matches(name.lower(), by_lower_case, n=1)
    hint = f"; did you mean '{by_lower_case[nearest[0]]}'?" if nearest else ""
    return f"module 'spinney' has no attribute '{name}'{hint}"
