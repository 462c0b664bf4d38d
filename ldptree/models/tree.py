"""The released model of one tree, with what is believed of the label at every node, why, and how surely.

A node has M estimates: of two classes the margin of class 1, of more one margin each, class against the rest (a margin is a share
less 1/C); of a number its mean. How it comes about is in `families`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ldptree import serialize
from ldptree.encoding import Encoding, Level
from ldptree.errors import DataError
from ldptree.inference.shares import half_width
from ldptree.limits import check_spent
from ldptree.models import LEVEL, Model, class_columns
from ldptree.models.description import (
    Basis,
    Cell,
    CurveLine,
    CurvePoint,
    Description,
    Estimate,
    Evidence,
    Statement,
    average_below,
    build_tree,
    describe_strengths,
    find_conditions,
    name_level,
    name_piece,
    share_below,
)
from ldptree.models.effects import tree_dependence, tree_importance
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition
from ldptree.protocol.stochastic_rounding import label_levels

if TYPE_CHECKING:
    from ldptree.protocol.totals import Totals

Floats: TypeAlias = NDArray[np.float64]

MOSTLY = 0.9
"""A node rests on one kind of evidence alone where that brings this share of the precision."""
CURVES = 2
UNKNOWN_SD = 0.5
"""Standard deviation of an unknown share, half of its range, which it cannot exceed."""
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

    def to_text(self) -> dict[str, Any]:
        """Return its part of a model's text."""
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
        """Describe the answer of each node, in two lines."""
        low, high = self.interval(model, level)
        each = enumerate(model.decision)
        return [
            f"predicts {self.classes[k]}\nchance {model.probability[node, k]:.3f} ({low[node, k]:.3f} to {high[node, k]:.3f})"
            for node, k in each
        ]

    def describe(self, model: TreeModel[Any], evidence: Evidence) -> Description:
        """Describe the model in numbers."""
        return _describe_classes(model, evidence)

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

    def to_text(self) -> dict[str, Any]:
        """Return its part of a model's text."""
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
        """Describe the answer of each node, in two lines."""
        low, high = self.interval(model, level)
        each = zip(model.estimate[:, 0], low[:, 0], high[:, 0], strict=True)
        return [f"{model.target} = {value:.5g}\n{a:.5g} to {b:.5g}" for value, a, b in each]

    def describe(self, model: TreeModel[Any], evidence: Evidence) -> Description:
        """Describe the model in numbers."""
        return _describe_numbers(model, evidence)

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
        """Return what `predict` gives at each node, [nodes], as class indices or numbers."""
        return self.label.answers(self)

    @cached_property
    def raw_tree(self) -> RawTree:
        """The tree in raw units."""
        return RawTree.of(self.partition, self.encoding)

    @cached_property
    def columns_needed(self) -> tuple[str, ...]:
        """The raw columns that decide a prediction, in the encoding's order (`RawTree.columns_needed`)."""
        return self.raw_tree.columns_needed(drops_outside=self.outside == "drop")

    @property
    def evidence(self) -> list[str]:
        """Return the basis of each decision, by 90 % of the precision, as "private", "public", "both" or "none"."""
        share = self.private_share[self.decided_at]
        words = np.where(share >= MOSTLY, "private", np.where(share <= 1 - MOSTLY, "public", "both"))
        return [str(word) for word in np.where(np.isinf(self.node_sd), "none", words)]

    def cells(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> NDArray[np.int32]:
        """int32 [n] the cell of each raw row, as `RawTree.cells`; -1 for a row that no holder could have placed either."""
        return self.raw_tree.cells(raw, columns, drops_outside=self.outside == "drop")

    def nodes(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> NDArray[np.int32]:
        """Return the node that speaks for each raw row, int32 [n], its leaf, or the root if it has no cell."""
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
        """Return the columns of a table of predictions of raw rows, by name."""
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
        """Return predictions' intervals, [nodes, C] in [0, 1] around `probability`, or [nodes, 1] in the range."""
        return self.label.interval(self, level)

    def describe(self, evidence: Evidence) -> Description:
        """Describe the model in numbers."""
        return self.label.describe(self, evidence)

    def to_sql(self, table: str = "data", level: float = 0.9) -> str:
        """A SELECT over `table` that returns its columns and the model's answer to each row.

        Added columns, of classes: `prediction` (a class), and for each class `probability_CLASS`, and `lower_CLASS` and
        `upper_CLASS`, the ends of what is believed of its share in the cell with probability `level`. Of numbers: `prediction`,
        and `mean_lower` and `mean_upper`, those of what is believed of the cell's mean: single labels lie outside more often. How
        often such intervals hold is stated by `LPCTClassifier.margin_interval` and `LPDTRegressor.mean_interval`. A row without a
        cell gets the answer of the root, as in `predict`: a value missing that no rule fills, or with outside = "drop" a number
        outside the public range. NULL and NaN are missing. The table may have further columns of any name; one that is named like
        an added column stands before it, under the same name.

        Args:
            table: the table's or view's name, one identifier.
            level: of the intervals.

        Raises:
            ConfigError: `level` is not between 0 and 1.
        """
        from ldptree.models.export.sql import labels_of, literal, to_sql

        nodes = np.append(self.partition.leaves, 0)
        low, high = self.interval(level)
        values: dict[str, Floats] = {"prediction": self.estimate, "mean_lower": low, "mean_upper": high}
        answers = []
        if self.classes:
            labels = labels_of(self.classes)
            answers = [("prediction", [labels[k] for k in self.decision[nodes]])]
            values = {"probability": self.probability, "lower": low, "upper": high}
        for k, ending in enumerate([f"_{name}" for name in self.classes] or [""]):
            for name, each in values.items():
                answers.append((f"{name}{ending}", [literal(v) for v in each[nodes, k].tolist()]))
        return to_sql(
            self.raw_tree,
            answers,
            columns=self.columns_needed,
            drops_outside=self.outside == "drop",
            about=f"Scores rows by the model {self.digest[:12]} of ldptree",
            table=table,
        )

    def to_dot(self, level: float = 0.9) -> str:
        """The tree as Graphviz text."""
        from ldptree.models.export.drawing import to_dot

        return to_dot(self.raw_tree, self._described_cells(level), f"The model {self.digest[:12]} of ldptree")

    def to_svg(self, level: float = 0.9) -> str:
        """The tree as a picture."""
        from ldptree.models.export.drawing import to_svg

        note = f"Ranges are {level:.0%} intervals."
        return to_svg(self.raw_tree, self._described_cells(level), target=self.target, note=note)

    def _described_cells(self, level: float) -> list[str]:
        """Describe each cell."""
        labels = self.label.describe_answers(self, level)
        return [labels[node] for node in self.partition.leaves]

    @property
    def kind(self) -> str:
        """Name of its kind in the text."""
        return self.label.KIND

    @classmethod
    def text_fields(cls, kind: str) -> tuple[Collection[str], Collection[str]]:
        """Those of the tree and of its kind of label."""
        label = _LABELS[kind]
        return (*_IN_COMMON, *label.TEXT, *label.COLUMNS), ()

    def to_content(self) -> dict[str, Any]:
        """Fields as plain values; arrays under the label's names."""
        content = {name: serialize.plain_value(getattr(self, name)) for name in _IN_COMMON}
        for name, (array, column) in self.label.COLUMNS.items():
            values = getattr(self, array)
            values = values if column is None else values[..., column]
            whole = name in self.label.WHOLE
            content[name] = serialize.plain_value(values.astype(np.int64) if whole else values)
        return content | self.label.to_text()

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
            numbers = serialize.numbers(data[name], in_text, cls.NAME, name)
            expected = shape if column is None else shape[:-1]
            if numbers.shape != expected:
                raise DataError(f"model: {name} has shape {numbers.shape}, expected {expected}")
            if column is None:
                arrays[array] = numbers
                continue
            arrays.setdefault(array, np.empty(shape, dtype=kind))[..., column] = numbers
        return cls(label=label, **arrays, **values)  # type: ignore[arg-type]


ClassTree: TypeAlias = TreeModel[ClassLabel]
NumberTree: TypeAlias = TreeModel[NumberLabel]
AnyTree: TypeAlias = TreeModel[ClassLabel | NumberLabel]
_LABELS: dict[str, type[ClassLabel] | type[NumberLabel]] = {
    label.KIND: label for label in (ClassLabel, NumberLabel)
}


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


def _describe_classes(model: ClassTree, evidence: Evidence) -> Description:
    """Shares of classes, of two classes that of the second one.

    `evidence` has the totals that the model was fitted on, and the public rows of each cell.
    """
    assert evidence.public_counts is not None
    tree, names = model.partition, evidence.names
    classes = tuple(name_level(model.target, value, names) for value in model.classes)
    outputs = [1] if model.n_classes == 2 else list(range(model.n_classes))
    shares = share_below(tree, model.private_total[tree.leaves].sum(axis=1))
    average = average_below(tree, shares[tree.leaves], model.probability[tree.leaves])
    sd = np.where(np.isfinite(model.estimate_sd), model.estimate_sd, UNKNOWN_SD)
    basis, alone = _find_basis(model), _class_reports(model, evidence.totals[0])
    n_public = max(int(evidence.public_counts.sum()), 1)
    is_leaf = tree.feature < 0
    was_compared = model.lam == "learned"
    cells = []
    for cell, node in enumerate(tree.leaves.tolist()):
        counts = evidence.public_counts[cell]
        n = int(counts.sum())
        cells.append(
            Cell(
                path=find_conditions(tree, model.raw_tree, node, names),
                share=float(shares[node]),
                public_share=n / n_public,
                rests_on=basis[node],
                private_weight=float(model.private_share[node]),
                estimates=tuple(
                    Estimate(value=float(model.probability[node, c]), sd=float(sd[node, m]))
                    for m, c in enumerate(outputs)
                ),
                reports=alone[cell],
                public=tuple(
                    Estimate(value=float(counts[c]) / n, sd=0.5 / float(np.sqrt(n))) if n else None
                    for c in outputs
                ),
                differences=_differences(model, node) if was_compared else (),
                decision=classes[int(model.decision[node])],
            )
        )
    return Description(
        figure="share",
        outputs=tuple(classes[c] for c in outputs),
        tree=build_tree(
            tree,
            model.raw_tree,
            names,
            shares,
            [
                [
                    Estimate(value=float(average[node, c]), sd=float(sd[node, m]) if is_leaf[node] else None)
                    for m, c in enumerate(outputs)
                ]
                for node in range(tree.n_nodes)
            ],
            [
                classes[int(model.decision[node] if is_leaf[node] else average[node].argmax())]
                for node in range(tree.n_nodes)
            ],
        ),
        cells=tuple(cells),
        statements=_strengths(model, model.probability[tree.leaves][:, outputs], shares[tree.leaves]),
        differences=_pairs(model.mean_discrepancy, model.mean_discrepancy_sd) if was_compared else (),
        is_found=bool((model.discrepancy_sd > 0).any()) if was_compared else None,
    )


def _strengths(model: AnyTree, values: Floats, weights: Floats) -> tuple[Statement, ...]:
    """Return each column's share in the answers, over private people, of values [cells, M] by their variance."""
    if not weights.sum() > 0:
        return ()
    strengths = dict.fromkeys(model.raw_tree.columns_used, 0.0)
    mean = np.average(values, axis=0, weights=weights)
    spread = np.average((values - mean) ** 2, axis=0, weights=weights)
    if not spread.sum() > 0:
        return ()
    for column, part in zip(values.T, spread / spread.sum(), strict=True):
        for name, strength in tree_importance(model.raw_tree, column, weights).items():
            strengths[name] = strengths.get(name, 0.0) + float(part) * strength
    return describe_strengths(strengths)


def _describe_numbers(model: NumberTree, evidence: Evidence) -> Description:
    """A number and its curves; `evidence` has the totals that the model was fitted on, and the partition they are of."""
    assert evidence.asked is not None
    tree, names, leaves = model.partition, evidence.names, model.partition.leaves
    low, high = model.label.range
    shares = share_below(tree, model.private_total[:, 0][leaves])
    average = average_below(tree, shares[leaves], model.estimate[leaves])[:, 0]
    sd = np.minimum(model.estimate_sd[:, 0], (high - low) / 2)
    reports, basis = _number_reports(model, evidence.asked, evidence.totals[0]), _find_basis(model)
    was_compared = model.lam == "learned" and model.n_public > 0
    is_leaf = tree.feature < 0
    cells = []
    for cell, node in enumerate(leaves.tolist()):
        n, noise = int(model.public_total[:, 0][node]), float(model.noise_sd[:, 0][node])
        # noise wider than the range: the reports of the cell alone say nothing at all
        is_heard = noise < high - low
        cells.append(
            Cell(
                path=find_conditions(tree, model.raw_tree, node, names),
                share=float(shares[node]),
                public_share=n / max(model.n_public, 1),
                rests_on=basis[node],
                private_weight=float(model.private_share[node]),
                estimates=(Estimate(value=float(model.estimate[:, 0][node]), sd=float(sd[node])),),
                reports=(Estimate(value=float(reports[cell]), sd=noise) if is_heard else None,),
                public=(
                    Estimate(
                        value=float(model.public_total[:, 1][node]) / n, sd=model.label.sd / float(np.sqrt(n))
                    )
                    if n
                    else None,
                ),
                differences=_differences(model, node) if was_compared else (),
            )
        )
    estimates = [
        [Estimate(value=float(average[node]), sd=float(sd[node]) if is_leaf[node] else None)]
        for node in range(tree.n_nodes)
    ]
    mean = Estimate(value=float(model.mean_discrepancy[0]), sd=float(model.mean_discrepancy_sd[0]))
    return Description(
        figure="number",
        outputs=(model.target,),
        tree=build_tree(tree, model.raw_tree, names, shares, estimates),
        cells=tuple(cells),
        statements=_strengths(model, model.estimate[leaves][:, :1], shares[leaves]),
        curves=_curves(model, shares, sd, evidence),
        differences=(mean,) if was_compared else (),
        is_found=bool((model.discrepancy_sd > 0).any()) if was_compared else None,
        spread=float(model.label.sd),
    )


def _find_basis(model: AnyTree) -> list[Basis]:
    """Find the basis of each node's answer, which is "neighbours" if another node decided it."""
    bases: list[Basis] = []
    for node, rest in enumerate(model.evidence):
        is_own = model.decided_at[node] == node and rest != "none"
        bases.append(rest if is_own else "neighbours")  # type: ignore[arg-type]
    return bases


def _pairs(values: Floats, sds: Floats) -> tuple[Estimate, ...]:
    return tuple(Estimate(value=float(v), sd=float(s)) for v, s in zip(values, sds, strict=True))


def _differences(model: AnyTree, node: int) -> tuple[Estimate | None, ...]:
    """Private less public in a cell; None of an output of which no difference was found."""
    pairs = _pairs(model.discrepancy[node], model.discrepancy_sd[node])
    return tuple(pair if pair.sd else None for pair in pairs)


def _class_reports(model: ClassTree, totals: Totals) -> list[tuple[Estimate | None, ...]]:
    """Shares of each cell by its reports alone, and their noise; None where the noise is wider than a share's range."""
    leaves, c = model.partition.leaves, model.n_classes
    of_class = 1 if c == 2 else 0
    # the holders that the model gave a cell: the noise of one class's margin in holders, over the same noise as a share
    weights = np.eye(c)[of_class] - 1.0 / c
    masses = np.sqrt(totals.cell_variance(weights)) / model.noise_sd[leaves, 0]
    shares = model.private_total[leaves] / masses[:, None]
    margins = shares - shares.sum(axis=1, keepdims=True) / c + 1.0 / c
    shown = margins[:, 1:] if c == 2 else margins
    noise = model.noise_sd[leaves]
    return [
        tuple(
            Estimate(value=float(v), sd=float(s)) if s < 1.0 else None
            for v, s in zip(shown[cell], noise[cell], strict=True)
        )
        for cell in range(leaves.size)
    ]


def _number_reports(model: NumberTree, asked: Partition, totals: Totals) -> Floats:
    """Mean label of each cell by its reports alone, [cells], with the holders that the model gave the cell.

    A part of a cell that was asked about has the cell's, moved as the model moves it there.
    """
    leaves, centre = asked.leaves, _centre_of(model)
    about = np.array(label_levels(*model.label.range, totals.n_classes)) - centre
    noise, of_mean = np.sqrt(totals.cell_variance(about)), model.noise_sd[:, 0][leaves]
    held = np.maximum(totals.cell_counts, 1.0)  # without noise they are known
    masses = np.divide(noise, of_mean, out=held, where=of_mean > 0)
    alone = centre + (totals.counts @ about) / masses
    parts = model.partition.leaves
    above = model.partition.nodes_above(asked.n_nodes)[parts]
    return np.asarray(
        alone[asked.cell_of_node[above]] + (model.estimate[:, 0][parts] - model.estimate[:, 0][above])
    )


def _centre_of(model: NumberTree) -> float:
    """The mean of the public labels; the middle of the range where there are none."""
    if model.n_public == 0:
        return sum(model.label.range) / 2
    return float(model.public_total[:, 1][0]) / float(model.public_total[:, 0][0])


def _curves(model: NumberTree, shares: Floats, sd: Floats, evidence: Evidence) -> tuple[CurveLine, ...]:
    """Return the answer along the columns that it varies most along, over private people.

    Other columns are taken as the public rows have them, or without any as the private people of the reports.
    """
    leaves = model.partition.leaves
    strengths = tree_importance(model.raw_tree, model.estimate[:, 0][leaves], shares[leaves])
    weights = model.public_total[:, 0][leaves] if model.n_public else shares[leaves]
    arrays = {"value": model.estimate[:, 0][leaves], "sd": sd[leaves]}
    if model.n_public:
        arrays["public"] = _public_means(model)[leaves]
    curves = []
    for column in list(strengths)[:CURVES]:
        pieces, along = tree_dependence(model.raw_tree, column, weights, arrays)
        points = tuple(
            CurvePoint(
                name=name_piece(column, piece, evidence.names),
                low=piece.low,
                high=piece.high,
                **{name: float(array[i]) for name, array in along.items()},
            )
            for i, piece in enumerate(pieces)
        )
        curves.append(CurveLine(column=column, strength=min(strengths[column], 1.0), points=points))
    return tuple(curves)


def _public_means(model: NumberTree) -> Floats:
    """Mean public label of each node, [nodes]; where no public row is, that of the nearest node above."""
    tree = model.partition
    means: Floats = np.divide(
        model.public_total[:, 1],
        model.public_total[:, 0],
        out=np.full(tree.n_nodes, np.nan),
        where=model.public_total[:, 0] > 0,
    )
    for node in range(1, tree.n_nodes):  # parents come first
        if np.isnan(means[node]):
            means[node] = means[tree.parent[node]]
    return means
