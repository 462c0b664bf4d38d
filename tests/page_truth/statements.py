"""What every sentence and every table of a page states, worked out from models, protocols, totals, scores and the ledger."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from ldptree.models.corrected import LEAST_OF_PUBLIC
from page_truth.agreement import Figures, agrees, compare, numbers
from page_truth.artifacts import Run
from page_truth.charts import (
    check_curves,
    check_dots,
    check_groups,
    check_marks,
    check_mean_answers,
    check_ruler,
    check_strengths,
    check_strip,
    check_tree,
    check_whose,
    off_of_ten,
)
from page_truth.figures import (
    asked_first,
    asked_last,
    average_moved,
    best_constant,
    beyond,
    bound,
    clear_groups,
    clear_of,
    epsilon,
    exact,
    forces,
    gain,
    groups,
    guess,
    hidden,
    influence,
    kept_aside,
    liar,
    most_percent,
    moved,
    moved_into,
    moved_into_first,
    n_private,
    n_same,
    noise_cost,
    noise_luck,
    of_hundred,
    one_thing,
    ours,
    ours_first,
    predicted,
    redrawn,
    reference,
    several,
    signed_average,
    spread,
    surely_from,
)
from page_truth.report import (
    boxes,
    check_report,
    check_sent,
    example_answer,
    example_cell,
    example_number,
    example_rounded,
    share_kept,
)
from page_truth.tables import check_rows, check_sums, check_table
from page_truth.verdicts import check_for_whom, check_verdict
from page_truth.words import check_words

WORDS_ONLY = frozenset(
    (
        "stopped",
        "no scores",
        "no difference",
        "shared",
        "off everywhere",
        "whose public",
        "whose private",
        "whose earlier",
        "whose kept",
        "whose kept, a release",
        "ruler averages",
        "status trial",
        "shared out",
        "loads nothing",
        "simulation",
        "not private, a release",
        "totals",
        "device",
        "roles",
        "shown all",
        "shown cells",
        "boxes",
        "boxes numbers",
        "example",
        "real numbers",
        "of sums",
        "no lifetime",
        "noise seed",
        "noise system",
        "open",
        "open shown",
        "open mask",
        "open cells",
        "open condition",
        "protected all",
        "weighing",
        "failed",
        "strip",
        "strip never",
        "no strip",
        "repeats",
        "strip note",
        "strengths",
        "use ours",
        "use public",
        "ask more",
        "by coins",
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
        "warning",
        "who column",
        "who device",
        "open columns",
        "open where",
        "protected",
        "protected label",
        "strength",
        "in noise",
        "predicts",
        "never asked",
        "rounds",
        "made",
        "no clear group",
        "too few",
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
    # nothing is known without error: an error of nothing is that of an assumption
    faults += re.findall(r"[+\u2212]?0\.?0*\s±\s0\.?0*(?![\d.])", run.page.text)
    # one tree on a part of the rows is no ceiling for what could be learned without privacy
    faults += [f"called {text!r}" for text in re.findall(r"(?i)(?<!one tree, )\bno privacy", run.html)]
    return (
        faults
        + check_rows(run)
        + check_tree(run)
        + check_verdict(run)
        + check_for_whom(run)
        + check_sums(run)
        + check_marks(run)
        + check_curves(run)
        + check_strip(run)
        + check_strengths(run)
        + check_report(run)
        + check_sent(run)
        + check_sent(run)
        + check_mean_answers(run)
        + check_ruler(run)
        + check_whose(run)
        + check_dots(run)
        + check_groups(run)
        + check_words(run)
    )


def check_sentence(run: Run, key: str, text: str) -> list[str]:
    """Whether the numbers of a sentence are those of the run."""
    if key in WORDS_ONLY:
        expected: Figures = ()
    elif key in FROM_DATA:
        return explained(run, key, text)
    elif key == "groups share":  # read by `check_groups`
        return []
    elif key in RULES:
        expected = RULES[key](run)
    else:
        return [f"{key}: no rule says what {text!r} states"]
    return compare(f"{key}: {text!r}", numbers(text, run), expected)


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
        values += map(float, divmod(round(run.facts["making"]["seconds"]), 60))  # minutes, and seconds
    if key == "recall":
        confusion = ours(run)["confusion"]
        values = [100.0 * row[i] / sum(row) for i, row in enumerate(confusion) if sum(row)]
    return [
        f"{key}: nothing explains {text_!r} in {text!r}"
        for text_ in numbers(text, run)
        if text_ not in whole and not any(agrees(text_, value) for value in values)
    ]


RULES: dict[str, Callable[[Run], Figures]] = {
    "better": moved,
    "worse": moved,
    "alike": ours_first,
    "close": ours_first,
    "unscored moved": lambda run: average_moved(run)[:2],
    "expects class": lambda run: average_moved(run)[:1],
    "expects number": lambda run: average_moved(run)[:1],
    "reports say": lambda run: average_moved(run)[1:],
    "reports say, and it was": lambda run: (*average_moved(run)[1:], kept_aside(run)),
    "off often": lambda run: (off_of_ten(run), 10.0),
    "by group": lambda run: (min(predicted(run)), max(predicted(run))),
    "one group": predicted,
    "off rarely": lambda run: (1.0, 10.0),
    "status collection": lambda run: (epsilon(run),),
    "guess before": lambda run: (),
    "guess after": lambda run: (
        epsilon(run),
        *(
            figure
            for part in (0.5, 2.0)
            for figure in (part * epsilon(run), most_percent(guess(part * epsilon(run)) / 100.0))
        ),
    ),
    "guess": lambda run: (most_percent(guess(epsilon(run)) / 100.0), 100.0),
    "ruler": lambda run: (float(run.scores["n_test"]),),  # type: ignore[index]
    "ruler errors": lambda run: (float(run.scores["n_test"]),),  # type: ignore[index]
    "one prediction": lambda run: (best_constant(run),),
    "redrawn": redrawn,
    **dict.fromkeys(
        ("unscored found", "unscored nothing", "unscored blind", "unscored"), lambda run: (n_private(run),)
    ),
    "n private": lambda run: (n_private(run),),
    "gain": gain,
    "gain of errors": gain,
    "one thing": one_thing,
    "log loss": lambda run: (reference(run)["log_loss"], ours(run)["log_loss"]),
    "noise cost": noise_cost,
    "noise and range cost": noise_cost,
    "noise luck": noise_luck,
    "noise alike": lambda run: noise_cost(run)[1:],
    "average unclear": signed_average,
    "off together": lambda run: (*signed_average(run), of_hundred(run), 100.0),
    "average difference": lambda run: (None, None),
    "parts": groups,
    "campaign": lambda run: (n_private(run) - run.n_earlier, float(run.n_earlier)),
    "hidden": hidden,
    "hidden all": lambda run: (),
    "beyond": beyond,
    "not by reports": lambda run: (of_hundred(run), 100.0),
    "chance": lambda run: (of_hundred(run), 100.0),
    "clear groups": clear_groups,
    "particular": lambda run: (max(100.0 * float(run.model.corrections.chance_alike), 1.0), 100.0),
    "scores": lambda run: (95.0,),
    "spread": spread,
    "curves": lambda run: (2.0,),
    "tree": lambda run: (2.0,),
    "groups shares": lambda run: (2.0,),
    "groups correction": lambda run: (2.0,),
    "bins": lambda run: (2.0,),
    "bins few": lambda run: (run.scores["n_test"] - sum(b["n"] for b in run.scores["bins"]),),  # type: ignore[index]
    "adds up": lambda run: (100.0 * LEAST_OF_PUBLIC,),
    "table cut": lambda run: (400.0, float(len(run.facts["description"]["cells"]))),
    "who row": lambda run: (2 * epsilon(run),),
    "example class": lambda run: (example_cell(run),),
    "example error": lambda run: (example_cell(run), example_rounded(run)),
    "example number": lambda run: (example_cell(run), example_rounded(run)),
    "example apart": lambda run: (example_cell(run), example_number(run)),
    "example answer": example_answer,
    "boxes drawn": lambda run: (
        float(run.page.every("svg", "bits")[1].first("path", "off").attributes["d"].count("M")),
        boxes(run),
    ),
    "left out": lambda run: (100.0, 100.0 * (1.0 - (share_kept(run) or 0.0))),
    "asked cell and label": asked_last,
    "asked cell and error": asked_last,
    "asked error along columns": asked_first,
    "ends": moved_into,
    "ends first": moved_into_first,
    "ends sent": lambda run: run.protocol.label_range,
    "promise": lambda run: (bound(math.exp(epsilon(run)), 1 if math.exp(epsilon(run)) < 1000 else 0),),
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
        100.0 * influence(run).one_percent / n_same(run),
    ),
    "no bound": lambda run: liar(run)[1:],
    "strip finds": lambda run: (8.0, 10.0),
    "strip every": lambda run: (surely_from(run),),
    "open public": lambda run: (float(run.chain.scaled.facts["n_public"]),),
}
