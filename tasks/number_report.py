"""The facts of a run whose label is a number: what its model learned, and its scores. What every run has is in `report`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ldptree.mechanisms import Mechanism
from ldptree.models.tree import NumberTree
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import Totals
from tasks.page.facts import NumberFacts, Span
from tasks.page.number_facts import BinFacts, NumberScore
from tasks.page.number_learned import cells_of, curves_of, discrepancy_of, push_of, tree_of
from tasks.page.places import Names

METRICS = ("mse", "mae", "r2")


def number_facts(
    common: Mapping[str, Any],
    model: NumberTree,
    protocol: Protocol,
    totals: Totals,
    scored: Mapping[str, Any],
    *,
    names: Names,
    unit: str,
) -> NumberFacts:
    """Facts of the run from those that every run has, its model, and the scores (`number_scores`; empty without)."""
    low, high = protocol.label_range
    push = push_of(protocol.mechanism.poisoning_bound(totals.n_private), model, protocol.n_classes)
    return NumberFacts(
        **common,
        **scored,
        classes=tuple(f"{level:g}" for level in protocol.classes),
        unit=unit,
        label_range=Span(low=low, high=high),
        label_sd=model.label.sd,
        label_noise_sd=label_noise_sd(protocol.mechanism, high - low),
        push=push if math.isfinite(push) else None,
        cells=cells_of(model, protocol.partition, totals, names),
        tree=tree_of(model, names),
        discrepancy=discrepancy_of(model),
        curves=curves_of(model, names),
    )


def number_scores(content: Mapping[str, Any], caps: Mapping[str, str], spread: Span | None) -> dict[str, Any]:
    """What `scores.json` says, as the fields of the facts; `caps`: of a baseline that read fewer rows, how many."""
    made = {
        key: NumberScore(
            key=key,
            metrics={name: value[name] for name in METRICS if value[name] is not None},
            interval=Span(low=value["interval"][0], high=value["interval"][1]),
            spread=spread if key == "ours" else None,
            lead=Span(low=value["lead"][0], high=value["lead"][1]) if "lead" in value else None,
            note=caps.get(key, ""),
        )
        for key, value in content["scores"].items()
    }
    bins = tuple(BinFacts(**bin_) for bin_ in content["bins"])
    return {
        "ours": made.pop("ours"),
        "baselines": tuple(made.values()),
        "redraws": len(content["redraws"]),
        "duplicates": content["duplicates"],
        "n_scored": content["n_test"],
        "bins": bins,
        "n_few": content["n_test"] - sum(bin_.n for bin_ in bins),
    }


def label_noise_sd(mechanism: Mechanism, width: float) -> float | None:
    """Standard deviation of the noise of a label that is sent as a number, where its range is `width` wide."""
    of_range = mechanism.describe().label_noise_sd
    return None if of_range is None else of_range * width
