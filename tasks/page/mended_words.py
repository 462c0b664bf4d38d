"""What a page of a correction calls things: which way the public model errs, by how much, captions, what a screen reader says.

What both models answer is in `mended_answers`; what every page says, in `run_words`; of scores, in `words` (classes) and
`number_words` (numbers).
"""

from __future__ import annotations

from tasks.page import number_words, words
from tasks.page import numbers as n
from tasks.page.class_score import ScoreFacts
from tasks.page.mended_facts import (
    CellMendFacts,
    MendedCell,
    MendedFacts,
    MendedNode,
    MendFacts,
    SlopeFacts,
)
from tasks.page.number_facts import NumberScore
from tasks.page.number_words import bin_aria, bins_aria, bins_caption, label_name, with_error
from tasks.page.numbers import Measure
from tasks.page.run_words import cell_label, short

POINTS = Measure(10.0, "points")
EVIDENCE = {
    "private": "its own reports",
    "both": "its own reports",
    "neighbours": "neighbouring cells too",
    "public": "nothing added",
}


MOST_BESIDE = 2
"""Classes that are named beside the one that is drawn."""


def measure(facts: MendedFacts) -> Measure:
    """How a correction is written: percentage points of a class, or the label's unit."""
    return POINTS if facts.label == "class" else facts.measure


def in_unit(value: float, facts: MendedFacts) -> float:
    """A correction in the unit of `measure`."""
    return 100 * value if facts.label == "class" else value


def size(mend: MendFacts, facts: MendedFacts) -> str:
    """How large a correction is, without its sign: "11.0 points ± 2.0"."""
    amount = measure(facts).at_least(in_unit(abs(mend.correction), facts))
    return f"{amount} {measure(facts).error(in_unit(mend.sd, facts))}"


def signed(mend: MendFacts, facts: MendedFacts) -> str:
    """A correction with its sign, no unit: "+11.0 ± 2.0"; "0" where nothing is added."""
    if mend.correction == 0:
        return "0"
    found = measure(facts)
    return (
        f"{found.bare(in_unit(mend.correction, facts), signed=True)} {found.error(in_unit(mend.sd, facts))}"
    )


def direction(mend: MendFacts, output: int, facts: MendedFacts, *, brief: bool = False) -> str:
    """Which way the public model errs: "“cash” too often", "“cycles” too seldom", "too low"."""
    is_under = mend.correction >= 0
    if facts.label == "number":
        return "too low" if is_under else "too high"
    name, much = facts.outputs[output], "seldom" if is_under else "often"
    if facts.positive is not None:
        name, much = (facts.classes[0] if is_under else facts.positive), "often"
    return f"“{short(name) if brief else name}” too {much}"


def errs(facts: MendedFacts) -> str:
    """The public model's verb: "says", "predicts fare"."""
    return "says" if facts.label == "class" else f"predicts {facts.target.replace('_', ' ') or 'the label'}"


def sentence(mend: MendFacts, output: int, facts: MendedFacts) -> str:
    """What was found in one place: "the public model says “cash” too often, by 11.0 points ± 2.0"."""
    if mend.correction == 0:
        return "nothing was found that is worth correcting"
    said = f"the public model {errs(facts)} {direction(mend, output, facts)}, by {size(mend, facts)}"
    return said if mend.is_clear else f"within noise: {said}"


def place(node: MendedNode | MendedCell, facts: MendedFacts) -> str:
    """Where a cell or node lies."""
    if not node.path:
        return f"all {facts.nouns}"
    return ", ".join(node.path)


def label(node: MendedNode, facts: MendedFacts) -> str:
    """The same, short."""
    if node.cell is not None:
        return cell_label(facts.cells[node.cell], facts)
    return ", ".join(node.path) or f"all {facts.nouns}"


def node_aria(node: MendedNode, facts: MendedFacts) -> str:
    """A row of the picture, for a screen reader."""
    mend = node.outputs[node.shown]
    said = f"{place(node, facts)}, about {n.count(node.people)} private {facts.nouns}: {sentence(mend, node.shown, facts)}"
    said += "".join(f", {words}" for words in beside(node, facts))
    alone = alone_of(node, facts)
    if alone is None:
        return said
    value = measure(facts).bare(in_unit(alone[0], facts), signed=True)
    noise = measure(facts).error(in_unit(alone[1], facts))
    return f"{said}; its reports alone {value}, noise {noise}"


def alone_of(node: MendedNode, facts: MendedFacts) -> tuple[float, float] | None:
    """What a cell's reports alone say, and their noise; None of several cells, or where they say nothing."""
    if node.cell is None:
        return None
    mend = facts.cells[node.cell].outputs[node.shown]
    return None if mend.reports is None or mend.reports_sd is None else (mend.reports, mend.reports_sd)


def whole_aria(output: int, facts: MendedFacts) -> str:
    """The average over everybody, for a screen reader."""
    assert facts.tree is not None
    return f"all {facts.nouns} on average: {sentence(facts.tree.outputs[output], output, facts)}"


def verdict(node: MendedNode, facts: MendedFacts) -> str:
    """What is said of a row in a word or two."""
    return told(node.outputs[node.shown], node.shown, facts)


def told(mend: MendFacts, output: int, facts: MendedFacts) -> str:
    """What is said of a correction in a word or two."""
    if mend.correction == 0:
        return "not corrected"
    return direction(mend, output, facts, brief=True) if mend.is_clear else "within noise"


def beside(node: MendedNode, facts: MendedFacts) -> list[str]:
    """Of several classes, what else is clear: "also “cash” too often by 11.0 ± 2.0", the clearest first."""
    found = sorted(range(len(node.outputs)), key=lambda output: -node.outputs[output].strength)
    clear = [output for output in found if output != node.shown and node.outputs[output].is_clear]
    return [
        f"also {direction(node.outputs[output], output, facts, brief=True)} by {bare_size(node.outputs[output], facts)}"
        for output in clear[:MOST_BESIDE]
    ]


def amount(node: MendedNode, facts: MendedFacts) -> str:
    """The figures of a row."""
    mend = node.outputs[node.shown]
    of = f"“{short(facts.outputs[node.shown])}” " if len(facts.outputs) > 1 and not mend.is_clear else ""
    return f"{of}{amount_of(mend, facts)}" if mend.correction else ""


def amount_of(mend: MendFacts, facts: MendedFacts) -> str:
    """The figures of a correction."""
    if mend.correction == 0:
        return ""
    return f"by {bare_size(mend, facts)}" if mend.is_clear else signed(mend, facts)


def alone(mend: CellMendFacts, facts: MendedFacts) -> str:
    """What a cell's reports alone say; a dash where they say nothing."""
    if mend.reports is None or mend.reports_sd is None:
        return "–"
    return signed(MendFacts(correction=mend.reports, sd=mend.reports_sd), facts)


def title(facts: MendedFacts) -> str:
    """The heading over the corrections."""
    if facts.is_nothing:
        return "Where errors were looked for, and none was found"
    is_line = facts.slope is not None and facts.slope.is_clear
    if not is_line and not any(cell.outputs[cell.shown].is_clear for cell in facts.cells):
        return "Where errors were looked for, and none stands clear of its noise"
    return "Where the public model is wrong, and how surely"


def bare_size(mend: MendFacts, facts: MendedFacts) -> str:
    """As `size`, without the unit, which stands above."""
    scale = Measure(measure(facts).spread)
    return f"{scale.at_least(in_unit(abs(mend.correction), facts))} {scale.error(in_unit(mend.sd, facts))}"


def added(facts: MendedFacts) -> str:
    """What the axis of the corrections measures."""
    if facts.label == "number":
        return f"added to the public model's {label_name(facts)}"
    of = f"share of “{short(facts.positive)}”" if facts.positive is not None else "share of the class"
    return f"points added to the public model's {of}"


def ends(facts: MendedFacts) -> tuple[str, str]:
    """What left and right of 0 mean."""
    if facts.label == "number":
        return "public model too high", "public model too low"
    if facts.positive is not None:
        return f"“{short(facts.positive)}” too often", f"“{short(facts.classes[0])}” too often"
    return "said too often", "said too seldom"


def public_model(facts: MendedFacts) -> str:
    """What the public model is made of."""
    if facts.n_trees == 0:
        return "one answer for all"
    return "one tree" if facts.n_trees == 1 else f"{n.count(facts.n_trees)} trees added up"


def found_line(facts: MendedFacts) -> str:
    """What was asked, and in how many cells something was found."""
    rows = (
        "" if facts.n_public == 0 else f", fitted on {n.plural(facts.n_public, 'public row', 'public rows')}"
    )
    kinds = "" if facts.n_cells == 1 else f" in each of {n.count(facts.n_cells)} kinds of {facts.noun}"
    asked = f"Reports were about how far the public model ({public_model(facts)}{rows}) is off{kinds}."
    clear = [cell for cell in facts.cells if cell.outputs[cell.shown].is_clear]
    if facts.slope is not None:
        return f"{asked} {_cells_line(facts, clear)} {slope_line(facts.slope, facts)}"
    if facts.is_zero:
        return f"{asked} Nothing is added to it."
    return f"{asked} {_cells_line(facts, clear)}"


def _cells_line(facts: MendedFacts, clear: list[MendedCell]) -> str:
    """In how many cells something was found."""
    if not clear:
        return "No correction stands clear of its noise."
    if facts.n_cells == 1:
        return "The correction stands clear of its noise."
    if facts.is_shared:
        return (
            "They do not tell the kinds apart: all have the same correction, which stands clear of its noise."
        )
    if len(clear) == facts.n_cells:
        return "In all of them the correction stands clear of its noise."
    share = n.share(min(sum(cell.share_private for cell in clear), 1.0))
    return (
        f"In {n.count(len(clear))} of them, with {share} of private {facts.nouns}, the correction stands clear of its "
        "noise; in the others it does not."
    )


def slope_size(slope: SlopeFacts) -> str:
    """How much of the line is added: "0.62 ± 0.16"."""
    return f"{n.fixed(slope.amount, 2)} ± {n.fixed(2 * slope.sd, 2)}"


def slope_sentence(slope: SlopeFacts) -> str:
    """What they do: "follow a straight line rather than the public model, by 0.62 ± 0.16 of where the two differ"."""
    size = f"{n.fixed(abs(slope.amount), 2)} ± {n.fixed(2 * slope.sd, 2)}"
    if slope.amount < 0:
        return f"keep away from a straight line, by {size} of where it differs from the public model"
    return f"follow a straight line rather than the public model, by {size} of where the two differ"


def slope_line(slope: SlopeFacts, facts: MendedFacts) -> str:
    """What was found of a straight line beside the public model."""
    asked = "Kinds are also told apart by how far a straight line's answer is from the tree's."
    if not slope.is_found:
        return f"{asked} That private {facts.nouns} follow the line, the reports do not show."
    beside = "Beside the cells" if slope.is_clear else "Within noise: beside the cells"
    return (
        f"{asked} {beside}, private {facts.nouns} follow the line's answer by {slope_size(slope)} of where it differs from the "
        f"tree's. That need not set them apart: a line may be the better model of public {facts.nouns} too."
    )


def cells_caption(facts: MendedFacts) -> str:
    """What the picture of the corrections shows, and what it must not be mistaken for."""
    branch = f"A branch is as thick as its share of private {facts.nouns}, which is itself estimated from reports. "
    leaning = "Where a cell has few reports, its correction leans on its neighbours in the tree. "
    leans = (
        "What is added to one answer also depends on where the straight line lies: drawn is the middle of each kind. "
        if facts.slope is not None
        else ""
    )
    several = "Of several classes, the one whose correction is most clearly off 0 is drawn, and others that are clear are named. "
    return (
        f"{branch + leaning if facts.n_cells > 1 else ''}A hollow mark: within ± 2 sd of 0, so the sign is not known. Errors "
        f"speak of a cell's mean, given the tree. {leans}{several if len(facts.outputs) > 1 else ''}"
        "An arrow: the noise goes on beyond the picture."
    )


def score_aria(score: ScoreFacts | NumberScore) -> str:
    """A score's picture, for a screen reader."""
    return number_words.score_aria(score) if isinstance(score, NumberScore) else words.score_aria(score)


def metric(score: ScoreFacts | NumberScore, key: str) -> str:
    """One figure of one model; a dash where it is not known."""
    if isinstance(score, NumberScore):
        return number_words.metric(score, key)
    return words.metric(score, key)


def score_caption(facts: MendedFacts) -> str:
    """What the picture of the scores shows."""
    return number_words.score_caption(facts) if facts.label == "number" else words.score_caption(facts)


__all__ = ["bin_aria", "bins_aria", "bins_caption", "label_name", "with_error"]
