"""Real sets of two classes for `correction.py`, beside those of `lpct_samples`: Census, Employee, Diabetes, in LDPTREE_DATA.

What lives here: reading the files as LPCT (appendix) parts them into public and private. What does not: anything learned.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from functools import cache

import numpy as np
from lpct_samples import Table, folder
from numpy.typing import NDArray


def _columns(rows: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Numbers as they are, everything else one column a level."""
    parts = []
    for column in zip(*rows, strict=True):
        values = np.array(column)
        try:
            parts.append(values.astype(np.float64)[:, None])
        except ValueError:
            parts.append((values[:, None] == np.unique(values)).astype(np.float64))
    return np.hstack(parts)


@cache
def census() -> Table:
    """Income over 50,000; people born in the United States are public, all others private, as LPCT's text has it."""
    rows = []
    for name in ("adult-train.csv.gz", "adult-test.csv.gz"):
        lines = gzip.decompress((folder() / "census" / name).read_bytes()).decode().splitlines()
        rows += [[cell.strip(" .") for cell in line.split(",")] for line in lines if "," in line]
    rows = [row for row in rows if "?" not in row]
    country = np.array([row[13] for row in rows])
    y = np.array([row[14] == ">50K" for row in rows]).astype(np.int64)
    return Table(_columns([[*row[:3], *row[4:13]] for row in rows]), y, country == "United-States")


@cache
def employee() -> Table:
    """Who leaves; those who joined in 2012 are public, all others later (504 rows, as in the paper's table)."""
    lines = (folder() / "employee" / "Employee.csv").read_text().splitlines()[1:]
    rows = [line.split(",")[:9] for line in lines if line]
    year = np.array([int(row[1]) for row in rows])
    y = np.array([row[8] == "1" for row in rows]).astype(np.int64)
    return Table(_columns([[*row[:1], *row[2:8]] for row in rows]), y, year <= 2012)


@cache
def diabetes() -> Table:
    """Who has diabetes; 200 rows at random are public."""
    lines = (folder() / "diabetes" / "Healthcare-Diabetes.csv").read_text().splitlines()[1:]
    rows = np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines if line])
    order = np.random.default_rng(zlib.crc32(b"diabetes")).permutation(len(rows))
    return Table(rows[:, :-1], rows[:, -1].astype(np.int64), np.isin(np.arange(len(rows)), order[:200]))
