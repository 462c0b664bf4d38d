"""Keep files of reports, each drawn at most once, after any crash and whatever their owner does to them.

A draft lies in the holders' zone under a name that is known before it is drawn, and stays there until the holders have recorded
that they answered; until then the same draft is published again, and none is drawn anew. What is drawn is decided in
`tasks.perturb`.
"""

from __future__ import annotations

import fcntl
import filecmp
import os
import shutil
from pathlib import Path

from ldptree.errors import ArtifactCorrupt
from storage.holders.private_files import FILE, append_privately
from storage.objects.lasting import fsync
from storage.objects.object_store import Write


def publish_once(path: Path, write: Write, draft: Path) -> bool:
    """Give what `write` draws the name `path`; False (and nothing changed) where it has that name already.

    One at a time, as the name of a draft is the same for everybody.

    Raises:
        ArtifactCorrupt: another file stands at `path` than the one that was drawn.
        OSError: it cannot be written.
    """
    with append_privately(draft.parent / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_first = not path.exists()
        if is_first and not draft.exists():
            _write_draft(draft, write)
        if is_first:
            _publish_copy(draft, path)
        elif draft.exists() and not filecmp.cmp(draft, path, shallow=False):
            raise ArtifactCorrupt(
                f"{path}: not the reports that its holders drew. Nothing was drawn again. Find out who wrote to the curator's "
                "zone, and delete the file: the next run publishes the reports that were drawn."
            )
    fsync(path.parent)
    return is_first


def _write_draft(draft: Path, write: Write) -> None:
    """Write a draft that bears its name once it is whole; what a killed process left of one is written over."""
    part = draft.with_suffix(".part")
    try:
        with part.open("wb") as file:
            part.chmod(FILE)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(draft)
    finally:
        part.unlink(missing_ok=True)
    fsync(draft.parent)


def _publish_copy(draft: Path, path: Path) -> None:
    """Publish a copy of a whole draft, so that its owner may change the copy while the draft stays as drawn."""
    copy = path.with_name(f".copy-{path.stem}")
    shutil.copyfile(draft, copy)
    fsync(copy)
    copy.replace(path)
