"""Say the finding in verdict, heading, paragraph, cards and warnings, by the same rules for every family.

One rule decides every verdict: the paired interval of ours less the best model that public rows alone give, beside a margin. A
direction is said of what lies at least two standard deviations from 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ldptree.families import FEWEST_FOR_A_MODEL
from ldptree.models.description import Cell, Estimate
from tasks.page import units
from tasks.page.captions import CLAIMS, Sentence, name_model, say
from tasks.page.data import AtEpsilon, Failure, Run, Score, Span
from tasks.page.units import Unit, label_unit

MARGIN_SHARE, MARGIN_PART = 0.002, 0.005
"""Differences that count as none, of accuracy and as a part of the opponent's typical error."""
OPPONENTS = ("public_only", "public_tree", "public_forest", "majority", "constant")
"""Models that public rows alone give."""
CONSTANTS = ("constant", "majority")
MOST_LEAD = 2
FEW_CLASSES = 3
"""Classes that a question names."""
SAME = 1e-9
LONGEST_REASON = 220
"""Letters of a sentence that can be a heading."""


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
        return "waiting" if run.failure.is_waiting else "failed"
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
        return (
            min(scored.figure, ours.figure / math.sqrt(1.0 - explained)) if explained < 1.0 else scored.figure
        )
    counts = [sum(row) for row in ours.confusion]
    return max(scored.figure, max(counts) / run.scores.n) if counts else scored.figure


def name_constant(run: Run) -> str:
    """Name the same prediction for everybody, the best in hindsight."""
    assert run.scores is not None
    counts = [sum(row) for row in run.scores.ours.confusion]
    return f"Always “{run.classes[counts.index(max(counts))]}”" if counts else "Always the mean"


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
    """The finding in one sentence of at most 14 words, with its figures."""
    if run.failure is not None:
        reason, _ = split_reason(run.failure.message)
        return say("reason", reason=reason) if reason else _stopped(run.failure)
    people, is_found = say_rows(run, run.n_private), run.model.is_found
    reference = find_reference(run)
    if run.scores is None or reference is None:
        if run.scores is not None:
            ours = _say_result(run, label_unit(run).value(run.scores.ours.figure))
            return say("alone", target=run.target.replace("_", " "), ours=ours)
        if average := find_average(run):
            before, after = units.apart(average.before, average.after, average.unit)
            return say("unscored moved", output=average.output, before=before, after=after)
        key = {True: "unscored found", False: "unscored nothing", None: "unscored"}[is_found]
        key = "unscored blind" if is_found is False and is_blind(run) else key
        return say(key, people=people, nouns=run.nouns, target=run.target.replace("_", " "))
    before, ours = units.apart(reference.figure, run.scores.ours.figure, label_unit(run))
    return say(
        verdict(run),
        nouns=run.nouns,
        lift="lift correct predictions" if run.label == "class" else "cut the typical error",
        result=_say_result(run, ours),
        without=_say_result(run, before),
        ours=ours,
        before=before,
    )


def _say_result(run: Run, figure: str) -> str:
    return f"{figure} predicted correctly" if run.label == "class" else f"typical error {figure}"


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
    if own := next((one for one in run.scores.epsilons if one.epsilon == run.privacy.epsilon), None):
        n = count_better(run, own, reference)
        sentences.append(say("redrawn", better=n, draws=len(own.draws), reference=name))
    if not beats_constant(run) and reference.key not in CONSTANTS:
        before = label_unit(run).value(find_constant(run) or math.nan)
        sentences.append(say("one prediction", result=_say_result(run, before)))
    return sentences


def _say_few(run: Run, *, is_good: bool) -> str:
    """Say which rows are too few to advise against reports, or "" if there are enough. `is_good` is set if the
    reference is as good as ours, not better.
    """
    if run.n_public < FEWEST_FOR_A_MODEL:
        return f"{units.plural(run.n_public, f'public {run.noun} is', f'public {run.nouns} are')} too few"
    if not (is_good and is_blind(run)):
        return ""
    return f"{units.plural(run.n_private, 'report is', 'reports are')} too few"


def say_finding(run: Run) -> str:
    """Return the heading and the advice, as the last words in a terminal."""
    return " ".join(sentence.text for sentence in (headline(run), *advise(run)))


def say_details(run: Run) -> str:
    """The paragraph under the heading, without what `say_finding` has of it."""
    scored = [] if run.scores or run.failure else [say("no scores")]
    sentences = [status(run)[1]] if run.failure else [*lead(run), *one_thing(run), *explain_finding(run)]
    return " ".join(f"{sentence.text.removesuffix('.')}." for sentence in (*sentences, *scored))


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
    """Return at most two sentences under the heading: what public rows say on average, and what reports say. Of two in a row that
    give a chance, one.
    """
    if run.failure is not None:
        is_reason = headline(run).key == "reason" and not run.failure.is_waiting
        return [_stopped(run.failure)] if is_reason else []
    if average := find_average(run):
        expects = say(
            f"expects {run.label}",
            output=average.output,
            before=average.unit.value(average.before),
            nouns=run.nouns,
        )
        low, high = (average.unit.bare(end) for end in (average.ends.low, average.ends.high))
        kept = average.true is not None
        says = say(
            "reports say, and it was" if kept else "reports say",
            after=average.unit.value(average.after),
            low=low,
            high=high,
            nouns=run.nouns,
            true=average.unit.value(average.true) if average.true is not None else "",
        )
        return [expects, says]
    first = [sentence for sentence in _findings(run)[:MOST_LEAD] if sentence.key != "says"]
    return first[:1] if all(sentence.gives_chance for sentence in first) else first


def explain_finding(run: Run) -> list[Sentence]:
    """Return what else there is to say of the finding: for whom it holds, where it is clear, what speaks against it."""
    return [] if run.failure else [sentence for sentence in _findings(run) if sentence not in lead(run)]


def _findings(run: Run) -> list[Sentence]:
    sentences = [*_differences(run), *_clear_groups(run)]
    if run.model.predicts:
        low, high = (label_unit(run).value(end) for end in run.model.predicts)
        sentences.append(say("predicts", low=low, high=high))
    if run.model.says and not run.model.cells:
        sentences.append(say("says", says=run.model.says))
    return sentences


@dataclass(frozen=True)
class Average:
    """The mean of a label as the public model expects it, as reports say, and as it was.

    Attributes:
        output: the class, or the number's column.
        before, after: among the private people.
        ends: of `after`, two standard deviations to each side.
        true: among the rows kept aside; None where there are none.
        unit: of them.
    """

    output: str
    before: float
    after: float
    ends: Span
    true: float | None
    unit: Unit


def shown_output(run: Run) -> int:
    """Return the output that the whole page speaks of: the one on which a correction is clear for most people, else on average;
    of predictions the one that differs most between groups.
    """
    model = run.model
    outputs = range(len(model.outputs))
    if model.figure == "correction":
        root = model.tree.estimates if model.tree else model.cells[0].estimates if model.cells else ()
        clear = [sum(cell.share for cell in model.cells if cell.estimates[at].is_clear) for at in outputs]
        return max(outputs, key=lambda at: (clear[at], root[at].strength if root else 0.0, -at))
    values = [[cell.estimates[at].value for cell in model.cells] or [0.0] for at in outputs]
    return max(outputs, key=lambda at: (max(values[at]) - min(values[at]), -at))


def name_shown(run: Run, at: int) -> str:
    """Name an output: a class as the data have it, a number by its column as the question has it."""
    name = run.model.outputs[at]
    return name if run.label == "class" else name.replace("_", " ")


def find_average(run: Run) -> Average | None:
    """The average that reports correct, of several outputs the one that the page speaks of; None where they correct none."""
    model, means = run.model, run.model.of_kind("mean prediction")
    if model.figure != "correction" or model.tree is None or not model.is_found:
        return None
    at = shown_output(run)
    mean = next((mean for mean in means if mean.about == model.outputs[at]), None)
    moved = model.tree.estimates[at]
    if mean is None or not moved.is_clear:
        return None
    after = mean.figures["after"]
    low, high = (after + end - moved.value for end in moved.ends)
    return Average(
        output=name_shown(run, at),
        before=mean.figures["before"],
        after=after,
        ends=Span(low=low, high=high),
        true=_find_true(run, model.outputs[at]),
        unit=label_unit(run),
    )


def _find_true(run: Run, output: str) -> float | None:
    """The share of a class among the rows kept aside, or their mean label where that is known of all."""
    if run.scores is None:
        return None
    if run.label == "class":
        counts = [sum(row) for row in run.scores.ours.confusion]
        return counts[run.classes.index(output)] / sum(counts) if counts and output in run.classes else None
    bins = run.scores.bins
    return sum(each.n * each.true for each in bins) / run.scores.n if bins and not run.scores.n_few else None


def status(run: Run) -> tuple[str, Sentence]:
    """Return the line above everything: what kind of run this is, in bold, and whom it protects."""
    epsilon = units.epsilon(run.privacy.epsilon)
    if run.failure is not None:
        if run.failure.is_waiting:
            return CLAIMS["waiting"], say("waiting")
        asked = run.failure.has_asked
        return CLAIMS["failed"], say("stopped asking", epsilon=epsilon) if asked else say("stopped")
    if run.is_simulation:
        claim = f"Trial on {say_rows(run)}." if run.simulated else f"Trial on your own {run.nouns}."
        return claim, say("status trial" if run.privacy.seeded else "totals")
    if run.scores is not None:
        return CLAIMS["not private, a release"], say("not private, a release", nouns=run.nouns)
    return CLAIMS["collection"], say("status collection", epsilon=epsilon)


def question(run: Run) -> str:
    """Return the question in the configuration's words, or made of the target and its classes."""
    if run.question:
        return run.question
    target, classes = run.target.replace("_", " "), run.classes
    first = f"{' or '.join(f'“{name}”' for name in classes)}? " if 1 < len(classes) <= FEW_CLASSES else ""
    article = "an" if run.noun[:1].lower() in "aeiou" else "a"
    return f"{first}Predict “{target}” of {article} {run.noun}, without seeing anyone’s {run.noun}."


def one_thing(run: Run) -> list[Sentence]:
    """Say where almost all of a gain is the average, as rows stay in their order."""
    reference, means = find_reference(run), run.model.of_kind("mean prediction")
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
        elif model.tree is not None and find_average(run) is None:
            at = shown_output(run)
            sentences.append(_average(run, model.tree.estimates[at], name_shown(run, at)))
        for statement in model.of_kind("beyond the range"):
            sentences.append(say("beyond", share=units.percent(statement.figures["share"]), nouns=run.nouns))
        is_clear = find_average(run) is not None or any(cell.is_clear for cell in model.cells)
        whom = "by coins" if run.is_by_coins else "particular" if model.is_particular else "for everybody"
        if model.is_found and model.is_particular is not None and (is_clear or whom != "particular"):
            sentences.append(say(whom, nouns=run.nouns, chance=units.of_hundred(model.chance_alike or 0.0)))
        if model.is_found and not is_clear:
            sentences += _hidden(run)
        return sentences
    if not model.differences:
        return []
    unit = label_unit(run, signed=True)
    if model.is_found:
        sentences = [
            say(
                "average difference",
                nouns=run.nouns,
                output=name_shown(run, at),
                size=unit.estimate(difference, with_unit=True),
            )
            for at, difference in enumerate(model.differences)
        ][:3]
        if has_groups(run):
            cells = units.plural(len(model.cells), "group", "groups")
            sentences.append(say("parts", parts=say_asked(run, run.n_cells), cells=cells))
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
    unit, output = label_unit(run, signed=True), name_shown(run, run.hidden.output)
    if run.label == "class" and run.hidden.difference >= 1:
        return [say("hidden all", output=output)]
    size = unit.error(run.hidden.difference / 2).lstrip("±\u00a0")
    size = unit.with_name(size) if unit.kind == "number" else size + units.SUFFIXES[unit.kind]
    return [say("hidden", size=size, output=output)]


def _average(run: Run, estimate: Estimate, output: str) -> Sentence:
    """That the public model's error on average cannot be told."""
    written, chance = label_unit(run, signed=True).estimate(estimate, with_unit=True), run.model.chance
    if run.model.is_found and chance is not None:
        return say("off together", output=output, size=written, chance=units.of_hundred(chance))
    return say("average unclear", output=output, size=written)


def _clear_groups(run: Run) -> list[Sentence]:
    """In how many groups a correction is clear, where it is in some and they are not all alike."""
    if run.model.figure != "correction" or len(run.model.cells) < 2 or not run.model.is_found:
        return []
    at = shown_output(run)
    clear = [
        cell for cell in run.model.cells if cell.estimates[at].is_clear and not is_shared(run.model.cells)
    ]
    cells = units.plural(len(run.model.cells), "group", "groups")
    share = units.portion(min(sum(max(cell.share, 0.0) for cell in clear), 1.0))
    sentence = say("clear groups", clear=units.count(len(clear)), cells=cells, share=share, nouns=run.nouns)
    return [sentence] if clear else []


def is_shared(cells: tuple[Cell, ...]) -> bool:
    """Return whether all cells have one and the same estimate."""
    columns = zip(*([estimate.value for estimate in cell.estimates] for cell in cells), strict=True)
    spreads = [(max(column) - min(column), max(map(abs, column))) for column in columns]
    return all(spread <= SAME * largest for spread, largest in spreads)


def gain(run: Run) -> list[Sentence]:
    """Say how far it is from the best model of public rows, beside the margin: the difference of the figures that are shown."""
    reference = find_reference(run)
    if run.scores is None or reference is None or reference.lead is None:
        return []
    is_class, unit = run.label == "class", label_unit(run)
    before, after, lead = reference.figure, run.scores.ours.figure, reference.lead
    more = units.tell_apart(before, after, unit)
    change = unit.rounded(after, more) - unit.rounded(before, more)
    ends = (lead.low, lead.high) if is_class else (-lead.high, -lead.low)
    signed = label_unit(run, signed=True)
    size, low, high = units.alike((change, *ends), signed, more)
    return [
        say(
            "gain" if is_class else "gain of errors",
            gain=f"{size}{units.FIXED}points" if is_class else signed.with_name(size),
            reference=name_score(run, reference, in_sentence=True),
            low=low,
            high=high,
            margin=f"{units.decimal(100 * MARGIN_SHARE, 1)}{units.FIXED}points"
            if is_class
            else units.percent(MARGIN_PART, 1),
        )
    ]


def count_better(run: Run, at_epsilon: AtEpsilon, reference: Score) -> int:
    """Count the draws that are better than another model's figure."""
    sign = 1 if run.label == "class" else -1
    return sum(sign * (draw - reference.figure) > 0 for draw in at_epsilon.draws)


def costs(run: Run) -> list[Sentence]:
    """Say what got worse, and what the noise costs."""
    reference = find_reference(run)
    if run.scores is None or reference is None:
        return []
    sentences = []
    unit = Unit("points") if run.label == "class" else label_unit(run)
    named = "\u00a0points" if run.label == "class" else f"\u00a0{run.unit}" if run.unit else ""
    sign = 1 if run.label == "class" else -1
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
        if low <= 0.0 <= high:
            key, low, high = "noise alike", -noiseless.lead.high, -noiseless.lead.low
        size, *ends = units.alike((abs(cost), low, high), unit)
        sentences.append(say(key, cost=size + named, low=ends[0], high=ends[1], unit=named))
    return sentences


def campaign(run: Run) -> list[Sentence]:
    """Say how many of those who reported did so in this run of a campaign, and how many before."""
    if not run.campaign:
        return []
    new, earlier = units.count(run.n_new), units.count(run.n_earlier)
    return [say("campaign", new=new, earlier=earlier, campaign=run.campaign)]


def has_groups(run: Run) -> bool:
    """Return whether public rows part what reports were asked about into several groups each."""
    return 0 < run.n_cells < len(run.model.cells)


def say_asked(run: Run, number: int) -> str:
    """So many of what reports were asked about."""
    return (
        units.plural(number, "part", "parts") if has_groups(run) else units.plural(number, "group", "groups")
    )
