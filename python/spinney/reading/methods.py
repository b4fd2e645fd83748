"""The methods by which fitted models show themselves. They only hand over to the functions of the same purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from spinney import _engine
    from spinney.reading.rule_list import RuleList
    from spinney.reading.shap import Floats, ShapValues


class ReadableTree:
    """Mixin for estimators that are one tree."""

    def to_text(self, **options: Any) -> str:
        """Write the tree as indented text.

        Parameters
        ----------
        **options
            As for `spinney.export_text`.

        Returns
        -------
        str
            The tree, a line per node.
        """
        from spinney.reading.text import export_text

        return export_text(self, **options)

    def rules(self, **options: Any) -> RuleList:
        """Turn the tree into logical rules, one per leaf.

        Parameters
        ----------
        **options
            As for `spinney.rules`.

        Returns
        -------
        RuleList
            A list of `Rule`.
        """
        from spinney.reading.rule_list import rules

        return rules(self, **options)

    def decision_path_text(self, row: Any) -> str:
        """Say in words why the tree predicts what it predicts for one row.

        Parameters
        ----------
        row : mapping, sequence, Series, or table with one row
            Values by column name, or in column order.

        Returns
        -------
        str
            As `spinney.explain_row`.
        """
        from spinney.reading.text import explain_row

        return explain_row(self, row)

    # ---- notebooks: scikit-learn's diagram before fit, the tree itself after it -----------------------

    def _html_repr(self) -> str:
        from sklearn.utils import estimator_html_repr

        try:
            check_is_fitted(self)
        except NotFittedError:
            return str(estimator_html_repr(self))
        from spinney.drawing.svg import notebook_html

        return notebook_html(self)

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        from sklearn import get_config

        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._html_repr()
        return bundle


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
        from spinney.reading.shap import explain

        check_is_fitted(self)
        return explain(self, read_table(X), interactions, background)

    def _shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool
    ) -> tuple[Floats, Floats, Floats]:
        """Values without columns by output, flat values by row, column and output, and flat values of pairs."""
        from spinney.reading.shap import sums_of

        fitted, n_threads = self._fitted, self._n_threads  # type: ignore[attr-defined]
        return sums_of(fitted, columns, background, interactions, n_threads)
