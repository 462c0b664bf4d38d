"""What a model of public features says of itself: what private features add, its line, and where its trees step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldptree.encoding import Encoding, NumericFeature
from ldptree.families.public_features.steps import Step, steps
from ldptree.models.curves import MOST_PEOPLE, evenly
from ldptree.models.description import Description, Evidence, Names, Statement, name_columns, name_level
from ldptree.models.effects import columns_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.public_features.model import PublicFeatureModel

    Floats = NDArray[np.float64]

MOST_EFFECTS, MOST_STEPS = 12, 6
HELPED = "Private features that help"
"""How the model says so (`ldptree.families.public_features.says`)."""


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


def _rename(said: str, encoding: Encoding, columns: list[str]) -> str:
    """The model's own words with plain names of columns; longer names first, as one may begin another."""
    plain = dict(zip(encoding.names, columns, strict=True))
    for name in sorted(plain, key=len, reverse=True):
        said = said.replace(name, plain[name])
    return said


def _effects(model: PublicFeatureModel, columns: list[str], visible: Floats) -> list[Statement]:
    """What each private feature adds, the largest first."""
    found = []
    for effect in model.effects:
        coefficient = np.asarray(effect.coefficient(visible))
        typical = float(np.sqrt(effect.contrast.square * np.mean(coefficient**2)))
        if typical > 0.0:
            shape = {"rise": "low to high", "bowl": "middle to ends"}[effect.contrast.shape]
            varies = ", by public features" if effect.coefficient.features else ""
            found.append(
                Statement(
                    kind="effect",
                    about=f"{columns[effect.contrast.feature]} ({shape}{varies})",
                    figures={
                        "swing": effect.contrast.swing * float(coefficient.mean()),
                        "typical": typical,
                    },
                )
            )
    return sorted(found, key=lambda one: -one.figures["typical"])[:MOST_EFFECTS]


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
                about=_ask(one, encoding, names),
                figures={"trees": float(one.n_trees), "change": one.change, "part": one.share},
            )
            for one in steps(surface, rows)[:MOST_STEPS]
        ),
    ]


def _ask(step: Step, encoding: Encoding, names: Names) -> str:
    """What a step asks, in raw units."""
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
