"""Class labels in their declared order; rows may lack one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.arguments import given_array, masked_array
from spinney._estimator.target import check_length, is_missing_label, read_classes


def read_labels(y: Any, n_rows: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return codes, -1 where there is no label, and the labels, in their declared order or else sorted."""
    declared = _declared_order(y)
    masked = masked_array(y)
    labels = given_array(y if masked is None else np.ma.getdata(masked), "y").astype(object)
    if masked is not None:
        labels[np.ma.getmaskarray(masked)] = None
    if labels.ndim > 2 or (labels.ndim == 2 and labels.shape[1] != 1):
        raise ValueError(f"y must hold one label per row; it has shape {labels.shape}. Fit one tree per output.")
    labels = labels.reshape(-1)
    check_length(len(labels), n_rows)
    missing = np.array([is_missing_label(label) for label in labels], dtype=bool)
    if missing.all():
        raise ValueError("y has no labels: every value is missing.")
    present = np.array(labels[~missing].tolist())
    if present.dtype.kind in "US":
        present = labels[~missing]
    target = read_classes(present, len(present))
    codes = np.full(n_rows, -1, dtype=np.int32)
    codes[~missing] = target.codes[:, 0]
    classes = target.classes[0]
    if declared is None:
        return codes, classes
    known = classes.tolist()
    order = [known.index(label) for label in declared if label in known]
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    codes[~missing] = rank[codes[~missing]]
    return codes, classes[order]


def _declared_order(y: Any) -> list[Any] | None:
    """Categories of a pandas categorical or a polars enumeration."""
    categories = getattr(getattr(y, "dtype", None), "categories", None)
    return None if categories is None else list(categories)
