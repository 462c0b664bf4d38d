"""Split a large Parquet file into pieces of whole row groups for several tasks. A text is read by one task, however large it is.

The same bytes are always cut in the same places, so that who reads the pieces, and where, changes nothing.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, pairwise
from typing import Self

import numpy as np

from storage.digests import Hasher
from storage.raw.raw_files import FILE_ROW, RawFile


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Some rows of a Parquet file that follow each other.

    number     of the piece, from 0.
    first_row  the number of its first row in the file, from 0.
    stop_row   the number of the row after its last one.
    source     the plain digest of the whole file.
    """

    number: int
    first_row: int
    stop_row: int
    source: str

    def open(self, file: RawFile) -> RawFile:
        """Open the piece of `file`."""
        return replace(file, rows=(self.first_row, self.stop_row))

    def to_json(self) -> str:
        """As `from_json` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))


def cut(file: RawFile, most_bytes: int) -> list[Piece]:
    """The pieces of a Parquet file, of about `most_bytes`, or none where it is not larger. Raises OSError."""
    from pyarrow import parquet

    n_pieces = -(-file.place.stat().st_size // most_bytes)
    if file.kind != "parquet" or n_pieces < 2 or FILE_ROW in {name.lower() for name in file.columns}:
        return []
    described = parquet.read_metadata(file.place)
    groups = [described.row_group(number) for number in range(described.num_row_groups)]
    ends = [
        *accumulate(
            sum(group.column(number).total_compressed_size for number in range(group.num_columns))
            for group in groups
        )
    ]
    rows = [0, *accumulate(group.num_rows for group in groups)]
    targets = [ends[-1] * number / n_pieces for number in range(1, n_pieces)]
    starts = sorted({0, rows[-1], *(rows[int(np.searchsorted(ends, target)) + 1] for target in targets)})
    source = Hasher().of_file(file.path) if len(starts) > 2 else ""
    return [
        Piece(number=number, first_row=first, stop_row=stop, source=source)
        for number, (first, stop) in enumerate(pairwise(starts))
        if source
    ]
