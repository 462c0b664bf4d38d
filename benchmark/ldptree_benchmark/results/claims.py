"""Claims of a suite, in a Python file `NAME.py` beside `NAME.toml`, whose asserts decide.

    claims = Claims()

    @claims(1, 4)
    def _(s):
        "The correction is .03 above a public forest"
        assert s.show(s.mean("correction") - s.mean("public-forest"), "+") >= 0.03

A claim is checked at each of its epsilons; without any, once. Its docstring says what is claimed, and what it shows is told
beside that.
"""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ldptree.errors import ConfigError
from ldptree_benchmark.results.ranks import rank_methods
from ldptree_benchmark.results.scores import Scores
from ldptree_benchmark.suite import COLUMNS, Column, Suite, check_one_of, load_suite

Printed = Mapping[str, Any]
"""A table of a paper."""
Figure = TypeVar("Figure", float, Sequence[float])


class NotMeasuredError(Exception):
    """A score that a claim reads is not there."""


class LeftOutError(Exception):
    """A claim reads what the part of the suite that was asked for does not have."""


@dataclass(frozen=True)
class Claim:
    """A claim stated before its measurement. `is_paper` is set for a run with --paper, and no other checks it."""

    says: str
    epsilons: tuple[float, ...]
    is_paper: bool
    check: Callable[[Reading], None]


@dataclass(frozen=True)
class Checked:
    """A claim, whether it held, its figures, and the columns that it read, None where a score is missing."""

    says: str
    held: bool | None
    shown: str
    columns: frozenset[Column] = frozenset()


class Claims(list[Claim]):
    """The claims of one suite, in their order."""

    def __call__(
        self, *epsilons: float, paper: bool = False, says: str = ""
    ) -> Callable[[Callable[[Reading], None]], None]:
        """Add the decorated function of a `Reading`, whose AssertionError refutes `says` or its docstring."""
        return lambda check: self.append(
            Claim(" ".join((says or check.__doc__ or "").split()), epsilons, paper, check)
        )

    def check(
        self, whole: Suite, scores: Scores, printed: Printed | None, *, is_paper: bool
    ) -> list[Checked]:
        """Check every claim that the scores, of the whole suite or of a part, can be asked for."""
        asked = (_check(claim, whole, scores, printed or {}) for claim in self if claim.is_paper <= is_paper)
        return [checked for checked in asked if checked is not None]


def read_claims(suite: Suite) -> Claims:
    """Run the file beside the suite's, if there is one. Raises ConfigError if it fails, or has no claims."""
    if not suite.source or not (path := Path(suite.source).with_suffix(".py")).is_file():
        return Claims()
    try:
        claims = runpy.run_path(str(path)).get("claims")
    except Exception as fault:
        raise ConfigError(f"{path}: cannot be run ({type(fault).__name__}: {fault})") from None
    if not isinstance(claims, Claims):
        raise ConfigError(f"{path}: no claims are in it; write claims = Claims()")
    return claims


def check_claims(scores: Scores, printed: Printed | None, *, is_paper: bool) -> list[Checked]:
    """Check every claim beside the suite's file."""
    claims = read_claims(scores.suite)
    whole = load_suite(scores.suite.source) if claims else scores.suite
    return claims.check(whole, scores, printed, is_paper=is_paper)


def try_claims(suite: Suite, printed: Printed | None) -> None:
    """Check a suite's claims on made-up scores, before any computation. Raises ConfigError if one fails to run."""
    shape = len(suite.sets), len(suite.methods), len(suite.epsilons)
    columns = {column: np.ones(shape) for column in COLUMNS}
    scores = Scores(suite, np.ones((*shape, suite.repetitions)), {}, {}, columns)
    for claim in read_claims(suite):
        try:
            _check(claim, suite, scores, printed or {})
        except Exception as fault:
            raise ConfigError(f'claim "{claim.says}": {fault}') from None


def _check(claim: Claim, whole: Suite, scores: Scores, printed: Printed) -> Checked | None:
    """Return None where it reads what the scores' part of the suite does not have."""
    held: bool | None = True
    shown: list[str] = []
    columns: set[Column] = set()
    for epsilon in claim.epsilons or (None,):
        reading = Reading(whole, scores, printed, epsilon)
        try:
            claim.check(reading)
        except AssertionError:
            held = held and False
        except (NotMeasuredError, ZeroDivisionError):
            held = None
        except LeftOutError:
            return None
        shown += reading.shown
        columns |= reading.columns
    return Checked(claim.says, held, ", ".join(shown), frozenset(columns))


class Reading:
    """Scores as a claim reads them, at one epsilon. Sets are all of the suite where none is named.

    Each method raises NotMeasuredError where a score is not there, and ValueError for a name that the suite does not have.
    """

    def __init__(self, whole: Suite, scores: Scores, printed: Printed, epsilon: float | None) -> None:
        self.shown: list[str] = []
        self.columns: set[Column] = set()
        self._whole, self._scores, self._printed, self._epsilon = whole, scores, printed, epsilon

    def show(self, value: Figure, form: str = "") -> Figure:
        """Tell the figure or figures beside the claim, "+" with their sign, "g" each of them as it is, and return them."""
        values = np.atleast_1d(value).tolist()
        if form == "g":
            text = ", ".join(f"{each:g}" for each in values)
        elif len(values) > 1:
            text = f"{min(values):{form}.4f} to {max(values):{form}.4f}"
        else:
            text = f"{values[0]:{form}.4f}"
        self._tell(text)
        return value

    def mean(self, method: str, *sets: str, of: str = "score") -> float:
        """Average scores over sets, relative to `relative_to` where the suite names it; or a column."""
        if of in COLUMNS:
            self.columns |= {column for column in COLUMNS if column == of}
        chosen = np.isin(self._scores.suite.sets, self._sets(sets))
        averages = self._scores.average_sets(chosen, of)
        place = self._place(method)
        return _measured(float(averages[place, self._scores.suite.epsilons.index(self._at())]))

    def score(self, dataset: str, method: str, epsilon: float | None = None) -> float:
        """Return the score on a set as it is."""
        self._place(method)
        (dataset,) = self._sets((dataset,))
        return _measured(self._scores.mean_of(dataset, method, self._at(epsilon)))

    def steps(self, method: str, *sets: str) -> list[float]:
        """Return the score on each set less that on the set before."""
        return [*np.diff([self.score(name, method) for name in sets])]

    def steps_of_epsilon(self, epsilons: Sequence[float], method: str, *sets: str) -> list[float]:
        """Return the mean over sets at each epsilon less that at the epsilon before."""
        lines = [[self.score(name, method, epsilon) for epsilon in epsilons] for name in self._sets(sets)]
        return [*np.diff(np.mean(lines, axis=0))]

    def lag(self, method: str, *sets: str, among: Sequence[str] = ()) -> float:
        """Return by how much it is worse than the best of the others (of all without any), on the worst set."""
        others, sign = [name for name in self._methods(among) if name != method], self._scores.sign
        return max(
            max(sign * self.score(name, other) for other in others) - sign * self.score(name, method)
            for name in self._sets(sets)
        )

    def is_first(self, method: str, *sets: str, among: Sequence[str] = ()) -> bool:
        """Show the sum of its ranks over sets beside the next method's, and return True where none is less."""
        names = [*dict.fromkeys((method, *self._methods(among)))]
        kept, epsilons = [*self._scores.suite.sets], self._scores.suite.epsilons
        rows = [kept.index(name) for name in self._sets(sets)]
        place = np.ix_(rows, [self._place(name) for name in names], [epsilons.index(self._at())])
        means = self._scores.means[place][:, :, 0]
        _measured(float(means[:, 0].sum()))
        sums = rank_methods(means, self._scores.sign).sum(axis=0)
        best = int(np.argmin(sums[1:])) + 1 if len(sums) > 1 else 0
        self._tell(f"{sums[0]:g}", f" (next {names[best]}: {sums[best]:g})")
        return bool(sums[0] <= sums.min())

    def picked(self, dataset: str, method: str, parameter: str, *, by: str = "") -> float:
        """Return, with --paper, the parameter of the candidate that is best on test rows, or has least of a part of the error."""
        self._place(method)
        (dataset,) = self._sets((dataset,))
        check_one_of(parameter, self._whole.methods[method].candidates, "picked", f"candidate of {method}")
        place = dataset, method, self._at()
        best = self._scores.best.get(place)
        if by:
            able = [each for each in self._scores.tried.get(place, []) if by in each.mean_parts]
            best = min(able, key=lambda each: each.mean_parts[by], default=None)
        return _measured(math.nan if best is None else float(best.candidate.get(parameter, math.nan)))

    def comparable(self, dataset: str, method: str) -> float:
        """Return a score as the paper prints it."""
        self._place(method)
        (dataset,) = self._sets((dataset,))
        return _measured(comparable_score(self._scores, dataset, method, self._at()))

    def printed(self, dataset: str, method: str) -> float:
        """Return the paper's figure, nan where it has none."""
        places = self._whole.printed
        check_one_of(dataset, {} if places is None else places.datasets, "printed", "data set of [printed]")
        check_one_of(method, {} if places is None else places.methods, "printed", "method of [printed]")
        return printed_score(self._whole, self._printed, dataset, method, self._at())

    def away_from_printed(self, method: str, *sets: str) -> float:
        """Return the distance to the paper's figure on the worst set."""
        return max(
            abs(self.comparable(name, method) - _measured(self.printed(name, method))) for name in sets
        )

    def _at(self, epsilon: float | None = None) -> float:
        wanted = self._epsilon if epsilon is None else epsilon
        if wanted is None:
            raise ValueError("the claim names no epsilon")
        self._known(wanted, self._whole.epsilons, self._scores.suite.epsilons, "epsilon")
        return wanted

    def _sets(self, names: Sequence[str]) -> Sequence[str]:
        for name in names or self._whole.sets:
            self._known(name, self._whole.sets, self._scores.suite.sets, "data set")
        return names or self._whole.sets

    def _methods(self, names: Sequence[str]) -> Sequence[str]:
        for name in names or self._whole.methods:
            self._place(name)
        return names or [*self._whole.methods]

    def _place(self, method: str) -> int:
        self._known(method, self._whole.methods, self._scores.suite.methods, "method")
        return [*self._scores.suite.methods].index(method)

    def _known(self, name: Any, whole: Any, part: Any, what: str) -> None:
        if name not in part:
            check_one_of(name, whole, "claims", f"{what} of this suite")
            raise LeftOutError

    def _tell(self, text: str, after: str = "") -> None:
        self.shown.append(text + ("" if self._epsilon is None else f" at eps {self._epsilon:g}") + after)


def _measured(value: float) -> float:
    if math.isnan(value):
        raise NotMeasuredError
    return value


def comparable_score(scores: Scores, dataset: str, method: str, epsilon: float) -> float:
    """Return a score as the paper prints it, divided by that of `relative_to` if it prints ratios."""
    suite, ours = scores.suite, scores.mean_of(dataset, method, epsilon)
    if suite.printed is None or not suite.printed.is_relative or suite.relative_to is None:
        return ours
    return ours / scores.mean_of(dataset, suite.relative_to, epsilon)


def printed_score(
    suite: Suite, printed: Mapping[str, Any], dataset: str, method: str, epsilon: float
) -> float:
    """A figure of the paper in the units of scores; nan where it has none."""
    places, lines = suite.printed, printed.get("epsilon", {}).get(f"{epsilon:g}", {})
    if places is None or dataset not in places.datasets or method not in places.methods:
        return math.nan
    line, column = lines.get(places.datasets[dataset]), places.methods[method]
    if line is None:
        return math.nan
    figures = dict(zip(printed["columns"], line, strict=True))
    return float(figures[column]) / float(figures.get(printed.get("over"), printed.get("scale", 1)))
