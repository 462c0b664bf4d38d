"""Do the work of a pipeline run in one plain script, the yardstick that a run's time is divided by.

    python benchmark/timed/plain.py TRIPS.csv --public "company_id = 14" --epsilon 2 --features paper

Raw CSV to typed Parquet, public range and encoding, CART on the public rows, one report a holder written as
Parquet, totals, decisions, accuracy on held-back private rows. No Prefect, no checks, no baselines, nothing
of ldptree: an independent account of the arithmetic. Prints one JSON object; with `--scan`, `csv_scan_seconds` in it is
one DuckDB pass over the CSV (the better of two). Times include loading numba's cached machine code; the first run
compiles it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
from numba import njit
from sklearn.tree import DecisionTreeClassifier

SCHEMA = {
    "taxi_id": pl.Int32, "shift": pl.UInt8, "company_id": pl.Int8, "pickup_community_area": pl.Int8,
    "dropoff_community_area": pl.Int8, "payment_type": pl.Int8, "trip_day_of_week": pl.Int8,
    "trip_hour_of_day": pl.Int8, "fare": pl.Int16, "tips": pl.Int16, "trip_total": pl.Int16,
    "trip_seconds": pl.Int32, "trip_miles": pl.Int16,
}  # fmt: skip
AREAS = ("pickup_community_area", "dropoff_community_area")
NUMERIC = {
    "paper": ("taxi_id", "trip_seconds", "trip_miles", "tips", "fare"),
    "quickstart": ("trip_seconds", "trip_miles", "fare", "trip_day_of_week", "trip_hour_of_day"),
}
SHARD = 131_072
MAX_REPORT_BYTES = 2 << 30


@njit(nogil=True, cache=True)
def cells_of(raw, column, level, low, width, feature, threshold, left, right):
    """Return the leaf node of each raw row. Feature f is column[f] scaled to [0, 1], or column[f] == level[f]."""
    cells = np.empty(len(raw), np.int32)
    for i in range(len(raw)):
        node = 0
        while feature[node] >= 0:
            f = feature[node]
            x = raw[i, column[f]]
            if level[f] > -128:
                x = np.float32(x == level[f])
            else:
                x = min(max(np.float32((x - low[f]) / width[f]), np.float32(0)), np.float32(1))
            node = left[node] if x <= threshold[node] else right[node]
        cells[i] = node
    return cells


@njit(nogil=True, cache=True)
def random_word(s):
    """The next 64 bits of xoshiro256++ with state s [4]."""
    a = s[0] + s[3]
    word = ((a << np.uint64(23)) | (a >> np.uint64(41))) + s[0]
    t = s[1] << np.uint64(17)
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = (s[3] << np.uint64(45)) | (s[3] >> np.uint64(19))
    return word


@njit(nogil=True, cache=True)
def oue_reports(values, n_words, q, state):
    """Return bits of holders' reports, uint64 [words, n], the own by a fair coin, others 1 with q / 2^64.

    64 coins side by side: binary digits of 64 uniform numbers against those of q, until none is undecided.
    """
    zero, unit = np.uint64(0), np.uint64(1)
    s = state.copy()
    reports = np.empty((n_words, len(values)), np.uint64)
    for w in range(n_words):
        for i in range(len(values)):
            bits, undecided, digit = zero, ~zero, np.uint64(63)
            while undecided != zero:
                word = random_word(s)
                if (q >> digit) & unit:
                    bits |= undecided & ~word
                    undecided &= word
                else:
                    undecided &= ~word
                if digit == zero:
                    break
                digit -= unit
            if values[i] >> 6 == w:
                own = unit << np.uint64(values[i] & 63)
                bits &= ~own
                if random_word(s) & unit:
                    bits |= own
            reports[w, i] = bits
    return reports


@njit(nogil=True, cache=True)
def grr_reports(values, k, lie, state):
    """With lie / 2^64 a value uniform over all k, otherwise the true one; int32 [n]."""
    s = state.copy()
    reports = values.astype(np.int32)
    bound = ~np.uint64(0) - (~np.uint64(0)) % np.uint64(k)
    for i in range(len(values)):
        if random_word(s) < lie:
            word = random_word(s)
            while word >= bound:
                word = random_word(s)
            reports[i] = word % np.uint64(k)
    return reports


@njit(nogil=True, cache=True)
def count_bits(words):
    """Count the words with each of their 64 bits, in eight one-byte counters a word, emptied every 255."""
    ones = np.uint64(0x0101010101010101)
    counts = np.zeros(64, np.int64)
    for start in range(0, len(words), 255):
        for shift in range(8):
            total = np.uint64(0)
            for i in range(start, min(start + 255, len(words))):
                total += (words[i] >> np.uint64(shift)) & ones
            for byte in range(8):
                counts[8 * byte + shift] += (total >> np.uint64(8 * byte)) & np.uint64(255)
    return counts


def ingest(csv: str, public: str, out: Path) -> None:
    """Card and cash trips to Parquet, each marked public, held back for the test, or to be asked."""
    chance = pl.col("row").hash(seed=7) % 5
    trips = pl.scan_csv(csv, schema=SCHEMA, row_index_name="row").filter(pl.col("payment_type").is_in([0, 1]))
    role = pl.when(pl.sql_expr(public)).then(0).when(chance == 0).then(1).otherwise(2)
    trips = trips.with_columns(role=role.cast(pl.Int8))
    trips.drop("row").sink_parquet(out, compression="zstd", compression_level=1, row_group_size=SHARD)


def encode(public: pl.DataFrame, features: str) -> tuple[list[str], np.ndarray, dict[str, np.ndarray]]:
    """Raw columns, public rows scaled to float32 [n, d], and each feature's column, level, low and width."""
    numeric = NUMERIC[features]
    one_hot = [(c, v) for c in AREAS for v in levels(public[c], 44 if features == "paper" else 78)]
    if features == "quickstart":
        one_hot += [("shift", v) for v in range(21)]
    columns = [*numeric, *AREAS, "shift"]
    names = [*numeric, *(c for c, _ in one_hot)]
    raw = {name: public[name].to_numpy() for name in columns}
    level = np.array([-128] * len(numeric) + [v for _, v in one_hot], np.int32)
    low = np.array([float(raw[c].min()) for c in numeric] + [0.0] * len(one_hot))
    width = np.array([float(np.ptp(raw[c])) or 1.0 for c in numeric] + [1.0] * len(one_hot))
    X = np.empty((public.height, len(names)), np.float32, order="F")  # the tree reads a feature at a time
    for f, name in enumerate(names):
        x = raw[name]
        X[:, f] = x == level[f] if level[f] > -128 else (x - low[f]) / width[f]
    column = np.array([columns.index(c) for c in names], np.int32)
    return columns, X, {"column": column, "level": level, "low": low, "width": width}


def levels(column: pl.Series, most: int) -> list[int]:
    """The `most` busiest values; an unknown area (-1) is one too."""
    return column.value_counts(sort=True).head(most)[column.name].to_list()


def decide(tree: Any, margin: np.ndarray, count: np.ndarray, public: np.ndarray, v: float) -> np.ndarray:
    """Return the class of each leaf, that of the nearest ancestor whose private and public margins together speak.

    margin, count: private totals a leaf; public [leaves, 2]: labels; v: noise variance of one leaf's margin.
    """
    leaf = np.flatnonzero(tree.children_left < 0)
    node_leaf = np.cumsum(tree.children_left < 0) - 1
    parent = np.full(tree.node_count, -1)
    for child in (tree.children_left, tree.children_right):
        parent[child[child >= 0]] = np.flatnonzero(child >= 0)
    totals = np.zeros((tree.node_count, 5))
    public_margin = (public[:, 1] - public[:, 0]) / 2
    totals[leaf] = np.stack([margin, count, public_margin, public.sum(1), np.ones(len(leaf))], axis=1)
    for node in range(tree.node_count - 1, 0, -1):  # children come after their parents
        totals[parent[node]] += totals[node]
    a, u, b, w, n = totals.T
    s, t = a / np.sqrt(n * v + np.maximum(u, 0) / 4), b / np.sqrt(np.maximum(w, 1) / 4)
    speaks = np.where(s * t > 0, np.hypot(s, t), np.maximum(abs(s), abs(t)))
    side = np.where(abs(s) > abs(t), s, t) > 0
    chosen = np.empty(len(leaf), bool)
    for node in leaf:
        at = best = int(node)
        while speaks[at] < 2 and parent[at] >= 0:
            at = int(parent[at])
            best = at if speaks[at] > speaks[best] else best
        chosen[node_leaf[node]] = side[best]
    return chosen


def run(csv: str, public_rule: str, epsilon: float, features: str, folder: Path) -> dict[str, Any]:
    """All steps; what is printed."""
    clock, seconds = [time.perf_counter()], {}

    def done(step: str) -> None:
        seconds[step] = round(time.perf_counter() - clock[0], 3)
        clock[0] = time.perf_counter()

    table = folder / "trips.parquet"
    ingest(csv, public_rule, table)
    done("ingest")

    public = pl.scan_parquet(table).filter(pl.col("role") == 0).collect().rechunk()
    columns, X, spec = encode(public, features)
    y = public["payment_type"].to_numpy()
    done("scale")

    n_rows = pl.scan_parquet(table).select(pl.len()).collect().item()
    n_private = pl.scan_parquet(table).filter(pl.col("role") == 2).select(pl.len()).collect().item()
    d, e = X.shape[1], math.exp(epsilon)
    depth = int(d / (2 + 2 * d) * math.log2(max(n_private * (e - 1) ** 2 / (2 * e), 2)))
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y).tree_
    n_leaves = int((tree.children_left < 0).sum())
    cell_of_node = np.cumsum(tree.children_left < 0) - 1
    nodes = (a.astype(np.int32) for a in (tree.children_left, tree.children_right))
    walk = (*spec.values(), tree.feature.astype(np.int32), tree.threshold, *nodes)
    done("partition")

    k = 2 * n_leaves + 1
    n_words = -(-k // 64)
    oracle = "grr" if k < 3 * e + 2 else "oue"
    as_reports = oracle == "grr" or n_private * n_words * 8 <= MAX_REPORT_BYTES
    q = np.uint64(math.ceil(2.0**64 / (e + 1)))
    lie = np.uint64(math.ceil(2.0**64 * k / (e + k - 1)))

    def ask(shard: int) -> tuple[np.ndarray, np.ndarray]:
        """Write one shard's reports; exact totals where they would be too many, and the test rows' counts."""
        rows = pl.scan_parquet(table).slice(shard * SHARD, SHARD).filter(pl.col("role") > 0).collect()
        raw = np.stack([rows[c].to_numpy() for c in columns], axis=1, dtype=np.float64)
        values = 2 * cell_of_node[cells_of(raw, *walk)] + rows["payment_type"].to_numpy()
        asked = rows["role"].to_numpy() == 2
        test = np.bincount(values[~asked], minlength=k)
        values, totals = values[asked], np.zeros(k, np.int64)
        noise = np.random.SFC64([11, shard])
        if oracle == "grr":
            reports = {"report": grr_reports(values, k, lie, noise.random_raw(4))}
        elif as_reports:
            bits = oue_reports(values, n_words, q, noise.random_raw(4))
            reports = {f"w{w:04}": bits[w] for w in range(n_words)}
        else:
            own, draw = np.bincount(values, minlength=k), np.random.Generator(noise)
            totals = draw.binomial(own, 0.5) + draw.binomial(len(values) - own, float(q) / 2.0**64)
            return totals, test
        file = folder / f"reports-{shard:05}.parquet"
        pl.DataFrame(reports).write_parquet(file, compression="uncompressed", statistics=False)
        return totals, test

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        shards = list(pool.map(ask, range(-(-n_rows // SHARD))))
    raw_totals, test = (sum(parts) for parts in zip(*shards, strict=True))
    done("perturb")

    files = sorted(folder.glob("reports-*.parquet"))
    if oracle == "grr":
        query = f"SELECT report, count(*) AS n FROM '{folder}/reports-*.parquet' GROUP BY report"
        counts = duckdb.sql(query).fetchnumpy()
        raw_totals[counts["report"]] = counts["n"]
        keep, other = e / (e + k - 1), 1 / (e + k - 1)
    else:
        keep, other = 0.5, float(q) / 2.0**64

        def counted(file: Path) -> np.ndarray:
            return np.concatenate([count_bits(word.to_numpy()) for word in pl.read_parquet(file)])[:k]

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            raw_totals = sum(pool.map(counted, files), raw_totals)
    totals = ((raw_totals - n_private * other) / (keep - other))[: 2 * n_leaves].reshape(-1, 2)
    done("aggregate")

    public_cells = cell_of_node[cells_of(public.select(columns).to_numpy().astype(float), *walk)]
    of_public = np.bincount(2 * public_cells + y, minlength=2 * n_leaves).reshape(-1, 2)
    variance = n_private * other * (1 - other) / (keep - other) ** 2 / 2
    is_card = decide(tree, (totals[:, 1] - totals[:, 0]) / 2, totals.sum(1), of_public, variance)
    test = test[: 2 * n_leaves].reshape(-1, 2)
    done("decide")
    return {
        "seconds": seconds,
        "total_seconds": round(sum(seconds.values()), 3),
        "accuracy": round(float(test[np.arange(n_leaves), is_card.astype(int)].sum() / test.sum()), 4),
        "majority": round(float(test.sum(0).max() / test.sum()), 4),
        "oracle": oracle,
        "one_report_a_holder": as_reports,
        "n_private": n_private,
        "n_public": public.height,
        "n_test": int(test.sum()),
        "n_features": d,
        "depth": depth,
        "cells": n_leaves,
        "report_megabytes": round(sum(f.stat().st_size for f in files) / 1e6, 1),
    }


def main() -> None:
    plain_text = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain_text)
    parser.add_argument("csv")
    parser.add_argument("--public", default="company_id = 14", help="SQL predicate: which rows are public")
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--features", choices=sorted(NUMERIC), default="paper")
    parser.add_argument("--scan", action="store_true", help="time DuckDB passes over the CSV beside it")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plain-") as folder:
        result = run(a.csv, a.public, a.epsilon, a.features, Path(folder))
    if a.scan:
        result["csv_scan_seconds"] = round(min(scan(a.csv) for _ in range(2)), 3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**result, "peak_rss_mb": round(peak)}))


def scan(csv: str) -> float:
    """Seconds of one DuckDB pass over every column of the CSV."""
    begin = time.perf_counter()
    duckdb.execute("SELECT max(COLUMNS(*)) FROM read_csv(?)", [csv]).fetchall()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
