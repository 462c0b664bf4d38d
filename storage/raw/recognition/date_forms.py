"""Recognise common forms of dates and times, with DuckDB itself to try them, so that it reads them later."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any
from unicodedata import category, normalize

from storage.raw.recognition.findings import (
    FITS,
    ODD,
    ColumnSample,
    Finding,
    Reading,
    new_name,
    sql_name,
)
from storage.sql import literal, scratch_cursor

_NAMES = """
january february march april may june july august september october november december
jan feb mar apr may jun jul aug sep oct nov dec
jan feb mar apr may jun jul aug sept oct nov dec
januar februar marz april mai juni juli august september oktober november dezember
jan feb marz apr mai juni juli aug sept okt nov dez
jan feb mrz apr mai jun jul aug sep okt nov dez
janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre
janv fevr mars avr mai juin juil aout sept oct nov dec
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
ene feb mar abr may jun jul ago sept oct nov dic
ene feb mar abr may jun jul ago sep oct nov dic
"""
"""Months without accents, whole or short, on a line for each language (English, German, French, Spanish)."""
_CALENDARS = tuple(tuple(line.split()) for line in _NAMES.split("\n") if line)
_DATE = re.compile(
    r"(?:[^\W\d_]{2,10}\.?,? (?=[0-9]))?(?P<day>[0-9]{1,2}(?:er|º|°|\.)?[-/ ]?(?:de )?)?"
    r"(?P<month>[^\W\d_]{3,10})\.?,?[-/ ](?:del? )?[0-9]{4}"
)


def month_name_readings(text: str) -> list[NamedDate]:
    """How to read a date such as "lundi 26 avril 2023" or "enero 2022", one for each set of names that has its month."""
    match = _DATE.fullmatch(text)
    if match is None:
        return []
    month = "".join(letter for letter in normalize("NFD", match["month"].lower()) if category(letter) != "Mn")
    has_day = match["day"] is not None
    return list(dict.fromkeys(_read_by(names, has_day=has_day) for names in _CALENDARS if month in names))


@dataclass(frozen=True)
class NamedDate:
    """SQL expressions of such a date, its year and its month; {} stands for the column."""

    date: str
    year: str
    month: str


@cache
def _read_by(names: tuple[str, ...], *, has_day: bool) -> NamedDate:
    """By the first three letters of a month, twelve different ones in each set once "juillet" begins with others than "juin"."""
    plain = "strip_accents(lower({}))"
    if "juillet" in names or "juil" in names:
        plain = f"replace({plain}, 'juil', 'jul')"
    short = ", ".join(literal(name.replace("juil", "jul")[:3]) for name in names)
    letters = rf"regexp_extract({plain}, '([a-z][a-z][a-z])[a-z]*[^a-z0-9]+(del? )?[0-9]+$', 1)"
    month = f"list_position([{short}], {letters})"  # NULL of what is no month
    year, day = "CAST(right({}, 4) AS INT)", "CAST(regexp_extract({}, '[0-9]+') AS INT)"
    return NamedDate(f"make_date({year}, {month}, {day if has_day else 1})", year, month)


MOST_MIXED = 3
"""Shapes of dates that one column may have."""
FORMS_TRIED = 8
"""Different shapes of value that are looked at; a column of dates has one or two."""

NEARLY_ALL_DAYS, FEW_YEARS = 25, 3
"""Different days of a month that a column of dates has, and different years, of which a wrong form makes its days."""

_COMPACT = re.compile(r"(?:19|20)[0-9]{6}")
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_OTHER_CLOCK = r"[0-9]{1,2}[.h][0-9]{2}"
_TAIL = (
    rf"(?:(?P<gap>T|,? )(?P<clock>{_CLOCK}|{_OTHER_CLOCK})(?P<half> ?[AaPp][Mm])?"
    r"(?P<zone> ?(?:Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?)?"
)
_NUMBERS = re.compile(rf"(?P<a>[0-9]{{1,4}})(?P<s>[-/. ])(?P<b>[0-9]{{1,2}})(?P=s)(?P<c>[0-9]{{1,4}}){_TAIL}")
_DAY_MONTH = re.compile(
    rf"(?P<day>[0-9]{{1,2}})(?P<s>[-/. ]?)(?P<month>[A-Za-z]{{3,9}})(?P<t>,? |[-/.]?)(?P<year>[0-9]{{4}}|[0-9]{{2}}){_TAIL}"
)
_MONTH_DAY = re.compile(
    rf"(?P<month>[A-Za-z]{{3,9}}) (?P<day>[0-9]{{1,2}})(?P<t>,? )(?P<year>[0-9]{{4}}){_TAIL}"
)
_MONTH_YEAR = re.compile(r"(?P<month>[A-Za-z]{3,9})(?P<s>[-/ ])(?P<year>[0-9]{4})")
_YEAR_MONTH = re.compile(r"(?P<year>[0-9]{4})(?P<s>[-/])(?P<m>[0-9]{2})")
_QUARTER = re.compile(r"[0-9]{4}[- ]?Q[1-4]")
_TIME = re.compile(rf"(?P<clock>{_CLOCK})(?P<half> ?[AaPp][Mm])?")


_CLOCK_TIME, _INSTANT = "CAST({} AS TIMESTAMP)", "CAST({} AS TIMESTAMPTZ)"


@dataclass(frozen=True)
class _Form:
    """A way to make a point in time of a text. {} stands for the column."""

    label: str
    expression: str
    is_time: bool = False
    """A time of day, with no date."""
    parts: tuple[tuple[str, str], ...] = ()
    """Shorter expressions of a part alone, such as ("year", "CAST(right({}, 4) AS INT)")."""
    shapes: tuple[str, ...] = ()
    """A value of each shape, where they have several."""

    @property
    def is_instant(self) -> bool:
        """True if it reads an offset from UTC, so that hours and days depend on a zone."""
        return _INSTANT in self.expression or "%z" in self.expression.lower()

    def of(self, column: str) -> str:
        """The expression for a column."""
        return self.expression.replace("{}", column)


def are_compact(sample: ColumnSample) -> bool:
    """Return whether whole numbers are dates without separators, such as 20220301. Three different ones suffice."""
    texts = set(sample.spread)
    return (
        len(texts) > 2
        and sample.is_whole
        and all(_COMPACT.fullmatch(text) for text in texts)
        and _fits(sorted(texts), [_strptime("", "%Y%m%d")])[0] == len(texts)
    )


def recognise(sample: ColumnSample) -> Finding | None:
    """What kind of dates or times the column holds; None where it holds something else."""
    texts = list(dict.fromkeys(sample.spread))
    forms = _forms(texts)
    if not forms:
        return _unknown_months(sample.column, texts)
    counts = _fits(texts, forms)
    if max(counts) >= FITS * len(texts):
        best = [form for form, count in zip(forms, counts, strict=True) if count == max(counts)]
        best = _different(texts, _with_days(texts, best))
    elif not (best := _mix(texts)):
        return _unknown_months(sample.column, texts)
    readings = tuple(_reading(sample, texts, form) for form in best)
    what = "times of day" if best[0].is_time else "dates"
    if len(readings) > 1:
        orders = " or ".join(form.label for form in best)
        return Finding(
            column=sample.column,
            sentence=f"dates, and the values do not tell whether {orders}, as in {texts[0]!r}",
            readings=readings,
            is_whole=sample.is_whole,
        )
    if not readings[0].derive:
        return Finding(column=sample.column, sentence=f"{what}, all public ones alike")
    order = f" ({best[0].label})" if best[0].label else ""
    of_zone = "; hours and days are UTC's, unless dataset.timezone names a zone" if best[0].is_instant else ""
    shown = repr(max(texts, key=lambda text: (text[:2] > "12") if best[0].label else 0))
    if shapes := best[0].shapes:
        what, order, shown = f"dates in {len(shapes)} forms", "", " and ".join(map(repr, shapes))
    return Finding(
        column=sample.column,
        sentence=f"{what}{order}, as in {shown}{of_zone}",
        readings=readings,
        is_whole=sample.is_whole,
    )


def _unknown_months(column: str, texts: Sequence[str]) -> Finding | None:
    """Say how to read the year of dates whose months are in another language; None of what is no date."""
    matches = filter(None, map(_DATE.fullmatch, texts))
    if not texts or sum(match["day"] is not None for match in matches) < FITS * len(texts):
        return None
    line = Reading(
        "", ((new_name(column, "year"), f"CAST(right({sql_name(column)}, 4) AS INT)"),)
    ).toml_lines()[0]
    sentence = f"dates with months in another language, as in {texts[0]!r}; under [dataset.derive] their year is {line}"
    return Finding(column=column, sentence=sentence)


def _forms(texts: Sequence[str]) -> list[_Form]:
    """The forms that the commonest shapes of value suggest."""
    shapes = Counter(tuple(_forms_of(text)) for text in texts)
    n_dates = sum(count for shape, count in shapes.items() if shape)
    if n_dates < FITS * len(texts):
        return []
    likely = [shape for shape, _ in shapes.most_common(FORMS_TRIED) if shape]
    forms = list(dict.fromkeys(form for shape in likely for form in shape))
    has_instants = any(form.expression == _INSTANT for form in forms)
    return [form for form in forms if form.expression != _CLOCK_TIME or not has_instants]


def _mix(texts: Sequence[str]) -> list[_Form]:
    """The ways to read dates of which some have one shape and some another; none where a shape is read by no form."""
    shapes: dict[tuple[_Form, ...], list[str]] = {}
    for text in texts:
        shapes.setdefault(tuple(_forms_of(text)), []).append(text)
    shapes = {forms: held for forms, held in shapes.items() if len(held) > ODD * len(texts)}
    if not 1 < len(shapes) <= MOST_MIXED or () in shapes or any(forms[0].is_time for forms in shapes):
        return []
    ways = []
    for forms, held in shapes.items():
        counts = zip(forms, _fits(held, forms), strict=True)
        ways.append(_different(held, [form for form, count in counts if count >= FITS * len(held)]))
    return [
        _Form(
            " and ".join(dict.fromkeys(form.label for form in way if form.label)),
            f"coalesce({', '.join(form.expression.replace('CAST(', 'TRY_CAST(') for form in way)})",
            shapes=tuple(held[0] for held in shapes.values()),
        )
        for way in product(*ways)
    ]


def _forms_of(text: str) -> list[_Form]:
    """The forms that this text may be of."""
    if (match := _TIME.fullmatch(text)) is not None:
        return [_Form("", _strptime("", _clock(match)).expression, is_time=True)]
    if (match := _NUMBERS.fullmatch(text)) is not None:
        return _of_numbers(match)
    if _COMPACT.fullmatch(text) is not None:
        return [_strptime("", "%Y%m%d")]
    if _QUARTER.fullmatch(text) is not None:
        return [_Form("", "make_date(CAST(left({}, 4) AS INT), 3 * CAST(right({}, 1) AS INT) - 2, 1)")]
    if (match := _YEAR_MONTH.fullmatch(text)) is not None:
        return [_strptime("", f"%Y{match['s']}%m")]
    others = [
        _Form("", reading.date, parts=(("year", reading.year), ("month", reading.month)))
        for reading in month_name_readings(text)
    ]
    for pattern, shape in (
        (_DAY_MONTH, "%d{s}{m}{t}{y}"),
        (_MONTH_DAY, "{m} %d{t}{y}"),
        (_MONTH_YEAR, "{m}{s}{y}"),
    ):
        if (match := pattern.fullmatch(text)) is not None:
            parts = match.groupdict()
            date = shape.format(
                s=parts.get("s", ""),
                t=parts.get("t", ""),
                m="%b" if len(parts["month"]) == 3 else "%B",
                y="%Y" if len(parts["year"]) == 4 else "%y",
            )
            english = _strptime("", date + _tail(match)) if "clock" in parts else _strptime("", date)
            return [english, *others]
    return others


def _of_numbers(match: re.Match[str]) -> list[_Form]:
    """Return forms of three numbers, with the year first or last, and then the day or the month before the other."""
    s, tail = match["s"], _tail(match)
    sizes = (len(match["a"]), len(match["c"]))
    if sizes[0] == 4 and sizes[1] <= 2:
        zone = match["zone"] or ""
        if s in "-/" and not match["half"] and not re.match(" [-+]", zone):
            return [_Form("", _INSTANT if zone else _CLOCK_TIME)]
        return [_strptime("", f"%Y{s}%m{s}%d{tail}")]
    if sizes[0] > 2 or sizes[1] not in (2, 4):
        return []
    year = "%Y" if sizes[1] == 4 else "%y"
    forms = [
        _strptime("the day comes first", f"%d{s}%m{s}{year}{tail}"),
        _strptime("the month comes first", f"%m{s}%d{s}{year}{tail}"),
    ]
    if sizes == (2, 2):
        forms.append(_strptime("the year comes first", f"%y{s}%m{s}%d{tail}"))
    return forms


def _tail(match: re.Match[str]) -> str:
    """The format of the time behind a date, and of an offset from UTC."""
    if not match["clock"]:
        return ""
    zone = re.sub("[-+].*", "%z", match["zone"] or "").replace(" UTC", " %Z").replace(" GMT", " %Z")
    return f"{match['gap']}{_clock(match)}{zone}"


def _clock(match: re.Match[str]) -> str:
    hour = "%I" if match["half"] else "%H"
    if ":" not in match["clock"]:
        return f"{hour}{'h' if 'h' in match['clock'] else '.'}%M"
    minutes = match["clock"].count(":")
    seconds = "" if minutes == 1 else ":%S.%f" if "." in match["clock"] else ":%S"
    half = f"{' ' if match['half'].startswith(' ') else ''}%p" if match["half"] else ""
    return f"{hour}:%M{seconds}{half}"


def _strptime(label: str, form: str) -> _Form:
    return _Form(label, f"try_strptime({{}}, {literal(form)})")


def _fits(texts: Sequence[str], forms: Sequence[_Form]) -> list[int]:
    """How many of the texts each form reads."""
    counts = ", ".join(f"count(TRY({form.of('value')}))" for form in forms)
    return [int(count) for count in _ask(f"SELECT {counts} FROM given", texts)[0]]


def _with_days(texts: Sequence[str], forms: Sequence[_Form]) -> Sequence[_Form]:
    """Drop forms that take days for years if another form finds nearly all days of a month. Such a form finds two or
    three days, and never the first, which monthly dates have.
    """
    if len(forms) == 1 or forms[0].is_time:
        return forms
    days = ", ".join(
        f"count(DISTINCT TRY(day({form.of('value')}))), min(TRY(day({form.of('value')})))" for form in forms
    )
    answer = _ask(f"SELECT {days} FROM given", texts)[0]
    counts = dict(zip(forms, zip(answer[::2], answer[1::2], strict=True), strict=True))
    if max(count for count, _ in counts.values()) < NEARLY_ALL_DAYS:
        return forms
    return [form for form, (count, first) in counts.items() if count > FEW_YEARS or first == 1]


def _different(texts: Sequence[str], forms: Sequence[_Form]) -> list[_Form]:
    """Of forms that read the same time in every text, the first."""
    kept = [*forms[:1]]
    for form in forms[1:]:
        pairs = ", ".join(
            f"count(*) FILTER (TRY({form.of('value')}) IS DISTINCT FROM TRY({other.of('value')}))"
            for other in kept
        )
        if all(_ask(f"SELECT {pairs} FROM given", texts)[0]):
            kept.append(form)
    return kept


def _reading(sample: ColumnSample, texts: Sequence[str], form: _Form) -> Reading:
    """The parts of the date that differ from row to row."""
    column, moment = sql_name(sample.column), form.expression
    if sample.is_whole:
        column = f"CAST({column} AS VARCHAR)"
    point = form.of(column)
    if form.is_time:
        minutes = f"hour({point}) * 60 + minute({point})"
        return Reading(form.label, ((new_name(sample.column, "minutes"), minutes),), order=minutes)
    has_days = ("%Y" not in moment and "%y" not in moment and not moment.endswith(", 1)")) or "%d" in moment
    parts = {"year": "year", "month": "month"} | ({"weekday": "isodow", "hour": "hour"} if has_days else {})
    counts = ", ".join(f"count(DISTINCT TRY({call}({form.of('value')})))" for call in parts.values())
    answer = _ask(f"SELECT {counts} FROM given", texts)[0]
    varied = [part for part, count in zip(parts, answer, strict=True) if count > 1]
    alone = {part: expression.replace("{}", column) for part, expression in form.parts}
    return Reading(
        form.label,
        tuple((new_name(sample.column, part), alone.get(part, f"{parts[part]}({point})")) for part in varied),
        order=f"epoch({point})",
    )


def _ask(query: str, texts: Sequence[str]) -> list[tuple[Any, ...]]:
    """Query the texts with DuckDB, as column "value" of the table "given". They are not a registered Arrow table, for
    which DuckDB would import pandas.
    """
    with scratch_cursor() as cursor:
        given = "WITH given AS MATERIALIZED (SELECT unnest(?::VARCHAR[]) AS value)"
        answer: list[tuple[Any, ...]] = cursor.execute(f"{given} {query}", [list(texts)]).fetchall()
    return answer
