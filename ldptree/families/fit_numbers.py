"""Totals and public labels that are numbers into a regression model: LPDT (NeurIPS 2023), and what goes beyond it.

The arithmetic is that of classes (`weighting`, `pruning`): here labels become margins of the same size, and margins a
label again. With c the public mean and 2 s twice the public standard deviation, theta = (label - c) / (2 s), which has variance
1/4, as the margin of two even classes has. What is learned about the difference of public and private people, and the
smoothing over the tree, then need no settings of their own.

The paper's estimator (eq. 5), f_j = sum of Y~ U~ / sum of U~ with 0/0 = 0, is lam = 0, prune = "none", rule = "ratio".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldptree.errors import ConfigError, DataError
from ldptree.families.tree_public import PublicLabels, refined
from ldptree.inference.model_uncertainty import model_uncertainty
from ldptree.inference.pruning import NUMBER_PRUNINGS
from ldptree.inference.weighting import (
    Evidence,
    PrivateSums,
    PublicSums,
    check_weighting,
    gather_evidence,
    weigh_evidence,
)
from ldptree.models.tree import NumberLabel, NumberTree, TreeModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]

ROOTS = (0.0, 0.002, 0.02, 0.2)
"""What the variance of the discrepancy at the root may be: numbers differ by more than shares can. The last is for a difference
of about .9 standard deviations of a public label; without it one of .8 was not believed at 3 standard errors."""


def check_settings(*, lam: str | float, prune: str, rule: str) -> None:
    """Everything about a fit that can be refused before anybody is asked.

    Raises:
        ConfigError: lam, prune or rule is not known, or they do not go together.
    """
    if prune not in NUMBER_PRUNINGS:
        raise ConfigError(
            f'prune = "{prune}": for a label that is a number, known are {", ".join(NUMBER_PRUNINGS)}'
        )
    if rule == "ratio" and prune == "smooth":
        raise ConfigError(
            'rule = "ratio" is the paper\'s, and prune = "smooth" is not; set prune = "none" or "fallback"'
        )
    check_weighting(lam, rule)


def fit_regression(
    protocol: Protocol,
    totals: Totals,
    public: PublicLabels,
    *,
    lam: str | float = "learned",
    prune: str = "smooth",
    rule: str = "margin",
    epsilon: float | None = None,
) -> NumberTree:
    """Turn totals into a model: weigh private against public evidence, then smooth.

    Args:
        protocol: what the holders answered; its label is a number.
        totals: the unbiased totals of their reports.
        public: what the public rows say.
        lam: "learned", "auto", or the weight of a public row in private people, from 0 (private alone) to infinity.
        prune: one of `NUMBER_PRUNINGS`.
        rule: "margin", or "ratio", the paper's (`weighting.weigh_by_lam`).
        epsilon: what a holder spent in all rounds, where that is not the protocol's.

    Raises:
        ConfigError: lam, prune or rule is not known, or they do not go together.
        DataError: totals or public labels do not fit the protocol, or nobody reported.
    """
    check_settings(lam=lam, prune=prune, rule=rule)
    if totals.counts.shape != (protocol.n_cells, protocol.n_classes):
        raise DataError(
            f"model: totals of shape {totals.counts.shape}, the protocol's tree and levels are "
            f"{(protocol.n_cells, protocol.n_classes)}"
        )
    if not protocol.numeric:
        raise DataError("model: the protocol's label is a class, not a number")
    if public.count.shape != (protocol.n_cells,):
        raise DataError(f"model: public labels of {public.count.size} cells, the tree has {protocol.n_cells}")
    if totals.n_private < 1:
        raise DataError("model: nobody reported; collect reports first, or fit with lam = inf on public rows")
    scale = 2.0 * public.sd
    evidence = _gather(protocol, totals, public, scale)
    weighted = weigh_evidence(evidence, lam, rule, roots=ROOTS)
    pruned = NUMBER_PRUNINGS[prune](evidence, weighted)
    unsaid = model_uncertainty(evidence, weighted, pruned, NUMBER_PRUNINGS[prune], ROOTS)
    low, high = protocol.label_range
    n_nodes = protocol.partition.n_nodes
    model = TreeModel(
        label=NumberLabel((low, high), public.residual_variance**0.5),
        encoding=protocol.encoding,
        partition=protocol.partition,
        target=protocol.target,
        outside=protocol.outside,
        decision=np.zeros(n_nodes, dtype=np.int32),
        probability=np.empty((n_nodes, 0)),
        estimate=np.clip(public.mean + scale * pruned.theta, low, high)[:, None],
        estimate_sd=scale * np.sqrt(unsaid.of_nodes)[:, None],
        noise_sd=(scale * np.sqrt(evidence.private_noise) / evidence.private_mass)[:, None],
        discrepancy=scale * weighted.discrepancy[:, None],
        discrepancy_sd=scale * np.sqrt(weighted.discrepancy_variance)[:, None],
        mean_discrepancy=np.array([scale * float(weighted.mean_discrepancy)]),
        mean_discrepancy_sd=np.array([scale * unsaid.of_mean**0.5]),
        private_share=weighted.private_share,
        private_total=np.stack(
            [evidence.private_count, evidence.rolled_up(totals.label_sums(_levels(protocol)))], axis=1
        ),
        public_total=np.stack([np.rint(evidence.public_mass), evidence.rolled_up(public.total)], axis=1),
        decided_at=pruned.decided_at.astype(np.int32),
        prune=prune,
        lam=lam if isinstance(lam, str) else float(lam),
        lam_used=weighted.lam,
        epsilon=float(protocol.epsilon if epsilon is None else epsilon),
        mechanism=protocol.mechanism.full_name,
        n_private=totals.n_private,
        n_public=int(public.count.sum()),
        protocol_digest=protocol.digest,
    )
    # Where private reports alone are wanted, or each cell is to stand on its own, public rows have no say below it.
    is_refined = public.finer is not None and prune == "smooth" and lam != 0
    return refined(model, public.finer) if public.finer is not None and is_refined else model


def _levels(protocol: Protocol) -> Floats:
    return np.array(protocol.classes, dtype=np.float64)


def _gather(protocol: Protocol, totals: Totals, public: PublicLabels, scale: float) -> Evidence:
    levels = _levels(protocol)
    private = PrivateSums(
        margin=totals.label_margins(levels, public.mean, scale),
        count=totals.cell_counts,
        margin_noise=totals.cell_variance((levels - public.mean) / scale),
        count_noise=totals.count_variance,
    )
    return gather_evidence(
        protocol.partition,
        private,
        PublicSums(margin=(public.total - public.mean * public.count) / scale, count=public.count),
        n_private=totals.n_inside,
        label_variance=public.inflation * public.residual_variance / scale**2,
        empty_cell_estimate=-public.mean / scale,
    )
