"""Make the holders' secret on first use, and never where something says that there was one.

Under another secret nobody would be recognised.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import PurePosixPath

from ldptree.errors import ArtifactCorrupt
from storage.objects.object_store import ObjectStore

SECRET = "holders/secret"  # noqa: S105 - a name
SECRET_BYTES = 32
SIGNS = (
    "holders/holders.db",
    "curator/reports/last-transaction-*",
    "curator/reports/*/*/*.parquet",
    "holders/perturb/*.json",
    "curator/*/*.json",
)
"""What is there only where a run had a secret, above all where holders were asked."""
REMEDY = (
    "Under another secret who has answered cannot be told, so nobody is asked. It never changes: restore holders/secret from any "
    "backup of this work folder, or begin anew in another one."
)


def secret_of(objects: ObjectStore) -> bytes:
    """The secret of the holders of a work folder, made where there never was one; two processes at once agree on one.

    Raises ArtifactCorrupt where it was lost or damaged.
    """
    if not has_secret(objects):
        refuse_new_secret(objects)
        objects.create(SECRET, secrets.token_bytes(SECRET_BYTES))
    return _split(objects, objects.get(SECRET))[0]


def read_beside_secret(objects: ObjectStore) -> bytes:
    """Return what stands in the secret's file behind the secret, nothing where there is no secret. Raises ArtifactCorrupt."""
    try:
        return _split(objects, objects.get(SECRET))[1]
    except FileNotFoundError:
        return b""


def change_beside_secret(objects: ObjectStore, make: Callable[[bytes], bytes]) -> None:
    """Write what `make` makes of what stands behind the secret. Raises ArtifactCorrupt."""

    def change(content: bytes | None) -> bytes:
        secret, beside = _split(objects, content or b"")
        return secret + make(beside)

    objects.change(SECRET, change)


def _split(objects: ObjectStore, content: bytes) -> tuple[bytes, bytes]:
    if len(content) < SECRET_BYTES:
        raise ArtifactCorrupt(f"{objects.where(SECRET)}: the holders' secret is damaged. {REMEDY}")
    return content[:SECRET_BYTES], content[SECRET_BYTES:]


def has_secret(objects: ObjectStore) -> bool:
    """Return whether there is one."""
    return objects.size(SECRET) is not None


def refuse_new_secret(objects: ObjectStore, seen: str | None = None) -> None:
    """Raises ArtifactCorrupt where there was a secret, and is none any more. `seen` says that there was one."""
    kept = [*objects.entries("holders", deep=True), *objects.entries("curator", deep=True)]
    names = [PurePosixPath(entry.name) for entry in kept]
    sign = seen or next((str(name) for pattern in SIGNS for name in names if name.match(pattern)), None)
    # Made by another run, and signs after it, since the caller looked.
    if sign is not None and not has_secret(objects):
        raise ArtifactCorrupt(
            f"{objects.where(SECRET)}: the holders' secret is missing, and {sign} says that there was one. {REMEDY}"
        )


def other_secret(objects: ObjectStore) -> ArtifactCorrupt:
    """Return the fault where the secret is not the one that this folder began with."""
    return ArtifactCorrupt(
        f"{objects.where(SECRET)}: the holders' secret is damaged, or of another work folder: what was kept under it does not "
        f"match. {REMEDY}"
    )
