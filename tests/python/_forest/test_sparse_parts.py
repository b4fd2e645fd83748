"""Sparse matrices whose parts do not fit together are refused before SciPy converts them, which may crash."""

import numpy as np
import pytest
import scipy.sparse as sp
import spinney
from processes import run

RNG = np.random.default_rng(0)
DENSE = RNG.integers(0, 4, (12, 6)) * (RNG.random((12, 6)) < 0.5).astype(float)
Y = DENSE @ np.arange(6.0)

KILLS = """
import sys
import numpy as np, scipy.sparse as sp, spinney
kind, at_fit = sys.argv[1], sys.argv[2] == "fit"
rng = np.random.default_rng(0)
dense = rng.integers(0, 4, (3000, 5)) * 1.0
y = dense @ np.arange(5.0)
model = spinney.DecisionTreeRegressor(max_depth=3).fit(dense, y)
X = getattr(sp, kind)(dense)
X.indices[:] = 2**30
try:
    spinney.DecisionTreeRegressor().fit(X, y) if at_fit else model.predict(X)
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_array", "bsr_array"])
@pytest.mark.parametrize("where", ["fit", "predict"])
def test_a_wrong_place_does_not_end_the_process(kind, where):
    assert "is an inconsistent sparse matrix: " in run(KILLS, kind, where).stdout


def changed(format_, part, change, is_matrix=False):
    X = getattr(sp, f"{format_}_{'matrix' if is_matrix else 'array'}")(DENSE)
    array = getattr(X, part)
    new = change(array.copy())
    setattr(X, part, new)
    return X


def with_entry(at, value):
    def change(array):
        array[at] = value
        return array

    return change


WRONG = {
    "csr column beyond the last": ("csr", "indices", with_entry(0, 6)),
    "csr negative column": ("csr", "indices", with_entry(0, -1)),
    "csr negative start": ("csr", "indptr", with_entry(1, -1)),
    "csr first start": ("csr", "indptr", with_entry(0, 1)),
    "csr starts decrease": ("csr", "indptr", with_entry(2, 0)),
    "csr starts beyond the data": ("csr", "indptr", with_entry(-1, 10**6)),
    "csr too few starts": ("csr", "indptr", lambda a: a[:-1]),
    "csr fewer places than values": ("csr", "indices", lambda a: a[:-3]),
    "csr fewer values than places": ("csr", "data", lambda a: a[:-3]),
    "csr places that are floats": ("csr", "indices", lambda a: a.astype(float)),
    "csr starts that are floats": ("csr", "indptr", lambda a: a.astype(float)),
    "csc row beyond the last": ("csc", "indices", with_entry(0, 12)),
    "csc starts decrease": ("csc", "indptr", with_entry(2, 0)),
    "bsr block beyond the last": ("bsr", "indices", with_entry(0, 99)),
    "bsr starts decrease": ("bsr", "indptr", with_entry(1, -1)),
    "coo fewer values": ("coo", "data", lambda a: a[:-1]),
    "coo column beyond the last": ("coo", "col", with_entry(0, 6)),
    "coo negative row": ("coo", "row", with_entry(0, -3)),
    "dia more offsets": ("dia", "offsets", lambda a: np.append(a, 0)),
    "dia offsets that are floats": ("dia", "offsets", lambda a: a.astype(float)),
}


@pytest.mark.parametrize("fault", WRONG)
@pytest.mark.parametrize("is_matrix", [False, True])
def test_parts_that_do_not_fit_are_refused(fault, is_matrix):
    X = changed(*WRONG[fault], is_matrix)
    for model in (spinney.DecisionTreeRegressor(), spinney.BaggingRegressor(n_estimators=2)):
        with pytest.raises(ValueError, match="X is an inconsistent sparse matrix"):
            model.fit(X, Y)
    fitted = spinney.DecisionTreeRegressor().fit(DENSE, Y)
    with pytest.raises(ValueError, match="X is an inconsistent sparse matrix"):
        fitted.predict(X)


def test_lists_of_different_lengths_are_refused():
    X = sp.lil_array(DENSE)
    X.data[2] = [*X.data[2], 1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="lists of columns and of values differ in length"):
        spinney.DecisionTreeRegressor().fit(X, Y)
    X = sp.lil_array(DENSE)
    X.rows[2] = [c + 100 for c in X.rows[2]]
    with pytest.raises(ValueError, match=r"is an inconsistent sparse matrix: .*6"):
        spinney.DecisionTreeRegressor().fit(X, Y)


@pytest.mark.parametrize("format_", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sound_matrices_of_every_format_are_read(format_, kind):
    X = getattr(sp, f"{format_}_{kind}")(DENSE)
    model = spinney.DecisionTreeRegressor().fit(X, Y)
    assert model.fingerprint() == spinney.DecisionTreeRegressor().fit(DENSE, Y).fingerprint()
    np.testing.assert_array_equal(model.predict(X), model.predict(DENSE))


def test_duplicates_are_summed_whatever_the_flags_of_the_matrix():
    rows, columns = np.nonzero(DENSE)
    values = DENSE[rows, columns]
    X = sp.coo_array((np.tile(values / 2, 2), (np.tile(rows, 2), np.tile(columns, 2))), shape=DENSE.shape)
    halves = sp.csc_array((np.repeat(values / 2, 2), (np.repeat(rows, 2), np.repeat(columns, 2))), shape=DENSE.shape)
    unsummed = sp.csc_array(DENSE)
    unsummed.data = np.repeat(unsummed.data / 2, 2)
    unsummed.indices, unsummed.indptr = np.repeat(unsummed.indices, 2), unsummed.indptr * 2
    unsummed.has_canonical_format = True  # which is not so
    before = unsummed.data.copy()
    expected = spinney.DecisionTreeRegressor().fit(DENSE, Y).fingerprint()
    for given in (X, halves, unsummed):
        assert spinney.DecisionTreeRegressor().fit(given, Y).fingerprint() == expected
    np.testing.assert_array_equal(unsummed.data, before)
