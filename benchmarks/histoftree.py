"""HistOfTree and AdHistOfTree against their paper: LDPTREE_DATA=DIR python benchmarks/histoftree.py SUITE [--runs N]

    figure-2    the law of section 5.1: epsilon, n, (t, p) and the mask (a picture)
    readings    panels (c) and (d) of it with less label noise, and with finer constants in (15)
    tables      the ten real sets beside the printed Tables 1-3 (--epsilon 1, 2 or 4)
    parts       what each part is worth: label mechanism, cell mechanism, criterion, default against grid
    mask        what it costs to hide the mask (section 3.4)

A grid's best is picked on test rows, as the paper did; what says "default" has no grid. In this benchmark alone the label's
range is that of the full data and features are scaled by all rows, as in the paper's experiments: neither is private.
Seeds are fixed.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from regression_sets import HISTOFTREE_NAMES, histoftree_printed, load, min_max
from semi_feature_laws import D, Draw, aligned, draw, personalised, private_count, thinning
from sklearn.tree import DecisionTreeRegressor

from ldptree.baselines.label_dt import LabelTreeRegressor
from ldptree.baselines.par_dt import PublicPartTreeRegressor
from ldptree.estimators.histoftree import HistOfTreeRegressor
from ldptree.histoftree import BIAS_WEIGHTS, BIN_SHIFTS

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Setting = Mapping[str, Any]

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "histoftree-figure-2.png"
N = 10_000
DEPTHS, BINS, LABEL_SHARES = (1, 2, 4, 6), (1, 2, 3), (0.5, 0.7, 0.9)
"""The paper's grid (C.1). What it calls rho is the label's share; `rho` of the estimator is the cell's."""
TREE_DEPTHS, TREE_LEAVES = (1, 2, 4, 6, 8), (1, 10, 100)
MIN_LEAF = 10
"""Of HistOfTree's trees: the paper does not say one."""


def grid(**fixed: Any) -> list[Setting]:
    """HistOfTree's grid."""
    return [
        {"p": p, "t": t, "rho": 1 - share, "min_samples_leaf": MIN_LEAF, **fixed}
        for p, t, share in itertools.product(DEPTHS, BINS, LABEL_SHARES)
    ]


def adaptive_grid(**fixed: Any) -> list[Setting]:
    """AdHistOfTree's grid: the constant, t*, and the split of epsilon."""
    return [
        {"bias_weight": b, "t_shift": shift, "rho": 1 - share, "min_samples_leaf": MIN_LEAF, **fixed}
        for b, shift, share in itertools.product(BIAS_WEIGHTS, BIN_SHIFTS, LABEL_SHARES)
    ]


def tree_grid(**fixed: Any) -> list[Setting]:
    """The grid of ParDT, LabelDT and DT."""
    return [
        {"max_depth": depth, "min_samples_leaf": leaf, **fixed}
        for depth, leaf in itertools.product(TREE_DEPTHS, TREE_LEAVES)
    ]


def best(scores: Iterable[Floats]) -> tuple[float, int]:
    """The least mean of a grid's scores, each [runs], and where it is."""
    means = [float(np.mean(score)) for score in scores]
    return min(means), int(np.argmin(means))


# the law of section 5.1


def excess(
    sample: Draw, protects: Mask, epsilon: float, run: int, setting: Setting, kind: Any = HistOfTreeRegressor
) -> float:
    """Excess mean squared error of one fit; the label's range is that of the sample where the setting has none."""
    whole = (float(sample.y.min()), float(sample.y.max()))
    model = kind(epsilon, random_state=run, **{"label_range": whole, **setting})
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
    print(
        f"\n{title}\n\n| excess MSE | {' | '.join(map(str, xs))} |\n|{'---|' * (len(list(xs)) + 1)}",
        flush=True,
    )
    for name, values in series.items():
        print(f"| {name} | {' | '.join(f'{v:.3f}' for v in values)} |", flush=True)


def of_epsilon(runs: int) -> dict[str, list[float]]:
    """Figure 2 (a). Label LDP twice: LabelDT cuts freely, and HistOfTree's midpoints, as for the other s*."""
    found: dict[str, list[float]] = {LABEL_TREE: [], "label LDP, midpoints": []}
    for epsilon in EPSILONS:
        trees = tree_grid()
        found[LABEL_TREE].append(law_grid(private(0), N, epsilon, runs, trees, LabelTreeRegressor)[0])
        midpoints = [{"p": p, "t": 1} for p in DEPTHS]
        found["label LDP, midpoints"].append(law_grid(private(0), N, epsilon, runs, midpoints)[0])
        for s in range(1, 6):
            name = f"s* = {s}" if s < D else "LDP"
            settings = small_grid() if s < D else [{"t": t} for t in (1, 2, 3)]
            found.setdefault(name, []).append(law_grid(private(s), N, epsilon, runs, settings)[0])
    print_series("(a) n = 10,000, best of a grid, by epsilon", EPSILONS, found)
    return found


def of_size(runs: int) -> dict[str, list[float]]:
    """Figure 2 (b)."""
    found: dict[str, list[float]] = {}
    for n in SIZES:
        for s in range(1, 5):
            least, _ = law_grid(private(s), n, 4.0, runs, small_grid())
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
    what = "".join(f", {name} {value}" for name, value in fixed.items())
    print_series(f"(c) n = 10,000, epsilon {epsilon:g}, s* = 2, rho .5{what}, by p", PARAMETER_DEPTHS, found)
    return found


def constants(weights: Sequence[float]) -> list[Setting]:
    """AdHistOfTree's grid for the figure, with these constants on the second term of (15)."""
    return [
        {"bias_weight": b, "t_shift": shift, "rho": rho}
        for b, shift, rho in itertools.product(weights, BIN_SHIFTS, (0.5, 0.3))
    ]


def of_mask(runs: int) -> dict[str, list[float]]:
    """Figure 2 (d)."""
    found: dict[str, list[float]] = {}
    for gamma in GAMMAS:
        for s in range(4):
            least, _ = law_grid(thin(gamma), N, 4.0, runs, small_grid(s=s))
            found.setdefault(f"s = {s}", []).append(least)
        found.setdefault("adaptive", []).append(
            law_grid(thin(gamma), N, 4.0, runs, constants(BIAS_WEIGHTS))[0]
        )
        found.setdefault("adaptive, default", []).append(law_grid(thin(gamma), N, 4.0, runs, [{}])[0])
    print_series("(d) n = 10,000, epsilon 4, W_gamma, best of a grid, by gamma", GAMMAS, found)
    return found


def figure_2(runs: int, **_: Any) -> None:
    """The four panels, printed and drawn; (c), which is cheap, has five times the runs."""
    panels = [
        ("(a) by epsilon (n = 10,000)", "epsilon", EPSILONS, of_epsilon(runs), True),
        ("(b) by n (epsilon 4)", "n", SIZES, of_size(runs), True),
        ("(c) by p and t (s* = 2, epsilon 4)", "p", PARAMETER_DEPTHS, of_parameters(5 * runs), False),
        ("(d) by thickness of the mask (epsilon 4)", "gamma", GAMMAS, of_mask(runs), True),
    ]
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
    for axis, (title, label, xs, series, is_log) in zip(axes.ravel(), panels, strict=True):
        for name, values in series.items():
            style = "--" if "default" in name else "-"
            axis.plot(xs, values, style, marker="o", ms=3.5, label=name)
        axis.set(xlabel=label, ylabel="excess MSE", xticks=xs)
        axis.set_yscale("log")
        if is_log:
            axis.set_xscale("log")
            axis.set_xticks(xs, [f"{x:g}" if x < 1000 else f"{x / 1000:g}k" for x in xs])
            axis.minorticks_off()
        axis.set_title(title, loc="left")
        axis.legend(frameon=False, fontsize=7)
    figure.savefig(IMAGE, dpi=130, metadata={"Software": None})
    print(f"\nwritten: {IMAGE}")


FINER_WEIGHTS = (0.0025, 0.005, *BIAS_WEIGHTS)


def readings(runs: int, **_: Any) -> None:
    """Panel (c) with less label noise, by epsilon and by labels cut to a narrow range; panel (d) with finer constants."""
    for epsilon in (6.0, 8.0):
        of_parameters(runs, epsilon)
    of_parameters(runs, label_range=(0.0, 3.0))
    found = {
        "adaptive, constants from .0025": [
            law_grid(thin(gamma), N, 4.0, runs, constants(FINER_WEIGHTS))[0] for gamma in GAMMAS
        ]
    }
    print_series("(d) n = 10,000, epsilon 4, W_gamma, by gamma", GAMMAS, found)


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
    heads = " | ".join(f"s* = {s}, eps {e:g}" for s, e in columns)
    print(f"| excess MSE, best of a grid (default) | {heads} |\n|{'---|' * (len(columns) + 1)}", flush=True)
    for name, change in changes.items():
        cells = []
        for s, epsilon in columns:
            least = law_grid(private(s), N, epsilon, runs, small_grid(**change))[0]
            plain = law_grid(private(s), N, epsilon, runs, [change])[0]
            cells.append(f"{least:.3f} ({plain:.3f})")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def mask(runs: int, **_: Any) -> None:
    """W_gamma sent, as the cells a holder could be in, or not at all."""
    columns = [(gamma, epsilon) for gamma in (1.0, 4.0) for epsilon in (2.0, 4.0)]
    heads = " | ".join(f"gamma {g:g}, eps {e:g}" for g, e in columns)
    print(f"| excess MSE, best of a grid | {heads} |\n|{'---|' * (len(columns) + 1)}", flush=True)
    for release in ("all", "cells", "none"):
        cells = []
        for gamma, epsilon in columns:
            settings = [setting for s in (0, 1, 2) for setting in small_grid(s=s, mask_release=release)]
            cells.append(f"{law_grid(thin(gamma), N, epsilon, runs, settings)[0]:.3f}")
        print(f'| mask_release="{release}" | {" | ".join(cells)} |', flush=True)


# the real sets


def repetitions(name: str, runs: int) -> Iterable[tuple[Floats, Floats, Floats, Floats, np.random.Generator]]:
    """Random splits, a fifth held out: (X, y, test_X, test_y, generator of masks and seeds)."""
    dataset = load(name)
    X = min_max(dataset.X)
    for run in range(runs):
        generator = np.random.default_rng([run, dataset.y.size])
        order = generator.permutation(dataset.y.size)
        n_test = -(-order.size // 5)
        test, train = order[:n_test], order[n_test:]
        yield X[train], dataset.y[train], X[test], dataset.y[test], generator


def set_errors(name: str, epsilon: float, runs: int) -> tuple[dict[str, Floats], dict[str, list[Setting]]]:
    """MSE of every setting of every method, float64 [settings, runs], and the settings."""
    d = load(name).X.shape[1]
    n_private = private_count(d)
    y_all = load(name).y
    label_range = (float(y_all.min()), float(y_all.max()))
    methods: dict[str, tuple[Any, str, list[Setting]]] = {"DT": (None, "", tree_grid())}
    for kind in ("aligned", "personalized"):
        splits = ("max-edge", "cart")
        for short, partition in zip(("ME", "CART"), splits, strict=True):
            settings = grid(partition=partition, s=n_private)
            methods[f"{kind}/HistOfTree {short}"] = (HistOfTreeRegressor, kind, settings)
            if kind == "personalized":
                settings = adaptive_grid(partition=partition)
                methods[f"{kind}/AdHistOfTree {short}"] = (HistOfTreeRegressor, kind, settings)
        methods[f"{kind}/ParDT"] = (PublicPartTreeRegressor, kind, tree_grid())
        methods[f"{kind}/default"] = (HistOfTreeRegressor, kind, [{"min_samples_leaf": MIN_LEAF}])
        methods[f"{kind}/default, optimal_label"] = (
            HistOfTreeRegressor,
            kind,
            [{"min_samples_leaf": MIN_LEAF, "label": "optimal_label"}],
        )
    errors = {method: np.empty((len(settings), runs)) for method, (_, _, settings) in methods.items()}
    for run, (X, y, test_X, test_y, generator) in enumerate(repetitions(name, runs)):
        masks = {"aligned": aligned(len(y), d, n_private), "personalized": personalised(len(y), d, generator)}
        for method, (kind, paradigm, settings) in methods.items():
            for k, setting in enumerate(settings):
                if kind is None:
                    model = DecisionTreeRegressor(**setting, random_state=0).fit(X, y)
                else:
                    model = kind(epsilon, label_range=label_range, random_state=run, **setting)
                    model.fit(X, y, protects=masks[paradigm])
                errors[method][k, run] = np.mean((model.predict(test_X) - test_y) ** 2)
    return errors, {method: settings for method, (_, _, settings) in methods.items()}


METHODS = (
    "HistOfTree ME",
    "HistOfTree CART",
    "AdHistOfTree ME",
    "AdHistOfTree CART",
    "ParDT",
    "default",
    "default, optimal_label",
)


def tables(runs: int, epsilon: float = 2.0, only: str = "", **_: Any) -> None:
    """Table 1 (epsilon 2), 2 (1) or 3 (4): measured / printed, MSE over that of the best plain tree."""
    print(f"epsilon {epsilon:g}, {runs} runs: measured / printed\n")
    print(f"| set | W | {' | '.join(METHODS)} |\n|{'---|' * (len(METHODS) + 2)}", flush=True)
    below: dict[str, int] = defaultdict(int)
    n_printed: dict[str, int] = defaultdict(int)
    for name in only.split(",") if only else HISTOFTREE_NAMES:
        errors, settings = set_errors(name, epsilon, runs)
        scale = best(errors.pop("DT"))[0]
        printed = histoftree_printed(name, epsilon)
        for kind in ("aligned", "personalized"):
            cells = []
            for method in METHODS:
                full = f"{kind}/{method}"
                if full not in errors:
                    cells.append("")
                    continue
                least, at = best(errors[full])
                paper = printed.get(full.replace(" ", "-"))
                cells.append(f"{least / scale:.2f}" + ("" if paper is None else f" / {paper:.2f}"))
                below[method] += paper is not None and least / scale <= paper
                n_printed[method] += paper is not None
                print(f"# {name} {full}: {settings[full][at]}", file=sys.stderr, flush=True)
            print(f"| {name} | {kind} | {' | '.join(cells)} |", flush=True)
    counts = [f"{below[method]} of {n_printed[method]}" if n_printed[method] else "" for method in METHODS]
    print(f"| not above the printed | | {' | '.join(counts)} |", flush=True)


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
    asked = vars(parser.parse_args())
    SUITES[asked.pop("suite")](**asked)


if __name__ == "__main__":
    main()
