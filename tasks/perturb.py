"""Draw each holder's one report to a question, a shard at a time. Runs with the holders; only reports leave.

A second report of one person is a second release: a shard is written once, read back ever after, and never tried again.
Only a seeded simulation, which protects nobody, draws a lost shard anew (and gets the same bytes).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.errors import ArtifactCorrupt
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.question import Question
from schemas.manifest import Arguments, FileEntry, MadeBy, Manifest
from schemas.tables import FeaturesConfig
from storage import tables
from storage.digests import Hasher
from storage.ledger.database import lost
from storage.store import ArtifactKey, Draft, Store
from tasks.artifacts import QuestionText, is_protocol, read_encoding, table_of_reports
from tasks.holders.agreed import Agreed, read_agreed
from tasks.holders.show import Label, read_rows
from tasks.step import FIRST, NotInKey, step

Form = Literal["reports", "totals"]


class Collecting(Arguments):
    """The form in which answers about one tree are collected, every report or totals alone, and their campaign."""

    form: Form = "reports"
    campaign: str | None = None


class Showing(Arguments):
    """The reading of holders who show some features, with what they show, what they protect, and their label."""

    encoding: Manifest
    shown: Manifest
    features: FeaturesConfig
    target: str


@dataclass(frozen=True)
class _Shard:
    """One shard's answers to a question, before they are drawn.

    question    digest of it, as reports state it.
    noise       digest that a simulation's noise is drawn from: a release's question has the same.
    n           how many answer.
    drawn       how a simulation draws them, None for a release.
    identity    of the shard, known before anything is drawn.
    draw        the reports.
    metadata    what the file says of itself, besides its question, round and number of holders.
    """

    question: str
    noise: str
    n: int
    drawn: Any
    identity: str
    draw: Callable[[Words], pa.Table]
    metadata: Mapping[str, str]


@step("perturb", version="2", home="holders", says="reports, one of each person who was asked")
def perturb(
    draft: Draft,
    *,
    question: Manifest,
    shard: Manifest,
    round_number: int,
    noise_seed: int | None,
    agreed: NotInKey,
    collecting: Collecting | None = None,
    showing: Showing | None = None,
    start: int = 0,
    copy_index: NotInKey = FIRST,
) -> Mapping[str, Any]:
    """Write one shard's reports (part "reports", in the curator's zone), of those in it whom the question asks.

    `agreed`: what the question must be, or nothing is drawn. `collecting` or `showing`: how, of a question about one tree, or of
    one to holders who show something; `start`: position there of the shard's first holder. `copy_index`: how many other shards of
    a simulation hold the same and came before this one, so that its noise is its own. The shard's digest is its own too
    (`flows.shards`), by which its reports are known.

    Raises ProtocolMismatch, BudgetError where the question is not what was agreed to, or costs more.
    """
    store, terms = draft.store, agreed.value
    text = read_agreed(store, question, terms)
    if isinstance(text.question, Protocol):
        collecting = collecting or Collecting()
        ready = _about_one_tree(store, text.question, shard, noise_seed, collecting)
    else:
        assert showing is not None
        ready = _in_rounds(store, text.question, text, shard, noise_seed, showing, start, terms)
    (path,) = store.files(shard)

    def table() -> pa.Table:
        if noise_seed is None:
            return ready.draw(Words.system())
        return ready.draw(_seeded(noise_seed, ready.noise, round_number, path, copy_index.value))

    received = write_once(
        draft,
        question=question,
        asked=ready.question,
        round_number=round_number,
        drawn=ready.drawn,
        identity=ready.identity,
        metadata={
            "protocol": ready.question,
            "round": str(round_number),
            **ready.metadata,
            "holders": str(ready.n),
            **mark_of(noise_seed),
        },
        table=table,
    )
    draft.refer("reports", received)
    return {"n_reports": ready.n, "seeded": noise_seed is not None}


def _seeded(noise_seed: int, question: str, round_number: int, shard: Path, copy_index: int) -> Words:
    """Return a shard's seeded words, by its content and the number of earlier shards with the same content."""
    entropy = [noise_seed, int(question, 16), round_number, int(Hasher().of_file(shard), 16)]
    return Words.seeded(np.random.SeedSequence([*entropy, copy_index] if copy_index else entropy))


def _about_one_tree(
    store: Store, protocol: Protocol, shard: Manifest, noise_seed: int | None, collecting: Collecting
) -> _Shard:
    """Collect from those of a shard whom a question about one tree asks, mostly everybody."""
    form, asked = collecting.form, protocol.respondents(shard.rows)
    (path,) = store.files(shard)

    def draw(words: Words) -> pa.Table:
        outputs = protocol.draw_outputs(asked.size, words)
        values = values_of(path, protocol, words, outputs, asked)
        table = (_reports if form == "reports" else _totals)(protocol, values, outputs, words)
        # Drawn last, and of nothing else: what tells a copy of this file from another that says the same.
        copy = words.block(2).tobytes().hex()
        return table.replace_schema_metadata({**(table.schema.metadata or {}), "id": copy})

    return _Shard(
        question=protocol.digest,
        noise=protocol.digest_unmarked,
        n=asked.size,
        drawn=None if noise_seed is None else [noise_seed, form],
        identity=shard.files[0].name if collecting.campaign else shard.digest,
        draw=draw,
        metadata={"form": form},
    )


def _in_rounds(
    store: Store,
    asked: Question,
    text: QuestionText,
    shard: Manifest,
    noise_seed: int | None,
    showing: Showing,
    start: int,
    terms: Agreed,
) -> _Shard:
    """Those of a shard whom a question asks of all holders."""
    everybody = asked.respondents(terms.n)
    mine = everybody[(everybody >= start) & (everybody < start + shard.rows)]

    def draw(words: Words) -> pa.Table:
        encoding, (low, high) = read_encoding(store, showing.encoding)
        (path,) = store.files(shard)
        rows = read_rows(path, encoding, showing.features, Label(showing.target, low, high))
        at = mine - start
        reports = asked.randomize(rows.points[at], rows.labels[at], rows.protects[at], words)
        return table_of_reports(mine, reports)

    return _Shard(
        question=text.digest,
        noise=text.unmarked,
        n=int(mine.size),
        drawn=None if noise_seed is None else [noise_seed],
        identity=store.hasher("holders").of_value([shard.digest, start, showing.shown.digest]),
        draw=draw,
        metadata={},
    )


def form(n_private: int, report_bytes: int, max_report_bytes: int) -> Form:
    """Choose "reports", or "totals" alone, drawn by the law of their sum, where the reports would be too large."""
    return "reports" if n_private * report_bytes <= max_report_bytes else "totals"


def values_of(
    path: Path,
    protocol: Protocol,
    words: Words | None = None,
    outputs: NDArray[np.int64] | None = None,
    asked: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """The value each of n holders of a shard has to report, int64 [n]; a number is rounded with `words`.

    Args:
        path: of the shard.
        protocol: the question.
        words: coins, where a number is reported.
        outputs: what each reports on, int64 [n], where the protocol has them draw it.
        asked: the rows of those n, int64 [n], ascending; None: all.
    """
    parts: list[NDArray[np.int64]] = []
    first = n_found = 0
    needed = protocol.columns_needed
    for table in tables.batches([path], [*needed, protocol.target]):
        raw = tables.raw_matrix(table, protocol.encoding, needed)
        labels = labels_of(table.column(protocol.target), protocol)
        if asked is not None and not protocol.asks_everybody:
            here = (
                asked[np.searchsorted(asked, first) : np.searchsorted(asked, first + table.num_rows)] - first
            )
            raw, labels = raw[here], labels[here]
        drawn = None if outputs is None else outputs[n_found : n_found + len(raw)]
        parts.append(protocol.values(raw, labels, needed, words=words, outputs=drawn))
        first, n_found = first + table.num_rows, n_found + len(raw)
    return np.concatenate(parts)


def labels_of(column: Any, protocol: Protocol) -> NDArray[Any]:
    """Return labels as `Protocol.values` takes them, as indices of classes or as numbers."""
    classes = protocol.label_classes
    return tables.label_codes(column, classes) if classes else tables.label_numbers(column)


def _reports(
    protocol: Protocol, values: NDArray[np.int64], outputs: NDArray[np.int64] | None, words: Words
) -> pa.Table:
    """A row a holder; of outputs that are drawn with a second column, which of them it is about."""
    mechanism = protocol.mechanism
    drawn_outputs = {} if outputs is None else {"output": pa.array(outputs.astype(np.int32))}
    reports = mechanism.randomize(values, words)
    if reports.ndim == 1:
        return pa.table({"value": pa.array(reports)} | drawn_outputs)
    packed = mechanism.pack(reports)
    width = packed.shape[1]
    column = pa.Array.from_buffers(pa.binary(width), len(packed), [None, pa.py_buffer(packed)])
    return pa.table({"bits": column} | drawn_outputs)


def _totals(
    protocol: Protocol, values: NDArray[np.int64], outputs: NDArray[np.int64] | None, words: Words
) -> pa.Table:
    """The sums that such reports add up to; of outputs that are drawn one after the other, with how many drew each."""
    mechanism, generator = protocol.mechanism, words.generator()

    def drawn(of: NDArray[np.int64]) -> NDArray[Any]:
        return mechanism.sample_totals(
            np.bincount(of, minlength=mechanism.n_values).astype(np.int64), generator
        )

    if outputs is None:
        return pa.table({"support": pa.array(drawn(values))})
    n_outputs = protocol.n_outputs
    supports = [drawn(values[outputs == output]) for output in range(n_outputs)]
    place = np.repeat(np.arange(n_outputs, dtype=np.int32), [support.size for support in supports])
    holders = np.bincount(outputs, minlength=n_outputs).tolist()
    table = pa.table({"support": pa.array(np.concatenate(supports)), "output": pa.array(place)})
    return table.replace_schema_metadata({"holders_of_outputs": json.dumps(holders)})


def write_once(
    draft: Draft,
    *,
    question: Manifest,
    asked: str,
    round_number: int,
    drawn: Any,
    identity: str,
    metadata: Mapping[str, str],
    table: Callable[[], pa.Table],
) -> Manifest:
    """The manifest of a shard's reports, drawn by `table` unless they stand.

    Args:
        draft: of the step that writes them.
        question: what is answered.
        asked: its digest, as reports state it.
        round_number: of the round.
        drawn: how a simulation draws them, None for a release.
        identity: of the shard, known before anything is drawn.
        metadata: what the file says of itself; "holders" is how many reported.
        table: draws the reports.

    Raises:
        ArtifactCorrupt: a release's reports were received, and are missing or damaged.
    """
    store = draft.store
    # The name tells nobody anything, and is known before anything is drawn: of two runs at once one report stands.
    # The seed is in it, so that a release never takes up what a simulation drew. Of a release the form is not: who has
    # reported in one is not asked again in the other.
    name = store.hasher("holders").of_value([asked, round_number, drawn, identity])[:40]
    target = f"curator/reports/{asked[:16]}/round-{round_number}/{name}.parquet"
    # Looked for once more: another run may have finished this shard since this one found nothing.
    if drawn is None:
        check_not_lost(store, draft.place, target)
    elif is_lost(store, draft.place):
        store.objects.delete(target)

    def write(file: BinaryIO) -> None:
        if drawn is None and store.has_record(draft.place):
            raise _AnsweredSinceError
        reports = table()
        reports = reports.replace_schema_metadata({**(reports.schema.metadata or {}), **metadata})
        pq.write_table(reports, file, compression="zstd", compression_level=1)

    try:
        store.objects.draw(target, write)
    except _AnsweredSinceError:
        check_not_lost(store, draft.place, target)
    if drawn is not None:
        store.objects.forget_draft(target)
    return manifest_of(store, target, question, round_number)


class _AnsweredSinceError(Exception):
    """Another run recorded these reports since this one began to draw them."""


def is_lost(store: Store, place: ArtifactKey) -> bool:
    """Return whether reports were drawn at a place, and are no longer what was drawn."""
    return store.has_record(place) and store.find(place) is None


def check_not_lost(store: Store, place: ArtifactKey, target: str | None = None) -> None:
    """Raise ArtifactCorrupt if reports of a release are lost. Without `target`, their record names their file."""
    if not is_lost(store, place):
        return
    record = store.read_record(store.record_name(place))
    target = target or (record["reports"].names[0] if record else store.record_name(place))
    raise lost(store.objects.where(target), "missing or damaged")


def mark_of(noise_seed: int | None) -> dict[str, str]:
    """Return the mark of a seeded simulation's reports, which protect nobody; nothing of a release's."""
    return {} if noise_seed is None else {"simulation": "true"}


def manifest_of(store: Store, target: str, question: Manifest, round_number: int) -> Manifest:
    """Return the manifest of received reports, without their origin, which the curator does not know."""
    try:
        path = store.objects.path(target)
        digest = store.hasher("curator").of_file(path)
        holders = int(pq.read_schema(path).metadata[b"holders"])
    except (FileNotFoundError, pa.ArrowException, TypeError, KeyError, ValueError):
        raise ArtifactCorrupt(
            f"{target}: missing, or no reports. Nothing was drawn again. Restore the file from a copy, or begin anew in another "
            "work folder."
        ) from None
    return Manifest(
        zone="curator",
        path=target.rpartition("/")[0],
        digest=digest,
        files=(FileEntry(name=path.name, digest=digest, rows=holders),),
        made_by=MadeBy(
            step="perturb",
            version="1",
            parameters={"round": round_number},
            inputs={"protocol" if is_protocol(question) else "question": question.digest},
        ),
    )
