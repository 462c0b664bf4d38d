"""Shards with identical content that belong to different people: the index of each among them (0 for the first), kept for good.

The content of a shard does not say whose it is. Were a shard known by its content alone, all of them would share one report,
which would reveal that their content is the same. Which holders are asked in which shard is decided in `tasks.holders.roles`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from storage.formats import Damaged, read_stamped, stamped
from storage.objects.object_store import ObjectStore

REMEDY = (
    "Without it different people could be taken for the same, so nobody is asked. Restore it from a copy."
)


@dataclass(frozen=True)
class CopyIndex:
    """The indices given to shards: a folder for each content, a file for each index; kept nowhere without a `folder`."""

    objects: ObjectStore
    folder: str | None = None

    def numbers(self, shards: Sequence[tuple[str, Sequence[str]]], *, keep: bool = False) -> list[int]:
        """For each shard, given as (digest of its content, digests of its owners), its index among shards with that content.

        The first of the owners' digests is kept; the others are those by which earlier versions knew the shard. An index
        that is kept never changes; without `keep` the answer is what keeping it now would give.
        """
        known: dict[str, list[str]] = {}
        found = []
        for content, whose in shards:
            others = known.setdefault(content, self._known(content))
            while not any(one in others for one in whose):
                # Of two runs at once one takes the next number, and the other looks again.
                if keep and self.folder is not None:
                    kept = stamped("alike", {"whose": whose[0]})
                    self.objects.create(f"{self.folder}/{content}/{len(others)}", kept)
                    others[:] = self._known(content)
                else:
                    others.append(whose[0])
            found.append(next(others.index(one) for one in whose if one in others))
        return found

    def _known(self, content: str) -> list[str]:
        """The owners of the shards with this content that have an index, in its order."""
        if self.folder is None:
            return []
        found: list[str] = []
        while self.objects.size(name := f"{self.folder}/{content}/{len(found)}") is not None:
            found.append(_whose(self.objects, name))
        return found


def _whose(objects: ObjectStore, name: str) -> str:
    """Whose shard has a number. Raises ArtifactCorrupt."""
    content = objects.get(name)
    if re.fullmatch(rb"[0-9a-f]{32,64}(\.parquet)?", content):  # as versions without formats wrote it
        return content.decode()
    whose = read_stamped(objects, name, "alike", REMEDY).get("whose")
    if not isinstance(whose, str):
        raise Damaged(f"{objects.where(name)}: damaged. {REMEDY}")
    return whose
