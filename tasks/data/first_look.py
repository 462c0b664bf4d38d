"""A first look at a raw file, before there is a configuration: how it is written, and what its columns hold.

It reads the beginning of the file, and of that, where a rule says which rows are public, those rows alone. What a column holds
is told by `storage.raw.recognition`, as ingest tells it.
"""

from __future__ import annotations

import codecs
import difflib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ldptree.errors import ConfigError, DataError
from schemas.dataset import LEVELS_MAX, ColumnType, DatasetSpec
from schemas.named_files import read_fault, shown_path
from storage.raw import raw_files
from storage.raw.column_types import column_types_of_rule
from storage.raw.public_rows import PublicRows
from storage.raw.public_samples import gather, raw_texts
from storage.raw.raw_files import RawFile
from storage.raw.recognition import odd_texts
from storage.raw.recognition.columns import recognise
from storage.raw.recognition.findings import Finding, sql_name
from storage.sql import check_predicate, list_columns
from tasks.data.label_kind import CLASSES_MAX

if TYPE_CHECKING:
    import polars as pl

MOST_BYTES = 8 << 20
MOST_ROWS = 20_000
MOST_CELLS = 4_000_000
"""Of the beginning of a file."""
PURE = 0.995
"""A feature that alone tells the label this often gives it away."""
EXACT = 0.999
"""The same of a number: the share of its variance that is told."""
BINS = 256
"""Parts of a number's values, of which each may tell another label."""
CHOSEN_OF = (2, 20)
"""Different values of a column that may tell who is public."""
_CONSENT = re.compile(r"consent|opt_?in|agree|public|open|volunteer|permission|share[sd]?$", re.IGNORECASE)
_GROUP = re.compile(
    r"source|site|company|firm|vendor|provider|hospital|clinic|school|branch|store|centre|center|region|country|state|dataset|wave",
    re.IGNORECASE,
)
_YES = re.compile(r"yes|y|true|t|1|open|public|agreed|agree|consented|opt_?in", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Column:
    """What one column holds.

    Attributes:
        name: as in the file.
        type: what its values fit; "text" where there are none.
        finding: what is the matter with it, as ingest would say.
        n_values: different values among those looked at.
        n_missing: values that are missing.
        note: why it is no feature, besides the finding: constant, or it gives the label away; "" otherwise.
        is_declared_text: whether it must be declared a text before it is read.
    """

    name: str
    type: ColumnType
    finding: Finding | None
    n_values: int
    n_missing: int
    note: str = ""
    is_declared_text: bool = False


@dataclass(frozen=True, kw_only=True)
class PublicProposal:
    """A rule of who is public, and why it might be."""

    rule: str
    why: str
    is_consent: bool


@dataclass(frozen=True, kw_only=True)
class FirstLook:
    """What was seen of a file.

    Attributes:
        path: the file.
        encoding: how its text is written; "" of a Parquet file.
        delimiter: between fields; "" of a Parquet file.
        has_header: whether its first line names the columns.
        n_rows: rows that were looked at: the public ones of its beginning.
        is_whole: whether they are of the whole file.
        n_duplicates: of them, rows that stand there before.
        columns: all columns, in order.
        label: what the target is.
        classes: its values, where it is a class.
        raw_target: the column to learn, as in the file.
        target: the same, as a configuration names it: a derived one where the column must be read first.
        publics: rules that could tell who is public; none where one was given.
    """

    path: Path
    encoding: str
    delimiter: str
    has_header: bool
    n_rows: int
    is_whole: bool
    n_duplicates: int
    columns: tuple[Column, ...]
    label: Literal["class", "number"]
    classes: tuple[str, ...]
    raw_target: str
    target: str
    publics: tuple[PublicProposal, ...]

    def column(self, name: str) -> Column:
        """The column of this name."""
        return next(column for column in self.columns if column.name == name)


def look(path: Path, folder: Path, *, target: str, public: str | None) -> FirstLook:
    """Look at the beginning of a file. `folder`: an empty one, for what was read of it.

    Args:
        path: CSV, TSV, text, these gzipped, or Parquet.
        folder: where the beginning is written while it is looked at.
        target: the column to learn.
        public: which rows are public, as `dataset.public`; None: everything is looked at.

    Raises:
        DataError: the file is none of these, or its target cannot be learned.
        ConfigError: there is no such column, or the rule is none.
    """
    start, encoding, is_whole = _copy_beginning(path, folder)
    columns = _made_up_names(start) if encoding else ()
    file = raw_files.inspect(start, columns=columns, nulls=DatasetSpec.model_fields["nulls"].default)
    target = _known_target(path, file, target, is_nameless=bool(columns))
    spec = DatasetSpec(
        name="first look", path=(str(start),), target=target, public=public or "first 1000000000"
    )
    rule = spec.rule
    used = check_predicate(rule.predicate, file.columns, "--public") if rule.predicate else ()
    rows = PublicRows(rule=rule, n_mixed=1, seed=0)
    with raw_files.connect([file]) as connection:
        known = {name: kind for name in used if (kind := file.family(name)) not in (None, "text")}
        types = column_types_of_rule(spec, [file], connection, used, known)
        batches = list(rows.raw_batches(connection, file, 0, file.columns, types))
    import polars as pl

    frames = [raw_texts(batch, file.nulls) for batch in batches]
    texts = pl.concat(frames) if frames else pl.DataFrame()
    is_whole, texts = is_whole and texts.height <= MOST_ROWS, texts.head(MOST_ROWS)
    if texts.height < 2:
        of = f" for which {public}" if public else ""
        raise DataError(
            f"{path.name}: {texts.height} rows{of} in its first {MOST_BYTES >> 20} MiB: too few to look at."
        )
    values = gather(file.columns, [(batch, file.nulls) for batch in batches])
    found = {}
    for name in file.columns:
        sample = values.sample(name)
        finding = None if name in used else recognise(sample)
        odd = odd_texts.recognise(sample) if finding is None and name not in used else None
        found[name] = Column(
            name=name,
            type=values.evidence[name].verdict() or "text",
            finding=None if file.family(name) == "boolean" else finding or odd,
            n_values=texts[name].drop_nulls().n_unique(),
            n_missing=texts[name].null_count(),
            is_declared_text=odd is not None,
        )
    label, classes = _label(path, found[target], texts[target])
    truth = texts[target]
    noted = [
        _noted(column, texts, truth, label) if name != target else column for name, column in found.items()
    ]
    is_read = found[target].finding
    return FirstLook(
        path=path,
        encoding=encoding,
        delimiter="" if file.kind == "parquet" else file.delimiter,
        has_header=not columns,
        n_rows=texts.height,
        is_whole=is_whole,
        n_duplicates=texts.height - texts.n_unique(),
        columns=tuple(noted),
        label=label,
        classes=classes,
        raw_target=target,
        target=is_read.readings[0].derive[0][0] if is_read is not None and is_read.readings else target,
        publics=() if public else tuple(_proposals(list(found.values()), texts, target)),
    )


def _copy_beginning(path: Path, folder: Path) -> tuple[Path, str, bool]:
    """The beginning of a file as UTF-8 text or Parquet, how its text is written, and whether that is all of it."""
    if (fault := read_fault(path)) is not None:
        raise DataError(f"{shown_path(path)}: {fault}. Name a CSV or Parquet file.")
    with path.open("rb") as stream:
        magic = stream.read(4)
    if magic == b"PAR1":
        return _copy_parquet(path, folder / path.name)
    try:
        with raw_files.open_text(path, is_gzipped=magic[:2] == b"\x1f\x8b") as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError) as error:
        raise DataError(f"{path.name}: cannot be read, or the gzip file is damaged.") from error
    text, encoding = _decode(content)
    is_whole = len(content) <= MOST_BYTES
    if text is None:
        shutil.copyfile(path, folder / path.name)  # to be refused with its own reason
        return folder / path.name, "", is_whole
    if not is_whole:
        text = text[: text.rfind("\n") + 1]
    start = folder / path.name.removesuffix(".gz")
    start.write_text(text, encoding="utf-8", newline="")
    return start, encoding, is_whole


def _copy_parquet(path: Path, to: Path) -> tuple[Path, str, bool]:
    import pyarrow as pa
    from pyarrow import parquet

    raw_files.inspect(path)
    with parquet.ParquetFile(path) as file:
        rows = max(min(MOST_ROWS, MOST_CELLS // max(len(file.schema_arrow), 1)), 100)
        batches, n = [], 0
        for batch in file.iter_batches(batch_size=rows):
            batches.append(batch)
            n += batch.num_rows
            if n >= rows:
                break
        parquet.write_table(pa.Table.from_batches(batches, file.schema_arrow), to)
        return to, "", n >= file.metadata.num_rows


def _decode(content: bytes) -> tuple[str | None, str]:
    """The text of some bytes of which the last character may be cut, and its encoding; None where it is none."""
    marks = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
    for mark, encoding in marks:
        if content.startswith(mark):
            return content.decode(encoding, errors="ignore"), encoding.removesuffix("-sig")
    if b"\0" in content:
        return None, ""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content)
        return content.decode("utf-8", errors="ignore"), "utf-8"
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace"), "windows-1252"


def _made_up_names(path: Path) -> tuple[str, ...]:
    """Names for the columns of a file whose first line holds values: a third of its fields are numbers, that do not count on."""
    fields = raw_files.first_fields(path)
    numbers = [field.strip() for field in fields if _is_number(field)]
    counted = [[str(first + index) for index in range(len(numbers))] for first in (0, 1)]
    is_header = len(numbers) < max(len(fields) / 3, 1) or (len(numbers) > 1 and numbers in counted)
    return () if is_header else tuple(f"column_{index + 1}" for index in range(len(fields)))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?[0-9]*[.,]?[0-9]+([eE][-+]?[0-9]+)?", text.strip()) is not None


def _known_target(path: Path, file: RawFile, target: str, *, is_nameless: bool) -> str:
    """The column to learn; of a file without a header it may be named by its place, from 1. Raises ConfigError."""
    if target in file.columns:
        return target
    if is_nameless and target.isdecimal() and 1 <= int(target) <= len(file.columns):
        return file.columns[int(target) - 1]
    near = difflib.get_close_matches(target, file.columns, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"it has {list_columns(file.columns)}"
    if is_nameless:
        hint = (
            f"its first line holds values, so its columns are called {file.columns[0]} to {file.columns[-1]}"
        )
    raise ConfigError(f'--target: {path.name} has no column "{target}"; {hint}')


def _label(
    path: Path, column: Column, values: pl.Series
) -> tuple[Literal["class", "number"], tuple[str, ...]]:
    """What the target is, and its classes by how often they are. Raises DataError where it cannot be learned."""
    if column.is_declared_text and column.type == "text":
        values = values.str.to_lowercase()
    counts = values.drop_nulls().value_counts(sort=True)
    known = [str(value) for value in counts[values.name].to_list()]
    if len(known) < 2:
        raise DataError(
            f'{path.name}: the target "{column.name}" has {len(known)} different values in {len(values):,} rows: there is '
            "nothing to learn. Name another --target, or another --public."
        )
    is_read = column.finding is not None and bool(column.finding.readings) and column.type != "text"
    is_read = is_read or (
        column.finding is not None and bool(column.finding.readings) and not column.is_declared_text
    )
    is_number = column.type in ("integer", "number") or is_read
    if is_number and (is_read or len(known) > CLASSES_MAX or any("." in text for text in known)):
        return "number", ()
    if len(known) > LEVELS_MAX or (
        column.finding is not None and not is_read and not column.finding.is_code and len(known) > 20
    ):
        raise DataError(
            f'{path.name}: the target "{column.name}" has {len(known):,} different texts in {len(values):,} rows: too many to be '
            "classes. Name another --target."
        )
    return "class", tuple(known)


def _noted(column: Column, texts: pl.DataFrame, truth: pl.Series, label: str) -> Column:
    """The column with why it is no feature, where that is its being constant or its giving the label away."""
    if column.n_values < 2:
        what = "empty" if column.n_values == 0 else "one value"
        return _with_note(column, what)
    if column.finding is not None and not column.finding.is_code:
        return column
    if _gives_away(column, texts[column.name], truth, label):
        return _with_note(column, "gives the label away: alone it tells it")
    return column


def _with_note(column: Column, note: str) -> Column:
    return replace(column, note=note)


def _gives_away(column: Column, values: pl.Series, truth: pl.Series, label: str) -> bool:
    """Whether the column alone tells the label, on rows that it was not fitted on."""
    import polars as pl

    x = values
    if column.type in ("integer", "number"):
        x = values.cast(pl.Float64, strict=False).rank("min") * BINS // len(values)
    y = truth.cast(pl.Float64, strict=False) if label == "number" else truth
    both = pl.DataFrame({"x": x.cast(pl.String), "y": y}).drop_nulls().with_row_index()
    learned, judged = both.filter(pl.col("index") % 2 == 0), both.filter(pl.col("index") % 2 == 1)
    if judged.height < 20:
        return False
    best = pl.col("y").mean() if label == "number" else pl.col("y").mode().first()
    found = judged.join(learned.group_by("x").agg(best.alias("answer")), on="x", how="left")
    if label == "number":
        rest = (found["y"] - found["answer"].fill_null(found["y"].mean())).pow(2).mean()
        spread = found["y"].var()
        return bool(rest is not None and spread and rest <= (1 - EXACT) * spread)  # type: ignore[operator]
    right = (found["answer"] == found["y"]).fill_null(value=False).mean()
    most = both["y"].value_counts(sort=True)["count"][0] / both.height
    return bool(right >= max(PURE, 1 - (1 - most) / 20))


def _proposals(columns: Sequence[Column], texts: pl.DataFrame, target: str) -> list[PublicProposal]:
    """Rules that could tell who is public, the likeliest first: somebody consented, or one group of several."""
    found: list[tuple[int, PublicProposal]] = []
    low, high = CHOSEN_OF
    for column in columns:
        if column.name == target or not low <= column.n_values <= high:
            continue
        counts = texts[column.name].drop_nulls().value_counts(sort=True)
        values = [str(value) for value in counts[column.name].to_list()]
        shares = [n / texts.height for n in counts["count"].to_list()]
        if _CONSENT.search(column.name) and (yes := [v for v in values if _YES.fullmatch(v)]):
            rule = f"{_sql(column)} = {_value(column, yes[0])}"
            share = shares[values.index(yes[0])]
            why = f"{share:.0%} of the rows say so"
            found.append((0, PublicProposal(rule=rule, why=why, is_consent=0.005 < share < 0.95)))
        elif _GROUP.search(column.name):
            place = min(range(len(shares)), key=lambda i: abs(shares[i] - 0.1))
            rule = f"{_sql(column)} = {_value(column, values[place])}"
            why = f"one of {len(values)}, {shares[place]:.0%} of the rows"
            found.append((1, PublicProposal(rule=rule, why=why, is_consent=False)))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])][:3]


def _sql(column: Column) -> str:
    return sql_name(column.name)


def _value(column: Column, text: str) -> str:
    if column.type in ("integer", "number"):
        return text
    if column.type == "boolean":
        return text.lower()
    return "'" + text.replace("'", "''") + "'"
