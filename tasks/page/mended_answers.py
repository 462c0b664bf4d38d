"""What a page of a correction says of both models' answers, public and corrected, in every cell and over everybody.

Which way the public model errs is in `mended_words`.
"""

from __future__ import annotations

from tasks.page import numbers as n
from tasks.page.mended_facts import CellMendFacts, CellTestFacts, MendedCell, MendedFacts
from tasks.page.mended_words import place
from tasks.page.number_facts import SMALLEST_BIN
from tasks.page.number_words import label_name
from tasks.page.run_words import short


def answer(value: float | None, facts: MendedFacts, digits: int = 0) -> str:
    """What a model says: a share, or a number; a dash where it is not known."""
    if value is None:
        return "–"
    return n.percent(value, digits) if facts.label == "class" else facts.measure.value(value)


def answers(mend: CellMendFacts, facts: MendedFacts) -> tuple[str, str]:
    """What both models say in a cell, in as many digits as tell them apart."""
    if mend.public is None or mend.corrected is None:
        return "–", "–"
    for digits in (0, 1) if mend.correction else (0,):
        said = answer(mend.public, facts, digits), answer(mend.corrected, facts, digits)
        if said[0] != said[1]:
            break
    return said


def of_output(output: int, facts: MendedFacts) -> str:
    """What an answer is a share of; "" of a number."""
    return f" “{facts.outputs[output]}”" if facts.label == "class" else ""


def answers_aria(cell: MendedCell, facts: MendedFacts) -> str:
    """Both models' answers in a cell, for a screen reader."""
    mend = cell.outputs[cell.shown]
    if mend.public is None:
        return f"{place(cell, facts)}: no public row here, so what the public model answers is not known"
    before, after = answers(mend, facts)
    of = of_output(cell.shown, facts)
    said = f"{place(cell, facts)}: the public model says {before}{of}, corrected {after}"
    return f"{said}; {test_aria(cell.test, facts)}" if cell.test is not None else said


def test_aria(test: CellTestFacts, facts: MendedFacts) -> str:
    """How both models did on a cell's held-back rows, for a screen reader."""
    what = "accuracy" if facts.label == "class" else "mean squared error"
    before, after = tested(test, facts)
    return f"{what} on {n.count(test.n)} held back {before}, corrected {after}"


def tested(test: CellTestFacts, facts: MendedFacts) -> tuple[str, str]:
    """How both models did on a cell's held-back rows."""
    if facts.label == "class":
        return n.percent(test.public), n.percent(test.ours)
    digits = n.digits_of(min(test.public, test.ours) or 1.0)
    return n.fixed(test.public, digits), n.fixed(test.ours, digits)


def whole_test(facts: MendedFacts) -> CellTestFacts | None:
    """How both models did on all rows held back; None without any."""
    public = facts.baseline("public_only")
    if facts.ours is None or public is None or facts.n_scored < SMALLEST_BIN:
        return None
    return CellTestFacts(n=facts.n_scored, public=public.figure, ours=facts.ours.figure)


def test_name(facts: MendedFacts) -> str:
    """What is measured on a cell's held-back rows."""
    return "accuracy there" if facts.label == "class" else "MSE there"


def answered(facts: MendedFacts) -> str:
    """What the axis of the answers measures."""
    if facts.label == "number":
        return label_name(facts)
    return f"share of “{short(facts.positive)}”" if facts.positive is not None else "share of the class named"


def answers_caption(facts: MendedFacts) -> str:
    """What the picture of both models' answers shows."""
    said = (
        f"Answers are averages over the public rows of a cell: how private {facts.nouns} would be answered one by one, nobody "
        "sees."
    )
    if any(cell.test is not None for cell in facts.cells):
        is_few = any(cell.test is None for cell in facts.cells)
        few = f" A dash: fewer than {SMALLEST_BIN} were held back there." if is_few else ""
        measured = "accuracies" if facts.label == "class" else "mean squared errors"
        said += f" The {measured} are of private {facts.nouns} held back, as only a simulation can; of few they are rough.{few}"
    return said
