"""Measure how long the published code of LPCT takes on the Taxi of its paper, and print a result of the docs.

    git clone https://github.com/Karlmyh/LPCT
    python benchmark/timed/authors.py LPCT > docs/measured/suites/authors.toml

The trips are those of configs/taxi_paper.toml, scaled as the code's own realdata.py scales them. The tree is grown on the public
trips, as the paper says and `fit` of commit 7f81694 does; that of 98fbcb2 grows it on the private ones where it does not prune.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.preprocessing import MinMaxScaler

from ldptree.simulate.trips import blocks
from ldptree_benchmark.results.measured import Measured

CONFIG = tomllib.loads((Path(__file__).parents[2] / "configs" / "taxi_paper.toml").read_text())
NUMBERS = ("taxi_id", "trip_seconds", "trip_miles", "tips", "fare")
PUBLIC = pl.sql_expr(CONFIG["dataset"]["public"])
SIZES = (5_000, 15_000, 45_000)
ALL = 3_297_639
"""People who report, in the paper."""
TREES = {"max-edge to depth 16": "igmaxedge", "CART to depth 16": "igreduction"}
SETTINGS = {
    "min_samples_split": 1,
    "min_samples_leaf": 1,
    "max_depth": 16,
    "lamda": 1,
    "estimator": "laplace",
}
"""Of the candidates of realdata.py."""
Floats = NDArray[np.float64]


def main() -> None:
    """Print it."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("clone", type=Path, help="folder of a clone of https://github.com/Karlmyh/LPCT")
    sys.path.insert(0, str(arguments.parse_args().clone))
    code = importlib.import_module("LDPCP")
    public, private = read_trips()
    scale = MinMaxScaler().fit(public[0])
    public, private = ((scale.transform(X), y) for X, y in (public, private))
    rows: list[list[str]] = [
        [
            "tree",
            "leaves",
            "growing it",
            *(f"{n:,} reports" for n in SIZES),
            f"one leaf's {ALL:,}",
            f"growing it and {ALL:,} reports",
        ]
    ]
    for name, splitter in TREES.items():
        rows.append([name, *measure(code, splitter, public, private)])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    print(
        Measured(
            title="The code of the LPCT paper",
            command="python benchmark/timed/authors.py LPCT > docs/measured/suites/authors.toml",
            note=(
                "Processor time of github.com/Karlmyh/LPCT on the same trips, without pruning or answers. The last column is "
                "extrapolated, not measured: growing it, and the line through the three sizes; where the leaves times one leaf's "
                "are more, the line is low. The private rows alone take "
                f"{ALL * public[0].shape[1] * 8 / 2**30:.1f} GiB."
            ),
            tables=[("", rows)],
        ),
        end="",
    )


def read_trips() -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Features [n, 93] and labels [n] of all public trips, and of as many private ones as the largest size has."""
    public: list[pl.DataFrame] = []
    private: list[pl.DataFrame] = []
    for block in blocks(CONFIG["dataset"]["rows"], CONFIG["seed"]):
        trips = pl.DataFrame(block).filter(pl.col("payment_type").is_in([0, 1]))
        public.append(trips.filter(PUBLIC))
        if sum(map(len, private)) < SIZES[-1]:
            private.append(trips.filter(~PUBLIC))
    return encode(pl.concat(public)), encode(pl.concat(private).head(SIZES[-1]))


def encode(trips: pl.DataFrame) -> tuple[Floats, Floats]:
    """Numbers as they are, an indicator for each level."""
    levels = [(pl.col(area) == level).alias(f"{area} {level}")
              for area, known in CONFIG["dataset"]["levels"].items() for level in known]  # fmt: skip
    X = trips.select(*NUMBERS, *levels).to_numpy().astype(np.float64)
    return X, trips["payment_type"].to_numpy().astype(np.float64)


def measure(
    code: Any, splitter: str, public: tuple[Floats, Floats], private: tuple[Floats, Floats]
) -> list[str]:
    """Return leaves, and processor seconds to grow the tree, for reports by size, in one leaf, and by line."""
    model = code.LDPTreeClassifier(splitter=splitter, epsilon=CONFIG["privacy"]["epsilon"], **SETTINGS)
    model.get_partition(public[0][:1_000], public[1][:1_000])  # compiles its criterion
    began = time.process_time()
    model.get_partition(*public)
    grown = time.process_time() - began
    seconds = []
    for size in SIZES:
        began = time.process_time()
        model.attribute_data(private[0][:size], private[1][:size])
        seconds.append(time.process_time() - began)
    everyone = np.resize(private[1], ALL)
    began = time.process_time()
    model.get_all_node()[0].get_data(everyone, everyone == 1)
    leaf = time.process_time() - began
    slope, start = np.polyfit(SIZES, seconds, 1)
    return [
        f"{len(model.get_all_node()):,}",
        *(f"{each:.1f} s" for each in (grown, *seconds)),
        f"{leaf:.2f} s",
        f"{grown + start + slope * ALL:.0f} s",
    ]


if __name__ == "__main__":
    main()
