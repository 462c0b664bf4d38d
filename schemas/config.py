"""A run's configuration, which is checked whole and reports every problem at once. Where data come from is in
`dataset`. No file is opened here but the TOML.
"""

from __future__ import annotations

import difflib
import hashlib
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from ldptree.errors import ConfigError
from ldptree.families import FAMILIES, choose_family
from ldptree.families.settings import Collection, Label
from ldptree.public_models import WEIGHTED_BASES
from schemas.catalogue import add_remedy, apply_assignments, with_catalogue, with_paths_from
from schemas.config_problems import describe_problem, find_key, join_messages, shorten, split_problem
from schemas.dataset import FILE_SUFFIXES, DatasetSpec
from schemas.families import AUTO, ModelConfig, either
from schemas.named_files import A_FOLDER, BUCKETS, NO_SUCH_FILE, read_fault, shown_path
from schemas.tables import (
    NAME,
    CampaignConfig,
    CollectionConfig,
    EvaluateConfig,
    FeaturesConfig,
    PrivacyConfig,
    RunnerConfig,
    SimulationConfig,
    Table,
)

MOST_BYTES = 1 << 20
MOST_DOTS = 10**7
"""Limit on a file's sum of squared dots by line, as a dotted key takes time by the square of its parts."""
LONGEST_PATH = 200
"""Characters of a key with all tables above it, in a message."""
MOST_PROBLEMS = 20
"""Problems that a message tells."""


class RunConfig(Table):
    """One run, whole."""

    name: str = Field(pattern=NAME)
    """The name of the run."""
    evaluate: bool = True
    """Score the model on held-back private rows, as only a simulation can."""
    release: bool = False
    """Draw the noise from the operating system and charge the ledger even though the run scores on private rows. Otherwise a
    scored run outside a campaign is a trial.
    """
    dataset: DatasetSpec
    privacy: PrivacyConfig = PrivacyConfig()
    simulation: SimulationConfig = SimulationConfig()
    campaign: CampaignConfig = CampaignConfig()
    collection: CollectionConfig = CollectionConfig()
    run: RunnerConfig = Field(default=RunnerConfig(), exclude=True)
    features: FeaturesConfig = FeaturesConfig()
    seed: int = Field(default=0, ge=0, lt=2**32)
    """The seed of public randomness: test rows, rows of "random 0.1" and simulated trips."""
    model: ModelConfig = ModelConfig()
    evaluation: EvaluateConfig = EvaluateConfig()

    @model_serializer(mode="wrap")
    def _without_features(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The canonical text of a run has [features] where it asks in rounds only, and [collection] where there is one."""
        plain: dict[str, Any] = handler(self)
        absent = {"features": not self.model.in_rounds, "collection": not self.is_collection}
        return {key: plain[key] for key in plain if not absent.get(key)}

    @model_validator(mode="after")
    def _check_rows_to_score(self) -> RunConfig:
        if self.evaluate and self.dataset.test_fraction == 0.0:
            raise ValueError(
                "dataset.test_fraction: 0 holds no row back to score on; raise it, or set evaluate = false"
            )
        return self

    @model_validator(mode="after")
    def _check_kind_of_label(self) -> RunConfig:
        stated, kind = self.dataset.label, self.label
        if stated is not None and stated != kind:
            raise ValueError(
                f'dataset.label: model.estimator = "{self.model.estimator}" predicts a {kind}, and this says "{stated}"; '
                "leave it out, or choose another estimator"
            )
        return self

    @model_validator(mode="after")
    def _check_tables_of_the_family(self) -> RunConfig:
        if faults := self._family_faults():
            raise ValueError("\n".join(faults))
        return self

    @model_validator(mode="after")
    def _check_collection(self) -> RunConfig:
        missing = self.collection.missing
        if not self.is_collection and not missing:
            return self
        faults = {
            f"collection.{missing}: a collection names an inbox (or totals) and how many people are expected; add it": missing,
            "evaluate: a collection has no private rows to score on; set evaluate = false": self.evaluate,
            "campaign.name: a collection keeps to its first terms under the run's own name; leave it out": (
                self.campaign.name is not None
            ),
            "privacy.lifetime_epsilon: in a collection each device keeps its own; leave it out": self.privacy.lifetime_epsilon,
            "simulation.noise_seed: in a collection devices draw their own coins; leave it out": (
                self.simulation.noise_seed is not None
            ),
            "dataset.release_checks: a collection has no private rows to check; leave it out": self.dataset.release_checks,
            'dataset.holder: in a collection each device is a holder; leave it out, or write "row"': self.dataset.holder_column,
            f"collection: people are asked one question, and {self.model.estimator} asks several; choose another estimator": (
                self.model.in_rounds
            ),
            "collection.close: it ends the first of two questions; set model.questions = 2, or leave it out": (
                self.collection.close is not None and getattr(self.model.settings, "questions", 1) != 2
            ),
        }
        if wrong := [fault for fault, is_wrong in faults.items() if is_wrong]:
            raise ValueError("\n".join(wrong))
        return self

    @model_validator(mode="after")
    def _check_released_checks(self) -> RunConfig:
        if self.dataset.release_checks and not self.is_seeded and not self.privacy.max_released_checks:
            raise ValueError(
                "dataset.release_checks: whether private rows meet an expectation is told exactly, without noise. Say how many "
                "such answers may ever leave this work folder's holders in privacy.max_released_checks, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _check_simulation_devices(self) -> RunConfig:
        if self.privacy.mechanism == "laplace" and not self.is_seeded:
            raise ValueError(
                "privacy.mechanism: laplace is a simulation device, its floating-point noise gives holders away; "
                "use discrete_laplace, or set simulation.noise_seed"
            )
        return self

    @property
    def is_collection(self) -> bool:
        """Return whether reports come from outside, to an inbox or as totals."""
        return self.collection.expected_holders is not None

    @property
    def published_as(self) -> str | None:
        """The name under which later runs go on with what was asked: a campaign's, or that of a run with an inbox."""
        return self.name if self.is_collection else self.campaign.name

    @property
    def is_trial(self) -> bool:
        """Return whether the run is scored on private rows, with seeded noise and no charge, as nobody is asked."""
        return self.evaluate and not self.release and self.campaign.name is None

    @property
    def noise_seed(self) -> int | None:
        """Return the seed of the holders' coins, configured or by a trial's name, None for system coins."""
        if self.simulation.noise_seed is not None or not self.is_trial:
            return self.simulation.noise_seed
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4])

    @property
    def is_scored_release(self) -> bool:
        """True if real coins protect the reports, while scores read private rows as they are."""
        return self.evaluate and not self.is_seeded

    @property
    def is_seeded(self) -> bool:
        """A seeded run repeats byte for byte on one machine, and protects nobody."""
        return self.noise_seed is not None

    @property
    def label(self) -> Label | None:
        """Kind of the label, by the estimator or by what is declared; None where only public rows can tell."""
        return self.model.label_of(self.dataset)

    @property
    def is_numeric(self) -> bool:
        """True if the label is a number, as far as is known."""
        return self.label == "number"

    def with_inferred(self, label: Label, n_public: int) -> tuple[RunConfig, str]:
        """Return the configuration completed from public rows, with the kind of the label and the recommended family if
        these are not stated. Also return the reason, "" if the family was named.
        """
        run = self._with_label(label)
        if self.model.estimator != AUTO:
            return run, ""
        chosen = choose_family(label, n_public, self.privacy.mechanism)
        return run.model_copy(update={"model": self.model.as_family(chosen.family)}), chosen.reason

    def as_published(self, terms: Mapping[str, Any]) -> RunConfig:
        """The same with what is not said as a campaign's first run was told it, by the terms that it published."""
        label = self.label or terms.get("label")
        run = self._with_label(label) if label else self
        return run.model_copy(update={"model": self.model.as_published(terms)})

    def _with_label(self, label: Label) -> RunConfig:
        if self.label is not None:
            return self
        return self.model_copy(update={"dataset": self.dataset.model_copy(update={"label": label})})

    @property
    def mask_release(self) -> str:
        """Return the part of the mask that holders send, all or less."""
        return getattr(self.model.settings, "mask_release", "all")

    @property
    def asks_once(self) -> bool:
        """True if no question can follow the first."""
        settings = self.model.settings
        is_whole = (
            self.published_as is not None and self.collection.close is None
        ) or not settings.may_ask_parts
        return not self.model.in_rounds and not settings.may_ask_again and is_whole

    def mechanisms(self) -> tuple[str, ...]:
        """Return the mechanisms that reports may be made by; none where the run leaves that open."""
        chosen = () if self.privacy.mechanism == AUTO else (self.privacy.mechanism,)
        return self.model.settings.own_mechanisms or chosen

    def campaign_terms(self) -> dict[str, Any]:
        """Return the terms that a campaign's later runs may not change, besides those of all families."""
        asked = self.model.settings.for_questions
        terms = {f"model.{name}": asked[name] for name in self.model.settings.TERMS}
        if self.model.settings.CORRECTS:
            terms["label"] = "number" if self.is_numeric else "class"
        return terms

    def summarize_family(self) -> dict[str, Any]:
        """Return the family's part of a run's summary: what private evidence was weighed with, or what it corrects."""
        if not self.model.settings.CORRECTS:
            return {"lam": self.model.settings.weighting}
        return {
            "lam": None,
            "target": self.dataset.target,
            "label": self.label,
            "base": self.model.settings.for_questions["base"],
        }

    def _family_faults(self) -> list[str]:
        """List what does not go with this family in other tables: "key: what, and what to do" each."""
        classes = self.dataset.classes
        collection = Collection(
            mechanism=self.privacy.mechanism,
            label=self.label,
            n_classes=None if classes is None else len(classes),
            in_campaign=self.published_as is not None and self.collection.close is None,
        )
        is_weighted = getattr(self.model.settings, "base", AUTO) in WEIGHTED_BASES
        return [
            *self._rounds_faults(),
            *self._label_faults(),
            *(
                [
                    'dataset.weight: only a public forest or boosting can use weights; set model.estimator = "correction" and '
                    'model.base = "forest", or leave it out'
                ]
                if self.dataset.weight is not None and not is_weighted
                else ()
            ),
            *(
                f"privacy.{line}" if line.startswith("mechanism:") else f"model.{line}"
                for line in self.model.settings.refusals(collection)
            ),
            *(
                f"model.{name}: {device} is a simulation device, its floating-point noise gives holders away; use {instead}, "
                "or set simulation.noise_seed"
                for name, (device, instead) in self.model.settings.DEVICES.items()
                if getattr(self.model.settings, name) == device and not self.is_seeded
            ),
        ]

    def _rounds_faults(self) -> list[str]:
        name, says_features = self.model.estimator, "features" in self.model_fields_set
        if not self.model.in_rounds:
            owners = either(name for name, family in FAMILIES.items() if family.in_rounds)
            fault = f'features: is for model.estimator = {owners}; leave it out with "{name}"'
            return [fault] if says_features else []
        faults = []
        if not says_features:
            faults.append(
                "features: say what the holders protect: private = [...], or [] where the label is all they protect"
            )
        if self.campaign.name:
            faults.append(
                f"campaign.name: a campaign asks each holder once, and {name} asks in rounds; leave it out"
            )
        if self.privacy.outside != "clip":
            faults.append(
                f"privacy.outside: with {name}, values out of range are moved to the border; leave it out"
            )
        return faults

    def _label_faults(self) -> list[str]:
        """List the settings of the target that are not of a number."""
        if self.label != "number":
            return []
        data = self.dataset
        who = f'model.estimator = "{self.model.estimator}" predicts a number'
        if len(self.model.settings.LABELS) > 1:
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


def load(config: str | Path, assignments: list[str] | None = None) -> RunConfig:
    """The configuration in a TOML file (or a packaged one, by name) with `KEY=VALUE` assignments over it (`catalogue`).

    Raises ConfigError: file not found, not TOML, and every unknown key, wrong type or value out of range, all in one message.
    """
    path = find(config)
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        _refuse_rows(path)
        raise ConfigError(f"{path}: not a configuration: more than {MOST_BYTES >> 20} MiB.")
    if sum(line.count(b".") ** 2 for line in content.split(b"\n")) > MOST_DOTS:
        _refuse_rows(path)
        raise ConfigError(
            f"{path}: not a configuration: thousands of dots in a line. Write each path of a list on its own line."
        )
    try:
        raw = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        _refuse_rows(path)
        raise ConfigError(f"{path}: not UTF-8 text. A configuration is a TOML file.") from None
    except tomllib.TOMLDecodeError as fault:
        _refuse_rows(path)
        raise ConfigError(f"{path}: not TOML: {shorten(str(fault))}") from None
    except ValueError:  # of Python, which reads no number of so many digits
        raise ConfigError(f"{path}: not a configuration: a number has thousands of digits.") from None
    except RecursionError:
        raise ConfigError(f"{path}: not a configuration: it is nested too deep.") from None
    # A path in the file is taken from the file's folder, one typed at the prompt or in a packaged file from the current one.
    beside = Path.cwd() if path.resolve().parent == PACKAGED.resolve() else path.parent.absolute()
    if isinstance(raw.get("dataset"), dict):
        raw["dataset"] = with_paths_from(beside, raw["dataset"])
    if isinstance(collection := raw.get("collection"), dict):
        for key in ("inbox", "totals"):
            place = collection.get(key)
            if isinstance(place, str) and place and not place.startswith(BUCKETS):
                collection[key] = str(beside / place)
    apply_assignments(raw, assignments or ())
    return parse(raw, source=str(config), folder=Path.cwd(), assignments=assignments or ())


def _refuse_rows(path: Path) -> None:
    """Raises ConfigError where a file is rows by its name, and no configuration."""
    if not path.name.lower().endswith(FILE_SUFFIXES):
        return
    beside = path.with_name(f"{path.name.partition('.')[0]}.toml")
    its_own = f", or name {beside.name}, which is beside it" if beside.is_file() else ""
    raise ConfigError(
        f"{path}: rows, and no configuration. First have one written: ldptree init {shlex.quote(str(path))} --target COLUMN"
        f"{its_own}"
    ) from None


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
    is_named, written, n_left_out = True, raw, 0
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
        problems = [
            problem
            for problem in fault.errors(include_url=False)
            if is_named
            or problem["loc"][:1] != ("dataset",)
            or problem["type"] not in ("missing", "value_error")
        ]
        single = [part for problem in problems for part in split_problem(problem)]
        n_left_out = max(len(single) - MOST_PROBLEMS, 0)
        faults += [describe_problem(problem, raw, RunConfig) for problem in single[:MOST_PROBLEMS]]
    if not faults:
        return config
    by_key: dict[str, list[str]] = {}
    for where, message in faults:
        remedied = add_remedy(message, where, written, assignments) if assignments else message
        by_key.setdefault(where, []).append(remedied)
    lines = [
        f"{shorten(where, LONGEST_PATH)}: {shorten(join_messages(messages))}"
        for where, messages in sorted(by_key.items())
    ]
    n = len(lines) + n_left_out
    lines += [f"and {n_left_out:,} more"] if n_left_out else []
    raise ConfigError("\n  ".join([f"{source}: {n:,} problem{'s' * (n > 1)}", *lines]))


PACKAGED = Path(__file__).parent.parent / "configs"


def packaged() -> dict[str, Path]:
    """The ready-made configurations that come with the program, by name."""
    return {path.stem: path for path in sorted(PACKAGED.glob("*.toml"))}


def find(config: str | Path) -> Path:
    """Find a configuration's file by path, or by a packaged one's name, which no folder hides. Raises ConfigError."""
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
    files = _configurations_in(path.parent)
    near = difflib.get_close_matches(path.stem, files, n=1) or difflib.get_close_matches(name, ready, n=1)
    hint = f" Did you mean {files.get(near[0], near[0])}?" if near else ""
    what = NO_SUCH_FILE if fault == NO_SUCH_FILE else f"is {fault}"
    raise ConfigError(
        f"{shown_path(config)}: {what}, and no packaged configuration ({', '.join(ready)}).{hint}"
    )


def _configurations_in(folder: Path) -> dict[str, Path]:
    """The files in a folder that are configurations by their names, without their ending."""
    try:
        return {path.stem: path for path in sorted(folder.glob("*.toml")) if path.is_file()}
    except OSError:
        return {}


def suggest_key(key: str, siblings: Iterable[str] = ()) -> str:
    """Suggest a key for an unknown word, as a sibling, the path of a key of any table, or "" if none is near."""
    return find_key(RunConfig, key, siblings)
