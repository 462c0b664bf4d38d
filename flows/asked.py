"""Which shards a run asks, each known apart from every other one, and whether all of them reported. Who is in them is decided in
`tasks.holders.roles`, what they report in `tasks.perturb`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ldptree.errors import ArtifactCorrupt
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from storage.ledger.accounts import Account
from storage.ledger.campaigns import Campaign
from storage.ledger.copy_index import CopyIndex
from storage.store import Store


def shards_with_copy_index(
    store: Store, config: RunConfig, held: Record, *, keep: bool = False
) -> list[tuple[Manifest, int]]:
    """The shards of who is asked, in the order of their names; each with how many others hold the same and came before it.

    Of the first its digest is that of what it holds. Of any other it is its own: different people whose rows are equal are
    asked apart. `keep`: that these numbers hold for later runs too.
    """
    shards = held["train"].one_by_one()
    whose = _whose(store, config, held)
    numbers = _alike(store, config).numbers(
        [(shard.digest, whose[shard.files[0].name]) for shard in shards], keep=keep
    )
    keyed = store.hasher("holders")
    return [
        (
            shard.model_copy(update={"digest": keyed.of_value([shard.digest, number])}) if number else shard,
            number,
        )
        for shard, number in zip(shards, numbers, strict=True)
    ]


def _alike(store: Store, config: RunConfig) -> CopyIndex:
    """A campaign numbers its own shards, and releases theirs over all runs of the work folder.

    A simulation, which gives in every work folder what it gives in an empty one, numbers those of one run.
    """
    if config.campaign.name:
        return Campaign(store, config.campaign.name).copy_index()
    return CopyIndex(store.objects) if config.is_seeded else Account(store, None).copy_index()


def _whose(store: Store, config: RunConfig, held: Record) -> dict[str, list[str]]:
    """Of each shard, by name, whose it is: the holders asked in its raw file, and which part of them. Behind it that by which
    an earlier version knew them: the order in which a column named them, or the shard's name.
    """
    answers = {entry.name: entry.digest for entry in held["answers"].files}
    files = json.loads(store.file(held["answers"], "files.json").read_bytes())
    keyed = store.hasher("holders")
    return {
        name: [
            keyed.of_value([file["people"], part]),
            name if config.dataset.holder == "row" else keyed.of_value([answers[f"{source}.npy"], part]),
        ]
        for source, file in files.items()
        for part, name in enumerate(file["shards"])
    }


def check_reported(shards: Sequence[Manifest], reports: Sequence[Record]) -> None:
    """Raises ArtifactCorrupt where the holders who were asked did not all report once, each shard in a file of its own."""
    files = {(r["reports"].path, r["reports"].files[0].name): r["reports"].rows for r in reports}
    asked, reported = sum(shard.rows for shard in shards), sum(files.values())
    if len(files) != len(shards) or reported != asked:
        raise ArtifactCorrupt(
            f"{asked:,} holders were asked in {len(shards)} shards, and {reported:,} reports stand in {len(files)} files below "
            "curator/reports. Nothing was added up. Restore `curator/reports` and `holders/perturb` from one copy, or begin "
            "anew in another work folder."
        )
