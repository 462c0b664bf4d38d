"""The unit and the centre of labels as scikit-learn's trees see them, so that trees depend on neither.

scikit-learn treats a node as pure where its variance is below 2^-52, in the labels' own unit, and stops boosting many rows at
an absolute gain of 10^-7: on labels in a very small unit it would grow nothing. It computes a variance as the mean of squares
minus the square of the mean, which loses every digit of labels such as seconds since 1970. The unit is a power of two, and the
centre is near enough, so that neither dividing nor subtracting rounds anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Fitted = TypeVar("Fitted")

ORDINARY = (2.0**-10, 2.0**60)
"""Ranges of labels that are left as they are, as equal labels may round to unequal ones in another unit."""

FAR = 2.0**10
"""In ranges of labels, how far from 0 their middle is where they are counted from it."""


def unit_of(y: NDArray[Any]) -> float:
    """Return the power of two that labels [n] are to be divided by, which is 1 for an ordinary range."""
    spread = _spread(y)
    return 1.0 if ORDINARY[0] <= spread < ORDINARY[1] else _above(spread)


def centre_of(y: NDArray[Any]) -> float:
    """Return the origin of labels [n], which is 0, or the middle of their range if that is `FAR` from 0.

    So far away every label is between half the centre and twice the centre, and their difference is exact (Sterbenz 1974).
    """
    spread = _spread(y)
    middle = float(np.min(y)) + spread / 2 if spread > 0 else 0.0
    return middle if abs(middle) >= FAR * spread else 0.0


def in_range_of_one(y: NDArray[Any]) -> Floats:
    """Numbers [n] from their centre whose range is in [1/2, 1), whatever it was; all equal, they stay as they are."""
    return (np.asarray(y, dtype=np.float64) - centre_of(y)) / _above(_spread(y))


def fit_in_unit(
    model: Fitted,
    X: NDArray[Any],
    y: NDArray[Any],
    unit: float | None = None,
    weights: NDArray[Any] | None = None,
) -> Fitted:
    """A tree, forest or histogram boosting of scikit-learn, for numbers, fitted to labels in their unit and from their centre.

    Its values are as of y.

    Args:
        model: not fitted.
        X, y: rows [n, d] and labels [n].
        unit: where it is not that of y: of the labels that y is a rest of.
        weights: of the rows, [n].
    """
    estimator: Any = model
    size, centre = unit_of(y) if unit is None else unit, centre_of(y)
    apart = y if centre == 0.0 else y - centre
    estimator.fit(X, apart if size == 1.0 else apart / size, sample_weight=weights)
    if size != 1.0 or centre != 0.0:
        _put_back(estimator, size, centre)
    return model


def _put_back(fitted: Any, unit: float, centre: float) -> None:
    """Undo unit and centre in place, in values by both and in variances by the unit's square."""
    if hasattr(fitted, "_predictors"):
        fitted._baseline_prediction *= unit
        fitted._baseline_prediction += centre
        for (predictor,) in fitted._predictors:
            predictor.nodes["value"] *= unit
        return
    for tree in getattr(fitted, "estimators_", [fitted]):
        tree.tree_.value[:] *= unit
        tree.tree_.value[:] += centre
        tree.tree_.impurity[:] *= unit**2


def _spread(y: NDArray[Any]) -> float:
    return float(np.ptp(y)) if np.size(y) else 0.0


def _above(spread: float) -> float:
    """The smallest power of two above it that there is; 1 of 0 and of what is not finite."""
    return float(np.ldexp(1.0, min(int(np.frexp(spread)[1]), 1023)))
