"""What a page of numbers calls things: captions, table cells and what a screen reader says of a picture.

What both kinds of page say is in `run_words`.
"""

from __future__ import annotations

from typing import TypeAlias

from tasks.page import numbers as n
from tasks.page.basic_facts import Span
from tasks.page.charts import error_axis
from tasks.page.mended_facts import MendedFacts
from tasks.page.number_facts import (
    BinFacts,
    CurveFacts,
    NumberCell,
    NumberFacts,
    NumberNode,
    NumberScore,
    PieceFacts,
)
from tasks.page.places import number_words
from tasks.page.run_words import caps, rows_of, score_name

OfNumbers: TypeAlias = NumberFacts | MendedFacts
"""A page whose label is a number."""
CHIEF = "MSE"
METRICS = {"mse": "MSE", "r2": "R²", "mae": "MAE"}
REST = {
    "private": "private reports",
    "public": "public rows",
    "both": "both",
    "neighbours": "neighbours",
}


def label_name(facts: OfNumbers) -> str:
    """The label and its unit."""
    name = facts.target.replace("_", " ") or "label"
    return f"{name}, {facts.unit}" if facts.unit else name


def metric(score: NumberScore, key: str) -> str:
    """R² or the mean absolute error of one model; a dash where it is not known."""
    if key not in score.metrics:
        return "–"
    value = score.metrics[key]
    return n.decimal(value, 2) if key == "r2" else n.fixed(value, n.digits_of(value))


def figure(score: NumberScore, digits: int) -> str:
    """A mean squared error."""
    return n.fixed(score.figure, digits)


def interval(span: Span | None, digits: int) -> str:
    """An interval of a mean squared error; a dash where there is none."""
    return "–" if span is None else f"{n.fixed(span.low, digits)} to {n.fixed(span.high, digits)}"


def score_aria(score: NumberScore) -> str:
    """A score's picture, for a screen reader."""
    digits = n.digits_of(score.figure)
    said = f"{score_name(score)}: mean squared error {n.fixed(score.figure, digits)}"
    if score.interval is not None:
        said += f", 95 % interval {interval(score.interval, digits)}"
    if score.spread is not None:
        ends = n.fixed(score.spread.low, digits), n.fixed(score.spread.high, digits)
        said += f", over redraws of the noise {ends[0]} to {ends[1]}"
    for key, title in METRICS.items():
        if key != "mse" and key in score.metrics:
            said += f", {title} {metric(score, key)}"
    return said


def score_caption(facts: OfNumbers) -> str:
    """What the picture of the scores shows, under which caps, and where it could not be had."""
    of = f"{n.count(facts.n_scored)} of the " if facts.n_scored < facts.n_test else ""
    axis = error_axis(facts.scores)
    is_drawn = all(axis.holds(score.figure) for score in facts.scores)
    far = "" if is_drawn else "An arrow: further out than the picture. "
    squared = f", {facts.unit} squared" if facts.unit else ""
    return (
        f"Mean squared error (MSE{squared}) on {of}{rows_of(facts, facts.n_test)} held back from the private ones: the less, "
        "the better. R²: the share of the labels' variance that is explained; MAE: the mean absolute error. "
        f"{far}{caps(facts.scores)}Only a simulation can hold private {facts.nouns} back: "
        "of a real collection this picture does not exist."
    )


def bins_caption(facts: OfNumbers) -> str:
    """What the picture of predicted against true shows."""
    few = (
        f" {n.count(facts.n_few)} held-back {facts.nouns} are in no bin, as too few shared one."
        if facts.n_few
        else ""
    )
    return (
        f"Each disc is a bin of held-back {facts.nouns} with like predictions, none a single {facts.noun}: "
        f"across, what was predicted on average; upward, the true mean with ± 2 standard errors. On the dotted line "
        f"the two are equal.{few}"
    )


def bin_aria(one: BinFacts, facts: OfNumbers) -> str:
    """A bin, for a screen reader."""
    value = facts.measure.value
    return (
        f"{n.plural(one.n, facts.noun, facts.nouns)} predicted {value(one.predicted)}: truly {value(one.true)} "
        f"{facts.measure.error(one.true_error)}"
    )


def bins_aria(facts: OfNumbers) -> str:
    """Predicted against true, for a screen reader."""
    return (
        f"{label_name(facts)}, predicted against true in {n.plural(len(facts.bins), 'bin', 'bins')}: "
        + "; ".join(bin_aria(one, facts) for one in facts.bins)
    )


def cell_aria(cell: NumberCell, facts: NumberFacts) -> str:
    """A cell's picture, for a screen reader."""
    value, error = facts.measure.value, facts.measure.error
    said = [f"{', '.join(cell.path) or 'all ' + facts.nouns}: {label_name(facts)}"]
    if cell.reports is not None and cell.reports_sd is not None:
        said.append(f"by its reports alone {value(cell.reports)}, noise {error(cell.reports_sd)}")
    if cell.public is not None:
        said.append(f"by public rows alone {value(cell.public)}")
    said.append(f"believed {value(cell.value)}, {error(cell.value_sd)}")
    return "; ".join(said)


def cells_caption(facts: NumberFacts) -> str:
    """What the picture of the cells shows, and what it must not be mistaken for."""
    parted = (
        "Where reports were asked about a larger cell, what they say alone is moved as public rows part it. "
        if facts.n_cells < len(facts.cells)
        else ""
    )
    return (
        f"A cell's share of private {facts.nouns} is itself estimated from reports. {parted}"
        "An arrow: the noise goes on beyond the picture."
    )


def with_error(value: float | None, sd: float | None, facts: OfNumbers) -> str:
    """A number with two standard deviations; a dash where there is none."""
    if value is None or sd is None:
        return "–"
    return f"{facts.measure.bare(value)} {facts.measure.error(sd)}"


def difference(cell: NumberCell, facts: NumberFacts) -> str:
    """The learned private-less-public difference of a cell; "" where none was found."""
    if cell.difference is None or not cell.difference_sd:
        return ""
    return f"{facts.measure.bare(cell.difference, signed=True)} {facts.measure.error(cell.difference_sd)}"


def node_value(node: NumberNode, facts: NumberFacts) -> str:
    """What a node says."""
    return facts.measure.bare(node.value)


def node_error(node: NumberNode, facts: NumberFacts) -> str:
    """Two standard deviations of a cell's value; "" at a node that is no cell."""
    return "" if node.value_sd is None else facts.measure.error(node.value_sd)


def node_place(node: NumberNode, facts: NumberFacts) -> float:
    """Where a node's value lies between the least and the largest of all cells, 0 to 1."""
    values = [cell.value for cell in facts.cells]
    low, high = min(values), max(values)
    return (node.value - low) / (high - low) if high > low else 0.5


def tree_caption(facts: NumberFacts) -> str:
    """What the columns of the tree are."""
    return (
        f"Private {facts.nouns} as estimated from reports, the value predicted (the bar: from the least of all cells to the "
        "largest); at a cell also ± 2 sd and what it chiefly rests on. Branches open where they have a triangle."
    )


def curve_title(curve: CurveFacts) -> str:
    """A curve's heading."""
    return f"Along {curve.column}"


def curve_note(curve: CurveFacts) -> str:
    """How much of the model's answers goes with the column."""
    return f"{n.share(curve.strength)} of the variance of the answers"


def curves_caption(facts: NumberFacts) -> str:
    """What the curves are, and how wide their band is."""
    public = " as the public rows have them" if facts.n_public else ""
    said = (
        f"The fitted function: the model's answer averaged over the other columns{public}. The band is ± 2 sd, as if the "
        "errors of all cells pointed the same way: at most too wide."
    )
    if facts.n_public:
        said += " Dashed, and the diamonds: the same of public rows alone."
    return said


def curve_aria(curve: CurveFacts, facts: NumberFacts) -> str:
    """A curve, for a screen reader."""
    pieces = curve.stretches
    steps = [piece_aria(piece, facts) for piece in pieces[:MOST_SAID]]
    if len(pieces) > MOST_SAID:
        steps.append(f"and {n.count(len(pieces) - MOST_SAID)} more steps")
    return f"{label_name(facts)} along {curve.column}: " + "; ".join(steps)


MOST_SAID = 12


def piece_aria(piece: PieceFacts, facts: NumberFacts) -> str:
    """One piece of a curve, for a screen reader."""
    where = piece.name
    if piece.low is not None and piece.high is not None:
        where = f"{number_words(piece.low)} to {number_words(piece.high)}"
    error = "" if piece.sd is None else f" {facts.measure.error(piece.sd)}"
    said = f"{where}: {facts.measure.value(piece.value)}{error}"
    return said if piece.public is None else f"{said}, public rows {facts.measure.value(piece.public)}"
