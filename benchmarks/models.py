"""The same tree from either library, and whether two fitted trees are as good as each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from data import Split


def make(library: str, kind: str, n_jobs: int | None = None, **options: Any) -> Any:
    """Make an unfitted tree. `n_jobs` goes to spinney only: scikit-learn's trees know one thread."""
    if library == "sklearn":
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
    else:
        from spinney import DecisionTreeClassifier, DecisionTreeRegressor

        options["n_jobs"] = n_jobs
    tree = DecisionTreeClassifier if kind == "classifier" else DecisionTreeRegressor
    return tree(random_state=0, **options)


class Score(NamedTuple):
    """A fitted tree's nodes, its mean loss on test rows (error rate, or squared error), and its score."""

    nodes: int
    loss: float
    score: float


def evaluate(kind: str, table: Split, model: Any) -> Score:
    predicted = model.predict(table.X_test)
    if kind == "classifier":
        loss = float(np.mean(predicted != table.y_test))
        return Score(nodes(model), loss, 1.0 - loss)
    loss = float(np.mean((predicted - table.y_test) ** 2))
    return Score(nodes(model), loss, 1.0 - loss / float(np.var(table.y_test)))


def nodes(model: Any) -> int:
    """Node count of a tree, or of the tree at the end of a pipeline."""
    return (model[-1] if hasattr(model, "steps") else model).tree_.node_count


def compare(kind: str, ours: list[Score], peer: list[Score]) -> tuple[str, bool]:
    """Describe trees of either side, one each per table, and say whether ours are no worse.

    No worse: the mean loss over all tables is at most 1 % above the peer's. Small nodes have many equal
    splits and each library picks its own, so even the peer's loss moves with its seed: by about 2 % on
    one table of 1,000 rows, less on larger ones.
    """
    sides = [tuple(float(np.mean(values)) for values in zip(*side, strict=True)) for side in (ours, peer)]
    no_worse = sides[0][1] <= 1.01 * sides[1][1]
    counts = " | ".join(f"{side[0]:.0f}" for side in sides)
    scores = " | ".join(f"{side[2]:.4f}" for side in sides)
    name = "accuracy" if kind == "classifier" else "R²"
    return f"{counts} nodes, {name} {scores}{'' if no_worse else ' WORSE'}", no_worse
