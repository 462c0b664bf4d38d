"""The protocol: one text, one digest, no claim that its coins do not keep."""

import json

import numpy as np
import pytest
from protocol_texts import signed

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.mechanisms import mechanism_for
from ldptree.partition.tree import Partition
from ldptree.protocol.protocol import Protocol

ENCODING = Encoding(
    (
        NumericFeature("miles", 0.0, 10.0),
        NumericFeature("fare", 0.0, 99.0),
        CategoricalFeature("company", ("a", "b"), fill=0),
    )
)
TREE = Partition.of([0, -1, 2, -1, -1], [0.5, 0, 0.5, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1])


def published(**changes) -> Protocol:
    fields = {
        "encoding": ENCODING,
        "partition": TREE,
        "target": "payment",
        "classes": ("Cash", "Credit Card"),
        "positive": "Credit Card",
        "mechanism": mechanism_for("grr", 2.0, 3, 2),
        "epsilon": 2.0,
    }
    return Protocol(**(fields | changes))


def edited(change, *, sign=True) -> str:
    """The text after a change; with sign, its digest made to fit, as a forger would."""
    data = json.loads(published().to_json())
    change(data)
    return signed(data) if sign else json.dumps(data)


def test_any_change_changes_the_digest():
    digests = {
        published().digest,
        published(epsilon=2.5).digest,
        published(outside="drop").digest,
        published(holder="taxi_id").digest,
        published(campaign="x").digest,
        published(classes=("Cash", "Card"), positive="Card").digest,
        published(mechanism=mechanism_for("oue", 2.0, 3, 2)).digest,
    }
    assert len(digests) == 7


def test_coins_that_spend_more_than_is_claimed_are_refused_by_curator_and_holder():
    with pytest.raises(ConfigError, match=r"more than the 1\.0 claimed"):
        published(epsilon=1.0)
    with pytest.raises(ProtocolMismatch, match="more than"):
        Protocol.from_json(edited(lambda data: data.update(epsilon=1.9999)))
    honest = int(json.loads(published().to_json())["thresholds"]["lie"])
    with pytest.raises(ProtocolMismatch, match="more than"):
        Protocol.from_json(edited(lambda data: data.update(thresholds={"lie": str(honest - 2**20)})))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(version=2), "version 2"),
        (lambda data: data.update(extra=1), '"extra" is unknown'),
        (lambda data: data.pop("holder"), '"holder" is absent'),
        (lambda data: data.update(k="7"), "wrong type"),
        (lambda data: data.update(k=True), "wrong type"),
        (lambda data: data.update(k=9), "the alphabet has 9 values"),
        (lambda data: data.update(oracle="magic"), "not known"),
        (lambda data: data.update(mechanism="magic"), "mechanism"),
        (lambda data: data.update(thresholds={"lie": "-1"}), "whole numbers"),
        (lambda data: data.update(thresholds={"own": "1"}), "exactly the integers"),
        (lambda data: data.update(outside="ignore"), "clip or drop"),
        (lambda data: data.update(classes=["Cash"]), "1 classes"),
        (lambda data: data.update(classes=["Cash", None]), "texts, numbers"),
        (lambda data: data.update(positive="Cheque"), "positive class"),
        (lambda data: data.update(rounds=[1, 2]), "rounds"),
        (lambda data: data.update(target="fare"), "among the features"),
        (lambda data: data["partition"].update(left=[1, -1, 3, -1, 2]), "partition"),
        (lambda data: data["encoding"]["features"].pop(), "tests column 2"),
        (lambda data: data.update(epsilon_exact=1.0), "epsilon_exact"),
    ],
)
def test_a_protocol_that_does_not_hold_together_is_refused_even_with_a_fitting_digest(change, message):
    with pytest.raises(ProtocolMismatch, match=message):
        Protocol.from_json(edited(change))


def test_a_changed_text_does_not_fit_its_digest():
    with pytest.raises(ProtocolMismatch, match="digest"):
        Protocol.from_json(edited(lambda data: data.update(campaign="other"), sign=False))
    for text in ("", "[]", "{", published().to_json().replace("2.0", "NaN")):
        with pytest.raises(ProtocolMismatch):
            Protocol.from_json(text)


def test_a_key_that_stands_twice_is_named():
    text = published().to_json()
    with pytest.raises(ProtocolMismatch, match='the key "epsilon" stands twice'):
        Protocol.from_json(text.replace('"epsilon":', '"epsilon":1.0,"epsilon":', 1))
    with pytest.raises(ProtocolMismatch, match='the key "left" stands twice'):
        Protocol.from_json(text.replace('"left":', '"left":[],"left":', 1))


def test_each_holder_gets_the_value_of_its_cell_and_label():
    raw = np.array([[1.0, 5, 0], [9.0, 5, 0], [9.0, 5, 1], [9.0, 5, -1], [9.0, 5, np.nan]])
    labels = [0, 1, 0, 1, 0]
    # cell 0: at most 5 miles; else cell 1: not company a, cell 2: company a (or missing)
    assert published().values(raw, labels).tolist() == [0, 4 + 1, 2 + 0, 2 + 1, 4 + 0]
    assert published().values(raw, [-1] * 5).tolist() == [6] * 5


def test_a_row_that_cannot_be_read_or_lies_outside_reports_outside():
    raw = np.array([[1.0, 5, 0], [np.nan, 5, 0], [1.0, np.nan, 0], [11.0, 5, 1], [1.0, 100, 1]])
    labels = np.ones(5, dtype=int)
    assert published().values(raw, labels).tolist() == [1, 6, 6, 3, 1]
    assert published(outside="drop").values(raw, labels).tolist() == [1, 6, 6, 6, 6]


def test_only_the_columns_that_are_needed_must_be_there():
    filled = Encoding(
        (
            NumericFeature("miles", 0, 10, fill=1),
            NumericFeature("fare", 0, 99, fill=1),
            CategoricalFeature("company", ("a", "b"), fill=0),
        )
    )
    lean = published(encoding=filled)
    assert lean.columns_needed == ("miles", "company")
    assert published(encoding=filled, outside="drop").columns_needed == ("miles", "fare", "company")
    assert published().columns_needed == ("miles", "fare", "company")
    raw = np.array([[1.0, 5, 0], [9.0, 5, 1], [np.nan, 5, 0]])
    np.testing.assert_array_equal(
        lean.values(raw[:, [2, 0]], [0, 1, 0], ("company", "miles")), lean.values(raw, [0, 1, 0])
    )
    with pytest.raises(DataError, match="lack the columns miles"):
        lean.values(raw[:, 2:], [0, 1, 0], ("company",))
