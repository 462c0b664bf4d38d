"""Test what anybody's client answers for one made-up row against the protocol's law, as reports of this library draw it.

Reports are looked at in many ways: each bit and each byte, how many bits are set, the values supported, what neighbours have in
common, how often the same report comes again. In each way they are compared with ten times as many of this library's own, by
chi-square where symbols are frequent, and by exact tails (a binomial test, given both counts) where they are rare; and with the
law itself where its outputs can be enumerated. All ways share one error (Bonferroni).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, chi2_contingency, norm

from ldptree.audit.exact import MOST_PROBABILITIES, fit_of, law_of
from ldptree.client import Client, Report
from ldptree.coins import Words
from ldptree.errors import DataError, LdptreeError
from ldptree.protocol.protocol import Protocol

ALARM = 1e-4
"""How often an honest client is told that its answers do not follow the law."""
LEAST_ANSWERS = 1000
_OWN = 10
# symbols that are expected less often are put together
_EXPECTED = 20
_MISSED = 0.05
_SUPPORT_CELLS = 2**26

Answers = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Payloads [n, bytes], and the output that each is about [n]."""


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a client's answers.

    Attributes:
        n: answers that were compared.
        n_ways: how many ways they were looked at.
        impossible: how many lines no honest client sends, by what they are.
        misfits: the ways in which the answers do not follow the law, the worst first, with the chance that honest ones
            fit as badly.
        detected: of a bit that is set too often or too seldom by this much, 95 of 100 are noticed.
    """

    n: int
    n_ways: int
    impossible: Mapping[str, int]
    misfits: Mapping[str, float]
    detected: float

    @property
    def is_honest(self) -> bool:
        """True if nothing is wrong."""
        return not self.impossible and not self.misfits


def judge_answers(protocol: Protocol, lines: Sequence[str], row: Mapping[str, Any], words: Words) -> Verdict:
    """Judge the answers of a client, each drawn anew for the same row, which has the label under its column.

    Raises:
        DataError: the row does not fit the protocol, or too few answers can be compared.
    """
    if protocol.target not in row:
        raise DataError(f"the row has no {protocol.target!r}, which is the label")
    impossible, reports = _read(protocol, lines)
    if len(reports) < LEAST_ANSWERS:
        counts = "".join(f"; {count:,} are {reason}" for reason, count in impossible.items())
        raise DataError(
            f"{len(reports):,} answers can be compared, at least {LEAST_ANSWERS:,} are needed{counts}"
        )
    sent = np.frombuffer(b"".join(report.payload for report in reports), np.uint8)
    sent = sent.reshape(len(reports), protocol.mechanism.report_bytes)
    theirs = sent, np.array([report.output or 0 for report in reports])
    features = {name: value for name, value in row.items() if name != protocol.target}
    client = Client(
        protocol, max_epsilon=protocol.epsilon, memory={}, words=words if protocol.simulation else None
    )
    values, drawn, about = client.draw(features, row[protocol.target], _OWN * len(reports), words)
    ours = drawn, about
    ways = list(_ways(protocol, theirs, ours))
    chances = {name: _chance_of(a, b) for name, a, b in ways}
    if (values == values[0]).all():
        chances["the law itself"] = _chance_by_law(protocol, int(values[0]), sent)
    chances["the same report again"] = _chance_of_repeats(sent, drawn)
    limit = ALARM / len(chances)
    worst = sorted((chance, name) for name, chance in chances.items() if chance < limit)
    spread = 0.5 * np.sqrt((1 + 1 / _OWN) / len(reports))
    return Verdict(
        n=len(reports),
        n_ways=len(chances),
        impossible=impossible,
        misfits={name: chance for chance, name in worst},
        detected=float((norm.isf(limit / 4) + norm.isf(_MISSED)) * spread),
    )


def _read(protocol: Protocol, lines: Sequence[str]) -> tuple[dict[str, int], list[Report]]:
    """How many lines no honest client sends, by what they are, and the reports that can be compared, in their order."""
    impossible: Counter[str] = Counter()
    reports, ids = [], set()
    for line in lines:
        try:
            report = Report.from_json(line)
        except LdptreeError:
            impossible["not a report"] += 1
            continue
        is_about = (
            report.output in range(protocol.n_outputs) if protocol.n_outputs > 1 else report.output is None
        )
        if report.protocol != protocol.digest or report.round != protocol.round:
            impossible["of another protocol or round"] += 1
        elif not is_about:
            impossible["about no output of the protocol"] += 1
        elif len(report.payload) != protocol.mechanism.report_bytes:
            impossible["of a wrong length"] += 1
        elif not _is_valid(protocol, report.payload):
            impossible["impossible under the protocol"] += 1
        else:
            impossible["under an id that was there before"] += report.id in ids
            ids.add(report.id)
            reports.append(report)
    return dict(+impossible), reports


def _is_valid(protocol: Protocol, payload: bytes) -> bool:
    mechanism = protocol.mechanism
    return bool(mechanism.is_valid(mechanism.unpack(np.frombuffer(payload, np.uint8)[None])).all())


def _ways(
    protocol: Protocol, theirs: Answers, ours: Answers
) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Every way to look at both, with the symbols that it gives."""
    (a, about_a), (b, about_b) = theirs, ours
    bits_a, bits_b = (np.unpackbits(payloads, axis=1, bitorder="little") for payloads in (a, b))
    for bit in range(bits_a.shape[1]):
        yield f"bit {bit}", bits_a[:, bit], bits_b[:, bit]
    for byte in range(a.shape[1]):
        yield f"byte {byte}", a[:, byte] + 256 * about_a, b[:, byte] + 256 * about_b
    yield "the output", about_a, about_b
    yield "the number of bits that are set", bits_a.sum(axis=1), bits_b.sum(axis=1)
    yield "what neighbours have in common", _distances(a), _distances(b)
    mechanism = protocol.mechanism
    if hasattr(mechanism, "supports") and len(b) * mechanism.k <= _SUPPORT_CELLS:
        supported_a, supported_b = (mechanism.supports(mechanism.unpack(payloads)) for payloads in (a, b))
        for value in range(mechanism.k):
            yield f"support of value {value}", supported_a[:, value], supported_b[:, value]


def _distances(payloads: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The number of bits in which each report differs from the next, in pairs that share none."""
    n = len(payloads) // 2 * 2
    differing = np.unpackbits(payloads[:n:2] ^ payloads[1:n:2], axis=1)
    return np.asarray(differing.sum(axis=1, dtype=np.int64))


def _chance_by_law(protocol: Protocol, value: int, payloads: NDArray[np.uint8]) -> float:
    """The chance by the law, where its outputs can be enumerated."""
    law = law_of(protocol.mechanism)
    if law.effort is None or law.effort > MOST_PROBABILITIES:
        return 1.0
    counted = law.compare(value, protocol.mechanism.unpack(payloads))
    return 0.0 if counted is None else fit_of(*counted)


def _chance_of_repeats(theirs: NDArray[np.uint8], ours: NDArray[np.uint8]) -> float:
    """The chance that as many of a client's reports are equal, where equal ones are rare."""
    equal, pairs = [], []
    for payloads in (theirs, ours):
        times = np.unique(payloads, axis=0, return_counts=True)[1]
        equal.append(int((times * (times - 1) // 2).sum()))
        pairs.append(len(payloads) * (len(payloads) - 1) // 2)
    is_rare = equal[1] < len(ours) / _EXPECTED
    return (
        float(binomtest(equal[0], sum(equal), pairs[0] / sum(pairs)).pvalue)
        if is_rare and any(equal)
        else 1.0
    )


def _chance_of(theirs: NDArray[Any], ours: NDArray[Any]) -> float:
    """The chance that two samples of one law differ as much, by their symbols."""
    symbols, place = np.unique(np.concatenate([theirs, ours]), return_inverse=True)
    counts = np.stack([np.bincount(part, minlength=symbols.size) for part in np.split(place, [theirs.size])])
    share = theirs.size / (theirs.size + ours.size)
    is_rare = counts.sum(axis=0) * share < _EXPECTED
    rare = counts[:, is_rare].sum(axis=1)
    of_rare = float(binomtest(int(rare[0]), int(rare.sum()), share).pvalue) if rare.sum() else 1.0
    frequent = (
        np.column_stack([counts[:, ~is_rare], rare])
        if rare.sum() * share >= _EXPECTED
        else counts[:, ~is_rare]
    )
    of_frequent = float(chi2_contingency(frequent, correction=False).pvalue) if frequent.shape[1] > 1 else 1.0
    return min(1.0, 2 * min(of_rare, of_frequent))
