"""The curators who learn in rounds from public features, by the name of their estimator: one line each.

What lives here: which is made from which settings, for the pipeline, whose features are encoded columns in [0, 1]. The
estimators of scikit-learn make theirs themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldptree import serialize
from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.families.family import RoundsFamily
from ldptree.families.histoftree import CellsQuestion, HistOfTree, HistOfTreeModel, LabelQuestion
from ldptree.families.public_features import (
    FeatureBins,
    LabelBins,
    PublicFeatureModel,
    PublicFeatures,
    ResidualQuestion,
)
from ldptree.protocol.question import Question

QUESTIONS: dict[str, type[Question]] = {
    question.kind: question
    for question in (LabelQuestion, CellsQuestion, LabelBins, FeatureBins, ResidualQuestion)
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is to be learned.

    Attributes:
        columns: names of the encoded features.
        epsilon: of each holder.
        label_range: its ends.
        seed: public coins.
    """

    columns: Sequence[str]
    epsilon: float
    label_range: tuple[float, float]
    seed: int


def histoftree(task: Task, settings: Mapping[str, Any]) -> RoundsFamily[HistOfTreeModel]:
    """HistOfTree with the keyword arguments in `settings`."""
    low, high = task.label_range
    if (settings.get("n_binned") or 0) > len(task.columns):
        raise ConfigError(
            f"histoftree.binned = {settings['n_binned']}: there are {len(task.columns)} encoded features to bin; choose at most "
            "as many"
        )
    encoding = Encoding(tuple(NumericFeature(name, 0.0, 1.0) for name in task.columns))
    return HistOfTree(epsilon=task.epsilon, encoding=encoding, low=low, high=high, seed=task.seed, **settings)


def public_features(task: Task, settings: Mapping[str, Any]) -> RoundsFamily[PublicFeatureModel]:
    """Ours; `settings` as HistOfTree's."""
    d = len(task.columns)
    low, high = task.label_range
    return PublicFeatures(
        epsilon=task.epsilon,
        columns=tuple(task.columns),
        low=(0.0,) * d,
        high=(1.0,) * d,
        label_low=low,
        label_high=high,
        seed=task.seed,
        **settings,
    )


CURATORS: dict[str, Callable[[Task, Mapping[str, Any]], RoundsFamily[Any]]] = {
    "histoftree": histoftree,
    "public_features": public_features,
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
    try:
        return QUESTIONS[kind].from_json(data)
    except (ConfigError, DataError, TypeError, KeyError, OverflowError, ValueError, RecursionError) as error:
        raise ProtocolMismatch(f"question refused: {error}") from None
