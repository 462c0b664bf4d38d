"""People who answer on their own devices. Their reports arrive in an inbox, at any time and in any number, and each run learns
from those that are there. Nobody is charged here: each device keeps what its holder has spent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from flows.budget import Spent
from flows.conversation import NOTHING, Round
from flows.executors import NotComputed, Pending, known
from flows.respondents.respondents import Respondents
from ldptree.errors import ArtifactCorrupt
from schemas.manifest import Manifest, Record
from schemas.named_files import shown_path
from storage.reports.published import ANEW, check_terms, close, publish, read_closed
from tasks.answers.inbox import collect, find_totals, list_segments, receive
from tasks.answers.receive import OTHER_PROTOCOL, UNREADABLE
from tasks.artifacts import check_whole, read_protocol
from tasks.page.data import Privacy
from tasks.page.render import STYLE, write_actors
from tasks.perturb import Form


class Inbox(Respondents):
    """The devices of a collection."""

    def find(self) -> None:
        """Nothing: who answers is not known before they do."""

    @property
    def n_asked(self) -> int:
        """As many as are expected."""
        n: int | None = self.run.config.collection.expected_holders
        assert n is not None
        return n

    def form(self, asked: Round) -> Form:
        """Devices send reports."""
        return "reports"

    def charge(self, asked: Round, before: Spent | None) -> Spent:
        """Publish the question, or see that it is the one that was published. Raises ProtocolMismatch."""
        run = self.run
        if run.executor.only_looks:
            with suppress(NotComputed):
                terms = self._terms
                check_terms(run.store.objects, run.config.name, terms)
            return NOTHING
        self._publish(asked.number, asked.question())
        return NOTHING

    def _publish(self, number: int, question: Manifest) -> None:
        run = self.run
        protocol = read_protocol(run.store, question)
        privacy = Privacy(epsilon=protocol.epsilon, epsilon_exact=protocol.epsilon_exact, on_devices=True)
        objects, name, text = run.store.objects, run.config.name, run.store.file(question, "protocol.json")
        pages = {STYLE.name: STYLE.read_bytes(), **write_actors(privacy, name, is_scored=False)}
        publish(objects, name, number, text.read_bytes(), self._terms, pages)

    @property
    def _terms(self) -> dict[str, Any]:
        """What people are asked on. Raises NotComputed."""
        run = self.run
        rows = {part: run.scaled[part].digest for part in ("encoding", "scaled")}
        return {
            "public rows": run.store.hasher("public").of_value(rows),
            "collection.expected_holders": self.n_asked,
            "dataset.question": run.config.dataset.question,
            **run.asking.model_dump(mode="json"),
        }

    @cached_property
    def _segments(self) -> tuple[list[Manifest], list[str]]:
        inbox = self.run.config.collection.inbox
        return ([], []) if inbox is None else list_segments(self.run.store, inbox)

    @cached_property
    def _totals(self) -> dict[str, list[Manifest]]:
        """What `collect` takes beside reports."""
        totals = self.run.config.collection.totals
        return {} if totals is None else {"totals": find_totals(self.run.store, totals)}

    def answer(self, asked: Round) -> Sequence[Record]:
        """The valid reports of each closed segment; none to a closed question, whose answers stand."""
        has_store = self.run.store is not None  # a plan in a new work folder has none
        if has_store and (not self._segments[0] or self._closed(asked) is not None):
            return []
        reports: list[Record] = self.run.each(receive, lambda: self._of_receive(asked))
        return reports

    def _of_receive(self, asked: Round) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        question = asked.question()
        return {"question": question}, [{"segment": segment} for segment in self._segments[0]]

    @cached_property
    def _collected(self) -> dict[int, Record]:
        return {}

    def sums(self, answered: Round) -> Sequence[Record]:
        """The sums of all segments' reports, each once; of a closed question those that it was closed with."""
        if answered.number not in self._collected:
            self._collected[answered.number] = self.run.made(
                self._closed(answered)
                or self.run.executor.step(
                    collect,
                    lambda: {
                        "question": answered.question(),
                        "reports": [record["reports"] for record in answered.reports],
                        **self._totals,
                    },
                )
            )
        return [self._collected[answered.number]]

    def _closed(self, asked: Round) -> Record | None:
        """The sums that a question was closed with, None of one that is open. Raises ArtifactCorrupt where they are lost."""
        run = self.run
        closed = None if run.store is None else read_closed(run.store.objects, run.config.name, asked.number)
        if closed is None:
            return None
        try:
            record: Record = run.store.whole_record(closed["answers"])
        except FileNotFoundError:
            where = run.store.objects.where(closed["answers"])
            raise ArtifactCorrupt(
                f"{where}: the sums of a closed question are gone. Restore the file from a copy, or {ANEW}."
            ) from None
        check_whole(run.store, list(record.parts.values()))
        return record

    def is_answered(self, answered: Round) -> bool:
        """Return whether a report counts, as far as is known; where another question follows, whether this one is closed."""
        (left,) = self.sums(answered)
        if isinstance(left, Pending) or self.run.config.asks_once or answered.is_last:
            return isinstance(left, Pending) or left.facts["n_private"] > 0
        if self._closed(answered) is None and self._is_due(left.facts["n_private"]):
            name = f"{left.home}/{left.step}/{left.key}.json"
            close(self.run.store.objects, self.run.config.name, answered.number, name)
            del self._collected[answered.number]  # another run may have closed it, with other reports
        return self._closed(answered) is not None

    def _is_due(self, n: int) -> bool:
        """Return whether a question that n reports answer is to be closed by this run."""
        run, until = self.run, self.run.config.collection.close
        is_over = n >= until if isinstance(until, int) else run.timeline.began_at.date() >= until
        return n > 0 and is_over and not run.executor.only_looks

    def received(self, answered: Round) -> Sequence[Manifest]:
        """The sums, for all reports. Raises NotComputed."""
        return [known(left)["sums"] for left in self.sums(answered)]

    @property
    def facts(self) -> Mapping[str, Any]:
        """How many reports count, and what else was in the inbox. Raises NotComputed."""
        *before, last = self.run.conversation.rounds
        left = [known(self.sums(answered)[0]).facts for answered in (*before, last)]
        rejected = Counter(left[-1]["rejected"])
        refused, unreadable = {}, Counter[str]()
        for earlier in left[:-1]:  # to this question they are none
            rejected[OTHER_PROTOCOL] -= earlier["n_private"] + sum(earlier["rejected"].values())
        for segment, record in zip(self._segments[0], last.reports, strict=False):
            rejected.update(record.facts["rejected"])
            unreadable[shown_path(segment.files[0].name)] = record.facts["rejected"].get(UNREADABLE, 0)
            if record.facts["refused"]:
                refused[shown_path(segment.files[0].name)] = record.facts["refused"]
        return {
            "n_private": sum(facts["n_private"] for facts in left),
            "n_test": 0,
            "rejected": dict(sorted((+rejected).items())),
            "refused": refused,
            "unreadable": dict((+unreadable).most_common(1)),
            "passed_over": [shown_path(name) for name in self._segments[1]],
        }
