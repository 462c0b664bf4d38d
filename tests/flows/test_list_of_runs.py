"""`index.html` of a work folder: every run that stands, also those that stopped; rebuilt whole, whoever else writes it."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from chain import Chain, rides, rides_config

from flows.finish import finish, page_of_failure
from flows.work_folder.garbage import collect_garbage
from flows.work_folder.index import find_weeks, list_run, list_started, write_index
from ldptree.errors import BudgetError, DataError
from storage.objects.folder import FolderObjects
from storage.store import Store
from tasks.page.cards import Card, draw_campaign
from tasks.page.render import render
from tasks.report import read_facts


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The configuration of a run, and what its page tells."""
    room = tmp_path_factory.mktemp("run")
    done = Chain(Store(room / "work"), rides_config(rides(room / "rides.csv", 900, 1)))
    return done.config, read_facts(done.store, done.page["page"])


@pytest.fixture
def chain(run, tmp_path):
    """That run, not begun, in a work folder of its own."""
    return Chain(Store(tmp_path / "work"), run[0])


@pytest.fixture
def facts(run):
    return run[1]


def _leave(store, facts, name, created, command=""):
    """A run that is over, with its folder and its line."""
    run = replace(facts, name=name, making=replace(facts.making, created=created))
    store.objects.put(f"runs/{name}/page.html", render(run).encode())
    list_run(store, name, Card.of(run, Card(name=name, created=created, command=command), has_asked=True))
    return store.root / "runs" / name


def _index(store):
    return (store.root / "index.html").read_text(encoding="utf-8")


def test_runs_are_listed_newest_first_while_their_folders_stand(chain, facts):
    older = _leave(chain.store, facts, "older", "2026-01-02T03:04:05+00:00")
    newer = _leave(chain.store, facts, "newer", "2026-01-02T05:04:05+01:59")
    page = _index(chain.store)
    assert page.index('href="runs/newer/page.html"') < page.index('href="runs/older/page.html"')
    assert "<script" not in page
    shutil.rmtree(newer)
    (older / "card.json").write_text("{")
    write_index(chain.store)
    assert 'href="runs/older/page.html"' in _index(chain.store)
    assert "newer" not in _index(chain.store)


def test_a_line_says_nothing_that_the_runs_page_does_not(chain, facts):
    folder = _leave(chain.store, facts, "one", "2026-01-02T03:04:05+00:00")
    page = re.sub("<[^>]*>", "", (folder / "page.html").read_text(encoding="utf-8"))
    line = _index(chain.store)
    found = line[line.index('<li class="run">') : line.index("</li>")]
    texts = [part.split(">")[-1].strip(" ,") for part in found.split("<")]
    assert len([text for text in texts if text]) >= 4
    assert [text for text in texts if text not in page] == []


def test_of_many_runs_at_once_none_is_lost(chain, facts):
    def leave(number):
        _leave(chain.store, facts, f"run-{number}", f"2026-01-02T03:04:{number:02}+00:00")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(leave, range(12)))
    assert all(f'href="runs/run-{number}/page.html"' in _index(chain.store) for number in range(12))


def test_a_page_of_a_campaign_draws_its_runs_up_to_this_one(chain, facts):
    facts = replace(
        facts, making=replace(facts.making, config=facts.making.config | {"campaign.name": "weekly"})
    )
    cards = {}
    for week in (1, 2, 3):
        created = f"2026-01-0{week}T03:04:05+00:00"
        cards[week] = Card.of(facts, Card(name="weekly", created=created), has_asked=True)
        _leave(chain.store, facts, f"week-{week}", created)
    _leave(
        chain.store,
        replace(facts, making=replace(facts.making, config={})),
        "other",
        "2026-01-01T00:00:00+00:00",
    )
    assert find_weeks(chain.store, "week-1", cards[1]) is None, "its first run"
    for week in (2, 3):
        weeks = find_weeks(chain.store, f"week-{week}", cards[week])
        assert [row.name for row in weeks.rows] == [f"{day} January 2026" for day in range(1, week + 1)]
        page = render(replace(facts, campaign="weekly"), weeks)
        assert page.count('class="chart weeks"') == 1
    assert find_weeks(chain.store, "other", Card(name="other")) is None


def test_runs_of_a_campaign_on_one_day_are_numbered_and_their_figure_is_named(facts):
    made = Card.of(facts, Card(name="weekly"), has_asked=True)
    cards = [
        replace(made, campaign="weekly", created=f"2026-01-02T03:{minute:02}:05+00:00")
        for minute in range(14)
    ]
    weeks = draw_campaign(cards, "weekly")
    assert [row.name for row in weeks.rows] == [f"Run {n}, 2 January 2026" for n in range(3, 15)]
    assert f"{weeks.caption}</p>" in render(replace(facts, campaign="weekly"), weeks)
    assert weeks.caption == "Predicted correctly."


def test_a_title_that_runs_in_a_row_share_is_listed_once(chain, facts):
    facts = replace(facts, title="Rides of two firms")
    for week in (1, 2, 3):
        _leave(chain.store, facts, f"week-{week}", f"2026-01-0{week}T03:04:05+00:00")
    assert _index(chain.store).count("Rides of two firms") == 1


def test_a_campaign_has_its_trend_beside_its_newest_run(chain, facts):
    config = facts.making.config | {"campaign.name": "weekly"}
    weekly = replace(facts, making=replace(facts.making, config=config))
    _leave(chain.store, weekly, "first", "2026-01-02T03:04:05+00:00")
    assert 'class="chart weeks"' not in _index(chain.store)
    _leave(chain.store, weekly, "second", "2026-01-09T03:04:05+00:00")
    _leave(chain.store, facts, "alone", "2026-01-10T03:04:05+00:00")
    page = _index(chain.store)
    (trend,) = re.findall(r'class="chart weeks">(.*?)</ol>', page, re.DOTALL)
    assert trend.count("<li ") == 2


@pytest.mark.parametrize(
    ("asked", "said", "cost"),
    [
        (False, "no privacy was spent", "nobody asked"),
        (True, "nobody reports twice", "trial, ε\u00a0=\u00a02"),
    ],
)
def test_a_run_that_stops_has_a_page_that_says_why_and_how_to_go_on(chain, asked, said, cost):
    chain.command = "ldptree run mine.toml"
    steps = ["ingest", "perturb"] if asked else ["ingest"]
    for step in steps:
        chain.timeline.hear(step, "start", 0.0)
    chain.timeline.hear(steps[-1], "failed", 0.0)
    with pytest.raises(BudgetError), page_of_failure(chain):
        raise BudgetError("Ann <b> has spent it all")
    (page,) = (path.read_text(encoding="utf-8") for path in chain.store.root.glob("runs/*/page.html"))
    page = page.replace("&#39;", "'")
    assert f"stopped at the step “{steps[-1]}”" in page
    assert "Ann &lt;b&gt; has spent it all" in page
    assert page.count("<code>ldptree run mine.toml</code>") == 1, "it is not to be repeated"
    assert said in page
    assert cost in _index(chain.store)
    assert "Stopped" in _index(chain.store)


def test_a_killed_run_is_listed_with_the_command_that_goes_on_until_that_ends(chain, facts):
    class Killed(BaseException):
        pass

    chain.command = "ldptree run rides"
    with pytest.raises(Killed), page_of_failure(chain):
        raise Killed
    page = _index(chain.store)
    assert "Not finished" in page
    assert f"<code>{chain.command}</code>" in page
    assert "page.html" not in page
    assert not (chain.store.root / "runs").exists()
    _leave(chain.store, facts, "other", "2026-01-02T03:04:05+00:00", command="ldptree run others")
    assert "Not finished" in _index(chain.store)
    _leave(chain.store, facts, "again", "2026-01-02T03:04:05+00:00", command=chain.command)
    assert "Not finished" not in _index(chain.store)


@pytest.mark.parametrize(
    ("asks", "said", "cost"),
    [
        (False, "at the step “ingest”. Nobody had been asked.", "nobody asked"),
        (
            True,
            "at the step “perturb”. People may have been asked; nobody is asked twice.",
            "up to ε\u00a0=\u00a02",
        ),
    ],
)
def test_a_run_that_is_cancelled_says_where_and_whether_anybody_may_have_been_asked(chain, asks, said, cost):
    told = []
    chain.executor.stop = lambda message, *_, **__: told.append(message)
    chain.timeline.hear("ingest", "end", 1.0)

    def cancel():
        if asks:
            chain.respondents.charge(chain.first, None)
            chain.timeline.hear("perturb", "start", 0.0)
        raise SystemExit(143)

    with pytest.raises(SystemExit), page_of_failure(chain):
        cancel()
    assert said in _index(chain.store)
    assert cost in _index(chain.store)
    assert told == [f"It was broken off {said}"]


def test_a_run_that_finds_everything_made_has_its_own_time_and_asked_nobody(tmp_path):
    config = rides_config(rides(tmp_path / "rides.csv", 900, 1), release=True)
    for name in ("first", "again"):
        chain = Chain(Store(tmp_path / "work"), config)
        chain.name, chain.command = name, "ldptree run rides"
        chain.timeline.began_at = datetime(2026, 1, 2 if name == "first" else 9, 3, 4, tzinfo=UTC)
        with chain.timeline.listening():
            chain.walk()
        finish(chain)
    lines = re.findall(r'<li class="run">.*?</li>', _index(chain.store), re.DOTALL)
    assert ["runs/again/" in line for line in lines] == [True, False]
    assert "9 January 2026" in lines[0]
    assert "nobody asked" in lines[0]
    assert "2 January 2026" in lines[1]
    assert "<b>ε\u00a0=\u00a02</b>" in lines[1]
    assert ", figures of " in (chain.store.root / "runs" / "again" / "page.html").read_text(encoding="utf-8")


def test_gc_takes_killed_runs_off_the_list(chain, facts):
    _leave(chain.store, facts, "whole", "2026-01-02T03:04:05+00:00")
    card = Card.of_started(chain.config, "ldptree run rides", "2026-01-02T03:04:05+00:00")
    list_started(chain.store, "killed-20260102-030405-123456", card)
    (chain.store.root / "started" / "mine.json").write_text("{}")
    assert "Not finished" in _index(chain.store)
    collect_garbage(chain.store.root, keep=1, dry_run=False)
    assert "Not finished" not in _index(chain.store)
    assert [path.name for path in (chain.store.root / "started").iterdir()] == ["mine.json"]


def test_a_page_that_cannot_be_written_hides_no_reason(chain, monkeypatch):
    monkeypatch.setattr(FolderObjects, "put", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(DataError, match="the reason"), page_of_failure(chain):
        raise DataError("the reason")
