"""What a page of classes calls things: captions, table cells and what a screen reader says of a picture.

What both kinds of page say is in `run_words`.
"""

from __future__ import annotations

from tasks.page import numbers as n
from tasks.page.facts import CellFacts, Facts, NodeFacts, ScoreFacts, Span
from tasks.page.mended_facts import MendedFacts
from tasks.page.run_words import caps, rows_of, score_name, short

CHIEF = "accuracy"
METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "log_loss": "log loss",
}


def cells_caption(facts: Facts) -> str:
    """What the picture of the cells shows, and what it must not be mistaken for."""
    if facts.positive is not None:
        even = f"The dotted line is even: right of it the model says “{facts.positive}”."
    else:
        even = (
            "Right of the dotted line the decided class is ahead of the next one; the ± of a lead is at most so wide, as errors "
            "of two classes may go apart."
        )
    return (
        f"{even} A cell's share of private {facts.nouns} is itself estimated from reports. "
        "An arrow: the noise goes on beyond the picture."
    )


def node_error(node: NodeFacts, facts: Facts) -> str:
    """Two standard deviations of a cell's figure, in the page's unit; "" at a node that is no cell."""
    if node.margin_sd is None:
        return ""
    return _error(node.margin_sd, facts)


def _error(sd: float, facts: Facts) -> str:
    """Two standard deviations of a margin, in points of a share, or of a lead, which is two margins."""
    return n.error(sd if facts.positive is not None else 2 * sd)


def tree_caption(facts: Facts) -> str:
    """What the columns of the tree are."""
    return (
        f"Share of private {facts.nouns}, the model's answer and its probability; at a cell also ± 2 sd in points. "
        "Branches open where they have a triangle."
    )


def with_error(margin: float | None, sd: float | None, facts: Facts) -> str:
    """A margin in the page's unit with two standard deviations; a dash where there is none."""
    if margin is None or sd is None:
        return "–"
    if facts.positive is not None:
        return f"{n.percent(0.5 + margin)} {_error(sd, facts)}"
    return f"{n.points(2 * margin, signed=True)} {_error(sd, facts)}"


def difference(cell: CellFacts) -> str:
    """The learned private-less-public difference of a cell, in points; "" where none was found."""
    if cell.discrepancy is None or cell.discrepancy_sd == 0:
        return ""
    said = n.points(cell.discrepancy, signed=True)
    return said if cell.discrepancy_sd is None else f"{said} {n.error(cell.discrepancy_sd)}"


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
            f"by its reports alone {belief(cell.raw_margin, facts)}, noise {_error(cell.raw_sd, facts)} points"
        )
    if cell.public_margin is not None:
        said.append(f"by public rows alone {belief(cell.public_margin, facts)}")
    said.append(f"believed {belief(cell.margin, facts)}, {_error(cell.margin_sd, facts)} points")
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


def score_caption(facts: Facts | MendedFacts) -> str:
    """What the picture of the scores shows, under which caps, and where it could not be had."""
    of = f"{n.count(facts.n_scored)} of the " if facts.n_scored < facts.n_test else ""
    said = f"Accuracy on {of}{rows_of(facts, facts.n_test)} held back from the private ones. "
    said += caps(facts.scores)
    if isinstance(facts.ours, ScoreFacts) and 0 < len(facts.ours.confusion) <= 4:
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


def interval(span: Span | None) -> str:
    """An interval of an accuracy; a dash where there is none."""
    return "–" if span is None else f"{n.percent(span.low)} to {n.percent(span.high)}"


def metric(score: ScoreFacts, key: str) -> str:
    """One figure of one model; a dash where it is not known."""
    if key not in score.metrics:
        return "–"
    value = score.metrics[key]
    return n.percent(value) if key in ("accuracy", "balanced_accuracy") else n.decimal(value)
