"""What a corrected model says of itself: where, by how much and how surely its public model is wrong on private people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ldptree.families.correction_plan import CorrectionPlan, PublicSummary
from ldptree.families.corrections import Corrections, own_weights, sd_of_means, unclip_means
from ldptree.models.corrected import add_clipped, shares_of
from ldptree.models.description import (
    Basis,
    Cell,
    Description,
    Estimate,
    Evidence,
    Statement,
    build_tree,
    describe_strengths,
    find_conditions,
    name_level,
    share_below,
)
from ldptree.models.effects import columns_of, importance
from ldptree.public_models.model import answers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.models.corrected import CorrectedModel

    Floats = NDArray[np.float64]

STRENGTH_ROWS = 500
"""Public rows over which the strengths of columns are taken."""
OWN = 0.5
"""A correction rests on a cell's own reports where these bring this share of it."""


def describe_corrections(model: CorrectedModel, evidence: Evidence) -> Description:
    """Corrections of every output; `evidence` has what public rows say of the question, and these rows, encoded."""
    assert evidence.rows is not None
    public: PublicSummary = evidence.public
    found, tree, names = model.corrections, model.partition, evidence.names
    classes = tuple(name_level(model.target, value, names) for value in model.classes)
    outputs = classes[1:] if len(classes) == 2 else classes or (model.target,)
    answered = corrected_answers(model, public, evidence.rows)
    estimates = _estimates(*_averages(model, public.plan))
    return Description(
        figure="correction",
        outputs=outputs,
        tree=build_tree(tree, model.raw_tree, names, share_below(tree, found.share), estimates),
        cells=_cells(model, public, answered, evidence),
        statements=(*_statements(model, public, answered, outputs), *_strengths(model, evidence.rows)),
        is_found=not found.has_no_effect,
        is_particular=None if math.isnan(found.chance_alike) else found.is_particular,
        chance_alike=None if math.isnan(found.chance_alike) else float(found.chance_alike),
        chance=float(found.chance),
        says=found.says_of(model.classes),
        spread=public.plan.range.half / 2,
        moves=tuple(float(level) / public.plan.range.slope for level in public.plan.levels),
    )


def estimate_cells(found: Corrections) -> list[tuple[Estimate, ...]]:
    """The corrections of each cell, one an output."""
    return _estimates(found.correction, found.sd, found.hidden)


def _estimates(values: Floats, sds: Floats, hidden: Floats) -> list[tuple[Estimate, ...]]:
    """A tuple for each row of values [n, M] and sds [n, M], with what is hidden below and above, [2, n, M]."""
    rows = zip(values.tolist(), sds.tolist(), *hidden.tolist(), strict=True)
    return [
        tuple(Estimate(value=v, sd=s, below=b, above=a) for v, s, b, a in zip(*row, strict=True))
        for row in rows
    ]


def _strengths(model: CorrectedModel, rows: NDArray[np.float32]) -> tuple[Statement, ...]:
    """How much the corrected answers depend on each column, over public rows; of several outputs on average by variance."""
    if not len(rows):
        return ()
    some = rows[np.unique(np.linspace(0, len(rows) - 1, STRENGTH_ROWS).astype(np.intp))].astype(np.float64)
    parts = np.zeros(len(model.encoding.columns))
    for output in range(model.corrections.correction.shape[1]):

        def answer(at: Floats, output: int = output) -> Floats:
            encoded = at.astype(np.float32)
            public = answers(model.base, encoded, len(model.classes))[:, output]
            return np.asarray(public + model.corrections.correction[model.partition.apply(encoded), output])

        parts += float(answer(some).var()) * importance(answer, some, columns_of(model.encoding))
    total = float(parts.sum())
    if not total > 0:
        return ()
    return describe_strengths(dict(zip(model.encoding.columns, (parts / total).tolist(), strict=True)))


def corrected_answers(model: CorrectedModel, public: PublicSummary, rows: NDArray[np.float32]) -> Floats:
    """The corrected model's mean answer over the public rows of each cell, [cells, M].

    A share is corrected row by row, and no further than its range, so that the mean may move by less than the correction.
    """
    correction = model.corrections.correction
    if not model.classes:
        return np.asarray(public.answer + correction)
    found = _shares(add_clipped(public.answer, correction))
    if model.base.feature.size == 1 or not len(rows):
        return found
    cells, count = model.partition.apply(rows), public.plan.public_count
    shares = _shares(add_clipped(answers(model.base, rows, len(model.classes)), correction[cells]))
    sums = np.stack([np.bincount(cells, weights=column, minlength=len(count)) for column in shares.T], axis=1)
    is_met = count > 0
    found[is_met] = sums[is_met] / count[is_met][:, None]
    return found


def _shares(outputs: Floats) -> Floats:
    """What the model says of outputs [n, M]: of two classes the second one's share, [n, M]."""
    found = shares_of(outputs)
    return found[:, 1:] if outputs.shape[1] == 1 else found


def _cells(
    model: CorrectedModel, public: PublicSummary, answered: Floats, evidence: Evidence
) -> tuple[Cell, ...]:
    found, counts = model.corrections, public.plan.public_count
    weight = own_weights(public.plan, found).max(axis=1)
    outputs, estimates = range(found.correction.shape[1]), estimate_cells(found)
    made = []
    for cell, node in enumerate(model.partition.leaves.tolist()):
        # without public rows in the cell, what the public model says there is known of a constant alone
        is_met = bool(counts[cell] > 0 or model.base.feature.size == 1)
        made.append(
            Cell(
                path=find_conditions(model.partition, model.raw_tree, node, evidence.names),
                share=float(found.share[cell]),
                public_share=float(counts[cell] / max(public.n_public, 1)),
                rests_on=_basis(model, cell, float(weight[cell])),
                private_weight=float(weight[cell]),
                estimates=estimates[cell],
                # noise wider than the range: the reports of the cell alone say nothing at all
                reports=tuple(
                    Estimate(value=float(found.observed[cell, m]), sd=float(found.noise_sd[cell, m]))
                    if found.noise_sd[cell, m] < 2 * public.plan.range.half
                    else None
                    for m in outputs
                ),
                public=tuple(
                    Estimate(value=float(public.answer[cell, m])) if is_met else None for m in outputs
                ),
                answers=tuple(float(answered[cell, m]) for m in outputs) if is_met else (),
            )
        )
    return tuple(made)


def _basis(model: CorrectedModel, cell: int, weight: float) -> Basis:
    if not model.corrections.correction[cell].any() and not weight:
        return "public"
    return "private" if weight >= OWN else "neighbours"


def _averages(model: CorrectedModel, plan: CorrectionPlan) -> tuple[Floats, Floats, Floats]:
    """Mean correction of every node over the private people below, its standard deviation, each [nodes, M], and what is hidden of
    it, [2, nodes, M].
    """
    tree, found = model.partition, model.corrections
    weights = np.zeros((tree.n_nodes, tree.n_leaves))
    cells, nodes = tree.paths()
    weights[nodes, cells] = found.share[cells]
    weights /= weights.sum(axis=1, keepdims=True)
    shape = tree.n_nodes, found.sd.shape[1]
    mean, spread, hidden = np.empty(shape), np.empty(shape), np.empty((2, *shape))
    mean[tree.leaves], spread[tree.leaves], hidden[:, tree.leaves] = found.correction, found.sd, found.hidden
    inner = np.setdiff1d(np.arange(tree.n_nodes), tree.leaves)
    if inner.size:
        read, sd = plan.range.as_read(found.correction), sd_of_means(plan, found, weights[inner])
        mean[inner], spread[inner], hidden[:, inner] = unclip_means(plan.range, read, sd, weights[inner])
    return mean, spread, hidden


def _statements(
    model: CorrectedModel, public: PublicSummary, answered: Floats, outputs: tuple[str, ...]
) -> list[Statement]:
    """How large the public model is, its mean answer over private people before and after."""
    n_trees = 0 if model.base.feature.size == 1 else int(model.base.roots.size)
    statements = [Statement(kind="public model", figures={"trees": float(n_trees)})]
    if model.base.feature.size == 1 or public.plan.public_count.all():
        before, after = model.corrections.share @ public.answer, model.corrections.share @ answered
        statements += [
            Statement(kind="mean answer", about=name, figures={"before": float(b), "after": float(a)})
            for name, b, a in zip(outputs, before, after, strict=True)
        ]
    return statements
