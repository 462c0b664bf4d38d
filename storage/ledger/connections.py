"""Connect to the holders' database, SQLite in a file or PostgreSQL, and say in our words what it refuses.

One transaction is written at a time; whoever comes meanwhile waits.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from ldptree.errors import ConfigError, LdptreeError
from storage.ledger.schema import APPLICATION, ORIGIN, TABLES, TRANSACTIONS, VERSION
from storage.ledger.transactions import Changed, Transaction
from storage.objects.object_store import NotReached, ObjectStore

DATABASE = "holders/holders.db"
VARIABLE = "LDPTREE_DATABASE"
PATIENCE = 30
"""Seconds that a transaction waits for the one before it."""
Purpose = Literal["read", "write", "create"]
_FIRST: dict[str, dict[Purpose, str]] = {
    "sqlite": {"read": "BEGIN", "write": "BEGIN IMMEDIATE", "create": "BEGIN IMMEDIATE"},
    "postgresql": {
        "read": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "write": f"LOCK TABLE {TRANSACTIONS.name} IN EXCLUSIVE MODE",
        "create": f"SELECT pg_advisory_xact_lock({APPLICATION})",
    },
}
"""The first statement of a transaction: of those that write, one goes on at a time."""
_FULL, _IO, _BUSY = (13,), 10, (5, 6)
ROOM = 1 << 16
"""Bytes that the files beside a database take at least."""
_REFUSED = {8: errno.EACCES, 10: errno.EIO, 14: errno.EACCES, 7: errno.ENOMEM}
"""SQLite's result codes, as the system's errors."""


def is_named() -> bool:
    """Return whether LDPTREE_DATABASE says where the database is."""
    return bool(os.environ.get(VARIABLE))


def url_of(objects: ObjectStore) -> URL:
    """Return the address of a work folder's database: what LDPTREE_DATABASE says, else a file in the holders' zone.

    Raises ConfigError where a bucket has none, and where it is no address.
    """
    address = os.environ.get(VARIABLE, "")
    if not address and objects.is_shared:
        raise ConfigError(
            f"work folder {objects.where('')}: a bucket holds no database, and who was asked is kept in one. Set {VARIABLE} to "
            "a file on a disk (for one machine) or to postgresql+psycopg://USER@HOST/NAME (for several)."
        )
    if "://" not in address:
        path = Path(address).absolute() if address else objects.root / DATABASE
        return URL.create("sqlite", database=str(path))
    try:
        url = make_url(address)
        is_known = url.drivername == "postgresql+psycopg" and bool(url.database)
        _engine(url) if is_known else None
    except (ArgumentError, ValueError):  # no address, or a port that is no number
        is_known = False
    except ModuleNotFoundError:
        raise ConfigError(
            f'{VARIABLE}: PostgreSQL needs a driver. Run: pip install "ldptree-pipeline[postgresql]"'
        ) from None
    if not is_known:
        raise ConfigError(
            f"{VARIABLE}: no address of a database. Write the path of a file, or postgresql+psycopg://USER@HOST/NAME."
        )
    return url


@contextmanager
def connected(url: URL, purpose: Purpose) -> Iterator[Connection]:
    """Connect and begin a transaction, which is undone unless it is committed."""
    with _engine(_readable(url) if purpose == "read" else url).connect() as connection:
        connection.execution_options(first=_FIRST[url.get_backend_name()][purpose]).begin()
        yield connection


def commit(connection: Connection) -> None:
    """Commit a transaction, which from then on outlasts a loss of power."""
    connection.commit()


def create(url: URL, secret: str) -> None:
    """Create the tables, and the first transaction with the check value of the holders' secret, where there are none."""
    is_file = url.get_backend_name() == "sqlite"
    with connected(url, "create") as connection:
        if inspect(connection).has_table(ORIGIN.name):
            return
        TABLES.create_all(connection)
        if is_file:
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
            connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")
        first = Transaction(connection, None)
        first.insert(ORIGIN, version=VERSION, secret=secret, salt=secrets.token_hex(16))
        first.finish()
        connection.commit()
    if is_file:  # not before: a full disk would leave what was committed in a file beside, which is not moved to its place
        with closing(_engine(url).raw_connection()) as raw:
            raw.cursor().execute("PRAGMA journal_mode = WAL")


def copy(url: URL, to: Path) -> None:
    """Copy a database of SQLite as it is at one moment into a file; whoever writes meanwhile goes on. Raises sqlite3.Error."""
    with closing(_engine(_readable(url)).raw_connection()) as raw, closing(sqlite3.connect(to)) as target:
        raw.driver_connection.backup(target)  # type: ignore[union-attr]


def _readable(url: URL) -> URL:
    """Return the address for who only reads: beside a file SQLite would write, also on a disk that may only be read."""
    path = Path(url.database or "")
    if url.get_backend_name() != "sqlite" or not os.statvfs(path.parent).f_flag & os.ST_RDONLY:
        return url
    is_left = path.with_name(
        f"{path.name}-wal"
    ).exists()  # by whoever wrote last: without it nothing would be read from there
    way = {"mode": "ro"} if is_left else {"immutable": "1"}
    return URL.create("sqlite", database=f"file:{quote(str(path))}", query={"uri": "true"} | way)


def version_of(connection: Connection) -> int | None:
    """Return the version of the schema; None where it is no holders' database."""
    if connection.dialect.name != "sqlite":
        return connection.execute(select(ORIGIN.c.version)).scalar()
    application = connection.exec_driver_sql("PRAGMA application_id").scalar()
    version: int | None = connection.exec_driver_sql("PRAGMA user_version").scalar()
    return version if application == APPLICATION else None


@cache
def _engine(url: URL) -> Engine:
    is_file = url.get_backend_name() == "sqlite"
    arguments: dict[str, Any] = {"options": f"-c lock_timeout={PATIENCE}s", "connect_timeout": PATIENCE}
    if is_file:
        arguments = {"timeout": PATIENCE, "isolation_level": None}
    # A message of the library would quote what was to be written.
    engine = create_engine(url, poolclass=NullPool, connect_args=arguments, hide_parameters=True)
    if is_file:
        event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous = FULL"))
    event.listen(engine, "begin", lambda it: it.exec_driver_sql(it.get_execution_options()["first"]))
    return engine


@contextmanager
def faults_in_words(where: str, damaged: Callable[[], LdptreeError]) -> Iterator[None]:
    """Raise what the database raises in our words, as OSError, `damaged` or LdptreeError."""
    try:
        yield
    except (Changed, UnicodeDecodeError):
        raise damaged() from None
    except (
        DBAPIError,
        sqlite3.Error,
    ) as fault:  # of SQLite's own connection, too: a statement outside of transactions
        own = getattr(fault, "orig", fault)
        code, state = getattr(own, "sqlite_errorcode", None), getattr(own, "sqlstate", None)
        raise _in_words(code, state, where, damaged) from None


def _is_full(path: str) -> bool:
    """Return whether the disk has no room for the file of a transaction, which SQLite calls an error of input or output."""
    disk = os.statvfs(Path(path).parent)
    return disk.f_bavail * disk.f_frsize < ROOM


def _in_words(
    code: int | None, state: str | None, where: str, damaged: Callable[[], LdptreeError]
) -> Exception:
    primary = None if code is None else code & 0xFF
    if primary in _BUSY or state == "55P03":
        return LdptreeError(
            f"{where}: another process has held it for {PATIENCE} seconds. Find out which one, and run the same command: it "
            "goes on from there."
        )
    if primary in _FULL or (primary == _IO and _is_full(where)):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), where)
    if primary in _REFUSED:
        return OSError(_REFUSED[primary], os.strerror(_REFUSED[primary]), where)
    if primary is None and state is None and "://" in where:
        return NotReached(errno.EIO, "does not answer as it should", where)
    return damaged()
