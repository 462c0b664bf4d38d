"""ask: the next question to the holders, from what they show and what was answered; or that there is none left. The curator's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ldptree.errors import BudgetError
from ldptree.families.curators import CURATORS, Task, question_from_json
from ldptree.protocol.question import Answers, Curator, Question, Shown
from schemas.manifest import Manifest
from storage.digests import Hasher
from storage.store import Draft, Store
from tasks.checkpoint import step
from tasks.publish import read_answers
from tasks.scale import read_encoding
from tasks.show import read_shown

LEEWAY = 1e-9
"""What the rounding of parts of an epsilon explains."""


@step("ask", version="3", home="curator", retries=2)
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

    `transcripts`: of the rounds before, in any order. `settings`: the estimator's own (`ldptree.families.curators`).
    `simulation`: the holders' coins come from a seed, and the question says so.
    """
    store = draft.store
    curator = curator_of(store, encoding, estimator, settings, epsilon, label_range, seed)
    everybody = read_shown(store, shown)
    answered = answers_of(store, transcripts)
    question = curator.ask(everybody, answered)
    if question is not None:
        check_budget(question, everybody, answered, epsilon)
    mark = {"simulation": True} if simulation else {}
    text = json.dumps(None if question is None else question.to_json() | mark, sort_keys=True)
    (draft.folder("question") / "question.json").write_text(text)
    if question is None:
        return {"is_left": False, "n_private": everybody.n}
    return {
        "is_left": True,
        "digest": Hasher().of_bytes(text.encode()),
        "about": question.about,
        "epsilon": question.epsilon,
        "n_asked": int(question.asked(everybody).size),
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
) -> Curator[Any]:
    """The curator with these settings; its features are the encoded columns."""
    features, _ = read_encoding(store, encoding)
    low, high = label_range
    task = Task(columns=features.names, epsilon=epsilon, label_range=(low, high), seed=seed)
    return CURATORS[estimator](task, settings)


def check_budget(question: Question, shown: Shown, answered: Sequence[Answers], epsilon: float) -> None:
    """Raises BudgetError where a holder who is asked would spend more than epsilon over all rounds."""
    spent = np.zeros(shown.n)
    for answers in answered:
        spent[answers.holders] += answers.question.epsilon
    spent[question.asked(shown)] += question.epsilon
    if spent.max(initial=0.0) > epsilon * (1 + LEEWAY):
        raise BudgetError(
            f"round {len(answered) + 1} would have a holder spend {spent.max():g} in all, of epsilon = {epsilon:g}. "
            "Nothing was asked."
        )


def answers_of(store: Store, transcripts: Sequence[Manifest]) -> list[Answers]:
    """What was published so far, round by round."""
    rounds = sorted((read_answers(store, one) for one in transcripts), key=lambda pair: pair[0])
    return [answers for _, answers in rounds]


def digest_unmarked(store: Store, question: Manifest) -> str:
    """The digest that a release of the same question has as an artifact: what the noise of a simulation is drawn from."""
    (entry,) = question.files
    content = json.loads(store.file(question, entry.name).read_bytes())
    content.pop("simulation", None)
    hasher = store.hasher("curator")
    text = json.dumps(content, sort_keys=True).encode()
    return hasher.of_value([[entry.name, hasher.of_bytes(text)]])


def read_question(store: Store, question: Manifest) -> Question:
    """The question in an artifact that has one. Raises ProtocolMismatch."""
    return question_from_json(store.file(question, "question.json").read_bytes())
