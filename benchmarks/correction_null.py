"""How often a correction calls a public model wrong that is right: python benchmarks/correction_null.py [--runs N]

The public model is the true function, public and private people are alike: 1,000 public rows and 10,000 private ones on
four normal columns. A label is its expectation and noise of one of four kinds, or a class whose chance two columns shape. Shown
is how often the stated chance is below .05, how often the line says that the model is wrong, and by how much the correction
made the squared error larger, on average and at worst. Ends with 1 where a false alarm is outside [.02, .08].
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from tables import MarkdownTable

from ldptree.coins import Words
from ldptree.estimators.holders import encoding_of
from ldptree.families.correction_plan import CorrectionPlan, PublicEvidence, ResidualRange, make_plan
from ldptree.families.corrections import ResidualEstimates, correct
from ldptree.partition import grow_partition
from ldptree.protocol.stochastic_rounding import round_at_random
from ldptree.protocol.totals import Totals
from ldptree.public_models.model import constant

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, Floats], Floats]
N_PUBLIC, N_PRIVATE = 1_000, 10_000
EPSILONS = (2.0, 4.0, 8.0)
STATED, LEAST, MOST = 0.05, 0.02, 0.08


def class_of(rng: np.random.Generator, X: Floats) -> Floats:
    """1 or 0 less its chance, which rises along two columns."""
    chance = 1 / (1 + np.exp(-X[:, 0] - 0.5 * X[:, 1]))
    return (rng.random(len(X)) < chance) - chance


KINDS: dict[str, Draw] = {
    "normal": lambda rng, X: rng.normal(size=len(X)),
    "Laplace": lambda rng, X: rng.laplace(size=len(X)),
    "t, 2 degrees": lambda rng, X: rng.standard_t(2, size=len(X)),
    "exponential": lambda rng, X: rng.exponential(size=len(X)) - 1,
    "two classes": class_of,
}


def planned(draw: Draw, kind: str, epsilon: float, seed: int) -> tuple[CorrectionPlan, Floats, Floats]:
    """The plan that public rows give, and private cells and errors."""
    rng = np.random.default_rng([seed, round(10 * epsilon)])
    X = rng.normal(size=(N_PUBLIC, 4))
    errors = draw(rng, X)
    encoding = encoding_of(X, None, None)
    encoded = encoding.encode(X)
    is_class = kind == "two classes"
    labels = errors if is_class else X[:, 0] + errors
    grow = partial(
        grow_partition,
        encoded,
        labels,
        kind="cart",
        n_classes=2,
        criterion="variance",
        min_samples_leaf=20,
        stop_empty=False,
        seed=0,
    )
    evidence = PublicEvidence(
        base=constant(np.zeros(1), 0),
        usual=np.zeros(1),
        X=encoded,
        errors=errors,
        range=ResidualRange(half=1.0) if is_class else ResidualRange.of(errors),
        scale=1.0 if is_class else 2 * float(labels.std()),
        grow=cache(lambda depth: grow(depth=depth)),
        own_variance=lambda tree: np.zeros((tree.n_leaves, 1)),
    )
    plan = make_plan(evidence, epsilon=epsilon, n_holders=N_PRIVATE)
    private = rng.normal(size=(N_PRIVATE, 4))
    return plan, plan.partition.apply(encoding.encode(private)), draw(rng, private)


def collected(plan: CorrectionPlan, cells: Floats, errors: Floats, seed: int) -> Totals:
    """What these people's reports add up to."""
    words = Words.seeded(np.random.SeedSequence([seed, 6]))
    half, n_levels = plan.range.half, len(plan.levels)
    values = cells * n_levels + round_at_random(errors, -half, half, n_levels, words)
    counts = np.bincount(values, minlength=plan.mechanism.n_values)
    return Totals.from_raw(
        plan.mechanism.sample_totals(counts, words.generator()),
        mechanism=plan.mechanism,
        n_private=N_PRIVATE,
        depth=plan.partition.max_depth,
    )


def main() -> int:
    """Print the table."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--runs", type=int, default=200)
    runs = arguments.parse_args().runs
    lines = MarkdownTable("noise, eps", f"chance below {STATED}", '"is wrong"', "MSE more", "at worst")
    stands = True
    for kind, draw in KINDS.items():
        for epsilon in EPSILONS:
            low, called, worse = 0, 0, []
            for seed in range(runs):
                plan, cells, errors = planned(draw, kind, epsilon, seed)
                seen = ResidualEstimates.of(plan, collected(plan, cells, errors, seed))
                found = correct(plan, [seen])
                low += found.chance < STATED
                called += not found.has_no_effect
                left = errors - found.correction[cells, 0]
                worse.append(float(np.mean(left**2) / np.mean(errors**2)) - 1)
            alarms = f"{low / runs:.3f}", f"{called / runs:.3f}"
            lines.row(f"{kind}, {epsilon:g}", *alarms, f"{np.mean(worse):+.3%}", f"{max(worse):+.2%}")
            stands &= LEAST <= low / runs <= MOST
    return 0 if stands else 1


if __name__ == "__main__":
    raise SystemExit(main())
