"""What is known of a raw column's public values, and what was found in them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from ldptree.errors import ConfigError
from storage.sql import check_expression, quote

SPREAD = 2_000
"""Public values drawn from all rows alike, about this many up to twice as many."""
FEW = 20
"""Below this many public values it says nothing that no two are alike."""
LEVELS_LISTED = 100
"""A column of text with more different public values than this is not encoded, unless the user declares it a category."""
FITS = 0.9
"""The share of a column's different public values that a form must fit; the others then become missing."""
ODD = 0.01
"""The share of a column's public values that a form need not fit, however many different ones they are."""


@dataclass(frozen=True, kw_only=True)
class ColumnSample:
    """Public values of one raw column that are there, as texts."""

    column: str
    spread: Sequence[str]
    """Some that are drawn from all rows, in their order."""
    n_distinct: int
    """How many different ones there are; counted no further than `LEVELS_LISTED` + 1."""
    is_number: bool = False
    """Whether all are plain numbers."""
    is_mostly_number: bool = False
    """True if more than half are numbers and the others therefore faults."""
    is_whole: bool = False
    """Whether all are whole numbers."""
    is_truth: bool = False
    """Whether all are "true" or "false"."""

    @classmethod
    def of(
        cls, column: str, values: Iterable[str], *, is_number: bool = False, is_whole: bool = False
    ) -> Self:
        """The sample of a short list of values."""
        texts = [value.strip() for value in values if value.strip()]
        return cls(
            column=column,
            spread=texts[:: max(len(texts) // SPREAD, 1)],
            n_distinct=len(set(texts)),
            is_number=is_number or is_whole,
            is_whole=is_whole,
        )


@dataclass(frozen=True)
class Reading:
    """One way to read a column, with new columns and the SQL expression of each."""

    label: str
    """Condition under which this reading is right, if there are several, such as "the day comes first"."""
    derive: tuple[tuple[str, str], ...]
    order: str = ""
    """SQL expression of the number or the point in time that a value is, where it is one."""

    def toml_lines(self) -> list[str]:
        """The lines of `[dataset.derive]`."""
        return [f"{toml_key(name)} = {toml_text(expression)}" for name, expression in self.derive]

    def python_lines(self) -> list[str]:
        """The same as items of a dict."""
        return [f"{name!r}: {expression!r}," for name, expression in self.derive]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found in a column that cannot be used as it stands.

    With `readings` it holds something that must be read first: the one way, or several where the values do not tell which.
    Without, nobody can use it. `is_code`: what looks like numbers are names, as in '02139' or '3+'; it is a category.
    """

    column: str
    sentence: str
    readings: tuple[Reading, ...] = ()
    is_code: bool = False
    is_whole: bool = False
    """Whether the raw values are whole numbers, and stay so where they are read."""
    is_mixed: bool = False
    """Whether it holds something in several units, currencies or forms, which must be written in one before anybody reads it."""
    unit: str = ""
    """What its numbers are measured in, where that stands beside them."""


_MISSING = re.compile(
    r"[-–—.*_/x#]+|#(?:n/?a|null|value|ref|div/0|num)[!?]?|n[./ ]?[abdks][.]?|nan|null|ns(?:/?nc)?|nsp|s/d|k[./ ]?a[.]?"
    r"|missing|fehlt|fehlend|manquante?|(?:keine|ohne) angaben?"
    r"|(?:not|non|nicht|no) ?(?:available|applicable|known|stated|bekannt|disponible|renseigné|data)"
    r"|unk|unknown|unbekannt|inconnue?|desconocid[oa]|desconhecid[oa]|sconosciut[oa]|onbekend|ukendt|ukjent|okänd"
    r"|refused|withheld|prefer not to (?:say|answer)|don['’]?t know|weiß nicht|no sabe|sin datos?|geen opgave"
    r"|confidential|secret(?: stat[.]?)?|vertraulich",
    re.IGNORECASE,
)


def means_missing(text: str) -> bool:
    """Whether a text says that a value is not known."""
    return _MISSING.fullmatch(text) is not None


def tell_value(value: object) -> str:
    """Write a value as it may stand in a file, such as the number 1.0 as 1 and a text in quotes."""
    return f"{value:g}" if isinstance(value, int | float) else repr(value)


def tell_unread(values: Sequence[str], unread: Collection[str]) -> str:
    """Count the values that a reading does not read, with two of them; "" where there are none."""
    n = sum(text in unread for text in values)
    are, become = ("is", "becomes") if n == 1 else ("are", "become")
    examples = " and ".join(map(repr, sorted(unread)[:2]))
    counted = f"; {n:,} of {len(values):,} values {are} not, for example {examples}, and {become} missing"
    return counted if n else ""


def new_name(column: str, part: str) -> str:
    """Return the name of a column derived from another. "Trip Start" and "month" give Trip_Start_month."""
    words = re.sub(r"[\W_]+", "_", column).strip("_")
    return f"{words or 'column'}_{part}"


def unused_name(name: str, taken: Collection[str]) -> str:
    """The name, with a number behind it where one that is taken is the same but for case."""
    lower = {other.lower() for other in taken}
    new, number = name, 2
    while new.lower() in lower:
        new, number = f"{name}_{number}", number + 1
    return new


def name_apart(findings: Iterable[Finding], taken: Collection[str]) -> list[Finding]:
    """Return the findings with names for derived columns that neither columns (`taken`) nor findings share."""
    held, renamed = set(taken), []
    for finding in findings:
        names: dict[str, str] = {}
        for name in dict.fromkeys(name for reading in finding.readings for name, _ in reading.derive):
            names[name] = unused_name(name, held)
            held.add(names[name])
        readings = tuple(
            replace(reading, derive=tuple((names[name], expression) for name, expression in reading.derive))
            for reading in finding.readings
        )
        renamed.append(replace(finding, readings=readings))
    return renamed


def sql_name(column: str) -> str:
    """Return the column as an expression names it, in quotes only if needed."""
    try:
        if check_expression(column, "") == (column,):
            return column
    except ConfigError:
        pass
    return quote(column)


def toml_key(name: str) -> str:
    """A key of TOML, in quotes only where it must be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def toml_text(text: str) -> str:
    """A basic string of TOML, with what cannot be seen written as an escape."""
    written = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in written)
