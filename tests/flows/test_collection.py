"""A run whose reports come from an inbox: published once, learned from as often as wanted, each report once."""

import base64
import gzip
import hashlib
import json
import math
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import rides_config
from collecting import PEOPLE, collection, part_people, run_of, send

from flows.finish import finish
from flows.run_plan.look import plan_of
from flows.work_folder.registry import draft_entry
from ldptree.audit.shuffled import DELTA, shuffled_epsilon
from ldptree.client import Client
from ldptree.errors import (
    ArtifactCorrupt,
    ConfigError,
    DataError,
    LdptreeError,
    ProtocolMismatch,
)
from storage.reports.lines import ReportLines
from storage.reports.published import CLIENT
from tasks.answers import inbox
from tasks.answers.inbox import OPEN
from tasks.answers.receive import receive_folder, write
from tasks.artifacts import read_model, read_protocol, read_totals
from tasks.page.privacy import answers
from tasks.report import read_facts, say_left_out


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
    people = part_people(room)
    run = run_of(collection(room), room / "work")
    protocol = read_protocol(run.store, run.protocol)
    return run, protocol, answers_of(protocol.to_json(), people)


@pytest.fixture
def room(asked, tmp_path):
    """A work folder in which the question is published, and an empty inbox."""
    run, *_ = asked
    shutil.copytree(run.store.root, tmp_path / "work")
    shutil.copy(run.config.dataset.path[0], tmp_path / "public.csv")
    return tmp_path


def totals_of(run):
    (turn,) = run.conversation.whole
    (totals,) = read_totals(run.store, turn.left["totals"], read_protocol(run.store, run.protocol))
    return totals


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
        index["protocol"], "collection.json", "actors.json", "actors.html", "style.css", *client
    }  # fmt: skip
    assert all((folder / name).read_bytes() == content for name, content in client.items())
    assert index["question"] == "Who pays by card?"
    actors = json.loads((folder / "actors.json").read_bytes())["actors"]
    assert [actor["who"] for actor in actors][:3] == ["The device", "A relay, proxy or network", "The intake"]
    odds = math.exp(protocol.epsilon_exact) / 99
    assert [actor["believes"] for actor in actors[1:]] == pytest.approx([odds / (1 + odds)] * 4)
    page = (run.store.root / "runs" / "run" / "page.html").read_text()
    assert "No report has come yet." in page
    n, epsilon = run.config.collection.expected_holders, run.config.privacy.epsilon
    assert f"{n:,} people are expected, at epsilon {epsilon:g} each. The question lies in {folder}." in page
    assert "This run failed" not in page
    assert "stopped" not in page
    assert summary["n_private"] == 0
    assert summary["page"].endswith("page.html")
    assert summary["finding"].startswith("No report has come yet.")
    with pytest.raises(DataError, match="one that nobody had answered, or that stopped, has none"):
        draft_entry(run.store.root / "runs" / "run")


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


def test_a_protocol_that_is_gone_or_was_edited_and_deleted_is_written_again_to_the_byte(room, asked):
    """As the sentence about an edited one says; nothing else in the folder changes."""
    folder = room / "work" / "published" / "rides-asked"
    (path,) = folder.glob("?" * 64 + ".json")
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    path.unlink()
    run_of(collection(room), room / "work")
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before
    path.write_bytes(before[path.name] + b" ")
    with pytest.raises(ProtocolMismatch, match="Delete this file alone, and run again") as refused:
        run_of(collection(room), room / "work")
    assert str(refused.value).startswith(f"{path}: ")
    path.unlink()
    run_of(collection(room), room / "work")
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before


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
    assert "Rows are not people" not in page
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


def test_an_inbox_of_what_are_no_reports_gives_a_page_that_says_so(room):
    send(room, "a.jsonl", ["{}", "nothing", ""])
    run = run_of(collection(room), room / "work")
    assert run.conversation.is_unanswered
    assert "2 not a report" in finish(run)["finding"]


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


# Bad input


def packed(payload):
    return base64.b64encode(payload).decode()


HONEST = 20
BOMB = gzip.compress(bytes(2**27), 1)
OF_OTHERS = {
    "forged": ({"id": "f" * 32, "report": packed(b"\xff" * 4)}, "1 impossible under"),
    "another report under an id": ({"id": None}, "1 another report under the same id"),
    "another campaign's": ({"protocol": "0" * 64}, "1 answers another protocol"),
    "another round's": ({"round": 2}, "1 of another round"),
    "a seeded simulation's": ({"simulation": True}, "1 of a simulation"),
    "cheaper than it says": ({"epsilon": 0.1}, "1 not a report"),
    "too long a report": ({"report": packed(bytes(400))}, "1 wrong length"),
    "too long a line": ({"report": "A" * 10**6}, "1 not a report"),
    "a line without an end": (("b.jsonl", b"x" * 2**26), "a line in it has more than 16,777,216 bytes"),
    "truncated": (
        ("b.jsonl", b'{"protocol": "0'),
        "1 not a report. The most that are not a report, 1, are in ",
    ),
    "UTF-16": (("b.jsonl", "{}\n{}\n".encode("utf-16")), "b.jsonl."),
    "no JSON": (("b.jsonl", b"{}\nnothing\n\n"), "2 not a report"),
    "a gzip bomb": (("b.jsonl", BOMB), "not a report"),
    "a gzip bomb by its name": (("b.jsonl.gz", BOMB), "there is 1 other, as"),
    "a name that is no text": ((os.fsdecode(b"\xff.jsonl"), b"{}"), "there is 1 other, as"),
    "replayed": (None, "16 received before"),
    "an open segment": ((f"b.jsonl{OPEN}", b"{}"), ""),
    "a clock that went back": (datetime(1970, 1, 1, tzinfo=UTC), ""),
    "a clock that went on": (datetime(2600, 1, 1, tzinfo=UTC), ""),
}
"""What else comes, as changes of a line that nobody sent, a file, None for lines that are there already, or when a run began; and
the sentence for it.
"""


@pytest.mark.parametrize("what", OF_OTHERS)
def test_what_else_is_in_an_inbox_has_its_sentence_and_the_sums_are_those_of_the_reports_that_count(
    room, asked, what
):
    _, protocol, lines = asked
    more, sentence = OF_OTHERS[what]
    sent = [json.loads(line) for line in lines]
    send(room, "a.jsonl", lines[:HONEST])
    if isinstance(more, dict):
        other = next(report for report in sent[HONEST:] if report["report"] != sent[0]["report"]) | more
        send(room, "b.jsonl", [json.dumps(other | ({} if other["id"] else {"id": sent[0]["id"]}))])
    elif isinstance(more, tuple):
        (room / "inbox" / more[0]).write_bytes(more[1])
    elif more is None:
        send(room, "b.jsonl", [*lines[5:HONEST], lines[0]])
    run = run_of(collection(room), room / "work", began=more if isinstance(more, datetime) else None)
    said = say_left_out(run.respondents.facts)
    assert len(said) == bool(sentence)
    assert sentence in "".join(said)
    assert set(said) <= set(read_facts(run.store, run.page["page"]).warnings)
    payloads = [np.frombuffer(base64.b64decode(report["report"]), np.uint8) for report in sent[:HONEST]]
    raw = protocol.mechanism.aggregate(protocol.mechanism.unpack(np.stack(payloads)))
    np.testing.assert_allclose(
        totals_of(run).counts.ravel(), protocol.mechanism.unbias(raw, HONEST)[:-1], rtol=1e-12
    )


def without_a_row(room, _):
    rows = (room / "public.csv").read_text().splitlines(keepends=True)
    (room / "public.csv").write_text("".join(rows[:-1]))


def edit_protocol(room, _):
    (path,) = (room / "work" / "published" / "rides-asked").glob("?" * 64 + ".json")
    path.write_bytes(path.read_bytes().replace(b'"epsilon":2.0', b'"epsilon":9.0') + b" ")


def edit_index(room, _):
    path = room / "work" / "published" / "rides-asked" / "collection.json"
    path.write_bytes(path.read_bytes().replace(b'"epsilon": 2.0', b'"epsilon": 9.0'))


def write_while_read(room, patch):
    opened = ReportLines.read

    def read(self, paths, *more):
        opened(self, paths, *more)
        with (room / "inbox" / "a.jsonl").open("a") as file:
            file.write("{}\n")

    patch.setattr(ReportLines, "read", read)


def write_many(room, patch):
    patch.setattr(inbox, "MOST_SEGMENTS", 50)
    for number in range(60):
        send(room, f"{number}.jsonl", ["{}"])


STOPS = {
    "public rows that changed": (without_a_row, {}, ProtocolMismatch, "changed since it was published: public rows"),
    "another epsilon": (None, {"privacy": {"epsilon": 1.0}}, ProtocolMismatch, "changed since it was published: epsilon"),
    "other words": (None, {"dataset": {"question": "Who pays cash?"}}, ProtocolMismatch, "changed .*: dataset.question"),
    "more people": (None, {"collection": {"expected_holders": 30}}, ProtocolMismatch, "changed .*: collection.expected_holders"),
    "a protocol that was edited": (edit_protocol, {}, ProtocolMismatch, "not the protocol that was published, by its SHA-256"),
    "terms that were edited": (edit_index, {}, ArtifactCorrupt, r"collection\.json: damaged"),
    "no inbox": (lambda room, _: shutil.rmtree(room / "inbox"), {}, ConfigError, r"collection\.inbox: .*: no such folder"),
    "an inbox that is written while it is read": (write_while_read, {}, DataError, "changed while it was read"),
    "more segments than a run reads": (write_many, {}, DataError, "holds more than 50 files. Nothing was read"),
}  # fmt: skip


@pytest.mark.parametrize("what", STOPS)
def test_what_stops_a_run_is_one_sentence_and_nothing_is_lost(room, asked, what):
    *_, lines = asked
    spoil, changes, kind, sentence = STOPS[what]
    send(room, "a.jsonl", lines[:HONEST])
    whole = room.with_name(f"{room.name}-whole")
    shutil.copytree(room, whole)
    config = collection(room, **changes)
    with pytest.MonkeyPatch.context() as patch:
        if spoil is not None:
            spoil(room, patch)
        with pytest.raises(kind, match=sentence) as refused:
            run_of(config, room / "work")
    assert "\n" not in str(refused.value)
    for place in ("inbox", "public.csv", "work/published"):
        shutil.rmtree(room / place, ignore_errors=True) if (whole / place).is_dir() else (
            room / place
        ).unlink()
        (shutil.copytree if (whole / place).is_dir() else shutil.copy)(whole / place, room / place)
    assert totals_of(run_of(collection(room), room / "work")).n_private == HONEST


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
    write(receive_folder(room / "protocol.json", room / "inbox"), room / "totals")
    return room / "totals" / "raw.parquet"


def test_sums_that_somebody_else_added_up_are_learned_from_as_the_reports_would_be(room, asked):
    _, protocol, lines = asked
    config, place = of_totals(room)
    waiting = run_of(config, room / "work")
    assert waiting.conversation.is_unanswered
    assert "Their totals come as" in finish(waiting)["finding"]
    for n in (1000, PEOPLE):
        table = pq.read_table(added_up(room, protocol, [*lines[:n], lines[0], "torn"]))
        unsigned = table.set_column(0, "raw", table["raw"].cast("uint64"))
        pq.write_table(unsigned.replace_schema_metadata(table.schema.metadata), place)
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
        (DataError, lambda table: table.set_column(0, "raw", pa.array([2**64 - 1] * len(table), "uint64"))),
        (DataError, {"n_private": "[" * 10_000}),
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


def test_a_collection_that_lacks_a_key_is_told_of_its_other_faults_too(tmp_path):
    """One run of the command is enough to mend all of them."""
    with pytest.raises(LdptreeError) as refused:
        collection(tmp_path, collection={"expected_holders": None, "inbox": "inbox"}, evaluate=True)
    assert all(f"{key}: " in str(refused.value) for key in ("collection.expected_holders", "evaluate"))


def test_a_run_without_a_collection_is_known_by_the_same_text_as_before():
    assert "collection" not in rides_config(Path("rides.csv")).model_dump()


# Shuffled by another party


def test_a_page_states_the_epsilon_of_shuffled_reports_only_where_a_party_shuffles_them(room, asked):
    _, protocol, lines = asked
    send(room, "a.jsonl", lines)
    proved = shuffled_epsilon(protocol.mechanism, PEOPLE, DELTA).epsilon
    for number, shuffler in enumerate((None, "Statistics-Office")):
        name = f"rides-asked-20261128-101500-00000{number}"
        run = run_of(collection(room, collection={"shuffler": shuffler}), room / "work", name)
        facts = read_facts(run.store, run.page["page"])
        said = [sentence.text for answer in answers(facts) for sentence in answer.sentences]
        stated = [text for text in said if "1e-08" in text]
        assert len(stated) == (shuffler is not None)
        assert all(f"{PEOPLE:,} reports only from {shuffler}. That holds if" in text for text in stated)
        assert "Each device counts as one person." in said
        finish(run)
        draft = draft_entry(room / "work" / "runs" / name)
        assert (
            f"\n# - trust: None in the curator. People trust the software and the random bits of their own side. {shuffler}"
            in draft
        ) == (shuffler is not None)
        assert "add up, on their device." in draft
    assert proved <= facts.privacy.shuffled <= 1.02 * proved < protocol.epsilon / 3
