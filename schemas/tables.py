"""The tables of a configuration that are the same for every family of estimators. Any table is frozen and strict, and
refuses undeclared keys.
"""

from __future__ import annotations

import contextlib
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue

from ldptree.families.settings import Mechanism
from ldptree.limits import MAX_LIFETIME, check_epsilon
from ldptree.settings import texts_of

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
RAY = r"^(auto|[^\s:/]+:[0-9]{1,5})$"
IN_WORDS = {
    NAME: "use letters, digits, '.', '_' and '-', at most 64 of them, first a letter or a digit",
    RAY: 'write "auto", or the host and port of the cluster as "10.0.0.1:6379"',
}
"""The form of a text that fits each pattern, in words."""


def not_bool(value: object) -> object:
    """Raises ValueError on true and false."""
    if isinstance(value, bool):
        raise ValueError("true and false are not numbers")
    return value


def _lifetime(value: float) -> float:
    if not 0.0 < value <= MAX_LIFETIME:
        raise ValueError(
            f"the lifetime cap must be above 0 and at most {MAX_LIFETIME:g} (leave it out for none), got {value!r}"
        )
    return value


Epsilon = Annotated[float, BeforeValidator(not_bool), AfterValidator(check_epsilon)]
LifetimeEpsilon = Annotated[float, BeforeValidator(not_bool), AfterValidator(_lifetime)]


def _as_texts(value: object) -> object:
    """One text is a list of one, as elsewhere in a configuration. Raises ValueError."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or any(not isinstance(text, str) for text in texts):
        raise ValueError(f"write a list of column names, got {value!r}")
    return tuple(texts)


class Table(BaseModel):
    """One table of the file. It is frozen, refuses undeclared keys, and takes no text for a number or a truth value."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema with what is written below each key, which Prefect's form shows."""
        schema = handler(core_schema)
        for key, value in handler.resolve_ref_schema(schema).get("properties", {}).items():
            if text := texts_of(cls).get(key):
                value["description"] = text
        return schema


class PrivacyConfig(Table):
    """The reports that leave a holder's hands."""

    epsilon: Epsilon = 1.0
    """The most that a holder may spend in this run, above 0 and at most 64."""
    max_released_checks: int = Field(default=0, ge=0)
    """The most results of expectations on private rows that may ever leave the holders of a work folder."""
    lifetime_epsilon: LifetimeEpsilon | None = None
    """The most that a holder may spend over all runs of a work folder; it can be lowered later, never raised."""
    mechanism: Mechanism = "auto"
    """The mechanism of a report. "auto" reports cell and label together by "grr" or "oue", whichever has less noise; a
    correction can use "signed_subset" too. "laplace" is for seeded simulations.
    """
    outside: Literal["clip", "drop"] = "clip"
    """The treatment of a number outside the public range: move it to the border, or report it as "outside"."""
    max_report_bytes: int = Field(default=2 << 30, ge=0)
    """The largest size of all reports; above it the simulation draws the sum of each shard from its exact distribution."""

    @model_serializer(mode="wrap")
    def _without_unused_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A run without `max_released_checks` has the canonical text that it had before there was such a key."""
        plain: dict[str, Any] = handler(self)
        return {key: value for key, value in plain.items() if key != "max_released_checks" or value}

    @model_validator(mode="after")
    def _check_lifetime(self) -> PrivacyConfig:
        """A lifetime has room for one report at least."""
        if self.lifetime_epsilon is not None and self.lifetime_epsilon < self.epsilon:
            raise ValueError(
                f"lifetime_epsilon: {self.lifetime_epsilon!r} is less than this run's epsilon = {self.epsilon!r}; "
                "raise it, or lower epsilon"
            )
        return self


class SimulationConfig(Table):
    """The holders as this machine plays them."""

    noise_seed: int | None = Field(default=None, ge=0)
    """Make the noise repeatable, so that it protects nobody. By default a trial derives the seed from its name."""


class EvaluateConfig(Table):
    """The scores on held-back private rows in a simulation, and the caps on what they may cost."""

    redraws: int = Field(default=20, ge=0, le=1000)
    """The number of repeated draws of the holders' noise, which give the spread."""
    test_rows: int = Field(default=50_000, ge=1)
    """The most held-back rows to score."""
    public_rows: int = Field(default=20_000, ge=1)
    """The most public rows to fit the public tree and forest on."""
    private_rows: int = Field(default=100_000, ge=1)
    """The most private rows to fit the models without privacy on."""


class RunnerConfig(Table):
    """The machines that compute shards. It changes no result and no key of an artifact."""

    ray: str | None = Field(default=None, pattern=RAY)
    """The Ray cluster that this machine belongs to, as "10.0.0.1:6379" or "auto"; by default threads of this process."""
    workers: int | None = Field(default=None, ge=1, le=256)
    """The number of shards to compute at once; by default the number of CPUs."""


class CampaignConfig(Table):
    """A named collection that later runs continue."""

    name: str | None = Field(default=None, pattern=NAME)
    """The name of a collection that later runs continue. Its first run freezes its terms."""


def _as_end(value: object) -> object:
    """A day, or a number of reports. Raises ValueError."""
    with contextlib.suppress(ValueError):
        if isinstance(value, str):
            return date.fromisoformat(value)
    if isinstance(value, datetime) or not isinstance(value, date | int | None) or not_bool(value) == 0:
        raise ValueError(f'write a day, as "2026-12-01", or a number of reports, got {value!r}')
    return value


class CollectionConfig(Table):
    """A run whose reports come from outside. Every row is public, and people answer on their own devices."""

    expected_holders: int | None = Field(default=None, ge=1)
    """How many people are expected to answer; the question is made for so many. Later runs keep to it."""
    totals: str | None = Field(default=None, min_length=1)
    """Instead of an inbox: the file, or address in a bucket, of sums that somebody else added up. `ldptree aggregate` writes such
    a file, raw.parquet.
    """
    inbox: str | None = Field(default=None, min_length=1)
    """The folder, or address such as s3://bucket/prefix, where their reports arrive: files that end in .jsonl, one report a
    line. A file that is being written has another name until it is whole.
    """

    close: Annotated[date | int | None, BeforeValidator(_as_end)] = None
    """Where model.questions = 2: the day (UTC) from which a run closes the first question, as "2026-12-01", or the number of
    reports with which it does. It publishes the second then. Those who have answered are not asked again.
    """

    shuffler: str | None = Field(default=None, pattern=NAME)
    """The name of another party that runs the intake, and hands on all reports shuffled together. The page then says which
    epsilon a report has among them.
    """

    @model_validator(mode="after")
    def _check_both(self) -> CollectionConfig:
        if self.close is not None and self.totals is not None:
            raise ValueError("close: sums from elsewhere answer one question; leave it out, or name an inbox")
        if self.inbox is not None and self.totals is not None:
            raise ValueError(
                "totals: reports come to an inbox, or their sums are a file; leave one of the two out"
            )
        return self

    @property
    def missing(self) -> str:
        """The key that a collection lacks; "" of a whole one, and where there is none."""
        has_place = self.inbox is not None or self.totals is not None
        if has_place == (self.expected_holders is not None):
            return ""
        return "expected_holders" if has_place else "inbox"


class FeaturesConfig(Table):
    """The features that holders protect; every other feature is public."""

    private: Annotated[tuple[str, ...], BeforeValidator(_as_texts)] = ()
    """Features that every holder protects; the label always is."""
    protects: dict[str, str] = Field(default={})
    """Features that only some protect, each with the raw column that says so by true or false."""

    @property
    def masks(self) -> frozenset[str]:
        """Return the columns that say what is protected, which are no features."""
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
