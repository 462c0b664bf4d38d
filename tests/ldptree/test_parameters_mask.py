"""A mask that is a frame goes by the names of its columns, and one of pandas has to have the rows' index."""

from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from ldptree.baselines import REGRESSORS
from ldptree.errors import DataError
from ldptree.estimators import (
    CorrectionClassifier,
    CorrectionRegressor,
    HistOfTreeRegressor,
    LPCTClassifier,
    LPDTRegressor,
    PublicFeatureClassifier,
    PublicFeatureRegressor,
    PublicRangeScaler,
)
from ldptree.validation import check_aligned, named_mask

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


N = 60
X = pd.DataFrame({"a": np.linspace(0, 1, N), "b": np.linspace(0, 1, N) ** 2}, index=range(100, 100 + N))
Y = pd.Series((X["a"] * 10).astype(int) % 2)
PUBLIC = pd.Series(np.arange(N) % 3 != 1, index=X.index)
PROTECTS = pd.DataFrame({"b": PUBLIC, "a": PUBLIC})
ESTIMATORS = [
    *(kind(1.0) for kind in (LPCTClassifier, LPDTRegressor, CorrectionClassifier, CorrectionRegressor)),
    *(kind(1.0) for kind in (HistOfTreeRegressor, PublicFeatureClassifier, PublicFeatureRegressor)),
    PublicRangeScaler(),
    *(REGRESSORS[name]() for name in ("dt_pub", "krr", "par_dt")),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_mask_of_other_rows_is_refused_with_how_to_align_it(estimator):
    """By position it would be another holder's: a private row would be taken for a public one."""
    name = "public" if "public" in signature(estimator.fit).parameters else "protects"
    mask = PUBLIC if name == "public" else PROTECTS
    said = rf"^{name} has another index than X, .* give {name}\.to_numpy\(\) where .* or else sort it by X's index"
    for other in (mask[::-1], mask.reset_index(drop=True)):
        with pytest.raises(DataError, match=said):
            estimator.fit(X, Y, **{name: other})
    for same in (mask, mask[::-1].reindex(X.index)):
        estimator.fit(X, Y, **{name: same})


def test_an_index_of_another_type_is_the_same_index():
    for kind in ("Int64", "int32", "float64", object):
        check_aligned("public", PUBLIC, X.set_axis(X.index.astype(kind)))


def test_what_has_no_index_goes_by_position():
    for mask in (PUBLIC.to_numpy(), PUBLIC.tolist(), pl.Series(PUBLIC.to_numpy()), None):
        check_aligned("public", mask, X)
    for rows in (X.to_numpy(), X.to_numpy().tolist(), pl.DataFrame(X.to_dict("list"))):
        check_aligned("public", PUBLIC, rows)


def test_folds_keep_a_mask_beside_its_rows():
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(
            PublicRangeScaler().set_fit_request(public=True).set_output(transform="pandas"),
            LPCTClassifier(8.0, random_state=0).set_fit_request(public=True),
        )
        scores = cross_validate(pipe, X, Y, params={"public": PUBLIC}, cv=3, error_score="raise")
        assert len(scores["test_score"]) == 3
