"""HistOfTree and AdHistOfTree as a scikit-learn regressor: some features are public, two randomised reports of every row.

What lives here: the parameters, their checks, and the holders played on this machine. What does not: any arithmetic
(`ldptree.families.histoftree`).
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ldptree.baselines.regression_checks import NoisyRegressor, seed_of
from ldptree.encoding import Encoding
from ldptree.errors import AssumedRangeWarning, ConfigError
from ldptree.estimators.holders import column_names, encoding_between
from ldptree.estimators.range_warnings import warn_of_assumed_features, warn_of_assumed_label
from ldptree.families.family import converse, respond_in_rounds
from ldptree.families.histoftree import BIN_SHIFTS, RELEASES, HistOfTree
from ldptree.limits import MAX_DEPTH, is_number, label_ends
from ldptree.mechanisms.masked import MASKED
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.oracles import Words
from ldptree.partition.masked import CRITERIA, SPLITS
from ldptree.partition.product import MAX_BINS
from ldptree.protocol.ledger import Charge, Ledger, RowRange
from ldptree.protocol.question import AnsweredQuestion, PublicView, Question
from ldptree.validation import (
    check_aligned,
    check_seed,
    check_simulated,
    checked_count,
    checked_epsilon,
    checked_number,
    checked_protects,
    checked_range,
    one_of,
    validated,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]


class HistOfTreeRegressor(NoisyRegressor):
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

    def fit(self, X: ArrayLike, y: ArrayLike, protects: ArrayLike | None = None) -> Self:
        """Ask every row for its label, then for its cell, and fit the model.

        Args:
            X: numbers [n, d], a numpy array or a pandas or polars frame.
            y: labels [n].
            protects: bool [n, d], the mask W: True where a holder protects the feature.

        Raises:
            ConfigError: a parameter is wrong, or the cells would not fit into memory (a ValueError).
            DataError: the rows or the mask are (a ValueError).
        """
        self._check_parameters()
        rows: Floats
        labels: Floats
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=True)
        n, d = rows.shape
        check_aligned("protects", protects, X)
        mask = self._mask(protects, (n, d))
        curator = self._curator(d)
        is_shown = ~mask if self.mask_release == "all" else np.zeros((n, d), dtype=bool)
        _warn_of_range(rows, is_shown, curator.encoding, self.feature_range)
        if self.label_range is None:
            warn_of_assumed_label(-1.0, 1.0)
        points = curator.encoding.encode(rows).astype(np.float64)
        is_seeded = self.random_state is not None
        words = Words.seeded(seed_of(self.random_state)) if is_seeded else Words.system()
        self.ledger_ = Ledger(cap=float(self.epsilon))

        def answer(question: Question, holders: NDArray[np.int64]) -> NDArray[Any]:
            self.ledger_.spend(_charge(question, n))
            return question.randomize(points[holders], labels[holders], mask[holders], words)

        shown = (
            PublicView.of(points, mask)
            if self.mask_release == "all"
            else PublicView(np.zeros((n, d)), np.ones((n, d), dtype=bool))
        )
        self.shape_ = curator.shape(shown)
        self.answers_: list[AnsweredQuestion]
        self.model_, self.answers_ = converse(curator, shown, respond_in_rounds(shown, answer))
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Labels [n] of complete rows [n, d]."""
        check_is_fitted(self)
        return self.model_.predict(validated(self, X, dtype=np.float64, reset=False))

    def _mask(self, protects: ArrayLike | None, shape: tuple[int, int]) -> Mask:
        """W. Raises ConfigError or DataError."""
        if protects is None and self.mask_release != "all":
            raise ConfigError(
                f'mask_release = "{self.mask_release}" hides what each holder protects: give protects=, or leave it out'
            )
        private = self.private_features
        if private is not None:
            private = _columns(private, getattr(self, "feature_names_in_", None), shape[1])
        return checked_protects(protects, private, shape, getattr(self, "feature_names_in_", None))

    def _curator(self, d: int) -> HistOfTree:
        names = getattr(self, "feature_names_in_", None)
        label_low, label_high = label_ends((-1.0, 1.0) if self.label_range is None else self.label_range)
        s, t, p = (None if isinstance(value, str) else int(value) for value in (self.s, self.t, self.p))
        if s is not None and s > d:
            raise ConfigError(f"s = {s}: there are {d} features to bin; choose at most {d}")
        return HistOfTree(
            epsilon=float(self.epsilon),
            encoding=encoding_between(column_names(names, d), *_ends(self.feature_range, d)),
            low=label_low,
            high=label_high,
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
            seed=(
                int.from_bytes(os.urandom(4), "little")
                if self.random_state is None
                else int(check_random_state(_copied(self.random_state)).randint(2**31))
            ),
        )

    def _check_parameters(self) -> None:
        """Everything that can be wrong before a row is looked at. Raises ConfigError."""
        checked_epsilon(self.epsilon)
        check_seed(self.random_state)
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


def _ends(given: tuple[ArrayLike, ArrayLike] | None, d: int) -> tuple[Floats, Floats]:
    """The range of each of d features: 0 to 1 where none is given, as what holders protect cannot tell it."""
    return checked_range((0.0, 1.0) if given is None else given, d)


def _warn_of_range(
    rows: Floats, is_shown: Mask, encoding: Encoding, given: tuple[ArrayLike, ArrayLike] | None
) -> None:
    """Warn of shown values beyond the range, and of a range assumed where nobody shows a value; protected values have no say."""
    columns, d = encoding.columns, rows.shape[1]
    anybody = is_shown.any(axis=0)
    if given is None:
        warn_of_assumed_features([columns[j] for j in np.flatnonzero(~anybody)])
    low, high = _ends(given, d)
    seen = np.where(is_shown, rows, np.nan)
    beyond = [columns[j] for j in np.flatnonzero(((seen < low) | (seen > high)).any(axis=0))]
    if beyond:
        warnings.warn(
            f"feature_range: values that are shown lie beyond it, and are moved to its ends, of {', '.join(beyond)}. Give "
            "feature_range = (low, high), numbers or one for each feature; without it, it is (0, 1), for protected "
            "features too",
            AssumedRangeWarning,
            stacklevel=3,
        )


def _columns(private: Any, names: NDArray[Any] | None, d: int) -> list[int]:
    """Column numbers of features given by number or name. Raises ConfigError."""
    if isinstance(private, str) or not np.iterable(private):
        raise ConfigError(f"private_features must be a list of columns, got {private!r}; write [{private!r}]")
    known = [] if names is None else [str(name) for name in names]
    found = []
    for feature in np.atleast_1d(np.asarray(private, dtype=object)).tolist():
        if isinstance(feature, str):
            if names is None:
                raise ConfigError(
                    f"private_features: {feature!r} is a name, and X has no column names; give numbers"
                )
            one_of("private_features", feature, known)
            found.append(known.index(feature))
        else:
            found.append(checked_count("private_features: a column", feature, low=0, high=d - 1))
    return found


def _charge(question: Question, n: int) -> Charge:
    return Charge(
        question=question.digest,
        epsilon=question.epsilon,
        who=RowRange(source="holders", start=0, stop=n),
        about=question.about,
    )


def _copied(random_state: Any) -> Any:
    """Drawing public coins must not move the holders' generator."""
    if isinstance(random_state, np.random.RandomState):
        copied = np.random.RandomState()
        copied.set_state(random_state.get_state())
        return copied
    return random_state
