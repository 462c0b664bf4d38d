"""The benchmark: every method gets the same rows, a score is computed once, statistics are those of the textbooks, claims are
checked.
"""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from prefect.states import Completed, Failed

from flows.benchmark.flow import _score, find_rows, list_cells
from flows.execute import Plainly
from ldptree.errors import ConfigError, DataError, LdptreeError
from schemas.suite import Law, Method, Split, Suite, load_suite, read_printed, suites
from storage.store import Store
from tasks.benchmark import cell as cells
from tasks.benchmark import code
from tasks.benchmark.claims import check_claims
from tasks.benchmark.laws import LAWS, draw_law
from tasks.benchmark.learners import LEARNERS, learner_of, reads_of
from tasks.benchmark.learners.answers import Trial
from tasks.benchmark.learners.statements import Stated
from tasks.benchmark.page import render_benchmark
from tasks.benchmark.ranks import adjust_by_holm, chance_of_splits, compare, critical_difference, rank_methods
from tasks.benchmark.report import Making, write_report
from tasks.benchmark.results import Cell, Scores
from tasks.benchmark.rows import PRIVATE, PUBLIC, TEST, LabelledRows, find_leaks, read_rows, split_rows
from tasks.benchmark.tables import Facts, Sets, tabulate_printed, tabulate_scores, tabulate_summary

COMMAND = "ldptree benchmark small"
MADE = Making(command=COMMAND, seconds=90.0, tasks=8, found=3)
PAIR = Law(law="lpct-pair", parameters={"gamma": 0.5, "n_public": 50, "n_private": 300, "n_test": 200})


def suite_of(**changes):
    plain = {
        "name": "small",
        "title": "small",
        "laws": {"pair": PAIR.model_dump()},
        "methods": {"majority": {"learner": "majority"}, "line": {"learner": "public_line"}},
        "epsilons": [1.0, 4.0],
        "repetitions": 2,
    }
    return Suite.model_validate(plain | changes)


class Here:
    """An engine that computes cells one after the other, and counts those that did not stand."""

    def __init__(self, store):
        self.store, self.computed, self.asked = store, [], 0

    def map(self, task, step, call):
        arguments = call["arguments"]
        self.asked += len(call["label"])
        for number, label in enumerate(call["label"]):
            own = {key: values[number] for key, values in arguments.items()}
            place = cells.score_cell.step.place(self.store, own)
            if self.store.find(place) is None:
                self.computed.append(label)
            try:
                yield Completed(data=cells.score_cell.fn(self.store, **own))
            except Exception as fault:
                yield Failed(data=fault)


def score(store, suite, *, paper=False):
    engine = Here(store)
    return engine, list(_score(store, engine, list_cells(suite, dict(suite.laws), paper=paper)))


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
    monkeypatch.setattr("flows.benchmark.flow.digest_code", lambda _: "other")
    assert len(score(store, suite_of())[0].computed) == 4


@pytest.mark.parametrize(
    ("learner", "module", "is_its_own"),
    [
        ("ct_q", "learners/answers.py", True),
        ("psgd_neural", "gradient/network.py", True),
        ("psgd_neural", "baselines/pglm.py", False),
        ("phist", "baselines/histograms.py", True),
        ("public_tree", "baselines/cost_complexity.py", True),
        ("lpct_printed", "learners/code_partition.py", True),
        ("lpct", "learners/code_partition.py", False),
        ("lpct", "families/tree.py", True),
        ("lpct", "laws/correction.py", True),
        ("lpct", "benchmark/rows.py", True),
        ("lpct", "benchmark/page.py", False),
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


@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_the_same_draw_for_the_same_seed_and_has_all_parts(name):
    parameters = {
        "lpct-pair": {"gamma": 0.5, "n_public": 50}, "steps": {"noise": "t2"}, "sines": {"private": 2}
    }.get(name, {})  # fmt: skip
    one, same, other = (draw_law(name, parameters, seed) for seed in ([1, 2], [1, 2], [1, 3]))
    assert np.array_equal(one.X, same.X)
    assert np.array_equal(one.y, same.y)
    assert not np.array_equal(one.X, other.X)
    assert set(one.part) == ({PUBLIC, PRIVATE, TEST} if one.protects is None else {PRIVATE, TEST})
    assert one.X.shape[1] == len(one.features)


@pytest.mark.parametrize("split", [Split(), Split(public=0.1), Split(public=0.1, most_public=10)])
def test_a_repetition_splits_rows_once_for_everybody(split):
    part = np.repeat(np.array([PUBLIC, PRIVATE], dtype=np.int8), [300, 700])
    rows = LabelledRows(
        X=np.arange(1000.0)[:, None],
        y=np.zeros(1000, dtype=np.int64),
        part=part,
        n_classes=2,
        features=("x",),
    )
    one, same, other = (split_rows(rows, "a set", 0, number, split) for number in (1, 1, 2))
    assert np.array_equal(one.part, same.part)
    assert not np.array_equal(one.X[one.part == TEST], other.X[other.part == TEST])
    n_public = {None: 300, 0.1: 100}[split.public] if split.most_public is None else split.most_public
    n_test = 140 if split.public is None else 200
    assert [(one.part == p).sum() for p in (PUBLIC, TEST)] == [n_public, n_test]
    if split.public is None:
        assert set(one.X[one.part == PUBLIC, 0]) == set(range(300))


def test_a_variant_is_a_set_once_more_with_its_own_split():
    suite = suite_of(
        laws={},
        split={"test": 0.5},
        datasets=["abalone"],
        measure="mse",
        variants={"few": {"dataset": "abalone", "most_public": 20, "differ": 0.7}},
        methods={"line": {"learner": "public_line"}},
    )
    assert suite.sets == ("abalone", "few")
    assert suite.split_of("abalone") == Split(test=0.5)
    assert suite.split_of("few") == Split(most_public=20, differ=0.7)
    assert suite.chosen(only=["few"]).sets == ("few",)
    assert set(Split().model_dump()) == {"public", "test", "most_public"}
    assert "parts" not in suite.methods["line"].model_dump()


def test_a_variant_may_have_other_public_people(tmp_path, monkeypatch):
    monkeypatch.setenv("LDPTREE_DATA", str(tmp_path))
    lines = [f"{'north' if n % 3 else 'south'},{n % 7},{n % 2}" for n in range(120)]
    (tmp_path / "people.csv").write_text("\n".join(["region,size,answer", *lines]))
    table = {"path": ["data:people.csv"], "target": "answer", "public": "region = 'north'"}
    suite = suite_of(
        laws={}, brought={"people": table}, variants={"south": {"dataset": "people", "changes": {"public": "region = 'south'"}}},
    )  # fmt: skip
    store = Store(tmp_path / "work")
    sources, missing = find_rows(suite, Plainly(store))
    assert missing == {}
    public = {name: (read_rows(store, source).part == PUBLIC).sum() for name, source in sources.items()}
    assert public == {"people": 80, "south": 40}


@pytest.mark.parametrize("n_classes", [0, 2])
def test_labels_differ_for_private_people_alone_where_the_feature_that_says_most_is_high(n_classes):
    rng = np.random.default_rng(0)
    X = rng.random((4_000, 3))
    y = (X[:, 1] + 0.1 * rng.random(4_000) > 0.5).astype(np.int64) if n_classes else 3.0 * X[:, 1]
    rows = LabelledRows(
        X=X, y=y, part=np.zeros(4_000, np.int8), n_classes=n_classes, features=("a", "b", "c")
    )
    split = Split(public=0.25)
    before = split_rows(rows, "tiny", 0, 0, split)
    after = split_rows(rows, "tiny", 0, 0, split.model_copy(update={"differ": 0.4}))
    changed = before.y != after.y
    assert not changed[before.part == PUBLIC].any()
    high = (X[:, 1] > np.median(X[:, 1])) & (before.part != PUBLIC)
    assert not changed[~high].any()
    if n_classes:
        assert changed[high].mean() == pytest.approx(0.4, abs=0.04)
    else:
        assert (after.y - before.y)[high] == pytest.approx(0.4 * y.std())


def test_copies_and_a_feature_that_decides_the_label_are_found():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    part = np.repeat(np.array([PUBLIC, PRIVATE, TEST], dtype=np.int8), [100, 200, 100])
    clean = LabelledRows(X=X, y=y, part=part, n_classes=2, features=("a", "b", "c"))
    assert find_leaks(clean).copies == 0.0
    assert find_leaks(clean).decides == ""
    X = X.copy()
    X[300:350], y[300:350], X[:, 2] = X[:50], y[:50], y + 0.0
    X[300:350, 2] = y[300:350]
    leaky = find_leaks(LabelledRows(X=X, y=y, part=part, n_classes=2, features=("a", "b", "c")))
    assert leaky.copies == 0.5
    assert leaky.public_copies == 0.0
    X[150], y[150], X[:50, :] = X[60], y[60], X[:50, :]
    assert (
        find_leaks(LabelledRows(X=X, y=y, part=part, n_classes=2, features=("a", "b", "c"))).public_copies
        == 0.01
    )
    assert leaky.decides == "c"


# Statistics


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


# Claims


def scored(suite, values):
    """A suite with one score for every set, method and epsilon."""
    found = [
        Cell(
            dataset=dataset, method=method, candidate={}, epsilon=epsilon, repetition=0,
            score=values[dataset][method][place], seconds=1.0, process_peak_mib=1.0,
        )
        for dataset in suite.sets for method in suite.methods for place, epsilon in enumerate(suite.epsilons)
    ]  # fmt: skip
    return found, Scores.of(suite, found)


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


LARGE = {"n_public": 300, "n_private": 6_000, "n_test": 2_000, "where": "everybody"}


@pytest.mark.parametrize(
    ("learner", "shift", "alarm"), [("lpdt", 0.0, 0.0), ("lpdt", 10.0, 1.0), ("correction", 10.0, 1.0)]
)
def test_an_estimator_is_held_to_what_it_says_of_private_people(learner, shift, alarm):
    rows = draw_law("shifted-number", {**LARGE, "shift": shift}, [5])
    settings = {"base": "tree"} if learner == "correction" else {}
    found = LEARNERS[learner].answer(Trial(rows, 4.0, 0, settings))
    assert found.columns["alarm"] == alarm
    assert found.columns["covered"] > 0.5
    wrong = replace(rows, expected=rows.expected + 1000.0)
    assert LEARNERS[learner].answer(Trial(wrong, 4.0, 0, settings)).columns["covered"] == 0.0


def test_a_tree_of_classes_is_held_to_what_it_says_of_class_1():
    rows = draw_law("sloped-share", {"n_test": 2_000}, [5])
    assert LEARNERS["lpct"].answer(Trial(rows, 4.0, 0, {})).columns["covered"] > 0.7
    other = replace(rows, expected=1.0 - rows.expected)
    assert LEARNERS["lpct"].answer(Trial(other, 4.0, 0, {})).columns["covered"] < 0.4


def test_a_corrected_truth_is_the_law_itself():
    rows = draw_law("steps", {"noise": "normal"}, [5])
    found = LEARNERS["correction_of_truth"].answer(Trial(rows, 8.0, 0, {}))
    held_back = rows.of(TEST)
    assert np.mean((found.answers - held_back.expected) ** 2) < 0.01
    assert found.columns == {"alarm": 0.0, "covered": 1.0}
    with pytest.raises(ConfigError, match="only of a law"):
        LEARNERS["correction_of_truth"].answer(Trial(replace(rows, expected=None), 8.0, 0, {}))


def test_a_correction_is_that_of_its_estimator_and_its_public_model_is_fitted_once(monkeypatch):
    from ldptree.estimators import CorrectionClassifier
    from tasks.benchmark.learners import correction

    fits = []
    fit = correction._fit
    monkeypatch.setattr(correction, "_fit", lambda *one: (fits.append(one), fit(*one))[1])
    rows = draw_law("hidden-column", {"n_test": 500, "n_private": 2_000}, [3])
    learn = rows.part != TEST
    for settings in ({}, {"questions": 1}):
        found = LEARNERS["correction"].answer(Trial(rows, 1.0, 0, settings))
        model = CorrectionClassifier(1.0, random_state=0, **settings).fit(
            rows.X[learn], rows.y[learn], public=(rows.part == PUBLIC)[learn]
        )
        assert np.mean(found.answers == model.predict(rows.X[~learn])) > 0.98
        assert (found.seconds_before > 0) is ("questions" in settings)
    alone = LEARNERS["public_model"].answer(Trial(rows, None, 0, {})).answers
    assert np.array_equal(alone, model.model_.public_answers(rows.X[~learn])[:, 0] > 0.5)
    assert len(fits) == 1
    other = draw_law("hidden-column", {"n_test": 500, "n_private": 2_000}, [4])
    LEARNERS["public_model"].answer(Trial(other, None, 0, {"base": "tree"}))
    assert len(fits) == 2


# Suites


def test_lpdts_tables_are_whole_and_its_tree_without_privacy_is_the_best_of_all():
    table = read_printed("lpdt")
    assert set(table["epsilon"]) == {"0.5", "1", "2", "4", "6", "8"}
    for lines in table["epsilon"].values():
        assert len(lines) == 14
        for name, line in lines.items():
            found = dict(zip(table["columns"], line, strict=True))
            dashes = {method for method, value in found.items() if math.isnan(value)}
            assert dashes == ({"APHIST", "PHIST"} if name in ("BUI", "MUS") else set())
            assert min(found, key=found.__getitem__) == "DT"


@pytest.mark.parametrize("name", suites())
def test_every_suite_is_whole_and_its_learners_can_learn_its_labels(name):
    suite = load_suite(name)
    for method in suite.methods.values():
        assert learner_of(method.learner, is_number=suite.is_number)
    if suite.printed is not None:
        table = read_printed(suite.printed.table)
        assert set(suite.printed.methods.values()) <= set(table["columns"])
        for lines in table["epsilon"].values():
            assert all(len(line) == len(table["columns"]) for line in lines.values())
            assert set(suite.printed.datasets.values()) <= set(lines)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methds": {}}, r"methds: unknown key \(did you mean methods\?\)"),
        ({"datasets": ["abalon"]}, r"abalon is no data set of the catalogue \(did you mean abalone\?\)"),
        ({"repetitions": 0}, "repetitions"),
        ({"epsilons": []}, "epsilons"),
        ({"laws": {}}, "name at least one"),
        ({"brought": {"pair": {"target": "y"}}}, "pair is named twice"),
        ({"variants": {"a": {"dataset": "abalon"}}}, r"variants.a.dataset: abalon is no .*mean abalone"),
        (
            {"claims": [{"says": "x", "method": "majorty", "epsilons": [1.0], "at_least": 1}]},
            "did you mean majority",
        ),
        ({"claims": [{"says": "x", "method": "majority", "epsilons": [1.0]}]}, "needs at_least or at_most"),
        (
            {
                "claims": [
                    {
                        "says": "x",
                        "method": "majority",
                        "epsilons": [1.0],
                        "at_least": 0,
                        "measure": "step over sets",
                    }
                ]
            },
            "needs two or more",
        ),
        (
            {
                "claims": [
                    {
                        "says": "x",
                        "method": "majority",
                        "epsilons": [1.0],
                        "at_most": 1,
                        "measure": "alarm",
                        "than": "majority",
                    }
                ]
            },
            'of "alarm" has no "than"',
        ),
    ],
)
def test_a_wrong_suite_is_refused_in_one_sentence(tmp_path, changes, message):
    plain = {
        "title": "x",
        "methods": {"majority": {"learner": "majority"}},
        "epsilons": [1.0],
        "repetitions": 1,
    }
    plain |= {"laws": {"pair": PAIR.model_dump()}} | changes
    path = tmp_path / "mine.toml"
    path.write_text(to_toml(plain))
    with pytest.raises(ConfigError, match=message) as told:
        load_suite(str(path))
    assert "\n" not in str(told.value)


def to_toml(table):
    """A table of values and of tables that JSON's inline notation is close enough to."""

    def value(one):
        if isinstance(one, dict):
            return "{" + ", ".join(f"{key} = {value(item)}" for key, item in one.items()) + "}"
        if isinstance(one, list):
            return "[" + ", ".join(map(value, one)) + "]"
        return f'"{one}"' if isinstance(one, str) else str(one)

    return "\n".join(f"{key} = {value(item)}" for key, item in table.items())


def test_what_cannot_be_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"smok is no suite \(did you mean smoke"):
        load_suite("smok")
    with pytest.raises(ConfigError, match="--reps 0"):
        suite_of().chosen(repetitions=0)
    with pytest.raises(ConfigError, match="--only: pear is no data set of this suite"):
        suite_of().chosen(only=["pear"])
    with pytest.raises(ConfigError, match="lpdt learns a number, and this suite's labels are classes"):
        learner_of("lpdt", is_number=False)
    part = np.array([PUBLIC, PUBLIC, PUBLIC, PRIVATE], np.int8)
    rows = LabelledRows(X=np.zeros((4, 1)), y=np.zeros(4, int), part=part, n_classes=2, features=("x",))
    with pytest.raises(DataError, match="no held-back row is left"):
        split_rows(rows, "tiny", 0, 0, Split())


def test_a_set_of_ones_own_is_found_from_the_suites_folder(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["a,kind,y", *(f"{a:.3f},{'open' if a < 0.5 else 'closed'},{a > 0.2}" for a in rng.random(200))]
    (tmp_path / "mine.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "mine.toml").write_text(
        """title = "mine"
epsilons = [1]
repetitions = 1
[brought.people]
path = "mine.csv"
target = "y"
public = "kind = 'open'"
[methods.majority]
learner = "majority"
"""
    )
    suite, store = load_suite(str(tmp_path / "mine.toml")), Store(tmp_path / "work")
    sources, missing = find_rows(suite, Plainly(store))
    assert missing == {}
    engine = Here(store)
    (cell,) = _score(store, engine, list_cells(suite, sources, paper=False))
    assert cell.score == 1.0  # private people have a > .5, and most public ones more than .2
    (tmp_path / "mine.csv").unlink()
    with pytest.raises(LdptreeError, match=r"no data set is there\. .*mine\.csv: no such file"):
        find_rows(suite, Plainly(Store(tmp_path / "other")))


def test_the_part_that_was_asked_for_keeps_the_claims_that_can_be_checked():
    claims = [
        {"says": "a", "method": "majority", "epsilons": [1.0], "at_least": 0.1},
        {"says": "b", "method": "line", "epsilons": [4.0], "at_least": 0.1},
    ]
    suite = suite_of(claims=claims)
    assert [claim.says for claim in suite.chosen(methods=["line"]).claims] == ["b"]
    assert [claim.says for claim in suite.chosen(epsilons=(1.0,)).claims] == ["a"]
    claims[0]["paper"] = True
    assert [claim.says for claim in suite_of(claims=claims).chosen(paper=True).claims] == ["a", "b"]
    assert [claim.says for claim in suite_of(claims=claims).chosen().claims] == ["b"]


# What is left


def test_a_report_has_every_cell_its_claims_and_a_page_that_loads_nothing(tmp_path):
    import polars as pl

    suite = suite_of(
        repetitions=1, claims=[{"says": "wins <b>", "method": "line", "epsilons": [1.0], "at_least": 0.7}],
        methods={name: {"learner": name} for name in ("public_line", "majority", "lpct")} | {"line": {"learner": "public_line"}},
    )  # fmt: skip
    values = {"pair": {name: [0.6, 0.7] for name in suite.methods}}
    found, _ = scored(suite, values)
    found[-1] = replace(found[-1], score=math.nan, reason="it <i>broke</i>")
    leaks = {"pair": {"copies": 0.25, "public_copies": 0.5, "decides": "", "parts": [1, 2, 3], "features": 2}}
    summary = write_report(
        tmp_path / "out",
        suite,
        found,
        Sets(leaks=leaks, missing={}),
        printed=None,
        is_paper=False,
        making=MADE,
    )
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
    again = write_report(
        tmp_path / "two",
        suite,
        found,
        Sets(leaks=leaks, missing={}),
        printed=None,
        is_paper=False,
        making=MADE,
    )
    assert (tmp_path / "two" / "results.html").read_text() == page
    assert again["claims"] == summary["claims"]


def test_the_page_says_where_parameters_were_picked_on_test_rows(tmp_path):
    suite = suite_of(repetitions=1)
    found, scores = scored(suite, {"pair": {"majority": [0.5, 0.5], "line": [0.6, 0.6]}})
    facts = {"scores": scores, "sets": Sets(leaks={}, missing={}), "claims": (), "printed": None}
    assert "picked on the rows that are scored" in render_benchmark(Facts(**facts, is_paper=True), found, "")
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
