"""A published question and an intake behind one address, and a browser that opens it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from test_vectors import protocol_of

from storage.objects.folder import FolderObjects
from storage.reports.published import publish
from tasks.page.render import STYLE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


class Intake(SimpleHTTPRequestHandler):
    """Serves a folder, and answers reports as it is set to."""

    status = 204
    received: list[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.received.append(body)
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


def published(room: Path, protocol: str, epsilon: float) -> Path:
    """A folder with the client and one protocol, as a run publishes it."""
    name = f"of-{len(list(room.glob('published/*')))}"
    terms = {"epsilon": epsilon, "dataset.question": "How do you pay?"}
    publish(FolderObjects(room), name, 1, protocol.encode(), terms, {STYLE.name: STYLE.read_bytes()})
    return room / "published" / name


@pytest.fixture
def intake(tmp_path: Path) -> Iterator[tuple[str, type[Intake], Path]]:
    """Address, settings, and folder of a server with the client and one protocol."""
    folder = published(tmp_path, protocol_of("oue").to_json(), 1.0)
    settings = type("IntakeOfOneTest", (Intake,), {"received": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(settings, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", settings, folder
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as session:
        chromium = session.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield chromium
        chromium.close()
