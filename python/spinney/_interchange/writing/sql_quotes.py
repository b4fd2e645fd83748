"""Quoted names and strings in the dialects of SQL, which differ in what a backslash means."""

from __future__ import annotations

from dataclasses import dataclass

from spinney._data.display import nearest_name


@dataclass(frozen=True)
class Quotes:
    """How a dialect quotes names and strings.

    Attributes
    ----------
    dialect : str
        Its name, for messages.
    mark : str
        The quotation mark of names; one in a name is doubled.
    escapes : bool or None
        Whether a backslash in a string escapes the next character. None: unknown, so that backslashes are refused.
    doubles : bool
        Whether a quotation mark in a string is doubled; if not, a backslash is put before it.
    escapes_names : bool
        Whether a backslash escapes in names too: these may hold neither backslashes nor quotation marks.
    """

    dialect: str
    mark: str = '"'
    escapes: bool | None = False
    doubles: bool = True
    escapes_names: bool = False

    def name(self, name: str) -> str:
        """Return a quoted name of a column or table."""
        unsafe = self.escapes_names and (self.mark in name or "\\" in name)
        if not name or "\0" in name or unsafe or (self.escapes is None and "\\" in name):
            raise ValueError(f"{name!r} cannot be the name of a column or table in {self._advice()}")
        return self.mark + name.replace(self.mark, 2 * self.mark) + self.mark

    def text(self, text: str) -> str:
        """Return a quoted string."""
        if "\0" in text or (self.escapes is None and "\\" in text):
            raise ValueError(f"The string {text!r} cannot be written in {self._advice()}")
        if self.escapes:
            text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        return "'" + text.replace("'", "''" if self.doubles else "\\'") + "'"

    def _advice(self) -> str:
        if self.escapes is None:
            return (
                "SQL of an unknown dialect, because databases differ in what a backslash means. Pass the dialect, such "
                "as dialect='postgres', or rename it before the fit."
            )
        return f"the SQL of {self.dialect}. Rename it before the fit."


_STANDARD = ("sqlite", "duckdb", "postgres", "trino", "oracle", "tsql")
DIALECTS = {name: Quotes(name) for name in _STANDARD} | {
    "snowflake": Quotes("snowflake", escapes=True),
    "redshift": Quotes("redshift", escapes=True),
    "clickhouse": Quotes("clickhouse", escapes=True, escapes_names=True),
    "mysql": Quotes("mysql", "`", escapes=True),
    "bigquery": Quotes("bigquery", "`", escapes=True, doubles=False, escapes_names=True),
    "databricks": Quotes("databricks", "`", escapes=True, doubles=False),
    "spark": Quotes("spark", "`", escapes=True, doubles=False),
}


def quotes_of(dialect: str | None) -> Quotes:
    """Return the rules of a dialect; None: those that are the same in all databases."""
    if dialect is None:
        return Quotes("standard", escapes=None)
    if dialect not in DIALECTS:
        hint = nearest_name(str(dialect), list(DIALECTS), f"Known are {', '.join(DIALECTS)}.")
        raise ValueError(f"to_sql knows no dialect {dialect!r}. {hint}")
    return DIALECTS[dialect]
