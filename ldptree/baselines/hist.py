"""Hist: the private histogram as HistOfTree C.1 compares it, and the same histogram without privacy.

With an epsilon it is PHIST under HistOfTree's names (t bins, threshold zeta): every feature and the label are
private, whatever holders show. Privacy: eps-LDP of row and label together, in real arithmetic (a simulation device).
With `epsilon=None` no noise is added and NOTHING IS PRIVATE: what the cubes alone can do.
"""

from __future__ import annotations

from ldptree.baselines.phist import PHISTRegressor


class HistRegressor(PHISTRegressor):
    """See the module, and `CubicHistogramRegressor` for its parameters and attributes; `epsilon` may be None."""

    def _check_parameters(self) -> None:
        if self.epsilon is None:
            HistRegressor(**(self.get_params() | {"epsilon": 1.0}))._check_parameters()
        else:
            super()._check_parameters()

    def _scales(self) -> tuple[float, float]:
        return (0.0, 0.0) if self.epsilon is None else super()._scales()
