"""Choose the public range, the levels and the encoding by public rows and the specification, and scale public rows.

Private rows are never written out scaled: `ldptree.partition.raw` puts the partition into raw units instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import ConfigError, DataError
from ldptree.validation import checked_label_range
from schemas.dataset import FEW_CLASSES, LEVELS_MAX, LONGEST_NAME, MOST_CLASSES, DatasetSpec
from schemas.families import estimators_for
from schemas.manifest import Manifest
from storage import tables
from storage.raw.recognition.columns import recognise
from storage.raw.recognition.findings import LEVELS_LISTED, ColumnSample
from storage.store import Draft
from tasks.data.leaks import telling_columns
from tasks.step import step

MOST_PUBLIC = 1_000_000
"""Public rows that a model learns from; of more so many are drawn, which bounds memory."""


def classes_of(column: pa.ChunkedArray, spec: DatasetSpec) -> tuple[Any, ...]:
    """Return the declared label values, or else the sorted ones of public rows. The positive one is the second.

    Raises DataError where there is only one, ConfigError where the positive one is not among them.
    """
    classes = _label_values(column, spec)
    if spec.positive is None:
        return classes
    positive = [value for value in classes if str(value) == str(spec.positive)]
    if not positive:
        near = difflib.get_close_matches(str(spec.positive), map(str, classes), n=1)
        raise ConfigError(
            f"dataset.positive: {spec.positive!r} is not a label of public rows ({', '.join(map(str, classes))})."
            + (f" Did you mean {near[0]!r}?" if near else "")
        )
    others = [value for value in classes if value != positive[0]]
    return (others[0], positive[0], *others[1:])


def _label_values(column: pa.ChunkedArray, spec: DatasetSpec) -> tuple[Any, ...]:
    if spec.classes is not None:
        return tuple(pa.array(list(spec.classes)).cast(column.type).to_pylist())
    values = sorted(value for value in pc.unique(column).to_pylist() if value is not None)
    _check_lengths(spec.target, values)
    if len(values) < 2:
        raise DataError(
            f'target "{spec.target}": public rows hold {"one value only: " + repr(values[0]) if values else "no value"}. '
            "Nothing can be learned from them; choose another public rule, or declare dataset.classes."
        )
    n_rows = len(column) - column.null_count
    if len(values) > MOST_CLASSES or (len(values) > FEW_CLASSES and 2 * len(values) > n_rows):
        raise DataError(
            f'target "{spec.target}": {len(values):,} different values in {n_rows:,} public rows are too many classes '
            f"(undeclared at most {MOST_CLASSES}, and beyond {FEW_CLASSES} two public rows a class). Choose another "
            "dataset.target, declare dataset.classes, derive a coarser label in dataset.derive, or, where it is a number, set "
            f'model.estimator to one that learns numbers ({", ".join(estimators_for("number"))}), and dataset.label = "number".'
        )
    return tuple(values)


def encoding_of(public: pa.Table, features: Sequence[str], spec: DatasetSpec) -> Encoding:
    """Ranges, levels and fills of the features, from public rows and the specification. Raises DataError, ConfigError."""
    made: list[NumericFeature | CategoricalFeature] = []
    for name in features:
        column = public.column(name)
        if column.null_count == len(column):
            raise DataError(f'column "{name}": every public value is missing. Add it to dataset.drop.')
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if name in spec.categorical or name in spec.levels or is_text or pa.types.is_boolean(column.type):
            made.append(_category(name, column, spec))
        else:
            values = pl.Series(pc.cast(column, pa.float64())).to_numpy()  # pyarrow would import pandas
            made.append(NumericFeature.from_public(name, values, missing=spec.fill))
    return Encoding(tuple(made))


@step(
    "scale",
    version="4",
    home="curator",
    retries=2,
    says="the public range, the levels and the encoding",
)
def scale(
    draft: Draft,
    *,
    public: Manifest,
    features: Sequence[str],
    dataset: DatasetSpec,
    frozen: Manifest | None,
    numeric: bool = False,
    label_range: tuple[float, float] | None = None,
) -> Mapping[str, Any]:
    """Write the encoding ("encoding") and the scaled public rows ("scaled", in the public zone), at most `MOST_PUBLIC` of them.

    `frozen`: the protocol of a campaign, whose ranges, levels and classes then hold. `numeric`: the label is a number, and
    `label_range` its range where one was given.
    """
    # with all families, which init does not need
    from tasks.artifacts import read_protocol, write_encoding, write_scaled

    all_rows = tables.read(tables.typed_parts(draft.store.files(public)))
    protocol = None if frozen is None else read_protocol(draft.store, frozen)
    encoding = encoding_of(all_rows, features, dataset) if protocol is None else protocol.encoding
    classes: tuple[Any, ...] = ()
    if not numeric:
        classes = (
            classes_of(all_rows.column(dataset.target), dataset)
            if protocol is None
            else protocol.label_classes
        )
    holder = dataset.holder_column if dataset.holder_column in all_rows.column_names else None
    alone, together = telling_columns(all_rows, features, dataset.target, is_number=numeric, holder=holder)
    rows = _draw(all_rows)
    n_not_drawn = len(all_rows) - len(rows)
    del all_rows
    label, raw = rows.column(dataset.target), tables.raw_matrix(rows, encoding)
    y: NDArray[Any]
    if numeric:
        y = numbers = tables.label_numbers(label)
        usable = encoding.encodable(raw) & np.isfinite(y)
    else:
        y = tables.label_codes(label, classes)
        usable = encoding.encodable(raw) & (y >= 0)
    if not usable.any():
        raise DataError("no public row has a label and all features it needs. See dataset.fill.")
    content: dict[str, Any] = {"encoding": encoding.to_json()}
    if numeric:
        content["label_range"] = list(
            label_range_of(label_range, numbers[usable], dataset.target)
            if protocol is None or protocol.base is not None  # whose range is that of its errors
            else protocol.label_range
        )
    else:
        content["classes"] = list(classes)
        if protocol is None and len(codes := np.unique(y[usable])) == 1:
            raise DataError(
                f'target "{dataset.target}": all public rows that can be used say {classes[codes[0]]!r}. '
                "Nothing can be learned from them; correct dataset.classes, or choose another public rule."
            )
    weights = (
        None if dataset.weight is None else weights_of(rows.column(dataset.weight), usable, dataset.weight)
    )
    write_encoding(draft, content)
    write_scaled(draft, encoding, raw, y, usable, weights)
    return {
        "n_public": int(usable.sum()),
        "n_unusable": int((~usable).sum()),
        "n_not_drawn": n_not_drawn,
        "n_features": encoding.n_encoded,
        "n_columns": len(encoding.columns),
        "telling": {"alone": alone, "together": together},
        **({"label_range": content["label_range"]} if numeric else {"classes": [str(c) for c in classes]}),
    }


def _draw(rows: pa.Table) -> pa.Table:
    """Return the rows, or `MOST_PUBLIC` of them in their order, the same each time."""
    if len(rows) <= MOST_PUBLIC:
        return rows
    is_drawn = np.zeros(len(rows), np.bool_)
    is_drawn[np.random.default_rng(0).choice(len(rows), MOST_PUBLIC, replace=False)] = True
    return rows.filter(pa.array(is_drawn))


def weights_of(column: pa.ChunkedArray, usable: NDArray[np.bool_], name: str) -> NDArray[np.float64]:
    """Return the weights [n] of public rows, on average 1 of the usable ones. Raises DataError where one has none."""
    weights = tables.label_numbers(column)
    if wrong := int((~(weights[usable] > 0) | ~np.isfinite(weights[usable])).sum()):
        rows = "1 public row has" if wrong == 1 else f"{wrong:,} public rows have"
        raise DataError(
            f'dataset.weight: {rows} no weight above 0 in "{name}". Correct them, or leave them out with '
            f"where = '\"{name}\" > 0'."
        )
    return np.asarray(weights / weights[usable].mean())


def label_range_of(
    given: tuple[float, float] | None, labels: NDArray[np.float64], target: str
) -> tuple[float, float]:
    """Return the range that private labels are moved into, which is the given range or that of the public labels [n].

    Raises DataError where those are all equal, ConfigError where the given range does not cover them.
    """
    try:
        return checked_label_range(given, labels)
    except ConfigError as fault:
        raise ConfigError(f"model.{fault}.") from None
    except DataError as fault:
        raise DataError(f'target "{target}": {str(fault).removeprefix("y: ")}.') from None


def _category(name: str, column: pa.ChunkedArray, spec: DatasetSpec) -> CategoricalFeature:
    if name in spec.levels:
        try:
            levels = tuple(pa.array(list(spec.levels[name])).cast(column.type).to_pylist())
        except pa.ArrowInvalid:
            raise ConfigError(
                f'dataset.levels: those of "{name}" do not fit its type ({column.type}).'
            ) from None
    else:
        levels = tuple(sorted(v for v in pc.unique(column).to_pylist() if v is not None))
        _check_levels(name, levels, spec)
    codes = tables.label_codes(column, levels).astype(np.float64)
    if not (codes >= 0).any():
        raise DataError(
            f'column "{name}": no public value is among its declared levels. Correct dataset.levels, or drop it.'
        )
    codes[pc.is_null(column).to_numpy()] = np.nan
    return CategoricalFeature.from_public(name, levels, codes, missing=spec.fill)


def _check_lengths(name: str, values: Sequence[Any]) -> None:
    """Raises DataError where a text is too long for a category or a class."""
    longest = max((len(value) for value in values if isinstance(value, str)), default=0)
    if longest > LONGEST_NAME:
        raise DataError(
            f'column "{name}": a public value has {longest:,} characters, and a category or a class has at most '
            f"{LONGEST_NAME:,}. Derive something shorter, or drop it."
        )


def _check_levels(name: str, levels: Sequence[Any], spec: DatasetSpec) -> None:
    """Raises DataError where the public values are too many to be categories, or are numbers or dates.

    Of a raw column that nobody declared ingest has told this already: here come those that were declared or derived.
    """
    if len(levels) > LEVELS_MAX:
        raise DataError(
            f'column "{name}": {len(levels):,} different values in public rows, and a category has at most {LEVELS_MAX:,}. '
            "Drop it, list fewer in dataset.levels, or derive something coarser."
        )
    _check_lengths(name, levels)
    if name in spec.categorical or name in spec.types or not isinstance(levels[0], str):
        return
    if len(levels) > LEVELS_LISTED:
        raise DataError(
            f'column "{name}": {len(levels)} different texts in public rows, and each would be a feature of its own. '
            f"Drop it, derive something coarser, or add it to dataset.categorical, where up to {LEVELS_MAX:,} are taken."
        )
    finding = recognise(ColumnSample.of(name, levels))
    if finding is not None and finding.readings:
        raise DataError(
            f'column "{name}": {finding.sentence}, and each would be a feature of its own. Derive numbers, as with '
            f"{finding.readings[0].derive[0][1]}; or drop it, or add it to dataset.categorical."
        )
