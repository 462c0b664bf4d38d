"""perturb: each holder's one report, a shard at a time. Runs with the holders; only reports leave.

A second report of one person is a second release: a shard is written once, read back ever after, and never tried again.
Only a seeded
simulation, which protects nobody, draws a lost shard anew (and gets the same bytes).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.errors import ArtifactCorrupt
from ldptree.mechanisms import Mechanism
from ldptree.oracles import Words
from ldptree.protocol import Protocol
from schemas.manifest import FileEntry, MadeBy, Manifest
from storage import tables
from storage.campaigns import Campaign
from storage.digests import Hasher
from storage.store import Draft, Store
from tasks.checkpoint import step
from tasks.scale import read_protocol

Form = Literal["reports", "totals"]


def form(n_private: int, report_bytes: int, max_report_bytes: int) -> Form:
    """Whether every report is written, or each shard's exact totals are drawn because the reports would be too large."""
    return "reports" if n_private * report_bytes <= max_report_bytes else "totals"


def values_of(path: Path, protocol: Protocol) -> NDArray[np.int64]:
    """The value each holder of a shard has to report, int64 [rows]."""
    found = []
    needed = protocol.columns_needed
    for table in tables.batches([path], [*needed, protocol.target]):
        raw = tables.raw_matrix(table, protocol.encoding, needed)
        labels = tables.label_codes(table.column(protocol.target), protocol.classes)
        found.append(protocol.values(raw, labels, needed))
    return np.concatenate(found)


@step("perturb", version="1", home="holders")
def perturb(
    draft: Draft,
    *,
    protocol: Manifest,
    shard: Manifest,
    round_number: int,
    form: Form,
    noise_seed: int | None,
    campaign: str | None,
) -> Mapping[str, Any]:
    """Write one shard's reports (part "reports", in the curator's zone): a report a holder, or the shard's exact totals."""
    store = draft.store
    published = read_protocol(store, protocol)
    (path,) = store.files(shard)
    # The name tells nobody anything, and is known before anything is drawn: of two runs at once one report stands.
    # The seed is in it, so that a release never takes up what a simulation drew. Of a release the form is not: who has
    # reported in one is not asked again in the other.
    identity = shard.files[0].name if campaign else shard.digest
    drawn = None if noise_seed is None else [noise_seed, form]
    name = store.hasher("holders").of_value([published.digest, round_number, drawn, identity])[:40]
    folder = store.zone("curator") / "reports" / published.digest[:16] / f"round-{round_number}"
    target = folder / f"{name}.parquet"
    # Looked for once more: another run may have finished this shard since this one found nothing.
    drawn_before = store.record_path(draft.place).exists()  # readable or not
    is_lost = drawn_before and store.find(draft.place) is None
    if is_lost and noise_seed is not None:
        target.unlink(missing_ok=True)
    elif is_lost:
        raise ArtifactCorrupt(
            f"{target.relative_to(store.root)}: these reports were received, and are now missing or damaged. "
            "Asking their holders again would spend their epsilon twice. Restore the file from a copy, "
            "or begin anew in another work folder."
        )
    if not target.exists():
        values = values_of(path, published)
        words = Words.system() if noise_seed is None else _seeded(noise_seed, published, round_number, path)
        metadata = {
            "protocol": published.digest,
            "round": str(round_number),
            "form": form,
            "holders": str(len(values)),
        }
        table = (
            _reports(published.mechanism, values, words)
            if form == "reports"
            else _totals(published.mechanism, values, words)
        ).replace_schema_metadata(metadata)
        store.write_once(
            target, lambda aside: pq.write_table(table, aside, compression="zstd", compression_level=1)
        )
    received = manifest_of(store, target, protocol, round_number)
    if campaign:
        Campaign(store, campaign).add_report(received)
    draft.refer("reports", received)
    return {"n_reports": received.rows, "seeded": noise_seed is not None}


def manifest_of(store: Store, path: Path, protocol: Manifest, round_number: int) -> Manifest:
    """The manifest of received reports: what the curator knows of them, which is nothing of where they came from."""
    digest = store.hasher("curator").of_file(path)
    holders = int(pq.read_schema(path).metadata[b"holders"])
    return Manifest(
        zone="curator",
        path=path.parent.relative_to(store.root).as_posix(),
        digest=digest,
        files=(FileEntry(name=path.name, digest=digest, rows=holders),),
        made_by=MadeBy(
            step="perturb",
            version="1",
            parameters={"round": round_number},
            inputs={"protocol": protocol.digest},
        ),
    )


def _seeded(noise_seed: int, protocol: Protocol, round_number: int, shard: Path) -> Words:
    plain = Hasher().of_file(shard)
    entropy = [noise_seed, int(protocol.digest, 16), round_number, int(plain, 16)]
    return Words.seeded(np.random.SeedSequence(entropy))


def _reports(mechanism: Mechanism, values: NDArray[np.int64], words: Words) -> pa.Table:
    reports = mechanism.randomize(values, words)
    if reports.ndim == 1:
        return pa.table({"value": pa.array(reports)})
    packed = mechanism.pack(reports)
    width = packed.shape[1]
    column = pa.Array.from_buffers(pa.binary(width), len(packed), [None, pa.py_buffer(packed)])
    return pa.table({"bits": column})


def _totals(mechanism: Mechanism, values: NDArray[np.int64], words: Words) -> pa.Table:
    counts = np.bincount(values, minlength=mechanism.k).astype(np.int64)
    return pa.table({"support": pa.array(mechanism.sample_totals(counts, words.generator()))})
