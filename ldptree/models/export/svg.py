"""The tree as one SVG picture: what parts the rows on every branch, what a cell says beside its end. No style and no script:
it is drawn in the colour of the text around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from ldptree.models.export.dot import name_branches

if TYPE_CHECKING:
    from ldptree.models.corrected import CorrectedModel
    from ldptree.models.tree import TreeModel

MOST_ENDS = 48
"""Ends that are drawn; a larger tree is drawn as deep as they reach."""
WIDTH, HEIGHT, SIZE = 190, 26, 12
"""Of a branch and between two ends, and of a letter: pixels."""
SMALLEST = 9
"""Pixels of a letter where the picture is shrunk; narrower places scroll."""
LONGEST, LONGEST_END = 29, 58
"""Letters that fit on a branch, and beside an end."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node is drawn: its depth, and its height in ends."""

    node: int
    depth: int
    row: float


def to_svg(model: TreeModel[Any] | CorrectedModel, labels: Sequence[str], note: str) -> str:
    """The tree of a model, its root on the left.

    Args:
        model: what has the tree.
        labels: the text of each cell; what does not fit is shown on hover.
        note: what stands under the picture.
    """
    tree, deepest = model.partition, _depth_drawn(model)
    places: dict[int, _Place] = {}
    ends: list[int] = []

    def place(node: int, depth: int) -> _Place:
        if tree.feature[node] < 0 or depth == deepest:
            row = float(len(ends))
            ends.append(node)
        else:
            children = [place(int(side[node]), depth + 1) for side in (tree.left, tree.right)]
            row = sum(child.row for child in children) / 2
        places[node] = _Place(node, depth, row)
        return places[node]

    place(0, 0)
    marks = [*_branches(model, places), *(_end(model, places[node], labels) for node in ends)]
    width = (max(p.depth for p in places.values()) + 3) * WIDTH
    bottom = len(ends) * HEIGHT + HEIGHT
    height = bottom + HEIGHT // 2
    smallest = width * SMALLEST // SIZE
    title = escape(f"{len(labels)} kinds of rows by {model.target}")
    return (
        f'<svg role="img" viewBox="0 0 {width} {height}" width="{width}" '
        f'style="max-width:100%;min-width:{smallest}px;height:auto" font-size="{SIZE}" font-family="sans-serif" '
        f'fill="currentColor"><title>{title}</title>{"".join(marks)}<text x="4" y="{bottom}">{escape(note)}</text></svg>'
    )


def _depth_drawn(model: TreeModel[Any] | CorrectedModel) -> int:
    """The largest depth at which no more than `MOST_ENDS` nodes end or are cut off."""
    tree = model.partition
    depth = tree.max_depth
    ends = tree.depth[tree.leaves]
    while depth > 1 and (ends < depth).sum() + (tree.depth == depth).sum() > MOST_ENDS:
        depth -= 1
    return depth


def _branches(model: TreeModel[Any] | CorrectedModel, places: dict[int, _Place]) -> Iterator[str]:
    tree = model.partition
    for at in places.values():
        if tree.feature[at.node] < 0 or int(tree.left[at.node]) not in places:
            continue
        names = name_branches(model.raw_tree, at.node)
        for child, name in zip((tree.left[at.node], tree.right[at.node]), names, strict=True):
            to = places[int(child)]
            x, y = _point(at)
            end_x, end_y = _point(to)
            yield f'<path d="M{x} {y}V{end_y}H{end_x}" fill="none" stroke="currentColor" opacity=".45"/>'
            yield _text(x + 6, end_y - 4, name)


def _end(model: TreeModel[Any] | CorrectedModel, at: _Place, labels: Sequence[str]) -> str:
    tree = model.partition
    x, y = _point(at)
    if tree.feature[at.node] < 0:
        return _text(x + 6, y + 4, labels[tree.cell_of_node[at.node]], LONGEST_END)
    _, nodes = tree.paths()
    return _text(x + 6, y + 4, f"{int((nodes == at.node).sum())} cells")


def _point(at: _Place) -> tuple[int, int]:
    return at.depth * WIDTH + 4, round((at.row + 0.75) * HEIGHT)


def _text(x: int, y: int, text: str, longest: int = LONGEST) -> str:
    whole = text.replace("\n", ", ")
    shown = whole if len(whole) <= longest else whole[: longest - 1] + "…"
    return f'<text x="{x}" y="{y}"><title>{escape(whole)}</title>{escape(shown)}</text>'
