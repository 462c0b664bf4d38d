"""Choose question n of the curator, a tree grown on public rows or what a family asks in a later round, or say that
none is left. Nothing is known here of private rows but earlier answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.manifest import Manifest, StoredTranscript
from storage.store import Draft
from tasks.artifacts import write_question
from tasks.learning import Asking, read_learning
from tasks.step import step


@step(
    "partition",
    version="4",
    home="curator",
    retries=2,
    order=10,
    says="a published question: a tree grown on public rows, and what a holder sends; or that none is left",
)
def partition(
    draft: Draft,
    *,
    transcript: StoredTranscript,
    asking: Asking,
    n_private: int,
    frozen: Manifest | None = None,
) -> Mapping[str, Any]:
    """Write the next question ("question"), and what public rows say of it ("evidence") where they say anything.

    `frozen`: a campaign's published question, taken as it is.
    """
    learning = read_learning(draft.store, transcript, asking, n_private=n_private, frozen=frozen)
    question = learning.ask()
    if question is None:
        write_question(draft, None, simulation=False)
        return {"is_left": False, "n_private": n_private}
    return {"is_left": True, "n_private": n_private} | dict(learning.publish(draft, question))
