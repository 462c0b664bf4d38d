"""The timed scripts, and those that take pictures for the docs, use public names, and those that they use are there."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("ldptree", "schemas", "storage", "tasks", "flows", "ldptree_benchmark")
SCRIPTS = [
    *(ROOT / "benchmark" / "timed").glob("*.py"),
    *(ROOT / "docs" / f"{name}.py" for name in ("make_gallery", "picture_of_report")),
]


def imported(path):
    """(module, name) of everything that a script imports from the product."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PRODUCT:
            yield from ((node.module, alias.name) for alias in node.names)


def is_there(module, name):
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


@pytest.mark.parametrize("script", sorted(SCRIPTS), ids=lambda path: path.stem)
def test_a_script_imports_public_names_that_exist(script):
    names = set(imported(script))
    nodes = list(ast.walk(ast.parse(script.read_text())))
    from_anywhere = [alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert [name for name in from_anywhere if name.startswith("_")] == []
    attributes = [
        node for node in nodes if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr)
    ]
    assert [node.attr for node in attributes if getattr(node.value, "id", "") not in ("self", "cls")] == []
    assert [one for one in names if not is_there(*one)] == []
