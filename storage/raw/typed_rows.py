"""Turn raw columns into typed ones in SQL, by each type's expression, its faults, and the choice of a type.

One row of the raw file is one row of the typed query, in the same order. Where rows go (public, private, nobody) is
decided in `tasks.data.read`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ldptree.errors import ConfigError
from schemas.dataset import ROW_NUMBER, ColumnType, TypedColumn
from storage.raw.raw_files import INTERNAL, RawFile
from storage.sql import UTC, by_clock, expression_type, literal, quote

if TYPE_CHECKING:
    import polars as pl

SQL_TYPES: dict[ColumnType, str] = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
}
KINDS: dict[ColumnType, str] = {
    "integer": "not an integer",
    "number": "not a number",
    "boolean": "not true or false",
    "text": "not text",
}
LABEL_MISSING = "label missing"
HOLDER_MISSING = "holder missing"
FLOAT_NAME = "a holder's name written as a floating-point number"
TOO_WIDE = "far outside its declared range"
LARGEST_INTEGER = 9e18

PUBLIC = f"{INTERNAL}_public"
SELECTED = f"{INTERNAL}_selected"
BAD = f"{INTERNAL}_bad"
NAMELESS = f"{INTERNAL}_nameless"
FAULT_COLUMN = f"{INTERNAL}_fault_column"
FAULT_KIND = f"{INTERNAL}_fault_kind"
FAULT_VALUE = f"{INTERNAL}_fault_value"

EXACT = 2**53
"""From here on a float has lost digits of a whole number."""

_CHAIN = 64
_NARROW = {"int8": ("TINYINT", 8), "int16": ("SMALLINT", 16), "int32": ("INTEGER", 32)}


@dataclass(frozen=True, kw_only=True)
class TypedQuery:
    """The query to each file, with types of columns read, derived columns, kept columns, and both predicates."""

    types: Mapping[str, ColumnType]
    """Every file column that is read."""
    derive: Mapping[str, str]
    kept: tuple[TypedColumn, ...]
    """The columns of the result, from the file or derived."""
    target: str
    """"" where no label is asked for."""
    holder: str | None
    public: str | None
    where: str | None
    numeric: bool = False
    """Whether the target must be a number."""

    def rows(self, file: RawFile, *, skip_bad_lines: bool = False, more: str = "") -> str:
        """Kept columns in their storage types, PUBLIC and SELECTED (true, false or NULL), BAD, and NAMELESS where no name of a
        holder can be read (never NULL); then `more`, expressions over the typed columns.
        """
        kept = ", ".join(f"{_stored(column)} AS {quote(column.name)}" for column in self.kept)
        faults = self._faults(file)
        exact = {
            BAD: _any([fault for fault, _, _, _ in faults]),
            NAMELESS: _any([fault for fault, column, _, _ in faults if column == self.holder]),
        }
        flags = [f"coalesce({is_so}, FALSE) AS {quote(name)}" for name, is_so in exact.items()]
        last = ", ".join([*flags, *([more] if more else [])])
        return f"SELECT {kept}, {self._flags(file)}, {last} FROM ({self._typed(file, skip_bad_lines)})"

    def faults(self, file: RawFile, *, skip_bad_lines: bool = False) -> str:
        """Return SQL of bad rows, with number, PUBLIC, SELECTED, the first fault's column, kind and value, raw texts."""
        faults = self._faults(file)
        first = {
            FAULT_COLUMN: "".join(f" WHEN {fault} THEN {literal(column)}" for fault, column, _, _ in faults),
            FAULT_KIND: "".join(f" WHEN {fault} THEN {literal(kind)}" for fault, _, kind, _ in faults),
            FAULT_VALUE: "".join(f" WHEN {fault} THEN {value}" for fault, _, _, value in faults),
        }
        firsts = ", ".join(f"CASE{whens} END AS {quote(name)}" for name, whens in first.items())
        raws = ", ".join(f"CAST({_raw(i)} AS VARCHAR) AS {quote(name)}" for i, name in enumerate(self.types))
        number = f"row_number() OVER () + {file.first_row - 1} AS {ROW_NUMBER}"
        numbered = f"SELECT *, {number} FROM ({self._typed(file, skip_bad_lines)})"
        bad = _any([fault for fault, _, _, _ in faults])
        return f"SELECT {ROW_NUMBER}, {self._flags(file)}, {firsts}, {raws} FROM ({numbered}) WHERE {bad}"

    def _typed(self, file: RawFile, skip_bad_lines: bool) -> str:
        """Typed and derived columns under their own names, and the raw ones under theirs."""
        columns = list(self.types)
        source = file.select(columns, [_alias(i) for i in range(len(columns))], skip_bad_lines=skip_bad_lines)
        typed = ", ".join(
            f"{typed_sql(file, c, _raw(i), self.types[c])} AS {quote(c)}" for i, c in enumerate(columns)
        )
        query = f"SELECT *, {typed} FROM ({_without_nan(file, columns, source)})"
        if self.derive:
            # TRY: a value that an expression cannot take is missing, and no error quotes it.
            kinds = {column.name: SQL_TYPES[column.type] for column in self.kept}
            derived = ", ".join(
                f"TRY_CAST(TRY(({by_clock(text, file.timezone or UTC)}\n)) AS {kinds[name]}) AS {quote(name)}"
                for name, text in self.derive.items()
            )
            query = f"SELECT *, {derived} FROM ({query})"
        return query

    def _faults(self, file: RawFile) -> list[tuple[str, str, str, str]]:
        """Return every fault a row can have, those of its holder's name first, each as SQL condition, column, kind, and
        SQL text of the value.
        """
        early = [
            (fault, column, KINDS[self.types[column]], f"CAST({_raw(index)} AS VARCHAR)")
            for index, column in enumerate(self.types)
            if (fault := self._miscast(file, index, column))
        ]
        faults = [*early, *self._float_names(file), *self._late()]
        return sorted(faults, key=lambda fault: fault[1] != self.holder)

    def _float_names(self, file: RawFile) -> list[tuple[str, str, str, str]]:
        """Return faults of holders' names that went through floats, which may lose digits. As `_faults`."""
        if self.holder is None or self.holder not in self.types:
            return []
        index, column = list(self.types).index(self.holder), self.holder
        raw, family, kind = _raw(index), file.family(column), self.types[column]
        number, text = f"CAST({quote(column)} AS DOUBLE)", f"CAST({raw} AS VARCHAR)"
        faults = []
        if family == "text" and kind == "text":
            wrong = rf"regexp_full_match(trim({raw}), '[+-]?[0-9]+(\.0*|(\.[0-9]+)?[eE]\+[0-9]+)')"
            faults.append((wrong, FLOAT_NAME))
        if kind == "number":
            faults.append((f"{number} <> trunc({number})", KINDS["integer"]))
        if family == "number" or kind == "number":
            faults.append((f"abs({number}) >= {EXACT}", FLOAT_NAME))
        elif family == "text" and kind == "integer":
            faults.append((f"abs({number}) >= {EXACT} AND regexp_matches({raw}, '[.eE]')", FLOAT_NAME))
        return [(f"coalesce({wrong}, FALSE)", column, kind, text) for wrong, kind in faults]

    def _miscast(self, file: RawFile, index: int, column: str) -> str:
        """Return SQL that is true where the raw value is not of the column's type; '' where every value is."""
        kind, family, raw, value = self.types[column], file.family(column), _raw(index), quote(column)
        if kind == "text":
            return ""
        wrong = [f"{value} IS NULL"]
        if family == "text" and kind in ("integer", "number"):
            wrong.append(f"contains({raw}, '_')")
        if kind == "number":
            wrong.append(f"NOT isfinite({value})")
        elif family == "text" and kind == "integer":
            wrong.append(f"TRY_CAST({raw} AS DOUBLE) IS DISTINCT FROM CAST({value} AS DOUBLE)")
        elif family not in ("text", None):
            # There and back again: 3.7 is no integer, 5 is neither true nor false.
            wrong.append(f"TRY_CAST({value} AS {SQL_TYPES[family]}) IS DISTINCT FROM {raw}")
        is_missing = f" AND NOT {_is_null(raw, file.nulls)}" if family == "text" else ""
        return f"({raw} IS NOT NULL AND {_any(wrong)}{is_missing})"

    def _late(self) -> list[tuple[str, str, str, str]]:
        """Return the faults that show in the typed columns, as `_faults` does."""
        late = []
        if self.target:
            late.append((f"({quote(self.target)} IS NULL)", self.target, LABEL_MISSING, "NULL"))
        if self.holder is not None:
            late.append((f"({quote(self.holder)} IS NULL)", self.holder, HOLDER_MISSING, "NULL"))
        for column in self.kept:
            if column.storage in _NARROW:
                name, stored = quote(column.name), _stored(column)
                value = f"CAST({name} AS VARCHAR)"
                late.append((f"({stored} IS NULL AND {name} IS NOT NULL)", column.name, TOO_WIDE, value))
        return late

    def _flags(self, file: RawFile) -> str:
        zone = file.timezone or UTC
        public = f"TRY(({by_clock(self.public, zone)}\n))" if self.public else "NULL::BOOLEAN"
        asked = f"TRY(({by_clock(self.where, zone)}\n))" if self.where else "TRUE"
        return f"{public} AS {quote(PUBLIC)}, {asked} AS {quote(SELECTED)}"


def typed_sql(file: RawFile, column: str, raw: str, kind: ColumnType) -> str:
    """The SQL value of type `kind` of the raw column that the SQL `raw` names; NULL where missing or not castable."""
    if file.family(column) == "text" and kind == "text":
        text = f"CAST({raw} AS VARCHAR)"  # of a day, too
        return f"CASE WHEN {_is_null(text, file.nulls)} THEN NULL ELSE trim({text}) END"
    if file.family(column) == "text" and kind == "boolean":  # a number may have blanks around it
        return f"TRY_CAST(trim({raw}) AS BOOLEAN)"
    return f"TRY_CAST({raw} AS {SQL_TYPES[kind]})"


def storage_type(kind: ColumnType, declared: tuple[float, float] | None) -> str:
    """Return the Arrow type that keeps a column, for integers the narrowest for the declared range or int64."""
    if kind == "integer":
        if declared is not None:
            for name, (_, bits) in _NARROW.items():
                if -(1 << (bits - 1)) <= declared[0] and declared[1] <= (1 << (bits - 1)) - 1:
                    return name
        return "int64"
    return {"number": "double", "text": "string", "boolean": "bool"}[kind]


def derived_type(text: str, types: Mapping[str, ColumnType], key: str) -> ColumnType:
    """The type of a derived column. Raises ConfigError where its parts do not go together, or it is none of ours."""
    sql = expression_type(text, {column: SQL_TYPES[kind] for column, kind in types.items()}, key)
    if sql in {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}:
        return "integer"
    if sql in {"FLOAT", "DOUBLE", "HUGEINT", "UBIGINT"} or sql.startswith("DECIMAL"):
        return "number"
    if sql in {"VARCHAR", "BOOLEAN"}:
        return "text" if sql == "VARCHAR" else "boolean"
    raise ConfigError(f"{key}: gives a {sql}; it must give a number, a text, or true or false. CAST it.")


def check_is_predicate(text: str, types: Mapping[str, ColumnType], key: str) -> None:
    """Raises ConfigError unless `text`, over columns of these types, is true or false."""
    sql = expression_type(text, {column: SQL_TYPES[kind] for column, kind in types.items()}, key)
    if sql != "BOOLEAN":
        raise ConfigError(
            f"{key}: gives a {sql} where it must be true or false, as in company = 'Flash Cab': {text}"
        )


@dataclass(frozen=True)
class TypeEvidence:
    """The counts that tell a raw text column's type, of all values and of those that could be each type."""

    present: int = 0
    number: int = 0
    integer: int = 0
    boolean: int = 0

    def __add__(self, other: TypeEvidence) -> TypeEvidence:
        """The evidence of both."""
        return TypeEvidence(
            self.present + other.present,
            self.number + other.number,
            self.integer + other.integer,
            self.boolean + other.boolean,
        )

    @property
    def is_mixed(self) -> bool:
        """True where some values are numbers and at least a tenth are not, so that these are hardly all faults."""
        return self.number > 0 and 10 * self.number <= 9 * self.present

    def verdict(self, *, is_category: bool = False) -> ColumnType | None:
        """The narrowest type that fits all values; None of none.

        A number also where most values are: the rest are faults, but in a category, which may well mix the two.
        """
        if self.present == 0:
            return None
        if self.integer == self.present:
            return "integer"
        if self.number == self.present:
            return "number"
        if self.boolean == self.present:
            return "boolean"
        return "number" if 2 * self.number > self.present and not is_category else "text"


def count_evidence(texts: pl.DataFrame) -> dict[str, TypeEvidence]:
    """The evidence for each column of raw texts, null where missing."""
    import polars as pl

    each = pl.all()
    numbers = texts.select(each.cast(pl.Float64, strict=False))
    counts = [
        texts.select(each.count()),
        numbers.select(each.is_finite().sum()),
        numbers.select(
            (each % 1 == 0).sum() - each.abs().is_between(LARGEST_INTEGER, sys.float_info.max).sum()
        ),
        texts.select(each.str.to_lowercase().is_in(["true", "false"]).sum()),
    ]
    columns = zip(*(count.row(0) for count in counts), strict=True)
    return {name: TypeEvidence(*tally) for name, tally in zip(texts.columns, columns, strict=True)}


def _stored(column: TypedColumn) -> str:
    """The typed column in the type it is kept in; NULL where it does not fit."""
    if column.storage in _NARROW:
        return f"TRY_CAST({quote(column.name)} AS {_NARROW[column.storage][0]})"
    return quote(column.name)


def _without_nan(file: RawFile, columns: Sequence[str], source: str) -> str:
    """`source` with NaN, which in a Parquet of numbers means missing, as NULL; and dates as text."""
    if file.kind == "csv":
        return source
    parts = []
    for index, column in enumerate(columns):
        raw, family = _raw(index), file.family(column)
        if family == "number":
            parts.append(
                f"CASE WHEN isnan(CAST({raw} AS DOUBLE)) THEN NULL ELSE CAST({raw} AS DOUBLE) END AS {raw}"
            )
        else:
            parts.append(f"CAST({raw} AS VARCHAR) AS {raw}" if family == "text" else raw)
    return f"SELECT {', '.join(parts)} FROM ({source})"


def _any(conditions: Sequence[str]) -> str:
    return _chain(conditions, " OR ") if conditions else "FALSE"


def _chain(parts: Sequence[str], operator: str) -> str:
    """Join the parts as a tree of chains, as a single one would be as deep as it is long, and depth is limited."""
    if len(parts) <= _CHAIN:
        return f"({operator.join(parts)})"
    return _chain([_chain(parts[i : i + _CHAIN], operator) for i in range(0, len(parts), _CHAIN)], operator)


def _is_null(text: str, nulls: Sequence[str]) -> str:
    """Return whether the SQL text `text`, trimmed, is a string that means "missing"."""
    return f"trim({text}) IN ({', '.join(literal(null) for null in nulls)})"


def _alias(index: int) -> str:
    return f"{INTERNAL}_{index}"


def _raw(index: int) -> str:
    return quote(_alias(index))
