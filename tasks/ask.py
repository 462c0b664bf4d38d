"""ask: the next question to the holders, from what they show and what was answered; or that there is none left. The curator's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ldptree.errors import BudgetError
from ldptree.families import FAMILIES, LearningProblem
from ldptree.families.family import RoundsFamily
from ldptree.protocol.question import PublicView, Question, Transcript
from schemas.manifest import Manifest
from storage.digests import Hasher
from storage.store import Draft, Store
from tasks.artifacts import read_encoding, read_shown, read_transcripts, write_question
from tasks.step import step

LEEWAY = 1e-9
"""What the rounding of parts of an epsilon explains."""


@step(
    "ask", version="3", home="curator", retries=2, order=6, says="a published question, or that none is left"
)
def ask(
    draft: Draft,
    *,
    encoding: Manifest,
    shown: Manifest,
    transcripts: Sequence[Manifest],
    estimator: str,
    settings: Mapping[str, Any],
    epsilon: float,
    label_range: tuple[float, float],
    seed: int,
    simulation: bool = False,
) -> Mapping[str, Any]:
    """Write the question ("question"): `question.json`, null where nothing is left to ask.

    `transcripts`: of the rounds before, in any order. `settings`: the family's own, as keyword arguments.
    `simulation`: the holders' coins come from a seed, and the question says so.
    """
    store = draft.store
    curator = curator_of(store, encoding, estimator, settings, epsilon, label_range, seed)
    everybody = read_shown(store, shown)
    answered = read_transcripts(store, transcripts)
    question = curator.ask(everybody, answered)
    if question is not None:
        check_budget(question, everybody, answered, epsilon)
    text = write_question(draft, question, simulation=simulation)
    if question is None:
        return {"is_left": False, "n_private": everybody.n}
    return {
        "is_left": True,
        "digest": Hasher().of_bytes(text),
        "about": question.about,
        "epsilon": question.epsilon,
        "n_asked": int(question.respondents(everybody).size),
        "n_private": everybody.n,
    }


def curator_of(
    store: Store,
    encoding: Manifest,
    estimator: str,
    settings: Mapping[str, Any],
    epsilon: float,
    label_range: Sequence[float],
    seed: int,
) -> RoundsFamily[Any]:
    """The curator with these settings; its features are the encoded columns."""
    features, _ = read_encoding(store, encoding)
    low, high = label_range
    problem = LearningProblem(columns=features.names, epsilon=epsilon, label=(low, high), seed=seed)
    return FAMILIES[estimator].build(problem, **settings)


def check_budget(question: Question, shown: PublicView, answered: Transcript, epsilon: float) -> None:
    """Raises BudgetError where a holder who is asked would spend more than epsilon over all rounds."""
    spent = np.zeros(shown.n)
    for answers in answered:
        spent[answers.respondents] += answers.question.epsilon
    spent[question.respondents(shown)] += question.epsilon
    if spent.max(initial=0.0) > epsilon * (1 + LEEWAY):
        raise BudgetError(
            f"round {len(answered) + 1} would have a holder spend {spent.max():g} in all, of epsilon = {epsilon:g}. "
            "Nothing was asked."
        )
