"""The epsilon of one person's report among n that another party shuffles, so that nobody knows whose is whose.

Each mechanism here gives a report one of two chances: e^eps times as much where it speaks for the holder's value as where it does
not. So a report is known by which of three values it speaks for. `Kinds` has the chance of each kind that all values have in
common (the privacy blanket: Balle, Bell, Gascon, Nissim 2019, lemma 5.3). With Z the sum over n people of
(R_x - e^eps R_x') / blanket where a report is of the blanket, else 0,

    delta(eps) <= E max(Z, 0) / n,

the best bound that a decomposition gives (Su, Cheng, Wang 2025, arXiv 2504.07414). With the law of a third value in place of the
blanket the same sum is what reports give where all others have that value: a lower bound.

The law of Z is an n-fold convolution by FFT. Each value is split over the two grid points beside it so that its mean stays, which
makes E max(Z, 0) larger, never smaller. What lies outside of the grid is bounded by Bernstein's inequality and added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ldptree.errors import ConfigError
from ldptree.mechanisms.oracles.grr import Grr
from ldptree.mechanisms.oracles.subset import SubsetSelection
from ldptree.mechanisms.oracles.unary import Unary
from ldptree.mechanisms.signed_subset import SignedSubset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.mechanisms.mechanism import Mechanism

    Floats = NDArray[np.float64]

DELTA = 1e-8
"""At which a page states the epsilon of shuffled reports."""
GRID = 0.07
"""Standard deviations of one person's part, which the grid's steps are wide at most, up to 10^8 people."""
TAIL = 45.0
"""Natural logarithm of the chance, turned over, that Z lies outside of the grid."""
MOST_POINTS = 2**22
ACCURACY = 1e-3
"""Of an epsilon that is searched, as a share of it."""


@dataclass(frozen=True, eq=False)
class Kinds:
    """Reports by which of three values they speak for.

    Attributes:
        blanket: float64 [t], the chance of each kind that every value has at least; together at most 1.
        one, other, third: float64 [t], by how much more likely three values make it.
    """

    blanket: Floats
    one: Floats
    other: Floats
    third: Floats

    def upper(self, epsilon: float, n: int) -> float:
        """Return a delta that n shuffled reports have at most at this epsilon."""
        return _mean_excess(self.one - math.exp(epsilon) * self.other, self.blanket, n) / n

    def lower(self, epsilon: float, n: int) -> float:
        """Return the delta that they have where all others have the third value."""
        values = (self.one - math.exp(epsilon) * self.other) / self.third
        return _mean_excess(values, self.blanket * self.third, n) / n


@dataclass(frozen=True)
class Shuffled:
    """The epsilon of shuffled reports at one delta: `epsilon` is proved, and none below `at_least` is true."""

    epsilon: float
    at_least: float


def shuffled_epsilon(mechanism: Mechanism, n_holders: int, delta: float) -> Shuffled:
    """Return the epsilon of one report among `n_holders` that are shuffled, for a `delta` above 0 and below 1.

    Raises:
        ConfigError: the mechanism is not grr, oue, sue, ss or signed_subset, or n or delta is out of range.
    """
    if n_holders < 2 or not 0.0 < delta < 1.0:
        raise ConfigError(
            f"--shuffled: {n_holders} holders and delta {delta:g}; name 2 holders or more, and a delta between 0 and 1"
        )
    kinds = _kinds_of(mechanism)
    return Shuffled(
        epsilon=_least(lambda e: max(pair.upper(e, n_holders) for pair in kinds), delta, mechanism.epsilon),
        at_least=_least(lambda e: max(pair.lower(e, n_holders) for pair in kinds), delta, mechanism.epsilon)
        / (1.0 + ACCURACY),
    )


def _least(delta_at: Callable[[float], float], delta: float, most: float) -> float:
    """Return the smallest epsilon up to `most` whose delta is small enough, or at most `ACCURACY` of it more."""
    from scipy.optimize import brentq

    if delta_at(0.0) <= delta:
        return 0.0

    def excess(epsilon: float) -> float:
        return math.log(max(delta_at(epsilon), 1e-300) / delta)

    if excess(most) >= 0.0:
        return most
    return min(float(brentq(excess, 0.0, most, rtol=ACCURACY / 2.0)) * (1.0 + ACCURACY / 2.0), most)


def _kinds_of(mechanism: Mechanism) -> list[Kinds]:
    """The kinds of reports for every kind of pair of values."""
    match mechanism:
        case Grr(k=k, p=p, q=q):
            hits = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)]
            return [_kinds([(hit, q * (1 if any(hit) else k - 3)) for hit in hits], p / q)]
        case Unary(p=p, q=q):
            own = (1.0 - p) / (1.0 - q)
            free = [
                (hit, own * math.prod(q if each else 1.0 - q for each in hit))
                for hit in product((0, 1), repeat=3)
            ]
            return [_kinds(free, p / q / own)]
        case SubsetSelection(k=k, size=w, p=p):
            held = [
                (hit, (1.0 - p) * k / (k - w) * _held(k, w, sum(hit))) for hit in product((0, 1), repeat=3)
            ]
            return [_kinds(held, float(mechanism.ratio))]
        case SignedSubset(elements=elements, n_places=m) if m > 2:
            return list(_signed(m, elements))
    raise ConfigError(
        f"--shuffled: {mechanism.name} of {mechanism.k} values has no shuffled epsilon here; take grr, oue, sue or ss, or "
        "signed_subset with two cells or more"
    )


def _kinds(hits: list[tuple[tuple[int, ...], float]], ratio: float) -> Kinds:
    blanket = np.array([chance for _, chance in hits])
    one, other, third = np.where(np.array([hit for hit, _ in hits]).T, ratio, 1.0)
    return Kinds(blanket, one, other, third)


def _held(k: int, w: int, hits: int) -> float:
    """The chance that a uniform set of w of k holds these of three given ones, and not the others."""
    return math.comb(k - 3, w - hits) / math.comb(k, w) if w >= hits else 0.0


def _signed(m: int, elements: SubsetSelection) -> Iterator[Kinds]:
    """Two cells; two classes of a cell; a cell and "outside", where both classes are as likely, and the reverse. The third value
    is in another cell.
    """
    w, ratio = elements.size, float(elements.ratio)
    share = (1.0 - elements.p) / (1.0 - w / (2 * m))
    # which of three cells a set holds, and with which class, which is fair
    cells = [(held, share * _held(m, w, sum(held)) / 2 ** sum(held)) for held in product((0, 1), repeat=3)]
    sets = [
        (signs, chance)
        for held, chance in cells
        for signs in product(*[(1, -1) if h else (0,) for h in held])
    ]
    blanket = np.array([chance for _, chance in sets])
    first, second, third = np.array([signs for signs, _ in sets]).T

    def of(is_hit: NDArray[np.bool_], by: float = ratio) -> Floats:
        return np.where(is_hit, by, 1.0)

    own, outside = of(first > 0), of(second != 0, (ratio + 1.0) / 2.0)
    for one, other in ((own, of(second > 0)), (own, of(first < 0)), (own, outside), (outside, own)):
        yield Kinds(blanket, one, other, of(third > 0))


def _mean_excess(values: Floats, chances: Floats, n: int) -> float:
    """E max(Z, 0) of the sum Z of n independent draws, each of these values, or 0 with the chance that is left; from above."""
    values, chances = np.append(values, 0.0), np.append(chances, max(1.0 - float(chances.sum()), 0.0))
    mean = float(chances @ values)
    sd = math.sqrt(float(chances @ (values - mean) ** 2))
    if sd == 0.0:
        return max(n * mean, 0.0)
    furthest = float(np.abs(values - mean).max()) * TAIL / 3.0
    reach = furthest + math.sqrt(furthest**2 + 2.0 * n * sd**2 * TAIL)  # Bernstein
    outside = n * max(float(values.max()), 0.0) * 2.0 * math.exp(-TAIL)
    if n * mean + reach <= 0.0:
        return outside
    points = min(2 ** math.ceil(math.log2(2.0 * reach / (GRID * sd))), MOST_POINTS)
    step = 2.0 * reach / points
    centre = math.floor(mean / step)
    at = values / step - centre
    below = np.floor(at).astype(np.int64)
    law = np.zeros(points)
    np.add.at(law, below % points, chances * (below + 1 - at))
    np.add.at(law, (below + 1) % points, chances * (at - below))
    total = np.fft.irfft(np.fft.rfft(law) ** n, points)
    middle = round(n * (mean / step - centre))
    place = middle - points // 2 + np.arange(points)
    sums = (place + n * centre) * step
    return float(np.maximum(total[place % points], 0.0) @ np.maximum(sums, 0.0)) + outside
