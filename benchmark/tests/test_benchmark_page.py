"""The report and the page of the benchmark."""

import math
from dataclasses import replace

from small_suite import score, scored, suite_of

from ldptree_benchmark.learners import LEARNERS
from ldptree_benchmark.results.page import render_benchmark
from ldptree_benchmark.results.report import Making, write_report
from ldptree_benchmark.results.tables import Facts, Sets, format_difference, tabulate_printed
from ldptree_benchmark.suite import load_suite, read_printed
from storage.store import Store

COMMAND = "ldptree benchmark small"
SUITE = """title = "small"
epsilons = [1, 4]
repetitions = 1
[laws.pair]
law = "lpct-pair"
parameters = { gamma = 0.5, n_public = 50, n_private = 300, n_test = 200 }
[methods]
line = { learner = "public_line" }
majority = { learner = "majority" }
lpct = { learner = "lpct" }
"""
CLAIMS = """from ldptree_benchmark.results.claims import Claims
claims = Claims()
@claims(1, says="wins <b>")
def _(s):
    assert s.show(s.mean("line")) >= 0.7
"""
MADE = Making(command=COMMAND, seconds=90.0, tasks=8, n_reused=3)


def test_a_report_has_every_cell_its_claims_and_a_page_that_loads_nothing(tmp_path):
    import polars as pl

    (tmp_path / "small.toml").write_text(SUITE)
    (tmp_path / "small.py").write_text(CLAIMS)
    suite = load_suite(str(tmp_path / "small.toml"))
    values = {"pair": {name: [0.6, 0.7] for name in suite.methods}}
    found, _ = scored(suite, values)
    found[-1] = replace(found[-1], score=math.nan, reason="it <i>broke</i>")
    leaks = {"pair": {"copies": 0.25, "public_copies": 0.5, "decides": "", "parts": [1, 2, 3], "features": 2}}
    sets = Sets(leaks=leaks, missing={})

    def write(folder):
        return write_report(folder, suite, found, sets, printed=None, is_paper=False, making=MADE)

    summary = write(tmp_path / "out")
    table = pl.read_parquet(summary["results"])
    assert table.height == len(found) == summary["cells"]
    assert table["reason"].to_list().count("it <i>broke</i>") == summary["failed"] == 1
    assert summary["claims"][0]["held"] is False
    page = (tmp_path / "out" / "results.html").read_text()
    assert "25.0 %" in page
    assert "pair (25 % copies)" in page, "copies stand beside the scores"
    assert str(MADE) in page
    assert summary["methods_without_a_score"] == []
    assert summary["leaks"] == {"pair": "25 % copies"}
    assert "Not held:" in page
    assert "it &lt;i&gt;broke&lt;/i&gt;" in page
    assert not any(mark in page for mark in ("<script", "http://", "https://", "<i>broke"))
    again = write(tmp_path / "two")
    assert (tmp_path / "two" / "results.html").read_text() == page
    assert again["claims"] == summary["claims"]


def test_the_page_says_where_parameters_were_picked_on_test_rows(tmp_path):
    suite = suite_of(repetitions=1)
    found, scores = scored(suite, {"pair": {"majority": [0.5, 0.5], "line": [0.6, 0.6]}})
    facts = {"scores": scores, "sets": Sets(leaks={}, missing={}), "claims": (), "printed": None}
    assert "picked on the rows that are scored" in render_benchmark(Facts(**facts, is_paper=True), found, "")
    assert format_difference(Facts(**facts, is_paper=True), -0.0001) == "+0.0 points"
    assert "picked on the rows that are scored" not in render_benchmark(
        Facts(**facts, is_paper=False), found, ""
    )


def test_the_page_of_results_is_what_the_docs_read(tmp_path):
    import tomllib

    suite = suite_of(repetitions=1, title='a "title"')
    found, _ = scored(suite, {"pair": {"majority": [0.5, 0.5], "line": [0.6, 0.6]}})
    write_report(
        tmp_path / "out",
        suite,
        found,
        Sets(leaks={}, missing={}),
        printed=None,
        is_paper=False,
        making=MADE,
    )
    (result,) = tomllib.loads((tmp_path / "out" / "results.toml").read_text())["results"]
    assert result["title"] == 'a "title"'
    assert result["command"] == COMMAND
    assert "in 1.5 minutes, 3 of 8 tasks had been done before" in result["note"]
    assert result["tables"]


def test_seconds_are_compared_with_a_papers_as_multiples_of_one_method(tmp_path):
    suite = suite_of(
        measure="seconds", relative_to="line", repetitions=1, epsilons=[2.0],
        printed={
            "table": "lpct-table-3", "is_relative": True,
            "datasets": {"pair": "Census"}, "methods": {"line": "CT-W", "majority": "PSGD-L"},
        },
    )  # fmt: skip
    _, timed = score(Store(tmp_path / "work"), suite)
    assert [one.score for one in timed] == [one.seconds for one in timed]
    found, scores = scored(suite, {"pair": {"line": [0.2], "majority": [0.5]}})
    facts = {"scores": scores, "sets": Sets(leaks={}, missing={}), "claims": (), "is_paper": False}
    (table,) = tabulate_printed(Facts(**facts, printed=read_printed("lpct-table-3")))
    assert table.title.endswith("Table 3, times CT-W, epsilon 2")
    assert [row[3:] for row in table.rows] == [("1", "1", "+0"), ("33.3", "2.5", "+30.8")]
    assert "Seconds against epsilon" in render_benchmark(Facts(**facts, printed=None), found, "")


def test_every_learner_has_a_title_and_says_what_it_reads():
    assert {one.reads for one in LEARNERS.values()} == {"reports", "public rows", "private rows"}
    assert all(one.title for one in LEARNERS.values())
