"""What the estimators of one tree share: its parameters and their checks, the conversation, and tuning."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ldptree.errors import ConfigError, LdptreeError
from ldptree.estimators.estimator import PublicRowsEstimator
from ldptree.estimators.holders import Conversation, SplitRows, public_seed, target_name
from ldptree.estimators.tuning.candidates import MOST_CANDIDATES, PARAMETERS, TuningSettings
from ldptree.estimators.tuning.choice import Tuning, tune
from ldptree.estimators.tuning.losses import Loss
from ldptree.estimators.tuning.reports import CHOICES as QUESTIONS
from ldptree.inference.algorithm_2 import PaperOptions
from ldptree.inference.weighting import RULES
from ldptree.limits import is_number
from ldptree.mechanisms import CHOICES
from ldptree.partition import PARTITIONS
from ldptree.validation import check_depth, check_lam, check_simulated, one_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from ldptree.encoding import Encoding
    from ldptree.families.tree import LPCT, LPDT
    from ldptree.mechanisms import Mechanism
    from ldptree.partition import Partition
    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.totals import Totals

    Ints = NDArray[np.int64]


class TreeEstimator(PublicRowsEstimator):
    """A tree grown on public rows, with one report of every private row's cell and label."""

    mechanism: Any
    partition: Any
    depth: Any
    lam: Any
    prune: Any
    rule: Any
    outside: Any
    tune: Any
    candidates: Any
    validation_share: Any
    tune_mechanism: Any

    protocol_: Protocol
    totals_: Totals
    partition_: Partition
    mechanism_: Mechanism
    tuning_: Tuning | None

    def _learn(self, rows: SplitRows, seeds: Ints | None) -> None:
        self.tuning_ = None
        if self.tune is None:
            conversation = Conversation.hold(self._family(rows.encoding, seeds), rows, seeds)
            self.model_ = conversation.fit()
        else:
            conversation, self.model_, self.tuning_ = tune(
                self._tuning_settings(),
                lambda settings, coins: self._with(settings)._family(rows.encoding, coins),
                rows,
                self._loss(),
                seeds,
            )
        self.protocol_, self.totals_ = conversation.protocol, conversation.totals
        self.partition_ = self.protocol_.partition
        self.mechanism_ = self.protocol_.mechanism

    @abstractmethod
    def _family(self, encoding: Encoding, seeds: Ints | None) -> LPCT | LPDT:
        """Who asks."""

    @abstractmethod
    def _loss(self) -> Loss:
        """What tuning compares."""

    @abstractmethod
    def _check_reading(self) -> None:
        """Raise ConfigError where lam, prune and rule do not fit together."""

    def _tree_settings(self, encoding: Encoding, seeds: Ints | None) -> dict[str, Any]:
        """The family's settings from the parameters that both estimators have."""
        return {
            "epsilon": float(self.epsilon),
            "heading": {"target": target_name(encoding.columns), "outside": self.outside},
            "mechanism": self.mechanism,
            "partition": self.partition,
            "depth": "auto" if self.depth == "auto" else int(self.depth),
            "seed": public_seed(seeds),
            "lam": self.lam,
            "rule": self.rule,
        }

    def _nodes(self, X: ArrayLike) -> NDArray[np.int32]:
        """The node that speaks for each row, [n]."""
        rows = self._read_rows(X)
        nodes: NDArray[np.int32] = self.model_.nodes(rows)
        return nodes

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of("mechanism", self.mechanism, CHOICES)
        check_simulated(
            "mechanism", self.mechanism, self.random_state, devices=("laplace",), instead="discrete_laplace"
        )
        one_of("partition", self.partition, PARTITIONS)
        one_of("rule", self.rule, RULES)
        one_of("outside", self.outside, ("clip", "drop"))
        check_depth(self.depth)
        check_lam(self.lam)
        self._check_reading()
        self._check_tuning()

    # tuning

    def _tuning_settings(self) -> TuningSettings:
        parameters = self.get_params(deep=False)
        return TuningSettings(
            candidates=self.candidates,
            validation_share=float(self.validation_share),
            choice=self.tune_mechanism,
            parameters=tuple(name for name in PARAMETERS if name in parameters),
        )

    def _with(self, settings: Mapping[str, Any]) -> Any:
        """A shallow copy with a candidate's parameters, not tuned; it shares what was learned from public rows."""
        one = copy.copy(self)
        for name, value in {**settings, "tune": None, "candidates": None}.items():
            setattr(one, name, value)
        return one

    def _check_tuning(self) -> None:
        """Raise ConfigError for what can be wrong of tuning before a row is looked at."""
        if self.tune is None:
            if self.candidates is not None:
                raise ConfigError(
                    'candidates are given and tune is None; set tune = "private", or leave them out'
                )
            return
        one_of("tune", self.tune, ("private",), "or None")
        one_of("tune_mechanism", self.tune_mechanism, QUESTIONS)
        if not (is_number(self.validation_share) and 0 < self.validation_share < 1):
            raise ConfigError(
                f"validation_share must be a number above 0 and below 1, got {self.validation_share!r}"
            )
        candidates = self.candidates
        if candidates is None:
            self._check_one_query("prune")
            return
        if not isinstance(candidates, list | tuple) or not all(isinstance(c, Mapping) for c in candidates):
            raise ConfigError(f"candidates must be a list of dicts of parameters, got {candidates!r}")
        if not 2 <= len(candidates) <= MOST_CANDIDATES:
            raise ConfigError(f"candidates: {len(candidates)} of them; there must be 2 to {MOST_CANDIDATES}")
        for place, candidate in enumerate(candidates):
            self._check_candidate(candidate, f"candidates[{place}]")

    def _check_candidate(self, candidate: Mapping[str, Any], where: str) -> None:
        for name in candidate:
            one_of(f"{where}: a parameter", name, self._tuning_settings().parameters)
        one = self._with(candidate)
        try:
            one._check_parameters()
        except LdptreeError as error:
            raise ConfigError(f"{where}: {error}") from None
        one._check_one_query(f"{where}: prune")

    def _check_one_query(self, where: str) -> None:
        if self.prune == "paper" or isinstance(self.prune, PaperOptions):
            raise ConfigError(
                f'{where}: "paper" asks holders twice and chooses by itself, so it is no candidate; set another, or tune = None'
            )
