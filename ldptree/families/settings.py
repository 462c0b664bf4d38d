"""The settings of each family of estimators, with their checks: parameters of the estimator, keys of [model] in a configuration.

A new setting is one field here. Questions depend on it, unless `READS` says that only the model does. Nothing here needs numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ldptree.limits import MAX_BINS, MAX_DEPTH, MAX_PROTOCOL_BYTES, label_ends
from ldptree.public_models import AUTO_BASE
from ldptree.settings import Auto, Limits, Read, Settings

Label = Literal["class", "number"]
Mechanism = Literal[
    "auto",
    "grr",
    "oue",
    "sue",
    "ss",
    "olh",
    "discrete_laplace",
    "randomized_response",
    "laplace",
    "signed_subset",
]
LabelRange = Annotated[tuple[float, float], Read(label_ends, "two numbers, the low one first")]
Share = Annotated[float, Limits(above=0, below=1)]
Partition = Literal["cart", "max-edge", "random-edge"]


def _read_fitted(model: Any) -> Any:
    return model if hasattr(model, "get_params") else NotImplemented


Fitted = Annotated[
    Any,
    Read(_read_fitted, "a fitted scikit-learn model of trees, or a linear one", is_written=False),
]


@dataclass(frozen=True, kw_only=True)
class Collection:
    """The conditions under which a family asks, which none of its settings says.

    Attributes:
        mechanism: how holders report, or "auto".
        label: what is learned; None where only public rows can tell.
        n_classes: declared classes; None where only public rows can tell.
        in_campaign: whether later runs go on with it.
    """

    mechanism: str = "auto"
    label: Label | None = None
    n_classes: int | None = None
    in_campaign: bool = False


@dataclass(frozen=True, kw_only=True)
class FamilySettings(Settings):
    """A family of estimators."""

    LABELS: ClassVar[frozenset[Label]] = frozenset({"number"})
    """The kinds of label that it predicts."""
    READS: ClassVar[tuple[str, ...]] = ()
    """The settings that only its model depends on."""
    TERMS: ClassVar[tuple[str, ...]] = ()
    """The settings that a campaign's later runs may not change."""
    DEVICES: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """By setting, the mechanism whose floating-point noise gives holders away, and what to use instead."""
    CORRECTS: ClassVar[bool] = False
    """True if reports are about the error of a public model."""

    def refusals(self, collection: Collection) -> list[str]:
        """List what does not go with how it is collected: "name: what, and what to do" each. "mechanism" is a name too."""
        return []

    @property
    def for_questions(self) -> dict[str, Any]:
        """The settings that questions depend on, as plain values."""
        return {name: value for name, value in self.plain.items() if name not in self.READS}

    @property
    def for_model(self) -> dict[str, Any]:
        """The settings that only the model depends on, as plain values."""
        return {name: self.plain[name] for name in self.READS}

    @property
    def weighting(self) -> float | str:
        """The weight of public rows against reports."""
        return "learned"

    @property
    def predicts(self) -> Label | None:
        """The kind of label that it predicts with these settings; None where data tell."""
        only, *others = self.LABELS
        return None if others else only

    @property
    def own_mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that reports are made by, where the family does not leave them to the run."""
        return ()

    @property
    def may_ask_again(self) -> bool:
        """True if holders may be asked a second time."""
        return False

    @property
    def may_ask_parts(self) -> bool:
        """True if a part of the holders may be asked before the others."""
        return False


@dataclass(frozen=True, kw_only=True)
class TreeSettings(FamilySettings):
    """The recommended family: "correction" from 20 public rows on, else "lpct" for a class and "lpdt" for a number."""

    LABELS = frozenset({"class", "number"})
    partition: Partition = "cart"
    """The way to grow the tree of cells on public rows: "cart", or by midpoints ("max-edge": LPCT Algorithm 1;
    "random-edge": LPCT-R). Without public rows always by midpoints.
    """
    depth: Auto | Annotated[int, Limits(0, MAX_DEPTH)] = "auto"
    """The largest depth of a cell; "auto" by the number of holders and epsilon."""
    min_samples_leaf: Auto | Annotated[int, Limits(1)] = "auto"
    """The fewest public rows in a cell; "auto" by the kind of label and the number of rows."""


@dataclass(frozen=True, kw_only=True)
class WeighedSettings(TreeSettings):
    """A tree whose cells weigh private totals against public labels: by `lam`, up and down the tree by `prune`."""

    READS = ("lam", "prune", "rule")
    PAPERS_PRUNING: ClassVar[str]
    lam: Literal["learned", "auto"] | Annotated[float, Limits(0, float("inf"))] = "learned"
    """The weight of public labels: learned from the reports, "auto" as if public and private people were alike, or the number
    of private people that a public row counts for (0: private rows alone; infinity: public rows alone).
    """
    prune: str = "smooth"
    rule: Literal["margin", "ratio"] = "margin"
    """The weighting rule. "ratio" is as printed in LPCT (8) and LPDT (5), for a fixed lam."""

    @property
    def weighting(self) -> float | str:
        """The lam in use."""
        return self.plain["lam"]  # type: ignore[no-any-return]

    def misfits(self) -> list[str]:
        """The paper's rule is for what the papers have."""
        if self.rule == "ratio" and (self.prune in ("smooth", "variance") or self.weighting == "learned"):
            return [
                'rule: "ratio" is the paper\'s, for a fixed lam; set lam = "auto" or a number, and prune = "none" or '
                f'"{self.PAPERS_PRUNING}"'
            ]
        return []


@dataclass(frozen=True, kw_only=True)
class PaperOptions(Settings):
    """The switches of LPCT's Algorithm 2."""

    termination: bool = True
    """Ask a second time, with the other half of epsilon and a shallower tree, where private rows turn out to be stronger. If
    false, spend all of epsilon on the first report, as in the paper's simulations.
    """
    stop_empty: bool = True
    """Do not split a cell without public rows ("max-edge" and "random-edge")."""
    stop_at_public: bool = False
    """Stop where public rows win, as in the text of the paper but not in its pseudo-code."""

    @property
    def share_of_first_query(self) -> float:
        """Of epsilon."""
        return 0.5 if self.termination else 1.0


@dataclass(frozen=True, kw_only=True)
class LPCTSettings(WeighedSettings):
    """One tree of classes, learned from reports."""

    LABELS = frozenset({"class"})
    PAPERS_PRUNING = "paper"
    prune: Literal["smooth", "variance", "none", "paper"] = "smooth"
    """The way cells share evidence with their neighbours. "paper" is LPCT's Algorithm 2, for two classes."""
    paper: PaperOptions | None = None
    """Changes to Algorithm 2 as printed."""

    @property
    def algorithm_2(self) -> PaperOptions | None:
        """Its switches, where it prunes."""
        return (self.paper or PaperOptions()) if self.prune == "paper" else None

    @property
    def for_questions(self) -> dict[str, Any]:
        """With Algorithm 2, whose first query has a part of epsilon."""
        return super().for_questions | ({"prune": "paper"} if self.algorithm_2 else {})

    @property
    def weighting(self) -> float | str:
        """The lam in use; "paper" where Algorithm 2 chooses it."""
        return "paper" if self.algorithm_2 else super().weighting

    @property
    def may_ask_again(self) -> bool:
        """Where Algorithm 2 may terminate."""
        return self.algorithm_2 is not None and self.algorithm_2.termination

    def misfits(self) -> list[str]:
        """A switch of Algorithm 2 that is turned and would do nothing."""
        usual = PaperOptions().plain
        turned = [
            name
            for name, value in (self.paper.plain if self.paper else usual).items()
            if value != usual[name]
        ]
        faults = super().misfits()
        if self.prune != "paper":
            faults += [
                f'paper.{name}: is for prune = "paper", and this is "{self.prune}"; leave it out, or set prune'
                for name in turned
            ]
        elif self.partition == "cart" and "stop_empty" in turned:
            faults.append(
                'paper.stop_empty: is for partition = "max-edge" or "random-edge"; leave it out with "cart"'
            )
        return faults

    def refusals(self, collection: Collection) -> list[str]:
        """Some mechanisms and Algorithm 2 are for two classes; a campaign asks each holder once."""
        n, faults = collection.n_classes, []
        if n is not None and n != 2 and collection.mechanism == "signed_subset":
            faults.append(f'mechanism: "signed_subset" is for two classes, and there are {n}; use "auto"')
        if n is not None and n > 2 and self.algorithm_2 is not None:
            faults.append(f'prune: "paper" is for two classes, found {n}; set prune = "smooth"')
        if collection.in_campaign and self.may_ask_again:
            faults.append(
                "paper.termination: a campaign asks each holder once, and Algorithm 2 may ask again; set it to false"
            )
        return faults


@dataclass(frozen=True, kw_only=True)
class LPDTSettings(WeighedSettings):
    """One tree of numbers, learned from reports."""

    LABELS = frozenset({"number"})
    PAPERS_PRUNING = "fallback"
    TERMS = ("rho", "label_range")
    prune: Literal["smooth", "fallback", "none"] = "smooth"
    """The way cells share evidence with their neighbours. "fallback" is LPDT's: a weak cell takes an ancestor's evidence."""
    rho: Share = 0.5
    """The share of epsilon for the cell where cell and number are reported separately (LPDT D.1)."""
    label_range: LabelRange | None = None
    """The range to clip private labels to; by default that of public labels. The noise is proportional to its width."""


@dataclass(frozen=True, kw_only=True)
class CorrectionSettings(TreeSettings):
    """A public model of classes or numbers, corrected by reports of its error."""

    TERMS = ("base", "label_levels", "residual_range", "max_protocol_bytes")
    READS = ("label_range",)
    CORRECTS = True
    base: Literal["auto", "blend", "forest", "boosting", "tree"] | Fitted = "auto"
    """The public model: "auto" is "blend", a mean of forests, boosted trees and a linear model weighted by their errors on
    public rows that they were not fitted on; "tree" is one smoothed tree, which knows its own uncertainty. In Python also a
    fitted scikit-learn model, whose training rows you declare public (in a `FrozenEstimator` inside searches, which clone it
    otherwise): a tree, forest, histogram boosting, or linear or logistic model (also behind scalers) as it is, any other as a
    blend that is fitted to its answers. Without public rows a constant.
    """
    label_levels: Auto | Annotated[int, Limits(2, 1024)] = "auto"
    """The number of levels to which the public model's error on a row is rounded before it is reported."""
    residual_range: Auto | Annotated[float, Limits(above=0)] = "auto"
    """For numbers, the bound to which errors are clipped on either side. By default the smaller of twice the root mean square
    and the largest of public out-of-fold errors; without public rows 1.
    """
    label_range: LabelRange | None = None
    """For numbers, the range within which predictions stay, such as [0, 8] of a count of 0 to 8. By default any."""
    questions: Literal["auto", 1, 2] = "auto"
    """With 1, everybody reports on a cell. With 2, half of the holders first report along which columns the public model is
    wrong, and the cells of the others are split there. "auto" asks 2 if public rows and epsilon say that it would help. A
    campaign asks 1.
    """
    max_protocol_bytes: Annotated[int, Limits(1)] = MAX_PROTOCOL_BYTES
    """The largest published protocol, including the public model. A forest is reduced to fit; any other model that is larger is
    refused.
    """

    @property
    def named_base(self) -> Any:
        """The public model that is fitted, or the fitted one; a `FrozenEstimator` around it is taken off."""
        if isinstance(self.base, str):
            return AUTO_BASE if self.base == "auto" else self.base
        return self.base.estimator if type(self.base).__name__ == "FrozenEstimator" else self.base

    @property
    def for_questions(self) -> dict[str, Any]:
        """With the name of the public model."""
        return super().for_questions | {"base": self.named_base}

    @property
    def predicts(self) -> Label | None:
        """A number, where its range is said."""
        return None if self.residual_range == "auto" and self.label_range is None else "number"

    @property
    def may_ask_parts(self) -> bool:
        """Unless one question is asked."""
        return self.questions != 1

    def refusals(self, collection: Collection) -> list[str]:
        """A residual is reported jointly with its cell; some settings are for numbers."""
        faults, mechanism = [], collection.mechanism
        if mechanism != "auto":
            from ldptree.mechanisms import RESIDUAL_CHOICES  # with numpy

            if mechanism not in RESIDUAL_CHOICES:
                faults.append(
                    f'mechanism: "{mechanism}" is not for a residual, which is reported together with its cell; use one of '
                    f"{', '.join(RESIDUAL_CHOICES)}"
                )
        if mechanism == "signed_subset" and self.label_levels not in ("auto", 2):
            faults.append(
                f'label_levels: "signed_subset" rounds to 2 levels, not to {self.label_levels}; leave it out'
            )
        if collection.in_campaign and self.questions == 2:
            faults.append(
                "questions: a campaign publishes one question for all its runs; leave it out, or in a collection say when the "
                "first one ends, in collection.close"
            )
        if collection.label == "class" and self.residual_range != "auto":
            faults.append(
                "residual_range: is for a label that is a number; a class's residual is in +- 1. Leave it out"
            )
        if collection.label == "class" and self.label_range is not None:
            faults.append("label_range: is for a label that is a number; leave it out")
        return faults


@dataclass(frozen=True, kw_only=True)
class RoundsSettings(FamilySettings):
    """A family that asks in rounds, where some features are public."""

    label_range: LabelRange | None = None
    """The range to clip private labels to. By default that of public labels in a run, and (-1, 1) in Python, where it must not
    come from private labels.
    """

    def refusals(self, collection: Collection) -> list[str]:
        """It has mechanisms of its own, and cannot be a campaign."""
        faults = []
        if collection.mechanism != "auto":
            own = " or ".join(name for name in ("mechanism", "label") if name in self.names())
            faults.append(
                f"mechanism: a family that asks in rounds has its own; leave it out{own and f', or set model.{own}'}"
            )
        return faults


@dataclass(frozen=True, kw_only=True)
class HistOfTreeSettings(RoundsSettings):
    """The paper's method for numbers where some features are public."""

    DEVICES = {"label": ("laplace", "optimal_label")}  # noqa: RUF012
    t: Auto | Annotated[int, Limits(1, MAX_BINS)] = "auto"
    """Bins of a feature in the histogram; "auto" by (15)."""
    s: Auto | Annotated[int, Limits(0, 2**31)] = "auto"
    """The number of binned features; "auto" is the number of private ones if everybody protects the same, else by (15)."""
    p: Auto | Annotated[int, Limits(0, MAX_DEPTH)] = "auto"
    """Depth of the tree; "auto" by (15)."""
    partition: Literal["max-edge", "cart"] = "max-edge"
    """The way to grow the tree: by Algorithm 1, or by noisy labels of the rows that show the feature ("cart")."""
    criterion: Literal["weighted", "printed"] = "weighted"
    """The score of a split of "max-edge": weighted by rows, or as printed."""
    min_samples_leaf: Annotated[int, Limits(0, 2**31)] = 1
    """The fewest holders who show a feature on either side of a split; 0 ("max-edge") splits without any."""
    mechanism: Literal["grr", "randomized_response"] = "grr"
    """The mechanism of the cell: (16, 17), or (5, 8)."""
    label: Literal["optimal_label", "duchi", "laplace"] = "optimal_label"
    """The mechanism of the label; the paper's "laplace" in seeded simulations only."""
    rho: Share = 0.5
    """The share of epsilon for the cell (the paper's appendix C.1 calls the label's share rho). A cell that follows from shown
    features is not asked, and the label takes all.
    """
    bias_weight: Annotated[float, Limits(above=0, high=1e6)] = 0.01
    """The weight of the bias in (15); the paper's grid is 0.01, 0.1, 1."""
    t_shift: Literal[-1, 0, 1] = -1
    """The number to add to the bins of (15)."""
    mask_release: Literal["all", "cells", "none"] = "all"
    """The part of who protects what that is sent: "all"; "cells", the cells that a holder could be in (section 3.4 (ii), from
    which much of it follows); or "none", so that shown features do not count. The last two use no shown value and split at
    random, and (15) assumes that everything is protected.
    """

    @property
    def own_mechanisms(self) -> tuple[str, ...]:
        """The label's and the cell's."""
        return self.label, self.mechanism

    def misfits(self) -> list[str]:
        """A split by scores needs rows on either side."""
        if self.partition == "cart" and not self.min_samples_leaf:
            return ['min_samples_leaf: 0 is for partition = "max-edge"; set 1 or more with "cart"']
        return []


@dataclass(frozen=True, kw_only=True)
class PublicFeaturesSettings(RoundsSettings):
    """Numbers where some features are public."""
