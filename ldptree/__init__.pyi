from os import PathLike
from typing import Any

from ldptree.estimators import CorrectionClassifier as CorrectionClassifier
from ldptree.estimators import CorrectionRegressor as CorrectionRegressor
from ldptree.estimators import HistOfTreeRegressor as HistOfTreeRegressor
from ldptree.estimators import LPCTClassifier as LPCTClassifier
from ldptree.estimators import LPDTRegressor as LPDTRegressor
from ldptree.estimators import PublicFeatureClassifier as PublicFeatureClassifier
from ldptree.estimators import PublicFeatureRegressor as PublicFeatureRegressor
from ldptree.estimators import PublicRangeScaler as PublicRangeScaler
from ldptree.models import Model

__version__: str

def run(
    source: Any,
    *,
    target: str | None = None,
    public: Any = None,
    epsilon: float | None = None,
    work: str | PathLike[str] | None = None,
    **settings: Any,
) -> Any: ...
def init(source: Any, *, target: str, public: str | None = None) -> dict[str, Any]: ...
def read_model(path: str | PathLike[str]) -> Model: ...
