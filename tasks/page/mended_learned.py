"""From a corrected model and what public rows say of its question to the facts of its page: every cell and the tree.

How they are drawn is in `mended`; the arithmetic is in `ldptree.families.corrections` and `ldptree.families.correction_means`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ldptree.families.correction_means import own_weights, sd_of_means
from ldptree.models.corrected import CorrectedModel, add_clipped, shares_of
from ldptree.oracles import PoisoningBound
from ldptree.public_models.model import answers
from tasks.page.basic_facts import Evidence
from tasks.page.mended_facts import (
    CellMendFacts,
    CellTestFacts,
    MendedCell,
    MendedNode,
    MendFacts,
    SlopeFacts,
)
from tasks.page.number_learned import pushed
from tasks.page.places import Names, path_words, shares_below

if TYPE_CHECKING:
    from ldptree.families.correction_plan import Plan
    from ldptree.families.fit_correction import Public

Floats = NDArray[np.float64]

OWN = 0.5
"""A correction rests on a cell's own reports where these bring this share of it."""


def corrected_answers(model: CorrectedModel, public: Public, rows: NDArray[np.float32]) -> Floats:
    """The corrected model's mean answer over the public rows of each cell, [cells, M]; `rows` are these, encoded.

    A share is corrected row by row, and no further than its range, so that the mean may move by less than the correction.
    """
    correction = model.corrections.correction
    if not model.classes:
        return np.asarray(public.answer + correction)
    found = _shares(add_clipped(public.answer, correction))
    if model.base.feature.size == 1 or not len(rows):
        return found
    cells, count = model.partition.apply(rows), public.plan.public_count
    said = _shares(add_clipped(answers(model.base, rows, len(model.classes)), correction[cells]))
    sums = np.stack([np.bincount(cells, weights=column, minlength=len(count)) for column in said.T], axis=1)
    is_met = count > 0
    found[is_met] = sums[is_met] / count[is_met][:, None]
    return found


def _shares(outputs: Floats) -> Floats:
    """What the model says of outputs [n, M]: of two classes the second one's share, [n, M]."""
    found = shares_of(outputs)
    return found[:, 1:] if outputs.shape[1] == 1 else found


def cells_of(
    model: CorrectedModel,
    public: Public,
    corrected: Floats,
    tested: Sequence[Mapping[str, Any] | None] | None,
    names: Names,
) -> tuple[MendedCell, ...]:
    """Every cell of the collection tree, in its order.

    `corrected`: the corrected model's mean answers (`corrected_answers`). `tested`: of each cell how both models did on held-back
    rows, None where they were too few; None without any.
    """
    found, counts = model.corrections, public.plan.public_count
    weight = own_weights(public.plan, found).max(axis=1)
    made = []
    for cell, node in enumerate(model.partition.leaves.tolist()):
        test = None if tested is None else tested[cell]
        made.append(
            MendedCell(
                path=path_words(model, node, names),
                share_private=float(found.share[cell]),
                share_public=float(counts[cell] / max(public.n_public, 1)),
                evidence=_evidence(model, cell, float(weight[cell])),
                private_weight=float(weight[cell]),
                people=float(found.share[cell]) * model.n_private,
                outputs=tuple(
                    _mend(model, public, corrected, cell, output)
                    for output in range(found.correction.shape[1])
                ),
                test=None if test is None else CellTestFacts(**test),
            )
        )
    return tuple(made)


def _mend(model: CorrectedModel, public: Public, corrected: Floats, cell: int, output: int) -> CellMendFacts:
    found = model.corrections
    correction, noise = float(found.correction[cell, output]), float(found.noise_sd[cell, output])
    # Noise wider than the range: the reports of the cell alone say nothing at all.
    is_heard = noise < 2 * public.plan.range.half
    # Without public rows in the cell what the model says there is known of a constant alone.
    is_met = public.plan.public_count[cell] > 0 or model.base.feature.size == 1
    return CellMendFacts(
        correction=correction,
        sd=float(found.sd[cell, output]),
        reports=float(found.observed[cell, output]) if is_heard else None,
        reports_sd=noise if is_heard else None,
        public=float(public.answer[cell, output]) if is_met else None,
        corrected=float(corrected[cell, output]) if is_met else None,
    )


def _evidence(model: CorrectedModel, cell: int, weight: float) -> Evidence:
    if not model.corrections.correction[cell].any() and not weight:
        return "public"
    return "private" if weight >= OWN else "neighbours"


def tree_of(model: CorrectedModel, plan: Plan, names: Names) -> MendedNode:
    """The root of the collection tree. What is said of an inner node is the average over the private people below."""
    tree, found = model.partition, model.corrections
    shares = shares_below(tree, found.share)
    averages, spread = _averages(model, plan)
    n_cells = np.bincount(tree.paths()[1], minlength=tree.n_nodes)
    place = {int(node): cell for cell, node in enumerate(tree.leaves)}
    made: dict[int, MendedNode] = {}
    for node in np.argsort(-tree.depth, kind="stable").tolist():
        is_leaf = node in place
        children = () if is_leaf else (int(tree.left[node]), int(tree.right[node]))
        made[node] = MendedNode(
            condition="" if node == 0 else ", ".join(path_words(model, node, names, only_last=True)),
            cells=int(n_cells[node]),
            share_private=float(shares[node]),
            path=path_words(model, node, names),
            people=float(shares[node]) * model.n_private,
            outputs=tuple(
                MendFacts(correction=float(mean), sd=float(sd))
                for mean, sd in zip(averages[node], spread[node], strict=True)
            ),
            cell=place.get(node),
            children=tuple(made[child] for child in children),
        )
    return made[0]


def _averages(model: CorrectedModel, plan: Plan) -> tuple[Floats, Floats]:
    """Mean correction of every node over the private people below, and its standard deviation, each [nodes, M]."""
    tree, found = model.partition, model.corrections
    weights = np.zeros((tree.n_nodes, tree.n_leaves))
    cells, nodes = tree.paths()
    weights[nodes, cells] = found.share[cells]
    weights /= weights.sum(axis=1, keepdims=True)
    spread = np.zeros((tree.n_nodes, found.sd.shape[1]))
    spread[tree.leaves] = found.sd
    inner = np.setdiff1d(np.arange(tree.n_nodes), tree.leaves)
    if inner.size:
        spread[inner] = sd_of_means(plan, found, weights[inner])
    return weights @ found.correction, spread


def usual_of(model: CorrectedModel, public: Public, of_cells: Floats) -> tuple[float, ...]:
    """Answers [cells, M] averaged over private people, as public rows of their cells have them; () where a cell has none."""
    if model.base.feature.size > 1 and not public.plan.public_count.all():
        return ()
    return tuple(float(mean) for mean in model.corrections.share @ of_cells)


def slope_of(model: CorrectedModel) -> SlopeFacts | None:
    """What was found of a straight line beside the public model."""
    found = model.corrections.slope
    return None if found is None else SlopeFacts(amount=found.amount, sd=found.sd, is_found=found.tau > 0)


def push_of(force: PoisoningBound, plan: Plan) -> float | None:
    """The most that one dishonest holder can move the sum of errors in one cell; None where there is no bound."""
    push = pushed(force, np.array(plan.levels)) / plan.range.slope
    return push if math.isfinite(push) else None
