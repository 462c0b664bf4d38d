"""Keep what each holder spent in the holders' database, an account for releases and one for each noise seed.

A charge is there whole or not at all, whenever the process or the machine stops. Of processes or machines that charge at once
each sees what the one before it spent. What a charge means: `ldptree.protocol.ledger`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row

from ldptree.errors import BudgetError
from ldptree.protocol.ledger import Charge, Ledger, Names, RowRange
from storage.holders.holder_names import check_name_type
from storage.ledger.campaigns import Joining, another_file
from storage.ledger.database import Database, lost
from storage.ledger.schema import ANSWERS, CAPS, CHARGES, QUESTIONS
from storage.ledger.transactions import Snapshot, Transaction
from storage.objects.object_store import sizes_of
from storage.store import Store

RELEASE = "release"


class Account:
    """One ledger of a work folder, for releases, or for the simulations with one noise seed."""

    def __init__(self, store: Store, noise_seed: int | None, *, new_people: bool = False) -> None:
        """The account of releases (None), or of a noise seed. What a seeded simulation spends is spent by nobody.

        `new_people`: every row of a file that was not charged before is somebody who was never charged.
        """
        self.store, self._new_people = store, new_people
        self.name = RELEASE if noise_seed is None else f"seed-{noise_seed}"
        self._database = Database(store.objects)

    def read(self) -> Ledger:
        """Everything spent so far, under the smallest cap ever stated. Writes nothing. Raises ArtifactCorrupt."""
        with self._database.reading() as kept:
            return self._read(kept)[0]

    def foresee(self, charges: Sequence[Charge], cap: float | None, room: Sequence[Charge] = ()) -> Ledger:
        """Return what `charge` would return, without writing anything. Raises what `charge` raises."""
        with self._database.reading() as kept:
            self._check_answers(kept, [charge.question for charge in charges])
            ledger, first = self._read(kept)
            ledger.hold_to(cap)
            self._spend(ledger, first, charges, room)
        return ledger

    def charge(
        self,
        charges: Sequence[Charge],
        cap: float | None,
        room: Sequence[Charge] = (),
        *,
        joining: Joining | None = None,
    ) -> Ledger:
        """Spend all of these or none, and keep that before anybody answers; returns what is spent now.

        `room` is for what may be asked of the same holders later, as in `Ledger.spend`. `joining`: the campaign that they answer
        in, whose terms and files are kept with the charge, or neither.
        A `cap` that was stated holds from now on, even where these charges are refused by it.

        Raises:
            BudgetError: a holder would spend more than the smallest cap ever stated here, or under a cap it cannot be known
                whether these are rows of people who were charged before; nothing is spent.
            ProtocolMismatch: a column names these holders by another type than before; nothing is spent.
            ArtifactCorrupt: the ledger is not what was written, or answers to one of these questions went missing.
            AskedSince: another run of the campaign was faster; nothing is spent.
        """
        refused: BudgetError | None = None
        with self._database.writing() as kept:
            if joining is not None:
                joining.check(kept)
            self._check_answers(kept, [charge.question for charge in charges])
            ledger, first = self._read(kept)
            is_lowered = ledger.hold_to(cap)
            try:
                added = self._spend(ledger, first, charges, room)
            except BudgetError as fault:
                refused, added = fault, ()
            if is_lowered:
                kept.insert(CAPS, account=self.name, cap=cap)
            if joining is not None and refused is None:
                joining.keep(kept)
            for charge in added:
                self._insert(kept, charge)
        if refused is not None:
            raise refused
        return ledger

    def keep_answer(self, question: str, files: Mapping[str, str]) -> None:
        """Record in which files a question was answered, with their digests, so that it is never answered a second time."""
        sizes = sizes_of(self.store.objects, files)
        with self._database.writing() as kept:
            if not kept.rows(ANSWERS, account=self.name, question=question):
                for name, digest in sorted(files.items()):
                    of_file = {"file": name, "size": sizes.get(name, 0), "digest": digest}
                    kept.insert(ANSWERS, account=self.name, question=question, **of_file)

    def is_answered(self, question: str) -> bool:
        """Return whether a question's answers were kept. Raises ArtifactCorrupt where they are missing or changed since."""
        with self._database.reading() as kept:
            return bool(self._check_answers(kept, [question]))

    def keep_asked(self, place: str, digest: str) -> bool:
        """Keep which question is asked in a place that one charge has paid for; False where it was another one."""
        with self._database.writing() as kept:
            asked = kept.rows(QUESTIONS, account=self.name, place=place)
            if not asked:
                kept.insert(QUESTIONS, account=self.name, place=place, digest=digest)
            return not asked or bool(asked[0].digest == digest)

    def _spend(
        self, ledger: Ledger, first: Sequence[Charge], charges: Sequence[Charge], room: Sequence[Charge]
    ) -> tuple[Charge, ...]:
        """Spend these in a ledger, and return what had not been spent before. Raises as `charge`."""
        _check_names(ledger, charges)
        self._check_files(ledger, first, charges)
        added = ledger.spend(charges, room)
        ledger.largest_spend()  # reads everybody while the transaction lasts, and is kept
        return added

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
            known = {entry.who.source for entry in ledger.entries if isinstance(entry.who, RowRange)}
            others_of = apart | ({*ways} - known if is_mixed else set())
            of_apart = (c for c in new if isinstance(c.who, RowRange) and c.who.source in others_of)
            others = "other files were charged here, under a lifetime cap,"
            raise another_file(next(of_apart, new[0]).where, others, may_be_new=not is_mixed)

    def _check_answers(self, kept: Snapshot, questions: Sequence[str]) -> list[Row[Any]]:
        """Return what was answered to these questions. Raises ArtifactCorrupt."""
        answers = [row for row in kept.rows(ANSWERS, account=self.name) if row.question in questions]
        check_answers(self.store, answers, by_digest=True)
        return answers

    def _read(self, kept: Snapshot) -> tuple[Ledger, list[Charge]]:
        """The ledger, and what was charged first, at once."""
        rows = kept.rows(CHARGES, account=self.name)
        sizes = kept.sizes_of_lists()
        entries = [self._charge_of(kept, row, sizes) for row in rows]
        cap = min((row.cap for row in kept.rows(CAPS, account=self.name)), default=None)
        first = [
            entry for row, entry in zip(rows, entries, strict=True) if row.transaction == rows[0].transaction
        ]
        return Ledger(cap=cap, entries=entries), first

    def _charge_of(self, kept: Snapshot, row: Row[Any], sizes: Mapping[int, int]) -> Charge:
        """The charge that a row holds. Its people are read when they are looked at."""
        who: RowRange | Names
        if row.people is None:
            who = RowRange(source=row.source, start=row.start, stop=row.stop)
        else:
            named_by = None if row.named_by is None else (row.named_by, row.name_type)
            parts = partial(self._people, kept, row.people)
            who = Names.in_parts(parts, sizes.get(row.people, 0), named_by=named_by)
        return Charge(question=row.question, epsilon=row.epsilon, who=who, about=row.about)

    def _people(self, kept: Snapshot, of: int) -> Iterable[NDArray[np.uint64]]:
        if kept.is_open:
            return kept.people(of)
        with (
            self._database.reading() as anew
        ):  # one list at a time: there may be more of them than connections
            return list(anew.people(of))

    def _insert(self, kept: Transaction, charge: Charge) -> None:
        values: dict[str, Any] = {
            "account": self.name,
            "question": charge.question,
            "epsilon": float(charge.epsilon),
            "about": charge.about,
        }
        if isinstance(charge.who, RowRange):
            values |= {"source": charge.who.source, "start": charge.who.start, "stop": charge.who.stop}
        else:
            values["people"] = kept.insert_people(charge.who.parts())
            if charge.who.named_by is not None:
                values["named_by"], values["name_type"] = charge.who.named_by
        kept.insert(CHARGES, **values)


def check_answers(store: Store, answers: Sequence[Row[Any]], *, by_digest: bool) -> None:
    """Raises ArtifactCorrupt where reports that were received are missing or cut short, or, `by_digest`, changed since."""
    there, hasher = sizes_of(store.objects, (row.file for row in answers)), store.hasher("curator")

    def is_changed(row: Row[Any]) -> bool:
        return store.objects.whole_path(row.file, lambda path: hasher.of_file(path) == row.digest) is None

    for row in answers:
        if (size := there.get(row.file)) is None:
            condition = "missing"
        elif size < row.size:
            condition = f"cut short ({size:,} of {row.size:,} bytes)"
        elif by_digest and is_changed(row):
            condition = "damaged"
        else:
            continue
        raise lost(store.objects.where(row.file), condition)


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
