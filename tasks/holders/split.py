"""split: who reports, who is held back for the simulation's test, and in which shard; file by file, as who is new in one depends
on those before it. Runs with the holders. The coins of a simulation are public; those of a release are keyed with the holders'
secret, and hold back the same number whatever rows hold.

A holder is a row, known by its file and its number there, or the value of a column; then each holder answers with one row of
theirs, drawn on their side. What a holder sends is decided in `perturb`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import DataError
from schemas.dataset import ROW_NUMBER
from schemas.manifest import Arguments, Manifest
from storage import tables
from storage.digests import mixed
from storage.holders.holder_names import hash_names, merge, place_in, type_of_stored_names
from storage.ledger.campaigns import Campaign
from storage.store import Draft
from tasks import progress
from tasks.data.read import raw_file_of
from tasks.holders import cut
from tasks.holders.cut import RowRoles
from tasks.step import step

Hashes = NDArray[np.uint64]


class RoleRules(Arguments):
    """The rules by which a run's holders get their roles.

    holder        "row", or the column that names them.
    asked_before  keyed digests of a campaign's earlier files: who is named there is not asked again.
    is_public_whole  that whose name stands in a public row is not asked.
    """

    holder: str
    seed: int
    test_fraction: float
    noise_seed: int | None
    campaign: str | None
    asked_before: Sequence[str]
    is_public_whole: bool = False


class FileAsked(TypedDict):
    """What is kept of one raw file, under its keyed digest.

    rows    the first and last row kept (a range).
    shards  the shards of who is asked in it.
    """

    rows: list[int]
    shards: list[str]


@dataclass(frozen=True)
class Source:
    """The private rows of one raw file, in their order, and its plain digest."""

    paths: Sequence[Path]
    digest: str


@dataclass(frozen=True, kw_only=True)
class FileRoles:
    """The roles in one file; one entry for each of its private rows.

    file       the keyed digest of the raw file.
    rows       the first number of a row in it, and the number after the last.
    names      whose row it is, uint64; None where each row is a holder.
    asked      who reports, with this row.
    held_back  who is held back for the test.
    is_taken   whose role here a campaign keeps: they have none in a later file.
    starts     the row of the first who is asked in each shard.
    shards     the names of its shards.
    """

    file: str
    rows: tuple[int, int]
    names: Hashes | None
    asked: NDArray[np.bool_]
    held_back: NDArray[np.bool_]
    is_taken: NDArray[np.bool_]
    starts: Sequence[int]
    shards: Sequence[str]

    def write(self, folder: Path) -> None:
        """Keep who is asked where they have names, `FILE.asked.npy`, and who has a role in this file, `FILE.npy`."""
        if self.names is not None:
            np.save(folder / f"{self.file}.asked.npy", self.names[self.asked])
            np.save(folder / f"{self.file}.npy", self.names[self.is_taken])

    @property
    def asked_in(self) -> FileAsked:
        """Rows of the file, and the shards of those who are asked."""
        return FileAsked(rows=[*self.rows], shards=[*self.shards])

    def parts(self) -> Iterator[tuple[int, RowRoles]]:
        """The same by the number of a first shard, in parts that one task each cuts."""
        at_once = max(cut.PART_ROWS // cut.SHARD_ROWS, 1)
        for first in range(0, max(len(self.shards), 1), at_once):
            last = first + at_once
            start = self.starts[first] if first else 0
            stop = self.starts[last] if last < len(self.shards) else len(self.asked)
            yield (
                first,
                RowRoles(
                    start=start,
                    asked=self.asked[start:stop],
                    held_back=self.held_back[start:stop],
                    shards=self.shards[first:last],
                ),
            )


@step("split", version="7", home="holders", says="who reports, in which shard, and who is kept aside")
def split(
    draft: Draft, *, public: Manifest, private: Manifest, sources: Manifest, rules: RoleRules
) -> dict[str, Any]:
    """Write who is asked (part "answers": `files.json`, and for each raw file who, where they have names) and what is to be cut
    into shards (part "roles", a file for each part of a raw file); count those with a role who have public rows as well.

    Raises DataError where nobody is left to report, or to be held back.
    """
    store = draft.store
    n_private = n_test = n_done = n_also_public = 0
    is_row = rules.holder == "row"
    in_public = np.empty(0, np.uint64) if is_row else _names_in(store.files(public), rules.holder)
    people = _People(draft, rules, in_public if rules.is_public_whole else in_public[:0])
    for raw_file, of_file in assign(draft, private, sources, people):
        for first, roles in of_file.parts():
            name = f"{raw_file}-{first:06d}.npz"
            roles.write(draft.folder("roles") / name)
            draft.count("roles", name, int(roles.asked.sum()))
            n_private, n_test = n_private + int(roles.asked.sum()), n_test + int(roles.held_back.sum())
        if of_file.names is not None:
            names = of_file.names[of_file.asked | of_file.held_back]
            n_also_public += int(place_in(in_public, names)[1].sum())
        n_done += len(of_file.asked)
        progress.advance(n_done / private.rows)
    if n_private == 0:
        raise DataError(
            "no private rows are left to report: every one is public, held back for the test, or was asked before."
        )
    if rules.test_fraction > 0 and n_test == 0:
        raise DataError(
            f"no private row was held back to score on, by dataset.test_fraction = {rules.test_fraction:g}. "
            "Raise it, or set evaluate = false."
        )
    first_file = tables.typed_parts(store.files(private))[0]
    named = {} if is_row else {"holder_type": type_of_stored_names(first_file, rules.holder)}
    also = {} if is_row else {"n_also_public": n_also_public}
    return {"n_private": n_private, "n_test": n_test, **named, **also}


def _names_in(paths: Sequence[Path], holder: str) -> Hashes:
    """Hashes of the names in public rows, sorted."""
    return np.unique(np.concatenate([hash_names(path, holder) for path in tables.typed_parts(paths)]))


def assign(
    draft: Draft, private: Manifest, sources: Manifest, people: _People
) -> Iterator[tuple[str, FileRoles]]:
    """The roles in each raw file, in their order, by the beginning of the names of its parts; who is asked is written on the way
    (part "answers").
    """
    store = draft.store
    names: dict[str, list[str]] = {}
    for name, digest in json.loads(store.file(sources, "sources.json").read_bytes()).items():
        parts = names.setdefault(digest, [])
        if raw_file_of(name) == raw_file_of([*parts, name][0]):
            parts.append(name)  # another file that holds the same has nobody new in it
    folder = draft.folder("answers")
    files: dict[str, FileAsked] = {}
    for digest, parts in names.items():
        of_file = people.of(Source([store.file(private, name) for name in parts], digest))
        of_file.write(folder)
        if of_file.shards:
            files[of_file.file] = of_file.asked_in
        yield raw_file_of(parts[0]), of_file
    (folder / "files.json").write_text(json.dumps(files))


class _People:
    """The people of a run, file by file in their order."""

    def __init__(self, draft: Draft, rules: RoleRules, taken: Hashes) -> None:
        """`taken`, sorted: whom nobody asks."""
        self._keyed, self._rules = draft.store.hasher("holders"), rules
        campaign = Campaign(draft.store, rules.campaign) if rules.campaign else None
        self._taken = merge(taken, campaign.answered(rules.asked_before)) if campaign else taken
        self._newly_taken = np.empty(0, np.uint64)

    def shard_name(self, source: Source, block: int) -> str:
        """Return a shard's name, a keyed digest of its raw file, so that new files change no old shard's name."""
        return f"{self._keyed.of_value([source.digest, block])[:32]}.parquet"

    def of(self, source: Source) -> FileRoles:
        """Assign the roles in the next file. Of holders who are rows a few bytes each are in memory."""
        names, kept = None, np.ones(tables.count_rows(source.paths), bool)
        if self._rules.holder != "row":
            names = np.concatenate([hash_names(path, self._rules.holder) for path in source.paths])
            kept = self._new_among(names) & one_row_each(names, self._draws(source, len(names)))
            self._newly_taken = names[kept]
        held_back, starts = np.zeros(len(kept), bool), list[int]()
        at = n_kept = n_asked = 0
        edges: list[int] = []
        for table in tables.batches(source.paths, [ROW_NUMBER]):
            numbers = np.asarray(table.column(ROW_NUMBER)).astype(np.uint64)
            here = slice(at, at + len(numbers))
            holders = numbers if names is None else names[here]
            held_back[here] = kept[here] & self._is_test(source, holders, kept[here], at, n_kept)
            asked = np.flatnonzero(kept[here] & ~held_back[here])
            starts += (at + asked[-n_asked % cut.SHARD_ROWS :: cut.SHARD_ROWS]).tolist()
            edges = [*edges[:1], int(numbers.min()), int(numbers.max())] if len(numbers) else edges
            at, n_kept, n_asked = here.stop, n_kept + int(kept[here].sum()), n_asked + len(asked)
        asked_rows = kept & ~held_back
        return FileRoles(
            file=self._keyed.of_digest(source.digest),
            rows=(edges[0], edges[-1] + 1),
            names=names,
            asked=asked_rows,
            held_back=held_back,
            # A simulation's public coins hold back the same people every time.
            is_taken=asked_rows if self._rules.noise_seed is not None else kept,
            starts=starts,
            shards=[self.shard_name(source, block) for block in range(len(starts))],
        )

    def _new_among(self, names: Hashes) -> NDArray[np.bool_]:
        """Return whose rows have no role in a file before this one."""
        if len(
            self._newly_taken
        ):  # sorted when there is a file to look for them in: for the only one there is none
            self._taken = merge(self._taken, np.sort(self._newly_taken))
        return ~place_in(self._taken, names)[1]

    def _draws(self, source: Source, n: int) -> Hashes:
        """Coins for which of their n rows somebody answers with."""
        if self._rules.noise_seed is None:
            return self._keyed.words(["row", source.digest], n)
        return mixed(np.arange(n, dtype=np.uint64), self._rules.noise_seed ^ int(source.digest[:16], 16))

    def _is_test(
        self, source: Source, holders: Hashes, kept: NDArray[np.bool_], at: int, before: int
    ) -> NDArray[np.bool_]:
        """Return who of those kept is held back, of rows from `at` on; `before`: how many are kept above them."""
        rules, n = self._rules, int(kept.sum())
        if rules.noise_seed is None:
            # Only the holders know these coins, the same in every run of the work folder.
            words = self._keyed.words(
                [f"test {rules.seed}", source.digest, at], n if rules.test_fraction else 0
            )
            stated = round(rules.test_fraction * (before + n)) - round(rules.test_fraction * before)
            return hold_back(kept, stated, words)
        if rules.holder == "row":
            holders = mixed(holders, int(source.digest[16:32], 16))
        return is_test(holders, rules.seed, rules.test_fraction)


def hold_back(kept: NDArray[np.bool_], stated: int, words: Hashes) -> NDArray[np.bool_]:
    """Hold back exactly so many of the n that are kept: those with the smallest of their words, uint64 [n]."""
    order = np.argsort(words, kind="stable")
    held_back = np.zeros(len(kept), bool)
    held_back[np.flatnonzero(kept)[order[:stated]]] = True
    return held_back


def is_test(holders: NDArray[np.uint64], seed: int, fraction: float) -> NDArray[np.bool_]:
    """Return which holders a simulation holds back, by public coins that no new file changes."""
    return mixed(mixed(holders, seed), 0x7E57) < np.uint64(min(int(fraction * 2**64), 2**64 - 1))


def one_row_each(holders: NDArray[np.uint64], draws: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return bool [rows] with, for every distinct holder, the row with the smallest draw."""
    order = np.lexsort((draws, holders))
    first = np.ones(len(order), dtype=bool)
    first[1:] = holders[order][1:] != holders[order][:-1]
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[first]] = True
    return chosen
