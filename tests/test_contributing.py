"""What docs/explanation/architecture.md and CONTRIBUTING.md say is so: tables are drawn from the code, files are
there, examples run."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from ldptree.baselines import BASELINES
from ldptree.mechanisms import CHOICES, MECHANISMS
from ldptree.mechanisms.oracles import ORACLES
from ldptree_benchmark.laws import LAWS
from ldptree_benchmark.learners import LEARNERS
from schemas.dataset import DatasetSpec
from schemas.tables import PrivacyConfig
from tasks.page.render import SECTIONS
from tasks.step import REGISTERED

ROOT = Path(__file__).parents[1]
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"
EXAMPLES = re.findall(
    r"\*\*(An? [^*]+)\*\*:.*?\n```(\w+)\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL
)
MOST_FILES_OF_A_WALK = 30


def test_the_tables_of_the_architecture_are_not_stale(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    draw = importlib.import_module("draw_architecture")
    text = ARCHITECTURE.read_text()
    assert draw.drawn(text) == text, "run: python docs/draw_architecture.py"


def test_the_reference_is_told_from_the_code(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    pages = importlib.import_module("write_reference").written()
    stale = [path.name for path, text in pages.items() if path.read_text() != text]
    assert stale == [], "run: make reference"
    keys = re.findall(
        r"^\| `([\w.]+)` \|[^|]*\| *\|", pages[ROOT / "docs" / "reference" / "configuration.md"], re.MULTILINE
    )
    assert keys == [], "a key of a configuration needs a docstring below it"


def test_the_pages_of_what_was_measured_are_written_from_their_data(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    pages = importlib.import_module("write_measured").written()
    stale = [path.name for path, text in pages.items() if not path.exists() or path.read_text() != text]
    assert stale == [], "run: make reference"
    without_data = {path.name for path in (ROOT / "docs" / "measured").glob("*.md")} - {p.name for p in pages}
    assert without_data <= {"correction.md"}


def test_tables_of_results_may_be_tidy_or_as_a_script_printed_them(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    measured = importlib.import_module("write_measured")
    printed = measured.Table(csv="| set | eps 1 |\n|---|---|\n| a \\| b | 0.61 |\n")
    assert measured.cells_of(printed, tmp_path) == [["set", "eps 1"], ["a | b", "0.61"]]
    (tmp_path / "scores.csv").write_text(
        "set,method,parameters,eps,score,spread\nwine,lpct,,1,0.61,0.01\nwine,lpct,,4,0.66,\nwine,public,,1,0.6,\n"
    )
    rows = measured.cells_of(measured.Table(tidy="scores.csv"), tmp_path)
    assert rows == [
        ["set", "method", "eps 1", "eps 4"],
        ["wine", "lpct", "0.61 ± 0.01", "0.66"],
        ["wine", "public", "0.6", ""],
    ]


def test_decimals_of_a_column_of_results_align_and_no_figure_gets_a_digit_that_others_lack(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    align = importlib.import_module("write_measured").align
    assert align(["0.617 ± 0.01", "[0.61 ± 0.02]", "0.6 ± 0.02"]) == [
        "0.617 ± 0.01",
        "[0.610 ± 0.02]",
        "0.600 ± 0.02",
    ]
    assert align(["0.586 to 0.68", "0.71 to 0.991"]) == ["0.586 to 0.680", "0.710 to 0.991"]
    for kept in (
        ["0.617", "7.36", "12.4"],
        ["0.5", "1", "0.25"],
        ["16,735", "388"],
        ["0.61", "-", "0.617"],
        [],
    ):
        assert align(kept) == kept


def test_the_files_that_the_architecture_names_are_there():
    named = set(re.findall(r"`([\w/.-]+/[\w.-]+\.(?:py|md|toml))`", ARCHITECTURE.read_text()))
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_one_row_walks_through_few_files():
    walk = ARCHITECTURE.read_text().partition("## One row's walk")[2].partition("\n## ")[0]
    assert 10 < len(set(re.findall(r"`([\w/]+\.py)`", walk))) <= MOST_FILES_OF_A_WALK


@pytest.mark.parametrize(("title", "language", "code"), EXAMPLES, ids=[title for title, *_ in EXAMPLES])
def test_an_example_of_what_can_be_added_runs(title, language, code, monkeypatch):
    if language == "toml":
        assert DatasetSpec.model_validate(tomllib.loads(code)).name
        return
    registries = (ORACLES, MECHANISMS, BASELINES, LEARNERS, LAWS, REGISTERED, SECTIONS)
    before = [dict(registry) for registry in registries]
    monkeypatch.setitem(sys.modules, "example", importlib.util.module_from_spec(_spec()))
    try:
        exec(compile(code, "CONTRIBUTING.md", "exec"), sys.modules["example"].__dict__)
        assert [dict(registry) for registry in registries] != before
    finally:
        for registry, kept in zip(registries, before, strict=True):
            registry.clear()
            registry.update(kept)


def _spec():
    return importlib.machinery.ModuleSpec("example", None)


def test_there_is_an_example_of_everything_that_is_one_file_and_one_line():
    assert [title for title, *_ in EXAMPLES] == [
        "A data set", "A frequency oracle", "A mechanism", "A baseline", "A method of the benchmark",
        "A law of the benchmark", "A step", "A section of the page",
    ]  # fmt: skip


def test_a_configuration_may_name_every_mechanism_there_is():
    assert set(get_args(PrivacyConfig.model_fields["mechanism"].annotation)) == set(CHOICES)


def test_a_table_is_drawn_with_a_dot_for_a_figure_and_a_bar_for_a_range(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    measured = importlib.import_module("write_measured")
    rows = [["case", "people", "80 %", "came out"], ["a", "10", "1 to 3", "2 ± 0.5"], ["b", "20", "", "-"]]
    picture = measured.Picture(result="", columns=("80 %", "came out"), of="people")
    svg = measured.draw_table(rows, picture)
    at = re.findall(r'class="range" x1="([0-9.]+)" x2="([0-9.]+)"|class="dot" cx="([0-9.]+)"', svg)
    (left, right), dot = [float(x) for x in at[-2][:2]], float(at[-1][2])
    assert left < dot < right
    assert dot == pytest.approx((left + right) / 2, abs=0.1)
    assert ">a</text>" in svg
    assert ">b</text>" not in svg  # it has no figure
