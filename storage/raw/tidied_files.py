"""A raw file that a run cannot read as it stands, read as the copy that `ldptree init` would write of it, which has no name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from storage.raw.file_samples import sample_file, write_tidy
from storage.raw.formats.contents import Content
from storage.raw.formats.kinds import file_kind
from storage.raw.formats.nameless_files import NamelessFile
from storage.raw.layouts import names_apart


@dataclass(frozen=True)
class TidiedFile:
    """What is read of a file in its place, and why it is not read itself."""

    content: Content
    oddities: tuple[str, ...]


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
        and any(one.isdisjoint(names_apart(layout.header)) for one in needed)
    ):
        return None
    written = NamelessFile()
    write_tidy(sample, written.place)
    delimiter = "," if layout.oddities else None
    return TidiedFile(
        Content(kind="text", place=written.place, written=written, delimiter=delimiter), sample.oddities
    )
