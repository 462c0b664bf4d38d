"""Recognise numbers that no database reads, with money, percentages, units, thousands or decimal commas.

A form is a pattern, and an SQL expression that makes a plain number of what fits it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from storage.raw.recognition.findings import (
    FEW,
    FITS,
    ColumnSample,
    Finding,
    Reading,
    new_name,
    sql_name,
)
from storage.sql import literal

UNIT_LEVELS = 10
"""Number columns with a unit and at most so many values are categories, such as "36 months" and "60 months"."""

_CURRENCY = (
    r"(?:R|A|C|US|NZ|HK|S)?\$|[€£¥₹₽₩₺₪฿₫₱₴₦]|USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|ZAR|MXN"
    r"|Rs\.?|kr\.?|zł|Kč|Ft|Fr\."
)
_UNIT = r"[^\W\d_]{1,8}[²³]?(?:/[^\W\d_]{1,8}[²³]?)?|°[CF]?"
_DECORATED = re.compile(
    rf"(?P<sign>[-+−]?) ?(?P<before>{_CURRENCY})? ?(?P<inner>[-+−]?)(?P<body>[0-9.,][0-9.,' ]*(?:[eE][-+]?[0-9]+)?) ?"
    rf"(?P<after>[%‰]|{_CURRENCY}|{_UNIT})?"
)
_TIMES = {"k": 1_000, "K": 1_000, "M": 1_000_000}
_MOST_UNITS = 4
_LIKE_UNIT = re.compile(r"[%‰gmshltd]|(?!(?:st|nd|rd|th)$).{2,}")
"""A letter that is a unit, or more of them, as nobody writes behind a number of a house or of a day."""
_PLAIN = re.compile(r"[-+]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?")
_BLANKS = "\u00a0\u202f\u2009"
_CONVENTIONS = (("", "."), (",", "."), ("", ","), (".", ","), (" ", "."), (" ", ","), ("'", "."))
"""What stands between thousands, and what before the decimals."""
_BETWEEN = {
    ",": "commas between thousands",
    ".": "points between thousands",
    " ": "blanks between thousands",
    "'": "apostrophes between thousands",
}


@dataclass(frozen=True)
class _Number:
    """One value taken apart."""

    body: str
    currency: str
    suffix: str


def recognise(sample: ColumnSample) -> Finding | None:
    """What form of numbers the column holds; None where it holds plain ones, or something else."""
    texts = list(dict.fromkeys(sample.spread))
    if sample.is_mostly_number and sum(not is_plain_number(text) for text in texts) < 2:
        return None  # one odd value makes no form: it is a fault of its rows
    numbers = [number for text in texts if (number := _take_apart(text)) is not None]
    if len(numbers) < FITS * len(texts):
        return None
    suffixes = {number.suffix for number in numbers}
    if suffixes - {"", "%", "‰"} and len(texts) <= UNIT_LEVELS:
        return None
    currencies = sorted({number.currency for number in numbers} - {""})
    if len(suffixes) > 1:
        if not currencies and (finding := _in_thousands(sample.column, numbers, suffixes)):
            return finding
        return _mixed_units(sample.column, texts, sorted(suffixes), is_money=bool(currencies))
    ways = _ways(numbers, len(texts))
    is_plain = ways[:1] == [("", ".")] and not any(number.currency or number.suffix for number in numbers)
    if not ways or (is_plain and "−" not in "".join(texts)):
        return None
    if len(currencies) > 1:
        return Finding(
            column=sample.column,
            sentence=f"money in more than one currency ({', '.join(currencies)}): write it in one",
            is_mixed=True,
        )
    readings = tuple(_reading(sample.column, way, texts, numbers) for way in ways)
    (unit,) = currencies or suffixes
    return Finding(
        column=sample.column, sentence=_sentence(texts, numbers, ways), readings=readings, unit=unit
    )


def recognise_thousands(sample: ColumnSample) -> Finding | None:
    """Plain numbers with points between thousands; None where a point may stand before decimals."""
    texts, way = list(dict.fromkeys(sample.spread)), (".", ",")
    if not all(map(_pattern(*way).fullmatch, texts)) or not _are_thousands(texts):
        return None
    numbers = [_Number(body=text, currency="", suffix="") for text in texts]
    reading = _reading(sample.column, way, texts, numbers)
    return Finding(column=sample.column, sentence=_sentence(texts, numbers, [way]), readings=(reading,))


def _in_thousands(column: str, numbers: Sequence[_Number], suffixes: set[str]) -> Finding | None:
    """Numbers of which some are written as thousands or millions, such as 5.2k beside 800; None of others."""
    times = sorted(suffixes - {""})
    if (
        not {*times} <= _TIMES.keys()
        or times == ["M"]
        or not all(is_plain_number(number.body) for number in numbers)
    ):
        return None
    name = sql_name(column)
    whens = " ".join(f"WHEN {literal(mark)} THEN {_TIMES[mark]}" for mark in times)
    expression = f"CAST(regexp_replace({name}, '[{''.join(times)}]$', '') AS DOUBLE) * CASE right({name}, 1) {whens} ELSE 1 END"
    shown = next(number for number in numbers if number.suffix)
    reading = Reading("", ((new_name(column, "number"), expression),), order=expression)
    sentence = f"numbers, some of them in {' or '.join(times)}, as in {shown.body + shown.suffix!r}"
    return Finding(column=column, sentence=sentence, readings=(reading,))


def _mixed_units(
    column: str, texts: Sequence[str], units: Sequence[str], *, is_money: bool
) -> Finding | None:
    """That not every number has the same unit; None where what stands behind the numbers are hardly units."""
    is_unit = is_money or all(map(_LIKE_UNIT.fullmatch, units))
    if len(texts) <= UNIT_LEVELS or len(units) > _MOST_UNITS or not is_unit:
        return None
    return Finding(
        column=column,
        sentence=f"numbers in more than one unit ({', '.join(unit or 'none' for unit in units)}): write them in one",
        is_mixed=True,
    )


def is_plain_number(text: str) -> bool:
    """Return whether a text is a number that a database reads as it stands."""
    return _PLAIN.fullmatch(text) is not None


def _take_apart(text: str) -> _Number | None:
    match = _DECORATED.fullmatch(_folded(text))
    if match is None or (match["sign"] and match["inner"]):
        return None
    after = match["after"] or ""
    is_money = bool(after) and re.fullmatch(_CURRENCY, after) is not None
    if is_money and match["before"]:
        return None
    return _Number(
        body=match["body"].strip(),
        currency=match["before"] or (after if is_money else ""),
        suffix="" if is_money else after,
    )


def _folded(text: str) -> str:
    """The text with one kind of blank and one of apostrophe."""
    for blank in _BLANKS:
        text = text.replace(blank, " ")
    return text.replace("’", "'")


def _ways(numbers: Sequence[_Number], n_texts: int) -> list[tuple[str, str]]:
    """The conventions that read most values, one for each different result. None where they read too few."""
    read = {way: [_value(number.body, *way) for number in numbers] for way in _CONVENTIONS}
    count = {way: sum(value is not None for value in values) for way, values in read.items()}
    most = max(count.values())
    if most < FITS * n_texts:
        return []
    different: dict[tuple[float | None, ...], tuple[str, str]] = {}
    for way in _CONVENTIONS:
        if count[way] == most:
            different.setdefault(tuple(read[way]), way)
    ways = list(different.values())
    thousands = [way for way in ways if way[0]]
    return thousands if len(ways) > 1 and _are_thousands([number.body for number in numbers]) else ways


def _are_thousands(bodies: Sequence[str]) -> bool:
    """Return whether a mark before three digits separates thousands, as only smaller numbers go without it.

    Where it stood before the decimals, they would always be three, and then no number would go without.
    """
    marked = [body for body in bodies if not body.isdigit()]
    return len(marked) >= FEW <= len(bodies) - len(marked) and all(
        len(body) <= 3 for body in bodies if body.isdigit()
    )


def _value(body: str, thousands: str, decimal: str) -> float | None:
    """The number that a convention makes of the text; None where it does not follow it."""
    if _pattern(thousands, decimal).fullmatch(body) is None:
        return None
    plain = body.replace(thousands, "") if thousands else body
    return float(plain.replace(decimal, "."))


@cache
def _pattern(thousands: str, decimal: str) -> re.Pattern[str]:
    """What follows a convention."""
    mark, point = re.escape(thousands), re.escape(decimal)
    grouped = rf"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+(?:{point}[0-9]*)?|" if thousands else ""
    return re.compile(rf"(?:{grouped}[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?")


def _reading(column: str, way: tuple[str, str], texts: Sequence[str], numbers: Sequence[_Number]) -> Reading:
    """The expression that reads the column by a convention."""
    thousands, decimal = way
    shape = "".join(texts)
    words = {word for number in numbers for word in (number.currency, number.suffix)} - {""}
    marks = sorted(words, key=lambda mark: (-len(mark), mark)) + [c for c in _BLANKS + " " if c in shape]
    if thousands == "'":
        marks += [c for c in "'’" if c in shape]
    elif thousands and thousands not in marks:
        marks.append(thousands)
    if not thousands and any(decimal in number.body for number in numbers):
        # The decimals are told: what the other mark means, where a private value has it, is no question.
        marks.append("," if decimal == "." else ".")
    text = sql_name(column)
    for mark in marks:
        text = f"replace({text}, {literal(mark)}, '')"
    if "−" in shape:
        text = f"replace({text}, '−', '-')"
    if decimal == ",":
        text = f"replace({text}, ',', '.')"
    expression = f"CAST({text} AS DOUBLE)"
    label = f"they have {_BETWEEN[thousands]}" if thousands else "the point stands before the decimals"
    if not thousands and decimal == ",":
        label = "the comma stands before the decimals"
    return Reading(label, ((new_name(column, "number"), expression),), order=expression)


def _sentence(texts: Sequence[str], numbers: Sequence[_Number], ways: Sequence[tuple[str, str]]) -> str:
    """What the column holds, with one of its values."""
    suffix, what = numbers[0].suffix, "numbers"
    if any(number.currency for number in numbers):
        what = "money"
    elif suffix:
        what = "percentages" if suffix == "%" else f"numbers with the unit {suffix!r}"
    thousands, decimal = ways[0]
    if len(ways) > 1:
        read = {number.body: [_value(number.body, *way) for way in ways] for number in numbers}
        shown, values = next(
            (body, readings)
            for body, readings in read.items()
            if None not in readings and len({*readings}) > 1
        )
        return f"{what}, and the values do not tell whether {shown} is {' or '.join(f'{number:.12g}' for number in values)}"
    extra = [_BETWEEN[thousands]] if thousands else []
    extra += ["a decimal comma"] if decimal == "," and any("," in number.body for number in numbers) else []
    described = " and ".join(extra)
    read_so = [text for text in texts if (n := _take_apart(text)) and _value(n.body, *ways[0]) is not None]
    shown = max(read_so, key=lambda text: sum(c in text for c in ",.'$€£% "))
    return f"{what}{' with ' + described if described else ''}, as in {_folded(shown)!r}"
