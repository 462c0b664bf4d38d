"""HistOfTree (Ma, Jia and Yang, AISTATS 2025), regression in two rounds where some features are public.

How the paper was read where it leaves a choice, or contradicts itself:

- Appendix C.1 calls the label's share of epsilon rho. Here `rho` is the share of the cell, always: the paper's grid {.5,
  .7, .9} is {.5, .3, .1}.
- The tree's root is the cube of the features that are not binned; sigma_k <= t in the histogram is t - 1; (1) lacks primes.
- Algorithm 1 adds two unweighted variances (`criterion="printed"`); "weighted", the default, takes the drop of the sum of
  squares. A side with fewer than `min_samples_leaf` rows is no candidate: as printed, an empty side has no variance and
  wins.
- (8) flips the bit of a single potential cell too; grr sends it as it is, because it is public.
- Values are cut to the label's range; 0 / 0 is the mean of the noisy labels. LabelDT and ParDT are not cut.
- ParDT with personal masks: what a tree does with a value that is not shown is not said; here it is a missing value.
- Section 3.4 sends no W but the vector V~, and says that this hides W. It does not: entries outside the potential cells are
  exact zeros, from which W can be read wherever the partition asks about a feature. Hence `mask_release`.

The default takes s, t and p from (15), with .01 on the second term, t* - 1 and half of epsilon for the cell: larger
constants choose more cells than the noise of (9) allows. These were set on the law of section 5.1. Where everybody protects
the same features s is their number. With everything protected this is a histogram with grr over its cells; with nothing
protected it is LabelDT.
"""

from ldptree.families.histoftree.family import HistOfTree, Shape, choose_shape
from ldptree.families.histoftree.questions import RELEASES, CellsQuestion, LabelQuestion
from ldptree.models.histoftree import HistOfTreeModel

__all__ = [
    "RELEASES",
    "CellsQuestion",
    "HistOfTree",
    "HistOfTreeModel",
    "LabelQuestion",
    "Shape",
    "choose_shape",
]
