"""The objects of a work folder in two buckets: the curator's, and the holders', which another credential opens.

Only `public/` and `curator/` lie with the curator. All else stays with the holders, pages of runs too: some show scores
on private rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Literal

from storage.objects.object_store import NOTHING, Entry, ObjectStore, T, Write

Side = Literal["holders", "curator"]
SIDES: tuple[Side, ...] = ("holders", "curator")
OF_THE_CURATOR = ("public", "curator")
"""The folders that the curator may read."""


class TwoSides:
    """The objects of two stores, each by the first folder of its name."""

    is_shared = True

    def __init__(self, sides: Mapping[Side, ObjectStore], where: str, root: Path) -> None:
        """Objects of `sides`, which together are known as `where`; `root` is a local folder, with those of the sides below it."""
        self._sides = sides
        self._where = where
        self.root = root

    def check_rights(self) -> None:
        """Raises ConfigError where a run could not write on one of the sides."""
        for side in self._sides.values():
            side.check_rights()

    def get(self, name: str) -> bytes:
        """The bytes of an object. Raises FileNotFoundError."""
        return self._of(name).get(name)

    def size(self, name: str) -> int | None:
        """How many bytes an object has, None where there is none."""
        return self._of(name).size(name)

    def at_once(self, act: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """What `act` gives for each object, in order, of several at once."""
        return self._sides["holders"].at_once(act, names)

    def entries(self, folder: str, *, deep: bool = False) -> Iterator[Entry]:
        """The objects of a folder, of those below it too if `deep`, by name."""
        if folder:
            return self._of(folder).entries(folder, deep=deep)
        return heapq.merge(
            *(side.entries(folder, deep=deep) for side in self._sides.values()), key=attrgetter("name")
        )

    def folders(self, folder: str) -> list[str]:
        """The names of the folders right below a folder, in order."""
        if folder:
            return self._of(folder).folders(folder)
        return sorted({name for side in self._sides.values() for name in side.folders(folder)})

    def create(self, name: str, data: bytes) -> bool:
        """Write an object unless there is one of this name."""
        return self._of(name).create(name, data)

    def draw(self, name: str, write: Write) -> bool:
        """As `create`, of what `write` draws by chance."""
        return self._of(name).draw(name, write)

    def put(self, name: str, data: bytes) -> None:
        """Write an object, in place of one of this name if there is one."""
        self._of(name).put(name, data)

    def change(self, name: str, make: Callable[[bytes | None], bytes]) -> None:
        """Write what `make` makes of an object's bytes."""
        self._of(name).change(name, make)

    def delete(self, name: str) -> None:
        """Remove an object; one that is not there is passed over."""
        self._of(name).delete(name)

    def withdraw(self, name: str) -> None:
        """Remove an object, or a folder with all objects below it."""
        self._of(name).withdraw(name)

    def not_objects(self) -> list[Path]:
        """What is no object on this machine, of both sides."""
        return [path for side in self._sides.values() for path in side.not_objects()]

    def modified(self, folder: str) -> float:
        """When what is in a folder was written last."""
        return self._of(folder).modified(folder)

    def now(self) -> float:
        """What time it is where it is earliest: less is then taken for old."""
        return min(side.now() for side in self._sides.values())

    def settle(self, folder: str) -> None:
        """Wait until what stands right in a folder lasts."""
        self._of(folder).settle(folder)

    def draft_folder(self, folder: str) -> Path:
        """A new folder on this machine, for what will be published below `folder`."""
        return self._of(folder).draft_folder(folder)

    def publish(self, draft: Path, name: str, standing: Mapping[str, str] = NOTHING) -> None:
        """Make the files of a draft the objects below `name`."""
        self._of(name).publish(draft, name, standing)

    def path(self, name: str) -> Path:
        """A file with the bytes of an object."""
        return self._of(name).path(name)

    def whole_path(self, name: str, is_whole: Callable[[Path], bool]) -> Path | None:
        """A file with the bytes of an object that `is_whole`; None of one that is damaged."""
        return self._of(name).whole_path(name, is_whole)

    def where(self, name: str) -> str:
        """Where a person finds an object; of "" what the two are opened by."""
        return self._of(name).where(name) if name else self._where

    def _of(self, name: str) -> ObjectStore:
        return self._sides["curator" if name.partition("/")[0] in OF_THE_CURATOR else "holders"]
