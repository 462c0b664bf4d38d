"""Write a plan in words and as a page that loads nothing, with the gain of a collection and its worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ldptree.planning.backwards import Need
from ldptree.planning.detection import LEVEL, POWER
from ldptree.planning.expected import SURE, Expected, Forecast
from ldptree.planning.forecast import LEAST_GAIN, LEAST_PART
from tasks.page.captions import FORECASTS, say
from tasks.page.charts import Axis
from tasks.page.findings import Table
from tasks.page.render import fill
from tasks.page.units import MINUS, MOST_MORE, figures, fixed
from tasks.scoring.forecast import Backwards, CollectionPlan

WAYS = {
    "alike": "like public ones",
    "planted": "the public model wrong as stated",
    "apart": "beyond all public rows",
}
WHERE = {
    "alike": "like public ones",
    "apart": "beyond those that the model is fitted on",
    None: "like public ones",
}
"""Whose figure of public rows alone is said first, by what private people are to public ones (`Forecaster.likely`)."""


@dataclass(frozen=True, kw_only=True)
class PlanWords:
    """Everything a plan says.

    key      of the verdict, in `captions.FORECASTS`.
    verdict  in words.
    lead     what it rests on, and what is expected: sentences.
    grid     a row for each epsilon and number of people.
    needs    what was solved backwards: sentences.
    assumes  how it was computed: sentences.
    """

    key: str
    verdict: str
    lead: tuple[str, ...]
    grid: Table
    needs: tuple[str, ...]
    assumes: tuple[str, ...]


def say_plan(plan: CollectionPlan) -> PlanWords:
    """The words of a plan."""
    first, best = _first(plan), _best(plan.forecasts)
    key = _decide(first, plan.difference.size)
    share = plan.difference.share
    whom = "half of the people" if share == 0.5 else f"{_percent(share)} of the people"
    wrong = f"wrong by {_size(plan, plan.difference.size)} for {whom}"
    figure = "mean squared error" if plan.is_number else "share predicted correctly"
    gain = "Squared error falls by, if wrong" if plan.is_number else "Gain, if wrong"
    least = (
        f"lower the mean squared error by {_percent(LEAST_PART)}"
        if plan.is_number
        else f"gain {_size(plan, LEAST_GAIN)}"
    )
    lead = [
        f"Public rows alone ({plan.n_public:,}): expected {figure} {_figure(plan, plan.public_alone)}, on people "
        f"{WHERE[plan.likely]}.",
        _say_one_answer(plan),
        f"With reports of {first.holders:,} people at epsilon {first.epsilon:g}: {_figure(plan, first.figure)}"
        f"{_say_likely_gain(plan, first)}. That holds if private people are no harder to predict. "
        f"Where the model is {wrong}, expect a {figure} of {_one(plan, first.public['planted'].mean)}. "
        f"There reports {_planted(plan, first)}.",
    ]
    if first.smallest is not None:
        lead.append(
            f"The smallest such error that their reports would find: {_error(plan, first.smallest.error)} "
            f"(power {POWER:g}, level {LEVEL:g})."
        )
        if plan.by_coins:
            if first.smallest.error <= plan.largest_error:
                lead.append(
                    "Public coins chose the public rows: where the model is found to be wrong, it is wrong for everybody."
                )
        elif first.smallest.difference is not None and first.smallest.difference <= plan.largest_error:
            lead.append(
                f"From {_size(plan, first.smallest.difference)} on, they would show that the model is wrong on private people in "
                "particular; a smaller error may be one for everybody."
            )
    return PlanWords(
        key=key,
        verdict=_say_verdict(plan, key, first, best, wrong),
        lead=tuple(lead),
        grid=Table(
            "What each size would bring",
            ("People", "ε", "Expected, 80 %", gain, "Finds", "Groups", "Worth it"),
            tuple(_row(plan, forecast) for forecast in plan.forecasts),
            is_named=False,
        ),
        needs=(*_needs(plan, plan.reach, "reach", wrong), *_needs(plan, plan.detect, "find an error of")),
        assumes=(
            "Private rows are not used; only their number is, if --holders is left out. Public rows on which nothing was fitted "
            "play the private people.",
            _say_interval(plan, wrong),
            f"{gain}: beside public rows alone, on people where the public model is {wrong}. Finds: the smallest such error that "
            f"the reports would find, wherever it is. They find it in {_percent(POWER)} of collections; noise alone looks so in "
            f"{_percent(LEVEL)}. Worth it: they {least} or more, which is above 0 at a confidence of {_percent(SURE)}, and find "
            f"the error. “{gain}” and “Finds” are smoothed, so that neither gets worse with more people or a larger epsilon. "
            "“Expected” is not: it rises and falls by chance.",
            *_say_interpolation(plan),
        ),
    )


def render_plan(plan: CollectionPlan, *, name: str, version: str) -> str:
    """The page of a plan."""
    words = say_plan(plan)
    ends = [end for forecast in plan.forecasts for end in (forecast.figure.low, forecast.figure.high)]
    axis = Axis.of([*ends, plan.public_alone.mean])
    return fill(
        "plan.html.j2",
        title=name,
        version=version,
        words=words,
        heading=words.verdict.partition(". ")[0].removesuffix(".") + ".",
        rest=words.verdict.partition(". ")[2],
        plan=plan,
        forecasts=FORECASTS,
        axis=axis,
        scale=1.0 if plan.is_number else 100.0,
        figure=lambda expected: _figure(plan, expected),
    )


def describe_plan(plan: CollectionPlan, name: str) -> dict[str, Any]:
    """A plan as plain values, for `--json`."""
    return {
        "name": name,
        "estimator": plan.estimator,
        "epsilon": plan.epsilon,
        "label": "number" if plan.is_number else "class",
        "figure": "mse" if plan.is_number else "accuracy",
        "n_public": plan.n_public,
        "one_answer": plan.one_answer,
        "difference": asdict(plan.difference),
        "level": LEVEL,
        "power": POWER,
        "collect": _first(plan).is_worth_it,
        "verdict": (words := say_plan(plan)).key,
        "says": words.verdict,
        "public": {kind: asdict(expected) for kind, expected in plan.public.items()},
        "grid": [asdict(forecast) for forecast in plan.forecasts],
        "reach": None if plan.reach is None else asdict(plan.reach),
        "detect": None if plan.detect is None else asdict(plan.detect),
    }


def _first(plan: CollectionPlan) -> Forecast:
    """The best size at the configuration's own epsilon, which is told of first; of all where it is not in the grid."""
    return _best(
        [forecast for forecast in plan.forecasts if forecast.epsilon == plan.epsilon] or plan.forecasts
    )


def _best(forecasts: Sequence[Forecast]) -> Forecast:
    """Return the cheapest forecast that is worth it, by people and then epsilon, or the one that gains most."""
    if worth := [forecast for forecast in forecasts if forecast.is_worth_it]:
        return min(worth, key=lambda forecast: (forecast.holders, forecast.epsilon))
    return max(forecasts, key=lambda forecast: (forecast.gain["planted"].mean, forecast.holders))


def _decide(first: Forecast, size: float) -> str:
    """Return the key of `captions.FORECASTS` that a forecast comes to, beside a public model that is wrong by this size."""
    if first.is_worth_it:
        return "better"
    return "close" if first.is_enough or _is_blind(first, size) else "alike"


def _is_blind(forecast: Forecast, size: float) -> bool:
    return forecast.smallest is not None and forecast.smallest.error > size


def _say_verdict(plan: CollectionPlan, key: str, first: Forecast, best: Forecast, wrong: str) -> str:
    """Say what the configuration's own epsilon, the `first`, is worth; then what the `best` is, where that alone is worth it."""
    own = ", as configured," if first.epsilon == plan.epsilon else ""
    where = f"epsilon {first.epsilon:g}{own}" if own else "these sizes"
    blind = _is_blind(first, plan.difference.size)
    finds = "" if first.smallest is None else _found(plan, first)
    sentences = [
        say(
            f"plan {key}",
            people=f"{first.holders:,}",
            epsilon=f"{first.epsilon:g}",
            own=own,
            where=where.rstrip(","),
            wrong=wrong,
            does=_planted(plan, first),
            doubt=f"and find {finds}" if blind else "too noisy to count on",
        )
    ]
    if key == "alike" and finds:
        sentences.append(say("plan finds", finds=finds))
    if key != "better" and best.is_worth_it:
        sentences.append(
            say(
                "plan instead",
                people=f"{best.holders:,}",
                epsilon=f"{best.epsilon:g}",
                size=_size(plan, plan.difference.size),
                does=_planted(plan, best),
            )
        )
    beyond = first.gain.get("apart")
    if key != "better" and beyond is not None and beyond.mean >= first.least:
        sentences.append(say("plan beyond", whom=WHERE["apart"], does=_gains(plan, beyond.mean)))
    return " ".join(sentence.text for sentence in sentences)


def _say_one_answer(plan: CollectionPlan) -> str:
    """Say what needs no model, and whether the public one is better by more than its interval."""
    always = (
        f"the mean has a mean squared error of {_one(plan, plan.one_answer)} on"
        if plan.is_number
        else f"the most common class is right for {_one(plan, plan.one_answer)} of"
    )
    public, sign = plan.public_alone, -1 if plan.is_number else 1
    doubt = ""
    if sign * ((public.high if plan.is_number else public.low) - plan.one_answer) <= 0:
        doubt = f" The public model, at {_figure(plan, public)}, is not clearly better"
        if sign * (public.mean - plan.one_answer) <= 0:
            doubt += ", and there may be nothing to learn"
    return f"Always predicting {always} public rows.{doubt and f'{doubt}.'}"


def _found(plan: CollectionPlan, first: Forecast) -> str:
    """Say which errors of the public model reports would find."""
    assert first.smallest is not None
    least = _error(plan, first.smallest.error)
    return "no error" if least == "none" else f"errors from {least} on"


def _say_likely_gain(plan: CollectionPlan, first: Forecast) -> str:
    """By how much reports better the figure of the people whom it is of."""
    if plan.likely is None:
        return ""
    gain = first.gain[plan.likely]
    better, worse = ("lower", "higher") if plan.is_number else ("higher", "lower")
    low, high, by = gain.low, gain.high, f"{better} by {_gain(plan, gain.mean)}"
    if _gain(plan, abs(gain.mean)) == _gain(plan, 0.0):
        by = f"no {better}"
    elif gain.mean < 0:
        low, high, by = -gain.high, -gain.low, f"{worse} by {_gain(plan, -gain.mean)}"
    return f", {by} ({_gain(plan, low).removesuffix(' points')} to {_gain(plan, high)})"


def _say_interval(plan: CollectionPlan, wrong: str) -> str:
    whom = f"The table and the verdict are for people on whom the public model is {wrong}."
    if plan.by_coins:
        return (
            "Public coins chose the public rows, so private people are like them. The interval holds in 80 % of simulated "
            f"collections, over who is asked, and noise. {whom}"
        )
    how = (
        "The interval comes from groups held out of the public rows, each outside the range the model was fitted on. It "
        "allows for who is asked and for noise"
        if "apart" in plan.public
        else "The interval holds in 80 % of simulated collections, over who is asked, noise, and how they may differ: "
        + "; ".join(WAYS[kind] for kind in plan.public)
    )
    return (
        f"A rule chose the public rows, so private people may be another group. {how}. If they differ by more, it is too narrow. "
        f"{whom}"
    )


def _row(plan: CollectionPlan, forecast: Forecast) -> tuple[str, ...]:
    return (
        f"{forecast.holders:,}",
        f"{forecast.epsilon:g}",
        _figure(plan, forecast.figure),
        _gain(plan, forecast.gain["planted"].mean, forecast.least),
        "not stated" if forecast.smallest is None else _error(plan, forecast.smallest.error),
        "none" if forecast.cells is None else f"{forecast.cells:,}",
        "yes" if forecast.is_worth_it else "no",
    )


def _needs(plan: CollectionPlan, backwards: Backwards | None, to: str, wrong: str = "") -> tuple[str, ...]:
    """Say what a wanted result needs. `wrong` is how far off the public model is for the people in question."""
    if backwards is None:
        return ()
    where = f" where the public model is {wrong}" if wrong else ""
    wanted = _one(plan, backwards.wanted) if to == "reach" else _size(plan, backwards.wanted)
    if backwards.is_reached:
        return (f"To {to} {wanted}{where}: already reached, the public model alone is expected to do it.",)
    return (
        *(
            f"To {to} {wanted}{where}, at epsilon {need.given:g}: {_people(need)}."
            for need in backwards.holders
        ),
        *(
            f"To {to} {wanted}{where}, with {need.given:,.0f} people: {_epsilon(need)}."
            for need in backwards.epsilon
        ),
    )


def _say_interpolation(plan: CollectionPlan) -> tuple[str, ...]:
    """Say what an answer that was solved backwards is, where there is one."""
    if not any(backwards and not backwards.is_reached for backwards in (plan.reach, plan.detect)):
        return ()
    return (
        "What it takes lies between sizes that were tried, where the number of groups may change: less may do. "
        "Name more sizes with --holders: the answer is never more than a row of the table that reaches it.",
    )


def _people(need: Need) -> str:
    return f"more than {need.most:,.0f} people" if need.needed is None else f"about {need.needed:,.0f} people"


def _epsilon(need: Need) -> str:
    return f"an epsilon above {need.most:g}" if need.needed is None else f"about epsilon {need.needed:g}"


def _figure(plan: CollectionPlan, expected: Expected) -> str:
    mean, low, high = (_one(plan, value) for value in (expected.mean, expected.low, expected.high))
    return f"{mean.removesuffix(' %')} ({low.removesuffix(' %')} to {high})"


def _one(plan: CollectionPlan, value: float) -> str:
    return figures(value, 3) if plan.is_number else f"{100 * value:.1f} %"


def _gain(plan: CollectionPlan, gain: float, least: float = 0.0) -> str:
    """A gain; one below the `least` that counts is not written as that."""
    return _size(plan, gain) if gain >= least or plan.is_number else _unlike(plan, gain, least)


def _gains(plan: CollectionPlan, gain: float, least: float = 0.0) -> str:
    """Say what reports do after "would", such as "gain 0.4 points" or "lose 0.4 points"."""
    size = _gain(plan, abs(gain), least)
    is_loss = gain < 0 and size != _gain(plan, 0.0)
    if plan.is_number:
        return f"{'raise' if is_loss else 'lower'} the mean squared error by {size}"
    return f"{'lose' if is_loss else 'gain'} {size}"


def _planted(plan: CollectionPlan, forecast: Forecast) -> str:
    """The same where the public model is wrong as stated."""
    return _gains(plan, forecast.gain["planted"].mean, forecast.least)


def _size(plan: CollectionPlan, size: float, more: int = 0) -> str:
    if plan.is_number:
        return figures(size, 2 + more).replace("-", MINUS)
    return f"{fixed(100 * size, 1 + more)} points"


def _unlike(plan: CollectionPlan, size: float, other: float) -> str:
    """A size with as many figures as tell it from another, at most three more than usual."""
    texts = (_size(plan, size, more) for more in range(MOST_MORE + 1))
    return next((text for text in texts if text != _size(plan, other)), _size(plan, size))


def _error(plan: CollectionPlan, error: float) -> str:
    """An error that is found, if a public model can be wrong by so much; one above what is stated is not written as that."""
    if error > plan.largest_error:
        return "none"
    stated = plan.difference.size
    return _size(plan, error) if error <= stated else _unlike(plan, error, stated)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
