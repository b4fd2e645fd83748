"""Types of the columns of a CSV file, decided from all of their values: numbers, dates, booleans and text.

Every cell is read as text first. That is faster than the inference of types by polars (500,000 rows of 21 columns: 3
instead of 8 s), and only the text distinguishes 007 from 7, and shows that 31/05/2025 has the day first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from spinney._data.columns import listed
from spinney._data.csv_format import DECIMALS, CsvFormat

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["text", "number", "date"]
_HEAD_ROWS = 200  # of which the text suggests the type, before all rows are tried
_DASHES = ["-", "--", "–", "—"]  # missing values, unless all values of a column of text are signs
_PLACEHOLDERS = [*_DASHES, "?", ".", "none", "None"]  # missing values among numbers and dates
_LIMIT = 3  # columns named
_SPACES = r" \x{a0}\x{202f}"
_THOUSANDS = {".": f"[,'{_SPACES}]", ",": f"[.'{_SPACES}]"}  # by decimal sign
_NUMBER = {
    decimal: rf"^[+-]?(?:(?:[1-9]\d{{0,2}}(?:{_THOUSANDS[decimal]}\d{{3}})+|\d+)(?:[{decimal}]\d+)?|[{decimal}]\d+)$"
    for decimal in DECIMALS
}
_GROUPS_ONLY = r"^[+-]?(?:[1-9]\d{0,2}(?:\.\d{3})+|\d{1,3})$"  # 1.234, if the point may separate thousands
_LEADING_ZERO = r"^\s*[+-]?0\d{2,}\s*$"
_LONGEST_INTEGER = 18  # digits that int64 holds
_DAY_MONTH = re.compile(r"\d{1,2}([/.-])\d{1,2}\1\d{4}(.*)")
_YEAR_FIRST = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}((?:[ T]\d.*)?)")
_FORMATS = {  # of dates with a separator, without the time
    _YEAR_FIRST: ("%Y{0}%m{0}%d",),
    _DAY_MONTH: ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y"),
    re.compile(r"\d{1,2}([ -])[A-Za-z]{3,9}\1\d{4}(.*)"): ("%d{0}%B{0}%Y",),  # %B also reads short names
    re.compile(r"[A-Za-z]{3,9}( )\d{1,2}, \d{4}(.*)"): ("%B %d, %Y",),
}
_FEW = 0.05  # fraction of values that make a column of numbers or dates text, and are named
_SHORT_YEAR = re.compile(r"\d{1,2}([/.-])\d{1,2}\1\d{2}")
_TIMES = {
    "": "",
    r"([ T])\d{1,2}:\d{2}": "%H:%M",
    r"([ T])\d{1,2}:\d{2}:\d{2}": "%H:%M:%S",
    r"([ T])\d{1,2}:\d{2}:\d{2}\.\d+": "%H:%M:%S%.f",
    r"([ T])\d{1,2}:\d{2} [APap][Mm]": "%I:%M %p",
    r"([ T])\d{1,2}:\d{2}:\d{2} [APap][Mm]": "%I:%M:%S %p",
}
_TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")
# Ranges of integers that are probably dates: of the years 1900 to 2099 as in 20250403, and of 2000 to 2040 as counts.
_DATES_AS_NUMBERS = {
    "such as {}": (19000101, 20991231),
    "seconds since 1970": (946_684_800, 2_208_988_800),
    "milliseconds since 1970": (946_684_800_000, 2_208_988_800_000),
}


@dataclass(eq=False)
class ColumnTypes:
    """Reads text columns as numbers, dates, booleans and text, and further rows of them in the same way.

    Attributes
    ----------
    format : CsvFormat
        As requested; after `read` with what was found.
    kinds : mapping of str to {"text", "number", "date"}
        Types that are known, such as those of a model; the others are inferred.
    row : str
        What a row is called in notes.
    """

    format: CsvFormat
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    row: str = "row"
    _found: dict[str, list[str]] = field(default_factory=dict)  # columns by the note on them
    _signs: dict[str, str] = field(default_factory=dict)  # decimal sign of columns that fit only one or were read
    _either: dict[str, pl.Series] = field(default_factory=dict)  # columns of numbers that fit both
    _orders: set[bool] = field(default_factory=set)  # whether the day is first, of columns that fit only one order
    _unordered: dict[str, tuple[pl.Series, list[str]]] = field(default_factory=dict)  # column, format with each order
    _dated: set[str] = field(default_factory=set)  # columns that were read by their format of dates

    def read(self, texts: pl.DataFrame) -> pl.DataFrame:
        """Return the columns with their types; a column that does not fit what was decided for earlier rows is text."""
        self._either.clear()
        self._unordered.clear()
        columns = {column.name: self._typed(column) for column in texts}
        decided = {name: self._decided_sign(column) for name, column in self._either.items()}
        for name, column in self._either.items():
            if (numbers := self._number(column, decided[name])) is not None:
                columns[name] = numbers
        columns |= {name: self._decided_date(name, *given) for name, given in self._unordered.items()}
        self._signs |= decided
        self.format = replace(self.format, decimals={**self.format.decimals, **self._signs})
        self._dated |= {name for name in self.format.dates if name in columns and columns[name].dtype.is_temporal()}
        return texts.with_columns(list(columns.values()))

    @property
    def notes(self) -> list[str]:
        """What was found, and in which columns."""
        return [what.replace("{columns}", listed(names, _LIMIT)) for what, names in self._found.items()]

    def _note(self, what: str, name: str) -> None:
        names = self._found.setdefault(what, [])
        if name not in names:
            names.append(name)

    def _typed(self, column: pl.Series) -> pl.Series:
        kind = self.kinds.get(column.name)
        if kind == "text" or column.null_count() == len(column):
            return column
        known = column.drop_nulls()
        head = self._cleaned(known.head(_HEAD_ROWS)).drop_nulls()
        if len(head) == 0 and len(head := self._cleaned(known).drop_nulls()) == 0:
            return column if kind is None else self._cleaned(column)
        if (format_ := self.format.dates.get(column.name)) and (dates := self._date(column, format_)) is not None:
            return dates
        if column.name in self._dated:
            return column
        for of, looks_right, read in (
            ("number", _looks_plain, self._plain),
            ("", _looks_boolean, _booleans),
            ("number", _looks_local, self._local_number),
            ("date", _matches(_YEAR_FIRST), self._iso_date),
            ("date", _matches(*_FORMATS), self._formatted_date),
            ("", _matches(_TIME_OF_DAY), _times),
        ):
            if kind in (None, of) and looks_right(head) and (found := read(column)) is not None:
                return found
        if kind is None and _matches(_SHORT_YEAR)(head):
            self._note(f"{{columns}} (text) may be dates such as {head[0]}: write years with four digits", column.name)
        if kind is None:
            self._name_odd_value(column, head)
        return self._without_dashes(column)

    def _without_dashes(self, column: pl.Series) -> pl.Series:
        """Return text in which a dash is a missing value; columns such as + and - are left alone."""
        is_dash = column.str.strip_chars().is_in(_DASHES)
        others = column.filter(~is_dash)
        if self.format.missing is not None or not is_dash.any() or not others.str.contains(r"[\pL\pN]").all():
            return column
        self._note(f"{listed(column.filter(is_dash).unique().sort())} missing in {{columns}}", column.name)
        return column.set(is_dash, None)

    def unreadable(self, column: pl.Series, kind: Kind) -> pl.Series:
        """Return which values keep a column from being read as numbers or dates: as few as possible."""
        import polars as pl

        cleaned = self._cleaned(column)
        fits = []
        if kind == "number":
            for sign in [self._signs[column.name]] if column.name in self._signs else DECIMALS:
                fits.append(cleaned.str.contains(_NUMBER[sign]))
                if sign == ".":
                    fits[-1] |= cleaned.cast(pl.Float64, strict=False).is_not_null()
        else:
            formats = [self.format.dates[column.name]] if column.name in self._dated else _formats_of(cleaned)
            fits = [_dates(cleaned, format_).is_not_null() for format_ in formats]
        wrong = [cleaned.is_not_null() & ~fit.fill_null(False) for fit in fits]
        return min(wrong, key=lambda one: int(one.sum()), default=cleaned.is_not_null())

    def _name_odd_value(self, column: pl.Series, head: pl.Series) -> None:
        """Note the first value of a text column without which, and a few others, it would be numbers or dates."""
        for kind in ("number", "date"):
            if self.unreadable(head, kind).sum() <= len(head) / 2:
                wrong = self.unreadable(column, kind)
                if 0 < wrong.sum() <= _FEW * (len(column) - column.null_count()):
                    row = wrong.arg_max() or 0
                    self._note(f"{{columns}} is text because of {column[row]!r} in {self.row} {row + 1:,}", column.name)

    def _cleaned(self, column: pl.Series) -> pl.Series:
        """Return text without spaces around it; placeholders of missing values become missing."""
        stripped = column.str.strip_chars()
        if self.format.missing is not None:
            return stripped
        return stripped.set(stripped.is_in(_PLACEHOLDERS), None)

    def _complete(self, column: pl.Series, read: Callable[[pl.Series], pl.Series]) -> pl.Series | None:
        """Read a column as it is or, if some values cannot be read, cleaned; None if some still cannot be read."""
        if (found := read(column)).null_count() == column.null_count():
            return found
        cleaned = self._cleaned(column)
        if cleaned.null_count() == len(cleaned) or (found := read(cleaned)).null_count() != cleaned.null_count():
            return None
        if cleaned.null_count() > column.null_count():
            used = column.str.strip_chars().filter(cleaned.is_null() & column.is_not_null()).unique().sort()
            self._note(f"{listed(used)} missing in {{columns}}", column.name)
        return found

    # ---- numbers -----------------------------------------------------------------------------------------------------

    def _plain(self, column: pl.Series) -> pl.Series | None:
        """Return integers or numbers with a decimal point; None for text, and for digits that numbers would change."""
        import polars as pl

        is_known = self.kinds.get(column.name) == "number"
        head = self._cleaned(column.head(_HEAD_ROWS)).drop_nulls()
        whole = None
        if head.cast(pl.Int64, strict=False).null_count() == 0:
            whole = self._complete(column, lambda text: text.cast(pl.Int64, strict=False))
        if whole is not None:
            if not is_known and column.str.contains(_LEADING_ZERO).any():
                self._note("{columns} text, because of leading zeros", column.name)
                return column
            if not is_known:
                self._name_dates_as_numbers(whole)
            return whole
        numbers = self._complete(column, lambda text: text.cast(pl.Float64, strict=False))
        if numbers is None:
            return None
        if not is_known and _is_long_integer(column):
            self._note("{columns} text, because numbers have at most 18 digits", column.name)
            return column
        if _all_match(head, _GROUPS_ONLY) and _all_match(self._cleaned(column), _GROUPS_ONLY):
            self._either[column.name] = column
        elif self._signs.get(column.name) == ",":
            return None
        else:
            self._signs[column.name] = "."
        return numbers

    def _local_number(self, column: pl.Series) -> pl.Series | None:
        """Return numbers with a decimal comma or separators of thousands."""
        cleaned = self._cleaned(column)
        sign = self._signs.get(column.name)
        fitting = [decimal for decimal in DECIMALS if _all_match(cleaned, _NUMBER[decimal]) and sign in (None, decimal)]
        if not fitting or cleaned.null_count() == len(cleaned):
            return None
        if len(fitting) == 2 and cleaned.str.contains("[.,]").any():
            self._either[column.name] = column
            return column
        found = self._number(column, fitting[0])
        if len(fitting) == 1 and found is not None:
            self._signs[column.name] = fitting[0]
        return found

    def _decided_sign(self, column: pl.Series) -> str:
        """Return the decimal sign of a column that fits both.

        That is the requested one, a point in a file separated by commas, the remembered one unless another column
        contradicts what is remembered, that of the other columns of the file, or else the usual one.
        """
        has_comma, in_commas = bool(column.str.contains(",", literal=True).any()), self.format.sign == ","
        remembered, signs = self.format.decimals, set(self._signs.values())
        if (decimal := self._signs.get(column.name) or self.format.decimal) is not None:
            return decimal
        if in_commas and not has_comma:
            return "."
        if column.name in remembered and all(remembered.get(name, sign) == sign for name, sign in self._signs.items()):
            return remembered[column.name]
        if len(signs) == 1:
            return next(iter(signs))
        decimal, other = (",", ".") if has_comma and not in_commas else (".", ",")
        example = column.filter(column.str.contains(r"[.,]\d")).head(1)
        if (value := self._number(example, decimal)) is not None:
            what = f"{example[0]} in {{columns}} read as {value[0]:,} (else pass --decimal {other!r})"
            self._note(what, column.name)
        return decimal

    def _number(self, column: pl.Series, decimal: str) -> pl.Series | None:
        import polars as pl

        thousands = _THOUSANDS[decimal]

        def read(text: pl.Series) -> pl.Series:
            plain = text.str.replace_all(thousands, "").str.replace(decimal, ".", literal=True)
            whole = plain.cast(pl.Int64, strict=False)
            return whole if whole.null_count() == text.null_count() else plain.cast(pl.Float64, strict=False)

        found = self._complete(column, read)
        if found is None:  # digits of other scripts
            return None
        if column.str.contains(rf"\d{thousands}\d").any():
            self._note("thousands separators in {columns}", column.name)
        if decimal == "," and found.dtype == pl.Float64:
            self._note("decimal commas in {columns}", column.name)
        return found

    def _name_dates_as_numbers(self, whole: pl.Series) -> None:
        import polars as pl

        low, high = whole.min(), whole.max()
        for what, (first, last) in _DATES_AS_NUMBERS.items():
            if not (isinstance(low, int) and isinstance(high, int) and first <= low < high <= last):
                continue
            if last > 10**8 or whole.cast(pl.String).str.to_date("%Y%m%d", strict=False).null_count() == (
                whole.null_count()
            ):
                self._note(f"{{columns}} (numbers) may be dates, {what.format(low)}", whole.name)

    # ---- dates -------------------------------------------------------------------------------------------------------

    def _iso_date(self, column: pl.Series) -> pl.Series | None:
        import polars as pl

        with_time = bool((self._cleaned(column).str.len_chars() > len("2024-05-31")).any())

        def read(text: pl.Series) -> pl.Series:
            try:
                return text.str.to_datetime(strict=False) if with_time else text.str.to_date(strict=False)
            except pl.exceptions.PolarsError:  # it finds no format
                return pl.Series(text.name, [None] * len(text), dtype=pl.Date)

        return self._complete(column, read)

    def _formatted_date(self, column: pl.Series) -> pl.Series | None:
        """Return dates in the order of day and month that fits all values; if both fit, it is decided later."""
        formats = _formats_of(self._cleaned(column).drop_nulls().head(1))
        fitting = [format_ for format_ in formats if self._date(column, format_, noted=False) is not None]
        if not fitting:
            return None
        if len(fitting) == 2:
            self._unordered[column.name] = column, fitting
        elif len(formats) == 2:
            self._orders.add(fitting[0] == formats[0])
        return self._date(column, fitting[0], noted=len(fitting) == 1)

    def _decided_date(self, name: str, column: pl.Series, formats: list[str]) -> pl.Series:
        """Read dates that fit both orders as requested, as the other columns, or with points, which have the day first.

        Raises
        ------
        ValueError
            If nothing decides the order.
        """
        day_first = self.format.day_first
        if day_first is None and len(self._orders) == 1:
            day_first = next(iter(self._orders))
        separator = formats[0][2]
        if day_first is None and separator != ".":
            example = str(self._cleaned(column).drop_nulls()[0])
            raise ValueError(
                f"Column '{name}' holds dates such as {example}, and all of them can be read as day{separator}month or "
                f"as month{separator}day. Pass --dayfirst or --monthfirst; in Python, parse the dates and pass a frame."
            )
        found = self._date(column, formats[day_first is False])
        assert found is not None  # both orders fit
        return found

    def _date(self, column: pl.Series, format_: str, noted: bool = True) -> pl.Series | None:
        """Return dates of one format; None if some value has another one."""
        found = self._complete(column, lambda text: _dates(text, format_))
        if found is not None and noted and self.format.dates.get(column.name) != format_:
            self._note(f"dates in {{columns}} are {format_in_words(format_)}", column.name)
            self.format = replace(self.format, dates={**self.format.dates, column.name: format_})
        return found


def format_in_words(format_: str) -> str:
    """Return a format of dates in words, such as day/month/year."""
    words = {"%d": "day", "%m": "month", "%Y": "year", "%B": "month"}
    for code, word in words.items():
        format_ = format_.replace(code, word)
    return format_.partition("%")[0].rstrip(" T")


def _formats_of(texts: pl.Series) -> list[str]:
    """Return the formats of the first text that looks like a date: two if day and month can be exchanged."""
    for text in texts.drop_nulls().head(_HEAD_ROWS):
        for pattern, formats in _FORMATS.items():
            if (match := pattern.fullmatch(text)) and (time := _time_format(match[2])) is not None:
                return [format_.format(match[1]) + time for format_ in formats]
    return []


def _dates(texts: pl.Series, format_: str) -> pl.Series:
    """Return dates of one format, with or without time; missing where a text has another format."""
    if "%H" in format_ or "%I" in format_:
        return texts.str.to_datetime(format_, strict=False, time_unit="us")
    return texts.str.to_date(format_, strict=False)


def _time_format(text: str) -> str | None:
    """Return the format of the time after a date; None if it is not known."""
    for pattern, format_ in _TIMES.items():
        if match := re.fullmatch(pattern, text):
            return match[1] + format_ if format_ else ""
    return None


def _all_match(column: pl.Series, pattern: str) -> bool:
    return bool(column.str.contains(pattern).all())


def _matches(*patterns: re.Pattern[str]) -> Callable[[pl.Series], bool]:
    def match(head: Iterable[str]) -> bool:
        return all(any(pattern.fullmatch(text) for pattern in patterns) for text in head)

    return match


def _looks_plain(head: pl.Series) -> bool:
    import polars as pl

    return head.cast(pl.Float64, strict=False).null_count() == 0


def _looks_local(head: pl.Series) -> bool:
    return any(_all_match(head, pattern) for pattern in _NUMBER.values())


def _looks_boolean(head: pl.Series) -> bool:
    return bool(head.str.to_lowercase().is_in(["true", "false"]).all())


def _booleans(column: pl.Series) -> pl.Series | None:
    words = column.str.strip_chars().str.to_lowercase()
    return words == "true" if words.is_in(["true", "false"]).all() else None


def _times(column: pl.Series) -> pl.Series | None:
    """Return times of day, which models refuse with an explanation."""
    for format_ in ("%H:%M", "%H:%M:%S"):
        found = column.str.strip_chars().str.to_time(format_, strict=False)
        if found.null_count() == column.null_count():
            return found
    return None


def _is_long_integer(column: pl.Series) -> bool:
    longest = column.str.len_bytes().max()
    if not isinstance(longest, int) or longest <= _LONGEST_INTEGER:
        return False
    return bool(column.str.contains(rf"^\s*[+-]?\d{{{_LONGEST_INTEGER + 1},}}\s*$").any())
