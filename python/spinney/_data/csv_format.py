"""How a CSV file is written: its encoding and delimiter are detected from its bytes."""

from __future__ import annotations

import codecs
import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, cast

BLOCK_BYTES = 4 << 20
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes"}
_DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
_HEAD_BYTES, _HEAD_RECORDS = 1 << 16, 100  # from which the delimiter is detected
_NOT_IN_CP1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")
# Text of missing values in any column, in addition to empty cells.
MISSING = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL")
DECIMALS = {".": "point", ",": "comma"}


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written. None: to be detected.

    Attributes
    ----------
    delimiter : str, optional
        Separator of the columns: one character, or a name such as "tab".
    decimal : {".", ","}, optional
        Decimal sign requested for columns that can be read with either.
    encoding : str, optional
    missing : tuple of str, optional
        Text of missing values, in addition to empty cells.
    day_first : bool, optional
        Whether dates that can be read either way have the day before the month.
    dates : mapping of str to str
        Formats, as in `strptime`, of the date columns that are not in ISO 8601.
    decimals : mapping of str to {".", ","}
        Decimal signs by which columns of numbers were read.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] | None = None
    day_first: bool | None = None
    dates: Mapping[str, str] = field(default_factory=dict)
    decimals: Mapping[str, str] = field(default_factory=dict)

    @property
    def sign(self) -> str:
        """The delimiter as one character."""
        return delimiter_sign(self.delimiter or ",")

    @property
    def null_values(self) -> list[str]:
        """Text of missing values; the empty text stands for quoted empty cells."""
        return ["", *(MISSING if self.missing is None else self.missing)]

    @property
    def options(self) -> dict[str, Any]:
        """Options of the command line that request this format."""
        order = {} if self.day_first is None else {"dayfirst" if self.day_first else "monthfirst": True}
        names = ("delimiter", "decimal", "encoding", "missing")
        return {name: value for name in names if (value := getattr(self, name)) is not None} | order

    def to_dict(self) -> dict[str, Any]:
        """Return what a model remembers, to read other files of the same origin the same way."""
        remembered = {
            "decimal": self.decimal,
            "missing": list(self.missing or ()),
            "dates": dict(self.dates),
            "decimals": dict(self.decimals),
        }
        return {name: value for name, value in remembered.items() if value}

    @classmethod
    def from_dict(cls, fields: object) -> CsvFormat:
        """Return a remembered format, the inverse of `to_dict`."""
        if not isinstance(fields, dict):
            raise ValueError("the format of its training file is invalid")
        dates, decimals = (fields.get(name, {}) for name in ("dates", "decimals"))
        decimal, missing = fields.get("decimal"), fields.get("missing", [])
        if not isinstance(dates, dict) or not all(isinstance(text, str) for pair in dates.items() for text in pair):
            raise ValueError("the formats of its dates are invalid")
        signs = ["." if decimal is None else decimal, *decimals.values()] if isinstance(decimals, dict) else [""]
        if any(sign not in list(DECIMALS) for sign in signs):
            raise ValueError("the decimal sign of its training file is invalid")
        if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
            raise ValueError("the text of its missing values is invalid")
        return cls(decimal=decimal, missing=tuple(missing) or None, dates=dates, decimals=decimals)

    def remembering(self, other: CsvFormat | None) -> CsvFormat:
        """Return this format, completed by the one that a model remembers."""
        if other is None:
            return self
        return replace(
            self,
            decimal=self.decimal or other.decimal,
            missing=self.missing or other.missing,
            dates={**other.dates, **self.dates},
            decimals={**other.decimals, **self.decimals},
        )


ANY_FORMAT = CsvFormat()


def delimiter_sign(delimiter: str) -> str:
    """Return a delimiter as one character."""
    sign = _DELIMITER_NAMES.get(delimiter.lower(), delimiter)
    if len(sign.encode()) != 1:
        raise ValueError(f"--delimiter must be one character, or 'tab', not '{delimiter}'.")
    return sign


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, compressed by gzip or not."""
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else open(path, "rb")


def detect_format(path: Path, requested: CsvFormat) -> tuple[CsvFormat, list[str]]:
    """Detect the encoding and delimiter of a CSV file that are not requested; return them, and what was detected.

    The encoding remains None if the file is UTF-8, or if it mixes UTF-8 with another one.
    """
    encoding, found = requested.encoding, list[str]()
    if encoding is None and (encoding := _encoding_of(path)) is not None:
        found.append(f"encoding {encoding}")
    delimiter = requested.delimiter
    if delimiter is None:
        usual = "\t" if path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","
        delimiter = _delimiter_of(path, encoding, usual)
        if delimiter != usual:
            found.append(f"columns separated by {DELIMITERS[delimiter]}")
    return replace(requested, encoding=encoding, delimiter=delimiter_sign(delimiter)), found


def _encoding_of(path: Path) -> str | None:
    """Return the encoding of a file that is not UTF-8: UTF-16 with its mark, cp1252, or latin-1."""
    decoder, is_ascii = codecs.getincrementaldecoder("utf-8")(), True
    with open_bytes(path) as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        file.seek(0)
        while block := file.read(BLOCK_BYTES):
            try:
                decoder.decode(block)
                is_ascii = is_ascii and block.isascii()
            except UnicodeDecodeError as error:
                if not is_ascii or not error.object[: error.start].isascii():
                    return None
                rest = iter(lambda: file.read(BLOCK_BYTES), b"")
                outside = any(not _NOT_IN_CP1252.isdisjoint(one) for one in (block, *rest))
                return "latin-1" if outside else "cp1252"
    return None


def _delimiter_of(path: Path, encoding: str | None, usual: str) -> str:
    """Return the delimiter by which most of the first records have as many cells as the first one, at least two."""
    with open_bytes(path) as file:
        raw = file.read(_HEAD_BYTES)
    try:
        text = raw.decode(encoding or "utf-8", "replace")
    except LookupError:
        return usual  # reported when the file is decoded
    text = text.removeprefix("\ufeff")
    if len(raw) == _HEAD_BYTES and "\n" in text:
        text = text[: text.rfind("\n")]  # the last record may be incomplete

    def fit(sign: str) -> tuple[float, int]:
        try:
            rows = csv.reader(text.splitlines(keepends=True), delimiter=sign)
            widths = [len(cells) for _, cells in zip(range(_HEAD_RECORDS), rows, strict=False) if cells]
        except csv.Error:
            return 0.0, 0
        if not widths or widths[0] < 2:
            return 0.0, 0
        return round(widths.count(widths[0]) / len(widths), 1), widths[0]

    candidates = dict.fromkeys([usual, *DELIMITERS])
    best = max(candidates, key=fit)  # the usual one, if others fit as well
    return best if fit(best)[0] > 0 else usual
