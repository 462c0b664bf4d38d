"""How numbers are written on a page: with their unit, and with the decimals that their spread calls for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ldptree.models.description import Cell, Condition, Description, Estimate
from tasks.page import units
from tasks.page.charts import Axis, Chart, Track
from tasks.page.data import Making, Privacy, Run
from tasks.page.groups import Groups, draw_groups

RUN = Run(
    name="rides",
    title="Rides",
    estimator="lpct",
    target="paid",
    privacy=Privacy(epsilon=1.0),
    making=Making(created="", version="", command=""),
    checks=(),
    rows=(),
    description=Description(figure="share", outputs=("card",)),
)


def test_a_condition_has_the_unit_of_its_column() -> None:
    run = replace(RUN, units={"miles": "km", "fare": "$", "wait": "s"})
    said = [
        units.say_path((Condition(column=name, low=2.0),), run) for name in ("hour", "miles", "fare", "wait")
    ]
    assert said == ["hour over 2", "miles over 2\u00a0km", "fare over $2", "wait over 2\u00a0s"]


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (4.5, "$", "$4.50"),
        (-4.5, "€", "\u2212€4.50"),
        (1200.0, "$", "$1,200"),
        (0.125, "£", "£0.125"),
        (150.0, "s", "2\u202fmin 30\u202fs"),
        (12.0, "s", "12\u00a0s"),
        (7.25, "km", "7.25\u00a0km"),
        (7.25, "", "7.25"),
    ],
)
def test_a_number_of_a_column_has_its_unit(value: float, unit: str, said: str) -> None:
    assert units.raw_measured(value, unit) == said


@pytest.mark.parametrize("values", [[0.1, 0.9], [-3e6, 5e6], [1e-7, 3e-7], [4.0], [0.0, 0.0]])
def test_an_axis_has_round_ticks_and_holds_its_values(values: list[float]) -> None:
    axis = Axis.of(values)
    assert axis.low <= min(values) <= max(values) <= axis.high
    assert 1 <= len(axis.ticks) <= 12
    assert all(axis.low <= tick <= axis.high for tick in axis.ticks)


def test_numbers_are_written_with_the_decimals_their_spread_calls_for() -> None:
    unit = units.Unit("number", 5.3, "$")
    assert unit.value(12.4) == "$12.40"
    assert unit.estimate(Estimate(value=12.4, sd=0.2), with_unit=True) == "$12.40 ±\u00a00.40"
    assert unit.error(1e-6) == "±\u00a00.000002"
    assert units.Unit("points", signed=True).bare(-0.0534) == "\u22125.3"
    assert units.Unit("share").value(0.6317) == "63.2\u202f%"


@pytest.mark.parametrize("hidden", [0.0, 0.05, 0.5, 5.0])
def test_an_estimate_is_drawn_where_its_figure_says_that_its_ends_are(hidden):
    estimate = Estimate(value=0.4, sd=0.7, above=hidden)
    low, high = estimate.ends
    said = units.Unit("number", 2.0).estimate(estimate)
    if "±" in said:
        figure, reach = (float(part) for part in said.split(" ±\u00a0"))
        expected = (figure - reach, figure + reach)
    else:
        expected = tuple(
            float(part.replace("−", "-")) for part in said.partition(" (")[2].rstrip(")").split(" to ")
        )
    assert (low, high) == pytest.approx(expected, abs=0.006)
    assert low <= 0.4 - 1.4
    assert high >= 0.4 + 1.4 + hidden


def test_large_figures_are_counted_in_millions_and_more_and_small_ones_are_whole():
    squared, label = units.Unit("number", 8.8e9), units.Unit("number", 27_000.0, "€")
    assert units.apart(8_829_184_456, 8_884_852_958, squared) == ("8.83\u00a0billion", "8.88\u00a0billion")
    assert units.once("8.83\u00a0billion", "8.88\u00a0billion") == "8.83"
    assert units.once("0.9\u00a0million", "1.2\u00a0billion") == "0.9\u00a0million"
    assert squared.error(5e7) == "±\u00a00.10\u00a0billion"
    assert label.value(173_912.4) == "€173,912"
    assert [units.figures(value, 3) for value in (7.4123e9, 999_999, -2.5e6, 0.04183)] == [
        "7.41 billion", "1.00 million", "-2.50 million", "0.0418",
    ]  # fmt: skip
    ticks = [Axis.of([0.0, end]) for end in (0.6, 20_000.0, 4e7, 5e10)]
    ends = [axis.label(axis.ticks[-1]) for axis in ticks]
    assert [end.lstrip("0123456789.") for end in ends] == ["", "\u202fk", "\u202fm", "\u202fbn"]


def test_the_recomputed_epsilon_is_never_shown_below_what_it_is() -> None:
    shown = units.exact_epsilon(1.9999999991)
    assert shown.endswith("2.000\u202f000\u202f000")
    assert "1.500\u202f000\u202f001" in units.exact_epsilon(1.5000000001)


@pytest.mark.parametrize("levels", [(), ("unknown",), ("Unknown",), ("missing",)])
def test_a_group_without_a_value_says_that_it_is_missing_whatever_the_data_call_that(levels) -> None:
    missing = Condition(column="pickup", levels=levels)
    assert units.say_condition(missing) == "pickup is missing"
    assert units.say_condition(replace(missing, is_not=True)) == "pickup is known"
    both = replace(missing, levels=("O'Hare", *levels))
    assert units.say_condition(both) == f"pickup is O'Hare{' or missing' if levels else ''}"


def cell_of(**lows: float) -> Cell:
    path = tuple(Condition(column=name, low=low) for name, low in lows.items())
    return Cell(path=path, share=0.3, rests_on="private", estimates=(Estimate(value=0.5, sd=0.1),))


def drawn(*cells: Cell) -> Groups:
    groups = draw_groups(replace(RUN, label="class", description=replace(RUN.model, cells=cells)))
    assert groups
    return groups


def test_what_all_drawn_groups_share_is_said_once_above_their_whole_names() -> None:
    groups = drawn(
        *(
            cell_of(pickup_community_area=0.0, trip_start_hour_of_the_day=low, trip_miles=miles)
            for low in (0.0, 16.0)
            for miles in (1.0, 3.0)
        )
    )
    assert [row.name for row in groups.rows] == [
        f"trip start hour of the day over {low}, trip miles over {miles}"
        for low in (0, 16)
        for miles in (1, 3)
    ]
    assert groups.shared
    assert groups.shared.text == "All named groups: pickup community area over 0."
    assert drawn(cell_of(trip_miles=1.0), cell_of(hour=2.0)).shared is None


def test_two_groups_that_end_alike_are_named_by_what_tells_them_apart() -> None:
    """Their names hold 100 letters; the last conditions are the same."""

    def cell(*lows: float) -> Cell:
        columns = (
            "distance_in_miles_between_both_ends",
            "hours_of_the_day_in_local_time",
            "duration_in_minutes_by_the_meter",
        )
        return cell_of(**dict(zip(columns, lows, strict=True)))

    groups = drawn(cell(1.0, 5.0, 7.0), cell(2.0, 5.0, 7.0), cell(2.0, 6.0, 8.0))
    assert [row.name for row in groups.rows] == [
        "… distance in miles between both ends over 1",
        "… distance in miles between both ends over 2",
        "… hours of the day in local time over 6, duration in minutes by the meter over 8",
    ]


@pytest.mark.parametrize("values", [[0.2, 1.0], [0.0, 0.9], [1.0], [0.4, 0.6]])
def test_no_axis_of_shares_goes_beyond_0_and_100_percent(values: list[float]) -> None:
    chart = Chart.of([Track(name="ours", figure="", draws=tuple(values))], scale=100.0)
    assert 0.0 <= chart.axis.low <= min(values) <= max(values) <= chart.axis.high <= 1.0
    assert all(0.0 <= tick <= 1.0 for tick in chart.axis.ticks)
