"""The page of a tree of classes: its cells, its tree and its finding, from the model, its totals and public rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from page_truth import asked, cells, every_page, scores
from page_truth.artifacts import Run
from page_truth.cells import check_line_share
from page_truth.marks import check_track, check_with_error
from page_truth.places import says
from page_truth.reading import NUMBER, Element, Scale, number
from page_truth.rules import Checker, Rule, agrees


class Truth:
    """What is so of every cell; a lead is of the decided class over the next, a share of the positive one of two."""

    def __init__(self, run: Run) -> None:
        model = run.model
        self.run, self.model, self.leaves = run, model, model.partition.leaves
        self.two = len(model.classes) == 2
        self.share = cells.shares_of(model.private_total[self.leaves].sum(axis=1))
        X, y = run.public
        counts = np.zeros((len(self.leaves), len(model.classes)))
        np.add.at(counts, (model.partition.apply(X), y), 1)
        self.public = counts
        self.share_public = counts.sum(axis=1) / max(len(y), 1)
        self.evidence = cells.evidence_of(model)
        self.decision = model.decision[self.leaves]
        self.probability = model.probability[self.leaves]

    def measured(self, shares: NDArray[np.float64], cell: int) -> float:
        """Of class shares: the positive one's of two, else the lead of the decided class over the next."""
        if self.two:
            return float(shares[1])
        decided = int(self.decision[cell])
        return float(shares[decided] - np.delete(shares, decided).max())

    @cached_property
    def believed(self) -> list[float]:
        return [self.measured(self.probability[cell], cell) for cell in range(len(self.leaves))]

    @cached_property
    def believed_sd(self) -> list[float]:
        """Of two classes the share's; of more at most that of the lead, as errors of two classes may go apart."""
        return [self._sd(cell) for cell in range(len(self.leaves))]

    def _sd(self, cell: int) -> float:
        sd = self.model.estimate_sd[self.leaves[cell]]
        if self.two:
            return float(sd[0]) if np.isfinite(sd[0]) else 0.5
        first, second = self._first_two(self.probability[cell], cell)
        found = float(sd[first] + sd[second])
        return found if np.isfinite(found) else 1.0

    def _first_two(self, shares: NDArray[np.float64], cell: int) -> tuple[int, int]:
        decided = int(self.decision[cell])
        others = [c for c in np.argsort(-shares, kind="stable").tolist() if c != decided]
        return decided, others[0]

    @cached_property
    def reports(self) -> list[tuple[float, float] | None]:
        """By the reports of each cell alone, and the noise of that; None where it is wider than a share's range."""
        (totals,) = self.run.totals
        n_classes = len(self.model.classes)
        of_margin = np.eye(n_classes)[1 if self.two else 0] - 1 / n_classes
        mass = np.sqrt(totals.cell_variance(of_margin)) / self.model.noise_sd[self.leaves, 0]
        found: list[tuple[float, float] | None] = []
        for cell, leaf in enumerate(self.leaves.tolist()):
            if self.model.noise_sd[leaf].max() >= 1.0:
                found.append(None)
                continue
            counts = self.model.private_total[leaf] / mass[cell]
            if self.two:
                found.append((0.5 + float(counts[1] - counts.sum() / 2), float(self.model.noise_sd[leaf, 0])))
                continue
            first, second = self._first_two(counts, cell)
            weights = np.zeros(n_classes)
            weights[[first, second]] = 1, -1
            sd = float(np.sqrt(totals.cell_variance(weights)[cell]) / mass[cell])
            found.append((self.measured(counts, cell), sd))
        return found

    @cached_property
    def public_alone(self) -> list[tuple[float, float] | None]:
        """By the public rows of each cell alone; its error where it is largest, at even."""
        found: list[tuple[float, float] | None] = []
        for cell, counts in enumerate(self.public):
            n = counts.sum()
            wide = 0.5 if self.two else 1.0
            found.append((self.measured(counts / n, cell), wide / float(np.sqrt(n))) if n else None)
        return found

    def order(self, labels: list[str]) -> list[int]:
        """The cells that labels are of, those of most private people first."""
        return cells.in_order(self.share, labels, lambda cell, label: not self.fault(cell, label))

    def fault(self, cell: int, label: str) -> str:
        """What is wrong with a cell's label."""
        run = self.run
        return says(
            label,
            self.model.raw_tree,
            int(self.leaves[cell]),
            run.config.dataset.names,
            every=f"all {run.nouns}",
        )

    @property
    def n_cells(self) -> int:
        return len(self.leaves)

    def name(self, cell: int) -> str:
        return self.run.classes[int(self.decision[cell])]


def check(run: Run, *, form: str = "reports") -> list[str]:
    """What a page says that is not so."""
    checker, truth, page = Checker(), Truth(run), run.page.first("main")
    every_page.check_tags(run, page, checker, form=form)
    asked.check_tiles(run, page, checker, form=form)
    sections = {one.attributes["aria-labelledby"]: one for one in page.every("section")}
    if run.scores is not None:
        scores.check_scores(run, sections["scores"], checker)
    checker.that(("scores" in sections) == (run.scores is not None), "scores of a release")
    _check_cells(truth, sections["cells"], checker)
    every_page.check_data(run, sections["data"], checker)
    every_page.check_making(run, sections["making"], checker)
    epsilon = run.config.privacy.epsilon
    privacy = [
        *every_page.privacy_rules(
            run, epsilon=epsilon, spent=run.protocol.epsilon, exact=run.protocol.epsilon_exact, form=form
        ),
        *asked.rules(run, form=form),
    ]
    rules = {
        "scores": scores.rules(run),
        "privacy": privacy,
        "cells": _rules(truth),
        "header": [*_finding(truth), *every_page.warning_rules(run)],
    }
    every_page.sweep(run, rules, checker)
    return checker.faults


def _check_cells(truth: Truth, section: Element, check: Checker) -> None:
    chart = section.first("ol", "cells")
    unit = chart.first("li", "heads").children[2].text
    positive = truth.run.positive
    expected = (
        f"share of “{_short(positive)}”" if positive else "lead of the decided class over the next, in points"
    )
    check.that(unit == expected, f"cells: the axis measures {unit!r}, should be {expected!r}")
    axis = Scale.of(chart.every("svg", "axis")[0])
    axis = Scale(axis.places, (axis.values[0] / 100, axis.values[1] / 100), axis.low / 100, axis.high / 100)
    lines = [one for one in chart.every("li") if not one.classes & {"heads", "ends"}]
    order = truth.order([line.first("div", "name").text for line in lines])
    for cell, line in zip(order, lines, strict=True):
        _check_cell(truth, cell, line, axis, check)
    check.that(len(lines) == min(cells.DRAWN, truth.n_cells), f"cells: {len(lines)} drawn")
    chart.is_read = True
    trees = section.every("div", "tree")
    if trees:
        _check_tree(truth, trees[0], check)
        _check_table(truth, section.first("table"), check)
    check.that(bool(trees) == (truth.n_cells > 1), "cells: a tree of one cell, or none of several")


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23].rstrip()}…"


def _check_cell(truth: Truth, cell: int, line: Element, axis: Scale, check: Checker) -> None:
    label = line.first("div", "name").text
    where = f"cell {label!r}"
    fault = truth.fault(cell, label)
    check.that(not fault, f"{where}: {fault}")
    check_line_share(line.first("div", "held").text, float(truth.share[cell]), where, check)
    value = line.first("div", "value")
    check_answer(value.first("b").text, truth.name(cell), float(truth.probability[cell].max()), where, check)
    check.that(
        value.first("span").text == cells.EVIDENCE[truth.evidence[cell]],
        f"{where} rests on {truth.evidence[cell]}",
    )
    track = line.first("svg", "track")
    believed, sd = truth.believed[cell], truth.believed_sd[cell]
    public = truth.public_alone[cell]
    check_track(
        axis,
        track,
        where,
        check,
        ours=(believed, sd),
        reports=truth.reports[cell],
        public=public and public[0],
    )
    if truth.two:  # right of even the positive class is said, left of it the other
        side = "right" if believed > 0.5 else "left"
        is_so = (truth.decision[cell] == 1) == (side == "right") or abs(believed - 0.5) < 1e-9
        check.that(is_so, f"{where} says {truth.name(cell)!r} and stands {side} of even")
    else:
        check.that(believed >= -1e-12, f"{where}: the decided class does not lead: {believed}")
    _check_aria(truth, cell, track.attributes["aria-label"], check)


def check_answer(text: str, name: str, share: float, where: str, check: Checker) -> None:
    """A class in quotes, as it may be a number itself, and how likely it is."""
    found = re.fullmatch(r"“(.+)” (\d+) ?%", text)
    check.n_numbers += 1
    check.that(
        found is not None and found[1] == _short(name) and agrees(found[2], 100 * share),
        f"{where}: says {text!r}, is “{name}” {share}",
    )


def _figure(truth: Truth, value: float) -> float:
    """As the page has it in words: a share in percent, none beyond its ends; a lead in points."""
    return 100 * min(max(value, 0.0), 1.0) if truth.two else 100 * value


def _check_aria(truth: Truth, cell: int, label: str, check: Checker) -> None:
    reports, public = truth.reports[cell], truth.public_alone[cell]
    place = _one_space(label).split(": ")[0]
    fault = truth.fault(cell, place)
    check.that(not fault, f"aria-label: {fault}")
    unit = " ?%" if truth.two else ""
    rules = [
        Rule.of(
            re.escape(place) + r": (?:share of “.+?”|lead of the decided class over the next, in points)"
        ),
        Rule.of(
            rf"by public rows alone {{value}}{unit}",
            {"value": _figure(truth, public[0]) if public else np.nan},
        ),
        Rule.of(
            rf"believed {{value}}{unit}, ± {{error}} points",
            {"value": _figure(truth, truth.believed[cell]), "error": 200 * truth.believed_sd[cell]},
        ),
        Rule.of(
            rf"by its reports alone {{value}}{unit}, noise ± {{error}} points",
            {"value": _figure(truth, reports[0]), "error": 200 * reports[1]} if reports else {"so": False},
        ),
    ]
    check.block(_one_space(label), rules, "cells: aria-label")


def _one_space(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _check_tree(truth: Truth, tree: Element, check: Checker) -> None:
    model, run = truth.model, truth.run
    partition = model.partition
    lines = cells.drawn_nodes(tree)
    of_node = cells.below(partition)
    weights = np.maximum(truth.share, 1e-9)
    for (line, _), node in zip(lines, cells.in_tree(partition, lines, check), strict=True):
        inside = of_node[node]
        average = weights[inside] @ truth.probability[inside] / weights[inside].sum()
        is_cell = partition.feature[node] < 0
        decided = int(model.decision[node]) if is_cell else int(average.argmax())
        named = line.first("span", "node")
        where = f"tree: {named.text!r}"
        fault = says(
            named.first("b").text,
            model.raw_tree,
            node,
            run.config.dataset.names,
            last=True,
            every=f"all {run.nouns}",
        )
        check.that(not fault, f"{where}: {fault}")
        told = named.first("span", "told")
        parts = [one for one in told.children if one.tag != "svg"]
        check_line_share(parts[0].text, float(truth.share[inside].sum()), where, check)
        check_answer(parts[1].text, run.classes[decided], float(average[decided]), where, check)
        width = float(told.first("rect", "fill").attributes["width"])
        check.that(abs(width - 44 * average[decided]) < 0.01, f"{where}: the bar is {width} of 44")
        error = parts[2].text
        if is_cell:
            check.same(error.removeprefix("± "), 200 * truth.believed_sd[inside[0]], where)
        else:
            check.that(not error, f"{where}: an error of several cells")
        cells.check_not_drawn(line, len(inside), bool(line.tag == "div" and not is_cell), where, check)
    tree.is_read = True


def _check_table(truth: Truth, table: Element, check: Checker) -> None:
    head, *rows = table.every("tr")
    titles = [one.text for one in head.children]
    check.that(len(rows) == min(truth.n_cells, 400), f"table: {len(rows)} cells")
    for cell, row in zip(truth.order([row.children[0].text for row in rows]), rows, strict=True):
        said = dict(zip(titles, (one.text for one in row.children), strict=True))
        where = f"table: {said['cell']}"
        fault = truth.fault(cell, said["cell"])
        check.that(not fault, f"{where}: {fault}")
        check.same(said["private"].rstrip(" %"), 100 * truth.share[cell], where)
        check.same(said["public"].rstrip(" %"), 100 * truth.share_public[cell], where)
        check_with_error(said["its reports alone"], truth.reports[cell], where, check, unit=100)
        check_with_error(said["public rows alone"], truth.public_alone[cell], where, check, unit=100)
        check_with_error(
            said["believed"], (truth.believed[cell], truth.believed_sd[cell]), where, check, unit=100
        )
        if "private less public" in said:
            _check_difference(truth, cell, said["private less public"], where, check)
        check.that(said["rests on"] == cells.EVIDENCE[truth.evidence[cell]], f"{where}: rests on")
        check_answer(said["says"], truth.name(cell), float(truth.probability[cell].max()), where, check)
    table.is_read = True


def _check_difference(truth: Truth, cell: int, text: str, where: str, check: Checker) -> None:
    model, leaf = truth.model, truth.leaves[cell]
    if not text:
        check.that(not model.discrepancy_sd[leaf].any() or not truth.two, f"{where}: no difference is said")
        return
    stated, error = re.findall(NUMBER, text)
    check.same(stated, 100 * float(model.discrepancy[leaf, 0]), f"{where}: private less public")
    check.same(error, 200 * float(model.discrepancy_sd[leaf, 0]), f"{where}: private less public")


def _rules(truth: Truth) -> list[Rule]:
    positive = truth.run.positive
    return [
        *cells.evidence_rules(truth.run, truth.share, truth.evidence),
        Rule.of(
            r"right of it the model says “(?P<positive>.+?)”\.",
            {"positive": positive or "", "so": positive is not None},
        ),
        Rule.of(r"“[^”]*”"),
    ]


def _finding(truth: Truth) -> list[Rule]:
    run, found = truth.run, scores.scores_of(truth.run)
    target, n = re.escape(run.config.dataset.target), run.n_private
    on = rf"{{n}} private reports? on {re.escape(run.rows())} at {every_page.eps('epsilon')}"
    about: dict[str, Any] = {"n": n, "epsilon": run.config.privacy.epsilon}
    if found is not None:
        about |= {"before": 100 * found.figure("public_only"), "ours": 100 * found.figure("ours")}

    def level(verdict: str, *, equal: bool = False) -> Any:
        def known(said: Mapping[str, str]) -> dict[str, Any]:
            assert found is not None
            why = found.verdict("public_only")
            is_apart = "before" not in said or "ours" not in said or said["before"] != said["ours"]
            return about | {"so": why == verdict and is_apart != equal, "why": why}

        return known

    rules = [
        Rule.of(rf"^{on} lifts? the public model from {{before}} % to {{ours}} %\.", level("better")),
        Rule.of(
            rf"^{on} makes? the public model worse: {{ours}} % right, down from {{before}} %\.",
            level("worse"),
        ),
        Rule.of(
            rf"^{on} adds? nothing that the public rows did not say already: {{ours}} % right with or without them\.",
            level("level"),
        ),
        Rule.of(
            rf"^{on} adds? nothing measurable to the public model: {{before}} % right without them, {{ours}} % with them\.",
            level("level"),
        ),
        Rule.of(
            rf"^From {on}, a tree with {{cells}} cells? now predicts {target}\.",
            about | {"cells": truth.n_cells, "so": found is None},
        ),
    ]
    rivals = {"public_only": "the same tree", "public_tree": "a tree of its own", "public_forest": "a forest"}
    return [
        *rules,
        *_discrepancy(truth),
        *_decisions(truth),
        *scores.comparison_rules(run, rivals, public=tuple(rivals)),
    ]


def _discrepancy(truth: Truth) -> list[Rule]:
    """How private people differ from the public rows."""
    run, model = truth.run, truth.model
    nouns, positive = re.escape(run.nouns), run.positive
    is_found = bool((model.discrepancy_sd > 0).any())
    mean, sd = float(model.mean_discrepancy[0]), float(model.mean_discrepancy_sd[0])
    of_cells = model.discrepancy[truth.leaves, 0]
    varies = bool(np.ptp(of_cells) > 1e-9)
    is_clear = abs(mean) >= 2 * sd
    known = {
        "mean": 100 * mean,
        "size": 100 * abs(mean),
        "error": 200 * sd,
        "low": 100 * float(of_cells.min()),
        "high": 100 * float(of_cells.max()),
        "positive": positive or "",
    }
    spread = r"(?:, {low} to {high} depending on the cell|(?P<even>, about equally everywhere))"

    def said_of(claim: bool) -> Any:
        return lambda said: (
            known
            | {
                "so": claim
                and is_found
                and positive is not None
                and ("even" in said) == (not varies)
                and said.get("way", "more" if mean >= 0 else "less") == ("more" if mean >= 0 else "less"),
                "why": known,
            }
        )

    is_asked = model.lam == "learned" and run.n_public > 0
    return [
        Rule.of(
            rf"The reports give no reason to think that private {nouns} differ from the public ones, so public rows "
            rf"are trusted as they are\.",
            {"so": is_asked and not is_found},
        ),
        Rule.of(
            r"That is no proof that they are alike: the noise could hide a difference of {error} points of "
            r"“(?P<positive>.+?)” on average\.",
            known | {"so": not is_found and positive is not None},
        ),
        Rule.of(
            rf"Private {nouns} differ from the public ones, and the model corrects for it cell by cell\.",
            {"so": is_found and positive is None},
        ),
        Rule.of(
            rf"On average no difference between private {nouns} and the public ones can be told: {{mean}} points "
            rf"± {{error}} of “(?P<positive>.+?)”{spread}\.",
            said_of(not is_clear),
        ),
        Rule.of(
            rf"Private {nouns} are (?P<way>more|less) often “(?P<positive>.+?)” than the public rows say, by {{size}} "
            rf"points ± {{error}}(?: on average)?{spread}\.",
            said_of(is_clear),
        ),
    ]


def _decisions(truth: Truth) -> list[Rule]:
    """What the tree says in how many cells; of a release."""
    run = truth.run

    def told(said: Mapping[str, str]) -> dict[str, Any]:
        parts = re.findall(r"“(.+?)” in ([\d,]+) \((under 1|\d+) %", said["list"])
        tally = {
            name: [float(truth.share[cell]) for cell in range(truth.n_cells) if truth.name(cell) == name]
            for name in run.classes
        }
        is_so = all(
            len(tally[name]) == number(count)
            and (0 < sum(tally[name]) < 0.01 if share == "under 1" else agrees(share, 100 * sum(tally[name])))
            for name, count, share in parts
        )
        n_said = sum(number(count) for _, count, _ in parts)
        return {
            "cells": truth.n_cells,
            "so": is_so and (n_said == truth.n_cells or len(parts) == 4),
            "why": tally,
        }

    return [
        Rule.of(r"Of its {cells} cells it says (?P<list>.+? of private .+?)\.(?= |$)", told),
        Rule.of(
            rf"It has one cell and says “(?P<name>.+?)” for every {re.escape(run.noun)}\.",
            {"name": truth.name(0), "so": truth.n_cells == 1},
        ),
    ]
