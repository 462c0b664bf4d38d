"""What both kinds of page call things: models, rows, evidence, data, steps; their captions and what a screen reader says.

The finding has its own module, and so have the answers about privacy, and what only one kind of page says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.page import numbers as n
from tasks.page.basic_facts import CheckFacts, StepFacts
from tasks.page.model_facts import ModelScore, PlaceFacts
from tasks.page.run_facts import RunFacts

NAMES = {
    "majority": "Most frequent public answer",
    "constant": "Mean of the public labels",
    "public_only": "Public rows alone, same tree",
    "public_tree": "Public rows alone, own tree",
    "public_forest": "Public rows alone, forest",
    "ours": "Private reports and public rows",
    "no_noise": "Ours, had the reports no noise",
    "non_private": "Tree on private rows, no privacy",
}
MENDED = {
    "ours": "Public model, corrected",
    "public_only": "Public model alone",
    "no_noise": "Corrected, had the reports no noise",
}
"""The same where private reports mend a public model."""
LEFT_OUT_LISTED = 50
LONGEST_NAME = 24
"""Letters of a class's name where there is little room."""
EVIDENCE = {
    "private": "private reports",
    "public": "public rows",
    "both": "both",
    "neighbours": "neighbouring cells",
}


def score_name(score: ModelScore) -> str:
    """What the page calls a model."""
    return score.name or NAMES.get(score.key, score.key)


def short(name: str) -> str:
    """A name cut where there is little room."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1].rstrip()}…"


def rows_of(facts: RunFacts, number: int | None = None) -> str:
    """The data's rows by name, "simulated" said where they are: "14,909 simulated trips"."""
    noun = facts.noun if number == 1 else facts.nouns
    named = f"simulated {noun}" if facts.simulated_data else noun
    return named if number is None else f"{n.count(number)} {named}"


def evidence(facts: RunFacts) -> str:
    """How many cells, and how many private rows, rest chiefly on which evidence."""
    n_cells = len(facts.cells)
    if n_cells == 1:
        return f"The one cell rests on {EVIDENCE[facts.cells[0].evidence]}" + (
            " kinds of evidence." if facts.cells[0].evidence == "both" else "."
        )
    parts: list[str] = []
    for key, on in (
        ("private", "private reports"),
        ("public", "public rows"),
        ("both", "both"),
        ("neighbours", "neighbouring cells"),
    ):
        held = [max(cell.share_private, 0.0) for cell in facts.cells if cell.evidence == key]
        if held:
            of = "" if parts else f" of private {facts.nouns}"
            rest = "rests chiefly" if len(held) == 1 else "rest chiefly"
            verb = "" if parts else f" {rest}"
            parts.append(f"{n.count(len(held))}{verb} on {on} ({n.share(min(sum(held), 1.0))}{of})")
    return f"Of {n.count(n_cells)} cells, {n.listed(parts)}."


def weighing(facts: RunFacts) -> str:
    """How public rows and private reports were put together."""
    lam = {
        "learned": "How far public rows are trusted is learned from the reports themselves",
        "auto": "Public rows are trusted in proportion to how little noise they carry",
        "0.0": "Public rows shape the tree; their labels do not count in its answers",
        "1.0": "A public row weighs as much as a private one",
        "inf": "Public rows alone decide; the reports do not count in its answers",
    }.get(facts.lam, f"A public row weighs as much as {facts.lam} private ones")
    prune = {
        "smooth": "cells with little evidence lean on their neighbours in the tree",
        "fallback": "cells with too little evidence take the answer of a larger cell above them",
        "variance": "cells with little evidence take the answer of a larger cell above them",
        "paper": "cells with little evidence take a larger one's answer, by the bounds of the LPCT paper",
    }.get(facts.prune, "each cell speaks for itself")
    return f"{lam}." if len(facts.cells) == 1 else f"{lam}; {prune}."


def left_out(facts: RunFacts, cells: Sequence[PlaceFacts]) -> str:
    """The cells that are not drawn, in one line; "" where all are."""
    if not cells:
        return ""
    held = n.share(min(sum(max(cell.share_private, 0.0) for cell in cells), 1.0))
    if len(cells) == 1:
        return f"and 1 more cell that holds {held} of private {facts.nouns}"
    return f"and {n.count(len(cells))} more cells that together hold {held} of private {facts.nouns}"


def table_title(facts: RunFacts, tabled: int) -> str:
    """What the folded table of cells holds."""
    n_cells = len(facts.cells)
    if tabled == n_cells:
        return "The cell in figures" if n_cells == 1 else f"All {n.count(tabled)} cells in figures"
    return f"The {n.count(tabled)} largest of {n.count(n_cells)} cells in figures"


def cell_label(cell: PlaceFacts, facts: RunFacts, most: int = 6) -> str:
    """A cell's conditions; of more than `most` the first and the last ones, which tell neighbours apart."""
    if not cell.path:
        return f"all {facts.nouns}"
    if len(cell.path) <= most:
        return ", ".join(cell.path)
    return ", ".join([cell.path[0], "…", *cell.path[-(most - 2) :]])


def caps(scores: Sequence[ModelScore]) -> str:
    """The models that were fitted under a cap; "" where none was."""
    capped: dict[str, list[str]] = {}
    for score in scores:
        if score.note:
            capped.setdefault(score.note, []).append(f"“{score_name(score)}”")
    return "".join(f"{n.listed(names)}: {note}. " for note, names in capped.items())


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the table of data."""

    title: str
    public: str
    private: str


def data_line(facts: RunFacts) -> str:
    """What the data are and which of them are public."""
    said = f"{facts.title}."
    if facts.simulated_data:
        said = f"{facts.title}: simulated, no one's real {facts.nouns}."
    if facts.public_rule:
        said += f" Public: “{facts.public_rule}”."
    if facts.where:
        said += f" Only {facts.nouns} with “{facts.where}” take part."
    if facts.label_kind:
        said += f" The label “{facts.target}” is read as a {facts.label_kind}."
    return said


def columns_left_out(facts: RunFacts) -> list[str]:
    """Each column that is left out of the features, and why; of many the first, and how many more."""
    said = [f"“{name}”: {why}" for name, why in list(facts.columns_left_out.items())[:LEFT_OUT_LISTED]]
    more = len(facts.columns_left_out) - len(said)
    return [*said, f"and {n.count(more)} more"] if more else said


def data_table(facts: RunFacts) -> list[Line]:
    """Rows and checks of both zones, private ones without a count of faults; nothing is learned from by a run that failed."""
    rows = {row.zone: row for row in facts.rows}
    public, private = rows.get("public"), rows.get("private")
    away = "kept by the holders"
    lines = []
    if public is not None and private is not None:
        lines = [
            Line(title="rows read", public=_known(public.read), private=_known(private.read, away)),
            Line(title="kept", public=n.count(public.kept), private=n.count(private.kept))
            if facts.failure is not None
            else Line(title="learned from", public=n.count(public.kept), private=n.count(facts.n_private)),
        ]
        if facts.failure is None and private.kept != facts.n_private:
            asked = n.count(private.kept)
            lines.append(Line(title="of these, asked in this run", public="–", private=asked))
        if public.held_out or private.held_out:
            held = n.count(public.held_out), n.count(private.held_out)
            lines.append(Line(title="held back for the test", public=held[0], private=held[1]))
        if public.quarantined is not None:
            lines.append(Line(title="set aside as faulty", public=n.count(public.quarantined), private=away))
    if facts.checks:
        lines.append(_checked(facts))
    if facts.duplicates is not None:
        title = "exact copies between training and test"
        lines.append(Line(title=title, public="–", private=n.count(facts.duplicates)))
    return lines


def _known(number: int | None, otherwise: str = "–") -> str:
    return otherwise if number is None else n.count(number)


def _checked(facts: RunFacts) -> Line:
    said = {}
    for zone in ("public", "private"):
        checks = [check for check in facts.checks if check.zone == zone]
        met = sum(check.ok for check in checks)
        said[zone] = f"{n.count(met)} of {n.count(len(checks))}" if checks else "kept by the holders"
    return Line(title="checks met", public=said["public"], private=said["private"])


def step_value(step: StepFacts) -> str:
    """A step's time, or that it was found."""
    if step.state == "cached":
        return "cached"
    return n.seconds(step.seconds) + (", failed" if step.state == "failed" else "")


def step_aria(step: StepFacts) -> str:
    """A step's bar, for a screen reader."""
    return f"{step.name}: {step.state}, from {n.seconds(step.start)}, for {n.seconds(step.seconds)}"


def check_state(check: CheckFacts) -> str:
    """How a check ended, in a word."""
    if check.ok:
        return "met"
    return "failed" if check.severity == "stop" else "warning"


def made(facts: RunFacts) -> str:
    """Time, cores and memory of the run."""
    said = n.seconds(facts.seconds)
    if facts.cores:
        said += f" on {n.plural(facts.cores, 'core', 'cores')}"
    if facts.peak_rss_mb:
        said += f", peak memory {n.memory(facts.peak_rss_mb)}"
    cached = [step.name for step in facts.steps if step.state == "cached"]
    if cached and len(cached) == len(facts.steps):
        return f"{said}. Every step was taken from an earlier run."
    if cached:
        return f"{said}. Dashed: taken from an earlier run."
    return f"{said}."
