"""Damage model files of other libraries: bytes, numbers and lists. Any error but a ModelFileError is a fault."""

import random
import re
from itertools import islice
from pathlib import Path

import numpy as np
import spinney
from spinney._interchange.reading.import_file import import_file

from fuzzing.damage import DAMAGES

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "imported"
EXTREMES = ["-1", "0", "1", "2", "7", "1e308", "-1e308", "2147483647", "4294967295", "18446744073709551616", "1e-320"]
EXTREMES += ["NaN", "Infinity", "null", '""', "[]", "{}", "true", "99999999", "-2147483648", "0.5", "9" * 400]
NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")
SEPARATOR = re.compile(rb"[,\s]")


def numbers_changed(data, rng, others):
    """Replace some numbers by others or by text that is not a number."""
    for _ in range(rng.choice([1, 1, 2, 5])):
        if place := NUMBER.search(data, rng.randrange(len(data))):
            value = rng.choice([*EXTREMES, str(rng.randrange(40)), str(rng.randrange(-300, 300) / 10)])
            first, last = place.span()
            del place  # which holds the bytes
            data[first:last] = value.encode()


def lists_changed(data, rng, others):
    """Drop, repeat or exchange entries of lists."""
    first = rng.randrange(len(data))
    places = [match.start() for match in islice(SEPARATOR.finditer(data, first), 1 + rng.choice([1, 1, 2, 10]))]
    if len(places) > 1:
        piece = bytes(data[places[0] : places[-1]])
        if rng.random() < 0.5:
            del data[places[0] : places[-1]]
        else:
            data[places[0] : places[0]] = piece * rng.choice([1, 2, 50])


WAYS = [*DAMAGES, numbers_changed, numbers_changed, numbers_changed, lists_changed, lists_changed]


def rows_for(model):
    rng = np.random.default_rng(0)
    n = model.n_features_in_
    if n > 100:
        return None
    table = {}
    for name, feature in zip(model.schema_.names, model.schema_.features, strict=True):
        values = rng.normal(size=6) if not feature.categories else np.resize(np.array(feature.categories[:6]), 6)
        table[name] = values
    return table if model.schema_.has_names else list(zip(*table.values(), strict=True))


def outcome(data):
    """Import a possibly damaged file, and use the model if it loads."""
    try:
        model = import_file(bytes(data))
    except spinney.ModelFileError as error:
        message = str(error)
        assert message.startswith("Cannot import"), message
        assert len(message) < 1000, message[:300]
        return "refused"
    rows = rows_for(model)
    if rows is not None:
        predictions = model.predict(rows)
        assert len(predictions) == 6
        model.shap_values(rows)
        model.to_predictor()
    return "taken"


def files_by_format():
    formats = {}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix != ".npz" and path.stem != "catboost_words":  # which needs categories=
            kind = f"{path.stem.partition('_')[0]} {path.suffix}"
            formats.setdefault(kind, []).append(path.read_bytes())
    return list(formats.values())


class Area:
    """One seed: one file of tests/golden/imported, damaged in one way."""

    def __init__(self):
        self.formats = files_by_format()
        self.files = [data for of_format in self.formats for data in of_format]
        for data in self.files:
            assert outcome(data) == "taken"

    def data(self, seed):
        rng = random.Random(seed)
        of_format = self.formats[seed % len(self.formats)]
        data = bytearray(of_format[seed // len(self.formats) % len(of_format)])
        rng.choice(WAYS)(data, rng, self.files)
        return bytes(data)

    def outcome(self, seed):
        return self.check(self.data(seed), seed)

    def check(self, data, seed):
        with np.errstate(all="ignore"):
            return outcome(data)
