"""A table on disk, and the columns of it that are not learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spinney._data.file_readers import STANDARD_INPUT
from spinney.cli.failures import fail, nearest


@dataclass(frozen=True)
class Source:
    """Where the rows come from, the column to predict, and which columns say something else of the rows."""

    path: Path
    target: str
    delimiter: str | None = None
    encoding: str | None = None
    task: str = "auto"
    drop: tuple[str, ...] = ()
    date_parts: tuple[str, ...] = ()
    weight: str | None = None
    offset: str | None = None
    group: str | None = None
    time: str | None = None
    event: str | None = None

    @property
    def stem(self) -> str:
        """Name of the table without folder and suffix."""
        return "table" if self.path == STANDARD_INPUT else self.path.name.partition(".")[0] or self.path.stem

    @property
    def not_learned_from(self) -> set[str]:
        """Columns that models do not see."""
        return {name for _, name in self._named()}

    def _named(self) -> Iterator[tuple[str, str]]:
        for option in ("target", "weight", "offset", "group", "time", "event"):
            if (name := getattr(self, option)) is not None:
                yield f"--{option}", name
        yield from (("--drop", name) for name in self.drop)

    def columns(self, names: list[str]) -> list[str]:
        """Return the columns to learn from of those that the table has; refuse options that name no such column."""
        named = list(self._named())
        for option, name in named:
            if name not in names:
                raise fail(f"{option}: '{self.path}' has no column '{name}'. {nearest(name, names)}")
        if self.target in [name for _, name in named[1:]]:
            raise fail(
                f"'{self.target}' is the target; it cannot be dropped or be the weight, offset, group or time too."
            )
        found = [name for name in names if name not in self.not_learned_from]
        if not found:
            raise fail("No column is left to learn from. Drop fewer columns.")
        return found
