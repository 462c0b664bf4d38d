"""What a suite claims, checked on what came out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.suite import Claim, Suite
from tasks.benchmark.ranks import rank_methods
from tasks.benchmark.results import Scores


@dataclass(frozen=True)
class Checked:
    """A claim, whether it held, and what was found, a figure an epsilon. None: a cell that it needs is not there."""

    claim: Claim
    held: bool | None
    found: str


def check_claims(scores: Scores, printed: Mapping[str, Any] | None = None) -> list[Checked]:
    """Every claim of the suite. `printed`: the paper's table, if the suite names one."""
    return [
        _check_printed(scores, claim, printed)
        if claim.measure == "away from printed"
        else _check_steps(scores, claim)
        if claim.measure.startswith("step")
        else _check(scores, claim)
        for claim in scores.suite.claims
    ]


def _check_printed(scores: Scores, claim: Claim, printed: Mapping[str, Any] | None) -> Checked:
    """The largest distance to the printed figures, over the data sets of the claim."""
    suite, worst = scores.suite, []
    method = [*suite.methods].index(claim.method)
    for epsilon in claim.epsilons:
        away = [
            abs(
                float(scores.means[suite.sets.index(name), method, suite.epsilons.index(epsilon)])
                - printed_score(suite, printed or {}, name, claim.method, epsilon)
            )
            for name in claim.datasets
        ]
        worst.append(math.nan if any(map(math.isnan, away)) else max(away))
    shown = ", ".join(f"{value:.4f} at eps {e:g}" for value, e in zip(worst, claim.epsilons, strict=True))
    if any(map(math.isnan, worst)):
        return Checked(claim, None, shown)
    return Checked(claim, max(worst) <= (claim.at_most or 0.0), shown)


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
    return float(line[list(printed["columns"]).index(column)]) / float(printed.get("scale", 1))


def _check(scores: Scores, claim: Claim) -> Checked:
    if claim.measure == "best rank sum":
        return _check_rank_sum(scores, claim)
    suite = scores.suite
    chosen = np.isin(suite.sets, claim.datasets or suite.sets)
    epsilons = [suite.epsilons.index(epsilon) for epsilon in claim.epsilons]
    names, means = [*suite.methods], scores.average_sets(chosen, claim.measure)
    ours = means[names.index(claim.method), epsilons]
    if claim.than is not None:
        theirs = means[names.index(claim.than), epsilons]
        ours = ours - theirs if claim.measure == "difference" else ours / theirs
    digits = "+.4f" if claim.measure == "difference" else ".4f"
    shown = ", ".join(
        f"{value:{digits}} at eps {epsilon:g}" for value, epsilon in zip(ours, claim.epsilons, strict=True)
    )
    if np.isnan(ours).any():
        return Checked(claim, None, shown)
    return Checked(claim, is_within(claim, ours), shown)


def _check_steps(scores: Scores, claim: Claim) -> Checked:
    """The smallest and the largest step of the score, from each set to the next or from each epsilon to the next."""
    suite, method = scores.suite, [*scores.suite.methods].index(claim.method)
    sets = [suite.sets.index(name) for name in claim.datasets or suite.sets]
    epsilons = [suite.epsilons.index(epsilon) for epsilon in claim.epsilons]
    found = scores.means[np.ix_(sets, [method], epsilons)][:, 0, :]
    if claim.measure == "step over sets":
        steps = {f" at eps {e:g}": np.diff(found[:, place]) for place, e in enumerate(claim.epsilons)}
    else:
        steps = {"": np.diff(found.mean(axis=0))}
    shown = ", ".join(f"{each.min():+.4f} to {each.max():+.4f}{where}" for where, each in steps.items())
    every = np.concatenate([*steps.values()])
    if np.isnan(every).any():
        return Checked(claim, None, shown)
    return Checked(claim, is_within(claim, every), f"steps {shown}")


def is_within(claim: Claim, found: NDArray[np.float64]) -> bool:
    """Whether all figures keep the claim's bounds."""
    least = -math.inf if claim.at_least is None else claim.at_least
    most = math.inf if claim.at_most is None else claim.at_most
    return bool((found >= least).all() and (found <= most).all())


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
