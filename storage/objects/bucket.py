"""The object store in a bucket: Amazon's S3 and what speaks its language, Google's and Azure's, by obstore; or in memory.

A put is atomic there, and one with mode "create" succeeds once: that is a charge's number, and a report's name. An answer may be
lost although the put was done, and obstore then tries again: each writer marks what it puts, and knows its own again.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from storage.objects.lasting import fsync
from storage.objects.object_store import NOTHING, Entry, NotReached, ObjectStore, T, Write
from storage.objects.reasons import TOO_MANY, reason_of
from storage.objects.two_sides import SIDES, Side, TwoSides
from storage.objects.variables import (
    KEYS,
    VARIABLES,
    bucket_options,
    check_variables,
    client_options,
    keys_of,
    options_of,
    scheme_of,
    variables_of,
)

WRITER = "ldptreewriter"
"""The attribute of an object that says who put it. Azure takes no hyphen in a name, and proxies pass no underscore on."""
BLOCK = 1 << 23
ATTEMPTS, PAUSE, LONGEST_PAUSE = 20, 0.1, 2.0
"""Times that an object is put of which the server says "not now": another write of it goes on, while none stands, or it has been
written too often (Google takes one write of an object a second). The seconds between are doubled up to the longest.
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
"""Bytes a second at which a put is still waited for: nothing is heard of a server until it has all of them."""
COPIED = 1 << 26
"""Bytes whose put takes as long as a copy that the server makes."""


def open_bucket(address: str) -> BucketObjects:
    """The objects at an address, as "s3://bucket/prefix", with the credentials that the environment has for it.

    Raises ConfigError where nothing can be written there, or nothing can be written once.
    """
    return _open(address, folder_of_copies(address), {}, VARIABLES[scheme_of(address)])


def open_two_buckets(*, holders: str, curator: str) -> TwoSides:
    """The objects of the holders' side and of the curator's, each with the credentials that the environment has for it.

    Raises ConfigError as `open_bucket`.
    """
    where = f"holders={holders},curator={curator}"
    root, addresses = folder_of_copies(where), {"holders": holders, "curator": curator}
    options = {side: options_of(side, scheme_of(addresses[side])) for side in SIDES}
    sides: dict[Side, ObjectStore] = {}
    for side in SIDES:
        whose = variables_of(side, scheme_of(addresses[side]))
        sides[side] = _open(addresses[side], root / "sides" / side, options[side], whose)
    return TwoSides(sides, where, root)


def open_to_read(address: str, *, is_first: bool = False) -> BucketObjects:
    """The objects at an address, with the holders' credentials; nothing is written there. `is_first`: nobody knows yet whether
    its server answers. Raises ConfigError.
    """
    scheme = scheme_of(address)
    opened = partial(_bucket, address, options_of("holders", scheme), VARIABLES[scheme])
    root = folder_of_copies(address, is_raw=True)
    make_folder_of_copies(root)
    return BucketObjects(opened(FIRST_ANSWER if is_first else SILENCE), address, root, opened)


def _open(address: str, root: Path, options: dict[str, str], variables: str) -> BucketObjects:
    """As `open_bucket`, with `options` in place of what the environment says; `variables`: what to look after."""
    opened = partial(_bucket, address, options, variables)
    asked = BucketObjects(opened(FIRST_ANSWER), address, root)
    make_folder_of_copies(root)
    try:
        # Where nothing may be listed nobody is known to have been asked.
        list(asked.entries(""))
        keeps_conditions = asked.keeps_conditions()
    except OSError as fault:
        raise ConfigError(
            f"work folder {address}: cannot be written ({fault.strerror}). Look after the bucket's name, the credentials and "
            f"the network ({variables}), or name another folder with --work."
        ) from None
    if not keeps_conditions:
        raise ConfigError(
            f"work folder {address}: this object store writes an object a second time, or over another's change, where it is to "
            "refuse (conditional put), so that a holder could be asked twice. Name another one with --work."
        )
    return BucketObjects(opened(SILENCE), address, root, opened)


def _bucket(address: str, options: dict[str, str], variables: str, silence: timedelta) -> Any:
    """What obstore knows an address by, whose server may say nothing for so long."""
    retries = RETRIES | {"retry_timeout": min(silence, SILENCE) * 1.5}
    scheme = scheme_of(address)
    check_variables(scheme)
    client = CLIENT | client_options(scheme, options) | {"read_timeout": silence}
    more: dict[str, Any] = {"client_options": client, "retry_config": retries}
    rest = bucket_options(scheme, options)
    if keys := keys_of(options):
        more["credential_provider"] = lambda: keys
        rest = {name: value for name, value in rest.items() if name not in KEYS}
    try:
        return obstore.store.from_url(address, config=rest, **more)
    except (BaseError, ValueError) as fault:
        reason = reason_of(fault, address) or "no address of a bucket, or a variable that is none of it"
        raise ConfigError(
            f"{address}: {reason}. Name one as {scheme}://bucket/prefix; look after {variables}."
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
        """Nothing more: what was written when it was opened is as much as a run needs."""

    def keeps_conditions(self) -> bool:
        """Whether the store puts an object only where there is none, or only in place of a version, as it is told to."""
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
        """How many bytes an object has, None where there is none."""
        try:
            with self._faults_of(name):
                return int(obstore.head(self._bucket, name)["size"])
        except FileNotFoundError:
            return None

    def at_once(self, act: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """What `act` gives for each object, in order, of `AT_ONCE` at once: nearly all of the time it waits for an answer."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(act, names))

    def entries(self, folder: str, *, deep: bool = False) -> Iterator[Entry]:
        """The objects of a folder, of those below it too if `deep`, by name."""
        with self._faults_of(folder):
            if deep:
                found = [one for page in obstore.list(self._bucket, prefix=folder or None) for one in page]
            else:
                found = list(obstore.list_with_delimiter(self._bucket, prefix=folder or None)["objects"])
        return iter(sorted(map(self._entry, found), key=lambda entry: entry.name))

    def _entry(self, one: Any) -> Entry:
        modified = one["last_modified"].timestamp()
        return Entry(one["path"], one["size"], modified, self._copy(one, one["path"]))

    def folders(self, folder: str) -> list[str]:
        """The names of the folders right below a folder, in order."""
        with self._faults_of(folder):
            listed = obstore.list_with_delimiter(self._bucket, prefix=folder or None)
        return sorted(listed["common_prefixes"])

    def create(self, name: str, data: bytes) -> bool:
        """Put an object unless there is one of this name: of all who do so one gets True, whose bytes stand."""
        return self._put_if(name, data, "create")

    def draw(self, name: str, write: Write) -> bool:
        """As `create`: what is drawn is nowhere but in this process until it stands."""
        drawn = io.BytesIO()
        write(drawn)
        return self.create(name, drawn.getvalue())

    def put(self, name: str, data: bytes) -> None:
        """Put an object, in place of one of this name if there is one."""
        if not self._put_if(name, data, "overwrite"):
            raise NotReached(errno.EIO, "another may not be put in its place", self.where(name))

    def change(self, name: str, make: Callable[[bytes | None], bytes]) -> None:
        """Put what `make` makes of an object, unless another was faster: then of what that one left."""
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

    def settle(self, folder: str) -> None:
        """Nothing: what is seen in a bucket lasts."""

    def publish(self, draft: Path, name: str, standing: Mapping[str, str] = NOTHING) -> None:
        """Put the files of a local folder, in place of what is there with other bytes, and remove it.

        Objects that stand are copied by the server.
        """
        for path in sorted(files_below(draft)):
            self._put_or_same(f"{name}/{path.relative_to(draft).as_posix()}", path.read_bytes())
        for below, other in standing.items():
            with self._faults_of(other):
                obstore.copy(self._patient(COPIED), other, f"{name}/{below}")
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
        """As `path`, of an object of which nobody says what it holds: a copy that is not what was fetched is made anew."""
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
                    found = self._writer_of(name)
                    if found is not None or mode != "create":
                        return found == writer
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
        """The bucket, for a put of so many bytes: its server may say nothing while it takes them in."""
        doublings = int(n_bytes / SLOWEST / SILENCE.total_seconds()).bit_length()
        return self._opened(SILENCE * 2**doublings) if self._opened and doublings else self._bucket

    def _writer_of(self, name: str) -> str | None:
        """Who put the object that stands, "" where it does not say; None where there is none."""
        try:
            found = obstore.get(self._bucket, name, options={"head": True}).attributes
        except FileNotFoundError:
            return None
        return str(found.get(WRITER, ""))

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
