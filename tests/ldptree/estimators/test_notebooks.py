"""The notebooks of the docs: each estimator has one, and its cells still show what stands below them."""

from __future__ import annotations

import ast
import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from notebook_html import read_shown
from sklearn.base import ClassifierMixin, RegressorMixin

import ldptree

FOLDER = Path(__file__).parents[3] / "docs" / "notebooks"
NOTEBOOKS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.ipynb"))}
ESTIMATORS = [
    name
    for name in ldptree.__all__
    if isinstance(kind := getattr(ldptree, name), type) and issubclass(kind, ClassifierMixin | RegressorMixin)
]
MOST_BYTES = 25_000
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
WITHIN = {"rel": 0.02, "abs": 0.02}
"""How far a number may be from the one that is kept: another processor adds up in another order."""


def cells_of(name: str) -> list[dict[str, Any]]:
    return [cell for cell in NOTEBOOKS[name]["cells"] if cell["cell_type"] == "code"]


def run_cell(code: str, names: dict[str, Any]) -> list[str]:
    """What a cell prints, and the HTML of the value it ends in."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(StringIO()) as printed:
        exec(compile(tree, "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
    return [*filter(None, [printed.getvalue()]), *([] if value is None else [value._repr_html_()])]


def read_kept(outputs: list[dict[str, Any]]) -> list[str]:
    """The same as the notebook keeps it."""
    printed = "".join("".join(one["text"]) for one in outputs if one["output_type"] == "stream")
    values = [one["data"]["text/html"] for one in outputs if one["output_type"] == "execute_result"]
    return [*filter(None, [printed]), *("".join(one) for one in values)]


def words_and_numbers(shown: str) -> tuple[list[str], list[float]]:
    text = read_shown(shown) if shown.startswith("<") else shown
    return NUMBER.sub("#", text).split(), [float(one.replace(",", "")) for one in NUMBER.findall(text)]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_has_a_notebook(estimator):
    name = "-".join(re.findall(r"LPCT|LPDT|HistOfTree|[A-Z][a-z]+", estimator)).lower()
    assert f"ldptree.{estimator}(" in "".join("".join(cell["source"]) for cell in cells_of(name))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_cells_of_a_notebook_show_what_it_keeps(name):
    names: dict[str, Any] = {}
    for cell in cells_of(name):
        found, kept = run_cell("".join(cell["source"]), names), read_kept(cell["outputs"])
        assert len(found) == len(kept)
        for one, other in zip(found, kept, strict=True):
            (words, numbers), (kept_words, kept_numbers) = words_and_numbers(one), words_and_numbers(other)
            assert words == kept_words, "run: make notebooks"
            assert numbers == pytest.approx(kept_numbers, **WITHIN), "run: make notebooks"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_small_and_keeps_nothing_of_the_machine_that_ran_it(name):
    path = FOLDER / f"{name}.ipynb"
    assert path.stat().st_size < MOST_BYTES
    assert all(cell["metadata"] == {} for cell in NOTEBOOKS[name]["cells"])
    assert [cell["execution_count"] for cell in cells_of(name)] == [*range(1, len(cells_of(name)) + 1)]
    assert NOTEBOOKS[name]["metadata"]["language_info"] == {"name": "python"}
