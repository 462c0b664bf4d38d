"""A range of two finite ends whose distance is not finite: no feature can be divided by it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ldptree.baselines import REGRESSORS
from ldptree.errors import ConfigError, DataError
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

N = 60
X = pd.DataFrame({"much": np.linspace(0, 1, N), "more": np.linspace(-1, 1, N) * 1e308})
Y = (np.arange(N) % 2).astype(int)
PUBLIC = np.arange(N) % 3 != 1
WITH_PUBLIC = [
    LPCTClassifier(1.0),
    LPDTRegressor(1.0),
    CorrectionClassifier(1.0),
    CorrectionRegressor(1.0),
    PublicRangeScaler(),
]
SHOWN = [kind(1.0, private_features=[0]) for kind in (PublicFeatureClassifier, PublicFeatureRegressor)]
RIVALS = [kind() for name, kind in REGRESSORS.items() if not name.startswith("dt")]


@pytest.mark.parametrize(
    "estimator", [*WITH_PUBLIC, *SHOWN, HistOfTreeRegressor(1.0), *RIVALS], ids=lambda e: type(e).__name__
)
def test_a_setting_of_such_a_range_is_refused(estimator):
    one = clone(estimator).set_params(feature_range=([0, -1e308], [1, 1e308]))
    said = r"feature_range: \(-1e\+308, 1e\+308\) for feature 1 is so wide .* a narrower one"
    with pytest.raises(ConfigError, match=said):
        one.fit(X / 2, Y)


@pytest.mark.parametrize("estimator", [*WITH_PUBLIC, *SHOWN], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("named", [True, False])
def test_public_values_of_such_a_range_are_refused_with_their_column(estimator, named):
    seen = {} if estimator in SHOWN else {"public": PUBLIC}
    with pytest.raises(
        DataError, match=r'column ".*": public values go from -1e\+308 to 1e\+308, so far apart'
    ) as fault:
        estimator.fit(X if named else X.to_numpy(), Y, **seen)
    assert ('"more"' in str(fault.value)) == named


@pytest.mark.parametrize("estimator", WITH_PUBLIC, ids=lambda e: type(e).__name__)
def test_private_values_have_no_say_in_it(estimator):
    rows = X.copy()
    rows.loc[PUBLIC, "more"] = rows.loc[PUBLIC, "much"]
    estimator.fit(rows, Y, public=PUBLIC)
