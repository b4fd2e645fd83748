"""Bytes ⇄ files, so that a file is either the old one or the new one, never half of one."""

from __future__ import annotations

import errno
import io
import os
import platform
import secrets
import stat
from contextlib import suppress
from typing import BinaryIO
from zlib import crc32

from spinney._names import MODEL_FILE_MAGIC

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
