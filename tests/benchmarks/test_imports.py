"""The scripts in benchmarks/ use the product by its public names, and those are there."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("ldptree", "schemas", "storage", "tasks", "flows")


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


@pytest.mark.parametrize("script", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_a_script_imports_public_names_that_exist(script):
    names = set(imported(script))
    assert [one for one in names if one[1].startswith("_")] == []
    assert [one for one in names if not is_there(*one)] == []
