"""Where the objects of a work folder are: in a folder, by its path; in a bucket, by its address; or in two, by both of theirs."""

from __future__ import annotations

import re
from pathlib import Path

from ldptree.errors import ConfigError
from storage.objects.object_store import ObjectStore

_ADDRESS = re.compile(r"(s3|gs|az):/+([^/,][^,]*)")
_TWO = re.compile(r"holders=(.+),curator=(.+)")


def bucket_address(work: str | Path) -> str | None:
    """ "s3://bucket/prefix" (gs, az) where `work` is such an address, of which a Path has lost a slash, or
    "holders=s3://...,curator=s3://..." where it is two of them; None of a path.
    """
    if (two := _TWO.fullmatch(str(work))) is not None:
        holders, curator = bucket_address(two[1]), bucket_address(two[2])
        return f"holders={holders},curator={curator}" if holders and curator else None
    found = _ADDRESS.fullmatch(str(work))
    return f"{found[1]}://{found[2].rstrip('/')}" if found else None


def open_objects(work: str | Path) -> ObjectStore:
    """The objects of a work folder. Raises ConfigError where it cannot be used."""
    address = bucket_address(work)
    if address is None:
        from storage.objects.folder import FolderObjects

        return FolderObjects(work)
    from storage.objects.bucket import open_bucket, open_two_buckets

    two = _TWO.fullmatch(address)
    return open_bucket(address) if two is None else open_two_buckets(holders=two[1], curator=two[2])


def refuse_bucket(work: str | Path, command: str) -> None:
    """Raises ConfigError where `work` is in a bucket, and `command` works in a folder only."""
    if (address := bucket_address(work)) is not None:
        raise ConfigError(f"{address}: `{command}` works in a folder only. `ldptree run` takes a bucket.")
