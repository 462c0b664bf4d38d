"""Totals and public counts into a model: weighting, then pruning, then a decision a node.

The arithmetic of either is in `weighting` and `pruning`; the model as a value is in `model`.

More than two classes have one margin each, class against the rest, weighted and pruned apart; their shares are
normalised and the largest decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.errors import ConfigError, DataError
from ldptree.inference import algorithm_2 as paper_pruning
from ldptree.inference.algorithm_2 import PaperOptions, PaperPruned
from ldptree.inference.depth import termination_depth
from ldptree.inference.model_uncertainty import model_uncertainty
from ldptree.inference.pruning import PRUNINGS
from ldptree.inference.shares import expected_share
from ldptree.inference.weighting import (
    Evidence,
    Weighted,
    check_weighting,
    gather_class_evidence,
    weigh_evidence,
)
from ldptree.models.tree import ClassLabel, ClassTree, TreeModel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.inference.pruning import Pruned
    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]


SECOND_QUERY: dict[str, Any] = {"lam": 0.0, "prune": "none", "rule": "ratio"}
"""How Algorithm 2 reads its second query: private totals alone, undivided."""


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
        prune: one of `PRUNINGS`; or "paper" or its options, LPCT's Algorithm 2, which chooses lam itself.
        rule: "margin", or "ratio", the paper's (`weighting.weigh_by_lam`).
        epsilon: what a holder spent in all rounds, where that is not the protocol's.
        inflation: how much less sure public cells are than their rows say (`public_trust.class_variance_inflation`); a given
            lam, "auto" too, says how far they are trusted.

    Raises:
        ConfigError: lam, prune or rule is not known, or they do not go together.
        DataError: totals or public counts do not fit the protocol, or nobody reported.
    """
    if prune == "paper":
        prune = PaperOptions()
    found = _learn(protocol, totals, public_counts, lam=lam, prune=prune, rule=rule, inflation=inflation)
    return _released(
        protocol,
        totals,
        np.asarray(public_counts, dtype=np.float64),
        found.with_uncertainty(),
        lam=lam,
        prune=prune,
        epsilon=epsilon,
    )


def fit_second_query(
    protocol: Protocol, totals: Totals, public_counts: ArrayLike, *, epsilon: float
) -> ClassTree:
    """The model where LPCT's Algorithm 2 ended with these totals: private ones alone, undivided. As `fit_model`."""
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
        ConfigError, DataError: as `fit_model`.
    """
    prune = PaperOptions() if prune == "paper" else prune
    found = _learn(protocol, totals, public_counts, lam=lam, prune=prune, rule=rule, inflation=inflation)
    if protocol.n_classes > 2:
        found = found.with_uncertainty()
    return _decide(found.pruned, protocol.n_classes)[1]


def check_settings(*, lam: str | float, prune: str | PaperOptions, rule: str, n_classes: int) -> None:
    """Everything about a fit that can be refused before anybody is asked.

    Raises:
        ConfigError: lam, prune or rule is not known, or they do not go together.
    """
    is_paper = isinstance(prune, PaperOptions) or prune == "paper"
    if not is_paper and prune not in PRUNINGS:
        raise ConfigError(f'prune = "{prune}": known are {", ".join(PRUNINGS)}, paper')
    if is_paper and n_classes > 2:
        raise ConfigError(f'prune = "paper" is for two classes, found {n_classes}; set prune = "smooth"')
    if rule == "ratio" and prune in ("smooth", "variance"):
        raise ConfigError(
            f'rule = "ratio" is the paper\'s, and prune = "{prune}" is not; set prune = "none" or "paper"'
        )
    check_weighting("auto" if is_paper else lam, rule)


def needs_second_query(
    protocol: Protocol, totals: Totals, public_counts: ArrayLike, options: PaperOptions
) -> bool:
    """Whether Algorithm 2 terminates on these totals: its second query, with the other half of epsilon, is to be asked.

    Raises:
        ConfigError: there are more than two classes.
        DataError: as `fit_model`.
    """
    if not options.termination:
        return False
    check_settings(lam="auto", prune=options, rule="ratio", n_classes=protocol.n_classes)
    evidence = _gather(protocol, totals, public_counts)
    return _algorithm_2(protocol, evidence, options, totals.n_private).is_terminated


@dataclass(frozen=True)
class _Learned:
    """What was learned of each margin. `pruning`: by which rule; None where Algorithm 2 chose it."""

    evidence: Sequence[Evidence]
    weighted: Sequence[Weighted]
    pruned: Sequence[Pruned]
    pruning: Callable[[Evidence, Weighted], Pruned] | None

    def with_uncertainty(self) -> _Learned:
        """The same, as unsure as its evidence is of how far public rows go. It takes longer than the learning."""
        if self.pruning is None:
            return self
        doubts = [
            model_uncertainty(e, w, p, self.pruning)
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
    check_settings(lam=lam, prune=prune, rule=rule, n_classes=protocol.n_classes)
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
    shape = (protocol.n_cells, protocol.n_classes)
    for name, array in (("totals", totals.counts), ("public counts", public)):
        if array.shape != shape:
            raise DataError(
                f"model: {name} have shape {array.shape}, the protocol's tree and classes {shape}"
            )
    if totals.n_private < 1:
        raise DataError("model: nobody reported; collect reports first, or fit with lam = inf on public rows")
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


def _released(
    protocol: Protocol,
    totals: Totals,
    public: Floats,
    found: _Learned,
    *,
    lam: str | float,
    prune: str | PaperOptions,
    epsilon: float | None,
) -> ClassTree:
    n_classes = protocol.n_classes
    evidence, weighted, pruned = found.evidence, found.weighted, found.pruned
    probability, decision = _decide(pruned, n_classes)

    def rolled_up(counts: Floats) -> Floats:
        return np.stack([evidence[0].rolled_up(column) for column in counts.T], axis=1)

    def each(values: Any) -> Floats:
        return np.stack([np.asarray(v, dtype=np.float64) for v in values], axis=1)

    return TreeModel(
        label=ClassLabel(protocol.classes),
        encoding=protocol.encoding,
        partition=protocol.partition,
        target=protocol.target,
        outside=protocol.outside,
        decision=decision.astype(np.int32),
        probability=probability,
        estimate=each(p.theta for p in pruned),
        estimate_sd=each(np.sqrt(p.variance) for p in pruned),
        noise_sd=each(np.sqrt(e.private_noise) / e.private_mass for e in evidence),
        discrepancy=each(w.discrepancy for w in weighted),
        discrepancy_sd=each(np.sqrt(w.discrepancy_variance) for w in weighted),
        mean_discrepancy=np.array([w.mean_discrepancy for w in weighted]),
        mean_discrepancy_sd=np.sqrt([w.mean_discrepancy_variance for w in weighted]),
        private_share=each(w.private_share for w in weighted).mean(axis=1),
        private_total=rolled_up(totals.counts),
        public_total=rolled_up(public).astype(np.int64),
        decided_at=pruned[0].decided_at.astype(np.int32),
        prune="paper" if isinstance(prune, PaperOptions) else prune,
        lam="paper" if isinstance(prune, PaperOptions) else lam if isinstance(lam, str) else float(lam),
        lam_used=weighted[0].lam,
        epsilon=float(protocol.epsilon if epsilon is None else epsilon),
        mechanism=protocol.mechanism.full_name,
        n_private=totals.n_private,
        n_public=int(public.sum()),
        protocol_digest=protocol.digest,
    )


def _decide(pruned: Sequence[Pruned], n_classes: int) -> tuple[Floats, NDArray[np.int64]]:
    """Shares and decision of each node; two classes: class 1 where its margin is positive (LPCT eq. 8)."""
    shares = [expected_share(p.theta + 1.0 / n_classes, np.sqrt(p.variance)) for p in pruned]
    if n_classes == 2:
        return np.stack([1.0 - shares[0], shares[0]], axis=1), (pruned[0].theta > 0).astype(np.int64)
    stacked = np.stack(shares, axis=1)
    probability = stacked / stacked.sum(axis=1, keepdims=True)
    return probability, probability.argmax(axis=1)
