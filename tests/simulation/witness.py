"""What is seen in a simulation, and compared when it is seen again; what runs charge and draw is counted apart from them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ldptree.protocol.ledger import Charge, Names
from simulation.runs import EPSILON, Run
from simulation.schedule import Violation
from storage.ledger.campaigns import Campaign
from storage.ledger.transactions import Last

MOST_TOLD = 2
"""How many answers about private rows may be told."""


@dataclass
class Witness:
    """Raises Violation where what it sees breaks a promise."""

    seen: dict[object, object] = field(default_factory=dict)
    refused: set[Run] = field(default_factory=set)
    done: set[Run] = field(default_factory=set)
    drawn: list[tuple[object, Iterable[int]]] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)
    _last: dict[str, int] = field(default_factory=dict)
    _caps: dict[int | None, float] = field(default_factory=dict)
    _charged: dict[tuple[int | None, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    _asked: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    _received: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def note(self, what: object, value: object) -> None:
        """The same is seen to be the same for ever."""
        if self.seen.setdefault(what, value) != value:
            raise Violation(f"{what} was {self.seen[what]!r} and is {value!r}")

    def note_campaign(self, campaign: Campaign) -> None:
        """What a campaign published never changes; whom it asked is asked once, and neither that nor a report is forgotten."""
        name = campaign.name
        before, received = dict(self._asked[name]), set(self._received[name])
        if (frozen := campaign.frozen()) is not None:
            self.note(("published", name), frozen.protocol.digest)
        asked = campaign.asked()
        if not before.items() <= asked.items():
            raise Violation(f"campaign {name} had asked {before}, and now says {asked}")
        self._asked[name] |= asked
        people = {digest: tuple(campaign.answered([digest]).tolist()) for digest in asked.values()}
        for digest, who in people.items():
            self.note(("asked", name, digest), who)
        self._once("asked", [(name, one) for who in people.values() for one in who])
        found = {report.names[0] for report in campaign.reports()}
        if not received <= found:
            raise Violation(f"campaign {name} had received {received - found}, and does not know")

    def note_last(self, name: str, number: int) -> None:
        """A transaction was told of, in an object."""
        self._last[name] = max(number, self._last.get(name, 0))

    def look_at_last(self, read: Callable[[], Mapping[str, Last]]) -> None:
        """What is told of the database, and read now, never goes back; others may tell more meanwhile."""
        before = dict(self._last)
        outside = read()
        for name, number in before.items():
            if name not in outside or outside[name].number < number:
                raise Violation(f"{name} said transaction {number}, and says {outside.get(name)}")

    def totals_of(self, run: Run) -> set[object]:
        """What a run was seen to learn."""
        return {
            of for what, of in self.seen.items() if isinstance(what, tuple) and what[:2] == ("totals", run)
        }

    def receive(self, run: Run, names: Iterable[str]) -> None:
        """Reports that a run got."""
        if run.campaign:
            self._received[run.campaign] |= set(names)

    def state_cap(self, account: str, cap: float) -> None:
        """A cap holds from when it was committed, whether what was asked with it was charged or refused."""
        seed = _seed_of(account)
        self._caps[seed] = min(cap, self._caps.get(seed, cap))

    def charge(self, account: str, charge: Charge, stated: float | None) -> None:
        """A charge was kept: nobody spends more than the cap that is stated with it, or was before."""
        seed = _seed_of(account)
        cap = min((cap for cap in (stated, self._caps.get(seed)) if cap is not None), default=None)
        for person in charge.who.hashes.tolist() if isinstance(charge.who, Names) else ():
            spent = self._charged[seed, person]
            spent.add(charge.question)
            if cap is not None and len(spent) * EPSILON > cap:
                raise Violation(f"{person} spends {len(spent) * EPSILON} on {spent}, and the cap is {cap}")

    def tell(self, answers: Iterable[str]) -> None:
        """Answers about private rows left their holders."""
        self._told |= set(answers)
        if len(self._told) > MOST_TOLD:
            raise Violation(f"{len(self._told)} answers about private rows were told, of at most {MOST_TOLD}")

    def check_drawn(self, standing: Iterable[int]) -> None:
        """Of the draws that stand no two are of one person for one question."""
        self._once("drawn", [(of, one) for of, people in (self.drawn[n] for n in standing) for one in people])

    def check_outcome(self, runs: set[Run], entries: Mapping[int | None, Iterable[Charge]]) -> None:
        """Every run is done, or was refused for a reason."""
        if self.done | self.refused != runs or self.done & self.refused:
            raise Violation(f"done: {self.done}; refused: {self.refused}")
        for run in self.refused:
            if not any(
                (self._has_changed(run), self._is_spent(run, entries[run.seed]), self._asks_otherwise(run))
            ):
                raise Violation(f"{run} was refused for nothing")

    def _has_changed(self, run: Run) -> bool:
        asked = self._asked[run.campaign or ""]
        return any(asked.get(file.name, file.digest) != file.digest for file in run.files)

    def _is_spent(self, run: Run, entries: Iterable[Charge]) -> bool:
        people = {one for file in run.files for one in file.people}
        is_capped = run.cap is not None or run.seed in self._caps
        return is_capped and any(
            isinstance(one.who, Names) and people & set(one.who.hashes.tolist()) for one in entries
        )

    def _asks_otherwise(self, run: Run) -> bool:
        return any(one.question == run.question and one.differs != run.differs for one in self.done)

    def _once(self, what: str, found: list[tuple[object, int]]) -> None:
        twice = [one for one, n in Counter(found).items() if n > 1]
        if twice:
            raise Violation(f"{what} twice: {twice}")


def _seed_of(account: str) -> int | None:
    return None if account == "release" else int(account.removeprefix("seed-"))
