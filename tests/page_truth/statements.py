"""What every sentence and every table of a page states, worked out from models, protocols, totals, scores and the ledger."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from chain import RoundsChain

from ldptree.planning.detection import smallest_error
from page_truth.artifacts import Run
from page_truth.reading import NUMBER, Element, Scale, ends, mark, number, rounding
from tasks.artifacts import read_protocol, read_published

Figures = Sequence[float | None]
"""The numbers of a text in order; None: any, as it comes from data."""
WORDS_ONLY = frozenset(
    (
        "stopped",
        "no scores",
        "no difference",
        "shared",
        "counts",
        "shared out",
        "cut",
        "loads nothing",
        "simulation",
        "not private",
        "no accuracy",
        "totals",
        "device",
        "roles",
        "one stands for else",
        "drawn",
        "asked of",
        "shown all",
        "shown cells",
        "boxes",
        "boxes numbers",
        "real numbers",
        "of sums",
        "no lifetime",
        "noise seed",
        "noise system",
        "open",
        "open shown",
        "open mask",
        "open cells",
        "open scores",
        "protected all",
        "weighing",
        "curves",
        "failed",
        "strip",
        "strip never",
        "strip note",
        "strengths",
        "public as good",
        "public better",
        "particular",
        "for everybody",
    )
)
"""Sentences without figures of their own."""
FROM_DATA = frozenset(
    (
        "says",
        "caps",
        "data",
        "public rule",
        "where",
        "label kind",
        "warning",
        "who column",
        "open columns",
        "open where",
        "protected",
        "protected label",
        "strength",
        "in noise",
        "predicts",
        "recall",
        "never asked",
        "rounds",
        "people",
        "mechanism",
        "made",
        "no clear kind",
    )
)
"""Sentences whose figures stand in the facts, checked by `explained`."""


def check(run: Run) -> list[str]:
    """What the page says that is not so."""
    faults: list[str] = []
    for said in run.page.every():
        key = said.attributes.get("data-says")
        if key is not None:
            faults += check_sentence(run, key, said.text)
    for table in run.page.every("table"):
        faults += check_table(run, table)
    return (
        faults
        + check_rows(run)
        + check_tree(run)
        + check_verdict(run)
        + check_for_whom(run)
        + check_marks(run)
        + check_bars(run)
        + check_classes(run)
        + check_strip(run)
        + check_strengths(run)
        + check_report(run)
        + check_asked(run)
        + check_mean_answers(run)
    )


VERDICTS = {
    "Verdict: better": ("better", "beats"),
    "Verdict: worse": ("worse", "loses"),
    "Verdict: no better": ("no better", "ties"),
    "Verdict: nothing new": ("nothing new",),
    "Verdict: unsure": ("unsure", "ties"),
    "Not scored": ("unscored", "unscored found", "unscored nothing"),
}
"""What a heading may say under each verdict."""


def verdict(run: Run) -> str:
    """What the paired difference on the held-back rows says, and reports that correct a public model."""
    judged = judge(run)
    if judged in ("Verdict: no better", "Verdict: unsure") and hasattr(run.model, "corrections"):
        return judged if found_something(run) else "Verdict: nothing new"
    return judged


def judge(run: Run) -> str:
    """What the paired difference on the held-back rows says."""
    if run.scores is None:
        return "Not scored"
    low, high = reference(run)["lead"]
    small = 0.002 if is_class(run) else 0.01 * reference(run)["mse"]
    if -small < low and high < small:
        return "Verdict: no better"
    if low > 0 or high < 0:
        return "Verdict: better" if low > 0 else "Verdict: worse"
    return "Verdict: no better" if high < small else "Verdict: unsure"


def check_verdict(run: Run) -> list[str]:
    """The verdict, and the kind of sentence in the heading."""
    chip = " ".join(run.page.first("span", "chip").text.split())
    heading = next(one for one in run.page.first("h1").every() if "data-says" in one.attributes)
    faults = [] if chip == verdict(run) else [f"{chip!r} is not so, expected {verdict(run)!r}"]
    if heading.attributes["data-says"] not in VERDICTS[verdict(run)]:
        faults.append(f"heading {heading.attributes['data-says']!r} under {verdict(run)!r}")
    expected = {"Verdict: no better": "public as good", "Verdict: worse": "public better"}.get(judge(run))
    if expected and has_better_rival(run):
        expected = "public better"
    advice = {one.attributes.get("data-says") for one in run.page.every("span")} & {
        "public as good",
        "public better",
    }
    if advice != {expected} - {None}:
        faults.append(f"advice {advice} under {chip!r}")
    return faults


def has_better_rival(run: Run) -> bool:
    """Whether the best model from public rows alone is surely better than ours, and better than what ours is compared with."""
    assert run.scores is not None
    sign = 1 if is_class(run) else -1
    found = [v for k, v in run.scores["scores"].items() if k.startswith("public_")]
    best = max(found, key=lambda score: sign * chief(run, score))
    small = 0.002 if is_class(run) else 0.01 * best["mse"]
    is_surely = best["lead"][1] < 0 and not (-small < best["lead"][0] and best["lead"][1] < small)
    return bool(is_surely and sign * chief(run, best) > sign * chief(run, reference(run)))


SURE = 0.05
"""A chance below which something is said to be found."""


def found_something(run: Run) -> bool:
    """Whether the reports contradict the public model, or correct it all the same."""
    found = run.model.corrections
    return bool(found.chance <= SURE or any(p.root or p.step for p in found.priors))


def check_for_whom(run: Run) -> list[str]:
    """Whether an error found is said to be of private people in particular, or perhaps of everybody."""
    stated = {one.attributes.get("data-says") for one in run.page.every("span")} & {
        "particular",
        "for everybody",
    }
    found = getattr(run.model, "corrections", None)
    expected = set()
    if found is not None and found_something(run) and not math.isnan(found.chance_alike):
        expected = {"particular" if found.chance_alike < SURE else "for everybody"}
    return [] if stated == expected else [f"{stated} where {expected or 'nothing'} is so"]


def check_sentence(run: Run, key: str, text: str) -> list[str]:
    """Whether the numbers of a sentence are those of the run."""
    if key in WORDS_ONLY:
        expected: Figures = ()
    elif key in FROM_DATA:
        return explained(run, key, text)
    elif key in RULES:
        expected = RULES[key](run)
    else:
        return [f"{key}: no rule says what {text!r} states"]
    return compare(f"{key}: {text!r}", numbers(text, run), expected)


def numbers(text: str, run: Run) -> list[str]:
    """The numbers of a text, names from the data left out."""
    for name in sorted(names(run), key=len, reverse=True):
        text = text.replace(f"“{name}”", "")
    text = re.sub(r"[$€£¥](?=\d)", "", text)
    return re.findall(rf"(?<![\w.]){NUMBER}(?![\w])", text)


def names(run: Run) -> set[str]:
    found = {str(name) for name in run.facts["classes"]} | {run.facts["target"], run.facts["campaign"]} - {""}
    return found | {str(output) for output in (run.facts["description"] or {"outputs": []})["outputs"]}


def compare(what: str, found: Sequence[str], expected: Figures) -> list[str]:
    """Whether the numbers found are the expected ones, to their last decimal."""
    if len(found) != len(expected):
        return [f"{what}: {len(found)} numbers {found}, expected {list(expected)}"]
    return [
        f"{what}: {text} is not so, expected {value}"
        for text, value in zip(found, expected, strict=True)
        if value is not None and not agrees(text, value)
    ]


def agrees(text: str, value: float) -> bool:
    return abs(number(text) - value) <= rounding(text) * 1.001 + 1e-9 * abs(value)


def explained(run: Run, key: str, text: str) -> list[str]:
    """Whether every number of a text is one of the facts, rounded, or stands in a text of the facts."""
    texts, values = [], []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                texts.append(str(name))
                walk(item)
        elif isinstance(value, list):
            values.append(float(len(value)))
            for item in value:
                walk(item)
        elif isinstance(value, str):
            texts.append(value)
        elif isinstance(value, int | float):
            values.extend((float(value), 100.0 * value))

    walk({k: v for k, v in run.facts.items() if k != "making"} if key != "made" else run.facts["making"])
    whole = " ".join(texts)
    cells = (run.facts["description"] or {"cells": []})["cells"]
    clear = [c for c in cells if any(clear_of(e) for e in c["estimates"])]
    values += [100.0 * min(sum(c["share"] for c in clear), 1.0), float(len(clear)), 1.0]
    if key == "made":
        values.append(run.facts["making"]["peak_rss_mb"] / 1000)  # GB where it is much
    if key == "recall":
        confusion = ours(run)["confusion"]
        values = [100.0 * row[i] / sum(row) for i, row in enumerate(confusion) if sum(row)]
    return [
        f"{key}: nothing explains {text_!r} in {text!r}"
        for text_ in numbers(text, run)
        if text_ not in whole and not any(agrees(text_, value) for value in values)
    ]


def clear_of(estimate: dict[str, Any]) -> bool:
    return (
        estimate["value"] != 0 and estimate["sd"] is not None and abs(estimate["value"]) >= 2 * estimate["sd"]
    )


def example_cell(run: Run) -> float:
    """The cell of the made-up row."""
    example, protocol = run.facts["privacy"]["example"], run.protocol
    assert 0 <= example["cell"] < protocol.n_cells
    assert example["number"] or example["levels"][example["level"]]
    return float(example["cell"] + 1)


def example_number(run: Run) -> float:
    """What the made-up row would send without noise."""
    return float(run.facts["privacy"]["example"]["number"]["true"])


def example_answer(run: Run) -> tuple[float | None, ...]:
    """The figures of a round's question, and the answer."""
    example, asked = run.facts["privacy"]["example"], run.last.describe()
    sizes_ = [asked.figures[name] for name in ("values", "cells") if name in asked.figures]
    return (*sizes_, example_number(run) if example["number"] else float(example["cell"] + 1))


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


def boxes(run: Run) -> float:
    """How many values, or elements, a report names."""
    if isinstance(run.chain, RoundsChain):
        figures = run.last.describe().figures
        return float(figures.get("values", figures.get("cells", 0)))
    protocol, kind = run.protocol, run.protocol.mechanism.describe().form
    if kind == "bits and number":
        return protocol.n_cells + 1.0
    n_else = {"signed set": 2, "bits and label": protocol.n_classes, "numbers": 0}.get(kind, 1)
    return float(protocol.n_cells * protocol.n_classes + n_else)


def check_report(run: Run) -> list[str]:
    """Whether what is drawn as a report is one that a holder with the drawn answer can send."""
    drawn, faults = run.page.every("svg", "bits"), check_number(run)
    if not drawn:
        return faults
    if isinstance(run.chain, RoundsChain):
        asked = run.last.describe()
        form, size = "value" if asked.mechanism == "grr" else "set", asked.figures.get("size", math.inf)
    else:
        facts = run.protocol.mechanism.describe()
        form, size = facts.form, facts.size
    truth, sent = (len(one.every("rect", "on")) for one in drawn)
    most = {"value": 1, "set": size, "signed set": size}.get(form, math.inf)
    faults += [] if truth == 1 else [f"{truth} true values are drawn"]
    if sent > most or (form == "value" and sent != 1):
        faults.append(f"{sent} values of a report are drawn, which has {most}")
    rings = [
        (one.first("rect", "ring").attributes["x"], one.first("rect", "ring").attributes["y"])
        for one in drawn
    ]
    return faults + ([] if rings[0] == rings[1] else ["the truth is marked in two places"])


def check_asked(run: Run) -> list[str]:
    """Whether a bar for each question of a round is as long as the share of those who answered it."""
    drawn = run.page.every("svg", "asked")
    if not isinstance(run.chain, RoundsChain):
        return ["questions are drawn of no round"] if drawn else []
    widths = [float(one.attributes["width"].rstrip("%")) for one in drawn[0].every("rect", "on")]
    answered = [sum(int(one.facts["n_reports"]) for one in each) for each in run.chain.answered]
    n = run.chain.shown.facts["n_private"]
    return [
        f"the bar of question {number} is {width} % wide"
        for number, (width, m) in enumerate(zip(widths, answered, strict=True), 1)
        if abs(width - 100.0 * m / n) > 0.01
    ]


def check_number(run: Run) -> list[str]:
    """Whether a number that is drawn stands where the sentences say, before the noise and after it, and can be sent."""
    drawn, facts = run.page.every("svg", "num"), run.facts["privacy"]["example"]
    if not drawn:
        return ["a number is sent, and none is drawn"] if facts and facts["number"] else []
    before, after = (
        [scale.value(float(one.attributes["cx"].rstrip("%"))) for one in svg.every("circle")]
        for svg, scale in ((svg, Scale.of(svg)) for svg in drawn)
    )
    slack = Scale.of(drawn[0]).slack
    sent = next(one for one in run.page.every("span") if one.attributes.get("data-says") == "number sent")
    (said,) = numbers(sent.text, run)
    expected = [example_number(run)], [number(said), example_number(run)]
    faults = [
        f"a number stands at {place}, expected {value}"
        for places, values in zip((before, after), expected, strict=True)
        for place, value in zip(places, values, strict=True)
        if abs(place - value) > slack + rounding(said)
    ]
    if isinstance(run.chain, RoundsChain) and run.last.mechanism.name in ("optimal_label", "duchi"):
        possible = run.last.decode(run.last.mechanism.outputs)
        if run.last.describe().about != "label" and not any(agrees(said, one) for one in possible):
            faults.append(f"{said} is no number that {run.last.mechanism.name} sends")
    return faults


# What the run's steps wrote


def ours(run: Run) -> dict[str, Any]:
    assert run.scores is not None
    return dict(run.scores["scores"]["ours"])


def reference(run: Run) -> dict[str, Any]:
    assert run.scores is not None
    found = run.scores["scores"]
    if "public_only" in found:
        return dict(found["public_only"])
    public = [v for k, v in found.items() if k in ("constant", "majority", "public_tree", "public_forest")]
    return dict((max if is_class(run) else min)(public, key=lambda one: chief(run, one)))


def is_class(run: Run) -> bool:
    return "accuracy" in ours(run)


def chief(run: Run, score: dict[str, Any]) -> float:
    return 100.0 * score["accuracy"] if is_class(run) else float(score["mse"])


def two(run: Run) -> Figures:
    scores = chief(run, ours(run)), chief(run, reference(run))
    return n_private(run), *scores, *(map(math.sqrt, scores) if run.facts["unit"] else ())


def n_private(run: Run) -> float:
    if isinstance(run.chain, RoundsChain):
        return float(run.chain.held.facts["n_private"])
    return float(sum(totals.n_private for one in run.answered for totals in one))


def n_last(run: Run) -> float:
    """Who reported on the last question."""
    return float(sum(totals.n_private for totals in run.totals))


def rivals(run: Run) -> Figures:
    assert run.scores is not None
    found = [v for k, v in run.scores["scores"].items() if k.startswith("public_")]
    return ((max if is_class(run) else min)(chief(run, score) for score in found),)


def gain(run: Run) -> Figures:
    scale = 100.0 if is_class(run) else 1.0
    low, high = (scale * end for end in reference(run)["lead"])
    change = (chief(run, ours(run)) - chief(run, reference(run))) * (1 if is_class(run) else -1)
    ends = (low, high) if change >= 0 else (-high, -low)
    return abs(change), 95.0, *ends


def noise_cost(run: Run) -> Figures:
    assert run.scores is not None
    score = run.scores["scores"]["no_noise"]
    scale = 100.0 if is_class(run) else 1.0
    cost = (chief(run, score) - chief(run, ours(run))) * (1 if is_class(run) else -1)
    return cost, -scale * score["lead"][1], -scale * score["lead"][0]


def average(run: Run) -> Figures:
    """The mean correction over private people; its error is that of `describe`, which is tested beside the model."""
    corrections, scale = run.model.corrections, 100.0 if run.model.classes else 1.0
    means = corrections.share @ corrections.correction
    root = run.facts["description"]["tree"]["estimates"]
    at = max(range(len(root)), key=lambda m: abs(root[m]["value"]) / max(root[m]["sd"], 1e-300))
    return scale * abs(float(means[at])), scale * 2 * root[at]["sd"]


def signed_average(run: Run) -> Figures:
    value, error = average(run)
    root = run.facts["description"]["tree"]["estimates"]
    at = max(range(len(root)), key=lambda m: abs(root[m]["value"]) / max(root[m]["sd"], 1e-300))
    return math.copysign(value or 0.0, root[at]["value"]), error


def clear_kinds(run: Run) -> Figures:
    found = run.model.corrections
    is_clear = (np.abs(found.correction) >= 2 * found.sd) & (found.correction != 0)
    strength = np.where(found.correction != 0, np.abs(found.correction) / np.maximum(found.sd, 1e-300), 0.0)
    clear = is_clear[np.arange(len(strength)), strength.argmax(axis=1)]
    return float(clear.sum()), float(clear.size)


def spread(run: Run) -> Figures:
    assert run.scores is not None
    found, scale = sorted(run.scores["redraws"]), 100.0 if is_class(run) else 1.0
    last = len(found) - 1
    ends = found[round(0.05 * last)], found[round(0.95 * last)]
    return 9.0, 10.0, float(len(found)), *(scale * end for end in ends)


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


def sizes(run: Run) -> Figures:
    return float(run.protocol.n_cells), float(run.protocol.k)


def asked_first(run: Run) -> Figures:
    """Who answered the first of two questions, of all, and what it let them say."""
    first = read_protocol(run.store, run.chain.conversation.whole[0].question())  # type: ignore[union-attr]
    n_first = float(sum(totals.n_private for totals in run.answered[0]))
    return n_first, float(first.n_outputs), float(first.k)


def moved_into(run: Run) -> Figures:
    found = run.facts["privacy"]["asked"][-1]["question"]["figures"]
    levels = float(run.protocol.n_classes)
    if run.protocol.base is None:
        low, high = run.protocol.label_range
        return low, high, levels
    return -found["high"], found["high"], levels


def chances(run: Run) -> Figures:
    mechanism = run.protocol.mechanism
    inner = getattr(mechanism, "oracle", getattr(mechanism, "bits", mechanism))
    return inner.p, inner.q


def push(run: Run) -> Figures:
    found = run.facts["privacy"]["influence"]["push"]
    outputs = (
        len(run.facts["description"]["outputs"]) if run.facts["description"]["figure"] == "correction" else 1
    )
    size = max(n_last(run) / outputs / run.protocol.n_cells, 1.0)
    scale = 100.0 if run.facts["label"] == "class" else 1.0
    return size, scale * found / size, 1.0, scale * math.ceil(n_last(run) / 100) * found / size


def guess(run: Run) -> Figures:
    return (100.0 / (1.0 + math.exp(-epsilon(run))),)


def groups(run: Run) -> Figures:
    """What was asked about, and the kinds of the model."""
    return float(run.protocol.partition.n_leaves), float(len(run.facts["description"]["cells"]))


def columns(run: Run) -> float:
    """Raw columns that are features."""
    in_rounds = isinstance(run.chain, RoundsChain)
    return float(len(run.facts["privacy"]["features"] if in_rounds else run.protocol.encoding.columns))


def kinds(run: Run) -> float:
    """Cells that the model has: those of the last question, or of the tree that answers in rounds shaped."""
    if isinstance(run.chain, RoundsChain):
        return float(len(run.facts["description"]["cells"]))
    return float(run.protocol.n_cells)


def hidden(run: Run) -> Figures:
    scale = 100.0 if run.facts["label"] == "class" else 1.0
    return (scale * 2 * run.facts["description"]["differences"][0]["sd"],)


RULES: dict[str, Callable[[Run], Figures]] = {
    **dict.fromkeys(("better", "worse", "no better", "nothing new", "unsure", "beats", "loses", "ties"), two),
    **dict.fromkeys(("unscored found", "unscored nothing", "unscored"), lambda run: (n_private(run),)),
    "scores of two": lambda run: (chief(run, reference(run)), chief(run, ours(run))),
    "n private": lambda run: (n_private(run),),
    "epsilon": lambda run: (
        epsilon(run),
        *([float(len(run.facts["privacy"]["asked"]))] if several(run) else []),
    ),
    "odds": lambda run: (math.exp(epsilon(run)), 1.0),
    "rival better": rivals,
    "rival worse": rivals,
    "rival equal": rivals,
    "gain": gain,
    "noise cost": noise_cost,
    "average correction": average,
    "average unclear": signed_average,
    "average difference": lambda run: (None, None),
    "groups": groups,
    "campaign": lambda run: (n_private(run) - run.chain.held.facts["n_private"],),
    "campaign all": lambda run: (),
    "kinds of groups": lambda run: (*groups(run), columns(run)),
    "kinds": lambda run: (kinds(run), columns(run)),
    "features": lambda run: (columns(run),),
    "hidden": hidden,
    "not by reports": lambda run: (100.0 * float(run.model.corrections.chance),),
    "chance": lambda run: (100.0 * float(run.model.corrections.chance),),
    "together": lambda run: (max(100.0 * float(run.model.corrections.chance), 1.0),),
    "clear kinds": clear_kinds,
    "guess": guess,
    "scores": lambda run: (float(run.scores["n_test"]), 95.0),  # type: ignore[index]
    "spread": spread,
    "bands": lambda run: (2.0,),
    "bins": lambda run: (2.0,),
    "bins few": lambda run: (run.scores["n_test"] - sum(b["n"] for b in run.scores["bins"]),),  # type: ignore[index]
    "tree correction": lambda run: (),
    "tree share": lambda run: (),
    "tree number": lambda run: (),
    "classes": lambda run: (),
    "classes some": lambda run: (float(len(run.facts["description"]["outputs"])),),
    "table cut": lambda run: (400.0, float(len(run.facts["description"]["cells"]))),
    "basis": lambda run: (None, None),
    "who row": lambda run: (2 * epsilon(run),),
    "example class": lambda run: (example_cell(run),),
    "example error": lambda run: (example_cell(run),),
    "example number": lambda run: (example_cell(run), None),
    "example apart": lambda run: (example_cell(run), example_number(run)),
    "example answer": example_answer,
    "number sent": lambda run: (run.facts["privacy"]["example"]["number"]["sent"],),
    "boxes drawn": lambda run: (float(len(run.page.every("svg", "bits")[1].every("rect")) - 1), boxes(run)),
    "asked cell and label": sizes,
    "asked cell and error": sizes,
    "asked first": asked_first,
    "ends": moved_into,
    "ends sent": lambda run: run.protocol.label_range,
    "chances": chances,
    "label chance": lambda run: (run.facts["privacy"]["asked"][-1]["question"]["figures"]["label_p"],),
    "noise": lambda run: (run.facts["privacy"]["asked"][-1]["question"]["figures"]["noise_sd"],),
    "label noise": lambda run: (run.facts["privacy"]["asked"][-1]["question"]["figures"]["label_noise_sd"],),
    "reports written": lambda run: (n_private(run),),
    "promise": lambda run: (math.exp(epsilon(run)),),
    "exact": exact,
    "spent": lambda run: (
        epsilon(run),
        *([float(len(run.facts["privacy"]["asked"]))] if several(run) else []),
    ),
    "largest": lambda run: (run.chain.spent.largest, float(run.chain.spent.questions)),  # type: ignore[union-attr]
    "lifetime": lambda run: (run.config.privacy.lifetime_epsilon,),
    "liar": liar,
    "liar question": lambda run: (max(forces(run)),),
    "no bound question": lambda run: (),
    "liars": lambda run: (
        1.0,
        influence(run).one_percent,
        100.0 * influence(run).one_percent / n_last(run),
    ),
    "no bound": lambda run: liar(run)[1:],
    "push": push,
    "strip finds": lambda run: (8.0, 10.0),
    "strip surely": lambda run: (surely_from(run),),
    "open public": lambda run: (float(run.chain.scaled.facts["n_public"]),),
}


def several(run: Run) -> bool:
    """Whether a holder answered several questions; of parts that are asked apart each answered one."""
    return not isinstance(run.chain, RoundsChain) and len(run.answered) > 1 and not run.chain.charges_first


# Tables


def check_table(run: Run, table: Element) -> list[str]:
    """Whether the rows of a table are those of the run."""
    heads = [head.text for head in table.first("thead").every("th")]
    rows = [
        [cell.text for cell in row.every() if cell.tag in ("th", "td")]
        for row in table.first("tbody").every("tr")
    ]
    if heads[0] == "Model" and "95 % interval" in heads:
        return check_scores(run, heads, rows)
    if heads[0] == "Model":
        return check_mistakes(run, rows)
    if heads[0] == "ε":
        return check_epsilons(run, rows)
    if heads[0] == "Predicted":
        return check_bins(run, rows)
    if heads[0].startswith("Kind of"):
        return check_cells(run, heads, rows)
    if heads[1:] == ["Public", "Private"]:
        return check_counts(run, rows)
    return []


ORDER = (
    "majority",
    "constant",
    "public_tree",
    "public_forest",
    "public_only",
    "ours",
    "no_noise",
    "non_private",
)
METRICS = {
    "Right": ("accuracy", 100.0),
    "Balanced": ("balanced_accuracy", 100.0),
    "AUC": ("auc", 1.0),
    "Log loss": ("log_loss", 1.0),
    "Mean squared error": ("mse", 1.0),
    "Mean error": ("mae", 1.0),
    "R²": ("r2", 1.0),
}


def in_order(run: Run) -> list[dict[str, Any]]:
    assert run.scores is not None
    return [run.scores["scores"][key] for key in ORDER if key in run.scores["scores"]]


def check_scores(run: Run, heads: list[str], rows: list[list[str]]) -> list[str]:
    faults = [] if len(rows) == len(in_order(run)) else [f"{len(rows)} models"]
    for row, score in zip(rows, in_order(run), strict=False):
        for head, text in zip(heads[1:-1], row[1:-1], strict=True):
            name, scale = METRICS[head]
            value = score.get(name)
            expected: Figures = () if value is None else (scale * value,)
            faults += compare(f"{row[0]}, {head}", numbers(text, run), expected)
        scale = 100.0 if is_class(run) else 1.0
        faults += compare(
            f"{row[0]}, interval", numbers(row[-1], run), [scale * e for e in score["interval"]]
        )
    return faults


def check_rows(run: Run) -> list[str]:
    """The drawn scores."""
    if run.scores is None:
        return []
    faults, scale = [], 100.0 if is_class(run) else 1.0
    for row, score in zip(run.page.first("ol", "scores").every("li"), in_order(run), strict=True):
        said = numbers(row.first("b", "v").text, run) + numbers(row.first("span", "in").text, run)
        faults += compare(
            f"drawn {row.text}", said, [chief(run, score), *(scale * e for e in score["interval"])]
        )
    return faults


def check_marks(run: Run) -> list[str]:
    """Where the scores and their intervals stand on the axis, by the labels of its ticks."""
    if run.scores is None:
        return []
    axis = Scale.of(run.page.every("div", "sh")[-1].first("svg", "ax"))
    faults, scale = [], 100.0 if is_class(run) else 1.0
    for row, score in zip(run.page.first("ol", "scores").every("li"), in_order(run), strict=True):
        track = row.first("svg", "tr")
        low, high = ends(track, "iv")
        drawn = (
            (mark(track), chief(run, score)),
            (low, scale * score["interval"][0]),
            (high, scale * score["interval"][1]),
        )
        faults += [
            f"a mark of {row.text} stands at {axis.value(at)}, expected {value}"
            for at, value in drawn
            if not axis.agrees(at, value)
        ]
    return faults


def better_draws(run: Run, draws: list[float]) -> int:
    """How many of them are better than the model that ours is held against."""
    key, sign = ("accuracy", 1) if is_class(run) else ("mse", -1)
    return sum(sign * (draw - reference(run)[key]) > 0 for draw in draws)


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


def check_epsilons(run: Run, rows: list[list[str]]) -> list[str]:
    """Draws at other epsilons, or what would be found there, as a table."""
    if run.scores is None:
        scale, faults = 100.0 if run.facts["label"] == "class" else 1.0, []
        for row, one in zip(rows, found_from(run), strict=True):
            (error,) = one["redraws"]
            is_none = scale > 1 and error > 1.0
            figures = [n for text in row for n in numbers(text, run)]
            expected = (one["epsilon"],) if is_none else (one["epsilon"], scale * error)
            faults += compare(f"at epsilon {row[0]}", figures, expected)
        return faults
    faults, scale = [], 100.0 if is_class(run) else 1.0
    for row, one in zip(rows, run.scores["epsilons"], strict=True):
        draws = one["redraws"]
        expected = (one["epsilon"], *(scale * f(draws) for f in (np.median, min, max)))
        expected += (better_draws(run, draws), len(draws))
        faults += compare(f"at epsilon {row[0]}", [n for text in row for n in numbers(text, run)], expected)
    return faults


def check_strip(run: Run) -> list[str]:
    """Draws at other epsilons, by the labels of the upright axis; the column that is marked; what is said of them."""
    drawn = run.page.every("svg", "eps")
    redraws = (run.scores or {"epsilons": found_from(run)}).get("epsilons", [])
    is_share = run.facts["label"] == "class"
    if run.scores is None and is_share:
        redraws = [one for one in redraws if one["redraws"][0] <= 1.0]
    if not drawn:
        return [] if not redraws else ["no strip of epsilons"]
    ticks = [one for one in drawn[0].every("text", "yl") if any(map(str.isdigit, one.text_of()))]
    axis, scale = Scale.of(Element("svg", {}, [*ticks]), "y", (8.0, 142.0)), 100.0 if is_share else 1.0
    columns = [one for one in drawn[0].every("g") if one.every("circle", "d")]
    faults = []
    for column, one in zip(columns, redraws, strict=True):
        places = sorted(-float(dot.attributes["cy"]) for dot in column.every("circle", "d"))
        for place, value in zip(places, sorted(one["redraws"]), strict=True):
            if not axis.agrees(-place, scale * value):
                faults.append(
                    f"a draw at epsilon {one['epsilon']} stands at {axis.value(-place)}, not {scale * value}"
                )
        if ("ours" in column.classes) != (one["epsilon"] == epsilon(run)):
            faults.append(f"epsilon {one['epsilon']} is marked, or is not")
    says = {one.attributes.get("data-says") for one in run.page.every("span")}
    if run.scores is not None and ("strip never" in says) != (surely_from(run) is None):
        faults.append("what is said of other epsilons is not so")
    return faults


def check_strengths(run: Run) -> list[str]:
    """The columns that are drawn as the strongest are: their shares, and their bars; of a tree the shares of its own splits."""
    drawn = run.page.every("ul", "imp")
    found = [one for one in run.facts["description"]["statements"] if one["kind"] == "strength"]
    parts = [one["figures"]["part"] for one in found]
    faults = [] if parts == sorted(parts, reverse=True) else ["strengths are not in order"]
    for row, part in zip(drawn[0].every("li") if drawn else [], parts, strict=False):
        faults += compare(f"strength {row.text}", numbers(row.first("b").text, run), (100.0 * part,))
        width = float(row.first("rect", "on").attributes["width"].rstrip("%"))
        faults += [] if abs(width - 100.0 * part) < 0.01 else [f"the bar of {row.text} is {width} % wide"]
    if parts and abs(sum(parts) - 1) > 1e-6:
        faults.append(f"strengths add up to {sum(parts)}")
    tables = [one for one in run.page.every("details") if one.first("summary").text == "Strength of columns"]
    cells = [cell.text for one in tables for cell in one.every("td")]
    for cell, part in zip(cells, parts, strict=True):
        faults += compare(f"strength {cell}", numbers(cell, run), (100.0 * part,))
    return faults


def check_mean_answers(run: Run) -> list[str]:
    """What a corrected model answers on average, before and after."""
    found = [one["figures"] for one in run.facts["description"]["statements"] if one["kind"] == "mean answer"]
    tables = [one for one in run.page.every("details") if one.first("summary").text == "Mean answer"]
    cells = [cell.text for one in tables for cell in one.every("td")]
    values = [each[name] for each in found for name in ("before", "after")]
    expected = [100.0 * value if "%" in cell else value for cell, value in zip(cells, values, strict=True)]
    return [
        fault
        for cell, value in zip(cells, expected, strict=True)
        for fault in compare(f"mean answer {cell}", numbers(cell, run), (value,))
    ]


def check_bars(run: Run) -> list[str]:
    """Where the whiskers of the tree's bars end on their axis: at the figures beside them."""
    boxes = run.page.every("div", "treebox")
    if not boxes:
        return []
    axis, faults = Scale.of(boxes[0].first("div", "tf").first("svg", "ax")), []
    legend = bool(run.page.first("ul", "key").every("line", "wh"))
    if legend != bool(boxes[0].every("line", "wh")):
        faults.append(
            "the tree's legend promises errors that no bar has, or has none of those that are drawn"
        )
    for leaf in boxes[0].first("div", "tree").every("div", "lf"):
        said = [number(one) for one in numbers(leaf.first("span", "val").first("b").text, run)]
        if len(said) != 2:
            continue
        bar = leaf.first("svg", "bar")
        reach = (said[0] - said[1], said[0] + said[1])
        caps = {float(one.attributes["x1"].rstrip("%")) for one in bar.every("line", "wh")}
        faults += [
            f"a whisker of {leaf.text} ends at {axis.value(at)}, expected {value}"
            for at, value in zip(ends(bar, "wh"), reach, strict=True)
            if not axis.agrees(at, value)
        ]
        faults += [] if caps == set(ends(bar, "wh")) else [f"caps of {leaf.text} stand at {sorted(caps)}"]
    return faults


def check_classes(run: Run) -> list[str]:
    """Whether each end of a tree of several classes has a bar for each that is listed, as long as its estimate."""
    boxes, outputs = run.page.every("div", "treebox"), run.facts["description"]["outputs"]
    drawn = [svg for box in boxes for svg in box.every("svg", "cls")]
    if bool(drawn) != bool(boxes and len(outputs) > 1):
        return ["bars of classes, of which there are not several, or none of several"]
    if not drawn:
        return []
    axis = Scale.of(boxes[0].first("div", "tf").first("svg", "ax"))
    legend = run.page.first("li", "many").text
    faults = []
    for leaf in boxes[0].first("div", "tree").every("div", "lf"):
        svg = leaf.first("svg", "cls")
        said = [one.rpartition(": ")[::2] for one in svg.attributes["aria-label"].split("; ")]
        if legend.partition(": ")[2].partition(";")[0] != ", ".join(f"“{name}”" for name, _ in said):
            faults.append(f"bars of {[name for name, _ in said]}, where {legend!r} is said")
        places = [outputs.index(name) for name, _ in said]
        for (_, text), bar in zip(said, svg.every("g", "bar"), strict=True):
            value, *error = (number(one) for one in numbers(text, run))
            low, width = (float(bar.first("rect").attributes[key].rstrip("%")) for key in ("x", "width"))
            reach = sorted((axis.inside(0.0), value))
            faults += [
                f"a bar of {text} ends at {axis.value(at)}, expected {end}"
                for at, end in zip((low, low + width), reach, strict=True)
                if not axis.agrees(at, end)
            ]
            is_clear = bool(error) and abs(value) >= error[0] - rounding(text)
            if run.facts["description"]["figure"] == "correction" and not is_clear:
                faults += ["a bar is drawn clear that is not"] if "clear" in bar.attributes["class"] else []
        marks = leaf.every("em")
        if marks and not isinstance(run.chain, RoundsChain):
            cell = estimates_of(run, int(marks[0].text) - 1)
            for place, (_, text) in zip(places, said, strict=True):
                figures = numbers(text, run)
                faults += compare(f"bar of {outputs[place]}", figures, cell[place][: len(figures)])
    return faults


def check_mistakes(run: Run, rows: list[list[str]]) -> list[str]:
    faults = []
    for row, score in zip(rows, (s for s in in_order(run) if s.get("confusion")), strict=True):
        counts = [float(n) for line in score["confusion"] for n in line]
        faults += compare(f"mistakes of {row[0]}", list(row[1:]), counts)
    return faults


def check_bins(run: Run, rows: list[list[str]]) -> list[str]:
    assert run.scores is not None
    faults = []
    for row, one in zip(rows, run.scores["bins"], strict=True):
        error = 2 * one["true_sd"] / math.sqrt(one["n"])
        expected = [one["low"], one["high"], one["n"], one["predicted"], one["true"], error]
        faults += compare(f"bin {row[0]}", [n for text in row for n in numbers(text, run)], expected)
    return faults


def estimates_of(run: Run, cell: int) -> list[tuple[float, float]]:
    """What the released model believes of a cell, and how surely: shares in percent, corrections in points."""
    model = run.model
    if hasattr(model, "corrections"):
        found, scale = model.corrections, 100.0 if model.classes else 1.0
        return [
            (scale * v, scale * 2 * s) for v, s in zip(found.correction[cell], found.sd[cell], strict=True)
        ]
    node = int(model.partition.leaves[cell])
    if run.facts["label"] == "class":
        values = model.probability[node][1:] if len(model.classes) == 2 else model.probability[node]
        sds = np.where(np.isfinite(model.estimate_sd[node]), model.estimate_sd[node], 0.5)
        return [(100.0 * v, 200.0 * s) for v, s in zip(values, sds, strict=True)]
    low, high = model.label.range
    value, sd = model.estimate[node, 0], min(model.estimate_sd[node, 0], (high - low) / 2)
    return [(float(value), 2 * float(sd))]


def check_cells(run: Run, heads: list[str], rows: list[list[str]]) -> list[str]:
    """Estimates, shares and held-back scores of every cell in the table."""
    if isinstance(run.chain, RoundsChain):
        return []
    faults, tests = [], (run.scores or {}).get("cells", ())
    at = [i for i, head in enumerate(heads) if head.split(" “")[0] in ("Correction", "Estimate")]
    for row in rows:
        cell = int(row[0].split(".")[0]) - 1
        for place, expected in zip(at, estimates_of(run, cell), strict=True):
            faults += compare(f"{row[0]}, {heads[place]}", numbers(row[place], run), expected)
        facts = run.facts["description"]["cells"][cell]
        faults += compare(f"{row[0]}, people", [row[1]], [max(facts["share"], 0.0) * n_private(run)])
        if "Held back" in heads and tests[cell] is not None:
            scale = 100.0 if is_class(run) else 1.0
            test = tests[cell]
            expected = (test["n"], scale * test["public"], scale * test["ours"])
            faults += compare(
                f"{row[0]}, held back", [n for t in row[-3:] for n in numbers(t, run)], expected
            )
        for head, value in (
            ("Share", facts["share"]),
            ("Public rows", facts["public_share"]),
            ("Weight of reports", facts["private_weight"]),
        ):
            if head in heads and not row[heads.index(head)].startswith("under"):
                share = 100.0 * max(value or 0.0, 0.0)
                faults += compare(f"{row[0]}, {head}", numbers(row[heads.index(head)], run), [share])
        for name in ("reports", "public", "differences"):
            faults += check_beside(run, name, facts, heads, row)
        corrected = [i for i, head in enumerate(heads) if head.split(" “")[0] == "Corrected"]
        for place, answer in zip(corrected, facts["answers"] or [], strict=True):
            scale = 100.0 if run.facts["label"] == "class" else 1.0
            faults += compare(f"{row[0]}, corrected", numbers(row[place], run), [scale * answer])
    return faults


def check_beside(run: Run, name: str, facts: dict[str, Any], heads: list[str], row: list[str]) -> list[str]:
    head = {"reports": "Reports alone", "public": "Public", "differences": "Difference"}[name]
    places = [i for i, one in enumerate(heads) if one.split(" “")[0] == head]
    scale = 100.0 if run.facts["label"] == "class" else 1.0
    faults = []
    for place, one in zip(places, facts[name], strict=True):
        expected: list[float] = []
        if one is not None:
            expected = [scale * one["value"]] + ([] if one["sd"] is None else [scale * 2 * one["sd"]])
        faults += compare(f"{row[0]}, {head}", numbers(row[place], run), expected)
    return faults


def check_counts(run: Run, rows: list[list[str]]) -> list[str]:
    """Rows of both zones."""
    held, public = run.chain.held.facts, run.chain.scaled.facts["n_public"]
    expected = {
        "learned from": [public, n_private(run)],
        "held back": [0, held["n_test"]],
        "copies, training and test": [] if run.scores is None else [run.scores["duplicates"]],
    }
    faults = []
    for row in rows:
        if row[0] in expected:
            found = [n for text in row[1:] for n in numbers(text, run)]
            faults += compare(row[0], found, expected[row[0]])
        if row[0] == "checks met":
            for zone, text in zip(("public", "private"), row[1:], strict=True):
                checks = [one for one in run.checks if one["zone"] == zone]
                if checks:
                    met = sum(one["ok"] for one in checks)
                    faults += compare(f"checks of {zone}", numbers(text, run), [met, len(checks)])
    return faults


def check_tree(run: Run) -> list[str]:
    """The figures beside the drawn ends of the tree."""
    trees = run.page.every("div", "tree")
    if not trees or isinstance(run.chain, RoundsChain):
        return []
    faults = []
    for leaf in trees[0].every("div", "lf"):
        marks = leaf.every("em")
        if not marks:
            continue
        cell = int(marks[0].text) - 1
        said = numbers(leaf.first("span", "val").first("b").text, run)
        if not any(not compare("", said, one) for one in estimates_of(run, cell)):
            faults.append(
                f"kind {cell + 1} of the tree: {said} is not so, expected one of {estimates_of(run, cell)}"
            )
        share = run.facts["description"]["cells"][cell]["share"]
        people = numbers(leaf.first("span", "ppl").first("b").text, run)
        faults += compare(f"people of kind {cell + 1}", people, [max(share, 0.0) * n_private(run)])
    return faults
