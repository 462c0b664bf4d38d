"""What a page may say, as patterns, each with what must be so; and that no number on a page goes without one.

A rule's pattern is a regular expression. `{name}` in it stands for a number that is compared with the value of that name, to as
many decimals as the page states; `{name%}` for a share in percent, also "under 1"; `<name>` for words, which are given as they
stand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from page_truth.reading import NUMBER, number, rounding

Truth = Mapping[str, Any]
Known = Callable[[Mapping[str, str]], Truth]
"""From the words of a match to what is so: numbers by name, words by name, and "so": whether the claim is true."""


class UntrueError(AssertionError):
    """A page says what is not so, or what no rule explains."""


def agrees(stated: str, value: float) -> bool:
    """Whether a stated number is that value, rounded."""
    slack = rounding(stated) * (1 + 1e-6) + 1e-9 * abs(value)
    return abs(number(stated) - value) <= slack


def agrees_to_four_figures(stated: str, value: float) -> bool:
    """Whether a number is stated to four figures, whole from a thousand on."""
    if value == 0:
        return number(stated) == 0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    return abs(number(stated) - value) <= 0.5001 * min(unit, 1.0) + (0.0 if abs(value) < 1000 else 1e-9)


def agrees_in_percent(stated: str, share: float) -> bool:
    """Whether a stated percentage is that share."""
    if stated == "under 1":
        return 0 < share < 0.01
    return agrees(stated, 100 * share)


@dataclass(frozen=True)
class Rule:
    """One thing that a page may say."""

    pattern: re.Pattern[str]
    shares: frozenset[str]
    known: Known

    @classmethod
    def of(cls, pattern: str, known: Known | Truth | None = None) -> Rule:
        """A rule; without `known` the pattern states nothing that could be false."""
        shares = frozenset(re.findall(r"\{(\w+)%\}", pattern))
        # a full stop is none where decimals follow
        pattern = re.sub(r"(\}|\)\?)\\\.", r"\1\\.(?!\\d)", pattern)
        expression = re.sub(r"\{(\w+)%\}", lambda m: rf"(?P<{m[1]}>under 1|{NUMBER}) ?%", pattern)
        expression = re.sub(r"\{([a-z_]\w*)\}", lambda m: rf"(?P<{m[1]}>{NUMBER})", expression)
        expression = re.sub(r"(?<!\?P)<(\w+)>", r"(?P<\1>.+?)", expression)
        if known is None:
            return cls(re.compile(expression), shares, lambda _: {})
        if not callable(known):
            fixed = known
            return cls(re.compile(expression), shares, lambda _: fixed)
        return cls(re.compile(expression), shares, known)

    def check(self, found: re.Match[str], where: str) -> None:
        """Raise UntrueError where the match says what is not so."""
        said = {name: text for name, text in found.groupdict().items() if text is not None}
        truth = self.known(said)
        if not truth.get("so", True):
            raise UntrueError(f"{where}: not so: {found.group()!r} ({truth.get('why', '')})")
        for name, text in said.items():
            self._compare(name, text, truth, f"{where}: {found.group()!r}")

    def _compare(self, name: str, text: str, truth: Truth, where: str) -> None:
        if name not in truth:
            if re.fullmatch(rf"under 1|{NUMBER}", text):
                raise UntrueError(f"{where}: nothing says what {name} is")
            return
        value = truth[name]
        if isinstance(value, str):
            if text != value:
                raise UntrueError(f"{where}: {name} is {value!r}, not {text!r}")
        elif not (agrees_in_percent(text, value) if name in self.shares else agrees(text, value)):
            raise UntrueError(f"{where}: {name} is {value}, not {text}")


@dataclass
class Checker:
    """Rules for the blocks of a page; what was found untrue is gathered, so that one look shows everything."""

    faults: list[str] = field(default_factory=list)
    n_numbers: int = 0

    def that(self, is_so: bool, words: str) -> None:
        """Note a fault where something is not so."""
        if not is_so:
            self.faults.append(words)

    def same(self, stated: str, value: float, where: str) -> None:
        """Note a fault where a stated number is not that value."""
        self.n_numbers += 1
        self.that(agrees(stated, value), f"{where}: says {stated}, is {value}")

    def block(self, text: str, rules: Iterable[Rule], where: str, *, whole: bool = False) -> None:
        """Every number of a text is part of what a rule explains; `whole`: every word is."""
        covered = [False] * len(text)
        for rule in rules:
            for found in rule.pattern.finditer(text):
                if found.start() == found.end() or all(covered[found.start() : found.end()]):
                    continue
                try:
                    rule.check(found, where)
                except UntrueError as fault:
                    self.faults.append(str(fault))
                for place in range(found.start(), found.end()):
                    covered[place] = True
        left = "".join(" " if is_told else letter for letter, is_told in zip(text, covered, strict=True))
        self.n_numbers += len(re.findall(NUMBER, text))
        if re.search(r"\d", left) or (whole and re.search(r"\w", left)):
            self.faults.append(f"{where}: no rule explains {re.sub(' +', ' ', left).strip()!r} in {text!r}")
