"""The holders' database of a simulation: SQLite itself, where each statement that writes is a step.

A transaction that waits gives way. What is committed lasts: that is SQLite's promise, which its own tests keep.
"""

from __future__ import annotations

import errno
from contextlib import contextmanager
from pathlib import Path

import greenlet
from sqlalchemy import URL, Connection
from sqlalchemy.exc import OperationalError

from simulation.bucket import Bucket
from simulation.disk import Disk
from simulation.witness import Witness
from storage.holders.secret import SECRET
from storage.ledger import connections
from storage.ledger.accounts import Account
from storage.ledger.database import LAST, Database
from storage.ledger.transactions import Transaction
from storage.objects.object_store import NotReached


class HoldersDatabase:
    """The one database of a simulated disk, or of all machines that use a simulated bucket."""

    def __init__(self, root: Path, world: Disk | Bucket, schedule, witness: Witness) -> None:
        is_bucket = isinstance(world, Bucket)
        self.path = root / ("database.db" if is_bucket else connections.DATABASE)
        self._world, self._schedule, self._witness = world, schedule, witness
        self._charging: dict[object, tuple[str, float | None]] = {}

    def patched(self, patch) -> None:
        """Beginning, inserting and committing are steps; what a transaction charges is told once it is committed."""
        connections._engine.cache_clear()
        patch.setattr(connections, "PATIENCE", 0)
        patch.setattr(Connection, "begin", self._begin(Connection.begin))
        patch.setattr(connections, "commit", self._commit(connections.commit))
        patch.setattr(Transaction, "insert", self._insert(Transaction.insert))
        patch.setattr(Account, "_insert", self._note_charge(Account._insert))
        patch.setattr(Account, "charge", self._name_charge(Account.charge))
        patch.setattr(Database, "_tell", self._note_told(Database._tell))
        if isinstance(self._world, Bucket):
            url = URL.create("sqlite", database=str(self.path))
            patch.setattr(connections, "url_of", lambda _: url)

    @contextmanager
    def missing(self):
        """The same without the database."""
        away = self.path.with_name("away")
        self.path.rename(away)
        yield
        away.rename(self.path)

    def _begin(self, begin):
        def wait_and_begin(connection):
            is_writing = connection.get_execution_options()["first"] == "BEGIN IMMEDIATE"
            name = "begin charge" if greenlet.getcurrent() in self._charging else "begin"
            self._step(name if is_writing else "look")
            while True:
                try:
                    return begin(connection)
                except OperationalError:
                    if not is_writing or not self._schedule.is_acting:
                        raise
                self._schedule.give_way()

        return wait_and_begin

    def _insert(self, insert):
        def step(transaction, table, **values):
            self._step(f"insert {table.name}")
            insert(transaction, table, **values)
            transaction._inserting.info.setdefault("tables", []).append(table.name)

        return step

    def _name_charge(self, charge):
        def named(account, charges, cap, room=(), *, joining=None):
            self._charging[greenlet.getcurrent()] = account.name, cap
            try:
                return charge(account, charges, cap, room, joining=joining)
            finally:
                del self._charging[greenlet.getcurrent()]

        return named

    def _note_told(self, tell):
        def note(database, last):
            tell(database, last)
            for name in (LAST, SECRET):
                self._witness.note_last(name, last.number)

        return note

    def _note_charge(self, insert):
        def note(account, transaction, charge):
            insert(account, transaction, charge)
            transaction._inserting.info.setdefault("charges", []).append((account.name, charge))

        return note

    def _commit(self, commit):
        def step(connection):
            fault = self._step(f"commit {' '.join(connection.info['tables'])}", "lost")
            commit(connection)
            if "caps" in connection.info["tables"]:
                self._witness.state_cap(*self._charging[greenlet.getcurrent()])
            for account, charge in connection.info.get("charges", ()):
                self._witness.charge(account, charge, self._charging[greenlet.getcurrent()][1])
            if fault == "lost":
                self._world.failures += 1
                raise _not_reached()
            self._schedule.reach(("answer", "commit"))

        return step

    def _step(self, what: str, *fitting: str) -> str:
        """A step of the disk with the database, or a request to the server that has it."""
        if isinstance(self._world, Disk):
            self._world._step(what, fitting=() if what == "look" else ("error",))
            return ""
        fault = self._world._reach((what,), ("refused", *fitting))
        if fault == "refused":
            self._world.failures += 1
            raise _not_reached()
        return fault


def _not_reached() -> NotReached:
    return NotReached(errno.EIO, "does not answer as it should", "the database")
