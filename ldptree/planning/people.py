"""Private people as public rows play them: drawn from rows that nothing was fitted on, alike or different.

Where public coins chose the public rows, private people are like them. A rule makes a group of them: the others may answer
differently, lie elsewhere in space, or beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.encoding import Encoding

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

Kind = Literal["alike", "planted", "elsewhere", "apart"]
AMONG: tuple[Kind, ...] = ("alike", "planted")
"""Private people lie where public ones do, and answer as they do, or have planted labels in a region."""
ELSEWHERE: Kind = "elsewhere"
"""They have another density."""
APART: Kind = "apart"
"""They lie in a part of space that has no public row."""
SHARES = {"fitted": 0.6, "drawn": 0.2}
"""Of the public rows: those that the public model is fitted on, and those that play respondents."""
TILT = 1.0
"""People elsewhere: their density is e^(TILT z) times that of public rows, z one standardised feature."""
APART_SHARES = (0.05, 0.5)
"""Of the public rows: those that play people who are apart, any share between these, as a group may be small or large."""
TRIES = 50


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownRows:
    """Public rows, or people that they play.

    Attributes:
        encoding: how a row is read.
        raw: float64 [n, columns], every row encodable.
        labels: class indices or numbers, [n].
        label: the declared classes, or the two ends of a number's range.
        protects: bool [n, d], what each protects where some features are public; else nothing.
        chance: float64 [n], how likely each row is to be drawn; sums to 1.
    """

    encoding: Encoding
    raw: Floats
    labels: NDArray[Any]
    label: tuple[Any, ...]
    protects: Mask
    chance: Floats

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def is_number(self) -> bool:
        """Whether the label is a number."""
        return self.labels.dtype.kind == "f"

    def part(self, rows: NDArray[np.integer]) -> KnownRows:
        """These rows, all equally likely."""
        even = np.full(len(rows), 1.0 / max(len(rows), 1))
        return replace(
            self, raw=self.raw[rows], labels=self.labels[rows], protects=self.protects[rows], chance=even
        )

    def draw(self, n: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Rows of n people drawn with replacement, int64 [n], increasing."""
        return np.repeat(np.arange(self.n), generator.multinomial(n, self.chance))


@dataclass(frozen=True, eq=False)
class Split:
    """Public rows in parts: what a public model is fitted on, who answers, and others.

    Scored are those who answer and the others, with equal weights: many people who are drawn from few rows repeat the chance of
    these rows, and what a model learns of it helps with them as much as it hurts with others.
    """

    fitted: KnownRows
    drawn: KnownRows
    others: KnownRows

    @property
    def scored(self) -> KnownRows:
        """Those who answer, then the others."""
        parts = self.drawn, self.others
        return replace(
            self.drawn,
            raw=np.concatenate([one.raw for one in parts]),
            labels=np.concatenate([one.labels for one in parts]),
            protects=np.concatenate([one.protects for one in parts]),
            chance=np.concatenate([one.chance / 2.0 for one in parts]),
        )

    @classmethod
    def of(cls, rows: KnownRows, generator: np.random.Generator, *, in_rounds: bool = False) -> Split:
        """A random split. `in_rounds`: nothing is fitted on public rows, so that they may answer too."""
        order = generator.permutation(rows.n)
        first, second = (int(rows.n * share) for share in (SHARES["fitted"], 1.0 - SHARES["drawn"]))
        return cls(
            rows.part(np.sort(order[:first])),
            rows.part(np.sort(order[0 if in_rounds else first : second])),
            rows.part(np.sort(order[second:])),
        )

    @classmethod
    def apart(cls, rows: KnownRows, generator: np.random.Generator) -> Split:
        """People from one side of a threshold on one feature; the model is fitted on the other side alone."""
        is_apart = draw_region(rows.encoding.encode(rows.raw), generator.uniform(*APART_SHARES), generator)
        people = generator.permutation(np.flatnonzero(is_apart))
        half = len(people) // 2
        return cls(
            rows.part(np.flatnonzero(~is_apart)),
            rows.part(np.sort(people[:half])),
            rows.part(np.sort(people[half:])),
        )


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What the public model is wrong by, and in how much of space.

    Attributes:
        size: of a class, the change of its share (0 to 1); of a number, in the label's unit.
        share: of people, in a region of one feature.
    """

    size: float
    share: float


def differ(
    split: Split, difference: Difference | None, generator: np.random.Generator, *, is_elsewhere: bool = False
) -> tuple[KnownRows, KnownRows]:
    """The people who respond and those who are scored on, who differ from public people in the same way.

    Args:
        split: the public rows.
        difference: of their labels; None: they answer as public people do.
        generator: draws how they differ.
        is_elsewhere: whether they have another density.
    """
    scored = split.scored
    if is_elsewhere or difference is not None:
        X = scored.encoding.encode(scored.raw)
        if is_elsewhere:
            chance = scored.chance * _tilt(X, generator)
            scored = replace(scored, chance=chance / chance.sum())
        if difference is not None:
            region = draw_region(X, difference.share, generator)
            labels = _plant(scored.labels, scored.label, region, difference.size, generator)
            scored = replace(scored, labels=labels)
    n, chance = split.drawn.n, scored.chance[: split.drawn.n]
    return replace(split.drawn, labels=scored.labels[:n], chance=chance / chance.sum()), scored


def draw_region(X: NDArray[np.float32], share: float, generator: np.random.Generator) -> Mask:
    """bool [n]: one side of a threshold on one encoded feature, with about `share` of the rows; any of them where none fits."""
    for _ in range(TRIES):
        x = X[:, generator.integers(X.shape[1])]
        is_in = x >= np.quantile(x, 1 - share) if generator.random() < 0.5 else x <= np.quantile(x, share)
        if share / 2 <= is_in.mean() <= 2 * share:
            return np.asarray(is_in)
    return np.asarray(generator.random(len(X)) < share)


def _tilt(X: NDArray[np.float32], generator: np.random.Generator) -> Floats:
    x = X[:, generator.integers(X.shape[1])].astype(np.float64)
    z = np.clip((x - x.mean()) / (x.std() or 1.0), -3.0, 3.0)
    return np.asarray(np.exp(TILT * generator.choice((-1.0, 1.0)) * z))


def _plant(
    labels: NDArray[Any], label: tuple[Any, ...], is_in: Mask, size: float, generator: np.random.Generator
) -> NDArray[Any]:
    """The labels with those of a region changed: the share of a class, or a number, moves up or down by `size`."""
    is_up = generator.random() < 0.5
    if labels.dtype.kind == "f":
        moved = labels + np.where(is_in, size if is_up else -size, 0.0)
        return np.asarray(np.clip(moved, label[0], label[1]))
    one = generator.integers(len(label))
    has = labels == one
    movable = is_in & (~has if is_up else has)
    of_these = movable.sum() / max(is_in.sum(), 1)
    moves = movable & (generator.random(len(labels)) < min(1.0, size / max(of_these, 1e-9)))
    others = (one + generator.integers(1, len(label), size=len(labels))) % len(label)
    return np.where(moves, one if is_up else others, labels)
