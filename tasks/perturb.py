"""perturb: each holder's one report, a shard at a time. Runs with the holders; only reports leave.

A second report of one person is a second release: a shard is written once, read back ever after, and never tried again.
Only a seeded
simulation, which protects nobody, draws a lost shard anew (and gets the same bytes).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.protocol.protocol import Protocol
from schemas.manifest import Manifest
from storage import tables
from storage.digests import Hasher
from storage.ledger.campaigns import Campaign
from storage.store import Draft
from tasks.artifacts import read_protocol
from tasks.once import mark_of, written_once
from tasks.step import FIRST, NotInKey, step

Form = Literal["reports", "totals"]


def form(n_private: int, report_bytes: int, max_report_bytes: int) -> Form:
    """Whether every report is written, or each shard's exact totals are drawn because the reports would be too large."""
    return "reports" if n_private * report_bytes <= max_report_bytes else "totals"


def values_of(
    path: Path, protocol: Protocol, words: Words | None = None, outputs: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """The value each holder of a shard has to report, int64 [rows]; a number is rounded with `words`.

    `outputs`: what each reports on, int64 [rows], where the protocol has them draw it.
    """
    found: list[NDArray[np.int64]] = []
    first = 0
    needed = protocol.columns_needed
    for table in tables.batches([path], [*needed, protocol.target]):
        raw = tables.raw_matrix(table, protocol.encoding, needed)
        labels = labels_of(table.column(protocol.target), protocol)
        drawn = None if outputs is None else outputs[first : first + table.num_rows]
        found.append(protocol.values(raw, labels, needed, words=words, outputs=drawn))
        first += table.num_rows
    return np.concatenate(found)


def labels_of(column: Any, protocol: Protocol) -> NDArray[Any]:
    """Labels as `Protocol.values` takes them: indices of classes, or numbers."""
    classes = protocol.label_classes
    return tables.label_codes(column, classes) if classes else tables.label_numbers(column)


@step("perturb", version="1", home="holders", order=11, says="reports, one a holder")
def perturb(
    draft: Draft,
    *,
    protocol: Manifest,
    shard: Manifest,
    round_number: int,
    form: Form,
    noise_seed: int | None,
    campaign: str | None,
    alike: NotInKey = FIRST,
) -> Mapping[str, Any]:
    """Write one shard's reports (part "reports", in the curator's zone): a report a holder, or the shard's exact totals.

    `alike`: how many other shards hold the same and came before this one. Its digest then is its own (`flows.asked`), by which
    its reports are known; to a simulation the number says that its noise is too.
    """
    store = draft.store
    published = read_protocol(store, protocol)
    (path,) = store.files(shard)

    def drawn() -> pa.Table:
        words = (
            Words.system()
            if noise_seed is None
            else _seeded(noise_seed, published, round_number, path, alike.value)
        )
        outputs = published.draw_outputs(shard.rows, words)
        values = values_of(path, published, words, outputs)
        said = (_reports if form == "reports" else _totals)(published, values, outputs, words)
        # Drawn last, and of nothing else: what tells a copy of this file from another that says the same.
        identity = words.block(2).tobytes().hex()
        return said.replace_schema_metadata({**(said.schema.metadata or {}), "id": identity})

    received = written_once(
        draft,
        question=protocol,
        asked=published.digest,
        round_number=round_number,
        drawn=None if noise_seed is None else [noise_seed, form],
        identity=shard.files[0].name if campaign else shard.digest,
        metadata={
            "protocol": published.digest,
            "round": str(round_number),
            "form": form,
            "holders": str(shard.rows),
            **mark_of(noise_seed),
        },
        table=drawn,
    )
    if campaign:
        Campaign(store, campaign).add_report(received)
    draft.refer("reports", received)
    return {"n_reports": received.rows, "seeded": noise_seed is not None}


def _seeded(noise_seed: int, protocol: Protocol, round_number: int, shard: Path, alike: int) -> Words:
    """Words of a shard's own: of what it holds, and of how many others held the same before it."""
    plain = Hasher().of_file(shard)
    entropy = [noise_seed, int(protocol.digest_unmarked, 16), round_number, int(plain, 16)]
    return Words.seeded(np.random.SeedSequence([*entropy, alike] if alike else entropy))


def _reports(
    protocol: Protocol, values: NDArray[np.int64], outputs: NDArray[np.int64] | None, words: Words
) -> pa.Table:
    """A row a holder; of outputs that are drawn with a second column, which of them it is about."""
    mechanism = protocol.mechanism
    said = {} if outputs is None else {"output": pa.array(outputs.astype(np.int32))}
    reports = mechanism.randomize(values, words)
    if reports.ndim == 1:
        return pa.table({"value": pa.array(reports)} | said)
    packed = mechanism.pack(reports)
    width = packed.shape[1]
    column = pa.Array.from_buffers(pa.binary(width), len(packed), [None, pa.py_buffer(packed)])
    return pa.table({"bits": column} | said)


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
