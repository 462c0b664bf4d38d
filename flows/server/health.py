"""Whether a Prefect server answers, asked over HTTP; and that nobody between is asked in its place."""

from __future__ import annotations

import ipaddress
import os
import time
import urllib.request
from urllib.parse import urlsplit

ALWAYS_DIRECT = ("localhost", "127.0.0.1", "::1")


def answers(url: str, seconds: float) -> bool:
    """Whether a server answers at `url` within that time."""
    if not url.startswith(("http://", "https://")):
        return False
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({} if is_loopback(url) else None))
    try:
        with opener.open(f"{url.rstrip('/')}/health", timeout=seconds) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def answers_at_last(url: str, seconds: float) -> bool:
    """Whether a server that may be busy answers within that time, or two seconds after nobody listens there."""
    began = time.monotonic()
    while (left := seconds - (time.monotonic() - began)) > 0:
        asked = time.monotonic()
        if answers(url, seconds=left):
            return True
        is_refused = time.monotonic() - asked < 1.0
        if is_refused and time.monotonic() - began > 2.0:
            return False
        time.sleep(0.2)
    return False


def is_loopback(url: str) -> bool:
    """Whether an address is this machine's own."""
    host = _host(url)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def name_direct_hosts(url: str) -> None:
    """No proxy of the environment is asked for this machine's own addresses, by Prefect and whoever else reads it."""
    own = [*ALWAYS_DIRECT, *([_host(url)] if is_loopback(url) else [])]
    stated = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    if stated.strip() == "*":
        return
    hosts = ",".join(dict.fromkeys([h.strip() for h in stated.split(",") if h.strip()] + own))
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = hosts


def forget_proxies() -> None:
    """What talks to this machine alone needs none, and of a kind that Prefect's client does not know it would not even begin."""
    for name in [
        name for name in os.environ if name.lower().endswith("_proxy") and name.lower() != "no_proxy"
    ]:
        del os.environ[name]


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
