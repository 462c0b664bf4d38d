"""[model] of a configuration, which tree and what is believed of it, and [correction]: what they may say. How the tables fit the
others is in `config`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from ldptree.limits import MAX_DEPTH, MAX_PROTOCOL_BYTES, check_ends
from schemas.table import Share, Table
from schemas.table import not_bool as _not_bool

CLASSES, NUMBERS, CORRECTION = "lpct", "lpdt", "correction"
"""The estimators that ask once: a tree of classes, one of numbers, and a public model mended on either."""
IN_ROUNDS = ("histoftree", "public_features")
"""The estimators that ask in rounds, where some features are public; they predict a number."""
KEYS_IN_ROUNDS = {"estimator", "label_range"}
"""What [model] has for them; HistOfTree has a table of its own."""
PRUNINGS = {CLASSES: ("smooth", "variance", "none", "paper"), NUMBERS: ("smooth", "fallback", "none")}
OWN_KEYS = {
    "paper": (CLASSES,),
    "rho": (NUMBERS,),
    "label_range": (NUMBERS, *IN_ROUNDS),
    **dict.fromkeys(("lam", "prune", "rule"), (CLASSES, NUMBERS, *IN_ROUNDS)),
}
"""Keys of [model] that only some estimators have."""
OF_OTHERS = {"paper", "rho"}
"""Of these, what no estimator that asks in rounds has: refused for that reason already."""
MOST_LEVELS = 1024


def _lam(value: float | str) -> float | str:
    if isinstance(value, float) and not value >= 0:
        raise ValueError(
            f'lam must be "learned", "auto", or a number from 0 (inf: public labels only), got {value!r}'
        )
    return "inf" if value == math.inf else value  # JSON has no infinite number


def _as_pair(value: object) -> object:
    ends = value if isinstance(value, list | tuple) else ()
    if len(ends) != 2 or not all(type(end) in (int, float) for end in ends):
        raise ValueError(f"write two numbers, [low, high], got {value!r}")
    return tuple(ends)


def _range(value: tuple[float, float]) -> tuple[float, float]:
    low, high = value
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"both ends must be finite, got [{low:g}, {high:g}]")
    if low >= high:
        raise ValueError(f"the low end must be below the high end, got [{low:g}, {high:g}]; swap them?")
    check_ends(low, high)
    return value


Depth = Annotated[int, BeforeValidator(_not_bool), Field(ge=0, le=MAX_DEPTH)]
Rows = Annotated[int, BeforeValidator(_not_bool), Field(ge=1)]
Lam = Annotated[
    Literal["learned", "auto", "inf"] | Annotated[float, BeforeValidator(_not_bool)], AfterValidator(_lam)
]

LabelRange = Annotated[tuple[float, float], BeforeValidator(_as_pair), AfterValidator(_range)]


class PaperConfig(Table):
    """Switches of LPCT's Algorithm 2, for `prune = "paper"` (see `ldptree.inference.algorithm_2.PaperOptions`)."""

    termination: bool = True
    stop_empty: bool = True
    stop_at_public: bool = False


def _levels(value: int) -> int:
    if not 2 <= value <= MOST_LEVELS:
        raise ValueError(f'write "auto", or from 2 to {MOST_LEVELS} levels, got {value!r}')
    return value


def _half(value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f'write "auto", or a number above 0, got {value!r}')
    return value


Levels = Annotated[int, BeforeValidator(_not_bool), AfterValidator(_levels)]
HalfRange = Annotated[float, BeforeValidator(_not_bool), AfterValidator(_half)]
Bytes = Annotated[int, BeforeValidator(_not_bool), Field(ge=1)]


class CorrectionConfig(Table):
    """The public model that estimator = "correction" mends, and what is asked about its errors.

    `base`: a forest, boosting, one smoothed tree, or (of numbers) forests and a line weighed, fitted on public rows.
    `label_levels`: to how many levels a residual is rounded. `residual_range`: a number's residuals are moved into +- this, by
    default that of public out-of-fold errors. `max_protocol_bytes`: the largest protocol that is published, the base in it.
    `slope`: whether reports on a tree of numbers may also say on which side of a straight line a row is.
    """

    base: Literal["forest", "boosting", "tree", "blend"] = "forest"
    label_levels: Literal["auto"] | Levels = "auto"
    residual_range: Literal["auto"] | HalfRange = "auto"
    slope: Literal["auto", "none"] = "auto"
    max_protocol_bytes: Bytes = MAX_PROTOCOL_BYTES

    @model_serializer(mode="wrap")
    def _without_what_is_usual(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A new key is no part of what a run without it is known by."""
        plain: dict[str, Any] = handler(self)
        if self.slope == "auto":
            plain.pop("slope", None)
        return plain


class ModelConfig(Table):
    """Which tree, and what is believed of private against public evidence.

    `estimator`: "lpct" predicts a class, "correction" a class or a number, the others a number. `min_samples_leaf`: fewest
    public rows in a cell; "auto": by what is learned, and of how many (`inference.depth.fewest_public_rows`). `rho`: share of
    epsilon that the cell gets where a number is sent apart from it. `label_range`: what private labels that are numbers are moved
    into; None: the range of the public ones.
    """

    estimator: Literal["lpct", "lpdt", "histoftree", "public_features", "correction"] = "lpct"
    partition: Literal["cart", "max-edge", "random-edge"] = "cart"
    depth: Literal["auto"] | Depth = "auto"
    min_samples_leaf: Literal["auto"] | Rows = "auto"
    lam: Lam = "learned"
    prune: Literal["smooth", "variance", "fallback", "none", "paper"] = "smooth"
    rule: Literal["margin", "ratio"] = "margin"
    paper: PaperConfig = PaperConfig()
    rho: Share = 0.5
    label_range: LabelRange | None = None

    @model_serializer(mode="wrap")
    def _without_keys_of_other_estimators(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A new estimator's keys are no part of what an older one is known by."""
        plain: dict[str, Any] = handler(self)
        return {
            key: value
            for key, value in plain.items()
            if self.estimator in OWN_KEYS.get(key, (self.estimator,))
        }

    @model_validator(mode="after")
    def _fits_its_estimator(self) -> ModelConfig:
        faults = [
            f'{key}: is for estimator = "{of[0]}"; leave it out with "{self.estimator}"'
            for key, of in OWN_KEYS.items()
            if self.estimator not in of and getattr(self, key) != type(self).model_fields[key].default
        ]
        if self.in_rounds:
            faults += [
                f'{key}: is for estimators of one tree; leave it out with "{self.estimator}"'
                for key in sorted(self.model_fields_set - KEYS_IN_ROUNDS - OF_OTHERS)
            ]
        known = PRUNINGS.get(self.estimator, ())
        if known and self.prune not in known:
            faults.append(
                f'prune: "{self.prune}" is not for estimator = "{self.estimator}", which has {", ".join(known)}'
            )
        if self.estimator in OWN_KEYS["paper"]:
            faults += self._idle_switches()
        if faults:
            raise ValueError("\n".join(faults))
        return self

    def _idle_switches(self) -> list[str]:
        """What is said of switches of Algorithm 2 that were set and would do nothing."""
        usual = PaperConfig()
        turned = [key for key in PaperConfig.model_fields if getattr(self.paper, key) != getattr(usual, key)]
        if self.prune != "paper":
            return [
                f'paper.{key}: is for prune = "paper", and this is "{self.prune}"; leave it out, or set prune'
                for key in turned
            ]
        if self.partition == "cart" and "stop_empty" in turned:
            return [
                'paper.stop_empty: is for partition = "max-edge" or "random-edge"; leave it out with "cart"'
            ]
        return []

    @model_validator(mode="after")
    def _rule_fits(self) -> ModelConfig:
        if self.rule == "ratio" and (self.prune in ("smooth", "variance") or self.lam == "learned"):
            other = "fallback" if self.estimator == NUMBERS else "paper"
            raise ValueError(
                f'rule: "ratio" is the paper\'s, for a fixed lam; set lam = "auto" or a number, and prune = "none" or "{other}"'
            )
        return self

    @property
    def is_correction(self) -> bool:
        """Whether reports are about the error of a public model."""
        return self.estimator == CORRECTION

    @property
    def in_rounds(self) -> bool:
        """Whether several questions are asked, where some features are public."""
        return self.estimator in IN_ROUNDS

    @property
    def algorithm_2(self) -> PaperConfig | None:
        """Its switches, where `prune = "paper"`."""
        return self.paper if self.prune == "paper" else None

    @property
    def weighting(self) -> float | str:
        """lam, or "paper" where Algorithm 2 chooses it."""
        return "paper" if self.algorithm_2 else self.lam

    @property
    def may_ask_again(self) -> bool:
        """Whether a second round may follow the first."""
        return self.algorithm_2 is not None and self.paper.termination
