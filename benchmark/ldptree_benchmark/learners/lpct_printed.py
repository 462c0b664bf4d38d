"""LPCT as its paper prints it, to compare with. It has Laplace noise of 4 / epsilon in every cell of every report (eq.
5 and 6), the weighted ratio (eq. 8), no pruning or LPCT-prune with bounds tighter than (14), and switches for each thing that the
authors' code does otherwise (github.com/Karlmyh/LPCT). The product does nothing of what a switch does.

Totals are drawn from their exact law: n reports add the difference of two gamma variables to each cell.
"""

from __future__ import annotations

import difflib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import ConfigError
from ldptree.families.settings import PaperOptions
from ldptree.inference.algorithm_2 import prune
from ldptree.inference.depth import paper_depth
from ldptree.inference.weighting import PrivateSums, PublicSums, gather_evidence
from ldptree.partition import PARTITIONS, grow_partition
from ldptree.partition.tree import Partition
from ldptree_benchmark.learners.answers import Answers, Trial, feature_range
from ldptree_benchmark.learners.code_partition import grow_as_code
from ldptree_benchmark.rows import PRIVATE, PUBLIC, TEST, LabelledRows

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
SWITCHES = {
    "code-splits": "cells are cut as the code does, by entropy and at ten quantiles, not as the text says",
    "fresh-reports": "holders report anew for each candidate: with 1,800 candidates they spend 1,800 epsilon",
    "outside-is-0": "held-back rows outside the range of the public rows are answered class 0",
    "true-counts": "the model is made of the counts without any noise: nobody is protected",
}
"""Departures from the text."""
KEPT = 200
"""Partitions that are kept. Those of one data set are the same for every epsilon, and often for every repetition."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a suite may set; `feature_range` is that of the public rows where it is None, or as in `answers`.
    `min_samples_leaf` is a parameter of the code alone: its scripts tune it on test rows, the text does not have it.
    With a `bound` it is LPCT-prune without its second query, every r of (14) times so much: section 6.1 has "constants that yield
    a tighter bound", and does not say which. A depth of 0 is then the p0 of Algorithm 2, and lam is chosen by it.
    """

    partition: str = "max-edge"
    depth: int = 4
    lam: float = 1.0
    bound: float | None = None
    min_samples_leaf: int = 1
    feature_range: Sequence[float] | str | None = None
    switches: Sequence[str] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """Checked. Raises ConfigError."""
        made = cls(**_known(given, [field.name for field in fields(cls)], "setting"))
        _known(dict.fromkeys(made.switches), list(SWITCHES), "switch")
        if made.partition not in PARTITIONS:
            raise ConfigError(f"lpct_printed: partition {made.partition}: one of {', '.join(PARTITIONS)}")
        if made.bound is not None and (made.bound <= 0 or made.switches):
            raise ConfigError("lpct_printed: bound: must be above 0, and leaves no switch to turn")
        if not (made.depth >= 0 and made.min_samples_leaf >= 1 and made.lam >= 0):
            raise ConfigError(
                f"lpct_printed: depth = {made.depth}, lam = {made.lam:g}, min_samples_leaf = {made.min_samples_leaf}: must be "
                "at least 0, 0 and 1"
            )
        return made


def reads_with_switches(
    settings: Mapping[str, Any],
) -> Literal["private rows", "reports beyond epsilon"] | None:
    """What it learns from where a switch takes its privacy away."""
    switches = settings.get("switches", ())
    if "true-counts" in switches:
        return "private rows"
    return "reports beyond epsilon" if "fresh-reports" in switches else None


def _known(given: Mapping[str, Any], names: list[str], what: str) -> Mapping[str, Any]:
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names)}"
            raise ConfigError(f"lpct_printed: {name} is no {what} ({hint})")
    return given


def answer_printed(trial: Trial) -> Answers:
    """Classes of the held-back rows."""
    (answers,) = answer_printed_grid(trial, [{}])
    return answers


def answer_printed_grid(trial: Trial, settings: Sequence[Mapping[str, Any]]) -> Iterator[Answers]:
    """Classes of the held-back rows, for each of these settings; rows are counted once a tree and depth."""
    if trial.rows.n_classes != 2:
        raise ConfigError(f"lpct_printed learns two classes, and this set has {trial.rows.n_classes}")
    all_settings = [Settings.of({**trial.settings, **setting}) for setting in settings]
    deepest = max(setting.depth for setting in all_settings)
    grown: dict[tuple[Any, ...], tuple[NDArray[np.float32], Partition]] = {}
    counted: dict[tuple[Any, ...], Counted] = {}
    for number, setting in enumerate(all_settings):
        if setting.bound is not None:
            yield _prune(trial, setting, setting.bound)
            continue
        tree = (
            setting.partition,
            setting.min_samples_leaf,
            str(setting.feature_range),
            "code-splits" in setting.switches,
        )
        if (*tree, setting.depth) not in counted:
            if tree not in grown:
                grown[tree] = _grow(trial.rows, setting, deepest, trial.seed)
            X, partition = grown[tree]
            # nodes without any row stay empty cells, which nobody asks about
            cells = np.unique(_cut_back(partition, X, setting.depth), return_inverse=True)[1]
            counted[(*tree, setting.depth)] = Counted.of(trial.rows, X, cells, int(cells.max()) + 1)
        report = number if "fresh-reports" in setting.switches else setting.depth
        yield _decide(counted[(*tree, setting.depth)], setting, trial.epsilon or 0.0, [trial.seed, report])


@dataclass(frozen=True, eq=False)
class Counted:
    """Rows and ones of every cell, int64 [cells], and each held-back row's cell and whether it is within range."""

    public: Counts
    public_ones: Counts
    private: Counts
    private_ones: Counts
    n_private: int
    test_cells: Counts
    is_within: NDArray[np.bool_]

    @classmethod
    def of(
        cls, rows: LabelledRows, X: NDArray[np.float32], cells: NDArray[np.integer], n_cells: int
    ) -> Counted:
        """By the cell of every row."""
        test, is_one = rows.part == TEST, rows.y == 1

        def count(which: NDArray[np.bool_]) -> Counts:
            return np.bincount(cells[which], minlength=n_cells).astype(np.int64)

        public, private = rows.part == PUBLIC, rows.part == PRIVATE
        return cls(
            public=count(public), public_ones=count(public & is_one),
            private=count(private), private_ones=count(private & is_one), n_private=int(private.sum()),
            test_cells=cells[test], is_within=((X[test] >= 0) & (X[test] <= 1)).all(axis=1),
        )  # fmt: skip


def _cut_back(partition: Partition, X: NDArray[np.float32], depth: int) -> NDArray[np.integer]:
    """The node of every row in the partition cut back to a depth."""
    nodes = partition.leaves[partition.apply(X)]
    for _ in range(max(partition.max_depth - depth, 0)):
        nodes = np.where(partition.depth[nodes] > depth, partition.parent[nodes], nodes)
    return nodes


def _draw_noise(counted: Counted, epsilon: float, coins: list[int]) -> Floats:
    """Of the ones and the rows of every cell, float64 [2, cells]."""
    rng = np.random.default_rng(coins)
    gammas = rng.gamma(counted.n_private, 4.0 / epsilon, (2, 2, len(counted.public)))
    return np.asarray(gammas[0] - gammas[1])


def _prune(trial: Trial, settings: Settings, bound: float) -> Answers:
    rows, epsilon = trial.rows, trial.epsilon or 0.0
    n_public, n_private = (int((rows.part == part).sum()) for part in (PUBLIC, PRIVATE))
    depth = settings.depth or paper_depth(rows.X.shape[1], n_private, n_public, epsilon)
    X, partition = _grow(rows, settings, depth, trial.seed)
    counted = Counted.of(rows, X, partition.apply(X), partition.n_leaves)
    noise = _draw_noise(counted, epsilon, [trial.seed, depth])
    ones, people = counted.private_ones + noise[0], counted.private + noise[1]
    variance = np.full(partition.n_leaves, 32.0 * n_private / epsilon**2)
    # Algorithm 2 compares margins over r and nothing else: margins over the bound are bounds times it.
    evidence = gather_evidence(
        partition,
        PrivateSums((ones - people / 2) / bound, people, variance, variance),
        PublicSums((counted.public_ones - counted.public / 2) / bound, counted.public.astype(np.float64)),
        n_private=n_private,
        label_variance=0.25,
        empty_cell_estimate=-0.5,
    )
    options = PaperOptions(termination=False)
    result = prune(evidence, epsilon=epsilon, n_public=n_public, termination_depth=0, options=options)
    is_one = result.pruned.theta[partition.leaves] > 0
    return is_one.astype(np.int64)[counted.test_cells]


def _decide(counted: Counted, settings: Settings, epsilon: float, coins: list[int]) -> Answers:
    n_cells = len(counted.public)
    noise = np.zeros((2, n_cells))
    if "true-counts" not in settings.switches:
        noise = _draw_noise(counted, epsilon, coins)
    of_private, of_public = (0.0, 1.0) if np.isinf(settings.lam) else (1.0, settings.lam)
    ones = of_private * (counted.private_ones + noise[0]) + of_public * counted.public_ones
    rows = of_private * (counted.private + noise[1]) + of_public * counted.public
    share = np.divide(ones, rows, out=np.zeros(n_cells), where=rows != 0)
    answers = (share > 0.5).astype(np.int64)[counted.test_cells]
    return np.where(counted.is_within, answers, 0) if "outside-is-0" in settings.switches else answers


def _grow(
    rows: LabelledRows, settings: Settings, depth: int, seed: int
) -> tuple[NDArray[np.float32], Partition]:
    """All rows scaled by the range, and the partition of the public ones."""
    is_public = rows.part == PUBLIC
    if settings.feature_range is None:
        low, high = rows.X[is_public].min(axis=0), rows.X[is_public].max(axis=0)
    else:
        ends = map(np.asarray, feature_range(rows, settings.feature_range))
        low, high = np.broadcast_arrays(*ends, rows.X[0])[:2]
    X = ((rows.X - low) / np.where(high > low, high - low, 1.0)).astype(np.float32)
    public, labels = X[is_public], rows.y[is_public].astype(np.int64)
    kind, leaf = settings.partition, settings.min_samples_leaf
    is_code = "code-splits" in settings.switches and kind != "random-edge"

    def grow() -> Partition:
        if is_code:
            return grow_as_code(
                public.astype(np.float64), labels, kind=kind, depth=depth, min_samples_leaf=leaf
            )
        return grow_partition(
            public, labels, kind=kind, depth=depth, n_classes=2, min_samples_leaf=leaf, stop_empty=True, seed=seed
        )  # fmt: skip

    drawn = seed if kind == "random-edge" else 0
    key = (public.tobytes(), labels.tobytes(), kind, leaf, depth, is_code, drawn)
    return X, _PARTITIONS.take(hash(key), grow)


class _Kept:
    """Partitions by the digest of what they are made of."""

    def __init__(self) -> None:
        self.lock, self.partitions = Lock(), OrderedDict[int, Partition]()

    def take(self, key: int, grow: Callable[[], Partition]) -> Partition:
        with self.lock:  # of cells side by side one grows
            if key not in self.partitions:
                self.partitions[key] = grow()
                while len(self.partitions) > KEPT:
                    self.partitions.popitem(last=False)
            return self.partitions[key]


_PARTITIONS = _Kept()
