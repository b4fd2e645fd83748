"""rpart's own names of parameters."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self, TypeVar, cast

import numpy as np

from spinney._estimator.attributes import only_if
from spinney._tree.prune.methods import refuse_shrunk
from spinney._tree.rpart.record import RpartRecord
from spinney._tree.rpart.report import RpartReport

Tree = TypeVar("Tree")

_FALLBACK = {0: "ignore", 1: "stop", 2: "majority"}


def control(
    *,
    minsplit: int | None,
    minbucket: int | None,
    cp: float,
    maxcompete: int,
    maxsurrogate: int,
    usesurrogate: int,
    surrogatestyle: int,
    maxdepth: int,
    xval: Any,
    cost: Any,
    rpart_quirks: bool,
) -> dict[str, Any]:
    """Turn rpart.control's words into the estimator's parameters."""
    if minbucket is None:
        minsplit = 20 if minsplit is None else minsplit
        if not isinstance(minsplit, Integral):
            raise ValueError(f"minsplit must be a whole number. Got {minsplit!r}.")
        minbucket = max(1, round(minsplit / 3))
    elif minsplit is None:
        minsplit = max(1, 3 * minbucket) if isinstance(minbucket, Integral) else 20
    for name, value, low, high in (
        ("minsplit", minsplit, 1, None),
        ("minbucket", minbucket, 1, None),
        ("maxcompete", maxcompete, 0, None),
        ("maxsurrogate", maxsurrogate, 0, None),
        ("usesurrogate", usesurrogate, 0, 2),
        ("surrogatestyle", surrogatestyle, 0, 1),
        ("maxdepth", maxdepth, 1, 30),
    ):
        if not isinstance(value, Integral) or value < low or (high is not None and value > high):
            upper = "" if high is None else f" and at most {high}"
            raise ValueError(f"{name} must be a whole number of at least {low}{upper}. Got {value!r}.")
    if np.isnan(cp):
        raise ValueError("cp must be a number: a share of the root's risk. Got NaN.")
    if (
        isinstance(xval, str)
        or hasattr(xval, "split")
        or (np.ndim(xval) == 0 and not isinstance(xval, (Integral, type(None))))
    ):
        raise ValueError(f"xval must be a number of folds, 0 for none, or one fold number per row. Got {xval!r}.")
    if np.ndim(xval) == 0 and xval is not None and xval < 0:
        raise ValueError(f"xval must not be negative. Got {xval}. Use 0 for no cross-validation.")
    if not isinstance(rpart_quirks, bool):
        raise ValueError(f"rpart_quirks must be True or False. Got {rpart_quirks!r}.")
    if not isinstance(cp, Real) or cp != cp:
        raise ValueError(f"cp must be a number. Got {cp!r}.")
    folds = np.ndim(xval) > 0 or (xval is not None and int(xval) > 1)
    return {
        "min_samples_split": max(2, int(minsplit)),
        "min_samples_leaf": int(minbucket),
        "cp": float(cp),
        "max_competitors": int(maxcompete),
        "max_surrogates": int(maxsurrogate),
        "missing": "surrogate",
        "missing_fallback": _FALLBACK[int(usesurrogate)],
        "surrogate_style": "present" if surrogatestyle else "all",
        "max_depth": int(maxdepth),
        "prune": "cv" if folds else None,
        "cv": xval if folds else 10,
        "rule": None,
        "feature_costs": cost,
        "dialect": "rpart_quirks" if rpart_quirks else "rpart",
    }


def refuse_twice(parameters: dict[str, Any], spoken_for: tuple[str, ...]) -> None:
    """Refuse parameters for which rpart has words of its own."""
    words = {
        "criterion": "method or split", "priors": "prior", "cost_matrix": "loss", "rate_shrinkage": "shrink",
        "scoring": "error",
    }  # fmt: skip
    for name in spoken_for:
        if name in parameters:
            raise TypeError(f"rpart(...) has a parameter of its own for {name}: {words[name]}. Use that.")


def _why_no_report(model: Any) -> str | None:
    by_rpart = hasattr(model, "rpart_") if hasattr(model, "tree_") else model.dialect is not None
    if by_rpart:
        return None
    return f"needs rpart's rules. Make the tree with {type(model).__name__}.rpart(...), or use cp_table_ and plot_cp."


class RpartTree:
    """What a tree grown by rpart's rules can say of itself in rpart's words."""

    rpart_: RpartRecord

    def _report(self) -> RpartReport:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return RpartReport(self.rpart_, self.schema_, getattr(self, "classes_", None))  # type: ignore[attr-defined]

    def pruned(self, *, alpha: float | None = None, cp: float | None = None) -> Self:
        """Return a copy of the fitted tree that is pruned further, without growing it again.

        Parameters
        ----------
        alpha : float, optional
            Penalty per leaf, in the unit of the risk; all that goes at or below it goes.
        cp : float, optional
            The same as a share of the root's risk; in a tree grown by rpart's rules it may be negative.

        Returns
        -------
        estimator
            A new fitted tree; this one stays as it is.
        """
        if not hasattr(self, "rpart_"):
            return cast(Self, super().pruned(alpha=alpha, cp=cp))  # type: ignore[misc]
        from spinney._tree.rpart.estimator import complexity_table

        if (alpha is None) == (cp is None):
            raise ValueError("Pass either alpha or cp to pruned: alpha=..., or cp=... as a share of the root's risk.")
        given = alpha if cp is None else cp
        unpriced = self.rpart_.root_risk == 0  # its table has no complexities
        if not isinstance(given, Real) or (given != given and not unpriced):  # rpart takes negative ones, too
            raise ValueError(f"{'alpha' if cp is None else 'cp'} must be a number. Got {given!r}.")
        refuse_shrunk(self)
        if cp is None:
            risk_per_weight = self.rpart_.root_risk / float(self.rpart_.tree.weighted_n_node_samples[0])
            cp = float(alpha) / risk_per_weight if risk_per_weight > 0 else 0.0
        record = self.rpart_.pruned(float(cp))
        other = self._with_tree(self.schema_, {}, record.tree)
        other.rpart_ = record
        table = complexity_table(record)
        other._keep_pruning({"alpha_": float(table.alpha[-1]), "cp_table_": table})
        return other

    @property
    def feature_importances_(self) -> Any:
        """Share of each column in the total decrease of the impurity.

        With ``missing="surrogate"`` a surrogate is credited with the split's gain times its adjusted agreement.
        """
        if "rpart_" not in self.__dict__:
            return super().feature_importances_  # type: ignore[misc]
        total = self.rpart_.importance(self.n_features_in_)  # type: ignore[attr-defined]
        return total / total.sum() if total.sum() > 0 else total

    @only_if(_why_no_report)
    def printcp(self, digits: int = 5) -> None:
        """Print the table of complexities, as rpart's printcp.

        Parameters
        ----------
        digits : int, default=5
            Significant digits.
        """
        print(self._report().complexity_text(digits))

    @only_if(_why_no_report)
    def summary(self, digits: int = 5) -> None:
        """Print every node with its splits, competitors and surrogates, as rpart's summary.

        Parameters
        ----------
        digits : int, default=5
            Significant digits.
        """
        print(self._report().summary_text(digits))

    @only_if(_why_no_report)
    def rpart_frame(self) -> Any:
        """Return the nodes as rpart's frame: numbers, columns, counts, deviances, complexities.

        Returns
        -------
        pandas.DataFrame
            A line per node, indexed by rpart's node number.
        """
        return self._report().frame()

    @only_if(_why_no_report)
    def rpart_splits(self) -> Any:
        """Return the splits of all nodes: primary, competitors and surrogates.

        Returns
        -------
        pandas.DataFrame
            A line per split. `improve` is a surrogate's agreement, `adj` its agreement beyond the majority's.
        """
        return self._report().splits()
