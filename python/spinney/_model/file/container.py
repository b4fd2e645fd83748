"""Bytes of a model file ⇄ header and trees."""

from __future__ import annotations

import errno
import io
import json
import os
import platform
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NoReturn
from zlib import crc32

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
def model_file_errors(label: str, doing: str = "load", subject: str = "the file") -> Iterator[None]:
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


Target = str | os.PathLike[str] | BinaryIO


def label_of(file: Target) -> str:
    """Name a file in a message."""
    return repr(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else "this model"


def read_file(file: Target) -> bytes:
    """Read all of a file, or only its beginning if that is not a model file's."""
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as opened:
            return _read_model(opened)
    if not hasattr(file, "read"):
        raise TypeError(f"file must be a path or a file opened in binary mode, not {type(file).__name__}.")
    return _read_model(file)


def _read_model(file: BinaryIO) -> bytes:
    beginning = file.read(len(MODEL_FILE_MAGIC))
    if not isinstance(beginning, bytes):
        raise TypeError("The file is opened in text mode. Open it in binary mode: open(path, 'rb').")
    return beginning + file.read() if beginning == MODEL_FILE_MAGIC else beginning


def write_file(file: Target, data: bytes) -> None:
    """Write a file; at a path, a file that is there already stays as it is until the new one is complete."""
    if isinstance(file, (str, os.PathLike)):
        _write_path(os.path.realpath(file), data)  # a link stays a link
    elif not hasattr(file, "write"):
        raise TypeError(f"file must be a path or a file opened in binary mode, not {type(file).__name__}.")
    elif hasattr(file, "encoding"):
        raise TypeError("The file is opened in text mode. Open it in binary mode: open(path, 'wb').")
    else:
        _write_all(file, data)


def _write_all(file: BinaryIO, data: bytes) -> None:
    """Write to an open file, which may take a part at a time, as files without a buffer do."""
    written = file.write(data)
    while isinstance(written, int) and 0 < written < len(data):
        data = data[written:]
        written = file.write(data)
    if written == 0 or (written is None and isinstance(file, io.RawIOBase)):  # others return None if all is well
        raise OSError(f"The file takes no more: the last {len(data):,} bytes of the model are not written.")


def _write_path(path: str, data: bytes) -> None:
    present = os.stat(path) if os.path.exists(path) else None
    if present is not None and not stat.S_ISREG(present.st_mode):
        with open(path, "wb") as opened:  # a directory is refused here; a device or pipe must not be replaced
            opened.write(data)
        return
    folder, name = os.path.split(path)
    _sweep(folder, name)
    beside = os.path.join(folder, f"{_part_prefix(name)}{os.getpid()}.{secrets.token_hex(8)}.part")
    try:
        mode = 0o666 if present is None else stat.S_IMODE(present.st_mode)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
            opened.write(data)
            opened.flush()
            if present is not None:
                os.fchmod(opened.fileno(), mode)  # whatever the umask says
            os.fsync(opened.fileno())
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(beside)
        if isinstance(error, OSError):
            raise _named(error, path, len(data)) from error
        raise
    _sync_folder(folder)


def _part_prefix(name: str) -> str:
    """Return how names of unfinished files begin that this machine, or container, writes beside a file."""
    try:
        numbering = os.readlink("/proc/self/ns/pid")  # of processes: containers have their own
    except OSError:
        numbering = ""
    return f".{name[:100]}.{crc32(f'{platform.node()} {numbering}'.encode()):08x}-"


def _sweep(folder: str, name: str) -> None:
    """Remove what processes that ended in the middle of a save to the same path have left."""
    prefix = _part_prefix(name)
    with suppress(OSError):
        for found in os.listdir(folder or "."):
            if found.startswith(prefix) and found.endswith(".part"):
                number = found[len(prefix) :].partition(".")[0]
                if number.isdecimal() and not _is_alive(int(number)):
                    with suppress(OSError):
                        os.unlink(os.path.join(folder, found))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _named(error: OSError, path: str, n_bytes: int) -> OSError:
    """Return the error with the name that the caller knows."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        sentence = f"{error.strerror}: the model's {n_bytes:,} bytes were not saved, and what was there before still is"
        return OSError(error.errno, sentence, path)
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(error.errno, "There is no such folder to save the model in", os.path.dirname(path))
    return type(error)(error.errno, error.strerror, path)


def _sync_folder(folder: str) -> None:
    """Flush the folder, so that the new name survives a crash; some file systems cannot, which is no error."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    with suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)
