"""CSV text as whole records, block by block, however long the file."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

# Text that stands for a missing value, besides nothing at all.
MISSING = ["NA", "N/A", "NaN", "nan", "null", "NULL"]
BLOCK_BYTES = 4 << 20
DELIMITERS = ";\t|,"
_DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
_NEWLINE, _QUOTE = 10, 34


def delimiter_of(path: Path, delimiter: str | None) -> str:
    """Return the delimiter asked for, or the one that the suffix suggests."""
    if delimiter is None:
        return "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
    sign = _DELIMITER_NAMES.get(delimiter.lower(), delimiter)
    if len(sign.encode()) != 1:
        raise ValueError(f"--delimiter must be one character, or 'tab', not '{delimiter}'.")
    return sign


def opened(path: Path) -> IO[bytes]:
    """Open a file, packed by gzip or not."""
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else open(path, "rb")


def record_blocks(file: IO[bytes], block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[bytes, bytes]]:
    """Yield the first record, which holds the names, and whole records after it, block by block."""
    header = rest = b""
    while block := file.read(block_bytes):
        rest += block
        if not header:
            header, rest = _first_record(rest)
        cut = _end_of_records(rest)
        if header and cut:
            yield header, rest[:cut]
            rest = rest[cut:]
    if rest or header:
        yield header or rest, rest if header else b""


def _first_record(data: bytes) -> tuple[bytes, bytes]:
    end = data.find(b"\n")
    while end >= 0 and data.count(b'"', 0, end) % 2:
        end = data.find(b"\n", end + 1)
    return data[: end + 1], data[end + 1 :]


def _end_of_records(data: bytes) -> int:
    """Find where the last whole record ends: after a newline that an even number of quotes precedes."""
    end = data.rfind(b"\n")
    n_quotes = data.count(b'"', 0, end) if end >= 0 else 0
    while end >= 0 and n_quotes % 2:
        before = data.rfind(b"\n", 0, end)
        n_quotes -= data.count(b'"', max(before, 0), end)
        end = before
    return end + 1


def ends_of_records(block: bytes) -> NDArray[np.intp]:
    """Return where each record of a block of whole ones ends."""
    letters = np.frombuffer(block, dtype=np.uint8)
    newlines = np.flatnonzero(letters == _NEWLINE)
    if b'"' in block:
        quotes = np.flatnonzero(letters == _QUOTE)
        newlines = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    ends = newlines + 1
    return ends if len(ends) and ends[-1] == len(block) else np.append(ends, len(block))


def drawn_records(
    file: IO[bytes], most_bytes: int, seed: int, block_bytes: int = BLOCK_BYTES
) -> tuple[bytes, int, int]:
    """Read a file of any length; draw records at random where they are more than some bytes.

    Each record has a number between 0 and 1, and those below a share are kept. The share is halved whenever they become
    too many. So the length need not be known before, and the memory is that of what is kept.

    Returns
    -------
    tuple of bytes, int, int
        The names and the records, in order; how many records are kept; how many there were.
    """
    kept: list[tuple[bytes, NDArray[np.intp], NDArray[np.float64]]] = []  # records, their ends, their numbers
    header, share, n_bytes, n_all = b"", 1.0, 0, 0
    for k, (first, block) in enumerate(record_blocks(file, block_bytes)):
        header = first
        if not block:
            continue
        ends = ends_of_records(block)
        n_all += len(ends)
        kept.append(_below((block, ends, np.random.default_rng([seed, k]).random(len(ends))), share))
        n_bytes += len(kept[-1][0])
        while n_bytes > most_bytes and share > 2.0**-40:
            share /= 2
            kept = [_below(one, share) for one in kept]
            n_bytes = sum(len(text) for text, _, _ in kept)
    if header and not header.endswith(b"\n") and kept:
        header += b"\n"
    return b"".join([header, *(text for text, _, _ in kept)]), sum(len(ends) for _, ends, _ in kept), n_all


def _below(
    records: tuple[bytes, NDArray[np.intp], NDArray[np.float64]], share: float
) -> tuple[bytes, NDArray[np.intp], NDArray[np.float64]]:
    """Keep the records whose number is below a share."""
    text, ends, numbers = records
    if share >= 1.0:
        return records
    taken = numbers < share
    lengths = np.diff(ends, prepend=0)
    kept = np.frombuffer(text, dtype=np.uint8)[np.repeat(taken, lengths)].tobytes()
    return kept, np.cumsum(lengths[taken], dtype=np.intp), numbers[taken]
