"""The page itself: facts and words poured into the template, and the short version of it in markdown.

What is shown of a large model is chosen here, so that a page stays small whatever the model's size.
"""

from __future__ import annotations

import heapq
import re
from itertools import count as ticket
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from tasks.page import charts, finding, privacy, words
from tasks.page import numbers as n
from tasks.page.facts import CellFacts, Facts, NodeFacts

if TYPE_CHECKING:
    from jinja2 import Environment

DRAWN_CELLS = 12
TABLED_CELLS = 400
DRAWN_NODES = 240
LISTED_CHECKS = 400
DRAWN_CLASSES = 20


def render(facts: Facts) -> str:
    """The run's page: one HTML file that loads nothing, with everything from data escaped."""
    environment = _environment()
    cells = _by_share(facts)
    drawn_open = _drawn_open(facts.tree) if facts.tree else set()
    unmet = [check for check in facts.checks if not check.ok]
    met = [check for check in facts.checks if check.ok]
    return environment.get_template(
        "page.html.j2"
    ).render(
        facts=facts,
        style=Markup(_style(environment)),  # noqa: S704 - our own file, no data in it
        n=n,
        words=words,
        finding=finding,
        charts=charts,
        privacy=privacy,
        score_axis=charts.score_axis(facts.scores) if facts.ours else None,
        percent_tick=lambda value: n.percent(value, 0),
        others={
            key: title
            for key, title in words.METRICS.items()
            if key != "accuracy" and any(key in score.metrics for score in facts.scores)
        },
        confusions=[score for score in facts.scores if 0 < len(score.confusion) <= DRAWN_CLASSES],
        notes=any(score.note for score in facts.scores),
        shown=cells[:DRAWN_CELLS],
        left=words.left_out(facts, cells[DRAWN_CELLS:]),
        any_public=any(cell.public_margin is not None for cell in cells[:DRAWN_CELLS]),
        cell_axis=charts.cell_axis(cells[:DRAWN_CELLS]) if cells else None,
        margin_tick=lambda value: words.belief(value, facts),
        tabled=cells[:TABLED_CELLS],
        table_title=words.table_title(facts, min(len(cells), TABLED_CELLS)),
        differs=any(words.difference(cell) for cell in cells[:TABLED_CELLS]),
        brief=_brief,
        is_open=lambda node: id(node) in drawn_open,
        unmet=unmet[:LISTED_CHECKS],
        checks=(unmet + met)[:LISTED_CHECKS],
        unlisted=max(len(facts.checks) - LISTED_CHECKS, 0),
    )


def summary_markdown(facts: Facts) -> str:
    """The finding, the scores, the privacy and the steps as markdown, with everything from data escaped."""
    parts = [f"## {_plain(finding.headline(facts))}", _plain(" ".join(finding.lead(facts)))]
    if facts.failure is not None:
        parts.append(f"> {_plain(facts.failure.message)}")
        broken = [check for check in facts.checks if not check.ok]
        parts.append("\n".join(f"- {words.check_state(c)}: {_plain(c.name)} ({c.zone})" for c in broken[:50]))
    else:
        if facts.scores:
            parts.append(
                _markdown_table(
                    ("model", "accuracy", "95 % interval"),
                    [
                        (
                            words.score_name(score),
                            n.percent(score.accuracy),
                            words.interval(score.interval),
                        )
                        for score in facts.scores
                    ],
                )
            )
        parts.append("### What left a holder's hands")
        parts.append(
            "\n".join(
                f"- **{_plain(answer.question)}.** {_plain(' '.join(answer.sentences))}"
                for answer in privacy.answers(facts)
            )
        )
    parts.append("### How it was made")
    parts.append(
        _markdown_table(("step", "time"), [(step.name, words.step_value(step)) for step in facts.steps])
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("tasks.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _style(environment: Environment) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, "style.css")[0]


def _brief(name: str) -> Markup:
    """A class's name, cut where it is long: whole in the title that a pointer brings up."""
    cut = words.short(name)
    return escape(name) if cut == name else Markup('<bdi title="{}">{}</bdi>').format(name, cut)


def _by_share(facts: Facts) -> list[CellFacts]:
    return sorted(facts.cells, key=lambda cell: (-cell.share_private, cell.path))


def _drawn_open(root: NodeFacts) -> set[int]:
    """Identities of the nodes drawn with their children: the largest, up to `DRAWN_NODES` on the page."""
    chosen: set[int] = set()
    order = ticket()  # nodes that hold the same share are taken in the order they are met
    waiting = [(-root.share_private, next(order), root)]
    drawn = 1
    while waiting and drawn < DRAWN_NODES:
        _, _, node = heapq.heappop(waiting)
        if not node.children:
            continue
        chosen.add(id(node))
        drawn += len(node.children)
        for child in node.children:
            heapq.heappush(waiting, (-child.share_private, next(order), child))
    return chosen


def _plain(text: str) -> str:
    """Text that markdown and HTML take literally."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]#|~!])", r"\\\1", re.sub(r"[ \t\r\n]+", " ", escaped).strip())


def _markdown_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *(tuple(_plain(value) for value in row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
