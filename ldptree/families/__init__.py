"""The families, one way to learn each: `FAMILIES` builds one from what is to be learned and from its settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ldptree.errors import ConfigError

if TYPE_CHECKING:
    from ldptree.families.family import Family


FEWEST_FOR_A_MODEL = 20
"""Public rows from which on a corrected public model does better than one tree learned from reports (docs/how-to/choose.md)."""


@dataclass(frozen=True, kw_only=True)
class LearningProblem:
    """What is to be learned, by whichever family.

    Attributes:
        columns: names of the encoded features.
        epsilon: of each holder, over all questions.
        label: the declared classes, or the two ends of a number's range.
        seed: of public coins.
        heading: what a protocol says besides, as keyword arguments of `Protocol`: its target at least. Unused in rounds.
    """

    columns: Sequence[str]
    epsilon: float
    label: tuple[Any, ...]
    seed: int
    heading: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RegisteredFamily:
    """How a family is built, and what it works with.

    Attributes:
        build: the family that learns a problem, with its settings as keyword arguments.
        in_rounds: whether it sees a `PublicView` of the holders and asks parts of them in turn; else it sees `PublicRows` and
            asks every holder about one tree.
    """

    build: Callable[..., Family[Any, Any, Any, Any]]
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


def _lpct(
    problem: LearningProblem, *, paper: Mapping[str, Any] | None = None, **settings: Any
) -> Family[Any, Any, Any, Any]:
    from ldptree.families.tree import LPCT
    from ldptree.inference.algorithm_2 import PaperOptions

    algorithm_2 = {} if paper is None else {"prune": PaperOptions(**paper)}
    settings = _read_lam(settings) | algorithm_2
    return LPCT(epsilon=problem.epsilon, heading=problem.heading, seed=problem.seed, **settings)


def _lpdt(problem: LearningProblem, **settings: Any) -> Family[Any, Any, Any, Any]:
    from ldptree.families.tree import LPDT

    settings = _read_lam(settings)
    return LPDT(epsilon=problem.epsilon, heading=problem.heading, seed=problem.seed, **settings)


def _read_lam(settings: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no infinite number: in settings it is "inf"."""
    return {**settings, **({"lam": math.inf} if settings.get("lam") == "inf" else {})}


def _correction(problem: LearningProblem, **settings: Any) -> Family[Any, Any, Any, Any]:
    from ldptree.families.correction import Correction  # with scikit-learn, which takes a second

    return Correction(epsilon=problem.epsilon, heading=problem.heading, seed=problem.seed, **settings)


def _histoftree(problem: LearningProblem, **settings: Any) -> Family[Any, Any, Any, Any]:
    from ldptree.encoding import Encoding, NumericFeature
    from ldptree.families.histoftree import HistOfTree

    n_columns = len(problem.columns)
    if (settings.get("n_binned") or 0) > n_columns:
        raise ConfigError(
            f"histoftree.binned = {settings['n_binned']}: there are {n_columns} encoded features to bin; choose at most as many"
        )
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
    "lpct": RegisteredFamily(_lpct),
    "lpdt": RegisteredFamily(_lpdt),
    "correction": RegisteredFamily(_correction),
    "histoftree": RegisteredFamily(_histoftree, in_rounds=True),
    "public_features": RegisteredFamily(_public_features, in_rounds=True),
}
