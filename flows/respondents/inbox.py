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
from schemas.manifest import Manifest, Record
from schemas.named_files import shown_path
from storage.reports.published import FOLDER, check_terms, publish
from tasks.answers.inbox import collect, find_totals, list_segments, receive
from tasks.artifacts import read_protocol
from tasks.page.data import Privacy
from tasks.page.privacy import write_actors
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

    @property
    def charges_first(self) -> bool:
        """Nobody is charged."""
        return False

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
        self._publish(asked.question())
        return NOTHING

    def _publish(self, question: Manifest) -> None:
        run = self.run
        protocol = read_protocol(run.store, question)
        privacy = Privacy(epsilon=protocol.epsilon, epsilon_exact=protocol.epsilon_exact, on_devices=True)
        objects, name, text = run.store.objects, run.config.name, run.store.file(question, "protocol.json")
        publish(objects, name, text.read_bytes(), self._terms, run.config.dataset.question)
        objects.put(f"{FOLDER}/{name}/actors.json", write_actors(privacy, is_scored=False))

    @property
    def _terms(self) -> dict[str, Any]:
        """What people are asked on. Raises NotComputed."""
        run = self.run
        rows = {part: run.scaled[part].digest for part in ("encoding", "scaled")}
        return {
            "public rows": run.store.hasher("public").of_value(rows),
            "collection.expected_holders": self.n_asked,
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
        """The valid reports of each closed segment."""
        if self.run.store is not None and not self._segments[0]:  # a plan in a new work folder has no store
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
        """The sums of all segments' reports, each once."""
        if answered.number not in self._collected:
            self._collected[answered.number] = self.run.made(
                self.run.executor.step(
                    collect,
                    lambda: {
                        "question": answered.question(),
                        "reports": [record["reports"] for record in answered.reports],
                        **self._totals,
                    },
                )
            )
        return [self._collected[answered.number]]

    def has_answers(self, answered: Round) -> bool:
        """Return whether a report counts, as far as is known."""
        (left,) = self.sums(answered)
        return isinstance(left, Pending) or left.facts["n_private"] > 0

    def received(self, answered: Round) -> Sequence[Manifest]:
        """The sums, for all reports. Raises NotComputed."""
        return [known(left)["sums"] for left in self.sums(answered)]

    @property
    def facts(self) -> Mapping[str, Any]:
        """How many reports count, and what else was in the inbox. Raises NotComputed."""
        (answered,) = self.run.conversation.rounds
        (left,) = self.sums(answered)
        rejected = Counter(known(left).facts["rejected"])
        refused = {}
        for segment, record in zip(self._segments[0], answered.reports, strict=True):
            rejected.update(record.facts["rejected"])
            if record.facts["refused"]:
                refused[shown_path(segment.files[0].name)] = record.facts["refused"]
        return {
            "n_private": left.facts["n_private"],
            "n_test": 0,
            "rejected": dict(sorted(rejected.items())),
            "refused": refused,
            "passed_over": [shown_path(name) for name in self._segments[1]],
        }
