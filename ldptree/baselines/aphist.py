"""APHIST: the adjusted private histogram of Gyorfi and Kroll (2022), as LPDT D.1 describes it.

PHIST with "the privatized marginal probability" replaced by "an average of marginal probability and volume of the
cell", and 0 where that average is below a threshold. Privacy: eps-LDP in real arithmetic, PHIST's own report (a
simulation device).

As described, a cell predicts 2 P(A) / (P(A) + volume) times what it should, however many rows there are: right where
features are uniform, twice too much in a small crowded cell, too little in a large empty one. The figures LPDT prints
at eps >= 2 are those of 2/3 of the mean label at h = 1 (ABA: 10.4 + 98.6 / 9 = 21.4, printed 20.7 at eps 8), which
this description does not give either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldptree.baselines.cubic_histogram import CubicHistogramRegressor, share_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class APHISTRegressor(CubicHistogramRegressor):
    """See the module, and `CubicHistogramRegressor` for its parameters and attributes."""

    def _values(self, marginal: Floats, joint: Floats) -> Floats:
        volume = 1.0 / self.histogram_.n_cells
        return share_of(joint, (marginal + volume) / 2.0, float(self.threshold))
