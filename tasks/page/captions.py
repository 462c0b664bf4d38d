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

    @property
    def gives_chance(self) -> bool:
        """True if it says how often chance alone would look like the reports."""
        return "{chance}" in SAYS[self.key]


SAYS = {
    # the finding
    "reason": "{reason}",
    "failed": "The run stopped at the step “{step}”, so it has no result.",
    "failed at once": "The run stopped before its first step, so it has no result.",
    "better": "Scrambled reports {lift} from {before} to {ours}.",
    "worse": "Public {nouns} alone do better: {without}, {ours} with reports.",
    "alike": "Reports make no practical difference: {result} with them, {before} without.",
    "close": "Too close to call: {result} with reports, {before} without.",
    "alone": "Scrambled reports gave a model of “{target}”: {ours}.",
    "unscored moved": "Reports move “{output}” from {before} to {after} on average.",
    "unscored found": "Scrambled reports from {people} do not fit what public {nouns} say.",
    "unscored nothing": "Reports of {people} found nothing that public {nouns} do not say.",
    "unscored blind": "{people} reported, too few or too noisily to show a difference.",
    "unscored": "Scrambled reports from {people} gave a model of “{target}”.",
    "unfinished": "It is still running, or was ended from outside.",
    "broken off": "It was broken off {where}. Nobody had been asked.",
    "broken off asking": "It was broken off {where}. People may have been asked; nobody is asked twice.",
    # the paragraph under it
    "use ours": "Use the model with reports.",
    "use public": "Use {reference}, which needs no reports.",
    "ask more": "Ask more people, or set a larger ε: “ldptree plan” says how many.",
    "too few": "But {few} to rely on that.",
    "redrawn": "With fresh noise, {better} of {draws} repeats beat {reference}.",
    "one prediction": "One prediction for everybody, chosen in hindsight, gives {result}.",
    "one thing": "Almost all of the gain is the average: “{output}” from {before} to {after}",
    "expects class": "The public model expects {before} of private {nouns} to be “{output}”.",
    "expects number": "The public model expects a mean “{output}” of {before} among private {nouns}.",
    "reports say": "Their reports say {after} ({low} to {high}).",
    "reports say, and it was": "Their reports say {after} ({low} to {high}); among {nouns} kept aside it was {true}.",
    "average unclear": "Whether the public model is off on “{output}” on average cannot be told: {size}.",
    "off together": "Whether the public model is off on “{output}” on average cannot be told ({size}). Over all groups "
    "together reports differ from it: a difference this large would appear by chance in {chance} of 100 collections.",
    "average difference": "Private {nouns} differ from public ones of the same group in “{output}” by {size} on average.",
    "parts": "Reports were asked about {parts} of {cells}. What they say of a part, and its ±, go for each of its groups; "
    "one by itself may be further off.",
    "no difference": "The reports give no reason to think that private {nouns} differ from public ones.",
    "particular": "The public model is wrong where private {nouns} are. In {chance} of 100 collections "
    "chance alone would look like this.",
    "by coins": "Coins chose the public rows: where the public model is wrong, it is wrong for everybody.",
    "for everybody": "The public model may be wrong for everybody, and not for private {nouns} alone: public rows do not rule "
    "that out.",
    "not by reports": "The reports alone do not show that private {nouns} differ: a difference this large would appear by "
    "chance in {chance} of 100 collections.",
    "hidden": "Behind this noise the average of “{output}” could be off by {size} unseen.",
    "beyond": "For {share} of {nouns} the public model is off by more than a report can say: it may be wrong by far more.",
    "hidden all": "Behind this noise the average of “{output}” could be anything.",
    "chance": "A difference as large as these reports show would appear by chance in {chance} of 100 collections.",
    "clear groups": "The public model is clearly off for {clear} of {cells}, {share} of {nouns}.",
    "no clear group": "The public model is clearly off for none of {cells}",
    "by group": "Predicted “{output}” ranges from {low} to {high} over groups of {nouns}",
    "one group": "Predicted “{output}” is {low} for all {nouns}",
    "shared": "Reports correct all {nouns} alike",
    "says": "{says}",
    "predicts": "Predictions range from {low} to {high}.",
    "no scores": "No row was kept aside to test, so there are no scores.",
    "stopped": "Nobody was asked and no privacy was spent. Correct what is named below before the next run.",
    "waiting": "The question is published. Run it again when reports have come.",
    "stopped asking": "Reports with {epsilon} each may stand already. Run it again: those are used, and nobody reports twice.",
    # a plan's, of a run that nobody has taken part in
    "plan better": "Collect if the public model may be {wrong}. {people} people at epsilon {epsilon}{own} would then {does}.",
    "plan alike": "No practical difference at {where}. That holds even where the public model is {wrong}.",
    "plan close": "Too close to call at {where}. Where the public model is {wrong}, reports would {does}, {doubt}.",
    "plan finds": "If it is wrong by more, reports would find {finds}.",
    "plan instead": "Where it is wrong by {size}, {people} people at epsilon {epsilon} would {does}.",
    "plan beyond": "On people {whom}, reports would {does} on average.",
    # cards
    "gain": "{gain} (95{narrow}% interval {low} to {high}) against {reference}. Grey band: "
    "±{margin} counts as none.",
    "gain of errors": "{gain} of typical error (95{narrow}% interval {low} to {high}; less is better) against {reference}. "
    "Grey band: ±{margin} counts as none.",
    "log loss": "Log loss got worse: {before} to {after}.",
    "people": "{new} of {n} new",
    "campaign": "{new} new in this run, {earlier} in earlier runs of the campaign “{campaign}”.",
    "noise cost": "The noise costs {cost} ({low} to {high}).",
    "noise and range cost": "Noise and clipping cost {cost} ({low} to {high}).",
    "noise alike": "The noise made no measurable difference ({low} to {high}{unit}).",
    "noise luck": "The noise helped here by chance, by {cost} ({low} to {high}).",
    # whose rows, and what one report gives away
    "whose public": "public: anyone may see them",
    "whose private": "private: each sent {reports}",
    "whose earlier": "reported in earlier runs",
    "whose kept": "kept aside to test: only a trial sees them",
    "whose kept, a release": "kept aside to test: their true answers are read",
    "guess before": "how often a snoop tells one {noun} from another by guessing",
    "guess after": "the same snoop, holding a report ({epsilon}). At {half}: {less}; at {twice}: {more}",
    "ruler": "Predicted correctly, of {n} {nouns} kept aside to test.",
    "ruler errors": "Typical error on {n} {nouns} kept aside to test. Better is to the right.",
    "ruler averages": "“{output}” on average among private {nouns}.",
    # the finding by groups
    "off often": "The public model {errs} “{output}” {direction} on {of} {nouns} in 10",
    "off everywhere": "The public model {errs} “{output}” {direction} on nearly all {nouns}",
    "off rarely": "The public model {errs} “{output}” {direction} on fewer than 1 in 10 {nouns}",
    "groups correction": "Diamond: public model. Filled circle: with reports. "
    "Grey: below 2 sd, judged together.{more}",
    "groups share": "All named groups: {shared}.",
    "groups more": " “…”: a condition that the table of all groups states.",
    "groups shares": "Filled circle: the model with reports, ± 2 sd. Diamond: public rows of the group alone.{more}",
    # captions
    "scores": "{figure}, with 95{narrow}% intervals. {better}",
    "spread": "Thin bar: with fresh noise, at least {n} of {draws} repeats fall between {low} and {high}.",
    "no strip": "Other ε are not shown, as each would need a new collection. Forecast them with “ldptree plan”.",
    "strip": "Each dot: one draw of the noise. Figure: their median.{better}",
    "strip every": "From ε = {least} up, every draw beats {reference}.",
    "strip never": "At no ε does every draw beat {reference}.",
    "strip finds": "The smallest error that such a collection would find {times} times in 10, if half of the {nouns} had it. "
    "Lower is better.",
    "strip note": "A run designed for another ε may do better.",
    "caps": "{model}: {note}.",
    "bins": "Those {nouns} kept aside, by what is predicted: their mean “{target}” with ± 2 standard errors.",
    "bins few": "{n} more are in no row, as too few shared one.",
    "tree": "Width of the bar at the side: how many {nouns}. Figures: {what}, ± 2 sd.",
    "strengths": "Share of the variation in predictions.",
    "shared out": "Reports, difference and weight are those of a group’s part; its people are shared out as public rows lie.",
    "adds up": "Corrected can differ from public plus correction. Each row keeps at least {least} of its chance of a class, and "
    "of its chance of any other{scaled}.",
    "table cut": "The {shown} largest of {cells}.",
    "curves": "The prediction along the strongest columns, averaged over the others. Bar: ± 2 sd. Diamond: public rows alone.",
    "beside": "public {public}",
    "strength": "{column} carries {part} of the variation in predictions.",
    "in noise": "Up to {part} of what is averaged here rests on counts within their noise.",
    "weighing": "{lam} {prune}",
    "made": "Made{cores}{memory}.",
    "repeats": "It repeats exactly on the same processor with these versions.",
    "data": "{title}{simulated}.",
    "public rule": "Public: “{rule}”.",
    "where": "Only {nouns} with “{where}” take part.",
    "checked": "{met} of {n} checks of {zone} {nouns} are met.",
    "loads nothing": "One file: no scripts, no network.",
    # privacy
    "who row": "Each {noun} counts as one person: someone with two is protected at {double}.",
    "who device": "Each device counts as one person.",
    "who column": "Everyone with the same “{holder}”, who reports on one of their {nouns}, drawn on their own side.",
    "asked cell and label": "Their group, one of {cells}, and “{target}”",
    "asked cell and error": "Their group, one of {cells}, and how far the public model is off{one}",
    "one output": ", for one of {n} classes that a coin picks (the choice reveals nothing)",
    "asked error along columns": "How far the public model is off, along one of {columns} columns{pairs} that a coin picks (the "
    "choice reveals nothing)",
    "or pairs": " or {n} pairs of them",
    "asked label bin": "In which of {values} bins is “{target}”?",
    "asked feature bin": "In which of {values} bins is {feature}?",
    "asked label": "How much is “{target}”?",
    "asked residual": "Does the prediction miss more {shape}?",
    "asked cell": "Which of {cells} groups is it in?",
    "sent": "{n} sent {what}: {values} possible messages, each sent {how} ({name}){coins}.",
    "coins p": ", the true one with probability {p}, any other with {q}",
    "coins label_p": ", its label with {label_p}",
    "coins noise_sd": ", each number with noise of standard deviation {noise_sd}",
    "coins label_noise_sd": ", the label’s {label_noise_sd}",
    "shown all": "What people show is seen as it is.",
    "shown cells": "With an answer goes in which groups its person could be.",
    "ends": "A number is cut to {low} to {high}, then rounded at random to one of {levels} levels.",
    "ends sent": "A number is first moved into {low} to {high}, and leaves with noise added.",
    "rounds": "{rounds}, one after another. Nobody answered more than {most}.",
    "never asked": "{n} were asked nothing.",
    "roles": "Whom a question was put to depends on public coins and on what was published before, never on a protected value.",
    "promise": "Any two {nouns}{alike} could have sent what was received; their chances differ by a factor of {factor} at most.",
    "exact": "Recomputed in integers: {exact}.",
    "shuffled": "It is {epsilon} at delta {delta} for who gets the {reports} only from {shuffler}. That holds if "
    "{shuffler} takes in all of them, removes senders and times, shuffles them and passes nothing else on. Their people must be "
    "honest.",
    "real numbers": "That holds for real numbers, and not for the floating-point numbers that were drawn.",
    "of sums": "That is said of reports. Of the sums drawn in this run it promises nothing.",
    "spent": "{epsilon} each, {times}.",
    "largest": "The largest spend of anyone{within} is {epsilon}, on {questions}.",
    "devices": "Each device keeps what its person has spent, and sends the same report again. Whoever loses that memory, or has "
    "another device, can answer twice, with {epsilon} more each time. Who writes the inbox could add reports of nobody.",
    "no lifetime": "No lifetime limit is set.",
    "lifetime": "Nobody may spend more than {epsilon} in all: a run that would make them is refused before anybody is asked.",
    "noise seed": "Drawn from a known seed, so anyone can remove it.",
    "noise system": "From the operating system of whoever drew the {form}. It cannot be drawn again.",
    "liar": "One false report can outweigh {one} honest ones, {where}.",
    "liar question": "In a question put to them, one false answer can outweigh {one} honest ones.",
    "no bound question": "In a question put to them, a liar can move the sum as far as they like.",
    "liars": "If 1{narrow}% collude, they weigh as much as {share} of those who got this question.",
    "no bound": "A liar can move every total as far as they like, {where}.",
    "open": "That someone took part, and patterns that hold for all {nouns}.",
    "open where": "That “{where}” is true of whoever took part, for no others were asked.",
    "open condition": "That whoever took part meets “where” of the configuration.",
    "open columns": "{columns}, which tells public {nouns} from private ones.",
    "open public": "The {n} public {nouns}.",
    "open shown": "What people show: everybody can see it, exactly, and link it with whatever else is known of them.",
    "open mask": "The mask: which features a person protects is published with what they show.",
    "open cells": "The groups a person could be in, which each sent with their answer: part of the mask can be read from them.",
    "protected": "The label, {target}, and of the features {features}.",
    "protected label": "The label, {target}. No feature is protected in this run.",
    "protected all": "The label, {target}, every feature, and which of them a person protects.",
    "example class": "{kind} {cell}, and “{level}”.",
    "example number": "{kind} {cell}, and {value}, which each report rounds at random.",
    "example error": "{kind} {cell}, and a public prediction of “{output}” {size} too {side}, "
    "which each report rounds at random.",
    "example answer": "{question} {value}.",
    "example apart": "{kind} {cell}, and {value}.",
    "example": "Medians and most common values of public {nouns}, scrambled twelve times.",
    "boxes": "Blue boxes are sent; the dashed one is the truth.",
    "boxes numbers": "In each box: the number sent. Dashed: the truth.",
    "boxes drawn": "{drawn} of {boxes} boxes are drawn.",
    "left out": "Of 100 such reports {n} leave the truth out.",
    # warnings
    "status trial": "The noise can be undone, so this run protects nobody.",
    "status collection": "Every report was scrambled before anyone received it, at {epsilon}.",
    "simulation": "Anyone with its seed can take the noise away.",
    "release": "A collection: people drew the coins of the operating system, and {epsilon} protects them.",
    "not private, a release": "Scores, the counts beside them and redraws of the noise read private {nouns} exactly. The reports "
    "are protected, this page is not: do not publish it.",
    "totals": "The sums were drawn from true counts: no report was written.",
    "device": "Floating-point Laplace noise can give its input away: no real person may send such a report.",
    "warning": "{text}",
}
"""Sentences by key."""

CLAIMS = {
    "simulation": "This run protects nobody.",
    "failed": "This run failed.",
    "waiting": "There is no model yet.",
    "not private, a release": "Scored collection: do not publish this page.",
    "collection": "Collection: nobody’s answer can be read.",
    "totals": "This was not a collection.",
    "liars": "Liars count for more.",
    "two": "Rows are not people.",
    "device": "The noise is for trials alone.",
}
"""The bold words before a warning, and of the status line."""
NOBODY = f"{CLAIMS['simulation']} {SAYS['simulation']}"
"""What is said of seeded noise, before a run and after it."""
CHIPS = {
    "better": "Verdict: better",
    "worse": "Verdict: worse",
    "alike": "Verdict: no practical difference",
    "close": "Verdict: too close to call",
    "unscored": "Not scored",
    "failed": "Stopped",
    "waiting": "No model yet",
    "unfinished": "Not finished",
}
FORECASTS = {
    "better": "Forecast: worth it, if the model is wrong",
    "alike": "Forecast: no practical difference",
    "close": "Forecast: too close to call",
}
"""Of a plan, which nobody has answered yet."""
MODELS = {
    "majority": "The most common public class",
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
    "accuracy": "Predicted correctly",
    "balanced_accuracy": "Balanced",
    "auc": "AUC",
    "log_loss": "Log loss",
    "rmse": "Typical error",
    "mae": "Mean error",
    "r2": "R²",
}
MECHANISMS = {
    "joint oue": "as bits, one a value, each tossed at random",
    "joint sue": "as bits, one a value, each tossed at random",
    "joint grr": "as one value, kept or replaced by another",
    "joint ss": "as a set of values, drawn at random",
    "joint olh": "as a hash function drawn at random, and one of the values it can take",
    "signed_subset": "as a random set of groups, each with a label",
    "randomized_response": "as bits for the group, and a label apart",
    "discrete_laplace": "as whole numbers, each with noise added",
    "laplace": "as numbers, each with noise added",
    "number_response": "as bits for the group, and a number with noise added",
    "number_laplace": "as two numbers a group, each with noise added",
    "ss": "as a set of bins drawn at random",
    "grr": "as one group, kept or replaced by another",
    "optimal_label": "as one random number that is right on average",
    "duchi": "as one of two numbers, right on average",
}
"""How a report leaves, by mechanism."""
SHAPES = {"rise": "where {feature} is high", "bowl": "where {feature} is far from its middle", "": ""}
ALIKE = {"all": " that show the same", "cells": " that could be in the same groups", "none": ""}
BASIS = {
    "private": "own reports",
    "public": "public rows",
    "both": "reports and public rows",
    "neighbours": "other groups",
    "noise": "a count within its noise",
}
FIGURES = {
    "trees": ("Trees", "count"),
    "before": ("Public model", "label"),
    "after": ("Corrected", "label"),
    "apart": ("More than elsewhere", "signed"),
    "apart_sd": ("Its sd", "label"),
    "amount": ("Part of the difference", "plain"),
    "amount_sd": ("Its sd", "plain"),
    "bins": ("Bins of the histogram", "count"),
    "depth": ("Depth of the tree", "count"),
    "cells": ("Groups", "count"),
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
    "mean prediction": "Mean prediction",
    "stump": "Added in every group",
    "partition": "The partition",
    "effect": "What private features add",
    "surface": "The line and the trees on top of it",
    "step": "Where the trees step",
    "strength": "Strength of columns",
}
LAM = {
    "learned": "How far public rows are trusted is learned from the reports.",
    "auto": "Public rows are trusted in proportion to how little noise they carry.",
    "0.0": "Public rows shape the tree; their labels do not count in its predictions.",
    "1.0": "A public row weighs as much as a private one.",
    "inf": "Public rows alone decide; the reports do not count.",
}
PRUNE = {
    "smooth": "Groups with little evidence lean on their neighbours in the tree.",
    "fallback": "Groups with too little evidence take the prediction of a larger group above them.",
    "variance": "Groups with little evidence take the prediction of a larger group above them.",
    "paper": "Groups with little evidence take a larger one's prediction, by the bounds of the LPCT paper.",
}
ACTORS = {
    "device": ("The device", "own row, question, report, cost", "until its memory is deleted"),
    "people": ("The people’s side", "their rows, who answered", "as they decide"),
    "relay": (
        "A relay, proxy or network",
        "address, time and size; the report where TLS ends",
        "as its logs say",
    ),
    "intake": ("The intake", "reports with their ids, as they come", "as long as they are to count"),
    "curator": ("The curator", "what was sent, totals, model", "until deleted"),
    "reader": ("A reader of the model", "model, page", "once published, for good"),
    "seed": ("Anyone with the seed", "each answer without noise", "for good"),
    "scores": ("The scoring", "rows kept aside, exactly", "until deleted"),
}
"""Who a party is, what it sees, and for how long."""
GLOSSARY = {
    "report": "The scrambled message a person sends.",
    "ε": "Epsilon, the privacy cost. Lower is safer.",
    "group": "One end of the tree: rows alike.",
    "correction": "Added to the public model's prediction.",
    "± 2 sd": "Two standard deviations each side. Measured: intervals of 90 % held 67 to 100 %. Brackets: what clipping hid.",
    "public": "Data that anyone may see.",
}
"""Words used on the page, marked once each in its open part."""


def say(key: str, **figures: object) -> Sentence:
    """The sentence of a key, filled in."""
    return Sentence(key, SAYS[key].format(narrow="\u202f", **figures))
