"""Fill a run into the template, and write its short version in markdown. Everything from data is escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ldptree.plain_text import escape_markdown, make_visible
from tasks.page import charts, findings, privacy, summary, units
from tasks.page.captions import CHIPS, GLOSSARY, Sentence, say
from tasks.page.cards import Card, Trend
from tasks.page.charts import Axis, Strip
from tasks.page.data import Example, Run, SentNumber
from tasks.page.findings import Table
from tasks.page.groups import draw_groups
from tasks.page.ruler import draw_ruler

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_LISTED = 50
SECTIONS: dict[str, Callable[[Run], Table | None]] = {
    "cells": findings.tabulate_cells,
    "mistakes": findings.tabulate_mistakes,
    "bins": findings.tabulate_bins,
}
"""Tables that are folded under "Everything else", in order; a run that a table says nothing of goes without it."""


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
}
"""Names that every template knows."""


def render(run: Run, weeks: Trend | None = None) -> str:
    """Return the run's page as one HTML file that loads nothing, with the runs of its campaign so far."""
    learned = {"strip": None} if run.failure else _learned(run)
    return fill("page.html.j2", run=run, weeks=weeks, ruler=draw_ruler(run), **_making(run), **learned)


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
        trends={name: Trend.of(cards.values(), name) for name in campaigns},
    )


def render_brief(run: Run) -> str:
    """Return the finding, the ruler and the advice of a finished run as HTML of at most 320 px, which loads nothing."""
    return fill("brief.html.j2", run=run, ruler=draw_ruler(run))


def fill(template: str, *, text: str = "", **values: Any) -> str:
    """Fill a template of this folder, or the `text` of another, which has the same style sheet."""
    environment = _environment()
    source, _, _ = environment.loader.get_source(environment, "style.css")  # type: ignore[union-attr]
    style = Markup(source)  # noqa: S704 - our own file, no data in it
    page = environment.from_string(text) if text else environment.get_template(template)
    return make_visible(page.render({"style": style} | KNOWN | values))


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
    tree = findings.draw(run)
    return {
        "rows_of": _whose(run),
        "guesses": _guesses(run),
        "tree": tree,
        "ribbons": charts.ribbons(tree.root) if tree else [],
        "step": 46.4 / max(charts.depth_of(tree.root), 1) if tree else 0,
        "tree_classes": _classes(run, tree) if tree and tree.classes else None,
        "tree_caption": _tree_caption(run),
        "sections": [tabulate(run) for tabulate in SECTIONS.values()] + findings.tabulate_statements(run),
        "curves": [charts.draw_curve(curve) for curve in run.model.curves],
        "answers": privacy.answers(run, shown=_shown(run)),
        **_example(run),
        **(_scores(run) if run.scores else {}),
        **_strip(run),
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
        ("ours", run.n_new, say("whose private")),
        ("ref", run.n_test if run.scores else 0, say(kept)),
    ]
    return [part for part in parts if part[1] or part[0] == "ours"]


def _guesses(run: Run) -> list[tuple[int, str, str, Sentence]]:
    """Return both shares of right guesses, without a report and with one: of 100 dots, in figures, a role, and in words."""
    epsilon = run.privacy.epsilon

    def best(budget: float) -> float:
        return 1.0 / (1.0 + math.exp(-budget))

    def write(budget: float) -> str:
        return units.sure(best(budget)).removesuffix(units.SUFFIXES["share"])

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


def _classes(run: Run, tree: findings.Tree) -> Sentence:
    """Return the classes that the small bars of an end are of."""
    outputs = run.model.outputs
    key = "classes" if len(tree.classes) == len(outputs) else "classes some"
    return say(key, classes=", ".join(f"“{outputs[code]}”" for code in tree.classes), n=len(outputs))


def _tree_caption(run: Run) -> Sentence:
    what = f"chance of “{run.model.outputs[0]}”" if len(run.model.outputs) == 1 else "chance of a class"
    return say(
        f"tree {run.model.figure}",
        nouns=run.nouns,
        what=what if run.label == "class" else "answer",
        output=f"“{run.model.outputs[0]}”" if len(run.model.outputs) == 1 else "a class",
        target=run.target,
    )


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
    cell, level = example.cell + 1, example.levels[example.level]
    if run.model.figure == "correction":
        return say("example error", kind=kind, cell=cell, level=level)
    if run.label == "class":
        return say("example class", kind=kind, cell=cell, level=level)
    return say("example number", kind=kind, cell=cell, level=unit.with_name(level))


def _scores(run: Run) -> dict[str, Any]:
    assert run.scores is not None
    scores = run.scores
    ends = [end for score in scores.models for end in (score.interval.low, score.interval.high)]
    limit, axis = scores.find("non_private"), Axis.of(ends)
    without = "public model" if run.model.figure == "correction" else "without reports"
    lines = [(scores.find("public_only"), without, "pub"), (limit, "one tree, no privacy", "ref")]
    named = [(score, text, role) for score, text, role in lines if score]
    leftmost = min((score.figure for score, _, _ in named), default=0.0)
    return {
        "axis": axis,
        "score_lines": [
            (axis.at(score.figure), text, "e" if score.figure == leftmost and len(named) > 1 else "s", role)
            for score, text, role in named
        ],
        "scores_table": findings.tabulate_scores(run),
        "scores_caption": say(
            "scores",
            figure="Predicted correctly" if run.label == "class" else "Mean squared error",
            better="" if run.label == "class" else "Lower is better.",
        ),
        "scores_notes": [*filter(None, [_note_scores(run)]), *summary.costs(run)],
    }


def _note_scores(run: Run) -> Sentence | None:
    """Say how far redraws of the noise spread; or why there are none."""
    assert run.scores is not None
    spread, unit = run.scores.ours.spread, units.score_unit(run)
    if spread is None:
        return say("no strip") if run.privacy.features else None
    last = run.scores.redraws - 1
    within = round(0.95 * last) - round(0.05 * last) + 1
    low, high = unit.bare(spread.low), unit.value(spread.high)
    return say("spread", n=within, draws=run.scores.redraws, low=low, high=high)


def _strip(run: Run) -> dict[str, Any]:
    """The picture of other epsilons; nothing where there are no draws, nor a forecast."""
    table = findings.tabulate_strip(run)
    if table is None:
        return {"strip": None}
    common = {"strip_table": table, "strip_says": findings.say_strip(run)}
    if run.finds:
        finds = [(find.epsilon, find.draws) for find in run.finds if findings.is_possible(run, find)]
        strip = Strip.of(finds, run.privacy.epsilon, [0.0]) if finds else None
        return {"strip": strip, "strip_lines": [], "strip_of": "Smallest error found", **common}
    assert run.scores is not None
    reference, limit = summary.find_reference(run), run.scores.find("non_private")
    draws = [(at_epsilon.epsilon, at_epsilon.draws) for at_epsilon in run.scores.epsilons]
    lines = ((reference, "public rows", "pub"), (limit, "one tree, no privacy", "ref"))
    named = [(score.figure, text, role) for score, text, role in lines if score]
    strip = Strip.of(draws, run.privacy.epsilon, [figure for figure, _, _ in named])
    drawn = [(charts.height(strip.axis, figure), text, role) for figure, text, role in named]
    figure = "Predicted correctly" if run.label == "class" else "Mean squared error"
    return {"strip": strip, "strip_lines": drawn, "strip_of": figure, **common}


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

    return Environment(
        loader=PackageLoader(__package__ or "tasks.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _markdown(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [
        head,
        tuple("---" for _ in head),
        *(tuple(escape_markdown(value) for value in row) for row in rows),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
