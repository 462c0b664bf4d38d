"""Recognise by their values columns that name a row and that no tree could split, as identifiers, row numbers, free text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from storage.raw.recognition.findings import FEW, LEVELS_LISTED, ColumnSample, Finding

NEARLY = 0.9
"""Of whole numbers, the share that must be different."""
UNLIKELY = math.log(1e-6)
"""The chance, as a logarithm, below which it is no chance that whole numbers are all different."""
LONG_NUMBER = 9
"""Digits of a number that is a name, where all have as many and no two are alike."""
WORDS = 4
"""Words in a value of free text, on average, at least."""

_CODE = re.compile(r"0[0-9]{2,}|[0-9]+[eE][0-9]+")
"""Digits that count nothing: no program that writes numbers begins one with zeros, or leaves out the sign of an exponent."""
_IN_DIGITS = re.compile(r"[^\w]*[0-9][0-9\W_]*")
_FORMS = {
    "identifiers (UUIDs)": re.compile(r"\{?[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\}?"),
    "identifiers (digests)": re.compile(r"(?=.*[0-9])(?=.*[a-fA-F])[0-9a-fA-F]{16,}"),
    "e-mail addresses": re.compile(r"[^@\s]++@[^@\s][^@\s.]*+\.[^@\s]++"),
    "web addresses": re.compile(r"https?://\S+", re.IGNORECASE),
}


def recognise_numbers(sample: ColumnSample) -> Finding | None:
    """That whole numbers are an identifier, or a code; None where they count or measure something."""
    if not sample.is_whole:
        return None
    if any(_CODE.fullmatch(text) for text in sample.spread):
        return recognise_texts(sample) or Finding(column=sample.column, sentence="codes", is_code=True)
    if len(sample.spread) < FEW:
        return None
    values = np.array(sample.spread).astype(np.float64)
    n_different = len(np.unique(values))
    if n_different < NEARLY * len(values):
        return None
    alike = "all different" if n_different == len(values) else "nearly all different"
    if bool((np.diff(values) >= 0).all()):
        what, why = "row numbers, identifiers or points in time", " and only rise from row to row"
    elif _are_long(sample.spread) or _is_no_chance(values, n_different):
        what, why = "identifiers, or points in time", ", which cannot be a coincidence"
    else:
        return None
    return Finding(column=sample.column, sentence=f"{what}: {len(values):,} whole numbers are {alike}{why}")


def recognise_texts(sample: ColumnSample) -> Finding | None:
    """That texts are names or free text, or too many to be categories; None where they are categories."""
    texts = sample.spread
    n_different = len(set(texts))
    words = float(np.mean([len(text.split()) for text in texts]))
    for what, form in _FORMS.items():
        if n_different > 1 and n_different > len(texts) / 2 and all(form.fullmatch(text) for text in texts):
            return Finding(column=sample.column, sentence=what)
    is_many = sample.n_distinct > LEVELS_LISTED
    if is_many and all(map(_IN_DIGITS.fullmatch, texts)):
        what = f"identifiers, or numbers in a form that dataset.derive must read, as {texts[0]!r}"
        return Finding(column=sample.column, sentence=what)
    if len(texts) >= FEW and n_different > len(texts) / 2:
        what = "free text" if words >= WORDS else "identifiers or names"
        return Finding(
            column=sample.column,
            sentence=f"{what}: {n_different:,} different texts in {len(texts):,} values",
        )
    if words >= 2 * WORDS and 2 < n_different == len(texts):
        return Finding(column=sample.column, sentence="free text: no two values alike")
    if is_many:
        return Finding(column=sample.column, sentence=f"more than {LEVELS_LISTED} different texts")
    return None


def _are_long(texts: Sequence[str]) -> bool:
    """Whether all numbers have as many digits, and more than a measure has."""
    sizes = {len(text) for text in texts}
    return len(sizes) == 1 and sizes.pop() >= LONG_NUMBER and all(text.isdigit() for text in texts)


def _is_no_chance(values: NDArray[np.float64], n_different: int) -> bool:
    """Whether draws from a range this narrow would hardly ever be so different.

    Values that are drawn evenly are alike least often: where even those would be all different less than once in a million,
    these were not drawn one by one, but numbered.
    """
    n, width = len(values), float(values.max() - values.min()) + 1.0
    if n_different == n:
        return math.lgamma(width + 1) - math.lgamma(width - n + 1) - n * math.log(width) < UNLIKELY
    expected = n - width * -math.expm1(n * math.log1p(-1.0 / width))
    few = n - n_different
    return few < expected and -((expected - few) ** 2) / (2 * expected) < UNLIKELY
