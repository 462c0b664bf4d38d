"""The object store in a bucket of Amazon's S3, a compatible server, Google or Azure, by obstore, or in memory.

A put is atomic there, and one with mode "create" succeeds once: that is a report's name. An answer may be
lost although the put was done, and obstore then tries again: each writer marks what it puts, and knows its own again.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import obstore
import obstore.store
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from ldptree.errors import ConfigError
from storage.objects.copies import (
    files_below,
    folder_of_copies,
    is_as_fetched,
    make_folder_of_copies,
    note_fetched,
)
from storage.objects.object_store import Entry, NotReached, T, Write
from storage.objects.variables import PREFIXES, VARIABLES, check_variables, client_options, scheme_of
from storage.private_files import fsync

WRITER = "ldptreewriter"
"""The attribute of an object that says who put it. Azure takes no hyphen in a name, and proxies pass no underscore on."""
BLOCK = 1 << 23
ATTEMPTS, PAUSE, LONGEST_PAUSE = 20, 0.1, 2.0
"""Times that an object is put while its server answers "not now". Another write of it goes on, or it was written too
often (Google takes one write of an object a second). The seconds between double up to the longest.
"""
AT_ONCE = 16
"""Requests that wait for their answers at the same time."""
CLIENT = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(hours=1)}
RETRIES = {"max_retries": 5}
SILENCE = timedelta(seconds=30)
"""How long a server may say nothing, however long it takes to say all; it is asked again for half as long more."""
FIRST_ANSWER = timedelta(seconds=10)
"""The same of the first requests, which are small."""
SLOWEST = 1 << 18
"""Bytes a second at which a put is still waited for, as a server says nothing until it has all of them."""


def open_bucket(address: str) -> BucketObjects:
    """Open the objects at an address, such as "s3://bucket/prefix", with the credentials of the environment.

    Raises ConfigError where nothing can be written there, or nothing can be written once.
    """
    root, opened = folder_of_copies(address), partial(_bucket, address)
    asked = BucketObjects(opened(FIRST_ANSWER), address, root)
    make_folder_of_copies(root)
    try:
        # Where nothing may be listed nobody is known to have been asked.
        list(asked.entries(""))
        keeps_conditions = asked.keeps_conditions()
    except OSError as fault:
        raise ConfigError(
            f"work folder {address}: cannot be written ({fault.strerror}). Check the bucket's name, the credentials and "
            f"the network ({VARIABLES[scheme_of(address)]}), or name another folder with --work."
        ) from None
    if not keeps_conditions:
        raise ConfigError(
            f"work folder {address}: this object store writes an object a second time, or over another's change, where it is to "
            "refuse (conditional put), so that a holder could be asked twice. Name another one with --work."
        )
    return BucketObjects(opened(SILENCE), address, root, opened)


def open_to_read(address: str, *, is_first: bool = False) -> BucketObjects:
    """Open the objects at an address to read only. `is_first` if nobody knows yet whether its server answers.

    Raises ConfigError.
    """
    root, opened = folder_of_copies(address, is_raw=True), partial(_bucket, address)
    make_folder_of_copies(root)
    return BucketObjects(opened(FIRST_ANSWER if is_first else SILENCE), address, root, opened)


def _bucket(address: str, silence: timedelta) -> Any:
    """Open what obstore knows an address by, whose server may say nothing for so long. Raises ConfigError."""
    scheme = scheme_of(address)
    check_variables(scheme)
    try:
        return obstore.store.from_url(
            address,
            client_options=CLIENT | client_options(scheme) | {"read_timeout": silence},
            retry_config=RETRIES | {"retry_timeout": min(silence, SILENCE) * 1.5},
        )
    except (BaseError, ValueError) as fault:
        reason = reason_of(fault, address) or "no address of a bucket, or a variable that is none of it"
        raise ConfigError(
            f"{address}: {reason}. Name one as {scheme}://bucket/prefix; check {VARIABLES[scheme]}."
        ) from None


class BucketObjects:
    """The objects of a bucket, or of a prefix in it."""

    is_shared = True

    def __init__(
        self, bucket: Any, where: str, root: Path, opened: Callable[[timedelta], Any] | None = None
    ) -> None:
        """Objects of `bucket`, an obstore store that a person knows as `where`; `root` is a local folder for copies; `opened`
        opens it for requests in which its server says nothing for so long.
        """
        self._bucket = bucket
        self._opened = opened and cache(opened)
        self._where = where.rstrip("/")
        self.root = root

    def check_rights(self) -> None:
        """Check nothing more, as writing when the store was opened tested all that a run needs."""

    def keeps_conditions(self) -> bool:
        """Return whether the store puts an object only where there is none, or only in place of a version, as it is told to."""
        probe = f"probe-{secrets.token_hex(8)}"
        is_put = self.create(probe, b"")
        try:
            _, version = self._get(probe)
            return (
                is_put
                and not self.create(probe, b"again")
                and self._put_if(probe, b"changed", version)
                and not self._put_if(probe, b"changed by another", version)
            )
        finally:
            self.delete(probe)

    def get(self, name: str) -> bytes:
        """The bytes of an object. Raises FileNotFoundError."""
        with self._faults_of(name):
            return bytes(obstore.get(self._bucket, name).bytes())

    def size(self, name: str) -> int | None:
        """Return the size of an object in bytes, None where there is none."""
        try:
            with self._faults_of(name):
                return int(obstore.head(self._bucket, name)["size"])
        except FileNotFoundError:
            return None

    def at_once(self, act: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """Call `act` for each object, `AT_ONCE` at once, and return the results in order. Nearly all of the time goes
        into waiting for answers.
        """
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(act, names))

    def entries(self, folder: str, *, deep: bool = False) -> Iterator[Entry]:
        """The objects of a folder, of those below it too if `deep`, by name."""
        with self._faults_of(folder):
            if deep:
                metas = [meta for page in obstore.list(self._bucket, prefix=folder or None) for meta in page]
            else:
                metas = list(obstore.list_with_delimiter(self._bucket, prefix=folder or None)["objects"])
        return iter(sorted(map(self._entry, metas), key=lambda entry: entry.name))

    def _entry(self, meta: Any) -> Entry:
        modified = meta["last_modified"].timestamp()
        return Entry(meta["path"], meta["size"], modified, self._copy(meta, meta["path"]))

    def folders(self, folder: str) -> list[str]:
        """The names of the folders right below a folder, in order."""
        with self._faults_of(folder):
            listed = obstore.list_with_delimiter(self._bucket, prefix=folder or None)
        return sorted(listed["common_prefixes"])

    def create(self, name: str, data: bytes) -> bool:
        """Put an object unless there is one of this name. Of all who do so, one gets True, and those bytes stand."""
        return self._put_if(name, data, "create")

    def draw(self, name: str, write: Write) -> bool:
        """Create a drawn object as `create` does. Until it stands, it exists in this process alone."""
        if self.size(name) is not None:
            return False
        drawn = io.BytesIO()
        write(drawn)
        return self.create(name, drawn.getvalue())

    def forget_draft(self, name: str) -> None:
        """Remove nothing, as there is no draft."""

    def put(self, name: str, data: bytes) -> None:
        """Put an object, in place of one of this name if there is one."""
        if not self._put_if(name, data, "overwrite"):
            raise NotReached(errno.EIO, "another may not be put in its place", self.where(name))

    def change(self, name: str, make: Callable[[bytes | None], bytes]) -> None:
        """Replace an object by what `make` makes of it, once more if another process replaced it first."""
        while True:
            old: bytes | None = None
            version: Any = "create"
            with suppress(FileNotFoundError):
                old, version = self._get(name)
            new = make(old)
            if new == old or self._put_if(name, new, version):
                return

    def delete(self, name: str) -> None:
        """Remove an object; one that is not there is passed over."""
        with self._faults_of(name), suppress(FileNotFoundError):
            obstore.delete(self._bucket, name)

    def withdraw(self, name: str) -> None:
        """Remove an object, or all objects of a folder and of those below it."""
        self.at_once(self.delete, [entry.name for entry in self.entries(name, deep=True)] or [name])

    def not_objects(self) -> list[Path]:
        """Copies; and drafts of an earlier day, as a machine of a cluster holds no lock for its own."""
        yesterday = time.time() - timedelta(days=1).total_seconds()
        drafts = [path for path in (self.root / "drafts").glob("*/*/*") if path.stat().st_mtime < yesterday]
        return drafts + files_below(self.root / "copies")

    def modified(self, folder: str) -> float:
        """When an object of a folder was put last, by the server's clock."""
        return max((entry.modified for entry in self.entries(folder, deep=True)), default=0.0)

    def now(self) -> float:
        """The server's clock, by what it says of an object that is put now."""
        probe = f"probe-{secrets.token_hex(8)}"
        self.put(probe, b"")
        with self._faults_of(probe):
            try:
                return float(obstore.head(self._bucket, probe)["last_modified"].timestamp())
            finally:
                self.delete(probe)

    def publish(self, draft: Path, name: str) -> None:
        """Put the files of a local folder, in place of what is there with other bytes, and remove it."""
        for path in sorted(files_below(draft)):
            self._put_or_same(f"{name}/{path.relative_to(draft).as_posix()}", path.read_bytes())
        shutil.rmtree(draft)

    def _put_or_same(self, name: str, data: bytes) -> None:
        """Put an object, unless there is one with the same bytes."""
        if not self.create(name, data):
            self.change(name, lambda _: data)

    def draft_folder(self, folder: str) -> Path:
        """A new folder on this machine, for its user only."""
        draft = self.root / "drafts" / folder / secrets.token_hex(8)
        draft.mkdir(mode=0o700, parents=True)
        return draft

    def path(self, name: str) -> Path:
        """A local copy of an object, made once of each version of it. Raises FileNotFoundError."""
        with self._faults_of(name):
            copy = self._copy(obstore.head(self._bucket, name), name)
        return copy if copy.exists() else self._fetch(name)

    def whole_path(self, name: str, is_whole: Callable[[Path], bool]) -> Path | None:
        """A local copy of an object that `is_whole`, fetched once more where it is not; None where the object is damaged.

        Raises FileNotFoundError.
        """
        if is_whole(copy := self.path(name)):
            return copy
        return fresh if is_whole(fresh := self._fetch(name)) else None

    def unchanged_path(self, name: str) -> Path:
        """Return a path as `path` does. If nobody states the content, a copy that differs is fetched anew."""
        with self._faults_of(name):
            copy = self._copy(obstore.head(self._bucket, name), name)
        if not is_as_fetched(copy):
            note_fetched(copy := self._fetch(name))
        os.utime(copy)  # it is used
        return copy

    def _fetch(self, name: str) -> Path:
        """A new copy of an object, in place of the one that there may be."""
        with self._faults_of(name):
            got = obstore.get(self._bucket, name)
            copy = self._copy(got.meta, name)
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            aside = copy.with_name(f".aside-{secrets.token_hex(8)}")
            try:
                with aside.open("wb") as file:
                    for block in got.stream(min_chunk_size=BLOCK):
                        file.write(block)
                fsync(aside)
                aside.replace(copy)
            finally:
                aside.unlink(missing_ok=True)
        return copy

    def _copy(self, version: Any, name: str) -> Path:
        return self.root / "copies" / str(version["e_tag"]).strip('"') / name

    def where(self, name: str) -> str:
        """The address of an object."""
        return f"{self._where}/{name}".rstrip("/")

    def _get(self, name: str) -> tuple[bytes, Any]:
        """The bytes of an object, and which version of it they are. Raises FileNotFoundError."""
        with self._faults_of(name):
            got = obstore.get(self._bucket, name)
            version = {key: got.meta[key] for key in ("e_tag", "version") if got.meta[key]}
            return bytes(got.bytes()), version

    def _put_if(self, name: str, data: bytes, mode: Any) -> bool:
        """Put an object on a condition; False where it does not hold. Raises OSError where nobody can say."""
        writer, refused = secrets.token_hex(16), "another write of it goes on and on"
        with self._faults_of(name):
            for attempt in range(ATTEMPTS):
                time.sleep(min(PAUSE * 2**attempt, LONGEST_PAUSE) if attempt else 0.0)
                try:
                    obstore.put(
                        self._patient(len(data)),
                        name,
                        memoryview(data),
                        mode=mode,
                        attributes={WRITER: writer},
                        use_multipart=False,
                    )
                except (AlreadyExistsError, PreconditionError):
                    current = self._writer_of(name)
                    if current is not None or mode != "create":
                        return current == writer
                except (PermissionDeniedError, UnauthenticatedError):
                    raise
                except BaseError as fault:
                    if self._writer_of(name) == writer:  # only the answer was lost
                        return True
                    if (reason := reason_of(fault, self._where)) != TOO_MANY:
                        raise
                    refused = reason
                else:
                    return True
        raise NotReached(errno.EIO, refused, self.where(name))

    def _patient(self, n_bytes: int) -> Any:
        """Return the bucket for a put of so many bytes, waiting as long as its server may need for them."""
        doublings = int(n_bytes / SLOWEST / SILENCE.total_seconds()).bit_length()
        return self._opened(SILENCE * 2**doublings) if self._opened and doublings else self._bucket

    def _writer_of(self, name: str) -> str | None:
        """Return the writer of the object that stands, "" where it does not say; None where there is none."""
        try:
            attributes = obstore.get(self._bucket, name, options={"head": True}).attributes
        except FileNotFoundError:
            return None
        return str(attributes.get(WRITER, ""))

    @contextmanager
    def _faults_of(self, name: str) -> Iterator[None]:
        """Raise what obstore raises as OSError, in words that quote nothing of the answer."""
        try:
            yield
        except FileNotFoundError as fault:
            missing = reason_of(fault, self._where) or "no such object"
            raise FileNotFoundError(errno.ENOENT, missing, self.where(name)) from None
        except (PermissionDeniedError, UnauthenticatedError) as fault:
            refused = reason_of(fault, self._where) or "no right to it"
            raise PermissionError(errno.EACCES, refused, self.where(name)) from None
        except BaseError as fault:
            failed = reason_of(fault, self._where) or "does not answer as it should"
            raise NotReached(errno.EIO, failed, self.where(name)) from None


TOO_MANY = "the server has too many requests"
REASONS = {
    "<Code>NoSuchBucket<": "there is no such bucket",
    "<Code>ContainerNotFound<": "there is no such container",
    "<Code>InvalidResourceName<": "that is no name of a container",
    "<Code>OutOfRangeInput<": "that is no name of a container",
    "<Code>RequestTimeTooSkewed<": "the clock of this machine is wrong",
    "<Code>InvalidAccessKeyId<": "the server does not know these credentials",
    "<Code>SignatureDoesNotMatch<": "the secret key is not that of these credentials",
    "<Code>AuthenticationFailed<": "the key has expired or is not that of this account, or the clock of this machine is wrong",
    "<Code>AuthenticationRequired<": "the server does not know these credentials",
    "<Code>InvalidAuthenticationInfo<": "the server does not know these credentials",
    "<Code>AccessDenied<": "no right to it",
    "source: DeleteFailed": "no right to delete in it",
    "<Code>AccountIsDisabled<": "the account is disabled",
    "<Code>ExpiredToken<": "the credentials have expired",
    "<Code>AuthorizationHeaderMalformed<": "the bucket is in another region than AWS_REGION says",
    "<Code>Authorization": "no right to it, or the key has expired or is not that of this account",
    "<Code>PermanentRedirect<": "the bucket is in another region than AWS_REGION says",
    "<Code>SlowDown<": TOO_MANY,
    "429 Too Many Requests": TOO_MANY,
    "source: BadScheme": "an address of http needs {prefix}ALLOW_HTTP=true",
    "<Code>NotImplemented<": "the server does not know this request, which may be a conditional put",
    "http://169.254.169.254/": "there are no credentials in the environment",
    "kind: Timeout": "does not answer in time",
    "kind: Connect": "cannot be reached",
    "source: OpenCredentials": "the file of the credentials cannot be opened",
    "source: DecodeCredentials": "the credentials are no JSON of a service account or a user",
    "source: ReadPem": "the private key of the credentials is none",
    "source: ServiceAccountPathAndKeyProvided": "GOOGLE_SERVICE_ACCOUNT and GOOGLE_SERVICE_ACCOUNT_KEY are both set",
    "source: MissingAccount": "AZURE_STORAGE_ACCOUNT_NAME is not set",
    "source: InvalidAccessKey": "the account's key is no Base64",
    "source: MissingSasComponent": "the SAS key is none",
}
"""The address is where a machine of Amazon's, Google's or Azure's would find credentials."""


def reason_of(fault: BaseException, address: str) -> str | None:
    """Return the reason in an error of obstore, or in the server's answer in it; None of anything that is not known here."""
    text, prefix = str(fault), PREFIXES.get(scheme_of(address), "")
    return next((reason.format(prefix=prefix) for sign, reason in REASONS.items() if sign in text), None)
