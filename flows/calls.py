"""What each step is called with, from the configuration and the records above it: for the flow, which runs them, and the
plan, which does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final, Literal

from flows.asked import known_apart
from flows.budget import Spent
from flows.campaign import Terms
from ldptree.inference.depth import fewest_public_rows
from schemas.manifest import Manifest, Record
from storage.store import Store
from tasks.checkpoint import REGISTERED, Aside, StepTask
from tasks.source import rows_to_make

Call = dict[str, Any]


def settled(terms: Terms, raw: Manifest, public_raw: Manifest | None) -> Terms:
    """The terms that a run over these files calls its steps with.

    A campaign's later runs are called with what the first one found out. The first one itself, given again, was not: it is
    told by its artifacts, and finds them.
    """
    if terms.campaign is None or terms.protocol is None:
        return terms
    store, first = terms.campaign.store, _as_first(terms)

    def found(step: StepTask, call: Call) -> Record | None:
        return store.find(step.step.place(store, call))

    ingested, frozen = found(REGISTERED["ingest"], ingest(first, raw, public_raw)), terms.campaign.frozen()
    if ingested is None or frozen is None or ingested.facts["types"] != frozen.terms["types"]:
        return terms
    first = first.with_label_of(ingested)
    held, scaled = (
        found(REGISTERED["split"], split(first, raw, ingested)),
        found(REGISTERED["scale"], scale(first, ingested)),
    )
    if held is None or scaled is None:
        return terms
    published = found(REGISTERED["partition"], partition(first, held, scaled))
    return first if published is not None and published["protocol"] == terms.protocol else terms


def _as_first(terms: Terms) -> Terms:
    """The terms as a campaign's first run had them, before it found anything out."""
    data = terms.config.dataset
    if terms.is_label_frozen:
        data = data.model_copy(update={"label": None})
    config = terms.config.model_copy(update={"dataset": data})
    return replace(terms, config=config, dataset=data, protocol=None, is_label_frozen=False)


def source(terms: Terms) -> Call:
    """Simulated raw files."""
    return {"rows": rows_to_make(terms.dataset), "seed": terms.config.seed}


def ingest(terms: Terms, raw: Manifest, public_raw: Manifest | None) -> Call:
    """Raw files, and the second file of a public rule that names one."""
    return {
        "raw": raw,
        "public_raw": public_raw,
        "dataset": terms.dataset.without_words(),
        "seed": terms.config.seed,
        **_label(terms),
        **_protected(terms),
    }


def _protected(terms: Terms) -> Call:
    """What holders protect, where some features are public: the label always; where the mask is not released, that and all
    features.
    """
    config, features = terms.config, terms.config.features
    if not config.model.in_rounds:
        return {}
    protected = {*features.private, *features.protects, terms.dataset.target}
    if config.mask_release == "all":
        return {"protected": sorted(protected)}
    return {"protected": sorted(protected | features.masks), "every_feature": True}


def _label(terms: Terms) -> Call:
    """That the label is a number, where it is; None where public rows are to tell."""
    known: dict[str | None, Call] = {"number": {"numeric": True}, "class": {}, None: {"numeric": None}}
    return known[terms.config.label]


def validate(terms: Terms, ingested: Record, suite: Manifest | None) -> Call:
    """Both zones, and an edited suite where one is named."""
    return {
        "public": ingested["public"],
        "private": ingested["private"],
        "suite": suite,
        "dataset": terms.dataset.without_words(),
        "columns": ingested.facts["columns"],
        "release": _release_of_checks(terms),
    }


def _release_of_checks(terms: Terms) -> int | None:
    """How many answers about private rows may leave their holders: None is any number, in a simulation, which protects nobody."""
    if terms.config.is_seeded:
        return None
    return terms.config.privacy.max_released_checks if terms.dataset.release_checks else 0


def split(terms: Terms, raw: Manifest, ingested: Record) -> Call:
    """Private rows, public coins, and who a campaign asked before. Raises ProtocolMismatch (`Terms.check_names`)."""
    terms.check_names(ingested)
    config, data = terms.config, terms.dataset
    return {
        "private": ingested["private"],
        "rows": ingested["rows"],
        "columns": [*ingested.facts["features"], data.target],
        "holder": data.holder,
        "seed": config.seed,
        "test_fraction": data.test_fraction if config.evaluate else 0.0,
        "noise_seed": config.simulation.noise_seed,
        "campaign": config.campaign.name,
        "asked_before": terms.asked_before(raw),
    }


def scale(terms: Terms, ingested: Record) -> Call:
    """Public rows."""
    label_range = (
        {"label_range": terms.config.model.settings.get("label_range")} if terms.config.is_numeric else {}
    )
    return {
        "public": ingested["public"],
        "features": [name for name in ingested.facts["features"] if name not in terms.config.features.masks],
        "dataset": terms.dataset.without_words(),
        "frozen": terms.protocol,
        **_label(terms),
        **label_range,
    }


LEARNED: Final[dict[str, Literal["classes", "numbers", "errors"]]] = {
    "lpct": "classes",
    "lpdt": "numbers",
    "correction": "errors",
}
"""What the reports of an estimator that asks once are about."""


def _fewest(terms: Terms, scaled: Record) -> int:
    """How few public rows a cell may have: always a number, so that it is told in words, and a run is known by what it does."""
    model = terms.config.model
    return fewest_public_rows(
        LEARNED[model.estimator],
        scaled.facts["n_public"],
        wanted=model.settings["min_samples_leaf"],
        partition=model.settings["partition"],
        is_paper=model.algorithm_2 is not None,
    )


def partition(terms: Terms, held: Record, scaled: Record) -> Call:
    """Scaled public rows, how many holders will be asked, and what they are promised."""
    config = terms.config
    return {
        "encoding": scaled["encoding"],
        "scaled": scaled["scaled"],
        "n_private": held.facts["n_private"],
        "kind": config.model.settings["partition"],
        "depth": config.model.settings["depth"],
        "min_samples_leaf": _fewest(terms, scaled),
        "epsilon": config.privacy.epsilon,
        "mechanism": config.privacy.mechanism,
        "outside": config.privacy.outside,
        "holder": terms.dataset.holder,
        "target": terms.dataset.target,
        "campaign": config.campaign.name,
        "frozen": terms.protocol,
        "seed": config.seed,
        **_asking(terms),
        **({"simulation": True} if config.is_seeded else {}),
    }


def _asking(terms: Terms) -> Call:
    """What only some estimators' question depends on."""
    config = terms.config
    if config.model.is_correction:
        return {"correction": config.correction} | (
            {"slope": config.correction.slope} if config.has_slope else {}
        )
    if config.is_numeric:
        return {"rho": config.model.settings["rho"]}
    return {"has_positive": terms.dataset.positive is not None, "paper": config.model.algorithm_2}


def charge(terms: Terms, raw: Manifest, protocol: Manifest, held: Record, published: Record) -> Call:
    """Everybody whom the protocol asks."""
    return {
        "config": terms.config,
        "raw": raw,
        "held": held,
        "protocol": protocol,
        "form": terms.form(held, published),
    }


def perturb(terms: Terms, protocol: Manifest, held: Record, published: Record, number: int = 1) -> Call:
    """The protocol, for every shard alike."""
    config = terms.config
    return {
        "protocol": protocol,
        "round_number": number,
        "form": terms.form(held, published),
        "noise_seed": config.simulation.noise_seed,
        "campaign": config.campaign.name,
    }


def shards(store: Store, terms: Terms, held: Record) -> list[Call]:
    """Each shard of who is asked, and which it is of those that hold the same."""
    apart = known_apart(store, terms.config, held)
    return [{"shard": shard, "alike": Aside(number)} for shard, number in apart]


def mapped(own: Sequence[Call]) -> Call:
    """What is each shard's own, argument by argument, as a mapped step takes it."""
    return {key: [call[key] for call in own] for key in own[0]}


def aggregate(terms: Terms, protocol: Manifest, reports: Sequence[Record], number: int = 1) -> Call:
    """Every report there is."""
    return {"protocol": protocol, "reports": terms.received(reports), "round_number": number}


def terminate(terms: Terms, protocol: Manifest, totals: Record, scaled: Record) -> Call:
    """What the first round of LPCT's Algorithm 2 left."""
    config = terms.config
    return {
        "protocol": protocol,
        "totals": totals["totals"],
        "scaled": scaled["scaled"],
        "paper": config.model.settings["paper"],
        "kind": config.model.settings["partition"],
        "min_samples_leaf": _fewest(terms, scaled),
        "epsilon": config.privacy.epsilon,
        "mechanism": config.privacy.mechanism,
        "seed": config.seed,
    }


def fitting(terms: Terms, number: int) -> Call:
    """How totals become a model; after Algorithm 2's second query as it says: private totals alone, undivided."""
    config, model = terms.config, terms.config.model
    if model.is_correction:
        return {}
    how = {key: model.settings[key] for key in ("lam", "prune", "rule")}
    return how if config.is_numeric else how | {"paper": model.algorithm_2, "is_second_query": number > 1}


def _said_by_public_rows(terms: Terms, scaled: Record, published: Record) -> Call:
    """What the reports are weighed against."""
    if terms.config.model.is_correction:
        return {"public": published["public"]}
    if terms.config.is_numeric:
        return {"labels": published["labels"]}
    return {"scaled": scaled["scaled"], "trust": published["trust"]}


def prune(
    terms: Terms, protocol: Manifest, totals: Record, scaled: Record, published: Record, number: int = 1
) -> Call:
    """Totals and public rows, or of numbers what those say."""
    share = 0.5 if terms.config.model.may_ask_again and number == 1 else 1.0
    return {
        "protocol": protocol,
        "totals": totals["totals"],
        **_said_by_public_rows(terms, scaled, published),
        "epsilon": share * terms.config.privacy.epsilon,
        **fitting(terms, number),
    }


def evaluate(
    terms: Terms,
    protocol: Manifest,
    model: Record,
    scaled: Record,
    held: Record,
    published: Record,
    number: int = 1,
) -> Call:
    """The model, and the private rows that only a simulation has."""
    config = terms.config
    return {
        "protocol": protocol,
        "model": model["model"],
        **_said_by_public_rows(terms, scaled, published),
        "scaled": scaled["scaled"],
        "train": held["train"],
        "test": held["test"],
        **fitting(terms, number),
        "evaluation": config.evaluation,
        "seed": config.seed,
        "noise_seed": config.simulation.noise_seed,
    }


def report(
    terms: Terms,
    asked: Sequence[Manifest],
    spent: Spent,
    *,
    ingested: Record,
    checked: Record,
    held: Record,
    scaled: Record,
    published: Record,
    totals: Record,
    model: Record,
    scores: Record | None,
) -> Call:
    """Everything the page tells of."""
    return {
        "config": terms.config,
        "checks": checked["checks"],
        "asked": list(asked),
        "totals": totals["totals"],
        "scaled": scaled["scaled"],
        "model": model["model"],
        "scores": None if scores is None else scores["scores"],
        "ingested": ingested.facts,
        "held": held.facts,
        "fitted": scaled.facts,
        "form": terms.form(held, published),
        "spent": asdict(spent),
        **({"public": published["public"]} if terms.config.model.is_correction else {}),
    }
