"""Reports that are written once: what perturb and answer share, who both run with the holders.

A second report of one person is a second release: what was written is read back ever after, and never drawn again. Only a seeded
simulation, which protects nobody, draws a lost file anew (and gets the same bytes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ldptree.errors import ArtifactCorrupt
from schemas.manifest import FileEntry, MadeBy, Manifest
from storage.drawn_once import publish_once
from storage.store import ArtifactKey, Draft, Store


def written_once(
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
    target = store.zone("curator") / "reports" / asked[:16] / f"round-{round_number}" / f"{name}.parquet"
    # Looked for once more: another run may have finished this shard since this one found nothing.
    if drawn is None:
        check_not_lost(store, draft.place, target)
    elif is_lost(store, draft.place):
        target.unlink(missing_ok=True)
    if not target.exists():
        reports = table()
        described = {**(reports.schema.metadata or {}), **metadata}
        reports = reports.replace_schema_metadata(described)
        publish_once(
            store,
            target,
            lambda draft: pq.write_table(reports, draft, compression="zstd", compression_level=1),
        )
    return manifest_of(store, target, question, round_number, draft.place.step)


def is_lost(store: Store, place: ArtifactKey) -> bool:
    """Whether reports were drawn at a place, and are no longer what was drawn."""
    return store.record_path(place).exists() and store.find(place) is None  # a record, readable or not


def check_not_lost(store: Store, place: ArtifactKey, target: Path | None = None) -> None:
    """Raises ArtifactCorrupt where reports of a release are lost. `target`: their file, else it is looked up in their record."""
    if not is_lost(store, place):
        return
    record = store.read_record(store.record_path(place))
    target = target or (store.files(record["reports"])[0] if record else store.record_path(place))
    raise ArtifactCorrupt(
        f"{target.relative_to(store.root)}: these reports were received, and are now missing or damaged. "
        "Asking their holders again would spend their epsilon twice. Restore the file from a copy, "
        "or begin anew in another work folder."
    )


def mark_of(noise_seed: int | None) -> dict[str, str]:
    """What the reports of a seeded simulation say of themselves, which protects nobody; nothing of a release's."""
    return {} if noise_seed is None else {"simulation": "true"}


def manifest_of(
    store: Store, path: Path, question: Manifest, round_number: int, step: str = "perturb"
) -> Manifest:
    """The manifest of received reports: what the curator knows of them, which is nothing of where they came from."""
    digest = store.hasher("curator").of_file(path)
    holders = int(pq.read_schema(path).metadata[b"holders"])
    return Manifest(
        zone="curator",
        path=path.parent.relative_to(store.root).as_posix(),
        digest=digest,
        files=(FileEntry(name=path.name, digest=digest, rows=holders),),
        made_by=MadeBy(
            step=step,
            version="1",
            parameters={"round": round_number},
            inputs={"protocol" if step == "perturb" else "question": question.digest},
        ),
    )
