"""Damage the model files of tests/saved_models: bits, fields, entries of the header, numbers of the arrays."""

import io
import json
import random
import warnings
import zlib
from pathlib import Path

import numpy as np
import spinney

FOLDER = Path(__file__).resolve().parents[1] / "saved_models"
FIELDS = [0, 1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**33, 2**62, 2**63, 2**64 - 1]
ENTRIES = [None, True, 0, -1, 3, 2**31, 10**30, 0.5, 1e300, "", "a", "missing", "number", [], {}, ["a"], {"tuple": [1]}]
WORDS = [
    b"null",
    b"true",
    b"-1",
    b"0",
    b"99999999999",
    b"1e999",
    b"NaN",
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b'"a"',
    b",",
    b"\\u",
]


def flip_bits(data, rng):
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def set_bytes(data, rng):
    at = rng.randrange(len(data))
    data[at : at + rng.randint(1, 8)] = rng.randbytes(rng.randint(1, 8))


def set_field(data, rng):
    at = rng.randrange(8, 40 + 32 * 12, 4)
    width = rng.choice([4, 8])
    data[at : at + width] = (rng.choice(FIELDS) % 2 ** (8 * width)).to_bytes(width, "little")


def header_range(data):
    """Where the JSON text is, if the beginning of the file still has its position."""
    begin = 40 + 32 * int.from_bytes(data[32:36], "little")
    end = begin + int.from_bytes(data[24:32], "little")
    return (begin, end) if begin < end <= len(data) else (0, len(data))


def replace_header(data, text):
    begin, end = header_range(data)
    data[begin : begin + (end - begin + 7) // 8 * 8] = text.ljust((len(text) + 7) // 8 * 8, b"\0")
    data[24:32] = len(text).to_bytes(8, "little")


def set_word(data, rng):
    begin, end = header_range(data)
    text = data[begin:end]
    at = rng.randrange(len(text))
    text[at : at + rng.choice([0, 1, 1, 4, 30])] = rng.choice(WORDS)
    replace_header(data, bytes(text))


def set_entry(data, rng):
    """Change one entry of the header, whose text stays JSON."""
    begin, end = header_range(data)
    try:
        header = json.loads(data[begin:end])
    except ValueError:
        return
    at = header
    while isinstance(at, (dict, list)) and at:
        key = rng.choice(sorted(at)) if isinstance(at, dict) else rng.randrange(len(at))
        if rng.random() < 0.1 or not isinstance(at[key], (dict, list)) or not at[key]:
            at[key] = rng.choice([*ENTRIES, at[key], [at[key]]])
            break
        at = at[key]
    replace_header(data, json.dumps(header).encode())


def set_number(data, rng):
    """Change a byte of the arrays."""
    _, end = header_range(data)
    if end < len(data):
        data[rng.randrange(end, len(data))] = rng.choice([0, 1, 2, 127, 128, 255, rng.randrange(256)])


def cut(data, rng):
    del data[rng.randrange(len(data)) :]


def drop(data, rng):
    at = rng.randrange(len(data))
    del data[at : at + rng.choice([1, 8, 32, 100])]


def repeat(data, rng):
    at = rng.randrange(len(data))
    data[at:at] = data[at : at + rng.choice([1, 8, 32, 100])]


def fill(data, rng):
    at, n = rng.randrange(len(data)), rng.choice([4, 8, 64])
    data[at : at + n] = bytes([rng.choice([0, 127, 255])]) * n


DAMAGES = [
    set_number,
    set_number,
    set_number,
    set_entry,
    set_entry,
    flip_bits,
    set_bytes,
    set_field,
    set_word,
    cut,
    drop,
    repeat,
    fill,
]


def seal(data):
    """Put magic, size and checksum right, so that what lies behind them is tested."""
    data[16:24] = len(data).to_bytes(8, "little")
    data[12:16] = zlib.crc32(data[16:]).to_bytes(4, "little")


def variant(files, seed):
    """Return (number of the file, bytes, whether they are sealed)."""
    rng = random.Random(seed)
    which = rng.randrange(len(files))
    data = bytearray(files[which])
    for _ in range(rng.choice([1, 1, 2, 3])):
        if len(data) > 500:
            rng.choice(DAMAGES)(data, rng)
    is_sealed = rng.random() < 0.75 and len(data) > 40
    if is_sealed:
        seal(data)
    return which, bytes(data), is_sealed


def answer(model, columns):
    n = len(columns[0])
    names = getattr(model, "feature_names_in_", None)
    X = np.array(columns, dtype=float).T if names is None else dict(zip(names, columns, strict=False))
    found = model.predict(X)
    assert len(found) == n, "a prediction is missing"
    shares = found
    if hasattr(model, "classes_"):  # damaged parameters may say that the model has no probabilities
        shares = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
    for array in shares if isinstance(shares, list) else [shares]:
        assert np.isfinite(np.asarray(array, dtype=float)).all(), "a prediction is not finite"
    return found.tolist()


def columns_of(path):
    rows = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["rows"]
    return [list(column) for column in zip(*rows, strict=True)]


class Area:
    """One seed: one file of tests/saved_models, damaged in up to three ways, most of them behind the checksum."""

    def __init__(self):
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        self.paths = [path for path in sorted(FOLDER.glob("*.spinney")) if "imputer" not in path.name]
        self.files = [path.read_bytes() for path in self.paths]
        self.columns = [columns_of(path) for path in self.paths]
        self.expected = [
            answer(spinney.load(path), columns) for path, columns in zip(self.paths, self.columns, strict=True)
        ]

    def data(self, seed):
        return variant(self.files, seed)[1]

    def outcome(self, seed):
        return self.check(self.data(seed), seed)

    def check(self, data, seed):
        which, _, is_sealed = variant(self.files, seed)
        data = bytearray(data)
        if is_sealed and len(data) > 40:
            seal(data)
        loader = spinney.load if seed % 2 else spinney.load_predictor
        try:
            model = loader(io.BytesIO(data))
        except spinney.ModelFileError:
            return "refused"
        try:
            found = answer(model, self.columns[which])
        except (ValueError, TypeError):  # the header now asks for other columns
            assert is_sealed, "a file with a wrong checksum was loaded"
            return "another model"
        if found == self.expected[which]:
            return "equal"
        assert is_sealed, "a file with a wrong checksum was loaded"
        return "another model"
