"""Tell whether a label is a class or a number, where the configuration leaves it open, from public rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Literal

import numpy as np

from storage.raw import raw_files
from storage.raw.public_rows import PublicRows, booleans
from storage.raw.raw_files import RawFile
from storage.raw.typed_rows import ASKED, PUBLIC, TypedQuery
from storage.sql import quote

LabelKind = Literal["class", "number"]
CLASSES_MAX = 10
"""A column of numbers is a label of classes where public rows have at most this many values in it, all of them whole."""


def label_kind(query: TypedQuery, files: Sequence[RawFile], public: PublicRows) -> LabelKind:
    """A class where the target is text, boolean, or has few different whole values among the public rows; else a number."""
    (target,) = (column for column in query.kept if column.name == query.target)
    if target.type not in ("integer", "number"):
        return "class"
    distinct: set[Any] = set()
    with raw_files.connect(files) as connection:
        for index, file in enumerate(files):
            columns = ", ".join(map(quote, (query.target, PUBLIC, ASKED)))
            text = f"SELECT {columns} FROM ({query.rows(file, skip_bad_lines=file.kind == 'csv')})"
            first = 0
            with closing(
                raw_files.stream(connection.cursor(), text, file, raw_files.batch_rows(3))
            ) as batches:
                for batch in batches:
                    rows = np.arange(first, first + batch.num_rows)
                    first += batch.num_rows
                    chosen = public.among(index, batch, rows) & booleans(batch.column(ASKED), missing=True)
                    values = batch.column(query.target).filter(chosen).drop_null().unique().to_pylist()
                    distinct.update(values)
                    if len(distinct) > CLASSES_MAX or any(value % 1 for value in distinct):
                        return "number"
    return "class"
