"""The released model of a correction, a public model and what is added to it, cell by cell. The parts are made in
`public_models` and `families`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldptree import serialize
from ldptree.encoding import Encoding, Level
from ldptree.errors import DataError
from ldptree.families.correction_plan import CorrectionPlan, PublicSummary
from ldptree.families.corrections import PUBLIC_MODEL, Corrections, own_weights, sd_of_means, unclip_means
from ldptree.families.stumps import Stump
from ldptree.inference.discrepancy import DiscrepancyPrior
from ldptree.inference.shares import half_width, raised
from ldptree.limits import check_spent
from ldptree.models import LEVEL, Model, class_columns
from ldptree.models.description import (
    Basis,
    Cell,
    Description,
    Estimate,
    Evidence,
    Statement,
    build_tree,
    describe_strengths,
    find_conditions,
    name_level,
    share_below,
)
from ldptree.models.effects import columns_of, importance
from ldptree.models.ensemble import Ensemble
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition
from ldptree.public_models.model import answers, n_outputs

Floats = NDArray[np.float64]

LEAST_OF_PUBLIC = 0.1
"""The part of a public share that no correction takes away."""

STRENGTH_ROWS = 500
"""Public rows over which the strengths of columns are taken."""
MOSTLY = 0.5
"""A correction rests on a cell's own reports where these bring this share of it."""

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
        rows: float64 [n], about how many public rows and reports are behind the answer.
        cells: int32 [n], the collection tree's; -1 where a value is missing that no rule fills.
        is_share: whether the outputs are shares of classes.
        ends: within which numbers stay; None: anywhere.
    """

    public: Floats
    correction: Floats
    sd: Floats
    hidden: Floats
    rows: Floats
    cells: NDArray[np.int32]
    is_share: bool = False
    ends: tuple[float, float] | None = None

    @property
    def corrected(self) -> Floats:
        """float64 [n, M]."""
        if self.is_share:
            return add_clipped(self.public, self.correction)
        return self._within(self.public + self.correction)

    def shares(self, outputs: Floats) -> Floats:
        """float64 [n, C] chances of the classes, of either part's outputs; none is 0 or 1."""
        return raised(shares_of(outputs), self.rows)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Ends of what is believed of the outputs, given the public part, not cut to a share's range. Raises ConfigError."""
        half = half_width(level) * self.sd
        low, high = self.corrected - (half + self.hidden[0]), self.corrected + (half + self.hidden[1])
        return self._within(low), self._within(high)

    def _within(self, outputs: Floats) -> Floats:
        return outputs if self.ends is None else np.clip(outputs, *self.ends)


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
        label_range: within which predictions of a number stay; None: anywhere.
        stumps: what is added beside the corrections of cells, where the model has one output.

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
    label_range: tuple[float, float] | None = None
    stumps: tuple[Stump, ...] = ()

    def __post_init__(self) -> None:
        d, corrections = self.encoding.n_encoded, self.corrections
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
            array: Floats = getattr(corrections, name)
            if array.shape != shape or np.isnan(array).any():
                raise DataError(f"corrected model: {name} has shape {array.shape} or a NaN, expected {shape}")
            if name != "noise_sd" and not np.isfinite(array).all():
                raise DataError(f"corrected model: {name} is not finite")
            if name in ("share", "sd", "noise_sd", "hidden") and (array < 0).any():
                raise DataError(f"corrected model: {name} is below 0")
        if not 0 <= corrections.common_sd < math.inf:
            raise DataError(f"corrected model: common_sd is {corrections.common_sd}, no number from 0 on")
        if not (math.isnan(corrections.chance_alike) or 0 <= corrections.chance_alike <= 1):
            raise DataError(f"corrected model: chance_alike is {corrections.chance_alike}, no chance")
        for stump in self.stumps:
            numbers = stump.shift, stump.sd, stump.contrast.threshold, *stump.balance.ravel()
            if m > 1 or stump.balance.shape != (n_cells,) or not np.isfinite(numbers).all() or stump.sd < 0:
                raise DataError("corrected model: a stump does not fit the cells, or its sd is below 0")
            if not 0 <= stump.contrast.feature < d:
                raise DataError(
                    f"corrected model: a stump tests a column that the encoding's {d} do not have"
                )
        if self.default.shape != (m,) or not np.isfinite(self.default).all():
            raise DataError(f"corrected model: default has shape {self.default.shape}, expected ({m},)")
        if len(corrections.priors) != m or len(self.protocol_digests) not in (1, m):
            raise DataError(
                f"corrected model: expected {m} priors, one an output, and one protocol digest or as many"
            )
        if self.base.n_outputs not in ({1, 2} if len(self.classes) == 2 else {m}):
            raise DataError(f"corrected model: the public model has {self.base.n_outputs} outputs, not {m}")
        if self.label_range and (
            self.classes or not -math.inf < self.label_range[0] < self.label_range[1] < math.inf
        ):
            raise DataError("corrected model: label_range is no low and high end of a number")
        if not self.classes and self.base.link != "identity":
            raise DataError(
                f'corrected model: the public model\'s link "{self.base.link}" is none of numbers'
            )

    @cached_property
    def raw_tree(self) -> RawTree:
        """The collection tree in raw units."""
        return RawTree.of(self.partition, self.encoding)

    @cached_property
    def stumps_in_raw(self) -> tuple[tuple[RawTree, Stump], ...]:
        """The stumps, each behind its halves in raw units; cell 1 is above."""
        return tuple((RawTree.of(stump.contrast.partition, self.encoding), stump) for stump in self.stumps)

    @cached_property
    def in_cells(self) -> Floats:
        """float64 [L, M], what is added to the public model in each cell before stumps are."""
        made = self.corrections.correction
        for stump in self.stumps:
            made = made - stump.shift * stump.balance[:, None]
        return made

    @cached_property
    def row_sd(self) -> Floats:
        """float64 [L, M], how unsure what is added to a row is: the correction of its cell and the stumps together.

        In a cell that a stump's halves do not part evenly, as of a row in the smaller one.
        """
        of_stumps = [stump.sd * (1.0 + np.abs(stump.balance)) for stump in self.stumps]
        made: Floats = np.hypot(self.corrections.sd, np.sqrt(np.sum(np.square(of_stumps), axis=0))[..., None])
        return made

    def add_in(self, cells: NDArray[np.int32], X: NDArray[np.float32]) -> Floats:
        """float64 [n, M], what is added to the public model's answers to encoded rows [n, d] in these cells."""
        added = self.in_cells[cells]
        for stump in self.stumps:
            added = added + stump.shift * stump.contrast.signs(X)[:, None]
        return added

    @cached_property
    def columns_needed(self) -> tuple[str, ...]:
        """Return the raw columns that decide an answer, in order, which are tested or have no rule."""
        raw_column = np.repeat(self.encoding.columns, [len(f.names) for f in self.encoding.features])
        features = self.base.feature
        tested = raw_column[features[features >= 0]]
        used = {*tested.tolist(), *self.encoding.columns_without_rule}
        used.update(
            *(tree.columns_used for tree in (self.raw_tree, *(tree for tree, _ in self.stumps_in_raw)))
        )
        return tuple(column for column in self.encoding.columns if column in used)

    @cached_property
    def rows_behind(self) -> Floats:
        """float64 [cells + 1], about how many public rows and reports are behind each cell, and behind the whole model."""
        return np.append(self.corrections.share, 1.0) * (self.n_private + self.n_public)

    def cells(self, raw: Floats) -> NDArray[np.int32]:
        """int32 [n] the cell of each raw row [n, columns]; -1 where a value is missing that no rule fills."""
        return self.raw_tree.cells(np.asarray(raw, dtype=np.float64))

    def predict_parts(self, raw: Floats) -> Prediction:
        """Both parts of the answer to raw rows [n, columns].

        A row that cannot be encoded gets `default` from both models, and the largest doubt of any cell.
        """
        rows = np.asarray(raw, dtype=np.float64)
        is_whole = self.encoding.encodable(rows)
        public = np.tile(self.default, (len(rows), 1))
        corrections = self.corrections
        correction, sd = np.zeros_like(public), np.tile(self.row_sd.max(axis=0), (len(rows), 1))
        hidden = np.tile(corrections.hidden.max(axis=1, keepdims=True), (1, len(rows), 1))
        encoded = self.encoding.encode(rows[is_whole])
        public[is_whole] = answers(self.base, encoded, len(self.classes))
        if self.label_range is not None:
            public = np.clip(public, *self.label_range)
        cells = self.raw_tree.cells(rows)
        correction[is_whole] = self.add_in(cells[is_whole], encoded)
        sd[is_whole] = self.row_sd[cells[is_whole]]
        hidden[:, is_whole] = corrections.hidden[:, cells[is_whole]]
        behind, is_share = self.rows_behind[cells], bool(self.classes)
        return Prediction(
            public, correction, sd, hidden, behind, cells, is_share=is_share, ends=self.label_range
        )

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
        if not self.classes:
            return super().predict_proba(rows)
        parts = self.predict_parts(self.raw_matrix(rows))
        return parts.shares(parts.corrected)

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
        """Return the columns of a table of predictions of raw rows, as any model of its kind of label, and, as "public
        ...", of its public part alone.
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
        ours, alone = parts.shares(parts.corrected), parts.shares(parts.public)
        return [
            *class_columns(self.classes, ours.argmax(axis=1), ours),
            *class_columns(self.classes, alone.argmax(axis=1), alone, "public "),
        ]

    def to_sql(self, table: str = "data", level: float = 0.9) -> str:
        """The model as one SELECT over a table, with both parts of its answers (`corrected_sql.to_sql`). Raises ConfigError."""
        from ldptree.models.export.corrected_sql import Parts, to_sql

        corrections = self.corrections
        parts = Parts(
            tree=self.raw_tree,
            base=self.base,
            columns=self.columns_needed,
            classes=self.classes,
            default=self.default,
            correction=self.in_cells,
            stumps=[(tree, stump.shift) for tree, stump in self.stumps_in_raw],
            sd=self.row_sd,
            hidden=corrections.hidden,
            rows=self.rows_behind,
            least_of_public=LEAST_OF_PUBLIC,
            ends=self.label_range,
        )
        about = (
            f"Scores rows by the model {self.digest[:12]} of ldptree: a public model of {self._trees}, corrected in "
            f"{self.partition.n_leaves} cells"
        )
        return to_sql(parts, about=about, table=table, level=level)

    def to_dot(self, level: float = 0.9) -> str:
        """Return the tree of corrections as Graphviz text, +- 2 standard deviations, whatever `level`."""
        from ldptree.models.export.drawing import to_dot

        trees = f"its public model of {self._trees} is not drawn"
        about = f"The model {self.digest[:12]} of ldptree; ± 2 standard deviations{self._beside}; {trees}"
        return to_dot(self.raw_tree, self._described_cells(), about)

    def to_svg(self, level: float = 0.9) -> str:
        """Return the tree of corrections as a picture, +- 2 standard deviations."""
        from ldptree.models.export.drawing import to_svg

        ends = "; ends in brackets hold what clipping may hide, too" if self.corrections.hidden.any() else ""
        note = f"Added to the public model’s answer, ± 2 standard deviations{ends}{self._beside}."
        return to_svg(self.raw_tree, self._described_cells(), target=self.target, note=note)

    @property
    def _further(self) -> str:
        """Say by how much corrections differ within a cell."""
        return ", ".join(
            f"by {2.0 * stump.shift:+.3g} where {tree.branches(0)[1]}" for tree, stump in self.stumps_in_raw
        )

    @property
    def _beside(self) -> str:
        """The same in a drawing's note; nothing without stumps."""
        return f"; within a cell corrections differ further, {self._further}" if self.stumps else ""

    def says_of(self, classes: Sequence[object], *, base: str = PUBLIC_MODEL) -> str:
        """Say in a line what was found; arguments as of `Corrections.says_of`."""
        says = self.corrections.says_of(classes, base=base)
        return f"{says} Within a cell corrections differ further, {self._further}." if self.stumps else says

    @property
    def _trees(self) -> str:
        return "1 tree" if self.base.roots.size == 1 else f"{self.base.roots.size} trees"

    def _described_cells(self) -> list[str]:
        """Describe each cell in a line for each output, with the share of people."""
        if not self.classes:
            names = [self.target]
        else:
            kept = self.classes[1:] if len(self.classes) == 2 else self.classes
            names = [f'share of "{value}"' for value in kept]
        cells = []
        for estimates, share in zip(
            _estimate_cells(self.corrections), self.corrections.share.tolist(), strict=True
        ):
            lines = []
            for name, estimate in zip(names, estimates, strict=True):
                low, high = estimate.ends
                within = (
                    f"± {estimate.error:.2g}"
                    if estimate.error is not None
                    else f"({low:+.3g} to {high:+.3g})"
                )
                is_any = estimate.value or estimate.sd
                lines.append(f"{name} {estimate.value:+.3g} {within}" if is_any else f"{name}: no correction")
            cells.append("\n".join([*lines, f"{share:.1%} of people"]))
        return cells

    def describe(self, evidence: Evidence) -> Description:
        """Describe the model in numbers."""
        return _describe(self, evidence)

    def summarize(self) -> dict[str, Any]:
        """Return how much was corrected, as "says"."""
        return {"says": self.says_of(self.classes)}

    @classmethod
    def text_fields(cls, kind: str) -> tuple[Collection[str], Collection[str]]:
        """Return its text fields, with those of its corrections in their place. `hidden` and `common_sd` are optional
        if 0, `chance_alike` and `label_range` if not known, and `stumps` if there are none.
        """
        return (*_OWN, *_ARRAYS, "priors"), ("hidden", "common_sd", "chance_alike", "label_range", "stumps")

    def to_content(self) -> dict[str, Any]:
        """Fields as plain values."""
        corrections = self.corrections
        content = {name: serialize.plain_value(getattr(self, name)) for name in _OWN}
        content |= {name: serialize.plain_value(getattr(corrections, name)) for name in _ARRAYS}
        content["priors"] = [[float(p.root), float(p.step), float(p.decay)] for p in corrections.priors]
        content |= {"hidden": serialize.plain_value(corrections.hidden)} if corrections.hidden.any() else {}
        content |= {"common_sd": corrections.common_sd} if corrections.common_sd else {}
        content |= {} if self.label_range is None else {"label_range": list(self.label_range)}
        content |= {"stumps": serialize.plain_value(self.stumps)} if self.stumps else {}
        return content | (
            {} if math.isnan(corrections.chance_alike) else {"chance_alike": corrections.chance_alike}
        )

    @classmethod
    def of_content(cls, data: Mapping[str, Any]) -> Self:
        """The model from its fields. Raises DataError."""
        arrays = {name: serialize.numbers(data[name], np.float64, cls.NAME, name) for name in _ARRAYS}
        priors = serialize.numbers(data["priors"], np.float64, cls.NAME, "priors")
        if priors.shape[1:] != (3,):
            raise DataError(f"{cls.NAME}: a prior has root, step and decay")
        own = (*_OWN, *(name for name in ("label_range", "stumps") if name in data))
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
            **serialize.read_fields(cls, data, own, of=cls.NAME),
        )


def add_clipped(public: Floats, added: Floats) -> Floats:
    """Public shares and what is added to them, float64 [n, M], in [0, 1].

    A correction is that of a whole cell, and a row may be unlike its cell. Of what the public model leaves to a class, or to all
    others, `LEAST_OF_PUBLIC` stays: of two classes no row's log loss rises by more than -ln of that, and the likelier stays so.
    """
    sums: Floats = np.maximum(
        np.minimum(public + added, 1.0 - LEAST_OF_PUBLIC * (1.0 - public)), LEAST_OF_PUBLIC * public
    )
    return sums


def shares_of(outputs: Floats) -> Floats:
    """float64 [n, C] shares in [0, 1] that add up to 1, from outputs [n, M] that may lie outside."""
    kept = np.clip(outputs, 0.0, 1.0)
    if outputs.shape[1] == 1:
        return np.hstack([1.0 - kept, kept])
    total = np.cumsum(kept, axis=1)[:, -1:]  # in the classes' order, as a database adds them too
    shares: Floats = np.where(total > 0, kept / np.where(total > 0, total, 1.0), 1.0 / outputs.shape[1])
    return shares


def _describe(model: CorrectedModel, evidence: Evidence) -> Description:
    """Corrections of every output; `evidence` has what public rows say of the question, and these rows, encoded."""
    assert evidence.rows is not None
    public: PublicSummary = evidence.public
    corrections, tree, names = model.corrections, model.partition, evidence.names
    classes = tuple(name_level(model.target, value, names) for value in model.classes)
    outputs = classes[1:] if len(classes) == 2 else classes or (model.target,)
    answered = _corrected_answers(model, public, evidence.rows)
    estimates = _estimates(*_averages(model, public.plan))
    return Description(
        figure="correction",
        outputs=outputs,
        tree=build_tree(tree, model.raw_tree, names, share_below(tree, corrections.share), estimates),
        cells=_cells(model, public, answered, evidence),
        statements=(
            *_statements(model, public, answered, outputs),
            *_stumps(model),
            *_strengths(model, evidence.rows),
        ),
        is_found=not corrections.has_no_effect,
        is_particular=None if math.isnan(corrections.chance_alike) else corrections.is_particular,
        chance_alike=None if math.isnan(corrections.chance_alike) else float(corrections.chance_alike),
        chance=float(corrections.chance),
        says=model.says_of(model.classes),
        spread=public.plan.range.half / 2,
    )


def _estimate_cells(corrections: Corrections) -> list[tuple[Estimate, ...]]:
    """The corrections of each cell, one an output."""
    return _estimates(corrections.correction, corrections.sd, corrections.hidden)


def _estimates(values: Floats, sds: Floats, hidden: Floats) -> list[tuple[Estimate, ...]]:
    """A tuple for each row of values [n, M] and sds [n, M], with what is hidden below and above, [2, n, M]."""
    rows = zip(values.tolist(), sds.tolist(), *hidden.tolist(), strict=True)
    return [
        tuple(Estimate(value=v, sd=s, below=b, above=a) for v, s, b, a in zip(*row, strict=True))
        for row in rows
    ]


def _stumps(model: CorrectedModel) -> list[Statement]:
    """State by how much more is added above each stump than below, the clearest first."""
    return [
        Statement(
            kind="stump",
            about=tree.branches(0)[1],
            figures={"apart": 2.0 * stump.shift, "apart_sd": 2.0 * stump.sd},
        )
        for tree, stump in sorted(
            model.stumps_in_raw, key=lambda pair: -abs(pair[1].shift) / max(pair[1].sd, 1e-300)
        )
    ]


def _strengths(model: CorrectedModel, rows: NDArray[np.float32]) -> tuple[Statement, ...]:
    """Return the share of each column in the corrected answers, over public rows; of several outputs on average by variance."""
    if not len(rows):
        return ()
    some = rows[np.unique(np.linspace(0, len(rows) - 1, STRENGTH_ROWS).astype(np.intp))].astype(np.float64)
    parts = np.zeros(len(model.encoding.columns))
    for output in range(model.corrections.correction.shape[1]):

        def answer(at: Floats, output: int = output) -> Floats:
            encoded = at.astype(np.float32)
            public = answers(model.base, encoded, len(model.classes))[:, output]
            return np.asarray(public + model.add_in(model.partition.apply(encoded), encoded)[:, output])

        parts += float(answer(some).var()) * importance(answer, some, columns_of(model.encoding))
    total = float(parts.sum())
    if not total > 0:
        return ()
    return describe_strengths(dict(zip(model.encoding.columns, (parts / total).tolist(), strict=True)))


def _corrected_answers(model: CorrectedModel, public: PublicSummary, rows: NDArray[np.float32]) -> Floats:
    """The corrected model's mean answer over the public rows of each cell, [cells, M].

    A share is corrected row by row, and no further than its range, so that the mean may move by less than the correction.
    """
    correction = model.corrections.correction
    if not model.classes:
        return np.asarray(public.answer + correction)
    rows_behind = model.rows_behind
    means = _shares(add_clipped(public.answer, correction), rows_behind[:-1])
    if model.base.feature.size == 1 or not len(rows):
        return means
    cells, count = model.partition.apply(rows), public.plan.public_count
    corrected = add_clipped(answers(model.base, rows, len(model.classes)), model.add_in(cells, rows))
    shares = _shares(corrected, rows_behind[cells])
    sums = np.stack([np.bincount(cells, weights=column, minlength=len(count)) for column in shares.T], axis=1)
    is_met = count > 0
    means[is_met] = sums[is_met] / count[is_met][:, None]
    return means


def _shares(outputs: Floats, rows: Floats) -> Floats:
    """Return the answers for outputs [n, M] with so many rows behind them: of two classes the second one's share, [n, M]."""
    shares = raised(shares_of(outputs), rows)
    return shares[:, 1:] if outputs.shape[1] == 1 else shares


def _cells(
    model: CorrectedModel, public: PublicSummary, answered: Floats, evidence: Evidence
) -> tuple[Cell, ...]:
    corrections, counts = model.corrections, public.plan.public_count
    weight = own_weights(public.plan, corrections).max(axis=1)
    outputs, estimates = range(corrections.correction.shape[1]), _estimate_cells(corrections)
    made = []
    for cell, node in enumerate(model.partition.leaves.tolist()):
        # without public rows in the cell, what the public model says there is known of a constant alone
        is_met = bool(counts[cell] > 0 or model.base.feature.size == 1)
        made.append(
            Cell(
                path=find_conditions(model.partition, model.raw_tree, node, evidence.names),
                share=float(corrections.share[cell]),
                public_share=float(counts[cell] / max(public.n_public, 1)),
                rests_on=_basis(model, cell, float(weight[cell])),
                private_weight=float(weight[cell]),
                estimates=estimates[cell],
                # noise wider than the range: the reports of the cell alone say nothing at all
                reports=tuple(
                    Estimate(
                        value=float(corrections.observed[cell, m]), sd=float(corrections.noise_sd[cell, m])
                    )
                    if corrections.noise_sd[cell, m] < 2 * public.plan.range.half
                    else None
                    for m in outputs
                ),
                public=tuple(
                    Estimate(value=float(public.answer[cell, m])) if is_met else None for m in outputs
                ),
                answers=tuple(float(answered[cell, m]) for m in outputs) if is_met else (),
            )
        )
    return tuple(made)


def _basis(model: CorrectedModel, cell: int, weight: float) -> Basis:
    if not model.corrections.correction[cell].any() and not weight:
        return "public"
    return "private" if weight >= MOSTLY else "neighbours"


def _averages(model: CorrectedModel, plan: CorrectionPlan) -> tuple[Floats, Floats, Floats]:
    """Mean correction of every node over the private people below, its standard deviation, each [nodes, M], and what is hidden of
    it, [2, nodes, M].
    """
    tree, corrections = model.partition, model.corrections
    weights = np.zeros((tree.n_nodes, tree.n_leaves))
    cells, nodes = tree.paths()
    weights[nodes, cells] = corrections.share[cells]
    weights /= weights.sum(axis=1, keepdims=True)
    shape = tree.n_nodes, corrections.sd.shape[1]
    mean, spread, hidden = np.empty(shape), np.empty(shape), np.empty((2, *shape))
    mean[tree.leaves], spread[tree.leaves], hidden[:, tree.leaves] = (
        corrections.correction,
        corrections.sd,
        corrections.hidden,
    )
    inner = np.setdiff1d(np.arange(tree.n_nodes), tree.leaves)
    if inner.size:
        read, sd = plan.range.as_read(corrections.correction), sd_of_means(plan, corrections, weights[inner])
        mean[inner], spread[inner], hidden[:, inner] = unclip_means(plan.range, read, sd, weights[inner])
    return mean, spread, hidden


def _statements(
    model: CorrectedModel, public: PublicSummary, answered: Floats, outputs: tuple[str, ...]
) -> list[Statement]:
    """State the size of the public model, its mean answer over private people before and after, and the share of them in cells
    whose residuals are mostly beyond the range of a report.
    """
    n_trees = 0 if model.base.feature.size == 1 else int(model.base.roots.size)
    statements = [Statement(kind="public model", figures={"trees": float(n_trees)})]
    is_beyond = (public.plan.range.beyond(model.corrections.correction) > 0).any(axis=1)
    if is_beyond.any():
        share = float(model.corrections.share[is_beyond].sum())
        statements.append(Statement(kind="beyond the range", figures={"share": share}))
    if model.base.feature.size == 1 or public.plan.public_count.all():
        before, after = model.corrections.share @ public.answer, model.corrections.share @ answered
        statements += [
            Statement(kind="mean prediction", about=name, figures={"before": float(b), "after": float(a)})
            for name, b, a in zip(outputs, before, after, strict=True)
        ]
    return statements
