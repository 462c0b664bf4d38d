"""What a tree of cells has in common, whatever its label: order, shares, evidence, and the lines that are drawn of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from page_truth.artifacts import Run
from page_truth.reading import Element
from page_truth.rules import Checker, Rule, agrees, agrees_in_percent

DRAWN = 12
EVIDENCE = {
    "private": "private reports",
    "public": "public rows",
    "both": "both",
    "neighbours": "neighbouring cells",
}


def shares_of(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of cells by noisy counts, none negative."""
    held = np.maximum(counts, 0.0)
    return held / held.sum() if held.sum() > 0 else np.full(len(held), 1 / len(held))


def below(tree: Any) -> list[list[int]]:
    """Of every node, the cells below it."""
    found: list[list[int]] = [[] for _ in range(tree.n_nodes)]
    for cell, leaf in enumerate(tree.leaves.tolist()):
        node = leaf
        while node >= 0:
            found[node].append(cell)
            node = int(tree.parent[node])
    return found


def evidence_of(model: Any) -> list[str]:
    """What each cell's answer rests on chiefly."""
    found = []
    for leaf in model.partition.leaves.tolist():
        at = int(model.decided_at[leaf])
        share = float(model.private_share[at])
        if at != leaf or np.isinf(model.node_sd[leaf]):
            found.append("neighbours")
        else:
            found.append("private" if share >= 0.9 else "public" if share <= 0.1 else "both")
    return found


def evidence_rules(run: Run, shares: NDArray[np.float64], evidence: Sequence[str]) -> list[Rule]:
    """How many cells rest on what; and what was left undrawn."""
    nouns, n_cells = re.escape(run.nouns), len(shares)
    words = {on: key for key, on in EVIDENCE.items()}

    def resting(said: Mapping[str, str]) -> dict[str, Any]:
        parts = re.findall(
            r"([\d,]+)(?: rests? chiefly)? on (private reports|public rows|both|neighbouring cells) "
            r"\((under 1|\d+) %",
            said["parts"],
        )
        told = {words[on]: (count, share) for count, on, share in parts}
        true = {key: [s for s, e in zip(shares, evidence, strict=True) if e == key] for key in EVIDENCE}
        is_so = set(told) == {key for key, held in true.items() if held} and all(
            agrees(told[key][0], len(held)) and agrees_in_percent(told[key][1], sum(held))
            for key, held in true.items()
            if held
        )
        return {
            "cells": n_cells,
            "so": is_so,
            "why": {key: (len(held), sum(held)) for key, held in true.items()},
        }

    only = evidence[0] if n_cells == 1 else ""
    left = sorted(shares, reverse=True)[DRAWN:]
    return [
        Rule.of(r"Of {cells} cells, (?P<parts>.+? of private .+?)\.(?= )", resting),
        Rule.of(
            r"The one cell rests on (?P<on>private reports|public rows|both|neighbouring cells)(?: kinds of evidence)?\.",
            {"on": EVIDENCE.get(only, ""), "so": n_cells == 1},
        ),
        Rule.of(
            rf"and (?:1|{{n}}) more cells? that (?:together hold|holds) {{share%}} of private {nouns}",
            {"n": len(left), "share": float(sum(left))},
        ),
        Rule.of(r"All {n} cells in figures", {"n": n_cells, "so": n_cells > 1}),
        Rule.of(r"The cell in figures", {"so": n_cells == 1}),
        Rule.of(
            r"The {n} largest of {cells} cells in figures",
            {"n": min(n_cells, 400), "cells": n_cells, "so": n_cells > 400},
        ),
        Rule.of(r"± 2 (?:sd|standard errors)(?: in points)?"),
        Rule.of(
            r"A public row weighs as much as <lam> private ones", {"lam": str(run.config.model.weighting)}
        ),
    ]


def check_line_share(text: str, share: float, where: str, check: Checker) -> None:
    """A share as people read it: whole percents."""
    found = re.fullmatch(r"(under 1|[\d.]+) ?%", text)
    check.n_numbers += 1
    check.that(found is not None and agrees_in_percent(found[1], share), f"{where}: {text}, is {share}")


def in_order(
    shares: NDArray[np.float64], labels: Sequence[str], fits: Callable[[int, str], bool]
) -> list[int]:
    """The cells that labels are of, the largest first: of equal shares, the one that a label fits."""
    left = sorted(range(len(shares)), key=lambda cell: -shares[cell])
    found = []
    for label in labels:
        equal = [cell for cell in left if shares[cell] >= shares[left[0]] - 1e-12]
        found.append(next((cell for cell in equal if fits(cell, label)), left[0]))
        left.remove(found[-1])
    return found


def drawn_nodes(tree: Element) -> list[tuple[Element, int]]:
    """The lines of a drawn tree with their depth, in order."""
    found: list[tuple[Element, int]] = []

    def walk(part: Element, depth: int) -> None:
        for child in part.children:
            if child.tag == "details":
                found.append((child.first("summary"), depth))
                for inner in child.children:
                    if inner.tag == "ul":
                        walk(inner, depth + 1)
            elif "leaf" in child.classes:
                found.append((child, depth))
            elif child.tag == "li":
                walk(child, depth)

    walk(tree, 0)
    return found


def in_tree(tree: Any, lines: Sequence[tuple[Element, int]], check: Checker) -> list[int]:
    """The nodes of the drawn lines, which go through the tree from left to right."""
    found: list[int] = []
    waiting = [(0, 0)]
    for line, depth in lines:
        node, at = waiting.pop()
        check.that(at == depth, f"tree: {line.text!r} at depth {depth}, expected {at}")
        found.append(node)
        is_open = line.tag == "summary"
        if is_open:
            waiting += [(int(tree.right[node]), depth + 1), (int(tree.left[node]), depth + 1)]
    check.that(not waiting, "tree: a branch is open and not drawn")
    return found


def check_not_drawn(line: Element, n_cells: int, is_cut: bool, where: str, check: Checker) -> None:
    said = line.every("span", "hush")
    check.that(bool(said) == is_cut, f"{where}: cells below")
    if said:
        check.same(said[0].text.split()[0], n_cells, where)
