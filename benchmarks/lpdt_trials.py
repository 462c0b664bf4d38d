"""One trial of LPDT on rows of three roles: the tree, the reports, and the error of whatever is made of them.

What lives here: `planted`, the tree of the public rows; `asked`, which draws the exact totals of all reports (the distribution of
randomising and aggregating them one by one, as the tests show); and `Asked`, which fits and scores many models on the same
totals, so that their differences have small errors. The parts are those of `LPDTRegressor`, in its order. What does not: data
sets (`regression_sets`), the paper's grid (`lpdt_paper`), suites (`lpdt`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from regression_sets import RegressionSet, splits

from ldptree.coins import Words
from ldptree.encoding import Encoding
from ldptree.estimators.holders import encoding_of
from ldptree.families.fit_numbers import PublicLabels, fit_regression
from ldptree.families.tree_public import public_labels
from ldptree.inference.depth import NumberDepths, default_min_samples_leaf, number_depths, number_levels
from ldptree.mechanisms import adds_noise_to_every_cell, number_mechanism_for
from ldptree.models.tree import NumberTree
from ldptree.partition import Partition, grow_partition
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.stochastic_rounding import label_levels
from ldptree.protocol.totals import Totals

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Raw rows [n, d] and labels [n] by role.

    Attributes:
        label_range: that private labels are moved into; of the public labels where it is None.
        feature_range: of all features; of the public rows where it is None.
    """

    public_X: Floats  # noqa: N815
    public_y: Floats
    X: Floats
    y: Floats
    test_X: Floats  # noqa: N815
    test_y: Floats
    label_range: tuple[float, float] | None = None
    feature_range: tuple[float, float] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The label range in use."""
        return self.label_range or (float(self.public_y.min()), float(self.public_y.max()))


def rows_of(dataset: RegressionSet, repetition: int) -> Rows:
    """1 : 7 : 2 of a set; nothing is known but the public rows."""
    s = splits(dataset, repetition)
    (public_X, public_y), (X, y), (test_X, test_y) = (
        (dataset.X[rows], dataset.y[rows]) for rows in (s.public, s.private, s.test)
    )
    return Rows(public_X=public_X, public_y=public_y, X=X, y=y, test_X=test_X, test_y=test_y)


def coins(repetition: int, *more: int) -> tuple[Words, np.random.Generator]:
    """Of rounding, and the holders', of a repetition."""
    seeds = np.random.SeedSequence([repetition, 30_000, *more]).spawn(2)
    return Words.seeded(seeds[0]), np.random.default_rng(seeds[1])


@dataclass(frozen=True, eq=False)
class Planted:
    """A tree that public rows gave: cells of private and test rows, what public rows say."""

    rows: Rows
    encoding: Encoding
    partition: Partition
    grow: Callable[..., Partition]
    depths: NumberDepths

    @cached_property
    def test_X(self) -> NDArray[np.float32]:  # noqa: N802
        """Encoded test rows."""
        return self.encoding.encode(self.rows.test_X)

    @cached_property
    def public(self) -> PublicLabels:
        """With the cross-validation that the default needs."""
        X = self.encoding.encode(self.rows.public_X)
        return public_labels(
            self.partition, X, self.rows.public_y, self.rows.ends, grow=self.grow, depths=self.depths
        )

    @cached_property
    def bare(self) -> PublicLabels:
        """Without it: enough where public rows only give the tree (lam = 0, nothing pruned)."""
        y, L = self.rows.public_y, self.partition.n_leaves
        cells = self.partition.apply(self.encoding.encode(self.rows.public_X))
        return PublicLabels(
            count=np.bincount(cells, minlength=L).astype(np.float64),
            total=np.bincount(cells, weights=y, minlength=L).astype(np.float64),
            mean=float(y.mean()) if y.size else 0.0,
            sd=float(y.std()) if y.size else 1.0,
            residual_variance=1.0,
        )


def automatic_depths_of(rows: Rows, epsilon: float) -> NumberDepths:
    """Those of `LPDTRegressor`."""
    low, high = rows.ends
    spread = float(rows.public_y.std()) / (high - low)
    return number_depths(
        rows.X.shape[1],
        len(rows.y),
        epsilon,
        n_public=len(rows.public_y),
        min_samples_leaf=default_min_samples_leaf("numbers", len(rows.public_y)),
        label_sd=min(spread or 0.5, 0.5),
    )


def planted(
    rows: Rows,
    depth: int | NumberDepths,
    *,
    partition: str = "cart",
    min_samples_leaf: int | Literal["auto"] = "auto",
    mechanism: str = "auto",
) -> Planted:
    """Grow the tree on public rows; a number is the depth of all of it."""
    depths = depth if isinstance(depth, NumberDepths) else NumberDepths(asked=depth, whole=depth)
    encoding = encoding_of(rows.public_X, None, rows.feature_range)
    regrow = partial(
        grow_partition,
        kind=partition,
        n_classes=2,
        criterion="variance",
        stop_empty=adds_noise_to_every_cell(mechanism),
        min_samples_leaf=default_min_samples_leaf("numbers", len(rows.public_y), wanted=min_samples_leaf),
    )
    tree = regrow(encoding.encode(rows.public_X), rows.public_y, depth=depths.asked)
    return Planted(rows, encoding, tree, regrow, depths)


@dataclass(frozen=True, eq=False)
class Asked:
    """What the curator has after one round."""

    tree: Planted
    protocol: Protocol
    totals: Totals

    def model(self, public: PublicLabels | None = None, **settings: Any) -> NumberTree:
        """`fit_regression` on these totals."""
        return fit_regression(self.protocol, self.totals, public or self.tree.public, **settings)

    def mse(self, **settings: Any) -> float:
        """Of `model` with these settings, on the test rows."""
        return self.score(self.model(**settings))

    def paper_mse(self) -> float:
        """Of LPDT eq. 5, moved into the label's range."""
        return self.score(self.model(self.tree.bare, lam=0.0, prune="none", rule="ratio"))

    def score(self, model: NumberTree) -> float:
        """Mean squared error on the test rows."""
        cells = model.partition.apply(self.tree.test_X)
        return float(
            np.mean((model.estimate[:, 0][model.partition.leaves[cells]] - self.tree.rows.test_y) ** 2)
        )


def asked(
    tree: Planted,
    epsilon: float,
    rounding: Words,
    rng: np.random.Generator,
    *,
    mechanism: str = "auto",
    rho: float = 0.5,
) -> Asked:
    """Collect one report of each private row.

    Args:
        tree: of the public rows.
        epsilon: of this report.
        rounding: coins that labels are rounded with.
        rng: the holders' coins.
        mechanism: one of `CHOICES`.
        rho: share of epsilon that the cell gets where it is sent apart.
    """
    rows, n_cells = tree.rows, tree.partition.n_leaves
    n_levels = number_levels(mechanism, epsilon, n_cells, rows.public_y, rows.ends)
    reported = number_mechanism_for(mechanism, epsilon, n_cells, n_levels, rho=rho)
    protocol = Protocol(
        encoding=tree.encoding,
        partition=tree.partition,
        target="label",
        classes=label_levels(*rows.ends, reported.n_classes),
        positive=None,
        mechanism=reported,
        epsilon=epsilon,
        simulation=reported.is_simulation_device,
        numeric=True,
    )
    values = protocol.values(rows.X, rows.y, words=rounding)
    counts = np.bincount(values, minlength=reported.n_values)
    totals = Totals.from_raw(
        reported.sample_totals(counts, rng),
        mechanism=reported,
        n_private=len(rows.y),
        depth=tree.partition.max_depth,
    )
    return Asked(tree, protocol, totals)
