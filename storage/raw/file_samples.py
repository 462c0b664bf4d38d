"""Sample a raw file of any size. Tells how it is written, and copies some of its rows into a file that is read like it.

Nothing here is part of a run. What the rows hold is told in `tasks.first_look`.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import shutil
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ldptree.errors import DataError
from schemas.named_files import read_fault, shown_path
from storage.raw import raw_files
from storage.raw.formats.contents import BLOCK, Content, check_preamble, file_kind, open_text, read_content
from storage.raw.formats.nameless_files import NamelessFile
from storage.raw.layouts import (
    Layout,
    deduplicate_names,
    is_split_at_blanks,
    recognise_layout,
    refine_layout,
    split_records,
    tidy_records,
    tidy_rows,
)

MOST_BYTES = 8 << 20
MOST_ROWS = 20_000
MOST_CELLS = 400_000
FEWEST_ROWS = 600
"""Of a file, looked at; the fewest rows whatever their width."""
N_BLOCKS = 8
"""Stretches of a longer file that are looked at besides its beginning, evenly spread up to its end; half of all bytes."""
MOST_CHECKED = 256 << 20
"""Size in bytes up to which a file is read whole to tell its encoding, which takes less than a second."""
MOST_DECODED = 20_000_000
"""Values of a row group that is read whole from a Parquet file, which takes half a second."""
MOST_SEARCHED = 256 << 10
"""Characters in which a field of several lines is searched for."""
LAST_BYTES = 4 << 10
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, kw_only=True)
class FileSample:
    """Some rows of a file, in a file of their own.

    Attributes:
        source: the file.
        content: what its text was made of, where it is in another format.
        sheet: the one that was named, of a workbook.
        path: the sample, as UTF-8 text or Parquet; laid out as a run can read it.
        encoding: how the file's text is written; "" of a Parquet file.
        layout: how it is laid out; None of a Parquet file, or of a text that has none.
        is_whole: whether the sample has all rows.
        is_spread: whether it has rows from all over the file, and not its first ones alone.
    """

    source: Path
    content: Content | None = None
    sheet: str | None = None
    path: Path
    encoding: str = ""
    layout: Layout | None = None
    is_whole: bool
    is_spread: bool = False

    @property
    def delimiter(self) -> str | None:
        """What stands between fields, where a run has to be told."""
        if self.layout is None or self.layout.oddities or not self.layout.n_fields:
            return None
        return None if self.layout.delimiter == self.layout.default else self.layout.delimiter

    @property
    def oddities(self) -> tuple[str, ...]:
        """Why a run cannot read the file as it stands."""
        is_wide = self.encoding not in ("", "utf-8", "utf-8-sig")
        names = {"cp1252": "windows-1252", "utf-16-le": "utf-16", "utf-16-be": "utf-16"}
        encoded = (f"{names[self.encoding]} text",) if is_wide else ()
        return encoded + (self.layout.oddities if self.layout else ())


@dataclass(frozen=True)
class TidiedFile:
    """A copy without a name that is read in place of a file that a run cannot read, and the reason."""

    content: Content
    oddities: tuple[str, ...]


def sample_file(
    path: Path, folder: Path, *, name: str, is_spread: bool, sheet: str | None = None
) -> FileSample:
    """Write a sample of a file into `folder`. `name` is a column, `is_spread` takes rows from all over the file and not
    the first, and `sheet` is one of a workbook.

    Raises DataError where it cannot be read as a table.
    """
    if (fault := read_fault(path)) is not None:
        raise DataError(f"{shown_path(path)}: {fault}. Name a file that is a table.")
    kind, place, content = file_kind(path), path, None
    if sheet is not None or kind not in ("text", "gzip"):
        content = read_content(path, sheets=() if sheet is None else (sheet,))
        kind, place = content.kind, content.place
    if kind == "parquet":
        return _sample_parquet(path, place, folder, is_spread=is_spread)
    check_preamble(place, path.name)
    try:
        with open_text(place) as stream:
            start = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path.name}: cannot be read, or the gzip file is damaged.") from error
    copy = folder / f"{path.name.removesuffix('.gz')}"
    size = place.stat().st_size
    encoding = _encoding(place, start, is_short=size <= MOST_CHECKED and kind == "text")
    layout = None if encoding is None else _layout(place, start, encoding, name, is_gzipped=kind == "gzip")
    if encoding is None or layout is None:
        shutil.copyfile(place, copy) if kind == "text" else copy.write_bytes(start)
        return FileSample(source=path, path=copy, is_whole=True)  # to be refused with its own reason
    head = _text(start, encoding)
    n_bytes, is_whole = _fitting(head, layout), len(start) <= MOST_BYTES
    is_whole = is_whole and len(head) <= n_bytes
    blocks: list[str] = []
    if not is_whole:
        can_spread = is_spread and not _spans_lines(head, layout)
        head = _whole_lines(head[: n_bytes // 2 if can_spread else n_bytes])
        if can_spread:
            read_blocks = _blocks_of_gzip if kind == "gzip" else _blocks
            blocks = read_blocks(place, encoding, len(head.encode(encoding, errors="replace")))
    layout = refine_layout(layout, [head, *blocks], has_end=is_whole or bool(blocks))
    _write_sample(copy, head, blocks, layout)
    return FileSample(
        source=path,
        content=content,
        sheet=sheet,
        path=copy,
        encoding=encoding,
        layout=layout,
        is_whole=is_whole,
        is_spread=bool(blocks),
    )


def write_tidy(sample: FileSample, out: Path) -> None:
    """Write the whole file for a run, in UTF-8 with commas and one header, for its owner only. Raises DataError."""
    layout = sample.layout
    assert layout is not None
    with (
        open_text(sample.content.place if sample.content else sample.source) as stream,
        io.TextIOWrapper(stream, sample.encoding, errors="replace", newline="") as text,
        out.open("w", encoding="utf-8", newline="") as sink,
    ):
        out.chmod(0o600)
        if not layout.oddities:
            while block := text.read(1 << 20):
                sink.write(block.removeprefix("\ufeff"))
            return
        writer = csv.writer(sink, lineterminator="\n")
        try:
            writer.writerows(tidy_records(split_records(_lines(text), layout.delimiter), layout))
        except csv.Error:
            raise DataError(f"{sample.source.name}: its quotes do not follow the rules of CSV.") from None


def tidy_file(
    path: Path, column: str, *, sheets: Sequence[str] = (), needed: Sequence[set[str]] = ()
) -> TidiedFile | None:
    """The file without what is no row; None where it is read as it stands.

    Args:
        path: the file.
        column: one that it may have: a line with this name is a header.
        sheets: of a workbook.
        needed: a first line without one of each is taken for a row.

    Raises:
        DataError: it is no table.
    """
    if len(sheets) > 1 or file_kind(path) == "parquet":
        return None
    with TemporaryDirectory(prefix="ldptree-predict-") as folder:
        sample = sample_file(path, Path(folder), name=column, is_spread=True, sheet=next(iter(sheets), None))
    layout = sample.layout
    if layout is None or not sample.oddities:
        return None
    if (
        layout.oddities
        and layout.header
        and any(any_of.isdisjoint(deduplicate_names(layout.header)) for any_of in needed)
    ):
        return None
    written = NamelessFile()
    write_tidy(sample, written.place)
    delimiter = "," if layout.oddities else None
    return TidiedFile(
        Content(kind="text", place=written.place, written=written, delimiter=delimiter), sample.oddities
    )


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    for index, line in enumerate(text):
        yield line if index else line.removeprefix("\ufeff")


def _encoding(path: Path, start: bytes, *, is_short: bool) -> str | None:
    """Return a text's encoding by its mark, else UTF-8 if that fits, else Windows-1252, or None for no text."""
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return encoding
    if b"\0" in start:
        return None
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(start)
        if is_short and len(start) > MOST_BYTES:
            with path.open("rb") as stream:
                stream.seek(len(start))
                while block := stream.read(BLOCK):
                    if not block.isascii() or decoder.getstate()[0]:
                        decoder.decode(block)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _text(content: bytes, encoding: str) -> str:
    """The text of some bytes of which the first or last character may be cut."""
    errors = "replace" if encoding == "cp1252" else "ignore"
    return content.decode(encoding, errors=errors).removeprefix("\ufeff")


def _layout(path: Path, start: bytes, encoding: str, name: str, *, is_gzipped: bool) -> Layout | None:
    """The layout that the beginning and the end of a file show; None where the quotes do not follow the rules."""
    text, end = _text(start[:MOST_SEARCHED], encoding).rstrip("\r"), ""
    if not is_gzipped:
        with path.open("rb") as stream:
            stream.seek(max(path.stat().st_size - LAST_BYTES, 0) & ~1)
            end = _text(stream.read(), encoding).lstrip("\n")
    try:
        layout = recognise_layout(text, end, raw_files.likely_delimiter(path, text), name)
    except csv.Error:
        return None
    if layout.n_fields == 1 and is_split_at_blanks(text):
        raise DataError(
            f"{path.name}: its fields stand apart by blanks. Write it with commas; or give it one column (dataset.columns = "
            '"line") and take the fields out of it in dataset.derive.'
        )
    return layout


def _fitting(head: str, layout: Layout) -> int:
    """Characters that hold no more rows and values than are looked at."""
    lines = head.count("\n") or 1
    rows = min(MOST_ROWS, max(MOST_CELLS // max(layout.n_fields, 1), FEWEST_ROWS))
    return min(MOST_BYTES, int(len(head) / lines * rows) + 1)


def _spans_lines(head: str, layout: Layout) -> bool:
    """Whether some record has several lines, so that none can be found from the middle of a file."""
    start = head[:MOST_SEARCHED]
    return "\n" not in start or any(
        "\n" in cell
        for record in split_records(io.StringIO(start, newline=""), layout.delimiter)
        for cell in record
    )


def _whole_lines(text: str) -> str:
    return text[: text.rfind("\n") + 1] or text


def _blocks(path: Path, encoding: str, n_bytes: int) -> list[str]:
    """Whole lines from all over a file but its first `n_bytes`, about as many, and its last ones."""
    size, each = path.stat().st_size, n_bytes // N_BLOCKS & ~1
    begin = min(n_bytes, size)
    step = max((size - each - begin) // max(N_BLOCKS - 1, 1), each) & ~1
    blocks = []
    with path.open("rb") as stream:
        for place in range(begin, size, step):
            is_end = place + step >= size
            stream.seek(place)
            text = _text(stream.read(size - place if is_end else each), encoding)
            blocks.append(_inner_lines(text, is_end=is_end))
    return blocks


def _blocks_of_gzip(path: Path, encoding: str, n_bytes: int) -> list[str]:
    """Return blocks of the first `MOST_CHECKED` packed bytes of a file, as a gzip cannot be read from its middle."""
    each, blocks = n_bytes // N_BLOCKS & ~1, []
    with gzip.open(path, "rb") as stream:
        place, last = stream.seek(n_bytes), b""
        while place < MOST_CHECKED // 8 and (block := stream.read(BLOCK)):
            blocks.append((place + each, block[:each]))
            place += len(block)
            last = (last + block)[-each:]
    apart = [block for end, block in blocks if end <= place - each]
    chosen = apart[:: max(len(apart) // (N_BLOCKS - 1), 1)]
    texts = [_inner_lines(_text(block, encoding), is_end=False) for block in chosen]
    return [*texts, _inner_lines(_text(last, encoding), is_end=True)]


def _inner_lines(text: str, *, is_end: bool) -> str:
    """The lines that are whole, of a part of a text."""
    inner = text[text.find("\n") + 1 :]
    return inner if is_end else inner[: inner.rfind("\n") + 1]


def _write_sample(copy: Path, head: str, blocks: list[str], layout: Layout) -> None:
    """The head as it stands, or tidied; of the blocks the records with as many fields as a row has."""
    if not blocks and not layout.oddities:
        copy.write_text(head, encoding="utf-8", newline="")
        return
    with copy.open("w", encoding="utf-8", newline="") as sink:
        delimiter = "," if layout.oddities else layout.delimiter
        end = "\r\n" if "\r\n" in head and not layout.oddities else "\n"
        writer = csv.writer(sink, delimiter=delimiter, lineterminator=end)
        records = split_records(io.StringIO(head, newline=""), layout.delimiter)
        if layout.oddities:
            writer.writerows(tidy_records(records, layout))
        else:
            sink.write(head if head.endswith(("\n", "\r")) else head + end)
        for block in blocks:
            body = split_records(io.StringIO(block, newline=""), layout.delimiter)
            writer.writerows(row for row in tidy_rows(body, layout) if len(row) == layout.n_fields)


def _sample_parquet(path: Path, place: Path, folder: Path, *, is_spread: bool) -> FileSample:
    """Sample some rows of a Parquet file, the first ones or some from all over it."""
    import pyarrow as pa
    from pyarrow import parquet

    raw_files.inspect(path)
    to = folder / f"{path.stem}.parquet"
    with parquet.ParquetFile(place) as file:
        total, n_groups = file.metadata.num_rows, file.metadata.num_row_groups
        rows = max(min(MOST_ROWS, MOST_CELLS // max(len(file.schema_arrow), 1)), FEWEST_ROWS)
        is_whole = total <= rows
        spread = is_spread and not is_whole
        groups = range(0, n_groups, max(n_groups // N_BLOCKS, 1)) if spread else range(n_groups)
        n_parts = -(-N_BLOCKS // len(groups)) if spread else 1
        each = -(-rows // (len(groups) * n_parts)) if spread else rows
        batches: list[pa.RecordBatch] = []
        for group in groups:
            batches += _parts_of_group(file, group, each, n_parts)
            if not spread and sum(batch.num_rows for batch in batches) >= rows:
                break
        table = pa.Table.from_batches(batches, file.schema_arrow)
        parquet.write_table(table if spread else table.slice(0, rows), to)
    return FileSample(source=path, path=to, is_whole=is_whole, is_spread=spread)


def _parts_of_group(file: Any, group: int, n_rows: int, n_parts: int) -> list[Any]:
    """Return parts of `n_rows` rows from all over a row group, or only the first of a very large one."""
    known = file.metadata.row_group(group)
    if known.num_rows * known.num_columns > MOST_DECODED:
        n_rows, n_parts = n_rows * n_parts, 1
    batches = file.iter_batches(batch_size=n_rows, row_groups=[group])
    if n_parts == 1:
        return [next(batches)]
    step = max(known.num_rows // n_rows // n_parts, 1)
    parts: list[Any] = []
    last = None
    for index, batch in enumerate(batches):
        if index % step == 0 and len(parts) < n_parts - 1:
            parts.append(batch)
        else:
            last = batch
    return parts if last is None else [*parts, last]
