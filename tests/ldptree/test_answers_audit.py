"""Answers of anybody's client for one made-up row: honest ones pass, and each way to draw wrong coins is noticed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ldptree import serialize
from ldptree.audit.answers import ALARM, judge_answers
from ldptree.client import Client, Report
from ldptree.coins import RATE_UNIT, Words
from ldptree.errors import DataError
from ldptree.mechanisms import mechanism_for
from ldptree.protocol.protocol import Protocol

VECTORS = json.loads((Path(__file__).parents[2] / "docs" / "client" / "vectors.json").read_text())
OF = {vector["mechanism"]: vector for vector in VECTORS}
N = 10_000


def words(seed=1):
    return Words.seeded(np.random.SeedSequence(seed))


def protocol_of(name):
    return Protocol.from_json(serialize.canonical(OF[name]["protocol"]))


def answers(protocol, name, seed=1, n=N):
    """Payloads and outputs of an honest client for the first row of the vectors, and that row."""
    first = OF[name]["answers"][0]
    coins = words(seed)
    client = Client(protocol, max_epsilon=64.0, memory={}, words=coins if protocol.simulation else None)
    _, payloads, outputs = client.draw(first["row"], first["label"], n, coins)
    return payloads, outputs, first["row"] | {protocol.target: first["label"]}


def judged(protocol, payloads, outputs, row, ids=None):
    has_output = protocol.n_outputs > 1
    lines = [
        Report(
            protocol=protocol.digest,
            round=protocol.round,
            id=f"{number:032x}",
            payload=payload.tobytes(),
            output=int(output) if has_output else None,
        ).to_json()
        for number, payload, output in zip(
            range(len(payloads)) if ids is None else ids, payloads, outputs, strict=True
        )
    ]
    return judge_answers(protocol, lines, row, words(2))


@pytest.mark.parametrize("name", OF)
def test_an_honest_client_is_not_blamed(name):
    """A false alarm in 10,000 for each: in 500 of such suites."""
    protocol = protocol_of(name)
    verdict = judged(protocol, *answers(protocol, name))
    assert verdict.is_honest, verdict
    assert verdict.n == N


def test_honest_clients_are_blamed_no_more_often_than_stated():
    """Two of 50 would be blamed in one suite of 10^5."""
    protocol = protocol_of("oue")
    *_, row = answers(protocol, "oue", n=1)
    blamed = sum(
        not judged(protocol, *answers(protocol, "oue", seed, 1000)[:2], row).is_honest
        for seed in range(3, 53)
    )
    assert blamed <= 1


def other_epsilon(payloads, protocol, name):
    """As a client that reads a threshold wrongly: a quarter more epsilon."""
    mechanism = protocol.mechanism
    other = mechanism_for(name, 1.25 * protocol.epsilon, protocol.n_cells, protocol.n_classes)
    return (
        answers(replace(protocol, mechanism=other, epsilon=64.0), name)[0]
        if mechanism.k == other.k
        else payloads
    )


@pytest.mark.parametrize("name", ["grr", "oue", "sue", "olh", "randomized_response", "discrete_laplace"])
def test_wrong_probabilities_are_noticed(name):
    protocol = protocol_of(name)
    payloads, outputs, row = answers(protocol, name)
    verdict = judged(protocol, other_epsilon(payloads, protocol, name), outputs, row)
    assert not verdict.is_honest
    assert not verdict.impossible


def test_an_answer_for_another_row_is_noticed():
    protocol = protocol_of("grr")
    payloads, outputs, row = answers(protocol, "grr")
    other = OF["grr"]["answers"][2]
    verdict = judged(protocol, payloads, outputs, other["row"] | {protocol.target: other["label"]})
    assert any(way.startswith("support") for way in verdict.misfits)
    assert judged(protocol, payloads, outputs, row).is_honest


@pytest.mark.parametrize("name", ["oue", "sue", "olh", "discrete_laplace"])
@pytest.mark.parametrize("period", [1, 500])
def test_coins_that_are_used_again_are_noticed(name, period):
    """Each twice in a row, or a table of coins that begins anew; every id is new."""
    protocol = protocol_of(name)
    payloads, outputs, row = answers(protocol, name)
    again = np.repeat(payloads[: N // 2], 2, axis=0) if period == 1 else payloads[np.arange(N) % period]
    assert not judged(protocol, again, outputs, row).is_honest


def test_one_coin_for_all_bits_of_a_report_is_noticed():
    """Each bit is set as often as it should be."""
    protocol = protocol_of("sue")
    payloads, outputs, row = answers(protocol, "sue")
    bits = np.unpackbits(payloads, axis=1, bitorder="little")[:, : protocol.k]
    coins = np.random.default_rng(1).random(N)
    bits = (coins[:, None] < bits.mean(axis=0)).astype(np.uint8)
    verdict = judged(protocol, np.packbits(bits, axis=1, bitorder="little"), outputs, row)
    assert "the number of bits that are set" in verdict.misfits
    assert not any(way.startswith("bit ") for way in verdict.misfits)


def test_rounded_floating_point_noise_is_noticed():
    """A fixed-point report cannot carry its digits; rounding leaves another law, which epsilon 2 shows (1.5 in 9 of 10 tests)."""
    published = protocol_of("discrete_laplace")
    mechanism = mechanism_for("discrete_laplace", 2.0, published.n_cells, published.n_classes)
    protocol = replace(published, mechanism=mechanism, epsilon=2.0)
    payloads, outputs, row = answers(protocol, "discrete_laplace")
    reports = mechanism.unpack(payloads)
    noise = np.random.default_rng(1).laplace(0, RATE_UNIT / mechanism.rate, reports.shape)
    rounded = np.round(np.round(reports.mean(axis=0)) + noise).astype(reports.dtype)
    assert judged(protocol, mechanism.pack(rounded), outputs, row).misfits["the law itself"] < ALARM
    assert judged(protocol, payloads, outputs, row).is_honest


def test_what_no_honest_client_sends_is_counted():
    protocol = protocol_of("oue")
    payloads, outputs, row = answers(protocol, "oue")
    ids = np.arange(N)
    ids[:5] = 7
    verdict = judged(protocol, payloads, outputs, row, ids)
    assert verdict.impossible == {"under an id that was there before": 5}
    good = json.loads(
        Report(protocol=protocol.digest, round=1, id="0" * 32, payload=payloads[0].tobytes()).to_json()
    )
    bad = [
        good | change for change in ({"protocol": "0" * 64}, {"report": "AA" * 6}, {"output": 1}, {"id": 3})
    ]
    lines = [json.dumps(good | {"id": f"{n:032x}"}) for n in range(1000)]
    counted = judge_answers(protocol, [*lines, "", *map(json.dumps, bad)], row, words()).impossible
    assert counted == {
        "not a report": 2,
        "of another protocol or round": 1,
        "of a wrong length": 1,
        "about no output of the protocol": 1,
    }


def test_too_few_answers_or_a_row_that_does_not_fit_are_refused():
    protocol = protocol_of("oue")
    payloads, outputs, row = answers(protocol, "oue")
    with pytest.raises(DataError, match="999 answers can be compared, at least 1,000 are needed"):
        judged(protocol, payloads[:999], outputs[:999], row)
    with pytest.raises(DataError, match="the row has no 'paid'"):
        judged(protocol, payloads, outputs, {})
    with pytest.raises(DataError, match="is not in the protocol"):
        judged(protocol, payloads, outputs, row | {"fare": 3})
