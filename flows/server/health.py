"""Ask over HTTP whether a Prefect server answers, say who can reach one, and have no proxy asked in its place."""

from __future__ import annotations

import ipaddress
import os
import urllib.request
from urllib.parse import urlsplit

OF_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def answers(url: str, seconds: float) -> bool:
    """Return whether a server answers at `url` within that time."""
    if not url.startswith(("http://", "https://")):
        return False
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=seconds) as answer:  # noqa: S310 - of HTTP, see above
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def is_loopback(url: str) -> bool:
    """Return whether an address is this machine's own."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    address = address_of(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def is_local(listen: str) -> bool:
    """Return whether a server that listens on this name or address hears this machine alone."""
    address = address_of(listen)
    return listen == "localhost" if address is None else address.is_loopback


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return a host as an address, None where it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def ask_directly() -> None:
    """Have Prefect's client and all others in this process ask no proxy for what this machine serves."""
    stated = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    hosts = ",".join(dict.fromkeys([*filter(None, map(str.strip, stated.split(","))), *OF_THIS_MACHINE]))
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = hosts
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        if os.environ[name].startswith(
            "socks"
        ):  # Prefect's client has no means for it, and would not even begin
            del os.environ[name]
