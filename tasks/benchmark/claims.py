"""What a suite claims, checked on what came out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.suite import Claim
from tasks.benchmark.ranks import rank_methods
from tasks.benchmark.results import Scores


@dataclass(frozen=True)
class Checked:
    """A claim, whether it held, and what was found, a figure an epsilon. None: a cell that it needs is not there."""

    claim: Claim
    held: bool | None
    found: str


def check_claims(scores: Scores) -> list[Checked]:
    """Every claim of the suite."""
    return [_check(scores, claim) for claim in scores.suite.claims]


def _check(scores: Scores, claim: Claim) -> Checked:
    if claim.measure == "best rank sum":
        return _check_rank_sum(scores, claim)
    suite = scores.suite
    chosen = np.isin(suite.sets, claim.datasets or suite.sets)
    epsilons = [suite.epsilons.index(epsilon) for epsilon in claim.epsilons]
    names, means = [*suite.methods], scores.average_sets(chosen)
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
    held = (claim.at_least is None or bool((ours >= claim.at_least).all())) and (
        claim.at_most is None or bool((ours <= claim.at_most).all())
    )
    return Checked(claim, held, shown)


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
