"""Simulated trips in memory, card against cash, as raw matrices: what `correction_scale.py` measures on.

What lives here: the columns, and how a company's trips describe them. What does not: anything that is learned.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.simulate.trips import CARD, CASH, blocks

PAPER, PLAIN = "taxi", "quickstart"
"""The features of configs/taxi.toml (93, tips among them), and those of configs/quickstart.toml (without tips)."""
NUMERIC = {
    PAPER: ("taxi_id", "trip_seconds", "trip_miles", "tips", "fare"),
    PLAIN: ("shift", "trip_day_of_week", "trip_hour_of_day", "trip_seconds", "trip_miles", "fare"),
}
AREAS = ("pickup_community_area", "dropoff_community_area")
CONFIGS = Path(__file__).resolve().parent.parent / "configs"


@dataclass(frozen=True, eq=False)
class Trips:
    """n trips paid by card or cash.

    Attributes:
        features: `PAPER` or `PLAIN`.
        raw: float64 [n, columns], areas as places in `levels`.
        y: int64 [n], 1 for card.
        company: int8 [n].
    """

    features: str
    raw: NDArray[np.float64]
    y: NDArray[np.int64]
    company: NDArray[np.int8]

    @cached_property
    def levels(self) -> dict[str, tuple[int, ...]]:
        """Of each area's column."""
        return levels_of(self.features)

    def encoding(self, at: NDArray[np.int64]) -> Encoding:
        """As these public trips and the configuration describe the columns."""
        names = NUMERIC[self.features]
        numeric = [NumericFeature.from_public(name, self.raw[at, j]) for j, name in enumerate(names)]
        return Encoding((*numeric, *(CategoricalFeature(name, self.levels[name]) for name in AREAS)))


def levels_of(features: str) -> dict[str, tuple[int, ...]]:
    """The areas that have a column of their own: those of the configuration, or all of them and "not known"."""
    config = tomllib.loads((CONFIGS / f"{features}.toml").read_text())
    given = config["dataset"].get("levels", {})
    return {name: tuple(given.get(name, (-1, *range(1, 78)))) for name in AREAS}


def simulated(rows: int, seed: int, features: str) -> Trips:
    """Those of `rows` simulated trips that were paid by card or cash."""
    raw, labels, companies = [], [], []
    place = {name: np.full(256, -1.0) for name in AREAS}
    for name, levels in levels_of(features).items():
        place[name][np.array(levels) % 256] = np.arange(len(levels))
    for block in blocks(rows, seed):
        is_asked = np.isin(block["payment_type"], (CASH, CARD))
        numeric = [block[name][is_asked].astype(np.float64) for name in NUMERIC[features]]
        areas = [place[name][block[name][is_asked].astype(np.int64) % 256] for name in AREAS]
        raw.append(np.stack([*numeric, *areas], axis=1))
        labels.append(block["payment_type"][is_asked] == CARD)
        companies.append(block["company_id"][is_asked])
    return Trips(
        features, np.concatenate(raw), np.concatenate(labels).astype(np.int64), np.concatenate(companies)
    )
