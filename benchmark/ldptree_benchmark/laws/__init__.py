"""Laws of the papers' experiments, by which data sets are drawn anew for each repetition from its seed."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from ldptree.errors import ConfigError
from ldptree_benchmark.laws.correction import draw_hidden_column, draw_shifted_number
from ldptree_benchmark.laws.lpct import draw_four_sectors, draw_lpct_pair, draw_sloped_share
from ldptree_benchmark.laws.numbers import draw_lpdt_sine, draw_steps
from ldptree_benchmark.laws.public_features import draw_interaction, draw_sines, draw_two_levels, draw_useless
from ldptree_benchmark.rows import LabelledRows
from ldptree_benchmark.suite import Law, check_one_of

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
    """Raise ConfigError if a suite's law is not known, or is not called with its parameters."""
    where = f"laws.{name}"
    try:
        check_one_of(law.law, LAWS, f"{where}.law", "law")
        known = {
            key: parameter for key, parameter in signature(LAWS[law.law]).parameters.items() if key != "seed"
        }
        for key in law.parameters:
            check_one_of(key, known, f"{where}.parameters", f"parameter of {law.law}")
        for key, parameter in known.items():
            if parameter.default is parameter.empty and key not in law.parameters:
                raise ValueError(f"{where}.parameters: {law.law} needs {key}")
    except ValueError as fault:
        raise ConfigError(str(fault)) from None


def draw_law(name: str, parameters: dict[str, Any], seed: list[int]) -> LabelledRows:
    """Draw once from a law that was checked. Raises ConfigError if the value of a parameter cannot be."""
    try:
        return LAWS[name](seed, **parameters)
    except (TypeError, ValueError) as fault:
        shown = ", ".join(f"{key} = {value!r}" for key, value in parameters.items())
        raise ConfigError(f"law {name} cannot be drawn with {shown} ({fault})") from None
