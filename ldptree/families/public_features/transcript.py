"""What was answered so far, put together by what it is about: labels, contrasts, the bins of a feature.

What lives here: whose answers belong together, in which unit. What does not: what is learned from them (`curator`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldptree.families.public_features import shares
from ldptree.families.public_features.contrast import Contrast
from ldptree.families.public_features.questions import FeatureBins, ResidualQuestion
from ldptree.protocol.question import AnsweredQuestion, PublicView, Transcript

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def visible(shown: PublicView) -> Floats:
    """What is shown, float64 [n, d], NaN where it is protected."""
    return np.where(shown.protects, np.nan, shown.values)


def labels_asked(answers: Transcript) -> list[ResidualQuestion]:
    """The questions about the label alone."""
    asked = [answer.question for answer in answers]
    return [one for one in asked if isinstance(one, ResidualQuestion) and one.contrast is None]


def of_label(shown: PublicView, answers: Transcript) -> tuple[Floats, Floats]:
    """Of all who answered the label's question: what they show, float64 [m, d], and what they reported, [m]."""
    about = [answer for answer in answers if labels_asked([answer])]
    holders = np.concatenate([answer.respondents for answer in about])
    reports = [
        question.surface(visible(shown)[answer.respondents]) + question.decode(answer.reports)
        for question, answer in zip(labels_asked(about), about, strict=True)
    ]
    return visible(shown)[holders], np.concatenate(reports)


def of_contrasts(shown: PublicView, answers: Transcript) -> list[tuple[Contrast, Floats, Floats]]:
    """Each contrast that was asked about, first asked first: what those show who answered, float64 [m, d], and coefficients of it
    that they reported, [m].
    """
    asked: dict[Contrast, list[AnsweredQuestion]] = {}
    for answer in answers:
        if isinstance(answer.question, ResidualQuestion) and answer.question.contrast is not None:
            asked.setdefault(answer.question.contrast, []).append(answer)
    made = []
    for contrast, given in asked.items():
        holders = np.concatenate([answer.respondents for answer in given])
        numbers = np.concatenate([_decoded(answer) for answer in given]) / contrast.square
        made.append((contrast, visible(shown)[holders], numbers))
    return made


def shares_of(shown: PublicView, feature: int, answers: Transcript) -> tuple[float, ...]:
    """Of a private feature's bins: from those who show it, where they are many, otherwise from reports."""
    for answer in answers:
        question = answer.question
        if isinstance(question, FeatureBins) and question.feature == feature:
            return shares.from_reports(question.oracle, answer.reports)
    return shares.from_shown(shown.values[~shown.protects[:, feature], feature])


def _decoded(answer: AnsweredQuestion) -> Floats:
    assert isinstance(answer.question, ResidualQuestion)
    return answer.question.decode(answer.reports)
