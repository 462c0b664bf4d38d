"""Prefect's own server, behind our gate: for one run, or for `ldptree ui`. A run asks the server that PREFECT_API_URL names,
else starts a temporary one.

Prefect's client would start that one too, once its flow begins and the whole server is imported in the run. It is started here
before anything else is imported, so that it comes up meanwhile. It ends with the run, also with a killed one. Each work folder
has its own database.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from flows.command.ending import done_at_the_end
from flows.server.health import answers, ask_directly, is_local
from ldptree.errors import ConfigError, LdptreeError

STARTUP_SECONDS = 180
NAMED_SECONDS = 10.0
"""How long a server that the user named may take to answer."""
OWN_PAGES = {"PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true", "PREFECT_SERVER_UI_API_URL": "/api"}
"""Settings of every server started here, whose pages call the host that served them, with a token of its own."""
OF_ONE_RUN = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1"}
"""Settings by which Prefect knows a temporary server: no pages, and none of the services that watch over deployments."""
DATABASES = ("PREFECT_API_DATABASE_CONNECTION_URL", "PREFECT_SERVER_DATABASE_CONNECTION_URL")


def environment(work: Path) -> dict[str, str]:
    """Prefect's settings for a work folder; what the user set already stays."""
    defaults = {
        "PREFECT_HOME": str(work.absolute() / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "INFO",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_CLI_COLORS": "false",
        "GX_ANALYTICS_ENABLED": "false",
    }
    if spec := find_spec("prefect"):
        # Its own files: what a `logging.yml` names is imported and called, and who may write below the work folder may write one.
        own = Path(str(spec.origin)).parent
        defaults["PREFECT_LOGGING_SETTINGS_PATH"] = str(own / "logging" / "logging.yml")
        if "PREFECT_HOME" not in os.environ:
            defaults["PREFECT_PROFILES_PATH"] = str(own / "settings" / "profiles.toml")
    if not any(os.environ.get(name) for name in DATABASES):
        # Of a database that the user named others may have runs, too.
        defaults["PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED"] = "true"
    if password := os.environ.get("PREFECT_SERVER_API_AUTH_STRING"):
        defaults["PREFECT_API_AUTH_STRING"] = password
    return {key: os.environ.get(key, value) for key, value in defaults.items()}


class Process:
    """The process of a server; it watches the pipe to this process, and ends when that is closed."""

    def __init__(
        self, taken: socket.socket, listen: str, log: str, settings: dict[str, str], work: str = ""
    ) -> None:
        """Begin to start a server at a port that is taken. `log`: the file's name in Prefect's folder; `work`: whose pages it
        serves.
        """
        home = Path(os.environ["PREFECT_HOME"])
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._log, self._taken = home / log, taken
        # Two that make one database at once would trip over each other's migrations.
        self._lock = (home / "starting.lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.address = address_of_port(listen, taken.getsockname()[1])
        own = {"PREFECT_SERVER_CORS_ALLOWED_ORIGINS": self.address, "PREFECT__SERVER_FINAL": "1"}
        with self._log.open("wb") as written:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-m", "flows.server.process", str(taken.fileno()), listen, work],
                stdin=subprocess.PIPE,
                stdout=written,
                stderr=written,
                pass_fds=[taken.fileno()],
                env=own | os.environ | OWN_PAGES | settings,
                start_new_session=True,  # a signal to a group of processes is the run's, which has still something to tell
            )

    def wait(self, again: str) -> None:
        """Wait until the server answers. Raises LdptreeError where it does not; `again` is the command that goes on then."""
        end = time.monotonic() + STARTUP_SECONDS
        while not answers(f"{self.address}/api", seconds=1):
            if self._process.poll() is not None or time.monotonic() > end:
                raise LdptreeError(self._refusal(again))
            time.sleep(0.05)
        self._release()

    def _refusal(self, again: str) -> str:
        named = next((f"that {name} names" for name in DATABASES if os.environ.get(name)), None)
        return (
            f"Prefect's server did not start (see {self._log}). If its database {named or self._log.with_name('prefect.db')} is "
            "damaged, or of another version of Prefect, move it away (artifacts, models and reports are not in it), then go on "
            f"with: {again}"
        )

    def wait_for_end(self) -> int:
        """Wait until the server ends, and return its exit code."""
        return self._process.wait()

    def end(self) -> None:
        """End the server, once it has written what it was told."""
        self._release()
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self.kill()
        self._process.wait()

    def kill(self) -> None:
        """End the server at once."""
        self._process.kill()

    def _release(self) -> None:
        self._lock.close()
        self._taken.close()


class Server:
    """The server of one run. `temporary` is whether this run had to start it."""

    def __init__(self, work: Path, *, again: str = "the same command") -> None:
        """Take the server that is named, or begin to start one. `again`: the command that goes on where it is lost."""
        os.environ.update(environment(work))
        ask_directly()
        self._again = again
        self._ends = contextlib.ExitStack()
        self._process: Process | None = None
        self.url = os.environ.get("PREFECT_API_URL", "")
        self.temporary = not self.url
        if self.temporary:
            self._process = Process(take_port("127.0.0.1", 0), "127.0.0.1", "server.log", OF_ONE_RUN)
            self._ends.enter_context(done_at_the_end(self._process.kill))
            self.url = f"{self._process.address}/api"
            os.environ.setdefault(
                "PREFECT_CLIENT_MAX_RETRIES", "3"
            )  # a server that has ended does not come back
        os.environ["PREFECT_API_URL"] = self.url

    def wait(self) -> None:
        """Wait until the server answers. Raises LdptreeError where it does not, ConfigError where the user's own does not."""
        if self._process is None:
            check_named(self.url)
        else:
            self._process.wait(self._again)

    @contextlib.contextmanager
    def convert_loss(self) -> Iterator[None]:
        """Raise LdptreeError in place of what Prefect makes of a server that is lost in here."""
        try:
            yield
        except LdptreeError:
            raise
        except Exception:
            if answers(self.url, seconds=NAMED_SECONDS):
                raise
            raise LdptreeError(
                f"the Prefect server of this run ({self.url}) does not answer any more. Finished steps are kept. Continue with: "
                f"{self._again}"
            ) from None

    def stop(self) -> None:
        """End the server, if this run started it."""
        if self._process is not None:
            self._process.end()
            self._process = None
        self._ends.close()


def check_named(url: str) -> None:
    """Raise ConfigError where no server answers at PREFECT_API_URL, or it wants another password."""
    if not answers(url, seconds=NAMED_SECONDS):
        raise ConfigError(
            f"PREFECT_API_URL is {url}, but no Prefect server answers there. Start it, or unset the variable."
        )
    if os.environ.get("PREFECT_API_KEY"):  # of Prefect's cloud, which has other names for all this
        return
    password = os.environ.get("PREFECT_API_AUTH_STRING", "")
    request = urllib.request.Request(f"{url.rstrip('/')}/admin/version")  # noqa: S310 - it answered before
    request.add_header("Authorization", f"Basic {base64.b64encode(password.encode()).decode()}")
    try:
        urllib.request.urlopen(request, timeout=NAMED_SECONDS).close()  # noqa: S310 - the same
    except urllib.error.HTTPError as refused:
        if refused.code == 401:
            raise ConfigError(
                f"the Prefect server {url} asks for a password. Set PREFECT_API_AUTH_STRING to what its "
                "PREFECT_SERVER_API_AUTH_STRING is."
            ) from None
    except OSError:  # told by Prefect's client, with what it asks next
        return


def start_ui(work: Path, port: int, listen: str, on_ready: Callable[[str], object]) -> int:
    """Run a server with its UI and the folder's pages in the foreground until it is interrupted; `on_ready` is called with its
    address once it answers.

    Raises ConfigError where the port is taken, or other machines would be answered without a password; LdptreeError where it does
    not start.
    """
    user, _, password = os.environ.get("PREFECT_SERVER_API_AUTH_STRING", "").partition(":")
    if not is_local(listen) and not (user.strip() and password.strip()):
        raise ConfigError(
            f"--listen {listen}: other machines could read and start runs there. Set PREFECT_SERVER_API_AUTH_STRING to a "
            "user:password of your own first, and PREFECT_API_AUTH_STRING to the same where runs and workers are started."
        )
    taken = take_port(listen, port)
    os.environ.update(environment(work))
    ask_directly()
    address = address_of_port(listen, port)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))  # and the server with it
    ui_url = {"PREFECT_UI_URL": os.environ.get("PREFECT_UI_URL", address)}
    process = Process(taken, listen, "ui.log", ui_url, str(work.absolute()))
    process.wait(f"ldptree ui --work {work}")
    on_ready(address)
    return process.wait_for_end()


def address_of_port(listen: str, port: int) -> str:
    """Return the address at which this machine finds a server that listens there."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen, listen)  # noqa: S104 - where it is named, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def take_port(listen: str, port: int) -> socket.socket:
    """Take a port, to be handed over: between a look for a free one and its use it could become another's. Raises ConfigError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(listen, port, type=socket.SOCK_STREAM)[0]
        taken = socket.socket(family, kind, protocol)
    except OSError as fault:
        raise ConfigError(f"--listen {listen}: no address of this machine ({fault.strerror}).") from None
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
    except OSError as fault:
        taken.close()
        if fault.errno == errno.EADDRNOTAVAIL:
            raise ConfigError(f"--listen {listen}: no address of this machine.") from None
        reason = "is not allowed" if isinstance(fault, PermissionError) else "is taken"
        raise ConfigError(f"port {port} {reason}. Name another one with --port.") from None
    return taken


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # nothing is sent: the pipe is closed when the parent ends, even a killed one
    os._exit(0)


def _serve(descriptor: int, listen: str, work: str) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import uvicorn
    from prefect.server.api.server import create_app

    from flows.server.gate import Gate

    app = Gate(create_app(), listen, Path(work) if work else None)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    server.run(sockets=[socket.socket(fileno=descriptor)])
    if not server.started:
        os._exit(1)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), *sys.argv[2:])
