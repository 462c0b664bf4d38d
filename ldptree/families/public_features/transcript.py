"""Put the answers so far together by subject, for labels, contrasts, and the shares of people in a feature's bins.

What is made of noisy reports of bins decides what is asked: a feature that is the same for everybody must not look varied,
and one of a few levels must keep its ties.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.families.public_features.questions import FeatureBins, ResidualQuestion
from ldptree.models.surface import BINS, Contrast, bin_of
from ldptree.protocol.question import AnsweredQuestion, PublicView, Transcript

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.mechanisms.oracles.subset import SubsetSelection

    Floats = NDArray[np.float64]

# a bin is told from an empty one at so many standard errors, and what all such bins leave from nothing at so many
_IS_REAL, _IS_ALL = 3.0, 2.0
# where more of the people than this may be missed by that, reports are too few to tell
_MOST_UNSURE = 0.5


def visible_rows(view: PublicView) -> Floats:
    """Return the shown values, float64 [n, d], NaN where protected."""
    return np.where(view.protects, np.nan, view.values)


def label_questions(transcript: Transcript) -> list[ResidualQuestion]:
    """The questions about the label alone."""
    asked = [answer.question for answer in transcript]
    return [
        question for question in asked if isinstance(question, ResidualQuestion) and question.contrast is None
    ]


def read_label_answers(view: PublicView, transcript: Transcript) -> tuple[Floats, Floats]:
    """Return what all who answered the label's question show, float64 [m, d], and what they reported, [m]."""
    about = [answer for answer in transcript if label_questions([answer])]
    holders = np.concatenate([answer.respondents for answer in about])
    reports = [
        question.surface(visible_rows(view)[answer.respondents]) + question.decode(answer.reports)
        for question, answer in zip(label_questions(about), about, strict=True)
    ]
    return visible_rows(view)[holders], np.concatenate(reports)


def read_contrast_answers(view: PublicView, transcript: Transcript) -> list[tuple[Contrast, Floats, Floats]]:
    """Return each contrast that was asked about, first asked first, with what its respondents show, float64 [m, d], and
    the coefficients of it that they reported, [m].
    """
    asked: dict[Contrast, list[AnsweredQuestion]] = {}
    for answer in transcript:
        if isinstance(answer.question, ResidualQuestion) and answer.question.contrast is not None:
            asked.setdefault(answer.question.contrast, []).append(answer)
    made = []
    for contrast, given in asked.items():
        holders = np.concatenate([answer.respondents for answer in given])
        numbers = np.concatenate([_decoded(answer) for answer in given]) / contrast.square
        made.append((contrast, visible_rows(view)[holders], numbers))
    return made


def estimate_shares(view: PublicView, feature: int, transcript: Transcript) -> tuple[float, ...]:
    """Return the shares of a private feature's bins, from those who show it if many, otherwise from reports."""
    for answer in transcript:
        question = answer.question
        if isinstance(question, FeatureBins) and question.feature == feature:
            return shares_from_reports(question.oracle, answer.reports)
    return count_shares(view.values[~view.protects[:, feature], feature])


def _decoded(answer: AnsweredQuestion) -> Floats:
    assert isinstance(answer.question, ResidualQuestion)
    return answer.question.decode(answer.reports)


def count_shares(values: Floats) -> tuple[float, ...]:
    """Of scaled values, float64 [n], n > 0."""
    return tuple((np.bincount(bin_of(values), minlength=BINS) / values.size).tolist())


def shares_from_reports(oracle: SubsetSelection, reports: NDArray[Any]) -> tuple[float, ...]:
    """Of reports of bins; no share is negative, and they add up to 1.

    Where the bins that surely hold somebody may be all there are, the others get nothing: levels stay levels. Otherwise the
    estimates are shrunk towards equal shares by their noise (James and Stein) and moved to the nearest shares there are.
    """
    n = len(reports)
    shares = oracle.unbias(oracle.aggregate(reports), n) / n
    own, other = (chance * (1 - chance) / (n * oracle.gap**2) for chance in (oracle.p, oracle.q))
    is_real = shares > _IS_REAL * math.sqrt(other)
    n_real = int(is_real.sum())
    unsure = _IS_ALL * math.sqrt(own + max(n_real - 1, 0) * other)
    if n_real and 1 - shares[is_real].sum() <= unsure <= _MOST_UNSURE:
        kept = np.where(is_real, shares, 0.0)
        return tuple((kept / kept.sum()).tolist())
    away = shares - 1 / BINS
    noise, size = own + (BINS - 1) * other, float(away @ away)
    sure = max(0.0, 1.0 - noise / size) if size else 0.0
    return tuple(_nearest(1 / BINS + sure * away).tolist())


def _nearest(estimates: Floats) -> Floats:
    """Return the nearest shares in squares, which are less by a constant and not below 0 (Wang, Lopuhaä-Zwakenberg, Li,
    Skoric and Li, NDSS 2020, norm-sub).
    """
    falling = np.sort(estimates)[::-1]
    over = (np.cumsum(falling) - 1) / np.arange(1, falling.size + 1)
    shares = np.maximum(estimates - over[np.flatnonzero(falling > over)[-1]], 0.0)
    return np.asarray(shares / shares.sum())
