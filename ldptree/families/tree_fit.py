"""Totals and public rows into a tree: weighting, then pruning, then an answer a node.

The arithmetic of either is in `weighting` and `pruning`; the model as a value is in `models.tree`.

More than two classes have one margin each, class against the rest, weighted and pruned apart; their shares are
normalised and the largest decides.

Numbers (LPDT, NeurIPS 2023, and what goes beyond it) have the arithmetic of classes: labels become margins of the same size, and
margins a label again. With c the public mean and 2 s twice the public standard deviation, theta = (label - c) / (2 s), which has
variance 1/4, as the margin of two even classes has. What is learned about the difference of public and private people, and the
smoothing over the tree, then need no settings of their own. The paper's estimator (eq. 5), f_j = sum of Y~ U~ / sum of U~ with
0/0 = 0, is lam = 0, prune = "none", rule = "ratio".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.errors import DataError
from ldptree.families.settings import PaperOptions
from ldptree.families.tree_public import PublicLabels, refined
from ldptree.inference import algorithm_2 as paper_pruning
from ldptree.inference.algorithm_2 import PaperPruned
from ldptree.inference.depth import termination_depth
from ldptree.inference.discrepancy import ROOT_GRID
from ldptree.inference.model_uncertainty import model_uncertainty
from ldptree.inference.pruning import NUMBER_PRUNINGS, PRUNINGS
from ldptree.inference.shares import expected_share
from ldptree.inference.weighting import (
    Evidence,
    PrivateSums,
    PublicSums,
    Weighted,
    gather_class_evidence,
    gather_evidence,
    weigh_evidence,
)
from ldptree.models.tree import ClassLabel, ClassTree, NumberLabel, NumberTree, TreeModel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.inference.pruning import Pruned
    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]


SECOND_QUERY: dict[str, Any] = {"lam": 0.0, "prune": "none", "rule": "ratio"}
"""Reading of Algorithm 2's second query, which takes private totals alone, undivided."""

ROOTS = (0.0, 0.002, 0.02, 0.2)
"""Variances that the discrepancy at the root may have, as numbers differ by more than shares can. The last is for a
difference of about .9 standard deviations of a public label; without it one of .8 was not believed at 3 standard
errors.
"""


def fit_model(
    protocol: Protocol,
    totals: Totals,
    public_counts: ArrayLike,
    *,
    lam: str | float = "learned",
    prune: str | PaperOptions = "smooth",
    rule: str = "margin",
    epsilon: float | None = None,
    inflation: float = 1.0,
) -> ClassTree:
    """Turn totals into a model: weigh private against public evidence, then prune.

    Args:
        protocol: what the holders answered.
        totals: the unbiased totals of their reports.
        public_counts: int [L, C] public rows of each cell and class.
        lam: "learned", "auto", or the weight of a public row in private people, from 0 (private alone) to
            infinity (public alone).
        prune: one of `PRUNINGS`; or the switches of LPCT's Algorithm 2, which chooses lam itself.
        rule: "margin", or "ratio", the paper's (`weighting.weigh_by_lam`).
        epsilon: what a holder spent in all rounds, where that is not the protocol's.
        inflation: how much less sure public cells are than their rows say (`public_trust.class_variance_inflation`); a given
            lam, "auto" too, says how far they are trusted.

    Raises:
        DataError: totals or public counts do not fit the protocol, or nobody reported.
    """
    learned = _learn(protocol, totals, public_counts, lam=lam, prune=prune, rule=rule, inflation=inflation)
    learned = learned.with_uncertainty()
    public, levels = np.asarray(public_counts, dtype=np.float64), learned.evidence[0]
    probability, decision = _decide(learned.pruned, protocol.n_classes)

    def rolled_up(counts: Floats) -> Floats:
        return np.stack([levels.rolled_up(column) for column in counts.T], axis=1)

    return _release(
        protocol,
        totals,
        learned,
        lam=lam,
        prune=prune,
        epsilon=epsilon,
        label=ClassLabel(protocol.classes),
        decision=decision.astype(np.int32),
        probability=probability,
        estimate=np.stack([p.theta for p in learned.pruned], axis=1),
        mean_discrepancy_sd=np.sqrt([w.mean_discrepancy_variance for w in learned.weighted]),
        private_total=rolled_up(totals.counts),
        public_total=rolled_up(public).astype(np.int64),
        n_public=int(public.sum()),
    )


def fit_second_query(
    protocol: Protocol, totals: Totals, public_counts: ArrayLike, *, epsilon: float
) -> ClassTree:
    """Return the model if LPCT's Algorithm 2 ended with these totals, from private ones alone. As `fit_model`."""
    model = fit_model(protocol, totals, public_counts, **SECOND_QUERY, epsilon=epsilon)
    return replace(model, prune="paper", lam="paper")


def decide_nodes(
    protocol: Protocol,
    totals: Totals,
    public_counts: ArrayLike,
    *,
    lam: str | float = "learned",
    prune: str | PaperOptions = "smooth",
    rule: str = "margin",
    inflation: float = 1.0,
) -> NDArray[np.int64]:
    """[nodes] The class that `fit_model`, with these settings, decides for in each node.

    Of two classes in less than half of its time: how sure a margin is does not move its sign.

    Raises:
        DataError: as `fit_model`.
    """
    fitted = _learn(protocol, totals, public_counts, lam=lam, prune=prune, rule=rule, inflation=inflation)
    if protocol.n_classes > 2:
        fitted = fitted.with_uncertainty()
    return _decide(fitted.pruned, protocol.n_classes)[1]


def needs_second_query(
    protocol: Protocol, totals: Totals, public_counts: ArrayLike, options: PaperOptions
) -> bool:
    """Return whether Algorithm 2 terminates on these totals, so that its second query, with the other half of epsilon, is to be
    asked.

    Raises:
        DataError: as `fit_model`.
    """
    if not options.termination:
        return False
    evidence = _gather(protocol, totals, public_counts)
    return _algorithm_2(protocol, evidence, options, totals.n_private).is_terminated


@dataclass(frozen=True)
class _Learned:
    """The weights and prunings learned of each margin. `pruning` is the rule, or None if Algorithm 2 chose it."""

    evidence: Sequence[Evidence]
    weighted: Sequence[Weighted]
    pruned: Sequence[Pruned]
    pruning: Callable[[Evidence, Weighted], Pruned] | None
    roots: Sequence[float] = ROOT_GRID

    def with_uncertainty(self) -> _Learned:
        """The same, as unsure as its evidence is of how far public rows go. It takes longer than the learning."""
        if self.pruning is None:
            return self
        doubts = [
            model_uncertainty(e, w, p, self.pruning, self.roots)
            for e, w, p in zip(self.evidence, self.weighted, self.pruned, strict=True)
        ]
        return replace(
            self,
            pruned=[replace(p, variance=d.of_nodes) for p, d in zip(self.pruned, doubts, strict=True)],
            weighted=[
                replace(w, mean_discrepancy_variance=d.of_mean)
                for w, d in zip(self.weighted, doubts, strict=True)
            ],
        )


def _learn(
    protocol: Protocol,
    totals: Totals,
    public_counts: ArrayLike,
    *,
    lam: str | float,
    prune: str | PaperOptions,
    rule: str,
    inflation: float,
) -> _Learned:
    evidence = _gather(protocol, totals, public_counts, inflation if lam == "learned" else 1.0)
    if isinstance(prune, PaperOptions):
        weighted = [weigh_evidence(e, 0.0, rule) for e in evidence]
        return _Learned(
            evidence, weighted, [_algorithm_2(protocol, evidence, prune, totals.n_private).pruned], None
        )
    weighted = [weigh_evidence(e, lam, rule) for e in evidence]
    pruning = PRUNINGS[prune]
    pruned = [pruning(e, w) for e, w in zip(evidence, weighted, strict=True)]
    return _Learned(evidence, weighted, pruned, pruning)


def _gather(
    protocol: Protocol, totals: Totals, public_counts: ArrayLike, inflation: float = 1.0
) -> list[Evidence]:
    """The evidence of class 1 of two, or of every class of more."""
    public = np.asarray(public_counts, dtype=np.float64)
    _check_fits(protocol, totals, public.shape, (protocol.n_cells, protocol.n_classes))
    n_classes = protocol.n_classes
    count_noise = totals.cell_variance(np.ones(n_classes))

    def evidence_of(k: int) -> Evidence:
        weights = np.eye(n_classes)[k] - 1.0 / n_classes
        return gather_class_evidence(
            protocol.partition,
            private=totals.counts,
            margin_noise=totals.cell_variance(weights),
            mass_noise=count_noise,
            public=public,
            n_private=totals.n_inside,
            class_index=k,
            inflation=inflation,
        )

    return [evidence_of(k) for k in ([1] if n_classes == 2 else range(n_classes))]


def _check_fits(
    protocol: Protocol, totals: Totals, public: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    """Raise DataError where totals or public rows, of shape `public`, are not of the protocol's tree and classes."""
    of_totals = protocol.n_cells, protocol.n_classes
    for name, shape, own in (("totals", totals.counts.shape, of_totals), ("public rows", public, expected)):
        if shape != own:
            raise DataError(f"model: {name} have shape {shape}, the protocol's tree and classes {own}")
    if totals.n_private < 1:
        raise DataError("model: nobody reported; collect reports first, or fit with lam = inf on public rows")


def _algorithm_2(
    protocol: Protocol, evidence: Sequence[Evidence], options: PaperOptions, n_private: int
) -> PaperPruned:
    (only,) = evidence
    d, whole = protocol.encoding.n_encoded, protocol.epsilon / options.share_of_first_query
    return paper_pruning.prune(
        only,
        epsilon=protocol.epsilon,
        n_public=round(float(only.public_mass[0])),
        termination_depth=termination_depth(d, n_private, whole),
        options=options,
    )


def _release(
    protocol: Protocol,
    totals: Totals,
    learned: _Learned,
    *,
    lam: str | float,
    prune: str | PaperOptions,
    epsilon: float | None,
    scale: float = 1.0,
    **own: Any,
) -> TreeModel[Any]:
    """The model of what was learned. `scale`: of a margin, in units of the label; `own`: what classes and numbers have each."""
    evidence, weighted, pruned = learned.evidence, learned.weighted, learned.pruned

    def each(values: Iterable[Any]) -> Floats:
        return scale * np.stack([np.asarray(v, dtype=np.float64) for v in values], axis=1)

    return TreeModel(
        encoding=protocol.encoding,
        partition=protocol.partition,
        target=protocol.target,
        outside=protocol.outside,
        estimate_sd=each(np.sqrt(p.variance) for p in pruned),
        noise_sd=np.stack([scale * np.sqrt(e.private_noise) / e.private_mass for e in evidence], axis=1),
        discrepancy=each(w.discrepancy for w in weighted),
        discrepancy_sd=each(np.sqrt(w.discrepancy_variance) for w in weighted),
        mean_discrepancy=scale * np.array([w.mean_discrepancy for w in weighted]),
        private_share=np.stack([w.private_share for w in weighted], axis=1).mean(axis=1),
        decided_at=pruned[0].decided_at.astype(np.int32),
        prune="paper" if isinstance(prune, PaperOptions) else prune,
        lam="paper" if isinstance(prune, PaperOptions) else lam if isinstance(lam, str) else float(lam),
        lam_used=weighted[0].lam,
        epsilon=float(protocol.epsilon if epsilon is None else epsilon),
        mechanism=protocol.mechanism.full_name,
        n_private=totals.n_private,
        protocol_digest=protocol.digest,
        **own,
    )


def _decide(pruned: Sequence[Pruned], n_classes: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return shares and decisions of nodes. Class 1 of two is decided by a positive margin (LPCT eq. 8)."""
    shares = [expected_share(p.theta + 1.0 / n_classes, np.sqrt(p.variance)) for p in pruned]
    if n_classes == 2:
        return np.stack([1.0 - shares[0], shares[0]], axis=1), (pruned[0].theta > 0).astype(np.int64)
    stacked = np.stack(shares, axis=1)
    probability = stacked / stacked.sum(axis=1, keepdims=True)
    return probability, probability.argmax(axis=1)


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
        DataError: totals or public labels do not fit the protocol, or nobody reported.
    """
    if not protocol.numeric:
        raise DataError("model: the protocol's label is a class, not a number")
    _check_fits(protocol, totals, public.count.shape, (protocol.n_cells,))
    scale = 2.0 * public.sd
    evidence = _gather_numbers(protocol, totals, public, scale)
    weighted = weigh_evidence(evidence, lam, rule, roots=ROOTS)
    pruning = NUMBER_PRUNINGS[prune]
    learned = _Learned([evidence], [weighted], [pruning(evidence, weighted)], pruning, ROOTS)
    learned = learned.with_uncertainty()
    low, high = protocol.label_range
    n_nodes = protocol.partition.n_nodes
    model: NumberTree = _release(
        protocol,
        totals,
        learned,
        lam=lam,
        prune=prune,
        epsilon=epsilon,
        scale=scale,
        label=NumberLabel((low, high), public.residual_variance**0.5),
        decision=np.zeros(n_nodes, dtype=np.int32),
        probability=np.empty((n_nodes, 0)),
        estimate=np.clip(public.mean + scale * learned.pruned[0].theta, low, high)[:, None],
        mean_discrepancy_sd=np.array([scale * learned.weighted[0].mean_discrepancy_variance ** 0.5]),
        private_total=np.stack(
            [evidence.private_count, evidence.rolled_up(totals.label_sums(_levels(protocol)))], axis=1
        ),
        public_total=np.stack([np.rint(evidence.public_mass), evidence.rolled_up(public.total)], axis=1),
        n_public=int(public.count.sum()),
    )
    # Where private reports alone are wanted, or each cell is to stand on its own, public rows have no say below it.
    is_refined = public.finer is not None and prune == "smooth" and lam != 0
    return refined(model, public.finer) if public.finer is not None and is_refined else model


def _levels(protocol: Protocol) -> Floats:
    return np.array(protocol.classes, dtype=np.float64)


def _gather_numbers(protocol: Protocol, totals: Totals, public: PublicLabels, scale: float) -> Evidence:
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
