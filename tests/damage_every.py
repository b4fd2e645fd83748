"""Damage the files and pickles of every estimator, in a process of little memory, and count what happens.

Usage: ``python damage_every.py FIRST_SEED N_VARIANTS [EVERY_NTH_MODEL]``; prints one JSON object. Each seed is one
variant, the same in every run. A crash or a hang ends the process, which the caller notices.
"""

import io
import json
import pickle
import random
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import spinney
from damage_worker import seal, set_entry, set_number
from every_estimator import MODELS, answers, assert_same_answers

SPARE_MEMORY = 400 * 2**20


def flip(data, rng, others):
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def cut(data, rng, others):
    del data[rng.randrange(len(data)) :]


def drop(data, rng, others):
    at = rng.randrange(len(data))
    del data[at : at + rng.choice([1, 2, 8, 64, 500])]


def splice(data, rng, others):
    """Put a piece of another file, or of another place, over one."""
    other = rng.choice([data, *others])
    n = rng.choice([1, 4, 8, 32, 200])
    at, start = rng.randrange(len(data)), rng.randrange(len(other))
    data[at : at + n] = other[start : start + n]


def insert(data, rng, others):
    at = rng.randrange(len(data))
    data[at:at] = data[at : at + rng.choice([1, 8, 64])]


def fill(data, rng, others):
    at, n = rng.randrange(len(data)), rng.choice([1, 4, 8, 64])
    data[at : at + n] = bytes([rng.choice([0, 1, 127, 255])]) * n


DAMAGES = [flip, flip, flip, flip, cut, drop, splice, splice, insert, fill]


def sealed(data, rng):
    """Damage a model file behind its checksum, so that what lies behind it is tested."""
    rng.choice([set_entry, set_number])(data, rng)
    if len(data) > 40:
        seal(data)


class Subject:
    """A fitted model with its bytes, and its predictions."""

    def __init__(self, name):
        self.name = name
        model = MODELS[name]()
        file = io.BytesIO()
        model.save(file)
        self.file, self.pickle = file.getvalue(), pickle.dumps(model)
        self.answers = answers(model)
        # a file has members in full where they were given by a word
        whole = spinney.load(io.BytesIO(self.file)), pickle.loads(self.pickle)
        self.of_file, self.of_pickle = (repr(again.get_params()) for again in whole)


def outcome(seed, subjects):
    rng = random.Random(seed)
    subject = rng.choice(subjects)
    is_pickle = rng.random() < 0.6
    whole = subject.pickle if is_pickle else subject.file
    data, is_sealed = bytearray(whole), not is_pickle and rng.random() < 0.5
    if is_sealed:
        sealed(data, rng)
    else:
        other = rng.choice(subjects)
        rng.choice(DAMAGES)(data, rng, [other.pickle if is_pickle else other.file])
    kind = "pickle" if is_pickle else "sealed file" if is_sealed else "file"
    try:
        model = pickle.loads(bytes(data)) if is_pickle else spinney.load(io.BytesIO(data))
    except (spinney.ModelFileError, MemoryError):
        return f"{kind} refused"
    except Exception as error:
        if is_pickle:
            return f"{kind} refused"
        raise AssertionError(f"{subject.name}: {error!r}") from error
    if not hasattr(model, "get_params"):  # the pickle ends early, with a part of the model
        return f"{kind} is no model"
    if is_sealed:
        try:
            answers(model)
        except (ValueError, TypeError, AttributeError):  # the header asks for other columns, or is of another kind
            return f"{kind} is another model"
        return f"{kind} loads"
    try:
        wanted = subject.of_pickle if is_pickle else subject.of_file
        assert repr(model.get_params()) == wanted, "other parameters"
        assert_same_answers(answers(model), subject.answers)
    except Exception as error:
        raise AssertionError(f"{subject.name}: a damaged {kind} was loaded and differs: {error}") from error
    return f"{kind} equal"


def main(first, n_variants, every=1):
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    subjects = [Subject(name) for name in list(MODELS)[:: int(every)]]
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_MEMORY, used + SPARE_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    counts, wrong, slowest = {}, [], 0.0
    for seed in range(int(first), int(first) + int(n_variants)):
        start = time.perf_counter()
        print(f"seed {seed}", end="\r", file=sys.stderr)  # the last one, if the process ends here
        try:
            found = outcome(seed, subjects)
            counts[found] = counts.get(found, 0) + 1
        except BaseException as error:
            wrong.append(f"seed {seed}: {type(error).__name__}: {error}"[:500])
        slowest = max(slowest, time.perf_counter() - start)
    print(json.dumps({"counts": counts, "wrong": wrong[:20], "n_wrong": len(wrong), "slowest": slowest}))


if __name__ == "__main__":
    main(*sys.argv[1:])
