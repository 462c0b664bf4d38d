"""Who is asked what: the holders in an order that public coins draw, cut into parts. Nothing else decides a role.

The order depends on a seed and the number of holders alone, so a role says nothing about what its holder protects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.errors import ProtocolMismatch
from ldptree.oracles.words import Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST_SEED = 2**64


@dataclass(frozen=True)
class Part:
    """The holders from place `start` to `stop` - 1 of the order that `seed` draws.

    Raises:
        ProtocolMismatch: not 0 <= start < stop, or a seed out of 0 .. 2^64 - 1.
    """

    seed: int
    start: int
    stop: int

    def __post_init__(self) -> None:
        numbers = (self.seed, self.start, self.stop)
        if any(type(v) is not int for v in numbers) or not (
            0 <= self.start < self.stop and 0 <= self.seed < _LARGEST_SEED
        ):
            raise ProtocolMismatch(
                f"question: its holders are {numbers}; a seed, a first place and one past the last"
            )

    def among(self, n: int) -> NDArray[np.int64]:
        """Positions of these holders among n, increasing.

        Raises:
            ProtocolMismatch: there are fewer than `stop`.
        """
        if self.stop > n:
            raise ProtocolMismatch(f"question: it asks holders up to place {self.stop}, there are {n}")
        return np.sort(order(self.seed, n)[self.start : self.stop])

    def to_json(self) -> dict[str, int]:
        """Plain values."""
        return {"seed": self.seed, "start": self.start, "stop": self.stop}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The part that `to_json` wrote."""
        if not isinstance(data, Mapping) or set(data) != {"seed", "start", "stop"}:
            raise ProtocolMismatch("question: its holders must be exactly seed, start, stop")
        return cls(**data)


@lru_cache(maxsize=8)
def order(seed: int, n: int) -> NDArray[np.int64]:
    """The positions 0 .. n - 1 in the order that this seed draws; the same everywhere."""
    words = Words.seeded(np.random.SeedSequence([seed >> 32, seed & 0xFFFFFFFF])).block(n)
    places = np.argsort(words, kind="stable")
    places.setflags(write=False)
    return places
