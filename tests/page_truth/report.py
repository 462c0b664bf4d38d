"""The drawn report: what a made-up holder has, what leaves it, and what it tells."""

from __future__ import annotations

import math

from chain import RoundsChain

from page_truth.agreement import agrees, numbers
from page_truth.artifacts import Run
from page_truth.reading import Scale, number, rounding


def example_cell(run: Run) -> float:
    """The cell of the made-up row."""
    example, protocol = run.facts["privacy"]["example"], run.protocol
    assert 0 <= example["cell"] < protocol.n_cells
    assert example["number"] or example["levels"][example["level"]]
    return float(example["cell"] + 1)


def example_number(run: Run) -> float:
    """What the made-up row would send without noise."""
    return float(run.facts["privacy"]["example"]["number"]["true"])


def example_answer(run: Run) -> tuple[float | None, ...]:
    """The figures of a round's question, and the answer."""
    example, asked = run.facts["privacy"]["example"], run.last.describe()
    sizes_ = [asked.figures[name] for name in ("values", "cells") if name in asked.figures]
    return (*sizes_, example_number(run) if example["number"] else float(example["cell"] + 1))


def boxes(run: Run) -> float:
    """How many values, or elements, a report names."""
    if isinstance(run.chain, RoundsChain):
        figures = run.last.describe().figures
        return float(figures.get("values", figures.get("cells", 0)))
    protocol, kind = run.protocol, run.protocol.mechanism.describe().form
    if kind == "bits and number":
        return protocol.n_cells + 1.0
    n_else = {"signed set": 2, "bits and label": protocol.n_classes, "numbers": 0}.get(kind, 1)
    return float(protocol.n_cells * protocol.n_classes + n_else)


def check_report(run: Run) -> list[str]:
    """Whether what is drawn as a report is one that a holder with the drawn answer can send."""
    drawn, faults = run.page.every("svg", "bits"), check_number(run)
    if not drawn:
        return faults
    if isinstance(run.chain, RoundsChain):
        asked = run.last.describe()
        form, size = "value" if asked.mechanism == "grr" else "set", asked.figures.get("size", math.inf)
    else:
        facts = run.protocol.mechanism.describe()
        form, size = facts.form, facts.size
    truth, sent = (len(one.every("rect", "on")) for one in drawn)
    most = {"value": 1, "set": size, "signed set": size}.get(form, math.inf)
    faults += [] if truth == 1 else [f"{truth} true values are drawn"]
    if sent > most or (form == "value" and sent != 1):
        faults.append(f"{sent} values of a report are drawn, which has {most}")
    rings = [
        (one.first("rect", "ring").attributes["x"], one.first("rect", "ring").attributes["y"])
        for one in drawn
    ]
    return faults + ([] if rings[0] == rings[1] else ["the truth is marked in two places"])


def check_asked(run: Run) -> list[str]:
    """Whether a bar for each question of a round is as long as the share of those who answered it."""
    drawn = run.page.every("svg", "asked")
    if not isinstance(run.chain, RoundsChain):
        return ["questions are drawn of no round"] if drawn else []
    widths = [float(one.attributes["width"].rstrip("%")) for one in drawn[0].every("rect", "on")]
    answered = [sum(int(one.facts["n_reports"]) for one in each) for each in run.chain.answered]
    n = run.chain.shown.facts["n_private"]
    return [
        f"the bar of question {number} is {width} % wide"
        for number, (width, m) in enumerate(zip(widths, answered, strict=True), 1)
        if abs(width - 100.0 * m / n) > 0.01
    ]


def check_number(run: Run) -> list[str]:
    """Whether a number that is drawn stands where the sentences say, before the noise and after it, and can be sent."""
    drawn, facts = run.page.every("svg", "num"), run.facts["privacy"]["example"]
    if not drawn:
        return ["a number is sent, and none is drawn"] if facts and facts["number"] else []
    before, after = (
        [scale.value(float(one.attributes["cx"].rstrip("%"))) for one in svg.every("circle")]
        for svg, scale in ((svg, Scale.of(svg)) for svg in drawn)
    )
    slack = Scale.of(drawn[0]).slack
    sent = next(one for one in run.page.every("span") if one.attributes.get("data-says") == "number sent")
    (said,) = numbers(sent.text, run)
    expected = [example_number(run)], [number(said), example_number(run)]
    faults = [
        f"a number stands at {place}, expected {value}"
        for places, values in zip((before, after), expected, strict=True)
        for place, value in zip(places, values, strict=True)
        if abs(place - value) > slack + rounding(said)
    ]
    if isinstance(run.chain, RoundsChain) and run.last.mechanism.name in ("optimal_label", "duchi"):
        possible = run.last.decode(run.last.mechanism.outputs)
        if run.last.describe().about != "label" and not any(agrees(said, one) for one in possible):
            faults.append(f"{said} is no number that {run.last.mechanism.name} sends")
    return faults
