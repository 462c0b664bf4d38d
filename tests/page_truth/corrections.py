"""The page of a corrected public model: where it was found wrong, both models' answers, and the finding."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.families.correction_means import own_weights, sd_of_means
from ldptree.models.corrected import add_clipped, shares_of
from ldptree.public_models.model import answers
from page_truth import asked, cells, every_page, numbers, scores
from page_truth.artifacts import Run
from page_truth.cells import check_line_share
from page_truth.marks import check_around, check_ends, check_mark, check_with_error
from page_truth.places import says
from page_truth.reading import NUMBER, Element, Scale, number, places
from page_truth.rules import Checker, Rule, agrees
from tasks.artifacts import read_public

DRAWN_ENDS = 24
RESTS = {"private": "its own reports", "neighbours": "neighbouring cells too", "public": "nothing added"}


@dataclass(frozen=True)
class Mend:
    """What is added to one output, and how surely."""

    value: float
    sd: float

    @property
    def is_clear(self) -> bool:
        return self.value != 0 and abs(self.value) >= 2 * self.sd

    @property
    def strength(self) -> float:
        return 0.0 if self.value == 0 else abs(self.value) / max(self.sd, 1e-300)


class Truth:
    """What is so of every cell and node; shares of classes from 0 to 1, numbers in the label's unit."""

    def __init__(self, run: Run) -> None:
        self.run, self.model = run, run.model
        self.found = run.model.corrections
        self.leaves = run.model.partition.leaves
        self.share = self.found.share
        self.known = read_public(run.store, run.chain.published["public"], run.protocol)
        self.below = cells.below(run.model.partition)
        self.unit = "points" if run.classes else run.config.dataset.unit
        self.scale = 100.0 if run.classes else 1.0
        if len(run.classes) == 2:
            self.outputs: tuple[str, ...] = (run.classes[1],)
        else:
            self.outputs = run.classes or (run.config.dataset.target,)

    @property
    def n_cells(self) -> int:
        return len(self.leaves)

    @property
    def is_class(self) -> bool:
        return bool(self.run.classes)

    def cell(self, cell: int, output: int) -> Mend:
        return Mend(float(self.found.correction[cell, output]), float(self.found.sd[cell, output]))

    def of_cell(self, cell: int) -> list[Mend]:
        return [self.cell(cell, output) for output in range(len(self.outputs))]

    @cached_property
    def _of_nodes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        weights = np.zeros((len(self.below), self.n_cells))
        for node, inside in enumerate(self.below):
            weights[node, inside] = self.share[inside]
        weights /= weights.sum(axis=1, keepdims=True)
        return weights @ self.found.correction, sd_of_means(self.known.plan, self.found, weights)

    def node(self, node: int) -> list[Mend]:
        """The averages over the private people below a node."""
        inside = self.below[node]
        if self.model.partition.feature[node] < 0:
            return self.of_cell(inside[0])
        mean, sd = self._of_nodes
        return [Mend(float(m), float(s)) for m, s in zip(mean[node], sd[node], strict=True)]

    @cached_property
    def evidence(self) -> list[str]:
        weight = own_weights(self.known.plan, self.found).max(axis=1)
        return [
            "public"
            if not self.found.correction[cell].any() and not weight[cell]
            else "private"
            if weight[cell] >= 0.5
            else "neighbours"
            for cell in range(self.n_cells)
        ]

    def reports(self, cell: int, output: int) -> tuple[float, float] | None:
        """By the reports of a cell alone; None where noise is wider than the range of an error."""
        noise = float(self.found.noise_sd[cell, output])
        if noise >= 2 * self.known.plan.range.half:
            return None
        return float(self.found.observed[cell, output]), noise

    @cached_property
    def count(self) -> NDArray[np.int64]:
        """Public rows of each cell."""
        if self.model.slope is not None:
            return np.asarray(self.known.plan.public_count, dtype=np.int64)
        return np.bincount(self.where, minlength=self.n_cells)

    @cached_property
    def where(self) -> NDArray[np.int64]:
        """The cell of each public row."""
        return np.asarray(self.model.partition.apply(self.run.public[0]), dtype=np.int64)

    @cached_property
    def answers(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both models' mean answers over the public rows of each cell, [cells, outputs]; NaN where it has none."""
        X = self.run.public[0]
        if (
            self.model.slope is not None
        ):  # public rows are placed by models that have not seen them, as the plan has it
            met = np.where(self.count[:, None] > 0, 0.0, np.nan)
            return self.known.answer + met, self.known.answer + self.found.correction + met
        if self.model.base.feature.size == 1:  # one answer for all, known everywhere
            before = np.tile(self.known.answer[:1], (self.n_cells, 1))
            return before, self._corrected(before, np.arange(self.n_cells))
        before = answers(self.model.base, X, len(self.model.classes))
        after = self._corrected(before, self.where)
        return self._means(before), self._means(after)

    def _corrected(self, before: NDArray[np.float64], cell: NDArray[np.int64]) -> NDArray[np.float64]:
        added = self.found.correction[cell]
        if not self.is_class:
            return np.asarray(before + added)
        found = shares_of(add_clipped(before, added))
        return found[:, 1:] if len(self.outputs) == 1 else found

    def _means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = [np.bincount(self.where, weights=column, minlength=self.n_cells) for column in values.T]
        with np.errstate(invalid="ignore"):
            return np.stack(sums, axis=1) / self.count[:, None]

    @cached_property
    def overall(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The same over all private people; None where some cell has no public row."""
        before, after = self.answers
        if np.isnan(before).any():
            return None
        return self.share @ before, self.share @ after

    def shown(self, mends: list[Mend]) -> int:
        """The output whose correction is most clearly off 0."""
        return max(range(len(mends)), key=lambda output: (mends[output].strength, -output))

    @property
    def is_zero(self) -> bool:
        return not self.found.correction.any()

    @property
    def is_shared(self) -> bool:
        largest = float(np.abs(self.found.correction).max())
        spread = float(np.ptp(self.found.correction, axis=0).max())
        return self.n_cells > 1 and largest > 0 and spread <= 1e-9 * largest

    @property
    def is_even(self) -> bool:
        """Whether all cells are corrected by about the average."""
        average = self.node(0)[0].value
        return bool(np.all(np.abs(self.found.correction[:, 0] - average) <= 0.25 * abs(average)))

    @cached_property
    def clear(self) -> list[int]:
        """Cells whose correction is clear, that furthest from 0 beyond its error first."""
        known = [(cell, self.of_cell(cell)) for cell in range(self.n_cells)]
        peaks = [(cell, mends[self.shown(mends)]) for cell, mends in known]
        found = [
            (abs(mend.value) - 2 * mend.sd, self.share[cell], cell) for cell, mend in peaks if mend.is_clear
        ]
        return [cell for _, _, cell in sorted(found, key=lambda one: one[:2], reverse=True)]

    def direction(self, mend: Mend, output: int) -> str:
        """Which way the public model errs."""
        under = mend.value >= 0
        if not self.is_class:
            return "too low" if under else "too high"
        if len(self.outputs) == 1:
            return f"“{self.run.classes[0] if under else self.run.classes[1]}” too often"
        return f"“{self.outputs[output]}” too {'seldom' if under else 'often'}"

    def fault(self, node: int, label: str) -> str:
        run = self.run
        return says(label, self.model.raw_tree, node, run.config.dataset.names, every=f"all {run.nouns}")


def check(run: Run, *, form: str = "reports") -> list[str]:
    """What a page says that is not so."""
    checker, truth, page = Checker(), Truth(run), run.page.first("main")
    every_page.check_tags(run, page, checker, form=form)
    asked.check_tiles(run, page, checker, form=form)
    sections = {one.attributes["aria-labelledby"]: one for one in page.every("section")}
    if run.scores is not None:
        scores.check_scores(run, sections["scores"], checker)
    checker.that(("scores" in sections) == (run.scores is not None), "scores of a release")
    _check_corrections(truth, sections["corrections"], checker)
    every_page.check_data(run, sections["data"], checker)
    every_page.check_making(run, sections["making"], checker)
    epsilon, protocol = run.config.privacy.epsilon, run.protocol
    privacy = [
        *every_page.privacy_rules(
            run, epsilon=epsilon, spent=protocol.epsilon, exact=protocol.epsilon_exact, form=form
        ),
        *asked.rules(run, form=form),
        *_sent(truth),
    ]
    rules = {
        "scores": scores.rules(run),
        "privacy": privacy,
        "corrections": _learned(truth),
        "header": [*_finding(truth), *every_page.warning_rules(run)],
    }
    every_page.sweep(run, rules, checker)
    return checker.faults


def _sent(truth: Truth) -> list[Rule]:
    run, plan = truth.run, truth.known.plan
    unit = re.escape(run.config.dataset.unit) if not truth.is_class else "points"
    u = rf"(?: {unit})?"
    n, n_outputs = run.n_private, len(truth.outputs)
    force = run.protocol.mechanism.poisoning_bound(max(n // n_outputs, 1))
    reach = np.sort(np.abs(np.array(plan.levels)))[::-1]
    push = (
        truth.scale
        * float(force.one * reach[: min(force.totals_at_once, len(reach))].sum())
        / plan.range.slope
    )
    size = max(n / n_outputs / truth.n_cells, 1.0)
    many = math.ceil(n / 100) * push / size
    positive = run.positive
    return [
        Rule.of(
            r"1 if the \S+ is (?:“(?P<positive>[^”]+)”|one class) and 0 if not, less the share that the model gives "
            r"(?:it|that class), ",
            {"positive": positive or ""},
        ),
        Rule.of(rf"between {{low}} and {{high}}{u}", {"low": -plan.range.half, "high": plan.range.half}),
        Rule.of(
            r"The class is one of {classes}, drawn at random by each holder",
            {"classes": n_outputs, "so": positive is None},
        ),
        Rule.of(
            rf"In a correction's unit: one moves the mean error that the reports of (?:a cell of average size "
            rf"\({{size}} reports\)|all reports) "
            rf"give by up to {{one}}{u}; 1 % of them together by up to {{many}}{u}, before cells lean on each other\.",
            {"size": size, "one": push / size, "many": many},
        ),
    ]


def _check_corrections(truth: Truth, section: Element, check: Checker) -> None:
    _check_chart(truth, section.first("ol", "mends"), check)
    drawn = section.every("ol", "answers")
    is_told = not truth.is_zero
    check.that(len(drawn) <= int(is_told), "answers: drawn where nothing is added")
    for chart in drawn:
        _check_answers(truth, chart, check)
    for table in section.every("table"):
        _check_table(truth, table, check)


def _check_chart(truth: Truth, chart: Element, check: Checker) -> None:
    axis = Scale.of(chart.every("svg", "axis")[0])
    whole = chart.every("li", "whole")
    root = truth.node(0)
    by_strength = sorted(range(len(root)), key=lambda output: -root[output].strength)[:12]
    check.that(
        len(whole) == (len(by_strength) if truth.n_cells > 1 else 0), f"corrections: {len(whole)} averages"
    )
    for output, line in zip(by_strength, whole, strict=False):
        _check_whole(truth, output, root[output], line, axis, check)
    lines = [one for one in chart.every("li") if not one.classes & {"heads", "ends", "whole"}]
    ends = _ends(truth, [line.first("div", "name").text for line in lines])
    check.that(
        sorted(c for end in ends for c in truth.below[end]) == list(range(truth.n_cells)),
        "corrections: not every cell is drawn",
    )
    for node, line in zip(ends, lines, strict=True):
        _check_row(truth, node, line, axis, check)
    _check_sides(truth, chart.first("li", "ends"), check)
    _check_branches(truth, ends, lines, check)
    chart.is_read = True


def _check_sides(truth: Truth, line: Element, check: Checker) -> None:
    """What left and right of 0 mean."""
    said = line.first("p").text
    under, over = (truth.direction(Mend(sign, 0.0), 0) for sign in (-1.0, 1.0))
    if not truth.is_class:
        expected = {f"← public model {under}", f"public model {over} →"}
    elif len(truth.outputs) == 1:
        expected = {f"← {_short(under)}", f"{_short(over)} →"}
    else:
        expected = {"← said too often", "said too seldom →"}
    left = said
    for one in expected:
        left = left.replace(one, "")
    check.that(not left.strip(), f"corrections: the axis says {said!r}, should be {expected}")


def _short(text: str) -> str:
    return re.sub(r"“([^”]{25,})”", lambda m: f"“{m[1][:23].rstrip()}…”", text)


def _ends(truth: Truth, labels: list[str]) -> list[int]:
    """The nodes that the rows are of, from left to right."""
    tree, found = truth.model.partition, []
    waiting = [0]
    for label in labels:
        together = re.search(r"^(.*?) ([\d,]+) cells together$", label)
        n_cells = int(number(together[2])) if together else 1
        while True:
            node = waiting.pop()
            if len(truth.below[node]) == n_cells and (
                tree.feature[node] < 0 or not truth.fault(node, together[1] if together else label)
            ):
                found.append(node)
                break
            waiting += [int(tree.right[node]), int(tree.left[node])]
    return found


def _check_row(truth: Truth, node: int, line: Element, axis: Scale, check: Checker) -> None:
    name = re.sub(r" [\d,]+ cells together$", "", line.first("div", "name").text)
    where = f"row {name!r}"
    fault = truth.fault(node, name)
    check.that(not fault, f"{where}: {fault}")
    inside, mends = truth.below[node], truth.node(node)
    share = float(truth.share[inside].sum())
    held = line.first("div", "held")
    check.same(held.text.split()[0], share * truth.run.n_private, where)
    check_line_share(held.first("span").text, share, where, check)
    shown = truth.shown(mends)
    mend = mends[shown]
    track = line.first("svg", "track")
    is_cell = truth.model.partition.feature[node] < 0
    reports = truth.reports(inside[0], shown) if is_cell else None
    _check_track(truth, track, axis, mend, reports, where, check)
    _check_value(truth, line.first("div", "value"), mends, where, check)
    _check_row_words(truth, track.attributes["aria-label"], node, mends, reports, check)


def _check_track(
    truth: Truth,
    track: Element,
    axis: Scale,
    mend: Mend,
    reports: tuple[float, float] | None,
    where: str,
    check: Checker,
) -> None:
    value, sd = truth.scale * mend.value, truth.scale * mend.sd
    check_mark(axis, places(track, "ours", "mark"), value, f"{where}: correction", check)
    check_around(axis, places(track, "ours", "interval"), (value, sd), f"{where}: correction ± 2 sd", check)
    hollow = any("unsure" in one.classes for one in track.every("g"))
    check.that(hollow != mend.is_clear, f"{where}: hollow {hollow}, clear {mend.is_clear}")
    told = None if reports is None else (truth.scale * reports[0], truth.scale * reports[1])
    check_mark(axis, places(track, "reference", "mark"), told and told[0], f"{where}: reports", check)
    check_around(axis, places(track, "reference", "noise"), told, f"{where}: noise", check)


def _check_value(truth: Truth, value: Element, mends: list[Mend], where: str, check: Checker) -> None:
    """What is said of a correction, its figures, and further classes."""
    shown = truth.shown(mends)
    mend = mends[shown]
    said = value.first("b").text
    expected = (
        "not corrected"
        if mend.value == 0
        else _short(truth.direction(mend, shown))
        if mend.is_clear
        else "within noise"
    )
    check.that(said == expected, f"{where}: says {said!r}, should be {expected!r}")
    first, *more = [one.text for one in value.children if one.tag == "span"]
    if mend.value == 0:
        check.that(not re.search(r"\d", first), f"{where}: {first}")
    else:
        size = abs(mend.value) if mend.is_clear else mend.value
        figures = re.sub(r"“[^”]*”", "", first)
        check_with_error(figures, (truth.scale * size, truth.scale * mend.sd), where, check)
        check.that(mend.is_clear == figures.startswith("by "), f"{where}: {first}")
        named = re.search(r"“([^”]*)”", first)
        if named:
            check.that(f"“{named[1]}”" == _short(f"“{truth.outputs[shown]}”"), f"{where}: {first}")
        if truth.unit:
            check.that(first.endswith(truth.unit), f"{where}: {first} has no unit")
    _check_beside(truth, more, mends, where, check)


def _check_beside(truth: Truth, said: list[str], mends: list[Mend], where: str, check: Checker) -> None:
    """The further classes that are clear, the clearest first."""
    shown = truth.shown(mends)
    others = sorted(
        (output for output in range(len(mends)) if output != shown and mends[output].is_clear),
        key=lambda output: -mends[output].strength,
    )[:2]
    check.that(len(said) == len(others), f"{where}: {said}, clear are {others}")
    for text, output in zip(said, others, strict=False):
        mend = mends[output]
        start = f"also {_short(truth.direction(mend, output))} by "
        check.that(text.startswith(start), f"{where}: {text}, should be {start}")
        figures = text.removeprefix(start)
        check_with_error(figures, (truth.scale * abs(mend.value), truth.scale * mend.sd), where, check)


def _check_whole(truth: Truth, output: int, mend: Mend, line: Element, axis: Scale, check: Checker) -> None:
    where = f"everybody, {truth.outputs[output]}"
    name = line.first("div", "name").text
    expected = f"all {truth.run.nouns}"
    expected += f", “{_short(f'“{truth.outputs[output]}”').strip('“”')}”" if len(truth.outputs) > 1 else ""
    check.that(name == expected, f"{where}: {name!r}, should be {expected!r}")
    held = line.first("div", "held").text
    if held:
        check.same(held.split()[0], truth.run.n_private, where)
        check.that(held.endswith("100 %"), f"{where}: {held}")
    track = line.first("svg", "track")
    _check_track(truth, track, axis, mend, None, where, check)
    value = line.first("div", "value")
    _check_value(truth, value, _only(truth, output, mend), where, check)
    label = re.sub(r"\s+", " ", track.attributes["aria-label"])
    check.block(
        label,
        [Rule.of(rf"^all {re.escape(truth.run.nouns)} on average: "), *_sentences(truth, output, mend)],
        where,
    )


def _only(truth: Truth, output: int, mend: Mend) -> list[Mend]:
    """The one correction among all outputs, so that it is the one shown."""
    return [mend if one == output else Mend(0.0, 0.0) for one in range(len(truth.outputs))]


def _sentences(truth: Truth, output: int, mend: Mend) -> list[Rule]:
    """What a screen reader says of a correction."""
    figures = {"size": truth.scale * abs(mend.value), "error": 2 * truth.scale * mend.sd}
    u = rf"(?: {re.escape(truth.unit)})?"
    return [
        Rule.of(r"nothing was found that is worth correcting", {"so": mend.value == 0}),
        Rule.of(
            rf"(?P<noise>within noise: )?the public model (?:says|predicts .+?) (?P<way>“[^”]+” too \w+|too \w+), "
            rf"by {{size}}{u} ± {{error}}",
            lambda said: (
                figures | {"way": truth.direction(mend, output), "so": ("noise" not in said) == mend.is_clear}
            ),
        ),
    ]


def _check_row_words(
    truth: Truth,
    label: str,
    node: int,
    mends: list[Mend],
    reports: tuple[float, float] | None,
    check: Checker,
) -> None:
    said = re.sub(r"\s+", " ", label).strip()
    run, shown = truth.run, truth.shown(mends)
    place, _, rest = said.partition(", about ")
    fault = truth.fault(node, place)
    check.that(not fault, f"aria-label: {fault}")
    beside = list(re.findall(r"also .+? by [^,;]+", rest))
    _check_beside(truth, beside, mends, f"aria-label: {place}", check)
    for text in beside:
        rest = rest.replace(f", {text}", "")
    people = float(truth.share[truth.below[node]].sum()) * run.n_private
    told = (
        {"value": truth.scale * reports[0], "error": 2 * truth.scale * reports[1]}
        if reports
        else {"so": False}
    )
    rules = [
        Rule.of(rf"^{{people}} private {re.escape(run.nouns)}: ", {"people": people}),
        Rule.of(r"; its reports alone {value}, noise ± {error}", told),
        *_sentences(truth, shown, mends[shown]),
    ]
    check.block(rest, rules, f"aria-label: {place}", whole=True)


def _leading(line: Element) -> list[Element]:
    """The parts of branches that lead to the middle of a row."""
    return [
        one
        for one in line.first("svg", "limbs").every("line")
        if one.attributes["y1"] == one.attributes["y2"] == "50%" and one.attributes["x2"] == "100%"
    ]


def _check_branches(truth: Truth, ends: list[int], lines: list[Element], check: Checker) -> None:
    """An end's branch leads to the middle of its row, as thick as its share of people."""
    for node, line in zip(ends, lines, strict=True):
        limbs = line.every("svg", "limbs")[0].every("line")
        if truth.n_cells == 1:
            check.that(not limbs, "branches: of one cell")
            continue
        leading = _leading(line)
        check.that(len(leading) == 1, f"branches: {len(leading)} lead to the row of node {node}")
    if truth.n_cells == 1:
        return
    drawn = sorted(
        (
            float(truth.share[truth.below[node]].sum()),
            float(_leading(line)[0].attributes["stroke-width"]),
        )
        for node, line in zip(ends, lines, strict=True)
    )
    thick = [pixels for _, pixels in drawn]
    check.that(thick == sorted(thick), f"branches: as thick as {drawn}")


def _check_answers(truth: Truth, chart: Element, check: Checker) -> None:
    axis = Scale.of(chart.every("svg", "axis")[0])
    lines = [one for one in chart.every("li") if not one.classes & {"heads", "ends"}]
    whole = [line for line in lines if "whole" in line.classes]
    check.that(bool(whole) == (truth.overall is not None and truth.n_cells > 1), "answers: everybody")
    labels = [line.first("div", "name").text for line in lines if line not in whole]
    order = cells.in_order(
        truth.share, labels, lambda cell, label: not truth.fault(int(truth.leaves[cell]), label)
    )
    check.that(len(order) == min(12, truth.n_cells), f"answers: {len(order)} cells")
    before, after = truth.answers
    for line in whole:
        root = truth.node(0)
        assert truth.overall is not None
        shown = truth.shown(root)
        both = float(truth.overall[0][shown]), float(truth.overall[1][shown])
        _check_answer(truth, line, axis, both, root, shown, _whole_test(truth), "everybody", check)
    for cell, line in zip(order, [line for line in lines if line not in whole], strict=True):
        label = line.first("div", "name").text
        fault = truth.fault(int(truth.leaves[cell]), label)
        check.that(not fault, f"answers: {label!r}: {fault}")
        mends = truth.of_cell(cell)
        shown = truth.shown(mends)
        both = float(before[cell, shown]), float(after[cell, shown])
        _check_answer(truth, line, axis, both, mends, shown, _cell_test(truth, cell), label, check)
    chart.is_read = True


def _cell_test(truth: Truth, cell: int) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = None if truth.run.scores is None else truth.run.scores["cells"][cell]
    return found


def _whole_test(truth: Truth) -> Mapping[str, Any] | None:
    content = truth.run.scores
    if content is None or content["n_test"] < scores.FEWEST:
        return None
    chief = "accuracy" if truth.is_class else "mse"
    return {
        "n": content["n_test"],
        "public": content["scores"]["public_only"][chief],
        "ours": content["scores"]["ours"][chief],
    }


def _check_answer(
    truth: Truth,
    line: Element,
    axis: Scale,
    both: tuple[float, float],
    mends: list[Mend],
    shown: int,
    test: Mapping[str, Any] | None,
    where: str,
    check: Checker,
) -> None:
    where, scale, sd = f"answers: {where}", truth.scale, mends[shown].sd
    track = line.first("svg", "track")
    value, *tested = [one for one in line.children if "value" in one.classes]
    if math.isnan(both[0]):
        check.that("–" in value.text, f"{where}: {value.text}, no public row is here")
        check.that(not places(track, "ours", "mark"), f"{where}: drawn, and no public row is here")
    else:
        _check_both(value.text.removeprefix("says "), both, where, check, percent=truth.is_class)
        before, after = scale * both[0], scale * both[1]
        check_mark(axis, places(track, "public", "mark"), before, f"{where}: public", check)
        check_mark(axis, places(track, "ours", "mark"), after, f"{where}: corrected", check)
        ends = places(track, "ours", "interval")
        check_ends(axis, ends, after - 2 * scale * sd, after + 2 * scale * sd, where, check)
        moved = places(track, "reference", "moved")
        check_ends(axis, moved, min(before, after), max(before, after), f"{where}: moved", check)
        label = re.sub(r"\s+", " ", track.attributes["aria-label"]).split("; ")[0]
        said = re.search(r"the public model says (.+?)(?: “(.+?)”)?, corrected (.+)$", label)
        check.that(said is not None, f"{where}: {label}")
        if said:
            _check_both(f"{said[1]} → {said[3]}", both, where, check, percent=truth.is_class)
    if len(truth.outputs) > 1:
        named = f"“{_short(f'“{truth.outputs[shown]}”').strip('“”')}”"
        check.that(named in value.text, f"{where}: {value.text} is of {named}")
    for one in tested:
        _check_tested(truth, one, track, test, where, check)


def _check_both(text: str, both: tuple[float, float], where: str, check: Checker, *, percent: bool) -> None:
    """Two figures with an arrow, or one that is unchanged."""
    scale = 100.0 if percent else 1.0
    stated = re.findall(NUMBER, re.sub(r"“[^”]*”|of [\d,]+ held back", "", text))
    if "unchanged" in text:
        check.that(both[0] == both[1], f"{where}: {text}, from {both[0]} to {both[1]}")
        check.same(stated[0], scale * both[0], where)
        return
    check.that(len(stated) == 2, f"{where}: {text}")
    for figure, value in zip(stated, both, strict=False):
        check.same(figure, scale * value, f"{where}: {text}")


def _check_tested(
    truth: Truth, cell: Element, track: Element, test: Mapping[str, Any] | None, where: str, check: Checker
) -> None:
    """How both models did on rows held back."""
    if test is None:
        check.that(cell.text == "–", f"{where}: {cell.text}, too few were held back")
        return
    text = re.sub(r"^(?:accuracy|MSE) there ", "", cell.text)
    both = float(test["public"]), float(test["ours"])
    _check_both(text, both, where, check, percent=truth.is_class)
    held = re.search(rf"of ({NUMBER}) held back", text)
    check.that(held is not None and number(held[1]) == test["n"], f"{where}: {text}")
    said = re.sub(r"\s+", " ", track.attributes["aria-label"])
    rules = [
        Rule.of(
            r"; (?:accuracy|mean squared error) on {n} held back {before}(?: %)?, corrected {after}(?: %)?$",
            {
                "n": test["n"],
                "before": both[0] * (100 if truth.is_class else 1),
                "after": both[1] * (100 if truth.is_class else 1),
            },
        ),
    ]
    check.block(said[said.rindex("; ") :] if "; " in said else "", rules, where)


def _check_table(truth: Truth, table: Element, check: Checker) -> None:
    head, *rows = table.every("tr")
    titles = [one.text for one in head.children]
    n_outputs = len(truth.outputs)
    labels = [row.children[0].text for row in rows[::n_outputs]]
    order = cells.in_order(
        truth.share, labels, lambda cell, label: not truth.fault(int(truth.leaves[cell]), label)
    )
    check.that(len(order) == min(truth.n_cells, 400), f"table: {len(order)} cells")
    for i, row in enumerate(rows):
        _check_table_row(
            truth, order[i // n_outputs], i % n_outputs, titles, [one.text for one in row.children], check
        )
    table.is_read = True


def _check_table_row(
    truth: Truth, cell: int, output: int, titles: list[str], told: list[str], check: Checker
) -> None:
    where = f"table: {told[0]}"
    fault = truth.fault(int(truth.leaves[cell]), told[0])
    check.that(not fault, f"{where}: {fault}")
    is_tested = "held back" in titles
    last = told[-3:] if is_tested else []
    said = dict(zip(titles[: len(titles) - len(last)], told, strict=False))
    if "class" in said:
        check.that(
            said["class"].strip("“”") == _short(f"“{truth.outputs[output]}”").strip("“”"),
            f"{where}: {said['class']}",
        )
    check.same(said[f"private {truth.run.nouns}"], float(truth.share[cell]) * truth.run.n_private, where)
    check.same(said["public"].rstrip(" %"), 100 * truth.count[cell] / max(truth.run.n_public, 1), where)
    mend, reports = truth.cell(cell, output), truth.reports(cell, output)
    _check_signed(said["its reports alone"], reports, truth.scale, where, check)
    _check_signed(said["correction"], (mend.value, mend.sd), truth.scale, where, check)
    check.that(said["rests on"] == RESTS[truth.evidence[cell]], f"{where}: rests on {said['rests on']}")
    before, after = (float(one[cell, output]) for one in truth.answers)
    for text, value in ((said["public model says"], before), (said["corrected"], after)):
        if math.isnan(value):
            check.that(text == "–", f"{where}: {text}")
        else:
            check.same(re.findall(NUMBER, text)[0], truth.scale * value, where)
    test = _cell_test(truth, cell)
    if last and test is None:
        check.that(last == ["–"] * 3, f"{where}: {last}")
    elif last and test is not None:
        scale = truth.scale
        for text, value in zip(last, (test["n"], scale * test["public"], scale * test["ours"]), strict=True):
            check.same(re.findall(NUMBER, text)[0], value, where)


def _check_signed(
    text: str, value: tuple[float, float] | None, scale: float, where: str, check: Checker
) -> None:
    if value is not None and value[0] == 0 and text == "0":
        return
    check_with_error(text, None if value is None else (scale * value[0], scale * value[1]), where, check)


def _learned(truth: Truth) -> list[Rule]:
    run, n_cells = truth.run, truth.n_cells
    clear = truth.clear
    share = float(truth.share[clear].sum()) if clear else 0.0
    n_trees = 0 if truth.model.base.feature.size == 1 else int(truth.model.base.roots.size)
    slope = truth.found.slope
    is_line = slope is not None and slope.tau > 0 and abs(slope.amount) >= 2 * slope.sd
    left = sorted(truth.share, reverse=True)[cells.DRAWN :]
    nouns = re.escape(run.nouns)
    return [
        Rule.of(
            r"Reports were about how far the public model \((?:one answer for all|one tree|{trees} trees added up)"
            rf"(?:, fitted on {{rows}} public rows?)?\) is off(?: in each of {{kinds}} kinds of {re.escape(run.noun)})?\.",
            {"trees": n_trees, "rows": run.n_public, "kinds": n_cells},
        ),
        Rule.of(
            rf"In {{clear}} of them, with {{share%}} of private {nouns}, the correction stands clear of its noise; in "
            rf"the others it does not\.",
            {"clear": len(clear), "share": share, "so": 0 < len(clear) < n_cells and not truth.is_shared},
        ),
        Rule.of(
            r"In all of them the correction stands clear of its noise\.", {"so": len(clear) == n_cells > 1}
        ),
        Rule.of(r"No correction stands clear of its noise\.", {"so": not clear}),
        Rule.of(r"^Where errors were looked for, and none was found$", {"so": truth.found.is_nothing}),
        Rule.of(
            r"^Where errors were looked for, and none stands clear of its noise$",
            {"so": not clear and not is_line and not truth.found.is_nothing},
        ),
        Rule.of(
            r"^Where the public model is wrong, and how surely$",
            {"so": (bool(clear) or is_line) and not truth.found.is_nothing},
        ),
        Rule.of(
            r"They do not tell the kinds apart: all have the same correction, which stands clear of its noise\.",
            {"so": truth.is_shared and bool(clear)},
        ),
        Rule.of(r"Nothing is added to it\.", {"so": truth.is_zero}),
        Rule.of(
            rf"Kinds are also told apart by how far a straight line's answer is from the tree's\. (?P<noise>Within "
            rf"noise: )?[Bb]eside the "
            rf"cells, private {nouns} follow the line's answer by {{amount}} ± {{error}} of where it differs from the tree's\.",
            lambda said: (
                _of_slope(truth)
                | {"so": slope is not None and slope.tau > 0 and ("noise" not in said) == is_line}
            ),
        ),
        Rule.of(
            rf"That private {nouns} follow the line, the reports do not show\.",
            {"so": slope is not None and slope.tau == 0},
        ),
        Rule.of(
            rf"and (?:1|{{n}}) more cells? that (?:together hold|holds) {{held%}} of private {nouns}",
            {"n": len(left), "held": float(sum(left))},
        ),
        Rule.of(r"All {n} cells in figures", {"n": n_cells, "so": n_cells > 1}),
        Rule.of(
            r"The {n} largest of {cells} cells in figures", {"n": 400, "cells": n_cells, "so": n_cells > 400}
        ),
        Rule.of(r"The cell in figures", {"so": n_cells == 1}),
        Rule.of(r"A dash: fewer than 10 were held back there\."),
        Rule.of(r"A hollow mark: within ± 2 sd of 0, so the sign is not known\."),
        Rule.of(r"± 2 sd|off 0"),
    ]


def _of_slope(truth: Truth) -> dict[str, float]:
    slope = truth.found.slope
    if slope is None:
        return {}
    return {"amount": slope.amount, "size": abs(slope.amount), "error": 2 * slope.sd}


def _finding(truth: Truth) -> list[Rule]:
    run = truth.run
    rivals = {"public_tree": "a tree of its own", "public_forest": "a forest"}
    found = scores.scores_of(run)
    if found is not None and truth.is_class and found.verdict("public_only") == "better":
        rivals = {"public_only": "the public model itself"} | rivals
    return [
        *_wrong(truth),
        *_worth(truth, found),
        *_lead(truth),
        *numbers.against_public(run),
        *scores.comparison_rules(run, rivals, public=tuple(rivals)),
    ]


def _wrong(truth: Truth) -> list[Rule]:
    """Which way the public model is wrong."""
    run = truth.run
    on, u = rf"private {re.escape(run.rows())}", rf"(?: {re.escape(truth.unit)})?"
    says_ = r"(?:says|predicts .+?)"
    root = truth.node(0)
    average = root[0]
    of_average = {"size": truth.scale * abs(average.value), "error": 2 * truth.scale * average.sd}
    one_output = len(truth.outputs) == 1
    slope = truth.found.slope
    is_line = slope is not None and slope.tau > 0 and abs(slope.amount) >= 2 * slope.sd
    about = {"n": run.n_private, "epsilon": run.config.privacy.epsilon}
    nothing = truth.found.is_nothing
    n = rf"{{n}} private reports? on {re.escape(run.rows())} at {every_page.eps('epsilon')}"

    def of_peak(said: Mapping[str, str]) -> dict[str, Any]:
        if not truth.clear:
            return {"so": False, "why": "no correction is clear"}
        cell = truth.clear[0]
        mends = truth.of_cell(cell)
        shown = truth.shown(mends)
        mend = mends[shown]
        fault = truth.fault(int(truth.leaves[cell]), said["where"]) if "where" in said else ""
        return {
            "size": truth.scale * abs(mend.value),
            "error": 2 * truth.scale * mend.sd,
            "way": truth.direction(mend, shown),
            "so": not fault and not nothing and not (one_output and average.is_clear),
            "why": fault,
        }

    way = r"(?P<way>“[^”]+” too \w+|too \w+)"
    return [
        Rule.of(
            rf"^{n} finds? nothing wrong with the public model beyond (?:its|their) noise\.",
            about | {"so": nothing},
        ),
        Rule.of(
            rf"^On {on} the public model {says_} {way}, (?P<by>on average by|by) {{size}}{u} ± {{error}}\.",
            lambda said: (
                of_average
                | {
                    "way": truth.direction(average, 0),
                    "so": one_output
                    and average.is_clear
                    and not nothing
                    and (said["by"] == "by") == (truth.n_cells == 1 or truth.is_even),
                }
                if one_output and average.is_clear
                else of_peak(said) | {"by": "by"}
            ),
        ),
        Rule.of(
            rf"^On {on} where (?P<where>.+?), the public model {says_} {way}, by {{size}}{u} ± {{error}}\.",
            of_peak,
        ),
        Rule.of(
            rf"^Private {re.escape(run.rows())} follow a straight line rather than the public model, by {{size}} "
            rf"± {{error}} of where the two differ\.",
            lambda _: (
                _of_slope(truth)
                | {"so": is_line and slope is not None and slope.amount > 0 and not average.is_clear}
            ),
        ),
        Rule.of(
            rf"^Private {re.escape(run.rows())} keep away from a straight line, by {{size}} ± {{error}} of where it "
            rf"differs from the public model\.",
            lambda _: (
                _of_slope(truth)
                | {"so": is_line and slope is not None and slope.amount < 0 and not average.is_clear}
            ),
        ),
        Rule.of(
            rf"^{n} differs? from the public model more than noise alone would, but "
            r"(?P<how>not so that any correction is worth it|in no place clearly)\.",
            lambda said: (
                about | {"so": not nothing and not truth.clear and (said["how"][0] == "n") == truth.is_zero}
            ),
        ),
    ]


def _worth(truth: Truth, found: scores.Scores | None) -> list[Rule]:
    """What correcting it brings."""
    run = truth.run
    about = {"n": run.n_private, "epsilon": run.config.privacy.epsilon}
    at = rf"{{n}} private reports? at {every_page.eps('epsilon')}"
    if found is None:
        return [Rule.of(rf"{at} corrects? it\.", about)]
    scale = 100.0 if truth.is_class else 1.0
    ours, before = scale * found.figure("ours"), scale * found.figure("public_only")
    p = " ?%" if truth.is_class else ""
    verdict = found.verdict("public_only")
    what = r"(?:is right|has a mean squared error of)"
    known = about | {"ours": ours, "before": before}
    is_same = abs(ours - before) < 1e-3 * (1 if truth.is_class else max(abs(before), 1e-12))
    return [
        Rule.of(rf"{at} lifts? it from {{before}}{p} to {{ours}}{p}\.", known | {"so": verdict == "better"}),
        Rule.of(
            rf"{at} cuts? its mean squared error from {{before}} to {{ours}}\.",
            known | {"so": verdict == "better"},
        ),
        Rule.of(
            rf"But corrected by {at} it {what} {{ours}}{p}(?: of the time)?, which is worse than the {{before}}{p} before\.",
            known | {"so": verdict == "worse"},
        ),
        Rule.of(
            rf"Corrected by {at} it {what} {{ours}}{p}(?: of the time)?, as before\.",
            known | {"so": verdict == "level" and is_same},
        ),
        Rule.of(
            rf"Corrected by {at} it {what} {{ours}}{p}(?: of the time)?, before {{before}}{p}: not measurably better\.",
            known | {"so": verdict == "level"},
        ),
        Rule.of(
            rf"It is right {{ours}}{p} of the time, with or without the reports\.", known | {"so": is_same}
        ),
        Rule.of(
            rf"It is right {{before}}{p} of the time without the reports and {{ours}}{p} with them\.", known
        ),
    ]


def _lead(truth: Truth) -> list[Rule]:
    """Where else, how much on average, and how likely noise alone would do this."""
    run = truth.run
    nouns, noun, u = re.escape(run.nouns), re.escape(run.noun), rf"(?: {re.escape(truth.unit)})?"
    way = r"(?P<way>“[^”]+” too \w+|too \w+)"

    def of_place(said: Mapping[str, str]) -> dict[str, Any]:
        for cell in truth.clear:
            if truth.fault(int(truth.leaves[cell]), said["where"]):
                continue
            mends = truth.of_cell(cell)
            shown = truth.shown(mends)
            mend = mends[shown]
            first = said.get("first")
            return {
                "size": truth.scale * abs(mend.value),
                "error": 2 * truth.scale * mend.sd,
                "way": truth.direction(mend, shown),
                "so": not first or cell == truth.clear[0],
                "first": first or "",
            }
        return {"so": False, "why": "no clear correction is there"}

    def told_more(said: Mapping[str, str]) -> dict[str, Any]:
        lead = run.page.first("p", "lead").text + " " + run.page.first("h1").text
        named = len(re.findall(r"[Ww]here (?!the straight|errors|a straight|the two|it differs)", lead))
        return {"more": len(truth.clear) - named, "so": len(truth.clear) > named}

    found = truth.found
    largest = found.correction.flat[np.abs(found.correction).argmax()]
    return [
        Rule.of(
            rf"(?:Overall|In {{kinds}} kinds of {noun}) the reports differ from the public model no more than noise "
            rf"alone would make them "
            r"\(chance {chance%}\)(?P<so_>, so nothing is added to it: it is released as it is\.)?",
            lambda said: {
                "kinds": truth.n_cells,
                "chance": found.chance,
                "so": found.is_nothing and ("so_" in said) == truth.is_zero,
            },
        ),
        Rule.of(
            rf": within noise of nothing\. What is added all the same is {{most}} ± {{error}}{u} at most(?: on "
            rf"average over a kind, and "
            r"{amount} ± {slope_error} of where a straight line differs from the tree)?\.",
            lambda _: (
                {
                    "most": truth.scale * float(largest),
                    "error": 2 * truth.scale * float(found.sd.flat[np.abs(found.correction).argmax()]),
                    "slope_error": _of_slope(truth).get("error", math.nan),
                    "so": found.is_nothing and not truth.is_zero,
                    **_of_slope(truth),
                }
                | {"error": 2 * truth.scale * float(found.sd.flat[np.abs(found.correction).argmax()])}
            ),
        ),
        Rule.of(
            rf"(?:(?P<first>Furthest beyond its noise where)|Where) (?P<where>[^:]+): (?:the public model "
            rf"(?:says|predicts .+?) )?{way}, by "
            rf"{{size}}{u} ± {{error}}\.",
            of_place,
        ),
        Rule.of(rf"In {{more}} more kinds? of {noun} a correction stands clear of its noise\.", told_more),
        Rule.of(
            rf"The reports do not tell kinds of {noun} apart: the correction is the same everywhere\.",
            {"so": truth.is_shared},
        ),
        Rule.of(r"That is about equally so everywhere\.", {"so": truth.is_even and not truth.is_shared}),
        Rule.of(
            rf"Beside that, private {nouns} (?:follow a straight line rather than the public model|keep away from a "
            rf"straight line), by {{size}} ± "
            r"{error} of where (?:the two differ|it differs from the public model)\.",
            lambda _: _of_slope(truth),
        ),
        Rule.of(
            rf"Over all private {nouns} the public model predicts {{before}}{u} on average, corrected {{after}}{u}"
            r"(?P<line> where the straight line lies as for public ones)?\.",
            lambda said: {
                "before": float(truth.overall[0][0]) if truth.overall else math.nan,
                "after": float(truth.overall[1][0]) if truth.overall else math.nan,
                "so": ("line" in said) == (found.slope is not None and found.slope.tau > 0),
            },
        ),
        Rule.of(
            rf"Over all private {nouns} the public model says (?P<list>.+?%)\.(?= |$)",
            lambda said: _overall(truth, said["list"]),
        ),
    ]


def _overall(truth: Truth, text: str) -> dict[str, Any]:
    """Shares of classes over everybody, before and after."""
    if truth.overall is None:
        return {"so": False}
    for part in text.split("; "):
        said = re.fullmatch(r"([\d.]+) % “(.+?)”, corrected ([\d.]+) %", part)
        if not said or said[2] not in truth.outputs:
            return {"so": False, "why": part}
        output = truth.outputs.index(said[2])
        for stated, shares in ((said[1], truth.overall[0]), (said[3], truth.overall[1])):
            if not agrees(stated, 100 * shares[output]):
                return {"so": False, "why": f"{part}: {shares[output]}"}
    return {"so": True}
