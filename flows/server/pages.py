"""The pages of a work folder, below an address of its UI: the list of all runs, and each run's page. Nothing else is served."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

PAGES = "/ldptree/"
"""Where they are, beside Prefect's own."""
SERVED = re.compile(rf"{PAGES}(?:index\.html|runs/[A-Za-z0-9][A-Za-z0-9._-]*/page\.html)?")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def read_page(work: Path, path: str) -> bytes | None:
    """Return the list of runs or a run's page at an address, or None for anything else and for the target of a link.

    Each folder is opened below the one before it, and no link is followed: one that is put there meanwhile leads nowhere.
    """
    if SERVED.fullmatch(path) is None:
        return None
    *folders, name = (path.removeprefix(PAGES) or "index.html").split("/")
    with contextlib.ExitStack() as opened:

        def open_below(above: int, part: str, flags: int) -> int:
            descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | flags, dir_fd=above)
            opened.callback(os.close, descriptor)
            return descriptor

        try:
            here = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
            opened.callback(os.close, here)
            for folder in folders:
                here = open_below(here, folder, os.O_DIRECTORY)
            file = open_below(here, name, os.O_NONBLOCK)  # a pipe would be waited for
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return None
            with open(file, "rb", closefd=False) as page:
                return page.read()
        except OSError:
            return None
