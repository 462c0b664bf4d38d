"""The address of the server that `ldptree ui` keeps up for a work folder, and how later runs find it.

While the server is kept up its address file is locked. Who finds the file unlocked knows that its `ldptree ui` is over, however
it ended, and whatever process has its number by now.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from flows.server.health import answers
from ldptree.errors import ConfigError, LdptreeError

ADDRESS_FILE = "server.json"
STARTUP_SECONDS = 180
PATIENCE_SECONDS = 10.0
"""How long a server that has answered before may say nothing."""


def find(home: Path, again: str) -> str | None:
    """The address of the server that is kept up for Prefect's folder `home`, None where there is none.

    One that comes up is waited for. Raises LdptreeError where it hangs; `again` is what to do after it is ended.
    """
    path = home / ADDRESS_FILE
    began = time.monotonic()
    while _is_locked(path):
        stated = _read(path)
        url = str(stated.get("url", ""))
        if url and answers(url, seconds=2):
            return url
        if time.monotonic() - began > (PATIENCE_SECONDS if stated.get("is_up") else STARTUP_SECONDS):
            raise LdptreeError(
                f"the Prefect server that `ldptree ui` keeps up here ({url.removesuffix('/api')}) does not answer. "
                f"End it (kill -9 {stated.get('pid', 'its process')}), then go on with: {again}"
            )
        time.sleep(0.2)
    return None


def find_pages(home: Path) -> str | None:
    """Where the pages of a work folder are served beside the server that is kept up for it; None where there is none."""
    path = home / ADDRESS_FILE
    return str(_read(path).get("pages", "")) or None if _is_locked(path) else None


@contextlib.contextmanager
def address_stated(home: Path, url: str, pages: str = "") -> Iterator[Callable[[], None]]:
    """Tell later runs where a standing server is, and the pages beside it, while it stands; to be called once it answers. Raises
    ConfigError where one stands already.
    """
    home.mkdir(parents=True, exist_ok=True)
    path = home / ADDRESS_FILE
    with path.open("a+") as file:
        if not _locks(file):
            other = str(_read(path).get("url", "")).removesuffix("/api")
            raise ConfigError(f"{home.parent}: a server of this work folder is up already, at {other}.")

        def state(*, is_up: bool) -> None:
            file.truncate(0)
            file.write(json.dumps({"url": url, "pid": os.getpid(), "is_up": is_up, "pages": pages}))
            file.flush()

        state(is_up=False)
        try:
            yield lambda: state(is_up=True)
        finally:
            file.truncate(0)


def _locks(file: IO[str]) -> bool:
    """Whether the lock was to be had; a run that looks whether somebody holds it has it for a moment."""
    for _ in range(20):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.05)
    return False


def _is_locked(path: Path) -> bool:
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _read(path: Path) -> dict[str, Any]:
    """What is stated; nothing while it is being written."""
    try:
        stated = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return stated if isinstance(stated, dict) else {}
