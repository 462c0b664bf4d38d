"""The gate before Prefect's pages and API, and the pages of a work folder beside them: they answer their own pages and programs
and no page of anybody else.

A browser says by which name it found a server (Host), and whose page asks (Origin). A name that somebody else may lead to this
machine (DNS rebinding) is refused, and so is a page from elsewhere, also where it opens a websocket. Its own pages load nothing
from elsewhere and send nothing there: Prefect's would ask an analytics host, and show pictures that an artifact names.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from flows.server.health import address_of, is_local, is_loopback
from flows.server.pages import HEADERS, PAGES, read_page

POLICY_VIOLATION = 1008
_HOST = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d+)?", re.ASCII)
"""A name or an address, and a port. Users, paths and backslashes are read in more than one way."""
CONTENT_POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; form-action 'self'; frame-ancestors 'none'"
)


class Gate:
    """An application that answers this host alone."""

    def __init__(self, app: ASGIApp, listen: str, work: Path | None = None) -> None:
        """Put a gate before `app`. `listen`: the name or address on which it listens; `work`: the folder whose pages it has."""
        self._app = app
        self._work = work
        self._password = os.environ.get("PREFECT_SERVER_API_AUTH_STRING")
        self._listen = listen
        self._is_local = is_local(listen)
        self._origins = os.environ.get("PREFECT_SERVER_CORS_ALLOWED_ORIGINS", "").split(",")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as the application does, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif self._is_own(Headers(scope=scope)):
            is_page = scope["type"] == "http" and scope["path"].startswith(PAGES)
            if is_page and self._work is not None:
                await (await self._answer_page(scope, self._work))(scope, receive, send)
            else:
                await self._app(scope, receive, _keep_in(send))
        elif scope["type"] == "websocket":
            await WebSocketClose(POLICY_VIOLATION)(scope, receive, send)
        else:
            refusal = PlainTextResponse("This server answers its own pages alone.\n", status_code=403)
            await refusal(scope, receive, send)

    async def _answer_page(self, scope: Scope, work: Path) -> Response:
        """The page of a run; where Prefect's API has a password, to who knows it."""
        if self._password:
            wanted = f"Basic {base64.b64encode(self._password.encode()).decode()}"
            stated = Headers(scope=scope).get("authorization", "")
            if not secrets.compare_digest(wanted.encode(), stated.encode()):
                return PlainTextResponse(
                    "A password, please.\n", 401, {"WWW-Authenticate": 'Basic realm="ldptree"'}
                )
        page = await asyncio.to_thread(read_page, work, scope["path"])
        if page is None:
            return PlainTextResponse("There is no such page.\n", 404)
        return Response(page, media_type="text/html", headers=HEADERS)

    def _is_own(self, headers: Headers) -> bool:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_named(host):
            return False
        return origin is None or origin in (f"http://{host}", f"https://{host}", *self._origins)

    def _is_named(self, host: str) -> bool:
        """Return whether a host is this machine's address. Others can make a name point here, but not an address."""
        if _HOST.fullmatch(host) is None:
            return False
        if is_loopback(f"http://{host}"):
            return True
        if self._is_local:
            return False
        name = _name(host)
        return name == self._listen or address_of(name) is not None


def _keep_in(send: Send) -> Send:
    """Have pages load from here alone."""

    async def send_with_policy(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["Content-Security-Policy"] = CONTENT_POLICY
        await send(message)

    return send_with_policy


def _name(host: str) -> str:
    try:
        return urlsplit(f"http://{host}").hostname or ""
    except ValueError:
        return ""
