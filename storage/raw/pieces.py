"""Split one large raw file into pieces of whole rows for several tasks, as bytes of a CSV or row groups of a Parquet.

A file is cut only where nobody can doubt where its rows begin; any other stays in one piece. The same bytes are always cut in the
same places, so that who reads the pieces, and where, changes nothing.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ldptree.compiled import compiled
from storage.digests import Hasher
from storage.raw.formats.contents import BLOCK, Content
from storage.raw.formats.nameless_files import NamelessFile
from storage.raw.raw_files import FILE_ROW, RawFile

LINE_FEED, RETURN, QUOTE = b'\n\r"'
ROW_START, FIELD_START, PLAIN, QUOTED, CLOSED = range(5)
"""States of a reader inside a CSV. A quote closes a quoted field, and another one reopens it."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Some rows of a raw file that follow each other.

    number     of the piece, from 0.
    start      its first byte in a CSV.
    stop       the byte after its last one.
    first_row  the number of its first row in the file, from 0.
    stop_row   the number of the row after its last one.
    source     the plain digest of the whole file.
    """

    number: int
    start: int
    stop: int
    first_row: int
    stop_row: int
    source: str

    def open(self, file: RawFile) -> RawFile:
        """Open the piece of `file`, of a CSV as a copy of its bytes that goes with the object. Raises OSError."""
        if file.kind == "parquet":
            return replace(file, rows=(self.first_row, self.stop_row))
        copy = NamelessFile()
        with file.place.open("rb") as stream:
            stream.seek(self.start)
            left = self.stop - self.start
            while left and (block := stream.read(min(BLOCK, left))):
                left -= copy.stream.write(block)
        content = Content(kind="text", place=copy.place, written=copy)
        has_header = file.has_header and self.number == 0
        return replace(file, content=content, has_header=has_header, rows=(self.first_row, self.stop_row))

    def to_json(self) -> str:
        """As `from_json` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))


def cut(file: RawFile, most_bytes: int) -> list[Piece]:
    """The pieces of a file, each of about `most_bytes` or less; none where it is not larger, or cannot be cut without a doubt.

    It is not where it was unpacked or written anew; a CSV where lines stand above its header, a line is blank, its lines end in
    several ways, or there is a quote in a field that does not begin with one. Raises OSError.
    """
    if file.content is None or file.content.written is not None or file.content.kind == "gzip":
        return []
    n_pieces = -(-file.place.stat().st_size // most_bytes)
    if n_pieces < 2:
        return []
    starts = _group_starts(file, n_pieces) if file.kind == "parquet" else _line_starts(file, n_pieces)
    if len(starts) < 3:
        return []
    source = Hasher().of_file(file.path)
    return [
        Piece(number=number, start=start, stop=stop, first_row=first_row, stop_row=stop_row, source=source)
        for number, ((start, first_row), (stop, stop_row)) in enumerate(pairwise(starts))
    ]


def _group_starts(file: RawFile, n_pieces: int) -> list[tuple[int, int]]:
    """0 and the first row of each piece, and the end; of equal bytes, as far as row groups are."""
    from pyarrow import parquet

    if FILE_ROW in {name.lower() for name in file.columns}:
        return []
    described = parquet.read_metadata(file.place)
    groups = [described.row_group(number) for number in range(described.num_row_groups)]
    sizes = [
        sum(group.column(number).total_compressed_size for number in range(group.num_columns))
        for group in groups
    ]
    ends, rows = [*accumulate(sizes)], [0, *accumulate(group.num_rows for group in groups)]
    targets = [ends[-1] * number / n_pieces for number in range(1, n_pieces)] if ends else []
    firsts = [rows[int(np.searchsorted(ends, target)) + 1] for target in targets]
    return [(0, row) for row in sorted({0, *firsts, rows[-1]})]


def _line_starts(file: RawFile, n_pieces: int) -> list[tuple[int, int]]:
    """The byte and the number of the first row of each piece, and of the end; none where a row's begin is in doubt."""
    delimiter = file.delimiter.encode()
    if len(delimiter) != 1 or file.lines_above:
        return []
    size = file.place.stat().st_size
    targets = np.array([size * number // n_pieces for number in range(1, n_pieces)], np.int64)
    firsts = np.zeros((len(targets), 2), np.int64)
    mark = len(codecs.BOM_UTF8) if _is_marked(file, [0]) else 0
    state = np.array([ROW_START, 0, mark, 0, 0, 0, 0], np.int64)
    for block in _blocks(file, mark):
        if not _scan(block, ord(delimiter), state, targets, firsts):
            return []
    where, is_returned, at, rows, _, n_returned, n_fed = state.tolist()
    if where == QUOTED or is_returned or (n_returned and n_fed):
        return []
    end = (at, rows + (where != ROW_START))
    n_above = int(file.has_header)
    starts = [(0, n_above), *((start, row) for start, row in firsts.tolist() if 0 < start < at), end]
    if _is_marked(file, [start for start, _ in starts[1:-1]]):
        return []
    return [(start, row - n_above) for start, row in sorted(set(starts))]


def _blocks(file: RawFile, start: int) -> Iterator[NDArray[np.uint8]]:
    with file.place.open("rb") as stream:
        stream.seek(start)
        while block := stream.read(BLOCK):
            yield np.frombuffer(block, np.uint8)


def _is_marked(file: RawFile, starts: Sequence[int]) -> bool:
    """Return whether there is at one of these bytes what is a mark at the start of a file, and is left out there."""
    with file.place.open("rb") as stream:
        for start in starts:
            stream.seek(start)
            if stream.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
                return True
    return False


@compiled
def _scan(
    block: NDArray[np.uint8],
    delimiter: int,
    state: NDArray[np.int64],
    targets: NDArray[np.int64],
    firsts: NDArray[np.int64],
) -> bool:
    """Go on through a CSV; False where it is in doubt where a row begins.

    `state`: where one is, whether a return came last, the byte and the records before the block, the next of the targets, and how
    many lines so far end in a return and a feed, and in a feed. `firsts`: the first record that begins at each target or later.
    """
    where, is_returned, before, target = state[0], state[1], state[2], state[4]
    for place in range(len(block)):
        byte = block[place]
        if byte == LINE_FEED:
            state[5 if is_returned else 6] += 1
            is_returned = 0
            if where == QUOTED:
                continue
            if where == ROW_START:
                return False
            where = ROW_START
            state[3] += 1
            start = before + place + 1
            while target < len(targets) and start >= targets[target]:
                firsts[target, 0], firsts[target, 1] = start, state[3]
                target += 1
        elif is_returned:
            return False
        elif byte == RETURN:
            if where == ROW_START:
                return False
            is_returned = 1
        elif where == QUOTED:
            if byte == QUOTE:
                where = CLOSED
        elif byte == QUOTE:
            if where == PLAIN:
                return False
            where = QUOTED
        elif byte == delimiter:
            where = FIELD_START
        elif where == CLOSED:
            return False
        else:
            where = PLAIN
    state[0], state[1], state[2], state[4] = where, is_returned, before + len(block), target
    return True
