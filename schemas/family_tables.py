"""Tables of a run that only some families of estimators have, and those on which a family's settings depend."""

from __future__ import annotations

import hashlib
import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ldptree.errors import ConfigError
from ldptree.limits import MAX_DEPTH, MAX_PROTOCOL_BYTES, check_weight, label_ends
from ldptree.public_models import AUTO_BASE
from schemas.dataset import DatasetSpec
from schemas.tables import (
    NAME,
    CampaignConfig,
    EngineConfig,
    PrivacyConfig,
    SimulationConfig,
    StoreConfig,
    Table,
    not_bool,
)

Label = Literal["class", "number"]
MOST_LEVELS = 1024


def _lam(value: float | str) -> float | str:
    if isinstance(value, float):
        check_weight(value)
    return "inf" if value == math.inf else value  # JSON has no infinite number


def _label_range(value: object) -> object:
    try:
        return label_ends(value)
    except ConfigError as fault:
        raise ValueError(str(fault).removeprefix("label_range").lstrip(": ")) from None


def _share(value: float) -> float:
    if not 0.0 < value < 1.0:
        raise ValueError(f"the share of epsilon that the cell gets lies between 0 and 1, got {value!r}")
    return value


def _levels(value: int) -> int:
    if not 2 <= value <= MOST_LEVELS:
        raise ValueError(f'write "auto", or from 2 to {MOST_LEVELS} levels, got {value!r}')
    return value


def _half_range(value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f'write "auto", or a number above 0, got {value!r}')
    return value


def _as_texts(value: object) -> object:
    """One text is a list of one, as elsewhere in a configuration. Raises ValueError."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or any(not isinstance(text, str) for text in texts):
        raise ValueError(f"write a list of column names, got {value!r}")
    return tuple(texts)


Auto = Literal["auto"]
Whole = Annotated[int, BeforeValidator(not_bool)]
Number = Annotated[float, BeforeValidator(not_bool)]
Depth = Auto | Annotated[Whole, Field(ge=0, le=MAX_DEPTH)]
FewestRows = Auto | Annotated[Whole, Field(ge=1)]
Lam = Annotated[Literal["learned", "auto", "inf"] | Number, AfterValidator(_lam)]
LabelRange = Annotated[tuple[float, float], BeforeValidator(_label_range)]
Share = Annotated[Number, AfterValidator(_share)]


class PaperConfig(Table):
    """Switches of LPCT's Algorithm 2, for `prune = "paper"` (see `ldptree.inference.algorithm_2.PaperOptions`)."""

    termination: bool = True
    """Whether Algorithm 2 may ask a second time; false spends the whole epsilon on the first report."""
    stop_empty: bool = True
    """A cell with no public row is not cut ("max-edge" and "random-edge")."""
    stop_at_public: bool = False
    """Stop where public rows win, as the text of the paper says and its pseudo-code does not."""


class CorrectionConfig(Table):
    """The public model that is corrected, and what is asked about its errors."""

    base: Literal["auto", "blend", "forest", "boosting", "tree"] = "auto"
    """The public model: "auto" is "blend": forests, boosted trees and a straight line, weighed by their errors on public rows
    that they were not fitted on. "tree": one smoothed tree, which knows how unsure it is.
    """
    label_levels: Auto | Annotated[Whole, AfterValidator(_levels)] = "auto"
    """To how many levels the public model's error on a row is rounded before it is reported."""
    residual_range: Auto | Annotated[Number, AfterValidator(_half_range)] = "auto"
    """Of a number: errors are moved into plus or minus this. By default the smaller of twice the root mean square and the
    largest of public out-of-fold errors.
    """
    questions: Auto | Literal[1, 2] = "auto"
    """1: everybody reports on a cell. 2: half report first along which column the public model is wrong, and the cells of
    the others are cut there. "auto": 2 where public rows and epsilon say that it would be seen. A campaign asks one.
    """
    max_protocol_bytes: Annotated[Whole, Field(ge=1)] = MAX_PROTOCOL_BYTES
    """The largest protocol that is published, the public model in it. A forest is made smaller to fit; anything else is
    refused.
    """

    @model_validator(mode="before")
    @classmethod
    def _refuse_slope(cls, raw: Any) -> Any:
        """An older version had such a key."""
        if isinstance(raw, dict) and "slope" in raw:
            raise ValueError(
                'slope: this version has no straight line beside base = "tree" any more; leave it out, and take base = "blend" '
                "for a line and forests together"
            )
        return raw

    @property
    def named_base(self) -> str:
        """The public model that is fitted."""
        return AUTO_BASE if self.base == "auto" else self.base

    @property
    def is_for_numbers(self) -> bool:
        """Whether a key is set that only a label that is a number has."""
        return self.residual_range != "auto"


class FeaturesConfig(Table):
    """What the holders protect; every other feature is public."""

    private: Annotated[tuple[str, ...], BeforeValidator(_as_texts)] = ()
    """Features that every holder protects; the label always is."""
    protects: dict[str, str] = Field(default={})
    """Features that only some protect: feature = the column of the raw data that says so with true or false."""

    @property
    def masks(self) -> frozenset[str]:
        """Columns that say what is protected: they are no features."""
        return frozenset(self.protects.values())

    @model_validator(mode="after")
    def _check_stated_once(self) -> FeaturesConfig:
        if both := sorted(set(self.private) & set(self.protects)):
            raise ValueError(
                f'protects: "{both[0]}" is protected by everybody already (private); say it once'
            )
        if used := sorted((set(self.private) | set(self.protects)) & set(self.protects.values())):
            raise ValueError(f'protects: "{used[0]}" says what is protected, so it is no feature itself')
        return self


class HistOfTreeConfig(Table):
    """Settings of HistOfTree (see `ldptree.families.histoftree.HistOfTree`)."""

    bins: Auto | Annotated[Whole, Field(ge=1, le=1024)] = "auto"
    """Bins of a feature (t). "auto" is the paper's (15)."""
    binned: Auto | Annotated[Whole, Field(ge=0)] = "auto"
    """Features in the histogram (s)."""
    depth: Auto | Annotated[Whole, Field(ge=0, le=16)] = "auto"
    """Depth of the tree (p)."""
    partition: Literal["max-edge", "cart"] = "max-edge"
    """How the tree is grown."""
    criterion: Literal["weighted", "printed"] = "weighted"
    """How a split is scored: weighted by rows, or as printed."""
    min_samples_leaf: Annotated[Whole, Field(ge=1)] = 1
    """Holders who show a feature on either side of a split."""
    mechanism: Literal["grr", "randomized_response"] = "grr"
    """How the cell is reported."""
    label: Literal["optimal_label", "laplace"] = "optimal_label"
    """How the label is reported; "laplace" in seeded simulations only."""
    rho: Share = 0.5
    """The share of epsilon that the cell gets."""
    bias_weight: Annotated[Number, Field(gt=0, le=1e6)] = 0.01
    """The weight of the bias in (15); the paper's grid is 0.01, 0.1, 1."""
    bin_shift: Literal[-1, 0, 1] = -1
    """What is added to the bins that (15) finds."""
    mask_release: Literal["all", "cells", "none"] = "all"
    """What is sent of who protects what."""

    @property
    def settings(self) -> dict[str, Any]:
        """As `ldptree.families.histoftree.HistOfTree` takes them."""
        chosen = {"bins": self.bins, "n_binned": self.binned, "depth": self.depth}
        others = self.model_dump(exclude={"bins", "binned", "depth", "partition"})
        return {name: None if value == "auto" else value for name, value in chosen.items()} | {
            "splits": self.partition,
            **others,
        }


class RunTables(Table):
    """The keys and tables of a run on which those of a family depend; the last three are of some families only."""

    name: str = Field(pattern=NAME)
    """What the run is called."""
    evaluate: bool = True
    """Whether to score on private rows that are held back, as only a simulation may."""
    release: bool = False
    """Whether to draw the system's coins and charge the ledger though private rows are scored on. A run that is scored and
    names no campaign is else a trial.
    """
    dataset: DatasetSpec
    privacy: PrivacyConfig = PrivacyConfig()
    simulation: SimulationConfig = SimulationConfig()
    campaign: CampaignConfig = CampaignConfig()
    run: EngineConfig = Field(default=EngineConfig(), exclude=True)
    store: StoreConfig = Field(default=StoreConfig(), exclude=True)
    features: FeaturesConfig = FeaturesConfig()
    histoftree: HistOfTreeConfig = HistOfTreeConfig()
    correction: CorrectionConfig = CorrectionConfig()

    @property
    def is_trial(self) -> bool:
        """A trial is scored on private rows and asks nobody in earnest: its noise is seeded, and no ledger is charged."""
        return self.evaluate and not self.release and self.campaign.name is None

    @property
    def noise_seed(self) -> int | None:
        """Of the holders' coins: as configured; of a trial else by its name; None for coins of the operating system."""
        if self.simulation.noise_seed is not None or not self.is_trial:
            return self.simulation.noise_seed
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4])

    @property
    def is_scored_release(self) -> bool:
        """Whether real coins protect the reports, while scores read private rows as they are."""
        return self.evaluate and not self.is_seeded

    @property
    def is_seeded(self) -> bool:
        """A seeded run repeats byte for byte, and protects nobody."""
        return self.noise_seed is not None
