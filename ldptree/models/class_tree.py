"""The released model of a classifier: for every node of the public tree what is believed, why, and how surely.

What lives here: what a node says of classes (predict, intervals). What does not: what every tree has (`tree_model`), how it
comes about (`fit`), files, and scoring.

Two classes have one margin, that of class 1. More classes have one margin each, class against the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ldptree.encoding import Level
from ldptree.errors import DataError
from ldptree.inference.shares import half_width
from ldptree.models.tree_model import TreeModel, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.models.description import Description, Evidence

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Model(TreeModel):
    """A fitted classification tree; what every tree has is in `TreeModel`.

    M = 1 margin (of class 1) for two classes, M = C for more. A margin is a share less 1/C.

    Attributes:
        classes: the C labels; with two, class 1 is the positive one.
        decision: int32 [nodes], the class index predicted.
        probability: float64 [nodes, C], expected class shares; rows sum to 1.
        margin: float64 [nodes, M], estimated private margins per person; noise may carry them beyond a
            share's range.
        margin_sd: float64 [nodes, M], their standard deviations, infinite where there is no evidence.
        noise_sd: float64 [nodes, M], standard deviation that the mechanism's noise alone gives A~ / w of
            the node.
        discrepancy: float64 [nodes, M], what the reports say about private - public margin.
        discrepancy_sd: float64 [nodes, M], its standard deviation; 0 where no difference was found worth
            having.
        mean_discrepancy: float64 [M], the same averaged over all private people.
        mean_discrepancy_sd: float64 [M], its standard deviation.
        private_total: float64 [nodes, C], unbiased noisy totals (negative where the noise is).
        public_total: int64 [nodes, C], public rows.

    Raises:
        DataError: arrays do not fit the tree and the classes.
    """

    KIND: ClassVar[str] = "ldptree model"

    classes: tuple[Level, ...]
    decision: NDArray[np.int32]
    probability: Floats
    margin: Floats
    margin_sd: Floats
    noise_sd: Floats
    discrepancy: Floats
    discrepancy_sd: Floats
    mean_discrepancy: Floats
    mean_discrepancy_sd: Floats
    private_total: Floats
    public_total: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.classes) < 2:
            raise DataError(f"model: {len(self.classes)} classes; a classifier has at least 2")
        super().__post_init__()
        if self.decision.min() < 0 or self.decision.max() >= self.n_classes:
            raise DataError(f"model: decisions are not class indices in 0 .. {self.n_classes - 1}")

    def arrays(self, n_nodes: int) -> dict[str, tuple[type, tuple[int, ...]]]:
        """Type and shape of every array."""
        return _arrays(n_nodes, self.n_classes)

    @property
    def n_classes(self) -> int:
        """C."""
        return len(self.classes)

    @property
    def node_sd(self) -> Floats:
        """[nodes] standard deviation of the margin that is known best."""
        smallest: Floats = self.margin_sd.min(axis=1)
        return smallest

    @property
    def default_class(self) -> int:
        """The class index of rows that have no cell: the root's decision."""
        return int(self.decision[0])

    def predict(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> NDArray[np.int32]:
        """int32 [n] class indices into `classes`; arguments and errors as `cells`."""
        return self.decision[self.nodes(raw, columns)]

    def predict_proba(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> Floats:
        """float64 [n, C] expected class shares; arguments and errors as `cells`."""
        return self.probability[self.nodes(raw, columns)]

    def margin_interval(self, level: float) -> tuple[Floats, Floats]:
        """Ends of what is believed of the margins with probability `level`, each [nodes, M].

        Not cut to a share's range. They speak of a cell's mean, given the tree; infinite where there is no
        evidence. What they hold depends on the settings (`LPCTClassifier.margin_interval`).

        Raises:
            ConfigError: `level` is not between 0 and 1.
        """
        half = half_width(level) * self.margin_sd
        return self.margin - half, self.margin + half

    def share_interval(self, level: float) -> tuple[Floats, Floats]:
        """Ends of what is believed of the shares, each [nodes, C], in [0, 1] and around `probability`."""
        low, high = (end + 1.0 / self.n_classes for end in self.margin_interval(level))
        if self.n_classes == 2:
            low, high = np.hstack([1.0 - high, low]), np.hstack([1.0 - low, high])
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        return np.minimum(low, self.probability), np.maximum(high, self.probability)

    def describe(self, evidence: Evidence) -> Description:
        """What it says of itself in numbers."""
        from ldptree.models.tree_description import describe_classes

        return describe_classes(self, evidence)

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The constructor's arguments. Raises DataError."""
        values = super().from_plain(data)
        classes = data["classes"]
        if not isinstance(classes, list) or any(type(v) not in (str, int, float, bool) for v in classes):
            raise DataError("model: classes must be a list of texts, numbers or booleans")
        arrays = _arrays(values["partition"].n_nodes, len(classes))
        return values | {"classes": tuple(classes)} | numbers_of(data, arrays)


def _arrays(n_nodes: int, n_classes: int) -> dict[str, tuple[type, tuple[int, ...]]]:
    """Type and shape of every array."""
    n_margins = 1 if n_classes == 2 else n_classes
    per_margin = ("margin", "margin_sd", "noise_sd", "discrepancy", "discrepancy_sd")
    return {
        "decision": (np.int32, (n_nodes,)),
        "probability": (np.float64, (n_nodes, n_classes)),
        **dict.fromkeys(per_margin, (np.float64, (n_nodes, n_margins))),
        "mean_discrepancy": (np.float64, (n_margins,)),
        "mean_discrepancy_sd": (np.float64, (n_margins,)),
        "private_share": (np.float64, (n_nodes,)),
        "private_total": (np.float64, (n_nodes, n_classes)),
        "public_total": (np.int64, (n_nodes, n_classes)),
        "decided_at": (np.int32, (n_nodes,)),
    }
