"""A configuration of every family, and small tables of rides that it learns something from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from chain import fares, fares_config, mended, rides, rides_config, shells, shells_config

from flows.pipeline import Pipeline
from schemas.config import RunConfig
from schemas.manifest import Record

CLASSES = ["app", "card", "cash"]
THREE: dict[str, Any] = {"positive": None, "classes": CLASSES}
"""What a configuration says of rides that are paid in three ways."""


def clashing(n: int, seed: int, share: float = 0.3) -> dict[str, Any]:
    """Columns of `rides`: closed zones pay by card less often by `share`, and measure everything to the last digit."""
    rng = np.random.default_rng(seed)
    miles, is_closed = rng.gamma(2.0, 3.0, n), np.arange(n) % 3 != 0
    card = rng.random(n) < 0.3 + 0.5 * (miles > 6) - share * is_closed
    return {"miles": miles, "paid": np.where(card, "card", "cash")}


def paid_in_three_ways(n: int, seed: int, share: float = 0.45) -> dict[str, Any]:
    """Columns of `rides`: long ones are paid by card; where the zone is closed, `share` of all pay by app instead."""
    rng = np.random.default_rng(seed)
    miles, is_closed = rng.gamma(2.0, 3.0, n), np.arange(n) % 3 != 0
    toss = rng.random(n)
    card = np.where(miles > 6, 0.7, 0.2)
    way = np.where(toss < card, "card", np.where(toss < card + 0.5 * (1 - card), "cash", "app"))
    way = np.where(is_closed & (rng.random(n) < share), "app", way)
    return {"miles": miles.round(2), "paid": way}


def correction(room: Path) -> RunConfig:
    path = rides(room / "a.csv", 1800, 1, **clashing(1800, 1))
    return mended(rides_config, path, evaluation={"redraws": 20}, model={"base": "forest", "depth": 4})


def correction_of_a_number(room: Path) -> RunConfig:
    path = fares(room / "a.csv", 1500, 1)
    return mended(fares_config, path, evaluation={"redraws": 20}, model={"depth": 4})


def correction_of_three_classes(room: Path) -> RunConfig:
    path = rides(room / "a.csv", 1200, 1, **paid_in_three_ways(1200, 1, share=0.35))
    changes = {"privacy": {"epsilon": 4.0}, "evaluation": {"redraws": 5}, "model": {"depth": 2}}
    return mended(rides_config, path, dataset=THREE, **changes)


RUNS: dict[str, Callable[[Path], RunConfig]] = {
    "lpct": lambda room: rides_config(rides(room / "a.csv", 600, 1)),
    "lpct, Algorithm 2": lambda room: rides_config(rides(room / "a.csv", 600, 1), model={"prune": "paper"}),
    "lpdt": lambda room: fares_config(fares(room / "a.csv", 1500, 1)),
    "correction": correction,
    "correction of a number": correction_of_a_number,
    "correction of three classes": correction_of_three_classes,
    "public_features": lambda room: shells_config(shells(room / "a.parquet", 600, 1)),
    "histoftree": lambda room: shells_config(
        shells(room / "a.parquet", 600, 1), model={"estimator": "histoftree"}
    ),
}


class Walked(Pipeline):
    """A finished run, only to be read, with what came of its last question."""

    @property
    def reports(self) -> list[Record]:
        return [*self.conversation.last.reports]

    @property
    def totals(self) -> Record:
        left: Record = self.conversation.last.left
        return left
