"""Bytes of a model file ⇄ header and trees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import spinney._engine as _engine
from spinney._names import MODEL_FILE_MAGIC

CHECKPOINT = "checkpoint"  # the kind of a file that holds rounds of a fit, and no model yet


class ModelFileError(ValueError):
    """A model file, or a pickle of a model, that cannot be used.

    It is damaged, cut short, not a model file at all, or written by a newer spinney; the message says which and what
    to do.

    Examples
    --------
    >>> import io
    >>> import spinney
    >>> try:
    ...     spinney.load(io.BytesIO(b"not a model"))
    ... except spinney.ModelFileError as error:
    ...     print(error)
    Cannot load this model: the file is not a model file. Pass what the save method of a spinney model has written.
    """


class _FaultError(ValueError):
    """What is wrong with a file, as words that follow "the file "."""


def refuse(fault: str) -> NoReturn:
    """Say what is wrong with the file at hand, in words that follow "the file "."""
    raise _FaultError(fault)


@contextmanager
def faults_named(label: str, doing: str = "load", subject: str = "the file") -> Iterator[None]:
    """Turn whatever a broken file makes fail inside into a ModelFileError that names the file."""
    try:
        yield
    except ModelFileError:
        raise
    except _FaultError as error:
        raise ModelFileError(f"Cannot {doing} {label}: {subject} {_with_advice(str(error))}") from None
    except (ValueError, TypeError, OverflowError, RecursionError, LookupError, AttributeError, AssertionError) as error:
        fault = _with_advice(f"is damaged: {str(error).rstrip('.')}")
        raise ModelFileError(f"Cannot {doing} {label}: {subject} {fault}") from error


def _with_advice(fault: str) -> str:
    if fault.endswith("."):  # it says what to do itself
        return fault
    if "upgrade" in fault:
        return f"{fault}."
    return f"{fault}. Copy it again from where it is whole, or save the model again."


def to_bytes(header: dict[str, Any], trees: Sequence[_engine.Tree]) -> bytes:
    """Write a model file.

    Parameters
    ----------
    header : dict
        What JSON can hold.
    trees : sequence of Tree
        The engine's trees.

    Returns
    -------
    bytes
        The file.
    """
    text = json.dumps(header, allow_nan=False, separators=(",", ":"))
    return _engine.write_model_file(text.encode("ascii"), list(trees))


def from_bytes(data: bytes, is_checkpoint: bool = False) -> tuple[dict[str, Any], _engine.ModelFile]:
    """Read a model file as far as it can be without knowing what is in it.

    Parameters
    ----------
    data : bytes
        The file.
    is_checkpoint : bool
        Whether it is to hold rounds of a fit, and not a model.

    Returns
    -------
    header : dict
        As it was given to `to_bytes`, if the file is sound; to be checked.
    file : ModelFile
        Gives the trees.
    """
    if not isinstance(data, bytes) or not data.startswith(MODEL_FILE_MAGIC[: max(1, len(data))]):
        refuse(_not_a_model(data))
    try:
        file = _engine.ModelFile(data)
    except ValueError as error:
        refuse(str(error))
    header = json.loads(file.header, parse_constant=_refuse_constant)
    if not isinstance(header, dict):
        refuse("is damaged: its header is not a table of names and values")
    if is_checkpoint != (header.get("kind") == CHECKPOINT):
        model = "is a model. Name another file for the checkpoint."
        refuse(model if is_checkpoint else "keeps the rounds of a fit. Pass it to fit, as checkpoint.")
    return header, file


def _not_a_model(data: bytes) -> str:
    if data == b"":
        return "is empty"
    if data[:1] == b"\x80" or data[:2] in (b"\x1f\x8b", b"x\x9c"):
        return "is not a model file but looks like a pickle. Load it with pickle or joblib, if you trust its origin."
    return "is not a model file. Pass what the save method of a spinney model has written."


def _refuse_constant(name: str) -> NoReturn:
    refuse(f"is damaged: its header holds {name}")


def field(header: dict[str, Any], name: str, kind: type) -> Any:
    """Return an entry of a header or of a dict in it, if it has the right type."""
    value = header.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        refuse(f"is damaged: its header lacks a usable {name!r}")
    return value
