"""Forecasts before anybody is asked: of every family, the same each time, as sharp as the mechanism's exact variance says."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from first_fast import first_fast
from seeded_words import words as seeded

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import ConfigError, DataError
from ldptree.families import FAMILIES, LearningProblem
from ldptree.families.correction import Correction
from ldptree.planning import backwards, forecast, learners
from ldptree.planning.backwards import HOLDERS, Figure, Need, Sharpness, solve_epsilon, solve_holders
from ldptree.planning.detection import (
    LEVEL,
    POWER,
    Findable,
    class_weights,
    fall_together,
    mean_variance,
    noncentrality,
    smallest_error,
    smallest_errors,
)
from ldptree.planning.expected import SURE, Expected, lowest_mean
from ldptree.planning.forecast import Forecaster
from ldptree.planning.known_rows import KnownRows
from ldptree.planning.learners import LearnerOfTotals, shares_of_cells
from ldptree.planning.monotone import rise
from ldptree.planning.people import LEAST_LEFT, Difference, LabelLaw, Split, draw_region, plant

ENCODING = Encoding(tuple(NumericFeature(name, 0.0, 1.0) for name in ("a", "b", "c")))
LABELS = {
    "lpct": "class",
    "lpdt": "number",
    "correction": "class",
    "histoftree": "number",
    "public_features": "number",
}
SETTINGS = {"correction": {"base": "tree"}}


def public_rows(label, n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = X[:, 0] + rng.normal(0, 0.3, n)
    return KnownRows(
        encoding=ENCODING,
        raw=X,
        labels=(y > 0.5).astype(np.int64) if label == "class" else np.clip(y, -0.5, 1.5),
        label=(0, 1) if label == "class" else (-0.5, 1.5),
        protects=np.tile([False, False, True], (n, 1)),
    )


def split_of(rows, seed=0, **how):
    return Split.of(rows, LabelLaw.of(rows, seed), np.random.default_rng(seed), **how)


def building(name, label):
    def build(epsilon):
        problem = LearningProblem(
            columns=ENCODING.names,
            epsilon=epsilon,
            label=label,
            seed=5,
            heading={} if FAMILIES[name].in_rounds else {"target": "y"},
        )
        return FAMILIES[name].build(problem, **SETTINGS.get(name, {}))

    return build


def forecaster(name, *, size=0.3, n=600, **how):
    rows = public_rows(LABELS[name], n)
    difference = Difference(size=size, share=0.5)
    return Forecaster(rows, building(name, rows.label), FAMILIES[name].in_rounds, difference, seed=3, **how)


@pytest.mark.parametrize("name", first_fast(*FAMILIES, fast={"lpct", "correction", "histoftree"}))
def test_every_family_is_forecast_and_the_same_each_time(name, monkeypatch):
    monkeypatch.setattr(forecast, "N_SPLITS", 2)
    monkeypatch.setattr(forecast, "DRAWS", 1)
    monkeypatch.setattr("ldptree.baselines.public.N_TREES", 10)
    monkeypatch.setattr("ldptree.planning.people.N_TREES", 20)
    found = [forecaster(name, n=300).forecast([500], [2.0]) for _ in range(2)]
    assert found[0] == found[1]
    (one,) = found[0]
    assert one.figure.low <= one.figure.mean <= one.figure.high
    assert one.report_bytes > 0
    assert (one.smallest is None) == FAMILIES[name].in_rounds
    if one.smallest is not None:
        assert (one.smallest.difference is None) == (name in ("lpct", "lpdt"))


@pytest.mark.parametrize("name", ["lpct", "histoftree"])
def test_a_forest_of_public_rows_is_fitted_once_a_split(name, monkeypatch):
    fitted, predict = [], learners.predict_by_forest
    monkeypatch.setattr(learners, "predict_by_forest", lambda *of: fitted.append(of[0]) or predict(*of))
    monkeypatch.setattr(forecast, "N_SPLITS", 1)
    simulated = forecaster(name, n=120)
    (first, *_) = (one.split for one in simulated._learners)
    np.testing.assert_array_equal(first.asked.raw[first.held_among_asked], first.held.raw)
    assert len(fitted) == len(simulated._learners)


@pytest.fixture(scope="module")
def simulated():
    """Of a large error."""
    return forecaster("correction", size=0.4, n=2000, by_coins=True)


def test_reports_are_worth_it_where_they_can_find_the_difference_and_not_where_they_cannot(simulated):
    blunt, _, _, sharp = simulated.forecast([100, 100_000], [0.25, 4.0])
    assert sharp.is_worth_it
    assert not blunt.is_worth_it
    assert sharp.smallest.error < 0.4 < blunt.smallest.error
    assert sharp.gain["planted"].mean > 0.02 > abs(sharp.gain["alike"].mean)


def test_a_gain_is_not_worth_it_where_the_reports_would_not_find_the_error_or_gain_a_trifle(
    simulated, monkeypatch
):
    (found,) = simulated.forecast([100_000], [4.0])
    assert found.is_worth_it
    monkeypatch.setattr(forecast, "LEAST_GAIN", found.gain["planted"].mean + 0.001)
    (found,) = simulated.forecast([100_000], [4.0])
    assert not found.is_worth_it
    monkeypatch.undo()
    monkeypatch.setattr(simulated, "difference", Difference(size=found.smallest.error / 2, share=0.5))
    (found,) = simulated.forecast([100_000], [4.0])
    assert not found.is_worth_it


@pytest.mark.parametrize(("name", "label"), [("lpct", "class"), ("lpdt", "number"), ("correction", "class")])
def test_simulated_means_of_cells_vary_as_the_exact_variance_says(name, label):
    rows = public_rows(label, 1500)
    learner = LearnerOfTotals(building(name, rows.label), split_of(rows, 1))
    n, people = 20_000, learner.split.people
    protocol = learner.ask(n, 2.0)[2].protocol
    shares, weights = shares_of_cells(protocol, people), class_weights(protocol)
    sums, stated = [], []
    for number in range(200):
        (totals,) = learner.respond(protocol, people, n, seeded(number))
        sums.append(totals.counts @ weights)
        stated.append(mean_variance(protocol, totals, shares))
    found = np.var(sums, axis=0, ddof=1) / (n * np.maximum(shares, 0.25 / protocol.n_cells)) ** 2
    # What the smallest error is made of. Of 200 draws, one cell's variance is known to 10 %, that of all of them better.
    assert np.sum(1 / found) == pytest.approx(np.sum(1 / np.mean(stated, axis=0)), rel=0.15)


@pytest.mark.parametrize("wrong", ["half of each cell", "whole cells", "small cells"])
def test_the_smallest_error_is_found_with_the_stated_power_wherever_it_is(wrong):
    from scipy.stats import chi2

    rows = public_rows("class", 3000)
    learner = LearnerOfTotals(building("correction", rows.label), split_of(rows, 1))
    n, epsilon = 30_000, 2.0
    protocol = learner.ask(n, epsilon)[2].protocol
    people = learner.split.people
    usual = learner.respond(protocol, people, n, seeded(1))[0]
    shares = shares_of_cells(protocol, people)
    shares = shares / shares.sum()
    variance = mean_variance(protocol, usual, shares)
    # of people in each cell, on whom the model is wrong: in all half of them
    if wrong == "half of each cell":
        parts = np.full(len(shares), 0.5)
    else:
        order = np.argsort(shares if wrong == "small cells" else -shares)
        before = np.cumsum(shares[order]) - shares[order]
        parts = np.empty(len(shares))
        parts[order] = np.clip((0.5 - before) / shares[order], 0.0, 1.0)
    assert parts @ shares == pytest.approx(0.5)
    moved = parts * smallest_error(protocol, usual, shares, 0.5)
    rng = np.random.default_rng(2)
    limit = chi2.isf(LEVEL, len(variance))
    seen = moved / np.sqrt(variance) + rng.normal(size=(4000, len(variance)))
    found = np.mean((seen**2).sum(axis=1) > limit)
    # Of 4,000 draws the share is known to 0.02, with a false alarm once in 1,000.
    assert found > POWER - 0.02
    assert wrong != "half of each cell" or found < POWER + 0.1  # no larger than it must be
    assert noncentrality(8) > noncentrality(2)


def test_the_smallest_error_falls_with_epsilon_and_at_the_own_one_is_that_of_the_reports():
    rows = public_rows("class", 3000)
    learner = LearnerOfTotals(building("correction", rows.label), split_of(rows, 1))
    n, epsilon, people = 30_000, 2.0, learner.split.people
    protocol = learner.ask(n, epsilon)[2].protocol
    reported = learner.respond(protocol, people, n, seeded(1))[0]
    found = smallest_errors(protocol, reported, 0.5, (1e-30, 0.5, epsilon, 4.0))
    assert [*found] == [0.5, 2.0, 4.0]  # at the first reports would carry nothing
    assert found[0.5] > found[2.0] > found[4.0] > 0
    shares = np.maximum(reported.cell_counts, 0.0) / np.maximum(reported.cell_counts, 0.0).sum()
    assert found[2.0] == pytest.approx(smallest_error(protocol, reported, shares, 0.5), rel=1e-6)


def test_a_planted_class_moves_by_the_stated_amount_and_only_in_the_region():
    rows = public_rows("class", 6000)
    planted = plant(rows, Difference(size=0.2, share=0.5), np.random.default_rng(4))
    assert np.mean(planted.labels != rows.labels) == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("seed", range(4))
def test_a_difference_is_planted_in_the_stated_share_of_the_people_also_where_columns_are_categories(seed):
    codes = np.random.default_rng(0).choice(5, 4000, p=[0.5, 0.2, 0.2, 0.05, 0.05])
    X = np.eye(5, dtype=np.float32)[codes]
    X = np.column_stack([X, np.random.default_rng(1).random(4000).astype(np.float32)])
    region = draw_region(X, 0.25, np.random.default_rng(seed))
    assert region.mean() == 0.25
    twice = draw_region(np.repeat(X, 3, axis=0), 0.25, np.random.default_rng(seed))
    assert (
        np.mean(twice.reshape(-1, 3) == region[:, None]) > 0.999
    )  # the same rows, however often they are there


def test_people_and_the_rows_that_they_have_their_features_from_differ_alike():
    split, difference = split_of(public_rows("class", 4000)), Difference(size=0.2, share=0.5)
    held, people = (plant(rows, difference, np.random.default_rng(3)) for rows in (split.held, split.people))
    assert held.labels.mean() == pytest.approx(people.labels.mean(), abs=0.03)
    moved = abs(people.labels.mean() - split.people.labels.mean())
    assert moved == pytest.approx(0.1, abs=0.01)


def test_no_row_is_fitted_on_and_scored():
    rows = public_rows("number", 500)
    among, apart = Split.with_apart(rows, LabelLaw.of(rows, 0), np.random.default_rng(0), 2)
    for split in (among, *apart):
        fitted, held, people = (set(part.raw[:, 0]) for part in (among.fitted, split.held, split.people))
        assert len(fitted) + len(held) == len(fitted | held)
        assert people == held
    rows_of = [among.fitted, *(split.held for split in (among, *apart))]
    assert len(set(np.concatenate([part.raw[:, 0] for part in rows_of]))) == 500
    assert len(set(split_of(rows, in_rounds=True).people.raw[:, 0])) == 500


@pytest.mark.parametrize("label", ["class", "number"])
def test_a_label_that_is_drawn_is_that_of_another_row_and_as_likely_as_the_features_say(label):
    rows = public_rows(label, 3000)
    drawn = LabelLaw.of(rows, 0).draw(np.arange(rows.n), 40, np.random.default_rng(0))
    assert set(drawn.ravel()) <= set(rows.labels)
    x = rows.raw[:, 0]
    for low in (0.0, 0.4, 0.8):
        is_in = (low <= x) & (x < low + 0.2)
        assert drawn[is_in].mean() == pytest.approx(rows.labels[is_in].mean(), abs=0.05)
        assert drawn[is_in].std() == pytest.approx(rows.labels[is_in].std(), abs=0.05)
    if label == "number":
        is_own = np.isin(
            rows.labels, rows.label, invert=True
        )  # but for those clipped to an end, each label is there once
        assert not np.any(drawn[is_own] == rows.labels[is_own, None])


@pytest.mark.parametrize(("label", "near"), first_fast(("class", 0.01), ("number", 0.004)))
def test_many_people_played_by_few_public_rows_gain_what_a_population_gains(label, near):
    """Where private people are like public ones, and the labels of 160 rows would seem to be a population to learn from."""
    law = public_rows(label, 8_000, 99)
    build, found = building("correction", law.label), []
    for number in range(8):
        split = split_of(public_rows(label, 400, number), number)
        learner, seed = LearnerOfTotals(build, split), np.random.SeedSequence(number)
        gains = []
        for people, rows in ((split.people, split.asked), (law, law)):
            answers = learner.predict_publicly(rows), learner.learn(people, 200_000, 4.0, rows, seed)
            before, after = (np.repeat(one, people.n // rows.n) for one in answers)
            worse = (before - people.labels) ** 2 - (after - people.labels) ** 2
            gains.append(worse.mean())
        found.append(gains)
    played, true = np.mean(found, axis=0)
    assert played == pytest.approx(true, abs=near)


def test_a_mean_is_as_sure_as_the_splits_are_many():
    rng = np.random.default_rng(1)
    low = [
        lowest_mean(np.repeat(rng.normal(size=6), 3), np.repeat(np.arange(6), 3)) for _ in range(4000)
    ]  # three draws of a split that say the same
    assert np.mean(np.array(low) < 0.0) == pytest.approx(SURE, abs=0.015)


@pytest.mark.slow
def test_the_interval_is_of_people_who_are_alike_where_coins_chose_and_of_a_group_apart_where_a_rule_did():
    rows = public_rows("class", 600)
    build, difference = building("correction", rows.label), Difference(size=0.3, share=0.5)
    by_coins, by_rule = (
        Forecaster(rows, build, False, difference, by_coins=one, seed=3) for one in (True, False)
    )
    (coins,), (rule,) = (one.forecast([5_000], [2.0]) for one in (by_coins, by_rule))
    assert coins.figure == coins.kinds["alike"]
    assert set(coins.kinds) == {"alike", "planted"}
    assert rule.figure == rule.kinds["apart"]
    assert rule.figure.high - rule.figure.low > coins.figure.high - coins.figure.low


def test_people_who_are_apart_lie_beyond_a_threshold_that_no_fitted_row_passes():
    rows = public_rows("class", 500)
    for seed in range(20):
        among, apart = Split.with_apart(rows, LabelLaw.of(rows, 0), np.random.default_rng(seed), 2)
        assert among.fitted.n + among.held.n >= LEAST_LEFT * rows.n
        for group in apart:
            fitted, people = among.fitted.raw, group.people.raw
            is_beyond = (people.min(axis=0) > fitted.max(axis=0)) | (people.max(axis=0) < fitted.min(axis=0))
            assert is_beyond.any()


def test_an_interval_of_m_figures_holds_another_one_with_its_stated_probability():
    rng = np.random.default_rng(2)
    n = forecast.N_SPLITS * forecast.N_APART
    drawn = rng.normal(size=(4_000, n + 1))
    found = [Expected.of(one[:n]) for one in drawn]
    holds = np.mean([one.low <= new <= one.high for one, new in zip(found, drawn[:, n], strict=True)])
    assert holds == pytest.approx(0.8, abs=0.025)


GRID = [500, 4_000, 32_000], [0.5, 2.0, 4.0]


@pytest.fixture(scope="module")
def on_a_grid():
    """A forecaster, and its forecasts."""
    simulated = forecaster("correction", size=0.3, n=600, by_coins=True)
    return simulated, simulated.forecast(*GRID)


@pytest.mark.slow
def test_gains_verdicts_and_errors_that_are_found_never_turn_back(on_a_grid):
    (simulated, found), shape = on_a_grid, (3, 3)
    raw = [simulated.figure("planted", one.holders, one.epsilon) for one in found]
    assert turns_back(np.reshape(raw, shape)), "nothing was to be made monotone"
    worth = np.reshape([one.is_worth_it for one in found], shape).astype(int)
    assert 0 < worth.sum() < worth.size
    for values in (
        worth,
        np.reshape([one.gain["planted"].mean for one in found], shape),
        -np.reshape([one.smallest.error for one in found], shape),
        -np.reshape([one.smallest.difference for one in found], shape),
    ):
        assert not turns_back(values)


def test_what_a_smaller_collection_finds_a_larger_one_finds():
    found = [Findable(0.3, 0.4), Findable(0.2, 0.5), Findable(0.1, 0.6), Findable(0.4, 0.1)]
    assert fall_together(found, (2, 2)) == [
        found[0],
        Findable(0.2, 0.4),
        Findable(0.1, 0.4),
        Findable(0.1, 0.1),
    ]
    assert fall_together([None, None], (1, 2)) == [None, None]


def turns_back(values):
    return any((np.diff(values, axis=axis) < 0).any() for axis in (0, 1))


def test_values_that_rise_stay_and_others_are_the_nearest_that_rise():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 4))
    found = rise(values)
    assert not turns_back(found)
    assert rise(found) == pytest.approx(found, abs=1e-5)
    assert found.mean() == pytest.approx(values.mean(), abs=1e-4)
    for _ in range(8):  # nothing else that rises is nearer
        other = rise(found + 0.1 * rng.normal(size=values.shape))
        assert ((found - values) ** 2).sum() <= ((other - values) ** 2).sum() + 1e-4


def test_what_a_family_refuses_of_the_grid_it_refuses_after_one_model(monkeypatch):
    rows = public_rows("class", 300)
    rows = replace(rows, labels=np.arange(300) % 3, label=(0, 1, 2))
    build, fitted = building("correction", rows.label), []
    summarize = Correction.summarize
    monkeypatch.setattr(Correction, "summarize", lambda *at: fitted.append(1) or summarize(*at))
    with pytest.raises(DataError, match="2 private people for the 3 classes"):
        Forecaster(rows, build, False, Difference(size=0.1, share=0.5), grid=[(2, 1.0)])
    assert len(fitted) == 1


def standing_in(figure):
    """For a forecaster, with a known figure by the number of people."""
    return SimpleNamespace(sign=1, in_rounds=False, figure=lambda kind, holders, epsilon: figure(holders))


STEADY = standing_in(lambda holders: 0.5 + 0.1 * math.log10(holders))


@pytest.mark.parametrize(("wanted", "needed"), [(0.8, 1000), (0.95, 31622.8), (0.6, HOLDERS[0]), (1.3, None)])
def test_people_are_solved_for_what_is_wanted(wanted, needed):
    found = solve_holders(Figure(STEADY, wanted), [], 2.0)
    if needed is None:
        assert found == Need(given=2.0, needed=None, most=backwards.HOLDERS[-1])
    else:
        assert needed <= found.needed <= needed * 1.1


@pytest.mark.parametrize("others", [{}, {9_000: -0.1}])
def test_no_more_people_are_asked_for_than_a_row_of_the_plan_that_reaches_it_has(others):
    """Neither by rounding up nor where a larger row falls back by chance."""
    reached = {2_371: 0.0005} | others
    rows = [
        SimpleNamespace(holders=n, epsilon=2.0, kinds={"planted": SimpleNamespace(mean=0.8374 + by)})
        for n, by in reached.items()
    ]
    assert solve_holders(Figure(STEADY, 0.8374), rows, 2.0).needed == 2_371


@pytest.mark.slow
def test_what_is_solved_backwards_agrees_with_the_plan_and_never_turns_back(on_a_grid):
    """Gains are smoothed over the whole grid, so that those of one simulation say otherwise between its sizes and beyond them."""
    (simulated, found), (_, epsilons) = on_a_grid, GRID
    reached = [one.kinds["planted"].mean for one in found]
    for wanted in np.linspace(min(reached), max(reached), 7)[1:-1]:
        goal = Figure(simulated, float(wanted))
        people = [solve_holders(goal, found, epsilon).needed or math.inf for epsilon in epsilons]
        for one in found:
            is_reached = one.kinds["planted"].mean >= wanted
            needed = people[epsilons.index(one.epsilon)]
            assert needed <= one.holders * 1.1 if is_reached else needed > one.holders
    goal = Sharpness(simulated, 0.2)
    for one in found:
        needed = solve_epsilon(goal, found, one.holders).needed or math.inf
        assert needed <= one.epsilon * 1.1 if one.smallest.error <= 0.2 else needed > one.epsilon


def test_where_a_simulation_falls_back_by_chance_its_mean_counts():
    reached = {3_000: 0.8, 10_000: 0.6, 30_000: 0.9}
    bumpy = standing_in(lambda holders: reached.get(holders, 0.5 if holders < 3_000 else 0.95))
    assert solve_holders(Figure(bumpy, 0.75), [], 2.0).needed > 10_000


def test_too_few_public_rows_are_refused_with_what_to_do():
    with pytest.raises(ConfigError, match=r"60 public rows: a forecast takes 100.*Make more rows public"):
        forecaster("lpct", n=60)
