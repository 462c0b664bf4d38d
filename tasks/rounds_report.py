"""The facts of a run in rounds: what its model learned, what its questions asked, who shows what. What every run has is in
`report`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ldptree.encoding import CategoricalFeature, Encoding
from ldptree.families.histoftree import CellsQuestion, HistOfTreeModel, LabelQuestion
from ldptree.families.public_features import FeatureBins, LabelBins, PublicFeatureModel, ResidualQuestion
from ldptree.models.curves import Along
from ldptree.models.public_view import ShownModel
from ldptree.protocol.question import PublicView, Question
from schemas.families import FeaturesConfig
from tasks.page.basic_facts import Span
from tasks.page.facts import RoundsFacts
from tasks.page.places import Names
from tasks.page.rounds_facts import EffectFacts, FeatureFacts, RoundFacts, ShapeFacts
from tasks.page.rounds_learned import curves_of, surface_of, tree_of

Floats = NDArray[np.float64]
SPREADS = 20
"""The label's range is about so many typical differences wide: how many decimals its figures have."""
MOST_EFFECTS = 12
HELPED = "Private features that help"
"""How a model of public features says so (`ldptree.families.public_features.says`)."""
OURS = "Reports and what is shown"


def rounds_facts(
    common: Mapping[str, Any],
    scored: Mapping[str, Any],
    *,
    model: ShownModel,
    along: Along,
    shown: PublicView,
    questions: Sequence[Question],
    label_range: tuple[float, float],
    features: FeaturesConfig,
    release: Literal["all", "cells", "none"],
    unit: str,
    names: Names,
) -> RoundsFacts:
    """Facts of the run from those that every run has, and its scores (`number_scores`; empty without).

    `along` is what learn took of the model, `shown` what everybody can see, `questions` the published
    ones in order, `names` what codes are called.
    """
    low, high = label_range
    if scored:
        scored = {**scored, "ours": replace(scored["ours"], name=OURS)}
    columns = encoded_names(model.encoding)
    spends, answers = spends_of(questions, shown)
    visible = np.where(shown.protects, np.nan, shown.values)
    predicted = model.inner.predict(np.where(shown.protects, 0.5, shown.values))
    learned, effects, shape, tree, surface = "", tuple[EffectFacts, ...](), None, None, None
    if isinstance(model.inner, PublicFeatureModel):
        learned = renamed(model.inner.says, model.encoding)
        effects = effects_of(model.inner, columns, visible)
        predicted = model.inner.predict(visible)
        surface = surface_of(model.inner, model.encoding, visible, names)
    else:
        shape = shape_of(model.inner, columns)
        tree = tree_of(model.inner, model.encoding, names)
    return RoundsFacts(
        **common,
        **scored,
        unit=unit,
        label_range=Span(low=low, high=high),
        label_sd=(high - low) / SPREADS,
        epsilon_exact=float(spends.max()),
        epsilon_spent=model.epsilon,
        rounds=len(questions),
        features=features_of(model.encoding, shown, features, release, along.strengths),
        asked=tuple(round_of(question, shown, columns, label_range) for question in questions),
        most_rounds=int(answers.max()),
        n_never_asked=int((answers == 0).sum()),
        mask_release=release,
        own_choice=bool(features.protects),
        learned=learned,
        is_helped=HELPED in learned,
        effects=effects,
        shape=shape,
        predicts=(float(predicted.min()), float(predicted.max())),
        curves=curves_of(along, model.encoding, names),
        n_averaged=along.n_averaged,
        tree=tree,
        surface=surface,
    )


def spends_of(questions: Sequence[Question], shown: PublicView) -> tuple[Floats, NDArray[np.int64]]:
    """What each holder spent, float64 [n], by the integers in use; and how many questions they answered, int64 [n]."""
    spends, answers = np.zeros(shown.n), np.zeros(shown.n, dtype=np.int64)
    for question in questions:
        asked = question.respondents(shown)
        spends[asked] += question.epsilon
        answers[asked] += 1
    return spends, answers


def encoded_names(encoding: Encoding) -> list[str]:
    """What each encoded column is called: "size", or "kind is wild"."""
    return [_plain(name, feature) for feature in encoding.features for name in feature.names]


def _plain(name: str, feature: Any) -> str:
    column = feature.column.replace("_", " ")
    if not isinstance(feature, CategoricalFeature):
        return str(column)
    level = name.removeprefix(feature.column).lstrip(" =:_")
    return f"{column} is {level}" if level else column


def renamed(said: str, encoding: Encoding) -> str:
    """A model's own words, with names of columns as the page has them; longer names first, as one may begin another."""
    plain = dict(zip(encoding.names, encoded_names(encoding), strict=True))
    for name in sorted(plain, key=len, reverse=True):
        said = said.replace(name, plain[name])
    return said


def features_of(
    encoding: Encoding, shown: PublicView, features: FeaturesConfig, release: str, strengths: Sequence[float]
) -> tuple[FeatureFacts, ...]:
    """Every raw column, how many protect it by the public mask, and how strong it is."""
    found, at = [], 0
    for feature, strength in zip(encoding.features, strengths, strict=True):
        declared: Literal["public", "private", "own choice"] = "public"
        if feature.column in features.private:
            declared = "private"
        elif feature.column in features.protects:
            declared = "own choice"
        found.append(
            FeatureFacts(
                name=feature.column.replace("_", " "),
                protects=int(shown.protects[:, at].sum()) if release == "all" else None,
                declared=declared if release == "all" else "private",
                strength=strength,
            )
        )
        at += len(feature.names)
    return tuple(found)


def round_of(
    question: Question, shown: PublicView, names: Sequence[str], label_range: tuple[float, float]
) -> RoundFacts:
    """What a published question asks, of how many, and what an answer to it is."""
    common: dict[str, Any] = {"epsilon": question.epsilon, "n_asked": int(question.respondents(shown).size)}
    match question:
        case LabelBins(oracle=oracle):
            return RoundFacts(
                asks="label bin", mechanism=oracle.name, values=oracle.k, size=oracle.size, **common
            )
        case FeatureBins(oracle=oracle, feature=feature):
            return RoundFacts(
                asks="feature bin",
                mechanism=oracle.name,
                values=oracle.k,
                size=oracle.size,
                feature=names[feature],
                **common,
            )
        case ResidualQuestion(contrast=None):
            middle = question.surface.intercept
            ends = max(middle - question.half, label_range[0]), min(middle + question.half, label_range[1])
            return RoundFacts(
                asks="label", mechanism=question.mechanism.name, low=ends[0], high=ends[1], **common
            )
        case ResidualQuestion(contrast=contrast):
            assert contrast is not None
            return RoundFacts(
                asks="residual",
                mechanism=question.mechanism.name,
                low=-question.half,
                high=question.half,
                feature=names[contrast.feature],
                shape=contrast.shape,
                **common,
            )
        case LabelQuestion(low=low, high=high):
            return RoundFacts(asks="label", mechanism=question.mechanism.name, low=low, high=high, **common)
        case CellsQuestion(partition=partition, mechanism=mechanism):
            return RoundFacts(asks="cell", mechanism=mechanism.name, values=partition.n_cells, **common)
        case _:
            raise TypeError(f"{question.kind}: the page has no words for it")


def effects_of(model: PublicFeatureModel, names: Sequence[str], visible: Floats) -> tuple[EffectFacts, ...]:
    """What private features add, the largest first; `visible` float64 [n, d], NaN where protected."""
    found = []
    for effect in model.effects:
        coefficient = np.asarray(effect.coefficient(visible))
        typical = float(np.sqrt(effect.contrast.square * np.mean(coefficient**2)))
        if typical == 0.0:
            continue
        found.append(
            EffectFacts(
                feature=names[effect.contrast.feature],
                shape=effect.contrast.shape,
                swing=effect.contrast.swing * float(coefficient.mean()),
                typical=typical,
                varies=bool(effect.coefficient.features),
            )
        )
    return tuple(sorted(found, key=lambda one: -one.typical)[:MOST_EFFECTS])


def shape_of(model: HistOfTreeModel, names: Sequence[str]) -> ShapeFacts:
    """The partition's s, t and p."""
    histogram, tree = model.partition.histogram, model.partition.tree
    return ShapeFacts(
        binned=tuple(names[j] for j in histogram.features),
        bins=histogram.bins,
        depth=int(tree.max_depth),
        cells=model.partition.n_cells,
        by_report=model.mechanism is not None,
    )
