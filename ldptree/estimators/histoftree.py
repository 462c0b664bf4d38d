"""HistOfTree and AdHistOfTree as a scikit-learn regressor: some features are public, two randomised reports of every row."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin

from ldptree.coins import Words
from ldptree.errors import ConfigError
from ldptree.estimators.estimator import PublicFeaturesEstimator
from ldptree.estimators.holders import column_names, encoding_between
from ldptree.estimators.range_warnings import (
    warn_of_assumed_features,
    warn_of_assumed_label,
    warn_of_shown_beyond,
)
from ldptree.families.histoftree import BIN_SHIFTS, RELEASES, HistOfTree, HistOfTreeModel
from ldptree.limits import MAX_DEPTH, is_number, label_ends
from ldptree.mechanisms.masked import MASKED
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.partition.masked import CRITERIA, SPLITS
from ldptree.partition.product import MAX_BINS
from ldptree.protocol.question import PublicView
from ldptree.validation import (
    Noisy,
    check_simulated,
    checked_count,
    checked_number,
    checked_protects,
    checked_range,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from ldptree.protocol.question import AnsweredQuestion

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]


class HistOfTreeRegressor(Noisy, RegressorMixin, PublicFeaturesEstimator):  # type: ignore[misc]
    """HistOfTree (Ma, Jia and Yang, AISTATS 2025): a histogram on private features times a tree on public ones.

    Each row is a holder who shows some features, the same for everybody (`private_features`) or chosen by each (`protects`),
    and answers two questions: the label, then the cell. Together they are epsilon-semi-feature LDP (Definition 3.1): whatever
    is shown, no other value of the protected features and the label makes the transcript less likely by more than e^epsilon.
    The paper's label noise, "laplace", is a simulation device (floating point): "optimal_label", the default, has less noise.

    With t = s = p = "auto", the default, it is AdHistOfTree: (15) decides from sizes, epsilon and the mask. With bias_weight
    .01 and t_shift -1, both of the paper's grid, nothing is tuned on data; they were set on the law of section 5.1.

    Args:
        epsilon: the budget of each row, at most 64.
        private_features: columns that everybody protects, by number or name; None: all of them (plain LDP). [] leaves the
            label alone to be protected, which then takes the whole epsilon.
        t: bins a histogram feature, to 254. s: how many features are binned; "auto" is the number of private ones where
            everybody protects the same. p: depth of the tree, at most 62.
        partition: "max-edge" (Algorithm 1) or "cart", scored with noisy labels by the rows that show the feature.
        criterion: of max-edge: "weighted" by size, or "printed" as in Algorithm 1.
        min_samples_leaf: fewest rows that show the feature on either side of a split; 0 (max-edge) splits without rows.
        mechanism: of the cell: "grr" (eqs 16, 17) or "randomized_response" (eqs 5, 8).
        label: of the label: one of `ldptree.mechanisms.numbers.NUMBERS`; floating-point ones, the paper's
            "laplace" among them, are refused without `random_state`.
        rho: the share of epsilon that the cell takes, above 0 and below 1 (the paper's appendix C.1 calls the label's
            share rho). Where cells follow from what is shown, they are not asked for and the label takes all.
        bias_weight: the constant on the second term of (15). t_shift: what is added to t*: -1, 0 or 1.
        mask_release: what is sent of `protects`: "all"; "cells", which sends the cells a holder could be in (section 3.4
            (ii), from which much of the mask can be read); "none", nothing, so that features shown count for nothing.
            The last two look at no shown value and split at random, and (15) supposes that everything is protected.
        label_range: (low, high); labels are clipped to it. None: (-1, 1). It must not come from private labels.
        feature_range: (low, high), numbers or one for each feature, to whose ends values are moved; None: (0, 1). A warning
            tells of values beyond it that are shown; of protected ones nothing does.
        random_state: None draws coins from the operating system. A number makes a simulation that can be repeated, and
            protects nobody.

    Attributes:
        model_: what is released.
        shape_: s, t and p.
        answers_: the published transcript, one entry a round.
        ledger_: what every row spent, on what.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    _is_numeric = True
    model_: HistOfTreeModel

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        private_features: Sequence[int | str] | None = None,
        t: int | str = "auto",
        s: int | str = "auto",
        p: int | str = "auto",
        partition: str = "max-edge",
        criterion: str = "weighted",
        min_samples_leaf: int = 1,
        mechanism: str = "grr",
        label: str = "optimal_label",
        rho: float = 0.5,
        bias_weight: float = 0.01,
        t_shift: int = -1,
        mask_release: str = "all",
        label_range: tuple[float, float] | None = None,
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.private_features: Any = private_features
        self.t: Any = t
        self.s: Any = s
        self.p: Any = p
        self.partition: Any = partition
        self.criterion: Any = criterion
        self.min_samples_leaf: Any = min_samples_leaf
        self.mechanism: Any = mechanism
        self.label: Any = label
        self.rho: Any = rho
        self.bias_weight: Any = bias_weight
        self.t_shift: Any = t_shift
        self.mask_release: Any = mask_release
        self.label_range: Any = label_range
        self.feature_range: Any = feature_range
        self.random_state: Any = random_state

    def predict(self, X: ArrayLike) -> Floats:
        """Labels [n] of complete rows [n, d]."""
        rows = self._read_rows(X)
        return self.model_.predict(rows)

    def _read_labels(self, labels: NDArray[Any]) -> Floats:
        if self.label_range is None:
            warn_of_assumed_label(-1.0, 1.0)
        return labels

    def _read_mask(self, protects: ArrayLike | None, shape: tuple[int, int]) -> Mask:
        if protects is None and self.mask_release != "all":
            raise ConfigError(
                f'mask_release = "{self.mask_release}" hides what each holder protects: give protects=, or leave it out'
            )
        return checked_protects(protects, self._private_columns(shape[1]), shape, self._column_names)

    def _prepare(self, rows: Floats, mask: Mask, seeds: Ints | None) -> tuple[HistOfTree, Floats]:
        family = self._family(rows.shape[1], seeds)
        columns = family.encoding.columns
        low, high = self._ends(len(columns))
        is_shown = ~mask if self.mask_release == "all" else np.zeros_like(mask)
        if self.feature_range is None:
            warn_of_assumed_features([columns[j] for j in np.flatnonzero(~is_shown.any(axis=0))])
        warn_of_shown_beyond(columns, low, high, np.where(is_shown, rows, np.nan))
        return family, family.encoding.encode(rows).astype(np.float64)

    def _view(self, points: Floats, mask: Mask) -> PublicView:
        if self.mask_release == "all":
            return super()._view(points, mask)
        return PublicView(np.zeros_like(points), np.ones_like(mask))

    def _seeded_words(self, seeds: Ints) -> Words:
        return Words.seeded(np.random.SeedSequence(seeds.tolist()))

    def _keep(self, family: HistOfTree, view: PublicView, transcript: list[AnsweredQuestion]) -> None:
        self.shape_ = family.shape(view)
        self.answers_ = transcript

    def _ends(self, d: int) -> tuple[Floats, Floats]:
        """The range of each of d features: 0 to 1 where none is given, as protected values cannot tell it."""
        return checked_range((0.0, 1.0) if self.feature_range is None else self.feature_range, d)

    def _family(self, d: int, seeds: Ints | None) -> HistOfTree:
        low, high = label_ends((-1.0, 1.0) if self.label_range is None else self.label_range)
        s, t, p = (None if isinstance(value, str) else int(value) for value in (self.s, self.t, self.p))
        if s is not None and s > d:
            raise ConfigError(f"s = {s}: there are {d} features to bin; choose at most {d}")
        return HistOfTree(
            epsilon=float(self.epsilon),
            encoding=encoding_between(column_names(self._column_names, d), *self._ends(d)),
            low=low,
            high=high,
            n_binned=s,
            bins=t,
            depth=p,
            bias_weight=float(self.bias_weight),
            bin_shift=int(self.t_shift),
            splits=self.partition,
            criterion=self.criterion,
            min_samples_leaf=int(self.min_samples_leaf),
            mechanism=self.mechanism,
            label=self.label,
            rho=float(self.rho),
            mask_release=self.mask_release,
            seed=int.from_bytes(os.urandom(4), "little") if seeds is None else int(seeds[0]),
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of("partition", self.partition, SPLITS)
        one_of("criterion", self.criterion, CRITERIA)
        one_of("mechanism", self.mechanism, MASKED)
        one_of("label", self.label, NUMBERS)
        devices = [name for name, kind in NUMBERS.items() if kind.is_simulation_device]
        check_simulated("label", self.label, self.random_state, devices=devices, instead="optimal_label")
        one_of("mask_release", self.mask_release, RELEASES)
        for name, low, high in (("t", 1, MAX_BINS), ("s", 0, 2**31), ("p", 0, MAX_DEPTH)):
            value = getattr(self, name)
            if value != "auto" and not (is_number(value, whole=True) and low <= value <= high):
                raise ConfigError(
                    f'{name} must be "auto" or a whole number from {low} to {high}, got {value!r}'
                )
        checked_count("min_samples_leaf", self.min_samples_leaf, low=self.partition == "cart", high=2**31)
        if not is_number(self.rho) or not 0 < self.rho < 1:
            raise ConfigError(
                f"rho, the cell's share of epsilon, must be above 0 and below 1, got {self.rho!r}"
            )
        checked_number("bias_weight", self.bias_weight, low=0, high=1e6, is_open=True)
        if not is_number(self.t_shift, whole=True) or self.t_shift not in BIN_SHIFTS:
            raise ConfigError(f"t_shift must be -1, 0 or 1, got {self.t_shift!r}")
