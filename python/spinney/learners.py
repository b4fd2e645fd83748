"""Weak learners for functional boosting: each fits a simple function to residuals by least squares.

Pass one or several of them, or names such as "splines", as ``learners`` to `FunctionalBoostingRegressor` or
`FunctionalBoostingClassifier`:

>>> import spinney
>>> from spinney.learners import Linear, Trees
>>> model = spinney.FunctionalBoostingRegressor([Linear(), Trees(max_depth=2)])
"""

from spinney._ensemble.functional.learners.curves import Linear, Logistic, Splines
from spinney._ensemble.functional.learners.weak import KernelRidge, Neighbors, Trees, WeakLearner

__all__ = ["KernelRidge", "Linear", "Logistic", "Neighbors", "Splines", "Trees", "WeakLearner"]
