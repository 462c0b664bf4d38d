"""The pages of a work folder beside the Prefect UI: the list of all runs, and each run's page. Nothing else is served, and only
to this machine.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from flows.server.health import is_loopback

SERVED = re.compile(r"/(?:index\.html|runs/[A-Za-z0-9][A-Za-z0-9._-]*/report\.html)?")
PAGE = "run-page"
PAGE_TITLE = "The run's page"
"""What the artifact of a run that leads to its page is called."""
ITS_PAGE = re.compile(r"runs/[A-Za-z0-9][A-Za-z0-9._-]*/report\.html")
AT_ONCE = 200
"""How many artifacts the API gives at once."""
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def read_page(work: Path, address: str) -> bytes | None:
    """The page at an address: the list of runs or a run's page; None for anything else, and for what a link leads to.

    Each folder is opened below the one before it, and no link is followed: one that is put there meanwhile leads nowhere.
    """
    path = address.partition("?")[0]
    if SERVED.fullmatch(path) is None:
        return None
    *folders, name = (path.lstrip("/") or "index.html").split("/")
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


@contextlib.contextmanager
def pages_served(work: Path, port: int) -> Iterator[str]:
    """Serve the pages at this port, or at any free one where it is taken; gives their address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_here = is_loopback(f"http://{self.headers.get('Host', '')}")
            content = read_page(work, self.path) if is_here else None
            if content is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            self.send_response(HTTPStatus.OK)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as http.server has it
            """Nothing: who looked at which page is nobody's business."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def link_pages(work: Path, url: str, pages: str) -> None:
    """Have what the Prefect server at `url` keeps of the pages of this work folder lead to where they are served now: some were
    made before they were served, or were served elsewhere. Raises httpx.HTTPError.
    """
    import httpx  # here: every run imports this module before its first line

    found: list[dict[str, Any]] = []
    with httpx.Client(trust_env=False) as client:  # its server is on this machine
        for offset in itertools.count(0, AT_ONCE):
            wanted = {"artifacts": {"key": {"any_": [PAGE]}}, "limit": AT_ONCE, "offset": offset}
            some = client.post(f"{url}/artifacts/filter", json=wanted).raise_for_status().json()
            found += some
            if len(some) < AT_ONCE:
                break
        for artifact in found:
            page = ITS_PAGE.search(str(artifact["data"]))
            link = page and f"[{PAGE_TITLE}]({pages}/{page[0]})"
            if page and link != artifact["data"] and (work / page[0]).is_file():
                client.patch(f"{url}/artifacts/{artifact['id']}", json={"data": link}).raise_for_status()
