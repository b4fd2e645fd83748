"""Arrow data with wrong offsets, lengths and codes, and files that are cut while they are read."""

import struct

import numpy as np
import pytest
import spinney

pa = pytest.importorskip("pyarrow")
N_ROWS = 40
WORDS = [f"word {i % 5}" for i in range(N_ROWS)]
TARGET = np.arange(N_ROWS, dtype=float)


def patched(array, buffer, place, wrong):
    """Return a table of which one buffer has other bytes, as a damaged file has: pyarrow does not check it."""
    table = pa.record_batch({"word": array, "x": TARGET})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(table)
    data = bytearray(sink.getvalue().to_pybytes())
    values = array.dictionary if isinstance(array, pa.DictionaryArray) else array
    at = data.find(values.buffers()[buffer].to_pybytes()[:64])
    assert at > 0
    data[at + place : at + place + len(wrong)] = wrong
    return pa.ipc.open_stream(pa.py_buffer(bytes(data))).read_all()


def with_offset(kind, place, offset):
    """Return strings of which one offset is wrong."""
    wide = kind == pa.large_string()
    return patched(pa.array(WORDS, kind), 1, place * (8 if wide else 4), struct.pack("<q" if wide else "<i", offset))


def fit(table):
    return spinney.DecisionTreeRegressor(max_depth=2).fit(table, TARGET)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("place", [0, 7, N_ROWS])
@pytest.mark.parametrize("offset", [-1, 5000, 2**31 - 1, -(2**31)])
def test_a_wrong_string_offset_is_refused(kind, place, offset):
    with pytest.raises(ValueError, match="Arrow data is malformed"):
        fit(with_offset(kind, place, offset))


def test_a_wrong_offset_of_a_dictionary_is_refused():
    codes = pa.array(np.arange(N_ROWS, dtype=np.int32))
    array = pa.DictionaryArray.from_arrays(codes, pa.array(WORDS))
    with pytest.raises(ValueError, match="Arrow data is malformed"):
        fit(patched(array, 1, 4 * 3, struct.pack("<i", 5000)))


def test_a_code_outside_its_dictionary_is_refused():
    codes = pa.array(np.arange(N_ROWS, dtype=np.int32))
    with pytest.raises(ValueError, match="Arrow data is malformed"):
        fit(pa.table({"word": pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False), "x": TARGET}))


@pytest.mark.parametrize("view", [(20, 5, 0), (20, 0, 10**6), (-4, 0, 0), (20, -1, 0), (20, 0, -1)])
def test_a_view_outside_its_buffers_is_refused(view):
    array = pa.array(["long enough to be elsewhere " + word for word in WORDS], pa.string_view())
    length, index, begin = view
    wrong = struct.pack("<iiii", length, 0, index, begin)
    with pytest.raises(ValueError, match="Arrow data is malformed"):
        fit(patched(array, 1, 16 * 7, wrong))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_data_buffer_that_is_too_short_is_refused(kind):
    wide = kind == pa.large_string()
    offsets = np.arange(N_ROWS + 1, dtype=np.int64 if wide else np.int32)
    wrong = (offsets * 5000).tobytes()  # ascending, and all but the first outside the buffer
    with pytest.raises(ValueError, match="Arrow data is malformed"):
        fit(patched(pa.array(WORDS, kind), 1, 0, wrong))


def test_run_ends_are_a_type_that_no_split_can_use():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([10, N_ROWS], pa.int32()), pa.array([1.0, 2.0]))
    with pytest.raises(TypeError, match="'word' is run-end encoded"):
        fit(pa.table({"word": runs, "x": TARGET}))


@pytest.mark.parametrize("suffix", [".arrow", ".feather"])
def test_an_arrow_file_that_is_cut_during_a_scan_is_refused(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    batch = pa.record_batch({"x": np.arange(20_000.0), "target": np.arange(20_000.0)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        for _ in range(20):
            writer.write_batch(batch)
    batches = spinney.scan(path).batches()
    assert next(batches).n_rows == 20_000
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size // 4)
    with pytest.raises(ValueError, match=f"Cannot read '.*table{suffix}'"):
        list(batches)
