"""The interface of an object store, for everything in `storage` that is kept by name, such as artifacts' records
and reports.

A name is a relative path with slashes, as "curator/perturb/0123.json".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

T = TypeVar("T")
Write = Callable[[BinaryIO], object]
"""Writes random content into a file."""


@dataclass(frozen=True)
class Entry:
    """A line of a listing, with an object's name, size in bytes and time of writing, in seconds since 1970, and, for an
    object in a bucket, its copy on this machine once there is one.
    """

    name: str
    size: int
    modified: float
    copy: Path | None = None


class NotReached(OSError):  # noqa: N818 - as Damaged
    """The store does not answer, or not as it should, so that its content is not known."""


class ObjectStore(Protocol):
    """Objects by name, each of them whole or absent, whenever a process or the machine stops.

    What a call wrote is there after a loss of power, once the call has returned. Each raises OSError where it cannot be done.
    `root` is a folder on this machine, where programs keep what is no object.
    """

    root: Path
    is_shared: bool
    """Whether other machines may use them at the same time, whom a lock on this one does not keep out."""

    def check_rights(self) -> None:
        """Raises ConfigError where a run could not write here, or read what all steps read."""

    def get(self, name: str) -> bytes:
        """The bytes of an object. Raises FileNotFoundError."""

    def size(self, name: str) -> int | None:
        """Return the size of an object in bytes, None where there is none."""

    def at_once(self, act: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """Call `act` for each object or folder, several at once where it waits for another machine, and return the results in
        order.

        Raises what it raised for the first of those that it raises for.
        """

    def entries(self, folder: str, *, deep: bool = False) -> Iterator[Entry]:
        """The objects of a folder, of those below it too if `deep`, by name. What is being written is not among them."""

    def folders(self, folder: str) -> list[str]:
        """The names of the folders right below a folder, in order."""

    def create(self, name: str, data: bytes) -> bool:
        """Write an object unless there is one of this name. Of all who do so, one gets True, and those bytes stand."""

    def draw(self, name: str, write: Write) -> bool:
        """Create what `write` draws by chance, as `create`. Whatever stops, no second draw is kept anywhere.

        A draft of it may be kept until `forget_draft`; while it is, it is the one that is published.
        """

    def forget_draft(self, name: str) -> None:
        """Remove the draft of what was drawn, once it is recorded elsewhere."""

    def put(self, name: str, data: bytes) -> None:
        """Write an object, in place of one of this name if there is one."""

    def change(self, name: str, make: Callable[[bytes | None], bytes]) -> None:
        """Write what `make` makes of an object's bytes (None where there is none); of several changes each sees the one before.

        `make` may be called again, also on what it made itself. What it raises is raised, and nothing is written.
        """

    def delete(self, name: str) -> None:
        """Remove an object; one that is not there is passed over."""

    def withdraw(self, name: str) -> None:
        """Remove an object, or a folder with all objects below it. Raises OSError where one stays."""

    def not_objects(self) -> list[Path]:
        """Return files and folders on this machine that are no objects, such as unfinished files of killed runs and
        copies of objects. No run may go on here.
        """

    def modified(self, folder: str) -> float:
        """When what is in a folder was written last, as `Entry` says it."""

    def now(self) -> float:
        """Return the time for `Entry`."""

    def draft_folder(self, folder: str) -> Path:
        """A new folder on this machine, to write files in that will be published below `folder`."""

    def publish(self, draft: Path, name: str) -> None:
        """Make the files of a draft the objects below `name`, which says what they hold: of several who do so nobody misses one.

        What is there with other bytes is damaged, and replaced.
        """

    def path(self, name: str) -> Path:
        """A file with the bytes of an object, for libraries that read files."""

    def whole_path(self, name: str, is_whole: Callable[[Path], bool]) -> Path | None:
        """As `path`, of an object that `is_whole`; None of one that is damaged. Raises as `path`.

        A damaged copy is made anew before that is said: it tells nothing of the object.
        """

    def where(self, name: str) -> str:
        """Return the path or address where a person finds an object."""


def sizes_of(objects: ObjectStore, names: Iterable[str]) -> dict[str, int]:
    """Return the size in bytes of each of these objects that is there, by a listing of each folder."""
    wanted = set(names)
    folders = sorted({name.rpartition("/")[0] for name in wanted})
    listed = objects.at_once(lambda folder: list(objects.entries(folder)), folders)
    return {entry.name: entry.size for entries in listed for entry in entries if entry.name in wanted}
