"""Which Prefect server a run talks to: the one PREFECT_API_URL names, else the one `ldptree ui` keeps up, else a
temporary one of its own.

A temporary server is started before anything else is imported, so that it comes up while the run reads its configuration; it
ends with the run, also with a killed one (it watches the pipe to its parent), and not before it. All of them keep their
database in the work folder.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from flows.command.ending import done_at_the_end
from flows.server import prefect_database, standing
from flows.server.health import answers, answers_at_last, forget_proxies, is_loopback, name_direct_hosts
from flows.server.pages import link_pages, pages_served
from flows.server.standing import STARTUP_SECONDS, address_stated
from ldptree.errors import ConfigError, LdptreeError

NAMED_SECONDS = 10.0
"""How long a server that the user named may take to answer."""


def environment(work: Path) -> dict[str, str]:
    """Prefect's settings for a work folder; what the user set already stays."""
    defaults = {
        "PREFECT_HOME": str(work.absolute() / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": str(STARTUP_SECONDS),
        "PREFECT_LOGGING_LEVEL": "INFO",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_CLI_COLORS": "false",
        "GX_ANALYTICS_ENABLED": "false",
    }
    return {key: os.environ.get(key, value) for key, value in defaults.items()}


class Server:
    """The server of one run. `temporary` is whether this run had to start it, `is_named` whether the user named it."""

    def __init__(self, work: Path, *, start: bool = True, again: str = "the same command") -> None:
        """Find a server, or begin to start one; does not wait for it.

        Raises LdptreeError where the folder's standing server hangs; `again` is the command that goes on from there.
        """
        os.environ.update(environment(work))
        self._home = Path(os.environ["PREFECT_HOME"])
        self._again = again
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._lock: IO[str] | None = None
        self._ends = contextlib.ExitStack()
        self.temporary = False
        self.url = os.environ.get("PREFECT_API_URL")
        self.is_named = bool(self.url)
        if not self.is_named:
            self.url = standing.find(self._home, again)
        if self.url is None and start:
            self.temporary = True
            self.url = self._begin()
        if self.url is not None:
            os.environ["PREFECT_API_URL"] = self.url
            name_direct_hosts(self.url)
            if is_loopback(self.url):
                forget_proxies()

    @property
    def has_ended(self) -> bool:
        """Whether the process that this run started is over."""
        return self._process is not None and self._process.poll() is not None

    def loss(self, how: str) -> str:
        """The message of a run whose server is lost."""
        log = f" (see {self._home / 'server.log'})" if self.temporary else f" ({self.url})"
        return f"the Prefect server of this run {how}{log}. Finished steps stand. Go on with: {self._again}"

    def wait(self) -> None:
        """Wait until the server answers. Raises LdptreeError where it does not, ConfigError where the user's own does not."""
        assert self.url is not None
        try:
            if self.temporary:
                self._wait_for_own()
            elif not answers_at_last(self.url, seconds=NAMED_SECONDS):
                raise ConfigError(
                    f"PREFECT_API_URL is {self.url}, but no Prefect server answers there. Start it, or unset the variable."
                )
        finally:
            self._release()

    def _wait_for_own(self) -> None:
        assert self.url is not None
        end = time.monotonic() + STARTUP_SECONDS
        while time.monotonic() < end:
            if answers(self.url, seconds=1):
                return
            if self.has_ended and not self._begins_anew():
                break
            time.sleep(0.05)
        raise LdptreeError(
            f"the temporary Prefect server did not start (see {self._home / 'server.log'}). "
            "Start one with `ldptree ui` and run again."
        )

    def _begins_anew(self) -> bool:
        """Whether a server that ended because of its database is started once more, without it."""
        assert self._process is not None
        if not _set_aside(self._home, self._process.returncode):
            return False
        self._start()
        return True

    def stop(self) -> None:
        """End the server, if this run started it."""
        self._release()
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._process = None
        self._ends.close()

    def _begin(self) -> str:
        self._home.mkdir(parents=True, exist_ok=True)
        self._lock = prefect_database.lock_start(self._home)
        # The port is taken here and handed over: between a look for a free one and its use it could become another's.
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._start()
        self._ends.enter_context(done_at_the_end(self._kill))
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/api"

    def _start(self) -> None:
        assert self._socket is not None
        with (self._home / "server.log").open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-m", "flows.server.process", str(self._socket.fileno())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[self._socket.fileno()],
                env=os.environ
                | {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"},
            )

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def _release(self) -> None:
        for held in (self._lock, self._socket):
            if held is not None:
                held.close()
        self._lock = self._socket = None


def start_ui(work: Path, port: int, on_ready: Callable[[str], object]) -> int:
    """Run a server with its UI in the foreground until it is interrupted, and serve the folder's pages beside it; `on_ready` is
    called with the pages' address once the server answers.

    Raises ConfigError where the port is taken, or a server of this work folder is up, LdptreeError where it does not start.
    """
    _refuse_taken(port)
    os.environ.update(environment(work))
    home = Path(os.environ["PREFECT_HOME"])
    url = f"http://127.0.0.1:{port}/api"
    name_direct_hosts(url)
    stops: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # Noted, not raised: what is raised in the middle of a line that is printed prints it twice.
        signal.signal(number, lambda number, _: stops.append(number))
    with pages_served(work.absolute(), port + 1) as pages, address_stated(home, url, pages) as is_up:
        lock = prefect_database.lock_start(home)
        process = _begin_ui(home, url, port)
        try:
            with lock:
                while not stops and not answers(url, seconds=1):
                    if process.poll() is not None:
                        if not _set_aside(home, process.returncode):
                            raise LdptreeError(f"the Prefect server did not start (see {home / 'ui.log'}).")
                        process = _begin_ui(home, url, port)
                    time.sleep(0.2)
            if not stops:
                is_up()
                threading.Thread(target=_link_pages, args=(work.absolute(), url, pages), daemon=True).start()
                on_ready(pages)
            while not stops and process.poll() is None:
                time.sleep(0.2)
            return 0 if stops else process.returncode
        finally:
            _end(process)


def _link_pages(work: Path, url: str, pages: str) -> None:
    """Have the runs so far lead to their pages; a server that does not take it is shown as it is."""
    import httpx

    with contextlib.suppress(httpx.HTTPError, ValueError):
        link_pages(work, url, pages)


def _begin_ui(home: Path, url: str, port: int) -> subprocess.Popen[bytes]:
    with (home / "ui.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "flows.server.process", "--ui", str(port)],
            env={"PREFECT_UI_URL": url.removesuffix("/api")}
            | os.environ
            | {"PREFECT_SERVER_UI_API_URL": url},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    process.kill()
    process.wait()


def _refuse_taken(port: int) -> None:
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as fault:
            reason = "is not allowed" if isinstance(fault, PermissionError) else "is taken"
            raise ConfigError(f"port {port} {reason}. Name another one with --port.") from None


def _set_aside(home: Path, code: int) -> bool:
    """Whether a server ended with `code` because its database is damaged, which then has another name now."""
    database = prefect_database.of(home)
    if code != prefect_database.DAMAGED_EXIT or database is None or not database.exists():
        return False
    aside = prefect_database.set_aside(database)
    print(
        f"ldptree: Prefect's database {database} was damaged: it is kept as {aside.name}, and a new one is begun. "
        "Artifacts, models and reports are not in it.",
        file=sys.stderr,
        flush=True,
    )
    return True


def _end_with_parent() -> None:
    """End this process when its parent does, even one that was killed: nothing else ever closes the pipe between them."""

    def watch() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _outlive_signals() -> None:
    """Ctrl-C and a termination of a whole group of processes strike a run and its server alike, and the run, which this one
    ends with, still has something to tell it.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _prepare_database() -> None:
    """End where Prefect's database is damaged, before a server that begins on it does so in its own words."""
    home = Path(os.environ["PREFECT_HOME"])
    database = prefect_database.of(home)
    if database is None:
        return
    if prefect_database.is_damaged(database):
        os._exit(prefect_database.DAMAGED_EXIT)
    prefect_database.migrate()


def _serve_ui(port: int) -> None:
    _end_with_parent()
    _prepare_database()
    sys.argv = ["prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    runpy.run_module("prefect", run_name="__main__")


def _serve(descriptor: int) -> None:
    _outlive_signals()
    _end_with_parent()
    _prepare_database()
    import uvicorn

    class OfOneRun(uvicorn.Server):
        """A server that leaves signals as they are handled."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        "prefect.server.api.server:create_app", factory=True, log_level="error", lifespan="on"
    )
    server = OfOneRun(config)
    server.run(sockets=[socket.socket(fileno=descriptor)])
    if not server.started:
        os._exit(1)


if __name__ == "__main__":
    if sys.argv[1] == "--ui":
        _serve_ui(int(sys.argv[2]))
    else:
        _serve(int(sys.argv[1]))
