"""Where the marks of the drawings must stand, on their axes."""

from __future__ import annotations

from chain import RoundsChain

from page_truth.agreement import compare, numbers
from page_truth.artifacts import Run
from page_truth.figures import chief, epsilon, found_from, is_class, n_private, surely_from
from page_truth.reading import Element, Scale, ends, mark, number, rounding
from page_truth.tables import estimates_of, in_order


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
        if len(said) not in (2, 3):
            continue
        bar = leaf.first("svg", "bar")
        reach = (said[0] - said[1], said[0] + said[1]) if len(said) == 2 else (said[1], said[2])
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
