"""One word for one idea: names in the code are those of docs/notation.md, and the private idiom of the first building is gone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("ldptree", "schemas", "storage", "tasks", "flows", "benchmarks")
IDIOM = re.compile(r"(?:^|_)(?:said|told|mended|mends?|mending)(?:_|$)", re.IGNORECASE)
LEFT = (
    "tasks/evaluate",
    "tasks/page/",
    "tasks/perturb.py",
    "tasks/report",
    "tasks/score_",
)
"""Where the idiom still is: this list only shrinks."""


def names_in(path):
    """Every name that a module makes or uses, its own among them."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text())):
        for key in ("name", "id", "arg", "attr"):
            if isinstance(name := getattr(node, key, None), str):
                yield name


@pytest.mark.parametrize("layer", LAYERS)
def test_no_name_is_of_the_private_idiom(layer):
    found = {
        str(path.relative_to(ROOT)): sorted(set(filter(IDIOM.search, names_in(path))))
        for path in (ROOT / layer).rglob("*.py")
        if not str(path.relative_to(ROOT)).startswith(LEFT)
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_the_glossary_names_files_that_are_there():
    named = re.findall(
        r"`((?:ldptree|schemas|storage|tasks|flows)/[\w/.]+)`", (ROOT / "docs/notation.md").read_text()
    )
    assert [name for name in named if not (ROOT / name).exists()] == []
