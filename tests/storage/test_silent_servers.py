"""A server that falls silent is told of; one that is slow, and goes on, is waited for."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("obstore")

from storage.objects.addresses import local_file
from storage.objects.bucket import open_to_read

CONTENT = bytes(range(256)) * (1 << 15)
PIECES = 8


@contextmanager
def server(take):
    """Its address; `take(handler, pieces, wait)` answers a request, with the pieces of `CONTENT`, and something to wait by."""
    is_over, size = threading.Event(), len(CONTENT) // PIECES
    pieces = [CONTENT[at : at + size] for at in range(0, len(CONTENT), size)]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            take(self, pieces, is_over.wait)

        do_PUT = do_HEAD = do_GET  # noqa: N815 - as http.server has it

        def log_message(self, *_):
            """Nothing."""

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    made.handle_error = lambda *_: None  # clients hang up
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{made.server_port}"
    finally:
        is_over.set()
        made.shutdown()
        thread.join()
        made.server_close()


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """Opens a bucket at a server, which may say nothing for so long."""

    def open_at(address, silence):
        said = {"ENDPOINT": address, "ALLOW_HTTP": "true", "REGION": "us-east-1"}
        said |= {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}
        for name, value in said.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setattr("storage.objects.bucket.SILENCE", timedelta(seconds=silence))
        monkeypatch.setattr("storage.objects.bucket.RETRIES", {"max_retries": 1})
        return open_to_read("s3://bucket/team")

    return open_at


def begin(handler):
    handler.send_response_only(200)
    for name, value in (("ETag", '"one"'), ("Last-Modified", "Thu, 26 Nov 2026 04:00:00 GMT")):
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(CONTENT) if handler.command != "PUT" else 0))
    handler.end_headers()


def say_nothing(_handler, _pieces, wait):
    wait()


def fall_silent(handler, pieces, wait):
    if "Range" in handler.headers:  # asked for the rest
        wait()
    begin(handler)
    if handler.command == "GET":
        handler.wfile.write(pieces[0])
        wait()


def take_nothing_in(handler, _pieces, wait):
    handler.rfile.read(1)
    wait()


@pytest.mark.parametrize("take", [say_nothing, fall_silent])
@pytest.mark.parametrize("read", ["get", "path"])
def test_a_server_that_falls_silent_is_told_of_and_nothing_is_taken_for_the_object(
    opened, take, read, tmp_path
):
    with server(take) as address:
        bucket = opened(address, 0.3)
        with pytest.raises(OSError, match="does not answer in time"):
            getattr(bucket, read)("raw.csv")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_server_that_takes_nothing_in_is_told_of(opened, monkeypatch):
    monkeypatch.setattr("storage.objects.bucket.SLOWEST", 1 << 26)
    with server(take_nothing_in) as address:
        bucket = opened(address, 0.3)
        for put in (bucket.put, bucket.create):
            with pytest.raises(OSError, match="does not answer in time"):
                put("reports.parquet", CONTENT)


@pytest.mark.slow
def test_a_slow_server_that_goes_on_is_waited_for(opened):
    """Each piece comes in time, all of them do not: of what is read, and of what is put."""
    put = []

    def take_slowly(handler, pieces, wait):
        if handler.command == "PUT":
            for piece in pieces:
                put.append(handler.rfile.read(len(piece)))
                wait(0.5)
        begin(handler)
        for piece in pieces if handler.command == "GET" else []:
            handler.wfile.write(piece)
            handler.wfile.flush()
            wait(0.5)

    with server(take_slowly) as address:
        bucket = opened(address, 2.0)
        assert bucket.get("raw.csv") == CONTENT
        assert local_file("s3://bucket/team/raw.csv").read_bytes() == CONTENT
        bucket.put("reports.parquet", CONTENT)
    assert b"".join(put) == CONTENT
