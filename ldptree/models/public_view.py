"""A model learned from public features, with how a raw row is read: what a run releases where some features are public.

What lives here: the value (predict, canonical JSON). What does not: what is inside (`histoftree`, `public_features`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ldptree.encoding import Encoding
from ldptree.errors import DataError, LdptreeError
from ldptree.families.curators import MODELS
from ldptree.limits import check_spent
from ldptree.models import model_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.histoftree import HistOfTreeModel
    from ldptree.families.public_features import PublicFeatureModel
    from ldptree.models.description import Description, Evidence

    Floats = NDArray[np.float64]

VERSION = 1
MIDDLE = 0.5
"""What stands for a value that is missing and that no rule fills, as a holder's own does."""
_PLAIN: dict[str, tuple[type, ...]] = {
    "target": (str,),
    "estimator": (str,),
    "epsilon": (int, float),
    "n_private": (int,),
    "questions": (list,),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class ShownModel:
    """A released model of public features.

    Attributes:
        encoding: how a raw row becomes a point of [0, 1]^d.
        target: the label's column.
        private: raw columns that at least one holder protects.
        estimator: one of `ldptree.families.curators.CURATORS`.
        inner: what was learned, on encoded columns.
        epsilon: what a holder spent at most.
        n_private: holders who answered, or could have.
        questions: digests of the questions they answered.

    Raises:
        DataError: the inner model is of another estimator, or epsilon or n_private is impossible.
    """

    KIND: ClassVar[str] = "ldptree model of public features"

    encoding: Encoding
    target: str
    private: tuple[str, ...]
    estimator: str
    inner: HistOfTreeModel | PublicFeatureModel
    epsilon: float
    n_private: int
    questions: tuple[str, ...]

    def __post_init__(self) -> None:
        check_spent("model", self.epsilon, n_private=self.n_private)
        if self.estimator not in MODELS or not isinstance(self.inner, MODELS[self.estimator]):
            raise DataError(f'model: what is inside is not a model of "{self.estimator}"')

    @property
    def columns_needed(self) -> tuple[str, ...]:
        """The raw columns of a row to predict."""
        return self.encoding.columns

    def predict(self, raw: Floats, columns: Sequence[str] | None = None) -> Floats:
        """float64 [n] the label expected of each raw row [n, columns] (see `ldptree.encoding`).

        Raises:
            DataError: a column is absent or the matrix has another number of them.
        """
        names = self.encoding.columns if columns is None else tuple(columns)
        if absent := [name for name in self.encoding.columns if name not in names]:
            raise DataError(f"rows to predict lack the columns {', '.join(absent)}")
        ordered = raw[:, [names.index(name) for name in self.encoding.columns]]
        return self.inner.predict(points_of(self.encoding, ordered))

    def describe(self, evidence: Evidence) -> Description:
        """What it says of itself in numbers: strengths and curves as they were taken of it, the rest of what is inside."""
        from ldptree.models.curves import describe_curves

        inside = self.inner.describe(self.encoding, self.target, evidence)
        curves, strengths = describe_curves(evidence.along, self.encoding, evidence.names)
        return replace(inside, curves=curves, statements=(*inside.statements, *strengths))

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON without the digest itself."""
        return model_json.digest_of(self._to_plain())

    def to_json(self) -> str:
        """The canonical text: sorted keys, its own digest in it."""
        return model_json.written(self._to_plain(), self.digest)

    def _to_plain(self) -> dict[str, Any]:
        return {
            "kind": self.KIND,
            "version": VERSION,
            "encoding": self.encoding.to_json(),
            "private": list(self.private),
            "inner": json.loads(self.inner.to_json()),
        } | {name: list(v) if isinstance(v := getattr(self, name), tuple) else v for name in _PLAIN}

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The model that `to_json` wrote, every part checked anew.

        Raises:
            DataError: not such a model, of an unknown version, a field absent, unknown or of a wrong type, or a digest that is
                not that of the content.
        """
        data = model_json.read(
            text, kind=cls.KIND, version=VERSION, fields=("encoding", "private", "inner", *_PLAIN)
        )
        model_json.check_types(data, _PLAIN)
        if data["estimator"] not in MODELS:
            raise DataError(f"model: estimator {data['estimator']!r} is not known here")
        try:
            inner = MODELS[data["estimator"]].from_json(json.dumps(data["inner"]))
        except LdptreeError as error:
            raise DataError(f"model: {error}") from None
        return cls(
            encoding=Encoding.from_json(data["encoding"]),
            private=_texts(data["private"]),
            inner=inner,
            target=data["target"],
            estimator=data["estimator"],
            epsilon=float(data["epsilon"]),
            n_private=data["n_private"],
            questions=_texts(data["questions"]),
        )


def points_of(encoding: Encoding, raw: Floats) -> Floats:
    """Encoded rows float64 [n, d]; what is missing, and no rule fills, counts as the middle of its range."""
    encoded = encoding.encode(raw).astype(np.float64)
    return np.where(np.isnan(encoded), MIDDLE, encoded)


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or any(type(v) is not str for v in values):
        raise DataError("model: private and questions must be lists of texts")
    return tuple(values)
