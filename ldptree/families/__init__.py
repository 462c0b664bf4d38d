"""Families, each one way to learn. `FAMILIES` builds one from what is to be learned and from its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ldptree.families.settings import (
    CorrectionSettings,
    FamilySettings,
    HistOfTreeSettings,
    LPCTSettings,
    LPDTSettings,
    PublicFeaturesSettings,
)

if TYPE_CHECKING:
    from ldptree.families.family import Family


FEWEST_FOR_A_MODEL = 20
"""Public rows from which on a corrected public model does better than one tree learned from reports (docs/how-to/choose.md)."""


@dataclass(frozen=True, kw_only=True)
class LearningProblem:
    """The problem that a family learns.

    Attributes:
        columns: names of the encoded features.
        epsilon: of each holder, over all questions.
        label: the declared classes, or the two ends of a number's range.
        seed: of public coins.
        heading: what a protocol says besides, as keyword arguments of `Protocol`: its target at least. Unused in rounds.
        has_positive: the second of two classes is the one that is looked for.
    """

    columns: Sequence[str]
    epsilon: float
    label: tuple[Any, ...]
    seed: int
    heading: Mapping[str, Any] = field(default_factory=dict)
    has_positive: bool = False


@dataclass(frozen=True)
class RegisteredFamily:
    """A family as the registry has it: its builder, its settings, and the view that it works with.

    Attributes:
        build: the family that learns a problem, with its settings as keyword arguments.
        settings: what may be set.
        in_rounds: whether it sees a `PublicView` of the holders and asks parts of them in turn; else it sees `PublicRows` and
            asks every holder about one tree.
    """

    build: Callable[..., Family[Any, Any, Any, Any]]
    settings: type[FamilySettings]
    in_rounds: bool = False


@dataclass(frozen=True)
class Choice:
    """A family that was chosen, and a sentence that says why."""

    family: str
    reason: str


def choose_family(label: str, n_public: int, mechanism: str) -> Choice:
    """The family that is recommended where nobody chose one, told from what is public (docs/how-to/choose.md).

    Args:
        label: "class" or "number".
        n_public: public rows.
        mechanism: how holders report, or "auto".
    """
    from ldptree.mechanisms import RESIDUAL_CHOICES

    tree = {"class": "lpct", "number": "lpdt"}[label]
    if mechanism not in RESIDUAL_CHOICES:
        return Choice(tree, f'mechanism = "{mechanism}" reports a label, not the error of a public model')
    if n_public < FEWEST_FOR_A_MODEL:
        few = f"{n_public} public rows" if n_public != 1 else "1 public row"
        return Choice(tree, f"{few} are too few for a public model, which takes {FEWEST_FOR_A_MODEL}")
    return Choice(
        "correction", f"{n_public:,} public rows are enough for a public model, which reports can correct"
    )


def _lpct(problem: LearningProblem, **settings: Any) -> Family[Any, Any, Any, Any]:
    from ldptree.families.tree import LPCT

    return LPCT(
        epsilon=problem.epsilon,
        heading=problem.heading,
        seed=problem.seed,
        has_positive=problem.has_positive,
        **settings,
    )


def _lpdt(problem: LearningProblem, **settings: Any) -> Family[Any, Any, Any, Any]:
    from ldptree.families.tree import LPDT

    return LPDT(epsilon=problem.epsilon, heading=problem.heading, seed=problem.seed, **settings)


def _correction(problem: LearningProblem, **settings: Any) -> Family[Any, Any, Any, Any]:
    from ldptree.families.correction import Correction  # with scikit-learn, which takes a second

    return Correction(epsilon=problem.epsilon, heading=problem.heading, seed=problem.seed, **settings)


def _histoftree(problem: LearningProblem, **settings: Any) -> Family[Any, Any, Any, Any]:
    from ldptree.encoding import Encoding, NumericFeature
    from ldptree.families.histoftree import HistOfTree

    encoding = Encoding(tuple(NumericFeature(name, 0.0, 1.0) for name in problem.columns))
    low, high = problem.label
    return HistOfTree(
        epsilon=problem.epsilon, encoding=encoding, low=low, high=high, seed=problem.seed, **settings
    )


def _public_features(problem: LearningProblem, **settings: Any) -> Family[Any, Any, Any, Any]:
    from ldptree.families.public_features import PublicFeatures

    n_columns = len(problem.columns)
    low, high = problem.label
    return PublicFeatures(
        epsilon=problem.epsilon,
        columns=tuple(problem.columns),
        low=(0.0,) * n_columns,
        high=(1.0,) * n_columns,
        label_low=low,
        label_high=high,
        seed=problem.seed,
        **settings,
    )


FAMILIES: dict[str, RegisteredFamily] = {
    "lpct": RegisteredFamily(_lpct, LPCTSettings),
    "lpdt": RegisteredFamily(_lpdt, LPDTSettings),
    "correction": RegisteredFamily(_correction, CorrectionSettings),
    "histoftree": RegisteredFamily(_histoftree, HistOfTreeSettings, in_rounds=True),
    "public_features": RegisteredFamily(_public_features, PublicFeaturesSettings, in_rounds=True),
}
"""By name, as `model.estimator` names them."""
