"""A small table of all kinds of columns, and scans of it of which hardly any page is held."""

from __future__ import annotations

import numpy as np
import pandas as pd
import spinney

N_ROWS = 700
FEATURES = ["a", "b", "i", "t", "f"]


def make_frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N_ROWS),
            "b": rng.normal(size=N_ROWS).astype(np.float32),
            "i": rng.integers(0, 50, N_ROWS),
            "t": rng.choice(list("zyxabc"), N_ROWS),
            "f": rng.random(N_ROWS) < 0.3,
        }
    )
    frame.loc[rng.random(N_ROWS) < 0.1, "a"] = np.nan
    frame["y"] = frame.a.fillna(0) + frame.i / 20 + (frame.t == "z") + 0.1 * rng.normal(size=N_ROWS)
    frame["t"] = frame.t.where(rng.random(N_ROWS) > 0.1, None)
    frame["yes"] = np.where(frame.y > 1, "yes", "no")
    frame["third"] = (3 * frame.y).astype(int) % 3
    frame["w"] = rng.integers(1, 4, N_ROWS).astype(float)
    frame["g"] = rng.integers(0, 30, N_ROWS)
    return frame


FRAME = make_frame()


def pieces(columns: list[str], size: int, memory: int = 40_000) -> spinney._data.scan.Scan:
    """Return a scan of which hardly any page is held."""
    return spinney.scan(lambda: (FRAME[columns].iloc[at : at + size] for at in range(0, N_ROWS, size)), memory=memory)
