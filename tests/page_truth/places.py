"""Where a cell lies: the conditions of its path in raw units, and whether a label on the page says them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ldptree.encoding import NumericFeature
from page_truth.rules import agrees_to_four_figures

Names = Mapping[str, Mapping[str, str]]


def conditions(raw: Any, node: int, names: Names, *, last: bool = False) -> dict[str, dict[str, Any]]:
    """Of every column on the path to a node, the first to split first: its ends, levels that it is and is not, what is known.

    `raw`: the tree in raw units. `last`: only of the test above the node.
    """
    tree = raw.partition
    path = []
    while (above := int(tree.parent[node])) >= 0:
        path.append((above, int(tree.left[above]) == node))
        node = above
    found: dict[str, dict[str, Any]] = {}
    for above, is_left in (path[:1] if last else path)[::-1]:
        feature = raw.encoding.features[raw.column[above]]
        told = found.setdefault(
            feature.column.replace("_", " "),
            {"low": -np.inf, "high": np.inf, "is": None, "not": set(), "other": set()},
        )
        threshold, level = float(raw.threshold[above]), int(raw.level[above])
        if level >= 0 and not isinstance(feature, NumericFeature):
            name = names.get(feature.column, {}).get(str(feature.levels[level]), str(feature.levels[level]))
            if is_left:
                told["not"].add(name)
            else:
                told["is"] = name
        elif np.isfinite(threshold):
            key, better = ("high", min) if is_left else ("low", max)
            told[key] = better(told[key], threshold)
        else:
            told["other"].add("is missing" if (threshold == np.inf) != is_left else "is known")
    return found


def says(label: str, raw: Any, node: int, names: Names, *, last: bool = False, every: str = "") -> str:
    """ "" where a label says the conditions that lead to a node; else what is wrong with it.

    `every`: what stands where there is no condition. A label may leave out the middle of a long path ("…").
    """
    expected = conditions(raw, node, names, last=last)
    if not expected:
        return "" if label == every else f"{label!r} should be {every!r}"
    parts = _phrases(expected)
    told = _parted(label, [column for column, _, _ in parts])
    if "…" in label:
        cut = [one for one in told if one != "…"]
        parts = [parts[0], *parts[-(len(cut) - 1) :]]
        told = cut
    if len(told) != len(parts):
        return f"{label!r} has {len(told)} conditions, the path {len(parts)}: {parts}"
    faults = [_compare(text, *part) for text, part in zip(told, parts, strict=True)]
    return "; ".join(fault for fault in faults if fault)


def _phrases(found: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, Any]]:
    """What is to be said, one phrase each: column, kind, values."""
    phrases: list[tuple[str, str, Any]] = []
    for column, told in found.items():
        if np.isfinite(told["low"]) or np.isfinite(told["high"]):
            phrases.append((column, "between", (told["low"], told["high"])))
        if told["is"] is not None:
            phrases.append((column, "is", told["is"]))
        elif told["not"]:
            phrases.append((column, "is not", told["not"]))
        phrases += [(column, "other", other) for other in sorted(told["other"])]
    return phrases


def _parted(label: str, columns: list[str]) -> list[str]:
    """A label's phrases: a comma parts them only before a column's name."""
    names = "|".join(re.escape(column) for column in sorted({*columns}, key=len, reverse=True))
    return re.split(rf", (?=(?:{names}) (?:up to|above|is) |…)", label)


def _compare(text: str, column: str, kind: str, value: Any) -> str:
    if not text.startswith(column + " "):
        return f"{text!r} is not about {column}"
    said = text[len(column) + 1 :]
    if kind == "between":
        ends = re.fullmatch(r"(?:above (?P<low>\S+))?(?:(?: ?to| ?up to) (?P<high>\S+))?", said)
        stated = ends.groupdict() if ends else {}
        for name, end in zip(("low", "high"), value, strict=True):
            if np.isfinite(end) != (stated.get(name) is not None) or (
                np.isfinite(end) and not agrees_to_four_figures(stated[name], end)
            ):
                return f"{text!r}: the {name} end is {end}"
        return ""
    if kind == "is":
        return "" if said == f"is {value}" else f"{text!r} should be is {value}"
    if kind == "is not":
        told = said.removeprefix("is not ")
        rest = sorted(value, key=len, reverse=True)
        for name in rest:
            if name not in told:
                return f"{text!r} leaves out {name}"
            told = told.replace(name, "", 1)
        return "" if not re.search(r"[^\s,or]", told) else f"{text!r} names more than {value}"
    return "" if said == value else f"{text!r} should be {value}"
