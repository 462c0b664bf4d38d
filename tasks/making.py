"""Describe how a run was made, with date, machine, versions and times. Nothing here is of a family."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal

from schemas.catalogue import catalogue
from schemas.config import RunConfig
from tasks.page.data import Making, Step
from tasks.progress import StepTime, Timeline

LIBRARIES = (
    "ldptree",
    "prefect",
    "polars",
    "pyarrow",
    "numpy",
    "duckdb",
    "great-expectations",
    "scikit-learn",
    "numba",
)


def describe_making(
    config: RunConfig, command: str, timeline: Timeline, digests: Mapping[str, str]
) -> Making:
    """Describe how the run was made."""
    return Making(
        created=tell_time(datetime.now(UTC)),
        version=version("ldptree"),
        command=command,
        seconds=timeline.elapsed,
        peak_rss_mb=peak_rss_mb(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        steps=list_steps(timeline),
        config={"model.estimator": config.model.estimator} | _flat(_own_settings(config)),
        versions={name: version(name) for name in LIBRARIES},
        digests=dict(digests),
    )


def _own_settings(config: RunConfig) -> dict[str, Any]:
    """Return the configuration without what is usual, what the catalogue says of its data set, and words of the page."""
    known = catalogue().get(config.dataset.name, {})
    settings = config.model_dump(
        mode="json", exclude_defaults=True, exclude={"dataset": {"names", "question"}}
    )
    own = {key: value for key, value in settings["dataset"].items() if value != known.get(key)}
    return settings | {"dataset": own, "model": config.model.unusual}


def tell_time(moment: datetime) -> str:
    """A moment in the time of this machine, in ISO 8601."""
    return moment.astimezone().isoformat(timespec="seconds")


def list_steps(timeline: Timeline) -> tuple[Step, ...]:
    """The steps so far, as the page shows them."""
    return tuple(
        Step(
            name=entry.name,
            state=_state(entry.state),
            spans=_spans(entry, timeline.elapsed),
            shards=entry.shards,
        )
        for entry in timeline.steps()
    )


def _spans(entry: StepTime, now: float) -> tuple[tuple[float, float], ...]:
    *before, (start, seconds) = entry.spans
    return *((start, seconds) for start, seconds in before), (
        start,
        seconds if entry.is_done else now - start,
    )


def _state(state: str) -> Literal["computed", "cached", "failed"]:
    if state == "failed":
        return "failed"
    return "cached" if state == "cached" else "computed"


def peak_rss_mb() -> float:
    """Peak memory of this process, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1)


def _flat(value: Any, prefix: str = "") -> dict[str, str]:
    if isinstance(value, dict):
        flat: dict[str, str] = {}
        for key, item in value.items():
            flat |= _flat(item, f"{prefix}.{key}" if prefix else key)
        return flat
    return {prefix: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
