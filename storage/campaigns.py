"""Campaigns: a published protocol, the terms it was published on, and everything collected under it. Never rewritten,
never collected by `gc`.

The curator's side (`curator/campaigns/<name>`) has the protocol, the terms and the reports received; the holders' side
(`holders/campaigns/<name>`) has which files were asked and, where a column names the holder, who has answered.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import BudgetError, ProtocolMismatch
from schemas.manifest import Manifest
from storage.alike import Alike
from storage.digests import Hasher, canonical
from storage.store import Store


@dataclass(frozen=True)
class Frozen:
    """What the first run of a campaign fixed."""

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
        self._curator = store.zone("curator") / "campaigns" / name
        self._holders = store.zone("holders") / "campaigns" / name

    def frozen(self) -> Frozen | None:
        """The protocol and terms, or None before the first run published them."""
        try:
            content = json.loads((self._curator / "published.json").read_bytes())
        except FileNotFoundError:
            return None
        protocol = Manifest.model_validate_json(json.dumps(content["protocol"]))
        return Frozen(protocol, content["terms"], content["form"])

    def publish(self, protocol: Manifest, terms: Mapping[str, Any], form: str) -> Frozen:
        """Freeze a protocol, its terms and the form of its reports; where another run was first, its ones are returned.

        Raises ProtocolMismatch where that run's terms were others.
        """
        content = canonical(
            {"protocol": protocol.model_dump(mode="json"), "terms": dict(terms), "form": form}
        )
        self.store.write_once(self._curator / "published.json", lambda path: path.write_bytes(content))
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
        changed = sorted(
            key for key in now.keys() | frozen.terms.keys() if now.get(key) != frozen.terms.get(key)
        )
        if changed:
            raise ProtocolMismatch(
                f"campaign {self.name!r} was published with another {', '.join(changed)}. Its terms are fixed: "
                "set them back, or begin a campaign of another name (its holders then spend epsilon anew)."
            )

    def add_report(self, report: Manifest) -> None:
        """Keep that a file of reports was received: one that says the same as another is a file of its own."""
        path = self._curator / "reports" / f"{Hasher().of_value(file_of(report))}.json"
        if not path.exists():
            self.store.replace(path, report.model_dump_json().encode())

    def reports(self) -> list[Manifest]:
        """Every file of reports received so far, once."""
        kept = sorted((self._curator / "reports").glob("*.json"))
        found = [Manifest.model_validate_json(path.read_bytes()) for path in kept]
        return list({file_of(report): report for report in found}.values())

    def alike(self) -> Alike:
        """Which of its shards that hold the same is which."""
        return Alike(self.store, self._holders / "alike")

    def asked(self) -> dict[str, str]:
        """Name to plain digest of every file whose holders were asked, oldest first."""
        path = self._holders / "files.json"
        return dict(json.loads(path.read_bytes())) if path.exists() else {}

    def check_files(self, digests: Mapping[str, str]) -> None:
        """Raises BudgetError where a file that was asked before has changed: its rows would be asked twice."""
        asked = self.asked()
        for name, digest in digests.items():
            if asked.get(name, digest) != digest:
                raise BudgetError(
                    f"{name}: changed since campaign {self.name!r} collected it. Its holders have answered; asked again they "
                    "would spend epsilon twice. Put new rows in a file of their own."
                )

    def in_order(self, digests: Mapping[str, str]) -> list[str]:
        """File names, those asked before first and in the order they were asked."""
        asked = list(self.asked())
        return sorted(digests, key=lambda name: asked.index(name) if name in asked else len(asked))

    def ask(self, digests: Mapping[str, str], answers: Iterable[Path] = ()) -> None:
        """Keep that the holders of these files are asked now, and who they are: a file `DIGEST.npy` of hashes for each.

        Written before any of them reports, and after the terms are fixed on which they were chosen.
        """
        self._holders.mkdir(parents=True, exist_ok=True)
        for path in answers:
            content = path.read_bytes()
            self.store.write_once(self._answers(path.stem), lambda aside, b=content: aside.write_bytes(b))  # type: ignore[misc]
        with (self._holders / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # of two runs with different new files neither may lose its own
            self.store.replace(
                self._holders / "files.json", json.dumps(self.asked() | dict(digests)).encode()
            )

    def answered(self, digests: Iterable[str]) -> NDArray[np.uint64]:
        """Hashes of the holders who answer through the files with these digests, sorted."""
        arrays = [np.load(path) for digest in digests if (path := self._answers(digest)).exists()]
        return np.unique(np.concatenate(arrays)) if arrays else np.empty(0, np.uint64)

    def _answers(self, digest: str) -> Path:
        return self._holders / "answered" / f"{digest}.npy"


def file_of(report: Manifest) -> str:
    """What a shard's reports are known by: their file, never what they say, which others may have said too."""
    return f"{report.path}/{report.files[0].name}"
