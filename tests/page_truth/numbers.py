"""The page of a tree of numbers: its cells, curves, tree and finding, from the model, its totals and public rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.models.effects import tree_dependence, tree_importance
from page_truth import asked, cells, every_page, scores
from page_truth.artifacts import Run
from page_truth.cells import check_line_share
from page_truth.curves import Curve, Piece, check_curves
from page_truth.marks import Valued, check_track, check_with_error
from page_truth.places import says
from page_truth.reading import NUMBER, Element, Scale
from page_truth.rules import Checker, Rule


class Truth:
    """What is so of every cell, in the label's unit."""

    def __init__(self, run: Run) -> None:
        model = run.model
        self.run, self.model, self.leaves = run, model, model.partition.leaves
        self.share = cells.shares_of(model.private_total[:, 0][self.leaves])
        X, y = run.public
        where = model.partition.apply(X)
        self.count = np.bincount(where, minlength=len(self.leaves))
        self.sum = np.bincount(where, weights=y, minlength=len(self.leaves))
        self.evidence = cells.evidence_of(model)
        self.unit = run.config.dataset.unit

    @property
    def n_cells(self) -> int:
        return len(self.leaves)

    @property
    def width(self) -> float:
        low, high = self.model.label.range
        return float(high - low)

    @cached_property
    def value(self) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.model.estimate[:, 0][self.leaves]
        return found

    @cached_property
    def sd(self) -> NDArray[np.float64]:
        """No mean is further off than half of the range."""
        found: NDArray[np.float64] = np.minimum(self.model.estimate_sd[:, 0][self.leaves], self.width / 2)
        return found

    @cached_property
    def centre(self) -> float:
        """The mean of the public labels; the middle of the range without any."""
        y = self.run.public[1]
        return float(y.mean()) if len(y) else sum(self.model.label.range) / 2

    @cached_property
    def reports(self) -> list[Valued]:
        """By the reports of each cell alone: of a part of one that was asked about, the whole's, moved as the model moves it."""
        (totals,) = self.run.totals
        asked_tree = self.run.protocol.partition
        about = np.linspace(*self.model.label.range, totals.n_classes) - self.centre
        sums, noise = totals.counts @ about, np.sqrt(totals.cell_variance(about))
        found: list[Valued] = []
        for leaf in self.leaves.tolist():
            above = leaf
            while above >= asked_tree.n_nodes:
                above = int(self.model.partition.parent[above])
            cell = int(np.flatnonzero(asked_tree.leaves == above)[0])
            sd = float(self.model.noise_sd[:, 0][leaf])
            if sd >= self.width:
                found.append(None)
                continue
            mass = noise[cell] / self.model.noise_sd[:, 0][above]
            moved = float(self.model.estimate[:, 0][leaf] - self.model.estimate[:, 0][above])
            found.append((self.centre + float(sums[cell] / mass) + moved, sd))
        return found

    @cached_property
    def public(self) -> list[Valued]:
        return [
            (float(total / n), self.model.label.sd / float(np.sqrt(n))) if n else None
            for n, total in zip(self.count, self.sum, strict=True)
        ]

    @property
    def is_compared(self) -> bool:
        return bool(self.model.lam == "learned" and self.run.n_public > 0)

    def fault(self, cell: int, label: str) -> str:
        """What is wrong with a cell's label."""
        run = self.run
        every = f"all {run.nouns}"
        return says(label, self.model.raw_tree, int(self.leaves[cell]), run.config.dataset.names, every=every)

    def order(self, labels: list[str]) -> list[int]:
        return cells.in_order(self.share, labels, lambda cell, label: not self.fault(cell, label))

    @cached_property
    def curves(self) -> list[Curve]:
        """Along the two columns that the answers vary most along."""
        model, names = self.model, self.run.config.dataset.names
        found = tree_importance(model.raw_tree, self.value, self.share)
        weights = self.count if self.run.n_public else self.share
        arrays = {"value": self.value, "sd": self.sd}
        if self.run.n_public:
            arrays["public"] = self._public_above()
        made = []
        for column in list(found)[:2]:
            pieces, along = tree_dependence(model.raw_tree, column, weights, arrays)
            told = [
                Piece(
                    name=_name(piece, column, names),
                    low=piece.low,
                    high=piece.high,
                    **{key: float(values[i]) for key, values in along.items()},
                )
                for i, piece in enumerate(pieces)
            ]
            made.append(Curve(column=column.replace("_", " "), strength=found[column], pieces=told))
        return made

    def _public_above(self) -> NDArray[np.float64]:
        """The public mean of each cell; without public rows that of the nearest node above which has some."""
        below = cells.below(self.model.partition)
        found = np.empty(self.n_cells)
        for cell, leaf in enumerate(self.leaves.tolist()):
            node = leaf
            while not self.count[below[node]].sum():
                node = int(self.model.partition.parent[node])
            found[cell] = self.sum[below[node]].sum() / self.count[below[node]].sum()
        return found


def _name(piece: Any, column: str, names: Mapping[str, Mapping[str, str]]) -> str:
    if piece.is_missing:
        return "missing"
    if piece.is_other:
        return "any other"
    return "" if piece.level is None else names.get(column, {}).get(str(piece.level), str(piece.level))


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
        *_sent(truth),
    ]
    rules = {
        "scores": scores.rules(run),
        "privacy": privacy,
        "cells": cells.evidence_rules(run, truth.share, truth.evidence),
        "header": [*_finding(truth), *every_page.warning_rules(run)],
    }
    every_page.sweep(run, rules, checker)
    return checker.faults


def _sent(truth: Truth) -> list[Rule]:
    """What happens to a number before it is sent, and how far one report can move a mean."""
    run, unit = truth.run, re.escape(truth.unit)
    low, high = truth.model.label.range
    mechanism, n = run.protocol.mechanism, run.n_private
    force = mechanism.poisoning_bound(n)
    about = np.sort(np.abs(np.linspace(low, high, run.protocol.mechanism.n_classes) - truth.centre))[::-1]
    push = float(force.one * about[: min(force.totals_at_once, len(about))].sum())
    size = max(n / max(run.protocol.n_cells, 1), 1)
    many = int(np.ceil(n / 100)) * push
    u = rf"(?: {unit})?"
    return [
        Rule.of(
            rf"moved to the nearer end where it lies outside {{low}} to {{high}}{u}",
            {"low": low, "high": high},
        ),
        Rule.of(
            rf"In the label's unit: one moves the sum of “[^”]+” over a cell by up to {{push}}{u}, which "
            rf"is {{mean}}{u} on the mean that "
            rf"the reports of a cell of average size \({{size}} {re.escape(run.nouns)}\) give; 1 % of them together "
            rf"by up to {{many}}{u}, "
            r"before cells lean on each other\.",
            {"push": push, "mean": push / size, "size": size, "many": many / size},
        ),
    ]


def _check_cells(truth: Truth, section: Element, check: Checker) -> None:
    chart = section.first("ol", "cells")
    axis = Scale.of(chart.every("svg", "axis")[0])
    lines = [one for one in chart.every("li") if not one.classes & {"heads", "ends"}]
    order = truth.order([line.first("div", "name").text for line in lines])
    for cell, line in zip(order, lines, strict=True):
        _check_cell(truth, cell, line, axis, check)
    check.that(len(lines) == min(cells.DRAWN, truth.n_cells), f"cells: {len(lines)} drawn")
    chart.is_read = True
    check_curves(section, truth.curves, check)
    trees = section.every("div", "tree")
    check.that(bool(trees) == (truth.n_cells > 1), "cells: a tree of one cell, or none of several")
    if trees:
        _check_tree(truth, trees[0], check)
        table = next(one for one in section.every("table"))
        _check_table(truth, table, check)


def _check_cell(truth: Truth, cell: int, line: Element, axis: Scale, check: Checker) -> None:
    label = line.first("div", "name").text
    where = f"cell {label!r}"
    fault = truth.fault(cell, label)
    check.that(not fault, f"{where}: {fault}")
    check_line_share(line.first("div", "held").text, float(truth.share[cell]), where, check)
    value = line.first("div", "value")
    stated = value.first("b").text
    check.that(stated.endswith(truth.unit), f"{where}: {stated} has no unit")
    check.same(re.findall(NUMBER, stated)[0], float(truth.value[cell]), where)
    rests = cells.EVIDENCE[truth.evidence[cell]]
    check.that(value.first("span").text == rests, f"{where} rests on {rests}")
    track, public = line.first("svg", "track"), truth.public[cell]
    ours = float(truth.value[cell]), float(truth.sd[cell])
    check_track(
        axis, track, where, check, ours=ours, reports=truth.reports[cell], public=public and public[0]
    )
    _check_aria(truth, cell, track.attributes["aria-label"], check)


def _check_aria(truth: Truth, cell: int, label: str, check: Checker) -> None:
    said = re.sub(r"\s+", " ", label).strip()
    reports, public = truth.reports[cell], truth.public[cell]
    place = said.split(": ")[0]
    fault = truth.fault(cell, place)
    check.that(not fault, f"aria-label: {fault}")
    rules = [
        Rule.of(re.escape(place) + ": "),
        Rule.of(r"by public rows alone {value}", {"value": public[0]} if public else {"so": False}),
        Rule.of(
            r"by its reports alone {value}.*?, noise ± {error}",
            {"value": reports[0], "error": 2 * reports[1]} if reports else {"so": False},
        ),
        Rule.of(
            r"believed {value}.*?, ± {error}",
            {"value": float(truth.value[cell]), "error": 2 * float(truth.sd[cell])},
        ),
    ]
    check.block(said, rules, "cells: aria-label")


def _check_tree(truth: Truth, tree: Element, check: Checker) -> None:
    model, run = truth.model, truth.run
    partition = model.partition
    lines = cells.drawn_nodes(tree)
    of_node = cells.below(partition)
    weights = np.maximum(truth.share, 1e-9)
    low, high = float(truth.value.min()), float(truth.value.max())
    for (line, _), node in zip(lines, cells.in_tree(partition, lines, check), strict=True):
        inside = of_node[node]
        average = float(weights[inside] @ truth.value[inside] / weights[inside].sum())
        is_cell = bool(partition.feature[node] < 0)
        named = line.first("span", "node")
        where = f"tree: {named.text!r}"
        label = named.first("b").text
        names = run.config.dataset.names
        fault = says(label, model.raw_tree, node, names, last=True, every=f"all {run.nouns}")
        check.that(not fault, f"{where}: {fault}")
        told = named.first("span", "told")
        people, value, error, rests = [one.text for one in told.children if one.tag != "svg"]
        check.same(people, float(truth.share[inside].sum()) * run.n_private, where)
        check.same(value, average, where)
        place = (average - low) / (high - low) if high > low else 0.5
        width = float(told.first("rect", "fill").attributes["width"])
        check.that(abs(width - 44 * min(max(place, 0), 1)) < 0.01, f"{where}: the bar is {width} of 44")
        if is_cell:
            check.same(error.removeprefix("± "), 2 * float(truth.sd[inside[0]]), where)
            check.that(rests == cells.EVIDENCE[truth.evidence[inside[0]]], f"{where}: rests on {rests}")
        else:
            check.that(not error and not rests, f"{where}: an error of several cells")
        cells.check_not_drawn(line, len(inside), line.tag == "div" and not is_cell, where, check)
    tree.is_read = True


def _check_table(truth: Truth, table: Element, check: Checker) -> None:
    head, *rows = table.every("tr")
    titles = [one.text for one in head.children]
    check.that(len(rows) == min(truth.n_cells, 400), f"table: {len(rows)} cells")
    model = truth.model
    has_difference = "private less public" in titles
    is_found = truth.is_compared and bool(model.discrepancy_sd[:, 0][truth.leaves].any())
    check.that(has_difference == is_found, f"table: differences shown: {has_difference}, found: {is_found}")
    for cell, row in zip(truth.order([row.children[0].text for row in rows]), rows, strict=True):
        said = dict(zip(titles, (one.text for one in row.children), strict=True))
        where = f"table: {said['cell']}"
        fault = truth.fault(cell, said["cell"])
        check.that(not fault, f"{where}: {fault}")
        check.same(said["private"].rstrip(" %"), 100 * truth.share[cell], where)
        if "public" in said:
            check.same(
                said["public"].rstrip(" %"), 100 * truth.count[cell] / max(truth.run.n_public, 1), where
            )
            check_with_error(said["public rows alone"], truth.public[cell], where, check)
        check_with_error(said["its reports alone"], truth.reports[cell], where, check)
        check_with_error(said["believed"], (float(truth.value[cell]), float(truth.sd[cell])), where, check)
        if said.get("private less public"):
            leaf = truth.leaves[cell]
            difference = float(model.discrepancy[:, 0][leaf]), float(model.discrepancy_sd[:, 0][leaf])
            check_with_error(said["private less public"], difference, where, check)
        check.that(said["rests on"] == cells.EVIDENCE[truth.evidence[cell]], f"{where}: rests on")
    table.is_read = True


def _finding(truth: Truth) -> list[Rule]:
    run = truth.run
    about = {"n": run.n_private, "epsilon": run.config.privacy.epsilon}
    on = rf"^{{n}} private reports? on {re.escape(run.rows())} at {every_page.eps('epsilon')}"
    rivals = {"public_tree": "a tree of its own", "public_forest": "a forest"}
    return [
        *_headlines(truth, on, about),
        *_spread(truth),
        *against_public(run),
        *scores.comparison_rules(run, rivals, public=tuple(rivals)),
    ]


def _headlines(truth: Truth, on: str, about: Mapping[str, Any]) -> list[Rule]:
    run, model = truth.run, truth.model
    target, nouns, unit = re.escape(run.config.dataset.target), re.escape(run.nouns), re.escape(truth.unit)
    u = rf"(?: {unit})?"
    is_found = truth.is_compared and bool((model.discrepancy_sd[:, 0] > 0).any())
    mean, sd = float(model.mean_discrepancy[0]), float(model.mean_discrepancy_sd[0])
    of_cells, sd_of_cells = model.discrepancy[:, 0][truth.leaves], model.discrepancy_sd[:, 0][truth.leaves]
    varies = bool(np.ptp(of_cells) > 1e-9 * model.label.sd)
    beyond = np.abs(of_cells) - 2 * sd_of_cells
    is_clear = abs(mean) >= 2 * sd
    peaks = [
        cell
        for cell in range(truth.n_cells)
        if beyond[cell] > 0 and beyond[cell] >= beyond.max() - 1e-12 and varies
    ]

    def way(value: float) -> str:
        return "higher" if value >= 0 else "lower"

    def of_mean(**more: Any) -> Any:
        def known(said: Mapping[str, str]) -> dict[str, Any]:
            found: dict[str, Any] = {**about, "mean": abs(mean), "sd": 2 * sd, "way": way(mean)}
            so = is_found and is_clear
            if "where" in said:
                cell = next((c for c in peaks if not truth.fault(c, said["where"])), peaks[0] if peaks else 0)
                found |= {"peak": abs(of_cells[cell]), "peak_sd": 2 * sd_of_cells[cell]}
                same = (of_cells[cell] > 0) == (mean > 0)
                so &= bool(peaks) and not truth.fault(cell, said["where"])
                so &= said["most"] == ("most" if same else f"but {way(of_cells[cell])}")
            else:
                so &= not peaks and (said["how"] == ("on average" if varies else "about equally everywhere"))
            return found | {"so": so, "why": (mean, sd, varies, peaks)}

        return known

    def of_peak(said: Mapping[str, str]) -> dict[str, Any]:
        cell = next((c for c in peaks if not truth.fault(c, said["where"])), None)
        if cell is None:
            return {**about, "so": False, "why": peaks}
        value = float(of_cells[cell])
        return {
            **about,
            "peak": abs(value),
            "peak_sd": 2 * sd_of_cells[cell],
            "way": way(value),
            "so": is_found and not is_clear,
        }

    found = scores.scores_of(run)
    fitted = {**about, "cells": truth.n_cells, "so": not truth.is_compared}
    if found is not None:
        fitted |= {"ours": found.figure("ours"), "before": found.figure("public_only")}
    return [
        Rule.of(
            rf"{on} shows? no difference in {target} between private {nouns} and the public ones beyond (?:its|their) noise"
            rf"(?:, which could hide one of {{hidden}}{u} on average)?\.",
            {**about, "hidden": 2 * sd, "so": truth.is_compared and not is_found},
        ),
        Rule.of(
            rf"{on} shows? {target} {{mean}}{u} \(± {{sd}}\) (?P<way>higher|lower) than the public rows say"
            rf"(?:, (?P<how>on average|about equally everywhere)| on average, (?P<most>most|but higher|but lower) "
            rf"where (?P<where>.+?): "
            rf"by {{peak}}{u} \(± {{peak_sd}}\))\.",
            of_mean(),
        ),
        Rule.of(
            rf"{on} shows? {target} {{peak}}{u} \(± {{peak_sd}}\) (?P<way>higher|lower) than the public rows say "
            rf"where (?P<where>.+?), and "
            r"on average no difference\.",
            of_peak,
        ),
        Rule.of(
            rf"{on} shows? that {target} differs from what the public rows say, but in no place beyond its error\.",
            {**about, "so": is_found and not is_clear and not peaks},
        ),
        Rule.of(
            rf"{on} gives? a tree with a mean squared error of {{ours}} in {target}, and public rows alone one of {{before}}\.",
            fitted,
        ),
        Rule.of(
            rf"^From {on[1:]}, a tree with {{cells}} cells? now predicts {target}\.",
            fitted | {"so": fitted["so"] and found is None},
        ),
    ]


def _spread(truth: Truth) -> list[Rule]:
    run, model = truth.run, truth.model
    target, nouns, unit = re.escape(run.config.dataset.target), re.escape(run.nouns), re.escape(truth.unit)
    u = rf"(?: {unit})?"
    is_found = truth.is_compared and bool((model.discrepancy_sd[:, 0] > 0).any())
    of_cells = model.discrepancy[:, 0][truth.leaves]
    return [
        Rule.of(
            rf"The tree has one cell and predicts {{value}}{u} ± {{error}} for every {re.escape(run.noun)}\.",
            {"value": truth.value[0], "error": 2 * truth.sd[0], "so": truth.n_cells == 1},
        ),
        Rule.of(
            rf"The tree's {{cells}} cells predict {target} from {{low}} to {{high}}{u}\.",
            {
                "cells": truth.n_cells,
                "low": truth.value.min(),
                "high": truth.value.max(),
                "so": truth.n_cells > 1,
            },
        ),
        Rule.of(
            r"Reports were asked about {asked} cells?, which public rows part further\.",
            {"asked": run.protocol.n_cells, "so": run.protocol.n_cells < truth.n_cells},
        ),
        Rule.of(
            rf"The reports give no reason to think that private {nouns} differ from the public ones, so public rows "
            rf"are trusted as they "
            r"are, and the reports count as more of the same\. That is no proof that they are alike: every ± has what "
            r"the noise could "
            r"hide in it\.",
            {"so": truth.is_compared and not is_found},
        ),
        Rule.of(
            rf"Private less public is {{low}} to {{high}}{u} depending on the cell, {{mean}}{u} ± {{sd}} on average\.",
            {
                "low": of_cells.min(),
                "high": of_cells.max(),
                "mean": float(model.mean_discrepancy[0]),
                "sd": 2 * float(model.mean_discrepancy_sd[0]),
                "so": is_found,
            },
        ),
    ]


def against_public(run: Run) -> list[Rule]:
    """Our mean squared error beside that of public rows alone."""
    found = scores.scores_of(run)
    if found is None or not found.is_number or "public_only" not in found.of:
        return []
    ours, before = found.figure("ours"), found.figure("public_only")
    about = {"scored": found.content["n_test"], "ours": ours, "before": before, "less": 1 - ours / before}
    on = rf"On {{scored}} {re.escape(run.rows())} held back"

    def claimed(verdict: str) -> dict[str, Any]:
        return about | {"so": found.verdict("public_only") == verdict, "why": found.verdict("public_only")}

    return [
        Rule.of(
            rf"{on} the mean squared error is {{ours}} with the reports and {{before}} without them: no difference "
            rf"that these test rows can tell\.",
            claimed("level"),
        ),
        Rule.of(
            rf"{on} the reports make the model worse: a mean squared error of {{ours}}, up from {{before}}\.",
            claimed("worse"),
        ),
        Rule.of(
            rf"{on} the mean squared error is {{ours}} with the reports and {{before}} without them, {{less%}} less\.",
            claimed("better"),
        ),
    ]
