"""The committed table: which hash each part of each case has."""

import json
from pathlib import Path

from fingerprints import (  # noqa: F401 (they enter their cases)
    adaboost,
    boosting,
    boosting_growth,
    combinations,
    forests,
    functional,
    imported,
    long,
    margins,
    neighbours,
    survival,
    trees,
)
from fingerprints.cases import CASES, computed

FILE = Path(__file__).with_name("fingerprints.json")


def read():
    """Return {case: {part: hash}} as committed."""
    return json.loads(FILE.read_text())


def written():
    """Return the table's text as this machine computes it."""
    return json.dumps({name: computed(name) for name in CASES}, indent=1) + "\n"


def differences(name, n_jobs=1, wanted=None):
    """Return the parts of a case that are not as committed."""
    wanted = read()[name] if wanted is None else wanted
    found = computed(name, n_jobs)
    return [part for part in {**wanted, **found} if wanted.get(part) != found.get(part)]
