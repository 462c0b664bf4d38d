"""What a step leaves behind: a manifest an artifact, a record a step. JSON that Prefect may hold: no rows, no values, no secrets.

Digests of the holders' zone are keyed (see `storage.store`), so that a record tells nobody what a private file holds.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Zone = Literal["public", "holders", "curator", "simulation"]
ZONES: tuple[Zone, ...] = ("public", "holders", "curator", "simulation")


class Strict(BaseModel):
    """Frozen, and no key that nobody declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(Strict):
    """One file of an artifact: its name inside the artifact, its digest, how many rows it holds (None: not a table)."""

    name: str
    digest: str
    rows: int | None = None


class MadeBy(Strict):
    """Which step, in which version, with which parameters, from which inputs (name to digest)."""

    step: str
    version: str
    parameters: dict[str, Any]
    inputs: dict[str, str]


class Manifest(Strict):
    """One artifact: a folder of files in one zone of the store, `path` relative to the work folder."""

    zone: Zone
    path: str
    digest: str
    files: tuple[FileEntry, ...]
    made_by: MadeBy

    @property
    def rows(self) -> int:
        """Rows over all files."""
        return sum(entry.rows or 0 for entry in self.files)

    @property
    def names(self) -> list[str]:
        """The names of its files in the store."""
        # files that the user named are known by their whole paths
        within = f"{self.path}/" if self.path else ""
        return [within + entry.name for entry in self.files]

    def one_by_one(self) -> list[Manifest]:
        """The artifact as single-file artifacts, in order: what a mapped task takes one of."""
        return [self.model_copy(update={"digest": entry.digest, "files": (entry,)}) for entry in self.files]


class Arguments(Strict):
    """Several arguments of a step in one: each field that is given counts in its key by itself, as an input or as a parameter."""

    @property
    def given(self) -> dict[str, Any]:
        """The fields that were given, by name."""
        return {
            name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set
        }


class StoredRound(Arguments):
    """One question of a conversation, what public rows say of it where they say anything, and what its answers say together."""

    question: Manifest
    answers: Manifest
    evidence: Manifest | None = None


class StoredTranscript(Arguments):
    """All that is public of a conversation so far: how rows are read, public rows, what holders show, each question answered."""

    encoding: Manifest
    scaled: Manifest
    shown: Manifest | None = None
    rounds: tuple[StoredRound, ...] = ()


class Record(Strict):
    """What a step returns to Prefect: its artifacts by name, and facts small and public enough to show anyone."""

    home: Zone
    step: str
    version: str
    key: str
    parts: dict[str, Manifest]
    facts: dict[str, Any] = {}
    seconds: float = 0.0

    def __getitem__(self, part: str) -> Manifest:
        """The artifact called `part`."""
        return self.parts[part]
