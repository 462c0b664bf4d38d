"""Whether numbers on a page are those of a run, as far as they are written out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from page_truth.artifacts import Run
from page_truth.reading import NUMBER, number, rounding

Figures = Sequence[float | None]
"""The numbers of a text in order; None: any, as it comes from data."""


def numbers(text: str, run: Run) -> list[str]:
    """The numbers of a text, names from the data left out."""
    for name in sorted(names(run), key=len, reverse=True):
        text = text.replace(f"“{name}”", "")
    text = re.sub(r"[$€£¥](?=\d)", "", text)
    return re.findall(rf"(?<![\w.]){NUMBER}(?![\w])", text)


def names(run: Run) -> set[str]:
    found = {str(name) for name in run.facts["classes"]} | {run.facts["target"], run.facts["campaign"]} - {""}
    found |= {run.facts["target"].replace("_", " ")}
    return found | {str(output) for output in (run.facts["description"] or {"outputs": []})["outputs"]}


def compare(what: str, found: Sequence[str], expected: Figures) -> list[str]:
    """Whether the numbers found are the expected ones, to their last decimal."""
    if len(found) != len(expected):
        return [f"{what}: {len(found)} numbers {found}, expected {list(expected)}"]
    return [
        f"{what}: {text} is not so, expected {value}"
        for text, value in zip(found, expected, strict=True)
        if value is not None and not agrees(text, value)
    ]


def agrees(text: str, value: float) -> bool:
    return abs(number(text) - value) <= rounding(text) * 1.001 + 1e-9 * abs(value)
