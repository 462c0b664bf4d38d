"""What the run's page promises once a real browser has laid it out."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_page import CASES, runs  # noqa: F401 - a fixture
from test_pages_are_true import make_run
from test_plan_words import forecast, plan_of

from ldptree.models.description import Estimate
from tasks.page.cards import Card, draw_campaign
from tasks.page.data import Failure, Run
from tasks.page.plan import render_plan
from tasks.page.render import render, render_brief, render_index, write_actors
from tasks.report import read_facts

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)", allow_module_level=True)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed (pip install playwright)"
)

PAGES = (
    *CASES,
    "two questions",
    "a question that waits",
    "devices",
    "a campaign",
    "all runs",
    "a plan",
    "actors",
)
"""Every kind of page."""
LONG = "of the people in the western districts"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as session:
        chromium = session.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, runs: dict[str, Run]) -> dict[str, Path]:  # noqa: F811
    folder = tmp_path_factory.mktemp("pages")
    two = make_run(folder, "two questions").chain
    asked_twice = {"two questions": render(read_facts(two.store, two.page["page"]))}
    texts = {name: render(runs[name]) for name in CASES} | asked_twice | _others(runs)
    assert set(texts) == set(PAGES)
    paths = {name: folder / f"{name}.html" for name in texts}
    for name, path in paths.items():
        path.write_text(texts[name], encoding="utf-8")
    return paths


def _others(runs: dict[str, Run]) -> dict[str, str]:  # noqa: F811
    """The pages that are of no run's end alone."""
    asked = Failure(
        step="partition", message="No report has come yet. Devices send them to inbox/.", is_waiting=True
    )
    scored, released = runs["a correction"], runs["a release"]
    devices = replace(released, privacy=replace(released.privacy, on_devices=True))
    cards = {
        f"{run.name}-{day}": replace(
            Card.of(
                run,
                Card(name=run.name, created=f"2026-0{day}-01T10:00:00+00:00", command="ldptree run"),
                has_asked=True,
            ),
            campaign="weekly" if run is released else "",
            title=f"{run.title} {LONG}",
        )
        for day, run in enumerate([released, released, scored, released, runs["stopped"]], start=1)
    }
    weeks = draw_campaign(cards.values(), "weekly")
    later = replace(released, n_earlier=released.n_private // 2)
    alike = replace(
        cards[f"{scored.name}-3"], verdict="alike", is_trial=True, created="2026-08-01T10:00:00+00:00"
    )
    unfinished = replace(cards[f"{scored.name}-3"], verdict="unfinished", created="2026-09-01T10:00:00+00:00")
    plan = plan_of(
        *(
            forecast(epsilon, 0.01 * epsilon, 0.02 * epsilon, is_worth_it=epsilon > 1)
            for epsilon in (0.5, 1.0, 2.0, 4.0)
        )
    )
    return {
        "a question that waits": render(replace(runs["stopped"], checks=(), failure=asked)),
        "devices": render(devices),
        "a campaign": render(later, weeks),
        "all runs": render_index(cards | {"alike": alike, "begun": unfinished}),
        "a plan": render_plan(plan, name=f"rides {LONG}", version="0.1.0"),
        "actors": write_actors(devices.privacy, f"rides {LONG}", is_scored=True)["actors.html"].decode(),
    }


def _open(browser: Any, path: Path, *, width: int = 1280, theme: str = "light") -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    page.goto(path.as_uri())
    return page


@pytest.mark.parametrize("name", PAGES)
def test_no_request_leaves_the_page_and_the_console_stays_empty(
    browser: Any, pages: dict[str, Path], name: str
) -> None:
    page = browser.new_page()
    requests: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(pages[name].as_uri(), wait_until="load")
    page.close()
    assert [url for url in requests if not url.startswith("data:")] == [pages[name].as_uri()]
    assert said == []


LAYOUT = """() => {
  const box = e => e.getBoundingClientRect();
  const beyond = e => box(e).right > innerWidth + 1 || box(e).left < -1;
  const free = [...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, pre, svg, .vh'));
  return {
    spare: innerWidth - document.scrollingElement.scrollWidth,
    beyond: free.filter(beyond).map(e => e.outerHTML.slice(0, 120)),
  };
}"""


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_off_on_a_phone_a_tablet_or_a_screen(
    browser: Any, pages: dict[str, Path], name: str
) -> None:
    page = _open(browser, pages[name])
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    for width in (360, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate(LAYOUT)
        assert found["spare"] >= 0, width
        assert found["beyond"] == [], width
    page.close()


def test_long_names_of_classes_and_columns_are_not_cut_off(
    browser: Any,
    runs: dict[str, Run],  # noqa: F811
    tmp_path: Path,
) -> None:
    run = runs["three classes"]
    text = json.dumps(run.to_dict())
    for name in ("a", "b", "c", "miles", "firm"):
        text = text.replace(f'"{name}"', f'"{name} and a name that goes on, {"x" * 40} and on, {"y" * 40}"')
    path = tmp_path / "long.html"
    path.write_text(render(Run.from_dict(json.loads(text))), encoding="utf-8")
    page = _open(browser, path)
    for width in (360, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate(LAYOUT)
        assert (found["spare"] >= 0, found["beyond"]) == (True, []), width
    page.close()


OVERLAPS = """() => {
  // Boxes of what a reader reads: the lines of each text, those of pictures too. Of one text none are compared.
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), boxes = [];
  const range = document.createRange();
  while (walk.nextNode()) {
    const node = walk.currentNode, owner = node.parentElement;
    if (!node.data.trim() || owner.closest('style, title, .vh') || !owner.checkVisibility({visibilityProperty: true})) continue;
    range.selectNodeContents(node);
    const clip = owner.closest('.name'), area = clip && clip.getBoundingClientRect();
    for (const r of range.getClientRects()) {
      if (r.width < 1 || area && (r.top > area.bottom - 4)) continue;
      boxes.push({r, owner, text: node.data.trim().slice(0, 40)});
    }
  }
  const touch = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5;
  const found = [];
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => {
    if (a.owner !== b.owner && touch(a.r, b.r)) found.push(`${a.text} / ${b.text}`);
  }));
  const column = document.querySelector('main').getBoundingClientRect();
  const inside = getComputedStyle(document.querySelector('main'));
  const left = column.left + parseFloat(inside.paddingLeft), right = column.right - parseFloat(inside.paddingRight);
  const out = boxes.filter(b => !b.owner.closest('.scroll, pre') && (b.r.left < left - 2 || b.r.right > right + 2));
  const marks = [...document.querySelectorAll('svg:not(.ov) > *, .whose i')]
    .filter(e => !e.closest('.scroll') && e.checkVisibility())
    .map(e => [e, e.getBoundingClientRect()])
    .filter(([e, r]) => r.width && (r.left < left - 9 || r.right > right + 9));
  return {found: found.slice(0, 5), out: out.map(b => b.text).concat(marks.map(([e]) => e.outerHTML.slice(0, 80))).slice(0, 5)};
}"""


@pytest.mark.parametrize("name", PAGES)
def test_no_two_texts_overlap_and_nothing_leaves_its_column(
    browser: Any, pages: dict[str, Path], name: str
) -> None:
    page = _open(browser, pages[name])
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    for width in (360, 900, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(OVERLAPS) == {"found": [], "out": []}, width
    page.close()


@pytest.mark.parametrize("name", [name for name in CASES if name != "stopped"])
def test_a_notebook_shows_what_was_found_within_320_px(
    browser: Any,
    runs: dict[str, Run],  # noqa: F811
    tmp_path: Path,
    name: str,
) -> None:
    path = tmp_path / "brief.html"
    path.write_text(render_brief(runs[name]), encoding="utf-8")
    for width in (900, 1440):
        page = _open(browser, path, width=width)
        assert page.evaluate("document.querySelector('.brief .w').getBoundingClientRect().bottom") <= 320
        page.close()


APART = """() => {
  const over = ([a, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > -3
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const seen = [...document.querySelectorAll('svg.ax, .hl')].filter(e => e.checkVisibility());
  const groups = seen.map(e => [...e.querySelectorAll('span, text')]);
  const pairs = groups.flatMap(group => group.flatMap((a, i) => group.slice(i + 1).map(b => [a, b])));
  const touching = pairs.filter(pair => over(pair.map(e => e.getBoundingClientRect())));
  return {touching: touching.map(pair => pair.map(e => e.textContent)), drawn: groups.flat().length};
}"""


@pytest.mark.parametrize("name", ["classes", "a number", "a correction", "three classes"])
def test_labels_of_axes_stand_apart(browser: Any, pages: dict[str, Path], name: str) -> None:
    page = _open(browser, pages[name])
    for width in (360, 900, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate(APART)
        assert found.pop("drawn") > 5
        assert found == {"touching": []}, width
    page.close()


@pytest.mark.parametrize("most", [1_420.0, 1_590.0, 1_610.0, 1_780.0])
def test_labels_of_thousands_stand_apart_over_groups(
    browser: Any,
    runs: dict[str, Run],  # noqa: F811
    tmp_path: Path,
    most: float,
) -> None:
    """As of rents: the last label stands at the end of a narrow axis."""
    run = runs["a number"]
    cells = tuple(
        replace(cell, estimates=(Estimate(value=value, sd=1.0),), public=())
        for cell, value in zip(run.model.cells, np.linspace(810.0, most, len(run.model.cells)), strict=True)
    )
    path = tmp_path / "rents.html"
    path.write_text(render(replace(run, description=replace(run.model, cells=cells))), encoding="utf-8")
    page = _open(browser, path)
    for width in (360, 900, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(APART)["touching"] == [], width
    page.close()


SMALL = """() => [...document.querySelectorAll('main svg text:not(.n), main :is(p, li, dd, dt, span, td, th)')]
  .filter(e => e.checkVisibility() && !e.closest('.vh') && [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()))
  .map(e => {
    const own = e.ownerSVGElement, scale = own && own.getScreenCTM ? Math.min(e.getScreenCTM().a, e.getScreenCTM().d) : 1;
    return [parseFloat(getComputedStyle(e).fontSize) * scale, e.outerHTML.slice(0, 100)];
  })
  .filter(([size]) => size < 12.9)"""


@pytest.mark.parametrize("name", PAGES)
def test_no_text_is_drawn_smaller_than_13_px(browser: Any, pages: dict[str, Path], name: str) -> None:
    """As seen, so that no picture shrinks it; but the numbers within the boxes of a report."""
    page = _open(browser, pages[name])
    for width in (360, 900, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(SMALL) == [], width
    page.close()


def _contrast(one: str, other: str) -> float:
    """WCAG 2 contrast of two CSS rgb() colours."""

    def luminance(colour: str) -> float:
        parts = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", ["a number", "a correction"])
def test_both_themes_are_readable_and_differ(browser: Any, pages: dict[str, Path], name: str) -> None:
    seen = {}
    for theme in ("light", "dark"):
        page = _open(browser, pages[name], theme=theme)
        seen[theme] = page.evaluate(
            """(() => {
              const style = (query, what) => getComputedStyle(document.querySelector(query))[what];
              return {
                paper: style('body', 'backgroundColor'), ink: style('body', 'color'),
                soft: style('.hd p', 'color'), wash: style('.hero', 'backgroundColor'),
                ours: style('.all .ours .m', 'fill'), public: style('.all .pub .m', 'fill'),
                reference: style('.all .ref .m', 'stroke'),
              };
            })()"""
        )
        page.close()
    for colours in seen.values():
        assert _contrast(colours["ink"], colours["paper"]) >= 7
        assert _contrast(colours["ink"], colours["wash"]) >= 7
        assert _contrast(colours["soft"], colours["paper"]) >= 4.5
        assert all(
            _contrast(colours[mark], colours["paper"]) >= 3 for mark in ("ours", "public", "reference")
        )
        assert len({colours["ours"], colours["public"], colours["reference"]}) == 3
    assert seen["light"]["paper"] != seen["dark"]["paper"]
    assert seen["light"]["ours"] != seen["dark"]["ours"]


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_that_bars_anybody(browser: Any, pages: dict[str, Path], name: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    for theme in ("light", "dark"):
        context = browser.new_context(bypass_csp=True, color_scheme=theme)
        page = context.new_page()
        page.goto(pages[name].as_uri())
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        found = axe.Axe().run(page).response["violations"]
        context.close()
        assert [(one["id"], [node["target"] for node in one["nodes"]]) for one in found] == [], theme


def test_a_fold_opens_without_a_script(browser: Any, pages: dict[str, Path]) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(pages["classes"].as_uri())
    table = page.get_by_role("region", name="Every group of rows")
    assert not table.is_visible()
    page.locator("summary", has_text="Every group of rows").click()
    assert table.is_visible()
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_on_two_sheets_at_most_in_light_colours(
    browser: Any, pages: dict[str, Path], name: str
) -> None:
    page = _open(browser, pages[name], theme="dark")
    printed = page.pdf(format="A4", print_background=True, prefer_css_page_size=True)
    page.emulate_media(media="print", color_scheme="dark")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    cut = page.evaluate(
        "[...document.querySelectorAll('main section:has(svg):not(.more)')]"
        ".filter(e => getComputedStyle(e).breakInside != 'avoid').map(e => e.outerHTML.slice(0, 80))"
    )
    page.close()
    assert cut == [], "a chart may be cut between two sheets"
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) in (1, 2)
    assert paper == "rgb(255, 255, 255)"
