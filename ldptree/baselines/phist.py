"""PHIST: the private histogram of Berrett, Gyorfi and Walk (EJS 15, 2021), as LPDT D.1 compares it.

A cell predicts Z / W, or 0 where W is below a threshold; W and Z are the sums of `cubic_histogram`'s reports.
Privacy: eps-LDP of row and label together, in real arithmetic (a simulation device). Noise variance of a cell: 32 n /
eps^2 of W, M^2 times that of Z.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldptree.baselines.cubic_histogram import CubicHistogramRegressor, share_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class PHISTRegressor(CubicHistogramRegressor):
    """See the module, and `CubicHistogramRegressor` for its parameters and attributes."""

    def _values(self, marginal: Floats, joint: Floats) -> Floats:
        return share_of(joint, marginal, float(self.threshold))
