"""Correction at the size of LPCT's Taxi experiment, on simulated trips: python benchmarks/correction_scale.py SUITE

    fit      the public model of 100,000 public rows: time, size and scores, beside a forest
    rows     3.3 million rows scored by the public model, of 4 MiB at most, over what one tree's question costs on the same rows
    device   one row of that model, with and without numba
    gap      how much of the way from the public model to the same corrections without noise is gone at epsilon 1
    run      whole runs of configs/taxi.toml: estimator = "correction" over "lpct"

Each prints a table. `rows` and `device` count the seconds of one core. `gap` ends with 1 where the mean of the companies misses
80 %, `rows` and `run` where 3 times is exceeded. Seeds are fixed; nothing is tuned on test rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from tables import MarkdownTable
from trip_samples import PAPER, PLAIN, Trips, simulated

from ldptree.coins import Words
from ldptree.encoding import Encoding
from ldptree.families.correction import Correction, PublicModelled
from ldptree.families.correction_plan import CorrectionPlan, make_plan
from ldptree.families.corrections import ResidualEstimates, correct
from ldptree.families.family import PublicRows
from ldptree.inference.depth import automatic_depth
from ldptree.mechanisms import mechanism_for, report_values
from ldptree.models.ensemble import Ensemble
from ldptree.partition import grow_partition
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.stochastic_rounding import round_at_random
from ldptree.protocol.totals import Totals
from ldptree.public_models.fit import fit_public
from ldptree.public_models.model import n_bytes

Floats = NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
TAXI = 3_300_000
FAMILY = Correction(epsilon=2.0, heading={"target": "paid by card"})
SEED = 7
N_PUBLIC = 100_000
TIMES = 3.0
CLOSED = 0.8
COMPANIES = (14, 12, 6, 11, 5, 9, 2, 7)
"""The public company of configs/quickstart.toml, then the largest others."""
TEST_SHARE = 0.2
BLOCK = 131_072


class Seconds:
    """Seconds of this thread on a core, by name."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count the block."""
        began = time.thread_time()
        yield
        self.spent[name] = self.spent.get(name, 0.0) + time.thread_time() - began


def scores(predicted: Floats, y: NDArray[np.int64]) -> Floats:
    """Accuracy, Brier score and log loss of shares of class 1."""
    p = np.clip(predicted, 1e-3, 1 - 1e-3)
    return np.array(
        [
            np.mean((predicted > 0.5) == y),
            np.mean((np.clip(predicted, 0, 1) - y) ** 2),
            -np.mean(np.where(y == 1, np.log(p), np.log(1 - p))),
        ]
    )


def answers(ensemble: Ensemble, encoding: Encoding, raw: Floats) -> Floats:
    """The share of class 1 of raw rows, block by block."""
    blocks = (raw[k : k + BLOCK] for k in range(0, len(raw), BLOCK))
    return np.concatenate([ensemble.predict(encoding.encode(block))[:, -1] for block in blocks])


def public_of(
    trips: Trips, company: int, most: int | None = None
) -> tuple[Encoding, Floats, NDArray[np.int64]]:
    """The encoding that a company's trips give, its raw rows and labels."""
    at = np.flatnonzero(trips.company == company)[:most]
    return trips.encoding(at), trips.raw[at], trips.y[at]


def fit(rows: int, companies: Sequence[int] = COMPANIES[:2]) -> bool:
    """Time, size and scores of a forest and of the public model that is the default."""
    line = MarkdownTable(
        "company", "public model", "core seconds", "seconds", "trees", "nodes", "MiB", "accuracy on others", "Brier"
    )  # fmt: skip
    trips = simulated(rows, SEED, PLAIN)
    for company in companies:
        encoding, raw, y = public_of(trips, company, N_PUBLIC)
        X = encoding.encode(raw)
        others = np.random.default_rng(SEED).choice(
            np.flatnonzero(trips.company != company), 200_000, replace=False
        )
        for base in ("forest", "blend"):
            began, cores = time.perf_counter(), time.process_time()
            ensemble = fit_public(base, X, y, n_classes=2).ensemble
            cores, wall = time.process_time() - cores, time.perf_counter() - began
            accuracy, brier, _ = scores(answers(ensemble, encoding, trips.raw[others]), trips.y[others])
            line.row(
                f"{company} ({len(y):,} rows)", base, f"{cores:.1f}", f"{wall:.1f}", ensemble.roots.size,
                f"{ensemble.n_nodes:,}", f"{n_bytes(ensemble) / 2**20:.2f}", f"{accuracy:.4f}", f"{brier:.5f}",
            )  # fmt: skip
    return True


def taxi_model(rows: int, features: str) -> tuple[Trips, Encoding, Floats, NDArray[np.int64], PublicModelled]:
    """Trips, and the public side of configs/taxi.toml's company."""
    trips = simulated(rows, SEED, features)
    encoding, raw, y = public_of(trips, 7)
    return trips, encoding, raw, y, model_of(encoding, raw, y)


def model_of(encoding: Encoding, raw: Floats, y: NDArray[np.int64]) -> PublicModelled:
    """The public model of these rows."""
    rows = PublicRows(encoding=encoding, X=encoding.encode(raw), y=y, label=(0, 1), n_private=0)
    return FAMILY.summarize(rows)


def one_tree(
    encoding: Encoding, X: NDArray[np.float32], y: NDArray[np.int64], n: int, epsilon: float
) -> Protocol:
    """LPCT's question as a run asks it: depth and mechanism automatic."""
    depth = automatic_depth(encoding.n_encoded, n, epsilon, 2, "auto")
    tree = grow_partition(X, y, kind="cart", depth=depth, n_classes=2)
    mechanism = mechanism_for("auto", epsilon, tree.n_leaves, 2)
    return Protocol(
        encoding=encoding, partition=tree, target="paid by card", classes=(0, 1), positive=1, mechanism=mechanism,
        epsilon=epsilon,
    )  # fmt: skip


def score_rows(rows: int) -> bool:
    """Every row, public or not, answers both questions at epsilon 2 (configs/taxi.toml), block by block."""
    for features in (PAPER, PLAIN):
        trips, encoding, raw, y, view = taxi_model(min(rows, TAXI), features)
        n = int(rows * len(trips.y) / min(rows, TAXI))
        X, ensemble = encoding.encode(raw), view.evidence.base.ensemble
        tree = one_tree(encoding, X, y, n, 2.0)
        plan = make_plan(view.evidence, epsilon=2.0, n_holders=n)
        correction = FAMILY.publish(view, plan)
        spent, words, asked = Seconds(), Words.seeded(np.random.SeedSequence(SEED)), 0
        ensemble.predict(X[:100])  # compiled before anything is timed
        for protocol in (tree, correction):
            protocol.mechanism.aggregate(
                protocol.mechanism.randomize(protocol.values(raw[:100], y[:100], words=words), words)
            )
        while asked < rows:
            for first in range(0, len(trips.y), BLOCK):
                block, labels = (
                    trips.raw[first : first + BLOCK][: rows - asked],
                    trips.y[first : first + BLOCK][: rows - asked],
                )
                asked += len(labels)
                with spent.of("tree: cells"):
                    values = tree.values(block, labels)
                with spent.of("tree: reports"):
                    reports = tree.mechanism.randomize(values, words)
                with spent.of("tree: totals"):
                    tree.mechanism.aggregate(reports)
                with spent.of("public model: encoding"):
                    encoded = encoding.encode(block)
                with spent.of("public model: walk"):
                    ensemble.predict(encoded)
                del encoded
                with spent.of("correction: cells and residuals"):
                    values = correction.values(block, labels, words=words)
                with spent.of("correction: reports"):
                    reports = correction.mechanism.randomize(values, words)
                with spent.of("correction: totals"):
                    correction.mechanism.aggregate(reports)
        s = spent.spent
        s["tree: all"] = sum(v for k, v in s.items() if k.startswith("tree"))
        s["public model: all"] = s["public model: encoding"] + s["public model: walk"]
        s["correction: all"] = sum(v for k, v in s.items() if k.startswith("correction"))
        print(
            f"\n{asked:,} rows x {encoding.n_encoded} columns ({features}); tree of {tree.n_cells} cells, "
            f"{tree.mechanism.full_name}; public model of {ensemble.roots.size} trees, {ensemble.n_nodes:,} nodes, "
            f"{n_bytes(ensemble) / 2**20:.2f} MiB; correction in {correction.n_cells} cells, {correction.mechanism.full_name}"
        )
        line = MarkdownTable("one core", "seconds", "microseconds a row", "over one tree")
        for name in sorted(s, key=lambda name: ("tpc".index(name[0]), name.endswith("all"))):
            line.row(
                name, f"{s[name]:.1f}", f"{1e6 * s[name] / asked:.2f}", f"{s[name] / s['tree: all']:.2f}"
            )
        per = 1e9 * s["public model: walk"] / asked / ensemble.roots.size
        print(f"\nThe walk: {per:.1f} ns a row and tree.")
    return True


def device(rows: int) -> bool:
    """A few rows, the best of 30 times, by what the device has."""
    trips, encoding, _, _, view = taxi_model(min(rows, TAXI), PLAIN)
    ensemble = view.evidence.base.ensemble
    X = encoding.encode(trips.raw[:1000])
    line = MarkdownTable("rows", "with numba, ms", "numpy alone, ms")
    for n in (1, 10, 100, 1000):
        found = []
        for modules in ({}, {"numba": None}):
            with mock.patch.dict(sys.modules, modules):
                found.append(best(partial(ensemble.predict, X[:n]), 30 if n < 1000 else 5))
        line.row(n, *(f"{1e3 * t:.2f}" for t in found))
    print(f"\n{ensemble.roots.size} trees, {ensemble.n_nodes:,} nodes, {n_bytes(ensemble) / 2**20:.2f} MiB.")
    return True


def best(work: Callable[[], object], times: int) -> float:
    """Least seconds of one core."""
    found = []
    for _ in range(times):
        began = time.thread_time()
        work()
        found.append(time.thread_time() - began)
    return min(found)


def gap(rows: int, epsilon: float = 1.0, draws: int = 3, companies: Sequence[int] = COMPANIES) -> bool:
    """Public model, corrected by reports, corrected by the true means on the same plan; card against cash, without tips."""
    trips = simulated(rows, SEED, PLAIN)
    names = ("accuracy", "Brier", "log loss")
    line = MarkdownTable(
        "public company", "public rows", "private rows", "cells",
        *(f"{name}: public, eps {epsilon:g}, exact" for name in names), *(f"gap closed: {name}" for name in names),
    )  # fmt: skip
    closed = []
    for company in companies:
        encoding, raw, y = public_of(trips, company)
        view = model_of(encoding, raw, y)
        private = np.random.default_rng([SEED, company]).permutation(np.flatnonzero(trips.company != company))
        predicted = np.full(len(trips.y), np.nan)
        predicted[private] = answers(view.evidence.base.ensemble, encoding, trips.raw[private])
        test, asked = np.split(private, [round(TEST_SHARE * private.size)])
        plan = make_plan(view.evidence, epsilon=epsilon, n_holders=asked.size)
        cells = cells_of(plan, encoding, trips.raw)
        residuals = trips.y - predicted
        found = [np.zeros(plan.partition.n_leaves)]
        for draw in range(draws):
            totals = drawn_totals(plan, cells[asked], residuals[asked], [SEED, company, draw])
            found.append(correct(plan, [ResidualEstimates.of(plan, totals)]).correction[:, 0])
        found.append(
            correct(plan, [ResidualEstimates.exact(plan, cells[asked], residuals[asked])]).correction[:, 0]
        )
        each = np.array([scores(predicted[test] + added[cells[test]], trips.y[test]) for added in found])
        public, noisy, exact = each[0], each[1:-1].mean(axis=0), each[-1]
        share = (noisy - public) / (exact - public)
        closed.append(np.array([public, noisy, exact]))
        line.row(
            company, f"{len(y):,}", f"{asked.size:,}", plan.partition.n_leaves,
            *(f"{a:.4f} {b:.4f} {c:.4f}" for a, b, c in zip(public, noisy, exact, strict=True)),
            *(f"{s:.0%}" for s in share),
        )  # fmt: skip
    public, noisy, exact = np.mean(closed, axis=0)
    share = (noisy - public) / (exact - public)
    shown = (f"{a:.4f} {b:.4f} {c:.4f}" for a, b, c in zip(public, noisy, exact, strict=True))
    line.row("mean", "", "", "", *shown, *(f"{s:.0%}" for s in share))
    return bool(share[0] >= CLOSED)


def cells_of(plan: CorrectionPlan, encoding: Encoding, raw: Floats) -> NDArray[np.int32]:
    """The cell of each raw row in the collection tree, block by block."""
    blocks = (raw[k : k + BLOCK] for k in range(0, len(raw), BLOCK))
    return np.concatenate([plan.partition.apply(encoding.encode(block)) for block in blocks])


def drawn_totals(
    plan: CorrectionPlan, cells: NDArray[np.int32], residuals: Floats, seed: list[int]
) -> Totals:
    """The totals of one report a holder, drawn at once from their exact distribution."""
    mechanism = plan.mechanism
    words = Words.seeded(np.random.SeedSequence(seed))
    level = round_at_random(residuals, -plan.range.half, plan.range.half, mechanism.n_levels, words)
    values = report_values(cells.copy(), level, n_cells=plan.partition.n_leaves, n_classes=mechanism.n_levels)
    counts = np.bincount(values, minlength=mechanism.n_values).astype(np.int64)
    raw = mechanism.sample_totals(counts, words.generator())
    return Totals.from_raw(raw, mechanism=mechanism, n_private=len(cells), depth=plan.partition.max_depth)


def run(rows: int) -> bool:
    """configs/taxi.toml from raw CSV to the page, each estimator in a work folder of its own."""
    found = {}
    line = MarkdownTable(
        "estimator",
        "seconds",
        "core seconds",
        "partition",
        "perturb",
        "aggregate",
        "evaluate",
        "peak MB",
        "accuracy",
    )
    with tempfile.TemporaryDirectory() as folder:
        csv = Path(folder) / "trips.csv"
        command = [sys.executable, "-m", "flows.command.cli"]
        made = [*command, "datasets", "make", "taxi", "--rows", str(rows), "--out", str(csv)]
        subprocess.run(made, check=True, cwd=ROOT, capture_output=True)
        for estimator in ("lpct", "correction"):
            asked = [*command, "run", "taxi", "--set", f"dataset.path={json.dumps(str(csv))}", "--json"]
            asked += ["--set", f'model.estimator="{estimator}"', "--work", str(Path(folder) / estimator)]
            began, cores = time.monotonic(), cores_of_children()
            done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stderr)
            found[estimator] = np.array([time.monotonic() - began, cores_of_children() - cores])
            summary = json.loads(done.stdout)
            steps = {step["name"]: step["seconds"] for step in summary["steps"]}
            shown = (
                f"{steps[name]:.1f}" if name in steps else ""
                for name in ("partition", "perturb", "aggregate", "evaluate")
            )
            line.row(
                estimator,
                *(f"{t:.1f}" for t in found[estimator]),
                *shown,
                f"{summary['peak_rss_mb']:.0f}",
                f"{summary['metrics']['accuracy']:.4f}",
            )
    seconds, cores = found["correction"] / found["lpct"]
    print(f"\nCorrection over LPCT: {seconds:.2f} in seconds, {cores:.2f} in core seconds.")
    return bool(seconds <= TIMES)


def cores_of_children() -> float:
    """Core seconds of all processes that were started here and have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


SUITES: dict[str, tuple[Callable[..., bool], int]] = {
    "fit": (fit, TAXI),
    "rows": (score_rows, TAXI),
    "device": (device, TAXI),
    "gap": (gap, TAXI),
    "run": (run, TAXI),
}
"""Each suite and how many rows it takes by default: rows asked in `rows`, trips simulated, however paid, in the others."""


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("suite", choices=SUITES)
    arguments.add_argument("--rows", type=int, help="the default is the documented one")
    arguments.add_argument("--companies", help="of `fit` and `gap`: some public companies, such as 14,12")
    options = arguments.parse_args()
    suite, usual = SUITES[options.suite]
    more = {} if options.companies is None else {"companies": [int(c) for c in options.companies.split(",")]}
    sys.exit(0 if suite(usual if options.rows is None else options.rows, **more) else 1)


if __name__ == "__main__":
    main()
