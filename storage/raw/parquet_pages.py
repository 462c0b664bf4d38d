"""Read from the headers of a Parquet file's pages what they unfold to, before anything is unfolded.

The file's own description may say less than its pages do, and a reader that believes it unfolds a page of any size. Headers are
Thrift structs in the compact encoding (apache/parquet-format, `parquet.thrift`, PageHeader).
"""

from __future__ import annotations

from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

MOST_PAGES = 2**19
"""Of a file, at most: as many hold ten thousand million values as their writers cut them."""
_MOST_STEPS = 2**8
"""Bytes of one header that are looked at; the values in its statistics are jumped over."""
_DEPTH = 8
_TYPE, _UNFOLDED, _PACKED, _LISTED = (1,), (2,), (3,), (7, 1)
"""Numbers of the fields, those of a struct within behind the struct's own. `_LISTED`: values of a dictionary."""
_ROWS_AND_FORMS = (((5, 1), (5, 2)), ((8, 1), (8, 4)))
"""Of a page of rows, in either version, and how they are encoded."""
_IN_DICTIONARY = (2, 8)


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
    unfolded, heaviest, n_pages, n_bytes = 0, (0, ""), 0, 0
    groups = map(described.row_group, range(described.num_row_groups))
    chunks = [group.column(j) for group in groups for j in range(group.num_columns)]
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        for chunk in chunks:
            # 0 stands for a dictionary that is not there, and for rows where there are none.
            at = min(filter(None, (chunk.data_page_offset, chunk.dictionary_page_offset)), default=0)
            end, size, listed, used = at + chunk.total_compressed_size, 0, 0, 0
            n_bytes += end - at
            if not 0 <= at <= end <= len(content) or n_bytes > len(content):
                raise ValueError("a column lies outside the file, or columns share their pages")
            while at < end:
                n_pages += 1
                page, at = _read_header(content, at)
                if (
                    n_pages > MOST_PAGES
                    or min(page.get(field, -1) for field in (_TYPE, _UNFOLDED, _PACKED)) < 0
                ):
                    raise ValueError("too many pages, or one without a type or a size")
                at += page[_PACKED]
                unfolded += page[_UNFOLDED]
                size += page[_UNFOLDED] if _LISTED in page else 0
                listed += page.get(_LISTED, 0)
                used += sum(page.get(n, 0) for n, form in _ROWS_AND_FORMS if page.get(form) in _IN_DICTIONARY)
            heaviest = max(heaviest, (size * min(used, rows) // max(listed, 1), chunk.path_in_schema))
    return unfolded, *heaviest


def _read_header(content: mmap, at: int) -> tuple[dict[tuple[int, ...], int], int]:
    """Return the whole numbers of a header by their fields, the largest where one stands twice, and where it ends."""
    numbers: dict[tuple[int, ...], int] = {}
    outer: list[int] = []  # numbers of the fields that hold the struct that is read
    number, left = 0, _MOST_STEPS

    def varint() -> int:
        nonlocal at, left
        value = 0
        for shift in range(0, 64, 7):
            byte, at, left = content[at], at + 1, left - 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number of too many bytes")

    while True:
        head, at, left = content[at], at + 1, left - 1
        if left < 0 or len(outer) > _DEPTH:
            raise ValueError("a header that is too long, or nested too deep")
        if not head:
            if not outer:
                return numbers, at
            number = outer.pop()
            continue
        encoded = 0 if head >> 4 else varint()
        number = number + (head >> 4) if head >> 4 else encoded >> 1 ^ -(encoded & 1)
        field = (*outer, number)
        match head & 15:
            case 1 | 2:  # a boolean is in its type
                pass
            case 3:
                at += 1
            case 4 | 5 | 6:
                encoded = varint()
                numbers[field] = max(numbers.get(field, -1), encoded >> 1 ^ -(encoded & 1))
            case 7:
                at += 8
            case 8:
                length = varint()  # which moves the place itself
                at += length
            case 12:
                outer.append(number)
                number = 0
            case kind:  # a list, set or map, of which a header has none
                raise ValueError(f"a field of type {kind}")
