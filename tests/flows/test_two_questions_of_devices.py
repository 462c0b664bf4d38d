"""A collection of two questions: the first is closed once and for good, the next published then, and both become the model."""

import base64
import hashlib
import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from collecting import collection, part_people, run_of, send

from flows.finish import finish
from flows.work_folder.garbage import collect_garbage
from ldptree.client import Client
from ldptree.errors import BudgetError, ConfigError
from ldptree.protocol.protocol import Protocol
from tasks.answers.receive import OTHER_PROTOCOL, UNREADABLE
from tasks.artifacts import read_model
from tasks.report import read_facts


@pytest.fixture
def room(tmp_path):
    """A folder with public rides."""
    part_people(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Those who have devices."""
    return part_people(tmp_path_factory.mktemp("people"))


def two_questions(room, close):
    """The collection whose first question is along which column the public model is wrong."""
    model = {"base": "forest", "questions": 2}
    return collection(
        room, name="rides-twice", model=model, collection={"close": close}, privacy={"epsilon": 4.0}
    )


def published_in(room):
    folder = room / "work" / "published" / "rides-twice"
    index = json.loads((folder / "collection.json").read_bytes())
    return Protocol.from_json((folder / index["protocol"]).read_text()), folder


def answered(protocol, people):
    client = Client(protocol, max_epsilon=4.0, memory={})
    rows = enumerate(people.drop("paid").to_dicts())
    return [client.report(row, people["paid"][i], holder=f"person {i}").to_json() for i, row in rows]


def test_a_question_that_is_closed_is_followed_by_the_next_and_both_become_the_model(room, people):
    config = two_questions(room, 600)
    assert run_of(config, room / "work").conversation.is_unanswered
    first, folder = published_in(room)
    lines = answered(first, people[:700])
    send(room, "0001.jsonl", lines[:500])
    waiting = run_of(config, room / "work", "waiting")
    assert "500 reports have come to the first question. It closes with 600" in finish(waiting)["finding"]
    assert published_in(room)[0].digest == first.digest
    send(room, "0002.jsonl", [*lines[480:650], "torn"])
    closing = run_of(config, room / "work", "closing")
    second, _ = published_in(room)
    assert (first.round, second.round) == (1, 2)
    assert "closed, with 650 reports, and none has come to the second" in finish(closing)["finding"]
    index = json.loads((folder / "collection.json").read_bytes())
    served = hashlib.sha256((folder / index["protocol"]).read_bytes()).digest()
    assert index["integrity"] == f"sha256-{base64.b64encode(served).decode()}"
    send(room, "0003.jsonl", [*answered(second, people[700:1200]), *lines[650:]])
    learned = run_of(config, room / "work", "learned")
    assert [turn.left.facts["n_private"] for turn in learned.conversation.whole] == [650, 500]
    assert read_model(learned.store, learned.model["model"]).n_private == finish(learned)["n_private"] == 1150
    rejected = learned.respondents.facts["rejected"]
    assert (rejected[OTHER_PROTOCOL], rejected[UNREADABLE]) == (
        50,
        1,
    )  # those who were late, and the torn line
    assert published_in(room)[0].digest == second.digest
    facts = read_facts(learned.store, learned.page["page"])
    assert [asked.n_asked for asked in facts.privacy.asked] == [650, 500]
    assert facts.privacy.epsilon_spent == 4.0
    (room / "inbox" / "0001.jsonl").unlink()  # a closed question keeps its answers
    again = run_of(config, room / "work", "again")
    assert again.model["model"].digest == learned.model["model"].digest


def test_a_device_that_answered_the_first_question_has_nothing_left_for_the_second(room, people):
    config = two_questions(room, 1)
    run_of(config, room / "work")
    client, memory = published_in(room)[0], {}
    (row,), label = people[:1].drop("paid").to_dicts(), people["paid"][0]
    report = Client(client, max_epsilon=4.0, memory=memory).report(row, label)
    send(room, "0001.jsonl", [report.to_json()])
    run_of(config, room / "work")
    with pytest.raises(BudgetError, match="asks for epsilon 4; 4 of"):
        Client(published_in(room)[0], max_epsilon=4.0, memory=memory).report(row, label)


def test_a_question_stays_closed_whatever_the_clock_says_and_whatever_is_deleted(room, people, monkeypatch):
    config, until = two_questions(room, "2026-12-01"), datetime(2026, 12, 1, tzinfo=UTC)
    assert config.collection.close == until.date()
    run_of(config, room / "work")
    first, _ = published_in(room)
    send(room, "0001.jsonl", answered(first, people[:100]))
    for began, is_first in (
        (until - timedelta(seconds=1), True),
        (until, False),
        (until - timedelta(days=99), False),
    ):
        run = run_of(config, room / "work", began=began)
        assert (published_in(room)[0].digest == first.digest) == is_first
    finish(run)
    shutil.rmtree(room / "work" / "runs")
    collect_garbage(room / "work", keep=1, dry_run=False)
    send(room, "0002.jsonl", answered(published_in(room)[0], people[100:200]))
    learned = run_of(config, room / "work")
    assert read_model(learned.store, learned.model["model"]).n_private == 200


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("close: it ends the first of two", {"model": {"questions": 1}}),
        ("close: it ends the first of two", {"model": {"questions": "auto"}}),
        ("close: write a day", {"collection": {"close": "tomorrow"}}),
        ("close: write a day", {"collection": {"close": 0}}),
        ("close: sums from elsewhere", {"collection": {"inbox": None, "totals": "raw.parquet"}}),
    ],
)
def test_an_end_that_no_question_has_is_refused(tmp_path, key, changes):
    place = {"expected_holders": 1, "inbox": "inbox", "close": 5} | changes.get("collection", {})
    with pytest.raises(ConfigError, match=rf"(?s)collection\.{key}"):
        collection(
            tmp_path, model={"base": "forest", "questions": 2} | changes.get("model", {}), collection=place
        )
