"""Prefect's own database in a work folder: whether it stands, and what happens to one that does not.

It holds what Prefect's pages show and nothing that a run needs: a damaged one is set aside, never mended and never deleted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO
from urllib.parse import quote

from flows.server.standing import STARTUP_SECONDS
from ldptree.errors import LdptreeError

NAME = "prefect.db"
DAMAGED_EXIT = 65
"""What a server exits with whose database cannot be used."""
_OF_THE_MOMENT = ("locked", "busy", "disk is full", "readonly", "unable to open", "disk I/O error")
"""What SQLite says of trouble that another database would have as well."""


def of(home: Path) -> Path | None:
    """The database that Prefect keeps in its folder; None where the user named another one."""
    named = ("PREFECT_API_DATABASE_CONNECTION_URL", "PREFECT_SERVER_DATABASE_CONNECTION_URL")
    return None if any(os.environ.get(name) for name in named) else home / NAME


def is_damaged(path: Path) -> bool:
    """Whether what stands there is no whole SQLite database. None at all is not damaged."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return True
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=5.0)
        try:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",))
        finally:
            connection.close()
    except sqlite3.DatabaseError as fault:
        return is_damage(fault)
    except OSError:
        return False


def is_damage(fault: Exception) -> bool:
    """Whether a fault of a database lies in the database, and not in the disk or in who else uses it."""
    return not any(words in str(fault) for words in _OF_THE_MOMENT)


def migrate() -> None:
    """Bring the database up to Prefect's version. Exits with `DAMAGED_EXIT` where a cut migration, or a later Prefect, left it
    as this one cannot use it.
    """
    import asyncio

    from alembic.util import CommandError
    from prefect.server.database import provide_database_interface
    from sqlalchemy.exc import SQLAlchemyError

    try:
        asyncio.run(provide_database_interface().create_db())
    except (SQLAlchemyError, CommandError) as fault:
        if not is_damage(fault):
            raise
        print(fault, flush=True)
        os._exit(DAMAGED_EXIT)


def lock_start(home: Path) -> IO[str]:
    """A lock that whoever starts a server holds until it answers: two that make one database at once would trip over each
    other's migrations. Raises LdptreeError where another has it for longer than a server takes to start.
    """
    path = home / "starting.lock"
    file = path.open("w")
    end = time.monotonic() + STARTUP_SECONDS
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        if time.monotonic() > end:
            file.close()
            raise LdptreeError(
                f"{path}: another run has been starting its Prefect server for {STARTUP_SECONDS} seconds. "
                "End it, or start a server with `ldptree ui`, and run again."
            )
        time.sleep(0.1)


def set_aside(path: Path) -> Path:
    """Give a damaged database another name; returns it."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + suffix))
    return aside


def tidy(path: Path, kept: Sequence[str]) -> None:
    """Delete what the API leaves of flow runs that are gone (their events, and logs and artifacts that came late), and give the
    room back to the disk. Only while no server is up; where one came up meanwhile the rest waits for another time.

    Args:
        path: the database.
        kept: the ids of the flow runs that are kept.
    """
    import asyncio

    from sqlalchemy.exc import OperationalError

    with contextlib.suppress(sqlite3.OperationalError, OperationalError), lock_start(path.parent):
        asyncio.run(_forget(kept))
        with contextlib.closing(sqlite3.connect(path, timeout=5.0)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def forget_events(path: Path, gone: Sequence[str]) -> None:
    """Delete the events of flow runs that are gone, beside a server that is up: the API deletes none, and Prefect keeps them for
    days. Where the database is busy they wait for another time.

    Args:
        path: the database.
        gone: the ids of the flow runs.
    """
    with (
        contextlib.suppress(sqlite3.OperationalError),
        contextlib.closing(sqlite3.connect(path, timeout=5.0)) as connection,
        connection,
    ):
        connection.execute("CREATE TEMP TABLE gone AS SELECT '' AS resource, '' AS event WHERE false")
        connection.executemany(
            "INSERT INTO gone SELECT resource_id, event_id FROM event_resources WHERE resource_id = ?",
            [(f"prefect.flow-run.{one}",) for one in gone],
        )
        connection.execute("DELETE FROM events WHERE id IN (SELECT event FROM gone)")
        connection.execute("DELETE FROM event_resources WHERE event_id IN (SELECT event FROM gone)")


async def _forget(kept: Sequence[str]) -> None:
    import sqlalchemy as sa
    from prefect.server.database import provide_database_interface
    from prefect.server.services import db_vacuum

    db = provide_database_interface()
    await db_vacuum.vacuum_orphaned_logs(db=db)
    await db_vacuum.vacuum_orphaned_artifacts(db=db)
    await db_vacuum.vacuum_stale_artifact_collections(db=db)
    of_kept = [f"prefect.flow-run.{one}" for one in kept]
    about_kept = sa.select(db.EventResource.event_id).where(db.EventResource.resource_id.in_(of_kept))
    async with db.session_context(begin_transaction=True) as session:
        await session.execute(sa.delete(db.Event).where(db.Event.id.not_in(about_kept)))
        await session.execute(
            sa.delete(db.EventResource).where(db.EventResource.event_id.not_in(sa.select(db.Event.id)))
        )
    await (await db.engine()).dispose()
