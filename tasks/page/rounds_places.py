"""Where a cell of HistOfTree's histogram lies, and what a step of trees asks, in raw units and plain words."""

from __future__ import annotations

from collections.abc import Callable

from ldptree.encoding import Encoding, NumericFeature
from ldptree.families.public_features.steps import Step
from ldptree.models.effects import columns_of
from ldptree.partition.product import Product
from tasks.page.places import Names, class_name, number_words


def places_of(product: Product, encoding: Encoding, names: Names) -> Callable[[int], tuple[str, ...]]:
    """What a histogram's cell is called: a function from its number to one phrase a feature."""
    histogram = product.histogram
    columns = [(j, place) for j, group in enumerate(columns_of(encoding)) for place in range(len(group))]

    def told(cell: int) -> tuple[str, ...]:
        digits = cell // histogram.places % histogram.bins
        return tuple(
            _bin_words(encoding, *columns[column], int(digit), histogram.bins, names)
            for column, digit in zip(histogram.features, digits, strict=True)
        )

    return told


def _bin_words(encoding: Encoding, at: int, place: int, digit: int, bins: int, names: Names) -> str:
    """Where a bin of an encoded column lies, in raw units."""
    feature = encoding.features[at]
    column = feature.column.replace("_", " ")
    if not isinstance(feature, NumericFeature) or place > 0:
        # a mark is 0 or 1, the lowest bin or the highest; where it is not known, the middle
        if 0 < digit < bins - 1:
            return f"{column} is not known"
        return _mark_words(encoding, at, place, names, is_so=digit > 0)
    low, high = (feature.minimum + k / bins * (feature.maximum - feature.minimum) for k in (digit, digit + 1))
    if digit == 0:
        return f"{column} up to {_about(high)}"
    return f"{column} above {_about(low)}" + ("" if digit == bins - 1 else f" to {_about(high)}")


def _mark_words(encoding: Encoding, at: int, place: int, names: Names, *, is_so: bool = True) -> str:
    """What an encoded column that is 0 or 1 says: "kind is wild"."""
    feature = encoding.features[at]
    column, verb = feature.column.replace("_", " "), "is" if is_so else "is not"
    if isinstance(feature, NumericFeature) or place >= len(feature.levels):
        return f"{column} {verb} missing"
    return f"{column} {verb} {class_name(feature.column, feature.levels[place], names)}"


def asked(step: Step, encoding: Encoding, names: Names) -> str:
    """What a step asks, in raw units."""
    columns = [(j, place) for j, group in enumerate(columns_of(encoding)) for place in range(len(group))]
    at, place = columns[step.feature]
    feature = encoding.features[at]
    if not isinstance(feature, NumericFeature) or place > 0:
        return _mark_words(encoding, at, place, names)
    raw = feature.minimum + step.threshold * (feature.maximum - feature.minimum)
    return f"{feature.column.replace('_', ' ')} above about {_about(raw)}"


def _about(value: float) -> str:
    return number_words(float(f"{value:.3g}"))
