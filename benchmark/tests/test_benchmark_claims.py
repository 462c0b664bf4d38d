"""The statistics of the benchmark are those of the textbooks, and its claims are checked."""

import math
from dataclasses import replace

import numpy as np
import pytest
from small_suite import PAIR, scored, suite_of

from ldptree.errors import ConfigError
from ldptree_benchmark.command import Asked, read_suite
from ldptree_benchmark.results.claims import Claims, check_claims, read_claims, try_claims
from ldptree_benchmark.results.ranks import (
    adjust_by_holm,
    chance_of_splits,
    compare,
    critical_difference,
    rank_methods,
)
from ldptree_benchmark.results.scores import Cell, Scores
from ldptree_benchmark.suite import load_suite, read_printed, suites


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


TWO = {"one": PAIR.model_dump(), "two": PAIR.model_dump()}
VALUES = {
    "one": {"majority": [0.8, 0.8], "line": [0.6, 0.6]},
    "two": {"majority": [0.6, 0.7], "line": [0.6, 0.6]},
}


def check(check_one, *epsilons, suite=None, scores=None, whole=None, printed=None, says="so", paper=False):
    """One claim, checked on scores of a suite, which are of a part of the whole one."""
    suite = suite or suite_of(laws=TWO, epsilons=[1.0, 4.0], repetitions=1)
    claims = Claims()
    claims(*epsilons, says=says, paper=paper)(check_one)
    return claims.check(whole or suite, scores or scored(suite, VALUES)[1], printed, is_paper=False)


@pytest.mark.parametrize(
    ("figure", "value", "shown"),
    [
        (lambda s: s.show(s.mean("majority")), 0.7, "0.7000 at eps 1"),
        (lambda s: s.show(s.mean("majority", "two")), 0.6, "0.6000 at eps 1"),
        (lambda s: s.show(s.mean("majority") - s.mean("line"), "+"), 0.1, "+0.1000 at eps 1"),
        (lambda s: s.show(s.score("two", "majority") / s.score("one", "majority")), 0.75, "0.7500 at eps 1"),
        (lambda s: s.show(s.steps("majority", "one", "two"), "+")[0], -0.2, "-0.2000 at eps 1"),
        (lambda s: s.show(s.steps("majority", "one", "two", "one"), "+")[1], 0.2, "-0.2000 to +0.2000 at eps 1"),
        (lambda s: s.show(s.steps_of_epsilon((1.0, 4.0), "majority"), "+")[0], 0.05, "+0.0500 at eps 1"),
        (lambda s: s.show(s.lag("majority")), 0.0, "0.0000 at eps 1"),
        (lambda s: s.show(s.lag("line", among=["majority"])), 0.2, "0.2000 at eps 1"),
        (lambda s: s.is_first("majority"), 1, "2.5 at eps 1 (next line: 3.5)"),
        (lambda s: s.is_first("line"), 0, "3.5 at eps 1 (next majority: 2.5)"),
    ],
)  # fmt: skip
def test_a_claim_reads_scores_and_tells_what_it_read(figure, value, shown):
    def holds(s):
        assert figure(s) == pytest.approx(value)

    (checked,) = check(holds, 1.0)
    assert (checked.held, checked.shown) == (True, shown)


def test_a_claim_is_refuted_by_one_epsilon_and_its_figures_are_told_of_all():
    def rises(s):
        assert s.show(s.mean("majority")) >= 0.72

    (checked,) = check(rises, 1.0, 4.0)
    assert (checked.held, checked.shown) == (False, "0.7000 at eps 1, 0.7500 at eps 4")


def test_a_claim_is_not_measured_where_a_score_is_missing_or_nothing_is_divided_by():
    def is_read(s):
        assert s.show(s.mean("majority")) >= 0

    def is_divided(s):
        assert s.show(s.mean("majority") / s.mean("line")) >= 0

    suite = suite_of(epsilons=[1.0], repetitions=1)
    for check_one, values in ((is_read, [math.nan]), (is_divided, [0.8])):
        _, scores = scored(suite, {"pair": {"majority": values, "line": [0.0]}})
        assert check(check_one, 1.0, suite=suite, scores=scores)[0].held is None


def test_the_part_that_was_asked_for_keeps_the_claims_that_can_be_checked():
    whole = suite_of(repetitions=1)
    part = whole.chosen(methods=["line"], epsilons=(4.0,))
    scores = scored(part, {"pair": {"line": [0.6]}})[1]

    def keeps(check_one, *epsilons, **more):
        return [one.held for one in check(check_one, *epsilons, whole=whole, scores=scores, **more)]

    assert keeps(lambda s: s.mean("line"), 4.0) == [True]
    assert keeps(lambda s: s.mean("line"), 1.0) == []
    assert keeps(lambda s: s.mean("majority"), 4.0) == []
    assert keeps(lambda s: s.is_first("line"), 4.0) == []
    assert keeps(lambda s: s.mean("line"), 4.0, paper=True) == []


def test_a_distance_to_the_printed_figure_and_the_figure_itself_are_read():
    printed = {"table": "t", "datasets": {"one": "A", "two": "B"}, "methods": {"majority": "M", "line": "L"}}
    suite = suite_of(laws=TWO, epsilons=[1.0], repetitions=1, printed=printed)
    table = {"columns": ["M", "L"], "scale": 10, "epsilon": {"1": {"A": [8.1, math.nan], "B": [5.0, 7.0]}}}

    def is_near(s):
        assert s.show(s.away_from_printed("majority", "one", "two")) <= 0.05
        assert math.isnan(s.printed("one", "line"))

    (checked,) = check(is_near, 1.0, suite=suite, scores=scored(suite, VALUES)[1], printed=table)
    assert (checked.held, checked.shown) == (False, "0.1000 at eps 1")


def test_a_claim_on_a_column_is_about_its_mean_and_none_where_it_was_not_measured():
    methods = {"majority": {"learner": "lpct"}}
    suite = suite_of(methods=methods, epsilons=[1.0], repetitions=4)
    found = [
        Cell(
            dataset="pair", method="majority", candidate={}, epsilon=1.0, repetition=number, score=0.5, seconds=1.0,
            process_peak_mib=1.0, columns={"alarm": float(number == 3)},
        )
        for number in range(4)
    ]  # fmt: skip

    def checked(of, most):
        def is_seldom(s):
            assert s.show(s.mean("majority", of=of)) <= most

        (one,) = check(is_seldom, 1.0, suite=suite, scores=Scores.of(suite, found))
        return one

    assert checked("alarm", 0.25).held is True
    assert checked("alarm", 0.25).shown == "0.2500 at eps 1"
    assert checked("alarm", 0.25).columns == {"alarm"}
    assert checked("covered", 0.25).held is None
    found[0] = replace(found[0], columns={"alarm": 1.0})
    assert checked("alarm", 0.25).held is False


SUITE = """title = "mine"
epsilons = [1]
repetitions = 1
[laws.pair]
law = "lpct-pair"
parameters = { gamma = 0.5, n_public = 50, n_private = 300, n_test = 200 }
[methods.majority]
learner = "majority"
"""
CLAIMS = """from ldptree_benchmark.results.claims import Claims
claims = Claims()
@claims(1)
def _(s):
    "the majority is right nine times of
    ten"
    assert s.show(s.mean("majority")) >= 0.9
"""


def written(folder, claims):
    (folder / "mine.toml").write_text(SUITE)
    (folder / "mine.py").write_text(claims)
    return str(folder / "mine.toml")


def test_claims_stand_in_a_file_beside_the_suite(tmp_path):
    suite = load_suite(written(tmp_path, CLAIMS.replace('"the', '"""the').replace('ten"', 'ten"""')))
    _, scores = scored(suite, {"pair": {"majority": [0.8]}})
    (checked,) = check_claims(scores, None, is_paper=False)
    assert (checked.says, checked.held) == ("the majority is right nine times of ten", False)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("claims = Claim()", r"mine.py: cannot be run \(NameError: name 'Claim' is not defined"),
        ("claims = 1", "mine.py: no claims are in it; write claims = Claims"),
        ('s.mean("majorty")', r'claim "so": claims: majorty is no method of this suite \(did you mean majority\?\)'),
        ('s.mean("majority", "pear")', r"pear is no data set of this suite \(did you mean pair\?\)"),
        ('s.score("pair", "majority", 2)', r"2 is no epsilon of this suite"),
        ('s.picked("pair", "majority", "depth")', "depth is no candidate of majority"),
        ('s.printed("pair", "majority")', r"pair is no data set of \[printed\]"),
        ('s.men("majority")', "no attribute 'men'"),
    ],
)  # fmt: skip
def test_a_claim_that_cannot_be_is_refused_before_anything_is_computed(tmp_path, wrong, message):
    head = "from ldptree_benchmark.results.claims import Claims\n"
    claim = f"claims = Claims()\n@claims(1, says='so')\ndef _(s):\n    assert {wrong} < 1\n"
    with pytest.raises(ConfigError, match=message) as told:
        read_suite(written(tmp_path, head + (wrong if wrong.startswith("claims") else claim)), Asked())
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", suites())
def test_every_suite_has_claims_that_can_be_checked_on_its_scores(name):
    suite = load_suite(name)
    claims = read_claims(suite)
    try_claims(suite, None if suite.printed is None else read_printed(suite.printed.table))
    assert claims or name == "unseen"
    assert all(one.says for one in claims)
