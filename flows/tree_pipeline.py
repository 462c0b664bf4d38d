"""The questions of a family that adds reports up in the cells of one tree: its protocol, and where Algorithm 2 asks again, a
second one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from flows.asked import check_reported
from flows.budget import Cost, QuestionCost, Spent
from flows.execute import Call, known
from flows.pipeline import Pipeline, Round, step_of
from ldptree.inference.depth import fewest_public_rows
from schemas.manifest import Manifest, Record
from tasks.aggregate import aggregate
from tasks.evaluate import evaluate
from tasks.partition import partition
from tasks.perturb import perturb
from tasks.prune import prune
from tasks.terminate import terminate

LEARNED: Final[dict[str, Literal["classes", "numbers", "errors"]]] = {
    "lpct": "classes",
    "lpdt": "numbers",
    "correction": "errors",
}
"""What the reports of an estimator that asks once are about."""


@dataclass(eq=False, kw_only=True)
class TreePipeline(Pipeline):
    """A run whose reports are added up in the cells of a tree."""

    @step_of(partition)
    def published(self) -> Call:
        """Scaled public rows, how many holders will be asked, and what they are promised."""
        terms = self.terms
        config = terms.config
        return {
            "encoding": self.scaled["encoding"],
            "scaled": self.scaled["scaled"],
            "n_private": self.held.facts["n_private"],
            "kind": config.model.settings["partition"],
            "depth": config.model.settings["depth"],
            "min_samples_leaf": self._fewest(),
            "epsilon": config.privacy.epsilon,
            "mechanism": config.privacy.mechanism,
            "outside": config.privacy.outside,
            "holder": terms.dataset.holder,
            "target": terms.dataset.target,
            "campaign": config.campaign.name,
            "frozen": terms.protocol,
            "seed": config.seed,
            **self._asking(),
            **({"simulation": True} if config.is_seeded else {}),
        }

    def _fewest(self) -> int:
        """How few public rows a cell may have: always a number, so that a run is known by what it does."""
        model = self.terms.config.model
        return fewest_public_rows(
            LEARNED[model.estimator],
            self.scaled.facts["n_public"],
            wanted=model.settings["min_samples_leaf"],
            partition=model.settings["partition"],
            is_paper=model.algorithm_2 is not None,
        )

    def _asking(self) -> Call:
        """What only some estimators' question depends on."""
        config = self.terms.config
        if config.model.is_correction:
            return {"correction": config.correction}
        if config.is_numeric:
            return {"rho": config.model.settings["rho"]}
        return {"has_positive": self.terms.dataset.positive is not None, "paper": config.model.algorithm_2}

    @cached_property
    def protocol(self) -> Manifest:
        """The protocol that holders answer to; in a campaign the first one published."""
        if self.execute.only_looks:
            return self.terms.protocol or self.published["protocol"]
        return self.terms.publish(self.raw, self.ingested, self.held, self.published)

    @property
    def form(self) -> str:
        """Whether reports are written, or exact totals drawn."""
        return self.terms.form(self.held, self.published)

    def before_questions(self) -> None:
        """Have what the first question rests on: nothing more."""

    def ask(self, rounds: Sequence[Round]) -> Round | None:
        """The protocol, then whatever Algorithm 2 asks."""
        if not rounds:
            return Round(1, self.published, lambda: self.protocol)
        if len(rounds) > 1 or not self.config.model.may_ask_again:
            return None
        first = rounds[0]
        decided = self.made(self.execute.step(terminate, lambda: self.of_terminate(first)))
        if isinstance(decided, Record) and not decided.facts["is_terminated"]:
            return None
        return Round(2, decided, lambda: decided["protocol"])

    def of_terminate(self, first: Round) -> Call:
        """What the first round of Algorithm 2 left."""
        config = self.terms.config
        return {
            "protocol": first.question(),
            "totals": first.left["totals"],
            "scaled": self.scaled["scaled"],
            "paper": config.model.settings["paper"],
            "kind": config.model.settings["partition"],
            "min_samples_leaf": self._fewest(),
            "epsilon": config.privacy.epsilon,
            "mechanism": config.privacy.mechanism,
            "seed": config.seed,
        }

    def cost(self, asked: Round) -> QuestionCost:
        """Everybody whom the protocol asks."""
        config = self.terms.config
        return QuestionCost(self.store, config, self.raw, known(self.held), asked.question(), self.form)

    def charge(self, asked: Round, before: Spent | None) -> Spent:
        """Charge everybody whom the protocol asks: each protocol by itself."""
        found: Spent = self.execute.charge(lambda: self.cost(asked), self._unknown_cost)
        return found

    def _unknown_cost(self) -> Cost:
        terms = self.terms
        return QuestionCost(self.store, terms.config, self.raw, known(self.held), terms.protocol, "reports")

    def answer(self, asked: Round) -> Sequence[Record]:
        """Each holder's one report."""
        number = asked.number
        reports = self.execute.shards(perturb, lambda: (self.of_perturb(asked), self.shards), number)
        if self.execute.only_looks:
            return reports  # type: ignore[no-any-return]
        shards: list[Manifest] = [one["shard"] for one in self.shards]
        check_reported(shards, reports)
        self.cost(asked).keep_answers(shards, reports)
        self.records.extend(reports)
        return reports  # type: ignore[no-any-return]

    def of_perturb(self, asked: Round) -> Call:
        """The protocol, for every shard alike."""
        config = self.terms.config
        return {
            "protocol": asked.question(),
            "round_number": asked.number,
            "form": self.form,
            "noise_seed": config.simulation.noise_seed,
            "campaign": config.campaign.name,
        }

    def add_up(self, answered: Round) -> Record:
        """Totals of every report there is."""
        return self.made(self.execute.step(aggregate, lambda: self.of_aggregate(answered), answered.number))

    def of_aggregate(self, answered: Round) -> Call:
        """Every report there is, in a campaign those of earlier runs too."""
        return {
            "protocol": answered.question(),
            "reports": self.terms.received([*answered.reports]),
            "round_number": answered.number,
        }

    def _fitting(self) -> Call:
        """How totals become a model; after Algorithm 2's second query as it says: private totals alone, undivided."""
        config, model = self.terms.config, self.terms.config.model
        if model.is_correction:
            return {}
        how = {key: model.settings[key] for key in ("lam", "prune", "rule")}
        if config.is_numeric:
            return how
        return how | {"paper": model.algorithm_2, "is_second_query": self.conversation.last.number > 1}

    def _said_by_public_rows(self) -> Call:
        """What the reports are weighed against."""
        if self.terms.config.model.is_correction:
            return {"public": self.published["public"]}
        if self.terms.config.is_numeric:
            return {"labels": self.published["labels"]}
        return {"scaled": self.scaled["scaled"], "trust": self.published["trust"]}

    @step_of(prune)
    def model(self) -> Call:
        """Totals and public rows, or of numbers what those say."""
        config, last = self.terms.config, self.conversation.last
        share = 0.5 if config.model.may_ask_again and last.number == 1 else 1.0
        return {
            "protocol": last.question(),
            "totals": last.left["totals"],
            **self._said_by_public_rows(),
            "epsilon": share * config.privacy.epsilon,
            **self._fitting(),
        }

    @step_of(evaluate)
    def scores(self) -> Call:
        """The model, and the private rows that only a simulation has."""
        config = self.terms.config
        return {
            "protocol": self.conversation.last.question(),
            "model": self.model["model"],
            **self._said_by_public_rows(),
            "scaled": self.scaled["scaled"],
            "train": self.held["train"],
            "test": self.held["test"],
            **self._fitting(),
            "evaluation": config.evaluation,
            "seed": config.seed,
            "noise_seed": config.simulation.noise_seed,
        }

    def of_model(self) -> dict[str, Manifest]:
        """The model and its totals; of a correction what public rows say of the public model."""
        left: Any = self.conversation.last.left
        found = {"model": self.model["model"], "totals": left["totals"]}
        if "public" in self.published.parts:
            found["public"] = self.published["public"]
        return found
