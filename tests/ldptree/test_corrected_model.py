"""A released corrected model: both parts of its answers, its JSON, its tree of corrections, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from corrected_examples import KINDS, hard_rows, random_corrected
from protocol_texts import signed

from ldptree.errors import DataError
from ldptree.inference.shares import raised
from ldptree.models.corrected import LEAST_OF_PUBLIC, CorrectedModel, add_clipped, shares_of
from ldptree.public_models.model import answers

# Both parts


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_gets_what_the_trees_say_and_the_correction_of_its_cell(kind):
    model = random_corrected(kind, 2)
    raw = hard_rows(model, 400, 2)
    said, cells = model.predict_parts(raw), model.cells(raw)
    is_whole = cells >= 0
    assert 0 < is_whole.sum() < len(raw)
    encoded = model.encoding.encode(raw[is_whole])
    np.testing.assert_array_equal(said.public[is_whole], answers(model.base, encoded, len(model.classes)))
    added, variance = (
        model.corrections.correction[cells[is_whole]],
        model.corrections.sd[cells[is_whole]] ** 2,
    )
    for stump in model.stumps:
        is_above = encoded[:, stump.contrast.feature] > stump.contrast.threshold
        apart = np.where(is_above, 1.0, -1.0) - stump.balance[cells[is_whole]]
        added, variance = added + stump.shift * apart[:, None], variance + (stump.sd * apart[:, None]) ** 2
    np.testing.assert_allclose(said.correction[is_whole], added, rtol=0, atol=1e-12 if model.stumps else 0)
    assert (said.sd[is_whole] >= np.sqrt(variance) - 1e-12).all()
    if not model.stumps:
        np.testing.assert_array_equal(said.sd[is_whole], model.corrections.sd[cells[is_whole]])
    both = add_clipped(said.public, said.correction) if model.classes else said.public + said.correction
    np.testing.assert_array_equal(model.answers(raw), both)
    np.testing.assert_array_equal(model.public_answers(raw), said.public)


def test_a_row_that_cannot_be_encoded_gets_the_default_and_the_largest_doubt():
    model = random_corrected("three classes, shares", 3)
    raw = hard_rows(model, 5, 3)
    raw[:, model.encoding.columns.index("miles")] = np.nan
    said = model.predict_parts(raw)
    np.testing.assert_array_equal(said.public, np.tile(model.default, (5, 1)))
    np.testing.assert_array_equal(said.corrected, said.public)
    np.testing.assert_array_equal(said.sd, np.tile(model.corrections.sd.max(axis=0), (5, 1)))


def test_a_correction_leaves_a_part_of_every_public_share():
    """So that no log loss rises without end; where there is room both are added up, and of two classes the likelier stays."""
    rng = np.random.default_rng(5)
    public, added = rng.random((4000, 1)), rng.normal(0, 0.5, (4000, 1))
    found = add_clipped(public, added)
    assert (found >= LEAST_OF_PUBLIC * public).all()
    assert (1 - found >= LEAST_OF_PUBLIC * (1 - public) - 1e-15).all()
    has_room = (public + added > LEAST_OF_PUBLIC * public) & (
        1 - public - added > LEAST_OF_PUBLIC * (1 - public)
    )
    assert 0.5 < has_room.mean() < 1
    np.testing.assert_array_equal(found[has_room], (public + added)[has_room])
    np.testing.assert_array_equal(found > 0.5, public + added > 0.5)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "three" in kind or "ten" in kind])
def test_a_share_that_the_public_model_gives_is_never_corrected_to_0(kind):
    model = random_corrected(kind, 4)
    raw = hard_rows(model, 300, 4)
    said = model.predict_parts(raw)
    is_given = (model.cells(raw) >= 0)[:, None] & (said.public > 0)
    assert is_given.mean() > 0.5
    assert (said.public + said.correction)[is_given].min() < 0 < said.corrected[is_given].min()


def test_where_every_share_is_negative_all_are_alike():
    np.testing.assert_array_equal(shares_of(np.array([[-1.0, -0.5, 0.0, -2.0]])), [[0.25] * 4])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "number" not in kind])
def test_no_chance_is_0_or_1_and_the_likeliest_class_stays(kind):
    model = random_corrected(kind, 6)
    raw = hard_rows(model, 400, 6)
    parts, n_classes = model.predict_parts(raw), len(model.classes)
    for outputs in (parts.public, parts.corrected):
        chances, shares = parts.shares(outputs), shares_of(outputs)
        assert 0 < chances.min() <= chances.max() < 1
        np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_array_equal(chances.argmax(axis=1), shares.argmax(axis=1))
        low = shares.min(axis=1) * (np.maximum(parts.rows, 1) + n_classes) < 1
        np.testing.assert_allclose(chances[~low], shares[~low], atol=1e-12)
    cells = model.cells(raw)
    n = model.n_private + model.n_public
    expected = np.where(cells < 0, n, n * model.corrections.share[cells])
    np.testing.assert_allclose(parts.rows, expected)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_class_that_none_of_n_rows_has_gets_the_chance_of_the_rule_of_succession(n_classes):
    shares = np.eye(n_classes)[[0, 0, 1]]
    raised_to = raised(shares, np.array([0.0, 8.0, 1000.0]))
    least = 1 / (np.array([1.0, 8.0, 1000.0]) + n_classes)
    np.testing.assert_allclose(raised_to.min(axis=1), least / (1 + (n_classes - 1) * least))
    np.testing.assert_array_equal(raised_to.argmax(axis=1), [0, 0, 1])


def test_intervals_hold_the_answer_and_shrink_with_the_level():
    model = random_corrected("number", 5)
    raw = hard_rows(model, 200, 5)
    (low, high), (lower, higher) = model.interval(raw, 0.5), model.interval(raw, 0.9)
    assert (lower <= low).all()
    assert (low <= model.answers(raw)).all()
    assert (model.answers(raw) <= high).all()
    assert (high <= higher).all()


# JSON


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sd", lambda v: [[-1.0] for _ in v]),
        ("share", lambda v: [-1.0, *v[1:]]),
        ("correction", lambda v: [["inf"], *v[1:]]),
        ("noise_sd", lambda v: [["nan"], *v[1:]]),
        ("default", lambda v: [10**400]),
        ("classes", lambda v: ["only one"]),
        ("priors", lambda v: [[1.0, 2.0]]),
        ("base", lambda v: v | {"offset": [10**400]}),
        ("base", lambda v: v | {"feature": [99 if f >= 0 else f for f in v["feature"]]}),
        ("base", lambda v: v | {"link": "logistic"}),
        ("partition", lambda v: v | {"threshold": [10**400 for _ in v["threshold"]]}),
        ("stumps", lambda v: [v[0] | {"sd": -1.0}]),
        ("stumps", lambda v: [v[0] | {"balance": [0.0]}]),
        ("stumps", lambda v: [v[0] | {"contrast": [99, 0.5]}]),
    ],
)
def test_a_part_that_does_not_fit_is_refused_though_the_digest_fits(field, value):
    data = json.loads(random_corrected("number, with stumps", 7).to_json())
    with pytest.raises(DataError):
        CorrectedModel.from_json(signed(data | {field: value(data[field])}))
