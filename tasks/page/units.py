"""Write a page's figures, such as counts, shares, labels with errors, times and conditions, but no sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from typing import Literal

from ldptree.models.description import Condition, Estimate
from tasks.page.data import Run

NARROW = "\u202f"
FIXED = "\u00a0"
MINUS = "\u2212"
MOST_DIGITS = 9
MOST_MORE = 3
"""Decimals that a figure may have beyond the usual ones."""
SUFFIXES = {"share": f"{NARROW}%", "points": f"{FIXED}points"}
LARGE = {1e12: "trillion", 1e9: "billion", 1e6: "million"}
MISSING = ("unknown", "missing")
"""Levels that say, in any case, that there is no value."""
CURRENCIES = ("$", "€", "£", "¥")
"""Units that stand before their figure."""


def count(n: float) -> str:
    """Write a whole number with thousands marked, such as 14909 as "14,909"."""
    return f"{round(n):,}".replace("-", MINUS)


def plural(n: int, single: str, many: str) -> str:
    """Write a count with its noun, such as "1 cell" or "12 cells"."""
    return f"{count(n)} {single if n == 1 else many}"


def percent(share: float, digits: int = 1) -> str:
    """Write a share in [0, 1] as a percentage, such as 0.634 as "63.4 %"."""
    return f"{fixed(100 * share, digits)}{NARROW}%"


def portion(value: float) -> str:
    """Write a share for people in whole percents, or "under 1 %" if it would round to nothing."""
    if 0 < value < 0.01:
        return f"under 1{NARROW}%"
    return percent(max(value, 0.0), 0)


def of_hundred(chance: float) -> str:
    """Write how many times in 100, never none and never all, such as 0.17 as "17"."""
    if chance < 0.01:
        return "fewer than 1"
    return "more than 99" if chance > 0.99 else f"{100 * chance:.0f}"


def bound(value: float, digits: int = 1) -> str:
    """A figure that is not exceeded, rounded up."""
    return fixed(math.ceil(value * 10**digits) / 10**digits, digits)


def most_percent(share: float) -> str:
    """A share that is not exceeded as a percentage, with more decimals where one below 1 would be rounded up to 100."""
    ups = (bound(100 * share, digits) for digits in range(1, MOST_DIGITS))
    return f"{next((up for up in ups if float(up) < 100), '100.0')}{NARROW}%"


def decimal(value: float, digits: int = 3) -> str:
    """A plain figure such as an AUC; a dash where it is not a number, ∞ where it has no bound."""
    if math.isnan(value):
        return "–"
    return "∞" if math.isinf(value) else fixed(value, digits)


def chance(probability: float) -> str:
    """A probability, with more decimals where it is small."""
    return decimal(probability, 3 if probability >= 0.01 else 5)


def epsilon(value: float) -> str:
    """Write a budget as short as possible and without a line break, such as 4.0 as "ε = 4"."""
    return f"ε{FIXED}={FIXED}{value:.6g}"


def exact_epsilon(value: float) -> str:
    """Write a recomputed budget with nine decimals in groups of three, rounded up and so never less than `value`."""
    whole, part = f"{Decimal(value).quantize(Decimal('1e-9'), rounding=ROUND_CEILING):f}".split(".")
    return f"ε{FIXED}≤{FIXED}{whole}.{part[:3]}{NARROW}{part[3:6]}{NARROW}{part[6:]}"


def seconds(value: float) -> str:
    """Write a duration, such as "0.4 s", or 72 s as "1 min 12 s"."""
    if value < 60:
        return f"{value:.1f}{NARROW}s" if value < 9.95 else f"{value:.0f}{NARROW}s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes}{NARROW}min {rest}{NARROW}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}{NARROW}h {minutes}{NARROW}min"


def memory(megabytes: float) -> str:
    """Write a size in memory, such as "640 MB" or "1.4 GB"."""
    return f"{megabytes:.0f}{NARROW}MB" if megabytes < 1000 else f"{megabytes / 1000:.1f}{NARROW}GB"


def date(iso: str) -> str:
    """Write an ISO 8601 time as "21 November 2026, 11:28". Text that cannot be read stays as it is."""
    try:
        when = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    return f"{when.day} {when:%B %Y}, {when:%H:%M %Z}".rstrip()


def cut(name: str, most: int) -> str:
    """A name of so many letters at most, cut in its middle, as ends tell neighbours apart."""
    half = most // 2
    return name if len(name) <= most else f"{name[:half].rstrip()}…{name[-half + 1 :].lstrip()}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Join words as a person would, such as "a, b and c"."""
    return f" {last} ".join([", ".join(words[:-1]), *words[-1:]] if len(words) > 1 else words)


def digits_of(size: float) -> int:
    """Decimals that leave numbers of this size three figures, none where they have them before the point."""
    if not 0 < size < math.inf:
        return 2
    return min(max(2 - math.floor(math.log10(size)), 0), MOST_DIGITS)


def fixed(value: float, digits: int, *, signed: bool = False) -> str:
    """A number with thousands marked and so many decimals; no sign before a zero."""
    if not math.isfinite(value):
        return decimal(value)
    text = f"{value:{'+' if signed else ''},.{digits}f}"
    if not any(figure in text for figure in "123456789"):
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


def in_words(size: float) -> tuple[float, str]:
    """Return the unit for numbers of this size and its name, as (1e9, "billion"), or (1, "") below a million."""
    return next(((unit, word) for unit, word in LARGE.items() if unit <= size < math.inf), (1.0, ""))


def figures(value: float, n: int, *, sign: str = "") -> str:
    """Write a number rounded to n figures, without exponent unless tiny, as "8.88 billion", "176,000", "0.0418"."""
    rounded = float(f"{value:.{n}g}") + 0.0  # a negative zero is none
    if not 1e-6 < abs(rounded) < math.inf:
        return f"{rounded:{sign}g}"
    unit, word = in_words(abs(rounded))
    digits = max(n - 1 - math.floor(math.log10(abs(rounded) / unit)), 0)
    return f"{rounded / unit:{sign},.{digits}f} {word}".rstrip()


def raw_number(value: float, *, marked_from: int = 10_000) -> str:
    """A number of the raw data, short; thousands are marked from five figures on, as 2019 may be a year."""
    rounded = round(value)
    if abs(value - rounded) < 1e-9 * max(1.0, abs(value)):
        text = f"{rounded:{',' if abs(rounded) >= marked_from else ''}}"
    else:
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", MINUS)


def measured(figure: str, unit: str) -> str:
    """A figure with its unit behind it; a currency's sign stands before it, and its decimals are two."""
    if unit not in CURRENCIES:
        return f"{figure}{FIXED}{unit}" if unit else figure
    sign = figure[0] if figure[0] in f"+{MINUS}" else ""
    return f"{sign}{unit}{figure[len(sign) :]}"


def marked_from(*values: float) -> int:
    """Return the number from which thousands are marked, which is the same for both ends of a stretch."""
    fractions = any(abs(value) >= 1000 and value != round(value) for value in values)
    return 1_000 if fractions or any(abs(value) >= 10_000 for value in values) else 10_000


def raw_measured(value: float, unit: str, *, marked_from: int = 10_000) -> str:
    """Write a number of the raw data with its unit, such as "$4.50", "12 km", or 150 s as "2 min 30 s"."""
    if unit == "s" and value >= 60:
        return seconds(value)
    figure = raw_number(value, marked_from=1_000 if unit else marked_from)
    if unit in CURRENCIES and "." in figure and len(figure.partition(".")[2]) == 1:
        figure += "0"
    return measured(figure, unit)


def once(first: str, second: str) -> str:
    """The first of two figures without "billion", where it stands behind the second one too."""
    return next(
        (
            first.removesuffix(f"{FIXED}{word}")
            for word in LARGE.values()
            if first.endswith(word) and second.endswith(word)
        ),
        first,
    )


def tell_apart(value: float, other: float, write: Unit) -> int:
    """Return how many decimals more than usual tell two figures apart, at most three."""
    differ = (more for more in range(MOST_MORE) if write.bare(value, more) != write.bare(other, more))
    return next(differ, 0 if value == other else MOST_MORE)


def apart(value: float, other: float, write: Unit) -> tuple[str, str]:
    """Two figures with as many decimals as tell them apart, at most three more than usual."""
    more = tell_apart(value, other, write)
    return write.value(value, more), write.value(other, more)


def alike(values: Sequence[float], write: Unit, least: int = 0) -> list[str]:
    """Figures without their unit, with as many decimals as show that none but a zero is one, `least` to three more than usual."""

    def show(more: int) -> list[str]:
        return [write.bare(value, more) for value in values]

    def seen(figures: Sequence[str]) -> int:
        return sum(any(digit in figure for digit in "123456789") for figure in figures)

    return next(
        text for more in range(least, MOST_MORE + 1) if seen(text := show(more)) == seen(show(MOST_MORE))
    )


@dataclass(frozen=True)
class Unit:
    """The unit of figures of one kind, each written with its error.

    Attributes:
        kind: "share" (63.4 %), "points" of 100 (signed where differences are), or "number" in the label's unit.
        spread: a typical difference of a number: how many decimals it has.
        name: the label's unit.
        signed: whether a plus is written.
    """

    kind: Literal["share", "points", "number"]
    spread: float = 1.0
    name: str = ""
    signed: bool = False

    def bare(self, value: float, more: int = 0) -> str:
        """The figure without its unit."""
        if self.kind == "number":
            unit, word = in_words(self.spread)
            text = fixed(value / unit, digits_of(self.spread / unit) + more, signed=self.signed)
            return f"{text}{FIXED}{word}" if word else text
        return fixed(100 * value, 1 + more, signed=self.signed)

    def rounded(self, value: float, more: int = 0) -> float:
        """The number that the figure states."""
        if self.kind == "number":
            unit, _ = in_words(self.spread)
            return round(value / unit, digits_of(self.spread / unit) + more) * unit
        return round(100 * value, 1 + more) / 100

    def value(self, value: float, more: int = 0) -> str:
        """The figure with its unit."""
        if self.kind == "share":
            return percent(value, 1 + more)
        return self.with_name(self.bare(value, more))

    def with_name(self, figure: str) -> str:
        """A number with the label's unit."""
        return measured(figure, self.name)

    def error(self, sd: float) -> str:
        """Write two standard deviations, such as "± 2.2", and never as nothing."""
        unit, word = in_words(self.spread) if self.kind == "number" else (0.01, "")
        scaled = 2 * sd / unit
        digits = digits_of(self.spread / unit) if self.kind == "number" else 1
        while 0 < scaled < 0.5 * 10.0**-digits and digits < MOST_DIGITS:
            digits += 1
        return f"±{FIXED}{fixed(scaled, digits)}{f'{FIXED}{word}' if word else ''}"

    def estimate(self, estimate: Estimate | None, *, with_unit: bool = False) -> str:
        """A figure with its error, a dash where there is none."""
        if estimate is None:
            return "–"
        text = self.bare(estimate.value)
        if estimate.error is not None:
            text += f" {self.error(estimate.error / 2)}"
        elif estimate.sd is not None:
            low, high = (self.bare(end) for end in estimate.ends)
            text += f" ({low} to {high})"
        if not with_unit:
            return text
        return text + SUFFIXES[self.kind] if self.kind in SUFFIXES else self.with_name(text)

    @property
    def title(self) -> str:
        """Heading of a column of such figures."""
        return {"share": "%", "points": "points"}.get(self.kind, self.name)


def label_unit(run: Run, *, signed: bool = False) -> Unit:
    """Return the label's unit, for shares of classes or a number."""
    if run.label == "class":
        return Unit("points", signed=True) if signed else Unit("share")
    return Unit("number", run.label_sd, run.unit, signed)


def cell_unit(run: Run) -> Unit:
    """Return the unit of the model's estimates, which are shares, numbers or signed corrections."""
    return label_unit(run, signed=run.model.figure == "correction")


def scale(run: Run) -> float:
    """Return the factor of an axis's labels, which are percents of shares."""
    return 100.0 if run.label == "class" else 1.0


def error_unit(errors: Iterable[float]) -> Unit:
    """Return the unit of these errors of numbers, with three figures for the smallest."""
    return Unit("number", min((error for error in errors if error > 0), default=1.0))


def say_condition(condition: Condition, unit: str = "", *, is_whole: bool = False) -> str:
    """Write a condition in words. "trip miles 2.5 to 7" has 7 and not 2.5, and "hour 3 to 7" of whole numbers has both.

    `unit` is what the numbers of its column are measured in, `is_whole` whether its column has whole numbers alone.
    """
    column = condition.column.replace("_", " ")
    if condition.low is not None or condition.high is not None:
        return f"{column} {_say_stretch(condition, unit, is_whole=is_whole and not condition.is_about)}"
    levels = ["missing" if level.lower() in MISSING else level for level in condition.levels or MISSING[1:]]
    if levels == ["missing"]:
        return f"{column} is {'known' if condition.is_not else 'missing'}"
    return f"{column} is {'not ' if condition.is_not else ''}{listed(levels, 'or')}"


def _say_stretch(condition: Condition, unit: str, *, is_whole: bool) -> str:
    low, high = (
        float(f"{end:.3g}") if condition.is_about and end is not None else end
        for end in (condition.low, condition.high)
    )
    if is_whole:
        low = None if low is None else math.floor(low) + 1.0
        high = None if high is None else math.floor(high) + 0.0
    marked = marked_from(*(end for end in (low, high) if end is not None))
    first, last = ("" if end is None else raw_measured(end, unit, marked_from=marked) for end in (low, high))
    if first and last:
        return first if first == last else f"{first} to {last}"
    if first:
        return f"{'from' if is_whole else 'over'} {first}"
    return f"up to {last}"


def say_path(path: Sequence[Condition], run: Run, most: int = 6) -> str:
    """The conditions of a cell; of more than `most` the first and the last ones, which tell neighbours apart."""
    conditions = [
        say_condition(each, run.units.get(each.column, ""), is_whole=each.column in run.whole)
        for each in path
    ]
    if not conditions:
        return f"all {run.nouns}"
    if len(conditions) > most:
        conditions = [conditions[0], "…", *conditions[-(most - 2) :]]
    return ", ".join(conditions)
