"""Rows of results as frames of the caller's library."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Literal

Backend = Literal["pandas", "polars"]


def frame_of(columns: dict[str, list[Any]], backend: Backend | None) -> Any:
    """Make a frame of columns in the library asked for, or in the one that is installed."""
    if backend not in ("pandas", "polars", None):
        raise ValueError(f"backend must be 'pandas', 'polars' or None, not {backend!r}.")
    if backend is None:
        backend = "pandas" if find_spec("pandas") is not None else "polars"
    try:
        if backend == "pandas":
            import pandas as pd

            return pd.DataFrame(columns)
        import polars as pl

        return pl.DataFrame(columns, strict=False)
    except ImportError as error:
        raise ImportError("A frame needs pandas or polars: pip install pandas") from error
