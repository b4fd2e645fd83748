"""Calculations for lectures: impurities, gains and split searches, pruning step by step, losses, the bootstrap.

>>> from spinney.teaching import gain, impurity
>>> impurity([400, 400]), gain([400, 400], [[300, 100], [100, 300]], "misclassification")
(0.5, 0.25)

The example tables are in `spinney.datasets`; other functions that draw, such as `spinney.plot_losses`, are in
`spinney`.
"""

from spinney._evaluate.bootstrap import Bootstrap, bootstrap
from spinney._evaluate.consistency import Consistency, consistency
from spinney._evaluate.kernel_density import KernelDensity, kernel_density
from spinney._evaluate.perceptron_steps import PerceptronStep, PerceptronSteps, perceptron_steps
from spinney._evaluate.votes import member_votes
from spinney.inspect.draw.teaching import plot_source
from spinney.inspect.margin_losses import MarginLoss, margin_losses
from spinney.inspect.text.bundles import ColumnBundles, bundle_columns
from spinney.inspect.text.calculators import SearchTable, gain, impurity, search_table
from spinney.inspect.text.multiway import MultiwayTree, multiway_tree
from spinney.inspect.text.weakest_links import (
    CountedTree,
    PruningStep,
    WeakestLinks,
    count_subtrees,
    tree_from_counts,
    weakest_links,
)

__all__ = [
    "Bootstrap",
    "ColumnBundles",
    "Consistency",
    "CountedTree",
    "KernelDensity",
    "MarginLoss",
    "MultiwayTree",
    "PerceptronStep",
    "PerceptronSteps",
    "PruningStep",
    "SearchTable",
    "WeakestLinks",
    "bootstrap",
    "bundle_columns",
    "consistency",
    "count_subtrees",
    "gain",
    "impurity",
    "kernel_density",
    "margin_losses",
    "member_votes",
    "multiway_tree",
    "perceptron_steps",
    "plot_source",
    "search_table",
    "tree_from_counts",
    "weakest_links",
]
