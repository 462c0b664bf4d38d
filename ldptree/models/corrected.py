"""The released model of a correction: a public model and what is added to it, cell by cell. How the parts come about is in
`public_models` and `families`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldptree import serialize
from ldptree.encoding import Encoding, Level
from ldptree.errors import DataError
from ldptree.families.corrections import Corrections
from ldptree.inference.discrepancy import DiscrepancyPrior
from ldptree.inference.shares import half_width
from ldptree.limits import check_spent
from ldptree.models import LEVEL, Model, class_columns
from ldptree.models.ensemble import Ensemble
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition
from ldptree.protocol.published_base import NO_SLOPE
from ldptree.public_models.model import answers, n_outputs

if TYPE_CHECKING:
    from ldptree.models.description import Description, Evidence

Floats = NDArray[np.float64]

LEAST_OF_PUBLIC = 0.1
"""The part of a public share that no correction takes away."""

_OWN = (
    "encoding",
    "base",
    "partition",
    "classes",
    "default",
    "target",
    "epsilon",
    "mechanism",
    "n_private",
    "n_public",
    "protocol_digests",
)
_ARRAYS = ("share", "correction", "sd", "observed", "noise_sd", "discrepancy")
"""Of `Corrections`, one number a cell or one a cell and output."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Both parts of the answer to n rows, each float64 [n, M], in the label's unit.

    Attributes:
        public: what the public model alone says.
        correction: what is added.
        sd: how unsure that is.
        hidden: float64 [2, n, M], how much further below and above it may be (`Corrections.hidden`).
        cells: int32 [n], the collection tree's; -1 where a value is missing that no rule fills.
        is_share: whether the outputs are shares of classes.
    """

    public: Floats
    correction: Floats
    sd: Floats
    hidden: Floats
    cells: NDArray[np.int32]
    is_share: bool = False

    @property
    def corrected(self) -> Floats:
        """float64 [n, M]."""
        return add_clipped(self.public, self.correction) if self.is_share else self.public + self.correction

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Ends of what is believed of the outputs, given the public part, not cut to a share's range. Raises ConfigError."""
        half = half_width(level) * self.sd
        return self.corrected - (half + self.hidden[0]), self.corrected + (half + self.hidden[1])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CorrectedModel(Model):
    """A public model corrected by private reports; M outputs as in `PublicModel`.

    Attributes:
        encoding: how a raw row is read.
        base: the public model, on encoded rows.
        partition: the collection tree, on encoded rows.
        corrections: what is added in its cells.
        classes: the C labels, class 1 the positive one where there are two; none for a number.
        default: float64 [M], the answer to a row that cannot be encoded.
        target: the label's column.
        epsilon: what each holder spent, as claimed.
        mechanism: how reports were made, such as "joint oue".
        n_private: holders who reported.
        n_public: public rows.
        protocol_digests: of the question that was answered; or of M questions, one an output.

    Raises:
        DataError: the parts do not fit each other, or epsilon or a count is impossible.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("ldptree corrected model",)
    NAME: ClassVar[str] = "corrected model"

    encoding: Encoding
    base: Ensemble
    partition: Partition
    corrections: Corrections
    classes: tuple[Level, ...]
    default: Floats
    target: str
    epsilon: float
    mechanism: str
    n_private: int
    n_public: int
    protocol_digests: tuple[str, ...]

    def __post_init__(self) -> None:
        d, found = self.encoding.n_encoded, self.corrections
        check_spent("corrected model", self.epsilon, n_private=self.n_private, n_public=self.n_public)
        if max(self.base.feature.max(), self.partition.feature.max()) >= d:
            raise DataError(f"corrected model: a tree tests a column that the encoding's {d} do not have")
        if len(self.classes) == 1 or len(set(self.classes)) != len(self.classes):
            raise DataError("corrected model: classes are at least 2, each once, or none for a number")
        m = n_outputs(len(self.classes))
        n_cells = self.partition.n_leaves
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_ARRAYS, (n_cells, m))
        shapes |= {"share": (n_cells,), "hidden": (2, n_cells, m)}
        for name, shape in shapes.items():
            array: Floats = getattr(found, name)
            if array.shape != shape or np.isnan(array).any():
                raise DataError(f"corrected model: {name} has shape {array.shape} or a NaN, expected {shape}")
            if name != "noise_sd" and not np.isfinite(array).all():
                raise DataError(f"corrected model: {name} is not finite")
            if name in ("share", "sd", "noise_sd", "hidden") and (array < 0).any():
                raise DataError(f"corrected model: {name} is below 0")
        if not 0 <= found.common_sd < math.inf:
            raise DataError(f"corrected model: common_sd is {found.common_sd}, no number from 0 on")
        if not (math.isnan(found.chance_alike) or 0 <= found.chance_alike <= 1):
            raise DataError(f"corrected model: chance_alike is {found.chance_alike}, no chance")
        if self.default.shape != (m,) or not np.isfinite(self.default).all():
            raise DataError(f"corrected model: default has shape {self.default.shape}, expected ({m},)")
        if len(found.priors) != m or len(self.protocol_digests) not in (1, m):
            raise DataError(
                f"corrected model: expected {m} priors, one an output, and one protocol digest or as many"
            )
        if self.base.n_outputs not in ({1, 2} if len(self.classes) == 2 else {m}):
            raise DataError(f"corrected model: the public model has {self.base.n_outputs} outputs, not {m}")
        if not self.classes and self.base.link != "identity":
            raise DataError(
                f'corrected model: the public model\'s link "{self.base.link}" is none of numbers'
            )

    @cached_property
    def raw_tree(self) -> RawTree:
        """The collection tree in raw units."""
        return RawTree.of(self.partition, self.encoding)

    @cached_property
    def columns_needed(self) -> tuple[str, ...]:
        """The raw columns that decide an answer, in the encoding's order: those of some test, and those without a rule."""
        raw_column = np.repeat(self.encoding.columns, [len(f.names) for f in self.encoding.features])
        features = self.base.feature
        tested = raw_column[features[features >= 0]]
        used = {*tested.tolist(), *self.raw_tree.columns_used, *self.encoding.columns_without_rule}
        return tuple(column for column in self.encoding.columns if column in used)

    def cells(self, raw: Floats) -> NDArray[np.int32]:
        """int32 [n] the cell of each raw row [n, columns]; -1 where a value is missing that no rule fills."""
        rows = np.asarray(raw, dtype=np.float64)
        return np.where(self.encoding.encodable(rows), self.raw_tree.apply(rows), np.int32(-1))

    def predict_parts(self, raw: Floats) -> Prediction:
        """Both parts of the answer to raw rows [n, columns].

        A row that cannot be encoded gets `default` from both models, and the largest doubt of any cell.
        """
        rows = np.asarray(raw, dtype=np.float64)
        is_whole = self.encoding.encodable(rows)
        public = np.tile(self.default, (len(rows), 1))
        found = self.corrections
        correction, sd = np.zeros_like(public), np.tile(found.sd.max(axis=0), (len(rows), 1))
        hidden = np.tile(found.hidden.max(axis=1, keepdims=True), (1, len(rows), 1))
        public[is_whole] = answers(self.base, self.encoding.encode(rows[is_whole]), len(self.classes))
        cells = np.where(is_whole, self.raw_tree.apply(rows), np.int32(-1))
        correction[is_whole] = found.correction[cells[is_whole]]
        sd[is_whole] = found.sd[cells[is_whole]]
        hidden[:, is_whole] = found.hidden[:, cells[is_whole]]
        return Prediction(public, correction, sd, hidden, cells, is_share=bool(self.classes))

    def public_answers(self, raw: Floats) -> Floats:
        """float64 [n, M] what the public model alone says of raw rows."""
        return self.predict_parts(raw).public

    def answers(self, raw: Floats) -> Floats:
        """float64 [n, M] the public model's answers, corrected."""
        return self.predict_parts(raw).corrected

    def predict_raw(self, raw: Floats) -> NDArray[Any]:
        """[n] the class index, or the number, expected of each raw row."""
        if self.classes:
            return np.asarray(self.predict_proba(raw).argmax(axis=1))
        return np.asarray(self.answers(raw)[:, 0])

    def predict_proba(self, rows: Any) -> Floats:
        """float64 [n, C] expected class shares of rows (`Model.predict_proba`). Raises DataError, ImportError."""
        return shares_of(self.answers(self.raw_matrix(rows))) if self.classes else super().predict_proba(rows)

    def interval(self, raw: Floats, level: float) -> tuple[Floats, Floats]:
        """The outputs -+ how unsure their corrections are, given the public model's shape in a cell, and what clipping may hide
        of them, each float64 [n, M].

        By how much the public model is off for people like the row, beside its mean error in the cell, is not in them. Of
        shares, not beyond [0, 1].

        Raises:
            ConfigError: `level` is not between 0 and 1.
        """
        low, high = self.predict_parts(raw).interval(level)
        return (np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)) if self.classes else (low, high)

    def predict_columns(self, raw: Floats) -> list[tuple[str, NDArray[Any]]]:
        """What a table of predictions says of raw rows: as any model of its kind of label, and, as "public ...", of its public
        part alone.
        """
        parts = self.predict_parts(raw)
        if not self.classes:
            low, high = parts.interval(LEVEL)
            columns = {
                "prediction": parts.corrected,
                "mean_lower": low,
                "mean_upper": high,
                "public prediction": parts.public,
            }
            return [(name, values[:, 0]) for name, values in columns.items()]
        ours, alone = shares_of(parts.corrected), shares_of(parts.public)
        return [
            *class_columns(self.classes, ours.argmax(axis=1), ours),
            *class_columns(self.classes, alone.argmax(axis=1), alone, "public "),
        ]

    def to_sql(self, table: str = "data", level: float = 0.9) -> str:
        """The model as one SELECT (`corrected_sql.to_sql`)."""
        from ldptree.models.export.corrected_sql import to_sql

        return to_sql(self, table, level)

    def to_dot(self, level: float = 0.9) -> str:
        """The tree of corrections as Graphviz text: what is added to the public model, +- 2 standard deviations, of no level."""
        from ldptree.models.export.dot import to_dot

        trees = "1 tree" if self.base.roots.size == 1 else f"{self.base.roots.size} trees"
        return to_dot(
            self,
            self._described_cells(),
            f"; ± 2 standard deviations; its public model of {trees} is not drawn",
        )

    def to_svg(self, level: float = 0.9) -> str:
        """The tree of corrections as a picture: what is added to the public model, +- 2 standard deviations."""
        from ldptree.models.export.svg import to_svg

        ends = "; ends in brackets hold what clipping may hide, too" if self.corrections.hidden.any() else ""
        return to_svg(
            self,
            self._described_cells(),
            f"Added to the public model’s answer, ± 2 standard deviations{ends}.",
        )

    def _described_cells(self) -> list[str]:
        """What each cell says: a line an output, and the share of people."""
        from ldptree.models.corrected_description import estimate_cells

        if not self.classes:
            names = [self.target]
        else:
            kept = self.classes[1:] if len(self.classes) == 2 else self.classes
            names = [f'share of "{value}"' for value in kept]
        cells = []
        for estimates, share in zip(
            estimate_cells(self.corrections), self.corrections.share.tolist(), strict=True
        ):
            lines = []
            for name, one in zip(names, estimates, strict=True):
                low, high = one.ends
                within = f"± {one.error:.2g}" if one.error is not None else f"({low:+.3g} to {high:+.3g})"
                is_any = one.value or one.sd
                lines.append(f"{name} {one.value:+.3g} {within}" if is_any else f"{name}: no correction")
            cells.append("\n".join([*lines, f"{share:.1%} of people"]))
        return cells

    def describe(self, evidence: Evidence) -> Description:
        """What it says of itself in numbers."""
        from ldptree.models.corrected_description import describe_corrections

        return describe_corrections(self, evidence)

    def summarize(self) -> dict[str, Any]:
        """How much was corrected, as "says"."""
        return {"says": self.corrections.says_of(self.classes)}

    @classmethod
    def text_fields(cls, kind: str) -> tuple[Collection[str], Collection[str]]:
        """Its fields, with those of its corrections in the place of these: `hidden` and `common_sd` where they are not 0,
        `chance_alike` where it is known. Older versions also wrote a slope.
        """
        return (*_OWN, *_ARRAYS, "priors"), ("slope", "hidden", "common_sd", "chance_alike")

    def to_content(self) -> dict[str, Any]:
        """Fields as plain values."""
        found = self.corrections
        content = {name: serialize.plain_value(getattr(self, name)) for name in _OWN}
        content |= {name: serialize.plain_value(getattr(found, name)) for name in _ARRAYS}
        content["priors"] = [[float(p.root), float(p.step), float(p.decay)] for p in found.priors]
        content |= {"hidden": serialize.plain_value(found.hidden)} if found.hidden.any() else {}
        content |= {"common_sd": found.common_sd} if found.common_sd else {}
        return content | ({} if math.isnan(found.chance_alike) else {"chance_alike": found.chance_alike})

    @classmethod
    def of_content(cls, data: Mapping[str, Any]) -> Self:
        """The model from its fields. Raises DataError."""
        if "slope" in data:
            raise DataError(f"{cls.NAME}: {NO_SLOPE}")
        arrays = {name: serialize.numbers(data[name], np.float64, cls.NAME, name) for name in _ARRAYS}
        priors = serialize.numbers(data["priors"], np.float64, cls.NAME, "priors")
        if priors.shape[1:] != (3,):
            raise DataError(f"{cls.NAME}: a prior has root, step and decay")
        return cls(
            corrections=Corrections(
                **arrays,
                hidden=serialize.numbers(data["hidden"], np.float64, cls.NAME, "hidden")
                if "hidden" in data
                else np.zeros((2, *arrays["correction"].shape)),
                priors=tuple(DiscrepancyPrior(root=r, step=s, decay=d) for r, s, d in priors.tolist()),
                common_sd=serialize.typed(float, data.get("common_sd", 0.0), cls.NAME, "common_sd"),
                chance_alike=serialize.typed(float, data["chance_alike"], cls.NAME, "chance_alike")
                if "chance_alike" in data
                else math.nan,
            ),
            **serialize.read_fields(cls, data, _OWN, of=cls.NAME),
        )


def add_clipped(public: Floats, added: Floats) -> Floats:
    """Public shares and what is added to them, float64 [n, M], in [0, 1].

    A correction is that of a whole cell, and a row may be unlike its cell. Of what the public model leaves to a class, or to all
    others, `LEAST_OF_PUBLIC` stays: of two classes no row's log loss rises by more than -ln of that, and the likelier stays so.
    """
    found: Floats = np.maximum(
        np.minimum(public + added, 1.0 - LEAST_OF_PUBLIC * (1.0 - public)), LEAST_OF_PUBLIC * public
    )
    return found


def shares_of(found: Floats) -> Floats:
    """float64 [n, C] shares in [0, 1] that add up to 1, from outputs [n, M] that may lie outside."""
    kept = np.clip(found, 0.0, 1.0)
    if found.shape[1] == 1:
        return np.hstack([1.0 - kept, kept])
    total = np.cumsum(kept, axis=1)[:, -1:]  # in the classes' order, as a database adds them too
    shares: Floats = np.where(total > 0, kept / np.where(total > 0, total, 1.0), 1.0 / found.shape[1])
    return shares
