"""What a page of a run in rounds says of its model: captions of strengths, curves, the tree and the steps of the trees.

What is asked, and of whom, is in `rounds_words`.
"""

from __future__ import annotations

from tasks.page import numbers as n
from tasks.page.number_facts import CurveFacts
from tasks.page.number_words import MOST_SAID, piece_aria
from tasks.page.rounds_facts import EffectFacts, RoundsFacts, ShownNode


def label_name(facts: RoundsFacts) -> str:
    """The label and its unit, once where they are the same word."""
    name = facts.target.replace("_", " ")
    return f"{name}, {facts.unit}" if facts.unit not in ("", name) else name


def strength_caption(facts: RoundsFacts) -> str:
    """What the shares of the variance are."""
    return (
        "The share of the variance of the model's answers that goes with a feature: answers are parted among the features by "
        f"Shapley values, over {_people(facts)}. Of features that say the same, the model may use only one."
    )


def curves_caption(facts: RoundsFacts) -> str:
    """What the curves are, over whom they are averaged, and what their band holds."""
    smooth = any(curve.is_smooth and curve.stretches for curve in facts.curves)
    read = " A line joins what it says at the middles of equal stretches." if smooth else ""
    return (
        "The fitted function: the model's answer averaged over the same holders, with this feature set for all of them."
        f"{read}{_given_shape(facts)}{_in_noise(facts)}{_band(facts)}"
    )


def _band(facts: RoundsFacts) -> str:
    """What the band is made of, and what it leaves out; "" where none is drawn."""
    if not facts.n_refits:
        return ""
    if facts.shape:
        drawn, more = "in which holders, with what they sent, are drawn with replacement", ""
    else:
        drawn = "in which each number sent stays as far from the model's answer, above or below it by a coin"
        more = ", which can be more than the band,"
    return (
        f" The band is ± 2 sd of the noise of the answers, given the questions: the model was fitted {n.count(facts.n_refits)} "
        f"times more, to published answers {drawn}. What noise in earlier rounds did to the questions{more} is not in it, nor is "
        "what a question cuts off or such a model cannot say."
    )


def _given_shape(facts: RoundsFacts) -> str:
    """What of a curve along a private feature was not learned; "" where none is drawn."""
    asked = [curve.column for curve in facts.curves for one in facts.effects if _is_of(one, curve)]
    if not asked:
        return ""
    return (
        f" Of the curve along {n.listed(list(dict.fromkeys(asked)))}, which is private, only the height was learned: its shape, "
        "with a step in the middle of the people, is that of the question."
    )


def _is_of(one: EffectFacts, curve: CurveFacts) -> bool:
    return bool(curve.stretches) and one.feature == curve.column


def _in_noise(facts: RoundsFacts) -> str:
    """How much of the curves is a guess; "" where nothing is."""
    most = max((curve.in_noise for curve in facts.curves), default=0.0)
    if not most:
        return ""
    return (
        f" Setting it makes some combinations that hardly anybody has: at one step {n.share(most)} of the averaged answers are "
        "those of cells in the noise (see the tree)."
    )


def _people(facts: RoundsFacts) -> str:
    """Over whom averages are taken."""
    every = facts.n_averaged == facts.n_private
    people = f"{n.count(facts.n_averaged)}{'' if every else f' of {n.count(facts.n_private)}'} holders"
    if facts.mask_release != "all":
        return f"{people}, drawn from the model's own cells, as none of them shows anything here"
    if not facts.protected:
        return f"{people}, with their features as they show them"
    hidden = "as drawn from what the answers say of all" if facts.is_drawn else "with no part in the model"
    return f"{people}, with their features as they show them and, where protected, {hidden}"


def curve_aria(curve: CurveFacts, facts: RoundsFacts) -> str:
    """A curve, for a screen reader; of many stretches every so many."""
    pieces = curve.stretches
    every = max(-(-len(pieces) // MOST_SAID), 1)
    return f"{label_name(facts)} along {curve.column}: " + "; ".join(
        piece_aria(piece, facts) for piece in pieces[::every]
    )


def tree_caption(facts: RoundsFacts) -> str:
    """What the columns of the tree are."""
    assert facts.shape is not None
    by = "as estimated from reports" if facts.shape.by_report else "by what they show"
    said = (
        f"Share of the holders, {by}, and the value predicted (the bar: from the least to the largest of the cells that "
        "stand out of the noise); where branches go on, the average below."
    )
    if facts.shape.cells > 1 and facts.shape.binned and facts.shape.bins > 1:
        said += " Under each leaf is its histogram."
    if facts.shape.by_report:
        said += " “In the noise”: the cell's count is within two standard deviations of its noise, so its value is a guess."
    return said


def more_boxes(node: ShownNode, facts: RoundsFacts) -> str:
    """How many cells of a leaf's histogram are not drawn; "" where all are."""
    left = node.cells - len(node.boxes)
    return f"and {n.plural(left, 'smaller cell', 'smaller cells')}" if node.boxes and left else ""


def no_tree(facts: RoundsFacts) -> str:
    """Why there is no single tree to draw, and how much each part says."""
    assert facts.surface is not None
    surface, at_least = facts.surface, facts.measure.at_least
    if not surface.n_trees:
        return (
            "There is no tree: with nothing shown, or so few reports, the answer is one number"
            + (" and a line" if surface.line_sd else "")
            + (", and what private features add." if facts.effects else ".")
        )
    trees = n.count(surface.n_trees)
    said = (
        f"There is no single tree to draw: the answer is a line in what is shown plus the mean of {trees} small trees, each with "
        "questions from one half of the reports and values from the other."
    )
    if not surface.steps:
        return f"{said} The trees found nothing to correct: the line is the whole answer."
    return (
        f"{said} Over what is shown the line spreads answers by {at_least(surface.line_sd)} (sd), and the trees correct it by "
        f"{at_least(surface.trees_sd)}."
    )


def steps_caption(facts: RoundsFacts) -> str:
    """What the columns of the steps are."""
    return (
        "Questions of the trees whose thresholds lie near each other, together. A yes adds so much on average over all trees and "
        f"{facts.nouns}, also those not asked; the last column is a share of the variance that the trees' splits bring."
    )
