"""Names of parameters and arguments of `fit` in other libraries, and in spinney: see `other_libraries.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from spinney._data.display import nearest_name

Given = ParamSpec("Given")
Result = TypeVar("Result")
_VALIDATION_NAMES = ("eval_set", "evals", "valid_sets", "validation_data", "eval_names")


@dataclass(frozen=True)
class OtherNames:
    """Names in other libraries.

    Attributes
    ----------
    parameters, arguments : dict
        From the name to its possible names in spinney: parameters, options of option objects as in ``dart.rate``, or
        arguments.
    predictions : dict
        From the name of an argument of `predict` to the methods of spinney that take its place.
    prediction_advice : dict
        From the name of an argument of `predict` to the text for regressors without such a method.
    needless : frozenset
        Arguments of `predict` without a counterpart.
    advice : dict
        From the name to a parameter that an estimator must have for the text to apply, and the text.
    attributes : dict
        From an attribute or method to a parameter that an estimator must have for the text to apply, and the text; the
        text without a parameter applies to all.
    commands : dict
        From the name to the text, where that of a command is not that of a parameter.
    options, option_classes : dict
        From the parameter to the option of a command that has another name, and to the class of an option object.
    evaluation : dict
        From the argument of other evaluations to that of `study`, `compare` and other functions.
    values : dict
        From the value of a parameter of other libraries, such as a loss, to those of spinney.
    """

    parameters: dict[str, tuple[str, ...]]
    arguments: dict[str, tuple[str, ...]]
    predictions: dict[str, tuple[str, ...]]
    prediction_advice: dict[str, str]
    needless: frozenset[str]
    advice: dict[str, tuple[str, str]]
    attributes: dict[str, tuple[str, str]]
    commands: dict[str, str]
    options: dict[str, str]
    option_classes: dict[str, str]
    evaluation: dict[str, tuple[str, ...]]
    values: dict[str, tuple[str, ...]]

    @property
    def ours(self) -> set[str]:
        """Parameters of spinney."""
        names = {name.partition(".")[0] for names in self.parameters.values() for name in names}
        return names | {needed for needed, _ in self.advice.values()}


@cache
def other_names() -> OtherNames:
    """Read the names from their file."""
    tables: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

    needless = tables["predictions"].pop("none")
    predictions = {name: tuple(ours.split()) for ours, names in tables["predictions"].items() for name in names.split()}

    def by_name(table: dict[str, str]) -> dict[str, tuple[str, ...]]:
        return {name: tuple(ours.split()) for ours, others in table.items() for name in others.split()}

    def texts(table: str) -> Iterator[tuple[str, str, str]]:
        for entry in tables[table]:
            for name in entry["names"].split():
                yield name, entry.get("needs", ""), " ".join(entry["text"].split())

    return OtherNames(
        by_name(tables["parameters"]),
        by_name(tables["arguments"]),
        predictions,
        {name: text for name, _, text in texts("prediction_advice")},
        frozenset(needless.split()),
        {name: (needed, text) for name, needed, text in texts("advice")},
        {name: (needed, text) for name, needed, text in texts("attributes")},
        {name: text for name, _, text in texts("commands")},
        tables["options"],
        tables["option_classes"],
        by_name(tables["evaluation"]),
        by_name(tables["values"]),
    )


def advise_parameter(name: str, known: Collection[str]) -> str | None:
    """Return a sentence on what another library's parameter is called in spinney; None if it is unknown."""
    name = name.replace(".", "_")
    if name in other_names().advice and other_names().advice[name][0] in known:
        return other_names().advice[name][1]
    ours = _first_known(other_names().parameters.get(name, ()), known)
    return None if ours is None else f"In spinney it is called {_quoted(ours)}."


def advise_argument(name: str, arguments: Collection[str], parameters: Collection[str], estimator: str) -> str | None:
    """Return a sentence on what another library's argument of `fit` is called in spinney; None if it is unknown."""
    name = name.replace(".", "_")
    if name in _VALIDATION_NAMES and "X_val" in arguments:
        return "Pass held-out rows as X_val and y_val."
    if name in _VALIDATION_NAMES and "oob_score" in parameters:
        return "It needs no held-out rows: oob_score=True scores the out-of-bag predictions."
    ours = argument_called(name, arguments)
    if ours is not None:
        return f"In spinney it is called '{ours}'."
    if name in other_names().advice and other_names().advice[name][0] in parameters:
        return f"Parameters go to the estimator. {other_names().advice[name][1]}"
    parameter = _first_known((name, *other_names().parameters.get(name, ())), parameters)
    return None if parameter is None else f"Parameters go to the estimator: {estimator}({_assigned(parameter)})."


def explain_unknown_arguments(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a function name the argument that an unknown one stands for, or resembles."""
    known = signature(function).parameters

    @wraps(function)
    def explaining(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        for name in kwargs:
            if name not in known:
                ours = _first_known(other_names().evaluation.get(name, ()), known)
                advice = nearest_name(name, known, f"It takes {', '.join(known)}.")
                advice = advice if ours is None else f"In spinney it is called '{ours}'."
                raise TypeError(f"{function.__name__} has no argument {name!r}. {advice}")
        return function(*args, **kwargs)

    return explaining


def advise_prediction(name: str, known: Collection[str], methods: Collection[str]) -> str | None:
    """Return a sentence on what takes the place of another library's argument of `predict`; None if it is unknown."""
    if name in other_names().needless:
        return "It has no counterpart. Leave it out."
    if "offset" in known and other_names().arguments.get(name) == ("offset",):
        return "In spinney it is called 'offset'."
    ours = next((method for method in other_names().predictions.get(name, ()) if method in methods), None)
    if ours is None:
        return None if "predict_proba" in methods else other_names().prediction_advice.get(name)
    return f"Use the method {ours}."


def advise_value(value: str, options: Collection[str]) -> str | None:
    """Return a sentence on what another library's value of a parameter is called in spinney; None if it is unknown."""
    ours = _first_known(other_names().values.get(value, ()), options)
    return None if ours is None else f"In spinney it is called {ours!r}."


def advise_attribute(name: str, parameters: Collection[str]) -> str | None:
    """Return a sentence on what takes the place of another library's attribute or method; None if it is unknown."""
    needed, text = other_names().attributes.get(name, ("", None))
    return text if not needed or needed in parameters else None


def _first_known(names: Iterable[str], known: Collection[str]) -> str | None:
    """Return the first name that is a parameter of the estimator, or an option of one."""
    return next((name for name in names if name.partition(".")[0] in known), None)


def _assigned(name: str) -> str:
    """Return how a parameter is set, as in ``dart=spinney.Dart(rate=...)``."""
    parameter, _, option = name.partition(".")
    return (
        f"{parameter}=spinney.{other_names().option_classes[parameter]}({option}=...)" if option else f"{parameter}=..."
    )


def _quoted(name: str) -> str:
    return _assigned(name) if "." in name else f"'{name}'"


def argument_called(name: str, arguments: Collection[str]) -> str | None:
    """Return the argument of `fit` for another library's name; None if there is none."""
    return next((ours for ours in other_names().arguments.get(name.replace(".", "_"), ()) if ours in arguments), None)


def advise_option(name: str, options: Collection[str]) -> str | None:
    """Return a sentence on the option for a library's name, spinney's parameters included; None if it is unknown."""
    name = name.lstrip("-").replace("-", "_").replace(".", "_")
    table = other_names()
    if name in table.commands:
        return table.commands[name]
    candidates = (name, *table.parameters.get(name, ()), *table.arguments.get(name, ()))
    for candidate in candidates:
        if (option := _option_of(candidate, options)) is not None:
            return f"In spinney it is called '{option}'."
    if name not in table.ours and name in table.advice:
        return _in_options(table.advice[name][1], options)
    if len(candidates) == 1 and name not in table.ours:
        return None
    return f"It is a parameter in Python, {_quoted(name if name in table.ours else candidates[1])}, and no option here."


def _option_of(parameter: str, options: Collection[str]) -> str | None:
    names = (other_names().options.get(parameter, parameter), parameter.removeprefix("n_"))
    return next((option for name in names if (option := f"--{name.replace('_', '-')}") in options), None)


def _in_options(advice: str, options: Collection[str]) -> str:
    """Replace parameters by the options of a command; state that the advice is for Python if any parameter is left."""
    ours = other_names().ours

    def option(match: re.Match[str]) -> str:
        name = _option_of(match["name"], options) if match["name"] in ours else None
        return match[0] if name is None else f"{name} {match['value']}" if match["value"] else name

    text = re.sub(r"\b(?P<name>[a-z]\w*)(?:='?(?P<value>[\w.]+)'?)?(?=[\s,;.:]|$)", option, advice)
    is_for_python = any(word in ours for word in re.findall(r"(?<![\w-])\w+", text)) or re.search(
        r"=|\(|\bto fit\b", text
    )
    return f"It is no option here. In Python: {advice}" if is_for_python else text
