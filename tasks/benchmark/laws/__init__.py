"""Data sets that are drawn anew for each repetition: the laws of the papers' experiments. The same seed, the same draw."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from ldptree.errors import ConfigError
from schemas.benchmark.suite import Law, check_one_of
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


def check_law(name: str, law: Law) -> None:
    """Raises ConfigError: a law of a suite is not known, or is not called with its parameters."""
    where = f"laws.{name}"
    try:
        check_one_of(law.law, LAWS, f"{where}.law", "law")
        known = {key: one for key, one in signature(LAWS[law.law]).parameters.items() if key != "seed"}
        for key in law.parameters:
            check_one_of(key, known, f"{where}.parameters", f"parameter of {law.law}")
        for key, one in known.items():
            if one.default is one.empty and key not in law.parameters:
                raise ValueError(f"{where}.parameters: {law.law} needs {key}")
    except ValueError as fault:
        raise ConfigError(str(fault)) from None


def draw_law(name: str, parameters: dict[str, Any], seed: list[int]) -> LabelledRows:
    """One draw of a law that was checked. Raises ConfigError: the value of a parameter cannot be."""
    try:
        return LAWS[name](seed, **parameters)
    except (TypeError, ValueError) as fault:
        shown = ", ".join(f"{key} = {value!r}" for key, value in parameters.items())
        raise ConfigError(f"law {name} cannot be drawn with {shown} ({fault})") from None
