"""split: the shards of the holders who report, and the rows held back for the simulation's test; of one machine, or put together
from what several have cut. Runs with the holders. Who has which role is decided in `roles`, how rows are cut in `stretches`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq

from ldptree.errors import DataError
from schemas.manifest import Manifest, Record
from storage import tables
from storage.holders.holder_names import type_of_stored_names
from storage.store import Draft
from tasks import progress
from tasks.holders.roles import RoleRules, assign
from tasks.holders.stretches import columns_of, rows_held_back, write
from tasks.step import NO_PARTS, NotInKey, step


@step(
    "split",
    version="4",
    home="holders",
    order=3,
    says="shards of the holders who report, and the test rows held back",
)
def split(
    draft: Draft, *, private: Manifest, rows: Manifest, rules: RoleRules, parts: NotInKey = NO_PARTS
) -> dict[str, Any]:
    """Write the shards of the holders who report (part "train", a file each), the test rows (part "test") and who they are
    (part "answers": `files.json`, and for each raw file who is asked, and as which rows).

    `rows`: who each private row is. `parts`: the record of `roles`, and those of `cut`, where others have done that; the artifact
    is the same. Raises DataError where nobody is left to report, or to be held back.
    """
    store = draft.store
    first_file = tables.typed_parts(store.files(private))[0]
    test = draft.folder("test") / "test.parquet"
    n_private = n_done = 0
    with tables.writer(test, columns_of(first_file, rules.columns)) as held_back:
        for roles in assign(draft, private, rows, rules) if parts.value is None else ():
            write(draft, roles.stretch(), rules.columns, held_back)
            n_private += int(roles.asked.sum())
            n_done += len(roles.asked)
            progress.advance(n_done / private.rows)
        if parts.value is not None:
            assigned, cuts = parts.value
            n_private = _put_together(draft, assigned, cuts, held_back)
    n_test = pq.read_metadata(test).num_rows
    draft.count("test", test.name, n_test)
    if rules.test_fraction > 0 and n_test == 0:
        raise DataError(
            f"no private row was held back to score on, by dataset.test_fraction = {rules.test_fraction:g}. "
            "Raise it, or set evaluate = false."
        )
    if n_private == 0:
        raise DataError(
            "no private rows are left to report: every one is public, held back for the test, or was asked before."
        )
    is_row = rules.holder == "row"
    names_are = {} if is_row else {"holder_type": type_of_stored_names(first_file, rules.holder)}
    return {"n_private": n_private, "n_test": n_test, **names_are}


def _put_together(draft: Draft, assigned: Record, cuts: Sequence[Record], held_back: pq.ParquetWriter) -> int:
    """What others have cut, as if it were cut here. Returns how many report."""
    draft.adopt("answers", assigned["answers"])
    for record in cuts:
        draft.adopt("train", record["train"])
    for table in rows_held_back(draft.store, cuts):
        held_back.write_table(table)
    return sum(record["train"].rows for record in cuts)
