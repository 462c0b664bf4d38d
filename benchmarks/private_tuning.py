"""Tuning under LDP, by its questions: LDPTREE_DATA=DIR python benchmarks/private_tuning.py SUITE

    [--repetitions N] [--draws N] [--epsilons .5,1,2,4,8] [--sets ABA,WHI] [--share .2] [--grid default|paper]

    noise         what each question's mechanism adds to a candidate's estimate, and what the paper's noise really spends
    regression    LPDT on real sets (1 : 7 : 2): regret of each question against the best candidate, and whether tuning pays
    classes       LPCT on the synthetic pairs, wine and two Chicago companies: the same with 0/1 loss

Candidates are trained once a repetition; all questions are then asked about the same models and the same validation holders,
`--draws` times with fresh coins. Regret is the test error of the one chosen less that of the best candidate (which only test
rows know), over the latter. "No tuning" is the default, to which all private rows report.

--grid paper: LPDT-M as published (randomised response, ratio, no smoothing), whose depth and min leaf do need tuning.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from lpct_samples import Sample, chicago, companies, synthetic_pair, wine
from numpy.typing import NDArray
from regression_sets import load, splits
from tables import MarkdownTable

from ldptree.coins import Words
from ldptree.estimators import LPCTClassifier, LPDTRegressor, tuning
from ldptree.estimators.tuning import PublicLosses, Trained, choose, expected_excess, question_for
from ldptree.estimators.validation_questions import (
    QUESTIONS,
    AllErrors,
    ValidationQuestion,
    advanced_composition,
)

Floats = NDArray[np.float64]

PRINTED = "laplace as printed"
SETS = ("RED", "WHI", "ABA", "CPU", "CON", "MUS", "HOU", "AQU")
"""Of more than 500 rows; a fifth of fewer holders tells nothing."""
FIRST, LUCK = "the first, always", "one at random"
UNTUNED, EPSILONS = "no tuning, all rows train", (0.5, 1.0, 2.0, 4.0, 8.0)
PAPER_GRID = [{"depth": depth, "min_samples_leaf": leaf} for depth in (1, 2, 4, 6) for leaf in (5, 20)]
PAPER = {
    "mechanism": "randomized_response",
    "partition": "max-edge",
    "lam": 0.0,
    "prune": "none",
    "rule": "ratio",
}


@dataclass(frozen=True, eq=False)
class Trial:
    """Candidates of one repetition.

    Attributes:
        public: losses of the candidates that differ, as everybody knows them.
        private: float64 [n, k], their losses on the rows that validate.
        test: float64 [k], mean losses on test rows.
        untuned: mean test loss of the estimator without tuning.
    """

    public: PublicLosses
    private: Floats
    test: Floats
    untuned: float


def trial(
    estimator: Any,
    X: Floats,
    y: NDArray[Any],
    public: NDArray[np.bool_],
    test_X: Floats,
    test_y: NDArray[Any],
) -> Trial:
    """Train the candidates of a tuned estimator, and the estimator without tuning."""
    seen: list[tuple[Trained, PublicLosses, Floats]] = []
    choose_candidate = tuning.choose_candidate

    def keep_losses(trained: Trained, public: PublicLosses, private: Floats, **settings: Any) -> Any:
        seen.append((trained, public, private))
        return choose_candidate(trained, public, private, **settings)

    with mock.patch.object(tuning, "choose_candidate", keep_losses):
        fitted = estimator.fit(X, y, public=public)
    ((trained, public_losses, private_losses),) = seen
    plain = type(estimator)(**estimator.get_params() | {"tune": None, "candidates": None}).fit(
        X, y, public=public
    )
    distinct = np.unique(trained.first_like)

    def loss(predicted: NDArray[Any]) -> float:
        wrong = predicted != test_y if isinstance(fitted, LPCTClassifier) else (predicted - test_y) ** 2
        return float(np.mean(wrong))

    def test_loss(model: Any) -> float:
        found = model.predict(test_X)
        return loss(fitted.classes_[found] if isinstance(fitted, LPCTClassifier) else found)

    return Trial(
        public=public_losses.select(distinct),
        private=private_losses[:, distinct],
        test=np.array([test_loss(trained.models[j]) for j in distinct]),
        untuned=loss(plain.predict(test_X)),
    )


def question(name: str, epsilon: float, one: Trial) -> ValidationQuestion:
    """As an estimator asks it, or with the paper's noise."""
    made = question_for("laplace" if name == PRINTED else name, epsilon, one.public, len(one.private))
    return AllErrors.as_printed(epsilon, made.ranges) if name == PRINTED else made


def chosen_by(name: str, epsilon: float, one: Trial, coins: tuple[int, int]) -> dict[str, int]:
    """The candidate that one draw of all reports chooses: as an estimator does, and by the least estimate alone."""
    if one.test.size < 2:
        return {"": 0, ", least estimate": 0}
    asking = question(name, epsilon, one)
    losses = one.private[np.random.default_rng(coins).permutation(len(one.private))]
    asked = asking.assign(len(losses))
    words = Words.seeded(np.random.SeedSequence([*coins, round(1000 * epsilon)]))
    estimates = asking.estimate(asking.randomize(losses, asked, words), asked)
    expected = expected_excess(estimates, one.public.values)
    return {"": choose(*expected), ", least estimate": int(np.argmin(estimates.value))}


def test_losses(trials: Sequence[Trial], epsilon: float, draws: int) -> dict[str, Floats]:
    """Mean test loss of what each question chooses, by "question, margin" and trial: float64 [trials]."""
    found: dict[str, list[float]] = {}
    for number, one in enumerate(trials):
        found.setdefault("best candidate", []).append(float(one.test.min()))
        found.setdefault(FIRST, []).append(float(one.test[0]))
        found.setdefault(LUCK, []).append(float(one.test.mean()))
        found.setdefault(UNTUNED, []).append(one.untuned)
        without = int(one.private.mean(axis=0).argmin())
        found.setdefault("no noise, all validation errors", []).append(float(one.test[without]))
        if len(one.public.values):
            found.setdefault("public rows alone choose", []).append(
                float(one.test[one.public.values.mean(axis=0).argmin()])
            )
        for name in ("auto", *QUESTIONS, PRINTED):
            chosen: dict[str, list[float]] = {}
            for draw in range(draws):
                for rule, at in chosen_by(name, epsilon, one, (number, draw)).items():
                    chosen.setdefault(rule, []).append(float(one.test[at]))
            for rule, values in chosen.items():
                found.setdefault(f"{name}{rule}", []).append(float(np.mean(values)))
    return {name: np.array(values) for name, values in found.items()}


def report(
    cases: dict[str, Callable[[float], Iterable[Trial]]], epsilons: Sequence[float], draws: int
) -> None:
    """A table of regret over all cases, and one a case of whether tuning pays."""
    found: dict[tuple[str, float], dict[str, Floats]] = {}
    for case, trials_of in cases.items():
        for epsilon in epsilons:
            found[case, epsilon] = test_losses(list(trials_of(epsilon)), epsilon, draws)
        print(f"{case} done", file=sys.stderr, flush=True)
    names = [name for name in next(iter(found.values())) if name not in ("best candidate",)]
    heads = [f"eps {e:g}" for e in epsilons]
    table = MarkdownTable("regret, % of the best candidate's error, mean", *heads)
    for name in names:
        cells = []
        for epsilon in epsilons:
            ratios = [
                f[name].mean() / f["best candidate"].mean() - 1 for (_, e), f in found.items() if e == epsilon
            ]
            cells.append(f"{100 * float(np.mean(ratios)):+.1f}")
        table.row(name, *cells)
    picked = "auto"
    table = MarkdownTable("error of the tuned over that without tuning", *heads)
    for case in cases:
        table.row(
            case, *(f"{found[case, e][picked].mean() / found[case, e][UNTUNED].mean():.3f}" for e in epsilons)
        )
    means = [
        float(
            np.exp(
                np.mean([math.log(found[c, e][picked].mean() / found[c, e][UNTUNED].mean()) for c in cases])
            )
        )
        for e in epsilons
    ]
    table.row("geometric mean", *(f"{m:.3f}" for m in means))


def regression(options: argparse.Namespace) -> None:
    """Real sets of the LPDT paper."""
    grid: dict[str, Any] = {} if options.grid == "default" else PAPER | {"candidates": PAPER_GRID}

    def trials_of(name: str) -> Callable[[float], Iterable[Trial]]:
        def make(epsilon: float) -> Iterable[Trial]:
            data = load(name)
            for repetition in range(options.repetitions):
                split = splits(data, repetition)
                rows = np.concatenate([split.public, split.private])
                public = np.arange(rows.size) < split.public.size
                estimator = LPDTRegressor(
                    epsilon,
                    tune="private",
                    validation_share=options.share,
                    random_state=repetition,
                    **grid,
                )
                yield trial(
                    estimator, data.X[rows], data.y[rows], public, data.X[split.test], data.y[split.test]
                )

        return make

    report({name: trials_of(name) for name in options.sets}, options.epsilons, options.draws)


def classes(options: argparse.Namespace) -> None:
    """LPCT's sets."""
    samples: dict[str, Callable[[int], Sample]] = {
        "synthetic, gamma .5": lambda run: synthetic_pair(0.5, run),
        "synthetic, gamma 5": lambda run: synthetic_pair(5.0, run),
        "wine, red public": lambda run: wine().split(run),
        companies()[1]: lambda run: chicago(companies()[1]).split(run),
        companies()[3]: lambda run: chicago(companies()[3]).split(run),
    }

    def trials_of(sample_of: Callable[[int], Sample]) -> Callable[[float], Iterable[Trial]]:
        def make(epsilon: float) -> Iterable[Trial]:
            for run in range(options.repetitions):
                sample = sample_of(run)
                X, y = np.vstack([sample.public_X, sample.X]), np.concatenate([sample.public_y, sample.y])
                estimator = LPCTClassifier(
                    epsilon, tune="private", validation_share=options.share, random_state=run
                )
                public = np.arange(len(y)) < len(sample.public_y)
                yield trial(estimator, X, y, public, sample.test_X, sample.test_y)

        return make

    report({name: trials_of(sample) for name, sample in samples.items()}, options.epsilons, options.draws)


def noise(options: argparse.Namespace) -> None:
    """Noise variance of one candidate's mean loss times the number of holders, for losses in [0, 1]."""
    table = MarkdownTable("k", "question", *(f"eps {e:g}" for e in options.epsilons))
    for k in (2, 4, 8, 16, 32):
        for name, kind in QUESTIONS.items():
            table.row(k, name, *(f"{kind.for_budget(e, [1.0] * k).noise:.3g}" for e in options.epsilons))
        table.row(k, PRINTED, *(f"{AllErrors.as_printed(e, [1.0] * k).noise:.3g}" for e in options.epsilons))
        table.row(
            k,
            "eps that it spends",
            *(f"{AllErrors.as_printed(e, [1.0] * k).epsilon:.3g}" for e in options.epsilons),
        )
        spent = (advanced_composition(e / math.sqrt(k), k, 1e-6) for e in options.epsilons)
        table.row(k, "eps at delta 1e-6, advanced composition", *(f"{s:.3g}" for s in spent))


SUITES = {"noise": noise, "regression": regression, "classes": classes}


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("suite", choices=SUITES)
    arguments.add_argument("--repetitions", type=int, default=4)
    arguments.add_argument("--draws", type=int, default=5)
    arguments.add_argument("--epsilons", type=lambda t: [float(e) for e in t.split(",")], default=EPSILONS)
    arguments.add_argument("--sets", type=lambda t: t.split(","), default=SETS)
    arguments.add_argument("--share", type=float, default=0.2)
    arguments.add_argument("--grid", choices=("default", "paper"), default="default")
    options = arguments.parse_args()
    SUITES[options.suite](options)


if __name__ == "__main__":
    main()
