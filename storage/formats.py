"""What every kept JSON file says of itself: the name and version of its format, and a digest of its content, under the key
"format" beside the content. A damaged file is noticed, and a file of a later ldptree is not taken for a damaged one.

A file without the key was written before there were formats, and is read as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ldptree.errors import ArtifactCorrupt
from storage.objects.object_store import NotReached, ObjectStore

KEY = "format"
SEAL = "seal"
"""What a seal, and each of its marks, is called (`storage.ledger.seal`)."""
VERSION = 1
"""Of every format that this ldptree writes; it reads this one and all earlier ones."""


class Damaged(ArtifactCorrupt):
    """A kept file is not what was written."""


def stamped(kind: str, content: Mapping[str, Any], *, indent: int | None = None) -> bytes:
    """JSON of `content`, with its format."""
    plain = json.loads(json.dumps(content))  # as a reader will see it: keys are texts, tuples are lists
    stamp = {"name": kind, "version": VERSION, "digest": _digest(plain)}
    return json.dumps({KEY: stamp, **plain}, indent=indent).encode()


def read_stamped(objects: ObjectStore, name: str, kind: str, remedy: str) -> dict[str, Any]:
    """The content of the object `name`, which `stamped(kind, ...)` made; `remedy` says what to do where it is damaged.

    Raises FileNotFoundError where it is missing, Damaged where it is not what was written, and ArtifactCorrupt where a later
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
    if isinstance(content.get(KEY), dict) or any(
        map(_is_stamp, content.values())
    ):  # its key may be what is damaged
        _check(where, content.pop(KEY, None), kind, content, remedy)
    return content


def refuse_later(where: str, version: object, known: int) -> None:
    """Raises ArtifactCorrupt where a file is of a later version than those known."""
    if isinstance(version, int) and version > known:
        raise ArtifactCorrupt(
            f"{where}: written by a later ldptree (format version {version}; this one reads up to {known}). Use that version of "
            "ldptree, or begin in another work folder."
        )


def _check(where: str, stamp: object, kind: str, content: dict[str, Any], remedy: str) -> None:
    stated = stamp if isinstance(stamp, dict) else {}
    refuse_later(where, stated.get("version"), VERSION)
    if stated != {"name": kind, "version": VERSION, "digest": _digest(content)}:
        raise Damaged(f"{where}: damaged (its content does not match its digest). {remedy}")


def _is_stamp(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"name", "version", "digest"}


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
