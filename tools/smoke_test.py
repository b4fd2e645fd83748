"""Fit, predict, save and load with an installed spinney and nothing but what it needs; prints one line.

Usage: ``python tools/smoke_test.py``, in an environment that holds a wheel alone: no other spinney is on the path.
"""

from __future__ import annotations

import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Fit and ask a few models, and what saving leaves of them."""
    import numpy as np
    import spinney

    where = Path(spinney.__file__).resolve()
    if where.is_relative_to(ROOT / "python"):
        print(f"{where} is the source, not what was installed", file=sys.stderr)
        return 1
    start = time.perf_counter()
    X, y = spinney.datasets.load_penguins(as_frame=False)
    models: list[Any] = [
        spinney.DecisionTreeClassifier(max_depth=4),
        spinney.RandomForestClassifier(n_estimators=20, random_state=0),
        spinney.GradientBoostingClassifier(n_estimators=20, random_state=0),
    ]
    for model in models:
        model.fit(X, y)
        proba = model.predict_proba(X)
        accuracy = float(np.mean(model.predict(X) == y))
        if not accuracy > 0.9:
            print(f"{type(model).__name__} has an accuracy of {accuracy:.0%} on its training rows", file=sys.stderr)
            return 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.spinney"
            model.save(path)
            for again in (spinney.load(path), spinney.load_predictor(path)):
                if not np.array_equal(again.predict_proba(X), proba):
                    print(f"{type(model).__name__}: other probabilities after loading", file=sys.stderr)
                    return 1
    seconds = time.perf_counter() - start
    print(f"spinney {spinney.__version__} on {platform.platform()}, {sys.version.split()[0]}: good, {seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
