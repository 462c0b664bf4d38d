"""An S3 server on this machine (moto's), and a proxy before it that loses requests and answers as a network does."""

from __future__ import annotations

import http.client
import random
import threading
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from moto.server import ThreadedMotoServer
from obstore.store import S3Store

from storage.objects.bucket import BucketObjects

FAULTS = ("conflict", "refused", "dropped", "lost", "late", "hanging")
"""What may happen to a request: refused as another write goes on (a put on a condition); answered 500 and not done, dropped and
not done; done and the answer lost, or 500, or none.
"""
CONFLICTS = {
    "If-None-Match": (409, "ConditionalRequestConflict"),
    "x-goog-if-generation-match": (429, "SlowDown"),
}
"""What a server of the kind says of a put, by the header of its condition, while another write of it goes on."""
PIECE = 64 << 10
"""Bytes that a slow answer has at a time."""


OPEN = []
"""Ports of moto's servers in this process."""


@contextmanager
def s3_server():
    """The port of an S3 server, with nothing in it unless another one is open: those of one process have one memory."""
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    if not OPEN:
        _request(port, "POST", "/moto-api/reset")
    OPEN.append(port)
    try:
        yield port
    finally:
        OPEN.remove(port)
        server.stop()


def make_bucket(port, name):
    _request(port, "PUT", f"/{name}")


def _request(port, method, path):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path)
    assert connection.getresponse().status == 200
    connection.close()


def variables(port):
    """What somebody sets whose S3 is at a port."""
    return {
        "AWS_ENDPOINT": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }


def bucket_objects(port, name, root, *, prefix="some/where", retries=2):
    """The objects below a prefix of a bucket; faults are tried again at once, so often."""
    quick = {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=5)}
    bucket = S3Store(
        name,
        prefix=prefix,
        endpoint=f"http://127.0.0.1:{port}",
        region="us-east-1",
        access_key_id="key",
        secret_access_key="secret",
        client_options={"allow_http": True, "timeout": timedelta(seconds=2)},
        retry_config={"max_retries": retries, "backoff": quick},
    )
    return BucketObjects(bucket, f"s3://{name}/{prefix}", root)


class Proxy(ThreadingHTTPServer):
    """Passes requests on to `port`, but for those to which `fault(method, path)` gives one of `FAULTS`."""

    daemon_threads = True

    def __init__(
        self, port, fault=lambda _method, _path: "", refusal=lambda *_: None, dropped=(), pause=0.05
    ):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind, self.fault, self.is_over = port, fault, threading.Event()
        self.refusal, self.dropped, self.one_by_one = refusal, dropped, threading.Lock()
        self.pause = pause

    def handle_error(self, *_):
        """Clients hang up: nothing to tell."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if refused := self.server.refusal(self.command, self.path, self.headers):
            status, code = refused
            self._answer(status, {}, f"<Error><Code>{code}</Code></Error>".encode())
            return
        fault = self.server.fault(self.command, self.path)
        if fault == "conflict" and (condition := next(filter(self.headers.get, CONFLICTS), None)):
            status, code = CONFLICTS[condition]
            self._answer(status, {}, f"<Error><Code>{code}</Code></Error>".encode())
            return
        if fault in ("refused", "dropped"):
            self._answer(500, {}, b"") if fault == "refused" else self._hang_up()
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.server.behind)
        headers = {name: value for name, value in self.headers.items() if name not in self.server.dropped}
        with self.server.one_by_one:  # moto looks at a put's condition, and then puts
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        connection.close()
        if fault == "hanging":
            self.server.is_over.wait()
        if fault in ("lost", "hanging"):
            self._hang_up()
        elif fault == "late":
            self._answer(500, {}, b"")
        elif fault == "slow":
            self._answer(answer.status, dict(answer.getheaders()), content, pause=self.server.pause)
        elif fault == "cut":
            self._answer(answer.status, dict(answer.getheaders()), content, sent=len(content) // 2)
            self._hang_up()
        else:
            self._answer(answer.status, dict(answer.getheaders()), content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815 - as http.server has it

    def _hang_up(self):
        self.close_connection = True
        self.connection.close()

    def _answer(self, status, headers, content, sent=None, pause=0.0):
        self.send_response_only(status)
        length = headers.get("Content-Length", str(len(content))) if self.command == "HEAD" else len(content)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command == "HEAD":
            return
        pieces = (
            [content[:sent]]
            if not pause
            else [content[at : at + PIECE] for at in range(0, len(content), PIECE)]
        )
        for piece in pieces:
            self.wfile.write(piece)
            self.wfile.flush()
            if pause and self.server.is_over.wait(pause):
                return

    def log_message(self, *_):
        """Nothing."""


@contextmanager
def proxy(port, fault=lambda _method, _path: "", **more):
    """A proxy before `port`."""
    server = Proxy(port, fault, **more)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def by_chance(seed, share):
    """A fault for this share of the requests, the same ones each time."""
    chance, lock = random.Random(seed), threading.Lock()

    def fault(_method, _path):
        with lock:
            return chance.choice(FAULTS[:5]) if chance.random() < share else ""

    return fault
