"""publish: the answers of one round, of all shards, as everybody may see them. The curator's, who sees reports only.

An answer that the question does not allow, or from somebody who was not asked, is refused: nothing is learned from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.errors import ProtocolMismatch
from ldptree.families.curators import question_from_json
from ldptree.protocol.question import Answers
from schemas.manifest import Manifest
from storage.store import Draft, Store
from tasks.checkpoint import step
from tasks.show import read_shown


@step("publish", version="1", home="curator", retries=2)
def publish(
    draft: Draft, *, question: Manifest, shown: Manifest, reports: Sequence[Manifest], round_number: int
) -> Mapping[str, Any]:
    """Write the round ("transcript"): `question.json`, `answers.parquet` (holder, report) and `round.json`."""
    store = draft.store
    text = store.file(question, "question.json").read_bytes()
    asked = question_from_json(text)
    tables = [pq.read_table(path) for manifest in reports for path in store.files(manifest)]
    holders, answers = (np.concatenate(parts) for parts in zip(*map(from_table, tables), strict=True))
    order = np.argsort(holders, kind="stable")
    holders, answers = holders[order], answers[order]
    if not np.array_equal(holders, asked.asked(read_shown(store, shown))):
        raise ProtocolMismatch(
            f"round {round_number}: {holders.size} answers, and not one from each holder who was asked"
        )
    if not asked.is_valid(answers).all():
        raise ProtocolMismatch(f"round {round_number}: an answer that its question does not allow")
    folder = draft.folder("transcript")
    (folder / "question.json").write_bytes(text)
    (folder / "round.json").write_text(json.dumps(round_number))
    pq.write_table(as_table(holders, answers), folder / "answers.parquet", compression="zstd")
    draft.count("transcript", "answers.parquet", holders.size)
    return {"n_answers": int(holders.size), "about": asked.about, "epsilon": asked.epsilon}


def as_table(holders: NDArray[np.int64], reports: NDArray[Any]) -> pa.Table:
    """Reports [m, ...] of holders [m], a row each: the bytes of a report, its type and shape in the metadata."""
    flat = np.ascontiguousarray(reports).reshape(holders.size, -1)
    width = max(flat.dtype.itemsize * flat.shape[1], 1)
    column = pa.Array.from_buffers(pa.binary(width), holders.size, [None, pa.py_buffer(flat.tobytes())])
    shape = json.dumps([flat.dtype.str, list(reports.shape[1:])])
    return pa.table({"holder": pa.array(holders), "report": column}).replace_schema_metadata(
        {"report": shape}
    )


def from_table(table: pa.Table) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Holders and reports that `as_table` took. Raises ProtocolMismatch."""
    try:
        kind, shape = json.loads(table.schema.metadata[b"report"])
        column = table.column("report").combine_chunks()
        width = column.type.byte_width
        content = b"" if not len(column) else column.buffers()[1].to_pybytes()
        data = np.frombuffer(content, np.uint8)[column.offset * width : (column.offset + len(column)) * width]
        reports = data.view(np.dtype(kind)).reshape(len(column), *shape)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ProtocolMismatch("answers: not a table of reports") from None
    return table.column("holder").to_numpy().astype(np.int64), reports


def read_answers(store: Store, transcript: Manifest) -> tuple[int, Answers]:
    """The number of a round, and what was answered in it."""
    question = question_from_json(store.file(transcript, "question.json").read_bytes())
    holders, reports = from_table(pq.read_table(store.file(transcript, "answers.parquet")))
    return json.loads(store.file(transcript, "round.json").read_bytes()), Answers(question, holders, reports)
