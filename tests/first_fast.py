"""Parameters that promise the same of many cases: the fast suite takes the first, the slow one the others."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest


def first_fast(*values: Any, fast: Collection[Any] = ()) -> list[Any]:
    """The values; all but the first are slow, or all but those that are `fast`."""
    kept = fast or values[:1]
    arguments = [(one, one if isinstance(one, tuple) else (one,)) for one in values]
    return [pytest.param(*each, marks=() if one in kept else pytest.mark.slow) for one, each in arguments]
