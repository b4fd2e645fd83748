"""The methods by which one fitted tree shows itself. They only hand over to the functions of the same purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from spinney._estimator.table_estimator import TableEstimator

if TYPE_CHECKING:
    from spinney.inspect.text.rule_list import RuleList


class ReadableTree(TableEstimator):
    """Mixin for estimators that are one tree."""

    def export_text(self, **options: Any) -> str:
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
        from spinney.inspect.text.text import export_text

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
        from spinney.inspect.text.rule_list import rules

        return rules(self, **options)

    def explain_row(self, row: Any, **options: Any) -> str:
        """Say in words why the tree predicts what it predicts for one row.

        Parameters
        ----------
        row : mapping, sequence, Series, or table with one row
            Values by column name, or in column order.
        **options
            As for `spinney.explain_row`.

        Returns
        -------
        str
            The conditions that the row meets, and what follows.
        """
        from spinney.inspect.text.text import explain_row

        return explain_row(self, row, **options)

    # ---- notebooks: scikit-learn's diagram before fit, the tree itself after it -----------------------

    def _html_repr(self) -> str:
        from sklearn.utils import estimator_html_repr

        try:
            check_is_fitted(self)
        except NotFittedError:
            return str(estimator_html_repr(self))
        from spinney.inspect.draw.svg import notebook_html

        return notebook_html(self)

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        from sklearn import get_config

        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._html_repr()
        return bundle
