"""The pages of a work folder beside the Prefect UI: the list of all runs, and each run's page. Nothing else is served, and only
to this machine.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from flows.server.health import is_loopback

SERVED = re.compile(r"/(?:index\.html|runs/[A-Za-z0-9][A-Za-z0-9._-]*/report\.html)?")
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def find_page(work: Path, address: str) -> Path | None:
    """The file that an address names: the list of runs or a run's page; None for anything else, and for what a link leads to."""
    path = address.partition("?")[0]
    if SERVED.fullmatch(path) is None:
        return None
    file = work / (path.lstrip("/") or "index.html")
    is_ours = not any(
        part.is_symlink() for part in (file, *file.parents) if part.is_relative_to(work) and part != work
    )
    return file if is_ours and file.is_file() else None


@contextlib.contextmanager
def pages_served(work: Path, port: int) -> Iterator[str]:
    """Serve the pages at this port, or at any free one where it is taken; gives their address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_here = is_loopback(f"http://{self.headers.get('Host', '')}")
            file = find_page(work, self.path) if is_here else None
            if file is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            content = file.read_bytes()
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
