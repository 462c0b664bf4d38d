"""Whatever stands in a row, a report or a protocol: a right answer or one short, clear error, and soon."""

import datetime
import decimal
import fractions
import json
import time
import warnings
from dataclasses import replace

import base_examples
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_texts import client_of, signed
from seeded_words import words
from test_vectors import protocol_of

from ldptree import serialize
from ldptree.client import Client, Report
from ldptree.errors import DataError, LdptreeError, ProtocolMismatch
from ldptree.limits import MAX_PROTOCOL_BYTES
from ldptree.protocol.protocol import Protocol

HUGE = 10**5000
"""Of more digits than Python writes."""
SOON = 30.0
"""Seconds, on a busy machine: what hung took hours."""
LONGEST = 1_000
"""Of a message."""
OF_NUMBERS = ["number"]


def kind_of(value):
    return type(value).__name__


def report_of(protocol, x, y):
    return client_of(protocol, words=words(5)).report(x, y)


@pytest.mark.parametrize("outside", ["clip", "drop"])
@pytest.mark.parametrize(
    ("huge", "infinite"),
    [(10**400, np.inf), (-(10**400), -np.inf), (HUGE, np.inf)],
    ids=["large", "low", "larger"],
)
def test_a_number_too_large_for_a_double_is_answered_like_infinity(outside, huge, infinite):
    protocol = replace(protocol_of("grr"), outside=outside)
    told = report_of(protocol, {"miles": huge, "company": "Sun"}, "cash")
    assert told == report_of(protocol, {"miles": infinite, "company": "Sun"}, "cash")
    for kind in OF_NUMBERS:
        protocol = replace(base_examples.protocol_of(kind), outside=outside)
        told = report_of(protocol, {"miles": huge, "company": "Sun"}, huge)
        assert told == report_of(protocol, {"miles": infinite, "company": "Sun"}, infinite)


SCALARS = [
    None,
    True,
    *(b"bytes", "text", "\ud800", "x" * 100_000, "", "\x00"),
    *(HUGE, -HUGE, 2**63, 1e308, -0.0, 5e-324, float("nan"), float("inf"), 3 + 4j),
    *(decimal.Decimal("NaN"), decimal.Decimal(3), fractions.Fraction(1, 3)),
    *(datetime.date(2026, 1, 1), datetime.timedelta(1), pd.NA, pd.NaT, pd.Timestamp(0)),
    *(np.float16(3), np.float32("nan"), np.longdouble(2), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True)),
    *(
        np.datetime64("NaT", "s"),
        np.timedelta64(3, "s"),
        np.str_("Sun"),
        np.bytes_(b"x"),
        np.complex64(1),
        np.void(b"ab"),
    ),
    *(np.array(3.0), np.array([1, 2]), [], [1.0], {}, {"a": 1}, set(), object(), int, lambda: 1),
]
VALUES = st.sampled_from(SCALARS) | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5)


def refusal(act, kind):
    """The message of this kind of error, "" where none is raised."""
    try:
        act()
    except kind as error:
        return str(error)
    return ""


def answered(protocol, x, y):
    """Whether a report was given; else a short error was, and nothing is kept."""
    memory, reports = {}, []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client = client_of(protocol, memory=memory)
        said = refusal(lambda: reports.append(client.report(x, y)), DataError)
    assert len(said) < LONGEST
    assert len(reports) == len(memory) == (not said)
    mechanism = protocol.mechanism
    packed = [np.frombuffer(report.payload, np.uint8)[None] for report in reports]
    assert all(mechanism.is_valid(mechanism.unpack(one)).all() for one in packed)
    return bool(reports)


KINDS = ["grr", "oue", *OF_NUMBERS, "three classes, drawn"]
PROTOCOLS = [
    protocol_of(kind) if kind in ("grr", "oue") else base_examples.protocol_of(kind) for kind in KINDS
]


@settings(max_examples=150)
@given(
    protocol=st.sampled_from(PROTOCOLS), miles=VALUES, company=VALUES, label=VALUES, in_order=st.booleans()
)
def test_any_value_is_answered_or_refused_in_a_sentence(protocol, miles, company, label, in_order):
    answered(protocol, [miles, company] if in_order else {"miles": miles, "company": company}, label)


NUMBERS = (3, 3.0, np.float16(3), np.int8(3), np.uint64(3), None, float("nan"), np.float32("nan"), HUGE)
NO_NUMBERS = ("3", b"3", True, np.bool_(True), decimal.Decimal(3), pd.NA, pd.NaT, np.array(3.0), [3.0], 3j)


def test_every_kind_of_number_counts_and_everything_else_is_refused():
    for value in (*NUMBERS, *NO_NUMBERS):
        is_number = any(value is one for one in NUMBERS)
        assert answered(PROTOCOLS[0], {"miles": value, "company": "Sun"}, "cash") == is_number
        number = base_examples.protocol_of("number")
        assert answered(number, {"miles": 1.0, "company": "Sun"}, value) == is_number


@pytest.mark.parametrize(
    "x",
    [
        *(None, 3, "ab", b"ab", bytearray(b"ab"), memoryview(b"ab"), {1.5, "Sun"}, iter([1.5, "Sun"])),
        *(np.array(3), np.zeros((2, 2)), [[1.5], ["Sun"]], range(10**9), pd.DataFrame({"miles": [1, 2]})),
        *({}, {"miles": 1.5, "company": "Sun", None: 1}, {"miles": 1.5, "company": "Sun", "\ud800": 1}),
    ],
    ids=kind_of,
)
def test_what_is_no_row_is_refused_at_once(x):
    start = time.monotonic()
    assert not answered(PROTOCOLS[0], x, "cash")
    assert time.monotonic() - start < SOON


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**4000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
LINE = Report(protocol="p", round=1, id="a" * 32, payload=b"1", output=0).to_json()


@given(st.sampled_from(list(json.loads(LINE))), JSON)
def test_a_report_with_any_field_replaced_is_one_or_is_refused(field, value):
    text, read = json.dumps(json.loads(LINE) | {field: value}), []
    said = refusal(lambda: read.append(Report.from_json(text)), DataError)
    assert len(said) < LONGEST
    assert all(Report.from_json(report.to_json()) == report for report in read)


@pytest.mark.parametrize("text", [None, 3, [], {}, memoryview(b"{}"), object()], ids=kind_of)
def test_what_is_no_text_is_refused(text):
    with pytest.raises(DataError, match="where its text is needed"):
        Report.from_json(text)
    with pytest.raises(ProtocolMismatch, match="where its text is needed"):
        Protocol.from_json(text)


@pytest.mark.parametrize("half", ['"\\ud800"', '"\\uDFFF"', '{"\\udcff": 1}', '"\\ude00\\ud83d"', '"\ud800"'])
def test_half_a_character_is_no_text(half):
    with pytest.raises(DataError, match=r"text: (a text in it holds half a character|not JSON)"):
        serialize.read(half, of="text")
    for whole in ('"\\ud83d\\ude00"', '"\\\\ud800"', '"\u00e9"'):
        assert serialize.read(whole, of="text") == json.loads(whole)


def filled(beginning, part, end=""):
    """A text of the length that a client reads, all of it the same part over and over."""
    return beginning + part * ((MAX_PROTOCOL_BYTES - len(beginning) - len(end)) // len(part)) + end


def keys(last, value="1"):
    """An object of many keys, the last of them as given."""
    n = MAX_PROTOCOL_BYTES // (11 + len(value))
    return "{" + ",".join(f'"{i}":{value}' for i in range(n)) + f",{last}}}"


HEAVY = {
    "many keys, the last twice": keys('"x":1,"x":2'),
    "one key over and over": filled("{", '"x":1,', '"x":1}'),
    "many keys, one unknown": keys('"version":1', "1" * 100),
    "deep lists": filled("", "["),
    "deep objects": filled("", '{"a":'),
    "deep in a field": filled('{"version":1,"encoding":', "["),
    "a long number": filled("", "9"),
    "a long fraction": filled("0.", "9"),
    "a long exponent": filled("1e", "9"),
    "a long text": filled('{"version":"', "x", '"}'),
    "a long key": filled('{"version":1,"', "x", '":1}'),
    "a list for a version": filled('{"version":[', "1,", "1]}"),
    "escapes": filled('"', "\\ud83d\\ude00", '"'),
    "half characters": filled('"', "\\ud83d", '"'),
    "white space": filled("", " "),
    "zeros": filled("", "\0"),
}


@pytest.mark.parametrize("text", HEAVY.values(), ids=HEAVY)
def test_a_text_of_the_full_length_is_answered_soon_and_shortly(text):
    for read in (lambda: Client(text, max_epsilon=1.0, memory={}), lambda: Report.from_json(text)):
        start = time.monotonic()
        with pytest.raises((ProtocolMismatch, DataError)) as told:
            read()
        assert time.monotonic() - start < SOON
        assert len(str(told.value)) < LONGEST


@pytest.mark.parametrize("name", ["oue", "grr", "discrete_laplace"])
def test_a_question_larger_than_any_curator_can_add_up_is_refused_before_it_is_drawn(name):
    data = json.loads(protocol_of(name).to_json())
    data |= {"classes": list(range(400_000)), "positive": None, "k": 3 * 400_000 + 1}
    leaves = 2**10
    tree = json.loads(protocol_of(name).to_json())["partition"] | whole_tree(leaves)
    text = signed(data | {"partition": tree, "k": leaves * 400_000 + 1})
    start = time.monotonic()
    with pytest.raises(ProtocolMismatch) as told:
        client_of(text)
    assert "GiB; at most 3 are used" in str(told.value)
    assert time.monotonic() - start < SOON


def whole_tree(leaves):
    """Fields of a tree with all leaves at one depth."""
    inner = leaves - 1
    nodes = range(inner)
    return {
        "feature": [0] * inner + [-1] * leaves,
        "threshold": [0.5] * inner + [0.0] * leaves,
        "left": [2 * i + 1 for i in nodes] + [-1] * leaves,
        "right": [2 * i + 2 for i in nodes] + [-1] * leaves,
    }


FIELDS = list(json.loads(protocol_of("grr").to_json()))


@settings(max_examples=60)
@given(st.sampled_from(["grr", "three classes, drawn"]), st.sampled_from(FIELDS), JSON)
def test_a_signed_protocol_with_any_field_replaced_is_one_or_is_refused_shortly(kind, field, value):
    made = protocol_of(kind) if kind == "grr" else base_examples.protocol_of(kind)
    text, read = signed(json.loads(made.to_json()) | {field: value}), []
    said = refusal(lambda: read.append(client_of(text)), LdptreeError)
    assert len(said) < LONGEST
    assert all(Protocol.from_json(c.protocol.to_json()).digest == c.protocol.digest for c in read)
