"""Settings chosen before any private row is looked at, from sizes and epsilon alone."""

from __future__ import annotations

import math

from ldptree.errors import ConfigError
from ldptree.mechanisms import mechanism_for

# 65,536 cells: a deeper tree fits in no report and no picture
MAX_DEPTH = 16


def paper_depth(d: int, n_private: int, n_public: int, epsilon: float) -> int:
    """The p0 of LPCT's Algorithm 2: floor(d / (2 + 2 d) log2(n_P eps^2 + n_Q^((2 + 2 d) / d))), 1 to 16."""
    rate = d / (2 + 2 * d)
    found = rate * math.log2(max(n_private * epsilon**2 + float(n_public) ** (1 / rate), 1.0))
    return min(max(math.floor(found), 1), MAX_DEPTH)


def termination_depth(d: int, n_private: int, epsilon: float) -> int:
    """Where LPCT's Algorithm 2 ends and asks again: floor(d / (2 + 2 d) log2(n_P eps^2)), 0 to 16."""
    found = d / (2 + 2 * d) * math.log2(max(n_private * epsilon**2, 1.0))
    return min(math.floor(found), MAX_DEPTH)


def automatic_depth(d: int, n_private: int, epsilon: float, n_classes: int, mechanism: str = "auto") -> int:
    """The depth of the partition: the largest p with p <= d / (2 + 2 d) * log2(n_private / v_A(p)).

    The rate of LPCT's p0 (section 5) with the mechanism's own noise in the place of the papers' 1 /
    epsilon^2: v_A(p) is the noise variance of a cell's margin per holder on 2^p cells
    (`Mechanism.margin_variance_per_holder`). On both of LPCT's synthetic pairs this is the depth that is best in hindsight.

    Args:
        d: number of encoded columns.
        n_private: number of holders who will report.
        epsilon: their budget.
        n_classes: C.
        mechanism: one of `ldptree.mechanisms.CHOICES`; "auto": the quieter one at each depth.

    Returns:
        1 to 16: at least one split, at most 65,536 cells.

    Raises:
        ConfigError: d, n_private, n_classes or epsilon is out of range.
    """
    if d < 1 or n_private < 1 or n_classes < 2:
        found = f"d = {d}, n_private = {n_private}, n_classes = {n_classes}"
        raise ConfigError(f"depth: {found}; they must be at least 1, 1 and 2")
    best = 1
    for depth in range(1, MAX_DEPTH + 1):
        n_cells = 2**depth
        noise = mechanism_for(mechanism, epsilon, n_cells, n_classes).margin_variance_per_holder()
        # no noise at all is left at enormous epsilon: then the cap decides
        if depth <= d / (2 + 2 * d) * math.log2(n_private / max(noise, 2.0**-64)):
            best = depth
    return best
