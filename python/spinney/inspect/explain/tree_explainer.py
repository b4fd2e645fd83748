"""The interface of `shap.TreeExplainer` for fitted models of spinney."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._data.types import Floats, TableLike
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.model import ModelOfTrees
from spinney.inspect.explain.shap import ShapValues

if TYPE_CHECKING:
    from shap import Explanation

Perturbation = Literal["auto", "interventional", "tree_path_dependent"]


class TreeExplainer:
    """SHAP values with the signature and the results of ``shap.TreeExplainer``.

    The package shap supports a fixed list of libraries. This class replaces its ``TreeExplainer`` for models of
    spinney: arrays have the same shapes, and calling an explainer returns a ``shap.Explanation``, which all plots of
    shap accept. Only such a call needs the package shap; `shap_values` and `shap_interaction_values` do not.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, gradient boosting model or `AdaBoostClassifier` with one output, or an imported model.
    data : table of shape (n_background, n_features), optional
        Rows that supply the values of unknown columns (interventional values). None: at a split on an unknown column,
        both branches are followed, weighted by their training rows.
    model_output : {"raw"}, default="raw"
        What is explained: numbers or class probabilities of trees and forests; scores of boosting, such as log-odds.
    feature_perturbation : {"auto", "interventional", "tree_path_dependent"}, default="auto"
        "interventional" needs `data`; "tree_path_dependent" does not use it; "auto" is "interventional" if `data` is
        passed.
    feature_names : list of str, optional
        Column names in the ``shap.Explanation``. None: those of the model.
    approximate : bool, default=False
        True is not supported: values are always exact.
    link, linearize_link : optional
        Not used; accepted for compatibility with shap, which does not use them either.

    Attributes
    ----------
    expected_value : ndarray of shape (n_outputs,)
        The base value: the prediction when no column is known.

    Examples
    --------
    >>> import spinney
    >>> X, y = [[1, 0], [2, 0], [3, 1], [4, 1]], [10, 20, 30, 40]
    >>> explainer = spinney.TreeExplainer(spinney.DecisionTreeRegressor().fit(X, y))
    >>> explainer.expected_value
    array([25.])
    >>> explainer.shap_values(X).sum(axis=1) + explainer.expected_value
    array([10., 20., 30., 40.])
    """

    def __init__(
        self,
        model: Any,
        data: TableLike | None = None,
        model_output: Literal["raw"] = "raw",
        feature_perturbation: Perturbation = "auto",
        feature_names: list[str] | None = None,
        approximate: bool = False,
        link: object = None,
        linearize_link: object = None,
    ) -> None:
        if not hasattr(model, "shap_values"):
            raise TypeError(
                f"{type(model).__name__} has no shap_values. Pass a tree, a forest, gradient boosting or AdaBoost of "
                "spinney; models of other libraries go to shap.TreeExplainer."
            )
        check_is_fitted(model)
        if not isinstance(model, TableEstimator) or not isinstance(model._fitted, ModelOfTrees):
            raise TypeError(
                f"TreeExplainer does not support {type(model).__name__}. Pass a tree, a forest, gradient boosting, "
                "AdaBoostClassifier or an imported model, or call model.shap_values(X) instead."
            )
        _refuse_approximate(approximate)
        if model_output != "raw":
            raise ValueError(
                f"model_output={model_output!r} is not supported. Use 'raw'; the response of model.shap_values(X) has "
                "the probabilities that belong to scores."
            )
        if feature_perturbation not in ("auto", "interventional", "tree_path_dependent"):
            raise ValueError(
                "feature_perturbation must be 'auto', 'interventional' or 'tree_path_dependent', not "
                f"{feature_perturbation!r}."
            )
        if feature_perturbation == "interventional" and data is None:
            raise ValueError("feature_perturbation='interventional' needs background rows. Pass them as data.")
        if feature_perturbation == "auto":
            feature_perturbation = "tree_path_dependent" if data is None else "interventional"
        self.model, self.data, self.model_output = model, data, model_output
        self.feature_perturbation, self.data_feature_names = feature_perturbation, feature_names
        self.expected_value = np.atleast_1d(self._explained(_missing_row(model), False).base_value)

    def shap_values(
        self,
        X: TableLike,
        y: object = None,
        tree_limit: int | None = None,
        approximate: bool = False,
        check_additivity: bool = True,
    ) -> Floats:
        """Compute the contribution of each column to each prediction.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y, tree_limit, approximate : optional
            Not supported: explanations of a loss, explanations of the first trees alone, and approximations.
        check_additivity : bool, default=True
            Not used: values add up to the prediction by construction.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_outputs)
            With `expected_value`, they add up to the prediction.
        """
        _refuse(y, tree_limit, approximate)
        return self._explained(X, False).values

    def shap_interaction_values(self, X: TableLike, y: object = None, tree_limit: int | None = None) -> Floats:
        """Compute the interaction of each pair of columns, halved between (i, j) and (j, i), and main effects (i, i).

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y, tree_limit : optional
            Not supported: explanations of a loss, and of the first trees alone.

        Returns
        -------
        ndarray of shape (n_samples, n_features, n_features) or (n_samples, n_features, n_features, n_outputs)
            Row i of a matrix adds up to the value of column i.
        """
        _refuse(y, tree_limit, False)
        found = self._explained(X, True).interactions
        assert found is not None
        return found

    def __call__(
        self,
        X: TableLike,
        y: object = None,
        interactions: bool = False,
        check_additivity: bool = True,
        approximate: bool = False,
    ) -> Explanation:
        """Explain rows as a ``shap.Explanation``, for the plots of shap.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        interactions : bool, default=False
            Whether to explain by interactions of pairs of columns.
        y, approximate : optional
            Not supported: explanations of a loss, and approximations.
        check_additivity : bool, default=True
            Not used: values add up to the prediction by construction.

        Returns
        -------
        shap.Explanation
            Values, base values, rows and names.
        """
        _refuse(y, None, approximate)
        explained = self._explained(X, interactions)
        explanation = explained.to_explanation()
        if self.data_feature_names is not None:
            explanation.feature_names = list(self.data_feature_names)
        if interactions:
            explanation.values = explained.interactions
        return explanation

    def _explained(self, X: TableLike, interactions: bool) -> ShapValues:
        background = self.data if self.feature_perturbation == "interventional" else None
        explained = self.model.shap_values(X, interactions=interactions, background=background)
        if not isinstance(explained, ShapValues):
            raise ValueError(
                "TreeExplainer explains one output, and this model has several. Use model.shap_values(X), a list with "
                "the values of each."
            )
        return explained


def _missing_row(model: Any) -> TableLike:
    """Return a row of missing values for the base value, which does not depend on the row."""
    names = list(model.schema_.names)
    if not model.schema_.has_names:
        return np.full((1, len(names)), np.nan)
    return {name: [None] for name in names}


def _refuse(y: object, tree_limit: int | None, approximate: bool) -> None:
    _refuse_approximate(approximate)
    if y is not None:
        raise ValueError("y is for explanations of the loss, which are not supported. Leave it out.")
    if tree_limit not in (None, -1):
        raise ValueError(f"tree_limit={tree_limit} is not supported: all trees are explained. Leave it out.")


def _refuse_approximate(approximate: object) -> None:
    if approximate is True:
        raise ValueError("approximate=True is not supported: values are exact and fast. Leave it out.")
