"""Read from the headers of a Parquet file's pages what they unfold to, before anything is unfolded.

The file's own description may say less than its pages do, and a reader that believes it unfolds a page of any size. Headers are
Thrift structs in the compact encoding (apache/parquet-format, `parquet.thrift`, PageHeader); of each the numbers named here are
read, everything else is stepped over.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

_TYPE, _UNCOMPRESSED, _COMPRESSED = (1,), (2,), (3,)
_ROWS, _ENCODINGS = ((5, 1), (8, 1)), ((5, 2), (8, 4))
"""Of a page of rows, in either version; how they are encoded."""
_LISTED = (7, 1)
"""Values of a dictionary."""
_REQUIRED = (_TYPE, _UNCOMPRESSED, _COMPRESSED)
_WANTED: dict[tuple[int, ...], int] = dict.fromkeys(_REQUIRED, -1) | dict.fromkeys(
    (*_ROWS, *_ENCODINGS, _LISTED), 0
)
"""Numbers of the fields, those of a struct within behind the struct's own, and what each is where it is not said."""
_IN_DICTIONARY = (2, 8)
_MOST_STEPS = 2**8
"""Bytes of one header that are looked at; the values in its statistics are jumped over."""
_DEPTH = 8
MOST_PAGES = 2**19
"""Of a file, at most: as many hold ten thousand million values as their writers cut them."""


def weigh_pages(path: Path, described: Any, rows: int) -> tuple[int, int, str]:
    """Return the bytes of all pages of a file once they are unfolded; and of so many rows of the heaviest column of texts that
    stand in a dictionary the bytes, and its name.

    Args:
        path: the file.
        described: its `pyarrow.parquet.FileMetaData`.
        rows: most that are read at a time.

    Raises:
        ValueError, IndexError: a page lies outside the file or in two columns, its header is none, or there are too many.
    """
    unfolded, heaviest = 0, (0, "")
    for name, pages in _chunks(path, described):
        size = listed = used = 0
        for page in pages:
            unfolded += page[_UNCOMPRESSED]
            size += page[_UNCOMPRESSED] if page[_LISTED] else 0
            listed += page[_LISTED]
            used += sum(
                page[n] for n, how in zip(_ROWS, _ENCODINGS, strict=True) if page[how] in _IN_DICTIONARY
            )
        heaviest = max(heaviest, (size * min(used, rows) // max(listed, 1), name))
    return unfolded, *heaviest


def _chunks(path: Path, described: Any) -> Iterator[tuple[str, Iterator[dict[tuple[int, ...], int]]]]:
    """Yield the column of each chunk, and what the headers of its pages say."""
    groups = map(described.row_group, range(described.num_row_groups))
    chunks = [group.column(j) for group in groups for j in range(group.num_columns)]
    left = iter(range(MOST_PAGES))
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        ranges = [_range(chunk, len(content)) for chunk in chunks]
        if sum(end - start for start, end in ranges) > len(content):
            raise ValueError("columns share their pages")
        for chunk, (start, end) in zip(chunks, ranges, strict=True):
            yield chunk.path_in_schema, _pages(content, start, end, left)


def _range(chunk: Any, size: int) -> tuple[int, int]:
    """Return where the pages of a column chunk begin and end."""
    # Some writers say 0 of a dictionary that is not there.
    start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
    end = start + chunk.total_compressed_size
    if not 0 <= start <= end <= size:
        raise ValueError("a column lies outside the file")
    return start, end


def _pages(content: mmap, start: int, end: int, left: Iterator[int]) -> Iterator[dict[tuple[int, ...], int]]:
    at = start
    while at < end:
        if next(left, None) is None:
            raise ValueError("too many pages")
        header = _Thrift(content, at)
        numbers = header.struct(_WANTED.copy())
        if min(numbers.values()) < 0:
            raise ValueError("a page without a type, or without a size")
        yield numbers
        at = header.at + numbers[_COMPRESSED]


class _Thrift:
    """A reader of one struct, that keeps its place."""

    def __init__(self, content: mmap, at: int) -> None:
        self.content = content
        self.at = at
        self.left = _MOST_STEPS

    def struct(
        self, wanted: dict[tuple[int, ...], int], place: tuple[int, ...] = ()
    ) -> dict[tuple[int, ...], int]:
        """Step over a struct at a place; its whole numbers of these fields, the largest where one stands twice."""
        if len(place) > _DEPTH:
            raise ValueError("nested too deep")
        number = 0
        while header := self._byte():
            delta, kind = header >> 4, header & 15
            number = number + delta if delta else self._whole()
            field = (*place, number)
            if kind in (4, 5, 6) and field in wanted:
                wanted[field] = max(wanted[field], self._whole())
            else:
                self._skip(kind, wanted, field)
        return wanted

    def _skip(self, kind: int, wanted: dict[tuple[int, ...], int], place: tuple[int, ...]) -> None:
        match kind:
            case 1 | 2:  # a boolean is in its type
                return
            case 3:
                self.at += 1
            case 4 | 5 | 6:
                self._varint()
            case 7:
                self.at += 8
            case 8:
                length = self._varint()  # which moves the place itself
                self.at += length
            case 12:
                self.struct(wanted, place)
            case _:  # a list, set or map, of which a header has none
                raise ValueError(f"a field of type {kind}")

    def _byte(self) -> int:
        self.left -= 1
        if not self.left:
            raise ValueError("a header that is too long")
        self.at += 1
        return self.content[self.at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number of too many bytes")

    def _whole(self) -> int:
        encoded = self._varint()
        return encoded >> 1 ^ -(encoded & 1)
