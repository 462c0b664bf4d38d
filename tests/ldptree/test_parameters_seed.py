"""A random_state that is none is refused by every estimator in the same words, before a row is looked at."""

from inspect import signature

import numpy as np
import pytest

from ldptree import estimators
from ldptree.baselines import REGRESSORS
from ldptree.errors import ConfigError
from ldptree.estimators import PublicRangeScaler
from ldptree.validation import check_seed

KINDS = [
    *(kind for name in estimators.__all__ if (kind := getattr(estimators, name)) is not PublicRangeScaler),
    *REGRESSORS.values(),
]
WRONG = [-1, 2**32, 2**40, 10**400, 0.5, "x", True, np.nan, [1, 2], np.random.default_rng(0)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_estimator_refuses_a_wrong_one_with_what_to_give(kind):
    estimator = kind(**({"epsilon": 1.0} if "epsilon" in signature(kind).parameters else {}))
    for wrong in WRONG:
        with pytest.raises(ConfigError) as fault:
            estimator.set_params(random_state=wrong).fit(np.full((20, 1), np.nan), np.zeros(20))
        said = str(fault.value)
        assert said.startswith("random_state must be None, a whole number from 0 to 2**32 - 1, or a numpy.")
        assert said.endswith(f"got {wrong!r}")


@pytest.mark.parametrize("right", [None, 0, 2**32 - 1, np.int64(3), np.uint32(3), np.random.RandomState(1)])
def test_what_scikit_learn_takes_is_taken(right):
    check_seed(right)
