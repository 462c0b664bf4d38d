"""A table of a user's own is read as the exported SELECT reads it, whatever types its columns have; or refused, column named."""

from __future__ import annotations

import traceback

import numpy as np
import pyarrow as pa
import pytest

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.models.export.sql import kind_of
from schemas.row_format import RowFormat
from storage.raw.other_rows import OtherRows
from tasks.predict import TYPES

SMOKER = CategoricalFeature("smoker", (False, True), fill=0)
AREA = CategoricalFeature("area", (1, 8), missing_level=True)
FIRM = CategoricalFeature("firm", ("1", "b"), missing_level=True)
DIGITS = CategoricalFeature("digits", (2**60, 2**60 + 1), missing_level=True)
MILES = NumericFeature("miles", 0.0, 9.0, fill=1.0)
NAN = np.nan


def read(feature, values, kind=None):
    table = pa.table({feature.column: pa.array(values, kind)})
    rows = RowFormat.of_names({feature.column: TYPES[kind_of(feature)]})
    batches = OtherRows.of(table, Encoding((feature,)), rows, "the frame").batches()
    return [value for batch in batches for value in batch.ravel().tolist()]


@pytest.mark.parametrize(
    ("feature", "values", "wanted"),
    [
        (SMOKER, [True, False, None], [1, 0, NAN]),
        (SMOKER, ["True", "false", "TRUE", None], [1, 0, 1, NAN]),
        (SMOKER, ["yes", "no", "Y", "1", "t"], [1, 0, 1, 1, 1]),
        (SMOKER, [1.0, 0.0, NAN, None], [1, 0, NAN, NAN]),
        (SMOKER, [1, 0], [1, 0]),
        (AREA, ["8", "1.0", "7", None], [1, 0, -1, NAN]),
        (AREA, [8.0, 1.0, 1.5, NAN], [1, 0, -1, NAN]),
        (AREA, [True, False], [0, -1]),
        (FIRM, [1, 2, None], [0, -1, NAN]),
        (FIRM, ["b", "1.0", ""], [1, -1, NAN]),
        (DIGITS, [2**60 + 1, 2**60, 5], [1, 0, -1]),
        (MILES, ["1.5", "2", "1e1", None], [1.5, 2, 10, NAN]),
        (MILES, [1, 2], [1, 2]),
        (MILES, [True, False], [1, 0]),
    ],
)
def test_values_are_read_by_sqls_casts(feature, values, wanted):
    assert str(read(feature, values)) == str([float(v) for v in wanted])


@pytest.mark.parametrize("feature", [SMOKER, AREA, FIRM, MILES])
def test_a_column_without_a_type_has_no_value(feature):
    assert read(feature, [], pa.null()) == []
    assert str(read(feature, [None], pa.null())) == "[nan]"


def test_the_encodings_of_arrow_are_no_types_of_their_own():
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert read(FIRM, pa.array(["b", "c", "1"]).cast(kind)) == [1, -1, 0]
    assert str(read(FIRM, pa.array(["b", None, "c"]).dictionary_encode())) == "[1.0, nan, -1.0]"
    assert read(SMOKER, pa.array(["yes", "no"]).dictionary_encode()) == [1, 0]
    assert read(AREA, pa.array([8, 1], pa.int8()).dictionary_encode()) == [1, 0]
    assert read(MILES, np.array([0.5, 2], np.float16)) == [0.5, 2]


@pytest.mark.parametrize(
    ("feature", "values", "reason"),
    [
        (SMOKER, ["perhaps"], "not true or false"),
        (SMOKER, [2], "not true or false"),
        (MILES, ["far"], "not a number"),
        (MILES, pa.array([0]).cast(pa.timestamp("s")), "not a number"),
        (AREA, ["eight"], "not a number"),
        (MILES, ["2", "1_000"], "not a number"),
        (MILES, pa.array(["1_0.5"]).dictionary_encode(), "not a number"),
        (MILES, pa.array(["1e1_0"], pa.string_view()), "not a number"),
        (AREA, ["0_8"], "not a number"),
        (FIRM, [1.0, 2.0], "is of type number, .*texts, none of them written"),
        (FIRM, [True], "is of type boolean, .*none of them written"),
        (FIRM, [[1]], "lists, structs and bytes"),
    ],
)
def test_what_was_learned_as_another_type_is_refused_and_no_value_is_told(feature, values, reason):
    with pytest.raises(DataError, match=reason) as fault:
        read(feature, values)
    assert feature.column in str(fault.value)
    told = "".join(traceback.format_exception_only(fault.value))
    assert not any(word in told for word in ("perhaps", "far,", "eight", "1_", "0_8"))
