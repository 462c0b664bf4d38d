"""Faults of the machine (a full disk, a file that may not be opened, too little memory), each as one of our errors in a sentence.

A message has the system's own words and paths, never those of the fault itself, which may quote a row.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ldptree.errors import ConfigError, LdptreeError
from schemas.named_files import shown_path
from storage.objects.object_store import NotReached

GOES_ON = "run the same command: it continues from there"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY)
_MISPLACED = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO)
_FILES = (errno.EMFILE, errno.ENFILE)
_MEMORY = f"not enough memory. Give the process more, or close other programs, and {GOES_ON}."
_PASSING = (errno.EIO, errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ETIMEDOUT, errno.ESTALE, errno.EMFILE)
_NO_THREAD = "can't start new thread"
_NO_ROOM_FOR_A_LIBRARY = ("failed to map segment from shared object", "annot allocate memory")
_DUCKDB_MEMORY = "Out of Memory Error"


def machine_fault(fault: BaseException, work: Path | None = None) -> LdptreeError | None:
    """Return the message of a fault of the machine, with the exit code it has; None where it is another fault."""
    if _is_memory(fault):
        return LdptreeError(_MEMORY)
    if isinstance(fault, NotReached):
        return LdptreeError(
            f"{fault.filename}: {fault.strerror}. Check the network, the server and your rights there, and {GOES_ON}."
        )
    number = _number(fault)
    if number is None:
        return None
    reason, where = os.strerror(number), _place(fault, work)
    if number in _FULL:
        disk = _disk(fault, work)
        of = f" of {disk}" if disk else ""
        return LdptreeError(f"no space left on the disk{of}. Free some (`ldptree gc` helps) and {GOES_ON}.")
    if number == errno.EFBIG:
        return LdptreeError(
            f"{where}: {reason}. A limit on the size of files is set (`ulimit -f`): raise it, and {GOES_ON}."
        )
    if number in _FILES:
        return LdptreeError(f"{reason}. Raise the limit (`ulimit -n 1024`), and {GOES_ON}.")
    if number in _REFUSED:
        return ConfigError(
            f"{where}: cannot be used ({reason}). Give this user the right to read and write it, or name another one."
        )
    if number in _MISPLACED:
        return ConfigError(
            f"{where}: cannot be used ({reason}). Move away what stands there, or name another one."
        )
    return LdptreeError(f"{where}: {reason}. Check the disk or the file, and {GOES_ON}.")


def is_passing(fault: object) -> bool:
    """Return whether a fault of the machine may be over the next time."""
    return isinstance(fault, OSError) and fault.errno in _PASSING


def _number(fault: BaseException) -> int | None:
    """The system's number of a fault; DuckDB's faults of files have none, but end with the system's words."""
    if isinstance(fault, OSError):
        return fault.errno
    # Its other faults may quote a row, which may hold these words.
    if type(fault).__name__ in ("IOException", "FatalException"):
        known = (*_FULL, *_REFUSED, *_FILES, errno.EFBIG, errno.EIO)
        return next((number for number in known if os.strerror(number) in str(fault)), None)
    return None


def _is_memory(fault: BaseException) -> bool:
    if isinstance(fault, MemoryError) or (isinstance(fault, OSError) and fault.errno == errno.ENOMEM):
        return True
    text = str(fault)
    return _is_refused_library(fault) or text.startswith(_DUCKDB_MEMORY) or text == _NO_THREAD


def _is_refused_library(fault: BaseException | None) -> bool:
    """Return whether there was no memory to load a library into; who asks for it may say so in words of its own."""
    while isinstance(fault, (ImportError, OSError)):
        if str(fault).endswith(_NO_ROOM_FOR_A_LIBRARY):
            return True
        fault = fault.__cause__ or fault.__context__
    return False


def _disk(fault: BaseException, work: Path | None) -> Path | None:
    """The folder that a fault is about, if it is not in the work folder, else that one."""
    named = fault.filename if isinstance(fault, OSError) else None
    if not isinstance(named, str) or (work and Path(named).is_relative_to(work)):
        return work
    return Path(named).parent


def _place(fault: BaseException, work: Path | None) -> str:
    """The path that a fault is about, else the work folder."""
    named = fault.filename if isinstance(fault, OSError) else None
    if isinstance(named, (str, bytes, os.PathLike)):
        return shown_path(os.fsdecode(named))
    return shown_path(work) if work else "reading or writing failed"


def check_working_directory() -> None:
    """Raise ConfigError if the working directory was deleted, where every relative path starts."""
    try:
        Path.cwd()
    except OSError:
        raise ConfigError(
            "the working directory is gone (deleted or moved). Change to another one, and run the command again."
        ) from None
