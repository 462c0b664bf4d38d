"""No estimator assumes a range, or cuts public rows off at one, without a warning; and the warning tells nothing private."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ldptree.errors import AssumedRangeWarning
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

ROWS = np.random.default_rng(3).random((120, 2)) * [40.0, 3.0]
NUMBERS = ROWS[:, 0] / 2
CLASSES = (ROWS[:, 0] > 20).astype(int)
ESTIMATORS = {
    "lpct": (lambda **how: LPCTClassifier(1.0, random_state=0, **how), CLASSES),
    "lpdt": (lambda **how: LPDTRegressor(1.0, random_state=0, **how), NUMBERS),
    "correction, classes": (lambda **how: CorrectionClassifier(1.0, random_state=0, **how), CLASSES),
    "correction, a number": (lambda **how: CorrectionRegressor(1.0, random_state=0, **how), NUMBERS),
    "histoftree": (
        lambda **how: HistOfTreeRegressor(1.0, private_features=[0, 1], random_state=0, **how),
        NUMBERS,
    ),
    "public_features": (
        lambda **how: PublicFeatureRegressor(1.0, private_features=[0, 1], random_state=0, **how),
        NUMBERS,
    ),
    "public_features, classes": (
        lambda **how: PublicFeatureClassifier(
            1.0, classes=[0, 1], private_features=[0, 1], random_state=0, **how
        ),
        CLASSES,
    ),
    "scaler": (PublicRangeScaler, CLASSES),
}
OF_LABELS = {"lpdt": "label_range", "histoftree": "label_range", "public_features": "label_range"}
OF_LABELS["correction, a number"] = "residual_range"


def told(fit):
    """The warnings of assumed ranges that a call gives, as texts."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit()
    return [str(one.message) for one in found if one.category is AssumedRangeWarning]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_range_that_nobody_stated_is_warned_of_with_the_columns_and_the_remedy(name):
    make, y = ESTIMATORS[name]
    messages = told(lambda: make().fit(ROWS, y))
    assert any(
        "feature_range: no public row tells the range of x0, x1, so" in message for message in messages
    )
    assert any("Give feature_range = (low, high)" in message for message in messages)
    labels = [message for message in messages if message.startswith(("label_range:", "residual_range:"))]
    assert [message.partition(":")[0] for message in labels] == (
        [OF_LABELS[name]] if name in OF_LABELS else []
    )


@pytest.mark.parametrize("name", ESTIMATORS)
def test_ranges_that_are_stated_are_not_warned_of(name):
    make, y = ESTIMATORS[name]
    stated = (
        {OF_LABELS[name]: 20.0 if name.startswith("correction") else (0, 20)} if name in OF_LABELS else {}
    )
    assert told(lambda: make(feature_range=(0, [40, 3]), **stated).fit(ROWS, y)) == []


@pytest.mark.parametrize("name", ["lpct", "lpdt", "correction, classes", "correction, a number", "scaler"])
def test_the_range_of_public_rows_needs_no_warning_and_one_that_cuts_them_off_says_what_share(name):
    make, y = ESTIMATORS[name]
    public = np.arange(len(ROWS)) < 40
    assert told(lambda: make().fit(ROWS, y, public=public)) == []
    share = 100 * (ROWS[:40, 0] > 10).mean()
    (message,) = told(lambda: make(feature_range=(0, [10, 3])).fit(ROWS, y, public=public))
    assert f"x0 ({share:.1f} %)" in message
    assert "x1" not in message


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_is_warned_of_does_not_depend_on_private_rows(name):
    make, y = ESTIMATORS[name]
    inside, beyond = ROWS / [40.0, 3.0], ROWS * 1e6
    assert told(lambda: make().fit(inside, y)) == told(lambda: make().fit(beyond, y))


def test_without_public_rows_a_correction_speaks_of_no_public_model():
    even = CorrectionClassifier(8.0, feature_range=(0, [40, 3]), random_state=0).fit(ROWS, CLASSES)
    number = CorrectionRegressor(8.0, feature_range=(0, [40, 3]), residual_range=20.0, random_state=0)
    for found in (even, number.fit(ROWS, NUMBERS)):
        assert found.says_.startswith("There are no public rows. ")
        assert "public model" not in found.says_
    some = CorrectionClassifier(8.0, random_state=0).fit(ROWS, CLASSES, public=np.arange(len(ROWS)) < 40)
    assert "public model" in some.says_
