"""What the tables of a page must hold, row by row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from chain import RoundsChain

from page_truth.agreement import Figures, compare, numbers
from page_truth.artifacts import Run
from page_truth.figures import (
    as_chief,
    better_draws,
    chief,
    found_from,
    interval_of,
    most_percent,
    n_private,
    ours,
    reference,
    within,
)
from page_truth.reading import Element


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
    if heads[0].startswith("Group of"):
        return check_cells(run, heads, rows)
    if heads[0] == "Who":
        return check_actors(run, rows)
    if heads[0] == "Question":
        return check_questions(run, rows)
    if heads[1:] == ["Public", "Private"]:
        return check_counts(run, rows)
    return []


def check_questions(run: Run, rows: list[list[str]]) -> list[str]:
    """Each question of a conversation was put to as many as answered it."""
    answered = [sum(int(each.facts["n_reports"]) for each in parts) for parts in run.chain.answered]  # type: ignore[union-attr]
    return [
        f"{row[0]} was put to {row[1]}, answered by {n:,}"
        for row, n in zip(rows, answered, strict=True)
        if row[1] != f"{n:,}"
    ]


def check_actors(run: Run, rows: list[list[str]]) -> list[str]:
    """Who learns something believes a thing of 1 in 100 as much as the odds of all questions to one person allow, or knows it."""
    privacy = run.facts["privacy"]
    odds = math.exp(privacy["epsilon_exact"]) / 99.0
    allowed = {"–", f"{most_percent(odds / (1 + odds))} %", "100.0 %"}
    faults = [f"{row[0]} believes {row[-1]}" for row in rows if row[-1] not in allowed]
    knows = {row[0] for row in rows if row[-1] == "100.0 %"}
    expected = {"Anyone with the seed"} if privacy["seeded"] else set()
    expected |= {"The scoring"} if run.scores is not None else set()
    expected |= {"The curator", "A reader of the model"} if privacy["form"] == "totals" else set()
    return faults + (
        [] if knows == expected else [f"{sorted(knows)} know the truth, expected {sorted(expected)}"]
    )


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
    "Predicted correctly": ("accuracy", 100.0),
    "Balanced": ("balanced_accuracy", 100.0),
    "AUC": ("auc", 1.0),
    "Log loss": ("log_loss", 1.0),
    "Typical error": ("mse", 1.0),
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
            expected: Figures = (
                () if value is None else (chief(run, score) if name == "mse" else scale * value,)
            )
            faults += compare(f"{row[0]}, {head}", numbers(text, run), expected)
        faults += compare(f"{row[0]}, interval", numbers(row[-1], run), interval_of(run, score))
    return faults


def check_rows(run: Run) -> list[str]:
    """The drawn scores."""
    if run.scores is None:
        return []
    faults = []
    for row, score in zip(run.page.first("div", "all").every("li"), in_order(run), strict=True):
        said = numbers(row.first("b", "v").text, run) + numbers(row.first("span", "in").text, run)
        faults += compare(f"drawn {row.text}", said, [chief(run, score), *interval_of(run, score)])
    return faults


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
    faults = []
    for row, one in zip(rows, run.scores["epsilons"], strict=True):
        draws = [as_chief(run, draw) for draw in one["redraws"]]
        expected = (one["epsilon"], *(f(draws) for f in (np.median, min, max)))
        expected += (better_draws(run, one["redraws"]), len(draws))
        faults += compare(f"at epsilon {row[0]}", [n for text in row for n in numbers(text, run)], expected)
    return faults


def compared(run: Run) -> list[dict[str, Any]]:
    """Ours and the model that it is held against, in order."""
    return [score for score in in_order(run) if score in (reference(run), ours(run))]


def check_mistakes(run: Run, rows: list[list[str]]) -> list[str]:
    faults = []
    for row, score in zip(rows, compared(run), strict=True):
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


def estimates_of(run: Run, cell: int) -> list[tuple[float, ...]]:
    """What the released model believes of a cell, and how surely: shares in percent, corrections in points."""
    model = run.model
    if hasattr(model, "corrections"):
        found, scale = model.corrections, 100.0 if model.classes else 1.0
        rows = zip(found.correction[cell], found.sd[cell], *found.hidden[:, cell], strict=True)
        return [within(*(scale * figure for figure in row)) for row in rows]
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
        if "Kept aside" in heads and tests[cell] is not None:
            test = tests[cell]
            expected = (test["n"], as_chief(run, test["public"]), as_chief(run, test["ours"]))
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


def check_sums(run: Run) -> list[str]:
    """Whether it is said why corrected shares are no sums, where some of them are none, and nowhere else."""
    said = any(one.attributes.get("data-says") == "adds up" for one in run.page.every("span"))
    description = run.facts["description"]
    is_off = False
    if description["figure"] == "correction" and run.facts["label"] == "class":
        for cell in description["cells"]:
            parts = zip(cell["public"], cell["estimates"], cell["answers"] or [], strict=False)
            is_off |= any(
                one and abs(one["value"] + two["value"] - sum_) >= 0.0015 for one, two, sum_ in parts
            )
    return [] if said == is_off else [f"sums are off: {is_off}, and said to be: {said}"]


def check_beside(run: Run, name: str, facts: dict[str, Any], heads: list[str], row: list[str]) -> list[str]:
    head = {"reports": "Reports alone", "public": "Public", "differences": "Difference"}[name]
    places = [i for i, one in enumerate(heads) if one.split(" “")[0] == head]
    scale = 100.0 if run.facts["label"] == "class" else 1.0
    faults = []
    if not places and not any(facts[name]):
        return []
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
        "kept aside to test": [0, held["n_test"]],
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
