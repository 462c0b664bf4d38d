"""HistOfTree and AdHistOfTree against their paper: LDPTREE_DATA=DIR python benchmarks/histoftree.py SUITE [--runs N]

    figure-2    the law of section 5.1: epsilon, n, (t, p) and the mask (a picture; --labels function or sample)
    readings    panel (c) of it with less label noise, and panel (d) with finer constants in (15)
    tables      the ten real sets beside the printed Tables 1-3 (--epsilon 1, 2 or 4)
    parts       what each part is worth: label mechanism, cell mechanism, criterion, default against grid
    mask        what it costs to hide the mask (section 3.4)

A grid's best is picked on test rows, as the paper did; what says "default" or "no grid" has none. In this benchmark alone
the label's range is that of the full data and features are scaled by all rows, as in the paper's experiments: neither is private.
Seeds are fixed.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from histoftree_grids import BINS, DEPTHS, MIN_LEAF, PAPER, Setting, best, tree_grid
from histoftree_sets import tables
from numpy.typing import NDArray
from semi_feature_laws import D, Draw, aligned, draw, thinning
from tables import MarkdownTable

from ldptree.baselines.label_dt import LabelTreeRegressor
from ldptree.estimators.histoftree import HistOfTreeRegressor
from ldptree.families.histoftree import BIAS_WEIGHTS, BIN_SHIFTS

Mask = NDArray[np.bool_]

IMAGES = Path(__file__).parents[1] / "docs" / "images"
N = 10_000

# the law of section 5.1

LABELS: dict[str, dict[str, Any]] = {"function": {"label_range": (0.0, 3 * math.sin(1.0))}, "sample": {}}
"""What [-M, M] is for a law whose labels have no bound: the range of its regression function, to which labels are clipped,
or that of the sample."""


def excess(
    sample: Draw, protects: Mask, epsilon: float, run: int, setting: Setting, kind: Any = HistOfTreeRegressor
) -> float:
    """Excess mean squared error of one fit; the label's range is that of the sample where the setting has none."""
    whole = (float(sample.y.min()), float(sample.y.max()))
    model = kind(epsilon, random_state=run, **{"label_range": whole, **PAPER, **setting})
    fit = {} if kind is LabelTreeRegressor else {"protects": protects}
    return sample.excess(model.fit(sample.X, sample.y, **fit).predict(sample.test_X))


def private(s: int) -> Callable[[int, int], Mask]:
    """Everybody protects the first s features."""
    return lambda n, d: aligned(n, d, s)


def thin(gamma: float) -> Callable[[int, int], Mask]:
    """W_gamma."""
    return lambda n, d: thinning(n, d, gamma)


def law_grid(
    mask: Callable[[int, int], Mask],
    n: int,
    epsilon: float,
    runs: int,
    settings: Sequence[Setting],
    kind: Any = HistOfTreeRegressor,
) -> tuple[float, Setting]:
    """The least mean excess of a grid, and the setting."""
    samples = [draw("sines", n, run) for run in range(runs)]
    scores = [
        np.array(
            [excess(sample, mask(n, D), epsilon, run, setting, kind) for run, sample in enumerate(samples)]
        )
        for setting in settings
    ]
    least, at = best(scores)
    return least, settings[at]


def small_grid(**fixed: Any) -> list[Setting]:
    """A grid for the figure: two splits of epsilon, the cell's share .5 and .3."""
    return [
        {"p": p, "t": t, "rho": rho, **fixed}
        for p, t, rho in itertools.product(DEPTHS, BINS, (0.5, 0.3))
        if t > 1 or rho == 0.5
    ]


EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
SIZES = (2_500, 5_000, 10_000, 20_000, 40_000)
GAMMAS = (0.25, 0.5, 1.0, 2.0, 4.0)
LABEL_TREE = "label LDP, LabelDT"


def print_series(title: str, xs: Iterable[Any], series: Mapping[str, list[float]]) -> None:
    print(f"\n{title}")
    table = MarkdownTable("excess MSE", *xs)
    for name, values in series.items():
        table.figures(name, values)


def of_epsilon(runs: int, **fixed: Any) -> dict[str, list[float]]:
    """Figure 2 (a). Label LDP twice: LabelDT cuts freely, and HistOfTree's midpoints, as for the other s*."""
    found: dict[str, list[float]] = {LABEL_TREE: [], "label LDP, midpoints": []}
    for epsilon in EPSILONS:
        trees = tree_grid(**fixed)
        found[LABEL_TREE].append(law_grid(private(0), N, epsilon, runs, trees, LabelTreeRegressor)[0])
        midpoints = [{"p": p, "t": 1, **fixed} for p in DEPTHS]
        found["label LDP, midpoints"].append(law_grid(private(0), N, epsilon, runs, midpoints)[0])
        for s in range(1, 6):
            name = f"s* = {s}" if s < D else "LDP"
            settings = small_grid(**fixed) if s < D else [{"t": t, **fixed} for t in (1, 2, 3)]
            found.setdefault(name, []).append(law_grid(private(s), N, epsilon, runs, settings)[0])
    print_series("(a) n = 10,000, best of a grid, by epsilon", EPSILONS, found)
    return found


def of_size(runs: int, **fixed: Any) -> dict[str, list[float]]:
    """Figure 2 (b)."""
    found: dict[str, list[float]] = {}
    for n in SIZES:
        for s in range(1, 5):
            least, _ = law_grid(private(s), n, 4.0, runs, small_grid(**fixed))
            found.setdefault(f"s* = {s}", []).append(least)
    print_series("(b) epsilon 4, best of a grid, by n", SIZES, found)
    return found


PARAMETER_DEPTHS = (0, 1, 2, 3, 4, 5, 6)


def of_parameters(runs: int, epsilon: float = 4.0, **fixed: Any) -> dict[str, list[float]]:
    """Figure 2 (c), the cell's share fixed at .5."""
    found: dict[str, list[float]] = {}
    for t in (1, 2, 3, 4):
        for p in PARAMETER_DEPTHS:
            setting = {"t": t, "p": p, "rho": 0.5, **fixed}
            found.setdefault(f"t = {t}", []).append(law_grid(private(2), N, epsilon, runs, [setting])[0])
    print_series(f"(c) n = 10,000, epsilon {epsilon:g}, s* = 2, rho .5, by p", PARAMETER_DEPTHS, found)
    return found


def constants(weights: Sequence[float], **fixed: Any) -> list[Setting]:
    """AdHistOfTree's grid for the figure, with these constants on the second term of (15)."""
    return [
        {"bias_weight": b, "t_shift": shift, "rho": rho, **fixed}
        for b, shift, rho in itertools.product(weights, BIN_SHIFTS, (0.5, 0.3))
    ]


def of_mask(runs: int, **fixed: Any) -> dict[str, list[float]]:
    """Figure 2 (d)."""
    found: dict[str, list[float]] = {}
    for gamma in GAMMAS:
        for s in range(4):
            least, _ = law_grid(thin(gamma), N, 4.0, runs, small_grid(s=s, **fixed))
            found.setdefault(f"s = {s}", []).append(least)
        found.setdefault("adaptive", []).append(
            law_grid(thin(gamma), N, 4.0, runs, constants(BIAS_WEIGHTS, **fixed))[0]
        )
        found.setdefault("adaptive, default", []).append(law_grid(thin(gamma), N, 4.0, runs, [fixed])[0])
    print_series("(d) n = 10,000, epsilon 4, W_gamma, best of a grid, by gamma", GAMMAS, found)
    return found


Panel = tuple[str, str, Sequence[float], dict[str, list[float]]]
"""A title, what is on the x axis, its values, and the series."""


def figure_2(runs: int, labels: str = "function", **_: Any) -> None:
    """The four panels, printed and drawn; (c), which is cheap, has five times the runs."""
    fixed = LABELS[labels]
    panels: list[Panel] = [
        ("(a) by epsilon (n = 10,000)", "epsilon", EPSILONS, of_epsilon(runs, **fixed)),
        ("(b) by n (epsilon 4)", "n", SIZES, of_size(runs, **fixed)),
        ("(c) by p and t (s* = 2, epsilon 4)", "p", PARAMETER_DEPTHS, of_parameters(5 * runs, **fixed)),
        ("(d) by thickness of the mask (epsilon 4)", "gamma", GAMMAS, of_mask(runs, **fixed)),
    ]
    of_labels = "" if labels == "function" else f"-{labels}"
    image = IMAGES / f"histoftree-figure-2{of_labels}.png"
    draw_panels(panels, image)
    print(f"\nwritten: {image}")


def draw_panels(panels: Sequence[Panel], image: Path) -> None:
    """Logarithmic, but for depths."""
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator

    figure, axes = plt.subplots(2, 2, figsize=(11, 6.4), layout="constrained")
    for axis, (title, label, xs, series) in zip(axes.ravel(), panels, strict=True):
        for name, values in series.items():
            style = "--" if "default" in name else "-"
            axis.plot(xs, values, style, marker="o", ms=3.5, label=name)
        axis.set(xlabel=label, ylabel="excess MSE", xticks=xs)
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
        if label != "p":
            axis.set_xscale("log")
            axis.set_xticks(xs, [f"{x:g}" if x < 1000 else f"{x / 1000:g}k" for x in xs])
            axis.xaxis.minorticks_off()
            axis.yaxis.set_minor_locator(LogLocator(subs=(2, 3, 4, 5, 6, 8)))
            axis.yaxis.set_minor_formatter("{x:g}")
        axis.set_title(title, loc="left")
        axis.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.savefig(image, dpi=130, metadata={"Software": None})


FINER_WEIGHTS = (0.0025, 0.005, *BIAS_WEIGHTS)


def readings(runs: int, **_: Any) -> None:
    """Panel (c) at a larger epsilon, panel (d) with finer constants; labels in the sample's range, and in the function's."""
    of_parameters(runs, 8.0)
    for name, fixed in LABELS.items():
        found = [law_grid(thin(g), N, 4.0, runs, constants(FINER_WEIGHTS, **fixed))[0] for g in GAMMAS]
        title = f"(d) n = 10,000, epsilon 4, W_gamma, labels in the range of the {name}, by gamma"
        print_series(title, GAMMAS, {"adaptive, constants from .0025": found})


def parts(runs: int, **_: Any) -> None:
    """Each part exchanged alone; s* = 1 and 2, grid's best and the default."""
    changes: dict[str, dict[str, Any]] = {
        "as the paper: grr, laplace, weighted": {},
        'criterion="printed"': {"criterion": "printed"},
        'partition="cart"': {"partition": "cart", "min_samples_leaf": MIN_LEAF},
        'mechanism="randomized_response"': {"mechanism": "randomized_response"},
        'label="optimal_label"': {"label": "optimal_label"},
    }
    columns = [(s, epsilon) for s in (1, 2) for epsilon in (1.0, 2.0, 4.0)]
    heads = (f"s* = {s}, eps {e:g}" for s, e in columns)
    table = MarkdownTable("excess MSE, best of a grid (no grid)", *heads)
    for name, change in changes.items():
        cells = []
        for s, epsilon in columns:
            least = law_grid(private(s), N, epsilon, runs, small_grid(**change))[0]
            plain = law_grid(private(s), N, epsilon, runs, [change])[0]
            cells.append(f"{least:.3f} ({plain:.3f})")
        table.row(name, *cells)


def mask(runs: int, **_: Any) -> None:
    """W_gamma sent, as the cells a holder could be in, or not at all."""
    columns = [(gamma, epsilon) for gamma in (1.0, 4.0) for epsilon in (2.0, 4.0)]
    table = MarkdownTable("excess MSE, best of a grid", *(f"gamma {g:g}, eps {e:g}" for g, e in columns))
    for release in ("all", "cells", "none"):
        cells = []
        for gamma, epsilon in columns:
            settings = [setting for s in (0, 1, 2) for setting in small_grid(s=s, mask_release=release)]
            cells.append(f"{law_grid(thin(gamma), N, epsilon, runs, settings)[0]:.3f}")
        table.row(f'mask_release="{release}"', *cells)


SUITES: dict[str, Callable[..., None]] = {
    "figure-2": figure_2,
    "readings": readings,
    "tables": tables,
    "parts": parts,
    "mask": mask,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=2.0, choices=(1.0, 2.0, 4.0))
    parser.add_argument("--only", default="", help="sets, such as ABA,WHI")
    parser.add_argument(
        "--labels", default="function", choices=LABELS, help="of figure-2: whose range labels have"
    )
    asked = vars(parser.parse_args())
    SUITES[asked.pop("suite")](**asked)


if __name__ == "__main__":
    main()
