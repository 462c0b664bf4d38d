"""The rows of a data set, whole, and their split in a repetition, which is the same for every method.

Whoever runs a benchmark owns the rows. They are kept in the holders' zone all the same.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree_benchmark.masks import draw_mask
from ldptree_benchmark.suite import Split
from schemas.manifest import Manifest
from storage import tables
from storage.store import Draft, Store
from tasks.artifacts import read_encoding
from tasks.step import step

PUBLIC, PRIVATE, TEST = 0, 1, 2
"""What a row is. Of a data set from files none is TEST before it is split."""
FILE = "rows.npz"
Ends = float | NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledRows:
    """Rows with their labels, in the units of the file.

    Attributes:
        X: float64 [n, d], categories as indicators.
        y: int64 [n], classes from 0, or float64 [n].
        part: int8 [n], PUBLIC, PRIVATE or TEST.
        n_classes: 0 where the label is a number.
        features: names of the d columns.
        label_range: of a number, known before any row is seen; None where it is not.
        feature_range: (low, high) of every feature, numbers or float64 [d], the same way.
        expected: float64 [n] of a law: the number, or the share of class 1, that each label is drawn around.
        protects: bool [n, d], which features each person protects; None where nobody has said. Labels are protected always.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64] | NDArray[np.float64]
    part: NDArray[np.int8]
    n_classes: int
    features: tuple[str, ...]
    label_range: tuple[float, float] | None = None
    feature_range: tuple[Ends, Ends] | None = None
    expected: NDArray[np.float64] | None = None
    protects: NDArray[np.bool_] | None = None

    def of(self, part: int) -> LabelledRows:
        """The rows of one part."""
        return self.kept(self.part == part)

    def kept(self, at: NDArray[np.bool_]) -> LabelledRows:
        """Those of the rows, bool [n]."""
        expected = None if self.expected is None else self.expected[at]
        protects = None if self.protects is None else self.protects[at]
        return replace(
            self, X=self.X[at], y=self.y[at], part=self.part[at], expected=expected, protects=protects
        )

    def without(self, left_out: NDArray[np.integer]) -> LabelledRows:
        """The rows but those, by their numbers."""
        return self.kept(~np.isin(np.arange(self.n), left_out))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)


@dataclass(frozen=True)
class Leaks:
    """What makes scores look better than they are.

    Attributes:
        copies: share of the test rows that have an exact copy, label included, among the others.
        public_copies: share of the public rows that have one among the private ones.
        decides: the feature by which alone a depth-3 tree has hardly any error, and its score; "" where there is none.
    """

    copies: float
    public_copies: float
    decides: str = ""


@step("rows", version="1", home="holders", says="the rows of a benchmark's data set")
def pool_rows(
    draft: Draft,
    *,
    public: Manifest,
    private: Manifest,
    encoding: Manifest,
    target: str,
    is_number: bool,
    label_range: tuple[float, float] | None,
) -> dict[str, int]:
    """Put a run's public and private rows into one file, categories by levels and numbers as they are."""
    encoder, classes = read_encoding(draft.store, encoding)
    X, part = [], []
    y: list[Any] = []
    for number, manifest in ((PUBLIC, public), (PRIVATE, private)):
        table = tables.read(tables.typed_parts(draft.store.files(manifest)), [*encoder.columns, target])
        raw = tables.raw_matrix(table, encoder)
        column = table.column(target)
        labels = tables.label_numbers(column) if is_number else tables.label_codes(column, classes)
        kept = encoder.encodable(raw) & (~np.isnan(labels) if is_number else labels >= 0)
        X.append(expand_columns(encoder, raw[kept]))
        y.append(labels[kept])
        part.append(np.full(int(kept.sum()), number, dtype=np.int8))
    rows = LabelledRows(
        X=np.concatenate(X), y=np.concatenate(y), part=np.concatenate(part),
        n_classes=0 if is_number else len(classes), features=tuple(encoder.names), label_range=label_range,
    )  # fmt: skip
    write_rows(draft, rows)
    return {"rows": rows.n, "features": rows.X.shape[1]}


def expand_columns(encoding: Encoding, raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Expand a raw matrix to float64 [n, d] as `Encoding.encode` does, with numbers in their own unit."""
    X = encoding.encode(raw).astype(np.float64)
    place = 0
    for number, feature in enumerate(encoding.features):
        if isinstance(feature, NumericFeature):
            column = raw[:, number]
            X[:, place] = column if feature.fill is None else np.where(np.isnan(column), feature.fill, column)
        place += len(feature.names)
    return X


def write_rows(draft: Draft, rows: LabelledRows) -> None:
    """As the step's artifact."""
    np.savez(
        draft.folder("rows") / FILE,
        X=rows.X, y=rows.y, part=rows.part, n_classes=rows.n_classes, features=np.array(rows.features),
        label_range=np.array(rows.label_range or (np.nan, np.nan)),
    )  # fmt: skip


def read_rows(store: Store, manifest: Manifest) -> LabelledRows:
    """What `write_rows` wrote."""
    with np.load(store.file(manifest, FILE)) as arrays:
        low, high = map(float, arrays["label_range"])
        return LabelledRows(
            X=arrays["X"], y=arrays["y"], part=arrays["part"], n_classes=int(arrays["n_classes"]),
            features=tuple(map(str, arrays["features"])), label_range=None if np.isnan(low) else (low, high),
        )  # fmt: skip


def split_rows(rows: LabelledRows, name: str, seed: int, repetition: int, split: Split) -> LabelledRows:
    """Return the public, private and held-back rows of one repetition, the same for every method and epsilon.

    Raises DataError where a part is empty; ConfigError: a feature that the split names is not there.
    """
    if not (is_law := bool((rows.part == TEST).any())):
        rng = np.random.default_rng([zlib.crc32(name.encode()), seed, repetition])
        part = rows.part.copy()
        if split.public is not None:
            order = rng.permutation(rows.n)
            n_public, n_test = -int(-rows.n * split.public // 1), -int(-rows.n * split.test // 1)
            part[:] = PRIVATE
            part[order[:n_public]] = PUBLIC
            part[order[n_public : n_public + n_test]] = TEST
        else:
            private = rng.permutation(np.flatnonzero(part == PRIVATE))
            part[private[: round(split.test * private.size)]] = TEST
        rows = replace(rows, part=part)
        if split.most_public is not None:
            public = rng.permutation(np.flatnonzero(part == PUBLIC))
            rows = rows.without(public[split.most_public :])
        if split.kept < 1:
            private = rng.permutation(np.flatnonzero(rows.part == PRIVATE))
            rows = rows.without(private[round(split.kept * private.size) :])
    if split.ranges == "all rows":
        ends = None if rows.n_classes else (float(rows.y.min()), float(rows.y.max()))
        rows = replace(rows, feature_range=(rows.X.min(axis=0), rows.X.max(axis=0)), label_range=ends)
    if split.private:
        rng = np.random.default_rng([zlib.crc32(f"{name}/private".encode()), seed, repetition])
        rows = replace(rows, protects=draw_mask(rows.features, rows.n, split, rng, dataset=name))
    if split.differ is not None:
        rows = change_labels(rows, split.differ, seed, repetition)
    needed = {PUBLIC: "public", PRIVATE: "private", TEST: "held-back"}
    if is_law or rows.protects is not None:  # what people show takes the place of public rows
        del needed[PUBLIC]
    for number, what in needed.items():
        if not (rows.part == number).any():
            raise DataError(
                f"{name}: no {what} row is left by the suite's split; change split.public or split.test"
            )
    return rows


def change_labels(rows: LabelledRows, size: float, seed: int, repetition: int) -> LabelledRows:
    """Return labels of private and held-back rows, changed where the feature that says most of the label is above its
    median. A share `size` of classes moves to the next one, or a number by `size` standard deviations.
    """
    spread = rows.X.std(axis=0)
    says = np.abs(np.corrcoef(rows.X[:, spread > 0].T, rows.y)[-1, :-1])
    column = rows.X[:, np.flatnonzero(spread > 0)[int(says.argmax())]]
    where = (column > np.median(column)) & (rows.part != PUBLIC)
    if not rows.n_classes:
        return replace(rows, y=rows.y + size * float(rows.y.std()) * where, expected=None)
    is_other = where & (np.random.default_rng([seed, repetition]).random(rows.n) < size)
    return replace(rows, y=np.where(is_other, (rows.y + 1) % rows.n_classes, rows.y), expected=None)


def find_leaks(rows: LabelledRows) -> Leaks:
    """Find copies of test rows, of public rows among private ones, and a feature that decides the label."""
    whole = np.ascontiguousarray(np.column_stack([rows.X, rows.y]))
    kept = whole.view([("", whole.dtype)] * whole.shape[1]).ravel()
    is_test = rows.part == TEST
    copies = float(np.isin(kept[is_test], kept[~is_test]).mean())
    public, private = kept[rows.part == PUBLIC], kept[rows.part == PRIVATE]
    public_copies = float(np.isin(public, private).mean()) if len(public) else 0.0
    return Leaks(copies, public_copies, _deciding_feature(rows))


def _deciding_feature(rows: LabelledRows) -> str:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    learn, test = rows.part != TEST, rows.part == TEST
    usual = np.bincount(rows.y[test]).max() / test.sum() if rows.n_classes else float(rows.y[test].var())
    for number, name in enumerate(rows.features):
        column = rows.X[:, [number]]
        kind = DecisionTreeClassifier if rows.n_classes else DecisionTreeRegressor
        predicted = kind(max_depth=3, random_state=0).fit(column[learn], rows.y[learn]).predict(column[test])
        if rows.n_classes:
            wrong, most = float(np.mean(predicted != rows.y[test])), 0.05 * (1.0 - usual)
        else:
            wrong, most = float(np.mean((predicted - rows.y[test]) ** 2)), 0.02 * usual
        if wrong <= most:
            return name
    return ""
