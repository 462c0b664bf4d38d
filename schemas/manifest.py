"""Manifests of artifacts and records of steps, as JSON that Prefect may hold, with no rows, no values, no secrets.

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
    """One file of an artifact: its name inside the artifact, its digest, how many rows it holds (None: not a table), and the
    folder it is in where that is not the artifact's.
    """

    name: str
    digest: str
    rows: int | None = None
    folder: str = ""


class MadeBy(Strict):
    """The step that made an artifact, with its name, version, parameters, and inputs (name to digest)."""

    step: str
    version: str
    parameters: dict[str, Any]
    inputs: dict[str, str]


class Manifest(Strict):
    """One artifact: a folder of files in one zone of the store, `path` relative to the work folder; or what the shards of a step
    left, taken together, with the digests of their artifacts.
    """

    zone: Zone
    path: str
    digest: str
    files: tuple[FileEntry, ...]
    made_by: MadeBy
    shards: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Rows over all files."""
        return sum(entry.rows or 0 for entry in self.files)

    @property
    def names(self) -> list[str]:
        """The names of its files in the store."""
        return [self.name_of(entry) for entry in self.files]

    def name_of(self, entry: FileEntry) -> str:
        """Return the name of one of its files in the store; of a file that the user named, its whole path."""
        folder = entry.folder or self.path
        return f"{folder}/{entry.name}" if folder else entry.name

    def one_by_one(self) -> list[Manifest]:
        """Return the artifact as single-file artifacts, in order, one for each call of a mapped task."""
        return [
            self.model_copy(
                update={
                    "path": entry.folder or self.path,
                    "digest": entry.digest,
                    "files": (entry.model_copy(update={"folder": ""}),),
                    "shards": (),
                }
            )
            for entry in self.files
        ]


class Arguments(Strict):
    """Several arguments of a step as one. Each given field counts in its key, as an input or a parameter."""

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
    """All that is public of a conversation so far, rules for rows, public rows, shown values and answers."""

    encoding: Manifest
    scaled: Manifest
    shown: Manifest | None = None
    rounds: tuple[StoredRound, ...] = ()


class Record(Strict):
    """The result of a step, with its artifacts by name, and facts small and public enough to show anyone."""

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
