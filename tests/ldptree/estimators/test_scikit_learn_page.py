"""The example of docs/how-to/scikit-learn.md runs: `public` reaches every fit, and what inspects any estimator inspects ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sklearn.inspection import partial_dependence

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "scikit-learn.md"


@pytest.fixture(scope="module")
def example():
    section = PAGE.read_text().partition("## Scores, searches and inspection")[2]
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], names)
    return names


def test_public_rows_reach_every_fit_of_a_cross_validation_and_of_a_search(example):
    assert len(example["scores"]) == 3
    assert example["scores"].min() > 0.7
    found = example["search"].best_estimator_
    assert int(found.model_.n_private) == 1000


def test_inspection_finds_the_feature_that_decides(example):
    miles, hour = example["importance"].importances_mean
    assert miles > 0.1 > hour
    curve = partial_dependence(example["search"].best_estimator_, example["X"], ["miles"], grid_resolution=4)
    assert curve["average"].shape == (1, 4)
