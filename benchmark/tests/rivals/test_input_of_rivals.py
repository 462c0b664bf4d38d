"""What a user gets wrong is said by a rival as by our estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ldptree.errors import ConfigError, DataError
from ldptree_benchmark.rivals import REGRESSORS

NUMBERS = np.linspace(0, 1, 40)


@pytest.mark.parametrize("name", ["phist", "krr", "label_dt"])
@pytest.mark.parametrize("missing", [None, "nan", "inf", np.inf])
def test_a_missing_label_in_an_object_array_is_refused_as_in_one_of_numbers(name, missing):
    y = NUMBERS.astype(object)
    y[20] = missing
    with pytest.raises(DataError, match=r"Input y contains (NaN|infinity)"):
        REGRESSORS[name](1.0, random_state=0).fit(NUMBERS[:, None], y)


@pytest.mark.parametrize("name", ["krr", "par_dt"])
def test_a_mask_of_other_rows_is_refused_with_how_to_align_it(name):
    X = pd.DataFrame({"a": np.linspace(0, 1, 60), "b": np.linspace(0, 1, 60) ** 2}, index=range(100, 160))
    public = pd.Series(np.arange(60) % 3 != 1, index=X.index)
    mask, rival = pd.DataFrame({"b": public, "a": public}), REGRESSORS[name]()
    for other in (mask[::-1], mask.reset_index(drop=True)):
        with pytest.raises(DataError, match=r"^protects has another index than X"):
            rival.fit(X, X["a"], protects=other)
    rival.fit(X, X["a"], protects=mask[::-1].reindex(X.index))


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("wrong", [-1, 2**32, 0.5, "x", True, np.random.default_rng(0)])
def test_a_wrong_seed_is_refused_with_what_to_give(name, wrong):
    rival = REGRESSORS[name]()
    with pytest.raises(ConfigError, match=r"^random_state must be None, a whole number from 0"):
        rival.set_params(random_state=wrong).fit(np.full((20, 1), np.nan), np.zeros(20))


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_setting_of_a_range_that_is_too_wide_is_refused(name):
    rival = REGRESSORS[name]().set_params(feature_range=([0, -1e308], [1, 1e308]))
    rows = np.column_stack([np.linspace(0, 1, 60), np.linspace(-1, 1, 60) * 1e308]) / 2
    with pytest.raises(ConfigError, match=r"feature_range: \(-1e\+308, 1e\+308\) for feature 1 is so wide"):
        rival.fit(rows, np.arange(60) % 2)
