"""Write the "Parameters" and "Attributes" of the estimators' docstrings, or check that they are up to date.

Usage: ``python tools/make_docstrings.py [--check]``. Texts come from tools/parameter_texts.toml, the order of the
parameters and their defaults from the signatures. Only source text is read: nothing needs to be built.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
TEXTS = Path("tools", "parameter_texts.toml")
WIDTH = 120
INDENT = " " * 4  # of a docstring of a class
FIELDS = ("type", "text")


class DocstringError(Exception):
    """Texts and sources do not fit each other; the message says where."""


@dataclass
class Texts:
    """The table of texts, which notes what is asked for.

    Attributes
    ----------
    tables : dict
        What the file holds: classes, parameters, attributes.
    used : set of tuples of str
        Section, name, variant (empty for the entry itself) and field of every text given out.
    """

    tables: dict[str, Any]
    used: set[tuple[str, ...]] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path) -> Texts:
        """Read the file of texts."""
        return cls(tomllib.loads(path.read_text(encoding="utf-8")))

    def find(self, section: str, name: str, of_class: str) -> tuple[str, str]:
        """Return type and text of a parameter or attribute of a class."""
        entry = self.tables[section].get(name, {})
        found = []
        for wanted in FIELDS:
            for variant in (of_class, *self.tables["classes"][of_class]["families"], ""):
                texts = entry.get(variant, {}) if variant else entry
                if wanted in texts:
                    self.used.add((section, name, variant, wanted))
                    found.append(" ".join(texts[wanted].split()))
                    break
            else:
                raise DocstringError(f"{of_class}: {TEXTS} has no {wanted} for '{name}' in {section}")
        return found[0], found[1]

    def unused(self) -> Iterator[str]:
        """Yield the place in the file of every line that no class has asked for, misspelt keys included."""
        for section in ("parameters", "attributes"):
            for name, entry in self.tables[section].items():
                own = {key: value for key, value in entry.items() if not isinstance(value, dict)}
                for variant, texts in {"": own, **{key: entry[key] for key in entry.keys() - own.keys()}}.items():
                    for place in ((section, name, variant, key) for key in texts):
                        if place not in self.used:
                            yield ".".join(part for part in place if part)


def classes_in(source: str) -> Iterator[ast.ClassDef]:
    """Yield the classes at the top level of a module."""
    yield from (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))


def defaults_of(syntax: ast.ClassDef, source: str) -> dict[str, str | None]:
    """Return the parameters of a class's `__init__` in order, each with the source of its default, if it has one."""
    for node in syntax.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            break
    else:
        raise DocstringError(f"{syntax.name} has no __init__ of its own")
    positional = node.args.posonlyargs + node.args.args
    without = [None] * (len(positional) - len(node.args.defaults))
    parameters = zip(
        positional + node.args.kwonlyargs, [*without, *node.args.defaults, *node.args.kw_defaults], strict=True
    )
    return {
        parameter.arg: None if default is None else ast.get_source_segment(source, default)
        for parameter, default in parameters
        if parameter.arg != "self"
    }


def with_default(type_: str, default: str | None) -> str:
    """Return the type of a parameter and what it is if nothing is given."""
    if default is None:
        return type_
    if default == "None" and not re.search(r"\bNone\b", type_):
        return f"{type_}, optional"
    return f"{type_}, default={default}"


def entry_lines(name: str, type_: str, text: str) -> list[str]:
    """Return the lines of one parameter or attribute in a docstring."""
    heading = f"{INDENT}{name} : {type_}"
    lines = [heading]
    if len(heading) > WIDTH:  # numpydoc wants it in one line, so the source continues it
        cut = heading.rindex(" ", 0, WIDTH)
        lines = [heading[:cut] + " \\", INDENT * 3 + heading[cut + 1 :]]
    margin = INDENT * 2
    wrapped = textwrap.wrap(
        text, WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )
    return lines + wrapped


def section_lines(heading: str, entries: list[tuple[str, str, str]]) -> list[str]:
    """Return the lines of a section of a docstring, heading included."""
    lines = [INDENT + heading, INDENT + "-" * len(heading)]
    for name, type_, text in entries:
        lines += entry_lines(name, type_, text)
    return lines


def section_range(lines: list[str], syntax: ast.ClassDef, heading: str) -> tuple[int, int]:
    """Return the range of lines of one section of a class's docstring, without the blank lines after it."""
    first = syntax.body[0]
    if ast.get_docstring(syntax) is None or first.end_lineno is None:
        raise DocstringError(f"{syntax.name} has no docstring")
    last = first.end_lineno - 1  # the line of the closing quotes
    rules = [i for i in range(first.lineno, last) if re.fullmatch(r" +-{3,}", lines[i])]
    start = next((i - 1 for i in rules if lines[i - 1].strip() == heading), None)
    if start is None:
        raise DocstringError(f"{syntax.name}: the docstring has no section '{heading}'")
    end = next((i - 1 for i in rules if i > start + 1), last)
    while not lines[end - 1].strip():
        end -= 1
    return start, end


def fresh_sections(syntax: ast.ClassDef, source: str, texts: Texts) -> Iterator[tuple[str, list[str]]]:
    """Yield heading and lines of each section that is written for a class."""
    parameters = []
    for name, default in defaults_of(syntax, source).items():
        type_, text = texts.find("parameters", name, syntax.name)
        parameters.append((name, with_default(type_, default), text))
    yield "Parameters", section_lines("Parameters", parameters)
    names = texts.tables["classes"][syntax.name]["attributes"]
    yield "Attributes", section_lines("Attributes", [(n, *texts.find("attributes", n, syntax.name)) for n in names])


def fresh_source(source: str, texts: Texts, stale: list[str]) -> str:
    """Return a module with fresh docstrings; note class and first stale line of those that change."""
    lines = source.splitlines()
    changes = []
    for syntax in classes_in(source):
        if syntax.name not in texts.tables["classes"]:
            continue
        for heading, fresh in fresh_sections(syntax, source, texts):
            start, end = section_range(lines, syntax, heading)
            present = lines[start:end]
            if present != fresh:
                stale.append(f"{syntax.name}, {heading}, line {start + 1 + first_difference(present, fresh)}")
                changes.append((start, end, fresh))
    for start, end, fresh in sorted(changes, key=lambda change: change[0], reverse=True):
        lines[start:end] = fresh
    return "\n".join(lines) + "\n"


def first_difference(present: list[str], fresh: list[str]) -> int:
    """Return the index of the first line in which two lists of lines differ."""
    same = (i for i, (one, other) in enumerate(zip(present, fresh, strict=False)) if one != other)
    return next(same, min(len(present), len(fresh)))


def generate(root: Path) -> tuple[dict[Path, str], list[str]]:
    """Return the files to be written with their contents, and one line per fault that --check reports."""
    texts = Texts.read(root / TEXTS)
    fresh: dict[Path, str] = {}
    stale: list[str] = []
    found: set[str] = set()
    for path in sorted((root / "python" / "spinney").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        names = {syntax.name for syntax in classes_in(source)} & set(texts.tables["classes"])
        if not names:
            continue
        found |= names
        noted: list[str] = []
        written = fresh_source(source, texts, noted)
        stale += [f"{path.relative_to(root)}: {line}" for line in noted]
        if written != source:
            fresh[path] = written
    if lost := sorted(set(texts.tables["classes"]) - found):
        raise DocstringError(f"{TEXTS} names a class that does not exist: {', '.join(lost)}")
    if unused := list(texts.unused()):
        raise DocstringError(f"{TEXTS} has texts that no class uses: {', '.join(unused)}")
    return fresh, stale


def main(arguments: list[str] | None = None) -> int:
    """Write the docstrings, or with --check say whether any differs from what would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a docstring is stale")
    parser.add_argument("root", nargs="?", type=Path, default=REPOSITORY, help="root of the repository")
    options = parser.parse_args(arguments)
    try:
        fresh, stale = generate(options.root)
    except DocstringError as error:
        print(error, file=sys.stderr)
        return 1
    if not options.check:
        for path, text in fresh.items():
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(options.root)}")
        return 0
    for line in stale:
        print(f"{line} is stale: run python tools/make_docstrings.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
