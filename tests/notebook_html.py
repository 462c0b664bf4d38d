"""What a notebook may be shown: well-formed, a picture at least, and nothing that acts or asks for anything."""

from __future__ import annotations

from xml.etree import ElementTree

HARMLESS = {"div", "p", "svg", "title", "path", "text"}
ATTRIBUTES = {
    *("style", "role", "viewBox", "width", "height", "font-size", "font-family", "fill", "d", "stroke"),
    *("stroke-width", "opacity", "x", "y", "text-anchor"),
}


def read_shown(html: str) -> str:
    """The text of what a notebook is shown, once its elements and attributes are all harmless."""
    shown = ElementTree.fromstring(f"<div>{html}</div>")
    assert {one.tag for one in shown.iter()} <= HARMLESS
    assert {name for one in shown.iter() for name in one.attrib} <= ATTRIBUTES
    assert not any("url(" in value for one in shown.iter() for value in one.attrib.values())
    pictures = shown.findall(".//svg")
    assert pictures
    assert all(one.findtext("title") and one.findall("text") for one in pictures)
    return " ".join(shown.itertext())
