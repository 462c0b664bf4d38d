"""The joint report: one value a holder, and the better oracle for it."""

import math

import numpy as np
import pytest

from ldptree.errors import DataError
from ldptree.mechanisms import joint, mechanism_for, report_values
from ldptree.mechanisms.oracles import ORACLES


def test_each_cell_and_label_has_its_own_value_and_the_last_is_outside():
    cells, labels = (a.ravel() for a in np.meshgrid(np.arange(-1, 3), np.arange(-1, 2)))
    values = report_values(cells, labels, n_cells=3, n_classes=2)
    is_outside = (cells < 0) | (labels < 0)
    assert (values[is_outside] == 6).all()
    assert sorted(values[~is_outside].tolist()) == list(range(6))
    np.testing.assert_array_equal(values[~is_outside], (cells * 2 + labels)[~is_outside])
    assert joint.Joint.for_budget(1.0, 3, 2).k == 7


@pytest.mark.parametrize(
    ("cells", "labels"), [([3], [0]), ([0], [2]), ([-2], [0]), ([0, 1], [0]), ([[0]], [[0]])]
)
def test_values_out_of_range_are_refused(cells, labels):
    with pytest.raises(DataError):
        report_values(cells, labels, n_cells=3, n_classes=2)


def test_the_chosen_oracle_is_the_less_noisy_one():
    assert joint.choose_oracle(1.0, 3).name == "grr"
    assert joint.choose_oracle(1.0, 257).name == "oue"
    assert joint.choose_oracle(8.0, 257).name == "grr"
    # the figures at epsilon 8, 256 values
    assert ORACLES["grr"].for_budget(8.0, 256).mean_variance() == pytest.approx(7e-4, rel=0.01)
    assert ORACLES["oue"].for_budget(8.0, 256).mean_variance() == pytest.approx(0.0052, rel=0.01)


def margin_noise(name, epsilon):
    return mechanism_for(name, epsilon, 8, 2).margin_variance_per_holder()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_margin_variance_has_its_closed_forms(epsilon):
    e = math.exp(epsilon)
    assert margin_noise("oue", epsilon) == pytest.approx(2 * e / (e - 1) ** 2)
    q, gap = 1 / (e + 16), (e - 1) / (e + 16)
    assert margin_noise("grr", epsilon) == pytest.approx(q / (2 * gap**2))
