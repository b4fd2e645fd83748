"""Rows unlike those that a boosted model has learned from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._data import read_table
from spinney._learn.abstaining import MayAbstain
from spinney._learn.support import REASONS, ColumnRanges, Support

if TYPE_CHECKING:
    from spinney._data import Schema


class KnowsSupport(MayAbstain):
    """Mixin for boosted models."""

    if TYPE_CHECKING:
        schema_: Schema

    def predict_support(self, X: Any) -> Support:
        """Whether each row is like those that the model has learned from.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows. Categories that did not occur in training are reported, not refused, whatever `unseen` says.

        Returns
        -------
        Support
            The columns in which a row lies outside what was seen: numbers beyond the range, categories that did not
            occur, values missing where none ever was. A value outside a declared order counts as missing. Prints as
            text; has `to_frame()`.
        """
        check_is_fitted(self)
        ranges: ColumnRanges | None = getattr(self, "_ranges", None)
        if ranges is None:
            raise AttributeError(
                "This model was saved by a version that did not keep the ranges of columns. Fit it again."
            )
        inputs = self.schema_.encode_inputs(read_table(X), unseen="other", estimator=type(self).__name__)
        return Support(None, np.array(REASONS)[ranges.reasons(inputs)], list(self.schema_.names))
