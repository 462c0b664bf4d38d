"""Addresses of a work folder's objects and of raw files, as a path in a folder or in a bucket."""

from __future__ import annotations

import fnmatch
import glob
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ldptree.errors import ConfigError
from schemas.named_files import BUCKETS, IN_BUCKET, SCHEME, shown_path
from storage.objects.object_store import ObjectStore

if TYPE_CHECKING:
    from storage.objects.bucket import BucketObjects

_ADDRESS = re.compile(rf"({SCHEME}):/+({IN_BUCKET})")
_MEANT_AS_ADDRESS = re.compile(rf"\s*([A-Za-z][\w+.=-]*:(/|$)|({SCHEME}):)")


def bucket_address(work: str | Path) -> str | None:
    """Return "s3://bucket/prefix" (gs, az) if `work` is an address whose slash a Path has lost, else None.

    Raises ConfigError on what was meant as an address and is none: a folder of that name would know of nobody who was asked.
    """
    text = str(work)
    address = _ADDRESS.fullmatch(text)
    if address and not {".", ".."} & set(address[2].split("/")):
        return f"{address[1]}://{address[2].rstrip('/')}"
    if address or _MEANT_AS_ADDRESS.match(text):
        raise ConfigError(
            f"work folder {shown_path(text)}: no address that is known. Write s3://bucket/prefix (or gs://, az://), without "
            "spaces, commas and ? # %, or the path of a folder."
        )
    return None


def open_objects(work: str | Path, *, only_reads: bool = False) -> ObjectStore:
    """Open the objects of a work folder, which is made unless one `only_reads`. Raises ConfigError where it cannot be used."""
    address = bucket_address(work)
    if address is None:
        from storage.objects.folder import FolderObjects

        return FolderObjects(work, only_reads=only_reads)
    from storage.objects.bucket import open_bucket

    return open_bucket(address)


def find_objects(pattern: str) -> list[str]:
    """Return the objects in a bucket that match a pattern, such as "s3://bucket/day-*/trips-*.csv", in order.

    Raises OSError where they cannot be listed, ConfigError where that is no address of a bucket.
    """
    bucket, wanted = _in_bucket(pattern)
    parts = wanted.split("/")
    plain = list(itertools.takewhile(lambda part: not glob.has_magic(part), parts[:-1]))
    names = (entry.name for entry in _to_read(bucket, is_first=True).entries("/".join(plain), deep=True))
    return [f"{bucket}/{name}" for name in names if _fits(name.split("/"), parts)]


def local_file(name: str) -> Path:
    """A raw file on this machine, by its path; of one in a bucket, by its address, a copy. Raises OSError, ConfigError."""
    if not name.startswith(BUCKETS):
        return Path(name)
    bucket, within = _in_bucket(name)
    return _to_read(bucket).path(within)


def unchanged_file(name: str) -> Path:
    """As `local_file`, of a copy that is still what was fetched."""
    if not name.startswith(BUCKETS):
        return Path(name)
    bucket, within = _in_bucket(name)
    return _to_read(bucket).unchanged_path(within)


def _in_bucket(address: str) -> tuple[str, str]:
    scheme, _, rest = address.partition("://")
    bucket, _, within = rest.partition("/")
    return f"{scheme}://{bucket}", within


def _to_read(bucket: str, *, is_first: bool = False) -> BucketObjects:
    from storage.objects.bucket import open_to_read

    return open_to_read(bucket, is_first=is_first)


def _fits(names: list[str], parts: list[str]) -> bool:
    return len(names) == len(parts) and all(map(fnmatch.fnmatchcase, names, parts))


def refuse_bucket(work: str | Path, command: str) -> None:
    """Raises ConfigError where `work` is in a bucket, and `command` works in a folder only."""
    if (address := bucket_address(work)) is not None:
        raise ConfigError(f"{address}: `{command}` works in a folder only. `ldptree run` takes a bucket.")
