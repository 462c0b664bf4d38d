"""What the pages of a Parquet file say they unfold to, read from their headers before anything is unfolded.

The file's own description may say less than its pages do, and a reader that believes it unfolds a page of any size. Headers are
Thrift structs in the compact encoding (apache/parquet-format, `parquet.thrift`, PageHeader); of each the two sizes are read,
everything else is stepped over.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

_UNCOMPRESSED, _COMPRESSED = 2, 3
"""Numbers of the fields."""
_HEADER_BYTES = 2**12
"""Of one header, at most: its statistics are of a value or two."""
_DEPTH = 8


def unfolded_bytes(path: Path, described: Any) -> int:
    """How many bytes all pages of a file have once they are unfolded.

    Args:
        path: the file.
        described: its `pyarrow.parquet.FileMetaData`.

    Raises:
        ValueError, IndexError: a page lies outside the file or in two columns, or its header is none.
    """
    groups = map(described.row_group, range(described.num_row_groups))
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        ranges = [_range(g.column(j), len(content)) for g in groups for j in range(g.num_columns)]
        if sum(end - start for start, end in ranges) > len(content):
            raise ValueError("columns share their pages")
        return sum(unfolded for start, end in ranges for unfolded in _pages(content, start, end))


def _range(chunk: Any, size: int) -> tuple[int, int]:
    """Where the pages of a column chunk begin and end."""
    starts = [chunk.data_page_offset]
    if chunk.dictionary_page_offset is not None:
        starts.append(chunk.dictionary_page_offset)
    start = min(starts)
    end = start + chunk.total_compressed_size
    if not 0 <= start <= end <= size:
        raise ValueError("a column lies outside the file")
    return start, end


def _pages(content: mmap, start: int, end: int) -> Iterator[int]:
    at = start
    while at < end:
        header = _Thrift(content[at : at + _HEADER_BYTES])
        sizes = header.struct({_UNCOMPRESSED: 0, _COMPRESSED: 0})
        if min(sizes.values()) < 0:
            raise ValueError("a page of a negative size")
        yield sizes[_UNCOMPRESSED]
        at += header.at + sizes[_COMPRESSED]


class _Thrift:
    """A reader of one struct, that keeps its place."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def struct(self, wanted: dict[int, int], depth: int = 0) -> dict[int, int]:
        """Step over a struct; its whole numbers of these fields, the largest where one stands twice."""
        if depth > _DEPTH:
            raise ValueError("nested too deep")
        number = 0
        while header := self._byte():
            delta, kind = header >> 4, header & 15
            number = number + delta if delta else self._whole()
            if kind in (4, 5, 6) and number in wanted:
                wanted[number] = max(wanted[number], self._whole())
            else:
                self._skip(kind, depth)
        return wanted

    def _skip(self, kind: int, depth: int) -> None:
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
            case 9 | 10:
                self._skip_list(depth)
            case 12:
                self.struct({}, depth + 1)
            case _:
                raise ValueError(f"a field of type {kind}")

    def _skip_list(self, depth: int) -> None:
        header = self._byte()
        n = header >> 4 if header >> 4 < 15 else self._varint()
        for _ in range(n):
            if header & 15 in (1, 2):
                self._byte()
            else:
                self._skip(header & 15, depth + 1)

    def _byte(self) -> int:
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
