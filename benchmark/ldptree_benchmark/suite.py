"""A suite of the benchmark, which compares methods on data sets. A suite is a TOML file in `suites`, and no other file
is opened here.
"""

from __future__ import annotations

import difflib
import itertools
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from ldptree.errors import ConfigError
from schemas.catalogue import catalogue, with_paths_from
from schemas.dataset import Names
from schemas.tables import NAME, Epsilon, Table

FOLDER = Path(__file__).parent / "suites"
Measure = Literal["accuracy", "mse", "seconds"]
Column = Literal["alarm", "covered"]
"""What is measured besides a score (`ldptree_benchmark.learners.statements`)."""
COLUMNS: tuple[Column, ...] = get_args(Column)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _named_once(values: tuple[float, ...]) -> tuple[float, ...]:
    twice = [value for number, value in enumerate(values) if value in values[:number]]
    if twice:
        raise ValueError(f"{twice[0]:g} is named twice")
    return values


Epsilons = Annotated[
    tuple[Epsilon, ...], BeforeValidator(_as_tuple), Field(min_length=1), AfterValidator(_named_once)
]


class Split(Table):
    """Which rows of a data set are public, and which are held back."""

    public: float | None = Field(default=None, ge=0.0, lt=1.0)
    """The share of all rows that are public, drawn anew for each repetition, else the data set's own rule. With 0,
    people who show some of their features take the place of public rows.
    """
    test: float = Field(default=0.2, gt=0.0, lt=1.0)
    """The share of the other rows that are scored on; of all rows where public ones are drawn."""
    most_public: int | None = Field(default=None, ge=10)
    """Public rows that are used at most, drawn anew for each repetition."""
    kept: float = Field(default=1.0, gt=0.0, le=1.0)
    """The share of private rows that report, drawn anew for each repetition; the others are left out."""
    differ: float | None = Field(default=None, gt=0.0)
    """Change of labels of people who are not public, where the feature that says most of the label is above its median.
    It is the share of classes that is another one, or standard deviations that are added to a number.
    """
    private: Names = ()
    """Features that everybody protects, the most sensitive first; without any the set says nothing of who protects what."""
    personal: bool = False
    """True if people protect different features. The l-th one is protected by n / 10^floor(l / s) of n people, s the
    number of features in `private`, which are followed by the others in their order (HistOfTree, section 5.2).
    """
    ranges: Literal["known", "all rows"] = "known"
    """Ranges of features and labels, which are "known" before any row is seen, those of public rows, or those of "all
    rows", held-back ones too, as the papers took them though nobody could know them.
    """

    @model_validator(mode="after")
    def _check_mask(self) -> Split:
        if self.personal and not self.private:
            raise ValueError("personal: needs private, the most sensitive features")
        if self.public == 0 and not self.private:
            raise ValueError("public: 0 needs private, as what people show takes the place of public rows")
        return self

    @model_serializer(mode="wrap")
    def _without_unused_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A key that came later is no part of what a split without it is known by."""
        return _without_defaults(
            handler(self),
            {"kept": 1.0, "differ": None, "private": (), "personal": False, "ranges": "known"},
        )


def _without_defaults(plain: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in plain.items() if key not in defaults or value != defaults[key]}


class Variant(Split):
    """A data set once more, split another way."""

    dataset: str
    """Of the catalogue, or brought."""
    changes: dict[str, Any] = Field(default={})
    """Keys of its [dataset] table that are others, as public = "company = 'Flash Cab'"."""


class Law(Table):
    """A data set that is drawn anew for each repetition."""

    law: str
    """One of the laws of `ldptree_benchmark.laws`."""
    parameters: dict[str, Any] = Field(default={})
    """What it is called with."""


class Method(Table):
    """One learner with its settings."""

    learner: str
    """One of the learners of `ldptree_benchmark.learners`."""
    title: str = ""
    """What tables call it."""
    settings: dict[str, Any] = Field(default={})
    """Its parameters."""
    candidates: dict[str, Annotated[tuple[Any, ...], BeforeValidator(_as_tuple)]] = Field(default={})
    """With --paper, the values of each parameter that are tried. The best on TEST rows is shown, as the papers did."""
    parts: Literal["none", "best", "all"] = "none"
    """Parts of its error, shown for the best candidate or for all of them, of learners that can tell."""

    @model_serializer(mode="wrap")
    def _without_unused_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As `Split`."""
        return _without_defaults(handler(self), {"parts": "none"})

    @property
    def combinations(self) -> list[dict[str, Any]]:
        """Every combination of its candidates; an empty one without any."""
        values = itertools.product(*self.candidates.values())
        return [dict(zip(self.candidates, combination, strict=True)) for combination in values]


class Printed(Table):
    """A table of a paper beside which the figures are shown."""

    table: str
    """Its name in papers.toml."""
    datasets: dict[str, str]
    """What the paper calls a data set."""
    methods: dict[str, str]
    """What the paper calls a method."""
    is_relative: bool = False
    """Whether its figures are scores over that of `relative_to`."""


class Suite(Table):
    """One comparison, whole."""

    name: str = Field(pattern=NAME)
    title: str
    about: str = ""
    measure: Measure = "accuracy"
    """Of which the mean over repetitions is shown; an accuracy is better where it is larger, an error where it is smaller, and so
    are the seconds that learning and answering took."""
    label: Literal["class", "number"] = "class"
    """What is learned, where seconds are measured; a mean squared error is of numbers."""
    relative_to: str | None = None
    """A method by whose score others are divided before they are averaged over sets, whose units differ."""
    datasets: Names = ()
    """Of the catalogue."""
    brought: dict[str, dict[str, Any]] = Field(default={})
    """Sets of your own, each as the [dataset] table of a run, with paths from the suite's folder."""
    laws: dict[str, Law] = Field(default={})
    variants: dict[str, Variant] = Field(default={})
    methods: dict[str, Method] = Field(min_length=1)
    epsilons: Epsilons
    repetitions: int = Field(ge=1, le=1000)
    seed: int = Field(default=0, ge=0, lt=2**32)
    split: Split = Split()
    printed: Printed | None = None
    source: str = ""
    """Its file, which nobody has to name; its claims are beside that (`ldptree_benchmark.results.claims`)."""

    @model_validator(mode="after")
    def _check_names(self) -> Suite:
        sets = self.sets
        if not sets:
            raise ValueError("datasets: name at least one, or a law")
        if twice := [name for number, name in enumerate(sets) if name in sets[:number]]:
            raise ValueError(f"datasets: {twice[0]} is named twice")
        for name in self.datasets:
            check_one_of(name, catalogue(), "datasets", "data set of the catalogue")
        for name, variant in self.variants.items():
            known = (*catalogue(), *self.brought)
            check_one_of(variant.dataset, known, f"variants.{name}.dataset", "data set of the catalogue")
        if self.relative_to is not None:
            check_one_of(self.relative_to, self.methods, "relative_to", "method of this suite")
        return self

    @property
    def is_number(self) -> bool:
        """Whether labels are numbers."""
        return self.measure == "mse" or self.label == "number"

    @property
    def sets(self) -> tuple[str, ...]:
        """Data sets and laws, in their order."""
        return (*self.datasets, *self.brought, *self.laws, *self.variants)

    @property
    def has_candidates(self) -> bool:
        """Whether --paper has anything to pick from."""
        return any(method.candidates for method in self.methods.values())

    def split_of(self, name: str) -> Split:
        """How the rows of a set are split."""
        variant = self.variants.get(name)
        return self.split if variant is None else Split(**variant.model_dump(exclude={"dataset", "changes"}))

    def chosen(
        self,
        *,
        only: Iterable[str] | None = None,
        methods: Iterable[str] | None = None,
        repetitions: int | None = None,
        epsilons: tuple[float, ...] | None = None,
    ) -> Suite:
        """The part of it that was asked for.

        Raises ConfigError: an unknown name, or a number that cannot be.
        """
        sets = tuple(self.sets if only is None else only)
        kept = tuple(self.methods if methods is None else methods)
        try:
            for names, known, where, what in (
                (sets, self.sets, "--only", "data set"),
                (kept, self.methods, "--methods", "method"),
            ):
                if not names:
                    raise ValueError(f"{where}: name at least one {what}, or leave it out")
                for name in names:
                    check_one_of(name, known, where, f"{what} of this suite")
            if self.relative_to is not None and self.relative_to not in kept:
                kept = (self.relative_to, *kept)
            if repetitions is not None and repetitions < 1:
                raise ValueError(f"--reps {repetitions}: must be at least 1")
        except ValueError as fault:
            raise ConfigError(str(fault)) from None
        wanted = self.epsilons if epsilons is None else epsilons
        changed = self.model_dump() | {
            "datasets": tuple(name for name in self.datasets if name in sets),
            "brought": {name: table for name, table in self.brought.items() if name in sets},
            "laws": {name: law for name, law in self.laws.items() if name in sets},
            "variants": {name: variant for name, variant in self.variants.items() if name in sets},
            "methods": {name: method for name, method in self.methods.items() if name in kept},
            "repetitions": repetitions or self.repetitions,
            "epsilons": wanted,
        }
        return _checked(changed, self.name)


def check_one_of(name: Any, known: Iterable[Any], where: str, what: str) -> None:
    """Raises ValueError where a name is not known, with the one that it is nearest to."""
    names = [*known]
    if name not in names:
        near = difflib.get_close_matches(str(name), [str(each) for each in names], n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(map(str, names))}"
        raise ValueError(f"{where}: {name} is no {what} ({hint})")


def suites() -> dict[str, Path]:
    """Every suite that comes with the benchmark, by its name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml")) if path.stem != "papers"}


def load_suite(name: str) -> Suite:
    """Load a suite by name or file. Raises ConfigError if it is missing or no TOML, or with every fault."""
    path = Path(name)
    if path.suffix != ".toml":
        try:
            check_one_of(name, suites(), "benchmark", "suite")
        except ValueError as fault:
            raise ConfigError(
                f"{fault}. A suite of your own is a file: ldptree benchmark mine.toml"
            ) from None
        path = suites()[name]
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as fault:
        raise ConfigError(f"{path}: cannot be read ({fault.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{path}: not a suite: {fault}") from None
    if isinstance(raw.get("brought"), dict):
        folder, tables = path.parent.absolute(), raw["brought"].items()
        raw["brought"] = {
            name: with_paths_from(folder, table) if isinstance(table, dict) else table
            for name, table in tables
        }
    suite = _checked({"name": path.stem} | raw | {"source": str(path.absolute())}, str(path))
    if suite.name in suites() and path.absolute() != suites()[suite.name].absolute():
        raise ConfigError(
            f'{path}: {suite.name} is the name of another suite, whose results it would replace. Write name = "..." in it.'
        )
    try:
        _check_printed(suite)
    except ValueError as fault:
        raise ConfigError(f"{path}: {fault}") from None
    return suite


def _check_printed(suite: Suite) -> None:
    """Check a suite's [printed] table. Raises ValueError if it names what the suite or the paper's table does not have,
    ConfigError if there is no such table.
    """
    if suite.printed is None:
        return
    table = read_printed(suite.printed.table)
    of_paper = {name for lines in table["epsilon"].values() for name in lines}
    for kind, names, ours, theirs in (
        ("datasets", suite.printed.datasets, suite.sets, of_paper),
        ("methods", suite.printed.methods, suite.methods, table["columns"]),
    ):
        for name, printed in names.items():
            check_one_of(name, ours, f"printed.{kind}", f"{kind[:-1].replace('data', 'data ')} of this suite")
            check_one_of(
                printed, theirs, f"printed.{kind}.{name}", f"name in {suite.printed.table} of papers.toml"
            )


def read_printed(table: str) -> dict[str, Any]:
    """Read a table of a paper, with source, columns, scale, and epsilon -> data set -> figures. Raises ConfigError."""
    known: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "papers.toml").read_text(encoding="utf-8"))
    try:
        check_one_of(table, known, "printed.table", "table of papers.toml")
    except ValueError as fault:
        raise ConfigError(str(fault)) from None
    return known[table]


def _checked(raw: Mapping[str, Any], source: str) -> Suite:
    try:
        return Suite.model_validate(raw)
    except ValidationError as fault:
        lines = [_line(error, Suite) for error in fault.errors()]
        raise ConfigError(f"{source}: " + "; ".join(lines)) from None


def _line(error: Mapping[str, Any], suite: type[Suite]) -> str:
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(error["loc"][-1]), suite.model_fields, n=1)
        return f"{place}: unknown key{f' (did you mean {near[0]}?)' if near else ''}"
    if error["type"] == "literal_error":
        try:
            check_one_of(
                error["input"], re.findall(r"'([^']+)'", error["ctx"]["expected"]), place, "known word"
            )
        except ValueError as fault:
            return str(fault)
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
