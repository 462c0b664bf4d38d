"""From a model to the facts of its page: every cell and the tree, in raw units and plain words. How they are drawn is in
`render`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.models.tree import ClassTree
from ldptree.protocol.totals import Totals
from tasks.page.facts import CellFacts, DiscrepancyFacts, NodeFacts
from tasks.page.places import Names, class_name, path_words, shares_below


def cells_of(
    model: ClassTree, totals: Totals, public: NDArray[np.int64], names: Names
) -> tuple[CellFacts, ...]:
    """Every cell of the model; `public` int [cells, classes] are the public rows in it."""
    shares = private_shares(model)
    n_public = max(int(public.sum()), 1)
    evidence = model.evidence
    leaves = model.partition.leaves
    masses = _masses(model, totals)
    alone = [_reports_alone(model, totals, cell, float(masses[cell])) for cell in range(leaves.size)]
    return tuple(
        _cell(model, int(node), alone[cell], shares, public[cell], n_public, evidence, names)
        for cell, node in enumerate(leaves)
    )


def _reports_alone(model: ClassTree, totals: Totals, cell: int, mass: float) -> tuple[float, float] | None:
    """The margin of a cell of `mass` holders by its reports alone, and its noise; None where the noise is wider than a share's
    range.
    """
    node = int(model.partition.leaves[cell])
    if model.noise_sd[node].max() >= 1.0:
        return None
    shares, decided = model.private_total[node] / mass, int(model.decision[node])
    margin = _lead(shares, model, decided)
    if model.n_classes == 2:
        return margin, float(model.noise_sd[node, 0])
    of_lead = np.zeros(model.n_classes)
    of_lead[[decided, _next_to(shares, decided)]] = 0.5, -0.5
    return margin, float(np.sqrt(totals.cell_variance(of_lead)[cell])) / mass


def _masses(model: ClassTree, totals: Totals) -> NDArray[np.float64]:
    """The holders that the model gave each cell, [cells]: the noise of one class's margin in holders, over the same noise
    as a share.
    """
    of_class = 1 if model.n_classes == 2 else 0
    weights = np.eye(model.n_classes)[of_class] - 1.0 / model.n_classes  # as in ldptree.families.fit_classes
    noise: NDArray[np.float64] = np.sqrt(totals.cell_variance(weights))
    masses: NDArray[np.float64] = noise / model.noise_sd[model.partition.leaves, 0]
    return masses


def tree_of(model: ClassTree, names: Names) -> NodeFacts:
    """The root of the model's tree. What is said of an inner node is the average over its cells, with no error of its
    own.
    """
    tree, shares = model.partition, private_shares(model)
    n_cells = np.bincount(tree.paths()[1], minlength=tree.n_nodes)
    average = _averages(model, shares)
    made: dict[int, NodeFacts] = {}
    for node in np.argsort(-tree.depth, kind="stable").tolist():
        is_leaf = tree.feature[node] < 0
        children = () if is_leaf else (int(tree.left[node]), int(tree.right[node]))
        decided = int(model.decision[node]) if is_leaf else int(average[node].argmax())
        made[node] = NodeFacts(
            condition="" if node == 0 else ", ".join(path_words(model, node, names, only_last=True)),
            cells=int(n_cells[node]),
            share_private=float(shares[node]),
            margin=_lead(average[node], model, decided),
            margin_sd=_finite(_margin_sd(model, node)) if is_leaf else None,
            decision=class_name(model.target, model.classes[decided], names),
            probability=float(average[node, decided]),
            children=tuple(made[child] for child in children),
        )
    return made[0]


def _averages(model: ClassTree, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Class shares of every node: the average over its cells, weighted by their share of private rows, [nodes, C]."""
    tree = model.partition
    cells, nodes = tree.paths()
    # A cell that the noise left with no share still counts a little: its parent needs an average.
    weights = np.maximum(shares[tree.leaves], 1e-9)
    weighted = weights[:, None] * model.probability[tree.leaves]
    total = np.bincount(nodes, weights=weights[cells], minlength=tree.n_nodes)
    summed = [np.bincount(nodes, weights=column[cells], minlength=tree.n_nodes) for column in weighted.T]
    return np.stack(summed, axis=1) / total[:, None]


def discrepancy_of(model: ClassTree) -> DiscrepancyFacts:
    """How far private people were found to differ from the public rows."""
    return DiscrepancyFacts(
        is_found=bool((model.discrepancy_sd > 0).any()),
        varies=bool(np.ptp(model.discrepancy[model.partition.leaves]) > 1e-9),
        mean=float(model.mean_discrepancy[0]),
        sd=float(model.mean_discrepancy_sd[0]),
    )


def private_shares(model: ClassTree) -> NDArray[np.float64]:
    """Estimated share of private rows below each node, [nodes], 1 at the root."""
    return shares_below(model.partition, model.private_total[model.partition.leaves].sum(axis=1))


def _cell(
    model: ClassTree,
    node: int,
    alone: tuple[float, float] | None,
    shares: NDArray[np.float64],
    public: NDArray[np.int64],
    n_public: int,
    evidence: list[str],
    names: Names,
) -> CellFacts:
    n_here = int(public.sum())
    decided = int(model.decision[node])
    raw_margin, raw_sd = alone or (None, None)
    rest = evidence[node] if model.decided_at[node] == node else "neighbours"
    return CellFacts(
        path=path_words(model, node, names),
        share_private=float(shares[node]),
        share_public=n_here / n_public,
        raw_margin=raw_margin,
        raw_sd=raw_sd,
        public_margin=_lead(public / n_here, model, decided) if n_here else None,
        public_sd=0.5 / float(np.sqrt(n_here)) if n_here else None,
        margin=_lead(model.probability[node], model, decided),
        margin_sd=_finite(_margin_sd(model, node)),
        discrepancy=float(model.discrepancy[node, 0])
        if model.n_classes == 2 and model.lam == "learned"
        else None,
        discrepancy_sd=float(model.discrepancy_sd[node, 0])
        if model.n_classes == 2 and model.lam == "learned"
        else None,
        private_weight=float(model.private_share[node]),
        evidence="neighbours" if rest == "none" else rest,  # type: ignore[arg-type]
        decision=class_name(model.target, model.classes[decided], names),
        probability=float(model.probability[node, decided]),
    )


def _margin_sd(model: ClassTree, node: int) -> float:
    sd, decided = model.estimate_sd[node], int(model.decision[node])
    if model.n_classes == 2:
        return float(sd[0])
    return float(sd[decided] + sd[_next_to(model.probability[node], decided)]) / 2


def _lead(shares: NDArray[Any], model: ClassTree, decided: int) -> float:
    """Two classes: the positive one's share less 1/2; more: half the lead of the decided class over the next."""
    if model.n_classes == 2:
        return float(shares[1] - 0.5 * shares.sum())
    return float(shares[decided] - shares[_next_to(shares, decided)]) / 2


def _next_to(shares: NDArray[Any], decided: int) -> int:
    """The class with the largest share but for the decided one."""
    return int(np.argmax(np.where(np.arange(shares.size) == decided, -np.inf, shares)))


def _finite(sd: float) -> float:
    """A margin can be no wider than its range: where nothing is known, half of it."""
    return sd if np.isfinite(sd) else 0.5


__all__ = ["cells_of", "class_name", "discrepancy_of", "path_words", "private_shares", "tree_of"]
