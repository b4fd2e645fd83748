"""The methods by which fitted models show themselves. They only hand over to the functions of the same purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    import spinney._engine as _engine
    from spinney.inspect.explain.shap import Floats, ShapValues


class ExplainedByColumns:
    """Mixin for estimators whose predictions are sums over trees."""

    def shap_values(
        self, X: Any, *, interactions: bool = False, background: Any = None
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
        from spinney._data import read_table
        from spinney._estimator.streams import batches_of
        from spinney.inspect.explain.shap import explain, joined

        check_is_fitted(self)
        model: Any = self
        batches = batches_of(X, model.schema_)
        if batches is not None:
            return joined([explain(self, batch, interactions, background) for batch in batches])
        return explain(self, read_table(X), interactions, background)

    def _shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool
    ) -> tuple[Floats, Floats, Floats]:
        """Values without columns by output, flat values by row, column and output, and flat values of pairs."""
        model: Any = self
        sums: tuple[Floats, Floats, Floats] = model._fitted.shap_sums(
            columns, background, interactions, model._n_threads
        )
        return sums
