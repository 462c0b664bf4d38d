"""Keep the ledger in `holders/ledger/<account>/`, a folder per account. Never rewritten, nor collected by `gc`.

It holds a file for each charge (written aside, fsynced and linked under the next number); a file for each question that was
answered, with the names of its reports; and a file for each question of a conversation in rounds; both with the number of
charges at that time, so that losing the last charge is noticed. What a charge means: `ldptree.protocol.ledger`.

A charge is there whole or not at all, whenever the process or the machine stops. Nobody waits for a lock: of processes or
machines that charge at once one takes the next number, and the others read what it spent before they try again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ldptree.errors import ArtifactCorrupt, BudgetError
from ldptree.protocol.ledger import Charge, Ledger, Names, RowRange
from storage.digests import canonical
from storage.formats import read_stamped, refuse_other, stamped
from storage.holders.holder_names import check_name_type
from storage.ledger.campaigns import another_file
from storage.objects.object_store import NotReached, ObjectStore, sizes_of
from storage.store import Store

VERSION = 3
LEDGERS = "holders/ledger"
REMEDY = "Without it nobody can say what holders have spent, so nobody is asked. Restore it from a copy."


class Account:
    """One ledger of a work folder, for releases, or for the simulations with one noise seed."""

    def __init__(self, store: Store, noise_seed: int | None, *, new_people: bool = False) -> None:
        """The account of releases (None), or of a noise seed. What a seeded simulation spends is spent by nobody.

        `new_people`: every row of a file that was not charged before is somebody who was never charged.
        """
        self.store, self._new_people = store, new_people
        self.name = "release" if noise_seed is None else f"seed-{noise_seed}"
        self._objects = store.objects
        self._folder = f"{LEDGERS}/{self.name}"

    def read(self) -> Ledger:
        """Everything spent so far, under the smallest cap ever stated. Writes nothing. Raises ArtifactCorrupt."""
        return self._read()[0]

    def foresee(self, charges: Sequence[Charge], cap: float | None, room: Sequence[Charge] = ()) -> Ledger:
        """Return what `charge` would return, without writing anything. Raises what `charge` raises."""
        self._check_answers(charges)
        ledger, _, first = self._read()
        _check_names(ledger, charges)
        ledger.hold_to(cap)
        self._check_files(ledger, first, charges)
        ledger.spend(charges, room)
        return ledger

    def charge(self, charges: Sequence[Charge], cap: float | None, room: Sequence[Charge] = ()) -> Ledger:
        """Spend all of these or none, and keep that before anybody answers; returns what is spent now.

        `room` is for what may be asked of the same holders later, as in `Ledger.spend`.
        A `cap` that was stated holds from now on, even where these charges are refused by it.

        Raises:
            BudgetError: a holder would spend more than the smallest cap ever stated here, or under a cap it cannot be known
                whether these are rows of people who were charged before; nothing is spent.
            ProtocolMismatch: a column names these holders by another type than before; nothing is spent.
            ArtifactCorrupt: the ledger is not what was written, or answers to one of these questions went missing.
        """
        self._check_answers(charges)
        while True:
            ledger, n_files, first = self._read()
            _check_names(ledger, charges)
            stated = ledger.cap if ledger.hold_to(cap) else None
            refused: BudgetError | None = None
            added: tuple[Charge, ...] = ()
            try:
                self._check_files(ledger, first, charges)
                added = ledger.spend(charges, room)
            except BudgetError as fault:
                refused = fault
            is_kept = not (added or stated) or self._append(n_files + 1, stated, added)
            if is_kept and refused is not None:
                raise refused
            if is_kept:
                return ledger

    def keep_answer(self, question: str, files: Sequence[str]) -> None:
        """Record in which files a question was answered, so that it is never answered a second time."""
        self._keep(f"{self._stem(question)}.answered", {"question": question, "files": sorted(files)})

    def is_answered(self, question: str) -> bool:
        """Return whether a question's answers were kept. Raises ArtifactCorrupt where they went missing since."""
        kept = f"{self._stem(question)}.answered"
        if self._objects.size(kept) is None:
            return False
        files = _read_kept(self._objects, kept)["files"]
        there = sizes_of(self._objects, files)
        for name in files:
            if name not in there:
                raise ArtifactCorrupt(
                    f"{name}: these reports were received, and are now missing. Asking their holders again would spend "
                    "their epsilon twice. Restore the file from a copy, or begin anew in another work folder."
                )
        return True

    def keep_asked(self, place: str, digest: str) -> bool:
        """Keep which question is asked in a place that one charge has paid for; False where it was another one."""
        kept = f"{self._stem(place)}.asked"
        self._keep(kept, {"question": place, "digest": digest})
        return bool(_read_kept(self._objects, kept)["digest"] == digest)

    def asked(self, place: str) -> str | None:
        """The digest of the question that was asked in a place; None where none was. Raises ArtifactCorrupt."""
        kept = f"{self._stem(place)}.asked"
        return None if self._objects.size(kept) is None else str(_read_kept(self._objects, kept)["digest"])

    def _keep(self, name: str, content: dict[str, Any]) -> None:
        """Write what was asked or answered, once, and how many charges stood by then."""
        kept = stamped(_suffix(name), content | {"charges": len(self._names("charge"))})
        self._objects.create(name, kept)

    def _check_files(self, ledger: Ledger, first: Sequence[Charge], charges: Sequence[Charge]) -> None:
        """Refuse a new question under a cap beside files that were not charged together first, if rows are holders in one of
        them. Raises BudgetError.
        """
        paid = {entry.question for entry in ledger.entries}
        new = [charge for charge in charges if charge.question not in paid]
        if ledger.cap is None or not new:
            return
        ways, together = _ways_by_file([*ledger.entries, *new]), _ways_by_file(first or new)
        is_mixed = len(ways) > 1 and len(set().union(*ways.values())) > 1
        apart = {source for source, way in ways.items() if "rows" in way and source not in together}
        if is_mixed or (apart and not self._new_people):
            of_apart = (c for c in new if isinstance(c.who, RowRange) and c.who.source in apart)
            others = "other files were charged here, under a lifetime cap,"
            raise another_file(next(of_apart, new[0]).where, others, may_be_new=not is_mixed)

    def _check_answers(self, charges: Sequence[Charge]) -> None:
        for question in dict.fromkeys(charge.question for charge in charges):
            self.is_answered(question)

    def _stem(self, question: str) -> str:
        return f"{self._folder}/{hashlib.sha256(question.encode()).hexdigest()[:40]}"

    def _names(self, *suffixes: str) -> list[str]:
        """The names of what is kept here, of these kinds, in order."""
        return [
            entry.name for entry in self._objects.entries(self._folder) if _suffix(entry.name) in suffixes
        ]

    def _read(self) -> tuple[Ledger, int, list[Charge]]:
        """The ledger, how many files it is in, and what was charged first, at once."""
        ledger, entries, first = Ledger(), list[Charge](), list[Charge]()
        # Before the charges: of what is kept here every charge that it came after is then among them.
        kept = self._objects.at_once(partial(_read_kept, self._objects), self._names("answered", "asked"))
        names = self._names("charge")
        for number, name in enumerate(names, start=1):
            if name != self._charge(number):
                raise _damaged(self._objects, self._charge(number), "missing")
        for cap, charges in self._objects.at_once(partial(_decoded, self._objects), names):
            ledger.hold_to(cap)
            entries += charges
            first = first or charges
        if len(names) < max((record["charges"] for record in kept), default=0):
            raise _damaged(self._objects, self._charge(len(names) + 1), "missing")
        return Ledger(cap=ledger.cap, entries=entries), len(names), first

    def _append(self, number: int, cap: float | None, charges: Sequence[Charge]) -> bool:
        """Write the file of this number; False where another process did."""
        return self._objects.create(self._charge(number), _encoded(cap, charges))

    def _charge(self, number: int) -> str:
        return f"{self._folder}/{number:08d}.charge"


def _ways_by_file(charges: Sequence[Charge]) -> dict[str, set[str]]:
    """Return who holders are in these questions, "rows", "names" or both, by each charged file's keyed digest."""
    named = {charge.question for charge in charges if isinstance(charge.who, Names)}
    files: dict[str, set[str]] = {}
    for charge in charges:
        if isinstance(charge.who, RowRange):
            files.setdefault(charge.who.source, set()).add("names" if charge.question in named else "rows")
    return files


def _check_names(ledger: Ledger, charges: Sequence[Charge]) -> None:
    """Raises ProtocolMismatch where a column named holders by another type before."""
    pairs = {charge.who.named_by for charge in charges if isinstance(charge.who, Names)}
    for column, kind in (named_by for named_by in pairs if named_by is not None):
        check_name_type(column, kind, ledger.type_of_names(column), "the ledger of this work folder")


def _encoded(cap: float | None, charges: Sequence[Charge]) -> bytes:
    """A line with the digest of the rest, a line of JSON, and the hashes of all named holders."""
    entries = [
        {
            "question": charge.question,
            "epsilon": float(charge.epsilon),
            "about": charge.about,
            "rows": [charge.who.source, charge.who.start, charge.who.stop]
            if isinstance(charge.who, RowRange)
            else None,
            "names": len(charge.who) if isinstance(charge.who, Names) else None,
            "named_by": charge.who.named_by if isinstance(charge.who, Names) else None,
        }
        for charge in charges
    ]
    named = [charge.who.hashes.astype("<u8").tobytes() for charge in charges if isinstance(charge.who, Names)]
    content = b"\n".join([canonical({"version": VERSION, "cap": cap, "entries": entries}), b"".join(named)])
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def _decoded(objects: ObjectStore, name: str) -> tuple[float | None, list[Charge]]:
    """The cap stated in a file, and its charges. Raises ArtifactCorrupt."""
    try:
        digest, _, content = objects.get(name).partition(b"\n")
    except NotReached:
        raise
    except OSError:
        raise _damaged(objects, name, "not to be read") from None
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise _damaged(objects, name, "damaged")
    header, _, named = content.partition(b"\n")
    stated = json.loads(header)
    refuse_other(objects.where(name), stated["version"], VERSION)
    hashes, at, entries = np.frombuffer(named, "<u8"), 0, []
    for entry in stated["entries"]:
        who: Any
        if entry["rows"] is not None:
            source, start, stop = entry["rows"]
            who = RowRange(source=source, start=start, stop=stop)
        else:
            who = Names(
                hashes[at : at + entry["names"]],
                named_by=tuple(entry["named_by"]) if entry.get("named_by") else None,
            )
            at += entry["names"]
        entries.append(
            Charge(question=entry["question"], epsilon=entry["epsilon"], who=who, about=entry["about"])
        )
    return stated["cap"], entries


def _read_kept(objects: ObjectStore, name: str) -> dict[str, Any]:
    """Read what was kept of a question. Raises ArtifactCorrupt."""
    try:
        content = read_stamped(objects, name, _suffix(name), REMEDY)
    except FileNotFoundError:
        raise _damaged(objects, name, "missing") from None
    if ("files" if _suffix(name) == "answered" else "digest") not in content:
        raise _damaged(objects, name, "damaged")
    return content


def _suffix(name: str) -> str:
    """Return the text after a name's last dot, its kind of record (of a charge, a question or an answer)."""
    return name.rpartition(".")[2]


def _damaged(objects: ObjectStore, name: str, how: str) -> ArtifactCorrupt:
    return ArtifactCorrupt(f"{objects.where(name)}: {how}. {REMEDY}")
