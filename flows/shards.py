"""Return the shards that a run asks, each known apart from every other one, and check that all of them reported. Who is in them
is decided in `tasks.holders.split`, what they report in `tasks.perturb`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ldptree.errors import ArtifactCorrupt
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from storage.store import Store


def shards_asked(store: Store, config: RunConfig, held: Record) -> list[tuple[Manifest, int]]:
    """Return the shards of who is asked, in the order of their names; in a simulation each with how many others hold the same and
    came before it.

    Their digests tell apart different people whose rows are equal: of a release each is of what the shard holds and of its name,
    which stands for its raw file and its place there. A simulation gives in every work folder what it gives in an empty one, so
    the first of those that hold the same keeps the digest of that.
    """
    keyed, before = store.hasher("holders"), Counter[str]()
    shards = []
    for shard in held["train"].one_by_one():
        number = before[shard.digest] if config.is_seeded else 0
        before[shard.digest] += 1
        which = number if config.is_seeded else shard.files[0].name
        own = shard.model_copy(update={"digest": keyed.of_value([shard.digest, which])})
        shards.append((own if which else shard, number))
    return shards


def check_reported(shards: Sequence[Manifest], reports: Sequence[Record]) -> None:
    """Raises ArtifactCorrupt where the holders who were asked did not all report once, each shard in a file of its own."""
    files = {(r["reports"].path, r["reports"].files[0].name): r["reports"].rows for r in reports}
    asked, reported = sum(shard.rows for shard in shards), sum(files.values())
    if len(files) != len(shards) or reported != asked:
        raise ArtifactCorrupt(
            f"{asked:,} people were asked in {len(shards)} shards, and {reported:,} reports stand in {len(files)} files below "
            "curator/reports. Nothing was added up. Restore `curator/reports` and `holders/perturb` from one copy, or begin "
            "anew in another work folder."
        )
