"""A smoothed public tree with a straight line beside it, and holders who follow the line as far as they are told to."""

from __future__ import annotations

from functools import cache

import numpy as np
from number_examples import UNIT

from ldptree.coins import Words
from ldptree.families.correction_plan import Plan, plan_on
from ldptree.families.fit_correction import PublicSide, protocol_of
from ldptree.mechanisms import number_mechanism_for
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import Totals
from ldptree.simulate.redraws import KnownHolders

N = 20_000


def rows(n, seed):
    """Rows and labels: steps, and noise of sd 1/2."""
    rng = np.random.default_rng([seed, 31])
    X = rng.random((n, 2))
    return X, np.floor(3 * X[:, 0]) % 2 + 0.5 * rng.normal(size=n)


@cache
def side() -> PublicSide:
    X, y = rows(400, 0)
    return PublicSide.of("tree", UNIT, UNIT.encode(X), y, n_classes=0)


def plan_of(epsilon=4.0, depth=2, n=N) -> Plan:
    """A question with a slope, whatever a plan would choose: cells of the public tree cut once more."""
    known = side().known
    tree = known.cut(known.grow(depth))
    return plan_on(known, tree, number_mechanism_for("oue", epsilon, tree.n_leaves, 3), n)


def question(plan, epsilon=4.0) -> Protocol:
    return protocol_of(plan, UNIT, side().base, (), target="label", epsilon=epsilon)


def apart(X):
    """g of encoded rows."""
    return side().known.slope.published.apart(side().base.ensemble, UNIT.encode(X))


def holders(plan, slope, shift=0.0, *, n=N, seed=1):
    """Everybody who is asked, labels moved by slope g + shift; and the true mean residual of a cell, NaN below 200 people."""
    X, _ = rows(n, seed)
    rng = np.random.default_rng([seed, 32])
    mean = slope * apart(X) + shift
    y = side().base.answers(UNIT.encode(X))[:, 0] + mean + 0.5 * rng.normal(size=n)
    protocol = question(plan)
    cells = protocol.cells(X)
    found = KnownHolders(protocol, cells, protocol.residuals(X, y).astype(np.float32))
    people = np.bincount(cells, minlength=protocol.n_cells)
    total = np.bincount(cells, mean, protocol.n_cells)
    return found, np.where(people < 200, np.nan, total / np.maximum(people, 1))


def totals_of(found: KnownHolders, seed) -> Totals:
    return found.drawn_again(Words.seeded(np.random.SeedSequence([seed, 33])))
