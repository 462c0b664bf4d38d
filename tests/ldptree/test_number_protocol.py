"""A protocol and a client whose label is a number: what is published, how it is answered, what is refused."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from number_examples import protocol_of, words
from protocol_texts import client_of, signed

from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.mechanisms import CHOICES, mechanism_for
from ldptree.protocol.protocol import Protocol

DOCS = Path(__file__).parents[2] / "docs" / "client"
ROW = {"miles": 1.5, "company": "Sun"}
REAL = [choice for choice in CHOICES if choice != "laplace"]


def edited(protocol, **changes):
    """Its text after a change, signed anew."""
    data = json.loads(protocol.to_json()) | changes
    return signed({key: value for key, value in data.items() if value is not ...})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"classes": (0, 1, 2, 3, 4)}, "must be numbers"),
        ({"classes": ("a", "b", "c", "d", "e")}, "must be numbers"),
        ({"classes": (0.0, 1.0, 2.0, 3.5, 4.0)}, "equally spaced"),
        ({"classes": (4.0, 3.0, 2.0, 1.0, 0.0)}, "low end must be below"),
        ({"classes": (0.0, 1.0, 2.0, 3.0, math.inf)}, "finite"),
        ({"classes": (0.0, 0.0, 0.0, 0.0, 0.0)}, "each once"),
        ({"classes": (0.0, 1.0)}, "x 2"),
        ({"positive": -10.0}, "none of them positive"),
        ({"numeric": False, "mechanism": protocol_of("randomized_response").mechanism}, "is a number"),
        ({"epsilon": 0.5, "mechanism": protocol_of().mechanism}, r"more than the 0\.5 claimed"),
        ({"target": "miles"}, "among the features"),
        ({"mechanism": protocol_of("laplace").mechanism, "classes": (0.0, 1.0)}, "simulation device"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes, said):
    with pytest.raises(ConfigError, match=said):
        protocol_of(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"numeric": 1},
        {"numeric": "yes"},
        {"classes": [-10, 10, 30, 50, 70]},
        {"classes": [-10.0, 10.0, 30.0, 50.0, True]},
        {"classes": [-10.0, 10.0, 30.0, 55.0, 70.0]},
        {"mechanism": "number_response"},
        {"k": 17},
        {"positive": 70.0},
    ],
)
def test_a_text_that_was_tampered_with_is_refused(changes):
    assert Protocol.from_json(edited(protocol_of())).numeric
    with pytest.raises(ProtocolMismatch):
        Protocol.from_json(edited(protocol_of(), **changes))


def test_without_its_mark_the_label_of_a_protocol_would_be_a_class():
    """Levels are classes then: another digest, so nobody confuses the two; and a number's own mechanism is refused."""
    assert Protocol.from_json(edited(protocol_of(), numeric=...)).digest != protocol_of().digest
    with pytest.raises(ProtocolMismatch, match="is a number"):
        Protocol.from_json(edited(protocol_of("randomized_response"), numeric=...))


def test_values_are_cells_and_rounded_labels():
    protocol = protocol_of("oue")
    raw = np.array([[1.5, 0.0], [12.0, 0.0], [99.0, 1.0], [1.5, 0.0], [1.5, math.nan], [np.nan, 0.0]])
    labels = [-10.0, 70.0, 1e300, math.nan, 10.0, 30.0]
    found = protocol.values(raw, labels, words=words(1))
    assert found.tolist() == [0, 2 * 5 + 4, 1 * 5 + 4, 15, 15, 2]
    # halfway between two levels either is sent, each half of the time (z below 5)
    many = protocol.values(np.repeat(raw[:1], 10_000, axis=0), np.full(10_000, 0.0), words=words(2))
    assert set(many.tolist()) == {0, 1}
    assert abs(many.mean() - 0.5) < 5 * 0.5 / 100
    with pytest.raises(DataError):
        protocol.values(raw, labels[:-1], words=words(3))


def sent(client, y, n=400):
    """Cells and steps of labels as they are, from a client whose reports hide nothing."""
    found = [client.report(ROW, y, holder=str(i)) for i in range(n)]
    return [client.protocol.mechanism.unpack(np.frombuffer(r.payload, np.uint8)[None]) for r in found]


@pytest.mark.parametrize(
    ("y", "value"),
    [
        (None, 15),
        (math.nan, 15),
        (np.float32("nan"), 15),
        pytest.param(10**400, 4, id="large"),
        pytest.param(-(10**400), 0, id="far below"),
        (math.inf, 4),
        (1000, 4),
        (np.int64(-1000), 0),
        (np.float64(30.0), 2),
        (30, 2),
    ],
)
def test_numbers_of_every_kind_are_rounded_and_missing_ones_are_outside(y, value):
    """Read off grr at eps 50, which tells the value as it is but once in 10^20."""
    protocol = protocol_of("grr", 50.0)
    (report, *others) = sent(client_of(protocol), y, n=3)
    assert {int(report[0]), *(int(r[0]) for r in others)} == {value}


@pytest.mark.parametrize("y", ["12", True, b"1", [1.0], 1j, np.bool_(True), object()])
def test_a_label_that_is_no_number_is_refused_and_nothing_is_kept(y):
    memory = {}
    with pytest.raises(DataError, match=r"label: a .* where a number is needed"):
        client_of(protocol_of(), memory=memory).report(ROW, y)
    assert not memory


def test_what_is_published_for_a_number_and_what_for_a_class_are_two_campaigns_answers():
    """One memory: a second report for the same campaign and round is refused, whatever the label is by then."""
    memory = {}
    client_of(protocol_of(), memory=memory).report(ROW, 3.0)
    again = protocol_of(numeric=False, mechanism=mechanism_for("oue", 1.0, 3, 5))
    with pytest.raises(ProtocolMismatch, match="already answered"):
        client_of(again, memory=memory).report(ROW, 10.0)
