"""Files of reports, each drawn at most once: after a crash at any moment, no second draw of the same holders is on disk.

A draft is a file without a name (O_TMPFILE): it gets its final name when it is whole, or disappears with its process. Where a
file system has no such files, the draft lies in the holders' zone under a name that is known before it is drawn; the next run
publishes a whole draft and never draws it again. What is drawn is decided in `tasks.perturb`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from storage.objects.lasting import fsync
from storage.objects.object_store import Write

UNSUPPORTED = (
    errno.EOPNOTSUPP,
    errno.EISDIR,
    errno.EINVAL,
    errno.ENOENT,
    errno.ENOSYS,
    errno.EPERM,
    errno.EXDEV,
)
"""How a file system says that it has no files without a name, or no second name of a file."""


def publish_once(path: Path, write: Write, draft: Callable[[], Path]) -> bool:
    """Give what `write` draws the name `path`; False (and nothing changed) where another draw has it already. Raises OSError.

    `draft`: where the file system has no files without a name, the path of this draw's draft, the same whenever it is asked for.
    """
    for left in path.parent.glob(".aside-*"):  # a draw that an earlier ldptree left where it was stopped
        left.unlink(missing_ok=True)
    is_published = _publish_unnamed(path, write)
    if is_published is None:
        is_published = _publish_draft(draft(), path, write)
    fsync(path.parent)
    return is_published


def _publish_unnamed(path: Path, write: Write) -> bool | None:
    """As `publish_once`; None where the file system has no files without a name."""
    descriptor = _open_unnamed(path.parent)
    if descriptor is None:
        return None
    with os.fdopen(descriptor, "wb") as draft:
        write(draft)
        draft.flush()
        os.fsync(descriptor)
        return _name(descriptor, path)


def _open_unnamed(folder: Path) -> int | None:
    """A new file in `folder` that has no name, None where there are none."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except OSError as fault:
        if fault.errno not in UNSUPPORTED:
            raise
        return None


def _name(descriptor: int, path: Path) -> bool | None:
    """Name the open file `path`; False where there is one, None where it cannot be named."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # With a folder given Python follows the link to the file itself (linkat with AT_SYMLINK_FOLLOW).
        os.link(f"/proc/self/fd/{descriptor}", path.name, dst_dir_fd=folder, follow_symlinks=True)
    except FileExistsError:
        return False
    except OSError as fault:
        if fault.errno not in UNSUPPORTED:
            raise
        return None
    finally:
        os.close(folder)
    return True


def _publish_draft(draft: Path, path: Path, write: Write) -> bool:
    """As `publish_once`, by way of a draft. One at a time: its name is the same for everybody."""
    with (draft.parent / ".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_first = not path.exists()
        if is_first and not draft.exists():
            _write_draft(draft, write)
        if is_first:
            _copy_name(draft, path)
        draft.unlink(missing_ok=True)
    return is_first


def _write_draft(draft: Path, write: Write) -> None:
    """Write a draft that bears its name once it is whole; what a killed process left of one is written over."""
    part = draft.with_suffix(".part")
    try:
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(draft)
    finally:
        part.unlink(missing_ok=True)
    fsync(draft.parent)


def _copy_name(draft: Path, path: Path) -> None:
    """Publish a whole draft; on another file system as a copy, which a killed process may leave: it is of the same draw."""
    try:
        path.hardlink_to(draft)
    except OSError as fault:
        if fault.errno not in UNSUPPORTED:
            raise
        copy = path.with_name(f".copy-{draft.name}")
        shutil.copyfile(draft, copy)
        fsync(copy)
        copy.replace(path)
