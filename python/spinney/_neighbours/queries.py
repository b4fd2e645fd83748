"""The neighbours themselves: who they are, how far away, and the graph that they make."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._neighbours.nearest import BaseNeighbors, Floats


class FindsNeighbors(BaseNeighbors):
    """Shows the neighbours of rows."""

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> NDArray[np.intp] | tuple[Floats, NDArray[np.intp]]:
        """Find the nearest training rows, the nearest first; of those equally far, the first in the table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), optional
            Rows. None: the training rows, none of which is a neighbour of itself.
        n_neighbors : int, optional
            How many; None: as many as predictions ask.
        return_distance : bool, default=True
            Whether to return the distances too.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Distances, in scaled units; only if asked for.
        rows : ndarray of int of shape (n_samples, n_neighbors)
            Positions of the neighbours in the training table.
        """
        check_is_fitted(self)
        model = self.neighbors_
        k = model.counting.k if n_neighbors is None else n_neighbors
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value. Got {k!r}.")
        if k < 1:
            raise ValueError(f"Expected n_neighbors > 0. Got {k}.")
        n_others = len(model.rows) - (X is None)
        if k > n_others:
            raise ValueError(f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k} and there are {n_others}.")
        if X is None:
            rows, distance = model.nearest_others(np.arange(len(model.rows)), int(k), self._n_threads)
        else:
            rows, distance = model.nearest(model.measure.terms(self._columns(X)), int(k), self._n_threads)
        if model.row_numbers is not None:
            rows = model.row_numbers[rows].astype(np.intp)
        return (distance, rows) if return_distance else rows

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """Return who is whose neighbour, as a sparse matrix.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), optional
            Rows. None: the training rows, none of which is a neighbour of itself.
        n_neighbors : int, optional
            How many; None: as many as predictions ask.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether entries are 1 or the distance.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_samples, n_training_rows)
            A row's entries are those of its neighbours.
        """
        from scipy.sparse import csr_matrix

        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance'. Got {mode!r}.")
        distance, rows = self.kneighbors(X, n_neighbors)
        entries = np.ones(rows.size) if mode == "connectivity" else distance.ravel()
        numbers = self.neighbors_.row_numbers
        width = len(self.neighbors_.rows) if numbers is None else self._n_rows_given
        starts = np.arange(0, rows.size + 1, rows.shape[1])
        height = len(rows)
        if X is None and numbers is not None:  # rows without weight have no neighbours
            counts = np.zeros(width + 1, dtype=np.intp)
            counts[numbers + 1] = rows.shape[1]
            starts, height = np.cumsum(counts), width
        return csr_matrix((entries, rows.ravel(), starts), shape=(height, width))
