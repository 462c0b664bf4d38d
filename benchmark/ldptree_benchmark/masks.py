"""Masks of the features that each person protects, drawn anew for each repetition. True is protected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import ConfigError
from ldptree_benchmark.suite import Split, check_one_of

Mask = NDArray[np.bool_]


def draw_mask(
    columns: Sequence[str], n: int, split: Split, rng: np.random.Generator, *, dataset: str
) -> Mask:
    """bool [n, d] of n people of a set for its encoded columns, by `Split.private` and `Split.personal`.

    Raises ConfigError: a feature of `private` is not there.
    """
    of_columns = [_feature_of(column) for column in columns]
    features = list(dict.fromkeys(of_columns))
    for name in split.private:
        try:
            check_one_of(name, features, "private", f"feature of {dataset}")
        except ValueError as fault:
            raise ConfigError(str(fault)) from None
    ordered = [*split.private, *(name for name in features if name not in split.private)]
    n_private = len(split.private)
    protects = (
        thin_mask(n, len(ordered), n_private, rng)
        if split.personal
        else align_mask(n, len(ordered), n_private)
    )
    return protects[:, [ordered.index(name) for name in of_columns]]


def align_mask(n: int, d: int, n_private: int) -> Mask:
    """Everybody protects the first features."""
    return np.broadcast_to(np.arange(d) < n_private, (n, d)).copy()


def thin_mask(n: int, d: int, n_private: int, rng: np.random.Generator) -> Mask:
    """Return W of HistOfTree's section 5.2, where feature l (from 1) is protected by n / 10^floor(l / s) people.

    The paper's first people protect most; here people are put in a random order.
    """
    tenths = np.arange(1, d + 1) // n_private
    protects: Mask = np.arange(1, n + 1)[:, None] <= n / 10.0 ** tenths[None, :]
    return protects[rng.permutation(n)]


def thin_mask_by_power(n: int, d: int, gamma: float) -> Mask:
    """Return W_gamma of HistOfTree's section 5.1. The first n / l^gamma people protect feature l (from 1)."""
    protects: Mask = np.arange(1, n + 1)[:, None] <= n / np.arange(1, d + 1)[None, :] ** gamma
    return protects


def _feature_of(column: str) -> str:
    """The feature whose indicator an encoded column is, or itself."""
    return column.split(" = ", maxsplit=1)[0].removesuffix(" is missing")
