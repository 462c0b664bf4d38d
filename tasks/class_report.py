"""The scores of a run whose label is a class, as the fields of its facts. What every run has is in `report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.page.basic_facts import Span
from tasks.page.class_score import ScoreFacts

METRICS = ("accuracy", "balanced_accuracy", "auc", "log_loss")


def class_scores(content: Mapping[str, Any] | None, caps: Mapping[str, str]) -> dict[str, Any]:
    """What `scores.json` says, as the fields of the facts; none without it.

    `caps`: of a baseline that read fewer rows, how many.
    """
    if content is None:
        return {}
    spread = sorted(content["redraws"])
    made = {key: _score(key, value, spread, caps.get(key, "")) for key, value in content["scores"].items()}
    return {
        "ours": made.pop("ours"),
        "baselines": tuple(made.values()),
        "redraws": len(spread),
        "duplicates": content["duplicates"],
        "n_scored": content["n_test"],
    }


def spread_of(redraws: Sequence[float]) -> Span:
    """5 % to 95 % of the redraws, the least first."""
    last = len(redraws) - 1
    return Span(low=redraws[round(0.05 * last)], high=redraws[round(0.95 * last)])


def _score(key: str, content: Mapping[str, Any], redraws: Sequence[float], note: str) -> ScoreFacts:
    low, high = content["interval"]
    lead = content.get("lead")
    return ScoreFacts(
        key=key,
        metrics={name: content[name] for name in METRICS if content[name] is not None},
        interval=Span(low=low, high=high),
        spread=spread_of(redraws) if key == "ours" and redraws else None,
        lead=None if lead is None else Span(low=lead[0], high=lead[1]),
        note=note,
        confusion=tuple(tuple(row) for row in content["confusion"]),
    )
