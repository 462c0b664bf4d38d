"""One trial of LPCT on a sample: the tree, the reports, and the accuracy of whatever is made of them.

What lives here: `asked`, which grows the tree and draws the exact totals of all reports (the distribution of randomising and
aggregating them one by one, as the tests show), and `Asked`, which fits and scores many models on the same totals, so that
their differences have small errors; `paper_grid`, the paper's own choice. What does not: samples (`lpct_samples`), suites
(`lpct`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from lpct_samples import Sample, synthetic_pair
from numpy.typing import NDArray

from ldptree.encoding import Encoding, NumericFeature
from ldptree.families.fit_classes import fit_model, needs_second_query
from ldptree.inference.algorithm_2 import PaperOptions
from ldptree.inference.depth import automatic_depth, default_min_samples_leaf, termination_depth
from ldptree.inference.public_trust import class_variance_inflation
from ldptree.mechanisms import mechanism_for
from ldptree.models.tree import ClassTree
from ldptree.partition import PARTITIONS
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import Totals

PAPER_LAM = (0.1, 0.5, 1, 2, 5, 10, 50, 100, 200, 300, 400, 500, 750, 1000, 1250, 1500, 2000)
PAPER_DEPTHS = range(1, 9)


def coins(run: int, *more: int) -> np.random.Generator:
    """The holders' coins of a run."""
    return np.random.default_rng([run, 20_000, *more])


@dataclass(frozen=True, eq=False)
class Asked:
    """What the curator has after one round, and the test rows counted by the node that decides them.

    Attributes:
        public: int [cells, classes] public rows.
        test: int [nodes, classes] test rows.
        inflation: how much less sure public cells are than their rows say.
    """

    protocol: Protocol
    totals: Totals
    public: NDArray[np.int64]
    test: NDArray[np.int64]
    inflation: float = 1.0

    def model(self, **settings: Any) -> ClassTree:
        """`fit_model` on these totals."""
        return fit_model(self.protocol, self.totals, self.public, inflation=self.inflation, **settings)

    def score(self, model: ClassTree) -> float:
        """Accuracy on the test rows."""
        return float(self.test[np.arange(len(self.test)), model.decision].sum() / self.test.sum())

    def accuracy(self, **settings: Any) -> float:
        """Of `model` with these settings."""
        return self.score(self.model(**settings))

    @cached_property
    def _ratio_parts(self) -> tuple[NDArray[np.float64], ...]:
        return self.totals.margins, self.totals.cell_counts, self.public[:, 1], self.public.sum(axis=1)

    def printed(self, lam: NDArray[np.float64]) -> NDArray[np.float64]:
        """Accuracy of LPCT eq. 8 as printed, without pruning, for each lam at once, float64 [lams]."""
        margin, count, ones, rows = (part[:, None] for part in self._ratio_parts)
        finite = np.where(np.isinf(lam), 1.0, lam)
        private = np.where(np.isinf(lam), 0.0, 1.0)
        below = private * count + finite * rows
        above = private * (margin + count / 2) + finite * ones
        eta = np.divide(above, below, out=np.zeros_like(above), where=below != 0)
        test = self.test[self.protocol.partition.leaves]
        right = np.where(eta > 0.5, test[:, 1:], test[:, :1]).sum(axis=0)
        return np.asarray(right / self.test.sum())


def encoding_of(X: NDArray[np.float64], known: tuple[float, float] | None) -> Encoding:
    """Columns scaled by the range of X, or a known one."""
    low, high = (X.min(axis=0), X.max(axis=0)) if known is None else np.broadcast_arrays(*known, X[0])[:2]
    return Encoding(
        tuple(
            NumericFeature(f"x{j}", float(a), float(b))
            for j, (a, b) in enumerate(zip(low, high, strict=True))
        )
    )


def asked(
    sample: Sample,
    epsilon: float,
    rng: np.random.Generator,
    *,
    depth: int | str = "auto",
    partition: str = "cart",
    mechanism: str = "auto",
    known: tuple[float, float] | None = None,
    outside: str = "clip",
    round_number: int = 1,
    inflation: float | None = None,
    **growth: Any,
) -> Asked:
    """Grow the tree on public rows and collect one report of each private row.

    Args:
        sample: the rows.
        epsilon: of this report.
        rng: the holders' coins.
        depth: "auto", or the deepest a cell may lie.
        partition: one of `PARTITIONS`.
        mechanism: one of `CHOICES`.
        known: the range of all features; None takes the public rows'.
        outside: "clip" or "drop".
        round_number: 1, or 2.
        inflation: how much less sure public cells are than their rows say; None measures it.
        growth: further settings of the partition; a CART has `default_min_samples_leaf` in a cell where nothing else is said.
    """
    encoding = encoding_of(sample.public_X, known)
    C = sample.n_classes
    if partition == "cart":
        growth = {"min_samples_leaf": default_min_samples_leaf("classes", len(sample.public_y))} | growth
    if depth == "auto":
        depth = automatic_depth(encoding.n_encoded, len(sample.y), epsilon, C, mechanism)
    public_X, grow = (
        encoding.encode(sample.public_X),
        partial(PARTITIONS[partition], depth=int(depth), n_classes=C, **growth),
    )
    tree = grow(public_X, sample.public_y)
    reported = mechanism_for(mechanism, epsilon, tree.n_leaves, C)
    protocol = Protocol(
        encoding=encoding,
        partition=tree,
        target="label",
        classes=tuple(range(C)),
        positive=1 if C == 2 else None,
        mechanism=reported,
        epsilon=epsilon,
        outside=outside,
        rounds=(round_number,),
        simulation=reported.is_simulation_device,
    )
    counts = np.bincount(protocol.values(sample.X, sample.y), minlength=protocol.k)
    totals = Totals.from_raw(
        reported.sample_totals(counts, rng), mechanism=reported, n_private=len(sample.y), depth=tree.max_depth
    )
    # public rows span the range, so none is outside unless the range was given
    public = np.bincount(protocol.values(sample.public_X, sample.public_y), minlength=protocol.k)[:-1]
    cells = protocol.raw_tree.apply(sample.test_X)
    test = np.zeros((tree.n_nodes, C), dtype=np.int64)
    np.add.at(test, (tree.leaves[cells], sample.test_y), 1)
    if inflation is None:
        inflation = class_variance_inflation(partition, public_X, sample.public_y, C, grow)
    return Asked(protocol, totals, public.reshape(tree.n_leaves, C), test, inflation)


def algorithm_2(
    sample: Sample,
    epsilon: float,
    rng: np.random.Generator,
    options: PaperOptions,
    *,
    depth: int,
    **settings: Any,
) -> float:
    """Accuracy of LPCT-prune (Algorithm 2), its second query included where it terminates."""
    growth = settings | {"stop_empty": options.stop_empty}
    first = asked(sample, epsilon * options.share_of_first_query, rng, depth=depth, **growth)
    if not needs_second_query(first.protocol, first.totals, first.public, options):
        return first.accuracy(prune=options)
    d = first.protocol.encoding.n_encoded
    shallow = termination_depth(d, len(sample.y), epsilon)
    second = asked(sample, epsilon / 2, rng, depth=shallow, round_number=2, **growth)
    return second.accuracy(lam=0.0, prune="none", rule="ratio")


def paper_grid(
    gamma: float,
    epsilons: Sequence[float],
    runs: int,
    lams: Sequence[float],
    *,
    partition: str = "max-edge",
    n_public: int | None = None,
    growth: Mapping[str, Any] | None = None,
) -> dict[float, tuple[float, int, float]]:
    """The paper's own choice: the best mean TEST accuracy over depths and lams, with the depth and the lam it took.

    Laplace noise, the rule as printed, points in [0, 1]^2. A cell is not split where a part would hold no public row, unless
    `growth` says otherwise (the text stops one split later, at a cell without public rows).
    """
    growth = {"min_samples_leaf": 1} if growth is None else growth
    samples = [synthetic_pair(gamma, run, n_public=n_public) for run in range(runs)]
    best: dict[float, tuple[float, int, float]] = {}
    for depth in PAPER_DEPTHS:
        for epsilon in epsilons:
            rates = np.mean(
                [
                    asked(
                        sample,
                        epsilon,
                        coins(run, depth),
                        depth=depth,
                        partition=partition,
                        mechanism="laplace",
                        known=(0.0, 1.0),
                        **growth,
                        **({"seed": run} if partition == "random-edge" else {}),
                    ).printed(np.array(lams, dtype=np.float64))
                    for run, sample in enumerate(samples)
                ],
                axis=0,
            )
            at = int(rates.argmax())
            best[epsilon] = max(best.get(epsilon, (0.0, 0, 0.0)), (float(rates[at]), depth, float(lams[at])))
    return best
