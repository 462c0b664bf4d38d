"""Names of equal rows where each row is a holder: which copy a row is, the same in every run that asks it.

Equal rows of one file are different people: the first, the second and so on. Equal rows of two files of one run are also
different people, if there are as few as chance makes where rows say little. If two files share more rows than that, one is a
copy of the other (in another format, or with rows added), and the shared rows are the same people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from storage.holders.sorted_hashes import Hashes, count_in, merge, place_in
from storage.stable_hash import mixed

BY_CHANCE = 2
"""Chance makes about as many pairs of equal rows between two files as within them; up to so many times as many are its work."""


@dataclass(frozen=True)
class _File:
    """The rows of one file, also sorted, how many pairs of them are equal, and the names they were given."""

    digests: Hashes
    ordered: Hashes
    equal_pairs: int
    given: Hashes

    def is_like(self, other: _File) -> bool:
        """Whether another file has some of these rows, by no accident of rows that are equal anyway."""
        if np.array_equal(self.ordered, other.ordered):
            return True
        in_common = int(count_in(self.ordered, other.ordered).sum())
        return in_common > BY_CHANCE * (self.equal_pairs + other.equal_pairs)

    def names(self, alone: Hashes) -> tuple[NDArray[np.bool_], Hashes]:
        """Which rows of another file are in this one, by their names in either file alone, and the names given to them here."""
        own = _name(self.digests, _occurrence(self.digests, self.ordered))
        order = np.argsort(own)
        at, is_there = place_in(own[order], alone)
        return is_there, self.given[order[at[is_there]]]


class RowNames:
    """Names for the rows of the files of one run, given file by file."""

    def __init__(self) -> None:
        self._files: list[_File] = []
        self._known = np.empty(0, np.uint64)  # the digests of all files so far, sorted

    def of(self, digests: Hashes, kept: tuple[NDArray[np.int64], Hashes] | None = None) -> Hashes:
        """The name of each row of the next file. `kept`: rows of it, by their places, whose names an earlier run gave."""
        ordered = np.sort(digests)
        nth = _occurrence(digests, ordered)
        before = count_in(self._known, digests) if len(self._known) else np.zeros(1, np.int64)
        file = _File(digests, ordered, _equal_pairs(ordered), given=_name(digests, nth + before))
        for other in self._files if before.any() else ():
            if other.is_like(file):
                is_there, names = other.names(_name(digests, nth))
                file.given[is_there] = names
        if kept is not None:
            file.given[kept[0]] = kept[1]
        self._files.append(file)
        self._known = merge(self._known, ordered)
        return file.given


def _name(digests: Hashes, nth: NDArray[np.int64]) -> Hashes:
    """The first of equal rows is known by its digest, every other by that and its number."""
    again = nth > 0
    named = digests.copy()
    named[again] = mixed(mixed(digests[again], 1) + nth[again].astype(np.uint64), 2)
    return named


def _occurrence(digests: Hashes, ordered: Hashes) -> NDArray[np.int64]:
    """How many equal digests stand before each, int64 [n]; `ordered`: the same, sorted."""
    nth = np.zeros(len(digests), np.int64)
    several = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    rows = np.flatnonzero(place_in(several, digests)[1])  # mostly few, or none
    order = rows[np.argsort(digests[rows], kind="stable")]
    is_first = np.append(True, digests[order][1:] != digests[order][:-1])[: len(order)]
    place = np.arange(len(order))
    nth[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return nth


def _equal_pairs(ordered: Hashes) -> int:
    """Pairs of equal digests in a sorted list."""
    again = np.flatnonzero(ordered[1:] == ordered[:-1])  # mostly few, or none
    ends = np.flatnonzero(np.append(np.diff(again) > 1, True))[: len(again)]
    runs = np.diff(ends, prepend=-1)  # of one digest more than it repeats
    return int((runs * (runs + 1) // 2).sum())
