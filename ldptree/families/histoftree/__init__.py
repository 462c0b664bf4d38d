"""HistOfTree (Ma, Jia and Yang, AISTATS 2025): regression in two rounds where some features are public."""

from ldptree.families.histoftree.family import BIAS_WEIGHTS, BIN_SHIFTS, HistOfTree, Shape, choose_shape
from ldptree.families.histoftree.questions import RELEASES, CellsQuestion, LabelQuestion
from ldptree.models.histoftree import HistOfTreeModel

__all__ = [
    "BIAS_WEIGHTS",
    "BIN_SHIFTS",
    "RELEASES",
    "CellsQuestion",
    "HistOfTree",
    "HistOfTreeModel",
    "LabelQuestion",
    "Shape",
    "choose_shape",
]
