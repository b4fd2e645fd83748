"""Damage tables in files and in memory: CSV, Parquet, Arrow and Excel files, and the buffers of Arrow data.

A table is read, or refused by a sentence. Formats whose reader is not installed are left out.
"""

import io
import os
import random
import struct
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import spinney
from spinney._data.file_readers import read_file

from fuzzing.damage import DAMAGES

WORDS = ["plain", "with, comma", 'with "quotes"', "", "NA", "1,5", "2024-02-30", "=1+1", "å", "long " * 9]
CELLS = [b"\0", b'"', b"\xff", b",", b"\n", b"\r", b"1e999", b"-", b"0x1", b"\xef\xbb\xbf", b"\t", b";", b"nan", b"'"]
N_ROWS = 30


def columns_of(rng):
    numbers = [rng.choice([rng.random(), rng.randrange(100), float("nan")]) for _ in range(N_ROWS)]
    return {
        "x": numbers,
        "word": [rng.choice(WORDS) for _ in range(N_ROWS)],
        "n": [rng.randrange(9) for _ in range(N_ROWS)],
    }


def as_csv(rng, columns):
    sign = rng.choice([",", ";", "\t", "|"])
    lines = [sign.join(columns)]
    for row in zip(*columns.values(), strict=True):
        cells = [str(cell) for cell in row]
        lines.append(sign.join(f'"{c}"' if sign in c or '"' in c else c for c in cells))
    return "\n".join(lines).encode(rng.choice(["utf-8", "utf-8", "latin-1", "utf-16"]), "replace")


def arrow_table(rng, columns):
    import pyarrow as pa

    kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
    table = pa.table({"x": columns["x"], "word": columns["word"], "n": columns["n"]})
    kind = rng.choice(kinds)
    word = table["word"].dictionary_encode() if pa.types.is_dictionary(kind) else table["word"].cast(kind)
    return table.set_column(1, "word", word)


def as_parquet(rng, columns):
    import pyarrow.parquet

    sink = io.BytesIO()
    table = arrow_table(rng, columns)
    table = table.set_column(1, "word", table["word"].cast("string"))
    options = {"compression": rng.choice(["none", "snappy", "gzip"]), "use_dictionary": rng.random() < 0.5}
    pyarrow.parquet.write_table(table, sink, row_group_size=rng.choice([7, 100]), **options)
    return sink.getvalue()


def as_arrow(rng, columns):
    import pyarrow as pa

    sink = io.BytesIO()
    table = arrow_table(rng, columns)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rng.choice([7, 100]))
    return sink.getvalue()


def as_excel(rng, columns):
    import polars as pl

    sink = io.BytesIO()
    pl.DataFrame(columns, strict=False).write_excel(sink)
    return sink.getvalue()


def formats():
    """Return the formats that can be read here: suffix, writer, and whether `spinney.scan` reads them."""
    found = [(".csv", as_csv, False)] if find_spec("polars") else []
    if find_spec("pyarrow"):
        found += [(".parquet", as_parquet, True), (".arrow", as_arrow, True), (".memory", as_arrow, True)]
    if find_spec("polars") and find_spec("fastexcel") and find_spec("xlsxwriter"):
        found.append((".xlsx", as_excel, False))
    return found


def cells_changed(data, rng, others):
    for _ in range(rng.choice([1, 1, 3])):
        at = rng.randrange(len(data))
        data[at : at + rng.choice([0, 1, 4])] = rng.choice(CELLS)


def words_changed(data, rng, others):
    """Put an extreme number over four or eight bytes, such as an offset or a length."""
    wide = rng.random() < 0.5
    value = rng.choice([-1, 0, 1, 5000, 2**31 - 1, -(2**31), *([2**62, -(2**63)] if wide else [])])
    at = rng.randrange(max(1, len(data) - 8)) // 4 * 4
    data[at : at + (8 if wide else 4)] = struct.pack("<q" if wide else "<i", value)


WAYS = [*DAMAGES, cells_changed, cells_changed, words_changed, words_changed, words_changed]


def is_sentence(error):
    text = str(error)
    return isinstance(error, (ValueError, TypeError, OSError)) and len(text) > 20 and text[0] != "<"


class Area:
    """One seed: one table in one format, damaged in one way."""

    def __init__(self):
        warnings.simplefilter("ignore")
        self.formats = formats()
        self.folder = tempfile.TemporaryDirectory(prefix="fuzz-")

    def _drawn(self, seed):
        rng = random.Random(seed)
        return rng, *self.formats[seed % len(self.formats)]

    def data(self, seed):
        rng, _, write, _ = self._drawn(seed)
        data = bytearray(write(rng, columns_of(rng)))
        if rng.random() < 0.95:
            rng.choice(WAYS)(data, rng, [data])
        return bytes(data)

    def outcome(self, seed):
        return self.check(self.data(seed), seed)

    def check(self, data, seed):
        _, suffix, _, is_scanned = self._drawn(seed)
        scans = is_scanned and (not find_spec("polars") or seed // 7 % 2 == 0)
        path = Path(self.folder.name) / f"table{'.arrow' if suffix == '.memory' else suffix}"
        path.write_bytes(data)
        try:
            if suffix == ".memory":
                self._fit(data)
            elif scans:
                list(spinney.scan(path).batches())
            else:
                read_file(path)
        except MemoryError:
            return f"{suffix} memory refused"
        except Exception as error:
            if not is_sentence(error):
                raise AssertionError(f"{suffix}: {type(error).__name__}: {error}") from error
            return f"{suffix} refused"
        finally:
            os.unlink(path)
        return f"{suffix} read"

    @staticmethod
    def _fit(data):
        """Read Arrow data whose buffers pyarrow has not checked, and fit a tree to it."""
        import pyarrow as pa

        try:
            table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        except (pa.ArrowException, OSError, KeyError) as error:  # pyarrow's own refusal
            raise ValueError(f"pyarrow does not open this data: {error}") from None
        spinney.DecisionTreeRegressor(max_depth=2).fit(table, np.arange(float(table.num_rows)))
