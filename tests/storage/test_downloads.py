"""A file is fetched whole and as stated, or not at all; what was fetched before an interruption is gone on from."""

import gzip
import hashlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from ldptree.errors import ConfigError
from schemas.catalogue import Source, catalogue, sources
from storage.downloads import PART, DownloadError, digest_file, download

CONTENT = bytes(range(256)) * 400
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Awkward(BaseHTTPRequestHandler):
    """Answers by what the path says; counts the bytes it was asked to leave out."""

    skipped: list[int] = []  # noqa: RUF012 - one server a test

    def do_GET(self):
        kind = self.path.strip("/")
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        self.skipped.append(start)
        if kind == "gone":
            self.send_error(404)
        elif kind == "round":
            self.head(302, {"Location": "/round"})
        elif kind == "elsewhere":
            self.head(302, {"Location": "/whole"})
        elif kind == "whole":
            is_rest = start > 0
            self.head(206 if is_rest else 200, {"Content-Length": str(len(CONTENT) - start)})
            self.wfile.write(CONTENT[start:])
        elif kind == "from-start":
            self.head(200, {"Content-Length": str(len(CONTENT))})
            self.wfile.write(CONTENT)
        elif kind == "truncated":
            self.head(200, {"Content-Length": str(len(CONTENT))})
            self.wfile.write(CONTENT[:5000])
        elif kind == "short":
            self.head(200, {"Content-Length": "5000"})
            self.wfile.write(CONTENT[:5000])
        elif kind == "long":
            self.head(200, {"Content-Length": str(len(CONTENT) + 10)})
            self.wfile.write(CONTENT + b"0123456789")
        elif kind == "other":
            self.head(200, {"Content-Length": str(len(CONTENT))})
            self.wfile.write(CONTENT[::-1])
        elif kind == "no-rest" and start:
            self.send_error(416)
        elif kind == "no-rest":
            self.head(200, {"Content-Length": str(len(CONTENT))})
            self.wfile.write(CONTENT)
        elif kind == "elsewhere-from":  # goes on, but from another place than was asked for
            self.head(206 if start else 200, {"Content-Length": str(len(CONTENT) - start)})
            self.wfile.write(CONTENT[: len(CONTENT) - start])
        elif kind == "stalls":
            self.head(200, {"Content-Length": str(len(CONTENT))})
            self.wfile.write(CONTENT[:5000])
            self.wfile.flush()
            time.sleep(2)

    def head(self, code, headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    Awkward.skipped = []
    found = ThreadingHTTPServer(("127.0.0.1", 0), Awkward)
    thread = threading.Thread(target=found.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{found.server_port}"
    found.shutdown()
    found.server_close()


def fetch(url, path, timeout=5.0):
    download(url, path, size=len(CONTENT), sha256=DIGEST, timeout=timeout)


@pytest.mark.parametrize("kind", ["whole", "elsewhere"])
def test_a_file_is_fetched_whole(server, tmp_path, kind):
    fetch(f"{server}/{kind}", tmp_path / "a.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert digest_file(tmp_path / "a.csv") == DIGEST


@pytest.mark.parametrize(
    ("kind", "message", "kept"),
    [
        ("gone", "the server says 404", 0),
        ("round", "leads on more than 5 times", 0),
        ("truncated", "broken off. 5,000 of 102,400 bytes are kept", 5000),
        ("short", "ended after 5,000 of 102,400 bytes. 5,000 of 102,400 bytes are kept", 5000),
        ("long", "longer than the 102,400 bytes", 0),
        ("other", "its sha256 differs", 0),
        ("stalls", "no answer for 0.3 s. 5,000 of 102,400 bytes are kept", 5000),
    ],
)
def test_what_is_not_the_stated_file_never_gets_its_name(server, tmp_path, kind, message, kept):
    path = tmp_path / "a.csv"
    with pytest.raises(DownloadError) as refused:
        fetch(f"{server}/{kind}", path, 0.3 if kind == "stalls" else 5.0)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not path.exists()
    part = tmp_path / f"a.csv{PART}"
    assert (part.stat().st_size if part.exists() else 0) == kept


@pytest.mark.parametrize(("kind", "skipped"), [("whole", 5000), ("from-start", 5000)])
def test_the_next_try_goes_on_from_what_was_kept(server, tmp_path, kind, skipped):
    path = tmp_path / "a.csv"
    (tmp_path / f"a.csv{PART}").write_bytes(CONTENT[:5000])
    fetch(f"{server}/{kind}", path)
    assert digest_file(path) == DIGEST
    assert Awkward.skipped == [skipped]


@pytest.mark.parametrize(
    ("kind", "message"), [("no-rest", "says 416"), ("elsewhere-from", "its sha256 differs")]
)
def test_what_was_kept_of_another_file_is_thrown_away(server, tmp_path, kind, message):
    path, part = tmp_path / "a.csv", tmp_path / f"a.csv{PART}"
    part.write_bytes(CONTENT[3:5000])
    with pytest.raises(DownloadError, match=message):
        fetch(f"{server}/{kind}", path)
    assert list(tmp_path.iterdir()) == []
    fetch(f"{server}/{kind}", path)
    assert digest_file(path) == DIGEST


def test_an_interruption_keeps_what_came(server, tmp_path, monkeypatch):
    def interrupted(response):
        yield CONTENT[:5000]
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(httpx.Response, "iter_raw", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch(f"{server}/whole", tmp_path / "a.csv")
    assert [path.name for path in tmp_path.iterdir()] == [f"a.csv{PART}"]
    fetch(f"{server}/whole", tmp_path / "a.csv")
    assert Awkward.skipped == [0, 5000]
    assert digest_file(tmp_path / "a.csv") == DIGEST


def test_nobody_there_is_one_sentence(tmp_path):
    with pytest.raises(DownloadError, match=r"cannot be reached .*Are you offline\? Type it again\."):
        fetch("http://127.0.0.1:1/a", tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


# The catalogue's files


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_data_set_that_is_not_simulated_says_where_its_files_are_from(name):
    if catalogue()[name].get("simulated"):
        assert name not in sources()
        return
    stated = {f"data:{file}" for file in sources()[name].files}
    assert set(catalogue()[name]["path"]) <= stated
    for file in sources()[name].files.values():
        assert (file.bytes is None) == (file.sha256 is None)
        assert file.sha256 or not file.url
    assert sources()[name].page.startswith("https://")


def test_a_file_that_is_kept_gzipped_is_packed_and_known_by_what_is_in_it(server, tmp_path, monkeypatch):
    from flows.command import datasets

    file = {"bytes": len(CONTENT), "sha256": DIGEST, "url": f"{server}/whole", "gzipped": True}
    source = Source.model_validate(
        {"page": "p", "licence": "free", "paper": "", "files": {"census/a.csv.gz": file}}
    )
    monkeypatch.setattr(datasets, "sources", lambda: {"census": source})
    datasets.fetch("census", tmp_path)
    packed = tmp_path / "census" / "a.csv.gz"
    assert [path.name for path in packed.parent.iterdir()] == ["a.csv.gz"]
    assert gzip.decompress(packed.read_bytes()) == CONTENT
    assert "stands" in datasets.fetch("census", tmp_path)[0]
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(ConfigError, match="another file than the catalogue states"):
        datasets.fetch("census", tmp_path)


def test_fetch_puts_stated_files_in_place_and_leaves_others_alone(server, tmp_path, monkeypatch):
    from flows.command import datasets

    file = {"bytes": len(CONTENT), "sha256": DIGEST, "url": f"{server}/whole"}
    source = Source.model_validate(
        {"page": "p", "licence": "free", "paper": "", "files": {"wine/a.csv": file}}
    )
    monkeypatch.setattr(datasets, "sources", lambda: {"wine": source})
    monkeypatch.delenv("LDPTREE_DATA", raising=False)
    with pytest.raises(ConfigError, match="where should the files go"):
        datasets.fetch("wine", None)
    (line,) = datasets.fetch("wine", tmp_path / "data")
    assert "licence: free" in line
    assert digest_file(tmp_path / "data" / "wine" / "a.csv") == DIGEST
    assert "stands" in datasets.fetch("wine", tmp_path / "data")[0]
    (tmp_path / "data" / "wine" / "a.csv").write_bytes(b"mine")
    with pytest.raises(ConfigError, match="another file than the catalogue states"):
        datasets.fetch("wine", tmp_path / "data")
    assert (tmp_path / "data" / "wine" / "a.csv").read_bytes() == b"mine"
    with pytest.raises(ConfigError, match="simulated data are made"):
        datasets.fetch("taxi", tmp_path)
