"""Whose turn it is: the questions in their order, each with its part of the holders, as far as answers decide it.

What lives here: how parts follow from each other, so that no holder is in two of them and none is left over. What does not:
how many holders a question is worth (`plan`), and what it asks (`curator`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ldptree.families.public_features.roles import Part


@dataclass(frozen=True)
class Turn:
    """A question to come.

    Attributes:
        part: who is asked.
        kind: "label bins", "feature bins", "label" or "contrast".
        about: the feature, or the place of the contrast; -1 for the label.
    """

    part: Part
    kind: str
    about: int = -1


@dataclass
class Agenda:
    """Turns of one seed, one after the other.

    Attributes:
        seed: of all parts.
        turns: so far.
    """

    seed: int
    turns: list[Turn]

    def add(self, kind: str, size: int, about: int = -1) -> None:
        """The next `size` holders; none: no turn."""
        at = self.turns[-1].part.stop if self.turns else 0
        if size > 0:
            self.turns.append(Turn(Part(self.seed, at, at + size), kind, about))
