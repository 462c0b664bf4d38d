"""What a suite claims, checked on what came out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schemas.benchmark.suite import Claim, Suite
from tasks.benchmark.ranks import rank_methods
from tasks.benchmark.results import Scores

Printed = Mapping[str, Any]
"""A table of a paper."""
Figures = dict[str, list[float]]
"""Figures of a claim by where they were found, as " at eps 1"."""


@dataclass(frozen=True)
class Checked:
    """A claim, whether it held, and what was found, a figure an epsilon. None: a cell that it needs is not there."""

    claim: Claim
    held: bool | None
    found: str


def check_claims(scores: Scores, printed: Mapping[str, Any] | None = None) -> list[Checked]:
    """Every claim of the suite. `printed`: the paper's table, if the suite names one."""
    return [
        _check_rank_sum(scores, claim)
        if claim.measure == "best rank sum"
        else _judge(claim, MEASURES.get(claim.measure, _find_score)(scores, claim, printed or {}))
        for claim in scores.suite.claims
    ]


def _judge(claim: Claim, figures: Figures) -> Checked:
    """Whether all figures keep the claim's bounds; of steps the smallest and the largest are shown."""
    shown = []
    for where, values in figures.items():
        if claim.measure == "picked":
            shown.append(", ".join(f"{value:g}" for value in values) + where)
        elif claim.measure.startswith("step") and len(values) > 1:
            shown.append(f"{min(values):+.4f} to {max(values):+.4f}{where}")
        else:
            is_change = claim.measure == "difference" or claim.measure.startswith("step")
            sign = "+" if is_change or claim.than_datasets else ""
            shown.append(f"{values[0]:{sign}.4f}{where}")
    found = ", ".join(shown)
    every = np.array([value for values in figures.values() for value in values])
    if np.isnan(every).any():
        return Checked(claim, None, found)
    least = -math.inf if claim.at_least is None else claim.at_least
    most = math.inf if claim.at_most is None else claim.at_most
    return Checked(claim, bool((every >= least).all() and (every <= most).all()), found)


def _by_epsilon(claim: Claim, find: Callable[[float], float | Sequence[float]]) -> Figures:
    return {f" at eps {epsilon:g}": np.atleast_1d(find(epsilon)).tolist() for epsilon in claim.epsilons}


def _find_score(scores: Scores, claim: Claim, printed: Printed) -> Figures:
    """In the mean over sets, or beside that of another method."""
    suite = scores.suite
    averages = scores.average_sets(np.isin(suite.sets, claim.datasets or suite.sets), claim.measure)

    def find(epsilon: float) -> float:
        ours, theirs = (
            float(averages[[*suite.methods].index(name), suite.epsilons.index(epsilon)])
            for name in (claim.method, claim.than or claim.method)
        )
        if claim.measure == "ratio":
            return ours / theirs if theirs else math.nan
        return ours - theirs if claim.measure == "difference" else ours

    return _by_epsilon(claim, find)


def _find_distance_to_printed(scores: Scores, claim: Claim, printed: Printed) -> Figures:
    def find(epsilon: float) -> float:
        away = [
            comparable_score(scores, name, claim.method, epsilon)
            - printed_score(scores.suite, printed, name, claim.method, epsilon)
            for name in claim.datasets
        ]
        return float(np.abs(away).max())

    return _by_epsilon(claim, find)


def _count_sets_better_than_printed(scores: Scores, claim: Claim, printed: Printed) -> Figures:
    def find(epsilon: float) -> float:
        n_better = 0.0
        for name in claim.datasets:
            ours = scores.sign * comparable_score(scores, name, claim.method, epsilon)
            theirs = [
                scores.sign * printed_score(scores.suite, printed, name, one, epsilon) for one in claim.among
            ]
            n_better += math.nan if math.isnan(ours) else float(ours > np.nanmax(theirs))
        return n_better

    return _by_epsilon(claim, find)


def _find_lag_behind_best(scores: Scores, claim: Claim, printed: Printed) -> Figures:
    others = [name for name in claim.among or scores.suite.methods if name != claim.method]

    def find(epsilon: float) -> float:
        lags = []
        for name in claim.datasets or scores.suite.sets:
            found = [scores.sign * scores.mean_of(name, one, epsilon) for one in (claim.method, *others)]
            lags.append(np.max(found[1:]) - found[0])
        return float(np.max(lags))

    return _by_epsilon(claim, find)


def _find_steps_over_sets(scores: Scores, claim: Claim, printed: Printed) -> Figures:
    def find(epsilon: float) -> Sequence[float]:
        line = [scores.mean_of(name, claim.method, epsilon) for name in claim.datasets]
        steps: list[float] = np.diff(line).tolist()
        return steps

    return _by_epsilon(claim, find)


def _find_steps_over_epsilons(scores: Scores, claim: Claim, printed: Printed) -> Figures:
    sets = claim.datasets or scores.suite.sets
    lines = [[scores.mean_of(name, claim.method, epsilon) for epsilon in claim.epsilons] for name in sets]
    return {"": np.diff(np.mean(lines, axis=0)).tolist()}


def _find_last_over_first(scores: Scores, claim: Claim, printed: Printed) -> Figures:
    def find(epsilon: float) -> float:
        def ratio(names: Sequence[str]) -> float:
            first, last = (scores.mean_of(name, claim.method, epsilon) for name in (names[0], names[-1]))
            return last / first

        return ratio(claim.datasets) - (ratio(claim.than_datasets) if claim.than_datasets else 0.0)

    return _by_epsilon(claim, find)


def _list_picked(scores: Scores, claim: Claim, printed: Printed) -> Figures:
    """A value a set."""

    def pick(dataset: str, method: str, epsilon: float) -> float:
        place = dataset, method, epsilon
        one = scores.best.get(place)
        if claim.by:
            able = [each for each in scores.tried.get(place, []) if claim.by in each.mean_parts]
            one = min(able, key=lambda each: each.mean_parts[claim.by], default=None)
        return math.nan if one is None else float(one.candidate.get(claim.parameter, math.nan))

    def find(epsilon: float) -> Sequence[float]:
        sets = claim.datasets or scores.suite.sets
        theirs = [pick(name, claim.than, epsilon) if claim.than else 0.0 for name in sets]
        return [pick(name, claim.method, epsilon) - other for name, other in zip(sets, theirs, strict=True)]

    return _by_epsilon(claim, find)


def comparable_score(scores: Scores, dataset: str, method: str, epsilon: float) -> float:
    """A score as the paper prints it: over that of `relative_to` where it prints ratios."""
    suite, ours = scores.suite, scores.mean_of(dataset, method, epsilon)
    if suite.printed is None or not suite.printed.is_relative or suite.relative_to is None:
        return ours
    return ours / scores.mean_of(dataset, suite.relative_to, epsilon)


def printed_score(
    suite: Suite, printed: Mapping[str, Any], dataset: str, method: str, epsilon: float
) -> float:
    """A figure of the paper in the units of scores; nan where it has none."""
    places, lines = suite.printed, printed.get("epsilon", {}).get(f"{epsilon:g}", {})
    if places is None or dataset not in places.datasets or method not in places.methods:
        return math.nan
    line, column = lines.get(places.datasets[dataset]), places.methods[method]
    if line is None:
        return math.nan
    figures = dict(zip(printed["columns"], line, strict=True))
    return float(figures[column]) / float(figures.get(printed.get("over"), printed.get("scale", 1)))


def _check_rank_sum(scores: Scores, claim: Claim) -> Checked:
    suite, names = scores.suite, [*scores.suite.methods]
    sets = [suite.sets.index(name) for name in claim.datasets or suite.sets]
    among = [names.index(name) for name in dict.fromkeys((claim.method, *(claim.among or names)))]
    held, shown = True, []
    for epsilon in claim.epsilons:
        means = scores.means[np.ix_(sets, among, [suite.epsilons.index(epsilon)])][:, :, 0]
        if np.isnan(means[:, 0]).any():
            return Checked(claim, None, f"no score of {claim.method} at eps {epsilon:g}")
        sums = rank_methods(means, scores.sign).sum(axis=0)
        best = int(np.argmin(sums[1:])) + 1 if len(sums) > 1 else 0
        held &= bool(sums[0] <= sums.min())
        shown.append(f"{sums[0]:g} at eps {epsilon:g} (next {names[among[best]]}: {sums[best]:g})")
    return Checked(claim, held, ", ".join(shown))


MEASURES: dict[str, Callable[[Scores, Claim, Printed], Figures]] = {
    "away from printed": _find_distance_to_printed,
    "sets better than printed": _count_sets_better_than_printed,
    "behind the best": _find_lag_behind_best,
    "step over sets": _find_steps_over_sets,
    "step over epsilons": _find_steps_over_epsilons,
    "last set over first": _find_last_over_first,
    "picked": _list_picked,
}
"""What each kind of claim is about that is no mean over sets."""
