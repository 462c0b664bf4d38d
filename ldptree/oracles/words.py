"""Where the holders' coins come from: uniform 64-bit words, from the operating system or from a seed.

Turning words into reports is done in the oracles.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import ConfigError

_LARGEST = np.uint64(2**64 - 1)
# a child of the seed that no block of words shares
_GENERATOR_KEY = 0x6C6470


class Words:
    """A source of uniform uint64 words. Use one per thread: blocks are drawn in order and never again.

    Words of a seed are refused (ConfigError) in a process that was forked from the one that made them: there they would repeat.
    """

    def __init__(
        self,
        draw: Callable[[int], NDArray[np.uint64]],
        seed: np.random.SeedSequence | None,
        *,
        is_seeded: bool,
    ):
        self._draw = draw
        self._seed = seed
        self._numbers = count()
        self._process = os.getpid()
        self.is_seeded = is_seeded

    @classmethod
    def system(cls) -> Self:
        """Words of the operating system's generator (getrandom): the only source that protects anybody."""
        return cls(_system_words, None, is_seeded=False)

    @classmethod
    def seeded(cls, seed: np.random.SeedSequence) -> Self:
        """Words for a simulation that must be repeatable: numpy's SFC64, whose stream numpy promises not to change.

        SFC64 is the fastest of numpy's generators (2 ns a word) and passes the usual test batteries, but it is not
        cryptographic: a seeded run protects nobody.
        """
        return cls(np.random.SFC64(seed).random_raw, seed, is_seeded=True)

    def block(self, n: int) -> NDArray[np.uint64]:
        """The next n words, uint64 [n]."""
        self._check_process()
        return self._draw(n)

    def below(self, k: int | NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
        """n values, each exactly uniform on 0 .. k - 1, uint64 [n]; k at most 2^63.

        For k [m], one range a column: uint64 [n, m].
        """
        divisor = np.asarray(k, dtype=np.uint64)
        # words of the last, incomplete run of k values would favour the small ones: they are drawn again
        last = _LARGEST - (_LARGEST % divisor + np.uint64(1)) % divisor
        words = self.block(n * divisor.size).reshape(n, *divisor.shape)
        rejected = words > last
        while rejected.any():
            words[rejected] = self.block(int(rejected.sum()))
            rejected = words > last
        values: NDArray[np.uint64] = words - words // divisor * divisor  # numpy has no fast remainder
        return values

    def generator(self) -> np.random.Generator:
        """A numpy generator for `Oracle.sample_totals`, apart from the blocks and from every other generator of these words."""
        self._check_process()
        if self._seed is None:
            child = np.random.SeedSequence(int.from_bytes(os.urandom(32), "little"))
        else:
            number = next(self._numbers)
            key = (*self._seed.spawn_key, _GENERATOR_KEY, *([number] if number else []))
            child = np.random.SeedSequence(self._seed.entropy, spawn_key=key, pool_size=self._seed.pool_size)
        return np.random.Generator(np.random.PCG64DXSM(child))

    def _check_process(self) -> None:
        if self.is_seeded and os.getpid() != self._process:
            raise ConfigError(
                "words: the coins of a seed belong to the process that made them; here they would repeat. Make new ones in "
                "each process, from a seed of its own: Words.seeded(np.random.SeedSequence([1, number]))"
            )


def _system_words(n: int) -> NDArray[np.uint64]:
    return np.frombuffer(bytearray(os.urandom(8 * n)), dtype=np.uint64)
