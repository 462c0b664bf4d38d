"""The consent page in Chromium: what a person is asked, shown and told, and what leaves the device."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from served import published
from test_vectors import FILE, protocol_of

from ldptree import serialize
from ldptree.client import Report
from storage.reports.published import CLIENT

VECTORS = json.loads(FILE.read_text())


@pytest.mark.slow
@pytest.mark.browser
def test_the_consent_page_draws_made_up_rows_again_and_the_own_row_once(browser: Any, intake: Any) -> None:
    url, settings, folder = intake
    page = browser.new_context(viewport={"width": 360, "height": 800}).new_page()
    requests: list[str] = []
    written: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: written.append(message.text))
    page.on("pageerror", lambda error: written.append(str(error)))
    page.goto(f"{url}/consent.html")
    page.wait_for_selector("#again:visible")
    # e / (1 + e) = 73.11 %, and e / (e + 99) = 2.67 %, at epsilon 1
    assert re.search(
        r"right 73\.2 times at most\. .* once in a hundred .* right 2\.7 times at most\.",
        page.inner_text("#odds"),
    )
    assert page.inner_text("#question").endswith("pay? You are asked for “paid”, beside “miles”, “company”.")
    seen: dict[str, set[str]] = {"#again": set(), "#other": set()}
    for button in ["#again"] * 8 + ["#other"] * 8:
        person = page.inner_text("#made-up")
        page.click(button)
        seen[button].add(page.inner_text("#made-up") if button == "#other" else page.inner_html("#tried"))
        assert page.locator("#tried i").count() == 7
        assert page.locator("#tried i.own").count() == 1
        assert button == "#other" or page.inner_text("#made-up") == person
    assert min(map(len, seen.values())) > 1
    assert settings.received == []
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")

    page.click("#send")
    page.wait_for_selector("#status:has-text('Fill in “paid”, or say that you have nothing to report.')")
    page.select_option("#row select >> nth=1", label="cash")
    page.type("#row input", "e")
    page.click("#send")
    page.wait_for_selector("#status:has-text('“miles” is not a number. Change it, or leave it empty.')")
    assert (settings.received, page.inner_html("#sent")) == ([], "")

    page.fill("#row input", "1.5")
    page.select_option("#row select >> nth=0", label="Sun")
    settings.status = 500
    page.click("#send")
    page.wait_for_selector("#status:has-text('not yet received')")
    shown = page.inner_html("#sent")
    settings.status = 204
    page.reload()
    page.wait_for_selector("#again:visible")
    page.click("#send")
    page.wait_for_selector(
        "#status:has-text('You answered before; what is above was not used. This was received.')"
    )
    for _ in range(2):
        assert page.inner_html("#sent") == shown
        assert page.is_disabled("#send")
        assert page.is_disabled("#nothing")
        page.reload()
        page.wait_for_selector("#status:has-text('You answered before, and that was received.')")
    page.context.close()
    first, again = settings.received
    assert first == again
    report = Report.from_json(first)
    assert (report.protocol, report.simulation) == (protocol_of("oue").digest, False)
    assert {requested.removeprefix(url).lstrip("/") for requested in requests} <= {
        *(path.name for path in CLIENT.glob("*.js")),
        *("consent.html", "style.css", "collection.json", "reports", "data:,"),
        json.loads((folder / "collection.json").read_bytes())["protocol"],
    }
    assert [text for text in written if "500" not in text] == []


@pytest.mark.slow
@pytest.mark.browser
def test_the_consent_page_asks_by_no_protocol_but_the_published_one(browser: Any, intake: Any) -> None:
    url, _, folder = intake
    (path,) = folder.glob("?" * 64 + ".json")
    path.write_text(protocol_of("grr").to_json())
    page = browser.new_page()
    page.goto(f"{url}/consent.html")
    says = "Nothing was sent. The question could not be fetched, or is not the one that was published."
    for spoil in (lambda: None, path.unlink, (folder / "collection.json").unlink):
        spoil()
        page.goto(f"{url}/consent.html")
        page.wait_for_selector(f"#odds:has-text('{says}')")
        assert not page.is_visible("#asked")
    page.close()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("number", range(len(VECTORS)), ids=[vector["mechanism"] for vector in VECTORS])
def test_the_consent_page_shows_every_question(
    browser: Any, intake: Any, tmp_path: Path, number: int
) -> None:
    url, _, folder = intake
    protocol = VECTORS[number]["protocol"]
    for path in published(tmp_path, serialize.canonical(protocol), protocol["epsilon"]).glob("*.json"):
        shutil.copy(path, folder)
    page = browser.new_page()
    page.goto(f"{url}/consent.html")
    if "simulation" in protocol:
        page.wait_for_selector("#odds:has-text('no real holder answers it')")
        assert not page.is_visible("#asked")
    else:
        page.wait_for_selector("#again:visible")
        assert page.inner_html("#tried")
        page.click("#nothing")
        page.wait_for_selector("#status:has-text('This was received')")
        assert page.inner_html("#sent")
    page.close()
