"""Limits of an epsilon, a depth, a number of cells and a label's range, alike in a configuration, an estimator and an audit."""

from __future__ import annotations

import math
import numbers
import sys
from typing import Any

from ldptree.errors import ConfigError, DataError

MIN_EPSILON = 1e-6
"""Below, reports tell nothing."""
MAX_EPSILON = 64.0
MAX_LIFETIME = 1000.0
"""Largest epsilon of a lifetime or of one amount. Thousands of it add up within 64 bits of the ledger's units."""
MAX_DEPTH = 62
MAX_BINS = 254
"""Of a feature in a histogram: a bin, or the absence of one, is one byte in a report."""
MAX_PROTOCOL_BYTES = 2**22
"""Largest protocol with a public model in it, by default 4 MiB."""
LARGEST, NARROWEST = 1e60, 1e-60
"""Limits of a label's magnitude and of its range. Their fourth powers, for variances of squared errors, stay floats."""
MOST_GIB = 3
BYTES_A_CELL, BYTES_AN_ENTRY = 3_000, 700
"""Bytes of a cell, and of each class in it. 4,096 cells x 1,000 classes take 2.8 GB, 262,144 x 2 take 1 GB."""


def is_number(value: Any, *, whole: bool = False) -> bool:
    """Return whether this is a finite number (True and False are none)."""
    kind: Any = numbers.Integral if whole else numbers.Real
    try:
        return type(value) is not bool and isinstance(value, kind) and math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def check_epsilon(epsilon: Any) -> float:
    """Return what one holder's reports spend. Raises ConfigError where it cannot be that."""
    if not is_number(epsilon) or not 0 < epsilon <= MAX_EPSILON:
        raise ConfigError(f"epsilon must be a number above 0 and at most {MAX_EPSILON:g}, got {epsilon!r}")
    if epsilon < MIN_EPSILON:
        raise ConfigError(
            f"epsilon must be at least {MIN_EPSILON:g}: below that, reports tell nothing; got {epsilon!r}"
        )
    return float(epsilon)


def check_spent(model: str, epsilon: float, **people: int) -> None:
    """Check what a model file says that it rests on. Raises DataError unless epsilon is positive and finite, and no count
    negative.

    Args:
        model: what the message calls it.
        epsilon: what each holder spent.
        people: how many there were, by the field's name.
    """
    if not 0 < epsilon <= sys.float_info.max:
        raise DataError(f"{model}: epsilon = {epsilon!r:.24}: must be positive and finite; export it again")
    for name, count in people.items():
        if not 0 <= count < 2**63:
            raise DataError(
                f"{model}: {name} = {count!r:.24}: must be 0 or more, and below 2^63; export it again"
            )


def label_ends(label_range: Any) -> tuple[float, float]:
    """Return the two ends of a given range of labels. Raises ConfigError unless two numbers pass `check_ends`."""
    try:
        low, high = label_range
    except (TypeError, ValueError):
        raise ConfigError(f"label_range must be (low, high), two numbers, got {label_range!r}") from None
    if not (is_number(low) and is_number(high)):
        raise ConfigError(f"label_range must be (low, high), two finite numbers, got {label_range!r}")
    if low >= high:
        raise ConfigError(f"label_range: low must be below high, got ({low:g}, {high:g}); swap them?")
    check_ends(float(low), float(high))
    return float(low), float(high)


def check_ends(low: float, high: float) -> None:
    """Raises ConfigError unless low < high, within LARGEST of 0 and NARROWEST or more apart."""
    check_order(low, high)
    if max(abs(low), abs(high)) > LARGEST or high - low < NARROWEST:
        raise ConfigError(
            f"label range ({low:g}, {high:g}): its ends must be within {LARGEST:g} of 0 and at least {NARROWEST:g} apart, "
            "or squares of labels are no floats; choose another unit for the label"
        )


def check_labels(low: float, high: float) -> None:
    """Check public labels, all equal or not. Raises ConfigError unless they are within LARGEST of 0, and their range is
    none or not below NARROWEST.
    """
    check_ends(low, high if high > low else low + max(1.0, abs(low)))


def check_order(low: float, high: float) -> None:
    """Raises ConfigError unless low < high, both finite, and their distance too."""
    if not (math.isfinite(high - low) and low < high):
        raise ConfigError(
            f"label range ({low:g}, {high:g}): the low end must be below the high end, both finite, and not so far apart "
            "that their distance is not"
        )


def check_memory(n_cells: int, n_classes: int) -> None:
    """Raises ConfigError where the totals and the model's arrays would not fit into `MOST_GIB`."""
    a_cell = BYTES_A_CELL + n_classes * BYTES_AN_ENTRY
    if (size := n_cells * a_cell / 2**30) > MOST_GIB:
        raise ConfigError(
            f"{n_cells:,} cells x {n_classes:,} classes: totals and model take about {size:,.1f} GiB; at most {MOST_GIB} are "
            f"used, which is {MOST_GIB * 2**30 // a_cell:,} such cells. Choose a smaller depth"
        )
