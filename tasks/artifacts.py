"""Read and write each kind of artifact in one place, as several steps share it.

    part            file               holds
    encoding        encoding.json      ranges and levels of the features, and of the label
    scaled          scaled.parquet     public rows under that encoding
    question        protocol.json      a question about one tree
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
from dataclasses import dataclass
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
from ldptree.protocol.totals import RawSums, Totals
from schemas.manifest import Manifest
from schemas.named_files import MOST_DOCUMENT, read_fault
from storage import tables
from storage.digests import Hasher
from storage.formats import stamped, unstamped
from storage.store import Draft, Store

PROTOCOL, ENCODING = "protocol.json", "encoding.json"


# encoding, scaled


def read_encoding(store: Store, encoding: Manifest) -> tuple[Encoding, tuple[Any, ...]]:
    """Read the encoding, and the label values, or the two ends of the range of a label that is a number.

    The bytes that are read are compared with the manifest: the curator's zone may be somebody else's. Raises ArtifactCorrupt.
    """
    where, remedy = f"{encoding.path}/{ENCODING}", "Delete it: the next run makes it anew."
    try:
        text = store.objects.get(where)
    except FileNotFoundError:
        raise ArtifactCorrupt(f"{where}: missing. {remedy}") from None
    hasher = store.hasher(encoding.zone)
    if hasher.of_value([[ENCODING, hasher.of_bytes(text)]]) != encoding.digest:
        raise ArtifactCorrupt(f"{where}: changed since it was written. {remedy}")
    content = unstamped(text, where, "encoding", remedy)
    label = content["label_range"] if "label_range" in content else content["classes"]
    return Encoding.from_json(content["encoding"]), tuple(label)


def write_encoding(draft: Draft, content: Mapping[str, Any]) -> None:
    """Write an encoding beside "classes" or "label_range"."""
    (draft.folder("encoding") / ENCODING).write_bytes(stamped("encoding", content))


WEIGHT = "weight"
"""The column of scaled rows that holds their weights, where they have some."""


def read_scaled(store: Store, scaled: Manifest) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return scaled public rows, float32 [n, d], and labels [n], which are int64 classes or float64 numbers."""
    files = store.files(scaled)
    sizes = [pq.read_metadata(path) for path in files]
    n_encoded = sizes[0].num_columns - 1 - (WEIGHT in sizes[0].schema.names)
    X = np.empty((sum(metadata.num_rows for metadata in sizes), n_encoded), np.float32)
    y, start = [], 0
    for table in tables.batches(files):  # a row group at a time: never all rows twice
        rows = slice(start, start := start + table.num_rows)
        for i in range(X.shape[1]):
            X[rows, i] = table.column(i + 1).to_numpy()
        y.append(table.column("label").to_numpy())
    return X, np.concatenate(y)


def read_weights(store: Store, scaled: Manifest) -> NDArray[np.float64] | None:
    """Return the weights of scaled public rows, float64 [n]; None where they have none."""
    files = store.files(scaled)
    if WEIGHT not in pq.read_schema(files[0]).names:
        return None
    return np.concatenate([pq.read_table(path, columns=[WEIGHT]).column(WEIGHT).to_numpy() for path in files])


def write_scaled(
    draft: Draft,
    encoding: Encoding,
    raw: NDArray[np.float64],
    y: NDArray[Any],
    usable: NDArray[np.bool_],
    weights: NDArray[np.float64] | None = None,
) -> None:
    """Write the usable ones of raw public rows scaled, in the public zone; so many at a time that few are in memory twice."""
    more = {} if weights is None else {WEIGHT: weights}
    names = ["label", *map(str, range(encoding.n_encoded)), *more]
    types = [
        pa.from_numpy_dtype(y.dtype),
        *[pa.float32()] * encoding.n_encoded,
        *[pa.float64() for _ in more],
    ]
    place, path = np.flatnonzero(usable), draft.folder("scaled", "public") / "scaled.parquet"
    with tables.writer(path, pa.schema([*zip(names, types, strict=True)])) as sink:
        for start in range(0, len(place), tables.ROW_GROUP):
            rows = place[start : start + tables.ROW_GROUP]
            columns = [pa.array(y[rows]), *(pa.array(x) for x in encoding.encode(raw[rows]).T)]
            columns += [pa.array(values[rows]) for values in more.values()]
            sink.write_table(pa.table(columns, names=names), row_group_size=tables.ROW_GROUP)
    draft.count("scaled", "scaled.parquet", len(place))


# protocol, and what public rows say beside it


def read_protocol(store: Store, protocol: Manifest) -> Protocol:
    """The protocol in an artifact. Raises ProtocolMismatch."""
    return _parse_protocol(_read_document(store, protocol, PROTOCOL))


def _read_document(store: Store, manifest: Manifest, name: str) -> bytes:
    """Return the bytes of a question, which whoever owns the curator's zone may have changed. Raises ProtocolMismatch."""
    path = store.file(manifest, name)
    if path.exists() and (fault := read_fault(path, MOST_DOCUMENT)) is not None:
        raise ProtocolMismatch(
            f"{path}: {fault}. Nobody answered it. Find out who wrote to the curator's zone."
        )
    return path.read_bytes()


@lru_cache(maxsize=2)
def _parse_protocol(text: bytes) -> Protocol:
    # With a public model in it, a protocol takes a second to check, and every shard asks for it.
    return Protocol.from_json(text.decode(errors="replace"))


def write_protocol(draft: Draft, protocol: Protocol) -> None:
    """Write a protocol."""
    (draft.folder("question") / PROTOCOL).write_text(protocol.to_json())


def is_protocol(question: Manifest) -> bool:
    """Return whether a question is a protocol, which is about one tree."""
    return question.files[0].name == PROTOCOL


def read_evidence(store: Store, evidence: Manifest) -> dict[str, Any]:
    """Read what public rows say of a protocol, as the family that asked wrote it."""
    content: dict[str, Any] = json.loads(store.file(evidence, "evidence.json").read_bytes())
    return content


def read_public(store: Store, evidence: Manifest, protocol: Protocol) -> PublicSummary:
    """Read what public rows say of a corrected model's protocol."""
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
    """Read what everybody can see of the holders."""
    table = tables.read([store.file(shown, "shown.parquet")])
    aligned = json.loads(store.file(shown, "mask.json").read_bytes())["protects"]
    d = table.num_columns // (1 if aligned is not None else 2)
    values = np.stack([table.column(j).to_numpy() for j in range(d)], axis=1)
    if aligned is not None:
        return PublicView(values, np.tile(np.array(aligned, dtype=bool), (len(values), 1)))
    return PublicView(values, np.stack([table.column(d + j).to_numpy() for j in range(d)], axis=1))


def read_published(store: Store, question: Manifest) -> Protocol | Question:
    """The question in an artifact, whichever kind it is. Raises ProtocolMismatch."""
    return read_text(store, question).question


@dataclass(frozen=True, eq=False)
class QuestionText:
    """A question and what its text says, from bytes that were read once.

    digest      that an artifact of these bytes has.
    unmarked    that a release of the same question has: what the noise of a simulation is drawn from.
    simulation  whether it is marked as a simulation's.
    """

    question: Protocol | Question
    digest: str
    unmarked: str
    simulation: bool


def read_text(store: Store, question: Manifest) -> QuestionText:
    """The question in an artifact, whichever kind it is. Raises ProtocolMismatch."""
    name = question.files[0].name
    content = _read_document(store, question, name)
    digest = _digest_of(name, content)
    if is_protocol(question):
        protocol = _parse_protocol(content)
        return QuestionText(protocol, digest, protocol.digest_unmarked, protocol.simulation)
    asked, fields = question_from_json(content), json.loads(content)
    is_simulation = fields.pop("simulation", False)
    unmarked = _digest_of(name, json.dumps(fields, sort_keys=True).encode())
    return QuestionText(asked, digest, unmarked, is_simulation)


def _digest_of(name: str, content: bytes) -> str:
    """The digest of a question's artifact (`Draft.finish`)."""
    return Hasher().of_value([[name, Hasher().of_bytes(content)]])


def write_question(draft: Draft, question: Question | None, *, simulation: bool) -> bytes:
    """Write a question, or null, and return its text. `simulation` marks one whose holders draw coins from a seed."""
    mark = {"simulation": True} if simulation else {}
    text = json.dumps(None if question is None else question.to_json() | mark, sort_keys=True).encode()
    (draft.folder("question") / "question.json").write_bytes(text)
    return text


def table_of_reports(holders: NDArray[np.int64], reports: NDArray[Any]) -> pa.Table:
    """Return reports [m, ...] of holders [m] as rows of bytes, with their type and shape in the metadata."""
    width = int(np.prod(reports.shape[1:]))
    flat = np.ascontiguousarray(reports).reshape(holders.size, width)
    width = max(flat.dtype.itemsize * width, 1)
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
    """Read the publications so far, in the order of the rounds."""
    rounds = sorted((_read_transcript(store, manifest) for manifest in transcripts), key=lambda pair: pair[0])
    return [answers for _, answers in rounds]


def _read_transcript(store: Store, transcript: Manifest) -> tuple[int, AnsweredQuestion]:
    question = question_from_json(_read_document(store, transcript, "question.json"))
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
    """Read what a model says along its features."""
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
    """Read the scores; None of a run that measures nothing."""
    if scores is None:
        return None
    content: dict[str, Any] = json.loads(store.file(scores, "scores.json").read_bytes())
    return content


def write_scores(draft: Draft, content: Mapping[str, Any]) -> None:
    """Write what was measured."""
    (draft.folder("scores") / "scores.json").write_text(json.dumps(content, indent=1))
