"""The questions of a family that asks in rounds, some features being public: what is shown, and a question after each round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from flows.budget import UNKNOWN_CONVERSATION, ConversationCost, Cost, Spent
from flows.execute import Call, known
from flows.pipeline import Pipeline, Round, step_of
from schemas.manifest import Manifest, Record
from tasks.answer import answer
from tasks.ask import ask
from tasks.data.show import in_order, show
from tasks.evaluate_shown import evaluate_shown
from tasks.learn import learn
from tasks.publish import publish


@dataclass(eq=False, kw_only=True)
class RoundPipeline(Pipeline):
    """A run that asks until its curator has nothing left to ask."""

    @step_of(show)
    def shown(self) -> Call:
        """The holders' shards, and what they protect."""
        config = self.terms.config
        return {
            "encoding": self.scaled["encoding"],
            "train": self.held["train"],
            "features": config.features,
            "release": config.mask_release,
            "is_seeded": config.is_seeded,
        }

    def before_questions(self) -> None:
        """Have what the first question rests on: what holders show."""
        _ = self.shown

    def label_range(self) -> tuple[float, float]:
        """Ends of the label's range."""
        low, high = self.scaled.facts["label_range"]
        return float(low), float(high)

    def label(self) -> dict[str, Any]:
        """How a label is read (`tasks.data.show.Label`)."""
        low, high = self.label_range()
        return {"target": self.terms.dataset.target, "low": low, "high": high}

    def own_shards(self) -> list[Call]:
        """The holders' shards in the order in which they are shown, each with the position of its first holder."""
        ordered = in_order(self.store, self.held["train"], is_seeded=self.terms.config.is_seeded)
        own = {call["shard"].files[0].name: call for call in super().own_shards()}
        starts = [0, *accumulate(shard.rows for shard in ordered)][:-1]
        return [own[s.files[0].name] | {"start": start} for s, start in zip(ordered, starts, strict=True)]

    def of_curator(self, transcripts: Sequence[Manifest]) -> Call:
        """Everything a curator knows, and its settings."""
        config = self.terms.config
        return {
            "encoding": self.scaled["encoding"],
            "shown": self.shown["shown"],
            "transcripts": list(transcripts),
            "estimator": config.model.estimator,
            "settings": config.round_settings,
            "epsilon": config.privacy.epsilon,
            "label_range": self.label_range(),
            "seed": config.seed,
        }

    def ask(self, rounds: Sequence[Round]) -> Round | None:
        """The question on what was published so far."""
        number = len(rounds) + 1
        asked = self.made(self.execute.step(ask, lambda: self.of_ask(rounds), number))
        if isinstance(asked, Record) and not asked.facts["is_left"]:
            return None
        return Round(number, asked, lambda: asked["question"])

    def of_ask(self, rounds: Sequence[Round]) -> Call:
        """What the curator knows, and whether the holders are simulated: the question then says so."""
        mark = {"simulation": True} if self.terms.config.is_seeded else {}
        return self.of_curator(_transcripts(rounds)) | mark

    def cost(self) -> ConversationCost:
        """The whole conversation, known by all that its curator knows before the first question."""
        key = ask.step.place(self.store, self.of_curator([])).key
        return self.cost_of(key)

    def cost_of(self, key: str) -> ConversationCost:
        """A conversation that is known by this key."""
        return ConversationCost(self.store, self.terms.config, self.raw, known(self.held), key)

    def _unknown_cost(self) -> Cost:
        return self.cost_of(UNKNOWN_CONVERSATION)

    def charge(self, asked: Round, before: Spent | None) -> Spent:
        """Charge everybody the whole epsilon before the first question."""
        if before is None:
            before = self.execute.charge(self.cost, self._unknown_cost)
        assert before is not None
        return before

    def answer(self, asked: Round) -> Sequence[Record]:
        """The reports of those in each shard whom the question asks."""
        number = asked.number
        looks = self.execute.only_looks
        if not looks:
            self.cost().check_question(number, asked.question().digest)
        reports = self.execute.shards(answer, lambda: (self.of_answer(asked), self.shards), number)
        if not looks:
            self.cost().keep_answers(number, [one["shard"] for one in self.shards], reports)
            self.records.extend(reports)
        return reports  # type: ignore[no-any-return]

    def of_answer(self, asked: Round) -> Call:
        """The question, for every shard alike."""
        config = self.terms.config
        return {
            "question": asked.question(),
            "encoding": self.scaled["encoding"],
            "shown": self.shown["shown"],
            "round_number": asked.number,
            "features": config.features,
            "label": self.label(),
            "noise_seed": config.simulation.noise_seed,
        }

    def add_up(self, answered: Round) -> Record:
        """The transcript of the round."""
        return self.made(self.execute.step(publish, lambda: self._of_publish(answered), answered.number))

    def _of_publish(self, answered: Round) -> Call:
        """Every answer of a round."""
        return {
            "question": answered.question(),
            "shown": self.shown["shown"],
            "reports": [record["reports"] for record in [*answered.reports]],
            "round_number": answered.number,
        }

    @step_of(learn)
    def model(self) -> Call:
        """All rounds."""
        rounds = self.conversation.whole
        return self.of_curator(_transcripts(rounds)) | {
            "questions": [one.asked.facts["digest"] for one in rounds],
            "target": self.terms.dataset.target,
        }

    @step_of(evaluate_shown)
    def scores(self) -> Call:
        """The model, and the private rows that only a simulation has."""
        config = self.terms.config
        return {
            "encoding": self.scaled["encoding"],
            "scaled": self.scaled["scaled"],
            "model": self.model["model"],
            "train": self.held["train"],
            "test": self.held["test"],
            "label": self.label(),
            "evaluation": config.evaluation,
            "seed": config.seed,
        }

    def of_model(self) -> dict[str, Manifest]:
        """The model, its curves, and what everybody can see."""
        return {
            "model": self.model["model"],
            "curves": self.model["curves"],
            "shown": self.shown["shown"],
        }


def _transcripts(rounds: Sequence[Round]) -> list[Manifest]:
    return [one.left["transcript"] for one in rounds if one.left is not None]
