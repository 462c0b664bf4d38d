"""The holder's side: one report ever, checked input, no more epsilon than allowed, and nothing needed but numpy."""

import contextlib
import json
import os
import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import jsonschema
import number_examples
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_texts import client_of, signed
from seeded_words import words as seeded
from test_vectors import CONTRASTS, EVERY, MARKED, OF_BASES, ROWS, SIGNED, answers_to, protocol_of

import ldptree
from ldptree.client import Client, FileMemory, Report
from ldptree.errors import BudgetError, ConfigError, DataError, ProtocolMismatch
from ldptree.mechanisms import CHOICES, mechanism_for
from ldptree.protocol.protocol import Protocol

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "client" / "protocol.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
X, Y = ROWS[0]
REAL = [name for name in EVERY if name not in MARKED]
"""What real holders answer."""


def changed(**changes):
    """A protocol's text after a change, signed anew."""
    return signed(json.loads(protocol_of("grr").to_json()) | changes)


@pytest.mark.parametrize("name", REAL)
def test_a_report_is_a_valid_answer_of_the_stated_size(name):
    protocol, rows = answers_to(name)
    for x, y in rows:
        report = client_of(protocol.to_json()).report(x, y)
        assert (report.protocol, report.round) == (protocol.digest, 1)
        packed = np.frombuffer(report.payload, np.uint8)[None]
        assert packed.size == protocol.mechanism.report_bytes
        assert protocol.mechanism.is_valid(protocol.mechanism.unpack(packed)).all()
        assert Report.from_json(report.to_json()) == report


@pytest.mark.parametrize("name", REAL)
def test_asked_twice_it_sends_the_same_report_whatever_is_true_by_then_also_after_a_restart(name, tmp_path):
    (protocol, rows), path = answers_to(name), tmp_path / "answered.json"
    client = client_of(protocol.to_json(), memory=FileMemory(path))
    first = client.report(*rows[0])
    assert {client.report(*row) for row in rows} == {first}
    again = client_of(protocol, memory=FileMemory(path))
    assert pickle.loads(pickle.dumps(again)).report(*rows[1]) == first
    forgetful = client_of(protocol)
    others = {forgetful.report(*rows[0], holder=str(i)).payload for i in range(40)}
    assert len(others) > 2


@pytest.mark.parametrize("name", [*EVERY, *(f"number, {choice}" for choice in CHOICES)])
def test_a_protocols_text_fits_the_published_schema_and_gives_it_back(name):
    if name in EVERY:
        protocol, _ = answers_to(name)
    else:
        protocol = number_examples.protocol_of(name.removeprefix("number, "), holder="taxi_id")
    for published in (protocol, replace(protocol, outside="drop")):
        again = Protocol.from_json(published.to_json())
        assert (again.to_json(), again.digest) == (published.to_json(), published.digest)
        assert again.mechanism == published.mechanism
        assert again.epsilon_exact <= again.epsilon == published.epsilon
        for part in ("numeric", "label_range", "classes", "label_classes", "columns_needed"):
            if part != "label_range" or published.numeric:
                assert getattr(again, part) == getattr(published, part)
        VALIDATOR.validate(json.loads(published.to_json()))


def test_of_two_processes_with_one_file_the_first_answer_stands(tmp_path):
    one, two = (client_of(protocol_of("oue"), memory=FileMemory(tmp_path / "m.json")) for _ in range(2))
    other = two.report(X, Y, holder="other")
    first = one.report(X, Y)
    assert two.report(X, Y) == first
    assert len(FileMemory(tmp_path / "m.json")) == 2
    assert one.report(X, Y, holder="other") == other


class Slow(dict):
    """A memory in which others come between: everybody looks before anybody keeps, where they can."""

    def __init__(self, n):
        super().__init__()
        self._all_looked = threading.Barrier(n)

    def get(self, key, default=None):
        found = super().get(key, default)
        with contextlib.suppress(threading.BrokenBarrierError):
            self._all_looked.wait(timeout=0.2)
        return found


@pytest.mark.parametrize("n_clients", [1, 4])
def test_threads_that_ask_at_once_are_given_one_report(n_clients):
    memory, protocol, given = Slow(4), protocol_of("oue"), []
    clients = [client_of(protocol, memory=memory) for _ in range(n_clients)]
    threads = [
        threading.Thread(target=lambda i=i: given.append(clients[i % n_clients].report(X, Y)))
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == 4
    (kept,) = memory.values()
    assert {report.to_json() for report in given} == {json.loads(kept)["report"]}


def test_who_keeps_second_gives_out_what_was_kept_first(tmp_path):
    """Another process answers after this one has looked and before it keeps."""

    class Late(FileMemory):
        def get(self, key, default=None):
            return None

    path = tmp_path / "m.json"
    first = client_of(protocol_of("oue"), memory=FileMemory(path)).report(X, Y)
    assert client_of(protocol_of("oue"), memory=Late(path)).report(X, Y) == first
    with pytest.raises(ProtocolMismatch, match="twice"):
        client_of(protocol_of("grr"), memory=Late(path)).report(X, Y)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        *(
            ({"memory": memory}, r"FileMemory\('answered\.json'\)")
            for memory in ("answered.json", Path("answered.json"))
        ),
        *(
            ({"words": words}, "default_rng")
            for words in (7, np.random.RandomState(1), np.random.SeedSequence(1))
        ),
    ],
)
def test_a_memory_that_is_a_path_and_coins_of_another_kind_are_refused_before_anybody_answers(settings, said):
    with pytest.raises(ConfigError, match=said):
        client_of(protocol_of("grr"), **settings)


def test_nothing_is_given_out_where_the_folder_went_away(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    client = client_of(protocol_of("grr"), memory=FileMemory(folder / "m.json"))
    folder.rmdir()
    with pytest.raises(DataError, match=r"m\.json: nothing can be kept there \(No such file"):
        client.report(X, Y)


def test_an_answer_that_another_process_gave_meanwhile_is_not_overwritten(tmp_path):
    one, two = (FileMemory(tmp_path / "m.json") for _ in range(2))
    one["key"] = "first"
    with pytest.raises(ProtocolMismatch, match="Ask again"):
        two["key"] = "second"
    assert two["key"] == "first"


@pytest.mark.parametrize("text", [b"\xff\xfe", "[" * 100_000, "{}", "", "null"])
def test_what_is_no_protocol_is_refused(text):
    with pytest.raises(ProtocolMismatch):
        client_of(text)
    with pytest.raises(ConfigError, match=r"read_text"):
        client_of(Path("protocol.json"))


@pytest.mark.parametrize(
    ("change", "said", "is_in_schema"),
    [
        *(({"rounds": rounds}, "rounds", True) for rounds in ([True], ["1"], [1, 2])),
        ({"rounds": [1.0]}, "rounds", False),
        ({"campaign": ""}, "no name", True),
        ({"version": 2}, "version", True),
        ({"extra": 1}, "unknown", True),
        ({"thresholds": {"lie": 5}}, None, True),
        ({"classes": ["one"]}, "1 classes", True),
        ({"outside": "ignore"}, "clip or drop", True),
        ({"epsilon": 0}, None, True),
    ],
)
def test_what_the_program_refuses_of_a_protocol_the_schema_refuses_where_it_can(change, said, is_in_schema):
    text = changed(**change)
    with pytest.raises(ProtocolMismatch, match=said):
        client_of(text)
    with pytest.raises(jsonschema.ValidationError) if is_in_schema else contextlib.nullcontext():
        VALIDATOR.validate(json.loads(text))


def test_the_schema_is_one_and_knows_digests_and_signed_subsets():
    VALIDATOR.check_schema(SCHEMA)
    three = {"classes": ["card", "cash", "cheque"], "k": 10}
    for name, change, said in (
        ("grr", {"digest": "abc"}, None),
        ("signed_subset", three, "3 classes; it is for two"),
    ):
        text = json.loads(protocol_of(name).to_json()) | change
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate(text)
        with pytest.raises(ProtocolMismatch, match=said):
            client_of(json.dumps(text))


def test_nothing_is_given_out_that_was_not_kept_first():
    class Full(dict):
        def __setitem__(self, key, value):
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        client_of(protocol_of("grr"), memory=Full()).report(X, Y)


def test_another_protocol_of_the_same_campaign_and_round_gets_no_second_report():
    memory = {}
    client_of(protocol_of("grr"), memory=memory).report(X, Y)
    with pytest.raises(ProtocolMismatch, match="twice"):
        client_of(protocol_of("oue"), memory=memory).report(X, Y)


def test_a_simulation_may_pass_its_coins():
    one, two = (client_of(protocol_of("ss"), words=seeded(3)).report(X, Y) for _ in range(2))
    assert one == two
    assert client_of(protocol_of("ss")).report(X, Y) != one
    drawn = [
        client_of(protocol_of("ss"), words=np.random.default_rng(seed)).report(X, Y) for seed in (3, 3, 4)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_more_than_the_allowed_epsilon_is_refused_whatever_the_protocol_claims():
    with pytest.raises(BudgetError, match=r"costs epsilon 1, .*at most 0\.5"):
        Client(protocol_of("grr"), max_epsilon=0.5, memory={})
    for wrong in (0.0, -1.0, float("nan"), float("inf"), "a", True, 10**400):
        with pytest.raises(ConfigError, match="max_epsilon"):
            Client(protocol_of("grr"), max_epsilon=wrong, memory={})
    text = json.loads(protocol_of("grr").to_json())
    with pytest.raises(ProtocolMismatch):
        Client(json.dumps(text | {"epsilon": 0.5}), max_epsilon=0.5, memory={})


def test_no_client_answers_a_simulation():
    leaking = mechanism_for("laplace", 1.0, 3, 2)
    with pytest.raises(ConfigError, match="discrete_laplace"):
        replace(protocol_of("grr"), mechanism=leaking)
    simulated = replace(protocol_of("grr"), mechanism=leaking, simulation=True)
    with pytest.raises(ConfigError, match="discrete_laplace"):
        client_of(simulated.to_json())
    with pytest.raises(ConfigError, match="no client"):
        client_of(number_examples.protocol_of("laplace"))


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ({"miles": 1.0}, "'company' is absent"),
        ({"miles": 1.0, "company": "Sun", "fare": 3}, "'fare' is not in the protocol"),
        ({"miles": "1.0", "company": "Sun"}, "'miles': a str where a number"),
        ({"miles": True, "company": "Sun"}, "'miles': a bool where a number"),
        ({"miles": 1.0, "company": 3}, "'company': a int where a level is a str"),
        ([1.0], "2 values of miles, company"),
        ("row", "2 values"),
        (3, "2 values"),
    ],
)
def test_a_row_that_does_not_fit_the_protocol_is_refused(x, said):
    memory = {}
    with pytest.raises(DataError, match=said):
        client_of(protocol_of("grr"), memory=memory).report(x, Y)
    with pytest.raises(DataError, match="holder: a int"):
        client_of(protocol_of("grr"), memory=memory).report(X, Y, holder=3)
    assert memory == {}


def test_a_row_may_come_in_the_order_of_the_columns_or_from_numpy():
    answers = [
        client_of(protocol_of("grr"), words=seeded(1)).report(row, Y)
        for row in (X, [1.5, "Sun"], (np.float32(1.5), np.str_("Sun")))
    ]
    assert len(set(answers)) == 1


def test_it_needs_python_and_numpy_only(tmp_path):
    """In an interpreter that can import the standard library, numpy and this package, every mechanism gives the known
    answers, those about a public model included, whose trees are walked without numba.
    """
    for name in ("numpy", "numpy.libs"):
        if (source := Path(np.__file__).parents[1] / name).exists():
            (tmp_path / name).symlink_to(source)
    (tmp_path / "ldptree").symlink_to(Path(ldptree.__path__[0]))
    vectors = Path(__file__).parents[2] / "docs" / "client" / "vectors.json"
    script = f"""
import sys, json, pathlib, importlib.util
sys.path.insert(0, {str(tmp_path)!r})
from ldptree.client import Client
from ldptree.coins import Words
import numpy as np
assert not any(map(importlib.util.find_spec, ("numba", "scipy", "sklearn")))
bases = 0
for vector in json.loads(pathlib.Path({str(vectors)!r}).read_text()):
    bases += "base" in vector["protocol"]
    for answer in vector["answers"]:
        left = iter(int(word, 16) for word in answer["words"])
        words = Words(lambda n: np.array([next(left) for _ in range(n)], dtype=np.uint64), None, is_seeded=True)
        allowed = {{"max_epsilon": 64.0}}
        client = Client(json.dumps(vector["protocol"]), words=words, memory={{}}, **allowed)
        report = client.report(answer["row"], answer["label"])
        assert report.payload.hex() == answer["report"], vector["mechanism"]
        if "simulation" not in vector["protocol"]:  # with coins of the operating system
            assert Client(json.dumps(vector["protocol"]), memory={{}}, **allowed).report(answer["row"], answer["label"]).payload
outside = {{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names) - {{"ldptree", "numpy"}}
print(bases, sorted(name for name in outside if not name.startswith(("_", "cython"))))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-W", "error", "-c", script],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": os.environ["PATH"]},
    )
    assert (done.stderr, done.stdout) == ("", f"{len(OF_BASES) + len(SIGNED) + len(CONTRASTS)} []\n")


@given(st.binary(max_size=200))
def test_no_bytes_are_a_report_by_chance(data):
    with pytest.raises(DataError):
        Report.from_json(data)


@pytest.mark.parametrize("key", ["protocol", "round", "id", "report", "output"])
def test_a_report_that_says_something_twice_is_none(key):
    line = Report(protocol="p", round=1, id="a" * 32, payload=b"1", output=0).to_json()
    value = json.dumps(json.loads(line)[key])
    for twice in (f'{{"{key}": {value}, {line[1:]}', f'{line[:-1]}, "{key}": 1}}'):
        with pytest.raises(DataError, match=f'the key "{key}" stands twice'):
            Report.from_json(twice)
    assert Report.from_json(line).output == 0
