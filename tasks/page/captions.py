"""Every fixed text of the page by key, such as sentences, captions and heads of tables. Callers fill in the figures.

A sentence is the same for every family. It is marked in the page with its key (`data-says`), so that a program can read what
it states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ldptree.families import FAMILIES


@dataclass(frozen=True)
class Sentence:
    """A sentence that is filled in, and the key of its text."""

    key: str
    text: str


SAYS = {
    # the finding
    "reason": "{reason}",
    "failed": "The run stopped at the step “{step}”, so it has no result.",
    "failed at once": "The run stopped before its first step, so it has no result.",
    "better": "Scrambled reports from {people} {lift} from {before} to {ours}.",
    "worse": "Public {nouns} alone do better: {without}, {ours} with scrambled reports from {people}.",
    "alike": "Scrambled reports from {people} make no practical difference: {result} with them, {before} without.",
    "close": "Too close to call: {result} with scrambled reports from {people}, {before} without.",
    "alone": "Scrambled reports from {people} gave a model of “{target}”: {ours}.",
    "unscored found": "Scrambled reports from {people} do not fit what public {nouns} say.",
    "unscored nothing": "The reports of {people} found nothing that the public {nouns} do not say.",
    "unscored blind": "The reports of {people} are too few or too noisy to tell whether private {nouns} differ from public ones.",
    "unscored": "Scrambled reports from {people} gave a model of “{target}”.",
    "unfinished": "It is still running, or was ended from outside.",
    "broken off": "It was broken off {where}. Nobody had been asked.",
    "broken off asking": "It was broken off {where}. People may have been asked; nobody is asked twice.",
    # the paragraph under it
    "use ours": "Use the model with reports.",
    "use public": "Use {reference}, which needs no reports.",
    "ask more": "Ask more people, or set a larger ε: “ldptree plan” says how many.",
    "too few": "But {few} to rely on that.",
    "one prediction": "One prediction for everybody, chosen in hindsight, would have {result}.",
    "one thing": "Almost all of the gain is the average, “{output}” from {before} to {after}.",
    "average correction": "On average the public model {errs} “{output}” {direction}, by {size}.",
    "average unclear": "Whether the public model is off on “{output}” on average cannot be told: {size}.",
    "off together": "Whether the public model is off on “{output}” on average cannot be told ({size}), but over all kinds "
    "together reports differ from it: a difference this large would appear by chance in {chance} of 100 collections.",
    "average difference": "Private {nouns} seem to differ from public ones of the same kind in “{output}” by {size} on average.",
    "groups": "Reports were asked about {groups} of {cells}. What they say of a group, and its ±, go for each of its kinds; "
    "one by itself may be further off.",
    "no difference": "The reports give no reason to think that private {nouns} differ from public ones.",
    "particular": "The public model is wrong where private {nouns} are; chance alone looks so {chance} of the time.",
    "by coins": "Coins chose the public rows: where the public model is wrong, it is wrong for everybody.",
    "for everybody": "The public model may be wrong for everybody, and not for private {nouns} alone: public rows do not rule "
    "that out.",
    "not by reports": "The reports alone do not show that private {nouns} differ: a difference this large would appear by "
    "chance in {chance} of 100 collections.",
    "hidden": "The noise could hide a difference of {size} in “{output}” on average.",
    "hidden all": "The noise could hide any difference in “{output}”.",
    "chance": "A difference as large as these reports show would appear by chance in {chance} of 100 collections.",
    "clear kinds": "A correction is clear in {clear} of {cells}.",
    "no clear kind": "In none of {cells} is a correction clear.",
    "shared": "The reports do not tell kinds of {noun} apart: the correction is the same everywhere.",
    "says": "{says}",
    "predicts": "Over what the holders show, answers run from {low} to {high}.",
    "no scores": "No private row was held back, so there are no scores.",
    "stopped": "No report was written, and nobody’s privacy was spent. Correct what is named above before the next run.",
    "stopped asking": "Reports with {epsilon} each may stand already. Run it again: those are used, and nobody reports twice.",
    # cards
    "gain": "{direction} {gain} (95{narrow}% interval {low} to {high}) from {reference}, the best of public rows. "
    "±{margin} counts as none.",
    "log loss": "Log loss got worse: {before} to {after}.",
    "people": "{share} of them are in kinds with a clear correction.",
    "campaign": "{new} new in this run, {earlier} in earlier runs of the campaign “{campaign}”.",
    "kinds": "{cells} of {noun}, over {features}.",
    "kinds of groups": "{groups} of {cells} of {noun}, over {features}.",
    "features": "Learned from {features} of {noun}.",
    "guess": "An even guess between two {nouns} can rise to {guess} at most.",
    "noise cost": "The noise costs {cost} ({low} to {high}).",
    "noise and range cost": "Noise and clipping cost {cost} ({low} to {high}).",
    "noise luck": "The noise helped here by chance, by {cost} ({low} to {high}).",
    # captions
    "scores": "{figure} on {n} held back, with 95{narrow}% intervals. {better}",
    "spread": "Lower bar: 90{narrow}% of {draws} of the noise, {low} to {high}.",
    "no strip": "Another ε is not drawn: everybody would be asked anew. “ldptree plan” forecasts it.",
    "strip": "Each dot is one draw of the noise.{better}",
    "strip surely": "From ε = {least} up, every draw beats {reference}.",
    "strip never": "At none does every draw beat {reference}.",
    "strip finds": "The smallest error of the public model, on half of the {nouns}, that {times} of 10 such collections find. "
    "Lower is better.",
    "strip note": "Set up for another ε, a run may do better.",
    "caps": "{model}: {note}.",
    "recall": "The released model recognises {recalls}.",
    "bins": "Held-back {nouns} by what is predicted: their mean “{target}” with ± 2 standard errors.",
    "bins few": "{n} more are in no row, as too few shared one.",
    "tree correction": "Thicker branches hold more {nouns}; each bar is added to the public model’s {what}.",
    "tree share": "Thicker branches hold more {nouns}. Each bar is the estimated share of {output}.",
    "tree number": "Thicker branches hold more {nouns}. Each bar is the estimated mean of “{target}”.",
    "classes": "bars from the top: {classes}",
    "classes some": "bars from the top: {classes}; the table has all {n}",
    "strengths": "Each column’s share of the answers’ differences.",
    "shared out": "Reports, difference and weight are those of a kind’s group; its holders are shared out as public rows lie.",
    "counts": "Counts are estimates.",
    "adds up": "Corrected can differ from public plus correction: each row keeps at least {least} of its chance of a class, and "
    "of its chance of any other{scaled}.",
    "cut": "The table below has every kind.",
    "table cut": "The {shown} largest of {cells}.",
    "curves": "The model’s answer along its strongest columns, averaged over the others.",
    "bands": "The band is ± 2 sd.",
    "strength": "{column} carries {part} of the variance of the answers.",
    "in noise": "Up to {part} of what is averaged here rests on counts within their noise.",
    "weighing": "{lam} {prune}",
    "basis others": "{cells} ({share} of private {nouns}) {take} more from other kinds than from own reports.",
    "basis": "{cells} ({share} of private {nouns}) {rest} on {basis}.",
    "made": "{seconds}{cores}{memory}.",
    "data": "{title}{simulated}.",
    "public rule": "Public: “{rule}”.",
    "where": "Only {nouns} with “{where}” take part.",
    "label kind": "The label “{target}” is read as a {label}.",
    "checked": "{met} of {n} checks of {zone} {nouns} are met.",
    "loads nothing": "This page loads and runs nothing.",
    # privacy
    "who row": "One {noun} is one holder. Someone with two is protected at {double}.",
    "who column": "Everyone with the same “{holder}”, who reports on one of their {nouns}, drawn on their own side.",
    "asked cell and label": "Which of {cells} it is, and its “{target}”: one value of {values}.",
    "asked cell and error": "Which of {cells} it is, and the public model’s error: one value of {values}.",
    "asked first": "{n} others: its error along one of {columns} columns, one value of {values}.",
    "drawn": "A coin draws the {what}.",
    "shown all": "What a holder shows is seen as it is.",
    "shown cells": "With an answer goes in which cells its holder could be.",
    "one stands for else": "One of the {values} says “none of these”.",
    "ends": "A number is first moved into {low} to {high}, then rounded at random to one of {levels} levels.",
    "ends sent": "A number is first moved into {low} to {high}, and leaves with noise added.",
    "chances": "The true value is reported with probability {p}, any other with {q}.",
    "chances first": "For the others {p} and {q}.",
    "label chance first": "For the others {label_p}.",
    "label chance": "Its label is the true one with probability {label_p}.",
    "noise": "Each number has noise of its own, of standard deviation {sd}.",
    "label noise": "The label’s noise has standard deviation {sd}.",
    "mechanism": "Sent {how} ({name}).",
    "reports written": "{reports} written; nothing else is sent.",
    "rounds": "Questions in {rounds}, each published before it was answered; a holder answered {most} at most.",
    "asked of": "Each bar is the share that was asked.",
    "never asked": "{n} were asked nothing.",
    "roles": "Whom a question was put to depends on public coins and on what was published before, never on a protected value.",
    "promise": "Any two {nouns}{alike} could have sent what was received; their chances differ by a factor of {factor} at most.",
    "exact": "Recomputed from the coins’ own integers: {exact}.",
    "real numbers": "That holds for real numbers, and not for the floating-point numbers that were drawn.",
    "of sums": "That is said of reports. Of the sums drawn in this run it promises nothing.",
    "spent": "{epsilon} each, {times}.",
    "largest": "The largest spend of any holder{within} is {epsilon}, on {questions}.",
    "no lifetime": "No lifetime limit is set.",
    "lifetime": "Nobody may spend more than {epsilon} in all: a run that would make them is refused before anybody is asked.",
    "noise seed": "From a known seed: it can be undone.",
    "noise system": "From the operating system of whoever drew the {form}. It cannot be drawn again.",
    "liar": "A liar counts for up to {one} honest holders, {where}.",
    "liar question": "In a question put to them, a liar counts for up to {one} honest holders.",
    "no bound question": "In a question put to them, a liar can move the sum as far as they like.",
    "liars": "If 1{narrow}% lie together, they count for up to {share} of those asked the same.",
    "no bound": "A liar can move every total as far as they like, {where}.",
    "push": "One moves the mean of a kind of average size ({size} reports) by up to {one}, 1{narrow}% together by up to {many}.",
    "open": "That someone took part, and what is true of {nouns} in general: that is what the model is for.",
    "open where": "That “{where}” is true of whoever took part, for no others were asked.",
    "open condition": "That whoever took part meets the condition “where” of the configuration, for no others were asked.",
    "open columns": "{columns}, which tells public {nouns} from private ones.",
    "open public": "The {n} public {nouns}, used as they are.",
    "open shown": "What a holder shows: everybody can see it, exactly, and link it with whatever else is known of them.",
    "open mask": "The mask: which features a holder protects is published with what they show.",
    "open cells": "The cells a holder could be in, which each sent with their answer: part of the mask can be read from them.",
    "open scores": "The private {nouns} behind the scores: only a simulation may read them.",
    "open scores, a release": "The private {nouns} behind the scores: this page has exact counts of them.",
    "protected": "The label, {target}, and of the features {features}.",
    "protected label": "The label, {target}. No feature is protected in this run.",
    "protected all": "The label, {target}, every feature, and which of them a holder protects.",
    "example class": "{kind} {cell}, and “{level}”.",
    "example number": "{kind} {cell}, and a number that is rounded at random to {level}.",
    "example error": "{kind} {cell}, and a public answer that is {level}.",
    "example answer": "{question} {value}.",
    "example apart": "{kind} {cell}, and {value}.",
    "example": "Medians and commonest values of public {nouns}, scrambled twelve times.",
    "boxes": "Filled: sent. Dashed: the truth.",
    "boxes numbers": "In each box: the number sent. Dashed: the truth.",
    "boxes drawn": "{drawn} of {boxes} boxes are drawn.",
    "left out": "Left out {n} times in 100.",
    # warnings
    "simulation": "Anyone with its seed can take the noise away.",
    "release": "A release: holders drew the coins of the operating system, and {epsilon} protects them.",
    "not private": "Scores read private {nouns} as they are: only a simulation may.",
    "not private, a release": "Scores, the counts beside them and redraws of the noise read private {nouns} exactly. The reports "
    "are protected, this page is not: do not publish it.",
    "no accuracy": "No private {noun} was held back: “ldptree plan” forecasts it, at other ε too.",
    "totals": "The sums were drawn from true counts: no report was written.",
    "device": "Floating-point Laplace noise can give its input away: no real holder may send such a report.",
    "warning": "{text}",
}
"""Sentences by key."""

CLAIMS = {
    "simulation": "This run protects nobody.",
    "not private": "This page is not private.",
    "not private, a release": "This page is not private.",
    "no accuracy": "Accuracy was not measured.",
    "totals": "This was not a collection.",
    "device": "The noise is a simulation device.",
}
"""The bold words before a warning."""
NOBODY = f"{CLAIMS['simulation']} {SAYS['simulation']}"
"""What is said of seeded noise, before a run and after it."""
CHIPS = {
    "better": "Verdict: better",
    "worse": "Verdict: worse",
    "alike": "Verdict: no practical difference",
    "close": "Verdict: too close to call",
    "unscored": "Not scored",
    "failed": "Stopped",
    "unfinished": "Not finished",
}
MODELS = {
    "majority": "The commonest public answer",
    "constant": "The mean of the public labels",
    "public_tree": "A public tree",
    "public_forest": "A public forest",
    "public_only": "The public model",
    "ours": "Corrected with reports",
    "no_noise": "Corrected, without noise",
    "non_private": "One tree, no privacy",
}
"""What the page calls a model, where reports correct a public one."""
OWN_MODELS = {
    "ours": "With private reports",
    "public_only": "The same tree without reports",
    "no_noise": "With reports, without noise",
}
"""The same where they make a model of their own."""


def name_model(key: str, *, corrects: bool) -> str:
    """Name a model. `corrects` is True if reports correct a public model."""
    return MODELS.get(key, key) if corrects else OWN_MODELS.get(key, MODELS.get(key, key))


def name_scores(summary: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    """The metrics of a run's summary, ours first, by what is written of each model."""
    corrects = FAMILIES[summary["estimator"]].settings.CORRECTS
    scores = {"ours": summary["metrics"]} | summary["baselines"]
    return {name_model(key, corrects=corrects): metrics for key, metrics in scores.items()}


METRICS = {
    "accuracy": "Right",
    "balanced_accuracy": "Balanced",
    "auc": "AUC",
    "log_loss": "Log loss",
    "mse": "Mean squared error",
    "mae": "Mean error",
    "r2": "R²",
}
MECHANISMS = {
    "joint oue": "as bits, one a value, each tossed at random",
    "joint sue": "as bits, one a value, each tossed at random",
    "joint grr": "as one value, kept or replaced by another",
    "joint ss": "as a set of values, drawn at random",
    "joint olh": "as a hash function drawn at random, and one of the values it can take",
    "signed_subset": "as a random set of kinds, each with a label",
    "randomized_response": "as bits for the kind, and a label apart",
    "discrete_laplace": "as whole numbers, each with noise added",
    "laplace": "as numbers, each with noise added",
    "number_response": "as bits for the kind, and a number with noise added",
    "number_laplace": "as two numbers a kind, each with noise added",
    "ss": "as a set of bins drawn at random",
    "grr": "as one cell, kept or replaced by another",
    "optimal_label": "as one random number that is right on average",
    "duchi": "as one of two numbers, right on average",
}
"""How a report leaves, by mechanism."""
ABOUT = {
    "cell and label": "Its kind, and its {target}",
    "cell and error": "Its kind, and how far the public model is off",
    "error along columns": "How far the public model is off, along one of {columns} columns",
    "label bin": "In which of {values} bins is the label?",
    "feature bin": "In which of {values} bins is {feature}?",
    "label": "How much is the label?",
    "residual": "How far is the label from the published answer, times how {shape} {feature} is?",
    "cell": "Which of {cells} cells is it?",
}
"""What a question asks."""
SHAPES = {"rise": "high or low", "bowl": "far from its middle", "": ""}
ALIKE = {"all": " that show the same", "cells": " that could be in the same cells", "none": ""}
BASIS = {
    "private": "own reports",
    "public": "public rows",
    "both": "reports and public rows",
    "neighbours": "other kinds",
    "noise": "a count within its noise",
}
TREES = {
    "correction": "Where the public model goes wrong",
    "share": "What the tree says",
    "number": "What the tree says",
}
FIGURES = {
    "trees": ("Trees", "count"),
    "before": ("Public model", "label"),
    "after": ("Corrected", "label"),
    "amount": ("Part of the difference", "plain"),
    "amount_sd": ("Its sd", "plain"),
    "bins": ("Bins of the histogram", "count"),
    "depth": ("Depth of the tree", "count"),
    "cells": ("Cells", "count"),
    "swing": ("Change", "signed"),
    "typical": ("Typical size", "plain label"),
    "line": ("Sd of the line", "plain label"),
    "bent": ("Sd of the trees", "plain label"),
    "change": ("Change", "signed"),
    "part": ("Share of the variance", "share"),
}
"""Of a statement's figures, the head of the column and how they are written."""
STATEMENTS = {
    "public model": "The public model",
    "mean answer": "Mean answer",
    "partition": "The partition",
    "effect": "What private features add",
    "surface": "The line and the trees on top of it",
    "step": "Where the trees step",
    "strength": "Strength of columns",
}
LAM = {
    "learned": "How far public rows are trusted is learned from the reports.",
    "auto": "Public rows are trusted in proportion to how little noise they carry.",
    "0.0": "Public rows shape the tree; their labels do not count in its answers.",
    "1.0": "A public row weighs as much as a private one.",
    "inf": "Public rows alone decide; the reports do not count.",
}
PRUNE = {
    "smooth": "Cells with little evidence lean on their neighbours in the tree.",
    "fallback": "Cells with too little evidence take the answer of a larger cell above them.",
    "variance": "Cells with little evidence take the answer of a larger cell above them.",
    "paper": "Cells with little evidence take a larger one's answer, by the bounds of the LPCT paper.",
}
GLOSSARY = {
    "holder": "Who keeps data and sends a report.",
    "report": "The scrambled message that leaves a holder.",
    "ε": "Epsilon, the privacy cost. Lower is safer.",
    "kind": "Rows that are alike: one end of the tree.",
    "correction": "What is added to the public model's answer.",
    "± 2 sd": "Two standard deviations each side. Measured: intervals of 90 % held 77 to 100 %. Brackets: what clipping hid.",
    "public": "Data that anyone may see.",
}
"""Words used on the page, marked once each in its open part."""


def say(key: str, **figures: object) -> Sentence:
    """The sentence of a key, filled in."""
    return Sentence(key, SAYS[key].format(narrow="\u202f", **figures))
