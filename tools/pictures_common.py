"""What the pictures of several chapters share, for make_pictures.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np


def save(figure: Any, path: Path, dpi: int = 110) -> None:
    """Write a figure as PNG and close it."""
    figure.savefig(path, dpi=dpi)
    plt.close(figure)


def wave(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Draw a sine with noise."""
    x = rng.uniform(0, 6, (n, 1))
    return x, np.sin(x[:, 0]) + rng.normal(0, 0.3, n)
