"""A bucket that several machines use over a bad network: what `storage.objects.bucket` calls of obstore, in memory."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

FAULTS = ("kill", "stall", "refused", "lost", "retried", "late", "clock", "conflict")
"""Killed; slow; not done; done and the answer lost; done and tried again; done later than said; a clock that jumps; not done, as
another write of the object goes on (a put on a condition).
"""


@dataclass
class Held:
    """An object, and what obstore answers of it."""

    name: str
    data: bytes
    attributes: dict[str, str]
    e_tag: str
    modified: datetime

    @property
    def meta(self):
        """As a listing has it."""
        return {
            "path": self.name,
            "size": len(self.data),
            "e_tag": self.e_tag,
            "version": None,
            "last_modified": self.modified,
        }

    def bytes(self):
        """The content."""
        return self.data

    def stream(self, **_):
        """The content, in pieces."""
        half = len(self.data) // 2
        yield self.data[:half]
        yield self.data[half:]


class InTurn:
    """In place of threads, which would go on in an order of their own."""

    map = staticmethod(map)


class Bucket:
    """What obstore's functions do, on this bucket."""

    SAID = ("does not answer as it should",)
    """What is said where the network failed."""

    def __init__(self, schedule) -> None:
        self.schedule = schedule
        self.clock = 1_000_000_000.0
        self.failures = 0
        self.objects: dict[str, Held] = {}
        self._late = []
        self._tags = count()

    def lasts(self, name: str) -> bool:
        """Whether an object is there."""
        return name in self.objects

    @contextmanager
    def without(self, name: str):
        """The bucket with an object less."""
        away = self.objects.pop(name)
        yield
        self.objects[name] = away

    @contextmanager
    def patched(self, patch):
        """Every request is a step, one after the other."""
        patch.setattr("storage.objects.bucket.obstore", self)
        patch.setattr("storage.objects.bucket.ThreadPoolExecutor", lambda _: nullcontext(InTurn()))
        yield

    def get(self, _, name, options=None):
        """An object. Raises FileNotFoundError."""
        self._read(f"get {name}")
        return self._find(name)

    def head(self, _, name):
        """What a listing says of an object. Raises FileNotFoundError."""
        self._read(f"head {name}")
        return self._find(name).meta

    def list(self, _, prefix=None):
        """All objects below a prefix, in pages."""
        self._read(f"list {prefix}")
        yield [self.objects[name].meta for name in self._below(prefix)]

    def list_with_delimiter(self, _, prefix=None):
        """The objects right below a prefix, and the prefixes there."""
        self._read(f"list {prefix}")
        start = len(prefix) + 1 if prefix else 0
        names = self._below(prefix)
        return {
            "objects": [self.objects[name].meta for name in names if "/" not in name[start:]],
            "common_prefixes": sorted(
                {name[: name.index("/", start)] for name in names if "/" in name[start:]}
            ),
        }

    def put(self, _, name, data, *, mode="overwrite", attributes=None, use_multipart=None):
        """Put an object on the condition `mode`. Raises as obstore does."""
        content = bytes(data)

        refusal = PreconditionError if isinstance(mode, dict) else AlreadyExistsError

        def do():
            there = self.objects.get(name)
            if mode == "create" and there is not None:
                raise AlreadyExistsError(name)
            if isinstance(mode, dict) and (there is None or there.e_tag != mode["e_tag"]):
                raise PreconditionError(name)
            now = datetime.fromtimestamp(self.clock, UTC)
            self.objects[name] = Held(name, content, dict(attributes or {}), str(next(self._tags)), now)

        # Of a put on a condition the writer can see that only the answer was lost.
        is_seen = mode != "overwrite"
        self._change(f"put {name}", do, is_seen=is_seen, refusal=refusal if is_seen else None)

    def delete(self, _, name):
        """Remove an object."""
        self._change(f"delete {name}", lambda: self.objects.pop(name, None))

    def _read(self, what):
        self._take_late()
        if self._reach(("look", what), ("refused",)) == "refused":
            self.failures += 1
            raise GenericError(what)

    def _change(self, what, do, *, is_seen=False, refusal=None):
        self._take_late()
        fault = self._reach((what,), FAULTS[2:] if refusal else FAULTS[2:-1])
        if fault == "conflict":
            raise refusal(what)
        if fault == "late":
            self._late.append(do)
        if fault in ("refused", "late") or (fault == "lost" and not is_seen):
            self.failures += 1
        if fault in ("refused", "late"):
            raise GenericError(what)
        do()
        if fault == "retried":
            do()
        if fault == "lost":
            raise GenericError(what)
        self._reach(("answer", what), ())

    def _reach(self, what, fitting):
        fault = self.schedule.reach(what, ("clock", *fitting))
        if fault == "clock":
            self.clock += self.schedule.random.choice([-1, 1]) * 10 ** self.schedule.random.randint(1, 7)
        return fault

    def _take_late(self):
        """What comes late comes when it does."""
        if self._late and self.schedule.random.random() < 0.1:
            with suppress(AlreadyExistsError, PreconditionError):
                self._late.pop(0)()

    def _find(self, name):
        if name not in self.objects:
            raise FileNotFoundError(name)
        return self.objects[name]

    def _below(self, prefix):
        return sorted(name for name in self.objects if prefix is None or name.startswith(f"{prefix}/"))
