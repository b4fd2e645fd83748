"""Explanations that fitted models offer as methods: a family takes them into its class body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.utils.validation import check_is_fitted

from spinney._data import read_table
from spinney._data.types import TableLike
from spinney._estimator.fit_inputs import batches_of
from spinney._estimator.table_estimator import TableEstimator

if TYPE_CHECKING:
    from spinney.inspect.explain.shap import ShapValues


def shap_values(
    model: TableEstimator, X: TableLike, *, interactions: bool = False, background: object = None
) -> ShapValues | list[ShapValues]:
    """Part each prediction among the columns: Shapley values by TreeSHAP.

    Starting from the base value, the mean prediction over the training weight, each column adds its value; together
    they are the prediction (for classifiers, the class shares). Where a tree asks for a column that is not known
    yet, both ways are taken in proportion to the training weight. Where a surrogate decides because the value of
    the split's own column is missing, its decision counts as that column's.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    interactions : bool, default=False
        Also compute what pairs of columns add together: n_features² numbers per row.
    background : table of shape (n_background, n_features), optional
        Rows that columns take their values from while they are not known (interventional values); the result is
        the mean over these rows, the base value their mean prediction. The time grows with their number: some
        hundred typical rows do. None: both ways by training weight, as above.

    Returns
    -------
    ShapValues
        Has `values`, `base_value` and, if asked for, `interactions`; a list of these, one per output, for a
        classifier with several outputs.
    """
    from spinney.inspect.explain.shap import explain, joined

    check_is_fitted(model)
    batches = batches_of(X, model.schema_)
    if batches is not None:
        return joined([explain(model, batch, interactions, background) for batch in batches])
    return explain(model, read_table(X), interactions, background)
