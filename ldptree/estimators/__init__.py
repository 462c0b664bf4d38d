"""scikit-learn estimators: thin classes over the parts that the pipeline uses too."""

from ldptree.estimators.correction import CorrectionClassifier, CorrectionRegressor
from ldptree.estimators.histoftree import HistOfTreeRegressor
from ldptree.estimators.lpct import LPCTClassifier
from ldptree.estimators.lpdt import LPDTRegressor
from ldptree.estimators.public_features import PublicFeatureClassifier, PublicFeatureRegressor
from ldptree.estimators.ranges import PublicRangeScaler

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
