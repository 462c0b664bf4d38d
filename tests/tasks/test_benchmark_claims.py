"""The statistics of the benchmark are those of the textbooks, and its claims are checked."""

import math
from dataclasses import replace

import numpy as np
import pytest
from small_suite import PAIR, scored, suite_of

from tasks.benchmark.claims import check_claims
from tasks.benchmark.ranks import adjust_by_holm, chance_of_splits, compare, critical_difference, rank_methods
from tasks.benchmark.results import Cell, Scores


def test_ranks_critical_difference_and_adjusted_chances_are_those_of_demsar_and_holm():
    means = np.array(
        [[0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569]]
    )  # two rows of Demsar's Table 6
    assert rank_methods(means, 1).tolist() == [[4, 3, 2, 1], [1, 2, 3, 4]]
    assert rank_methods(np.array([[0.5, 0.5, np.nan]]), 1).tolist() == [[1.5, 1.5, 3.0]]
    assert rank_methods(np.array([[2.0, 1.0]]), -1).tolist() == [[2, 1]]
    assert critical_difference(4, 14, 0.05) == pytest.approx(2.569 * math.sqrt(4 * 5 / (6 * 14)), abs=2e-3)
    assert adjust_by_holm([0.01, 0.04, math.nan, 0.03]) == pytest.approx(
        [0.03, 0.06, math.nan, 0.06], nan_ok=True
    )


def test_a_method_is_compared_by_wilcoxon_over_sets_and_by_corrected_t_within_one():
    rng = np.random.default_rng(0)
    means = rng.random((12, 1)) + np.array([[0.1, 0.0, 0.1]]) + 0.001 * rng.normal(size=(12, 3))
    better, alike = compare(means, ["ours", "worse", "alike"], 0, 1)
    assert (better.wins, better.losses) == (12, 0)
    assert better.chance < 0.01 < alike.chance
    assert math.isnan(compare(means[:4], ["ours", "worse"], 0, 1)[0].chance)
    differences = rng.normal(0.02, 0.01, 10)
    t = differences.mean() / math.sqrt(differences.var(ddof=1) * (1 / 10 + 0.25))
    from scipy.stats import t as student

    assert chance_of_splits(differences, 0.2) == pytest.approx(2 * student.sf(abs(t), 9))


ALONG = {"datasets": ["one", "two"]}
CLAIMS = [
    ({"measure": "behind the best", "at_most": 0.0}, True),
    ({"measure": "behind the best", "method": "line", "at_most": 0.19}, False),
    ({"measure": "last set over first", "at_most": 0.75} | ALONG, True),
    ({"measure": "last set over first", "than_datasets": ["two", "one"], "at_most": -0.6} | ALONG, False),
    ({"measure": "score", "at_least": 0.65}, True),
    ({"measure": "score", "at_least": 0.75}, False),
    ({"measure": "difference", "than": "line", "at_least": 0.05}, True),
    ({"measure": "difference", "than": "line", "at_least": 0.15}, False),
    ({"measure": "ratio", "than": "line", "at_most": 1.2}, True),
    ({"measure": "ratio", "than": "line", "at_most": 1.1}, False),
    ({"measure": "best rank sum"}, True),
    ({"measure": "step over sets", "datasets": ["one", "two"], "at_most": -0.15}, True),
    ({"measure": "step over sets", "datasets": ["two", "one"], "at_most": -0.15}, False),
    ({"measure": "step over epsilons", "epsilons": [1.0, 4.0], "at_least": 0.0}, True),
    ({"measure": "step over epsilons", "epsilons": [1.0, 4.0], "at_least": 0.1}, False),
]


@pytest.mark.parametrize(("claim", "held"), CLAIMS)
def test_a_claim_holds_or_not_by_what_was_found(claim, held):
    laws = {"one": PAIR.model_dump(), "two": PAIR.model_dump()}
    suite = suite_of(
        laws=laws, epsilons=[1.0, 4.0], repetitions=1,
        claims=[{"says": "so", "method": "majority", "epsilons": [1.0]} | claim],
    )  # fmt: skip
    values = {
        "one": {"majority": [0.8, 0.8], "line": [0.6, 0.6]},
        "two": {"majority": [0.6, 0.7], "line": [0.6, 0.6]},
    }
    (checked,) = check_claims(scored(suite, values)[1])
    assert checked.held is held
    values["two"]["majority"] = [math.nan, math.nan]
    assert check_claims(scored(suite, values)[1])[0].held is None


def test_a_score_of_nothing_is_a_score_and_no_ratio_to_it_is_measured():
    claims = [
        {"says": "low", "method": "line", "epsilons": [1.0], "at_most": 0.0},
        {"says": "many times", "method": "majority", "than": "line", "measure": "ratio", "epsilons": [1.0], "at_least": 1},
    ]  # fmt: skip
    suite = suite_of(epsilons=[1.0], repetitions=1, claims=claims)
    values = {"pair": {"majority": [0.8], "line": [0.0]}}
    assert [one.held for one in check_claims(scored(suite, values)[1])] == [True, None]


def test_sets_on_which_a_method_is_better_than_everything_printed_are_counted():
    laws = {name: PAIR.model_dump() for name in ("one", "two")}
    claim = {
        "says": "so", "method": "majority", "measure": "sets better than printed", "among": ["majority", "line"],
        "datasets": ["one", "two"], "epsilons": [1.0], "at_least": 2,
    }  # fmt: skip
    printed = {"table": "t", "datasets": {"one": "A", "two": "B"}, "methods": {"majority": "M", "line": "L"}}
    suite = suite_of(laws=laws, epsilons=[1.0], repetitions=1, claims=[claim], printed=printed)
    table = {"columns": ["M", "L"], "scale": 1, "epsilon": {"1": {"A": [0.1, math.nan], "B": [0.5, 0.7]}}}
    values = {"one": {"majority": [0.2], "line": [0.0]}, "two": {"majority": [0.6], "line": [0.9]}}
    (checked,) = check_claims(scored(suite, values)[1], table)
    assert (checked.held, checked.found) == (False, "1.0000 at eps 1")
    values["two"]["majority"] = [0.8]
    assert check_claims(scored(suite, values)[1], table)[0].held


def test_a_claim_on_a_column_is_about_its_mean_and_none_where_it_was_not_measured():
    claims = [
        {"says": "seldom", "method": "majority", "measure": "alarm", "epsilons": [1.0], "at_most": 0.25},
        {"says": "held", "method": "majority", "measure": "covered", "epsilons": [1.0], "at_least": 0.9},
    ]
    methods = {"majority": {"learner": "lpct"}}
    suite = suite_of(claims=claims, methods=methods, epsilons=[1.0], repetitions=4)
    found = [
        Cell(
            dataset="pair", method="majority", candidate={}, epsilon=1.0, repetition=number, score=0.5, seconds=1.0,
            process_peak_mib=1.0, columns={"alarm": float(number == 3)},
        )
        for number in range(4)
    ]  # fmt: skip
    checked = check_claims(Scores.of(suite, found))
    assert [one.held for one in checked] == [True, None]
    assert checked[0].found == "0.2500 at eps 1"
    found[0] = replace(found[0], columns={"alarm": 1.0})
    assert check_claims(Scores.of(suite, found))[0].held is False
