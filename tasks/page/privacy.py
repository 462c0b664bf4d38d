"""Say what left a holder's hands, what it reveals and who sees what, in fixed sentences with the run's figures."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from ldptree.audit.shuffled import DELTA
from ldptree.protocol.question import QuestionDescription
from tasks.page import units
from tasks.page.captions import ACTORS, ALIKE, CLAIMS, MECHANISMS, NOBODY, SAYS, SHAPES, Sentence, say
from tasks.page.data import AskedQuestion, Privacy, Run
from tasks.page.units import Unit

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


def say_question(asked: AskedQuestion, target: str, *, n_outputs: int = 1) -> str:
    """Say what a question asks. `n_outputs` is of a public model that is corrected, whose error is reported on one of them."""
    question = asked.question
    one = SAYS["one output"].format(n=n_outputs) if n_outputs > 1 else ""
    n_pairs = question.figures.get("pairs", 0)
    return SAYS[f"asked {question.about}"].format(
        target=target.replace("_", " "),
        feature=asked.column,
        shape=SHAPES[question.shape].format(feature=asked.column),
        one=one,
        pairs=SAYS["or pairs"].format(n=units.count(n_pairs)) if n_pairs else "",
        **{name: units.count(question.figures.get(name, 0)) for name in ("values", "cells", "columns")},
    )


def say_mechanism(question: QuestionDescription) -> str:
    """Say how its answer leaves."""
    return MECHANISMS.get(question.mechanism, f"by {question.mechanism.replace('_', ' ')}")


def odds(run: Run) -> str:
    """e^epsilon, rounded up."""
    factor = math.exp(run.privacy.epsilon)
    return units.bound(factor, 1 if factor < 1000 else 0)


def say_person(run: Run) -> Sentence:
    """Say who counts as one person."""
    if run.privacy.on_devices:
        return say("who device")
    if run.privacy.holder == "row":
        return say("who row", noun=run.noun, double=units.epsilon(2 * run.privacy.epsilon))
    return say("who column", holder=run.privacy.holder, nouns=run.nouns)


def _asked(run: Run) -> tuple[Sentence, ...]:
    """Say what leaves a person: each question, or of a conversation in rounds how many there were, and what people show."""
    facts = run.privacy
    if not facts.features:
        return tuple(sentence for asked in facts.asked for sentence in _say_sent(run, asked))
    rounds = say(
        "rounds",
        rounds=units.plural(len(facts.asked), "question", "questions"),
        most=units.plural(facts.most_answers, "question", "questions"),
    )
    shown = [] if facts.mask_release == "none" else [say(f"shown {facts.mask_release}")]
    never = [say("never asked", n=units.count(facts.n_never_asked))] if facts.n_never_asked else []
    return (rounds, *shown, *never, say("roles"))


def _say_sent(run: Run, asked: AskedQuestion) -> list[Sentence]:
    """Say how many a question was put to, what it asks, what can be sent, and how its coins fall."""
    question, figures = asked.question, asked.question.figures
    is_last = run.model.figure == "correction" and "columns" not in figures
    n_outputs = len(run.model.outputs) if is_last else 1
    what = say_question(asked, run.target, n_outputs=n_outputs)
    written: dict[str, str] = {
        name: units.chance(figures[name]) for name in ("p", "q", "label_p") if name in figures
    }
    if "noise_sd" in figures:
        written["noise_sd"] = units.decimal(figures["noise_sd"])
    if "label_noise_sd" in figures:
        unit = Unit("number", run.label_sd, run.unit)
        written["label_noise_sd"] = unit.value(figures["label_noise_sd"])
    coins = [
        SAYS[f"coins {name}"].format(**written)
        for name in ("p", "label_p", "noise_sd", "label_noise_sd")
        if name in written
    ]
    sent = say(
        "sent",
        n=units.plural(asked.n_asked, run.noun, run.nouns),
        what=what[0].lower() + what[1:],
        values=units.count(figures["values"]),
        how=say_mechanism(question),
        name=question.mechanism.replace("_", " "),
        coins="".join(coins),
    )
    ends = _say_ends(run, question)
    if "columns" in figures:
        ends = [replace(sentence, key="ends first") for sentence in ends]
    return [replace(sent, key=f"asked {question.about}"), *ends]


def _say_ends(run: Run, question: QuestionDescription) -> list[Sentence]:
    """Say into what range a number is moved before it leaves, where one does."""
    figures = question.figures
    if "low" not in figures:
        return []
    unit = Unit("number", run.label_sd, run.unit)
    low, high = (
        (units.raw_number(figures["low"]), units.raw_number(figures["high"]))
        if run.label == "class"
        else (unit.bare(figures["low"]), unit.value(figures["high"]))
    )
    key = "ends sent" if "label_noise_sd" in figures else "ends"
    return [say(key, low=low, high=high, levels=units.count(figures["levels"]))]


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
    if run.privacy.shuffled is not None:
        n = units.plural(run.privacy.asked[-1].n_asked, "report", "reports")
        epsilon, by = units.epsilon(run.privacy.shuffled), run.privacy.shuffler
        sentences.append(say("shuffled", epsilon=epsilon, delta=f"{DELTA:g}", reports=n, shuffler=by))
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
    together = say("liars", share=units.percent(force.one_percent / n_same))
    return say("liar", one=units.decimal(force.one, 1), where=where), together


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
        if run.privacy.holder == "row" and not run.privacy.on_devices:
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


def describe_actors(privacy: Privacy, *, is_scored: bool) -> bytes:
    """Return the table as JSON."""
    content: dict[str, Any] = {"epsilon": privacy.epsilon, "belief_before": BEFORE}
    content |= {"shuffler": privacy.shuffler} if privacy.shuffler else {}
    content["actors"] = [vars(actor) for actor in list_actors(privacy, is_scored=is_scored)]
    return json.dumps(content, ensure_ascii=False, indent=1).encode()
