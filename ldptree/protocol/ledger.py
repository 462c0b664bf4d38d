"""Account in memory for what each holder has spent, on which questions, and the most they may spend in a lifetime. Where it is
kept, and how two processes share it, is in `storage.ledger.accounts`.

A question costs each of its holders its epsilon once: asked again it is answered with the report that stands. Other
questions add up (sequential composition; Dwork and Roth 2014, Theorem 3.16).

Amounts are whole numbers of 1e-12, so that 0.1 spent three times is 0.3. A sum of n rounded amounts is off by up to n / 2 of
them and the cap by half a unit: what is over the cap by no more than that, and by no more than a billionth of the cap, is
not refused, so that two halves of an epsilon are never more than the whole.

Holders are rows of a source by their numbers (`RowRange`), or people by their names (`Names`), who are known again in another
source. Rows and names are added up apart: where a column names who answers, charge both.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from operator import index
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import BudgetError
from ldptree.limits import MAX_LIFETIME

UNITS = 10**12
"""Units in an epsilon of 1."""
LEEWAY = 10**9
"""What rounding explains over a cap is let through up to this fraction of it."""
QUESTIONS_LISTED = 8
PART = 2**21
"""Hashes of names that are looked at together, 16 MiB."""


@dataclass(frozen=True, kw_only=True)
class RowRange:
    """Holders who are rows `start` to `stop` - 1 of a source, known by what it holds. Raises BudgetError on no range."""

    source: str
    start: int
    stop: int

    def __post_init__(self) -> None:
        whole = all(isinstance(end, Integral) for end in (self.start, self.stop))
        if not whole or not 0 <= self.start < self.stop:
            raise BudgetError(
                f"rows {self.start} to {self.stop}: not a range; give whole numbers, 0 <= start < stop"
            )

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, eq=False)
class Names:
    """Holders known by hashes of their names, kept sorted and each once, uint64 [n]. Raises BudgetError on no hashes.

    named_by    where names come from and what they are, as (column, type): in one ledger a column has one type. None: not known.
    """

    _kept: NDArray[np.uint64] | Callable[[], Iterable[NDArray[np.uint64]]]
    _n: int
    named_by: tuple[str, str] | None

    def __init__(
        self,
        hashes: Iterable[SupportsIndex],
        *,
        named_by: tuple[str, str] | None = None,
    ) -> None:
        if isinstance(hashes, np.ndarray) and hashes.dtype == np.uint64 and hashes.ndim == 1:
            kept = hashes.copy() if hashes.flags.writeable else hashes
        else:
            try:
                kept = np.array([index(value) for value in hashes], np.uint64)
            except (TypeError, OverflowError):
                raise BudgetError("names: hashes are whole numbers of 0 to 2^64 - 1, [n]") from None
        if not (kept[1:] > kept[:-1]).all():
            kept = np.sort(kept)
            kept = kept[np.append(kept[1:] != kept[:-1], True)]  # np.unique takes ten times as long
        kept.flags.writeable = False
        self._keep(kept, len(kept), named_by)

    @classmethod
    def in_parts(
        cls,
        parts: Callable[[], Iterable[NDArray[np.uint64]]],
        n: int,
        *,
        named_by: tuple[str, str] | None = None,
    ) -> Names:
        """Return n names that `parts` reads anew at each use, in parts that are sorted, one after the other."""
        names = object.__new__(cls)
        names._keep(parts, n, named_by)
        return names

    def _keep(self, kept: Any, n: int, named_by: tuple[str, str] | None) -> None:
        for name, value in (("_kept", kept), ("_n", n), ("named_by", named_by)):
            object.__setattr__(self, name, value)

    def parts(self) -> Iterator[NDArray[np.uint64]]:
        """The hashes, at most `PART` at a time."""
        if callable(self._kept):
            yield from self._kept()
        else:
            yield from (self._kept[start : start + PART] for start in range(0, self._n, PART))

    @property
    def hashes(self) -> NDArray[np.uint64]:
        """All hashes."""
        return np.concatenate([NOBODY, *self._kept()]) if callable(self._kept) else self._kept

    def __len__(self) -> int:
        return self._n


NOBODY: NDArray[np.uint64] = np.empty(0, np.uint64)
Who = RowRange | Names

_SHOWN_AS_NOTHING = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Unicode's default ignorable code points (zero-width characters, marks of direction), and controls that are no white space."""


def name_of(holder: str) -> str:
    """Return the one spelling of a holder's name, in NFKC, without invisible characters, trimmed. Its case counts."""
    return unicodedata.normalize("NFKC", _SHOWN_AS_NOTHING.sub("", holder)).strip()


@dataclass(frozen=True, kw_only=True)
class Charge:
    """The cost of one question to each of some holders.

    question  whatever makes the same report be given again, in one file: asked of the same holder it costs nothing more.
    about     the question as people call it, for errors and lists.
    where     where these holders come from, for errors.

    Raises BudgetError where `who` is neither RowRange nor Names.
    """

    question: str
    epsilon: float
    who: Who
    about: str = ""
    where: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.who, RowRange | Names):
            raise BudgetError(
                f"who: a {type(self.who).__name__}; give a RowRange of a source, or Names by their hashes"
            )


@dataclass(frozen=True, kw_only=True)
class Spend:
    """A sum, and the questions it was spent on as (about, epsilon), oldest first."""

    epsilon: float
    on: tuple[tuple[str, float], ...]


class Ledger:
    """The spending of all holders, under a lifetime cap that can be lowered and never raised."""

    def __init__(self, *, cap: float | None = None, entries: Iterable[Charge] = ()) -> None:
        """Make a ledger of `entries`, which were spent. Raises BudgetError on an amount that is none."""
        self._cap = None if cap is None else units_of(cap, "the lifetime cap")
        self._book = _Book(tuple(entries))

    @property
    def cap(self) -> float | None:
        """The most a holder may spend over all questions, None where no cap was ever stated."""
        return None if self._cap is None else self._cap / UNITS

    @property
    def entries(self) -> tuple[Charge, ...]:
        """Return everything spent, oldest first, with each holder once under each question."""
        return self._book.entries

    def hold_to(self, cap: float | None) -> bool:
        """Lower the cap; whether it was lowered. A larger one, or none, changes nothing. Raises BudgetError."""
        if cap is None:
            return False
        units = units_of(cap, "the lifetime cap")
        if self._cap is not None and units >= self._cap:
            return False
        self._cap = units
        return True

    def spend(self, charges: Charge | Sequence[Charge], room: Sequence[Charge] = ()) -> tuple[Charge, ...]:
        """Charge all of these or, where one is refused, none; returns what had not been spent before.

        `room`: what the same holders may be asked after these (a later round), not spent yet: new charges that leave no room
        for it are refused at once.

        Raises:
            BudgetError: a holder would spend more than the cap; an epsilon is not a positive, finite number; a question
                costs another epsilon than when it was asked before.
        """
        added, after = self._look(charges)
        if added and room:
            self.check([*added, *room])
        self._book = after
        return added

    def check(self, charges: Charge | Sequence[Charge]) -> tuple[Charge, ...]:
        """Return what `spend` would add. Changes nothing. Raises BudgetError as it does."""
        return self._look(charges)[0]

    def _look(self, charges: Charge | Sequence[Charge]) -> tuple[tuple[Charge, ...], _Book]:
        """Return what these would add, and all entries with it. Raises BudgetError."""
        wanted = (charges,) if isinstance(charges, Charge) else tuple(charges)
        added: list[Charge] = []
        for charge in wanted:
            units = units_of(charge.epsilon, "epsilon")
            asked = [*self._book.of(charge.question), *(e for e in added if e.question == charge.question)]
            for entry in asked:
                if units_of(entry.epsilon, "epsilon") != units:
                    raise BudgetError(
                        f"{charge.about or charge.question}: asked at epsilon {charge.epsilon!r}, and before at "
                        f"{entry.epsilon!r}. One question has one epsilon: ask another question."
                    )
            added += [replace(charge, who=part) for part in _less(charge.who, [e.who for e in asked])]
        after = _Book((*self._book.entries, *added)) if added else self._book
        if self._cap is not None and added:
            self._check_cap(self._cap, added, after)
        return tuple(added), after

    def type_of_names(self, column: str) -> str | None:
        """Return the type of the names in a column, in everything spent so far; None where that is not known."""
        named = (entry.who.named_by for entry in self.entries if isinstance(entry.who, Names))
        return next((by[1] for by in named if by is not None and by[0].lower() == column.lower()), None)

    def spent_by(self, who: Who) -> float:
        """The most that any of these holders has spent."""
        return self._book.most(who)[0] / UNITS

    def spent_on(self, who: Who) -> tuple[tuple[str, float], ...]:
        """The questions that any of these holders answered, as (about, epsilon), oldest first."""
        return self._book.spent_on(who)

    def largest_spend(self) -> Spend:
        """The largest spend of any holder, and on what."""
        most, _ = self._book.largest
        return Spend(epsilon=most / UNITS, on=self._book.largest_on)

    def count_by_spend(self) -> dict[str, dict[float, int]]:
        """Return how many holders spent how much in all, of those known by "name", and of rows whose holders have none."""
        named = {entry.question for entry in self.entries if isinstance(entry.who, Names)}
        rows = _Book(tuple(entry for entry in self.entries if entry.question not in named))
        counts = {"name": Counter[int](), "row": Counter[int]()}
        for _, spent in self._book.sums_by_name():
            units, n = np.unique(spent, return_counts=True)
            counts["name"].update(dict(zip(units.tolist(), n.tolist(), strict=True)))
        for edges, sums in rows.by_row.values():
            for units, n in zip(sums[:-1].tolist(), np.diff(edges).tolist(), strict=True):
                counts["row"][units] += n if units else 0
        return {
            known_by: {units / UNITS: n for units, n in of.items() if n} for known_by, of in counts.items()
        }

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        lines = [
            f"  {format_epsilon(entry.epsilon)} each of {len(entry.who):,} on {entry.about or entry.question}"
            for entry in self.entries
        ]
        cap = "no cap" if self.cap is None else f"at most {format_epsilon(self.cap)}"
        return "\n".join([f"Ledger: {format_epsilon(self.largest_spend().epsilon)} spent, {cap}", *lines])

    def _check_cap(self, cap: int, added: Sequence[Charge], after: _Book) -> None:
        """Compare everyone who is charged with these."""
        if after.largest[0] <= cap:  # nobody at all is over it: most often one look at everybody is enough
            return
        for charge in added:
            most, holder = after.most(charge.who)
            if most <= cap:
                continue
            assert holder is not None
            if is_over(most, cap, len(after.on(holder))):
                asked = {entry.question for entry in added if _meet(entry.who, holder)}
                raise BudgetError(self._refusal(cap, charge, most, after.on(holder), asked))

    def _refusal(self, cap: int, charge: Charge, after: int, on: Sequence[Charge], asked: set[str]) -> str:
        """Say why a holder who would spend `after` on `on` is refused. `asked` names the new questions in it."""
        earlier = [entry for entry in on if entry.question not in asked]
        before = sum(units_of(entry.epsilon, "epsilon") for entry in earlier)
        listed = [
            f"{format_epsilon(e.epsilon)} on {e.about or e.question}" for e in earlier[-QUESTIONS_LISTED:]
        ]
        if len(earlier) > QUESTIONS_LISTED:
            listed.insert(0, f"{len(earlier) - QUESTIONS_LISTED} earlier questions")
        already = (
            f"{format_units(before)} is spent already ({'; '.join(listed)})"
            if listed
            else "nothing is spent yet"
        )
        left = max(cap - before, 0) / UNITS
        remedy = f"Ask for epsilon {format_epsilon(left)} at most, or" if left else "Nothing is left:"
        return (
            f"{charge.where + ': ' if charge.where else ''}holders would spend epsilon {format_units(after)} over all, and "
            f"their lifetime cap is {format_units(cap)}: {already}, and {charge.about or charge.question} asks for "
            f"{format_units(after - before)}. Nobody was asked. {remedy} ask other holders, or learn more from the reports "
            "that were given (a question asked before costs nothing). A cap is never raised."
        )


class _Book:
    """Entries, and the sums over them that are asked for."""

    def __init__(self, entries: tuple[Charge, ...]) -> None:
        self.entries = entries

    def of(self, question: str) -> list[Charge]:
        return self._by_question.get(question, [])

    @cached_property
    def _by_question(self) -> dict[str, list[Charge]]:
        by_question: dict[str, list[Charge]] = {}
        for entry in self.entries:
            by_question.setdefault(entry.question, []).append(entry)
        return by_question

    @cached_property
    def by_row(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Of each source the rows at which the sum changes, and the units from each of them to the next."""
        ranges: dict[str, list[tuple[int, int, int]]] = {}
        for entry in self.entries:
            if isinstance(entry.who, RowRange):
                units = units_of(entry.epsilon, "epsilon")
                ranges.setdefault(entry.who.source, []).append((entry.who.start, entry.who.stop, units))
        by_source = {}
        for source, spent in ranges.items():
            starts, stops, units_each = np.array(spent, np.int64).T
            edges = np.unique(np.concatenate([starts, stops]))
            steps = np.zeros(len(edges), np.int64)
            np.add.at(steps, np.searchsorted(edges, starts), units_each)
            np.subtract.at(steps, np.searchsorted(edges, stops), units_each)
            by_source[source] = edges, np.cumsum(steps)
        return by_source

    def most(self, who: Who) -> tuple[int, Who | None]:
        """The most units spent by one of these holders, and a holder who did."""
        if isinstance(who, Names):
            return self._most_named(who)
        edges, spent = self.by_row.get(who.source, (np.empty(0, np.int64), np.empty(0, np.int64)))
        is_met = (edges[:-1] < who.stop) & (edges[1:] > who.start)
        if not is_met.any():
            return 0, None
        best = int(np.argmax(np.where(is_met, spent[:-1], -1)))
        row = max(int(edges[best]), who.start)
        return int(spent[best]), RowRange(source=who.source, start=row, stop=row + 1)

    def sums_by_name(
        self, who: Names | None = None
    ) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
        """Everybody of these who was charged, or everybody who has a name, sorted, and their units; part by part."""
        named = [(entry.who, entry.epsilon) for entry in self.entries if isinstance(entry.who, Names)]
        units = np.array([units_of(epsilon, "epsilon") for _, epsilon in named], np.int64)
        for window in _side_by_side([*(names for names, _ in named), *([] if who is None else [who])]):
            hashes, spent = _added_up(window[: len(named)], units)
            is_wanted = slice(None) if who is None else _are_in(hashes, window[-1])
            yield hashes[is_wanted], spent[is_wanted]

    def _most_named(self, who: Names | None = None) -> tuple[int, Who | None]:
        """The most units spent by one of these holders, or of all who have names, and who did."""
        most: int = 0
        holder: Who | None = None
        for hashes, spent in self.sums_by_name(who):
            if len(spent) and spent.max() > most:
                best = int(np.argmax(spent))
                most, holder = int(spent[best]), Names(hashes[best : best + 1])
        return most, holder

    @cached_property
    def largest(self) -> tuple[int, Who | None]:
        """The most units spent by any holder, and a holder who did."""
        candidates = [
            self._most_named(),
            *(
                self.most(RowRange(source=source, start=int(edges[0]), stop=int(edges[-1])))
                for source, (edges, _) in self.by_row.items()
            ),
        ]
        return max(candidates, key=lambda pair: pair[0])

    @cached_property
    def largest_on(self) -> tuple[tuple[str, float], ...]:
        """The questions that the holder with the largest spend answered."""
        _, holder = self.largest
        return () if holder is None else self.spent_on(holder)

    def spent_on(self, who: Who) -> tuple[tuple[str, float], ...]:
        """The questions that any of these holders answered, as (about, epsilon), oldest first."""
        return tuple((entry.about or entry.question, entry.epsilon) for entry in self.on(who))

    def on(self, who: Who) -> list[Charge]:
        """An entry for each question that any of these holders answered, oldest first."""
        met = {entry.question: entry for entry in self.entries if _meet(entry.who, who)}
        return [met[question] for question in self._by_question if question in met]


def units_of(epsilon: float, what: str) -> int:
    """An amount in units, at least one. Raises BudgetError where it is not a positive, finite number."""
    is_number = isinstance(epsilon, (int, float, np.integer, np.floating)) and not isinstance(epsilon, bool)
    try:
        amount = float(epsilon) if is_number else math.nan  # a narrower type would round in its own digits
    except OverflowError:
        amount = math.inf if epsilon > 0 else -math.inf
    if not 0 < amount <= MAX_LIFETIME:
        given = amount if is_number else repr(epsilon)
        raise BudgetError(f"{what} = {given}: must be a number above 0 and at most {MAX_LIFETIME:g}")
    return max(round(amount * UNITS), 1)


def is_over(spent: int, cap: int, n_amounts: int) -> bool:
    """Return whether a sum of so many amounts, in units, is over a cap by more than rounding explains."""
    return spent - cap > min((n_amounts + 1) // 2, cap // LEEWAY)


def format_units(amount: int) -> str:
    """An amount in units as people write it."""
    return format_epsilon(amount / UNITS)


def format_epsilon(epsilon: float) -> str:
    """An amount as people write it."""
    return f"{epsilon:.12g}"


def _side_by_side(lists: Sequence[Names]) -> Iterator[list[NDArray[np.uint64]]]:
    """Several sorted lists, in windows with all hashes of each of them up to one bound, so that memory holds a part of each."""
    read = [filter(len, names.parts()) for names in lists]
    waiting = [next(parts, NOBODY) for parts in read]
    while any(map(len, waiting)):
        bound = min(part[-1] for part in waiting if len(part))
        stops = [int(np.searchsorted(part, bound, "right")) for part in waiting]
        yield [part[:stop] for part, stop in zip(waiting, stops, strict=True)]
        for at, stop in enumerate(stops):
            waiting[at] = waiting[at][stop:] if stop < len(waiting[at]) else next(read[at], NOBODY)


def _added_up(
    lists: Sequence[NDArray[np.uint64]], units: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Everybody in some sorted lists, sorted, and the sums of the units of the lists that they are in."""
    met = [at for at, hashes in enumerate(lists) if len(hashes)]
    if len(met) <= 1:
        return (lists[met[0]], np.full(len(lists[met[0]]), units[met[0]])) if met else (NOBODY, units[:0])
    hashes = np.concatenate([lists[at] for at in met])
    each = np.repeat(units[met], [len(lists[at]) for at in met])
    order = np.argsort(hashes, kind="stable")
    hashes, each = hashes[order], each[order]
    first = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    return hashes[first], np.add.reduceat(each, first)


def _are_in(some: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which of some hashes are among others; both sorted."""
    at = np.searchsorted(hashes, some)
    is_in = at < len(hashes)
    is_in[is_in] = hashes[at[is_in]] == some[is_in]
    return is_in


def _meet(who: Who, other: Who) -> bool:
    if isinstance(who, Names) and isinstance(other, Names):
        return any(_are_in(*window).any() for window in _side_by_side([who, other]))
    if isinstance(who, RowRange) and isinstance(other, RowRange):
        return who.source == other.source and who.start < other.stop and other.start < who.stop
    return False


def _less(who: Who, asked: Sequence[Who]) -> list[Who]:
    """Those of `who` who are in none of `asked`, as names or as ranges."""
    if isinstance(who, Names):
        left = who
        for other in asked:
            if isinstance(other, Names):
                windows = _side_by_side([left, other])
                new = np.concatenate([NOBODY, *(some[~_are_in(some, others)] for some, others in windows)])
                left = left if len(new) == len(left) else Names(new, named_by=who.named_by)
        return [left] if len(left) else []
    parts: list[RowRange] = [who]
    for other in asked:
        if isinstance(other, RowRange) and other.source == who.source:
            parts = [piece for part in parts for piece in _cut(part, other)]
    return list(parts)


def _cut(part: RowRange, other: RowRange) -> list[RowRange]:
    """`part` without the rows of `other`."""
    below = (part.start, min(part.stop, other.start))
    above = (max(part.start, other.stop), part.stop)
    return [RowRange(source=part.source, start=a, stop=b) for a, b in (below, above) if a < b]
