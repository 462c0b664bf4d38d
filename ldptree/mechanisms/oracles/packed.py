"""Reports that are packed bits, one for each of k values, as in unary encoding and subset selection.

Value 0 is the lowest bit of the first byte, and bits past k are zero. What the bits mean is in `unary` and `subset`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldptree.compiled import compiled
from ldptree.mechanisms.oracles.oracle import FrequencyOracle

# reports counted at once: padded to whole words, they stay in the cache
_COUNTED = 1020


@dataclass(frozen=True)
class PackedBits(FrequencyOracle):
    """An oracle whose reports are packed bits, uint8 [n, ceil(k / 8)]; a set bit supports its value."""

    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint8)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """k bits, in whole bytes."""
        return (-(-self.k // 8),)

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """No bit past k is set."""
        past = np.uint8(255 & ~(255 >> (-self.k % 8)))
        valid: NDArray[np.bool_] = (self._shaped(reports)[:, -1] & past) == 0
        return valid

    def supports(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """The bits."""
        bits = np.unpackbits(self._shaped(reports), axis=1, count=self.k, bitorder="little")
        return bits.astype(bool)

    def _count(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        n, n_bytes = reports.shape
        n_lanes = -(-self.k // 64)
        counts = np.zeros(64 * n_lanes, dtype=np.int64)
        padded = np.zeros((min(_COUNTED, n), 8 * n_lanes), dtype=np.uint8)
        for start in range(0, n, _COUNTED):
            block = reports[start : start + _COUNTED]
            padded[: block.shape[0], :n_bytes] = block
            _count_bits(padded[: block.shape[0]].view(np.uint64), counts)
        return counts[: self.k].copy()


@compiled
def _count_bits(packed, counts):  # type: ignore[no-untyped-def]
    """Add to counts, int64 [64 * lanes], the set bits of each column of packed, uint64 [n, lanes].

    Eight byte-wide counters share a word; they are emptied before they can overflow, every 255 rows.
    """
    n, n_lanes = packed.shape
    ones = np.uint64(0x0101010101010101)
    counters = np.empty((8, n_lanes), dtype=np.uint64)
    for start in range(0, n, 255):
        counters[:] = np.uint64(0)
        for row in range(start, min(start + 255, n)):
            for shift in range(8):
                for lane in range(n_lanes):
                    counters[shift, lane] += (packed[row, lane] >> np.uint64(shift)) & ones
        for lane in range(n_lanes):
            for shift in range(8):
                for byte in range(8):
                    amount = (counters[shift, lane] >> np.uint64(8 * byte)) & np.uint64(255)
                    counts[64 * lane + 8 * byte + shift] += np.int64(amount)
