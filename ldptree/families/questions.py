"""The questions of families that ask in rounds, by their kind: one line each, and the one reader of their texts."""

from __future__ import annotations

from ldptree import serialize
from ldptree.errors import ProtocolMismatch
from ldptree.families.histoftree import CellsQuestion, LabelQuestion
from ldptree.families.public_features import FeatureBins, LabelBins, ResidualQuestion
from ldptree.protocol.question import Question

QUESTIONS: dict[str, type[Question]] = {
    question.kind: question
    for question in (LabelQuestion, CellsQuestion, LabelBins, FeatureBins, ResidualQuestion)
}


def question_from_json(text: str | bytes) -> Question:
    """The published question in a text. Raises ProtocolMismatch."""
    data = serialize.read(
        text, of="question", remedy="fetch it again from its publisher", error=ProtocolMismatch
    )
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in QUESTIONS:
        raise ProtocolMismatch(f"question: kind {kind!r} is not known here")
    if data.pop("simulation", True) is not True:
        raise ProtocolMismatch('question: "simulation" is there and true, or not there')
    return QUESTIONS[kind].from_json(data)
