"""What a run says on the whole: by one rule, and nothing is advised on too little."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ldptree.metrics.classes import paired_lead
from ldptree.models.description import Cell, Description, Estimate, Node, Statement
from tasks.page import findings, summary, units
from tasks.page.data import AtEpsilon, Hidden, Making, Privacy, Run, Score, Scores, Span
from tasks.page.units import Unit

DESCRIBED = Description(figure="correction", outputs=("card",), is_found=False, chance=0.5)
ENOUGH = {"n_public": 500, "hidden": Hidden(difference=0.01, is_small=True)}


def _score(key: str, figure: float, lead: tuple[float, float] | None = None, **metrics: float) -> Score:
    """A model with an interval of a point to each side; `lead`: how far ours is ahead."""
    return Score(
        key=key,
        metrics={"rmse" if "r2" in metrics else "accuracy": figure} | metrics,
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


@pytest.mark.parametrize("best", ["public_only", "public_tree", "public_forest", "majority"])
@pytest.mark.parametrize(
    ("lead", "verdict", "advice"),
    [
        ((0.003, 0.03), "better", "Use the model with reports."),
        ((0.0005, 0.03), "better", "Use the model with reports."),
        ((-0.001, 0.0019), "alike", "which needs no reports."),
        ((0.0005, 0.0019), "alike", "which needs no reports."),
        ((-0.03, 0.001), "close", "Ask more people"),
        ((-0.03, 0.03), "close", "Ask more people"),
        ((-0.03, -0.001), "worse", "which needs no reports."),
    ],
)
def test_one_rule_and_one_opponent_decide_the_verdict_and_all_that_is_said(
    best: str, lead: tuple[float, float], verdict: str, advice: str
) -> None:
    """The opponent is the best model of public rows alone, whichever that is; a loser's interval does not count."""
    others = dict.fromkeys(("public_only", "public_tree", "public_forest", "majority"), (0.2, 0.3))
    models = [_score(key, 0.6 if key == best else 0.4, (others | {best: lead})[key]) for key in others]
    run = _run(_score("ours", 0.61), *models)
    assert summary.verdict(run) == verdict
    assert summary.headline(run).key == verdict
    said = summary.say_finding(run)
    assert "60.0" in said
    assert advice in said
    if "needs no reports" in advice:
        reference = summary.find_reference(run)
        assert reference is not None
        assert reference.key == best
        assert summary.name_score(run, reference, in_sentence=True) in said


def test_a_numbers_margin_is_a_part_of_the_opponents_error() -> None:
    def said(lead: tuple[float, float]) -> str:
        public = _score("public_only", 0.702, lead, r2=0.1)
        return summary.verdict(_run(_score("ours", 0.699, r2=0.1), public))

    assert said((0.002, 0.003)) == "alike"
    assert said((0.002, 0.0071)) == "better"


def test_the_same_prediction_for_everybody_is_named_where_it_does_as_well_in_hindsight() -> None:
    def said(lead: tuple[float, float], right: int) -> str:
        ours = replace(_score("ours", 0.55), confusion=((right, 0), (2000 - right, 0)))
        public = replace(PUBLIC, lead=Span(low=0.01, high=0.05))
        return summary.say_finding(_run(ours, public, _score("majority", 0.45, lead)))

    assert "chosen in hindsight, gives 55.0" in said((0.08, 0.12), 1100)
    assert "hindsight" not in said((0.08, 0.12), 1001)
    assert "chosen in hindsight" in said((-0.01, 0.12), 1001)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "Use the public model, which needs no reports."),
        ({"n_public": 3}, "But 3 public rows are too few to rely on that."),
        (
            {"hidden": Hidden(difference=0.3, is_small=False)},
            "But 1,774 reports are too few to rely on that.",
        ),
    ],
)
def test_no_reports_are_said_to_be_needed_only_where_enough_was_seen(
    facts: dict[str, Any], said: str
) -> None:
    run = _run(_score("ours", 0.52), PUBLIC, _score("majority", 0.4, (0.1, 0.15)), **facts)
    assert summary.say_finding(run).endswith(said)


@pytest.mark.parametrize("n", [15, 400, 1_800])
def test_two_models_that_agree_on_few_rows_are_too_close_to_call(n: int) -> None:
    """They may differ on 3/n of all rows, which is more than the margin; of 2,000 rows it is less."""
    low, high = paired_lead(np.ones(n, bool), np.ones(n, bool))
    public = replace(PUBLIC, metrics={"accuracy": 1.0}, lead=Span(low=low, high=high))
    run = _run(_score("ours", 1.0), public, _score("majority", 0.3, (0.1, 0.15)), n=n)
    assert summary.verdict(run) == "close"
    assert summary.advise(run)[0].key == "ask more"
    low, high = paired_lead(np.ones(2_000, bool), np.ones(2_000, bool))
    assert (
        summary.verdict(_run(_score("ours", 1.0), replace(public, lead=Span(low=low, high=high)))) == "alike"
    )


def test_beside_the_verdict_stands_how_many_repeats_of_the_noise_agree_with_it() -> None:
    """At the run's own epsilon, which is 1; the others are no repeats of it."""
    drawn = {1.0: (0.51, 0.515, 0.525, 0.53), 8.0: (0.6, 0.6, 0.6, 0.6)}
    points = tuple(AtEpsilon(epsilon=epsilon, draws=draws) for epsilon, draws in drawn.items())
    run = _run(_score("ours", 0.53), replace(PUBLIC, lead=Span(low=0.003, high=0.03)))
    assert run.scores is not None
    run = replace(run, scores=replace(run.scores, epsilons=points))
    assert summary.verdict(run) == "better"
    assert "With fresh noise, 2 of 4 repeats beat the public model." in summary.say_finding(run)


@pytest.mark.parametrize("more", [{}, {"r2": 0.1}])
def test_the_gain_is_the_difference_of_the_figures_beside_it(more: dict[str, float]) -> None:
    """58.16 % and 58.94 % are 58.2 and 58.9, which are 0.7 apart and not 0.8; so it is for all that is rounded."""
    for before in np.linspace(0.5, 0.6, 37).tolist():
        for change in (0.0, 0.00004, 0.00078, 0.0078, 0.013):
            run = _run(
                _score("ours", before + change, **more), _score("public_only", before, (-0.01, 0.02), **more)
            )
            shown = [float(one) for one in re.findall(r"\d+\.\d+", summary.headline(run).text)]
            (said,) = summary.gain(run)
            first = re.match(r"[+\u2212]?[\d.]+", said.text)
            assert first
            assert float(first[0].replace("\u2212", "-")) == pytest.approx(shown[0] - shown[1], abs=1e-9)
    run = _run(_score("ours", 0.58943), _score("public_only", 0.58163, (-0.01, 0.02)))
    assert summary.gain(run)[0].text.startswith("+0.7\u00a0points")


def test_of_several_outputs_the_one_that_reports_say_least_of_is_named() -> None:
    run = _run(
        _score("ours", 0.52),
        PUBLIC,
        hidden=Hidden(difference=0.3, is_small=False, output=1),
        description=replace(DESCRIBED, outputs=("card", "cash")),
    )
    assert (
        "Behind this noise the average of “cash” could be off by 30.0\u00a0points unseen"
        in summary.say_details(run)
    )


def test_no_figure_is_a_negative_zero() -> None:
    written = [units.decimal(-0.0004), units.chance(-1e-9), units.figures(-0.0, 3), units.percent(-1e-9)]
    written += [Unit(kind, signed=True).value(-1e-9) for kind in ("share", "points", "number")]
    assert not [one for one in written if one.startswith((units.MINUS, "-"))]


def test_a_bound_is_rounded_up_and_says_100_percent_of_nothing_less() -> None:
    rng = np.random.default_rng(1)
    shares = [0.069453, 0.5, 0.880797, 0.9999, 1.0, *rng.random(200), *(1 - 10.0 ** -rng.uniform(2, 8, 200))]
    for share in shares:
        written = float(units.most_percent(share).removesuffix("\u202f%"))
        assert 100 * share <= written < 100 * share + 0.1
        assert (written == 100) == (share == 1)
    assert [units.bound(value) for value in (math.e, math.exp(2), 54.6)] == ["2.8", "7.4", "54.6"]


def test_a_difference_that_is_there_is_not_written_as_none() -> None:
    """All figures of a sentence have as many decimals as the smallest needs; one that is as good as nothing asks for none."""

    def said(ours: float, lead: tuple[float, float]) -> list[str]:
        public = replace(PUBLIC, metrics={"accuracy": 0.61}, lead=Span(low=lead[0], high=lead[1]))
        return [one.text for one in summary.gain(_run(_score("ours", ours), public))]

    end = ") against the public model. Grey band: ±0.2\u00a0points counts as none."
    assert said(0.6104, (0.0001, 0.001)) == [f"+0.04\u00a0points (95\u202f% interval +0.01 to +0.10{end}"]
    assert said(0.61, (1e-9, 0.03)) == [f"0.0\u00a0points (95\u202f% interval 0.0 to +3.0{end}"]


@pytest.mark.parametrize(("chance", "said"), [(0.03, "3"), (0.001, "fewer than 1"), (0.999, "more than 99")])
def test_what_is_unclear_on_average_and_clear_in_all_is_one_statement(chance: float, said: str) -> None:
    tree = Node(conditions=(), cells=1, share=1.0, estimates=(Estimate(value=0.008, sd=0.06),), cell=0)
    model = replace(DESCRIBED, tree=tree, is_found=True, is_particular=False, chance=chance)
    run = _run(_score("ours", 0.52), PUBLIC, description=model)
    told = " ".join(one.text for one in summary.lead(run))
    assert "on average cannot be told (+0.8 ± 12.0\u00a0points). Over all" in told.replace("±\u00a0", "± ")
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


@pytest.mark.parametrize(
    ("auc", "lead", "is_said"),
    [(0.6965, (0.01, 0.03), True), (0.698, (0.01, 0.03), False), (0.6965, (-0.01, 0.03), False)],
)
def test_a_gain_that_is_the_average_is_said_to_be_that_one_thing(
    auc: float, lead: tuple[float, float], is_said: bool
) -> None:
    """The rows stay in their order, so that accuracy alone moves."""
    mean = Statement(kind="mean prediction", about="card", figures={"before": 0.554, "after": 0.498})
    public = replace(PUBLIC, metrics={"accuracy": 0.61, "auc": 0.695}, lead=Span(low=lead[0], high=lead[1]))
    run = _run(
        _score("ours", 0.63, auc=auc),
        public,
        description=replace(DESCRIBED, is_found=True, statements=(mean,)),
    )
    said = [one.text for one in summary.one_thing(run)]
    assert ["“card” from 55.4\u202f% to 49.8\u202f%" in text for text in said] == [True] * is_said
