"""The questions of families that ask in rounds, with a line for each family and one reader of their texts."""

from __future__ import annotations

from ldptree import serialize
from ldptree.errors import ProtocolMismatch
from ldptree.families.histoftree import CellsQuestion, LabelQuestion
from ldptree.families.public_features import FeatureBins, LabelBins, ResidualQuestion
from ldptree.protocol.question import Question

QUESTIONS: dict[str, tuple[type[Question], ...]] = {
    "histoftree": (LabelQuestion, CellsQuestion),
    "public_features": (LabelBins, FeatureBins, ResidualQuestion),
}
"""By the family that asks them."""
_KINDS = {question.kind: question for questions in QUESTIONS.values() for question in questions}


def question_from_json(text: str | bytes) -> Question:
    """The published question in a text. Raises ProtocolMismatch."""
    data = serialize.read(
        text, of="question", remedy="fetch it again from its publisher", error=ProtocolMismatch
    )
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ProtocolMismatch(f"question: kind {kind!r} is not known here")
    if data.pop("simulation", True) is not True:
        raise ProtocolMismatch('question: "simulation" is there and true, or not there')
    return _KINDS[kind].from_json(data)
