"""The benchmark where some features are public: who protects what, what errors are made of, and what a set has to say."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ldptree.errors import ConfigError
from ldptree.families.histoftree import Shape
from ldptree_benchmark.cell import score_cell
from ldptree_benchmark.flow import check_rows, list_cells
from ldptree_benchmark.laws import draw_law
from ldptree_benchmark.learners import LEARNERS
from ldptree_benchmark.learners.answers import Trial
from ldptree_benchmark.learners.public_features import bound_parts, explain_histoftree
from ldptree_benchmark.results.claims import Claims
from ldptree_benchmark.results.report import Making, write_report
from ldptree_benchmark.results.scores import Cell, Scores
from ldptree_benchmark.results.tables import Sets
from ldptree_benchmark.rows import PRIVATE, TEST, LabelledRows, split_rows
from ldptree_benchmark.suite import Law, Split, Suite
from storage.store import Store

PAIR = Law(law="lpct-pair", parameters={"gamma": 0.5, "n_public": 50, "n_private": 300, "n_test": 200})
SINES = Law(law="sines", parameters={"private": 2, "n_private": 2_000, "n_test": 1_000})


def suite_of(**changes):
    plain = {
        "name": "small", "title": "small", "laws": {"pair": PAIR.model_dump()},
        "methods": {"line": {"learner": "public_line"}}, "epsilons": [1.0, 4.0], "repetitions": 2,
    }  # fmt: skip
    return Suite.model_validate(plain | changes)


def test_a_claim_of_what_was_picked_is_about_the_best_candidate_by_score_or_by_a_part_of_the_error():
    method = {"learner": "histoftree", "candidates": {"p": [1, 2]}, "parts": "all"}
    suite = suite_of(
        measure="mse", laws={"sines": SINES.model_dump()}, methods={"tree": method}, epsilons=[1.0], repetitions=1
    )  # fmt: skip
    found = [
        Cell(
            dataset="sines", method="tree", candidate={"p": p}, epsilon=1.0, repetition=0, score=1.0 / p,
            seconds=1.0, process_peak_mib=1.0, parts={"B.1": float(p)},
        )
        for p in (1, 2)
    ]  # fmt: skip

    def held(cells, by):
        claims = Claims()

        @claims(1.0, says="so")
        def _(s):
            assert s.show(s.picked("sines", "tree", "p", by=by), "g") >= 2

        (checked,) = claims.check(suite, Scores.of(suite, cells), None, is_paper=True)
        return checked.held

    assert (held(found, ""), held(found, "B.1")) == (True, False)
    assert held([replace(one, candidate={}) for one in found[:1]], "") is None


@pytest.mark.parametrize("personal", [False, True])
def test_a_mask_is_drawn_for_features_however_they_are_encoded_and_anew_for_each_repetition(personal):
    columns = ("size", "sex = F", "sex = M", "age", "age is missing")
    rows = LabelledRows(
        X=np.zeros((1000, 5)),
        y=np.zeros(1000),
        part=np.full(1000, PRIVATE, np.int8),
        n_classes=0,
        features=columns,
    )
    split = Split(public=0, private=["sex", "age"], personal=personal)
    one, same, other = (split_rows(rows, "tiny", 0, number, split).protects for number in (1, 1, 2))
    assert np.array_equal(one, same)
    assert np.array_equal(one, other) is not personal
    assert np.array_equal(one[:, 1], one[:, 2])
    assert np.array_equal(one[:, 3], one[:, 4])
    assert one.sum(axis=0).tolist() == (
        [100, 1000, 1000, 100, 100] if personal else [0, 1000, 1000, 1000, 1000]
    )


def test_ranges_of_all_rows_are_taken_where_a_suite_says_so_alone():
    rng = np.random.default_rng(0)
    rows = LabelledRows(
        X=rng.random((500, 2)),
        y=rng.random(500),
        part=np.full(500, PRIVATE, np.int8),
        n_classes=0,
        features=("a", "b"),
    )
    assert split_rows(rows, "tiny", 0, 0, Split(public=0.1)).feature_range is None
    found = split_rows(rows, "tiny", 0, 0, Split(public=0.1, ranges="all rows"))
    assert found.label_range == (rows.y.min(), rows.y.max())
    assert np.array_equal(found.feature_range[1], rows.X.max(axis=0))


@pytest.mark.parametrize("private", [0, 2, 5])
def test_parts_of_an_error_add_up_to_the_score(private):
    rows = draw_law("sines", {**SINES.parameters, "private": private}, [1])
    trial = Trial(rows, 4.0, 0, {"label": "laplace", "t": 2, "p": 2})
    found = explain_histoftree(trial)
    score = float(np.mean((found.answers - rows.of(TEST).y) ** 2))
    parts = {name: value for name, value in found.parts.items() if not name.startswith("B.")}
    assert sum(parts.values()) == pytest.approx(score, rel=1e-12)
    assert parts["labels cut"] == 0.0  # the range is wide
    assert (abs(parts["noise of cells"]) < 1e-12) is (private == 0)
    assert np.array_equal(found.answers, LEARNERS["histoftree"].answer(trial))


def test_bounds_beside_the_parts_are_those_of_the_papers_lemmas():
    rows = draw_law("sines", {**SINES.parameters}, [1]).of(PRIVATE)
    found = bound_parts(rows, Shape(n_binned=2, bins=3, depth=3), 4.0)
    few = math.log(2_000) / 2_000
    assert found["B.3"] == pytest.approx(2**-2.0 + 3**-2)
    assert found["B.2"] == pytest.approx(9 * 8 * few)
    assert found["B.1"] == pytest.approx(81 * 8 * few / 16)
    one_outside = bound_parts(rows, Shape(n_binned=1, bins=3, depth=4), 4.0)
    assert one_outside["B.1"] == pytest.approx(
        9 * 16 * few / 16 * 2
    )  # 2^(p / (d - s)), a protected feature outside


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"methods": {"tree": {"learner": "histoftree"}}},
            "methods.tree: histoftree has to know .*, and pair does not say",
        ),
        ({"split": {"private": ["x9"]}}, r"private: x9 is no feature of pair \(there are: x1, x2\)"),
        (
            {"laws": {"sines": SINES.model_dump()}},
            "methods.line: public_line learns from public rows, and sines has none",
        ),
    ],
)
def test_what_a_set_does_not_say_is_refused_in_one_sentence_before_any_cell(tmp_path, changes, message):
    methods = {"line": {"learner": "public_line"}}
    suite = suite_of(**({"measure": "mse", "methods": methods} | changes))
    with pytest.raises(ConfigError, match=message) as told:
        check_rows(Store(tmp_path / "work"), suite, dict(suite.laws))
    assert "\n" not in str(told.value)


def test_parts_are_asked_of_learners_that_can_tell():
    methods = {"line": {"learner": "public_line", "parts": "all"}}
    with pytest.raises(ConfigError, match=r"methods.line.parts: public_line cannot tell .* histoftree"):
        list_cells(suite_of(methods=methods), {"pair": PAIR}, paper=False)
    with pytest.raises(ValueError, match="personal: needs private"):
        Split(personal=True)
    with pytest.raises(ValueError, match="public: 0 needs private"):
        Split(public=0)


def test_a_suites_page_shows_what_errors_are_made_of(tmp_path):
    methods = {"tree": {"learner": "histoftree", "candidates": {"p": [0, 1]}, "parts": "all"}}
    suite = suite_of(
        measure="mse", laws={"sines": SINES.model_dump()}, methods=methods, epsilons=[1.0], repetitions=1
    )
    store = Store(tmp_path / "work")
    found = []
    for wanted in list_cells(suite, dict(suite.laws), paper=True):
        facts = score_cell.fn(store, **wanted.arguments).facts
        for candidate, score, parts in zip(wanted.candidates, facts["scores"], facts["parts"], strict=True):
            found.append(
                Cell(
                    dataset=wanted.dataset,
                    method=wanted.method,
                    candidate=candidate,
                    epsilon=wanted.epsilon,
                    repetition=wanted.repetition,
                    score=score,
                    seconds=1.0,
                    process_peak_mib=1.0,
                    parts=parts,
                )
            )
    summary = write_report(
        tmp_path / "out",
        suite,
        found,
        Sets(leaks={}, missing={}),
        printed=None,
        is_paper=True,
        making=Making(command="ldptree benchmark small --paper", seconds=1.0, tasks=1),
    )
    for path in ("page", "results"):
        assert (tmp_path / "out" / summary[path].split("/")[-1]).exists()
    for name in ("results.html", "results.toml"):
        text = (tmp_path / "out" / name).read_text()
        assert "noise of cells" in text
        assert "p = 1" in text
