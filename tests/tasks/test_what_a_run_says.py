"""What a run says on the whole: no model better than guessing is recommended, and nothing is advised on too little."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ldptree.models.description import Cell, Description, Estimate, Node
from tasks.page import findings, summary, units
from tasks.page.data import Hidden, Making, Privacy, Run, Score, Scores, Span
from tasks.page.units import Unit

DESCRIBED = Description(figure="correction", outputs=("card",), is_found=False, chance=0.5)
ENOUGH = {"n_public": 500, "hidden": Hidden(difference=0.01, is_small=True)}


def _score(key: str, figure: float, lead: tuple[float, float] | None = None, **metrics: float) -> Score:
    """A model with an interval of a point to each side; `lead`: how far ours is ahead."""
    return Score(
        key=key,
        metrics={"mse" if "r2" in metrics else "accuracy": figure} | metrics,
        interval=Span(low=figure - 0.01, high=figure + 0.01),
        lead=None if lead is None else Span(low=lead[0], high=lead[1]),
    )


def _run(*models: Score, n: int = 2000, **facts: Any) -> Run:
    is_number = "r2" in models[0].metrics
    return Run(
        name="rides",
        title="Rides",
        estimator="correction",
        target="paid",
        label="number" if is_number else "class",
        privacy=Privacy(epsilon=1.0),
        making=Making(created="", version="", command=""),
        checks=(),
        rows=(),
        n_private=1774,
        scores=Scores(models=models, n=n, redraws=0, duplicates=0),
        **(ENOUGH | {"description": DESCRIBED} | facts),
    )


PUBLIC = _score("public_only", 0.52, (-0.001, 0.001))


@pytest.mark.parametrize(
    ("ours", "majority", "others", "is_said"),
    [
        (0.52, (0.01, 0.03), (), False),
        (0.52, (-0.01, 0.03), (), True),
        (0.52, (-0.03, -0.01), (), True),
        (0.52, (-0.01, 0.01), (_score("non_private", 0.60, (-0.1, -0.06)),), False),
        (0.52, (-0.01, 0.01), (_score("non_private", 0.53, (-0.02, 0.01)),), True),
    ],
)
def test_the_heading_says_where_no_model_is_better_than_one_answer_for_everybody(
    ours: float, majority: tuple[float, float], others: tuple[Score, ...], is_said: bool
) -> None:
    run = _run(_score("ours", ours), PUBLIC, _score("majority", 0.515, majority), *others)
    said = summary.headline(run).text
    assert (
        said.startswith("No model here is surely better than the same answer for everybody: right 52.0")
        == is_said
    )
    assert (summary.verdict(run) == "guessing") == is_said
    if is_said:
        assert "51.5" in said
        assert "needs no private reports" not in summary.say_finding(run)
    too = (
        "The released model is not even surely better than the same answer for everybody: 51.5"
        in summary.say_finding(run)
    )
    assert too == (bool(others) and not is_said)


def test_a_number_that_does_not_beat_the_mean_is_said_to_be_a_guess() -> None:
    def said(lead: tuple[float, float], r2: float) -> str:
        public = _score("public_only", 4.0, (-0.01, 0.01), r2=r2)
        constant = _score("constant", 4.1, lead, r2=-0.1)
        return summary.say_finding(_run(_score("ours", 4.0, r2=r2), public, constant))

    assert "No model here" in said((-0.3, 0.1), -0.02)
    assert "3.92 by the best such answer." in said((0.05, 0.2), -0.02)
    assert "everybody" not in said((0.05, 0.2), 0.1)


def test_reports_that_taught_what_is_common_among_private_people_gained_something() -> None:
    def said(lead: tuple[float, float]) -> str:
        ours = _score("ours", 0.55)
        ours = replace(ours, confusion=((1100, 0), (900, 0)))
        public = replace(PUBLIC, lead=Span(low=lead[0], high=lead[1]))
        return summary.say_finding(_run(ours, public, _score("majority", 0.45, (0.08, 0.12))))

    assert "made the public model better" in said((0.01, 0.05))
    assert "not even surely better than the same answer for everybody: 55.0" in said((0.01, 0.05))
    assert said((-0.01, 0.05)).startswith("No model here is surely better than the same answer for everybody")


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "alone was as good here: it needs no private reports."),
        (
            {"n": 12},
            "alone was as good here, but 12 rows held back are too few to say that it needs no reports.",
        ),
        (
            {"n_public": 3},
            "alone was as good here, but 3 public rows are too few to say that it needs no reports.",
        ),
        (
            {"hidden": Hidden(difference=0.3, is_small=False)},
            "alone was as good here, but too little was asked to say that it needs no reports.",
        ),
        ({"hidden": None}, "The public model alone was as good here."),
    ],
)
def test_no_reports_are_said_to_be_needed_only_where_enough_was_seen(
    facts: dict[str, Any], said: str
) -> None:
    run = _run(_score("ours", 0.52), PUBLIC, _score("majority", 0.4, (0.1, 0.15)), **facts)
    assert summary.say_finding(run).endswith(said)


def test_a_better_public_model_is_not_relied_on_by_a_handful_of_rows() -> None:
    public = replace(PUBLIC, lead=Span(low=-0.2, high=-0.1))
    for n, said in ((5, "5 rows held back are too few to rely on that."), (500, "use it instead.")):
        run = _run(_score("ours", 0.45), public, _score("majority", 0.3, (0.1, 0.15)), n=n)
        assert summary.say_finding(run).endswith(said)


@pytest.mark.parametrize(
    ("lead", "is_guess"), [((-0.03, 0.04), True), ((-0.03, 0.04), False), ((0.005, 0.02), False)]
)
def test_a_public_tree_that_is_surely_better_is_named_whatever_the_reports_gained(
    lead: tuple[float, float], is_guess: bool
) -> None:
    """Also where ours is surely better than the model it corrects, or is not told from it or from one answer for everybody."""
    public = replace(PUBLIC, metrics={"accuracy": 0.71}, lead=Span(low=lead[0], high=lead[1]))
    tree = _score("public_tree", 0.749, (-0.057, -0.004))
    majority = _score("majority", 0.70, (-0.01, 0.03) if is_guess else (0.01, 0.03))
    run = _run(_score("ours", 0.719), public, tree, majority)
    said = summary.say_finding(run)
    assert ("not even surely better than the same answer for everybody" in said) == is_guess
    assert said.endswith(
        "A public tree alone was better here (right 74.9\u202f% of the time), and needs no private reports: use it instead."
    )
    assert "public tree" not in summary.say_details(run)


def test_of_several_outputs_the_one_that_reports_say_least_of_is_named() -> None:
    run = _run(
        _score("ours", 0.52),
        PUBLIC,
        hidden=Hidden(difference=0.3, is_small=False, output=1),
        description=replace(DESCRIBED, outputs=("card", "cash")),
    )
    assert "could hide a difference of 30.0\u00a0points in “cash” on average" in summary.say_details(run)


def test_no_figure_is_a_negative_zero() -> None:
    written = [units.decimal(-0.0004), units.chance(-1e-9), units.figures(-0.0, 3), units.percent(-1e-9)]
    written += [Unit(kind, signed=True).value(-1e-9) for kind in ("share", "points", "number")]
    assert not [one for one in written if one.startswith((units.MINUS, "-"))]


def test_a_difference_that_is_there_is_not_written_as_none() -> None:
    """All figures of a sentence have as many decimals as the smallest needs; one that is as good as nothing asks for none."""

    def said(ours: float, lead: tuple[float, float]) -> list[str]:
        public = replace(PUBLIC, metrics={"accuracy": 0.61}, lead=Span(low=lead[0], high=lead[1]))
        return [one.text for one in summary.gain(_run(_score("ours", ours), public))]

    assert said(0.6104, (0.0001, 0.001)) == ["Up 0.04\u00a0points (95\u202f% interval 0.01 to 0.10)."]
    assert said(0.61, (1e-9, 0.03)) == ["Up 0.0\u00a0points (95\u202f% interval 0.0 to 3.0)."]


@pytest.mark.parametrize(("chance", "said"), [(0.03, "3"), (0.001, "fewer than 1"), (0.999, "more than 99")])
def test_what_is_unclear_on_average_and_clear_in_all_is_one_statement(chance: float, said: str) -> None:
    tree = Node(conditions=(), cells=1, share=1.0, estimates=(Estimate(value=0.008, sd=0.06),), cell=0)
    model = replace(DESCRIBED, tree=tree, is_found=True, is_particular=False, chance=chance)
    run = _run(_score("ours", 0.52), PUBLIC, description=model)
    told = " ".join(one.text for one in summary.lead(run))
    assert "on average cannot be told (+0.8 ± 12.0\u00a0points), but over all" in told.replace(
        "±\u00a0", "± "
    )
    assert f"a difference this large would appear by chance in {said} of 100 collections." in told
    assert "The public model may be wrong for everybody, and not for private rows alone" in told


@pytest.mark.parametrize(
    ("corrected", "outputs", "said"),
    [
        ((0.161, 0.4), ("a", "b"), ", and is then scaled to a whole."),
        ((0.167,), ("a",), "at least 10\u202f% of its chance of a class, and of its chance of any other."),
        ((0.162,), ("a",), ""),
    ],
)
def test_figures_that_do_not_add_up_say_why(
    corrected: tuple[float, ...], outputs: tuple[str, ...], said: str
) -> None:
    """Public 19.3 and correction -3.2 are 16.1."""
    cell = Cell(
        path=(),
        share=1.0,
        rests_on="private",
        public=(Estimate(value=0.193),) * len(outputs),
        estimates=(Estimate(value=-0.032, sd=0.1),) * len(outputs),
        answers=corrected,
    )
    model = replace(DESCRIBED, cells=(cell,), outputs=outputs)
    table = findings.tabulate_cells(replace(_run(_score("ours", 0.52), description=model), scores=None))
    assert table is not None
    told = [one.text for one in table.notes if one.key == "adds up"]
    assert told == [] if not said else told[0].endswith(said)
