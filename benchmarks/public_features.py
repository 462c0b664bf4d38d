"""One report a holder with public features, beside its targets and the paper: python benchmarks/public_features.py SUITE

    numbers       mechanisms for one bounded number: variance over u ~ N(0, .35), and a picture
    laws          the law of HistOfTree section 5.1 and the interaction law, n 10,000, everybody protects the first s features
    holders       the first of these laws, by number of holders (a picture)
    levels        a private feature of two levels, by how many have the upper one: the step that is found
    sets          ABA, AQU, FIS, RED, WHI (LDPTREE_DATA=DIR), aligned and personalised masks, over a non-private tree

Each prints a table, targets beside what was measured, and ends with 1 where a target is missed. Seeds are fixed. Ours has no
setting to tune and looks at no test row; the non-private tree of `sets` has the best parameters of the paper's grid by the TEST
error, as there. Printed figures are of the paper's HistOfTree with its best parameters by the test error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from regression_sets import RegressionSet, histoftree_printed, load
from semi_feature_laws import LABEL_RANGE, LAWS, aligned, draw, personalised, private_count
from tables import MarkdownTable, pyplot, standard_error

from ldptree.estimators.public_features import PublicFeatureRegressor
from ldptree.mechanisms.numbers import NUMBERS

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

IMAGES = Path(__file__).parents[1] / "docs" / "images"
EPSILONS = (1.0, 2.0, 4.0)
N = 10_000

LAW_TARGETS = {
    ("sines", 2.0): (0.03, 0.06, 0.09, 0.10),
    ("sines", 4.0): (0.012, 0.025, 0.035, 0.04),
    ("interaction", 4.0): (0.17, 0.17, 0.17),
}
"""Excess error at most, by how many features everybody protects."""
PAPER_ON_SINES = {
    1.0: (0.183, 0.182, 0.177, 0.174),
    2.0: (0.112, 0.148, 0.148, 0.145),
    4.0: (0.080, 0.097, 0.141, 0.132),
}
"""HistOfTree, max-edge, the best of its grid by the test error: `histoftree.py figure-2 --labels sample --runs 10`."""
PAPER_IN_RANGE = {
    1.0: (0.104, 0.145, 0.145, 0.136),
    2.0: (0.090, 0.141, 0.136, 0.132),
    4.0: (0.054, 0.061, 0.081, 0.130),
}
"""The same with labels clipped to the range of the regression function, which nobody knows: `--labels function`."""
SET_TARGETS = {1.0: 1.35, 2.0: 1.20, 4.0: 1.08}
"""Error over a non-private tree's at most, every set and either mask."""
SETS = ("ABA", "AQU", "FIS", "RED", "WHI")
KNOWN_RANGES: dict[str, tuple[tuple[float, float], ...]] = {
    # sex as a code; length in 200 mm
    "ABA": ((0.0, 2.0), (0.0, 1.0)),
    # polar surface in square angstrom; the surface of hydrogen bond acceptors
    "AQU": ((0.0, 350.0), (0.0, 600.0)),
    # an information index
    "FIS": ((0.0, 6.0),),
    # fixed and volatile acidity in grams a litre
    "RED": ((0.0, 20.0), (0.0, 2.0)),
    "WHI": ((0.0, 20.0), (0.0, 2.0)),
}
"""Ranges of the features that everybody protects, known without looking at a row. Of the others what is shown decides."""


LEVEL_TARGETS = {(0.5, 4.0): 0.05, (0.3, 4.0): 0.05, (0.1, 4.0): 0.15}
"""Excess error at most, of what it is with the feature ignored, by the share of the upper level and epsilon."""


def numbers(runs: int) -> bool:
    """Variance of every mechanism; nothing is drawn, so `runs` is of no matter."""
    u = np.linspace(-1, 1, 2001)
    weight = np.exp(-((u / 0.35) ** 2) / 2)
    weight /= weight.sum()
    table = MarkdownTable("variance over u ~ N(0, .35)", *(f"eps {e:g}" for e in (0.5, *EPSILONS, 8.0)))
    for name, kind in NUMBERS.items():
        found = [float(weight @ kind.for_budget(e).variance(u)) for e in (0.5, *EPSILONS, 8.0)]
        table.row(name, *(f"{v:.3g}" for v in found))
    numbers_picture(u)
    return table.is_met


def numbers_picture(u: Floats) -> None:
    """Variance by u at each epsilon, and relative to the best by epsilon."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.4))
    for axis, epsilon in zip(axes, EPSILONS, strict=False):
        for name, kind in NUMBERS.items():
            axis.plot(u, kind.for_budget(epsilon).variance(u), label=name)
        axis.set(title=f"epsilon {epsilon:g}", xlabel="u", ylim=(0, 3 * 8 / epsilon**2 / 2))
    axes[0].set_ylabel("variance of a report")
    weight = np.exp(-((u / 0.35) ** 2) / 2)
    epsilons = np.geomspace(0.25, 8, 26)
    best = [weight @ NUMBERS["optimal_label"].for_budget(float(e)).variance(u) for e in epsilons]
    for name, kind in NUMBERS.items():
        found = [weight @ kind.for_budget(float(e)).variance(u) for e in epsilons]
        axes[3].plot(epsilons, np.array(found) / best, label=name)
    axes[3].set(
        title="over optimal_label, u ~ N(0, .35)",
        xlabel="epsilon",
        xscale="log",
        yscale="log",
        ylim=(0.9, 10),
    )
    axes[3].set_xticks([0.25, 0.5, 1, 2, 4, 8], ["1/4", "1/2", "1", "2", "4", "8"])
    axes[3].minorticks_off()
    axes[3].legend(fontsize=8)
    _save(plt, figure, "number-mechanisms.png")


def excesses(law: str, epsilon: float, n_private: int, runs: int, n: int = N) -> list[float]:
    """Excess error of ours in each run."""
    found = []
    for run in range(runs):
        sample = draw(law, n, run)
        fitted = PublicFeatureRegressor(
            epsilon,
            private_features=list(range(n_private)),
            label_range=LABEL_RANGE,
            feature_range=(0.0, 1.0),
            random_state=run,
        ).fit(sample.X, sample.y)
        found.append(sample.excess(fitted.predict(sample.test_X)))
    return found


def laws(runs: int) -> bool:
    """Both laws at every epsilon."""
    is_met = True
    for law in LAWS:
        sample = draw(law, N, 0)
        constant = float(sample.test_mean.var())
        counts = (1, 2, 3, 4) if law == "sines" else (1, 2, 3)
        table = MarkdownTable(f"{law}: excess error", *(f"first {s} protected" for s in counts))
        table.row("a constant", *(f"{constant:.3f}" for _ in counts))
        for epsilon in EPSILONS:
            if law == "sines":
                for name, paper in (("HistOfTree", PAPER_ON_SINES), ("HistOfTree, f* known", PAPER_IN_RANGE)):
                    table.row(f"{name}, eps {epsilon:g}", *(f"{v:.3f}" for v in paper[epsilon]))
            targets = LAW_TARGETS.get((law, epsilon), (None,) * len(counts))
            cells, errors = [], []
            for s, target in zip(counts, targets, strict=True):
                found = excesses(law, epsilon, s, runs)
                cells.append(table.judge(float(np.mean(found)), target, most=True))
                errors.append(f"{standard_error(found):.3f}")
            table.row(f"ours, eps {epsilon:g}", *cells)
            table.row("(standard error)", *errors)
        is_met &= table.is_met
    return is_met


def levels(runs: int) -> bool:
    """The label is 4 higher at the upper level, its noise is N(0, 1), and there is no other feature."""
    table = MarkdownTable("step found, of 4; excess error of ignoring it", *(f"eps {e:g}" for e in EPSILONS))
    for share in (0.5, 0.3, 0.1, 0.02):
        cells = []
        for epsilon in EPSILONS:
            found, left = [], []
            for run in range(runs):
                generator = np.random.default_rng(run)
                X = generator.choice([0.0, 1.0], (N, 1), p=[1 - share, share])
                fitted = PublicFeatureRegressor(
                    epsilon,
                    private_features=[0],
                    label_range=(-5, 12),
                    feature_range=(0.0, 1.0),
                    random_state=run,
                ).fit(X, 4 * X[:, 0] + generator.standard_normal(N))
                low, high = fitted.predict(np.array([[0.0], [1.0]]))
                found.append(float(high - low))
                truth = 4 * X[:, 0]
                left.append(float(np.mean((fitted.predict(X) - truth) ** 2) / truth.var()))
            target = LEVEL_TARGETS.get((share, epsilon))
            cells.append(
                f"{np.mean(found):.1f} ± {np.std(found):.1f}; {table.judge(float(np.mean(left)), target, most=True, digits=2)}"
            )
        table.row(f"{share:.0%} have it", *cells)
    return table.is_met


def by_holders(runs: int) -> bool:
    """The law of section 5.1 by number of holders, with a picture."""
    sizes = (1_000, 3_000, 10_000, 30_000, 100_000)
    table = MarkdownTable("sines, eps 4: excess error", *(f"n {n:,}" for n in sizes))
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(5.5, 4))
    for s in (1, 2, 3, 4):
        found = [excesses("sines", 4.0, s, runs, n) for n in sizes]
        means = [float(np.mean(values)) for values in found]
        axis.errorbar(
            sizes,
            means,
            [standard_error(values) for values in found],
            marker="o",
            label=f"first {s} protected",
        )
        table.row(f"first {s} protected", *(f"{mean:.3f}" for mean in means))
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="holders",
        ylabel="excess error",
        title="law of section 5.1, epsilon 4",
    )
    axis.legend()
    _save(plt, figure, "public-features-holders.png")
    return table.is_met


def sets(runs: int) -> bool:
    """The real sets, 80 : 20 splits."""
    table = MarkdownTable(
        "error over a non-private tree",
        *(f"eps {e:g}" for e in EPSILONS),
        "a constant",
        "what it says at eps 4",
    )
    for name in SETS:
        data = load(name)
        rows = [_train_test(data, run) for run in range(runs)]
        plain = _plain_errors(data, rows)
        constant = np.mean([np.mean((data.y[t] - data.y[a].mean()) ** 2) for a, t in rows]) / plain
        for kind, mask_of in (("aligned", _aligned_mask), ("personalised", personalised)):
            printed = "personalized" if kind == "personalised" else kind
            cells, errors, says = [], [], ""
            for epsilon in EPSILONS:
                ratios = []
                for run, (train, test) in enumerate(rows):
                    mask = mask_of(train.size, data.X.shape[1], np.random.default_rng([run, 5]))
                    fitted = _fitted(data, train, mask, epsilon, run)
                    ratios.append(float(np.mean((fitted.predict(data.X[test]) - data.y[test]) ** 2)) / plain)
                    says = fitted.model_.says
                cells.append(table.judge(float(np.mean(ratios)), SET_TARGETS[epsilon], most=True, digits=2))
                errors.append(f"{standard_error(ratios):.2f}")
            table.row(f"{name} {kind}", *cells, f"{constant:.2f}", says)
            table.row("(standard error)", *errors, "", "")
            best = [_printed(name, epsilon, printed) for epsilon in EPSILONS]
            table.row("(HistOfTree, printed)", *(f"{v:.2f}" for v in best), "", "")
    return table.is_met


def _train_test(data: RegressionSet, run: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.random.default_rng([run, 11]).permutation(data.y.size)
    n_test = -(-data.y.size // 5)
    return order[n_test:], order[:n_test]


def _plain_errors(data: RegressionSet, rows: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> float:
    """Test error of a non-private tree with the parameters of the paper's grid that are best on the test rows."""
    from sklearn.tree import DecisionTreeRegressor

    found = []
    for depth in (1, 2, 4, 6, 8):
        for fewest in (1, 10, 100):
            tree = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=fewest, random_state=0)
            errors = [
                np.mean((tree.fit(data.X[a], data.y[a]).predict(data.X[t]) - data.y[t]) ** 2) for a, t in rows
            ]
            found.append(float(np.mean(errors)))
    return min(found)


def _aligned_mask(n: int, d: int, generator: np.random.Generator) -> Mask:
    return aligned(n, d, private_count(d))


def _fitted(
    data: RegressionSet, train: NDArray[np.int64], mask: Mask, epsilon: float, run: int
) -> PublicFeatureRegressor:
    X = data.X[train]
    low = np.where(mask, np.inf, X).min(axis=0)
    high = np.where(mask, -np.inf, X).max(axis=0)
    for j, ends in enumerate(KNOWN_RANGES[data.name]):
        low[j], high[j] = ends
    return PublicFeatureRegressor(
        epsilon,
        label_range=data.prior_range,
        feature_range=(low, np.where(high > low, high, low + 1)),
        random_state=run,
    ).fit(X, data.y[train], protects=mask)


def _printed(name: str, epsilon: float, kind: str) -> float:
    """The best of the paper's own methods."""
    figures = histoftree_printed(name, epsilon)
    return min(v for key, v in figures.items() if key.startswith(kind) and "HistOfTree" in key)


def _save(plt: object, figure: object, name: str) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()  # type: ignore[attr-defined]
    figure.savefig(IMAGES / name, dpi=110)  # type: ignore[attr-defined]
    plt.close(figure)  # type: ignore[attr-defined]
    print(f"\n{IMAGES / name}")


SUITES: dict[str, tuple[Callable[[int], bool], int]] = {
    "numbers": (numbers, 1),
    "laws": (laws, 20),
    "holders": (by_holders, 5),
    "levels": (levels, 20),
    "sets": (sets, 60),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--runs", type=int)
    arguments = parser.parse_args()
    suite, default = SUITES[arguments.suite]
    sys.exit(0 if suite(arguments.runs or default) else 1)
