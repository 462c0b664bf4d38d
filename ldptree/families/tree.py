"""LPCT and LPDT: a tree grown on public rows, and one report of every holder's cell and label.

LPCT (Ma and Yang, JMLR 2024) learns classes; its Algorithm 2 may ask a second time. LPDT (Ma, Zhang, Cai and Yang, NeurIPS 2023)
learns numbers. How totals become a model is in `tree_fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.coins import left_of
from ldptree.errors import ConfigError
from ldptree.families.family import Counted, OneTreeFamily, PublicRows, Published
from ldptree.families.settings import Collection, LPCTSettings, LPDTSettings
from ldptree.families.tree_fit import fit_model, fit_regression, fit_second_query, needs_second_query
from ldptree.families.tree_public import PublicLabels, public_labels
from ldptree.inference.depth import (
    NumberDepths,
    automatic_depth,
    default_min_samples_leaf,
    number_depths,
    number_levels,
    paper_depth,
    relative_sd,
    termination_depth,
)
from ldptree.inference.public_trust import class_variance_inflation
from ldptree.limits import check_memory
from ldptree.mechanisms import adds_noise_to_every_cell, mechanism_for, number_mechanism_for
from ldptree.partition import grow_partition
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.stochastic_rounding import label_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.models.tree import ClassTree, NumberTree
    from ldptree.partition import Partition


@dataclass(frozen=True, kw_only=True)
class TreeFamily:
    """The inputs of a family of one tree besides its settings.

    Attributes:
        epsilon: of each holder, over all questions.
        heading: what the protocol says besides, as keyword arguments of `Protocol`: its target at least.
        mechanism: one of `ldptree.mechanisms.CHOICES`.
        seed: of public coins, where the partition tosses any.
        frozen: a question that was published before; it is asked as it is.
    """

    epsilon: float
    heading: Mapping[str, Any]
    mechanism: str = "auto"
    seed: int = 0
    frozen: Protocol | None = None

    def expect(self, view: PublicRows, n_private: int) -> PublicRows:
        """See `OneTreeFamily`."""
        return replace(view, n_private=n_private)


@dataclass(frozen=True, eq=False)
class ClassEvidence:
    """The public rows' part in reading a question about classes.

    Attributes:
        counts: int64 [L, C], public rows of each cell and class.
        inflation: how much less sure public cells are than their rows say (`public_trust.class_variance_inflation`).
    """

    counts: NDArray[np.int64]
    _inflate: Callable[[], float]

    @cached_property
    def inflation(self) -> float:
        """See the class. It takes several trees to find out, so it is computed where it is needed."""
        return self._inflate()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"counts": self.counts.tolist(), "inflation": self.inflation}


@dataclass(frozen=True, kw_only=True)
class LPCT(TreeFamily, LPCTSettings, OneTreeFamily[PublicRows, ClassEvidence, "ClassTree"]):
    """Classes.

    Attributes:
        has_positive: the second of two classes is the one that is looked for.
    """

    has_positive: bool = False

    @property
    def fit_arguments(self) -> dict[str, Any]:
        """The settings by which totals become a model, as `fit_model` takes them."""
        return {"lam": self.lam, "prune": self.algorithm_2 or self.prune, "rule": self.rule}

    def ask(
        self, view: PublicRows, transcript: Sequence[Counted[ClassEvidence]]
    ) -> Published[ClassEvidence] | None:
        """The question about the tree; after its answers a second one, where Algorithm 2 terminates.

        Raises:
            ConfigError: the settings are not for so many classes.
        """
        if not transcript:
            collection = Collection(mechanism=self.mechanism, n_classes=len(view.label))
            if refusals := self.refusals(collection):
                raise ConfigError("\n".join(refusals))
            depth = self.depth_for(view) if self.frozen is None else self.frozen.partition.max_depth
            share = self.algorithm_2.share_of_first_query if self.algorithm_2 else 1.0
            protocol = self.frozen or self._protocol(view, depth, self.epsilon * share, 1)
            return self._published(view, protocol, depth)
        first = transcript[0]
        if len(transcript) > 1 or self.algorithm_2 is None:
            return None
        (totals,) = first.totals
        if not needs_second_query(first.protocol, totals, first.published.evidence.counts, self.algorithm_2):
            return None
        depth = termination_depth(view.encoding.n_encoded, totals.n_private, self.epsilon)
        rest = left_of(self.epsilon, first.protocol.epsilon)
        return self._published(view, self._protocol(view, depth, rest, 2), depth)

    def fit(self, view: PublicRows, transcript: Sequence[Counted[ClassEvidence]]) -> ClassTree:
        """See `fit_model`. The second question's answers stand alone."""
        last = transcript[-1]
        (totals,) = last.totals
        evidence = last.published.evidence
        epsilon = sum(each.protocol.epsilon for each in transcript)
        if len(transcript) > 1:
            return fit_second_query(last.protocol, totals, evidence.counts, epsilon=epsilon)
        return fit_model(
            last.protocol,
            totals,
            evidence.counts,
            **self.fit_arguments,
            epsilon=epsilon,
            inflation=evidence.inflation if self.lam == "learned" else 1.0,
        )

    def read_evidence(self, data: Mapping[str, Any], protocol: Protocol) -> ClassEvidence:
        """See `OneTreeFamily`."""
        return ClassEvidence(np.array(data["counts"], dtype=np.int64), lambda: float(data["inflation"]))

    def depth_for(self, view: PublicRows) -> int:
        """Return the depth of the deepest cell where `view.n_private` holders are asked."""
        if self.depth != "auto":
            return self.depth
        d, n = view.encoding.n_encoded, view.n_private
        if self.algorithm_2:
            return paper_depth(d, n, len(view.y), self.epsilon)
        return automatic_depth(d, n, self.epsilon, len(view.label), self.mechanism)

    def _protocol(self, view: PublicRows, depth: int, epsilon: float, number: int) -> Protocol:
        tree = self._grow(view.X, view.y, depth=depth, n_classes=len(view.label))
        check_memory(tree.n_leaves, len(view.label))
        mechanism = mechanism_for(self.mechanism, epsilon, tree.n_leaves, len(view.label))
        return Protocol(
            encoding=view.encoding,
            partition=tree,
            classes=view.label,
            positive=view.label[1] if self.has_positive else None,
            mechanism=mechanism,
            epsilon=epsilon,
            round=number,
            **{"simulation": mechanism.is_simulation_device, **self.heading},
        )

    def _published(self, view: PublicRows, protocol: Protocol, depth: int) -> Published[ClassEvidence]:
        counts = partial(protocol.partition.class_counts, view.X, view.y, len(view.label))
        return Published(protocol, lambda: ClassEvidence(counts(), partial(self._inflate, view, depth)))

    def _inflate(self, view: PublicRows, depth: int) -> float:
        if self.algorithm_2:
            return 1.0  # it takes public cells at their word
        n_classes = len(view.label)
        regrow = partial(self._grow, depth=depth, n_classes=n_classes)
        return class_variance_inflation(self.partition, view.X, view.y, n_classes, regrow)

    def _grow(self, X: NDArray[np.float32], y: NDArray[Any], *, depth: int, n_classes: int) -> Partition:
        least = default_min_samples_leaf(
            "classes",
            len(X),
            wanted=self.min_samples_leaf,
            partition=self.partition,
            is_paper=self.algorithm_2 is not None,
        )
        return grow_partition(
            X,
            y,
            kind=self.partition,
            depth=depth,
            n_classes=n_classes,
            min_samples_leaf=least,
            stop_empty=self.algorithm_2.stop_empty
            if self.algorithm_2
            else adds_noise_to_every_cell(self.mechanism),
            seed=self.seed,
        )


@dataclass(frozen=True, kw_only=True)
class LPDT(TreeFamily, LPDTSettings, OneTreeFamily[PublicRows, PublicLabels, "NumberTree"]):
    """Numbers."""

    @property
    def fit_arguments(self) -> dict[str, Any]:
        """The settings by which totals become a model, as `fit_regression` takes them."""
        return {"lam": self.lam, "prune": self.prune, "rule": self.rule}

    def ask(
        self, view: PublicRows, transcript: Sequence[Counted[PublicLabels]]
    ) -> Published[PublicLabels] | None:
        """The question about the tree."""
        if transcript:
            return None
        depths = self.depths_for(view)
        protocol = self.frozen or self._protocol(view, depths.asked)
        regrow = partial(self._grow, len(view.y))
        ends = (float(view.label[0]), float(view.label[1]))
        return Published(
            protocol,
            lambda: public_labels(protocol.partition, view.X, view.y, ends, grow=regrow, depths=depths),
        )

    def fit(self, view: PublicRows, transcript: Sequence[Counted[PublicLabels]]) -> NumberTree:
        """See `fit_regression`."""
        (only,) = transcript
        (totals,) = only.totals
        return fit_regression(only.protocol, totals, only.published.evidence, **self.fit_arguments)

    def depth_for(self, view: PublicRows) -> int:
        """Return the depth of the deepest cell where `view.n_private` holders are asked."""
        return self.depths_for(view).asked

    def read_evidence(self, data: Mapping[str, Any], protocol: Protocol) -> PublicLabels:
        """See `OneTreeFamily`."""
        return PublicLabels.from_json(data)

    def depths_for(self, view: PublicRows) -> NumberDepths:
        """Return the depth of the tree that is asked about, and the depth to which public rows split its cells further."""
        depths = self._depths(view)
        if self.frozen is None:
            return depths
        asked = self.frozen.partition.max_depth
        is_parted = self.depth == "auto" and self.partition == "cart"
        return NumberDepths(asked=asked, whole=max(asked, depths.whole) if is_parted else asked)

    def _depths(self, view: PublicRows) -> NumberDepths:
        if self.depth != "auto":
            return NumberDepths(asked=self.depth, whole=self.depth)
        return number_depths(
            view.encoding.n_encoded,
            view.n_private,
            self.epsilon,
            mechanism=self.mechanism,
            partition=self.partition,
            n_public=len(view.y),
            min_samples_leaf=self._fewest(len(view.y)),
            label_sd=relative_sd(view.y, (float(view.label[0]), float(view.label[1]))),
        )

    def _protocol(self, view: PublicRows, depth: int) -> Protocol:
        ends = (float(view.label[0]), float(view.label[1]))
        tree = self._grow(len(view.y), view.X, view.y, depth=depth)
        n_levels = number_levels(self.mechanism, self.epsilon, tree.n_leaves, view.y, ends)
        check_memory(tree.n_leaves, n_levels)
        mechanism = number_mechanism_for(self.mechanism, self.epsilon, tree.n_leaves, n_levels, rho=self.rho)
        return Protocol(
            encoding=view.encoding,
            partition=tree,
            classes=label_levels(*ends, mechanism.n_classes),
            positive=None,
            mechanism=mechanism,
            epsilon=self.epsilon,
            numeric=True,
            **{"simulation": mechanism.is_simulation_device, **self.heading},
        )

    def _grow(self, n_public: int, X: NDArray[np.float32], y: NDArray[Any], *, depth: int) -> Partition:
        return grow_partition(
            X,
            y,
            kind=self.partition,
            depth=depth,
            n_classes=2,
            criterion="variance",
            min_samples_leaf=self._fewest(n_public),
            stop_empty=adds_noise_to_every_cell(self.mechanism),
            seed=self.seed,
        )

    def _fewest(self, n_public: int) -> int:
        return default_min_samples_leaf("numbers", n_public, wanted=self.min_samples_leaf)
