"""scikit-learn estimators, each made of parameters and a docstring over its family."""

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError(
        'the estimators need scikit-learn, which is not installed: pip install "ldptree[estimators]"'
    )

from ldptree.estimators.correction import CorrectionClassifier, CorrectionRegressor
from ldptree.estimators.histoftree import HistOfTreeRegressor
from ldptree.estimators.lpct import LPCTClassifier
from ldptree.estimators.lpdt import LPDTRegressor
from ldptree.estimators.public_features import PublicFeatureClassifier, PublicFeatureRegressor
from ldptree.estimators.scaler import PublicRangeScaler

__all__ = [
    "CorrectionClassifier",
    "CorrectionRegressor",
    "HistOfTreeRegressor",
    "LPCTClassifier",
    "LPDTRegressor",
    "PublicFeatureClassifier",
    "PublicFeatureRegressor",
    "PublicRangeScaler",
]
