"""Propose rules that say who is public in a file: the earliest rows, one group of several, those who agreed, or chance."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from schemas.dataset import FEW_CLASSES
from storage.raw.recognition.findings import means_missing, sql_name
from storage.raw.recognition.odd_texts import fold_text
from storage.sql import literal
from tasks.first_look.values import Column, FirstLook, places

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARE, FEWEST = 0.1, 150
"""Of the rows that are public, and rows at least, while that is no more than half of them."""
LEAST, LARGEST = 0.03, 0.5
"""Share of the rows that one group has."""
GROUPS, ANSWERS = (3, 50), (2, 20)
"""Different values of a column that may tell where a row is from, as two tell what somebody is or said; and who agreed."""
MOST = 3
"""Rules of a kind that are listed."""
CHANCE = 15.0
"""The squared difference between a group's labels and the others', in its standard errors, from which it is no chance."""
KEPT = 0.1
"""Share of the labels' variance that a group keeps. With less it is a consequence of the label."""
BY_SIZE, NUMBERED = 0.5, (1, 12)
"""Share of the difference between groups from which it follows their size: they count or measure something, and name no place.
And the least of numbers that name places, and how many there are.
"""
YEARS = (1990, 2035)
"""Years of numbers that are points in time, as a year or since 1970 in seconds, or in thousandths of them and so on."""
RECORDED = 30
"""Years between dates, at most, at which records are made; between dates of birth there are more."""
KNOWN = 0.95
"""Share of the rows of which the time is known at which they were made. One that is there less often says what happened."""
DAY, YEAR = 86_400, 31_556_952
"""Seconds."""
_CONSENT = re.compile(
    r"consent|agree|permission|opt.?in\b|publi[cs]|shar(?:e|ing)|einwilligung|zustimm|einverst|accord|consentimiento|acepto",
    re.IGNORECASE,
)
"""A name that may stand above answers to whether one's row may be seen."""
YES = re.compile(
    r"yes|y|true|t|1|open|public|agreed|agree|consented|given|granted|accepted|opt(?:ed)?[ _-]?in|ja|j|wahr|erteilt|oui|o|vrai"
    r"|accordé|s[ií]|acepto",
    re.IGNORECASE,
)
RANDOM = "read in the clear. They are like all others, so reports can correct only what the public model gets wrong for everybody"


@dataclass(frozen=True, kw_only=True)
class PublicProposal:
    """A rule of who is public, and why it might be. `is_open`: whether they would have to agree, which nobody knows here."""

    rule: str
    why: str
    is_open: bool = False


def propose_rules(look: FirstLook) -> tuple[PublicProposal, ...]:
    """Return rules that could tell who is public, the one to begin with first, and chance last unless it is that."""
    texts = look.texts.with_columns(_known_label(look))
    share = max(SHARE, min(LARGEST, round(FEWEST / texts.height, 2)))
    random = PublicProposal(rule=f"random {share}", why=RANDOM)
    features = [column for column in look.columns if column.name != look.target]
    earliest = {c.name: _earliest(c, texts, look.target, share, look.sample.n_rows) for c in features}
    times = sorted(filter(None, earliest.values()), key=lambda ranked: ranked[0])
    records = [rule for years, rule in times if years < RECORDED]
    only_years = [rule for years, rule in times if years == RECORDED]
    labels = _Labels.of(look.column(look.target), texts[look.target])
    differing = (_group(column, texts, labels) for column in features if earliest[column.name] is None)
    groups = sorted(filter(None, differing), key=lambda ranked: -ranked[0])
    split = [*records[:1], *(rule for _, rule in groups), *only_years][:MOST]
    others = [rule for _, rule in times if rule not in split][:MOST]
    others += [rule for column in features if (rule := _agreed(column, texts))][:MOST]
    return (*split, *others, random) if split else (random, *others)


def _known_label(look: FirstLook) -> pl.Expr:
    """The target; a class as its spellings are joined, and missing where it says that it is not known."""
    target, is_text = pl.col(look.target), look.column(look.target).type == "text"
    label = {text: fold_text(text) for text in look.texts[look.target].drop_nulls().unique()}
    known = {text: folded for text, folded in label.items() if not means_missing(text)}
    return target.replace_strict(known, default=None, return_dtype=pl.String) if is_text else target


def _earliest(
    column: Column, texts: pl.DataFrame, target: str, share: float, n_rows: int
) -> tuple[float, PublicProposal] | None:
    """The rows before a point in time, or the first ones of a file that is in the order of time; None where there is no one time.

    With the years between the times: 0 where the file is in their order, `RECORDED` of a year alone, in which something else may
    have been made.
    """
    readings = column.finding.readings if column.finding is not None else ()
    is_date = len(readings) == 1 and readings[0].order.startswith("epoch(")
    if not is_date and (readings or column.type != "integer"):
        return None
    placed = np.array(places(column, texts[column.name]), dtype=np.float64)
    is_code = texts[column.name].is_in([str(value) for value in column.apart]).fill_null(value=False)
    rows = texts.select(target).with_columns(
        second=pl.Series(placed if is_date else _seconds(placed)).fill_nan(None),
        step=pl.Series(placed // DAY if is_date else placed).fill_nan(None),
    )
    known = rows.filter(~is_code).drop_nulls("second").sort("second")
    if known.height < max(KNOWN * rows.filter(~is_code).height, LARGEST * texts.height):
        return None
    is_sorted = known.height == texts.height and rows["second"].is_sorted()
    steps = known.group_by("step", maintain_order=True).len()
    before = (steps["len"].cum_sum() - steps["len"]).to_numpy()
    distance = np.abs(np.log(np.maximum(before, 1) / (share * known.height)))
    place = int(np.where((before > 0) & (before <= LARGEST * known.height), distance, np.inf).argmin())
    n_first = int(share * known.height) if is_sorted else int(before[place])
    if known.head(n_first)[target].drop_nulls().n_unique() < 2:
        return None
    point = readings[0].order.removeprefix("epoch(").removesuffix(")") if is_date else sql_name(column.name)
    first, last = (_bound(steps["step"][i], is_day=is_date) for i in (0, place))
    has_earlier = bool((rows.filter(is_code)["second"] < known["second"][0]).any())
    rule = f"{point} >= {first} AND {point} < {last}" if has_earlier else f"{point} < {last}"
    why = f"the earliest {n_first / texts.height:.0%} of the rows by {column.name}: later people may differ from them"
    if is_sorted:
        return 0.0, PublicProposal(rule=f"first {int(share * n_rows)}", why=why)
    low, high = np.quantile(known["second"], [0.01, 0.99])
    is_year = not is_date and steps["step"][0] <= YEARS[1]
    return RECORDED if is_year else float(high - low) / YEAR, PublicProposal(rule=rule, why=why)


def _bound(step: float, *, is_day: bool) -> str:
    """A day since 1970, or a number, in SQL."""
    day = dt.date(1970, 1, 1) + dt.timedelta(int(step)) if is_day else None
    return f"CAST({literal(str(day))} AS TIMESTAMP)" if day else str(int(step))


def _seconds(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the seconds since 1970 that whole numbers [n] stand for, NaN where they stand for none."""
    first, last = ((year - 1970) * YEAR for year in YEARS)
    for seconds in ((numbers - 1970) * YEAR, *(numbers / 1000**power for power in range(4))):
        is_time = (first <= seconds) & (seconds <= last)
        if is_time.sum() > LARGEST * len(numbers):
            return np.where(is_time, seconds, np.nan)
    return np.full(len(numbers), np.nan)


@dataclass(frozen=True)
class _Labels:
    """The labels [n, k]: of each class whether it is that, or a number; the names of the classes; NaN where there is none."""

    values: NDArray[np.float64]
    classes: tuple[str, ...]

    @classmethod
    def of(cls, column: Column, texts: pl.Series) -> _Labels:
        numbers = np.array(places(column, texts), dtype=np.float64)
        if column.n_values > FEW_CLASSES and np.isfinite(numbers).sum() > len(numbers) / 2:
            return cls(numbers[:, None], ())
        classes = tuple(texts.drop_nulls().value_counts(sort=True)[column.name].head(ANSWERS[1]))
        values = np.array([[text == label for label in classes] for text in texts], dtype=np.float64)
        return cls(np.where(texts.is_null().to_numpy()[:, None], np.nan, values), classes)

    def tell(self, here: NDArray[np.float64], elsewhere: NDArray[np.float64]) -> str:
        """Of two means [k], the most different ones."""
        if not self.classes:
            return f"{here[0]:.4g} against {elsewhere[0]:.4g} on average"
        most = int(np.abs(here - elsewhere).argmax())
        return f"{self.classes[most]} {here[most]:.0%} against {elsewhere[most]:.0%}"


def _group(column: Column, texts: pl.DataFrame, labels: _Labels) -> tuple[float, PublicProposal] | None:
    """Of a column that names groups the one nearest in size to what is sought, of those whose labels differ by more than chance.

    With the share of the labels' variance that this is.
    """
    finding = column.finding
    is_name = finding is None or finding.is_code or not any(reading.order for reading in finding.readings)
    is_few = GROUPS[0] <= column.n_values <= (GROUPS[1] if column.type == "text" else NUMBERED[1])
    if not is_name or not is_few or column.type not in ("text", "integer") or _CONSENT.search(column.name):
        return None
    folded = _fold(column, texts)
    held = texts.select(value=folded)["value"]
    is_there = held.is_not_null().to_numpy() & np.isfinite(labels.values).all(axis=1)
    held, known = held.filter(pl.Series(is_there)), labels.values[is_there]
    n, variance = len(held), known.var(axis=0).sum() if is_there.any() else 0.0
    if not variance or _are_sizes(held, known):
        return None
    values, group = np.unique(held.to_numpy().astype(str), return_inverse=True)
    sizes, means = _means(group, known)
    others = (n * known.mean(axis=0) - sizes[:, None] * means) / np.maximum(n - sizes, 1)[:, None]
    differs = sizes * (n - sizes) / n**2 * np.square(means - others).sum(axis=1) / variance
    kept = np.array([known[group == i].var(axis=0).sum() for i in range(len(values))]) / variance
    share = sizes / texts.height
    fits = (n * differs > CHANCE) & (kept >= KEPT) & (share >= LEAST) & (share <= LARGEST)
    if not fits.any():
        return None
    distance = np.abs(np.log(share / max(SHARE, FEWEST / texts.height)))
    place = int(np.where(fits, distance, np.inf).argmin())
    why = (
        f"one of {len(values)} values of {column.name}, {share[place]:.0%} of the rows, where labels differ from elsewhere: "
        + labels.tell(means[place], others[place])
    )
    return float(differs[place]), PublicProposal(rule=_equal(column, values[place], folded), why=why)


def _means(
    group: NDArray[np.int64], known: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows of each group [g], and the mean labels [g, k]."""
    sizes = np.bincount(group)
    return sizes, np.column_stack([np.bincount(group, weights=each) for each in known.T]) / sizes[:, None]


def _are_sizes(held: pl.Series, known: NDArray[np.float64]) -> bool:
    """True where values begin with numbers, as those of a count, a scale or a range: from 0 on, or going with labels [n, k]."""
    size = held.str.extract(r"^\D?([0-9]+)").cast(pl.Float64)
    if size.null_count() or size.n_unique() < 2:
        return False
    centred, away = known - known.mean(axis=0), size.to_numpy() - size.to_numpy().mean()
    sizes, means = _means(size.rank("dense").to_numpy() - 1, centred)
    along = np.square(away @ centred).sum() / np.square(away).sum()
    is_along = along > BY_SIZE * (sizes * np.square(means).sum(axis=1)).sum()
    return bool(is_along or size.to_numpy().min() < NUMBERED[0])


def _agreed(column: Column, texts: pl.DataFrame) -> PublicProposal | None:
    """Those who say yes in a column that may be about consent; whether it is, only a person knows."""
    if not _CONSENT.search(column.name) or not ANSWERS[0] <= column.n_values <= ANSWERS[1]:
        return None
    folded = _fold(column, texts)
    held = texts.select(value=folded)["value"].drop_nulls()
    yes = [value for value in held.unique(maintain_order=True) if YES.fullmatch(value)]
    if not yes:
        return None
    share = (held == yes[0]).sum() / texts.height
    why = f"{share:.0%} of the rows say so, and would be read in the clear: did they agree to that?"
    return PublicProposal(rule=_equal(column, yes[0], folded), why=why, is_open=True)


def _fold(column: Column, texts: pl.DataFrame) -> pl.Expr:
    """The values; without capital letters where they differ in these alone, or a rule would miss some of them."""
    value = pl.col(column.name)
    folded = value.str.strip_chars().str.to_lowercase()
    return folded if texts.select(folded.n_unique() < value.n_unique()).item() else value


def _equal(column: Column, text: str, folded: pl.Expr) -> str:
    if not folded.meta.eq(pl.col(column.name)):
        return f"lower(trim({sql_name(column.name)})) = {literal(text)}"
    value = text if column.type in ("integer", "number") else literal(text)
    return f"{sql_name(column.name)} = {text.lower() if column.type == 'boolean' else value}"
