"""The exact half of an audit. Enumerates the law that a mechanism states, and compares its reports with it.

The worst likelihood ratio over every output and input, in rational numbers, from the integers in use. Reports are drawn by
other code than the law is stated by, so the reports of every value are compared with it (chi-square). How the law of a kind of
report is gone through is said once, by a subclass of `Law`. What reports alone can show is in `ldptree.audit.empirical`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, singledispatch
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, chdtrc

from ldptree.coins import RATE_UNIT, Words, log_up, rounded_up
from ldptree.mechanisms.discrete_laplace import DiscreteLaplace
from ldptree.mechanisms.oracles.local_hash import PRIME, Olh
from ldptree.mechanisms.randomized_response import NumberResponse

MOST_PROBABILITIES = 2**16
"""Most probabilities that an enumeration goes through, which takes a second or two."""
MOST_VALUES = 4096
"""Cells times classes that are audited at most."""
LAW_ALARM = 1e-4
"""How often an honest mechanism is told that its reports do not follow its law."""
# numbers held against a law: of one value, and of all together
_LAW_NUMBERS = 20_000
_ALL_LAW_NUMBERS = 4_000_000
# outputs that are expected less often are put together, so that chi-square is what it should be
_EXPECTED = 50
# noise further out than so many scales, or whole numbers, is one symbol
_FAR, _MOST_NOISE = 12, 2**16
# noise of a label is told apart in so many stretches, and by its two lowest binary digits
_STRETCHES = 8

_Fit = tuple[NDArray[np.int64], NDArray[np.float64]]


class Audited(Protocol):
    """A mechanism or an oracle that can be audited. A `law` and `law_size` add the exact part, `poisoning_bound` the dishonest
    holders, and `n_values` says how many inputs there are where they are not k.
    """

    @property
    def k(self) -> int:
        """Number of inputs."""

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
    law = law_of(make(size))
    misfit = _worst_misfit(law, words) if words else None
    return Exact(law.worst_ratio(), law.of.epsilon, size, fits, law.how, misfit)


def _fits(subject: Audited) -> bool:
    """Return whether its probabilities can be enumerated."""
    effort = law_of(subject).effort
    return effort is not None and effort <= MOST_PROBABILITIES and subject.k <= MOST_VALUES + 1


def inputs_of(subject: Audited) -> int:
    """Count the inputs."""
    return int(getattr(subject, "n_values", subject.k))


class Law:
    """The enumeration of a mechanism's law, with every output of every value."""

    how: ClassVar[str] = "every output"
    width: int = 1
    """How many numbers of a report are each held against the law."""

    def __init__(self, of: Any) -> None:
        self.of = of

    @property
    def effort(self) -> int | None:
        """Number of probabilities that an enumeration goes through; None where there can be none."""
        return int(self.of.law_size * self.of.k) if hasattr(self.of, "law_size") else None

    @property
    def values(self) -> Sequence[int]:
        """The values whose reports are held against the law."""
        return range(self.of.k)

    @cached_property
    def laws(self) -> list[dict[bytes, Fraction]]:
        """The chance of every output, by value."""
        return [self.of.law(value) for value in range(self.of.k)]

    def worst_ratio(self) -> float:
        """The logarithm of the largest P(output | x) / P(output | x'), rounded up."""
        return _largest_ratio(self.laws)

    def compare(self, value: int, reports: NDArray[Any]) -> _Fit | None:
        """Counts and chances of symbols of a value's reports; None where the law does not know a report."""
        law = self.laws[value]
        packed = np.ascontiguousarray(self.of.pack(reports))
        counts = Counter(packed.view(f"V{packed.shape[1]}").ravel().tolist())
        if not counts.keys() <= law.keys():
            return None
        return np.array([counts[output] for output in law]), _floats(law)


class HashLaw(Law):
    """The law of local hashing. Outputs that differ in the hash alone are distinguished by its lowest bits."""

    of: Olh

    def compare(self, value: int, reports: NDArray[Any]) -> _Fit:
        """Compare (own bucket or not, bucket, lowest bits of the hash), as the hash knows nothing of the value."""
        n_buckets, law = self.of.buckets, self.laws[value].values()
        a, b, c, bucket = reports.astype(np.int64).T
        hashed = ((a * value % PRIME + b) * value + c) % PRIME
        is_own = hashed * n_buckets // PRIME == bucket
        symbols = 8 * (n_buckets * is_own + bucket) + 4 * (a & 1) + 2 * (b & 1) + (c & 1)
        edges = -(-np.arange(n_buckets + 1) * PRIME // n_buckets)
        share = np.diff(edges) / PRIME
        lied, kept = float(min(law)), float(max(law))
        chances = np.repeat(np.concatenate([(1 - share) * lied, share * kept]), 8) / 8
        return np.bincount(symbols, minlength=chances.size), chances


class NoiseLaw(Law):
    """The law of discrete noise on indicators, where the worst ratio is that of the sensitivity.

    That is exact: P(output y) is proportional to e^(-rate |y - truth|) in every number, also where y stands for all
    numbers at least as far out, and beyond both truths the ratio reaches e^(rate |truth - truth'|) in each.
    """

    how = "sensitivity"
    of: DiscreteLaplace

    def __init__(self, of: DiscreteLaplace) -> None:
        super().__init__(of)
        self.width = of.raw_size

    @property
    def effort(self) -> int:
        """Every pair of values."""
        return int(self.of.k**2)

    def worst_ratio(self) -> float:
        """Rate times the largest L1 distance of two holders' indicators."""
        truths = self.of.indicators(np.arange(self.of.k))
        furthest = max(int(np.abs(truths - truth).sum(axis=1).max()) for truth in truths)
        return rounded_up(Fraction(furthest * self.of.rate, RATE_UNIT))

    def compare(self, value: int, reports: NDArray[Any]) -> _Fit:
        """Of (indicator, noise)."""
        truth = np.broadcast_to(self.of.indicators(np.array([value])), reports.shape).ravel()
        far, of_noise = _noise_chances(self.of.rate)
        drawn = np.clip(reports.ravel().astype(np.int64) - truth, -far, far) + far
        ones = truth.mean()
        chances = np.concatenate([(1 - ones) * of_noise, ones * of_noise])
        return np.bincount(of_noise.size * truth + drawn, minlength=chances.size), chances


class NumberLaw(Law):
    """Bits of a cell, whose law is enumerated, and apart from them a label with discrete noise.

    The two are drawn apart, so their epsilons add up, and a report's law is the product.
    """

    how = "every output, and sensitivity"
    of: NumberResponse

    @property
    def effort(self) -> int:
        """Of the bits."""
        return int(self.of.bits.law_size * self.of.bits.k)

    @property
    def values(self) -> list[int]:
        """Each cell with the ends, the first step and the middle of the label; outside."""
        S = self.of.steps
        steps = sorted({0, 1, S // 2, S})
        of_cells = [cell * (S + 1) + step for cell in range(self.of.n_cells) for step in steps]
        return [*of_cells, self.of.n_values - 1]

    @cached_property
    def laws(self) -> list[dict[bytes, Fraction]]:
        """Those of the bits, by cell."""
        return [self.of.bits.law(cell) for cell in range(self.of.bits.k)]

    def worst_ratio(self) -> float:
        """That of the bits, and rate times steps more, for labels at the two ends of the range.

        That is exact, also where labels are cut off: P(label y) is proportional to e^(-rate |y - truth|), where the last y
        stands for all further out, and beyond both truths the ratio reaches e^(rate |truth - truth'|).
        """
        of_label = Fraction(self.of.steps * self.of.rate, RATE_UNIT)
        return rounded_up(Fraction(_largest_ratio(self.laws)) + of_label)

    def compare(self, value: int, reports: NDArray[Any]) -> _Fit | None:
        """Of (bits, stretch and lowest digits of the label's noise)."""
        cells, steps = self.of.cells_and_parts(np.array([value]))
        law = self.laws[int(cells[0])]
        labels = np.ascontiguousarray(reports[:, :4]).view("<i4")[:, 0].astype(np.int64)
        symbol, of_noise = _noise_symbols(self.of.rate, labels - int(steps[0]))
        known = {output: place for place, output in enumerate(law)}
        bits = [row.tobytes() for row in reports[:, 4:]]
        if not known.keys() >= set(bits):
            return None
        place = np.array([known[bit] for bit in bits], dtype=np.int64)
        chances = np.outer(_floats(law), of_noise).ravel()
        return np.bincount(of_noise.size * place + symbol, minlength=chances.size), chances


@singledispatch
def law_of(subject: Any) -> Law:
    """Return the enumeration of a mechanism's law."""
    return Law(subject)


law_of.register(Olh, HashLaw)
law_of.register(DiscreteLaplace, NoiseLaw)
law_of.register(NumberResponse, NumberLaw)


def _floats(law: dict[bytes, Fraction]) -> NDArray[np.float64]:
    return np.array([float(chance) for chance in law.values()])


def _largest_ratio(laws: Sequence[dict[bytes, Fraction]]) -> float:
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


def _worst_misfit(law: Law, words: Words) -> Misfit | None:
    """Return the worst misfit of reports and their law, if honest ones have it with chance `LAW_ALARM` at most."""
    n = max(10, min(_LAW_NUMBERS, _ALL_LAW_NUMBERS // len(law.values)) // law.width)
    worst = Misfit(0, 1.0)
    for value in law.values:
        reports = law.of.randomize(np.full(n, value, dtype=np.int64), words)
        counted = law.compare(value, reports) if law.of.is_valid(reports).all() else None
        if counted is None:
            return Misfit(value, 0.0)
        chance = fit_of(*counted)
        if chance < worst.chance:
            worst = Misfit(value, chance)
    return worst if worst.chance < LAW_ALARM / len(law.values) else None


def fit_of(seen: NDArray[np.int64], chances: NDArray[np.float64]) -> float:
    """Return the chance that honest reports fit as badly, by chi-square for frequent, binomial for rare ones."""
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


def _noise_chances(rate: int) -> tuple[int, NDArray[np.float64]]:
    """Return how far noise is distinguished, and the chances of whole numbers up to there, with tails at the ends."""
    r = rate / RATE_UNIT
    far = math.ceil(_FAR / r) if r > _FAR / _MOST_NOISE else _MOST_NOISE
    a = math.exp(-r)
    chances = a ** np.abs(np.arange(-far, far + 1.0)) * -math.expm1(-r) / (1 + a)
    chances[[0, -1]] = a**far / (1 + a)
    return far, chances


def _noise_symbols(rate: int, noise: NDArray[np.int64]) -> _Fit:
    """Return each noise's symbol, of its stretch of equal chance and of itself modulo 4, and symbols' chances."""
    far, chance = _noise_chances(rate)
    stretch = np.minimum((chance.cumsum() - chance / 2) * _STRETCHES, _STRETCHES - 1).astype(np.int64)
    symbols = 4 * stretch + np.arange(-far, far + 1) % 4
    chances = np.bincount(symbols, weights=chance, minlength=4 * _STRETCHES).astype(np.float64)
    return symbols[np.clip(noise, -far, far) + far], chances
