"""A server of Azure's Blob Storage on this machine: Microsoft's Azurite, which npm installs beside this environment."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

import pytest
from obstore.store import AzureStore

from storage.objects.bucket import BucketObjects

AZURITE = "3.35.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Those of every Azurite, as it documents them."""


@cache
def _azurite():
    """The program, installed once; None where it cannot be."""
    folder = Path(sys.prefix) / f"azurite-{AZURITE}"
    if not folder.exists():
        if shutil.which("npm") is None or shutil.which("node") is None:
            return None
        with tempfile.TemporaryDirectory(dir=sys.prefix) as aside:
            words = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
            words += ["--fetch-retries=1", "--fetch-timeout=20000", "--prefix", f"{aside}/done"]
            words += [f"azurite@{AZURITE}"]
            if subprocess.run(words, capture_output=True, check=False).returncode != 0:
                return None
            with suppress(OSError):  # another test has just done so
                Path(aside, "done").rename(folder)
    return folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


@contextmanager
def az_server():
    """The port of a server with nothing in it. The test is skipped where Azurite cannot be installed."""
    if _azurite() is None:
        pytest.skip("Azurite is not here, and needs node and npm to be installed")
    words = [
        "--inMemoryPersistence",
        "--blobPort",
        "0",
        "--skipApiVersionCheck",
        "--disableTelemetry",
        "--silent",
    ]
    server = subprocess.Popen(
        ["node", str(_azurite()), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said = (re.search(r"listens on http://[^:]+:(\d+)", line) for line in server.stdout)
        yield int(next(found for found in said if found)[1])
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def make_bucket(port, name):
    """Make a container, by a request that is signed as https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
    has it.
    """
    headers = {"x-ms-date": format_datetime(datetime.now(UTC), usegmt=True), "x-ms-version": "2021-08-06"}
    shown = "".join(f"{key}:{value}\n" for key, value in headers.items())
    text = "PUT" + "\n" * 12 + shown + f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{_signed(text)}"
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("PUT", f"/{ACCOUNT}/{name}?restype=container", headers=headers)
    assert connection.getresponse().status == 201
    connection.close()


def _signed(text):
    return base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()


def signature_for(container, rights):
    """A shared access signature for one container, with these rights for a day ("racwdl" is what a run needs), as
    https://learn.microsoft.com/rest/api/storageservices/create-service-sas has it.
    """
    until, version = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}", "2020-12-06"
    resource = f"/blob/{ACCOUNT}/{container}"
    text = "\n".join([rights, "", until, resource, "", "", "", version, "c", *[""] * 7])
    return urlencode({"sp": rights, "se": until, "sv": version, "sr": "c", "sig": _signed(text)})


def variables(port):
    """What somebody sets whose Azure is at a port."""
    return {
        "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{port}/{ACCOUNT}",
        "AZURE_ALLOW_HTTP": "true",
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": KEY,
    }


def bucket_objects(port, name, root, *, prefix="some/where", retries=2):
    """The objects below a prefix of a container; faults are tried again at once, so often."""
    quick = {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=5)}
    bucket = AzureStore(
        name,
        prefix=prefix,
        endpoint=f"http://127.0.0.1:{port}/{ACCOUNT}",
        account_name=ACCOUNT,
        account_key=KEY,
        client_options={"allow_http": True, "timeout": timedelta(seconds=2)},
        retry_config={"max_retries": retries, "backoff": quick},
    )
    return BucketObjects(bucket, f"az://{name}/{prefix}", root)
