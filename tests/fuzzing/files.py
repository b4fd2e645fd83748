"""Damage the files and pickles of every estimator: flipped bits, missing parts, parts and trees of other models.

Behind a checksum that is made right again, the damage reaches what reads the header, the trees and the attributes.
"""

import io
import pickle
import random
import warnings
from zlib import crc32

import numpy as np
import spinney
from every_estimator import MODELS, answers, assert_same_answers
from spinney._model.file.container import to_bytes

from fuzzing.damage import DAMAGES
from fuzzing.saved import seal, set_entry, set_number

KINDS = ["pickle", "pickle", "sealed pickle", "file", "sealed file", "sealed file", "mixed trees"]


class Subject:
    """A fitted model with its bytes, and its predictions."""

    def __init__(self, name):
        self.name = name
        self.model = MODELS[name]()
        file = io.BytesIO()
        self.model.save(file)
        self.file, self.pickle = file.getvalue(), pickle.dumps(self.model)
        self.header, self.trees = self.model._file_parts()
        self.answers = answers(self.model)
        # a file has members in full where they were given by a word
        whole = spinney.load(io.BytesIO(self.file)), pickle.loads(self.pickle)
        self.of_file, self.of_pickle = (repr(again.get_params()) for again in whole)


def unpickled_behind_its_checksum(subject, other, rng):
    """Unpickle a model whose attributes were damaged before they were sealed."""
    state = subject.model.__getstate__()
    body = bytearray(state["_sealed"][4:])
    rng.choice(DAMAGES)(body, rng, [other.model.__getstate__()["_sealed"][4:]])
    again = object.__new__(type(subject.model))
    again.__setstate__(state | {"_sealed": crc32(body).to_bytes(4, "little") + bytes(body)})
    return again


def with_trees_of(subject, other, rng):
    """Return a file of which some trees are those of another model."""
    trees = list(subject.trees)
    for _ in range(rng.choice([1, 1, 2, 5])):
        if trees and other.trees:
            trees[rng.randrange(len(trees))] = rng.choice(other.trees)
    return to_bytes(subject.header, trees)


class Area:
    """One seed: one model, damaged in one way."""

    def __init__(self, every=1):
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        self.subjects = [Subject(name) for name in list(MODELS)[::every]]

    def outcome(self, seed):
        rng = random.Random(seed)
        subject, other, kind = rng.choice(self.subjects), rng.choice(self.subjects), rng.choice(KINDS)
        is_sealed = kind not in ("pickle", "file")
        try:
            model = self._loaded(subject, other, kind, rng)
        except (spinney.ModelFileError, MemoryError):
            return f"{kind} refused"
        except Exception as error:
            if kind == "pickle":  # raised by pickle, before spinney sees anything
                return f"{kind} refused"
            raise AssertionError(f"{subject.name}, {kind}: {error!r}") from error
        if not hasattr(model, "get_params"):
            return f"{kind} is no model"
        if kind == "pickle" and self.ends_early and type(model) is not type(subject.model):
            return "pickle is a member"
        if is_sealed:
            try:
                answers(model)
            except Exception:  # other columns, another kind, or attributes that do not go together
                return f"{kind} is another model"
            return f"{kind} loads"
        try:
            wanted = subject.of_pickle if kind == "pickle" else subject.of_file
            assert repr(model.get_params()) == wanted, "other parameters"
            assert_same_answers(answers(model), subject.answers)
        except Exception as error:
            raise AssertionError(f"{subject.name}: a damaged {kind} was loaded and differs: {error}") from error
        return f"{kind} equal"

    def _loaded(self, subject, other, kind, rng):
        if kind == "sealed pickle":
            return unpickled_behind_its_checksum(subject, other, rng)
        if kind == "mixed trees":
            return spinney.load(io.BytesIO(with_trees_of(subject, other, rng)))
        data = bytearray(subject.pickle if kind == "pickle" else subject.file)
        if kind == "sealed file":
            rng.choice([set_entry, set_number])(data, rng)
            if len(data) > 40:
                seal(data)
        else:
            rng.choice(DAMAGES)(data, rng, [other.pickle if kind == "pickle" else other.file])
        if kind != "pickle":
            return spinney.load(io.BytesIO(data))
        file = io.BytesIO(data)
        model = pickle.load(file)
        self.ends_early = file.tell() < len(data)  # with a part of the model
        return model
