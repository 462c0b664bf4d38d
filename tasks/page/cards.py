"""The runs of a work folder, as the page that lists them has them, and the runs of a campaign over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self

from schemas.config import RunConfig
from tasks.page import summary, units
from tasks.page.captions import METRICS, say
from tasks.page.charts import Chart, Track
from tasks.page.data import Run, Span

MOST_DRAWN = 12
"""Runs of a campaign that are drawn, the last ones."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """One run in the list of all runs. It shows nothing that its own page does not.

    Attributes:
        name, title: the run's, and the data's.
        created: when it began, in ISO 8601: its page may be of an earlier run, which found the same.
        verdict: a key of `captions.CHIPS`.
        headline: the finding in a sentence; of a failed run why it stopped.
        epsilon: of each holder; 0 where nobody was asked.
        is_trial: whether the holders are a simulation's.
        n_private, n_new: rows that reported, and how many of them in this run.
        campaign: its name; "" where there is none.
        command: the command line that repeats the run, or goes on with it.
        figure: the chief score, or where none was taken the average that reports say; None where there is neither.
        low, high: its 95 % interval, or two standard deviations to each side.
        says, about: the figure as a reader sees it, and what it is of; "" where there is none.
    """

    name: str
    title: str = ""
    created: str = ""
    verdict: str = "unscored"
    headline: str = ""
    epsilon: float = 0.0
    is_trial: bool = False
    n_private: int = 0
    n_new: int = 0
    campaign: str = ""
    command: str = ""
    figure: float | None = None
    low: float = 0.0
    high: float = 0.0
    says: str = ""
    about: str = ""

    @property
    def moment(self) -> float:
        """Return when it began, in seconds since 1970; 0 where that is no time."""
        try:
            return datetime.fromisoformat(self.created).timestamp()
        except ValueError:
            return 0.0

    @classmethod
    def of(cls, run: Run, started: Card, *, has_asked: bool) -> Self:
        """Summarise a run's page. `started` is its card as it began, `has_asked` is whether anybody was asked since."""
        figure, ends, says, about = _find_figure(run)
        words = run.failure.message if run.failure else summary.headline(run).text
        return cls(
            name=run.name,
            title=run.title,
            created=started.created,
            verdict=summary.verdict(run),
            headline=words,
            epsilon=run.privacy.epsilon if has_asked else 0.0,
            is_trial=started.is_trial,
            n_private=run.n_private,
            n_new=run.n_new,
            campaign=run.making.config.get("campaign.name", ""),
            command=started.command,
            figure=figure,
            low=ends.low,
            high=ends.high,
            says=says,
            about=about,
        )

    @classmethod
    def of_started(cls, config: RunConfig, command: str, created: str) -> Self:
        """Return the card of a run that has begun."""
        return cls(
            name=config.name,
            title=config.dataset.title or config.dataset.name,
            created=created,
            verdict="unfinished",
            headline=say("unfinished").text,
            epsilon=config.privacy.epsilon,
            is_trial=config.is_trial,
            campaign=(config.campaign and config.campaign.name) or "",
            command=command,
        )

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote, or the part of it that is known here."""
        return cls(**{key: value[key] for key in cls.__dataclass_fields__ if key in value})

    @property
    def is_whole(self) -> bool:
        """True if the run reached its end."""
        return self.verdict not in ("failed", "waiting", "unfinished")

    def to_dict(self) -> dict[str, Any]:
        """As values that `json.dumps` takes."""
        return asdict(self)


def draw_campaign(every: Iterable[Card], campaign: str) -> Chart | None:
    """Return the last runs of a campaign, oldest first, with their figure, its interval and who reported; None of fewer than two
    runs that ended, or where none has a figure.
    """
    cards = [card for card in every if card.campaign == campaign and card.is_whole]
    cards.sort(key=lambda card: card.moment)
    days = [units.date(card.created).partition(",")[0] for card in cards]
    if len(set(days)) < len(days):
        days = [f"Run {number}, {day}" for number, day in enumerate(days, 1)]
    rows = [
        Track(
            name=day,
            figure=card.says,
            note=say("people", new=units.count(card.n_new), n=units.count(card.n_private)).text,
            role="ours",
            value=card.figure,
            interval=None if card.figure is None else Span(low=card.low, high=card.high),
        )
        for day, card in [*zip(days, cards, strict=True)][-MOST_DRAWN:]
    ]
    scale = 100.0 if cards and cards[-1].says.endswith(units.SUFFIXES["share"]) else 1.0
    has_figure = any(card.figure is not None for card in cards[-MOST_DRAWN:])
    caption = cards[-1].about if cards else ""
    return Chart.of(rows, scale=scale, caption=caption) if len(cards) > 1 and has_figure else None


def _find_figure(run: Run) -> tuple[float | None, Span, str, str]:
    """Return the figure of a run that a campaign is followed by, its ends, the figure in words, and what it is of."""
    if run.scores:
        ours = run.scores.ours
        about = METRICS["accuracy" if run.label == "class" else "rmse"]
        return ours.figure, ours.interval, units.label_unit(run).value(ours.figure), f"{about}."
    average = None if run.failure else summary.find_average(run)
    if average is None:
        return None, Span(low=0.0, high=0.0), "", ""
    about = say("ruler averages", output=average.output, nouns=run.nouns).text
    return average.after, average.ends, average.unit.value(average.after), about
