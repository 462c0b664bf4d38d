"""A model learned from public features, with the rules for raw rows, as a run with such features releases it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldptree import serialize
from ldptree.encoding import Encoding
from ldptree.errors import ConfigError, DataError, LdptreeError
from ldptree.limits import check_spent
from ldptree.models import Model
from ldptree.models.curves import describe_curves
from ldptree.models.histoftree import HistOfTreeModel
from ldptree.models.public_features import PublicFeatureModel

if TYPE_CHECKING:
    from ldptree.models.description import Description, Evidence

Floats = NDArray[np.float64]

SPREADS = 20.0
"""The label's range is about so many typical differences wide."""
MODELS: dict[str, type[HistOfTreeModel] | type[PublicFeatureModel]] = {
    model.ESTIMATOR: model for model in (HistOfTreeModel, PublicFeatureModel)
}
"""What is inside, by the name of the estimator that learned it."""

MIDDLE = 0.5
"""What stands for a value that is missing and that no rule fills, as a holder's own does."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PublicViewModel(Model):
    """A released model of public features.

    Attributes:
        encoding: how a raw row becomes a point of [0, 1]^d.
        target: the label's column.
        private: raw columns that at least one holder protects.
        estimator: the name of what learned it, of `MODELS`.
        inner: what was learned, on encoded columns.
        epsilon: what a holder spent at most.
        n_private: holders who answered, or could have.
        questions: digests of the questions they answered.

    Raises:
        DataError: the inner model is of another estimator, or epsilon or n_private is impossible.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("ldptree model of public features",)

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

    def predict_raw(self, raw: Floats, columns: Sequence[str] | None = None) -> Floats:
        """float64 [n] the label expected of each raw row [n, columns] (see `ldptree.encoding`).

        Raises:
            DataError: a column is absent or the matrix has another number of them.
        """
        names = self.encoding.columns if columns is None else tuple(columns)
        if absent := [name for name in self.encoding.columns if name not in names]:
            raise DataError(f"rows to predict lack the columns {', '.join(absent)}")
        ordered = raw[:, [names.index(name) for name in self.encoding.columns]]
        return self.inner.predict(points_of(self.encoding, ordered))

    def predict_columns(self, raw: Floats) -> list[tuple[str, NDArray[Any]]]:
        """Return the columns of a table of predictions of raw rows, with the label expected of each."""
        return [("prediction", self.predict_raw(raw))]

    def describe(self, evidence: Evidence) -> Description:
        """Describe the model in numbers, with the strengths and curves taken of it, and the rest of what is inside."""
        inside = self.inner.describe(self.encoding, self.target, evidence)
        curves, strengths = describe_curves(evidence.along, self.encoding, evidence.names)
        low, high = evidence.label_range or (0.0, SPREADS)
        return replace(
            inside,
            curves=curves,
            statements=(*inside.statements, *strengths),
            spread=(high - low) / SPREADS,
        )

    def _repr_html_(self) -> str:
        """Return its line, and its answer along each raw column, for a notebook."""
        from ldptree.models.curves import draw_alone

        return draw_alone(str(self), self.inner, self.encoding)

    def to_sql(self, table: str = "data", level: float = 0.9) -> str:
        """Refuse SQL, as the model is not one tree. Raises ConfigError."""
        raise self._not_one_tree("sql")

    def to_dot(self, level: float = 0.9) -> str:
        """Refuse Graphviz text, as the model is not one tree. Raises ConfigError."""
        raise self._not_one_tree("dot")

    def _not_one_tree(self, to: str) -> ConfigError:
        return ConfigError(
            f"--to {to}: a {self.estimator} model is not one tree; write json, or use ldptree predict"
        )

    def to_content(self) -> dict[str, Any]:
        """Its fields as plain values; the inner model's text as values, too."""
        return serialize.to_plain(self) | {"inner": json.loads(self.inner.to_json())}

    @classmethod
    def of_content(cls, data: Mapping[str, Any]) -> Self:
        """The model from its fields. Raises DataError."""
        names = [name for name in serialize.field_types(cls) if name != "inner"]
        values = serialize.read_fields(cls, data, names, of=cls.NAME)
        if values["estimator"] not in MODELS:
            raise DataError(f"model: estimator {values['estimator']!r} is not known here")
        try:
            inner = MODELS[values["estimator"]].from_data(data["inner"])
        except LdptreeError as error:
            raise DataError(f"model: {error}") from None
        return cls(**values, inner=inner)


def points_of(encoding: Encoding, raw: Floats) -> Floats:
    """Encoded rows float64 [n, d]; what is missing, and no rule fills, counts as the middle of its range."""
    encoded = encoding.encode(raw).astype(np.float64)
    return np.where(np.isnan(encoded), MIDDLE, encoded)
