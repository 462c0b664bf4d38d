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
from ldptree.mechanisms.mechanism import Form, Mechanism, MechanismDescription

# numbers whose noise is drawn together: they stay in the cache
_BLOCK = 2**17


@dataclass(frozen=True)
class Additive(Mechanism):
    """C numbers a cell, [n, L C]: for cells, then for cells where the label is c, each with noise of its own."""

    form: ClassVar[Form] = "numbers"

    @property
    @abstractmethod
    def noise_variances(self) -> NDArray[np.float64]:
        """Variance of each of the C numbers of a cell in one report, float64 [C]."""

    @abstractmethod
    def draw_noise(self, n: int, words: Words) -> NDArray[Any]:
        """Noise of n reports, [n, L C]."""

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
        return self._description(self.raw_size, noise_sd=math.sqrt(self.noise_variances[0]))

    def indicators(self, values: NDArray[np.int64]) -> NDArray[Any]:
        """Return the true numbers of each holder before any noise, [n, L C]."""
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
            reports[start : start + step] = truth + self.draw_noise(len(truth), words)
        return reports

    def true_sums(self, counts: NDArray[np.int64]) -> NDArray[Any]:
        """The sums of indicators of holders with these counts [n_values], [L C]."""
        inside = np.asarray(counts, dtype=np.int64)[:-1].reshape(self.n_cells, self.n_classes)
        return np.concatenate([inside.sum(axis=1), inside[:, 1:].T.ravel()])

    def unbias(self, raw: NDArray[Any], n: int) -> NDArray[np.float64]:
        """Counts of each cell and class, and last the holders who are in no cell."""
        sums = np.asarray(raw, dtype=np.float64).reshape(self.n_classes, self.n_cells)
        return np.append(self._counts_by_class(sums).ravel(), n - sums[0].sum())

    def _counts_by_class(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """[L, C] of the sums of each number, [C, L]."""
        return np.concatenate([(sums[0] - sums[1:].sum(axis=0))[:, None], sums[1:].T], axis=1)

    def _weights_of_numbers(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of the numbers that are sent, [L, C, m], of weights of cells and classes, [L, C, m]."""
        return np.concatenate([weights[:, :1], weights[:, 1:] - weights[:, :1]], axis=1)

    def linear_variance(self, weights: ArrayLike, counts: ArrayLike) -> Any:
        """Return the exact variance, as the noise does not depend on who is where."""
        a = np.asarray(weights, dtype=np.float64)
        one_sum = a.ndim == 1
        a = a.reshape(self.k, -1)
        # sum_jc a_jc N~_jc + a_out (n - sum_j U_j) in the numbers that are sent
        sent = self._weights_of_numbers(a[:-1].reshape(self.n_cells, self.n_classes, -1) - a[-1])
        variance = float(np.sum(counts)) * np.einsum("c,jcm->m", self.noise_variances, sent**2)
        return float(variance[0]) if one_sum else variance

    def cell_variance(
        self,
        class_weights: ArrayLike,
        n_cells: ArrayLike,
        inside: NDArray[np.float64],
        counts: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Exact, the same for every cell."""
        sent = self._weights_of_numbers(np.asarray(class_weights, dtype=np.float64)[None, :, None])
        of_cell = float(counts.sum()) * float(self.noise_variances @ sent[0, :, 0] ** 2)
        return of_cell * np.asarray(n_cells, dtype=np.float64)
