"""Frequency oracles: how one holder reports one value of k. One oracle, one file; one line here."""

from ldptree.oracles.description import MechanismDescription, PoisoningBound
from ldptree.oracles.grr import Grr
from ldptree.oracles.local_hash import Olh
from ldptree.oracles.oracle import Oracle
from ldptree.oracles.subset import SubsetSelection
from ldptree.oracles.unary import Oue, Sue
from ldptree.oracles.words import Words

ORACLES: dict[str, type[Oracle]] = {"grr": Grr, "oue": Oue, "sue": Sue, "ss": SubsetSelection, "olh": Olh}

__all__ = ["ORACLES", "MechanismDescription", "Oracle", "PoisoningBound", "Words"]
