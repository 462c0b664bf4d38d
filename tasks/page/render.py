"""Fill a run into the template, and write its short version in markdown. Everything from data is escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ldptree.models.description import CurveLine, Estimate
from ldptree.plain_text import escape_markdown, make_visible
from tasks.page import charts, findings, privacy, summary, units
from tasks.page.captions import CHIPS, GLOSSARY, Sentence, say
from tasks.page.cards import Card, draw_campaign
from tasks.page.charts import Chart, Track
from tasks.page.data import Example, Privacy, Run, Score, SentNumber, Span
from tasks.page.findings import Table
from tasks.page.groups import draw_groups
from tasks.page.ruler import draw_ruler

if TYPE_CHECKING:
    from jinja2 import Environment

STYLE = Path(__file__).with_name("templates") / "style.css"
"""The look of every page."""
MOST_LISTED = 50
MOST_POINTS = 12
"""Points of a curve that are drawn."""
SECTIONS: dict[str, Callable[[Run], Table | None]] = {
    "cells": findings.tabulate_cells,
    "mistakes": findings.tabulate_mistakes,
    "bins": findings.tabulate_bins,
}
"""Tables that are folded under "Everything else", in order; a run that a table says nothing of goes without it."""


def render(run: Run, weeks: Chart | None = None) -> str:
    """Return the run's page as one HTML file that loads nothing, with the runs of its campaign so far."""
    learned = {} if run.failure else _learned(run)
    values = {**_making(run), **learned, "version": run.making.version}
    return fill("page.html.j2", run=run, weeks=weeks, ruler=draw_ruler(run), **values)


def render_index(cards: Mapping[str, Card]) -> str:
    """Return the page of all runs, newest first, which loads nothing. `cards` are keyed by the runs' folders."""
    newest = sorted(cards.items(), key=lambda pair: (pair[1].moment, pair[0]), reverse=True)
    campaigns = dict.fromkeys(card.campaign for _, card in newest if card.campaign)
    return fill(
        "index.html.j2",
        runs=newest,
        newest_of={
            name: next((f for f, card in newest if card.campaign == name and card.is_whole), None)
            for name in campaigns
        },
        trends={name: draw_campaign(cards.values(), name) for name in campaigns},
    )


def write_actors(facts: Privacy, name: str, *, is_scored: bool) -> dict[str, bytes]:
    """Return the table of who sees what as the files that stand beside a run, one to read and one for programs."""
    table = findings.tabulate_actors(facts, is_scored=is_scored)
    page = fill("actors.html.j2", name=name, epsilon=facts.epsilon, actors=table)
    return {"actors.html": page.encode(), "actors.json": privacy.describe_actors(facts, is_scored=is_scored)}


def render_brief(run: Run) -> str:
    """Return the finding, the ruler and the advice of a finished run as HTML of at most 320 px, which loads nothing."""
    return fill("brief.html.j2", run=run, ruler=draw_ruler(run))


def fill(template: str, *, text: str = "", **values: Any) -> str:
    """Fill a template of this folder, or the `text` of another, which has the same style sheet."""
    environment = _environment()
    made = environment.from_string(text) if text else environment.get_template(template)
    return make_visible(made.render(values))


def _making(run: Run) -> dict[str, Any]:
    cores = f" on {units.plural(run.making.cores, 'core', 'cores')}" if run.making.cores else ""
    peak = f", peak memory {units.memory(run.making.peak_rss_mb)}" if run.making.peak_rss_mb else ""
    return {
        "met": findings.group_met(run.checks),
        "left_out": list(run.columns_left_out.items())[:MOST_LISTED],
        "data_says": _data(run),
        "made": say("made", cores=cores, memory=peak),
    }


def _data(run: Run) -> list[Sentence]:
    """Return the words about the data and which of them are public."""
    made_up = f": simulated, no one's real {run.nouns}" if run.simulated else ""
    sentences = [say("data", title=run.title, simulated=made_up)]
    if run.public_rule:
        sentences.append(say("public rule", rule=run.public_rule))
    if run.where:
        sentences.append(say("where", nouns=run.nouns, where=run.where))
    return sentences


def _learned(run: Run) -> dict[str, Any]:
    """Return the values that the templates of a finished run need."""
    return {
        "rows_of": _whose(run),
        "guesses": _guesses(run),
        "tree": run.model.tree if run.model.tree and run.model.tree.children else None,
        "sections": [tabulate(run) for tabulate in SECTIONS.values()] + findings.tabulate_statements(run),
        "curves": [(curve, *draw_curve(run, curve)) for curve in run.model.curves],
        "answers": privacy.answers(run, shown=_shown(run)),
        "scores": draw_scores(run) if run.scores else None,
        "strip": draw_epsilons(run),
        **_example(run),
    }


def _shown(run: Run) -> set[str]:
    """Return the texts about privacy that stand open."""
    warned = [caution.sentence for caution in privacy.warnings(run)[: privacy.MOST_WARNINGS]]
    by_status = [privacy.say_noise(run)] if run.privacy.seeded else []
    return {sentence.text for sentence in (*privacy.spent(run), *warned, *by_status)}


def _whose(run: Run) -> list[tuple[str, int, Sentence]]:
    """Return whose rows there are, each as a role, a number and words, those that reported in two where some did earlier."""
    kept = "whose kept" if run.is_simulation else "whose kept, a release"
    parts = [
        ("pub", run.n_public, say("whose public")),
        ("earlier", run.n_earlier, say("whose earlier")),
        ("ours", run.n_new, say("whose private", reports=_say_reports(run))),
        ("ref", run.n_test if run.scores else 0, say(kept)),
    ]
    return [part for part in parts if part[1] or part[0] == "ours"]


def _say_reports(run: Run) -> str:
    """Say how many reports a private row sent, without a figure: what was spent says it of several."""
    if run.privacy.most_answers > 1:
        return "scrambled reports"
    return f"{'at most ' if run.privacy.features else ''}one scrambled report"


def _guesses(run: Run) -> list[tuple[int, str, str, Sentence]]:
    """Return both shares of right guesses, without a report and with one: of 100 dots, in figures, a role, and in words."""
    epsilon = run.privacy.epsilon

    def best(budget: float) -> float:
        return 1.0 / (1.0 + math.exp(-budget))

    def write(budget: float) -> str:
        return units.most_percent(best(budget)).removesuffix(units.SUFFIXES["share"])

    after = say(
        "guess after",
        epsilon=units.epsilon(epsilon),
        half=units.epsilon(epsilon / 2),
        less=write(epsilon / 2),
        twice=units.epsilon(2 * epsilon),
        more=write(2 * epsilon),
    )
    n = min(round(100 * best(epsilon)), 100)
    return [(50, "50", "ref", say("guess before", noun=run.noun)), (n, write(epsilon), "ours", after)]


def _example(run: Run) -> dict[str, Any]:
    example = run.privacy.example
    if example is None:
        return {"example": None}
    boxes, number = example.boxes, example.number
    says: list[Sentence] = []
    if boxes or number:
        is_written = boxes is not None and any(text not in ("", "x") for text in boxes.reports[0])
        says.append(say("boxes numbers" if is_written else "boxes"))
    if example.left_out is not None:
        says.append(say("left out", n=units.of_hundred(example.left_out)))
    if boxes and boxes.n_drawn < boxes.n:
        says.append(say("boxes drawn", drawn=units.count(boxes.n_drawn), boxes=units.count(boxes.n)))
    return {
        "example": example,
        "boxes": boxes,
        "places": charts.place_boxes(boxes) if boxes else [],
        "number": number,
        "number_axis": charts.Axis.of(_ends(run, number)) if number else None,
        "true_answer": _true_answer(run, example),
        "report_says": says,
    }


def _ends(run: Run, number: SentNumber) -> list[float]:
    """Return the values on a number's axis, which are the true and the sent ones and the range that it is moved into."""
    figures = run.privacy.asked[-1].question.figures
    return [number.true, *number.sent, *(figures[end] for end in ("low", "high") if end in figures)]


def _true_answer(run: Run, example: Example) -> Sentence:
    """Return the answer of the typical row."""
    asked, unit = run.privacy.asked[-1], units.label_unit(run)
    true = None if example.number is None else unit.value(example.number.true)
    if run.privacy.features:
        question = privacy.say_question(asked, run.target)
        return say("example answer", question=question, value=true or units.count(example.cell + 1))
    kind = "Part" if summary.has_groups(run) else "Group"
    if true is not None:
        return say("example apart", kind=kind, cell=example.cell + 1, value=true)
    cell, exact = example.cell + 1, example.rounded
    if exact is None:
        return say("example class", kind=kind, cell=cell, level=example.levels[example.level])
    if run.model.figure != "correction":
        return say("example number", kind=kind, cell=cell, value=unit.value(exact))
    size = units.label_unit(run, signed=True).estimate(Estimate(value=abs(exact)), with_unit=True)
    return say(
        "example error",
        kind=kind,
        cell=cell,
        output=summary.name_shown(run, example.output),
        size=size.lstrip("+"),
        side="low" if exact > 0 else "high",
    )


def draw_scores(run: Run) -> Chart:
    """Return every model with its figure and interval, and ours with the spread of redraws."""
    assert run.scores is not None
    rows = [
        Track(
            name=summary.name_score(run, score),
            figure=_figure(run, at, score.figure),
            note=findings.say_interval(run, score),
            role=score.role,
            value=score.figure,
            interval=score.interval,
            spread=score.spread,
            is_own=score.key == "ours",
        )
        for at, score in enumerate(run.scores.ordered)
    ]
    without = "public model" if run.model.figure == "correction" else "without reports"
    lines = ((run.scores.find("public_only"), without, "pub"), _limit(run))
    return Chart.of(rows, [(s.figure, text, role) for s, text, role in lines if s], scale=units.scale(run))


def draw_epsilons(run: Run) -> Chart | None:
    """Return the draws of the noise at other epsilons, or what would be found there; None of neither."""
    table, points = findings.tabulate_strip(run), findings.list_epsilons(run)
    if table is None:
        return None
    rows = [
        Track(
            name=f"ε = {head}",
            figure=figure,
            note=note,
            role="ours" if point.epsilon == run.privacy.epsilon else "ref",
            draws=point.draws if not run.finds or findings.is_possible(run, point) else (),
            is_own=point.epsilon == run.privacy.epsilon,
        )
        for point, (head, figure, note) in zip(points, ((*row, "")[:3] for row in table.rows), strict=True)
    ]
    lines = ((summary.find_reference(run), "public rows", "pub"), _limit(run)) if run.scores else ()
    return Chart.of(rows, [(s.figure, text, role) for s, text, role in lines if s], scale=units.scale(run))


def _figure(run: Run, at: int, value: float) -> str:
    """Write the figure of a row; the name of a unit stands in the first one alone."""
    unit = units.label_unit(run)
    return unit.bare(value) if at and run.label == "number" else unit.value(value)


def draw_curve(run: Run, curve: CurveLine) -> tuple[Chart, Table]:
    """Return the predictions along a column, of its stretches and categories some, and the table of all."""
    table, unit, rows = findings.tabulate_curve(run, curve), units.label_unit(run), []
    every = -(-len(curve.points) // MOST_POINTS)
    for at, ((name, *_), point) in enumerate(zip(table.rows[::every], curve.points[::every], strict=True)):
        low, high = Estimate(value=point.value, sd=point.sd).ends
        rows.append(
            Track(
                name=name,
                figure=_figure(run, at, point.value),
                note="" if point.public is None else say("beside", public=unit.bare(point.public)).text,
                role="ours",
                value=point.value,
                interval=None if point.sd is None else Span(low=low, high=high),
                public=point.public,
            )
        )
    return Chart.of(rows, scale=units.scale(run)), table


def _limit(run: Run) -> tuple[Score | None, str, str]:
    """Return the tree without privacy, its words and its role."""
    return (run.scores and run.scores.find("non_private")) or None, "one tree, no privacy", "ref"


def _note_scores(run: Run) -> list[Sentence]:
    """Say how far redraws of the noise spread, or why there are none, and what got worse."""
    assert run.scores is not None
    spread, unit = run.scores.ours.spread, units.label_unit(run)
    notes = [say("no strip")] if run.privacy.features and spread is None else []
    if spread is not None:
        last = run.scores.redraws - 1
        within = round(0.95 * last) - round(0.05 * last) + 1
        low, high = unit.bare(spread.low), unit.value(spread.high)
        notes.append(say("spread", n=within, draws=run.scores.redraws, low=low, high=high))
    return [*notes, *summary.costs(run)]


def summarize(run: Run) -> str:
    """The finding, the scores, the privacy and the steps as markdown."""
    parts = [
        f"## {escape_markdown(summary.headline(run).text)}",
        *([] if run.failure else [escape_markdown(privacy.say_protection(run))]),
        escape_markdown(" ".join(sentence.text for sentence in summary.lead(run))),
    ]
    if run.failure is not None:
        if rest := summary.split_reason(run.failure.message)[1]:
            parts.append(f"> {escape_markdown(rest)}")
        broken = [check for check in run.checks if not check.ok][:MOST_LISTED]
        parts.append(
            "\n".join(f"- {check.state}: {escape_markdown(check.name)} ({check.zone})" for check in broken)
        )
    else:
        if run.scores is not None:
            table = findings.tabulate_scores(run)
            rows = [(row[0], row[1], row[-1]) for row in table.rows]
            parts.append(_markdown((table.heads[0], table.heads[1], table.heads[-1]), rows))
        parts.append("### What left a person's hands")
        parts.append(
            "\n".join(
                f"- **{escape_markdown(answer.question)}.** {escape_markdown(' '.join(each.text for each in answer.sentences))}"
                for answer in privacy.answers(run)
            )
        )
    parts.append("### How it was made")
    steps = [
        (step.name, "cached" if step.state == "cached" else units.seconds(step.seconds))
        for step in run.making.steps
    ]
    parts.append(_markdown(("step", "time"), steps))
    return "\n\n".join(part for part in parts if part) + "\n"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__ or "tasks.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = Markup(STYLE.read_text(encoding="utf-8"))  # noqa: S704 - our own file, no data in it
    environment.globals |= KNOWN | {"style": style, "version": version("ldptree")}
    environment.globals["draw"] = environment.get_template("charts.html.j2").module
    return environment


def _markdown(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [
        head,
        tuple("---" for _ in head),
        *(tuple(escape_markdown(value) for value in row) for row in rows),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


KNOWN: dict[str, Any] = {
    "say": say,
    "glossary": GLOSSARY,
    "chips": CHIPS,
    "count": units.count,
    "plural": units.plural,
    "units": units,
    "charts": charts,
    "summary": summary,
    "findings": findings,
    "privacy": privacy,
    "draw_groups": draw_groups,
    "note_scores": _note_scores,
}
"""Names that every template knows."""
