"""What a fitted forest tells of how rows lie to each other: proximities, outliers, a map, leaf codes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import spinney._engine as _engine
from spinney._forest.leaf_codes import one_hot_leaves
from spinney._forest.proximities.proximity import KINDS, Kind, Proximities, Resting, count_draws
from spinney._forest.proximities.proximity_map import map_rows
from spinney._model.forest import FittedForest

Floats = NDArray[np.float64]
_MOST_DENSE = 2**27  # entries: 1 GiB
_NORMAL_MAD = 1.4826022185056018  # standard deviation of a normal variable over its median absolute deviation


class Neighbourhood:
    """Methods of forests."""

    forest_: FittedForest
    n_jobs: int | None

    def proximity(
        self,
        X: Any,
        Y: Any = None,
        *,
        kind: Kind = "all",
        n_neighbors: int | None = None,
        threshold: float | None = None,
        sparse: bool | None = None,
    ) -> Floats | csr_array:
        """Share of the trees in which two rows rest in the same leaf.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows. For all kinds but "all" and without `Y`, those that the forest was fitted on, in the same order.
        Y : table of shape (n_others, n_features), optional
            Rows to compare them to; None: each other. For all kinds but "all", the training rows; those of `X` are
            then new to every tree.
        kind : {"all", "oob", "in_bag", "gap"}, default="all"
            Trees that count: all; those grown without both rows; those grown on both; or, for each row of `X`, those
            grown without it, a tree's vote being shared among its sampled rows in the leaf. By "all", training rows
            of the same class look nearer than they are, because the trees were grown to part the classes.
        n_neighbors : int, optional
            Keep the largest proximities of each row. Without `Y` an entry is kept if it is among the largest of either
            row, so that the result is symmetric.
        threshold : float, optional
            Keep proximities of at least so much.
        sparse : bool, optional
            Whether to return a sparse matrix; None: if `n_neighbors` or `threshold` is given.

        Returns
        -------
        ndarray or csr_array of shape (n_samples, n_samples) or (n_samples, n_others)
            Without `Y` symmetric, with 1 in the diagonal. For "gap" the rows add up to 1 and the diagonal is 0.
        """
        threshold, is_sparse = _check_kept(kind, n_neighbors, threshold, sparse)
        left = self._resting(X, kind if Y is None else "all")
        right = left if Y is None else self._resting(Y, kind)
        if not is_sparse and sparse is None and left.n_rows * right.n_rows > _MOST_DENSE:
            raise ValueError(
                f"{left.n_rows} x {right.n_rows} proximities take {left.n_rows * right.n_rows / 2**27:.0f} GiB. Keep "
                "the largest of each row with n_neighbors, or pass sparse=True or sparse=False to have them all."
            )
        found = Proximities.between(left, right, kind, Y is None)
        is_symmetric = Y is None and kind != "gap"
        if is_sparse:
            return (found.symmetric if is_symmetric else found.sparse)(self.n_jobs, n_neighbors, threshold)
        return found.dense(self.n_jobs, 1.0 if is_symmetric else 0.0)

    def outlier_score(self, X: Any, y: Any = None, *, kind: Kind = "all") -> Floats:
        """How far each row lies from the others of its class.

        The raw score is the number of rows over the sum of the squared proximities to the rows of the class; from it
        the median of the class is taken away, and the rest divided by the median absolute deviation (times 1.48, so
        that it is a standard deviation where the scores are normal). Scores above 10 deserve a look (Breiman and
        Cutler).

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Their classes; each combination counts as one. None, and in a regression: all rows are one class.
        kind : {"all", "oob"}, default="all"
            Trees that count, as of `proximity`. "oob" needs the rows that the forest was fitted on.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores. Rows of a class whose raw scores do not differ score 0.
        """
        if kind not in ("all", "oob"):
            raise ValueError(f"kind must be 'all' or 'oob', not {kind!r}.")
        resting = self._resting(X, kind)
        score = np.zeros(resting.n_rows)
        for rows in self._classes_apart(y, resting.n_rows):
            members = resting.take(rows)
            sums = 1.0 + Proximities.between(members, members, kind, True).sums_of_squares(self.n_jobs)
            score[rows] = _standardised(resting.n_rows / sums)
        return score

    def proximity_map(self, X: Any, n_components: int = 2) -> Floats:
        """Place rows so that their distances are near to the square root of 1 - proximity.

        Classical scaling of the proximities, by the leading directions of the centred matrix of rows and leaves: the
        proximities themselves are never written out.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        n_components : int, default=2
            Coordinates of each row.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Coordinates, the widest direction first. Their signs are chosen so that the largest is positive.
        """
        return map_rows(self._resting(X, "all"), n_components)

    def leaf_embedding(self, X: Any, *, sparse_output: bool = True) -> csr_array | Floats:
        """Code each row by the leaves it rests in.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        sparse_output : bool, default=True
            Whether to return a sparse matrix.

        Returns
        -------
        csr_array or ndarray of shape (n_samples, n_leaves)
            One column per leaf, tree by tree: 1 where the row rests. A row's product with another, over the number of
            trees, is their proximity.
        """
        codes = one_hot_leaves(self.forest_, self._resting(X, "all").nodes)
        return codes if sparse_output else codes.toarray()

    def _resting(self, X: Any, kind: Kind) -> Resting:
        """Where the rows rest; with how often they were drawn, where the kind asks for it."""
        if kind == "all":
            return Resting(self._nodes(self._columns(X)), self.forest_.node_count)  # type: ignore[attr-defined]
        try:
            draws = self._known_draws()  # type: ignore[attr-defined]
        except AttributeError as error:
            raise ValueError(f"kind={kind!r} needs to know which rows were drawn. {error}") from None
        advice = f"kind={kind!r} needs the same rows; for others use kind='all'."
        columns = self._training_columns(X, draws.n_rows, advice)  # type: ignore[attr-defined]
        return Resting(self._nodes(columns), self.forest_.node_count, count_draws(draws, self.forest_.n_trees))

    def _nodes(self, columns: _engine.Table) -> NDArray[np.int64]:
        leaves = self.forest_.engine.apply(columns, self._n_threads)  # type: ignore[attr-defined]
        return np.asarray(leaves.astype(np.int64) + self.forest_.root[:-1])

    def _classes_apart(self, y: Any, n_rows: int) -> list[NDArray[np.intp]]:
        """Rows of each class."""
        if y is None or not hasattr(self, "classes_"):
            return [np.arange(n_rows)]
        target = self._read_target(y, n_rows)  # type: ignore[attr-defined]
        codes = self._engine_target(target)[0]  # type: ignore[attr-defined]
        class_of_row = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)
        return [np.flatnonzero(class_of_row == c) for c in range(class_of_row.max() + 1)]


def _check_kept(
    kind: Kind, n_neighbors: int | None, threshold: float | None, sparse: bool | None
) -> tuple[float, bool]:
    """Return the threshold, and whether the result is sparse."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {kind!r}.")
    if n_neighbors is not None and (not isinstance(n_neighbors, Integral) or n_neighbors < 1):
        raise ValueError(f"n_neighbors must be a whole number of at least 1, not {n_neighbors!r}.")
    if threshold is not None and (not isinstance(threshold, Real) or not 0 <= threshold <= 1):
        raise ValueError(f"threshold must be a number from 0 to 1, not {threshold!r}.")
    selects = n_neighbors is not None or threshold is not None
    if selects and sparse is not None and not sparse:
        raise ValueError("sparse=False does not go with n_neighbors or threshold: what they keep is sparse.")
    return float(threshold or 0.0), bool(selects or sparse)


def _standardised(raw: Floats) -> Floats:
    middle = np.median(raw)
    away = raw - middle
    noise = 1e-12 * middle  # smaller differences are rounding
    for scale in (_NORMAL_MAD * np.median(np.abs(away)), np.abs(away).mean()):
        if scale > noise:
            return np.asarray(away / scale)
    return np.zeros(len(raw))
