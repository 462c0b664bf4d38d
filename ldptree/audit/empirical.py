"""Audits: is the epsilon that a mechanism claims true? From its reports; the exact half is in `audit_law`.

From reports (Jagielski, Ullman, Oprea 2020, on one report instead of a model): many are drawn for each of two inputs. On
half of them the event is chosen that tells the inputs apart best: single outputs, values supported, bits, numbers, or the
grid of floating-point numbers that they lie on (Mironov 2012). On the other half ln P(event | x) / P(event | x') is
bounded from below (Clopper, Pearson 1934), with the error shared by all events, pairs and mechanisms audited together
(Bonferroni). A bound above the claim refutes it; a bound below proves nothing. What events there are is in `audit_views`.
What a dishonest holder can move is stated by the mechanism itself (`influence`). Tables and pictures are in the command `audit`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.audit.exact import Audited, Exact, inputs_of
from ldptree.audit.views import Half, Sample, View, views
from ldptree.coins import Words
from ldptree.errors import ConfigError
from ldptree.mechanisms.description import PoisoningBound

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
    influence: PoisoningBound | None

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
    """How many reports of an input can refute a claim of epsilon with room to spare; 100,000 to a million.

    An event never seen in n reports still has a probability of about 14 / n, so no bound exceeds ln(n / 14).
    """
    return int(min(max(100_000, 30 * math.exp(min(epsilon, 100) + 1.5)), MOST_REPORTS))


def _log_ratio(a: ArrayLike, b: ArrayLike, n: int, alpha: float) -> NDArray[np.float64]:
    """ln of Clopper and Pearson's lower end of a in n over their upper end of b in n, each wrong with chance alpha.

    At least 0, which is always true for the better of an event and its complement.
    """
    from scipy.special import betainccinv, betaincinv

    a, b = np.asarray(a), np.asarray(b)
    low = np.where(a > 0, betaincinv(np.maximum(a, 1), n - np.maximum(a, 1) + 1, alpha), 0.0)
    high = np.where(b < n, betainccinv(b + 1, np.maximum(n - b, 1), alpha), 1.0)
    return np.asarray(np.log(np.maximum(low / high, 1.0)), dtype=np.float64)


_Seen = tuple[str, str, tuple[int, int], tuple[int, int], int]


def _affordable(subject: Audited, words: Words, n_reports: int) -> int:
    """How many reports of one input are drawn: fewer where they are wide."""
    one = np.asarray(subject.randomize(np.zeros(1, dtype=np.int64), words))
    most = min(_SAMPLE_BYTES // max(one.nbytes, 8), _SAMPLE_SUPPORTS // inputs_of(subject))
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
    main, further = _inputs(inputs_of(subject), words)
    inputs = [*main, *further]
    samples = {value: _sample(subject, value, inputs, words, n_reports) for value in main}
    for pair in permutations(main, 2):
        yield from _judged(subject, pair, samples)
    few = min(n_reports, max(LEAST_REPORTS, n_reports // 4))
    half = len(samples[0].choosing.reports)
    zero = Sample(samples[0].choosing.first(min(half, few // 2)), samples[0].judging.first(few - few // 2))
    nearby = {0: zero}
    for value in further:
        nearby[value] = _sample(subject, value, inputs, words, few)
        for other in nearby:
            if other != value:
                yield from _judged(subject, (value, other), nearby)
                yield from _judged(subject, (other, value), nearby)
        nearby = {0: zero, value: nearby[value]}


def _judged(subject: Audited, pair: tuple[int, int], samples: Mapping[int, Sample]) -> Iterator[_Seen]:
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
        found = np.empty((len(inputs), n_reports), dtype=bool)
        step = max(1, 2**22 // subject.k)
        for start in range(0, n_reports, step):
            found[:, start : start + step] = subject.supports(reports[start : start + step])[:, inputs].T
        supported = dict(zip(inputs, found, strict=True))
    both = Half(reports, supported)
    middle = n_reports // 2
    rest = {value: found[middle:] for value, found in supported.items()}
    return Sample(both.first(middle), Half(reports[middle:], rest))


def _choose(view: View, ours: Half, theirs: Half) -> tuple[NDArray[np.int64], float]:
    """The symbols that together bound epsilon best: those whose ratio is above a threshold."""
    a, b = (np.bincount(view.symbols(half), minlength=view.size) for half in (ours, theirs))
    order = np.argsort(-(a + _SHRINK) / (b + _SHRINK), kind="stable")
    scores = _log_ratio(a[order].cumsum(), b[order].cumsum(), len(ours.reports), 1e-5)
    last = int(np.argmax(scores))
    return order[: last + 1], float(scores[last])
