"""Mechanisms: what a holder sends about a cell and a label. One mechanism, one file; one line here."""

from ldptree.errors import ConfigError
from ldptree.mechanisms.discrete_laplace import DiscreteLaplace
from ldptree.mechanisms.joint import Joint
from ldptree.mechanisms.laplace import Laplace
from ldptree.mechanisms.mechanism import Mechanism, report_values
from ldptree.mechanisms.randomized_response import RandomizedResponse
from ldptree.oracles import ORACLES

MECHANISMS: dict[str, type[Mechanism]] = {
    "joint": Joint,
    "discrete_laplace": DiscreteLaplace,
    "randomized_response": RandomizedResponse,
    "laplace": Laplace,
}

CHOICES = ("auto", *ORACLES, *(name for name in MECHANISMS if name != "joint"))
"""What a run may name: an oracle stands for the joint report over it, "auto" for the joint report over the quieter of
grr and oue."""


def mechanism_for(choice: str, epsilon: float, n_cells: int, n_classes: int) -> Mechanism:
    """The mechanism that one of `CHOICES` stands for, at this epsilon.

    Raises:
        ConfigError: the choice is not known, or the mechanism refuses the epsilon or the sizes.
    """
    if choice == "auto" or choice in ORACLES:
        return Joint.for_budget(epsilon, n_cells, n_classes, choice)
    if choice == "joint" or choice not in MECHANISMS:
        raise ConfigError(f'mechanism = "{choice}": known are {", ".join(CHOICES)}')
    return MECHANISMS[choice].for_budget(epsilon, n_cells, n_classes)


def describe(mechanism: Mechanism) -> str:
    """A mechanism in one or two words, such as "joint oue"."""
    return f"{mechanism.name} {mechanism.oracle.name}" if isinstance(mechanism, Joint) else mechanism.name


__all__ = ["CHOICES", "MECHANISMS", "Joint", "Mechanism", "describe", "mechanism_for", "report_values"]
