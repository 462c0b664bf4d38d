"""The form of the papers' reports (LPCT eqs 5 and 6), which are an indicator of the holder's cell, and the same times
the label, with noise added to each number. The kind of noise is in the mechanism's own file.

A report has L C numbers: U, the one-hot of the cell (L of them), then V_c for c = 1 .. C - 1, the one-hot of the cell
where the label is c and nothing where it is not. Two classes: U and V of the paper. Two holders' U differ by at most 2 in
L1, and so do their V_1 .. V_{C-1} together, so noise of scale 4 / epsilon makes either half epsilon / 2-LDP and the
report epsilon-LDP. A holder who is outside has zeros everywhere, as the paper has it for a point out of range.

With noise of variance v in each number, N~_{j,c} = V_c for c >= 1 and U - sum of V_c for c = 0; the margin A of two
classes has variance 5 v / 4.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import Words
from ldptree.mechanisms.description import Form, MechanismDescription
from ldptree.mechanisms.mechanism import Mechanism

# numbers whose noise is drawn together: they stay in the cache
_BLOCK = 2**17


@dataclass(frozen=True)
class Additive(Mechanism):
    """Numbers [n, L C] for cells, then for cells where the label is c, each with noise of its own."""

    form: ClassVar[Form] = "numbers"

    @property
    @abstractmethod
    def noise_variance(self) -> float:
        """v, the variance of one number of one report."""

    @abstractmethod
    def draw_noise(self, n: int, words: Words) -> NDArray[Any]:
        """Noise of n numbers, [n]."""

    @property
    def raw_size(self) -> int:
        """L C."""
        return self.n_cells * self.n_classes

    @property
    def report_bytes(self) -> int:
        """Those of L C numbers."""
        return self.dtype.itemsize * self.raw_size

    def describe(self) -> MechanismDescription:
        """Facts of the mechanism and of one report."""
        return self._description(self.raw_size, noise_sd=math.sqrt(self.noise_variance))

    def indicators(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the true indicators of each holder before any noise, int64 [n, L C]."""
        values = self.checked(values)
        truth = np.zeros((values.size, self.raw_size), dtype=np.int64)
        inside = np.flatnonzero(values < self.k - 1)
        cells, labels = np.divmod(values[inside], self.n_classes)
        truth[inside, cells] = 1
        labelled = labels > 0
        truth[inside[labelled], labels[labelled] * self.n_cells + cells[labelled]] = 1
        return truth

    def noisy(self, values: NDArray[np.int64], words: Words, dtype: type) -> NDArray[Any]:
        """Indicators and noise, of this type [n, L C]."""
        reports: NDArray[Any] = np.empty((np.size(values), self.raw_size), dtype=dtype)
        step = max(1, _BLOCK // self.raw_size)
        for start in range(0, reports.shape[0], step):
            truth = self.indicators(values[start : start + step])
            reports[start : start + step] = truth + self.draw_noise(truth.size, words).reshape(truth.shape)
        return reports

    def true_sums(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sums of indicators of holders with these counts [k], int64 [L C]."""
        inside = np.asarray(counts, dtype=np.int64)[:-1].reshape(self.n_cells, self.n_classes)
        return np.concatenate([inside.sum(axis=1), inside[:, 1:].T.ravel()])

    def unbias(self, raw: NDArray[Any], n: int) -> NDArray[np.float64]:
        """Counts of each cell and class, and last the holders who are in no cell."""
        sums = np.asarray(raw, dtype=np.float64).reshape(self.n_classes, self.n_cells)
        first = sums[0] - sums[1:].sum(axis=0)
        counts = np.concatenate([first[:, None], sums[1:].T], axis=1)
        return np.append(counts.ravel(), n - sums[0].sum())

    def linear_variance(self, weights: ArrayLike, counts: ArrayLike) -> Any:
        """Return the exact variance, as the noise does not depend on who is where."""
        a = np.asarray(weights, dtype=np.float64)
        one_sum = a.ndim == 1
        a = a.reshape(self.k, -1)
        cells, outside = a[:-1].reshape(self.n_cells, self.n_classes, -1), a[-1]
        # sum_jc a_jc N~_jc + a_out (n - sum_j U_j) in the numbers that are sent
        of_cells, of_labels = cells[:, 0] - outside, cells[:, 1:] - cells[:, :1]
        n = float(np.sum(counts))
        variance = n * self.noise_variance * ((of_cells**2).sum(axis=0) + (of_labels**2).sum(axis=(0, 1)))
        return float(variance[0]) if one_sum else variance

    def cell_variance(
        self,
        class_weights: ArrayLike,
        n_cells: ArrayLike,
        inside: NDArray[np.float64],
        counts: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Exact, the same for every cell."""
        a = np.asarray(class_weights, dtype=np.float64)
        of_cell = float(counts.sum()) * self.noise_variance * (a[0] ** 2 + ((a[1:] - a[0]) ** 2).sum())
        variance: NDArray[np.float64] = of_cell * np.asarray(n_cells, dtype=np.float64)
        return variance
