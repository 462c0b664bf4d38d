"""Describe a mechanism by facts of one report without a sentence, and what dishonest holders can move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["value", "bits", "set", "signed set", "hash", "numbers", "bits and label", "bits and number"]
"""What a report is made of."""


@dataclass(frozen=True, kw_only=True)
class MechanismDescription:
    """Facts of one mechanism and of one report of it, from the integers in use.

    Attributes:
        name: of the mechanism, as a protocol has it.
        oracle: of a joint report, the frequency oracle below it.
        form: what a report is made of.
        size: how many of them: values that a value is one of, bits, elements of a set, buckets of a hash, numbers. A label
            apart does not count.
        n_values: values that a holder can have; None for a number.
        report_bytes: size of one report as it is sent.
        epsilon: that no likelihood ratio exceeds, rounded up.
        p: P(a report supports its holder's value, or cell where the label is apart); None where noise is added.
        q: P(it supports another given one).
        label_p: P(the label that is sent with the own cell is the own one), where a label has a coin of its own.
        noise_sd: standard deviation of the noise of one number of a report (of the cell, where the label has another).
        label_noise_sd: the same of a label that is a number, in widths of its range.
        is_simulation_device: whether reports leak through floating point, so that no real client may send one.
    """

    name: str
    form: Form
    size: int
    n_values: int | None
    report_bytes: int
    epsilon: float
    oracle: str | None = None
    p: float | None = None
    q: float | None = None
    label_p: float | None = None
    noise_sd: float | None = None
    label_noise_sd: float | None = None
    is_simulation_device: bool = False

    @property
    def figures(self) -> dict[str, float]:
        """Chances and noise of one report, as far as the mechanism has them."""
        figures = {name: getattr(self, name) for name in ("p", "q", "label_p", "noise_sd", "label_noise_sd")}
        return {name: figure for name, figure in figures.items() if figure is not None}


@dataclass(frozen=True)
class PoisoningBound:
    """The bound of what dishonest holders can do to the unbiased totals, in holders.

    Attributes:
        one: the largest shift that one dishonest report causes to one total.
        one_percent: the same for one per cent of n holders (rounded up) who agree.
        totals_at_once: how many totals one report can shift that far at the same time.
    """

    one: float
    one_percent: float
    totals_at_once: int
