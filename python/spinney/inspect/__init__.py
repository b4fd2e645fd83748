"""Explanations and plots of fitted models, of this library or of others.

    text         a tree as text, rules or a table; every candidate split of a column
    explain      partial dependence, permutation importance, interactions, counterfactuals, SHAP values, nearest rows
    constraints  proofs that monotonic and interaction constraints hold
    margin_losses  losses of two classes as functions of the margin
    draw         plots of trees, models and results, with matplotlib or as SVG

The public functions and classes of results are attributes of this module (``dir(spinney.inspect)`` lists them), and are
imported on first use.
"""

from importlib import import_module

from spinney._names import MODULE_OF


def __getattr__(name: str) -> object:
    module = MODULE_OF.get(name, "")
    if not module.startswith(f"{__name__}."):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(name for name, module in MODULE_OF.items() if module.startswith(f"{__name__}."))
