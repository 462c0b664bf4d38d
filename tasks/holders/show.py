"""Write what each holder shows if some features are public. Runs with the holders, where protected values stay.

Of a protected value nothing is written, and whether a holder takes part depends on nothing they protect: what is missing
counts as the middle of its range.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
from numpy.typing import NDArray

from ldptree.encoding import Encoding
from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.models.public_view import points_of
from schemas.manifest import Manifest
from schemas.tables import FeaturesConfig
from storage import tables
from storage.digests import Hasher
from storage.store import Draft, Store
from tasks.artifacts import read_encoding
from tasks.step import NotInKey, step

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rows:
    """Complete rows of holders, with points float64 [n, d], labels float64 [n], and what they protect, bool [n, d]."""

    points: Floats
    labels: Floats
    protects: Mask


@step(
    "show",
    version="2",
    home="holders",
    says="what each person shows, where some features are public",
)
def show(
    draft: Draft,
    *,
    encoding: Manifest,
    train: Manifest,
    features: FeaturesConfig,
    release: str,
    is_seeded: bool,
    allowed: NotInKey,
) -> Mapping[str, Any]:
    """Write what everybody can see of the holders (part "shown", in the public zone). `shown.parquet` has a row for
    each holder in the order of `in_order`. `mask.json` says what all of them protect, or null if each says so, and
    which features were declared, so that answers under one declaration never stand for another.

    `release`: "all"; otherwise nothing of the mask leaves the holders, and so nothing that is shown. `allowed`: the features by
    the configuration, of which alone something is shown, whatever an encoding in the curator's zone names.

    Raises:
        ProtocolMismatch: the encoding has another column.
        ConfigError: a feature or a column of the mask that is none.
        DataError: a column of the mask is not of truth values.
    """
    read, _ = read_encoding(draft.store, encoding)
    if others := [name for name in read.columns if name not in allowed.value]:
        raise ProtocolMismatch(
            f"{encoding.names[0]}: it has holders show {', '.join(others)}, by the configuration no feature. Nothing was "
            "shown. Find out who wrote to the curator's zone, and delete the file: the next run makes it anew."
        )
    d, folder = read.n_encoded, draft.folder("shown", "public")
    parts = []
    shards = in_order(draft.store, train, is_seeded=is_seeded)
    for path in (path for shard in shards for path in draft.store.files(shard)):
        check_mask(pq.read_schema(path).names, features)
        table = tables.read([path], needed(read, features))
        protects = protects_of(read, table, features)
        if release != "all":
            protects[:] = True
        points = np.where(protects, 0.0, points_of(read, tables.raw_matrix(table, read)))
        columns = [pa.array(column) for column in points.T]
        columns += (
            [pa.array(column) for column in protects.T] if features.protects and release == "all" else []
        )
        names = [*map(str, range(d)), *(f"protects {j}" for j in range(len(columns) - d))]
        parts.append(pa.table(columns, names=names))
    shown = pa.concat_tables(parts)
    tables.write(folder / "shown.parquet", shown)
    aligned = None if features.protects and release == "all" else _all_protect(read, features, release)
    (folder / "mask.json").write_text(
        json.dumps({"protects": aligned, "declared": features.model_dump(mode="json")}, sort_keys=True)
    )
    draft.count("shown", "shown.parquet", shown.num_rows)
    return {"n_private": shown.num_rows, "n_features": d}


def in_order(store: Store, train: Manifest, *, is_seeded: bool) -> list[Manifest]:
    """The holders' shards in the order in which they are shown.

    By their names, which tell nothing; of a seeded simulation, which repeats in every work folder, by what they hold.
    """
    shards = train.one_by_one()
    if not is_seeded:
        return shards
    return sorted(shards, key=lambda shard: Hasher().of_file(store.files(shard)[0]))


def needed(encoding: Encoding, features: FeaturesConfig, *more: str) -> list[str]:
    """The raw columns of a row and its mask, and more."""
    return list(dict.fromkeys([*encoding.columns, *features.protects.values(), *more]))


def read_rows(path: Path, encoding: Encoding, features: FeaturesConfig, label: Label) -> Rows:
    """Read the complete rows of one shard, which belong to its holders."""
    table = tables.read([path], needed(encoding, features, label.target))
    return Rows(
        points_of(encoding, tables.raw_matrix(table, encoding)),
        label.of(table.column(label.target)),
        protects_of(encoding, table, features),
    )


@dataclass(frozen=True)
class Label:
    """Read a label as a number and move it into its range."""

    target: str
    low: float
    high: float

    def of(self, column: Any) -> Floats:
        """float64 [n]; a missing label is the middle of the range."""
        values = tables.label_numbers(column)
        middle = (self.low + self.high) / 2
        return np.clip(np.where(np.isnan(values), middle, values), self.low, self.high)


def protects_of(encoding: Encoding, table: pa.Table, features: FeaturesConfig) -> Mask:
    """Return which values each holder protects, bool [n, d]; where the mask's own value is missing, everything it is about.

    Raises:
        ConfigError: a feature that is named is none.
        DataError: a column of the mask is not of truth values.
    """
    check_features(encoding.columns, features)
    protects = np.zeros((table.num_rows, encoding.n_encoded), dtype=bool)
    at = 0
    for feature in encoding.features:
        width = len(feature.names)
        if feature.column in features.private:
            protects[:, at : at + width] = True
        elif feature.column in features.protects:
            protects[:, at : at + width] = _truths(table, features.protects[feature.column])[:, None]
        at += width
    return protects


def check_features(columns: Sequence[str], features: FeaturesConfig) -> None:
    """Raises ConfigError where a private feature is not one of the columns."""
    for key, names in (("private", features.private), ("protects", tuple(features.protects))):
        for name in names:
            if name not in columns:
                near = difflib.get_close_matches(name, columns, n=1)
                hint = f" Did you mean {near[0]}?" if near else ""
                raise ConfigError(
                    f'features.{key}: "{name}" is not a feature; features are {", ".join(columns)}.{hint}'
                )


def check_mask(columns: Sequence[str], features: FeaturesConfig) -> None:
    """Raises ConfigError where a column that says what is protected is not in the data."""
    for feature, name in features.protects.items():
        if name not in columns:
            raise ConfigError(
                f'features.protects: "{name}", which says who protects "{feature}", is not a column of the data, or dropped '
                "from it (dataset.columns, dataset.drop)"
            )


def _truths(table: pa.Table, name: str) -> Mask:
    column = table.column(name)
    if not pt.is_boolean(column.type):
        raise DataError(
            f'column "{name}": the mask of features.protects must be true or false, found {column.type}. Declare its type '
            "as boolean, or correct the column."
        )
    mask: Mask = pc.fill_null(column, True).to_numpy()
    return mask


def _all_protect(encoding: Encoding, features: FeaturesConfig, release: str) -> list[bool]:
    """Return what everybody protects alike, for each encoded column."""
    return [
        release != "all" or feature.column in features.private
        for feature in encoding.features
        for _ in feature.names
    ]
