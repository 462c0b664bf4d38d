"""The answers of a model along its public features, with each one's strength, and curves along the strongest.

What lives here: over whom it is taken, where a curve is read, and the value (JSON). What does not: the arithmetic of any
function (`effects`), and rows that stand for people (the models).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from ldptree.encoding import CategoricalFeature, Encoding
from ldptree.errors import DataError
from ldptree.models.description import (
    CurveLine,
    CurvePoint,
    Names,
    Statement,
    describe_strengths,
    name_piece,
)
from ldptree.models.effects import (
    Piece,
    columns_of,
    importance,
    partial_dependence,
    pieces_of,
)
from ldptree.models.export.curves_svg import DrawnCurve, show_curves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.protocol.question import PublicView

    Floats = NDArray[np.float64]

CURVES = 2
DRAWN_PEOPLE = 200
"""People that are drawn where no row is at hand."""
WORTH_A_CURVE = 0.005
"""A feature with a smaller share of the variance has no curve."""
MOST_PEOPLE = 2_000
"""People that strengths and curves are taken over."""


class RowModel(Protocol):
    """A model of encoded rows that can be looked at along its features."""

    @property
    def most_rows(self) -> int:
        """Number of rows that averages are taken over."""

    def predict(self, raw: Floats) -> Floats:
        """Labels, float64 [n], of encoded rows [n, d]."""

    def draw_rows(
        self, values: Floats, protects: NDArray[np.bool_], one_hot: Sequence[tuple[int, ...]] = ()
    ) -> Floats:
        """Complete rows that stand for the holders, float64 [n, d], by what is shown and the model alone."""

    def find_cuts(self, rows: Floats, column: int) -> tuple[Floats, bool]:
        """Ends of the stretches along an encoded column, in [0, 1], and whether the model varies within them."""

    def is_noise(self, rows: Floats) -> Floats:
        """Return float64 [n], 1 for rows whose answer is that of a cell within its noise, otherwise 0."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A piece of a column, and the function there.

    Attributes:
        piece: which values.
        value: the answer averaged over people with one of these values in place of their own.
    """

    piece: Piece
    value: float


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The function along a raw column.

    Attributes:
        feature: its position in the encoding.
        strength: its share of the variance of the answers.
        is_smooth: whether the function varies within stretches.
        in_noise: the largest share, over the readings, of averaged answers that are those of cells within their noise.
        readings: stretches from low to high, then levels.
    """

    feature: int
    strength: float
    is_smooth: bool
    in_noise: float
    readings: tuple[Reading, ...]


@dataclass(frozen=True, kw_only=True)
class Along:
    """The answers of a model along its features.

    Attributes:
        strengths: of each raw column, its share of the variance of the answers.
        curves: along the strongest.
        n_averaged: people over whom both are taken.
    """

    strengths: tuple[float, ...]
    curves: tuple[Curve, ...]
    n_averaged: int

    def to_json(self) -> str:
        """Plain values, as text."""
        return json.dumps(asdict(self), sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote. Raises DataError."""
        try:
            data = json.loads(text)
            curves = tuple(_curve(curve) for curve in data.pop("curves"))
            return cls(curves=curves, strengths=tuple(data.pop("strengths")), **data)
        except (TypeError, KeyError, AttributeError, ValueError, RecursionError):
            raise DataError("curves: not what learn wrote; is the file whole?") from None


def along(model: RowModel, encoding: Encoding, shown: PublicView) -> Along:
    """Strengths and curves, over people who show what holders show; what those protect is drawn from the model.

    Args:
        model: what was learned, on encoded rows.
        encoding: of raw rows.
        shown: what everybody can see.
    """
    groups, rows = columns_of(encoding), _people(model, encoding, shown)
    strengths = importance(model.predict, rows, groups)
    strongest = [j for j in np.argsort(-strengths, kind="stable").tolist() if strengths[j] > WORTH_A_CURVE]
    return Along(
        strengths=tuple(strengths.tolist()),
        curves=tuple(
            _along_one(model, encoding, j, rows, min(float(strengths[j]), 1.0)) for j in strongest[:CURVES]
        ),
        n_averaged=len(rows),
    )


def describe_curves(
    whole: Along, encoding: Encoding, names: Names
) -> tuple[tuple[CurveLine, ...], tuple[Statement, ...]]:
    """The curves with what values are called, and how strong every raw column is."""
    columns = encoding.columns
    curves = tuple(
        CurveLine(
            column=columns[curve.feature],
            strength=curve.strength,
            is_smooth=curve.is_smooth,
            in_noise=curve.in_noise,
            points=tuple(
                CurvePoint(
                    name=name_piece(columns[curve.feature], reading.piece, names),
                    low=reading.piece.low,
                    high=reading.piece.high,
                    value=reading.value,
                )
                for reading in curve.readings
            ),
        )
        for curve in whole.curves
    )
    return curves, describe_strengths(dict(zip(columns, whole.strengths, strict=True)))


def evenly(rows: NDArray[Any], most: int) -> NDArray[Any]:
    """At most so many of the rows, at equal distances."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64))]


def draw_alone(line: str, model: RowModel, encoding: Encoding) -> str:
    """HTML with a line of text and curves along all columns, over people whom the model alone draws, so that no row is needed."""
    shape = min(DRAWN_PEOPLE, model.most_rows), encoding.n_encoded
    rows = model.draw_rows(np.zeros(shape), np.ones(shape, dtype=np.bool_), _one_hot(encoding))
    curves = []
    for j, feature in enumerate(encoding.features):
        columns, pieces, probes, _ = _probe(model, encoding, j, rows)
        values = partial_dependence(model.predict, rows, columns, probes)
        curves.append(DrawnCurve(feature.column, pieces, values.tolist()))
    return show_curves(line, curves)


def _along_one(model: RowModel, encoding: Encoding, j: int, rows: Floats, strength: float) -> Curve:
    columns, pieces, probes, is_smooth = _probe(model, encoding, j, rows)
    values = partial_dependence(model.predict, rows, columns, probes)
    guesses = partial_dependence(model.is_noise, rows, columns, probes)
    return Curve(
        feature=j,
        strength=strength,
        is_smooth=is_smooth,
        in_noise=float(guesses.max()),
        readings=tuple(
            Reading(piece=piece, value=value) for piece, value in zip(pieces, values.tolist(), strict=True)
        ),
    )


def _probe(
    model: RowModel, encoding: Encoding, j: int, rows: Floats
) -> tuple[tuple[int, ...], list[Piece], Floats, bool]:
    """The encoded columns of a raw one, the pieces along it, encoded values of each, and whether the model varies within."""
    columns = columns_of(encoding)[j]
    cuts, is_smooth = model.find_cuts(rows, columns[0])
    return columns, *pieces_of(encoding.features[j], cuts), is_smooth


def _people(model: RowModel, encoding: Encoding, shown: PublicView) -> Floats:
    """Return rows that stand for the holders, float64 [n, d], all of them if they are few, otherwise evenly chosen."""
    values, protects = (evenly(array, model.most_rows) for array in (shown.values, shown.protects))
    return model.draw_rows(values, protects, _one_hot(encoding))


def _one_hot(encoding: Encoding) -> list[tuple[int, ...]]:
    groups = zip(encoding.features, columns_of(encoding), strict=True)
    return [columns for feature, columns in groups if isinstance(feature, CategoricalFeature)]


def _curve(data: Mapping[str, Any]) -> Curve:
    readings = tuple(
        Reading(**reading | {"piece": Piece(**reading["piece"])}) for reading in data["readings"]
    )
    return Curve(**{**data, "readings": readings})
