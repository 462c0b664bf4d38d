"""A run's configuration: what it may say, checked whole, every problem at once. Where data come from is `dataset`; no
file is opened here but the TOML.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from ldptree.errors import ConfigError
from ldptree.limits import MAX_EPSILON, MIN_EPSILON
from schemas.assignments import lay_over, with_remedy
from schemas.catalogue import with_catalogue, with_paths_from
from schemas.dataset import DatasetSpec
from schemas.features import FeaturesConfig, HistOfTreeConfig
from schemas.model import CLASSES, CorrectionConfig, ModelConfig
from schemas.named_files import A_FOLDER, NO_SUCH_FILE, read_fault, shown_path
from schemas.table import Table
from schemas.table import not_bool as _not_bool

MAX_LIFETIME = 1000.0
RESIDUAL_MECHANISMS = ("auto", "grr", "oue", "sue", "ss", "olh")
"""How a residual may be reported: jointly with its cell."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


def _finite_epsilon(value: float) -> float:
    if 0.0 < value < MIN_EPSILON:
        raise ValueError(
            f"epsilon must be at least {MIN_EPSILON:g}: below that, reports tell nothing; got {value!r}"
        )
    if not 0.0 < value <= MAX_EPSILON:
        raise ValueError(f"epsilon must be above 0 and at most {MAX_EPSILON:g}, got {value!r}")
    return value


def _lifetime(value: float) -> float:
    if not 0.0 < value <= MAX_LIFETIME:
        raise ValueError(
            f"the lifetime cap must be above 0 and at most {MAX_LIFETIME:g} (leave it out for none), got {value!r}"
        )
    return value


Epsilon = Annotated[float, BeforeValidator(_not_bool), AfterValidator(_finite_epsilon)]
LifetimeEpsilon = Annotated[float, BeforeValidator(_not_bool), AfterValidator(_lifetime)]


class PrivacyConfig(Table):
    """What leaves a holder's hands.

    `max_released_checks`: how many answers of `dataset.release_checks` may ever leave the holders of a work folder.
    """

    epsilon: Epsilon
    max_released_checks: int = Field(default=0, ge=0)
    lifetime_epsilon: LifetimeEpsilon | None = None
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
    outside: Literal["clip", "drop"] = "clip"
    max_report_bytes: int = Field(default=2 << 30, ge=0)

    @model_serializer(mode="wrap")
    def _without_what_is_usual(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A new key is no part of what a run without it is known by."""
        plain: dict[str, Any] = handler(self)
        return {key: value for key, value in plain.items() if key != "max_released_checks" or value}

    @model_validator(mode="after")
    def _a_lifetime_has_room_for_one_report(self) -> PrivacyConfig:
        if self.lifetime_epsilon is not None and self.lifetime_epsilon < self.epsilon:
            raise ValueError(
                f"lifetime_epsilon: {self.lifetime_epsilon!r} is less than this run's epsilon = {self.epsilon!r}; "
                "raise it, or lower epsilon"
            )
        return self


class SimulationConfig(Table):
    """The holders as this machine plays them. Without `noise_seed` their coins come from the operating system."""

    noise_seed: int | None = Field(default=None, ge=0)


class EvaluateConfig(Table):
    """What the simulation scores on held-back private rows, and the caps on what it may cost."""

    redraws: int = Field(default=20, ge=0, le=1000)
    test_rows: int = Field(default=50_000, ge=1)
    public_rows: int = Field(default=20_000, ge=1)
    private_rows: int = Field(default=100_000, ge=1)


class CampaignConfig(Table):
    """A named collection that later runs go on with."""

    name: str | None = Field(default=None, pattern=NAME)


class RunConfig(Table):
    """One run, whole."""

    name: str = Field(pattern=NAME)
    seed: int = Field(default=0, ge=0, lt=2**32)
    evaluate: bool = True
    dataset: DatasetSpec
    model: ModelConfig = ModelConfig()
    privacy: PrivacyConfig
    simulation: SimulationConfig = SimulationConfig()
    evaluation: EvaluateConfig = EvaluateConfig()
    campaign: CampaignConfig = CampaignConfig()
    features: FeaturesConfig = FeaturesConfig()
    histoftree: HistOfTreeConfig = HistOfTreeConfig()
    correction: CorrectionConfig = CorrectionConfig()

    @model_serializer(mode="wrap")
    def _without_tables_of_other_estimators(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A new estimator's tables are no part of what an older one is known by."""
        plain: dict[str, Any] = handler(self)
        if not self.model.in_rounds:
            plain.pop("features", None)  # left out already where defaults are
        if self.model.estimator != "histoftree":
            plain.pop("histoftree", None)
        if not self.model.is_correction:
            plain.pop("correction", None)
        return plain

    @model_validator(mode="after")
    def _something_is_scored(self) -> RunConfig:
        if self.evaluate and self.dataset.test_fraction == 0.0:
            raise ValueError(
                "dataset.test_fraction: 0 holds no row back to score on; raise it, or set evaluate = false"
            )
        return self

    @model_validator(mode="after")
    def _the_kind_of_label_fits_its_estimator(self) -> RunConfig:
        stated, kind = self.dataset.label, self.label
        if stated is not None and stated != kind:
            raise ValueError(
                f'dataset.label: model.estimator = "{self.model.estimator}" predicts a {kind}, and this says "{stated}"; '
                "leave it out, or choose another estimator"
            )
        return self

    @model_validator(mode="after")
    def _the_label_fits_its_estimator(self) -> RunConfig:
        if not self.is_numeric:
            return self
        data, who = self.dataset, f'model.estimator = "{self.model.estimator}" predicts a number'
        if self.model.is_correction:
            who = "this label is a number"
        kind = data.types.get(data.target, "number")
        faults = [
            f"dataset.{key}: is for a label of classes, and {who}. Leave it out, or choose another dataset.target"
            for key in ("positive", "classes")
            if getattr(data, key) is not None
        ]
        if data.target in data.levels:
            faults.append(f'dataset.levels: "{data.target}" is the target, and {who}. Leave its levels out')
        if kind not in ("number", "integer"):
            faults.append(
                f'dataset.types: "{data.target}", the target, is declared {kind}, and {who}. Declare it "number"'
            )
        if faults:
            raise ValueError("\n".join(faults))
        return self

    @model_validator(mode="after")
    def _rounds_fit_their_estimator(self) -> RunConfig:
        name, faults = self.model.estimator, []
        if not self.model.in_rounds:
            faults += [
                f'{table}: is for model.estimator = {who}; leave it out with "{name}"'
                for table, who in (
                    ("features", '"histoftree" or "public_features"'),
                    ("histoftree", '"histoftree"'),
                )
                if table in self.model_fields_set
            ]
        else:
            if "features" not in self.model_fields_set:
                faults.append(
                    "features: say what the holders protect: private = [...], or [] where the label is all they protect"
                )
            if self.campaign.name:
                faults.append(
                    f"campaign.name: a campaign asks each holder once, and {name} asks in rounds; leave it out"
                )
            if self.privacy.mechanism != "auto":
                faults.append(
                    f"privacy.mechanism: {name} has mechanisms of its own; leave it out"
                    + (", or set histoftree.mechanism and histoftree.label" if name == "histoftree" else "")
                )
            if self.privacy.outside != "clip":
                faults.append(
                    f"privacy.outside: with {name}, values out of range are moved to the border; leave it out"
                )
            if name != "histoftree" and "histoftree" in self.model_fields_set:
                faults.append(
                    f'histoftree: is for model.estimator = "histoftree"; leave it out with "{name}"'
                )
            if name == "histoftree" and self.histoftree.label == "laplace" and not self.is_seeded:
                faults.append(
                    "histoftree.label: laplace is a simulation device, its floating-point noise gives holders away; use "
                    "optimal_label, or set simulation.noise_seed"
                )
        if faults:
            raise ValueError("\n".join(faults))
        return self

    @model_validator(mode="after")
    def _a_correction_fits(self) -> RunConfig:
        faults = []
        if not self.model.is_correction:
            if "correction" in self.model_fields_set:
                faults.append(
                    f'correction: is for model.estimator = "correction"; leave it out with "{self.model.estimator}"'
                )
        else:
            if self.privacy.mechanism not in RESIDUAL_MECHANISMS:
                faults.append(
                    f'privacy.mechanism: "{self.privacy.mechanism}" is not for a residual, which is reported jointly with its '
                    f"cell; use one of {', '.join(RESIDUAL_MECHANISMS)}"
                )
            if not self.is_numeric and self.correction.base == "blend":
                faults.append(
                    'correction.base: "blend" is for a label that is a number; for classes take "forest", "boosting" or "tree"'
                )
            if "slope" in self.correction.model_fields_set and not self.has_slope:
                faults.append(
                    'correction.slope: is for base = "tree" and a label that is a number. Leave it out'
                )
            if not self.is_numeric and self.correction.residual_range != "auto":
                faults.append(
                    "correction.residual_range: is for a label that is a number; a class's residual is in +- 1. Leave it out"
                )
        if faults:
            raise ValueError("\n".join(faults))
        return self

    @model_validator(mode="after")
    def _released_checks_are_counted(self) -> RunConfig:
        if self.dataset.release_checks and not self.is_seeded and not self.privacy.max_released_checks:
            raise ValueError(
                "dataset.release_checks: whether private rows meet an expectation is told exactly, without noise. Say how many "
                "such answers may ever leave this work folder's holders in privacy.max_released_checks, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _campaigns_ask_once(self) -> RunConfig:
        if self.campaign.name and self.model.may_ask_again:
            raise ValueError(
                "model.paper.termination: a campaign asks each holder once, and Algorithm 2 may ask again; set it to false"
            )
        return self

    @model_validator(mode="after")
    def _no_holder_leaks(self) -> RunConfig:
        if self.privacy.mechanism == "laplace" and self.simulation.noise_seed is None:
            raise ValueError(
                "privacy.mechanism: laplace is a simulation device, its floating-point noise gives holders away; "
                "use discrete_laplace, or set simulation.noise_seed"
            )
        return self

    @model_validator(mode="after")
    def _signed_subsets_are_of_two_classes(self) -> RunConfig:
        classes = self.dataset.classes
        if self.privacy.mechanism == "signed_subset" and classes is not None and len(classes) != 2:
            raise ValueError(
                f'privacy.mechanism: "signed_subset" is for two classes, and dataset.classes has {len(classes)}; use "auto"'
            )
        return self

    @property
    def has_slope(self) -> bool:
        """Whether a straight line may stand beside the public model of a correction."""
        return self.model.is_correction and self.is_numeric and self.correction.base == "tree"

    @property
    def label(self) -> Literal["class", "number"] | None:
        """What the label is, by the estimator or by what is declared; None where only public rows can tell."""
        if not self.model.is_correction:
            return "class" if self.model.estimator == CLASSES else "number"
        data = self.dataset
        if data.label is not None:
            return data.label
        declared = data.types.get(data.target)
        if data.positive is not None or data.classes is not None or data.target in data.levels:
            return "class"
        if declared == "number" or data.unit or self._has_keys_of_numbers:
            return "number"
        return None if declared in (None, "integer") else "class"

    @property
    def _has_keys_of_numbers(self) -> bool:
        """Whether [correction] has a key that is for numbers alone."""
        own = self.correction
        return own.base == "blend" or own.residual_range != "auto" or "slope" in own.model_fields_set

    @property
    def is_numeric(self) -> bool:
        """Whether the label is a number, as far as is known."""
        return self.label == "number"

    def with_label(self, label: Literal["class", "number"]) -> RunConfig:
        """The same with a label whose kind was told from public rows."""
        return self.model_copy(update={"dataset": self.dataset.model_copy(update={"label": label})})

    @property
    def mask_release(self) -> str:
        """What holders send of what they protect: all, or for HistOfTree less."""
        return self.histoftree.mask_release if self.model.estimator == "histoftree" else "all"

    @property
    def round_settings(self) -> dict[str, Any]:
        """The settings of an estimator that asks in rounds, as `ldptree.families.curators` takes them."""
        return self.histoftree.settings if self.model.estimator == "histoftree" else {}

    @property
    def is_seeded(self) -> bool:
        """A seeded run repeats byte for byte, and protects nobody."""
        return self.simulation.noise_seed is not None


def load(config: str | Path, assignments: list[str] | None = None) -> RunConfig:
    """The configuration in a TOML file (or a packaged one, by name) with `KEY=VALUE` assignments over it (`assignments`).

    Raises ConfigError: file not found, not TOML, and every unknown key, wrong type or value out of range, all in one message.
    """
    path = find(config)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        raw = tomllib.loads(text)
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text. A configuration is a TOML file.") from None
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"{path}: not TOML: {fault}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not a configuration: it is nested too deep.") from None
    # A path in the file is taken from the file's folder, one typed at the prompt from the current one.
    if isinstance(raw.get("dataset"), dict):
        raw["dataset"] = with_paths_from(path.parent.absolute(), raw["dataset"])
    lay_over(raw, assignments or ())
    return parse(raw, source=str(config), folder=Path.cwd(), assignments=assignments or ())


def parse(
    raw: dict[str, Any],
    *,
    source: str = "configuration",
    folder: Path | None = None,
    assignments: Sequence[str] = (),
) -> RunConfig:
    """Check a configuration given as nested dicts; relative data paths are taken from `folder`. Raises ConfigError.

    `assignments` were laid over it already: where there are some, what ought to be left out is told with how to do it there.
    """
    faults: list[tuple[str, str]] = []
    is_named, written = True, raw
    if isinstance(raw.get("dataset"), dict):
        try:
            raw = raw | {"dataset": with_catalogue(raw["dataset"], folder)}
        except ConfigError as fault:
            is_named = False
            where, _, message = str(fault).partition(": ")
            faults.append((where, message))
    try:
        config = RunConfig.model_validate(raw)
    except ValidationError as fault:
        # A data set that nobody knows lacks everything: its name is the fault.
        faults += [
            told
            for problem in fault.errors(include_url=False)
            if is_named
            or problem["loc"][:1] != ("dataset",)
            or problem["type"] not in ("missing", "value_error")
            for told in _in_words(problem, raw)
        ]
    if not faults:
        return config
    by_key: dict[str, list[str]] = {}
    for where, message in faults:
        told = with_remedy(message, where, written, assignments) if assignments else message
        by_key.setdefault(where, []).append(told)
    lines = [f"{where}: {_either(messages)}" for where, messages in sorted(by_key.items())]
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    raise ConfigError("\n  ".join([f"{source}: {count}", *lines]))


def packaged() -> dict[str, Path]:
    """The ready-made configurations that come with the program, by name."""
    return {path.stem: path for path in sorted((Path(__file__).parent.parent / "configs").glob("*.toml"))}


def find(config: str | Path) -> Path:
    """The file of a configuration: a path, or the name of a packaged one, which a folder does not hide. Raises ConfigError."""
    path = Path(config)
    fault = read_fault(path)
    if fault is None:
        return path
    ready = packaged()
    name = path.name.removesuffix(".toml")
    if name in ready and (str(config) in (name, f"{name}.toml") or fault == NO_SUCH_FILE):
        return ready[name]
    if fault not in (NO_SUCH_FILE, A_FOLDER):
        raise ConfigError(f"{shown_path(config)}: {fault}. Name a TOML file.")
    near = difflib.get_close_matches(name, ready, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    what = NO_SUCH_FILE if fault == NO_SUCH_FILE else f"is {fault}"
    raise ConfigError(
        f"{shown_path(config)}: {what}, and no packaged configuration ({', '.join(ready)}).{hint}"
    )


def _in_words(problem: Any, raw: dict[str, Any]) -> list[tuple[str, str]]:
    """Where a problem is, as a key's path, and what it is; several where a table's keys do not go together."""
    if problem["type"] != "value_error":
        return [_one_in_words(problem, raw)]
    lines = str(problem["ctx"]["error"]).split("\n")
    return [_one_in_words(problem | {"ctx": {"error": line}}, raw) for line in lines]


def _one_in_words(problem: Any, raw: dict[str, Any]) -> tuple[str, str]:
    location = [str(part) for part in problem["loc"]]
    path: list[str] = []
    known: dict[str, Any] = _fields(RunConfig)
    table: Any = raw
    for part in location:
        if part not in known and not (isinstance(table, dict) and part in table):
            break  # one of the types that the value may have
        path.append(part)
        known = _fields(_model_of(known.get(part)))
        table = table.get(part, {}) if isinstance(table, dict) else {}
    where = ".".join(path)
    match problem["type"]:
        case "extra_forbidden":
            parent: Any = RunConfig
            for part in location[:-1]:
                parent = _model_of(_fields(parent).get(part))
            names = list(_fields(parent))
            near = difflib.get_close_matches(location[-1], names, n=1, cutoff=0.5)
            remedy = f"did you mean {near[0]}?" if near else f"known here: {', '.join(names)}"
            return ".".join(location), f"unknown key; {remedy}"
        case "missing":
            return where, "missing"
        case "value_error":
            message = str(problem["ctx"]["error"])
            key, _, what = message.partition(": ")
            # What speaks of several keys of a table, or of several tables, names the first itself.
            return (".".join([*path, key]), what) if key.partition(".")[0] in known else (where, message)
        case "string_pattern_mismatch":
            return (
                where,
                "use letters, digits, '.', '_' and '-', at most 64 of them, first a letter or a digit, "
                f"got {_short(problem['input'])}",
            )
        case "bool_type":
            return where, f"write true or false, got {_short(problem['input'])}"
        case "model_type" | "model_attributes_type":
            return where, f"input should be a table of keys, got {_short(problem['input'])}"
        case _:
            said = f"{problem['msg'][0].lower()}{problem['msg'][1:]}, got {_short(problem['input'])}"
            return where, said + (_nearest(problem) if problem["type"] == "literal_error" else "")


def _nearest(problem: Any) -> str:
    """'; did you mean ...?', of the words that may be written; '' where none is near."""
    words = re.findall(r"'([^']*)'", problem["ctx"]["expected"])
    near = difflib.get_close_matches(str(problem["input"]), words, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _either(messages: list[str]) -> str:
    """One message of the several that a key gives which may be of several types."""
    if len(messages) == 1 or not all(m.startswith("input should be ") for m in messages):
        return "; ".join(dict.fromkeys(messages))
    got = max((m.rpartition(", got ")[2] for m in messages), key=len)  # one of them may know what is near
    wanted = [
        m.removeprefix("input should be ").rpartition(", got ")[0].partition(", unable")[0] for m in messages
    ]
    return f"input should be {' or '.join(dict.fromkeys(wanted))}, got {got}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."


def _fields(model: Any) -> dict[str, Any]:
    return model.model_fields if isinstance(model, type) and issubclass(model, BaseModel) else {}


def _model_of(info: Any) -> Any:
    if info is None:
        return None
    annotation = info.annotation
    candidates = [annotation, *get_args(annotation)]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
