"""The public model in a protocol, with its trees, its labels, the residual that a holder computes, and the contrasts
that it may be asked along. Every part of its JSON is checked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from ldptree import serialize
from ldptree.encoding import Encoding, Level
from ldptree.errors import DataError
from ldptree.limits import LARGEST
from ldptree.models.ensemble import Ensemble
from ldptree.partition.tree import LEAF, Partition
from ldptree.public_models.model import answers, indicators, n_outputs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_FIELDS = {"trees", "labels", "output"}
_OPTIONAL = {"contrasts"}
_BLOCK = 2**16
DRAWN: Literal["drawn"] = "drawn"
"""Stands in the place of an output if each report is about one of them, drawn by coins that depend on nothing."""


class Contrast(NamedTuple):
    """Two halves of the people. A residual counts as it is where `x[feature] > threshold`, else with its sign turned.

    The mean of such residuals is half of what the model's errors differ by between halves of equal size.

    Attributes:
        feature: an encoded column.
        threshold: where it is cut.
    """

    feature: int
    threshold: float

    def signs(self, X: NDArray[np.float32]) -> Floats:
        """1 or -1 of each encoded row, float64 [n]."""
        return np.where(X[:, self.feature] > self.threshold, 1.0, -1.0)

    @property
    def cuts(self) -> tuple[Contrast, ...]:
        """The columns it is of, each with its threshold."""
        return (self,)

    @property
    def partition(self) -> Partition:
        """Its halves as cells: 1 is above."""
        return Partition.of(
            [self.feature, LEAF, LEAF], [self.threshold, 0.0, 0.0], [1, LEAF, LEAF], [2, LEAF, LEAF]
        )

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The column and threshold that stand in a protocol or a model. Raises DataError."""
        if not isinstance(data, list) or [type(part) for part in data] not in ([int, float], [int, int]):
            raise DataError("base: a contrast must be a column's number and a threshold, or two of both")
        return cls(data[0], float(data[1]))


class Pair(NamedTuple):
    """Two halves of the people, by two columns. A residual counts as it is where both contrasts have the same sign.

    A difference that a column makes in one half of another, and the opposite one in the other half, is seen along no column.
    """

    one: Contrast
    other: Contrast

    def signs(self, X: NDArray[np.float32]) -> Floats:
        """1 or -1 of each encoded row, float64 [n]."""
        return self.one.signs(X) * self.other.signs(X)

    @property
    def cuts(self) -> tuple[Contrast, ...]:
        """The columns it is of, each with its threshold."""
        return tuple(self)


Along = Contrast | Pair


def _along_from_json(data: object) -> Along:
    """The contrast or the pair that stands in a protocol. Raises DataError."""
    if isinstance(data, list) and len(data) == 4:
        return Pair(Contrast.from_json(data[:2]), Contrast.from_json(data[2:]))
    return Contrast.from_json(data)


def mean_products(contrasts: Sequence[Along], X: NDArray[np.float32]) -> Floats:
    """Mean product of each two contrasts' signs over encoded rows [n, d], n >= 1, float64 [K, K]."""
    sums = np.zeros((len(contrasts), len(contrasts)))
    for start in range(0, len(X), _BLOCK):
        rows = X[start : start + _BLOCK]
        signs = np.stack([along.signs(rows) for along in contrasts], dtype=np.float32, casting="same_kind")
        sums += signs @ signs.T  # whole numbers that 32 bits hold
    return sums / len(X)


@dataclass(frozen=True, eq=False, kw_only=True)
class PublishedBase:
    """A public model whose error reports are about.

    Attributes:
        ensemble: the model, on encoded rows.
        labels: the C declared classes, class 1 the positive one where there are two; none where the label is a number.
        output: which of the model's M outputs (`public_model.n_outputs`) a residual is of: 0, or one of over two classes; or
            `DRAWN`, and each holder draws one of several.
        contrasts: of a model with one output: a residual is along one of these, which each holder draws where there are several.

    Raises:
        DataError: the parts do not fit each other.
    """

    ensemble: Ensemble
    labels: tuple[Level, ...] = ()
    output: int | Literal["drawn"] = 0
    contrasts: tuple[Along, ...] = ()

    def __post_init__(self) -> None:
        c = len(self.labels)
        if c == 1 or len(set(self.labels)) != c:
            raise DataError("base: labels are at least 2, each once, or none for a number")
        if any(isinstance(label, float) and not math.isfinite(label) for label in self.labels):
            raise DataError("base: a label is not a finite number")
        if self.ensemble.n_outputs not in ({1} if not c else {1, 2} if c == 2 else {c}):
            raise DataError(f"base: {self.ensemble.n_outputs} outputs, which do not fit {c} labels")
        if not c and self.ensemble.link != "identity":
            raise DataError(f'base: link "{self.ensemble.link}" is for classes; a number has "identity"')
        self._check_contrasts()
        if self.output == DRAWN:
            if self.n_residuals == 1:
                raise DataError(f'base: output "{DRAWN}" is for over two labels or several contrasts')
        elif not 0 <= self.output < self.n_residuals:
            raise DataError(f"base: output {self.output} of {self.n_residuals}")
        highest = float(np.abs(self.ensemble.value).max()) * self.ensemble.roots.size
        if max(highest, float(np.abs(self.ensemble.offset).max())) > LARGEST:
            raise DataError(f"base: values so large that their sum may be beyond {LARGEST:g}")

    def _check_contrasts(self) -> None:
        if not self.contrasts:
            return
        if n_outputs(len(self.labels)) > 1:
            raise DataError("base: contrasts are for a number or two labels")
        if len(set(self.contrasts)) < len(self.contrasts):
            raise DataError("base: a contrast stands twice")
        if any(cut.feature < 0 or not math.isfinite(cut.threshold) for cut in self.cuts):
            raise DataError("base: a contrast has a column from 0 on, and a threshold that is finite")
        if any(
            isinstance(along, Pair) and along.one.feature >= along.other.feature for along in self.contrasts
        ):
            raise DataError("base: a pair is of two columns, the lower one first")

    @property
    def cuts(self) -> tuple[Contrast, ...]:
        """The columns and thresholds of all contrasts."""
        return tuple(cut for along in self.contrasts for cut in along.cuts)

    @property
    def n_residuals(self) -> int:
        """Return M, the number of residuals of a holder, one for each output or contrast."""
        return len(self.contrasts) or n_outputs(len(self.labels))

    def residuals(
        self,
        encoding: Encoding,
        raw: Floats,
        labels: ArrayLike,
        outputs: NDArray[np.int64] | None = None,
    ) -> Floats:
        """Return the label less the model's answer, float64 [n], on the holders' side and still private.

        NaN (which is reported as "outside") where a row cannot be encoded, or a label is missing or not declared.

        Args:
            encoding: how a row is read.
            raw: raw matrix [n, columns], all columns of the encoding.
            labels: numbers [n], NaN for a missing one; or indices of `labels`, -1 for one that is not declared.
            outputs: where holders draw the output, what each drew, int64 [n].

        Raises:
            DataError: outputs were to be drawn and were not.
        """
        if isinstance(self.output, int):
            outputs = np.full(len(raw), self.output)
        if outputs is None or outputs.shape != (len(raw),):
            raise DataError(
                f"base: each holder reports on one of {self.n_residuals} outputs; draw them first"
            )
        residuals, whole = np.full(len(raw), np.nan), np.flatnonzero(encoding.encodable(raw))
        X, outputs = encoding.encode(raw[whole]), outputs[whole]
        errors = self.errors_of(np.asarray(labels)[whole], self.answers(X))
        if not self.contrasts:
            residuals[whole] = errors[np.arange(len(whole)), outputs]
            return residuals
        for output in np.unique(outputs).tolist():
            at = np.flatnonzero(outputs == output)
            residuals[whole[at]] = self.residuals_of(output, X[at], errors[at])
        return residuals

    def errors(self, encoding: Encoding, raw: Floats, labels: ArrayLike) -> Floats:
        """The same of every output of the model and along no contrast, float64 [n, outputs]."""
        labels, is_whole = np.asarray(labels), encoding.encodable(raw)
        errors = np.full((len(labels), n_outputs(len(self.labels))), np.nan)
        X = encoding.encode(raw[is_whole])
        errors[is_whole] = self.errors_of(labels[is_whole], self.answers(X))
        return errors

    def errors_of(self, labels: NDArray[Any], answered: Floats) -> Floats:
        """The same of labels [n] and the model's answers, float64 [n, outputs]."""
        return indicators(labels, len(self.labels)) - answered

    def residuals_of(self, output: int, X: NDArray[np.float32], errors: Floats) -> Floats:
        """Return what reports on an output, or along a contrast, are about, float64 [n], from encoded rows [n, d] and errors."""
        return errors[:, 0] * self.contrasts[output].signs(X) if self.contrasts else errors[:, output]

    def answers(self, X: NDArray[np.float32]) -> Floats:
        """The model's answers to encoded rows [n, d], float64 [n, outputs]."""
        return answers(self.ensemble, X, len(self.labels))

    @property
    def text(self) -> str:
        """Its canonical JSON; its trees are written out once for all questions about them."""
        fields: dict[str, Any] = {"labels": list(self.labels), "output": self.output}
        if self.contrasts:
            fields["contrasts"] = [list(chain.from_iterable(along.cuts)) for along in self.contrasts]
        parts = {name: serialize.canonical(value) for name, value in fields.items()}
        return serialize.canonical_of_parts(parts | {"trees": self.ensemble.text})

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The base that `to_json` wrote, every part checked anew. Raises DataError."""
        if not isinstance(data, Mapping) or set(data) - _OPTIONAL != _FIELDS:
            raise DataError(
                f"base: expected exactly the fields {', '.join(sorted(_FIELDS))}, and perhaps {', '.join(_OPTIONAL)}"
            )
        labels = data["labels"]
        if not isinstance(labels, list) or any(type(v) not in (str, int, float, bool) for v in labels):
            raise DataError("base: labels must be a list of texts, numbers or booleans")
        if type(data["output"]) is not int and data["output"] != DRAWN:
            raise DataError(f'base: output must be a whole number or "{DRAWN}"')
        contrasts = data.get("contrasts", [])
        if not isinstance(contrasts, list):
            raise DataError("base: contrasts must be a list")
        return cls(
            ensemble=Ensemble.from_json(data["trees"]),
            labels=tuple(labels),
            output=data["output"],
            contrasts=tuple(map(_along_from_json, contrasts)),
        )
