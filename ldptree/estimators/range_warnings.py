"""Warnings of ranges that nobody stated, or that cut off values that everybody sees.

They depend on parameters and public values alone: a warning that depended on a private value would reveal it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ldptree.errors import AssumedRangeWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

COLUMNS_NAMED = 8


def warn_of_assumed_features(columns: Iterable[object]) -> None:
    """Warn that the range of these columns is not known, so that 0 to 1 is assumed; silent where there are none."""
    if names := _listed([str(column) for column in columns]):
        _warn(
            f"feature_range: no public row tells the range of {names}, so it is assumed to be 0 to 1. Values beyond it are "
            "moved to its ends, and the model learns nothing from them. Give feature_range = (low, high), numbers or one for "
            "each feature, or mark public rows"
        )


def warn_of_clipped_features(columns: Sequence[object], low: Floats, high: Floats, public: Floats) -> None:
    """Warn where public values lie beyond the range that was given, with their share.

    Args:
        columns: names [d].
        low, high: the range, float64 [d].
        public: public rows, float64 [n, d]; NaN is no value.
    """
    if not len(public):
        return
    shares = ((public < low) | (public > high)).mean(axis=0)
    beyond = [f"{columns[j]} ({_percent(shares[j])})" for j in np.flatnonzero(shares).tolist()]
    if beyond:
        _warn(
            f"feature_range: of the public rows these lie beyond it, and are moved to its ends: {_listed(beyond)}. Private "
            "rows are cut off likewise. Widen the range, or leave it out to take that of the public rows"
        )


def warn_of_shown_beyond(columns: Sequence[object], low: Floats, high: Floats, shown: Floats) -> None:
    """Warn where values that holders show lie beyond the range. Arguments as of `warn_of_clipped_features`."""
    beyond = [str(columns[j]) for j in np.flatnonzero(((shown < low) | (shown > high)).any(axis=0)).tolist()]
    if beyond:
        _warn(
            f"feature_range: values that are shown lie beyond it, and are moved to its ends, of {', '.join(beyond)}. Give "
            "feature_range = (low, high), numbers or one for each feature; without it, it is (0, 1), for protected "
            "features too"
        )


def warn_of_assumed_label(low: float, high: float, parameter: str = "label_range") -> None:
    """Warn that the range of the label is not known."""
    _warn(
        f"{parameter}: no public row tells the range of the label y, so it is assumed to be {low:g} to {high:g}. Labels beyond "
        f"it are moved to its ends. Give {parameter}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else "under 0.1 %"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - COLUMNS_NAMED
    return ", ".join(names[:COLUMNS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _warn(message: str) -> None:
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("ldptree.estimators."):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{message}.", AssumedRangeWarning, stacklevel=level)  # where the user calls `fit`
