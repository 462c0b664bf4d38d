"""Private rows in memory, as only a simulation may have them, some held back to score on, some learned from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.baselines import BASELINES, select_baselines
from ldptree.coins import Words
from ldptree.errors import ConfigError
from ldptree.inference.shares import raised
from ldptree.mechanisms import Mechanism
from ldptree.protocol.protocol import Protocol
from ldptree.simulate.redraws import KnownHolders
from schemas.tables import EvaluateConfig
from storage import tables
from storage.holders.holder_names import place_in
from tasks import progress
from tasks.perturb import labels_of, values_of

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""At which the same question is answered again, to show what another privacy cost would have given."""
MOST_DRAWS = 8
"""Of each of them, whatever the number of redraws at the run's own."""
MOST_REDRAWS = 1000


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The questions, the model and everything that a trial is scored with.

    protocol     the last question.
    learned      the released model.
    evidence     what public rows say of the question.
    public_rows  scaled, and their labels.
    shards       files of everybody who was asked, in an order that no work folder changes.
    how          how totals became the model.
    words        the coins of a redraw, by its number.
    """

    protocol: Protocol
    learned: Any
    evidence: Any
    public_rows: tuple[NDArray[np.float32], NDArray[Any]]
    shards: Sequence[Path]
    how: dict[str, Any]
    evaluation: EvaluateConfig
    seed: int
    words: Callable[[int], Words]

    @property
    def classes(self) -> int:
        """C, 0 where the label is a number."""
        return len(self.protocol.label_classes)

    def known(self) -> Iterator[Known]:
        """What is known of each shard, in their order, two at once."""
        with ThreadPoolExecutor(2) as pool:
            yield from pool.map(partial(know, protocol=self.protocol), self.shards)

    def gather_known(self) -> list[NDArray[Any]]:
        """Gather the facts of everybody, in one array each."""
        return [np.concatenate(parts) for parts in zip(*self.known(), strict=True)]

    def redraw(self, score: Callable[[Mechanism, Words], float]) -> dict[str, Any]:
        """Return the chief score over redraws, at the run's own epsilon ("redraws") and at each ("epsilons").

        `score`: of the model that a mechanism's reports with these coins would have given.
        """
        n, asked = self.evaluation.redraws, self.protocol.mechanism
        own = [score(asked, self.words(number)) for number in range(n)]
        redraws = {self.protocol.epsilon: own}
        for place, epsilon in enumerate(EPSILONS, start=1):
            if epsilon == self.protocol.epsilon or not n:
                continue
            try:
                other = asked.at_epsilon(epsilon)
            except ConfigError:  # so little that its reports would carry nothing
                continue
            first = place * MOST_REDRAWS
            redraws[epsilon] = [
                score(other, self.words(first + number)) for number in range(min(n, MOST_DRAWS))
            ]
        drawn = [{"epsilon": epsilon, "redraws": redraws[epsilon]} for epsilon in sorted(redraws) if n]
        return {"redraws": own, "epsilons": drawn}

    def rivals(self, raw: NDArray[np.float64]) -> dict[str, Callable[[], NDArray[np.float64]]]:
        """Return each baseline as a call that predicts raw rows, as shares [n, C], none of them 0, or numbers [n]."""
        test_X = self.protocol.encoding.encode(raw)
        caps = {"public": self.evaluation.public_rows, "private": self.evaluation.private_rows}

        def fit(key: str) -> NDArray[np.float64]:
            baseline = BASELINES[key]
            X, y = self.public_rows
            if baseline.reads == "private":
                X, y = some_private(self.shards, self.protocol, caps["private"], self.seed)
            answers = baseline.fit_predict(
                X, y, test_X, n_classes=self.classes, max_rows=caps[baseline.reads], seed=self.seed
            )
            return raised(answers, min(len(y), caps[baseline.reads])) if self.classes else answers

        return {key: partial(fit, key) for key in select_baselines(self.classes)}


def answer_all(
    rivals: Mapping[str, Callable[[], NDArray[np.float64]]], start: float
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Every rival's predictions by its key, in their order. `start`: how far the step is, which is then nearly done."""
    with ThreadPoolExecutor(2) as pool:
        # The last take longest: begun first, they do not end alone.
        answers = {key: pool.submit(rivals[key]) for key in reversed([*rivals])}
        for done, key in enumerate(rivals, start=1):
            yield key, answers[key].result()
            progress.advance(start + (0.9 - start) * done / len(rivals))


@dataclass(frozen=True)
class Rows:
    """Private rows, a raw matrix [n, columns] and labels [n], as numbers or class indices (-1 for no class)."""

    raw: NDArray[np.float64]
    labels: NDArray[Any]

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Return bool [n] with True for rows whose label can be scored."""
        is_known: NDArray[np.bool_] = (
            self.labels >= 0 if self.labels.dtype.kind == "i" else ~np.isnan(self.labels)
        )
        return is_known


def read_rows(
    paths: Sequence[Path], protocol: Protocol, *, at_most: int | None = None, seed: int = 0
) -> Rows:
    """Read private rows of Parquet files, all of them or a draw as of `read_drawn`; of those only the ones with a label."""
    table = read_drawn(paths, [*protocol.encoding.columns, protocol.target], at_most=at_most, seed=seed)
    table = table.filter(table.column(protocol.target).is_valid())
    return Rows(
        tables.raw_matrix(table, protocol.encoding), labels_of(table.column(protocol.target), protocol)
    )


def read_drawn(paths: Sequence[Path], columns: Sequence[str], *, at_most: int | None, seed: int) -> pa.Table:
    """Read rows of Parquet files in order, all or `at_most` so many drawn with the seed, keeping no others."""
    n = sum(pq.read_metadata(path).num_rows for path in paths)
    if at_most is None or n <= at_most:
        return tables.read(paths, columns)
    drawn = np.sort(np.random.default_rng(seed).choice(n, at_most, replace=False))
    chosen: list[pa.Table] = []
    first = 0
    for table in tables.batches(paths, columns):
        start, stop = np.searchsorted(drawn, [first, first + table.num_rows])
        chosen.append(table.take(drawn[start:stop] - first))
        first += table.num_rows
    return pa.concat_tables(chosen)


def some_private(
    shards: Sequence[Path], protocol: Protocol, n: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """About `n` encoded private rows and their labels, an equal share of every shard."""
    shares, labels = [], []
    sizes = [rows.num_rows for path in shards for rows in tables.batches([path], [protocol.target])]
    keep = min(1.0, n / max(sum(sizes), 1))
    generator = np.random.default_rng(seed)
    for table in tables.batches(shards, [*protocol.encoding.columns, protocol.target]):
        drawn = table.filter(pa.array(generator.random(table.num_rows) < keep))
        rows = Rows(
            tables.raw_matrix(drawn, protocol.encoding), labels_of(drawn.column(protocol.target), protocol)
        )
        usable = rows.is_known & protocol.encoding.encodable(rows.raw)
        shares.append(protocol.encoding.encode(rows.raw[usable]))
        labels.append(rows.labels[usable])
    return np.concatenate(shares), np.concatenate(labels)


def duplicates(train: Sequence[Path], test: Sequence[Path]) -> int:
    """Count the test rows that have an exact copy among the training rows."""
    if not test:
        return 0
    wanted, rows = np.unique(np.concatenate([*_hashes(test)]), return_counts=True)
    is_copied = np.zeros(wanted.size, dtype=bool)
    for hashes in _hashes(train):
        at, is_there = place_in(wanted, hashes)
        is_copied[at[is_there]] = True
    return int(rows[is_copied].sum())


def _hashes(paths: Sequence[Path]) -> Iterator[NDArray[np.uint64]]:
    """uint64 [rows], a row group at a time."""
    import polars as pl

    for table in tables.batches(paths):
        yield cast("pl.DataFrame", pl.from_arrow(table)).hash_rows(seed=0).to_numpy()


Known = tuple[NDArray[Any], ...]
"""The truth about one shard. For classes it is how many would report each value, int64 [k], for a number cells and
labels, [n] each, and for a corrected public model cells [n] and residuals [n, M].
"""


def know(path: Path, protocol: Protocol) -> Known:
    """Read the facts of everybody in one shard."""
    if protocol.base is not None:
        return _residuals(path, protocol)
    if not protocol.numeric:
        return (np.bincount(values_of(path, protocol), minlength=protocol.k).astype(np.int64),)
    labels = labels_of(tables.read([path], [protocol.target]).column(protocol.target), protocol)
    # Of the values only the cells are kept: how a label is rounded is of no matter.
    values = values_of(path, protocol, Words.seeded(np.random.SeedSequence(0)))
    holders = KnownHolders.of(protocol, [(values, labels)])
    return holders.cells, holders.labels


def _residuals(path: Path, protocol: Protocol) -> Known:
    """The cells of those whom the question asks, and how wrong the public model is for each."""
    base = protocol.base
    assert base is not None
    cells, residuals = [], []
    for table in tables.batches([path], [*protocol.encoding.columns, protocol.target]):
        raw = tables.raw_matrix(table, protocol.encoding)
        labels = labels_of(table.column(protocol.target), protocol)
        cells.append(protocol.cells(raw))
        residuals.append(base.errors(protocol.encoding, raw, labels).astype(np.float32))
    asked = protocol.respondents(sum(map(len, cells)))
    return np.concatenate(cells)[asked], np.concatenate(residuals)[asked]
