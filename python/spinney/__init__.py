"""Decision trees and ensembles for tabular data, with the interface of scikit-learn.

The names below load on first use, so that ``import spinney`` is quick. Type checkers and editors read them from the
stub that the build writes beside this file (``tools/make_public_stub.py``).

>>> import spinney
>>> model = spinney.DecisionTreeClassifier(max_depth=3)
"""

from __future__ import annotations

from spinney import _names
from spinney._names import __version__ as __version__

if (_conflict := _names.conflicting_distribution()) is not None:
    import warnings

    warnings.warn(_conflict, UserWarning, stacklevel=2)

__all__ = sorted([*_names.MODULE_OF, *_names.SUBMODULES, "__version__"])


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _names.MODULE_OF:
        value: object = _names.public(name)
    elif name in _names.SUBMODULES:
        value = import_module(f"spinney.{name}")
    else:
        raise AttributeError(_no_such_name(name), name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def _no_such_name(name: str) -> str:
    from difflib import get_close_matches

    by_lower_case = {known.lower(): known for known in __all__}
    longer = [known for known in by_lower_case if name and known.startswith(name.lower())]
    nearest = [f"'{by_lower_case[known]}'" for known in longer or get_close_matches(name.lower(), by_lower_case, n=1)]
    hint = f"; did you mean {' or '.join(nearest)}?" if 0 < len(nearest) < 5 else ""
    return f"module 'spinney' has no attribute '{name}'{hint}"
