"""Bytes of a model file ⇄ header and trees."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import platform
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NoReturn
from zlib import crc32

import spinney._engine as _engine
from spinney._data.csv_format import CsvFormat
from spinney._names import MODEL_FILE_MAGIC

MAX_EXPANSION = 100  # bytes of decompressed arrays per byte of a file
_SPARE_BYTES = 64 * 2**20  # of decompressed arrays that a file of any size may have
_WIDEST = 8  # bytes of a number
CHECKPOINT = "checkpoint"  # kind of a file that holds the rounds of an unfinished fit


class ModelFileError(ValueError):
    """Error for a model file, or a pickle of a model, that cannot be loaded.

    The file is damaged, not a model file, or written by a newer version of spinney; the message names the problem and
    the remedy.

    Examples
    --------
    >>> import io
    >>> import spinney
    >>> try:
    ...     spinney.load(io.BytesIO(b"not a model"))
    ... except spinney.ModelFileError as error:
    ...     print(error)
    Cannot load this model: the file is not a model file. Pass a file written by the save method of a spinney model.
    """


class _FaultError(ValueError):
    """A problem with a file, which completes the sentence "the file …"."""


def refuse(fault: str) -> NoReturn:
    """Raise the error of an unusable file; `fault` completes the sentence "the file …"."""
    raise _FaultError(fault)


@contextmanager
def model_file_errors(label: str, doing: str = "load", subject: str = "the file") -> Iterator[None]:
    """Turn errors caused by a damaged file into a ModelFileError that names the file."""
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
    if fault.endswith("."):  # it already names a remedy
        return fault
    if "upgrade" in fault:
        return f"{fault}."
    return f"{fault}. Copy it again from an intact source, or save the model again."


def to_bytes(header: dict[str, Any], trees: Sequence[_engine.Tree]) -> bytes:
    """Write a model file.

    Parameters
    ----------
    header : dict
        Entries that JSON can hold.
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
    """Read the header of a model file and locate its trees.

    Parameters
    ----------
    data : bytes
        The file.
    is_checkpoint : bool
        Whether a checkpoint is expected instead of a model.

    Returns
    -------
    header : dict
        The entries, not yet checked.
    file : ModelFile
        Reads the trees.
    """
    if not isinstance(data, bytes) or not data.startswith(MODEL_FILE_MAGIC[: max(1, len(data))]):
        refuse(_not_a_model(data))
    try:
        file = _engine.ModelFile(data)
    except ValueError as error:
        refuse(str(error))
    header = json.loads(file.header, parse_constant=_refuse_constant)
    if not isinstance(header, dict):
        refuse("is damaged: its header is not a JSON object")
    _check_expansion(header, len(data))
    if is_checkpoint != (header.get("kind") == CHECKPOINT):
        model = "is a model. Name another file for the checkpoint."
        refuse(model if is_checkpoint else "is a checkpoint of a fit. Pass it to fit, as checkpoint.")
    return header, file


def _check_expansion(header: dict[str, Any], n_bytes: int) -> None:
    """Refuse a header whose arrays would take far more memory than the file, before any of them is decompressed."""
    entries: list[Any] = [header]
    claimed = 0
    while entries:
        entry = entries.pop()
        if isinstance(entry, dict):
            if isinstance(shape := entry.get("shape"), list) and "data" in entry:
                is_narrow = entry.get("type") in ("bool", "uint8")
                claimed += (1 if is_narrow else _WIDEST) * math.prod(max(n, 0) for n in shape if type(n) is int)
            entries += entry.values()
        elif isinstance(entry, list):
            entries += entry
    if claimed > MAX_EXPANSION * n_bytes + _SPARE_BYTES:
        refuse(f"is damaged: its arrays claim {claimed:,} bytes, which a file of {n_bytes:,} bytes does not hold")


def with_csv_format(header: dict[str, Any], format_: CsvFormat | None) -> dict[str, Any]:
    """Return a header that also states how the CSV file of the training table was read, where that is unusual."""
    remembered = {} if format_ is None else format_.to_dict()
    return header | {"csv": remembered} if remembered else header


def csv_format_of(header: dict[str, Any]) -> CsvFormat | None:
    """Return how the CSV file of the training table was read; None if nothing is remembered."""
    if "csv" not in header:
        return None
    try:
        return CsvFormat.from_dict(header["csv"])
    except ValueError as error:
        refuse(f"is damaged: {error}")


def _not_a_model(data: bytes) -> str:
    if data == b"":
        return "is empty"
    if data[:1] == b"\x80" or data[:2] in (b"\x1f\x8b", b"x\x9c"):
        return "is not a model file but looks like a pickle. Load it with pickle or joblib, if you trust its origin."
    return "is not a model file. Pass a file written by the save method of a spinney model."


def _refuse_constant(name: str) -> NoReturn:
    refuse(f"is damaged: its header holds {name}")


def field(header: dict[str, Any], name: str, kind: type) -> Any:
    """Return an entry of a header, or of a dict in it; refuse it if it has the wrong type."""
    value = header.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        refuse(f"is damaged: its header lacks a usable {name!r}")
    return value


Target = str | os.PathLike[str] | BinaryIO


def label_of(file: Target) -> str:
    """Return the name of a file for messages."""
    return repr(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else "this model"


def read_file(file: Target) -> bytes:
    """Read a model file; of any other file, the first bytes."""
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
    """Write a file; an existing file at a path is replaced only once the new one is complete."""
    if isinstance(file, (str, os.PathLike)):
        _write_path(os.path.realpath(file), data)  # symbolic links are followed, not replaced
    elif not hasattr(file, "write"):
        raise TypeError(f"file must be a path or a file opened in binary mode, not {type(file).__name__}.")
    elif hasattr(file, "encoding"):
        raise TypeError("The file is opened in text mode. Open it in binary mode: open(path, 'wb').")
    else:
        _write_all(file, data)


def _write_all(file: BinaryIO, data: bytes) -> None:
    """Write to an open file; unbuffered files may accept a part at a time."""
    written = file.write(data)
    while isinstance(written, int) and 0 < written < len(data):
        data = data[written:]
        written = file.write(data)
    if written == 0 or (written is None and isinstance(file, io.RawIOBase)):  # other files may return None on success
        raise OSError(f"The file accepts no more data: the last {len(data):,} bytes of the model were not written.")


def _write_path(path: str, data: bytes) -> None:
    present = os.stat(path) if os.path.exists(path) else None
    if present is not None and not stat.S_ISREG(present.st_mode):
        with open(path, "wb") as opened:  # raises for a directory; a device or pipe must not be replaced
            opened.write(data)
        return
    folder, name = os.path.split(path)
    _remove_leftovers(folder, name)
    temporary = os.path.join(folder, f"{_part_prefix(name)}{os.getpid()}.{secrets.token_hex(8)}.part")
    try:
        mode = 0o666 if present is None else stat.S_IMODE(present.st_mode)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
            opened.write(data)
            opened.flush()
            if present is not None:
                os.fchmod(opened.fileno(), mode)  # regardless of the umask
            os.fsync(opened.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise _named(error, path, len(data)) from error
        raise
    _sync_folder(folder)


def _part_prefix(name: str) -> str:
    """Return the prefix of temporary files that this machine, or container, writes next to a file."""
    try:
        pid_namespace = os.readlink("/proc/self/ns/pid")  # containers number their processes separately
    except OSError:
        pid_namespace = ""
    return f".{name[:100]}.{crc32(f'{platform.node()} {pid_namespace}'.encode()):08x}-"


def _remove_leftovers(folder: str, name: str) -> None:
    """Remove temporary files of processes that ended during a save to the same path."""
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
    """Return the error with the path that the caller passed."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        sentence = f"{error.strerror}: the model's {n_bytes:,} bytes were not saved, and the previous file is unchanged"
        return OSError(error.errno, sentence, path)
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(error.errno, "The folder to save the model in does not exist", os.path.dirname(path))
    return type(error)(error.errno, error.strerror, path)


def _sync_folder(folder: str) -> None:
    """Flush the folder, so that the new name survives a crash; file systems that cannot are ignored."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    with suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)
