"""Recognise texts that ingest takes as they stand and that mean something else, such as numbers with words between them, codes,
or stray capitals. They are read from a column that is declared a text.
"""

from __future__ import annotations

import re

from storage.raw.recognition.findings import (
    FEW,
    FITS,
    LEVELS_LISTED,
    ColumnSample,
    Finding,
    Reading,
    means_missing,
    new_name,
    sql_name,
    tell_unread,
)
from storage.raw.recognition.number_forms import is_plain_number

_INFINITE = re.compile(r"[-+]?(?:inf|infinity|nan)", re.IGNORECASE)
_CODE = re.compile(r"0[0-9]+")
_VERSION = re.compile(r"[0-9]{1,3}\.(?P<minor>[0-9]{1,3})")
LARGEST_MINOR = 50
"""Decimals from here on belong to numbers. Second parts of versions count up from 0."""
FEW_LEVELS = 20
"""A column of no more different values, of which some are words, is a category."""
WORDS = 0.05
"""The share of words that are more than faults."""


def recognise_versions(sample: ColumnSample) -> Finding | None:
    """Recognise versions that look like numbers. 2.10 is not 2.1, and comes after 2.9."""
    matches = [_VERSION.fullmatch(text) for text in {*sample.spread}]
    minors = [match["minor"] for match in matches if match is not None]
    if not minors or len(minors) < len(matches) or sample.n_distinct > LEVELS_LISTED:
        return None
    is_counted = (
        any(len(minor) == 1 for minor in minors) and "10" in minors and max(map(int, minors)) < LARGEST_MINOR
    )
    if not is_counted:
        return None
    shown = max({*sample.spread}, key=lambda text: (len(text), text))
    return Finding(column=sample.column, sentence=f"versions and no numbers, as in {shown!r}", is_code=True)


def recognise(sample: ColumnSample) -> Finding | None:
    """What the column means, and how it is read; None where it means what stands there."""
    if not sample.spread or sample.is_number or sample.is_truth:
        return None
    name = sql_name(sample.column)
    if sample.is_mostly_number:
        return _numbers_and_words(sample)
    texts = {*sample.spread}
    if sample.n_distinct <= LEVELS_LISTED and len({*map(fold_text, texts)}) < len(texts):
        return _found(sample, SPELLINGS, "lower", folded_sql(name))
    return None


SPELLINGS = "texts, of which some differ in blanks, capital letters or a final stop alone"


def fold_text(text: str) -> str:
    """The text without capital letters, a final stop, and blanks but for one between words."""
    return re.sub(" +", " ", text.lower().strip(" ").rstrip(". "))


def folded_sql(name: str) -> str:
    """The same of a column, as an SQL expression."""
    return f"regexp_replace(rtrim(lower(trim({name})), '. '), ' +', ' ', 'g')"


def _numbers_and_words(sample: ColumnSample) -> Finding:
    """Return what a column with more numbers than words holds, which is codes, a few categories, or numbers."""
    odd = [text for text in sample.spread if not is_plain_number(text) and not _INFINITE.fullmatch(text)]
    words = [text for text in odd if not means_missing(text)]
    is_coded = any(_CODE.fullmatch(text) for text in sample.spread) and (
        bool(words) or any(len(text) > 2 for text in sample.spread if _CODE.fullmatch(text))
    )
    is_listed = sample.n_distinct <= LEVELS_LISTED
    if is_coded and not is_listed:
        return Finding(column=sample.column, sentence=f"more than {LEVELS_LISTED} different codes")
    is_few = len(sample.spread) >= FEW and sample.n_distinct <= FEW_LEVELS
    if is_coded or (is_few and len(words) > WORDS * len(sample.spread)):
        what = "codes" if is_coded else "not only numbers"
        shown = min(words or odd, default=sample.spread[0])
        return Finding(column=sample.column, sentence=f"{what}, as in {shown!r}", is_code=True)
    if len(words) > (1 - FITS) * len(sample.spread):
        what = (
            f"numbers, and {len(words):,} of {len(sample.spread):,} values in another form, as {min(words)!r}"
        )
        sentence = f"{what}: read both in dataset.derive"
        return Finding(column=sample.column, sentence=sentence, is_mixed=True)
    lost = [value for value in sample.spread if _INFINITE.fullmatch(value)] + odd
    return _found(
        sample,
        f"numbers{tell_unread(sample.spread, {*lost})}",
        "number",
        _finite(sql_name(sample.column), sample),
    )


def _finite(text: str, sample: ColumnSample) -> str:
    """The number that an expression of text is; what is written as an infinite one is missing."""
    number = f"CAST({text} AS DOUBLE)"
    has_infinite = any(_INFINITE.fullmatch(text) for text in sample.spread)
    return f"CASE WHEN isfinite({number}) THEN {number} END" if has_infinite else number


def _found(sample: ColumnSample, sentence: str, part: str, expression: str) -> Finding:
    derive = (new_name(sample.column, part), expression)
    reading = Reading("", (derive,), order=expression if part == "number" else "")
    return Finding(column=sample.column, sentence=sentence, readings=(reading,))
