"""What is released after the last round: a surface of public features, and effects of private ones.

What lives here: the model as a value (predict, canonical JSON). What does not: how it comes about (`curator`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.errors import DataError, LdptreeError
from ldptree.families.public_features.contrast import Contrast
from ldptree.families.public_features.surface import Surface
from ldptree.limits import check_spent
from ldptree.models import model_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.encoding import Encoding
    from ldptree.models.description import Description, Evidence

    Floats = NDArray[np.float64]

VERSION = 1
KIND = "ldptree public features model"
_PLAIN: dict[str, tuple[type, ...]] = {
    "label_low": (int, float),
    "label_high": (int, float),
    "is_binary": (bool,),
    "epsilon": (int, float),
    "n_holders": (int,),
    "says": (str,),
}
_LISTS: dict[str, tuple[type, ...]] = {
    "columns": (str,),
    "low": (int, float),
    "high": (int, float),
    "private": (int,),
}


@dataclass(frozen=True, eq=False)
class Effect:
    """What a private feature adds: coefficient(public features) * contrast(feature), in the label's unit."""

    contrast: Contrast
    coefficient: Surface

    def __call__(self, rows: Floats) -> Floats:
        """float64 [n], of scaled rows [n, d]."""
        return np.asarray(self.coefficient(rows) * self.contrast(rows))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"contrast": self.contrast.to_json(), "coefficient": self.coefficient.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The effect that `to_json` wrote. Raises ProtocolMismatch or DataError."""
        if not isinstance(data, Mapping) or set(data) != {"contrast", "coefficient"}:
            raise DataError("effect: must be exactly coefficient, contrast")
        return cls(Contrast.from_json(data["contrast"]), Surface.from_json(data["coefficient"]))


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicFeatureModel:
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

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON without the digest itself."""
        return model_json.digest_of(self._to_plain())

    def to_json(self) -> str:
        """The canonical text: sorted keys, its own digest in it."""
        return model_json.written(self._to_plain(), self.digest)

    def _to_plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"kind": KIND, "version": VERSION, "surface": self.surface.to_json()}
        plain["effects"] = [effect.to_json() for effect in self.effects]
        plain |= {name: getattr(self, name) for name in _PLAIN}
        return plain | {name: list(getattr(self, name)) for name in _LISTS}

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The model that `to_json` wrote, every part checked anew.

        Raises:
            DataError: not a model, of an unknown version, a field absent, unknown or of a wrong type, parts that do not
                fit, or a digest that is not that of the content.
        """
        data = model_json.read(
            text, kind=KIND, version=VERSION, fields=("surface", "effects", *_PLAIN, *_LISTS)
        )
        return cls(**_from_plain(data))


def scaled(raw: Floats, low: Floats, high: Floats) -> Floats:
    """Rows [n, d] moved to [0, 1] by these ends, values beyond them to the nearer; a feature without width is 0."""
    width = high - low
    safe = np.where(width > 0, width, 1.0)
    return np.clip(np.where(width > 0, (raw - low) / safe, raw * 0.0), 0.0, 1.0)


def _from_plain(data: Mapping[str, Any]) -> dict[str, Any]:
    model_json.check_types(data, _PLAIN)
    values: dict[str, Any] = {name: data[name] for name in _PLAIN}
    for name, kinds in _LISTS.items():
        if not isinstance(data[name], list) or any(type(v) not in kinds for v in data[name]):
            raise DataError(f'model: field "{name}" is not a list of its type')
        values[name] = tuple(data[name])
    values["surface"] = Surface.from_json(data["surface"])
    try:
        values["effects"] = tuple(Effect.from_json(effect) for effect in data["effects"])
    except (TypeError, KeyError, LdptreeError) as error:
        raise DataError(f'model: field "effects": {error}') from None
    return values
