"""Coins that fall the same each time, for every test that draws some."""

from __future__ import annotations

import numpy as np

from ldptree.coins import Words


def words(*key: int) -> Words:
    """The words of a seed."""
    return Words.seeded(np.random.SeedSequence(list(key)))
