"""The data sets of a suite as configurations of runs, from the catalogue, brought, or variants of others."""

from __future__ import annotations

from typing import Any

from ldptree.errors import ConfigError
from ldptree_benchmark.suite import Suite, Variant
from schemas.config import RunConfig, parse
from schemas.families import declared_label


def config_of(suite: Suite, name: str) -> RunConfig:
    """Return the configuration of a set that is no law. Raises ConfigError with every fault in one line."""
    variant = suite.variants.get(name, Variant(dataset=name))
    dataset: dict[str, Any] = {
        **suite.brought.get(variant.dataset, {}),
        **variant.changes,
        "name": variant.dataset,
        "label": "number" if suite.is_number else "class",
    }
    raw = {
        "name": variant.dataset,
        "seed": suite.seed,
        "dataset": dataset,
        "model": {"estimator": "correction"},
    }
    try:
        return parse(raw, source=f"data set {name}")
    except ConfigError as fault:
        head, *faults = str(fault).split("\n  ")
        raise ConfigError(f"data set {name}: {'; '.join(faults)}" if faults else head) from None


def check_sets(suite: Suite) -> None:
    """Raise ConfigError if a table that the suite brings or changes cannot be, or a label is none that the suite
    compares. No file is looked at.
    """
    for name in (*suite.datasets, *suite.brought, *suite.variants):
        data = config_of(suite, name).dataset
        declared = declared_label(data.model_copy(update={"label": None}))
        if declared == "number" and not suite.is_number:
            raise ConfigError(
                f"data set {name}: its label, {data.target}, is a number, and this suite compares classes; leave it out, or set "
                'measure = "mse"'
            )
