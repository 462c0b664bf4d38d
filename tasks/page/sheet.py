"""The sheet that both kinds of page are written on: the template's surroundings, what is drawn of a large tree, and markdown.

What only one kind says is in `render` (classes) and `regression` (numbers).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Sequence
from itertools import count as ticket
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from markupsafe import Markup, escape

from tasks.page import charts, plots, privacy, run_words
from tasks.page import numbers as n
from tasks.page.model_facts import BranchFacts, ModelScore, PlaceFacts
from tasks.page.run_facts import RunFacts

if TYPE_CHECKING:
    from jinja2 import Environment

DRAWN_CELLS = 12
TABLED_CELLS = 400
DRAWN_NODES = 240
LISTED_CHECKS = 400

P = TypeVar("P", bound=PlaceFacts)


def poured(
    facts: RunFacts,
    learned: str,
    *,
    words: ModuleType,
    finding: ModuleType,
    officer: ModuleType = privacy,
    **said: Any,
) -> str:
    """The page, with everything from data escaped.

    Args:
        facts: the run.
        learned: the template of what was learned.
        words, finding, officer: how its kind of page speaks; officer, of privacy.
        said: what else the templates need.
    """
    environment = _environment()
    opened = drawn_open(facts.tree, DRAWN_NODES) if facts.tree else set()
    unmet = [check for check in facts.checks if not check.ok]
    met = [check for check in facts.checks if check.ok]
    return environment.get_template(
        "page.html.j2"
    ).render(
        facts=facts,
        learned=learned,
        style=Markup(_style(environment)),  # noqa: S704 - our own file, no data in it
        n=n,
        run=run_words,
        words=words,
        finding=finding,
        charts=charts,
        plots=plots,
        privacy=officer,
        brief=_brief,
        is_open=lambda node: id(node) in opened,
        unmet=unmet[:LISTED_CHECKS],
        checks=(unmet + met)[:LISTED_CHECKS],
        unlisted=max(len(facts.checks) - LISTED_CHECKS, 0),
        **said,
    )


def by_share(cells: Sequence[P]) -> list[P]:
    """Cells by their share of private people, the largest first."""
    return sorted(cells, key=lambda cell: (-cell.share_private, cell.path))


def summary(
    facts: RunFacts,
    *,
    finding: ModuleType,
    scores: Sequence[ModelScore],
    chief: str,
    figure: Callable[[ModelScore], str],
    interval: Callable[[ModelScore], str],
    officer: ModuleType = privacy,
) -> str:
    """The finding, the scores, the privacy and the steps as markdown, with everything from data escaped.

    `chief` names the chief figure; `figure` and `interval` write it and its interval.
    """
    parts = [f"## {_plain(finding.headline(facts))}", _plain(" ".join(finding.lead(facts)))]
    if facts.failure is not None:
        parts.append(f"> {_plain(facts.failure.message)}")
        broken = [check for check in facts.checks if not check.ok]
        parts.append(
            "\n".join(f"- {run_words.check_state(c)}: {_plain(c.name)} ({c.zone})" for c in broken[:50])
        )
    else:
        if scores:
            rows = [(run_words.score_name(score), figure(score), interval(score)) for score in scores]
            parts.append(_markdown_table(("model", chief, "95 % interval"), rows))
        parts.append("### What left a holder's hands")
        parts.append(
            "\n".join(
                f"- **{_plain(answer.question)}.** {_plain(' '.join(answer.sentences))}"
                for answer in officer.answers(facts)
            )
        )
    parts.append("### How it was made")
    steps = [(step.name, run_words.step_value(step)) for step in facts.steps]
    parts.append(_markdown_table(("step", "time"), steps))
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
    cut = run_words.short(name)
    return escape(name) if cut == name else Markup('<bdi title="{}">{}</bdi>').format(name, cut)


def drawn_open(root: BranchFacts, most: int) -> set[int]:
    """Identities of the nodes drawn with their children: the largest, up to `most` nodes on the page."""
    chosen: set[int] = set()
    order = ticket()  # nodes that hold the same share are taken in the order they are met
    waiting = [(-root.share_private, next(order), root)]
    drawn = 1
    while waiting and drawn < most:
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


def _markdown_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *(tuple(_plain(value) for value in row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
