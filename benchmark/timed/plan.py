"""Is what `ldptree plan` forecasts what then comes out? For each case the 80 % interval of the plan, and the score of the run.

    python benchmark/timed/plan.py [WORD ...]        cases whose name has one of the words; all without any

It prints one result of a page of docs/measured.

The real sets are read where LDPTREE_DATA names their folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from flows.command.plan import Options, make_plan
from flows.executors import InlineExecutor
from flows.pipeline import Pipeline
from ldptree_benchmark.results.measured import Measured
from schemas.config import RunConfig, load, parse
from storage.store import Store

HEADS = ("case", "public rows", "people", "expected", "80 %", "came out", "inside")
LEAST_HELD = 0.7
EPSILONS = (1.0, 4.0)
READY = {
    "quickstart": (),
    "census": (),
    "census, corrected": ("model.estimator=correction",),
    "wine": (),
    "wine, corrected": ("model.estimator=correction", "model.label_range="),
    "abalone": (),
}
SHIFTS = {"alike": 0.0, "5 points off": 0.05, "15 points off": 0.15}


def ready_made() -> Iterator[tuple[str, list[RunConfig]]]:
    """The ready-made configurations, at each epsilon."""
    for name, changes in READY.items():
        settings = [*changes, "evaluation.redraws=0"]
        yield (
            name,
            [load(name.split(",")[0], [*settings, f"privacy.epsilon={epsilon}"]) for epsilon in EPSILONS],
        )


def simulated(folder: Path) -> Iterator[tuple[str, list[RunConfig]]]:
    """Yield made-up laws, with private people like public ones, or with their label shifted."""
    for label in ("class", "number"):
        for shift, size in SHIFTS.items():
            path = write_law(folder / f"{label}-{size}.csv", label, size)
            yield f"law of a {label}, {shift}", [law_config(path, label, epsilon) for epsilon in EPSILONS]


def write_law(path: Path, label: str, shift: float, n: int = 16_000) -> Path:
    """Four features, a fifth of the rows public; the chance of a 1, or the mean, is higher by `shift` in private rows."""
    rng = np.random.default_rng(5)
    X = rng.random((n, 4))
    is_public = rng.random(n) < 0.2
    mean = 0.2 + 0.4 * X[:, 0] + 0.3 * X[:, 1] * X[:, 2] + np.where(is_public, 0.0, shift)
    y = (
        np.where(rng.random(n) < mean, "yes", "no")
        if label == "class"
        else np.round(mean + rng.normal(0, 0.2, n), 3)
    )
    lines = ["a,b,c,d,kind,y"]
    kinds = np.where(is_public, "open", "closed")
    lines += [
        f"{a:.4f},{b:.4f},{c:.4f},{d:.4f},{kind},{value}"
        for (a, b, c, d), kind, value in zip(X, kinds, y, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def law_config(path: Path, label: str, epsilon: float) -> RunConfig:
    """A trial of such a law, with a corrected public model."""
    dataset: dict[str, Any] = {"name": "law", "path": [str(path)], "target": "y", "public": "kind = 'open'"}
    dataset |= {"positive": "yes"} if label == "class" else {"label": "number"}
    return parse(
        {
            "name": "law",
            "seed": 7,
            "dataset": dataset,
            "model": {"estimator": "correction"},
            "privacy": {"epsilon": epsilon},
            "evaluation": {"redraws": 0},
        }
    )


def try_cases(name: str, configs: list[RunConfig], work: Path) -> Iterator[tuple[tuple[str, ...], bool]]:
    """A row of the table for each epsilon, and whether the interval held."""
    store = Store(work)
    options = Options(epsilon=",".join(f"{config.privacy.epsilon:g}" for config in configs))
    plan = make_plan(Pipeline(store=store, config=configs[0], executor=InlineExecutor(store)), options)
    for forecast, config in zip(plan.forecasts, configs, strict=True):
        run = Pipeline(store=store, config=config, executor=InlineExecutor(store))
        run.walk()
        scores = json.loads(store.file(run.scores["scores"], "scores.json").read_text())
        ours = scores["scores"]["ours"]
        figure = float(ours.get("accuracy", ours.get("mse", np.nan)))
        holds = forecast.figure.low <= figure <= forecast.figure.high
        low, high = (f"{end:.3g}" for end in (forecast.figure.low, forecast.figure.high))
        yield (
            f"{name}, eps {forecast.epsilon:g}", f"{plan.n_public:,}", f"{forecast.holders:,}", f"{forecast.figure.mean:.3g}",
            f"{low} to {high}", f"{figure:.3g}", "yes" if holds else "no",
        ), holds  # fmt: skip


def main(words: list[str]) -> None:
    """Print it; on standard error a row when it is there."""
    rows: list[tuple[str, ...]] = [HEADS]
    held: list[bool] = []
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        cases = [*simulated(folder), *ready_made()]
        for name, configs in cases:
            if words and not any(word in name for word in words):
                continue
            for row, holds in try_cases(name, configs, folder / "work"):
                held.append(holds)
                rows.append(row)
                print(" | ".join(row), file=sys.stderr, flush=True)
    says = f"What comes out lies in the 80 % interval in 70 % of cases or more ({sum(held)} of {len(held)})"
    print(
        Measured(
            title="What was planned, and what came out",
            command="LDPTREE_DATA=DIR python benchmark/timed/plan.py > docs/measured/suites/plan.toml",
            claims=[(says, sum(held) >= LEAST_HELD * len(held))],
            tables=[("", rows)],
        ),
        end="",
    )


if __name__ == "__main__":
    main(sys.argv[1:])
