"""The released model of the family `public_features`, with a surface of public features and effects of private ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.limits import check_spent
from ldptree.models.curves import MOST_PEOPLE, evenly
from ldptree.models.description import Description, Evidence, Names, Statement, name_columns, name_level
from ldptree.models.effects import columns_of, stretches_held
from ldptree.models.surface import BINS, Contrast, Step, Surface, find_steps
from ldptree.serialize import Document

Floats = NDArray[np.float64]
ENDS = np.linspace(0.0, 1.0, BINS + 1)
MOST_EFFECTS, MOST_STEPS = 12, 6
HELPED = "Private features that help"
"""How the model says so (`ldptree.families.public_features.summary`)."""


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of a private feature, coefficient(public features) * contrast(feature), in the label's unit."""

    contrast: Contrast
    coefficient: Surface

    def __call__(self, rows: Floats) -> Floats:
        """float64 [n], of scaled rows [n, d]."""
        return np.asarray(self.coefficient(rows) * self.contrast(rows))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PublicFeatureModel(Document):
    """surface + sum of effects, moved into the label's range.

    Attributes:
        columns: names of the features.
        low, high: ends of each feature's range, in its own unit; values beyond are moved to them.
        private: columns that at least one holder protects.
        label_low, label_high: the label's range.
        is_binary: whether labels are -1 and 1.
        surface: of public features.
        effects: of private ones; none where they were not worth asking about.
        epsilon: of each holder.
        n_holders: how many answered or could have.
        says: in one line, whether private features helped.

    Raises:
        DataError: parts that do not fit each other.
    """

    ESTIMATOR: ClassVar[str] = "public_features"
    KINDS: ClassVar[tuple[str, ...]] = ("ldptree public features model",)

    columns: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    private: tuple[int, ...]
    label_low: float
    label_high: float
    is_binary: bool
    surface: Surface
    effects: tuple[Effect, ...]
    epsilon: float
    n_holders: int
    says: str

    def __post_init__(self) -> None:
        check_spent("model", self.epsilon, n_holders=self.n_holders)
        d = len(self.columns)
        if (
            len(self.low) != d
            or len(self.high) != d
            or any(not a <= b for a, b in zip(self.low, self.high, strict=True))
        ):
            raise DataError(
                f"model: ranges of {d} features from {len(self.low)} low and {len(self.high)} high ends"
            )
        used = {*self.private, *self.surface.features}
        for effect in self.effects:
            used |= {effect.contrast.feature, *effect.coefficient.features}
        if used and not 0 <= min(used) <= max(used) < d:
            raise DataError(f"model: it reads columns {sorted(used)}, there are {d}")
        if not self.label_low < self.label_high:
            raise DataError("model: the label's range is inverted")

    def __str__(self) -> str:
        return (
            f"{type(self).__name__} of {len(self.columns)} features, by {self.n_holders:,} holders at epsilon "
            f"{self.epsilon:g}. {self.says}"
        )

    def _repr_html_(self) -> str:
        """Return its line, and its answer along each feature, for a notebook."""
        from ldptree.models.curves import draw_alone

        ends = zip(self.columns, self.low, self.high, strict=True)
        zeros, ones = (0.0,) * len(self.columns), (1.0,) * len(self.columns)
        encoding = Encoding(tuple(NumericFeature(*pair) for pair in ends))
        return draw_alone(str(self), replace(self, low=zeros, high=ones), encoding)

    def scale_rows(self, raw: Floats) -> Floats:
        """Rows [n, d] moved to [0, 1], float64; NaN stays."""
        return scale_rows(raw, np.array(self.low), np.array(self.high))

    def predict(self, raw: Floats) -> Floats:
        """Expected labels, float64 [n], of rows [n, d] in their own units.

        A value may be NaN: of a feature of the surface the mean of those who show it stands in, and of an effect it is 0, so
        that a row without its private features is predicted from what is public.

        Raises:
            DataError: another number of columns, or an infinite value.
        """
        raw = np.asarray(raw, dtype=np.float64)
        if raw.ndim != 2 or raw.shape[1] != len(self.columns) or np.isinf(raw).any():
            raise DataError(
                f"rows to predict: shape {raw.shape}; {len(self.columns)} columns of numbers are needed"
            )
        rows = self.scale_rows(raw)
        value = self.surface(rows)
        for effect in self.effects:
            value = value + effect(rows)
        return np.clip(value, self.label_low, self.label_high)

    @property
    def most_rows(self) -> int:
        """Number of rows that averages are taken over."""
        return MOST_PEOPLE

    def draw_rows(
        self,
        values: Floats,
        protects: NDArray[np.bool_],
        one_hot: Sequence[tuple[int, ...]] = (),
        *,
        seed: int = 0,
    ) -> Floats:
        """Complete rows that stand for the holders, float64 [n, d] in [0, 1], by what is shown and this model alone.

        What holders show is as it is. Each protected feature is drawn for itself, by the shares that its contrasts go by; it
        is NaN where the model learned nothing of it.

        Args:
            values: float64 [n, d], what is shown; not looked at where it is protected.
            protects: bool [n, d].
            one_hot: columns of which at most one is 1.
            seed: of the draws.
        """
        rng, rows = np.random.default_rng(seed), np.where(protects, np.nan, values)
        ranks = {effect.contrast.feature: np.array(effect.contrast.ranks) for effect in self.effects}
        together = {j for columns in one_hot for j in columns}
        for j in sorted(set(ranks) - together):
            hidden = np.flatnonzero(protects[:, j])
            rows[hidden, j] = np.interp(rng.random(hidden.size), ranks[j], ENDS)
        for columns in one_hot:
            if any(j in ranks for j in columns):
                _draw_levels(rows, protects, columns, ranks, rng)
        return rows

    def find_cuts(self, rows: Floats, column: int) -> tuple[Floats, bool]:
        """Ends of the stretches along an encoded column, in [0, 1], and that the model varies within each."""
        return stretches_held(rows[:, column]), True

    def is_noise(self, rows: Floats) -> Floats:
        """Return 0 for every row, float64 [n], as no answer is that of a cell within its noise."""
        return np.zeros(len(rows))

    def describe(self, encoding: Encoding, target: str, evidence: Evidence) -> Description:
        """Describe the model in numbers; `encoding` is of raw rows."""
        return describe_features(self, encoding, target, evidence)


def scale_rows(raw: Floats, low: Floats, high: Floats) -> Floats:
    """Rows [n, d] moved to [0, 1] by these ends, values beyond them to the nearer; a feature without width is 0."""
    width = high - low
    safe = np.where(width > 0, width, 1.0)
    return np.clip(np.where(width > 0, (raw - low) / safe, raw * 0.0), 0.0, 1.0)


def _draw_levels(
    rows: Floats,
    protects: NDArray[np.bool_],
    columns: tuple[int, ...],
    ranks: dict[int, Floats],
    rng: np.random.Generator,
) -> None:
    """One level each by the learned shares of those above the middle; none for what is left of 1."""
    shares = np.array([1.0 - ranks[j][BINS // 2] if j in ranks else 0.0 for j in columns])
    ends = np.cumsum(shares / max(shares.sum(), 1.0))
    hidden = np.flatnonzero(protects[:, list(columns)].all(axis=1))
    drawn = np.searchsorted(ends, rng.random(hidden.size), side="right")
    for place, j in enumerate(columns):
        rows[hidden, j] = drawn == place


def describe_features(
    model: PublicFeatureModel, encoding: Encoding, target: str, evidence: Evidence
) -> Description:
    """Effects, the line and its trees, over what is shown."""
    shown = evidence.shown
    visible = np.where(shown.protects, np.nan, shown.values)
    columns = name_columns(encoding)
    statements = [*_effects(model, columns, visible), *_surface(model, encoding, visible, evidence.names)]
    answers = model.predict(visible)
    return Description(
        figure="number",
        predicts=(float(answers.min()), float(answers.max())),
        outputs=(target,),
        statements=tuple(statements),
        is_found=HELPED in model.says,
        says=_rename(model.says, encoding, columns),
    )


def _rename(text: str, encoding: Encoding, columns: list[str]) -> str:
    """The model's own words with plain names of columns; longer names first, as one may begin another."""
    plain = dict(zip(encoding.names, columns, strict=True))
    for name in sorted(plain, key=len, reverse=True):
        text = text.replace(name, plain[name])
    return text


def _effects(model: PublicFeatureModel, columns: list[str], visible: Floats) -> list[Statement]:
    """Effects of the private features, the largest first."""
    statements = []
    for effect in model.effects:
        coefficient = np.asarray(effect.coefficient(visible))
        typical = float(np.sqrt(effect.contrast.square * np.mean(coefficient**2)))
        if typical > 0.0:
            shape = {"rise": "low to high", "bowl": "middle to ends"}[effect.contrast.shape]
            varies = ", by public features" if effect.coefficient.features else ""
            statements.append(
                Statement(
                    kind="effect",
                    about=f"{columns[effect.contrast.feature]} ({shape}{varies})",
                    figures={
                        "swing": effect.contrast.swing * float(coefficient.mean()),
                        "typical": typical,
                    },
                )
            )
    return sorted(statements, key=lambda statement: -statement.figures["typical"])[:MOST_EFFECTS]


def _surface(model: PublicFeatureModel, encoding: Encoding, visible: Floats, names: Names) -> list[Statement]:
    surface, rows = model.surface, evenly(visible, MOST_PEOPLE)
    line = (surface.columns(rows) - surface.stand_ins) @ surface.slopes
    trees = surface(rows) - line
    return [
        Statement(
            kind="surface",
            figures={
                "line": float(line.std()),
                "trees": float(len(surface.trees)),
                "bent": float(trees.std()) if surface.trees else 0.0,
            },
        ),
        *(
            Statement(
                kind="step",
                about=_ask(step, encoding, names),
                figures={"trees": float(step.n_trees), "change": step.change, "part": step.share},
            )
            for step in find_steps(surface, rows)[:MOST_STEPS]
        ),
    ]


def _ask(step: Step, encoding: Encoding, names: Names) -> str:
    """Return the test of a step, in raw units."""
    columns = [(j, place) for j, group in enumerate(columns_of(encoding)) for place in range(len(group))]
    at, place = columns[step.feature]
    feature = encoding.features[at]
    column = feature.column.replace("_", " ")
    if isinstance(feature, NumericFeature) and place == 0:
        raw = feature.minimum + step.threshold * (feature.maximum - feature.minimum)
        return f"{column} above about {raw:.3g}"
    if isinstance(feature, NumericFeature) or place >= len(feature.levels):
        return f"{column} is missing"
    return f"{column} is {name_level(feature.column, feature.levels[place], names)}"
