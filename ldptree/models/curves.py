"""What a model of public features says along its features: how strong each is, and curves along the strongest.

What lives here: over whom it is taken, where a curve is read, and the value (JSON). What does not: the arithmetic of any function
(`effects`), rows that stand for people (`histoftree.people`, `public_features.people`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.encoding import CategoricalFeature, Encoding
from ldptree.errors import DataError
from ldptree.families.histoftree import HistOfTreeModel
from ldptree.families.histoftree.people import people as people_of_cells
from ldptree.families.public_features import PublicFeatureModel
from ldptree.families.public_features.people import people as people_of_ranks
from ldptree.models.description import CurveLine, CurvePoint, Names, Statement, name_piece
from ldptree.models.effects import (
    Piece,
    columns_of,
    importance,
    partial_dependence,
    pieces_of,
    stretches_held,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.models.public_view import ShownModel
    from ldptree.protocol.question import PublicView

    Floats = NDArray[np.float64]
    Inner = HistOfTreeModel | PublicFeatureModel

CURVES = 2
WORTH_A_CURVE = 0.005
"""A feature with a smaller share of the variance has no curve."""
MOST_PEOPLE, FEWEST_PEOPLE, MOST_PEOPLE_CELLS = 2_000, 50, 2**27
"""People that strengths and curves are taken over; people times cells."""
HEARD = 2.0
"""A count that is so many standard deviations of its noise."""


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
    """What a model says along its features.

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
        """What `to_json` wrote. Raises DataError."""
        try:
            data = json.loads(text)
            curves = tuple(_curve(one) for one in data.pop("curves"))
            return cls(curves=curves, strengths=tuple(data.pop("strengths")), **data)
        except (TypeError, KeyError, AttributeError, ValueError, RecursionError):
            raise DataError("curves: not what learn wrote; is the file whole?") from None


def along(model: ShownModel, shown: PublicView) -> Along:
    """Strengths and curves, over people who show what holders show; what those protect is drawn from the model.

    Args:
        model: the released model.
        shown: what everybody can see.
    """
    groups, rows = columns_of(model.encoding), _people(model, shown)
    strengths = importance(model.inner.predict, rows, groups)
    strongest = [j for j in np.argsort(-strengths, kind="stable").tolist() if strengths[j] > WORTH_A_CURVE]
    return Along(
        strengths=tuple(strengths.tolist()),
        curves=tuple(
            _along_one(model, j, groups[j], rows, min(float(strengths[j]), 1.0)) for j in strongest[:CURVES]
        ),
        n_averaged=len(rows),
    )


def describe_curves(
    found: Along, encoding: Encoding, names: Names
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
                    name=name_piece(columns[curve.feature], one.piece, names),
                    low=one.piece.low,
                    high=one.piece.high,
                    value=one.value,
                )
                for one in curve.readings
            ),
        )
        for curve in found.curves
    )
    strongest = sorted(zip(columns, found.strengths, strict=True), key=lambda one: -one[1])
    said = tuple(
        Statement(kind="strength", about=column, figures={"part": strength}) for column, strength in strongest
    )
    return curves, said


def is_heard(model: HistOfTreeModel) -> NDArray[np.bool_]:
    """Cells whose count stands out of its noise, bool [cells]."""
    return np.asarray(model.count > HEARD * model.count_sd)


def evenly(rows: NDArray[Any], most: int) -> NDArray[Any]:
    """At most so many of the rows, at equal distances."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64))]


def _along_one(
    model: ShownModel,
    j: int,
    columns: tuple[int, ...],
    rows: Floats,
    strength: float,
) -> Curve:
    cuts, is_smooth = _cuts(model.inner, columns[0], rows)
    pieces, probes = pieces_of(model.encoding.features[j], cuts)
    values = partial_dependence(model.inner.predict, rows, columns, probes)
    guesses = partial_dependence(_is_guess(model.inner), rows, columns, probes)
    return Curve(
        feature=j,
        strength=strength,
        is_smooth=is_smooth,
        in_noise=float(guesses.max()),
        readings=tuple(
            Reading(piece=piece, value=value) for piece, value in zip(pieces, values.tolist(), strict=True)
        ),
    )


def _is_guess(model: Inner) -> Callable[[Floats], Floats]:
    """Of rows, 1 where the answer is that of a cell that does not stand out of the noise, otherwise 0."""
    if isinstance(model, PublicFeatureModel):
        return lambda rows: np.zeros(len(rows))
    heard = is_heard(model)
    return lambda rows: np.asarray(~heard[model.cells(rows)], dtype=np.float64)


def _people(model: ShownModel, shown: PublicView) -> Floats:
    """Rows that stand for the holders, float64 [n, d]: every one where they are few, otherwise evenly chosen."""
    inner = model.inner
    if isinstance(inner, HistOfTreeModel):
        most = int(np.clip(MOST_PEOPLE_CELLS // inner.partition.n_cells, FEWEST_PEOPLE, MOST_PEOPLE))
        return people_of_cells(inner, evenly(shown.values, most), evenly(shown.protects, most))
    values, protects = evenly(shown.values, MOST_PEOPLE), evenly(shown.protects, MOST_PEOPLE)
    groups = zip(model.encoding.features, columns_of(model.encoding), strict=True)
    one_hot = [columns for feature, columns in groups if isinstance(feature, CategoricalFeature)]
    return people_of_ranks(inner, values, protects, one_hot=one_hot)


def _cuts(model: Inner, column: int, rows: Floats) -> tuple[Floats, bool]:
    """Ends of the stretches along an encoded column, in [0, 1], and whether the function varies within them."""
    if isinstance(model, PublicFeatureModel):
        return stretches_held(rows[:, column]), True
    histogram, tree = model.partition.histogram, model.partition.tree
    if column in histogram.features:
        return np.arange(histogram.bins + 1) / histogram.bins, False
    cuts = np.unique(tree.threshold[tree.feature == column])
    return np.array([0.0, *cuts[(cuts > 0) & (cuts < 1)], 1.0]), False


def _curve(data: Mapping[str, Any]) -> Curve:
    readings = tuple(Reading(**one | {"piece": Piece(**one["piece"])}) for one in data["readings"])
    return Curve(**{**data, "readings": readings})
