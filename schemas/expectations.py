"""Expectations of a data set, a list made from its specification and kept as JSON that a person can edit.

How expectations are checked is in `tasks.data.validate`. A specification says of a category which levels are encoded, and of
a label which classes are learned: another value is no fault (it is encoded as none of them), so those expectations only
warn.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, ValidationError

from ldptree.errors import ConfigError
from schemas.dataset import DatasetSpec, Scalar
from schemas.manifest import Strict

VERSION = 1
"""Version of the file. Its digest is its artifact's, as a person may edit a copy."""
SHOWN = 20
"""Problems, or columns, that one message lists."""

Severity = Literal["stop", "warn"]
Kind = Literal["columns", "rows", "read", "known", "between", "one_of"]


class Expectation(Strict):
    """One expectation of both zones.

    `columns`: exactly these columns with these types, in order. `rows`: at least `at_least` rows. `read`: no row lost its label,
    the column, as it had none or could not be read. `known`: no value of the column is missing. `between`: the column's values
    are in [low, high]. `one_of`: they are among `values`. Missing values count in `read` and `known` only.
    """

    expectation: Kind
    column: str | None = None
    low: float | None = Field(default=None, allow_inf_nan=False)
    high: float | None = Field(default=None, allow_inf_nan=False)
    values: tuple[Scalar, ...] | None = None
    at_least: int | None = None
    types: tuple[tuple[str, str], ...] | None = None
    severity: Severity = "stop"

    @property
    def words(self) -> str:
        """The expectation in plain words."""
        match self.expectation:
            case "columns":
                return f"the {len(self.types or ())} columns are there, with their types"
            case "rows":
                return (
                    "there is at least 1 row"
                    if self.at_least == 1
                    else f"there are at least {self.at_least:,} rows"
                )
            case "read":
                return f"every row can be read, and {self.column} is never missing"
            case "known":
                return f"{self.column} is never missing"
            case "between":
                return f"{self.column} is between {self.low:,g} and {self.high:,g}"
            case "one_of":
                shown = [str(value) for value in self.values or ()]
                some = shown if len(shown) <= 8 else [*shown[:7], f"{len(shown) - 7} more"]
                return f"{self.column} is one of {', '.join(some)}"


class Suite(Strict):
    """All expectations of one data set."""

    version: int = VERSION
    dataset: str
    expectations: tuple[Expectation, ...]

    def to_json(self) -> str:
        """Return the suite as a file to edit, with one expectation per line."""
        lines = [
            json.dumps(e.model_dump(mode="json", exclude_none=True), ensure_ascii=False)
            for e in self.expectations
        ]
        body = ",\n  ".join(lines)
        return f'{{"version": {self.version}, "dataset": {json.dumps(self.dataset)}, "expectations": [\n  {body}\n]}}\n'

    @staticmethod
    def from_json(text: str, source: str) -> Suite:
        """Read the suite in an edited file. Raises ConfigError with all that is wrong with it."""
        _refuse_later(text, source)
        try:
            return Suite.model_validate_json(text)
        except ValidationError as fault:
            lines = [_in_words(problem) for problem in fault.errors(include_url=False)]
            raise ConfigError(
                "\n  ".join([f"{source}: not a suite of expectations", *lines[:SHOWN]])
            ) from None


def _refuse_later(text: str, source: str) -> None:
    try:
        version = json.loads(text)["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return  # of a version without a number, or no suite at all
    if isinstance(version, int) and version > VERSION:
        raise ConfigError(
            f"{source}: written by a later ldptree (version {version} of the suite; this one reads up to {VERSION}). Use that "
            "version of ldptree."
        )


def suite_of(spec: DatasetSpec, columns: Sequence[Sequence[str]]) -> Suite:
    """The suite that a specification and the typed schema of the public rows amount to; `columns` are (name, type, storage)."""
    names = {column[0] for column in columns}
    made = [
        Expectation(expectation="columns", types=tuple((c[0], c[2]) for c in columns)),
        Expectation(expectation="rows", at_least=1),
        Expectation(
            expectation="read",
            column=spec.target,
            severity="stop" if spec.on_bad_rows == "stop" else "warn",
        ),
    ]
    if spec.holder_column is not None:
        made.append(Expectation(expectation="known", column=spec.holder_column))
    made += [
        Expectation(expectation="between", column=name, low=low, high=high)
        for name, (low, high) in spec.ranges.items()
        if name in names
    ]
    made += [
        Expectation(expectation="one_of", column=name, values=values, severity="warn")
        for name, values in spec.levels.items()
        if name in names and name not in spec.ranges
    ]
    if spec.classes is not None:
        made.append(
            Expectation(expectation="one_of", column=spec.target, values=spec.classes, severity="warn")
        )
    return Suite(dataset=spec.name, expectations=tuple(made))


def check_columns(suite: Suite, columns: Sequence[Sequence[str]], source: str) -> None:
    """Raises ConfigError where an edited suite names a column that the data do not have, or asks of one what its type
    cannot answer, or an expectation lacks what its kind needs. `columns` are (name, type, storage).
    """
    types = {column[0]: column[1] for column in columns}
    wrong = [
        f"expectations.{i}: {fault}"
        for i, expectation in enumerate(suite.expectations)
        for fault in _misfits(expectation, types)
    ]
    if wrong:
        raise ConfigError("\n  ".join([f"{source}: does not fit the data", *wrong[:SHOWN]]))


_NEEDS: dict[Kind, tuple[str, ...]] = {
    "columns": ("types",),
    "rows": ("at_least",),
    "read": ("column",),
    "known": ("column",),
    "between": ("column", "low", "high"),
    "one_of": ("column", "values"),
}
_VALUES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "text": (str,),
    "boolean": (bool,),
}


def _misfits(expectation: Expectation, types: Mapping[str, str]) -> Iterator[str]:
    kind, name = expectation.expectation, expectation.column
    lacking = [key for key in _NEEDS[kind] if getattr(expectation, key) is None]
    if lacking:
        yield f"{kind} needs {', '.join(lacking)}"
    if name is None:
        return
    if name not in types:
        near = difflib.get_close_matches(name, types, n=1)
        known = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(types)[:SHOWN])}"
        yield f"no column {name!r} ({known})"
        return
    if kind == "between" and types[name] not in ("integer", "number"):
        yield f"between asks for numbers, and {name!r} is {types[name]}"
    low, high = expectation.low, expectation.high
    if low is not None and high is not None and low > high:
        yield f"low {low:g} is above high {high:g}"
    if kind == "one_of" and expectation.values == ():
        yield "values is empty: no row can meet it"
    unlike = [v for v in expectation.values or () if type(v) not in _VALUES[types[name]]]
    if kind == "one_of" and unlike:
        yield f"{unlike[0]!r} is no {types[name]}, which {name!r} is"


def _in_words(problem: Any) -> str:
    """Describe one problem of a suite's file, with its place."""
    where = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        known = (Expectation if len(problem["loc"]) > 1 else Suite).model_fields
        near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1)
        return f"{where}: unknown key; " + (
            f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
        )
    message = f"{problem['msg'][0].lower()}{problem['msg'][1:]}"
    return f"{where}: {message}" if where else message
