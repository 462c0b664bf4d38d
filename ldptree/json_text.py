"""JSON of protocols, reports and models, read strictly: what two readers may understand differently is refused.

What lives here: text to plain values. What does not: which fields there are, and of which types.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ldptree.errors import DataError, LdptreeError

MARK = "\ufeff"


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
        LdptreeError: `error`, where the text is not JSON, an object has a key twice, or NaN or an infinity stands in it.
    """
    try:
        plain = text.decode() if isinstance(text, bytes | bytearray) else text
        return json.loads(
            plain.removeprefix(MARK),
            parse_constant=_no_constant,
            parse_float=parse_float,
            object_pairs_hook=_each_once,
        )
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
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise _NotStrictError(f"the key {json.dumps(twice)} stands twice in it")
    return found


def _no_constant(name: str) -> float:
    raise _NotStrictError(f"not JSON, {name} is no number there")
