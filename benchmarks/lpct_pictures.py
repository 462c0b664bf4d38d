"""LPCT's Figures 8 and 9 as pictures, with their figures as tables: `lpct.py ranges` and `lpct.py partitions`.

What lives here: what is drawn, and what is measured for it. Reports are ours (joint, lam and depth automatic), not the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from lpct_samples import Sample, share_private, synthetic_pair
from lpct_trials import PAPER_LAM, Asked, asked, paper_grid
from numpy.typing import NDArray
from tables import MarkdownTable, pyplot

N_PUBLIC = (10, 20, 50, 100, 200, 500)
FIXED = np.arange(1.0, 5.01, 0.5)
"""The ranges [0, a] that are tried where the true one is not known."""
INK, RED, BLUE, GREY = "#444444", "#d1495b", "#30638e", "#bbbbbb"


def figure_8(runs: int, path: Path) -> bool:
    """X is uniform on [0, a]^2, a uniform on [1, 5]: a known, a estimated by the public rows, a fixed guess.

    Returns:
        Whether with the most public rows the estimated range is within .01 of the known one.
    """
    epsilons = (2.0, 8.0)
    found: dict[tuple[float, str], list[float]] = {}
    lines = ["known", "public range", "public range, outside dropped", *(f"[0, {a:g}]" for a in FIXED)]
    for epsilon in epsilons:
        for n_public in N_PUBLIC:
            scores = np.array([_ranges(run, n_public, epsilon) for run in range(runs)]).mean(axis=0)
            for name, score in zip(lines, scores, strict=True):
                found.setdefault((epsilon, name), []).append(float(score))
    for epsilon in epsilons:
        table = MarkdownTable(f"eps {epsilon:g}, n_Q", *N_PUBLIC)
        for name in lines:
            table.figures(name, found[epsilon, name])

    plt = pyplot()
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    _squares(axes[0])
    for axis, epsilon, letter in zip(axes[1:], epsilons, "bc", strict=True):
        fixed = np.array([found[epsilon, name] for name in lines[3:]])
        axis.fill_between(N_PUBLIC, fixed.min(axis=0), fixed.max(axis=0), color=GREY, alpha=0.5, lw=0)
        axis.plot(N_PUBLIC, fixed.max(axis=0), color="#888888", label="(III) fixed: best on test data")
        axis.plot(
            N_PUBLIC, fixed.mean(axis=0), ":", color="#888888", label="(III) fixed: mean of nine guesses"
        )
        axis.plot(
            N_PUBLIC, found[epsilon, "public range"], "o-", ms=4, color=RED, label="(II) range of public rows"
        )
        axis.plot(N_PUBLIC, found[epsilon, "known"], "s--", ms=4, color=INK, label="(I) range known")
        axis.set(xscale="log", xlabel="public rows", xticks=N_PUBLIC, xticklabels=N_PUBLIC)
        axis.set_title(f"({letter}) accuracy, eps {epsilon:g}", loc="left")
        axis.minorticks_off()
    axes[1].legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    return all(found[e, "public range"][-1] >= found[e, "known"][-1] - 0.01 for e in epsilons)


def _ranges(run: int, n_public: int, epsilon: float) -> list[float]:
    """Accuracy of one draw: a known, estimated (clipped, dropped), and each of FIXED."""
    unit = synthetic_pair(0.5, run, n_public=n_public)
    a = float(np.random.default_rng([run, 8]).uniform(1.0, 5.0))
    sample = replace(unit, public_X=unit.public_X * a, X=unit.X * a, test_X=unit.test_X * a)

    def trial(**settings: Any) -> Asked:
        coins = np.random.default_rng([run, n_public, 88])
        return asked(sample, epsilon, coins, partition="max-edge", **settings)

    dropped = trial(outside="drop").model()
    return [
        trial(known=(0.0, a)).accuracy(),
        trial().accuracy(),
        float(np.mean(dropped.predict(sample.test_X) == sample.test_y)),
        *(trial(known=(0.0, float(guess))).accuracy() for guess in FIXED),
    ]


def _squares(axis: Any) -> None:
    """a = 2.9: the guesses, and the range of 50 public rows."""
    rows = synthetic_pair(0.5, 0).public_X * 2.9
    for guess in FIXED:
        _box(axis, (0, guess), (0, guess), color=GREY, lw=1)
    _box(axis, (0, 2.9), (0, 2.9), color=INK, lw=1, ls="--")
    low, high = rows.min(axis=0), rows.max(axis=0)
    _box(axis, (low[0], high[0]), (low[1], high[1]), color=RED, lw=2)
    axis.scatter(*rows.T, s=5, color=RED)
    axis.set(xlim=(-0.15, 5.15), ylim=(-0.15, 5.15), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    axis.set_title("(a) a = 2.9 and 50 public rows", loc="left")


def _box(axis: Any, x: Sequence[float], y: Sequence[float], **style: Any) -> None:
    axis.plot([x[0], x[1], x[1], x[0], x[0]], [y[0], y[0], y[1], y[1], y[0]], **style)


def figure_9(runs: int, path: Path) -> bool:
    """Max-edge, which public rows decide, against random max-edge (LPCT-R).

    Returns:
        Whether max-edge is at least as good, within .003, from 50 public rows on.
    """
    epsilons = (2.0, 8.0)
    found: dict[tuple[float, str], list[float]] = {}
    for epsilon in epsilons:
        for n_public in N_PUBLIC:
            scores = np.zeros(2)
            for run in range(runs):
                sample = synthetic_pair(0.5, run, n_public=n_public)
                for j, partition in enumerate(("max-edge", "random-edge")):
                    coins = np.random.default_rng([run, n_public, 99])
                    growth = {"seed": run} if j else {}
                    trial = asked(sample, epsilon, coins, partition=partition, known=(0.0, 1.0), **growth)
                    scores[j] += trial.accuracy() / runs
            for name, score in zip(("LPCT", "LPCT-R"), scores, strict=True):
                found.setdefault((epsilon, name), []).append(float(score))
    published = {
        name: [
            paper_grid(0.5, (8.0,), runs, PAPER_LAM, partition=partition, n_public=n)[8.0][0]
            for n in N_PUBLIC
        ]
        for name, partition in (("LPCT", "max-edge"), ("LPCT-R", "random-edge"))
    }
    table = MarkdownTable("n_Q", *N_PUBLIC)
    for (epsilon, name), values in found.items():
        table.figures(f"eps {epsilon:g}, {name}", values)
    for name, values in published.items():
        table.figures(f"eps 8, {name} as published", values)

    plt = pyplot()
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    sample = synthetic_pair(0.5, 0, n_public=1_000)
    _cells(axes[0], sample, "random-edge", "(a) a random partition, depth 3")
    _cells(axes[1], sample, "max-edge", "max-edge with public rows, depth 3")
    for epsilon, style in zip(epsilons, ("--", "-"), strict=True):
        for name, colour in (("LPCT", RED), ("LPCT-R", BLUE)):
            axes[2].plot(
                N_PUBLIC,
                found[epsilon, name],
                style,
                marker="o",
                ms=4,
                color=colour,
                label=f"{name}, eps {epsilon:g}",
            )
    for name, colour in (("LPCT", RED), ("LPCT-R", BLUE)):
        axes[2].plot(N_PUBLIC, published[name], ":", color=colour, label=f"{name} as published, eps 8")
    axes[2].set(xscale="log", xlabel="public rows", xticks=N_PUBLIC, xticklabels=N_PUBLIC)
    axes[2].set_title("(b) accuracy", loc="left")
    axes[2].minorticks_off()
    axes[2].legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    return all(
        best >= random - 0.003
        for e in epsilons
        for best, random in list(zip(found[e, "LPCT"], found[e, "LPCT-R"], strict=True))[2:]
    )


def _cells(axis: Any, sample: Sample, partition: str, title: str) -> None:
    """Where class 1 is the likelier one, and the borders of the cells with each cell's share of class 1."""
    # of 200 seeds, the random tree that parts the classes least
    seeds: list[dict[str, Any]] = [{"seed": s} for s in range(200)] if partition == "random-edge" else [{}]
    grid = (np.arange(240) + 0.5) / 240
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    eta = share_private(points)
    best: tuple[float, NDArray[np.int32]] | None = None
    for growth in seeds:
        trial = asked(
            sample, 8.0, np.random.default_rng(0), depth=3, partition=partition, known=(0.0, 1.0), **growth
        )
        cells = trial.protocol.raw_tree.apply(points)
        parted = float(np.abs(np.bincount(cells, eta - 0.5)).sum())
        if best is None or parted < best[0]:
            best = (parted, cells)
    assert best is not None
    cells = best[1].reshape(240, 240)
    axis.imshow(
        (eta > 0.5).reshape(240, 240), origin="lower", extent=(0, 1, 0, 1), cmap="Greys", vmin=-0.3, vmax=2.5
    )
    for axis_number in (0, 1):
        changed = np.diff(cells, axis=axis_number) != 0
        ys, xs = np.nonzero(changed)
        across = grid[ys] if axis_number else grid[ys] + 1 / 480
        along = grid[xs] + 1 / 480 if axis_number else grid[xs]
        axis.plot(along, across, "s", ms=0.9, color=RED)
    for cell in range(cells.max() + 1):
        y, x = (grid[at].mean() for at in np.nonzero(cells == cell))
        share = eta[cells.ravel() == cell].mean()
        axis.text(x, y, f"{share:.2f}", ha="center", va="center", fontsize=8, color=INK)
    axis.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    axis.set_title(title, loc="left")
