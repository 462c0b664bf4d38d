"""What is released after the last round: a surface of public features, and effects of private ones. How it comes
about is in `curator`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import DataError
from ldptree.families.public_features.contrast import Contrast
from ldptree.families.public_features.surface import Surface
from ldptree.limits import check_spent
from ldptree.serialize import Document

if TYPE_CHECKING:
    from ldptree.encoding import Encoding
    from ldptree.models.description import Description, Evidence

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Effect:
    """What a private feature adds: coefficient(public features) * contrast(feature), in the label's unit."""

    contrast: Contrast
    coefficient: Surface

    def __call__(self, rows: Floats) -> Floats:
        """float64 [n], of scaled rows [n, d]."""
        return np.asarray(self.coefficient(rows) * self.contrast(rows))


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicFeatureModel(Document):
    """surface + sum of effects, moved into the label's range.

    Attributes:
        columns: names of the features.
        low, high: ends of each feature's range, in its own unit; values beyond are moved to them.
        private: columns that at least one holder protects.
        label_low, label_high: the label's range.
        is_binary: whether labels are -1 and 1.
        surface: of public features.
        effects: of private ones; none where they were not worth asking about.
        epsilon: of each holder.
        n_holders: how many answered or could have.
        says: in one line, whether private features helped.

    Raises:
        DataError: parts that do not fit each other.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("ldptree public features model",)

    columns: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    private: tuple[int, ...]
    label_low: float
    label_high: float
    is_binary: bool
    surface: Surface
    effects: tuple[Effect, ...]
    epsilon: float
    n_holders: int
    says: str

    def __post_init__(self) -> None:
        check_spent("model", self.epsilon, n_holders=self.n_holders)
        d = len(self.columns)
        if (
            len(self.low) != d
            or len(self.high) != d
            or any(not a <= b for a, b in zip(self.low, self.high, strict=True))
        ):
            raise DataError(
                f"model: ranges of {d} features from {len(self.low)} low and {len(self.high)} high ends"
            )
        used = {*self.private, *self.surface.features}
        for effect in self.effects:
            used |= {effect.contrast.feature, *effect.coefficient.features}
        if used and not 0 <= min(used) <= max(used) < d:
            raise DataError(f"model: it reads columns {sorted(used)}, there are {d}")
        if not self.label_low < self.label_high:
            raise DataError("model: the label's range is inverted")

    def scaled(self, raw: Floats) -> Floats:
        """Rows [n, d] moved to [0, 1], float64; NaN stays."""
        return scaled(raw, np.array(self.low), np.array(self.high))

    def predict(self, raw: Floats) -> Floats:
        """Expected labels, float64 [n], of rows [n, d] in their own units.

        A value may be NaN: of a feature of the surface the mean of those who show it stands in, and of an effect it is 0, so
        that a row without its private features is predicted from what is public.

        Raises:
            DataError: another number of columns, or an infinite value.
        """
        raw = np.asarray(raw, dtype=np.float64)
        if raw.ndim != 2 or raw.shape[1] != len(self.columns) or np.isinf(raw).any():
            raise DataError(
                f"rows to predict: shape {raw.shape}; {len(self.columns)} columns of numbers are needed"
            )
        rows = self.scaled(raw)
        value = self.surface(rows)
        for effect in self.effects:
            value = value + effect(rows)
        return np.clip(value, self.label_low, self.label_high)

    def describe(self, encoding: Encoding, target: str, evidence: Evidence) -> Description:
        """What it says of itself in numbers; `encoding` is of raw rows."""
        from ldptree.families.public_features.description import describe_features

        return describe_features(self, encoding, target, evidence)


def scaled(raw: Floats, low: Floats, high: Floats) -> Floats:
    """Rows [n, d] moved to [0, 1] by these ends, values beyond them to the nearer; a feature without width is 0."""
    width = high - low
    safe = np.where(width > 0, width, 1.0)
    return np.clip(np.where(width > 0, (raw - low) / safe, raw * 0.0), 0.0, 1.0)
