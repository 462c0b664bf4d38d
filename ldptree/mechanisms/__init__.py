"""Mechanisms draw what a holder sends about a cell and a label. One mechanism is one file, and one line here.

A label is one of some classes, or a number. A number is rounded at random between levels of its range, which then are the
classes; or it has a mechanism of its own (`NumberReport`), where the two ends of the range stand for the classes.
"""

from ldptree.errors import ConfigError
from ldptree.mechanisms.additive import Additive
from ldptree.mechanisms.discrete_laplace import DiscreteLaplace
from ldptree.mechanisms.laplace import Laplace, NumberLaplace
from ldptree.mechanisms.mechanism import JOINT, Mechanism, NumberReport, report_values
from ldptree.mechanisms.oracles import ORACLES, FrequencyOracle
from ldptree.mechanisms.randomized_response import NumberResponse, RandomizedResponse
from ldptree.mechanisms.signed_subset import SignedSubset

MECHANISMS: dict[str, type[Mechanism]] = {
    **ORACLES,
    "discrete_laplace": DiscreteLaplace,
    "randomized_response": RandomizedResponse,
    "laplace": Laplace,
    "signed_subset": SignedSubset,
}

NUMBER_MECHANISMS: dict[str, type[NumberLaplace | NumberResponse]] = {
    "randomized_response": NumberResponse,
    "laplace": NumberLaplace,
}
"""Where the label is a number, these take the place of the mechanisms of the same choice."""

JOINT_CHOICES = ("auto", *ORACLES)
"""Of `CHOICES` those that stand for a joint report."""
RESIDUAL_CHOICES = ("auto", *(name for name, mechanism in MECHANISMS.items() if mechanism.carries_residuals))
"""Of `CHOICES` those that the residual of a public model may be reported by."""
CHOICES = ("auto", *MECHANISMS)
"""Mechanisms that a run may name. An oracle stands for the joint report over it, "auto" for the joint report over the
quieter of grr and oue. "signed_subset" is for two classes, or a number's two ends.
"""


def mechanism_for(choice: str, epsilon: float, n_cells: int, n_classes: int) -> Mechanism:
    """The mechanism that one of `CHOICES` stands for, at this epsilon.

    Raises:
        ConfigError: the choice is not known, or the mechanism refuses the epsilon or the sizes.
    """
    if n_classes < 2:
        raise ConfigError(f"{n_cells} cells x {n_classes} classes; at least 1 and 2 are needed")
    if choice == "auto":
        return choose_oracle(epsilon, n_cells, n_classes)
    if choice not in MECHANISMS:
        raise ConfigError(f'mechanism = "{choice}": known are {", ".join(CHOICES)}')
    return MECHANISMS[choice].for_budget(epsilon, n_cells, n_classes)


def number_mechanism_for(
    choice: str, epsilon: float, n_cells: int, n_levels: int = 2, *, rho: float = 0.5
) -> Mechanism:
    """The same where the label is a number.

    Args:
        choice, epsilon, n_cells: as `mechanism_for`.
        n_levels: levels that the label is rounded to, for a joint report; other mechanisms keep the two ends.
        rho: share of epsilon that the cell gets, where it is sent apart from the label.

    Raises:
        ConfigError: as `mechanism_for`, or rho is not between 0 and 1.
    """
    if choice in NUMBER_MECHANISMS:
        return NUMBER_MECHANISMS[choice].for_budget(epsilon, n_cells, rho=rho)
    return mechanism_for(choice, epsilon, n_cells, n_levels if choice in JOINT_CHOICES else 2)


def choice_of(mechanism: Mechanism) -> str:
    """The one of `CHOICES` that stands for a mechanism."""
    by_number = (name for name, kind in NUMBER_MECHANISMS.items() if type(mechanism) is kind)
    return next(by_number, mechanism.name)


def choose_oracle(epsilon: float, n_cells: int, n_classes: int) -> FrequencyOracle:
    """Of grr and oue, the one with the smallest mean noise variance if all values are equally likely.

    grr wins for few values or large epsilon, oue for many. No private row is looked at.
    """
    quieter = (ORACLES[name].for_budget(epsilon, n_cells, n_classes) for name in ("grr", "oue"))
    return min(quieter, key=FrequencyOracle.mean_variance)


def adds_noise_to_every_cell(choice: str) -> bool:
    """Return whether such a report is a noisy number for every cell, so that cells without respondents are all noise."""
    return choice in MECHANISMS and issubclass(MECHANISMS[choice], Additive)


def find_mechanism(name: str, oracle: str | None) -> type[Mechanism]:
    """The mechanism that a protocol calls so, with the oracle of a joint report.

    Raises:
        ConfigError: there is none, or it has no oracle or another.
    """
    if name == JOINT:
        if oracle not in ORACLES:
            raise ConfigError(f'oracle "{oracle}" is not known; known are {", ".join(ORACLES)}')
        return ORACLES[oracle]
    apart = (*MECHANISMS.values(), *NUMBER_MECHANISMS.values())
    mechanism = next((kind for kind in apart if kind.name == name and not kind.is_joint), None)
    if mechanism is None:
        known = (JOINT, *(choice for choice in MECHANISMS if choice not in ORACLES))
        raise ConfigError(f'mechanism "{name}" is not known; known are {", ".join(known)}')
    if oracle is not None:
        raise ConfigError(f'mechanism "{name}" has no oracle, found "{oracle}"')
    return mechanism


__all__ = [
    "CHOICES",
    "JOINT",
    "JOINT_CHOICES",
    "MECHANISMS",
    "NUMBER_MECHANISMS",
    "RESIDUAL_CHOICES",
    "Mechanism",
    "NumberReport",
    "adds_noise_to_every_cell",
    "choice_of",
    "choose_oracle",
    "find_mechanism",
    "mechanism_for",
    "number_mechanism_for",
    "report_values",
]
