"""The scores: every figure, interval and mark, and the sentences that compare two models, from `scores.json`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from page_truth.artifacts import Run
from page_truth.reading import NUMBER, Element, Scale, number, places
from page_truth.rules import Checker, Rule, agrees

NAMES = {
    "Most frequent public answer": "majority",
    "Mean of the public labels": "constant",
    "Public rows alone, same tree": "public_only",
    "Public rows alone, own tree": "public_tree",
    "Public rows alone, forest": "public_forest",
    "Private reports and public rows": "ours",
    "Ours, had the reports no noise": "no_noise",
    "Tree on private rows, no privacy": "non_private",
    "Public model, corrected": "ours",
    "Public model alone": "public_only",
    "Corrected, had the reports no noise": "no_noise",
    "Reports and what is shown": "ours",
}
FIGURES = {
    "accuracy": "accuracy",
    "balanced accuracy": "balanced_accuracy",
    "AUC": "auc",
    "log loss": "log_loss",
    "MSE": "mse",
    "R²": "r2",
    "MAE": "mae",
}
IN_PERCENT = ("accuracy", "balanced_accuracy")
FEWEST = 10
"""Held-back rows below which nothing is said of a bin or a cell: it would show some."""
Verdict = Literal["better", "worse", "level"]


@dataclass(frozen=True)
class Scores:
    """What `scores.json` says."""

    content: Mapping[str, Any]

    @property
    def of(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.content["scores"]
        return found

    @cached_property
    def is_number(self) -> bool:
        return "mse" in self.of["ours"]

    @property
    def chief(self) -> str:
        return "mse" if self.is_number else "accuracy"

    def figure(self, key: str) -> float:
        """The chief figure of a model; NaN where there is none."""
        return float(self.of[key][self.chief]) if key in self.of else math.nan

    def is_ahead(self, key: str, other: str) -> bool:
        """Whether a model's chief figure is better than another's."""
        one, two = self.figure(key), self.figure(other)
        return one < two if self.is_number else one > two

    def verdict(self, key: str) -> Verdict:
        """Whether ours is better than a model beyond what the choice of test rows explains."""
        low, high = self.of[key]["lead"]
        return "better" if low > 0 else "worse" if high < 0 else "level"

    def best(self, *keys: str) -> str:
        """Of some models the best; "" where there is none."""
        known = [key for key in keys if key in self.of]
        sign = 1 if self.is_number else -1
        return min(known, key=lambda key: sign * self.figure(key), default="")

    @property
    def spread(self) -> tuple[float, float] | None:
        """5 % and 95 % of the redraws."""
        drawn = sorted(self.content["redraws"])
        if not drawn:
            return None
        last = len(drawn) - 1
        return drawn[round(0.05 * last)], drawn[round(0.95 * last)]


def scores_of(run: Run) -> Scores | None:
    return None if run.scores is None else Scores(run.scores)


def check_scores(run: Run, section: Element, check: Checker) -> None:
    """The chart of the scores, the bins and the confusion matrices."""
    found = scores_of(run)
    assert found is not None
    chart = section.first("ul", "scores")
    axis = Scale.of(chart.every("svg", "axis")[0])
    if not found.is_number:
        axis = _in_shares(axis)
    lines = [one for one in chart.every("li") if one.classes & {"ours", "public", "reference"}]
    keys = [_check_line(found, line, axis, check) for line in lines]
    check.that(set(keys) == set(found.of), f"scores: shown are {keys}, scored {list(found.of)}")
    heads = [head.text for head in chart.first("li", "heads").every("div") if head.text]
    check.that(all(head in FIGURES for head in heads), f"scores: {heads}")
    chart.is_read = True
    for table in section.every("table", "fit"):
        if table.every("caption"):
            _check_mistakes(run, found, table, check)
    if found.is_number:
        check_bins(run, found, section, check)


def _in_shares(axis: Scale) -> Scale:
    """An axis in percent as one in shares."""
    return Scale(axis.places, (axis.values[0] / 100, axis.values[1] / 100), axis.low / 100, axis.high / 100)


def _check_line(found: Scores, line: Element, axis: Scale, check: Checker) -> str:
    name = line.first("div", "name").text
    key = NAMES.get(name, "")
    check.that(key in found.of, f"scores: no model is called {name!r}")
    one = found.of.get(key, found.of["ours"])
    _check_figure(line.first("div", "value").text, found.chief, one, name, check)
    for other in line.every("div", "other"):
        title = other.first("span").text
        _check_figure(other.text.removeprefix(title).strip(), FIGURES[title], one, f"{name}, {title}", check)
    track = line.first("svg", "track")
    _check_label(found, track.attributes["aria-label"], name, key, check)
    role = "ours" if key == "ours" else "public" if key.startswith("public") else "reference"
    check.that(role in line.classes, f"scores: {name} is drawn as {line.classes}")
    marks = places(track, role, "mark")
    value = float(one[found.chief])
    if not marks:  # an arrow: further out than the picture
        check.that(value > axis.high, f"scores: {name} has no mark, but lies on the axis")
        return key
    check.that(
        len(marks) == 1 and axis.agrees(marks[0], value), f"scores: {name} stands at {marks}, is {value}"
    )
    _check_ends(axis, places(track, role, "interval"), one["interval"], f"scores: interval of {name}", check)
    spread = found.spread if key == "ours" else None
    _check_ends(axis, places(track, role, "spread"), spread, f"scores: redraws of {name}", check)
    return key


def _check_ends(axis: Scale, drawn: list[float], ends: Any, where: str, check: Checker) -> None:
    expected = [] if ends is None else list(ends)
    is_so = len(drawn) == len(expected) and all(
        axis.agrees(place, end) for place, end in zip(drawn, expected, strict=True)
    )
    check.that(is_so, f"{where} drawn at {drawn}, is {expected}")


def _check_figure(text: str, figure: str, one: Mapping[str, Any], where: str, check: Checker) -> None:
    value = one.get(figure)
    if value is None:
        check.that(text == "–", f"scores: {where}: {text}, not known")
        return
    check.that(("%" in text) == (figure in IN_PERCENT), f"scores: {where}: unit of {text}")
    check.same(text.rstrip(" %"), 100 * value if figure in IN_PERCENT else value, f"scores: {where}")


def _check_label(found: Scores, label: str, name: str, key: str, check: Checker) -> None:
    """What a screen reader says of a line."""
    one = found.of.get(key, {})
    chief = "mean squared error" if found.is_number else "accuracy"
    unit = r" ?%" if not found.is_number else ""
    percent = 1 if found.is_number else 100
    low, high = one.get("interval", (math.nan, math.nan))
    drawn = found.spread or (math.nan, math.nan)
    more = {title: value for title, key_ in FIGURES.items() if (value := one.get(key_)) is not None}
    rules = [
        Rule.of(rf"^{re.escape(name)}: {chief} {{value}}{unit}", {"value": percent * found.figure(key)}),
        Rule.of(
            rf"95 % interval {{low}}{unit} to {{high}}{unit}", {"low": percent * low, "high": percent * high}
        ),
        Rule.of(
            rf"over redraws of the noise {{low}}{unit} to {{high}}{unit}",
            {"low": percent * drawn[0], "high": percent * drawn[1]},
        ),
        Rule.of(r"balanced accuracy {value} ?%", {"value": 100 * more.get("balanced accuracy", math.nan)}),
        *(
            Rule.of(rf"{title} {{value}}", {"value": more[title]})
            for title in ("AUC", "log loss", "R²", "MAE")
            if title in more
        ),
    ]
    check.block(_one_space(label), rules, "scores: aria-label")


def _check_mistakes(run: Run, found: Scores, table: Element, check: Checker) -> None:
    """A confusion matrix, and what its model was fitted on."""
    title = table.first("caption").text
    name = next(name for name in sorted(NAMES, key=len, reverse=True) if title.startswith(name))
    confusion = np.array(found.of[NAMES[name]]["confusion"])
    rows = table.every("tr")
    said = [cell.text for cell in rows[0].children[1:]]
    check.that([f"said “{_short(c)}”" for c in run.classes] == said, f"mistakes: columns {said}")
    for true, row in enumerate(rows[1:]):
        head, *cells = [cell.text for cell in row.children]
        check.that(head.strip("“”") == _short(run.classes[true]), f"mistakes: row {head}")
        for cell, count in zip(cells, confusion[true], strict=True):
            check.same(cell, float(count), f"mistakes of {name}")
    right = float(np.trace(confusion)) / max(confusion.sum(), 1)
    # every held-back row is in it, and it is the accuracy's own
    check.that(int(confusion.sum()) <= found.content["n_test"], f"mistakes of {name}: {confusion.sum()} rows")
    if confusion.sum() == found.content["n_test"]:
        check.that(abs(right - found.figure(NAMES[name])) < 1e-9, f"mistakes of {name}: {right}")
    note = title.removeprefix(name).strip(" ()")
    if note:
        check.block(note, cap_rules(run), "mistakes: note", whole=True)
    table.is_read = True


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23].rstrip()}…"


def cap_rules(run: Run) -> list[Rule]:
    """What a baseline was fitted on."""
    n_public, n_private = run.n_public, int(run.held.facts["n_private"])
    caps = run.config.evaluation
    return [
        Rule.of(
            r"fitted on {cap} of {n_public} public rows",
            {"cap": caps.public_rows, "n_public": n_public, "so": n_public > caps.public_rows},
        ),
        Rule.of(
            r"fitted on about {cap} of {n_private} private rows",
            {"cap": caps.private_rows, "n_private": n_private, "so": n_private > caps.private_rows},
        ),
    ]


def check_bins(run: Run, found: Scores, section: Element, check: Checker) -> None:
    """Predicted against true: the plot, its words and its table."""
    bins = found.content["bins"]
    check.that(all(one["n"] >= FEWEST for one in bins), "bins: one shows its people")
    plots = section.every("svg", "plot")
    check.that(bool(plots) == bool(bins), "bins: drawn where there are none, or not drawn")
    if not plots:
        return
    # circles and their intervals, both on axes with labels
    plot, frame = plots[0], section.first("div", "framed")
    across, upward = (
        Scale.of(frame.first("svg", "axis")),
        Scale.of(frame.first("svg", "upward"), "y", (7.0, 233.0)),
    )
    circles = plot.every("circle", "mark")
    check.that(len(circles) == len(bins), f"bins: {len(circles)} drawn of {len(bins)}")
    lines = plot.every("line", "interval")
    for one, circle, line in zip(bins, circles, lines, strict=True):
        x, y = (float(circle.attributes[end].rstrip("%")) for end in ("cx", "cy"))
        error = 2 * one["true_sd"] / math.sqrt(one["n"])
        check.that(
            across.agrees(x, one["predicted"]) and upward.agrees(y, one["true"]),
            f"bins: {one} stands at {x}, {y}",
        )
        ends = sorted(upward.value(float(line.attributes[end])) for end in ("y1", "y2"))
        wanted = [upward.inside(one["true"] + sign * error) for sign in (-1, 1)]
        check.that(
            all(abs(a - b) <= upward.slack for a, b in zip(ends, wanted, strict=True)),
            f"bins: {one} has the error {ends}, is {wanted}",
        )
    _check_bin_words(plot.attributes["aria-label"], bins, check)
    frame.is_read = True
    table = next(one for one in section.every("table", "fit") if not one.every("caption"))
    for one, row in zip(bins, table.every("tr")[1:], strict=True):
        between, n, predicted, true, sd = [cell.text for cell in row.children]
        stated = [*re.findall(NUMBER, between), n, predicted, *re.findall(NUMBER, true), sd]
        wanted = [one["low"], one["high"], one["n"], one["predicted"], one["true"]]
        wanted += [2 * one["true_sd"] / math.sqrt(one["n"]), one["true_sd"]]
        for text, value in zip(stated, wanted, strict=True):
            check.same(text, value, f"bins: {row.text}")
    table.is_read = True


def _check_bin_words(label: str, bins: list[Mapping[str, Any]], check: Checker) -> None:
    _head, _, words = _one_space(label).partition("predicted against true in ")
    count, _, said = words.partition(": ")
    check.that(number(count.split()[0]) == len(bins), f"bins: {count}")
    for one, text in zip(bins, said.split("; "), strict=True):
        stated = re.findall(rf"(?<![\w.]){NUMBER}", text)
        error = 2 * one["true_sd"] / math.sqrt(one["n"])
        for figure, value in zip(stated, (one["n"], one["predicted"], one["true"], error), strict=True):
            check.same(figure, value, f"bins: aria-label: {text}")


def _one_space(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def rules(run: Run) -> list[Rule]:
    """The captions of the scores."""
    found = scores_of(run)
    if found is None:
        return []
    n_scored, n_test = found.content["n_test"], int(run.held.facts["n_test"])
    n_few = n_scored - sum(one["n"] for one in found.content.get("bins", ()))
    shares = _recognised(run, found)

    def recognised(said: Mapping[str, str]) -> dict[str, Any]:
        parts = re.findall(r"(\d+) % of “(.+?)”(?:, | and |$)", said["list"])
        is_so = [name for _, name in parts] == list(shares) and all(
            agrees(stated, 100 * shares[name]) for stated, name in parts
        )
        return {"so": is_so, "why": shares}

    return [
        Rule.of(
            rf"(?:Accuracy|Mean squared error \(MSE[^)]*\)) on (?:{{n_scored}} of the "
            rf")?{{n_test}} {re.escape(run.rows())} held back",
            {"n_scored": n_scored, "n_test": n_test},
        ),
        Rule.of(r"Ours recognises (?P<list>.+?)\. (?=Only a simulation)", recognised),
        Rule.of(
            r"{redraws} redraws? of the noise",
            {"redraws": len(found.content["redraws"]), "so": found.spread is not None},
        ),
        Rule.of(r"95 % interval of the test"),
        Rule.of(r"All {n_bins} bins in figures", {"n_bins": len(found.content.get("bins", ()))}),
        Rule.of(r"the true mean with ± 2 standard errors"),
        Rule.of(
            r"{n_few} held-back \w+ are in no bin, as too few shared one\.", {"n_few": n_few, "so": n_few > 0}
        ),
        *cap_rules(run),
    ]


def _recognised(run: Run, found: Scores) -> dict[str, float]:
    """Of each class, the share of its rows that ours recognises."""
    confusion = found.of["ours"].get("confusion", [])
    return {run.classes[true]: row[true] / sum(row) for true, row in enumerate(confusion) if sum(row)}


def comparison_rules(run: Run, what: Mapping[str, str], *, public: tuple[str, ...]) -> list[Rule]:
    """Sentences that compare our model with others.

    Args:
        run: whose scores.
        what: of each model that needs no private report, how the page calls it.
        public: the models among which the best is named.
    """
    found = scores_of(run)
    if found is None:
        return [
            Rule.of(
                r"How (?:accurate the tree|good the predictions|good the model|good they) (?:is|are), this run does "
                r"not know: no private row was held back, so there is no score here\."
            )
        ]
    value = r"{value} ?%" if not found.is_number else r"{value}"
    scale = 1.0 if found.is_number else 100.0

    def rival(verdict: Verdict) -> Any:
        def known(said: Mapping[str, str]) -> dict[str, Any]:
            best = found.best(*public)
            return {
                "value": scale * found.figure(best),
                "what": what[best],
                "so": found.verdict(best) == verdict,
                "why": f"{best} is {found.verdict(best)}",
            }

        return known

    def reference(verdict: Verdict) -> Any:
        key = "constant" if found.is_number else "majority"
        return {"value": scale * found.figure(key), "so": found.verdict(key) == verdict}

    answer = (
        r"Always (?:predicting the mean of the public labels has|giving the most frequent answer of the public "
        r"rows is right) "
    )
    of_time = r"(?: of the time)?"
    limit = {"value": scale * found.figure("non_private"), "so": found.is_ahead("non_private", "ours")}
    return [
        Rule.of(
            rf"No (?:other )?model from public rows alone does as well: the best of them, <what>, gets {value}\.",
            rival("better"),
        ),
        Rule.of(
            rf"But <what> from public rows alone does better, with no private report: {value}\.",
            rival("worse"),
        ),
        Rule.of(
            rf"The best (?:other )?model from public rows alone, <what>, gets {value}: too near to say on these test "
            rf"rows which of the two is better\.",
            rival("level"),
        ),
        Rule.of(
            rf"{answer}{value}{of_time}: the model is not measurably better than that\.", reference("level")
        ),
        Rule.of(rf"{answer}{value}{of_time}: the model is worse than that\.", reference("worse")),
        Rule.of(
            r"The noise costs {points} points\.",
            {
                "points": 100 * (found.figure("no_noise") - found.figure("ours")),
                "so": found.is_ahead("no_noise", "ours"),
            },
        ),
        Rule.of(
            r"Without noise in the reports it would be {value}\.",
            {"value": found.figure("no_noise"), "so": found.is_ahead("no_noise", "ours")},
        ),
        Rule.of(
            rf"A tree that reads the private {re.escape(run.nouns)} themselves gets {value}(?:, {{more}} points more)?\.",
            limit | {"more": 100 * (found.figure("non_private") - found.figure("ours"))},
        ),
    ]
