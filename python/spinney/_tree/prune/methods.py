"""What pruning adds to a tree estimator."""

from __future__ import annotations

import copy
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

_LEARNED = ("alpha_", "cp_table_", "oof_predictions_")


def refuse_shrunk(model: Any) -> None:
    """Refuse to weigh the errors of values that are no longer those of the training rows."""
    if getattr(model, "shrinkage_", 0.0) > 0 and not model._prunes_by_impurity:
        raise ValueError(
            "The values of this tree are shrunk, so its errors no longer say what a branch is worth. Prune first: with "
            "cp=, ccp_alpha= or prune= at fit, or prune the tree before shrink_tree."
        )


class PrunableTree:
    """Mixin: the pruning path, `pruned` after fit, and what pruning at fit has learned."""

    def cost_complexity_pruning_path(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Bunch:
        """Sequence of trees that minimal cost-complexity pruning goes through.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), optional
            Rows to grow an unpruned tree on. Without them: the path of this fitted tree, as it is.
        y : array-like, optional
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        Bunch
            `ccp_alphas`, the penalties at which a branch goes, and `impurities`, the leaves' total risk after it: the
            impurity, or the error with ``risk="error"``.
        """
        if X is None and y is None and sample_weight is None:
            check_is_fitted(self)
            refuse_shrunk(self)
            tree = self.tree_  # type: ignore[attr-defined]
        elif X is None or y is None:
            raise ValueError("Pass both X and y, or neither for the path of the fitted tree.")
        else:
            known = self.get_params(deep=False)  # type: ignore[attr-defined]
            unpruned = {"ccp_alpha": 0.0, "cp": None, "prune": None}
            other: Any = copy.copy(self)
            other.set_params(**{name: v for name, v in unpruned.items() if name in known})
            tree = other.fit(X, y, sample_weight).tree_
        node_risks, n_threads = self._node_risks(tree), self._n_threads  # type: ignore[attr-defined]
        _, alphas, risks, _, _ = tree.engine.pruning_path(node_risks, n_threads)
        return Bunch(ccp_alphas=np.concatenate([[0.0], alphas]), impurities=risks)

    # ---- what the estimator needs ----------------------------------------------------------------------

    def _keep_pruning(self, learned: dict[str, Any]) -> None:
        """Set the fitted attributes of pruning, and drop those of an earlier fit."""
        for name in _LEARNED:
            self.__dict__.pop(name, None)
        self.__dict__.update(learned)

    def pruned(self, *, alpha: float | None = None, cp: float | None = None) -> Self:
        """Return a copy of the fitted tree that is pruned further, without growing it again.

        Parameters
        ----------
        alpha : float, optional
            Penalty per leaf, in the unit of the risk; all that goes at or below it goes.
        cp : float, optional
            The same as a share of the root's risk.

        Returns
        -------
        estimator
            A new fitted tree; this one stays as it is.
        """
        check_is_fitted(self)
        if (alpha is None) == (cp is None):
            raise ValueError("Pass either alpha or cp to pruned: alpha=..., or cp=... as a share of the root's risk.")
        given = alpha if cp is None else cp
        if not isinstance(given, Real) or not float(given) >= 0:
            raise ValueError(f"{'alpha' if cp is None else 'cp'} must be a number of at least 0. Got {given!r}.")
        tree, schema = self.tree_, self.schema_
        refuse_shrunk(self)
        risks = self._node_risks(tree)
        penalty = float(given) if cp is None else float(given) * float(risks[0])
        other: Self = self._with_tree(schema, {}, tree.replaced(tree.engine.pruned(penalty, risks)))
        table = vars(self).get("cp_table_")
        kept = {} if table is None else {"cp_table_": replace(table, chosen=None)}  # the choice was that of fit
        other._keep_pruning({"alpha_": penalty} | kept)
        return other
