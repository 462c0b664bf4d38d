"""What is released after the last round: a surface of public features, and effects of private ones.

What lives here: the model as a value (predict, canonical JSON). What does not: how it comes about (`curator`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.errors import DataError, LdptreeError
from ldptree.public_features.contrast import Contrast
from ldptree.public_features.surface import Surface

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
            value = value + effect.coefficient(rows) * effect.contrast(rows)
        return np.clip(value, self.label_low, self.label_high)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON without the digest itself."""
        return hashlib.sha256(_canonical(self._to_plain()).encode()).hexdigest()

    def to_json(self) -> str:
        """The canonical text: sorted keys, its own digest in it."""
        return _canonical(self._to_plain() | {"digest": self.digest})

    def _to_plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"kind": KIND, "version": VERSION, "surface": self.surface.to_json()}
        plain["effects"] = [
            {"contrast": e.contrast.to_json(), "coefficient": e.coefficient.to_json()} for e in self.effects
        ]
        plain |= {name: getattr(self, name) for name in _PLAIN}
        return plain | {name: list(getattr(self, name)) for name in _LISTS}

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The model that `to_json` wrote, every part checked anew.

        Raises:
            DataError: not a model, of an unknown version, a field absent, unknown or of a wrong type, parts that do not
                fit, or a digest that is not that of the content.
        """
        try:
            data = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise DataError("model: not JSON; is it a model file, and whole?") from None
        if not isinstance(data, dict) or data.get("kind") != KIND:
            raise DataError(f'model: not an {KIND} (its "kind" says otherwise); give a model file')
        if data.get("version") != VERSION:
            raise DataError(f"model: version {data.get('version')!r} is not known here (only {VERSION})")
        expected = {"kind", "version", "digest", "surface", "effects", *_PLAIN, *_LISTS}
        for name in sorted(expected ^ set(data)):
            raise DataError(f'model: field "{name}" is {"absent" if name in expected else "unknown"}')
        if data.pop("digest") != hashlib.sha256(_canonical(data).encode()).hexdigest():
            raise DataError("model: its digest is not that of its content; export it again")
        return cls(**_from_plain(data))


def scaled(raw: Floats, low: Floats, high: Floats) -> Floats:
    """Rows [n, d] moved to [0, 1] by these ends, values beyond them to the nearer; a feature without width is 0."""
    width = high - low
    safe = np.where(width > 0, width, 1.0)
    return np.clip(np.where(width > 0, (raw - low) / safe, raw * 0.0), 0.0, 1.0)


def _from_plain(data: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, kinds in _PLAIN.items():
        if type(data[name]) not in kinds:
            raise DataError(f'model: field "{name}" has the wrong type ({type(data[name]).__name__})')
        values[name] = data[name]
    for name, kinds in _LISTS.items():
        if not isinstance(data[name], list) or any(type(v) not in kinds for v in data[name]):
            raise DataError(f'model: field "{name}" is not a list of its type')
        values[name] = tuple(data[name])
    values["surface"] = Surface.from_json(data["surface"])
    try:
        values["effects"] = tuple(
            Effect(Contrast.from_json(e["contrast"]), Surface.from_json(e["coefficient"]))
            for e in data["effects"]
        )
    except (TypeError, KeyError, LdptreeError) as error:
        raise DataError(f'model: field "effects": {error}') from None
    return values


def _canonical(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")
