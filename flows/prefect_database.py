"""Prefect's own database in a work folder: whether it stands, and what happens to one that does not.

It holds what Prefect's pages show and nothing that a run needs: a damaged one is set aside, never mended and never deleted.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from urllib.parse import quote

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
