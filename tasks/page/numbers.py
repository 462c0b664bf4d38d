"""How the page writes a number: counts, shares, points, labels, times, sizes, epsilon. No sentence is here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Decimal

NARROW = "\u202f"
FIXED = "\u00a0"
MINUS = "\u2212"


def count(n: float) -> str:
    """A whole number with thousands marked: 14909 as "14,909"."""
    return f"{round(n):,}".replace("-", MINUS)


def percent(share: float, digits: int = 1) -> str:
    """A share in [0, 1] as a percentage: 0.634 as "63.4 %"."""
    return f"{100 * share:.{digits}f}{NARROW}%".replace("-", MINUS)


def share(value: float) -> str:
    """A share for people: whole percents, "under 1 %" where it would round to nothing."""
    if 0 < value < 0.01:
        return f"under 1{NARROW}%"
    return percent(max(value, 0.0), 0)


def points(difference: float, *, signed: bool = False) -> str:
    """A difference of shares as percentage points, no unit: 0.0302 as "3.0"; signed, as "+3.0"."""
    text = f"{100 * difference:+.1f}" if signed else f"{abs(100 * difference):.1f}"
    if text in ("-0.0", "+0.0"):
        text = "0.0"
    return text.replace("-", MINUS)


def decimal(value: float, digits: int = 3) -> str:
    """A plain figure such as an AUC; a dash where it is not a number, ∞ where it has no bound."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    return f"{value:.{digits}f}".replace("-", MINUS)


def epsilon(value: float) -> str:
    """A budget as short as it can be written, never torn apart: 4.0 as "ε = 4"."""
    return f"ε{FIXED}={FIXED}{value:.6g}"


def error(sd: float) -> str:
    """Two standard deviations of a share in points: 0.011 as "± 2.2"."""
    return f"±{FIXED}{points(2 * sd)}"


def exact_epsilon(value: float) -> str:
    """A recomputed budget to nine decimals, in groups of three, rounded up: never less than `value`."""
    whole, part = f"{Decimal(value).quantize(Decimal('1e-9'), rounding=ROUND_CEILING):f}".split(".")
    return f"ε{FIXED}≤{FIXED}{whole}.{part[:3]}{NARROW}{part[3:6]}{NARROW}{part[6:]}"


def seconds(value: float) -> str:
    """A duration: "0.4 s", "72 s" as "1 min 12 s"."""
    if value < 60:
        return f"{value:.1f}{NARROW}s" if value < 9.95 else f"{value:.0f}{NARROW}s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes}{NARROW}min {rest}{NARROW}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}{NARROW}h {minutes}{NARROW}min"


def memory(megabytes: float) -> str:
    """A size in memory: "640 MB", "1.4 GB"."""
    return f"{megabytes:.0f}{NARROW}MB" if megabytes < 1000 else f"{megabytes / 1000:.1f}{NARROW}GB"


def date(iso: str) -> str:
    """An ISO 8601 time as "21 November 2026, 11:28"; as it is where it cannot be read."""
    try:
        when = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    return f"{when.day} {when:%B %Y}, {when:%H:%M %Z}".rstrip()


def plural(n: int, one: str, many: str) -> str:
    """A count with its noun: "1 cell", "12 cells"."""
    return f"{count(n)} {one if n == 1 else many}"


def times(rounds: int) -> str:
    """How often: "once", "in 3 reports"."""
    return "once" if rounds == 1 else f"in {count(rounds)} reports"


def listed(words: tuple[str, ...] | list[str]) -> str:
    """Words joined as a person would: "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


MOST_DIGITS = 9


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


def tick(value: float, step: float) -> str:
    """A tick of an axis with that step."""
    return fixed(value, min(max(-math.floor(math.log10(step) + 1e-9), 0), MOST_DIGITS))


@dataclass(frozen=True)
class Measure:
    """How numbers of one unit are written: with as many decimals as their spread calls for.

    Attributes:
        spread: a typical difference between two of them.
        unit: written behind; "" where not known.
    """

    spread: float
    unit: str = ""

    @property
    def digits(self) -> int:
        """Decimals."""
        return digits_of(self.spread)

    def value(self, number: float, *, signed: bool = False) -> str:
        """A number with its unit: "12.40 $"."""
        return self._with_unit(fixed(number, self.digits, signed=signed))

    def span(self, low: float, high: float, *, signed: bool = False) -> str:
        """A stretch with its unit: "3.25 to 76.20 $"."""
        return f"{self.bare(low, signed=signed)} to {self.value(high, signed=signed)}"

    def bare(self, number: float, *, signed: bool = False) -> str:
        """The number alone, where the unit stands elsewhere."""
        return fixed(number, self.digits, signed=signed)

    def at_least(self, number: float) -> str:
        """A positive number with its unit, in more decimals where it is small: never written as nothing."""
        return self._with_unit(fixed(number, self._fine(number)))

    def error(self, sd: float) -> str:
        """Two standard deviations: "± 0.41", never written as nothing."""
        return f"±{FIXED}{fixed(2 * sd, self._fine(2 * sd))}"

    def _fine(self, number: float) -> int:
        digits = self.digits
        while 0 < number < 0.5 * 10.0**-digits and digits < MOST_DIGITS:
            digits += 1
        return digits

    def _with_unit(self, text: str) -> str:
        return f"{text}{FIXED}{self.unit}" if self.unit else text
