"""Dates with the name of their month, in languages of which DuckDB's formats know nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from unicodedata import category, normalize

from storage.sql import literal

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
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
gen feb mar apr mag giu lug ago set ott nov dic
janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro
jan fev mar abr mai jun jul ago set out nov dez
januari februari maart april mei juni juli augustus september oktober november december
jan feb mrt apr mei jun jul aug sep okt nov dec
januar februar marts april maj juni juli august september oktober november december
jan feb mar apr maj jun jul aug sep okt nov dec
januar februar mars april mai juni juli august september oktober november desember
jan feb mars apr mai juni juli aug sep okt nov des
januari februari mars april maj juni juli augusti september oktober november december
jan feb mars apr maj juni juli aug sep okt nov dec
"""
"""Months without accents, whole or short, on a line for each language (English, German, French, Spanish, Italian,
Portuguese, Dutch, Danish, Norwegian, Swedish).
"""
_CALENDARS = tuple(tuple(line.split()) for line in _NAMES.split("\n") if line)
_DATE = re.compile(
    r"[0-9]{1,2}(?:er|º|°|\.)?[-/ ]?(?:de )?(?P<month>[^\W\d_]{3,10})\.?,?[-/ ](?:del? )?[0-9]{4}"
)


def month_name_readings(text: str) -> list[NamedDate]:
    """How to read a date such as "26 avril 2023" or "3. Dez. 2021", one for each set of names that has its month."""
    match = _DATE.fullmatch(text)
    if match is None:
        return []
    month = "".join(letter for letter in normalize("NFD", match["month"].lower()) if category(letter) != "Mn")
    return list(dict.fromkeys(_read_by(names) for names in _CALENDARS if month in names))


@dataclass(frozen=True)
class NamedDate:
    """SQL expressions of such a date, its year and its month; {} stands for the column."""

    date: str
    year: str
    month: str


@cache
def _read_by(names: tuple[str, ...]) -> NamedDate:
    """By the first three letters of a month, twelve different ones in each set once "juillet" begins with others than "juin"."""
    plain = "strip_accents(lower({}))"
    if "juillet" in names or "juil" in names:
        plain = f"replace({plain}, 'juil', 'jul')"
    letters = "".join(name.replace("juil", "jul")[:3] for name in names)
    month = f"(position(regexp_extract({plain}, '[a-z][a-z][a-z]') IN {literal(letters)}) + 2) // 3"
    year, day = "CAST(right({}, 4) AS INT)", "CAST(regexp_extract({}, '^[0-9]+') AS INT)"
    return NamedDate(f"make_date({year}, {month}, {day})", year, month)
