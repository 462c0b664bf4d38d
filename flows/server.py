"""Which Prefect server a run talks to: the one PREFECT_API_URL names, else the one `ldptree ui` keeps up, else a
temporary one of its own.

A temporary server is started before anything else is imported, so that it comes up while the run reads its configuration; it
ends with the run, also with a killed one (it watches the pipe to its parent), and not before it. All of them keep their
database in the work folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from ldptree.errors import ConfigError, LdptreeError

STARTUP_SECONDS = 180
ADDRESS_FILE = "server.json"


def environment(work: Path) -> dict[str, str]:
    """Prefect's settings for a work folder; what the user set already stays."""
    defaults = {
        "PREFECT_HOME": str(work.absolute() / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": str(STARTUP_SECONDS),
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_CLI_COLORS": "false",
        "GX_ANALYTICS_ENABLED": "false",
    }
    return {key: os.environ.get(key, value) for key, value in defaults.items()}


class Server:
    """The server of one run. `temporary` is whether this run had to start it."""

    def __init__(self, work: Path, *, start: bool = True) -> None:
        """Find a server, or begin to start one; does not wait for it."""
        os.environ.update(environment(work))
        self._home = Path(os.environ["PREFECT_HOME"])
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None
        self.temporary = False
        self.url = os.environ.get("PREFECT_API_URL") or _standing(self._home)
        if self.url is None and start:
            self.temporary = True
            self._begin()
        if self.url is not None:
            os.environ["PREFECT_API_URL"] = self.url

    def wait(self) -> None:
        """Wait until the server answers. Raises LdptreeError where it does not, ConfigError where the user's own does not."""
        assert self.url is not None
        try:
            if not self.temporary:
                if not _answers(self.url, seconds=5):
                    raise ConfigError(
                        f"PREFECT_API_URL is {self.url}, but no Prefect server answers there. Start it, or unset the variable."
                    )
                return
            assert self._process is not None
            end = time.monotonic() + STARTUP_SECONDS
            while time.monotonic() < end:
                if _answers(self.url, seconds=1):
                    return
                if self._process.poll() is not None:
                    break
                time.sleep(0.05)
            raise LdptreeError(
                f"the temporary Prefect server did not start (see {self._home / 'server.log'}). "
                "Start one with `ldptree ui` and run again."
            )
        finally:
            self._release()

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
            self._process = None

    def _begin(self) -> None:
        self._home.mkdir(parents=True, exist_ok=True)
        # Two servers that make one database at once would trip over each other's migrations.
        self._lock = (self._home / "starting.lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}/api"
        with (self._home / "server.log").open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-m", "flows.server", str(port)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=os.environ
                | {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"},
            )

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


@contextlib.contextmanager
def address_stated(work: Path, url: str) -> Iterator[None]:
    """Tell later runs of this work folder where a standing server is, while it stands."""
    path = Path(environment(work)["PREFECT_HOME"]) / ADDRESS_FILE
    if (standing := _standing(path.parent)) is not None:
        raise ConfigError(
            f"{work}: a server of this work folder is up already, at {standing.removesuffix('/api')}."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"url": url, "pid": os.getpid()}))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def start_ui(work: Path, port: int, on_ready: Callable[[], object]) -> int:
    """Run a server with its UI in the foreground until it is interrupted; `on_ready` is called once it answers.

    Raises ConfigError where the port is taken, or a server of this work folder is up.
    """
    with contextlib.closing(socket.socket()) as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise ConfigError(f"port {port} is taken. Name another one with --port.")
    url = f"http://127.0.0.1:{port}/api"
    settings: Mapping[str, str] = os.environ | environment(work) | {"PREFECT_SERVER_UI_API_URL": url}
    command = [sys.executable, "-m", "flows.server", "--ui", str(port)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended politely either way
    with address_stated(work, url):
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            command, env=dict(settings), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        try:
            while process.poll() is None and not _answers(url, seconds=1):
                time.sleep(0.2)
            if process.poll() is None:
                on_ready()
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            return 0


def _standing(home: Path) -> str | None:
    """The address of the server that `ldptree ui` keeps up for this folder; one that is coming up is waited for."""
    try:
        stated = json.loads((home / ADDRESS_FILE).read_text())
        url, pid = str(stated["url"]), int(stated["pid"])
    except (OSError, ValueError, KeyError):
        return None
    end = time.monotonic() + STARTUP_SECONDS
    # Of a `ui` that was killed the address may be another folder's server by now.
    while _is_alive(pid) and time.monotonic() < end:
        if _answers(url, seconds=2):
            return url
        time.sleep(0.2)
    return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as fault:
        return isinstance(fault, PermissionError)  # somebody else's
    return True


def _answers(url: str, seconds: float) -> bool:
    if not url.startswith(("http://", "https://")):
        return False
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=seconds) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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


def _serve_ui(port: int) -> None:
    _end_with_parent()
    sys.argv = ["prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    runpy.run_module("prefect", run_name="__main__")


def _serve(port: int) -> None:
    _outlive_signals()
    _end_with_parent()
    import uvicorn

    class OfOneRun(uvicorn.Server):
        """A server that leaves signals as they are handled."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        "prefect.server.api.server:create_app",
        factory=True,
        host="127.0.0.1",
        port=port,
        log_level="error",
        lifespan="on",
    )
    server = OfOneRun(config)
    server.run()
    if not server.started:
        sys.exit(1)


if __name__ == "__main__":
    if sys.argv[1] == "--ui":
        _serve_ui(int(sys.argv[2]))
    else:
        _serve(int(sys.argv[1]))
