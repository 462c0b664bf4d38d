"""The protocol that the curator publishes, with what a holder needs, which is tree, reading of a row, and coins.

A protocol is a frozen value with one canonical JSON text and a digest. Files, campaigns and budgets are kept elsewhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree import serialize
from ldptree.coins import Words
from ldptree.encoding import Encoding, Level
from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.limits import check_memory
from ldptree.mechanisms import JOINT, Mechanism, NumberReport, find_mechanism, report_values
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition
from ldptree.protocol.published_base import DRAWN, PublishedBase
from ldptree.protocol.question import About, QuestionDescription
from ldptree.protocol.stochastic_rounding import label_levels, round_at_random

VERSION = 1

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
    "asked": (list,),
    "base": (dict, type(None)),
    "digest": (str,),
}
_AS_THEY_ARE = ("version", "target", "positive", "outside", "holder", "campaign", "simulation", "numeric")

PARTS = 1000
"""Of all holders, of which a question asks some or all."""
EVERYBODY = (0, PARTS)
PUBLIC_COINS = 20251123
"""The seed of the public coins that sort holders into parts, with the number of parts."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Protocol:
    """A question about one tree, to all holders or to a part of them, and how to answer it without giving oneself away.

    Attributes:
        encoding: how a raw row is read (public ranges, levels, missing values).
        partition: the tree on encoded rows.
        target: the label's column.
        classes: the declared labels, at least 2.
        positive: the positive class, None where there is none.
        mechanism: what a holder sends about cell and label, its coins as integers.
        epsilon: the epsilon claimed for an answer.
        outside: a numeric value outside the public range is moved to the border ("clip"), or its holder
            reports the value "outside" ("drop").
        holder: the unit of privacy: "row" (each row is a person's only one), or the column that names the person.
        round: number of the round that it is asked in, 1 or 2.
        campaign: the campaign this protocol was published for, None where there is none.
        simulation: holders are only simulated: a mechanism that leaks may then stand in for theirs, and a client answers only
            with coins of a simulation.
        numeric: what is reported is a number; the classes are equally spaced levels of its range, or only the range's two
            ends where the mechanism has levels of its own (`mechanisms.NumberReport`).
        asked: of every 1,000 holders those from the first of these numbers to before the second (`respondents`): (0, 1000) is
            everybody. A question to some and one to the others cost each of them one epsilon.
        base: a public model; the number reported is then not the label but the model's error on it, its residual. None
            where the label itself is asked for.
        version: of this format.

    Raises:
        ConfigError: the parts do not fit each other, the coins spend more than the epsilon claimed, or the totals would not
            fit into memory.
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
    round: int = 1
    campaign: str | None = None
    simulation: bool = False
    numeric: bool = False
    asked: tuple[int, int] = EVERYBODY
    base: PublishedBase | None = None
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
        elif isinstance(self.mechanism, NumberReport):
            faults.append(f"{self.mechanism.name} is for a label that is a number")
        if self.base is not None:
            faults += self._base_faults(self.base)
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
        if type(self.round) is not int or self.round not in (1, 2):
            faults.append(f"round {self.round}: must be 1 or 2")
        if [type(end) for end in self.asked] != [int, int] or not 0 <= self.asked[0] < self.asked[1] <= PARTS:
            faults.append(
                f"asked {list(self.asked)}: must be two whole numbers from 0 to 1000, the smaller first"
            )
        if self.target in self.encoding.columns:
            faults.append(f'the target "{self.target}" is among the features')
        try:
            check_memory(self.n_cells, self.n_classes)
        except ConfigError as error:
            faults.append(str(error))
        return faults

    def _base_faults(self, base: PublishedBase) -> list[str]:
        faults = []
        if not self.numeric:
            faults.append("a residual is a number; the protocol does not say so (numeric)")
        if not self.mechanism.carries_residuals:
            faults.append(
                f"{self.mechanism.name} is not for residuals, which are reported jointly with the cell"
            )
        if base.ensemble.feature.max() >= self.encoding.n_encoded:
            faults.append(f"the base tests column {base.ensemble.feature.max()} of {self.encoding.n_encoded}")
        if any(cut.feature >= self.encoding.n_encoded for cut in base.cuts):
            faults.append(f"a contrast is of a column beyond the {self.encoding.n_encoded} there are")
        return faults

    def _label_faults(self) -> list[str]:
        if any(type(level) is not float for level in self.classes) or self.positive is not None:
            return ["the levels of a number must be numbers, none of them positive as a class is"]
        try:
            expected = label_levels(*self.label_range, len(self.classes))
        except ConfigError as error:
            return [str(error)]
        is_even = np.allclose(self.classes, expected, rtol=0, atol=1e-9 * (expected[-1] - expected[0]))
        return [] if is_even else ["the levels of a number must be equally spaced, the lowest first"]

    @property
    def label_range(self) -> tuple[float, float]:
        """Ends of the range of the number that is reported."""
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
    def n_outputs(self) -> int:
        """M, over one where each report is about an output of the base, or a contrast, that its holder draws; else 1."""
        return self.base.n_residuals if self.base is not None and self.base.output == DRAWN else 1

    @property
    def asks_everybody(self) -> bool:
        """True if no holder is left for another question."""
        return self.asked == EVERYBODY

    def respondents(self, n: int) -> NDArray[np.int64]:
        """Return which of n holders, in the order that they are known in, are asked, int64 [m], ascending.

        Public coins, the same for every protocol, put them into an order, of which a part is taken. So questions that ask
        parts apart ask nobody twice, and those that together ask everybody leave out nobody.
        """
        if self.asks_everybody:
            return np.arange(n)
        order = np.argsort(Words.seeded(np.random.SeedSequence([PUBLIC_COINS, n])).block(n), kind="stable")
        first, stop = _part_ends(n)[[*self.asked]]
        return np.sort(order[first:stop])

    def count_respondents(self, n: int) -> int:
        """Return how many of n holders are asked, without an order of them."""
        first, stop = _part_ends(n)[[*self.asked]]
        return int(stop - first)

    def draw_outputs(self, n: int, words: Words) -> NDArray[np.int64] | None:
        """The output of the base that each of n holders reports on, int64 [n]; None where nothing is to be drawn.

        Each is uniform on 0 .. n_outputs - 1 and depends on nothing else, so that it may be sent as it is.
        """
        return words.below(self.n_outputs, n).astype(np.int64) if self.n_outputs > 1 else None

    @property
    def k(self) -> int:
        """Size of the alphabet, L C + 1; the last value is "outside"."""
        return self.mechanism.k

    @property
    def epsilon_exact(self) -> float:
        """The epsilon that the integer coins spend, rounded up; never above `epsilon`."""
        return self.mechanism.epsilon

    def describe(self) -> QuestionDescription:
        """Describe the question and how it is answered; of a number with the ends that it is moved into."""
        figures = self.mechanism.describe().figures
        figures |= {"values": self.k, "cells": self.n_cells, "levels": self.n_classes}
        figures["depth"] = self.partition.max_depth
        if self.numeric:
            low, high = self.label_range
            figures |= {"low": low, "high": high}
            if "label_noise_sd" in figures:
                figures["label_noise_sd"] *= high - low
        about: About = "cell and label" if self.base is None else "cell and error"
        if self.base is not None and self.base.contrasts:
            # a category is one column of the rows, and several encoded ones
            owners = [feature.column for feature in self.encoding.features for _ in feature.names]
            columns = [frozenset(owners[cut.feature] for cut in along.cuts) for along in self.base.contrasts]
            about, figures["columns"] = "error along columns", len(frozenset().union(*columns))
            pairs = {both for both in columns if len(both) > 1}
            figures |= {"pairs": len(pairs)} if pairs else {}
        return QuestionDescription(
            about=about,
            mechanism=self.mechanism.full_name,
            epsilon=self.epsilon_exact,
            figures=figures,
        )

    @cached_property
    def raw_tree(self) -> RawTree:
        """The partition in raw units."""
        return RawTree.of(self.partition, self.encoding)

    @cached_property
    def columns_needed(self) -> tuple[str, ...]:
        """The raw columns a holder's row must have for `values`, in the encoding's order.

        Those of `RawTree.columns_needed`; all where a base has to answer.
        """
        if self.base is not None:
            return self.encoding.columns
        return self.raw_tree.columns_needed(drops_outside=self.outside == "drop")

    def values(
        self,
        raw: NDArray[np.float64],
        labels: ArrayLike,
        columns: Sequence[str] | None = None,
        *,
        words: Words | None = None,
        outputs: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """The value each holder must randomise, int64 [n] in 0 .. n_values - 1 of the mechanism; still private.

        Args:
            raw: raw matrix, float64 [n, columns] (see `ldptree.encoding`).
            labels: int [n], index into `label_classes`; -1 for a label that is not declared. Where the label is a number, float
                [n], NaN for a missing one. What is numeric is rounded here at random to one of the mechanism's levels.
            columns: names of raw's columns, where they are not all of the encoding's; `columns_needed` suffice.
            words: coins for rounding, needed where a number is reported.
            outputs: what `draw_outputs` drew for these holders.

        Raises:
            DataError: a column is absent, lengths differ, or outputs were to be drawn and were not.
        """
        cells = self.cells(raw, columns)
        if self.base is not None:
            labels = self.residuals(raw, labels, columns, outputs=outputs)
        if self.numeric:
            labels = round_at_random(
                labels, *self.label_range, self.mechanism.n_levels, words or Words.system()
            )
        return report_values(cells, labels, n_cells=self.n_cells, n_classes=self.mechanism.n_levels)

    def cells(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> NDArray[np.int32]:
        """The cell of each raw row, int32 [n]; -1 for a row that is outside. Raises DataError where a column is absent."""
        return self.raw_tree.cells(raw, columns, drops_outside=self.outside == "drop")

    def residuals(
        self,
        raw: NDArray[np.float64],
        labels: ArrayLike,
        columns: Sequence[str] | None = None,
        *,
        outputs: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64]:
        """Return the base's error for each holder, float64 [n], before clipping and rounding; still private.

        Args:
            raw, labels, columns, outputs: as of `values`.

        Raises:
            DataError: as `values`, or there is no base.
        """
        if self.base is None:
            raise DataError("the protocol has no base to have residuals of")
        names = self.encoding.columns if columns is None else tuple(columns)
        return self.base.residuals(self.encoding, self._in_order(raw, names), labels, outputs)

    def _in_order(self, raw: NDArray[np.float64], names: tuple[str, ...]) -> NDArray[np.float64]:
        """All columns of the encoding, in its order."""
        if names == self.encoding.columns:
            return np.asarray(raw, dtype=np.float64)
        place = {name: j for j, name in enumerate(names)}
        if absent := [column for column in self.encoding.columns if column not in place]:
            raise DataError(f"raw rows lack the columns {', '.join(absent)}")
        return np.asarray(raw, dtype=np.float64)[:, [place[column] for column in self.encoding.columns]]

    @property
    def label_classes(self) -> tuple[Level, ...]:
        """The declared labels, none where the label is a number."""
        if self.base is not None:
            return self.base.labels
        return () if self.numeric else self.classes

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON without the digest itself."""
        return hashlib.sha256(self._text().encode()).hexdigest()

    @cached_property
    def digest_unmarked(self) -> str:
        """Return the digest that a release of the same question has, from which a simulation's noise is drawn.

        A mechanism that leaks is no release's: its simulation keeps the mark.
        """
        return replace(self, simulation=self.mechanism.is_simulation_device).digest

    def to_json(self) -> str:
        """Return the canonical text, with sorted keys, no spaces, its digest, and thresholds as decimal strings."""
        return self._text(digest=self.digest)

    def _text(self, **more: str) -> str:
        """The canonical text of all fields, and these."""
        parts = {
            name: serialize.canonical(value) for name, value in (self._fields_beside_base() | more).items()
        }
        return serialize.canonical_of_parts(parts if self.base is None else parts | {"base": self.base.text})

    def _fields_beside_base(self) -> dict[str, Any]:
        mechanism = self.mechanism
        only_if = {"simulation": self.simulation, "numeric": self.numeric}
        asked = {} if self.asks_everybody else {"asked": list(self.asked)}
        return (
            {name: True for name, holds in only_if.items() if holds}
            | asked
            | {
                "version": self.version,
                "rounds": [self.round],
                "encoding": self.encoding.to_json(),
                "partition": self.partition.to_json(),
                "target": self.target,
                "classes": list(self.classes),
                "positive": self.positive,
                "mechanism": JOINT if mechanism.is_joint else mechanism.name,
                "oracle": mechanism.name if mechanism.is_joint else None,
                "k": self.k,
                "thresholds": {name: str(value) for name, value in mechanism.thresholds.items()},
                "epsilon": float(self.epsilon),
                "epsilon_exact": self.epsilon_exact,
                "outside": self.outside,
                "holder": self.holder,
                "campaign": self.campaign,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The protocol that `to_json` wrote, every part checked anew.

        Raises:
            ProtocolMismatch: not JSON, a field absent, unknown or of a wrong type, an unknown version,
                mechanism or oracle, an alphabet that does not fit the tree, coins that spend more than is
                claimed, or a digest that is not that of the content.
        """
        data = _read_fields(text)
        try:
            protocol = cls(**_read_parts(data))
        except (ConfigError, DataError) as error:
            raise ProtocolMismatch(f"protocol refused: {error!s:.600}") from None
        except (OverflowError, RecursionError):
            raise ProtocolMismatch(
                "protocol refused: a number in it is too large, or it is nested too deep"
            ) from None
        if data["epsilon_exact"] != protocol.epsilon_exact:
            raise ProtocolMismatch(
                f"protocol: it states epsilon_exact {data['epsilon_exact']!r:.40}, "
                f"its coins give {protocol.epsilon_exact!r}"
            )
        if data["digest"] != protocol.digest:
            raise ProtocolMismatch(
                "protocol: its digest is not that of its content; fetch it again from its publisher"
            )
        return protocol


def part_sizes(n: int) -> NDArray[np.int64]:
    """Return how many of n holders are in each of the parts that a question may ask, int64 [PARTS]."""
    return np.diff(_part_ends(n))


def _part_ends(n: int) -> NDArray[np.int64]:
    """Return how many of n holders come before each part in the order of the public coins, and n, int64 [PARTS + 1]."""
    return -(-np.arange(PARTS + 1) * n // PARTS)


def _read_fields(text: str) -> dict[str, Any]:
    """The fields of a protocol's text, each of its type; those that may be absent are there.

    Raises:
        ProtocolMismatch: not JSON, an unknown version, or a field absent, unknown or of a wrong type.
    """
    again = "fetch it again from its publisher"
    try:
        data = serialize.read(text, of="protocol", remedy=again, error=ProtocolMismatch, parse_float=_finite)
    except OverflowError:
        raise ProtocolMismatch("protocol refused: a number in it is too large") from None
    if not isinstance(data, dict):
        raise ProtocolMismatch("protocol: not a JSON object")
    if "kind" in data and "digest" in data:
        raise ProtocolMismatch("protocol: this is a model; a run has its protocol.json beside its model.json")
    if data.get("version") != VERSION:
        raise ProtocolMismatch(
            f"protocol: version {data.get('version')!r:.40} is not known here (only {VERSION})"
        )
    data.setdefault("simulation", False)
    data.setdefault("numeric", False)
    data.setdefault("asked", [0, 1000])
    data.setdefault("base", None)
    for name in sorted(set(_TYPES) ^ set(data)):
        raise ProtocolMismatch(f'protocol: field "{name:.40}" is {"absent" if name in _TYPES else "unknown"}')
    for name, kinds in _TYPES.items():
        if type(data[name]) not in kinds:
            raise ProtocolMismatch(
                f'protocol: field "{name}" has the wrong type ({type(data[name]).__name__})'
            )
    if any(type(v) not in (str, int, float, bool) for v in data["classes"]):
        raise ProtocolMismatch("protocol: classes must be texts, numbers or booleans")
    if [type(number) for number in data["rounds"]] != [int]:
        raise ProtocolMismatch(f"protocol: rounds {data['rounds']!r:.40}: must be one whole number")
    return data


def _read_parts(data: Mapping[str, Any]) -> dict[str, Any]:
    """Read the parts of a `Protocol` from its fields.

    Raises:
        ConfigError, DataError: a part is impossible.
        OverflowError, RecursionError: a number in one is too large, or it is nested too deep.
    """
    partition = Partition.from_json(data["partition"])
    as_they_are = {name: data[name] for name in _AS_THEY_ARE}
    return as_they_are | {
        "round": data["rounds"][0],
        "asked": tuple(data["asked"]),
        "encoding": Encoding.from_json(data["encoding"]),
        "partition": partition,
        "classes": tuple(data["classes"]),
        "mechanism": _mechanism(data, partition.n_leaves),
        "epsilon": float(data["epsilon"]),
        "base": None if data["base"] is None else PublishedBase.from_json(data["base"]),
    }


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise OverflowError
    return number


def _mechanism(data: Mapping[str, Any], n_cells: int) -> Mechanism:
    n_classes = len(data["classes"])
    kind = find_mechanism(data["mechanism"], data["oracle"])
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
    return kind.from_thresholds(n_cells, n_classes, thresholds)
