"""publish: the answers of one round, of all shards, as everybody may see them. The curator's, who sees reports only.

An answer that the question does not allow, or from somebody who was not asked, is refused: nothing is learned from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from ldptree.errors import ProtocolMismatch
from ldptree.families.questions import question_from_json
from schemas.manifest import Manifest
from storage.store import Draft
from tasks.artifacts import read_shown, reports_of_table, write_transcript
from tasks.step import step


@step(
    "publish",
    version="1",
    home="curator",
    retries=2,
    order=8,
    says="the transcript of a round: a question and all answers",
)
def publish(
    draft: Draft, *, question: Manifest, shown: Manifest, reports: Sequence[Manifest], round_number: int
) -> Mapping[str, Any]:
    """Write the round ("transcript"): `question.json`, `answers.parquet` (holder, report) and `round.json`."""
    store = draft.store
    text = store.file(question, "question.json").read_bytes()
    asked = question_from_json(text)
    tables = [pq.read_table(path) for manifest in reports for path in store.files(manifest)]
    holders, answers = (np.concatenate(parts) for parts in zip(*map(reports_of_table, tables), strict=True))
    order = np.argsort(holders, kind="stable")
    holders, answers = holders[order], answers[order]
    if not np.array_equal(holders, asked.respondents(read_shown(store, shown))):
        raise ProtocolMismatch(
            f"round {round_number}: {holders.size} answers, and not one from each holder who was asked"
        )
    if not asked.is_valid(answers).all():
        raise ProtocolMismatch(f"round {round_number}: an answer that its question does not allow")
    write_transcript(draft, text, round_number, holders, answers)
    return {"n_answers": int(holders.size), "about": asked.about, "epsilon": asked.epsilon}
