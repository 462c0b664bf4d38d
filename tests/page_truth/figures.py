"""What the numbers of a page must be, computed from what a run has left."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from chain import RoundsChain

from ldptree.planning.detection import noncentrality, smallest_error
from page_truth.agreement import Figures, numbers
from page_truth.artifacts import Run
from page_truth.reading import number
from tasks.artifacts import read_protocol, read_published


def clear_of(estimate: dict[str, Any]) -> bool:
    return (
        estimate["value"] != 0 and estimate["sd"] is not None and abs(estimate["value"]) >= 2 * estimate["sd"]
    )


def forces(run: Run) -> list[float]:
    """By how much a forged report to each question of a round can move a sum, where an honest one moves it by 1."""
    asked = [read_published(run.store, one.question()) for one in run.chain.conversation.whole]
    found = []
    for question in asked:
        if hasattr(question, "oracle"):
            found.append(1.0 / (question.oracle.p - question.oracle.q))
        elif hasattr(question, "partition"):
            k, factor = question.partition.n_cells, math.exp(question.epsilon)
            half = math.exp(question.epsilon / 2)
            is_grr = question.mechanism.name == "grr"
            found.append((factor + k - 1) / (factor - 1) if is_grr else (half + 1) / (half - 1))
        else:
            outputs = question.mechanism.outputs
            found.append(float(np.abs(question.mechanism.decode(outputs)).max()))
    return found


def ours(run: Run) -> dict[str, Any]:
    assert run.scores is not None
    return dict(run.scores["scores"]["ours"])


PUBLIC = ("public_only", "public_tree", "public_forest", "majority", "constant")
"""Models that public rows alone give; the first of equals is named."""


def reference(run: Run) -> dict[str, Any]:
    """The best of them."""
    assert run.scores is not None
    found = [run.scores["scores"][key] for key in PUBLIC if key in run.scores["scores"]]
    return dict((max if is_class(run) else min)(found, key=lambda one: chief(run, one)))


def margin(run: Run, other: dict[str, Any] | None = None) -> float:
    """The difference from a model that counts as none, in points of 100 or as a typical error."""
    return 0.2 if is_class(run) else 0.005 * chief(run, other or reference(run))


def is_class(run: Run) -> bool:
    return "accuracy" in ours(run)


def chief(run: Run, score: dict[str, Any]) -> float:
    """The share predicted correctly, in percent, or the typical error, which is the root of the mean square."""
    return 100.0 * score["accuracy"] if is_class(run) else math.sqrt(score["mse"])


def as_chief(run: Run, value: float) -> float:
    """An accuracy or a mean square, as `chief` has it."""
    return 100.0 * value if is_class(run) else math.sqrt(max(value, 0.0))


def interval_of(run: Run, score: dict[str, Any]) -> list[float]:
    """The interval of `chief`."""
    return [as_chief(run, end) for end in score["interval"]]


def lead_of(run: Run, score: dict[str, Any]) -> list[float]:
    """The interval of how far ours is ahead of this model, by `chief`."""
    if is_class(run):
        return [100.0 * end for end in score["lead"]]
    return [chief(run, score) - as_chief(run, score["mse"] - end) for end in score["lead"]]


def constant_of(run: Run) -> dict[str, Any]:
    """The answer for everybody that public rows give."""
    assert run.scores is not None
    found = run.scores["scores"]
    return dict(found["majority" if is_class(run) else "constant"])


def best_constant(run: Run) -> float:
    """The chief figure of that one, or of the best one on the rows held back."""
    known = chief(run, constant_of(run))
    if not is_class(run):
        return min(known, chief(run, ours(run)) / math.sqrt(1.0 - ours(run)["r2"]))
    counts = np.sum(ours(run)["confusion"], axis=1)
    return max(known, 100.0 * counts.max() / counts.sum())


def moved(run: Run) -> Figures:
    """Both models, from before to after."""
    return chief(run, reference(run)), chief(run, ours(run))


def ours_first(run: Run) -> Figures:
    """Both models, from after to before."""
    return moved(run)[::-1]


def output_of(run: Run) -> int:
    """The output that a whole page speaks of: where a correction is clear for most people, else on average; of predictions the
    one that differs most between groups.
    """
    description = run.facts["description"]
    cells, outputs = description["cells"], range(len(description["outputs"]))
    if description["figure"] != "correction":
        each = [[cell["estimates"][at]["value"] for cell in cells] or [0.0] for at in outputs]
        return int(np.argmax([max(values) - min(values) for values in each]))
    root = description["tree"]["estimates"]
    clear = [sum(cell["share"] for cell in cells if clear_of(cell["estimates"][at])) for at in outputs]
    strength = [abs(one["value"]) / max(one["sd"] or 0.0, 1e-300) if one["value"] else 0.0 for one in root]
    return max(outputs, key=lambda at: (clear[at], strength[at], -at))


def predicted(run: Run) -> Figures:
    """What is predicted of each group, of that output."""
    at, scale = output_of(run), 100.0 if run.facts["label"] == "class" else 1.0
    return tuple(scale * cell["estimates"][at]["value"] for cell in run.facts["description"]["cells"])


def average_moved(run: Run) -> Figures:
    """What the public model expects on average among private people, what it is corrected to, and its ends; of the output
    that is furthest from 0 in standard deviations.
    """
    assert hasattr(run.model, "corrections")
    corrections, scale = run.model.corrections, 100.0 if run.model.classes else 1.0
    root = run.facts["description"]["tree"]["estimates"]
    at = output_of(run)
    means = [
        one["figures"] for one in run.facts["description"]["statements"] if one["kind"] == "mean prediction"
    ][at]
    moved_by = float((corrections.share @ corrections.correction)[at])
    sd, below, above = (root[at][name] for name in ("sd", "below", "above"))
    reach = (
        [2 * sd + max(below, above)] * 2
        if max(below, above) <= 0.2 * sd
        else [2 * sd + below, 2 * sd + above]
    )
    assert abs(moved_by - root[at]["value"]) < 1e-6
    ends = (means["after"] - reach[0], means["after"] + reach[1])
    return tuple(scale * value for value in (means["before"], means["after"], *ends))


def kept_aside(run: Run) -> float:
    """What was true of the rows kept aside: the share of a class, or the mean."""
    assert run.scores is not None
    at = output_of(run)
    if not is_class(run):
        return sum(b["n"] * b["true"] for b in run.scores["bins"]) / run.scores["n_test"]
    counts = np.sum(ours(run)["confusion"], axis=1)
    return 100.0 * counts[run.classes.index(run.facts["description"]["outputs"][at])] / counts.sum()


def n_private(run: Run) -> float:
    if isinstance(run.chain, RoundsChain):
        return float(run.chain.held.facts["n_private"])
    return float(sum(totals.n_private for one in run.answered for totals in one))


def n_last(run: Run) -> float:
    """Who reported on the last question."""
    return float(sum(totals.n_private for totals in run.totals))


def n_same(run: Run) -> float:
    """Those of them who reported on one output, which a coin draws where there are several."""
    description = run.facts["description"]
    return n_last(run) / (len(description["outputs"]) if description["figure"] == "correction" else 1)


def gain(run: Run) -> Figures:
    """The difference of the two figures that the ruler shows, which the heading has too; its interval; and the margin."""
    shown = {
        role: numbers(mark.first("b").text, run)[0]
        for mark in run.page.every("li", "mk")
        for role in ("pub", "ours")
        if role in mark.classes
    }
    heading = numbers(run.page.first("h1").text, run)
    assert [*shown.values()] in (heading, heading[::-1]), f"the ruler has {shown}, the heading {heading}"
    change = number(shown["ours"]) - number(shown["pub"])
    low, high = lead_of(run, reference(run))
    if is_class(run):
        return change, 95.0, low, high, 0.2
    return change, 95.0, -high, -low, 0.5


def noise_cost(run: Run) -> Figures:
    assert run.scores is not None
    score = run.scores["scores"]["no_noise"]
    cost = (chief(run, score) - chief(run, ours(run))) * (1 if is_class(run) else -1)
    low, high = lead_of(run, score)
    return cost, -high, -low


def noise_luck(run: Run) -> Figures:
    cost, low, high = noise_cost(run)
    return -cost, -high, -low


def within(value: float, sd: float, below: float, above: float) -> tuple[float, ...]:
    """A figure and its error; or its ends, where more is hidden to one side than a tenth of that."""
    if max(below, above) <= 0.2 * sd:
        return value, 2 * sd + max(below, above)
    return value, value - 2 * sd - below, value + 2 * sd + above


def signed_average(run: Run) -> Figures:
    """The mean correction over private people; its error is that of `describe`, which is tested beside the model."""
    corrections, scale = run.model.corrections, 100.0 if run.model.classes else 1.0
    means = corrections.share @ corrections.correction
    root = run.facts["description"]["tree"]["estimates"]
    at = output_of(run)
    ends = (root[at][name] for name in ("sd", "below", "above"))
    return within(*(scale * figure for figure in (float(means[at]), *ends)))


def one_thing(run: Run) -> Figures:
    """The mean answer before and after, over private people; () where the order of rows changes, by AUC."""
    means = [
        one["figures"] for one in run.facts["description"]["statements"] if one["kind"] == "mean prediction"
    ]
    aucs = [score.get("auc") for score in (reference(run), ours(run))]
    if len(means) != 1 or None in aucs or abs(aucs[1] - aucs[0]) > 0.002:
        return ()
    return 100.0 * means[0]["before"], 100.0 * means[0]["after"]


def of_hundred(run: Run) -> float:
    """In how many of 100 collections noise alone would look like the reports; between 1 and 99."""
    return min(max(100.0 * float(run.model.corrections.chance), 1.0), 99.0)


def clear_groups(run: Run) -> Figures:
    found, at = run.model.corrections, output_of(run)
    clear = (np.abs(found.correction[:, at]) >= 2 * found.sd[:, at]) & (found.correction[:, at] != 0)
    share = min(np.maximum(found.share[clear], 0.0).sum(), 1.0)
    return float(clear.sum()), float(clear.size), max(100.0 * share, 1.0)


def spread(run: Run) -> Figures:
    assert run.scores is not None
    found = sorted(as_chief(run, draw) for draw in run.scores["redraws"])
    last = len(found) - 1
    ends = found[round(0.05 * last)], found[round(0.95 * last)]
    n_least = round(0.95 * last) - round(0.05 * last) + 1
    assert sum(ends[0] <= draw <= ends[1] for draw in found) >= n_least
    return float(n_least), float(len(found)), *ends


def influence(run: Run) -> Any:
    return run.protocol.mechanism.poisoning_bound(int(n_last(run)))


def liar(run: Run) -> Figures:
    force = influence(run)
    at_once = force.totals_at_once
    return (force.one,) if at_once >= run.protocol.n_cells else (force.one, float(at_once))


def epsilon(run: Run) -> float:
    return float(run.config.privacy.epsilon)


def exact(run: Run) -> Figures:
    value = run.facts["privacy"]["epsilon_exact"]
    if not isinstance(run.chain, RoundsChain):
        value = run.protocol.epsilon_exact
    shown = f"{math.ceil(value * 1e9 - 1e-6) / 1e9:.9f}"
    return tuple(float(part) for part in (shown[:-6], shown[-6:-3], shown[-3:]))


def asked_last(run: Run) -> Figures:
    """Who answered the last question, the cells it is about, its classes where a coin picks one, and what it let them say."""
    n_outputs = round(n_last(run) / n_same(run))
    outputs = [float(n_outputs)] if n_outputs > 1 else []
    return n_last(run), float(run.protocol.n_cells), *outputs, float(run.protocol.k), *coins(run, -1)


def asked_first(run: Run) -> Figures:
    """Who answered the first of two questions, of all, and what it let them say."""
    first = read_protocol(run.store, run.chain.conversation.whole[0].question())  # type: ignore[union-attr]
    n_first = float(sum(totals.n_private for totals in run.answered[0]))
    owners = [feature.column for feature in first.encoding.features for _ in feature.names]
    asked = [frozenset(owners[cut.feature] for cut in along.cuts) for along in first.base.contrasts]
    n_along = [float(len({columns for columns in asked if len(columns) == n})) for n in (1, 2)]
    return n_first, *(n for n in n_along if n), float(first.k), *coins(run, 0)


def coins(run: Run, place: int) -> Figures:
    """Chances and noise of a question's mechanism."""
    mechanism = read_protocol(run.store, list(run.chain.conversation.whole)[place].question()).mechanism
    inner = getattr(mechanism, "oracle", getattr(mechanism, "bits", mechanism))
    stated = run.facts["privacy"]["asked"][place]["question"]["figures"]
    chances = [inner.p, inner.q] if "p" in stated else []
    return *chances, *(stated[name] for name in ("label_p", "noise_sd", "label_noise_sd") if name in stated)


def moved_into_first(run: Run) -> Figures:
    """The range of what is sent to the first of two questions, an error of either sign, and its levels."""
    first = read_protocol(run.store, run.chain.conversation.whole[0].question())  # type: ignore[union-attr]
    return *first.label_range, float(first.n_classes)


def moved_into(run: Run) -> Figures:
    found = run.facts["privacy"]["asked"][-1]["question"]["figures"]
    levels = float(run.protocol.n_classes)
    if run.protocol.base is None:
        low, high = run.protocol.label_range
        return low, high, levels
    return -found["high"], found["high"], levels


def guess(budget: float) -> float:
    """How often of 100 an even guess between two is right at most, after reports of that epsilon."""
    return 100.0 / (1.0 + math.exp(-budget))


def bound(value: float, digits: int = 1) -> float:
    """What is never more than it, as a page writes it: rounded up."""
    return math.ceil(value * 10**digits) / 10**digits


def most_percent(share: float) -> float:
    """The same of a share in percent, with as many decimals as leave less than 100, where eight do."""
    ups = (bound(100.0 * share, digits) for digits in range(1, 9))
    return next((up for up in ups if up < 100.0), 100.0)


def groups(run: Run) -> Figures:
    """What was asked about, and the kinds of the model."""
    return float(run.protocol.partition.n_leaves), float(len(run.facts["description"]["cells"]))


def beyond(run: Run) -> Figures:
    """The share of people of whom more is hidden than twice the range of a report, the most that a part of them hides."""
    most, corrections = run.protocol.label_range[1], run.model.corrections
    return (100.0 * float(corrections.share[corrections.hidden.max(axis=(0, 2)) > 2.0 * most].sum()),)


def hidden(run: Run) -> Figures:
    scale, n_classes = 100.0 if run.facts["label"] == "class" else 1.0, run.protocol.n_classes
    if len(run.totals) == 1 and not run.protocol.numeric and n_classes > 2:
        counts = run.totals[0].counts
        each = [np.roll(counts, 1 - one, axis=1) for one in range(n_classes)]
        outputs = [replace(run.totals[0], counts=one) for one in each]
    else:
        outputs = list(run.totals)
    found = []
    for one in outputs:
        held = np.maximum(one.counts.sum(axis=1), 0.0)
        found.append(smallest_error(run.protocol, one, held / held.sum(), 1.0))
    together = noncentrality(len(found) * run.protocol.n_cells) / noncentrality(run.protocol.n_cells)
    return (scale * max(found) * math.sqrt(together),)


def several(run: Run) -> bool:
    """Whether a holder answered several questions; of parts that are asked apart each answered one."""
    return (
        not isinstance(run.chain, RoundsChain)
        and len(run.answered) > 1
        and not run.chain.respondents.asks_parts
    )


def better_draws(run: Run, draws: list[float]) -> int:
    """How many of them are better than the model that ours is held against."""
    key, sign = ("accuracy", 1) if is_class(run) else ("mse", -1)
    return sum(sign * (draw - reference(run)[key]) > 0 for draw in draws)


def redrawn(run: Run) -> Figures:
    """How many repeats at the run's own epsilon beat the model that ours is held against, and of how many; () of none."""
    drawn = [
        one["redraws"] for one in (run.scores or {}).get("epsilons", []) if one["epsilon"] == epsilon(run)
    ]
    return tuple(float(n) for draws in drawn for n in (better_draws(run, draws), len(draws)))


def surely_from(run: Run) -> float | None:
    """The least epsilon from which on every draw is better; None where there is none."""
    assert run.scores is not None
    found = None
    for one in sorted(run.scores["epsilons"], key=lambda one: -one["epsilon"]):
        if better_draws(run, one["redraws"]) < len(one["redraws"]):
            break
        found = one["epsilon"]
    return found


def found_from(run: Run) -> list[dict[str, Any]]:
    """The smallest error of the public model that as many reports would find at each epsilon, of a release that corrects one."""
    if run.scores is not None or isinstance(run.chain, RoundsChain) or run.protocol.base is None:
        return []
    totals, found = run.totals[0], []
    held = np.maximum(totals.counts.sum(axis=1), 0.0)
    for at in sorted({0.25, 0.5, 1.0, 2.0, 4.0, 8.0, epsilon(run)}):
        other = replace(totals, mechanism=totals.mechanism.at_epsilon(at))
        error = smallest_error(run.protocol, other, held / held.sum(), 0.5)
        found.append({"epsilon": at, "redraws": [error]})
    return found
