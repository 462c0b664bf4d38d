"""Private people played by public rows, alike or different, with the features of rows that nothing was fitted on.

Where public coins chose the public rows, private people are like them. A rule makes a group of them: the others may answer
differently, or lie beyond it in space.

Their labels are drawn anew for each, from what people with the features of a public row may answer. Thousands of people who
repeat the labels of a few hundred rows would be a population whose every chance can be learned, and whose reports seem to gain
what no others would. A label is drawn as a quantile regression forest has it (Meinshausen, JMLR 2006): that of a random public
row in the same leaf of a random tree, which the row itself had no part in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ldptree.partition.label_unit import in_range_of_one

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.planning.known_rows import KnownRows

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Rows = NDArray[np.integer]


Kind = Literal["alike", "planted", "apart"]
AMONG: tuple[Kind, ...] = ("alike", "planted")
"""Private people lie where public ones do, and answer as they do, or have planted labels in a region."""
APART: Kind = "apart"
"""They lie in a part of space that has no public row."""
FITTED = 2 / 3
"""Part of the public rows that the public model is fitted on, of those that are not apart."""
FEWEST_PEOPLE = 10_000
"""Whom simulated people are drawn from, so that the chance of their labels is hardly any."""
APART_SHARES = (0.05, 0.5)
"""Least and largest part of the public rows that play people who are apart, as a group may be small or large."""
LEAST_LEFT = 0.25
"""Part of the public rows that is left where groups of them are apart; more would make the groups small, and so extreme."""
TRIES = 50


@dataclass(frozen=True, eq=False)
class Split:
    """Public rows in parts, and people whom some of them play.

    Attributes:
        fitted: what a public model is fitted on.
        held: rows that it had no part in, with their own labels.
        asked: rows whose features the people have.
        people: for each of those rows in turn equally many people, with labels drawn anew.
        asked_at: the place of each of those rows among all public rows, int64 [asked].
        held_among_asked: the place of each held row among those asked, int64 [held].
    """

    fitted: KnownRows
    held: KnownRows
    asked: KnownRows
    people: KnownRows
    asked_at: Rows
    held_among_asked: Rows

    @classmethod
    def of(
        cls, rows: KnownRows, law: LabelLaw, generator: np.random.Generator, *, in_rounds: bool = False
    ) -> Split:
        """Draw a random split. With `in_rounds`, nothing is fitted, so that people have all rows' features."""
        among, _ = cls.with_apart(rows, law, generator, 0, in_rounds=in_rounds)
        return among

    @classmethod
    def with_apart(
        cls,
        rows: KnownRows,
        law: LabelLaw,
        generator: np.random.Generator,
        n_apart: int,
        *,
        in_rounds: bool = False,
    ) -> tuple[Split, list[Split]]:
        """Draw people who lie among the rows of a public model, and groups of people from one side of a threshold on one feature,
        which no row of that model passes. Fitting takes longest, so that they share it.
        """
        sides = _draw_sides(rows.encoding.encode(rows.raw), n_apart, generator)
        order = generator.permutation(np.flatnonzero(~sides.any(axis=0)))
        n_fitted = int(len(order) * FITTED)
        fitted, held = np.sort(order[:n_fitted]), np.sort(order[n_fitted:])
        among = cls._of(rows, law, generator, fitted, held, np.arange(rows.n) if in_rounds else held)
        groups = [np.flatnonzero(side) for side in sides]
        return among, [cls._of(rows, law, generator, fitted, group, group) for group in groups]

    @classmethod
    def _of(
        cls,
        rows: KnownRows,
        law: LabelLaw,
        generator: np.random.Generator,
        fitted: Rows,
        held: Rows,
        asked: Rows,
    ) -> Split:
        copies = -(-FEWEST_PEOPLE // len(asked))
        labels = law.draw(asked, copies, generator).ravel()
        people = replace(rows.part(np.repeat(asked, copies)), labels=labels)
        parts = rows.part(fitted), rows.part(held), rows.part(asked)
        return cls(*parts, people, asked, np.searchsorted(asked, held))

    def of_people(self, predicted: NDArray[Any]) -> NDArray[Any]:
        """Take values of the rows asked, [asked], to the people, [people]."""
        return np.repeat(predicted, self.people.n // self.asked.n)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The error of the public model on simulated people, and the part of space that has it.

    Attributes:
        size: of a class, the change of its share (0 to 1); of a number, in the label's unit.
        share: of people, in a region of one feature.
    """

    size: float
    share: float


def plant(rows: KnownRows, difference: Difference, generator: np.random.Generator) -> KnownRows:
    """People whose labels differ in a region; of the same generator the same rows differ in the same way, whoever has their
    labels.
    """
    region = draw_region(rows.encoding.encode(rows.raw), difference.share, generator)
    return replace(rows, labels=_plant(rows.labels, rows.label, region, difference.size, generator))


def draw_region(X: NDArray[np.float32], share: float, generator: np.random.Generator) -> Mask:
    """Return bool [n] for that share of the rows, beyond a threshold on one encoded feature. Rows with an equal value
    there, as of a category, are cut by a threshold on a mix of all features.
    """
    x, mix = X[:, generator.integers(X.shape[1])], X @ generator.normal(size=X.shape[1])
    order = np.lexsort((mix, x if generator.random() < 0.5 else -x))
    is_in = np.zeros(len(X), bool)
    is_in[order[: round(share * len(X))]] = True
    return is_in


def _draw_sides(X: NDArray[np.float32], n_sides: int, generator: np.random.Generator) -> Mask:
    """Return bool [sides, n], together small enough for `LEAST_LEFT`, or the last that were tried."""
    sides = np.zeros((n_sides, len(X)), bool)
    for _ in range(TRIES):
        for side in sides:
            side[:] = _draw_side(X, generator.uniform(*APART_SHARES), generator)
        if sides.any(axis=0).mean() <= 1 - LEAST_LEFT:
            break
    return sides


def _draw_side(X: NDArray[np.float32], share: float, generator: np.random.Generator) -> Mask:
    """Return bool [n] for one side of a threshold on one encoded feature, with half to twice that share of the rows, or
    any of them if none fits.
    """
    for _ in range(TRIES):
        x = X[:, generator.integers(X.shape[1])]
        is_in = x >= np.quantile(x, 1 - share) if generator.random() < 0.5 else x <= np.quantile(x, share)
        if share / 2 <= is_in.mean() <= 2 * share:
            return np.asarray(is_in)
    return np.asarray(generator.random(len(X)) < share)


def _plant(
    labels: NDArray[Any], label: tuple[Any, ...], is_in: Mask, size: float, generator: np.random.Generator
) -> NDArray[Any]:
    """Return the labels with a region's changed. The share of a class, or a number, moves up or down by `size`."""
    is_up = generator.random() < 0.5
    if labels.dtype.kind == "f":
        moved = labels + np.where(is_in, size if is_up else -size, 0.0)
        return np.asarray(np.clip(moved, label[0], label[1]))
    chosen = generator.integers(len(label))
    has = labels == chosen
    movable = is_in & (~has if is_up else has)
    of_these = movable.sum() / max(is_in.sum(), 1)
    moves = movable & (generator.random(len(labels)) < min(1.0, size / max(of_these, 1e-9)))
    others = (chosen + generator.integers(1, len(label), size=len(labels))) % len(label)
    return np.where(moves, chosen if is_up else others, labels)


N_TREES = 100
MIN_SAMPLES_LEAF = 5


@dataclass(frozen=True, eq=False)
class LabelLaw:
    """A forest of public rows.

    Attributes:
        labels: of the rows, [n].
        leaves: int64 [n, trees], where each row lies.
        times: int64 [n, trees], how often a tree has drawn it; 0: it is out of this tree's bag.
    """

    labels: NDArray[Any]
    leaves: NDArray[np.int64]
    times: NDArray[np.int64]

    @classmethod
    def of(cls, rows: KnownRows, seed: int) -> LabelLaw:
        """Fit it; the same rows, the same law."""
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        kind = RandomForestRegressor if rows.is_number else RandomForestClassifier
        forest: Any = kind(N_TREES, min_samples_leaf=MIN_SAMPLES_LEAF, n_jobs=2, random_state=seed)
        X = rows.encoding.encode(rows.raw)
        forest.fit(X, in_range_of_one(rows.labels) if rows.is_number else rows.labels)
        times = [np.bincount(drawn, minlength=rows.n) for drawn in forest.estimators_samples_]
        return cls(rows.labels, np.asarray(forest.apply(X), dtype=np.int64), np.stack(times, axis=1))

    def draw(self, at: NDArray[np.integer], copies: int, generator: np.random.Generator) -> NDArray[Any]:
        """So many labels for each of these rows, [len(at), copies]."""
        is_in_bag = self.times[at] > 0
        n_out = np.maximum((~is_in_bag).sum(axis=1), 1)  # a row in every bag takes one of them
        out_first = np.argsort(is_in_bag, axis=1, kind="stable")
        place = (generator.random((len(at), copies)) * n_out[:, None]).astype(np.int64)
        tree_of = np.take_along_axis(out_first, place, axis=1)
        labels = np.empty(tree_of.shape, self.labels.dtype)
        for tree in range(self.leaves.shape[1]):
            which, copy = np.nonzero(tree_of == tree)
            labels[which, copy] = self._draw_from(tree, at[which], generator)
        return labels

    def _draw_from(self, tree: int, at: NDArray[np.integer], generator: np.random.Generator) -> NDArray[Any]:
        """A label for each of these rows, of the rows that this tree has drawn into its leaf."""
        drawn = np.repeat(np.arange(len(self.labels)), self.times[:, tree])
        drawn = drawn[np.argsort(self.leaves[drawn, tree], kind="stable")]
        leaves = self.leaves[drawn, tree]
        first, stop = (np.searchsorted(leaves, self.leaves[at, tree], side) for side in ("left", "right"))
        place = first + (generator.random(len(at)) * (stop - first)).astype(np.int64)
        return np.asarray(self.labels[drawn[place]])
