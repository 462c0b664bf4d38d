"""A protocol with a public model in it: what a holder computes, what is refused, and that a report still spends its epsilon."""

import copy
import json
import math
import struct
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from base_examples import DRAWN, KINDS, ROWS, base_of, ensemble_of, protocol_of
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_texts import client_of, signed
from seeded_words import words
from test_vectors import coded, played

from ldptree import serialize
from ldptree.client import Report
from ldptree.coins import Words, log_up
from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.families.correction import Correction
from ldptree.families.correction_plan import make_plan
from ldptree.families.family import PublicRows
from ldptree.limits import MAX_PROTOCOL_BYTES
from ldptree.mechanisms import mechanism_for, number_mechanism_for
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.published_base import PublishedBase
from ldptree.public_models import fit

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "client" / "protocol.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
NUMBERS = [12.5, -40.0, 9, 1e300, -math.inf, None, math.nan]
CLASSES = ["cash", "card", "account", "cheque", 1, True, None, ("cash",)]


def labels_of(protocol):
    return CLASSES if protocol.label_classes else NUMBERS


@pytest.mark.parametrize("kind", KINDS)
def test_its_text_that_is_put_together_of_parts_is_the_canonical_one(kind):
    text = protocol_of(kind).to_json()
    assert text == serialize.canonical(json.loads(text))


def plain(kind="number"):
    return json.loads(protocol_of(kind).to_json())


def with_base(kind="number", **changes):
    """The text of a protocol whose base, or the trees of it, have other fields: a digest made to fit."""
    data = plain(kind)
    for name, value in changes.items():
        inside = (
            data["base"] if name in data["base"] or name in ("more", "contrasts") else data["base"]["trees"]
        )
        inside[name] = value
    return signed(data)


def test_every_number_of_a_base_is_in_the_digest():
    digests = {protocol_of("three classes, softmax").digest, protocol_of("three classes, shares").digest}
    base = base_of("number")
    for name in ("threshold", "value", "offset"):
        array = np.array(getattr(base.ensemble, name))
        array.flat[np.flatnonzero(array)[0]] = 0.125
        fields = {f: getattr(base.ensemble, f) for f in base.ensemble.__dataclass_fields__}
        ensemble = type(base.ensemble)(**(fields | {name: array}))
        digests.add(protocol_of(base=PublishedBase(ensemble=ensemble)).digest)
    assert len({*digests, protocol_of().digest, protocol_of(base=None).digest}) == 7


def encoded_by_hand(data, row):
    """As docs/client says it, with the floats of Python alone; None where the row is "outside"."""
    x = []
    for feature in data["encoding"]["features"]:
        found = row[feature["column"]]
        if feature["kind"] == "numeric":
            found = feature["fill"] if found is None else found
            low, high = feature["minimum"], feature["maximum"]
            place = min(max((found - low) / (high - low), 0.0), 1.0)
            x.append(struct.unpack("f", struct.pack("f", place))[0])
        elif found is None:
            return None
        else:
            x += [1.0 if level == found else 0.0 for level in feature["levels"]]
    return x


def answers_by_hand(trees, x):
    """The outputs of a base."""
    n_inner, n_leaves, place = 0, 0, []
    for feature in trees["feature"]:
        place.append(n_leaves if feature == -1 else n_inner)
        n_leaves, n_inner = n_leaves + (feature == -1), n_inner + (feature != -1)
    sums = list(trees["offset"])
    for root in trees["roots"]:
        node = root
        while trees["feature"][node] != -1:
            at = place[node]
            goes_left = x[trees["feature"][node]] <= trees["threshold"][at]
            node = (trees["left"] if goes_left else trees["right"])[at]
        sums = [s + v for s, v in zip(sums, trees["value"][place[node]], strict=True)]
    if trees["link"] == "logistic":
        return [1 / (1 + math.exp(-min(max(sums[0], -700), 700)))]
    if trees["link"] == "softmax":
        odds = [math.exp(s - max(sums)) for s in sums]
        return [o / sum(odds) for o in odds]
    return sums


def residual_by_hand(data, row, label, output):
    """None where it is "outside"; `output` of three classes."""
    x, labels = encoded_by_hand(data, row), data["base"]["labels"]
    if x is None or label is None:
        return None
    found = answers_by_hand(data["base"]["trees"], x)
    sign = 1
    if "contrasts" in data["base"]:
        along = data["base"]["contrasts"][output]
        sign = math.prod(1 if x[along[at]] > along[at + 1] else -1 for at in range(0, len(along), 2))
    if not labels:
        return None if math.isnan(label) else sign * (label - found[0])
    if label not in labels:
        return None
    if len(labels) == 2:
        return sign * ((labels.index(label) == 1) - found[-1])
    return (labels.index(label) == output) - found[output]


def outputs_of(protocol):
    """Every output that a report may be about, and how that is said of one holder."""
    if protocol.base.output == "drawn":
        return [(output, np.array([output])) for output in range(protocol.n_outputs)]
    return [(protocol.base.output, None)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_residual_is_the_label_less_the_models_answer_as_the_docs_say(kind):
    protocol, data = protocol_of(kind), plain(kind)
    client = client_of(protocol)
    n_inside = 0
    for row in ROWS:
        for label in labels_of(protocol):
            for output, drawn in outputs_of(protocol):
                (found,) = protocol.residuals(client._row(row), [coded(client, label)], outputs=drawn)
                expected = residual_by_hand(data, row, label, output)
                assert (expected is None) == np.isnan(found)
                if expected is not None:
                    n_inside += 1
                    is_sum = KINDS[kind][4] == "identity"
                    assert found == (expected if is_sum else pytest.approx(expected, rel=1e-12))
    assert n_inside >= 10


def cell_by_hand(data, row):
    """As docs/client says it; None where the row is "outside"."""
    x, tree = encoded_by_hand(data, row), data["partition"]
    if x is None:
        return None
    node = 0
    while tree["feature"][node] != -1:
        goes_left = x[tree["feature"][node]] <= tree["threshold"][node]
        node = (tree["left"] if goes_left else tree["right"])[node]
    return sum(f == -1 for f in tree["feature"][:node])


def test_a_cell_is_where_the_encoded_row_comes_to_as_the_docs_say():
    protocol, data = protocol_of("number"), plain("number")
    client = client_of(protocol)
    rng = np.random.default_rng(3)
    rows = [*ROWS, *({"miles": m, "company": c} for m in 16 * rng.random(40) for c in ("Sun", "Blue"))]
    expected = [cell_by_hand(data, row) for row in rows]
    found = [int(protocol.cells(client._row(row))[0]) for row in rows]
    assert found == [-1 if cell is None else cell for cell in expected]
    turned = np.vstack([client._row(row) for row in rows])[:, ::-1]
    assert protocol.cells(turned, protocol.encoding.columns[::-1]).tolist() == found
    assert len(set(found)) == 1 + protocol.n_cells


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_compared_is_sent_as_outside_and_never_an_error(kind):
    """Read off grr at eps 50, which tells the value as it is but once in 10^20."""
    protocol = protocol_of(kind, epsilon=50.0, oracle="grr")
    for row in ROWS:
        for label in labels_of(protocol):
            report = client_of(protocol.to_json()).report(row, label)
            found = int(np.frombuffer(report.payload, "<u4")[0])
            output = KINDS[kind][3] if report.output is None else report.output
            is_outside = residual_by_hand(json.loads(protocol.to_json()), row, label, output) is None
            assert (found == protocol.k - 1) == is_outside
    far = protocol_of(kind, epsilon=50.0, oracle="grr", outside="drop")
    report = client_of(far).report(ROWS[2], labels_of(far)[0])
    assert int(np.frombuffer(report.payload, "<u4")[0]) == far.k - 1


def chances(protocol, output=None):
    """P(value | row, label) of every row and label, in rational numbers: the coin's edge is looked for in the program itself.

    `output`: that all have drawn.
    """
    client = client_of(protocol)
    raw, labels = zip(
        *((client._row(row)[0], coded(client, y)) for row in ROWS for y in labels_of(protocol)), strict=True
    )
    raw, labels, n = np.array(raw), np.array(labels), len(labels)

    def values(uniform):
        outputs = None if output is None else np.full(n, output)
        return protocol.values(raw, labels, words=played([int(u) << 11 for u in uniform]), outputs=outputs)

    upper, lower = values([0] * n), values([2**53 - 1] * n)
    low, high = np.zeros(n, dtype=np.int64), np.full(n, 2**53, dtype=np.int64)
    while (high - low > 1).any():
        middle = (low + high) // 2
        is_upper = values(middle) == upper
        low, high = np.where(is_upper, middle, low), np.where(is_upper, high, middle)
    for up, down, edge in zip(upper.tolist(), lower.tolist(), high.tolist(), strict=True):
        chance = Fraction(edge if up != down else 2**53, 2**53)
        yield {up: chance} if up == down else {up: chance, down: 1 - chance}


@pytest.mark.parametrize(
    ("kind", "oracle", "n_levels"),
    [(kind, "grr", 3) for kind in KINDS] + [("number", "oue", 2), ("two classes, one share", "oue", 2)],
)
def test_no_two_people_are_told_apart_beyond_epsilon_by_exact_enumeration(kind, oracle, n_levels):
    """All coins included: a report's law is a mixture of the laws of two levels, or that of one value; where the output is drawn
    it is half of what is seen, and each comes up with a chance that nobody's row or label has a part in.
    """
    within_epsilon(protocol_of(kind, n_levels=n_levels, oracle=oracle))


def within_epsilon(protocol):
    of_value = protocol.mechanism.law
    highest, lowest, sums = {}, {}, Fraction(0)
    for output, drawn in outputs_of(protocol):
        chance_of_output = Fraction(1, protocol.n_outputs)
        mixtures = {
            tuple(sorted(mixture.items())) for mixture in chances(protocol, None if drawn is None else output)
        }
        assert any(len(mixture) == 2 for mixture in mixtures)
        laws = {value: of_value(value) for mixture in mixtures for value, _ in mixture}
        for mixture in mixtures:
            for report in laws[0]:
                chance = chance_of_output * sum(share * laws[value][report] for value, share in mixture)
                seen = (output, report)
                highest[seen] = max(highest.get(seen, chance), chance)
                lowest[seen] = min(lowest.get(seen, chance), chance)
        sums += chance_of_output
    assert sums == 1
    worst = log_up(max(highest[seen] / lowest[seen] for seen in highest))
    assert 0.5 < worst <= protocol.epsilon_exact <= 1.0


@pytest.mark.parametrize("kind", DRAWN)
def test_the_output_is_drawn_alike_by_everybody_and_is_said_in_the_clear(kind):
    """It is the first word's remainder, whoever they are; words of the last incomplete run of three are drawn again."""
    protocol = protocol_of(kind)
    rest = [1 << 63] * 100
    for row in ROWS:
        for label in labels_of(protocol):
            said = [
                client_of(protocol, words=played([*first, *rest])).report(row, label).output
                for first in ([0], [1], [2], [2**64 - 2], [2**64 - 1, 1])
            ]
            assert said == [0, 1, 2, (2**64 - 2) % protocol.n_outputs, 1]
    drawn = protocol.draw_outputs(30_000, words(1))
    each = 30_000 / protocol.n_outputs
    assert drawn.max() < protocol.n_outputs
    assert np.abs(np.bincount(drawn) - each).max() < 4 * each**0.5


@pytest.mark.parametrize("kind", DRAWN)
def test_a_report_on_a_drawn_output_says_which_and_travels_with_it(kind):
    report = client_of(protocol_of(kind)).report(ROWS[0], "cash" if KINDS[kind][2] else 9.5)
    sent = json.loads(report.to_json())
    assert sent.keys() == {"protocol", "round", "id", "report", "output"}
    assert Report.from_json(report.to_json()) == report
    for wrong in ("1", 1.0, True, None, [1]):
        with pytest.raises(DataError, match="round and output are whole numbers"):
            Report.from_json(json.dumps(sent | {"output": wrong}))
    with pytest.raises(DataError, match="draw them first"):
        protocol_of(kind).values(np.zeros((2, 2)), [0, 1], words=Words.system())
    with pytest.raises(DataError, match="draw them first"):
        protocol_of(kind).values(np.zeros((2, 2)), [0, 1], words=Words.system(), outputs=np.array([1]))
    plain_report = client_of(protocol_of("three classes, shares")).report(ROWS[0], "cash")
    assert "output" not in json.loads(plain_report.to_json())


REFUSED = [
    # what the published schema refuses as well
    ("number", {"feature": [-2, 1, -1, -1, -1, 0, -1, -1, -1]}, "not trees"),
    ("number", {"roots": []}, "do not fit its nodes"),
    ("number", {"value": [[]] * 6, "offset": []}, "0 outputs"),
    ("number", {"link": "logit"}, 'link "logit"'),
    ("number", {"trees": []}, "exactly the fields"),
    ("number", {"labels": ["one"]}, "at least 2, each once"),
    ("number", {"output": False}, "output must be a whole number"),
    ("number", {"more": 1}, "exactly the fields labels, output, trees"),
    ("number", {"labels": ["a", "a"]}, "at least 2, each once"),
    ("number", {"output": -1}, "output -1 of 1"),
    ("number", {"output": 0.5}, "output must be a whole number"),
    ("number", {"left": [-1, 2, 6]}, "not trees"),
    ("number", {"trees": {}}, "exactly the fields"),
    # and what only the program can
    ("number", {"feature": [3, 1, -1, -1, -1, 0, -1, -1, -1]}, "the base tests column 3 of 3"),
    ("number", {"feature": [True, 1, -1, -1, -1, 0, -1, -1, -1]}, "feature must be a list of whole numbers"),
    ("number", {"feature": []}, "do not fit its nodes"),
    ("number", {"left": [0, 2, 6]}, "not trees"),
    ("number", {"right": [4, 0, 7]}, "not trees"),
    ("number", {"right": [4, 3, 99]}, "not trees"),
    ("number", {"roots": [0, 5, 5]}, "not trees"),
    ("number", {"threshold": [0.5, 0.5, math.nan]}, "not JSON"),
    ("number", {"threshold": [0.5, 0.5, math.inf]}, "too large"),
    ("number", {"threshold": [0.5, 0.5, True]}, "threshold and offset must be lists of numbers"),
    ("number", {"value": [[1.0]] * 5 + [[-math.inf]]}, "too large"),
    ("number", {"value": [[1.0]] * 5 + [[1e300]]}, "beyond 1e\\+60"),
    ("number", {"value": [[1.0]] * 5 + [[1.0, 2.0]]}, "one for each output"),
    ("number", {"value": [[1.0, 1.0]] * 6, "offset": [0.0, 0.0]}, "2 outputs, which do not fit 0 labels"),
    ("number", {"offset": [1e300]}, "beyond 1e\\+60"),
    ("number", {"link": "softmax"}, 'link "softmax"'),
    ("number", {"link": "logistic"}, 'a number has "identity"'),
    ("number", {"link": ["identity"]}, "exactly the fields"),
    ("number", {"labels": [1, True]}, "at least 2, each once"),
    ("number", {"labels": ["a", "b", "c"]}, "1 outputs, which do not fit 3 labels"),
    ("number", {"labels": ["a", None]}, "texts, numbers or booleans"),
    ("number", {"labels": "ab"}, "texts, numbers or booleans"),
    ("number", {"output": 1}, "output 1 of 1"),
    ("number", {"output": 10**400}, r"output 10+ of 1"),
    ("two classes, logistic", {"output": 1}, "output 1 of 1"),
    ("two classes, logistic", {"output": "drawn"}, 'output "drawn" is for over two labels'),
    ("number", {"output": "drawn"}, 'output "drawn" is for over two labels'),
    ("three classes, drawn", {"output": "Drawn"}, 'a whole number or "drawn"'),
    ("two classes, logistic", {"labels": []}, 'a number has "identity"'),
    ("two classes, two shares", {"labels": ["a", "b", "c"]}, "2 outputs"),
    ("three classes, softmax", {"output": 3}, "output 3 of 3"),
    ("three classes, softmax", {"contrasts": [[0, 0.5]]}, "for a number or two labels"),
    ("number, contrasts", {"output": 0, "contrasts": [[0, 0.5], [0, 0.5]]}, "stands twice"),
    ("number, contrasts", {"contrasts": [[-1, 0.5], [0, 0.5]]}, "a column from 0 on"),
    ("number, contrasts", {"contrasts": [[3, 0.5], [0, 0.5]]}, "a column beyond the 3"),
    ("number, contrasts", {"contrasts": [[0.0, 0.5], [0, 0.5]]}, "a column's number and a threshold"),
    ("number, contrasts", {"contrasts": [[0, 0.5, 1], [0, 0.5]]}, "or two of both"),
    ("number, contrasts", {"contrasts": [[0, 0.5, 1, "0"], [0, 0.5]]}, "or two of both"),
    ("number, contrasts", {"contrasts": [[0, 0.5, 0, 0.25], [0, 0.5]]}, "a pair is of two columns"),
    ("number, contrasts", {"contrasts": [[1, 0.5, 0, 0.25], [0, 0.5]]}, "the lower one first"),
    ("number, contrasts", {"contrasts": [[0, 0.5, 3, 0.5], [0, 0.5]]}, "a column beyond the 3"),
    ("number, contrasts", {"contrasts": 3}, "contrasts must be a list"),
    ("number, contrasts", {"contrasts": [[0, 0.5]]}, "over two labels or several contrasts"),
    ("three classes, softmax", {"labels": ["a", "b"]}, "3 outputs"),
    ("three classes, softmax", {"link": "logistic"}, 'link "logistic" with 3 outputs'),
]  # fmt: skip
N_OF_SCHEMA = 13


@pytest.mark.parametrize(("number", "kind", "changes", "said"), [(n, *row) for n, row in enumerate(REFUSED)])
def test_what_is_no_base_is_a_mismatch_that_says_what_was_found(number, kind, changes, said):
    text = with_base(kind, **changes)
    with pytest.raises(ProtocolMismatch, match=said):
        client_of(text)
    assert number >= N_OF_SCHEMA or not VALIDATOR.is_valid(json.loads(text))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"numeric": False}, r"a residual is a number; the protocol does not say so \(numeric\)"),
        (
            {"mechanism": mechanism_for("discrete_laplace", 1.0, 3, 5)},
            "discrete_laplace is not for residuals",
        ),
        (
            {"mechanism": number_mechanism_for("randomized_response", 1.0, 3, 2), "classes": (-8.0, 8.0)},
            "number_response is not for residuals",
        ),
        ({"encoding": Encoding((NumericFeature("miles", 0, 16),))}, "the base tests column 1 of 1"),
    ],
)
def test_a_base_goes_with_a_joint_report_of_a_number_only(changes, said):
    with pytest.raises(ConfigError, match=said):
        protocol_of(**changes)


@pytest.mark.parametrize("base", [[], "x", 1, True, [[]]])
def test_a_base_is_an_object(base):
    with pytest.raises(ProtocolMismatch, match='field "base" has the wrong type'):
        client_of(signed(plain() | {"base": base}))


def test_a_base_that_no_device_could_hold_is_refused_before_it_is_made():
    """Two lists without a leaf whose product would be terabytes; one chain as deep as the text allows is walked."""
    many = [0] * 200_000
    wide = {"feature": many, "threshold": many, "left": many, "right": many, "value": []}
    with pytest.raises(ProtocolMismatch, match="do not fit its nodes"):
        client_of(with_base(**wide, offset=[0] * 100_000, roots=[0]))
    n = 5_000
    chain = {
        "feature": [0, -1] * n + [-1],
        "threshold": [0.5 / (i + 1) for i in range(n)],
        "left": list(range(2, 2 * n + 1, 2)),
        "right": list(range(1, 2 * n, 2)),
        "value": [[0.25]] * (n + 1),
        "roots": [0],
    }
    assert client_of(with_base(**chain)).report(ROWS[0], 1.0).payload


@pytest.mark.parametrize("name", ["labels", "trees", "output"])
def test_a_base_nested_too_deep_is_a_mismatch(name):
    text = with_base(**{name: "deep"}).replace('"deep"', "[" * 100_000 + "]" * 100_000)
    with pytest.raises(ProtocolMismatch):
        client_of(text)


def places(value, path=(), *, ends=False):
    """The paths of a value's parts; of a list those of the first and the last one where that is enough."""
    yield path
    parts = list(
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, part in parts[:: max(len(parts) - 1, 1)] if ends and isinstance(value, list) else parts:
        yield from places(part, (*path, key), ends=ends)


def changed(value, path, part):
    if not path:
        return part
    found = copy.copy(value)
    found[path[0]] = changed(value[path[0]], path[1:], part)
    return found


def is_refused_or_answered(text):
    """Loaded with one kind of error, or answered without any; whether it was refused."""
    try:
        client = client_of(text)
    except ProtocolMismatch:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i, row in enumerate(ROWS[1:4]):
            for label in labels_of(client.protocol)[1:4]:
                assert client.report(row, label, holder=f"{i} {label!r}").payload
    assert Protocol.from_json(client.protocol.to_json()).digest == client.protocol.digest
    return False


@pytest.mark.parametrize("kind", ["number", "three classes, softmax"])
def test_whatever_part_is_replaced_it_is_a_mismatch_or_a_base_that_answers(kind):
    data = plain(kind)
    forged = [
        signed(data | {"base": changed(data["base"], path, part)})
        for path in places(data["base"], ends=True)
        for part in ([], {}, None, "x", True, 10**400, -1, 4, 1e999, 1e308, 0.25)
    ]
    refused = sum(map(is_refused_or_answered, forged))
    assert len(forged) > 200
    assert refused > 0.8 * len(forged)


PARTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=25)
@given(st.sampled_from(list(KINDS)), st.data())
def test_random_parts_are_a_mismatch_or_a_base_that_answers(kind, data):
    protocol = plain(kind)
    path = data.draw(st.sampled_from(list(places(protocol["base"]))))
    is_refused_or_answered(signed(protocol | {"base": changed(protocol["base"], path, data.draw(PARTS))}))


@pytest.mark.parametrize("changes", [{"numeric": ...}, {"mechanism": "discrete_laplace", "oracle": None}])
def test_the_schema_asks_for_a_joint_report_of_a_number(changes):
    data = {key: value for key, value in (plain() | changes).items() if value is not ...}
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(data)
    with pytest.raises(ProtocolMismatch):
        client_of(signed(data))


def test_a_text_that_is_too_long_is_refused_with_its_size_before_it_is_read():
    text = protocol_of().to_json()
    for given_text in (text, text.encode()):
        assert client_of(given_text, max_protocol_bytes=len(text)).protocol.digest == protocol_of().digest
        with pytest.raises(ProtocolMismatch, match=rf"{len(text):,} bytes, at most {len(text) - 1:,}"):
            client_of(given_text, max_protocol_bytes=len(text) - 1)
    with pytest.raises(ProtocolMismatch, match=r"4,194,305 bytes, at most 4,194,304"):
        client_of(" " * (MAX_PROTOCOL_BYTES + 1))
    for wrong in (0, -1, math.nan, "1", True, None):
        with pytest.raises(ConfigError, match="max_protocol_bytes"):
            client_of(text, max_protocol_bytes=wrong)


def people(n, n_classes):
    """Columns with names so long that a protocol has to have room for them."""
    encoding = Encoding(tuple(NumericFeature(f"{'x' * 8_000}{j}", 0.0, 1.0) for j in range(5)))
    rng = np.random.default_rng(3)
    X = rng.random((n, 5)).astype(np.float32)
    y = 3 * X[:, 0] * X[:, 1] + rng.normal(0, 0.5, n)
    return (
        encoding,
        X,
        np.digitize(y, [0.4, 1.0]) if n_classes == 3 else (y > 0.6).astype(int) if n_classes else y,
    )


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_a_forest_is_shrunk_until_the_whole_protocol_has_the_size_allowed(n_classes, monkeypatch):
    for name, n_trees in (("N_TREES", 40), ("FEWEST_TREES", 20)):
        monkeypatch.setattr(fit, name, n_trees)
    encoding, X, y = people(400, n_classes)
    max_bytes = 60_000
    family = Correction(epsilon=4.0, heading={"target": "y"}, base="forest", max_protocol_bytes=max_bytes)
    labels = tuple("abc"[:n_classes])
    view = family.summarize(PublicRows(encoding=encoding, X=X, y=y, label=labels, n_private=10**6))
    assert view.evidence.base.ensemble.roots.size >= 20
    plan = make_plan(view.evidence, epsilon=4.0, n_holders=10**6)
    assert plan.partition.n_leaves > 16
    protocol = family.publish(view, plan)
    text = protocol.to_json()
    assert 0.7 * max_bytes < len(text) <= max_bytes
    client_of(text, max_protocol_bytes=max_bytes, words=words(1))
    with pytest.raises(ConfigError, match=rf"{len(text):,} bytes, at most {len(text) - 1:,} are allowed"):
        replace(family, max_protocol_bytes=len(text) - 1).publish(view, plan)


def test_a_model_of_ones_own_is_not_shrunk_but_refused_with_its_size():
    from sklearn.ensemble import RandomForestRegressor

    encoding, X, y = people(400, 0)
    fitted = RandomForestRegressor(20, random_state=0).fit(X, y)
    with pytest.raises(
        ConfigError, match=r"base: [\d,]+ bytes in a protocol \(20 trees, [\d,]+ nodes\), at most"
    ):
        _ = (
            Correction(epsilon=4.0, heading={"target": "y"}, base=fitted, max_protocol_bytes=50_000)
            .summarize(PublicRows(encoding=encoding, X=X, y=y, label=(), n_private=10))
            .evidence
        )


def test_an_answer_beyond_every_share_is_still_a_number():
    """Log odds of hundreds: shares of 0 and 1, no warning, and residuals in -1 .. 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for link, n_outputs, labels in (("logistic", 1, ("a", "b")), ("softmax", 3, ("a", "b", "c"))):
            base = PublishedBase(ensemble=ensemble_of(link, n_outputs, 1e5), labels=labels)
            protocol = protocol_of(base=base, classes=(-1.0, -0.5, 0.0, 0.5, 1.0))
            client = client_of(protocol.to_json())
            raw = np.vstack([client._row(row) for row in ROWS])
            found = protocol.residuals(raw, [0] * len(ROWS))
            assert (np.abs(found[np.isfinite(found)]) <= 1.0).all()
            assert np.isfinite(found).sum() == 5


def test_a_model_in_the_place_of_a_protocol_is_told_what_it_is():
    with pytest.raises(ProtocolMismatch, match=r"this is a model; a run has its protocol\.json beside"):
        Protocol.from_json('{"kind": "ldptree corrected model", "version": 1, "digest": "0"}')
