"""Keep a campaign's terms, the files that it asked and the reports that it received in the holders' database.

Its protocol and its reports lie in the curator's zone. Never rewritten, never collected by `gc`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import BudgetError, LdptreeError, ProtocolMismatch
from ldptree.protocol.ledger import Names
from schemas.manifest import Manifest
from storage.digests import Hasher, canonical
from storage.ledger.database import Database
from storage.ledger.schema import CAMPAIGNS, FILES, REPORTS
from storage.ledger.transactions import Snapshot, Transaction
from storage.store import Store

ASKED_SINCE = "another run of this campaign was faster, and nobody was asked. Run the same command."


class AskedSince(LdptreeError):  # noqa: N818 - no error: who is asked has to be chosen anew
    """Another run of the campaign has published its terms, or asked files of its own, meanwhile."""


@dataclass(frozen=True)
class Frozen:
    """The terms that the first run of a campaign fixed."""

    protocol: Manifest
    terms: dict[str, Any]
    form: str
    """Holders' reports are written ("reports"), or totals alone drawn ("totals")."""


class Campaign:
    """One campaign of a work folder."""

    def __init__(self, store: Store, name: str) -> None:
        """The campaign `name`, begun or not."""
        self.store = store
        self.name = name
        self._database = Database(store.objects)

    def frozen(self) -> Frozen | None:
        """The protocol and terms, or None before the first run published them."""
        with self._database.reading() as kept:
            published = kept.rows(CAMPAIGNS, name=self.name)
        if not published:
            return None
        (row,) = published
        return Frozen(Manifest.model_validate_json(row.protocol), json.loads(row.terms), row.form)

    def add_reports(self, reports: Iterable[Manifest]) -> None:
        """Record that files of reports were received. A second file with the same content has a record of its own."""
        with self._database.writing() as kept:
            received = {row.file for row in kept.rows(REPORTS, campaign=self.name)}
            for report in reports:
                if (file := file_of(report)) not in received:
                    received.add(file)
                    kept.insert(REPORTS, campaign=self.name, file=file, manifest=report.model_dump_json())

    def reports(self) -> list[Manifest]:
        """Every file of reports received so far, once."""
        with self._database.reading() as kept:
            return [
                Manifest.model_validate_json(row.manifest) for row in kept.rows(REPORTS, campaign=self.name)
            ]

    def count_earlier(self, digests: Iterable[str]) -> int:
        """Return the reports that were received before a run of the files with these digests asked anybody; all if it did not."""
        with self._database.reading() as kept:
            asked = kept.rows(FILES, campaign=self.name, run=_of_run(digests))
            reports = kept.rows(REPORTS, campaign=self.name)
        earlier = [row.manifest for row in reports if not asked or row.transaction < asked[0].transaction]
        return sum(Manifest.model_validate_json(manifest).rows for manifest in earlier)

    def asked(self) -> dict[str, str]:
        """Name to keyed digest of every file whose holders were asked, oldest first."""
        with self._database.reading() as kept:
            return _asked(kept, self.name)

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
        """File names, those asked before first and in the order they were asked, wherever they lie now."""
        asked = list(self.asked().values())
        return sorted(digests, key=lambda name: [*asked, digests[name]].index(digests[name]))

    def answered(self, digests: Iterable[str]) -> NDArray[np.uint64]:
        """Hashes of the holders who have a role in the files with these digests, sorted."""
        wanted = {*digests}
        with self._database.reading() as kept:
            rows = kept.rows(FILES, campaign=self.name)
            lists = {row.people for row in rows if row.digest in wanted and row.people is not None}
            parts = [part for of in sorted(lists) for part in kept.people(of)]
            return np.unique(np.concatenate([np.empty(0, np.uint64), *parts]))


@dataclass(frozen=True, kw_only=True)
class Joining:
    """A run that joins a campaign, in the transaction that charges its holders: nobody is drawn before all of it is committed.

    protocol  the question, which the campaign publishes if this run is its first, with `terms` and `form`.
    digests   keyed digest of each file whose holders are asked, by name.
    answers   who has a role in them, if holders have names: files `DIGEST.npy`.
    known     the files that had been asked when these were chosen.
    """

    campaign: str
    protocol: Manifest
    terms: Mapping[str, Any]
    form: str
    digests: Mapping[str, str]
    answers: Sequence[Path]
    known: Mapping[str, str]

    def check(self, kept: Snapshot) -> None:
        """Raises AskedSince where others were asked since these were chosen, who must not be asked here too, or another question
        was published; ProtocolMismatch where the published terms are others.
        """
        check_known(_asked(kept, self.campaign), self.known)
        for row in kept.rows(CAMPAIGNS, name=self.campaign):
            check_terms(self.campaign, json.loads(row.terms), self.terms)
            if Manifest.model_validate_json(row.protocol) != self.protocol:
                raise AskedSince(ASKED_SINCE)

    def keep(self, kept: Transaction) -> None:
        """Freeze the terms where none were published, and keep the files and who has a role in them."""
        if not kept.rows(CAMPAIGNS, name=self.campaign):
            text, fixed = self.protocol.model_dump_json(), canonical(dict(self.terms)).decode()
            kept.insert(CAMPAIGNS, name=self.campaign, protocol=text, terms=fixed, form=self.form)
        files = kept.rows(FILES, campaign=self.campaign)
        asked, lists = {row.name for row in files}, {row.digest: row.people for row in files}
        paths, run = {path.stem: path for path in self.answers}, _of_run(self.digests.values())
        for name, digest in self.digests.items():
            if name in asked:
                continue
            if digest not in lists:
                named = Names(np.load(paths[digest])) if digest in paths else None
                lists[digest] = None if named is None else kept.insert_people(named.parts())
            of_file = {"name": name, "digest": digest, "people": lists[digest], "run": run}
            kept.insert(FILES, campaign=self.campaign, **of_file)


def campaigns_in(store: Store) -> list[Campaign]:
    """Every campaign that published its terms, oldest first."""
    with Database(store.objects).reading() as kept:
        return [Campaign(store, row.name) for row in kept.rows(CAMPAIGNS)]


def _of_run(digests: Iterable[str]) -> str:
    """Return what a run of these files is known by."""
    return Hasher().of_value(sorted(digests))


def _asked(kept: Snapshot, campaign: str) -> dict[str, str]:
    return {row.name: row.digest for row in kept.rows(FILES, campaign=campaign)}


def check_terms(campaign: str, before: Mapping[str, Any], terms: Mapping[str, Any]) -> None:
    """Raises ProtocolMismatch where a run would collect on other terms than those published before."""
    now = json.loads(canonical(dict(terms)))
    changed = sorted(key for key in now.keys() | before.keys() if now.get(key) != before.get(key))
    if changed:
        raise ProtocolMismatch(
            f"campaign {campaign!r} was published with another {', '.join(changed)}. Its terms are fixed: "
            "set them back, or begin a campaign of another name (its holders then spend epsilon anew)."
        )


def check_known(asked: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Raises AskedSince where files were asked that are not among the known ones."""
    if not asked.items() <= known.items():
        raise AskedSince(ASKED_SINCE)


def another_file(name: str, others: str, *, may_be_new: bool) -> BudgetError:
    """Return the refusal of a file whose people may be in another. `may_be_new` if a statement would settle it."""
    remedy = (
        'If every row of a new file is a person who was never asked, state holder = "row" and new_people = true; else begin anew '
        "with the column that names people as dataset.holder."
        if may_be_new
        else "Use another work folder if none of these people was asked here: it does not know who was."
    )
    return BudgetError(
        f'{name}: {others} before, and with holder = "row" nobody can tell whether the rows of two files are the same people. '
        f"Nobody was asked. {remedy}"
    )


def file_of(report: Manifest) -> str:
    """Return the file that a shard's reports are known by, never what they say, which others may have said too."""
    return f"{report.path}/{report.files[0].name}"
