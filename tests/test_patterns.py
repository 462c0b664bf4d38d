"""No regular expression of the product backtracks more than linearly, on any input.

Every pattern is run by a matcher of our own that counts its steps, on texts that are made of the pattern's own characters:
where a text of twice the length takes three times the steps, or more than a limit, the pattern is not linear. SQL's patterns
(RE2) and those of polars and pydantic (Rust's) are linear by construction.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from itertools import product
from pathlib import Path
from re import _constants as sre
from re import _parser

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("ldptree", "schemas", "storage", "tasks", "flows")
ANCHORED = {"match", "fullmatch"}
FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
SHORT, LONG = 60, 120
"""Characters of a text."""
MOST_STARTS, MOST_WORDS, MOST_LETTERS = 8, 20, 12
FEW = 8
"""Steps to a character that are no sign of anything."""
MOST_STEPS = 100_000
MOST_GROWTH = 3.0


@pytest.fixture(autouse=True)
def deep():
    """Room for a matcher that calls itself for each character."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    yield
    sys.setrecursionlimit(limit)


class TooManyStepsError(Exception):
    """A matcher has taken more steps than any linear one would."""


class Matcher:
    """A backtracking matcher, as `re` is one, that counts its steps.

    A continuation is what is still to be matched, so that an alternative is left exactly where `re` would leave it.
    """

    def __init__(self, pattern, flags=0):
        self.tree = _parser.parse(pattern, flags)
        self.ignores_case = bool(self.tree.state.flags & re.IGNORECASE)
        self.is_dotall = bool(self.tree.state.flags & re.DOTALL)
        self.n_steps = 0

    def count(self, text, *, is_whole, is_anchored):
        """Steps of one search (or one match at the start) in `text`, which fails or succeeds."""
        self.n_steps, self.text, self.groups = 0, text, {}

        def end(place):
            return not is_whole or place == len(text)

        starts = range(1 if is_anchored else len(text) + 1)
        self.matched = any(self._sequence(list(self.tree), 0, start, end) for start in starts)
        return self.n_steps

    def _sequence(self, items, index, place, then):
        if index == len(items):
            return then(place)
        return self._item(items[index], place, lambda after: self._sequence(items, index + 1, after, then))

    def _item(self, item, place, then):
        self.n_steps += 1
        if self.n_steps > MOST_STEPS:
            raise TooManyStepsError
        operation, argument = item
        text = self.text
        match operation:
            case sre.LITERAL | sre.NOT_LITERAL | sre.ANY | sre.IN | sre.CATEGORY:
                fits = place < len(text) and self._fits(operation, argument, text[place])
                return fits and then(place + 1)
            case sre.BRANCH:
                return any(self._sequence(list(branch), 0, place, then) for branch in argument[1])
            case sre.SUBPATTERN:
                group, inner = argument[0], argument[3]

                def close(after):
                    before = self.groups.get(group)
                    self.groups[group] = (place, after)
                    if then(after):
                        return True
                    self.groups[group] = before
                    return False

                return self._sequence(list(inner), 0, place, close)
            case sre.MAX_REPEAT | sre.MIN_REPEAT:
                low, high, inner = argument
                return self._repeat(
                    list(inner), low, high, place, then, 0, is_lazy=operation is sre.MIN_REPEAT
                )
            case sre.POSSESSIVE_REPEAT:
                low, high, inner = argument
                after, n = place, 0
                while n < high and (next_place := self._alone(list(inner), after)) is not None:
                    if next_place == after and n >= low:
                        break
                    after, n = next_place, n + 1
                return n >= low and then(after)
            case sre.ATOMIC_GROUP:
                after = self._alone(list(argument), place)
                return after is not None and then(after)
            case sre.AT:
                return self._is_at(argument, place) and then(place)
            case sre.ASSERT | sre.ASSERT_NOT:
                direction, inner = argument
                wide = _parser.SubPattern(self.tree.state, list(inner)).getwidth()[0] if direction < 0 else 0
                holds = place >= wide and self._alone(list(inner), place - wide) is not None
                return holds == (operation is sre.ASSERT) and then(place)
            case sre.GROUPREF:
                start, stop = self.groups.get(argument) or (0, 0)
                same = text.startswith(text[start:stop], place)
                return same and then(place + stop - start)
        raise NotImplementedError(operation)

    def _alone(self, items, place):
        ends = []

        def keep(after):
            ends.append(after)
            return True

        return ends[0] if self._sequence(items, 0, place, keep) else None

    def _repeat(self, items, low, high, place, then, n, *, is_lazy):
        def again():
            def more(after):
                if after == place and n >= low:
                    return False
                return self._repeat(items, low, high, after, then, n + 1, is_lazy=is_lazy)

            return (high is sre.MAXREPEAT or n < high) and self._sequence(items, 0, place, more)

        if n < low:
            return again()
        return (then(place) or again()) if is_lazy else (again() or then(place))

    def _fits(self, operation, argument, character):
        if operation is sre.ANY:
            return self.is_dotall or character != "\n"
        characters = {character, character.lower(), character.upper()} if self.ignores_case else {character}
        if operation is sre.IN:
            is_negated = argument[0][0] is sre.NEGATE
            fits = any(
                self._fits(*one, c) for one in argument if one[0] is not sre.NEGATE for c in characters
            )
            return fits != is_negated
        match operation:
            case sre.LITERAL:
                return any(ord(c) == argument for c in characters if len(c) == 1)
            case sre.NOT_LITERAL:
                return ord(character) != argument
            case sre.RANGE:
                return any(argument[0] <= ord(c) <= argument[1] for c in characters if len(c) == 1)
        kind = str(argument).rpartition("_")[2]
        classes = {"DIGIT": character.isdigit(), "SPACE": character.isspace()}
        holds = classes.get(kind, character.isalnum() or character == "_")
        return holds != ("_NOT_" in str(argument))

    def _is_at(self, where, place):
        if where in (sre.AT_BOUNDARY, sre.AT_NON_BOUNDARY):
            beside = [0 <= p < len(self.text) and self.text[p].isalnum() for p in (place - 1, place)]
            return (beside[0] != beside[1]) == (where is sre.AT_BOUNDARY)
        return place == (len(self.text) if where in (sre.AT_END, sre.AT_END_STRING) else 0)


class Words:
    """Short texts that a pattern knows: what each of its parts matches, what its first parts do, and what ends them."""

    def __init__(self, tree):
        self.parts = {"x"}
        self.ends = {"", "\0"}
        self.is_unbounded = False
        items = list(tree)
        places = [n for n, (operation, _) in enumerate(items) if operation is not sre.LITERAL]
        starts = [self._text(items[:n]) for n in [0, *places, *(n + 1 for n in places), len(items)]]
        self.starts = [*dict.fromkeys(starts)][:MOST_STARTS]
        words = {word[:MOST_LETTERS] for word in self.parts if word}
        self.words = sorted(words, key=lambda word: (len(word), word))[:MOST_WORDS]

    def _text(self, items):
        items = list(items)
        texts = [self._of(item) for item in items]
        begun = [n for n in range(len(items)) if n == 0 or items[n - 1][0] is not sre.LITERAL]
        self.parts.update("".join(texts[n:]) for n in begun)
        return "".join(texts)

    def _of(self, item):
        operation, argument = item
        text = ""
        match operation:
            case sre.LITERAL:
                text = chr(argument)
            case sre.NOT_LITERAL:
                text = "x"
                self.ends.add(chr(argument))
            case sre.ANY:
                text = "x"
                self.ends.add("\n")
            case sre.IN:
                characters = self._characters(argument)
                is_negated = argument[0][0] is sre.NEGATE
                (self.ends if is_negated else self.parts).update(characters[:6])
                text = "x" if is_negated else characters[0]
            case sre.BRANCH:
                text = [self._text(branch) for branch in argument[1]][-1]
            case sre.SUBPATTERN:
                text = self._text(argument[3])
            case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
                self.is_unbounded |= argument[1] is sre.MAXREPEAT
                text = self._text(argument[2]) * max(argument[0], 1)
            case sre.ATOMIC_GROUP:
                text = self._text(argument)
            case sre.ASSERT | sre.ASSERT_NOT:
                self._text(argument[1])
        self.parts.add(text)
        return text

    def _characters(self, argument):
        kinds = {"DIGIT": "1", "SPACE": " ", "WORD": "a"}
        return [
            kinds.get(str(value).rpartition("_")[2], "x")
            if kind is sre.CATEGORY
            else chr(value if kind is sre.LITERAL else value[0])
            for kind, value in argument
            if kind is not sre.NEGATE
        ]


def is_linear(pattern, method, flags=0):
    """Whether the steps of a search grow with the length of the text, for all texts that are tried."""
    if isinstance(pattern, bytes):
        pattern = pattern.decode("latin-1")
    matcher = Matcher(pattern, flags & (re.IGNORECASE | re.DOTALL))
    known = Words(matcher.tree)
    if not known.is_unbounded:
        return True
    how = {"is_whole": method == "fullmatch", "is_anchored": method in ANCHORED}
    # Two parts in turn, as "1." of a version.
    words = [
        *known.words,
        *(one + other for one, other in product(known.words[:6], repeat=2) if one != other),
    ]
    for start, word, end in product(known.starts, words, sorted(known.ends)[:6]):
        long, short = (start + word * (n // len(word)) + end for n in (LONG, SHORT))
        try:
            fewer = matcher.count(short, **how)
            if fewer <= 2 * SHORT:  # so few that eight times as many, as of a cube, are no sign
                continue
            more = matcher.count(long, **how)
            if more > FEW * LONG and more > MOST_GROWTH * fewer:
                return False
        except TooManyStepsError:
            return False
    return True


def source(path):
    return (ROOT / path).read_text()


FILES = sorted(str(path.relative_to(ROOT)) for room in ROOMS for path in (ROOT / room).rglob("*.py"))
USED = {
    (name, method)
    for file in FILES
    for name, method in re.findall(rf"\b(\w+)\.({'|'.join(FUNCTIONS - {'compile'})})\b", source(file))
}
LOCAL = {"scheme": "s3", "grouped": r"[0-9]{1,3}(?:,[0-9]{3})+|", "point": r"\."}
"""What patterns are made of that are made where they are used."""


def patterns():
    """Place, pattern, method and flags of every one that the product compiles, or matches with at once."""
    for file in FILES:
        if "re." not in source(file):
            continue
        names = {}
        for node in ast.walk(ast.parse(source(file))):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                names[getattr(node.value, "lineno", 0)] = node.targets[0].id
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            function = node.func.attr
            if ast.unparse(node.func.value) != "re" or function not in FUNCTIONS:
                continue
            module = importlib.import_module(".".join(Path(file).with_suffix("").parts))
            pattern, *flags = (
                eval(compile(ast.Expression(one), file, "eval"), vars(module) | LOCAL)
                for one in [node.args[0], *node.args[1:2] * (function == "compile")]
            )
            name = names.get(node.lineno, "")
            methods = {method for other, method in USED if other == name} or {"match", "fullmatch"}
            for method in sorted(methods if function == "compile" else {function}):
                yield pytest.param(pattern, method, sum(flags), id=f"{file}:{node.lineno}:{method}")


@pytest.mark.parametrize(("pattern", "method", "flags"), list(patterns()))
def test_a_pattern_takes_no_more_steps_than_its_text_is_long(pattern, method, flags):
    assert is_linear(pattern, method, flags)


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(?:\s*%[^\n]*\n|\s*\n)*\s*@relation\b", "match"),  # exponential in blank lines
        (r"[^@\s]+@[^@\s]+\.[^@\s]+", "search"),
        (r"a.*b.*c", "fullmatch"),
        (r"\s+$", "search"),
        (r"(a|aa)+b", "match"),
        (r"holders=(.+),curator=(.+)", "fullmatch"),
        (r"[^@\s]+@[^@\s]+\.[^@\s]+", "fullmatch"),
        (r"[0-9]+\.?[0-9]*", "fullmatch"),
        (r".*-\d{8}", "search"),
    ],
)
def test_patterns_that_are_not_linear_are_seen(pattern, method):
    assert not is_linear(pattern, method)


@pytest.mark.parametrize(
    "pattern", [r"(?:[a-z]++-)*+x", r"[a-z]+@[0-9]+", r"(?>a+)b", r"(?P<q>['\"])x(?P=q)"]
)
def test_patterns_that_are_linear_are_taken_for_it(pattern):
    assert is_linear(pattern, "match")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a|ab)(c|bcd)(d*)", "abcd"),
        (r"a{2,3}?b|(?i:c)\w+\b", "aaab"),
        (r"(?=.*[0-9])[0-9a-f]{3,}", "ab12"),
        (r"(?<!x)y(?!z)", "y"),
        (r"(?P<s>[-/])b(?P=s)", "-b-"),
        (r"[^\W\d_]+(?>1*)", "word111"),
    ],
)
def test_the_matcher_matches_as_python_does(pattern, text):
    for other in (text, text[:-1], text + "\0", text * 2):
        matcher = Matcher(pattern)
        matcher.count(other, is_whole=True, is_anchored=True)
        assert matcher.matched == (re.fullmatch(pattern, other) is not None)
