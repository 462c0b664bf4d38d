"""Ways to look at the reports of two inputs that may tell the inputs apart: the events an audit chooses from.

What lives here: reports in two halves, and of each way the symbol that it sees in a report. What does not: which event is chosen,
and what its counts prove (`audit`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

# an output view looks at no more different outputs than this, and at no wider ones than a word
_MOST_OUTPUTS = 4096
_WORD_BYTES = 8
# bits or numbers looked at together
_COLUMNS = 4
# binary digits of floating-point numbers that are told apart: the lowest is 2^-64 or below, the highest 2^-40 or above
_LOWEST, _HIGHEST = -64, -40


@dataclass(frozen=True)
class Half:
    """Reports, and which of them support each of the inputs looked at (nothing where a report supports no value)."""

    reports: NDArray[Any]
    supported: Mapping[int, NDArray[np.bool_]]

    def first(self, n: int) -> Half:
        """The first n."""
        return Half(self.reports[:n], {value: found[:n] for value, found in self.supported.items()})


@dataclass(frozen=True)
class Sample:
    """Reports of one input: half to choose an event by, half to judge it by."""

    choosing: Half
    judging: Half

    @cached_property
    def bit_means(self) -> NDArray[np.float64]:
        """How often each bit of the bytes of a report is set."""
        raw = _bytes(self.choosing.reports)
        counts = np.zeros(8 * raw.shape[1])
        step = max(1, 2**20 // raw.shape[1])
        for start in range(0, raw.shape[0], step):
            counts += np.unpackbits(raw[start : start + step], axis=1, bitorder="little").sum(axis=0)
        means: NDArray[np.float64] = counts / raw.shape[0]
        return means

    @cached_property
    def number_means(self) -> NDArray[np.float64]:
        """The mean of each number of a report."""
        means: NDArray[np.float64] = _numbers(self.choosing.reports).mean(axis=0)
        return means


@dataclass(frozen=True)
class View:
    """One way to look at reports: a symbol each, below size."""

    kind: str
    size: int
    symbols: Callable[[Half], NDArray[np.int64]]
    words: Callable[[NDArray[np.int64]], str]


def views(pair: tuple[int, int], ours: Sample, theirs: Sample) -> Iterator[View]:
    """Every way to look at these reports that may tell the two inputs apart."""
    dtype = ours.choosing.reports.dtype
    if ours.choosing.supported:
        yield _supports_view(pair)
    yield from _outputs_view(ours, theirs)
    if dtype.kind == "u":
        yield _bits_view(ours, theirs)
    else:
        columns = _telling(ours.number_means, theirs.number_means)
        yield _numbers_view(columns, ours, theirs)
        if dtype.kind == "f":
            yield from map(_grid_view, columns.tolist())


def _telling(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.int64]:
    """The few columns whose means differ most."""
    return np.sort(np.argsort(-np.abs(ours - theirs), kind="stable")[:_COLUMNS])


def _numbers(reports: NDArray[Any]) -> NDArray[Any]:
    """[n, m], also where a report is one number."""
    return reports.reshape(reports.shape[0], -1)


def _bytes(reports: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(reports).view(np.uint8).reshape(reports.shape[0], -1)


def _supports_view(pair: tuple[int, int]) -> View:
    def symbols(half: Half) -> NDArray[np.int64]:
        ours, theirs = (half.supported[value].astype(np.int64) for value in pair)
        return 2 * ours + theirs

    names = ("neither", "x' and not x", "both", "x and not x'")
    order = (0, 1, 3, 2)
    return View("supports", 4, symbols, lambda chosen: " or ".join(names[order[s]] for s in sorted(chosen)))


def _outputs_view(ours: Sample, theirs: Sample) -> Iterator[View]:
    """Whole reports, where they are narrow and few."""
    if _bytes(ours.choosing.reports[:1]).size > _WORD_BYTES:
        return

    def words_of(reports: NDArray[Any]) -> NDArray[np.uint64]:
        raw = _bytes(reports)
        padded = np.zeros((raw.shape[0], _WORD_BYTES), dtype=np.uint8)
        padded[:, : raw.shape[1]] = raw
        return padded.view(np.uint64)[:, 0]

    known = np.unique(words_of(np.concatenate([ours.choosing.reports, theirs.choosing.reports])))
    if known.size > _MOST_OUTPUTS:
        return

    def symbols(half: Half) -> NDArray[np.int64]:
        raw = words_of(half.reports)
        place = np.searchsorted(known, raw)
        is_known = known[np.minimum(place, known.size - 1)] == raw
        return np.where(is_known, place, known.size).astype(np.int64)

    yield View(
        "outputs", known.size + 1, symbols, lambda chosen: f"{len(chosen)} of {known.size} outputs seen"
    )


def _bits_view(ours: Sample, theirs: Sample) -> View:
    columns = _telling(ours.bit_means, theirs.bit_means)

    def symbols(half: Half) -> NDArray[np.int64]:
        raw = _bytes(half.reports)
        bits = (raw[:, columns >> 3] >> (columns & 7).astype(np.uint8)) & 1
        return bits.astype(np.int64) @ (1 << np.arange(columns.size))

    size = 1 << columns.size
    places = ", ".join(map(str, columns))
    return View("bits", size, symbols, lambda chosen: f"{len(chosen)} of {size} patterns of bits {places}")


def _numbers_view(columns: NDArray[np.int64], ours: Sample, theirs: Sample) -> View:
    """Which third each number lies in."""
    pooled = np.concatenate([_numbers(half.reports)[:, columns] for half in (ours.choosing, theirs.choosing)])
    edges = np.quantile(pooled, [1 / 3, 2 / 3], axis=0, method="lower")

    def symbols(half: Half) -> NDArray[np.int64]:
        thirds = (_numbers(half.reports)[:, columns, None] > edges.T).sum(axis=2)
        return np.asarray(thirds @ (3 ** np.arange(columns.size)))

    size = 3**columns.size
    places = ", ".join(map(str, columns))
    return View(
        "numbers", size, symbols, lambda chosen: f"{len(chosen)} of {size} regions of numbers {places}"
    )


def _grid_view(column: int) -> View:
    """The lowest binary digit of a number: 1 + noise has lost the digits that noise alone has."""

    def symbols(half: Half) -> NDArray[np.int64]:
        mantissa, exponent = np.frexp(_numbers(half.reports)[:, column].astype(np.float64))
        digits = np.ldexp(mantissa, 53).astype(np.int64)
        trailing = np.frexp((digits & -digits).astype(np.float64))[1] - 1
        lowest = np.where(digits == 0, _HIGHEST, exponent - 53 + trailing)
        return np.clip(lowest, _LOWEST, _HIGHEST).astype(np.int64) - _LOWEST

    def words(chosen: NDArray[np.int64]) -> str:
        digits = (chosen + _LOWEST).tolist()
        return f"number {column}'s lowest binary digit is 2^{min(digits)} to 2^{max(digits)}"

    return View("floating-point grid", _HIGHEST - _LOWEST + 1, symbols, words)
