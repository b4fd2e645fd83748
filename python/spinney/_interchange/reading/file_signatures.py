"""Whose model file it is, by what stands in it; and what cannot be one."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.exceptions import NotFittedError

from spinney._interchange.reading.ubjson import is_ubjson
from spinney._model.file.container import refuse


def _is_object(data: bytes) -> bool:
    return data.lstrip()[:1] == b"{"


def _is_catboost(data: bytes) -> bool:
    return data[:4] == b"CBM1" or (_is_object(data) and b'"features_info"' in data)


def _is_treelite(data: bytes) -> bool:
    return _is_object(data) and b'"leaf_output_type"' in data


def _is_xgboost(data: bytes) -> bool:
    return b"learner" in data[:64] if is_ubjson(data) else _is_object(data) and b'"learner_model_param"' in data


def _is_lightgbm(data: bytes) -> bool:
    if not _is_object(data):
        return data[:5].split() == [b"tree"]
    return b'"tree_info"' in data and not _is_xgboost(data)  # which has such an entry too


_SIGNS: dict[str, Callable[[bytes], bool]] = {
    "CatBoost": _is_catboost,
    "treelite": _is_treelite,
    "XGBoost": _is_xgboost,
    "LightGBM": _is_lightgbm,
}


def library_of(data: bytes) -> str | None:
    """Return the library that seems to have written a file; None, if none of those that are known."""
    return next((library for library, is_its in _SIGNS.items() if is_its(data)), None)


def looks_pickled(data: bytes) -> bool:
    """Whether bytes look like a pickle, or like a compressed one."""
    return data[:1] == b"\x80" or data[:2] in (b"\x1f\x8b", b"x\x9c", b"x\x01", b"BZ") or data[:3] == b"\xfd7z"


def expect(data: bytes, library: str) -> None:
    """Refuse a pickle, since to read it is to run it, and the file of another library."""
    if looks_pickled(data):
        refuse(
            f"is a pickle, and to read one is to run the code in it. If you trust it, load it with {library} and pass "
            f"the object to spinney.from_{library.lower()}."
        )
    other = None if _SIGNS[library](data) else library_of(data)
    if other is not None:
        refuse(f"is a model of {other}. Use spinney.from_{other.lower()}.")


def refuse_unfitted(model: object) -> None:
    """Refuse an estimator that says it is not fitted."""
    is_fitted = getattr(model, "__sklearn_is_fitted__", None) or getattr(model, "is_fitted", None)
    if callable(is_fitted) and not is_fitted():
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet. Call its fit first, then import it.")
