"""Data sets that are drawn anew for each repetition: the laws of the papers' experiments. The same seed, the same draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldptree.errors import ConfigError
from tasks.benchmark.laws.correction import draw_hidden_column, draw_shifted_number
from tasks.benchmark.laws.lpct import draw_four_sectors, draw_lpct_pair, draw_sloped_share
from tasks.benchmark.laws.numbers import draw_lpdt_sine, draw_steps
from tasks.benchmark.laws.public_features import draw_interaction, draw_sines, draw_two_levels, draw_useless
from tasks.benchmark.rows import LabelledRows

LAWS: dict[str, Callable[..., LabelledRows]] = {
    "lpct-pair": draw_lpct_pair,
    "sloped-share": draw_sloped_share,
    "four-sectors": draw_four_sectors,
    "hidden-column": draw_hidden_column,
    "shifted-number": draw_shifted_number,
    "steps": draw_steps,
    "lpdt-sine": draw_lpdt_sine,
    "sines": draw_sines,
    "interaction": draw_interaction,
    "two-levels": draw_two_levels,
    "useless-features": draw_useless,
}
"""Every law by its name."""


def law_of(name: str) -> Callable[..., LabelledRows]:
    """A law by its name. Raises ConfigError."""
    if name not in LAWS:
        raise ConfigError(f"law: {name} is not known; there are: {', '.join(LAWS)}")
    return LAWS[name]


def draw_law(name: str, parameters: dict[str, Any], seed: list[int]) -> LabelledRows:
    """One draw of a law. Raises ConfigError: it is not known, or it has no such parameter."""
    law = law_of(name)
    try:
        return law(seed, **parameters)
    except TypeError as fault:
        raise ConfigError(f"law {name}: {str(fault).split(') ')[-1]}") from None
