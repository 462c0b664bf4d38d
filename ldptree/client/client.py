"""The holder's side on its own. Reads a protocol, randomises one row, and sends the same report ever after.

Needs Python and numpy, nothing else. What the curator does with reports is elsewhere; how they travel is up to you.

    client = Client(Path("protocol.json").read_text(), max_epsilon=2.0, memory=FileMemory("answered.json"))
    send(client.report({"trip_miles": 3.2, "company": "Flash Cab"}, "Cash").to_json())

Coins come from the operating system. A report is made once for each holder, campaign and round, and kept with its cost before
it is given out. Later calls return the same report: a second draw would be a second release. What a holder spends in a lifetime,
over all protocols, campaigns and rounds, stays within `lifetime_epsilon`.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldptree import serialize
from ldptree.client.budget import ANSWERING, KeptAnswers, Memory, QuestionKey
from ldptree.client.memory import FileMemory
from ldptree.coins import Words
from ldptree.encoding import CategoricalFeature, Feature
from ldptree.errors import BudgetError, ConfigError, DataError, ProtocolMismatch
from ldptree.limits import MAX_LIFETIME, MAX_PROTOCOL_BYTES
from ldptree.protocol.protocol import Protocol

__all__ = ["Client", "FileMemory", "Report"]

_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class Report:
    """The report of one holder in one round.

    Attributes:
        protocol: digest of the protocol it answers.
        round: number of the round.
        id: 32 random hexadecimal digits, drawn with the report: one that arrives twice counts once.
        payload: the bytes of the report, as the protocol's mechanism packs them.
        output: which output of the protocol's base it is about, where holders draw one; else None.
        simulation: whether its coins came from a seed; such a report is never counted beside real ones.
    """

    protocol: str
    round: int
    id: str
    payload: bytes
    output: int | None = None
    simulation: bool = False

    def to_json(self) -> str:
        """One line of text; the payload in base64."""
        payload = base64.b64encode(self.payload).decode()
        content = {"protocol": self.protocol, "round": self.round, "id": self.id, "report": payload}
        output = {} if self.output is None else {"output": self.output}
        fields = content | output | ({"simulation": True} if self.simulation else {})
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The report that `to_json` wrote. Whether it is a valid answer is for the mechanism to say.

        Raises:
            DataError: not a report, or a field is absent, unknown or of a wrong type.
        """
        data = serialize.read(text, of="report")
        if not isinstance(data, dict) or set(data) - {"output", "simulation"} != {
            "protocol",
            "round",
            "id",
            "report",
        }:
            raise DataError(
                "report: it has exactly the fields protocol, round, id and report, and where holders draw one, output, and in a "
                "simulation, simulation"
            )
        if data.get("simulation", True) is not True:
            raise DataError("report: simulation is there and true, or not there")
        if any(type(data[k]) is not int for k in ("round", "output") if k in data) or any(
            type(data[k]) is not str for k in ("protocol", "id", "report")
        ):
            raise DataError("report: round and output are whole numbers, the other fields are texts")
        if not _ID.fullmatch(data["id"]):
            raise DataError("report: id is 32 hexadecimal digits")
        try:
            payload = base64.b64decode(data["report"], validate=True)
        except (binascii.Error, ValueError):
            raise DataError("report: its bytes are not base64") from None
        return cls(
            protocol=data["protocol"],
            round=data["round"],
            id=data["id"],
            payload=payload,
            output=data.get("output"),
            simulation="simulation" in data,
        )


class Client:
    """Answers a protocol for the holders on this device. Threads may share one.

    Args:
        protocol: a Protocol, or its JSON.
        max_epsilon: the most a report may cost; compared with what the protocol's integers really spend.
        memory: where reports and their costs are kept: a `FileMemory`, or another mapping of texts to texts. One that is lost
            with the process, such as {}, is for simulations only.
        lifetime_epsilon: the most that a holder may spend on all protocols together. The memory keeps it: the smallest that
            was ever stated holds. None: the one it keeps or, while it keeps none, `max_epsilon`.
        words: coins for a simulation, `Words` or a numpy Generator, which is drawn from once, for their seed; None: the
            operating system's.
        max_protocol_bytes: the longest protocol that is read, in bytes; one with a public model is long.

    Raises:
        BudgetError: the protocol spends more than `max_epsilon`.
        ConfigError: the protocol is of a simulation, whose mechanism leaks; max_epsilon, lifetime_epsilon or
            max_protocol_bytes is no positive number; or memory or words is of another kind.
        DataError: the memory cannot be read or written, or holds something else.
        ProtocolMismatch: the text is not a protocol, not a whole one, or too long.
    """

    def __init__(
        self,
        protocol: Protocol | str | bytes,
        *,
        max_epsilon: float,
        memory: Memory,
        lifetime_epsilon: float | None = None,
        words: Words | np.random.Generator | None = None,
        max_protocol_bytes: int = MAX_PROTOCOL_BYTES,
    ) -> None:
        if not _is_positive(max_protocol_bytes):
            raise ConfigError(f"max_protocol_bytes = {_shown(max_protocol_bytes)}: must be a positive number")
        if isinstance(protocol, str | bytes) and len(protocol) > max_protocol_bytes:
            raise ProtocolMismatch(
                f"the protocol has {len(protocol):,} bytes, at most {max_protocol_bytes:,} are read here; raise "
                "max_protocol_bytes if its publisher is right"
            )
        if isinstance(protocol, bytes):
            protocol = protocol.decode(errors="replace")
        if isinstance(protocol, str):
            protocol = Protocol.from_json(protocol)
        if not isinstance(protocol, Protocol):
            raise ConfigError(
                f"protocol: a {type(protocol).__name__}; give a Protocol or its JSON, as Path(...).read_text()"
            )
        if protocol.mechanism.is_simulation_device:
            raise ConfigError(
                f"this protocol is of a simulation, with {protocol.mechanism.name} noise that gives holders away: no client "
                "answers it. Ask for one with discrete_laplace"
            )
        if protocol.simulation and (words is None or not _is_seeded(words)):
            raise ConfigError(
                "this protocol is of a seeded simulation: no real holder answers it. Ask its publisher for the protocol of a "
                "release (no simulation.noise_seed), or give words for a simulation of your own"
            )
        if not _is_positive(max_epsilon):
            raise ConfigError(f"max_epsilon = {_shown(max_epsilon)}: must be a positive number")
        if lifetime_epsilon is not None and not (
            _is_positive(lifetime_epsilon) and lifetime_epsilon <= MAX_LIFETIME
        ):
            raise ConfigError(
                f"lifetime_epsilon = {_shown(lifetime_epsilon)}: must be a number above 0 and at most {MAX_LIFETIME:g}"
            )
        if protocol.epsilon_exact > max_epsilon:
            raise BudgetError(
                f"a report costs epsilon {protocol.epsilon_exact:g}, recomputed from the protocol's integers; "
                f"at most {max_epsilon:g} is allowed here. Nothing was sent."
            )
        self.protocol = protocol
        self._words = _words(words)
        self._answers = KeptAnswers(_memory(memory), lifetime=lifetime_epsilon, unstated=max_epsilon)

    def report(self, x: Mapping[str, Any] | Sequence[Any], y: Any, *, holder: str = "") -> Report:
        """The one report of a holder; asked again it is the same, whatever x and y are by then.

        Args:
            x: raw values by column, or in the order of the protocol's columns. None or NaN is missing.
            y: the label itself, also where the report is about a public model's error on it. One that is not declared, or a
                missing number, is answered with "outside"; a number out of range counts as the end of the range.
            holder: who it is about, where several use this client; spaces around the name do not count. Stays here.

        Raises:
            BudgetError: the holder would spend more in their lifetime than they may. Nothing is kept or given out.
            DataError: a column is absent or unknown, or a value is of another type than the protocol says.
            ProtocolMismatch: the holder has answered another protocol of this campaign and round.
        """
        if not isinstance(holder, str):
            raise DataError(f"holder: a {type(holder).__name__} where a text is needed")
        campaign, round_number = self.protocol.campaign, self.protocol.round
        question = QuestionKey(self.protocol.digest if campaign is None else campaign, round_number)
        epsilon = self.protocol.epsilon_exact
        with ANSWERING:
            if (kept := self._answers.given(holder, question)) is None:
                kept = self._answers.keep(holder, question, epsilon, self._draw_report(x, y).to_json())
            report = Report.from_json(kept)
            if report.simulation != (self._words is not None and self._words.is_seeded):
                raise ConfigError(
                    f"memory: it keeps a {'simulated' if report.simulation else 'real'} report of this holder, and this client "
                    f"is {'not ' if report.simulation else ''}of a simulation. Keep simulated reports in a memory of their own"
                )
        if report.protocol != self.protocol.digest:
            raise ProtocolMismatch(
                f"campaign {self.protocol.campaign!r}, round {round_number}: already answered, under another protocol. "
                "A second report would spend epsilon twice."
            )
        return report

    def draw(
        self, x: Mapping[str, Any] | Sequence[Any], y: Any, n: int, words: Words
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
        """Draw answers of n people with the same made-up row: the values that they hide, int64 [n], payloads, uint8 [n, bytes],
        and the outputs that they are about, int64 [n].

        Raises DataError. Nothing is kept or charged: to send two of them about somebody real would spend epsilon twice.
        """
        label = self._label(y) if self.protocol.label_classes else _number(y)
        rows, outputs = np.repeat(self._row(x), n, axis=0), self.protocol.draw_outputs(n, words)
        values = self.protocol.values(rows, [label] * n, words=words, outputs=outputs)
        mechanism = self.protocol.mechanism
        payloads = mechanism.pack(mechanism.randomize(values, words))
        return values, payloads, np.zeros(n, dtype=np.int64) if outputs is None else outputs

    def _draw_report(self, x: Mapping[str, Any] | Sequence[Any], y: Any) -> Report:
        """Draw a report from fresh coins."""
        words = Words.system() if self._words is None else self._words
        _, payloads, outputs = self.draw(x, y, 1, words)
        return Report(
            protocol=self.protocol.digest,
            round=self.protocol.round,
            id=words.block(2).tobytes().hex(),
            payload=payloads.tobytes(),
            output=int(outputs[0]) if self.protocol.n_outputs > 1 else None,
            simulation=words.is_seeded,
        )

    def _row(self, x: Mapping[str, Any] | Sequence[Any]) -> Any:
        features = self.protocol.encoding.features
        names = self.protocol.encoding.columns
        if isinstance(x, Mapping):
            if unknown := sorted(set(x) - set(names), key=str):
                raise DataError(
                    f"column {unknown[0]!r} is not in the protocol; its columns are {', '.join(names)}"
                )
            if absent := [name for name in names if name not in x]:
                raise DataError(f"column {absent[0]!r} is absent; give None where its value is missing")
            values = [x[name] for name in names]
        elif not _is_row(x, len(names)):
            raise DataError(
                f"a row is a mapping by column, or the {len(names)} values of {', '.join(names)}, in this order"
            )
        else:
            values = list(x)
        return np.array([[_raw(feature, value) for feature, value in zip(features, values, strict=True)]])

    def _label(self, y: Any) -> int:
        value = y.item() if isinstance(y, np.generic) else y
        classes = self.protocol.label_classes
        return next((i for i, c in enumerate(classes) if _kind(c) is _kind(value) and c == value), -1)


def _memory(memory: Any) -> Memory:
    """The mapping. Raises ConfigError."""
    needed = ("get", "setdefault", "__getitem__", "__setitem__", "__iter__")
    if not all(callable(getattr(memory, name, None)) for name in needed):
        given = repr(os.fspath(memory)) if isinstance(memory, str | os.PathLike) else "PATH"
        raise ConfigError(
            f"memory: a {type(memory).__name__}; give FileMemory({given}), or another mapping of texts to texts. In a simulation "
            "{} will do: it forgets with the process, and who forgets is asked again"
        )
    kept: Memory = memory
    return kept


def _words(words: Any) -> Words | None:
    """The coins of a simulation, None for the operating system's. Raises ConfigError."""
    if isinstance(words, np.random.Generator):
        return Words.seeded(np.random.SeedSequence(words.integers(2**32, size=8).tolist()))
    if words is not None and not isinstance(words, Words):
        raise ConfigError(
            f"words: a {type(words).__name__}; a simulation gives a numpy Generator, as np.random.default_rng(1), or "
            "Words.seeded(...). Leave it out for the operating system's coins, the only ones that protect anybody"
        )
    return words


def _is_seeded(words: Any) -> bool:
    """Return whether coins come from a seed, as those of a numpy Generator do."""
    return not isinstance(words, Words) or words.is_seeded


def _is_row(x: Any, n: int) -> bool:
    """Return whether it is a sequence of n values, of which none need be of the right type."""
    try:
        has_length = not isinstance(x, str | bytes | bytearray | memoryview) and len(x) == n
    except TypeError:
        return False
    return has_length and np.ndim(np.asarray(x, dtype=object)) == 1


def _raw(feature: Feature, value: Any) -> float:
    """Return the value as the encoding reads it, a number or a level's index (-1 for unlisted). NaN is missing."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return math.nan
    if isinstance(feature, CategoricalFeature):
        if _kind(value) not in {_kind(level) for level in feature.levels}:
            kind = type(feature.levels[0]).__name__
            raise DataError(f"column {feature.column!r}: a {type(value).__name__} where a level is a {kind}")
        return float(feature.levels.index(value)) if value in feature.levels else -1.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"column {feature.column!r}: a {type(value).__name__} where a number is needed")
    return _float(value)


def _number(y: Any) -> float:
    """A label that is a number, NaN where it is missing. Raises DataError."""
    value = y.item() if isinstance(y, np.generic) else y
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"label: a {type(value).__name__} where a number is needed")
    return _float(value)


def _float(value: float) -> float:
    """The number as a double; one too large for it is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _shown(value: object) -> str:
    """A value as messages quote it, however long it is."""
    try:
        return f"{value!r:.40}"
    except ValueError:  # a whole number of more digits than Python writes
        return f"a {type(value).__name__} of too many digits"


def _is_positive(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= sys.float_info.max


def _kind(value: Any) -> type:
    """Its type; whole and broken numbers are one."""
    return float if type(value) is int else type(value)
