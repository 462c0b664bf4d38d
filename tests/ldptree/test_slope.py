"""A slope beside cells: found where it is planted, silent where it is not, exact by plain matrices, whole in JSON."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from corrected_examples import random_corrected
from number_examples import UNIT
from slope_examples import apart, holders, plan_of, question, rows, side, totals_of

from ldptree.errors import DataError
from ldptree.families.correction_means import ROOTS, own_weights, sd_of_means
from ldptree.families.correction_plan import expected_drop, make_plan
from ldptree.families.correction_slope import leans
from ldptree.families.corrections import Observed, correct
from ldptree.families.fit_correction import Public, PublicSide, corrected, plan_behind
from ldptree.inference.discrepancy import discrepancy_grid
from ldptree.models.corrected import CorrectedModel
from ldptree.models.ensemble import Ensemble
from ldptree.partition.tree import Partition
from ldptree.protocol.protocol import Protocol
from ldptree.public_models.public_slope import TAUS
from ldptree.public_models.slope import cut, without_slope


def found_of(plan, slope, shift=0.0, seed=1):
    people, _ = holders(plan, slope, shift, seed=seed)
    return correct(plan, [Observed.of(plan, totals_of(people, seed))])


def test_cells_are_cut_once_more_and_back():
    tree = cut(cut(Partition.single(), 0, 0.5), 1, 0.25)
    again = cut(tree, 2, 0.75)
    assert again.n_leaves == 2 * tree.n_leaves
    assert without_slope(again, 2).digest == tree.digest
    rng = np.random.default_rng(0)
    X = rng.random((200, 3)).astype(np.float32)
    assert (again.apply(X) == 2 * tree.apply(X) + (X[:, 2] > 0.75)).all()
    for column in (0, 1, 3):
        with pytest.raises(DataError, match=f"does not test column {column} once for each cell"):
            without_slope(again, column)
    with pytest.raises(DataError, match="does not test column 0"):
        without_slope(Partition.single(), 0)


@pytest.mark.parametrize(("slope", "shift"), [(0.8, 0.0), (-0.6, 0.0), (0.7, 0.5)])
def test_a_planted_slope_is_found_beside_a_shift_of_everybody(slope, shift):
    """Every seed of 4 within 4 standard deviations, and clear of 0 by 2."""
    plan = plan_of()
    for seed in range(4):
        found = found_of(plan, slope, shift, seed)
        assert abs(found.slope.amount - slope) < 4 * found.slope.sd
        assert abs(found.slope.amount) > 2 * found.slope.sd
        assert found.slope.tau > 0
        assert not found.is_nothing
        assert "straight line" in found.says
        assert (found.priors[0].root > 0) == (shift > 0)


def test_nothing_is_found_where_private_people_do_not_follow_the_line():
    """In 20 draws at eps 1 at most 3 finds (5 % of them would be 1)."""
    plan = plan_of(1.0, 1)
    people, _ = holders(plan, 0.0)
    found = [correct(plan, [Observed.of(plan, totals_of(people, seed))]) for seed in range(20)]
    assert sum(not each.is_nothing for each in found) <= 3
    assert sum(each.slope.tau > 0 for each in found) <= 1
    quiet = next(each for each in found if each.is_nothing)
    assert abs(quiet.slope.amount) < 0.1
    assert "Within noise of nothing" in quiet.says


def test_two_runs_of_the_smoother_are_the_posterior_by_plain_matrices():
    plan = plan_of(2.0, 2)
    rng = np.random.default_rng(4)
    n = plan.partition.n_leaves
    mean, noise = rng.normal(0.2, 0.3, n), rng.uniform(0.01, 0.05, n)
    noise[3] = np.inf
    heard = np.isfinite(noise)
    own, centre = plan.own_variance[:, 0], plan.slope.centre
    whole = without_slope(plan.partition, plan.slope.column)
    cells, nodes = whole.paths()
    above = np.zeros((n, whole.n_nodes))
    above[2 * cells, nodes] = above[2 * cells + 1, nodes] = 1
    fits = []
    for lean, (prior, tau) in zip(
        leans(plan, mean, noise + own, ROOTS), itertools.product(discrepancy_grid(ROOTS), TAUS), strict=True
    ):
        assert (lean.prior, lean.tau) == (prior, tau)
        innovation = prior.innovation(whole.max_depth)[whole.depth] * plan.scale**2
        of_d, free = above * innovation @ above.T, plan.slope.variance + tau
        seen = (of_d + free * np.outer(centre, centre) + np.diag(own + np.where(heard, noise, 0)))[
            np.ix_(heard, heard)
        ]
        alpha = np.linalg.solve(seen, mean[heard])
        assert lean.amount == pytest.approx(free * centre[heard] @ alpha, rel=1e-6, abs=1e-9)
        left = free - free**2 * centre[heard] @ np.linalg.solve(seen, centre[heard])
        assert lean.variance == pytest.approx(left, rel=1e-6)
        assert lean.discrepancy == pytest.approx(of_d[:, heard] @ alpha, rel=1e-5, abs=1e-8)
        of_sum = of_d + free * np.outer(centre, centre)
        spread = of_sum - of_sum[:, heard] @ np.linalg.solve(seen, of_sum[heard])
        assert lean.doubt == pytest.approx(np.diag(spread), rel=1e-5, abs=1e-9)
        fits.append((lean.fit, -0.5 * mean[heard] @ alpha - 0.5 * np.linalg.slogdet(seen)[1]))
    ours, plainly = np.array(fits).T
    assert ours - ours[0] == pytest.approx(plainly - plainly[0], abs=1e-6)


def test_an_average_is_as_sure_as_its_cells_say():
    plan = plan_of(2.0, 2)
    found = found_of(plan, 0.5)
    n = plan.partition.n_leaves
    assert sd_of_means(plan, found, np.eye(n)) == pytest.approx(found.sd, rel=1e-6)
    weights = own_weights(plan, found)[:, 0]
    seen, step = found.observed[:, 0], 1e-4 * plan.scale
    for cell in (0, n - 1):
        moved = seen + step * (np.arange(n) == cell)
        again = correct(
            plan, [Observed(mean=moved, variance=found.noise_sd[:, 0] ** 2, mass=found.share * 1000)]
        )
        assert (again.priors, again.slope.tau) == (found.priors, found.slope.tau)
        by = (again.correction - found.correction)[cell, 0] / step
        assert by == pytest.approx(weights[cell], abs=1e-6)


@pytest.mark.parametrize(("slope", "shift", "epsilon"), [(0.0, 0.0, 2.0), (0.8, 0.1, 2.0), (0.8, 0.0, 1.0)])
def test_two_standard_deviations_cover_the_mean_of_a_cell_nine_times_in_ten(slope, shift, epsilon):
    plan = plan_of(epsilon, 2)
    people, truth = holders(plan, slope, shift)
    is_in = []
    for seed in range(12):
        found = correct(plan, [Observed.of(plan, totals_of(people, seed))])
        is_in.append((np.abs(found.correction[:, 0] - truth) <= 2 * found.sd[:, 0])[~np.isnan(truth)])
    assert np.size(is_in) >= 60
    assert np.mean(is_in) >= 0.9


def test_a_slope_is_asked_about_where_public_rows_expect_it_to_be_shown():
    """The public rows' errors follow the line, or not; few reports cannot show it."""
    rng = np.random.default_rng(5)
    X = rng.random((300, 2))
    straight = 3 * X @ [1.0, 0.5] + 0.4 * rng.normal(size=300)
    known = PublicSide.of("tree", UNIT, UNIT.encode(X), straight, n_classes=0).known
    assert known.slope.expected > 0.5
    many = make_plan(known, epsilon=4.0, n_holders=5_000)
    assert many.slope is not None
    assert expected_drop(many) > expected_drop(
        make_plan(replace(known, slope=None), epsilon=4.0, n_holders=5_000)
    )
    assert make_plan(known, epsilon=0.5, n_holders=500).slope is None
    useless = replace(known.slope, errors=rng.normal(size=300))
    assert make_plan(replace(known, slope=useless), epsilon=4.0, n_holders=5_000).slope is None
    assert make_plan(known, epsilon=4.0, n_holders=5_000, depth=1).partition.max_depth == 2


def test_a_base_for_classes_a_forest_and_few_rows_have_no_slope():
    X, y = rows(60, 3)
    x = UNIT.encode(X)
    assert PublicSide.of("tree", UNIT, x, y, n_classes=0).known.slope is not None
    assert PublicSide.of("tree", UNIT, x, (y > 0.5).astype(int), n_classes=2).known.slope is None
    assert PublicSide.of("boosting", UNIT, x, y, n_classes=0).known.slope is None
    assert PublicSide.of("tree", UNIT, x[:8], y[:8], n_classes=0).known.slope is None
    assert PublicSide.of("tree", UNIT, x, np.ones(60), n_classes=0).known.slope is None
    assert any(
        PublicSide.of("tree", UNIT, x, y, n_classes=0, max_bytes=size).known.slope is None
        for size in range(7_000, 3_000, -500)
    )


@pytest.fixture(scope="module")
def mended():
    plan = plan_of()
    people, _ = holders(plan, 0.7)
    public = Public.of(side(), plan)
    return question(plan), public, totals_of(people, 1)


def test_what_public_rows_say_is_the_same_when_read_again(mended):
    protocol, public, totals = mended
    again = Protocol.from_json(protocol.to_json())
    read = Public.from_json(json.loads(json.dumps(public.to_json())), again)
    first, second = (
        corrected(p, known, [totals], epsilon=4.0) for p, known in ((protocol, public), (again, read))
    )
    assert first.to_json() == second.to_json()
    behind = plan_behind(again, side().answering_as(again), 20_000)
    assert behind.slope.centre == pytest.approx(public.plan.slope.centre)
    assert behind.partition.digest == public.plan.partition.digest


def test_a_later_round_of_a_campaign_keeps_the_slope_that_was_published(mended):
    """Public rows of now, of which some give a line of their own and some none at all."""
    protocol, _, totals = mended
    for n in (300, 8):
        X, y = rows(n, 9)
        later = PublicSide.of("tree", UNIT, UNIT.encode(X), y, n_classes=0).answering_as(protocol)
        plan = plan_behind(protocol, later, 20_000)
        assert plan.slope.published is protocol.base.slope
        model = corrected(protocol, Public.of(later, plan), [totals], epsilon=4.0)
        assert abs(model.corrections.slope.amount - 0.7) < 5 * model.corrections.slope.sd


def test_the_answer_is_the_trees_and_the_correction_and_how_far_the_line_is_from_it(mended):
    protocol, public, totals = mended
    model = corrected(protocol, public, [totals], epsilon=4.0)
    X, _ = rows(500, 7)
    found = model.corrections
    cells, f0, g = protocol.cells(X), side().base.answers(UNIT.encode(X))[:, 0], apart(X)
    assert (model.cells(X) == cells).all()
    off = g - found.slope.centre[cells]
    by_hand = f0 + (found.correction[cells, 0] + found.slope.amount * off)
    assert model.predict(X).tolist() == by_hand.tolist()
    said = model.predict_parts(X)
    assert said.public[:, 0].tolist() == f0.tolist()
    assert said.sd[:, 0] == pytest.approx(found.sd[cells, 0] + found.slope.sd * np.abs(off))
    X[3, 1] = np.nan
    (row,) = (model.predict_parts(X[3:4]),)
    assert row.corrected[0] == model.default
    assert row.correction[0, 0] == 0


def test_an_answer_walks_each_public_model_once_and_says_the_cell_and_how_far_they_are_apart(
    mended, monkeypatch
):
    protocol, public, totals = mended
    model = corrected(protocol, public, [totals], epsilon=4.0)
    X, _ = rows(500, 7)
    X[3, 1] = np.nan
    g, cells = apart(X[np.arange(500) != 3]), model.cells(X)
    walked, predict = [], Ensemble.predict

    def counted(self, encoded):
        walked.append(self)
        return predict(self, encoded)

    monkeypatch.setattr(Ensemble, "predict", counted)
    said = model.predict_parts(X)
    assert sorted(map(id, walked)) == sorted([id(model.base), id(model.slope.trees)])
    assert said.cells.tolist() == cells.tolist()
    assert said.apart[np.arange(500) != 3].tolist() == g.tolist()
    assert cells[3] == -1
    assert np.isnan(said.apart[3])


def damaged(model, **changes):
    """Its text with fields of the slope changed, and a digest that fits."""
    data = json.loads(model.to_json())
    data["slope"] |= changes
    return resigned(data)


def resigned(data):
    import hashlib

    data.pop("digest", None)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return json.dumps(data | {"digest": hashlib.sha256(text.encode()).hexdigest()})


def test_a_model_with_a_slope_is_whole_in_json_or_refused(mended):
    protocol, public, totals = mended
    model = corrected(protocol, public, [totals], epsilon=4.0)
    again = CorrectedModel.from_json(model.to_json())
    X, _ = rows(50, 8)
    assert (again.to_json(), again.digest) == (model.to_json(), model.digest)
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert "slope" not in json.loads(random_corrected().to_json())
    for changes, said in (
        ({"half": -1.0}, "half = -1.0"),
        ({"sd": -0.1}, "below 0"),
        ({"tau": -0.1}, "below 0"),
        ({"amount": "x"}, "amount"),
        ({"amount": None}, "amount"),
        ({"centre": [0.1]}, "one a cell"),
        ({"centre": "x"}, "centre"),
        ({"more": 1}, "exactly the fields"),
        ({"trees": {}}, "exactly the fields"),
    ):
        with pytest.raises(DataError, match=said):
            CorrectedModel.from_json(damaged(model, **changes))
    data = json.loads(model.to_json())
    without = {name: value for name, value in data.items() if name != "slope"}
    with pytest.raises(DataError, match="tests a column"):
        CorrectedModel.from_json(resigned(without))
    with pytest.raises(DataError, match="does not test column 2 once for each cell"):
        CorrectedModel.from_json(resigned(data | {"partition": Partition.single().to_json()}))
