"""Keys that are set, or taken away, at the prompt: KEY=VALUE laid over a configuration's plain values.

What lives here: the assignments. What does not: which keys and values there are (`config`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from ldptree.errors import ConfigError


def lay_over(raw: dict[str, Any], assignments: Sequence[str]) -> None:
    """Change nested dicts in place, one assignment after the other. A value is TOML, or a word that is meant as text.

    KEY= takes the key away, with all that is below it; an empty text is KEY="".

    Raises:
        ConfigError: no assignment, below a key that is no table, or there is no such key to be taken away.
    """
    for assignment in assignments:
        _lay_over(raw, assignment)


def with_remedy(fault: str, key: str, raw: dict[str, Any], assignments: Sequence[str]) -> str:
    """What is wrong with a key; where it ought to be left out and stands in the file, with the words that take it away."""
    keys = key.split(".")
    is_typed = any(_key_of(assignment)[: len(keys)] == keys for assignment in assignments)
    if is_typed or "leave it out" not in fault.lower() or not _has(raw, keys):
        return fault
    return f"{fault} (--set {key}= takes it away)"


def _lay_over(raw: dict[str, Any], assignment: str) -> None:
    keys, (_, equals, value) = _key_of(assignment), assignment.partition("=")
    if not equals or not all(keys):
        raise ConfigError(f"--set {assignment}: write KEY=VALUE, as in --set privacy.epsilon=2")
    is_taken = not value.strip()
    if is_taken and not _has(raw, keys):
        raise ConfigError(
            f"--set {assignment}: the configuration has no such key to take away; an empty text is "
            f"--set '{'.'.join(keys)}=\"\"'"
        )
    table = raw
    for part in keys[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {assignment}: {part} is a value, not a table")
    if is_taken:
        del table[keys[-1]]
    else:
        table[keys[-1]] = _read(value)


def _key_of(assignment: str) -> list[str]:
    return assignment.partition("=")[0].strip().split(".")


def _read(value: str) -> Any:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value.strip()  # an unquoted word is meant as text


def _has(raw: Any, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(raw, dict) or key not in raw:
            return False
        raw = raw[key]
    return True
