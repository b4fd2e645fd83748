"""One tree of a boosted model, for reading and drawing."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney._tree.regressor import DecisionTreeRegressor


class BoostedTree(DecisionTreeRegressor):
    """One step of a boosted model: a tree that predicts what it adds to the score, the learning rate included.

    It is made by ``model.estimators_`` and read like any decision tree: by `export_text`, `plot_tree`, `to_frame` and
    so on. Its impurity is minus the loss that a node's step saves, twice and per unit of weight, so that the gain of a
    split is what the split saves beyond it.
    """

    def fit(self, X: object, y: object, sample_weight: object = None, **more: object) -> NoReturn:
        """Refuse: the tree is part of a model."""
        raise TypeError("This tree is part of a boosted model. Fit the model, or a decision tree of its own.")

    def predict(self, X: object, **more: Any) -> NDArray[np.float64]:
        """Predict what the tree adds to the score of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            What it adds.
        """
        if not self.tree_.has_lines:
            return super().predict(X, **more)
        return self.tree_.predictions(self._columns(X), self._n_threads)[:, 0]
