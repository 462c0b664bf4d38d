"""What every table of a configuration is: frozen, strict, no key that nobody declared; and the numbers that several share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict


def not_bool(value: object) -> object:
    """Raises ValueError on true and false."""
    if isinstance(value, bool):
        raise ValueError("true and false are not numbers")
    return value


def _share(value: float) -> float:
    if not 0.0 < value < 1.0:
        raise ValueError(f"the share of epsilon that the cell gets lies between 0 and 1, got {value!r}")
    return value


Share = Annotated[float, BeforeValidator(not_bool), AfterValidator(_share)]


class Table(BaseModel):
    """One table of the file: frozen, no key that nobody declared, no text taken for a number or a truth."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
