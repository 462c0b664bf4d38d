"""The exact half of an audit: the law that a mechanism states, gone through, and its reports held against it.

The worst likelihood ratio over every output and input, in rational numbers, from the integers in use. Reports are drawn by
other code than the law is stated by, so the reports of every value are compared with it (chi-square). What reports alone can
show is in `ldptree.audit.empirical`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ldptree.audit import exact_numbers as audit_numbers
from ldptree.coins import RATE_UNIT, Words, log_up, rounded_up
from ldptree.mechanisms.discrete_laplace import DiscreteLaplace
from ldptree.mechanisms.number_response import NumberResponse
from ldptree.mechanisms.oracles.local_hash import PRIME, Olh

MOST_PROBABILITIES = 2**16
"""Probabilities that an enumeration goes through at most: a second or two."""
MOST_VALUES = 4096
"""Cells times classes that are audited at most."""
LAW_ALARM = 1e-4
"""How often an honest mechanism is told that its reports do not follow its law."""
# numbers held against a law: of one value, and of all together
_LAW_NUMBERS = 20_000
_ALL_LAW_NUMBERS = 4_000_000
# outputs that are expected less often are put together, so that chi-square is what it should be
_EXPECTED = 50


class Audited(Protocol):
    """What can be audited. A `law` and `law_size` add the exact part, `poisoning_bound` the dishonest holders, and
    `n_values` says how many inputs there are where they are not k.
    """

    @property
    def k(self) -> int:
        """How many inputs there are."""

    @property
    def epsilon(self) -> float:
        """The claim."""

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[Any]:
        """One report a holder, numbers [n] or [n, m]."""


@dataclass(frozen=True)
class Misfit:
    """Reports that do not follow the law that was gone through.

    Attributes:
        value: of the holders.
        chance: that honest reports fit as badly; 0 where the law does not know a report at all.
    """

    value: int
    chance: float


@dataclass(frozen=True)
class Exact:
    """The worst likelihood ratio of all outputs and inputs.

    Attributes:
        epsilon: its logarithm, rounded up.
        claim: what the mechanism of this size states.
        n_cells: the size that was gone through.
        most_cells: the largest size that can be.
        how: "every output", "sensitivity", or "every output, and sensitivity" where a label is sent apart from the cell.
        misfit: the value whose reports follow the law worst, if any does not.
    """

    epsilon: float
    claim: float
    n_cells: int
    most_cells: int
    how: str
    misfit: Misfit | None = None


def enumerated(make: Callable[[int], Audited], n_cells: int, words: Words | None = None) -> Exact | None:
    """The worst likelihood ratio of the mechanism make(n), n = n_cells or the largest that can be gone through.

    With words, reports of every value are drawn and held against the law. None where outputs cannot be gone through:
    floating-point noise, no law, or too many outputs even of one cell.
    """
    if not _fits(make(1)):
        return None
    fits, too_many = 1, 2
    while too_many <= MOST_VALUES and _fits(make(too_many)):
        fits, too_many = too_many, 2 * too_many
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if _fits(make(middle)):
            fits = middle
        else:
            too_many = middle
    size = min(n_cells, fits)
    subject = make(size)
    inner: Any = subject
    if isinstance(inner, DiscreteLaplace):
        misfit = _worst_misfit(inner, (), words) if words else None
        return Exact(_by_sensitivity(inner), subject.epsilon, size, fits, "sensitivity", misfit)
    is_number = isinstance(inner, NumberResponse)
    gone_through = inner.bits if is_number else inner
    laws = [gone_through.law(value) for value in range(gone_through.k)]
    misfit = _worst_misfit(inner, laws, words) if words else None
    epsilon = _by_enumeration(laws)
    if is_number:
        worst = audit_numbers.worst_ratio(inner, epsilon)
        return Exact(worst, subject.epsilon, size, fits, "every output, and sensitivity", misfit)
    return Exact(epsilon, subject.epsilon, size, fits, "every output", misfit)


def _fits(subject: Audited) -> bool:
    """Whether its probabilities can be gone through."""
    effort = _effort(subject)
    return effort is not None and effort <= MOST_PROBABILITIES and subject.k <= MOST_VALUES + 1


def inputs_of(subject: Audited) -> int:
    """How many inputs there are."""
    return int(getattr(subject, "n_values", subject.k))


def _effort(subject: Audited) -> int | None:
    """How many probabilities an enumeration goes through; None where there can be none."""
    match subject:
        case DiscreteLaplace() as noise:
            return int(noise.k**2)
        case NumberResponse(bits=bits):
            return int(bits.law_size * bits.k)
        case _:
            return int(subject.law_size * subject.k) if hasattr(subject, "law_size") else None


def _by_enumeration(laws: Sequence[dict[bytes, Fraction]]) -> float:
    """The logarithm of the largest P(output | x) / P(output | x'), rounded up; in rational numbers."""
    highest = dict(laws[0])
    lowest = dict(highest)
    for law in laws[1:]:
        if law.keys() != highest.keys():
            return math.inf
        for output, chance in law.items():
            if chance > highest[output]:
                highest[output] = chance
            elif chance < lowest[output]:
                lowest[output] = chance
    if not all(lowest.values()):
        return math.inf
    return log_up(max(highest[output] / lowest[output] for output in highest))


def _by_sensitivity(noise: DiscreteLaplace) -> float:
    """rate times the largest L1 distance of two holders' indicators.

    That is exact: P(output y) is proportional to e^(-rate |y - truth|) in every number, also where y stands for all
    numbers at least as far out, and beyond both truths the ratio reaches e^(rate |truth - truth'|) in each.
    """
    truths = noise.indicators(np.arange(noise.k))
    furthest = max(int(np.abs(truths - truth).sum(axis=1).max()) for truth in truths)
    return rounded_up(Fraction(furthest * noise.rate, RATE_UNIT))


def _worst_misfit(inner: Any, laws: Sequence[dict[bytes, Fraction]], words: Words) -> Misfit | None:
    """Reports of every value against its law: a misfit that honest reports have with chance `LAW_ALARM` at most."""
    width = inner.raw_size if isinstance(inner, DiscreteLaplace) else 1
    values = audit_numbers.values_of(inner) if isinstance(inner, NumberResponse) else range(inner.k)
    n = max(10, min(_LAW_NUMBERS, _ALL_LAW_NUMBERS // len(values)) // width)
    worst = Misfit(0, 1.0)
    for value in values:
        reports = inner.randomize(np.full(n, value, dtype=np.int64), words)
        if not inner.is_valid(reports).all():
            return Misfit(value, 0.0)
        match inner:
            case DiscreteLaplace():
                seen, chances = _noise_against_law(inner, value, reports)
            case NumberResponse():
                seen, chances = audit_numbers.against_law(inner, value, reports, laws)
            case Olh():
                seen, chances = _hashes_against_law(inner, value, reports, list(laws[value].values()))
            case _:
                law = laws[value]
                packed = np.ascontiguousarray(inner.pack(reports))
                counts = Counter(packed.view(f"V{packed.shape[1]}").ravel().tolist())
                if not counts.keys() <= law.keys():
                    return Misfit(value, 0.0)
                seen = np.array([counts[output] for output in law])
                chances = np.array([float(chance) for chance in law.values()])
        chance = fit_of(seen, chances)
        if chance < worst.chance:
            worst = Misfit(value, chance)
    return worst if worst.chance < LAW_ALARM / len(values) else None


def fit_of(seen: NDArray[np.int64], chances: NDArray[np.float64]) -> float:
    """The chance that honest reports fit as badly: chi-square of what is frequent, binomial of what is rare."""
    from scipy.special import betainc, chdtrc

    n = int(seen.sum())
    if seen[chances == 0].any():
        return 0.0
    order = np.argsort(chances, kind="stable")
    seen, expected = seen[order], n * chances[order]
    n_rare = int(np.searchsorted(expected, _EXPECTED))
    # no rare output spans half a run, so that each run is expected often enough; the last may not be
    runs = expected[:n_rare].cumsum() // (2 * _EXPECTED)
    runs = np.append(runs.astype(np.int64), np.arange(n_rare, seen.size))
    _, group = np.unique(runs, return_inverse=True)
    counts, means = np.bincount(group, seen), np.bincount(group, expected)
    is_rare = means < _EXPECTED
    few, mean = int(counts[is_rare].sum()), float(means[is_rare].sum())
    of_rare = float(betainc(few, n - few + 1, mean / n)) if 0 < few <= n and mean < n else 1.0
    counts, means = counts[~is_rare], means[~is_rare]
    if counts.size < 2:
        return min(1.0, 2 * of_rare)
    counts[-1], means[-1] = counts[-1] + few, means[-1] + mean
    of_frequent = float(chdtrc(counts.size - 1, ((counts - means) ** 2 / means).sum()))
    return min(1.0, 2 * min(of_rare, of_frequent))


def _hashes_against_law(
    oracle: Olh, value: int, reports: NDArray[np.uint32], law: Sequence[Fraction]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts and chances of (own bucket or not, bucket, lowest bits of the hash): the hash knows nothing of the value."""
    a, b, c, bucket = reports.astype(np.int64).T
    hashed = ((a * value % PRIME + b) * value + c) % PRIME
    is_own = hashed * oracle.buckets // PRIME == bucket
    symbols = 8 * (oracle.buckets * is_own + bucket) + 4 * (a & 1) + 2 * (b & 1) + (c & 1)
    edges = -(-np.arange(oracle.buckets + 1) * PRIME // oracle.buckets)
    share = np.diff(edges) / PRIME
    lied, kept = float(min(law)), float(max(law))
    chances = np.repeat(np.concatenate([(1 - share) * lied, share * kept]), 8) / 8
    return np.bincount(symbols, minlength=chances.size), chances


def _noise_against_law(
    noise: DiscreteLaplace, value: int, reports: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts and chances of (indicator, noise), both tails cut where hardly any noise comes."""
    truth = np.broadcast_to(noise.indicators(np.array([value])), reports.shape).ravel()
    rate = noise.rate / RATE_UNIT
    far = math.ceil(12 / rate) if rate > 12 / MOST_PROBABILITIES else MOST_PROBABILITIES
    drawn = np.clip(reports.ravel().astype(np.int64) - truth, -far, far) + far
    a = math.exp(-rate)
    one = a ** np.abs(np.arange(-far, far + 1.0)) * -math.expm1(-rate) / (1 + a)
    one[[0, -1]] = a**far / (1 + a)
    ones = truth.mean()
    chances = np.concatenate([(1 - ones) * one, ones * one])
    return np.bincount(one.size * truth + drawn, minlength=chances.size), chances
