"""`ldptree ui` serves the pages of a work folder, to this machine, and nothing else of it."""

from __future__ import annotations

import os
import urllib.error
import urllib.request

import pytest

from flows.server.pages import pages_served, read_page
from flows.server.standing import address_stated, find_pages


@pytest.fixture
def work(tmp_path):
    for name in ("runs/one", "holders/split", "curator", "simulation"):
        (tmp_path / "work" / name).mkdir(parents=True)
    folder = tmp_path / "work"
    for name in (
        "index.html",
        "runs/one/report.html",
        "runs/one/run.json",
        "holders/secret",
        "curator/report.html",
    ):
        (folder / name).write_text(f"this is {name}")
    (tmp_path / "report.html").write_text("outside")
    (folder / "runs" / "linked").symlink_to(folder / "curator")
    for name in ("two", "piped", "folder/report.html"):
        (folder / "runs" / name).mkdir(parents=True)
    os.mkfifo(folder / "runs" / "piped" / "report.html")
    (folder / "runs" / "two" / "report.html").symlink_to(folder / "holders" / "secret")
    return folder


def get(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=10) as answer:
        return answer.read().decode(), answer.headers


@pytest.mark.parametrize(
    ("path", "file"),
    [("/", "index.html"), ("/index.html", "index.html"), ("/runs/one/report.html", "runs/one/report.html")],
)
def test_pages_are_served_and_load_nothing(work, path, file):
    with pages_served(work, 0) as address:
        text, headers = get(address + path)
    assert text == f"this is {file}"
    assert "default-src 'none'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/runs/one/run.json",
        "/holders/secret",
        "/curator/report.html",
        "/runs/../holders/secret",
        "/runs/../curator/report.html",
        "/runs/..%2f..%2freport.html",
        "/../report.html",
        "//report.html",
        "/runs/../../report.html",
        "/runs/linked/report.html",
        "/runs/two/report.html",
        "/runs/piped/report.html",
        "/runs/folder/report.html",
        "/runs/absent/report.html",
        "/runs/one/report.html/",
    ],
)
def test_nothing_else_is_served(work, path):
    assert read_page(work, path) is None
    with pages_served(work, 0) as address, pytest.raises(urllib.error.HTTPError) as refused:
        get(address + path)
    assert refused.value.code == 404


@pytest.mark.parametrize(
    ("before", "found"), [("one", None), ("report.html", b"this is runs/one/report.html")]
)
def test_a_link_that_takes_a_folders_place_meanwhile_leads_nowhere(work, monkeypatch, before, found):
    """The file of the same name that it leads to is in another zone."""
    really_open = os.open

    def swap_and_open(part, *flags, **where):
        if part == before:
            (work / "runs" / "one").rename(work / "runs" / "aside")
            (work / "runs" / "one").symlink_to(work / "curator")
        return really_open(part, *flags, **where)

    monkeypatch.setattr(os, "open", swap_and_open)
    assert read_page(work, "/runs/one/report.html") == found
    assert (work / "runs" / "one").is_symlink()


def test_a_page_of_another_host_cannot_ask_for_them(work):
    with pages_served(work, 0) as address, pytest.raises(urllib.error.HTTPError):
        get(address, Host="evil.example")


def test_runs_find_the_pages_while_they_are_served(tmp_path):
    assert find_pages(tmp_path) is None
    with address_stated(tmp_path, "http://127.0.0.1:1/api", "http://127.0.0.1:2") as is_up:
        is_up()
        assert find_pages(tmp_path) == "http://127.0.0.1:2"
    assert find_pages(tmp_path) is None


def test_a_taken_port_is_no_reason_to_serve_nothing(work):
    with pages_served(work, 0) as first:
        taken = int(first.rpartition(":")[2])
        with pages_served(work, taken) as other:
            assert other != first
            assert get(other)[0] == "this is index.html"
