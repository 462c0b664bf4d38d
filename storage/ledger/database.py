"""Keep who was asked in the holders' database: SQLite in `holders/holders.db`, or where LDPTREE_DATABASE says.

A transaction is there whole or not at all, whenever the process or the machine stops, and sees all before it. The last one's
number and digest stand beside the reports too, in a file that is named for the number, and in the file of the holders' secret: an
older copy of the database does not know them, not even one that is copied over newer folders. What is kept there:
`storage.ledger.schema`.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from sqlalchemy import URL, Connection, inspect

from ldptree.errors import ArtifactCorrupt, ConfigError, LdptreeError
from storage.digests import Hasher
from storage.formats import LAST_TRANSACTION, Damaged, refuse_other
from storage.holders.secret import SECRET, change_beside_secret, read_beside_secret, secret_of
from storage.ledger import connections
from storage.ledger.connections import faults_in_words
from storage.ledger.schema import TRANSACTIONS, VERSION
from storage.ledger.transactions import Last, Snapshot, Transaction
from storage.objects.folder import check_folder
from storage.objects.object_store import ObjectStore
from storage.private_files import FILE, fsync, make_to_last

LAST = f"curator/reports/{LAST_TRANSACTION}"
"""Where the last transaction stands beside the reports, before a hyphen and its number."""
LOOKS = 5
"""How often it is looked for: a look may see neither the name that another process takes away nor the one that it put there."""
REMEDY = (
    "Holders who have answered could be asked again, so nobody is asked. Restore the folders curator and holders, both from one "
    "backup that was made after the last run, or begin anew in another work folder."
)
_LAST = re.compile(rb"(\d{1,18}) ([0-9a-f]{64})")


class Database:
    """The holders' database of a work folder. Raises ConfigError where a bucket has none, or its address is none."""

    def __init__(self, objects: ObjectStore) -> None:
        """The database of these objects, made or not."""
        self._objects = objects
        self._url = connections.url_of(objects)

    @property
    def _path(self) -> Path | None:
        return Path(self._url.database or "") if self._url.get_backend_name() == "sqlite" else None

    @property
    def where(self) -> str:
        """The path or address where a person finds it."""
        if self._path is not None:
            return str(self._path)
        return self._url.set(query={}).render_as_string(hide_password=True)  # a query may have a password too

    @property
    def _shown(self) -> str:
        """Where it is, with the variable that says so."""
        return f"{connections.VARIABLE}: {self.where}" if connections.is_named() else self.where

    @property
    def server_name(self) -> str | None:
        """The name that a server of databases knows it by; None where it is a file."""
        return self._url.database if self._path is None else None

    def copy_to(self, path: Path) -> None:
        """Copy a file's database, as it is at one moment, into another file. Raises ArtifactCorrupt, sqlite3.Error."""
        with self.reading() as kept:
            kept.check_lists()
        connections.copy(self._url, path)

    @property
    def is_there(self) -> bool:
        """Return whether it was made. Raises OSError."""
        if self._path is not None:
            return self._path.is_file()
        with self._faults(), connections.connected(self._url, "read") as connection:
            return inspect(connection).has_table(TRANSACTIONS.name)

    @contextmanager
    def reading(self) -> Iterator[Snapshot]:
        """Look at it as it is at one moment. Raises ArtifactCorrupt, OSError."""
        if not self.is_there:
            yield Snapshot(None)
            return
        with self._faults(), connections.connected(self._url, "read") as connection:
            self._check_version(connection)
            yield Snapshot(connection)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Write a transaction; nothing where it inserts nothing, or an error ends it.

        Raises ArtifactCorrupt, OSError; LdptreeError where another process holds the database.
        """
        outside = self.outside()
        self._make(outside)
        with self._faults(), connections.connected(self._url, "write") as connection:
            self._check_version(connection)
            last = self.check(Snapshot(connection), outside)
            transaction = Transaction(connection, last)
            yield transaction
            if not transaction.is_empty:
                last = transaction.finish()
                connections.commit(connection)
            elif outside.get(LAST) == outside.get(SECRET) == last:
                return
        self._tell(last)  # also of an earlier one, whose process was stopped before it did

    def check(self, snapshot: Snapshot, outside: Mapping[str, Last]) -> Last:
        """Return the last transaction. Raises Changed where anything is not what was inserted, and ArtifactCorrupt where what
        stands `outside` is not known.
        """
        transactions = snapshot.transactions()
        for name, last in outside.items():
            if transactions[last.number : last.number + 1] != [last]:
                of = _beside_reports(last.number) if name == LAST else name
                raise lost(self._shown, f"older than {self._objects.where(of)}, or of another history")
        return transactions[-1]

    def refuse_new(self, outside: Mapping[str, Last]) -> None:
        """Raises ArtifactCorrupt where there is none, and something `outside` says that there was one."""
        if outside and not self.is_there:
            sign = _beside_reports(outside[LAST].number) if LAST in outside else min(outside)
            elsewhere = f"If it is elsewhere, set {connections.VARIABLE} to its place"
            raise lost(self._shown, f"missing, and {sign} says that there was one. {elsewhere}")

    def check_place(self) -> None:
        """Raises ConfigError where LDPTREE_DATABASE names a folder, or a file that cannot be made."""
        if self._path is not None and connections.is_named():
            if self._path.is_dir():
                raise self._other()
            check_folder(self._path.parent, connections.VARIABLE, "Name a file in another one.")

    def outside(self) -> dict[str, Last]:
        """Return the last transaction by each place outside of the database where one stands. Raises ArtifactCorrupt."""
        outside, beside = {}, read_beside_secret(self._objects)
        for _ in range(LOOKS):
            if numbers := self._numbers():
                name = _beside_reports(max(numbers))
                with suppress(FileNotFoundError):
                    outside[LAST] = self._parsed(name, self._objects.get(name))
            if LAST in outside or not (numbers or beside):
                break
        if beside:
            outside[SECRET] = self._parsed(SECRET, beside)
            number, wanted = outside[LAST].number if LAST in outside else None, outside[SECRET].number
            if number is None or number < wanted:  # it is written first
                condition = "missing" if number is None else f"older than {self._objects.where(SECRET)}"
                name = _beside_reports(wanted if number is None else number)
                raise lost(self._objects.where(name), condition)
        return outside

    def _damaged(self) -> LdptreeError:
        """Return the fault of what is not the database that was written; where none was yet, that it is another thing."""
        if connections.is_named() and not self.outside():
            return self._other()
        return Damaged(f"{self._shown}: damaged. {REMEDY}")

    def _other(self) -> ConfigError:
        return ConfigError(
            f"{self._shown} is no database of a work folder. Name a file that is not there yet, or an empty database of "
            "PostgreSQL."
        )

    def _faults(self) -> AbstractContextManager[None]:
        return faults_in_words(self.where, self._damaged)

    def _check_version(self, connection: Connection) -> None:
        version = connections.version_of(connection)
        if not version:
            raise self._damaged()
        refuse_other(self.where, version, VERSION)

    def _numbers(self) -> list[int]:
        """The numbers of the transactions that files beside the reports are named for."""
        names, prefix = [entry.name for entry in self._objects.entries("curator/reports")], f"{LAST}-"
        numbers = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
        return [int(number) for number in numbers if number.isdecimal()]

    def _tell(self, last: Last) -> None:
        """Write the last transaction outside of the database, where a later one does not stand already."""
        name, text = _beside_reports(last.number), f"{last.number} {last.digest}".encode()

        def change(before: bytes) -> bytes:
            return before if before and self._parsed(SECRET, before).number > last.number else text

        self._objects.put(name, text)
        for number in self._numbers():
            if number < last.number:
                self._objects.delete(_beside_reports(number))
        change_beside_secret(self._objects, change)

    def _parsed(self, name: str, text: bytes) -> Last:
        if (match := _LAST.fullmatch(text)) is None:
            raise Damaged(f"{self._objects.where(name)}: damaged. {REMEDY}")
        return Last(int(match[1]), match[2].decode())

    def _make(self, outside: Mapping[str, Last]) -> None:
        """Make the database where there never was one; two processes at once agree on one. Raises ArtifactCorrupt, OSError."""
        self.refuse_new(outside)
        if self.is_there:
            return
        secret = check_value(secret_of(self._objects))
        if not self._objects.is_shared:  # another process may have just named the secret and stopped
            fsync(self._objects.root / "holders")
        if self._path is None:
            with self._faults():
                connections.create(self._url, secret)
            return
        make_to_last(self._path.parent)
        aside = self._path.with_name(f".aside-{secrets.token_hex(8)}")
        aside.mkdir(mode=0o700)
        try:
            draft = aside / self._path.name
            with self._faults():
                connections.create(URL.create("sqlite", database=str(draft)), secret)
            draft.chmod(FILE)
            fsync(draft)
            with suppress(FileExistsError):
                self._path.hardlink_to(draft)
            fsync(self._path.parent)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _beside_reports(number: int) -> str:
    """The file that tells of the transaction with this number."""
    return f"{LAST}-{number}"


def lost(where: str, condition: str) -> ArtifactCorrupt:
    """Return the fault of a part of who was asked that is missing, damaged or older than another part."""
    return ArtifactCorrupt(f"{where}: {condition}. {REMEDY}")


def check_value(secret: bytes) -> str:
    """Return what tells whether a secret is the one that the database began with."""
    return Hasher(secret).of_bytes(b"check value of the secret")
