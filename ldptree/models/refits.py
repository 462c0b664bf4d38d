"""Models that might have been released, had the answers of a run in rounds been drawn anew: how they differ is the noise of
what is released. What a draw is, each curator says (`rounds.Curator.refit`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from ldptree.protocol.question import Answers, Curator, Shown

M = TypeVar("M")

REFITS, FEWEST_REFITS = 16, 8
"""A standard deviation of k refits is itself off by about 1 / sqrt(2 (k - 1)): 18 % of 16, 27 % of 8."""
MOST_HOLDERS = 1_600_000


def refits(
    curator: Curator[M],
    shown: Shown,
    answers: Sequence[Answers],
    released: M,
    *,
    seed: int,
    n_refits: int | None = None,
) -> list[M]:
    """Independent draws, given the questions; the same for a seed and the same transcript.

    Args:
        curator: who asked.
        shown: what everybody can see.
        answers: of all rounds.
        released: what the curator's `fit` gave for them.
        seed: of the run's public coins.
        n_refits: how many; `affordable` where none is said.
    """
    coins = np.random.SeedSequence([seed, int(transcript_digest(answers), 16)]).spawn(
        affordable(shown.n) if n_refits is None else n_refits
    )
    return [curator.refit(shown, answers, released, np.random.default_rng(one)) for one in coins]


def affordable(n_holders: int) -> int:
    """`REFITS`, of many holders fewer: `MOST_HOLDERS` in all refits together, but at least `FEWEST_REFITS`."""
    return int(np.clip(MOST_HOLDERS // max(n_holders, 1), FEWEST_REFITS, REFITS))


def transcript_digest(answers: Sequence[Answers]) -> str:
    """SHA-256 (hex) of every question, who answered and what."""
    sha = hashlib.sha256()
    for one in answers:
        sha.update(one.question.digest.encode())
        sha.update(np.ascontiguousarray(one.holders, dtype="<i8").data)
        sha.update(np.ascontiguousarray(one.reports).data)
    return sha.hexdigest()
