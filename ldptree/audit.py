"""Audits: is the epsilon that a mechanism claims true? Exactly, where its reports can be gone through, and from reports alone.

What is gone through is the law that a mechanism states; its reports are drawn by other code, so where there is a law the
reports of every value are held against it (chi-square).
From reports (Jagielski, Ullman, Oprea 2020, on one report instead of a model): many are drawn for each of two inputs. On
half of them the event is chosen that tells the inputs apart best: single outputs, values supported, bits, numbers, or the
grid of floating-point numbers that they lie on (Mironov 2012). On the other half ln P(event | x) / P(event | x') is
bounded from below (Clopper, Pearson 1934), with the error shared by all events, pairs and mechanisms audited together
(Bonferroni). A bound above the claim refutes it; a bound below proves nothing.
What a dishonest holder can move is stated by the mechanism itself (`influence`). Tables and pictures are in `flows.audit`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.errors import ConfigError
from ldptree.mechanisms.discrete_laplace import UNIT, DiscreteLaplace
from ldptree.mechanisms.joint import Joint
from ldptree.oracles import Influence, Words
from ldptree.oracles.coins import log_up
from ldptree.oracles.local_hash import PRIME, Olh

MOST_PROBABILITIES = 2**16
"""Probabilities that an enumeration goes through at most: a second or two."""
MOST_VALUES = 4096
"""Cells times classes that are audited at most."""
CONFIDENCE = 0.99
LAW_ALARM = 1e-4
"""How often an honest mechanism is told that its reports do not follow its law."""
LEAST_REPORTS = 1000
MOST_REPORTS = 10**6
# inputs that are all audited; of more, so many, five of which are compared pair by pair
_ALL_INPUTS = 65
_SOME_INPUTS = 32
# reports of one input: their bytes, and the supports that they are looked through for
_SAMPLE_BYTES = 2**25
_SAMPLE_SUPPORTS = 2**27
# numbers held against a law: of one value, and of all together
_LAW_NUMBERS = 20_000
_ALL_LAW_NUMBERS = 4_000_000
# outputs that are expected less often are put together, so that chi-square is what it should be
_EXPECTED = 50
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
        how: "every output" or "sensitivity".
        misfit: the value whose reports follow the law worst, if any does not.
    """

    epsilon: float
    claim: float
    n_cells: int
    most_cells: int
    how: str
    misfit: Misfit | None = None


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
    influence: Influence | None

    @property
    def empirical(self) -> float:
        """The largest bound from reports."""
        return max((bound.epsilon for bound in self.bounds), default=0.0)

    @property
    def faults(self) -> tuple[str, ...]:
        """In words, why the claim is false: for certain where it is exact or stated, else with the audit's confidence."""
        found = []
        if self.stated > self.claim:
            found.append(f"it states epsilon {self.stated:.6g}, the claim is {self.claim:.6g}")
        if self.exact is not None:
            if self.exact.epsilon > min(self.claim, self.exact.claim):
                found.append(f"its law has a likelihood ratio of e^{self.exact.epsilon:.6g}")
            if self.exact.misfit is not None:
                found.append(f"its reports of value {self.exact.misfit.value} do not follow its law")
        if self.empirical > min(self.claim, self.stated):
            found.append(f"its reports prove epsilon {self.empirical:.3f} at least")
        return tuple(found)

    @property
    def is_beaten(self) -> bool:
        """Whether the claim is false."""
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
    """Audit mechanisms together: all bounds hold at once with probability `CONFIDENCE`.

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
                subject.k,
                subject.epsilon if claim is None else claim,
                subject.epsilon,
                sizes[name],
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
    inner = _inner(subject)
    if isinstance(inner, DiscreteLaplace):
        misfit = _worst_misfit(inner, (), words) if words else None
        return Exact(_by_sensitivity(inner), subject.epsilon, size, fits, "sensitivity", misfit)
    laws = [inner.law(value) for value in range(inner.k)]
    misfit = _worst_misfit(inner, laws, words) if words else None
    return Exact(_by_enumeration(laws), subject.epsilon, size, fits, "every output", misfit)


def _fits(subject: Audited) -> bool:
    """Whether its probabilities can be gone through."""
    effort = _effort(subject)
    return effort is not None and effort <= MOST_PROBABILITIES and subject.k <= MOST_VALUES + 1


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
    exact = Fraction(furthest * noise.rate, UNIT)
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _worst_misfit(inner: Any, laws: Sequence[dict[bytes, Fraction]], words: Words) -> Misfit | None:
    """Reports of every value against its law: a misfit that honest reports have with chance `LAW_ALARM` at most."""
    width = inner.raw_size if isinstance(inner, DiscreteLaplace) else 1
    n = max(10, min(_LAW_NUMBERS, _ALL_LAW_NUMBERS // inner.k) // width)
    worst = Misfit(0, 1.0)
    for value in range(inner.k):
        reports = inner.randomize(np.full(n, value, dtype=np.int64), words)
        if not inner.is_valid(reports).all():
            return Misfit(value, 0.0)
        match inner:
            case DiscreteLaplace():
                seen, chances = _noise_against_law(inner, value, reports)
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
        chance = _fit(seen, chances)
        if chance < worst.chance:
            worst = Misfit(value, chance)
    return worst if worst.chance < LAW_ALARM / inner.k else None


def _fit(seen: NDArray[np.int64], chances: NDArray[np.float64]) -> float:
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
    oracle: Olh, value: int, reports: NDArray[np.uint32], told: Sequence[Fraction]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts and chances of (own bucket or not, bucket, lowest bits of the hash): the hash knows nothing of the value."""
    a, b, c, bucket = reports.astype(np.int64).T
    hashed = ((a * value % PRIME + b) * value + c) % PRIME
    is_own = hashed * oracle.buckets // PRIME == bucket
    symbols = 8 * (oracle.buckets * is_own + bucket) + 4 * (a & 1) + 2 * (b & 1) + (c & 1)
    edges = -(-np.arange(oracle.buckets + 1) * PRIME // oracle.buckets)
    share = np.diff(edges) / PRIME
    lied, kept = float(min(told)), float(max(told))
    chances = np.repeat(np.concatenate([(1 - share) * lied, share * kept]), 8) / 8
    return np.bincount(symbols, minlength=chances.size), chances


def _noise_against_law(
    noise: DiscreteLaplace, value: int, reports: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts and chances of (indicator, noise), both tails cut where hardly any noise comes."""
    truth = np.broadcast_to(noise.indicators(np.array([value])), reports.shape).ravel()
    rate = noise.rate / UNIT
    far = math.ceil(12 / rate) if rate > 12 / MOST_PROBABILITIES else MOST_PROBABILITIES
    drawn = np.clip(reports.ravel().astype(np.int64) - truth, -far, far) + far
    a = math.exp(-rate)
    one = a ** np.abs(np.arange(-far, far + 1.0)) * -math.expm1(-rate) / (1 + a)
    one[[0, -1]] = a**far / (1 + a)
    ones = truth.mean()
    chances = np.concatenate([(1 - ones) * one, ones * one])
    return np.bincount(one.size * truth + drawn, minlength=chances.size), chances


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
class _Half:
    """Reports, and which of them support each of the inputs looked at (nothing where a report supports no value)."""

    reports: NDArray[Any]
    supported: Mapping[int, NDArray[np.bool_]]

    def first(self, n: int) -> _Half:
        """The first n."""
        return _Half(self.reports[:n], {value: found[:n] for value, found in self.supported.items()})


@dataclass(frozen=True)
class _Sample:
    """Reports of one input: half to choose an event by, half to judge it by."""

    choosing: _Half
    judging: _Half

    @cached_property
    def bit_means(self) -> NDArray[np.float64]:
        """How often each bit of the bytes of a report is set."""
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
class _View:
    """One way to look at reports: a symbol each, below size."""

    kind: str
    size: int
    symbols: Callable[[_Half], NDArray[np.int64]]
    words: Callable[[NDArray[np.int64]], str]


_Seen = tuple[str, str, tuple[int, int], tuple[int, int], int]


def _affordable(subject: Audited, words: Words, n_reports: int) -> int:
    """How many reports of one input are drawn: fewer where they are wide."""
    one = np.asarray(subject.randomize(np.zeros(1, dtype=np.int64), words))
    most = min(_SAMPLE_BYTES // max(one.nbytes, 8), _SAMPLE_SUPPORTS // subject.k)
    return min(n_reports, max(most, LEAST_REPORTS))


def _inputs(k: int, words: Words) -> tuple[list[int], list[int]]:
    """Inputs to compare pair by pair, and further ones: all where there are few enough, else random ones."""
    main = sorted({0, min(1, k - 1), min(2, k - 1), max(k - 2, 0), k - 1})
    rest = range(3, k - 2)
    if k <= _ALL_INPUTS:
        return main, list(rest)
    n_drawn = _SOME_INPUTS - len(main)
    drawn = dict.fromkeys((words.below(len(rest), 2 * n_drawn) + np.uint64(3)).tolist())
    return main, sorted(list(drawn)[:n_drawn])


def _seen(subject: Audited, words: Words, n_reports: int) -> Iterator[_Seen]:
    """For each pair of inputs and kind of event: the best one by half of the reports, counted in the other half.

    Further inputs are compared with input 0 and with the one before.
    """
    main, further = _inputs(subject.k, words)
    inputs = [*main, *further]
    samples = {value: _sample(subject, value, inputs, words, n_reports) for value in main}
    for pair in permutations(main, 2):
        yield from _judged(subject, pair, samples)
    few = min(n_reports, max(LEAST_REPORTS, n_reports // 4))
    half = len(samples[0].choosing.reports)
    zero = _Sample(samples[0].choosing.first(min(half, few // 2)), samples[0].judging.first(few - few // 2))
    nearby = {0: zero}
    for value in further:
        nearby[value] = _sample(subject, value, inputs, words, few)
        for other in nearby:
            if other != value:
                yield from _judged(subject, (value, other), nearby)
                yield from _judged(subject, (other, value), nearby)
        nearby = {0: zero, value: nearby[value]}


def _judged(subject: Audited, pair: tuple[int, int], samples: Mapping[int, _Sample]) -> Iterator[_Seen]:
    """The best event of each kind for this pair."""
    ours, theirs = samples[pair[0]], samples[pair[1]]
    best: dict[str, tuple[float, _View, NDArray[np.int64]]] = {}
    for view in _views(pair, ours, theirs):
        chosen, score = _choose(view, ours.choosing, theirs.choosing)
        if view.kind not in best or score > best[view.kind][0]:
            best[view.kind] = (score, view, chosen)
    for kind, (_, view, chosen) in best.items():
        counts = [int(np.isin(view.symbols(half), chosen).sum()) for half in (ours.judging, theirs.judging)]
        yield kind, view.words(chosen), pair, (counts[0], counts[1]), len(ours.judging.reports)


def _sample(subject: Audited, value: int, inputs: list[int], words: Words, n_reports: int) -> _Sample:
    reports = np.asarray(subject.randomize(np.full(n_reports, value, dtype=np.int64), words))
    supported: dict[int, NDArray[np.bool_]] = {}
    inner = _inner(subject)
    if hasattr(inner, "supports"):
        found = np.empty((len(inputs), n_reports), dtype=bool)
        step = max(1, 2**22 // subject.k)
        for start in range(0, n_reports, step):
            found[:, start : start + step] = inner.supports(reports[start : start + step])[:, inputs].T
        supported = dict(zip(inputs, found, strict=True))
    both = _Half(reports, supported)
    middle = n_reports // 2
    rest = {value: found[middle:] for value, found in supported.items()}
    return _Sample(both.first(middle), _Half(reports[middle:], rest))


def _choose(view: _View, ours: _Half, theirs: _Half) -> tuple[NDArray[np.int64], float]:
    """The symbols that together bound epsilon best: those whose ratio is above a threshold."""
    a, b = (np.bincount(view.symbols(half), minlength=view.size) for half in (ours, theirs))
    order = np.argsort(-(a + _SHRINK) / (b + _SHRINK), kind="stable")
    scores = _log_ratio(a[order].cumsum(), b[order].cumsum(), len(ours.reports), 1e-5)
    last = int(np.argmax(scores))
    return order[: last + 1], float(scores[last])


def _views(pair: tuple[int, int], ours: _Sample, theirs: _Sample) -> Iterator[_View]:
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


def _supports_view(pair: tuple[int, int]) -> _View:
    def symbols(half: _Half) -> NDArray[np.int64]:
        ours, theirs = (half.supported[value].astype(np.int64) for value in pair)
        return 2 * ours + theirs

    names = ("neither", "x' and not x", "both", "x and not x'")
    order = (0, 1, 3, 2)
    return _View("supports", 4, symbols, lambda chosen: " or ".join(names[order[s]] for s in sorted(chosen)))


def _outputs_view(ours: _Sample, theirs: _Sample) -> Iterator[_View]:
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

    def symbols(half: _Half) -> NDArray[np.int64]:
        raw = words_of(half.reports)
        place = np.searchsorted(known, raw)
        is_known = known[np.minimum(place, known.size - 1)] == raw
        return np.where(is_known, place, known.size).astype(np.int64)

    yield _View(
        "outputs", known.size + 1, symbols, lambda chosen: f"{len(chosen)} of {known.size} outputs seen"
    )


def _bits_view(ours: _Sample, theirs: _Sample) -> _View:
    columns = _telling(ours.bit_means, theirs.bit_means)

    def symbols(half: _Half) -> NDArray[np.int64]:
        raw = _bytes(half.reports)
        bits = (raw[:, columns >> 3] >> (columns & 7).astype(np.uint8)) & 1
        return bits.astype(np.int64) @ (1 << np.arange(columns.size))

    size = 1 << columns.size
    places = ", ".join(map(str, columns))
    return _View("bits", size, symbols, lambda chosen: f"{len(chosen)} of {size} patterns of bits {places}")


def _numbers_view(columns: NDArray[np.int64], ours: _Sample, theirs: _Sample) -> _View:
    """Which third each number lies in."""
    pooled = np.concatenate([_numbers(half.reports)[:, columns] for half in (ours.choosing, theirs.choosing)])
    edges = np.quantile(pooled, [1 / 3, 2 / 3], axis=0, method="lower")

    def symbols(half: _Half) -> NDArray[np.int64]:
        thirds = (_numbers(half.reports)[:, columns, None] > edges.T).sum(axis=2)
        return np.asarray(thirds @ (3 ** np.arange(columns.size)))

    size = 3**columns.size
    places = ", ".join(map(str, columns))
    return _View(
        "numbers", size, symbols, lambda chosen: f"{len(chosen)} of {size} regions of numbers {places}"
    )


def _grid_view(column: int) -> _View:
    """The lowest binary digit of a number: 1 + noise has lost the digits that noise alone has."""

    def symbols(half: _Half) -> NDArray[np.int64]:
        mantissa, exponent = np.frexp(_numbers(half.reports)[:, column].astype(np.float64))
        digits = np.ldexp(mantissa, 53).astype(np.int64)
        trailing = np.frexp((digits & -digits).astype(np.float64))[1] - 1
        lowest = np.where(digits == 0, _HIGHEST, exponent - 53 + trailing)
        return np.clip(lowest, _LOWEST, _HIGHEST).astype(np.int64) - _LOWEST

    def words(chosen: NDArray[np.int64]) -> str:
        digits = (chosen + _LOWEST).tolist()
        return f"number {column}'s lowest binary digit is 2^{min(digits)} to 2^{max(digits)}"

    return _View("floating-point grid", _HIGHEST - _LOWEST + 1, symbols, words)
