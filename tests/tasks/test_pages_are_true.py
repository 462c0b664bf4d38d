"""Every figure of a page is worked out anew from what the run's steps wrote (`page_truth`), on own data of many kinds; and the
checker sees a page that is wrong.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from chain import Chain, RoundsChain, fares, fares_config, mended, rides, rides_config, shells, shells_config
from first_fast import first_fast
from page_truth.artifacts import Run
from page_truth.reading import read
from page_truth.statements import check
from page_truth.verdicts import VERDICTS, verdict

from storage.store import Store
from tasks.page.cards import Card
from tasks.page.render import render_index
from tasks.report import read_facts

N = 900
RNG = np.random.default_rng(3)
LETTERS = list("abcdef")


def _labels(values: list[Any], n: int = N) -> dict[str, Any]:
    """A column of labels that go with nothing, but differ between public and private rows."""
    weights = np.arange(1, len(values) + 1) / sum(range(1, len(values) + 1))
    public, private = (RNG.choice(len(values), n, p=p) for p in (weights, weights[::-1]))
    found = np.where(np.arange(n) % 3 == 0, public, private)
    found[: 3 * len(values)] = np.repeat(np.arange(len(values)), 3)  # all are met in public rows
    return {"paid": np.array(values)[found]}


NO_POSITIVE: dict[str, Any] = {"dataset": {"positive": None}}
CORRECTION = lambda make: lambda *paths, **changes: mended(make, *paths, **changes)  # noqa: E731
CASES: dict[str, tuple[Any, Any, dict[str, Any], dict[str, Any], int]] = {
    "two classes": (rides, rides_config, {}, {}, N),
    "three classes": (rides, rides_config, _labels(["a", "b", "c"]), NO_POSITIVE, N),
    "words with figures": (rides, rides_config, _labels(["up to 3", "59 %"]), NO_POSITIVE, N),
    "a release": (rides, rides_config, {}, {"evaluate": False}, N),
    "one cell": (rides, rides_config, {}, {"model": {"depth": 0}}, N),
    "real noise": (rides, rides_config, {}, {"simulation": {"noise_seed": None}, "evaluate": False}, N),
    "capped": (
        rides,
        rides_config,
        {},
        {"evaluation": {"test_rows": 40, "private_rows": 50, "redraws": 0}},
        N,
    ),
    "a number": (fares, fares_config, {}, {}, N),
    "a number in noise": (fares, fares_config, {}, {"privacy": {"mechanism": "laplace"}}, N),
    "a number apart": (fares, fares_config, {}, {"privacy": {"mechanism": "randomized_response"}}, N),
    "a correction": (rides, CORRECTION(rides_config), {}, {}, N),
    "a correction of 6 classes": (
        rides,
        CORRECTION(rides_config),
        _labels(LETTERS, 3000),
        {"dataset": {"positive": None, "classes": LETTERS}},
        3000,
    ),
    "two questions": (
        rides,
        CORRECTION(rides_config),
        {},
        {"model": {"questions": 2, "base": "forest"}},
        3000,
    ),
    "a corrected number": (fares, CORRECTION(fares_config), {}, {"privacy": {"epsilon": 4.0}}, 3000),
    "a corrected release": (fares, CORRECTION(fares_config), {}, {"evaluate": False}, N),
}
QUICK = ("three classes", "a number", "a correction")
ROUNDS: dict[str, dict[str, Any]] = {
    "public features": {"privacy": {"epsilon": 4.0}},
    "public features, a release": {"evaluate": False},
    "HistOfTree": {"model": {"estimator": "histoftree", "t": 2, "s": 1, "p": 1}},
}


def make_run(folder: Any, name: str) -> Run:
    make, configured, columns, changes, n = CASES[name]
    path = make(folder / "rows.csv", n, 1, **columns)
    return Run(Chain(Store(folder / "work"), configured(path, **changes)))


@pytest.mark.parametrize("name", first_fast(*CASES, fast=QUICK))
def test_every_statement_of_a_page_is_so(tmp_path: Any, name: str) -> None:
    assert check(make_run(tmp_path, name)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUNDS)
def test_every_statement_of_a_page_of_rounds_is_so(tmp_path: Any, name: str) -> None:
    path = shells(tmp_path / "shells.parquet", N, 1)
    assert (
        check(Run(RoundsChain(Store(tmp_path / "work"), shells_config(path, **ROUNDS[name])).converse()))
        == []
    )


def test_people_who_only_live_elsewhere_are_not_said_to_behave_otherwise(tmp_path: Any) -> None:
    """Public rides are the short ones, private ones the long; one law decides how both are paid. The model is wrong there."""
    rng, n = np.random.default_rng(1), 6000
    miles = rng.uniform(0, 12, n).round(2)
    columns = {
        "miles": miles,
        "zone": np.where(miles < 6 + rng.normal(0, 0.3, n), "open", "closed"),
        "paid": np.where(rng.random(n) < 0.2 + 0.05 * miles, "card", "cash"),
    }
    config = CORRECTION(rides_config)(rides(tmp_path / "rows.csv", n, 1, **columns), privacy={"epsilon": 4.0})
    made = Run(Chain(Store(tmp_path / "work"), config))
    assert check(made) == []
    said = {one.attributes.get("data-says"): one.text for one in made.page.every("span")}
    assert "wrong where private rows are" in said["particular"]
    assert not re.search(r"(?i)private rows (?:seem to )?differ", made.page.text)


def test_a_page_says_of_how_many_people_more_is_unknown_than_a_report_can_tell(tmp_path: Any) -> None:
    """Private fares are 30 dollars higher; a residual is clipped at two or three."""
    n = 1500
    fare = np.where(np.arange(n) % 3 == 0, 10.0, 40.0) + RNG.normal(0, 1, n).round(2)
    path = fares(tmp_path / "rows.csv", n, 1, paid=fare)
    made = Run(Chain(Store(tmp_path / "work"), CORRECTION(fares_config)(path, privacy={"epsilon": 4.0})))
    assert check(made) == []
    (said,) = [one.text for one in made.page.every("span") if one.attributes.get("data-says") == "beyond"]
    assert said.startswith("For 100")


def test_a_weekly_page_says_how_many_are_new_and_how_many_reported_earlier(tmp_path: Any) -> None:
    """Also where a file of an earlier week lies beside the new one, and where nobody is new; by what lies in curator/reports."""
    store = Store(tmp_path / "work")
    weeks = [rides(tmp_path / f"{week}.csv", N, week) for week in range(3)]
    changes: Any = {
        "dataset": {"holder": "row", "new_people": True},
        "campaign": {"name": "weekly"},
        "evaluate": False,
    }
    for paths in (weeks[:1], weeks[:2], weeks[2:], weeks):
        earlier = _count_received(store)
        made = Run(Chain(store, rides_config(*paths, **changes)), n_earlier=earlier)
        assert check(made) == []
        new = _count_received(store) - earlier
        said = next(
            one.text for one in made.page.every("span") if one.attributes.get("data-says") == "campaign"
        )
        assert said.startswith(f"{new:,} new in this run, {earlier:,} in earlier runs")
        assert (new > 0) == (paths != weeks)
        facts = read_facts(store, made.chain.page["page"])
        card = Card.of(facts, Card(name="weekly"), has_asked=True)
        card = replace(card, campaign="weekly")
        assert f"weekly: {new:,} new, {earlier:,} earlier" in render_index({"one": card})
        assert made.chain.page.facts["n_new"] == new
        assert made.chain.page.facts["n_earlier"] == earlier


def _count_received(store: Store) -> int:
    files = (store.root / "curator" / "reports").rglob("*.parquet")
    return sum(int(pq.read_schema(path).metadata[b"holders"]) for path in files)


def _is_seen(made: Run, html: str) -> bool:
    """Whether the checker finds fault with another page of the same run."""
    other = Run(made.chain)
    other.html, other.page = html, read(html)
    try:
        return bool(check(other))
    except (AssertionError, LookupError, ValueError):
        return True


@pytest.fixture(scope="module", params=first_fast("two classes", "a corrected number"))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("run"), request.param)


def test_the_checker_sees_every_figure_that_is_off(made: Run) -> None:
    html = made.html.replace("&#39;", "’")  # whose digits nobody reads
    spans = [
        m.span()
        for m in re.finditer(
            r'data-says="(?!data|caps|kinds|people|made|mechanism|example|recall|basis|curves)'
            r'[^"]*">[^<]*?\d[^<]*<|<td>[^<]*\d[^<]*<|class="v">[^<]*<',
            html,
        )
    ]
    assert len(spans) > 60
    for at in np.random.default_rng(5).choice(len(spans), 25, replace=False).tolist():
        start, end = spans[at]
        text = html[start:end]
        digits = [m.start() for m in re.finditer(r"\d(?![\d,.]*\d)", text) if m.start() > text.index(">")]
        place = digits[0]
        changed = text[:place] + str((int(text[place]) + 3) % 10) + text[place + 1 :]
        assert _is_seen(made, html[:start] + changed + html[end:]), text


def test_the_checker_sees_another_verdict_and_another_heading(made: Run) -> None:
    chip, heading = verdict(made), re.search(r'<h1><span data-says="([^"]*)"', made.html)
    assert heading
    assert check(Run(made.chain)) == []
    for other, keys in VERDICTS.items():
        assert (other == chip) != _is_seen(made, made.html.replace(f"{chip}</span>", f"{other}</span>"))
        for key in keys:
            changed = made.html.replace(heading[0], heading[0].replace(heading[1], key))
            assert _is_seen(made, changed) or key in VERDICTS[chip]


@pytest.mark.parametrize(
    "kind",
    [
        r'<circle class="m" cx="(?!50%" cy="8")',
        r'<line class="iv" x1="',
        r'<line class="wh" x1="(?=[^>]*y1="1[13]")',
    ],
)
def test_the_checker_sees_a_mark_that_stands_elsewhere(made: Run, kind: str) -> None:
    marks = [*re.finditer(kind + r"([\d.]+)%", made.html)]
    assert marks
    for one in marks[:: max(len(marks) // 4, 1)]:
        place = float(one[1])
        changed = f"{place + 5 if place < 50 else place - 5:.2f}"
        assert _is_seen(made, made.html[: one.start(1)] + changed + made.html[one.end(1) :]), one[0]


def test_the_checker_sees_a_draw_that_stands_elsewhere(made: Run) -> None:
    for one in list(re.finditer(r'<circle class="d" cx="([\d.]+)%"', made.html))[::7]:
        place = float(one[1])
        changed = f"{place + 9 if place < 50 else place - 9:.2f}"
        assert _is_seen(made, made.html[: one.start(1)] + changed + made.html[one.end(1) :]), one[0]


def test_the_checker_sees_a_number_that_nothing_explains(made: Run) -> None:
    assert _is_seen(made, made.html.replace("</span></h1>", " Surely 17 more.</span></h1>"))
