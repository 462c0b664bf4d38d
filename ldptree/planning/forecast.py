"""Forecast a collection for each number of people and each epsilon. Gives expected figures with intervals over splits
of the public rows, ways in which private people may differ, who happens to be asked, and noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ldptree.errors import ConfigError
from ldptree.planning.detection import Findable, fall_together
from ldptree.planning.expected import Expected, Forecast, lowest_mean
from ldptree.planning.known_rows import KnownRows
from ldptree.planning.learners import Build, Learner, LearnerInRounds, LearnerOfTotals
from ldptree.planning.monotone import rise
from ldptree.planning.people import AMONG, APART, Difference, Kind, LabelLaw, Split, plant

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")

FEWEST_ROWS = 100
"""Public rows, below which nothing is forecast."""
MOST_ROWS = 15_000
"""Public rows that are used at most, drawn with the seed: a public model of more than two thirds of them is fitted twice."""
N_SPLITS = 5
"""Of the public rows, each with a public model of its own."""
DRAWS = 3
"""Of people and noise, for each split and each way to differ."""
N_APART = 2
"""Groups of people who lie apart in a split, each drawn once. With `N_SPLITS`: at least 9, the fewest with an 80 % interval."""
DRAWS_IN_ROUNDS = 1
"""The same where everybody is simulated one by one."""
LEAST_GAIN, LEAST_PART = 0.005, 0.01
"""Least gain for which reports are worth it, in accuracy, or as a part of the squared error of public rows alone."""


@dataclass(frozen=True, eq=False)
class _Draw:
    """People of one split, different in one way.

    Attributes:
        learner: who asks them.
        split: whom they are played by.
        kind: the way in which they differ.
        number: of the split.
        people: those who answer.
        public: the figure of public rows alone, on rows with their own labels.
        before: the same on the people.
        seed: of who is asked, and noise.
    """

    learner: Learner
    split: Split
    kind: Kind
    number: int
    people: KnownRows
    public: float
    before: float
    seed: np.random.SeedSequence

    def gain(self, holders: int, epsilon: float) -> float:
        """By how much the figure of the people is larger after so many of them have answered."""
        predicted = self.learner.learn(self.people, holders, epsilon, self.split.asked, self.seed)
        return _score(self.people, self.split.of_people(predicted)) - self.before


@dataclass(eq=False)
class Forecaster:
    """Forecasts of one problem, all from the same simulated people, so that figures differ by holders and epsilon alone.

    Attributes:
        rows: the public rows.
        build: the family by its epsilon.
        in_rounds: whether it asks parts of the people in turn.
        difference: what the public model may be wrong by.
        by_coins: whether public coins chose the public rows, so that private people are like them.
        seed: the same figures each time.
        grid: sizes and epsilons that will be forecast: what the family refuses of them it refuses before the other models are
            fitted.
        advance: told which share of the public models is fitted, which takes longest.
    """

    rows: KnownRows
    build: Build
    in_rounds: bool
    difference: Difference
    by_coins: bool = False
    seed: int = 0
    grid: Sequence[tuple[int, float]] = ()
    advance: Callable[[float], None] = lambda _: None
    _learners: list[Learner] = field(default_factory=list)
    _draws: list[_Draw] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.rows.n < FEWEST_ROWS:
            rows = "1 public row" if self.rows.n == 1 else f"{self.rows.n} public rows"
            raise ConfigError(
                f"{rows}: a forecast takes {FEWEST_ROWS}, to fit a model on some and try it on others. Make more rows public."
            )
        if self.rows.n > MOST_ROWS:
            drawn = np.random.default_rng(self.seed).choice(self.rows.n, MOST_ROWS, replace=False)
            self.rows = self.rows.part(np.sort(drawn))
        law = LabelLaw.of(self.rows, self.seed)
        among = [kind for kind in self.kinds if kind != APART]
        draws = DRAWS_IN_ROUNDS if self.in_rounds else DRAWS
        n_apart = N_APART if APART in self.kinds else 0
        learner_of: Callable[..., Learner] = LearnerInRounds if self.in_rounds else LearnerOfTotals
        for number in range(N_SPLITS):
            generator = np.random.default_rng([self.seed, number])
            split, apart = Split.with_apart(self.rows, law, generator, n_apart, in_rounds=self.in_rounds)
            learner = learner_of(self.build, split, self.seed)
            if not self._learners:
                for n, epsilon in self.grid:
                    learner.size(n, epsilon)
            self._learners.append(learner)
            predicted = learner.predict_publicly(self.rows)
            self._play(learner, split, among * draws, predicted, generator, number)
            for group in apart:
                self._play(learner, group, [APART], predicted, generator, number)
            self.advance((number + 1) / N_SPLITS)

    def _play(
        self,
        learner: Learner,
        split: Split,
        kinds: Sequence[Kind],
        predicted: NDArray[Any],
        generator: np.random.Generator,
        number: int,
    ) -> None:
        """Draw people of a split who differ in each of these ways in turn. `predicted`: of all public rows, from them alone."""
        of_asked = predicted[split.asked_at]
        of_held = of_asked[split.held_among_asked]
        for kind in kinds:
            seeds = np.random.SeedSequence([self.seed, number, len(self._draws)]).spawn(2)
            held, people = split.held, split.people
            if kind == "planted":
                held, people = (
                    plant(rows, self.difference, np.random.default_rng(seeds[0])) for rows in (held, people)
                )
            # who will be scored on is a matter of chance too
            weights = generator.multinomial(held.n, np.full(held.n, 1.0 / held.n)) / held.n
            self._draws.append(
                _Draw(
                    learner,
                    split,
                    kind,
                    number,
                    people,
                    public=_score(held, of_held, weights),
                    before=_score(people, split.of_people(of_asked)),
                    seed=seeds[1],
                )
            )

    @property
    def sign(self) -> int:
        """1 where a larger figure is better, -1 where a smaller one is."""
        return -1 if self.rows.is_number else 1

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The ways in which people differ. Where a family asks in rounds, nothing is fitted on public rows that people could
        lie apart from.
        """
        return AMONG if self.by_coins or self.in_rounds else ("planted", APART)

    @property
    def likely(self) -> Kind | None:
        """Return the likely relation of private people to public ones. Coins leave them alike, and a rule makes another
        group of them. None if not known.
        """
        if self.by_coins:
            return "alike"
        return APART if APART in self.kinds else None

    @property
    def largest_error(self) -> float:
        """Return a public model's largest error, as a change of a class's share or in a number's unit."""
        if self.rows.is_number:
            return float(self.rows.label[1] - self.rows.label[0])
        shares = np.bincount(self.rows.labels, minlength=len(self.rows.label)) / self.rows.n
        return float(max(shares.max(), 1.0 - shares.min()))

    @property
    def public(self) -> dict[str, Expected]:
        """The figures of public rows alone."""
        return {
            str(kind): Expected.of([draw.public for draw in self._draws if draw.kind == kind])
            for kind in self.kinds
        }

    def forecast(
        self,
        sizes: Sequence[int],
        epsilons: Sequence[float],
        advance: Callable[[float], None] = lambda _: None,
    ) -> tuple[Forecast, ...]:
        """Forecast every size at every epsilon, both increasing, with all sizes of the first epsilon, then of the next.

        Gains with the planted difference, what they surely are above, and the smallest error found are made monotone
        (`monotone`), and with them the verdict.

        Args:
            sizes: numbers of people.
            epsilons: what each of them spends.
            advance: told which share of them is simulated.
        """
        cells = [(n, epsilon) for epsilon in epsilons for n in sizes]
        changes, findables = [], []
        for n, epsilon in cells:
            changes.append(self._simulate(self._draws, n, epsilon))
            findables.append(self.find_smallest(n, epsilon))
            advance(len(changes) / len(cells))
        gains = self.sign * np.array(changes)
        shape = len(epsilons), len(sizes)
        planted = [self._of("planted", values) for values in gains]
        splits = self._of("planted", [draw.number for draw in self._draws])
        means = rise(np.mean(planted, axis=1).reshape(shape)).ravel()
        lowest = rise(np.reshape([lowest_mean(values, splits) for values in planted], shape)).ravel()
        smallest = fall_together(findables, shape)
        return tuple(
            self._describe(cells[at], changes[at], float(means[at]), float(lowest[at]), smallest[at])
            for at in range(len(cells))
        )

    def _describe(
        self,
        cell: tuple[int, float],
        changes: Sequence[float],
        planted: float,
        lowest: float,
        smallest: Findable | None,
    ) -> Forecast:
        """Return the forecast of one size at one epsilon. `planted` is the mean gain with the planted difference."""
        gains = [self.sign * change for change in changes]
        figures = self._figures(self._draws, changes)
        kinds, gain = (
            {str(kind): Expected.of(self._of(kind, values)) for kind in self.kinds}
            for values in (figures, gains)
        )
        by = planted - gain["planted"].mean
        gain["planted"], kinds["planted"] = gain["planted"].moved(by), kinds["planted"].moved(self.sign * by)
        least = LEAST_PART * self.public["planted"].mean if self.rows.is_number else LEAST_GAIN
        is_found = smallest is None or smallest.error <= self.difference.size
        size = self._learners[0].size(*cell)
        return Forecast(
            holders=cell[0],
            epsilon=cell[1],
            cells=size.cells,
            report_bytes=size.report_bytes,
            figure=Expected.of(self._of(self.likely, figures) if self.likely else figures),
            kinds=kinds,
            public=self.public,
            gain=gain,
            least=least,
            smallest=smallest,
            is_worth_it=lowest > 0 and planted >= least and is_found,
        )

    def figure(self, kind: Kind, holders: int, epsilon: float) -> float:
        """The expected figure where people differ in one way."""
        draws = [draw for draw in self._draws if draw.kind == kind]
        return float(np.mean(self._figures(draws, self._simulate(draws, holders, epsilon))))

    def find_smallest(self, holders: int, epsilon: float) -> Findable | None:
        """Find the smallest error that would be found; None where no tree is asked about."""
        learner, (_, seed) = self._learners[0], np.random.SeedSequence([self.seed, 0, 0, 0]).spawn(2)
        return learner.find_smallest(learner.split.people, holders, epsilon, self.difference.share, seed)

    def _simulate(self, draws: Sequence[_Draw], holders: int, epsilon: float) -> list[float]:
        """By how much the figure of each draw's people changes; two at once, in their order."""
        with ThreadPoolExecutor(2) as pool:
            learners = dict.fromkeys(draw.learner for draw in draws)
            _ = [*pool.map(lambda learner: learner.prepare(holders, epsilon), learners)]
            return [*pool.map(lambda draw: draw.gain(holders, epsilon), draws)]

    def _figures(self, draws: Sequence[_Draw], changes: Sequence[float]) -> list[float]:
        """Score the public rows alone on rows with their own labels, and the change that reports make."""
        most = np.inf if self.rows.is_number else 1.0
        return [float(np.clip(draw.public + by, 0.0, most)) for draw, by in zip(draws, changes, strict=True)]

    def _of(self, kind: str, figures: Sequence[T]) -> list[T]:
        return [figure for figure, draw in zip(figures, self._draws, strict=True) if draw.kind == kind]


def _score(rows: KnownRows, predicted: NDArray[Any], weights: NDArray[np.float64] | None = None) -> float:
    """The accuracy, or the mean squared error, of rows with these weights, without any of all alike."""
    scores = (predicted - rows.labels) ** 2 if rows.is_number else predicted == rows.labels
    return float(np.average(scores, weights=weights))
