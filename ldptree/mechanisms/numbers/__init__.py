"""Number mechanisms: how one holder reports one number of [-1, 1]. One mechanism, one file; one line here."""

from ldptree.mechanisms.numbers.duchi import Duchi
from ldptree.mechanisms.numbers.hybrid import Hybrid
from ldptree.mechanisms.numbers.laplace import LaplaceNumber
from ldptree.mechanisms.numbers.number import NumberMechanism
from ldptree.mechanisms.numbers.optimal_label import OptimalLabel
from ldptree.mechanisms.numbers.piecewise import Piecewise

NUMBERS: dict[str, type[NumberMechanism]] = {
    "optimal_label": OptimalLabel,
    "laplace": LaplaceNumber,
    "duchi": Duchi,
    "piecewise": Piecewise,
    "hybrid": Hybrid,
}

__all__ = ["NUMBERS", "NumberMechanism", "OptimalLabel"]
