"""Commands that take `--set KEY=VALUE` and explain it to those who type a key as an option or alone."""

from __future__ import annotations

import re
import shlex
from typing import Any

from typer.core import TyperCommand

ASSIGNMENT = r"[a-z_0-9]+(\.[a-z_0-9]+)*=.*"
"""A key and its value, as --set takes them."""


class CommandWithSettings(TyperCommand):
    """A command with the option `--set`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As any command does."""
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as fault:
            if hasattr(fault, "option_name") and hasattr(fault, "possibilities"):  # there is no such option
                self._say_how_it_is_set(fault, typed)
            elif bare := _find_bare(typed):  # more words than the command takes
                fault.message = f"{bare} sets a key: write --set {shlex.quote(bare)}"  # type: ignore[attr-defined]
            raise

    def _say_how_it_is_set(self, fault: Any, typed: list[str]) -> None:
        from schemas.config import suggest_key

        name = fault.option_name
        known = {option.lstrip("-") for parameter in self.params for option in parameter.opts}
        key = suggest_key(name.lstrip("-").replace("-", "_"), known)
        if not key or key in known:
            return
        _, *values = next(word for word in typed if word.partition("=")[0] == name).split("=", 1)
        values += typed[typed.index(name) + 1 :] if name in typed else []
        value = values[0] if values and not values[0].startswith("-") else "VALUE"
        fault.message += f". Write --set {shlex.quote(f'{key}={value}')}"
        fault.possibilities = None


def _find_bare(typed: list[str]) -> str:
    """The first word that sets a key without --set before it; "" where there is none."""
    pairs = zip(["", *typed], typed, strict=False)
    return next((word for before, word in pairs if before != "--set" and re.fullmatch(ASSIGNMENT, word)), "")
