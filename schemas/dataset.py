"""A data set, with its files, the target, the rule for public rows, and the contents of its columns.

`DatasetSpec` is the `[dataset]` table of a run's configuration, or an entry of the catalogue. It reads no
file: names of columns are checked against the header by ingest, expressions and predicates by `storage.sql`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from ldptree.errors import ConfigError
from schemas.tables import Table

Scalar = str | int | float | bool
ColumnType = Literal["integer", "number", "text", "boolean"]
FillRule = Literal["drop", "median", "level"]
BadRowRule = Literal["stop", "quarantine"]

LEVELS_MAX = 1_000
"""The most levels of a category, and the most classes of a label."""
LONGEST_NAME = 1_000
"""Characters of a column's name, and of a category or a class that public rows name."""
ROW_NUMBER = "_row"
"""The column that ingest adds to private rows, with the number of the row in its file, from 0."""
FEW_CLASSES = 10
"""A column of numbers is a label of classes where public rows have at most this many values in it, all of them whole."""
MOST_CLASSES = 100
"""The most classes that a label has unless the specification declares them; beyond `FEW_CLASSES` two public rows a class."""

# What people write for "nothing here". Not "None", "-" or "." : each is a category or a code in real files.
DEFAULT_NULLS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?")


_TEXTS = (".csv", ".tsv", ".txt", ".data", ".dat")
FILE_SUFFIXES = (
    *_TEXTS, *(f"{suffix}.gz" for suffix in _TEXTS), ".parquet", ".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".zip",
)  # fmt: skip
_RANDOM = re.compile(r"random\s+(\S+)", re.IGNORECASE)
_FIRST = re.compile(r"first\s+(\S+)", re.IGNORECASE)


def _listed(value: Any) -> Any:
    """One string as a list of one; a list as the tuple that a frozen model keeps."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def values_as_tuples(value: Any) -> Any:
    """Return a table of lists as one of the tuples that a frozen model keeps."""
    return {key: _as_tuple(item) for key, item in value.items()} if isinstance(value, dict) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Scalars = Annotated[tuple[Scalar, ...], BeforeValidator(_as_tuple)]


@dataclass(frozen=True, kw_only=True)
class PublicRule:
    """One of four ways to say which rows are public.

    `predicate`: rows for which the SQL expression is TRUE (NULL is private). `random`: each row with chance
    `fraction`, by a hash of the seed, the file's index and the row's number; where a column names holders each
    of them with all rows, by a hash of the seed and the name. `first`: the first `count` rows of the first file.
    `file`: every row of the files at `path`, and no other.
    """

    kind: Literal["predicate", "random", "first", "file"]
    text: str
    predicate: str | None = None
    fraction: float | None = None
    count: int | None = None
    path: str | None = None

    def __str__(self) -> str:
        """The rule as it was written."""
        return self.text


class TypedColumn(BaseModel):
    """One column after ingest, with its kind and the Arrow type it is kept in ("int16", "double", "string", "bool")."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: str
    type: ColumnType
    storage: str


class DatasetSpec(Table):
    """The rows of a run, with their files, what is learned of them, and which of them are public."""

    name: str = Field(min_length=1, max_length=200)
    """An entry of the catalogue, whose keys yours override, or any other name with a path."""
    title: str = ""
    """The title of the data on the page."""
    question: str = Field(default="", max_length=200)
    """The question in words, above the page's heading, as in "Card or cash? Predict how a trip is paid"."""
    noun: str = "row"
    """The word for one row on the page."""
    nouns: str = "rows"
    """The word for several rows on the page."""
    names: dict[str, dict[str, str]] = Field(default={})
    """Names for the codes of a column, as in names.payment_type = {"0" = "cash", "1" = "card"}."""
    unit: str = Field(default="", max_length=40)
    """The unit of a numeric label, such as "$"."""
    units: dict[str, Annotated[str, Field(max_length=40)]] = Field(default={})
    """Units of numeric columns on the page, as in units = { fare = "$", trip_seconds = "s" }."""
    simulated: bool = False
    """Simulate the rows, as the catalogue does for trips."""
    rows: int | None = Field(default=None, ge=1)
    """The number of simulated rows."""
    path: Names = ()
    """A path, glob or list of raw files, relative to the configuration's folder: CSV or TSV (also gzipped),
    Parquet, or workbooks (xlsx, xls, ods).
    """
    columns: Names = ()
    """The column names of a file without a header."""
    delimiter: str | None = Field(default=None, min_length=1, max_length=1)
    """The character between cells, by default a comma, or what splits the first line where no comma does."""
    encoding: str | None = None
    """The encoding of a text that is not UTF-8, such as "windows-1252" or "utf-16"."""
    skip: int = Field(default=0, ge=0)
    """The number of lines (rows of a sheet) above the header, or above the first row of a file without one."""
    sheet: Names = ()
    """The sheet of a workbook, or several to concatenate; by default the only one with cells."""
    nulls: Names = DEFAULT_NULLS
    """Texts that stand for a missing value."""
    missing: Annotated[dict[str, Scalars], BeforeValidator(values_as_tuples)] = Field(default={})
    """Values of columns that stand for a missing value, as in missing = { co = [-200], day = ["9999-12-31"] }."""
    target: str = Field(min_length=1)
    """The column to predict."""
    label: Literal["class", "number"] | None = None
    """The kind of the target, for an estimator that learns either; by default inferred from public rows."""
    positive: Scalar | None = None
    """The class whose probability is scored; by default the second of two."""
    classes: Scalars | None = None
    """The values of the label; any other value is reported as "outside". By default those of public rows."""
    public: str
    """The public rows, as a SQL condition on a row, "random 0.1", "first 200", or a file. Where `holder` names people, chance
    draws people with all their rows, and who has a row among the first ones is not asked.
    """
    where: str | None = None
    """The rows to use at all, as a SQL condition on a row."""
    drop: Names = ()
    """Columns to leave out, such as those that give the label away."""
    categorical: Names = ()
    """Columns to treat as categories: numeric codes, or texts of at most 1,000 values."""
    types: dict[str, ColumnType] = Field(default={})
    """The types of columns; by default inferred from public rows."""
    ranges: Annotated[dict[str, tuple[float, float]], BeforeValidator(values_as_tuples)] = Field(default={})
    """Expected ranges of numeric columns, by which integers get narrower types. Values are never clipped."""
    levels: Annotated[dict[str, Scalars], BeforeValidator(values_as_tuples)] = Field(default={})
    """The values of categories, at most 1,000 each; any other value is encoded as none of them."""
    derive: dict[str, str] = Field(default={})
    """New columns, as SQL expressions on a row, such as minutes = "trip_seconds / 60"."""
    timezone: str | None = None
    """The zone of the hours and days of an instant, such as "America/Chicago", which is text with an offset as TIMESTAMPTZ:
    hour(CAST("when" AS TIMESTAMPTZ)). By default UTC, and never the machine's.
    """
    weight: str | None = Field(default=None, min_length=1)
    """The column of survey weights of public rows, by which a public forest or boosting is fitted. Each private person reports
    once, so that reports cannot use them.
    """
    holder: str = Field(default="row", min_length=1)
    """The unit of privacy: "row", or the column that identifies people."""
    new_people: bool = False
    """With holder = "row", declare that each row of each new file belongs to a person who was never asked before."""
    test_fraction: float = Field(default=0.2, ge=0.0, lt=1.0)
    """The share of private holders held back for scoring."""
    fill: FillRule = "median"
    """The treatment of a missing feature: take the public median, add a level for it, or drop the row."""
    on_bad_rows: BadRowRule = "stop"
    """The treatment of a public row that cannot be read: stop the run, or set it aside. A private one stops a trial, and is
    otherwise reported as "outside".
    """
    expect: str | None = Field(default=None, min_length=1)
    """A file of expectations, edited by hand."""
    release_checks: bool = False
    """Let the curator learn which expectations the private rows meet."""

    def without_words(self) -> DatasetSpec:
        """Return the data set without what concerns only the page or the place of files, as no key has these."""
        page = {
            "title": "",
            "question": "",
            "noun": "row",
            "nouns": "rows",
            "names": {},
            "unit": "",
            "units": {},
        }
        rest = {"path": (), "rows": None, "expect": None, "release_checks": False, "new_people": False}
        return self.model_copy(update=page | rest)

    @model_serializer(mode="wrap")
    def _without_unused_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A key that came later is no part of what a data set without it is known by."""
        plain: dict[str, Any] = handler(self)
        return {
            key: value
            for key, value in plain.items()
            if key
            not in (
                "unit",
                "units",
                "label",
                "release_checks",
                "encoding",
                "skip",
                "sheet",
                "new_people",
                "missing",
                "weight",
            )
            or value
        }

    @property
    def rule(self) -> PublicRule:
        """The public rule, parsed."""
        return parse_public_rule(self.public)

    @property
    def holder_column(self) -> str | None:
        """The column that names the holder, or None where each row is a holder."""
        return None if self.holder == "row" else self.holder

    def features(self, columns: Sequence[str], rule_columns: Iterable[str] = ()) -> tuple[str, ...]:
        """Those of `columns` that a tree may split on, in their order.

        All but the target, the holder's column, what is dropped, and `rule_columns`: what the public rule looks
        at is public by construction and would tell the zones apart.
        """
        out = {self.target, self.holder_column, self.weight, ROW_NUMBER, *self.drop, *rule_columns}
        return tuple(column for column in columns if column not in out)

    def named_columns(self) -> dict[str, tuple[str, ...]]:
        """Key of this spec to the columns it names, to check against a header. Expressions are not looked into."""
        return {
            "target": (self.target,),
            "holder": () if self.holder_column is None else (self.holder_column,),
            "weight": () if self.weight is None else (self.weight,),
            "drop": self.drop,
            "categorical": self.categorical,
            "types": tuple(self.types),
            "ranges": tuple(self.ranges),
            "levels": tuple(self.levels),
            "missing": tuple(self.missing),
        }

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, name: str | None) -> str | None:
        if name is not None and name not in available_timezones():
            raise ValueError(f'{name!r} is no time zone, as "America/Chicago" is one')
        return name

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, name: str | None) -> str | None:
        if name is not None:
            try:
                "".encode(name)
            except LookupError:
                raise ValueError(f"{name!r} is no encoding of texts that Python knows") from None
        return name

    @field_validator("public")
    @classmethod
    def _check_public_rule(cls, text: str) -> str:
        try:
            parse_public_rule(text)
        except ConfigError as error:
            raise ValueError(str(error).removeprefix("dataset.public: ")) from None
        return text

    @field_validator("columns", "drop", "categorical")
    @classmethod
    def _check_names_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        if twice:
            raise ValueError(f"named twice: {', '.join(twice)}")
        return names

    @field_validator("ranges")
    @classmethod
    def _check_ranges(cls, ranges: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
        for column, (low, high) in ranges.items():
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise ValueError(
                    f'"{column}": [{low}, {high}] is not a range: two finite numbers, the lower first'
                )
        return ranges

    @field_validator("levels")
    @classmethod
    def _check_levels(cls, levels: dict[str, tuple[Scalar, ...]]) -> dict[str, tuple[Scalar, ...]]:
        for column, values in levels.items():
            if not values or len(set(values)) < len(values):
                raise ValueError(f'"{column}": levels must be a list of different values, at least one')
            if len(values) > LEVELS_MAX:
                raise ValueError(f'"{column}": {len(values):,} levels; a category has at most {LEVELS_MAX:,}')
        return levels

    @model_validator(mode="after")
    def _check_columns(self) -> DatasetSpec:
        faults = [
            (not self.path and not self.simulated, "path: names no file"),
            (
                not self.path and self.simulated and self.rows is None,
                "rows: missing; say how many rows to simulate",
            ),
            (
                self.rows is not None and not self.simulated,
                "rows: only a simulated data set is made to a number of rows",
            ),
            (self.target in self.drop, f'drop: "{self.target}" is the target'),
            (self.target == self.holder, f'holder: "{self.target}" is the target'),
            (
                self.target in self.categorical,
                f'categorical: "{self.target}" is the target; categorical names features',
            ),
            (self.holder_column in self.drop, f'drop: "{self.holder}" is the holder column'),
            (self.weight in self.drop, f'drop: "{self.weight}" is the column of weights'),
            (
                self.weight in (self.target, self.holder),
                f'weight: "{self.weight}" is the target or the holder column',
            ),
            (
                self.new_people and (self.holder != "row" or "holder" not in self.model_fields_set),
                'new_people: is for holder = "row", stated beside it; a column that names people tells who is new',
            ),
            (
                ROW_NUMBER in self.derive or ROW_NUMBER in self.columns,
                f'"{ROW_NUMBER}" is the name of a column that ldptree adds',
            ),
            (not set(self.derive).isdisjoint(self.columns), "derive: a new column needs a new name"),
        ]
        if self.classes is not None:
            different = {str(value) for value in self.classes}
            faults += [
                (len(different) < 2, "classes: at least two different values"),
                (len(different) < len(self.classes), "classes: a value stands twice"),
                (
                    self.positive is not None and str(self.positive) not in different,
                    f"positive: {self.positive!r} is not among classes {list(self.classes)}",
                ),
            ]
        faults += [
            (
                self.types.get(column, "number") not in ("integer", "number"),
                f'ranges: "{column}" is not numeric (see types)',
            )
            for column in self.ranges
        ]
        messages = [message for is_wrong, message in faults if is_wrong]
        if messages:
            raise ValueError("; ".join(messages))
        return self


def parse_public_rule(text: str, key: str = "dataset.public") -> PublicRule:
    """`text` as a rule; `key` is where it stands in the configuration. Raises ConfigError.

    "random F" with 0 < F < 1, "first N" with N at least 1, a path with a data file's suffix, else a predicate.
    """
    rule = text.strip()
    if not rule:
        raise ConfigError(
            f'{key}: say which rows are public: a SQL predicate, "random 0.1", "first 200", or a path'
        )
    if match := _RANDOM.fullmatch(rule):
        return PublicRule(kind="random", text=rule, fraction=_fraction(match[1], key))
    if match := _FIRST.fullmatch(rule):
        return PublicRule(kind="first", text=rule, count=_count(match[1], key))
    if _looks_like_path(rule):
        return PublicRule(kind="file", text=rule, path=rule)
    return PublicRule(kind="predicate", text=rule, predicate=rule)


def _fraction(word: str, key: str) -> float:
    try:
        fraction = float(word)
    except ValueError:
        fraction = float("nan")
    if not 0.0 < fraction < 1.0:
        raise ConfigError(
            f'{key}: "random {word}": the fraction must be a number above 0 and below 1, as in "random 0.1"'
        )
    return fraction


def _count(word: str, key: str) -> int:
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        raise ConfigError(
            f'{key}: "first {word}": the count must be a whole number of at least 1, as in "first 200"'
        )
    return int(word)


def _looks_like_path(text: str) -> bool:
    """Return whether a text ends in a data file's suffix and has no sign of a comparison. A path may contain blanks."""
    return text.lower().endswith(FILE_SUFFIXES) and not re.search(r"['\"=<>();\n]", text)
