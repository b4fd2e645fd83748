"""Import of model files, whose library is recognised by their content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spinney._interchange.reading import entries
from spinney._interchange.reading.catboost import from_catboost
from spinney._interchange.reading.lightgbm import from_lightgbm
from spinney._interchange.reading.treelite import from_treelite
from spinney._interchange.reading.xgboost import from_xgboost
from spinney._model.file.container import model_file_errors, refuse

_READERS: dict[str, Callable[[bytes], Any]] = {
    "CatBoost": from_catboost,
    "treelite": from_treelite,
    "XGBoost": from_xgboost,
    "LightGBM": from_lightgbm,
}


def import_file(file: entries.FileLike) -> Any:
    """Import a model file of any supported library.

    Parameters
    ----------
    file : str, path, bytes or binary file

    Returns
    -------
    ImportedClassifier or ImportedRegressor
    """
    data, label = entries.read_bytes(file)
    with model_file_errors(label, "import", "it"):
        return _reader_of(data)(data)


def _reader_of(data: bytes) -> Callable[[bytes], Any]:
    """Return the function that reads a file."""
    library = entries.library_of(data)
    if library is not None:
        return _READERS[library]
    if entries.looks_pickled(data):
        refuse(
            "is a pickle, and loading a pickle runs code. If you trust it, load it in Python and pass the model to "
            " spinney.from_sklearn, from_xgboost and so on."
        )
    return refuse(
        "is not a supported model file. Pass JSON or UBJSON of XGBoost, text or JSON of LightGBM, or JSON of CatBoost "
        "or treelite."
    )
