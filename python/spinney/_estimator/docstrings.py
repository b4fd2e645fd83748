"""Docstrings of estimators: classes have their summary, notes and examples, one table has the texts of parameters.

`parameter_texts.toml` in this folder has the type and text of every parameter and fitted attribute, with variants for
single classes and families. They are inserted when the docstring is read; names and texts of boosting losses come from
the engine. Until then this module needs only the standard library, so that the build can write the same docstrings
into a stub for editors.
"""

from __future__ import annotations

import inspect
import re
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, Protocol, TypedDict, cast

WIDTH: Final = 116
FIRST_SECTION: Final = re.compile(r"^[A-Z][A-Za-z ]+\n-{3,}$", re.MULTILINE)

Entry = dict[str, "str | dict[str, str]"]


class ClassEntry(TypedDict):
    """A class of the table: its families, nearest first, and its attributes in the order of the docstring."""

    families: list[str]
    attributes: list[str]


class LossText(Protocol):
    """The traits of a boosting loss that docstrings need."""

    @property
    def public_name(self) -> str: ...
    @property
    def text(self) -> str | None: ...
    @property
    def of_classes(self) -> bool: ...
    @property
    def n_scores(self) -> int: ...


class Tables(TypedDict):
    """The contents of the file of texts."""

    groups: dict[str, list[str]]
    classes: dict[str, ClassEntry]
    parameters: dict[str, Entry]
    attributes: dict[str, Entry]


@dataclass
class ParameterTexts:
    """The table of texts, with a record of which were used."""

    tables: Tables
    used: set[tuple[str, ...]] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path, losses: Iterable[LossText]) -> ParameterTexts:
        """Read the file of texts; the losses replace placeholders that begin with a dollar sign."""
        text = path.read_text(encoding="utf-8")
        for placeholder, content in _loss_lists(list(losses)).items():
            text = text.replace(placeholder, content)
        return cls(cast(Tables, tomllib.loads(text)))

    def find(self, section: str, name: str, of_class: str) -> tuple[str, str]:
        """Return type and text of a parameter or attribute of a class; KeyError if the table lacks one."""
        entries = self.tables["parameters"] if section == "parameters" else self.tables["attributes"]
        entry = entries.get(name, {})
        return self._field(entry, (section, name, "type"), of_class), self._field(
            entry, (section, name, "text"), of_class
        )

    def _field(self, entry: Entry, wanted: tuple[str, str, str], of_class: str) -> str:
        section, name, key = wanted
        for variant in (of_class, *self.tables["classes"][of_class]["families"]):
            texts = entry.get(variant)
            if isinstance(texts, dict) and key in texts:
                self.used.add((section, name, variant, key))
                return " ".join(texts[key].split())
        text = entry.get(key)
        if not isinstance(text, str):
            raise KeyError(f"{of_class}: the table of texts has no {key} for '{name}' in {section}")
        self.used.add((section, name, "", key))
        return " ".join(text.split())

    def unused(self) -> Iterator[str]:
        """Yield the place of every line of the table that no class has used, misspelt keys included."""
        for section, entries in (("parameters", self.tables["parameters"]), ("attributes", self.tables["attributes"])):
            for name, entry in entries.items():
                own = {key: text for key, text in entry.items() if isinstance(text, str)}
                variants = {key: texts for key, texts in entry.items() if isinstance(texts, dict)}
                for variant, texts in {"": own, **variants}.items():
                    for key in texts:
                        if (section, name, variant, key) not in self.used:
                            yield ".".join(part for part in (section, name, variant, key) if part)

    def docstring(self, of_class: str, own: str, defaults: Mapping[str, object]) -> str:
        """Return the docstring of a class: its text with the sections of parameters and attributes."""
        parameters = [
            (name, _with_default(type_, default), text)
            for name, default in defaults.items()
            for type_, text in [self.find("parameters", name, of_class)]
        ]
        names = self.tables["classes"][of_class]["attributes"]
        attributes = [(name, *self.find("attributes", name, of_class)) for name in names]
        sections = f"{_section('Parameters', parameters)}\n\n{_section('Attributes', attributes)}"
        first = FIRST_SECTION.search(own)
        if first is None:
            return f"{own.rstrip()}\n\n{sections}\n"
        return f"{own[: first.start()].rstrip()}\n\n{sections}\n\n{own[first.start() :]}"


def _loss_lists(losses: list[LossText]) -> dict[str, str]:
    kinds = {
        "class": [loss for loss in losses if loss.of_classes],
        "value": [loss for loss in losses if not loss.of_classes],
        "one_score": [loss for loss in losses if not loss.of_classes and loss.n_scores == 1],
    }
    lists = {}
    for kind, chosen in kinds.items():
        texts = {loss.public_name: loss.text for loss in chosen if loss.text}
        lists[f"${kind}_loss_names"] = "{" + ", ".join(f'"{name}"' for name in texts) + "}"
        lists[f"${kind}_losses"] = "; ".join(f'"{name}": {text}' for name, text in texts.items())
    return lists


def _with_default(type_: str, default: object) -> str:
    if default is inspect.Parameter.empty:
        return type_
    if default is None and not re.search(r"\bNone\b", type_):
        return f"{type_}, optional"
    shown = f'"{default}"' if isinstance(default, str) else re.sub(r"e([+-])0", r"e\1", repr(default))
    return f"{type_}, default={shown}"


def _section(heading: str, entries: list[tuple[str, str, str]]) -> str:
    lines = [heading, "-" * len(heading)]
    for name, type_, text in entries:
        wrapped = textwrap.wrap(
            text, WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        lines += [f"{name} : {type_}", *wrapped]
    return "\n".join(lines)


@cache
def parameter_texts(losses: tuple[LossText, ...] | None = None) -> ParameterTexts:
    """Return the table of this package, read once; None: with the losses of the engine."""
    if losses is None:
        from spinney import _engine

        losses = tuple(_engine.boosting_losses())
    return ParameterTexts.read(Path(__file__).with_name("parameter_texts.toml"), losses)


class EstimatorDocstring:
    """The docstring of a class, completed when it is read."""

    def __init__(self, own: str) -> None:
        self._own = inspect.cleandoc(own)

    def __get__(self, instance: object, owner: type) -> str:
        texts = parameter_texts()
        if owner.__name__ not in texts.tables["classes"] or not owner.__module__.startswith("spinney."):
            return self._own
        defaults = {name: parameter.default for name, parameter in inspect.signature(owner).parameters.items()}
        return texts.docstring(owner.__name__, self._own, defaults)
