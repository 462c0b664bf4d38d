"""Frequency oracles, by which one holder reports one value of k. One oracle is one file, and one line here."""

from ldptree.mechanisms.oracles.grr import Grr
from ldptree.mechanisms.oracles.local_hash import Olh
from ldptree.mechanisms.oracles.oracle import FrequencyOracle
from ldptree.mechanisms.oracles.subset import SubsetSelection
from ldptree.mechanisms.oracles.unary import Oue, Sue

ORACLES: dict[str, type[FrequencyOracle]] = {
    "grr": Grr,
    "oue": Oue,
    "sue": Sue,
    "ss": SubsetSelection,
    "olh": Olh,
}

__all__ = ["ORACLES", "FrequencyOracle"]
