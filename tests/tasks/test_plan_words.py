"""The words of a plan, of forecasts that are made up: what is advised, and of whom."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from ldptree.planning.backwards import Need
from ldptree.planning.detection import Findable
from ldptree.planning.expected import Expected, Forecast
from ldptree.planning.people import Difference
from tasks.page.captions import FORECASTS
from tasks.page.plan import describe_plan, render_plan, say_plan
from tasks.scoring.forecast import Backwards, CollectionPlan, score_one_answer


def expected(mean: float) -> Expected:
    return Expected(mean=mean, low=mean - 0.1, high=mean + 0.1)


def forecast(epsilon: float, planted: float, apart: float, *, is_worth_it: bool = False) -> Forecast:
    gain = {"alike": expected(0.0), "planted": expected(planted), "apart": expected(apart)}
    return Forecast(
        holders=5_000,
        epsilon=epsilon,
        cells=4,
        report_bytes=2,
        figure=expected(0.7 + apart),
        kinds={kind: expected(0.7 + one.mean) for kind, one in gain.items()},
        public={kind: expected(0.7) for kind in gain},
        gain=gain,
        least=0.005,
        smallest=Findable(error=0.08, difference=0.09),
        is_worth_it=is_worth_it,
    )


def plan_of(*forecasts: Forecast) -> CollectionPlan:
    return CollectionPlan(
        n_public=500,
        estimator="correction",
        epsilon=1.0,
        is_number=False,
        difference=Difference(size=0.1, share=0.5),
        largest_error=0.6,
        one_answer=0.55,
        by_coins=False,
        likely="apart",
        public=forecasts[0].public,
        forecasts=forecasts,
    )


@pytest.mark.parametrize("by_coins", [False, True])
def test_where_coins_chose_the_public_rows_no_error_is_one_of_private_people_in_particular(
    by_coins: bool,
) -> None:
    plan = replace(plan_of(forecast(1.0, 0.01, 0.0)), by_coins=by_coins)
    said = " ".join(say_plan(plan).lead)
    assert ("wrong on private people in particular" in said) is not by_coins
    assert ("it is wrong for everybody" in said) is by_coins
    said = " ".join(say_plan(replace(plan, largest_error=0.05)).lead)
    assert "in particular" not in said
    assert "wrong for everybody" not in said


def verdict(*forecasts: Forecast) -> str:
    return say_plan(plan_of(*forecasts)).verdict


ALONE = "The public model, at 70.0 ("


@pytest.mark.parametrize(
    ("is_number", "one_answer", "told"),
    [
        (False, 0.55, "public rows."),
        (False, 0.65, f"{ALONE}60.0 to 80.0 %), is not clearly better."),
        (False, 0.75, f"{ALONE}60.0 to 80.0 %), is not clearly better, and there may be nothing to learn."),
        (True, 0.85, "public rows."),
        (True, 0.75, "The public model, at 0.700 (0.600 to 0.800), is not clearly better."),
        (True, 0.65, "0.700 (0.600 to 0.800), is not clearly better, and there may be nothing to learn."),
    ],
)
def test_where_one_answer_for_everybody_may_be_as_good_there_may_be_nothing_to_learn(
    is_number: bool, one_answer: float, told: str
) -> None:
    """The figure of public rows alone is .6 to .8: a share right, or an error."""
    plan = replace(plan_of(forecast(1.0, 0.0, 0.0)), is_number=is_number, one_answer=one_answer)
    (said,) = [one for one in say_plan(plan).lead if one.startswith("Always predicting")]
    reaches = f"mean squared error of {one_answer}" if is_number else f"right for {100 * one_answer:.1f} %"
    assert reaches in said
    assert said.endswith(told)


@pytest.mark.parametrize("is_number", [False, True])
def test_only_columns_that_are_smoothed_are_said_to_be(is_number: bool) -> None:
    """The expected figure falls here with epsilon, as it does by chance."""
    plan = replace(plan_of(forecast(1.0, 0.01, 0.01), forecast(2.0, 0.02, 0.0)), is_number=is_number)
    words = say_plan(plan)
    (said,) = [one for one in words.assumes if "smoothed" in one]
    smoothed, _, as_it_is = said.partition("Worth it: ")[2].partition("larger epsilon")
    assert "no figure" not in said
    assert {head for head in words.grid.heads if f"“{head}”" in smoothed} == {words.grid.heads[3], "Finds"}
    assert "“Expected” is not" in as_it_is


def test_one_answer_is_scored_on_public_labels() -> None:
    assert score_one_answer(np.array([2, 0, 2, 1]), is_number=False) == 0.5
    assert score_one_answer(np.array([1.0, 3.0]), is_number=True) == 1.0


@pytest.mark.parametrize(
    ("smallest", "told"),
    [
        (
            Findable(error=0.08, difference=None),
            ". If it is wrong by more, reports would find errors from 8.0 points on.",
        ),
        (
            Findable(error=0.278, difference=None),
            ", reports would gain 0.0 points, and find errors from 27.8 points on.",
        ),
        (Findable(error=0.7, difference=None), ", reports would gain 0.0 points, and find no error."),
        (None, "."),
    ],
)
def test_advice_against_collecting_does_not_cover_larger_errors(smallest: Findable | None, told: str) -> None:
    said = verdict(replace(forecast(1.0, 0.0, 0.0), smallest=smallest))
    assert f"wrong by 10.0 points for half of the people{told}" in said
    # The public model is not praised where the reports are blind.
    assert said.startswith("Too close to call" if "would gain" in told else "No practical difference")


@pytest.mark.parametrize(("apart", "is_told"), [(0.001, False), (0.05, True)])
def test_what_people_beyond_the_public_rows_would_gain_is_told_where_it_counts(
    apart: float, is_told: bool
) -> None:
    said = verdict(forecast(1.0, 0.0, apart))
    assert said.startswith(
        "No practical difference at epsilon 1, as configured. That holds even where the public model"
    )
    assert ("reports would gain 5.0 points on average" in said) == is_told


def test_another_epsilon_is_advised_after_the_configured_one() -> None:
    said = verdict(forecast(1.0, 0.01, 0.0), forecast(4.0, 0.03, 0.0, is_worth_it=True))
    assert said.startswith("Too close to call at epsilon 1, as configured. Where the public model")
    assert said.endswith(
        "count on. Where it is wrong by 10.0 points, 5,000 people at epsilon 4 would gain 3.0 points."
    )
    own = verdict(forecast(1.0, 0.02, 0.0, is_worth_it=True), forecast(4.0, 0.03, 0.0, is_worth_it=True))
    assert own.startswith("Collect")
    assert "at epsilon 1, as configured, would then gain 2.0 points" in own


def test_the_cheapest_collection_that_is_worth_it_is_advised() -> None:
    """Of the fewest people, then at the smallest epsilon, and not the one that gains most."""
    few, many = (
        [
            replace(forecast(epsilon, gain, 0.0, is_worth_it=is_worth_it), holders=holders)
            for epsilon, gain, is_worth_it in of_epsilon
        ]
        for holders, of_epsilon in (
            (5_000, [(2.0, 0.01, False), (4.0, 0.03, True), (8.0, 0.04, True)]),
            (65_000, [(2.0, 0.03, True), (4.0, 0.04, True), (8.0, 0.05, True)]),
        )
    )
    assert "5,000 people at epsilon 4 would then gain 3.0 points" in verdict(*few, *many)
    own = replace(plan_of(*few, *many), epsilon=2.0)
    assert "65,000 people at epsilon 2, as configured," in say_plan(own).verdict
    assert " 5,000 people at epsilon 4 would" in verdict(forecast(1.0, 0.0, 0.0), *few, *many)


def test_what_is_solved_backwards_is_about_right_and_says_what_it_lies_between() -> None:
    plan = plan_of(forecast(1.0, 0.03, 0.0))
    assert "less may do" not in " ".join(say_plan(plan).assumes)
    needs = tuple(Need(given=1.0, needed=needed, most=1e6) for needed in (6.5e4, None))
    said = say_plan(replace(plan, detect=Backwards(wanted=0.1, holders=needs)))
    assert said.needs == (
        "To find an error of 10.0 points, at epsilon 1: about 65,000 people.",
        "To find an error of 10.0 points, at epsilon 1: more than 1,000,000 people.",
    )
    assert "less may do" in said.assumes[-1]


def test_what_reports_add_is_said_of_the_people_whom_the_figure_is_of() -> None:
    """With its interval, as the difference of the two figures may be chance."""
    said = " ".join(say_plan(plan_of(forecast(1.0, 0.03, 0.02))).lead)
    assert "72.0 (62.0 to 82.0 %), higher by 2.0 points (\u22128.0 to 12.0 points)" in said
    said = " ".join(say_plan(plan_of(forecast(1.0, 0.03, -0.02))).lead)
    assert "68.0 (58.0 to 78.0 %), lower by 2.0 points (\u22128.0 to 12.0 points)" in said
    said = " ".join(say_plan(plan_of(forecast(1.0, 0.03, -0.0004))).lead)
    assert "70.0 (60.0 to 80.0 %), no higher (\u221210.0 to 10.0 points)" in said
    number = replace(plan_of(forecast(1.0, 0.03, -0.0002)), is_number=True)
    assert ", higher by 0.00020 (\u22120.10 to 0.10)" in " ".join(say_plan(number).lead)


@pytest.mark.parametrize(
    ("gain", "is_number", "said"),
    [
        (-0.004, False, "would lose 0.4 points, and find no error."),
        (-0.0004, False, "would gain 0.0 points, and find no error."),
        (-0.004, True, "would raise the mean squared error by 0.0040, and find no error."),
        (0.004, True, "would lower the mean squared error by 0.0040, and find no error."),
    ],
)
def test_what_reports_would_lose_is_no_negative_gain(gain: float, is_number: bool, said: str) -> None:
    found = replace(forecast(1.0, gain, 0.0), smallest=Findable(error=0.7, difference=None))
    assert said in say_plan(replace(plan_of(found), is_number=is_number)).verdict


def test_a_figure_that_falls_short_is_not_written_as_what_it_falls_short_of() -> None:
    """5 in 1,000 are worth it, and an error of a tenth is to be found."""
    plan = plan_of(
        replace(forecast(1.0, 0.0046, 0.0), smallest=Findable(error=0.08, difference=None)),
        replace(forecast(2.0, 0.0052, 0.0), smallest=Findable(error=0.1004, difference=None)),
        replace(
            forecast(4.0, 0.0052, 0.0, is_worth_it=True), smallest=Findable(error=0.0996, difference=None)
        ),
    )
    found = [(row[3], row[4], row[-1]) for row in say_plan(plan).grid.rows]
    assert found == [
        ("0.46 points", "8.0 points", "no"),
        ("0.5 points", "10.04 points", "no"),
        ("0.5 points", "10.0 points", "yes"),
    ]
    assert "reports gain 0.46 points" in say_plan(plan_of(plan.forecasts[0])).lead[2]
    assert "find errors from 10.04 points on" in verdict(
        replace(plan.forecasts[1], gain=plan.forecasts[0].gain)
    )


def test_whether_to_collect_is_the_same_in_words_and_in_json() -> None:
    found = plan_of(forecast(1.0, 0.01, 0.0), forecast(4.0, 0.03, 0.0, is_worth_it=True))
    made = describe_plan(found, "rides")
    assert not made["collect"]
    assert made["says"].startswith("Too close to call")
    assert FORECASTS[made["verdict"]] == "Forecast: too close to call"


@pytest.mark.parametrize("key", ["better", "alike", "close"])
def test_the_page_of_a_plan_has_no_verdict_on_what_nobody_has_answered(key: str) -> None:
    worth, gain = key == "better", 0.001 if key == "alike" else 0.02
    page = render_plan(plan_of(forecast(1.0, gain, 0.0, is_worth_it=worth)), name="rides", version="0.1.0")
    assert f"{FORECASTS[key]}</span>" in page
    assert "Verdict" not in page


@pytest.mark.parametrize("by_coins", [False, True])
def test_a_heading_has_at_most_20_words_and_a_sentence_25(by_coins: bool) -> None:
    """Whatever the verdict is; a figure with its interval counts as it is read."""
    for worth, gain in ((True, 0.02), (False, 0.02), (False, 0.001)):
        plan = replace(plan_of(forecast(1.0, gain, 0.02, is_worth_it=worth)), by_coins=by_coins)
        heading = re.search("<h1>(.*?)</h1>", render_plan(plan, name="rides", version="0.1.0"))
        assert heading
        assert len(heading[1].split()) <= 20
        words = say_plan(plan)
        said = " ".join((words.verdict, *words.lead, *words.assumes))
        assert [one for one in re.split(r"(?<=[.:])\s+(?=[A-Z“\d])", said) if len(one.split()) > 25] == []
