"""The correction's arithmetic: planned from public rows alone, unbiased, silent where people are alike, as sure as it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from first_fast import first_fast

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import ConfigError, DataError
from ldptree.families.correction_plan import (
    CorrectionPlan,
    PublicEvidence,
    ResidualRange,
    expected_drop,
    make_plan,
)
from ldptree.families.corrections import (
    ROOTS,
    Corrections,
    ResidualEstimates,
    correct,
    sd_of_means,
    unclip_means,
)
from ldptree.inference.discrepancy import ALIKE, likely_discrepancies
from ldptree.inference.tree_gaussian import Levels
from ldptree.mechanisms import number_mechanism_for
from ldptree.partition.cart import grow_cart
from ldptree.partition.tree import Partition
from ldptree.protocol.published_base import PublishedBase
from ldptree.protocol.totals import Totals
from ldptree.public_models.fit import fit_public

ENCODING = Encoding(tuple(NumericFeature(f"x{j}", 0.0, 1.0) for j in range(2)))


def rows(n, seed, shift=0.0):
    """A step, and a shift where the second column is above one half."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, (X[:, 0] > 0.3) + shift * (X[:, 1] > 0.5) + 0.5 * rng.normal(size=n)


def known(base="tree", n=300):
    X, y = rows(n, 0)
    X = X.astype(np.float32)
    model = fit_public(base, X, y)
    return model, PublicEvidence(
        base=model,
        usual=model.answers(X).mean(axis=0),
        X=X,
        answered=model.answers(X),
        errors=model.errors.ravel(),
        range=ResidualRange.of(model.errors.ravel()),
        scale=2 * float(y.std()),
        grow=model.top or (lambda depth: grow_cart(X, y, depth=depth, n_classes=2, criterion="variance")),
        own_variance=lambda tree: model.own_variance(tree, X),
    )


def asked(plan, model, n, seed, shift):
    """Totals of n holders, and their true cells and residuals."""
    X, y = rows(n, [seed, 5], shift)
    found = PublishedBase(ensemble=model.ensemble).residuals(ENCODING, X, y)
    cells = plan.partition.apply(X.astype(np.float32))
    rng = np.random.default_rng([seed, 6])
    half, top = plan.range.half, len(plan.levels) - 1
    place = (np.clip(found, -half, half) + half) / (2 * half) * top
    level = np.floor(place + rng.random(n)).astype(int)
    values = cells * (top + 1) + np.minimum(level, top)
    raw = plan.mechanism.sample_totals(np.bincount(values, minlength=plan.mechanism.n_values), rng)
    totals = Totals.from_raw(raw, mechanism=plan.mechanism, n_private=n, depth=plan.partition.max_depth)
    return totals, cells, found


@pytest.fixture(scope="module")
def forest():
    """A public model that does not know how unsure it is, as a forest does not."""
    model, facts = known("tree")
    return model, replace(facts, own_variance=lambda tree: np.zeros((tree.n_leaves, 1)))


def test_a_planted_shift_is_recovered_where_it_is(forest):
    """Cells of the upper half differ by .6 from those of the lower: every seed of 10 finds it within 4 standard deviations."""
    model, facts = forest
    X, _ = rows(300, 0)
    sides = grow_cart(facts.X, X[:, 1] > 0.5, depth=1, n_classes=2, criterion="variance")
    plan = make_plan(replace(facts, grow=lambda depth: sides), epsilon=2.0, n_holders=20_000, depth=1)
    for seed in range(10):
        totals, *_ = asked(plan, model, 20_000, seed, 0.6)
        found = correct(plan, [ResidualEstimates.of(plan, totals)])
        low, high = found.correction[:, 0]
        assert abs(high - low - 0.6) < 0.1
        assert (found.sd > 0).all()
        assert not found.has_no_effect
        assert found.chance < 1e-6
        assert "wrong on private people" in found.says_of(())


def corrections(correction, sd, *, observed=None, noise_sd=1e-3, prior=ALIKE):
    """Of cells alike in size, which no clipping hides."""
    correction = np.array(correction, float)
    n, m = correction.shape
    return Corrections(
        share=np.full(n, 1 / n),
        correction=correction,
        sd=np.array(sd, float),
        hidden=np.zeros((2, n, m)),
        observed=correction if observed is None else np.array(observed, float),
        noise_sd=np.full((n, m), noise_sd),
        discrepancy=correction,
        priors=(prior,) * m,
    )


@pytest.mark.parametrize("classes", [(), ("bus", "taxi", "app")])
def test_the_line_names_the_clearest_correction_not_the_largest(classes):
    m = 2 if classes else 1
    correction, sd = np.array([[-0.02, 0.0], [0.01, 0.004]]), np.array([[0.29, 0.0], [0.002, 0.002]])
    found = corrections(correction[:, :m], sd[:, :m], prior=replace(ALIKE, root=1.0))
    assert "+0.01 (sd 0.002) where that is clearest, in 2 cells" in found.says_of(classes)
    assert ("share of bus corrected" in found.says_of(classes)) == bool(classes)


def test_little_is_corrected_and_nothing_is_said_where_people_are_alike(forest):
    """At eps 1 and 2,000 holders; at most 3 of 30 seeds may find something (expected under 1: a component costs 3 nats), and
    where nothing is found corrections are small beside what the reports say by chance."""
    model, facts = forest
    plan = make_plan(facts, epsilon=1.0, n_holders=2000)
    found = []
    for seed in range(30):
        totals, *_ = asked(plan, model, 2000, seed, 0.0)
        found.append(correct(plan, [ResidualEstimates.of(plan, totals)]))
    silent = [c for c in found if c.priors == (ALIKE,)]
    assert len(silent) >= 27
    assert sum((c.correction**2).sum() for c in silent) < 0.05 * sum((c.observed**2).sum() for c in silent)
    assert sum(c.has_no_effect for c in found) >= 22
    assert "Within noise of nothing" in next(c for c in found if c.has_no_effect).says_of(())


def test_the_observed_means_are_unbiased_with_the_stated_variance(forest):
    """Each cell's z over 80 samples of people and noise: mean within 4.5 / sqrt(80), mean square within [.5, 1.7]."""
    model, facts = forest
    plan = make_plan(facts, epsilon=2.0, n_holders=4000, depth=2)
    _, cells, found = asked(plan, model, 200_000, 999, 0.0)
    mu = np.bincount(cells, found) / np.bincount(cells)
    z = []
    for seed in range(80):
        seen = ResidualEstimates.of(plan, asked(plan, model, 4000, seed, 0.0)[0])
        z.append((seen.mean - mu) / np.sqrt(seen.variance))
    z = np.array(z)
    assert (np.abs(z.mean(axis=0)) < 0.5).all()
    square = (z**2).mean(axis=0)
    assert ((square > 0.5) & (square < 1.7)).all()


def test_a_model_that_knows_its_doubt_is_drawn_to_the_reports_as_far_as_it_doubts():
    model, facts = known("tree")
    plan = make_plan(facts, epsilon=4.0, n_holders=5000)
    totals, *_ = asked(plan, model, 5000, 0, 0.0)
    seen = ResidualEstimates.of(plan, totals)
    found = correct(plan, [seen])
    assert found.priors == (ALIKE,)
    own = plan.own_variance[:, 0]
    drawn = own / (own + seen.variance)
    # but for what undoing the clipping leaves unsure, the same in every cell
    read, believed = (plan.range.as_read(one[:, 0]) for one in (found.correction, found.discrepancy))
    common = seen.mean - (read - (1 - drawn) * believed) / drawn
    np.testing.assert_allclose(common, common[0], atol=1e-9)
    assert np.abs(common[0]) < plan.common_sd
    # at least as unsure as where private people are known to be alike
    assert (found.sd[:, 0] ** 2 >= own * seen.variance / (own + seen.variance) * (1 - 1e-9)).all()


@pytest.mark.parametrize("heavy", first_fast(True, False))
def test_a_model_that_is_right_is_called_wrong_no_more_often_than_stated(heavy):
    """Errors of no variance (t with 2 degrees of freedom), whose public mean says little, and normal ones: of 200 collections
    not more than 12 % have a stated chance below .05, 4.5 standard deviations above it."""
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, heavy])
        public, private = (rng.standard_t(2, n) if heavy else rng.normal(size=n) for n in (500, 8000))
        plan = replace(plan_of(np.zeros((4, 1))), range=ResidualRange.of(public), scale=2 * public.std())
        plan = replace(plan, mechanism=number_mechanism_for("grr", 6.0, 4, 8))
        half, top = plan.range.half, len(plan.levels) - 1
        place = (np.clip(private, -half, half) + half) / (2 * half) * top
        values = (np.arange(8000) % 4) * (top + 1) + np.floor(place + rng.random(8000)).astype(int).clip(
            0, top
        )
        plan = replace(plan, mean_square=float(np.mean(np.array(plan.levels)[values % (top + 1)] ** 2)))
        raw = plan.mechanism.sample_totals(np.bincount(values, minlength=plan.mechanism.n_values), rng)
        totals = Totals.from_raw(raw, mechanism=plan.mechanism, n_private=8000, depth=2)
        alarms += not correct(plan, [ResidualEstimates.of(plan, totals)]).has_no_effect
    assert alarms <= 24


def test_a_public_model_of_few_rows_is_not_called_wrong_for_private_people_in_particular(forest):
    """Its error is found, and is everybody's: people are alike. A shift that public rows cannot hide is particular."""
    model, facts = forest
    X, _ = rows(300, 0)
    sides = grow_cart(facts.X, X[:, 1] > 0.5, depth=1, n_classes=2, criterion="variance")
    plan = make_plan(replace(facts, grow=lambda depth: sides), epsilon=4.0, n_holders=40_000, depth=1)
    for shift, is_particular in ((0.0, False), (0.6, True)):
        for seed in range(5):
            totals, *_ = asked(plan, model, 40_000, seed, shift)
            moved = [replace(one, mean=one.mean + 0.02) for one in [ResidualEstimates.of(plan, totals)]]
            found = correct(plan, moved)
            assert not found.has_no_effect
            assert found.is_particular == is_particular
            assert ("in particular" if is_particular else "perhaps for everybody") in found.says_of(())


def test_two_standard_deviations_cover_the_truth_though_the_public_model_knows_no_doubt(forest):
    """Over 30 collections. Taken at its word that it knows its own error, as the corrections take it, half would be covered."""
    model, facts = forest
    plan = make_plan(facts, epsilon=4.0, n_holders=6000, depth=3)
    _, at, errors = asked(plan, model, 200_000, 99, 0.6)
    truth = np.bincount(at, errors) / np.bincount(at)
    covered = []
    for seed in range(30):
        totals, *_ = asked(plan, model, 6000, seed, 0.6)
        found = correct(plan, [ResidualEstimates.of(plan, totals)])
        covered.append(np.abs(found.correction[:, 0] - truth) <= 2 * found.sd[:, 0])
    assert np.mean(covered) >= 0.75


def test_without_noise_the_correction_is_the_mean_residual(forest):
    model, facts = forest
    plan = make_plan(facts, epsilon=1.0, n_holders=20_000, depth=2)
    _, cells, found = asked(plan, model, 20_000, 1, 0.6)
    exact = correct(plan, [ResidualEstimates.exact(plan, cells, found)])
    mean = np.bincount(cells, found) / np.bincount(cells)
    np.testing.assert_allclose(exact.correction[:, 0], mean, atol=0.02)


def test_more_budget_and_more_people_plan_finer():
    _, facts = known("tree")
    sizes = [make_plan(facts, epsilon=e, n_holders=3000).partition.n_leaves for e in (0.5, 2.0, 8.0)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    few, many = (make_plan(facts, epsilon=2.0, n_holders=n) for n in (100, 100_000))
    assert few.partition.n_leaves < many.partition.n_leaves
    assert expected_drop(few) < expected_drop(many)


def test_levels_and_oracle_are_the_quietest_of_the_choices(forest):
    _, facts = forest
    best = make_plan(facts, epsilon=2.0, n_holders=3000, depth=2)
    for mechanism in ("grr", "oue", "ss", "sue"):
        for n_levels in (2, 5, 17):
            other = make_plan(
                facts, epsilon=2.0, n_holders=3000, depth=2, n_levels=n_levels, mechanism=mechanism
            )
            if mechanism in ("grr", "oue"):
                assert best.expected_sd <= other.expected_sd
            assert len(other.levels) == n_levels
            assert other.mechanism.name == mechanism
    with pytest.raises(ConfigError, match="known are"):
        make_plan(facts, epsilon=2.0, n_holders=3000, mechanism="laplace")


def test_a_clipped_range_is_undone_on_average():
    errors = np.random.default_rng(0).standard_t(3, 100_000)
    found = ResidualRange.of(errors)

    def read(residuals):
        mean, variance = found.read(
            np.array([np.clip(residuals, -found.half, found.half).mean()]), np.array([1e-6])
        )
        assert variance[0] == pytest.approx(1e-6 / found.slope**2)
        return mean

    for shift in (-0.3, 0.2):
        assert read(errors + shift)[0] == pytest.approx(errors.mean() + shift, abs=0.03)
        assert found.unclip(read(errors + shift))[0] == pytest.approx(errors.mean() + shift, abs=0.03)
        assert 0 <= found.hidden(np.array([shift]))[0] < 0.03
    for shift in (1.2, -1.5):  # beside R a large one, which slope and offset make too small
        mean = found.unclip(read(errors + shift))
        assert abs(read(errors + shift)[0]) < abs(mean[0])
        assert mean[0] == pytest.approx(errors.mean() + shift, abs=0.05)
        assert found.as_read(mean) == pytest.approx(read(errors + shift))
        for part in (2, 3):
            some = errors + np.where(np.arange(len(errors)) % part, 0.0, part * shift)
            mean = found.unclip(read(some))
            assert 0.2 < abs(mean[0]) < abs(some.mean()) + 0.01
            assert abs(some.mean()) < abs(mean[0]) + found.hidden(mean)[0] + 0.1
    assert (found.unclip(np.zeros(2)) == 0).all()
    assert ResidualRange.of(errors, 1e9).slope == 1.0
    with pytest.raises(ConfigError, match="set it"):
        ResidualRange.of(np.zeros(5))


LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy": lambda rng, n: rng.standard_t(3, n) / 3**0.5,
    "skew": lambda rng, n: rng.exponential(size=n) - 1.0,
}
SHIFTED = {
    "nobody": ((0.0, 1.0), (0.0, 1.0)),
    "a half, by a standard deviation and a half": ((0.0, 1.0), (1.5, 1.0)),
    "all, by three": ((3.0, 1.0), (3.0, 1.0)),
    "some, by four": ((0.0, 1.0), (4.0, 0.5)),
}
"""Of each of two cells: by how much its people are shifted, and which part of them."""


@pytest.fixture(scope="module")
def collections():
    """Under each law, shift and noise 4 collections: ends, corrections and sds of two cells and their mean, and what is true."""
    halves, weights = Partition.of([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1]), np.full((1, 2), 0.5)
    found = []
    for law, draw in LAWS.items():
        for shifted, people in SHIFTED.items():
            for noise, seed in ((noise, seed) for noise in (0.05, 0.3) for seed in range(4)):
                rng = np.random.default_rng(seed)
                errors = draw(rng, 1000)
                plan = replace(
                    plan_of(np.zeros((4, 1))),
                    partition=halves,
                    range=ResidualRange.of(errors),
                    scale=2 * np.hypot(errors.std(), 1.0),
                    doubt=np.full((2, 1), np.mean(errors**2) / 500),
                    own_variance=np.zeros((2, 1)),
                )
                half = plan.range.half
                clipped = [
                    np.clip(draw(rng, 20_000) + by * (rng.random(20_000) < part), -half, half).mean()
                    for by, part in people
                ]
                mean, variance = plan.range.read(clipped + rng.normal(0, noise, 2), np.full(2, noise**2))
                made = correct(
                    plan, [ResidualEstimates(mean=mean, variance=variance, mass=np.full(2, 100.0))]
                )
                read, sd = plan.range.as_read(made.correction), sd_of_means(plan, made, weights)
                whole = unclip_means(plan.range, read, sd, weights)
                value, sd, hidden = (
                    np.concatenate([one, other], axis=-2)[..., 0]
                    for one, other in zip((made.correction, made.sd, made.hidden), whole, strict=True)
                )
                ends = value - 2 * sd - hidden[0], value + 2 * sd + hidden[1]
                truth = np.array([by * part for by, part in people])
                found.append(((law, shifted, noise), ends, value, sd, np.append(truth, truth.mean())))
    return found


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_ends_hold_what_is_true_of_cells_and_their_mean_whatever_clipping_hides(collections, noise):
    """By noise alone a third would be told too surely where half of a cell's people are shifted."""
    chosen = [one for one in collections if one[0][2] == noise]
    held = np.array([(low <= truth) & (truth <= high) for _, (low, high), _, _, truth in chosen])
    assert held[:, :2].mean() > 0.93
    assert held[:, 2].mean() > 0.85
    by_noise = np.array([np.abs(value - truth) <= 2 * sd for _, _, value, sd, truth in chosen])
    assert by_noise.mean() < 0.75
    for shifted in SHIFTED:
        assert held[[one[0][1] == shifted for one in chosen]].mean() > 0.75, shifted


def test_the_largest_difference_is_the_clearest_and_no_sign_is_told_wrong(collections):
    of_all = [one for one in collections if one[0][1] == "all, by three"]
    assert np.mean([np.abs(value) >= 2 * sd for _, _, value, sd, _ in of_all]) > 0.95
    assert np.mean([np.abs(value[0] - truth[0]) for _, _, value, _, truth in of_all]) < 0.8
    wrong = [(np.abs(v) >= 2 * sd) & (v * truth < 0) for _, _, v, sd, truth in collections]
    assert not np.any(wrong)


def test_totals_that_do_not_fit_are_refused(forest):
    model, facts = forest
    plan = make_plan(facts, epsilon=1.0, n_holders=500, depth=2)
    other = make_plan(facts, epsilon=1.0, n_holders=500, depth=1)
    totals, *_ = asked(other, model, 500, 0, 0.0)
    with pytest.raises(DataError, match="correction: totals of shape"):
        ResidualEstimates.of(plan, totals)
    with pytest.raises(DataError, match="0 outputs"):
        correct(plan, [])


def test_a_residual_that_cannot_be_told_is_not_a_number():
    model, _ = known("tree")
    base = PublishedBase(ensemble=model.ensemble)
    found = base.residuals(ENCODING, np.array([[0.1, np.nan], [0.1, 0.2]]), np.array([1.0, np.nan]))
    assert np.isnan(found).all()


def test_evidence_counts_standard_deviations_of_the_reports_noise():
    found = corrections([[2.0]], [[2.0]], noise_sd=0.5)
    assert found.evidence.tolist() == [[4.0]]
    assert found.chance == pytest.approx(6.3e-5, rel=0.01)
    assert not found.has_no_effect


def test_a_correction_of_nothing_never_says_that_the_model_is_wrong():
    found = corrections([[0.0]], [[0.0]], observed=[[1.0]], noise_sd=0.25)
    assert not found.has_no_effect
    assert found.says_of(()).startswith("Nothing is added: in 1 cell the reports differ")


# how sure an average of corrections is: as sure as the whole posterior


def plan_of(own: np.ndarray) -> CorrectionPlan:
    """Four cells at depth 2; `own` [4, M] is the public model's own variance."""
    tree = Partition.from_json(
        {
            "feature": [0, 0, 0, -1, -1, -1, -1],
            "threshold": [0.5, 0.25, 0.75, 0.0, 0.0, 0.0, 0.0],
            "left": [1, 3, 5, -1, -1, -1, -1],
            "right": [2, 4, 6, -1, -1, -1, -1],
        }
    )
    return CorrectionPlan(
        partition=tree,
        mechanism=number_mechanism_for("grr", 2.0, 4, 2),
        range=ResidualRange(half=1.0),
        mean_square=1.0,
        scale=2.0,
        public_count=np.full(4, 10.0),
        own_variance=own,
        doubt=own,
        expected_sd=0.1,
    )


def found_of(plan: CorrectionPlan, mean: tuple[float, ...] = (0.5, 0.7, 0.4, 0.9)):
    """Corrections of two outputs, of which only the first has a discrepancy."""
    noise = np.array([0.01, 0.02, 0.04, 0.01])
    seen = [
        ResidualEstimates(mean=np.array(mean), variance=noise, mass=np.full(4, 100.0)),
        ResidualEstimates(mean=0.001 * np.array(mean), variance=noise, mass=np.full(4, 100.0)),
    ]
    return correct(plan, seen)


@pytest.mark.parametrize("own", [0.0, 0.03])
def test_the_mean_over_one_cell_is_as_sure_as_its_correction(own):
    plan = plan_of(np.full((4, 2), own))
    found = found_of(plan)
    assert found.priors[0].n_components > found.priors[1].n_components == 0
    assert sd_of_means(plan, found, np.eye(4)) == pytest.approx(found.sd, rel=1e-6)


@pytest.mark.parametrize("own", [0.0, 0.03])
def test_the_mean_over_several_cells_is_as_sure_as_the_dense_posterior_says(own):
    """Of mu = D + N(0, own) seen with noise: the distance of w mu from w correction by plain matrices, over all processes."""
    plan = plan_of(np.full((4, 2), own))
    found = found_of(plan)
    weights = np.array([[0.25, 0.25, 0.25, 0.25], [0.7, 0.3, 0.0, 0.0]])
    levels, at = Levels.of(plan.partition.parent), plan.partition.leaves
    for output in range(2):
        noise, seen = found.noise_sd[:, output] ** 2, found.observed[:, output]
        values, variance = np.full(7, np.nan), np.full(7, np.inf)
        values[at], variance[at] = seen / plan.scale, (noise + own) / plan.scale**2
        expected = np.zeros(2)
        for prior, share in likely_discrepancies(levels, values, variance, ROOTS):
            root, first, second = prior.innovation(2) * plan.scale**2
            shared = np.full((4, 4), root) + np.kron(np.eye(2), np.full((2, 2), first)) + second * np.eye(4)
            of_mu = shared + own * np.eye(4)
            gain = of_mu @ np.linalg.inv(of_mu + np.diag(noise))
            left = of_mu - gain @ of_mu
            apart = weights @ (gain @ seen - found.correction[:, output])
            expected += share * (np.einsum("kl,lm,km->k", weights, left, weights) + apart**2)
        assert sd_of_means(plan, found, weights)[:, output] == pytest.approx(np.sqrt(expected), rel=1e-5)


def test_a_mean_over_cells_that_lean_on_each_other_is_less_sure_than_if_they_did_not():
    plan = plan_of(np.zeros((4, 2)))
    found = found_of(plan, (0.5, 0.5, 0.5, 0.5))
    weights = np.full((1, 4), 0.25)
    apart = np.sqrt(weights**2 @ found.sd[:, :1] ** 2)
    assert sd_of_means(plan, found, weights)[0, 0] > 1.2 * apart[0, 0]
