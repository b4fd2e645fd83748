"""Damage model files of other libraries, in a process of little memory, and count the outcomes of importing them.

Usage: ``python damage_imported.py FIRST_SEED N_VARIANTS``; prints one JSON object. Each seed is one variant of one
file, the same in every run. A crash or a hang ends the process, which the caller notices; any error but a
ModelFileError is reported.
"""

import json
import random
import re
import resource
import sys
import time
from pathlib import Path

import numpy as np
import spinney
from damage_every import DAMAGES
from spinney._interchange.reading.import_file import import_file

FOLDER = Path(__file__).parent / "golden" / "imported"
SPARE_MEMORY = 400 * 2**20
SECONDS = 10.0
EXTREMES = ["-1", "0", "1", "2", "7", "1e308", "-1e308", "2147483647", "4294967295", "18446744073709551616", "1e-320"]
EXTREMES += ["NaN", "Infinity", "null", '""', "[]", "{}", "true", "99999999", "-2147483648", "0.5", "9" * 400]
NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")


def numbers_changed(data, rng, others):
    """Replace some numbers by others or by text that is not a number."""
    places = [match.span() for match in NUMBER.finditer(data)]
    for _ in range(rng.choice([1, 1, 2, 5])):
        if places:
            first, last = places.pop(rng.randrange(len(places)))
            value = rng.choice([*EXTREMES, str(rng.randrange(40)), str(rng.randrange(-300, 300) / 10)])
            data[first:last] = value.encode()
            places = [match.span() for match in NUMBER.finditer(data)]


def lists_changed(data, rng, others):
    """Drop, repeat or exchange entries of lists."""
    places = [match.start() for match in re.finditer(rb"[,\s]", data)]
    if len(places) > 3:
        first = rng.randrange(len(places) - 2)
        last = min(len(places) - 1, first + rng.choice([1, 1, 2, 10]))
        piece = bytes(data[places[first] : places[last]])
        if rng.random() < 0.5:
            del data[places[first] : places[last]]
        else:
            data[places[first] : places[first]] = piece * rng.choice([1, 2, 50])


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


def tried(first, n_variants):
    """Import damaged files; return what happened."""
    formats = files_by_format()
    files = [data for of_format in formats for data in of_format]
    counts, faults, slowest = {}, [], 0.0
    for seed in range(first, first + n_variants):
        rng = random.Random(seed)
        of_format = formats[seed % len(formats)]
        data = bytearray(of_format[seed // len(formats) % len(of_format)])
        rng.choice(WAYS)(data, rng, files)
        start = time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                found = outcome(data)
        except Exception as error:
            found = "fault"
            faults.append([seed, f"{type(error).__name__}: {error}"[:300]])
        seconds = time.perf_counter() - start
        slowest = max(slowest, seconds)
        if seconds > SECONDS:
            faults.append([seed, f"took {seconds:.1f} s"])
        counts[found] = counts.get(found, 0) + 1
    return {"counts": counts, "slowest": round(slowest, 3), "faults": faults[:20], "n_faults": len(faults)}


def main(first, n_variants):
    for of_format in files_by_format():
        for data in of_format:
            assert outcome(data) == "taken"
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    print(json.dumps(tried(first, n_variants)))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
