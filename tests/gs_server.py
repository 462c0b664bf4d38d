"""A server of Google's Cloud Storage on this machine, in memory: what obstore says to one, in Google's XML dialect.

It is ours, written from Google's documentation (https://cloud.google.com/storage/docs/xml-api/overview): of those that can be
installed none takes a put on a condition in this dialect (fake-gcs-server 1.54 no put, gcp-storage-emulator 2026.7 no condition).
"""

from __future__ import annotations

import hashlib
import http.client
import itertools
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from obstore.store import GCSStore

from storage.objects.bucket import BucketObjects

TOKEN, WRONG = "token", "wrong+++"
"""One that is taken, and one that is not; nor is it Base64 of a key of Azure's."""
PAGE = 25
"""Lines of a listing that are answered at once: of Google's 1,000 few tests would see a second page."""


@contextmanager
def gs_server():
    """The port of a server with nothing in it, which takes every token but `WRONG`, and none."""
    server = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def make_bucket(port, name):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("PUT", f"/{name}", headers={"Authorization": f"Bearer {TOKEN}"})
    assert connection.getresponse().status == 200
    connection.close()


def variables(port):
    """What somebody sets whose Google is at a port."""
    return {
        "GOOGLE_BASE_URL": f"http://127.0.0.1:{port}",
        "GOOGLE_ALLOW_HTTP": "true",
        "GOOGLE_BEARER_TOKEN": TOKEN,
    }


def bucket_objects(port, name, root, *, prefix="some/where", retries=2):
    """The objects below a prefix of a bucket; faults are tried again at once, so often."""
    quick = {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=5)}
    bucket = GCSStore(
        name,
        prefix=prefix,
        base_url=f"http://127.0.0.1:{port}",
        bearer_token=TOKEN,
        client_options={"allow_http": True, "timeout": timedelta(seconds=2)},
        retry_config={"max_retries": retries, "backoff": quick},
    )
    return BucketObjects(bucket, f"gs://{name}/{prefix}", root)


@dataclass(frozen=True)
class _Object:
    data: bytes
    generation: int
    own: dict[str, str]
    """Its headers `x-goog-meta-...`, and its type."""
    written: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def tag(self):
        return f'"{hashlib.md5(self.data).hexdigest()}"'


class _Refused(Exception):  # noqa: N818 - an answer
    def __init__(self, status, code):
        super().__init__(code)
        self.status, self.code = status, code


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *words):
        super().__init__(*words)
        self.buckets, self.generations, self.lock = (
            {},
            itertools.count(1_700_000_000_000_000),
            threading.Lock(),
        )

    def handle_error(self, *_):
        """Clients hang up: nothing to tell."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _handle(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        bucket, _, name = (unquote(part) for part in url.path.removeprefix("/").partition("/"))
        asked = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        try:
            if self.headers.get("Authorization") == f"Bearer {WRONG}":
                raise _Refused(401, "AuthenticationRequired")
            with self.server.lock:
                self._answer(*self._do(bucket, name, asked, body))
        except _Refused as refused:
            text = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{refused.code}</Code></Error>"
            self._answer(refused.status, {}, text.encode())

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 - as http.server has it

    def _do(self, bucket, name, asked, body):
        if not name and self.command == "PUT":
            self.server.buckets.setdefault(bucket, {})
            return 200, {}, b""
        if bucket not in self.server.buckets:
            raise _Refused(404, "NoSuchBucket")
        objects = self.server.buckets[bucket]
        if not name:
            return 200, {}, _listed(objects, asked)
        if self.command == "PUT":
            return self._put(objects, name, body)
        if name not in objects:
            raise _Refused(404, "NoSuchKey")
        if self.command == "DELETE":
            del objects[name]
            return 204, {}, b""
        return self._read(objects[name])

    def _put(self, objects, name, body):
        stands = objects[name].generation if name in objects else 0
        wanted = self.headers.get("x-goog-if-generation-match")
        if wanted is not None and int(wanted) != stands:
            raise _Refused(412, "PreconditionFailed")
        kept = ("x-goog-meta-", "content-type")
        own = {key: value for key, value in self.headers.items() if key.lower().startswith(kept)}
        if source := self.headers.get("x-goog-copy-source"):
            from_bucket, _, from_name = unquote(source).removeprefix("/").partition("/")
            copied = self.server.buckets.get(from_bucket, {}).get(from_name)
            if copied is None:
                raise _Refused(404, "NoSuchKey")
            body, own = copied.data, copied.own
        new = objects[name] = _Object(body, next(self.server.generations), own)
        done = f"<CopyObjectResult><ETag>{new.tag}</ETag></CopyObjectResult>" if source else ""
        return 200, {"ETag": new.tag, "x-goog-generation": str(new.generation)}, done.encode()

    def _read(self, found):
        if self.headers.get("If-Match", found.tag) != found.tag:
            raise _Refused(412, "PreconditionFailed")
        headers = {
            **found.own,
            "ETag": found.tag,
            "x-goog-generation": str(found.generation),
            "Last-Modified": format_datetime(found.written, usegmt=True),
        }
        part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if part is None:
            return 200, headers, found.data
        first, last = int(part[1]), min(int(part[2] or len(found.data)), len(found.data) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(found.data)}"
        return 206, headers, found.data[first : last + 1]

    def _answer(self, status, headers, content):
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        """Nothing."""


def _listed(objects, asked):
    """A page of a listing, as https://cloud.google.com/storage/docs/xml-api/get-bucket-list has it."""
    prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
    after = asked.get("continuation-token") or asked.get("start-after") or ""
    lines = {}
    for name in sorted(objects):
        if not name.startswith(prefix):
            continue
        below = name.removeprefix(prefix).split(delimiter)[0] if delimiter else ""
        folder = prefix + below + delimiter
        if delimiter and name.startswith(folder):
            lines[folder] = f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
        else:
            lines[name] = _line(name, objects[name])
    rest = [name for name in lines if name > after]
    page = rest[: min(PAGE, int(asked.get("max-keys", PAGE)))]
    more = (
        f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if len(page) < len(rest) else ""
    )
    return (
        "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'>"
        f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated>{more}{''.join(map(lines.get, page))}</ListBucketResult>"
    ).encode()


def _line(name, found):
    return (
        f"<Contents><Key>{escape(name)}</Key><Generation>{found.generation}</Generation><MetaGeneration>1</MetaGeneration>"
        f"<LastModified>{found.written:%Y-%m-%dT%H:%M:%S.%f}Z</LastModified><ETag>{escape(found.tag)}</ETag>"
        f"<Size>{len(found.data)}</Size></Contents>"
    )
