"""Summarise a fit in words, with how much public features explain, whether private features help, and whether the
label's range is too narrow.

How much public features explain is measured on reports alone. With a prediction f(x) of the label y, 2 cov(y, f) - var(f)
is what the mean squared error falls by against a constant. Reports are unbiased, so that this is a mean over reports that f
has not seen: f is fitted to the other folds, and no noise of its own counts as variance explained. The label's variance
follows from the mean square of reports, which is known for each number that is sent. Labels are those that reports are
about: cut to c +- R.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.families.public_features.allocation import Allocation
from ldptree.families.public_features.effects import EffectTest, Estimate
from ldptree.families.public_features.label import LabelDistribution, fit_report_square
from ldptree.families.public_features.transcript import label_questions, read_label_answers, visible_rows
from ldptree.models.public_features import HELPED
from ldptree.protocol.question import PublicView, Transcript

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.mechanisms.numbers import NumberMechanism

    Floats = NDArray[np.float64]
    Fit = Callable[[Floats, Floats], Callable[[Floats], Floats]]

FOLDS = 3
# a variance is known where its error is at most this part of it
_KNOWN = 0.25
# shares of labels in the two end bins, and of variance explained, that are worth a word
_TOO_MANY_AT_ENDS, _WORTH_A_WORD = 0.3, 0.005


@dataclass(frozen=True, kw_only=True)
class VarianceExplained:
    """The part of the label's variance that is explained.

    Attributes:
        part: of the label's variance, what public features explain.
        whole: all of it; None where reports do not tell.
        cut: what labels were cut to; None: they were not.
    """

    part: Estimate
    whole: Estimate | None
    cut: tuple[float, float] | None = None


def estimate_class_variance(reports: Floats) -> Estimate | None:
    """The variance of labels -1 and 1, from unbiased reports of them; None where they show none."""
    mean, noise = float(reports.mean()), float(reports.var()) / reports.size
    value = max(1 - mean**2 + noise, noise)
    return None if value <= 0 else Estimate(value=value, error=2 * abs(mean) * math.sqrt(noise))


def estimate_label_variance(reports: Floats, mechanism: NumberMechanism, half: float) -> Estimate | None:
    """Of the labels that these reports are about; None where they do not tell it.

    Args:
        reports: float64 [m], decoded, less the middle of what was sent.
        mechanism: of the reports.
        half: what the number 1 stands for.
    """
    numbers = reports / half
    flat, bent = fit_report_square(mechanism)
    if bent <= 0 or numbers.size < FOLDS:
        return None
    squares = (numbers**2 - flat) / bent
    error = float(squares.std(ddof=1)) / math.sqrt(numbers.size)
    mean = float(numbers.mean())
    # the square of a noisy mean is too large by its variance
    value = float(squares.mean()) - mean**2 + float(numbers.var(ddof=1)) / numbers.size
    if value <= 0 or error > _KNOWN * value:
        return None
    return Estimate(value=value * half**2, error=error * half**2)


def measure_explained(
    view: PublicView, transcript: Transcript, fit: Fit, *, is_binary: bool
) -> VarianceExplained:
    """Measure what public features explain, by the answers to the label's question; `fit` as in `estimate_explained`."""
    rows, reports = read_label_answers(view, transcript)
    question = label_questions(transcript)[0]
    part, middle, half = estimate_explained(rows, reports, fit), question.surface.intercept, question.half
    if is_binary:
        return VarianceExplained(part=part, whole=estimate_class_variance(reports))
    whole = estimate_label_variance(reports - middle, question.mechanism, half)
    return VarianceExplained(part=part, whole=whole, cut=(middle - half, middle + half))


def estimate_explained(rows: Floats, reports: Floats, fit: Fit) -> Estimate:
    """Return the share of variance that a fit to all folds but one explains of that one, over all folds.

    Args:
        rows: float64 [m, d], in an order that says nothing.
        reports: float64 [m], unbiased.
        fit: makes a function of rows from rows and reports.

    Returns:
        With an infinite error where a fold would be of one report: nothing is known.
    """
    if reports.size < 2 * FOLDS:
        return Estimate(value=0.0, error=math.inf)
    fold = np.arange(reports.size) % FOLDS
    gains = np.zeros(reports.size)
    for k in range(FOLDS):
        held = fold == k
        fitted = fit(rows[~held], reports[~held])(rows[held])
        away = fitted - fitted.mean()
        gains[held] = 2 * away * (reports[held] - reports[held].mean()) - away**2
    return Estimate(value=float(gains.mean()), error=float(gains.std(ddof=1)) / math.sqrt(gains.size))


@dataclass(frozen=True, eq=False, kw_only=True)
class FitFacts:
    """The facts of a fit.

    Attributes:
        allocation: how the holders were shared out.
        labels: what is known of the label's distribution.
        effects: of each contrast that was asked about.
        constant: private features that are the same for everybody, as far as is known.
        explained: what public features explain.
    """

    allocation: Allocation
    labels: LabelDistribution
    effects: Sequence[EffectTest]
    constant: frozenset[int]
    explained: VarianceExplained


def summarize(
    facts: FitFacts,
    view: PublicView,
    *,
    columns: tuple[str, ...],
    ranges: Sequence[tuple[float, float]],
    epsilon: float,
) -> str:
    """One line, from what is public and what was reported.

    Args:
        facts: what was found.
        view: what everybody can see.
        columns: names of the features.
        ranges: of each feature.
        epsilon: of each holder.
    """
    allocation, labels = facts.allocation, facts.labels
    parts = [_describe_public(facts.explained)]
    names = ", ".join(columns[j] for j in allocation.private)
    asked = tuple(sorted({fact.effect.contrast.feature for fact in facts.effects}))
    if not view.protects.any():
        parts.append("No feature is protected.")
    elif not allocation.private:
        parts.append("Every feature is shown by at least half of the holders, so none was asked about.")
    elif not allocation.shapes:
        parts.append(
            f"Private features do not help here: with {view.n:,} holders at epsilon {epsilon:g}, reports about {names} "
            "would cost more than they may bring, so none was asked for."
        )
    else:
        if asked:
            significant = [fact for fact in facts.effects if fact.is_significant]
            spread = labels.sd**2
            parts.append(
                _describe_effects(
                    columns, asked, significant, visible_rows(view), facts.explained.whole, spread
                )
            )
        else:
            parts.append("Private features do not help here.")
        rest = tuple(j for j in allocation.private if j not in asked)
        parts += _describe_the_rest(columns, rest, facts.constant, ranges)
    if labels.at_ends > _TOO_MANY_AT_ENDS:
        parts.append(
            f"About {labels.at_ends:.0%} of labels are at the ends of label_range or beyond: unless labels end there, it is too "
            "narrow, and a wider one would serve better."
        )
    return " ".join(parts)


def _describe_public(explained: VarianceExplained) -> str:
    share = None if explained.whole is None else explained.part.over(explained.whole)
    if share is None or not share.is_precise:
        return "These reports do not tell how much of the label's variance public features explain."
    cut = (
        f", cut to {explained.cut[0]:.4g} to {explained.cut[1]:.4g} as they were asked for"
        if explained.cut
        else ""
    )
    return f"Public features explain about {_format_share(share)} of the variance of labels{cut}."


def _format_share(share: Estimate) -> str:
    """Format a share with its band, such as "62% (55% to 69%)"."""
    return f"{min(max(share.value, 0), 1):.0%} ({share.low:.0%} to {share.high:.0%})"


def _describe_effects(
    columns: tuple[str, ...],
    asked: tuple[int, ...],
    significant: Sequence[EffectTest],
    rows: Floats,
    whole: Estimate | None,
    spread: float,
) -> str:
    brings: dict[int, Estimate] = {}
    for fact in significant:
        feature = fact.effect.contrast.feature
        varies = fact.effect.contrast.square * float(fact.effect.coefficient(rows).var())
        before = brings.get(feature, Estimate(value=0.0, error=0.0))
        brings[feature] = Estimate(
            value=before.value + fact.explains.value + varies,
            error=math.hypot(before.error, fact.explains.error),
        )
    known = Estimate(value=spread, error=0.0) if whole is None else whole
    shares = {feature: part.over(known) for feature, part in sorted(brings.items())}
    helped = {feature: share for feature, share in shares.items() if share.value > _WORTH_A_WORD}
    if not helped:
        names = ", ".join(columns[j] for j in asked)
        return (
            f"It is not sure that private features help here: {names} {_were(asked)} asked about, and what the model takes from "
            "that may be noise."
        )
    words = ", ".join(
        columns[j] + (f" (about {_format_share(share)})" if whole and share.is_precise else "")
        for j, share in helped.items()
    )
    others = [columns[j] for j in asked if j not in helped]
    return f"{HELPED}: {words}" + (f"; unclear for {', '.join(others)}." if others else ".")


def _describe_the_rest(
    columns: tuple[str, ...],
    rest: tuple[int, ...],
    same: frozenset[int],
    ranges: Sequence[tuple[float, float]],
) -> list[str]:
    """Say why some contrasts were not asked about."""
    parts = []
    alike, costly = [j for j in rest if j in same], [j for j in rest if j not in same]
    if alike:
        names = ", ".join(f"{columns[j]} ({ranges[j][0]:g} to {ranges[j][1]:g})" for j in alike)
        parts.append(
            f"{names} {_were(alike)} not asked about: as far as can be told, everybody has the same value within that range, or "
            "lies at one end of it."
        )
    if costly:
        names = ", ".join(columns[j] for j in costly)
        parts.append(
            f"{names} {_were(costly)} not asked about: too few people differ in it for what these holders could tell."
        )
    return parts


def _were(features: Sequence[int]) -> str:
    return "was" if len(features) == 1 else "were"
