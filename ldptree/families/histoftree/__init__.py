"""HistOfTree (Ma, Jia and Yang, AISTATS 2025): regression in two rounds where some features are public."""

from ldptree.families.histoftree.choice import BIAS_WEIGHTS, BIN_SHIFTS, Shape, choose
from ldptree.families.histoftree.curator import HistOfTree
from ldptree.families.histoftree.model import HistOfTreeModel
from ldptree.families.histoftree.questions import RELEASES, CellsQuestion, LabelQuestion

__all__ = [
    "BIAS_WEIGHTS",
    "BIN_SHIFTS",
    "RELEASES",
    "CellsQuestion",
    "HistOfTree",
    "HistOfTreeModel",
    "LabelQuestion",
    "Shape",
    "choose",
]
