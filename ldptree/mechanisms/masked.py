"""Report a cell among those a holder could be in, by randomised response within V_i (HistOfTree eqs 5, 8, 16, 17).

What a holder shows leaves it a set of potential cells V_i (`ldptree.partition.product.Candidates`), which is public, or
sent along; the report says noisily which of them is its own. Not in `MECHANISMS`: the alphabet differs from holder to holder.

grr (eq. 17, with eps for the paper's eps / 2): one cell of V_i, the true one with probability e^eps / (e^eps + |V_i| - 1),
any other with 1 / (e^eps + |V_i| - 1). A holder with a single potential cell sends it as it is: it was public.
randomized_response (eq. 8): one bit for every cell, kept with e^(eps/2) / (1 + e^(eps/2)) (two holders differ in two bits),
0 outside V_i. As printed, the bit of a single potential cell is flipped too.
Both are eps-LDP in the protected features given what is shown. V~_i^j, the unbiased indicator of cell j, has variance
q (1 - q) / (p - q)^2 in every cell of V_i but the holder's own, and is 0 outside.
Integer coins throughout: the thresholds of every |V_i| follow from epsilon by exact decimal arithmetic (`Grr`, `Sue`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ldptree.coins import WORD, checked_epsilon
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.oracles.grr import Grr
from ldptree.mechanisms.oracles.unary import Sue

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.coins import Words
    from ldptree.partition.product import Candidates

    Floats = NDArray[np.float64]
    Bytes = NDArray[np.uint8]

_CELL = np.dtype("<u4")


@dataclass(frozen=True)
class Masked(ABC):
    """A report of one cell of V_i, of n_cells in all, as bytes [m, width].

    Attributes:
        budget: epsilon; what the integers in use give is never more.
        n_cells: of the whole partition.

    Raises:
        ConfigError: epsilon is not positive and finite.
    """

    name: ClassVar[str]

    budget: float
    n_cells: int

    def __post_init__(self) -> None:
        checked_epsilon(self.budget)
        if self.n_cells < 2:
            raise ConfigError(
                f"{self.name}: {self.n_cells} cells; there is nothing to ask about fewer than 2"
            )

    @property
    @abstractmethod
    def width(self) -> int:
        """Bytes of a report."""

    @abstractmethod
    def randomize(self, cells: NDArray[np.int64], candidates: Candidates, words: Words) -> Bytes:
        """Draw one report for each holder, uint8 [m, width], on the holders' side.

        Args:
            cells: int64 [m], each in its holder's V_i.
            candidates: V_i of each.
            words: the coins.

        Raises:
            DataError: a cell is not in its V_i.
        """

    @abstractmethod
    def is_valid(self, reports: Bytes) -> NDArray[np.bool_]:
        """Return which reports can come from a holder with some V_i, bool [m]. Raises DataError for another shape."""

    @abstractmethod
    def fit(self, reports: Bytes, candidates: Candidates) -> NDArray[np.bool_]:
        """Return which valid reports can come from a holder with this V_i, bool [m]."""

    @abstractmethod
    def sums(self, reports: Bytes, candidates: Candidates, weights: Floats) -> Floats:
        """Return sum_i w_i V~_i^j, unbiased, for every cell j and column of weights [m, c], float64 [c, n_cells]."""

    @abstractmethod
    def noise(self, candidates: Candidates) -> Floats:
        """Variance that a cell of V_i other than the holder's own gives to sum_i V~_i^j, float64 [m]; 0 without noise."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """Return how far one report moves sum_i V~_i^j at most, whatever it says instead of what is true."""

    @abstractmethod
    def law(self, cell: int, candidates: Candidates) -> dict[bytes, Fraction]:
        """Return P(report) of one holder (m = 1) with this cell, for every possible report. V_i must be small."""

    def _shaped(self, reports: Bytes) -> Bytes:
        reports = np.asarray(reports)
        if reports.dtype != np.uint8 or reports.ndim != 2 or reports.shape[1] != self.width:
            raise DataError(
                f"{self.name}: reports are uint8 [n, {self.width}], found {reports.dtype} of shape {reports.shape}"
            )
        return np.ascontiguousarray(reports)

    def _checked(self, cells: NDArray[np.int64], candidates: Candidates) -> NDArray[np.int64]:
        cells = np.asarray(cells, dtype=np.int64)
        if not candidates.contain(cells).all():
            raise DataError(f"{self.name}: a holder's cell is not among those it could be in")
        return cells


@lru_cache(maxsize=2**12)
def _grr(budget: float, size: int) -> Grr:
    return Grr.for_values(budget, size)


@dataclass(frozen=True)
class MaskedGrr(Masked):
    """Generalised randomised response over V_i (eqs 16, 17). A report is a cell's number, 4 bytes little-endian."""

    name: ClassVar[str] = "grr"

    @property
    def width(self) -> int:
        """One number."""
        return _CELL.itemsize

    def randomize(self, cells: NDArray[np.int64], candidates: Candidates, words: Words) -> Bytes:
        """Coins are drawn for the holders of each |V_i| above 1, in increasing order of it."""
        ranks = candidates.ranks(self._checked(cells, candidates))
        for size in np.unique(candidates.sizes[candidates.sizes > 1]):
            who = np.flatnonzero(candidates.sizes == size)
            ranks[who] = _grr(self.budget, int(size)).randomize(ranks[who], words)
        return candidates.cells(ranks).astype(_CELL).view(np.uint8).reshape(-1, self.width)

    def is_valid(self, reports: Bytes) -> NDArray[np.bool_]:
        """A cell there is."""
        valid: NDArray[np.bool_] = self._cells(reports) < self.n_cells
        return valid

    def fit(self, reports: Bytes, candidates: Candidates) -> NDArray[np.bool_]:
        """A cell of V_i."""
        return candidates.contain(self._cells(reports))

    def sums(self, reports: Bytes, candidates: Candidates, weights: Floats) -> Floats:
        """V~_i^j = (1{report = j} - q_i 1{j in V_i}) / (p_i - q_i)."""
        gap, q = self._coins(candidates)
        scaled = weights / gap[:, None]
        cells = self._cells(reports)
        sums: Floats = np.stack(
            [np.bincount(cells, w, minlength=self.n_cells).astype(np.float64) for w in scaled.T]
        )
        if not q.any():
            return sums
        return sums - candidates.spread(scaled * q[:, None])

    def noise(self, candidates: Candidates) -> Floats:
        """q (1 - q) / (p - q)^2."""
        gap, q = self._coins(candidates)
        noise: Floats = q * (1 - q) / gap**2
        return noise

    @property
    def bound(self) -> float:
        """1 / (p - q), where every cell is possible."""
        return 1.0 / _grr(self.budget, self.n_cells).gap

    def law(self, cell: int, candidates: Candidates) -> dict[bytes, Fraction]:
        """|V_i| reports."""
        potential = np.flatnonzero(candidates.matrix()[0])
        lie = Fraction(_grr(self.budget, potential.size).lie, WORD) if potential.size > 1 else Fraction(0)
        return {
            potential[k : k + 1].astype(_CELL).tobytes(): (1 - lie) * (c == cell) + lie / potential.size
            for k, c in enumerate(potential.tolist())
        }

    def _coins(self, candidates: Candidates) -> tuple[Floats, Floats]:
        """p - q and q of each holder; 1 and 0 where there is one potential cell."""
        sizes, which = np.unique(candidates.sizes, return_inverse=True)
        oracles = [_grr(self.budget, int(size)) if size > 1 else None for size in sizes]
        gap = np.array([1.0 if oracle is None else oracle.gap for oracle in oracles])
        q = np.array([0.0 if oracle is None else oracle.q for oracle in oracles])
        return gap[which], q[which]

    def _cells(self, reports: Bytes) -> NDArray[np.int64]:
        return self._shaped(reports).view(_CELL)[:, 0].astype(np.int64)


@dataclass(frozen=True)
class MaskedBits(Masked):
    """Randomised response on the bits of V_i (eqs 5, 8). A report is packed bits, little-endian, 0 outside V_i."""

    name: ClassVar[str] = "randomized_response"

    @cached_property
    def bits(self) -> Sue:
        """The coins."""
        return Sue.for_values(self.budget, self.n_cells)

    @property
    def width(self) -> int:
        """A bit a cell."""
        return -(-self.n_cells // 8)

    def randomize(self, cells: NDArray[np.int64], candidates: Candidates, words: Words) -> Bytes:
        """Draw the bits of all cells and clear those outside V_i. Coins are independent, so the rest keep their law."""
        reports = self.bits.randomize(self._checked(cells, candidates), words)
        return reports & np.packbits(candidates.matrix(), axis=1, bitorder="little")

    def is_valid(self, reports: Bytes) -> NDArray[np.bool_]:
        """No bit past the last cell."""
        return self.bits.is_valid(self._shaped(reports))

    def fit(self, reports: Bytes, candidates: Candidates) -> NDArray[np.bool_]:
        """No bit outside V_i."""
        fits: NDArray[np.bool_] = np.all(~self._bits(reports) | candidates.matrix(), axis=1)
        return fits

    def sums(self, reports: Bytes, candidates: Candidates, weights: Floats) -> Floats:
        """V~_i^j = (bit_j - q) / (p - q) in V_i, 0 outside."""
        sums: Floats = weights.T @ self._bits(reports).astype(np.float64)
        return (sums - self.bits.q * candidates.spread(weights)) / self.bits.gap

    def noise(self, candidates: Candidates) -> Floats:
        """q (1 - q) / (p - q)^2, whatever |V_i|."""
        q, gap = self.bits.q, self.bits.gap
        return np.full(len(candidates.sizes), q * (1 - q) / gap**2)

    @property
    def bound(self) -> float:
        """1 / (p - q)."""
        return 1.0 / self.bits.gap

    def law(self, cell: int, candidates: Candidates) -> dict[bytes, Fraction]:
        """2^|V_i| reports."""
        potential = np.flatnonzero(candidates.matrix()[0])
        chances = {
            c: Fraction(self.bits.own if c == cell else self.bits.other, WORD) for c in potential.tolist()
        }
        law = {}
        for drawn in product((0, 1), repeat=potential.size):
            bits = np.zeros(self.n_cells, dtype=np.uint8)
            bits[potential] = drawn
            chance = Fraction(1)
            for c, bit in zip(potential.tolist(), drawn, strict=True):
                chance *= chances[c] if bit else 1 - chances[c]
            law[np.packbits(bits, bitorder="little").tobytes()] = chance
        return law

    def _bits(self, reports: Bytes) -> NDArray[np.bool_]:
        bits = np.unpackbits(self._shaped(reports), axis=1, count=self.n_cells, bitorder="little")
        return bits.astype(np.bool_)


MASKED: dict[str, type[Masked]] = {"grr": MaskedGrr, "randomized_response": MaskedBits}
