"""A page as a tree of elements, its visible text in blocks, and the marks of its pictures as values on their axes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})
INLINE = frozenset({"b", "i", "em", "span", "bdi", "small", "code", "svg", "text", "a"})


@dataclass
class Element:
    """An element with its attributes and what it holds, elements and text in order."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    content: list[Element | str] = field(default_factory=list)
    is_read: bool = False
    """Whether a check has compared all that it states."""

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    @property
    def children(self) -> list[Element]:
        return [one for one in self.content if isinstance(one, Element)]

    def every(self, tag: str = "", kind: str = "") -> list[Element]:
        """All elements below with this tag and class, in order."""
        return [
            one
            for one in self.walk()
            if one is not self and (not tag or one.tag == tag) and (not kind or kind in one.classes)
        ]

    def first(self, tag: str = "", kind: str = "") -> Element:
        return self.every(tag, kind)[0]

    def walk(self) -> Iterator[Element]:
        yield self
        for child in self.children:
            yield from child.walk()

    def unread(self) -> Iterator[Element]:
        """All elements below that no check has read, nor anything they lie in."""
        if self.is_read:
            return
        yield self
        for child in self.children:
            yield from child.unread()

    @property
    def text(self) -> str:
        """What a reader sees of it, elements parted by spaces and every kind of space made one."""
        return _tidy(self._text())

    def text_of(self) -> str:
        """The text of a label in a picture, which no reader of text sees."""
        return _tidy("".join(part for part in self.content if isinstance(part, str)))

    def _text(self) -> str:
        if self.tag in ("style", "title", "svg"):
            return " "
        parts = [part if isinstance(part, str) else part._text() for part in self.content]
        # What stands in one line stands together; blocks and columns are parted.
        return (
            "".join(parts) if self.tag in ("b", "i", "em", "bdi", "small", "code") else f" {''.join(parts)} "
        )

    def blocks(self) -> Iterator[Element]:
        """The smallest elements that hold text and no other block."""
        if self.is_read:
            return
        inner = [child for child in self.children if child.tag not in INLINE]
        if not inner:
            if self.text and self.tag not in ("style", "title", "svg"):
                yield self
            return
        if any(isinstance(part, str) and part.strip() for part in self.content):
            own = Element(
                self.tag,
                self.attributes,
                [part for part in self.content if isinstance(part, str) or part.tag in INLINE],
            )
            yield own
        else:
            loose = [child for child in self.children if child.tag in INLINE and child.text]
            if loose:
                yield Element(self.tag, self.attributes, list(loose))
        for child in inner:
            yield from child.blocks()


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("page")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].content.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].content.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].content.append(data)


def read(html: str) -> Element:
    """The page as a tree."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    return builder.root


def _tidy(text: str) -> str:
    plain = text.replace("\u00a0", " ").replace("\u202f", " ")
    return re.sub(r" ([,.;:)])", r"\1", re.sub(r"\s+", " ", plain).strip())


NUMBER = r"[+\-\u2212]?\d[\d,]*(?:\.\d+)?"


def number(text: str) -> float:
    """The number that a text states, thousands marked or not."""
    return float(text.replace(",", "").replace("\u2212", "-").replace("+", ""))


def rounding(text: str) -> float:
    """Half of the last decimal that a text states: how far it may be off the truth."""
    _, point, decimals = text.partition(".")
    return 0.5 * 10.0 ** -(len(decimals) if point else 0)


@dataclass(frozen=True)
class Scale:
    """Where values lie along an axis, by the labels of its ticks."""

    places: tuple[float, float]
    values: tuple[float, float]
    low: float
    high: float

    @classmethod
    def of(cls, drawn: Element, along: str = "x", ends: tuple[float, float] = (2.0, 98.0)) -> Scale:
        """The scale of an axis's labels; `ends`: the least and the largest place of its line."""
        ticks = [(_place(one, along), number(_figure(one.text_inside))) for one in _texts(drawn)]
        (x1, v1), (x2, v2) = ticks[0], ticks[-1]
        step = (v2 - v1) / (x2 - x1)
        for x, v in ticks:  # all labels on one line
            assert abs(v1 + (x - x1) * step - v) <= 1e-3 * abs(v2 - v1) + 1e-12, ticks
        low, high = sorted((v1 + (ends[0] - x1) * step, v1 + (ends[1] - x1) * step))
        return cls((x1, x2), (v1, v2), low, high)

    def value(self, place: float) -> float:
        (x1, x2), (v1, v2) = self.places, self.values
        return v1 + (place - x1) * (v2 - v1) / (x2 - x1)

    def inside(self, value: float) -> float:
        return min(max(value, self.low), self.high)

    @property
    def slack(self) -> float:
        """How far a mark may be off: places have two decimals, and labels are rounded."""
        return 0.006 * (self.high - self.low)

    def agrees(self, place: float, value: float) -> bool:
        """Whether a mark stands where the value is, or at the end that it lies beyond."""
        return abs(self.value(place) - self.inside(value)) <= self.slack


@dataclass(frozen=True)
class _Text:
    attributes: dict[str, str]
    text_inside: str


def _texts(drawn: Element) -> list[_Text]:
    return [
        _Text(one.attributes, _tidy("".join(part for part in one.content if isinstance(part, str))))
        for one in drawn.every("text")
    ]


def _place(one: _Text, along: str) -> float:
    return float(one.attributes[along].rstrip("%"))


def _figure(text: str) -> str:
    found = re.search(NUMBER, text)
    assert found, f"an axis has the label {text!r}"
    return found.group()


def mark(drawn: Element) -> float:
    """Where the mark of a track stands, in percent."""
    circles = drawn.every("circle", "m")
    if circles:
        return float(circles[0].attributes["cx"].rstrip("%"))
    return float(drawn.first("svg", "ov").attributes["x"].rstrip("%"))


def ends(drawn: Element, kind: str) -> tuple[float, float]:
    """Where the level line of a kind begins and ends, in percent."""
    (one,) = [one for one in drawn.every("line", kind) if one.attributes["y1"] == one.attributes["y2"]]
    return float(one.attributes["x1"].rstrip("%")), float(one.attributes["x2"].rstrip("%"))


def count_words(element: Element, *, closed: bool, tables: bool = True) -> int:
    """Words and numerals, also those in pictures, of what is open or of all; with or without the bodies of tables."""
    found = 0
    for part in element.content:
        if isinstance(part, str):
            found += len([word for word in part.split() if any(map(str.isalnum, word))])
        elif part.tag in ("style", "title") or (part.tag == "tbody" and not tables):
            continue
        elif closed or element.tag != "details" or part.tag == "summary":
            found += count_words(part, closed=closed, tables=tables)
    return found
