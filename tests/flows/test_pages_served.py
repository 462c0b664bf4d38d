"""`ldptree ui` serves the pages of a work folder beside Prefect's, to whom Prefect's own are shown, and nothing else of it."""

from __future__ import annotations

import asyncio
import base64
import os

import httpx
import pytest
from starlette.responses import PlainTextResponse

from flows.server.gate import Gate
from flows.server.pages import read_page


@pytest.fixture
def work(tmp_path):
    for name in ("runs/one", "holders/split", "curator", "simulation"):
        (tmp_path / "work" / name).mkdir(parents=True)
    folder = tmp_path / "work"
    for name in (
        "index.html",
        "runs/one/page.html",
        "runs/one/run.json",
        "holders/secret",
        "curator/page.html",
    ):
        (folder / name).write_text(f"this is {name}")
    (tmp_path / "page.html").write_text("outside")
    (folder / "runs" / "linked").symlink_to(folder / "curator")
    for name in ("two", "piped", "folder/page.html"):
        (folder / "runs" / name).mkdir(parents=True)
    os.mkfifo(folder / "runs" / "piped" / "page.html")
    (folder / "runs" / "two" / "page.html").symlink_to(folder / "holders" / "secret")
    return folder


@pytest.fixture
def ask(work, monkeypatch):
    """Called with a path and headers, gives the answer of a server that listens to this machine."""
    monkeypatch.delenv("PREFECT_SERVER_API_AUTH_STRING", raising=False)
    prefect = PlainTextResponse("Prefect's")

    def answer(path, **headers):
        transport = httpx.ASGITransport(Gate(prefect, "127.0.0.1", work))

        async def get():
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4200") as client:
                return await client.get(path, headers=headers)

        return asyncio.run(get())

    return answer


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("/ldptree/", "index.html"),
        ("/ldptree/index.html", "index.html"),
        ("/ldptree/runs/one/page.html", "runs/one/page.html"),
    ],
)
def test_pages_are_served_beside_prefects_and_load_nothing(ask, path, file):
    answer = ask(path)
    assert (answer.status_code, answer.text) == (200, f"this is {file}")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert ask("/runs").text == "Prefect's"


@pytest.mark.parametrize(
    "path",
    [
        "/ldptree/runs/one/run.json",
        "/ldptree/holders/secret",
        "/ldptree/curator/page.html",
        "/ldptree/runs/../holders/secret",
        "/ldptree/runs/../curator/page.html",
        "/ldptree/runs/..%2f..%2fpage.html",
        "/ldptree/../page.html",
        "/ldptree//page.html",
        "/ldptree/runs/../../page.html",
        "/ldptree/runs/linked/page.html",
        "/ldptree/runs/two/page.html",
        "/ldptree/runs/piped/page.html",
        "/ldptree/runs/folder/page.html",
        "/ldptree/runs/absent/page.html",
        "/ldptree/runs/one/page.html/",
    ],
)
def test_nothing_else_is_served(work, ask, path):
    assert read_page(work, path) is None
    assert "this is" not in ask(path).text


@pytest.mark.parametrize(("before", "found"), [("one", None), ("page.html", b"this is runs/one/page.html")])
def test_a_link_that_takes_a_folders_place_meanwhile_leads_nowhere(work, monkeypatch, before, found):
    """The file of the same name that it leads to is in another zone."""
    really_open = os.open

    def swap_and_open(part, *flags, **where):
        if part == before:
            (work / "runs" / "one").rename(work / "runs" / "aside")
            (work / "runs" / "one").symlink_to(work / "curator")
        return really_open(part, *flags, **where)

    monkeypatch.setattr(os, "open", swap_and_open)
    assert read_page(work, "/ldptree/runs/one/page.html") == found
    assert (work / "runs" / "one").is_symlink()


def test_a_page_of_another_host_cannot_ask_for_them(ask):
    assert ask("/ldptree/", Host="evil.example").status_code == 403
    assert ask("/ldptree/", Origin="http://evil.example").status_code == 403


def test_where_the_api_has_a_password_the_pages_ask_for_it(ask, monkeypatch):
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "someone:secret")
    refused = ask("/ldptree/")
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, 'Basic realm="ldptree"')
    for user, status in (("someone:secret", 200), ("someone:else", 401)):
        token = base64.b64encode(user.encode()).decode()
        assert ask("/ldptree/", Authorization=f"Basic {token}").status_code == status
