"""Keep a campaign's published protocol, its terms, and everything collected under it. Never rewritten, never collected
by `gc`.

The curator's side (`curator/campaigns/<name>`) has the protocol, the terms and the reports received; the holders' side
(`holders/campaigns/<name>`) has which files were asked and, where a column names the holder, who has a role in each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from ldptree.errors import BudgetError, ProtocolMismatch
from schemas.manifest import Manifest, Strict
from storage.digests import Hasher, canonical
from storage.formats import Damaged, read_stamped, stamped
from storage.objects.object_store import NotReached, ObjectStore
from storage.store import Store

REMEDY = (
    "Without it nobody can say who has answered, so nobody is asked. Restore it from a backup that was made after the campaign's "
    "last run, or begin anew in another work folder."
)


class AskedSince(Exception):  # noqa: N818 - no error: who is asked has to be chosen anew
    """Another run of the campaign has asked files of its own meanwhile."""


@dataclass(frozen=True)
class Frozen:
    """The terms that the first run of a campaign fixed."""

    protocol: Manifest
    terms: dict[str, Any]
    form: str
    """Whether holders' reports are written, or exact totals drawn."""


class Campaign:
    """One campaign of a work folder."""

    def __init__(self, store: Store, name: str) -> None:
        """The campaign `name`, begun or not."""
        self.store = store
        self.name = name
        self._objects = store.objects
        self._published = f"curator/campaigns/{name}/published.json"
        self._reports = f"curator/campaigns/{name}/reports"
        self._holders = f"holders/campaigns/{name}"
        self._files = f"{self._holders}/files.json"

    def frozen(self) -> Frozen | None:
        """The protocol and terms, or None before the first run published them."""
        try:
            content = read_stamped(self._objects, self._published, "published", REMEDY)
            return _Published.model_validate(content).frozen()
        except FileNotFoundError:
            return None
        except ValidationError:
            raise _damaged(self._objects, self._published) from None

    def publish(self, protocol: Manifest, terms: Mapping[str, Any], form: str) -> Frozen:
        """Freeze a protocol, its terms and the form of its reports; where another run was first, its ones are returned.

        Raises ProtocolMismatch where that run's terms were others.
        """
        published = {"protocol": protocol.model_dump(mode="json"), "terms": dict(terms), "form": form}
        self._objects.create(self._published, stamped("published", published))
        frozen = self.frozen()
        assert frozen is not None
        self.check_terms(terms)
        return frozen

    def check_terms(self, terms: Mapping[str, Any]) -> None:
        """Raises ProtocolMismatch where a run would collect on other terms than those published."""
        frozen = self.frozen()
        if frozen is None:
            return
        now = json.loads(canonical(dict(terms)))
        before = frozen.terms
        changed = sorted(key for key in now.keys() | before.keys() if now.get(key) != before.get(key))
        if changed:
            raise ProtocolMismatch(
                f"campaign {self.name!r} was published with another {', '.join(changed)}. Its terms are fixed: "
                "set them back, or begin a campaign of another name (its holders then spend epsilon anew)."
            )

    def add_report(self, report: Manifest) -> None:
        """Record that a file of reports was received. A second file with the same content has a record of its own."""
        name = f"{self._reports}/{Hasher().of_value(file_of(report))}.json"
        self._objects.create(name, stamped("received", report.model_dump(mode="json")))

    def reports(self) -> list[Manifest]:
        """Every file of reports received so far, once."""
        kept = [entry.name for entry in self._objects.entries(self._reports)]
        reports = self._objects.at_once(partial(received_report, self._objects), kept)
        return list({file_of(report): report for report in reports}.values())

    def asked(self) -> dict[str, str]:
        """Name to keyed digest of every file whose holders were asked, oldest first."""
        return self._asked().files

    def _asked(self) -> _Asked:
        try:
            return _Asked.model_validate(read_stamped(self._objects, self._files, "files", REMEDY))
        except FileNotFoundError:
            return _Asked()
        except ValidationError:
            raise _damaged(self._objects, self._files) from None

    def check_files(self, digests: Mapping[str, str], *, takes_more: bool = True) -> None:
        """Raises BudgetError where a file that was asked before has changed, as its rows would be asked twice; or, unless a
        campaign `takes_more`, where a file comes beside those that its first run asked.
        """
        asked = self.asked()
        for name, digest in digests.items():
            if asked.get(name, digest) != digest:
                raise BudgetError(
                    f"{name}: changed since campaign {self.name!r} collected it. Its holders have answered; asked again they "
                    "would spend epsilon twice. Put new rows in a file of their own."
                )
            if asked and not takes_more and digest not in asked.values():
                raise another_file(name, f"campaign {self.name!r} asked another file", may_be_new=True)

    def in_order(self, digests: Mapping[str, str]) -> list[str]:
        """File names, those asked before first and in the order they were asked."""
        asked = list(self.asked())
        return sorted(digests, key=lambda name: asked.index(name) if name in asked else len(asked))

    def ask(
        self, digests: Mapping[str, str], answers: Iterable[Path] = (), *, known: Mapping[str, str]
    ) -> None:
        """Record that holders of these files are asked, and, if they have names, who has a role (`DIGEST.npy`).

        Written before any of them reports, and after the terms are fixed on which they were chosen. `known`: the files that were
        asked when they were chosen. Raises AskedSince where others were asked since: who is in those must not be asked here too.
        """
        paths = list(answers)

        def add_files(_: bytes | None) -> bytes:
            before = self._asked()
            _check_known(before, known)
            kept = dict(before.answers)
            for path in paths:
                # What a run left that was stopped before its files were asked is of no use: others may have been asked since.
                if path.stem not in before.files.values() or path.stem not in kept:
                    kept[path.stem] = self._keep(path)
            now = _Asked(files=before.files | dict(digests), answers=kept)
            return stamped("files", now.model_dump(mode="json"))

        self._objects.change(
            self._files, add_files
        )  # of two runs with different new files neither loses its own

    def check_known(self, known: Mapping[str, str]) -> None:
        """Raises AskedSince where files were asked that are not among these."""
        _check_known(self._asked(), known)

    def answered(self, digests: Iterable[str]) -> NDArray[np.uint64]:
        """Hashes of the holders who have a role in the files with these digests, sorted."""
        asked = self._asked()
        arrays = [hashes for digest in digests if (hashes := self._kept(digest, asked)) is not None]
        return np.unique(np.concatenate(arrays)) if arrays else np.empty(0, np.uint64)

    def _kept(self, stem: str, asked: _Asked) -> NDArray[np.uint64] | None:
        if (digest := asked.answers.get(stem)) is None:
            return None
        own = self._own_name(stem, digest)
        name = own if self._objects.size(own) is not None else f"{self._holders}/answered/{stem}.npy"
        return _hashes(self._objects, name, digest)

    def _keep(self, path: Path) -> str:
        """Keep who answers through a file; returns the digest of that. By a name of its own where another run kept others, who
        may be asked, or never were.
        """
        content = path.read_bytes()
        digest, name = Hasher().of_bytes(content), f"{self._holders}/answered/{path.name}"
        if not self._objects.create(name, content) and Hasher().of_bytes(self._objects.get(name)) != digest:
            self._objects.create(self._own_name(path.stem, digest), content)
        return digest

    def _own_name(self, stem: str, digest: str) -> str:
        return f"{self._holders}/answered/{stem}-{digest[:16]}.npy"


class _Published(Strict):
    """The content of `published.json`."""

    protocol: Manifest
    terms: dict[str, Any]
    form: str

    def frozen(self) -> Frozen:
        return Frozen(self.protocol, self.terms, self.form)


class _Asked(Strict):
    """The content of `files.json`, the files that were asked, and the digest of each file of respondents by name."""

    files: dict[str, str] = Field(default={})
    answers: dict[str, str] = Field(default={})


def _check_known(asked: _Asked, known: Mapping[str, str]) -> None:
    if not asked.files.items() <= known.items():
        raise AskedSince


def received_report(objects: ObjectStore, name: str) -> Manifest:
    """Read what a campaign keeps of a file of reports. Raises ArtifactCorrupt."""
    try:
        return Manifest.model_validate(read_stamped(objects, name, "received", REMEDY))
    except (FileNotFoundError, ValidationError):
        raise _damaged(objects, name) from None


def another_file(name: str, others: str, *, may_be_new: bool) -> BudgetError:
    """Return the refusal of a file whose people may be in another. `may_be_new` if a statement would settle it."""
    remedy = (
        'If every row of a new file is a person who was never asked, state holder = "row" and new_people = true; else begin anew '
        "with the column that names people as dataset.holder."
        if may_be_new
        else "Begin anew, in another work folder."
    )
    return BudgetError(
        f'{name}: {others} before, and with holder = "row" nobody can tell whether the rows of two files are the same people. '
        f"Nobody was asked. {remedy}"
    )


def _hashes(objects: ObjectStore, name: str, digest: str) -> NDArray[np.uint64]:
    """Read who has a role in one file, as written with `digest`. Raises ArtifactCorrupt."""
    try:
        path = objects.whole_path(name, lambda path: digest == Hasher().of_file(path))
        if path is None:
            raise _damaged(objects, name)
        hashes: NDArray[np.uint64] = np.load(path)
    except NotReached:
        raise
    except (OSError, ValueError, EOFError):
        raise _damaged(objects, name) from None
    return hashes


def _damaged(objects: ObjectStore, name: str) -> Damaged:
    return Damaged(f"{objects.where(name)}: missing or damaged. {REMEDY}")


def file_of(report: Manifest) -> str:
    """Return the file that a shard's reports are known by, never what they say, which others may have said too."""
    return f"{report.path}/{report.files[0].name}"
