"""Which features are private, and how HistOfTree is set: the tables of a configuration for estimators of public features."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from schemas.table import Share, Table, not_bool

Count = Annotated[int, BeforeValidator(not_bool), Field(ge=0)]


def _as_texts(value: object) -> object:
    """One text is a list of one, as elsewhere in a configuration. Raises ValueError."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or any(not isinstance(text, str) for text in texts):
        raise ValueError(f"write a list of column names, got {value!r}")
    return tuple(texts)


class FeaturesConfig(Table):
    """What the holders protect; every other feature is public.

    `private`: features that all of them protect. `protects`: for a feature that only some protect, the column of the raw
    data that says so with true or false.
    """

    private: Annotated[tuple[str, ...], BeforeValidator(_as_texts)] = ()
    protects: dict[str, str] = Field(default={})

    @property
    def masks(self) -> frozenset[str]:
        """Columns that say what is protected: they are no features."""
        return frozenset(self.protects.values())

    @model_validator(mode="after")
    def _each_said_once(self) -> FeaturesConfig:
        if both := sorted(set(self.private) & set(self.protects)):
            raise ValueError(
                f'protects: "{both[0]}" is protected by everybody already (private); say it once'
            )
        if used := sorted((set(self.private) | set(self.protects)) & set(self.protects.values())):
            raise ValueError(f'protects: "{used[0]}" says what is protected, so it is no feature itself')
        return self


class HistOfTreeConfig(Table):
    """HistOfTree's settings (see `ldptree.families.histoftree.HistOfTree`); "auto" is chosen by the paper's (15)."""

    bins: Literal["auto"] | Annotated[int, BeforeValidator(not_bool), Field(ge=1, le=1024)] = "auto"
    binned: Literal["auto"] | Count = "auto"
    depth: Literal["auto"] | Annotated[int, BeforeValidator(not_bool), Field(ge=0, le=16)] = "auto"
    partition: Literal["max-edge", "cart"] = "max-edge"
    criterion: Literal["weighted", "printed"] = "weighted"
    min_samples_leaf: Annotated[int, BeforeValidator(not_bool), Field(ge=1)] = 1
    mechanism: Literal["grr", "randomized_response"] = "grr"
    label: Literal["optimal_label", "laplace"] = "optimal_label"
    rho: Share = 0.5
    bias_weight: Annotated[float, BeforeValidator(not_bool), Field(gt=0, le=1e6)] = 0.01
    bin_shift: Literal[-1, 0, 1] = -1
    mask_release: Literal["all", "cells", "none"] = "all"

    @property
    def settings(self) -> dict[str, Any]:
        """As `ldptree.families.histoftree.HistOfTree` takes them."""
        chosen = {"bins": self.bins, "n_binned": self.binned, "depth": self.depth}
        return {name: None if value == "auto" else value for name, value in chosen.items()} | {
            "splits": self.partition,
            "criterion": self.criterion,
            "min_samples_leaf": self.min_samples_leaf,
            "mechanism": self.mechanism,
            "label": self.label,
            "rho": self.rho,
            "bias_weight": self.bias_weight,
            "bin_shift": self.bin_shift,
            "mask_release": self.mask_release,
        }
