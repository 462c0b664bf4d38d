"""What the run's page promises once a real browser has laid it out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import mended_samples
import number_samples
import page_samples
import pytest
import rounds_samples

from tasks.page.render import render

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)", allow_module_level=True)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed (pip install playwright)"
)

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MADE = {
    name: getattr(module, name)
    for module, names in (
        (page_samples, page_samples.SAMPLES),
        (number_samples, number_samples.NUMBER_SAMPLES),
        (rounds_samples, rounds_samples.ROUNDS_SAMPLES),
        (mended_samples, mended_samples.MENDED_SAMPLES),
    )
    for name in names
}
SAMPLES = tuple(MADE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as session:
        chromium = session.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name}.html" for name in SAMPLES}
    for name, path in paths.items():
        path.write_text(render(MADE[name]()), encoding="utf-8")
    return paths


def _open(browser: Any, path: Path, *, width: int = 1280, theme: str = "light") -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    page.goto(path.as_uri())
    return page


@pytest.mark.parametrize("name", SAMPLES)
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
  const free = [...document.querySelectorAll('main *')].filter(e => !e.closest('.wide, pre, svg'));
  const strip = [...document.querySelectorAll('.strip, .strip div')];
  const cut = strip.filter(e => e.scrollWidth > e.clientWidth + 1);
  return {
    spare: innerWidth - document.scrollingElement.scrollWidth,
    beyond: free.filter(beyond).map(e => e.outerHTML.slice(0, 120)),
    cut: cut.map(e => e.outerHTML.slice(0, 120)),
  };
}"""


@pytest.mark.parametrize("name", SAMPLES)
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
        assert found["cut"] == [], width
    page.close()


def _contrast(one: str, other: str) -> float:
    """WCAG 2 contrast of two CSS rgb() colours."""

    def luminance(colour: str) -> float:
        parts = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", ["sample", "number_sample", "mended_sample"])
def test_both_themes_are_readable_and_differ(browser: Any, pages: dict[str, Path], name: str) -> None:
    seen = {}
    for theme in ("light", "dark"):
        page = _open(browser, pages[name], theme=theme)
        seen[theme] = page.evaluate(
            """(() => {
              const style = (query, what) => getComputedStyle(document.querySelector(query))[what];
              return {
                paper: style('body', 'backgroundColor'), ink: style('body', 'color'),
                soft: style('figcaption', 'color'), wash: style('.box', 'backgroundColor'),
                ours: style('.scores .ours .mark', 'fill'), public: style('.scores .public .mark', 'fill'),
                reference: style('.scores .reference .mark', 'stroke'),
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


def test_a_fold_opens_without_a_script(browser: Any, pages: dict[str, Path]) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(pages["sample"].as_uri())
    fold = page.locator("summary", has_text="All 32 cells in figures")
    table = page.get_by_role("region", name="Cells in figures")
    assert not table.is_visible()
    fold.click()
    assert table.is_visible()
    page.context.close()


def test_the_sample_prints_on_two_sheets_in_light_colours(browser: Any, pages: dict[str, Path]) -> None:
    page = _open(browser, pages["sample"], theme="dark")
    printed = page.pdf(format="A4", print_background=True, prefer_css_page_size=True)
    page.emulate_media(media="print", color_scheme="dark")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.close()
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2
    assert paper == "rgb(255, 255, 255)"


def test_the_sample_of_numbers_prints_on_three_sheets_at_most(browser: Any, pages: dict[str, Path]) -> None:
    page = _open(browser, pages["number_sample"])
    printed = page.pdf(format="A4", print_background=True, prefer_css_page_size=True)
    page.close()
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) in (2, 3)  # narrower fonts need fewer


def test_the_sample_of_corrections_prints_on_three_sheets_at_most(
    browser: Any, pages: dict[str, Path]
) -> None:
    page = _open(browser, pages["mended_sample"])
    printed = page.pdf(format="A4", print_background=True, prefer_css_page_size=True)
    page.close()
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) in (2, 3)  # narrower fonts need fewer


@pytest.mark.parametrize("name", ["mended_sample", "mended_classes", "many_corrections"])
def test_branches_run_on_from_row_to_row_and_end_at_the_middle_of_their_row(
    browser: Any, pages: dict[str, Path], name: str
) -> None:
    """At every width: no gap between the rows' parts of the tree, and no part over the words beside it."""
    page = _open(browser, pages[name])
    for width in (360, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate(
            """() => [...document.querySelectorAll('.mends > li')].filter(row => row.querySelector('.limbs')).map(row => {
              const box = e => e.getBoundingClientRect();
              const limbs = box(row.querySelector('.limbs')), name = box(row.querySelector('.name'));
              return {top: limbs.top, bottom: limbs.bottom, over: limbs.right - name.left,
                      row: [box(row).top, box(row).bottom]};
            })"""
        )
        assert len(found) >= 8
        assert all(row["over"] <= 0 for row in found), width
        assert all(
            abs(row["top"] - row["row"][0]) < 1.5 and abs(row["bottom"] - row["row"][1]) < 1.5
            for row in found
        ), width
        gaps = [after["top"] - before["bottom"] for before, after in pairwise(found)]
        assert all(abs(gap) < 1.5 for gap in gaps), width
    page.close()


def test_labels_left_of_a_plot_stand_where_its_lines_are(browser: Any, pages: dict[str, Path]) -> None:
    """At every width the tick's text is level with a line of the plot, and not under the plot."""
    page = _open(browser, pages["number_sample"])
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate(
            """() => [...document.querySelectorAll('.framed')].map(frame => {
              const [labels, plot] = frame.querySelectorAll('svg.upward, svg.plot');
              const box = e => e.getBoundingClientRect();
              const lines = [...plot.querySelectorAll('line.tick')].map(l => box(l)).filter(b => b.height < 1).map(b => b.top);
              return [...labels.querySelectorAll('text')].map(text => {
                const b = box(text), middle = (b.top + b.bottom) / 2;
                return {off: Math.min(...lines.map(y => Math.abs(y - middle))), over: b.right - box(plot).left, left: b.left};
              });
            })"""
        )
        ticks = [tick for frame in found for tick in frame]
        assert len(ticks) > 6
        assert all(tick["off"] < 4 and tick["over"] <= 0 and tick["left"] >= 0 for tick in ticks), width
    page.close()
