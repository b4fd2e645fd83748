"""Small tables that tests of margins share."""

import numpy as np
import pandas as pd


def blobs(seed=0, n=60, d=3, n_classes=2, spread=1.2):
    rng = np.random.RandomState(seed)
    y = np.arange(n) % n_classes
    return rng.randn(n, d) * spread + np.eye(n_classes, d)[y] * 2.5, y


def mixed(n=80):
    rng = np.random.RandomState(1)
    frame = pd.DataFrame(
        {"a": rng.randn(n), "town": rng.choice(["Ely", "Rye", "Wem"], n).astype(object), "wet": rng.rand(n) < 0.5}
    )
    score = frame["a"] + 2 * (frame["town"] == "Rye") + frame["wet"] + 0.3 * rng.randn(n)
    frame.loc[::9, "a"] = np.nan
    frame.loc[::11, "town"] = None
    return frame, np.where(score > 1.2, "high", "low"), score.to_numpy()
