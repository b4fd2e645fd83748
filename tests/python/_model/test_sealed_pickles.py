"""Sealed attributes of pickles: what may be inside, and damage behind a checksum that matches."""

import copy
import pickle
from zlib import crc32

import numpy as np
import pytest
import spinney
from sklearn.base import clone
from spinney._model.saving.pickle import seal, unseal

X = np.arange(30.0)[:, None]


class Outside(np.ndarray):
    """A user's subclass of arrays."""


class Called:
    """An object that is unpickled by a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def sealed(attributes):
    """Return the bytes of any pickle as sealed attributes, without objects outside."""
    body = pickle.dumps([], protocol=4) + attributes
    return crc32(body).to_bytes(4, "little") + body


def assert_refused(attributes, match):
    tree = spinney.DecisionTreeClassifier()
    state = tree.__getstate__() | {"_sealed": sealed(attributes), "_outside": []}
    with pytest.raises(spinney.ModelFileError, match=match):
        tree.__setstate__(state)


def attributes_of(value):
    data, _ = seal(value, spinney.DecisionTreeClassifier)
    return data[4:].removeprefix(pickle.dumps([], protocol=4))


def again(value):
    return unseal(*pickle.loads(pickle.dumps(seal(value, spinney.DecisionTreeClassifier))))


def test_a_damaged_state_of_a_dtype_does_not_reach_numpy():
    state = b"\x8c\x01<\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK"  # byte order, no fields, default sizes; then flags
    intact = pickle.dumps({"classes_": np.array([1.0, 2.0])}, protocol=4)
    assert intact.count(state + b"\x00") == 1
    assert_refused(intact.replace(state + b"\x00", state + b"\xff"), r"cannot be unpickled \(they may not name numpy")


@pytest.mark.parametrize("function", [eval, getattr, type, __import__, np.dtype, np.random.RandomState, pickle.loads])
def test_only_spinney_and_plain_types_may_be_named(function):
    assert_refused(pickle.dumps(Called(function, "1"), protocol=4), r"cannot be unpickled \(they may not name ")


@pytest.mark.parametrize("name", ["np", "np.dtype", "pickle.loads", "_array.__globals__"])
def test_what_a_module_of_spinney_imports_may_not_be_named(name):
    texts = [b"\x8c" + bytes([len(text)]) + text.encode() for text in ("spinney._model.saving.pickle", name)]
    assert_refused(b"\x80\x04" + b"".join(texts) + b"\x93.", "may not name spinney._model.saving.pickle")


@pytest.mark.parametrize(
    "change",
    [
        (b"<f8", b"|O8"),
        (b"<f8", b"<f4"),
        (b"<f8", b"<V8"),
        (b"K\x02K\x03", b"K\x02K\x04"),
        (b"K\x02K\x03", b"K\xffK\xff"),
        (b"K\x02K\x03", b"K\x02N"),
        (b"\x8c\x01C", b"\x8c\x01?"),
    ],
)
def test_arrays_whose_type_or_shape_does_not_fit_are_refused(change):
    attributes = attributes_of(np.ones((2, 3)))
    assert attributes.count(change[0]) == 1
    assert_refused(attributes.replace(*change), "is damaged")


@pytest.mark.parametrize("position", [b"M\x71\x02", b"J\xff\xff\xff\xff", b"N"])
def test_random_states_with_impossible_positions_are_refused(position):
    random = np.random.RandomState(0)
    random.randint(2, size=100)
    attributes = attributes_of(random)
    assert attributes.count(b"Kd") == 1
    assert_refused(attributes.replace(b"Kd", position), "is damaged")


ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(24, dtype=">i2").reshape(2, 3, 4)[:, ::2],
    np.array(3),
    np.zeros((0, 3), dtype=bool),
    np.array(["a", "", "äö"]),
    np.array(["", ""], dtype="U0"),
    np.array([b"a\x00b"]),
    np.array(["2026-01-01", "NaT"], dtype="datetime64[25s]"),
    np.array([1, 2], dtype="timedelta64"),
    np.array([1 + 2j], dtype=np.clongdouble),
    np.array([None, "a", (1, 2), [3]], dtype=object),
    np.asfortranarray(np.array([["a", 1], [None, 2.5]], dtype=object)),
    np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
    np.zeros(2).view(Outside),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype} {array.shape}")
def test_arrays_are_rebuilt(array):
    first, second = again((array, array))
    assert first is second
    assert (type(first), first.dtype, first.shape) == (type(array), array.dtype, array.shape)
    assert first.flags.fnc == array.flags.fnc
    assert first.flags.writeable
    np.testing.assert_array_equal(first, array)


@pytest.mark.parametrize(
    "scalar",
    [np.float64(0.1), np.int8(-3), np.bool_(True), np.str_("äö"), np.bytes_(b"x"), np.datetime64("2026-01-01")],
)
def test_scalars_are_rebuilt(scalar):
    assert type(again(scalar)) is type(scalar)
    assert again(scalar) == scalar


@pytest.mark.parametrize("bit_generator", [np.random.MT19937, np.random.PCG64])
def test_random_states_continue(bit_generator):
    random = np.random.RandomState(bit_generator(5))
    random.normal()  # the second of a pair is held back
    np.testing.assert_array_equal(again(random).normal(size=700), random.normal(size=700))
    generator = np.random.Generator(bit_generator(5))
    assert again(generator).normal() == generator.normal()


@pytest.mark.parametrize("value", [np.float32, np.dtype("f4"), float, len, np.sum, np.add, [].append, type(None), ...])
def test_other_objects_stay_outside_or_are_named(value):
    data, outside = seal(value, spinney.DecisionTreeClassifier)
    assert outside == ([] if value is float else [value])
    assert unseal(data, outside) is value


def test_every_way_to_copy_a_model():
    cloudpickle = pytest.importorskip("cloudpickle")
    y = X[:, 0] > 9
    model = spinney.DecisionTreeClassifier(
        prune="cv", cv=3, scoring=lambda estimator, X, y: -1.0, random_state=np.random.RandomState(3)
    ).fit(X, y)
    for copied in (copy.deepcopy(model), cloudpickle.loads(cloudpickle.dumps(model))):
        np.testing.assert_array_equal(copied.predict_proba(X), model.predict_proba(X))
        assert copied.scoring(None, X, y) == -1.0
        assert copied.random_state.randint(10**6) == copy.deepcopy(model).random_state.randint(10**6)
    assert clone(model).fit(X, y).classes_.tolist() == [False, True]
