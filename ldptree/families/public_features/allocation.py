"""Allocate holders to questions, by number and by turn, and choose the contrasts that are asked about.

The holders stand in an order that public coins draw, and are cut into parts: no holder is in two of them. The order depends
on a seed and the number of holders alone, so a part says nothing about what its holders protect. Sizes follow from what is
shown, what round 0 said of the label, and what answers say, all counted in mean squared error. What a feature is expected
to explain, the parts and the limits were set after seeing results on the laws and sets of the benchmarks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ldptree.coins import Words
from ldptree.errors import ProtocolMismatch
from ldptree.models.surface import SHAPES, Contrast

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST_SEED = 2**64
# share of the holders who tell of the label's law, the most there may be, and how many are enough at epsilon 1
_ROUND_0, _MOST_OF_ROUND_0, _ENOUGH = 0.1, 0.25, 500
FEATURE_BINS = 0.05
"""Share who send a bin of a private feature, where too few show it."""
SHOWN_ENOUGH = 100
"""Holders who show a feature from whom its ranks are taken without asking."""
EXPECTED = {"rise": 0.15, "bowl": 0.02}
"""Share of the label's variance that a contrast is expected to explain, times the number of features."""
# the mean square that a contrast is expected to have: that of ranks without ties
EXPECTED_SQUARE = 13 / 27
# of a contrast's holders, those who are asked before it is decided on the rest; and of all holders, those of all such parts
_FIRST_PART, _MOST_OF_FIRST_PARTS = 1 / 2, 1 / 4
# a first part whose noise is more than so many times what is expected tells nothing
_MOST_NOISE = 2.0
FEWEST = 20
"""Nobody is asked about a contrast where fewer would be."""
# noise of the surface, in that of one report over its holders, for each coefficient of its line: trees cost as much again
_SURFACE = 2.0
_BISECTIONS = 100


@dataclass(frozen=True)
class Part:
    """The holders from place `start` to `stop` - 1 of the order that `seed` draws.

    Raises:
        ProtocolMismatch: not 0 <= start < stop, or a seed out of 0 .. 2^64 - 1.
    """

    seed: int
    start: int
    stop: int

    def __post_init__(self) -> None:
        numbers = (self.seed, self.start, self.stop)
        if any(type(v) is not int for v in numbers) or not (
            0 <= self.start < self.stop and 0 <= self.seed < _LARGEST_SEED
        ):
            raise ProtocolMismatch(
                f"question: its holders are {numbers}; a seed, a first place and one past the last"
            )

    def select(self, n: int) -> NDArray[np.int64]:
        """Positions of these holders among n, increasing.

        Raises:
            ProtocolMismatch: there are fewer than `stop`.
        """
        if self.stop > n:
            raise ProtocolMismatch(f"question: it asks holders up to place {self.stop}, there are {n}")
        return np.sort(shuffle_holders(self.seed, n)[self.start : self.stop])


@lru_cache(maxsize=8)
def shuffle_holders(seed: int, n: int) -> NDArray[np.int64]:
    """The positions 0 .. n - 1 in the order that this seed draws; the same everywhere."""
    words = Words.seeded(np.random.SeedSequence([seed >> 32, seed & 0xFFFFFFFF])).block(n)
    places = np.argsort(words, kind="stable")
    places.setflags(write=False)
    return places


@dataclass(frozen=True)
class Turn:
    """A question to come.

    Attributes:
        part: who is asked.
        kind: "label bins", "feature bins", "label" or "contrast".
        about: the feature, or the place of the contrast; -1 for the label.
    """

    part: Part
    kind: str
    about: int = -1


@dataclass
class Schedule:
    """Turns of one seed, one after the other.

    Attributes:
        seed: of all parts.
        turns: so far.
    """

    seed: int
    turns: list[Turn]

    def add(self, kind: str, size: int, about: int = -1) -> None:
        """Add a turn of the next `size` holders, or none if there are none."""
        at = self.turns[-1].part.stop if self.turns else 0
        if size > 0:
            self.turns.append(Turn(Part(self.seed, at, at + size), kind, about))


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """The decisions made before anything is asked about private features.

    Attributes:
        line: the features that at least half of the holders show.
        private: the rest.
        shapes: which are asked of private features; none where they do not pay.
        binned: private features whose bins are asked for.
        n_bins: holders of each of them.
        left: holders of the questions about label and contrasts.
    """

    line: tuple[int, ...]
    private: tuple[int, ...]
    shapes: tuple[str, ...]
    binned: tuple[int, ...]
    n_bins: int
    left: int


@dataclass(frozen=True, kw_only=True)
class Stake:
    """The gain that asking about a contrast may bring, in mean squared error.

    Attributes:
        noise: of its coefficient, times the holders who answer.
        gain: what it brings, known exactly, if it brings anything; infinite: it must be asked.
        chance: that it brings anything.
        asked: holders who answered already.
    """

    noise: float
    gain: float
    chance: float = 1.0
    asked: int = 0

    def holders(self, price: float) -> float:
        """Count the holders who bring more than `price` each; those who answered already stay.

        With n holders chance * gain v / (gain + v) is lost, v = noise / n: this is where its slope is -price.
        """
        return max(self.asked, math.sqrt(self.chance * self.noise / price) - self.noise / self.gain)


def count_first_round(n: int, epsilon: float) -> int:
    """Return the holders of round 0, a tenth, of few up to a quarter, as R follows from a law that must be good."""
    return max(1, round(max(_ROUND_0 * n, min(_MOST_OF_ROUND_0 * n, _ENOUGH / epsilon**2))))


def split_features(protects: NDArray[np.bool_]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The features that at least half of the holders show, and the rest."""
    is_line = (~protects).mean(axis=0) >= 0.5
    return tuple(np.flatnonzero(is_line).tolist()), tuple(np.flatnonzero(~is_line).tolist())


def allocate(
    protects: NDArray[np.bool_], left: int, *, spread: float, report: float, ask_private: str = "auto"
) -> Allocation:
    """Decide what is asked of whom, as far as it can be said before bins are known.

    Args:
        protects: bool [n, d].
        left: holders who were not asked yet, at least 1.
        spread: the label's variance.
        report: mean square of one report of the label.
        ask_private: "auto" by what they cost and may bring, "always" or "never".
    """
    n, d = protects.shape
    line, private = split_features(protects)
    n_shown = (~protects).sum(axis=0)
    unknown = tuple(j for j in private if n_shown[j] < SHOWN_ENOUGH)
    n_bins = max(1, int(FEATURE_BINS * n) // len(private)) if unknown else 0
    rest = left - n_bins * len(unknown)
    shapes: tuple[str, ...] = ()
    for k in range(1, len(SHAPES) + 1):
        tried = [(shape, EXPECTED_SQUARE) for shape in SHAPES[:k] for _ in private]
        if ask_private == "never" or not private or rest <= len(tried):
            break
        must = ask_private == "always" and k == 1
        stakes = [
            Stake(noise=report / square, gain=math.inf if must else expected_gain(shape, spread, d))
            for shape, square in tried
        ]
        if not must and not all(find_affordable(stakes, rest, n_line=len(line), report=report)):
            break
        shapes = SHAPES[:k]
    binned = unknown if shapes else ()
    return Allocation(
        line=line,
        private=private,
        shapes=shapes,
        binned=binned,
        n_bins=n_bins if binned else 0,
        left=rest if binned else left,
    )


def expected_gain(shape: str, spread: float, d: int) -> float:
    """Mean squared error that a contrast of this shape is expected to take off, of d features."""
    return EXPECTED[shape] * spread / d


def find_affordable(stakes: Sequence[Stake], left: int, *, n_line: int, report: float) -> list[bool]:
    """Find the contrasts with enough holders for their first part to tell anything.

    Args:
        stakes: of all contrasts that may be asked.
        left: holders of label and contrasts.
        n_line: features of the surface.
        report: mean square of one report of the label.
    """
    _, first = first_allocation(stakes, left, n_line=n_line, report=report)
    return [
        size >= max(FEWEST, stake.noise / (_MOST_NOISE * stake.gain))
        for stake, size in zip(stakes, first, strict=True)
    ]


def first_allocation(
    stakes: Sequence[Stake], left: int, *, n_line: int, report: float
) -> tuple[int, list[int]]:
    """Return the holders whom the label and each contrast begin with. The label has its part if all contrasts help, and
    each contrast a share of its part. Arguments as `divide_holders`.
    """
    n_label, sizes = divide_holders(stakes, left, n_line=n_line, report=report)
    return n_label, size_first_parts(sizes, left)


def size_first_parts(sizes: Sequence[int], left: int) -> list[int]:
    """Of the holders of each contrast, how many are asked before it is decided on the rest; at least 1.

    Half of them, and of all that are `left` no more than a quarter: the more contrasts, the fewer each.
    """
    most = _MOST_OF_FIRST_PARTS * left / max(len(sizes), 1)
    return [max(1, int(min(_FIRST_PART * size, most))) for size in sizes]


def count_further(sizes: Sequence[int], first: Sequence[int], *, least: int) -> list[int]:
    """Return the holders of each contrast who are asked after its first part, either none or at least `least`."""
    more = [size - asked for size, asked in zip(sizes, first, strict=True)]
    return [size if size >= least else 0 for size in more]


def divide_holders(
    stakes: Sequence[Stake], left: int, *, n_line: int, report: float, asked: int = 0
) -> tuple[int, tuple[int, ...]]:
    """Return the holders of the label and of each contrast, past answers included and `left` in all, such that one more
    holder brings as much in any place.

    Args:
        stakes: of the contrasts.
        left: holders of label and contrasts.
        n_line: features of the surface.
        report: mean square of one report of the label.
        asked: holders who answered the label's question already.
    """
    noise = _SURFACE * (n_line + 1) * report

    def sizes(price: float) -> tuple[float, list[float]]:
        return max(asked, math.sqrt(noise / price)), [stake.holders(price) for stake in stakes]

    low, high = 0.0, math.inf
    price = noise / left**2
    for _ in range(_BISECTIONS):
        label, others = sizes(price)
        if label + sum(others) > left:
            low = price
            price = price * 2 if high == math.inf else (low + high) / 2
        else:
            high = price
            price = (low + high) / 2
    _, others = sizes(high)
    whole = tuple(int(size) for size in others)
    return left - sum(whole), whole


@dataclass(frozen=True, kw_only=True)
class ChosenContrasts:
    """The contrasts that are asked about.

    Attributes:
        contrasts: that are asked about, in order.
        stakes: what is at stake in each.
        same: private features in which nobody differs, as far as is known.
    """

    contrasts: tuple[Contrast, ...]
    stakes: tuple[Stake, ...]
    same: frozenset[int]


def choose_contrasts(
    allocation: Allocation,
    shares: Mapping[int, tuple[float, ...]],
    d: int,
    *,
    sd: float,
    report: Callable[[float], float],
    must: bool,
) -> ChosenContrasts:
    """Those that so many holders are enough for.

    Args:
        allocation: who is left.
        shares: of people in the bins of each private feature.
        d: how many features there are.
        sd: the label's.
        report: mean square of a report of a number within R and so much more, in the label's unit.
        must: ask whatever it costs.
    """
    if not allocation.shapes:
        return ChosenContrasts(contrasts=(), stakes=(), same=frozenset())
    made = [
        Contrast(feature, shape, shares[feature])
        for shape in allocation.shapes
        for feature in allocation.private
    ]
    varied = [contrast for contrast in made if contrast.square > 0]
    same = frozenset(allocation.private) - {contrast.feature for contrast in varied}
    stakes = []
    for contrast in varied:
        noise = report(extra_reach(contrast) * sd) / contrast.square
        hope = math.inf if must else expected_gain(contrast.shape, sd**2, d)
        stakes.append(Stake(noise=noise, gain=hope, asked=int(must)))
    if must:
        n_kept = max(allocation.left - 1, 0)
        return ChosenContrasts(contrasts=tuple(varied[:n_kept]), stakes=tuple(stakes[:n_kept]), same=same)
    are = find_affordable(stakes, allocation.left, n_line=len(allocation.line), report=report(0.0))
    kept = [pair for pair, is_worth in zip(zip(varied, stakes, strict=True), are, strict=True) if is_worth]
    return ChosenContrasts(
        contrasts=tuple(contrast for contrast, _ in kept), stakes=tuple(stake for _, stake in kept), same=same
    )


def extra_reach(contrast: Contrast) -> float:
    """Return how much farther an effect moves labels where few people have its values than where ranks have no ties, in the
    label's standard deviations, if it explains as much.
    """
    return max(
        0.0, math.sqrt(EXPECTED["rise"] / contrast.square) - math.sqrt(EXPECTED["rise"] / EXPECTED_SQUARE)
    )
