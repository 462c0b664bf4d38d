"""What the curator publishes and a holder needs, nothing more: the tree, how to read a row, the coins.

A protocol is a frozen value with one canonical JSON text and a digest. Files, campaigns and budgets are kept elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.encoding import Encoding, Level, NumericFeature
from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.mechanisms import MECHANISMS, Joint, Mechanism, named, report_values
from ldptree.mechanisms.number_label import NumberLabel
from ldptree.number_range import levels, rounded
from ldptree.oracles import Words
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition

VERSION = 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Protocol:
    """One question to every holder, and how to answer it without giving oneself away.

    Attributes:
        encoding: how a raw row is read (public ranges, levels, missing values).
        partition: the tree on encoded rows.
        target: the label's column.
        classes: the declared labels, at least 2.
        positive: the positive class, None where there is none.
        mechanism: what a holder sends about cell and label, its coins as integers.
        epsilon: the epsilon claimed for a whole answer (all rounds).
        outside: a numeric value outside the public range is moved to the border ("clip"), or its holder
            reports the value "outside" ("drop").
        holder: the unit of privacy: "row" (each row is a person's only one), or the column that names the person.
        rounds: numbers of the rounds a holder answers in.
        campaign: the campaign this protocol was published for, None where there is none.
        simulation: holders are only simulated; a mechanism that leaks may then stand in for theirs, and no client answers.
        numeric: the label is a number; the classes are equally spaced levels of its range, or only the range's two ends
            where the mechanism has levels of its own (`mechanisms.number_label`).
        version: of this format.

    Raises:
        ConfigError: the parts do not fit each other, or the coins spend more than the epsilon claimed.
    """

    encoding: Encoding
    partition: Partition
    target: str
    classes: tuple[Level, ...]
    positive: Level | None
    mechanism: Mechanism
    epsilon: float
    outside: str = "clip"
    holder: str = "row"
    rounds: tuple[int, ...] = (1,)
    campaign: str | None = None
    simulation: bool = False
    numeric: bool = False
    version: int = VERSION

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise ConfigError("protocol: " + "; ".join(faults))

    def _faults(self) -> list[str]:
        faults = []
        if self.version != VERSION:
            faults.append(
                f"version {self.version} is not known here (only {VERSION}); use a matching ldptree"
            )
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            faults.append(f"{len(self.classes)} classes; at least 2 are needed, each once")
        elif self.positive is not None and self.positive not in self.classes:
            faults.append("the positive class is not among the classes")
        if self.numeric:
            faults += self._label_faults()
        elif isinstance(self.mechanism, NumberLabel):
            faults.append(f"{self.mechanism.name} is for a label that is a number")
        if self.partition.feature.max() >= self.encoding.n_encoded:
            faults.append(
                f"the partition tests column {self.partition.feature.max()} of {self.encoding.n_encoded}"
            )
        sizes = (self.mechanism.n_cells, self.mechanism.n_classes)
        if sizes != (self.n_cells, self.n_classes):
            faults.append(
                f"the mechanism is on {sizes[0]} cells x {sizes[1]} classes, "
                f"the tree and the classes are {self.n_cells} x {self.n_classes}"
            )
        if self.mechanism.is_simulation_device and not self.simulation:
            faults.append(
                f"{self.mechanism.name} is a simulation device: its floating-point noise gives holders away. "
                "Real clients use discrete_laplace"
            )
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            faults.append(f"epsilon = {self.epsilon}: must be positive and finite")
        elif self.epsilon_exact > self.epsilon:
            faults.append(
                f"its coins spend epsilon {self.epsilon_exact!r}, more than the {self.epsilon!r} claimed"
            )
        if self.campaign == "":
            faults.append("the campaign has no name; leave it out (null) where there is none")
        if self.outside not in ("clip", "drop"):
            faults.append(f'outside = "{self.outside}": must be clip or drop')
        if len(self.rounds) != 1 or type(self.rounds[0]) is not int or self.rounds[0] not in (1, 2):
            faults.append(f"rounds {self.rounds}: a protocol asks in one round, 1 or 2")
        if self.target in self.encoding.columns:
            faults.append(f'the target "{self.target}" is among the features')
        return faults

    def _label_faults(self) -> list[str]:
        if any(type(level) is not float for level in self.classes) or self.positive is not None:
            return ["the levels of a number must be numbers, none of them positive as a class is"]
        try:
            expected = levels(*self.label_range, len(self.classes))
        except ConfigError as error:
            return [str(error)]
        is_even = np.allclose(self.classes, expected, rtol=0, atol=1e-9 * (expected[-1] - expected[0]))
        return [] if is_even else ["the levels of a number must be equally spaced, the lowest first"]

    @property
    def label_range(self) -> tuple[float, float]:
        """Ends of the range of a label that is a number."""
        return float(self.classes[0]), float(self.classes[-1])

    @property
    def n_cells(self) -> int:
        """L."""
        return self.partition.n_leaves

    @property
    def n_classes(self) -> int:
        """C."""
        return len(self.classes)

    @property
    def k(self) -> int:
        """Size of the alphabet, L C + 1; the last value is "outside"."""
        return self.mechanism.k

    @property
    def epsilon_exact(self) -> float:
        """The epsilon that the integer coins spend, rounded up; never above `epsilon`."""
        return self.mechanism.epsilon

    @cached_property
    def raw_tree(self) -> RawTree:
        """The partition in raw units."""
        return RawTree.of(self.partition, self.encoding)

    @cached_property
    def columns_needed(self) -> tuple[str, ...]:
        """The raw columns a holder's row must have for `values`, in the encoding's order.

        Those the tree tests; those where a missing value has no rule, since it makes the row "outside"; and
        with outside = "drop" every numeric one.
        """
        used = set(self.raw_tree.columns_used) | set(self.encoding.columns_without_rule)
        if self.outside == "drop":
            used |= {f.column for f in self.encoding.features if isinstance(f, NumericFeature)}
        return tuple(column for column in self.encoding.columns if column in used)

    def values(
        self,
        raw: NDArray[np.float64],
        labels: ArrayLike,
        columns: Sequence[str] | None = None,
        *,
        words: Words | None = None,
    ) -> NDArray[np.int64]:
        """The value each holder must randomise, int64 [n] in 0 .. n_values - 1 of the mechanism; still private.

        Args:
            raw: raw matrix, float64 [n, columns] (see `ldptree.encoding`).
            labels: int [n], index into `classes`; -1 for a label that is not declared. Where the label is a number, float
                [n], rounded here at random to one of the mechanism's levels; NaN for a missing one.
            columns: names of raw's columns, where they are not all of the encoding's; `columns_needed` suffice.
            words: coins for rounding, needed where the label is a number.

        Raises:
            DataError: a column is absent, or lengths differ.
        """
        names = self.encoding.columns if columns is None else tuple(columns)
        absent = [column for column in self.columns_needed if column not in names]
        if absent:
            raise DataError(f"raw rows lack the columns {', '.join(absent)}")
        cells = self.raw_tree.apply(raw, names)
        is_outside = ~self.encoding.encodable(raw, names)
        if self.outside == "drop":
            is_outside |= self.encoding.is_outside(raw, names)
        cells[is_outside] = -1
        if self.numeric:
            labels = rounded(labels, *self.label_range, self.mechanism.n_levels, words or Words.system())
        return report_values(cells, labels, n_cells=self.n_cells, n_classes=self.mechanism.n_levels)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON without the digest itself."""
        return hashlib.sha256(_canonical(self._fields()).encode()).hexdigest()

    def to_json(self) -> str:
        """The canonical text: sorted keys, no spaces, the digest in it; thresholds are decimal strings."""
        return _canonical(self._fields() | {"digest": self.digest})

    def _fields(self) -> dict[str, Any]:
        oracle = self.mechanism.oracle.name if isinstance(self.mechanism, Joint) else None
        only_if = {"simulation": self.simulation, "numeric": self.numeric}
        return {name: True for name, holds in only_if.items() if holds} | {
            "version": self.version,
            "rounds": list(self.rounds),
            "encoding": self.encoding.to_json(),
            "partition": self.partition.to_json(),
            "target": self.target,
            "classes": list(self.classes),
            "positive": self.positive,
            "mechanism": self.mechanism.name,
            "oracle": oracle,
            "k": self.k,
            "thresholds": {name: str(value) for name, value in self.mechanism.thresholds.items()},
            "epsilon": float(self.epsilon),
            "epsilon_exact": self.epsilon_exact,
            "outside": self.outside,
            "holder": self.holder,
            "campaign": self.campaign,
        }

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The protocol that `to_json` wrote, every part checked anew.

        Raises:
            ProtocolMismatch: not JSON, a field absent, unknown or of a wrong type, an unknown version,
                mechanism or oracle, an alphabet that does not fit the tree, coins that spend more than is
                claimed, or a digest that is not that of the content.
        """
        try:
            data = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise ProtocolMismatch("protocol: not JSON; fetch it again from its publisher") from None
        if not isinstance(data, dict):
            raise ProtocolMismatch("protocol: not a JSON object")
        if data.get("version") != VERSION:
            raise ProtocolMismatch(
                f"protocol: version {data.get('version')!r} is not known here (only {VERSION})"
            )
        data.setdefault("simulation", False)
        data.setdefault("numeric", False)
        for name in sorted(set(_TYPES) ^ set(data)):
            raise ProtocolMismatch(f'protocol: field "{name}" is {"absent" if name in _TYPES else "unknown"}')
        for name, kinds in _TYPES.items():
            if type(data[name]) not in kinds:
                raise ProtocolMismatch(
                    f'protocol: field "{name}" has the wrong type ({type(data[name]).__name__})'
                )
        if any(type(v) not in (str, int, float, bool) for v in data["classes"]):
            raise ProtocolMismatch("protocol: classes must be texts, numbers or booleans")
        try:
            partition = Partition.from_json(data["partition"])
            protocol = cls(
                version=data["version"],
                rounds=tuple(data["rounds"]),
                encoding=Encoding.from_json(data["encoding"]),
                partition=partition,
                target=data["target"],
                classes=tuple(data["classes"]),
                positive=data["positive"],
                mechanism=_mechanism(data, partition.n_leaves),
                epsilon=float(data["epsilon"]),
                outside=data["outside"],
                holder=data["holder"],
                campaign=data["campaign"],
                simulation=data["simulation"],
                numeric=data["numeric"],
            )
        except (ConfigError, DataError) as error:
            raise ProtocolMismatch(f"protocol refused: {error}") from None
        except (OverflowError, RecursionError):
            raise ProtocolMismatch(
                "protocol refused: a number in it is too large, or it is nested too deep"
            ) from None
        if data["epsilon_exact"] != protocol.epsilon_exact:
            raise ProtocolMismatch(
                f"protocol: it states epsilon_exact {data['epsilon_exact']!r}, "
                f"its coins give {protocol.epsilon_exact!r}"
            )
        if data["digest"] != protocol.digest:
            raise ProtocolMismatch(
                "protocol: its digest is not that of its content; fetch it again from its publisher"
            )
        return protocol


_TYPES: dict[str, tuple[type, ...]] = {
    "version": (int,),
    "rounds": (list,),
    "encoding": (dict,),
    "partition": (dict,),
    "target": (str,),
    "classes": (list,),
    "positive": (str, int, float, bool, type(None)),
    "mechanism": (str,),
    "oracle": (str, type(None)),
    "k": (int,),
    "thresholds": (dict,),
    "epsilon": (int, float),
    "epsilon_exact": (int, float),
    "outside": (str,),
    "holder": (str,),
    "campaign": (str, type(None)),
    "simulation": (bool,),
    "numeric": (bool,),
    "digest": (str,),
}


def _canonical(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _mechanism(data: Mapping[str, Any], n_cells: int) -> Mechanism:
    name, oracle, n_classes = data["mechanism"], data["oracle"], len(data["classes"])
    kind = named(name)
    if kind is None:
        raise ConfigError(f'mechanism "{name}" is not known; known are {", ".join(MECHANISMS)}')
    if any(
        not isinstance(v, str) or not v.isascii() or not v.isdigit() or len(v) > 20
        for v in data["thresholds"].values()
    ):
        raise ConfigError("thresholds must be whole numbers below 2^64, written as text")
    thresholds = {key: int(value) for key, value in data["thresholds"].items()}
    if data["k"] != n_cells * n_classes + 1:
        raise ConfigError(
            f"the alphabet has {data['k']} values, {n_cells} cells x {n_classes} classes need {n_cells * n_classes + 1}"
        )
    if name == Joint.name:
        return Joint.from_thresholds(n_cells, n_classes, thresholds, oracle)
    if oracle is not None:
        raise ConfigError(f'mechanism "{name}" has no oracle, found "{oracle}"')
    return kind.from_thresholds(n_cells, n_classes, thresholds)
