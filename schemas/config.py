"""A run's configuration: what it may say, checked whole, every problem at once. Where data come from is `dataset`; no
file is opened here but the TOML.
"""

from __future__ import annotations

import difflib
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
from schemas.catalogue import add_remedy, apply_assignments, with_catalogue, with_paths_from
from schemas.config_problems import describe_problem, find_key, join_messages
from schemas.dataset import FILE_SUFFIXES
from schemas.families import (
    OWNERS,
    AnyModelConfig,
    AutoConfig,
)
from schemas.family_tables import Label, RunTables
from schemas.named_files import A_FOLDER, NO_SUCH_FILE, read_fault, shown_path
from schemas.tables import EvaluateConfig


class RunConfig(RunTables):
    """One run, whole."""

    seed: int = Field(default=0, ge=0, lt=2**32)
    """Public coins: who is held back for the test, which rows "random 0.1" takes, how trips are simulated."""
    model: AnyModelConfig = AutoConfig()
    evaluation: EvaluateConfig = EvaluateConfig()

    @model_serializer(mode="wrap")
    def _without_tables_of_other_families(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The canonical text of a run has the tables of its own family only."""
        plain: dict[str, Any] = handler(self)
        others = set(OWNERS) - self.model.tables
        return {key: value for key, value in plain.items() if key not in others}

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
        if faults := self.model.faults(self):
            raise ValueError("\n".join(faults))
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
    def label(self) -> Label | None:
        """What the label is, by the estimator or by what is declared; None where only public rows can tell."""
        return self.model.label_of(self)

    @property
    def is_numeric(self) -> bool:
        """Whether the label is a number, as far as is known."""
        return self.label == "number"

    def with_inferred(self, label: Label, n_public: int) -> tuple[RunConfig, str]:
        """The same with what public rows tell where it is not said: the kind of the label, and the family that is recommended.
        And why it is; "" where the family was named.
        """
        model, why = self.model.choose(label, n_public, self.privacy.mechanism)
        return self._with_label(label).model_copy(update={"model": model}), why

    def as_published(self, terms: Mapping[str, Any]) -> RunConfig:
        """The same with what is not said as a campaign's first run was told it, by the terms that it published."""
        base = terms.get("correction.base")
        changes: dict[str, Any] = {"model": self.model.as_before(terms["model.estimator"])}
        if base is not None and self.correction.base == "auto":
            changes["correction"] = self.correction.model_copy(update={"base": base})
        label = self.label or terms.get("label")
        return (self._with_label(label) if label else self).model_copy(update=changes)

    def _with_label(self, label: Label) -> RunConfig:
        if self.label is not None:
            return self
        return self.model_copy(update={"dataset": self.dataset.model_copy(update={"label": label})})

    @property
    def mask_release(self) -> str:
        """What holders send of what they protect: all, or less."""
        return self.model.mask_release(self)

    @property
    def asks_once(self) -> bool:
        """Whether no question can follow the first."""
        return self.model.asks_once(self)

    def question_settings(self, n_public: int) -> dict[str, Any]:
        """The settings that questions depend on (`ModelConfig.question_settings`)."""
        return self.model.question_settings(self, n_public)


def load(config: str | Path, assignments: list[str] | None = None) -> RunConfig:
    """The configuration in a TOML file (or a packaged one, by name) with `KEY=VALUE` assignments over it (`catalogue`).

    Raises ConfigError: file not found, not TOML, and every unknown key, wrong type or value out of range, all in one message.
    """
    path = find(config)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        raw = tomllib.loads(text)
    except UnicodeDecodeError:
        _refuse_rows(path)
        raise ConfigError(f"{path}: not UTF-8 text. A configuration is a TOML file.") from None
    except tomllib.TOMLDecodeError as fault:
        _refuse_rows(path)
        raise ConfigError(f"{path}: not TOML: {fault}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not a configuration: it is nested too deep.") from None
    # A path in the file is taken from the file's folder, one typed at the prompt or in a packaged file from the current one.
    if isinstance(raw.get("dataset"), dict):
        beside = Path.cwd() if path.resolve().parent == PACKAGED.resolve() else path.parent.absolute()
        raw["dataset"] = with_paths_from(beside, raw["dataset"])
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
            found
            for problem in fault.errors(include_url=False)
            if is_named
            or problem["loc"][:1] != ("dataset",)
            or problem["type"] not in ("missing", "value_error")
            for found in describe_problem(problem, raw, RunConfig)
        ]
    if not faults:
        return config
    by_key: dict[str, list[str]] = {}
    for where, message in faults:
        remedied = add_remedy(message, where, written, assignments) if assignments else message
        by_key.setdefault(where, []).append(remedied)
    lines = [f"{where}: {join_messages(messages)}" for where, messages in sorted(by_key.items())]
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    raise ConfigError("\n  ".join([f"{source}: {count}", *lines]))


PACKAGED = Path(__file__).parent.parent / "configs"


def packaged() -> dict[str, Path]:
    """The ready-made configurations that come with the program, by name."""
    return {path.stem: path for path in sorted(PACKAGED.glob("*.toml"))}


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
    """What may have been meant by a word that is no key: a sibling, or the path of a key of any table; "" where none is near."""
    return find_key(RunConfig, key, siblings)
