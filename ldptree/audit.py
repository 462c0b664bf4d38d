"""Audits: is the epsilon that a mechanism claims true? Exactly, where its reports can be gone through, and from reports alone.

From reports (Jagielski, Ullman, Oprea 2020, on one report instead of a model): many are drawn for each of two inputs. On
half of them the event is chosen that tells the inputs apart best: single outputs, values supported, bits, numbers, or the
grid of floating-point numbers that they lie on (Mironov 2012). On the other half ln P(event | x) / P(event | x') is
bounded from below (Clopper, Pearson 1934), with the error shared by all events, pairs and mechanisms audited together
(Bonferroni). A bound above the claim refutes it; a bound below proves nothing.
What a dishonest holder can move is stated by the mechanism itself (`influence`). Tables and pictures are in `flows.audit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.errors import ConfigError
from ldptree.mechanisms.discrete_laplace import UNIT, DiscreteLaplace
from ldptree.mechanisms.joint import Joint
from ldptree.oracles import Influence, Words
from ldptree.oracles.coins import log_up

MOST_PROBABILITIES = 2**16
"""Probabilities that an enumeration goes through at most: a second or two."""
MOST_CELLS = 2**16
CONFIDENCE = 0.99
LEAST_REPORTS = 1000
MOST_REPORTS = 10**6
# an output view looks at no more different outputs than this, and at no wider ones than a word
_MOST_OUTPUTS = 4096
_WORD_BYTES = 8
# bits or numbers looked at together
_COLUMNS = 4
# binary digits of floating-point numbers that are told apart: the lowest is 2^-64 or below, the highest 2^-40 or above
_LOWEST, _HIGHEST = -64, -40
# what is added to both counts when events are ordered: rare outputs must not look telling
_SHRINK = 10.0


class Audited(Protocol):
    """What can be audited. A `law` and `law_size` (`Oracle`) add the exact part, `influence` the dishonest holders."""

    @property
    def k(self) -> int:
        """How many inputs there are."""

    @property
    def epsilon(self) -> float:
        """The claim."""

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[Any]:
        """One report a holder, numbers [n] or [n, m]."""


@dataclass(frozen=True)
class Exact:
    """The worst likelihood ratio of all outputs and inputs.

    Attributes:
        epsilon: its logarithm, rounded up.
        claim: what the mechanism of this size claims.
        n_cells: the size that was gone through.
        most_cells: the largest size that can be.
        how: "every output" or "sensitivity".
    """

    epsilon: float
    claim: float
    n_cells: int
    most_cells: int
    how: str


@dataclass(frozen=True)
class Bound:
    """An event seen in reports of two inputs.

    Attributes:
        kind: what the event looks at.
        event: the event, in words.
        inputs: x and x'.
        seen: in how many reports of x, and of x'.
        n_reports: of each.
        epsilon: ln P(event | x) / P(event | x') is at least this.
    """

    kind: str
    event: str
    inputs: tuple[int, int]
    seen: tuple[int, int]
    n_reports: int
    epsilon: float


@dataclass(frozen=True)
class Audit:
    """What was found about one mechanism.

    Attributes:
        name: as it was given.
        k: number of inputs.
        claim: the epsilon it claims.
        exact: None where it cannot be had.
        bounds: the largest of each kind of event, the best first.
        reach: no bound from so many reports can be larger than this.
        influence: what dishonest holders can do; None where the mechanism does not say.
    """

    name: str
    k: int
    claim: float
    exact: Exact | None
    bounds: tuple[Bound, ...]
    reach: float
    influence: Influence | None

    @property
    def empirical(self) -> float:
        """The largest bound from reports."""
        return max((bound.epsilon for bound in self.bounds), default=0.0)

    @property
    def is_beaten(self) -> bool:
        """Whether the claim is false: for certain where it is exact, else with the audit's confidence."""
        return self.empirical > self.claim or (
            self.exact is not None and self.exact.epsilon > self.exact.claim
        )


def audit(
    subjects: Mapping[str, Audited],
    words: Words,
    *,
    n_reports: int,
    exact: Mapping[str, Exact | None] | None = None,
    n_holders: int = 10_000,
) -> tuple[Audit, ...]:
    """Audit mechanisms together: all bounds hold at once with probability `CONFIDENCE`.

    Args:
        subjects: mechanisms by name.
        words: the coins of their reports.
        n_reports: drawn for each input looked at, half of them to choose events (`reports_for`).
        exact: from `enumerated`, by name.
        n_holders: for the influence of one per cent of them.

    Raises:
        ConfigError: fewer than 1,000 reports.
    """
    if n_reports < LEAST_REPORTS:
        raise ConfigError(f"an audit with {n_reports} reports; it needs at least {LEAST_REPORTS:,}")
    seen = {name: list(_seen(subject, words, n_reports)) for name, subject in subjects.items()}
    # each bound has two ends
    alpha = (1 - CONFIDENCE) / (2 * max(1, sum(map(len, seen.values()))))
    n = n_reports - n_reports // 2
    audits = []
    for name, subject in subjects.items():
        best: dict[str, Bound] = {}
        for kind, event, inputs, counts in seen[name]:
            epsilon = _log_ratio(counts[0], counts[1], n, alpha).item()
            if kind not in best or epsilon > best[kind].epsilon:
                best[kind] = Bound(kind, event, inputs, counts, n, epsilon)
        audits.append(
            Audit(
                name,
                subject.k,
                subject.epsilon,
                (exact or {}).get(name),
                tuple(sorted(best.values(), key=lambda bound: -bound.epsilon)),
                _log_ratio(n, 0, n, alpha).item(),
                subject.influence(n_holders) if hasattr(subject, "influence") else None,
            )
        )
    return tuple(audits)


def reports_for(epsilon: float) -> int:
    """How many reports of an input can refute a claim of epsilon with room to spare; 100,000 to a million.

    An event never seen in n reports still has a probability of about 14 / n, so no bound exceeds ln(n / 14).
    """
    return int(min(max(100_000, 30 * math.exp(min(epsilon, 100) + 1.5)), MOST_REPORTS))


def enumerated(make: Callable[[int], Audited], n_cells: int) -> Exact | None:
    """The worst likelihood ratio of the mechanism make(n), n = n_cells or the largest that can be gone through.

    None where outputs cannot be gone through: floating-point noise, or no law.
    """
    if _effort(make(1)) is None:
        return None
    fits, too_many = 1, 2
    while too_many <= MOST_CELLS and (_effort(make(too_many)) or 0) <= MOST_PROBABILITIES:
        fits, too_many = too_many, 2 * too_many
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if (_effort(make(middle)) or 0) <= MOST_PROBABILITIES:
            fits = middle
        else:
            too_many = middle
    size = min(n_cells, fits)
    subject = make(size)
    inner = _inner(subject)
    if isinstance(inner, DiscreteLaplace):
        return Exact(_by_sensitivity(inner), subject.epsilon, size, fits, "sensitivity")
    return Exact(_by_enumeration(inner), subject.epsilon, size, fits, "every output")


def _inner(subject: Audited) -> Any:
    """A joint report is its oracle's."""
    return subject.oracle if isinstance(subject, Joint) else subject


def _effort(subject: Audited) -> int | None:
    """How many probabilities an enumeration goes through; None where there can be none."""
    match _inner(subject):
        case DiscreteLaplace() as noise:
            return int(noise.k**2)
        case inner:
            return int(inner.law_size * inner.k) if hasattr(inner, "law") else None


def _by_enumeration(subject: Any) -> float:
    """The logarithm of the largest P(output | x) / P(output | x'), rounded up; in rational numbers."""
    highest: dict[bytes, Fraction] = subject.law(0)
    lowest = dict(highest)
    for value in range(1, subject.k):
        law = subject.law(value)
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
    exact = Fraction(furthest * noise.rate, UNIT)
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _log_ratio(a: ArrayLike, b: ArrayLike, n: int, alpha: float) -> NDArray[np.float64]:
    """ln of Clopper and Pearson's lower end of a in n over their upper end of b in n, each wrong with chance alpha.

    At least 0, which is always true for the better of an event and its complement.
    """
    from scipy.special import betainccinv, betaincinv

    a, b = np.asarray(a), np.asarray(b)
    low = np.where(a > 0, betaincinv(np.maximum(a, 1), n - np.maximum(a, 1) + 1, alpha), 0.0)
    high = np.where(b < n, betainccinv(b + 1, np.maximum(n - b, 1), alpha), 1.0)
    return np.asarray(np.log(np.maximum(low / high, 1.0)), dtype=np.float64)


@dataclass(frozen=True)
class _Sample:
    """Reports of one input: half to choose an event by, half to judge it by."""

    choosing: NDArray[Any]
    judging: NDArray[Any]

    @cached_property
    def bit_means(self) -> NDArray[np.float64]:
        """How often each bit of the bytes of a report is set."""
        raw = _bytes(self.choosing)
        counts = np.zeros(8 * raw.shape[1])
        step = max(1, 2**20 // raw.shape[1])
        for start in range(0, raw.shape[0], step):
            counts += np.unpackbits(raw[start : start + step], axis=1, bitorder="little").sum(axis=0)
        means: NDArray[np.float64] = counts / raw.shape[0]
        return means


@dataclass(frozen=True)
class _View:
    """One way to look at reports: a symbol each, below size."""

    kind: str
    size: int
    symbols: Callable[[NDArray[Any]], NDArray[np.int64]]
    words: Callable[[NDArray[np.int64]], str]


_Seen = tuple[str, str, tuple[int, int], tuple[int, int]]


def _seen(subject: Audited, words: Words, n_reports: int) -> Iterator[_Seen]:
    """For each pair of inputs and kind of event: the best one by half of the reports, counted in the other half."""
    inputs = range(subject.k) if subject.k <= 5 else (0, 1, 2, subject.k - 2, subject.k - 1)
    samples = {value: _sample(subject, value, words, n_reports) for value in inputs}
    for x in inputs:
        for other in inputs:
            if x == other:
                continue
            ours, theirs = samples[x], samples[other]
            best: dict[str, tuple[float, _View, NDArray[np.int64]]] = {}
            for view in _views(_inner(subject), (x, other), ours, theirs):
                chosen, score = _choose(view, ours.choosing, theirs.choosing)
                if view.kind not in best or score > best[view.kind][0]:
                    best[view.kind] = (score, view, chosen)
            for kind, (_, view, chosen) in best.items():
                counts = [
                    int(np.isin(view.symbols(half), chosen).sum()) for half in (ours.judging, theirs.judging)
                ]
                yield kind, view.words(chosen), (x, other), (counts[0], counts[1])


def _sample(subject: Audited, value: int, words: Words, n_reports: int) -> _Sample:
    reports = np.asarray(subject.randomize(np.full(n_reports, value, dtype=np.int64), words))
    return _Sample(reports[: n_reports // 2], reports[n_reports // 2 :])


def _choose(view: _View, ours: NDArray[Any], theirs: NDArray[Any]) -> tuple[NDArray[np.int64], float]:
    """The symbols that together bound epsilon best: those whose ratio is above a threshold."""
    a, b = (np.bincount(view.symbols(half), minlength=view.size) for half in (ours, theirs))
    order = np.argsort(-(a + _SHRINK) / (b + _SHRINK), kind="stable")
    scores = _log_ratio(a[order].cumsum(), b[order].cumsum(), len(ours), 1e-5)
    last = int(np.argmax(scores))
    return order[: last + 1], float(scores[last])


def _views(subject: Any, pair: tuple[int, int], ours: _Sample, theirs: _Sample) -> Iterator[_View]:
    """Every way to look at these reports that may tell the two inputs apart."""
    dtype = ours.choosing.dtype
    if hasattr(subject, "supports"):
        yield _supports_view(subject, pair)
    yield from _outputs_view(ours, theirs)
    if dtype.kind == "u":
        yield _bits_view(ours, theirs)
    else:
        columns = _telling(_numbers(ours.choosing).mean(axis=0), _numbers(theirs.choosing).mean(axis=0))
        yield _numbers_view(columns, ours, theirs)
        if dtype.kind == "f":
            yield from map(_grid_view, columns.tolist())


def _telling(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.int64]:
    """The few columns whose means differ most."""
    return np.sort(np.argsort(-np.abs(ours - theirs), kind="stable")[:_COLUMNS])


def _numbers(reports: NDArray[Any]) -> NDArray[Any]:
    """[n, m], also where a report is one number."""
    return reports.reshape(reports.shape[0], -1)


def _bytes(reports: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(reports).view(np.uint8).reshape(reports.shape[0], -1)


def _supports_view(subject: Any, pair: tuple[int, int]) -> _View:
    def symbols(reports: NDArray[Any]) -> NDArray[np.int64]:
        found = np.empty(len(reports), dtype=np.int64)
        step = max(1, 2**22 // subject.k)
        for start in range(0, len(reports), step):
            both = subject.supports(reports[start : start + step])[:, pair]
            found[start : start + step] = both @ np.array([2, 1])
        return found

    names = ("neither", "x' and not x", "both", "x and not x'")
    order = (0, 1, 3, 2)
    return _View("supports", 4, symbols, lambda chosen: " or ".join(names[order[s]] for s in sorted(chosen)))


def _outputs_view(ours: _Sample, theirs: _Sample) -> Iterator[_View]:
    """Whole reports, where they are narrow and few."""
    if _bytes(ours.choosing[:1]).size > _WORD_BYTES:
        return

    def words_of(reports: NDArray[Any]) -> NDArray[np.uint64]:
        raw = _bytes(reports)
        padded = np.zeros((raw.shape[0], _WORD_BYTES), dtype=np.uint8)
        padded[:, : raw.shape[1]] = raw
        return padded.view(np.uint64)[:, 0]

    known = np.unique(words_of(np.concatenate([ours.choosing, theirs.choosing])))
    if known.size > _MOST_OUTPUTS:
        return

    def symbols(reports: NDArray[Any]) -> NDArray[np.int64]:
        raw = words_of(reports)
        place = np.searchsorted(known, raw)
        is_known = known[np.minimum(place, known.size - 1)] == raw
        return np.where(is_known, place, known.size).astype(np.int64)

    yield _View(
        "outputs", known.size + 1, symbols, lambda chosen: f"{len(chosen)} of {known.size} outputs seen"
    )


def _bits_view(ours: _Sample, theirs: _Sample) -> _View:
    columns = _telling(ours.bit_means, theirs.bit_means)

    def symbols(reports: NDArray[Any]) -> NDArray[np.int64]:
        raw = _bytes(reports)
        bits = (raw[:, columns >> 3] >> (columns & 7).astype(np.uint8)) & 1
        return bits.astype(np.int64) @ (1 << np.arange(columns.size))

    size = 1 << columns.size
    places = ", ".join(map(str, columns))
    return _View("bits", size, symbols, lambda chosen: f"{len(chosen)} of {size} patterns of bits {places}")


def _numbers_view(columns: NDArray[np.int64], ours: _Sample, theirs: _Sample) -> _View:
    """Which third each number lies in."""
    pooled = np.concatenate([_numbers(half)[:, columns] for half in (ours.choosing, theirs.choosing)])
    edges = np.quantile(pooled, [1 / 3, 2 / 3], axis=0, method="lower")

    def symbols(reports: NDArray[Any]) -> NDArray[np.int64]:
        thirds = (_numbers(reports)[:, columns, None] > edges.T).sum(axis=2)
        return np.asarray(thirds @ (3 ** np.arange(columns.size)))

    size = 3**columns.size
    places = ", ".join(map(str, columns))
    return _View(
        "numbers", size, symbols, lambda chosen: f"{len(chosen)} of {size} regions of numbers {places}"
    )


def _grid_view(column: int) -> _View:
    """The lowest binary digit of a number: 1 + noise has lost the digits that noise alone has."""

    def symbols(reports: NDArray[Any]) -> NDArray[np.int64]:
        mantissa, exponent = np.frexp(_numbers(reports)[:, column].astype(np.float64))
        digits = np.ldexp(mantissa, 53).astype(np.int64)
        trailing = np.frexp((digits & -digits).astype(np.float64))[1] - 1
        lowest = np.where(digits == 0, _HIGHEST, exponent - 53 + trailing)
        return np.clip(lowest, _LOWEST, _HIGHEST).astype(np.int64) - _LOWEST

    def words(chosen: NDArray[np.int64]) -> str:
        digits = (chosen + _LOWEST).tolist()
        return f"number {column}'s lowest binary digit is 2^{min(digits)} to 2^{max(digits)}"

    return _View("floating-point grid", _HIGHEST - _LOWEST + 1, symbols, words)
