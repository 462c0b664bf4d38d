"""What curves of a model of public features promise of their noise and their file."""

from __future__ import annotations

import numpy as np
import pytest

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.families.public_features import PublicFeatureModel
from ldptree.families.public_features.surface import Surface
from ldptree.models.curves import along, evenly
from ldptree.models.public_view import ShownModel
from ldptree.protocol.question import Shown

ENCODING = Encoding((NumericFeature("size", 0.0, 4.0), CategoricalFeature("kind", ("calm", "wild"))))


def line(intercept: float, *slopes: float) -> PublicFeatureModel:
    return PublicFeatureModel(
        columns=tuple(ENCODING.names),
        low=(0.0,) * 3,
        high=(1.0,) * 3,
        private=(),
        label_low=-99.0,
        label_high=99.0,
        is_binary=False,
        surface=Surface((0, 1, 2), np.zeros(3), intercept, np.array(slopes)),
        effects=(),
        epsilon=1.0,
        n_holders=500,
        says="",
    )


@pytest.fixture(scope="module")
def shown():
    rng = np.random.default_rng(0)
    wild = rng.integers(0, 2, 500)
    rows = np.column_stack([rng.random(500), 1 - wild, wild]).astype(float)
    return Shown.of(rows, np.zeros(rows.shape, dtype=bool))


@pytest.fixture(scope="module")
def model():
    return ShownModel(
        encoding=ENCODING,
        target="rings",
        private=(),
        estimator="public_features",
        inner=line(1.0, 8.0, 0.0, 3.0),
        epsilon=1.0,
        n_private=500,
        questions=(),
    )


def test_the_band_is_the_standard_deviation_of_the_refits_own_curves(model, shown):
    """Lines whose slope along size is 8 - 2, 8 or 8 + 2: at x in [0, 1] the sd is 2 x, and of a level that of the rest."""
    drawn = [line(1.0, 8.0 + step, 0.0, 3.0) for step in (-2.0, 0.0, 2.0)]
    found = along(model, shown, drawn)
    assert found.n_refits == 3
    size, kind = found.curves
    for one in size.readings:
        assert one.sd == pytest.approx(2 * (one.piece.low + one.piece.high) / 8)
    people = evenly(shown.values, 400)
    assert [one.sd for one in kind.readings] == pytest.approx([2 * people[:, 0].mean()] * 2)


def test_without_refits_there_is_no_band(model, shown):
    found = along(model, shown)
    assert found.n_refits == 0
    assert {one.sd for curve in found.curves for one in curve.readings} == {None}


def test_curves_are_read_back_as_they_were_written(model, shown):
    found = along(model, shown, [line(1.0, 8.0, 0.0, 3.0), line(2.0, 8.0, 0.0, 3.0)])
    assert type(found).from_json(found.to_json()) == found


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"curves": [{"readings": 3}], "strengths": []}'])
def test_a_damaged_file_of_curves_is_refused(model, shown, text):
    with pytest.raises(DataError, match="curves"):
        type(along(model, shown)).from_json(text)
