"""Several rounds of questions and answers: asked, answered, published, and asked again until nothing is left to ask. What the
steps do is in `tasks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from prefect import unmapped

from flows import calls, round_calls
from flows.budget import Spent
from flows.campaign import Terms
from flows.rounds_budget import Charged
from flows.shards import progress_shown
from schemas.manifest import Manifest, Record
from storage.store import Store
from tasks.answer import answer
from tasks.ask import ask
from tasks.publish import publish


@dataclass(frozen=True)
class Conversation:
    """What the rounds left: the questions, what was answered, and what that spent."""

    asked: Sequence[Record]
    transcripts: Sequence[Manifest]
    spent: Spent
    records: Sequence[Record]


def converse(
    store: Store, terms: Terms, raw: Manifest, held: Record, scaled: Record, shown: Record
) -> Conversation:
    """Charge everybody the whole epsilon before the first question, then put the questions, each on what was published before."""
    shards: list[calls.Call] = []
    asked: list[Record] = []
    transcripts: list[Manifest] = []
    records: list[Record] = []
    charged: Charged | None = None
    spent = Spent(largest=0.0, questions=0, cap=None)
    for number in count(1):
        question = ask(store, **round_calls.ask(terms, scaled, shown, transcripts))
        records.append(question)
        if not question.facts["is_left"]:
            break
        if charged is None:
            key = round_calls.conversation(store, terms, scaled, shown)
            charged = Charged(store, terms.config, raw, held, key)
            spent = charged.charge()
            shards = round_calls.shards(store, terms, held)
        charged.check_question(number, question["question"].digest)
        call = round_calls.answer(terms, scaled, shown, question, number)
        with progress_shown(len(shards), "answer"):
            reports = answer.map(
                store, **calls.mapped(shards), **{key: unmapped(value) for key, value in call.items()}
            ).result()
        charged.keep_answers(number, [one["shard"] for one in shards], reports)
        round_ = publish(store, **round_calls.publish(question, shown, reports, number))
        asked.append(question)
        transcripts.append(round_["transcript"])
        records += [*reports, round_]
    return Conversation(asked, transcripts, spent, records)
