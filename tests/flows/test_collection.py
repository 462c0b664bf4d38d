"""A run whose reports come from an inbox: published once, learned from as often as wanted, each report once."""

import base64
import hashlib
import json
import math
import os
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import laid_over, rides, rides_config

from flows.executors import InlineExecutor
from flows.finish import finish
from flows.pipeline import Pipeline
from flows.run_plan.look import plan_of
from ldptree.client import Client
from ldptree.errors import ConfigError, DataError, LdptreeError, ProtocolMismatch
from schemas.config import parse
from storage.reports.lines import ReportLines
from storage.reports.published import CLIENT
from storage.store import Store
from tasks.answers import inbox
from tasks.answers.inbox import OPEN
from tasks.answers.receive import CONFLICTING, OTHER_PROTOCOL, SEEN, SIMULATED, UNREADABLE, receive, write
from tasks.artifacts import read_model, read_protocol, read_totals
from tasks.report import read_facts

PEOPLE = 3000


def collection(room, **changes):
    """A configuration of the public rides in a room, with its inbox."""
    (room / "inbox").mkdir(exist_ok=True)
    content = {
        "name": "rides-asked",
        "evaluate": False,
        "seed": 7,
        "dataset": {
            "name": "rides",
            "path": [str(room / "public.csv")],
            "target": "paid",
            "positive": "card",
            "public": "true",
            "drop": ["person", "zone"],
            "question": "Who pays by card?",
        },
        "model": {"estimator": "correction", "base": "tree"},
        "privacy": {"epsilon": 2.0},
        "collection": {"expected_holders": PEOPLE, "inbox": str(room / "inbox")},
    }
    return parse(laid_over(content, changes))


def run_of(config, work, name="run"):
    """The run, walked."""
    store = Store(work)
    run = Pipeline(store=store, config=config, executor=InlineExecutor(store), name=name)
    run.walk()
    return run


def answers_of(protocol, people):
    """A line of each person's device, by the client in Python."""
    rows = people.drop("paid").to_dicts()
    return [
        Client(protocol, max_epsilon=2.0, memory={}).report(row, label).to_json()
        for row, label in zip(rows, people["paid"], strict=True)
    ]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """What is published of a collection, and the lines that its people's devices send. Only to be read."""
    room = tmp_path_factory.mktemp("asked")
    everybody = pl.read_csv(rides(room / "all.csv", 3 * PEOPLE // 2, 3))
    everybody.filter(pl.col("zone") == "open").write_csv(room / "public.csv")
    run = run_of(collection(room), room / "work")
    protocol = read_protocol(run.store, run.protocol)
    people = everybody.filter(pl.col("zone") == "closed").drop("zone", "person")
    return run, protocol, answers_of(protocol.to_json(), people)


@pytest.fixture
def room(asked, tmp_path):
    """A work folder in which the question is published, and an empty inbox."""
    run, *_ = asked
    shutil.copytree(run.store.root, tmp_path / "work")
    shutil.copy(run.config.dataset.path[0], tmp_path / "public.csv")
    return tmp_path


def send(room, name, lines, end="\n"):
    (room / "inbox").mkdir(exist_ok=True)
    (room / "inbox" / name).write_text("\n".join(lines) + end)


def totals_of(run):
    (turn,) = run.conversation.whole
    (totals,) = read_totals(run.store, turn.left["totals"], read_protocol(run.store, run.protocol))
    return totals


def computed(run, step):
    return [entry for entry in run.records if entry.step == step]


# Published


def test_the_first_run_publishes_the_question_under_its_sha256_and_a_page_that_says_nobody_has_answered(
    asked, monkeypatch
):
    run, protocol, _ = asked
    shown = []
    monkeypatch.setattr(run.executor, "show", lambda _, title, summary: shown.append(summary))
    summary = finish(run)
    assert shown == [summary]  # and so it is an event, as every run that finished
    assert summary["metrics"] == {}
    folder = run.store.root / "published" / "rides-asked"
    index = json.loads((folder / "collection.json").read_bytes())
    text = (folder / index["protocol"]).read_bytes()
    assert index["protocol"] == f"{hashlib.sha256(text).hexdigest()}.json"
    assert text.decode() == protocol.to_json()
    assert protocol.campaign == "rides-asked"
    client = {path.name: path.read_bytes() for path in CLIENT.iterdir()}
    assert {path.name for path in folder.iterdir()} == {
        index["protocol"], "collection.json", "actors.json", *client
    }  # fmt: skip
    assert all((folder / name).read_bytes() == content for name, content in client.items())
    assert index["question"] == "Who pays by card?"
    actors = json.loads((folder / "actors.json").read_bytes())["actors"]
    assert [actor["who"] for actor in actors][:3] == ["The device", "A relay, proxy or network", "The intake"]
    odds = math.exp(protocol.epsilon_exact) / 99
    assert [actor["believes"] for actor in actors[1:]] == pytest.approx([odds / (1 + odds)] * 4)
    page = (run.store.root / "runs" / "run" / "page.html").read_text()
    assert "No report has come yet." in page
    assert "This run failed" not in page
    assert "stopped" not in page
    assert summary["n_private"] == 0
    assert summary["page"].endswith("page.html")
    assert summary["finding"].startswith("No report has come yet.")


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("epsilon", {"privacy": {"epsilon": 1.0}}),
        ("public rows", {}),
        ("collection.expected_holders", {"collection": {"expected_holders": 30}}),
    ],
)
def test_terms_that_changed_since_people_were_asked_are_refused(room, asked, what, changes):
    *_, lines = asked
    send(room, "a.jsonl", lines[:10])
    if not changes:
        rows = (room / "public.csv").read_text().splitlines(keepends=True)
        (room / "public.csv").write_text("".join(rows[:-1]))
    with pytest.raises(ProtocolMismatch, match=rf"changed since it was published: .*{what}") as refused:
        run_of(collection(room, **changes), room / "work")
    assert refused.value.exit_code == 5


def test_a_plan_foresees_that_changed_terms_are_refused_and_publishes_nothing(room, asked, tmp_path):
    *_, lines = asked
    send(room, "a.jsonl", lines[:10])
    with pytest.raises(ProtocolMismatch, match="changed since it was published: epsilon"):
        plan_of(collection(room, privacy={"epsilon": 1.0}), room / "work")
    for work, state in ((room / "work", "cached"), (tmp_path / "new", "compute")):
        states = {line["name"]: line["state"] for line in plan_of(collection(room), work)}
        assert (states["partition"], states["receive"]) == (state, "compute")
    assert not (tmp_path / "new").exists()


def test_a_consent_page_that_was_changed_stays_as_it_is(room):
    page = room / "work" / "published" / "rides-asked" / "consent.html"
    page.write_text("ours")
    run_of(collection(room), room / "work")
    assert page.read_text() == "ours"


def test_a_published_protocol_that_was_edited_by_hand_is_refused(room):
    (path,) = (room / "work" / "published" / "rides-asked").glob("?" * 64 + ".json")
    path.write_bytes(path.read_bytes().replace(b'"epsilon":2.0', b'"epsilon":9.0') + b" ")
    with pytest.raises(ProtocolMismatch, match="not the protocol that was published, by its SHA-256"):
        run_of(collection(room), room / "work")


# Learned


def test_three_thousand_devices_answer_and_every_run_learns_from_what_is_there(room, asked):
    _, protocol, lines = asked
    send(room, "0001.jsonl", lines[:1000])
    first = run_of(collection(room), room / "work")
    send(room, "0002.jsonl", lines[1000:])
    send(room, f"0003.jsonl{OPEN}", lines[:7])
    second = run_of(collection(room), room / "work", "second")
    n = [read_model(run.store, run.model["model"]).n_private for run in (first, second)]
    assert n == [1000, PEOPLE]
    summary = finish(second)
    page = (room / "work" / "runs" / "second" / "page.html").read_text()
    facts = read_facts(second.store, second.page["page"])
    assert (summary["n_private"], facts.n_private, facts.scores) == (PEOPLE, PEOPLE, None)
    assert summary["metrics"] == {}
    assert "can answer twice" in page
    assert facts.warnings == ()
    assert protocol.digest in {asked.digest for asked in facts.privacy.asked}
    again = run_of(collection(room), room / "work", "third")
    assert [r.key for r in again.records] == [r.key for r in second.records]
    assert not (room / "work" / "holders" / "ledger.sqlite").exists()


def test_a_segment_is_read_once_however_many_runs_there_are(room, asked, monkeypatch):
    *_, lines = asked
    send(room, "0001.jsonl", lines[:20])
    run_of(collection(room), room / "work")
    read, opened = [], ReportLines.read

    def reading(self, paths, *more):
        read.extend(paths)
        opened(self, paths, *more)

    monkeypatch.setattr(ReportLines, "read", reading)
    for number in range(2, 4):
        send(room, f"000{number}.jsonl", lines[20 * number : 20 * number + 20])
        run = run_of(collection(room), room / "work")
    assert [path.name for path in read] == ["0002.jsonl", "0003.jsonl"]
    assert totals_of(run).n_private == 60


def test_reports_of_an_inbox_add_up_to_what_the_same_reports_add_up_to_elsewhere(room, asked):
    """Here by the mechanism alone, from the lines' own bytes."""
    _, protocol, lines = asked
    send(room, "0001.jsonl", lines[:1500])
    send(room, "0002.jsonl", lines[1500:])
    run = run_of(collection(room), room / "work")
    packed = np.stack(
        [np.frombuffer(base64.b64decode(json.loads(line)["report"]), np.uint8) for line in lines]
    )
    reports = protocol.mechanism.unpack(packed)
    raw = protocol.mechanism.aggregate(reports)
    totals = totals_of(run)
    counts = protocol.mechanism.unbias(raw, PEOPLE)
    np.testing.assert_allclose(totals.counts.ravel(), counts[:-1], rtol=1e-12)


def test_a_report_that_arrives_in_two_segments_counts_once_and_whatever_is_none_is_counted(room, asked):
    _, protocol, lines = asked
    forged = json.loads(lines[0]) | {"id": "f" * 32}
    other = json.dumps(forged | {"protocol": "0" * 64})
    simulated = json.dumps(forged | {"simulation": True})
    cheaper = json.dumps(forged | {"epsilon": 0.1})
    others = (json.loads(line) for line in lines)
    conflicting = json.dumps(
        next(line for line in others if line["report"] != forged["report"])
        | {"id": json.loads(lines[0])["id"]}
    )
    send(room, "0001.jsonl", lines[:50])
    send(room, "0002.jsonl", [*lines[40:60], other, simulated, cheaper, conflicting, lines[60][:30]], end="")
    run = run_of(collection(room), room / "work")
    assert totals_of(run).n_private == 60
    expected = {SEEN: 10, OTHER_PROTOCOL: 1, SIMULATED: 1, UNREADABLE: 2, CONFLICTING: 1}
    assert run.respondents.facts["rejected"] == expected
    assert Counter(json.loads(line)["id"] for line in lines).most_common(1)[0][1] == 1
    (warning,) = read_facts(run.store, run.page["page"]).warnings
    assert "10 received before" in warning
    assert protocol.epsilon == 2.0


def test_an_inbox_of_what_are_no_reports_gives_a_page_that_says_so(room):
    send(room, "a.jsonl", ["{}", "nothing", ""])
    send(room, "notes.txt", ["hello"])
    (room / "inbox" / os.fsdecode(b"\xff.jsonl")).write_text("{}")
    run = run_of(collection(room), room / "work")
    assert run.conversation.is_unanswered
    assert "2 not a report" in finish(run)["finding"]
    assert "there are 2 others" in finish(run)["finding"]


def test_a_segment_that_is_written_to_while_it_is_read_stops_the_run_and_nothing_is_learned(
    room, asked, monkeypatch
):
    *_, lines = asked
    send(room, "a.jsonl", lines[:10])
    opened = ReportLines.read

    def read(self, paths, *more):
        opened(self, paths, *more)
        with (room / "inbox" / "a.jsonl").open("a") as file:
            file.write(lines[11] + "\n")

    with monkeypatch.context() as patch:
        patch.setattr(ReportLines, "read", read)
        with pytest.raises(DataError, match="changed while it was read"):
            run_of(collection(room), room / "work")
    assert totals_of(run_of(collection(room), room / "work")).n_private == 11


def test_an_inbox_in_a_bucket_is_read_as_one_in_a_folder(room, asked, monkeypatch):
    pytest.importorskip("obstore")
    from obstore.store import MemoryStore

    from storage.objects.bucket import BucketObjects

    *_, lines = asked
    bucket = BucketObjects(MemoryStore(), "s3://reports", room / "copies")
    monkeypatch.setattr("storage.objects.addresses._to_read", lambda *_, **__: bucket)
    config = collection(room, collection={"expected_holders": PEOPLE, "inbox": "s3://reports/rides/"})
    assert run_of(config, room / "work").conversation.is_unanswered
    bucket.put("rides/0001.jsonl", "\n".join(lines[:30]).encode())
    bucket.put("rides/0002.jsonl", "\n".join(lines[20:40]).encode())
    bucket.put("rides/0003.part", b"{")
    bucket.put("rides-of-others/0004.jsonl", lines[50].encode())
    run = run_of(config, room / "work")
    assert totals_of(run).n_private == 40
    assert run.respondents.facts["passed_over"] == []


# Totals from elsewhere


def of_totals(room):
    """The configuration whose sums come from elsewhere, and the file."""
    place = room / "raw.parquet"
    return collection(room, collection={"inbox": None, "totals": str(place)}), place


def added_up(room, protocol, lines):
    """What somebody else leaves who adds the reports up."""
    (room / "protocol.json").write_text(protocol.to_json())
    send(room, "0001.jsonl", lines)
    shutil.rmtree(room / "totals", ignore_errors=True)
    write(receive(room / "protocol.json", room / "inbox"), room / "totals")
    return room / "totals" / "raw.parquet"


def test_sums_that_somebody_else_added_up_are_learned_from_as_the_reports_would_be(room, asked):
    _, protocol, lines = asked
    config, place = of_totals(room)
    waiting = run_of(config, room / "work")
    assert waiting.conversation.is_unanswered
    assert "Their totals come as" in finish(waiting)["finding"]
    for n in (1000, PEOPLE):
        shutil.copy(added_up(room, protocol, [*lines[:n], lines[0], "torn"]), place)
        run = run_of(config, room / "work", f"run-{n}")
        assert totals_of(run).n_private == finish(run)["n_private"] == n
    by_reports = run_of(collection(room), room / "work", "by-reports")
    assert totals_of(run).counts.tolist() == totals_of(by_reports).counts.tolist()
    assert run.model["model"].digest == by_reports.model["model"].digest


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (ProtocolMismatch, {"protocol": "0" * 64}),
        (ProtocolMismatch, {"protocol": None}),
        (DataError, {"n_private": "9"}),
        (DataError, {"n_private": "many"}),
        (DataError, {"n_private": "-1"}),
        (DataError, {"n_private": None}),
        (DataError, lambda table: table.slice(1)),
        (DataError, lambda table: table.rename_columns(["sums"])),
        (DataError, lambda table: table.set_column(0, "raw", pa.array(table["raw"].to_numpy() + 0.5))),
        (
            DataError,
            lambda table: table.set_column(0, "raw", pa.array([None, *table["raw"].to_pylist()[1:]])),
        ),
        (DataError, lambda table: table.set_column(0, "raw", pa.array(table["raw"].to_numpy() + 1000))),
        (DataError, None),
    ],
)
def test_a_file_of_totals_that_people_cannot_have_given_is_refused(room, asked, kind, change):
    _, protocol, lines = asked
    config, place = of_totals(room)
    table = pq.read_table(added_up(room, protocol, lines[:1000]))
    if change is None:
        place.write_text("raw\n1\n")
    else:
        if callable(change):
            table = change(table).replace_schema_metadata(table.schema.metadata)
        else:
            stated = {key.decode(): value for key, value in table.schema.metadata.items()} | change
            table = table.replace_schema_metadata({key: value for key, value in stated.items() if value})
        pq.write_table(table, place)
    with pytest.raises(kind, match=r"collection\.totals: raw\.parquet: "):
        run_of(config, room / "work")


def test_a_file_of_totals_that_is_written_while_it_is_read_stops_the_run(room, asked, monkeypatch):
    _, protocol, lines = asked
    config, place = of_totals(room)
    shutil.copy(added_up(room, protocol, lines[:1000]), place)
    read = inbox.add_totals

    def reading(path, sums):
        read(path, sums)
        shutil.copy(added_up(room, protocol, lines[:1001]), place)

    with monkeypatch.context() as patch:
        patch.setattr(inbox, "add_totals", reading)
        with pytest.raises(DataError, match="changed while it was read"):
            run_of(config, room / "work")
    assert totals_of(run_of(config, room / "work")).n_private == 1001


# Refused


def test_an_inbox_that_is_not_there_is_refused(room):
    config = collection(room)
    (room / "inbox").rmdir()
    with pytest.raises(ConfigError, match=r"collection\.inbox: .*: no such folder"):
        run_of(config, room / "work")


def test_rows_that_would_be_private_are_refused(room):
    with pytest.raises(DataError, match="in a collection every row is public"):
        run_of(collection(room, dataset={"public": "miles > 3"}), room / "new")


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("evaluate", {"evaluate": True}),
        ("campaign.name", {"campaign": {"name": "c"}}),
        ("privacy.lifetime_epsilon", {"privacy": {"lifetime_epsilon": 3.0}}),
        ("simulation.noise_seed", {"simulation": {"noise_seed": 1}}),
        ("dataset.holder", {"dataset": {"holder": "person", "drop": ["zone"]}}),
        ("collection.inbox", {"collection": {"expected_holders": 1, "inbox": None}}),
        ("collection.totals", {"collection": {"expected_holders": 1, "totals": "raw.parquet"}}),
        ("model.questions", {"model": {"questions": 2}}),
    ],
)
def test_what_does_not_go_with_a_collection_is_refused_by_its_key(tmp_path, key, changes):
    with pytest.raises(LdptreeError, match=rf"(?s){key}: "):
        collection(tmp_path, **changes)


def test_a_run_without_a_collection_is_known_by_the_same_text_as_before():
    assert "collection" not in rides_config(Path("rides.csv")).model_dump()
