"""Reads the text of a protocol: which fields it has, their types, and the parts that they make. `protocol` checks whether the
parts fit each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ldptree import serialize
from ldptree.encoding import Encoding
from ldptree.errors import ConfigError, ProtocolMismatch
from ldptree.mechanisms import Mechanism, find_mechanism
from ldptree.partition.tree import Partition
from ldptree.protocol.published_base import PublishedBase

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


def read_fields(text: str) -> dict[str, Any]:
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
    return data


def read_parts(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a `Protocol` is made of, from its fields.

    Raises:
        ConfigError, DataError: a part is impossible.
        OverflowError, RecursionError: a number in one is too large, or it is nested too deep.
    """
    partition = Partition.from_json(data["partition"])
    as_they_are = {name: data[name] for name in _AS_THEY_ARE}
    return as_they_are | {
        "rounds": tuple(data["rounds"]),
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
