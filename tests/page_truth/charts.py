"""Where the marks of the drawings must stand, on their axes."""

from __future__ import annotations

from statistics import median

from chain import RoundsChain

from page_truth.agreement import compare, numbers
from page_truth.artifacts import Run
from page_truth.figures import (
    as_chief,
    average_moved,
    best_constant,
    chief,
    clear_of,
    constant_of,
    epsilon,
    found_from,
    guess,
    interval_of,
    is_class,
    lead_of,
    margin,
    n_private,
    ours,
    output_of,
    reference,
    surely_from,
)
from page_truth.reading import Element, Scale, ends, mark
from page_truth.tables import estimates_of, in_order


def check_marks(run: Run) -> list[str]:
    """Where the scores and their intervals stand on the axis, by the labels of its ticks."""
    if run.scores is None:
        return []
    chart = run.page.first("div", "all")
    axis, faults = Scale.of(chart.first("svg", "ax")), []
    for row, score in zip(chart.every("li"), in_order(run), strict=True):
        track = row.first("svg", "tr")
        low, high = ends(track, "iv")
        drawn = zip((mark(track), low, high), (chief(run, score), *interval_of(run, score)), strict=True)
        faults += [
            f"a mark of {row.text} stands at {axis.value(at)}, expected {value}"
            for at, value in drawn
            if not axis.agrees(at, value)
        ]
    return faults


def check_strip(run: Run) -> list[str]:
    """Draws at other epsilons, by the labels of their axis; the row that is marked; what is said of them."""
    drawn = run.page.every("div", "eps")
    redraws = (run.scores or {"epsilons": found_from(run)}).get("epsilons", [])
    if not drawn:
        return [] if not redraws else ["no strip of epsilons"]
    axis, scale, faults = Scale.of(drawn[0].first("svg", "ax")), _scale(run), []
    for row, one in zip(drawn[0].every("li"), redraws, strict=True):
        places = sorted(float(dot.attributes["cx"].rstrip("%")) for dot in row.every("circle", "d"))
        is_none = run.scores is None and scale > 1 and one["redraws"][0] > 1.0
        draws = sorted(as_chief(run, draw) if run.scores else scale * draw for draw in one["redraws"])
        for place, value in zip(places, [] if is_none else draws, strict=True):
            if not axis.agrees(place, value):
                faults.append(
                    f"a draw at epsilon {one['epsilon']} stands at {axis.value(place)}, not {value}"
                )
        stated = [one["epsilon"], *(f(draws) for f in (median, min, max))][: 4 if run.scores else 2]
        said = [n for text in ("nm", "v", "in") for n in numbers(row.every("", text)[0].text, run)]
        faults += compare(f"at {row.text}", said, stated[:1] if is_none else stated)
        if ("us" in row.classes) != (one["epsilon"] == epsilon(run)):
            faults.append(f"epsilon {one['epsilon']} is marked, or is not")
    says = {one.attributes.get("data-says") for one in run.page.every("span")}
    if run.scores is not None and ("strip never" in says) != (surely_from(run) is None):
        faults.append("what is said of other epsilons is not so")
    return faults


def check_curves(run: Run) -> list[str]:
    """Where the marks along the strongest columns stand, and their bars end."""
    faults, scale = [], _scale(run)
    charts = run.page.every("div", "curve")
    for chart, curve in zip(charts, run.facts["description"]["curves"], strict=True):
        axis = Scale.of(chart.first("svg", "ax"))
        points = curve["points"][:: -(-len(curve["points"]) // 12)]
        for row, point in zip(chart.every("li"), points, strict=True):
            pairs = [(mark(Element("svg", {}, row.every("circle", "m"))), point["value"])]
            if point["public"] is not None:
                pairs.append((mark(row.first("g", "pub")), point["public"]))
            if point["sd"] is not None:
                reach = point["value"] - 2 * point["sd"], point["value"] + 2 * point["sd"]
                pairs += zip(ends(row, "iv"), reach, strict=True)
            said = numbers(row.first("b", "v").text, run) + numbers(row.first("span", "in").text, run)
            faults += compare(f"along {row.text}", said, [scale * value for _, value in pairs][: len(said)])
            faults += [
                f"a mark of {row.text} stands at {axis.value(at)}, expected {scale * value}"
                for at, value in pairs
                if not axis.agrees(at, scale * value)
            ]
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
    tables = [
        one
        for one in run.page.every("details")
        if one.first("summary").text.startswith("Strength of columns")
    ]
    cells = [cell.text for one in tables for cell in one.every("td")]
    if parts and bool(cells) == bool(drawn):
        faults.append("strengths are drawn or in a table, one of both")
    for cell, part in zip(cells, parts, strict=False):
        faults += compare(f"strength {cell}", numbers(cell, run), (100.0 * part,))
    return faults


def check_mean_answers(run: Run) -> list[str]:
    """What a corrected model answers on average, before and after."""
    found = [
        one["figures"] for one in run.facts["description"]["statements"] if one["kind"] == "mean prediction"
    ]
    tables = [
        one for one in run.page.every("details") if one.first("summary").text.startswith("Mean prediction")
    ]
    cells = [cell.text for one in tables for cell in one.every("td")]
    values = [each[name] for each in found for name in ("before", "after")]
    expected = [100.0 * value if "%" in cell else value for cell, value in zip(cells, values, strict=True)]
    return [
        fault
        for cell, value in zip(cells, expected, strict=True)
        for fault in compare(f"mean answer {cell}", numbers(cell, run), (value,))
    ]


def check_tree(run: Run) -> list[str]:
    """The figures beside the ends of the tree that are groups."""
    trees = run.page.every("ul", "tree")
    if not trees or isinstance(run.chain, RoundsChain):
        return []
    faults = []
    for leaf in trees[0].every("li", "leaf"):
        marks = leaf.every("em")
        if not marks:
            continue
        expected, said = estimates_of(run, int(marks[0].text) - 1), numbers(leaf.first("b").text, run)
        every = [value for one in expected for value in one]
        if compare("", said, every) and not any(not compare("", said, one) for one in expected):
            faults.append(f"{leaf.text}: {said} is not so, expected {every} or one of {expected}")
    return faults


def check_ruler(run: Run) -> list[str]:
    """Whether every mark of the ruler, our interval, the paired one and the band stand where the scores say."""
    marks, spans = _ruled(run)
    drawn = run.page.every("figure", "ruler")
    if not drawn:
        return ["no ruler"] if marks else []
    axis = Scale.of(drawn[0].first("svg", "ax"))
    said = [figure for one in drawn[0].every("li", "mk") for figure in numbers(one.first("b").text, run)]
    is_turned = axis.value(98.0) < axis.value(2.0)
    faults = compare("ruler", said, sorted(marks, reverse=is_turned))
    rule = drawn[0].first("svg", "rule")
    places = [
        mark(Element("svg", {}, [one]))
        for one in rule.every("g")
        if one.every("", "m") or one.every("svg", "ov")
    ]
    pairs = list(zip(sorted(places), sorted(marks, reverse=is_turned), strict=True))
    pairs += zip(sorted(ends(rule, "iv")), spans[0], strict=True)
    if len(spans) > 1:
        gain = drawn[0].first("svg", "gain")
        band = gain.first("rect", "margin").attributes
        low, width = (float(band[name].rstrip("%")) for name in ("x", "width"))
        pairs += zip(sorted(ends(gain, "wh")), spans[1], strict=True)
        pairs += zip((low, low + width), spans[2], strict=True)
    return faults + [
        f"a mark of the ruler stands at {axis.value(at)}, expected {value}"
        for at, value in pairs
        if not axis.agrees(at, value)
    ]


def _ruled(run: Run) -> tuple[list[float], list[tuple[float, float]]]:
    """The figures on the ruler; and the ends of our interval, of the paired one and of the band, from left to right."""
    if run.scores is None:
        description = run.facts["description"]
        root = description["tree"] and description["tree"]["estimates"][output_of(run)]
        if description["figure"] != "correction" or not description["is_found"] or not clear_of(root):
            return [], []
        before, after, low, high = average_moved(run)
        return [before, after], [(low, high)]  # type: ignore[list-item]
    known, found = reference(run), run.scores["scores"]
    shown = [known, ours(run), *(found[key] for key in ("public_only", "no_noise") if key in found)]
    marks = [chief(run, score) for at, score in enumerate(shown) if score not in shown[:at]]
    if known != constant_of(run) or best_constant(run) != chief(run, known):
        marks.append(best_constant(run))
    sign, before, small = 1.0 if is_class(run) else -1.0, chief(run, known), margin(run)
    spans = [
        interval_of(run, ours(run)),
        [before + sign * end for end in lead_of(run, known)],
        [before - small, before + small],
    ]
    return marks, [tuple(sorted(span, reverse=sign < 0)) for span in spans]  # type: ignore[misc]


def check_whose(run: Run) -> list[str]:
    """Whether the bar of rows has a part for those that are public, reported earlier or now, and are kept aside, to scale."""
    drawn = [
        float(one.attributes["style"].partition(":")[2]) for one in run.page.first("div", "whose").every("i")
    ]
    n_test = float(run.scores["n_test"]) if run.scores else 0.0
    private = [float(run.n_earlier), n_private(run) - run.n_earlier]
    expected = [
        float(run.chain.scaled.facts["n_public"]),
        *private,
        float(run.held.facts["n_test"]) if n_test else 0.0,
    ]
    said = [one.first("b").text for one in run.page.first("ul", "parts").every("li")]
    expected = [n for at, n in enumerate(expected) if n or at == 2]
    faults = [] if drawn == expected else [f"rows are drawn as {drawn}, expected {expected}"]
    return faults + compare("rows", said, expected)


def check_dots(run: Run) -> list[str]:
    """Whether so many of a hundred dots are filled as guesses are right at most."""
    filled = [one.first("path", "on").attributes["d"].count("M") for one in run.page.every("svg", "dots")]
    expected = [50, round(guess(epsilon(run)))]
    return [] if filled == expected else [f"{filled} dots, expected {expected}"]


def check_groups(run: Run) -> list[str]:
    """Where the marks of each group stand, what is written beside them, how many people it has, and whether it is clear."""
    lists = run.page.every("ul", "groups")
    if not lists:
        return ["no groups"] if run.facts["description"]["cells"] else []
    axis, faults = Scale.of(run.page.first("div", "pair-head").first("svg", "ax")), []
    is_correction, scale = run.facts["description"]["figure"] == "correction", _scale(run)
    faults += _check_shared(run, lists[0])
    faults += _check_output(run)
    for row in lists[0].every("li"):
        if "data-kind" not in row.attributes:
            continue
        cell = run.facts["description"]["cells"][int(row.attributes["data-kind"]) - 1]
        faults += compare(row.text, [row.first("span", "n").text], [max(cell["share"], 0.0) * n_private(run)])
        at = output_of(run)
        own = cell["answers"][at] if is_correction else cell["estimates"][at]["value"]
        public = cell["public"][at]["value"] if cell["public"] and cell["public"][at] else None
        expected = [scale * value for value in (public, own) if value is not None]
        marks = [mark(Element("svg", {}, [one])) for one in row.every("g")]
        texts = [one.text_of() for one in row.every("text")]
        faults += compare(row.text, texts, expected)
        faults += [
            f"a mark of {row.text} stands at {axis.value(place)}, expected {value}"
            for place, value in zip(marks, expected, strict=True)
            if not axis.agrees(place, value)
        ]
        if not is_correction and cell["estimates"][at]["sd"] is not None:
            value, *reach = estimates_of(run, int(row.attributes["data-kind"]) - 1)[at]
            low, high = (value - reach[0], value + reach[0]) if len(reach) == 1 else reach
            faults += [
                f"a whisker of {row.text} ends at {axis.value(place)}, expected {end}"
                for place, end in zip(ends(row.first("svg", "pair"), "wh"), (low, high), strict=True)
                if not axis.agrees(place, min(max(end, 0.0), 100.0) if scale > 1 else end)
            ]
        if is_correction and clear_of(cell["estimates"][at]) != ("clear" in row.classes):
            faults.append(f"{row.text} is drawn clear, or is not")
    return faults


def _check_shared(run: Run, drawn: Element) -> list[str]:
    """Whether all groups that are drawn have the conditions that are said of all, and these are all that they have in common."""
    kinds = [int(row.attributes["data-kind"]) for row in drawn.every("li") if "data-kind" in row.attributes]
    paths = [run.facts["description"]["cells"][kind - 1]["path"] for kind in kinds]
    common = [one for one in paths[0] if all(one in path for path in paths)] if len(paths) > 1 else []
    said = [one.text for one in run.page.every("span") if one.attributes.get("data-says") == "groups share"]
    if len(said) != bool(common):
        return [f"{len(common)} conditions are shared, said: {said}"]
    return [
        f"{one['column']} is shared: {said}"
        for one in common
        if one["column"].replace("_", " ") not in said[0]
    ]


OF_OUTPUT = (
    "off often",
    "off everywhere",
    "off rarely",
    "average unclear",
    "off together",
    "expects class",
    "by group",
)
"""Sentences about one output."""


def _check_output(run: Run) -> list[str]:
    """Whether the figures of groups and the sentences about one class are all of the same one, by name."""
    if run.facts["label"] != "class":
        return []
    name = f"“{run.facts['description']['outputs'][output_of(run)]}”"
    said = [one.text for one in run.page.every("span") if one.attributes.get("data-says") in OF_OUTPUT]
    said.append(run.page.first("div", "pair-head").first("span", "n").text)
    return [f"{text!r} is not of {name}" for text in said if name not in text]


def _scale(run: Run) -> float:
    return 100.0 if run.facts["label"] == "class" else 1.0


def off_of_ten(run: Run) -> float:
    """For how many of ten people the public model is clearly off, on the output and to the side where most are."""
    sides: dict[bool, float] = {}
    for cell in run.facts["description"]["cells"]:
        at = output_of(run)
        if clear_of(cell["estimates"][at]):
            side = cell["estimates"][at]["value"] > 0
            sides[side] = sides.get(side, 0.0) + cell["share"]
    return float(round(10 * max(sides.values())))
