"""The page of a run that its validation stopped: what failed, which rows there were, and that nobody was asked."""

from __future__ import annotations

import re

from page_truth import every_page
from page_truth.artifacts import Run
from page_truth.reading import Element
from page_truth.rules import Checker, Rule


def check(run: Run) -> list[str]:
    """What a page says that is not so."""
    checker, page = Checker(), run.page.first("main")
    sections = {one.attributes["aria-labelledby"]: one for one in page.every("section")}
    checker.that(set(sections) == {"data", "making"}, f"a stopped run has the sections {list(sections)}")
    _check_rows(run, sections["data"].first("table"), checker)
    every_page.check_expectations(run, sections["data"], checker)
    every_page.check_making(run, sections["making"], checker)
    broken = [one for one in run.checks if not one["ok"] and one.get("severity", "stop") == "stop"]
    message = "; ".join(f"{one['zone']} rows: {one['name']}" for one in broken)
    header = [
        Rule.of(
            r"^Stopped at validation: {failed} checks? failed, and nothing was learned from anyone\.",
            {"failed": len(broken)},
        ),
        Rule.of(r"^No report was drawn, so no holder's privacy was spent\.$"),
        Rule.of(rf"^{re.escape(message)}$"),
    ]
    page.first("ul", "tags").is_read = True
    every_page.sweep(run, {"header": header}, checker)
    return checker.faults


def _check_rows(run: Run, table: Element, check: Checker) -> None:
    ingested = run.chain.ingested
    set_aside = ingested.facts["bad_public"] + ingested.facts["left_out_public"]
    expected = {
        "rows read": (f"{ingested['public'].rows + set_aside:,}", "kept by the holders"),
        "kept": (f"{ingested['public'].rows:,}", f"{ingested['private'].rows:,}"),
        "set aside as faulty": (f"{ingested.facts['bad_public']:,}", "kept by the holders"),
        "checks met": tuple(every_page.checks_met(run)),
    }
    found = {
        row.children[0].text: tuple(cell.text for cell in row.children[1:]) for row in table.every("tr")[1:]
    }
    check.that(found == expected, f"data: {found}, should be {expected}")
    table.is_read = True
