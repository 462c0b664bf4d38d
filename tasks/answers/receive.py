"""Aggregate reports from anywhere, as the curator's half alone. Those that answer the protocol are added up, the others
are counted. Not a step of a run; `ldptree aggregate` calls it.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq

from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.published_base import DRAWN, PublishedBase
from ldptree.protocol.totals import RawSums, Totals
from schemas.named_files import MOST_DOCUMENT, folder_fault, folder_written_whole, read_fault, shown_path
from storage.reports.lines import ReportLines
from storage.reports.shards import LINES, Block, ReportSize, blocks_of, files_of
from tasks.answers.aggregate import write_totals

UNREADABLE = "not a report"
OTHER_PROTOCOL = "answers another protocol"
OTHER_ROUND = "of another round"
WRONG_LENGTH = "wrong length"
OTHER_OUTPUT = "about no output of the protocol"
IMPOSSIBLE = "impossible under the protocol"
SIMULATED = "of a simulation"
NOT_SIMULATED = "without the mark of the simulation"
NAMED = 3
"""So many of the files that were passed over are told by name."""
SEEN = "received before"
CONFLICTING = "another report under the same id"
ENVELOPE = 1_000
"""Bytes of a line beside the payload, at most."""
_JUDGED = """
    SELECT CASE
        WHEN NOT is_whole THEN $unreadable
        WHEN protocol <> $protocol THEN $other_protocol
        WHEN simulation <> $simulation THEN $other_coins
        WHEN round <> $round THEN $other_round
        WHEN octet_length(payload) <> $size THEN $wrong_length
        WHEN NOT (CASE WHEN $n_outputs = 1 THEN output IS NULL ELSE coalesce(stated BETWEEN 0 AND $n_outputs - 1, false) END)
            THEN $other_output
    END AS fault, id, CASE WHEN fault IS NULL THEN stated END AS output, CASE WHEN fault IS NULL THEN payload END AS payload
    FROM (SELECT *, TRY_CAST(output AS INTEGER) AS stated FROM reports)
"""


@dataclass
class Received:
    """Raw sums of accepted reports, how many of the others there were of each kind, files that were not looked into, and files
    of which nothing was taken, with the reason.
    """

    sums: RawSums
    rejected: Counter[str] = field(default_factory=Counter)
    passed_over: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    _sources: set[str] = field(default_factory=set)

    @classmethod
    def under(cls, protocol: Protocol) -> Received:
        """Nothing yet."""
        return cls(RawSums.none(protocol))

    @property
    def protocol(self) -> Protocol:
        """The protocol that was to be answered."""
        return self.sums.protocol

    @property
    def accepted(self) -> int:
        """Reports that were added up."""
        return self.sums.n_private

    @property
    def report_size(self) -> ReportSize:
        """Size of one report."""
        mechanism, n_outputs = self.protocol.mechanism, self.protocol.n_outputs
        return ReportSize(mechanism.report_bytes, mechanism.min_entropy + math.log2(n_outputs))

    def add_lines(self, paths: Sequence[Path], folder: Path) -> None:
        """Add what can be accepted of the lines in files below a folder, of each id the first, and nothing that is impossible."""
        with ReportLines.opened() as lines:
            read_valid(lines, paths, self.protocol)
            add_each_once(lines, self.sums)
            self.rejected.update(lines.count_faults())
            self.refused |= {str(path.relative_to(folder)): reason for path, reason in lines.refused.items()}

    def add_shard(self, blocks: Iterable[Block], name: str) -> None:
        """Add what can be accepted of the shard of this name, whose reports have no ids."""
        for block in blocks:
            if block.refused:
                self.refused[name] = block.refused
            self.rejected[UNREADABLE] += block.unreadable
            if not block.payloads:
                continue
            if block.protocol != self.protocol.digest:
                self.rejected[OTHER_PROTOCOL] += len(block.payloads)
            elif block.simulation != self.protocol.simulation:
                self.rejected[SIMULATED if block.simulation else NOT_SIMULATED] += len(block.payloads)
            elif block.round != self.protocol.round:
                self.rejected[OTHER_ROUND] += len(block.payloads)
            elif block.source in self._sources:
                self.rejected[SEEN] += len(block.payloads)
            else:
                self._judge(block)
                if block.source:
                    self._sources.add(block.source)

    def totals(self) -> tuple[Totals, ...]:
        """Unbiased totals, one an output that reports may be about. Raises DataError where no report was accepted."""
        if not self.accepted:
            counts = "; ".join(filter(None, [self.in_words(), self.refused_in_words()]))
            raise DataError(f"no report was accepted ({counts}).")
        return self.sums.totals(self.protocol.round)

    def in_words(self) -> str:
        """Say how many were rejected, and why."""
        reasons = [f"{count:,} {reason}" for reason, count in self.rejected.most_common() if count]
        return f"rejected: {', '.join(reasons)}" if reasons else "none rejected"

    def passed_over_in_words(self) -> str:
        """Say how many other files there are, and which; "" where there are none."""
        n = len(self.passed_over)
        if not n:
            return ""
        names = ", ".join(map(repr, self.passed_over[:NAMED])) + (", ..." if n > NAMED else "")
        return (
            f"{n:,} other {'file was' if n == 1 else 'files were'} passed over ({names}): only *.jsonl, one report a line, "
            "and *.parquet are read"
        )

    def refused_in_words(self) -> str:
        """Say how many files were refused as a whole, and why the first of them; "" where none was."""
        n = len(self.refused)
        if not n:
            return ""
        first, reason = next(iter(self.refused.items()))
        others = ", ".join(map(repr, list(self.refused)[1:NAMED])) + (", ..." if n > NAMED else "")
        how_many = f"{n:,} {'file was' if n == 1 else 'files were'} refused, and nothing in {'it' if n == 1 else 'them'} counts"
        return f"{how_many} ({first!r}: {reason}{'; also ' + others if others else ''})"

    def _judge(self, block: Block) -> None:
        mechanism = self.protocol.mechanism
        fitting = [i for i, payload in enumerate(block.payloads) if len(payload) == mechanism.report_bytes]
        self.rejected[WRONG_LENGTH] += len(block.payloads) - len(fitting)
        outputs = block.outputs or [None] * len(block.payloads)
        about = [i for i in fitting if self._is_about(outputs[i])]
        if len(about) < len(fitting):
            self.rejected[OTHER_OUTPUT] += len(fitting) - len(about)
        fitting = about
        if not fitting:
            return
        packed = np.frombuffer(b"".join(block.payloads[i] for i in fitting), np.uint8)
        reports = mechanism.unpack(packed.reshape(len(fitting), mechanism.report_bytes))
        is_taken = mechanism.is_valid(reports)
        self.rejected[IMPOSSIBLE] += int((~is_taken).sum())
        if is_taken.any():
            outputs = [outputs[i] for i in np.array(fitting)[is_taken].tolist()]
            self.sums.add(
                reports[is_taken], np.array(outputs, dtype=np.int64) if self.protocol.n_outputs > 1 else None
            )

    def _is_about(self, output: int | None) -> bool:
        """Return whether a report that says this is about something that the protocol asks."""
        if self.protocol.n_outputs == 1:
            return output is None
        return output is not None and 0 <= output < self.protocol.n_outputs


def read_valid(lines: ReportLines, paths: Sequence[Path], protocol: Protocol) -> None:
    """Add the lines of files, each that does not answer the protocol, or is impossible under it, with its fault."""
    mechanism = protocol.mechanism
    terms = {
        "unreadable": UNREADABLE,
        "protocol": f'"{protocol.digest}"',
        "other_protocol": OTHER_PROTOCOL,
        "simulation": protocol.simulation,
        "other_coins": NOT_SIMULATED if protocol.simulation else SIMULATED,
        "round": str(protocol.round),
        "other_round": OTHER_ROUND,
        "size": mechanism.report_bytes,
        "wrong_length": WRONG_LENGTH,
        "n_outputs": protocol.n_outputs,
        "other_output": OTHER_OUTPUT,
    }
    lines.read(paths, ENVELOPE + 2 * mechanism.report_bytes, _JUDGED, terms)
    for numbers, packed, _ in lines.payloads(mechanism.report_bytes):
        is_possible = mechanism.is_valid(mechanism.unpack(packed))
        if not is_possible.all():
            lines.drop(numbers[~is_possible], IMPOSSIBLE)


def add_each_once(lines: ReportLines, sums: RawSums) -> None:
    """Add the valid lines to sums, of each id the first; every other one gets a fault."""
    mechanism = sums.protocol.mechanism
    lines.drop_repeated(SEEN, CONFLICTING)
    for _, packed, outputs in lines.payloads(mechanism.report_bytes):
        sums.add(mechanism.unpack(packed), outputs if sums.protocol.n_outputs > 1 else None)


def read_protocol_at(path: Path, option: str) -> Protocol:
    """The protocol in a file, which an option names. Raises ConfigError where none is there, ProtocolMismatch."""
    if (fault := read_fault(path, MOST_DOCUMENT)) is not None:
        raise ConfigError(f"{option} {shown_path(path)}: {fault}. Name the protocol.json.")
    try:
        return Protocol.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ProtocolMismatch(f"{path}: not a protocol (it is no text in UTF-8).") from None
    except ProtocolMismatch as refusal:
        raise ProtocolMismatch(f"{path}: {refusal}") from None


def receive_folder(protocol: Path, reports: Path) -> Received:
    """Everything below a folder, under the protocol in a file.

    Raises:
        ConfigError: the file or the folder is not there, or there is no file of reports in it.
        ProtocolMismatch: the file holds no whole protocol.
    """
    received = Received.under(read_protocol_at(protocol, "--protocol"))
    if (fault := folder_fault(reports)) is not None:
        raise ConfigError(f"--reports {shown_path(reports)}: {fault}.")
    try:
        files, others = files_of(reports)
    except OSError as error:
        raise ConfigError(
            f"--reports {error.filename}: cannot be read ({os.strerror(error.errno or 0)})."
        ) from None
    received.passed_over = [str(path.relative_to(reports)) for path in others]
    if not files:
        aside = f"; {passed_over}" if (passed_over := received.passed_over_in_words()) else ""
        raise ConfigError(f"--reports {reports}: holds no file of reports (*.jsonl, *.parquet){aside}.")
    received.add_lines([path for path in files if path.suffix == LINES], reports)
    for path in files:
        if path.suffix != LINES:
            received.add_shard(blocks_of(path, received.report_size), str(path.relative_to(reports)))
    return received


def described(received: Received) -> dict[str, Any]:
    """Return the JSON that the command prints, with counts, and each cell's totals with standard deviations.

    Totals are of classes, of levels of a number, or of levels of a public model's error, which is then named ("residual"); where
    each report is about one of several labels, or along one of several columns, of each of these ("labels", "contrasts").
    """
    totals, protocol = received.totals(), received.protocol
    residual = {} if protocol.base is None else {"residual": _residual_of(protocol, protocol.base)}
    contents = [_totals_of(counted, protocol) for counted in totals]
    if protocol.n_outputs > 1:
        assert protocol.base is not None
        of_outputs = [
            {"accepted": counted.n_private} | each for counted, each in zip(totals, contents, strict=True)
        ]
        of_all = _named(of_outputs, protocol, protocol.base)
    return (
        residual
        | {
            "protocol": protocol.digest,
            "round": protocol.round,
            "mechanism": protocol.mechanism.full_name,
            "epsilon": protocol.epsilon,
            **({"simulation": True} if protocol.simulation else {}),
            "accepted": received.accepted,
            "rejected": {reason: count for reason, count in sorted(received.rejected.items()) if count},
        }
        | ({"passed_over": received.passed_over} if received.passed_over else {})
        | ({"refused": received.refused} if received.refused else {})
        | (of_all if protocol.n_outputs > 1 else contents[0])
    )


def _named(of_outputs: list[dict[str, Any]], protocol: Protocol, base: PublishedBase) -> dict[str, Any]:
    """Return what reports say of each output, with the label or the contrast that it is."""
    if base.contrasts:
        names = [
            [{"column": protocol.encoding.names[cut.feature], "above": cut.threshold} for cut in along.cuts]
            for along in base.contrasts
        ]
        return {"contrasts": [{"along": cuts} | of for cuts, of in zip(names, of_outputs, strict=True)]}
    return {"labels": [{"label": label} | of for label, of in zip(base.labels, of_outputs, strict=True)]}


def _totals_of(totals: Totals, protocol: Protocol) -> dict[str, Any]:
    """Every cell of the totals of one output."""
    spread = np.sqrt([totals.cell_variance(w) for w in np.eye(totals.n_classes)]).T
    cells = [
        {
            "cell": cell,
            "where": protocol.raw_tree.where(int(node)),
            "totals": {
                str(c): round(float(n), 3) + 0.0
                for c, n in zip(protocol.classes, totals.counts[cell], strict=True)
            },
            "sd": {str(c): round(float(s), 3) for c, s in zip(protocol.classes, spread[cell], strict=True)},
        }
        for cell, node in enumerate(protocol.partition.leaves)
    ]
    return {"outside": round(totals.outside, 3), "cells": cells}


def _residual_of(protocol: Protocol, base: PublishedBase) -> dict[str, Any]:
    """Describe the residual's label, the positive one of two, the one in question of more, or none."""
    label = None
    if len(base.labels) == 2:
        label = base.labels[1]
    elif base.labels and base.output != DRAWN:
        label = base.labels[base.output]
    return {"of": protocol.target, "label": label, "range": list(protocol.label_range)}


def write(received: Received, folder: Path) -> None:
    """The files that the pipeline's aggregate step writes. Raises DataError, ConfigError where the folder holds something."""
    received.totals()
    with folder_written_whole(folder, "--out") as aside, duckdb.connect() as connection:
        write_totals(connection, aside, received.sums, received.protocol.round)
        raw = pq.read_table(aside / "raw.parquet")
        stated = (raw.schema.metadata or {}) | {b"protocol": received.protocol.digest.encode()}
        pq.write_table(raw.replace_schema_metadata(stated), aside / "raw.parquet")
