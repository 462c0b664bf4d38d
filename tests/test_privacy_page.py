"""docs/privacy.md, statement by statement: each is kept by a test that is named here, or says itself that nothing keeps it.

`privacy_page.toml` has each by the words it begins with: the tests that keep it, or why it has none. Who changes the
page says there which test keeps the new statement.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "privacy.md"
KEPT = tomllib.loads((HERE / "privacy_page.toml").read_text())


def statements(text: str) -> list[str]:
    """Sentences, list items and rows of tables in their order, without code and headings."""
    text = re.sub(r"^(    .*\n)+", "\n", text, flags=re.M)
    found: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.strip("\n").split("\n") if line and not line.startswith("#")]
        if lines and lines[0].startswith("|"):
            found += lines[2:]
            continue
        items: list[str] = []
        for line in lines:
            if line.startswith("- ") or not items:
                items.append(line.removeprefix("- "))
            else:
                items[-1] += " " + line.strip()
        for item in items:
            found += re.split(r"(?<=[.:])\s+(?=[A-Z`*])", re.sub(r"\s+", " ", item).strip())
    return found


def names_of_tests() -> set[str]:
    trees = [ast.parse(path.read_text()) for path in HERE.rglob("test_*.py")]
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_statement_of_the_page_says_which_test_keeps_it():
    said, keys = statements(PAGE.read_text()), list(KEPT["kept"]) + list(KEPT["stated"])
    begun = {one: [key for key in keys if one.startswith(key)] for one in said}
    assert [one for one, found in begun.items() if len(found) != 1] == []
    used = Counter(key for found in begun.values() for key in found)
    assert [key for key in keys if used[key] != 1] == []


def test_every_test_that_the_page_rests_on_is_there():
    known = names_of_tests()
    missing = {key: sorted(set(names) - known) for key, names in KEPT["kept"].items() if set(names) - known}
    assert missing == {}
    assert all(KEPT["kept"].values())


def test_what_no_test_keeps_has_a_reason():
    assert all(KEPT["stated"].values())
