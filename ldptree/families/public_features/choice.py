"""Which contrasts of private features are asked about, once it is known how people differ in them.

What lives here: the choice, from shares of bins. What does not: sizes and what they cost (`plan`), and what is asked (`curator`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ldptree.families.public_features.contrast import Contrast
from ldptree.families.public_features.plan import HOPED, HOPED_SQUARE, Plan, Stake, hoped, worth
from ldptree.families.public_features.transcript import shares_of
from ldptree.protocol.question import PublicView, Transcript


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Attributes:
    contrasts: that are asked about, in order.
    stakes: what is at stake in each.
    same: private features in which nobody differs, as far as is known.
    """

    contrasts: tuple[Contrast, ...]
    stakes: tuple[Stake, ...]
    same: frozenset[int]


def chosen(
    shown: PublicView,
    shared: Plan,
    answers: Transcript,
    *,
    sd: float,
    report: Callable[[float], float],
    must: bool,
) -> Choice:
    """Those that so many holders are enough for.

    Args:
        shown: what everybody can see.
        shared: who is left.
        answers: those about bins among them.
        sd: the label's.
        report: mean square of a report of a number within R and so much more, in the label's unit.
        must: ask whatever it costs.
    """
    if not shared.shapes:
        return Choice(contrasts=(), stakes=(), same=frozenset())
    known = {feature: shares_of(shown, feature, answers) for feature in shared.private}
    made = [Contrast(feature, shape, known[feature]) for shape in shared.shapes for feature in known]
    varied = [contrast for contrast in made if contrast.square > 0]
    same = frozenset(shared.private) - {contrast.feature for contrast in varied}
    stakes = []
    for one in varied:
        noise = report(farther(one) * sd) / one.square
        hope = math.inf if must else hoped(one.shape, sd**2, shown.d)
        stakes.append(Stake(noise=noise, hoped=hope, asked=int(must)))
    if must:
        n_kept = max(shared.left - 1, 0)
        return Choice(contrasts=tuple(varied[:n_kept]), stakes=tuple(stakes[:n_kept]), same=same)
    are = worth(stakes, shared.left, n_line=len(shared.line), report=report(0.0))
    kept = [pair for pair, is_worth in zip(zip(varied, stakes, strict=True), are, strict=True) if is_worth]
    return Choice(
        contrasts=tuple(one for one, _ in kept), stakes=tuple(stake for _, stake in kept), same=same
    )


def farther(contrast: Contrast) -> float:
    """How much farther an effect moves labels where few people have its values than where ranks have no ties, in the label's
    standard deviations, if it explains as much.
    """
    return max(0.0, math.sqrt(HOPED["rise"] / contrast.square) - math.sqrt(HOPED["rise"] / HOPED_SQUARE))
