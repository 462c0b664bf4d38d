"""The tables of a configuration that are the same for every family of estimators, and what any table is: frozen, strict, no key
that nobody declared.
"""

from __future__ import annotations

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

from ldptree.limits import MAX_LIFETIME, check_epsilon
from schemas.descriptions import describe_key
from schemas.named_files import IN_BUCKET, SCHEME

BUCKET = rf"^({SCHEME})://{IN_BUCKET}$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
RAY = r"^(auto|[^\s:/]+:[0-9]{1,5})$"
IN_WORDS = {
    BUCKET: "write the address of a bucket as s3://bucket/prefix (or gs://, az://), without spaces, commas and ? # %",
    NAME: "use letters, digits, '.', '_' and '-', at most 64 of them, first a letter or a digit",
    RAY: 'write "auto", or the host and port of the cluster as "10.0.0.1:6379"',
}
"""What a text that fits a pattern looks like."""


def not_bool(value: object) -> object:
    """Raises ValueError on true and false."""
    if isinstance(value, bool):
        raise ValueError("true and false are not numbers")
    return value


def _epsilon(value: float) -> float:
    check_epsilon(value)
    return value


def _lifetime(value: float) -> float:
    if not 0.0 < value <= MAX_LIFETIME:
        raise ValueError(
            f"the lifetime cap must be above 0 and at most {MAX_LIFETIME:g} (leave it out for none), got {value!r}"
        )
    return value


Epsilon = Annotated[float, BeforeValidator(not_bool), AfterValidator(_epsilon)]
LifetimeEpsilon = Annotated[float, BeforeValidator(not_bool), AfterValidator(_lifetime)]


class Table(BaseModel):
    """One table of the file: frozen, no key that nobody declared, no text taken for a number or a truth."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """With what is written below each key: Prefect's form shows it."""
        schema = handler(core_schema)
        for key, value in handler.resolve_ref_schema(schema).get("properties", {}).items():
            if text := describe_key(cls, key):
                value["description"] = text
        return schema


class PrivacyConfig(Table):
    """What leaves a holder's hands."""

    epsilon: Epsilon = 1.0
    """What one holder may spend in this run, above 0 and at most 64."""
    max_released_checks: int = Field(default=0, ge=0)
    """The most answers to expectations of private rows that may ever leave the holders of a work folder."""
    lifetime_epsilon: LifetimeEpsilon | None = None
    """The most that any holder may spend over all runs of a work folder; it may be lowered later, never raised."""
    mechanism: Literal[
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
    ] = "auto"
    """How a holder reports. "auto": cell and label together by "grr" or "oue", whichever has less noise; a correction may take
    "signed_subset" too. "laplace" is for seeded simulations.
    """
    outside: Literal["clip", "drop"] = "clip"
    """A number outside the public range is moved to the border ("clip") or reported as "outside" ("drop")."""
    max_report_bytes: int = Field(default=2 << 30, ge=0)
    """Where reports would be larger than this, the exact sum of each shard is drawn in their place."""

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
    """Makes the noise repeatable, so that it protects nobody. A trial without one takes it from the name of the run."""


class EvaluateConfig(Table):
    """What the simulation scores on held-back private rows, and the caps on what it may cost."""

    redraws: int = Field(default=20, ge=0, le=1000)
    """Draws of the holders' noise, for the spread."""
    test_rows: int = Field(default=50_000, ge=1)
    """The most held-back rows that are scored."""
    public_rows: int = Field(default=20_000, ge=1)
    """The most public rows that the public tree and forest are fitted on."""
    private_rows: int = Field(default=100_000, ge=1)
    """The most private rows that the models without privacy are fitted on."""


class EngineConfig(Table):
    """Where shards are computed. It changes no result and no key of an artifact."""

    engine: Literal["threads", "ray"] = "threads"
    """In threads of this process, or in processes of a Ray cluster."""
    ray_address: str | None = Field(default=None, pattern=RAY)
    """The Ray cluster of which this machine is one, as "10.0.0.1:6379" or "auto". Without it Ray is started on this machine."""
    workers: int | None = Field(default=None, ge=1, le=256)
    """How many shards are computed at once; as many as this machine has CPUs if left out."""

    @model_validator(mode="after")
    def _check_cluster(self) -> EngineConfig:
        if self.ray_address is not None and self.engine != "ray":
            raise ValueError('ray_address: only engine = "ray" has a cluster; set that, or leave it out')
        if self.ray_address is not None and self.workers is not None:
            raise ValueError("workers: the CPUs of the cluster at ray_address decide; leave one of both out")
        return self


class StoreConfig(Table):
    """Two buckets in place of a work folder: the curator's credentials open nothing of the holders. It changes no result."""

    holders: str | None = Field(default=None, pattern=BUCKET)
    """The holders' bucket, as "s3://bucket/prefix": rows, names, ledger, and the pages of runs."""
    curator: str | None = Field(default=None, pattern=BUCKET)
    """The curator's bucket: public rows, questions, reports, totals and models."""

    @model_validator(mode="after")
    def _check_both(self) -> StoreConfig:
        if (self.holders is None) != (self.curator is None):
            raise ValueError("holders and curator: name both buckets, or leave both out and use --work")
        if self.holders is not None and self.holders.split("/")[2] == str(self.curator).split("/")[2]:
            raise ValueError(
                "holders and curator: these are one bucket; name two, which two credentials open"
            )
        return self

    @property
    def address(self) -> str | None:
        """What a store of the two is opened by, None where there are none."""
        return None if self.holders is None else f"holders={self.holders},curator={self.curator}"


class CampaignConfig(Table):
    """A named collection that later runs continue."""

    name: str | None = Field(default=None, pattern=NAME)
    """A collection that later runs go on with. Its terms are frozen by its first run."""
