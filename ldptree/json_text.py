"""JSON of protocols, reports and models, read strictly: what two readers may understand differently is refused.

What lives here: text to plain values. What does not: which fields there are, and of which types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ldptree.errors import DataError, LdptreeError

MARK = "\ufeff"
_SURROGATE = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")


def read(
    text: str | bytes,
    *,
    of: str,
    remedy: str = "",
    hint: str = "",
    error: type[LdptreeError] = DataError,
    parse_float: Callable[[str], float] | None = None,
) -> Any:
    """The plain values in a text.

    Args:
        text: JSON; bytes are UTF-8. A byte-order mark before it, which Windows editors write, is passed over.
        of: what a message calls it.
        remedy: what a message says to do.
        hint: what it says in place of that where the text is not JSON at all.
        error: what is raised.
        parse_float: of numbers with a point or an exponent; None: `float`. An OverflowError of it is not caught.

    Raises:
        LdptreeError: `error`, where the text is none or not JSON, an object has a key twice, or NaN, an infinity or half a
            character stands in it.
    """
    if not isinstance(text, str | bytes | bytearray):
        raise error(f"{of}: a {type(text).__name__} where its text is needed")
    try:
        plain = text if isinstance(text, str) else text.decode()
        found = json.loads(
            plain.removeprefix(MARK),
            parse_constant=_no_constant,
            parse_float=parse_float,
            object_pairs_hook=_each_once,
        )
        if _SURROGATE.search(plain):
            _check_characters(found)
        return found
    except _NotStrictError as fault:
        what, advice = str(fault), remedy
    except (ValueError, RecursionError):
        what, advice = "not JSON", hint or remedy
    raise error(f"{of}: {what}" + (f"; {advice}" if advice else ""))


class _NotStrictError(ValueError):
    """What is wrong with a text that `json.loads` would read: half a sentence."""


def _each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _NotStrictError(f"the key {_twice(name for name, _ in pairs)} stands twice in it")
    return found


def _twice(names: Iterable[str]) -> str:
    """The first name that was there before, as JSON has it."""
    seen: set[str] = set()
    twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    return json.dumps(twice[:40])


def _check_characters(value: Any) -> None:
    """Raises where half of a surrogate pair stands alone: no program can print or store it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _NotStrictError("a text in it holds half a character") from None


def _no_constant(name: str) -> float:
    raise _NotStrictError(f"not JSON, {name} is no number there")
