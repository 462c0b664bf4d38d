"""LPDT's Figures 1 to 3 as pictures, with their figures as tables: `lpdt.py figures`.

What is drawn: the paper's law Y = sin(16 X) + N(0, 1), X ~ N(.5, .025) (its variance) within [0, 1]; the paper's estimator
(max-edge, eq. 5 moved into the range of all labels, rho 1/2), and ours with nothing set. Errors are those of noisy test labels,
of which 1 is the noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lpdt_trials import Asked, Rows, asked, automatic_depths_of, coins, planted
from numpy.typing import NDArray
from tables import MarkdownTable, pyplot

IMAGES = Path(__file__).parents[1] / "docs" / "images"
N, N_PUBLIC, N_TEST = 6_000, 2_000, 2_000
EPSILONS = (3.0, 4.0, 6.0, 8.0)
DEPTHS = (2, 3, 4, 5, 6)
LEAVES = tuple(range(15, 136, 20))
BUDGETS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
INK, RED, BLUE, GREEN, GREY = "#444444", "#d1495b", "#30638e", "#3c8d5a", "#bbbbbb"
Floats = NDArray[np.float64]


def law(run: int, n: int = N, n_public: int = N_PUBLIC, *, is_known: bool = True) -> Rows:
    """Rows of the paper's law; the label range is that of all rows where it is known."""
    rng = np.random.default_rng([run, 50_000])
    parts = []
    for size in (n_public, N_TEST, n):
        X = np.clip(rng.normal(0.5, 0.025**0.5, (size, 1)), 0.0, 1.0)
        parts += [X, np.sin(16 * X[:, 0]) + rng.normal(size=size)]
    public_X, public_y, test_X, test_y, X, y = parts
    every = np.concatenate([public_y, y])
    return Rows(
        public_X=public_X,
        public_y=public_y,
        X=X,
        y=y,
        test_X=test_X,
        test_y=test_y,
        label_range=(float(every.min()), float(every.max())) if is_known else None,
        feature_range=(0.0, 1.0),
    )


def published(rows: Rows, epsilon: float, run: int, depth: int, leaf: int = 15) -> Asked:
    """The paper's report on its tree."""
    tree = planted(
        rows,
        depth,
        partition="max-edge",
        min_samples_leaf=leaf,
        mechanism="randomized_response",
    )
    return asked(tree, epsilon, *coins(run, depth, leaf, int(10 * epsilon)), mechanism="randomized_response")


def ours(rows: Rows, epsilon: float, run: int) -> Asked:
    """The default."""
    tree = planted(rows, automatic_depths_of(rows, epsilon))
    return asked(tree, epsilon, *coins(run, 99, int(10 * epsilon)))


def mean(errors: Iterable[float]) -> float:
    return float(np.mean(list(errors)))


def draw(runs: int) -> bool:
    """Both pictures; whether the error by depth falls and rises again, deeper for more epsilon."""
    _curves(IMAGES / "lpdt-figure-1.png")
    known = [law(run) for run in range(runs)]
    unknown = [law(run, is_known=False) for run in range(runs)]
    by_depth = {
        e: [mean(published(r, e, i, d).paper_mse() for i, r in enumerate(known)) for d in DEPTHS]
        for e in EPSILONS
    }
    by_leaf = {
        e: [mean(published(r, e, i, 6, leaf).paper_mse() for i, r in enumerate(known)) for leaf in LEAVES]
        for e in EPSILONS
    }
    by_budget = {
        "paper's, best depth by test": [
            min(mean(published(r, e, i, d).paper_mse() for i, r in enumerate(known)) for d in (1, *DEPTHS))
            for e in BUDGETS
        ],
        "ours": [mean(ours(r, e, i).mse() for i, r in enumerate(unknown)) for e in BUDGETS],
    }
    by_n: dict[str, list[float]] = {"paper's, eps 4, best depth by test": [], "ours, eps 4": []}
    for share in SHARES:
        fewer = [law(run, int(share * N), int(0.25 * N_PUBLIC), is_known=False) for run in range(runs)]
        best = min(
            mean(published(r, 4.0, i, d).paper_mse() for i, r in enumerate(fewer)) for d in (1, *DEPTHS)
        )
        by_n["paper's, eps 4, best depth by test"].append(best)
        by_n["ours, eps 4"].append(mean(ours(r, 4.0, i).mse() for i, r in enumerate(fewer)))
    _print("depth", DEPTHS, by_depth)
    _print("min leaf, depth 6", LEAVES, by_leaf)
    _print("eps", BUDGETS, by_budget)
    _print("private rows, 500 public", [int(s * N) for s in SHARES], by_n)
    _figure_2(IMAGES / "lpdt-figure-2.png", by_depth, by_leaf, by_budget, by_n)
    best_depths = [DEPTHS[int(np.argmin(by_depth[e]))] for e in EPSILONS]
    return best_depths == sorted(best_depths)


def _print(title: str, columns: Sequence[Any], lines: dict[Any, list[float]]) -> None:
    table = MarkdownTable(title, *(f"{c:g}" for c in columns))
    for name, values in lines.items():
        table.figures(name if isinstance(name, str) else f"eps {name:g}", values)


def _curves(path: Path) -> None:
    """Figure 1: eps 8, 8,000 private rows and no public one, against 7,000 and 500."""
    plt = pyplot(8)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
    x = np.linspace(0, 1, 1001)[:, None]
    lone, both = law(0, 8_000, 0), law(0, 7_000, 500)
    for axis, rows, title, depth in zip(
        axes, (lone, both), ("(a) no public row", "(b) 500 public rows"), (4, 6), strict=True
    ):
        axis.scatter(rows.X[:1000, 0], rows.y[:1000], s=2, color=GREEN, alpha=0.4)
        axis.plot(x[:, 0], np.sin(16 * x[:, 0]), color=GREY, label="truth")
        lines = [(published(rows, 8.0, 0, depth), f"paper's, depth {depth}", BLUE)]
        if rows.public_y.size:
            lines.append((ours(rows, 8.0, 0), "ours", RED))
        for one, label, colour in lines:
            model = (
                one.model(one.tree.bare, lam=0.0, prune="none", rule="ratio")
                if "paper" in label
                else one.model()
            )
            axis.plot(
                x[:, 0],
                model.predict(x),
                color=colour,
                lw=1,
                label=f"{label}: MSE {one.score(model):.2f}",
            )
        axis.set(ylim=(-4, 4), xlabel="x")
        axis.set_title(title, loc="left")
        axis.legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=130, metadata={"Software": None})


def _figure_2(
    path: Path,
    by_depth: dict[float, list[float]],
    by_leaf: dict[float, list[float]],
    by_budget: dict[str, list[float]],
    by_n: dict[str, list[float]],
) -> None:
    plt = pyplot(8)
    figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
    colours = dict(zip(EPSILONS, (RED, "#edae49", GREEN, BLUE), strict=True))
    for axis, settings, lines in ((axes[0, 0], DEPTHS, by_depth), (axes[0, 1], LEAVES, by_leaf)):
        for epsilon, values in lines.items():
            axis.plot(settings, values, "o-", ms=3, color=colours[epsilon], label=f"eps {epsilon:g}")
        axis.legend(frameon=False, fontsize=7)
    for axis, x, named in ((axes[1, 0], BUDGETS, by_budget), (axes[1, 1], [s * N for s in SHARES], by_n)):
        for (name, values), colour in zip(named.items(), (BLUE, RED), strict=True):
            axis.plot(x, values, "o-", ms=3, color=colour, label=name)
        axis.legend(frameon=False, fontsize=7)
    titles = ("(a) depth", "(b) min leaf, depth 6", "(c) epsilon", "(d) private rows, 500 public")
    for axis, title in zip(axes.flat, titles, strict=True):
        axis.set_yscale("log")
        axis.set_title(f"{title[:3]} MSE by {title[4:]}", loc="left")
    figure.savefig(path, dpi=130, metadata={"Software": None})
