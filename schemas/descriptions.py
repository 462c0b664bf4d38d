"""What is written below each key of a table in its class, as the reference and the form of a deployment show it. It is read from
the source, and only when it is asked for: a run needs none of it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache


def describe_key(table: type, key: str) -> str:
    """What a class, or the one that it inherits the key from, says of a key; "" where there is nothing, or no source."""
    texts = (_read_module(one.__module__).get(one.__name__, {}).get(key) for one in table.__mro__)
    return next(filter(None, texts), "")


@cache
def _read_module(name: str) -> dict[str, dict[str, str]]:
    """The texts below the fields of each class of a module."""
    try:
        source = inspect.getsource(sys.modules[name])
    except (OSError, TypeError):
        return {}
    classes = (one for one in ast.parse(source).body if isinstance(one, ast.ClassDef))
    return {one.name: _read_class(one) for one in classes}


def _read_class(body: ast.ClassDef) -> dict[str, str]:
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=key)),
                ast.Expr(value=ast.Constant(value=str(below))),
            ):
                found[key] = " ".join(below.split())
    return found
