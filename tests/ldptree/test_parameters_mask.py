"""A mask that is a frame goes by the names of its columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ldptree.errors import DataError
from ldptree.parameters import named_mask

NAMES = ("a", "b", "c")
COLUMNS = {"c": [False, False], "b": [False, True], "a": [True, True]}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_mask_are_found_by_name(frame):
    np.testing.assert_array_equal(
        named_mask(frame(COLUMNS), NAMES), [[True, False, False], [True, True, False]]
    )


def test_a_mask_of_other_features_is_refused():
    with pytest.raises(DataError, match="its columns are a, b, the features are a, b, c"):
        named_mask(pd.DataFrame({"a": [True], "b": [True]}), NAMES)


def test_an_array_is_taken_as_it_is():
    np.testing.assert_array_equal(named_mask([[True, False]], NAMES), [[True, False]])
