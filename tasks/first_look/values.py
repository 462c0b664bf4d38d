"""Describe the columns of a raw file from some of its rows, using only public rows if a rule says which these are.

What a column holds is told by `storage.raw.recognition`, as ingest tells it; how much of the file is read, by
`storage.raw.file_samples`.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.errors import ConfigError, DataError
from schemas.dataset import ColumnType, DatasetSpec, parse_public_rule
from storage.raw import raw_files
from storage.raw.column_types import column_types_of_rule
from storage.raw.file_samples import FileSample, NamedFile, name_file, read_like, sample_rows
from storage.raw.public_rows import PublicSelection, gather, raw_texts
from storage.raw.raw_files import RawFile
from storage.raw.recognition import odd_texts
from storage.raw.recognition.columns import recognise
from storage.raw.recognition.findings import ColumnSample, Finding, name_apart
from storage.sql import check_predicate, list_columns, quote, scratch_cursor

if TYPE_CHECKING:
    import polars as pl

EVERYTHING = "first 1000000000"
"""The rule that makes every row public, for a look at all of them."""
REJECTED = (
    "they have another number of fields than the header, or quotes within quotes that are not written twice."
)
FEWEST_ROWS = 30
"""Rows of a file of which some are public, some report and some are held back."""

FEWEST_APART = 5
"""Rows in which a value is that may stand for "missing"; and of all rows `SHARE`, or `SPIKE` times as many as a usual one has."""
SHARE = 0.005
SPIKE = 5
STRAY = 0.002
"""Share of the rows, and a row at least, whose rare values at either end are taken for faults, and have no say."""
FEWEST_OTHERS = 2
"""Different other values."""
FEWEST_STEPS = 4
"""Different values of a scale."""
WIDER, WIDER_STEP, WIDER_OF_FEW, FEW_OTHERS = 3, 5, 10, 10
"""Such a gap is more than so many times as wide as the widest between other values: more for equal steps, or for a few others,
which tell less about what else there may be.
"""
TENTHS, EFFECT, CHANCES = 10, 0.05, 4
"""Parts of a column's numbers, and the share of the labels' variance between them from which it is no identifier, beside so many
times as much as chance alone gives.
"""


@dataclass(frozen=True, kw_only=True)
class Column:
    """What one column holds.

    Attributes:
        name: as in the file.
        type: what its values fit; "text" where there are none.
        finding: what is the matter with it, as ingest would say.
        n_values: different values among those looked at.
        n_missing: values that are missing.
        is_declared_text: whether it must be declared a text before it is read.
        apart: values that may stand for "missing", and in how many rows each is.
    """

    name: str
    type: ColumnType
    finding: Finding | None
    n_values: int
    n_missing: int
    is_declared_text: bool = False
    apart: Mapping[int | float | str, int] = field(default_factory=dict)

    @property
    def is_identifier(self) -> bool:
        """True if its whole numbers look like names."""
        finding = self.finding
        return finding is not None and not (finding.readings or finding.is_code) and self.type == "integer"

    def declared_type(self, *, is_feature: bool) -> ColumnType:
        """The type that the configuration declares: a feature that is whole here may well not be so elsewhere."""
        if self.finding is not None and self.finding.readings:
            return "integer" if self.finding.is_whole and self.type in ("integer", "number") else "text"
        if self.is_declared_text:
            return "text"
        return "number" if is_feature and self.type == "integer" else self.type

    def tell_apart(self, n_rows: int) -> str:
        """The values that may stand for "missing", with their counts; "" where there are none."""
        return " and ".join(f"{value} ({n:,} of {n_rows:,} rows)" for value, n in self.apart.items())


@dataclass(frozen=True, kw_only=True)
class FirstLook:
    """What was seen of a file.

    Attributes:
        named: the file, and how it is read.
        sample: some of its rows, or of another file that is public whole.
        public: the rule that was given, of which rows may be looked at; None: all of them.
        target: the column to learn, as in the file.
        n_rows: rows that were looked at.
        n_duplicates: of them, rows that repeat an earlier one.
        texts: their values as they stand; null where missing.
        columns: all columns, in order.
    """

    named: NamedFile
    sample: FileSample
    public: str | None
    target: str
    n_rows: int
    n_duplicates: int
    texts: pl.DataFrame = field(repr=False)
    columns: tuple[Column, ...]

    @property
    def is_whole(self) -> bool:
        """Whether there is no row that was not looked at."""
        return self.sample.is_whole and self.public is None

    @property
    def source(self) -> str:
        """The file's name."""
        return self.named.file.name

    @property
    def file(self) -> RawFile:
        """The rows that were looked at."""
        return self.sample.file

    def column(self, name: str) -> Column:
        """The column of this name."""
        return next(column for column in self.columns if column.name == name)


def rows_by(public: str) -> PublicSelection:
    """The rows that a rule makes public, of the file with all rows; of a file that is public whole every one."""
    rule = parse_public_rule(public)
    return PublicSelection(rule=rule, n_mixed=0 if rule.kind == "file" else 1, seed=0)


def look(
    path: Path,
    *,
    target: str,
    public: str | None,
    sheet: str | None = None,
    tell: Callable[[int], None] = lambda n_rows: None,
) -> FirstLook:
    """Look at some rows of a file.

    Args:
        path: any file that a run can read.
        target: the column to learn.
        public: which rows are public, as `dataset.public`; None: everything is looked at.
        sheet: of a workbook; None: the only one that has cells.
        tell: is told now and then how many rows were read.

    Raises:
        DataError: the file is none of these, or has no rows to look at.
        ConfigError: there is no such column, or the rule is none.
    """
    rule = None if public is None else parse_public_rule(public, "--public")
    named = name_file(path, target, sheet)
    raw = named.file
    raw_files.check_count(raw, len(raw.columns))
    target = _known_target(path, named, target)
    if rule is not None and rule.path is not None:
        raw = read_like(named, Path(rule.path))
        raw_files.same_columns([named.file, raw])
    used = check_predicate(rule.predicate, raw.columns, "--public") if rule and rule.predicate else ()
    if target in used:
        raise ConfigError(
            f'--public: the rule uses "{target}", the target: who is public would tell the label. Name another rule.'
        )
    spec = DatasetSpec(name="first look", path=(str(raw.path),), target=target, public=public or EVERYTHING)
    usable = [name for name in raw.columns if raw.family(name) is not None]
    known = {name: kind for name in used if (kind := raw.family(name)) not in (None, "text")}
    with raw_files.connect([raw]) as connection:
        types = column_types_of_rule(spec, [raw], connection, used, known)
    sample = sample_rows(raw, rows_by(spec.public), usable, types, tell)
    texts = raw_texts(sample.rows, raw.nulls)
    fewest = FEWEST_ROWS if public is None else 2
    if texts.height < fewest:
        of = f" for which {public}" if public else ""
        raise DataError(
            f"{path.name}: {texts.height} row{'s' * (texts.height != 1)}{of}: too few to learn from."
            + (f" {sample.n_rejected:,} lines are none: {REJECTED}" if sample.n_rejected else "")
        )
    values = gather(usable, [(sample.rows, raw.nulls)])
    import polars as pl

    n_values = texts.select(pl.all().drop_nulls().n_unique()).row(0, named=True)
    n_missing = texts.null_count().row(0, named=True)
    columns = []
    for name in raw.columns:
        if name not in usable:
            finding: Finding | None = Finding(column=name, sentence="lists, structs or bytes")
            columns.append(Column(name=name, type="text", finding=finding, n_values=0, n_missing=0))
            continue
        held = values.sample(name)
        is_looked_at = name not in used and raw.family(name) != "boolean"
        finding, odd = _findings(held, is_text=raw.family(name) == "text") if is_looked_at else (None, None)
        is_code = any(each is not None and each.is_code for each in (finding, odd))
        is_text = is_code or values.evidence[name].is_mixed
        columns.append(
            Column(
                name=name,
                type="text" if is_text else values.evidence[name].verdict() or "text",
                finding=odd or finding,
                n_values=n_values[name],
                n_missing=n_missing[name],
                is_declared_text=odd is not None or is_text,
            )
        )
    apart = {
        finding.column: finding
        for finding in name_apart([column.finding for column in columns if column.finding], raw.columns)
    }
    columns = [replace(column, finding=apart.get(column.name)) for column in columns]
    label = next(column for column in columns if column.name == target)
    labels = texts[target].cast(pl.Float64, strict=False) if label.type != "text" else texts[target]
    columns = [
        replace(column, finding=None)
        if column.is_identifier and column is not label and _goes_with(texts[column.name], labels)
        else column
        for column in columns
    ]
    columns = [
        replace(column, apart=_values_apart(column, texts[column.name].drop_nulls()))
        if column.name in usable
        else column
        for column in columns
    ]
    return FirstLook(
        named=named,
        sample=sample,
        public=public,
        target=target,
        n_rows=texts.height,
        n_duplicates=texts.height - texts.n_unique(),
        texts=texts,
        columns=tuple(columns),
    )


def _findings(held: ColumnSample, *, is_text: bool) -> tuple[Finding | None, Finding | None]:
    """What ingest would find in a column; and what it would take as it stands, or leave out, though it can be read."""
    finding = recognise(held)
    if finding is not None:
        return finding, None
    return None, odd_texts.recognise(held) or (odd_texts.recognise_versions(held) if is_text else None)


def _goes_with(texts: pl.Series, labels: pl.Series) -> bool:
    """Return whether labels differ between the tenths of a column's numbers: then it measures something."""
    import polars as pl

    rows = pl.DataFrame({"x": texts.cast(pl.Float64, strict=False), "label": labels.rank()}).drop_nulls()
    tenth, label = pl.col("x").rank("ordinal") * TENTHS // (rows.height + 1), pl.col("label")
    within, whole = rows.select(
        (label - label.mean().over(tenth)).pow(2).sum(), whole=(label - label.mean()).pow(2).sum()
    ).row(0)
    return bool(whole - within > (EFFECT + CHANCES * TENTHS / max(rows.height, 1)) * whole)


def _values_apart(column: Column, texts: pl.Series) -> dict[int | float | str, int]:
    """Return the values of a column that may stand for "missing", and in how many rows each is: numbers and dates far from all
    others, and numbers among words.
    """
    import polars as pl

    finding = column.finding
    if column.type == "text" and (finding is None or finding.is_code):
        return numbers_among_words(Counter(texts.to_list()))
    if finding is None and column.type in ("integer", "number"):
        numbers = texts.cast(pl.Float64, strict=False)
        return {
            int(value) if value % 1 == 0 else value: n
            for value, n in values_apart(numbers.filter(numbers.is_finite())).items()
        }
    placed = places(column, texts)
    apart = values_apart([place for place in placed if place is not None])
    return dict(Counter(text for text, place in zip(texts.to_list(), placed, strict=True) if place in apart))


def places(column: Column, texts: pl.Series) -> list[float | None]:
    """Return the number that each value is, of a point in time the second since 1970; None of a value that is neither."""
    import polars as pl

    readings = column.finding.readings if column.finding is not None else ()
    if not readings and column.type in ("integer", "number"):
        return texts.cast(pl.Float64, strict=False).to_list()
    if not readings or not readings[0].order:
        return [None] * len(texts)
    with scratch_cursor() as cursor:
        given = f"SELECT unnest(?::VARCHAR[]) AS {quote(column.name)}"
        query = f"SELECT CAST(TRY({readings[0].order}) AS DOUBLE) FROM ({given})"
        return [place for (place,) in cursor.execute(query, [texts.to_list()]).fetchall()]


def _known_target(path: Path, named: NamedFile, target: str) -> str:
    """The column to learn; of a file without a header it may be named by its place, from 1. Raises ConfigError."""
    file = named.file
    if target in file.columns:
        return target
    alike = [name for name in file.columns if normalize("NFC", name) == normalize("NFC", target)]
    if len(alike) == 1:
        return alike[0]
    if not named.has_header and target.isdecimal() and 1 <= int(target) <= len(file.columns):
        return file.columns[int(target) - 1]
    plain = {"".join(filter(str.isalnum, name.lower())): name for name in file.columns}
    near = difflib.get_close_matches("".join(filter(str.isalnum, target.lower())), plain, n=1, cutoff=0.5)
    hint = f'did you mean "{plain[near[0]]}"?' if near else f"it has {list_columns(file.columns)}"
    if not named.has_header:
        hint = (
            f"its first line holds values, so its columns are called {file.columns[0]} to {file.columns[-1]}"
        )
    raise ConfigError(f'--target: {path.name} has no column "{target}"; {hint}')


def numbers_among_words(counts: Mapping[str, int]) -> dict[int | float | str, int]:
    """Return the few texts that are numbers, where none of the others has a digit, and in how many rows each is.

    Among letters, as of a blood group, a number is one more unless it is rare.
    """
    numbers = {text: n for text, n in counts.items() if _NUMBER.fullmatch(text)}
    words = {text: n for text, n in counts.items() if text not in numbers}
    is_apart = len(words) >= FEWEST_OTHERS and not any(map(_DIGIT.search, words))
    if not is_apart or len(numbers) > 2 * len(words) or any(n < FEWEST_APART for n in numbers.values()):
        return {}
    is_letters = all(len(text) == 1 for text in counts)
    if is_letters and 2 * max(numbers.values(), default=0) > min(words.values()):
        return {}
    return dict(sorted(numbers.items()))


_NUMBER, _DIGIT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?"), re.compile(r"[0-9]")


def values_apart(numbers: ArrayLike) -> dict[float, int]:
    """Return the values of a column [n] at its ends that stand apart, and in how many rows each is.

    Negative values below others of which none is negative stand apart by less: by a gap, or by being much more frequent. So do
    whole numbers above a scale, which has every number from 0 or 1 on, that leave some out: 7 and 9 behind 1 to 5.
    """
    values, counts = np.unique(np.asarray(numbers, dtype=np.float64), return_counts=True)
    if len(values) <= FEWEST_OTHERS:
        return {}
    enough = max(FEWEST_APART, min(SHARE * counts.sum(), SPIKE * float(np.median(counts))))
    rare = np.where(counts < enough, counts, 0)
    beyond = np.minimum(np.cumsum(rare), np.cumsum(rare[::-1])[::-1])
    is_stray = (rare > 0) & (beyond <= max(1, STRAY * counts.sum()))
    values, counts = values[~is_stray], counts[~is_stray]
    for low, high in _ends(values, counts >= enough):
        body, apart = slice(low, len(values) - high), np.r_[0:low, len(values) - high : len(values)]
        others = values[body]
        are_many = len(apart) > max(1, len(others) / 2) and counts[apart].sum() > counts[body].sum() / 2
        if len(others) < FEWEST_OTHERS or len(apart) == 0 or are_many:
            continue
        gaps = np.diff(others)
        is_even = bool((gaps == gaps[0]).all())
        wider = WIDER if len(others) >= FEW_OTHERS else WIDER_STEP if is_even else WIDER_OF_FEW
        below = others[0] - values[low - 1] if low else np.inf
        above = values[len(values) - high] - others[-1] if high else np.inf
        is_far_below = below > wider * gaps.max()
        if low and values[low - 1] < 0 <= others[0]:
            usual = float(np.median(counts[body][:FEWEST_APART]))
            is_far_below |= below >= 2 * np.median(gaps) or counts[:low].min() >= SPIKE * usual
        is_far_above = above > wider * gaps.max()
        if high and others[0] in (0, 1) and len(others) >= FEWEST_STEPS and is_even and gaps[0] == 1:
            is_far_above |= above >= 2 and counts[-high:].min() >= SHARE * counts.sum()
        if is_far_below and is_far_above:
            return {float(values[i]): int(counts[i]) for i in apart}
    return {}


def _ends(values: NDArray[np.float64], is_frequent: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """How many of the values [m] at either end may stand apart, most first: frequent ones, up to a gap or to where they are 0."""
    gaps = np.diff(values)
    is_cut = (gaps >= 2 * gaps.min(initial=np.inf)) | ((values[:-1] < 0) & (values[1:] >= 0))
    n_low, n_high = (int(np.argmin(np.append(run, False))) for run in (is_frequent, is_frequent[::-1]))
    lows = [0, *(k + 1 for k in range(min(n_low, len(gaps))) if is_cut[k])]
    highs = [0, *(k + 1 for k in range(min(n_high, len(gaps))) if is_cut[::-1][k])]
    return sorted(product(lows, highs), key=sum, reverse=True)
