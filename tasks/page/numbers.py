"""How the page writes a number: counts, shares, points, times, sizes, epsilon. No sentence is here."""

from __future__ import annotations

import math
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
