"""Draw a tree as Graphviz text or as one SVG picture without style or script, in the colour of the text around it. Both
say what every node tests, in raw units, and what every cell says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition
from ldptree.plain_text import escape_html, make_visible

MOST_ENDS = 48
"""Ends that are drawn; a larger tree is drawn as deep as they reach."""
WIDTH, HEIGHT, SIZE = 190, 26, 12
"""Pixels of a branch, between two ends, and of a letter."""
SMALLEST = 9
"""Pixels of a letter where the picture is shrunk; narrower places scroll."""
LONGEST, LONGEST_END = 29, 58
"""Letters that fit on a branch, and beside an end."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The place where a node is drawn, with its depth and its height in ends."""

    node: int
    depth: int
    row: float


def to_dot(tree: RawTree, labels: Sequence[str], about: str) -> str:
    """A directed graph, one node a node of the tree; left edges are those whose test holds.

    Args:
        tree: the tree.
        labels: the text of each cell.
        about: what the first line says.
    """
    partition = tree.partition
    lines = [
        f"// {about}.",
        "digraph tree {",
        '  node [shape=box, fontname="sans-serif"]; edge [fontname="sans-serif"];',
    ]
    for node in range(partition.n_nodes):
        if partition.feature[node] < 0:
            label = _quoted(labels[partition.cell_of_node[node]])
            lines.append(f"  {node} [label={label}, style=rounded];")
            continue
        lines.append(f"  {node} [label={_quoted(tree.branches(node)[0])}];")
        lines.append(f'  {node} -> {partition.left[node]} [label="yes"];')
        lines.append(f'  {node} -> {partition.right[node]} [label="no"];')
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    """A quoted string of the DOT language."""
    escaped = (
        make_visible(text.replace("\r", " ")).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    )
    return f'"{escaped}"'


def to_svg(raw: RawTree, labels: Sequence[str], *, target: str, note: str) -> str:
    """A picture with the root on the left.

    Args:
        raw: the tree.
        labels: the text of each cell; what does not fit is shown on hover.
        target: the label's column, which the title names.
        note: what stands under the picture.
    """
    tree, deepest = raw.partition, _depth_drawn(raw.partition)
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
    marks = [*_branches(raw, places), *(_end(tree, places[node], labels) for node in ends)]
    width = (max(p.depth for p in places.values()) + 3) * WIDTH
    bottom = len(ends) * HEIGHT + HEIGHT
    height = bottom + HEIGHT // 2
    smallest = width * SMALLEST // SIZE
    title = escape_html(f"{len(labels)} kinds of rows by {target}")
    return (
        f'<svg role="img" viewBox="0 0 {width} {height}" width="{width}" '
        f'style="max-width:100%;min-width:{smallest}px;height:auto" font-size="{SIZE}" font-family="sans-serif" '
        f'fill="currentColor"><title>{title}</title>{"".join(marks)}<text x="4" y="{bottom}">{escape_html(note)}</text></svg>'
    )


def _depth_drawn(tree: Partition) -> int:
    """The largest depth at which no more than `MOST_ENDS` nodes end or are cut off."""
    depth = tree.max_depth
    ends = tree.depth[tree.leaves]
    while depth > 1 and (ends < depth).sum() + (tree.depth == depth).sum() > MOST_ENDS:
        depth -= 1
    return depth


def _branches(raw: RawTree, places: dict[int, _Place]) -> Iterator[str]:
    tree = raw.partition
    for at in places.values():
        if tree.feature[at.node] < 0 or int(tree.left[at.node]) not in places:
            continue
        names = raw.branches(at.node)
        for child, name in zip((tree.left[at.node], tree.right[at.node]), names, strict=True):
            to = places[int(child)]
            x, y = _point(at)
            end_x, end_y = _point(to)
            yield f'<path d="M{x} {y}V{end_y}H{end_x}" fill="none" stroke="currentColor" opacity=".45"/>'
            yield _text(x + 6, end_y - 4, name)


def _end(tree: Partition, at: _Place, labels: Sequence[str]) -> str:
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
    return f'<text x="{x}" y="{y}"><title>{escape_html(whole)}</title>{escape_html(shown)}</text>'
