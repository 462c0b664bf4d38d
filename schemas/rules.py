"""Which rows are public: the text of a configuration's `public` as a value.

Pure parsing. A predicate is checked in `storage.sql`, where the columns are known, and evaluated by ingest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ldptree.errors import ConfigError

FILE_SUFFIXES = (".csv", ".tsv", ".txt", ".data", ".csv.gz", ".tsv.gz", ".txt.gz", ".data.gz", ".parquet")

_RANDOM = re.compile(r"random\s+(\S+)", re.IGNORECASE)
_FIRST = re.compile(r"first\s+(\S+)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class PublicRule:
    """One of four ways to say which rows are public.

    `predicate`: rows for which the SQL expression is TRUE (NULL is private). `random`: each row with chance
    `fraction`, by a hash of the seed, the file's index and the row's number. `first`: the first `count` rows of
    the first file. `file`: every row of the files at `path`, and no other.
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
    """A data file's suffix at the end, and no sign of a comparison: a path may well hold blanks."""
    return text.lower().endswith(FILE_SUFFIXES) and not re.search(r"['\"=<>();\n]", text)
