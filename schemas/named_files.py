"""Say what a named path is if it is no file to read or write. The contents of files are not known here.

A pipe or a device may never end, and a write that renames its result would replace it: only regular files are read and written.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from ldptree.errors import ConfigError

LONGEST_SHOWN = 200
"""Characters of a path that a message shows."""
BUCKETS = ("s3://", "gs://", "az://")
"""How the address of an object in a bucket begins."""
SCHEME = "|".join(scheme.removesuffix("://") for scheme in BUCKETS)
"""What stands before the colon, as a pattern."""
IN_BUCKET = r"[A-Za-z0-9][\w.-]*(?:/[^/,?#%\\\s]+)*/*"
"""Pattern of what follows. It excludes all that another reader of addresses would take for a port, a key, a query or a
fragment, as two prefixes could then be the same.
"""
_LOST_SLASH = re.compile(r"((?:^|\b(?:holders|curator)=)[A-Za-z][\w+.-]*:)/+")
MOST_DOCUMENT = 64 << 20
"""Bytes of a file of JSON, which is read whole."""
A_FOLDER = "a folder"
NO_SUCH_FILE = "no such file"
NO_SUCH_FOLDER = "no such folder"
_KINDS = {
    stat.S_IFDIR: A_FOLDER,
    stat.S_IFIFO: "a pipe, and no file",
    stat.S_IFSOCK: "a socket, and no file",
    stat.S_IFCHR: "a device, and no file",
    stat.S_IFBLK: "a device, and no file",
}


def shown_path(path: str | Path) -> str:
    """Return a path for messages, without a long one's middle and with the slash that an address lost to Path."""
    text = _LOST_SLASH.sub(r"\1//", str(path))
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"{text[: LONGEST_SHOWN // 2]}...{text[-LONGEST_SHOWN // 4 :]}"


def path_fault(path: Path) -> str | None:
    """Say why `path` names nothing that can be looked at; None where it stands."""
    try:
        path.stat()
    except ValueError:
        return "the path has a NUL character in it"
    except FileNotFoundError:
        return NO_SUCH_FILE
    except OSError as fault:
        return f"cannot be read ({os.strerror(fault.errno or 0)})"
    return None


def read_fault(path: Path, most_bytes: float = math.inf) -> str | None:
    """Say why `path` is no file of at most `most_bytes` that can be read, or return None if it is one."""
    if (fault := path_fault(path)) is not None:
        return fault
    status = path.stat()
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        return _KINDS.get(kind, "no file")
    if status.st_size > most_bytes:
        return f"{status.st_size >> 20:,} MiB are more than such a file has"
    return None if os.access(path, os.R_OK) else f"cannot be read ({os.strerror(errno.EACCES)})"


def folder_fault(path: Path) -> str | None:
    """Say why `path` is no folder that can be looked into; None where it is one."""
    if (fault := path_fault(path)) is not None:
        return fault.replace(NO_SUCH_FILE, NO_SUCH_FOLDER)
    if not path.is_dir():
        return "that is a file" if path.is_file() else "no folder"
    return None if os.access(path, os.R_OK | os.X_OK) else f"cannot be read ({os.strerror(errno.EACCES)})"


def write_fault(path: Path) -> str | None:
    """Say why no file can be written at `path`; None where one stands, or may be made in a folder that does."""
    fault = path_fault(path)
    if fault is None:
        kind = stat.S_IFMT(path.stat().st_mode)
        return None if kind == stat.S_IFREG else _KINDS.get(kind, "no file")
    if fault != NO_SUCH_FILE:
        return fault.replace("cannot be read", "cannot be written")
    return None if path.parent.is_dir() else f"there is no folder {shown_path(path.parent)}"


def make_folder(path: Path) -> None:
    """Make a folder and those above it, where they are not there. Raises OSError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except RecursionError:  # one call for each folder above
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG)) from None


def check_output(path: Path, option: str) -> None:
    """Raises ConfigError, with the `option` that named `path`, where no file can be written there."""
    if (fault := write_fault(path)) is not None:
        raise ConfigError(f"{option} {shown_path(path)}: {fault}. Name a file.")


@contextlib.contextmanager
def written_whole(path: Path, option: str) -> Iterator[Path]:
    """Yield a path beside `path` to write to. In the end it takes the place of `path`, and after a fault it is gone.

    Raises ConfigError, with the `option` that named `path`, where that is no file that can be written.
    """
    check_output(path, option)
    target = path.resolve()  # where a link leads: the link itself stays
    aside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        yield aside
        aside.replace(target)
    except OSError as refusal:
        raise ConfigError(f"{option} {shown_path(path)}: cannot be written ({_reason(refusal)}).") from None
    finally:
        with contextlib.suppress(OSError):  # where it could not be made, it need not go
            aside.unlink(missing_ok=True)


@contextlib.contextmanager
def folder_written_whole(path: Path, option: str) -> Iterator[Path]:
    """Yield a folder beside `path` to write in. In the end it takes the place of `path`, which may be an empty folder,
    and after a fault it is gone. Raises ConfigError, with the `option` that named `path`.
    """
    place = f"{option} {shown_path(path)}"
    fault = folder_fault(path)
    if fault is None and any(path.iterdir()):
        fault = "is not empty. Name a new folder"
    if fault not in (None, NO_SUCH_FOLDER):
        raise ConfigError(f"{place}: {fault}.")
    target = path.absolute()
    aside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        make_folder(target.parent)
        aside.mkdir()
        yield aside
        aside.replace(target)
    except OSError as refusal:
        raise ConfigError(f"{place}: cannot be written ({_reason(refusal)}).") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _reason(fault: OSError) -> str:
    """Return the reason in the system's words; a fault without a number may quote what it is about, and is named by its kind."""
    return os.strerror(fault.errno) if fault.errno else type(fault).__name__
