"""Protocols, rows and totals with a label that is a number, for the tests beside this file."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from ldptree.coins import Words
from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.families.tree_fit import PublicLabels
from ldptree.mechanisms import number_mechanism_for
from ldptree.partition import Partition, grow_partition
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.stochastic_rounding import label_levels
from ldptree.protocol.totals import Totals

ENCODING = Encoding(
    (NumericFeature("miles", 0.0, 16.0, fill=2.0), CategoricalFeature("company", ("Sun", "Blue")))
)
TREE = Partition.of([0, -1, 1, -1, -1], [0.25, 0, 0.5, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1])
UNIT = Encoding(tuple(NumericFeature(f"x{j}", 0.0, 1.0) for j in range(2)))


def words(*key):
    return Words.seeded(np.random.SeedSequence([41, *key]))


def protocol_of(choice="oue", epsilon=1.0, *, ends=(-10.0, 70.0), n_levels=5, rho=0.5, **changes):
    mechanism = number_mechanism_for(choice, epsilon, TREE.n_leaves, n_levels, rho=rho)
    fields = {
        "encoding": ENCODING,
        "partition": TREE,
        "target": "fare",
        "classes": label_levels(*ends, mechanism.n_classes),
        "positive": None,
        "mechanism": mechanism,
        "epsilon": epsilon,
        "numeric": True,
        "campaign": "vectors",
        "simulation": mechanism.is_simulation_device,
    }
    return Protocol(**(fields | changes))


def people(n, seed=0):
    """Rows in the unit square and labels: a step, a slope and noise of sd 1/2."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, 2 * (X[:, 0] > 0.5) + X[:, 1] + rng.normal(0, 0.5, n)


@cache
def grown_on(n_public, seed, depth, ends):
    """The tree of public people, and what they say."""
    X, y = people(n_public, seed)
    regrow = partial(
        grow_partition,
        kind="cart",
        depth=depth,
        n_classes=2,
        criterion="variance",
        min_samples_leaf=5,
    )
    tree = regrow(UNIT.encode(X), y)
    return tree, PublicLabels.of(tree, UNIT.encode(X), y, ends, regrow)


class Asked:
    """A tree of public people, a question, the reports of private people and their totals."""

    def __init__(
        self,
        choice="auto",
        epsilon=2.0,
        *,
        n=4000,
        n_public=200,
        seed=0,
        shift=0.0,
        depth=3,
        rho=0.5,
        n_levels=3,
    ):
        self.X, self.y = people(n, seed + 1000)
        self.y = self.y + shift
        self.ends = (-1.5, 4.5)
        tree, self.public = grown_on(n_public, seed, depth, self.ends)
        mechanism = number_mechanism_for(choice, epsilon, tree.n_leaves, n_levels, rho=rho)
        self.protocol = Protocol(
            encoding=UNIT,
            partition=tree,
            target="label",
            classes=label_levels(*self.ends, mechanism.n_classes),
            positive=None,
            mechanism=mechanism,
            epsilon=epsilon,
            numeric=True,
            simulation=mechanism.is_simulation_device,
        )
        source = words(seed)
        self.reports = mechanism.randomize(self.protocol.values(self.X, self.y, words=source), source)
        self.totals = Totals.from_raw(
            mechanism.aggregate(self.reports), mechanism=mechanism, n_private=n, depth=tree.max_depth
        )

    @property
    def cell_means(self):
        """Of the private people, float [L]."""
        cells = self.protocol.partition.apply(UNIT.encode(self.X))
        labels = np.clip(self.y, *self.ends)
        return np.bincount(cells, weights=labels) / np.bincount(cells)
