"""Names of equal rows where each row is a holder: which copy a row is, the same in every run that asks it.

Equal rows of one file are different people: the first, the second and so on. Equal rows of two files of one run are also
different people, if there are as few as chance makes where rows say little. If two files share more rows than that, one is a
copy of the other (in another format, or with rows added), and the shared rows are the same people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from storage.stable_hash import mixed

Hashes = NDArray[np.uint64]
MANY = 1 << 16
BY_CHANCE = 2
"""Chance makes about as many pairs of equal rows between two files as within them; up to so many times as many are its work."""


@dataclass(frozen=True)
class _File:
    """The rows of one file, and the names they were given."""

    digests: Hashes
    given: Hashes

    def is_like(self, other: Hashes) -> bool:
        """Whether another file has some of these rows, by no accident of rows that are equal anyway."""
        mine, others = np.sort(self.digests), np.sort(other)
        if np.array_equal(mine, others):
            return True
        in_common = int(_count(mine, others).sum())
        return in_common > BY_CHANCE * (_equal_pairs(mine) + _equal_pairs(others))

    def names(self, alone: Hashes) -> tuple[NDArray[np.bool_], Hashes]:
        """Which rows of another file are in this one, by their names in either file alone, and the names given to them here."""
        own = _name(self.digests, _occurrence(self.digests))
        order = np.argsort(own)
        at, is_there = _place(alone, own[order])
        return is_there, self.given[order[at[is_there]]]


class RowNames:
    """Names for the rows of the files of one run, given file by file."""

    def __init__(self) -> None:
        self._files: list[_File] = []

    def of(self, digests: Hashes, kept: tuple[NDArray[np.int64], Hashes] | None = None) -> Hashes:
        """The name of each row of the next file. `kept`: rows of it, by their places, whose names an earlier run gave."""
        nth, before = _occurrence(digests), _count(digests, self._known())
        given = _name(digests, nth + before)
        for other in self._files if before.any() else ():
            if other.is_like(digests):
                is_there, names = other.names(_name(digests, nth))
                given[is_there] = names
        if kept is not None:
            given[kept[0]] = kept[1]
        self._files.append(_File(digests, given))
        return given

    def _known(self) -> Hashes:
        """The digests of all files so far, sorted; none is sorted for the only file."""
        if not self._files:
            return np.empty(0, np.uint64)
        return np.sort(np.concatenate([file.digests for file in self._files]))


def _name(digests: Hashes, nth: NDArray[np.int64]) -> Hashes:
    """The first of equal rows is known by its digest, every other by that and its number."""
    again = nth > 0
    named = digests.copy()
    named[again] = mixed(mixed(digests[again], 1) + nth[again].astype(np.uint64), 2)
    return named


def _occurrence(digests: Hashes) -> NDArray[np.int64]:
    """How many equal digests stand before each, int64 [n]."""
    nth = np.zeros(len(digests), np.int64)
    ordered = np.sort(digests)
    several = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    rows = np.flatnonzero(_place(digests, several)[1])  # mostly few, or none
    order = rows[np.argsort(digests[rows], kind="stable")]
    is_first = np.append(True, digests[order][1:] != digests[order][:-1])[: len(order)]
    place = np.arange(len(order))
    nth[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return nth


def _equal_pairs(ordered: Hashes) -> int:
    """Pairs of equal digests in a sorted list."""
    edges = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    counts = np.diff(np.append(edges, len(ordered)))
    return int((counts * (counts - 1) // 2).sum())


def _count(digests: Hashes, ordered: Hashes) -> NDArray[np.int64]:
    """How often each digest stands in a sorted list."""
    if not len(ordered):
        return np.zeros(len(digests), np.int64)
    return _search(ordered, digests, "right") - _search(ordered, digests, "left")


def _place(names: Hashes, ordered: Hashes) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each name stands in a sorted list without repetition, and whether it is there."""
    if not len(ordered):
        return np.zeros(len(names), np.int64), np.zeros(len(names), bool)
    at = np.minimum(_search(ordered, names, "left"), len(ordered) - 1)
    return at, ordered[at] == names


def _search(ordered: Hashes, values: Hashes, side: Literal["left", "right"]) -> NDArray[np.int64]:
    """`np.searchsorted`, which walks long lists many times faster in their own order."""
    if len(ordered) < MANY:
        return np.searchsorted(ordered, values, side)
    order = np.argsort(values)
    found = np.empty(len(values), np.int64)
    found[order] = np.searchsorted(ordered, values[order], side)
    return found
