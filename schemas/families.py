"""[model] of a run: a family of estimators, and its settings. What may be set, and the checks of it, are in
`ldptree.families.settings`; here is what the settings of a family ask of the other tables of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, core_schema

from ldptree.errors import ConfigError
from ldptree.families import FAMILIES
from ldptree.families.settings import CorrectionSettings, FamilySettings, Label, TreeSettings
from ldptree.settings import Settings, annotations_of, read_value, settings_in, texts_of
from schemas.dataset import DatasetSpec

AUTO = "auto"
"""`model.estimator` where no family is named: the one that is recommended (`ldptree.families.choose_family`)."""


class ModelError(ValueError):
    """The faults of a [model] table: the key of each, and what is wrong; "" where nobody knows the key."""

    def __init__(self, faults: list[tuple[str, str]]) -> None:
        super().__init__("\n".join(": ".join(fault) for fault in faults))
        self.faults = faults


@dataclass(frozen=True)
class ModelConfig:
    """[model] of a run.

    Attributes:
        estimator: the family's name, or "auto".
        settings: the family's.
        stated: those of the settings that were stated.
    """

    estimator: str = AUTO
    settings: FamilySettings = field(default_factory=TreeSettings)
    stated: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    @classmethod
    def parse(cls, raw: Any) -> ModelConfig:
        """Return the table that was written. A key that only other families have may have its usual value there, so that another
        estimator is one word away from a configuration that spells out what is usual.

        Raises:
            ModelError: what it says cannot be.
        """
        if isinstance(raw, cls):
            return raw
        if not isinstance(raw, dict):
            raise ModelError([("", f"input should be a table of keys, got {raw!r:.80}")])
        families = settings_by_name()
        try:
            name = read_value("estimator", Literal[tuple(families)], raw.get("estimator", AUTO))
        except ConfigError as fault:
            raise ModelError([("estimator", str(fault).removeprefix("estimator "))]) from None
        of = families[name]
        usual = [other.defaults() for other in families.values()]
        stated = {
            key: value
            for key, value in raw.items()
            if key != "estimator"
            and (key in of.names() or not any(key in setting and setting[key] == value for setting in usual))
        }
        if faults := of.list_faults(stated):
            raise ModelError([(key, fault or foreign_key(key, name)) for key, fault in faults])
        try:
            return cls(name, of(**stated), frozenset(stated))
        except ConfigError as fault:
            raise ModelError([_split(line) for line in str(fault).split("\n")]) from None

    @property
    def plain(self) -> dict[str, Any]:
        """The table as JSON writes it."""
        return {"estimator": self.estimator} | self.settings.plain

    @property
    def unusual(self) -> dict[str, Any]:
        """Its settings that have not their usual values."""
        usual = type(self.settings)().plain
        return {key: value for key, value in self.settings.plain.items() if value != usual[key]}

    @property
    def in_rounds(self) -> bool:
        """True if several questions are asked, where some features are public."""
        return self.estimator != AUTO and FAMILIES[self.estimator].in_rounds

    def as_family(self, name: str) -> ModelConfig:
        """[model] of this family with the keys that are set here."""
        plain = self.settings.plain
        return self.parse({"estimator": name} | {key: plain[key] for key in self.stated})

    def as_published(self, terms: Mapping[str, Any]) -> ModelConfig:
        """The same with what is not said as a campaign's first run was told it."""
        name = terms["model.estimator"] if self.estimator == AUTO else self.estimator
        model = self.as_family(name)
        if isinstance(model.settings, CorrectionSettings) and model.settings.base == AUTO:
            return replace(model, settings=replace(model.settings, base=terms.get("model.base", AUTO)))
        return model

    def label_of(self, data: DatasetSpec) -> Label | None:
        """The kind of label that it predicts, by what is declared; None where only public rows can tell."""
        if len(self.settings.LABELS) == 1:
            return self.settings.predicts
        declared = declared_label(data)
        return (
            declared if data.label is not None or declared == "class" else self.settings.predicts or declared
        )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Pydantic's hook: how it is read and written."""
        return core_schema.no_info_plain_validator_function(
            cls.parse,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda model: model.plain),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        """Pydantic's hook: the form of a deployment, with the text of each key."""
        return {"anyOf": [_schema_of(of, name) for name, of in settings_by_name().items()]}


def _split(line: str) -> tuple[str, str]:
    key, _, fault = line.partition(": ")
    return key, fault


def _schema_of(of: type[Settings], name: str = "") -> dict[str, Any]:
    """The JSON schema of a table of settings. `name`: of the family whose it is."""
    defaults, texts, properties = of.defaults(), texts_of(of), {}
    for key, kind in annotations_of(of).items():
        inner = settings_in(kind)
        schema = _schema_of(inner) if inner is not None else TypeAdapter(kind).json_schema()
        properties[key] = schema | {"description": texts.get(key, ""), "default": defaults[key]}
    if name:
        own = {"description": "The family that learns.", "enum": [name], "default": name}
        properties = {"estimator": own} | properties
    return {
        "title": name or of.__name__,
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": ["estimator"] if name not in ("", AUTO) else [],
    }


def settings_by_name() -> dict[str, type[FamilySettings]]:
    """Return what may be set, by `model.estimator`."""
    return {AUTO: TreeSettings} | {name: family.settings for name, family in FAMILIES.items()}


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


def estimators_for(label: Label) -> list[str]:
    """Values of `model.estimator` that can predict this kind of label, quoted."""
    return [f'"{name}"' for name, settings in settings_by_name().items() if label in settings.LABELS]


def foreign_key(key: str, name: str) -> str:
    """Say why the [model] table of a family has no such key, where other families have it; "" where none has."""
    owners = [other for other, settings in settings_by_name().items() if key in settings.names()]
    if not owners:
        return ""
    if name == AUTO:
        return f"is for estimator = {either(owners)}; set model.estimator, or leave it out"
    is_of_trees = owners[0] == AUTO and FAMILIES[name].in_rounds
    of = "estimators of one tree" if is_of_trees else f"estimator = {either(owners)}"
    return f'is for {of}; leave it out with "{name}"'


def either(names: Iterable[str]) -> str:
    """Return quoted names with "or" between them."""
    return " or ".join(f'"{name}"' for name in names)
