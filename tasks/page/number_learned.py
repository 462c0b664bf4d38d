"""From a regression model to the facts of its page: every cell, the tree and the curves, in the label's own unit.

How they are drawn is in `regression`; the arithmetic of the curves is in `ldptree.models.effects`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ldptree.families.finer import asked_nodes
from ldptree.models.effects import Piece, tree_dependence, tree_importance
from ldptree.models.tree import NumberTree
from ldptree.oracles import PoisoningBound
from ldptree.partition import Partition
from ldptree.protocol.stochastic_rounding import label_levels
from ldptree.protocol.totals import Totals
from tasks.page.basic_facts import DiscrepancyFacts, Evidence
from tasks.page.number_facts import CurveFacts, NumberCell, NumberNode, PieceFacts
from tasks.page.places import Names, class_name, path_words, shares_below

Floats = NDArray[np.float64]

CURVES = 2


def cells_of(model: NumberTree, asked: Partition, totals: Totals, names: Names) -> tuple[NumberCell, ...]:
    """Every cell of the model; `totals` are those that it was fitted on, of the cells of the tree `asked`."""
    leaves, shares = model.partition.leaves, private_shares(model)
    reports = _reports_alone(model, asked, totals)
    evidence = _evidence(model)
    was_compared = model.lam == "learned" and model.n_public > 0
    label_variance = model.label.sd**2
    made = []
    for cell, node in enumerate(leaves.tolist()):
        n_public = int(model.public_total[:, 0][node])
        noise = float(model.noise_sd[:, 0][node])
        # Noise wider than the range: the reports of the cell alone say nothing at all.
        is_heard = noise < model.label.range[1] - model.label.range[0]
        made.append(
            NumberCell(
                path=path_words(model, node, names),
                share_private=float(shares[node]),
                share_public=n_public / max(model.n_public, 1),
                evidence=evidence[node],
                private_weight=float(model.private_share[node]),
                people=float(shares[node]) * model.n_private,
                reports=float(reports[cell]) if is_heard else None,
                reports_sd=noise if is_heard else None,
                public=float(model.public_total[:, 1][node]) / n_public if n_public else None,
                public_sd=float(np.sqrt(label_variance / n_public)) if n_public else None,
                value=float(model.estimate[:, 0][node]),
                value_sd=_bounded(model, float(model.estimate_sd[:, 0][node])),
                difference=float(model.discrepancy[:, 0][node]) if was_compared else None,
                difference_sd=float(model.discrepancy_sd[:, 0][node]) if was_compared else None,
            )
        )
    return tuple(made)


def tree_of(model: NumberTree, names: Names) -> NumberNode:
    """The root of the model's tree. What is said of an inner node is the average over its cells, with no error of its own."""
    tree, shares = model.partition, private_shares(model)
    n_cells = np.bincount(tree.paths()[1], minlength=tree.n_nodes)
    average, evidence = _averages(model, shares), _evidence(model)
    made: dict[int, NumberNode] = {}
    for node in np.argsort(-tree.depth, kind="stable").tolist():
        is_leaf = tree.feature[node] < 0
        children = () if is_leaf else (int(tree.left[node]), int(tree.right[node]))
        made[node] = NumberNode(
            condition="" if node == 0 else ", ".join(path_words(model, node, names, only_last=True)),
            cells=int(n_cells[node]),
            share_private=float(shares[node]),
            people=float(shares[node]) * model.n_private,
            value=float(average[node]),
            value_sd=_bounded(model, float(model.estimate_sd[:, 0][node])) if is_leaf else None,
            evidence=evidence[node] if is_leaf else None,
            children=tuple(made[child] for child in children),
        )
    return made[0]


def discrepancy_of(model: NumberTree) -> DiscrepancyFacts | None:
    """How far private people were found to differ from the public rows; None where that was not asked."""
    if model.lam != "learned" or model.n_public == 0:
        return None
    return DiscrepancyFacts(
        is_found=bool((model.discrepancy_sd[:, 0] > 0).any()),
        varies=bool(np.ptp(model.discrepancy[:, 0][model.partition.leaves]) > 1e-9 * model.label.sd),
        mean=float(model.mean_discrepancy[0]),
        sd=float(model.mean_discrepancy_sd[0]),
    )


def curves_of(model: NumberTree, names: Names, most: int = CURVES) -> tuple[CurveFacts, ...]:
    """The fitted function along the strongest columns: those that its answers vary most along, over private people.

    Other columns are taken as the public rows have them, or without any as the private people of the reports.
    """
    leaves, shares = model.partition.leaves, private_shares(model)
    found = tree_importance(model.raw_tree, model.estimate[:, 0][leaves], shares[leaves])
    weights = model.public_total[:, 0][leaves] if model.n_public else shares[leaves]
    arrays = {
        "value": model.estimate[:, 0][leaves],
        "sd": np.array([_bounded(model, float(sd)) for sd in model.estimate_sd[:, 0][leaves]]),
    }
    if model.n_public:
        arrays["public"] = _public_means(model)[leaves]
    curves = []
    for column in list(found)[:most]:
        pieces, along = tree_dependence(model.raw_tree, column, weights, arrays)
        curves.append(
            CurveFacts(
                column=column.replace("_", " "),
                strength=min(found[column], 1.0),
                pieces=tuple(
                    PieceFacts(
                        name=_name(column, piece, names),
                        low=piece.low,
                        high=piece.high,
                        **{name: float(array[i]) for name, array in along.items()},
                    )
                    for i, piece in enumerate(pieces)
                ),
            )
        )
    return tuple(curves)


def push_of(force: PoisoningBound, model: NumberTree, n_levels: int) -> float:
    """The most that one dishonest holder can move the sum of one cell's labels about their public mean, in the label's unit.

    An upper bound: as many of the cell's totals as one report can shift at once, each as far as any, those furthest from
    the mean.
    """
    return pushed(force, np.array(label_levels(*model.label.range, n_levels)) - centre_of(model))


def pushed(force: PoisoningBound, about: Floats) -> float:
    """The most that one dishonest holder can move the sum over one cell of numbers reported as one of the levels `about`."""
    reach = np.sort(np.abs(about))[::-1]
    return float(force.one * reach[: min(force.totals_at_once, reach.size)].sum())


def centre_of(model: NumberTree) -> float:
    """The mean of the public labels; the middle of the range where there are none."""
    if model.n_public == 0:
        return sum(model.label.range) / 2
    return float(model.public_total[:, 1][0]) / float(model.public_total[:, 0][0])


def private_shares(model: NumberTree) -> Floats:
    """Estimated share of private people below each node, [nodes], 1 at the root."""
    return shares_below(model.partition, model.private_total[:, 0][model.partition.leaves])


def _reports_alone(model: NumberTree, asked: Partition, totals: Totals) -> Floats:
    """Mean label of each cell by its reports alone, [cells], with the holders that the model gave the cell.

    A part of a cell that was asked about has the cell's, moved as the model moves it there.
    """
    leaves, centre = asked.leaves, centre_of(model)
    about = np.array(label_levels(*model.label.range, totals.n_classes)) - centre
    noise, of_mean = np.sqrt(totals.cell_variance(about)), model.noise_sd[:, 0][leaves]
    held = np.maximum(totals.cell_counts, 1.0)  # without noise they are known
    masses = np.divide(noise, of_mean, out=held, where=of_mean > 0)
    alone = centre + (totals.counts @ about) / masses
    parts = model.partition.leaves
    above = asked_nodes(model.partition, asked.n_nodes)[parts]
    return np.asarray(
        alone[asked.cell_of_node[above]] + (model.estimate[:, 0][parts] - model.estimate[:, 0][above])
    )


def _public_means(model: NumberTree) -> Floats:
    """Mean public label of each node, [nodes]; where no public row is, that of the nearest node above."""
    tree = model.partition
    means: Floats = np.divide(
        model.public_total[:, 1],
        model.public_total[:, 0],
        out=np.full(tree.n_nodes, np.nan),
        where=model.public_total[:, 0] > 0,
    )
    for node in range(1, tree.n_nodes):  # parents come first
        if np.isnan(means[node]):
            means[node] = means[tree.parent[node]]
    return means


def _averages(model: NumberTree, shares: Floats) -> Floats:
    """Value of every node: the average over its cells, weighted by their share of private people, [nodes]."""
    tree = model.partition
    cells, nodes = tree.paths()
    # A cell that the noise left with no share still counts a little: its parent needs an average.
    weights = np.maximum(shares[tree.leaves], 1e-9)
    weighted = (weights * model.estimate[:, 0][tree.leaves])[cells]
    total = np.bincount(nodes, weights=weights[cells], minlength=tree.n_nodes)
    return np.asarray(np.bincount(nodes, weights=weighted, minlength=tree.n_nodes) / total)


def _evidence(model: NumberTree) -> list[Evidence]:
    said: list[Evidence] = []
    for node, rest in enumerate(model.evidence):
        is_own = model.decided_at[node] == node and rest != "none"
        said.append(rest if is_own else "neighbours")  # type: ignore[arg-type]
    return said


def _bounded(model: NumberTree, sd: float) -> float:
    """A mean can be no further off than its range: where nothing is known, half of it."""
    low, high = model.label.range
    return min(sd, (high - low) / 2)


def _name(column: str, piece: Piece, names: Names) -> str:
    if piece.is_missing:
        return "missing"
    if piece.is_other:
        return "any other"
    return "" if piece.level is None else class_name(column, piece.level, names)
