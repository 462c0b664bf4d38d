"""What a data set is expected to hold: a plain list, generated from its specification, kept as JSON that a person can edit.

How expectations are checked is in `tasks.validate`. A specification says of a category which levels are encoded, and of
a label which
classes are learned: another value is no fault (it is encoded as none of them), so those expectations only warn.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from pydantic import ValidationError

from ldptree.errors import ConfigError
from schemas.dataset import DatasetSpec, Scalar
from schemas.manifest import Strict

Severity = Literal["stop", "warn"]
Kind = Literal["columns", "rows", "known", "between", "one_of"]


class Expectation(Strict):
    """One expectation of both zones.

    `columns`: exactly these columns with these types, in order. `rows`: at least `at_least` rows. `known`: no value of
    the column is
    missing. `between`: the column's values are in [low, high]. `one_of`: they are among `values`. Missing values count
    in `known` only.
    """

    expectation: Kind
    column: str | None = None
    low: float | None = None
    high: float | None = None
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
                return f"there are at least {self.at_least:,} rows"
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

    dataset: str
    expectations: tuple[Expectation, ...]

    def to_json(self) -> str:
        """The suite as a file to edit: one expectation a line."""
        lines = [
            json.dumps(e.model_dump(mode="json", exclude_none=True), ensure_ascii=False)
            for e in self.expectations
        ]
        body = ",\n  ".join(lines)
        return f'{{"dataset": {json.dumps(self.dataset)}, "expectations": [\n  {body}\n]}}\n'

    @staticmethod
    def from_json(text: str, source: str) -> Suite:
        """The suite in an edited file. Raises ConfigError: all that is wrong with it."""
        try:
            return Suite.model_validate_json(text)
        except ValidationError as fault:
            lines = [f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in fault.errors(include_url=False)]
            raise ConfigError("\n  ".join([f"{source}: not a suite of expectations", *lines[:20]])) from None


def suite_of(spec: DatasetSpec, columns: Sequence[Sequence[str]]) -> Suite:
    """The suite that a specification and the typed schema of the public rows amount to; `columns` are (name, type, storage)."""
    names = {column[0] for column in columns}
    made = [
        Expectation(expectation="columns", types=tuple((c[0], c[2]) for c in columns)),
        Expectation(expectation="rows", at_least=1),
        Expectation(expectation="known", column=spec.target),
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
    """Raises ConfigError where an edited suite names a column that the data do not have, or lacks what its kind needs."""
    names = {column[0] for column in columns}
    needs: dict[str, tuple[str, ...]] = {
        "columns": ("types",),
        "rows": ("at_least",),
        "known": ("column",),
        "between": ("column", "low", "high"),
        "one_of": ("column", "values"),
    }
    wrong: list[str] = []
    for i, expectation in enumerate(suite.expectations):
        lacking = [key for key in needs[expectation.expectation] if getattr(expectation, key) is None]
        if lacking:
            wrong.append(f"expectations.{i}: {expectation.expectation} needs {', '.join(lacking)}")
        if expectation.column is not None and expectation.column not in names:
            wrong.append(
                f"expectations.{i}: no column {expectation.column!r} ({', '.join(sorted(names)[:30])})"
            )
    if wrong:
        raise ConfigError("\n  ".join([f"{source}: does not fit the data", *wrong]))
