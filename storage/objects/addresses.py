"""Where the objects of a work folder are: in a folder, by its path, or in a bucket, by its address."""

from __future__ import annotations

import re
from pathlib import Path

from ldptree.errors import ConfigError
from storage.objects.object_store import ObjectStore

_ADDRESS = re.compile(r"(s3|gs|az):/+([^/].*)")


def bucket_address(work: str | Path) -> str | None:
    """ "s3://bucket/prefix" (gs, az) where `work` is such an address, of which a Path has lost a slash; None of a path."""
    found = _ADDRESS.fullmatch(str(work))
    return f"{found[1]}://{found[2].rstrip('/')}" if found else None


def open_objects(work: str | Path) -> ObjectStore:
    """The objects of a work folder. Raises ConfigError where it cannot be used."""
    address = bucket_address(work)
    if address is None:
        from storage.objects.folder import FolderObjects

        return FolderObjects(work)
    from storage.objects.bucket import open_bucket

    return open_bucket(address)


def refuse_bucket(work: str | Path, command: str) -> None:
    """Raises ConfigError where `work` is in a bucket, and `command` works in a folder only."""
    if (address := bucket_address(work)) is not None:
        raise ConfigError(f"{address}: `{command}` works in a folder only. `ldptree run` takes a bucket.")
