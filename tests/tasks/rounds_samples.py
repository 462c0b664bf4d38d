"""Pages of runs in rounds for the tests of their looks: facts made by hand, with long names and curves of each kind."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import number_samples

from tasks.page.number_facts import CurveFacts, NumberFacts, PieceFacts
from tasks.page.rounds_facts import (
    BoxFacts,
    EffectFacts,
    FeatureFacts,
    RoundFacts,
    RoundsFacts,
    ShapeFacts,
    ShownNode,
    StepOfTrees,
    SurfaceFacts,
)

ROUNDS_SAMPLES = ("surface_page", "histogram_page")
"""The functions here that make one, by name."""

LONG = "distance to the nearest neighbour of the same kind"


def surface_page() -> RoundsFacts:
    """Public features with a private one that helps: a smooth curve, and one of a category with many levels."""
    stretches = tuple(
        PieceFacts(low=0.1 * i, high=0.1 * (i + 1), value=8 + 0.2 * i + 2 * (i > 15), sd=0.3 + 0.02 * i)
        for i in range(32)
    )
    levels = tuple(PieceFacts(name=f"{LONG} {i}", value=7 + 0.3 * i, sd=0.2) for i in range(15))
    return _made(
        estimator="public_features",
        learned="Private features that help: weight (about 12.0%).",
        is_helped=True,
        effects=(EffectFacts(feature="weight", shape="rise", swing=4.2, typical=1.5, varies=True),),
        curves=(
            CurveFacts(column="weight", strength=0.6, pieces=stretches, is_smooth=True),
            CurveFacts(column=LONG, strength=0.3, pieces=levels, is_smooth=True),
        ),
        surface=SurfaceFacts(
            n_trees=20,
            line_sd=1.4,
            trees_sd=0.3,
            steps=tuple(
                StepOfTrees(
                    asks=f"{LONG} above about {i}.25", n_trees=20 - i, change=0.4 - 0.2 * i, share=0.2
                )
                for i in range(4)
            ),
        ),
    )


def histogram_page() -> RoundsFacts:
    """HistOfTree with two features in its histogram, four leaves, and cells in the noise."""

    def leaf(condition: str, value: float) -> ShownNode:
        boxes = tuple(
            BoxFacts(
                place=(f"weight {w}", f"{LONG} {d}"), share=share, value=value + v, is_heard=share > 0.01
            )
            for w, d, v, share in (
                ("up to 1.43", "up to 0.5", 0.0, 0.15),
                ("up to 1.43", "above 0.5", 1.0, 0.05),
                ("above 1.43", "up to 0.5", -4.0, 0.0),
                ("above 1.43", "above 0.5", 2.5, 0.05),
            )
        )
        return ShownNode(condition=condition, cells=4, share_private=0.25, value=value, boxes=boxes)

    halves = tuple(
        ShownNode(
            condition=f"size {side}",
            cells=8,
            share_private=0.5,
            value=9.0 + at,
            children=(leaf(f"{LONG} is near", 8.0 + at), leaf(f"{LONG} is not near", 10.0 + at)),
        )
        for at, side in enumerate(("up to 0.5", "above 0.5"))
    )
    steps = (
        PieceFacts(low=0.0, high=0.5, value=8.5, sd=0.4),
        PieceFacts(low=0.5, high=1.0, value=9.5, sd=0.7),
    )
    return _made(
        estimator="histoftree",
        curves=(CurveFacts(column="size", strength=0.9, pieces=steps, in_noise=0.12),),
        shape=ShapeFacts(binned=("weight", LONG), bins=2, depth=2, cells=16, by_report=True),
        tree=ShownNode(condition="", cells=16, share_private=1.0, value=9.5, children=halves),
    )


def _made(**learned: Any) -> RoundsFacts:
    """A run in rounds whose scores, checks and steps are those of the sample of numbers."""
    like = number_samples.number_sample()
    of_run = {field.name: getattr(like, field.name) for field in fields(NumberFacts) if field.init}
    for name in ("kind", "cells", "tree", "curves", "discrepancy"):
        of_run.pop(name)
    return RoundsFacts(
        **of_run
        | {
            "features": (
                FeatureFacts(name="weight", protects=like.n_private, declared="private", strength=0.6),
                FeatureFacts(name=LONG, protects=120, declared="own choice", strength=0.304),
                FeatureFacts(name="size", protects=0, declared="public", strength=0.096),
                FeatureFacts(name="colour", protects=0, declared="public"),
            ),
            "asked": (
                RoundFacts(asks="label bin", mechanism="ss", epsilon=2.0, n_asked=900, values=16, size=2),
                RoundFacts(
                    asks="label", mechanism="optimal_label", epsilon=2.0, n_asked=5_000, low=0.0, high=30.0
                ),
            ),
            "predicts": (4.0, 16.0),
            "n_averaged": 2_000,
            "n_refits": 16,
        }
        | learned
    )
