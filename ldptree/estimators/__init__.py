"""scikit-learn estimators: thin classes over the parts that the pipeline uses too."""

from ldptree.estimators.lpct import LPCTClassifier
from ldptree.estimators.lpdt import LPDTRegressor
from ldptree.estimators.ranges import PublicRangeScaler

__all__ = ["LPCTClassifier", "LPDTRegressor", "PublicRangeScaler"]
