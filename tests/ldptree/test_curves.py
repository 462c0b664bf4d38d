"""What curves of a model of public features promise, and their file."""

from __future__ import annotations

import numpy as np
import pytest

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.families.public_features import PublicFeatureModel
from ldptree.models.curves import along
from ldptree.models.public_view import PublicViewModel
from ldptree.models.surface import Surface
from ldptree.protocol.question import PublicView

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
    return PublicView.of(rows, np.zeros(rows.shape, dtype=bool))


@pytest.fixture(scope="module")
def model():
    return PublicViewModel(
        encoding=ENCODING,
        target="rings",
        private=(),
        estimator="public_features",
        inner=line(1.0, 8.0, 0.0, 3.0),
        epsilon=1.0,
        n_private=500,
        questions=(),
    )


def test_a_curve_is_the_answer_averaged_over_people(model, shown):
    """Of the line 1 + 8 size + 3 wild: 2 for each unit of size, of which its range has 4, and 3 from one kind to the other."""
    size, kind = along(model.inner, model.encoding, shown).curves
    start = size.readings[0]
    for one in size.readings:
        assert one.value - start.value == pytest.approx(
            2 * (one.piece.low + one.piece.high - start.piece.low - start.piece.high) / 2
        )
    calm, wild = kind.readings
    assert wild.value - calm.value == pytest.approx(3.0)


def test_curves_are_read_back_as_they_were_written(model, shown):
    found = along(model.inner, model.encoding, shown)
    assert type(found).from_json(found.to_json()) == found


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"curves": [{"readings": 3}], "strengths": []}'])
def test_a_damaged_file_of_curves_is_refused(model, shown, text):
    with pytest.raises(DataError, match="curves"):
        type(along(model.inner, model.encoding, shown)).from_json(text)
