"""Say the finding in verdict, heading, paragraph, cards and warnings, by the same rules for every family.

One rule decides every verdict: the paired interval of ours less the best model that public rows alone give, beside a margin. A
direction is said of what lies at least two standard deviations from 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldptree.families import FEWEST_FOR_A_MODEL
from ldptree.models.description import Cell, Estimate
from tasks.page import units
from tasks.page.captions import CLAIMS, Sentence, name_model, say
from tasks.page.data import Failure, Run, Score
from tasks.page.units import Unit, label_unit, score_unit

MARGIN_SHARE, MARGIN_PART = 0.002, 0.01
"""Differences that count as none, of accuracy and as a part of the opponent's mean squared error."""
OPPONENTS = ("public_only", "public_tree", "public_forest", "majority", "constant")
"""Models that public rows alone give."""
CONSTANTS = ("constant", "majority")
FEWEST_SCORED = 100
"""With fewer held-back rows nothing is advised. Two models that agree on n of them may differ on 3/n of all."""
MOST_WARNINGS = 3
SAME = 1e-9
FOR_WHOM = ("by coins", "particular", "for everybody")
"""Sentences that say for whom the public model is wrong."""
LONGEST_REASON = 220
"""Letters of a sentence that can be a heading."""


@dataclass(frozen=True)
class Caution:
    """Something to know before relying on the result, as a claim and a sentence."""

    claim: str
    sentence: Sentence


def find_reference(run: Run) -> Score | None:
    """Find the model to compare ours with, the best one that public rows alone give."""
    return None if run.scores is None else find_best(run, OPPONENTS)


def find_best(run: Run, keys: Sequence[str]) -> Score | None:
    """The best of these models, of those that were scored."""
    assert run.scores is not None
    scores = [score for key in keys if (score := run.scores.find(key))]
    sign = -1 if run.label == "class" else 1
    return min(scores, key=lambda score: sign * score.figure, default=None)


def verdict(run: Run) -> str:
    """One of the keys of `captions.CHIPS`."""
    if run.failure is not None:
        return "failed"
    reference = find_reference(run)
    if run.scores is None or reference is None:
        return "unscored"
    return compare(run, reference)


def is_blind(run: Run) -> bool:
    """Return whether the reports would have missed a difference of a size that a plan reckons with."""
    return run.hidden is not None and not run.hidden.is_small


def find_constant(run: Run) -> float | None:
    """The chief figure of the best answer that is the same for everybody; None where none was scored.

    That is the one of public rows, or that of the rows held back, which nobody knows before.
    """
    assert run.scores is not None
    scored, ours = find_best(run, CONSTANTS), run.scores.ours
    if scored is None:
        return None
    if run.label != "class":
        explained = ours.metrics.get("r2", -math.inf)
        return min(scored.figure, ours.figure / (1.0 - explained)) if explained < 1.0 else scored.figure
    counts = [sum(row) for row in ours.confusion]
    return max(scored.figure, max(counts) / run.scores.n) if counts else scored.figure


def beats_constant(run: Run) -> bool:
    """Return whether ours is surely better than the same answer for everybody; also where none was scored."""
    assert run.scores is not None
    scored, best = find_best(run, CONSTANTS), find_constant(run)
    if scored is None or best is None:
        return True
    sign = 1 if run.label == "class" else -1
    return compare(run, scored) == "better" and sign * (run.scores.ours.figure - best) > 0


def margin(run: Run, other: Score) -> float:
    """The difference from another model below which there is none in practice."""
    return MARGIN_SHARE if run.label == "class" else MARGIN_PART * other.figure


def compare(run: Run, other: Score) -> str:
    """Return whether ours is "better" or "worse" than another model, "alike", or too "close" to call."""
    assert other.lead is not None
    low, high, small = other.lead.low, other.lead.high, margin(run, other)
    if -small < low and high < small:
        return "alike"
    if low > 0:
        return "better"
    return "worse" if high < 0 else "close"


def headline(run: Run) -> Sentence:
    """The finding in one sentence with its figures."""
    if run.failure is not None:
        reason, _ = split_reason(run.failure.message)
        return say("reason", reason=reason) if reason else _stopped(run.failure)
    people, is_found = say_rows(run, run.n_private), run.model.is_found
    reference = find_reference(run)
    if run.scores is None or reference is None:
        if run.scores is not None:
            ours = _say_result(run, _figure_unit(run).value(_typical(run, run.scores.ours.figure)))
            return say("alone", people=people, target=run.target, ours=ours)
        key = {True: "unscored found", False: "unscored nothing", None: "unscored"}[is_found]
        key = "unscored blind" if is_found is False and is_blind(run) else key
        return say(key, people=people, nouns=run.nouns, target=run.target)
    before, ours = units.apart(
        _typical(run, reference.figure), _typical(run, run.scores.ours.figure), _figure_unit(run)
    )
    return say(
        verdict(run),
        people=people,
        nouns=run.nouns,
        lift="lift correct predictions" if run.label == "class" else "cut the typical error",
        result=_say_result(run, ours),
        without=_say_result(run, before),
        ours=ours,
        before=before,
    )


def _typical(run: Run, figure: float) -> float:
    """The share predicted correctly as it is; of a mean squared error the typical error, in the label's unit."""
    return figure if run.label == "class" else math.sqrt(figure)


def _figure_unit(run: Run) -> Unit:
    return score_unit(run) if run.label == "class" else label_unit(run)


def _say_result(run: Run, figure: str) -> str:
    return f"{figure} predicted correctly" if run.label == "class" else f"a typical error of {figure}"


def split_reason(message: str) -> tuple[str, str]:
    """Split the reason for a stop into its first sentence and the rest. A sentence too long for a heading stays in the
    rest, after "".
    """
    match = re.match(r"(.+?[.!?])\s+(?=[A-Z“\"])", message, flags=re.DOTALL)
    reason = match[1] if match else message
    return (reason, message[len(reason) :].strip()) if len(reason) <= LONGEST_REASON else ("", message)


def _stopped(failure: Failure) -> Sentence:
    return say("failed", step=failure.step) if failure.step else say("failed at once")


def advise(run: Run) -> list[Sentence]:
    """Say what to use, or what to do next; and where the same prediction for everybody does as well in hindsight."""
    reference = find_reference(run)
    if run.failure is not None or run.scores is None or reference is None:
        return []
    key = verdict(run)
    name = name_score(run, reference, in_sentence=True)
    sentences = [say({"better": "use ours", "close": "ask more"}.get(key, "use public"), reference=name)]
    if key != "close" and (few := _say_few(run, is_good=key == "alike")):
        sentences = [say("too few", few=few)]
    if not beats_constant(run) and reference.key not in CONSTANTS:
        before = _figure_unit(run).value(_typical(run, find_constant(run) or math.nan))
        sentences.append(say("one prediction", result=_say_result(run, before)))
    return sentences


def _say_few(run: Run, *, is_good: bool) -> str:
    """Say which rows are too few to advise against reports, or "" if there are enough. `is_good` is set if the
    reference is as good as ours, not better.
    """
    assert run.scores is not None
    if run.n_public < FEWEST_FOR_A_MODEL:
        return f"{units.plural(run.n_public, f'public {run.noun} is', f'public {run.nouns} are')} too few"
    if run.scores.n < FEWEST_SCORED:
        return (
            f"{units.plural(run.scores.n, f'{run.noun} held back is', f'{run.nouns} held back are')} too few"
        )
    return "too little was asked" if is_good and is_blind(run) else ""


def say_finding(run: Run) -> str:
    """Return the heading and the advice, as the last words in a terminal."""
    return " ".join(sentence.text for sentence in (headline(run), *advise(run)))


def say_details(run: Run) -> str:
    """The paragraph under the heading, without what `say_finding` has of it."""
    advice = advise(run)
    return " ".join(sentence.text for sentence in lead(run) if sentence not in advice)


def name_score(run: Run, score: Score, *, in_sentence: bool = False) -> str:
    """Name a model as the page calls it."""
    corrects = run.description is not None and run.model.figure == "correction"
    name = name_model(score.key, corrects=corrects)
    return name[0].lower() + name[1:] if in_sentence else name


def say_rows(run: Run, number: int | None = None) -> str:
    """Return the number and name of the data's rows, such as "14,909 simulated trips"."""
    noun = run.noun if number == 1 else run.nouns
    named = f"simulated {noun}" if run.simulated else noun
    return named if number is None else f"{units.count(number)} {named}"


def lead(run: Run) -> list[Sentence]:
    """Return the paragraph under the heading, with the difference, its place, and what speaks against it."""
    if run.failure is not None:
        where = [_stopped(run.failure)] if headline(run).key == "reason" else []
        if run.failure.has_asked:
            return [*where, say("stopped asking", epsilon=units.epsilon(run.privacy.epsilon))]
        return [*where, say("stopped")]
    sentences = [*_differences(run), *_kinds(run)]
    if run.model.says and not run.model.cells:
        sentences.append(say("says", says=run.model.says))
    if run.model.predicts:
        low, high = (label_unit(run).value(end) for end in run.model.predicts)
        sentences.append(say("predicts", low=low, high=high))
    if run.scores is None:
        return [*sentences, say("no scores")]
    if one_thing := _one_thing(run):
        sentences = [*one_thing, *(sentence for sentence in sentences if sentence.key in FOR_WHOM)]
    return [*advise(run), *sentences]


def _one_thing(run: Run) -> list[Sentence]:
    """Say where almost all of a gain is the average, as rows stay in their order."""
    reference, means = find_reference(run), run.model.of_kind("mean answer")
    if reference is None or run.scores is None or verdict(run) != "better" or reference.key != "public_only":
        return []
    before, after = (score.metrics.get("auc") for score in (reference, run.scores.ours))
    if before is None or after is None or abs(after - before) > MARGIN_SHARE or len(means) != 1:
        return []
    return [
        say(
            "one thing",
            output=means[0].about,
            before=units.percent(means[0].figures["before"]),
            after=units.percent(means[0].figures["after"]),
        )
    ]


def _differences(run: Run) -> list[Sentence]:
    """Say how far private people differ on average, or that the reports do not say so."""
    model = run.model
    if model.figure == "correction":
        sentences = []
        if model.chance is not None and not model.is_found and _is_better(run):
            chance = units.of_hundred(model.chance)
            sentences.append(say("not by reports", nouns=run.nouns, chance=chance))
        elif model.chance is not None and not model.is_found:
            sentences += _no_difference(run)
            sentences.append(say("chance", chance=units.of_hundred(model.chance)))
            sentences += _hidden(run)
        elif model.tree is not None:
            at = model.tree.clearest
            average = model.tree.estimates[at]
            sentences.append(_average(run, average, model.outputs[at]))
        if model.is_found and model.is_particular is not None:
            whom = "by coins" if run.is_by_coins else "particular" if model.is_particular else "for everybody"
            sentences.append(say(whom, nouns=run.nouns, chance=units.portion(model.chance_alike or 0.0)))
        return sentences
    if not model.differences:
        return []
    unit = _difference_unit(run)
    if model.is_found:
        sentences = [
            say(
                "average difference",
                nouns=run.nouns,
                output=output,
                size=unit.estimate(difference, with_unit=True),
            )
            for difference, output in zip(model.differences, model.outputs, strict=True)
        ][:3]
        if has_groups(run):
            cells = units.plural(len(model.cells), "kind", "kinds")
            sentences.append(say("groups", groups=say_asked(run, run.n_cells), cells=cells))
        return sentences
    return [*_no_difference(run), *_hidden(run)]


def _is_better(run: Run) -> bool:
    """Return whether the rows held back say that ours is better than public rows alone."""
    reference = find_reference(run)
    return reference is not None and compare(run, reference) == "better"


def _no_difference(run: Run) -> list[Sentence]:
    """That the reports found none; not of reports that could not have."""
    return [] if is_blind(run) else [say("no difference", nouns=run.nouns)]


def _hidden(run: Run) -> list[Sentence]:
    """Say how large a difference the reports could not have told from noise."""
    if run.hidden is None:
        return []
    unit, output = _difference_unit(run), run.model.outputs[run.hidden.output]
    if run.label == "class" and run.hidden.difference >= 1:
        return [say("hidden all", output=output)]
    size = unit.error(run.hidden.difference / 2).lstrip("±\u00a0")
    size = unit.with_name(size) if unit.kind == "number" else size + units.SUFFIXES[unit.kind]
    return [say("hidden", size=size, output=output)]


def _difference_unit(run: Run) -> Unit:
    return label_unit(run, signed=True)


def _average(run: Run, estimate: Estimate, output: str) -> Sentence:
    """The public model's error on average."""
    unit = label_unit(run, signed=True)
    if not estimate.is_clear:
        written, chance = unit.estimate(estimate, with_unit=True), run.model.chance
        if run.model.is_found and chance is not None:
            return say("off together", output=output, size=written, chance=units.of_hundred(chance))
        return say("average unclear", output=output, size=written)
    plain = Unit(unit.kind, unit.spread, unit.name)
    is_class = run.label == "class"
    is_low = estimate.value > 0
    size = (
        estimate
        if is_low
        else replace(estimate, value=-estimate.value, below=estimate.above, above=estimate.below)
    )
    return say(
        "average correction",
        errs="expects" if is_class else "predicts",
        output=output,
        direction=say_direction(is_class, is_low=is_low),
        size=plain.estimate(size, with_unit=True),
    )


def say_direction(is_class: bool, *, is_low: bool) -> str:
    """Say how the public model errs, where its answer lies below the truth, or above it."""
    if is_class:
        return "too rarely" if is_low else "too often"
    return "too low" if is_low else "too high"


def _kinds(run: Run) -> list[Sentence]:
    """In how many kinds a correction is clear; or that it is the same everywhere."""
    if run.model.figure != "correction" or len(run.model.cells) < 2 or not run.model.is_found:
        return []
    if is_shared(run.model.cells):
        return [say("shared", noun=run.noun)]
    clear = find_clear(run)
    if not clear:
        cells = units.plural(len(run.model.cells), f"kind of {run.noun}", f"kinds of {run.noun}")
        return [say("no clear kind", cells=cells)]
    return [
        say(
            "clear kinds",
            clear=units.count(len(clear)),
            cells=units.plural(len(run.model.cells), f"kind of {run.noun}", f"kinds of {run.noun}"),
        )
    ]


def is_shared(cells: tuple[Cell, ...]) -> bool:
    """Return whether all cells have one and the same estimate."""
    columns = zip(*([estimate.value for estimate in cell.estimates] for cell in cells), strict=True)
    spreads = [(max(column) - min(column), max(map(abs, column))) for column in columns]
    return all(spread <= SAME * largest for spread, largest in spreads)


def find_clear(run: Run) -> list[Cell]:
    """Cells with a clear correction."""
    return [cell for cell in run.model.cells if cell.estimates[cell.clearest].is_clear]


def gain(run: Run) -> list[Sentence]:
    """Say how much better it is than the reference, and what the noise costs."""
    reference = find_reference(run)
    if run.scores is None or reference is None:
        return []
    sentences = []
    unit = Unit("points") if run.label == "class" else score_unit(run)
    named = "\u00a0points" if run.label == "class" else ""
    sign = 1 if run.label == "class" else -1
    if reference.lead is not None:
        change = sign * (run.scores.ours.figure - reference.figure)
        low, high = reference.lead.low, reference.lead.high
        is_up = (change >= 0) == (run.label == "class")
        if change < 0:
            low, high = -high, -low
        size, *ends = units.alike((abs(change), low, high), unit)
        direction = "Up" if is_up else "Down"
        sentences.append(
            say(
                "gain",
                direction=direction,
                gain=size + named,
                reference=name_score(run, reference, in_sentence=True),
                low=ends[0],
                high=ends[1],
                margin=f"{units.decimal(100 * MARGIN_SHARE, 1)}{named}"
                if run.label == "class"
                else units.percent(MARGIN_PART, 0),
            )
        )
    before, after = (score.metrics.get("log_loss") for score in (reference, run.scores.ours))
    if before is not None and after is not None and round(after, 3) > round(before, 3):
        sentences.append(say("log loss", before=units.decimal(before), after=units.decimal(after)))
    noiseless = run.scores.find("no_noise")
    if noiseless is not None and noiseless.lead is not None:
        cost = sign * (noiseless.figure - run.scores.ours.figure)
        # Without noise a correction of a number has no clipped residuals either.
        is_clipped = run.model.figure == "correction" and run.label == "number"
        key = "noise and range cost" if is_clipped else "noise cost"
        low, high = -noiseless.lead.high, -noiseless.lead.low
        if cost < 0:
            key, low, high = "noise luck", -high, -low
        size, *ends = units.alike((abs(cost), low, high), unit)
        sentences.append(say(key, cost=size + named, low=ends[0], high=ends[1]))
    return sentences


def people(run: Run) -> Sentence:
    """Say who reported, by kinds."""
    if run.model.figure == "correction" and len(run.model.cells) > 1:
        share = min(sum(cell.share for cell in find_clear(run)), 1.0)
        return say("people", share=units.portion(share))
    features = units.plural(run.n_features, "feature", "features")
    if not run.n_cells:
        return say("features", noun=f"each {run.noun}", features=features)
    cells = say_asked(run, run.n_cells)
    if not has_groups(run):
        return say("kinds", cells=cells, noun=run.noun, features=features)
    kinds = units.plural(len(run.model.cells), "kind", "kinds")
    return say("kinds of groups", groups=cells, cells=kinds, noun=run.noun, features=features)


def campaign(run: Run) -> list[Sentence]:
    """Say how many of those who reported did so in this run of a campaign, and how many before."""
    if not run.campaign:
        return []
    new, earlier = units.count(run.n_new), units.count(run.n_earlier)
    return [say("campaign", new=new, earlier=earlier, campaign=run.campaign)]


def has_groups(run: Run) -> bool:
    """Return whether public rows part what reports were asked about into several kinds each."""
    return 0 < run.n_cells < len(run.model.cells)


def say_asked(run: Run, number: int) -> str:
    """So many of what reports were asked about."""
    return (
        units.plural(number, "group", "groups") if has_groups(run) else units.plural(number, "kind", "kinds")
    )


def best_guess(epsilon: float) -> float:
    """The most that an even guess between two values can rise to."""
    return 1.0 / (1.0 + math.exp(-epsilon))


def guess(run: Run) -> Sentence:
    """The same in words."""
    return say("guess", nouns=run.nouns, guess=units.sure(best_guess(run.privacy.epsilon)))


def warnings(run: Run) -> list[Caution]:
    """All that is to be known before relying on the result, the gravest first; the page opens with `MOST_WARNINGS`."""
    parts = [text.partition(". ") for text in run.warnings]
    cautions = [Caution(f"{claim}.", say("warning", text=text)) for claim, _, text in parts]
    keys: list[tuple[str, dict[str, object]]] = []
    if run.failure is None:
        if run.scores is None:
            keys.append(("no accuracy", {"noun": run.noun}))
        if run.privacy.seeded:
            keys.append(("simulation", {}))
        if run.privacy.form == "totals":
            keys.append(("totals", {}))
        if any(
            asked.question.mechanism.endswith("laplace") and "discrete" not in asked.question.mechanism
            for asked in run.privacy.asked
        ):
            keys.append(("device", {}))
        if run.scores is not None:
            key = "not private" if run.is_simulation else "not private, a release"
            keys.append((key, {"nouns": run.nouns}))
    own = [Caution(CLAIMS[key], say(key, **figures)) for key, figures in keys]
    return [*own[:1], *cautions, *own[1:]]
