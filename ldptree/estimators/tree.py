"""The base of the estimators of one tree, with its parameters and their checks, the conversation, and tuning."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ldptree.errors import ConfigError, LdptreeError
from ldptree.estimators.estimator import PublicRowsEstimator
from ldptree.estimators.holders import Conversation, SplitRows, public_seed, target_name
from ldptree.estimators.tuning import MOST_CANDIDATES, PARAMETERS, Tuning, tune
from ldptree.families.settings import Collection, Mechanism
from ldptree.settings import Limits, Settings
from ldptree.validation import one_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from ldptree.encoding import Encoding
    from ldptree.families.settings import LPCTSettings, LPDTSettings
    from ldptree.families.tree import LPCT, LPDT
    from ldptree.mechanisms import Mechanism as AnyMechanism
    from ldptree.partition import Partition
    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class TreeReports(Settings):
    """The reports of private rows, and how the tree's settings are chosen by them."""

    mechanism: Mechanism = "auto"
    """An oracle's name for the joint report of cell and label over it ("auto": the quieter of grr and oue); "signed_subset" for
    two classes, or the two ends of a range, with less noise of their difference; "discrete_laplace" or "randomized_response" for
    the papers'; "laplace" to compare with (a simulation device, refused without `random_state`).
    """
    outside: Literal["clip", "drop"] = "clip"
    """Private values out of range are moved to the border ("clip"), or their row reports "outside" ("drop")."""
    feature_range: Any = None
    """(low, high), numbers or one for each feature; None: of the public rows, or (0, 1) without any."""
    candidates: Any = None
    """None, or dicts of the parameters that form or read the tree: a share of the private rows does not train, and chooses among
    them by one private report each of their errors (docs/measured/tuning.md).
    """
    validation_share: Annotated[float, Limits(above=0, below=1)] = 0.2
    """Of the private rows, where there are candidates."""


class TreeEstimator(PublicRowsEstimator):
    """A tree grown on public rows, with one report of every private row's cell and label."""

    prune: Any
    outside: Any
    mechanism: Any
    candidates: Any
    validation_share: Any

    protocol_: Protocol
    totals_: Totals
    partition_: Partition
    mechanism_: AnyMechanism
    tuning_: Tuning | None

    def _learn(self, rows: SplitRows, seeds: Ints | None) -> None:
        self.tuning_ = None
        if self.candidates is None:
            conversation = Conversation.hold(self._family(rows.encoding, seeds), rows, seeds)
            self.model_ = conversation.fit()
        else:
            conversation, self.model_, self.tuning_ = tune(
                self.candidates,
                lambda settings, coins: self._with(settings)._family(rows.encoding, coins),
                self._errors_of,
                self._largest_error,
                rows,
                validation_share=float(self.validation_share),
                seeds=seeds,
            )
        self.protocol_, self.totals_ = conversation.protocol, conversation.totals
        self.partition_ = self.protocol_.partition
        self.mechanism_ = self.protocol_.mechanism

    @abstractmethod
    def _family(self, encoding: Encoding, seeds: Ints | None) -> LPCT | LPDT:
        """Return the family that asks."""

    @abstractmethod
    def _errors_of(self, model: Any, rows: SplitRows) -> Floats:
        """Float64 [n], how far a candidate is off on each private row; labels beyond the range count as its ends."""

    @property
    @abstractmethod
    def _largest_error(self) -> float:
        """The most that a candidate can be off."""

    def _inputs(self, encoding: Encoding, seeds: Ints | None) -> dict[str, Any]:
        """The family's arguments from the parameters that both estimators have."""
        settings: LPCTSettings | LPDTSettings = self._read(self._family_settings)  # type: ignore[assignment]
        return settings.values | {
            "epsilon": float(self.epsilon),
            "heading": {"target": target_name(encoding.columns), "outside": self.outside},
            "mechanism": self.mechanism,
            "seed": public_seed(seeds),
        }

    def _nodes(self, X: ArrayLike) -> NDArray[np.int32]:
        """The node that speaks for each row, [n]."""
        rows = self._read_rows(X)
        nodes: NDArray[np.int32] = self.model_.nodes(rows)
        return nodes

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_devices({"mechanism": ("laplace", "discrete_laplace")})
        self._check_tuning()

    def _check_classes(self, n_classes: int) -> None:
        """Raise ConfigError where so many classes are not for these settings."""
        collection = Collection(mechanism=self.mechanism, n_classes=n_classes)
        if refusals := self._read(self._family_settings).refusals(collection):
            raise ConfigError("\n".join(refusals))

    # tuning

    def _with(self, settings: Mapping[str, Any]) -> Any:
        """A shallow copy with a candidate's parameters, not tuned; it shares what was learned from public rows."""
        changed = copy.copy(self)
        for name, value in {**settings, "candidates": None}.items():
            setattr(changed, name, value)
        return changed

    def _check_tuning(self) -> None:
        """Raise ConfigError for what can be wrong of candidates before a row is looked at."""
        candidates = self.candidates
        if candidates is None:
            return
        if not isinstance(candidates, list | tuple) or not all(isinstance(c, Mapping) for c in candidates):
            raise ConfigError(f"candidates must be a list of dicts of parameters, got {candidates!r}")
        if not 2 <= len(candidates) <= MOST_CANDIDATES:
            raise ConfigError(f"candidates: {len(candidates)} of them; there must be 2 to {MOST_CANDIDATES}")
        for place, candidate in enumerate(candidates):
            self._check_candidate(candidate, f"candidates[{place}]")

    def _check_candidate(self, candidate: Mapping[str, Any], where: str) -> None:
        own = self.get_params(deep=False)
        for name in candidate:
            one_of(f"{where}: a parameter", name, tuple(name for name in PARAMETERS if name in own))
        changed = self._with(candidate)
        try:
            changed._check_parameters()
        except LdptreeError as error:
            raise ConfigError(f"{where}: {error}") from None
        if changed.prune == "paper":
            raise ConfigError(
                f'{where}: prune: "paper" asks holders twice and chooses by itself, so it is no candidate; set another'
            )
