"""Artifacts as values: one reader and one writer for each kind, so that steps share files and never import each other.

    part            file               holds
    encoding        encoding.json      ranges and levels of the features, and of the label
    scaled          scaled.parquet     public rows under that encoding
    question        protocol.json      a question about one tree, put to everybody
                    question.json      another question, or null where none is left
    evidence        evidence.json      what public rows say of a question about one tree
    totals          raw.parquet        sums of reports
    shown           shown.parquet      what everybody can see of the holders
    transcript      answers.parquet    a question and everybody's answers
    model           model.json         what was learned
    curves          curves.json        what it says along its features
    scores          scores.json        what a simulation measures of it
    checks          checks.json        the outcome of every expectation

Private rows have no reader here: only holders' steps open them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree import models
from ldptree.encoding import Encoding
from ldptree.errors import ArtifactCorrupt, ProtocolMismatch
from ldptree.families.correction_plan import PublicSummary
from ldptree.families.questions import question_from_json
from ldptree.models.curves import Along
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.question import AnsweredQuestion, PublicView, Question
from ldptree.protocol.raw_sums import RawSums
from ldptree.protocol.totals import Totals
from schemas.manifest import Manifest
from storage import tables
from storage.formats import read_stamped, stamped
from storage.store import Draft, Store

PROTOCOL = "protocol.json"


# encoding, scaled


def read_encoding(store: Store, encoding: Manifest) -> tuple[Encoding, tuple[Any, ...]]:
    """The encoding, and the label values, or the two ends of the range of a label that is a number."""
    content = read_stamped(
        store.objects, f"{encoding.path}/encoding.json", "encoding", "Restore it from a copy."
    )
    label = content["label_range"] if "label_range" in content else content["classes"]
    return Encoding.from_json(content["encoding"]), tuple(label)


def write_encoding(draft: Draft, content: Mapping[str, Any]) -> None:
    """Write an encoding beside "classes" or "label_range"."""
    (draft.folder("encoding") / "encoding.json").write_bytes(stamped("encoding", content, indent=1))


def read_scaled(store: Store, scaled: Manifest) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Scaled public rows float32 [n, d] and labels [n]: int64 classes, or float64 numbers."""
    files = store.files(scaled)
    sizes = [pq.read_metadata(path) for path in files]
    X = np.empty((sum(one.num_rows for one in sizes), sizes[0].num_columns - 1), np.float32)
    y, start = [], 0
    for table in tables.batches(files):  # a row group at a time: never all rows twice
        rows = slice(start, start := start + table.num_rows)
        for i in range(X.shape[1]):
            X[rows, i] = table.column(i + 1).to_numpy()
        y.append(table.column("label").to_numpy())
    return X, np.concatenate(y)


def write_scaled(draft: Draft, X: NDArray[np.float32], y: NDArray[Any]) -> None:
    """Write scaled public rows, in the public zone."""
    names = ["label", *map(str, range(X.shape[1]))]
    table = pa.table([pa.array(y), *(pa.array(x) for x in X.T)], names=names)
    tables.write(draft.folder("scaled", "public") / "scaled.parquet", table)
    draft.count("scaled", "scaled.parquet", len(y))


# protocol, and what public rows say beside it


def read_protocol(store: Store, protocol: Manifest) -> Protocol:
    """The protocol in an artifact. Raises ProtocolMismatch."""
    return _parse_protocol(store.file(protocol, PROTOCOL).read_text())


@lru_cache(maxsize=2)
def _parse_protocol(text: str) -> Protocol:
    # With a public model in it, a protocol takes a second to check, and every shard asks for it.
    return Protocol.from_json(text)


def write_protocol(draft: Draft, protocol: Protocol) -> None:
    """Write a protocol."""
    (draft.folder("question") / PROTOCOL).write_text(protocol.to_json())


def is_protocol(question: Manifest) -> bool:
    """Whether a question is a protocol: about one tree, and put to everybody."""
    return question.files[0].name == PROTOCOL


def read_evidence(store: Store, evidence: Manifest) -> dict[str, Any]:
    """What public rows say of a protocol, as the family that asked wrote it."""
    found: dict[str, Any] = json.loads(store.file(evidence, "evidence.json").read_bytes())
    return found


def read_public(store: Store, evidence: Manifest, protocol: Protocol) -> PublicSummary:
    """What public rows say of a corrected model's protocol."""
    return PublicSummary.from_json(read_evidence(store, evidence), protocol)


def write_evidence(draft: Draft, content: Mapping[str, Any]) -> None:
    """Write what public rows say of a protocol."""
    (draft.folder("evidence") / "evidence.json").write_text(json.dumps(content))


# totals


def read_totals(store: Store, totals: Manifest, protocol: Protocol) -> tuple[Totals, ...]:
    """The totals in an artifact, one an output, with the exact variance of what is made of them."""
    table = pq.read_table(store.file(totals, "raw.parquet"))
    meta = {key.decode(): json.loads(value) for key, value in table.schema.metadata.items()}
    n_reports = np.array(meta.get("holders_of_outputs", [meta["n_private"]]))
    raw = table.column("raw").to_numpy().reshape(len(n_reports), -1)
    return RawSums(protocol, raw, n_reports).totals(meta["round"])


def check_whole(store: Store, reports: Sequence[Manifest]) -> None:
    """Raises ArtifactCorrupt where reports are no longer what was received."""
    for manifest in reports:
        if (condition := store.condition(manifest)) != "present":
            raise ArtifactCorrupt(
                f"{manifest.path}/{manifest.files[0].name}: these reports are {condition} since they were received. "
                "Restore the file from a copy."
            ) from None


# what is shown; questions and answers


def read_shown(store: Store, shown: Manifest) -> PublicView:
    """What everybody can see of the holders."""
    table = tables.read([store.file(shown, "shown.parquet")])
    aligned = json.loads(store.file(shown, "mask.json").read_bytes())["protects"]
    d = table.num_columns // (1 if aligned is not None else 2)
    values = np.stack([table.column(j).to_numpy() for j in range(d)], axis=1)
    if aligned is not None:
        return PublicView(values, np.tile(np.array(aligned, dtype=bool), (len(values), 1)))
    return PublicView(values, np.stack([table.column(d + j).to_numpy() for j in range(d)], axis=1))


def read_question(store: Store, question: Manifest) -> Question:
    """The question in an artifact that has one. Raises ProtocolMismatch."""
    return question_from_json(store.file(question, "question.json").read_bytes())


def read_published(store: Store, question: Manifest) -> Protocol | Question:
    """The question in an artifact, whichever kind it is. Raises ProtocolMismatch."""
    return (read_protocol if is_protocol(question) else read_question)(store, question)


def write_question(draft: Draft, question: Question | None, *, simulation: bool) -> bytes:
    """Write a question, or null; returns its text. `simulation`: it says that the holders' coins come from a seed."""
    mark = {"simulation": True} if simulation else {}
    text = json.dumps(None if question is None else question.to_json() | mark, sort_keys=True).encode()
    (draft.folder("question") / "question.json").write_bytes(text)
    return text


def digest_unmarked(store: Store, question: Manifest) -> str:
    """The digest that a release of the same question has as an artifact: what the noise of a simulation is drawn from."""
    (entry,) = question.files
    content = json.loads(store.file(question, entry.name).read_bytes())
    content.pop("simulation", None)
    hasher = store.hasher("curator")
    text = json.dumps(content, sort_keys=True).encode()
    return hasher.of_value([[entry.name, hasher.of_bytes(text)]])


def table_of_reports(holders: NDArray[np.int64], reports: NDArray[Any]) -> pa.Table:
    """Reports [m, ...] of holders [m], a row each: the bytes of a report, its type and shape in the metadata."""
    flat = np.ascontiguousarray(reports).reshape(holders.size, -1)
    width = max(flat.dtype.itemsize * flat.shape[1], 1)
    column = pa.Array.from_buffers(pa.binary(width), holders.size, [None, pa.py_buffer(flat.tobytes())])
    shape = json.dumps([flat.dtype.str, list(reports.shape[1:])])
    return pa.table({"holder": pa.array(holders), "report": column}).replace_schema_metadata(
        {"report": shape}
    )


def reports_of_table(table: pa.Table) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Holders and reports that `table_of_reports` took. Raises ProtocolMismatch."""
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


def read_transcripts(store: Store, transcripts: Sequence[Manifest]) -> list[AnsweredQuestion]:
    """What was published so far, in the order of the rounds."""
    rounds = sorted((_read_transcript(store, one) for one in transcripts), key=lambda pair: pair[0])
    return [answers for _, answers in rounds]


def _read_transcript(store: Store, transcript: Manifest) -> tuple[int, AnsweredQuestion]:
    question = question_from_json(store.file(transcript, "question.json").read_bytes())
    holders, reports = reports_of_table(pq.read_table(store.file(transcript, "answers.parquet")))
    return json.loads(store.file(transcript, "round.json").read_bytes()), AnsweredQuestion(
        question, holders, reports
    )


def write_transcript(
    draft: Draft, question: bytes, round_number: int, holders: NDArray[np.int64], reports: NDArray[Any]
) -> None:
    """Write the answers of a round beside the text of its question."""
    folder = draft.folder("transcript")
    (folder / "question.json").write_bytes(question)
    (folder / "round.json").write_text(json.dumps(round_number))
    pq.write_table(table_of_reports(holders, reports), folder / "answers.parquet", compression="zstd")
    draft.count("transcript", "answers.parquet", holders.size)


def read_curves(store: Store, curves: Manifest) -> Along:
    """What a model says along its features."""
    return Along.from_json(store.file(curves, "curves.json").read_bytes())


def write_curves(draft: Draft, curves: Along) -> None:
    """Write what a model says along its features."""
    (draft.folder("curves") / "curves.json").write_text(curves.to_json())


# models, scores, checks


def read_model(store: Store, model: Manifest) -> Any:
    """The model in an artifact, of whichever family. Raises DataError."""
    return models.read_model(store.file(model, "model.json").read_text())


def write_model(draft: Draft, model: models.Model) -> None:
    """Write a model."""
    (draft.folder("model") / "model.json").write_text(model.to_json())


def read_scores(store: Store, scores: Manifest | None) -> dict[str, Any] | None:
    """What was measured; None of a run that measures nothing."""
    if scores is None:
        return None
    found: dict[str, Any] = json.loads(store.file(scores, "scores.json").read_bytes())
    return found


def write_scores(draft: Draft, content: Mapping[str, Any]) -> None:
    """Write what was measured."""
    (draft.folder("scores") / "scores.json").write_text(json.dumps(content, indent=1))
