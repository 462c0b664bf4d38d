"""What the page calls things: names, captions, table cells and what a screen reader says of a picture.

The finding has its own module, and so have the answers about privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

from tasks.page import numbers as n
from tasks.page.facts import CellFacts, CheckFacts, Facts, NodeFacts, ScoreFacts, Span, StepFacts

NAMES = {
    "majority": "Most frequent public answer",
    "public_only": "Public rows alone, same tree",
    "public_tree": "Public rows alone, own tree",
    "public_forest": "Public rows alone, forest",
    "ours": "Private reports and public rows",
    "no_noise": "Ours, had the reports no noise",
    "non_private": "Tree on private rows, no privacy",
}
LONGEST_NAME = 24
"""Letters of a class's name where there is little room."""

METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "log_loss": "log loss",
}
EVIDENCE = {
    "private": "private reports",
    "public": "public rows",
    "both": "both",
    "neighbours": "neighbouring cells",
}


def score_name(score: ScoreFacts) -> str:
    """What the page calls a model."""
    return score.name or NAMES.get(score.key, score.key)


def short(name: str) -> str:
    """A name cut where there is little room."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1].rstrip()}…"


def rows_of(facts: Facts, number: int | None = None) -> str:
    """The data's rows by name, "simulated" said where they are: "14,909 simulated trips"."""
    noun = facts.noun if number == 1 else facts.nouns
    named = f"simulated {noun}" if facts.simulated_data else noun
    return named if number is None else f"{n.count(number)} {named}"


def evidence(facts: Facts) -> str:
    """How many cells, and how many private rows, rest chiefly on which evidence."""
    if facts.n_cells == 1:
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
    return f"Of {n.count(facts.n_cells)} cells, {n.listed(parts)}."


def weighing(facts: Facts) -> str:
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
        "variance": "cells with little evidence take the answer of a larger cell above them",
        "paper": "cells with little evidence take a larger one's answer, by the bounds of the LPCT paper",
    }.get(facts.prune, "each cell speaks for itself")
    return f"{lam}." if facts.n_cells == 1 else f"{lam}; {prune}."


def cells_caption(facts: Facts) -> str:
    """What the picture of the cells shows, and what it must not be mistaken for."""
    if facts.positive is not None:
        even = f"The dotted line is even: right of it the model says “{facts.positive}”."
    else:
        even = "Right of the dotted line the decided class is ahead of the next one."
    return (
        f"{even} A cell's share of private {facts.nouns} is itself estimated from reports. "
        "An arrow: the noise goes on beyond the picture."
    )


def left_out(facts: Facts, cells: list[CellFacts]) -> str:
    """The cells that are not drawn, in one line; "" where all are."""
    if not cells:
        return ""
    held = n.share(min(sum(max(cell.share_private, 0.0) for cell in cells), 1.0))
    if len(cells) == 1:
        return f"and 1 more cell that holds {held} of private {facts.nouns}"
    return f"and {n.count(len(cells))} more cells that together hold {held} of private {facts.nouns}"


def node_error(node: NodeFacts, facts: Facts) -> str:
    """Two standard deviations of a cell's figure, in the page's unit; "" at a node that is no cell."""
    if node.margin_sd is None:
        return ""
    return n.error(node.margin_sd if facts.positive is not None else 2 * node.margin_sd)


def tree_caption(facts: Facts) -> str:
    """What the columns of the tree are."""
    return (
        f"Share of private {facts.nouns}, the model's answer and its probability; at a cell also ± 2 sd in points. "
        "Branches open where they have a triangle."
    )


def table_title(facts: Facts, tabled: int) -> str:
    """What the folded table of cells holds."""
    if tabled == facts.n_cells:
        return f"All {n.count(tabled)} cells in figures"
    return f"The {n.count(tabled)} largest of {n.count(facts.n_cells)} cells in figures"


def with_error(margin: float | None, sd: float | None, facts: Facts) -> str:
    """A margin in the page's unit with two standard deviations; a dash where there is none."""
    if margin is None or sd is None:
        return "–"
    if facts.positive is not None:
        return f"{n.percent(0.5 + margin)} {n.error(sd)}"
    return f"{n.points(2 * margin, signed=True)} {n.error(2 * sd)}"


def difference(cell: CellFacts) -> str:
    """The learned private-less-public difference of a cell, in points; "" where none was found."""
    if cell.discrepancy is None or cell.discrepancy_sd == 0:
        return ""
    said = n.points(cell.discrepancy, signed=True)
    return said if cell.discrepancy_sd is None else f"{said} {n.error(cell.discrepancy_sd)}"


def cell_label(cell: CellFacts, facts: Facts, most: int = 6) -> str:
    """A cell's conditions; of more than `most` the first and the last ones, which tell neighbours apart."""
    if not cell.path:
        return f"all {facts.nouns}"
    if len(cell.path) <= most:
        return ", ".join(cell.path)
    return ", ".join([cell.path[0], "…", *cell.path[-(most - 2) :]])


def belief(margin: float, facts: Facts) -> str:
    """A margin in the page's unit: the positive class's share, or the decided class's lead in points."""
    if facts.positive is not None:
        return n.percent(min(max(0.5 + margin, 0.0), 1.0), 0)
    lead = round(200 * margin)
    return f"{lead:+d}".replace("-", n.MINUS) if lead else "0"


def margin_unit(facts: Facts) -> str:
    """What the axis of the cells' picture measures."""
    if facts.positive is not None:
        return f"share of “{short(facts.positive)}”"
    return "lead of the decided class over the next, in points"


def cell_aria(cell: CellFacts, facts: Facts) -> str:
    """A cell's picture, for a screen reader."""
    said = [f"{', '.join(cell.path) or 'all ' + facts.nouns}: {margin_unit(facts)}"]
    if cell.raw_margin is not None and cell.raw_sd is not None:
        said.append(
            f"by its reports alone {belief(cell.raw_margin, facts)}, noise {n.error(cell.raw_sd)} points"
        )
    if cell.public_margin is not None:
        said.append(f"by public rows alone {belief(cell.public_margin, facts)}")
    said.append(f"believed {belief(cell.margin, facts)}, {n.error(cell.margin_sd)} points")
    return "; ".join(said)


def score_aria(score: ScoreFacts) -> str:
    """A score's picture, for a screen reader."""
    said = f"{score_name(score)}: accuracy {n.percent(score.accuracy)}"
    if score.interval is not None:
        said += f", 95 % interval {n.percent(score.interval.low)} to {n.percent(score.interval.high)}"
    if score.spread is not None:
        said += f", over redraws of the noise {n.percent(score.spread.low)} to {n.percent(score.spread.high)}"
    for key, title in METRICS.items():
        if key != "accuracy" and key in score.metrics:
            said += f", {title} {metric(score, key)}"
    return said


def score_caption(facts: Facts) -> str:
    """What the picture of the scores shows, under which caps, and where it could not be had."""
    of = f"{n.count(facts.n_scored)} of the " if facts.n_scored < facts.n_test else ""
    said = f"Accuracy on {of}{rows_of(facts, facts.n_test)} held back from the private ones. "
    said += _caps(facts)
    if facts.ours is not None and 0 < len(facts.ours.confusion) <= 4:
        found = [
            f"{n.percent(row[true] / sum(row), 0)} of “{facts.classes[true]}”"
            for true, row in enumerate(facts.ours.confusion)
            if sum(row)
        ]
        said += f"Ours recognises {n.listed(found)}. "
    return said + (
        f"Only a simulation can hold private {facts.nouns} back: "
        "of a real collection this picture does not exist."
    )


def _caps(facts: Facts) -> str:
    """The models that were fitted under a cap; "" where none was."""
    capped: dict[str, list[str]] = {}
    for score in facts.scores:
        if score.note:
            capped.setdefault(score.note, []).append(f"“{score_name(score)}”")
    return "".join(f"{n.listed(names)}: {note}. " for note, names in capped.items())


def interval(span: Span | None) -> str:
    """An interval of an accuracy; a dash where there is none."""
    return "–" if span is None else f"{n.percent(span.low)} to {n.percent(span.high)}"


def metric(score: ScoreFacts, key: str) -> str:
    """One figure of one model; a dash where it is not known."""
    if key not in score.metrics:
        return "–"
    value = score.metrics[key]
    return n.percent(value) if key in ("accuracy", "balanced_accuracy") else n.decimal(value)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the table of data."""

    title: str
    public: str
    private: str


def data_line(facts: Facts) -> str:
    """What the data are and which of them are public."""
    said = f"{facts.title}."
    if facts.simulated_data:
        said = f"{facts.title}: simulated, no one's real {facts.nouns}."
    if facts.public_rule:
        said += f" Public: “{facts.public_rule}”."
    if facts.where:
        said += f" Only {facts.nouns} with “{facts.where}” take part."
    return said


def data_table(facts: Facts) -> list[Line]:
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


def _checked(facts: Facts) -> Line:
    said = {}
    for zone in ("public", "private"):
        checks = [check for check in facts.checks if check.zone == zone]
        met = sum(check.ok for check in checks)
        said[zone] = f"{n.count(met)} of {n.count(len(checks))}" if checks else "–"
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


def made(facts: Facts) -> str:
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
