"""What one holder spends in a lifetime stays within what they allow: over protocols, campaigns, processes and crashes."""

import contextlib
import json
import multiprocessing
import os
import re
import textwrap
import time
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_vectors import ROWS, protocol_of

from ldptree.client import Client, FileMemory
from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import BudgetError, ConfigError, DataError
from ldptree.mechanisms import mechanism_for

X, Y = ROWS[0]


@cache
def asked_in(campaign, epsilon=1.0, **changes):
    """The protocol of a campaign of this name."""
    base = protocol_of("grr")
    mechanism = mechanism_for("grr", epsilon, base.n_cells, base.n_classes)
    return replace(base, campaign=campaign, epsilon=epsilon, mechanism=mechanism, **changes)


def answer(protocol, memory, *, holder="", lifetime=None, most=1.0):
    client = Client(protocol, max_epsilon=most, memory=memory, lifetime_epsilon=lifetime)
    return client.report(X, Y, holder=holder)


def n_answered(protocols, memory, **allowed):
    """How many of these protocols are answered; the others are refused for the budget alone."""
    done = 0
    for protocol in protocols:
        try:
            answer(protocol, memory, **allowed)
        except BudgetError:
            continue
        done += 1
    return done


@pytest.fixture(params=["file", "dict"])
def memory(request, tmp_path):
    return FileMemory(tmp_path / "answered.json") if request.param == "file" else {}


def test_how_much_a_report_may_cost_and_where_it_is_kept_must_be_said():
    with pytest.raises(TypeError, match="max_epsilon"):
        Client(asked_in("a"), memory={})
    with pytest.raises(TypeError, match="memory"):
        Client(asked_in("a"), max_epsilon=1.0)
    with pytest.raises(ConfigError, match=r"give FileMemory\(PATH\).*forgets with the process"):
        Client(asked_in("a"), max_epsilon=1.0, memory=None)


def test_a_hundred_campaigns_do_not_drain_a_holder(memory):
    protocols = [asked_in(f"campaign {i}") for i in range(100)]
    assert n_answered(protocols, memory, lifetime=3.0) == 3
    assert n_answered(protocols[:9], memory) == 3  # the same three, given out again
    assert n_answered([asked_in(None, target=f"renamed {i}") for i in range(9)], memory) == 0


@pytest.mark.parametrize(
    "again",
    [
        {"campaign": "b"},
        {"campaign": None},
        {"campaign": "a", "round": 2},
        {"campaign": " a"},
        {"campaign": "b", "target": "renamed"},
        {"campaign": "b", "holder": "person"},
    ],
)
def test_whatever_is_renamed_the_holder_is_the_same_person(memory, again):
    answer(replace(asked_in("a"), **{"round": 1}), memory, lifetime=1.5)
    with pytest.raises(BudgetError, match=r"asks for epsilon 1; 1 of the 1\.5 that this holder may spend"):
        answer(replace(asked_in("a"), **again), memory)


def test_without_a_lifetime_stated_it_is_what_one_report_may_cost(memory):
    protocols = [asked_in(f"campaign {i}", 0.5) for i in range(9)]
    assert n_answered(protocols, memory) == 2
    assert n_answered(protocols, memory, lifetime=2.0) == 4


def test_the_smallest_lifetime_ever_stated_holds(memory):
    protocols = [asked_in(f"campaign {i}", 0.5) for i in range(9)]
    assert n_answered(protocols[:1], memory, lifetime=1.5) == 1
    Client(protocols[0], max_epsilon=1.0, memory=memory, lifetime_epsilon=1.0)  # stated, and nothing asked
    assert n_answered(protocols, memory, lifetime=1000.0) == 2
    assert n_answered(protocols, memory, lifetime=0.25) == 2  # what was answered is given out again


def test_every_holder_has_a_lifetime_of_their_own_under_one_spelling_of_their_name(memory):
    people = ["alice", "bob", "", "7", "Zoë"]
    for holder in people:
        answer(asked_in("a"), memory, holder=holder)
    for holder in [*people, " alice", "bob\n", "Zoe\u0308"]:
        with pytest.raises(BudgetError):
            answer(asked_in("b"), memory, holder=holder)
    assert answer(asked_in("a"), memory, holder=" alice ") == answer(asked_in("a"), memory, holder="alice")


def test_ten_tenths_of_a_lifetime_are_the_whole_and_no_more(memory):
    assert n_answered([asked_in(f"{i}", 0.1) for i in range(12)], memory, lifetime=1.0) == 10


def test_refused_or_not_valid_nothing_is_spent(memory):
    client = Client(asked_in("a"), max_epsilon=1.0, memory=memory)
    with pytest.raises(DataError):
        client.report({"miles": "far", "company": "Sun"}, Y)
    with pytest.raises(BudgetError, match="Nothing was sent"):
        answer(asked_in("b", 2.0), memory, most=2.0, lifetime=1.0)
    assert len([key for key in memory if "answer" in key]) == 0
    assert client.report(X, Y)


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf"), "1", True, 10**400, -(10**400), 1001])
def test_a_lifetime_is_a_number_that_can_be_counted(wrong):
    with pytest.raises(ConfigError, match=r"lifetime_epsilon = .*above 0 and at most 1000"):
        answer(asked_in("a"), {}, lifetime=wrong)


def race(path, names, barrier):
    """One process: asks for all of them, as fast as it can."""
    barrier.wait()
    n_answered([asked_in(name) for name in names], FileMemory(path), lifetime=3.0)


def entries_of(path):
    """What stands in the file: each answer, by question."""
    kept = [json.loads(text) for key, text in FileMemory(path).items() if "answer" in key]
    return {tuple(entry["asked"]): entry for entry in kept}, len(kept)


@pytest.mark.slow  # each a process of its own
def test_several_processes_with_one_file_never_overspend_together(tmp_path):
    path = tmp_path / "answered.json"
    server = multiprocessing.get_context("forkserver")  # a fork of a process with threads may die of itself
    server.set_forkserver_preload(
        ["pytest", "hypothesis.strategies", "ldptree.client", "ldptree.families.tree"]
    )
    barrier = server.Barrier(4)
    names = [[f"{i} {j}" if j % 2 else f"shared {j}" for j in range(6)] for i in range(4)]
    processes = [server.Process(target=race, args=(path, mine, barrier)) for mine in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    by_question, n = entries_of(path)
    assert len(by_question) == n == 3


def test_of_two_that_write_to_one_file_at_once_the_second_waits(tmp_path, monkeypatch):
    """Both would read before either has written: without the lock one answer is lost."""
    path, keep = tmp_path / "answered.json", FileMemory._keep

    def keep_slowly(memory, kept):
        time.sleep(0.2)
        keep(memory, kept)

    monkeypatch.setattr(FileMemory, "_keep", keep_slowly)
    memories = {"a": FileMemory(path), "b": FileMemory(path)}
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda key: memories[key].setdefault(key, "kept"), memories)) == ["kept"] * 2
    assert set(FileMemory(path)) == {"a", "b"}


class Shared(MutableMapping):
    """A memory of several processes: `interrupt` is called at one of the looks, as if another process came between."""

    def __init__(self, kept, looks=-1, interrupt=None):
        self.kept, self.looks, self.interrupt = kept, looks, interrupt

    def _look(self):
        self.looks -= 1
        if self.looks == 0:
            self.interrupt()

    def __getitem__(self, key):
        self._look()
        return self.kept[key]

    def setdefault(self, key, text):
        self._look()
        return self.kept.setdefault(key, text)

    def __iter__(self):
        return iter(self.kept)

    def __len__(self):
        return len(self.kept)

    def __setitem__(self, key, text):
        raise AssertionError

    __delitem__ = None


@pytest.mark.parametrize("look", range(1, 10))
def test_who_lowers_the_lifetime_and_then_answers_is_never_passed_by(look):
    """One process may answer under 5; another states 1 and answers once, at any moment of the first."""
    kept = {}

    def other():
        n_answered([asked_in("another")], Shared(kept), lifetime=1.0)

    n_answered([asked_in("first")], Shared(kept, look, other), lifetime=5.0)
    assert len([key for key in kept if "answer" in key]) == 1


def answer_many(path, sent):
    """One process: gives out what it can, until somebody ends it."""
    for i in range(1000):
        client = Client(asked_in(f"{i}"), max_epsilon=1.0, memory=FileMemory(path), lifetime_epsilon=12.0)
        try:
            os.write(sent, client.report(X, Y).to_json().encode() + b"\n")
        except BudgetError:
            break


def given_out_before(path, pause):
    """The reports of such a process, killed after a while."""
    reading, sent = os.pipe()
    process = multiprocessing.get_context("fork").Process(target=answer_many, args=(path, sent))
    process.start()
    os.close(sent)
    process.join(pause)
    process.kill()
    process.join()
    with os.fdopen(reading) as file:
        return {line.strip() for line in file if line.endswith("\n")}


def test_killed_at_any_time_it_has_kept_what_it_gave_out_and_spends_no_more(tmp_path):
    path = tmp_path / "answered.json"
    given_out = set[str]()
    for pause in (0.001, 0.003, 0.005, 0.008, 0.013, 0.021):
        given_out |= given_out_before(path, pause)
    given_out |= given_out_before(path, 5)
    by_question, n = entries_of(path)
    assert len(by_question) == n == 12
    assert given_out == {entry["report"] for entry in by_question.values()}
    assert {p.name for p in tmp_path.iterdir()} == {"answered.json", ".answered.json.lock"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace('\\"epsilon\\": 1.0', '\\"epsilon\\": 0.1'),
        lambda text: text.replace('"lifetime', '"lifetimE'),
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text.replace('"version": 2', '"version": 1'),
        lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "digest"}),
        lambda text: json.dumps(json.loads(text) | {"more": 1}),
        lambda text: json.dumps(json.loads(text) | {"version": True}),
        *(
            lambda _, one=one: one
            for one in ("{", "3", "null", "[]", '["ab", "cd"]', '{"a": 1}', "[" * 100_000)
        ),
    ],
)
def test_a_memory_that_was_changed_is_noticed(tmp_path, damage):
    path = tmp_path / "answered.json"
    answer(asked_in("a"), FileMemory(path), lifetime=2.0)
    changed = damage(path.read_text())
    assert changed != path.read_text()
    path.write_text(changed)
    with pytest.raises(DataError, match=r"answered\.json: not a memory of reports, or damaged.*answer twice"):
        FileMemory(path)


@settings(max_examples=30)
@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_no_flipped_bit_of_a_memory_goes_unnoticed(tmp_path_factory, at, bit):
    path = tmp_path_factory.mktemp("memory") / "answered.json"
    answer(asked_in("a"), FileMemory(path), lifetime=2.0)
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 1 << bit
    try:
        same = json.loads(bytes(content)) == json.loads(
            path.read_bytes()
        )  # white space, or the case of an escape
    except ValueError:
        same = False
    path.write_bytes(bytes(content))
    if not same:
        with pytest.raises(DataError, match=r"restore it from a copy|Update ldptree"):
            FileMemory(path)


def test_a_memory_of_a_later_version_is_told_from_a_damaged_one(tmp_path):
    path = tmp_path / "answered.json"
    path.write_text('{"version": 3, "kept": {}, "sealed": "differently"}')
    with pytest.raises(DataError, match="written by a later ldptree"):
        FileMemory(path)


@pytest.mark.parametrize(
    "kept",
    [
        {'{"answer": 0, "holder": ""}': "rubbish"},
        {'{"answer": 0, "holder": ""}': '{"asked": ["a", 1], "epsilon": -1, "report": ""}'},
        {'{"answer": 0, "holder": ""}': '{"asked": "a1", "epsilon": 1, "report": ""}'},
        {'{"lifetime": 0}': "nan"},
        {'{"lifetime": 0}': "-3"},
    ],
)
def test_an_entry_that_no_client_keeps_is_refused(kept):
    with pytest.raises(DataError, match="memory: an entry in it is not what a client keeps"):
        answer(asked_in("b"), dict(kept))


def test_a_mapping_that_others_use_too_is_left_alone():
    shared = {"theirs": "x", "[": "y", "[1, 2]": "z", '["a", "b", "c"]': "w"}
    answer(asked_in("a"), memory := dict(shared))
    assert shared.items() < memory.items()


def test_everything_it_writes_is_the_owners_alone(tmp_path):
    old = os.umask(0)
    try:
        answer(asked_in("a"), FileMemory(tmp_path / "answered.json"))
    finally:
        os.umask(old)
    assert {p.name: p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {
        "answered.json": 0o600,
        ".answered.json.lock": 0o600,
    }


def test_a_memory_that_is_no_plain_file_is_refused_at_once_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path / "pipe", "not a plain file"),
        (tmp_path / "absent" / "m.json", r"there is no folder .*absent\. Make it first"),
        (tmp_path, "a folder"),
        (None, "NoneType where the path"),
    ):
        with pytest.raises(ConfigError, match=said):
            FileMemory(path)


def test_the_example_of_the_docs_runs_and_keeps_to_its_lifetime(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "collect.md").read_text()
    example = textwrap.dedent(re.search(r"    from ldptree.client import .*?to_json\(\)\)\n", page, re.S)[0])
    columns = (NumericFeature("trip_miles", 0.0, 16.0), CategoricalFeature("company", ("Flash Cab", "Blue")))
    monkeypatch.chdir(tmp_path)
    sent = []
    for week in range(6):
        protocol = replace(
            asked_in(f"week {week}"), encoding=Encoding(columns), classes=("Card", "Cash"), positive=None
        )
        Path("protocol.json").write_text(protocol.to_json())
        with contextlib.suppress(BudgetError):
            exec(example, {"Path": Path, "send": sent.append})
    assert len(sent) == 4
