"""docs/explanation/privacy.md, statement by statement: each is kept by a test that is named here, or says itself
that nothing keeps it.

`privacy_page.toml` has each by the words it begins with: the tests that keep it, or why it has none. Who changes the
page says there which test keeps the new statement.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from ldptree.mechanisms import mechanism_for, number_mechanism_for
from ldptree.mechanisms.oracles import ORACLES

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "explanation" / "privacy.md"
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
    texts = [path.read_text() for path in HERE.rglob("test_*.py")]
    return {name for text in texts for name in re.findall(r"^def (test_\w+)\(", text, re.MULTILINE)}


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


def rows_of_tables(text: str, n_columns: int) -> dict[str, list[str]]:
    """The cells of every row of so many columns, by its first cell."""
    rows = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return {row[0]: row[1:] for row in rows if len(row) == n_columns}


def test_the_tables_of_the_page_have_the_mechanisms_figures():
    text = PAGE.read_text()
    forces = rows_of_tables(text, 8)
    for name in ("grr, K = 9", "oue", "sue", "ss, K = 9", "olh", "randomized_response", "signed_subset, L = 4",
                 "discrete_laplace, C = 2", "number_response"):  # fmt: skip
        for epsilon, figure in zip((0.5, 1.0, 2.0, 4.0), forces[name][2:6], strict=True):
            kind = name.split(",")[0]
            is_number = kind == "number_response"
            made = (
                number_mechanism_for("randomized_response", epsilon, 4)
                if is_number
                else mechanism_for(kind, epsilon, 4, 2)
            )
            half = 0.5 * 10.0 ** -len(figure.partition(".")[2])
            assert made.poisoning_bound(1000).one == pytest.approx(
                float(figure.replace(",", "")), abs=1.02 * half
            ), name
    noise = {name: row[1] for name, row in rows_of_tables(text, 3).items()}
    for name in ("discrete_laplace", "randomized_response", "laplace", "joint, oue", "signed_subset"):
        found = mechanism_for(name.split()[-1], 1.0, 237, 2).margin_variance_per_holder()
        assert f"{found:.{len(noise[name].partition('.')[2])}f}" == noise[name]
    saved = []
    for k, epsilon in ((7, 0.5), (9, 1.0), (17, 2.0), (21, 2.0), (129, 4.0)):
        ss, *others = (ORACLES[name].for_values(epsilon, k).mean_variance() for name in ("ss", "grr", "oue"))
        saved.append(f"{1 - ss / min(others):.0%}".replace("%", " %"))
    said = "({} less at K 7 and epsilon 0.5, {} at K 9 and 1, {} at K 17 and {} at K 21 and 2, {} at K 129 and 4)"
    assert said.format(*saved) in text


def test_the_quickstarts_dishonest_holders_move_what_the_page_says():
    n, n_cells = 75_949, 8
    bound = mechanism_for("signed_subset", 2.0, n_cells, 2).poisoning_bound(n)
    moved = int(bound.one_percent)
    text = re.sub(r"\s+", " ", PAGE.read_text())
    assert f"{-(-n // 100):,} who agree, move a total by up to {moved:,} people" in text
    assert (
        f"has {n // n_cells:,} on average: they can move its mean error by up to {200 * moved * n_cells // n} points, "
        f"in {bound.totals_at_once} cells at once" in text
    )
