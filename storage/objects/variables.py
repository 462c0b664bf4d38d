"""Variables of the environment that obstore reads for a bucket, and checks of what would end the process there."""

from __future__ import annotations

import os
import re

from ldptree.errors import ConfigError

PREFIXES = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}
VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT and so on",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_SERVICE_ACCOUNT and so on",
    "az": "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY and so on",
}
"""The variables to check, by the scheme of an address."""
KEYS_OF_S3 = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_SERVER = re.compile(r".*_(ENDPOINT|ENDPOINT_URL|BASE_URL)")
OF_CLIENT = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "randomize_addresses",
    "read_timeout",
    "root_certificate",
    "timeout",
    "user_agent",
)
"""Variables, without their prefix, that obstore knows of an HTTP client."""


def scheme_of(address: str) -> str:
    """ "s3", "gs" or "az"."""
    return address.partition("://")[0]


def check_variables(scheme: str) -> None:
    """Refuse variables at which obstore would end the process. Raises ConfigError."""
    for name, value in os.environ.items():
        if not name.startswith(PREFIXES[scheme]):
            continue
        if value != value.strip() or not value.isprintable():
            raise ConfigError(f"{name}: has a line break or blanks around it. Set it without.")
        if _SERVER.fullmatch(name) and not re.match(r"https?://[^/\s]", value):
            raise ConfigError(f"{name}: is no address of a server. Write it as https://HOST:PORT.")
    for key, other in (KEYS_OF_S3, KEYS_OF_S3[::-1]):
        if scheme == "s3" and os.environ.get(key) and not os.environ.get(other):
            raise ConfigError(f"{key}: is set without {other}. Set both.")


def client_options(scheme: str) -> dict[str, str]:
    """Return the options of the HTTP client that the environment sets, as GOOGLE_PROXY_URL.

    obstore reads these variables only where a program sets no option of the client itself.
    """
    names = {option: PREFIXES[scheme] + option.upper() for option in OF_CLIENT}
    return {option: os.environ[name] for option, name in names.items() if name in os.environ}
