"""The benchmark computes a score once: other code or another question is another score, and a failing cell stops no other."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_suite import score, scored, suite_of

from ldptree_benchmark import code
from ldptree_benchmark.learners import LEARNERS, reads_of
from ldptree_benchmark.learners.statements import Stated
from ldptree_benchmark.results.scores import Scores
from ldptree_benchmark.results.tables import Facts, Sets, tabulate_scores, tabulate_summary
from ldptree_benchmark.rows import TEST
from ldptree_benchmark.suite import Method
from storage.store import Store


def test_a_score_is_computed_once_and_a_new_method_computes_its_own_cells_alone(tmp_path):
    store = Store(tmp_path / "work")
    first, found = score(store, suite_of())
    assert len(first.computed) == len(found) == 4  # no method reports: one cell for both epsilons
    again, same = score(store, suite_of())
    assert (again.computed, again.asked) == ([], 0)  # not even a task
    assert same == found
    methods = {
        "majority": {"learner": "majority"},
        "line": {"learner": "public_line"},
        "tree": {"learner": "public_tree"},
    }
    more, _ = score(store, suite_of(methods=methods))
    assert more.computed == ["tree on pair, 1", "tree on pair, 2"]


def test_a_cell_that_fails_says_why_and_the_others_stand(tmp_path):
    store = Store(tmp_path / "work")
    methods = {"line": {"learner": "public_line"}, "lpct": {"learner": "lpct", "settings": {"depth": -1}}}
    _, found = score(store, suite_of(methods=methods))
    assert [one.reason == "" for one in found if one.method == "line"] == [True, True]
    failed = [one for one in found if one.method == "lpct"]
    assert len(failed) == 4
    assert all(math.isnan(one.score) and "depth" in one.reason for one in failed)
    repaired, found = score(store, suite_of(methods={"lpct": {"learner": "lpct", "settings": {"depth": 2}}}))
    assert len(repaired.computed) == 4
    assert not any(one.reason for one in found)


def test_other_code_is_another_score(tmp_path, monkeypatch):
    store = Store(tmp_path / "work")
    score(store, suite_of())
    monkeypatch.setattr("ldptree_benchmark.flow.digest_code", lambda _: "other")
    assert len(score(store, suite_of())[0].computed) == 4


@pytest.mark.parametrize(
    ("learner", "module", "is_its_own"),
    [
        ("ct_q", "learners/answers.py", True),
        ("psgd_neural", "gradient/network.py", True),
        ("psgd_neural", "rivals/pglm.py", False),
        ("phist", "rivals/histograms.py", True),
        ("public_tree", "baselines/public.py", True),
        ("lpct_printed", "learners/code_partition.py", True),
        ("lpct", "learners/code_partition.py", False),
        ("lpct", "families/tree.py", True),
        ("lpct", "laws/correction.py", True),
        ("lpct", "benchmark/rows.py", True),
        ("lpct", "results/page.py", False),
    ],
)
def test_the_code_of_a_score_is_what_draws_splits_and_learns(monkeypatch, learner, module, is_its_own):
    """A changed line there makes another score; elsewhere, as in a new baseline, it does not."""
    before = code.digest_code.__wrapped__(learner)
    read = Path.read_bytes

    def changed(path):
        return read(path) + (b"\n# changed" if path.as_posix().endswith(module) else b"")

    monkeypatch.setattr(Path, "read_bytes", changed)
    assert (code.digest_code.__wrapped__(learner) != before) is is_its_own


def test_a_method_that_fails_everywhere_takes_nothing_from_the_others():
    suite = suite_of(repetitions=1)
    values = {"pair": {"majority": [math.nan, math.nan], "line": [0.6, 0.7]}}
    _, scores = scored(suite, values)
    assert scores.is_whole.tolist() == [True]
    facts = Facts(scores=scores, sets=Sets(leaks={}, missing={}), claims=(), printed=None, is_paper=False)
    rows = {row[0]: row[2:] for row in tabulate_summary(facts).rows}
    assert rows[facts.titles[[*suite.methods].index("line")]] == ("60.0", "70.0", "1", "1")
    assert set(rows[facts.titles[[*suite.methods].index("majority")]]) == {"–"}


def test_the_best_is_one_that_keeps_privacy():
    methods = {"lpct": {"learner": "lpct"}, "all": {"learner": "ct_w"}}
    suite = suite_of(repetitions=1, methods=methods)
    _, scores = scored(suite, {"pair": {"lpct": [0.6, 0.6], "all": [0.9, 0.9]}})
    facts = Facts(scores=scores, sets=Sets(leaks={}, missing={}), claims=(), printed=None, is_paper=False)
    assert [row[1] for row in tabulate_scores(facts)[0].rows] == ["[60.0]", "90.0"]


@pytest.mark.parametrize(
    ("switches", "reads"),
    [
        ([], "reports"),
        (["code-splits", "fresh-reports"], "reports beyond epsilon"),
        (["fresh-reports", "true-counts"], "private rows"),
    ],
)
def test_a_switch_that_takes_privacy_away_is_no_report(switches, reads):
    method = Method.model_validate({"learner": "lpct_printed", "settings": {"switches": switches}})
    assert reads_of(method) == reads


def test_with_paper_every_candidate_is_tried_and_the_best_on_test_rows_is_shown(tmp_path):
    methods = {"tree": {"learner": "lpct", "settings": {"lam": 0.0}, "candidates": {"depth": [1, 3]}}}
    suite = suite_of(methods=methods, repetitions=1)
    _, found = score(Store(tmp_path / "work"), suite, paper=True)
    assert len(found) == 4
    scores = Scores.of(suite, found)
    for place, epsilon in enumerate(suite.epsilons):
        tried = {one.candidate["depth"]: one.score for one in found if one.epsilon == epsilon}
        assert scores.values[0, 0, place, 0] == max(tried.values())
        assert tried[scores.best["pair", "tree", epsilon].candidate["depth"]] == max(tried.values())


def test_seconds_that_a_kept_model_took_before_count_as_its_learners(tmp_path, monkeypatch):
    kept = replace(
        LEARNERS["majority"], answer=lambda trial: Stated(np.zeros(trial.rows.of(TEST).n), seconds_before=1e6)
    )
    monkeypatch.setitem(LEARNERS, "majority", kept)
    suite = suite_of(measure="seconds", methods={"majority": {"learner": "majority"}}, repetitions=1)
    _, (cell,) = score(Store(tmp_path / "work"), suite)
    assert cell.score >= 1e6 > cell.seconds


def test_seconds_may_be_those_of_numbers_and_a_law_may_have_no_public_rows(tmp_path):
    law = {"law": "lpdt-sine", "parameters": {"n_public": 0, "n_private": 200, "n_test": 50}}
    suite = suite_of(
        measure="seconds", label="number", laws={"sine": law}, methods={"tree": {"learner": "plain_tree"}}, repetitions=1,
        epsilons=[2.0],
    )  # fmt: skip
    _, (cell,) = score(Store(tmp_path / "work"), suite)
    assert cell.score == cell.seconds > 0
