"""What passes between curator and holders of HistOfTree is checked on the way: questions, reports, models, shapes."""

import json

import numpy as np
import pytest

from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.estimators.histoftree import HistOfTreeRegressor
from ldptree.families.histoftree import CellsQuestion, LabelQuestion, Shape, choose_shape
from ldptree.mechanisms.masked import MASKED
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.partition.product import Histogram, Product
from ldptree.partition.tree import Partition

TREE = Partition.of([1, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])
CELLS = CellsQuestion(Product(Histogram((0,), 2), TREE), MASKED["grr"](1.0, 4))


def test_more_epsilon_or_more_holders_never_make_it_coarser():
    mask = np.tile([True, True, False, False, False], (1_000, 1))
    depths = [choose_shape(mask, e, n_binned=2, bias_weight=1.0).depth for e in (0.5, 1, 2, 4, 8)]
    assert depths == sorted(depths)
    assert depths[0] < depths[-1]


def test_hundreds_of_features_are_no_trouble():
    mask = np.random.default_rng(0).random((500, 300)) < 0.5
    with np.errstate(all="raise", under="ignore", over="warn"):
        found = choose_shape(mask, 64.0)
    assert found.n_binned + found.depth >= 0


def test_where_everything_is_binned_the_number_of_bins_is_chosen():
    mask = np.ones((10**6, 2), dtype=bool)
    assert choose_shape(mask, 0.01, n_binned=2, bias_weight=0.1) == Shape(n_binned=2, bins=1, depth=0)
    assert choose_shape(mask, 8.0, n_binned=2, bias_weight=0.1).bins > 3


def test_questions_of_every_label_and_release_come_back_from_json():
    for label in NUMBERS:
        question = LabelQuestion(NUMBERS[label].for_budget(0.7), -2.0, 3.0)
        assert LabelQuestion.from_json(json.loads(json.dumps(question.to_json()))) == question
    for release in ("all", "cells", "none"):
        cells = CellsQuestion(CELLS.partition, CELLS.mechanism, release)
        again = CellsQuestion.from_json(json.loads(json.dumps(cells.to_json())))
        assert again.to_json() == cells.to_json()
        assert again.epsilon == 1.0


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "x"},
        {"more": 1},
        {"release": "some"},
        {"mechanism": {"name": "grr", "epsilon": -1.0}},
        {"mechanism": {"name": "no", "epsilon": 1.0}},
        {"mechanism": {"name": "grr", "epsilon": "much"}},
        {"partition": {}},
    ],
)
def test_a_changed_question_is_refused(change):
    with pytest.raises(ProtocolMismatch):
        CellsQuestion.from_json(CELLS.to_json() | change)
    question = LabelQuestion(NUMBERS["laplace"].for_budget(0.7), -2.0, 3.0).to_json()
    for key in question:
        with pytest.raises(ProtocolMismatch):
            LabelQuestion.from_json(question | {key: None})


def test_forged_reports_are_seen():
    reports = np.array([[0, 0, 0, 0], [9, 0, 0, 0]], dtype=np.uint8)
    assert CELLS.is_valid(reports).tolist() == [True, False]
    with pytest.raises(DataError):
        CELLS.is_valid(reports[:, :2])
    with_cells = CellsQuestion(CELLS.partition, CELLS.mechanism, "cells")
    honest = with_cells.law(np.array([0.2, 0.7]), 0.0, np.array([False, False]))[0][0]
    assert honest.tolist() == [0, 2, 1, 0, 0, 0]
    forged = np.array(
        [honest, [7, 2, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 6, 1, 0, 0, 0], [1, 2, 1, 0, 0, 0]]
    )
    assert with_cells.is_valid(forged.astype(np.uint8)).tolist() == [True, False, False, False, False]


def test_a_report_that_contradicts_what_its_holder_shows_is_refused():
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    fitted = HistOfTreeRegressor(4.0, private_features=[0], s=1, t=2, p=1, random_state=0).fit(X, X[:, 0])
    cells = fitted.answers_[1]
    n_cells = cells.question.partition.n_cells
    cells.reports[:] = ((cells.reports[:, :1].astype(int) + n_cells // 2 + 1) % n_cells) * [1, 0, 0, 0]
    from ldptree.protocol.question import PublicView

    protects = np.tile([True, False], (60, 1))
    with pytest.raises(DataError, match="cannot be in"):
        fitted._family(2, None).fit(PublicView.of(X, protects), fitted.answers_)


def test_reports_over_memory_are_refused_with_the_size_that_fits():
    with pytest.raises(ConfigError, match=r"GiB.*up to .* cells.*grr"):
        CellsQuestion(CELLS.partition, CELLS.mechanism).check_memory(2**40)
