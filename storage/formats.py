"""Stamp every kept JSON file with the name and version of its format and a digest of its content, under the key
"format" beside the content. A damaged file is noticed, and a file of another ldptree is not taken for a damaged one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ldptree.errors import ArtifactCorrupt
from storage.objects.object_store import NotReached, ObjectStore

KEY = "format"
LAST_TRANSACTION = "last-transaction"
"""The file beside reports that says how far the holders' database was (`storage.ledger.database`)."""
VERSION = 1
"""Of every format that this ldptree writes and reads."""


class Damaged(ArtifactCorrupt):
    """A kept file is not what was written."""


def stamped(kind: str, content: Mapping[str, Any]) -> bytes:
    """JSON of `content`, with its format."""
    plain = json.loads(json.dumps(content))  # as a reader will see it: keys are texts, tuples are lists
    stamp = {"name": kind, "version": VERSION, "digest": _digest(plain)}
    return json.dumps({KEY: stamp, **plain}, indent=1).encode()


def read_stamped(objects: ObjectStore, name: str, kind: str, remedy: str) -> dict[str, Any]:
    """The content of the object `name`, which `stamped(kind, ...)` made; `remedy` says what to do where it is damaged.

    Raises FileNotFoundError where it is missing, Damaged where it is not what was written, and ArtifactCorrupt where another
    ldptree wrote it.
    """
    where = objects.where(name)
    try:
        text = objects.get(name)
    except (FileNotFoundError, NotReached):
        raise
    except OSError as fault:
        raise Damaged(f"{where}: cannot be read ({fault.strerror}). {remedy}") from None
    return unstamped(text, where, kind, remedy)


def unstamped(text: bytes, where: str, kind: str, remedy: str) -> dict[str, Any]:
    """The content of what `stamped(kind, ...)` made and stands at `where`. Raises as `read_stamped`."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise Damaged(f"{where}: damaged. {remedy}") from None
    if not isinstance(content, dict):
        raise Damaged(f"{where}: damaged. {remedy}")
    _check(where, content.pop(KEY, None), kind, content, remedy)
    return content


def refuse_other(where: str, version: object, known: int) -> None:
    """Raises ArtifactCorrupt where a file is of another version than the one known."""
    if isinstance(version, int) and version != known:
        which = "a later" if version > known else "an earlier"
        raise ArtifactCorrupt(
            f"{where}: written by {which} ldptree (format version {version}; this one reads {known}). Use that version of "
            "ldptree, or begin in another work folder."
        )


def _check(where: str, stamp: object, kind: str, content: dict[str, Any], remedy: str) -> None:
    stated = stamp if isinstance(stamp, dict) else {}
    refuse_other(where, stated.get("version"), VERSION)
    if stated != {"name": kind, "version": VERSION, "digest": _digest(content)}:
        raise Damaged(f"{where}: damaged (its content does not match its digest). {remedy}")


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
