"""Number mechanisms, by which a holder reports a number of [-1, 1]. One mechanism is one file, and one line here."""

from collections.abc import Mapping
from typing import Any

from ldptree.errors import DataError
from ldptree.mechanisms.numbers.duchi import Duchi
from ldptree.mechanisms.numbers.laplace import LaplaceNumber
from ldptree.mechanisms.numbers.number import NumberMechanism
from ldptree.mechanisms.numbers.optimal_label import OptimalLabel
from ldptree.serialize import Codec

NUMBERS: dict[str, type[NumberMechanism]] = {
    "optimal_label": OptimalLabel,
    "laplace": LaplaceNumber,
    "duchi": Duchi,
}


def _read_number(data: Any) -> NumberMechanism:
    if not isinstance(data, Mapping) or set(data) != {"name", "thresholds"} or data["name"] not in NUMBERS:
        raise DataError(f"mechanism must be a name of {', '.join(NUMBERS)} and its thresholds")
    return NUMBERS[data["name"]].from_thresholds(data["thresholds"])


NUMBER_JSON = {
    "codec": Codec(
        write=lambda mechanism: {"name": mechanism.name, "thresholds": mechanism.thresholds},
        read=_read_number,
    )
}
"""A number mechanism in the text of a question, with its name and its integers."""

__all__ = ["NUMBERS", "NUMBER_JSON", "NumberMechanism", "OptimalLabel"]
