"""What a published question asks and how it is answered, in figures and plain names: for pages, plans and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ldptree.oracles.description import MechanismDescription

if TYPE_CHECKING:
    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.question import Question

About = Literal["cell and label", "cell and error", "label bin", "feature bin", "label", "residual", "cell"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One published question.

    Attributes:
        about: what it asks for.
        mechanism: how the answer is randomised, such as "joint oue" or "duchi".
        epsilon: what one answer spends, by the integers in use.
        n_asked: holders asked.
        figures: chances ("p", "q", "label_p"), noise ("noise_sd", "label_noise_sd"), sizes ("values", "size", "cells", "levels")
            and ends ("low", "high"), as far as the question has them.
        feature, shape: of a round about one feature, its name, and what its residual is multiplied by.
    """

    about: About
    mechanism: str
    epsilon: float
    n_asked: int
    figures: dict[str, float] = field(default_factory=dict)
    feature: str = ""
    shape: str = ""


def describe_protocol(protocol: Protocol, n_asked: int) -> Asked:
    """The question about a cell and a label, or the error of a public model."""
    facts = protocol.mechanism.describe()
    found = measure_mechanism(facts)
    ends = (float(protocol.classes[0]), float(protocol.classes[-1])) if protocol.numeric else None
    if ends and "label_noise_sd" in found:
        found["label_noise_sd"] *= ends[1] - ends[0]
    found |= {"values": protocol.k, "cells": protocol.n_cells, "levels": protocol.n_classes}
    found |= {"low": ends[0], "high": ends[1]} if ends else {}
    return Asked(
        about="cell and label" if protocol.base is None else "cell and error",
        mechanism=protocol.mechanism.full_name,
        epsilon=protocol.epsilon_exact,
        n_asked=n_asked,
        figures=found,
    )


def measure_mechanism(facts: MechanismDescription) -> dict[str, float]:
    """Chances and noise of one report, as far as the mechanism has them."""
    found = {
        "p": facts.p,
        "q": facts.q,
        "label_p": facts.label_p,
        "noise_sd": facts.noise_sd,
        "label_noise_sd": facts.label_noise_sd,
    }
    return {name: figure for name, figure in found.items() if figure is not None}


def describe_round(
    question: Question, n_asked: int, columns: Sequence[str], label_range: tuple[float, float]
) -> Asked:
    """A question of several rounds. Raises TypeError where it is none that is known here."""
    from ldptree.families.histoftree import CellsQuestion, LabelQuestion
    from ldptree.families.public_features import FeatureBins, LabelBins, ResidualQuestion

    def asked(about: About, mechanism: str, feature: str = "", shape: str = "", **figures: float) -> Asked:
        return Asked(
            about=about,
            mechanism=mechanism,
            epsilon=question.epsilon,
            n_asked=n_asked,
            figures=figures,
            feature=feature,
            shape=shape,
        )

    match question:
        case LabelBins(oracle=oracle):
            return asked("label bin", oracle.name, values=oracle.k, size=oracle.size)
        case FeatureBins(oracle=oracle, feature=feature):
            return asked("feature bin", oracle.name, columns[feature], values=oracle.k, size=oracle.size)
        case ResidualQuestion(contrast=None):
            middle = question.surface.intercept
            low, high = (
                max(middle - question.half, label_range[0]),
                min(middle + question.half, label_range[1]),
            )
            return asked("label", question.mechanism.name, low=low, high=high)
        case ResidualQuestion(contrast=contrast):
            assert contrast is not None
            name, half = columns[contrast.feature], question.half
            return asked("residual", question.mechanism.name, name, contrast.shape, low=-half, high=half)
        case LabelQuestion(low=low, high=high):
            return asked("label", question.mechanism.name, low=low, high=high)
        case CellsQuestion(partition=partition, mechanism=mechanism):
            return asked("cell", mechanism.name, cells=partition.n_cells)
        case _:
            raise TypeError(f"{question.kind}: nothing is known of such a question")
