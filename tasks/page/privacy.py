"""Say what left a holder's hands, what it reveals and who sees what, in fixed sentences with the run's figures."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldptree.protocol.question import QuestionDescription
from tasks.page import units
from tasks.page.captions import ABOUT, ACTORS, ALIKE, CLAIMS, MECHANISMS, NOBODY, SAYS, SHAPES, Sentence, say
from tasks.page.data import AskedQuestion, Privacy, Run
from tasks.page.summary import say_asked
from tasks.page.units import Unit, label_unit

MOST_WARNINGS = 3
BEFORE = 0.01
"""A belief before the report, such as that a person paid in cash."""


@dataclass(frozen=True)
class Answer:
    """A question about privacy, and what can be said to it."""

    question: str
    sentences: tuple[Sentence, ...]


def answers(run: Run, shown: Collection[str] = ()) -> list[Answer]:
    """Everything that a privacy officer can repeat, without the texts that are shown already."""
    every = [
        Answer("What was sent", _asked(run)),
        *([Answer("What is protected", (_protected(run),))] if run.privacy.features else []),
        Answer("What is promised", _promise(run)),
        Answer("Who counts as one person", (say_person(run),)),
        Answer("What was spent", (_spent(run), *_ledger(run), *_lifetime(run))),
        Answer("Where the noise came from", (say_noise(run),)),
        Answer("If people cheat", _liars(run)),
        Answer("Not protected", _open(run)),
    ]
    left = [
        replace(each, sentences=tuple(s for s in each.sentences if s.text not in shown)) for each in every
    ]
    return [answer for answer in left if answer.sentences]


def spent(run: Run) -> list[Sentence]:
    """Return the spend of each holder, and what they spent before where they did."""
    return [_spent(run), *(_ledger(run) if run.privacy.was_spent_before else ())]


def say_protection(run: Run) -> str:
    """Say whom a run that reached its end protects; of one that protects nobody in the words of its warning."""
    if run.privacy.seeded:
        return NOBODY
    if run.privacy.form == "totals":
        return f"{CLAIMS['totals']} {SAYS['totals']}"
    return say("release", epsilon=units.epsilon(run.privacy.epsilon)).text


def say_question(asked: AskedQuestion, target: str) -> str:
    """Say what a question asks."""
    question = asked.question
    return ABOUT[question.about].format(
        target=target.replace("_", " "),
        feature=asked.column,
        shape=SHAPES[question.shape].format(feature=asked.column),
        values=units.count(question.figures.get("values", 0)),
        cells=units.count(question.figures.get("cells", 0)),
        columns=units.count(question.figures.get("columns", 0)),
    )


def say_mechanism(question: QuestionDescription) -> str:
    """Say how its answer leaves."""
    return MECHANISMS.get(question.mechanism, f"by {question.mechanism.replace('_', ' ')}")


def odds(run: Run) -> str:
    """e^epsilon."""
    factor = math.exp(run.privacy.epsilon)
    return units.decimal(factor, 1) if factor < 1000 else units.count(factor)


def say_person(run: Run) -> Sentence:
    """Say who counts as one person."""
    if run.privacy.holder == "row":
        return say("who row", noun=run.noun, double=units.epsilon(2 * run.privacy.epsilon))
    return say("who column", holder=run.privacy.holder, nouns=run.nouns)


def _left(run: Run) -> tuple[Sentence, ...]:
    """List all that leaves a holder, which is answers, what is drawn with them, and what is shown beside them."""
    privacy = run.privacy
    if privacy.features:
        rounds = say(
            "rounds",
            rounds=units.plural(len(privacy.asked), "question", "questions"),
            most=units.plural(privacy.most_answers, "question", "questions"),
        )
        shown = [] if privacy.mask_release == "none" else [say(f"shown {privacy.mask_release}")]
        return (rounds, *shown)
    last, first = privacy.asked[-1].question, _asked_first(run)
    sentences = [
        say(
            f"asked {last.about}",
            cells=say_asked(run, int(last.figures["cells"])),
            noun=run.noun,
            target=run.target,
            values=units.count(last.figures["values"]),
        )
    ]
    sentences += [
        say(
            "asked first",
            n=units.count(asked.n_asked),
            columns=units.count(asked.question.figures["columns"]),
            values=units.count(asked.question.figures["values"]),
        )
        for asked in first
    ]
    drawn = ["column"] if first else []
    if last.about == "cell and error" and len(run.model.outputs) > 1:
        drawn.append("class")
    return (*sentences, say("drawn", what=" or ".join(drawn))) if drawn else tuple(sentences)


def _asked_first(run: Run) -> list[AskedQuestion]:
    """Say what some were asked instead of the last question."""
    return [asked for asked in run.privacy.asked if asked.question.about == "error along columns"]


def _asked(run: Run) -> tuple[Sentence, ...]:
    """Say what was sent to the last question, or in the conversation if there is none."""
    last, sentences = run.privacy.asked[-1].question, [*_left(run)]
    if run.privacy.features:
        if run.privacy.n_never_asked:
            sentences.append(say("never asked", n=units.count(run.privacy.n_never_asked)))
        return (*sentences, say("roles"))
    figures = last.figures
    if figures["values"] == figures["cells"] * figures["levels"] + 1:
        sentences.append(say("one stands for else", values=units.count(figures["values"])))
    if "low" in figures:
        key = "ends sent" if "label_noise_sd" in figures else "ends"
        unit = Unit("share" if run.label == "class" else "number", run.label_sd, run.unit)
        ends = (
            (units.raw_number(figures["low"]), units.raw_number(figures["high"]))
            if run.label == "class"
            else (unit.bare(figures["low"]), unit.value(figures["high"]))
        )
        sentences.append(say(key, low=ends[0], high=ends[1], levels=units.count(figures["levels"])))
    sentences.append(say("mechanism", how=say_mechanism(last), name=last.mechanism.replace("_", " ")))
    sentences += _coins(run, last, [asked.question for asked in _asked_first(run)])
    if run.privacy.form == "reports":
        n = units.plural(sum(asked.n_asked for asked in run.privacy.asked), "report was", "reports were")
        sentences.append(say("reports written", reports=n))
    return tuple(sentences)


def _coins(run: Run, question: QuestionDescription, first: Sequence[QuestionDescription]) -> list[Sentence]:
    """Say how the coins of a question fall, and beside each those of the questions that some were asked `first`."""
    figures, sentences = question.figures, []
    for key, names in {"chances": ("p", "q"), "label chance": ("label_p",)}.items():
        sources = [("", figures), *((" first", other.figures) for other in first)]
        sentences += [
            say(f"{key}{of}", **{name: units.chance(drawn[name]) for name in names})
            for of, drawn in sources
            if names[0] in figures and names[0] in drawn
        ]
    if "noise_sd" in figures:
        sentences.append(say("noise", sd=units.decimal(figures["noise_sd"])))
    if "label_noise_sd" in figures:
        unit = Unit("number", run.label_sd, run.unit)
        sentences.append(say("label noise", sd=unit.value(figures["label_noise_sd"])))
    return sentences


def _protected(run: Run) -> Sentence:
    target = run.target.replace("_", " ")
    if run.privacy.mask_release != "all":
        return say("protected all", target=target)
    private = [feature.name for feature in run.privacy.features if feature.declared != "public"]
    if not private:
        return say("protected label", target=target)
    return say("protected", target=target, features=units.listed(private))


def _is_continuous(run: Run) -> bool:
    """Return whether noise was drawn as floating-point numbers."""
    names = (asked.question.mechanism for asked in run.privacy.asked)
    return any("laplace" in name and "discrete" not in name for name in names)


def _promise(run: Run) -> tuple[Sentence, ...]:
    alike = ALIKE[run.privacy.mask_release] if run.privacy.features else ""
    sentences = [
        say("promise", nouns=run.nouns, alike=alike, factor=odds(run)),
        say("exact", exact=units.exact_epsilon(run.privacy.epsilon_exact)),
    ]
    if _is_continuous(run):
        sentences.append(say("real numbers"))
    if run.privacy.form == "totals":
        sentences.append(say("of sums"))
    return tuple(sentences)


def _spent(run: Run) -> Sentence:
    several = run.privacy.most_answers > 1 and not run.privacy.features
    times = f"in {units.count(run.privacy.most_answers)} reports" if several else "once"
    return say("spent", epsilon=units.epsilon(run.privacy.epsilon_spent), times=times)


def _ledger(run: Run) -> list[Sentence]:
    if not run.privacy.largest_spend:
        return []
    within = " with this noise seed in this work folder" if run.privacy.seeded else " in this work folder"
    return [
        say(
            "largest",
            within=within,
            epsilon=units.epsilon(run.privacy.largest_spend),
            questions=units.plural(run.privacy.n_questions, "question", "questions"),
        )
    ]


def _lifetime(run: Run) -> list[Sentence]:
    if run.privacy.on_devices:
        return [say("devices", epsilon=units.epsilon(run.privacy.epsilon))]
    if run.privacy.lifetime_epsilon is None:
        return [say("no lifetime")]
    return [say("lifetime", epsilon=units.epsilon(run.privacy.lifetime_epsilon))]


def say_noise(run: Run) -> Sentence:
    """Say where the noise came from."""
    return say("noise seed") if run.privacy.seeded else say("noise system", form=run.privacy.form)


def _liars(run: Run) -> tuple[Sentence, ...]:
    """Say what dishonest holders can do; of rounds in any one question."""
    force, n_reports = run.privacy.influence, run.privacy.asked[-1].n_asked
    if force is None:
        forces = [
            asked.question.figures["force"]
            for asked in run.privacy.asked
            if "force" in asked.question.figures
        ]
        if not forces:
            return ()
        if math.isinf(max(forces)):
            return (say("no bound question"),)
        return (say("liar question", one=units.decimal(max(forces), 1)),)
    where = (
        "in all groups"
        if force.at_once >= run.n_cells
        else f"in up to {units.plural(force.at_once, 'group', 'groups')}"
    )
    if math.isinf(force.one):
        return (say("no bound", where=where),)
    # whoever draws the class that they are asked about, or claims to, is asked the same as these
    n_same = max(n_reports / (len(run.model.outputs) if run.model.figure == "correction" else 1), 1.0)
    sentences = [
        say("liar", one=units.decimal(force.one, 1), where=where),
        say("liars", share=units.percent(force.one_percent / n_same)),
    ]
    if force.push is not None:
        unit = (
            label_unit(run, signed=True) if run.label == "class" else Unit("number", run.label_sd, run.unit)
        )
        size = max(n_same / max(run.n_cells, 1), 1.0)
        many = math.ceil(n_reports / 100) * force.push
        sentences.append(
            say(
                "push",
                size=units.count(size),
                one=_bound(unit, force.push / size),
                many=_bound(unit, many / size),
            )
        )
    return tuple(sentences)


def _bound(unit: Unit, value: float) -> str:
    """A positive bound, never written as nothing."""
    text = unit.error(value / 2).removeprefix(f"±{units.FIXED}")
    return f"{text}{units.FIXED}{'points' if unit.kind == 'points' else unit.name}".rstrip()


def _open(run: Run) -> tuple[Sentence, ...]:
    privacy = run.privacy
    sentences = [say("open", nouns=run.nouns)]
    if privacy.features and privacy.mask_release == "all":
        sentences.append(say("open shown"))
        if any(feature.declared == "own choice" for feature in privacy.features):
            sentences.append(say("open mask"))
    elif privacy.mask_release == "cells":
        sentences.append(say("open cells"))
    if run.public_columns:
        columns = units.listed([f"“{name}”" for name in run.public_columns])
        sentences.append(say("open columns", columns=columns, nouns=run.nouns))
    if run.where:
        is_plain = "(" not in run.where  # whoever protects data reads no SQL
        sentences.append(say("open where", where=run.where) if is_plain else say("open condition"))
    sentences.append(say("open public", n=units.count(run.n_public), nouns=run.nouns))
    return tuple(sentences)


@dataclass(frozen=True)
class Caution:
    """Something to know before relying on the result, as a claim and a sentence."""

    claim: str
    sentence: Sentence


def warnings(run: Run) -> list[Caution]:
    """All that is to be known before relying on the result, the gravest first; the page opens with `MOST_WARNINGS`."""
    cautions = []
    if run.failure is None:
        if _is_continuous(run):
            cautions.append(Caution(CLAIMS["device"], say("device")))
        cautions += [Caution(CLAIMS["liars"], liars) for liars in _liars(run)[:1]]
    parts = [text.partition(". ") for text in run.warnings]
    cautions += [Caution(f"{claim}.", say("warning", text=text)) for claim, _, text in parts]
    if run.failure is None:
        if run.privacy.seeded and run.privacy.form == "totals":
            cautions.append(Caution(CLAIMS["totals"], say("totals")))
        if run.privacy.holder == "row":
            cautions.append(Caution(CLAIMS["two"], say_person(run)))
    return cautions


@dataclass(frozen=True, kw_only=True)
class Actor:
    """A party of a run: who it is, what it sees, for how long it keeps that, and its belief of 1 % afterwards at most.

    `believes` is None of the person's own side, which knows the truth, and 1 of those who read the truth or can undo the noise.
    """

    who: str
    sees: str
    keeps: str
    believes: float | None


def list_actors(privacy: Privacy, *, is_scored: bool) -> list[Actor]:
    """List the parties from the person outward. `is_scored`: private rows that were kept aside are read for scores."""
    who = ["device", "relay", "intake"] if privacy.on_devices else ["people"]
    who += ["curator", "reader", *(["seed"] if privacy.seeded else []), *(["scores"] if is_scored else [])]
    bound = 1.0 if privacy.form == "totals" else most_believed(privacy)
    beliefs = {"device": None, "people": None, "seed": 1.0, "scores": 1.0}
    return [
        Actor(who=ACTORS[key][0], sees=ACTORS[key][1], keeps=ACTORS[key][2], believes=beliefs.get(key, bound))
        for key in who
    ]


def most_believed(privacy: Privacy) -> float:
    """Return the most that a belief of 1 % becomes by all that a person sent, by Bayes' rule at epsilon as recomputed."""
    odds = BEFORE / (1.0 - BEFORE) * math.exp(privacy.epsilon_exact or privacy.epsilon)
    return odds / (1.0 + odds)


def write_actors(privacy: Privacy, *, is_scored: bool) -> bytes:
    """Return the table as JSON."""
    content: dict[str, Any] = {"epsilon": privacy.epsilon, "belief_before": BEFORE}
    content["actors"] = [vars(actor) for actor in list_actors(privacy, is_scored=is_scored)]
    return json.dumps(content, ensure_ascii=False, indent=1).encode()
