"""What the environment says for a bucket, by the scheme of its address, and what is wrong with that."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from ldptree.errors import ConfigError
from storage.objects.two_sides import Side

PREFIXES = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}
VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT and so on",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_SERVICE_ACCOUNT and so on",
    "az": "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY and so on",
}
"""What a person looks after, by the scheme of an address."""
CREDENTIALS = {
    "s3": ("AWS_ACCESS_KEY_ID", r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY)"),
    "gs": (
        "GOOGLE_SERVICE_ACCOUNT",
        r"GOOGLE_(BEARER_TOKEN|SERVICE_ACCOUNT(_PATH|_KEY)?|APPLICATION_CREDENTIALS)",
    ),
    "az": (
        "AZURE_STORAGE_ACCOUNT_KEY",
        r"AZURE_(STORAGE_)?(ACCOUNT_KEY|ACCESS_KEY|MASTER_KEY|SAS_KEY|SAS_TOKEN|TOKEN|CLIENT_SECRET|FEDERATED_TOKEN_FILE)",
    ),
}
"""One of the variables that say who somebody is, and all of them."""
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
KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "token",
}


def scheme_of(address: str) -> str:
    """ "s3", "gs" or "az"."""
    return address.partition("://")[0]


def options_of(side: Side, scheme: str) -> dict[str, str]:
    """What the environment says for one side only.

    Raises ConfigError where it says for both who somebody is, in other words: obstore would go by one of the two.
    """
    ours, named = f"LDPTREE_{side.upper()}_", re.compile(CREDENTIALS[scheme][1])
    found = {
        name.removeprefix(ours): value
        for name, value in os.environ.items()
        if name.startswith(ours + PREFIXES[scheme])
    }
    own = [name for name in found if named.fullmatch(name)]
    others = [name for name in os.environ if named.fullmatch(name) and name not in own]
    if own and others and scheme != "s3":
        raise ConfigError(
            f"{others[0]}: may be taken in place of {ours}{own[0]}. Unset it, and give each side its own variables."
        )
    return {name.lower(): value for name, value in found.items()}


def variables_of(side: Side, scheme: str) -> str:
    """What a person looks after for one side."""
    name = CREDENTIALS[scheme][0]
    return f"LDPTREE_{side.upper()}_{name} and so on, each in place of {name} and so on"


def check_variables(scheme: str) -> None:
    """Raises ConfigError on what obstore would end the process at."""
    of_scheme = re.compile(rf"(LDPTREE_(HOLDERS|CURATOR)_)?{PREFIXES[scheme]}")
    for name, value in os.environ.items():
        if not of_scheme.match(name):
            continue
        if value != value.strip() or not value.isprintable():
            raise ConfigError(f"{name}: has a line break or blanks around it. Set it without.")
        if _SERVER.fullmatch(name) and not re.match(r"https?://[^/\s]", value):
            raise ConfigError(f"{name}: is no address of a server. Write it as https://HOST:PORT.")
    for one, other in (KEYS_OF_S3, KEYS_OF_S3[::-1]):
        if scheme == "s3" and os.environ.get(one) and not os.environ.get(other):
            raise ConfigError(f"{one}: is set without {other}. Set both.")


def client_options(scheme: str, options: Mapping[str, str]) -> dict[str, str]:
    """What is said of the client, as GOOGLE_PROXY_URL: obstore looks at these variables only where it is given none itself."""
    names = {option: PREFIXES[scheme].lower() + option for option in OF_CLIENT}
    found = {option: options.get(name, os.environ.get(name.upper())) for option, name in names.items()}
    return {option: value for option, value in found.items() if value is not None}


def bucket_options(scheme: str, options: Mapping[str, str]) -> dict[str, str]:
    """Those of `options` that are not of the client."""
    of_client = {PREFIXES[scheme].lower() + option for option in OF_CLIENT}
    return {name: value for name, value in options.items() if name not in of_client}


def keys_of(options: Mapping[str, str]) -> dict[str, Any]:
    """The keys of one side where it has its own; the environment's token of a session, which is another's, is none of them."""
    keys: dict[str, Any] = {name: options.get(option) for option, name in KEYS.items()}
    return keys | {"expires_at": None} if keys["access_key_id"] and keys["secret_access_key"] else {}
