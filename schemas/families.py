"""The settings of each family of estimators: its [model] table, chosen by `model.estimator`. Tables that it alone has are in
`family_tables`.

A new family is one class here and its name in the union below. The class says which keys and tables the family has, which
kinds of label it predicts, and what it asks of the other tables of a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from schemas.dataset import DatasetSpec
from schemas.family_tables import (
    Depth,
    FewestRows,
    Label,
    LabelRange,
    Lam,
    PaperConfig,
    RunTables,
    Share,
)
from schemas.tables import Table

RESIDUAL_MECHANISMS = ("auto", "grr", "oue", "sue", "ss", "olh", "signed_subset")
"""Those that report a residual and its cell together."""


class ModelConfig(Table):
    """[model] of a family: what all have. A key that only other families have is refused, unless it has its usual value."""

    estimator: str
    tables: ClassVar[frozenset[str]] = frozenset()
    """Its own tables."""
    labels: ClassVar[frozenset[Label]] = frozenset({"number"})
    """The kinds of label that it can predict."""
    in_rounds: ClassVar[bool] = False
    """Whether several questions are asked, where some features are public."""
    is_correction: ClassVar[bool] = False
    """Whether reports are about the error of a public model."""

    @model_validator(mode="before")
    @classmethod
    def _leave_out_usual_keys_of_others(cls, raw: Any) -> Any:
        """So that another estimator is one word away from a configuration that spells out what is usual."""
        if not isinstance(raw, dict):
            return raw
        usual = {
            key: field.default
            for family in FAMILIES.values()
            for key, field in family.model_fields.items()
            if key not in cls.model_fields
        }
        return {key: value for key, value in raw.items() if key not in usual or value != usual[key]}

    @field_validator("prune", mode="before", check_fields=False)
    @classmethod
    def _check_pruning(cls, value: object) -> object:
        known = get_args(cls.model_fields["prune"].annotation)
        if value not in known and value in _values_of("prune"):
            raise ValueError(
                f'"{value}" is not for estimator = "{cls.name_of_family()}", which has {", ".join(known)}'
            )
        return value

    @classmethod
    def name_of_family(cls) -> str:
        """What `model.estimator` is for it."""
        (name,) = get_args(cls.model_fields["estimator"].annotation)
        return str(name)

    @property
    def settings(self) -> dict[str, Any]:
        """Its keys but `estimator`, by name."""
        return {key: getattr(self, key) for key in type(self).model_fields if key != "estimator"}

    @property
    def algorithm_2(self) -> PaperConfig | None:
        """The switches of LPCT's Algorithm 2, where it prunes."""
        return None

    @property
    def weighting(self) -> float | str:
        """lam, or "paper" where Algorithm 2 chooses it."""
        return "learned"

    @property
    def may_ask_again(self) -> bool:
        """Whether a second question may follow the first."""
        return self.algorithm_2 is not None and self.algorithm_2.termination

    def asks_once(self, run: RunTables) -> bool:
        """Whether no question can follow the first."""
        return not (self.in_rounds or self.may_ask_again)

    def choose(self, label: Label, n_public: int, mechanism: str) -> tuple[ModelConfig, str]:
        """[model] of the family that learns, which is this one where it was named, and why where it was not."""
        return self, ""

    def as_before(self, family: str) -> ModelConfig:
        """The same as a campaign's first run chose it."""
        return self

    def label_of(self, run: RunTables) -> Label | None:
        """The kind of label that it predicts; None where only public rows can tell."""
        only, *others = self.labels
        return None if others else only

    def mask_release(self, run: RunTables) -> str:
        """What holders send of what they protect: all, or less."""
        return "all"

    def question_settings(self, run: RunTables, n_public: int) -> dict[str, Any]:
        """The settings that its questions depend on, as `ldptree.families.FAMILIES` takes them. `n_public`: public rows."""
        return {}

    @property
    def reading(self) -> dict[str, Any]:
        """The settings that only its model depends on."""
        return {}

    def campaign_terms(self, run: RunTables) -> dict[str, Any]:
        """What a campaign's later runs may not change, besides what all families have."""
        return {}

    def summarize(self, run: RunTables) -> dict[str, Any]:
        """What a run's summary says of it: what private evidence was weighed with."""
        return {"lam": self.weighting}

    def faults(self, run: RunTables) -> list[str]:
        """What other tables of the run say that does not go with this family: "key: what, and what to do" each."""
        return [
            f'{table}: is for model.estimator = {_either(owners)}; leave it out with "{self.estimator}"'
            for table, owners in OWNERS.items()
            if table in run.model_fields_set and self.estimator not in owners
        ] + self._label_faults(run)

    def _label_faults(self, run: RunTables) -> list[str]:
        """What is said of the target that is not of a number."""
        if self.label_of(run) != "number":
            return []
        data = run.dataset
        who = f'model.estimator = "{self.estimator}" predicts a number'
        if len(self.labels) > 1:
            who = "this label is a number"
        declared = data.types.get(data.target, "number")
        faults = [
            f"dataset.{key}: is for a label of classes, and {who}. Leave it out, or choose another dataset.target"
            for key in ("positive", "classes")
            if getattr(data, key) is not None
        ]
        if data.target in data.levels:
            faults.append(f'dataset.levels: "{data.target}" is the target, and {who}. Leave its levels out')
        if declared not in ("number", "integer"):
            faults.append(
                f'dataset.types: "{data.target}", the target, is declared {declared}, and {who}. Declare it "number"'
            )
        return faults


class TreeConfig(ModelConfig):
    """[model] of a family that asks once about the cells of one public tree."""

    learned: ClassVar[Literal["classes", "numbers", "errors"]]
    """What reports are about."""
    partition: Literal["cart", "max-edge", "random-edge"] = "cart"
    """How the tree is grown on public rows: "cart", or by midpoints ("max-edge": LPCT Algorithm 1; "random-edge": LPCT-R)."""
    depth: Depth = "auto"
    """A number, or what the number of holders and epsilon can carry."""
    min_samples_leaf: FewestRows = "auto"
    """The fewest public rows in a cell; "auto" by what is learned and of how many."""

    def question_settings(self, run: RunTables, n_public: int) -> dict[str, Any]:
        """How the tree is grown. How few rows a cell may have is always a number, so that a run is known by what it does."""
        from ldptree.inference.depth import default_min_samples_leaf  # with numpy

        fewest = default_min_samples_leaf(
            self.learned,
            n_public,
            wanted=self.min_samples_leaf,
            partition=self.partition,
            is_paper=self.algorithm_2 is not None,
        )
        return {"partition": self.partition, "depth": self.depth, "min_samples_leaf": fewest}


class AutoConfig(TreeConfig):
    """[model] where no family is chosen: the recommended one, told from public rows (`ldptree.families.choose_family`)."""

    estimator: Literal["auto"] = "auto"
    """The recommended one, told from public rows: "correction" from 20 on, else "lpct" for a class and "lpdt" for a number."""
    labels: ClassVar[frozenset[Label]] = frozenset({"class", "number"})

    def label_of(self, run: RunTables) -> Label | None:
        """A class or a number, by what is declared."""
        return declared_label(run.dataset)

    def choose(self, label: Label, n_public: int, mechanism: str) -> tuple[ModelConfig, str]:
        """[model] of the recommended family with the keys that are set here, and why it is recommended."""
        from ldptree.families import choose_family

        chosen = choose_family(label, n_public, mechanism)
        return self.as_before(chosen.family), chosen.reason

    def as_before(self, family: str) -> ModelConfig:
        """[model] of this family with the keys that are set here."""
        return FAMILIES[family](**self.model_dump(exclude={"estimator"}, exclude_unset=True))


class WeighedConfig(TreeConfig):
    """[model] of a family that weighs private totals against public labels: by `lam`, up and down the tree by `prune`."""

    papers_pruning: ClassVar[str]
    lam: Lam = "learned"
    """How far public labels are believed: learned from the reports, "auto" as if people were alike, or how many private people
    a public row counts for.
    """
    prune: str = "smooth"
    """How cells draw on their neighbours. "paper" is LPCT's Algorithm 2, for two classes; "fallback" is LPDT's."""
    rule: Literal["margin", "ratio"] = "margin"
    """"ratio": as LPCT (8) and LPDT (5) are printed, for a fixed lam."""

    @property
    def weighting(self) -> float | str:
        """lam, or "paper" where Algorithm 2 chooses it."""
        return "paper" if self.algorithm_2 else self.lam

    @property
    def reading(self) -> dict[str, Any]:
        """How totals become a model."""
        return {"lam": self.lam, "prune": self.prune, "rule": self.rule}

    @model_validator(mode="after")
    def _check_rule(self) -> WeighedConfig:
        if self.rule == "ratio" and (self.prune in ("smooth", "variance") or self.lam == "learned"):
            raise ValueError(
                'rule: "ratio" is the paper\'s, for a fixed lam; set lam = "auto" or a number, and prune = "none" or '
                f'"{self.papers_pruning}"'
            )
        return self


class LPCTConfig(WeighedConfig):
    """A tree of classes."""

    papers_pruning: ClassVar[str] = "paper"
    learned: ClassVar[Literal["classes", "numbers", "errors"]] = "classes"
    labels: ClassVar[frozenset[Label]] = frozenset({"class"})
    estimator: Literal["lpct"] = "lpct"
    """One tree of classes, learned from reports."""
    prune: Literal["smooth", "variance", "none", "paper"] = "smooth"
    paper: PaperConfig = PaperConfig()

    @property
    def algorithm_2(self) -> PaperConfig | None:
        """Its switches, where it prunes."""
        return self.paper if self.prune == "paper" else None

    def question_settings(self, run: RunTables, n_public: int) -> dict[str, Any]:
        """The tree, whether one class is looked for, and Algorithm 2, whose first query has a part of epsilon."""
        own: dict[str, Any] = {"has_positive": run.dataset.positive is not None}
        if self.algorithm_2 is not None:
            own["paper"] = self.algorithm_2.model_dump()
        return super().question_settings(run, n_public) | own

    def faults(self, run: RunTables) -> list[str]:
        """A campaign asks each holder once, and Algorithm 2 may ask again; a mechanism is for two classes."""
        faults, classes = super().faults(run), run.dataset.classes
        if run.privacy.mechanism == "signed_subset" and classes is not None and len(classes) != 2:
            faults.append(
                f'privacy.mechanism: "signed_subset" is for two classes, and dataset.classes has {len(classes)}; use "auto"'
            )
        if run.campaign.name and self.may_ask_again:
            faults.append(
                "model.paper.termination: a campaign asks each holder once, and Algorithm 2 may ask again; set it to false"
            )
        return faults

    @model_validator(mode="after")
    def _check_switches(self) -> LPCTConfig:
        """Raises ValueError for switches of Algorithm 2 that are set and would do nothing."""
        usual = PaperConfig()
        turned = [key for key in PaperConfig.model_fields if getattr(self.paper, key) != getattr(usual, key)]
        if self.prune != "paper" and turned:
            raise ValueError(
                "\n".join(
                    f'paper.{key}: is for prune = "paper", and this is "{self.prune}"; leave it out, or set prune'
                    for key in turned
                )
            )
        if self.partition == "cart" and "stop_empty" in turned:
            raise ValueError(
                'paper.stop_empty: is for partition = "max-edge" or "random-edge"; leave it out with "cart"'
            )
        return self


class LPDTConfig(WeighedConfig):
    """A tree of numbers."""

    papers_pruning: ClassVar[str] = "fallback"
    learned: ClassVar[Literal["classes", "numbers", "errors"]] = "numbers"
    estimator: Literal["lpdt"] = "lpdt"
    """One tree of numbers, learned from reports."""
    prune: Literal["smooth", "fallback", "none"] = "smooth"
    rho: Share = 0.5
    """The share of epsilon that the cell gets where the number is sent apart from it."""
    label_range: LabelRange | None = None
    """What private labels are moved into; by default the range of the public ones. Noise is as wide as it."""

    def question_settings(self, run: RunTables, n_public: int) -> dict[str, Any]:
        """The tree, and the share of epsilon that the cell gets."""
        return super().question_settings(run, n_public) | {"rho": self.rho}

    def campaign_terms(self, run: RunTables) -> dict[str, Any]:
        """How a number is sent."""
        ends = None if self.label_range is None else list(self.label_range)
        return {"model.rho": self.rho, "model.label_range": ends}


class CorrectionModelConfig(TreeConfig):
    """A public model, and a tree of its errors; [correction] says more."""

    estimator: Literal["correction"] = "correction"
    """A public model of classes or numbers, corrected by reports of its error."""
    labels: ClassVar[frozenset[Label]] = frozenset({"class", "number"})
    tables: ClassVar[frozenset[str]] = frozenset({"correction"})
    is_correction: ClassVar[bool] = True
    learned: ClassVar[Literal["classes", "numbers", "errors"]] = "errors"

    def label_of(self, run: RunTables) -> Label | None:
        """A class or a number, by what is declared."""
        declared = declared_label(run.dataset)
        if run.dataset.label is None and declared != "class" and run.correction.is_for_numbers:
            return "number"
        return declared

    def question_settings(self, run: RunTables, n_public: int) -> dict[str, Any]:
        """The tree, the public model and its errors."""
        own = run.correction
        return super().question_settings(run, n_public) | {
            "base": own.named_base,
            "n_levels": own.label_levels,
            "residual_range": None if own.residual_range == "auto" else own.residual_range,
            "questions": own.questions,
            "max_bytes": own.max_protocol_bytes,
        }

    def summarize(self, run: RunTables) -> dict[str, Any]:
        """What is corrected, and the kind of its label."""
        own = {"lam": None, "target": run.dataset.target, "label": self.label_of(run)}
        return own | {"base": run.correction.named_base}

    def asks_once(self, run: RunTables) -> bool:
        """Whether no part of the holders may be asked before the others."""
        return run.campaign.name is not None or run.correction.questions == 1

    def campaign_terms(self, run: RunTables) -> dict[str, Any]:
        """What is corrected, and the kind of its label."""
        kind = "number" if self.label_of(run) == "number" else "class"
        own = run.correction.model_dump(mode="json", exclude={"questions"}) | {
            "base": run.correction.named_base
        }
        return {"label": kind} | {f"correction.{key}": value for key, value in own.items()}

    def faults(self, run: RunTables) -> list[str]:
        """A residual is reported jointly with its cell; some keys are for numbers."""
        faults, own, mechanism = super().faults(run), run.correction, run.privacy.mechanism
        is_number = self.label_of(run) == "number"
        if mechanism not in RESIDUAL_MECHANISMS:
            faults.append(
                f'privacy.mechanism: "{mechanism}" is not for a residual, which is reported together with '
                f"its cell; use one of {', '.join(RESIDUAL_MECHANISMS)}"
            )
        if mechanism == "signed_subset" and own.label_levels not in ("auto", 2):
            faults.append(
                f'correction.label_levels: "signed_subset" rounds to 2 levels, not to {own.label_levels}; leave it out'
            )
        if own.questions == 2 and run.campaign.name is not None:
            faults.append(
                "correction.questions: a campaign publishes one question for all its runs; leave it out"
            )
        if not is_number and own.residual_range != "auto":
            faults.append(
                "correction.residual_range: is for a label that is a number; a class's residual is in +- 1. Leave it out"
            )
        return faults


class RoundsConfig(ModelConfig):
    """[model] of a family that asks in rounds, where some features are public."""

    tables: ClassVar[frozenset[str]] = frozenset({"features"})
    in_rounds: ClassVar[bool] = True
    own_mechanisms: ClassVar[str] = ""
    """How to set the mechanisms of its own, where that can be done."""
    label_range: LabelRange | None = None
    """What private labels are moved into; by default the range of the public ones."""

    def faults(self, run: RunTables) -> list[str]:
        """It has mechanisms of its own, and cannot be a campaign."""
        name, faults = self.estimator, super().faults(run)
        if "features" not in run.model_fields_set:
            faults.append(
                "features: say what the holders protect: private = [...], or [] where the label is all they protect"
            )
        if run.campaign.name:
            faults.append(
                f"campaign.name: a campaign asks each holder once, and {name} asks in rounds; leave it out"
            )
        if run.privacy.mechanism != "auto":
            faults.append(
                f"privacy.mechanism: {name} has mechanisms of its own; leave it out{self.own_mechanisms}"
            )
        if run.privacy.outside != "clip":
            faults.append(
                f"privacy.outside: with {name}, values out of range are moved to the border; leave it out"
            )
        return faults


class HistOfTreeModelConfig(RoundsConfig):
    """HistOfTree; [histoftree] says more."""

    estimator: Literal["histoftree"] = "histoftree"
    """The paper's method for numbers where some features are public."""
    tables: ClassVar[frozenset[str]] = frozenset({"features", "histoftree"})
    own_mechanisms: ClassVar[str] = ", or set histoftree.mechanism and histoftree.label"

    def mask_release(self, run: RunTables) -> str:
        """As [histoftree] says."""
        return run.histoftree.mask_release

    def question_settings(self, run: RunTables, n_public: int) -> dict[str, Any]:
        """All of [histoftree]."""
        return run.histoftree.settings

    def faults(self, run: RunTables) -> list[str]:
        """Floating-point noise is for a simulation."""
        faults = super().faults(run)
        if run.histoftree.label == "laplace" and not run.is_seeded:
            faults.append(
                "histoftree.label: laplace is a simulation device, its floating-point noise gives holders away; use "
                "optimal_label, or set simulation.noise_seed"
            )
        return faults


class PublicFeaturesConfig(RoundsConfig):
    """Trees and a surface over public features, corrected by what is asked of the private ones."""

    estimator: Literal["public_features"] = "public_features"
    """Numbers where some features are public."""


def declared_label(data: DatasetSpec) -> Label | None:
    """The kind of label that a data set declares; None where only public rows can tell."""
    if data.label is not None:
        return data.label
    if data.positive is not None or data.classes is not None or data.target in data.levels:
        return "class"
    declared = data.types.get(data.target)
    if declared == "number" or data.unit:
        return "number"
    return None if declared in (None, "integer") else "class"


def _with_estimator(raw: Any) -> Any:
    """The recommended one, where [model] names no estimator."""
    return {"estimator": "auto"} | raw if isinstance(raw, dict) else raw


def _or_without_estimator(schema: dict[str, Any]) -> None:
    """A [model] table without `estimator` fits the schema of several families, of which oneOf would allow one."""
    schema["anyOf"] = schema.pop("oneOf")
    del schema["discriminator"]


_Family = (
    AutoConfig
    | LPCTConfig
    | LPDTConfig
    | HistOfTreeModelConfig
    | PublicFeaturesConfig
    | CorrectionModelConfig
)
AnyModelConfig = Annotated[
    Annotated[_Family, Field(discriminator="estimator", json_schema_extra=_or_without_estimator)],
    BeforeValidator(_with_estimator),
]
FAMILIES: dict[str, type[ModelConfig]] = {family.name_of_family(): family for family in get_args(_Family)}
"""By `model.estimator`."""
OWNERS = {
    table: [name for name, family in FAMILIES.items() if table in family.tables]
    for table in ("features", "histoftree", "correction")
}
"""The families that have a table, for each table that not all of them have."""


def estimators_for(label: Label) -> list[str]:
    """Values of `model.estimator` that can predict this kind of label, quoted."""
    return [f'"{name}"' for name, family in FAMILIES.items() if label in family.labels]


def foreign_key(key: str, family: type[ModelConfig]) -> str | None:
    """Why the [model] table of a family has no such key, where other families have it; None where none has."""
    owners = [name for name, other in FAMILIES.items() if key in other.model_fields]
    if not owners:
        return None
    is_of_trees = family.in_rounds and len(owners) > 1
    of = "estimators of one tree" if is_of_trees else f'estimator = "{owners[0]}"'
    if family is AutoConfig:
        return f"is for estimator = {_either(owners)}; set model.estimator, or leave it out"
    return f'is for {of}; leave it out with "{family.name_of_family()}"'


def _either(names: Iterable[str]) -> str:
    return " or ".join(f'"{name}"' for name in names)


def _values_of(key: str) -> set[Any]:
    """Every value that a key may have in some family."""
    fields = [family.model_fields[key] for family in FAMILIES.values() if key in family.model_fields]
    return {value for field in fields for value in get_args(field.annotation)}
