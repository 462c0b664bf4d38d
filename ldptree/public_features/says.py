"""What a fit says about itself in words: whether private features helped, and whether the label's range is too narrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldptree.public_features.contrast import SQUARE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.public_features.label_law import LabelLaw
    from ldptree.public_features.model import Effect
    from ldptree.public_features.plan import Plan

    Floats = NDArray[np.float64]

# shares of labels in the two end bins, and of variance explained, that are worth a word
_TOO_MANY_AT_ENDS, _WORTH_A_WORD = 0.3, 0.005


def said(
    columns: tuple[str, ...],
    protects: NDArray[np.bool_],
    plan: Plan,
    law: LabelLaw,
    effects: tuple[Effect, ...],
    line: Floats,
    rows: Floats,
    *,
    epsilon: float,
) -> str:
    """One line, from what is public and what was reported.

    Args:
        columns: names of the features.
        protects: bool [n, d].
        plan: how the holders were shared out.
        law: of the label.
        effects: of the contrasts.
        line: float64 [n], the surface at every holder.
        rows: float64 [n, d], NaN where protected.
        epsilon: of each holder.
    """
    share = min(float(line.var()) / law.sd**2, 1.0)
    parts = [f"Public features explain about {share:.0%} of the label's variance."]
    names = ", ".join(columns[j] for j in plan.private)
    if not protects.any():
        parts.append("No feature is protected.")
    elif not plan.private:
        parts.append("Every feature is shown by at least half of the holders, so none was asked about.")
    elif not effects:
        parts.append(
            f"Private features do not help here: with {len(protects):,} holders at epsilon {epsilon:g}, reports about {names} "
            "would cost more than they may bring, so none was asked for."
        )
    else:
        parts.append(_of_effects(columns, plan.private, effects, rows, law.sd**2))
    if law.at_ends > _TOO_MANY_AT_ENDS:
        parts.append(
            f"About {law.at_ends:.0%} of labels are at the ends of label_range or beyond: it is too narrow, and a wider one "
            "would serve better."
        )
    return " ".join(parts)


def _of_effects(
    columns: tuple[str, ...],
    private: tuple[int, ...],
    effects: tuple[Effect, ...],
    rows: Floats,
    spread: float,
) -> str:
    explained = dict.fromkeys(private, 0.0)
    for effect in effects:
        explained[effect.contrast.feature] += SQUARE * float(np.mean(effect.coefficient(rows) ** 2)) / spread
    helped = {j: share for j, share in explained.items() if share > _WORTH_A_WORD}
    if not helped:
        names = ", ".join(columns[j] for j in private)
        return f"Private features do not help here: {names} were asked about, and nothing was found."
    words = ", ".join(f"{columns[j]} (about {min(share, 1):.1%})" for j, share in helped.items())
    others = [columns[j] for j in private if j not in helped]
    return f"Private features that help: {words}" + (
        f"; nothing was found of {', '.join(others)}." if others else "."
    )
