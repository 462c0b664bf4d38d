"""What a page of a run in rounds calls things: questions, answers, features; captions beside those of `number_words`.

What is said of the model is in `rounds_model_words`, the finding in `rounds_finding`, the answers about privacy in
`rounds_privacy`.
"""

from __future__ import annotations

from tasks.page import numbers as n
from tasks.page.number_words import (
    CHIEF,
    METRICS,
    bins_aria,
    bins_caption,
    curve_note,
    figure,
    interval,
    metric,
    piece_aria,
    score_aria,
    score_caption,
    with_error,
)
from tasks.page.places import number_words
from tasks.page.rounds_facts import EffectFacts, FeatureFacts, RoundFacts, RoundsFacts
from tasks.page.rounds_model_words import (
    curve_aria,
    curves_caption,
    label_name,
    more_boxes,
    no_tree,
    steps_caption,
    strength_caption,
    tree_caption,
)

SHAPES = {
    "rise": "how low or high {} is (-1 to 1)",
    "bowl": "how far {} is from its middle (-1 to 1)",
}
LOW_HIGH = {"rise": "from its lowest to its highest value", "bowl": "from its middle to its ends"}
MECHANISMS = {
    "ss": "subset selection",
    "optimal_label": "optimal randomised label",
    "duchi": "randomised response (Duchi et al.)",
    "laplace": "Laplace noise",
    "piecewise": "piecewise noise",
    "hybrid": "hybrid noise",
    "grr": "generalised randomised response",
    "randomized_response": "randomised response",
}
ESTIMATORS = {"histoftree": "HistOfTree", "public_features": "Public features"}


def question(one: RoundFacts, facts: RoundsFacts) -> str:
    """What was asked."""
    target = facts.target.replace("_", " ")
    match one.asks:
        case "label bin":
            return f"The label, {target}: in which of {one.values} bins is it?"
        case "feature bin":
            return f"{one.feature}: in which of {one.values} bins is it?"
        case "label":
            return f"The label, {target}: how much is it?"
        case "residual":
            return f"The label less the published answer so far, times {SHAPES[one.shape].format(one.feature)}: how much is it?"
        case "cell":
            return f"Which of {n.count(one.values)} cells is it, among those that what is shown leaves open?"


def answer(one: RoundFacts, facts: RoundsFacts) -> str:
    """What a report of it is."""
    by = MECHANISMS.get(one.mechanism, one.mechanism.replace("_", " "))
    match one.asks:
        case "label bin" | "feature bin":
            those = n.plural(one.size, "bin", "bins")
            return f"A set of {those} drawn at random, likelier with the true one in it ({by})."
        case "label":
            ends = f"{_end(one.low, facts)} to {_end(one.high, facts)}"
            return f"One random number that is right on average ({by}); the label is first moved into {ends}."
        case "residual":
            return (
                f"One random number that is right on average ({by}); the difference is first cut at "
                f"{facts.measure.at_least(one.high)}."
            )
        case "cell":
            return f"One cell, or bits for cells, drawn at random ({by})."


def _end(value: float, facts: RoundsFacts) -> str:
    return facts.measure.bare(value) if value % 1 else number_words(value)


def shown_by(feature: FeatureFacts, facts: RoundsFacts) -> str:
    """Who shows a feature."""
    if feature.protects is None:
        return "not sent: who protects what stays with the holders"
    if feature.protects == 0:
        return "shown by all"
    if feature.protects == facts.n_private:
        return "protected by all"
    return f"protected by {n.count(feature.protects)} of {n.count(facts.n_private)}"


def features_line(facts: RoundsFacts) -> str:
    """Which features are public and which are private, in a sentence."""
    public = [feature.name for feature in facts.features if feature.declared == "public"]
    private = [feature.name for feature in facts.features if feature.declared == "private"]
    own = [feature.name for feature in facts.features if feature.declared == "own choice"]
    said = []
    if facts.mask_release != "all":
        return (
            "Nothing that holders could show is used by the curator in this run, because what they protect stays with them "
            f"(mask_release = “{facts.mask_release}”): every feature counts as protected."
        )
    if public:
        said.append(f"Everybody can see {n.listed(public)} of each {facts.noun}")
    if private:
        said.append(f"{n.listed(private)} of each {facts.noun} {_is(private)} private")
    if own:
        said.append(f"each holder says whether their {n.listed(own)} {_is(own)} private")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}. The label, {facts.target.replace('_', ' ')}, is always private."


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def effect(one: EffectFacts, facts: RoundsFacts) -> str:
    """What a private feature adds."""
    said = f"{facts.measure.value(one.swing, signed=True)} {LOW_HIGH[one.shape]}"
    return f"{said}, on average: more or less by public features" if one.varies else said


def shape_line(facts: RoundsFacts) -> str:
    """HistOfTree's partition."""
    assert facts.shape is not None
    shape = facts.shape
    cells = n.plural(shape.cells, "cell", "cells")
    if shape.cells == 1:
        return (
            "The partition has one cell, so every answer is the mean of the reports. Where histoftree.bins and histoftree.depth "
            "are “auto”, the paper's (15) chooses them from the number of holders, epsilon and the mask, and took finer cells to "
            "cost more in noise than they bring."
        )
    binned = (
        f"a histogram of t = {shape.bins} bins on s = {len(shape.binned)} "
        f"{'feature' if len(shape.binned) == 1 else 'features'} ({n.listed(shape.binned)})"
        if shape.binned and shape.bins > 1
        else "no histogram"
    )
    tree = f"a tree of depth p = {shape.depth}" if shape.depth else "no tree"
    how = (
        "How many holders are in a cell is estimated from reports."
        if shape.by_report
        else "Which cell a holder is in follows from what is shown, whatever is protected: no question about it was needed, and "
        "the label got the whole epsilon."
    )
    return f"The partition: {binned}, and {tree} on the others: {cells}. {how}"


__all__ = [
    "CHIEF",
    "METRICS",
    "bins_aria",
    "bins_caption",
    "curve_aria",
    "curve_note",
    "curves_caption",
    "figure",
    "interval",
    "label_name",
    "metric",
    "more_boxes",
    "no_tree",
    "piece_aria",
    "score_aria",
    "score_caption",
    "steps_caption",
    "strength_caption",
    "tree_caption",
    "with_error",
]
