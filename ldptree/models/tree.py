"""The released model of one tree: for every node what is believed of the label, a class or a number, why, and how surely.

A node has M estimates: of two classes the margin of class 1, of more one margin each, class against the rest (a margin is a share
less 1/C); of a number its mean. How it comes about is in `families`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ldptree import serialize
from ldptree.encoding import Encoding, Level, NumericFeature
from ldptree.errors import DataError
from ldptree.inference.shares import half_width
from ldptree.limits import check_spent
from ldptree.models import LEVEL, Model, class_columns
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import LEAF, Partition

if TYPE_CHECKING:
    from ldptree.models.description import Description, Evidence

Floats: TypeAlias = NDArray[np.float64]

MOSTLY = 0.9
"""A node rests on one kind of evidence alone where that brings this share of the precision."""
_IN_COMMON = (
    "encoding",
    "partition",
    "target",
    "outside",
    "private_share",
    "decided_at",
    "prune",
    "lam",
    "lam_used",
    "epsilon",
    "mechanism",
    "n_private",
    "n_public",
    "protocol_digest",
)


@dataclass(frozen=True)
class ClassLabel:
    """A label that is one of C classes.

    Attributes:
        classes: with two, class 1 is the positive one.

    Raises:
        DataError: fewer than two classes.
    """

    KIND: ClassVar[str] = "ldptree model"
    COLUMNS: ClassVar[Mapping[str, tuple[str, int | None]]] = {
        name: (name.replace("margin", "estimate"), None)
        for name in (
            "decision",
            "probability",
            "margin",
            "margin_sd",
            "noise_sd",
            "discrepancy",
            "discrepancy_sd",
            "mean_discrepancy",
            "mean_discrepancy_sd",
            "private_total",
            "public_total",
        )
    }
    """In its text, which array of the model, and which of its columns, stands under a name."""
    TEXT: ClassVar[tuple[str, ...]] = ("classes",)
    """Its own fields in a text."""
    WHOLE: ClassVar[frozenset[str]] = frozenset()
    """Arrays that are whole numbers in a text and not in the model."""

    classes: tuple[Level, ...]

    def __post_init__(self) -> None:
        if len(self.classes) < 2:
            raise DataError(f"model: {len(self.classes)} classes; a classifier has at least 2")

    @property
    def n_outputs(self) -> int:
        """M."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def people(self, total: NDArray[Any]) -> NDArray[Any]:
        """[nodes] how many there are, of totals [nodes, T]."""
        return np.asarray(total.sum(axis=1))

    def to_text(self) -> dict[str, Any]:
        """What stands of it in a model's text."""
        return {"classes": list(self.classes)}

    @classmethod
    def of_text(cls, data: Mapping[str, Any]) -> Self:
        """The label in a model's text. Raises DataError."""
        return cls(**serialize.read_fields(cls, data, of="model"))

    def answers(self, model: TreeModel[Any]) -> NDArray[Any]:
        """[nodes] the class index that each node predicts."""
        return model.decision

    def interval(self, model: TreeModel[Any], level: float) -> tuple[Floats, Floats]:
        """Ends of what is believed of the shares, each [nodes, C], in [0, 1] and around `probability`."""
        c = len(self.classes)
        low, high = (end + 1.0 / c for end in model.estimate_interval(level))
        if c == 2:
            low, high = np.hstack([1.0 - high, low]), np.hstack([1.0 - low, high])
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        return np.minimum(low, model.probability), np.maximum(high, model.probability)

    def describe_answers(self, model: TreeModel[Any], level: float) -> list[str]:
        """What each node answers, in two lines."""
        low, high = self.interval(model, level)
        each = enumerate(model.decision)
        return [
            f"predicts {self.classes[k]}\nchance {model.probability[node, k]:.3f} ({low[node, k]:.3f} to {high[node, k]:.3f})"
            for node, k in each
        ]

    def describe(self, model: TreeModel[Any], evidence: Evidence) -> Description:
        """What a model of it says of itself in numbers."""
        from ldptree.models.tree_description import describe_classes

        return describe_classes(model, evidence)

    def named_answers(self, model: TreeModel[Any]) -> list[tuple[str, NDArray[Any]]]:
        """[nodes] the class that each node predicts, as text, and the probability of each class."""
        return [*class_columns(self.classes, model.decision, model.probability)]


@dataclass(frozen=True)
class NumberLabel:
    """A label that is a number, in its own unit.

    Attributes:
        range: ends of the range that private labels were moved into.
        sd: standard deviation of one person's label within a cell, from public rows.

    Raises:
        DataError: the range is none, or a number is not finite.
    """

    KIND: ClassVar[str] = "ldptree regression model"
    COLUMNS: ClassVar[Mapping[str, tuple[str, int | None]]] = {
        "value": ("estimate", 0),
        "value_sd": ("estimate_sd", 0),
        "noise_sd": ("noise_sd", 0),
        "discrepancy": ("discrepancy", 0),
        "discrepancy_sd": ("discrepancy_sd", 0),
        "mean_discrepancy": ("mean_discrepancy", 0),
        "mean_discrepancy_sd": ("mean_discrepancy_sd", 0),
        "private_count": ("private_total", 0),
        "private_sum": ("private_total", 1),
        "public_count": ("public_total", 0),
        "public_sum": ("public_total", 1),
    }
    TEXT: ClassVar[tuple[str, ...]] = ("label_range", "label_sd")
    WHOLE: ClassVar[frozenset[str]] = frozenset({"public_count"})
    classes: ClassVar[tuple[Level, ...]] = ()
    n_outputs: ClassVar[int] = 1

    range: tuple[float, float]
    sd: float

    def __post_init__(self) -> None:
        if len(self.range) != 2 or not self.range[0] < self.range[1]:
            raise DataError("model: label_range is not a low end and a high end")
        if not np.isfinite((*self.range, self.sd)).all():
            raise DataError("model: label_range and label_sd are finite numbers")

    def people(self, total: NDArray[Any]) -> NDArray[Any]:
        """[nodes] how many there are, of totals [nodes, T]."""
        return total[:, 0]

    def to_text(self) -> dict[str, Any]:
        """What stands of it in a model's text."""
        return {"label_range": list(self.range), "label_sd": self.sd}

    @classmethod
    def of_text(cls, data: Mapping[str, Any]) -> Self:
        """The label in a model's text. Raises DataError."""
        kinds = serialize.field_types(cls)
        return cls(
            *(serialize.typed(kinds[name], data[f"label_{name}"], "model", f"label_{name}") for name in kinds)
        )

    def answers(self, model: TreeModel[Any]) -> NDArray[Any]:
        """[nodes] the number that each node predicts."""
        return model.estimate[:, 0]

    def interval(self, model: TreeModel[Any], level: float) -> tuple[Floats, Floats]:
        """Ends of what is believed of each node's mean, each [nodes, 1], within the range."""
        low, high = (np.clip(end, *self.range) for end in model.estimate_interval(level))
        return low, high

    def describe_answers(self, model: TreeModel[Any], level: float) -> list[str]:
        """What each node answers, in two lines."""
        low, high = self.interval(model, level)
        each = zip(model.estimate[:, 0], low[:, 0], high[:, 0], strict=True)
        return [f"{model.target} = {value:.5g}\n{a:.5g} to {b:.5g}" for value, a, b in each]

    def describe(self, model: TreeModel[Any], evidence: Evidence) -> Description:
        """What a model of it says of itself in numbers."""
        from ldptree.models.tree_description import describe_numbers

        return describe_numbers(model, evidence)

    def named_answers(self, model: TreeModel[Any]) -> list[tuple[str, NDArray[Any]]]:
        """[nodes] the number that each node predicts, and the ends of its interval."""
        low, high = self.interval(model, LEVEL)
        return [("prediction", model.estimate[:, 0]), ("mean_lower", low[:, 0]), ("mean_upper", high[:, 0])]


Label_co = TypeVar("Label_co", bound=ClassLabel | NumberLabel, covariant=True)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TreeModel(Model, Generic[Label_co]):
    """A fitted tree; read-only arrays, most with one row a node, node 0 the root. All of a number is in its own unit.

    C is the number of classes, 0 of a number; M as in the module; T is C, and 2 of a number: how many people, and the sum of
    their labels.

    Attributes:
        label: what is predicted.
        encoding: how a raw row is read.
        partition: the tree on encoded rows.
        target: the label's column.
        outside: "clip" or "drop", as the protocol says.
        decision: int32 [nodes], the class index predicted; 0 of a number.
        probability: float64 [nodes, C], expected class shares; rows sum to 1.
        estimate: float64 [nodes, M], private margins per person, which noise may carry beyond a share's range; or the private
            mean that is predicted, within the range.
        estimate_sd: float64 [nodes, M], their standard deviations, infinite where there is no evidence.
        noise_sd: float64 [nodes, M], standard deviation that the mechanism's noise alone gives the margin or mean of the node.
        discrepancy: float64 [nodes, M], what the reports say about private - public margin or mean.
        discrepancy_sd: float64 [nodes, M], its standard deviation; 0 where no difference was found worth having.
        mean_discrepancy: float64 [M], the same averaged over all private people.
        mean_discrepancy_sd: float64 [M], its standard deviation; of a number, a difference that was not found is included
            (`model_uncertainty`).
        private_total: float64 [nodes, T], unbiased noisy totals, negative where the noise is; of a number, below a cell that
            reports were asked about (`finer`), its totals shared out by public rows.
        public_total: [nodes, T], of public rows; int64 of classes, float64 of a number.
        private_share: float64 [nodes], share in [0, 1] of the precision that reports bring.
        decided_at: int32 [nodes], the node on whose evidence it is decided.
        prune: the pruning rule.
        lam: as it was asked for: "learned", "auto" or a number.
        lam_used: weight of a public row in private people; None where it was learned cell by cell.
        epsilon: what each holder spent, as claimed.
        mechanism: how reports were made, such as "joint oue".
        n_private: holders who reported.
        n_public: public rows.
        protocol_digest: of the protocol that was answered.

    Raises:
        DataError: arrays do not fit the tree and the label, or epsilon or a count is impossible.
    """

    KINDS: ClassVar[tuple[str, ...]] = (ClassLabel.KIND, NumberLabel.KIND)

    label: Label_co
    encoding: Encoding
    partition: Partition
    target: str
    outside: str
    decision: NDArray[np.int32]
    probability: Floats
    estimate: Floats
    estimate_sd: Floats
    noise_sd: Floats
    discrepancy: Floats
    discrepancy_sd: Floats
    mean_discrepancy: Floats
    mean_discrepancy_sd: Floats
    private_total: Floats
    public_total: NDArray[Any]
    private_share: Floats
    decided_at: NDArray[np.int32]
    prune: str
    lam: str | float
    lam_used: float | None
    epsilon: float
    mechanism: str
    n_private: int
    n_public: int
    protocol_digest: str

    def __post_init__(self) -> None:
        check_spent("model", self.epsilon, n_private=self.n_private, n_public=self.n_public)
        if self.partition.feature.max() >= self.encoding.n_encoded:
            raise DataError("model: the tree tests a column that the encoding does not have")
        for name, (kind, shape) in _arrays(self.label, self.partition.n_nodes).items():
            array: NDArray[Any] = np.array(getattr(self, name), dtype=kind)
            if array.shape != shape:
                raise DataError(f"model: {name} has shape {array.shape}, expected {shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if self.decided_at.min() < 0 or self.decided_at.max() >= self.partition.n_nodes:
            raise DataError("model: decided_at names nodes that the tree does not have")
        last = max(len(self.label.classes), 1) - 1
        if self.decision.min() < 0 or self.decision.max() > last:
            raise DataError(f"model: decisions are not class indices in 0 .. {last}")

    @property
    def classes(self) -> tuple[Level, ...]:
        """The C classes; none of a number."""
        return self.label.classes

    @property
    def n_classes(self) -> int:
        """C."""
        return len(self.label.classes)

    @property
    def node_sd(self) -> Floats:
        """[nodes] standard deviation of the estimate that is known best; infinite where there is no evidence."""
        smallest: Floats = self.estimate_sd.min(axis=1)
        return smallest

    @property
    def answers(self) -> NDArray[Any]:
        """[nodes] what `predict` gives at each node: a class index or a number."""
        return self.label.answers(self)

    @cached_property
    def raw_tree(self) -> RawTree:
        """The tree in raw units."""
        return RawTree.of(self.partition, self.encoding)

    @cached_property
    def columns_needed(self) -> tuple[str, ...]:
        """The raw columns that decide a prediction, in the encoding's order.

        Those the tree tests, those where a missing value has no rule, and with outside = "drop" every
        numeric one.
        """
        used = set(self.raw_tree.columns_used) | set(self.encoding.columns_without_rule)
        if self.outside == "drop":
            used |= {f.column for f in self.encoding.features if isinstance(f, NumericFeature)}
        return tuple(column for column in self.encoding.columns if column in used)

    @property
    def evidence(self) -> list[str]:
        """What each decision rests on, by 90 % of the precision: "private", "public", "both" or "none"."""
        share = self.private_share[self.decided_at]
        words = np.where(share >= MOSTLY, "private", np.where(share <= 1 - MOSTLY, "public", "both"))
        return [str(word) for word in np.where(np.isinf(self.node_sd), "none", words)]

    def cells(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> NDArray[np.int32]:
        """int32 [n] the cell of each raw row; -1 for a row that no holder could have placed either.

        That is a row where a value is missing that no rule fills, or with outside = "drop" a row outside
        the public range.

        Args:
            raw: a raw matrix, float64 [n, columns] (see `ldptree.encoding`).
            columns: names of its columns where they are not all of the encoding's; `columns_needed` suffice.

        Raises:
            DataError: a column is absent or the matrix has another number of them.
        """
        names = self.encoding.columns if columns is None else tuple(columns)
        absent = [column for column in self.columns_needed if column not in names]
        if absent:
            raise DataError(f"rows to predict lack the columns {', '.join(absent)}")
        cells = self.raw_tree.apply(raw, names)
        is_unplaced = ~self.encoding.encodable(raw, names)
        if self.outside == "drop":
            is_unplaced |= self.encoding.is_outside(raw, names)
        return np.where(is_unplaced, np.int32(-1), cells)

    def nodes(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> NDArray[np.int32]:
        """int32 [n] the node that speaks for each raw row: its leaf, or the root where it has no cell."""
        cells = self.cells(raw, columns)
        return np.where(cells < 0, np.int32(0), self.partition.leaves[cells])

    def predict_raw(self, raw: Floats, columns: Sequence[str] | None = None) -> NDArray[Any]:
        """[n] class indices int32, or numbers float64, of raw rows; arguments and errors as `cells`.

        A row without a cell gets the root's answer.
        """
        return self.answers[self.nodes(raw, columns)]

    def predict_proba(self, rows: Any, columns: Sequence[str] | None = None) -> Floats:
        """float64 [n, C] expected class shares of rows (`Model.predict_proba`); of a raw matrix, `columns` as for `cells`."""
        if not self.label.classes:
            return super().predict_proba(rows)
        return self.probability[self.nodes(self.raw_matrix(rows), columns)]

    def predict_columns(self, raw: Floats) -> list[tuple[str, NDArray[Any]]]:
        """What a table of predictions says of raw rows: columns by name."""
        nodes = self.nodes(raw)
        return [(name, values[nodes]) for name, values in self.label.named_answers(self)]

    def estimate_interval(self, level: float) -> tuple[Floats, Floats]:
        """Ends of what is believed of the estimates with probability `level`, each [nodes, M], not cut to any range.

        They speak of a cell's mean, given the tree, not of one person's label; infinite where there is no evidence. How often
        they hold depends on the settings (`LPCTClassifier.margin_interval`, `LPDTRegressor.mean_interval`).

        Raises:
            ConfigError: `level` is not between 0 and 1.
        """
        half = half_width(level) * self.estimate_sd
        return self.estimate - half, self.estimate + half

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """The same of what is predicted: each [nodes, C], shares in [0, 1] around `probability`; or [nodes, 1], in the range."""
        return self.label.interval(self, level)

    def truncate(self, *, depth: int, min_rows: int = 1) -> Self:
        """The model with no cell below `depth`, nor one with fewer than `min_rows` public rows.

        The nodes below the cut answer as the node they hang from: one report on a deep tree serves every shallower one, since the
        totals of an inner node are the sums of its cells'. It is post-processing, and costs no privacy.

        A node is not parted where either part would hold fewer. That is the tree that would have been grown so for max-edge,
        which stops at the same places; for CART a tree grown under `min_rows` may take other splits.

        Args:
            depth: the deepest a node may speak for itself.
            min_rows: without effect where there are no public rows.
        """
        rows = self.label.people(self.public_total)
        speaker = speakers(self.partition, rows, depth=depth, min_rows=min_rows if rows[0] else 0)
        moved = ("decision", "probability", "estimate", "estimate_sd", "decided_at")
        return replace(self, **{name: getattr(self, name)[speaker] for name in moved})

    def describe(self, evidence: Evidence) -> Description:
        """What it says of itself in numbers."""
        return self.label.describe(self, evidence)

    def to_sql(self, table: str = "data", level: float = 0.9) -> str:
        """The model as one SELECT (`sql.to_sql`)."""
        from ldptree.models.export.sql import to_sql

        return to_sql(self, table, level)

    def to_dot(self, level: float = 0.9) -> str:
        """The tree as Graphviz text (`dot.to_dot`)."""
        from ldptree.models.export.dot import to_dot

        return to_dot(self, self._described_cells(level))

    def to_svg(self, level: float = 0.9) -> str:
        """The tree as a picture (`svg.to_svg`)."""
        from ldptree.models.export.svg import to_svg

        return to_svg(self, self._described_cells(level), f"Ranges are {level:.0%} intervals.")

    def _described_cells(self, level: float) -> list[str]:
        """What each cell says."""
        labels = self.label.describe_answers(self, level)
        return [labels[node] for node in self.partition.leaves]

    @property
    def kind(self) -> str:
        """What its text says it is."""
        return self.label.KIND

    @classmethod
    def text_fields(cls, kind: str) -> tuple[Collection[str], Collection[str]]:
        """Those of the tree and of its kind of label."""
        label = _LABELS[kind]
        return (*_IN_COMMON, *label.TEXT, *label.COLUMNS), ()

    def to_content(self) -> dict[str, Any]:
        """Fields as plain values; arrays under the label's names."""
        found = {name: serialize.plain_value(getattr(self, name)) for name in _IN_COMMON}
        for name, (array, column) in self.label.COLUMNS.items():
            values = getattr(self, array)
            values = values if column is None else values[..., column]
            whole = name in self.label.WHOLE
            found[name] = serialize.plain_value(values.astype(np.int64) if whole else values)
        return found | self.label.to_text()

    @classmethod
    def of_content(cls, data: Mapping[str, Any]) -> Self:
        """The model from its fields. Raises DataError."""
        values = serialize.read_fields(cls, data, _IN_COMMON, of=cls.NAME)
        label, n_nodes = _LABELS[data["kind"]].of_text(data), values["partition"].n_nodes
        shapes = _arrays(label, n_nodes)
        arrays: dict[str, NDArray[Any]] = {
            "decision": np.zeros(n_nodes, dtype=np.int32),
            "probability": np.empty((n_nodes, 0)),
        }
        for name, (array, column) in label.COLUMNS.items():
            kind, shape = shapes[array]
            in_text = np.int64 if name in label.WHOLE else kind
            found = serialize.numbers(data[name], in_text, cls.NAME, name)
            expected = shape if column is None else shape[:-1]
            if found.shape != expected:
                raise DataError(f"model: {name} has shape {found.shape}, expected {expected}")
            if column is None:
                arrays[array] = found
                continue
            arrays.setdefault(array, np.empty(shape, dtype=kind))[..., column] = found
        return cls(label=label, **arrays, **values)  # type: ignore[arg-type]


ClassTree: TypeAlias = TreeModel[ClassLabel]
NumberTree: TypeAlias = TreeModel[NumberLabel]
AnyTree: TypeAlias = TreeModel[ClassLabel | NumberLabel]
_LABELS: dict[str, type[ClassLabel] | type[NumberLabel]] = {
    label.KIND: label for label in (ClassLabel, NumberLabel)
}


def speakers(partition: Partition, rows: NDArray[Any], *, depth: int, min_rows: int) -> NDArray[np.int32]:
    """The node that speaks for each node, itself or an ancestor, int32 [nodes]; rows [nodes] are public ones."""
    speaker = np.arange(partition.n_nodes, dtype=np.int32)
    for node in np.flatnonzero(partition.feature != LEAF):
        children = [partition.left[node], partition.right[node]]
        is_parted = partition.depth[node] < depth and rows[children].min() >= min_rows
        if speaker[node] != node or not is_parted:
            speaker[children] = speaker[node]
    return speaker


def _arrays(label: ClassLabel | NumberLabel, n_nodes: int) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Type and shape of every array."""
    c, m = len(label.classes), label.n_outputs
    per_output = ("estimate", "estimate_sd", "noise_sd", "discrepancy", "discrepancy_sd")
    return {
        "decision": (np.int32, (n_nodes,)),
        "probability": (np.float64, (n_nodes, c)),
        **dict.fromkeys(per_output, (np.float64, (n_nodes, m))),
        "mean_discrepancy": (np.float64, (m,)),
        "mean_discrepancy_sd": (np.float64, (m,)),
        "private_total": (np.float64, (n_nodes, c or 2)),
        "public_total": (np.int64 if c else np.float64, (n_nodes, c or 2)),
        "private_share": (np.float64, (n_nodes,)),
        "decided_at": (np.int32, (n_nodes,)),
    }
