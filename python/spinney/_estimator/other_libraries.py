"""What parameters and arguments of `fit` are called in other libraries, and here: see `other_libraries.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_HELD_OUT_WORDS = ("eval_set", "evals", "valid_sets", "validation_data", "eval_names")


@dataclass(frozen=True)
class Words:
    """The words of other libraries.

    Attributes
    ----------
    parameters, arguments : dict
        From the word to what it may be here: parameters, options of option objects as in ``dart.rate``, or arguments.
    advice : dict
        From the word to a parameter that an estimator must have for the text to help, and the text.
    commands : dict
        From the word to the text, where a command's answer is not that of a parameter.
    options, option_classes : dict
        From the parameter to the option of a command that has another name, and to the class of an option object.
    """

    parameters: dict[str, tuple[str, ...]]
    arguments: dict[str, tuple[str, ...]]
    advice: dict[str, tuple[str, str]]
    commands: dict[str, str]
    options: dict[str, str]
    option_classes: dict[str, str]

    @property
    def ours(self) -> set[str]:
        """Parameters of spinney."""
        names = {name.partition(".")[0] for names in self.parameters.values() for name in names}
        return names | {needed for needed, _ in self.advice.values()}


@cache
def words() -> Words:
    """Read the words from their file."""
    tables: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

    def by_word(table: dict[str, str]) -> dict[str, tuple[str, ...]]:
        return {word: tuple(ours.split()) for ours, others in table.items() for word in others.split()}

    def texts(name: str) -> Iterator[tuple[str, str, str]]:
        for entry in tables[name]:
            for word in entry["words"].split():
                yield word, entry.get("needs", ""), " ".join(entry["text"].split())

    return Words(
        by_word(tables["parameters"]),
        by_word(tables["arguments"]),
        {word: (needed, text) for word, needed, text in texts("advice")},
        {word: text for word, _, text in texts("commands")},
        tables["options"],
        tables["option_classes"],
    )


def advise_parameter(word: str, known: Collection[str]) -> str | None:
    """Say what another library's parameter is here; None if nothing is known of it."""
    word = word.replace(".", "_")
    if word in words().advice and words().advice[word][0] in known:
        return words().advice[word][1]
    ours = _first_known(words().parameters.get(word, ()), known)
    return None if ours is None else f"Here it is {_quoted(ours)}."


def advise_argument(word: str, arguments: Collection[str], parameters: Collection[str], estimator: str) -> str | None:
    """Say what another library's argument of `fit` is here; None if nothing is known of it."""
    word = word.replace(".", "_")
    if word in _HELD_OUT_WORDS and "X_val" in arguments:
        return "Pass held-out rows as X_val and y_val."
    if word in _HELD_OUT_WORDS and "oob_score" in parameters:
        return (
            "It needs no held-out rows: with oob_score=True it judges itself by the rows that each member has not seen."
        )
    ours = argument_called(word, arguments)
    if ours is not None:
        return f"Here it is '{ours}'."
    if word in words().advice and words().advice[word][0] in parameters:
        return f"Parameters go to the estimator. {words().advice[word][1]}"
    name = _first_known((word, *words().parameters.get(word, ())), parameters)
    return None if name is None else f"Parameters go to the estimator: {estimator}({_assigned(name)})."


def _first_known(names: Iterable[str], known: Collection[str]) -> str | None:
    """Return the first name that an estimator has as a parameter, or as an option of one."""
    return next((name for name in names if name.partition(".")[0] in known), None)


def _assigned(name: str) -> str:
    """Return how a parameter is set, as in ``dart=spinney.Dart(rate=...)``."""
    parameter, _, option = name.partition(".")
    return f"{parameter}=spinney.{words().option_classes[parameter]}({option}=...)" if option else f"{parameter}=..."


def _quoted(name: str) -> str:
    return _assigned(name) if "." in name else f"'{name}'"


def argument_called(word: str, arguments: Collection[str]) -> str | None:
    """Return the argument of `fit` that another library's word means; None if there is none."""
    return next((name for name in words().arguments.get(word.replace(".", "_"), ()) if name in arguments), None)


def advise_option(word: str, options: Collection[str]) -> str | None:
    """Say what a library's word for an option of a command is here, spinney's own included; None if unknown."""
    word = word.lstrip("-").replace("-", "_").replace(".", "_")
    if word in words().commands:
        return words().commands[word]
    names = (word, *words().parameters.get(word, ()), *words().arguments.get(word, ()))
    for name in names:
        if (found := _option_of(name, options)) is not None:
            return f"Here it is '{found}'."
    if word not in words().ours and word in words().advice:
        return _in_options(words().advice[word][1], options)
    if len(names) == 1 and word not in words().ours:
        return None
    return f"It is a parameter in Python, {_quoted(word if word in words().ours else names[1])}, and no option here."


def _option_of(parameter: str, options: Collection[str]) -> str | None:
    names = (words().options.get(parameter, parameter), parameter.removeprefix("n_"))
    return next((found for name in names if (found := f"--{name.replace('_', '-')}") in options), None)


def _in_options(advice: str, options: Collection[str]) -> str:
    """Put the options of a command in the place of parameters; say that others are for Python."""

    def option(found: re.Match[str]) -> str:
        name = _option_of(found["name"], options) if found["name"] in words().ours else None
        return found[0] if name is None else f"{name} {found['value']}" if found["value"] else name

    said = re.sub(r"\b(?P<name>[a-z]\w*)(?:='?(?P<value>[\w.]+)'?)?(?=[\s,;.:]|$)", option, advice)
    is_for_python = any(word in words().ours for word in re.findall(r"(?<![\w-])\w+", said)) or re.search(
        r"=|\(|\bto fit\b", said
    )
    return f"It is no option here. In Python: {advice}" if is_for_python else said
