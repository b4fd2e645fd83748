"""Flag words that the project has retired in favour of the field's own; docs/contributing/glossary.md explains them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY = "docs/contributing/glossary.md"
EXEMPT = {GLOSSARY, "tools/check_words.py", "tests/python/package/test_check_words.py"}  # they list the words
SUFFIXES = {".py", ".pyi", ".h", ".cpp", ".rst", ".md", ".toml", ".yml", ".html", ".css", ".js"}

# A retired word or phrase, as a regular expression, and what to write instead. Parts of names count as words.
RETIRED = {
    r"said|says|saying|sayings": "predicts, prediction; states, reports",
    r"told|tells|telling": "predicts; distinguishes; reports",
    r"dealt|deals|dealing": "split into folds; partitioned",
    r"judge|judges|judged|judging|judgement": "evaluate, score, assess",
    r"errs|erred": "misclassifies; has the error",
    r"weighed|weighs": "weighted",
    r"kin|twin|twins": "related; reference implementation",
    r"promised|promises|promise": "constrained, constraint; guarantee",
    r"nothing set": "default settings",
    r"near rows": "nearest neighbours",
    r"odd rows": "outliers",
    r"(goes|go|going) by": "uses; depends on",
    r"right when called": "precision",
    r"of (its|their) own": "name what it belongs to",
    r"same bits": "bit-identical",
    r"shares? of (the )?(classes|class|votes|rows|columns|table)": "class probability; fraction; partition",
    r"(grown|grows?) to the end": "grown until leaves are pure",
    r"hears of|speaks? for": "name what happens",
    r"likeness": "similarity",
    r"dearer|dearest": "more expensive",
    r"loss(es)? of your own": "custom loss",
    r"(set|sets|made|makes) anew": "update; fit again",
    r"drawn alike": "drawn uniformly",
    r"(a|the) (worker|client|machine) that is lost": "loss of a worker",
    r"(asks?|asked) (a|the|its|of a|of the) (model|models|worker|workers|member|members|tree|trees)": "query; request",
}
PATTERN = re.compile("|".join(f"(?<![a-z])(?:{words})(?![a-z0-9])" for words in RETIRED), re.IGNORECASE)


def words_of(line: str) -> str:
    """Return a line with its names split into words: `was_told` and `wasTold` become `was told`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", line)


def retired_words(path: Path) -> list[tuple[int, str]]:
    """Return the retired words of a file, each with its line number; a phrase may be on two lines."""
    lines = [words_of(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = []
    for i, (line, following) in enumerate(zip(lines, [*lines, ""][1:], strict=True), 1):
        joined = f"{line.rstrip()} {following.lstrip(' #*/')}"
        found += [(i, one.group()) for one in PATTERN.finditer(joined) if one.start() < len(line.rstrip())]
    return found


def replacement(word: str) -> str:
    """Return what to write instead of a retired word."""
    return next(new for old, new in RETIRED.items() if re.fullmatch(old, word, re.IGNORECASE))


def main(arguments: list[str]) -> int:
    """Print each retired word with its place; with `--count`, the number of them in each folder."""
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    chosen = [name for name in arguments if not name.startswith("-")]
    total, folders = 0, Counter[str]()
    for name in listed:
        path = ROOT / name
        if path.suffix not in SUFFIXES or name in EXEMPT or name.endswith(".min.js") or not path.is_file():
            continue
        if chosen and not any(name.startswith(start) for start in chosen):
            continue
        for number, word in retired_words(path):
            total += 1
            folders["/".join(name.split("/")[:3])] += 1
            if "--count" not in arguments:
                print(f"{name}:{number}: '{word}': write {replacement(word)}")
    for folder, count in folders.most_common() if "--count" in arguments else ():
        print(f"{count:5d} {folder}")
    print(f"{total} retired words")
    return min(total, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
