"""The empirical half of an audit. Finds a lower bound on epsilon from reports, and the events to choose it from.

From reports (Jagielski, Ullman, Oprea 2020, on one report instead of a model): many are drawn for each of two inputs. On
half of them the event is chosen that tells the inputs apart best: single outputs, values supported, bits, numbers, or the
grid of floating-point numbers that they lie on (Mironov 2012). On the other half ln P(event | x) / P(event | x') is
bounded from below (Clopper, Pearson 1934), with the error shared by all events, pairs and mechanisms audited together
(Bonferroni). A bound above the claim refutes it; a bound below proves nothing. What a dishonest holder can move is stated by
the mechanism itself (`poisoning_bound`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from ldptree.audit.exact import Audited, Exact, inputs_of
from ldptree.coins import Words
from ldptree.errors import ConfigError
from ldptree.mechanisms.mechanism import PoisoningBound

CONFIDENCE = 0.99
LEAST_REPORTS = 1000
MOST_REPORTS = 10**6
# inputs that are all audited; of more, so many, five of which are compared pair by pair
_ALL_INPUTS = 65
_SOME_INPUTS = 32
# reports of one input: their bytes, and the supports that they are looked through for
_SAMPLE_BYTES = 2**25
_SAMPLE_SUPPORTS = 2**27
# what is added to both counts when events are ordered: rare outputs must not look telling
_SHRINK = 10.0
# an output view looks at no more different outputs than this, and at no wider ones than a word
_MOST_OUTPUTS = 4096
_WORD_BYTES = 8
# bits or numbers looked at together
_COLUMNS = 4
# binary digits of floating-point numbers that are told apart: the lowest is 2^-64 or below, the highest 2^-40 or above
_LOWEST, _HIGHEST = -64, -40


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
    """The audit of one mechanism.

    Attributes:
        name: as it was given.
        k: number of inputs.
        claim: the epsilon that was asked for.
        stated: the epsilon that it states.
        n_reports: drawn of each of the inputs that are compared pair by pair.
        exact: None where it cannot be had.
        bounds: the largest of each kind of event, the best first.
        reach: no bound from so many reports can be larger than this.
        influence: what dishonest holders can do; None where the mechanism does not say.
    """

    name: str
    k: int
    claim: float
    stated: float
    n_reports: int
    exact: Exact | None
    bounds: tuple[Bound, ...]
    reach: float
    influence: PoisoningBound | None

    @property
    def empirical(self) -> float:
        """The largest bound from reports."""
        return max((bound.epsilon for bound in self.bounds), default=0.0)

    @property
    def faults(self) -> tuple[str, ...]:
        """Say why the claim is false, for certain if it is exact or stated, else with the audit's confidence."""
        faults = []
        if self.stated > self.claim:
            faults.append(f"it states epsilon {self.stated:.6g}, the claim is {self.claim:.6g}")
        if self.exact is not None:
            if self.exact.epsilon > min(self.claim, self.exact.claim):
                faults.append(f"its law has a likelihood ratio of e^{self.exact.epsilon:.6g}")
            if self.exact.misfit is not None:
                faults.append(f"its reports of value {self.exact.misfit.value} do not follow its law")
        if self.empirical > min(self.claim, self.stated):
            faults.append(f"its reports prove epsilon {self.empirical:.3f} at least")
        return tuple(faults)

    @property
    def is_beaten(self) -> bool:
        """True if the claim is false."""
        return bool(self.faults)


def audit(
    subjects: Mapping[str, Audited],
    words: Words,
    *,
    n_reports: int,
    claim: float | None = None,
    exact: Mapping[str, Exact | None] | None = None,
    n_holders: int = 10_000,
) -> tuple[Audit, ...]:
    """Audit mechanisms together, so that all bounds hold at once with probability `CONFIDENCE`.

    Args:
        subjects: mechanisms by name.
        words: the coins of their reports.
        n_reports: drawn for each of five inputs, half of them to choose events (`reports_for`); a quarter as many for
            further inputs, and fewer where reports are wide.
        claim: what was asked for; without it, what each mechanism states.
        exact: from `enumerated`, by name.
        n_holders: for the influence of one per cent of them.

    Raises:
        ConfigError: fewer than 1,000 reports.
    """
    if n_reports < LEAST_REPORTS:
        raise ConfigError(f"an audit with {n_reports} reports; it needs at least {LEAST_REPORTS:,}")
    sizes, seen = {}, {}
    for name, subject in subjects.items():
        sizes[name] = _affordable(subject, words, n_reports)
        seen[name] = list(_seen(subject, words, sizes[name]))
    # each bound has two ends
    alpha = (1 - CONFIDENCE) / (2 * max(1, sum(map(len, seen.values()))))
    audits = []
    for name, subject in subjects.items():
        best: dict[str, Bound] = {}
        for kind, event, inputs, counts, n in seen[name]:
            epsilon = _log_ratio(counts[0], counts[1], n, alpha).item()
            if kind not in best or epsilon > best[kind].epsilon:
                best[kind] = Bound(kind, event, inputs, counts, n, epsilon)
        n = sizes[name] - sizes[name] // 2
        audits.append(
            Audit(
                name,
                inputs_of(subject),
                subject.epsilon if claim is None else claim,
                subject.epsilon,
                sizes[name],
                (exact or {}).get(name),
                tuple(sorted(best.values(), key=lambda bound: -bound.epsilon)),
                _log_ratio(n, 0, n, alpha).item(),
                subject.poisoning_bound(n_holders) if hasattr(subject, "poisoning_bound") else None,
            )
        )
    return tuple(audits)


def reports_for(epsilon: float) -> int:
    """Return how many reports of an input can refute a claim of epsilon with room to spare; 100,000 to a million.

    An event never seen in n reports still has a probability of about 14 / n, so no bound exceeds ln(n / 14).
    """
    return int(min(max(100_000, 30 * math.exp(min(epsilon, 100) + 1.5)), MOST_REPORTS))


def _log_ratio(a: ArrayLike, b: ArrayLike, n: int, alpha: float) -> NDArray[np.float64]:
    """ln of Clopper and Pearson's lower end of a in n over their upper end of b in n, each wrong with chance alpha.

    At least 0, which is always true for the better of an event and its complement.
    """
    a, b = np.asarray(a), np.asarray(b)
    at_least_one, not_all = np.maximum(a, 1), np.maximum(n - b, 1)
    low = np.where(a > 0, np.log(betaincinv(at_least_one, n - at_least_one + 1, alpha)), -np.inf)
    high = np.where(b < n, np.log1p(-betaincinv(not_all, n - not_all + 1, alpha)), 0.0)
    return np.asarray(np.maximum(low - high, 0.0))


_Seen = tuple[str, str, tuple[int, int], tuple[int, int], int]


def _affordable(subject: Audited, words: Words, n_reports: int) -> int:
    """Return how many reports of one input are drawn, fewer if they are wide."""
    report = np.asarray(subject.randomize(np.zeros(1, dtype=np.int64), words))
    most = min(_SAMPLE_BYTES // max(report.nbytes, 8), _SAMPLE_SUPPORTS // inputs_of(subject))
    return min(n_reports, max(most, LEAST_REPORTS))


def _inputs(k: int, words: Words) -> tuple[list[int], list[int]]:
    """Return inputs to compare pair by pair, and further inputs, all of them if they are few and else random ones."""
    main = sorted({0, min(1, k - 1), min(2, k - 1), max(k - 2, 0), k - 1})
    rest = range(3, k - 2)
    if k <= _ALL_INPUTS:
        return main, list(rest)
    n_drawn = _SOME_INPUTS - len(main)
    drawn = dict.fromkeys((words.below(len(rest), 2 * n_drawn) + np.uint64(3)).tolist())
    return main, sorted(list(drawn)[:n_drawn])


def _seen(subject: Audited, words: Words, n_reports: int) -> Iterator[_Seen]:
    """Yield the best event for each pair of inputs and kind, chosen on half of the reports, counted on the other.

    Further inputs are compared with input 0 and with the one before.
    """
    main, further = _inputs(inputs_of(subject), words)
    inputs = [*main, *further]
    samples = {value: _sample(subject, value, inputs, words, n_reports) for value in main}
    for pair in permutations(main, 2):
        yield from _judged(pair, samples)
    few = min(n_reports, max(LEAST_REPORTS, n_reports // 4))
    half = len(samples[0].choosing.reports)
    zero = Sample(samples[0].choosing.first(min(half, few // 2)), samples[0].judging.first(few - few // 2))
    nearby = {0: zero}
    for value in further:
        nearby[value] = _sample(subject, value, inputs, words, few)
        for other in nearby:
            if other != value:
                yield from _judged((value, other), nearby)
                yield from _judged((other, value), nearby)
        nearby = {0: zero, value: nearby[value]}


def _judged(pair: tuple[int, int], samples: Mapping[int, Sample]) -> Iterator[_Seen]:
    """The best event of each kind for this pair."""
    ours, theirs = samples[pair[0]], samples[pair[1]]
    best: dict[str, tuple[float, View, NDArray[np.int64]]] = {}
    for view in views(pair, ours, theirs):
        chosen, score = _choose(view, ours.choosing, theirs.choosing)
        if view.kind not in best or score > best[view.kind][0]:
            best[view.kind] = (score, view, chosen)
    for kind, (_, view, chosen) in best.items():
        counts = [int(np.isin(view.symbols(half), chosen).sum()) for half in (ours.judging, theirs.judging)]
        yield kind, view.words(chosen), pair, (counts[0], counts[1]), len(ours.judging.reports)


def _sample(subject: Audited, value: int, inputs: list[int], words: Words, n_reports: int) -> Sample:
    reports = np.asarray(subject.randomize(np.full(n_reports, value, dtype=np.int64), words))
    supported: dict[int, NDArray[np.bool_]] = {}
    if hasattr(subject, "supports"):
        masks = np.empty((len(inputs), n_reports), dtype=bool)
        step = max(1, 2**22 // subject.k)
        for start in range(0, n_reports, step):
            masks[:, start : start + step] = subject.supports(reports[start : start + step])[:, inputs].T
        supported = dict(zip(inputs, masks, strict=True))
    both = Half(reports, supported)
    middle = n_reports // 2
    rest = {value: mask[middle:] for value, mask in supported.items()}
    return Sample(both.first(middle), Half(reports[middle:], rest))


def _choose(view: View, ours: Half, theirs: Half) -> tuple[NDArray[np.int64], float]:
    """Choose the symbols that together bound epsilon best, those whose ratio is above a threshold."""
    a, b = (np.bincount(view.symbols(half), minlength=view.size) for half in (ours, theirs))
    order = np.argsort(-(a + _SHRINK) / (b + _SHRINK), kind="stable")
    scores = _log_ratio(a[order].cumsum(), b[order].cumsum(), len(ours.reports), 1e-5)
    last = int(np.argmax(scores))
    return order[: last + 1], float(scores[last])


@dataclass(frozen=True)
class Half:
    """Reports, and which of them support each of the inputs looked at (nothing where a report supports no value)."""

    reports: NDArray[Any]
    supported: Mapping[int, NDArray[np.bool_]]

    def first(self, n: int) -> Half:
        """The first n."""
        return Half(self.reports[:n], {value: mask[:n] for value, mask in self.supported.items()})


@dataclass(frozen=True)
class Sample:
    """Reports of one input, half to choose an event by, half to judge it by."""

    choosing: Half
    judging: Half

    @cached_property
    def bit_means(self) -> NDArray[np.float64]:
        """Return how often each bit of the bytes of a report is set."""
        raw = _bytes(self.choosing.reports)
        counts = np.zeros(8 * raw.shape[1])
        step = max(1, 2**20 // raw.shape[1])
        for start in range(0, raw.shape[0], step):
            counts += np.unpackbits(raw[start : start + step], axis=1, bitorder="little").sum(axis=0)
        means: NDArray[np.float64] = counts / raw.shape[0]
        return means

    @cached_property
    def number_means(self) -> NDArray[np.float64]:
        """The mean of each number of a report."""
        means: NDArray[np.float64] = _numbers(self.choosing.reports).mean(axis=0)
        return means


@dataclass(frozen=True)
class View:
    """A way to look at reports, which gives each a symbol below `size`."""

    kind: str
    size: int
    symbols: Callable[[Half], NDArray[np.int64]]
    words: Callable[[NDArray[np.int64]], str]


def views(pair: tuple[int, int], ours: Sample, theirs: Sample) -> Iterator[View]:
    """Every way to look at these reports that may tell the two inputs apart."""
    dtype = ours.choosing.reports.dtype
    if ours.choosing.supported:
        yield _supports_view(pair)
    yield from _outputs_view(ours, theirs)
    if dtype.kind == "u":
        yield _bits_view(ours, theirs)
    else:
        columns = _telling(ours.number_means, theirs.number_means)
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


def _supports_view(pair: tuple[int, int]) -> View:
    def symbols(half: Half) -> NDArray[np.int64]:
        ours, theirs = (half.supported[value].astype(np.int64) for value in pair)
        return 2 * ours + theirs

    names = ("neither", "x' and not x", "both", "x and not x'")
    order = (0, 1, 3, 2)
    return View("supports", 4, symbols, lambda chosen: " or ".join(names[order[s]] for s in sorted(chosen)))


def _outputs_view(ours: Sample, theirs: Sample) -> Iterator[View]:
    """Whole reports, where they are narrow and few."""
    if _bytes(ours.choosing.reports[:1]).size > _WORD_BYTES:
        return

    def words_of(reports: NDArray[Any]) -> NDArray[np.uint64]:
        raw = _bytes(reports)
        padded = np.zeros((raw.shape[0], _WORD_BYTES), dtype=np.uint8)
        padded[:, : raw.shape[1]] = raw
        return padded.view(np.uint64)[:, 0]

    known = np.unique(words_of(np.concatenate([ours.choosing.reports, theirs.choosing.reports])))
    if known.size > _MOST_OUTPUTS:
        return

    def symbols(half: Half) -> NDArray[np.int64]:
        raw = words_of(half.reports)
        place = np.searchsorted(known, raw)
        is_known = known[np.minimum(place, known.size - 1)] == raw
        return np.where(is_known, place, known.size).astype(np.int64)

    yield View(
        "outputs", known.size + 1, symbols, lambda chosen: f"{len(chosen)} of {known.size} outputs seen"
    )


def _bits_view(ours: Sample, theirs: Sample) -> View:
    columns = _telling(ours.bit_means, theirs.bit_means)

    def symbols(half: Half) -> NDArray[np.int64]:
        raw = _bytes(half.reports)
        bits = (raw[:, columns >> 3] >> (columns & 7).astype(np.uint8)) & 1
        return bits.astype(np.int64) @ (1 << np.arange(columns.size))

    size = 1 << columns.size
    places = ", ".join(map(str, columns))
    return View("bits", size, symbols, lambda chosen: f"{len(chosen)} of {size} patterns of bits {places}")


def _numbers_view(columns: NDArray[np.int64], ours: Sample, theirs: Sample) -> View:
    """Return the third that each number lies in."""
    pooled = np.concatenate([_numbers(half.reports)[:, columns] for half in (ours.choosing, theirs.choosing)])
    edges = np.quantile(pooled, [1 / 3, 2 / 3], axis=0, method="lower")

    def symbols(half: Half) -> NDArray[np.int64]:
        thirds = (_numbers(half.reports)[:, columns, None] > edges.T).sum(axis=2)
        return np.asarray(thirds @ (3 ** np.arange(columns.size)))

    size = 3**columns.size
    places = ", ".join(map(str, columns))
    return View(
        "numbers", size, symbols, lambda chosen: f"{len(chosen)} of {size} regions of numbers {places}"
    )


def _grid_view(column: int) -> View:
    """Return a view of a number's lowest binary digit, as 1 + noise has lost the digits that noise alone has."""

    def symbols(half: Half) -> NDArray[np.int64]:
        mantissa, exponent = np.frexp(_numbers(half.reports)[:, column].astype(np.float64))
        digits = np.ldexp(mantissa, 53).astype(np.int64)
        trailing = np.frexp((digits & -digits).astype(np.float64))[1] - 1
        lowest = np.where(digits == 0, _HIGHEST, exponent - 53 + trailing)
        return np.clip(lowest, _LOWEST, _HIGHEST).astype(np.int64) - _LOWEST

    def words(chosen: NDArray[np.int64]) -> str:
        digits = (chosen + _LOWEST).tolist()
        return f"number {column}'s lowest binary digit is 2^{min(digits)} to 2^{max(digits)}"

    return View("floating-point grid", _HIGHEST - _LOWEST + 1, symbols, words)
