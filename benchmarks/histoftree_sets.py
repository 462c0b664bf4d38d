"""HistOfTree, AdHistOfTree, ParDT and the default on the ten real sets, beside the printed Tables 1 to 3."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
from histoftree_grids import MIN_LEAF, PAPER, Floats, Setting, adaptive_grid, best, grid, tree_grid
from regression_sets import HISTOFTREE_NAMES, histoftree_printed, load, min_max
from semi_feature_laws import aligned, personalised, private_count
from sklearn.tree import DecisionTreeRegressor
from tables import MarkdownTable

from ldptree.baselines.label_dt import PublicPartTreeRegressor
from ldptree.estimators.histoftree import HistOfTreeRegressor

DEFAULTS = {"default, laplace": "laplace", "default": "optimal_label"}
"""What has no grid, and the noise of its label."""


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
        for method, label in DEFAULTS.items():
            only = {"min_samples_leaf": MIN_LEAF, "label": label}
            methods[f"{kind}/{method}"] = (HistOfTreeRegressor, kind, [only])
    errors = {method: np.empty((len(settings), runs)) for method, (_, _, settings) in methods.items()}
    for run, (X, y, test_X, test_y, generator) in enumerate(repetitions(name, runs)):
        masks = {"aligned": aligned(len(y), d, n_private), "personalized": personalised(len(y), d, generator)}
        for method, (kind, paradigm, settings) in methods.items():
            for k, setting in enumerate(settings):
                if kind is None:
                    model = DecisionTreeRegressor(**setting, random_state=0).fit(X, y)
                else:
                    model = kind(epsilon, label_range=label_range, random_state=run, **{**PAPER, **setting})
                    model.fit(X, y, protects=masks[paradigm])
                errors[method][k, run] = np.mean((model.predict(test_X) - test_y) ** 2)
    return errors, {method: settings for method, (_, _, settings) in methods.items()}


METHODS = (
    "HistOfTree ME",
    "HistOfTree CART",
    "AdHistOfTree ME",
    "AdHistOfTree CART",
    "ParDT",
    *DEFAULTS,
)


def tables(runs: int, epsilon: float = 2.0, only: str = "", **_: Any) -> None:
    """Table 1 (epsilon 2), 2 (1) or 3 (4): measured / printed, MSE over that of the best plain tree."""
    print(f"epsilon {epsilon:g}, {runs} runs: measured / printed")
    table = MarkdownTable("set", "W", *METHODS)
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
            table.row(name, kind, *cells)
    counts = [f"{below[method]} of {n_printed[method]}" if n_printed[method] else "" for method in METHODS]
    table.row("not above the printed", "", *counts)
