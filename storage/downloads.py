"""Fetch a file whole and as stated, or not at all. After an interruption, the download resumes."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from ldptree.errors import LdptreeError

if TYPE_CHECKING:
    import httpx

PART = ".part"
"""Ends the name of a file that is being fetched."""
TIMEOUT_SECONDS = 30.0
"""Without a byte for so long, the other side is taken to hang."""
MOST_REDIRECTS = 5


class DownloadError(LdptreeError):
    """A file could not be fetched. What was, stays beside its place, and the next try goes on from there."""


def download(url: str, path: Path, *, size: int, sha256: str, timeout: float = TIMEOUT_SECONDS) -> None:
    """Fetch a file of a stated size and digest to `path`, whose folder is there. Raises DownloadError."""
    import httpx

    part = path.with_name(path.name + PART)
    done = part.stat().st_size if part.exists() else 0
    if done > size:
        part.unlink()
        done = 0
    try:
        if done < size:
            with httpx.Client(timeout=timeout, follow_redirects=True, max_redirects=MOST_REDIRECTS) as client:
                _fetch(client, url, part, done, size)
    except httpx.TooManyRedirects:
        raise DownloadError(
            f"{url}: leads on more than {MOST_REDIRECTS} times. Fetch the file by hand."
        ) from None
    except httpx.TimeoutException:
        raise DownloadError(f"{url}: no answer for {timeout:g} s. {_kept(part, size)}") from None
    except httpx.RemoteProtocolError:
        raise DownloadError(f"{url}: broken off. {_kept(part, size)}") from None
    except httpx.HTTPError as fault:
        reason = str(fault) or type(fault).__name__
        raise DownloadError(
            f"{url}: cannot be reached ({reason}). Are you offline? {_kept(part, size)}"
        ) from None
    except OSError as fault:
        raise DownloadError(f"{part}: cannot be written ({fault.strerror}).") from None
    if (received := part.stat().st_size) != size:
        raise DownloadError(f"{url}: ended after {received:,} of {size:,} bytes. {_kept(part, size)}")
    if digest_file(part) != sha256:
        part.unlink()
        raise DownloadError(
            f"{url}: not the file that the catalogue states: its sha256 differs. It was thrown away; fetch it by hand."
        )
    part.replace(path)


def _fetch(client: httpx.Client, url: str, part: Path, done: int, size: int) -> None:
    """Add to a part what it lacks, from the beginning where the other side cannot go on in the middle."""
    wanted = {"Range": f"bytes={done}-"} if done else {}
    with client.stream("GET", url, headers={"Accept-Encoding": "identity"} | wanted) as answer:
        if answer.status_code == 416:  # it has less than what was kept, which then is of another file
            part.unlink()
        if answer.status_code >= 400:
            raise DownloadError(
                f"{url}: the server says {answer.status_code} {answer.reason_phrase}. Fetch the file by hand."
            )
        is_rest = answer.status_code == 206
        with part.open("ab" if is_rest else "wb") as sink:
            received = done if is_rest else 0
            for block in answer.iter_raw():
                received += len(block)
                if received > size:
                    sink.close()
                    part.unlink()
                    raise DownloadError(
                        f"{url}: longer than the {size:,} bytes that the catalogue states. It was thrown away; fetch it by hand."
                    )
                sink.write(block)
            sink.flush()
            os.fsync(sink.fileno())


def _kept(part: Path, size: int) -> str:
    done = part.stat().st_size if part.exists() else 0
    return f"{done:,} of {size:,} bytes are kept; type it again to go on." if done else "Type it again."


def is_stated(path: Path, sha256: str | None, *, is_gzipped: bool) -> bool:
    """Return whether a file, or what is gzipped in it, has a stated digest; any file where none is stated. Raises OSError."""
    if sha256 is None:
        return True
    if not is_gzipped:
        return digest_file(path) == sha256
    try:
        with gzip.open(path, "rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == sha256
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return False


def pack(path: Path, to: Path) -> None:
    """Gzip a file to `to`, whole or not at all, and delete it. Raises DownloadError."""
    part = to.with_name(to.name + PART)
    try:
        with path.open("rb") as source, gzip.GzipFile(part, "wb", mtime=0) as sink:
            shutil.copyfileobj(source, sink)
        part.replace(to)
        path.unlink()
    except OSError as fault:
        part.unlink(missing_ok=True)
        raise DownloadError(f"{part}: cannot be written ({fault.strerror}).") from None


def digest_file(path: Path) -> str:
    """The sha256 of a file, in hexadecimal digits. Raises OSError."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
