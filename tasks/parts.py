"""Steps of which others may make parts: how much of a run's files one task looks at."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.manifest import Manifest

PART_SHARDS = 64
"""Shards of one part: about four million holders."""
PART_ROWS = 1 << 20
"""Rows of one part."""


def is_one_part(rows: Manifest) -> bool:
    """Whether one task looks at all of these rows."""
    return rows.rows <= PART_ROWS


def groups(sizes: Sequence[int], full: int) -> list[range]:
    """What follows each other, by its numbers, in parts of about a size."""
    starts, filled = [0], 0
    for number, size in enumerate(sizes):
        if filled and filled + size > full:
            starts.append(number)
            filled = 0
        filled += size
    return [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(sizes)], strict=True)]


def shards_in_parts(shards: Sequence[Manifest]) -> list[list[Manifest]]:
    """Shards, or their reports, in the parts that one task each looks at."""
    return [[*shards[part.start : part.stop]] for part in groups([1] * len(shards), PART_SHARDS)]


def files_in_parts(files: Sequence[Manifest]) -> list[list[Manifest]]:
    """Files of rows in the parts that one task each looks at; none is divided."""
    return [[*files[part.start : part.stop]] for part in groups([file.rows for file in files], PART_ROWS)]
