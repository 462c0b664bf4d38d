"""From a model to the facts of its page: every cell and the tree, in raw units and plain words. How they are drawn is in
`render`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.encoding import NumericFeature
from ldptree.model import Model
from ldptree.totals import Totals
from tasks.page.facts import CellFacts, DiscrepancyFacts, NodeFacts


def cells_of(model: Model, totals: Totals, public: NDArray[np.int64]) -> tuple[CellFacts, ...]:
    """Every cell of the model; `public` int [cells, classes] are the public rows in it."""
    shares = private_shares(model)
    n_public = max(int(public.sum()), 1)
    evidence = model.evidence
    leaves = model.partition.leaves
    # The model states noise as a share of the mass it gave the cell; the raw margin is a share of the same mass.
    masses = np.sqrt(totals.margin_variance) / model.noise_sd[leaves].mean(axis=1)
    return tuple(
        _cell(model, int(node), float(masses[cell]), shares, public[cell], n_public, evidence)
        for cell, node in enumerate(leaves)
    )


def tree_of(model: Model) -> NodeFacts:
    """The root of the model's tree."""
    tree, shares = model.partition, private_shares(model)
    n_cells = np.zeros(tree.n_nodes, dtype=np.int64)
    np.add.at(n_cells, tree.paths()[1], 1)
    made: dict[int, NodeFacts] = {}
    for node in np.argsort(-tree.depth, kind="stable").tolist():
        children = (int(tree.left[node]), int(tree.right[node])) if tree.feature[node] >= 0 else ()
        made[node] = NodeFacts(
            condition="" if node == 0 else ", ".join(path_words(model, node, only_last=True)),
            cells=int(n_cells[node]),
            share_private=float(shares[node]),
            margin=_margin(model, node),
            margin_sd=_finite(_margin_sd(model, node)),
            decision=str(model.classes[model.decision[node]]),
            probability=float(model.probability[node, model.decision[node]]),
            children=tuple(made[child] for child in children),
        )
    return made[0]


def discrepancy_of(model: Model) -> DiscrepancyFacts:
    """How far private people were found to differ from the public rows."""
    leaves, root = model.partition.leaves, 0
    found = model.discrepancy[leaves]
    weights = private_shares(model)[leaves]
    return DiscrepancyFacts(
        is_found=bool((model.discrepancy_sd > 0).any()),
        varies=bool(np.ptp(found) > 1e-9),
        mean=float(np.average(found[:, 0], weights=weights)),
        sd=float(model.discrepancy_sd[root, 0]),
    )


def private_shares(model: Model) -> NDArray[np.float64]:
    """Estimated share of private rows below each node: noisy totals made non-negative, [nodes], 1 at the root."""
    tree = model.partition
    counts = np.maximum(model.private_total[tree.leaves].sum(axis=1), 0.0)
    total = counts.sum()
    per_cell = counts / total if total > 0 else np.full(tree.n_leaves, 1 / tree.n_leaves)
    cells, nodes = tree.paths()
    return np.bincount(nodes, weights=per_cell[cells], minlength=tree.n_nodes).astype(np.float64)


def path_words(model: Model, node: int, *, only_last: bool = False) -> tuple[str, ...]:
    """The conditions that lead to a node, one a column, in raw units: "trip miles above 2.5 to 7"."""
    tree, raw = model.partition, model.raw_tree
    numbers: dict[str, list[float]] = {}
    is_level: dict[str, str] = {}
    not_levels: dict[str, list[str]] = {}
    other: dict[str, str] = {}
    order: dict[str, None] = {}
    while (above := int(tree.parent[node])) >= 0:
        is_left = int(tree.left[above]) == node
        feature = model.encoding.features[raw.column[above]]
        name = feature.column.replace("_", " ")
        order = {name: None} | order
        threshold = float(raw.threshold[above])
        if raw.level[above] >= 0 and not isinstance(feature, NumericFeature):
            level = str(feature.levels[raw.level[above]])
            if not is_left:
                is_level.setdefault(name, level)
            else:
                not_levels.setdefault(name, []).append(level)
        elif np.isfinite(threshold):
            low, high = numbers.setdefault(name, [-np.inf, np.inf])
            numbers[name] = [low, min(high, threshold)] if is_left else [max(low, threshold), high]
        else:
            other.setdefault(name, "is missing" if np.isposinf(threshold) != is_left else "is known")
        node = above
        if only_last:
            break
    said = []
    for name in order:
        if name in numbers:
            said.append(f"{name} {_between(*numbers[name])}")
        if name in is_level:
            said.append(f"{name} is {is_level[name]}")
        elif name in not_levels:
            said.append(f"{name} is not {_listed(not_levels[name])}")
        if name in other:
            said.append(f"{name} {other[name]}")
    return tuple(said)


def _cell(
    model: Model,
    node: int,
    mass: float,
    shares: NDArray[np.float64],
    public: NDArray[np.int64],
    n_public: int,
    evidence: list[str],
) -> CellFacts:
    n_here = int(public.sum())
    noise = float(model.noise_sd[node].max())
    has_count = noise < 1.0  # beyond that the reports of the cell alone say nothing at all
    rest = evidence[node] if model.decided_at[node] == node else "neighbours"
    return CellFacts(
        path=path_words(model, node),
        share_private=float(shares[node]),
        share_public=n_here / n_public,
        raw_margin=_lead(model.private_total[node] / mass, model, node) if has_count else None,
        raw_sd=noise if has_count else None,
        public_margin=_lead(public / n_here, model, node) if n_here else None,
        public_sd=0.5 / float(np.sqrt(n_here)) if n_here else None,
        margin=_margin(model, node),
        margin_sd=_finite(_margin_sd(model, node)),
        discrepancy=float(model.discrepancy[node, 0])
        if model.n_classes == 2 and model.lam == "learned"
        else None,
        discrepancy_sd=float(model.discrepancy_sd[node, 0])
        if model.n_classes == 2 and model.lam == "learned"
        else None,
        private_weight=float(model.private_share[node]),
        evidence="neighbours" if rest == "none" else rest,  # type: ignore[arg-type]
        decision=str(model.classes[model.decision[node]]),
        probability=float(model.probability[node, model.decision[node]]),
    )


def _margin(model: Model, node: int) -> float:
    """Two classes: the positive one's share less 1/2; more: half the lead of the decided class over the next."""
    return _lead(model.probability[node], model, node)


def _margin_sd(model: Model, node: int) -> float:
    sd = model.margin_sd[node]
    return float(sd[0]) if model.n_classes == 2 else float(sd[model.decision[node]])


def _lead(shares: NDArray[Any], model: Model, node: int) -> float:
    if model.n_classes == 2:
        return float(shares[1] - 0.5 * shares.sum())
    decided = int(model.decision[node])
    return float(shares[decided] - np.delete(shares, decided).max()) / 2


def _finite(sd: float) -> float:
    """A margin can be no wider than its range: where nothing is known, half of it."""
    return sd if np.isfinite(sd) else 0.5


def _between(low: float, high: float) -> str:
    if np.isinf(low):
        return f"up to {_number(high)}"
    if np.isinf(high):
        return f"above {_number(low)}"
    return f"above {_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    rounded = round(value)
    if abs(value - rounded) < 1e-9 * max(1.0, abs(value)):
        return f"{rounded:,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
