"""What a released tree says of itself, cell by cell and node by node: of classes, and of a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldptree.models.description import (
    Basis,
    Cell,
    CurveLine,
    CurvePoint,
    Description,
    Estimate,
    Evidence,
    Statement,
    average_below,
    build_tree,
    describe_strengths,
    find_conditions,
    name_level,
    name_piece,
    share_below,
)
from ldptree.models.effects import tree_dependence, tree_importance
from ldptree.protocol.stochastic_rounding import label_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.models.tree import AnyTree, ClassTree, NumberTree
    from ldptree.partition.tree import Partition
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]

CURVES = 2
UNKNOWN_SD = 0.5
"""A share can be no wider than its range: where nothing is known, half of it."""


def describe_classes(model: ClassTree, evidence: Evidence) -> Description:
    """Shares of classes, of two classes that of the second one.

    `evidence` has the totals that the model was fitted on, and the public rows of each cell.
    """
    assert evidence.public_counts is not None
    tree, names = model.partition, evidence.names
    classes = tuple(name_level(model.target, value, names) for value in model.classes)
    outputs = [1] if model.n_classes == 2 else list(range(model.n_classes))
    shares = share_below(tree, model.private_total[tree.leaves].sum(axis=1))
    average = average_below(tree, shares[tree.leaves], model.probability[tree.leaves])
    sd = np.where(np.isfinite(model.estimate_sd), model.estimate_sd, UNKNOWN_SD)
    basis, alone = find_basis(model), _class_reports(model, evidence.totals[0])
    n_public = max(int(evidence.public_counts.sum()), 1)
    is_leaf = tree.feature < 0
    was_compared = model.lam == "learned"
    cells = []
    for cell, node in enumerate(tree.leaves.tolist()):
        counts = evidence.public_counts[cell]
        n = int(counts.sum())
        cells.append(
            Cell(
                path=find_conditions(tree, model.raw_tree, node, names),
                share=float(shares[node]),
                public_share=n / n_public,
                rests_on=basis[node],
                private_weight=float(model.private_share[node]),
                estimates=tuple(
                    Estimate(value=float(model.probability[node, c]), sd=float(sd[node, m]))
                    for m, c in enumerate(outputs)
                ),
                reports=alone[cell],
                public=tuple(
                    Estimate(value=float(counts[c]) / n, sd=0.5 / float(np.sqrt(n))) if n else None
                    for c in outputs
                ),
                differences=_pairs(model.discrepancy[node], model.discrepancy_sd[node])
                if was_compared
                else (),
                decision=classes[int(model.decision[node])],
            )
        )
    return Description(
        figure="share",
        outputs=tuple(classes[c] for c in outputs),
        tree=build_tree(
            tree,
            model.raw_tree,
            names,
            shares,
            [
                [
                    Estimate(value=float(average[node, c]), sd=float(sd[node, m]) if is_leaf[node] else None)
                    for m, c in enumerate(outputs)
                ]
                for node in range(tree.n_nodes)
            ],
            [
                classes[int(model.decision[node] if is_leaf[node] else average[node].argmax())]
                for node in range(tree.n_nodes)
            ],
        ),
        cells=tuple(cells),
        statements=_strengths(model, model.probability[tree.leaves][:, outputs], shares[tree.leaves]),
        differences=_pairs(model.mean_discrepancy, model.mean_discrepancy_sd) if was_compared else (),
        is_found=bool((model.discrepancy_sd > 0).any()) if was_compared else None,
    )


def _strengths(model: AnyTree, values: Floats, weights: Floats) -> tuple[Statement, ...]:
    """How much the answers depend on each column, over private people: of values [cells, M] on average by their variance."""
    if not weights.sum() > 0:
        return ()
    found = dict.fromkeys(model.raw_tree.columns_used, 0.0)
    mean = np.average(values, axis=0, weights=weights)
    spread = np.average((values - mean) ** 2, axis=0, weights=weights)
    if not spread.sum() > 0:
        return ()
    for column, part in zip(values.T, spread / spread.sum(), strict=True):
        for name, strength in tree_importance(model.raw_tree, column, weights).items():
            found[name] = found.get(name, 0.0) + float(part) * strength
    return describe_strengths(found)


def describe_numbers(model: NumberTree, evidence: Evidence) -> Description:
    """A number and its curves; `evidence` has the totals that the model was fitted on, and the partition they are of."""
    assert evidence.asked is not None
    tree, names, leaves = model.partition, evidence.names, model.partition.leaves
    low, high = model.label.range
    shares = share_below(tree, model.private_total[:, 0][leaves])
    average = average_below(tree, shares[leaves], model.estimate[leaves])[:, 0]
    sd = np.minimum(model.estimate_sd[:, 0], (high - low) / 2)
    reports, basis = _number_reports(model, evidence.asked, evidence.totals[0]), find_basis(model)
    was_compared = model.lam == "learned" and model.n_public > 0
    is_leaf = tree.feature < 0
    cells = []
    for cell, node in enumerate(leaves.tolist()):
        n, noise = int(model.public_total[:, 0][node]), float(model.noise_sd[:, 0][node])
        # noise wider than the range: the reports of the cell alone say nothing at all
        is_heard = noise < high - low
        cells.append(
            Cell(
                path=find_conditions(tree, model.raw_tree, node, names),
                share=float(shares[node]),
                public_share=n / max(model.n_public, 1),
                rests_on=basis[node],
                private_weight=float(model.private_share[node]),
                estimates=(Estimate(value=float(model.estimate[:, 0][node]), sd=float(sd[node])),),
                reports=(Estimate(value=float(reports[cell]), sd=noise) if is_heard else None,),
                public=(
                    Estimate(
                        value=float(model.public_total[:, 1][node]) / n, sd=model.label.sd / float(np.sqrt(n))
                    )
                    if n
                    else None,
                ),
                differences=_pairs(model.discrepancy[node], model.discrepancy_sd[node])
                if was_compared
                else (),
            )
        )
    estimates = [
        [Estimate(value=float(average[node]), sd=float(sd[node]) if is_leaf[node] else None)]
        for node in range(tree.n_nodes)
    ]
    mean = Estimate(value=float(model.mean_discrepancy[0]), sd=float(model.mean_discrepancy_sd[0]))
    return Description(
        figure="number",
        outputs=(model.target,),
        tree=build_tree(tree, model.raw_tree, names, shares, estimates),
        cells=tuple(cells),
        statements=_strengths(model, model.estimate[leaves][:, :1], shares[leaves]),
        curves=_curves(model, shares, sd, evidence),
        differences=(mean,) if was_compared else (),
        is_found=bool((model.discrepancy_sd > 0).any()) if was_compared else None,
        spread=float(model.label.sd),
        moves=tuple(
            (np.array(label_levels(low, high, evidence.totals[0].n_classes)) - centre_of(model)).tolist()
        ),
    )


def find_basis(model: AnyTree) -> list[Basis]:
    """What the answer of each node rests on: "neighbours" where another node decided it."""
    bases: list[Basis] = []
    for node, rest in enumerate(model.evidence):
        is_own = model.decided_at[node] == node and rest != "none"
        bases.append(rest if is_own else "neighbours")  # type: ignore[arg-type]
    return bases


def _pairs(values: Floats, sds: Floats) -> tuple[Estimate, ...]:
    return tuple(Estimate(value=float(v), sd=float(s)) for v, s in zip(values, sds, strict=True))


def _class_reports(model: ClassTree, totals: Totals) -> list[tuple[Estimate | None, ...]]:
    """Shares of each cell by its reports alone, and their noise; None where the noise is wider than a share's range."""
    leaves, c = model.partition.leaves, model.n_classes
    of_class = 1 if c == 2 else 0
    # the holders that the model gave a cell: the noise of one class's margin in holders, over the same noise as a share
    weights = np.eye(c)[of_class] - 1.0 / c
    masses = np.sqrt(totals.cell_variance(weights)) / model.noise_sd[leaves, 0]
    shares = model.private_total[leaves] / masses[:, None]
    margins = shares - shares.sum(axis=1, keepdims=True) / c + 1.0 / c
    found = margins[:, 1:] if c == 2 else margins
    noise = model.noise_sd[leaves]
    return [
        tuple(
            Estimate(value=float(v), sd=float(s)) if s < 1.0 else None
            for v, s in zip(found[cell], noise[cell], strict=True)
        )
        for cell in range(leaves.size)
    ]


def _number_reports(model: NumberTree, asked: Partition, totals: Totals) -> Floats:
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
    above = model.partition.nodes_above(asked.n_nodes)[parts]
    return np.asarray(
        alone[asked.cell_of_node[above]] + (model.estimate[:, 0][parts] - model.estimate[:, 0][above])
    )


def centre_of(model: NumberTree) -> float:
    """The mean of the public labels; the middle of the range where there are none."""
    if model.n_public == 0:
        return sum(model.label.range) / 2
    return float(model.public_total[:, 1][0]) / float(model.public_total[:, 0][0])


def _curves(model: NumberTree, shares: Floats, sd: Floats, evidence: Evidence) -> tuple[CurveLine, ...]:
    """The answer along the strongest columns: those that it varies most along, over private people.

    Other columns are taken as the public rows have them, or without any as the private people of the reports.
    """
    leaves = model.partition.leaves
    found = tree_importance(model.raw_tree, model.estimate[:, 0][leaves], shares[leaves])
    weights = model.public_total[:, 0][leaves] if model.n_public else shares[leaves]
    arrays = {"value": model.estimate[:, 0][leaves], "sd": sd[leaves]}
    if model.n_public:
        arrays["public"] = _public_means(model)[leaves]
    curves = []
    for column in list(found)[:CURVES]:
        pieces, along = tree_dependence(model.raw_tree, column, weights, arrays)
        points = tuple(
            CurvePoint(
                name=name_piece(column, piece, evidence.names),
                low=piece.low,
                high=piece.high,
                **{name: float(array[i]) for name, array in along.items()},
            )
            for i, piece in enumerate(pieces)
        )
        curves.append(CurveLine(column=column, strength=min(found[column], 1.0), points=points))
    return tuple(curves)


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
